"""Published figures beside ours: a TOML file with its sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wingspan.experiments.plan import FIGURE, PARTS, Plan
from wingspan.toml_tables import TomlTable, load_toml, number, word


class Value(NamedTuple):
    """A published figure and where it stands."""

    value: float
    source: str


@dataclass(frozen=True)
class Published:
    """What a paper reports of one figure, by recipe and corpus."""

    part: str
    figure: str
    values: dict[tuple[str, str], Value]
    """By the names of recipe and corpus in the plan."""

    @property
    def sources(self) -> list[str]:
        """Every source once, in order."""
        return list(dict.fromkeys(value.source for value in self.values.values()))


def read_published(path: Path, plan: Plan) -> Published:
    """Reads the file and checks that it speaks of recipes and corpora of the plan."""
    table = load_toml(path)
    source = table.need("source", word, "the paper and table the figures are from")
    part = table.take("part", lambda value: value if value in PARTS else None, "dev or test", "test")
    figure = table.take(
        "figure",
        lambda value: value if isinstance(value, str) and FIGURE.fullmatch(value) else None,
        "such as micro.f1",
        "micro.f1",
    )
    scores = table.need("scores", _table, "a table for each recipe, [scores.NAME]")
    table.close()
    values: dict[tuple[str, str], Value] = {}
    for system, row in scores.items():
        known(system, [one.name for one in plan.systems], path, "recipe")
        for corpus, given in (_table(row) or {}).items():
            known(corpus, [one.name for one in plan.corpora], path, "corpus")
            values[system, corpus] = _value(given, source, f"{path}: {system}, {corpus}")
    return Published(part, figure, values)


def known(name: str, names: Sequence[str], path: Path, kind: str) -> None:
    """A name that the plan does not have would be passed over in silence."""
    if name not in names:
        raise ValueError(f"{path}: the plan has no {kind} {name!r}; there are {', '.join(map(repr, names))}")


def _value(given: Any, source: str, place: str) -> Value:
    """A number, or a table with a number and a source of its own."""
    table = TomlTable(given if isinstance(given, dict) else {"value": given}, place)
    value = Value(table.need("value", number, "a number"), table.take("source", word, "a text", source))
    table.close()
    return value


def _table(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None
