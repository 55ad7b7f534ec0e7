import struct

import numpy as np
import pytest

from wingspan.encoders.vectors import MAGIC, fnv, open_vectors

WORDS = ["the", "naïve", "</s>"]
BUCKETS, SIZE = 11, 4
MATRIX = np.random.default_rng(0).standard_normal((len(WORDS) + BUCKETS, SIZE), np.float32)


def model(words=WORDS, quantized: bool = False, version: int = 12) -> bytes:
    """A model as fastText writes it: n-grams of 3 to 4 characters."""
    settings = struct.pack("<i12id", version, SIZE, 5, 5, 1, 5, 1, 1, 2, BUCKETS, 3, 4, 100, 1e-4)
    known = b"".join(word.encode("utf-8", "surrogateescape") + b"\0" + struct.pack("<qb", 7, 0) for word in words)
    dictionary = struct.pack("<3i2q", len(words), len(words), 0, 99, -1) + known
    return MAGIC + settings + dictionary + struct.pack("<?2q", quantized, *MATRIX.shape) + MATRIX.tobytes() + b"output"


def hash_of(text: str) -> int:
    """FNV-1a with signed bytes, in numpy's own 32-bit arithmetic."""
    value = np.uint32(2166136261)
    with np.errstate(over="ignore"):
        for byte in np.frombuffer(text.encode(), np.int8):
            value = (value ^ byte.astype(np.uint32)) * np.uint32(16777619)
    return int(value)


def test_the_hash():
    assert fnv(b"a") == 0xE40C292C  # as published with FNV
    assert fnv(b"foobar") == 0xBF9CF968
    assert fnv("ï".encode()) == hash_of("ï")


def test_a_word_is_the_mean_of_its_row_and_its_parts(tmp_path):
    (tmp_path / "m.bin").write_bytes(model())
    source = open_vectors(tmp_path / "m.bin")
    parts = [len(WORDS) + hash_of(gram) % BUCKETS for gram in ("<th", "<the", "the", "the>", "he>")]
    wide = [len(WORDS) + hash_of(gram) % BUCKETS for gram in ("<na", "<naï", "naï", "naïv", "aïv", "aïve", "ïve")]
    wide += [len(WORDS) + hash_of(gram) % BUCKETS for gram in ("ïve>", "ve>")]
    expected = [MATRIX[[0, *parts]].mean(0), MATRIX[[1, *wide]].mean(0), MATRIX[2]]
    np.testing.assert_allclose(source.of(WORDS), expected, rtol=1e-6)
    assert source.words == WORDS
    unknown = [len(WORDS) + hash_of(gram) % BUCKETS for gram in ("<He", "<He>", "He>")]
    np.testing.assert_allclose(source.of(["He"]), [MATRIX[unknown].mean(0)], rtol=1e-6)
    assert source.form_of("He") == "He"  # every word is known by its parts
    assert source.form_of("The") == "the"
    assert source.form_of("") is None  # "<>" has no part of three characters


def test_a_model_of_gensim_reads_as_gensim_reads_it(tmp_path):
    models = pytest.importorskip("gensim.models.fasttext")
    texts = [["the", "naïve", "approach"], ["another", "approach"]] * 5
    trained = models.FastText(texts, vector_size=5, min_count=1, bucket=50, epochs=1, workers=1)
    models.save_facebook_model(trained, str(tmp_path / "m.bin"))
    source, expected = open_vectors(tmp_path / "m.bin"), models.load_facebook_vectors(str(tmp_path / "m.bin"))
    assert source.words == expected.index_to_key
    words = ["approach", "naïve", "the", "approaches", "unnaïve"]
    np.testing.assert_allclose(source.of(words), [expected[word] for word in words], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model(quantized=True), "quantized fastText model"),
        (model(version=9), "of version 9, not 12"),
        (model()[:200], "the file was cut off"),
        (model()[:90], "the file was cut off"),
        (model(["r\udce9d"]), "is not UTF-8"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path, content, message):
    (tmp_path / "m.bin").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        open_vectors(tmp_path / "m.bin")
