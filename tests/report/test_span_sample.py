"""Which spans are collected: all gold, neighbors of every kind of overlap, random others; never an entity as one."""

import numpy as np
import pytest
from tiny import of_length

from wingspan.report.collect import SpanSample, sample_spans
from wingspan.report.geometry import overlap_kind, overlap_ratio
from wingspan.text import Entity, Sentence, Span


def choose(
    sentence: Sentence, neighbors: int = 99, negatives: int = 0, widest: int = 3, seed: int = 0, **others
) -> SpanSample:
    return sample_spans(
        sentence,
        others.get("counts", lambda span: True),
        others.get("known", lambda label: True),
        widest,
        neighbors=neighbors,
        negatives=negatives,
        random=np.random.default_rng(seed),
    )


@pytest.mark.parametrize(
    ("one", "other", "ratio", "kind"),
    [
        ((0, 2), (2, 4), 0.0, "none"),
        ((0, 2), (1, 3), 1 / 3, "weak"),
        ((0, 2), (0, 1), 0.5, "weak"),
        ((0, 3), (0, 2), 2 / 3, "strong"),
        ((2, 5), (2, 5), 1.0, "strong"),
        ((0, 2), (5, 9), 0.0, "none"),
    ],
)
def test_overlap_is_what_both_hold_of_what_either_holds(one, other, ratio, kind):
    assert overlap_ratio(Span(*one), Span(*other)) == pytest.approx(ratio)
    assert overlap_ratio(Span(*other), Span(*one)) == pytest.approx(ratio)
    assert overlap_kind(ratio) == kind


def test_neighbors_overlap_or_touch_and_are_no_entities():
    sentence = of_length(6, ("Drug", 2, 4), ("Gene", 2, 3))
    chosen = choose(sentence, widest=2)
    assert chosen.labels == [(0, "Gene"), (1, "Drug")]
    of_drug = {chosen.spans[neighbor] for entity, neighbor in chosen.pairs if chosen.spans[entity] == Span(2, 4)}
    assert of_drug == {(0, 2), (1, 2), (1, 3), (3, 4), (3, 5), (4, 5), (4, 6)}  # not (2, 3), which is a gene
    of_gene = {chosen.spans[neighbor] for entity, neighbor in chosen.pairs if chosen.spans[entity] == Span(2, 3)}
    assert of_gene == {(0, 2), (1, 2), (1, 3), (3, 4), (3, 5)}
    assert len(set(chosen.spans)) == len(chosen.spans)
    assert chosen.sampled == []


def test_so_many_neighbors_of_each_kind():
    sentence = of_length(30, ("Drug", 10, 14))
    chosen = choose(sentence, neighbors=2, widest=6)
    kinds = [overlap_kind(overlap_ratio(chosen.spans[e], chosen.spans[n])) for e, n in chosen.pairs]
    assert kinds == ["none", "none", "weak", "weak", "strong", "strong"]
    assert choose(sentence, neighbors=2, widest=6) == chosen
    assert choose(sentence, neighbors=2, widest=6, seed=1) != chosen


def test_the_sample_is_of_all_that_is_no_entity():
    sentence = of_length(4, ("Drug", 0, 1))
    chosen = choose(sentence, neighbors=0, negatives=99, widest=2)
    assert {chosen.spans[at] for at in chosen.sampled} == {(0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)}
    drawn = [tuple(choose(sentence, 0, 1, 2, seed).spans[1]) for seed in range(300)]
    shares = {span: drawn.count(span) / 300 for span in set(drawn)}
    assert len(shares) == 6
    assert all(0.08 < share < 0.26 for share in shares.values())


def test_only_what_counts_is_chosen():
    sentence = of_length(8, ("Drug", 2, 4), ("Drug", 2, 6), core=(2, 5), reach=(2, 7))
    chosen = choose(sentence, widest=4, negatives=99, counts=lambda span: span.width <= 2)
    assert chosen.labels == [(0, "Drug")]
    assert all(2 <= span.start < 5 and span.end <= 7 and span.width <= 2 for span in chosen.spans)
    assert choose(sentence, known=lambda label: label == "Gene", negatives=1).labels == []


def test_two_labels_of_a_span_are_one_span_and_fragments_none():
    parts = Entity("Drug", (Span(0, 1), Span(3, 4)))
    sentence = of_length(5, ("Drug", 1, 2), ("Gene", 1, 2))
    sentence = Sentence(sentence.words, (*sentence.entities, parts), sentence.core, sentence.reach, ())
    chosen = choose(sentence, neighbors=1)
    assert chosen.labels == [(0, "Drug"), (0, "Gene")]
    assert chosen.spans[0] == Span(1, 2)
