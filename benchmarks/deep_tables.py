"""Tables about deep spans, from `results/deep_*.jsonl`; `tables.py` puts them into the documents."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from table_rows import chance, rows, spread

SPANS = {
    "shallow max": ("shallow-max-no-bilstm", "shallow-max-proposals"),
    "biaffine": ("biaffine", "biaffine-proposals"),
    "deep 2": ("depth-2-no-bilstm", "depth-2-proposals"),
    "deep 12": ("no-bilstm", "proposals"),
}
CORPORA = {"genia": "GENIA", "litbank": "LitBank"}


def accuracy() -> str:
    """Dev and test F1 by span vector, on the grid and with proposals."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows("deep_accuracy"):
        found[row["corpus"], row["recipe"].removeprefix("deep_span/")].append(row)
    lines = [
        "| corpus | spans | candidates | dev F1 | test F1 | proposal recall, dev, test | seeds |",
        "|---|---|---|---|---|---|---|",
    ]
    for corpus, title in CORPORA.items():
        for spans, systems in SPANS.items():
            for system in systems:
                runs = found[corpus, system]
                if not runs:
                    continue
                dev, test = (spread([run[part]["f1"] for run in runs]) for part in ("dev", "test"))
                chosen, recall = f"grid of {runs[0]['max_width']}", ""
                if "proposals" in runs[0]:
                    budget = float(runs[0]["settings"]["candidates.budget"])
                    chosen = f"{budget:g} per word, any width"
                    recall = ", ".join(spread(recalls(runs, part, budget)) for part in ("dev", "test"))
                lines.append(f"| {title} | {spans} | {chosen} | {dev} | {test} | {recall} | {len(runs)} |")
    return "\n".join(lines)


def recalls(runs: list[dict[str, Any]], part: str, budget: float) -> list[float]:
    """The share of gold entities that were proposed, run by run."""
    return [one["recall"] for run in runs for one in run["proposals"][part] if one["budget"] == budget]


def reading() -> str:
    """Differences with their intervals, for all entities and for long ones."""
    lines = [
        "| corpus | entities | system | F1 | against | difference | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows("deep_reading"):
        if row["system"] == row["against"]:
            continue
        value, low, high = row["f1"]
        gap, least, most = row["difference"]
        lines.append(
            f"| {CORPORA[row['corpus']]} | {row['entities']:,} ({row['subset']}, {row['part']}) | `{row['system']}` "
            f"| {value:.1f} [{low:.1f}, {high:.1f}] | `{row['against']}` | {gap:+.1f} [{least:+.1f}, {most:+.1f}] "
            f"| {chance(row['p'])} |"
        )
    return "\n".join(lines)


def roles() -> str:
    """Mean F1 by nested role."""
    lines = ["| corpus | system | flat | nested | covering | both |", "|---|---|---|---|---|---|"]
    for row in rows("deep_reading"):
        if "roles" in row:
            cells = [f"{row['roles'][role]:.1f}" for role in ("flat", "nested", "covering", "both")]
            lines.append(f"| {CORPORA[row['corpus']]} | `{row['system']}` | {' | '.join(cells)} |")
    return "\n".join(lines)


ABLATIONS = {
    "depth-12": "deep 12",
    "no-bilstm": "deep 12, no BiLSTM",
    "share-weights": "deep 12, the encoder's own blocks",
    "no-smoothing": "deep 12, no boundary smoothing",
    "init-mean": "deep 12 from means",
    "init-multiplicative": "deep 12 from multiplicative attention",
    "init-additive": "deep 12 from additive attention",
    "depth-6": "deep 6",
    "depth-2": "deep 2",
    "shallow-max": "shallow max",
    "shallow-mean": "shallow mean",
    "shallow-multiplicative": "shallow multiplicative attention",
    "shallow-additive": "shallow additive attention",
}


def ablations() -> str:
    """GENIA with the paper's BiLSTM, and the difference to what a row was taken from."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in (*rows("deep_ablations"), *rows("deep_accuracy")):
        if row["corpus"] == "genia":
            found[row["recipe"].removeprefix("deep_span/")].append(row)
    read = {row["system"]: row for row in rows("deep_ablation_reading") if row["corpus"] == "genia"}
    lines = ["| spans | dev F1 | test F1 | seeds | against | difference on test | p |", "|---|---|---|---|---|---|---|"]
    for system, title in ABLATIONS.items():
        runs = found[system]
        if not runs:
            continue
        dev, test = (spread([run[part]["f1"] for run in runs]) for part in ("dev", "test"))
        against = "| | | |"
        if system in read:
            gap, least, most = read[system]["difference"]
            other = ABLATIONS[read[system]["against"]]
            against = f"| {other} | {gap:+.1f} [{least:+.1f}, {most:+.1f}] | {chance(read[system]['p'])} |"
        lines.append(f"| {title} | {dev} | {test} | {len(runs)} {against}")
    return "\n".join(lines)


def cost() -> str:
    """A training step against the bare encoder's, taken by turns; proposals with what they keep on GENIA's dev part."""
    lines = [
        "| spans | candidates | times the bare step | least to greatest turn | ms | peak memory, MiB "
        "| GENIA dev: proposal recall, F1 (grid) |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows("deep_span"):
        least, most = row["spread"]
        lines.append(
            f"| {row['row']} | {row.get('scope', '')} | ×{row['ratio']:.2f} | ×{least:.2f} to ×{most:.2f} "
            f"| {row['ms']:.1f} | {row['peak_mib']:,.0f} | {kept(row)} |"
        )
    return "\n".join(lines)


def kept(row: dict[str, Any]) -> str:
    """What proposals of a cost row keep: recall and F1 on GENIA's dev part at that budget, and F1 on the grid."""
    pairs = {proposing: grid for grid, proposing in SPANS.values()}
    system = row["row"].removeprefix("deep_span/")
    if system not in pairs:
        return ""
    genia = [run for run in rows("deep_accuracy") if run["corpus"] == "genia" and "test" in run]
    runs, grid = ([run for run in genia if run["recipe"] == f"deep_span/{name}"] for name in (system, pairs[system]))
    budget = float(row["scope"].split()[-3])
    f1 = [one["dev_f1"] for run in runs for one in run["budgets"] if one["budget"] == budget]
    if not f1 or not grid:
        return ""
    return f"{spread(recalls(runs, 'dev', budget))}, {spread(f1)} ({spread([run['dev']['f1'] for run in grid])})"


def prediction() -> str:
    """Prediction on two threads against the bare encoder, taken by turns."""
    lines = ["| spans | candidates | times the bare encoder | ms |", "|---|---|---|---|"]
    for row in rows("deep_predict"):
        lines.append(f"| {row['row']} | {row.get('scope', '')} | ×{row['ratio']:.2f} | {row['ms']:,.0f} |")
    return "\n".join(lines)


def scaling() -> str:
    """What the span part adds, by length of the sentence and by width."""
    lines = ["| words | candidates | span part, ms per sentence | peak memory, MiB |", "|---|---|---|---|"]
    for row in rows("deep_scaling"):
        if "scope" in row:
            each = row["span_ms"] / row["sentences"]
            lines.append(f"| {row['length']} | {row['scope']} | {each:.2f} | {row['peak_mib']:,.0f} |")
    return "\n".join(lines)
