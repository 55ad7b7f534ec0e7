"""LoRA through PEFT: small trained matrices beside frozen weights. They go in late and are merged for good at the end.

See: Hu et al. 2022, arXiv 2106.09685; paper 004 trains its T5 encoder so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

ADAPTER = "default"  # PEFT's own name for the only adapter of a model
MARK = ".lora_"  # what the names of all adapters' parameters have, and no others


@dataclass(frozen=True)
class Lora:
    """Adapters of linear layers: each learns `alpha / rank` times a product of two matrices of this rank.

    `targets` are the last parts of the layers' names, such as `query` or `q`; none are all linear layers of the
    Transformer, those of the keys included.
    """

    rank: int = 32
    alpha: int = 32
    dropout: float = 0.05
    targets: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Numbers that cannot work are said before anything is loaded."""
        if self.rank < 1:
            raise ValueError(f"adapters.rank is {self.rank}; give at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"adapters.dropout is {self.dropout}; give 0 to less than 1")


def put_in(model: nn.Module, lora: Lora) -> None:
    """Freezes a Transformer and puts adapters beside its linear layers; only they learn, in float32."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # PEFT imports it, and it tells of kernels it misses
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise ValueError("adapters need PEFT; install it with: pip install 'wingspan[peft]'") from error
    layers = chosen_layers(model, lora.targets)
    model.requires_grad_(False)
    settings = LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=layers, bias="none"
    )
    inject_adapter_in_model(settings, model)
    for name, parameter in model.named_parameters():
        if MARK in name:
            parameter.data = parameter.data.float()


def chosen_layers(model: nn.Module, targets: Sequence[str]) -> list[str]:
    """The full names of the layers that get adapters; a target that no layer has is a mistake worth a sentence."""
    linear = [name for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    found = [name for name in linear if not targets or any(named(name, target) for target in targets)]
    for target in targets:
        if not any(named(name, target) for name in found):
            known = sorted({name.rpartition(".")[2] for name in linear})
            raise ValueError(f"adapters.targets: no linear layer is named {target!r}; there are {', '.join(known)}")
    return found


def named(name: str, target: str) -> bool:
    """Whether a layer's name is the target, or ends with it after a dot: `q` and `SelfAttention.q` for T5's queries."""
    return name == target or name.endswith(f".{target}")


def adapted_layers(model: nn.Module) -> dict[str, Any]:
    """The layers that have adapters, by name."""
    return {name: part for name, part in model.named_modules() if hasattr(part, "lora_A")}


def merged_layer(layer: Any) -> nn.Linear:
    """A plain linear layer that computes what the layer and its adapter do together."""
    base = layer.get_base_layer()
    whole = nn.Linear(base.in_features, base.out_features, bias=base.bias is not None, device="meta")
    weight = base.weight.detach() + layer.get_delta_weight(ADAPTER).detach().to(base.weight.dtype)
    whole.weight = nn.Parameter(weight, requires_grad=base.weight.requires_grad)
    whole.bias = base.bias
    return whole.train(layer.training)


def merge(model: nn.Module) -> None:
    """Makes a plain Transformer of an adapted one, for good."""
    put_back(model, {name: merged_layer(layer) for name, layer in adapted_layers(model).items()})


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """A plain Transformer for as long as it is saved; the training goes on with the very same numbers as before."""
    layers = adapted_layers(model)
    merge(model)
    try:
        yield
    finally:
        put_back(model, layers)


def put_back(model: nn.Module, layers: Mapping[str, nn.Module]) -> None:
    """Puts layers where their names say."""
    for name, layer in layers.items():
        owner, _, last = name.rpartition(".")
        setattr(model.get_submodule(owner), last, layer)
