"""What parts do differently while a graph of them is exported: sizes are symbols then, and tensors have no values."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

_longest: ContextVar[int | None] = ContextVar("longest", default=None)


@contextmanager
def exporting_rows(longest: int) -> Iterator[None]:
    """While it lasts, forward passes are written down as a graph, for rows of up to this many units."""
    token = _longest.set(longest)
    try:
        yield
    finally:
        _longest.reset(token)


def exporting() -> bool:
    """Whether the forward pass is being written down."""
    return _longest.get() is not None


def most_units(length: int) -> int:
    """The length that a loop has to be long enough for: the row's own, or in a graph that of any row."""
    longest = _longest.get()
    return length if longest is None else longest


def cached(most: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Keeps the last results of a function; none of a graph that is exported, which nothing else could use."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        kept = lru_cache(maxsize=most)(function)

        @wraps(function)
        def call(*arguments: Any) -> T:
            return function(*arguments) if exporting() else kept(*arguments)

        return call

    return decorate


Step = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, Tensor]]


def carried(step: Step, state: Tensor, rows: tuple[Tensor, ...], *, backwards: bool = False) -> tuple[Tensor, Tensor]:
    """Carries a state along the first dimension of the rows; the last state, and what each step gave beside it.

    `step(state, row)` returns the next state and a result. With `backwards` the last row is the first; results are in
    the order of the rows. A loop, or where a graph is exported one node of it, which any number of rows may enter.
    """
    if exporting():
        from torch._higher_order_ops.scan import scan

        def apart(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            state, result = step(state, row)
            return state, result.clone()  # it must be no other name of the state

        last, results = scan(apart, state.contiguous(), rows, reverse=backwards)
        return last, results
    given: list[Tensor] = []
    order = range(rows[0].shape[0])
    for at in reversed(order) if backwards else order:
        state, result = step(state, tuple(row[at] for row in rows))
        given.append(result)
    if not given:
        return state, state.new_empty(0, *state.shape)
    return state, torch.stack(given[::-1] if backwards else given)
