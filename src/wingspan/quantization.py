"""Frozen base models in 8 or 4 bits, through bitsandbytes. They are not stored again: a name and a hash say which."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn

Bits = Literal["8bit", "4bit"]
UNSUPPORTED = (ImportError, RuntimeError, OSError, NotImplementedError, AttributeError)
"""What bitsandbytes raises where it has no kernels: at its import, or at the first product."""


def quantizer(bits: Bits, dtype: torch.dtype) -> Any:
    """The configuration for transformers: int8, or the QLoRA paper's 4 bits (NF4, constants quantized too)."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it tells of every number that it casts
    try:
        import bitsandbytes
    except ImportError as error:
        raise ValueError(
            f"encoder.quantize={bits} needs bitsandbytes; install it with: pip install 'wingspan[quantized]'"
        ) from error
    try:
        try_out(bitsandbytes, bits, dtype)
    except UNSUPPORTED as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(f"encoder.quantize={bits} does not work on this platform ({said}); leave it out") from error
    from transformers import BitsAndBytesConfig

    if bits == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=dtype,
    )


def try_out(library: Any, bits: Bits, dtype: torch.dtype) -> None:
    """One small product: some platforms fail there and no sooner."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer: nn.Module
    if bits == "8bit":
        layer = library.nn.Linear8bitLt(64, 64, bias=False, has_fp16_weights=False)
    else:
        layer = library.nn.Linear4bit(64, 64, bias=False, compute_dtype=dtype, quant_type="nf4")
    layer.to(device)(torch.ones(1, 64, device=device, dtype=dtype))


def keep_exact(model: nn.Module) -> None:
    """Some CPUs have a quicker form of four bits, which loses a little each time it is made and undone: not used."""
    name = "support_avx512bf16_for_cpu"
    for part in model.modules():
        if hasattr(part, name):
            setattr(part, name, False)


def store_elsewhere(base: nn.Module, kept: str) -> None:
    """Keeps a frozen base out of the weights that are saved, but for what is `kept`, and lets loading not miss it."""
    at = [""]  # where in the whole model the base stands

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


def weights_hash(where: str | Path, revision: str | None) -> str:
    """The SHA-256 of a base's weights: of model.safetensors, or of all files that its index names."""
    folder = Path(where)
    if not folder.is_dir():
        from huggingface_hub import snapshot_download

        folder = Path(snapshot_download(str(where), revision=revision, local_files_only=True))
    index = folder / "model.safetensors.index.json"
    names = {"model.safetensors"}
    if index.is_file():
        names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
    found = hashlib.sha256()
    for name in sorted(names):
        with (folder / name).open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()
