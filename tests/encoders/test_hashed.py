import json
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
import torch
from tiny import of_length, sentence

import wingspan
from trainings import FAST, dev_documents, entities, train_documents
from wingspan.encoders import Encoder
from wingspan.encoders.hashed import ConvolvedEncoder, HashedEncoder
from wingspan.model import tensors
from wingspan.recipes import find
from wingspan.tokenizing.hashed import FEATURES, features
from wingspan.training.run import with_encoder

SENTENCE = sentence("Aspirin lowers BRCA1 levels in 3 of 10 mice .")


def encode(encoder: Encoder, sentences):
    with torch.no_grad():
        return encoder(tensors(encoder.tokenize(sentences), "cpu"))


@pytest.fixture(params=[HashedEncoder, ConvolvedEncoder])
def encoder(request) -> Encoder:
    torch.manual_seed(0)
    return request.param(buckets=500, embedding=8, hidden=12).eval()


def test_one_vector_per_word(encoder):
    words = encode(encoder, [SENTENCE, of_length(3)])
    assert words.top.shape == (2, 10, encoder.size)
    assert words.sentence.shape == (2, encoder.size)
    assert words.mask.sum(1).tolist() == [10, 3]
    assert words.layers == ()
    assert encoder.blocks is None


def test_padding_and_other_sentences_change_nothing(encoder):
    sentences = [of_length(3), SENTENCE, of_length(1)]
    together = encode(encoder, sentences)
    for row, one in enumerate(sentences):
        alone = encode(encoder, [one])
        torch.testing.assert_close(together.top[row, : len(one.words)], alone.top[0], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(together.sentence[row], alone.sentence[0], rtol=1e-5, atol=1e-6)
    assert not together.top[0, 3:].any()


def test_features_are_the_same_in_every_process():
    # Python's own hash of strings differs from process to process; this must not
    code = "from wingspan.tokenizing.hashed import features; print(features('Aspirin'), features('été'))"
    seen = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert seen == {f"{features('Aspirin')} {features('été')}\n"}
    assert features("Aspirin")[0] == 1522613899  # crc32 of "wAspirin" without its highest bit


def test_words_share_what_they_have_in_common():
    one, other = features("Glucosamine"), features("glucosamine")
    assert one[0] != other[0]  # the word itself
    assert one[1] == other[1]  # without capitals
    assert features("walking")[5:8] == features("talking")[5:8]  # the ends
    assert features("walking")[2:5] == features("walked")[2:5]  # the beginnings
    assert features("Abc1")[8] == features("Xyzzy22")[8] != features("abc1")[8]  # the shape
    assert len(one) == FEATURES


@pytest.mark.parametrize("word", ["a" * 300_000, "\ud800", "", "e\u0301", "👩‍👩‍👧", "مرض", "\u200b"])
def test_any_word_has_a_vector(encoder, word):
    odd = type(SENTENCE)(("before", word, "after"), (), (0, 3), (0, 3), ())
    words = encode(encoder, [odd])
    assert torch.isfinite(words.top).all()
    assert encoder.tokenize.measure(odd.words) == [1, 1, 1]


def test_long_words_differ_by_their_ends():
    assert features("a" * 100 + "tion") != features("a" * 100 + "ness")


def test_a_sentence_without_words(encoder):
    words = encode(encoder, [sentence(""), of_length(2)])
    assert not words.mask[0].any()
    assert not words.top[0].any()
    assert torch.isfinite(words.sentence).all()


def test_every_parameter_learns(encoder):
    inputs = tensors(encoder.tokenize([SENTENCE]), "cpu")
    encoder(inputs).top.square().sum().backward()
    assert all(float(parameter.grad.abs().sum()) > 0 for parameter in encoder.parameters())


def test_it_is_rebuilt_from_its_settings(encoder, tmp_path):
    encoder.save_files(tmp_path)
    rebuilt = type(encoder).rebuild(tmp_path, buckets=500, embedding=8, hidden=12).eval()
    rebuilt.load_state_dict(encoder.state_dict())
    assert torch.equal(encode(rebuilt, [SENTENCE]).top, encode(encoder, [SENTENCE]).top)


def test_numbers_of_a_fixed_sentence():
    """A canary: it falls over when hashing, initialization or the LSTM changes silently."""
    torch.manual_seed(0)
    words = encode(HashedEncoder().eval(), [SENTENCE])
    found = torch.stack([words.top[0, 0, :4], words.top[0, 9, -4:], words.sentence[0, 126:130]])
    expected = torch.tensor(
        [
            [-0.671059, -0.671059, -0.671059, 0.097833],
            [-0.012027, 0.107655, -0.037836, -0.062373],
            [0.057303, 0.332867, 0.014073, -0.048875],
        ]
    )
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_convolutions_see_as_many_words_as_they_are_deep():
    torch.manual_seed(0)
    encoder = ConvolvedEncoder(buckets=500, embedding=8, hidden=12, depth=2).eval()
    words = list("abcdefg")
    before, after = (encode(encoder, [sentence(" ".join([*words[:-1], last]))]).top[0] for last in ("g", "other"))
    same = [bool(torch.equal(one, other)) for one, other in zip(before, after, strict=True)]
    assert same == [True] * 4 + [False] * 3


# Word vectors beside the features

FILE = {"the": [1, 2], "red": [3, 4], "cell": [5, 6], "blue": [7, 8], "rest": [9, 1], "far": [2, 2]}
TRAIN, DEV = [sentence("the Red cell lacks ABC1 the")], [sentence("blue Cells")]
SMALL = {"buckets": 500, "embedding": 8, "hidden": 12}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("".join(f"{word} {row[0]} {row[1]}\n" for word, row in FILE.items()))
    return str(path)


def studied(file, **settings) -> ConvolvedEncoder:
    torch.manual_seed(0)
    encoder = ConvolvedEncoder(vectors=file, **SMALL, **settings).eval()
    encoder.study(TRAIN, DEV)
    return encoder


def rows_of(encoder, text: str) -> list[int]:
    return [own[FEATURES] for own in encoder.tokenize.cut(text.split())]


def test_words_have_their_vectors_on_one_scale(file):
    encoder = studied(file, keep=0)
    assert list(encoder.tokenize.rows) == ["the", "red", "cell", "blue"]
    assert rows_of(encoder, "The RED cell nowhere rest") == [1, 2, 3, 0, 0]
    assert encoder.known[0].tolist() == [0, 0]
    assert float(encoder.known[1:].square().mean()) == pytest.approx(1.0)
    assert float(encoder.known[2, 1] / encoder.known[1, 0]) == pytest.approx(4.0)
    assert "3 of 5 different training words have one; 4 words kept" in encoder.lines()[0]
    assert len(studied(file, keep=5).tokenize.rows) == 5
    assert len(studied(file, keep=None).tokenize.rows) == len(FILE)


def test_case_of_vectors(file):
    assert rows_of(studied(file, case="exact", keep=None), "The the") == [0, 1]
    assert rows_of(studied(file, case="lower", keep=None), "The the") == [1, 1]


def test_vectors_change_a_word_and_its_surroundings_only(file):
    encoder = studied(file, depth=1)
    before = encode(encoder, [sentence("the red cell lacks ABC1")]).top[0]
    encoder.known[1] += 1.0
    after = encode(encoder, [sentence("the red cell lacks ABC1")]).top[0]
    assert (before != after).any(-1).tolist() == [True, True, False, False, False]


def test_a_file_that_knows_no_word(tmp_path):
    (tmp_path / "v.txt").write_text("elsewhere 1 2\n")
    encoder = studied(str(tmp_path / "v.txt"), keep=0)
    assert torch.isfinite(encode(encoder, [SENTENCE]).top).all()


def test_a_saved_model_needs_no_file_of_vectors(file, tmp_path):
    recipe = replace(find("baseline"), encoder=partial(ConvolvedEncoder, vectors=file, **SMALL), train=FAST)
    model = wingspan.train(recipe, train=train_documents(), dev=dev_documents(), output=tmp_path / "model")
    (tmp_path / "v.txt").unlink()
    again = wingspan.load(tmp_path / "model")
    texts = [document.text for document in dev_documents()]
    assert entities(again.predict(texts)) == entities(model.predict(texts))
    vocabulary = next((tmp_path / "model").rglob("vocabulary.json"))
    vocabulary.write_text(json.dumps({"size": 2}))
    with pytest.raises(ValueError, match="vocabulary.json: damaged"):
        wingspan.load(tmp_path / "model")


def test_encoders_from_the_shell(file):
    plain = find("baseline")
    assert with_encoder(plain, "hashed").encoder.keywords == plain.encoder.keywords
    beside = with_encoder(plain, f"static:{file}")
    assert beside.encoder.func is ConvolvedEncoder
    assert beside.encoder.keywords == {**plain.encoder.keywords, "vectors": file}
    assert beside.train == plain.train
    assert with_encoder(beside, "hashed").encoder.keywords == plain.encoder.keywords
    other = with_encoder(find("bundling/bl-span"), f"static:{file}")
    assert other.encoder.keywords == {"vectors": file}
    assert other.train.learning_rate == 2e-3


def test_a_word_too_long_to_be_met_again_has_no_lower_case_of_its_own():
    one, other = (features(letter * 70) for letter in "xy")
    assert one[1] == other[1]
    assert features("Xyz")[1] != features("Xyw")[1]
