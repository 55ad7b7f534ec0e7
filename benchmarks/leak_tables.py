"""Tables about leaks, from `results/leaks.jsonl`; `tables.py` puts them into the documents."""

from __future__ import annotations

from collections import Counter
from typing import Any

from table_rows import rows

SIDES = {"dev": "train, dev", "test": "train, test", "dev-test": "dev, test"}


def of_kind(kind: str) -> list[dict[str, Any]]:
    """The lines of one kind."""
    return [row for row in rows("leaks") if row["kind"] == kind]


def corpora() -> str:
    """Corpora that share documents, ids or many sentences with their own dev and test parts."""
    lines = [
        "| corpus | sides | documents | exact | normalized | near | training documents dropped | same id, other text "
        "| equal sentences | equal but short |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in of_kind("corpus"):
        if row["leaking_train_documents"] or row["shared_ids"] or row["equal_but_short"]:
            dropped = row["leaking_train_documents"] if row["sides"] != "dev-test" else "–"
            kinds = " | ".join(str(count) for count in row["kinds"].values())
            sides = f"{row['corpus']} | {SIDES[row['sides']]} | {row['against_documents']:,}"
            rest = f"{row['shared_ids']} | {row['equal_sentences']} | {row['equal_but_short']}"
            lines.append(f"| {sides} | {kinds} | {dropped} | {rest} |")
    return "\n".join(lines)


def biored() -> str:
    """How much of BioRED the auxiliary corpora of paper 004 hold."""
    lines = [
        "| files | part | exact and normalized | near | sentence by sentence | by corpus | mentions in them "
        "| annotated there too | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in of_kind("biored"):
        by_corpus: Counter[str] = Counter()
        for file, kinds in row["train_files"].items():
            by_corpus[file.split("/")[0]] += sum(kinds.values())
        named = ", ".join(f"{name} {count}" for name, count in by_corpus.most_common())
        mentions = row["mentions"]
        lines.append(
            f"| `{row['files']}` | {row['part']} | {row['documents']} of {row['against_documents']} | "
            f"{row['near_documents']} | {row['covered_documents']} | {named} | {mentions['in_leaking_documents']:,} of "
            f"{mentions['of']:,} | {mentions['annotated_in_training']:,} | {row['seconds']:.1f} |"
        )
    return "\n".join(lines)


def speed() -> str:
    """Generated documents: time and memory."""
    lines = [
        "| training documents | scored documents | edited copies found | seconds | peak memory, MB |",
        "|---|---|---|---|---|",
    ]
    for row in of_kind("generated"):
        found = f"{row['near']} of {row['edited']}"
        memory = f"{row['peak_mb']:,} ({row['peak_mb_before']:,} before)"
        lines.append(f"| {row['train']:,} | {row['against']:,} | {found} | {row['seconds']:.0f} | {memory} |")
    return "\n".join(lines)
