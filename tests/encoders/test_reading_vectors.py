import gzip
import struct

import numpy as np
import pytest
import torch
from names import generation
from tiny import sentence

from wingspan.encoders.vectors import open_vectors, read_vectors

TEXT = "red 1 2 3\nCell 4 5 6\nother 7 8 9\n"


def test_text_with_and_without_a_header_plain_and_packed(tmp_path):
    (tmp_path / "glove.txt").write_text(TEXT)
    (tmp_path / "w2v.txt").write_text("3 3\n" + TEXT)
    with gzip.open(tmp_path / "packed.txt.gz", "wt") as out:
        out.write(TEXT)
    for name in ("glove.txt", "w2v.txt", "packed.txt.gz"):
        found = read_vectors(tmp_path / name, ["Red", "Cell", "cell", "missing"], 3)
        assert {word: vector.tolist() for word, vector in found.items()} == {"Red": [1, 2, 3], "Cell": [4, 5, 6]}


def test_packed_arrays(tmp_path):
    np.savez(tmp_path / "v.npz", words=np.array(["red", "cell"]), vectors=np.ones((2, 3), dtype=np.float16))
    assert set(read_vectors(tmp_path / "v.npz", ["red"], 3)) == {"red"}
    np.savez(tmp_path / "other.npz", words=np.array(["red"]))
    with pytest.raises(ValueError, match="other.npz: no word vectors"):
        read_vectors(tmp_path / "other.npz", ["red"], 3)


def test_what_is_wrong_is_said(tmp_path):
    (tmp_path / "bad.txt").write_text("red 1 2 3\ncell 4 x 6\n")
    with pytest.raises(ValueError, match="bad.txt:2: a word and its 3 numbers"):
        read_vectors(tmp_path / "bad.txt", ["red"], 3)
    (tmp_path / "glove.txt").write_text(TEXT)
    with pytest.raises(ValueError, match="vectors of 3 numbers, not 200; set embedding_size=3"):
        read_vectors(tmp_path / "glove.txt", ["red"], 200)
    with pytest.raises(ValueError, match=r"none\.txt"):
        read_vectors(tmp_path / "none.txt", ["red"], 3)


def test_a_decoder_starts_from_them(tmp_path):
    (tmp_path / "glove.txt").write_text(TEXT)
    objective = generation([sentence("a red cell", ("Drug", 1, 3))], vectors=str(tmp_path / "glove.txt"))
    (at,) = objective.vocabulary.ids(["red"])
    assert torch.equal(objective.table.embed.weight[at], torch.tensor([1.0, 2.0, 3.0]))


def test_words_may_hold_spaces_and_any_character(tmp_path):
    (tmp_path / "v.txt").write_text("word 1 2\n. . . 3 4\nnew\u00a0york 5 6\n☃ 7 8 \n 9 1\n", encoding="utf-8")
    source = open_vectors(tmp_path / "v.txt")
    assert source.words == ["word", ". . .", "new\u00a0york", "☃", ""]
    assert source.of([". . .", "☃", ""]).tolist() == [[3, 4], [7, 8], [9, 1]]
    assert source.form_of("WORD") == "word"
    assert source.form_of("WORD", "exact") is None
    assert source.form_of("\ud800") is None
    with pytest.raises(KeyError, match="missing"):
        source.of(["word", "missing"])


def binary(words: dict[str, list[float]], newline: str = "", count: int | None = None) -> bytes:
    size = len(next(iter(words.values())))
    rows = (f"{newline}{word} ".encode() + struct.pack(f"<{size}f", *row) for word, row in words.items())
    return f"{len(words) if count is None else count} {size}\n".encode() + b"".join(rows)


WORDS = {"red": [1.5, -2e-8, 3.0], "été": [0.1, 0.2, 0.3], "</s>": [0.0, 0.0, 0.0]}


@pytest.mark.parametrize("newline", ["", "\n"])
def test_word2vec_binary_plain_and_packed(tmp_path, newline):
    content = binary(WORDS, newline)
    (tmp_path / "v.bin").write_bytes(content)
    (tmp_path / "v.bin.gz").write_bytes(gzip.compress(content))
    for name in ("v.bin", "v.bin.gz"):
        source = open_vectors(tmp_path / name)
        assert source.words == list(WORDS)
        np.testing.assert_array_equal(source.of(list(WORDS)), np.array(list(WORDS.values()), np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("red 1 2 3\ncell 4 5\n", "v.txt:2: 2 numbers where 3 are expected"),
        ("red 1 2 3\ncell 4.5 5 6 7\n", "v.txt:2: 4 numbers where 3 are expected"),
        ("red 1 2 3\n\ncell 4 5 6\n", "v.txt:2: 0 numbers"),
        ("red 1 2\nblue 1 2\nred 3 4\n", "v.txt:3: 'red' is already word 1; remove one of them"),
        ("2 2\nred 1 2\nred 3 4\n", "v.txt:3: 'red' is already word 1; remove one of them"),
        ("3 2\nred 1 2\nblue 3 4\n", "v.txt:1: announces 3 words, but there are 2; the file was cut off"),
        ("red 1 2\nblue nan 4\n", "v.txt:2: the vector of 'blue' has a number that is not finite; remove the word"),
        ("2 2\nred 1 2\nblue 1e40 4\n", "v.txt:3: the vector of 'blue' has a number that is not finite"),
        (binary({**WORDS, "blue": [1.0, float("inf"), 2.0]}), "v.txt: word 4: the vector of 'blue' has a number"),
        ("red\n", "v.txt:1: a word and its numbers are expected"),
        ("", "v.txt:1: a word and its numbers are expected"),
        (
            "red 1 2\nr\udce9d 1 2\n",
            "v.txt:2: byte 2 of the line .* is 0xe9, which is no UTF-8",
        ),
        (binary(WORDS)[:-3], "v.txt: announces 3 words, but ends in word 3; the file was cut off"),
        (binary(WORDS) + b"more", "v.txt: has more than the 3 words"),
        (binary({"ab": [1.25, 2.5]}).replace(b"ab", b"\xe9b"), r"v.txt: word 1 \(b'\\xe9b'\) is not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, content, message):
    path = tmp_path / "v.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=message):
        open_vectors(path)
