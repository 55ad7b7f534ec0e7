"""An exported model finds what its model finds, needs no torch, and opens nothing that a stranger's folder names."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch
from hostile import changed, linked, pipe, time_limit

import wingspan
from trainings import alike, entities, untrained
from wingspan.corpora.segment import Segmenting
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.evaluation.calibration import Calibration
from wingspan.recipe import with_proposals
from wingspan.recipes import find
from wingspan.recognizer import Recognizer
from wingspan.recognizer.exported import found_in
from wingspan.spans.biaffine import RotaryBiaffineSpans
from wingspan.spans.contextual import ConvolvedSpans
from wingspan.spans.pooled import PooledSpans
from wingspan.spans.recurrent import RecurrentSpans
from wingspan.text import Document

onnx = pytest.importorskip("onnx", reason="the extra onnx is not installed")
pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

from wingspan.export import Parity, compare, export  # noqa: E402

TEXTS = [
    "Aspirin lowers BRCA1 in the cell .",
    "Mutations of TP53, and of genes that nobody has named yet, were found in twelve of the fifteen mice we looked at.",
    "Short.",
    "",
    " ".join(f"word{number}" for number in range(300)),  # in windows
]


@pytest.fixture(scope="module")
def models(folders):
    """Models that take every way through a graph: grid and proposals, spans, tags, links, words and pieces, walks."""
    bert = partial(PretrainedEncoder, name=str(folders["bert"]))
    proposing = with_proposals(untrained("deep_span", encoder=bert, spans=find("baseline").spans).recipe)
    calibration = Calibration(temperature=1.7, thresholds={})
    linked_spans = untrained("discontinuous", seed=3)
    with torch.no_grad():
        linked_spans.learner.objectives["links"].fragment.bias -= 2.5  # few enough to be joined in all ways
    return {
        "links": Recognizer(
            linked_spans.recipe, linked_spans.labels, linked_spans.learner, device="cpu", calibration=calibration
        ),
        "tags": untrained("bundling/bl-seq-crf", overlap="nested"),
        "proposals": untrained("deep_span", encoder=bert, segments=Segmenting(30, 8), **parts_of(proposing)),
        "convolved": untrained(
            "deep_span/biaffine-pooled-cnn",
            spans=partial(
                ConvolvedSpans,
                around=partial(RotaryBiaffineSpans, hidden=8),
                beside=partial(PooledSpans, views=("max",)),
                size=16,
            ),
        ),
        "recurrent": untrained("typed_spans/recognize", spans=partial(RecurrentSpans, hidden_size=8)),
    }


def parts_of(recipe):
    names = ("spans", "head", "candidates", "terms")
    return {name: getattr(recipe, name) for name in names}


@pytest.fixture(scope="module")
def exported(models, tmp_path_factory):
    """Folders by name; each export takes seconds."""
    root = tmp_path_factory.mktemp("exported")

    def folder(name: str) -> Path:
        if not (root / name).exists():
            export(models[name], root / name, TEXTS)
        return root / name

    return folder


@pytest.fixture
def folder(exported, tmp_path):
    return Path(shutil.copytree(exported("links"), tmp_path / "model"))


@pytest.mark.parametrize("name", ["links", "tags", "proposals", "convolved", "recurrent"])
def test_it_finds_what_its_model_finds(models, exported, name):
    model, graph = models[name], wingspan.load(exported(name))
    assert compare(model, graph, TEXTS).entities > 20
    for options in ({}, {"threshold": 0.3}, {"threshold": {"Drug": 0.6}}, {"overlap": "flat"}, {"batch_size": 1}):
        assert alike(model.predict(TEXTS, **options), graph.predict(TEXTS, **options), 1e-4), options
    words = [["Aspirin", "lowers", "it"], ["BRCA1"]]
    assert alike(
        *(each.predict(words, is_split_into_words=True) for each in (model, graph)),
        1e-4,
    )
    assert graph(TEXTS[0]) == graph.predict(TEXTS[0])[0]
    assert repr(graph).endswith("parameters on cpu (onnxruntime)>")
    assert repr(graph).split(" on ")[0] == repr(model).split(" on ")[0]


def test_the_files_of_the_folder(models, exported):
    names = {path.name for path in (exported("links")).iterdir()}
    assert names == {"README.md", "calibration.json", "export.json", "facts.json", "labels.json", "model.onnx"}
    assert (exported("proposals") / "tokenizer.json").is_file()
    graph = onnx.load(exported("links") / "model.onnx")
    assert {node.domain for node in graph.graph.node} == {""}


WITHOUT = """
import sys
class Forbid:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "transformers", "safetensors", "huggingface_hub", "accelerate", "onnx"}:
            raise ImportError(name)
sys.meta_path.insert(0, Forbid())
"""


@pytest.mark.parametrize("name", ["links", "proposals"])
def test_it_needs_no_torch(models, exported, name):
    code = f"{WITHOUT}\nimport wingspan\nmodel = wingspan.load({str(exported(name))!r})\n"
    code += f"print([[(e.label, [*map(tuple, e.spans)]) for e in d.entities] for d in model.predict({TEXTS!r})])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [[(label, list(map(tuple, spans))) for label, spans, _ in d] for d in entities(models[name].predict(TEXTS))]
    assert done.stdout.strip() == str(found)


def test_the_shell_needs_no_torch_for_it(exported):
    code = (
        f"{WITHOUT}\nsys.argv = ['wingspan', 'predict', 'Aspirin lowers it.', '--model', {str(exported('links'))!r}]\n"
    )
    code += "from wingspan.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["text"] == "Aspirin lowers it."


def test_what_needs_weights_says_so(exported, tmp_path):
    model = wingspan.load(exported("links"))
    with pytest.raises(ValueError, match="an exported model predicts and does nothing else"):
        model.save_pretrained(tmp_path / "new")
    with pytest.raises(ValueError, match="computes on the CPU"):
        wingspan.load(exported("links"), device="cuda")
    with pytest.raises(ValueError, match="is chosen by `wingspan export`"):
        wingspan.load(exported("links"), precision="int8")


def test_a_graph_that_differs_is_not_written(models, monkeypatch, tmp_path):
    monkeypatch.setattr("wingspan.export.compare", lambda *_: Parity(5, 20, 1, 0.0))
    monkeypatch.setattr("wingspan.export.as_onnx", lambda _: b"")
    monkeypatch.setattr("wingspan.export.load", lambda _: None)
    with pytest.raises(ValueError, match="1 of 20 entities differ.*nothing is written"):
        export(models["links"], tmp_path / "out", TEXTS)
    assert not (tmp_path / "out").exists()


def test_8_bits_cost_something_and_say_what(models, exported, tmp_path, monkeypatch):
    graph = (exported("links") / "model.onnx").read_bytes()
    monkeypatch.setattr("wingspan.export.as_onnx", lambda _: graph)
    gold = [document for document in models["links"].predict([text for text in TEXTS if text])]
    done = export(models["links"], tmp_path / "small", gold, int8=True, gold=gold)
    assert done.bytes < done.bytes_exact
    assert done.cost.before == 100.0
    assert 0 < done.cost.after <= 100.0
    assert isinstance(wingspan.load(tmp_path / "small").predict(TEXTS)[0], Document)


# Folders of strangers


def signed(folder):
    """The hash of what was changed: it finds damage, and stops nobody who means it."""
    changed("export.json", sha256=sha256((folder / "model.onnx").read_bytes()).hexdigest())(folder)


def with_graph(edit):
    def attack(folder):
        graph = onnx.load(folder / "model.onnx")
        edit(graph.graph)
        (folder / "model.onnx").write_bytes(graph.SerializeToString())
        signed(folder)

    return attack


def elsewhere(graph):
    tensor = graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../secret")


def elsewhere_in_a_branch(graph):
    inner = onnx.helper.make_graph([], "then", [], [], [onnx.numpy_helper.from_array(np.zeros(1), "x")])
    elsewhere(inner)
    node = onnx.helper.make_node("If", ["a"], ["b"], then_branch=inner, else_branch=inner)
    graph.node.append(node)


def giant(graph):
    del graph.initializer[0].dims[:]
    graph.initializer[0].dims.extend([1 << 40, 1 << 20])


def foreign(graph):
    graph.node.append(onnx.helper.make_node("Run", [], ["x"], domain="evil"))


def compiled(graph):
    graph.node.append(onnx.helper.make_node("EPContext", [], ["x"], domain="com.microsoft"))


def garbage(folder):
    (folder / "model.onnx").write_bytes(os.urandom(5000))
    signed(folder)


ATTACKS = {
    "a pipe": (pipe("model.onnx"), "no regular file but a pipe"),
    "an endless file": (linked("export.json", "/dev/zero"), "no regular file"),
    "a link out": (linked("labels.json", "/etc/hostname"), "leaves the model folder"),
    "weights elsewhere": (with_graph(elsewhere), "lies in another file, which is never opened"),
    "weights elsewhere, deep down": (with_graph(elsewhere_in_a_branch), "lies in another file"),
    "a giant shape": (with_graph(giant), "far larger than its data"),
    "an operator of others": (with_graph(foreign), "an operator of b'evil'"),
    "compiled code": (with_graph(compiled), "may open other files"),
    "garbage": (garbage, "no ONNX graph|no graph that onnxruntime can run"),
    "half a graph": (lambda f: (f / "model.onnx").write_bytes((f / "model.onnx").read_bytes()[:900]), "not the file"),
    "no record": (lambda f: (f / "export.json").unlink(), "missing; copy the whole model folder"),
    "another format": (changed("export.json", format=9), "needs a newer wingspan"),
    "a tokenizer of others": (changed("export.json", tokenize__kind="os.system"), "there is no tokenizer 'os.system'"),
    "a path for a tokenizer": (changed("export.json", tokenize={"kind": "../x"}), "there is no tokenizer"),
    "no buckets": (changed("export.json", tokenize__buckets="many"), "no buckets"),
    "a recipe of others": (changed("export.json", recipe__protocol="shell"), "protocol of the recipe is 'shell'"),
    "another calibration": (changed("calibration.json", temperature=3.0), "not that of the graph"),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_strangers_folder(folder, name):
    edit, message = ATTACKS[name]
    edit(folder)
    with time_limit(20), pytest.raises(ValueError, match=message) as caught:
        wingspan.load(folder)
    assert len(str(caught.value)) < 600


def test_nothing_found_has_no_classes():
    """onnxruntime keeps the classes in the maximum over them, where there are no spans."""
    values = {f"won.{name}": np.zeros(0) for name in ("sentence", "start", "end", "label", "score")}
    found = found_in({**values, "won.calibrated": np.zeros((0, 6))}, "won")
    assert found.calibrated.shape == found.score.shape
