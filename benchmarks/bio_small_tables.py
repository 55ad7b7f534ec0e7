"""Tables about the model in the box, from `bio_small.py`'s results and the trainings of `models/train_models.py`.

A cell whose run is still missing has a dash.
"""

from __future__ import annotations

from collections.abc import Sequence
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
FIRST = "first edition"
"""The name of its rows: hashed word features, trained on a CPU."""
VERSIONS = {
    "full": "32 bits",
    "half": "16 bits",
    "shipped": "16 bits, fewer word pieces: as shipped",
    "int8": "the same, computed with in 8 bits",
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


def trained(recipe: str, corpus: str) -> dict[int, float]:
    """The test F1 of the trainings of one kind, by seed; there may be only one training of a kind and seed."""
    found: dict[int, float] = {}
    for row in rows("bio_small-training"):
        if row["recipe"] == recipe and corpus in row["tests"]:
            if row["seed"] in found:
                raise ValueError(f"bio_small-training.jsonl: {recipe} has seed {row['seed']} twice; keep one of them")
            found[row["seed"]] = row["tests"][corpus]["as_users"]["f1"]
    return found


def seeds(values: Sequence[float]) -> str:
    """Mean and deviation, if there are any values."""
    return spread(list(values)) if values else MISSING


def number(value: float | None, digits: int = 2) -> str:
    """A number, if there is one."""
    return MISSING if value is None else f"{value:.{digits}f}"


def tests() -> str:
    """The shipped file on each test set, beside what it was made of and what else could have been."""
    shipped = measured("shipped")
    lines = []
    for corpus, name in NAMES.items():
        figures = shipped["tests"][corpus] if shipped is not None else None
        own, errors = MISSING, MISSING
        if figures is not None:
            users, low, high = figures["as_users"], *figures["as_users"]["interval"]
            own = f"{users['f1']:.2f} [{low:.2f}, {high:.2f}]"
            errors = f"{figures['uncalibrated']['calibration_error']:.1f} → {users['calibration_error']:.1f}"
        kinds = [seeds([*trained(kind, corpus).values()]) for kind in ("student", "alone", "teacher")]
        single = number(max(trained("single", corpus).values(), default=None))
        first = number(f1(measured(FIRST), corpus))
        lines.append(f"{name} | {own} | {kinds[0]} | {kinds[1]} | {single} | {kinds[2]} | {first} | {errors}")
    return markdown(
        "test set | the shipped file, 95 % interval | students | students without teachers | "
        "best training on this corpus alone | teachers | first edition (hashed) | "
        "calibration error in points, before → after",
        lines,
    )


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
    """What copies and teachers brought: the same student without them, with the same seeds."""
    kinds = ("alone", "copies", "student")
    lines, gains = [], dict[int, list[float]]()
    for corpus, name in NAMES.items():
        by_kind = {kind: trained(kind, corpus) for kind in kinds}
        alone, student = by_kind["alone"], by_kind["student"]
        gain = {seed: student[seed] - alone[seed] for seed in sorted(student.keys() & alone.keys())}
        for seed, points in gain.items():
            gains.setdefault(seed, []).append(points)
        cells = [seeds([*values.values()]) for values in by_kind.values()]
        lines.append(f"{name} | {' | '.join(cells)} | {gained([*gain.values()])}")
    mean = [fmean(points) for points in gains.values()]
    lines.append(f"mean | {' | '.join(MISSING for _ in kinds)} | {gained(mean)}")
    return markdown("test set | alone | with perturbed copies | with copies and teachers | gain over alone", lines)


def gained(points: Sequence[float]) -> str:
    """Mean and deviation of differences between trainings with the same seed, and how many are above 0."""
    if not points:
        return MISSING
    sign, higher = "+" if fmean(points) >= 0 else "", sum(each > 0 for each in points)
    return f"{sign}{spread(list(points))}, higher in {higher} of {len(points)} seeds"


def compression() -> str:
    """What smaller files cost on each test set."""
    versions = [measured(name) for name in VERSIONS]
    full = versions[0]
    lines = [
        f"{shown} | {' | '.join(beside(f1(row, corpus), f1(full, corpus)) for row in versions)}"
        for corpus, shown in NAMES.items()
    ]
    lines += [
        f"mean | {' | '.join(beside(mean(row), mean(full)) for row in versions)}",
        f"regression set | {' | '.join(beside(regression(row), regression(full)) for row in versions)}",
        f"MB | {' | '.join(number(row['mb'] if row is not None else None, 1) for row in versions)}",
    ]
    return markdown(f"test set | {' | '.join(VERSIONS.values())}", lines)


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
    """What perturbations of BioRED's test set cost, beside the first edition."""
    shipped, first = measured("shipped", "robustness"), measured(FIRST, "robustness")
    known = shipped or first
    if known is None:
        return markdown("perturbation | F1 | change | change of the first edition", [])
    lines = [f"none | {number(shipped['clean'] if shipped else None)} |  | "]
    for name in sorted(known["perturbed"], key=known["perturbed"].__getitem__):
        own = shipped["perturbed"][name] if shipped else None
        cells = [number(own), *(change(row, name) for row in (shipped, first))]
        lines.append(f"{name.replace('_', ' ')} | {' | '.join(cells)}")
    return markdown("perturbation | F1 | change | change of the first edition", lines)


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
