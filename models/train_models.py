"""Trains teachers and students for wingspan-bio-small side by side on one GPU; one JSON line a run, none run twice.

    python models/train_models.py --stage teachers --encoder MPNET --folder ~/box --output teachers.jsonl ...
    python models/train_models.py --stage students --encoder MINILM --folder ~/box --output students.jsonl ...
    python models/train_models.py --stage single --encoder MINILM --folder ~/box --output single.jsonl ...

Teachers have a base-size encoder, students a small one. `student` learns from the gold and from all teachers in the
folder, on the training texts and on perturbed copies of BioRED's; `copies` and `alone` are what that is compared with:
without teachers, and without teachers and copies. `single` are runs of the small encoder on one corpus, in BioRED's
labels. `--limit` and `--set` are for rehearsals on a CPU.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))

from bio_small import CORPORA, tested  # noqa: E402
from training_runs import KEY, Job, Row, arguments, choices, note, run_jobs  # noqa: E402

COPIES = ("swapped_entities", "lower_case", "typos")
SAME = {"max_width": "10", "train.precision": "bf16", "train.batch_size": "64", "encoder.word_dropout": "0.15"}
LARGE = {**SAME, "train.learning_rate": "5e-5", "train.epochs": "3"}
SMALL = {**SAME, "train.learning_rate": "1.5e-4", "train.epochs": "4"}
ONE = {**SMALL, "train.epochs": "20"}


def plan_of(job: Job) -> Any:
    """The corpora of a run, in BioRED's labels; those of a rehearsal are short."""
    from wingspan.corpora.perturb import perturb
    from wingspan.training.multi_corpus import read_corpora

    plan = read_corpora(HERE / "corpora.toml")
    few = job["limit"] or None
    cut = [replace(c, train=c.train[:few], dev=c.dev[:few], test=c.test[:few]) for c in plan.corpora]
    if job["recipe"] in ("student", "copies"):
        seed = job["seed"]
        cut[0] = replace(
            cut[0],
            train=(*cut[0].train, *(d for name in COPIES for d in renamed(perturb(cut[0].train, name, seed), name))),
        )
    return replace(plan, corpora=tuple(cut))


def renamed(documents: Any, name: str) -> Any:
    """Copies with ids of their own."""
    return [replace(document, id=f"{document.id}-{name}") for document in documents]


def work(job: Job) -> Row:
    """One training; the model is kept in the folder, and scored on every test set."""
    from functools import partial

    import torch
    from rich.console import Console

    from wingspan.training.corpora import Corpora
    from wingspan.training.run import TrainingJob, prepare, run

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    plan = plan_of(job)
    folder = Path(job["folder"])
    target = plan.target
    corpora = Corpora(plan.training, target.dev, target.test, plan)
    if job["recipe"] == "single":
        own = next(corpus for corpus in plan.corpora if corpus.name == job["corpus"])
        corpora = Corpora(*([*map(unmarked, part)] for part in (own.train, own.dev, own.test)))
    teachers = sorted(map(str, folder.glob("teacher-*"))) if job["recipe"] == "student" else []
    name = "conditional/single" if job["recipe"] == "single" else "conditional/multi-shared-label"
    recipe = prepare(name, job["encoder"], job["settings"], taught=bool(teachers))
    began, curve = time.perf_counter(), list[list[float]]()
    training = TrainingJob(
        recipe, corpora, seed=job["seed"], teachers=teachers, on_leak="drop", watch=partial(note, curve)
    )
    model, _ = run(training, Console(quiet=True))
    trained = time.perf_counter() - began
    model.save_pretrained(folder / f"{job['recipe']}-{job['corpus']}-{job['seed']}".replace("-nine corpora", ""))
    row = {part: job[part] for part in (*KEY, "commit")}
    row |= {
        "dev": model.facts["dev"]["micro"],
        "test": model.facts["test"]["micro"],
        "curve": curve,
        "teachers": len(teachers),
        "training_documents": len(corpora.train),
        "train_seconds": round(trained, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    corpora_tested = [job["corpus"]] if job["recipe"] == "single" else CORPORA
    return (
        row | tested(model, corpora_tested, job["limit"] or None) | {"seconds": round(time.perf_counter() - began, 1)}
    )


def unmarked(document: Any) -> Any:
    """A document of the only corpus of its training."""
    return replace(document, dataset="main")


def jobs_of(given: Any) -> list[Job]:
    """The runs of a stage."""
    jobs = []
    for seed in given.seeds.split(","):
        for choice in choices(given.set):
            shared = {"seed": int(seed), "encoder": given.encoder, "folder": str(given.folder)}
            if given.stage == "single":
                names = [(name, "single", ONE) for name in CORPORA if name != "bioid"]
            elif given.stage == "teachers":
                names = [("nine corpora", "teacher", LARGE)]
            else:
                names = [("nine corpora", kind, SMALL) for kind in given.kinds.split(",")]
            for corpus, kind, settings in names:
                jobs.append({"corpus": corpus, "recipe": kind, "settings": {**settings, **choice}, **shared})
    return jobs


def main() -> None:
    """Runs what is missing, side by side."""
    parser = arguments(__doc__)
    parser.add_argument("--stage", choices=("teachers", "students", "single"), required=True)
    parser.add_argument("--kinds", default="student,alone", help="of students")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where models are kept")
    given = parser.parse_args()
    run_jobs(given, jobs_of(given), work)


if __name__ == "__main__":
    main()
