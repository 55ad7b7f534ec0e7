"""A trained model as an ONNX graph in a folder that predicts without torch: `wingspan.load` opens it like any other.

The graph is compared with the model before anything is written: on the same sentences both find the same entities.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wingspan.checkpoint import write_json, write_text
from wingspan.evaluation.scores import recognition
from wingspan.evaluation.scores import typing as typed
from wingspan.export.graph import Graph, as_onnx, in_8_bits
from wingspan.files import staged_folder
from wingspan.model_folder import CALIBRATION, FACTS, LABELS
from wingspan.recognizer import Recognizer, load
from wingspan.recognizer.exported import EXPORT, FORMAT, GRAPH, ExportedRecipe
from wingspan.text import Document
from wingspan.tokenizing import stored

CLOSE = 1e-4  # the most that a score may differ
LOW = 0.01  # a threshold at which much is found to be compared
LOW_WITH_LINKS = 0.3  # unlikely fragments could be joined in too many ways


@dataclass(frozen=True)
class Parity:
    """How a graph compares with its model on the same documents."""

    documents: int
    entities: int  # that the model finds
    different: int  # that only one of them finds
    largest: float  # difference between the scores of an entity that both find


@dataclass(frozen=True)
class Cost:
    """What fewer bits cost on one corpus: the micro F1, or accuracy of types, of the model and of its graph."""

    before: float
    after: float


@dataclass(frozen=True)
class Exported:
    """The result of an export."""

    parity: Parity
    bytes_exact: int  # of the graph that was compared
    bytes: int  # of the graph that was written
    cost: Cost | None = None


def export(
    model: Recognizer,
    folder: str | Path,
    texts: Sequence[str | Document],
    *,
    int8: bool = False,
    gold: Sequence[Document] = (),
    say: Callable[[str], Any] = lambda line: None,
) -> Exported:
    """Writes the folder, if on these texts the graph finds what the model finds.

    With `int8` the weights of products are stored in 8 bits after that, which changes some entities: `gold` documents
    tell what it costs.
    """
    if not texts:
        raise ValueError("a graph is compared with its model before it is written; give some texts")
    cost = None
    with TemporaryDirectory() as place:
        new = Path(place)
        graph = as_onnx(Graph(model))
        write_folder(model, new, graph)
        parity = compare(model, load(new), texts)
        say(
            f"{parity.documents:,} documents, {parity.entities:,} entities: {parity.different:,} differ, "
            f"scores by {parity.largest:.1e} at most"
        )
        if not parity.entities:
            say("nothing is found in these texts, so little was compared; name others with --texts")
        if parity.different or parity.largest > CLOSE:
            raise ValueError(
                f"the graph does not find what the model finds: {parity.different:,} of {parity.entities:,} entities "
                f"differ, and scores by up to {parity.largest:.2g}; nothing is written"
            )
        if int8:
            write_folder(model, new, in_8_bits(graph))
            if gold:
                cost = Cost(figure(gold, model), figure(gold, load(new)))
        (Path(folder) / CALIBRATION).unlink(missing_ok=True)  # that of another model must not outlive it
        with staged_folder(Path(folder), last=EXPORT) as target:
            for file in new.iterdir():
                (target / file.name).write_bytes(file.read_bytes())
        return Exported(parity, len(graph), (new / GRAPH).stat().st_size, cost)


def write_folder(model: Recognizer, folder: Path, graph: bytes) -> None:
    """All files of an exported model."""
    (folder / GRAPH).write_bytes(graph)
    write_json(folder / LABELS, model.labels.to_dict())
    write_json(folder / FACTS, model.facts)
    if model.calibration is not None:
        write_json(folder / CALIBRATION, model.calibration.to_dict())
    write_text(folder / "README.md", readme(model))
    record = {
        "format": FORMAT,
        "recipe": ExportedRecipe.of(model.recipe).to_dict(),
        "graph": Graph(model).facts()._asdict(),
        "tokenize": stored(model.engine.tokenize, folder),
        "sha256": hashlib.sha256(graph).hexdigest(),
    }
    write_json(folder / EXPORT, record)


def readme(model: Recognizer) -> str:
    """A card that says what the folder is."""
    labels = ", ".join(sorted({label for types in model.labels.types.values() for label in types}))
    return (
        f"# {model.recipe.name}, exported\n\nFinds {labels}. An ONNX graph for onnxruntime, made by `wingspan export`; "
        "neither torch nor transformers is needed:\n\n"
        '```python\nimport wingspan\n\nmodel = wingspan.load("this folder")\n```\n'
    )


def compare(model: Recognizer, graph: Recognizer, texts: Sequence[str | Document]) -> Parity:
    """The entities of both, with and without thresholds; one text is also predicted alone."""
    entities = different = 0
    largest = 0.0
    for threshold in (None, LOW_WITH_LINKS if model.recipe.read_with == "links" else LOW):  # the two ways to decide
        for own, other in predictions(model, graph, texts, threshold):
            mine, others = ({(e.label, e.spans): e.score for e in document.entities} for document in (own, other))
            both, scores = mine.keys() & others.keys(), {**mine, **others}
            entities += len(mine)
            only_one = [scores[key] for key in mine.keys() ^ others.keys()]
            # rounding decides about those at the threshold
            different += sum(threshold is None or abs(score - threshold) > CLOSE for score in only_one)
            largest = max([largest, *(abs(mine[key] - others[key]) for key in both)])
    return Parity(len(texts), entities, different, largest)


def predictions(
    model: Recognizer, graph: Recognizer, texts: Sequence[str | Document], threshold: float | None
) -> Iterator[tuple[Document, Document]]:
    """What both find in all texts at once, and in the first one alone."""
    for some in (texts, texts[:1]):
        pair = (each.predict(list(some), threshold=threshold, overlap="any") for each in (model, graph))
        yield from zip(*pair, strict=True)


def figure(gold: Sequence[Document], model: Recognizer) -> float:
    """Micro F1, or the accuracy of types."""
    found = model.predict(list(gold))
    if model.recipe.protocol == "typing":
        return typed(gold, found).accuracy
    return recognition(gold, found).micro.f1
