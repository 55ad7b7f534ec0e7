import subprocess
import sys

import pytest
from shells import lines

TEXT = "Aspirin helps <b>hearts</b>"


@pytest.fixture
def files(tmp_path):
    def record(number: int, *entities: tuple[str, int, int]) -> dict:
        return {
            "id": f"d{number}",
            "text": TEXT,
            "entities": [{"label": label, "start": s, "end": e} for label, s, e in entities],
        }

    gold = lines(
        tmp_path / "gold.jsonl",
        record(0, ("Chemical", 0, 7), ("Anatomy", 17, 23)),
        record(1),
        record(2, ("Gene", 0, 7)),
    )
    predicted = lines(tmp_path / "predicted.jsonl", record(0, ("Chemical", 0, 7), ("Gene", 8, 13)), record(1))
    return gold, predicted


def test_show_prints_documents_with_bars(shell, files):
    out, _ = shell("show", files[0], "--first", 1)
    assert out.splitlines()[:4] == ["Anatomy   Chemical   Gene", "", "d0", TEXT]
    assert "\\----/ Chemical" in out.replace("-----/ Chem", "----/ Chem")
    assert "... 2 more documents; --first 0 shows all" in out


def test_show_marks_predictions_and_counts_missing_documents_as_empty(shell, files):
    out, _ = shell("show", files[0], "--with", files[1])
    assert "ok 1 right   + 1 spurious   x 1 missed" in out
    assert "ok 0 right   + 0 spurious   x 1 missed" in out


def test_show_keeps_to_the_labels_asked_for(shell, files):
    out, _ = shell("show", files[0], "--label", "Chemical")
    assert "Chemical" in out
    assert "Anatomy" not in out
    assert "no entity has a label Drug" in shell.refuses("show", files[0], "--label", "Drug")


def test_show_writes_a_page(shell, files, tmp_path):
    out, _ = shell("show", files[0], "--with", files[1], "--output", tmp_path / "new" / "page.html")
    page = (tmp_path / "new" / "page.html").read_text()
    assert "3 documents" in out
    assert page.count("<article") == 3
    assert "<b>hearts" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_show_loads_no_torch():
    code = "import sys, wingspan.cli.show; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_show_puts_predictions_of_other_tools_onto_the_gold(shell, files, tmp_path):
    words = [[word, "O"] for word in ["Aspirin", "helps", "<", "b", ">", "hearts", "<", "/", "b", ">"]]
    words[0][1] = "B-Chemical"
    rows = "\n".join("\t".join(word) for word in words)
    (tmp_path / "tagged.conll").write_text(f"{rows}\n\n" * 3)
    out, _ = shell("show", files[0], "--with", tmp_path / "tagged.conll")
    assert "ok 1 right   + 0 spurious   x 1 missed" in out


def test_show_of_nothing_says_so(shell, tmp_path):
    (tmp_path / "none.jsonl").write_text("")
    assert "none.jsonl: there are no documents in it" in shell.refuses("show", tmp_path / "none.jsonl")
