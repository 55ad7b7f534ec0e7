"""`wingspan vectors` as users run it."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from shells import Shell, lines

from wingspan.cli.vectors import with_unknown
from wingspan.encoders.vectors import about, open_vectors
from wingspan.training.vector_training import looks_held_out

COLORS, ANIMALS = ("red", "blue", "green", "pink"), ("cat", "dog", "cow", "hen")


def texts() -> list[str]:
    """Colors stand with Paint, animals with Feed; never one with the other."""
    draw = np.random.default_rng(0)
    made = []
    for _ in range(150):
        for kind, word in ((COLORS, "Paint"), (ANIMALS, "Feed")):
            one, other = draw.choice(kind, 2, replace=False)
            made.append(f"{word} {one} {other}")
    return made


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    (tmp_path / "train.txt").write_text("\n".join(texts()))
    (tmp_path / "test.txt").write_text("PAINT red blue\nA text of its own\n")
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capsys, tmp_path)


QUICK = ("--size", 6, "--epochs", 30, "--threads", 1)


def test_what_stands_together_is_near(run):
    shown = ("--nearest", "RED", "--nearest", "dog", "--count", 14)
    out, err = run("vectors", "train.txt", "--output", "v.npz", *QUICK, *shown)
    assert err == ""
    said = out.splitlines()
    assert said[0].startswith("900 words in 300 texts, ")
    assert said[1] == "11 vectors of 6 numbers"  # ten words and <unk>
    near = {line.split(":")[0]: [part.split()[0] for part in line.split(":")[1].split(",")] for line in said[-2:]}
    for asked, kind in (("RED", COLORS), ("dog", ANIMALS)):
        others = [word for word in near[asked] if word in (*COLORS, *ANIMALS)]
        assert set(others[:3]) == {*kind} - {asked.lower()}


def test_a_file_says_how_it_was_made_and_the_same_seed_makes_it_again(run, tmp_path):
    options = ("vectors", "train.txt", *QUICK, "--lower-case", "--json", "v.json")
    run(*options, "--output", "one.npz")
    figures = json.loads((tmp_path / "v.json").read_text())
    assert figures["running_words"] == 900
    assert len(figures["losses"]) == 30
    assert figures["losses"][-1] < figures["losses"][0] / 2
    assert figures["words_per_second"]["training"] > 0
    assert figures["peak_memory_mib"] > 10
    assert figures["settings"]["window"] == 10
    stored = about(tmp_path / "one.npz")
    assert stored == figures
    run(*options, "--output", "two.npz")
    one, two = (open_vectors(tmp_path / name) for name in ("one.npz", "two.npz"))
    assert one.first(99) == two.first(99)
    assert one.first(2) == ["paint", "feed"]  # the most frequent
    assert "Paint" not in one
    assert np.array_equal(one.vectors, two.vectors)
    run(*options, "--output", "three.npz", "--seed", 2)
    assert not np.array_equal(one.vectors, open_vectors(tmp_path / "three.npz").vectors)


def test_little_memory_gives_the_same_vectors(run, tmp_path, monkeypatch):
    run("vectors", "train.txt", "--output", "one.txt", *QUICK)
    monkeypatch.setattr("wingspan.cli.vectors.BYTES_PER_PAIR", 16 * 2**20 / 10)
    monkeypatch.setattr("wingspan.training.vector_training.AT_ONCE", 100)
    run("vectors", "train.txt", "--output", "two.txt", *QUICK, "--memory", 16)
    assert (tmp_path / "one.txt").read_text() == (tmp_path / "two.txt").read_text()


def test_held_out_text_is_said(run, tmp_path):
    out, _ = run("vectors", "train.txt", "--output", "v.npz", *QUICK, "--against", "test.txt")
    assert "warning: 1 of the 2 different texts of test.txt are in the training text" in out
    out, _ = run("vectors", "train.txt", "test.txt", "--output", "w.npz", *QUICK)
    assert "warning: test.txt is named as test or dev text; vectors that saw it make scores on it too good" in out
    assert about(tmp_path / "w.npz")["named_as_held_out"] == ["test.txt"]
    assert [
        looks_held_out(tmp_path / name) for name in ("dev.jsonl.gz", "ncbi-test.txt", "latest.txt", "train.txt")
    ] == [
        True,
        True,
        False,
        False,
    ]


def test_corpora_keep_their_words(run, tmp_path):
    lines(tmp_path / "c.jsonl", *({"id": str(n), "tokens": ["IL-2", "gene", "IL-2"], "entities": []} for n in range(9)))
    run("vectors", "c.jsonl", "--output", "v.txt.gz", "--size", 2)
    assert open_vectors(tmp_path / "v.txt.gz").first(9) == ["IL-2", "gene", "<unk>"]


def test_what_cannot_be_done_is_said(run, tmp_path):
    assert "give --output FILE to train vectors, or --nearest WORD" in run.refuses("vectors", "train.txt")
    assert "one file of vectors, not 2" in run.refuses("vectors", "a", "b", "--nearest", "x")
    assert "stand 5 times or more; give more text" in run.refuses("vectors", "test.txt", "--output", "v.npz")
    assert "written as .npz, .txt or .txt.gz" in run.refuses("vectors", "train.txt", "--output", "v.pkl", *QUICK)
    unknown = run.refuses("vectors", "train.txt", "--output", "v.npz", "--splitter", "letters")
    assert "unknown splitter 'letters'; use one of words, whitespace" in unknown
    (tmp_path / "one.txt").write_text("a\nb\n" * 9)
    assert "no two words stand in one text" in run.refuses("vectors", "one.txt", "--output", "v.npz")
    run("vectors", "train.txt", "--output", "v.npz", *QUICK)
    assert "'nowhere' has no vector" in run.refuses("vectors", "v.npz", "--nearest", "nowhere")


def test_gensim_is_an_extra(run, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    refused = run.refuses("vectors", "train.txt", "--output", "v.npz", "--method", "word2vec")
    assert "pip install 'wingspan[gensim]', or leave --method at glove" in refused
    given = {}

    def model(sentences, **settings):
        given.update(settings, texts=sum(1 for _ in sentences), again=sum(1 for _ in sentences))
        return SimpleNamespace(wv=SimpleNamespace(index_to_key=["red", "cat"], vectors=np.eye(2, 4)))

    monkeypatch.setitem(sys.modules, "gensim.models", SimpleNamespace(Word2Vec=model, FastText=None))
    run("vectors", "train.txt", "--output", "v.npz", "--method", "word2vec", "--size", 4)
    assert given == {"vector_size": 4, "window": 10, "min_count": 5, "epochs": 25, "seed": 1, "sg": 1, "workers": 1} | {
        "texts": 300,
        "again": 300,
    }
    assert open_vectors(tmp_path / "v.npz").of(["cat", "<unk>"]).tolist() == [[0, 1, 0, 0], [0.5, 0.5, 0, 0]]


def test_the_unknown_word_is_the_mean_of_the_rarest():
    words, vectors = with_unknown([str(n) for n in range(150)], np.arange(150, dtype=np.float32)[:, None])
    assert words[-1] == "<unk>"
    assert vectors[-1, 0] == np.arange(50, 150).mean()
    assert with_unknown(["<unk>", "b"], vectors)[0] == ["<unk>", "b"]
