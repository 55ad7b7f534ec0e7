"""An exported model: an ONNX graph and JSON, computed by onnxruntime, without torch and transformers.

The folder may come from anybody: only regular files of bounded size inside it are read, nothing has to be unpickled,
and a graph that names other files, or operators that onnxruntime does not have itself, is refused before it is opened.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import prod
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from wingspan.batch import Array, Found, Gold, Inputs, Near
from wingspan.corpora.segment import Segmenting
from wingspan.decoding import Joining, Linkable, Overlap
from wingspan.evaluation.calibration import Calibration
from wingspan.evaluation.scores import Protocol
from wingspan.files import brief, check_model_folder, stored_object, whole
from wingspan.labels import LabelSet, Thresholds, thresholds_of
from wingspan.model_folder import calibration_of, facts_of, labels_of
from wingspan.recognizer.engine import Answer, Engine, Question, Read
from wingspan.tokenizing import restored

GRAPH = "model.onnx"
EXPORT = "export.json"
FORMAT = 1
LARGEST_GRAPH = 2**31  # bytes: no ONNX file in one piece is larger


@dataclass(frozen=True)
class Budget:
    """How much a batch may hold."""

    budget: int  # units, padding included


@dataclass(frozen=True)
class ExportedRecipe:
    """What prediction needs to know of a recipe; the names are those of `Recipe`."""

    name: str
    paper: str
    protocol: Protocol
    read_with: str
    overlap: Overlap
    thresholds: Thresholds
    max_width: int
    ceiling: int | None
    one_label: bool
    scope: str
    joining: Joining
    segments: Segmenting
    train: Budget

    @classmethod
    def of(cls, recipe: Any) -> "ExportedRecipe":
        """From a resolved recipe."""
        names = {field.name for field in fields(cls)} - {"train"}
        return cls(**{name: getattr(recipe, name) for name in names}, train=Budget(recipe.train.budget))

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, record: Any) -> "ExportedRecipe":
        """From JSON data; ValueError for anything else."""
        known = {field.name for field in fields(cls)}
        if not isinstance(record, dict) or record.keys() != known:
            raise ValueError(f"the recipe does not have {', '.join(sorted(known))}")
        thresholds, width, ceiling = record["thresholds"], record["max_width"], record["ceiling"]
        by_label = isinstance(thresholds, dict) and all(map(a_number, thresholds.values()))
        right = {
            "name": isinstance(record["name"], str),
            "paper": isinstance(record["paper"], str),
            "scope": isinstance(record["scope"], str),
            "protocol": record["protocol"] in get_args(Protocol),
            "read_with": record["read_with"] in ("spans", "tags", "links"),
            "overlap": record["overlap"] in get_args(Overlap),
            "thresholds": thresholds is None or a_number(thresholds) or by_label,
            "max_width": bool(whole(width)),
            "ceiling": ceiling is None or bool(whole(ceiling)),
            "one_label": isinstance(record["one_label"], bool),
        }
        wrong = [name for name, fits in right.items() if not fits]
        if wrong:
            raise ValueError(f"{wrong[0]} of the recipe is {str(record[wrong[0]])[:40]!r}")
        parts = {"joining": Joining, "segments": Segmenting, "train": Budget}
        try:
            built = {name: part(**record[name]) for name, part in parts.items()}
            assert whole(built["train"].budget)
        except (TypeError, AssertionError) as error:
            raise ValueError("joining, segments or train of the recipe is damaged") from error
        return cls(**{**record, **built})


def a_number(value: Any) -> bool:
    """Whether it is one."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class GraphFacts(NamedTuple):
    """What has to be known about a graph besides the graph."""

    least_units: int  # in a row of a batch; fewer are padded
    usual_threshold: float
    temperature: float  # of the scores; it is part of the graph
    parameters: int

    @classmethod
    def from_dict(cls, record: Any) -> "GraphFacts":
        """From JSON data; ValueError for anything else."""
        if not isinstance(record, dict) or record.keys() != set(cls._fields) or not all(map(a_number, record.values())):
            raise ValueError(f"the graph does not have {', '.join(cls._fields)}")
        return cls(**record)


def open_exported(
    folder: Path, device: str | None = None, precision: str = "auto"
) -> tuple[Any, LabelSet, Engine, dict[str, Any], Calibration | None]:
    """Recipe, labels, engine, facts and calibration of an exported model."""
    if device not in (None, "cpu"):
        raise ValueError(
            f"{folder}: an exported model computes on the CPU; leave --device out, or use the model folder"
        )
    if precision not in ("auto", "float32"):
        raise ValueError(f"{folder}: the precision of an exported model is chosen by `wingspan export`; leave it out")
    check_model_folder(folder)
    stored = stored_object(folder / EXPORT)
    if stored.get("format") != FORMAT:
        raise ValueError(f"{folder / EXPORT}: format {stored.get('format')!r} is unknown; it needs a newer wingspan")
    graph = read_graph(folder / GRAPH, stored.get("sha256"))
    labels, calibration = labels_of(folder), calibration_of(folder)
    try:
        recipe = ExportedRecipe.from_dict(stored.get("recipe"))
        facts = GraphFacts.from_dict(stored.get("graph"))
        tokenize = restored(stored.get("tokenize") or {}, folder)
    except ValueError as error:
        raise ValueError(f"{folder / EXPORT}: damaged ({brief(error)}); export the model again") from error
    if facts.temperature != (1.0 if calibration is None else calibration.temperature):
        raise ValueError(
            f"{folder}: the calibration is not that of the graph; calibrate the model, then export it again"
        )
    return recipe, labels, GraphEngine(folder / GRAPH, graph, labels, tokenize, facts), facts_of(folder), calibration


class GraphEngine(Engine):
    """A session of onnxruntime."""

    def __init__(self, path: Path, graph: bytes, labels: LabelSet, tokenize: Any, facts: GraphFacts) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise ValueError(
                f"{path.parent}: an exported model needs onnxruntime; install it with: pip install onnxruntime"
            ) from error
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # errors are raised anyway
        options.intra_op_num_threads = usual_threads()
        try:
            self.session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has a class for each status, all of them Exceptions
            raise ValueError(f"{path}: no graph that onnxruntime can run ({brief(error)}); export it again") from error
        self.labels = labels
        self.tokenize = tokenize
        self.facts = facts
        self.device = "cpu (onnxruntime)"
        self.parameters = facts.parameters
        self.takes = [node.name for node in self.session.get_inputs()]
        gives = [node.name for node in self.session.get_outputs()]
        self.gives = {part: [name for name in gives if name.startswith(f"{part}.")] for part in OUTPUTS}

    def ask(self, question: Question, *, bounded: bool = False) -> Answer:
        """Computes at once."""
        usual = self.facts.usual_threshold
        limits = thresholds_of(self.labels.names(), question.thresholds, usual)
        arrays = graph_inputs(question.inputs, question.spans, self.facts.least_units)
        arrays["limits"] = np.array(limits, dtype=np.float32)
        arrays["least_chances"] = np.array(question.least_chances or [1.0] * len(limits), dtype=np.float32)
        parts = ["won" if question.thresholds is None and self.gives["won"] else "reached"]
        parts += ["fragment"] if question.least_chances is not None else []
        names = [name for part in parts for name in self.gives[part]]
        answers = self.session.run(names, {name: arrays[name] for name in self.takes})
        values = dict(zip(names, answers, strict=True))
        linkable = None
        if question.least_chances is not None:
            left, right, distance = (values[f"fragment.{name}"] for name in ("left", "right", "distance"))
            fragments, core = found_in(values, "fragment"), question.inside.core
            linkable = Linkable(fragments, left, right, distance, core, question.temperature)
        read = Read(question.inside, found_in(values, parts[0]), linkable)
        return Answer(lambda: read)


def usual_threads() -> int:
    """As many as torch uses, where it is loaded, or else as OMP_NUM_THREADS says; 0 for all cores."""
    torch = sys.modules.get("torch")
    return int(torch.get_num_threads() if torch is not None else os.environ.get("OMP_NUM_THREADS") or 0)


OUTPUTS = ("won", "reached", "fragment")
"""What a graph finds: without thresholds where that is another rule, with them, and fragments."""


def found_in(values: Mapping[str, Array], part: str) -> Found:
    """The found spans among the outputs of a graph."""
    names = (name for name in Found._fields if f"{part}.{name}" in values)
    # of no spans, the maximum over classes keeps them in onnxruntime: (0, C) instead of (0,)
    return Found(**{name: values[f"{part}.{name}"].reshape(-1) for name in names})


def graph_inputs(inputs: Inputs, spans: Gold | None, least_units: int) -> dict[str, Array]:
    """The inputs of a graph by name. Units in reach are always named, in rows of at least so many."""
    batch, length = inputs.unit_mask.shape
    near = inputs.near
    if near is None:
        unit = np.broadcast_to(np.arange(length), (batch, length))
        rows = (getattr(inputs, name) for name in Near._fields[1:])
        near = Near(unit, *rows)
    room = max(least_units - near.unit.shape[1], 0)
    arrays = {name: part for name, part in inputs._asdict().items() if name != "near"}
    for name, part in near._asdict().items():
        padded = part if name in ("core", "reach") else np.pad(part, ((0, 0), (0, room)))
        arrays[f"near.{name}"] = np.ascontiguousarray(padded)
    if spans is not None:
        arrays |= {f"spans.{name}": part for name, part in spans._asdict().items()}
    return arrays


# The file of a graph, checked before anybody opens it: protocol buffers are fields, each with a number and a kind


def read_graph(path: Path, sha256: Any) -> bytes:
    """The bytes of a graph that has all its weights in itself; onnxruntime opens no other file for it."""
    if path.stat().st_size > LARGEST_GRAPH:
        raise ValueError(f"{path}: larger than {LARGEST_GRAPH // 2**30} GB, which no ONNX file in one piece is")
    graph = path.read_bytes()
    if hashlib.sha256(graph).hexdigest() != sha256:
        raise ValueError(f"{path}: not the file that {EXPORT} was written with; copy or export the model again")
    try:
        check_message(memoryview(graph), "model")
    except (IndexError, RecursionError, Damaged) as error:
        raise ValueError(f"{path}: no ONNX graph ({brief(error)}); copy or export the model again") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return graph


class Damaged(Exception):
    """A file that is no protocol buffer."""


Message = Literal["model", "graph", "node", "attribute", "tensor", "sparse", "function", "training"]
INSIDE: dict[Message, dict[int, Message]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "function": {7: "node", 11: "attribute"},
    "training": {1: "graph", 2: "graph"},
    "tensor": {},
}
"""Where messages that can hold weights or operators lie in others, by the numbers of the ONNX schema."""
DOMAINS = (b"", b"ai.onnx", b"com.microsoft")
READS_FILES = (b"EPContext",)  # an operator that names a file of compiled code
MOST_DEPTH = 32


def check_message(data: memoryview, kind: Message, depth: int = 0) -> None:
    """Refuses tensors in other files or far larger than their data, and operators that may open files."""
    if depth > MOST_DEPTH:
        raise Damaged("nested too deep")
    numbers: list[int] = []
    for field, value in fields_of(data):
        inner = INSIDE[kind].get(field)
        if isinstance(value, int):
            numbers += [value] if kind == "tensor" and field == 1 else []
            if kind == "tensor" and field == 14 and value:
                raise ValueError("a tensor of the graph lies in another file, which is never opened; export it again")
        elif inner is not None:
            check_message(value, inner, depth + 1)
        elif kind == "tensor" and field == 1:
            numbers += varints(value)
        elif kind == "tensor" and field == 13:
            raise ValueError("a tensor of the graph lies in another file, which is never opened; export it again")
        elif kind == "node" and field == 7 and bytes(value) not in DOMAINS:
            raise ValueError(f"the graph has an operator of {bytes(value)[:40]!r}, which onnxruntime does not have")
        elif kind == "node" and field == 4 and bytes(value) in READS_FILES:
            raise ValueError(f"the graph has the operator {bytes(value).decode()}, which may open other files")
    if kind == "tensor" and prod(numbers) > 2 * len(data):  # two numbers of 4 bits take a byte
        raise ValueError("a tensor of the graph is far larger than its data")


def fields_of(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The numbers and values of a message's fields."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        field, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
            yield field, value
            continue
        size = 8 if kind == 1 else 4 if kind == 5 else None
        if kind == 2:
            size, at = varint(data, at)
        if size is None or at + size > len(data):
            raise Damaged("cut off, or no protocol buffer")
        yield field, data[at : at + size]
        at += size


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise Damaged("no protocol buffer")


def varints(data: memoryview) -> list[int]:
    """Numbers, one after the other."""
    found, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        found.append(value)
    return found
