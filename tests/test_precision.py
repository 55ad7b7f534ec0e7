"""Prediction in fewer bits on a CPU: the Transformer is lowered for good, entities stay nearly the same."""

import pytest
import torch

import wingspan
from wingspan.recognizer.precision import number_type

TEXT = "Aspirin helps against pain."


@pytest.fixture(scope="module")
def model(tmp_path_factory, folders):
    corpus = [wingspan.Document(str(n), TEXT, (wingspan.Entity.at("Drug", 0, 7),)) for n in range(8)]
    folder = tmp_path_factory.mktemp("lowered") / "model"
    options = {"encoder": str(folders["bert"]), "settings": {"max_width": 3, "train.epochs": 2}, "device": "cpu"}
    wingspan.train("bundling/span", train=corpus, output=folder, **options)
    return folder


def scores(folder, precision):
    """Of every span."""
    model = wingspan.load(folder, device="cpu", precision=precision)
    (document,) = model.predict(TEXT, threshold=0.0, overlap="any")
    return {(entity.start, entity.end): entity.score for entity in document.entities}


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_fewer_bits_are_nearly_as_good(model, precision):
    exact, fewer = scores(model, "float32"), scores(model, precision)
    assert len(exact) > 3
    assert fewer == pytest.approx(exact, abs=0.1)
    assert fewer != exact, "something was computed in fewer bits"


def test_auto_on_a_cpu_is_exact(model):
    assert scores(model, "auto") == scores(model, "float32")


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_lowered_weights_are_not_saved(model, tmp_path, precision):
    with pytest.raises(ValueError, match="weights of lower precision are not saved"):
        wingspan.load(model, device="cpu", precision=precision).save_pretrained(tmp_path / "copy")
    assert not (tmp_path / "copy" / "recipe.json").exists()


def test_what_cannot_be_lowered_says_so(prepared):
    with pytest.raises(ValueError, match="no Transformer that could compute in bfloat16 or int8"):
        wingspan.load(prepared / "model", device="cpu", precision="int8")


def test_only_known_precisions_are_taken(shell):
    said = shell.refuses("predict", "A text.", "--model", shell.model, "--precision", "half")
    assert "precision is 'half'; use auto, float32, bfloat16, int8" in said


def test_a_gpu_has_no_int8():
    with pytest.raises(ValueError, match="precision int8: cuda does not compute in it"):
        number_type("int8", torch.device("cuda"))
