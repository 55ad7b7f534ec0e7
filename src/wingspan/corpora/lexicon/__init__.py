"""Synonyms of entities, by exact lower-cased match with the names of concepts (Nguyen et al. 2023, section 4.1).

A lexicon is built from a knowledge base (`concepts.py`) or a corpus (`synonyms.py`). It lives in SQLite: in memory
while it is built, then in one file that is queried and never loaded whole.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from wingspan.corpora.lexicon.concepts import Concept, read_concepts
from wingspan.files import CorpusError, Problems, atomic_path
from wingspan.text import Document

Ambiguous = Literal["all", "first", "type"]
"""Which concepts of an ambiguous term count: all, the first in file order, or those of the entity's type."""

SUFFIX = ".sqlite"
_APPLICATION_ID, _VERSION = 0x57534C58, 1
_SCHEMA = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {_VERSION};
CREATE TABLE summary (json TEXT);
CREATE TABLE concept (number INTEGER PRIMARY KEY, id TEXT, names TEXT, types TEXT);
CREATE TABLE term (key TEXT, concept INTEGER, PRIMARY KEY (key, concept)) WITHOUT ROWID;
"""


class _Connection(sqlite3.Connection):
    """Closes itself with the last lexicon that uses it."""

    def __del__(self) -> None:
        self.close()


@dataclass(frozen=True)
class Lexicon:
    """Concepts with names, looked up by term. `label_types` maps a label to the semantic types it stands for."""

    database: sqlite3.Connection
    num_concepts: int
    num_names: int
    types: tuple[str, ...]  # the semantic types that occur
    folds: tuple[str, ...]
    path: Path | None = None
    ambiguous: Ambiguous = "all"
    label_types: Mapping[str, Collection[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses an unknown policy for ambiguous terms."""
        if self.ambiguous not in get_args(Ambiguous):
            raise ValueError(f"unknown choice {self.ambiguous!r} for ambiguous terms; use all, first or type")

    @classmethod
    def of(cls, concepts: Iterable[Concept], folds: Iterable[str] = ()) -> Lexicon:
        """Joins concepts with the same id; of names with the same spelling the first is kept. `folds`: see `FOLDS`."""
        folds = in_order(folds)
        names: dict[str, dict[str, str]] = {}
        types: dict[str, dict[str, None]] = {}
        for concept in concepts:
            spellings = names.setdefault(concept.id, {})
            for name in concept.names:
                if plain := " ".join(name.split()):
                    spellings.setdefault(spelling(plain), plain)
            types.setdefault(concept.id, {}).update(dict.fromkeys(concept.types))
        counts = len(names), sum(map(len, names.values()))
        all_types = tuple(dict.fromkeys(type for own in types.values() for type in own))
        keys = {(term_key(name, folds), at) for at, own in enumerate(names.values()) for name in own.values()}
        database = sqlite3.connect(":memory:", factory=_Connection, check_same_thread=False)
        database.executescript(_SCHEMA)
        database.execute("INSERT INTO summary VALUES (?)", [json.dumps([*counts, all_types, folds])])
        database.executemany(
            "INSERT INTO concept VALUES (?, ?, ?, ?)",
            (
                (at, id, *(json.dumps(list(texts), ensure_ascii=False) for texts in (own.values(), types[id])))
                for at, (id, own) in enumerate(names.items())
            ),
        )
        database.executemany("INSERT INTO term VALUES (?, ?)", sorted(keys))
        database.commit()
        return cls(database, *counts, all_types, folds)

    def __len__(self) -> int:
        return self.num_concepts

    def concepts(self) -> Iterator[Concept]:
        """All concepts, in file order."""
        return self._select("FROM concept ORDER BY number")

    def lookup(self, surface: str, label: str | None = None) -> tuple[Concept, ...]:
        """The concepts with this name that `ambiguous` admits, in file order."""
        query = "FROM term JOIN concept ON number = concept WHERE key = ? ORDER BY number"
        concepts = tuple(self._select(query, term_key(surface, self.folds)))
        if self.ambiguous == "first":
            return concepts[:1]
        if self.ambiguous == "type" and label is not None:
            types = {type.lower() for type in self.label_types.get(label, (label,))}
            # a concept without types agrees with every label
            return tuple(c for c in concepts if not c.types or any(type.lower() in types for type in c.types))
        return concepts

    def synonyms(self, surface: str, label: str | None = None) -> tuple[str, ...]:
        """The other names of its concepts, each once, in file order; none for an unknown term."""
        names: dict[str, str] = {}
        for concept in self.lookup(surface, label):
            for name in concept.names:
                names.setdefault(spelling(name), name)
        names.pop(spelling(surface), None)
        return tuple(names.values())

    def save(self, path: str | Path) -> None:
        """Writes a SQLite file, equal bytes for equal lexicons; the policy for ambiguous terms is not saved."""
        path = Path(path)
        if path.suffix != SUFFIX:
            raise CorpusError(f"{path}: a lexicon is saved as a {SUFFIX} file; name it {path.stem}{SUFFIX}")
        with atomic_path(path) as part, closing(sqlite3.connect(part)) as file:
            self.database.backup(file)

    def _select(self, query: str, *values: str) -> Iterator[Concept]:
        try:
            for id, names, types in self.database.execute(f"SELECT id, names, concept.types {query}", values):
                yield Concept(id, tuple(json.loads(names)), tuple(json.loads(types)))
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            raise _damaged(self.path, error) from error


def load(
    path: str | Path, *, ambiguous: Ambiguous = "all", label_types: Mapping[str, Collection[str]] | None = None
) -> Lexicon:
    """Opens a saved lexicon, or builds one from a source of concepts (.tsv, .obo, .rrf), which takes longer."""
    path = Path(path)
    if not path.exists():
        raise CorpusError(
            f"{path}: there is no such lexicon; check the path, or make one: wingspan lexicon SOURCE --output {path}"
        )
    if path.suffix == ".npz":
        raise CorpusError(
            f"{path}: lexicons are {SUFFIX} files now; build it again from its sources: "
            f"wingspan lexicon SOURCE --output {path.with_suffix(SUFFIX)}"
        )
    lexicon = _open(path) if path.suffix == SUFFIX else Lexicon.of(read_concepts(path, Problems()))
    return replace(lexicon, ambiguous=ambiguous, label_types=label_types or {})


def _open(path: Path) -> Lexicon:
    """The lexicon in a file, read-only; nothing that the file's schema defines is run."""
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    try:
        database = sqlite3.connect(address, uri=True, factory=_Connection, check_same_thread=False)
        database.execute("PRAGMA trusted_schema = OFF")
        pragmas = [database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        if pragmas != [_APPLICATION_ID, _VERSION]:
            raise ValueError("another kind or version of file")
        ((text,),) = database.execute("SELECT json FROM summary")
        concepts, names, types, folds = json.loads(text)
        return Lexicon(database, int(concepts), int(names), tuple(types), in_order(folds), path)
    except (sqlite3.DatabaseError, ValueError, TypeError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path | None, error: Exception) -> CorpusError:
    return CorpusError(
        f"{path}: this version cannot read it as a lexicon ({error}); build it again with wingspan lexicon"
    )


# Folding affects which terms match, not which names are synonyms: "tumors" stays a synonym of "tumor" where a concept
# has both.

_HYPHENS = re.compile("[-\u2010-\u2015\u2212]")
_SIGN = re.compile(r"\s*([^\w\s])\s*")
_WORD = re.compile(r"[^\W\d_]{5,}")  # shorter ones are often abbreviations: AIDS, SARS
_ES = ("sses", "xes", "ches", "shes", "uses", "zes")


def _singular(word: str) -> str:
    """One form for singular and plural, by rules of English; not always a word (metastasis, metastases: metastase)."""
    if word.endswith("sis"):
        return word[:-2] + "e"
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(_ES):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


# differences that folding removes from lower-cased terms, in the order of application
FOLDS: dict[str, Callable[[str], str]] = {
    "hyphen": lambda key: " ".join(_HYPHENS.sub(" ", key).split()),
    # no space beside a sign: a corpus of words has "parkinson ' s disease" for "parkinson's disease"
    "spacing": lambda key: _SIGN.sub(r"\1", key),
    "plural": lambda key: _WORD.sub(lambda word: _singular(word[0]), key),
}


def in_order(folds: Iterable[str]) -> tuple[str, ...]:
    """The chosen folds in the order of application; an unknown one raises."""
    chosen = set(folds)
    if unknown := chosen - set(FOLDS):
        raise ValueError(f"unknown fold {', '.join(sorted(unknown))}; use {', '.join(FOLDS)}")
    return tuple(name for name in FOLDS if name in chosen)


def spelling(name: str) -> str:
    """The form that two names share if they are one: without case and the spacing that splitting into words adds."""
    return term_key(name, ("spacing",))


def term_key(term: str, folds: Iterable[str] = ()) -> str:
    """The form that two terms share if they match. Case and runs of white space never matter."""
    key = " ".join(term.lower().split())
    for name in folds:
        key = FOLDS[name](key)
    return key


@dataclass
class SynonymCounts:
    """How many entities are names in a lexicon, names of several concepts (ambiguous), and names with synonyms."""

    entities: int = 0
    known: int = 0
    ambiguous: int = 0
    with_synonyms: int = 0

    @property
    def percent(self) -> float:
        """Entities with synonyms, in percent: the column Syn_cov of Nguyen et al. 2023, table 1."""
        return 100 * self.with_synonyms / self.entities if self.entities else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        return {**vars(self), "synonym_coverage": round(self.percent, 2)}


@dataclass
class LexiconCoverage:
    """The counts of a corpus, over all entities and for each label."""

    documents: int = 0
    overall: SynonymCounts = field(default_factory=SynonymCounts)
    labels: dict[str, SynonymCounts] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        labels = {label: counts.to_dict() for label, counts in sorted(self.labels.items())}
        return {"documents": self.documents, **self.overall.to_dict(), "labels": labels}


def coverage(lexicon: Lexicon, documents: Iterable[Document]) -> LexiconCoverage:
    """Looks up every entity of a corpus."""
    result = LexiconCoverage()
    seen: dict[tuple[str, str], tuple[int, bool]] = {}  # corpora repeat their names
    for document in documents:
        result.documents += 1
        for entity in document.entities:
            term = document.text_of(entity), entity.label
            if term not in seen:
                seen[term] = len(lexicon.lookup(*term)), bool(lexicon.synonyms(*term))
            concepts, has_synonyms = seen[term]
            for counts in (result.overall, result.labels.setdefault(entity.label, SynonymCounts())):
                counts.entities += 1
                counts.known += concepts > 0
                counts.ambiguous += concepts > 1
                counts.with_synonyms += has_synonyms
    return result


def require_overlap(coverage: LexiconCoverage, lexicon: Lexicon, corpus: str) -> None:
    """Raises, with counts, where no entity of the corpus has a synonym."""
    counts = coverage.overall
    if counts.with_synonyms:
        return
    if not counts.entities:
        raise CorpusError(f"{corpus}: its {coverage.documents:,} documents have no entities; give a gold corpus")
    if lexicon.ambiguous == "type":
        fix = (
            f"labels are {', '.join(sorted(coverage.labels))}, types of the lexicon {', '.join(lexicon.types[:8])}; "
            "say which belong together with --label-types LABEL=TYPE"
        )
    else:
        fix = "check that the lexicon is about the same things, or fold terms with --fold"
    raise CorpusError(
        f"{corpus}: of {counts.entities:,} entities {counts.known:,} are among the {lexicon.num_names:,} names of the "
        f"{len(lexicon):,} concepts, and none has a synonym; {fix}"
    )
