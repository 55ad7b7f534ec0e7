"""The model in the box: `wingspan-bio-small`, a package with a model folder and no code, and the default everywhere.

It is found without importing it, and it is used only if its files are those of the list beside this module, byte by
byte. `models/pin.py` writes the list.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from wingspan.files import check_model_folder, sha256_of, stored_object

NAME = "wingspan-bio-small"
"""Names the installed model wherever a model is named; a folder that is called the same is ./wingspan-bio-small."""
PACKAGE, FOLDER = "wingspan_bio_small", "model"
PINS = Path(__file__).with_name("box.json")
"""The SHA-256 of every file of the model, by its path in the folder."""
HOW = "pip install ./models/wingspan-bio-small"
EXAMPLES = (
    "Two women with familial breast cancer carried the BRCA1 mutation 5382insC.",
    "Cisplatin killed HeLa cells, but not those with a mutation of TP53.",
    "In mice infected with Escherichia coli, IL-6 and TNF-α rose within two hours.",
)
"""Sentences to show it on, written for that."""


def located(model: str | Path | None) -> Path:
    """Where a model is: for None or its name the installed one, else the path itself, whether it exists or not."""
    if model is not None and model != NAME:  # a Path is never the name
        return Path(model)
    folder = installed_model()
    if model is None:
        say_once()
    return folder


def chosen(model: str | None) -> str:
    """The name of a model, which is that of the installed one where none is given."""
    if model is None:
        located(model)
    return model or NAME


@cache
def say_once() -> None:
    """Tells which model works where none is named."""
    print(f"wingspan: no model is named, so {NAME} is used", file=sys.stderr)


def installed_folder() -> Path | None:
    """The folder of the installed model, unchecked; None if it is not installed. None of the package's code is run."""
    spec = find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / FOLDER if places else None


def installed_model() -> Path:
    """The folder of the installed model, with exactly the files that are known to this version of Wingspan."""
    folder = installed_folder()
    if folder is None:
        raise ValueError(
            f"{NAME} is not installed, and no other model is named; name one, or in a checkout of Wingspan run: {HOW}"
        )
    if wrong := differences(folder, stored_object(PINS)):
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise ValueError(
            f"{folder}: not the {NAME} that belongs to this version of Wingspan ({', '.join(wrong[:3])}{more}); "
            f"in its checkout run: {HOW}"
        )
    return folder


def differences(folder: Path, pins: Mapping[str, str]) -> list[str]:
    """What is missing in a folder, what is too much, and what was changed."""
    check_model_folder(folder)
    there = files_in(folder)
    wrong = [f"{name} is missing" for name in pins if name not in there]
    wrong += [f"{name} does not belong there" for name in there if name not in pins]
    return wrong or [f"{name} was changed" for name in pins if sha256_of(folder / name) != pins[name]]


def files_in(folder: Path) -> list[str]:
    """The paths of all files in a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())
