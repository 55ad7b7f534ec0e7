"""The recognizers that need no download beside spaCy's, on one core each: F1, the cost of training, the speed.

    python benchmarks/laptop.py --data $WINGSPAN_DATA --vectors $WINGSPAN_DATA/glove/glove.6B.100d.subset.npz \
        --workers 2 --commit $(git rev-parse --short HEAD) --output benchmarks/results/laptop.jsonl

`baseline` with hashed features alone and with word vectors beside them, spaCy's `ner` and `spancat` as its quickstart
configures them for a CPU (tok2vec of width 96 and depth 4, Adam, batches by words), `spancat` with n-grams of 1 to 8
words, of which overlapping ones give way to the likelier. All read the same words, train equally many epochs, and keep
the epoch with the best strict F1 on dev. Training costs CPU seconds without the scoring of dev; prediction is from
words to entities, the median of three rounds over the test part. One JSON line per run; runs that the output file has
are not repeated, so an interrupted call is simply made again. The cost of one process at a time
(`laptop-cost.jsonl`) is measured with `--workers 1 --dev-only --limit 1000 --epochs 2`.
"""

from __future__ import annotations

import copy
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # before the libraries look; worker processes inherit them
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["BLIS_NUM_THREADS"] = "1"

from training_runs import arguments, choices, gold, run_jobs

Row = dict[str, Any]
EPOCHS = {"crossner/politics": 30, "wnut17": 8, "ncbi-disease": 6}
SYSTEMS = ("hashed", "static", "ner", "spancat")
WIDEST = 8  # words of an n-gram that spancat is asked about
ROUNDS = 3


def train(job: Row) -> Row:
    """One training, its scores, and what it cost."""
    folder = Path(job["data"]) / job["corpus"]
    parts = {part: gold(folder, part, limit=job["limit"]) for part in ("train", "dev", "test")}
    system: Any = (Spacy if job["recipe"].startswith("spaCy") else Ours)(job, parts["train"], parts["dev"])
    began, curve, best, spent = time.perf_counter(), [], None, 0.0
    for seconds in system.epochs():
        spent += seconds
        curve.append(round(f1(parts["dev"], system.predict(parts["dev"])), 3))
        if best is None or curve[-1] >= best:  # of equals the longer trained one, as `wingspan train` has it
            best = curve[-1]
            system.keep()
    system.restore()
    row = {key: job[key] for key in ("corpus", "recipe", "seed", "encoder", "settings", "commit")}
    row |= {
        "epochs": len(curve),
        "best_epoch": max(range(len(curve)), key=lambda at: (curve[at], at)) + 1,
        "curve": curve,
        "dev": {"f1": max(curve)},
        "sentences": len(parts["train"]),
        "ms_per_sentence": round(spent / len(curve) / len(parts["train"]) * 1000, 3),
        "seconds": round(time.perf_counter() - began, 1),
        "parameters": system.parameters(),
        "versions": system.versions(),
    }
    if not job["dev_only"]:
        row["test"] = {"f1": round(f1(parts["test"], system.predict(parts["test"])), 3)}
        rounds = [clocked(lambda: system.predict(parts["test"], afresh=True)) for _ in range(ROUNDS)]
        row["words_per_second"] = round(sum(len(document.words) for document in parts["test"]) / median(rounds))
    return row


def f1(expected: Sequence[Any], found: Sequence[Any]) -> float:
    """Strict micro F1."""
    from wingspan.evaluation.scores import recognition

    return recognition(expected, found).micro.f1


def clocked(work: Callable[[], Any]) -> float:
    """CPU seconds of all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


class Ours:
    """The loop of `wingspan train`, whose dev scores are made here, outside of the clock."""

    def __init__(self, job: Row, train: Sequence[Any], dev: Sequence[Any]) -> None:
        import torch

        from wingspan.recognizer import Recognizer
        from wingspan.training import loop
        from wingspan.training.fit import fit
        from wingspan.training.run import prepare

        torch.set_num_threads(1)
        settings = {**job["settings"], "train.epochs": job["epochs"]}
        encoder = f"static:{job['vectors']}" if job["encoder"] == "vectors" else None
        fitted = fit(prepare(job["recipe"], encoder, settings), train, dev, seed=job["seed"])
        data = loop.TrainingData(fitted.sentences)
        run = loop.TrainingRun(fitted.recipe, fitted.labels, fitted.learner, data, job["seed"])
        self.progress = loop.train(run, loop.accelerator_for("no", "cpu"))
        self.learner = fitted.learner
        self.model = Recognizer(fitted.recipe, fitted.labels, fitted.learner, device="cpu")

    def epochs(self) -> Iterator[float]:
        """Trains; the CPU seconds of each epoch."""
        began, before = time.process_time(), 0
        for progress in self.progress:
            if progress.position.epoch > before:
                before = progress.position.epoch
                yield time.process_time() - began
                self.learner.train()
                began = time.process_time()

    def predict(self, documents: Sequence[Any], afresh: bool = False) -> list[Any]:
        """Entities in these words; `afresh`: as if it had never seen any of them."""
        self.learner.eval()
        if afresh:
            self.learner.model.encoder.tokenize.forget()
        return self.model.predict(documents)

    def keep(self) -> None:
        """Remembers the weights."""
        self.kept = copy.deepcopy(self.learner.state_dict())

    def restore(self) -> None:
        """Takes the remembered weights."""
        self.learner.load_state_dict(self.kept)

    def parameters(self) -> int:
        """How many numbers are trained."""
        return sum(weight.numel() for weight in self.learner.parameters() if weight.requires_grad)

    def versions(self) -> dict[str, str]:
        """What the figures depend on besides the code."""
        from measuring import versions

        return versions()


class Spacy:
    """spaCy's own pipeline and batches, as `spacy train` runs them."""

    def __init__(self, job: Row, train: Sequence[Any], dev: Sequence[Any]) -> None:
        import spacy
        from spacy.cli.init_config import init_config
        from spacy.training import Example

        self.pipe = job["recipe"].split()[1]
        config = init_config(lang="en", pipeline=[self.pipe], optimize="efficiency", gpu=False)
        if self.pipe == "spancat":
            config["components"]["spancat"]["suggester"]["sizes"] = list(range(1, WIDEST + 1))
        spacy.util.fix_random_seed(job["seed"])
        self.config = config.interpolate()
        self.nlp = spacy.util.load_model_from_config(config, auto_fill=True)
        self.shuffle, self.count = random.Random(job["seed"]), job["epochs"]
        self.examples = [Example(self.blank(document), self.labeled(document)) for document in train]
        self.nlp.initialize(lambda: self.examples)

    def blank(self, document: Any) -> Any:
        """The words of a document; spaces only matter to people."""
        from spacy.tokens import Doc

        return Doc(self.nlp.vocab, words=[document.text[start:end] for start, end in document.words])

    def labeled(self, document: Any) -> Any:
        """Its words with the gold entities."""
        from spacy.tokens import Span

        doc = self.blank(document)
        starts = {start: at for at, (start, _) in enumerate(document.words)}
        ends = {end: at + 1 for at, (_, end) in enumerate(document.words)}
        found = [Span(doc, starts[e.start], ends[e.end], label=e.label) for e in document.entities]
        if self.pipe == "ner":
            doc.set_ents(found)
        else:
            doc.spans["sc"] = found
        return doc

    def epochs(self) -> Iterator[float]:
        """Trains; the CPU seconds of each epoch."""
        from spacy import registry

        made = registry.resolve({key: self.config["training"][key] for key in ("optimizer", "batcher")})
        optimizer, batcher = made["optimizer"], made["batcher"]
        dropout = self.config["training"]["dropout"]
        for _ in range(self.count):
            began = time.process_time()
            self.shuffle.shuffle(self.examples)
            for batch in batcher(self.examples):
                self.nlp.update(batch, drop=dropout, sgd=optimizer)
            yield time.process_time() - began

    def predict(self, documents: Sequence[Any], afresh: bool = False) -> list[Any]:
        """Entities in these words."""
        from dataclasses import replace

        from wingspan.text import Entity

        found = []
        for document, doc in zip(documents, self.nlp.pipe(map(self.blank, documents)), strict=True):
            spans = doc.ents if self.pipe == "ner" else exclusive(doc.spans["sc"])
            words = document.words
            entities = tuple(Entity.at(s.label_, words[s.start].start, words[s.end - 1].end) for s in spans)
            found.append(replace(document, entities=entities))
        return found

    def keep(self) -> None:
        """Remembers the weights."""
        self.kept = self.nlp.to_bytes()

    def restore(self) -> None:
        """Takes the remembered weights."""
        self.nlp.from_bytes(self.kept)

    def parameters(self) -> int:
        """How many numbers are trained."""
        models = [pipe.model for _, pipe in self.nlp.pipeline]
        nodes = {id(node): node for model in models for node in model.walk()}.values()
        return sum(node.get_param(name).size for node in nodes for name in node.param_names if node.has_param(name))

    def versions(self) -> dict[str, str]:
        """What the figures depend on besides the code."""
        import spacy
        import thinc

        from measuring import versions

        return {**versions(), "spacy": spacy.__version__, "thinc": thinc.__version__}


def exclusive(group: Any) -> list[Any]:
    """Of overlapping spans the likelier."""
    ranked = sorted(zip(group.attrs["scores"], range(len(group)), strict=True), key=lambda pair: (-pair[0], pair[1]))
    taken: list[Any] = []
    for _, at in ranked:
        span = group[at]
        if all(span.end <= other.start or other.end <= span.start for other in taken):
            taken.append(span)
    return taken


def jobs_of(given: Any) -> list[Row]:
    """Every corpus, system and seed; the longest first, so that no core waits for one of them at the end."""
    named = {
        "hashed": ("baseline", "hashed"),
        "static": ("baseline", "vectors"),
        "ner": ("spaCy ner", "tok2vec"),
        "spancat": ("spaCy spancat", "tok2vec"),
    }
    corpora = given.corpora.split(",")
    slowest = ("ncbi-disease", "wnut17", "crossner/politics")
    return [
        {
            "corpus": corpus,
            "recipe": named[system][0],
            "encoder": named[system][1],
            "seed": int(seed),
            "settings": settings if named[system][0] == "baseline" else {},
            "epochs": given.epochs or EPOCHS[corpus],
            "vectors": str(given.vectors),
        }
        for corpus in sorted(corpora, key=slowest.index)
        for system in sorted(given.systems.split(","), key=SYSTEMS.index, reverse=True)
        for seed in given.seeds.split(",")
        for settings in choices(given.set)
    ]


def main() -> None:
    """Runs what the output file does not have yet."""
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=Path, required=True, help="the file of word vectors")
    parser.add_argument("--corpora", default=",".join(EPOCHS))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--epochs", type=int, default=0, help="for all corpora; otherwise as many as dev needs")
    given = parser.parse_args()
    run_jobs(given, jobs_of(given), train)


if __name__ == "__main__":
    main()
