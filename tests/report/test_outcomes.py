"""SNG's analyses on chances written by hand."""

import json

import numpy as np
import pytest
from collected_rows import rows_of

from wingspan.report.geometry import discrepancies, losses_by_epoch, span_map, true_chances

CHANCE = [[0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.25, 0.25, 0.5], [0.7, 0.2, 0.1], [0.0, 0.0, 1.0]]
ROWS = rows_of(feature=np.zeros((5, 2)), gold=[1, 1, 2, 0, 1], chance=CHANCE)


def test_true_chances_by_type():
    drug, gene = true_chances(ROWS)
    assert drug.label == "Drug"
    assert drug.right.tolist() == [0.8]
    assert sorted(drug.wrong.tolist()) == [0.0, 0.2]
    assert (drug.right_median, drug.wrong_median) == (pytest.approx(0.8), pytest.approx(0.1))
    assert gene.right.tolist() == [0.5]
    assert gene.wrong_median is None


def test_discrepancies_by_hand():
    right, wrong, gene, off = discrepancies(ROWS)  # the fourth row is no entity
    assert (right.tag, right.fold, right.text, right.label, right.document) == ("Stable", 0.0, "span 0", "Drug", "d0")
    assert right.desire == pytest.approx(np.var([0.1, 0.8, 0.1]) / 0.8)
    assert (wrong.tag, wrong.fold) == ("Up", pytest.approx(np.log2(3)))
    assert wrong.desire == pytest.approx(np.var([0.6, 0.2, 0.2]) / 0.2)
    assert (gene.tag, gene.label) == ("Stable", "Gene")
    assert off.tag == "Up"
    assert np.isfinite(off.fold)
    assert np.isfinite(off.desire)


def test_what_another_reader_said_can_be_down():
    said = np.array([2, 0, 2, 0, 2])
    down, up, stable, _ = discrepancies(ROWS, said)
    assert (down.tag, down.fold) == ("Down", pytest.approx(-3.0))  # 0.1 against 0.8
    assert (up.tag, stable.tag) == ("Up", "Stable")


def test_equal_chances_are_stable_though_wrong():
    (tie,) = discrepancies(rows_of([[0.0]], [2], chance=[[0.2, 0.4, 0.4]]))
    assert (tie.tag, tie.fold) == ("Stable", 0.0)


def test_a_map_of_chances_is_their_pca():
    """Chances of three classes lie on a plane: two axes hold all of it."""
    points = span_map(ROWS, "chance")
    assert points.kind == "chance"
    assert points.mark.tolist() == ["right", "wrong", "right", "wrong"]
    assert sum(points.shares) == pytest.approx(1.0)
    expected = np.array(CHANCE)[[0, 1, 2, 4]]
    apart = np.linalg.norm(expected[:, None] - expected, axis=-1)
    found = np.stack([points.x, points.y], 1)
    assert np.linalg.norm(found[:, None] - found, axis=-1) == pytest.approx(apart)


def test_losses_by_epoch(tmp_path):
    events = [
        {"event": "start"},
        {"event": "progress", "phase": 0, "epoch": 0, "losses": {"loss": 9.0}},
        {"event": "epoch", "phase": 0, "epoch": 1, "losses": {"loss": 3.0}, "dev_f1": None},
        {"event": "epoch", "phase": 1, "epoch": 1, "losses": {"loss": 2.0}, "dev_f1": 40.0},
        {"event": "resumed"},
        {"event": "epoch", "phase": 1, "epoch": 1, "losses": {"loss": 2.5}, "dev_f1": 41.0},
        {"event": "epoch", "phase": 1, "epoch": 2, "losses": {"loss": 1.0}, "dev_f1": 50.0},
    ]
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    found = losses_by_epoch(path)
    assert [(row.epoch, row.losses["loss"], row.dev) for row in found] == [
        (1, 3.0, None),
        (2, 2.5, 41.0),
        (3, 1.0, 50.0),
    ]
