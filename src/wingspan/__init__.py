"""Wingspan: span-based named entity recognition, flat, nested and discontinuous.

`load`, `train` and `Recognizer` are resolved when first used, so that `import wingspan` needs no torch.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wingspan.text import Document, Entity, Sentence, Span

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer, load
    from wingspan.training.run import train


__version__ = "0.1.0"
__all__ = ["Document", "Entity", "Recognizer", "Sentence", "Span", "load", "train"]

# transformers imports tqdm, which asks notebooks for ipywidgets; none of our bars need them
warnings.filterwarnings("ignore", message="IProgress not found")

_LAZY = {"Recognizer": "wingspan.recognizer", "load": "wingspan.recognizer", "train": "wingspan.training.run"}


def __dir__() -> list[str]:
    """The public names."""
    return sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'wingspan' has no attribute {name!r}")
