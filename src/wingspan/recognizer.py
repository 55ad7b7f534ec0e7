"""A trained model: texts in, documents with entities out."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import torch

from wingspan import checkpoint
from wingspan.batch import Collate, entities_found
from wingspan.card import model_card
from wingspan.corpora.segment import place, segment
from wingspan.decoding import Overlap, resolve
from wingspan.labels import LabelSet
from wingspan.model import tensors
from wingspan.objectives import Thresholds
from wingspan.recipe import Learner, Recipe
from wingspan.sampling import batches
from wingspan.text import Document, Entity, Sentence

POOL_SENTENCES = 1024  # sorted by length together; also what bounds memory on streams and long documents
POOL_WORDS = 65_536

Text = str | Document | Sequence[str]


@dataclass
class Pending:
    """A document some of whose sentences may still be waiting."""

    document: Document
    entities: list[Entity] = field(default_factory=list)
    waiting: int = 0
    complete: bool = False


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
    ) -> None:
        self.recipe = recipe
        self.labels = labels
        self.learner = learner
        self.facts = dict(facts or {})
        """What is known about the training: scores, corpora, versions; shown on the model card."""
        self.collate = Collate(learner.model.encoder.tokenize, labels, {})
        self.device = torch.device(device or best_device())
        self.learner.to(self.device)

    @classmethod
    def from_pretrained(
        cls, name: str | Path, *, device: str | None = None, parts: Sequence[str] = (), revision: str | None = None
    ) -> Self:
        """A model folder, or a hub id. `parts` names modules of yours that hold parts of the recipe."""
        folder = Path(name)
        if not folder.is_dir():
            folder = download(str(name), revision)
        recipe, labels, learner = checkpoint.load(folder, parts)
        learner.eval()
        facts = checkpoint.read_json(folder / "facts.json") if (folder / "facts.json").is_file() else {}
        return cls(recipe, labels, learner, device=device, facts=facts)

    def save_pretrained(self, folder: str | Path) -> None:
        """Writes the model folder: safetensors and JSON, nothing that has to be unpickled."""
        folder = Path(folder)
        checkpoint.save(folder, self.recipe, self.labels, self.learner)
        checkpoint.write_json(folder / "facts.json", self.facts)
        checkpoint.write_text(folder / "README.md", model_card(self.recipe, self.labels, self.facts))

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

        `is_split_into_words=True` takes lists of words; without it a list is a list of texts.
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
        threshold = threshold if threshold is not None else self.recipe.thresholds
        chosen: Any = overlap or self.recipe.overlap
        waiting: deque[Pending] = deque()
        pool: list[tuple[Pending, Sentence]] = []
        words = 0
        for number, text in enumerate(texts):
            document = as_document(text, number, is_split_into_words)
            bare = replace(document, entities=(), dataset=dataset or document.dataset)
            pending = Pending(bare)
            waiting.append(pending)
            for sentence in self.segment(bare):
                pool.append((pending, sentence))
                pending.waiting += 1
                words += len(sentence.words)
                if len(pool) >= POOL_SENTENCES or words >= POOL_WORDS:
                    self._run(pool, batch_size, threshold)
                    pool, words = [], 0
            pending.complete = True
            yield from finished(waiting, chosen)
        self._run(pool, batch_size, threshold)
        yield from finished(waiting, chosen)

    def segment(self, document: Document, gold: bool = False) -> Iterator[Sentence]:
        """The sentences and windows the model sees, as in training."""
        tokenize = self.learner.model.encoder.tokenize
        return segment(document, self.recipe.segments, tokenize.measure, gold=gold)

    def _run(self, pool: list[tuple[Pending, Sentence]], batch_size: int, threshold: Thresholds) -> None:
        """Finds the entities of pooled sentences, batch by batch, longest first."""
        lengths = [len(sentence.words) for _, sentence in pool]
        for batch in batches(lengths, batch_size, budget=self.recipe.train.budget):
            found = self.read([pool[at][1] for at in batch], threshold)
            for at, entities in zip(batch, found, strict=True):
                pending, sentence = pool[at]
                pending.entities.extend(place(sentence, entities))
                pending.waiting -= 1

    @torch.inference_mode()
    def read(self, sentences: Sequence[Sentence], threshold: Thresholds = None) -> list[list[Entity]]:
        """Entities in words, before any overlap is resolved."""
        inputs = self.collate.inputs(sentences)
        states = self.learner.model(tensors(inputs, self.device))
        reader: Any = self.learner.objectives[self.recipe.read_with]
        return entities_found(reader.read(states, threshold), inputs, self.labels)


def finished(waiting: deque[Pending], overlap: Overlap) -> Iterator[Document]:
    """The documents at the front of the queue that have all their entities."""
    while waiting and waiting[0].complete and not waiting[0].waiting:
        done = waiting.popleft()
        yield replace(done.document, entities=resolve(done.entities, overlap))


def as_document(text: Text, number: int, split: bool) -> Document:
    """Whatever a user may hand in, as a document."""
    if isinstance(text, Document):
        return text
    if isinstance(text, str):
        if split:
            raise ValueError(f"text {number} is a string, but is_split_into_words=True expects a list of words")
        return Document(str(number), text)
    if not split:
        raise ValueError(f"text {number} is a list; pass is_split_into_words=True if these are the words of one text")
    return Document.from_words(str(number), tuple(text))


def best_device() -> str:
    """A GPU where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def download(name: str, revision: str | None) -> Path:
    """A model from the hub, as a folder: only data files are fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        wanted = ["*.json", "*.safetensors", "*.txt", "*.model", "README.md"]
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{name}: neither a model folder nor a hub id that can be reached ({reason})") from error


def load(
    name: str | Path, *, device: str | None = None, parts: Sequence[str] = (), revision: str | None = None
) -> Recognizer:
    """Loads a model: `wingspan.load("runs/ncbi")`."""
    return Recognizer.from_pretrained(name, device=device, parts=parts, revision=revision)
