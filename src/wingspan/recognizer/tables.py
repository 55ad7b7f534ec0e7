"""Tables of texts to tables of entities: pandas, Polars or Arrow, whichever comes in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress
from typing import Any

from wingspan.text import Document

COLUMNS = ("start", "end", "label", "score", "text", "fragments")
ROW = "row"  # the column with the number of the text's row, where tables have no index

Predict = Callable[[list[Document]], Iterator[Document]]


def entity_table(frame: Any, text: str, keep: Sequence[str], predict: Predict) -> Any:
    """One row for each entity of each text of a column, in order; `keep` are columns of the text that are repeated."""
    library = type(frame).__module__.partition(".")[0]
    if library not in MAKERS or type(frame).__name__ not in ("DataFrame", "Table"):
        raise TypeError(
            f"predict_table takes a table of pandas, Polars or pyarrow, not {type(frame).__name__}; "
            "collect a LazyFrame first"
        )
    names = list(frame.column_names if library == "pyarrow" else frame.columns)
    for name in (text, *keep):
        if name not in names:
            raise ValueError(f"the table has no column {name!r}; it has {', '.join(map(str, names))}")
    if doubled := {ROW, *COLUMNS} & set(keep):
        raise ValueError(f"keep has {min(doubled)!r}, which is a column of the entities; rename it in the table")
    rows: list[int] = []
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    numbers, documents = texts_of(frame[text], text)
    for number, document in zip(numbers, predict(documents), strict=True):
        for entity in document.to_dict()["entities"]:
            rows.append(number)
            for name, values in columns.items():
                values.append(entity[name])
    return MAKERS[library](frame, rows, columns, list(keep))


def texts_of(column: Any, name: str) -> tuple[list[int], list[Document]]:
    """The texts that there are as documents, and the numbers of their rows."""
    missing = column.isna() if hasattr(column, "isna") else column.is_null()
    values, there = _listed(column), [not absent for absent in _listed(missing)]
    numbers = list(compress(range(len(values)), there))
    for number in numbers:
        if not isinstance(values[number], str):
            raise ValueError(f"row {number} of column {name!r} is a {type(values[number]).__name__}, not a text")
    return numbers, [Document(str(number), values[number]) for number in numbers]


def _listed(column: Any) -> list[Any]:
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column.to_list())


def _pandas(frame: Any, rows: list[int], columns: dict[str, list[Any]], keep: list[str]) -> Any:
    """The index is that of the text's row, so that the two can be joined."""
    import pandas

    types = {"start": "int64", "end": "int64", "score": "float64"}  # which an empty column would not have
    found = pandas.DataFrame(columns, index=frame.index.take(rows)).astype(types)
    for at, name in enumerate(keep):
        found.insert(at, name, frame[name].array.take(rows))
    return found


def _polars(frame: Any, rows: list[int], columns: dict[str, list[Any]], keep: list[str]) -> Any:
    import polars

    number, text = polars.Int64, polars.String
    types = (number, number, text, polars.Float64, text, polars.List(polars.List(number)))
    found = polars.DataFrame(columns, schema=dict(zip(COLUMNS, types, strict=True)))
    numbers = polars.DataFrame({ROW: rows}, schema={ROW: number})
    return polars.concat([numbers, frame.select(keep)[rows], found] if keep else [numbers, found], how="horizontal")


def _pyarrow(frame: Any, rows: list[int], columns: dict[str, list[Any]], keep: list[str]) -> Any:
    import pyarrow

    number, text = pyarrow.int64(), pyarrow.string()
    types = (number, number, text, pyarrow.float64(), text, pyarrow.list_(pyarrow.list_(number)))
    kept = frame.select(keep).take(pyarrow.array(rows, number))
    made = {name: pyarrow.array(columns[name], kind) for name, kind in zip(COLUMNS, types, strict=True)}
    return pyarrow.table({ROW: pyarrow.array(rows, number), **dict(zip(keep, kept.columns, strict=True)), **made})


MAKERS: dict[str, Callable[[Any, list[int], dict[str, list[Any]], list[str]], Any]] = {
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
}
