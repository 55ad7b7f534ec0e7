"""Documents to sentences in bulk, beside the rules that take one word after the other; and whether all are the same.

    python benchmarks/segmenting.py --data $WINGSPAN_DATA --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --output benchmarks/results/segmenting.jsonl --commit $(git rev-parse --short HEAD)

Words, sentence ends and windows with the pieces of each word, in processor time of one thread: with a table of words
that is empty before each round (`cold`), and with one that knows all of them (`warm`). Both sides look words up in such
a table. Then all files of all corpora, as they are and as plain texts. One JSON line a row.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # one thread, as the other side
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.append(str(Path(__file__).parent.parent / "tests" / "support"))

import old_segmentation as old

from measuring import take_turns, versions
from wingspan.corpora.formats import detect, read
from wingspan.corpora.segment import Segmenting, segment_rows
from wingspan.corpora.word_table import WordTable
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.files import Problems
from wingspan.text import Document, Sentence, spans_of

Row = dict[str, Any]
KINDS = ("*.jsonl", "*.jsonl.gz", "*ub[tT]ator*", "*BioC*", "*.iob2*", "*.conll*", "*.tsv*", "*.annotated")


class Segmenter:
    """Both ways to segment, with the table of an encoder's words."""

    def __init__(self, folder: str) -> None:
        self.tokenize = PretrainedEncoder(name=folder).tokenize
        self.settings = Segmenting(max_length=self.tokenize.max_length)
        self.table = self.new_table()

    def new_table(self) -> WordTable:
        """A table that knows no word."""
        self.tokenize.forget()
        return self.tokenize.table()

    def sizes(self, words: Sequence[str]) -> Sequence[int]:
        """The number of pieces of each word."""
        return self.table.sizes(self.table.numbers(words)).tolist()  # type: ignore[no-any-return]

    def in_bulk(self, documents: Iterable[Document], gold: bool = False) -> Iterator[Sentence | None]:
        """As it is."""
        return segment_rows(documents, self.settings, lambda: self.table, gold)

    def by_word(self, documents: Iterable[Document], gold: bool = False) -> Iterator[old.OldSentence | None]:
        """As it was."""
        return old.segment_rows(documents, self.settings, self.sizes, gold)


def count_words(sentences: Iterable[Any]) -> int:
    """The words of all sentences, each kept no longer than it is counted."""
    return sum(len(sentence.words) for sentence in sentences if sentence is not None)


def speed(segmenter: Segmenter, documents: Sequence[Document], rounds: int) -> Iterator[Row]:
    """Words a second of processor time, of texts and of given words, both ways."""
    texts = [Document(document.id, document.text) for document in documents]
    given = [Document(document.id, document.text, words=document.words) for document in documents]
    gc.freeze()  # the documents are no part of the work

    def work(way: Callable[..., Any], rows: Sequence[Document], cold: bool) -> int:
        if cold:
            segmenter.table = segmenter.new_table()
        return count_words(way(rows))

    for name, rows in (("texts", texts), ("given words", given)):
        for cold in (True, False):
            words = work(segmenter.in_bulk, rows, cold)
            turns = take_turns(
                partial(work, segmenter.by_word, rows, cold), partial(work, segmenter.in_bulk, rows, cold), rounds
            )
            yield {
                "name": f"{len(rows):,} sentences of GENIA, {name}, {'cold' if cold else 'warm'}",
                "words": words,
                "words_a_second": round(words / turns["cpu_seconds"]),
                "words_a_second_before": round(words / turns["floor_cpu_seconds"]),
                **turns,
            }


def identity(segmenter: Segmenter, root: Path) -> Row:
    """All files: as they are, where no sentence cuts gold, and their texts alone. Sentences that differ are counted."""
    files = {path for kind in KINDS for path in root.rglob(kind) if path.is_file() and "kb" not in path.parts}
    counts: Counter[str] = Counter()
    for path in sorted(files | {path.parent for path in root.rglob("*.ann")}):
        rows = list(read(path, detect(path), problems=Problems("skip")))
        counts["files"] += 1
        counts["documents"] += len(rows)
        texts = [Document(row.id, row.text) for row in rows]
        for documents, gold in ((rows, True), (texts, False)):
            pairs = zip(segmenter.in_bulk(documents, gold), segmenter.by_word(documents, gold), strict=True)
            for found, expected in pairs:
                counts["different"] += not same(found, expected)
                if expected is not None:
                    counts["sentences"] += 1
                    counts["words"] += len(expected.words)
        print(f"{path.relative_to(root)}: {dict(counts)}", file=sys.stderr, flush=True)
    return {"name": "all corpora, in bulk and word by word", "different": 0, **counts}


def same(found: Sentence | None, expected: old.OldSentence | None) -> bool:
    """Whether the two have the same words at the same places, the same entities and the same core."""
    if found is None or expected is None:
        return found is expected
    ours = (found.words, found.entities, found.core, found.reach, spans_of(found.offsets), found.dataset)
    return ours == (
        *(expected.words, expected.entities, expected.core, expected.reach),
        *(expected.offsets, expected.dataset),
    )


def rows(given: argparse.Namespace) -> Iterator[Row]:
    """Everything that was asked for."""
    segmenter = Segmenter(given.encoder_folder)
    documents = [*read(given.data / "genia/train.jsonl"), *read(given.data / "genia/dev.jsonl")][: given.sentences]
    yield from speed(segmenter, documents, given.rounds)
    if not given.quick:
        yield identity(segmenter, given.data)


def main() -> None:
    """Runs, writes one JSON line per row, prints them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("WINGSPAN_DATA"))
    folder = Path(os.environ.get("WINGSPAN_ENCODERS", ".")) / "all-MiniLM-L6-v2"
    parser.add_argument("--encoder-folder", default=str(folder))
    parser.add_argument("--sentences", type=int, default=15_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="only speed, not all corpora")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, help="JSON lines are added to this file")
    given = parser.parse_args()
    if given.data is None or not Path(given.encoder_folder).is_dir():
        parser.error("give --data and --encoder-folder, or set WINGSPAN_DATA and WINGSPAN_ENCODERS")
    facts = {"versions": versions(), "commit": given.commit}
    for row in rows(given):
        if given.output is not None:
            with given.output.open("a") as out:
                out.write(json.dumps({**row, **facts}) + "\n")
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
