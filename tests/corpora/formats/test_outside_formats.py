"""Formats of the user: a module in the working directory, an installed package, or a `Format` object."""

import os
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from wingspan.corpora import formats
from wingspan.corpora.formats import Format, format_named, read, write
from wingspan.files import CorpusError
from wingspan.text import Document, Entity

# one document per line: text<tab>start end label<tab>...
MODULE = """
from wingspan.corpora.formats import Format, Holds
from wingspan.files import atomic_write, numbered, read_lines
from wingspan.text import Document, Entity


def read(path, problems):
    for number, line in read_lines(path):
        text, *columns = line.split("\\t")
        entities = []
        for column in columns:
            start, end, label = column.split(" ", 2)
            if int(end) > len(text):
                problems.add(path, number, f"{label!r} ends at {end}, after the text; correct the offsets")
            else:
                entities.append(Entity.at(label, int(start), int(end)))
        yield Document(numbered(path, number), text, tuple(entities))


def write(documents, path):
    with atomic_write(path) as out:
        for document in documents:
            columns = [f"{entity.start} {entity.end} {entity.label}" for entity in document.entities]
            out.write("\\t".join([document.text, *columns]) + "\\n")


TABS = Format("tabs", read, write, Holds(discontinuous=False, ids=False))
READ_ONLY = Format("read-only", read)
NUMBER = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with the module, which no other test imports."""
    (tmp_path / "my_formats.py").write_text(MODULE)
    (tmp_path / "broken_formats.py").write_text("import no_such_package\n")
    (tmp_path / "faulty_formats.py").write_text("1 / 0\n")
    (tmp_path / "in.txt").write_text("Ada in Oslo\t0 3 PER\t7 11 LOC\nNothing here\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    for name in ("my_formats", "broken_formats", "faulty_formats"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


EXPECTED = [
    Document("in-1", "Ada in Oslo", (Entity.at("PER", 0, 3), Entity.at("LOC", 7, 11))),
    Document("in-2", "Nothing here"),
]


def test_a_module_of_the_working_directory_is_read_and_written(folder: Path) -> None:
    assert list(read("in.txt", "my_formats:TABS")) == EXPECTED
    write(EXPECTED, "out.txt", "my_formats:TABS")
    assert (folder / "out.txt").read_text() == (folder / "in.txt").read_text()
    assert list(read("in.txt", format_named("my_formats:TABS"))) == EXPECTED  # a Format itself


def run(*arguments: str, code: int = 0) -> str:
    """Both outputs of a command, started as an installed script is: without the working directory in the path."""
    start = [sys.executable, "-P", "-c", "from wingspan.cli import main; main()"]
    environment = {**os.environ, "PYTHONPATH": str(Path(formats.__file__).parents[3]), "COLUMNS": "200"}
    done = subprocess.run([*start, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_commands_take_it_and_list_what_it_cannot_hold(folder: Path) -> None:
    run("convert", "in.txt", "out.jsonl", "--from", "my_formats:TABS")
    assert list(read("out.jsonl")) == EXPECTED
    run("convert", "out.jsonl", "in.tabs", "--to", "my_formats:TABS")
    assert (folder / "in.tabs").read_text() == (folder / "in.txt").read_text()
    said = run("convert", "out.jsonl", "other.tabs", "--to", "my_formats:TABS")
    assert said.endswith("not kept by tabs: ids of 2 documents\n")
    (folder / "bad.txt").write_text("Ada\t0 9 PER\n")
    shown = run("validate", "in.txt", "bad.txt", "--format", "my_formats:TABS", code=1)
    assert "in.txt (tabs)" in shown
    assert "problem: bad.txt:1: 'PER' ends at 9, after the text; correct the offsets\n" in shown


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", "unknown format 'nothing'; use one of jsonl, .*, or module:CONSTANT for your own"),
        ("no_such_module:F", "there is no module 'no_such_module'; install it, or run where no_such_module.py is"),
        ("broken_formats:F", "there is no module 'no_such_package'; install it"),
        ("faulty_formats:F", r"module 'faulty_formats' cannot be imported \(ZeroDivisionError: .*\); fix it"),
        ("my_formats:NUMBER", "'NUMBER' in module 'my_formats' is not a Format; it has TABS, READ_ONLY"),
        ("my_formats:", "'' in module 'my_formats' is not a Format; it has TABS, READ_ONLY"),
        ("json:loads", "'loads' in module 'json' is not a Format; make one with wingspan.corpora.formats.Format"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, name: str, sentence: str) -> None:
    with pytest.raises(CorpusError, match=sentence):
        read("in.txt", name)


def test_what_can_only_be_read_is_not_written(folder: Path) -> None:
    with pytest.raises(CorpusError, match="format 'read-only' can be read, not written"):
        write(EXPECTED, "out.txt", "my_formats:READ_ONLY")


def test_nothing_is_imported_from_the_working_directory_unless_it_is_named(folder: Path) -> None:
    (folder / "jsonl.py").write_text("1 / 0\n")
    (folder / "json.py").write_text("1 / 0\n")
    write(EXPECTED, "out.jsonl")
    assert list(read("out.jsonl")) == EXPECTED
    assert format_named("my_formats:TABS").name == "tabs"  # what is installed comes before files of the same name


def test_an_installed_package_names_its_formats(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    format_named("my_formats:TABS")  # importable from here on

    def installed(group: str) -> list[EntryPoint]:
        assert group == "wingspan.formats"
        return [EntryPoint("tabs", "my_formats:TABS", group)]

    monkeypatch.setattr(formats, "entry_points", installed)
    assert isinstance(format_named("tabs"), Format)
    with pytest.raises(CorpusError, match="hub, tabs, or module:CONSTANT"):
        format_named("nothing")
