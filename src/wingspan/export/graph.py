"""The forward pass of a model and what its objectives read off it, written down as one ONNX graph.

Sizes of batches and sentences are symbols in it, so that one graph takes all. Where a part would have to know them (a
loop over words, a table for a length), it has another way while it is exported: see `layers.tracing`.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wingspan.batch import Gold, Inputs, Near
from wingspan.files import brief
from wingspan.layers.tracing import exporting_rows
from wingspan.recognizer import Recognizer
from wingspan.recognizer.exported import GraphFacts, graph_inputs
from wingspan.text import Document

EXAMPLES = (
    "Amoxicillin reduced lung fibrosis in 12 of 15 mice.",
    "TGFB1 was not found in them, whatever the dose was.",
    "The others were not looked at.",
)
"""Any texts would do: only the shapes of their arrays are used."""


class Graph(nn.Module):
    """A model as a function from named arrays to named arrays."""

    def __init__(self, model: Recognizer) -> None:
        super().__init__()
        recipe = model.recipe
        self.model = model
        self.learner = model.learner
        self.reader: Any = self.learner.objectives[recipe.reader]
        self.links: Any = self.learner.objectives["links"] if recipe.read_with == "links" else None
        self.calibration = model.calibration
        self.typing = recipe.protocol == "typing"
        assert isinstance(recipe.max_width, int), "a trained model's width is resolved"
        self.max_width = recipe.max_width

    def facts(self) -> GraphFacts:
        """What has to be known to use the graph."""
        temperature = 1.0 if self.calibration is None else self.calibration.temperature
        size = sum(parameter.numel() for parameter in self.learner.parameters())
        return GraphFacts(self.max_width + 1, self.reader.usual_threshold, temperature, size)

    def examples(self) -> dict[str, Tensor]:
        """Inputs of the right types; all their sizes are different, so that none is mistaken for another."""
        model = self.model
        sentences = [*model.segment(Document(str(number), text) for number, text in enumerate(EXAMPLES))]
        inputs = model.collate.inputs(sentences)
        spans = None
        if self.typing:
            some = np.arange(5 * len(sentences)).reshape(-1, 5) % 4
            spans = Gold(some, some + 2, np.zeros_like(some), np.ones_like(some, dtype=bool))
        room = 3 + max(inputs.unit_mask.shape[1], self.facts().least_units)
        arrays = graph_inputs(inputs._replace(near=None), spans, room)
        for name in ("limits", "least_chances"):
            arrays[name] = np.full(model.labels.num_classes, 0.5, dtype=np.float32)
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def forward(self, arrays: dict[str, Tensor]) -> dict[str, Tensor]:
        """Everything found: without thresholds (`won`, if that is another rule), with them (`reached`), fragments."""
        near = Near(*(arrays[f"near.{name}"] for name in Near._fields))
        inputs = Inputs(**{name: arrays[name] for name in Inputs._fields if name != "near"}, near=near)
        spans = Gold(*(arrays[f"spans.{name}"] for name in Gold._fields)) if self.typing else None
        links = self.links is not None
        states = self.learner.model(inputs, spans, spans=self.reader.reads_spans, features=links)
        temperature = self.facts().temperature
        given: dict[str, Tensor] = {}
        ways: dict[str, Tensor | None] = {"reached": arrays["limits"]}
        ways |= {"won": None} if self.reader.wins_without_thresholds else {}
        for part, thresholds in ways.items():
            found = self.reader.decode(states, thresholds, temperature=temperature)
            given |= {f"{part}.{name}": value for name, value in found._asdict().items() if value is not None}
        if links:
            found, left, right, distance = self.links.read_fragments(states, arrays["least_chances"])
            given |= {f"fragment.{name}": value for name, value in found._asdict().items() if value is not None}
            given |= {"fragment.left": left, "fragment.right": right, "fragment.distance": distance.clone()}
        return given


def as_onnx(graph: Graph) -> bytes:
    """The bytes of the ONNX file."""
    try:
        import onnx  # noqa: F401  torch would report it as an error of its own
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"export needs {error.name}; install it with: pip install 'wingspan-ner[onnx]'") from error
    tokenize = graph.model.engine.tokenize
    longest = max(tokenize.max_length, graph.model.recipe.segments.max_length)
    examples = graph.examples()
    graph.eval()
    try:
        with quiet(), torch.no_grad(), exporting_rows(longest):
            names = list(graph(examples))
            program = torch.export.export(
                graph,
                (examples,),
                dynamic_shapes=({name: symbols(name, longest, graph) for name in examples},),
                prefer_deferred_runtime_asserts_over_guards=True,
            )
            written = torch.onnx.export(program, input_names=list(examples), output_names=names, verbose=False)
    except Exception as error:  # torch raises anything where it cannot follow a part
        raise ValueError(f"{graph.model.recipe.name} cannot be exported ({brief(error)})") from error
    assert written is not None
    return folded(written.model_proto.SerializeToString())


def folded(graph: bytes) -> bytes:
    """The graph with everything computed that does not depend on inputs, such as transposed weights."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    with TemporaryDirectory() as folder:
        options.optimized_model_filepath = str(Path(folder) / "folded.onnx")
        onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        return Path(options.optimized_model_filepath).read_bytes()


def in_8_bits(graph: bytes) -> bytes:
    """The graph with weights of products in 8 bits; activations are turned into 8 bits as they come."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load_from_string(graph)
    del model.graph.value_info[:]  # shapes that torch noted, which may differ by a name from those found again
    with TemporaryDirectory() as folder, quiet():
        small = Path(folder) / "small.onnx"
        quantize_dynamic(model, small, weight_type=QuantType.QInt8, per_channel=True)
        return small.read_bytes()


def symbols(name: str, longest: int, graph: Graph) -> dict[int, Any]:
    """Which dimensions of an input have any size."""
    auto, batch = torch.export.Dim.AUTO, torch.export.Dim("batch", min=1)
    units = torch.export.Dim("units", min=graph.facts().least_units, max=longest + graph.max_width + 1)
    if name in ("limits", "least_chances"):
        return {}
    if name in ("dataset", "core", "reach", "near.core", "near.reach"):
        return {0: batch}
    return {0: batch, 1: units if name.startswith("near.") else auto}


@contextmanager
def quiet() -> Iterator[None]:
    """Silences what torch says about the packages that it does without, and about its own future."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
