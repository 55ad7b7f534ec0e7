"""Synonyms of entities, by exact lower-cased match with the names of concepts (paper 000, section 4.1).

A lexicon is made of a knowledge base (`concepts.py`) or of a corpus (`found_synonyms.py`) and kept as a compact file
(`lexicon_cache.py`), from which a hundred thousand concepts load in a fraction of a second.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from mmap import mmap
from pathlib import Path
from typing import Any, Literal, get_args
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from wingspan.corpora.lexicon.concepts import Concept, read_concepts
from wingspan.corpora.words import each_word
from wingspan.files import CorpusError, Problems, atomic_path
from wingspan.text import Document

Ambiguous = Literal["all", "first", "type"]
"""Which concepts of a term with several count: all, the first of the file, or those whose type is the entity's."""


@dataclass(frozen=True)
class Lexicon:
    """Concepts with names, looked up by term. `label_types` says which types an entity's label stands for."""

    table: ConceptTable
    folds: tuple[str, ...] = ()
    ambiguous: Ambiguous = "all"
    label_types: Mapping[str, Collection[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A choice that does not exist is said here."""
        if self.ambiguous not in get_args(Ambiguous):
            raise ValueError(f"unknown choice {self.ambiguous!r} for ambiguous terms; use all, first or type")

    @classmethod
    def of(cls, concepts: Iterable[Concept], folds: Iterable[str] = ()) -> Lexicon:
        """A lexicon of these concepts; those of one id are joined. `folds` are names of `term_keys.FOLDS`."""
        chosen = in_order(folds)
        return cls(ConceptTable.of(concepts, lambda term: term_key(term, chosen)), chosen)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def num_names(self) -> int:
        """How many names all concepts have together."""
        return len(self.table.names)

    @property
    def types(self) -> tuple[str, ...]:
        """The semantic types that occur."""
        return tuple(dict.fromkeys(one for types in self.table.types for one in types))

    def concepts(self) -> Iterator[Concept]:
        """All concepts, in the order of their files."""
        return map(self.table.concept, range(len(self)))

    def lookup(self, surface: str, label: str | None = None) -> tuple[Concept, ...]:
        """The concepts that have this name, as many of them as `ambiguous` lets through."""
        found = [self.table.concept(number) for number in self.table.find(self._key(surface), self._key)]
        if self.ambiguous == "first":
            return tuple(found[:1])
        if self.ambiguous == "type" and label is not None:
            return tuple(concept for concept in found if self._agrees(concept, label))
        return tuple(found)

    def synonyms(self, surface: str, label: str | None = None) -> tuple[str, ...]:
        """The other names of its concepts, each once, in the order of the files; none for an unknown term."""
        names: dict[str, str] = {}
        for concept in self.lookup(surface, label):
            for name in concept.names:
                names.setdefault(spelling(name), name)
        names.pop(spelling(surface), None)
        return tuple(names.values())

    def vocabulary(self, surfaces: Iterable[tuple[str, str | None]] | None = None) -> Counter[str]:
        """How often each word occurs in the synonyms of these surfaces and labels; without them, in all names."""
        if surfaces is None:
            names: Iterable[str] = (self.table.names[number] for number in range(self.num_names))
        else:
            names = (name for surface, label in surfaces for name in self.synonyms(surface, label))
        return Counter(name[start:end] for name in names for start, end in each_word(name))

    def save(self, path: str | Path) -> None:
        """Writes the compact file; how ambiguous terms are treated is not part of it."""
        write_table(self.table, self.folds, Path(path))

    def _key(self, term: str) -> str:
        return term_key(term, self.folds)

    def _agrees(self, concept: Concept, label: str) -> bool:
        """Whether one of its types is the label's; a concept without types agrees with every label."""
        wanted = {one.lower() for one in self.label_types.get(label, (label,))}
        return not concept.types or any(one.lower() in wanted for one in concept.types)


def load(
    path: str | Path,
    *,
    ambiguous: Ambiguous = "all",
    label_types: Mapping[str, Collection[str]] | None = None,
    problems: Problems | None = None,
) -> Lexicon:
    """A lexicon from its compact file, or from a source of concepts (.tsv, .obo, .rrf), which takes longer."""
    path = Path(path)
    if not path.exists():
        raise CorpusError(
            f"{path}: there is no such lexicon; check the path, or make one: wingspan lexicon SOURCE --output {path}"
        )
    if path.suffix == SUFFIX:
        lexicon = Lexicon(*read_table(path))
    else:
        lexicon = Lexicon.of(read_concepts(path, problems if problems is not None else Problems()))
    return replace(lexicon, ambiguous=ambiguous, label_types=label_types or {})


# --- Concepts and their names as a few arrays: no Python object per name, so that they load at once and stay small.
#
# All names stand one after the other in one run of bytes, those of a concept side by side. A term is found by the
# checksum of its key among the sorted checksums of all names; the names found are compared, as checksums may
# coincide.


Key = Callable[[str], str]


@dataclass(frozen=True)
class Strings:
    """Many strings in one run of UTF-8."""

    text: bytes | mmap
    ends: NDArray[np.int64]  # (N,)

    @classmethod
    def of(cls, strings: Iterable[str]) -> Strings:
        """Packs strings."""
        packed = [string.encode() for string in strings]
        return cls(b"".join(packed), np.cumsum([len(string) for string in packed], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> str:
        start = self.ends[number - 1] if number else 0
        return self.text[start : self.ends[number]].decode()


@dataclass(frozen=True)
class ConceptTable:
    """C concepts with N names. Names are numbered through; concept c has those from `first[c]` to `first[c + 1]`."""

    ids: Strings  # C of them
    names: Strings  # N of them
    first: NDArray[np.int64]  # (C + 1,)
    checksums: NDArray[np.uint32]  # (N,), sorted
    places: NDArray[np.uint32]  # (N,), the name that has the checksum
    kinds: NDArray[np.uint32]  # (C,), which of `types` the concept has
    types: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, concepts: Iterable[Concept], key: Key) -> ConceptTable:
        """Collects concepts. Those of one id are joined; of names with one spelling the first is kept."""
        names: dict[str, dict[str, str]] = {}
        types: dict[str, dict[str, None]] = {}
        for concept in concepts:
            mine = names.setdefault(concept.id, {})
            for name in concept.names:
                plain = " ".join(name.split())
                if plain:
                    mine.setdefault(spelling(plain), plain)
            types.setdefault(concept.id, {}).update(dict.fromkeys(concept.types))
        packed = Strings.of(name for mine in names.values() for name in mine.values())
        checksums = np.fromiter((checksum(key(packed[number])) for number in range(len(packed))), np.uint32)
        order = np.argsort(checksums, kind="stable")
        kinds: dict[tuple[str, ...], int] = {}
        return cls(
            Strings.of(names),
            packed,
            np.cumsum([0, *(len(mine) for mine in names.values())], dtype=np.int64),
            checksums[order],
            order.astype(np.uint32),
            np.fromiter((kinds.setdefault(tuple(mine), len(kinds)) for mine in types.values()), np.uint32),
            tuple(kinds),
        )

    def __len__(self) -> int:
        return len(self.ids)

    def concept(self, number: int) -> Concept:
        """A concept by its number."""
        names = tuple(self.names[at] for at in range(self.first[number], self.first[number + 1]))
        return Concept(self.ids[number], names, self.types[self.kinds[number]])

    def find(self, wanted: str, key: Key) -> list[int]:
        """The numbers of the concepts that have a name with this key, each once, in the order of their files."""
        value = np.uint32(checksum(wanted))  # of the array's type, or the whole array would be converted
        start, end = np.searchsorted(self.checksums, value, "left"), np.searchsorted(self.checksums, value, "right")
        found = [place for place in self.places[start:end] if key(self.names[int(place)]) == wanted]
        concepts = np.searchsorted(self.first, np.array(found, np.int64), "right") - 1
        return list(dict.fromkeys(concepts.tolist()))


def checksum(key: str) -> int:
    """32 bits that equal keys share."""
    return crc32(key.encode())


# --- The compact file of a lexicon: numpy arrays in one .npz, nothing in it that has to be unpickled.


SUFFIX = ".npz"
_KIND, _VERSION = "wingspan lexicon", 1
_Bytes = np.uint8


def write_table(table: ConceptTable, folds: tuple[str, ...], path: Path) -> None:
    """Writes under a temporary name, then renames. Equal tables give equal bytes."""
    if path.suffix != SUFFIX:
        raise CorpusError(f"{path}: a compact lexicon is a {SUFFIX} file; name it {path.name}{SUFFIX}")
    header = {"kind": _KIND, "version": _VERSION, "folds": folds, "types": table.types}
    with atomic_path(path) as part, part.open("wb") as out:
        np.savez_compressed(
            out,
            header=np.frombuffer(json.dumps(header).encode(), _Bytes),
            ids=np.frombuffer(table.ids.text, _Bytes),
            id_sizes=_sizes(table.ids.ends),
            names=np.frombuffer(table.names.text, _Bytes),
            name_sizes=_sizes(table.names.ends),
            names_of_concept=np.diff(table.first).astype(np.uint32),
            checksums=table.checksums,
            places=table.places,
            kinds=table.kinds,
        )


def read_table(path: Path) -> tuple[ConceptTable, tuple[str, ...]]:
    """The table of a file, and how its terms are folded."""
    try:
        # a file that is no zip is refused before numpy guesses what else it may be
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header.get("kind") != _KIND or header.get("version") != _VERSION:
                raise ValueError("another kind or version")
            table = ConceptTable(
                Strings(file["ids"].tobytes(), _ends(file["id_sizes"])),
                Strings(file["names"].tobytes(), _ends(file["name_sizes"])),
                np.concatenate([[0], _ends(file["names_of_concept"])]),
                file["checksums"],
                file["places"],
                file["kinds"],
                tuple(map(tuple, header["types"])),
            )
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CorpusError(
            f"{path}: this is no lexicon that this version can read; make it again with wingspan lexicon"
        ) from error
    return table, in_order(header["folds"])


def _sizes(ends: np.ndarray) -> np.ndarray:
    """Lengths take less room than places when they are compressed."""
    return np.diff(ends, prepend=0).astype(np.uint32)


def _ends(sizes: np.ndarray) -> np.ndarray:
    return np.cumsum(sizes, dtype=np.int64)


# --- When two terms match: lower-cased and, if asked for, with plurals, hyphens or spacing folded away.
#
# Folding finds a term; it makes no name out of two. "tumors" stays a synonym of "tumor" where a concept has both.


_HYPHENS = re.compile("[-\u2010-\u2015\u2212]")
_SIGN = re.compile(r"\s*([^\w\s])\s*")
_WORD = re.compile(r"[^\W\d_]{5,}")  # shorter ones are often abbreviations: AIDS, SARS
_ES = ("sses", "xes", "ches", "shes", "uses", "zes")


def _without_hyphens(key: str) -> str:
    return " ".join(_HYPHENS.sub(" ", key).split())


def _without_spacing(key: str) -> str:
    """No space beside a sign: a corpus of words has "parkinson ' s disease" for "parkinson's disease"."""
    return _SIGN.sub(r"\1", key)


def _without_plurals(key: str) -> str:
    return _WORD.sub(lambda word: _singular(word[0]), key)


def _singular(word: str) -> str:
    """The same form for singular and plural, by rules of English; it need not be a word (metastasis, metastases)."""
    if word.endswith("sis"):
        return word[:-2] + "e"
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(_ES):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


FOLDS: dict[str, Callable[[str], str]] = {
    "hyphen": _without_hyphens,
    "spacing": _without_spacing,
    "plural": _without_plurals,
}
"""What may be folded, in the order in which it is."""


def in_order(folds: Iterable[str]) -> tuple[str, ...]:
    """The chosen folds in the order in which they are applied; an unknown one raises."""
    chosen = set(folds)
    if unknown := chosen - set(FOLDS):
        raise ValueError(f"unknown fold {', '.join(sorted(unknown))}; use {', '.join(FOLDS)}")
    return tuple(name for name in FOLDS if name in chosen)


def spelling(name: str) -> str:
    """What two names share if they are one: all but case and the spacing that splitting into words adds."""
    return term_key(name, ("spacing",))


def term_key(term: str, folds: Iterable[str] = ()) -> str:
    """What two terms must share to match. Case and runs of white space never matter."""
    key = " ".join(term.lower().split())
    for name in folds:
        key = FOLDS[name](key)
    return key


# --- How many entities of a corpus have synonyms in a lexicon: the column Syn_cov of paper 000, table 1.


@dataclass
class Share:
    """Of so many entities, how many are names in the lexicon, and how many of those have synonyms there."""

    entities: int = 0
    known: int = 0
    covered: int = 0
    ambiguous: int = 0
    """Names of several concepts."""

    @property
    def percent(self) -> float:
        """Entities with synonyms, in percent."""
        return 100 * self.covered / self.entities if self.entities else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        counts = {"entities": self.entities, "known": self.known, "ambiguous": self.ambiguous}
        return {**counts, "with_synonyms": self.covered, "synonym_coverage": round(self.percent, 2)}


@dataclass
class LexiconCoverage:
    """The shares of a corpus, over all entities and for each label."""

    documents: int = 0
    overall: Share = field(default_factory=Share)
    labels: dict[str, Share] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        labels = {label: share.to_dict() for label, share in sorted(self.labels.items())}
        return {"documents": self.documents, **self.overall.to_dict(), "labels": labels}


def coverage(lexicon: Lexicon, documents: Iterable[Document]) -> LexiconCoverage:
    """Looks up every entity of a corpus."""
    found = LexiconCoverage()
    seen: dict[tuple[str, str], tuple[int, bool]] = {}  # corpora repeat their names
    for document in documents:
        found.documents += 1
        for entity in document.entities:
            term = document.text_of(entity), entity.label
            if term not in seen:
                seen[term] = len(lexicon.lookup(*term)), bool(lexicon.synonyms(*term))
            concepts, covered = seen[term]
            for share in (found.overall, found.labels.setdefault(entity.label, Share())):
                share.entities += 1
                share.known += concepts > 0
                share.ambiguous += concepts > 1
                share.covered += covered
    return found


def require_overlap(found: LexiconCoverage, lexicon: Lexicon, corpus: str) -> None:
    """Raises, with counts, where no entity of the corpus has a synonym."""
    share = found.overall
    if share.covered:
        return
    if not share.entities:
        raise CorpusError(f"{corpus}: there are no entities in its {found.documents:,} documents; give a gold corpus")
    reason = (
        f"{corpus}: of {share.entities:,} entities {share.known:,} are among the {lexicon.num_names:,} names of the "
        f"{len(lexicon):,} concepts, and none has a synonym"
    )
    if lexicon.ambiguous == "type":
        fix = (
            f"labels are {', '.join(sorted(found.labels))}, types of the lexicon {', '.join(lexicon.types[:8])}; "
            "say which belong together with --label-types LABEL=TYPE"
        )
    else:
        fix = "check that the lexicon is about the same things, or fold terms with --fold"
    raise CorpusError(f"{reason}; {fix}")
