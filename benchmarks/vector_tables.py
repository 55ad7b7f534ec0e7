"""Tables about word vectors, from `benchmarks/vectors.py`'s results."""

from __future__ import annotations

from typing import Any

from table_rows import rows


def found(kind: str) -> list[dict[str, Any]]:
    """The lines of one kind."""
    return [row for row in rows("vectors") if row["kind"] == kind]


def training() -> str:
    """What training on a corpus costs."""
    lines = [
        "| text | words | different | pairs | size | epochs | words per second read and counted, trained | "
        "seconds | peak memory, MiB | loss, first and last epoch |",
        "|---" * 10 + "|",
    ]
    for row in found("training"):
        speed, seconds = row["words_per_second"], sum(row["seconds"].values())
        counts = " | ".join(f"{row[name]:,}" for name in ("running_words", "different_words", "pairs"))
        settings = f"{row['settings']['size']} | {row['settings']['epochs']}"
        speeds = f"{speed['reading and counting']:,}, {speed['training']:,}"
        losses = f"{row['losses'][0]:.4f}, {row['losses'][-1]:.4f}"
        costs = f"{speeds} | {seconds:.0f} | {row['peak_memory_mib']:,}"
        lines.append(f"| {row['corpus']} | {counts} | {settings} | {costs} | {losses} |")
    return "\n".join(lines)


def neighbors() -> str:
    """The nearest neighbors of some words, nearest first."""
    lines = ["| word | nearest in GENIA's training text, with cosines |", "|---|---|"]
    for row in found("training"):
        for word, near in row.get("nearest", {}).items():
            shown = ", ".join(f"{one['word']} {one['cosine']:.2f}" for one in near)
            lines.append(f"| {word} | {shown} |")
    return "\n".join(lines)


def opening() -> str:
    """What it costs to open a large file, the first time and later."""
    lines = [
        "| file | words | size | MiB | first opening, s | later ones, s | a word looked up, µs | memory later, MiB |",
        "|---" * 8 + "|",
    ]
    for row in found("opening"):
        counts = f"{row['words']:,} | {row['size']} | {row['file_mib']:.0f}"
        times = f"{row['first_seconds']:.1f} | {row['later_seconds']:.3f} | {row['lookup_microseconds']:.0f}"
        lines.append(f"| {row['format']} | {counts} | {times} | {row['later_mib']:.0f} |")
    return "\n".join(lines)
