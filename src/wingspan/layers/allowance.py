"""A model is never built far larger than its weights: a folder that asks for it is damaged, or an attack."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

FACTOR = 8  # decoders, poolers and heads are built and thrown away
FREE_TENSORS, FREE_NUMBERS = 1_000, 50_000_000
DRAWS = (torch.ops.aten.normal_.default, torch.ops.aten.uniform_.default)


class WeightCount(NamedTuple):
    """How much a file of weights holds."""

    tensors: int
    numbers: int


def weights_in(path: Path) -> WeightCount:
    """The weights of a safetensors file, by its header alone."""
    with safe_open(path, framework="pt") as file:
        return counted_sizes(torch.Size(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118


def weights_of(state: Mapping[str, Tensor]) -> WeightCount:
    """The weights that are loaded already."""
    return counted_sizes(value.shape for value in state.values())


def counted_sizes(shapes: Iterable[torch.Size]) -> WeightCount:
    """The number of tensors, and of the numbers in them."""
    sizes = [shape.numel() for shape in shapes]
    return WeightCount(len(sizes), sum(sizes))


class _Allowance(TorchDispatchMode):
    """Counts the tensors that are created, before they take memory."""

    def __init__(self, draws: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tensors, self.numbers = FREE_TENSORS, FREE_NUMBERS
        self.draws = draws

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: nothing is compiled here, and torch would import its compiler just to skip it, which takes a second."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in DRAWS and not self.draws and isinstance(args[0], nn.Parameter):
            return args[0].zero_()
        if any(argument.name == "device" for argument in func._schema.arguments):
            plan = {name: value for name, value in kwargs.items() if name != "generator"}
            planned = func(*args, **{**plan, "device": torch.device("meta")})
            self.tensors -= 1
            self.numbers -= planned.numel()
            if self.tensors < 0 or self.numbers < 0:
                raise ValueError("the settings describe a model that is far larger than its weights")
        return func(*args, **kwargs)


_active: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowance(weights: WeightCount, *, draws: bool = True) -> Iterator[None]:
    """While it lasts, only a model of about this size can be built; inside another allowance, that one grows.

    Without `draws` no parameters are drawn at random: those that are read afterwards take their places.
    """
    outer = _active.get()
    allowed = outer or _Allowance(draws)
    allowed.tensors += FACTOR * weights.tensors
    allowed.numbers += FACTOR * weights.numbers
    if outer is not None:
        before, outer.draws = outer.draws, draws
        try:
            yield
        finally:
            outer.draws = before
        return
    token = _active.set(allowed)
    try:
        with allowed:
            yield
    finally:
        _active.reset(token)
