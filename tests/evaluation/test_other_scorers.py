"""Equal figures where other scorers are right: seqeval on flat data, nervaluate where nobody overlaps two others."""

import pytest
import scoring_samples as samples
from nervaluate import Evaluator
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2

from wingspan.evaluation import recognition
from wingspan.text import Document, Entity, Span

MODES_THERE = {"strict": "strict", "exact": "exact", "partial": "partial", "type": "ent_type"}
VERDICTS = ("correct", "incorrect", "partial", "missed", "spurious")


def tagged(rng, length):
    """A valid IOB2 sequence, with entities side by side now and then."""
    tags = []
    while len(tags) < length:
        if rng.random() < 0.5:
            tags.append("O")
        else:
            label = rng.choice(("gene", "drug", "site"))
            tags += [f"B-{label}", *[f"I-{label}"] * rng.randrange(3)]
    return tags[:length]


def changed(rng, tags):
    """The same sequence with some entities gone, replaced or relabeled."""
    other = tagged(rng, len(tags))
    cut = rng.randint(0, len(tags))
    mixed = tags[:cut] + other[cut:]
    return [f"B{t[1:]}" if t[0] == "I" and (i == 0 or mixed[i - 1][1:] != t[1:]) else t for i, t in enumerate(mixed)]


def from_tags(id, tags):
    entities, start = [], None
    for i, tag in enumerate([*tags, "O"]):
        if start is not None and tag[0] != "I":
            entities.append(Entity(tags[start][2:], (Span(start, i),)))
            start = None
        if tag[0] == "B":
            start = i
    return Document.from_words(id, tuple(f"w{i}" for i in range(len(tags))), tuple(entities))


def test_strict_equals_seqeval_on_flat_data():
    rng = samples.generator("seqeval")
    for _ in range(2000):
        gold = [tagged(rng, rng.randint(1, 10)) for _ in range(rng.randint(1, 4))]
        found = [changed(rng, tags) for tags in gold]
        scores = recognition(*([from_tags(str(i), tags) for i, tags in enumerate(side)] for side in (gold, found)))
        if not scores.labels:
            continue
        per_label = precision_recall_fscore_support(gold, found, scheme=IOB2, zero_division=0)
        ours = [(c.precision, c.recall, c.f1, c.gold) for c in scores.labels.values()]
        for theirs, mine in zip(zip(*per_label, strict=True), ours, strict=True):
            assert mine == pytest.approx([*(100 * figure for figure in theirs[:3]), theirs[3]])
        for average, mine in (("micro", scores.micro), ("macro", scores.macro)):
            theirs = precision_recall_fscore_support(gold, found, average=average, scheme=IOB2, zero_division=0)
            assert (mine.precision, mine.recall, mine.f1) == pytest.approx([100 * figure for figure in theirs[:3]])


def same(counts, theirs):
    assert [getattr(counts, v) for v in VERDICTS] == [getattr(theirs, v) for v in VERDICTS]
    figures = (counts.precision, counts.recall, counts.f1)
    assert figures == pytest.approx((100 * theirs.precision, 100 * theirs.recall, 100 * theirs.f1))


def test_four_modes_equal_nervaluate_where_nobody_overlaps_two_others():
    rng = samples.generator("nervaluate")
    for _ in range(1500):
        sides = list(zip(*(samples.tame(rng) for _ in range(rng.randint(1, 3))), strict=True))
        records = [
            [[{"label": e.label, "start": e.start, "end": e.end - 1} for e in entities] for entities in side]
            for side in sides
        ]
        theirs = Evaluator(*records, tags=list(samples.LABELS), loader="dict").evaluate()
        gold, found = ([samples.document(entities, str(i)) for i, entities in enumerate(side)] for side in sides)
        for mode, name in MODES_THERE.items():
            scores = recognition(gold, found, mode)
            same(scores.micro, theirs["overall"][name])
            for label, counts in scores.labels.items():
                same(counts, theirs["entities"][label][name])
