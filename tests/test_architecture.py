"""Few rooms, no drawers, and the light modules really are light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "wingspan"
LONGEST = 900


def test_a_file_is_as_long_as_its_subject():
    long = {path.name: n for path in SOURCE.rglob("*.py") if (n := len(path.read_text().splitlines())) > LONGEST}
    assert not long, "more than one subject to a file"


def test_the_house_stays_as_small_as_it_is():
    files = list(SOURCE.rglob("*.py"))
    folders = {path.parent for path in files}
    assert len(files) <= 198
    assert len(list(SOURCE.glob("*.py"))) <= 14
    assert max(len(list(folder.glob("*.py"))) for folder in folders) <= 22  # a module for each verb


def test_there_are_no_drawers():
    drawers = {"utils", "util", "helpers", "common", "misc", "core", "base"}
    assert not [path for path in SOURCE.rglob("*") if path.stem in drawers]


def test_text_corpora_and_scores_import_no_torch():
    modules = ["text", "labels", "batch", "decoding", "corpora", "evaluation", "corpora.coverage", "cli.score"]
    code = "import sys; " + "; ".join(f"import wingspan.{name}" for name in modules) + "; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


def test_a_model_without_a_transformer_loads_without_transformers_and_without_the_compiler():
    model = Path(__file__).parent / "frozen" / "models" / "baseline"
    code = (
        f"import sys, wingspan; wingspan.load({str(model)!r}, device='cpu').predict('Aspirin.'); "
        "print({'transformers', 'torch._dynamo', 'sympy'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_a_class_name_has_one_meaning():
    names = Counter(
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    assert not [name for name, count in names.items() if count > 1]
