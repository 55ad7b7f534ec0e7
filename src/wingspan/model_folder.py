"""The files of a model folder that say what it is: labels, facts, calibration. An exported model has them too."""

from pathlib import Path
from typing import Any

from wingspan.evaluation.calibration import Calibration
from wingspan.files import stored_object
from wingspan.labels import LabelSet

LABELS = "labels.json"
FACTS = "facts.json"
CALIBRATION = "calibration.json"


def labels_of(folder: Path) -> LabelSet:
    """The labels of a model."""
    stored = stored_object(folder / LABELS)
    try:
        return LabelSet.from_dict(stored)
    except ValueError as error:
        raise ValueError(f"{folder / LABELS}: damaged ({error}); copy or train the model again") from None


def facts_of(folder: Path) -> dict[str, Any]:
    """What is known about the training."""
    return stored_object(folder / FACTS) if (folder / FACTS).is_file() else {}


def calibration_of(folder: Path) -> Calibration | None:
    """The temperature and thresholds, if the model is calibrated."""
    path = folder / CALIBRATION
    return Calibration.from_dict(stored_object(path), path) if path.is_file() else None
