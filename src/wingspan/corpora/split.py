"""Splits without leaks: articles and equal texts stay on one side, and every side gets its share of each label."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from wingspan.corpora.words import text_key
from wingspan.text import Document


def bundles(documents: Sequence[Document], grouped: bool = True) -> list[list[int]]:
    """Indices of documents that have to stay together because they share a group (or id) or their text.

    If they are not `grouped`, they share nothing by their group, as where `too_coarse` says that groups are too large.
    """
    root = list(range(len(documents)))

    def find(at: int) -> int:
        while root[at] != at:
            root[at] = root[root[at]]
            at = root[at]
        return at

    first: dict[tuple[str, str], int] = {}
    for at, document in enumerate(documents):
        keys = [("group", document.group if grouped and document.group is not None else document.id)]
        if text := text_key(document.text):
            keys.append(("text", text))
        for key in keys:
            root[find(at)] = find(first.setdefault(key, at))
    together: dict[int, list[int]] = defaultdict(list)
    for at in range(len(documents)):
        together[find(at)].append(at)
    return list(together.values())


def split(
    documents: Sequence[Document], shares: Mapping[str, float], seed: int = 0, grouped: bool = True
) -> dict[str, list[Document]]:
    """The documents of each part, in the order of the corpus. Shares are weights; the same seed gives the same split.

    Iterative stratification (Sechidis et al. 2011) over bundles: the rarest label is dealt out first, each bundle to
    the part that still misses most of it. The best of several random orders is taken, since bundles may be large.
    """
    total = sum(share for share in shares.values() if share > 0)
    weights = {name: share / total for name, share in shares.items() if share > 0}
    if not weights:
        raise ValueError("no part has a share; give at least one above zero")
    groups = bundles(documents, grouped)
    contents: list[Counter[str | None]] = []  # of each bundle: its labels, and None for each of its documents
    for group in groups:
        entities = (entity for at in group for entity in documents[at].entities)
        contents.append(Counter([None] * len(group)) + Counter(entity.label for entity in entities))
    totals = sum(contents, Counter[str | None]())
    generator = random.Random(seed)
    dealt = [_deal(contents, totals, weights, generator) for _ in range(20)]
    part_of = min(dealt, key=lambda deal: deal[1])[0]
    where = {at: part_of[group] for group, members in enumerate(groups) for at in members}
    return {name: [documents[at] for at in range(len(documents)) if where[at] == name] for name in weights}


def _deal(
    contents: Sequence[Counter[str | None]],
    totals: Counter[str | None],
    weights: Mapping[str, float],
    generator: random.Random,
) -> tuple[dict[int, str], float]:
    """A part for each bundle, and how far the parts are from their shares."""
    order = list(range(len(contents)))
    generator.shuffle(order)
    holders: dict[str | None, list[int]] = defaultdict(list)
    for group in order:
        for unit in contents[group]:
            holders[unit].append(group)
    missing = {name: {unit: weight * count for unit, count in totals.items()} for name, weight in weights.items()}
    part_of: dict[int, str] = {}
    for unit in sorted(holders, key=lambda unit: (len(holders[unit]), unit or "")):
        for group in holders[unit]:
            if group not in part_of:
                name = max(missing, key=lambda part: (missing[part][unit], missing[part][None]))
                part_of[group] = name
                for held, count in contents[group].items():
                    missing[name][held] -= count
    off = sum(
        (left / (weights[name] * totals[unit] + 1)) ** 2 for name in weights for unit, left in missing[name].items()
    )
    return part_of, off


def folds(documents: Sequence[Document], count: int, seed: int = 0, grouped: bool = True) -> list[list[Document]]:
    """The documents in `count` parts of about the same size, stratified and without leaks between them."""
    available = len(bundles(documents, grouped))
    if not 2 <= count <= available:
        raise ValueError(f"{count} folds of {available} independent documents; choose a number from 2 to {available}")
    parts = split(documents, {str(number): 1.0 for number in range(count)}, seed, grouped)
    return [parts[str(number)] for number in range(count)]
