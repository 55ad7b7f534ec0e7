"""Calibrated models: the same entities with other scores; saved, loaded, shown; refused where it cannot be done."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tiny import DRUG, GENE, LABELS, gold_of, grid_of, of_length, sizes, vectors, word_inputs

import wingspan
from trainings import alike, dev_documents, entities, tiny, train_documents, untrained
from wingspan.evaluation.calibration import Calibration, fit_temperature, softmax
from wingspan.model import States
from wingspan.objectives.classification import Classification
from wingspan.objectives.proposing import Proposing
from wingspan.objectives.tagging import Tagging
from wingspan.recipe import Recipe, Term
from wingspan.training.finish import FEWEST, decisions, fit_calibration, sentence_batches

TEXTS = ["Aspirin lowers BRCA1 in the cell .", "A drug and a gene , or two of them .", ""]


def sigmoid(recipe: Recipe) -> Recipe:
    return replace(recipe, terms={"spans": Term(partial(Classification, link="sigmoid"))})


def crf(recipe: Recipe) -> Recipe:
    return replace(recipe, terms={**recipe.terms, "tags": Term(partial(Tagging, crf=True))})


READERS = {
    "softmax": lambda: untrained("baseline", overlap="flat"),
    "sigmoid": lambda: untrained("baseline", terms=sigmoid(tiny("baseline")).terms),
    "tags": lambda: untrained("bundling/seq", overlap="nested"),
    "crf": lambda: untrained("bundling/seq", overlap="flat", terms=crf(tiny("bundling/seq")).terms),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("temperature", [0.4, 3.0])
def test_a_temperature_changes_scores_and_no_entity(reader, temperature):
    model = READERS[reader]()
    before = model.predict(TEXTS)
    model.calibration = Calibration(temperature)
    after = model.predict(TEXTS)
    assert before == after
    assert sum(len(document.entities) for document in after) > 3
    assert entities(before) != entities(after)
    assert all(not entity.meta for document in after for entity in document.entities)
    model.calibration = Calibration(1.0)
    assert entities(model.predict(TEXTS)) == entities(before)


def test_clashes_are_decided_as_without_calibration():
    """Among three classes the order of two chances may change with the temperature; what is kept must not."""
    one, other = np.array([3.0, 0.0, 0.0]), np.array([3.3, 2.0, -9.0])
    assert softmax(one)[0] > softmax(other)[0]
    assert softmax(one / 4)[0] < softmax(other / 4)[0]
    inputs = word_inputs([of_length(2)])
    states = States(inputs, vectors(inputs), grid_of(inputs, 2))
    scores = torch.full((1, 4, 3), -20.0)
    scores[..., 0] = 20.0
    starts = list(zip(states.candidates.start[0].tolist(), states.candidates.end[0].tolist(), strict=True))
    scores[0, starts.index((0, 1))] = torch.tensor([0.0, 3.0, 0.0])
    scores[0, starts.index((0, 2))] = torch.tensor([2.0, 3.3, -9.0])
    found = Classification(sizes()).decode(states._replace(scores=scores), temperature=4.0)
    plain = Classification(sizes()).decode(states._replace(scores=scores))
    order = [(s, e) for s, e in zip(found.start.tolist(), found.end.tolist(), strict=True)]
    assert found.score.tolist() == plain.score.tolist()
    surer, less = order.index((0, 1)), order.index((0, 2))
    assert found.score[surer] > found.score[less]
    assert found.calibrated[surer] < found.calibrated[less]
    assert plain.calibrated is None


def states_with(scores: list[list[float]]) -> States:
    """Two words with one candidate each, and these class scores."""
    inputs = word_inputs([of_length(2)])
    return States(inputs, vectors(inputs), grid_of(inputs, 1), scores=torch.tensor([scores]))


def test_softmax_scores_and_decisions_by_hand():
    states = states_with([[1.0, 3.0, 0.0], [9.0, 0.0, 0.0]])
    gold = gold_of([of_length(2, ("Gene", 0, 1))], states.inputs)
    objective = Classification(sizes())
    found = objective.decode(states, temperature=2.0)
    assert found.label.tolist() == [DRUG]
    assert found.calibrated[0] == pytest.approx(math.exp(1.5) / (math.exp(0.5) + math.exp(1.5) + 1))
    asked = objective.decisions(states, gold)  # the second word is clearly nothing
    assert asked.logits.tolist() == [[1.0, 3.0, 0.0]]
    assert asked.target.tolist() == [GENE]
    kept = objective.decode(states, thresholds=float(found.calibrated[0]) + 0.01, temperature=2.0)
    assert len(kept.start) == 0
    assert len(objective.decode(states, thresholds=float(found.calibrated[0]) + 0.01).start) == 1


def test_sigmoid_scores_and_decisions_by_hand():
    states = states_with([[1.0, 3.0, 0.2], [-9.0, -1.0, -9.0]])
    gold = gold_of([of_length(2, ("Gene", 0, 1))], states.inputs)
    objective = Classification(sizes(), link="sigmoid")
    found = objective.decode(states, temperature=2.0)
    assert found.label.tolist() == [DRUG, GENE]
    assert found.calibrated.tolist() == pytest.approx([1 / (1 + math.exp(-1.5)), 1 / (1 + math.exp(-0.1))])
    asked = objective.decisions(states, gold)
    assert asked.logits.tolist() == [[0, 3], [0, pytest.approx(0.2)], [0, -1]]
    assert asked.target.tolist() == [0, 1, 0]


@torch.no_grad()
@pytest.mark.parametrize("chain", [False, True])
def test_tag_decisions_are_the_entities_that_are_read(chain):
    torch.manual_seed(0)
    objective = Tagging(sizes(), crf=chain, spread=2.0).eval()
    inputs = word_inputs([of_length(6), of_length(4)])
    states = States(inputs, vectors(inputs))
    plain = objective.decode(states)
    row, start, end, label = (int(part[1]) for part in plain[:4])
    rows = [of_length(6), of_length(4)]
    rows[row] = of_length(6 if row == 0 else 4, (LABELS.names()[label], start, end))
    asked = objective.decisions(states, gold_of(rows, inputs))
    assert asked.target.tolist() == [at == 1 for at in range(len(plain.score))]
    odds = [math.log(score / (1 - score)) for score in plain.score]
    assert asked.logits[:, 1].tolist() == pytest.approx(odds, rel=1e-3)
    assert not asked.logits[:, 0].any()
    found = objective.decode(states, temperature=2.0)
    assert found.calibrated.tolist() == pytest.approx([1 / (1 + math.exp(-odd / 2)) for odd in odds], rel=1e-3)
    bar = float(np.median(found.calibrated))
    kept = objective.decode(states, bar, 2.0)
    assert sorted(kept.calibrated.tolist()) == sorted(x for x in found.calibrated.tolist() if x >= bar)


def test_padding_and_other_sentences_ask_nothing():
    short, long = of_length(2, ("Gene", 0, 1)), of_length(5, ("Drug", 1, 3))
    for objective in (Classification(sizes()), Tagging(sizes(), spread=2.0).eval()):
        counts = []
        for rows in ([short], [long], [short, long]):
            inputs = word_inputs(rows)
            candidates = grid_of(inputs, 2)
            same = torch.tensor([0.5, 0.1, 0.0]).expand(*candidates.start.shape, 3)
            words = vectors(inputs)._replace(top=torch.ones(len(rows), inputs.unit_mask.shape[1], 5))
            states = States(inputs, words, candidates, scores=same)
            counts.append(len(objective.decisions(states, gold_of(rows, inputs)).target))
        assert counts[0] + counts[1] == counts[2] > 0


@pytest.mark.parametrize("reader", READERS)
def test_the_fitted_temperature_is_that_of_all_decisions(reader):
    model = READERS[reader]()
    model.labels = LABELS
    documents = dev_documents(6)
    decided = [decisions(model, rows) for rows in sentence_batches(model, documents, 3)]
    logits, target = (np.concatenate(part) for part in zip(*decided, strict=True))
    assert len(target) >= FEWEST
    assert fit_calibration(model, documents).temperature == pytest.approx(fit_temperature(logits, target), rel=1e-5)
    with pytest.raises(ValueError, match="only 0 decisions"):
        fit_calibration(model, [])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated") / "model"
    recipe = tiny("baseline", epochs=5, learning_rate=0.02, batch_size=4)
    return wingspan.train(recipe, train=train_documents(20), dev=dev_documents(8), output=folder, device="cpu"), folder


def test_training_calibrates_on_dev(trained):
    model, folder = trained
    saved = json.loads((folder / "calibration.json").read_text())
    assert saved == model.calibration.to_dict()
    assert saved["facts"]["log_loss"] <= saved["facts"]["log_loss_before"]
    assert saved["thresholds"] == {}
    assert set(model.facts["calibration_error"]) == {"dev"}
    same = wingspan.load(folder, device="cpu")
    assert alike(same.predict(dev_documents()), model.predict(dev_documents()), 1e-6)
    assert "Scores are calibrated: temperature" in (folder / "README.md").read_text()
    assert "calibration error of found entities, dev" in (folder / "README.md").read_text()


def test_a_model_saved_over_a_calibrated_one_is_not_calibrated(trained, tmp_path):
    model, _ = trained
    model.save_pretrained(tmp_path / "model")
    assert (tmp_path / "model" / "calibration.json").exists()
    untrained().save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model" / "calibration.json").exists()
    assert wingspan.load(tmp_path / "model", device="cpu").calibration is None
    assert "not calibrated" in (tmp_path / "model" / "README.md").read_text()


def test_a_damaged_calibration_is_one_sentence(trained, tmp_path):
    trained[0].save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "calibration.json").write_text('{"temperature": -1}')
    with pytest.raises(ValueError, match=r"calibration\.json: the temperature is -1"):
        wingspan.load(tmp_path / "model", device="cpu")


def test_saved_thresholds_are_used_until_others_are_given(trained):
    model, folder = trained
    model = wingspan.load(folder, device="cpu")
    documents = dev_documents(8)
    everything = model.predict(documents, threshold=0.0)
    model.calibration = replace(model.calibration, thresholds={"Gene": 0.9, "Disease": 0.0})
    labels = {entity.label for document in model.predict(documents) for entity in document.entities}
    assert "Disease" in labels
    assert all(
        entity.score >= (0.9 if entity.label == "Gene" else 0.0)
        for document in model.predict(documents)
        for entity in document.entities
    )
    assert entities(model.predict(documents, threshold=0.0)) == entities(everything)


def test_the_command_fits_chooses_and_saves(trained, tmp_path, shell):
    _, folder = trained
    out, _ = shell(
        "calibrate", folder, shell.dev, "--output", tmp_path / "new", "--thresholds", "f1", "--device", "cpu"
    )
    assert "Expected calibration error" in out
    saved = json.loads((tmp_path / "new" / "calibration.json").read_text())
    assert saved["thresholds"]
    assert saved["facts"]["aim"] == "f1"
    said, _ = shell("info", tmp_path / "new")
    assert "calibration_error" not in said  # it was that of the calibration before
    assert "before these thresholds were chosen" in (tmp_path / "new" / "README.md").read_text()
    assert f"  temperature: {saved['temperature']:.4g}\n" in said
    figures = tmp_path / "figures.json"
    shell("calibrate", tmp_path / "new", shell.dev, "--thresholds", "99", "--json", figures, "--device", "cpu")
    found = json.loads(figures.read_text())
    assert found["after"]["micro"]["found"] <= found["before"]["micro"]["found"]
    assert set(found["choices"]) == set(found["thresholds"])
    shell("calibrate", tmp_path / "new", shell.dev, "--device", "cpu")
    assert json.loads((tmp_path / "new" / "calibration.json").read_text())["thresholds"] == {}


def test_what_cannot_be_calibrated_is_said(trained, shell, tmp_path):
    _, folder = trained
    assert "write f1, or a precision" in shell.refuses("calibrate", folder, shell.dev, "--thresholds", "best")
    for wanted in ("0", "0.9", "101"):
        assert "write f1, or a precision" in shell.refuses("calibrate", folder, shell.dev, "--thresholds", wanted)
    assert "give --output" in shell.refuses("calibrate", "organization/name", shell.dev)
    assert "none.jsonl" in shell.refuses("calibrate", folder, tmp_path / "none.jsonl")
    with pytest.raises(TypeError, match="no class scores to calibrate"):
        Proposing(sizes()).decisions(None, None)
    model = untrained()
    model.learner.objectives["spans"].calibrates = False
    with pytest.raises(ValueError, match="Classification has no class scores"):
        fit_calibration(model, dev_documents())
