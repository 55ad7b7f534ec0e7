"""Base models of the hub, opened safely: weights in safetensors, no code of theirs, and of two halves the encoder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import (
    MODEL_FOR_TEXT_ENCODING_MAPPING,
    MODEL_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForTextEncoding,
    AutoTokenizer,
)
from transformers.utils import logging as transformers_logging

from wingspan.quantization import Bits, quantizer, weights_hash
from wingspan.short_names import locate

UNLOADABLE = (OSError, ValueError, ImportError, SafetensorError)  # what transformers raises for a bad name or folder
RATES = ("dropout", "attention_dropout", "activation_dropout")  # where T5, BART and their kin keep plain numbers


@contextmanager
def quiet() -> Iterator[None]:
    """Loading a base model without its pooler is intended here; transformers need not warn or draw bars about it."""
    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        transformers_logging.enable_progress_bar()


def open_named(name: str, revision: str | None, dtype: torch.dtype, quantize: Bits | None) -> tuple[Any, Any]:
    """Model and tokenizer behind a short name, a folder or a hub id."""
    bits = quantizer(quantize, dtype) if quantize is not None else None
    where = locate(name)
    try:
        with quiet():
            return open_model(where, revision, dtype, bits), open_tokenizer(where, revision)
    except UNLOADABLE as error:
        raise ValueError(
            f"encoder {name!r} cannot be loaded ({said(error)}); "
            "use --encoder hashed (needs nothing), minilm, e5-small, a folder, or a hub id that can be reached"
        ) from error


def open_model(where: str | Path, revision: str | None, dtype: torch.dtype, bits: Any = None) -> Any:
    """A pretrained encoder; of encoder-decoder models (T5, BART) the encoder."""
    config = AutoConfig.from_pretrained(where, revision=revision, trust_remote_code=False)
    given = {} if bits is None else {"quantization_config": bits}
    model = loader(config).from_pretrained(
        where, revision=revision, dtype=dtype, use_safetensors=True, trust_remote_code=False, **given
    )
    return encoding_half(model)


def build_model(folder: Path) -> Any:
    """The same from a configuration alone, without weights."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
    return encoding_half(loader(config).from_config(config, dtype=torch.float32, trust_remote_code=False))


def loader(config: Any) -> Any:
    """The Auto class for a configuration: T5 and its kin have a class without a decoder, so that none is loaded."""
    kind = type(config)
    alone = kind in MODEL_FOR_TEXT_ENCODING_MAPPING and kind in MODEL_MAPPING
    differs = alone and MODEL_FOR_TEXT_ENCODING_MAPPING[kind] is not MODEL_MAPPING[kind]
    return AutoModelForTextEncoding if differs else AutoModel


def encoding_half(model: Any) -> Any:
    """The encoder of an encoder-decoder model; any other as it is."""
    return model.get_encoder() if model.config.is_encoder_decoder else model


def open_tokenizer(where: str | Path, revision: str | None = None) -> Any:
    """The tokenizer of a model; transformers makes one that knows no word where the files are missing."""
    tokenizer = AutoTokenizer.from_pretrained(where, revision=revision, add_prefix_space=True, trust_remote_code=False)
    if len(tokenizer) <= len(tokenizer.all_special_tokens) + 1:  # T5's also has the mark of a word's beginning
        raise ValueError("tokenizer.json is missing")
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError("its tokenizer has no fast version, which Wingspan needs")
    return tokenizer


def set_dropout(model: nn.Module, rate: float) -> None:
    """Replaces every dropout of a model, be it a layer or a number in one."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
        for name in RATES:
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, rate)


def said(error: BaseException) -> str:
    """The beginning of an error's message on one line."""
    return " ".join(str(error).split())[:200]


def base_record(name: str, revision: str | None, model: Any) -> dict[str, Any]:
    """What says which base a model was trained on: its name, revision and hash."""
    known = getattr(model.config, "_commit_hash", None) or revision
    return {"name": name, "revision": known, "sha256": weights_hash(locate(name), known)}
