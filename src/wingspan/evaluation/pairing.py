"""Which found document belongs to which gold document, and subsets of such pairs that papers report on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from wingspan.text import Document

Key = tuple[str, int]


def pair(
    gold: Sequence[Document], found: Sequence[Document], allow_missing: bool = False
) -> list[tuple[Document, Document]]:
    """Gold documents with their found counterparts, in the order of the gold.

    They meet by id (the second row of an id meets the second). If no id occurs on both sides and there are as many
    documents on either, they meet by position. Texts have to agree to the character. With `allow_missing`, a gold
    document nobody answered counts as answered with nothing; a found document without gold is always an error.
    """
    gold_keys, by_key = keys_of(gold), dict(zip(keys_of(found), found, strict=True))
    known = set(gold_keys)
    if len(gold) == len(found) and not by_key.keys() & known:
        pairs = list(zip(gold, found, strict=True))
    else:
        extra = [key for key in by_key if key not in known]
        _refuse(extra, "predicted", "gold", "remove them or add their gold")
        missing = [key for key in gold_keys if key not in by_key]
        if not allow_missing:
            _refuse(missing, "gold", "predicted", "predict them, or let them count as empty (--allow-missing)")
        pairs = [(g, by_key.get(key) or replace(g, entities=())) for key, g in zip(gold_keys, gold, strict=True)]
    for wanted, given in pairs:
        if wanted.text != given.text:
            raise ValueError(_difference(wanted, given))
    return pairs


def discontinuous_documents(
    gold: Sequence[Document], found: Sequence[Document], allow_missing: bool = False
) -> tuple[list[Document], list[Document]]:
    """Only the documents whose gold has a discontinuous entity, with all their entities."""
    kept = [
        (wanted, given)
        for wanted, given in pair(gold, found, allow_missing)
        if any(entity.discontinuous for entity in wanted.entities)
    ]
    return [wanted for wanted, _ in kept], [given for _, given in kept]


def discontinuous_entities(documents: Iterable[Document]) -> list[Document]:
    """All the documents, with only their discontinuous entities; use it on both sides."""
    return [replace(d, entities=tuple(e for e in d.entities if e.discontinuous)) for d in documents]


def keys_of(documents: Iterable[Document]) -> list[Key]:
    """Ids with a running number, so that rows that share an id stay apart."""
    seen: Counter[str] = Counter()
    keys = []
    for document in documents:
        keys.append((document.id, seen[document.id]))
        seen[document.id] += 1
    return keys


def _refuse(keys: Sequence[Key], side: str, other: str, fix: str) -> None:
    """One error that names the documents only one side has."""
    if keys:
        named = ", ".join(repr(id) for id, _ in keys[:5]) + (", ..." if len(keys) > 5 else "")
        raise ValueError(f"{len(keys)} {side} documents have no {other} counterpart of the same id ({named}); {fix}")


def _difference(gold: Document, found: Document) -> str:
    """Where and how two texts that should be one differ."""
    shorter = min(len(gold.text), len(found.text))
    at = next((i for i in range(shorter) if gold.text[i] != found.text[i]), shorter)
    here = slice(max(0, at - 10), at + 10)
    where = f"{gold.text[here]!r} in the gold, {found.text[here]!r} predicted, at character {at}"
    name = repr(gold.id) if gold.id == found.id else f"{gold.id!r} (predicted as {found.id!r})"
    if "".join(gold.text.split()) == "".join(found.text.split()):
        return (
            f"document {name}: the two texts differ only in white space or tokenization ({where}); scores compare"
            " character positions, so predict on the gold text, or put the predictions there with `place_on_gold`"
        )
    return f"document {name}: the two texts differ ({where}); check that both files come from the same corpus"
