"""Single-line faults in the source, each of which some test must notice.

    python benchmarks/faults.py                     all faults, one line each; exit code 1 if one goes unnoticed
    python benchmarks/faults.py --results FILE      also appends a JSON line
    python benchmarks/faults.py --check             only checks that every fault still finds its line

A fault is a line of the source and its wrong version. The source is copied to a temporary folder, the fault put in, and
the tests named beside it are run against the copy. They must pass without the fault (`--clean` runs them so).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Fault(NamedTuple):
    """A line of a file, its wrong version, and the tests that should notice."""

    file: str
    line: str
    wrong: str
    tests: str


FAULTS = [
    # grid
    Fault(
        "layers/grid.py",
        "unfold(1, width, 1).transpose(2, 3)",
        "unfold(1, width, 1).transpose(2, 3).flip(2)",
        "tests/layers/test_grid.py",
    ),
    Fault(
        "layers/grid.py",
        "counts = torch.arange(1, width + 1,",
        "counts = torch.arange(2, width + 2,",
        "tests/layers/test_grid.py",
    ),
    Fault(
        "layers/grid.py",
        "torch.maximum(out[:, :, step - 1], following[:, :, step]",
        "torch.maximum(out[:, :, step - 1], following[:, :, step - 1]",
        "tests/layers/test_grid.py",
    ),
    # windows
    Fault(
        "corpora/segment.py",
        "if held and total + size > limit:",
        "if held and total + size > limit + 1:",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    Fault(
        "corpora/segment.py",
        "yield _Window(held, sizes, Span(owned, core_end), word)",
        "yield _Window(held, sizes, Span(owned + 1, core_end), word)",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    Fault(
        "corpora/segment.py",
        "while border is not None and border <= word.start:",
        "while border is not None and border < word.start:",
        "tests/corpora/test_segment.py",
    ),
    Fault(
        "candidates/__init__.py",
        "(start < inputs.core[:, 1:])",
        "(start <= inputs.core[:, 1:])",
        "tests/candidates tests/corpora/test_windows.py",
    ),
    # leaks
    Fault(
        "corpora/leaks/index.py",
        "return common / max(1, len(mine) + len(theirs) - common)",
        "return common / max(1, len(mine) + len(theirs))",
        "tests/corpora/test_leaks.py",
    ),
    Fault(
        "corpora/leaks/index.py",
        "if key != other and (share :=",
        "if key == other and (share :=",
        "tests/corpora/test_leaks.py",
    ),
    Fault(
        "corpora/leaks/index.py",
        "if span.width >= SHORTEST]",
        "if span.width >= 2 * SHORTEST]",
        "tests/corpora/test_leaks.py",
    ),
    # decoding
    Fault(
        "decoding.py",
        "if entity not in best or entity.score > best[entity].score:",
        "if entity not in best:",
        "tests/test_decoding.py",
    ),
    Fault(
        "decoding.py",
        "key=lambda e: (-e.score, reading_order(e))",
        "key=lambda e: (e.score, reading_order(e))",
        "tests/test_decoding.py",
    ),
    Fault(
        "decoding.py",
        "past = bisect_left(chosen, entity.end, key=start_of)",
        "past = bisect_left(chosen, entity.start, key=start_of)",
        "tests/test_decoding.py",
    ),
    # calibration
    Fault(
        "evaluation/calibration.py",
        "(scores * bins).astype(np.int64), bins - 1)",
        "(scores * bins).astype(np.int64), bins - 2)",
        "tests/evaluation/test_calibration.py",
    ),
    Fault(
        "evaluation/calibration.py",
        "chance = softmax(coldness * logits)",
        "chance = softmax(logits)",
        "tests/evaluation/test_calibration.py",
    ),
    Fault(
        "evaluation/calibration.py",
        "best[entity] = max(entity.score,",
        "best[entity] = min(entity.score,",
        "tests/evaluation/test_calibration.py",
    ),
    # resume
    Fault("training/state.py", "weights_only=True", "weights_only=False", "tests/training/test_resume.py -k no_code"),
    Fault("training/state.py", 'name += "-again"', "pass", "tests/training/test_resume.py"),
    Fault(
        "training/loop.py",
        "step_seed(run.seed, position.phase, epoch, step,",
        "step_seed(run.seed, position.phase, 0, step,",
        "tests/frozen/test_frozen_trainings.py",
    ),
    # checkpoint safety
    Fault("checkpoint.py", "strict=True)", "strict=False)", "tests/test_model_folder.py tests/test_model_saving.py"),
    Fault(
        "recipe_json.py",
        'module.startswith("wingspan.")',
        'module.startswith("w")',
        "tests/test_recipe_json.py tests/test_model_folder.py",
    ),
    Fault(
        "files.py",
        "part.replace(path)",
        "shutil.copy(part, path)",
        "tests/corpora/formats/test_files.py tests/test_model_saving.py",
    ),
]


def noticed(fault: Fault | None, tests: str, folder: Path) -> bool:
    """Whether the tests fail on a copy of the source with the fault."""
    source = folder / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "src", source)
    if fault is not None:
        path = source / "wingspan" / fault.file
        path.write_text(path.read_text(encoding="utf-8").replace(fault.line, fault.wrong, 1), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests.split()]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout + done.stderr)
    return done.returncode == 1


def main() -> None:
    """Tries every fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--clean", action="store_true")
    given = parser.parse_args()
    lost = [
        fault
        for fault in FAULTS
        if (ROOT / "src/wingspan" / fault.file).read_text(encoding="utf-8").count(fault.line) < 1
    ]
    for fault in lost:
        print(f"{fault.file}: the line is gone: {fault.line}")
    if given.check or lost:
        sys.exit(bool(lost))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        if given.clean and noticed(
            None, " ".join(sorted({name for fault in FAULTS for name in fault.tests.split()})), Path(folder)
        ):
            raise SystemExit("the tests are red without a fault")
        for fault in FAULTS:
            red = noticed(fault, fault.tests, Path(folder))
            rows.append({"file": fault.file, "line": fault.line, "wrong": fault.wrong, "noticed": red})
            print(f"{'noticed' if red else 'NOT NOTICED'}  {fault.file}: {fault.wrong}", flush=True)
    if given.results:
        with given.results.open("a", encoding="utf-8") as out:
            out.write(
                json.dumps({"faults": len(rows), "noticed": sum(row["noticed"] for row in rows), "rows": rows}) + "\n"
            )
    sys.exit(not all(row["noticed"] for row in rows))


if __name__ == "__main__":
    main()
