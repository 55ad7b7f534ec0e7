"""The model card: what a model is, what it was trained on, how well it does, how to use it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wingspan.evaluation.calibration import Calibration
from wingspan.labels import LabelSet
from wingspan.recipe import Recipe

FIGURES = ("precision", "recall", "f1")
INPUTS = {"recognition": '"Your text."', "typing": "[document_with_entities]"}


def model_card(
    recipe: Recipe, labels: LabelSet, facts: Mapping[str, Any], calibration: Calibration | None = None
) -> str:
    """A README.md with the front matter the hub reads."""
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
    """The part people read."""
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
        found = facts["proposals"]
        lines.append(
            f"Proposals: {found['recall']:.2f}% of the entities are among the candidates, "
            f"{found['cells_per_word']:.2f} per word."
        )
    if facts.get("leaks"):
        lines += ["", facts["leaks"]["said"]]
    for line in [*facts.get("encoder_lines", []), *facts.get("coverage", [])]:
        lines += ["", line]
    for name in ("seed", "train_fingerprint", "versions"):
        if facts.get(name) is not None:
            lines += ["", f"{name.replace('_', ' ').capitalize()}: {facts[name]}"]
    return lines


def about(recipe: Recipe) -> list[str]:
    """What the model looks at, and what it makes of it."""
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
    """Whether scores are calibrated, and how well that holds where it was measured."""
    if calibration is None:
        return ["", "Scores are not calibrated."]
    lines = ["", f"Scores are calibrated: {calibration}, fitted on {calibration.facts.get('decisions')} decisions."]
    if calibration.thresholds and (facts.get("test") or facts.get("dev")):
        lines.append("The figures above were measured before these thresholds were chosen.")
    for part, error in facts.get("calibration_error", {}).items():
        what = "typed" if facts.get(part, {}).get("protocol") == "typing" else "found"
        lines.append(f"Expected calibration error of {what} entities, {part}: {error:.2f} points.")
    return lines
