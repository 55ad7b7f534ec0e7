"""Any Hugging Face encoder, one vector per word or piece: only safetensors are read, and no code of a model is run."""

import json
import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from wingspan.batch import SHAPES, Inputs
from wingspan.encoders import Encoder, Words, loading
from wingspan.encoders.lora import MARK, Lora, merge, merged, put_in
from wingspan.layers.autocast import at_least_float32, working_type
from wingspan.layers.bert_blocks import attention_bias, bert_shaped, call_fused
from wingspan.layers.corpus import CorpusTokens
from wingspan.layers.pooling import Pooling, pool_pieces
from wingspan.tokenizing.pieces import CorpusToken, PieceTokenize

Precision = Literal["float32", "bfloat16", "float16"]


class PretrainedEncoder(Encoder):
    """A pretrained Transformer, or the encoder of T5, BART and similar models; word vectors are pooled from pieces.

    `shapes` adds an embedding of the word's shape to the input, for uncased tokenizers (None: only for those).
    The Transformer computes in `dtype`; its vectors are float32 outside autocast.
    `dropout` replaces the model's; `word_dropout` hides whole words in training, so that context must suffice.
    With `adapters` the Transformer is frozen and only they learn; with `quantize` it is frozen in 8 or 4 bits.
    `corpus_token` appends the name of the sentence's corpus, as a learned token (`end`) or as the unknown token;
    `corpora` are the names, the target's first, which training fills in.
    """

    tokenize: PieceTokenize
    lowered = False  # whether the weights are only good for prediction
    predicts = False  # whether it is rebuilt for prediction alone

    def __init__(
        self,
        *,
        name: str = "minilm",
        unit: Literal["word", "piece"] = "word",
        pooling: Pooling = "max",
        shapes: bool | None = None,
        dropout: float | None = None,
        word_dropout: float = 0.0,
        dtype: Precision = "float32",
        max_length: int = 512,
        gradient_checkpointing: bool = False,
        revision: str | None = None,
        adapters: Lora | None = None,
        quantize: loading.Bits | None = None,
        corpus_token: CorpusToken | None = None,
        corpora: tuple[str, ...] = (),
    ) -> None:
        precision = getattr(torch, dtype)
        base = None
        if self.saved_in is not None:
            model, tokenizer, base = loading.open_saved(
                self.saved_in, name, precision, quantize, predicts=self.predicts
            )
        else:
            model, tokenizer = loading.open_named(name, revision, precision, quantize)
            if quantize is not None:
                base = loading.base_record(name, revision)
        super().__init__()
        if base is None:
            model.to(precision)
        else:
            model.requires_grad_(False)
            loading.store_elsewhere(model, MARK)
            loading.keep_exact(model)
        if dropout is not None:
            loading.set_dropout(model, dropout)
        if getattr(model, "pooler", None) is not None:
            model.pooler = None  # unused; without it every parameter gets a gradient
        if gradient_checkpointing and not self.predicts:
            model.gradient_checkpointing_enable({"use_reentrant": False})  # frozen inputs have no gradient
        self.model = model
        self.tokenizer = tokenizer
        self.adapters = adapters
        self.base = base
        self.pooling = pooling
        self.word_dropout = word_dropout
        positions = getattr(model.config, "max_position_embeddings", None) or max_length
        places: Any = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
        if getattr(places, "padding_idx", None) is not None:
            positions -= places.padding_idx + 1  # RoBERTa counts positions from after the padding id
        table, pieces = model.get_input_embeddings(), min(max_length, positions)
        self.tokenize = PieceTokenize(tokenizer, pieces, unit, table.num_embeddings, corpora, corpus_token)
        names = [self.tokenize.pieces(corpus) for corpus in corpora] if corpus_token == "end" else []
        self.corpus_tokens = CorpusTokens(table, table.num_embeddings, names) if names else None
        self.size = model.config.hidden_size
        self._like_bert = bool(self.blocks) and all(map(bert_shaped, self.blocks or []))  # as built
        use_shapes = self.tokenize.lower_case if shapes is None else shapes
        self.shapes = nn.Embedding(len(SHAPES) + 1, self.size) if use_shapes else None
        if self.shapes is not None:
            nn.init.zeros_(self.shapes.weight)  # the pretrained model is unchanged before the first step

    @classmethod
    def rebuild_to_predict(cls, folder: Path, **settings: Any) -> Self:
        """A saved BERT without transformers, whose import takes longer than all the rest."""
        if cls is not PretrainedEncoder:  # another's may need what transformers has
            return cls.rebuild(folder, **settings)
        encoder = cls.__new__(cls)
        encoder.saved_in, encoder.predicts = folder, True
        cls.__init__(encoder, **settings)
        return encoder

    @property
    def blocks(self) -> nn.ModuleList | None:
        """The Transformer blocks of BERT-like models in float32, which is what parts that copy them compute in."""
        stack = getattr(self._stack, "layer", None)
        plain = self.base is None and self.model.dtype == torch.float32
        return stack if isinstance(stack, nn.ModuleList) and plain else None

    @property
    def distances(self) -> nn.Embedding | None:
        """MPNet's bias of attention."""
        return getattr(self._stack, "relative_attention_bias", None)

    @property
    def _stack(self) -> Any:
        return getattr(self.model, "encoder", None) or getattr(self.model, "transformer", None)  # DistilBERT's

    def forward(self, inputs: Inputs) -> Words:
        """Runs the Transformer and pools pieces to units."""
        real = inputs.token_mask
        mask = real.long()
        if real.is_cuda and self._like_bert:  # otherwise transformers synchronizes, then converts it in every layer
            mask = attention_bias(real.unsqueeze(1), working_type(real.device, self.model.dtype))
        options = {"attention_mask": mask, "output_hidden_states": self.keep_layers > 0}
        blocks = list(self.blocks or []) if self._like_bert else []
        out = call_fused(self.model, blocks, **self._entry(inputs), **options)
        kept = out.hidden_states[-self.keep_layers :] if self.keep_layers else (out.last_hidden_state,)
        states = torch.cat(kept, -1) if len(kept) > 1 else kept[0]  # pooled together, in one call
        if not torch.is_autocast_enabled(inputs.tokens.device.type):
            states = at_least_float32(states)
        units, front = inputs.unit_mask.shape[1], len(self.tokenize.front)
        pooled = pool_pieces(states, inputs.unit_of_token, units, self.pooling, front).split(self.size, -1)
        top = states[..., -self.size :]
        if self.tokenize.has_sentence_token:
            sentence = top[:, 0]
        else:
            sentence = (top * real.unsqueeze(-1)).sum(1) / real.sum(1, keepdim=True).clamp(min=1)
        return Words(pooled[-1], pooled if self.keep_layers else (), sentence, inputs.unit_mask)

    def _entry(self, inputs: Inputs) -> dict[str, Tensor]:
        tokens = inputs.tokens
        if self.training and self.word_dropout:
            hidden = torch.rand(inputs.unit_mask.shape, device=tokens.device) < self.word_dropout  # (B, L)
            hidden = nn.functional.pad(hidden, (0, 1))  # special tokens are never hidden
            tokens = torch.where(hidden.gather(1, inputs.unit_of_token), self.tokenize.hidden, tokens)
        if self.shapes is None and self.corpus_tokens is None:
            return {"input_ids": tokens}
        table = self.model.get_input_embeddings()
        embedded: Tensor = table(tokens) if self.corpus_tokens is None else self.corpus_tokens(table, tokens)
        if self.shapes is not None:
            shape = inputs.shapes.gather(1, inputs.unit_of_token)  # (B, T)
            embedded = embedded + self.shapes(shape).to(embedded.dtype)
        return {"inputs_embeds": embedded}

    def adapt(self, *, merged: bool) -> None:
        """Adds the adapters, unless they are merged; they are never merged into a quantized base."""
        if self.adapters is not None and (not merged or self.base is not None):
            put_in(self.model, self.adapters)

    def plain(self) -> AbstractContextManager[None]:
        """While it lasts, adapters are merged."""
        return merged(self.model) if self.base is None else nullcontext()

    def settle(self) -> None:
        """Merges adapters for good."""
        if self.base is None:
            merge(self.model)

    def lower(self, to: torch.dtype) -> None:
        """Casts the Transformer, or replaces its linear layers by those with weights of 8 bits."""
        if self.base is not None:
            raise ValueError("the encoder of this model is quantized already; use precision float32")
        if to == torch.qint8:
            with warnings.catch_warnings():  # torch means to move this to another package; it is here until then
                warnings.simplefilter("ignore")
                each_row = torch.ao.quantization.per_channel_dynamic_qconfig  # of a weight has a scale of its own
                self.model = torch.ao.quantization.quantize_dynamic(self.model, {nn.Linear: each_row}, dtype=to)
        else:
            self.model.to(to)
        self.lowered = True

    def save_files(self, folder: Path) -> None:
        """The configuration under `encoder/`, the tokenizer's files beside the weights, and the record of the base."""
        if self.lowered:
            raise ValueError(
                "weights of lower precision are not saved; load the model without precision= and save that"
            )
        self.model.config.save_pretrained(folder / "encoder")
        self.tokenizer.save_pretrained(folder)
        if self.base is not None:
            (folder / loading.BASE).write_text(json.dumps(self.base, indent=1) + "\n", encoding="utf-8")
