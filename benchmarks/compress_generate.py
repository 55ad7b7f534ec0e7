"""Nguyen et al. 2023 on real corpora: the seven settings of its Table 4 with MiniLM; one JSON line per run.

python benchmarks/compress_generate.py --build --data DATA --lexicons FOLDER --output -
python benchmarks/compress_generate.py --data DATA --lexicons FOLDER --seeds 1,2,3 --workers 16 \
    --predictions FOLDER --output benchmarks/results/compress_generate-second.jsonl

Runs that the output file holds already are not run again; after `--time-budget` seconds none is started. Weights are
chosen on dev with `--set terms.generate.weight=1e-6|1e-5|1e-4` and the like. `benchmarks/paired.py` compares
predictions, `benchmarks/tables.py` makes the tables.
"""

from __future__ import annotations

import argparse
import json
from itertools import chain
from pathlib import Path

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
GENERATES = ("supvib-spanreco", "all")
# corpus: folder, label, knowledge bases with names for its entities
CORPORA: dict[str, tuple[str, str | None, tuple[str, ...]]] = {
    "ncbi-disease": ("ncbi-disease", "Disease", ("mesh", "doid", "mondo")),
    "bc5cdr-disease": ("bc5cdr", "Disease", ("mesh", "doid", "mondo")),
    "bc5cdr-chemical": ("bc5cdr", "Chemical", ("mesh",)),
    "genia": ("genia", None, ("mesh", "hgnc")),
}
FOLDS = ("hyphen", "plural")
# hiding words and dropping out span vectors was chosen for this encoder on these corpora's dev sets (tune_bundling.sh)
SAME = {
    "overlap": "flat",
    "train.epochs": "8",
    "train.learning_rate": "1.5e-4",
    "encoder.word_dropout": "0.15",
    "spans.dropout": "0.3",
}
OWN = {"genia": {"overlap": "nested", "train.epochs": "6"}}
ALONE = {"phases.0.epochs": "2"}


def build(given: argparse.Namespace) -> None:
    """A lexicon for each corpus: names of knowledge bases, synonyms in the training part, hyphens and plurals folded.

    Only concepts that some entity of the corpus has the name of are kept: nothing asks for the others.
    """
    from wingspan.corpora.lexicon import Lexicon, coverage, term_key
    from wingspan.corpora.lexicon.concepts import read_concepts
    from wingspan.corpora.lexicon.synonyms import found_synonyms
    from wingspan.files import Problems

    given.lexicons.mkdir(parents=True, exist_ok=True)
    for corpus in given.corpora.split(","):
        folder, label, bases = CORPORA[corpus]
        parts = [gold(given.data / folder, part, label) for part in ("train", "dev", "test")]
        names = {term_key(d.text[e.start : e.end], FOLDS) for part in parts for d in part for e in d.entities}
        texts = folder != "genia"  # concepts of entities are in the version with whole texts
        own = found_synonyms(gold(given.data / folder, "train", None if texts else label, text=texts)).values()
        known = (c for base in bases for c in read_concepts(given.data / "kb" / f"{base}.tsv.gz", Problems()))
        fitting = (c for c in known if label is None or label in c.types)
        kept = [c for c in chain(fitting, *own) if any(term_key(name, FOLDS) in names for name in c.names)]
        lexicon = Lexicon.of(kept, FOLDS)
        lexicon.save(given.lexicons / f"{corpus}.sqlite")
        print(corpus, len(kept), [round(coverage(lexicon, part).overall.percent, 1) for part in parts], flush=True)


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
            "lexicon": str(given.lexicons / f"{corpus}.sqlite"),
            "recipe": f"compress_generate/{name}",
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": settings(name, {**OWN.get(corpus, {}), **choice}),
        }
        for seed in given.seeds.split(",")
        for name in names
        for corpus in given.corpora.split(",")
        for choice in choices(given.set)
    ]
    run_jobs(given, jobs, work)


def settings(name: str, choice: dict[str, str]) -> dict[str, str]:
    """What a run sets; not what a setting does not have."""
    generates, compresses = name.startswith(GENERATES), name.startswith("supvib") and name != "supvib-beta-0"
    missing = () if generates else ("phases.", "terms.generate", *(() if compresses else ("terms.compress",)))
    return {key: value for key, value in {**ALONE, **SAME, **choice}.items() if not key.startswith(missing)}


def main() -> None:
    """Runs, or builds what the runs need."""
    parser = arguments(__doc__)
    parser.add_argument("--build", action="store_true", help="no runs: the lexicons of --corpora, from DATA/kb")
    parser.add_argument("--lexicons", type=Path, help="folder of the lexicons")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--systems", default=",".join(SETTINGS))
    given = parser.parse_args()
    if given.build:
        build(given)
    else:
        run_all(given)


if __name__ == "__main__":
    main()
