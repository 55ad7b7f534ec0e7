"""Discontinuous entities on genia-disc and CRAFT with MiniLM: links against systems without them; one line per run.

python benchmarks/discontinuous.py --data DATA --seeds 1,2,3 --workers 16 --encoder minilm-disc \
    --predictions FOLDER --output benchmarks/results/discontinuous.jsonl
python benchmarks/discontinuous.py --data DATA --recipes discontinuous,discontinuous/bundled --corpora genia-disc \
    --set train.precision=bf16 --predictions ANOTHER --output benchmarks/results/discontinuous-bundled.jsonl
python benchmarks/discontinuous.py --compare --data DATA --predictions FOLDER \
    --output benchmarks/results/discontinuous-significance.jsonl
python benchmarks/discontinuous.py --compare --data DATA --corpora genia-disc --predictions ANOTHER \
    --output benchmarks/results/discontinuous-bundled-significance.jsonl
python benchmarks/discontinuous.py --examples --data DATA --predictions FOLDER \
    --output benchmarks/results/discontinuous-examples.jsonl

The rule (`nearest`) joins what the `split` model finds; its gap is tuned on dev twice, for all entities and for
discontinuous ones alone. `bundled` are links with tags; the links beside them are other runs, so both need a folder of
their own. Runs that the output file holds already are not run again.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from training_runs import Job, Row, arguments, choices, gold, run_jobs, train

TRAINED = ("discontinuous", "discontinuous/split", "discontinuous/hull", "discontinuous/drop")
SYSTEMS = ("links", "bundled", "nearest-discontinuous", "nearest-all", "split", "hull", "drop")
CORPORA = ("craft", "genia-disc")
EPOCHS = {"craft": "6", "genia-disc": "7"}
PARTS = ("all", "discontinuous", "continuous", "sentences", "fragments")


def work(job: Job) -> Row:
    """One training; its figures by continuity on dev and test, and for `split` those of the rule on top of it."""
    from wingspan.training.finish import try_joinings

    row, model, parts = train({**job, "predictions": None})
    row |= {"joining": vars_of(model.recipe.joining), "systems": {}}
    scored = ("dev",) if job["dev_only"] else ("dev", "test")
    name = row["recipe"].removeprefix("discontinuous").removeprefix("/") or "links"
    row["systems"][name] = {part: look(job, row, model, parts, part, name) for part in scored}
    if name == "split":
        tried = try_joinings(model, parts["dev"])
        aims = {
            "nearest-all": max(tried, key=lambda one: one.every.f1),
            "nearest-discontinuous": max(tried, key=lambda one: (one.discontinuous.f1, one.every.f1)),
        }
        for rule, best in aims.items():
            model.recipe = replace(model.recipe, joining=best.joining)
            row["systems"][rule] = {part: look(job, row, model, parts, part, rule) for part in scored}
            row["systems"][rule]["gap"] = best.joining.gap
    return row


def vars_of(joining: Any) -> dict[str, Any]:
    """The values chosen on dev."""
    return {"fragments": joining.fragments, "bar": joining.bar, "gap": joining.gap}


def look(job: Job, row: Row, model: Any, parts: Mapping[str, Any], part: str, name: str) -> dict[str, Any]:
    """Predicts a part, keeps what was found, and counts."""
    from wingspan.evaluation.scores import by_continuity, recognition

    found = model.predict(parts[part], batch_size=64)
    if job["predictions"]:
        keep(Path(job["predictions"]), f"{row['corpus']}-{name}-{row['seed']}-{part}", found)
    counts = {"all": recognition(parts[part], found).micro, **by_continuity(parts[part], found)}
    return {of: one.to_dict() for of, one in counts.items()}


def keep(folder: Path, name: str, documents: Iterable[Any]) -> None:
    """Entities with their fragments, without the texts, which are the corpus's."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / f"{name}.jsonl.gz", "wt", encoding="utf-8") as out:
        for document in documents:
            found = [[one.label, [list(span) for span in one.spans], round(one.score, 4)] for one in document.entities]
            out.write(json.dumps([document.id, found]) + "\n")


def run_all(given: argparse.Namespace) -> None:
    """Runs what is missing, side by side, the longest first."""
    jobs: list[Job] = [
        {
            "corpus": corpus,
            "recipe": recipe,
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": {"train.epochs": EPOCHS[corpus], **choice},
        }
        for corpus in given.corpora.split(",")
        for seed in given.seeds.split(",")
        for recipe in given.recipes.split(",")
        for choice in choices(given.set)
    ]
    run_jobs(given, jobs, work)


def compare_all(given: argparse.Namespace) -> None:
    """Every system against the others, all seeds together, on all entities and on parts of them; with intervals."""
    from wingspan.evaluation.comparison import compare
    from wingspan.evaluation.scores import continuous_entities, discontinuous_entities, discontinuous_sentences

    rows = []
    for corpus in given.corpora.split(","):
        right = gold(given.data / corpus, "test", limit=given.limit)
        runs = {name: found(given.predictions, corpus, name, "test", right) for name in SYSTEMS}
        present = {name: some for name, some in runs.items() if some}
        if len(present) < 2:
            continue
        of_both = {
            "all": lambda wanted, given: (wanted, given),
            "discontinuous": lambda *sides: tuple(map(discontinuous_entities, sides)),
            "continuous": lambda *sides: tuple(map(continuous_entities, sides)),
            "sentences": discontinuous_sentences,
        }
        for part, chosen in of_both.items():
            wanted = chosen(right, right)[0]
            systems = {name: [chosen(right, run)[1] for run in some] for name, some in present.items()}
            comparison = compare(wanted, systems, samples=given.samples)
            where = {"corpus": corpus, "part": part}
            for system in comparison.systems:
                f1 = system.f1
                interval = {"system": system.name, "runs": system.runs, "f1": f1.value, "low": f1.low, "high": f1.high}
                rows.append({**where, **interval})
            for pair in comparison.pairs:
                micro = pair.rows.micro
                figures = {"difference": micro.value, "low": micro.low, "high": micro.high, "p": micro.p}
                between = {"first": pair.first, "second": pair.second, "test": comparison.test(pair)}
                rows.append({**where, **between, **figures, "p_holm": micro.p_holm})
                if "links" in (pair.first, pair.second):
                    print(rows[-1], flush=True)
    given.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


def found(folder: Path, corpus: str, name: str, part: str, right: Sequence[Any]) -> list[list[Any]]:
    """The gold documents with what each seed's model found in them."""
    from wingspan.text import Entity, Span

    runs = []
    for path in sorted(folder.glob(f"{corpus}-{name}-[0-9]*-{part}.jsonl.gz")):
        rows = map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines())
        entities = [
            tuple(Entity(label, tuple(Span(*span) for span in spans), score) for label, spans, score in row[1])
            for row in rows
        ]
        runs.append([replace(d, entities=one) for d, one in zip(right, entities, strict=True)])
    return runs


def examples(given: argparse.Namespace) -> None:
    """The outcomes of discontinuous test entities with links, first seed: counts by kind, and some of each."""
    rows = []
    for corpus in given.corpora.split(","):
        right = gold(given.data / corpus, "test", limit=given.limit)
        kinds: dict[str, list[Row]] = {}
        for run in found(given.predictions, corpus, "links", "test", right)[:1]:
            for document, guess in zip(right, run, strict=True):
                wanted, given_ones = ({e for e in d.entities if e.discontinuous} for d in (document, guess))
                for one in sorted(wanted | given_ones, key=lambda entity: entity.spans):
                    if one in wanted and one in given_ones:
                        kind = "right"
                    else:
                        others = guess.entities if one in wanted else document.entities
                        kind = ("missed, " if one in wanted else "made up, ") + verdict(one, others)
                    texts = " … ".join(document.text[start:end] for start, end in one.spans)
                    shown = {"document": document.id, "label": one.label, "spans": one.spans, "text": texts}
                    kinds.setdefault(kind, []).append({**shown, "score": one.score})
        for kind in sorted(kinds, key=lambda kind: (kind != "right", -len(kinds[kind]))):
            few = [one for one in kinds[kind] if len(one["text"]) <= 60][:: max(len(kinds[kind]) // 3, 1)][:3]
            rows.append({"corpus": corpus, "kind": kind, "count": len(kinds[kind]), "examples": few})
            print(corpus, kind, len(kinds[kind]), [one["text"] for one in few], flush=True)
    given.output.write_text("".join(json.dumps(row) + "\n" for row in rows))


def verdict(one: Any, others: Iterable[Any]) -> str:
    """What the other side has in place of an entity: the likeliest reason first."""
    near = [other for other in others if any(a.overlaps(b) for a in one.spans for b in other.spans)]
    if any(other.spans == one.spans for other in near):
        return "under another label"
    same = [other for other in near if other.label == one.label]
    if any(other.discontinuous and set(other.spans) & set(one.spans) for other in same):
        return "beside one that shares a fragment"
    if any(other.discontinuous for other in same):
        return "with other borders"
    if any(other.spans[0].contains(one.hull) for other in same):
        return "inside one that is in one piece"
    return "where a part of it is in one piece" if same else "where nothing of its label is"


def main() -> None:
    """Runs, or compares what the runs found, or shows it."""
    parser = arguments(__doc__)
    parser.add_argument("--compare", action="store_true", help="no runs: significance from --predictions")
    parser.add_argument("--examples", action="store_true", help="no runs: what became of entities, from --predictions")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--recipes", default=",".join(TRAINED))
    parser.add_argument("--samples", type=int, default=1000)
    given = parser.parse_args()
    if given.compare:
        compare_all(given)
    elif given.examples:
        examples(given)
    else:
        run_all(given)


if __name__ == "__main__":
    main()
