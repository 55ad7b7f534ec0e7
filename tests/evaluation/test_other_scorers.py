"""Equal figures where other scorers are right: seqeval on flat data, nervaluate and n2c2 where nobody overlaps two."""

import pytest
import scoring_samples as samples
from nervaluate import Evaluator
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB2

from wingspan.evaluation.scores import recognition
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


def n2c2(gold, found, mode):
    """True positives, false positives and false negatives of one document, by the definition of n2c2 2018 track 2.

    Strict: same label, start and end. Lenient: same label, and the ranges overlap. A gold entity is answered by the
    first found entity that matches it; further ones that match it are left out, neither right nor wrong.
    """

    def matches(wanted, given):
        if wanted.label != given.label:
            return False
        if mode == "strict":
            return (wanted.start, wanted.end) == (given.start, given.end)
        return wanted.start < given.end and given.start < wanted.end

    answered, left_out = set(), set()
    for given in found:
        for wanted in gold:
            if matches(wanted, given):
                left_out |= {given} if wanted in answered else set()
                answered.add(wanted)
    kept = [given for given in found if given not in left_out]
    right = sum(any(matches(wanted, given) for wanted in gold) for given in kept)
    return right, len(kept) - right, len(gold) - right


def n2c2_figures(tp, fp, fn):
    precision, recall = tp / (tp + fp) if tp else 0, tp / (tp + fn) if tp else 0
    return 100 * precision, 100 * recall, 200 * precision * recall / (precision + recall) if tp else 0


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_strict_and_lenient_equal_the_definitions_of_n2c2(mode):
    rng = samples.generator(f"n2c2 {mode}")
    for _ in range(1000):
        sides = list(zip(*(samples.tame(rng) for _ in range(rng.randint(1, 4))), strict=True))
        gold, found = ([samples.document(entities, str(i)) for i, entities in enumerate(side)] for side in sides)
        counts = [n2c2(g.entities, f.entities, mode) for g, f in zip(gold, found, strict=True)]
        scores = recognition(gold, found, mode)
        total = [sum(column) for column in zip(*counts, strict=True)]
        assert [scores.micro.tp, scores.micro.fp, scores.micro.fn] == total
        assert (scores.micro.precision, scores.micro.recall, scores.micro.f1) == pytest.approx(n2c2_figures(*total))
        # its "macro" is the mean over documents
        means = [sum(column) / len(counts) for column in zip(*(n2c2_figures(*c) for c in counts), strict=True)]
        assert list(scores.document_macro[:3]) == pytest.approx(means)
        for label, mine in scores.labels.items():
            of_label = [
                n2c2(*([e for e in d.entities if e.label == label] for d in pair), mode)
                for pair in zip(gold, found, strict=True)
            ]
            assert [mine.tp, mine.fp, mine.fn] == [sum(column) for column in zip(*of_label, strict=True)]


def test_strict_equals_n2c2_whatever_overlaps():
    rng = samples.generator("n2c2 nested")
    for _ in range(1000):
        gold, found = ({e for e in side if not e.discontinuous} for side in samples.wild(rng))
        micro = recognition([samples.document(gold)], [samples.document(found)]).micro
        assert (micro.tp, micro.fp, micro.fn) == n2c2(gold, found, "strict")


def test_where_two_answers_overlap_one_gold_n2c2_leaves_one_out():
    """The script does not count the second answer at all; here it is spurious, as every found entity is counted."""
    gold, found = [Entity.at("drug", 0, 10)], [Entity.at("drug", 0, 4), Entity.at("drug", 6, 10)]
    assert n2c2(gold, found, "lenient") == (1, 0, 0)
    micro = recognition([samples.document(gold)], [samples.document(found)], "lenient").micro
    assert (micro.tp, micro.fp, micro.fn) == (1, 1, 0)
