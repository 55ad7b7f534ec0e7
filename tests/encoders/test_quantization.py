"""Bases in 8 and 4 bits: frozen, not stored again, and one sentence where they cannot be."""

import json
import shutil
import sys
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from tiny import sentence
from tiny_models import tiny_t5

import wingspan
from trainings import alike, dev_documents, tiny, train_documents
from wingspan.encoders.lora import Lora, adapted_layers
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.model import tensors
from wingspan.training.run import parameter_counts


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Large enough for whole blocks of quantized numbers."""
    return tiny_t5(tmp_path_factory.mktemp("wide") / "t5", size=64)


def quantized(folder, bits: str, adapters: Lora | None = None) -> PretrainedEncoder:
    pytest.importorskip("bitsandbytes", reason="the extra quantized is not installed")
    return PretrainedEncoder(name=str(folder), quantize=bits, adapters=adapters, dropout=0.0)


def vectors(encoder) -> torch.Tensor:
    with torch.no_grad():
        return encoder.eval()(tensors(encoder.tokenize([sentence("the drugs in genexys")]), "cpu")).top


@pytest.mark.parametrize(("bits", "most"), [("8bit", 0.05), ("4bit", 0.5)])
def test_fewer_bits_give_nearly_the_same_vectors_and_learn_nothing(folder, bits, most):
    encoder = quantized(folder, bits)
    whole = PretrainedEncoder(name=str(folder), dropout=0.0)
    away = (vectors(encoder) - vectors(whole)).abs().mean()
    assert 0 < away < most
    assert not any(value.requires_grad for value in encoder.model.parameters())
    assert parameter_counts(encoder.model)[0] == parameter_counts(whole.model)[0]
    assert not [name for name in encoder.state_dict() if name.startswith("model.")]


def test_deep_spans_copy_no_quantized_blocks(folders):
    assert PretrainedEncoder(name=str(folders["bert"])).blocks is not None
    assert quantized(folders["bert"], "8bit").blocks is None


@pytest.mark.parametrize("bits", ["8bit", "4bit"])
def test_a_folder_holds_adapters_and_says_which_base(folder, folders, bits, tmp_path):
    pytest.importorskip("bitsandbytes", reason="the extra quantized is not installed")
    pytest.importorskip("peft", reason="the extra peft is not installed")
    base = tmp_path / "base"
    shutil.copytree(folder, base)
    lora = Lora(rank=2, alpha=4, dropout=0.1)
    recipe = tiny("baseline", epochs=2, learning_rate=5e-2)
    recipe = replace(recipe, encoder=partial(PretrainedEncoder, name=str(base), adapters=lora, quantize=bits))
    data = dict(train=train_documents(6), dev=dev_documents(2), device="cpu")
    model = wingspan.train(recipe, **data, output=tmp_path / "run")
    stored = load_file(tmp_path / "run" / "model.safetensors")
    inside = [name for name in stored if name.startswith("model.encoder.model.")]
    assert inside
    assert all(".lora_" in name for name in inside)
    said = json.loads((tmp_path / "run" / "encoder" / "base.json").read_text())
    assert said["name"] == str(base)
    assert len(said["sha256"]) == 64
    loaded = wingspan.load(tmp_path / "run", device="cpu")
    assert adapted_layers(loaded.learner)
    texts = dev_documents(3)
    assert alike(loaded.predict(texts, threshold=0.0), model.predict(texts, threshold=0.0), tolerance=0.0)

    def stop(progress):
        if progress.position.epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wingspan.train(recipe, **data, output=tmp_path / "two", watch=stop)
    wingspan.train(recipe, **data, output=tmp_path / "two", resume=True)
    resumed = load_file(tmp_path / "two" / "model.safetensors")
    assert all(torch.equal(resumed[name], value) for name, value in stored.items())
    shutil.copyfile(folders["bert"] / "model.safetensors", base / "model.safetensors")
    with pytest.raises(ValueError, match="other weights now|cannot be loaded"):
        wingspan.load(tmp_path / "run", device="cpu")


def test_a_missing_extra_is_one_sentence(folders, monkeypatch):
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    with pytest.raises(ValueError, match=r"quantize=4bit needs bitsandbytes; .*'wingspan-ner\[quantized\]'"):
        PretrainedEncoder(name=str(folders["t5"]), quantize="4bit")


@pytest.mark.parametrize("bits", ["8bit", "4bit"])
def test_a_platform_without_kernels_is_one_sentence(folders, monkeypatch, bits):
    def no_kernel(*_, **__):
        raise NotImplementedError("no kernel for this device")

    stand_in = SimpleNamespace(nn=SimpleNamespace(Linear4bit=no_kernel, Linear8bitLt=no_kernel))
    monkeypatch.setitem(sys.modules, "bitsandbytes", stand_in)
    with pytest.raises(ValueError, match=rf"quantize={bits} does not work on this platform \(no kernel.*leave it out"):
        PretrainedEncoder(name=str(folders["t5"]), quantize=bits)
