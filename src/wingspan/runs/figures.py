"""Figures as JSON, for every verb that has `--json FILE`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_figures(figures: Mapping[str, Any], path: Path) -> None:
    """Writes under a temporary name, then renames, so that a failure leaves no half file; `-` is standard output."""
    text = json.dumps(figures, indent=2, ensure_ascii=False)
    if path == Path("-"):
        print(text)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_text(text + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
