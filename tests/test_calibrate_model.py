"""One temperature and one threshold for each type, from dev sets that each annotate only a part of the types."""

import json
import runpy
from dataclasses import replace

import numpy as np
import pytest
from pages import ROOT
from several import save_two

import wingspan
from trainings import dev_documents, tiny, train_documents
from wingspan.evaluation import calibration
from wingspan.evaluation.transfer import only
from wingspan.training.finish import decisions, sentence_batches
from wingspan.training.multi_corpus import CorporaPlan, OneOfSeveral

CALIBRATE = runpy.run_path(str(ROOT / "models" / "calibrate_model.py"))
TYPES = ("Chemical", "Disease", "Gene")


def of_corpus(documents, name, labels):
    return tuple(replace(only(document, labels), dataset=name) for document in documents)


@pytest.fixture(scope="module")
def plan():
    """A target with all types, and a corpus of genes with a part of the same documents."""
    train, dev = train_documents(20), dev_documents(8)
    everything = OneOfSeveral(
        "all", TYPES, TYPES, of_corpus(train, "all", TYPES), of_corpus(dev[:6], "all", TYPES), (), "target"
    )
    genes = OneOfSeveral("genes", ("Gene",), ("Gene",), (), of_corpus(dev[4:], "genes", ("Gene",)))
    return CorporaPlan((everything, genes), heads="shared")


@pytest.fixture(scope="module")
def model(plan):
    return wingspan.train(tiny("baseline", epochs=12, batch_size=4, learning_rate=0.02), corpora=plan, device="cpu")


def test_dev_documents_are_neither_in_training_nor_in_a_test_set(plan):
    dev = CALIBRATE["dev_sets"](plan)
    assert {name: (len(gold), set(labels)) for name, (gold, labels) in dev.items()} == {
        "all": (6, set(TYPES)),
        "genes": (4, {"Gene"}),
    }
    everywhere = [document for gold, _ in dev.values() for document in gold]
    assert len({document.id for document in everywhere}) == 10
    assert {document.dataset for document in everywhere} == {"all"}  # as users get it
    everything, genes = plan.corpora
    tested = replace(everything, test=genes.dev[:3])  # two of them are in dev of both
    assert {
        name: len(gold) for name, (gold, _) in CALIBRATE["dev_sets"](replace(plan, corpora=(tested, genes))).items()
    } == {
        "all": 4,
        "genes": 1,
    }
    trained_on = replace(genes, dev_into_training=True)
    assert list(CALIBRATE["dev_sets"](replace(plan, corpora=(everything, trained_on)))) == ["all"]


def test_a_span_without_annotation_may_be_of_a_type_that_the_corpus_is_silent_about(model):
    names = model.labels.names()
    right = np.array([names.index(None), names.index("Gene")])
    possible = CALIBRATE["possible_classes"](model, right, {"Chemical", "Disease"})
    assert [{name for name, may in zip(names, row, strict=True) if may} for row in possible] == [
        {None, "Chemical", "Disease"},
        {"Gene"},
    ]


def test_silence_neither_costs_nor_pays():
    logits = np.array([[0.0, 5.0, -9.0]])  # surely of the second class
    silent, negative = np.array([[True, True, False]]), np.array([[True, False, False]])
    assert CALIBRATE["log_loss"](logits, silent) == pytest.approx(0.0, abs=1e-5)
    assert CALIBRATE["log_loss"](logits, negative) == pytest.approx(5.0, abs=0.1)


def test_where_everything_is_annotated_the_temperature_is_the_usual_one(model, plan):
    target = {"all": CALIBRATE["dev_sets"](plan)["all"]}
    model.calibration = None
    found = CALIBRATE["fit_temperature"](model, target)
    rows = [decisions(model, batch) for batch in sentence_batches(model, target["all"].gold, 32)]
    logits, right = (np.concatenate(part) for part in zip(*rows, strict=True))
    assert found.temperature == pytest.approx(calibration.fit_temperature(logits, right), rel=0.01)
    assert found.facts["log_loss"] == pytest.approx(calibration.log_loss(logits, right, found.temperature))


def test_thresholds_are_chosen_on_all_dev_sets_together(model, plan):
    dev = CALIBRATE["dev_sets"](plan)
    CALIBRATE["calibrate"](model, dev)
    chosen = model.calibration
    assert chosen.facts["corpora"] == {"all": 6, "genes": 4}
    assert set(chosen.thresholds) <= set(TYPES)
    assert "Gene" in chosen.thresholds
    found = CALIBRATE["found_in"](model, dev, threshold=0.05)
    assert {entity.label for document in found["genes"] for entity in document.entities} == {"Gene"}
    CALIBRATE["calibrate"](model, {"genes": dev["genes"]})
    assert set(model.calibration.thresholds) == {"Gene"}  # nothing was learned about others


def test_only_calibration_and_facts_are_written(tmp_path, monkeypatch, capsys):
    corpora = save_two(tmp_path, 'heads = "shared"')
    corpora.write_text(corpora.read_text().replace('test = "genes-test.jsonl"\n', ""))  # which are those of dev
    model = wingspan.train(tiny("baseline", epochs=6, batch_size=4, learning_rate=0.02), corpora=corpora, device="cpu")
    model.calibration = None
    model.facts["calibration_error"] = 1.0
    model.save_pretrained(tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    monkeypatch.setattr("sys.argv", ["calibrate_model.py", str(tmp_path / "model"), "--corpora", str(corpora)])
    CALIBRATE["main"]()
    after = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    assert {name for name in after if after[name] != before.get(name)} == {"calibration.json", "facts.json"}
    assert "calibration_error" not in json.loads(after["facts.json"])
    stored = wingspan.load(tmp_path / "model", device="cpu").calibration
    assert stored.facts["aim"] == "f1"
    assert "drugs (4 documents, Chemical, Disease)" in capsys.readouterr().out
