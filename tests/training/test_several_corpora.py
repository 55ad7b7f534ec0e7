"""One model on several corpora, from `corpora.toml` to figures for each of them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from several import TYPES, kept, save_two, two_corpora

import wingspan
from trainings import TINY, dev_documents, tiny, train_documents, untrained
from wingspan.cli.calibrate import calibrate
from wingspan.corpora.formats import write
from wingspan.corpora.label_map import LabelMap
from wingspan.evaluation.transfer import only
from wingspan.text import Document, Entity
from wingspan.training.finish import mapped_gold
from wingspan.training.fit import fit
from wingspan.training.multi_corpus import CorporaPlan, read_corpora
from wingspan.training.run import corpora_lines

SETS = [part for key, value in {**TINY, "train.learning_rate": 0.02}.items() for part in ("--set", f"{key}={value}")]
MAP = "corpus\tlabel\ttarget\ngenes\tDisease\tDisease\ngenes\tGene\t-\n"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with the corpora and a model of them."""
    folder = tmp_path_factory.mktemp("several")
    (folder / "map.tsv").write_text(MAP)
    file = save_two(folder, 'label_map = "map.tsv"', 'sampling = "uniform"')
    settings = {**TINY, "train.learning_rate": 0.02, "train.epochs": 6, "train.batch_size": 4}
    wingspan.train("baseline", corpora=file, output=folder / "model", settings=settings, device="cpu")
    return folder


def test_each_corpus_answers_in_its_own_labels(trained):
    model = wingspan.load(trained / "model", device="cpu")
    assert model.labels.meanings() == two_corpora().labels.meanings()
    assert model.recipe.train.sampling == "uniform"
    documents = dev_documents(20)
    found = {name: model.predict(documents, dataset=name, threshold=0.2) for name in TYPES}
    for name, own in found.items():
        labels = {entity.label for document in own for entity in document.entities}
        assert labels
        assert labels <= set(TYPES[name])
    assert model.predict(documents, threshold=0.2) == [
        replace(document, dataset="main") for document in found["drugs"]
    ]  # the target, where nobody says what the documents are
    named = [replace(document, dataset="genes") for document in documents]
    assert [d.entities for d in model.predict(named, threshold=0.2)] == [d.entities for d in found["drugs"]]


def test_figures_of_every_corpus_are_kept(trained):
    facts = json.loads((trained / "model" / "facts.json").read_text())
    corpora = facts["corpora"]
    assert {name: sorted(known) for name, known in corpora.items()} == {
        "drugs": ["dev", "role", "training_documents"],
        "genes": ["dev", "dev_mapped", "role", "test", "test_mapped", "training_documents"],
    }
    assert corpora["drugs"]["dev"]["micro"] == facts["dev"]["micro"]
    assert set(corpora["genes"]["test"]["labels"]) == {"Disease", "Gene"}
    assert set(corpora["genes"]["test_mapped"]["labels"]) == {"Disease"}
    card = (trained / "model" / "README.md").read_text()
    f1 = corpora["genes"]["test"]["micro"]["f1"]
    assert "corpus genes (auxiliary), test, in its own labels: precision" in card
    assert f"F1 {f1:.2f}" in card


def test_evaluate_and_predict_on_any_corpus(shell, trained, tmp_path):
    facts = json.loads((trained / "model" / "facts.json").read_text())["corpora"]["genes"]
    gold, model = trained / "genes-test.jsonl", trained / "model"
    shell("evaluate", model, gold, "--dataset", "genes", "--device", "cpu", "--json", tmp_path / "own.json")
    assert json.loads((tmp_path / "own.json").read_text())["micro"] == facts["test"]["micro"]
    arguments = ["--dataset", "genes", "--label-map", trained / "map.tsv", "--device", "cpu"]
    shell("evaluate", model, gold, *arguments, "--json", tmp_path / "mapped.json")
    assert json.loads((tmp_path / "mapped.json").read_text())["micro"] == facts["test_mapped"]["micro"]
    out, _ = shell("evaluate", model, gold, "--device", "cpu")
    assert "The model has no label 'Gene': all" in out  # the target has none, although the other corpus has
    out, _ = shell("predict", gold, "--model", model, "--dataset", "genes", "--device", "cpu", "--threshold", "0.2")
    labels = {entity["label"] for line in out.splitlines() for entity in json.loads(line)["entities"]}
    assert labels <= {"Disease", "Gene"}
    assert "dataset 'other' is unknown; the model has drugs, genes" in shell.refuses(
        "predict", gold, "--model", model, "--dataset", "other", "--device", "cpu"
    )
    assert "--label-map needs --dataset" in shell.refuses("evaluate", model, gold, "--label-map", trained / "map.tsv")


def test_calibration_is_about_the_targets_answers(trained, tmp_path):
    """Files may name the dataset of their documents, as those that `predict --dataset` writes do."""
    found = []
    for name in ("main", "genes"):
        documents = [replace(document, dataset=name) for document in kept(dev_documents(40), "drugs")]
        write(documents, tmp_path / f"{name}.jsonl")
        gold = tmp_path / f"{name}.jsonl"
        found.append(calibrate(trained / "model", gold, output=tmp_path / name, device="cpu").calibration)
    assert found[0].temperature == found[1].temperature


def test_train_takes_files_or_corpora(shell, trained, tmp_path):
    where = ["--output", tmp_path / "run", "--device", "cpu", *SETS, "--set", "train.epochs=1"]
    corpora = ["--corpora", trained / "corpora.toml"]
    assert "one of the two" in shell.refuses("train", "baseline", *where)
    assert "one of the two" in shell.refuses("train", "baseline", *where, *corpora, "--train", shell.train)
    assert "leave out --dev" in shell.refuses("train", "baseline", *where, *corpora, "--dev", shell.dev)
    out, _ = shell("train", "baseline", *where, *corpora, "--seeds", "1,2", "--json", tmp_path / "figures.json")
    assert "2 corpora, 6 classes, a block for each:" in out
    assert "drugs (target): " in out
    figures = json.loads((tmp_path / "figures.json").read_text())
    values = figures["corpora"]["genes"]["test"]["f1"]["values"]
    assert len(values) == 2
    kept = [json.loads((tmp_path / "run" / f"seed-{n}" / "facts.json").read_text()) for n in (1, 2)]
    assert values == [facts["corpora"]["genes"]["test"]["micro"]["f1"] for facts in kept]
    changed = ["--set", "train.sampling=proportion", "--resume"]
    assert "--resume: train.sampling is 'proportion' now and was 'uniform'" in shell.refuses(
        "train", "baseline", "--output", tmp_path / "run" / "seed-1", *where[2:], *corpora, *changed
    )


def test_several_datasets_are_refused():
    documents = [replace(document, dataset=f"d{n}") for n, document in enumerate(train_documents(2))]
    with pytest.raises(ValueError, match=r"several datasets \(d0, d1\)"):
        fit(tiny("baseline"), documents)
    with pytest.raises(ValueError, match="dataset 'typo' is unknown; the model has main"):
        untrained().predict("A text.", dataset="typo")


@pytest.mark.slow
def test_tags_learn_from_several_corpora_too(trained):
    model = wingspan.train(tiny("bundling/bl-seq", epochs=6, batch_size=4, learning_rate=0.02), corpora=two_corpora())
    for name, labels in TYPES.items():
        found = model.predict(dev_documents(10), dataset=name)
        assert {entity.label for document in found for entity in document.entities} <= set(labels)
    assert model.facts["corpora"]["drugs"]["dev"]["micro"]["f1"] > 0


def test_shared_labels_with_a_map_are_the_targets(tmp_path):
    (tmp_path / "map.tsv").write_text(MAP)
    plan = read_corpora(save_two(tmp_path, 'label_map = "map.tsv"', 'heads = "shared"'))
    assert plan.labels.names() == (None, "Chemical", "Disease")
    genes = plan.corpora[1]
    assert (genes.name, genes.labels) == ("genes", ("Disease",))
    assert {entity.label for d in genes.train for entity in d.entities} == {"Disease"}
    assert plan.labels.silent().tolist() == [[False, False, False], [False, True, False]]
    negative = replace(plan, silence="negative").labels
    assert not negative.silent().any()
    assert negative.allowed().tolist() == plan.labels.allowed().tolist()


def test_a_label_map_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "map.tsv").write_text(MAP.replace("Gene", "Protein"))
    with pytest.raises(ValueError, match=r"map.tsv:3: 'genes' has no label 'Protein'"):
        read_corpora(save_two(tmp_path, 'label_map = "map.tsv"'))


def test_mapped_gold_is_asked_for_what_its_labels_can_mean():
    label_map = LabelMap({("genes", "Disease"): "Illness", ("genes", "Gene"): None})
    document = Document("1", "a b", (Entity.at("Disease", 0, 1), Entity.at("Gene", 2, 3)))
    (mapped,), asked = mapped_gold([document], "genes", label_map)
    assert mapped.entities == (Entity.at("Illness", 0, 1),)
    assert asked == {"Illness"}
    found = replace(document, entities=(Entity.at("Illness", 0, 1), Entity.at("Drug", 2, 3)))
    assert only(found, asked).entities == (Entity.at("Illness", 0, 1),)
    with pytest.raises(ValueError, match="label map: no label of 'other' has a counterpart; it is about genes"):
        mapped_gold([document], "other", label_map)


def test_a_corpus_without_any_counterpart_is_scored_in_its_own_labels_alone():
    label_map = LabelMap({("genes", "Disease"): None, ("genes", "Gene"): None})
    drugs, genes = two_corpora(3).corpora
    leaky = replace(genes, train=(*genes.train, genes.dev[0]))  # which is dropped
    model = wingspan.train(tiny("baseline"), corpora=CorporaPlan((drugs, leaky), label_map=label_map), device="cpu")
    assert sorted(model.facts["corpora"]["genes"]) == ["dev", "role", "test", "training_documents"]
    assert model.facts["corpora"]["genes"]["training_documents"] == 3


def test_a_corpus_without_training_documents_is_said_to_have_untaught_classes():
    drugs, genes = two_corpora(3).corpora
    plan = CorporaPlan((drugs, replace(genes, train=())))
    line = corpora_lines(fit(tiny("baseline"), plan.training, declared=plan.labels))[2]
    assert line.startswith("  genes: 0 training sentences, 2 types; nothing teaches these classes, so answers")
    half = CorporaPlan((drugs, replace(genes, annotates=genes.labels[:1])))
    line = corpora_lines(fit(tiny("baseline"), half.training, declared=half.labels))[2]
    assert f"silence about {genes.labels[1]} teaches nothing, nor does any other corpus" in line
    together = replace(half, heads="shared")
    said = "".join(corpora_lines(fit(tiny("baseline"), half.training, declared=together.labels)))
    assert "nor does any other" not in said
    shared = replace(plan, heads="shared")
    assert "nothing teaches" not in "".join(corpora_lines(fit(tiny("baseline"), plan.training, declared=shared.labels)))


def test_a_model_of_several_corpora_goes_on_with_corpora_only(trained):
    """Documents of no corpus in particular would get a block of their own, which nobody who predicts is asked for."""
    start = wingspan.load(trained / "model", device="cpu")
    with pytest.raises(ValueError, match="--from: this model is of several corpora \\(drugs, genes\\)"):
        fit(tiny("baseline"), train_documents(4), start=start)
    fitted = fit(tiny("baseline"), two_corpora(3).training, start=start, declared=two_corpora().labels)
    head = [name for name in fitted.learner.state_dict() if name.startswith("model.scorer.head")]
    assert head
    assert all((fitted.learner.state_dict()[name] == start.learner.state_dict()[name]).all() for name in head)


def test_training_goes_on_with_corpora_that_share_the_encoder(tmp_path):
    """`--from` a model of one corpus: the encoder's weights are taken, the classes are those that are declared."""
    start = wingspan.train(tiny("baseline"), train=train_documents(4), device="cpu")
    fitted = fit(tiny("baseline"), two_corpora(3).training, start=start, declared=two_corpora().labels)
    assert fitted.labels == two_corpora().labels
    old, new = (learner.state_dict() for learner in (start.learner, fitted.learner))
    assert all((old[name] == new[name]).all() for name in old if name.startswith("model.encoder"))


@pytest.mark.parametrize("heads", ["own", "shared"])
def test_the_classes_of_a_model_of_one_corpus_become_the_targets(heads):
    plan = replace(two_corpora(3), heads=heads)
    target = plan.labels.types[plan.labels.target]
    alone = [replace(document, dataset="main") for document in plan.training if document.dataset == plan.labels.target]
    start = wingspan.train(tiny("baseline"), train=alone, device="cpu")
    assert set(start.labels.types["main"]) <= set(target)
    fitted = fit(tiny("baseline"), plan.training, start=start, declared=plan.labels)
    last = max(name for name in fitted.learner.state_dict() if name.startswith("model.scorer.head"))
    old, new = (learner.state_dict()[last] for learner in (start.learner, fitted.learner))
    corpus = "" if heads == "shared" else plan.labels.target
    for row, (_, label) in enumerate(start.labels.meanings()):
        assert (new[plan.labels.meanings().index((corpus, label))] == old[row]).all(), label
    assert len(start.labels.meanings()) > 1
