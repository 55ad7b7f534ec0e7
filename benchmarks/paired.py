"""Differences of F1 with their intervals: each system against the first, on the same articles.

python benchmarks/paired.py --data DATA --corpus genia --commit COMMIT --output RESULTS.jsonl \\
    "Baseline=FOLDER/genia-compress_generate-baseline" "All=FOLDER/genia-compress_generate-all"

A system is a name and the beginning of its prediction files, as `training_runs.keep` writes them. Lines are appended.
Predictions on test (labels, offsets, scores; no text) of runs with a base-size encoder and of `combinations.py` are in
benchmarks/predictions, behind the encoder's name, so that a later run can be paired with them. Those of the first calls
with a base-size encoder are missing: bundling on NCBI-disease; shallow and deep spans on GENIA (42d7cbc, e08163d).

Articles are drawn, and for each system runs of its own. Some corpora number their sentences only: there the version
with whole texts tells which article a sentence is of, because sentences of one article are no independent draws. Where
there is none, or there are too few articles, sentences are drawn; a row says which, and how many. `--subset long`
compares entities of more than four words alone, `--subset nested` the sentences in which an entity is inside another.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep_reading import words_in
from training_runs import gold

if TYPE_CHECKING:
    from wingspan.evaluation.comparison import Comparison

LONG = 4  # words: 4 of 100 entities of GENIA have more


def runs_of(start: str, part: str, right: list[Any]) -> list[list[Any]]:
    """The gold documents with what each seed's model found in them."""
    from wingspan.text import Entity, Span

    own = re.compile(rf"{re.escape(Path(start).name)}-\d+-{part}\.jsonl\.gz")  # names of others begin like this, too
    files = [path for path in Path(start).parent.glob("*.jsonl.gz") if own.fullmatch(path.name)]
    runs = []
    for path in sorted(files, key=lambda path: (len(path.name), path.name)):  # seed 9 before seed 10
        rows = dict(map(json.loads, gzip.decompress(path.read_bytes()).decode().splitlines()))
        runs.append(
            [
                replace(d, entities=tuple(Entity(label, (Span(s, e),), score) for label, s, e, score in rows[d.id]))
                for d in right
            ]
        )
    if not runs:
        raise SystemExit(f"{start}: there are no predictions of {part}")
    return runs


def by_article(sentences: list[Any], folder: Path, part: str) -> list[Any]:
    """The same with the article of each sentence as its group, where only the version with whole texts knows it."""
    if any(sentence.group for sentence in sentences) or not any(folder.glob(f"{part}.text.jsonl*")):
        return sentences
    unread = {article.id: letters_of(article.text) for article in gold(folder, part, text=True)}
    letters = [letters_of(sentence.text) for sentence in sentences]
    whole, at = "".join(letters), 0
    grouped, article, rest = [], "", ""  # what is left of the article that is being read
    for sentence, own in zip(sentences, letters, strict=True):
        if own and not rest:  # signs alone are of the article that is being read
            begun = [name for name, text in unread.items() if text.startswith(own)]
            # where several begin so ("St."), the longest whose whole text this and the next sentences are
            article = max(begun, key=lambda name: whole.startswith(unread[name], at) * len(unread[name]), default="")
            rest = unread.pop(article, "")
        if not rest.startswith(own):
            raise SystemExit(f"{folder}: {sentence.id} is in none of the whole texts of {part}")
        rest, at = rest[len(own) :], at + len(own)
        grouped.append(replace(sentence, group=article))
    return grouped


def letters_of(text: str) -> str:
    """What two versions of a text share."""
    return "".join(character for character in text.lower() if character.isalnum())


def unit_of(compared: Comparison) -> str:
    """What was drawn: articles, or sentences where their articles are not known or too few."""
    known = any(sentence.group for sentence in compared.gold)
    return "articles" if known and compared.unit == "documents" else "sentences"


def long_only(document: Any) -> Any:
    """A document with its long entities alone."""
    return replace(document, entities=tuple(e for e in document.entities if words_in(document, e) > LONG))


def nests(document: Any) -> bool:
    """Whether an entity is inside another."""
    spans = {(entity.start, entity.end) for entity in document.entities}
    return any(one != other and other[0] <= one[0] and one[1] <= other[1] for one in spans for other in spans)


def main() -> None:
    """One line for each system but the first."""
    from wingspan.evaluation.comparison import compare
    from wingspan.evaluation.scores import recognition

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="+", metavar="NAME=START")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--label")
    parser.add_argument("--part", default="test")
    parser.add_argument("--subset", choices=("long", "nested"))
    parser.add_argument("--samples", type=int, default=10000)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    folder = given.data / given.corpus
    right = by_article(gold(folder, given.part, given.label), folder, given.part)
    runs = {name: runs_of(start, given.part, right) for name, start in (s.rsplit("=", 1) for s in given.systems)}
    if given.subset == "long":
        right = [long_only(document) for document in right]
        runs = {name: [[long_only(document) for document in run] for run in each] for name, each in runs.items()}
    elif given.subset == "nested":
        inside = [nests(document) for document in right]
        right = list(compress(right, inside))
        runs = {name: [list(compress(run, inside)) for run in each] for name, each in runs.items()}
    scores = {name: [round(recognition(right, each).micro.f1, 3) for each in runs[name]] for name in runs}
    first, *others = runs
    with given.output.open("a") as out:
        for other in others:  # one pair at a time: no correction for pairs that nobody asked for
            compared = compare(right, {first: runs[first], other: runs[other]}, samples=given.samples)
            difference = compared.pairs[0].rows.micro
            row = {
                "corpus": given.corpus,
                "part": given.part,
                **({"subset": given.subset} if given.subset else {}),
                "system": other,
                "against": first,
                "seeds": [len(runs[other]), len(runs[first])],
                "f1": [scores[other], scores[first]],
                "difference": round(difference.value, 3),
                "low": round(difference.low, 3),
                "high": round(difference.high, 3),
                "p": round(difference.p, 4),
                "samples": given.samples,
                "units": compared.units,
                "unit": unit_of(compared),
                "entities": sum(len(document.entities) for document in right),
                "commit": given.commit,
            }
            out.write(json.dumps(row) + "\n")
            print(row, flush=True)


if __name__ == "__main__":
    main()
