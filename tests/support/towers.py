"""Encoders made of a configuration alone, and the span Transformer as a plain loop over widths."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    ElectraConfig,
    ElectraModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
)

from wingspan.encoders import Encoder, Words

KINDS = {
    "bert": (BertConfig, BertModel),
    "roberta": (RobertaConfig, RobertaModel),
    "electra": (ElectraConfig, ElectraModel),
    "mpnet": (MPNetConfig, MPNetModel),
    "distilbert": (DistilBertConfig, DistilBertModel),
}
SMALL = dict(vocab_size=30, hidden_size=8, num_hidden_layers=3, num_attention_heads=2, intermediate_size=12)
SIZES = {"hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads"}  # DistilBERT's names


class Configured(Encoder):
    """A Transformer with random weights whose units are its tokens, special ones included."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model: Any = model
        self.size = model.config.hidden_size

    @property
    def blocks(self) -> nn.ModuleList:
        return (self.model.transformer if hasattr(self.model, "transformer") else self.model.encoder).layer

    @property
    def distances(self) -> nn.Embedding | None:
        return getattr(getattr(self.model, "encoder", None), "relative_attention_bias", None)

    def forward(self, tokens: Tensor) -> Words:
        out = self.model(input_ids=tokens, output_hidden_states=True)
        top = out.last_hidden_state
        return Words(top, tuple(out.hidden_states), top[:, 0], torch.ones(tokens.shape, dtype=torch.bool))

    @classmethod
    def rebuild(cls, folder, **settings):
        raise NotImplementedError


def configured(kind: str = "bert", **settings) -> Configured:
    """A small random encoder, with weights larger than usual so that words differ clearly."""
    config, model = KINDS[kind]
    torch.manual_seed(0)
    sizes = {**SMALL, **settings}
    if kind == "distilbert":
        sizes = {SIZES.get(name, name): size for name, size in sizes.items()} | {
            "hidden_dim": sizes["intermediate_size"]
        }
    built = model(config(**sizes)).eval()
    with torch.no_grad():
        for parameter in built.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return Configured(built)


def looped(blocks, layers: tuple[Tensor, ...], width: int, distances=None) -> dict[int, Tensor]:
    """The tower as the paper's code has it: each width apart, windows unfolded, keys and values projected per window.

    Spans of width k as (B, L - k + 1, D).
    """
    depth = len(blocks)
    built = {1: layers[-1]}
    for k in range(2, width + 1):
        spans = layers[-depth - 1].unfold(1, k, 1).amax(-1)  # (B, N, D)
        for block, states in zip(blocks, layers[-depth - 1 : -1], strict=True):
            inside = states.unfold(1, k, 1).transpose(2, 3)  # (B, N, k, D)
            named = distances is None
            attention = block.attention.self if named else block.attention.attn
            read_by = (
                (attention.query, attention.key, attention.value) if named else (attention.q, attention.k, attention.v)
            )
            heads = attention.num_attention_heads
            query = read_by[0](spans).unflatten(-1, (heads, -1)).unsqueeze(-2)  # (B, N, h, 1, d)
            key = read_by[1](inside).unflatten(-1, (heads, -1)).transpose(2, 3)  # (B, N, h, k, d)
            value = read_by[2](inside).unflatten(-1, (heads, -1)).transpose(2, 3)
            scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5  # (B, N, h, 1, k)
            if not named:  # near distances have a row each: 0, then 17 and on for words to the right
                near = distances.weight[[0, *range(17, 16 + k)]]  # (k, h)
                scores = scores + near.T[:, None]
            read = (scores.softmax(-1) @ value).squeeze(-2).flatten(-2)
            if named:
                spans = block.attention.output(read, spans)
            else:
                spans = block.attention.LayerNorm(attention.o(read) + spans)
            spans = block.output(block.intermediate(spans), spans)
        built[k] = spans
    return built
