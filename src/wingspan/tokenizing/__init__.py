"""Words to tokens: the CPU side of encoders, without weights or torch. The contract is `batch.Tokenize`.

`restored` makes one from the folder of an exported model, which names it.
"""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from wingspan.batch import Tokenize

KINDS = {
    "HashedTokenize": "hashed",
    "ConvolvedTokenize": "hashed",
    "PieceTokenize": "pieces",
    "StaticTokenize": "static",
}
"""The modules of the classes that a folder may name."""


def stored(tokenize: Tokenize, folder: Path) -> dict[str, Any]:
    """What `restored` needs, as JSON data; larger things are files in the folder."""
    kind = type(tokenize).__name__
    if kind not in KINDS or type(tokenize).__module__ != f"{__name__}.{KINDS[kind]}":
        raise ValueError(f"{kind} cannot be exported: only tokenizers of wingspan can be rebuilt without torch")
    return {"kind": kind, **tokenize.store(folder)}


def restored(record: Mapping[str, Any], folder: Path) -> Tokenize:
    """The tokenizer of an exported model."""
    settings = dict(record)
    kind = settings.pop("kind", None)
    if kind not in KINDS:
        raise ValueError(f"there is no tokenizer {str(kind)[:40]!r}")
    part: type[Tokenize] = getattr(import_module(f"{__name__}.{KINDS[kind]}"), kind)
    return part.restore(folder, settings)
