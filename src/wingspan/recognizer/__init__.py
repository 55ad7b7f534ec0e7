"""A trained model: texts in, documents with entities out. Torch is imported for models that need it only."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, get_args

import numpy as np

from wingspan.answers import hugging_face
from wingspan.batch import Collate, Inputs, batches, entities_found, gold_spans, narrowed
from wingspan.box import located
from wingspan.corpora.segment import place, segment_all, segment_rows
from wingspan.decoding import Linkable, Overlap, entities_joined, join_nearest, resolve, tempered, without_clashes
from wingspan.evaluation.calibration import Calibration
from wingspan.files import staged_folder
from wingspan.labels import LabelSet, Thresholds, threshold_of
from wingspan.model_folder import CALIBRATION, FACTS, calibration_of, facts_of
from wingspan.recognizer.documents import PartialDocument, Text, UntypedDocument, as_document, finished
from wingspan.recognizer.engine import Answer, Engine, Question, Read, unsearched
from wingspan.recognizer.exported import GRAPH, open_exported
from wingspan.recognizer.tables import entity_table
from wingspan.text import Document, Entity, Sentence

if TYPE_CHECKING:
    import torch

    from wingspan.model import States
    from wingspan.recipe import Learner, Recipe


class Pace(NamedTuple):
    """How much is read before it is predicted, and how much is computed at once."""

    sentences: int  # of a pool: sorted by length together; bounds memory on streams and long documents
    words: int  # of a pool
    units: int | None  # of a batch of a Transformer, padding included; None: the recipe's budget
    ahead: int  # batches whose answers are not waited for


ON_CPU = Pace(1024, 65_536, 768, 0)
"""The vectors of larger batches leave the processor's cache, and the system takes their memory back after each product:
with 32 sentences at once, a Transformer took a quarter more time on one thread."""
ON_GPU = Pace(8192, 524_288, None, 16)
"""A GPU computes by itself while the next sentences are read and earlier answers decoded. A thread for that would only
slow the launches down: each of them would wait for the interpreter."""

AT_ONCE = 1024  # documents that are taken from a stream before others get their turn


class Recognizer:
    """Finds entities with a trained model. Safe to share between threads: prediction changes nothing in it."""

    def __init__(
        self,
        recipe: Recipe,
        labels: LabelSet,
        learner: Learner | Engine,
        *,
        device: str | torch.device | None = None,
        precision: str = "auto",
        facts: Mapping[str, Any] | None = None,
        calibration: Calibration | None = None,
    ) -> None:
        self.recipe = recipe
        self.labels = labels
        self.engine = learner if isinstance(learner, Engine) else on_device(recipe, learner, device, precision)
        self.facts = dict(facts or {})  # facts about the training (scores, corpora, versions), shown on the model card
        self.calibration = calibration
        """The temperature of the scores and the thresholds of labels, if the model was calibrated."""
        self.collate = Collate(self.engine.tokenize, labels, {})

    @property
    def learner(self) -> Learner:
        """The weights; an exported model has none that can be trained or looked into."""
        return self.engine.learner

    @property
    def device(self) -> Any:
        """Where it computes."""
        return self.engine.device

    def __repr__(self) -> str:
        """What it is: recipe, labels, device, size."""
        labels = sorted({label for types in self.labels.types.values() for label in types})
        shown = ", ".join(labels[:6]) + (f" and {len(labels) - 6} more" if len(labels) > 6 else "")
        return f"<Recognizer {self.recipe.name}: {shown}; {self.engine.parameters:,} parameters on {self.device}>"

    def __call__(self, texts: Text | Sequence[Text], **options: Any) -> Any:
        """The same as `predict`; of one text, its document."""
        found = self.predict(texts, **options)
        return found[0] if isinstance(texts, str | Document) else found

    @classmethod
    def from_pretrained(
        cls,
        name: str | Path | None = None,
        *,
        device: str | None = None,
        precision: str = "auto",
        parts: Sequence[str] = (),
        revision: str | None = None,
        to_train: bool = False,
    ) -> Self:
        """A model folder, an exported one, a hub id, or `wingspan-bio-small`; without a name, that one.

        `parts` names modules of yours with parts of the recipe; `to_train` loads one whose modules are trained on.
        """
        folder = located(name)
        if (folder / GRAPH).exists():
            recipe, labels, engine, facts, calibration = open_exported(folder, device, precision)
            return cls(recipe, labels, engine, facts=facts, calibration=calibration)
        with unsearched(lasting=True):  # the search took a quarter of the time, most of which goes into imports
            import wingspan.checkpoint as checkpoint
        if not folder.is_dir():
            folder = checkpoint.download(str(name), revision)
        with unsearched(lasting=True):
            recipe, labels, learner = checkpoint.load(folder, parts, to_train=to_train)
            facts, calibration = facts_of(folder), calibration_of(folder)
            own: dict[str, Any] = {"facts": facts, "calibration": calibration}
            return cls(recipe, labels, learner, device=device, precision=precision, **own)

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes the model folder: safetensors and JSON, nothing that has to be unpickled."""
        import wingspan.checkpoint as checkpoint

        self.engine.learner  # noqa: B018  refuses an exported model before anything is removed
        (Path(folder) / CALIBRATION).unlink(missing_ok=True)  # that of another model must not outlive it
        with staged_folder(Path(folder), last="recipe.json") as new:  # the file that makes it a model comes last
            checkpoint.save(new, self.recipe, self.labels, self.learner)
            checkpoint.write_json(new / FACTS, self.facts)
            if self.calibration is not None:
                checkpoint.write_json(new / CALIBRATION, self.calibration.to_dict())
            card = checkpoint.model_card(self.recipe, self.labels, self.facts, self.calibration)
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
        in a batch, which on a CPU has at most 768 units, or 2,304 hashed ones, on a GPU as many as the recipe's budget
        allows.
        """
        if not isinstance(texts, str | Document | Iterable):
            raise TypeError(f"predict takes a text, a Document, or a list of them, not {type(texts).__name__}")
        single = isinstance(texts, str | Document) or (is_split_into_words and texts and isinstance(texts[0], str))
        items: Any = [texts] if single else texts
        options: Any = {"batch_size": batch_size, "threshold": threshold, "overlap": overlap, "dataset": dataset}
        stream = self.predict_stream(items, is_split_into_words=is_split_into_words, **options)
        found: list[Document] = []
        while True:
            with self.engine.working():
                more = list(islice(stream, AT_ONCE))
            if not more:
                return found
            found += more

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

    def pipeline(self, texts: str | Sequence[str], **options: Any) -> list[Any]:
        """Entities as a Hugging Face pipeline gives them with `aggregation_strategy="simple"`: a list for each text.

        Of one text, its list. The options are those of `predict`.
        """
        found = [hugging_face(document) for document in self.predict(texts, **options)]
        return found[0] if isinstance(texts, str | Document) else found

    def predict_table(self, frame: Any, text: str = "text", *, keep: Sequence[str] = (), **options: Any) -> Any:
        """One row for each entity of a table of pandas, Polars or pyarrow, as a table of the same library.

        `text` is the column with the texts, and the columns in `keep` are repeated. Of pandas the index is that of the
        text's row; other tables get a column `row`. A row without a text has no entity. The options are those of
        `predict`.
        """
        return entity_table(frame, text, keep, lambda documents: self.predict_stream(documents, **options))

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

        def predict_pool(ahead: int) -> None:
            with self.engine.working():
                for batch in self._batches(pool, batch_size):
                    asked.extend(self._ask(batch, threshold))
                    answer(pace.ahead)
                answer(ahead)

        def answer(ahead: int) -> None:
            while len(asked) > ahead:
                self._answer(asked.popleft(), threshold, overlap)

        tables = self.engine.tokenize.table
        for sentence in segment_rows(model_inputs(), self.recipe.segments, tables, gold=typing):
            if sentence is not None:
                pool.append(Pooled(unsegmented[0], sentence, unsegmented[0].await_sentence(sentence)))
                words += len(sentence.words)
            else:
                unsegmented.popleft().segmented = True
            behind = len(unfinished) - len(unsegmented) >= pace.sentences  # documents without a word fill no pool
            if len(pool) >= pace.sentences or words >= pace.words or behind:
                predict_pool(0 if behind else pace.ahead)
                pool, words = [], 0
            yield from finished(unfinished, overlap)
        predict_pool(0)
        yield from finished(unfinished, overlap)

    def segment(self, documents: Document | Iterable[Document], gold: bool = False) -> Iterator[Sentence]:
        """The sentences and windows the model sees, as in training; `gold` keeps them from cutting entities."""
        rows = [documents] if isinstance(documents, Document) else documents
        return segment_all(rows, self.recipe.segments, self.engine.tokenize.table, gold)

    def _batches(self, pool: Sequence[Pooled], batch_size: int | None) -> Iterator[list[Pooled]]:
        """Sentences of similar length, longest first."""
        # encoders take time per piece, not per word
        lengths = self.engine.tokenize.lengths([pooled.sentence for pooled in pool]).tolist()
        budget = self.recipe.train.budget
        if self._pace.units is not None:
            budget = min(budget, self._pace.units * self.engine.tokenize.lightness)
        for batch in batches(lengths, batch_size or len(pool), budget=budget):
            yield [pool[at] for at in batch]

    @property
    def _pace(self) -> Pace:
        return ON_GPU if self.engine.on_gpu else ON_CPU

    def _ask(self, batch: Sequence[Pooled], threshold: Thresholds) -> list[Asked]:
        """Starts the prediction of a batch; one that does not fit into the device's memory is divided."""
        try:
            sentences = [pooled.sentence for pooled in batch]
            return [Asked(batch, self._read(sentences, threshold, bounded=self._pace.ahead > 0).read)]
        except self.engine.too_large:
            if len(batch) == 1:
                raise
        half = len(batch) // 2  # only here, since the exception has kept what was computed alive
        return self._ask(batch[:half], threshold) + self._ask(batch[half:], threshold)

    def _answer(self, asked: Asked, threshold: Thresholds, overlap: Overlap) -> None:
        """Hands the entities of a batch to their documents."""
        sentences = [pooled.sentence for pooled in asked.batch]
        read = asked.answer().without_padding()
        if read is None:  # more was found than there was room for
            read = self._read(sentences, threshold).read()
        settled = np.zeros(len(sentences), dtype=bool)
        if self._in_one_piece:
            alone = np.fromiter((pooled.alone for pooled in asked.batch), bool, len(sentences))
            found, settled = without_clashes(read.found, read.inputs, self.labels, overlap, alone)
            entities = entities_found(found, read.inputs, self.labels, sentences, settled)
        else:
            entities = self._joined(read, sentences, threshold)
        for pooled, own, done in zip(asked.batch, entities, settled.tolist(), strict=True):
            pooled.document.add(pooled.sentence, own, done)

    @property
    def _in_one_piece(self) -> bool:
        """Whether what the model finds are entities as they are: neither fragments nor types of given spans."""
        recipe = self.recipe
        return recipe.protocol != "typing" and recipe.read_with != "links" and not recipe.joining.most_between

    def _joined(self, read: Read, sentences: Sequence[Sentence], threshold: Thresholds) -> list[list[Entity]]:
        """The entities of each sentence, in characters of its document; the types of given spans in words."""
        typing = self.recipe.protocol == "typing"
        if typing or read.linkable is None:
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
        answer = self._read(sentences, threshold, least_chance)
        inputs, found, linkable = answer.read()
        return Decoded(inputs, entities_found(found, inputs, self.labels), linkable, answer.states)

    def _read(
        self,
        sentences: Sequence[Sentence],
        threshold: Thresholds,
        least_chance: float | None = None,
        *,
        bounded: bool = False,
    ) -> Answer:
        """Spans and fragments that the model finds, which nobody has waited for yet."""
        inputs = self.collate.inputs(sentences)
        inside = narrowed(inputs)
        spans = None
        if self.recipe.protocol == "typing":  # the entities' spans, regardless of their labels
            some = [replace(s, entities=tuple(Entity("span", e.spans) for e in s.entities)) for s in sentences]
            spans = gold_spans(some, inside, LabelSet({"": ("span",)}))
        temperature = 1.0 if self.calibration is None else self.calibration.temperature
        least = None
        if self.recipe.read_with == "links":
            least = least_chances(self.recipe, self.labels, threshold, least_chance, temperature)
        return self.engine.ask(Question(inputs, inside, spans, threshold, least, temperature), bounded=bounded)


class Pooled(NamedTuple):
    """A sentence that is not predicted yet, and its document."""

    document: PartialDocument
    sentence: Sentence
    alone: bool  # its entities can meet none of other sentences


class Asked(NamedTuple):
    """A batch that the device works on."""

    batch: Sequence[Pooled]
    answer: Callable[[], Read]


def of_dataset(document: Document, dataset: str) -> Document:
    """The document as one of a corpus."""
    return document if document.dataset == dataset else replace(document, dataset=dataset)


def on_device(recipe: Recipe, learner: Learner, device: str | torch.device | None, precision: str) -> Engine:
    """A trained model on a device; torch is imported only here."""
    from wingspan.recognizer.torch_engine import TorchEngine

    return TorchEngine(recipe, learner, device, precision)


load = Recognizer.from_pretrained  # `wingspan.load()`, `wingspan.load("runs/ncbi")`


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
