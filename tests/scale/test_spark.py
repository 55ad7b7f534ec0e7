"""Spark, where it and a Java machine are installed: the answers of one process; and what Spark runs, without it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")

from wingspan.corpora.demo import corpus  # noqa: E402
from wingspan.scale import Columns, Job, Predictor  # noqa: E402
from wingspan.scale.spark import predict_frame, predicting  # noqa: E402

TEXTS = [document.text for document in corpus()[0][:8]]
JOB = Job(str(Path(__file__).parents[1] / "frozen" / "models" / "baseline"), device="cpu", threshold=0.1)


@pytest.fixture(scope="module")
def expected() -> list:
    return Predictor(JOB)(pa.table({"abstract": TEXTS}), Columns("abstract")).column("entities").to_pylist()


def test_what_spark_runs_on_a_partition(expected, monkeypatch):
    loaded = []
    made = Predictor.__init__
    monkeypatch.setattr(Predictor, "__init__", lambda self, job: loaded.append(job) or made(self, job))
    run = predicting(JOB, Columns("abstract"))
    batches = pa.table({"abstract": TEXTS}).to_batches(max_chunksize=3)
    for _ in range(2):  # two partitions, one worker
        found = pa.Table.from_batches(run(iter(batches)))
        assert found.column("entities").to_pylist() == expected
    assert len(loaded) <= 1, "the model is loaded once"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_frame_of_spark(expected, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("there is no Java machine")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = (
        builder.config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1").getOrCreate()
    )
    try:
        rows = [(number, text) for number, text in enumerate([*TEXTS, None])]
        frame = spark.createDataFrame(rows, "pmid bigint, abstract string").repartition(2)
        found = predict_frame(frame, JOB, text="abstract").orderBy("pmid").collect()
        assert [row["pmid"] for row in found] == [*range(len(TEXTS) + 1)]
        entities = [row["entities"] and [entity.asDict() for entity in row["entities"]] for row in found]
        assert entities == [*(row or [] for row in expected), None]
        assert {row["failure"] for row in found} == {None}
    finally:
        spark.stop()
