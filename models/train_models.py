"""Trains teachers and students for wingspan-bio-small side by side on one GPU; one JSON line a run, none run twice.

    python models/train_models.py --stage teachers --encoder MPNET --data DATA --folder ~/box --output training.jsonl
    python models/train_models.py --stage students --encoder GTE --data DATA --folder ~/box --output training.jsonl
    python models/train_models.py --stage single --encoder GTE --data DATA --folder ~/box --output training.jsonl

Teachers have a base-size encoder, students a small one. `student` learns from the gold and from all teachers in the
folder, on the training texts and on one perturbed copy of each; `taught` is without the copies, `copies` without the
teachers, `alone` without both, each with as many steps. `single` are runs of the small encoder on one corpus, in
BioRED's labels. `--limit` and `--set` are for rehearsals on a CPU. The student with the best F1 on BioRED's dev set
(`dev` of its row) becomes the installed model.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "benchmarks"))

from bio_small import CORPORA, scored, tested  # noqa: E402
from training_runs import KEY, Job, Row, arguments, choices, note, run_jobs  # noqa: E402

COPIES = ("swapped_entities", "lower_case", "typos", "upper_case", "without_punctuation", "unseen_entities")
COPIES += ("title_case", "hyphens", "more_punctuation", "scanned")
# of copies, some entities cross once their borders are moved to words
SAME = {"max_width": "12", "train.precision": "bf16", "encoder.word_dropout": "0.15", "overlap": "nested"}
BOUNDED = {**SAME, "train.budget": "4096"}  # with 16,384 units, as by default, MPNet takes 30 GB
# at 7e-5 one teacher of three collapsed: benchmarks/results/bio_small-teachers-first.jsonl
LARGE = {**BOUNDED, "train.batch_size": "128", "train.learning_rate": "5e-5", "train.epochs": "4"}
SMALL = {**SAME, "train.batch_size": "128", "train.learning_rate": "2e-4", "train.epochs": "6"}
COPIED = {**SMALL, "train.epochs": "3"}  # an epoch has twice as many sentences
WITH_COPIES, WITH_TEACHERS = ("student", "copies"), ("student", "taught")
SINGLE = tuple(name for name in CORPORA if name != "bioid")  # cell lines in captions are no task of their own here
ONE = {**BOUNDED, "train.batch_size": "32", "train.learning_rate": "1.5e-4", "train.epochs": "10"}


def plan_of(job: Job) -> Any:
    """The corpora of a run, in BioRED's labels; those of a rehearsal are short.

    Training documents that are in any held-out part are left out here, before copies are made: a copy under another
    perturbation might not be recognized as one of them.
    """
    from wingspan.training.corpora import Corpora, handle_leaks
    from wingspan.training.multi_corpus import read_corpora

    plan = read_corpora(HERE / "corpora.toml")
    few = job["limit"] or None
    short = [replace(c, train=c.train[:few], dev=c.dev[:few], test=c.test[:few]) for c in plan.corpora]
    plan = replace(plan, corpora=tuple(short))
    if job["recipe"] == "single":
        return plan  # a corpus alone has its own dev set, and its leaks are dropped as usual
    held_out = Corpora(plan.training, plan=plan).held_out
    clean = handle_leaks(plan.training, held_out, "drop", plan.target.name).documents
    corpora = []
    for corpus in plan.corpora:
        train = [document for document in clean if document.dataset == corpus.name]
        if job["recipe"] in WITH_COPIES:
            train += copies(train, job["seed"])
        dev = () if corpus.dev_into_training else corpus.dev
        corpora.append(replace(corpus, train=tuple(train), dev=dev, dev_into_training=False))
    return replace(plan, corpora=tuple(corpora))


def copies(documents: Sequence[Any], seed: int) -> list[Any]:
    """One copy of each document, the perturbations by turns; with ids of their own."""
    from wingspan.corpora.perturb import perturb

    made = []
    for at, name in enumerate(COPIES):
        own = documents[at :: len(COPIES)]
        made += [replace(document, id=f"{document.id}-{name}") for document in perturb(own, name, seed)]
    return made


def work(job: Job) -> Row:
    """One training; the model is kept in the folder, and scored on every dev and test set."""
    from functools import partial

    import torch
    from rich.console import Console

    from wingspan.training.corpora import Corpora
    from wingspan.training.run import TrainingJob, prepare, run

    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    plan = plan_of(job)
    folder = Path(job["folder"])
    target = plan.target if not job["dev_only"] else replace(plan.target, test=())
    corpora, settings = Corpora(plan.training, target.dev, target.test, plan), dict(plan.settings)
    if job["recipe"] == "single":
        own = next(corpus for corpus in plan.corpora if corpus.name == job["corpus"])
        corpora = Corpora(*([*map(unmarked, part)] for part in (own.train, own.dev, own.test)))
        settings = {}
    wanted = "rehearsed-teacher-*" if job["limit"] else "teacher-*"
    teachers = sorted(map(str, folder.glob(wanted))) if job["recipe"] in WITH_TEACHERS else []
    if job["recipe"] in WITH_TEACHERS and not teachers:
        raise SystemExit(f"{folder}: there are no teachers; train them first, with --stage teachers")
    name = "conditional/single" if job["recipe"] == "single" else "conditional/multi-shared-label"
    recipe = prepare(name, job["encoder"], {**settings, **job["settings"]}, taught=bool(teachers))
    began, curve = time.perf_counter(), list[list[float]]()
    training = TrainingJob(
        recipe, corpora, seed=job["seed"], teachers=teachers, on_leak="drop", watch=partial(note, curve)
    )
    model, _ = run(training, Console(quiet=True))
    trained = time.perf_counter() - began
    model.save_pretrained(folder / place_of(job))
    row = {part: job[part] for part in (*KEY, "commit")}
    row |= {
        "dev": model.facts["dev"]["micro"],
        "curve": curve,
        "teachers": len(teachers),
        "training_documents": len(corpora.train),
        "train_seconds": round(trained, 1),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    if job["recipe"] != "single":
        row["devs"] = {corpus.name: dev_f1(model, corpus) for corpus in plan.corpora if corpus.dev}
    if not job["dev_only"]:
        names = [job["corpus"]] if job["recipe"] == "single" else CORPORA
        row |= {"test": model.facts["test"]["micro"]} | tested(model, names, job["limit"] or None, only_users=True)
    return row | {"seconds": round(time.perf_counter() - began, 1)}


def place_of(job: Job) -> str:
    """The name of a run's folder; those of rehearsals are not taken for others, nor those with other settings."""
    corpus = f"-{job['corpus']}" if job["recipe"] == "single" else ""
    changed = json.dumps([job["chosen"], job["limit"]]) if job["chosen"] or job["limit"] else ""
    mark = f"-{sha256(changed.encode()).hexdigest()[:6]}" if changed else ""
    begins = f"rehearsed-{job['recipe']}" if job["limit"] else job["recipe"]
    return f"{begins}{corpus}-{Path(job['encoder']).name}-{job['seed']}{mark}"


def dev_f1(model: Any, corpus: Any) -> float:
    """F1 on a corpus' dev set as users would get it, in the labels that the corpus has."""
    found = model.predict([unmarked(replace(document, entities=())) for document in corpus.dev])
    return float(scored(corpus.dev, found, frozenset(corpus.labels))["f1"])


def unmarked(document: Any) -> Any:
    """A document of the only corpus there is."""
    return replace(document, dataset="main")


def jobs_of(given: Any) -> list[Job]:
    """The runs of a stage."""
    jobs = []
    for seed in given.seeds.split(","):
        for choice in choices(given.set):
            shared = {"seed": int(seed), "encoder": given.encoder, "folder": str(given.folder)}
            if given.stage == "single":
                names = [(name, "single", ONE) for name in given.corpora.split(",")]
            elif given.stage == "teachers":
                names = [("nine corpora", "teacher", LARGE)]
            else:
                kinds = given.kinds.split(",")
                names = [("nine corpora", kind, COPIED if kind in WITH_COPIES else SMALL) for kind in kinds]
            for corpus, kind, settings in names:
                jobs.append(
                    {"corpus": corpus, "recipe": kind, "settings": {**settings, **choice}, "chosen": choice, **shared}
                )
    return jobs


def main() -> None:
    """Runs what is missing, side by side."""
    parser = arguments(__doc__)
    parser.add_argument("--stage", choices=("teachers", "students", "single"), required=True)
    parser.add_argument("--kinds", default="student,alone", help="of students: student, taught, copies, alone")
    parser.add_argument("--corpora", default=",".join(SINGLE), help="of single runs")
    parser.add_argument("--encoder", required=True)
    parser.add_argument("--folder", type=Path, required=True, help="where models are kept")
    given = parser.parse_args()
    if unknown := set(given.kinds.split(",")) - {*WITH_COPIES, *WITH_TEACHERS, "alone"}:
        parser.error(f"--kinds {', '.join(sorted(unknown))}: there are student, taught, copies and alone")
    os.environ["WINGSPAN_DATA"] = str(given.data.resolve())  # which corpora.toml starts its paths with
    run_jobs(given, jobs_of(given), work)


if __name__ == "__main__":
    main()
