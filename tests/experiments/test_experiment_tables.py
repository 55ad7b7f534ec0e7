"""Tables against values computed by hand."""

from itertools import product
from pathlib import Path

import pytest

from wingspan.evaluation.scores import Counts
from wingspan.experiments.plan import ExperimentPlan, PlannedCorpus, System
from wingspan.experiments.results import (
    curves,
    make_table,
    p_value,
    p_values,
    provenance,
    read_published,
    write_curves,
)

PLAN = ExperimentPlan(
    "Trial",
    Path("out"),
    (System("baseline", "plain"), System("bundling", "b_1 & <both>")),
    (PlannedCorpus("one", (Path("a"),)), PlannedCorpus("two|2", (Path("b"),))),
    seeds=(1, 2, 3),
    evaluate=("test",),
)


def line(f1: float, corpus: str = "one", documents: int = 30, **labels: float) -> dict:
    return {
        "encoder": "hashed",
        "device": "cpu",
        "commit": "abc",
        "corpus": {"name": corpus, "fingerprints": {"train": f"sha256:{'0123456789' * 6}abcd-1200-34"}},
        "test": {
            "micro": {"f1": f1, "precision": f1 + 1},
            "document_macro": {"documents": documents},
            "labels": {label: {"f1": value} for label, value in labels.items()},
        },
    }


RESULTS = {
    ("plain", "one", 1.0): [line(70.0), line(71.0), line(72.0)],
    ("b_1 & <both>", "one", 1.0): [line(73.0), line(74.5), line(76.0)],
    ("plain", "two|2", 1.0): [line(50.0, "two|2"), line(50.0, "two|2")],
}
SURE = ("b_1 & <both>", "one", 1.0, "test")


def make_tables(plan, *arguments):
    parts = product(plan.evaluate, plan.figures)
    return [make_table(plan, arguments[0], part, figure, *arguments[1:]) for part, figure in parts]


def test_mean_deviation_best_and_what_is_missing():
    (table,) = make_tables(PLAN, RESULTS, {SURE: 0.02})
    assert table.title == "Trial: test micro F1"
    cells = {(name, column): cell for name, row in table.rows for column, cell in zip(table.columns, row, strict=True)}
    assert cells["plain", "one"].text == "71.00 ± 1.00"
    assert cells["b_1 & <both>", "one"].text == "74.50 ± 1.50"
    assert cells["plain", "two|2"].text == "50.00 ± 0.00 (n=2)"
    assert cells["b_1 & <both>", "two|2"].text == "–"
    assert [key for key, cell in cells.items() if cell.best] == [("b_1 & <both>", "one")]
    assert [key for key, cell in cells.items() if cell.mark] == [("b_1 & <both>", "one")]
    assert "† p < 0.05, ‡ p < 0.01 against plain" in table.notes[1]
    assert "hardly" not in table.notes[1]
    assert "Runs are missing" in table.notes[0]


@pytest.mark.parametrize(("p", "mark"), [(0.0499, "†"), (0.05, ""), (0.0099, "‡"), (0.5, "")])
def test_marks(p, mark):
    (table,) = make_tables(PLAN, RESULTS, {SURE: p})
    assert table.rows[1][1][0].mark == mark


def test_equal_means_have_no_best():
    (table,) = make_tables(PLAN, {(s, "one", 1.0): [line(60.001), line(60.002)] for s in ("plain", "b_1 & <both>")}, {})
    assert not any(cell.best for _, row in table.rows for cell in row)


def test_other_figures_and_labels_a_run_has_not_seen():
    from dataclasses import replace

    plan = replace(PLAN, figures=("micro.precision", "labels.Some.thing.f1"))
    results = {("plain", "one", 1.0): [line(70.0, **{"Some.thing": 30.0}), line(72.0)]}
    precision, label = make_tables(plan, results, {SURE: 0.001})
    assert precision.rows[0][1][0].text == "72.00 ± 1.41 (n=2)"
    assert label.title == "Trial: test Some.thing F1"
    assert label.rows[0][1][0].facts["mean"] == 15.0
    assert not any(note.startswith("†") for note in precision.notes)


def test_markdown_escapes_names():
    (table,) = make_tables(PLAN, RESULTS, {SURE: 0.001}, provenance(PLAN, RESULTS))
    text = table.to_markdown()
    assert "| | one | two\\|2 |" in text
    assert "| b_1 & <both> | **74.50 ± 1.50 ‡** | – |" in text
    assert "one: train 1,200 documents with 34 entities (01234567); two|2:" in text


def test_json_has_every_cell():
    (table,) = make_tables(PLAN, RESULTS, {SURE: 0.001})
    found = table.to_dict()
    assert found["columns"] == ["one", "two|2"]
    cell = found["rows"][1]["cells"][0]
    assert (cell["mean"], cell["values"], cell["best"], cell["p"]) == (74.5, [73.0, 74.5, 76.0], True, 0.001)
    assert found["rows"][1]["cells"][1] == {"missing": 3, "best": False, "p": None}


def test_published_figures_stand_beside_ours_with_their_sources(tmp_path):
    path = tmp_path / "papers.toml"
    path.write_text(
        'source = "Paper A, Table 2"\n[scores.plain]\none = 69.5\n"two|2" = {value = 48, source = "Paper B"}\n'
    )
    (table,) = make_tables(PLAN, RESULTS, {}, (), read_published(path, PLAN))
    assert table.columns == ("one", "one, published", "two|2", "two|2, published")
    assert [cell.text for cell in table.rows[0][1]] == ["71.00 ± 1.00", "69.50", "50.00 ± 0.00 (n=2)", "48.00"]
    assert [cell.mark for cell in table.rows[0][1]] == ["", "a", "", "b"]
    assert [cell.text for cell in table.rows[1][1]] == ["74.50 ± 1.50", "–", "–", "–"]
    assert table.notes[-2:] == ("Published a: Paper A, Table 2", "Published b: Paper B")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[scores.plain]\none = 1", "source is missing"),
        ('source = "x"\n[scores.nobody]\none = 1', "the plan has no recipe 'nobody'"),
        ('source = "x"\n[scores.plain]\nthree = 1', "the plan has no corpus 'three'"),
        ('source = "x"\n[scores.plain]\none = "high"', "value must be a number, not 'high'"),
    ],
)
def test_a_file_of_published_figures_that_does_not_fit(text, said, tmp_path):
    (tmp_path / "papers.toml").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_published(tmp_path / "papers.toml", PLAN)


RIGHT, WRONG = Counts(correct=1), Counts(missed=1, spurious=1)


def test_one_run_each_is_the_exact_randomization_test():
    first = [WRONG] * 6 + [RIGHT] * 14
    second = [RIGHT] * 20
    gap = 100 * 6 / 20
    shifts = [100 * sum(signs) / 20 for signs in product((-1, 1), repeat=6)]
    exact = sum(abs(shift) >= gap for shift in shifts) / len(shifts)  # 2 / 64
    assert p_value([first], [second]) == pytest.approx(exact, abs=0.015)
    assert p_value([first], [first]) == 1.0


def test_several_seeds_are_tested_together_and_corrected_for_the_corpora():
    answers = {
        "plain": [WRONG] * 20 + [RIGHT] * 20,
        "b_1 & <both>": [RIGHT] * 40,
    }
    results = {
        (name, corpus, 1.0): [{"name": name, "number": n} for n in range(2)]
        for name in answers
        for corpus in ("one", "two|2")
    }
    found = p_values(PLAN, results, lambda line, part: answers[line["name"]])
    assert set(found) == {("b_1 & <both>", corpus, 1.0, "test") for corpus in ("one", "two|2")}
    alone = p_value([answers["plain"]] * 2, [answers["b_1 & <both>"]] * 2)
    assert list(found.values()) == [2 * alone, 2 * alone]  # Holm: the smallest of two times two, and no less after it
    assert alone < 0.005


def test_learning_curves_are_means_over_seeds_and_are_drawn(tmp_path):
    from dataclasses import replace

    plan = replace(PLAN, output=tmp_path, fractions=(1.0, 0.25))
    results = {**RESULTS, ("plain", "one", 0.25): [line(40.0), line(50.0)]}
    found = {corpus: series for corpus, _, _, series in curves(plan, results)}
    assert found["one"] == {"plain": ([25.0, 100.0], [45.0, 71.0]), "b_1 & <both>": ([100.0], [74.5])}
    assert found["two|2"] == {"plain": ([100.0], [50.0]), "b_1 & <both>": ([], [])}
    assert write_curves(PLAN, RESULTS) == []  # nothing to see in one fraction
    pytest.importorskip("matplotlib")
    names = [path.name for path in write_curves(plan, results)]
    assert names[:2] == ["curve-one-test-micro.f1.svg", "curve-one-test-micro.f1.png"]
    assert names[2:] == ["curve-two-2-test-micro.f1.svg", "curve-two-2-test-micro.f1.png"]
    assert "<svg" in (tmp_path / names[0]).read_text()
