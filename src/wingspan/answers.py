"""Predicted documents in the shapes that other programs read: plain data, ready for JSON. No torch.

Offsets are half-open and count code points. What a shape has no place for is said, never lost: an entity of several
fragments keeps its whole range and gets the key `fragments`, and `notes` say what a text format changed.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

from wingspan.corpora.formats import Format
from wingspan.corpora.formats.bioc import BIOC_JSON
from wingspan.corpora.formats.bioc import record_of_document as bioc_record
from wingspan.corpora.formats.brat import FORMAT as BRAT
from wingspan.corpora.formats.brat import lines_of as brat_lines
from wingspan.corpora.formats.conversion_loss import fit, loss_lines
from wingspan.corpora.formats.docbin import SPANS_KEY, tokens_of
from wingspan.corpora.formats.jsonl import record_of_prediction
from wingspan.corpora.formats.pubtator import FORMAT as PUBTATOR
from wingspan.corpora.formats.pubtator import lines_of as pubtator_lines
from wingspan.corpora.formats.records import Json
from wingspan.corpora.words import word_spans
from wingspan.text import Document, Entity, Span


def own(document: Document) -> list[Json]:
    """The entities as `wingspan predict` writes them: start, end, text, label, score, fragments."""
    entities: list[Json] = record_of_prediction(document)["entities"]
    return entities


def hugging_face(document: Document) -> list[Json]:
    """The entities as a Hugging Face pipeline gives them with `aggregation_strategy="simple"`."""
    return [
        {
            "entity_group": entity.label,
            "score": entity.score,
            "word": document.text_of(entity),
            "start": entity.start,
            "end": entity.end,
            **_fragments(entity),
        }
        for entity in document.entities
    ]


def gliner(document: Document) -> list[Json]:
    """The entities as GLiNER's `predict_entities` gives them."""
    return [
        {
            "start": entity.start,
            "end": entity.end,
            "text": document.text_of(entity),
            "label": entity.label,
            "score": entity.score,
            **_fragments(entity),
        }
        for entity in document.entities
    ]


def spacy(document: Document) -> Json:
    """What spaCy's `Doc.from_json` reads: all entities in `spans["sc"]`, and in `ents` too where none overlaps another.

    Tokens are the words of the text, cut where an entity begins or ends, since spaCy's spans are made of tokens.
    """
    text, entities = document.text, document.entities
    flat = all(one.end <= other.start for one, other in pairwise(entities))
    rows = [{"start": entity.start, "end": entity.end, "label": entity.label} for entity in entities]
    spans = [
        {**row, "kb_id": "", "score": entity.score, **_fragments(entity)}
        for row, entity in zip(rows, entities, strict=True)
    ]
    borders = {border for entity in entities for span in entity.spans for border in span}
    tokens = tokens_of(text, _cut(word_spans(document), borders))
    return {
        "text": text,
        "ents": rows if flat else [],
        "tokens": [{"id": number, "start": token.start, "end": token.end} for number, token in enumerate(tokens)],
        "spans": {SPANS_KEY: spans},
    }


def _cut(words: Iterable[Span], borders: set[int]) -> list[Span]:
    """The words in pieces, cut at borders that lie inside them."""
    pieces: list[Span] = []
    for word in words:
        inside = [place for place in range(word.start + 1, word.end) if place in borders] if borders else []
        pieces += [Span(*piece) for piece in pairwise([word.start, *inside, word.end])]
    return pieces


def brat(document: Document) -> Json:
    """The contents of brat's two files, `txt` and `ann`."""
    document, notes = _fitted(document, BRAT)
    return {"txt": document.text, "ann": "".join(f"{line}\n" for line in brat_lines(document)), **notes}


def pubtator(document: Document) -> Json:
    """The lines of a PubTator file."""
    document, notes = _fitted(document, PUBTATOR)
    return {"pubtator": "".join(f"{line}\n" for line in pubtator_lines(document)), **notes}


def bioc(document: Document) -> Json:
    """A document as a BioC JSON collection holds it."""
    document, notes = _fitted(document, BIOC_JSON)
    return {**bioc_record(document), **notes}


def _fitted(document: Document, target: Format) -> tuple[Document, Json]:
    """The document as a format can hold it, and `notes` of what that changed."""
    fitted, lost = fit(document, target)
    lines = loss_lines(lost, target.name)
    return fitted, {"notes": lines} if lines else {}


def _fragments(entity: Entity) -> Json:
    return {"fragments": [list(span) for span in entity.spans]} if entity.discontinuous else {}


def _listed(rows: Callable[[Document], list[Json]]) -> Callable[[Document], Json]:
    return lambda document: {"entities": rows(document)}


SHAPES: dict[str, Callable[[Document], Json]] = {
    "own": _listed(own),
    "hugging-face": _listed(hugging_face),
    "gliner": _listed(gliner),
    "spacy": spacy,
    "brat": brat,
    "pubtator": pubtator,
    "bioc": bioc,
}
"""A document's answer by the name of its shape."""
