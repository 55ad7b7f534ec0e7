import subprocess
import sys

import pytest
import torch
from tiny import of_length, sentence

from wingspan.encoders.hashed import HashedEncoder
from wingspan.model import tensors
from wingspan.tokenizing.hashed import FEATURES, features

SENTENCE = sentence("Aspirin lowers BRCA1 levels in 3 of 10 mice .")


def encode(encoder: HashedEncoder, sentences):
    with torch.no_grad():
        return encoder(tensors(encoder.tokenize(sentences), "cpu"))


@pytest.fixture
def encoder() -> HashedEncoder:
    torch.manual_seed(0)
    return HashedEncoder(buckets=500, embedding=8, hidden=12).eval()


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
    rebuilt = HashedEncoder.rebuild(tmp_path, buckets=500, embedding=8, hidden=12).eval()
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
