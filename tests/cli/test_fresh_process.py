"""What a fresh process imports, how long that takes, and what happens when a pipe closes."""

import os
import subprocess
import sys
import time

import pytest
from shells import lines


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)


def test_import_needs_no_torch_and_no_time():
    code = (
        "import time; began = time.perf_counter(); import wingspan, sys; took = time.perf_counter() - began; "
        "print(took); sys.exit(any(name in sys.modules for name in ('torch', 'transformers')))"
    )
    done = [python(code) for _ in range(3)]
    assert [process.returncode for process in done] == [0, 0, 0]
    assert min(float(process.stdout) for process in done) < 0.5


@pytest.mark.parametrize("arguments", [["score", "--help"], ["--help"], ["train", "--help"], ["recipes", "--help"]])
def test_help_needs_no_torch(arguments):
    code = (
        f"import sys; sys.argv = ['wingspan', *{arguments!r}]\n"
        "from wingspan.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    began = time.perf_counter()
    done = python(code)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout
    assert time.perf_counter() - began < 20  # on a busy machine; alone it is well below a second


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(prepared, tmp_path):
    many = lines(
        tmp_path / "many.jsonl", *({"text": "A text of some words. " * 20, "entities": []} for _ in range(400))
    )
    command = f"{sys.executable} -c 'from wingspan.cli import main; main()' predict {many} --model {prepared / 'model'}"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -n 1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
