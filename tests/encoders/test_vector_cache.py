import errno
import os
import subprocess
import sys

import numpy as np
import pytest

from wingspan.encoders import vectors
from wingspan.encoders.vectors import open_vectors


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A file that counts as large."""
    monkeypatch.setattr(vectors, "SMALL", 10)
    path = tmp_path / "v.txt"
    path.write_text("".join(f"word{n} {n} {n + 0.5}\n" for n in range(9_000)))
    return path


def test_a_large_file_is_read_once(large, monkeypatch):
    first = open_vectors(large)
    assert isinstance(first.vectors, np.memmap)
    monkeypatch.setattr(vectors, "read_blocks", None)  # a second reading would fail
    again = open_vectors(large)
    assert len(again) == 9_000
    assert again.of(["word0", "word8999", "word4097"]).tolist() == [[0, 0.5], [8999, 8999.5], [4097, 4097.5]]
    assert [word in again for word in ("word1", "word", "word9000")] == [True, False, False]
    assert again.words[:2] == ["word0", "word1"]
    assert isinstance(again.vectors, np.memmap)


def test_a_file_that_changed_is_read_again(large):
    open_vectors(large)
    large.write_text("other 1 2\n" * 1 + "word0 3 4\n")
    assert open_vectors(large).of(["word0"]).tolist() == [[3, 4]]
    assert len(open_vectors(large)) == 2


def test_several_processes_open_a_new_file_at_once(large, tmp_path):
    code = (
        "import sys; from wingspan.encoders import vectors; vectors.SMALL = 10\n"
        "print(vectors.open_vectors(sys.argv[1]).of(['word8999']).tolist())"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(large)], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert [process.communicate()[0] for process in started] == ["[[8999.0, 8999.5]]\n"] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v.txt", "v.txt.cached"]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_where_nothing_can_be_written_files_are_read(large, monkeypatch, number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(vectors.Path, "replace", refuse)
    assert open_vectors(large).of(["word7"]).tolist() == [[7, 7.5]]
    assert [path.name for path in large.parent.iterdir()] == ["v.txt"]


def test_a_damaged_cache_is_made_again(large):
    open_vectors(large)
    cache = large.with_name("v.txt.cached")
    for content in (b"", b"no cache at all", cache.read_bytes()[:-9] + b"\0" * 9):
        cache.write_bytes(content)
        assert open_vectors(large).of(["word7"]).tolist() == [[7, 7.5]]
        assert cache.stat().st_size > 9_000 * 8


def test_a_word_that_is_there_twice_leaves_no_cache(large):
    large.write_text("red 1 2\nblue 1 2\nred 3 4\n")
    with pytest.raises(ValueError, match="v.txt:3: 'red' is already word 1"):
        open_vectors(large)
    assert [path.name for path in large.parent.iterdir()] == ["v.txt"]


def test_what_is_wrong_leaves_no_cache(large):
    large.write_text("red 1 2\nblue 1\n")
    with pytest.raises(ValueError, match="v.txt:2"):
        open_vectors(large)
    assert [path.name for path in large.parent.iterdir()] == ["v.txt"]
