"""What stands on both sides: documents, nearly equal ones, shared ids, sentences, mentions; as objects and as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["exact", "normalized", "near"]
OnLeak = Literal["drop", "stop", "allow"]
"""What becomes of a training with documents that are, or nearly are, among those it is scored on."""

KINDS: tuple[Kind, ...] = ("exact", "normalized", "near")
"""From the closest on."""
LISTED = 1000
"""How many shared ids and equal sentences are listed; all of them are counted."""


@dataclass(frozen=True)
class Place:
    """A document of one side: its file (or part) and id."""

    file: str
    id: str

    def to_dict(self) -> dict[str, str]:
        """As plain data."""
        return {"file": self.file, "id": self.id}


@dataclass(frozen=True)
class Pair:
    """A training document and one of the other side, and how they are the same.

    `exact`: equal texts. `normalized`: equal but for case, white space and signs. `near`: most windows in common.
    `id`: the same id and another text, which may be chance.
    """

    kind: Kind | Literal["id"]
    train: Place
    against: Place
    similarity: float
    same_id: bool

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        pair = {"kind": self.kind, "train": self.train.to_dict(), "against": self.against.to_dict()}
        return {**pair, "similarity": round(self.similarity, 4), "same_id": self.same_id}


@dataclass(frozen=True)
class Quotation:
    """A sentence of the other side that stands in a training document which is not the same as a whole."""

    text: str
    train: Place
    against: Place

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {"text": self.text, "train": self.train.to_dict(), "against": self.against.to_dict()}


@dataclass(frozen=True)
class Sentences:
    """Equal sentences outside of documents that are the same anyway."""

    total: int = 0
    """Sentences of the other side that are long enough to be compared."""
    equal: int = 0
    documents: int = 0
    """Documents of the other side that have one of them."""
    listed: tuple[Quotation, ...] = ()
    covered: tuple[Place, ...] = ()
    """Documents whose sentences stand in training nearly all, though no document there is the same."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "equal": self.equal,
            "of": self.total,
            "documents": self.documents,
            "covered_documents": [place.to_dict() for place in self.covered],
            "listed": [quotation.to_dict() for quotation in self.listed],
        }


@dataclass(frozen=True)
class Mentions:
    """Annotated mentions of the other side."""

    total: int = 0
    in_documents: int = 0
    """In documents that are, or nearly are, in training."""
    annotated: int = 0
    """Annotated in training too, whatever the label, at the same place of the same document or sentence."""

    def to_dict(self) -> dict[str, int]:
        """As plain data."""
        return {"of": self.total, "in_leaking_documents": self.in_documents, "annotated_in_training": self.annotated}


@dataclass(frozen=True)
class Leaks:
    """Everything that stands on both sides. Documents are counted on the side that is evaluated on."""

    train_documents: int
    against_documents: int
    kinds: Mapping[Kind, int]
    """Documents by the closest match each has anywhere in training."""
    files: Mapping[str, Mapping[Kind, int]]
    """The same for every training file."""
    parts: Mapping[str, Mapping[Kind, int]]
    """The same for every file of the other side."""
    pairs: tuple[Pair, ...] = ()
    near: tuple[Pair, ...] = ()
    shared_ids: int = 0
    ids: tuple[Pair, ...] = ()
    short: int = 0
    """Training documents whose equals are too short to mean anything."""
    sentences: Sentences = field(default_factory=Sentences)
    mentions: Mentions = field(default_factory=Mentions)
    rows: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """For each training part the rows of documents that are (nearly) the same: what is to be dropped."""
    leaking: int = 0
    """Training documents that these rows make up."""

    @property
    def documents(self) -> int:
        """Documents whose text is in training: exact and normalized matches."""
        return self.kinds["exact"] + self.kinds["normalized"]

    def counts(self) -> dict[str, Any]:
        """The figures without any list."""
        return {
            "documents": self.documents,
            "near_documents": self.kinds["near"],
            "against_documents": self.against_documents,
            "train_documents": self.train_documents,
            "leaking_train_documents": self.leaking,
            "kinds": dict(self.kinds),
            "train_files": {file: dict(kinds) for file, kinds in self.files.items()},
            "against_files": {file: dict(kinds) for file, kinds in self.parts.items()},
            "shared_ids": self.shared_ids,
            "equal_sentences": self.sentences.equal,
            "covered_documents": len(self.sentences.covered),
            "equal_but_short": self.short,
            "mentions": self.mentions.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """As plain data, ready for JSON."""
        return {
            **self.counts(),
            "pairs": [pair.to_dict() for pair in self.pairs],
            "near_duplicates": [pair.to_dict() for pair in self.near],
            "same_id_other_text": [pair.to_dict() for pair in self.ids],
            "sentences": self.sentences.to_dict(),
        }
