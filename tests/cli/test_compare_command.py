"""`wingspan compare` from files: tables, JSON, runs of one system, errors in one sentence, nothing heavy imported."""

import json
import random
import subprocess
import sys

import pytest
from test_score_command import record, write

from wingspan.cli import main
from wingspan.cli.compare import name_systems

GOLD = [("drug", 0, 7), ("sign", 18, 35), ("[site]", 25, 30)]


@pytest.fixture
def files(tmp_path):
    """Gold, a system that finds half of it, and two runs of one that finds nearly all."""
    write(tmp_path / "gold.jsonl", *(record(str(n), *GOLD) for n in range(25)))
    for name, chance in (("half", 0.5), ("most-1", 0.9), ("most-2", 0.95)):
        rng = random.Random(name)
        found = [record(str(n), *(e for e in GOLD if rng.random() < chance)) for n in range(25)]
        write(tmp_path / f"{name}.jsonl", *found)
    return tmp_path


def wingspan(folder, *arguments):
    script = (
        "import sys\nfrom wingspan.cli import main\n"
        "try:\n    main()\nfinally:\n    assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_two_files_side_by_side(files):
    done = wingspan(files, "compare", "gold.jsonl", "half.jsonl", "most-1.jsonl", "--json", "new/figures.json")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Recognition, strict, with 95 % intervals (1,000 bootstrap samples)"
    assert "[site]" in lines
    assert "  half" in [line[:6] for line in lines]
    assert "most-1 minus half, F1; p by approximate randomization of 25 documents" in lines
    assert lines[-1].startswith("most-1 wins over half by ")
    assert any(line.startswith("  fixed: missed ") for line in lines)
    assert "\x1b" not in done.stdout
    figures = json.loads((files / "new" / "figures.json").read_text())
    assert figures["verdict"] == lines[-1]
    half, most = figures["systems"]
    assert half["micro"]["intervals"]["f1"][0] < half["micro"]["f1"] < half["micro"]["intervals"]["f1"][1]
    assert set(half["labels"]) == {"drug", "sign", "[site]"}
    (pair,) = figures["pairs"]
    assert pair["f1"]["micro"]["value"] == pytest.approx(most["micro"]["f1"] - half["micro"]["f1"])
    fixed, both = pair["errors"]["fixed"], pair["errors"]["both"]
    assert fixed + both == half["micro"]["fn"]
    assert pair["errors"]["broken"] + both == most["micro"]["fn"]


def test_several_runs_by_pattern_and_by_list(files):
    options = ["--samples", 50, "--json", "-"]
    pattern = wingspan(files, "compare", "gold.jsonl", "old=half.jsonl", "new=most-*.jsonl", *options)
    listed = wingspan(files, "compare", "gold.jsonl", "old=half.jsonl", "new=most-1.jsonl,most-2.jsonl", *options)
    assert pattern.returncode == 0, pattern.stderr
    assert pattern.stdout == listed.stdout
    figures = json.loads(pattern.stdout)
    assert [(system["name"], system["runs"]) for system in figures["systems"]] == [("old", 1), ("new", 2)]
    assert figures["pairs"][0]["f1"]["micro"]["p_randomization"] is None


def test_names_of_systems(files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "other").mkdir()
    write(files / "other" / "half.jsonl", record("1"))
    write(files / "a=b,c.jsonl", record("1"))
    assert list(name_systems(["half.jsonl", "most-1.jsonl"])) == ["half", "most-1"]
    assert list(name_systems(["half.jsonl", "other/half.jsonl"])) == ["half.jsonl", "other/half.jsonl"]
    assert list(name_systems(["most-*.jsonl", "x=half.jsonl"])) == ["most-*.jsonl", "x"]
    assert list(name_systems(["a=b,c.jsonl", "half.jsonl"])) == ["a=b,c", "half"]
    with pytest.raises(ValueError, match="two systems are called 'x'"):
        name_systems(["x=half.jsonl", "x=most-1.jsonl"])


def test_bad_input_is_one_sentence(files, monkeypatch, capsys):
    def code(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["wingspan", "compare", "gold.jsonl", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code or 0

    monkeypatch.chdir(files)
    write(files / "short.jsonl", *(record(str(n)) for n in range(24)))
    write(files / "foreign.jsonl", *(record(str(n), text="Another text, as long as it needs.") for n in range(25)))
    for arguments, said in (
        (("half.jsonl", "short.jsonl"), "no predicted counterpart of the same id ('24')"),
        (("half.jsonl", "foreign.jsonl"), "the two texts differ"),
        (("half.jsonl", "none.jsonl"), "none.jsonl: no such file or folder"),
        (("half.jsonl", "x=none-*.jsonl"), "none-*.jsonl: no such file or folder"),
        (("half.jsonl", "x=half.jsonl,"), "no such file or folder"),
        (("half.jsonl",), "at least two systems"),
        (("half.jsonl", "half.jsonl"), "two systems are called 'half.jsonl'"),
        (("half.jsonl", "most-1.jsonl", "--confidence", "95"), "confidence is 95"),
    ):
        assert code(*arguments) == 1
        heard = capsys.readouterr().err
        assert said in heard
        assert heard.count("\n") == 1
    assert code("half.jsonl", "short.jsonl", "--allow-missing") == 0
