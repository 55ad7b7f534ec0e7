"""Documents, scores and progress for a person's eyes: HTML, a terminal, tables."""
