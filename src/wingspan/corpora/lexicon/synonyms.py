"""Synonyms from a corpus, for fields that no knowledge base covers (the first limitation that Nguyen et al. names).

They come from mentions with the same concept id, from definitions of abbreviations, and from mentions in one
coreference chain. Use the training part only: synonyms from a test corpus would give away its names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from wingspan.corpora.lexicon.concepts import Concept
from wingspan.text import Document, Span

_UNKNOWN = frozenset({"", "-", "-1", "none", "null", "unknown"})
_PRONOUN = re.compile(
    "i|me|my|mine|myself|we|us|our|ours|ourselves|you|your|yours|yourself|yourselves|he|him|his|himself|she|her|hers|"
    "herself|it|its|itself|they|them|their|theirs|themselves|this|that|these|those|who|whom|whose|which|what|one"
)


def found_synonyms(documents: Sequence[Document]) -> dict[str, list[Concept]]:
    """The concepts from each source of synonyms; those with a single name are left out."""
    sources = {
        "concept ids": _by_concept_id(documents),
        "abbreviations": _by_abbreviation(documents),
        "coreference chains": _by_chain(documents),
    }
    return {source: [concept for concept in concepts if len(concept.names) > 1] for source, concepts in sources.items()}


class _Names:
    """The names of one concept, the most frequent first; case is ignored."""

    def __init__(self) -> None:
        self.spellings: dict[str, Counter[str]] = defaultdict(Counter)
        self.labels: dict[str, None] = {}

    def add(self, name: str, label: str) -> None:
        plain = " ".join(name.split())
        self.spellings[plain.lower()][plain] += 1
        self.labels[label] = None

    def concept(self, id: str) -> Concept:
        ranked = sorted(self.spellings.values(), key=Counter.total, reverse=True)
        return Concept(id, tuple(names.most_common(1)[0][0] for names in ranked), tuple(self.labels))


def _by_concept_id(documents: Iterable[Document]) -> Iterator[Concept]:
    """Mentions with the same id; several ids of a mention ("D1|D2") are compared as a whole."""
    by_id: dict[str, _Names] = defaultdict(_Names)
    for document in documents:
        for entity in document.entities:
            concept: Any = entity.meta.get("concept_id")
            if not isinstance(concept, str):  # BigBIO's records have a list of ids
                rows: Any = entity.meta.get("normalized")
                ids = [row.get("db_id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
                concept = "|".join(id.strip() for id in ids if isinstance(id, str))
            if concept.strip().lower() not in _UNKNOWN:
                by_id[concept.strip()].add(document.text_of(entity), entity.label)
    return (names.concept(id) for id, names in by_id.items())


def _by_abbreviation(documents: Sequence[Document]) -> Iterator[Concept]:
    """Short forms of one long form, where one of the two is a mention of the corpus."""
    labels: dict[str, dict[str, None]] = defaultdict(dict)
    for document in documents:
        for entity in document.entities:
            labels[document.text_of(entity).lower()][entity.label] = None
    by_long_form: dict[str, _Names] = defaultdict(_Names)
    for document in documents:
        for short, long in abbreviations(document.text):
            for label in labels.get(short.lower(), {}) | labels.get(long.lower(), {}):
                names = by_long_form[f"abbreviation:{' '.join(long.lower().split())}"]
                names.add(long, label)
                names.add(short, label)
    return (names.concept(id) for id, names in by_long_form.items())


def _by_chain(documents: Iterable[Document]) -> Iterator[Concept]:
    """Entities of one chain: the `clusters` of DyGIE and PURE files, in words with inclusive ends; no pronouns."""
    for document in documents:
        mentions = {entity.spans[0]: entity for entity in document.entities if not entity.discontinuous}
        words = document.words or ()
        clusters: Any = document.meta.get("clusters")
        for number, cluster in enumerate(clusters if isinstance(clusters, list) else ()):
            names = _Names()
            for pair in cluster if isinstance(cluster, list) else ():
                match pair:
                    case [int(first), int(last)] if 0 <= first <= last < len(words):
                        entity = mentions.get(Span(words[first].start, words[last].end))
                        if entity and not _PRONOUN.fullmatch(document.text_of(entity).lower()):
                            names.add(document.text_of(entity), entity.label)
            if names.spellings:
                yield names.concept(f"{document.id}:chain-{number}")


# Abbreviations, "breast cancer (BC)" or "BC (breast cancer)", after Schwartz and Hearst, "A simple algorithm for
# identifying abbreviation definitions in biomedical text" (PSB 2003): the characters of the short form are matched with
# the words before it, from right to left.

_BRACKETS = re.compile(r"\(\s*([^()]*[^()\s])\s*\)")
_NEW_SENTENCE = re.compile(r"[.!?;:]\s|[()\[\]\n]")
_INSIDE_END = re.compile(r"\s*[;,]\s")


def abbreviations(text: str) -> Iterator[tuple[str, str]]:
    """The definitions in a text, in order: short form and long form, as written."""
    for brackets in _BRACKETS.finditer(text):
        inside = _INSIDE_END.split(brackets[1])[0]
        before = _NEW_SENTENCE.split(text[: brackets.start()].rstrip()[-400:])[-1]
        if _is_short_form(inside):
            # the long form has at most this many words
            starts = [word.start() for word in re.finditer(r"\S+", before)][-min(len(inside) + 5, 2 * len(inside)) :]
            if starts and (long := _long_form(inside, before[starts[0] :])):
                yield inside, long
        elif (words := before.split()) and _is_short_form(words[-1]) and (long := _long_form(words[-1], inside)):
            yield words[-1], long


def _is_short_form(term: str) -> bool:
    """Two to ten characters in one or two words, with a letter, starting with a letter or digit."""
    return 2 <= len(term) <= 10 and len(term.split()) <= 2 and term[0].isalnum() and any(map(str.isalpha, term))


def _long_form(short: str, candidate: str) -> str | None:
    """The shortest end of the candidate with the short form's characters in order, the first at a word's start."""
    candidate = candidate.rstrip()
    at = len(candidate)
    characters = [character for character in short.lower() if character.isalnum()]
    for number, character in reversed(list(enumerate(characters))):
        at -= 1
        while at >= 0 and (
            candidate[at].lower() != character or (number == 0 and at > 0 and candidate[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return None
    start = candidate.rfind(" ", 0, at) + 1
    long = candidate[start:].strip()
    known = short.lower() in long.lower().split()
    return long if len(long) > len(short) and not known and long[0].isalnum() else None
