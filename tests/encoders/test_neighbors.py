import numpy as np
import pytest

from wingspan.encoders import vectors as vector_files
from wingspan.encoders.vectors import WordVectors, nearest


def test_neighbors_are_the_words_of_the_smallest_angle(monkeypatch):
    monkeypatch.setattr(vector_files, "BLOCK_SIZE", 2)
    words = ["red", "blue", "green", "zero", "back"]
    vectors = np.array([[2, 0], [1, 1], [0, 3], [0, 0], [-1, 0]], np.float16)
    source = WordVectors(words, vectors)
    found = nearest(source, ["Red", "nowhere"], 3)
    assert list(found) == ["Red"]
    assert [word for word, _ in found["Red"]] == ["blue", "green", "zero"]
    assert [cosine for _, cosine in found["Red"]] == pytest.approx([0.5**0.5, 0, 0], abs=1e-6)
    assert nearest(source, ["nowhere"]) == {}
