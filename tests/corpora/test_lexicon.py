"""Lookup, policies, the compact file and coverage, on concepts written out by hand."""

import random
import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from wingspan.corpora.lexicon import Lexicon, coverage, in_order, load, require_overlap, term_key
from wingspan.corpora.lexicon.concepts import Concept
from wingspan.files import CorpusError
from wingspan.text import Document, Entity

CONCEPTS = [
    Concept("D1", ("Breast Neoplasms", "Breast Cancer", "Cancer, Breast"), ("Disease",)),
    Concept("D2", ("Cold", "Common Cold", "Coryza"), ("Disease",)),
    Concept("C1", ("Cold Temperature", "cold", "Chill"), ("Phenomenon",)),
    Concept("D3", ("Nausea",), ("Disease",)),
    Concept("X1", ("beta-blocker", "Adrenergic Blocker")),
    Concept("D1", ("breast  tumor", "BREAST CANCER"), ("Disease", "Neoplasm")),
]


@pytest.fixture
def lexicon() -> Lexicon:
    return Lexicon.of(CONCEPTS)


def test_synonyms_are_the_other_names_of_the_concept(lexicon):
    assert lexicon.synonyms("breast CANCER") == ("Breast Neoplasms", "Cancer, Breast", "breast tumor")
    assert lexicon.synonyms("breast\n cancer") == lexicon.synonyms("Breast Cancer")
    assert lexicon.synonyms("Nausea") == ()
    assert lexicon.synonyms("unheard of") == ()
    assert lexicon.synonyms("") == ()


def test_concepts_of_one_id_are_joined(lexicon):
    assert len(lexicon) == 5
    assert lexicon.num_names == 4 + 3 + 3 + 1 + 2
    (found,) = lexicon.lookup("breast tumor")
    assert found == Concept(
        "D1", ("Breast Neoplasms", "Breast Cancer", "Cancer, Breast", "breast tumor"), ("Disease", "Neoplasm")
    )
    assert lexicon.types == ("Disease", "Neoplasm", "Phenomenon")
    assert [concept.id for concept in lexicon.concepts()] == ["D1", "D2", "C1", "D3", "X1"]


def test_an_ambiguous_term_has_all_the_first_or_the_agreeing_concepts(lexicon):
    assert [concept.id for concept in lexicon.lookup("cold")] == ["D2", "C1"]
    assert lexicon.synonyms("cold") == ("Common Cold", "Coryza", "Cold Temperature", "Chill")
    assert replace(lexicon, ambiguous="first").synonyms("cold") == ("Common Cold", "Coryza")
    by_type = replace(lexicon, ambiguous="type")
    assert by_type.synonyms("cold", "phenomenon") == ("Cold Temperature", "Chill")
    assert by_type.synonyms("cold", "Chemical") == ()
    assert by_type.synonyms("cold") == lexicon.synonyms("cold")
    assert by_type.synonyms("beta-blocker", "Chemical") == ("Adrenergic Blocker",)  # no type, no objection
    mapped = replace(by_type, label_types={"Weather": ("Phenomenon", "Process")})
    assert mapped.synonyms("cold", "Weather") == ("Cold Temperature", "Chill")
    with pytest.raises(ValueError, match="use all, first or type"):
        replace(lexicon, ambiguous="none")


@pytest.mark.parametrize(
    ("folds", "one", "other", "same"),
    [
        ((), "Beta-Blocker", "beta-blocker", True),
        ((), "beta blocker", "beta-blocker", False),
        (("hyphen",), "beta blocker", "beta\u2010blocker", True),
        (("hyphen",), "betablocker", "beta-blocker", False),
        (("spacing",), "Parkinson ' s disease", "Parkinson's disease", True),
        (("spacing",), "heart disease", "heartdisease", False),
        (("plural",), "tumors", "tumor", True),
        (("plural",), "metastases", "metastasis", True),
        (("plural",), "coronary diseases", "coronary disease", True),
        (("plural",), "deficiencies", "deficiency", True),
        (("plural",), "abscesses", "abscess", True),
        (("plural",), "viruses", "virus", True),
        (("plural",), "AIDS", "aid", False),
        (("plural",), "arthritis", "arthrit", False),
        (("hyphen", "plural"), "beta-blockers", "beta blocker", True),
    ],
)
def test_folding(folds, one, other, same):
    assert (term_key(one, in_order(folds)) == term_key(other, in_order(folds))) is same
    made = Lexicon.of([Concept("1", (other, "synonym"))], folds)
    assert ("synonym" in made.synonyms(one)) is same


def test_folding_finds_terms_and_keeps_names_apart():
    concepts = [Concept("1", ("tumor", "tumors", "neoplasm")), Concept("2", ("Crohn's disease", "Crohn 's Disease"))]
    assert Lexicon.of(concepts).synonyms("neoplasms") == ()
    made = Lexicon.of(concepts, ["plural", "spacing"])
    assert made.synonyms("Tumors") == ("tumor", "neoplasm")
    assert made.synonyms("neoplasms") == ("tumor", "tumors", "neoplasm")
    assert made.synonyms("Crohn ' s disease") == ()  # the same name, split into words
    assert [len(concept.names) for concept in made.concepts()] == [3, 1]
    with pytest.raises(ValueError, match="unknown fold case; use hyphen, spacing, plural"):
        Lexicon.of([], ["case"])


def test_lookup_is_that_of_a_dictionary():
    draw = random.Random(1)
    words = [f"{first}{second}" for first in "abcé" for second in "wxyz"]
    concepts = [Concept(str(n), tuple(draw.sample(words, draw.randint(1, 4)))) for n in range(40)]
    lexicon = Lexicon.of(concepts)
    for word in [*words, "none"]:
        assert [found.id for found in lexicon.lookup(word)] == [one.id for one in concepts if word in one.names]


def test_the_compact_file_gives_the_same_lexicon(tmp_path, lexicon):
    made = Lexicon.of(CONCEPTS, ["plural", "hyphen"])
    made.save(tmp_path / "a.sqlite")
    made.save(tmp_path / "b.sqlite")
    assert (tmp_path / "a.sqlite").read_bytes() == (tmp_path / "b.sqlite").read_bytes()
    found = load(tmp_path / "a.sqlite", ambiguous="first")
    assert list(found.concepts()) == list(made.concepts())
    assert found.folds == ("hyphen", "plural")
    assert found.synonyms("Beta Blockers") == ("beta-blocker", "Adrenergic Blocker")
    assert found.synonyms("cold") == ("Common Cold", "Coryza")
    assert {path.name for path in tmp_path.iterdir()} == {"a.sqlite", "b.sqlite"}
    found.save(tmp_path / "b.sqlite")
    assert (tmp_path / "a.sqlite").read_bytes() == (tmp_path / "b.sqlite").read_bytes()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        found.database.execute("DELETE FROM concept")


def test_an_empty_lexicon_knows_nothing(tmp_path):
    Lexicon.of([]).save(tmp_path / "a.sqlite")
    assert load(tmp_path / "a.sqlite").synonyms("a") == ()


def test_a_missing_old_foreign_or_damaged_file_is_refused_in_one_sentence(tmp_path, lexicon):
    missing = tmp_path / "none.sqlite"
    with pytest.raises(CorpusError, match=rf"{missing}: there is no such lexicon; .*wingspan lexicon SOURCE"):
        load(missing)
    old = tmp_path / "old.npz"
    old.touch()
    with pytest.raises(CorpusError, match="old.npz: lexicons are .sqlite files now; build it again .*old.sqlite"):
        load(old)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE summary (json TEXT)")
    database.close()
    refusal = "other.sqlite: this version cannot read it as a lexicon .*; build it again with wingspan lexicon"
    with pytest.raises(CorpusError, match=refusal):
        load(other)
    lexicon.save(tmp_path / "whole.sqlite")
    whole = (tmp_path / "whole.sqlite").read_bytes()
    for content in (b"", b"no database at all", whole[:5000], whole[:4096] + bytes(len(whole) - 4096)):
        other.write_bytes(content)
        with pytest.raises(CorpusError, match=refusal):
            load(other).lookup("cold")
    with pytest.raises(CorpusError, match="name it a.sqlite"):
        lexicon.save(tmp_path / "a.tsv")


def test_damage_that_shows_only_in_a_look_up_is_one_sentence_too(tmp_path):
    Lexicon.of([Concept(str(n), (f"name {n}", f"other {n}")) for n in range(2000)]).save(tmp_path / "a.sqlite")
    content = bytearray((tmp_path / "a.sqlite").read_bytes())
    content[5 * 4096 :] = b"\xff" * (len(content) - 5 * 4096)
    (tmp_path / "a.sqlite").write_bytes(content)
    lexicon = load(tmp_path / "a.sqlite")
    with pytest.raises(CorpusError, match="a.sqlite: this version cannot read it as a lexicon"):
        lexicon.synonyms("name 77")


def test_a_name_of_a_file_may_look_like_an_address(tmp_path, lexicon):
    path = tmp_path / "a?mode=rwc#%20.sqlite"
    lexicon.save(path)
    assert len(load(path)) == len(lexicon)


def corpus(*mentions: tuple[str, str]) -> list[Document]:
    return [Document(str(n), text, (Entity.at(label, 0, len(text)),)) for n, (text, label) in enumerate(mentions)]


def test_coverage_counts_entities_with_synonyms(lexicon):
    found = coverage(
        lexicon,
        [*corpus(("Breast cancer", "Disease"), ("nausea", "Disease"), ("cold", "Weather"), ("rain", "Weather"))] * 2,
    )
    assert found.to_dict() == {
        "documents": 8,
        "entities": 8,
        "known": 6,
        "ambiguous": 2,
        "with_synonyms": 4,
        "synonym_coverage": 50.0,
        "labels": {
            "Disease": {"entities": 4, "known": 4, "ambiguous": 0, "with_synonyms": 2, "synonym_coverage": 50.0},
            "Weather": {"entities": 4, "known": 2, "ambiguous": 2, "with_synonyms": 2, "synonym_coverage": 50.0},
        },
    }
    require_overlap(found, lexicon, "train.jsonl")


def test_an_empty_intersection_is_said_with_counts(lexicon):
    def refusal(lexicon: Lexicon, documents: list[Document]) -> str:
        with pytest.raises(CorpusError) as refused:
            require_overlap(coverage(lexicon, documents), lexicon, "train.jsonl")
        return str(refused.value)

    assert refusal(lexicon, corpus(("rain", "Weather"), ("nausea", "Disease"))) == (
        "train.jsonl: of 2 entities 1 are among the 13 names of the 5 concepts, and none has a synonym; "
        "check that the lexicon is about the same things, or fold terms with --fold"
    )
    by_type = refusal(replace(lexicon, ambiguous="type"), corpus(("cold", "Weather")))
    assert re.search(r"of 1 entities 0 are .*labels are Weather, types of the lexicon Disease, Neoplasm, Phen", by_type)
    assert "its 1 documents have no entities" in refusal(lexicon, [Document("1", "text")])


def test_a_source_can_be_loaded_as_it_is(tmp_path: Path):
    (tmp_path / "terms.tsv").write_text("heart attack\tmyocardial infarction\tMI\n")
    assert load(tmp_path / "terms.tsv").synonyms("mi") == ("heart attack", "myocardial infarction")
