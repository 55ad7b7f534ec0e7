"""A part of the training documents, for learning curves."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from wingspan.text import Document


def fraction_of(documents: Sequence[Document], fraction: float, seed: int) -> list[Document]:
    """About so many of the documents, whole groups, at least one; less is always a part of more with the same seed."""
    if fraction >= 1:
        return list(documents)
    names = [
        f"row {n}" if document.group is None else f"group {document.group}" for n, document in enumerate(documents)
    ]
    sizes = Counter(names)
    kept: set[str] = set()
    number = 0
    for name in sorted(sizes, key=lambda name: hashlib.sha256(f"{seed} {name}".encode()).digest()):
        if kept and number >= fraction * len(names):
            break
        kept.add(name)
        number += sizes[name]
    return [document for name, document in zip(names, documents, strict=True) if name in kept]
