import gzip

import numpy as np
import pytest
import torch

from names import generation
from tiny import sentence
from wingspan.word_vectors import read_vectors

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
    with pytest.raises(ValueError, match="bad.txt:2: a word and its numbers"):
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
