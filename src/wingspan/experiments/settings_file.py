"""Settings as a file: what `wingspan tune` found, and `wingspan train --settings` or a plan takes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wingspan.corpora.files import atomic_write
from wingspan.toml_tables import load_toml, settings, word


@dataclass(frozen=True)
class SettingsFile:
    """Which recipe and encoder some settings are for, and the settings as `--set` takes them."""

    recipe: str
    encoder: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


def with_settings(
    path: Path | None, recipe: str, encoder: str | None, given: Mapping[str, str]
) -> tuple[str | None, dict[str, str]]:
    """Encoder and settings of a run: what was given for it, and from the file what was not."""
    if path is None:
        return encoder, dict(given)
    found = read_settings(path)
    if _named(found.recipe) != _named(recipe):  # they might be legal in another recipe too, and wrong
        raise ValueError(f"{path}: these settings are for the recipe {found.recipe!r}, not {recipe!r}")
    return encoder or found.encoder, {**found.settings, **given}


def _named(recipe: str) -> str:
    """A recipe file may lie elsewhere by now."""
    return Path(recipe).name if recipe.endswith(".py") else recipe


def read_settings(path: Path) -> SettingsFile:
    """The settings of a file."""
    table = load_toml(path)
    found = SettingsFile(
        table.need("recipe", word, "the recipe that the settings are for"),
        table.take("encoder", word, "an encoder as --encoder takes it", None),
        table.take("set", settings, "a table of settings", {}),
    )
    table.close()
    return found


def write_settings(path: Path, content: SettingsFile, remarks: Sequence[str]) -> None:
    """Writes the file with remarks on top; a value that is no JSON scalar or list is a word."""
    lines = [*(f"# {remark}" for remark in remarks), f"recipe = {json.dumps(content.recipe)}"]
    if content.encoder is not None:
        lines.append(f"encoder = {json.dumps(content.encoder)}")
    lines += ["", "[set]", *(f"{json.dumps(key)} = {_toml(value)}" for key, value in content.settings.items())]
    with atomic_write(path) as file:
        file.write("\n".join(lines) + "\n")


def _toml(text: str) -> str:
    """Numbers and true or false as such, all else as a text: `--set` reads both alike."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return json.dumps(text)
    return text if isinstance(value, bool | int | float) else json.dumps(text)
