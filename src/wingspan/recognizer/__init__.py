"""A trained model: texts in, documents with entities out."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self, get_args

import torch

import wingspan.checkpoint as checkpoint
from wingspan.batch import Collate, Found, Inputs, batches, entities_found, gold_spans, narrowed
from wingspan.checkpoint import model_card
from wingspan.corpora.segment import place, segment_all, segment_rows
from wingspan.decoding import Linkable, Overlap, entities_joined, join_nearest, resolve, tempered
from wingspan.evaluation.calibration import Calibration
from wingspan.files import staged_folder, stored_object
from wingspan.labels import LabelSet
from wingspan.model import Packed, States, fetch, tensors
from wingspan.objectives import Thresholds, threshold_of
from wingspan.recipe import Learner, Recipe
from wingspan.recognizer.documents import PartialDocument, Text, UntypedDocument, as_document, finished
from wingspan.recognizer.precision import Precision, computing_in, lower, number_type
from wingspan.text import Document, Entity, Sentence


class Pace(NamedTuple):
    """How much is read before it is predicted, and how much is computed at once."""

    sentences: int  # of a pool: sorted by length together; bounds memory on streams and long documents
    words: int  # of a pool
    units: int | None  # of a batch, padding included; None: the recipe's budget
    ahead: int  # batches whose answers are not waited for


ON_CPU = Pace(1024, 65_536, 768, 0)
"""The vectors of larger batches leave the processor's cache, and the system takes their memory back after each product:
with 32 sentences at once, a Transformer took a quarter more time on one thread."""
ON_GPU = Pace(8192, 524_288, None, 16)
"""A GPU computes by itself while the next sentences are read and earlier answers decoded. A thread for that would only
slow the launches down: each of them would wait for the interpreter."""


class Recognizer:
    """Finds entities with a trained model. Safe to share between threads: prediction changes nothing in it."""

    def __init__(
        self,
        recipe: Recipe,
        labels: LabelSet,
        learner: Learner,
        *,
        device: str | torch.device | None = None,
        precision: Precision | str = "auto",
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
        self.number_type = number_type(precision, self.device)
        self.learner.to(self.device).eval()
        lower(learner.model.encoder, precision, self.device)

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
        cls,
        name: str | Path,
        *,
        device: str | None = None,
        precision: Precision | str = "auto",
        parts: Sequence[str] = (),
        revision: str | None = None,
    ) -> Self:
        """A model folder, or a hub id. `parts` names modules of yours that hold parts of the recipe."""
        folder = Path(name)
        if not folder.is_dir():
            folder = checkpoint.download(str(name), revision)
        recipe, labels, learner = checkpoint.load(folder, parts)
        facts = stored_object(folder / "facts.json") if (folder / "facts.json").is_file() else {}
        path = folder / checkpoint.CALIBRATION
        calibration = Calibration.from_dict(stored_object(path), path) if path.is_file() else None
        return cls(recipe, labels, learner, device=device, precision=precision, facts=facts, calibration=calibration)

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
        batch_size: int | None = None,
        threshold: Thresholds = None,
        overlap: Overlap | None = None,
        is_split_into_words: bool = False,
        dataset: str | None = None,
    ) -> list[Document]:
        """Documents with entities, in the order of the input. A text may have any length.

        `is_split_into_words=True` takes lists of words; without it a list is a list of texts. A model of several
        corpora uses the labels of its target, or of the corpus that `dataset` names. `batch_size` is the most sentences
        in a batch, which on a CPU has at most 768 units, on a GPU as many as the recipe's budget allows.
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
        batch_size: int | None = None,
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
        if batch_size is not None and batch_size < 1:
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
        batch_size: int | None,
        threshold: Thresholds,
        overlap: Overlap,
        is_split_into_words: bool,
        dataset: str | None,
    ) -> Iterator[Document]:
        typing = self.recipe.protocol == "typing"
        partial_type = UntypedDocument if typing else PartialDocument
        pace = self._pace
        unfinished: deque[PartialDocument] = deque()
        unsegmented: deque[PartialDocument] = deque()  # the unfinished ones that may have more sentences
        asked: deque[Asked] = deque()  # batches that the device works on
        pool: list[Pooled] = []
        words = 0

        def model_inputs() -> Iterator[Document]:
            for number, text in enumerate(texts):
                document = as_document(text, number, is_split_into_words)
                partial = partial_type(of_dataset(document, dataset or document.dataset))
                unfinished.append(partial)
                unsegmented.append(partial)
                yield of_dataset(partial.model_input, dataset or self.labels.target)

        def predict_pool() -> None:
            with computing_in(self.number_type, self.device):
                for batch in self._batches(pool, batch_size):
                    asked.extend(self._ask(batch, threshold))
                    answer(pace.ahead)

        def answer(ahead: int) -> None:
            while len(asked) > ahead:
                self._answer(asked.popleft(), threshold)

        tables = self.learner.model.encoder.tokenize.table
        for sentence in segment_rows(model_inputs(), self.recipe.segments, tables, gold=typing):
            if sentence is not None:
                pool.append(Pooled(unsegmented[0], sentence))
                unsegmented[0].open_sentences += 1
                words += len(sentence.words)
            else:
                unsegmented.popleft().segmented = True
            behind = len(unfinished) - len(unsegmented) >= pace.sentences  # documents without a word fill no pool
            if len(pool) >= pace.sentences or words >= pace.words or behind:
                predict_pool()
                pool, words = [], 0
            if behind:
                answer(0)
            yield from finished(unfinished, overlap)
        predict_pool()
        answer(0)
        yield from finished(unfinished, overlap)

    def segment(self, documents: Document | Iterable[Document], gold: bool = False) -> Iterator[Sentence]:
        """The sentences and windows the model sees, as in training; `gold` keeps them from cutting entities."""
        rows = [documents] if isinstance(documents, Document) else documents
        return segment_all(rows, self.recipe.segments, self.learner.model.encoder.tokenize.table, gold)

    def _batches(self, pool: Sequence[Pooled], batch_size: int | None) -> Iterator[list[Pooled]]:
        """Sentences of similar length, longest first."""
        # encoders take time per piece, not per word
        lengths = self.learner.model.encoder.tokenize.lengths([pooled.sentence for pooled in pool]).tolist()
        budget = min(self.recipe.train.budget, self._pace.units or self.recipe.train.budget)
        for batch in batches(lengths, batch_size or len(pool), budget=budget):
            yield [pool[at] for at in batch]

    @property
    def _pace(self) -> Pace:
        return ON_GPU if self.device.type == "cuda" else ON_CPU

    def _ask(self, batch: Sequence[Pooled], threshold: Thresholds) -> list[Asked]:
        """Starts the prediction of a batch; one that does not fit into the device's memory is divided."""
        try:
            read, _ = self._read([pooled.sentence for pooled in batch], threshold, bounded=self._pace.ahead > 0)
            return [Asked(batch, fetch(read))]
        except torch.OutOfMemoryError:
            if len(batch) == 1:
                raise
        half = len(batch) // 2  # only here, since the exception has kept what was computed alive
        return self._ask(batch[:half], threshold) + self._ask(batch[half:], threshold)

    def _answer(self, asked: Asked, threshold: Thresholds) -> None:
        """Hands the entities of a batch to their documents."""
        sentences = [pooled.sentence for pooled in asked.batch]
        read = asked.answer().without_padding()
        if read is None:  # more was found than there was room for
            again, _ = self._read(sentences, threshold)
            read = fetch(again)()
        for pooled, entities in zip(asked.batch, self._entities(read, sentences, threshold), strict=True):
            pooled.document.add(pooled.sentence, entities)

    def _entities(self, read: Read, sentences: Sequence[Sentence], threshold: Thresholds) -> list[list[Entity]]:
        """The entities of each sentence, in characters of its document; the types of given spans in words."""
        typing = self.recipe.protocol == "typing"
        if typing or (read.linkable is None and self.recipe.joining.most_between):
            in_words = entities_found(read.found, read.inputs, self.labels)
            joined = join_fragments(Decoded(read.inputs, in_words, read.linkable), self.recipe, self.labels, threshold)
            return joined if typing else [[*place(*row)] for row in zip(sentences, joined, strict=True)]
        entities = entities_found(read.found, read.inputs, self.labels, sentences)
        if read.linkable is not None:
            joined = linked(read.linkable, read.inputs, self.recipe, self.labels, threshold)
            for own, sentence, others in zip(entities, sentences, joined, strict=True):
                own += place(sentence, others)
        return entities

    def predict_batch(self, sentences: Sequence[Sentence], threshold: Thresholds = None) -> list[list[Entity]]:
        """Entities in words, before overlaps are resolved, with uncalibrated scores; of given spans, every type."""
        return join_fragments(self.decode(sentences, threshold), self.recipe, self.labels, threshold)

    def decode(
        self, sentences: Sequence[Sentence], threshold: Thresholds = None, least_chance: float | None = None
    ) -> Decoded:
        """Entities in one piece, and fragments with at least this chance (by default the recipe's), not yet joined."""
        read, states = self._read(sentences, threshold, least_chance)
        inputs, found, linkable = fetch(read)()
        return Decoded(inputs, entities_found(found, inputs, self.labels), linkable, states)

    @torch.inference_mode()
    def _read(
        self,
        sentences: Sequence[Sentence],
        threshold: Thresholds,
        least_chance: float | None = None,
        *,
        bounded: bool = False,
    ) -> tuple[Read, States]:
        """Spans and fragments that the model finds, still on the device.

        `bounded` waits for nothing on a GPU: there are as many as units, padded or cut off.
        """
        inputs = self.collate.inputs(sentences)
        inside = narrowed(inputs)
        spans = None
        if self.recipe.protocol == "typing":  # the entities' spans, regardless of their labels
            some = [replace(s, entities=tuple(Entity("span", e.spans) for e in s.entities)) for s in sentences]
            spans = gold_spans(some, inside, LabelSet({"": ("span",)}))
        arrays = {"inputs": inputs, "spans": spans}
        on_device = tensors(Packed(arrays) if self.device.type == "cuda" else arrays, self.device)
        reader: Any = self.learner.objectives[self.recipe.reader]
        links: Any = self.learner.objectives["links"] if self.recipe.read_with == "links" else None
        temperature = 1.0 if self.calibration is None else self.calibration.temperature
        options: dict[str, Any] = {"temperature": temperature} if temperature != 1.0 else {}
        room = {"room": inside.unit_mask.size} if bounded else {}
        with computing_in(self.number_type, self.device):
            states = self.learner.model(*on_device.values(), spans=reader.reads_spans, features=links is not None)
            found = reader.decode(states, threshold, **options, **room)
            if links is None:
                return Read(inside, found, None), states
            least = least_chances(self.recipe, self.labels, threshold, least_chance, temperature)
            fragments, left, right, distance = links.read_fragments(states, least, **room)
        return Read(inside, found, Linkable(fragments, left, right, distance, inside.core, temperature)), states


class Pooled(NamedTuple):
    """A sentence that is not predicted yet, and its document."""

    document: PartialDocument
    sentence: Sentence


class Read(NamedTuple):
    """What a model finds in a batch: first on its device, then as arrays."""

    inputs: Inputs  # arrays, narrowed
    found: Found
    linkable: Linkable | None

    def without_padding(self) -> Read | None:
        """As arrays, only what was found; None if that is more than there was room for."""
        found = self.found.without_padding()
        linkable = None if self.linkable is None else self.linkable.without_padding()
        if found is None or (linkable is None and self.linkable is not None):
            return None
        return Read(self.inputs, found, linkable)


class Asked(NamedTuple):
    """A batch that the device works on."""

    batch: Sequence[Pooled]
    answer: Callable[[], Read]


def of_dataset(document: Document, dataset: str) -> Document:
    """The document as one of a corpus."""
    return document if document.dataset == dataset else replace(document, dataset=dataset)


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
    states: States | None = None


def join_fragments(
    decoded: Decoded, recipe: Recipe, labels: LabelSet, thresholds: Thresholds = None
) -> list[list[Entity]]:
    """All entities: with links, those in one piece and the joined ones; by rule, neighbors become one."""
    if decoded.linkable is not None:
        joined = linked(decoded.linkable, decoded.inputs, recipe, labels, thresholds)
        return [[*whole, *parts] for whole, parts in zip(decoded.entities, joined, strict=True)]
    gap = recipe.joining.most_between
    if not gap:
        return decoded.entities
    assert recipe.overlap != "auto", "a trained model's overlap is resolved"
    return [join_nearest(resolve(entities, recipe.overlap), gap) for entities in decoded.entities]


def linked(
    linkable: Linkable, inputs: Inputs, recipe: Recipe, labels: LabelSet, thresholds: Thresholds
) -> list[list[Entity]]:
    """The entities of several fragments, in words."""
    least = least_chances(recipe, labels, thresholds, None, linkable.temperature)
    joined, capped = entities_joined(linkable, inputs, labels, least)
    if capped:
        warnings.warn("a sentence has more fragments than are joined; see docs/discontinuous.md", stacklevel=2)
    return joined


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
