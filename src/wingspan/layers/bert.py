"""BERT for prediction, without transformers: the same weights under the same names, the same numbers.

Importing transformers' BERT takes longer than everything else between a command and its first entity. `Bert` is built
from a saved configuration and computes what `transformers.BertModel` does in evaluation.

Legend: B sentences, T tokens, D word size.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.layers.tracing import exporting

DEFAULTS: dict[str, Any] = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "is_encoder_decoder": False,
    "pad_token_id": 0,
    "dtype": None,
}
"""What a configuration of BERT means where it says nothing."""
SIZES = (
    *("vocab_size", "hidden_size", "intermediate_size", "max_position_embeddings", "type_vocab_size"),
    *("num_attention_heads", "num_hidden_layers"),
)
NUMBER_TYPES = (None, "float32", "float16", "bfloat16")  # of stored weights; what computes decides for itself
ACTIVATION_LAYERS: dict[str, type[nn.Module]] = {"gelu": nn.GELU, "relu": nn.ReLU, "silu": nn.SiLU}


class BertConfig:
    """The settings of a saved BERT, which are saved again as they were."""

    model_type = "bert"

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = dict(settings)

    def __getattr__(self, name: str) -> Any:
        settings = {**DEFAULTS, **self.__dict__.get("settings", {})}
        if name not in settings:
            raise AttributeError(name)
        return settings[name]

    @property
    def known(self) -> bool:
        """Whether `Bert` computes what this configuration asks for; what is odd in it is left to transformers."""
        sizes, eps = [getattr(self, name) for name in SIZES], self.layer_norm_eps
        if not all(type(size) is int and size > 0 for size in sizes) or self.hidden_size % self.num_attention_heads:
            return False
        rates = self.hidden_dropout_prob, self.attention_probs_dropout_prob, eps
        return (
            all(isinstance(rate, float | int) and 0 <= rate < 1 for rate in rates)
            and self.position_embedding_type == "absolute"
            and self.hidden_act in ACTIVATION_LAYERS
            and self.dtype in NUMBER_TYPES
            and (self.pad_token_id is None or self.pad_token_id in range(self.vocab_size))
            and not (self.is_decoder or self.add_cross_attention or self.is_encoder_decoder)
        )

    def save_pretrained(self, folder: Path) -> None:
        """Writes config.json."""
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"model_type": self.model_type, **self.settings}, indent=1)
        (folder / "config.json").write_text(text + "\n", encoding="utf-8")


class Encoded(NamedTuple):
    """The output, with that of the embeddings and each block if it was asked for."""

    last_hidden_state: Tensor  # (B, T, D)
    hidden_states: tuple[Tensor, ...] = ()


class Bert(nn.Module):
    """Embeddings and blocks, as `transformers.BertModel` names them."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Stack(config)

    @property
    def dtype(self) -> torch.dtype:
        """The number type of its weights."""
        return self.embeddings.word_embeddings.weight.dtype

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of word pieces."""
        return self.embeddings.word_embeddings

    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> Encoded:
        """Tokens, or vectors in their place, to states; the mask is (B, T), or an addition to scores (B, 1, 1, T)."""
        if attention_mask is not None and attention_mask.dim() == 2:
            attention_mask = only_real(attention_mask)
        states = [self.embeddings(input_ids, inputs_embeds)]
        for block in self.encoder.layer:
            states.append(block(states[-1], attention_mask))
            if not output_hidden_states:
                del states[0]
        return Encoded(states[-1], tuple(states) if output_hidden_states else ())


def only_real(mask: Tensor) -> Tensor | None:
    """Which tokens attention reads; None where it reads all, which its kernels do faster.  (B, T) -> (B, 1, 1, T)"""
    real = mask.bool()
    if not exporting() and not real.is_cuda and bool(real.all()):
        return None
    return real[:, None, None, :]


class Embeddings(nn.Module):
    """Word pieces, places and the first of the token types."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Tensor | None, inputs_embeds: Tensor | None) -> Tensor:
        """(B, T) or (B, T, D) -> (B, T, D)"""
        if inputs_embeds is None:
            assert input_ids is not None
            inputs_embeds = self.word_embeddings(input_ids)
        places = self.position_embeddings.weight[: inputs_embeds.shape[1]]
        summed = inputs_embeds + self.token_type_embeddings.weight[0] + places
        return self.dropout(self.LayerNorm(summed))  # type: ignore[no-any-return]


class Stack(nn.Module):
    """The blocks."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Block(config) for _ in range(config.num_hidden_layers))


class Block(nn.Module):
    """Attention, then two linear layers."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.attention = nn.ModuleDict({"self": Attention(config), "output": Joined(config, config.hidden_size)})
        self.intermediate = Widened(config)
        self.output = Joined(config, config.intermediate_size)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T, D), (B, 1, 1, T) -> (B, T, D)"""
        states = self.attention["output"](self.attention["self"](states, mask), states)
        return self.output(self.intermediate(states), states)  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Self-attention with several heads."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.num_attention_heads = config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(config.hidden_size, config.hidden_size) for _ in range(3))
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def forward(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """(B, T, D), (B, 1, 1, T) -> (B, T, D)"""
        batch, length, size = states.shape
        shape = batch, length, self.num_attention_heads, size // self.num_attention_heads
        query, key, value = (part(states).view(shape).transpose(1, 2) for part in (self.query, self.key, self.value))
        dropout = self.dropout.p if self.training else 0.0
        read = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
        return read.transpose(1, 2).reshape(batch, length, size)


class Widened(nn.Module):
    """The first linear layer and its activation."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
        self.intermediate_act_fn = ACTIVATION_LAYERS[config.hidden_act]()

    def forward(self, states: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, 4 * D)"""
        return self.intermediate_act_fn(self.dense(states))  # type: ignore[no-any-return]


class Joined(nn.Module):
    """A linear layer back to the size of words, added to what was there before."""

    def __init__(self, config: BertConfig, size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, change: Tensor, states: Tensor) -> Tensor:
        """(B, T, _), (B, T, D) -> (B, T, D)"""
        return self.LayerNorm(self.dropout(self.dense(change)) + states)  # type: ignore[no-any-return]
