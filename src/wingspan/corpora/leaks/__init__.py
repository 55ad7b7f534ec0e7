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

Parts = Mapping[str, Iterable[Document]]  # documents by their file, or by the name of their part

MatchKind = Literal["exact", "normalized", "near"]
OnLeak = Literal["drop", "stop", "allow"]
"""What a training does with documents that it shares, exactly or nearly, with what it is scored on."""

KINDS: tuple[MatchKind, ...] = ("exact", "normalized", "near")  # the closest first
LISTED = 1000  # how many shared ids and equal sentences are listed; all of them are counted
COVERED = 0.8  # the share of its letters from which on a document counts as covered by sentences of training
COPIES = 20  # how many equal texts of one training file are listed as pairs; all of them are counted and dropped


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

    equal: int = 0
    of: int = 0  # scored sentences that are long enough to be compared
    documents: int = 0  # scored documents with an equal sentence
    covered_documents: list[DocumentRef] = field(default_factory=list)
    """Documents of which nearly all sentences are in training, though no document there matches."""
    listed: list[QuotedSentence] = field(default_factory=list)


@dataclass
class MentionLeaks:
    """Annotated mentions of the scored side."""

    of: int = 0
    in_leaking_documents: int = 0
    annotated_in_training: int = 0  # with any label, at the same place of the same document or sentence


@dataclass
class Leaks:
    """Everything that is on both sides. Documents are counted on the scored side unless it says otherwise."""

    against_documents: int = 0
    train_documents: int = 0
    kinds: dict[MatchKind, int] = field(default_factory=dict)  # documents by their closest match anywhere in training
    files: dict[str, dict[MatchKind, int]] = field(default_factory=dict)  # the same for every training file
    parts: dict[str, dict[MatchKind, int]] = field(default_factory=dict)  # the same for every scored file
    pairs: list[DocumentPair] = field(default_factory=list)
    near: list[DocumentPair] = field(default_factory=list)
    shared_ids: int = 0
    ids: list[DocumentPair] = field(default_factory=list)
    short: int = 0  # training documents with an equal that are too short to count
    sentences: SentenceLeaks = field(default_factory=SentenceLeaks)
    mentions: MentionLeaks = field(default_factory=MentionLeaks)
    rows: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    """For each training part the rows of documents that match: those to drop."""
    leaking: int = 0  # training documents that these rows make up

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
            "covered_documents": len(self.sentences.covered_documents),
            "equal_but_short": self.short,
            "mentions": asdict(self.mentions),
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            **self.counts(),
            "pairs": [asdict(pair) for pair in self.pairs],
            "near_duplicates": [asdict(pair) for pair in self.near],
            "same_id_other_text": [asdict(pair) for pair in self.ids],
            "sentences": asdict(self.sentences),
        }


def find_leaks(train: Parts, against: Parts) -> Leaks:
    """Finds documents of `against` in `train`, by id, by text and by sentence."""
    index = Index([article for part, documents in against.items() for article in articles(part, documents)])
    search = _Search(index)
    for part, documents in train.items():
        for article in articles(part, documents):
            search.compare(article)
    leaks, known = search.leaks, index.articles
    leaks.kinds = _counts(search.closest)
    leaks.files = {file: _counts(kinds) for file, kinds in search.closest_in.items()}
    leaks.parts = {
        part: _counts({at: kind for at, kind in search.closest.items() if known[at].part == part})
        for part in dict.fromkeys(article.part for article in known)
    }
    letters: Counter[int] = Counter()
    for at, span, _ in (index.sentences[number] for number in search.quoted):
        letters[at] += span.width
    leaks.sentences.of, leaks.sentences.equal = len(index.sentences), len(search.quoted)
    leaks.sentences.documents = len(letters)
    leaks.sentences.covered_documents = [
        _ref(known[at])
        for at, width in sorted(letters.items())
        if at not in search.closest and width >= COVERED * len(known[at].key)
    ]
    entities = [sum(len(row.entities) for row in article.rows) for article in known]
    leaks.mentions = MentionLeaks(sum(entities), sum(entities[at] for at in search.closest), len(search.annotated))
    return leaks


class _Search:
    """Compares training articles with the index, one by one."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.leaks = Leaks(len(index.articles))
        self.closest: dict[int, MatchKind] = {}  # of articles of the index
        self.closest_in: dict[str, dict[int, MatchKind]] = defaultdict(dict)  # the same in each training file
        self.quoted: set[int] = set()  # sentences of the index in training articles that do not match as a whole
        self.annotated: set[tuple[int, int]] = set()  # (article, mention) of the index that training annotates too
        self.copies: Counter[tuple[str, str]] = Counter()

    def compare(self, article: Article) -> None:
        """Notes all that a training article shares with the index."""
        leaks, index = self.leaks, self.index
        leaks.train_documents += 1
        ngrams, anchors = ngram_hash(article.key, NGRAM, ANCHOR)
        same = set(index.by_key.get(article.key, ()))
        if len(article.key) < SHORTEST:
            leaks.short += bool(same)
            same = set()
        elif same:
            self.copies[article.part, article.text] += 1
            if self.copies[article.part, article.text] <= COPIES:
                for known in index.by_key[article.key]:
                    kind: MatchKind = "exact" if index.articles[known].text == article.text else "normalized"
                    leaks.pairs.append(self._pair(kind, article, known, 1.0))
                    self._compare_mentions(article, 0, known, Span(0, len(article.key)))
        for key, similarity in index.near(article.key, ngrams):
            for known in index.by_key[key]:
                leaks.near.append(self._pair("near", article, known, similarity))
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

    def _pair(self, kind: MatchKind | Literal["id"], article: Article, known: int, similarity: float) -> DocumentPair:
        """A pair of documents; all but a shared id is a leak, of which the closest kind is kept."""
        if kind != "id":
            for closest in (self.closest, self.closest_in[article.part]):
                closest[known] = min(closest.get(known, kind), kind, key=KINDS.index)
        other = self.index.articles[known]
        return DocumentPair(kind, _ref(article), _ref(other), round(similarity, 4), article.id == other.id)

    def _compare_mentions(self, article: Article, start: int, known: int, span: Span) -> None:
        """Notes the mentions within a range of a known article that the training article annotates too."""
        moved = start - span.start
        for number, mention in enumerate(self.index.articles[known].mentions):
            within = span.start <= mention[0].start and mention[-1].end <= span.end
            if within and tuple(Span(s + moved, e + moved) for s, e in mention) in article.mention_set:
                self.annotated.add((known, number))


def _ref(article: Article) -> DocumentRef:
    return DocumentRef(article.part, article.id)


def _counts(kinds: Mapping[int, MatchKind]) -> dict[MatchKind, int]:
    counts = Counter(kinds.values())
    return {kind: counts[kind] for kind in KINDS}
