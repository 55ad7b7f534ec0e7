"""Models that were saved before modules moved: they load, and find what they found."""

import json

import pytest

import frozen_cases as cases
import wingspan


def test_every_folder_is_there():
    assert {path.name for path in cases.MODELS.iterdir() if path.is_dir()} == set(cases.KEPT)


@pytest.mark.parametrize("kept", cases.KEPT)
def test_a_saved_model_finds_the_same(kept):
    frozen = json.loads((cases.MODELS / f"{kept}.json").read_text(encoding="utf-8"))
    model = wingspan.load(cases.MODELS / kept, device="cpu")
    found = cases.predict(model, cases.CASES[cases.KEPT[kept]], frozen["threshold"])
    cases.same_entities(found, frozen, 1e-4)


@pytest.mark.parametrize("kept", cases.KEPT)
@pytest.mark.slow
def test_it_can_be_saved_again(kept, tmp_path):
    frozen = json.loads((cases.MODELS / f"{kept}.json").read_text(encoding="utf-8"))
    wingspan.load(cases.MODELS / kept, device="cpu").save_pretrained(tmp_path / "again")
    model = wingspan.load(tmp_path / "again", device="cpu")
    found = cases.predict(model, cases.CASES[cases.KEPT[kept]], frozen["threshold"])
    cases.same_entities(found, frozen, 1e-4)
