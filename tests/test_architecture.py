"""Small files, no drawers, and the light modules really are light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "wingspan"
LONGEST = 260


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_file_is_one_idea(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST, "a file this long is asking for a split"


def test_there_are_no_drawers():
    drawers = {"utils", "util", "helpers", "common", "misc", "core", "base"}
    assert not [path for path in SOURCE.rglob("*") if path.stem in drawers]


def test_text_corpora_and_scores_import_no_torch():
    modules = ["text", "labels", "batch", "decoding", "corpora", "evaluation", "corpora.coverage", "runs.score"]
    code = "import sys; " + "; ".join(f"import wingspan.{name}" for name in modules) + "; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
