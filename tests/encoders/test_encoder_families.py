"""A canary for each family of encoders: weights that need no random generator, numbers from plain transformers 5.22.

They fall over when a new torch or transformers changes positions, norms, activations or the names of weights silently.
"""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny import sentence
from tiny_models import tiny_t5

from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.model import tensors

SENTENCE = sentence("the drugs in genexys")
NUMBERS = {  # the first three of the first word, the last three of the last one, of max-pooled pieces
    "bert": [-0.249419, -0.979847, 1.227041, 1.170509, 3.596107, 1.166688],
    "roberta": [1.484729, 0.176348, 1.052779, 0.852179, 1.575268, 1.388707],
    "t5": [0.716396, 0.757586, -0.116931, 0.470514, 0.774037, 0.225417],
    "t5-1.1": [1.421077, 1.048351, 1.16594, 0.622786, 0.734878, 0.982043],
    "bart": [0.527734, 1.147581, 0.371162, 1.125532, 1.365514, 1.637564],
}
PIECES = {
    "bert": [1, 2, 1, 3],
    "roberta": [4, 2, 3, 4],
    "t5": [1, 2, 1, 3],
    "t5-1.1": [1, 2, 1, 3],
    "bart": [4, 2, 3, 4],
}


@pytest.fixture(scope="module")
def fixed(folders, tmp_path_factory):
    """The tiny encoders with weights of a sine, so that the same numbers are in them everywhere."""
    root = tmp_path_factory.mktemp("fixed")
    found = {**folders, "t5-1.1": tiny_t5(root / "gated", "gated-gelu")}
    for family, folder in found.items():
        shutil.copytree(folder, root / family)
        path = root / family / "model.safetensors"
        weights = load_file(path)
        for at, name in enumerate(sorted(weights)):
            value = weights[name]
            wave = torch.sin(0.37 * torch.arange(value.numel(), dtype=torch.float64) + at).view_as(value)
            weights[name] = ((1.0 if "norm" in name.lower() else 0.0) + 0.5 * wave).to(value.dtype)
        save_file(weights, path, {"format": "pt"})
    return {family: root / family for family in found}


@pytest.mark.parametrize("family", NUMBERS)
def test_numbers_of_a_fixed_sentence(fixed, family):
    encoder = PretrainedEncoder(name=str(fixed[family]), shapes=False).eval()
    assert encoder.tokenize.measure(SENTENCE.words) == PIECES[family]
    with torch.no_grad():
        top = encoder(tensors(encoder.tokenize([SENTENCE, sentence("a")]), "cpu")).top[0]
    found = torch.cat([top[0, :3], top[3, -3:]])
    torch.testing.assert_close(found, torch.tensor(NUMBERS[family]), rtol=0, atol=1e-4)
