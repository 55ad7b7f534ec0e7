"""A column of an experiment that is several corpora together."""

import json

import pytest
from plans import plan, plan_file
from rich.console import Console
from several import save_two

from wingspan.experiments.plan import read_plan
from wingspan.experiments.run import check, run_experiment


def test_several_corpora_are_one_column_scored_on_their_target(tmp_path):
    save_two(tmp_path, 'sampling = "uniform"', number=3)
    alone = {"name": "alone", "train": "drugs-train.jsonl", "dev": "drugs-dev.jsonl"}
    changes = {"recipes": ["baseline"], "seeds": [1], "evaluate": ["dev"], "workers": 0}
    made = plan(tmp_path, corpora=[alone, {"name": "both", "corpora": "corpora.toml"}], **changes)
    assert run_experiment(made, Console(quiet=True)).done == 2
    lines = [json.loads(line) for line in (tmp_path / "results" / "results.jsonl").read_text().splitlines()]
    found = {line["corpus"]["name"]: line for line in lines}
    assert (found["alone"]["train_documents"], found["both"]["train_documents"]) == (3, 6)
    assert found["both"]["settings"]["train.sampling"] == "uniform"
    assert found["both"]["corpora"]["drugs"]["dev"]["micro"]["f1"] == found["both"]["dev"]["micro"]["f1"]
    assert set(found["both"]["dev"]["labels"]) <= {"Chemical", "Disease"}
    assert found["alone"]["corpus"]["fingerprints"]["dev"] == found["both"]["corpus"]["fingerprints"]["dev"]
    before = set(check(made))
    text = (tmp_path / "corpora.toml").read_text()
    (tmp_path / "corpora.toml").write_text(text.replace("uniform", "each"))
    assert len(before & set(check(made))) == 1  # other corpora, another run


def test_mistakes_about_several_corpora(tmp_path):
    save_two(tmp_path, number=2)
    both = {"name": "both", "corpora": "corpora.toml"}
    with pytest.raises(ValueError, match="corpus 'both': corpora names all files itself; leave out train"):
        read_plan(plan_file(tmp_path, corpora=[{**both, "dev": "drugs-dev.jsonl"}]))
    with pytest.raises(ValueError, match=r"corpora.toml: the target has no test documents"):
        check(plan(tmp_path, corpora=[both]))
