"""Tables about word vectors, from `benchmarks/vectors.py`'s results."""

from __future__ import annotations

from typing import Any

from table_rows import rows


def measured(kind: str) -> list[dict[str, Any]]:
    """The results of one kind."""
    return [row for row in rows("vectors") if row["kind"] == kind]


def training() -> str:
    """The cost of training on a corpus."""
    lines = ["| text | words | vocabulary | method | size | epochs | CPU seconds |", "|---" * 7 + "|"]
    for row in measured("training"):
        settings = row["settings"]
        lines.append(
            f"| {row['corpus']} | {row['num_words']:,} | {row['vocabulary']:,} | {row['method']} | "
            f"{settings['vector_size']} | {settings['epochs']} | {row['seconds']:.0f} |"
        )
    return "\n".join(lines)


def neighbors() -> str:
    """The nearest neighbors of some words, nearest first."""
    lines = ["| word | nearest in GENIA's training text, with cosines |", "|---|---|"]
    for row in measured("training"):
        for word, near in row.get("nearest", {}).items():
            shown = ", ".join(f"{other['word']} {other['cosine']:.2f}" for other in near)
            lines.append(f"| {word} | {shown} |")
    return "\n".join(lines)


def opening() -> str:
    """Opening a large file, the first time and later."""
    lines = [
        "| file | words | size | MiB | first opening, CPU s | later ones, CPU s | look-up, µs | memory later, MiB |",
        "|---" * 8 + "|",
    ]
    for row in measured("opening"):
        counts = f"{row['words']:,} | {row['size']} | {row['file_mib']:.0f}"
        times = f"{row['first_seconds']:.1f} | {row['later_seconds']:.3f} | {row['lookup_microseconds']:.0f}"
        lines.append(f"| {row['format']} | {counts} | {times} | {row['later_mib']:.0f} |")
    return "\n".join(lines)
