"""The data commands as users run them: the right result, or one clear sentence and an exit code; no traceback."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shells import run_command

from wingspan.cli import describe
from wingspan.cli.convert import convert_corpus
from wingspan.cli.split import split_corpus
from wingspan.cli.validate import validate_corpora
from wingspan.corpora.formats import read
from wingspan.files import Problems

FIXTURES = Path(__file__).parents[1] / "corpora" / "formats" / "fixtures"


def run(*arguments: str | Path, code: int = 0) -> str:
    """Both outputs of a command, after a look at its exit code."""
    done = run_command(*arguments)
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    if code:
        assert done.stderr.count("\n") <= 1
    return done.stdout + done.stderr


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


NESTED = {
    "id": "1",
    "text": "Lund Robotics, left and right arm",
    "entities": [
        {"label": "ORG", "start": 0, "end": 13},
        {"label": "LOC", "start": 0, "end": 4},
        {"label": "BODY", "fragments": [[15, 19], [30, 33]]},
    ],
}


@pytest.mark.parametrize("verb", ["convert", "validate", "split"])
def test_help_has_an_example(verb: str) -> None:
    assert f"Example: wingspan {verb}" in run(verb, "--help")


def test_the_data_commands_import_no_torch() -> None:
    code = "import sys; from wingspan.cli import convert, validate, split; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_convert_refuses_to_change_an_entity_and_writes_nothing(tmp_path: Path) -> None:
    source = lines(tmp_path / "in.jsonl", NESTED)
    said = run("convert", source, tmp_path / "out.spert.json", code=1)
    assert "'spert' cannot hold 1 discontinuous entity (an entity is made of each fragment); go on with --lossy" in said
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]
    said = run("convert", source, tmp_path / "out.spert.json", "--lossy")
    assert "1 document, 4 entities, in spert" in said
    assert "changed for spert: 1 discontinuous entity (an entity is made of each fragment)\n" in said
    assert "not kept by spert: white space of 1 text\n" in said
    (document,) = read(tmp_path / "out.spert.json")
    assert sorted(document.text_of(entity) for entity in document.entities) == ["Lund", "Lund Robotics", "arm", "left"]


def test_convert_without_loss_needs_no_permission(tmp_path: Path) -> None:
    source = FIXTURES / "doccano.jsonl"
    said = run("convert", source, tmp_path / "out.jsonl")
    assert "2 documents, 6 entities, in jsonl" in said
    assert list(read(tmp_path / "out.jsonl")) == list(read(source))
    back = convert_corpus(tmp_path / "out.jsonl", tmp_path / "back.doccano.jsonl")
    assert not back.losses
    assert list(read(tmp_path / "back.doccano.jsonl")) == list(read(source))


def test_convert_needs_no_permission_where_entities_stay_as_they_are(tmp_path: Path) -> None:
    record = {"id": "a", "doc_id": "g", "tokens": ["Oslo", "rains"], "year": 1999}
    entity = {"label": "LOC", "start": 0, "end": 1, "concept_id": "Q585", "sure": True, "score": 0.9}
    source = lines(tmp_path / "in.jsonl", {**record, "entities": [entity]}, {**record, "id": "b", "entities": [entity]})
    said = run("convert", source, tmp_path / "out", "--to", "brat")
    line = next(line for line in said.splitlines() if line.startswith("not kept by brat: "))
    for what in ("word boundaries of 2 documents", "groups of 2 documents", "'year' of 2 documents"):
        assert what in line
    for what in ("scores of 2 entities", "'sure' of 2 entities"):
        assert what in line
    assert [document.entities for document in read(tmp_path / "out")] == [
        document.entities for document in read(source)
    ]


@pytest.mark.parametrize(("name", "expected"), [("x.xml", "<"), ("x.json", "{"), ("x.bioc", "<")])
def test_bioc_is_a_name_for_both_of_its_forms(tmp_path: Path, name: str, expected: str) -> None:
    assert "in bioc\n" in run("convert", FIXTURES / "doccano.jsonl", tmp_path / name, "--to", "bioc")
    assert (tmp_path / name).read_text().startswith(expected)
    assert "no problems" in run("validate", tmp_path / name, "--format", "bioc")
    (tmp_path / name).rename(tmp_path / "unnamed")
    found = [document.entities for document in read(tmp_path / "unnamed", "bioc")]
    assert found == [document.entities for document in read(FIXTURES / "doccano.jsonl")]


@pytest.mark.parametrize(
    ("flatten", "labels"), [("outer", {"ORG", "BODY"}), ("inner", {"LOC", "BODY"}), ("none", {"BODY"})]
)
@pytest.mark.parametrize("option", ["--flatten", "--overlap"])  # the second is its earlier name
def test_flattening_is_counted_and_no_loss(tmp_path: Path, option: str, flatten: str, labels: set[str]) -> None:
    said = run("convert", lines(tmp_path / "in.jsonl", NESTED), tmp_path / "out.jsonl", option, flatten)
    assert f"removed by --flatten: {'1 entity' if len(labels) == 2 else '2 entities'}\n" in said
    assert {entity.label for document in read(tmp_path / "out.jsonl") for entity in document.entities} == labels


def test_edges_inside_of_words_are_widened_only_when_allowed(tmp_path: Path) -> None:
    source = lines(
        tmp_path / "in.jsonl", {"id": "1", "text": "Evas Oslo", "entities": [{"label": "PER", "start": 0, "end": 3}]}
    )
    assert "1 entity with an edge inside of a word" in run("convert", source, tmp_path / "o.conll", code=1)
    run("convert", source, tmp_path / "o.conll", "--lossy")
    (document,) = read(tmp_path / "o.conll")
    assert document.text_of(document.entities[0]) == "Evas"


def test_skipped_entities_are_counted_and_named(tmp_path: Path) -> None:
    bad = {"id": "2", "text": "in Ribe", "entities": [{"label": "LOC", "start": 3, "end": 99}]}
    source = lines(tmp_path / "in.jsonl", NESTED, bad)
    said = run("convert", source, tmp_path / "out.jsonl", code=1)
    assert "in.jsonl:2: " in said
    assert "7 characters" in said
    said = run("convert", source, tmp_path / "out.jsonl", "--on-error", "skip")
    assert "left out: 1 records or entities" in said
    assert [len(document.entities) for document in read(tmp_path / "out.jsonl")] == [3, 0]


def test_source_and_target_may_not_be_the_same(tmp_path: Path) -> None:
    source = lines(tmp_path / "in.jsonl", NESTED)
    assert "in.jsonl: it is read, and would be written over" in run("convert", source, source, code=1)
    assert len(list(read(source))) == 1


def test_validate_prints_figures_and_writes_them(tmp_path: Path) -> None:
    source = lines(tmp_path / "in.jsonl", NESTED)
    said = run("validate", source, FIXTURES / "pure.jsonl", "--json", tmp_path / "figures.json")
    assert "no problems" in said
    assert "fingerprint sha256:" in said
    first, second = json.loads((tmp_path / "figures.json").read_text())["corpora"]
    assert (first["entities"], first["nested"], first["discontinuous"], first["valid"]) == (3, 1, 1, True)
    assert second["format"] == "pure"
    assert json.loads(run("validate", source, "--json", "-"))["corpora"][0]["documents"] == 1


def test_validate_lists_every_problem_and_fails(tmp_path: Path) -> None:
    bad = {"id": "2", "text": "in Ribe", "entities": [{"label": "LOC", "start": 3, "end": 99}]}
    source = lines(tmp_path / "in.jsonl", NESTED, bad, bad)
    done = run_command("validate", source)
    assert done.returncode == 1
    assert "in.jsonl:2" in done.stdout
    assert "in.jsonl:3" in done.stdout
    assert "2 problems" in done.stdout
    assert "in.jsonl: 1 problem\n" in run("validate", lines(source, NESTED, bad), code=1)


def test_split_writes_parts_and_folds(tmp_path: Path) -> None:
    records = [
        {"id": str(n), "text": f"text {n}", "entities": [{"label": "AB"[n % 2], "start": 0, "end": 4}]}
        for n in range(40)
    ]
    source = lines(tmp_path / "in.jsonl", *records)
    run(
        "split",
        source,
        "--dev",
        "10",
        "--test",
        "20",
        "--seed",
        "4",
        "--output",
        tmp_path / "parts",
        "--json",
        tmp_path / "f",
    )
    figures = json.loads((tmp_path / "f").read_text())["parts"]
    assert [part["documents"] for part in figures] == [28, 4, 8]
    assert [part["labels"] for part in figures] == [{"A": 14, "B": 14}, {"A": 2, "B": 2}, {"A": 4, "B": 4}]
    division = split_corpus(source, tmp_path / "folds", dev=0, folds=4)
    assert [part.path.relative_to(tmp_path).as_posix() for part in division.parts[:2]] == [
        "folds/fold-1/train.jsonl",
        "folds/fold-1/test.jsonl",
    ]
    tests = [{d.id for d in read(tmp_path / f"folds/fold-{n}/test.jsonl")} for n in range(1, 5)]
    assert set.union(*tests) == {str(n) for n in range(40)}
    assert sum(map(len, tests)) == 40


def test_split_divides_groups_that_are_too_coarse(tmp_path: Path) -> None:
    rows = [{"id": str(at), "doc_id": f"article {at % 3}", "text": f"text {at}", "entities": []} for at in range(40)]
    source = lines(tmp_path / "in.jsonl", *rows)
    told = f"{source}: 40 rows are of 3 groups only, so that rows count one by one, and a group may be in several parts"
    assert f"note: {told}\n" in run("split", source, "--output", tmp_path / "parts")
    parts = [list(read(tmp_path / "parts" / f"{name}.jsonl")) for name in ("train", "dev", "test")]
    assert [len(part) for part in parts] == [32, 4, 4]
    assert {document.group for document in parts[0]} == {"article 0", "article 1", "article 2"}
    figures = run("split", source, "--output", tmp_path / "folds", "--folds", 4, "--json", "-")
    assert json.loads(figures)["notes"] == [told]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--dev", "60", "--test", "60"], "leave nothing to train on"),
        (["--dev", "10", "--test", "10"], "dev.jsonl would be empty"),
        (["--folds", "9"], "9 folds of 1 independent documents"),
    ],
)
def test_splits_that_cannot_be_are_one_sentence(tmp_path: Path, options: list[str], message: str) -> None:
    assert message in run("split", lines(tmp_path / "in.jsonl", NESTED), "--output", tmp_path / "o", *options, code=1)
    assert not (tmp_path / "o").exists()


# what users feed in: name of the case, bytes of the file, and what is to be said (None: it is read)
RECORD = '{"id": "1", "text": "in Ribe 😀", "entities": [{"label": "a b", "start": 3, "end": 7}]}'
BAD_INPUT = [
    ("empty", b"", "there are no documents in it"),
    ("blank", b"\n\n  \n", "there are no documents in it"),
    ("invalid-utf8", RECORD.encode().replace(b"Ribe", b"R\xffbe"), "0xff, which is no UTF-8"),
    ("utf16", RECORD.encode("utf-16"), "UTF-16"),
    ("half-record", RECORD.encode()[:40], "no valid JSON"),
    ("past-the-end", RECORD.replace('"end": 7', '"end": 70').encode(), "70"),
    ("negative", RECORD.replace('"start": 3', '"start": -3').encode(), "offsets start at 0"),
    ("reversed", RECORD.replace('"start": 3', '"start": 7').encode(), "holds nothing"),
    ("no-label", RECORD.replace('"a b"', '""').encode(), "the label is empty"),
    ("list-in-text", RECORD.replace('"in Ribe 😀"', "[1]").encode(), "text is a list, not a string"),
    ("bom", b"\xef\xbb\xbf" + RECORD.encode(), None),
    ("crlf", RECORD.encode() + b"\r\n" + RECORD.replace('"1"', '"2"').encode() + b"\r\n", None),
    ("spaces-in-labels", RECORD.encode(), None),
    ("no-entities", b'{"id": "1", "text": "nothing here"}', None),
    ("empty-text", b'{"id": "1", "text": "", "entities": []}', None),
]


@pytest.mark.parametrize(("name", "content", "message"), BAD_INPUT, ids=[case[0] for case in BAD_INPUT])
def test_bad_input(tmp_path: Path, name: str, content: bytes, message: str | None) -> None:
    source = tmp_path / f"{name}.jsonl"
    source.write_bytes(content)
    target = tmp_path / "out.jsonl"
    if message is None:
        result = convert_corpus(source, target)
        assert list(read(target)) == list(read(source))
        assert result.documents == len(list(read(source)))
        assert not validate_corpora([source])[0].problems
        for document in read(target):
            assert all(document.text_of(entity) == "Ribe" and entity.label == "a b" for entity in document.entities)
        return
    for action in (
        lambda: convert_corpus(source, target),
        lambda: validate_corpora([source], on_error="raise"),
        lambda: split_corpus(source, tmp_path),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            action()
        assert str(source) in describe(caught.value)
        assert "\n" not in describe(caught.value)
    (report,) = validate_corpora([source])
    assert report.problems
    assert message in report.problems[0]
    assert not target.exists()


def test_bad_input_from_the_shell(tmp_path: Path) -> None:
    """The same sentences leave by the same door: one line on standard error and exit code 1."""
    (tmp_path / "empty.jsonl").touch()
    assert "there are no documents" in run("convert", tmp_path / "empty.jsonl", tmp_path / "o.jsonl", code=1)
    assert "no such file or folder" in run("validate", tmp_path / "missing.jsonl", code=1)
    assert "unknown format 'xyz'" in run("convert", FIXTURES / "pure.jsonl", tmp_path / "o", "--to", "xyz", code=1)
    assert "does not say the format" in run("convert", FIXTURES / "pure.jsonl", tmp_path / "o.what", code=1)


@pytest.mark.slow
def test_ten_megabytes_on_one_line(tmp_path: Path) -> None:
    text = "in Ribe " + ("x" * 96 + " 😀 ") * 102_000
    source = lines(
        tmp_path / "long.jsonl", {"id": "1", "text": text, "entities": [{"label": "LOC", "start": 3, "end": 7}]}
    )
    assert source.stat().st_size > 10_000_000
    begin = time.process_time()
    convert_corpus(source, tmp_path / "out.jsonl")
    (report,) = validate_corpora([tmp_path / "out.jsonl"])
    assert (report.statistics.words, report.problems) == (2 + 2 * 102_000, [])
    assert time.process_time() - begin < 15  # two seconds, more if the processor is shared
    tags = "word O\n" * 10
    (tmp_path / "wide.conll").write_text("w" * 10_000_000 + " B-X\n" + tags)
    problems = Problems("skip")
    assert sum(len(document.entities) for document in read(tmp_path / "wide.conll", problems=problems)) == 1
