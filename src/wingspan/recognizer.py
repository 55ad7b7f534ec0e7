"""A trained model: texts in, documents with entities out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, get_args

import torch

from wingspan import checkpoint, readers
from wingspan.batch import Collate, narrowed
from wingspan.card import model_card
from wingspan.corpora.context import segment_all, segment_rows
from wingspan.corpora.given_texts import Text, as_document
from wingspan.decoding import Overlap
from wingspan.evaluation.calibration import Calibration
from wingspan.labels import LabelSet
from wingspan.objectives import Thresholds
from wingspan.pending import Pending, Untyped, finished, given_spans
from wingspan.recipe import Learner, Recipe
from wingspan.sampling import batches
from wingspan.text import Document, Entity, Sentence

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
        with checkpoint.staged(Path(folder)) as new:
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
        return readers.joined(self.reading(sentences, threshold), self.recipe, self.labels, threshold)

    @torch.inference_mode()
    def reading(
        self, sentences: Sequence[Sentence], threshold: Thresholds = None, bar: float | None = None
    ) -> readers.Reading:
        """What is read before fragments are joined; `bar` is the least chance of fragments, where not the recipe's."""
        inputs = self.collate.inputs(sentences)
        temperature = 1.0 if self.calibration is None else self.calibration.temperature
        model = (self.recipe, self.labels, self.learner)
        spans = given_spans(sentences, narrowed(inputs)) if self.recipe.protocol == "typing" else None
        return readers.read(*model, inputs, self.device, threshold, temperature, bar, spans)


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
