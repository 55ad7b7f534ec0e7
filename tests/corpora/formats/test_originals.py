"""The corpora in their original formats are read with the counts of `data/INDEX.md`, and every difference has a reason.

Not supported, and therefore not read: the GENIA XML archive (its own markup), CRAFT's Knowtator XML with its plain
articles, archives (two of them, with brat files, are unpacked and read here), ontologies, and lists of ids.
"""

import os
import re
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

from wingspan.corpora.formats import detect, read
from wingspan.files import Problems

ROOT = Path(os.environ.get("WINGSPAN_DATA", "/nowhere"))
pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="WINGSPAN_DATA does not name the folder of corpora")


class Original(NamedTuple):
    path: str
    format: str
    documents: int
    entities: int
    skipped: int = 0
    """Entities whose surface is not the text at their offsets."""
    reason: str = ""
    """Why a count is not the one of INDEX.md."""


COLUMNS = [
    Original("bc5cdr/original/BC5CDR-IOB/train.tsv.gz", "conll", 4560, 9385),
    Original("bc5cdr/original/BC5CDR-IOB/devel.tsv", "conll", 4581, 9593),
    Original("bc5cdr/original/BC5CDR-IOB/test.tsv.gz", "conll", 4797, 9809),
    Original("ncbi-disease/original/NCBI-disease-IOB/train.tsv.gz", "conll", 5424, 5134),
    Original("ncbi-disease/original/NCBI-disease-IOB/devel.tsv", "conll", 923, 787),
    Original("ncbi-disease/original/NCBI-disease-IOB/test.tsv", "conll", 940, 960),
    Original("wnut17/original/wnut17train.conll.gz", "conll", 3394, 1975),
    Original("wnut17/original/emerging.dev.conll", "conll", 1009, 836),
    Original("wnut17/original/emerging.test.annotated", "conll", 1287, 1079),
    Original("germeval14/original/NER-de-dev.tsv", "conll", 2200, 2886),
    Original("germeval14/original/NER-de-test.tsv.gz", "conll", 5100, 6693),
    Original("germeval14/original/germ.dev.iob2", "conll", 2200, 2886),
    Original("germeval14/original/germ.test.iob2.gz", "conll", 5100, 6693),
    Original(
        "genia/original/layered-iob2/genia.dev.iob2",
        "conll",
        1669,
        4337,
        reason="the authors' layers leave out 34 of 4,371 entities; INDEX.md counts those of the XML",
    ),
    Original(
        "genia/original/layered-iob2/genia.test.iob2.gz",
        "conll",
        1854,
        5474,
        reason="the authors' layers leave out 37 of 5,511 entities; INDEX.md counts those of the XML",
    ),
    Original("crossner/politics/original/train.txt.gz", "conll", 200, 1304),
    Original("crossner/politics/original/dev.txt.gz", "conll", 541, 3482),
    Original("crossner/politics/original/test.txt.gz", "conll", 651, 4209),
    Original("crossner/science/original/train.txt.gz", "conll", 200, 1075),
    Original("crossner/science/original/dev.txt.gz", "conll", 450, 2538),
    Original("crossner/science/original/test.txt.gz", "conll", 543, 3089),
    Original("crossner/music/original/train.txt", "conll", 100, 648),
    Original("crossner/music/original/dev.txt.gz", "conll", 380, 2679),
    Original("crossner/music/original/test.txt.gz", "conll", 465, 3336),
    Original("crossner/literature/original/train.txt", "conll", 100, 541),
    Original("crossner/literature/original/dev.txt.gz", "conll", 400, 2130),
    Original("crossner/literature/original/test.txt.gz", "conll", 416, 2266),
    Original("crossner/ai/original/train.txt", "conll", 100, 532),
    Original("crossner/ai/original/dev.txt.gz", "conll", 350, 1549),
    Original("crossner/ai/original/test.txt.gz", "conll", 431, 1809),
]
OWN_DEV = "train and dev of INDEX.md are one file here"
PUBTATOR = [
    Original("bc5cdr/original/pubtator/CDR_TrainingSet.PubTator.txt.gz", "pubtator", 500, 9385),
    Original("bc5cdr/original/pubtator/CDR_DevelopmentSet.PubTator.txt", "pubtator", 500, 9591),
    Original("bc5cdr/original/pubtator/CDR_TestSet.PubTator.txt.gz", "pubtator", 500, 9809),
    Original(
        "ncbi-disease/original/pubtator/NCBItrainset_corpus.txt.gz",
        "pubtator",
        593,
        5145,
        reason="one article stands twice in the file; INDEX.md counts it once (592 documents, 5,134 mentions)",
    ),
    Original("ncbi-disease/original/pubtator/NCBIdevelopset_corpus.txt", "pubtator", 100, 787),
    Original("ncbi-disease/original/pubtator/NCBItestset_corpus.txt", "pubtator", 100, 960),
    Original("biored/original/BioRED_TrainDev.PubTator.gz", "pubtator", 500, 16884, reason=OWN_DEV),
    Original("biored/original/BioRED_Test.PubTator", "pubtator", 100, 3535),
    Original(
        "gnormplus/original/GNormPlus_Train.PubTator.gz",
        "pubtator",
        432,
        5792,
        skipped=1,
        reason=f"{OWN_DEV}; 3 documents count bytes, one mention gives a longer surface than its offsets",
    ),
    Original(
        "gnormplus/original/GNormPlus_Test.PubTator",
        "pubtator",
        262,
        4847,
        skipped=2,
        reason="2 mentions whose surface is not the text; INDEX.md counts them by their offsets (4,849)",
    ),
    Original("linnaeus/original/Linnaeus_Train.PubTator.gz", "pubtator", 80, 2321, reason=OWN_DEV),
    Original("linnaeus/original/Linnaeus_Test.PubTator", "pubtator", 20, 576),
    Original(
        "nlmgene/original/NLMgene_Train.PubTator.gz",
        "pubtator",
        450,
        13787,
        skipped=10,
        reason=f"{OWN_DEV}; 10 mentions of one article are shifted, which INDEX.md repaired (13,797)",
    ),
    Original("nlmgene/original/NLMgene_Test.PubTator", "pubtator", 100, 3053),
    Original("nlmchem/original/NLMchem_Test.PubTator.gz", "pubtator", 3428, 12411),
    Original("species800/original/SPECIES_Train.PubTator.gz", "pubtator", 639, 3053, reason=OWN_DEV),
    Original("species800/original/SPECIES_Test.PubTator", "pubtator", 160, 739),
    Original(
        "tmvar3/original/tmVar3_Train.PubTator.gz",
        "pubtator",
        342,
        7936,
        skipped=21,
        reason=f"{OWN_DEV}; 21 mentions are shifted, which INDEX.md repaired (7,957)",
    ),
    Original("tmvar3/original/tmVar3_Test.PubTator", "pubtator", 158, 4625),
    Original(
        "bioid/original/BioID_Train_revision.PubTator.gz",
        "pubtator",
        9704,
        4136,
        skipped=1,
        reason=f"{OWN_DEV}; one mention ends inside of a word",
    ),
    Original("bioid/original/BioID_Test_revision.PubTator.gz", "pubtator", 3993, 1453),
]
# W2NER keeps one label where a span has two: 11 mentions fewer in dev and test together, as INDEX.md says
OTHERS = [
    Original("biored/original/Dev.BioC.XML", "bioc-xml", 100, 3533),
    Original("biored/original/Dev.BioC.JSON.gz", "bioc-json", 100, 3533),
    Original("litbank/original/brat", "brat", 20, 2748, reason="dev and test of INDEX.md (1,422 + 1,326)"),
    Original("ncbi-disease/original/brat-standoff", "brat", 100, 960),
    Original("genia-doc/original/dev.jsonlines", "w2ner", 1765, 4714),
    Original("genia-doc/original/test.jsonlines.gz", "w2ner", 1732, 5119),
    Original("genia/original/W2NER-format/dev.json", "w2ner", 1669, 5365, reason="another split: 5,371 less 6"),
    Original("genia/original/W2NER-format/test.json.gz", "w2ner", 1854, 5506, reason="5,511 less 5"),
]
LITBANK_TSV = Original(
    "litbank/original/tsv", "conll", 1670, 2748, reason="20 files; dev and test of INDEX.md (852 + 818)"
)
NOT_SUPPORTED = re.compile(
    r"craft/|kb/|genia-doc/original/splits/|\.ids$|/LICENSE|/README$|/SOURCE$|\.tgz$|GermEval2014\.zip$|tsv-train"
)
ARCHIVES = {"litbank/original/brat-train.tar.gz", "ddi/original/DDICorpus-2013-BRAT.zip"}


def check(path: Path, original: Original) -> None:
    assert detect(path) == original.format
    problems = Problems("skip")
    documents = list(read(path, problems=problems))
    assert len(documents) == original.documents
    assert sum(len(document.entities) for document in documents) == original.entities
    assert len(problems.messages) == original.skipped
    assert all(": entity " in message for message in problems.messages)
    assert len({document.id for document in documents}) == len(documents)


@pytest.mark.parametrize("original", [*COLUMNS, *PUBTATOR, *OTHERS], ids=lambda original: original.path)
def test_an_original_is_read_with_its_counts(original: Original) -> None:
    check(ROOT / original.path, original)


def test_litbank_columns_have_the_entities_of_its_brat_files() -> None:
    sentences = entities = 0
    for file in sorted((ROOT / LITBANK_TSV.path).glob("*.tsv")):
        documents = list(read(file))
        sentences += len(documents)
        entities += sum(len(document.entities) for document in documents)
    assert (sentences, entities) == (LITBANK_TSV.documents, LITBANK_TSV.entities)


def test_litbank_archive(tmp_path: Path) -> None:
    with tarfile.open(ROOT / "litbank/original/brat-train.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    check(tmp_path, Original("", "brat", 80, 11164))


def test_ddi_archive_has_discontinuous_entities(tmp_path: Path) -> None:
    with zipfile.ZipFile(ROOT / "ddi/original/DDICorpus-2013-BRAT.zip") as archive:
        archive.extractall(tmp_path)
    check(tmp_path, Original("", "brat", 643 + 71 + 303, 13344 + 1421 + 3726))
    assert sum(entity.discontinuous for document in read(tmp_path) for entity in document.entities) == 37 + 1 + 11


def test_no_file_is_forgotten() -> None:
    listed = {original.path for original in (*COLUMNS, *PUBTATOR, *OTHERS, LITBANK_TSV)} | ARCHIVES
    for file in sorted(ROOT.glob("**/original/**/*")):
        name = file.relative_to(ROOT).as_posix()
        if file.is_file() and not NOT_SUPPORTED.search(name):
            assert any(name == path or name.startswith(f"{path}/") for path in listed), name


CHARACTERS = {
    "biored/dev.text.jsonl": "biored/original/Dev.BioC.XML",
    "gnormplus/test.text.jsonl.gz": "gnormplus/original/GNormPlus_Test.PubTator",
    "ncbi-disease/test.text.jsonl": "ncbi-disease/original/pubtator/NCBItestset_corpus.txt",
    "bc5cdr/dev.text.jsonl.gz": "bc5cdr/original/pubtator/CDR_DevelopmentSet.PubTator.txt",
}


@pytest.mark.parametrize("ours", CHARACTERS)
def test_our_copy_and_the_original_are_the_same_documents(ours: str) -> None:
    problems = Problems("skip")
    originals = {document.id: document for document in read(ROOT / CHARACTERS[ours], problems=problems)}
    missing = 0
    for document in read(ROOT / ours):
        original = originals[document.id]
        assert document.text.rstrip(" ") == original.text.rstrip(" ")
        assert {entity.spans for entity in original.entities} <= {entity.spans for entity in document.entities}
        missing += len(document.entities) - len(original.entities)
    assert missing == len(problems.messages)


@pytest.mark.parametrize(
    ("name", "rows", "entities"),
    [("craft/dev.jsonl.gz", 2759, 9478), ("genia-disc/dev.text.jsonl", 199, 4936), ("litbank/dev.jsonl", 852, 1422)],
)
def test_our_own_format(name: str, rows: int, entities: int) -> None:
    documents = list(read(ROOT / name))
    assert (len(documents), sum(len(document.entities) for document in documents)) == (rows, entities)
