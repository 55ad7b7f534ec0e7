"""Plans, the identity of a run, the ledger, fractions."""

from pathlib import Path

import pytest
from plans import documents, plan

from wingspan.evaluation.scores import Counts
from wingspan.experiments.plan import PlannedCorpus, fraction_of, identity, read_plan
from wingspan.experiments.run import Ledger, read_parts
from wingspan.text import Document


def test_the_last_setting_wins(tmp_path):
    (tmp_path / "plan.toml").write_text(
        """
        output = "$SOMEWHERE/x"
        recipes = [
            "baseline",
            {recipe = "bundling/seq", name = "t", without = ["head", "spans.width_size"], set = {train.epochs = 9}},
        ]
        [set]
        train.epochs = 1
        train.learning_rate = 1e-3
        head.hidden = [8, 4]
        spans.width_size = 3
        spans.width = 4
        [[corpora]]
        name = "one"
        train = ["a.jsonl", "/b.jsonl"]
        dev = "~/c.jsonl"
        test = "d.jsonl"
        set = {train.epochs = 2, overlap = "flat", encoder.shapes = true}
        """
    )
    with pytest.raises(ValueError, match=r"the environment has no \$SOMEWHERE"):
        read_plan(tmp_path / "plan.toml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOMEWHERE", "/data")
        patch.setenv("HOME", "/me")
        found = read_plan(tmp_path / "plan.toml")
    assert found.output == Path("/data/x")
    corpus = found.corpora[0]
    assert corpus.train == (tmp_path / "a.jsonl", Path("/b.jsonl"))
    assert (corpus.dev, corpus.test) == (Path("/me/c.jsonl"), tmp_path / "d.jsonl")
    first, second = (found.settings_of(system, found.corpora[0]) for system in found.systems)
    assert first == {
        "train.epochs": "2",
        "train.learning_rate": "0.001",
        "head.hidden": "[8, 4]",
        "spans.width_size": "3",
        "spans.width": "4",
        "overlap": "flat",
        "encoder.shapes": "true",
    }
    gone = {"head.hidden", "spans.width_size"}
    assert second == {key: value for key, value in {**first, "train.epochs": "9"}.items() if key not in gone}
    assert [(run.seed, run.system.name) for run in found.runs()] == [
        (seed, name) for seed in (1, 2, 3) for name in ("baseline", "t")
    ]


def test_a_run_is_what_decides_its_figures(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    here, there = plan(tmp_path / "a"), plan(tmp_path / "b", title="Other", workers=3)
    content = {"train": "t", "dev": "d", "test": "e"}

    def names(one, content=content, evaluate=("dev", "test")):
        return [identity(run, content, evaluate) for run in one.runs()]

    assert len(set(names(here))) == len(names(here)) - 9  # the two corpora have the same fingerprints here
    assert names(here) == names(there)
    assert not set(names(here)) & set(names(here, {**content, "train": "u"}))
    assert not set(names(here)) & set(names(plan(tmp_path / "a", set={"train.epochs": 1})))
    assert not set(names(here)) & set(names(plan(tmp_path / "a", seeds=[4])))
    dev = names(here, evaluate=("dev",))
    assert dev == names(here, {**content, "test": "f"}, ("dev",))  # a test set that is not looked at may change
    (tmp_path / "a" / "own.py").write_text("one = 1")
    own = plan(tmp_path / "a", recipes=["own.py"])
    before = names(own)
    (tmp_path / "a" / "own.py").write_text("one = 2")
    assert not set(before) & set(names(own))


def test_the_ledger_keeps_whole_lines_and_one_holder(tmp_path):
    ledger, other = Ledger(tmp_path), Ledger(tmp_path)
    ledger.prepare()
    with ledger.claim("a") as mine, other.claim("a") as theirs, other.claim("b") as free:
        assert (mine, theirs, free) == (True, False, True)
    with other.claim("a") as theirs:
        assert theirs
    counts = (Counts(1, 2, 3, 4, 5), Counts())
    ledger.add("a", {"name": "x"}, {"dev": counts})
    with ledger.path.open("a") as file:
        file.write('{"event": "run", "id": "b", "na')
    assert list(other.lines()) == ["a"]
    other.add("c", {"name": "y"}, {"dev": ()})
    other.add("c", {"name": "z"}, {"dev": ()})
    assert {name: line["name"] for name, line in ledger.lines().items()} == {"a": "x", "c": "y"}
    assert ledger.documents("a", "dev") == counts
    with pytest.raises(ValueError, match="damaged"):
        ledger.documents("a", "test")


def test_less_is_a_part_of_more():
    rows = [*documents("train", 20), *(Document(f"r{n}", "x", group=f"g{n % 3}") for n in range(10))]
    sizes = [0.01, 0.2, 0.5, 0.9, 1.0]
    parts = [fraction_of(rows, fraction, seed=1) for fraction in sizes]
    for less, more in zip(parts, parts[1:], strict=False):
        assert {d.id for d in less} <= {d.id for d in more}
    assert len(parts[0]) >= 1
    assert parts[-1] == rows
    for fraction, part in zip(sizes, parts, strict=True):
        assert fraction * 30 <= len(part) <= max(1, fraction * 30) + 4  # a group of four may be the last one in
        inside = {d.group for d in part if d.group}
        assert all((d in part) == (d.group in inside) for d in rows if d.group)  # groups are whole
    assert fraction_of(rows, 0.5, seed=1) != fraction_of(rows, 0.5, seed=2)


def test_a_share_of_one_group_is_a_share_of_its_rows():
    rows = [Document(str(n), "x", group="all") for n in range(40)]
    assert len(fraction_of(rows, 0.25, seed=1)) == 10


def test_a_corpus_without_dev_has_no_dev_documents(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "One."}\n')
    parts = read_parts(PlannedCorpus("x", (tmp_path / "a.jsonl",)))
    assert ([document.text for document in parts.train], parts.dev, parts.test) == (["One."], [], [])
