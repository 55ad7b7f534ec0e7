"""Ray, on this machine: the answers of one process, by actors of which one is killed."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ray.data", reason="Ray is not installed")
import pyarrow as pa
import pyarrow.parquet as parquet

from wingspan.corpora.demo import corpus
from wingspan.scale import Columns, Job, Predictor
from wingspan.scale.ray_data import TRIES, FilePredictor, predict_dataset, tries_of
from wingspan.scale.run import predict_files
from wingspan.scale.sources import Source

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # Ray warns of much that is not ours
TEXTS = [document.text for document in corpus()[0][:8]]
JOB = Job(str(Path(__file__).parents[1] / "frozen" / "models" / "baseline"), device="cpu", threshold=0.1)
DEADLY = """
import os
from pathlib import Path
from wingspan.recognizer import Recognizer

predict_stream = Recognizer.predict_stream
mark = Path({mark!r})

def once_deadly(self, texts, **options):
    held = list(texts)
    if any("first death" in document.text for document in held) and not mark.exists():
        mark.touch()
        os._exit(9)
    return predict_stream(self, held, **options)

Recognizer.predict_stream = once_deadly
"""


@pytest.fixture(scope="module")
def ray(tmp_path_factory):
    """Ray with two places for actors, which see the sources of this checkout."""
    import ray as library

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    source = str(Path(__file__).parents[2] / "src")
    library.init(
        address="local",  # and none that happens to run here
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=100 * 2**20,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
        runtime_env={"env_vars": {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}},
    )
    yield library
    library.shutdown()


def table(number: int):
    texts = [*TEXTS, "A first death."] if number == 1 else TEXTS
    return pa.table({"id": [f"{number}-{n}" for n in range(len(texts))], "abstract": texts})


def test_files_and_a_dataset(ray, tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        parquet.write_table(table(number), tmp_path / "in" / f"{number}.parquet")
    (tmp_path / "in" / "broken.parquet").write_bytes(b"nothing")
    (tmp_path / "deadly.py").write_text(DEADLY.format(mark=str(tmp_path / "died")))
    job = replace(JOB, parts=(str(tmp_path / "deadly.py"),))
    summary = predict_files(job, [str(tmp_path / "in")], tmp_path / "out", engine="ray", workers=2, text="abstract")
    assert (tmp_path / "died").exists(), "an actor died, and its file was done again"
    plain = Predictor(JOB)
    for number in range(3):
        found = parquet.read_table(tmp_path / "out" / f"{number}.parquet")
        assert found.equals(plain(table(number), Columns("abstract")).drop_columns(["failure"]))
    assert summary.files == 3
    assert [problem.split(": ")[1][:10] for problem in summary.unreadable] == ["no Parquet"]
    left = {path.name for path in (tmp_path / "out").rglob("*")}
    assert left == {"0.parquet", "1.parquet", "2.parquet", "prediction.json", ".prediction.lock"}

    dataset = predict_dataset(ray.data.from_arrow(table(0)), JOB, text="abstract", workers=1)
    assert [row["entities"] for row in dataset.take_all()] == [
        entities for entities in plain(table(0), Columns("abstract")).column("entities").to_pylist()
    ]


def test_a_wrong_option_is_one_sentence(ray, tmp_path):
    parquet.write_table(table(0), tmp_path / "a.parquet")
    job = replace(JOB, dataset="none")
    with pytest.raises(ValueError, match="none") as caught:
        predict_files(job, [str(tmp_path / "a.parquet")], tmp_path / "out", engine="ray", workers=1, text="abstract")
    assert len(str(caught.value)) < 400


def test_a_file_that_kills_actors_is_given_up(tmp_path):
    parquet.write_table(table(0), tmp_path / "a.parquet")
    source = Source(tmp_path / "a.parquet", tmp_path / "out" / "a.parquet", "abstract")
    actor, row = FilePredictor(JOB, 1000), {"number": "7", "path": str(source.path), "target": str(source.target)}
    source.target.parent.mkdir()
    tries_of(source).write_bytes(b"." * TRIES)
    told = actor.predict(**row, text="abstract")
    assert (told["number"], told["documents"], source.target.exists()) == (7, 0, False)
    assert "a.parquet: 4 actors that predicted it died" in told["problem"]
    assert actor.predict(**row, text="abstract")["documents"] == len(TEXTS), "another run tries again"
