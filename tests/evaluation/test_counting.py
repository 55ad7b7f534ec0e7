"""Counts of documents: their sums are the figures of `recognition`, in every mode."""

import random

import numpy as np
import pytest

from wingspan.evaluation.scores import MODES, recognition
from wingspan.evaluation.significance import figures, tabulate
from wingspan.text import Document, Entity, Span


def random_documents(rng: random.Random, number: int = 40) -> tuple[list[Document], list[Document]]:
    def entity() -> Entity:
        start = rng.randrange(20)
        spans = [Span(start, start + rng.randint(1, 6))]
        if rng.random() < 0.2:
            spans.append(Span(spans[0].end + 1, spans[0].end + 3))
        return Entity(rng.choice(["gene", "drug", "micro"]), tuple(spans))

    gold, found = [], []
    for at in range(number):
        wanted = tuple(entity() for _ in range(rng.randint(0, 4)))
        given = tuple(e if rng.random() < 0.6 else entity() for e in wanted)
        group = f"article {at // 3}" if at % 4 else None
        gold.append(Document(str(at), "x" * 40, wanted, group=group))
        found.append(Document(str(at), "x" * 40, given))
    return gold, found


@pytest.mark.parametrize("mode", MODES)
def test_sums_are_the_figures_of_recognition(mode):
    gold, found = random_documents(random.Random(1))
    table = tabulate(gold, [found, gold], mode)
    for run, documents in enumerate((found, gold)):
        scores = recognition(gold, documents, mode)
        rows = table.named(table.figures()[run].tolist())
        assert rows.micro == pytest.approx([scores.micro.precision, scores.micro.recall, scores.micro.f1])
        assert rows.macro == pytest.approx(list(scores.macro[:3]))
        for label, counts in scores.labels.items():
            assert rows.labels[label] == pytest.approx([counts.precision, counts.recall, counts.f1])
        assert len(table.units) == len(scores.documents)
        for unit, counts in zip(table.counts[:, run, 0], scores.documents, strict=True):
            assert unit.tolist() == [counts.tp, counts.found, counts.gold]


def test_runs_meet_the_gold_by_id_and_groups_are_one_unit():
    gold = [Document(str(at), "ab", (Entity.at("x", 0, 1),), group="g" if at < 2 else None) for at in range(3)]
    table = tabulate(gold, [gold[::-1]])
    assert table.units == ("g", "2")
    assert table.counts[:, 0, 0].tolist() == [[2, 2, 2], [1, 1, 1]]
    with pytest.raises(ValueError, match="no predicted counterpart"):
        tabulate(gold, [gold, gold[:2]])
    assert tabulate(gold, [gold[:2]], allow_missing=True).counts[:, 0, 0].tolist() == [[2, 2, 2], [0, 0, 1]]


def test_a_label_that_does_not_occur_takes_no_part_in_the_mean():
    sums = np.array([[2.0, 4, 2], [2, 2, 2], [0, 2, 0], [0, 0, 0]])  # all, a, b, c: tp, found, gold
    assert figures(sums).tolist() == [
        [50, 100, pytest.approx(200 / 3)],
        [50, 50, 50],
        [100, 100, 100],
        [0, 0, 0],
        [0, 0, 0],
    ]
    assert not figures(np.zeros((2, 3))).any()
