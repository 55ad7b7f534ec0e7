"""Synonyms of entities, by exact lower-cased match with the names of concepts (paper 000, section 4.1).

A lexicon is made of a knowledge base (`concepts.py`) or of a corpus (`found_synonyms.py`) and kept as a compact file
(`lexicon_cache.py`), from which a hundred thousand concepts load in a fraction of a second.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from wingspan.corpora.concept_table import ConceptTable
from wingspan.corpora.concepts import Concept, read_concepts
from wingspan.corpora.formats import CorpusError, Problems
from wingspan.corpora.lexicon_cache import SUFFIX, read_table, write_table
from wingspan.corpora.term_keys import in_order, spelling, term_key
from wingspan.corpora.words import each_word

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
