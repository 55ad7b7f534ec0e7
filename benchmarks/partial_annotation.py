"""Partial annotation on BC5CDR: diseases kept in one half of the training documents, chemicals in the other.

python benchmarks/partial_annotation.py --data DATA --seeds 1,2,3 --workers 9 \
    --output benchmarks/results/partial_annotation.jsonl

`full` has both types everywhere, `masked` knows which type each half leaves unmarked, `unmasked` takes silence for
"nothing". Dev and test documents are fully annotated. One JSON line per run; runs that the output file holds already
are not run again. `benchmarks/tables.py` makes the table.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from compress_generate import SAME  # the settings of the other tables on this corpus
from training_runs import Job, Row, arguments, choices, run_jobs, train

SYSTEMS = ("full", "masked", "unmasked")
LABELS = ("Chemical", "Disease")


def halves(documents: list[Any]) -> tuple[list[Any], list[Any]]:
    """Every second document with its diseases only, the others with their chemicals only."""

    def kept(some: list[Any], label: str) -> list[Any]:
        return [replace(d, entities=tuple(entity for entity in d.entities if entity.label == label)) for d in some]

    return kept(documents[::2], "Disease"), kept(documents[1::2], "Chemical")


def arranged(parts: dict[str, Any], system: str) -> Any:
    """The corpora of a run."""
    from wingspan.training.corpora import Corpora, corpora_of
    from wingspan.training.multi_corpus import CorporaPlan, OneOfSeveral

    if system == "full":
        return Corpora(parts["train"], parts["dev"], parts["test"])

    def named(name: str, documents: list[Any]) -> tuple[Any, ...]:
        return tuple(replace(document, dataset=name) for document in documents)

    diseases, chemicals = halves(parts["train"])
    target = OneOfSeveral(
        "diseases",
        LABELS,
        annotates=("Disease",),
        train=named("diseases", diseases),
        dev=named("diseases", parts["dev"]),
        test=named("diseases", parts["test"]),
        role="target",
    )
    other = OneOfSeveral("chemicals", LABELS, annotates=("Chemical",), train=named("chemicals", chemicals))
    silence = "unknown" if system == "masked" else "negative"
    return corpora_of(None, None, None, None, CorporaPlan((target, other), heads="shared", silence=silence))


def work(job: Job) -> Row:
    """One training; its row says which of the three it is."""
    system = job["corpus"].removeprefix("bc5cdr-")
    row, *_ = train(job, lambda parts: arranged(parts, system))
    return {**row, "system": system}


def main() -> None:
    """Runs what is missing, side by side."""
    parser = arguments(__doc__)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--recipe", default="baseline/pretrained")
    parser.add_argument("--plain", action="store_true", help="the recipe's own settings: for rehearsals")
    given = parser.parse_args()
    jobs: list[Job] = [
        {
            "corpus": f"bc5cdr-{system}",
            "folder": "bc5cdr",
            "text": True,
            "recipe": given.recipe,
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": {**({} if given.plain else SAME), **choice},
        }
        for seed in given.seeds.split(",")
        for system in SYSTEMS
        for choice in choices(given.set)
    ]
    run_jobs(given, jobs, work)


if __name__ == "__main__":
    main()
