"""Statistics of a corpus: counts, labels, nesting, lengths, duplicates, suspicious annotations, a fingerprint."""

import hashlib
import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from wingspan.corpora.overlaps import nested_and_crossing
from wingspan.corpora.words import WordRanges, text_key, word_spans
from wingspan.text import Document, content_digest, fingerprint

QUANTILES = {"min": 0.0, "p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "max": 1.0}
EXAMPLES = 5  # places that are listed for each kind of suspicious annotation


@dataclass
class Finding:
    """A kind of suspicious annotation: how often it occurs, and where the first ones are."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, where: str, times: int = 1) -> None:
        """Counts one more, and remembers the place of the first few."""
        self.count += times
        if len(self.examples) < EXAMPLES:
            self.examples.append(where)


@dataclass
class Statistics:
    """The figures of one corpus. Lengths are in words."""

    documents: int = 0
    groups: int = 0
    words: int = 0
    characters: int = 0
    entities: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    nested: int = 0
    discontinuous: int = 0
    documents_without_entities: int = 0
    mention_words: dict[str, int] = field(default_factory=dict)
    text_words: dict[str, int] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    fingerprint: str = ""


# finding -> whether it is an error (which no reader accepts) rather than only suspicious
FINDINGS = {
    "zero length or out of range": True,
    "same id twice": False,
    "same text twice": False,
    "same text, other entities": False,
    "same span, two labels": False,
    "same entity twice": False,
    "white space at an edge": False,
    "crossing pairs": False,
}


def describe(documents: Iterable[Document]) -> Statistics:
    """Reads the documents once and keeps a digest of each, but no text."""
    result = Statistics(findings={name: Finding() for name in FINDINGS})
    labels: Counter[str] = Counter()
    mention_words: Counter[int] = Counter()
    text_words: Counter[int] = Counter()
    digests: list[bytes] = []
    groups: set[str] = set()
    ids: set[str] = set()
    seen: dict[bytes, bytes] = {}
    for document in documents:
        result.documents += 1
        result.characters += len(document.text)
        result.entities += len(document.entities)
        result.documents_without_entities += not document.entities
        labels.update(entity.label for entity in document.entities)
        result.discontinuous += sum(entity.discontinuous for entity in document.entities)
        ranges = WordRanges(word_spans(document))
        result.words += len(ranges.words)
        text_words[len(ranges.words)] += 1
        for entity in document.entities:
            mention_words[sum(ranges.touched(span).width for span in entity.spans)] += 1
        nested, crossing = nested_and_crossing(document.entities)
        result.nested += nested
        if crossing:
            result.findings["crossing pairs"].add(document.id, crossing)
        _look_at_entities(document, result.findings)
        digest = content_digest(document)
        digests.append(digest)
        if document.id in ids:
            result.findings["same id twice"].add(document.id)
        ids.add(document.id)
        if text := text_key(document.text):
            key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
            if key in seen:
                result.findings["same text twice"].add(document.id)
            if seen.setdefault(key, digest) != digest:
                result.findings["same text, other entities"].add(document.id)
        groups.add(document.group if document.group is not None else document.id)
    result.groups = len(groups)
    result.labels = dict(sorted(labels.items(), key=lambda item: (-item[1], item[0])))
    result.mention_words = quantiles(mention_words)
    result.text_words = quantiles(text_words)
    result.fingerprint = fingerprint(digests, result.entities)
    return result


def _look_at_entities(document: Document, findings: dict[str, Finding]) -> None:
    labels_at: dict[Any, list[str]] = defaultdict(list)
    for entity in document.entities:
        where = f"{document.id}: {entity.label} at {entity.start}-{entity.end}"
        labels_at[entity.spans].append(entity.label)
        for start, end in entity.spans:
            if not 0 <= start < end <= len(document.text):
                findings["zero length or out of range"].add(where)
            elif document.text[start].isspace() or document.text[end - 1].isspace():
                findings["white space at an edge"].add(where)
    for spans, labels in labels_at.items():
        where = f"{document.id}: {' and '.join(sorted(set(labels)))} at {spans[0].start}-{spans[-1].end}"
        if len(set(labels)) > 1:
            findings["same span, two labels"].add(where)
        if len(set(labels)) < len(labels):
            findings["same entity twice"].add(where)


def quantiles(counts: Counter[int]) -> dict[str, int]:
    """Quantiles of lengths given as length -> how often; each is a length that occurs (nearest rank)."""
    lengths = sorted(counts)
    passed = list(accumulate(counts[length] for length in lengths))
    if not counts.total():
        return {}
    ranks = {name: max(1, math.ceil(passed[-1] * share)) for name, share in QUANTILES.items()}
    return {name: lengths[bisect_left(passed, rank)] for name, rank in ranks.items()}
