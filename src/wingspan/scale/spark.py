"""Spark: `mapInArrow` over a DataFrame. Needs pyspark, and Wingspan on every node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from wingspan.scale import ENTITIES, FAILURE, Columns, Job, Predictor

ENTITY = (
    "struct<start: bigint, end: bigint, text: string, label: string, score: double, fragments: array<array<bigint>>>"
)


def predict_frame(frame: Any, job: Job, *, text: str = "text") -> Any:
    """The DataFrame with the columns `entities` and `failure`; nothing is predicted before Spark needs it."""
    frame = frame.drop(ENTITIES, FAILURE)
    schema = f"{frame._jdf.schema().toDDL()}, {ENTITIES} array<{ENTITY}>, {FAILURE} string"
    return frame.mapInArrow(predicting(job, Columns(text)), schema)


@cache
def predictor_of(job: Job) -> Predictor:
    """A Python worker of Spark serves many partitions, and loads the model once."""
    return Predictor(job)


def predicting(job: Job, rows: Columns) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """The function that Spark runs on a partition: Arrow batches in, Arrow batches out."""

    def predict(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield from predictor_of(job)(batch, rows).to_batches()

    return predict
