"""The model folder: recipe.json, labels.json, model.safetensors, the encoder's files, a model card. Nothing pickled.

Everything is written under temporary names and then renamed: a full disk or a kill leaves the old files whole.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from wingspan.evaluation.calibration import Calibration
from wingspan.labels import LabelSet
from wingspan.objectives import Objective
from wingspan.recipe import Learner, Recipe, assemble
from wingspan.record import from_record, to_record

FORMAT = 1
CALIBRATION = "calibration.json"


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """A place to write a new model to; its files replace those of `folder` once all of them are whole."""
    folder.mkdir(parents=True, exist_ok=True)
    for left_by_a_kill in folder.glob(".new-*"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    new = Path(mkdtemp(prefix=".new-", dir=folder))
    try:
        yield new
        for path in sorted(new.rglob("*"), key=lambda path: path.name == "recipe.json"):  # what makes it a model: last
            if path.is_file():
                target = folder / path.relative_to(new)
                target.parent.mkdir(exist_ok=True)
                os.replace(path, target)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def save(folder: Path, recipe: Recipe, labels: LabelSet, learner: Learner) -> None:
    """Writes what prediction needs, and no more: objectives that do not predict stay behind."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "recipe.json", {"format": FORMAT, "recipe": to_record(recipe)})
    write_json(folder / "labels.json", labels.to_dict())
    try:
        learner.model.encoder.save_files(folder)
    except Exception as error:
        if type(error) is not Exception:  # the tokenizers library says a full disk with the bare class
            raise
        raise OSError(f"{folder}: the encoder's files could not be written ({said(error)})") from error
    with learner.model.encoder.plain():
        write_weights(folder / "model.safetensors", predictor(learner))


def load(folder: Path, parts: Sequence[str] = ()) -> tuple[Recipe, LabelSet, Learner]:
    """The recipe, labels and weights of a model folder. No code from the folder is run."""
    recipe, labels, learner = rebuild(folder, parts)
    read_weights(folder / "model.safetensors", learner)
    return recipe, labels, learner


def rebuild(
    folder: Path, parts: Sequence[str] = (), studied: Mapping[str, Any] | None = None
) -> tuple[Recipe, LabelSet, Learner]:
    """The model of a folder without its weights; with what objectives had `studied`, all of them, else the readers."""
    if not (folder / "recipe.json").is_file():
        raise ValueError(
            f"{folder}: no model here (recipe.json is missing); give the --output folder of a training run"
        )
    record = read_object(folder / "recipe.json")
    if record.get("format") != FORMAT:
        raise ValueError(
            f"{folder / 'recipe.json'}: format {record.get('format')!r} is unknown; it needs a newer wingspan"
        )
    recipe = from_record(record.get("recipe"), parts)
    if not isinstance(recipe, Recipe):
        raise ValueError(f"{folder / 'recipe.json'}: holds no recipe; save the model again")
    labels = read_labels(folder / "labels.json")
    part: Any = recipe.encoder
    try:
        encoder = part.func.rebuild(folder, **part.keywords)
        learner = assemble(recipe, labels, encoder, studied, predicting=studied is None)
    except (AssertionError, KeyError, RuntimeError, TypeError) as error:  # what parts make of settings of other kinds
        raise ValueError(f"{folder / 'recipe.json'}: the settings do not fit together ({said(error)})") from error
    return recipe, labels, learner


def download(name: str, revision: str | None) -> Path:
    """A model from the hub, as a folder: only data files are fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        wanted = ["*.json", "*.safetensors", "*.txt", "*.model", "README.md"]
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(f"{name}: neither a model folder nor a hub id that can be reached ({said(error)})") from error


def predictor(learner: Learner) -> Learner:
    """The model with the objectives that read entities."""
    parts = learner.objectives.items()
    reading = {name: part for name, part in parts if isinstance(part, Objective) and part.predicts}
    return Learner(learner.model, reading, {name: learner.weights[name] for name in reading})


def read_labels(path: Path) -> LabelSet:
    """The labels of a model folder."""
    found = read_object(path)
    try:
        return LabelSet.from_dict(found)
    except ValueError as error:
        raise ValueError(f"{path}: damaged ({error}); copy or train the model again") from None


def read_calibration(folder: Path) -> Calibration | None:
    """The temperature and thresholds of a model that was calibrated."""
    path = folder / CALIBRATION
    return Calibration.from_dict(read_object(path), path) if path.is_file() else None


def write_weights(path: Path, module: nn.Module) -> None:
    """Weights as safetensors."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        save_model(module, str(temporary))
        os.replace(temporary, path)
    except SafetensorError as error:
        raise OSError(f"{path}: the weights could not be written ({error}); the previous file is unchanged") from error
    finally:
        temporary.unlink(missing_ok=True)


def read_weights(path: Path, module: nn.Module) -> None:
    """Fills a module; a damaged or foreign file is said in one sentence."""
    if not path.is_file():
        raise ValueError(f"{path}: the weights are missing; copy the whole model folder")
    try:
        load_model(module, str(path), strict=True)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{path}: the weights do not fit or are damaged ({said(error)}); copy or train the model again"
        ) from error


def said(error: Exception) -> str:
    """The beginning of an error's message, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def write_json(path: Path, value: Any) -> None:
    """JSON for people and programs."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """A whole text file, or none of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """A JSON file of a model folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: missing; copy the whole model folder") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({error}); copy or train the model again") from error


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file that holds names with values."""
    found = read_json(path)
    if not isinstance(found, dict):
        raise ValueError(f"{path}: damaged (no JSON object); copy or train the model again")
    return found
