"""Systems side by side: figures, differences, errors that moved, and the sentence that says who wins."""

import random
from dataclasses import replace

import pytest

from wingspan.evaluation.comparison import compare
from wingspan.evaluation.errors import MOVES, Error, errors_of, moved
from wingspan.evaluation.scores import MODES, recognition
from wingspan.text import Document, Entity


def corpus(number: int = 60, seed: int = 1) -> list[Document]:
    rng = random.Random(seed)
    return [
        Document(
            str(at), "x" * 60, tuple(Entity.at(rng.choice("pqr"), s, s + 3) for s in range(0, rng.randint(5, 50), 5))
        )
        for at in range(number)
    ]


def system(gold: list[Document], right: float, seed: int) -> list[Document]:
    """Finds each entity with this chance; half of the others are found with the wrong end."""
    rng = random.Random(seed)
    found = []
    for document in gold:
        entities = []
        for entity in document.entities:
            draw = rng.random()
            if draw < right:
                entities.append(entity)
            elif draw < (1 + right) / 2:
                entities.append(Entity.at(entity.label, entity.start, entity.start + 2))
        found.append(Document(document.id, document.text, tuple(entities)))
    return found


def test_a_clear_winner_is_said_with_its_certainty():
    gold = corpus()
    result = compare(gold, {"old": [system(gold, 0.7, 1)], "new": [system(gold, 0.85, 2)]}, samples=400)
    scores = recognition(gold, system(gold, 0.85, 2))
    new = result.systems[1].rows
    assert new.micro.f1.value == pytest.approx(scores.micro.f1)
    assert new.macro.recall.value == pytest.approx(scores.macro.recall)
    assert new.labels["p"].precision.value == pytest.approx(scores.labels["p"].precision)
    assert new.micro.counts == {"tp": scores.micro.tp, "fp": scores.micro.fp, "fn": scores.micro.fn}
    assert new.macro.counts == {}
    assert all(row.f1.low < row.f1.value < row.f1.high for _, row in new.items())
    (pair,) = result.pairs
    assert pair.rows.micro.p == pytest.approx(1 / 401)
    assert result.verdict.startswith("new wins over old by ")
    assert "p = 0.0025 by approximate randomization of 60 documents" in result.verdict
    assert "ahead in 100.0 % of 400 samples" in result.verdict


def test_the_verdict_does_not_depend_on_the_order_of_systems():
    gold = corpus()
    old, new = system(gold, 0.7, 1), system(gold, 0.85, 2)
    turned = compare(gold, {"new": [new], "old": [old]}, samples=100)
    assert turned.verdict.startswith("new wins over old by ")
    assert turned.pairs[0].rows.micro.value < 0
    assert "ahead in 100.0 %" in turned.verdict
    low = float(turned.verdict.split("difference ")[1].split()[0])
    assert low == pytest.approx(-turned.pairs[0].rows.micro.high, abs=0.006)


def test_rows_are_drawn_where_their_groups_are_too_coarse():
    gold = [replace(document, group="all of it") for document in corpus()]
    systems = {"old": [system(gold, 0.7, 1)], "new": [system(gold, 0.85, 2)]}
    result = compare(gold, systems, samples=400)
    assert "new wins over old" in result.verdict
    assert "p = 0.0025 by approximate randomization of 60 rows" in result.verdict
    assert result.notes == (
        "60 of 60 rows are of group 'all of it', so that rows count one by one, and intervals may be too narrow",
    )
    assert compare(corpus(), systems, samples=400).pairs[0].rows == result.pairs[0].rows
    grouped = [replace(document, group=document.id) for document in gold]
    assert compare(grouped, systems, samples=400).notes == ()


def test_chance_is_called_chance():
    gold = corpus(30)
    result = compare(gold, {"one": [system(gold, 0.8, 1)], "other": [system(gold, 0.8, 2)]}, samples=200)
    assert result.verdict.startswith("No clear winner: ")
    same = compare(gold, {"one": [gold], "other": [gold]}, samples=20)
    assert same.verdict == "No winner: one and other have the same micro F1, 100.00."


def test_several_runs_are_one_system():
    gold = corpus()
    runs = [system(gold, 0.8, seed) for seed in (1, 2, 3)]
    result = compare(gold, {"a": runs, "b": [system(gold, 0.6, 4)]}, samples=200)
    f1 = [recognition(gold, run).micro.f1 for run in runs]
    row = result.systems[0].rows.micro
    assert row.f1.value == pytest.approx(sum(f1) / 3)
    assert row.over_runs.values == pytest.approx(f1)
    difference = result.pairs[0].rows.micro
    assert difference.p_randomization is None
    assert difference.p == difference.p_bootstrap
    assert "a bootstrap over runs and 60 documents" in result.verdict
    assert any("b: one run only" in note for note in result.notes)


def test_three_systems_are_asked_in_pairs_and_corrected():
    gold = corpus()
    systems = {
        name: [system(gold, right, at)] for at, (name, right) in enumerate({"a": 0.6, "b": 0.7, "c": 0.9}.items())
    }
    result = compare(gold, systems, samples=200)
    assert [(pair.first, pair.second) for pair in result.pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert result.pairs[1].rows.micro.p_holm == pytest.approx(3 * result.pairs[1].rows.micro.p)
    assert result.verdict.startswith("c wins over b")


def test_a_corpus_without_entities_has_no_winner():
    documents = [Document("1", "nothing here"), Document("2", "nor here")]
    result = compare(documents, {"a": [documents], "b": [documents]}, samples=10)
    assert result.verdict == "No winner: a and b have the same micro F1, 0.00."
    assert result.to_dict()["systems"][0]["labels"] == {}


def test_the_same_seed_gives_the_same_figures():
    gold = corpus(20)
    systems = {"a": [system(gold, 0.6, 1)], "b": [system(gold, 0.7, 2)]}
    assert compare(gold, systems, samples=50, seed=5).to_dict() == compare(gold, systems, samples=50, seed=5).to_dict()
    assert compare(gold, systems, samples=50, seed=5).to_dict() != compare(gold, systems, samples=50, seed=6).to_dict()


def test_what_cannot_be_compared_is_said():
    gold = corpus(3)
    with pytest.raises(ValueError, match="at least two systems"):
        compare(gold, {"a": [gold]})
    with pytest.raises(ValueError, match="'b' has no documents"):
        compare(gold, {"a": [gold], "b": []})
    with pytest.raises(ValueError, match="the gold has no documents"):
        compare([], {"a": [[]], "b": [[]]})


def test_moved_errors_by_hand():
    text = "aspirin eased the severe chest pain"
    drug, pain, short = Entity.at("drug", 0, 7), Entity.at("sign", 18, 35), Entity.at("sign", 25, 35)
    gold = [Document("1", text, (drug, pain))]
    first = errors_of(gold, [[Document("1", text, (short,))]])
    second = errors_of(gold, [[Document("1", text, (drug, short, Entity.at("drug", 8, 13)))]])
    wrong = [Error("missed", 0, drug), Error("missed", 0, pain), Error("spurious", 0, short)]
    assert first == dict.fromkeys(wrong, 1.0)
    result = moved(first, second)
    assert result.listed("fixed") == [Error("missed", 0, drug)]
    assert result.listed("broken") == [Error("spurious", 0, Entity.at("drug", 8, 13))]
    assert result.listed("both") == wrong[1:]
    assert result.p == 1.0
    shown = result.to_dict(gold, 1)
    assert (shown["fixed"], shown["broken"], shown["both"]) == (1, 1, 2)
    assert shown["labels"] == {
        "drug": {"fixed": 1, "broken": 1, "both": 0},
        "sign": {"fixed": 0, "broken": 0, "both": 2},
    }
    assert shown["examples"]["both"] == [
        {
            "document": "1",
            "kind": "missed",
            "label": "sign",
            "text": "severe chest pain",
            "fragments": [[18, 35]],
            "context": text,
        }
    ]


def test_moved_errors_of_several_runs_are_means_over_pairs_of_runs():
    gold = corpus(10)
    firsts, seconds = ([system(gold, 0.6, seed) for seed in seeds] for seeds in ((1, 2), (3, 4, 5)))
    result = moved(errors_of(gold, firsts), errors_of(gold, seconds))
    each = [moved(errors_of(gold, [one]), errors_of(gold, [two])) for one in firsts for two in seconds]
    for move in MOVES:
        assert result.count(move) == pytest.approx(sum(len(one.shares[move]) for one in each) / 6)
    assert result.p is None
    shares = [result.shares["both"][error] for error in result.listed("both")]
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("mode", MODES)
def test_errors_are_what_earned_no_full_credit(mode):
    gold = corpus(10)
    found = system(gold, 0.5, 1)
    errors = errors_of(gold, [found], mode)
    micro = recognition(gold, found, mode).micro
    kinds = [error.kind for error in errors]
    assert kinds.count("missed") == micro.gold - micro.correct
    assert kinds.count("spurious") == micro.found - micro.correct


def test_the_same_runs_in_another_order_have_no_winner():
    gold = corpus(30)
    runs = [system(gold, 0.7, seed) for seed in range(3)]
    result = compare(gold, {"a": runs, "b": [runs[2], runs[0], runs[1]]}, samples=20)
    assert result.verdict.startswith("No winner: a and b have the same micro F1")


def test_notes_say_what_each_system_lacks():
    gold = corpus(30)
    bare = [replace(document, entities=()) for document in gold[3:]]
    result = compare(gold, {"all": [gold], "none": [bare, bare]}, samples=20, allow_missing=True)
    assert result.notes[0] == "none: 3 of 30 documents have no prediction and count as predicted empty"
    assert result.notes[1].startswith("none: the gold has labels that were never predicted: ")
    assert not any(note.startswith("all:") and "seed" not in note for note in result.notes)
