"""Documents for a person's eyes: colors of labels, verdicts beside gold, stacked lanes, HTML. Imports `text` only."""
