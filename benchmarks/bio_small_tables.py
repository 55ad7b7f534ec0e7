"""Tables about the model in the box, from `bio_small.py`'s results and the trainings of `models/train_models.py`.

A cell whose run is still missing has a dash; a column without any run is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from table_rows import markdown, rows, spread

NAMES = {
    "biored": "BioRED",
    "bc5cdr": "BC5CDR",
    "ncbi-disease": "NCBI-disease",
    "nlmgene": "NLM-Gene",
    "gnormplus": "GNormPlus",
    "linnaeus": "Linnaeus",
    "species800": "SPECIES800",
    "tmvar3": "tmVar3",
    "bioid": "BioID",
}
EARLIER = ("second edition", "first edition")
"""The names of their rows: this encoder without teachers, and hashed word features trained on a CPU."""
VERSIONS = {
    "full": "32 bits",
    "half": "16 bits",
    "shipped": "16 bits, fewer word pieces: as shipped",
    "int8": "as shipped, computed with in 8 bits",
}
MISSING = "–"
Row = dict[str, Any]


def measured(name: str, kind: str = "scores") -> Row | None:
    """What was measured of one version of the model."""
    return next((row for row in rows("bio_small", kind) if row["name"] == name), None)


def f1(row: Row | None, corpus: str) -> float | None:
    """The F1 of a model on a test set, as users get it."""
    figures = row["tests"].get(corpus) if row is not None else None
    return figures["as_users"]["f1"] if figures is not None else None


def runs(recipe: str, corpus: str) -> list[tuple[int, float]]:
    """Seed and test F1 of the trainings of one kind."""
    return [
        (row["seed"], row["tests"][corpus]["as_users"]["f1"])
        for row in rows("bio_small-training")
        if row["recipe"] == recipe and corpus in row["tests"]
    ]


def trained(recipe: str, corpus: str) -> dict[int, float]:
    """The test F1 of the trainings of one kind, by seed; there may be only one training of a kind and seed."""
    found = runs(recipe, corpus)
    if len(found) > len(dict(found)):
        raise ValueError(f"bio_small-training.jsonl: {recipe} has a seed twice; keep one of them")
    return dict(found)


def seeds(values: Sequence[float]) -> str:
    """Mean and deviation, if there are any values."""
    return spread(list(values)) if values else MISSING


def number(value: float | None, digits: int = 2) -> str:
    """A number, if there is one."""
    return MISSING if value is None else f"{value:.{digits}f}"


def listed(values: Sequence[float]) -> str:
    """The F1 of every run: too few for a mean."""
    return ", ".join(f"{score:.2f}" for score in values) or MISSING


def filled_columns(columns: Mapping[str, Sequence[str]], first: str) -> str:
    """A table of columns by their headers, without those that are all dashes; `first` is always there."""
    kept = {header: cells for header, cells in columns.items() if header == first or set(cells) != {MISSING}}
    return markdown(" | ".join(kept), map(" | ".join, zip(*kept.values(), strict=True)))


def tests() -> str:
    """The shipped file on each test set, beside what it was made of and what else could have been."""
    shipped = measured("shipped")
    figures = {corpus: shipped["tests"][corpus] if shipped is not None else None for corpus in NAMES}
    columns = {
        "test set": [*NAMES.values()],
        "the shipped file, 95 % interval": [*map(with_interval, figures.values())],
        "with `--dataset`": [*map(own_guidelines, figures.values())],
        "its recipe, mean over seeds": [seeds([*trained("student", corpus).values()]) for corpus in NAMES],
        "teachers, mean over seeds": [seeds([*trained("teacher", corpus).values()]) for corpus in NAMES],
        "this corpus alone, each run": [listed([score for _, score in runs("single", corpus)]) for corpus in NAMES],
        **{name: [number(f1(measured(name), corpus)) for corpus in NAMES] for name in EARLIER},
        "calibration error in points, before → after": [*map(calibration, figures.values())],
    }
    return filled_columns(columns, "test set")


def with_interval(figures: Row | None) -> str:
    """The F1 of the shipped file on a test set, as users get it."""
    if figures is None:
        return MISSING
    users, (low, high) = figures["as_users"], figures["as_users"]["interval"]
    return f"{users['f1']:.2f} [{low:.2f}, {high:.2f}]"


def own_guidelines(figures: Row | None) -> str:
    """Its F1 where it is told whose guidelines to follow; BioRED's are those it follows anyway."""
    return number(figures["own_guidelines"]["f1"] if figures is not None and "own_guidelines" in figures else None)


def calibration(figures: Row | None) -> str:
    """The error of its scores there, without the temperature and with it."""
    if figures is None:
        return MISSING
    return f"{figures['uncalibrated']['calibration_error']:.1f} → {figures['as_users']['calibration_error']:.1f}"


def types() -> str:
    """The shipped file by type, on BioRED and on the regression set."""
    shipped = measured("shipped")
    if shipped is None:
        return markdown("type | F1 on BioRED | F1 on the regression set", [])
    test, own = shipped["tests"]["biored"]["as_users"], shipped["regression"]
    lines = [
        f"{label} | {score:.1f} | {number(own['labels'].get(label), 1)}" for label, score in test["labels"].items()
    ]
    whole = f"all | {test['f1']:.1f} | {own['f1']:.1f}"
    return markdown("type | F1 on BioRED | F1 on the regression set", [*lines, whole])


def distillation() -> str:
    """What copies and teachers brought: the same student without them, with the same seeds and as many steps."""
    kinds = {"alone": "neither", "copies": "copies", "taught": "teachers", "student": "both"}
    by_corpus = {corpus: {kind: trained(kind, corpus) for kind in kinds} for corpus in NAMES}
    means = {
        kind: {seed: fmean(by_corpus[corpus][kind][seed] for corpus in NAMES) for seed in by_corpus["biored"][kind]}
        for kind in kinds
    }
    lines = []
    for name, by_kind in [*zip(NAMES.values(), by_corpus.values(), strict=True), ("mean", means)]:
        alone, both = by_kind["alone"], by_kind["student"]
        gain = [both[seed] - alone[seed] for seed in sorted(both.keys() & alone.keys())]
        cells = [seeds([*values.values()]) for values in by_kind.values()]
        lines.append(f"{name} | {' | '.join(cells)} | {gained(gain)}")
    return markdown(f"test set | {' | '.join(kinds.values())} | gain of both", lines)


def gained(points: Sequence[float]) -> str:
    """Mean and deviation of differences between trainings with the same seed, and how many are above 0."""
    if not points:
        return MISSING
    sign, higher = "+" if fmean(points) >= 0 else "", sum(each > 0 for each in points)
    return f"{sign}{spread(list(points))}, higher in {higher} of {len(points)} seeds"


def compression() -> str:
    """What smaller files cost on each test set, beside the largest that was measured."""
    versions = {shown: row for name, shown in VERSIONS.items() if (row := measured(name)) is not None}
    full = next(iter(versions.values()), None)
    lines = [
        f"{shown} | {' | '.join(beside(f1(row, corpus), f1(full, corpus)) for row in versions.values())}"
        for corpus, shown in NAMES.items()
    ]
    lines += [
        f"mean | {' | '.join(beside(mean(row), mean(full)) for row in versions.values())}",
        f"regression set | {' | '.join(beside(regression(row), regression(full)) for row in versions.values())}",
        f"MB | {' | '.join(number(row['mb'], 1) for row in versions.values())}",
    ]
    return markdown(" | ".join(["test set", *versions]), lines if versions else [])


def mean(row: Row | None) -> float | None:
    """The mean F1 over the test sets."""
    return fmean(row["tests"][corpus]["as_users"]["f1"] for corpus in NAMES) if row is not None else None


def regression(row: Row | None) -> float | None:
    """The F1 on the regression set."""
    return row["regression"]["f1"] if row is not None else None


def beside(value: float | None, full: float | None) -> str:
    """An F1, and its distance from that of the full model."""
    return number(value) if value is None or full is None or value == full else f"{value:.2f} ({value - full:+.2f})"


def robustness() -> str:
    """What perturbations of BioRED's test set cost, beside earlier editions."""
    columns = {"change": measured("shipped", "robustness")}
    columns |= {f"change of the {name}": measured(name, "robustness") for name in EARLIER}
    shipped = columns["change"]
    header = " | ".join(["perturbation", "F1", *columns])
    if shipped is None:
        return markdown(header, [])
    lines = [f"none | {number(shipped['clean'])}{' | ' * len(columns)}"]
    for name in sorted(shipped["perturbed"], key=shipped["perturbed"].__getitem__):
        cells = [number(shipped["perturbed"][name]), *(change(row, name) for row in columns.values())]
        lines.append(f"{name.replace('_', ' ')} | {' | '.join(cells)}")
    return markdown(header, lines)


def change(row: Row | None, perturbation: str) -> str:
    """What a perturbation changes."""
    return f"{row['perturbed'][perturbation] - row['clean']:+.2f}" if row is not None else MISSING


def costs() -> str:
    """Size, start, speed and memory."""
    lines = [
        f"{row['name']} | {row['mb']:.1f} | {row['load_seconds']:.2f} | {row['first_entity_seconds']:.2f} | "
        f"{row['first_entity_peak_mb']:.0f} | {row['sentences_per_second']:,.0f} | "
        f"{row['sentences'] / row['floor_seconds']:,.0f} | ×{row['ratio']:.2f}"
        for row in rows("bio_small", "costs")
    ]
    return markdown(
        "runtime | MB | loading, s | first entity, s | peak MB | sentences a second | of the bare encoder | "
        "time, of the bare encoder's",
        lines,
    )
