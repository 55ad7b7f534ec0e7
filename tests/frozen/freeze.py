"""Freezes what the code under `src` does today, for the tests in this folder to compare with.

It was run once, at commit 42d7cbc, before the modules of the package were merged. Run it again only for a change of
behavior that is meant, and say in the commit what changed and why:

    PYTHONPATH=src OMP_NUM_THREADS=1 python tests/frozen/freeze.py trainings [NAME ...]
    PYTHONPATH=src OMP_NUM_THREADS=1 python tests/frozen/freeze.py commands [NAME ...]

`trainings` writes the losses and the findings of a small training of every recipe (`trainings/`); `commands` writes
what every command prints and the files it leaves (`help/`, `outputs/`). Names choose single ones. Both are safe to
repeat: on the same machine the files come out the same.

`models` writes the model folders (`models/`), with their names of parts as `module:Class`. That is done once and for
all: these folders stand for the models that users have, and any later code has to load them. It refuses to overwrite.
What is in `data/` is invented, or the first documents of `examples/`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import frozen_cases as cases
import frozen_commands as commands

THRESHOLDS = (None, 0.4, 0.3, 0.25, 0.2, 0.17, 0.15, 0.12, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0)


def significant(number: float) -> float:
    """Seven significant digits; the tests ask for four."""
    return float(f"{number:.7g}")


def result(case: cases.Case, folder: Path) -> dict[str, object]:
    """Trains; losses, and findings at the first threshold that lets some through."""
    model = cases.train(case, folder)
    threshold: float | None = None
    for threshold in THRESHOLDS:
        found = cases.predict(model, case, threshold)
        if sum(map(len, found)) >= 4:
            break
    return {
        "losses": [{name: significant(loss) for name, loss in epoch.items()} for epoch in cases.losses(folder)],
        "threshold": threshold,
        **cases.shortened(found),
    }


def freeze_trainings(names: list[str]) -> None:
    """All trainings, a file for each system."""
    for system in dict.fromkeys(case.system for case in cases.CASES.values()):
        path = cases.TRAININGS / f"{system}.json"
        known = json.loads(path.read_text()) if path.exists() else {}
        results = {}
        for case in cases.CASES.values():
            if case.system != system:
                continue
            if names and case.name not in names:
                results[case.name] = known[case.name]
                continue
            with tempfile.TemporaryDirectory() as folder:
                results[case.name] = result(case, Path(folder) / "model")
            print(case.name, results[case.name]["threshold"], results[case.name]["count"])
        path.parent.mkdir(exist_ok=True)
        path.write_text(cases.as_json(results))


def freeze_models(names: list[str]) -> None:
    """The folders of some models, without what only training needs, and what they find."""
    for kept, name in cases.KEPT.items():
        if names and kept not in names:
            continue
        target = cases.MODELS / kept
        if target.exists():
            sys.exit(f"{target}: frozen folders are never written again")
        with tempfile.TemporaryDirectory() as folder:
            output = Path(folder) / "model"
            found = result(cases.CASES[name], output)
            shutil.copytree(output, target, ignore=shutil.ignore_patterns("state", "journal.jsonl", "leaks.json"))
        (cases.MODELS / f"{kept}.json").write_text(cases.as_json({key: found[key] for key in found if key != "losses"}))


def main() -> None:
    """Freezes one kind of behavior."""
    os.environ["HF_HUB_OFFLINE"] = "1"  # read when first imported
    import torch

    torch.set_num_threads(1)
    kinds = {"trainings": freeze_trainings, "models": freeze_models, "commands": commands.freeze}
    if sys.argv[1:2] == [] or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    os.chdir(cases.DATA)
    kinds[sys.argv[1]](sys.argv[2:])


if __name__ == "__main__":
    main()
