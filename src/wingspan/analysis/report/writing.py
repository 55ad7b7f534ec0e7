"""The chapter on what a model writes: regenerated entities and how close they come (paper 000, Tables 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec

from wingspan.analysis.generated import Written, bleu2, token_accuracy
from wingspan.analysis.report.blocks import Column, Row, Section, Table

SAID = {"words": "the entity's own words", "synonyms": "a synonym"}
LEAD = (
    "The decoders of the training read the vectors of gold entities once more; the model that predicts does not need "
    "them. Words are as the decoder has them, mostly lower-cased."
)


def writing(tasks: Mapping[str, Sequence[Written]]) -> Section:
    """What each decoder wrote for the gold entities."""
    rows: list[Row] = []
    for task, pairs in tasks.items():
        own = task == "words"  # a synonym is not meant to equal the entity
        score = bleu2(pairs) if own and find_spec("sacrebleu") is not None else None
        rows.append((SAID[task], len(pairs), score, 100 * token_accuracy(pairs) if own else None))
    columns = (Column("task", "text"), Column("entities"), Column("BLEU-2", digits=4), Column("right words, %"))
    note = "" if find_spec("sacrebleu") else "BLEU needs sacrebleu: pip install 'wingspan[bleu]'."
    blocks = [
        Table("regeneration", "How well entities are written again", columns, rows, note=note),
        Table(
            "generation-by-label",
            "Right words by label",
            (Column("label", "label"), Column("entities"), Column("right words, %")),
            list(_by_label(tasks.get("words", ()))),
        ),
        examples_table(tasks),
    ]
    return Section("generation", "Generation", blocks, LEAD)


def _by_label(pairs: Sequence[Written]) -> Iterator[Row]:
    for label in sorted({pair.label for pair in pairs}):
        own = [pair for pair in pairs if pair.label == label]
        yield label, len(own), 100 * token_accuracy(own)


def examples_table(tasks: Mapping[str, Sequence[Written]]) -> Table:
    """Entities beside what was written for them, each once."""
    seen: dict[tuple[str, tuple[str, ...]], Row] = {}
    for pairs in zip(*tasks.values(), strict=True):
        key = pairs[0].label, pairs[0].words
        seen.setdefault(key, (" ".join(pairs[0].words), pairs[0].label, *(" ".join(pair.written) for pair in pairs)))
    columns = (Column("entity", "text"), Column("label", "label"), *(Column(SAID[task], "text") for task in tasks))
    return Table("generated", "What is written for gold entities", columns, list(seen.values()), shown=100)
