"""Tables about label maps, from `benchmarks/label_map.py`'s results."""

from __future__ import annotations

from typing import Any

from table_rows import rows


def found(kind: str) -> list[dict[str, Any]]:
    """The lines of one kind."""
    return [row for row in rows("label_map") if row["kind"] == kind]


def label_map() -> str:
    """Right and confident suggestions, from all evidence and from each kind alone."""
    lines = [
        "| evidence | right of 31 | confident | right of these | the 28 with training data: confident, right |",
        "|---|---|---|---|---|",
    ]
    for row in found("biomedical"):
        share = f"{100 * row['confident_right'] / max(1, row['confident']):.0f} %"
        sure = f"{row['confident']} | {row['confident_right']} ({share})"
        some = row["with_training_data"]
        lines.append(
            f"| {row['witnesses']} | {row['right']} | {sure} | {some['confident']}, {some['confident_right']} |"
        )
    return "\n".join(lines)


def disagreements() -> str:
    """Where all evidence together says otherwise than the paper."""
    lines = ["| corpus | label | suggested | confidence | paper 004, Table 7 |", "|---|---|---|---|---|"]
    for row in found("biomedical"):
        if row["witnesses"] == "all evidence":
            for one in row["disagreements"]:
                names = f"{one['suggested'] or '-'} | {one['confidence']:.2f} | {one['reference'] or '-'}"
                lines.append(f"| {one['corpus']} | {one['label']} | {names} |")
    return "\n".join(lines)


def threshold() -> str:
    """CrossNER: how many suggestions reach a threshold, and how many of these are right."""
    lines = ["| confidence from | suggestions | right |", "|---|---|---|"]
    judged = found("crossner")
    for tenths in (0, 4, 5, 6, 7, 8) if judged else ():
        sure = [row for row in judged if row["confidence"] >= tenths / 10]
        right = sum(row["suggested"] == row["right"] for row in sure)
        share = f"{100 * right / max(1, len(sure)):.0f} %"
        lines.append(f"| {tenths / 10:g} | {len(sure)} of {len(judged)} | {right} ({share}) |")
    return "\n".join(lines)
