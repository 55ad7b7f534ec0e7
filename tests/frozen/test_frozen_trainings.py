"""Every recipe learns and finds what it did when it was frozen."""

import json

import pytest

import frozen_cases as cases

FROZEN = {
    name: frozen
    for path in sorted(cases.TRAININGS.glob("*.json"))
    for name, frozen in json.loads(path.read_text(encoding="utf-8")).items()
}
QUICK = {  # one or more of every system; all of them take a minute
    *("baseline", "baseline/proposals", "baseline on vectors", "baseline on pieces", "bundling/bl-span"),
    *("bundling/bl-span-crf", "bundling/seq-crf", "bundling/paper on bert", "deep_span", "deep_span/proposals"),
    *("compress_generate", "compress_generate/supvib", "conditional", "conditional on bert", "typed_spans"),
    *("typed_spans/recognize-sampled", "discontinuous", "discontinuous/bundled"),
}


def test_every_training_is_frozen():
    assert set(FROZEN) == set(cases.CASES)
    assert set(cases.CASES) >= QUICK


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in cases.CASES]
)
def test_losses_and_findings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(cases.DATA)
    case, frozen = cases.CASES[name], FROZEN[name]
    model = cases.train(case, tmp_path / "model")
    assert cases.losses(tmp_path / "model") == [pytest.approx(epoch, rel=1e-4) for epoch in frozen["losses"]]
    cases.same_entities(cases.predict(model, case, frozen["threshold"]), frozen, 1e-3)
