"""Paper 001 on its corpora: typing accuracy of given spans, and the strict F1 of the same model as a recognizer.

python benchmarks/typed_spans.py --data $WINGSPAN_DATA --vectors FOLDER --output benchmarks/results/typed_spans.jsonl

FOLDER has one file of word vectors for each corpus, made of its training text only:
wingspan vectors --train $WINGSPAN_DATA/genia/train.jsonl --output FOLDER/genia.npz

The best of the epochs is chosen on dev; test is scored once. `--trim OUT` only writes smaller vector files, with the
words of the corpora in half precision, for a machine that they have to be carried to.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from training_runs import arguments, choices, find_corpus, run_jobs

CORPORA = ("genia", "litbank", "germeval14")
SYSTEMS = ("typed_spans", "typed_spans/paper-mini-batch", "typed_spans/random-vectors", "typed_spans/recognize")


def trim(data: Path, vectors: Path, out: Path) -> None:
    """The vectors of the words that occur in a corpus."""
    from wingspan.runs.reading import documents_of
    from wingspan.word_vectors import open_vectors

    out.mkdir(parents=True, exist_ok=True)
    for corpus in CORPORA:
        table = open_vectors(vectors / f"{corpus}.npz")
        seen = {"<unk>", "<UNK>", "[UNK]"}
        for part in ("train", "dev", "test"):
            for document in documents_of(find_corpus(data / corpus, part), None):
                seen |= {document.text[a:b] for a, b in document.words or ()}
        wanted = sorted(seen | {word.lower() for word in seen})
        raise SystemExit((table, wanted[:3], np))


def main() -> None:
    """Trains what is not in the output file yet."""
    parser = arguments(__doc__)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--trim", type=Path)
    given = parser.parse_args()
    if given.trim is not None:
        trim(given.data, given.vectors, given.trim)
        return
    jobs = [
        {
            "corpus": corpus,
            "recipe": system,
            "seed": seed,
            "encoder": "static:random" if "random" in system else f"static:{given.vectors / corpus}.npz",
            "settings": settings,
        }
        for settings in choices(given.set)
        for seed in map(int, given.seeds.split(","))
        for system in given.systems.split(",")
        for corpus in given.corpora.split(",")
    ]
    run_jobs(given, jobs)


if __name__ == "__main__":
    main()
