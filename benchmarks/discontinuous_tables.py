"""Tables about discontinuous entities, from the results of `discontinuous.py` and `joining.py`."""

from __future__ import annotations

from collections import defaultdict

from table_rows import chance, rows, spread

CORPORA = {"craft": "CRAFT", "genia-disc": "GENIA, discontinuous"}
SYSTEMS = {
    "links": "links",
    "nearest-discontinuous": "rule, gap tuned on dev's discontinuous entities",
    "nearest-all": "rule, gap tuned on all dev entities",
    "split": "split",
    "hull": "hull",
    "drop": "drop",
}
PARTS = {
    "all": "all entities",
    "sentences": "sentences with a discontinuous one",
    "discontinuous": "discontinuous alone",
    "continuous": "continuous alone",
}


def accuracy() -> str:
    """Strict test F1 of every system on every part, mean and deviation over seeds."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    gaps: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows("discontinuous"):
        for system, figures in row["systems"].items():
            for part in PARTS:
                found[row["corpus"], system, part].append(figures["test"][part]["f1"])
            if "gap" in figures:
                gaps[row["corpus"], system].add(figures["gap"])
    lines = [f"| corpus | system | {' | '.join(PARTS.values())} | seeds |", "|---|---|" + "---|" * (len(PARTS) + 1)]
    for corpus, title in CORPORA.items():
        for system, name in SYSTEMS.items():
            runs = found[corpus, system, "all"]
            if runs:
                chosen = sorted(gaps[corpus, system])
                said = f" ({', '.join(map(str, chosen))})" if chosen else ""
                cells = " | ".join(spread(found[corpus, system, part]) for part in PARTS)
                lines.append(f"| {title} | {name}{said} | {cells} | {len(runs)} |")
    return "\n".join(lines)


def significance() -> str:
    """Links against the others: the difference of test F1 with its interval, and p."""
    lines = ["| corpus | of | links against | difference | 95 % interval | p |", "|---|---|---|---|---|---|"]
    for row in rows("discontinuous-significance"):
        if row["part"] in ("discontinuous", "continuous") and "links" in (row.get("first"), row.get("second")):
            other, sign = (row["second"], -1) if row["first"] == "links" else (row["first"], 1)
            low, high = sorted((sign * row["low"], sign * row["high"]))
            figures = f"{sign * row['difference']:+.2f} | {low:+.2f} to {high:+.2f} | {chance(row['p'])}"
            lines.append(f"| {CORPORA[row['corpus']]} | {PARTS[row['part']]} | {SYSTEMS[other]} | {figures} |")
    return "\n".join(lines)


def intervals() -> str:
    """Test F1 on discontinuous entities alone, all seeds together, with the interval over documents."""
    lines = ["| corpus | system | F1 on discontinuous entities | 95 % interval |", "|---|---|---|---|"]
    for row in rows("discontinuous-significance"):
        if row["part"] == "discontinuous" and "system" in row:
            title, name = CORPORA[row["corpus"]], SYSTEMS[row["system"]]
            lines.append(f"| {title} | {name} | {row['f1']:.2f} | {row['low']:.2f} to {row['high']:.2f} |")
    return "\n".join(lines)


def examples() -> str:
    """What became of discontinuous test entities, with examples by document and characters."""
    lines = ["| corpus | with links, first seed | how many | for example |", "|---|---|---|---|"]
    for row in rows("discontinuous-examples"):
        shown = []
        for one in row["examples"]:
            places = ", ".join(f"{start}-{end}" for start, end in one["spans"])
            shown.append(f"*{one['text']}* ({one['label']}, {one['document']}: {places})")
        lines.append(f"| {CORPORA[row['corpus']]} | {row['kind']} | {row['count']} | {'; '.join(shown)} |")
    return "\n".join(lines)


def joining() -> str:
    """How long 200 fragments of one sentence take, by their links: all of one label, and shared out among ten."""
    lines = ["| links | one label: entities | stopped early | ms | ten labels: ms |", "|---|---|---|---|---|"]
    found = {(row["links"], row["labels"]): row for row in rows("joining")}
    for links in dict.fromkeys(name for name, _ in found):
        one, ten = found[links, 1], found[links, 10]
        stopped = "yes" if one["capped"] else "no"
        times = f"{one['milliseconds']:.1f} | {ten['milliseconds']:.1f}"
        lines.append(f"| {links} | {one['entities']:,} | {stopped} | {times} |")
    return "\n".join(lines)
