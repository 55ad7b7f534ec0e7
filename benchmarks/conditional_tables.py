"""Tables about paper 004, from `benchmarks/conditional.py`'s results."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import Any

from table_rows import rows, spread

TYPES = ("Disease", "Chemical", "Gene", "Variant", "Species", "CellLine")
LEAKS = {"none": "", "with": "with leaks", "without": "without leaks"}
CORE = {
    ("single", "none"): "Single",
    ("multi", "with"): "Multi",
    ("multi", "without"): "Multi",
    ("multi-cvae", "with"): "Multi + CVAE",
    ("multi-cvae", "without"): "Multi + CVAE",
}
ABLATIONS = {
    "multi": "Multi",
    "multi-cvae": "Multi + CVAE",
    "fixed": "Multi + CVAE (Fixed)",
    "unshared": "Multi + CVAE (Unshared)",
    "shared-label": "Multi + CVAE (Shared label)",
    "random": "Multi + CVAE (Random)",
    "multi-shared-label": "Multi (Shared label)",
    "single": "Single",
    "single-cvae": "Single + CVAE",
}
# paper 004, Table 1, PubMedBERT, one run each, with leaks
PUBLISHED = {"single": 87.86, "multi": 93.22, "multi-cvae": 94.19}
USUAL = "1e-4"

Runs = dict[tuple[str, str, str], list[dict[str, Any]]]


def runs() -> Runs:
    """The runs by variant, leaks, and the weight of the CVAE."""
    found: Runs = defaultdict(list)
    for row in rows("conditional"):
        weight = row["settings"].get("terms.cvae.weight", USUAL)
        found[row["recipe"].removeprefix("conditional/"), row["leaks"], weight].append(row)
    return found


def f1(some: list[dict[str, Any]], part: str = "test") -> list[float]:
    """A part's F1, run by run."""
    return [row[part]["f1"] for row in some if row[part]]


def results() -> str:
    """Dev and test of BioRED, type by type."""
    found = runs()
    lines = [
        f"| system | auxiliary files | dev F1 | test F1 | {' | '.join(TYPES)} | seeds |",
        "|---|---|---|---|" + "---|" * (len(TYPES) + 1),
    ]
    for (name, leaks), title in CORE.items():
        some = found[name, leaks, USUAL]
        if some:
            types = " | ".join(f"{fmean(row['test_labels'][label]['f1'] for row in some):.2f}" for label in TYPES)
            scores = f"{spread(f1(some, 'dev'))} | {spread(f1(some))}"
            lines.append(f"| {title} | {LEAKS[leaks]} | {scores} | {types} | {len(some)} |")
    return "\n".join(lines)


def leaks() -> str:
    """The gain over Single with and without leaks, on leaking and on other test documents, as a finding."""
    found = runs()
    single = found["single", "none", USUAL]
    lines = ["| gain over Single, test F1 | all | 72 leaking documents | 28 others |", "|---|---|---|---|"]
    if not single:
        return "\n".join(lines)
    gains = {}
    for (name, kind), title in CORE.items():
        some = found[name, kind, USUAL]
        if name == "single" or not some:
            continue
        parts = [fmean(f1(some, part)) - fmean(f1(single, part)) for part in ("test", "leaking", "others")]
        gains[name, kind] = parts[0]
        lines.append(f"| {title}, {LEAKS[kind]} | {' | '.join(f'{gain:+.2f}' for gain in parts)} |")
    for name, title in (("multi", "Multi"), ("multi-cvae", "Multi + CVAE")):
        if (name, "with") in gains and (name, "without") in gains:
            whole, clean = gains[name, "with"], gains[name, "without"]
            paper = PUBLISHED[name] - PUBLISHED["single"]
            share = f"{100 * (whole - clean) / whole:.0f} % of it" if whole > 0 else "more than all of it"
            lines += [
                "",
                f"{title}: {whole:+.2f} over Single with leaks, {clean:+.2f} without; {share} is leakage here. "
                f"The paper has {paper:+.2f}, with leaks.",
            ]
    return "\n".join(lines)


def ablations() -> str:
    """Every condition of the CVAE, and its weight, without leaks."""
    found = runs()
    lines = ["| system | weight of the CVAE | dev F1 | test F1 | seeds |", "|---|---|---|---|---|"]
    for name, title in ABLATIONS.items():
        kind = "none" if name.startswith("single") else "without"
        weights = sorted((w for n, k, w in found if (n, k) == (name, kind)), key=float)
        for weight in weights:
            some = found[name, kind, weight]
            shown = "" if name in ("multi", "single", "multi-shared-label") else weight
            scores = f"{spread(f1(some, 'dev'))} | {spread(f1(some))}"
            lines.append(f"| {title} | {shown} | {scores} | {len(some)} |")
    return "\n".join(lines)


def corpora() -> str:
    """The tests of the other corpora, in their own labels."""
    found = runs()
    shown = {key: title for key, title in CORE.items() if any("corpora" in row for row in found[(*key, USUAL)])}
    lines = [
        f"| test F1 | {' | '.join(f'{title}, {LEAKS[leaks]}' for (_, leaks), title in shown.items())} |",
        "|---|" + "---|" * len(shown),
    ]
    names = dict.fromkeys(n for key in shown for row in found[(*key, USUAL)] for n in row.get("corpora", ()))
    for name in names:
        cells = [spread([row["corpora"][name]["f1"] for row in found[(*key, USUAL)]]) for key in shown]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)
