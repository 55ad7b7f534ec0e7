import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from rich.console import Console
from tiny import DRUG, GENE, gold_of, of_length, sizes, vectors, word_inputs

from trainings import FAST, HASHED, dev_documents, train_documents
from wingspan.candidates import Given, Grid
from wingspan.cli.analyze import analyze
from wingspan.cli.evaluate import evaluate
from wingspan.cli.predict import predict
from wingspan.cli.recipes import describe_model
from wingspan.corpora.formats import read, write
from wingspan.evaluation.scores import typing
from wingspan.experiments.plan import read_plan
from wingspan.experiments.run import check_recipes
from wingspan.labels import LabelSet
from wingspan.model import States
from wingspan.objectives.classification import Classification
from wingspan.objectives.typing import Typing
from wingspan.recipe import Term, assemble, must_recognize
from wingspan.recipes import find
from wingspan.recognizer import Recognizer
from wingspan.recognizer.documents import UntypedDocument, likeliest
from wingspan.report.collect import collect
from wingspan.report.geometry import discrepancies, true_chances
from wingspan.text import Document, Entity, Sentence, Span
from wingspan.training.corpora import Corpora
from wingspan.training.run import TrainingJob, run, train_seeds
from wingspan.tuning.search import SearchRequest, check

QUIET = Console(quiet=True)
F1 = re.compile(r"(?i)(?<![0-9a-f])f1(?![0-9a-f])|precision|recall")  # not the digits of a fingerprint


def tiny_typing(**train):
    """The recipe with small parts on hashed words: quick, and nothing has to be fitted to sentences."""
    recipe = find("typed_spans")
    return replace(
        recipe,
        encoder=HASHED,
        spans=partial(recipe.spans.func, hidden_size=16),
        train=replace(FAST, **{"epochs": 2, **train}),
    )


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A trained model and its folder."""
    folder = tmp_path_factory.mktemp("typing") / "model"
    corpora = Corpora(train_documents(), dev_documents(), dev_documents(3))
    return run(TrainingJob(tiny_typing(), corpora, folder), QUIET)[0], folder


def states_of(scores: torch.Tensor, sentences: list[Sentence]) -> tuple[States, object]:
    inputs = word_inputs(sentences)
    gold = gold_of(sentences, inputs)
    candidates = Given(None, 4)(inputs, None, gold)
    return States(inputs, vectors(inputs), candidates, scores=scores), gold


def test_candidates_are_the_given_spans_of_any_width():
    sentences = [of_length(9, ("Drug", 0, 9), ("Gene", 2, 3), ("Drug", 2, 3)), of_length(2)]
    inputs = word_inputs(sentences)
    found = Given(None, 1)(inputs, vectors(inputs), gold_of(sentences, inputs))
    assert found.start[found.mask].tolist() == [0, 2, 2]
    assert found.end[found.mask].tolist() == [9, 3, 3]
    assert found.mask.sum(1).tolist() == [3, 0]
    with pytest.raises(ValueError, match="types given spans"):
        Given(None, 1)(inputs, vectors(inputs))


def test_the_loss_is_a_cross_entropy_over_types_alone():
    sentences = [of_length(4, ("Drug", 0, 1), ("Gene", 1, 3)), of_length(2, ("Gene", 0, 2))]
    scores = torch.tensor([[[9.0, 1.0, 2.0], [5.0, 0.5, 0.0]], [[0.0, -1.0, 3.0], [7.0, 7.0, 7.0]]])
    states, gold = states_of(scores, sentences)
    by_hand = [
        np.log(np.exp(1.0) + np.exp(2.0)) - 1.0,  # Drug
        np.log(np.exp(0.5) + np.exp(0.0)) - 0.0,  # Gene
        np.log(np.exp(-1.0) + np.exp(3.0)) - 3.0,  # Gene; the last cell is padding
    ]
    assert float(Typing(sizes(), reduction="sum")(states, gold)) == pytest.approx(sum(by_hand), rel=1e-6)
    assert float(Typing(sizes())(states, gold)) == pytest.approx(np.mean(by_hand), rel=1e-6)


def test_chances_are_read_for_every_type_and_for_nothing_else():
    sentences = [of_length(4, ("Drug", 0, 1))]
    states, gold = states_of(torch.tensor([[[9.0, 1.0, 2.0]]]), sentences)
    found = Typing(sizes()).decode(states)
    chance = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    assert found.label.tolist() == [DRUG, GENE]
    assert found.score == pytest.approx(chance)
    assert found.calibrated is None
    warmer = Typing(sizes()).decode(states, temperature=2.0)
    assert warmer.score == pytest.approx(chance)
    assert warmer.calibrated == pytest.approx(np.exp([0.5, 1.0]) / np.exp([0.5, 1.0]).sum())
    assert Typing(sizes()).decode(states, {"Gene": 0.9}).label.tolist() == [DRUG]
    decisions = Typing(sizes()).decisions(states, gold)
    assert decisions.target.tolist() == [DRUG]
    assert decisions.logits.softmax(-1)[0].tolist() == pytest.approx([0.0, *chance])


def test_each_corpus_has_types_of_its_own():
    labels = LabelSet({"one": ("A", "B"), "two": ("C",)})
    objective = Typing(sizes(labels=labels))
    assert objective._types.tolist() == [[False, True, True, False, False], [False, False, False, False, True]]


def test_given_candidates_and_the_typing_objective_need_each_other():
    recipe = replace(tiny_typing(), max_width=3, overlap="flat")
    for broken in (
        replace(recipe, terms={"spans": Term(partial(Classification))}),
        replace(recipe, candidates=partial(Grid)),
    ):
        with pytest.raises(ValueError, match="need each other"):
            assemble(broken, LabelSet({"main": ("A",)}))


def answers(**chances: float) -> dict[str, Entity]:
    return {label: Entity.at(label, 0, 1, score) for label, score in chances.items()}


def test_fragments_choose_together():
    both = [answers(A=0.6, B=0.4), answers(A=0.1, B=0.9)]
    assert likeliest(both) == [("B", 0.4), ("A", 0.1)]  # .36 against .06; the score is the least of the two
    assert likeliest([answers(A=0.6, B=0.4)]) == [("A", 0.6), ("B", 0.4)]
    assert likeliest([answers(A=0.6), answers(B=0.4)]) == []


def test_the_model_is_asked_about_spans_without_labels():
    text = "left and right arm of X"
    arm = Entity("Organ", (Span(0, 4), Span(15, 18)))
    document = Document(
        "d", text, (arm, Entity.at("Organ", 9, 18), Entity.at("Gene", 22, 23), Entity.at("Cell", 22, 23))
    )
    untyped = UntypedDocument(document)
    assert [(e.label, e.spans) for e in untyped.model_input.entities] == [
        ("0", (Span(0, 4),)),
        ("1", (Span(9, 18),)),
        ("2", (Span(15, 18),)),
        ("3", (Span(22, 23),)),
    ]


def test_entities_get_the_types_of_their_fragments_at_the_borders_that_were_given():
    document = Document("d", "abcd xy", (Entity("?", (Span(1, 3), Span(5, 7))), Entity.at("?", 0, 2)))
    untyped = UntypedDocument(document)
    # on word borders "bc" and "ab" have become the same word
    words = Sentence(
        ("abcd", "xy"),
        (Entity.at("1", 0, 1), Entity.at("0", 0, 1), Entity.at("2", 1, 2)),
        Span(0, 2),
        Span(0, 2),
        (Span(0, 4), Span(5, 7)),
    )
    untyped.open_sentences = 1
    untyped.add(words, [Entity.at("A", 0, 1, 0.7), Entity.at("B", 0, 1, 0.3), Entity.at("B", 1, 2, 0.8)], False)
    done = untyped.finish("flat")
    assert untyped.open_sentences == 0
    assert done.entities == (Entity.at("A", 0, 2), Entity("B", (Span(1, 3), Span(5, 7))))
    assert [entity.score for entity in done.entities] == [0.7, 0.3]


def test_a_span_with_two_labels_takes_the_two_likeliest():
    twice = Document("d", "x", (Entity.at("?", 0, 1), Entity.at("!", 0, 1)))
    untyped = UntypedDocument(twice)
    untyped.entities = [Entity.at("A", 0, 1, 0.1), Entity.at("B", 0, 1, 0.6), Entity.at("C", 0, 1, 0.3)]
    assert {(e.label, e.score) for e in untyped.finish("flat").entities} == {("B", 0.6), ("C", 0.3)}


def test_guesses_do_not_depend_on_the_labels_given(model):
    recognizer, _ = model
    documents = dev_documents()
    blind = [replace(d, entities=tuple(replace(e, label="?") for e in d.entities)) for d in documents]
    guessed = recognizer.predict(documents)
    assert guessed == recognizer.predict(blind)
    assert [len(d.entities) for d in guessed] == [len(d.entities) for d in documents]
    assert typing(documents, guessed).coverage["unanswered"] == 0


def test_scores_are_chances_and_thresholds_leave_out(model):
    recognizer, _ = model
    (document,) = recognizer.predict(dev_documents(1))
    sure = sorted(entity.score for entity in document.entities)
    assert 0 < sure[0] <= sure[-1] <= 1
    middle = sure[len(sure) // 2]
    (some,) = recognizer.predict(dev_documents(1), threshold=middle)
    assert {e.spans for e in some.entities} == {e.spans for e in document.entities if e.score >= middle}


def test_the_life_of_a_model_has_no_f1(model, tmp_path, capsys):
    recognizer, folder = model
    write(dev_documents(3), tmp_path / "test.jsonl")
    scores = evaluate([str(folder), str(tmp_path / "test.jsonl")])
    evaluated = capsys.readouterr().out
    figures = scores.to_dict()
    assert figures["protocol"] == "typing"
    assert figures["total"] == sum(len(d.entities) for d in dev_documents(3))
    assert figures["correct"] == round(figures["accuracy"] * figures["total"] / 100)
    assert recognizer.facts["test"]["accuracy"] == figures["accuracy"]
    predict([str(tmp_path / "test.jsonl")], model=folder)
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(d["entities"]) for d in printed] == [len(d.entities) for d in dev_documents(3)]
    for said in (
        (folder / "README.md").read_text(),
        (folder / "journal.jsonl").read_text(),
        (folder / "facts.json").read_text(),
        json.dumps(describe_model(folder)),
        json.dumps(figures),
        evaluated,
    ):
        assert not F1.search(said)
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    epochs = [event for event in events if event["event"] == "epoch"]
    assert max(event["dev_accuracy"] for event in epochs) == events[-1]["dev"]["accuracy"]
    assert "It finds no entities itself" in (folder / "README.md").read_text()


def test_a_saved_model_says_the_same(model):
    recognizer, folder = model
    again = Recognizer.from_pretrained(folder, device="cpu")
    assert again.predict(dev_documents()) == recognizer.predict(dev_documents())


def test_texts_without_spans_are_refused_in_one_sentence(model, tmp_path):
    _, folder = model
    (tmp_path / "text.txt").write_text("Nothing is marked here.")
    for given in ("Nothing is marked here.", str(tmp_path / "text.txt")):
        with pytest.raises(ValueError, match="types given spans and finds none itself"):
            predict([given], model=folder)


def test_entities_without_a_type_are_counted(model, tmp_path, capsys):
    _, folder = model
    wordless = Document("1", "One word  two.", (Entity.at("?", 0, 8), Entity.at("?", 8, 10)))
    write([wordless], tmp_path / "asked.jsonl")
    for threshold, left, why in ((None, 1, "they hold no word"), (1.0, 2, "below the threshold")):
        asked = str(tmp_path / "asked.jsonl")
        predict([asked], model=folder, output=tmp_path / "typed.jsonl", threshold=threshold)
        said = capsys.readouterr().err
        assert f"{left} of 2 given entities got no type and are left out" in said
        assert why in said
        assert len(next(read(tmp_path / "typed.jsonl")).entities) == 2 - left


def test_seeds_have_a_mean_accuracy(tmp_path):
    console = Console(record=True, width=200)
    job = TrainingJob(tiny_typing(epochs=1), Corpora(train_documents(6), dev_documents(2), ()), tmp_path)
    summary = train_seeds(job, [1, 2], console)
    both = [json.loads((tmp_path / f"seed-{n}" / "facts.json").read_text())["dev"]["accuracy"] for n in (1, 2)]
    assert summary["protocol"] == "typing"
    assert summary["accuracy"]["mean"] == pytest.approx(sum(both) / 2)
    assert summary["accuracy"]["values"] == both
    assert not F1.search(json.dumps(summary) + console.export_text())


def test_discontinuous_entities_are_typed_by_their_fragments(model):
    recognizer, _ = model
    text = "heart and lung fibrosis"
    whole = Document("d", text, (Entity("?", (Span(0, 5), Span(15, 23))), Entity.at("?", 10, 23)))
    (typed,) = recognizer.predict([whole])
    assert [entity.spans for entity in typed.entities] == [entity.spans for entity in whole.entities]
    assert all(entity.label != "?" for entity in typed.entities)


@pytest.mark.slow
def test_the_report_has_the_analyses_of_the_paper_and_no_f1(model, tmp_path):
    _, folder = model
    write(dev_documents(3), tmp_path / "test.jsonl")
    analyze(tmp_path / "out", str(folder), tmp_path / "test.jsonl", json=tmp_path / "tables.json")
    names = set(re.findall(r'\bid="([\w-]+)"', (tmp_path / "out" / "report.html").read_text()))
    assert {"typing", "taken-for", "epochs", "true-chances", "discrepancies", "chances-pca"} <= names
    tables = json.loads((tmp_path / "tables.json").read_text())
    assert tables["typing"]["rows"][-1][2:] == [tables["typing"]["rows"][-1][2], sum(map(sum, counts(tables)))]
    assert not re.search(r"\bF1\b|\bRecall\b|Recognition", (tmp_path / "out" / "report.html").read_text())


def counts(tables) -> list[list[int]]:
    """The confusion matrix."""
    return [row[1:] for row in tables["taken-for"]["rows"]]


def test_chances_and_discrepancies_are_over_types_alone(model):
    recognizer, _ = model
    rows = collect(recognizer, dev_documents(3))
    assert rows.classes[0] == ""
    assert not rows.chance[:, 0].any()
    assert rows.chance.sum(1) == pytest.approx(1.0, abs=1e-5)
    gold = np.flatnonzero(rows.entities)
    assert len(gold) == sum(len(d.entities) for d in dev_documents(3)) - rows.left_out
    first, found = gold[0], discrepancies(rows)[0]
    real, true = rows.chance[first, 1:], rows.chance[first, rows.gold[first]]
    assert found.desire == pytest.approx(((real - real.mean()) ** 2).mean() / true, rel=1e-5)
    assert found.fold == pytest.approx(np.log2(real.max() / true), rel=1e-5, abs=1e-6)
    right = sum(len(one.right) for one in true_chances(rows))
    assert right == typing(dev_documents(3), recognizer.predict(dev_documents(3))).overall.correct


@pytest.mark.parametrize("verb", ["an experiment", "a search", "training on several corpora"])
def test_verbs_about_f1_refuse_it(verb):
    with pytest.raises(ValueError, match="types given spans and has no F1"):
        must_recognize(find("typed_spans"), verb)
    assert must_recognize(find("typed_spans/recognize"), verb).protocol == "recognition"


def test_a_search_refuses_it_before_anything_is_trained(tmp_path):
    corpus, documents = tmp_path / "train.jsonl", train_documents(4)
    asked = SearchRequest("typed_spans", (corpus,), corpus, tmp_path / "study")
    with pytest.raises(ValueError, match="which a search is about"):
        check(asked, Corpora(documents, documents), QUIET)


PLAN = """
title = "both"
output = "runs"
seeds = [1]
recipes = ["typed_spans"]
[[corpora]]
name = "some"
train = "train.jsonl"
dev = "train.jsonl"
test = "train.jsonl"
"""


def test_a_plan_refuses_it_before_anything_is_trained(tmp_path):
    write(train_documents(4), tmp_path / "train.jsonl")
    (tmp_path / "plan.toml").write_text(PLAN)
    with pytest.raises(ValueError, match="which an experiment is about"):
        check_recipes(read_plan(tmp_path / "plan.toml"))
