"""The label map: read, written, checked against the corpora, used on documents."""

import os
from pathlib import Path

import pytest

from wingspan.corpora.formats import read
from wingspan.corpora.label_map import LabelMap, read_label_map
from wingspan.files import CorpusError
from wingspan.text import Document, Entity

BIOMEDICAL = Path(__file__).parents[2] / "examples" / "biomedical" / "label_map.tsv"
BIORED = ("Disease", "Chemical", "Gene", "Variant", "Species", "CellLine")
LABELS = {"main": ("Drug", "Illness"), "other": ("Chemical", "Disease", "Odd")}
GOOD = "corpus\tlabel\ttarget\nother\tChemical\tDrug\nother\tDisease\tIllness\nother\tOdd\t-\n"


def saved(folder, text):
    path = folder / "map.tsv"
    path.write_text(text)
    return path


def test_reading_writing_and_reading_again(tmp_path):
    found = read_label_map(saved(tmp_path, GOOD))
    assert list(found) == [("other", "Chemical", "Drug"), ("other", "Disease", "Illness"), ("other", "Odd", None)]
    found.check(LABELS, "main")


def test_nothing_dash_comments_and_more_columns_are_understood(tmp_path):
    text = (
        "# ours\ncorpus\tlabel\ttarget\tconfidence\n\nother\tChemical\tDrug\t0.9\nother\tDisease\nother\tOdd\t\t0.2\n"
    )
    found = read_label_map(saved(tmp_path, text))
    assert found.targets == {("other", "Chemical"): "Drug", ("other", "Disease"): None, ("other", "Odd"): None}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other\tOdd\t-\n", "map.tsv:1: the first line names the columns; start it with corpus, label, target"),
        ("corpus\tlabel\ttarget\nother\n", "map.tsv:2: a line holds corpus, label, target divided by tabs; 1 of them"),
        (GOOD + "other\tOdd\tDrug\n", "map.tsv:5: 'Odd' of 'other' is in line 4 already; keep one"),
        ("corpus\tlabel\ttarget\n", "map.tsv: there is no line in it"),
    ],
)
def test_a_broken_table_is_one_sentence(tmp_path, text, message):
    with pytest.raises(CorpusError) as said:
        read_label_map(saved(tmp_path, text))
    assert message in str(said.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("other\tOdd\t-", "othr\tOdd\t-", "map.tsv:4: no corpus 'othr'; did you mean 'other'?"),
        ("other\tOdd\t-", "other\tEven\t-", "map.tsv:4: 'other' has no label 'Even'; there are Chemical, Disease, Odd"),
        ("\tDrug", "\tDrugs", "map.tsv:2: the target 'main' has no label 'Drugs'; did you mean 'Drug'?"),
        ("other\tOdd\t-\n", "", "map.tsv: no line for 'Odd' of 'other'; add one, with - if it has no counterpart"),
        ("other\tOdd\t-", "other\tOdd\t-\nmain\tDrug\tIllness", "map.tsv:5: 'Drug' is of the target corpus"),
    ],
)
def test_a_map_that_does_not_fit_the_corpora_is_one_sentence(tmp_path, old, new, message):
    found = read_label_map(saved(tmp_path, GOOD.replace(old, new)))
    with pytest.raises(CorpusError) as said:
        found.check(LABELS, "main")
    assert message in str(said.value)


def test_an_unknown_target_corpus_is_said(tmp_path):
    with pytest.raises(CorpusError, match="the target corpus 'mian' is unknown; did you mean 'main'"):
        read_label_map(saved(tmp_path, GOOD)).check(LABELS, "mian")


def test_a_document_in_target_labels():
    map_ = LabelMap({("other", "A"): "X", ("other", "B"): "X", ("other", "C"): None})
    entities = (Entity.at("A", 0, 3, score=0.5), Entity.at("B", 0, 3), Entity.at("B", 4, 7), Entity.at("C", 8, 9))
    found = map_.mapped(Document("1", "abc def g", entities, dataset="other"))
    assert found.entities == (Entity.at("X", 0, 3), Entity.at("X", 4, 7))
    own = Document("2", "abc", (Entity.at("X", 0, 3),), dataset="main")
    assert map_.mapped(own) == own
    with pytest.raises(ValueError, match="label map: no line for 'D' of 'other'"):
        map_.target("other", "D")


def test_the_map_of_paper_004_has_31_labels_in_its_corrected_form():
    found = read_label_map(BIOMEDICAL)
    assert len(found.targets) == 31  # with the 6 of BioRED and a "nothing" for each of ten corpora: 47 classes
    assert found.target("gnormplus", "FamilyName") == found.target("gnormplus", "Gene") == "Gene"
    without = {(corpus, label) for corpus, label, target in found if target is None}
    assert without == {
        ("gnormplus", "DomainMotif"),
        ("nlmchem", "NonStandardRef"),
        ("nlmchem", "OTHER"),
        ("nlmgene", "Cell"),
        ("nlmgene", "DomainMotif"),
        ("nlmgene", "ChromosomeLocation"),
    }
    assert {target for _, _, target in found if target} == set(BIORED)


@pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA names no folder with corpora")
def test_the_map_of_paper_004_fits_the_corpora():
    folder = Path(os.environ["WINGSPAN_DATA"])
    found = read_label_map(BIOMEDICAL)
    labels: dict[str, set[str]] = {"biored": set(BIORED)}
    for corpus in dict.fromkeys(corpus for corpus, _, _ in found):
        files = {"nlmchem": "test.jsonl*", "nlmgene": "test.jsonl*", "ncbi-disease": "dev.subtypes.jsonl*"}
        split = files.get(corpus, "dev.jsonl*")  # the smallest files that have all labels
        (path,) = (folder / corpus).glob(split)
        labels[corpus] = {entity.label for document in read(path) for entity in document.entities}
    found.check(labels, "biored")
