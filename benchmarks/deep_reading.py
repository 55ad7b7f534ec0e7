"""Where depth and proposals help: predictions of the runs of `deep_accuracy.py`, by entity width and nested role.

python benchmarks/deep_reading.py --data $WINGSPAN_DATA --predictions runs/deep \
    --output benchmarks/results/deep_reading.jsonl
python benchmarks/deep_reading.py --data $WINGSPAN_DATA --predictions runs/deep --ablations --corpora genia \
    --output benchmarks/results/deep_ablation_reading.jsonl

Each system is compared with the exhaustive grid of the same span vectors, and each span vector with shallow maxima,
over documents and seeds together; with `--ablations` each ablation with what it was taken from. One JSON line per
corpus, part, subset of entities and system.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from training_runs import find_corpus
from wingspan.evaluation.buckets import buckets
from wingspan.evaluation.comparison import Comparison, compare
from wingspan.text import Document, Entity, Span
from wingspan.training.corpora import documents_of

SYSTEMS = {
    "shallow max": ("shallow-max-no-bilstm", "shallow-max-proposals"),
    "biaffine": ("biaffine", "biaffine-proposals"),
    "deep 2": ("depth-2-no-bilstm", "depth-2-proposals"),
    "deep 12": ("no-bilstm", "proposals"),
}
ABLATIONS = {
    "depth-12": "shallow-max",
    **dict.fromkeys(("no-bilstm", "share-weights", "no-smoothing"), "depth-12"),
    **dict.fromkeys(("init-mean", "init-multiplicative", "init-additive"), "depth-12"),
    **dict.fromkeys(("shallow-mean", "shallow-multiplicative", "shallow-additive"), "shallow-max"),
}
"""The system that each is compared with; all but one have the paper's BiLSTM."""
LONG = 10  # words


def predicted(path: Path, gold: Sequence[Document]) -> list[Document]:
    """Kept entities on the texts they were found in."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    assert [one[0] for one in found] == [document.id for document in gold], f"{path}: other documents"
    return [
        replace(
            document, entities=tuple(Entity(label, (Span(start, end),), score) for label, start, end, score in entities)
        )
        for document, (_, entities) in zip(gold, found, strict=True)
    ]


def words_in(document: Document, entity: Entity) -> int:
    """The width of an entity in words."""
    assert document.words is not None
    return sum(word.start < entity.end and entity.start < word.end for word in document.words)


def long_only(documents: Sequence[Document]) -> list[Document]:
    """The same documents with their long entities alone."""
    return [
        replace(one, entities=tuple(entity for entity in one.entities if words_in(one, entity) > LONG))
        for one in documents
    ]


def by_role(gold: Sequence[Document], runs: Sequence[Sequence[Document]]) -> dict[str, float | None]:
    """The mean F1 over runs for each nested role."""
    found = [buckets(gold, run, ["nested_role"])["nested_role"].rows for run in runs]
    mean = {}
    for rows in zip(*found, strict=True):
        values = [row.f1 for row in rows if row.f1 is not None]
        mean[rows[0].name] = sum(values) / len(values) if values else None
    return mean


def figures(comparison: Comparison) -> dict[str, Any]:
    """The second system, and how it differs from the first."""
    system, difference = comparison.systems[1].rows.micro, comparison.pairs[0].rows.micro
    return {
        "runs": comparison.systems[1].runs,
        "f1": [system.f1.value, system.f1.low, system.f1.high],
        "sd": system.over_runs.deviation,
        "difference": [difference.value, difference.low, difference.high],
        "p": difference.p,
    }


def kept(folder: Path, corpus: str, system: str, part: str, gold: Sequence[Document]) -> list[list[Document]]:
    """The predictions of every run of a system for a part."""
    paths = sorted(folder.glob(f"{corpus}-deep_span-{system}-[0-9]-{part}.jsonl.gz"))
    return [predicted(path, gold) for path in paths]


def ablations(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Each ablation on test against what it was taken from."""
    for corpus in given.corpora.split(","):
        gold = documents_of(find_corpus(given.data / corpus, "test"), None)
        for name, other in ABLATIONS.items():
            pair = {mark: kept(given.predictions, corpus, of, "test", gold) for mark, of in (("a", other), ("b", name))}
            if all(pair.values()):
                row = {"corpus": corpus, "part": "test", "subset": "all", "system": name, "against": other}
                yield row | figures(compare(gold, pair, samples=given.samples))


def lines(given: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All comparisons that the kept predictions allow."""
    for corpus in given.corpora.split(","):
        parts = {part: documents_of(find_corpus(given.data / corpus, part), None) for part in ("dev", "test")}
        systems: dict[str, dict[str, list[list[Document]]]] = {}
        for name in (name for pair in SYSTEMS.values() for name in pair):
            runs: dict[str, list[list[Document]]] = {}
            for part, gold in parts.items():
                runs[part] = kept(given.predictions, corpus, name, part, gold)
            if runs["test"]:
                both = [[*dev, *test] for dev, test in zip(runs["dev"], runs["test"], strict=True)]
                systems[name] = {**runs, "dev and test": both}
        golds = {**parts, "dev and test": [*parts["dev"], *parts["test"]]}
        for title, (grid, proposals) in SYSTEMS.items():
            for name, other in ((grid, SYSTEMS["shallow max"][0]), (proposals, grid)):
                if name not in systems or other not in systems:
                    continue
                for part, subset in (("test", "all"), ("dev and test", f"over {LONG} words")):
                    keep = list if subset == "all" else long_only
                    gold = keep(golds[part])
                    pair = {mark: [keep(run) for run in systems[of][part]] for mark, of in (("a", other), ("b", name))}
                    row = {"corpus": corpus, "part": part, "subset": subset, "spans": title, "system": name}
                    row |= {"against": other, "entities": sum(len(document.entities) for document in gold)}
                    row |= figures(compare(gold, pair, samples=given.samples))
                    if subset == "all":
                        row["roles"] = by_role(gold, systems[name][part])
                    yield row


def main() -> None:
    """Writes the lines anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--predictions", type=Path, required=True)
    parser.add_argument("--corpora", default="genia,litbank")
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--ablations", action="store_true", help="the other plan of deep_accuracy.py")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    with given.output.open("w") as out:
        for row in ablations(given) if given.ablations else lines(given):
            out.write(json.dumps(row) + "\n")
            print(row["corpus"], row["system"], row["subset"], row["f1"], row["difference"], row["p"], flush=True)


if __name__ == "__main__":
    main()
