"""The corpora of a training, from files or as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wingspan.corpora import read
from wingspan.corpora.corpora_file import read_corpora
from wingspan.corpora.several import CorporaPlan
from wingspan.labels import LabelSet
from wingspan.text import Document

Corpus = str | Path | Sequence[Document]


@dataclass(frozen=True)
class Corpora:
    """The documents of one training."""

    train: Sequence[Document]
    dev: Sequence[Document] = ()
    test: Sequence[Document] = ()
    plan: CorporaPlan | None = None
    """Where there are several corpora: what each of them is. Dev and test are those of their target."""

    @property
    def declared(self) -> LabelSet | None:
        """The labels, where they are not read off the documents."""
        return self.plan.labels if self.plan is not None else None

    @property
    def target(self) -> str | None:
        """The name of the corpus that the others help, where there are others."""
        return self.plan.target.name if self.plan is not None else None

    @property
    def weights(self) -> dict[str, float]:
        """How much more often than others corpora are drawn from."""
        return {corpus.name: corpus.weight for corpus in self.plan.corpora} if self.plan is not None else {}

    @property
    def settings(self) -> dict[str, str]:
        """What the plan sets of a recipe."""
        return dict(self.plan.settings) if self.plan is not None else {}

    @property
    def held_out(self) -> dict[str, Sequence[Document]]:
        """What is scored, of every corpus, by the name of its part: training must not have it."""
        if self.plan is None:
            return {"dev": self.dev, "test": self.test}
        parts: dict[str, Sequence[Document]] = {}
        for corpus in self.plan.corpora:
            parts[f"{corpus.name} dev"] = () if corpus.dev_into_training else corpus.dev
            parts[f"{corpus.name} test"] = corpus.test
        return parts


def corpora_of(
    train: Any, dev: Corpus | None, test: Corpus | None, format: str | None, several: str | Path | CorporaPlan | None
) -> Corpora:
    """Files or documents, or the corpora of a `corpora.toml` or of a plan."""
    if (train is None) == (several is None):
        raise ValueError("give training documents with --train, or several corpora with --corpora; one of the two")
    if several is None:
        return gather(train, dev, test, format)
    if dev is not None or test is not None or format is not None:
        raise ValueError("--corpora names dev files, test files and formats itself; leave out --dev, --test, --format")
    plan = several if isinstance(several, CorporaPlan) else read_corpora(several)
    return Corpora(plan.training, plan.target.dev, plan.target.test, plan)


def gather(train: Any, dev: Corpus | None, test: Corpus | None, format: str | None) -> Corpora:
    """Reads what is given as files."""
    paths: list[Any] = [train] if isinstance(train, str | Path) else list(train)
    if paths and all(isinstance(path, str | Path) for path in paths):
        documents = [document for path in paths for document in documents_of(path, format)]
    else:
        documents = documents_of(paths, format)
    return Corpora(documents, documents_of(dev, format), documents_of(test, format))


def documents_of(corpus: Corpus | None, format: str | None) -> list[Document]:
    """A file's documents, or the documents themselves."""
    if corpus is None:
        return []
    if not isinstance(corpus, str | Path):
        return list(corpus)
    documents = list(read(corpus, format))
    if not documents:
        raise ValueError(f"{corpus}: there are no documents in it; check the file, and its format with --format")
    return documents
