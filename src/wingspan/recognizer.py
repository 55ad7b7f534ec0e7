"""A trained model: texts in, documents with entities out."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Self, get_args

import torch

from wingspan import checkpoint
from wingspan.batch import CALIBRATED, Collate, Gold, Inputs, batches, entities_found, gold_spans, narrowed
from wingspan.checkpoint import model_card
from wingspan.corpora.segment import place, segment_all, segment_rows
from wingspan.decoding import Linkable, Overlap, entities_joined, join_nearest, resolve, tempered
from wingspan.evaluation.calibration import Calibration
from wingspan.files import staged_folder
from wingspan.labels import LabelSet
from wingspan.model import tensors
from wingspan.objectives import Thresholds, threshold_of
from wingspan.recipe import Learner, Recipe
from wingspan.text import Document, Entity, Sentence, Span, without_gold

POOL_SENTENCES = 1024  # sorted by length together; also what bounds memory on streams and long documents
POOL_WORDS = 65_536


class Recognizer:
    """Finds entities with a trained model. Safe to share between threads: prediction changes nothing in it."""

    def __init__(
        self,
        recipe: Recipe,
        labels: LabelSet,
        learner: Learner,
        *,
        device: str | torch.device | None = None,
        facts: Mapping[str, Any] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.recipe = recipe
        self.labels = labels
        self.learner = learner
        self.facts = dict(facts or {})
        """What is known about the training: scores, corpora, versions; shown on the model card."""
        self.calibration = calibration
        """The temperature of its scores and thresholds of labels, where it was calibrated."""
        self.collate = Collate(learner.model.encoder.tokenize, labels, {})
        self.device = usable_device(device)
        self.learner.to(self.device).eval()

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, device: str | None = None, parts: Sequence[str] = (), revision: str | None = None
    ) -> Self:
        """A model folder, or a hub id. `parts` names modules of yours that hold parts of the recipe."""
        folder = Path(name)
        if not folder.is_dir():
            folder = checkpoint.download(str(name), revision)
        recipe, labels, learner = checkpoint.load(folder, parts)
        facts = checkpoint.read_object(folder / "facts.json") if (folder / "facts.json").is_file() else {}
        return cls(recipe, labels, learner, device=device, facts=facts, calibration=checkpoint.read_calibration(folder))

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes the model folder: safetensors and JSON, nothing that has to be unpickled."""
        (Path(folder) / checkpoint.CALIBRATION).unlink(missing_ok=True)  # that of another model must not outlive it
        with staged_folder(Path(folder), last="recipe.json") as new:  # the file that makes it a model comes last
            checkpoint.save(new, self.recipe, self.labels, self.learner)
            checkpoint.write_json(new / "facts.json", self.facts)
            if self.calibration is not None:
                checkpoint.write_json(new / checkpoint.CALIBRATION, self.calibration.to_dict())
            card = model_card(self.recipe, self.labels, self.facts, self.calibration)
            checkpoint.write_text(new / "README.md", card)

    def push_to_hub(self, repo_id: str, *, private: bool = False) -> str:
        """Uploads the model folder to the Hugging Face hub; returns its address."""
        from tempfile import TemporaryDirectory

        from huggingface_hub import HfApi

        api = HfApi()
        api.create_repo(repo_id, private=private, exist_ok=True)
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder)
            return str(api.upload_folder(repo_id=repo_id, folder_path=folder))

    def predict(
        self,
        texts: Text | Sequence[Text],
        *,
        batch_size: int = 32,
        threshold: Thresholds = None,
        overlap: Overlap | None = None,
        is_split_into_words: bool = False,
        dataset: str | None = None,
    ) -> list[Document]:
        """Documents with entities, in the order of the input. A text may have any length.

        `is_split_into_words=True` takes lists of words; without it a list is a list of texts. A model of several
        corpora answers in the labels of its target, or in those of the corpus that `dataset` names.
        """
        single = isinstance(texts, str | Document) or (is_split_into_words and texts and isinstance(texts[0], str))
        items: Any = [texts] if single else texts
        stream = self.predict_stream(
            items,
            batch_size=batch_size,
            threshold=threshold,
            overlap=overlap,
            is_split_into_words=is_split_into_words,
            dataset=dataset,
        )
        return list(stream)

    def predict_stream(
        self,
        texts: Iterable[Text],
        *,
        batch_size: int = 32,
        threshold: Thresholds = None,
        overlap: Overlap | None = None,
        is_split_into_words: bool = False,
        dataset: str | None = None,
    ) -> Iterator[Document]:
        """The same for any number of texts: one after the other, in bounded memory."""
        if threshold is None:
            threshold = (self.calibration and self.calibration.thresholds) or self.recipe.thresholds
        chosen: Any = overlap or self.recipe.overlap
        self._check(threshold, chosen, batch_size, dataset)
        if isinstance(texts, str | bytes | Document):
            raise TypeError("predict_stream takes an iterable of texts; put the one text into a list")
        return self._stream(texts, batch_size, threshold, chosen, is_split_into_words, dataset)

    def _check(self, threshold: Thresholds, overlap: str, batch_size: int, dataset: str | None) -> None:
        """Says at once what cannot be meant."""
        if overlap not in get_args(Overlap):
            raise ValueError(f"overlap is {overlap!r}; use {', '.join(get_args(Overlap))}")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; give at least 1")
        known = sorted({label for labels in self.labels.types.values() for label in labels})
        unknown = sorted(set(threshold) - set(known)) if isinstance(threshold, Mapping) else []
        if unknown:
            raise ValueError(f"threshold for {unknown[0]!r}: no such label; the model has {', '.join(known)}")
        self.labels.asked_for(dataset)

    def _stream(
        self,
        texts: Iterable[Text],
        batch_size: int,
        threshold: Thresholds,
        overlap: Overlap,
        is_split_into_words: bool,
        dataset: str | None,
    ) -> Iterator[Document]:
        typing = self.recipe.protocol == "typing"
        kind = Untyped if typing else Pending
        waiting: deque[Pending] = deque()
        unread: deque[Pending] = deque()  # those of them that may have more sentences
        pool: list[tuple[Pending, Sentence]] = []
        words = 0

        def documents() -> Iterator[Document]:
            for number, text in enumerate(texts):
                document = as_document(text, number, is_split_into_words)
                pending = kind(replace(document, dataset=dataset or document.dataset))
                waiting.append(pending)
                unread.append(pending)
                yield replace(pending.asked, dataset=dataset or self.labels.target)

        measure = self.learner.model.encoder.tokenize.measure
        for sentence in segment_rows(documents(), self.recipe.segments, measure, gold=typing):
            if sentence is not None:
                pool.append((unread[0], sentence))
                unread[0].waiting += 1
                words += len(sentence.words)
            else:
                unread.popleft().complete = True
            behind = len(waiting) - len(unread) >= POOL_SENTENCES  # documents without any word fill no pool
            if len(pool) >= POOL_SENTENCES or words >= POOL_WORDS or behind:
                self._run(pool, batch_size, threshold)
                pool, words = [], 0
            yield from finished(waiting, overlap)
        self._run(pool, batch_size, threshold)
        yield from finished(waiting, overlap)

    def segment(self, documents: Document | Iterable[Document], gold: bool = False) -> Iterator[Sentence]:
        """The sentences and windows the model sees, as in training; `gold` keeps them from cutting entities."""
        rows = [documents] if isinstance(documents, Document) else documents
        return segment_all(rows, self.recipe.segments, self.learner.model.encoder.tokenize.measure, gold)

    def _run(self, pool: list[tuple[Pending, Sentence]], batch_size: int, threshold: Thresholds) -> None:
        """Finds the entities of pooled sentences, batch by batch, longest first."""
        measure = self.learner.model.encoder.tokenize.measure
        lengths = [sum(measure(sentence.words)) for _, sentence in pool]  # the encoder's time goes by pieces, not words
        for batch in batches(lengths, batch_size, budget=self.recipe.train.budget):
            found = self.read([pool[at][1] for at in batch], threshold)
            for at, entities in zip(batch, found, strict=True):
                pending, sentence = pool[at]
                pending.take(sentence, entities)

    def read(self, sentences: Sequence[Sentence], threshold: Thresholds = None) -> list[list[Entity]]:
        """Entities in words, before any overlap is resolved; scores are those that decide it, not yet calibrated.

        A model that types given spans says for the spans of each sentence how likely each type is.
        """
        return join_fragments(self.reading(sentences, threshold), self.recipe, self.labels, threshold)

    @torch.inference_mode()
    def reading(self, sentences: Sequence[Sentence], threshold: Thresholds = None, bar: float | None = None) -> Decoded:
        """What is read before fragments are joined; `bar` is the least chance of fragments, where not the recipe's."""
        inputs = self.collate.inputs(sentences)
        temperature = 1.0 if self.calibration is None else self.calibration.temperature
        model = (self.recipe, self.labels, self.learner)
        spans = given_spans(sentences, narrowed(inputs)) if self.recipe.protocol == "typing" else None
        return decode_batch(*model, inputs, self.device, threshold, temperature, bar, spans)


def usable_device(name: str | torch.device | None) -> torch.device:
    """The device of that name; a GPU where there is one and nothing was asked for."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise ValueError(f"no device {name!r}; use cpu, cuda or cuda:N") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {str(device)!r}: there are {torch.cuda.device_count()} GPUs here; use cpu")
    return device


def load(
    name: str | Path, *, device: str | None = None, parts: Sequence[str] = (), revision: str | None = None
) -> Recognizer:
    """Loads a model: `wingspan.load("runs/ncbi")`."""
    return Recognizer.from_pretrained(name, device=device, parts=parts, revision=revision)


# --- From a batch of sentences to entities in words: read in one piece, and joined of fragments where the recipe
# does.


class Decoded(NamedTuple):
    """What was read of a batch, before anything is joined."""

    inputs: Inputs  # arrays, narrowed
    entities: list[list[Entity]]
    linkable: Linkable | None


def decode_batch(
    recipe: Recipe,
    labels: LabelSet,
    learner: Learner,
    inputs: Inputs,
    device: torch.device,
    thresholds: Thresholds = None,
    temperature: float = 1.0,
    bar: float | None = None,
    spans: Gold | None = None,
) -> Decoded:
    """Entities in one piece, and fragments with a chance of at least the `bar`, by default the recipe's.

    `spans` are those that a model is to type, where it finds none itself.
    """
    reader: Any = learner.objectives[recipe.reader]
    links: Any = learner.objectives["links"] if recipe.read_with == "links" else None
    on_device = tensors(inputs, device), tensors(spans, device)
    states = learner.model(*on_device, spans=reader.reads_spans, features=links is not None)
    given = {} if temperature == 1.0 else {"temperature": temperature}
    inside = narrowed(inputs)
    entities = entities_found(reader.read(states, thresholds, **given), inside, labels)
    if links is None:
        return Decoded(inside, entities, None)
    found, left, right, distance = links.found(states, bars_of(recipe, labels, thresholds, bar, temperature))
    return Decoded(inside, entities, Linkable(found, left, right, distance, inside.core, temperature))


def join_fragments(
    reading: Decoded, recipe: Recipe, labels: LabelSet, thresholds: Thresholds = None, bar: float | None = None
) -> list[list[Entity]]:
    """All entities: with links those in one piece and those joined, by rule what stands close together is one."""
    if reading.linkable is not None:
        bars = bars_of(recipe, labels, thresholds, bar, reading.linkable.temperature)
        more, capped = entities_joined(reading.linkable, reading.inputs, labels, bars)
        if capped:
            warnings.warn("a sentence has more fragments than are joined; see docs/discontinuous.md", stacklevel=2)
        return [[*whole, *parts] for whole, parts in zip(reading.entities, more, strict=True)]
    gap = recipe.joining.most_between
    if not gap:
        return reading.entities
    assert recipe.overlap != "auto", "a trained model's overlap is resolved"
    return [join_nearest(resolve(entities, recipe.overlap), gap) for entities in reading.entities]


def bars_of(
    recipe: Recipe, labels: LabelSet, thresholds: Thresholds, bar: float | None, temperature: float = 1.0
) -> Sequence[float]:
    """The least chance of fragments and links of each class: the threshold of its label, else the recipe's bar.

    Thresholds are about scores that users see: the chance that the temperature makes such a score of is the bar.
    """
    usual = recipe.joining.least_chance if bar is None else bar
    asked = [threshold_of(name, thresholds) for name in labels.names()]
    if temperature != 1.0:  # never and always stay what they are
        asked = [low if low in (None, 0, 1) else tempered(low, 1 / temperature) for low in asked]
    return [usual if low is None else low for low in asked]


# --- Documents some of whose sentences may still be waiting: what the model is asked about them, and its answers.


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


# --- Whatever a user may hand in to be predicted, as a document.


Text = str | Document | Sequence[str]


def as_document(text: Text, number: int, split: bool) -> Document:
    """A text, a document, or the words of a text where that was said; anything else is refused."""
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
    odd = next((word for word in text if not isinstance(word, str) or not word), None)
    if odd is not None:
        raise ValueError(f"text {number} has the word {odd!r}; every word is a string that is not empty")
    return Document.from_words(str(number), tuple(text))
