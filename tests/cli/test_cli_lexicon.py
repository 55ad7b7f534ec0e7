"""`wingspan lexicon` as users run it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shells import Shell, lines

from wingspan.corpora.lexicon import load

TABLE = "concept_id\ttype\tname\tsynonyms\nD:1\tDisease\tlung scar\tscar of lung\nG:1\tGene\tABC1\tabc-1|ABC one\n"
OBO = '[Term]\nid: O:1\nname: Lung scar\nnamespace: illness\nsynonym: "cicatrix of lung" EXACT []\n'
RECORD = {
    "id": "1",
    "text": "Lung scar with lung scars and ABC1.",
    "entities": [
        {"label": "Disease", "start": 0, "end": 9, "concept_id": "X1"},
        {"label": "Disease", "start": 15, "end": 25, "concept_id": "X1"},
        {"label": "Gene", "start": 30, "end": 34},
    ],
}


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "a.tsv").write_text(TABLE)
    (tmp_path / "b.obo").write_text(OBO)
    lines(tmp_path / "corpus.jsonl", RECORD)
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capsys, tmp_path)


def test_sources_are_merged_saved_and_covered(run, tmp_path):
    out, _ = run(
        "lexicon", "a.tsv", "b.obo", "--output", "c.sqlite", "--coverage", "corpus.jsonl", "--term", "LUNG SCAR"
    )
    assert out.splitlines()[:-1] == [
        "Lexicon",
        "source   concepts  names",
        "a.tsv           2      5",
        "b.obo           1      2",
        "lexicon         3      7",
        "types: Disease, Gene, illness",
        "folded: case",
        "Coverage",
        "corpus        documents  entities  in lexicon  ambiguous  with synonyms  Syn_cov",
        "corpus.jsonl          1         3           2          1              2   66.67%",
        "  Disease                       2           1          1              1   50.00%",
        "  Gene                          1           1          0              1  100.00%",
        "LUNG SCAR: 2 concepts, 2 synonyms",
        "  D:1 (Disease): lung scar; scar of lung",
        "  O:1 (illness): Lung scar; cicatrix of lung",
    ]
    assert out.splitlines()[-1].startswith("c.sqlite: 0.02 MiB")
    assert load("c.sqlite").synonyms("lung scar") == ("scar of lung", "cicatrix of lung")


def test_a_compact_lexicon_is_inspected_folded_and_restricted(run):
    run("lexicon", "a.tsv", "b.obo", "--fold", "plural", "--output", "c.sqlite")
    out, _ = run("lexicon", "c.sqlite", "--coverage", "corpus.jsonl", "--type", "disease", "--json", "-")
    figures = json.loads(out)
    assert (figures["concepts"], figures["names"], figures["types"], figures["folds"]) == (
        1,
        2,
        ["Disease"],
        ["plural"],
    )
    assert figures["sources"] == [{"source": "c.sqlite", "concepts": 3, "names": 7}]
    (covered,) = figures["coverage"]
    assert (covered["corpus"], covered["labels"]["Disease"]["with_synonyms"]) == ("corpus.jsonl", 2)
    lines(Path("other.jsonl"), {**RECORD, "entities": RECORD["entities"][2:]})
    run("lexicon", "c.sqlite", "--only-in", "other.jsonl", "--output", "small.sqlite")
    assert [concept.id for concept in load("small.sqlite").concepts()] == ["G:1"]


def test_a_corpus_is_a_source(run):
    out, _ = run("lexicon", "--from-corpus", "corpus.jsonl", "--term", "lung scar")
    assert "corpus.jsonl, concept ids" in out
    assert "  X1 (Disease): Lung scar; lung scars" in out


def test_types_decide_about_ambiguous_terms(run):
    arguments = ["lexicon", "a.tsv", "b.obo", "--ambiguous", "type", "--coverage", "corpus.jsonl", "--json", "-"]
    (covered,) = json.loads(run(*arguments)[0])["coverage"]
    assert covered["labels"]["Disease"]["ambiguous"] == 0
    (covered,) = json.loads(run(*arguments, "--label-types", "Disease=illness,disease")[0])["coverage"]
    assert covered["labels"]["Disease"]["ambiguous"] == 1


def test_what_does_not_fit_is_said_or_counted(run):
    Path("bad.obo").write_text(OBO + "nonsense\n" * 30)
    assert "bad.obo:6: 'nonsense' is no line of an OBO file; write tag: value" in run.refuses("lexicon", "bad.obo")
    out, _ = run("lexicon", "bad.obo", "--on-error", "skip", "--json", "figures.json")
    assert "left out: 30 malformed lines or records" in out
    assert "... and 10 more; --json FILE has all of them" in out
    assert len(json.loads(Path("figures.json").read_text())["problems"]) == 30


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "there is nothing to make a lexicon of; name a SOURCE"),
        (["none.sqlite"], "none.sqlite: there is no such lexicon; check the path"),
        (["none.tsv"], "none.tsv: there is no such file; check the path"),
        (["a.tsv", "--type", "Species"], "none of 2 concepts of type Species is left"),
        (["b.obo", "--only-in", "genes.jsonl"], "none of 1 different entities of genes.jsonl is among the 2 names"),
        (["b.obo", "--coverage", "genes.jsonl"], "genes.jsonl: of 1 entities 0 are among the 2 names of"),
        (["a.tsv", "--output", "c.tsv"], "c.tsv: a lexicon is saved as a .sqlite file"),
        (
            ["a.tsv", "--label-types", "Gene"],
            "--label-types Gene: write it as key=value, for example --label-types Disease=illness",
        ),
    ],
)
def test_refusals(run, arguments, reason):
    lines(Path("genes.jsonl"), {**RECORD, "entities": RECORD["entities"][2:]})
    _, err = run("lexicon", *arguments, code=1)
    assert reason in err
    assert err.count("\n") == 1


def test_the_command_needs_no_torch():
    code = "import sys, wingspan.cli.lexicon; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA is not set")
@pytest.mark.slow
def test_coverage_of_a_real_corpus(run):
    root = Path(os.environ["WINGSPAN_DATA"])
    sources = [root / "kb" / f"{name}.tsv.gz" for name in ("doid", "mondo")]
    out, _ = run("lexicon", *sources, "--coverage", root / "ncbi-disease" / "dev.text.jsonl", "--json", "-")
    figures = json.loads(out)
    assert (figures["concepts"], figures["coverage"][0]["documents"]) == (11_454 + 23_964, 100)
    assert figures["coverage"][0]["entities"] == 787
    assert 50 < figures["coverage"][0]["synonym_coverage"] < 74.46  # of UMLS, table 1 of the paper
