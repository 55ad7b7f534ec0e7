"""Every table of the report on documents that can be counted by hand."""

import pytest

from wingspan.report import ReportOptions, from_documents, report_of
from wingspan.report.blocks import Examples, Figure, Report, Subject, Table
from wingspan.report.errors import calibration_problem
from wingspan.text import Document, Entity

TEXTS = ("aspirin cures heart pain", "EGFR and aspirin")


def documents(*entities: list[Entity]) -> list[Document]:
    return [Document(f"d{n}", text, tuple(found)) for n, (text, found) in enumerate(zip(TEXTS, entities, strict=True))]


def chemical(start: int, end: int, score: float = 1.0) -> Entity:
    return Entity.at("Chemical", start, end, score)


GOLD = documents([chemical(0, 7), Entity.at("Disease", 14, 24)], [Entity.at("Gene", 0, 4), chemical(9, 16)])
FIRST = documents([chemical(0, 7, 0.9), Entity.at("Disease", 20, 24, 0.6)], [chemical(0, 4, 0.8), chemical(9, 16, 0.7)])
SECOND = documents([chemical(0, 7), Entity.at("Disease", 14, 24)], [Entity.at("Gene", 0, 4), Entity.at("Gene", 5, 8)])
TRAINING = [Document("t", "aspirin", (Entity.at("Gene", 0, 7),))]


@pytest.fixture(scope="module")
def two() -> Report:
    subject = Subject.of(GOLD, {"A": [FIRST], "B": [SECOND]}, TRAINING)
    return report_of("two", subject, from_documents(subject, ReportOptions(samples=50)), {})


@pytest.fixture(scope="module")
def one(tmp_path_factory) -> Report:
    subject = Subject.of(GOLD, {"A": [FIRST[::-1]]})
    figures = tmp_path_factory.mktemp("figures")
    return report_of("one", subject, from_documents(subject, ReportOptions(figures, samples=50)), {})


def table(report: Report, name: str) -> dict[object, tuple]:
    """A table by the first cell of its rows."""
    (found,) = (block for block in report.blocks() if isinstance(block, Table) and block.name == name)
    return {row[0]: tuple(row[1:]) for row in (*found.rows, *found.totals)}


def test_scores_are_those_of_the_documents(two):
    # A finds 2 of 4 with 4 predictions, B 3 of 4 with 4
    assert table(two, "systems")["A"][:3] == (50.0, 50.0, 50.0)
    assert table(two, "systems")["B"][:3] == (75.0, 75.0, 75.0)
    assert table(two, "scores")["Chemical"][:3] == pytest.approx((100 * 2 / 3, 100, 80))
    assert table(two, "scores")["micro"][5:] == (2, 2, 2)
    assert table(two, "scores-2")["Gene"][5:] == (1, 1, 0)
    assert two.labels == ["Chemical", "Disease", "Gene"]


def test_differences_and_moved_errors(two):
    assert table(two, "pairs")["B − A"][0] == 25.0
    # A's wrong Disease, its lost Disease, wrong Chemical and lost Gene are gone; B loses a Chemical and invents a Gene
    assert table(two, "moved")["all"] == (4, 2, 0)
    assert table(two, "moved")["Chemical"] == (1, 1, 0)
    assert table(two, "difference")["Gene"][0] == pytest.approx(200 * 1 / 3)


def test_errors_by_kind_and_the_rates_of_the_papers(two):
    # columns: correct, boundary, type, both, missed, spurious
    assert table(two, "error-kinds") == {"A": (2, 1, 1, 0, 0, 0), "B": (3, 0, 0, 0, 1, 1)}
    # category and span errors, span errors per prediction, boundary and type errors per error (A: 2 + 2, B: 1 + 1)
    assert table(two, "error-rates") == {"A": (1, 1, 25.0, 25.0, 25.0), "B": (0, 1, 25.0, 0.0, 0.0)}
    assert table(two, "error-rate-gaps") == {"B": (-25.0, -25.0)}
    assert table(two, "errors-by-label")["Disease"] == (1, 0, 0, 0, 0)
    assert table(two, "confusion")["Gene"] == (1, 0, 0, 0)  # taken for a Chemical
    assert table(two, "confusion")["Disease"] == (0, 0, 0, 1)
    assert table(two, "label-conflicts")["aspirin"] == ("Chemical", "Gene 1", 2, 0, 2, 0)


def test_buckets_and_their_gaps(two):
    rows = next(block for block in two.blocks() if getattr(block, "name", "") == "bucket-gaps").rows
    # one word: A finds 2 of 3 with 4 predictions, B 2 of 3 with 3; two words: A 0, B all
    gaps = {row[1]: row[2] for row in rows if row[0].startswith("Entity length")}
    assert gaps == pytest.approx({"1": 200 * 2 / 6 - 200 * 2 / 7, "2": 100.0})


def test_examples_say_what_is_wrong_where(two):
    found = {block.name: list(block.items) for block in two.blocks() if isinstance(block, Examples)}
    assert [(item.title, item.labels) for item in found["mistakes"]] == [
        ("d0 · boundary", ("Disease",)),
        ("d1 · type", ("Chemical", "Gene")),
    ]
    assert {item.kinds for item in found["moved-examples"]} == {
        ("fixed", "missed"),
        ("fixed", "spurious"),
        ("broken", "missed"),
        ("broken", "spurious"),
    }
    assert [name for name, _ in found["moved-examples"][0].versions] == ["A", "B"]


def test_calibration_needs_scores(two):
    # scores .9 and .7 are right, .6 and .8 are not: bins of one entity each, distances 10, 30, 60, 80
    assert table(two, "calibration-by-label")["all"][:2] == (4, pytest.approx((10 + 30 + 60 + 80) / 4))
    assert "calibration-by-label-2" not in {getattr(block, "name", "") for block in two.blocks()}


def test_one_system_has_intervals_and_figures(one):
    pytest.importorskip("matplotlib")
    sections = [section.name for section in one.sections]
    assert sections == ["overview", "errors", "buckets", "calibration"]
    low, high = table(one, "scores")["micro"][3:5]
    assert low <= 50 <= high
    names = {block.name for block in one.blocks() if isinstance(block, Figure)}
    assert {"buckets-entity_length-figure", "reliability-figure", "precision-recall-figure"} <= names


def test_documents_meet_by_id_and_an_empty_gold_is_said(one):
    assert table(one, "scores")["micro"][:3] == (50.0, 50.0, 50.0)  # the predictions came in another order
    with pytest.raises(ValueError, match="no documents"):
        Subject.of([], {"A": [[]]})


def test_what_happened_to_predictions_of_other_tools_is_said():
    rows = [Document(f"row{n}", text) for n, text in enumerate(["aspirin cures", "heart pain", "EGFR and aspirin"])]
    subject = Subject.of(GOLD, {"tagger": [rows]})
    assert [document.text for document in subject.predicted("tagger")] == list(TEXTS)
    report = report_of(
        "rows", subject, from_documents(subject, ReportOptions(samples=5, attributes=["entity_length"])), {}
    )
    notes = next(block for block in report.blocks() if getattr(block, "name", "") == "notes")
    assert all(note.startswith("Note: tagger: ") for note in notes.paragraphs)


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ((), "nothing was predicted"),
        ((1.0, 1.0), "the predictions have no scores"),
        ((-0.5, 9.5), "scores go from -0.5 to 9.5; only chances from 0 to 1 can be calibrated"),
        ((0.5, 1.0), ""),
    ],
)
def test_why_scores_cannot_be_looked_at(scores, said):
    found = documents([chemical(n, n + 1, score) for n, score in enumerate(scores)], [])
    assert calibration_problem(found).startswith(said)
    assert bool(calibration_problem(found)) == bool(said)
