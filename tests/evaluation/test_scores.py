"""Figures, conventions, and what happens to documents that do not meet."""

import json

import pytest
from scoring_samples import document

from wingspan.evaluation.scores import (
    MODES,
    Counts,
    discontinuous_documents,
    discontinuous_entities,
    over_seeds,
    recognition,
    spread,
    typing,
)
from wingspan.text import Document, Entity, Span

GOLD = [
    document([Entity.at("gene", 0, 5), Entity.at("drug", 8, 12), Entity("drug", (Span(20, 25), Span(30, 33)))], "1"),
    document([Entity.at("gene", 3, 9), Entity.at("gene", 5, 9)], "2"),
]
FOUND = [
    document([Entity.at("gene", 0, 5), Entity.at("gene", 8, 12), Entity("drug", (Span(20, 25), Span(31, 33)))], "1"),
    document([Entity.at("gene", 3, 9), Entity.at("site", 40, 44)], "2"),
]


def figures(mode):
    counts = recognition(GOLD, FOUND, mode).micro
    return counts.tp, counts.fp, counts.fn


def test_each_mode_by_hand():
    assert figures("strict") == (2, 3, 3)
    assert figures("exact") == (3, 2, 2)
    assert figures("partial") == (3.5, 1.5, 1.5)
    assert figures("type") == (3, 2, 2)
    assert figures("lenient") == (3, 2, 2)
    assert figures("fragments") == (3, 3, 3)


def test_labels_and_both_kinds_of_macro():
    scores = recognition(GOLD, FOUND)
    assert {label: (c.tp, c.fp, c.fn) for label, c in scores.labels.items()} == {
        "drug": (0, 1, 2),
        "gene": (2, 1, 1),
        "site": (0, 1, 0),
    }
    assert scores.micro.precision == 40
    assert scores.macro.f1 == pytest.approx((0 + 200 / 3 + 0) / 3)
    assert scores.document_macro.recall == pytest.approx((100 / 3 + 50) / 2)


def test_rows_of_one_group_are_one_document():
    rows = [Document(str(i), "abcdef", (Entity.at("A", i, i + 1),), group="article") for i in range(4)]
    answers = [*rows[:1], *(Document(row.id, row.text) for row in rows[1:])]
    assert recognition(rows, answers).document_macro == (100, 25, 40, 1)


def test_notes_name_labels_that_only_one_side_has():
    notes = " ".join(recognition(GOLD, FOUND).notes)
    assert "labels unknown to the gold: site" in notes
    swapped = " ".join(recognition(FOUND, GOLD).notes)
    assert "labels that were never predicted: site" in swapped


def test_json_shape():
    record = json.loads(json.dumps(recognition(GOLD, FOUND).to_dict()))
    assert record["protocol"] == "recognition"
    assert record["mode"] == "strict"
    assert {"precision", "recall", "f1", "tp", "fp", "fn"} <= record["micro"].keys()
    assert record["macro"]["labels"] == 3
    assert set(record["macro"]) == {"precision", "recall", "f1", "labels"}
    assert set(record["document_macro"]) == {"precision", "recall", "f1", "documents"}
    assert record["labels"]["gene"]["gold"] == 3
    assert record["coverage"]["documents"] == 2


@pytest.mark.parametrize("mode", MODES)
def test_no_entities_at_all_is_zero_and_no_error(mode):
    for gold, found in (([], []), ([document([])], [document([])]), ([document([])], [document(GOLD[0].entities)])):
        scores = recognition(gold, found, mode)
        assert (scores.micro.precision, scores.micro.recall, scores.micro.f1, scores.micro.tp) == (0, 0, 0, 0)
        assert "no entities" in scores.notes[0]


def test_repeated_entities_count_once_and_are_said():
    twice = [document([Entity.at("A", 0, 3), Entity.at("A", 0, 3)])]
    scores = recognition(twice, [document([Entity.at("A", 0, 3)])])
    assert (scores.micro.tp, scores.micro.fn) == (1, 0)
    assert scores.coverage["repeated"] == {"gold": 1, "found": 0}
    assert "1 in the gold" in scores.notes[0]


def test_order_of_documents_does_not_matter():
    assert recognition(GOLD, FOUND[::-1]).to_dict() == recognition(GOLD, FOUND).to_dict()


def test_missing_and_surplus_documents_are_named():
    with pytest.raises(ValueError, match=r"1 gold documents have no predicted counterpart of the same id \('2'\)"):
        recognition(GOLD, FOUND[:1])
    with pytest.raises(ValueError, match=r"1 predicted documents have no gold counterpart of the same id \('2'\)"):
        recognition(GOLD[:1], FOUND, allow_missing=True)
    scores = recognition(GOLD, FOUND[:1], allow_missing=True)
    assert scores.micro.gold == 5
    assert scores.coverage["without_prediction"] == 1


def test_rows_with_one_id_meet_in_order():
    gold = [Document("same", "ab", (Entity.at("A", 0, 1),)), Document("same", "cd", (Entity.at("A", 1, 2),))]
    assert recognition(gold, gold).micro.f1 == 100


def test_documents_without_common_ids_meet_by_position_if_the_texts_agree():
    renamed = [Document(f"other-{d.id}", d.text, d.entities) for d in FOUND]
    scores = recognition(GOLD, renamed)
    assert scores.micro == recognition(GOLD, FOUND).micro
    assert any("by position" in note for note in scores.notes)
    with pytest.raises(ValueError, match="'1' .predicted as 'x'.: the two texts differ"):
        recognition(GOLD[:1], [Document("x", "quite another text")])


def test_texts_that_differ_in_white_space_are_explained():
    gold, found = Document("7", "IL-2 binds well."), Document("7", "IL - 2 binds well .")
    with pytest.raises(ValueError, match="document '7': the two texts differ only in white space or tokenization"):
        recognition([gold], [found])
    with pytest.raises(ValueError, match=r"the two texts differ \(.* at character 3\)"):
        recognition([Document("7", "abcd")], [Document("7", "abcX")])


def test_unknown_mode_names_the_modes():
    with pytest.raises(ValueError, match="unknown mode 'loose'; use one of strict, exact"):
        recognition(GOLD, FOUND, "loose")


def test_subsets_of_what_is_discontinuous():
    gold, found = discontinuous_documents(GOLD, FOUND)
    assert [d.id for d in gold] == [d.id for d in found] == ["1"]
    only = recognition(discontinuous_entities(GOLD), discontinuous_entities(FOUND))
    assert (only.micro.gold, only.micro.found, only.micro.tp) == (1, 1, 0)


def test_typing_is_an_accuracy_and_never_an_f1():
    gold = [document([Entity.at("A", 0, 2), Entity.at("B", 0, 2), Entity.at("A", 4, 6), Entity.at("B", 8, 9)])]
    guessed = [document([Entity.at("A", 0, 2), Entity.at("C", 0, 2), Entity.at("A", 4, 6)])]
    scores = typing(gold, guessed)
    record = scores.to_dict()
    assert scores.accuracy == 50
    assert (record["protocol"], record["correct"], record["total"]) == ("typing", 2, 4)
    assert record["labels"]["B"] == {"accuracy": 0.0, "correct": 0, "total": 2}
    assert "f1" not in json.dumps(record).lower()
    assert "1 gold labels have no guess" in scores.notes[0]


def test_typing_refuses_spans_that_were_not_given():
    gold = [document([Entity.at("A", 0, 2)])]
    with pytest.raises(ValueError, match=r"document 'd': 1 guessed labels at 4-6 \(A\), where the gold has 0"):
        typing(gold, [document([Entity.at("A", 4, 6)])])
    with pytest.raises(ValueError, match="2 guessed labels at 0-2"):
        typing(gold, [document([Entity.at("A", 0, 2), Entity.at("B", 0, 2)])])


def test_typing_without_spans_is_zero():
    assert typing([document([])], [document([])]).accuracy == 0.0


def test_spread_is_the_sample_deviation():
    assert spread([80.0, 82.0, 84.0])[:2] == (82.0, 2.0)
    assert str(spread([80.0, 82.0, 84.0])) == "82.00 ± 2.00"
    assert spread([80.0]).deviation is None
    with pytest.raises(ValueError, match="no run"):
        spread([])


def test_over_seeds_averages_every_row():
    runs = [recognition(GOLD, FOUND), recognition(GOLD, GOLD)]
    record = over_seeds(runs)
    assert record["micro"]["f1"]["values"] == [40, 100]
    assert record["micro"]["f1"]["mean"] == 70
    assert record["labels"]["site"]["f1"]["mean"] == 0
    with pytest.raises(ValueError, match=r"different modes \(exact, strict\)"):
        over_seeds([runs[0], recognition(GOLD, FOUND, "exact")])


def test_counts_of_nothing_are_zero():
    assert (Counts().precision, Counts().recall, Counts().f1) == (0, 0, 0)
    assert Counts(missed=2, spurious=3).f1 == 0
