"""How many entities of a corpus have synonyms in a lexicon: the column Syn_cov of paper 000, table 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from wingspan.corpora.formats import CorpusError
from wingspan.corpora.lexicon import Lexicon
from wingspan.text import Document


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
