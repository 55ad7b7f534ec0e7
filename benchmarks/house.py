"""How large the house is: modules and lines of the package, files of each folder, lines before the first statement.

    python benchmarks/house.py                     the figures as one JSON line
    python benchmarks/house.py --results FILE      appends it to a file

`before_docstring_ends` counts the lines up to the end of the module's docstring, `before_first_statement` those before
the first statement that is neither the docstring nor an import (an `if TYPE_CHECKING` is an import).
"""

from __future__ import annotations

import argparse
import ast
import json
from collections import Counter
from pathlib import Path
from statistics import median

from walks import commit

SOURCE = Path(__file__).parents[1] / "src" / "wingspan"


def is_opening(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring or an import."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str)
    if isinstance(statement, ast.If):
        return isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"
    return isinstance(statement, ast.Import | ast.ImportFrom)


def opening(text: str) -> tuple[int, int]:
    """Lines of the module's docstring, and lines before its first statement; all lines where there is none."""
    module = ast.parse(text)
    docstring = (module.body[0].end_lineno or 0) if ast.get_docstring(module) else 0
    for statement in module.body:
        if not is_opening(statement):
            first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
            return docstring, first - 1
    return docstring, len(text.splitlines())


def figures() -> dict[str, object]:
    """All counts."""
    texts = {path.relative_to(SOURCE): path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    lines = {path: len(text.splitlines()) for path, text in texts.items()}
    openings = [opening(text) for text in texts.values()]
    folders = Counter(path.parent.as_posix() for path in texts)
    return {
        "commit": commit(),
        "modules": len(texts),
        "lines": sum(lines.values()),
        "median_lines": median(lines.values()),
        "longest": max(lines.values()),
        "under_50_lines": sum(count < 50 for count in lines.values()),
        "before_docstring_ends": sum(docstring for docstring, _ in openings),
        "before_first_statement": sum(first for _, first in openings),
        "folders": dict(sorted(folders.items())),
    }


def main() -> None:
    """Counts and prints."""
    parser = argparse.ArgumentParser(description="Counts modules and lines of the package.")
    parser.add_argument("--results", type=Path, help="append the JSON line to this file")
    options = parser.parse_args()
    line = json.dumps(figures())
    print(line)
    if options.results:
        with options.results.open("a") as results:
            results.write(line + "\n")


if __name__ == "__main__":
    main()
