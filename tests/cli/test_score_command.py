"""`wingspan score` from files: tables, JSON, errors in one sentence, and nothing heavy imported."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console
from shells import run_command

from wingspan.cli import score as run
from wingspan.evaluation.scores import recognition, typing
from wingspan.text import Document, Entity
from wingspan.views.tables import print_modes, print_scores, print_seeds

TEXT = "Aspirin eased the severe chest pain of two patients."


def record(id, *entities, text=TEXT):
    return {"id": id, "text": text, "entities": [{"label": k, "start": s, "end": e} for k, s, e in entities]}


def write(path, *records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    gold = write(
        tmp_path / "gold.jsonl",
        record("1", ("drug", 0, 7), ("[sign] of", 18, 35), ("site", 25, 30)),
        {
            "id": "2",
            "text": TEXT,
            "entities": [{"label": "[sign] of", "fragments": [[18, 24], [31, 35]]}],
        },
    )
    found = write(
        tmp_path / "found.jsonl",
        record("2", ("[sign] of", 18, 35)),
        record("1", ("drug", 0, 7), ("[sign] of", 25, 35), ("drug", 25, 30)),
    )
    return gold, found


def test_the_command_prints_a_plain_table_and_writes_json(files, tmp_path):
    done = run_command("score", *files, "--json", tmp_path / "new" / "figures.json")
    assert done.returncode == 0, done.stderr
    rows = {line.split("  ")[0]: line.split() for line in done.stdout.splitlines()}
    assert rows["micro"][1:] == ["25.00", "25.00", "25.00", "1", "3", "3", "4"]
    assert rows["[sign] of"][-4:] == ["0", "2", "2", "2"]
    assert "─" not in done.stdout
    assert "\x1b" not in done.stdout
    figures = json.loads((tmp_path / "new" / "figures.json").read_text())
    assert figures["micro"]["f1"] == 25
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["figures.json"]


def test_the_command_says_what_is_wrong_in_one_sentence(files, tmp_path):
    gold, _ = files
    half = write(tmp_path / "half.jsonl", record("1"))
    done = run_command("score", gold, half)
    assert done.returncode == 1
    assert done.stderr.strip().count("\n") == 0
    assert "no predicted counterpart of the same id ('2')" in done.stderr
    assert run_command("score", gold, half, "--allow-missing").returncode == 0
    missing = run_command("score", gold, tmp_path / "none.jsonl")
    assert missing.returncode == 1
    assert "none.jsonl" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_help_is_quick_and_needs_no_torch():
    script = (
        "import sys; sys.argv = ['wingspan', 'score', '--help']\n"
        "from wingspan.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    assert not {'torch', 'transformers'} & set(sys.modules), 'heavy import'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--mode" in done.stdout


def test_scoring_imports_no_torch(files):
    script = (
        "import sys; from wingspan.cli.score import score; score(*sys.argv[1:]); "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, *map(str, files)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_all_modes_at_once_keep_strict_on_top(files, tmp_path):
    run.score(*files, mode="all", json=tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["mode"] == "strict"
    assert list(figures["modes"]) == ["exact", "partial", "type", "lenient", "fragments"]
    assert figures["modes"]["partial"]["micro"]["tp"] == 3
    assert figures["modes"]["type"]["micro"]["tp"] == 3


def test_subsets(files):
    (documents,) = run.score(*files, subset="discontinuous-documents")
    (entities,) = run.score(*files, subset="discontinuous-entities")
    assert (documents.micro.gold, documents.micro.found) == (1, 1)
    assert (entities.micro.gold, entities.micro.found) == (1, 0)
    with pytest.raises(ValueError, match="unknown subset"):
        run.score(*files, subset="odd")


def test_typing_has_its_own_protocol(files):
    gold, found = files
    scores = run.score(gold, gold, protocol="typing")
    assert scores.to_dict()["accuracy"] == 100
    with pytest.raises(ValueError, match="use recognition for found spans"):
        run.score(gold, found, protocol="typing")
    with pytest.raises(ValueError, match="unknown protocol"):
        run.score(gold, found, protocol="guessing")


def shown(print_them, *arguments, terminal=False, width=80):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=width, color_system=None)
    print_them(*arguments, console)
    return console.file.getvalue()


def test_tables_never_cut_a_label_in_a_pipe():
    long = "a label " * 20 + "[bold]"
    document = Document("1", TEXT, (Entity.at(long, 0, 7), Entity.at("drug", 8, 13)))
    assert long in shown(print_scores, recognition([document], [document]))
    assert "100.00" in shown(print_scores, recognition([document], [document]), terminal=True, width=70)


def test_every_kind_of_table():
    documents = [Document("1", TEXT, (Entity.at("drug", 0, 7),))]
    scores = recognition(documents, documents)
    assert "macro (documents)" in shown(print_scores, scores)
    assert "accuracy" in shown(print_scores, typing(documents, documents))
    assert "F1" not in shown(print_scores, typing(documents, documents))
    assert "spurious" in shown(print_modes, [scores, recognition(documents, documents, "partial")])
    assert "100.00 ± 0.00" in shown(print_seeds, [scores, scores])


def test_half_credits_are_printed_as_halves():
    gold, found = (Document("1", TEXT, (Entity.at("drug", 0, end),)) for end in (7, 5))
    row = next(
        line for line in shown(print_scores, recognition([gold], [found], "partial")).splitlines() if "drug" in line
    )
    assert row.split()[-4:] == ["0.5", "0.5", "0.5", "1"]
