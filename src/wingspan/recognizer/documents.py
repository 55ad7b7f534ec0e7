"""Texts as documents, and documents whose sentences are not all predicted yet."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from wingspan.batch import CALIBRATED
from wingspan.decoding import Overlap, resolve
from wingspan.text import Document, Entity, Sentence, Span, without_gold

Text = str | Document | Sequence[str]


def as_document(text: Text, number: int, split: bool) -> Document:
    """A text, a document, or with `split` the words of a text, as a document."""
    if isinstance(text, Document):
        return text
    if isinstance(text, str):
        if split:
            raise ValueError(f"text {number} is a string, but is_split_into_words=True expects a list of words")
        return Document(str(number), text)
    if not isinstance(text, list | tuple):
        raise TypeError(f"text {number} is of type {type(text).__name__}; give a str, a Document, or a list of words")
    if not split:
        raise ValueError(f"text {number} is a list; pass is_split_into_words=True if these are the words of one text")
    if not all(text) or {*map(type, text)} != {str}:
        odd = next((word for word in text if not isinstance(word, str) or not word), None)
        if odd is not None:
            raise ValueError(f"text {number} has the word {odd!r}; every word is a string that is not empty")
    return Document.from_words(str(number), tuple(text))


@dataclass(slots=True)
class PartialDocument:
    """A document and the entities found in it so far."""

    document: Document  # as it was given
    model_input: Document = field(init=False)
    """The document as the model may see it."""
    entities: list[Entity] = field(default_factory=list)  # in code points
    settled: bool = True  # whether no clash between them is left to decide
    closed: bool = True  # whether no entity of its last sentence so far can reach into the next
    open_sentences: int = 0  # sentences in the pool that are not predicted yet
    segmented: bool = False  # whether all its sentences are in the pool or predicted

    def __post_init__(self) -> None:
        self.model_input = without_gold(self.document)

    def await_sentence(self, sentence: Sentence) -> bool:
        """Counts a sentence, the next in order; says whether its entities can meet none of the others'."""
        self.open_sentences += 1
        before, self.closed = self.closed, sentence.core.end == sentence.reach.end
        return before and sentence.core == sentence.reach

    def add(self, sentence: Sentence, entities: list[Entity], settled: bool) -> None:
        """Adds the entities of one of its sentences; `settled` if no clash between them is left to decide."""
        self.entities += entities
        self.settled &= settled
        self.open_sentences -= 1

    def finish(self, overlap: Overlap) -> Document:
        """The document with its entities, once every sentence is predicted."""
        plain = self.model_input
        entities = tuple(self.entities if self.settled else map(calibrated, resolve(self.entities, overlap)))
        # `replace` takes as long as all the rest
        return Document(
            plain.id, plain.text, entities, plain.dataset, plain.words, plain.sentences, plain.group, plain.meta
        )


class UntypedDocument(PartialDocument):
    """A document whose entities are given and get their types, each fragment by itself.

    The model sees spans only: in its input, the label of a span is the span's number. See: SNG, section 3.4,
    which also types fragments one by one.
    """

    def __post_init__(self) -> None:
        """The model sees all fragments, each once, without their labels."""
        spans = enumerate(self._spans())
        entities = tuple(Entity(str(number), (span,)) for number, span in spans)
        self.model_input = replace(self.document, entities=entities)

    def add(self, sentence: Sentence, entities: list[Entity], settled: bool) -> None:
        """Adds the possible types of one sentence's spans, in words, with their chances, at the boundaries given."""
        spans = self._spans()
        numbers = defaultdict(list)  # several spans may have become one, on word boundaries
        for entity in sentence.entities:
            numbers[entity.spans].append(int(entity.label))
        for typed in entities:
            self.entities += [replace(typed, spans=(spans[number],)) for number in numbers[typed.spans]]
        self.open_sentences -= 1

    def finish(self, overlap: Overlap) -> Document:
        """Every entity with its likeliest type; n entities of the same fragments get the n likeliest."""
        types: dict[Span, dict[str, Entity]] = defaultdict(dict)
        for entity in self.entities:
            types[entity.spans[0]][entity.label] = entity
        same: dict[tuple[Span, ...], list[Entity]] = defaultdict(list)
        for entity in self.document.entities:
            same[entity.spans].append(entity)
        typed = [
            replace(entity, label=label, score=score)
            for spans, entities in same.items()
            for entity, (label, score) in zip(entities, likeliest([types[span] for span in spans]), strict=False)
        ]
        return replace(self.document, entities=tuple(typed))

    def _spans(self) -> list[Span]:
        return sorted({span for entity in self.document.entities for span in entity.spans})


def likeliest(fragments: Sequence[dict[str, Entity]]) -> list[tuple[str, float]]:
    """Labels that all fragments can have, best product of chances first; the score is the least of the chances."""
    labels = [label for label in fragments[0] if all(label in types for types in fragments)]
    log_chance = {label: sum(math.log(max(types[label].score, 1e-300)) for types in fragments) for label in labels}
    return [
        (label, min(calibrated(types[label]).score for types in fragments))
        for label in sorted(labels, key=lambda label: (-log_chance[label], label))
    ]


def finished(unfinished: deque[PartialDocument], overlap: Overlap) -> Iterator[Document]:
    """The documents at the front of the queue that have all their entities."""
    while unfinished and unfinished[0].segmented and not unfinished[0].open_sentences:
        yield unfinished.popleft().finish(overlap)


def calibrated(entity: Entity) -> Entity:
    """The entity with the score that users see."""
    if CALIBRATED not in entity.meta:
        return entity
    rest = {key: value for key, value in entity.meta.items() if key != CALIBRATED}
    return Entity(entity.label, entity.spans, entity.meta[CALIBRATED], rest)
