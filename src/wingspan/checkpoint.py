"""The model folder: recipe.json, labels.json, model.safetensors, the encoder's files, a model card. Nothing pickled.

Every file is written under a temporary name and then renamed: a full disk or a kill leaves the old file whole.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from wingspan.labels import LabelSet
from wingspan.recipe import Learner, Recipe, assemble
from wingspan.record import from_record, to_record

FORMAT = 1


def save(folder: Path, recipe: Recipe, labels: LabelSet, learner: Learner) -> None:
    """Writes what prediction needs, and no more: objectives that do not predict stay behind."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "recipe.json", {"format": FORMAT, "recipe": to_record(recipe)})
    write_json(folder / "labels.json", labels.to_dict())
    learner.model.encoder.save_files(folder)
    write_weights(folder / "model.safetensors", predictor(learner))


def load(folder: Path, parts: Sequence[str] = ()) -> tuple[Recipe, LabelSet, Learner]:
    """The recipe, labels and weights of a model folder. No code from the folder is run."""
    if not (folder / "recipe.json").is_file():
        raise ValueError(
            f"{folder}: no model here (recipe.json is missing); give the --output folder of a training run"
        )
    record = read_json(folder / "recipe.json")
    if record.get("format") != FORMAT:
        raise ValueError(
            f"{folder / 'recipe.json'}: format {record.get('format')!r} is unknown; it needs a newer wingspan"
        )
    recipe = from_record(record.get("recipe"), parts)
    if not isinstance(recipe, Recipe):
        raise ValueError(f"{folder / 'recipe.json'}: holds no recipe; save the model again")
    labels = LabelSet.from_dict(read_json(folder / "labels.json"))
    part: Any = recipe.encoder
    encoder = part.func.rebuild(folder, **part.keywords)
    learner = predictor(assemble(recipe, labels, encoder))
    read_weights(folder / "model.safetensors", learner)
    return recipe, labels, learner


def predictor(learner: Learner) -> Learner:
    """The model with the objectives that read entities."""
    reading = {name: part for name, part in learner.objectives.items() if part.predicts}
    return Learner(learner.model, reading, {name: learner.weights[name] for name in reading})  # type: ignore[arg-type]


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
        reason = str(error).strip().splitlines()[0]
        raise ValueError(
            f"{path}: the weights do not fit or are damaged ({reason}); copy or train the model again"
        ) from error


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
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: damaged ({error}); copy or train the model again") from error
