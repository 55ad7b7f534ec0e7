"""The same document, or nearly the same, the same sentence or mention on both sides of an evaluation.

The side that is evaluated on is indexed; training documents go past it, block by block, and nothing of them is kept but
what was found. So a training corpus of any size takes the memory of a block.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from wingspan.corpora.leaks.index import (
    ANCHOR,
    SHORTEST,
    WINDOW,
    Article,
    Index,
    Laid,
    articles,
    blocks,
    resemblance,
    window_numbers,
)
from wingspan.text import Document, Span

Parts = Mapping[str, Iterable[Document]]
"""Documents by the file they are from, or by what their part is called."""

COVERED = 0.8
"""From which share of its letters on a document counts as covered by sentences that stand in training."""

COPIES = 20
"""Of so many equal texts in one training file the pairs are listed; what leaks is counted and dropped all the same."""


def find_leaks(train: Parts, against: Parts) -> Leaks:
    """What of `against` stands in `train`, by id, by text and by parts of it."""
    index = Index([article for part, documents in against.items() for article in articles(part, documents)])
    search = _Search(index)
    for part, documents in train.items():
        for block in blocks(articles(part, documents), lambda article: len(article.key)):
            search.look_at(block)
    return search.found()


@dataclass
class _Search:
    """What has been found so far."""

    index: Index
    seen: int = 0
    short: int = 0
    shared_ids: int = 0
    leaking: int = 0
    pairs: list[Pair] = field(default_factory=list)
    near: list[Pair] = field(default_factory=list)
    ids: list[Pair] = field(default_factory=list)
    quotations: list[Quotation] = field(default_factory=list)
    quoted: set[int] = field(default_factory=set)
    """Sentences of the index that stand in documents of training which are others."""
    closest: dict[str, dict[int, Kind]] = field(default_factory=lambda: defaultdict(dict))
    """For each training file, the articles of the index that are in it, by the closest match."""
    annotated: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Mentions of articles of the index that training has annotated."""
    rows: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    copies: Counter[tuple[str, str]] = field(default_factory=Counter)

    def look_at(self, block: list[Article]) -> None:
        """Compares a block of training articles with the index."""
        self.seen += len(block)
        keys = [article.key for article in block]
        laid = Laid.out(keys)
        windows, anchors = window_numbers(laid, WINDOW, ANCHOR)
        same = [self.same_text(article) for article in block]
        for at, key, share in self.index.near(laid, windows, keys):
            for known in self.index.by_key[key]:
                self.near.append(self.pair("near", block[at], known, share))
                self.closest[block[at].part].setdefault(known, "near")
                same[at].add(known)
        for at, article in enumerate(block):
            self.same_id(article, same[at])
            if same[at]:
                self.leaking += 1
                self.rows[article.part].update(range(article.first, article.first + len(article.rows)))
        for hit in self.index.quoted(laid, anchors, keys):
            sentence = self.index.sentences[hit.sentence]
            self.compare_mentions(block[hit.article], hit.place, sentence.article, sentence.span)
            if sentence.article not in same[hit.article]:
                self.quoted.add(hit.sentence)
                if len(self.quotations) < LISTED:
                    places = place(block[hit.article]), place(self.index.articles[sentence.article])
                    self.quotations.append(Quotation(sentence.written, *places))

    def same_text(self, article: Article) -> set[int]:
        """Articles of the index with the same text."""
        found = self.index.by_key.get(article.key, ())
        if len(article.key) < SHORTEST:
            self.short += bool(found)
            return set()
        if found:
            self.copies[article.part, article.text] += 1
        if found and self.copies[article.part, article.text] <= COPIES:
            for known in found:
                other = self.index.articles[known]
                kind: Kind = "exact" if other.text == article.text else "normalized"
                before = self.closest[article.part].get(known, kind)
                self.closest[article.part][known] = min(before, kind, key=KINDS.index)
                self.pairs.append(self.pair(kind, article, known, 1.0))
                self.compare_mentions(article, 0, known, Span(0, len(other.key)))
        return set(found)

    def same_id(self, article: Article, same: set[int]) -> None:
        """Notes articles of the index that have the id and another text."""
        for known in self.index.by_id.get(article.id, ()):
            other = self.index.articles[known]
            if known not in same and other.key != article.key:
                self.shared_ids += 1
                if len(self.ids) < LISTED:
                    self.ids.append(self.pair("id", article, known, resemblance(article.key, other.key)))

    def pair(self, kind: Kind | Literal["id"], article: Article, known: int, similarity: float) -> Pair:
        """A training article and one of the index."""
        other = self.index.articles[known]
        return Pair(kind, place(article), place(other), similarity, article.id == other.id)

    def compare_mentions(self, article: Article, start: int, known: int, span: Span) -> None:
        """Which mentions within a range of a known article the training article has at the same place too."""
        moved = start - span.start
        for at, mention in enumerate(self.index.articles[known].mentions):
            within = span.start <= mention[0].start and mention[-1].end <= span.end
            if within and tuple(Span(s + moved, e + moved) for s, e in mention) in article.mention_set:
                self.annotated[known].add(at)

    def found(self) -> Leaks:
        """Everything, counted."""
        known = self.index.articles
        overall: dict[int, Kind] = {}
        for kinds in self.closest.values():
            for at, kind in kinds.items():
                overall[at] = min(overall.get(at, kind), kind, key=KINDS.index)
        letters: Counter[int] = Counter()
        for number in self.quoted:
            letters[self.index.sentences[number].article] += self.index.sentences[number].span.width
        covered = tuple(
            place(known[at])
            for at, width in sorted(letters.items())
            if at not in overall and width >= COVERED * len(known[at].key)
        )
        return Leaks(
            train_documents=self.seen,
            against_documents=len(known),
            kinds=counted(overall),
            files={file: counted(kinds) for file, kinds in self.closest.items() if kinds},
            parts={
                part: counted({at: kind for at, kind in overall.items() if known[at].part == part})
                for part in dict.fromkeys(article.part for article in known)
            },
            pairs=tuple(self.pairs),
            near=tuple(self.near),
            shared_ids=self.shared_ids,
            ids=tuple(self.ids),
            short=self.short,
            sentences=Sentences(
                len(self.index.sentences), len(self.quoted), len(letters), tuple(self.quotations), covered
            ),
            mentions=Mentions(
                sum(len(row.entities) for article in known for row in article.rows),
                sum(len(row.entities) for at in overall for row in known[at].rows),
                sum(map(len, self.annotated.values())),
            ),
            rows={part: frozenset(rows) for part, rows in self.rows.items()},
            leaking=self.leaking,
        )


def place(article: Article) -> Place:
    """Where an article is from."""
    return Place(article.part, article.id)


def counted(kinds: Mapping[int, Kind]) -> dict[Kind, int]:
    """How many articles have each kind of match."""
    numbers = Counter(kinds.values())
    return {kind: numbers[kind] for kind in KINDS}


# --- What stands on both sides: documents, nearly equal ones, shared ids, sentences, mentions; as objects and as
# data.


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
