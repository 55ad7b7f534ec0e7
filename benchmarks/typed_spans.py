"""SNG on its corpora: typing accuracy of given spans, and the strict F1 of the same model as a recognizer.

python benchmarks/typed_spans.py --data $WINGSPAN_DATA --vectors FOLDER --output benchmarks/results/typed_spans.jsonl

FOLDER has one file of word vectors for each corpus, made of its training text only, for example
wingspan vectors $WINGSPAN_DATA/genia/train.jsonl --output FOLDER/genia.npz

The best of the epochs is chosen on dev; test is scored once.
"""

from __future__ import annotations

from pathlib import Path

from training_runs import arguments, choices, run_jobs

CORPORA = ("germeval14", "genia", "litbank")  # those that take longest first
SYSTEMS = ("typed_spans/recognize", "typed_spans", "typed_spans/paper-mini-batch", "typed_spans/random-vectors")


def main() -> None:
    """Trains what is not in the output file yet."""
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    given = parser.parse_args()
    jobs = [
        {
            "corpus": corpus,
            "recipe": system,
            "seed": seed,
            "encoder": "static:random" if "random" in system else f"static:{given.vectors / corpus}.npz",
            "settings": settings,
        }
        for settings in choices(given.set)
        for system in given.systems.split(",")
        for corpus in given.corpora.split(",")
        for seed in map(int, given.seeds.split(","))
    ]
    run_jobs(given, jobs)


if __name__ == "__main__":
    main()
