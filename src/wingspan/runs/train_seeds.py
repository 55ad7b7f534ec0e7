"""`wingspan train` with one seed or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console

from wingspan.checkpoint import write_json
from wingspan.evaluation.given_spans import TypingScores
from wingspan.evaluation.scores import Scores
from wingspan.evaluation.seeds import over_seeds
from wingspan.runs.by_corpus import over_runs
from wingspan.runs.tables import print_seeds
from wingspan.runs.train import Job, run


def train_seeds(job: Job, seeds: Sequence[int], console: Console) -> dict[str, Any] | None:
    """One seed straight into the folder, several into `seed-N/` with a summary beside them. Returns the figures."""
    scores: list[Scores | TypingScores] = []
    corpora: list[dict[str, Any]] = []
    leaks: dict[str, Any] = {}
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"--seeds {','.join(map(str, seeds))}: each seed once")
    for seed in seeds:
        folder = job.folder / f"seed-{seed}" if job.folder is not None and len(seeds) > 1 else job.folder
        model, last = run(replace(job, seed=seed, folder=folder), console)
        leaks = {"leaks": model.facts["leaks"]}
        if last is not None:
            scores.append(last)
            corpora.append(model.facts.get("corpora", {}))
    if not scores:
        console.print("No dev or test documents were given, so there are no scores; the last epoch's model is kept.")
        return None
    if len(scores) == 1:
        return {**scores[0].to_dict(), **({"corpora": corpora[0]} if corpora[0] else {}), **leaks}
    console.print(f"{'Test' if job.corpora.test else 'Dev'} scores over {len(scores)} seeds:")
    print_seeds(scores, console)
    by_corpus = {"corpora": over_runs(corpora)} if corpora[0] else {}
    summary = {**over_seeds(scores), "seeds": list(seeds), **by_corpus, **leaks}
    if job.folder is not None:
        write_json(job.folder / "summary.json", summary)
    return summary
