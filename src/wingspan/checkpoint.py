"""The model folder: recipe.json, labels.json, model.safetensors, the encoder's files, a model card. Nothing pickled.

Everything is written under temporary names and then renamed: a full disk or a kill leaves the old files intact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_model, save_model
from torch import nn

from wingspan.evaluation.calibration import Calibration
from wingspan.files import atomic_path, atomic_write
from wingspan.labels import LabelSet
from wingspan.objectives import Objective
from wingspan.recipe import Learner, Recipe, assemble
from wingspan.recipe_json import as_json, from_json

FORMAT = 1
CALIBRATION = "calibration.json"


def save(folder: Path, recipe: Recipe, labels: LabelSet, learner: Learner) -> None:
    """Writes what prediction needs and no more: objectives that do not predict are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "recipe.json", {"format": FORMAT, "recipe": as_json(recipe)})
    write_json(folder / "labels.json", labels.to_dict())
    try:
        learner.model.encoder.save_files(folder)
    except Exception as error:
        if type(error) is not Exception:  # the tokenizers library reports a full disk with the bare class
            raise
        raise OSError(f"{folder}: the encoder's files could not be written ({brief(error)})") from error
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
    """The model of a folder without its weights: with `studied`, all objectives, else only those that predict."""
    if not (folder / "recipe.json").is_file():
        raise ValueError(
            f"{folder}: no model here (recipe.json is missing); give the --output folder of a training run"
        )
    saved = read_object(folder / "recipe.json")
    if saved.get("format") != FORMAT:
        raise ValueError(
            f"{folder / 'recipe.json'}: format {saved.get('format')!r} is unknown; it needs a newer wingspan"
        )
    recipe = from_json(saved.get("recipe"), parts)
    if not isinstance(recipe, Recipe):
        raise ValueError(f"{folder / 'recipe.json'}: holds no recipe; save the model again")
    labels = read_labels(folder / "labels.json")
    part: Any = recipe.encoder
    try:
        encoder = part.func.rebuild(folder, **part.keywords)
        learner = assemble(recipe, labels, encoder, studied, predicting=studied is None)
    except (
        AssertionError,
        KeyError,
        RuntimeError,
        TypeError,
    ) as error:  # by parts with wrong settings
        raise ValueError(f"{folder / 'recipe.json'}: the settings do not fit together ({brief(error)})") from error
    return recipe, labels, learner


def download(name: str, revision: str | None) -> Path:
    """A model from the hub, as a folder: only data files are fetched."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        patterns = ["*.json", "*.safetensors", "*.txt", "*.model", "README.md"]
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise ValueError(f"{name}: neither a model folder nor a hub id that can be reached ({brief(error)})") from error


def predictor(learner: Learner) -> Learner:
    """The model with only the objectives that predict."""
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
    try:
        with atomic_path(path) as part:
            save_model(module, str(part))
    except SafetensorError as error:
        raise OSError(f"{path}: the weights could not be written ({error}); the previous file is unchanged") from error


def read_weights(path: Path, module: nn.Module) -> None:
    """Fills a module with saved weights."""
    if not path.is_file():
        raise ValueError(f"{path}: the weights are missing; copy the whole model folder")
    try:
        load_model(module, str(path), strict=True)
    except (SafetensorError, RuntimeError) as error:
        raise ValueError(
            f"{path}: the weights do not fit or are damaged ({brief(error)}); copy or train the model again"
        ) from error


def brief(error: Exception) -> str:
    """The beginning of an error's message, on one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def write_json(path: Path, value: Any) -> None:
    """Writes indented JSON."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a text file completely or not at all."""
    with atomic_write(path) as file:
        file.write(text)


def read_json(path: Path) -> Any:
    """A JSON file of a model folder."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: missing; copy the whole model folder") from None
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: damaged ({error}); copy or train the model again") from error


def read_object(path: Path) -> dict[str, Any]:
    """A JSON file of a model folder that holds an object."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise ValueError(f"{path}: damaged (no JSON object); copy or train the model again")
    return value


# The model card


FIGURES = ("precision", "recall", "f1")
INPUTS = {"recognition": '"Your text."', "typing": "[document_with_entities]"}


def model_card(
    recipe: Recipe, labels: LabelSet, facts: Mapping[str, Any], calibration: Calibration | None = None
) -> str:
    """The README.md of a model, with front matter for the hub."""
    types = sorted({label for names in labels.types.values() for label in names})
    return "\n".join([*front_matter(facts), *body(recipe, types, facts), *scores_mean(facts, calibration)]) + "\n"


def front_matter(facts: Mapping[str, Any]) -> list[str]:
    """YAML for the hub."""
    lines = [
        "---",
        "library_name: wingspan",
        "pipeline_tag: token-classification",
        "tags: [wingspan, named-entity-recognition, span-based-ner]",
    ]
    scores = facts.get("test") or facts.get("dev")
    if scores:
        typing = scores.get("protocol") == "typing"
        figures = {"accuracy": scores["accuracy"]} if typing else {name: scores["micro"][name] for name in FIGURES}
        task = "Typing of given spans" if typing else "Named Entity Recognition"
        lines += [
            "model-index:",
            "- name: wingspan model",
            "  results:",
            f"  - task: {{type: token-classification, name: {task}}}",
            f"    dataset: {{name: '{'test' if facts.get('test') else 'dev'}', type: local}}",
            "    metrics:",
            *(f"    - {{type: {name}, value: {value:.2f}}}" for name, value in figures.items()),
        ]
    return [*lines, "---"]


def body(recipe: Recipe, types: list[str], facts: Mapping[str, Any]) -> list[str]:
    """The card itself: the system, how to use it, its scores and its training."""
    lines = [
        f"# A {recipe.name} model",
        "",
        f"System: {recipe.paper}",
        "",
        f"Entity types: {', '.join(types) if types else 'none'}.",
        *about(recipe),
        "Documents of any length are read in overlapping windows; nothing is cut off.",
        "",
        "```python",
        "import wingspan",
        "",
        'model = wingspan.load("THIS FOLDER")',
        f'for entity in model.predict({INPUTS[recipe.protocol]})[0].to_dict()["entities"]:',
        '    print(entity["start"], entity["end"], entity["label"], entity["text"], entity["score"])',
        "```",
        "",
    ]
    for name in ("dev", "test"):
        if facts.get(name):
            lines.append(figures_of(name, facts[name]))
    for name, known in facts.get("corpora", {}).items():
        for part in ("dev", "test"):
            if part in known:
                micro = known[part]["micro"]
                lines.append(
                    f"- corpus {name} ({known['role']}), {part}, in its own labels: "
                    f"precision {micro['precision']:.2f}, recall {micro['recall']:.2f}, F1 {micro['f1']:.2f}"
                )
    if facts.get("proposals"):
        recall, cells = facts["proposals"]["recall"], facts["proposals"]["cells_per_word"]
        lines.append(f"Proposals: {recall:.2f}% of the entities are among the candidates, {cells:.2f} per word.")
    if facts.get("leaks"):
        lines += ["", facts["leaks"]["said"]]
    for line in [*facts.get("encoder_lines", []), *facts.get("coverage", [])]:
        lines += ["", line]
    for name in ("seed", "train_fingerprint", "versions"):
        if facts.get(name) is not None:
            lines += ["", f"{name.replace('_', ' ').capitalize()}: {facts[name]}"]
    return lines


def about(recipe: Recipe) -> list[str]:
    """The spans that the model considers, and how it decides."""
    if recipe.protocol == "typing":
        return ["It says the types of spans that are given with a document. It finds no entities itself."]
    return [f"{recipe.scope.capitalize()}; {recipe.overlap} decoding; entities are read from {recipe.read_with}."]


def figures_of(part: str, scores: Mapping[str, Any]) -> str:
    """The scores of a part in one sentence."""
    if scores.get("protocol") == "typing":
        right = f"{scores['correct']} of {scores['total']} right"
        return f"Typing accuracy on {part}, gold spans given: {scores['accuracy']:.2f} ({right})."
    micro = scores["micro"]
    return (
        f"Strict {part} scores: precision {micro['precision']:.2f}, recall {micro['recall']:.2f}, "
        f"F1 {micro['f1']:.2f} ({micro['tp']} right, {micro['fp']} spurious, {micro['fn']} missed)."
    )


def scores_mean(facts: Mapping[str, Any], calibration: Calibration | None) -> list[str]:
    """Whether scores are calibrated, and the calibration error if it was measured."""
    if calibration is None:
        return ["", "Scores are not calibrated."]
    lines = ["", f"Scores are calibrated: {calibration}, fitted on {calibration.facts.get('decisions')} decisions."]
    if calibration.thresholds and (facts.get("test") or facts.get("dev")):
        lines.append("The figures above were measured before these thresholds were chosen.")
    for part, error in facts.get("calibration_error", {}).items():
        what = "typed" if facts.get(part, {}).get("protocol") == "typing" else "found"
        lines.append(f"Expected calibration error of {what} entities, {part}: {error:.2f} points.")
    return lines
