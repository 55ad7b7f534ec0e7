"""LoRA through PEFT (Hu et al. 2022, arXiv 2106.09685): small trained matrices beside frozen weights, merged later."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

ADAPTER = "default"  # PEFT's own name for the only adapter of a model
MARK = ".lora_"  # in the names of all adapters' parameters, and only there


@dataclass(frozen=True)
class Lora:
    """Adapters of linear layers: each learns `alpha / rank` times a product of two matrices of this rank.

    `targets` are the last parts of the layers' names, such as `query` or `q`; empty means all linear layers of the
    Transformer, including the keys.
    """

    rank: int = 32
    alpha: int = 32
    dropout: float = 0.05
    targets: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise ValueError(f"adapters.rank is {self.rank}; give at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"adapters.dropout is {self.dropout}; give 0 to less than 1")


def put_in(model: nn.Module, lora: Lora) -> None:
    """Freezes a Transformer and adds adapters to its linear layers; only they learn, in float32."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # PEFT imports it, and it warns about missing kernels
    try:
        from peft import LoraConfig, inject_adapter_in_model
    except ImportError as error:
        raise ValueError("adapters need PEFT; install it with: pip install 'wingspan-ner[peft]'") from error
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
    """The full names of the layers that get adapters; `q` and `SelfAttention.q` both name T5's queries."""
    linear = [name for name, part in model.named_modules() if isinstance(part, nn.Linear)]
    matches = {target: [name for name in linear if f".{name}".endswith(f".{target}")] for target in targets}
    for target, names in matches.items():
        if not names:
            known = sorted({name.rpartition(".")[2] for name in linear})
            raise ValueError(f"adapters.targets: no linear layer is named {target!r}; there are {', '.join(known)}")
    return [name for name in linear if not targets or any(name in names for names in matches.values())]


def adapted_layers(model: nn.Module) -> dict[str, Any]:
    """The layers that have adapters, by name."""
    return {name: part for name, part in model.named_modules() if hasattr(part, "lora_A")}


def merge(model: nn.Module) -> None:
    """Turns an adapted Transformer into a plain one, permanently."""
    for name, layer in adapted_layers(model).items():
        base = layer.get_base_layer()
        whole = nn.Linear(base.in_features, base.out_features, bias=base.bias is not None, device="meta")
        weight = base.weight.detach() + layer.get_delta_weight(ADAPTER).detach().to(base.weight.dtype)
        whole.weight = nn.Parameter(weight, requires_grad=base.weight.requires_grad)
        whole.bias = base.bias
        model.set_submodule(name, whole.train(layer.training))


@contextmanager
def merged(model: nn.Module) -> Iterator[None]:
    """A plain Transformer while it is saved; training then continues with exactly the same numbers."""
    layers = adapted_layers(model)
    merge(model)
    try:
        yield
    finally:
        for name, layer in layers.items():
            model.set_submodule(name, layer)
