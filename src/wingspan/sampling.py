"""Which sentences share a batch: alike in length, few enough to fit in memory, in an order drawn from the seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np


def batches(
    lengths: Sequence[int],
    batch_size: int,
    *,
    budget: int | None = None,
    seed: Sequence[int] | None = None,
) -> list[list[int]]:
    """Indices batch by batch. Sentences of similar length go together, so that little is spent on padding.

    `budget` limits units times sentences of a batch after padding; a sentence over it gets a batch of its own.
    With a seed the order is random and repeatable; without, longest first.
    """
    if seed is None:
        order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
        return list(cut(order, lengths, batch_size, budget))
    random = np.random.default_rng(list(seed))
    shuffled = random.permutation(len(lengths))
    pool = 32 * batch_size  # sorted by length inside a pool only: batches stay different from epoch to epoch
    cuts: list[list[int]] = []
    for at in range(0, len(shuffled), pool):
        order = sorted(shuffled[at : at + pool].tolist(), key=lambda i: -lengths[i])
        cuts.extend(cut(order, lengths, batch_size, budget))
    return [cuts[i] for i in random.permutation(len(cuts))]


def cut(order: Sequence[int], lengths: Sequence[int], batch_size: int, budget: int | None) -> Iterator[list[int]]:
    """Cuts an order (longest first) into batches."""
    batch: list[int] = []
    for index in order:
        longest = max(lengths[batch[0]] if batch else 0, lengths[index])
        full = len(batch) == batch_size or (budget is not None and longest * (len(batch) + 1) > budget)
        if batch and full:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
