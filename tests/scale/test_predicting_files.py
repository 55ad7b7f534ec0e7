"""Files predicted by processes: the answers of one process, each once, whatever dies or fails in between."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as parquet  # noqa: E402
from deadly_predictor import POISON, SLOW, STUMBLE, FirstWords  # noqa: E402

import wingspan  # noqa: E402
from trainings import dev_documents, train_documents  # noqa: E402
from wingspan.files import CorpusError  # noqa: E402
from wingspan.scale import Columns, Job, Predictor  # noqa: E402
from wingspan.scale import run as scale_run  # noqa: E402
from wingspan.scale.local import Processes, WorkerProcess  # noqa: E402
from wingspan.scale.run import fingerprint, predict_files  # noqa: E402
from wingspan.scale.sources import Source, find_sources  # noqa: E402

TEXTS = [document.text for document in (*train_documents(), *dev_documents())]
MODEL = Path(__file__).parents[1] / "frozen" / "models" / "baseline"
JOB = Job(str(MODEL), device="cpu", threshold=0.1)


def table(texts: list[str | None], first: int = 0):
    return pa.table({"pmid": range(first, first + len(texts)), "abstract": pa.array(texts, pa.string())})


class Killer:
    """Kills the worker that gets the second batch, and notes what it is told."""

    def __init__(self, monkeypatch) -> None:
        self.documents, self.files, self.given = 0, [], 0
        give = WorkerProcess.give

        def given(worker, task) -> None:
            self.given += 1
            if self.given == 2:  # before it can answer, however fast it is
                os.kill(worker.process.pid, signal.SIGKILL)
            give(worker, task)

        monkeypatch.setattr(WorkerProcess, "give", given)

    def begin(self, files: int) -> None:
        self.expected = files

    def progress(self, documents: int) -> None:
        self.documents += documents

    def finished(self, source: Source, tally) -> None:
        self.files.append(source.path.name)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Two Parquet files, one of JSON-lines, and one that is neither."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "inner").mkdir(parents=True)
    parquet.write_table(table([*TEXTS, None, ""]), folder / "a.parquet")
    parquet.write_table(table(TEXTS[:5], 100), folder / "inner" / "b.parquet")
    records = [json.dumps({"id": f"x{n}", "abstract": text, "year": 2000}).encode() for n, text in enumerate(TEXTS)]
    bad = [b"{", b'{"abstract": "caf\xe9"}', b"", b'{"no": "text"}', b'{"abstract": 5}']
    (folder / "c.jsonl").write_bytes(b"\n".join([*records[:3], *bad, *records[3:]]) + b"\n")
    (folder / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    return folder


@pytest.fixture(scope="module")
def predicted(corpus, tmp_path_factory):
    """A run with two processes and small batches; one of the processes is killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scale_run, "ON_CPU", 500)
        killer = Killer(patch)
        output = tmp_path_factory.mktemp("out")
        return predict_files(JOB, [str(corpus)], output, text="abstract", workers=2, watch=killer), output, killer


@pytest.fixture(scope="module")
def expected() -> list:
    """The entities that one process finds."""
    documents = wingspan.load(MODEL, device="cpu").predict(TEXTS, threshold=0.1)
    return [document.to_dict()["entities"] for document in documents]


def same(found, expected) -> bool:
    """The same entities, with scores that the batch may change in the last digits."""
    rounded = [[[{**e, "score": round(e["score"], 5)} for e in row] for row in rows] for rows in (found, expected)]
    return rounded[0] == rounded[1]


def test_columns_are_kept_and_entities_are_those_of_one_process(predicted, expected):
    summary, output, killer = predicted
    found = parquet.read_table(output / "a.parquet")
    assert found.column_names == ["pmid", "abstract", "entities"]
    assert found.drop_columns(["entities"]).equals(table([*TEXTS, None, ""]))
    rows = found.column("entities").to_pylist()
    assert rows[-2:] == [None, []]
    assert any(rows)
    assert same(rows[:-2], expected)
    again = parquet.read_table(output / "inner" / "b.parquet")
    assert again.column("pmid").to_pylist() == [*range(100, 105)]
    assert same(again.column("entities").to_pylist(), expected[:5])
    assert killer.given > 2, "a worker was killed, and its batch given again"
    assert summary.tally.documents == killer.documents == 2 * len(TEXTS) + 2 + 5 + 4
    assert (summary.files, summary.tally.without_text) == (3, 1)
    assert sorted(killer.files) == ["a.parquet", "b.parquet", "c.jsonl"]


def test_json_lines_have_the_schema_of_predict(predicted, expected):
    summary, output, _ = predicted
    found = [json.loads(line) for line in (output / "c.jsonl").read_text().splitlines()]
    assert [record["id"] for record in found] == [f"x{n}" for n in range(len(TEXTS))]
    assert {tuple(record) for record in found} == {("id", "text", "entities", "year")}
    assert same([record["entities"] for record in found], expected)
    failed = [json.loads(line) for line in (output / "c.jsonl.failed.jsonl").read_text().splitlines()]
    assert [row["line"] for row in failed] == [4, 5, 7, 8]
    reasons = ("no valid JSON", "no UTF-8", "no key 'abstract'; name the one with the text", "is a number, not")
    assert all(reason in row["reason"] for reason, row in zip(reasons, failed, strict=True)), failed
    assert summary.tally.failures == 4


def test_a_file_that_cannot_be_read_stops_no_other(predicted):
    summary, output, _ = predicted
    (problem,) = summary.unreadable
    assert "broken.parquet: no Parquet that can be read" in problem
    assert not (output / "broken.parquet").exists()
    assert not list(output.rglob("*.part"))


# Processes that die, with a predictor that loads no model


def first_words(texts: list[str | None], size: int, workers: int = 2, kill: tuple[int, ...] = (), model: str = ""):
    """Batches of that size predicted by processes; after as many results, a busy one is killed."""
    whole = table(texts)
    pieces = [whole.slice(at, size) for at in range(0, len(texts), size)]
    found = []
    with Processes(Job(model, device="cpu"), workers, FirstWords) as pool:
        for number, batch in enumerate(pool.map((Columns("abstract"), piece) for piece in pieces)):
            found.append(batch)
            busy = [worker for worker in pool.workers if worker.task is not None]
            if number in kill and busy:
                os.kill(busy[0].process.pid, signal.SIGKILL)
    return pa.concat_tables(found)


def test_whoever_dies_nothing_is_lost_or_doubled():
    texts = [SLOW, "a b", None, "", "c d"] * 12
    found = first_words(texts, 3, workers=3, kill=(0, 4, 9))
    assert found.column("pmid").to_pylist() == [*range(len(texts))]
    words = [[e["text"] for e in row] if row is not None else None for row in found.column("entities").to_pylist()]
    assert words == [[SLOW], ["a"], None, [], ["c"]] * 12
    assert found.column("failure").null_count == len(texts)


def test_a_document_that_kills_is_found_out():
    texts = ["a", STUMBLE, "b", POISON, "c", "d", POISON]
    found = first_words(texts, 4, workers=2)
    assert [bool(row) for row in found.column("entities").to_pylist()] == [True, False, True, False, True, True, False]
    reasons = {1: "stumbled", 3: "the process that predicted it died", 6: "the process that predicted it died"}
    assert found.column("failure").to_pylist() == [reasons.get(at) for at in range(7)]


def test_processes_that_only_die_end_the_run():
    with pytest.raises(ValueError, match="died again and again while they loaded the model; .* give fewer --workers"):
        first_words(["a"], 1, workers=1, model="unlucky")
    with pytest.raises(ValueError, match="died again and again while they predicted"):
        first_words([POISON] * 20, 20, workers=1)
    with pytest.raises(ValueError, match="wrong: no such model"):
        first_words(["a"], 1, workers=1, model="wrong")


# Starting again


def test_a_second_run_does_only_what_is_missing(predicted, corpus, monkeypatch):
    _, output, _ = predicted
    done = []
    monkeypatch.setattr(scale_run, "locally", lambda job, sources, *_: done.extend(sources) or [])
    before = (output / "inner" / "b.parquet").stat().st_mtime_ns
    (output / "a.parquet").unlink()
    inputs = [f"{corpus}/**/[ab].parquet"]
    summary = predict_files(JOB, inputs, output, text="abstract")
    assert [source.path.name for source in done] == ["a.parquet"]
    assert summary.there == 1
    os.utime(corpus / "inner" / "b.parquet", ns=(before + 1, before + 1))  # a newer input is predicted again
    predict_files(JOB, inputs, output, text="abstract")
    assert [source.path.name for source in done[1:]] == ["a.parquet", "b.parquet"]
    with pytest.raises(CorpusError, match="made with another threshold; choose another --output"):
        predict_files(replace(JOB, threshold=0.9), inputs, output, text="abstract")
    other = replace(JOB, model=str(MODEL.with_name("bundling")))
    with pytest.raises(CorpusError, match="those of another model; choose another --output"):
        predict_files(other, inputs, output, text="abstract")
    with scale_run.alone_in(output), pytest.raises(ValueError, match="another run is writing to it"):
        predict_files(JOB, inputs, output, text="abstract")


# Without processes: a batch in, a batch out


@pytest.fixture(scope="module")
def predictor() -> Predictor:
    return Predictor(replace(JOB, threads=None))


def test_a_batch_in_a_batch_out(predictor, expected):
    given = table([TEXTS[0], None, TEXTS[1]]).append_column("entities", pa.array(["old"] * 3))
    for batch in (given, given.to_batches()[0]):
        found = predictor(batch, Columns("abstract"))
        assert found.column_names == ["pmid", "abstract", "entities", "failure"]
        assert found.column("failure").to_pylist() == [None] * 3
        rows = found.column("entities").to_pylist()
        assert rows[1] is None
        assert same([rows[0], rows[2]], expected[:2])


def test_texts_of_every_kind_of_column(predictor):
    plain = predictor(table(TEXTS[:2]), Columns("abstract")).column("entities")
    for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())):
        column = pa.array(TEXTS[:2]).cast(kind) if kind != pa.string_view() else pa.array(TEXTS[:2], kind)
        assert predictor(pa.table({"abstract": column}), Columns("abstract")).column("entities").equals(plain)
    assert len(predictor(table([]), Columns("abstract"))) == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [({"title": ["x"]}, r"no column 'abstract'; name the one with the texts \(--text\), of title")]
    + [({"abstract": [1]}, "column 'abstract' is of type int64; name one of texts")],
)
def test_tables_without_texts(predictor, columns, message):
    with pytest.raises(CorpusError, match=message):
        predictor(pa.table(columns), Columns("abstract"))


def test_if_every_document_fails_it_is_not_the_documents(predictor, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("out of order")

    monkeypatch.setattr(predictor.recognizer, "predict_stream", broken)
    with pytest.raises(ValueError, match=r"none of 2 documents could be predicted: .*out of order"):
        predictor(table(TEXTS[:2]), Columns("abstract"))


def test_batches_are_cut_by_their_text(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(table(["x" * 300] * 10 + [None] * 5 + ["y" * 5000] + [""] * 3), path)
    pieces = list(Source(path, tmp_path / "out", "abstract").batches(1000))
    assert pa.concat_tables(pieces).equals(parquet.read_table(path))
    assert all(sum(len(text or "") for text in piece.column("abstract").to_pylist()) <= 5300 for piece in pieces)
    assert len(pieces) > 3
    parquet.write_table(table([]), path)
    assert [len(piece) for piece in Source(path, tmp_path / "out", "abstract").batches(1000)] == [0]
    (tmp_path / "e.jsonl").write_text("\n")
    assert [len(piece) for piece in Source(tmp_path / "e.jsonl", tmp_path / "out").batches(1000)] == [0]


def test_an_empty_file_has_an_empty_answer(predictor, tmp_path):
    parquet.write_table(table([]), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl.gz").write_bytes(b"")
    (tmp_path / "b.jsonl").write_text("")
    for name in ("a.parquet", "b.jsonl"):
        source = Source(tmp_path / name, tmp_path / "out" / name, "abstract")
        assert source.write(predictor(batch, source.rows) for batch in source.batches(1000)).documents == 0
        assert source.target.is_file()
    assert parquet.read_table(tmp_path / "out" / "a.parquet").column_names == ["pmid", "abstract", "entities"]


def test_a_failure_leaves_no_half_file(predictor, tmp_path):
    parquet.write_table(table(TEXTS), tmp_path / "a.parquet")
    source = Source(tmp_path / "a.parquet", tmp_path / "out" / "a.parquet", "abstract")

    def batches():
        yield predictor(next(source.batches(100)), source.rows)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        source.write(batches())
    assert list((tmp_path / "out").iterdir()) == []


def test_which_files_there_are(corpus, tmp_path):
    names = [str(s.target.relative_to(tmp_path)) for s in find_sources([str(corpus)], tmp_path)]
    assert names == ["a.parquet", "broken.parquet", "c.jsonl", "inner/b.parquet"]
    names = [str(s.target.relative_to(tmp_path)) for s in find_sources([f"{corpus}/**/b*.parquet"], tmp_path)]
    assert names == ["broken.parquet", "inner/b.parquet"]
    with pytest.raises(CorpusError, match="it is read, and would be written over"):
        find_sources([str(corpus)], corpus)
    with pytest.raises(FileNotFoundError):
        find_sources([str(corpus / "none.parquet")], tmp_path)
    for missing in (f"{corpus}/*.txt", str(tmp_path)):
        with pytest.raises(CorpusError, match=r"no \.parquet or "):
            find_sources([missing], tmp_path / "out")
    (tmp_path / "a.parquet").touch()
    with pytest.raises(CorpusError, match="would both become .*; give their common folder"):
        find_sources([str(corpus / "a.parquet"), str(tmp_path / "a.parquet")], tmp_path / "out")


def test_a_fingerprint_is_about_the_model_alone(tmp_path):
    copy = Path(shutil.copytree(MODEL, tmp_path / "copy"))
    (copy / "README.md").write_text("other words")
    assert fingerprint(str(copy)) == fingerprint(str(MODEL))
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert fingerprint(str(copy)) != fingerprint(str(MODEL))
    assert fingerprint("organization/name") == "organization/name"


# From the shell


def test_predict_with_an_engine(shell, corpus, tmp_path):
    options = ["--model", shell.model, "--engine", "local", "--workers", "1", "--device", "cpu", "--text", "abstract"]
    out, err = shell("predict", corpus / "*.parquet", *options, "--output", tmp_path / "out", code=1)
    assert out.startswith(f"{tmp_path}/out: 1 file, {len(TEXTS) + 2} documents, ")
    assert out.strip().endswith("1 row without a text")
    assert "broken.parquet: no Parquet that can be read" in err
    assert err.endswith("wingspan: 1 file could not be predicted; all others are complete\n")
    out, _ = shell("predict", corpus / "a.parquet", *options, "--output", tmp_path / "out")
    assert "0 files, 0 documents, 0 entities, 1 file predicted before" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--workers, --address and --text are about --engine"),
        (["--text", "abstract"], "give --engine local or ray too"),
        (["--engine", "local"], "--engine writes files; give the folder for them with --output"),
        (["--engine", "local", "--output", "{out}/o", "--to", "brat"], "leave out --from, --to and --lossy"),
        (["--engine", "local", "--output", "{file}"], "a file of this name is there; --engine needs a folder"),
        (["--engine", "local", "--output", "{out}/o", "--threshold", "0.5"], "no column 'text'; name the one"),
    ],
)
def test_what_an_engine_refuses(shell, corpus, tmp_path, options, message):
    (tmp_path / "file").touch()
    given = [option.format(out=tmp_path, file=tmp_path / "file") for option in options]
    _, err = shell("predict", corpus / "a.parquet", "--model", shell.model, *given, code=1)
    assert message in err
    assert "Traceback" not in err


def test_a_worker_that_cannot_load_says_why(shell, corpus, tmp_path):
    options = ["--engine", "local", "--workers", "1", "--text", "abstract", "--output", tmp_path / "out"]
    (tmp_path / "model").mkdir()
    assert "recipe.json is missing" in shell.refuses(
        "predict", corpus / "a.parquet", "--model", tmp_path / "model", *options
    )
