import gzip
from pathlib import Path

import pytest

from wingspan.files import CorpusError, Problems, atomic_write, read_json, read_json_lines, read_lines, read_text, stem


def test_lines_lose_their_ends_and_the_mark_but_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\ntwo \u2028 still\x0b two\n\nlone\rreturn".encode())
    assert list(read_lines(path)) == [(1, "one"), (2, "two \u2028 still\x0b two"), (3, ""), (4, "lone\rreturn")]
    assert read_text(path).startswith("one\r\n")
    assert read_text(path, keep_mark=True).startswith("\ufeffone")


def test_gzip_is_read_and_written_with_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("a.txt.gz", 1e9), ("b.txt.gz", 2e9)):  # whenever that is
        monkeypatch.setattr("time.time", lambda seconds=seconds: seconds)
        with atomic_write(tmp_path / name) as file:
            file.write("naïve 🦅\r\n")
    assert read_text(tmp_path / "a.txt.gz") == "naïve 🦅\r\n"
    assert (tmp_path / "a.txt.gz").read_bytes() == (tmp_path / "b.txt.gz").read_bytes()


def test_invalid_utf8_names_line_and_byte(tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(b"fine\ncaf\xe9 au lait\n")
    with pytest.raises(CorpusError, match=r"latin.txt:2: byte 4 of the line \(8 of the file\) is 0xe9"):
        list(read_lines(path))
    with pytest.raises(CorpusError, match=r"latin.txt:2: byte 4 of the line is 0xe9"):
        read_text(path)


def test_utf16_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt"
    path.write_bytes("hello\n".encode("utf-16"))
    with pytest.raises(CorpusError, match="is UTF-16, not UTF-8; save it as UTF-8"):
        list(read_lines(path))


@pytest.mark.parametrize("cut", [b"not gzip at all", gzip.compress(b"a" * 5000)[:-12]], ids=["other bytes", "cut off"])
def test_broken_gzip_is_one_sentence(tmp_path: Path, cut: bytes) -> None:
    path = tmp_path / "broken.gz"
    path.write_bytes(cut)
    with pytest.raises(CorpusError, match="incomplete gzip file"):
        read_text(path)


def test_a_failure_keeps_the_old_file_and_leaves_no_part(tmp_path: Path) -> None:
    path = tmp_path / "kept.txt"
    path.write_text("old")

    def fill_the_disk() -> None:
        with atomic_write(path) as file:
            file.write("new")
            raise OSError("disk full")

    with pytest.raises(OSError, match="full"):
        fill_the_disk()
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["kept.txt"]


def test_half_a_surrogate_pair_is_refused_both_ways(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="U\\+D83D, half of a surrogate pair"), atomic_write(tmp_path / "a") as file:
        file.write("\ud83d")
    (tmp_path / "b.jsonl").write_text('{"text": "\\ud83d"}\n{"text": "\\ud83e\\udd85"}\n')
    problems = Problems("skip")
    assert list(read_json_lines(tmp_path / "b.jsonl", problems)) == [(2, {"text": "🦅"})]
    assert problems.messages == [
        f"{tmp_path / 'b.jsonl'}:1: an escape \\ud... stands alone; write both halves of the character"
    ]


def test_json_lines_report_what_is_no_object(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\r\n\r\n[1]\n{"a": \n' + b"[" * 100_000 + b"\n")
    problems = Problems("skip")
    assert list(read_json_lines(path, problems)) == [(1, {"a": 1})]
    assert [message.split("a.jsonl:")[1].split(" ")[0] for message in problems.messages] == ["3:", "4:", "5:"]
    with pytest.raises(CorpusError, match=r"a.jsonl:3: a JSON list where an object is needed"):
        list(read_json_lines(path, Problems()))


def test_json_errors_have_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("[\n1,\n}")
    with pytest.raises(CorpusError, match=r"a.json:3: no valid JSON"):
        read_json(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="a folder where a file is needed"):
        read_text(tmp_path)


def test_stems() -> None:
    assert [stem("x/a.conll.gz"), stem("b.tsv"), stem("c")] == ["a", "b", "c"]


def test_a_file_is_renamed_into_place_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with path.open() as reader:
        with atomic_write(path) as out:
            out.write("new")
        assert reader.read() == "old"  # whoever reads the old file meanwhile gets all of it
    assert path.read_text() == "new"
