"""Splits without leaks: whole articles go to one side, equal texts too, and every side gets its share of each label."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from wingspan.text import Document


def normalized(text: str) -> str:
    """A text as it is compared for equality: case and white space aside."""
    return " ".join(text.casefold().split())


def bundles(documents: Sequence[Document]) -> list[list[int]]:
    """Places of documents that have to stay together, because they share a group (or id) or their text."""
    root = list(range(len(documents)))

    def find(at: int) -> int:
        while root[at] != at:
            root[at] = root[root[at]]
            at = root[at]
        return at

    first: dict[tuple[str, str], int] = {}
    for at, document in enumerate(documents):
        keys = [("group", document.group if document.group is not None else document.id)]
        if text := normalized(document.text):
            keys.append(("text", text))
        for key in keys:
            root[find(at)] = find(first.setdefault(key, at))
    together: dict[int, list[int]] = defaultdict(list)
    for at in range(len(documents)):
        together[find(at)].append(at)
    return list(together.values())


def split(documents: Sequence[Document], shares: Mapping[str, float], seed: int = 0) -> dict[str, list[Document]]:
    """The documents of each part, in the order of the corpus. Shares are weights; the same seed gives the same split.

    Iterative stratification (Sechidis et al. 2011) over bundles: the rarest label is dealt out first, each bundle to
    the part that still misses most of it.
    """
    names = [name for name, share in shares.items() if share > 0]
    if not names:
        raise ValueError("no part has a share; give at least one above zero")
    total = sum(shares[name] for name in names)
    weights = {name: shares[name] / total for name in names}
    groups = bundles(documents)
    random.Random(seed).shuffle(groups)
    counts = [Counter(entity.label for at in group for entity in documents[at].entities) for group in groups]
    holders: dict[str, list[int]] = defaultdict(list)
    overall: Counter[str] = Counter()
    for group, held in enumerate(counts):
        overall.update(held)
        for label in held:
            holders[label].append(group)
    missing = {name: {label: weights[name] * count for label, count in overall.items()} for name in names}
    room = {name: weights[name] * len(documents) for name in names}
    part_of: dict[int, str] = {}

    def deal(group: int, label: str | None) -> None:
        if group in part_of:
            return
        name = max(names, key=lambda part: (room[part] if label is None else missing[part][label], room[part]))
        part_of[group] = name
        room[name] -= len(groups[group])
        for held, count in counts[group].items():
            missing[name][held] -= count

    for label in sorted(holders, key=lambda label: (len(holders[label]), label)):
        for group in holders[label]:
            deal(group, label)
    for group in range(len(groups)):
        deal(group, None)
    where = {at: part_of[group] for group, members in enumerate(groups) for at in members}
    return {name: [documents[at] for at in range(len(documents)) if where[at] == name] for name in names}


def folds(documents: Sequence[Document], count: int, seed: int = 0) -> list[list[Document]]:
    """The documents in `count` parts of about the same size, stratified and without leaks between them."""
    available = len(bundles(documents))
    if not 2 <= count <= available:
        raise ValueError(f"{count} folds of {available} independent documents; choose a number from 2 to {available}")
    parts = split(documents, {str(number): 1.0 for number in range(count)}, seed)
    return [parts[str(number)] for number in range(count)]
