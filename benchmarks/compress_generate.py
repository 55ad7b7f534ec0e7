"""Nguyen et al. 2023 on real corpora: the seven settings of its Table 4 with MiniLM; one JSON line per run.

python benchmarks/compress_generate.py --data DATA --lexicons FOLDER --seeds 1,2,3 --workers 16 \
    --predictions FOLDER --output benchmarks/results/compress_generate.jsonl
python benchmarks/compress_generate.py --compare --data DATA --predictions FOLDER \
    --output benchmarks/results/compress_generate-significance.jsonl

The lexicons are diseases.sqlite and chemicals.sqlite (`wingspan lexicon`). Runs that the output file holds already are
not run again; after `--time-budget` seconds none is started. `benchmarks/tables.py` makes the tables.
"""

from __future__ import annotations

import argparse
import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from training_runs import Job, Row, arguments, choices, gold, run_jobs, train

SETTINGS = (
    "baseline",
    "supvib-beta-0",
    "supvib",
    "supvib-spanreco",
    "all",
    "all-shared-spread",
    "all-no-sharing",
)
COMPARED = (*SETTINGS, "supvib-proposals")
GENERATES = ("supvib-spanreco", "all")
# corpus: folder, label, lexicon
CORPORA = {
    "ncbi-disease": ("ncbi-disease", "Disease", "diseases.sqlite"),
    "bc5cdr-disease": ("bc5cdr", "Disease", "diseases.sqlite"),
    "bc5cdr-chemical": ("bc5cdr", "Chemical", "chemicals.sqlite"),
}
# hiding words and dropping out span vectors was chosen for this encoder on these corpora's dev sets (tune_bundling.sh)
SAME = {
    "overlap": "flat",
    "train.epochs": "8",
    "train.learning_rate": "1.5e-4",
    "encoder.word_dropout": "0.15",
    "spans.dropout": "0.3",
}
ALONE = {"phases.0.epochs": "2"}


def work(job: Job) -> Row:
    """One training, what it writes for dev entities, and how much of the corpus its lexicon has synonyms for."""
    from wingspan.corpora.lexicon import coverage, load
    from wingspan.report.generation import bleu2, examples, regenerate, token_accuracy

    row, model, parts = train(job)
    lexicon = load(job["lexicon"])
    row["synonyms"] = {name: coverage(lexicon, documents).overall.percent for name, documents in parts.items()}
    if "generate" in model.recipe.terms:
        pairs = regenerate(model, parts["dev"])
        row |= {"bleu2": bleu2(pairs), "token_accuracy": token_accuracy(pairs)}
        if job["predictions"]:
            name = f"{row['corpus']}-{row['recipe'].replace('/', '-')}-{row['seed']}-written.json"
            (Path(job["predictions"]) / name).write_text(json.dumps(examples({"written": pairs}, 200)))
    return row


def run_all(given: argparse.Namespace) -> None:
    """Runs what is missing, side by side, the longest first."""
    names = sorted(given.systems.split(","), key=lambda name: not name.startswith(GENERATES))
    jobs: list[Job] = [
        {
            "corpus": corpus,
            "folder": CORPORA[corpus][0],
            "label": CORPORA[corpus][1],
            "lexicon": str(given.lexicons / CORPORA[corpus][2]),
            "recipe": f"compress_generate/{name}",
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": settings(name, choice),
        }
        for seed in given.seeds.split(",")
        for name in names
        for corpus in given.corpora.split(",")
        for choice in choices(given.set)
    ]
    run_jobs(given, jobs, work)


def compare_all(given: argparse.Namespace) -> None:
    """Every setting against the baseline, all seeds together: paired bootstrap and randomization over sentences."""
    from wingspan.evaluation.comparison import compare

    rows = []
    for corpus, (folder, label, _) in CORPORA.items():
        for part in ("dev", "test"):
            right = gold(given.data / folder, part, label, given.limit)
            runs = {name: found(given.predictions, corpus, name, part, right) for name in COMPARED}
            systems = {name: some for name, some in runs.items() if some}
            if len(systems) < 2:
                continue
            for pair in compare(right, systems, samples=given.samples).pairs:
                if pair.first == "baseline":
                    micro, seeds = pair.rows.micro, len(systems[pair.second])
                    figures = {"difference": micro.value, "low": micro.low, "high": micro.high, "p": micro.p}
                    row = {"corpus": corpus, "part": part, "system": pair.second, "seeds": seeds, **figures}
                    rows.append({**row, "p_holm": micro.p_holm})
                    print(rows[-1], flush=True)
    given.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


def found(folder: Path, corpus: str, name: str, part: str, right: list[Any]) -> list[list[Any]]:
    """The gold documents with what each seed's model found in them."""
    from wingspan.text import Entity, Span

    runs = []
    for path in sorted(folder.glob(f"{corpus}-compress_generate-{name}-[0-9]*-{part}.jsonl.gz")):
        rows = map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
        entities = [
            tuple(Entity(label, (Span(start, end),), score) for label, start, end, score in row[1]) for row in rows
        ]
        runs.append([replace(d, entities=one) for d, one in zip(right, entities, strict=True)])
    return runs


def settings(name: str, choice: dict[str, str]) -> dict[str, str]:
    """What a run sets; not what a setting does not have."""
    generates, compresses = name.startswith(GENERATES), name.startswith("supvib") and name != "supvib-beta-0"
    missing = () if generates else ("phases.", "terms.generate", *(() if compresses else ("terms.compress",)))
    return {key: value for key, value in {**ALONE, **SAME, **choice}.items() if not key.startswith(missing)}


def main() -> None:
    """Runs, or compares what the runs found."""
    parser = arguments(__doc__)
    parser.add_argument("--compare", action="store_true", help="no runs: significance from --predictions")
    parser.add_argument("--lexicons", type=Path, help="folder of diseases.sqlite and chemicals.sqlite")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--systems", default=",".join(SETTINGS))
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    if given.compare:
        compare_all(given)
    else:
        run_all(given)


if __name__ == "__main__":
    main()
