"""The model folder: recipe.json, labels.json, model.safetensors, the encoder's files, a model card. Nothing pickled.

Everything is written under temporary names and then renamed: a full disk or a kill leaves the old files intact.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from wingspan.encoders.loading import check_folder, fetch
from wingspan.evaluation.calibration import Calibration
from wingspan.files import atomic_path, atomic_write, brief, stored_object
from wingspan.labels import LabelSet
from wingspan.layers.allowance import allowance, weights_in
from wingspan.model_folder import LABELS, labels_of
from wingspan.objectives import Objective
from wingspan.recipe import Learner, Recipe, assemble
from wingspan.recipe_json import as_json, from_json, spelled_out

FORMAT = 1
WEIGHTS = "model.safetensors"


def save(folder: Path, recipe: Recipe, labels: LabelSet, learner: Learner) -> None:
    """Writes what prediction needs and no more: objectives that do not predict are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "recipe.json", {"format": FORMAT, "recipe": as_json(spelled_out(recipe))})
    write_json(folder / LABELS, labels.to_dict())
    try:
        learner.model.encoder.save_files(folder)
    except Exception as error:
        if type(error) is not Exception:  # the tokenizers library reports a full disk with the bare class
            raise
        raise OSError(f"{folder}: the encoder's files could not be written ({brief(error)})") from error
    with learner.model.encoder.plain():
        write_weights(folder / WEIGHTS, predictor(learner))


def load(
    folder: Path,
    parts: Sequence[str] = (),
    weights: str = WEIGHTS,
    studied: Mapping[str, Any] | None = None,
    *,
    to_train: bool = False,
) -> tuple[Recipe, LabelSet, Learner]:
    """The recipe, labels and model of a folder; with `studied`, all objectives, else only those that predict.

    Without `to_train`, the encoder may leave out what only training needs. No code from the folder is run, and nothing
    is built that is far larger than the weights.
    """
    recipe = recipe_of(folder, parts)
    labels = labels_of(folder)
    part: Any = recipe.encoder
    with reading_weights(folder / weights):
        size = weights_in(folder / weights)
    try:
        with allowance(size, draws=False):  # which took as long as reading the weights
            rebuild = part.func.rebuild if to_train else part.func.rebuild_to_predict
            encoder = rebuild(folder, **part.keywords)
            learner = assemble(recipe, labels, encoder, studied, predicting=studied is None)
    except Exception as error:  # parts with wrong settings raise anything
        if isinstance(error, ValueError | OSError):
            raise
        raise ValueError(f"{folder / 'recipe.json'}: the settings do not fit together ({brief(error)})") from error
    read_weights(folder / weights, learner)
    return recipe, labels, learner


def recipe_of(folder: Path, parts: Sequence[str] = ()) -> Recipe:
    """The recipe of a model folder. No code from the folder is run."""
    check_folder(folder)
    if not (folder / "recipe.json").is_file():
        raise ValueError(
            f"{folder}: no model here (recipe.json is missing); give the --output folder of a training run"
        )
    saved = stored_object(folder / "recipe.json")
    if saved.get("format") != FORMAT:
        raise ValueError(
            f"{folder / 'recipe.json'}: format {saved.get('format')!r} is unknown; it needs a newer wingspan"
        )
    recipe = from_json(saved.get("recipe"), parts)
    if not isinstance(recipe, Recipe):
        raise ValueError(f"{folder / 'recipe.json'}: holds no recipe; save the model again")
    return replace(recipe, name=on_a_line(recipe.name), paper=on_a_line(recipe.paper))


def on_a_line(text: str) -> str:
    """Without line ends and control characters: logs and cards show what a folder calls its recipe."""
    return "".join(character if character.isprintable() else " " for character in text)


def download(name: str, revision: str | None) -> Path:
    """A model from the hub, as a folder: only data files are fetched."""
    try:
        return fetch(name, revision, ["*.json", "*.safetensors", "*.txt", "*.model", "README.md"])
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise ValueError(f"{name}: neither a model folder nor a hub id that can be reached ({brief(error)})") from error


def predictor(learner: Learner) -> Learner:
    """The model with only the objectives that predict."""
    parts = learner.objectives.items()
    reading = {name: part for name, part in parts if isinstance(part, Objective) and part.predicts}
    return Learner(learner.model, reading, {name: learner.weights[name] for name in reading})


def write_weights(path: Path, module: nn.Module) -> None:
    """Weights as safetensors."""
    try:
        with atomic_path(path) as part:
            save_model(module, str(part))
    except SafetensorError as error:
        raise OSError(f"{path}: the weights could not be written ({error}); the previous file is unchanged") from error


def read_weights(path: Path, module: nn.Module) -> None:
    """Fills a module with saved weights."""
    with reading_weights(path):
        load_model(module, str(path), strict=True)


@contextmanager
def reading_weights(path: Path) -> Iterator[None]:
    """Says in one sentence that a file of weights is missing or damaged."""
    if not path.is_file():
        raise ValueError(f"{path}: the weights are missing; copy the whole model folder")
    try:
        yield
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{path}: the weights do not fit or are damaged ({brief(error)}); copy or train the model again"
        ) from error


def write_json(path: Path, value: Any) -> None:
    """Writes indented JSON."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file completely or not at all."""
    with atomic_write(path) as file:
        file.write(text)


def model_card(
    recipe: Recipe, labels: LabelSet, facts: Mapping[str, Any], calibration: Calibration | None = None
) -> str:
    """The README.md of a model, with front matter for the hub."""
    from jinja2 import Environment, PackageLoader

    types = sorted({label for names in labels.types.values() for label in names})
    loader = PackageLoader("wingspan", "views")
    cards = Environment(loader=loader, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    cards.globals["figures"] = "precision {0[precision]:.2f}, recall {0[recall]:.2f}, F1 {0[f1]:.2f}".format
    template = cards.get_template("model_card.md")
    return template.render(recipe=recipe, types=types, facts=facts, calibration=calibration)
