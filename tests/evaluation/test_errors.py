"""Kinds of errors, the rates of the papers, and the confusion matrix, against values worked out by hand."""

import pytest
import scoring_samples as samples

from wingspan.evaluation.buckets import error_rate_gaps
from wingspan.evaluation.errors import ERROR_KINDS, Mistake, confusion, errors, judge_documents
from wingspan.evaluation.scores import recognition
from wingspan.text import Document, Entity, Span

# "will it rain this night": the running example of Ji et al. 2022, with "this night in May" to have something around it
TEXT = "will it rain this night in May"
RAIN, NIGHT, MAY = Entity.at("Weather", 8, 12), Entity.at("Date", 13, 23), Entity.at("Date", 27, 30)


def one(gold, found, text=TEXT):
    return errors([Document("1", text, tuple(gold))], [Document("1", text, tuple(found))])


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (Entity.at("Weather", 5, 12), "boundary"),  # "it rain"
        (Entity.at("Weather", 8, 17), "boundary"),  # "rain this" overlaps a Date too; the label decides
        (Entity.at("Date", 8, 12), "type"),
        (Entity.at("Person", 5, 12), "both"),
        (Entity.at("Weather", 5, 7), "spurious"),
        (Entity("Weather", (Span(0, 4), Span(8, 12))), "boundary"),
        (Entity("Weather", (Span(0, 4), Span(24, 26))), "spurious"),  # rain lies in the gap only
    ],
)
def test_the_five_kinds_on_the_papers_example(found, kind):
    result = one([RAIN, NIGHT], [found, NIGHT])
    assert result.wrong[kind] == result.fp == 1
    assert result.lost["missed" if kind == "spurious" else kind] == result.fn == 1
    if kind == "spurious":
        assert [m.kind for m in result.mistakes] == ["spurious", "missed"]
    else:
        assert result.mistakes == (Mistake(kind, 0, RAIN, found),)


def test_rates_by_hand():
    found = [Entity.at("Weather", 5, 12), Entity.at("Person", 13, 23), Entity.at("Person", 24, 30), MAY]
    result = one([RAIN, NIGHT, MAY], found)
    assert (result.correct, result.fp, result.fn) == (1, 3, 2)
    assert result.wrong == {"boundary": 1, "type": 1, "both": 1, "spurious": 0}
    assert result.lost == {"boundary": 1, "type": 1, "both": 0, "missed": 0}
    assert (result.boundary_errors, result.type_errors, result.span_errors) == (2, 1, 2)
    assert result.boundary_rate == pytest.approx(40)  # 2 of 3 + 2
    assert result.type_rate == pytest.approx(20)
    assert result.span_error_share == pytest.approx(50)  # 2 of 4 predictions
    assert result.labels["Person"] == {"boundary": 0, "type": 1, "both": 1, "missed": 0, "spurious": 0}
    assert result.wrong["both"] == 1


def test_a_right_prediction_explains_no_other_gold_entity():
    outer, inner = Entity.at("Organization", 0, 19), Entity.at("Place", 0, 8)
    result = one([outer, inner], [outer], "New York University opened")
    assert result.lost == {"boundary": 0, "type": 0, "both": 0, "missed": 1}
    assert result.mistakes == (Mistake("missed", 0, inner, None),)


def test_equal_boundaries_come_before_an_equal_label():
    outer, inner = Entity.at("Organization", 0, 19), Entity.at("Place", 0, 8)
    result = one([outer, inner], [Entity.at("Organization", 0, 8)], "New York University opened")
    assert result.wrong["type"] == 1
    assert result.lost["type"] == 1
    assert result.lost["boundary"] == 1  # the outer one is touched by a wrong prediction of its label
    assert {m.kind for m in result.mistakes} == {"type", "boundary"}


def test_of_several_candidates_the_one_that_shares_most_is_closest():
    found = Entity.at("Person", 9, 26)
    (mistake, *_) = one([RAIN, NIGHT], [found]).mistakes
    assert mistake == Mistake("both", 0, NIGHT, found)


def test_nothing_and_repeated_entities():
    assert one([], []).boundary_rate == 0
    twice = one([RAIN, RAIN], [RAIN, RAIN])
    assert (twice.correct, twice.fp, twice.fn) == (1, 0, 0)


def brute_force(gold, found):
    """Kinds by the definitions, one pair at a time."""

    def touch(a, b):
        return any(s.overlaps(t) for s in a.spans for t in b.spans)

    def kind(entity, others, alone):
        near = [o for o in others if touch(entity, o)]
        if any(o.spans == entity.spans for o in near):
            return "type"
        if any(o.label == entity.label for o in near):
            return "boundary"
        return "both" if near else alone

    wrong = [kind(f, set(gold), "spurious") for f in set(found) - set(gold)]
    lost = [kind(g, set(found) - set(gold), "missed") for g in set(gold) - set(found)]
    return sorted(wrong), sorted(lost)


def test_random_documents_against_the_definitions():
    rng = samples.generator("errors")
    for _ in range(1500):
        gold, found = samples.wild(rng)
        wrong, lost = brute_force(gold, found)
        documents = [samples.document(gold)], [samples.document(found)]
        (judged,) = judge_documents(*documents)
        assert sorted(m.kind for m in judged.wrong.values()) == wrong
        assert sorted(m.kind for m in judged.lost.values()) == lost
        scores, result = recognition(*documents).micro, errors(*documents)
        assert (result.correct, result.fp, result.fn) == (scores.tp, scores.fp, scores.fn)
        shown = [m.found for m in result.mistakes], [m.gold for m in result.mistakes]
        assert set(judged.wrong) <= set(shown[0])
        assert set(judged.lost) <= set(shown[1])
        by_label = sum(sum(counts.values()) for counts in result.labels.values())
        assert by_label == result.fp + result.lost["missed"]
        assert {m.kind for m in result.mistakes} <= set(ERROR_KINDS)


def test_confusion_by_hand():
    gold = [RAIN, NIGHT, MAY]
    found = [Entity.at("Date", 8, 12), Entity.at("Date", 13, 20), MAY, Entity.at("Person", 0, 4)]
    documents = [Document("1", TEXT, tuple(gold))], [Document("1", TEXT, tuple(found))]
    exact = confusion(*documents)
    assert exact.labels == ("Date", "Person", "Weather")
    assert exact.matrix == [[1, 0, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0]]
    overlap = confusion(*documents, "overlap")
    assert overlap.matrix == [[2, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]
    assert overlap.labels == ("Date", "Person", "Weather")
    with pytest.raises(ValueError, match="use exact or overlap"):
        confusion(*documents, "near")


def test_confusion_holds_every_entity_once():
    rng = samples.generator("confusion")
    for _ in range(500):
        gold, found = samples.wild(rng)
        documents = [samples.document(gold)], [samples.document(found)]
        for boundaries in ("exact", "overlap"):
            matrix = confusion(*documents, boundaries)
            for side, entities in ((0, gold), (1, found)):
                sums = {
                    label: sum(n for cell, n in matrix.counts.items() if cell[side] == label) for label in matrix.labels
                }
                assert sums == {label: sum(e.label == label for e in set(entities)) for label in matrix.labels}
        exact = confusion(*documents)
        assert sum(n for (a, b), n in exact.counts.items() if a is not None and a == b) >= len(set(gold) & set(found))
        assert sum(n for (a, b), n in exact.counts.items() if a and b) == recognition(*documents, "exact").micro.correct


def test_gaps_between_error_rates():
    gold = [RAIN, NIGHT]
    systems = {"a": one(gold, [RAIN, Entity.at("Weather", 13, 23)]), "b": one(gold, [RAIN, Entity.at("Date", 13, 30)])}
    assert systems["a"].type_rate == systems["b"].boundary_rate == 50
    assert error_rate_gaps(systems, "a") == {
        "a": {"boundary_rate": 0, "type_rate": 0},
        "b": {"boundary_rate": 50, "type_rate": -50},
    }
    with pytest.raises(ValueError, match="no system is called 'c'"):
        error_rate_gaps(systems, "c")
