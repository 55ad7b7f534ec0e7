"""Synonyms from a corpus itself, for fields that no knowledge base covers (the first limitation that paper 000 names).

Three ways: mentions that share a concept id, definitions of abbreviations, and mentions of one coreference chain. Use
the training part only: synonyms found in a test corpus would tell its names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from wingspan.corpora.lexicon.concepts import Concept
from wingspan.text import Document, Entity, Span

_UNKNOWN = frozenset({"", "-", "-1", "none", "null", "unknown"})
_PRONOUN = re.compile(
    "i|me|my|mine|myself|we|us|our|ours|ourselves|you|your|yours|yourself|yourselves|he|him|his|himself|she|her|hers|"
    "herself|it|its|itself|they|them|their|theirs|themselves|this|that|these|those|who|whom|whose|which|what|one"
)


def found_synonyms(documents: Sequence[Document]) -> dict[str, list[Concept]]:
    """The concepts that each way finds; those with one name only are left out, for they have no synonym."""
    ways = {
        "concept ids": _by_concept_id(documents),
        "abbreviations": _by_abbreviation(documents),
        "coreference chains": _by_chain(documents),
    }
    return {way: [concept for concept in found if len(concept.names) > 1] for way, found in ways.items()}


class _Names:
    """The names of one concept, the most frequent first; spellings that differ in case are one name."""

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
    """Mentions with the same id. One that names several concepts ("D1|D2") is compared as a whole."""
    found: dict[str, _Names] = defaultdict(_Names)
    for document in documents:
        for entity in document.entities:
            concept = _concept_id(entity)
            if concept.lower() not in _UNKNOWN:
                found[concept].add(document.text_of(entity), entity.label)
    return (names.concept(id) for id, names in found.items())


def _concept_id(entity: Entity) -> str:
    """The id as most readers keep it, or as BigBIO's records have it, all of them; empty where there is none."""
    concept: Any = entity.meta.get("concept_id")
    if isinstance(concept, str):
        return concept.strip()
    rows: Any = entity.meta.get("normalized")
    ids = [row.get("db_id") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return "|".join(one.strip() for one in ids if isinstance(one, str))


def _by_abbreviation(documents: Sequence[Document]) -> Iterator[Concept]:
    """Short forms of one long form, where one of the two is a mention of the corpus."""
    labels: dict[str, dict[str, None]] = defaultdict(dict)
    for document in documents:
        for entity in document.entities:
            labels[document.text_of(entity).lower()][entity.label] = None
    found: dict[str, _Names] = defaultdict(_Names)
    for document in documents:
        for short, long in abbreviations(document.text):
            for label in labels.get(short.lower(), {}) | labels.get(long.lower(), {}):
                names = found[f"abbreviation:{' '.join(long.lower().split())}"]
                names.add(long, label)
                names.add(short, label)
    return (names.concept(id) for id, names in found.items())


def _by_chain(documents: Iterable[Document]) -> Iterator[Concept]:
    """Entities of one chain: the `clusters` of DyGIE and PURE files, in words with inclusive ends; no pronouns."""
    for document in documents:
        mentions = {entity.spans[0]: entity for entity in document.entities if not entity.discontinuous}
        for number, chain in enumerate(_chains(document)):
            names = _Names()
            for span in chain:
                entity = mentions.get(span)
                if entity and not _PRONOUN.fullmatch(document.text_of(entity).lower()):
                    names.add(document.text_of(entity), entity.label)
            if names.spellings:
                yield names.concept(f"{document.id}:chain-{number}")


def _chains(document: Document) -> Iterator[list[Span]]:
    """Chains as characters; what is no [first word, last word] of the document is no mention of ours."""
    clusters: Any = document.meta.get("clusters")
    words = document.words or ()
    for cluster in clusters if isinstance(clusters, list) else ():
        yield [
            Span(words[pair[0]].start, words[pair[1]].end)
            for pair in (cluster if isinstance(cluster, list) else ())
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(at, int) for at in pair)
            if 0 <= pair[0] <= pair[1] < len(words)
        ]


# --- Abbreviations and what they stand for, where brackets say so: "breast cancer (BC)" or "BC (breast cancer)".
#
# After Schwartz and Hearst, "A simple algorithm for identifying abbreviation definitions in biomedical text" (PSB
# 2003): the characters of the short form are looked for in the words before it, from right to left.


_BRACKETS = re.compile(r"\(\s*([^()]*[^()\s])\s*\)")
_NEW_SENTENCE = re.compile(r"[.!?;:]\s|[()\[\]\n]")
_INSIDE_END = re.compile(r"\s*[;,]\s")
_TOKEN = re.compile(r"\S+")
_MOST_CHARACTERS, _MOST_WORDS = 10, 2


class Abbreviation(NamedTuple):
    """A short form and its long form, as the text writes them."""

    short: str
    long: str


def abbreviations(text: str) -> Iterator[Abbreviation]:
    """The definitions in a text, in order."""
    for brackets in _BRACKETS.finditer(text):
        inside = _INSIDE_END.split(brackets[1])[0]
        before = _NEW_SENTENCE.split(text[: brackets.start()].rstrip()[-400:])[-1]
        if _is_short_form(inside):
            if long := _long_form(inside, _last_words(before, inside)):
                yield Abbreviation(inside, long)
        elif (words := before.split()) and _is_short_form(words[-1]) and (long := _long_form(words[-1], inside)):
            yield Abbreviation(words[-1], long)


def _is_short_form(term: str) -> bool:
    """Two to ten characters in one or two words, with a letter, starting with a letter or digit."""
    return (
        2 <= len(term) <= _MOST_CHARACTERS
        and len(term.split()) <= _MOST_WORDS
        and term[0].isalnum()
        and any(character.isalpha() for character in term)
    )


def _last_words(text: str, short: str) -> str:
    """As many words before the brackets as the long form may have."""
    most = min(len(short) + 5, 2 * len(short))
    starts = [word.start() for word in _TOKEN.finditer(text)]
    return text[starts[-most:][0] :] if starts else ""


def _long_form(short: str, candidate: str) -> str | None:
    """The shortest end of the candidate with the short form's characters in order, the first at a word's start."""
    candidate = candidate.rstrip()
    at = len(candidate)
    wanted = [character for character in short.lower() if character.isalnum()]
    for number, character in reversed(list(enumerate(wanted))):
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
