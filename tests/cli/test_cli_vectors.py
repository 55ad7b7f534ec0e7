"""`wingspan vectors` as users run it."""

import json
import sys

import numpy as np
import pytest
from shells import Shell, lines

from wingspan.cli.vectors import GENSIM_LIMIT, TextWords, looks_held_out
from wingspan.encoders.vectors import open_vectors

COLORS, ANIMALS = ("red", "blue", "green", "pink"), ("cat", "dog", "cow", "hen")


def texts() -> list[str]:
    """Colors occur with Paint, animals with Feed; never one with the other."""
    draw = np.random.default_rng(0)
    made = []
    for _ in range(150):
        for kind, word in ((COLORS, "Paint"), (ANIMALS, "Feed")):
            made.append(" ".join([word, *draw.choice(kind, 2, replace=False)]))
    return made


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    (tmp_path / "train.txt").write_text("\n".join(texts()))
    (tmp_path / "test.txt").write_text("PAINT red blue\nAnother text\n")
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capsys, tmp_path)


QUICK = ("--size", 6, "--epochs", 3)


@pytest.mark.slow
def test_words_that_occur_together_are_near(run):
    shown = ("--nearest", "RED", "--nearest", "dog", "--count", 14)
    out, err = run("vectors", "train.txt", "--output", "v.npz", "--size", 6, "--epochs", 400, *shown)
    assert err == ""
    printed = out.splitlines()
    assert printed[:2] == ["900 words in 300 texts", "10 vectors of 6 numbers"]
    near = {line.split(":")[0]: [part.split()[0] for part in line.split(":")[1].split(",")] for line in printed[-2:]}
    for query, kind in (("RED", COLORS), ("dog", ANIMALS)):
        others = [word for word in near[query] if word in (*COLORS, *ANIMALS)]
        assert set(others[:3]) == {*kind} - {query.lower()}


def test_a_file_says_how_it_was_made_and_the_same_seed_makes_it_again(run, tmp_path):
    options = ("vectors", "train.txt", *QUICK, "--lower-case", "--json", "v.json")
    run(*options, "--output", "first.npz")
    figures = json.loads((tmp_path / "v.json").read_text())
    assert (figures["method"], figures["num_words"], figures["vocabulary"]) == ("word2vec", 900, 10)
    assert figures["settings"] == {"vector_size": 6, "window": 10, "min_count": 5, "epochs": 3, "seed": 1}
    with np.load(tmp_path / "first.npz") as stored:
        assert json.loads(str(stored["about"])) == figures
    run(*options, "--output", "second.npz")
    first, second = (open_vectors(tmp_path / name) for name in ("first.npz", "second.npz"))
    assert first.words == second.words
    assert set(first.words[:2]) == {"paint", "feed"}  # the most frequent
    assert "Paint" not in first
    assert np.array_equal(first.vectors, second.vectors)
    run(*options, "--output", "third.npz", "--seed", 2)
    assert not np.array_equal(first.vectors, open_vectors(tmp_path / "third.npz").vectors)


def test_text_holds_the_same_vectors_and_the_mean_of_rare_words(run, tmp_path):
    for name in ("v.npz", "v.txt.gz"):
        run("vectors", "train.txt", "--output", name, *QUICK)
    half, text = open_vectors(tmp_path / "v.npz"), open_vectors(tmp_path / "v.txt.gz")
    assert half.words == text.words
    np.testing.assert_allclose(half.vectors, text.vectors, rtol=2e-3)
    np.testing.assert_allclose(text.of(["<unk>"])[0], text.of(text.words[:-1]).mean(0), rtol=1e-4)


def test_fasttext_keeps_its_sub_words_in_a_model(run, tmp_path):
    out, _ = run("vectors", "train.txt", "--output", "v.bin", "--method", "fasttext", *QUICK, "--nearest", "greenish")
    assert out.splitlines()[-1].startswith("greenish: ")
    run("vectors", "train.txt", "--output", "v.npz", "--method", "fasttext", *QUICK)
    model, words = open_vectors(tmp_path / "v.bin"), open_vectors(tmp_path / "v.npz")
    assert [*model.words, "<unk>"] == words.words
    np.testing.assert_allclose(model.of(model.words), words.of(model.words), rtol=2e-3, atol=1e-6)


def test_held_out_text_is_warned_of(run, tmp_path):
    out, _ = run("vectors", "train.txt", "test.txt", "--output", "w.npz", *QUICK, "--json", "w.json")
    assert "warning: test.txt is named like test or dev text; training on it inflates scores on it" in out
    assert json.loads((tmp_path / "w.json").read_text())["named_as_held_out"] == ["test.txt"]
    names = {"dev.jsonl.gz": True, "ncbi-test.txt": True, "latest.txt": False, "train.txt": False}
    assert {name: looks_held_out(tmp_path / name) for name in names} == names


def test_corpora_keep_their_words(run, tmp_path):
    lines(tmp_path / "c.jsonl", *({"id": str(n), "tokens": ["IL-2", "gene", "IL-2"], "entities": []} for n in range(9)))
    run("vectors", "c.jsonl", "--output", "v.txt.gz", "--size", 2)
    assert open_vectors(tmp_path / "v.txt.gz").words == ["IL-2", "gene", "<unk>"]


def test_a_text_file_of_columns_gives_its_words_and_no_tags(tmp_path):
    (tmp_path / "train.txt").write_text("IL-2 B-Gene\nis O\nup O\n\nMice O\nsleep O\n")
    assert list(TextWords([tmp_path / "train.txt"])) == [["IL-2", "is", "up"], ["Mice", "sleep"]]


def test_no_word_of_a_long_text_is_lost(tmp_path):
    (tmp_path / "long.txt").write_text("word " * (GENSIM_LIMIT + 3))
    assert [len(words) for words in TextWords([tmp_path / "long.txt"])] == [GENSIM_LIMIT, 3]


def test_what_cannot_be_done_is_said(run, monkeypatch):
    assert "give --output FILE to train vectors, or --nearest WORD" in run.refuses("vectors", "train.txt")
    assert "one file of vectors, not 2" in run.refuses("vectors", "a", "b", "--nearest", "x")
    assert "occur 5 times or more; give more text" in run.refuses("vectors", "test.txt", "--output", "v.npz")
    assert "written as .npz, .txt, .txt.gz or .bin" in run.refuses("vectors", "train.txt", "--output", "v.pkl")
    assert "or add --method fasttext" in run.refuses("vectors", "train.txt", "--output", "v.bin")
    unknown = run.refuses("vectors", "train.txt", "--output", "v.npz", "--splitter", "letters")
    assert "unknown splitter 'letters'; use one of auto, words, whitespace" in unknown
    run("vectors", "train.txt", "--output", "v.npz", *QUICK)
    assert "'nowhere' has no vector" in run.refuses("vectors", "v.npz", "--nearest", "nowhere")
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    assert "pip install 'wingspan-ner[gensim]'" in run.refuses("vectors", "train.txt", "--output", "v.npz")
