"""How many source files a reader has to walk through: the files of the package that three commands enter.

The rule: `sys.setprofile` (and `threading.setprofile`) sees every call from before the first import of the package to
the end of the command, in a process of its own. A file counts if at least one of its functions, methods or named
generators is entered, also while modules are being imported. What has a name in angle brackets does not count
(`<module>`, `<lambda>`, `<genexpr>`, `<listcomp>`, `<dictcomp>`, `<setcomp>`), class bodies do not count, and code that
`dataclass` writes (`<string>`) is in no file. Only `.py` files count: what Jinja compiles from a template is no file
to read as code. With this rule the counts before the modules were merged, at commit 42d7cbc, are exactly those of the
issue: predict 42, train 92, analyze 107.

    python benchmarks/walks.py                     one line for each walk
    python benchmarks/walks.py --list              with the files
    python benchmarks/walks.py --results FILE      appends a JSON line for each walk
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TEXT = "Loss of MGA led to SDNM deficiency and damage of the minar epithelium."


def entered(arguments: list[str]) -> list[str]:
    """Runs a command in this process; the files it entered, below the package."""
    spec = find_spec("wingspan")
    assert spec is not None
    assert spec.origin is not None
    package = str(Path(spec.origin).parent) + os.sep
    found: set[str] = set()

    def hook(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_filename in found:
            return
        if not code.co_filename.startswith(package) or not code.co_filename.endswith(".py"):
            return
        # the body of a class has no fast locals; that of a function has
        if not code.co_name.startswith("<") and code.co_flags & inspect.CO_OPTIMIZED:
            found.add(code.co_filename)

    sys.argv = ["wingspan", *arguments]
    threading.setprofile(hook)
    sys.setprofile(hook)
    try:
        from wingspan.cli import main

        main()
    except SystemExit as stop:
        if stop.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return sorted(name.removeprefix(package) for name in found)


def trace(*arguments: object) -> list[str]:
    """The files a command enters in a fresh process."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "files.json"
        command = [sys.executable, __file__, "--trace", str(target), "--", *map(str, arguments)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(target.read_text())


def walks() -> dict[str, list[str]]:
    """The three walks: one training, and predict and analyze with a model that has learned to find something."""
    with tempfile.TemporaryDirectory() as folder:
        data = ["--train", EXAMPLES / "train.jsonl", "--dev", EXAMPLES / "dev.jsonl", "--device", "cpu"]
        once = trace("train", "baseline", *data, "--output", f"{folder}/once", "--set", "train.epochs=1")
        sets = ["--set", "train.epochs=5", "--set", "train.learning_rate=0.005"]
        command = [sys.executable, "-m", "wingspan", "train", "baseline", *data, "--output", f"{folder}/model", *sets]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        model = ["--device", "cpu", "--threads", "1"]
        return {
            "predict": trace("predict", TEXT, "--model", f"{folder}/model", *model),
            "train": once,
            "analyze": trace(
                "analyze", f"{folder}/model", EXAMPLES / "test.jsonl", "--output", f"{folder}/report", *model
            ),
        }


def commit() -> str:
    """The commit of the source, marked if it was changed since."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=7", "--match", "nothing"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Counts and prints."""
    parser = argparse.ArgumentParser(description="Counts the source files that three commands enter.")
    parser.add_argument("--list", action="store_true", help="print the files too")
    parser.add_argument("--results", type=Path, help="append JSON lines to this file")
    parser.add_argument("--trace", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        options.trace.write_text(json.dumps(entered(options.command)))
        return
    for name, files in walks().items():
        print(f"{name:8} {len(files):4} files")
        if options.list:
            print("".join(f"  {file}\n" for file in files), end="")
        if options.results:
            with options.results.open("a") as results:
                results.write(json.dumps({"walk": name, "files": len(files), "commit": commit()}) + "\n")


if __name__ == "__main__":
    main()
