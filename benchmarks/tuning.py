"""A search on a CPU, and its best settings against the recipe's own: python benchmarks/tuning.py CORPUS FOLDER

CORPUS has train.jsonl, dev.jsonl and test.jsonl; FOLDER keeps the search (killed, it goes on) and the comparison. The
lines go to benchmarks/results/tuning.jsonl: one for the search with its budget, then one for each training.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from table_rows import RESULTS

PLAN = Path(__file__).with_suffix(".toml")
SENTENCES, TRIALS, WORKERS, EPOCHS = 1000, 20, 2, 4
RECIPE, ENCODER = "bundling/span", "hashed"


def wingspan(*arguments: object) -> list[str]:
    """A command as users write it."""
    return [sys.executable, "-m", "wingspan", *map(str, arguments)]


def prepare(corpus: Path, folder: Path) -> None:
    """The corpus with its first training sentences only, and the plan beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = (corpus / "train.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "train.jsonl").write_text("".join(lines[:SENTENCES]), encoding="utf-8")
    for part in ("dev.jsonl", "test.jsonl"):
        shutil.copy(corpus / part, folder / part)
    shutil.copy(PLAN, folder / "plan.toml")


def search(folder: Path, trials: int) -> None:
    """The search by several processes; the dev part alone decides."""
    command = wingspan(
        *["tune", RECIPE, "--encoder", ENCODER, "--train", folder / "train.jsonl", "--dev", folder / "dev.jsonl"],
        *["--output", folder / "search", "--trials", trials, "--set", f"train.epochs={EPOCHS}"],
        *["--device", "cpu", "--threads", 1, "--json", folder / "search.json"],
    )
    for process in [subprocess.Popen(command) for _ in range(WORKERS)]:
        if process.wait():
            sys.exit("a process of the search has failed; see above")
    subprocess.run(command, check=True)  # all trials are there: it writes the result of both processes


def lines_of(folder: Path, corpus: str) -> list[dict[str, Any]]:
    """What was found and what it is worth."""
    found = json.loads((folder / "search.json").read_text())
    states = [trial["state"] for trial in found["trials"]]
    line = {
        "kind": "search",
        "corpus": corpus,
        "recipe": RECIPE,
        "encoder": ENCODER,
        "sentences": SENTENCES,
        "epochs": EPOCHS,
        "trials": len(states),
        "complete": states.count("complete"),
        "pruned": states.count("pruned"),
        "workers": WORKERS,
        "trial_seconds": round(sum(trial["seconds"] for trial in found["trials"]), 1),
        "dev": {"default": found["trials"][0]["dev_f1"], "tuned": found["best"]["dev_f1"]},
        "settings": found["best"]["settings"],
        "importances": found["importances"],
    }
    runs = (folder / "results" / "results.jsonl").read_text().splitlines()
    return [line, *({"kind": "run", **json.loads(run)} for run in runs)]


def main() -> None:
    """Searches, compares, writes the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--trials", type=int, default=TRIALS)
    given = parser.parse_args()
    prepare(given.corpus, given.folder)
    search(given.folder, given.trials)
    subprocess.run(wingspan("experiment", given.folder / "plan.toml"), check=True)
    written = [json.dumps(line) + "\n" for line in lines_of(given.folder, given.corpus.name)]
    (RESULTS / "tuning.jsonl").write_text("".join(written))


if __name__ == "__main__":
    main()
