"""Canaries on real weights: the stored numbers are from plain transformers 5.22 (max over the pieces of each word).

They fall over when a new torch or transformers changes a tokenizer, an attention kernel or a weight's name silently.
"""

import os
from pathlib import Path

import pytest
import torch
from tiny import sentence

from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.model import tensors

ROOT = os.environ.get("WINGSPAN_ENCODERS")
pytestmark = pytest.mark.skipif(
    not (ROOT and (Path(ROOT) / "e5-small").is_dir()), reason="WINGSPAN_ENCODERS names no folder with real encoders"
)

SENTENCE = sentence("Cisplatin resistance follows the loss of BRCA1 in ovarian tumor cells .")
PIECES = [3, 1, 1, 1, 1, 1, 3, 1, 3, 1, 1, 1]
NUMBERS = {  # the first four of words 0 and 6, the last four of word 11, the first four of the sentence
    "minilm": [
        [0.844994, 0.111753, 0.078208, 0.157342],
        [0.134054, 0.350644, 0.745358, 0.013606],
        [-0.939535, -0.098097, 0.383462, 0.101345],
        [0.121544, -0.109528, -0.062877, -0.480386],
    ],
    "e5-small": [
        [0.357900, 0.140832, -0.505762, 0.346460],
        [0.265948, -0.165557, -0.327945, 0.219324],
        [0.163689, 0.026244, -0.073279, 0.363328],
        [0.162531, -0.231807, -0.368921, 0.159995],
    ],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_a_fixed_sentence(name):
    encoder = PretrainedEncoder(name=name).eval()
    assert encoder.tokenize.measure(SENTENCE.words) == PIECES
    assert encoder.shapes is not None  # uncased
    with torch.no_grad():
        words = encoder(tensors(encoder.tokenize([SENTENCE, sentence("no")]), "cpu"))
    top = words.top[0]
    found = torch.stack([top[0, :4], top[6, :4], top[11, -4:], words.sentence[0, :4]])
    torch.testing.assert_close(found, torch.tensor(NUMBERS[name]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", NUMBERS)
def test_nothing_is_cut_off_at_128_pieces(name):
    encoder = PretrainedEncoder(name=name)
    assert encoder.tokenize.max_length == 510
    inputs = encoder.tokenize([sentence(" ".join(["cells"] * 400))])
    assert inputs.tokens.shape == (1, 402)
