"""Static vectors: which words have one, what the others get, and that a saved model needs no file."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from tiny import sentence

import wingspan
from trainings import FAST, dev_documents, entities, train_documents
from wingspan.encoders.static import StaticEncoder
from wingspan.model import tensors
from wingspan.recipes import find
from wingspan.tokenizing.static import bucket_of, buckets_of
from wingspan.training.fit import fit
from wingspan.training.run import with_encoder

TRAIN = [sentence("the Red cell lacks ABC1 the")]
DEV = [sentence("blue Cells")]
FILE = {"the": [1, 2], "red": [3, 4], "cell": [5, 6], "blue": [7, 8], "rest": [9, 1], "far": [2, 2]}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("".join(f"{word} {row[0]} {row[1]}\n" for word, row in FILE.items()))
    return str(path)


def studied(**settings) -> StaticEncoder:
    torch.manual_seed(0)
    encoder = StaticEncoder(**settings).eval()
    encoder.study(TRAIN, DEV)
    return encoder


def encode(encoder, *texts):
    with torch.no_grad():
        return encoder(tensors(encoder.tokenize([sentence(text) for text in texts]), "cpu"))


def test_words_are_looked_up_and_nothing_else(file):
    words = encode(studied(vectors=file, unknown="zero"), "The red CELL nowhere", "blue")
    assert words.top.tolist() == [[[1, 2], [3, 4], [5, 6], [0, 0]], [[7, 8], [0, 0], [0, 0], [0, 0]]]
    assert words.sentence.tolist() == [[2.25, 3.0], [7, 8]]
    assert words.mask.sum(1).tolist() == [4, 1]


def test_which_words_are_kept(file):
    kept = {keep: set(studied(vectors=file, keep=keep).tokenize.rows) for keep in (0, 5, None)}
    assert kept == {0: {"the", "red", "cell", "blue"}, 5: {"the", "red", "cell", "blue", "rest"}, None: set(FILE)}


def test_case(file):
    assert encode(studied(vectors=file, case="exact", unknown="zero"), "The the").top.tolist() == [[[0, 0], [1, 2]]]
    (mixed := file.replace("v.txt", "mixed.txt"))
    with open(mixed, "w") as out:
        out.write("the 1 2\nThe 3 4\nABC1 5 6\n")
    assert encode(studied(vectors=mixed), "The the THE").top.tolist() == [[[3, 4], [1, 2], [1, 2]]]
    assert encode(studied(vectors=mixed, case="lower", unknown="zero"), "The ABC1").top.tolist() == [[[1, 2], [0, 0]]]


def test_unknown_words(file):
    mean = encode(studied(vectors=file, keep=None), "nowhere").top[0, 0]
    torch.testing.assert_close(mean, torch.tensor(list(FILE.values()), dtype=torch.float32).mean(0))
    with open(file, "a") as out:
        out.write("<unk> 0.25 0.5\n")
    for keep in (0, None):  # whether it is among the words that are kept or not
        assert encode(studied(vectors=file, keep=keep), "nowhere").top.tolist() == [[[0.25, 0.5]]]
    random = encode(studied(vectors=file, unknown="random", buckets=50), "nowhere elsewhere nowhere").top[0]
    assert torch.equal(random[0], random[2])
    assert not torch.equal(random[0], random[1])
    again = encode(studied(vectors=file, unknown="random", buckets=50), "elsewhere").top[0]
    assert torch.equal(again[0], random[1])


@pytest.mark.parametrize("unknown", ["mean", "random", "hashed"])
def test_a_file_that_knows_no_word_at_all(tmp_path, unknown):
    (tmp_path / "v.txt").write_text("elsewhere 1 2\n")
    encoder = studied(vectors=str(tmp_path / "v.txt"), keep=0, unknown=unknown, buckets=5)
    assert not encode(encoder, "the red").top.any()


def test_hashed_words_are_the_mean_of_the_words_that_share_their_parts(file):
    encoder = studied(vectors=file, unknown="hashed", buckets=7)
    words = [word for word in FILE]
    rows = {bucket: [FILE[word] for word in words if bucket in buckets_of(word, 7)] for bucket in range(7)}
    for word in ("reds", "nowhere", "x"):
        expected = np.mean([np.mean(rows[b], 0) if rows[b] else np.zeros(2) for b in buckets_of(word, 7)], 0)
        top = encode(encoder, f"the {word} cell").top[0]
        np.testing.assert_allclose(top[1], expected, rtol=1e-5)
        assert top[[0, 2]].tolist() == [[1, 2], [5, 6]]


def test_buckets_are_the_same_in_every_process():
    assert bucket_of("abc", 2**32) == 0x352441C2
    assert buckets_of("ab", 10_000) == tuple(sorted(bucket_of(gram, 10_000) for gram in ("<ab", "ab>", "<ab>")))
    assert buckets_of("", 100) == (bucket_of("<>", 100),)
    assert len(buckets_of("a" * 300_000, 10**9)) == 3 * 3  # beginnings, insides and ends of three lengths


def test_only_training_words_are_trained(file):
    encoder = studied(vectors=file, trained=True, unknown="mean")
    assert encoder.tokenize.num_learned == 5  # the, red, cell, lacks, ABC1
    assert list(encoder.tokenize.rows)[:5] == ["the", "red", "cell", "lacks", "ABC1"]
    before = encode(encoder, "the lacks blue nowhere").top[0]
    assert before[[0, 2]].tolist() == [[1, 2], [7, 8]]
    assert torch.equal(before[1], before[3])  # a word without a vector starts as an unknown one
    words = encoder(tensors(encoder.tokenize([sentence("the lacks blue nowhere the")]), "cpu"))
    words.top.sum().backward()
    assert encoder.learned.grad.tolist() == [[2, 2], [0, 0], [0, 0], [1, 1], [0, 0]]
    assert not any(parameter.requires_grad for parameter in studied(vectors=file).parameters())


def test_a_random_table_has_a_row_for_each_training_word():
    encoder = studied(size=4)
    assert set(encoder.tokenize.rows) == {"the", "Red", "cell", "lacks", "ABC1"}
    assert torch.equal(encode(encoder, "Red").top, encode(studied(size=4), "Red").top)
    assert encoder.size == 4
    assert "a random draw" in encoder.lines()[0]


def test_what_is_said(file):
    (line,) = studied(vectors=file).lines()
    assert "2 numbers" in line
    assert "3 of 5 different training words have one (66.7% of the text), others: mean" in line


@pytest.mark.parametrize("unknown", ["zero", "hashed"])
def test_padding_and_other_sentences_change_nothing(file, unknown):
    torch.manual_seed(0)
    encoder = studied(vectors=file, unknown=unknown, hidden=3)
    texts = ["the", "nowhere at all is the red cell", "elsewhere blue"]
    together = encode(encoder, *texts)
    assert together.top.shape == (3, 7, encoder.size) == (3, 7, 2 + 6)
    for row, text in enumerate(texts):
        alone = encode(encoder, text)
        torch.testing.assert_close(together.top[row, : alone.top.shape[1]], alone.top[0])
        torch.testing.assert_close(together.sentence[row], alone.sentence[0])


@pytest.mark.parametrize("word", ["a" * 300_000, "\ud800", "", "👩‍👩‍👧"])
@pytest.mark.parametrize("unknown", ["random", "hashed"])
def test_any_word_has_a_vector(file, word, unknown):
    odd = type(TRAIN[0])(("the", word), (), (0, 2), (0, 2), ())
    for settings in ({"vectors": file, "trained": True}, {"size": 3}):
        encoder = StaticEncoder(unknown=unknown, buckets=9, **settings)
        encoder.study([odd], ())
        assert torch.isfinite(encoder(tensors(encoder.tokenize([odd]), "cpu")).top).all()


@pytest.fixture
def vectors(tmp_path):
    """Vectors of half the words of the invented corpus."""
    words = sorted({word for document in train_documents() for word in document.text.lower().split()})[::2]
    path = tmp_path / "vectors.npz"
    np.savez(path, words=np.array(words), vectors=np.random.default_rng(0).standard_normal((len(words), 6)))
    return path


@pytest.mark.parametrize(
    ("recipe", "settings"),
    [
        ("baseline", {"trained": True, "unknown": "hashed", "buckets": 40, "hidden": 4}),
        ("bundling/bl-span", {"unknown": "random", "buckets": 40, "keep": 10}),
        ("bundling/bl-seq", {"hidden": 4, "case": "lower"}),
    ],
)
def test_a_saved_model_predicts_the_same_without_the_file(tmp_path, vectors, recipe, settings):
    chosen = replace(
        find(recipe), encoder=partial(StaticEncoder, vectors=str(vectors), **settings), train=replace(FAST, epochs=2)
    )
    model = wingspan.train(chosen, train=train_documents(), dev=dev_documents(), output=tmp_path / "model")
    vectors.unlink()
    again = wingspan.load(tmp_path / "model")
    text = dev_documents()[0].text + " Unheard of words."
    assert entities(again.predict(text, threshold=0.05)) == entities(model.predict(text, threshold=0.05))
    before, after = (encode(one.learner.model.encoder, text).top for one in (model, again))
    assert torch.equal(before, after)
    assert len(before[0].unique(dim=0)) > 20
    assert "Static vectors: 6 numbers" in (tmp_path / "model" / "README.md").read_text()
    (tmp_path / "model" / "vocabulary.json").write_text('{"size": 6}')
    with pytest.raises(ValueError, match="vocabulary.json: damaged"):
        wingspan.load(tmp_path / "model")


def test_going_on_from_a_saved_model_keeps_its_words(tmp_path, vectors):
    recipe = replace(find("baseline"), encoder=partial(StaticEncoder, vectors=str(vectors)), train=FAST)
    model = wingspan.train(recipe, train=train_documents(), output=tmp_path / "one")
    vectors.unlink()
    more = wingspan.train(recipe, train=dev_documents(), start=tmp_path / "one")
    assert more.learner.model.encoder.tokenize.rows == model.learner.model.encoder.tokenize.rows


def test_a_frozen_table_is_not_changed_by_training(vectors):
    recipe = replace(find("baseline"), encoder=partial(StaticEncoder, vectors=str(vectors), hidden=4), train=FAST)
    before = fit(recipe, train_documents(), seed=1).learner.model.encoder.fixed.clone()
    model = wingspan.train(recipe, train=train_documents())
    assert torch.equal(model.learner.model.encoder.fixed, before)


def test_from_the_shell(file, vectors):
    recipe = with_encoder(find("bundling/bl-span"), "static:random")
    assert recipe.encoder.func is StaticEncoder
    assert recipe.encoder.keywords == {"vectors": None, "hidden": 128, "dropout": 0.3}
    assert recipe.train.learning_rate == 2e-3
    slow = replace(recipe, encoder=partial(StaticEncoder, trained=True), train=FAST)
    again = with_encoder(slow, f"static:{vectors}")
    assert again.encoder.keywords == {"trained": True, "vectors": str(vectors)}
    assert again.train == FAST
    assert with_encoder(again, "static:random").encoder.keywords["vectors"] is None
    with pytest.raises(ValueError, match="nowhere.txt: no such file of word vectors"):
        with_encoder(recipe, "static:nowhere.txt").encoder()
    with pytest.raises(ValueError, match="Transformer"):
        fit(with_encoder(find("deep_span"), f"static:{file}"), train_documents())
