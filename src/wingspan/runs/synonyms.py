"""What `train --lexicon` takes: a file of synonyms, or `corpus` for those that the training documents hold."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from wingspan.corpora.found_synonyms import found_synonyms
from wingspan.corpora.lexicon import Lexicon, load
from wingspan.naming import Synonyms
from wingspan.text import Document


def lexicon_of(given: str | Path | Synonyms | None, documents: Sequence[Document]) -> Synonyms | None:
    """The lexicon of a training; one that is there already is taken as it is."""
    if given is None or not isinstance(given, str | Path):
        return given
    if str(given) != "corpus":
        return load(given)
    concepts = [concept for found in found_synonyms(documents).values() for concept in found]
    if not concepts:
        raise ValueError(
            f"--lexicon corpus: the {len(documents):,} training documents have no synonyms "
            "(mentions with one concept id, abbreviations in brackets, chains); give a file"
        )
    return Lexicon.of(concepts)


def fingerprint(studied: Mapping[str, Any]) -> str | None:
    """What objectives know of the data, the lexicon's part in it above all, as one number; None where it is nothing."""
    return sha256(json.dumps(studied, sort_keys=True).encode()).hexdigest()[:16] if studied else None
