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

import wingspan.checkpoint as checkpoint
from wingspan.batch import CALIBRATED, Collate, Inputs, batches, entities_found, gold_spans, narrowed
from wingspan.checkpoint import model_card
from wingspan.corpora.segment import place, segment_all, segment_rows
from wingspan.decoding import Linkable, Overlap, entities_joined, join_nearest, resolve, tempered
from wingspan.evaluation.calibration import Calibration
from wingspan.files import staged_folder
from wingspan.labels import LabelSet
from wingspan.model import States, tensors
from wingspan.objectives import Thresholds, threshold_of
from wingspan.recipe import Learner, Recipe
from wingspan.text import Document, Entity, Sentence, Span, without_gold

POOL_SENTENCES = 1024  # sorted by length together; bounds memory on streams and long documents
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
        self.facts = dict(facts or {})  # facts about the training (scores, corpora, versions), shown on the model card
        self.calibration = calibration
        """The temperature of the scores and the thresholds of labels, if the model was calibrated."""
        self.collate = Collate(learner.model.encoder.tokenize, labels, {})
        self.device = usable_device(device)
        self.learner.to(self.device).eval()

    def __repr__(self) -> str:
        """What it is: recipe, labels, device, size."""
        labels = sorted({label for types in self.labels.types.values() for label in types})
        shown = ", ".join(labels[:6]) + (f" and {len(labels) - 6} more" if len(labels) > 6 else "")
        size = sum(parameter.numel() for parameter in self.learner.parameters())
        return f"<Recognizer {self.recipe.name}: {shown}; {size:,} parameters on {self.device}>"

    def __call__(self, texts: Text | Sequence[Text], **options: Any) -> Any:
        """The same as `predict`; of one text, its document."""
        found = self.predict(texts, **options)
        return found[0] if isinstance(texts, str | Document) else found

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
        path = folder / checkpoint.CALIBRATION
        calibration = Calibration.from_dict(checkpoint.read_object(path), path) if path.is_file() else None
        return cls(recipe, labels, learner, device=device, facts=facts, calibration=calibration)

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
        corpora uses the labels of its target, or of the corpus that `dataset` names.
        """
        if not isinstance(texts, str | Document | Iterable):
            raise TypeError(f"predict takes a text, a Document, or a list of them, not {type(texts).__name__}")
        single = isinstance(texts, str | Document) or (is_split_into_words and texts and isinstance(texts[0], str))
        items: Any = [texts] if single else texts
        options: Any = {"batch_size": batch_size, "threshold": threshold, "overlap": overlap, "dataset": dataset}
        return list(self.predict_stream(items, is_split_into_words=is_split_into_words, **options))

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
        """Like `predict` for any number of texts: one document after the other, in bounded memory."""
        if threshold is None:
            threshold = (self.calibration and self.calibration.thresholds) or self.recipe.thresholds
        chosen: Any = overlap or self.recipe.overlap
        if chosen not in get_args(Overlap):
            raise ValueError(f"overlap is {chosen!r}; use {', '.join(get_args(Overlap))}")
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}; give at least 1")
        known = sorted({label for labels in self.labels.types.values() for label in labels})
        unknown = sorted(set(threshold) - set(known)) if isinstance(threshold, Mapping) else []
        if unknown:
            raise ValueError(f"threshold for {unknown[0]!r}: no such label; the model has {', '.join(known)}")
        self.labels.asked_for(dataset)
        if isinstance(texts, str | bytes | Document):
            raise TypeError("predict_stream takes an iterable of texts; put the one text into a list")
        return self._stream(texts, batch_size, threshold, chosen, is_split_into_words, dataset)

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
        partial_type = UntypedDocument if typing else PartialDocument
        unfinished: deque[PartialDocument] = deque()
        unsegmented: deque[PartialDocument] = deque()  # the unfinished ones that may have more sentences
        pool: list[tuple[PartialDocument, Sentence]] = []
        words = 0

        def model_inputs() -> Iterator[Document]:
            for number, text in enumerate(texts):
                document = as_document(text, number, is_split_into_words)
                partial = partial_type(replace(document, dataset=dataset or document.dataset))
                unfinished.append(partial)
                unsegmented.append(partial)
                yield replace(partial.model_input, dataset=dataset or self.labels.target)

        measure = self.learner.model.encoder.tokenize.measure
        for sentence in segment_rows(model_inputs(), self.recipe.segments, measure, gold=typing):
            if sentence is not None:
                pool.append((unsegmented[0], sentence))
                unsegmented[0].open_sentences += 1
                words += len(sentence.words)
            else:
                unsegmented.popleft().segmented = True
            behind = len(unfinished) - len(unsegmented) >= POOL_SENTENCES  # documents without a word fill no pool
            if len(pool) >= POOL_SENTENCES or words >= POOL_WORDS or behind:
                self._predict_pool(pool, batch_size, threshold)
                pool, words = [], 0
            yield from finished(unfinished, overlap)
        self._predict_pool(pool, batch_size, threshold)
        yield from finished(unfinished, overlap)

    def segment(self, documents: Document | Iterable[Document], gold: bool = False) -> Iterator[Sentence]:
        """The sentences and windows the model sees, as in training; `gold` keeps them from cutting entities."""
        rows = [documents] if isinstance(documents, Document) else documents
        return segment_all(rows, self.recipe.segments, self.learner.model.encoder.tokenize.measure, gold)

    def _predict_pool(
        self, pool: list[tuple[PartialDocument, Sentence]], batch_size: int, threshold: Thresholds
    ) -> None:
        """Predicts pooled sentences batch by batch, longest first, and hands the entities to their documents."""
        measure = self.learner.model.encoder.tokenize.measure
        lengths = [sum(measure(sentence.words)) for _, sentence in pool]  # encoders take time per piece, not per word
        for batch in batches(lengths, batch_size, budget=self.recipe.train.budget):
            predicted = self.predict_batch([pool[at][1] for at in batch], threshold)
            for at, entities in zip(batch, predicted, strict=True):
                partial, sentence = pool[at]
                partial.add(sentence, entities)

    def predict_batch(self, sentences: Sequence[Sentence], threshold: Thresholds = None) -> list[list[Entity]]:
        """Entities in words, before overlaps are resolved, with uncalibrated scores; of given spans, every type."""
        return join_fragments(self.decode(sentences, threshold), self.recipe, self.labels, threshold)

    @torch.inference_mode()
    def decode(
        self, sentences: Sequence[Sentence], threshold: Thresholds = None, least_chance: float | None = None
    ) -> Decoded:
        """Entities in one piece, and fragments with at least this chance (by default the recipe's), not yet joined."""
        inputs = self.collate.inputs(sentences)
        inside = narrowed(inputs)
        temperature = 1.0 if self.calibration is None else self.calibration.temperature
        spans = None
        if self.recipe.protocol == "typing":  # the entities' spans, regardless of their labels
            some = [replace(s, entities=tuple(Entity("span", e.spans) for e in s.entities)) for s in sentences]
            spans = gold_spans(some, inside, LabelSet({"": ("span",)}))
        reader: Any = self.learner.objectives[self.recipe.reader]
        links: Any = self.learner.objectives["links"] if self.recipe.read_with == "links" else None
        on_device = tensors(inputs, self.device), tensors(spans, self.device)
        states = self.learner.model(*on_device, spans=reader.reads_spans, features=links is not None)
        options = {} if temperature == 1.0 else {"temperature": temperature}
        entities = entities_found(reader.decode(states, threshold, **options), inside, self.labels)
        if links is None:
            return Decoded(inside, entities, None, states)
        least = least_chances(self.recipe, self.labels, threshold, least_chance, temperature)
        fragments, left, right, distance = links.read_fragments(states, least)
        linkable = Linkable(fragments, left, right, distance, inside.core, temperature)
        return Decoded(inside, entities, linkable, states)


def usable_device(name: str | torch.device | None) -> torch.device:
    """The device of that name; without a name, a GPU if there is one."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise ValueError(f"no device {name!r}; use cpu, cuda or cuda:N") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {str(device)!r}: there are {torch.cuda.device_count()} GPUs here; use cpu")
    return device


load = Recognizer.from_pretrained  # `wingspan.load("runs/ncbi")`


# Joining fragments


class Decoded(NamedTuple):
    """The entities of a batch before fragments are joined."""

    inputs: Inputs  # arrays, narrowed
    entities: list[list[Entity]]
    linkable: Linkable | None
    states: States


def join_fragments(
    decoded: Decoded, recipe: Recipe, labels: LabelSet, thresholds: Thresholds = None
) -> list[list[Entity]]:
    """All entities: with links, those in one piece and the joined ones; by rule, neighbors become one."""
    if decoded.linkable is not None:
        least = least_chances(recipe, labels, thresholds, None, decoded.linkable.temperature)
        joined, capped = entities_joined(decoded.linkable, decoded.inputs, labels, least)
        if capped:
            warnings.warn("a sentence has more fragments than are joined; see docs/discontinuous.md", stacklevel=2)
        return [[*whole, *parts] for whole, parts in zip(decoded.entities, joined, strict=True)]
    gap = recipe.joining.most_between
    if not gap:
        return decoded.entities
    assert recipe.overlap != "auto", "a trained model's overlap is resolved"
    return [join_nearest(resolve(entities, recipe.overlap), gap) for entities in decoded.entities]


def least_chances(
    recipe: Recipe, labels: LabelSet, thresholds: Thresholds, default: float | None, temperature: float = 1.0
) -> Sequence[float]:
    """The least chance of fragments and links of each class: the threshold of its label, else the default.

    Without a default the recipe's `joining.bar` counts. Thresholds are about calibrated scores, so each is turned back
    into the chance that the temperature maps to it.
    """
    usual = recipe.joining.least_chance if default is None else default
    least = [threshold_of(name, thresholds) for name in labels.names()]
    if temperature != 1.0:  # 0 (always) and 1 (never) stay as they are
        least = [low if low in (None, 0, 1) else tempered(low, 1 / temperature) for low in least]
    return [usual if low is None else low for low in least]


# Documents whose sentences are not all predicted yet


@dataclass
class PartialDocument:
    """A document and the entities found in it so far."""

    document: Document
    entities: list[Entity] = field(default_factory=list)
    open_sentences: int = 0  # sentences in the pool that are not predicted yet
    segmented: bool = False  # whether all its sentences are in the pool or predicted

    @property
    def model_input(self) -> Document:
        """The document as the model may see it: without gold."""
        return without_gold(self.document)

    def add(self, sentence: Sentence, entities: Iterable[Entity]) -> None:
        """Adds the entities of one of its sentences."""
        self.entities.extend(place(sentence, entities))
        self.open_sentences -= 1

    def finish(self, overlap: Overlap) -> Document:
        """The document with its entities, once every sentence is predicted."""
        entities = tuple(map(calibrated, resolve(self.entities, overlap)))
        return replace(self.model_input, entities=entities)


class UntypedDocument(PartialDocument):
    """A document whose entities are given and get their types, each fragment by itself.

    The model sees spans only: in its input, the label of a span is the span's number. See: paper 001, section 3.4,
    which also types fragments one by one.
    """

    @property
    def model_input(self) -> Document:
        """The document with all fragments, each once, without their labels."""
        spans = enumerate(self._spans())
        return replace(self.document, entities=tuple(Entity(str(number), (span,)) for number, span in spans))

    def add(self, sentence: Sentence, entities: Iterable[Entity]) -> None:
        """Adds the possible types of one sentence's spans with their chances, at the boundaries that were given."""
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
    return replace(entity, score=entity.meta[CALIBRATED], meta=rest)


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
    odd = next((word for word in text if not isinstance(word, str) or not word), None)
    if odd is not None:
        raise ValueError(f"text {number} has the word {odd!r}; every word is a string that is not empty")
    return Document.from_words(str(number), tuple(text))
