"""spaCy's DocBin (`.spacy`): entities in `doc.ents` and in `doc.spans["sc"]`. Needs the extra `spacy`.

Fields that a Doc has no place for (id, group, meta, words that are not tokens) go into `doc.user_data["wingspan"]`.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import ALL, Format, Holds, records
from wingspan.corpora.formats.conll import UNTYPED
from wingspan.corpora.formats.conversion_loss import of_entity
from wingspan.corpora.formats.records import SHAPE, Misfit, refuse_fragments
from wingspan.corpora.words import WordRanges, word_spans
from wingspan.files import CorpusError, Problems, atomic_path, numbered
from wingspan.text import Document, Entity, Span

SPANS_KEY = "sc"  # the span group that spaCy's span categorizer reads by default
_OURS = "wingspan"
_KEYS = frozenset({"id", "kb_id"})  # the keys of entities that a spaCy span has a place for, as strings
# raised by spaCy and its serializer on damaged files
_DAMAGED = (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, MemoryError, zlib.error)


def _spacy() -> Any:
    try:
        import spacy.tokens
        import spacy.util
        import spacy.vocab
    except ImportError:
        raise CorpusError(
            "spaCy is needed for .spacy files and is not installed; install it with: pip install 'wingspan-ner[spacy]'"
        ) from None
    return spacy


def read(path: Path, problems: Problems) -> Iterator[Document]:
    """The documents with their tokens as words (white space is no word), and their sentences where they are set."""
    spacy = _spacy()
    try:
        packed = spacy.tokens.DocBin().from_disk(path)
        docs = list(packed.get_docs(spacy.vocab.Vocab()))
    except _DAMAGED as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        problems.add(path, None, f"no DocBin that spaCy can read ({reason[:200]}); write the file again")
        return
    if others := sorted({key for doc in docs for key in doc.spans} - {SPANS_KEY}):
        problems.note(path, f"of the span groups only {SPANS_KEY!r} is read, not {', '.join(map(repr, others))}")
    for number, doc in enumerate(docs, 1):
        try:
            yield _document(doc, numbered(path, number))
        except (Misfit, *_DAMAGED) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            problems.add(path, None, f"document {number}: {reason[:200]}; write the file again")


def _document(doc: Any, name: str) -> Document:
    """A document. What this package stored beside a Doc is checked, because a file may have been changed since."""
    ours = doc.user_data.get(_OURS)
    kept = records.record_of(_lists(ours), _OURS) if ours is not None else {}
    text = records.text_of(doc.text, "the text")
    words: Any = [[token.idx, token.idx + len(token)] for token in doc if not token.text.isspace()]
    sentences: Any = None
    if doc.has_annotation("SENT_START"):
        sentences = [[sentence.start_char, sentence.end_char] for sentence in doc.sents]
    # an entity that is in both places is one; the group comes first because it may have scores
    group = doc.spans.get(SPANS_KEY, [])
    scores = list(getattr(group, "attrs", {}).get("scores", ()))
    entities: dict[Entity, Entity] = {}
    for at, span in enumerate([*group, *doc.ents]):
        score = float(scores[at]) if at < min(len(scores), len(group)) else 1.0
        ids = {key: value for key, value in (("id", span.id_), ("kb_id", span.kb_id_)) if value}
        if span.start_char < span.end_char:
            place = records.span_of(span.start_char, span.end_char, len(text))
            entity = Entity(records.label_of(span.label_ or UNTYPED), (place,), score, ids)
            entities.setdefault(entity, entity)
    words, sentences = kept.get("words", words), kept.get("sentences", sentences)
    return Document(
        records.identity(kept, "id", name),
        text,
        tuple(entities.values()),
        dataset=records.text_of(kept.get("dataset", "main"), "dataset"),
        words=None if words is None else records.ranges_of(words, "words", len(text), "character"),
        sentences=None if sentences is None else records.ranges_of(sentences, "sentences", len(text), "character"),
        group=records.identity(kept, "group", "") or None,
        meta=records.record_of(kept.get("meta", {}), "meta"),
    )


def _lists(value: Any) -> Any:
    """Lists for the tuples that spaCy's serializer makes of them."""
    if isinstance(value, dict):
        return {str(key): _lists(item) for key, item in value.items()}
    return [_lists(item) for item in value] if isinstance(value, list | tuple) else value


def write(documents: Iterable[Document], path: Path) -> None:
    """Writes every entity to `doc.spans["sc"]`, and to `doc.ents` too where none overlaps another."""
    spacy = _spacy()
    packed = spacy.tokens.DocBin(store_user_data=True)
    vocabulary = spacy.vocab.Vocab()
    for document in documents:
        packed.add(_doc(document, spacy, vocabulary))
    with atomic_path(path) as part:
        packed.to_disk(part)


def _doc(document: Document, spacy: Any, vocabulary: Any) -> Any:
    refuse_fragments(document, "spaCy")
    text, words = document.text, word_spans(document)
    tokens = list(tokens_of(text, words))
    starts = None
    if document.sentences is not None:
        firsts = {WordRanges(tokens).touched(sentence).start for sentence in document.sentences}
        starts = [at in firsts for at in range(len(tokens))]
    doc = spacy.tokens.Doc(
        vocabulary,
        words=[text[token.start : token.end] for token in tokens],
        spaces=[following.start > token.end for token, following in pairwise([*tokens, Span(len(text), len(text))])],
        sent_starts=starts,
    )
    group = []
    for entity in document.entities:
        ids = {"kb_id": str(entity.meta.get("kb_id", "")), "span_id": str(entity.meta.get("id", ""))}
        span = doc.char_span(entity.start, entity.end, label=entity.label, **ids)
        if span is None:
            raise CorpusError(
                f"document {document.id}: {entity.label!r} at {entity.start}-{entity.end} does not fall on word "
                "boundaries; widen such entities with `wingspan convert --lossy`"
            )
        group.append(span)
    doc.spans[SPANS_KEY] = group
    doc.spans[SPANS_KEY].attrs["scores"] = [entity.score for entity in document.entities]
    if len(spacy.util.filter_spans(group)) == len(group):
        doc.ents = group
    kept: dict[str, Any] = {"id": document.id, "group": document.group, "dataset": document.dataset}
    kept["meta"] = {key: value for key, value in document.meta.items() if key != SHAPE}
    native = _document(doc, document.id)
    for key in ("words", "sentences"):
        if (spans := getattr(document, key)) != getattr(native, key):
            kept[key] = None if spans is None else [list(span) for span in spans]
    doc.user_data[_OURS] = kept
    return doc


def tokens_of(text: str, words: Iterable[Span]) -> Iterator[Span]:
    """The words, and between them everything that a Doc cannot leave out: all but one space after a token."""
    at = 0
    for word in [*words, Span(len(text), len(text))]:
        if at and text[at : at + 1] == " " and at < word.start:
            at += 1
        if at < word.start:
            yield Span(at, word.start)
        if word.start < word.end:
            yield word
        at = word.end


def _changes(document: Document) -> Counter[str]:
    """Spans keep their two ids as strings, and an empty one is lost."""
    kept = [(entity.meta[key], key) for entity in document.entities for key in _KEYS & entity.meta.keys()]
    return Counter(of_entity(key) for value, key in kept if not isinstance(value, str) or not value)


_KEPT = Holds(words=True, sentences=True, groups=True, scores=True, document_keys=ALL, entity_keys=_KEYS)
FORMAT = Format("docbin", read, write, replace(_KEPT, discontinuous=False, documents_without_words=False), _changes)
