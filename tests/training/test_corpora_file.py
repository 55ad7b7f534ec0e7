"""`corpora.toml`: what it says, and what is said of its mistakes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wingspan.corpora.formats import write
from wingspan.text import Document, Entity
from wingspan.training.multi_corpus import read_corpora

DRUG = Document("1", "aspirin helps", (Entity.at("Drug", 0, 7),))
GENE = Document("2", "BRCA1 is a gene", (Entity.at("Gene", 0, 5),))


@pytest.fixture
def folder(tmp_path):
    """Two corpora: drugs with all three files, genes with two training files."""
    for name, documents in {"drugs": [DRUG], "drugs-dev": [DRUG, DRUG], "drugs-test": [DRUG], "genes": [GENE]}.items():
        write(documents, tmp_path / f"{name}.jsonl")
    write([GENE], tmp_path / "more.jsonl")
    return tmp_path


def plan_of(folder: Path, text: str):
    (folder / "corpora.toml").write_text(text)
    return read_corpora(folder / "corpora.toml")


DRUGS = '[[corpora]]\nname = "drugs"\ntrain = "drugs.jsonl"\ndev = "drugs-dev.jsonl"\ntest = "drugs-test.jsonl"\n'
GENES = '[[corpora]]\nname = "genes"\ntrain = ["genes.jsonl", "more.jsonl"]\n'


def test_documents_carry_the_name_of_their_corpus_and_the_first_is_the_target(folder):
    plan = plan_of(folder, DRUGS + GENES)
    drugs, genes = plan.corpora
    assert (plan.target, drugs.role, genes.role) == (drugs, "target", "auxiliary")
    assert [len(part) for part in (drugs.train, drugs.dev, drugs.test, genes.train, genes.dev)] == [1, 2, 1, 2, 0]
    assert {document.dataset for document in (*drugs.train, *drugs.dev, *drugs.test)} == {"drugs"}
    assert [document.dataset for document in plan.training] == ["drugs", "genes", "genes"]
    assert (drugs.labels, genes.annotates, genes.weight, plan.settings) == (("Drug",), ("Gene",), 1.0, {})
    assert plan.labels.meanings() == (("drugs", None), ("drugs", "Drug"), ("genes", None), ("genes", "Gene"))
    assert genes.name == "genes"


def test_declarations_are_taken_as_they_are(folder):
    plan = plan_of(
        folder,
        'heads = "shared"\nsampling = "temperature"\ntemperature = 4\nbatches = "turns"\n'
        + GENES
        + 'labels = ["Gene", "Drug"]\nannotates = ["Gene"]\nweight = 2\n'
        + DRUGS
        + 'labels = ["Species", "Drug"]\nrole = "target"\n',
    )
    assert plan.labels.names() == (None, "Gene", "Drug", "Species")  # in the order of the file
    assert (plan.labels.shared, plan.labels.target) == (True, "drugs")
    assert plan.labels.annotates == {"genes": ("Gene",)}
    assert plan.settings == {"train.sampling": "temperature", "train.temperature": "4.0", "train.batches": "turns"}
    assert plan.corpora[0].weight == 2


def test_a_label_map_says_what_labels_are_in_the_targets(folder):
    (folder / "map.tsv").write_text("corpus\tlabel\ttarget\ngenes\tGene\t-\ngenes\tDrug\tDrug\nothers\tX\tY\n")
    plan = plan_of(folder, 'label_map = "map.tsv"\n' + DRUGS + GENES + 'labels = ["Gene", "Drug"]\n')
    assert plan.labels.counterparts == {"genes": {"Drug": "Drug"}}  # the map may know more corpora


def test_auxiliary_dev_sets_can_go_into_training(folder):
    plan = plan_of(folder, GENES + DRUGS + "dev_into_training = true\n")
    assert [document.dataset for document in plan.training] == ["genes"] * 2 + ["drugs"] * 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "corpora is missing; give a list of tables, [[corpora]]"),
        ("corpora = [3]", "corpora must be a list of tables, [[corpora]], not 3"),
        ('[[corpora]]\ntrain = "drugs.jsonl"', "corpora: name is missing; give a text"),
        ('[[corpora]]\nname = "drugs"', "corpus 'drugs': train is missing; give a file"),
        (DRUGS + "tain = 3", "corpus 'drugs': no key 'tain' here; did you mean 'train'?"),
        (DRUGS.replace("drugs-dev", "none"), "corpus 'drugs': dev: there is no "),
        (DRUGS + 'role = "main"', "corpus 'drugs': role must be \"target\" or \"auxiliary\", not 'main'"),
        (DRUGS + "weight = 0", "corpus 'drugs': weight must be a number above 0, not 0"),
        (DRUGS + 'format = "jsnl"', "corpus 'drugs': format must be one of jsonl, conll, "),
        (DRUGS + "weight = inf", "corpus 'drugs': weight must be a number above 0, not inf"),
        (DRUGS + 'labels = ["Gene"]', "corpus 'drugs': train has entities of 'Drug' (1), none of its labels"),
        (DRUGS + 'labels = ["Drug", "Drug"]', "labels must be a list of different labels"),
        (DRUGS + 'annotates = ["Gene"]', "annotates names 'Gene', which is none of its labels"),
        (
            DRUGS + 'labels = ["Drug", "Gene"]\nannotates = ["Gene"]',
            "its training documents mark 'Drug' (1), which annotates leaves out",
        ),
        (DRUGS + DRUGS, "two corpora are called 'drugs'; give each its own name"),
        (DRUGS + 'role = "target"\n' + GENES + 'role = "target"', "'drugs' and 'genes' are both the target"),
        (DRUGS + 'role = "auxiliary"', 'all corpora are auxiliary; give one of them role = "target"'),
        (DRUGS + "dev_into_training = true", "dev_into_training is for auxiliary corpora"),
        (
            GENES + '[[corpora]]\nname = "d"\ntrain = "drugs.jsonl"\ndev_into_training = true',
            "corpus 'd': dev_into_training needs dev, which is missing",
        ),
        ('[[corpora]]\nname = "d"\ntest = "drugs-test.jsonl"', "corpus 'd': train is missing; the target needs"),
        ('heads = "two"\n' + DRUGS, 'heads must be "own" or "shared", not \'two\''),
        ('sampling = "all"\n' + DRUGS, 'sampling must be "proportion" or "uniform" or "temperature" or "each"'),
        ("[[corpora", "not TOML"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_file_and_the_key(folder, text, message):
    with pytest.raises(ValueError, match="corpora.toml: ") as error:
        plan_of(folder, text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_a_map_that_does_not_fit_the_corpora_is_said(folder):
    (folder / "map.tsv").write_text("corpus\tlabel\ttarget\ngenes\tGene\tDrugs\n")
    with pytest.raises(ValueError, match=r"map.tsv:2: the target 'drugs' has no label 'Drugs'; did you mean 'Drug'?"):
        plan_of(folder, 'label_map = "map.tsv"\n' + DRUGS + GENES)


DATA = os.environ.get("WINGSPAN_DATA")
BIOMEDICAL = {
    "biored": "Disease Chemical Gene Variant Species CellLine",
    "bc5cdr": "Chemical Disease",
    "bioid": "CellLine",
    "gnormplus": "FamilyName Gene DomainMotif",
    "linnaeus": "Species",
    "ncbi-disease": "DiseaseClass SpecificDisease CompositeMention Modifier",
    "nlmchem": "Chemical NonStandardRef OTHER",
    "nlmgene": "Gene FamilyName Cell DomainMotif ChromosomeLocation",
    "species800": "Species",
    "tmvar3": "Gene Species Disease DNAMutation ProteinMutation OtherMutation CellLine AcidChange SNP DNAAllele "
    "ProteinAllele",
}


@pytest.mark.skipif(DATA is None, reason="WINGSPAN_DATA is not set")
def test_ten_biomedical_corpora_have_the_papers_47_classes(tmp_path):
    """Oi and Miwa 2025; one small file of each corpus is enough to check its declared labels."""
    text = ""
    for name, labels in BIOMEDICAL.items():
        part = "test" if name == "nlmchem" else "dev" if name != "biored" else "train"
        (file,) = Path(str(DATA), name).glob(f"{part}.text.jsonl*")
        text += f'[[corpora]]\nname = "{name}"\n{"test" if part == "test" else "train"} = "{file}"\n'
        text += f"labels = {labels.split()}\n"
    labels = plan_of(tmp_path, text).labels
    assert labels.num_classes == 47
    ids = [labels.nothing(name) for name in BIOMEDICAL]
    assert ids == [0, 7, 10, 12, 16, 18, 23, 27, 33, 35]
    assert (labels.id("biored", "CellLine"), labels.id("bc5cdr", "Disease"), labels.id("tmvar3", "SNP")) == (6, 9, 44)
