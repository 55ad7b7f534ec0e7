"""Ji et al. 2022 on real corpora: SeqNER, BL-SeqNER, SpanNER, BL-SpanNER with MiniLM; one JSON line per run.

python benchmarks/bundling.py --data $WINGSPAN_DATA --corpora ncbi-disease,wnut17 --seeds 1,2,3 --workers 12 \
    --output benchmarks/results/bundling.jsonl

Runs that the output file holds already are not run again. `benchmarks/tables.py` makes the table.
"""

from __future__ import annotations

from training_runs import Job, arguments, choices, run_jobs

SYSTEMS = ("span", "bl-span", "seq", "bl-seq")
# Decoding and what the dev sets chose (tune_bundling.sh, results/bundling-tuning.jsonl); all else is the recipe's own.
# Hiding words in training helps on the biomedical corpora and hurts on WNUT17, whose names have little context.
HIDDEN = {"encoder.word_dropout": "0.15", "spans.dropout": "0.3", "head.dropout": "0.3"}
SLOWER = {"train.batch_size": "16", "train.learning_rate": "1e-4"}
CORPORA: dict[str, dict[str, str]] = {
    "genia": {"overlap": "nested", "train.epochs": "8", **HIDDEN},
    "ncbi-disease": {"overlap": "flat", "train.epochs": "12", **HIDDEN, **SLOWER},
    "bc5cdr": {"overlap": "flat", "train.epochs": "12", **HIDDEN},
    "wnut17": {"overlap": "flat"},
}


def settings(corpus: str, system: str, choice: dict[str, str]) -> dict[str, str]:
    """The settings of a run; a tagger alone has no span part to set."""
    chosen = {**CORPORA.get(corpus, {}), **choice}
    foreign = ("spans.", "head.") if system == "seq" else ()
    return {name: value for name, value in chosen.items() if not name.startswith(foreign)}


def main() -> None:
    """Runs what is missing, side by side."""
    parser = arguments(__doc__)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--corpora", default="genia,bc5cdr,ncbi-disease,wnut17")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    given = parser.parse_args()
    jobs: list[Job] = [
        {
            "corpus": corpus,
            "recipe": f"bundling/{system}",
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": settings(corpus, system, choice),
        }
        for corpus in given.corpora.split(",")
        for choice in choices(given.set)
        for seed in given.seeds.split(",")
        for system in given.systems.split(",")
    ]
    run_jobs(given, jobs)


if __name__ == "__main__":
    main()
