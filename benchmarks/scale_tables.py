"""Tables of prediction at scale: engines against one process, and what a large collection takes."""

from __future__ import annotations

from typing import Any

from table_rows import markdown, rows

ABSTRACTS = 100_000_000
SENTENCES_PER_ABSTRACT = 18_546 / 1_999  # of GENIA, whose sentences were predicted
ENGINES = {"single": "one process, no engine", "local": "local processes", "ray": "Ray, two nodes"}


def scale() -> str:
    """Every run: how fast, against one process at equal cores, and whether all is there."""
    found = rows("scale")
    lines = []
    for row in found:
        files = row.get("files_done", row["files"])
        rate = f"{row['sentences'] / row['seconds']:,.0f}" if files == row["files"] else "–"
        killed = ", ".join(row.get("killed") or ["–"])
        whole = "–"
        if row["engine"] != "single":
            whole = f"{row['lost']}, {row['doubled']}, {row['different']}"
        used = f"{row['cpu_seconds']:.0f}" if row["engine"] != "ray" and "all" not in row.get("killed", []) else "–"
        lines.append(
            f"{row['encoder']} | {row['sentences']:,} | {ENGINES[row['engine']]} | {row['workers']} | {row['cores']} | "
            f"{killed} | {files} of {row['files']} | {row['seconds']:.0f} | {used} | {rate} | {over(row, found)} "
            f"| {whole}"
        )
    header = (
        "encoder | sentences | engine | workers | cores | killed | files predicted | seconds | processor seconds "
        "| sentences per second | over one process | rows lost, doubled, different"
    )
    return markdown(header, lines)


def over(row: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """The time of all cores beyond that of one process on one core, in per cent; other runs did other work."""
    alone = [
        other["seconds"]
        for other in found
        if other["engine"] == "single" and other["cores"] == 1 and other["name"] == row["name"]
    ]
    if row["engine"] == "single" or not alone or row.get("killed") or row.get("files_there"):
        return "–"
    return f"{100 * (row['seconds'] * row['cores'] / alone[-1] - 1):+.0f} %"


def scale_cost() -> str:
    """What a hundred million abstracts take, from measured rates."""
    single = {
        f"{row['encoder']}, {row['recipe']}": row["sentences"] / row["seconds"]
        for row in rows("scale")
        if row["engine"] == "single" and row["cores"] == 1
    }
    lines = [cost(system, "one core", rate) for system, rate in single.items()]
    for row in rows("throughput-gpu"):
        corpus, system = row["name"].split(": ")
        texts, encoder, recipe, *_, number_type = system.split(", ")
        if "texts" in texts and number_type == "bfloat16":
            lines.append(cost(f"{encoder}, {recipe}", f"one {row['device']}", row["sentences_per_second"]))
    return markdown("encoder, recipe | on | sentences per second | hours | hours of 100 of them", lines)


def cost(system: str, device: str, rate: float) -> str:
    """A row of the table."""
    hours = ABSTRACTS * SENTENCES_PER_ABSTRACT / rate / 3600
    return f"{system} | {device} | {rate:,.0f} | {hours:,.0f} | {hours / 100:.1f}"
