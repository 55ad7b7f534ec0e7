"""Suggested label maps: each kind of evidence by hand, their mean by hand, and a map that must come out."""

from math import sqrt

import numpy as np
import pytest

from wingspan.corpora.label_map import read_label_map
from wingspan.corpora.label_map.suggest import (
    Evidence,
    MentionClassifier,
    combine,
    mentions_and_others,
    name_features,
    name_uses,
    names_of,
    plain,
    predicted_labels,
    shared_names,
    similar_label,
    similarity,
    suggest,
    write_suggestions,
)
from wingspan.text import Document, Entity


def document(text: str, *entities: tuple[str, str]) -> Document:
    """A text with labeled names, each at its first place that is not taken."""
    found, taken = [], 0
    for name, label in entities:
        start = text.index(name, taken)
        taken = start + len(name)
        found.append(Entity.at(label, start, taken))
    return Document("1", text, tuple(found))


def test_names_are_one_whatever_a_corpus_does_about_case_and_words():
    assert plain("CYP2D6") == plain("cyp 2 D 6") == "cyp 2 d 6"
    one = document("CYP2D6 and Cyp 2D6", ("CYP2D6", "Gene"), ("Cyp 2D6", "Gene"))
    assert names_of([one]) == {"Gene": {"cyp 2 d 6": 2}}


TARGET = [
    document("aspirin for pain ; Aspirin again", ("aspirin", "Drug"), ("Aspirin", "Drug")),
    document("severe pain without aspirin", ("severe pain", "Illness")),
]


def test_how_names_are_used_in_the_target():
    uses = name_uses(TARGET, ["aspirin", "pain", "severe", "ibuprofen", "aspirin again"])
    assert uses["aspirin"] == {"Drug": 2, None: 1}
    assert uses["pain"] == {None: 1}  # the second one is a part of an entity, and says nothing
    assert set(uses) == {"aspirin", "pain"}
    evidence = shared_names(TARGET, {"Chem": {"aspirin": 4, "pain": 1, "ibuprofen": 9}})["Chem"]
    assert evidence.names == 2
    assert evidence.trust == pytest.approx(2 / 5)
    aspirin, pain = sqrt(4) * 3 / 4, 1 * 1 / 2
    assert evidence.chances == pytest.approx(
        {"Drug": aspirin * 2 / 3 / (aspirin + pain), None: (aspirin / 3 + pain) / (aspirin + pain)}
    )


def test_names_that_the_target_never_has_say_nothing():
    assert shared_names(TARGET, {"Chem": {"ibuprofen": 3}}) == {"Chem": Evidence({}, 0.0, 0)}


def test_what_a_model_finds_in_place_of_mentions():
    gold = document("old aspirin in pain now", ("aspirin", "Chem"), ("pain", "Chem"), ("now", "Time"))
    guesses = (Entity.at("Odd", 0, 11), Entity.at("Drug", 4, 11), Entity.at("Illness", 12, 19))
    found = Document("1", gold.text, guesses)
    heard = predicted_labels([gold], [found])
    assert heard["Chem"].chances == {"Drug": 0.5, "Illness": 0.5}  # the same span first, then what overlaps
    assert heard["Chem"].trust == pytest.approx(2 / 5)
    assert heard["Time"].chances == {None: 1.0}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Disease", "disease", 1.0),
        ("CellLine", "Cell line", 1.0),
        ("cell_line", "CellLine", 1.0),
        ("SpecificDisease", "Disease", (1 / 1 + 1 / 2) / 2),
        ("Cell", "CellLine", 0.75),
        ("DNAMutation", "mutation", 0.8421052631578947),  # letters: 2 * 8 / (11 + 8)
    ],
)
def test_similar_labels(one, other, expected):
    assert similarity(one, other) == pytest.approx(expected)


def test_labels_that_are_not_alike_say_nothing():
    assert similar_label("FamilyName", ["Gene", "Disease"]) == Evidence({}, 0.0)
    assert similar_label("SpecificDisease", ["Gene", "Disease"]) == Evidence({"Disease": 1.0}, 0.75)
    assert similar_label("Gene", []) == Evidence({}, 0.0)


def test_the_mean_of_all_evidence():
    evidence = {
        "names": Evidence({"Gene": 0.9, None: 0.1}, 0.5, 3),
        "model": Evidence({"Gene": 0.2, None: 0.6, "Drug": 0.2}, 1.0, 9),
        "label": Evidence({}, 0.0),
    }
    found = combine("other", "Family", evidence, ["Drug", "Gene"])
    assert (found.target, found.runner_up) == (None, "Gene")
    assert found.confidence == pytest.approx((0.5 * 0.1 + 1.0 * 0.6) / 1.5)
    assert not found.confident
    assert str(evidence["names"]) == "Gene 90%, - 10% (3 names)"
    silent = combine("other", "Family", {"label": Evidence({}, 0.0)}, ["Drug", "Gene"])
    assert (silent.target, silent.confidence, silent.confident) == (None, 0.0, False)


def corpora() -> tuple[list[Document], list[Document]]:
    """Two corpora about drugs and genes; the second has finer labels, one of which the first leaves unmarked."""
    drugs = ["aspirin", "ibuprofen", "naproxen", "warfarin", "heparin", "metformin"]
    genes = ["BRCA1", "TP53", "EGFR", "KRAS2", "MYC1", "PTEN3"]
    cells = ["blood cells", "nerve cells", "skin cells", "bone cells"]
    target, other = [], []
    for at, (drug, gene) in enumerate(zip(drugs, genes, strict=True)):
        text = f"they gave {drug} when {gene} was found in {cells[at % 4]} of people"
        target.append(document(text, (drug, "Drug"), (gene, "Gene")))
        text = f"now {drug} changed {gene} much in {cells[at % 4]}"
        other.append(document(text, (drug, "Pill"), (gene, "Locus"), (cells[at % 4], "Tissue")))
    return target, other


def targets(suggestions):
    return {(one.corpus, one.label): one.target for one in suggestions}


def test_the_whole_map():
    target, other = corpora()
    found = suggest(target, {"other": other})
    assert targets(found) == {("other", "Locus"): "Gene", ("other", "Pill"): "Drug", ("other", "Tissue"): None}
    assert all(one.confident for one in found)
    again = suggest(target, {"other": other})
    assert [one.to_dict() for one in again] == [one.to_dict() for one in found]  # nothing is drawn anew
    assert set(found[0].evidence) == {"names", "model", "label"}


def test_a_model_takes_the_place_of_the_classifier():
    target, other = corpora()
    asked = []

    def predict(documents):
        asked.append(len(documents))
        return [Document(one.id, one.text, (Entity.at("Drug", 0, len(one.text)),)) for one in documents]

    found = suggest(target, {"other": other}, predict=predict, kinds=("model",))
    assert asked == [len(other)]
    assert {one.target for one in found} == {"Drug"}


def test_the_table_is_a_label_map(tmp_path):
    target, other = corpora()
    found = suggest(target, {"other": other})
    write_suggestions(found, tmp_path / "map.tsv")
    assert read_label_map(tmp_path / "map.tsv").targets == targets(found)
    first, second = (tmp_path / "map.tsv").read_text().splitlines()[:2]
    assert first.split("\t") == ["corpus", "label", "target", "confidence", "runner_up", "names", "model", "label"]
    assert second.split("\t")[:3] == ["other", "Locus", "Gene"]


def test_a_target_without_entities_is_one_sentence():
    with pytest.raises(ValueError, match="the target corpus has no entities"):
        suggest([Document("1", "nothing here")], {"other": corpora()[1]})


def test_the_classifier_learns_spellings():
    target, _ = corpora()
    classifier = MentionClassifier(target)
    assert classifier.labels == (None, "Drug", "Gene")
    chances = classifier.chances(["oxaprofen", "ABCD7", "they gave"])
    assert chances.sum(1) == pytest.approx(np.ones(3))
    assert [classifier.labels[at] for at in chances.argmax(1)] == ["Drug", "Gene", None]
    assert (MentionClassifier(target).chances(["oxaprofen", "ABCD7", "they gave"]) == chances).all()
    heard = classifier.evidence({"oxaprofen": 4, "ABCD7": 1})
    expected = (2 * chances[0, 1] + 1 * chances[1, 1]) / 3
    assert heard.chances["Drug"] == pytest.approx(expected)


def test_other_spans_touch_no_entity():
    target, _ = corpora()
    named, others = mentions_and_others(target)
    assert named["aspirin", "Drug"] == 1
    assert 0 < others.total() <= sum(len(one.entities) for one in target)
    assert not any(name.casefold() in other for name, _ in named for other in others)


def test_a_target_of_one_label_without_other_words_can_be_learned():
    classifier = MentionClassifier([document("aspirin", ("aspirin", "Drug"))])
    assert classifier.labels == (None, "Drug")


def test_features_of_names_do_not_depend_on_the_words_of_a_corpus():
    assert name_features("CYP2D6") == name_features("CYP 2 D 6")
    assert name_features("") == name_features(" ")
