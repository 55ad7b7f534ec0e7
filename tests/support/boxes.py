"""An installed model that is quick to make: any model folder as the package `wingspan_bio_small`."""

from __future__ import annotations

import runpy
import shutil
from pathlib import Path

import pytest
from pages import ROOT

from wingspan import box

PIN = runpy.run_path(str(ROOT / "models" / "pin.py"))["pin"]
PLACE = ROOT / "models" / box.NAME
needs_box = pytest.mark.skipif(
    box.installed_folder() is None, reason=f"{box.NAME} is not installed; `make test` does it, or {box.HOW}"
)


def install(model: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a package of a model folder, puts it first on the path, and pins its files; returns the copy."""
    package = folder / "site" / box.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('code of the package was run')\n")
    unneeded = shutil.ignore_patterns("state", "journal.jsonl", "leaks.json")
    copy = Path(shutil.copytree(model, package / box.FOLDER, ignore=unneeded))
    PIN(copy, folder / "box.json")
    monkeypatch.setattr(box, "PINS", folder / "box.json")
    monkeypatch.syspath_prepend(str(package.parent))
    box.say_once.cache_clear()
    return copy


def uninstall(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes it look as if no model were installed."""
    monkeypatch.setattr(box, "find_spec", lambda _: None)
    box.say_once.cache_clear()
