"""Sources of concepts. The files are invented; their shape is that of the documents named here.

OBO: https://owlcollab.github.io/oboformat/doc/GO.format.obo-1_4.html
MRCONSO.RRF, MRSTY.RRF: https://www.ncbi.nlm.nih.gov/books/NBK9685/
"""

import gzip
import os
from pathlib import Path

import pytest

from wingspan.corpora.lexicon.concepts import Concept, read_concepts
from wingspan.files import CorpusError, Problems

OBO = r"""format-version: 1.4
default-namespace: invented
! a comment

[Term]
id: INV:1 ! first
name: lung \{scar\}
alt_id: INV:9
def: "A scar: of the \"lung\"." [PMID:1]
synonym: "scar of lung" EXACT [INV:a, INV:b]
synonym: "\"old\" scar\, lung" RELATED abbreviation []
synonym: "scar" BROAD []
synonym: "left lung scar" NARROW [] {source="x"}
synonym: "cicatrix" []
is_a: INV:2 ! disease

[Typedef]
id: part_of
name: part of
synonym: "belongs to" EXACT []

[Term]
id: INV:2
name: disease {comment="first"} ! a disease
namespace: other

[Term]
id: INV:3
name: gone
is_obsolete: true
"""


def write(tmp_path: Path, name: str, content: str) -> Path:
    (tmp_path / name).write_text(content, encoding="utf-8")
    return tmp_path / name


def read(path: Path, problems: Problems | None = None, **options: str) -> list[Concept]:
    return list(read_concepts(path, problems or Problems(), **options))


def test_obo(tmp_path):
    problems = Problems()
    assert read(write(tmp_path, "a.obo", OBO), problems) == [
        Concept("INV:1", ("lung {scar}", "scar of lung", '"old" scar, lung', "cicatrix"), ("invented",)),
        Concept("INV:2", ("disease",), ("other",)),
    ]
    assert problems.notes == [f"{tmp_path / 'a.obo'}: 1 obsolete terms are left out"]


@pytest.mark.parametrize(
    ("line", "number", "reason"),
    [
        ('synonym: "never closed EXACT []', 10, "is no synonym; write synonym"),
        ("synonym: bare EXACT []", 10, "is no synonym"),
        ('synonym: "" EXACT []', 10, "is no synonym"),
        ("what is this", 10, "'what is this' is no line of an OBO file; write tag: value"),
    ],
)
def test_a_malformed_line_of_obo(tmp_path, line, number, reason):
    path = write(tmp_path, "a.obo", OBO.replace('synonym: "scar of lung" EXACT [INV:a, INV:b]', line))
    with pytest.raises(CorpusError, match=rf"a\.obo:{number}: .*{reason}"):
        read(path)
    problems = Problems("skip")
    assert [concept.id for concept in read(path, problems)] == ["INV:1", "INV:2"]
    assert len(problems.messages) == 1


def test_a_term_of_obo_without_id_or_name(tmp_path):
    path = write(tmp_path, "a.obo", OBO.replace("name: lung", "comment: lung").replace("id: INV:2", ""))
    problems = Problems("skip")
    with pytest.raises(CorpusError, match="there is no concept in it \\(2 lines were left out\\)"):
        read(path, problems)
    assert [message.split(": ")[1] for message in problems.messages] == [
        "a term without a name; give id",
        "a term without an id; give id",
    ]
    assert [message.split(":")[1] for message in problems.messages] == ["5", "22"]


def name(concept: str, string: str, language: str = "ENG", suppressed: str = "N", preferred: bool = False) -> str:
    """A row of MRCONSO.RRF: CUI LAT TS LUI STT SUI ISPREF AUI SAUI SCUI SDUI SAB TTY CODE STR SRL SUPPRESS CVF."""
    status, kind, best = ("P", "PF", "Y") if preferred else ("S", "VO", "N")
    return f"{concept}|{language}|{status}|L1|{kind}|S1|{best}|A1||M1|D1|INV|MH|D1|{string}|0|{suppressed}|256|"


NAMES = [
    name("C0000001", "scar of lung"),
    name("C0000001", "Lung scar", preferred=True),
    name("C0000001", "LS old", suppressed="O"),
    name("C0000001", "Lungennarbe", language="GER", preferred=True),
    name("C0000002", "Vitamin Q", preferred=True),
]
TYPES = "C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1|256|\nC0000001|T190|A1.2.2|Anatomical Abnormality|AT2||\n"


def test_umls(tmp_path):
    path = write(tmp_path, "MRCONSO.RRF", "\n".join(NAMES) + "\n")
    problems = Problems()
    assert read(path, problems) == [
        Concept("C0000001", ("Lung scar", "scar of lung")),
        Concept("C0000002", ("Vitamin Q",)),
    ]
    assert problems.notes == [
        f"{path}: there is no MRSTY.RRF beside it; concepts have no semantic types",
        f"{path}: 1 names in other languages than ENG and 1 suppressed ones are left out",
    ]
    write(tmp_path, "MRSTY.RRF", TYPES)
    first, second = read(path)
    assert first.types == ("Disease or Syndrome", "Anatomical Abnormality")
    assert second.types == ()
    assert read(path, language="GER") == [Concept("C0000001", ("Lungennarbe",), first.types)]
    with pytest.raises(CorpusError, match="none of its 5 names is in language 'FRE'; choose one of ENG, GER with"):
        read(path, language="FRE")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("C0000003|ENG|P|", "3 columns that end in \\| where 18 are needed"),
        (NAMES[0] + "|", "19 columns"),
        (NAMES[0].removesuffix("|"), "17 columns"),
        (name("", "no concept"), "a row without CUI or STR"),
        (name("C0000003", " "), "a row without CUI or STR"),
    ],
)
def test_a_malformed_row_of_umls(tmp_path, row, reason):
    path = write(tmp_path, "MRCONSO.RRF", "\n".join([*NAMES[:2], row, *NAMES[2:]]) + "\n")
    with pytest.raises(CorpusError, match=rf"MRCONSO\.RRF:3: {reason}"):
        read(path)
    problems = Problems("skip")
    assert [concept.id for concept in read(path, problems)] == ["C0000001", "C0000002"]
    assert len(problems.messages) == 1


def test_tables_with_named_columns(tmp_path):
    content = "concept_id\ttype\tname\tsynonyms\nI:1\tDisease|Sign\tscar\tcicatrix| old mark |\n\nI:2\t\tdust\t\n"
    (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(content.encode()))
    assert read(tmp_path / "a.tsv.gz") == [
        Concept("I:1", ("scar", "cicatrix", "old mark"), ("Disease", "Sign")),
        Concept("I:2", ("dust",)),
    ]
    bad = write(tmp_path, "b.tsv", content + "I:3\tDisease\n\tDisease\tname\t\n")
    with pytest.raises(CorpusError, match=r"b\.tsv:5: 2 columns where the first line names 4; divide by tabs"):
        read(bad)
    problems = Problems("skip")
    assert len(read(bad, problems)) == 2
    assert [message.split(": ", 1)[1] for message in problems.messages] == [
        "2 columns where the first line names 4; divide by tabs",
        "a concept without an id or a name; give both",
    ]
    with pytest.raises(CorpusError, match=r"c\.tsv:1: there is no column 'name' among concept_id, synonyms"):
        read(write(tmp_path, "c.tsv", "concept_id\tsynonyms\n"))


def test_tables_of_terms(tmp_path):
    path = write(tmp_path, "a.tsv", "scar\tcicatrix\told mark\ndust\tpowder\n")
    assert read(path) == [Concept("scar", ("scar", "cicatrix", "old mark")), Concept("dust", ("dust", "powder"))]
    with pytest.raises(CorpusError, match=r"b\.tsv:1: one column only; give a term and its synonyms"):
        read(write(tmp_path, "b.tsv", "scar,cicatrix\n"))


def test_files_that_are_no_source(tmp_path):
    with pytest.raises(CorpusError, match="none.obo: there is no such file"):
        read(tmp_path / "none.obo")
    with pytest.raises(CorpusError, match=r"a\.owl: a source of concepts ends in \.tsv, \.txt, \.obo, \.rrf"):
        read(write(tmp_path, "a.owl", "x"))
    with pytest.raises(CorpusError, match="empty.obo: there is no concept in it; check"):
        read(write(tmp_path, "empty.obo", "format-version: 1.4\n"))


KB = Path(os.environ.get("WINGSPAN_DATA", "/nowhere")) / "kb"
needs_data = pytest.mark.skipif(not KB.is_dir(), reason="WINGSPAN_DATA names no folder with kb/")


@needs_data
@pytest.mark.parametrize(("file", "concepts", "names"), [("doid", 11_454, 30_039), ("hp", 17_874, 38_538)])
def test_real_tables(file, concepts, names):
    found = read(KB / f"{file}.tsv.gz")
    assert (len(found), sum(len(concept.names) for concept in found)) == (concepts, names)


@needs_data
@pytest.mark.parametrize(
    ("file", "terms", "obsolete", "namespace"),
    [("doid-2016-03-04", 9_243, 2_369, "disease_ontology"), ("hp", 19_484, 450, "human_phenotype")],
)
def test_real_ontologies(file, terms, obsolete, namespace):
    path = KB / "original" / f"{file}.obo.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        assert sum(line.rstrip() == "[Term]" for line in lines) == terms
    problems = Problems()
    found = read(path, problems)
    assert len(found) == terms - obsolete
    assert {concept.types for concept in found} == {(namespace,)}
    assert problems.notes == [f"{path}: {obsolete:,} obsolete terms are left out"]
