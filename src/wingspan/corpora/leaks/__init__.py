"""Documents, near-duplicates, sentences and mentions that are on both sides of an evaluation.

The documents to be scored are indexed. Training documents are streamed past the index, and only what was found is kept,
so a training corpus of any size takes little memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from wingspan.corpora.leaks.index import ANCHOR, NGRAM, SHORTEST, Article, Index, articles, ngram_hash, resemblance
from wingspan.text import Document, Span

Parts = Mapping[str, Iterable[Document]]
"""Documents by their file, or by the name of their part."""

MatchKind = Literal["exact", "normalized", "near"]
OnLeak = Literal["drop", "stop", "allow"]
"""What a training does with documents that it shares, exactly or nearly, with what it is scored on."""

KINDS: tuple[MatchKind, ...] = ("exact", "normalized", "near")
"""The closest first."""
LISTED = 1000
"""How many shared ids and equal sentences are listed; all of them are counted."""
COVERED = 0.8
"""The share of its letters from which on a document counts as covered by sentences of training."""
COPIES = 20
"""How many equal texts of one training file are listed as pairs; all of them are counted and dropped."""


@dataclass(frozen=True)
class DocumentRef:
    """A document of one side: its file (or part) and id."""

    file: str
    id: str


@dataclass(frozen=True)
class DocumentPair:
    """A training document and a scored one that match.

    `exact`: equal texts. `normalized`: equal but for case, white space and signs. `near`: most n-grams in common.
    `id`: the same id and another text, which may be chance.
    """

    kind: MatchKind | Literal["id"]
    train: DocumentRef
    against: DocumentRef
    similarity: float
    same_id: bool


@dataclass(frozen=True)
class QuotedSentence:
    """A sentence of a scored document that occurs in a training document which does not match as a whole."""

    text: str
    train: DocumentRef
    against: DocumentRef


@dataclass
class SentenceLeaks:
    """Equal sentences outside of documents that match as a whole."""

    total: int = 0
    """Scored sentences that are long enough to be compared."""
    equal: int = 0
    documents: int = 0
    """Scored documents with an equal sentence."""
    listed: list[QuotedSentence] = field(default_factory=list)
    covered: list[DocumentRef] = field(default_factory=list)
    """Documents of which nearly all sentences are in training, though no document there matches."""


@dataclass
class MentionLeaks:
    """Annotated mentions of the scored side."""

    total: int = 0
    in_documents: int = 0
    """In documents that are in training, exactly or nearly."""
    annotated: int = 0
    """Annotated in training too, with any label, at the same place of the same document or sentence."""


@dataclass
class Leaks:
    """Everything that is on both sides. Documents are counted on the scored side unless it says otherwise."""

    against_documents: int = 0
    train_documents: int = 0
    kinds: dict[MatchKind, int] = field(default_factory=dict)
    """Documents by their closest match anywhere in training."""
    files: dict[str, dict[MatchKind, int]] = field(default_factory=dict)
    """The same for every training file."""
    parts: dict[str, dict[MatchKind, int]] = field(default_factory=dict)
    """The same for every scored file."""
    pairs: list[DocumentPair] = field(default_factory=list)
    near: list[DocumentPair] = field(default_factory=list)
    shared_ids: int = 0
    ids: list[DocumentPair] = field(default_factory=list)
    short: int = 0
    """Training documents with an equal that are too short to count."""
    sentences: SentenceLeaks = field(default_factory=SentenceLeaks)
    mentions: MentionLeaks = field(default_factory=MentionLeaks)
    rows: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """For each training part the rows of documents that match: those to drop."""
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
            "kinds": self.kinds,
            "train_files": self.files,
            "against_files": self.parts,
            "shared_ids": self.shared_ids,
            "equal_sentences": self.sentences.equal,
            "covered_documents": len(self.sentences.covered),
            "equal_but_short": self.short,
            "mentions": {
                "of": self.mentions.total,
                "in_leaking_documents": self.mentions.in_documents,
                "annotated_in_training": self.mentions.annotated,
            },
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.counts(),
            "pairs": [asdict(pair) for pair in self.pairs],
            "near_duplicates": [asdict(pair) for pair in self.near],
            "same_id_other_text": [asdict(pair) for pair in self.ids],
            "sentences": {
                "equal": self.sentences.equal,
                "of": self.sentences.total,
                "documents": self.sentences.documents,
                "covered_documents": [asdict(document) for document in self.sentences.covered],
                "listed": [asdict(sentence) for sentence in self.sentences.listed],
            },
        }


def find_leaks(train: Parts, against: Parts) -> Leaks:
    """Finds documents of `against` in `train`, by id, by text and by sentence."""
    search = _Search(Index([article for part, documents in against.items() for article in articles(part, documents)]))
    for part, documents in train.items():
        for article in articles(part, documents):
            search.compare(article)
    return search.finish()


class _Search:
    """Compares training articles with the index, one by one."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.leaks = Leaks(len(index.articles))
        self.closest: dict[int, MatchKind] = {}
        """The closest match of articles of the index."""
        self.closest_in: dict[str, dict[int, MatchKind]] = defaultdict(dict)
        """The same in each training file."""
        self.quoted: set[int] = set()
        """Sentences of the index that occur in training articles which do not match as a whole."""
        self.annotated: dict[int, set[int]] = defaultdict(set)
        """Mentions of articles of the index that training annotates too."""
        self.copies: Counter[tuple[str, str]] = Counter()

    def compare(self, article: Article) -> None:
        """Notes all that a training article shares with the index."""
        leaks, index = self.leaks, self.index
        leaks.train_documents += 1
        ngrams, anchors = ngram_hash(article.key, NGRAM, ANCHOR)
        same = self._same_text(article)
        for key, similarity in index.near(article.key, ngrams):
            for known in index.by_key[key]:
                leaks.near.append(self._match("near", article, known, similarity))
                same.add(known)
        for known in index.by_id.get(article.id, ()):
            key = index.articles[known].key
            if known not in same and key != article.key:
                leaks.shared_ids += 1
                if len(leaks.ids) < LISTED:
                    leaks.ids.append(self._pair("id", article, known, resemblance(article.key, key)))
        if same:
            leaks.leaking += 1
            leaks.rows[article.part].update(range(article.first, article.first + len(article.rows)))
        for start, number in index.quoted(article.key, anchors):
            known, span, text = index.sentences[number]
            self._compare_mentions(article, start, known, span)
            if known not in same:
                self.quoted.add(number)
                if len(leaks.sentences.listed) < LISTED:
                    leaks.sentences.listed.append(QuotedSentence(text, _ref(article), _ref(index.articles[known])))

    def _same_text(self, article: Article) -> set[int]:
        """The articles of the index with the same text."""
        same = set(self.index.by_key.get(article.key, ()))
        if len(article.key) < SHORTEST:
            self.leaks.short += bool(same)
            return set()
        if same:
            self.copies[article.part, article.text] += 1
            if self.copies[article.part, article.text] <= COPIES:
                for known in self.index.by_key[article.key]:
                    other = self.index.articles[known]
                    kind: MatchKind = "exact" if other.text == article.text else "normalized"
                    self.leaks.pairs.append(self._match(kind, article, known, 1.0))
                    self._compare_mentions(article, 0, known, Span(0, len(other.key)))
        return same

    def _match(self, kind: MatchKind, article: Article, known: int, similarity: float) -> DocumentPair:
        """A pair that is a leak."""
        for closest in (self.closest, self.closest_in[article.part]):
            closest[known] = min(closest.get(known, kind), kind, key=KINDS.index)
        return self._pair(kind, article, known, similarity)

    def _pair(self, kind: MatchKind | Literal["id"], article: Article, known: int, similarity: float) -> DocumentPair:
        other = self.index.articles[known]
        return DocumentPair(kind, _ref(article), _ref(other), round(similarity, 4), article.id == other.id)

    def _compare_mentions(self, article: Article, start: int, known: int, span: Span) -> None:
        """Notes the mentions within a range of a known article that the training article annotates too."""
        moved = start - span.start
        for number, mention in enumerate(self.index.articles[known].mentions):
            within = span.start <= mention[0].start and mention[-1].end <= span.end
            if within and tuple(Span(s + moved, e + moved) for s, e in mention) in article.mention_set:
                self.annotated[known].add(number)

    def finish(self) -> Leaks:
        """Counts what was found."""
        leaks, known = self.leaks, self.index.articles
        leaks.kinds = _counts(self.closest)
        leaks.files = {file: _counts(kinds) for file, kinds in self.closest_in.items()}
        leaks.parts = {
            part: _counts({at: kind for at, kind in self.closest.items() if known[at].part == part})
            for part in dict.fromkeys(article.part for article in known)
        }
        letters: Counter[int] = Counter()
        for number in self.quoted:
            letters[self.index.sentences[number].article] += self.index.sentences[number].span.width
        sentences, mentions = leaks.sentences, leaks.mentions
        sentences.total, sentences.equal = len(self.index.sentences), len(self.quoted)
        sentences.documents = len(letters)
        sentences.covered = [
            _ref(known[at])
            for at, width in sorted(letters.items())
            if at not in self.closest and width >= COVERED * len(known[at].key)
        ]
        entities = [sum(len(row.entities) for row in article.rows) for article in known]
        mentions.total, mentions.in_documents = sum(entities), sum(entities[at] for at in self.closest)
        mentions.annotated = sum(map(len, self.annotated.values()))
        return leaks


def _ref(article: Article) -> DocumentRef:
    return DocumentRef(article.part, article.id)


def _counts(kinds: Mapping[int, MatchKind]) -> dict[MatchKind, int]:
    counts = Counter(kinds.values())
    return {kind: counts[kind] for kind in KINDS}
