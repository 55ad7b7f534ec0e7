"""Where an encoder's weights come from, and what is said when they cannot be had."""

import hashlib
import json
import shutil

import pytest
import torch
from tiny_models import tiny_bert
from transformers import AutoModel

from wingspan.encoders.loading import SHORT_NAMES, locate
from wingspan.encoders.pretrained import PretrainedEncoder


def test_a_short_name_is_a_folder_under_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("WINGSPAN_ENCODERS", str(tmp_path))
    tiny_bert(tmp_path / "all-MiniLM-L6-v2")
    assert locate("minilm") == str(tmp_path / "all-MiniLM-L6-v2")
    assert PretrainedEncoder(name="minilm").size == 8
    assert locate("e5-small") == "intfloat/e5-small"  # not there
    assert locate("some/folder") == "some/folder"


@pytest.fixture
def package(monkeypatch, tmp_path):
    """An installed package with weights, whose code must not run."""
    monkeypatch.delenv("WINGSPAN_ENCODERS", raising=False)
    known = SHORT_NAMES["minilm"]
    root = tmp_path / known.package
    root.mkdir()
    (root / "__init__.py").write_text("raise RuntimeError('the code of the package was run')")
    weights = tiny_bert(root / known.inside) / "model.safetensors"
    monkeypatch.syspath_prepend(tmp_path)
    return root / known.inside, hashlib.sha256(weights.read_bytes()).hexdigest()


def test_a_package_with_other_weights_is_not_used(package):
    assert locate("minilm") == "sentence-transformers/all-MiniLM-L6-v2"


def test_a_package_with_the_right_weights_is_used_and_not_imported(package, monkeypatch):
    folder, digest = package
    monkeypatch.setitem(SHORT_NAMES, "minilm", SHORT_NAMES["minilm"]._replace(sha256=digest))
    assert locate("minilm") == str(folder)
    assert PretrainedEncoder(name="minilm").size == 8


def no_weights(folder):
    (folder / "model.safetensors").unlink()


def damaged_weights(folder):
    (folder / "model.safetensors").write_bytes(b"not weights")


def pickled_weights(folder):
    model = AutoModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def no_tokenizer(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def damaged_config(folder):
    (folder / "config.json").write_text("{]")


def unknown_kind(folder):
    (folder / "config.json").write_text('{"model_type": "unheard-of"}')


def with_code(folder):
    (folder / "own.py").write_text(f"open({str(folder / 'was-run')!r}, 'w').close()")
    config = {"model_type": "unheard-of", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize(
    "harm", [no_weights, damaged_weights, pickled_weights, no_tokenizer, damaged_config, unknown_kind, with_code]
)
def test_what_cannot_be_loaded_is_one_sentence(harm, folder, tmp_path):
    harmed = tmp_path / "harmed"
    shutil.copytree(folder, harmed)
    harm(harmed)
    with pytest.raises(ValueError, match="cannot be loaded") as caught:
        PretrainedEncoder(name=str(harmed))
    assert "\n" not in str(caught.value)
    assert "--encoder hashed" in str(caught.value)
    assert not (harmed / "was-run").exists()


def test_pickled_weights_are_refused_with_the_way_to_write_others(folder, tmp_path):
    harmed = tmp_path / "harmed"
    shutil.copytree(folder, harmed)
    pickled_weights(harmed)
    with pytest.raises(ValueError, match=r"no model\.safetensors; .*save_pretrained"):
        PretrainedEncoder(name=str(harmed))


@pytest.mark.parametrize("name", ["/no/such/folder", "no such name", "nobody/nothing"])
def test_a_name_that_is_nowhere_is_one_sentence(name, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match="cannot be loaded") as caught:
        PretrainedEncoder(name=name)
    assert "\n" not in str(caught.value)
