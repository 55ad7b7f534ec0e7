"""Documents some of whose sentences may still be waiting: what the model is asked about them, and its answers."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from wingspan.batch import CALIBRATED, Gold, Inputs, gold_spans
from wingspan.corpora.gold import without_gold
from wingspan.corpora.segment import place
from wingspan.decoding import Overlap, resolve
from wingspan.labels import LabelSet
from wingspan.text import Document, Entity, Sentence, Span


@dataclass
class Pending:
    """A document whose entities are to be found."""

    given: Document
    entities: list[Entity] = field(default_factory=list)
    waiting: int = 0
    complete: bool = False

    @property
    def asked(self) -> Document:
        """What the model may see: no gold."""
        return without_gold(self.given)

    def take(self, sentence: Sentence, found: Iterable[Entity]) -> None:
        """What was found in one of its sentences."""
        self.entities.extend(place(sentence, found))
        self.waiting -= 1

    def finish(self, overlap: Overlap) -> Document:
        """The document with its entities, once nothing is waiting."""
        entities = tuple(map(calibrated, resolve(self.entities, overlap)))
        return replace(without_gold(self.given), entities=entities)


class Untyped(Pending):
    """A document whose entities are given and get their types. Each fragment is asked about by itself.

    The model sees spans only: in what it is asked, the label of a span is its number. See: paper 001, section 3.4: it,
    too, types fragments one by one.
    """

    @property
    def asked(self) -> Document:
        """All fragments, each once, without their labels."""
        spans = enumerate(self._spans())
        return replace(self.given, entities=tuple(Entity(str(number), (span,)) for number, span in spans))

    def take(self, sentence: Sentence, found: Iterable[Entity]) -> None:
        """The types that spans of one sentence may have, with their chances: back to the borders that were given."""
        spans = self._spans()
        numbers = defaultdict(list)  # several spans may have become one, on word borders
        for entity in sentence.entities:
            numbers[entity.spans].append(int(entity.label))
        for answer in found:
            self.entities += [replace(answer, spans=(spans[number],)) for number in numbers[answer.spans]]
        self.waiting -= 1

    def finish(self, overlap: Overlap) -> Document:
        """Every entity with its likeliest type; where n have the same fragments, with the n likeliest."""
        answers: dict[Span, dict[str, Entity]] = defaultdict(dict)
        for entity in self.entities:
            answers[entity.spans[0]][entity.label] = entity
        same: dict[tuple[Span, ...], list[Entity]] = defaultdict(list)
        for entity in self.given.entities:
            same[entity.spans].append(entity)
        typed = [
            replace(entity, label=label, score=score)
            for spans, entities in same.items()
            for entity, (label, score) in zip(entities, likeliest([answers[span] for span in spans]), strict=False)
        ]
        return replace(self.given, entities=tuple(typed))

    def _spans(self) -> list[Span]:
        return sorted({span for entity in self.given.entities for span in entity.spans})


def likeliest(fragments: Sequence[dict[str, Entity]]) -> list[tuple[str, float]]:
    """Labels that all fragments can have, best first: by the product of the chances; the score is the least of them."""
    labels = [label for label in fragments[0] if all(label in answers for answers in fragments)]
    surety = {label: sum(math.log(max(one[label].score, 1e-300)) for one in fragments) for label in labels}
    return [
        (label, min(calibrated(answers[label]).score for answers in fragments))
        for label in sorted(labels, key=lambda label: (-surety[label], label))
    ]


ANY = LabelSet({"": ("span",)})


def given_spans(sentences: Sequence[Sentence], inputs: Inputs) -> Gold:
    """Where the entities of sentences are, in units, whatever their labels."""
    spans = [replace(s, entities=tuple(Entity("span", entity.spans) for entity in s.entities)) for s in sentences]
    return gold_spans(spans, inputs, ANY)


def finished(waiting: deque[Pending], overlap: Overlap) -> Iterator[Document]:
    """The documents at the front of the queue that have all their entities."""
    while waiting and waiting[0].complete and not waiting[0].waiting:
        yield waiting.popleft().finish(overlap)


def calibrated(entity: Entity) -> Entity:
    """The entity with the score that users see."""
    if CALIBRATED not in entity.meta:
        return entity
    rest = {key: value for key, value in entity.meta.items() if key != CALIBRATED}
    return replace(entity, score=entity.meta[CALIBRATED], meta=rest)
