"""The tables of docs/typed_spans.md: typing beside the figures of the paper, finding beside typing, and a loop."""

from __future__ import annotations

from collections import defaultdict

from table_rows import rows, spread

CORPORA = {"genia": "GENIA", "litbank": "LitBank", "germeval14": "GermEval14"}
PAPER = {"genia": 91.76, "litbank": 87.93, "germeval14": 69.47}  # paper 001, Table 2, column accuracy
TYPING = {
    "typed_spans": "default",
    "typed_spans/paper-mini-batch": "published model, mini-batches",
    "typed_spans/random-vectors": "random vectors",
}
FINDING = "typed_spans/recognize"


def typed_spans() -> str:
    """Typing accuracy by system, the paper's beside it, and the strict F1 of the recognizer."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows("typed_spans"):
        found[row["corpus"], row["recipe"]].append(row["test"].get("accuracy", row["test"].get("f1")))
    lines = [
        f"| test | typing accuracy: {' | '.join(TYPING.values())} | paper 001 | recognition, strict F1 | seeds |",
        "|---|" + "---|" * (len(TYPING) + 3),
    ]
    for corpus, title in CORPORA.items():
        systems = [*TYPING, FINDING]
        if any(found[corpus, system] for system in systems):
            cells = [spread(found[corpus, system]) if found[corpus, system] else "" for system in systems]
            seeds = max(len(found[corpus, system]) for system in systems)
            lines.append(f"| {title} | {' | '.join(cells[:-1])} | {PAPER[corpus]:.2f} | {cells[-1]} | {seeds} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def recurrent_spans() -> str:
    """How much faster all spans at once are than one after the other."""
    lines = [
        "| spans | layout | what | loop, seconds | ours, seconds | times faster | by processor time |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows("recurrent_spans"):
        seconds = f"{row['floor_seconds']:.2f} | {row['seconds']:.3f}"
        times = f"×{row['faster']:.0f} | ×{1 / row['ratio_cpu']:.0f}"
        lines.append(f"| {row['spans']:,} | {row['layout']} | {row['what']} | {seconds} | {times} |")
    return "\n".join(lines) if len(lines) > 2 else ""
