"""Losses of a conversion: what a format cannot hold of a document is counted, and the document made to fit."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from wingspan.corpora.formats import ALL, Format, Holds, Keys
from wingspan.corpora.formats.records import SHAPE
from wingspan.corpora.overlaps import flatten, joined
from wingspan.corpora.words import WordRanges, word_spans
from wingspan.text import Document, Entity, Span, join_words

SPACE = re.compile(r"\s")
# descriptions of losses; `{entities}` stands for their number, as in "3 entities" or "1 entity"
FRAGMENTS = "{discontinuous entities} (an entity is made of each fragment)"
WIDENED = "{entities} with an edge inside of a word (widened to whole words)"
WORDLESS = "{entities} without any word (left out)"
MERGED = "{entities} equal to another one then (one of them stays)"
OVERLAPS = "{overlapping entities} (the widest stay)"
SPACES = "white space of {texts}"
WORD_EDGES = "word boundaries of {documents}"
SENTENCES = "sentence boundaries of {documents}"
GROUPS = "groups of {documents}"
IDS = "ids of {documents}"
DATASETS = "dataset names of {documents}"
SCORES = "scores of {entities}"

OF_ENTITIES = frozenset({FRAGMENTS, WIDENED, WORDLESS, MERGED, OVERLAPS})  # they change the entities themselves


def described(losses: Mapping[str, int], of_entities: bool) -> str:
    """The losses that change entities, or those that do not, in words, the most frequent first."""
    chosen = {what: count for what, count in losses.items() if (what in OF_ENTITIES) == of_entities}
    return ", ".join(_with_count(what, chosen[what]) for what in sorted(chosen, key=lambda what: -chosen[what]))


def loss_lines(losses: Mapping[str, int], target: str) -> list[str]:
    """Lines that tell people what became of entities, and of everything else, in the format of that name."""
    changed, not_kept = described(losses, of_entities=True), described(losses, of_entities=False)
    lines = [f"changed for {target}: {changed}"] if changed else []
    return [*lines, f"not kept by {target}: {not_kept}"] if not_kept else lines


def _with_count(what: str, count: int) -> str:
    """A description with its number: in place of the noun in braces, or in front where there is none."""

    def counted(noun: re.Match[str]) -> str:
        one = re.sub("ies$", "y", noun[1]) if noun[1].endswith("ies") else noun[1].removesuffix("s")
        return f"{count:,} {one if count == 1 else noun[1]}"

    filled, found = re.subn(r"\{([a-z ]+)\}", counted, what)
    return filled if found else f"{count:,} {what}"


def fit(document: Document, target: Format, made_id: str | None = None) -> tuple[Document, Counter[str]]:
    """The document as the format can hold it, and what was lost on the way: description -> count.

    `made_id` is the id that the target's reader will make for the document, where the format stores none.
    """
    holds = target.holds
    lost: Counter[str] = Counter()
    count = sum(entity.discontinuous for entity in document.entities)
    if count and not holds.discontinuous:
        lost[FRAGMENTS] = count
        split = [replace(entity, spans=(span,)) for entity in document.entities for span in entity.spans]
        document = _distinct(document, split, lost)
    if not holds.documents_without_words:
        document = _on_words(document, lost)
    if not holds.nested:
        document, lost[OVERLAPS] = flatten(document, "outer")
    if not holds.exact_text:
        # formats of words keep none of the white space between them; formats of characters one space for each line end
        kept = SPACE.sub(" ", document.text)
        if not holds.documents_without_words:
            kept = join_words([document.text[word.start : word.end] for word in word_spans(document)])
        lost[SPACES] += document.text != kept
    lost[WORD_EDGES] += not holds.words and document.words is not None
    lost[SENTENCES] += not holds.sentences and document.sentences is not None
    lost[GROUPS] += not holds.groups and document.group is not None
    lost[DATASETS] += not holds.datasets and document.dataset != "main"
    # 1 is also the score of what has none, but beside others it is one of them
    scored = not holds.scores and any(entity.score != 1.0 for entity in document.entities)
    lost[SCORES] += scored and len(document.entities)
    lost[IDS] += not holds.ids and document.id != made_id
    lost.update(of_document(key) for key in document.meta if key != SHAPE and not _keeps(holds.document_keys, key))
    for entity in document.entities:
        lost.update(of_entity(key) for key in entity.meta if not _keeps(holds.entity_keys, key))
    if target.changes is not None:
        lost.update(target.changes(document))
    return document, +lost


def _keeps(keys: Keys, key: str) -> bool:
    return keys == ALL or key in keys


def _on_words(document: Document, lost: Counter[str]) -> Document:
    """Widens entities to words; the words themselves are left for the writer to make where there are none."""
    ranges = WordRanges(word_spans(document))
    moved: list[Entity] = []
    for entity in document.entities:
        touched = [ranges.touched(span) for span in entity.spans]
        spans = joined([ranges.characters(span) for span in touched if span.width])
        if spans:
            moved.append(replace(entity, spans=spans))
        lost[WIDENED if spans else WORDLESS] += spans != entity.spans
    return _distinct(document, moved, lost) if lost[WIDENED] or lost[WORDLESS] else document


def _distinct(document: Document, entities: list[Entity], lost: Counter[str]) -> Document:
    kept = tuple(dict.fromkeys(entities))
    lost[MERGED] += len(entities) - len(kept)
    return replace(document, entities=kept)


def of_document(key: str) -> str:
    """The description of a lost value of documents."""
    return f"{key!r} of {{documents}}"


def of_entity(key: str) -> str:
    """The description of a lost value of entities."""
    return f"{key!r} of {{entities}}"


def changed(document: Document, after: Iterable[Document], holds: Holds) -> Counter[str]:
    """The values of kept keys that are different or gone once a document was written and read again."""
    back = next(iter(after), Document("", ""))
    lost = Counter(map(of_document, _differing(document.meta, back.meta, holds.document_keys)))
    places: defaultdict[tuple[str, tuple[Span, ...]], list[Entity]] = defaultdict(list)
    for entity in back.entities:
        places[entity.label, entity.spans].append(entity)
    for entity in document.entities:
        same_place = places[entity.label, entity.spans]
        meta = same_place.pop(0).meta if same_place else {}
        lost.update(map(of_entity, _differing(entity.meta, meta, holds.entity_keys)))
    return lost


def _differing(before: Mapping[str, Any], after: Mapping[str, Any], keys: Keys) -> list[str]:
    return [key for key, value in before.items() if _keeps(keys, key) and (key not in after or after[key] != value)]
