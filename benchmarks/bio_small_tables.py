"""Tables about the model in the box, from `benchmarks/bio_small.py`'s results."""

from __future__ import annotations

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


def scored(name: str) -> list[dict[str, Any]]:
    """The scores of models of one name."""
    return [row for row in rows("bio_small", "scores") if row["name"] == name]


def f1s(name: str, corpus: str) -> list[float]:
    """The F1 of each seed on a test set."""
    return [row["tests"][corpus]["as_users"]["f1"] for row in scored(name) if corpus in row["tests"]]


def tests() -> str:
    """The shipped file on each test set, beside the recipe over seeds."""
    (shipped,) = scored("shipped")
    lines = []
    for corpus, shown in NAMES.items():
        figures = shipped["tests"][corpus]
        users, bare = figures["as_users"], figures["uncalibrated"]
        low, high = users["interval"]
        seeds = f1s("full", corpus)
        lines.append(
            f"{shown} | {', '.join(users['labels'])} | {users['precision']:.1f} | {users['recall']:.1f} | "
            f"{users['f1']:.2f} [{low:.2f}, {high:.2f}] | {spread(seeds)} | "
            f"{bare['calibration_error']:.1f} → {users['calibration_error']:.1f}"
        )
    header = (
        "test set | types | precision | recall | F1 of the shipped file, 95 % interval | "
        f"F1 of {len(scored('full'))} seeds, 32 bits | "
        "calibration error in points, before → after"
    )
    return markdown(header, lines)


def types() -> str:
    """The shipped file by type, on BioRED and on the regression set."""
    (shipped,) = scored("shipped")
    test, own = shipped["tests"]["biored"]["as_users"]["labels"], shipped["regression"]["labels"]
    lines = [f"{label} | {test[label]:.1f} | {own[label]:.1f}" for label in test]
    whole = shipped["tests"]["biored"]["as_users"]["f1"], shipped["regression"]["f1"]
    return markdown(
        "type | F1 on BioRED | F1 on the regression set", [*lines, f"all | {whole[0]:.1f} | {whole[1]:.1f}"]
    )


def compression() -> str:
    """What fewer bits cost: the mean F1 over the test sets, and BioRED's."""
    lines = []
    for name, shown in (("full", "32 bits"), ("shipped", "16 bits, as shipped")):
        row = next(row for row in scored(name) if row["seed"] == 1)
        each = [row["tests"][corpus]["as_users"]["f1"] for corpus in NAMES]
        lines.append(f"{shown} | {row['mb']:.1f} | {each[0]:.2f} | {fmean(each):.2f} | {row['regression']['f1']:.2f}")
    return markdown("weights | MB | F1 on BioRED | mean F1 of the nine test sets | F1 on the regression set", lines)


def robustness() -> str:
    """What perturbations of BioRED's test set cost."""
    (row,) = rows("bio_small", "robustness")
    by_drop = sorted(row["perturbed"].items(), key=lambda item: item[1])
    lines = [f"{name.replace('_', ' ')} | {f1:.2f} | {f1 - row['clean']:+.2f}" for name, f1 in by_drop]
    return markdown("perturbation | F1 | change", [f"none | {row['clean']:.2f} | ", *lines])


def costs() -> str:
    """Size, start and speed."""
    lines = [
        f"{row['name']} | {row['mb']:.1f} | {row['load_seconds']:.2f} | {row['first_entity_seconds']:.2f} | "
        f"{row['sentences_per_second']:,.0f} | ×{row['ratio']:.2f} | {row['first_entity_peak_mb']:.0f}"
        for row in rows("bio_small", "costs")
    ]
    return markdown(
        "runtime | MB | loading, s | first entity, s | sentences a second | time, of MiniLM's bare encoder | peak MB",
        lines,
    )
