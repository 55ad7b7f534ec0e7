"""The batches of an epoch where sentences come from several corpora: how many of each, and who shares a batch.

Everything follows from (seed, phase, epoch), so that a run that is resumed goes on as it would have.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from wingspan.batch import batches, cut
from wingspan.recipe import TrainSettings


def epoch_batches(
    lengths: Sequence[int],
    corpora: Sequence[str],
    settings: TrainSettings,
    weights: Mapping[str, float],
    seed: tuple[int, int],
    epoch: int,
) -> list[list[int]]:
    """Indices of sentences, batch by batch. `corpora` names that of each sentence; a weight of 1 is left out or given.

    An epoch has as many sentences as there are. Where that is not each of them once, a corpus is gone through in
    shuffled rounds, and the next epoch goes on where the last one stopped.
    """
    members: dict[str, list[int]] = {}
    for index, name in enumerate(corpora):
        members.setdefault(name, []).append(index)
    shares = {name: weights.get(name, 1.0) for name in members}
    once = settings.sampling == "proportion" and len(set(shares.values())) <= 1
    if len(members) <= 1 or (once and settings.batches == "mixed"):
        return batches(lengths, settings.batch_size, budget=settings.budget, seed=(*seed, epoch))
    if settings.sampling == "each":
        return _of_each(lengths, members, settings, shares, seed, epoch)
    power = {"proportion": 1.0, "uniform": 0.0, "temperature": 1 / settings.temperature}[settings.sampling]
    quotas = apportion(len(lengths), {name: shares[name] * len(own) ** power for name, own in members.items()})
    drawn = {
        name: draw(own, epoch * quotas[name], quotas[name], (*seed, at))
        for at, (name, own) in enumerate(members.items())
    }
    if settings.batches == "mixed":
        return _cut([index for part in drawn.values() for index in part], lengths, settings, (*seed, epoch))
    parts = [_cut(part, lengths, settings, (*seed, epoch, at)) for at, part in enumerate(drawn.values())]
    random = np.random.default_rng([*seed, epoch])
    if settings.batches == "single":
        together = [batch for part in parts for batch in part]
        return [together[at] for at in random.permutation(len(together))]
    # each corpus' batches at equal distances over the epoch, so that neighbors are of different corpora
    places = [
        ((at + first) / len(part), batch)
        for part, first in zip(parts, random.random(len(parts)), strict=True)
        for at, batch in enumerate(part)
    ]
    return [batch for _, batch in sorted(places, key=lambda place: place[0])]


def kept(found: list[list[int]], settings: TrainSettings) -> list[list[int]]:
    """All batches of an epoch, or only those that are full, if that is asked for."""
    if not settings.whole_batches:
        return found
    whole = [batch for batch in found if len(batch) == settings.batch_size]
    if not whole:
        raise ValueError(
            f"train.whole_batches: no batch of {settings.batch_size} sentences can be filled; "
            "lower train.batch_size, or raise train.budget"
        )
    return whole


def _cut(part: Sequence[int], lengths: Sequence[int], settings: TrainSettings, seed: Sequence[int]) -> list[list[int]]:
    """Batches of some sentences."""
    own = [lengths[index] for index in part]
    return [
        [part[at] for at in batch] for batch in batches(own, settings.batch_size, budget=settings.budget, seed=seed)
    ]


def _of_each(
    lengths: Sequence[int],
    members: Mapping[str, list[int]],
    settings: TrainSettings,
    shares: Mapping[str, float],
    seed: tuple[int, int],
    epoch: int,
) -> list[list[int]]:
    """Batches with a fixed number of sentences of each corpus, in one batch or, where they are not mixed, in turns."""
    if settings.batch_size < len(members):
        raise ValueError(
            f"train.batch_size is {settings.batch_size}, and train.sampling=each draws from {len(members)} corpora; "
            f"give at least {len(members)}"
        )
    counts = apportion(settings.batch_size, shares)
    steps = math.ceil(len(lengths) / settings.batch_size)
    drawn = {
        name: draw(own, epoch * steps * counts[name], steps * counts[name], (*seed, at))
        for at, (name, own) in enumerate(members.items())
    }
    found: list[list[int]] = []
    for step in range(steps):
        parts = [drawn[name][step * counts[name] : (step + 1) * counts[name]] for name in members]
        if settings.batches == "mixed":
            parts = [[index for part in parts for index in part]]
        for part in parts:
            order = sorted(part, key=lambda index: -lengths[index])
            found += cut(order, lengths, settings.batch_size, settings.budget)
    return found


def apportion(total: int, shares: Mapping[str, float]) -> dict[str, int]:
    """A number in whole parts as near to the shares as can be (largest remainders), at least 1 each."""
    exact = {name: total * share / sum(shares.values()) for name, share in shares.items()}
    parts = {name: max(1, math.floor(value)) for name, value in exact.items()}
    rest = sorted(exact, key=lambda name: -(exact[name] % 1))
    for name in rest[: max(0, total - sum(parts.values()))]:
        parts[name] += 1
    while sum(parts.values()) > max(total, len(parts)):  # what the smallest were given is taken from the largest
        parts[max(parts, key=lambda name: parts[name])] -= 1
    return parts


def draw(members: Sequence[int], start: int, number: int, seed: Sequence[int]) -> list[int]:
    """So many places, from `start` on, of an endless row of shuffled rounds through the members."""
    found: list[int] = []
    while len(found) < number:
        round, at = divmod(start + len(found), len(members))
        order = np.random.default_rng([*seed, round]).permutation(len(members))
        found += [members[index] for index in order[at : at + number - len(found)].tolist()]
    return found
