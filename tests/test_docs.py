"""The documentation is true: its commands and its Python run, its links lead somewhere, its tables are the code's."""

from __future__ import annotations

import contextlib
import io
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields, replace
from pathlib import Path

import pytest
import typer
from pages import PAGES, ROOT, Block, anchors, blocks, commands, links, name_of, prose

from wingspan import box, cli
from wingspan.cli import demo
from wingspan.cli.convert import convert_corpus
from wingspan.corpora.demo import corpus
from wingspan.corpora.formats import FORMATS, format_named, read, write
from wingspan.encoders.hashed import ConvolvedEncoder
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.recipe import TrainSettings
from wingspan.recipes import NAMES, baseline, variants
from wingspan.text import Document, Entity
from wingspan.training import corpora
from wingspan.training import run as train_run
from wingspan.training.corpora import Corpora

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXITS = re.compile(r"# exits with (\d)")
COLORS = re.compile(r"\x1b\[[\d;]*m")
TERMINAL = {"TTY_COMPATIBLE": "1", "TERM": "xterm-256color"}


@pytest.fixture
def workspace(tmp_path, monkeypatch, folders):
    """A folder with the examples, in which trainings are small: few documents and epochs."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    encoders = tmp_path / "encoders"
    shutil.copytree(folders["bert"], encoders / "all-MiniLM-L6-v2")
    monkeypatch.setenv("WINGSPAN_ENCODERS", str(encoders))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name, value in (("buckets", 300), ("embedding", 4), ("hidden", 8)):
        monkeypatch.setitem(ConvolvedEncoder.__init__.__kwdefaults__, name, value)
    monkeypatch.setattr(baseline, "RARE", None)  # types that start rare would not be found after two epochs
    gather, prepare = corpora.gather, train_run.prepare

    def few_documents(*arguments) -> Corpora:
        corpora = gather(*arguments)
        return Corpora(corpora.train[:6], corpora.dev[:2], corpora.test[:2])

    def few_epochs(*arguments, **options):
        recipe = prepare(*arguments, **options)
        return replace(recipe, train=replace(recipe.train, epochs=min(2, recipe.train.epochs)))

    monkeypatch.setattr(corpora, "gather", few_documents)
    monkeypatch.setattr(train_run, "prepare", few_epochs)
    monkeypatch.setattr(demo, "corpus", lambda: tuple(part[:6] for part in corpus()))
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def for_scoring(folder: Path) -> None:
    """The files that docs/scoring.md talks about."""
    gold = list(read(folder / "examples" / "test.jsonl"))
    write(gold, folder / "gold.jsonl")
    write([replace(document, entities=document.entities[::2]) for document in gold], folder / "predicted.jsonl")
    write([guessed(document) for document in gold], folder / "guessed.jsonl")
    convert_corpus(folder / "gold.jsonl", folder / "predicted.conll", lossy=True)
    write([replace(document, meta={}) for document in gold], folder / "gold", "brat")


def for_analysis(folder: Path) -> None:
    """Predictions of two systems for the example documents."""
    gold = list(read(folder / "examples" / "test.jsonl"))
    for name, step in (("predicted", 2), ("better", 3)):
        kept = [[e for n, e in enumerate(document.entities) if n % step] for document in gold]
        found = [replace(one, entities=tuple(entities)) for one, entities in zip(gold, kept, strict=True)]
        write(found, folder / f"{name}.jsonl")


def guessed(document: Document) -> Document:
    """The same spans, all with one label."""
    return replace(document, entities=tuple({Entity("Disease", entity.spans) for entity in document.entities}))


SLOW = ("analysis.md", "comparing.md", "conditional.md", "encoders.md", "tuning.md", "vectors.md", "README.md")
PREPARED = {"docs/scoring.md": for_scoring, "docs/errors.md": for_scoring, "docs/analysis.md": for_analysis}


def marked(page: Path):
    return pytest.param(page, marks=pytest.mark.slow if page.name in SLOW else ())


@pytest.mark.parametrize("page", [marked(page) for page in PAGES if blocks(page)], ids=name_of)
def test_a_page_does_what_it_says(page, workspace, monkeypatch, capsys):
    PREPARED.get(name_of(page), lambda folder: None)(workspace)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.note == "file":
            (workspace / block.detail).write_text(block.code)
        elif block.language == "python":
            code = compile("\n" * block.line + block.code, str(page), "exec")
            if block.note != "parsed only":
                with leaving_out_the_installed_model():
                    exec(code, names)
        elif block.language in ("bash", "console"):
            for command, shown in commands(block):
                shell(command, shown, block, monkeypatch, capsys)


def shell(command: str, shown: str, block: Block, monkeypatch, capsys) -> None:
    """Runs one command of a page; one that is parsed only is checked against its options."""
    program, *arguments = shlex.split(command, comments=True)
    if program == "torchrun":
        assert block.note == "parsed only"
        arguments = arguments[arguments.index("wingspan") + 1 :]
    if program == "make":
        assert f"\n{arguments[0]}:" in (ROOT / "Makefile").read_text(), f"{block.place}: no target {arguments[0]}"
    elif Path(program).name in ("pip", "jupyter"):
        assert block.note == "parsed only"
        assert arguments[0] in ("install", "lab")
    elif program == "python":
        assert block.note == "parsed only"
        assert (ROOT / arguments[0]).is_file(), f"{block.place}: no file {arguments[0]}"
    elif block.note == "parsed only":
        cli.load_verbs([])
        verbs = typer.main.get_command(cli.app).commands
        verbs[arguments[0]].make_context(arguments[0], arguments[1:])
    else:
        assert program == "wingspan", f"{block.place}: the tests cannot run {program}"
        if "<" in arguments:
            at = arguments.index("<")
            text = io.BytesIO(Path(arguments[at + 1]).read_bytes())
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(text))
            del arguments[at : at + 2]
        expected = int(exits[1]) if (exits := EXITS.search(command)) else 0
        capsys.readouterr()
        box.say_once.cache_clear()  # a command is a process of its own
        monkeypatch.setattr(sys, "argv", [program, *arguments])
        with monkeypatch.context() as patch:
            if block.note == "terminal":
                for name, value in {**TERMINAL, "COLUMNS": block.detail.split()[0]}.items():
                    patch.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                cli.main()
        out, err = (COLORS.sub("", text) for text in capsys.readouterr())
        if ended.value.code and box.HOW in err and box.installed_folder() is None:
            return
        assert (ended.value.code or 0) == expected, f"{block.place}: {command}\n{out + err}"
        if shown:
            assert shown in (out + err, err + out), f"{block.place}: {command}"


@contextlib.contextmanager
def leaving_out_the_installed_model():
    """Blocks that need the installed model end where it is missing; `make test` installs it."""
    try:
        yield
    except ValueError as error:
        if box.HOW not in str(error) or box.installed_folder() is not None:
            raise


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)}: {target}"
        assert ROOT in file.parents, f"{name_of(page)}: {target} leads out of the repository"
        if anchor:
            assert anchor in anchors(file), f"{name_of(page)}: {target}"


def test_every_page_is_in_the_index():
    index = {(ROOT / "docs" / target).resolve() for target in links(ROOT / "docs" / "README.md")}
    assert {page for page in ROOT.glob("docs/*.md") if page.name != "README.md"} <= index


LOST = {
    "nested": "nesting",
    "discontinuous": "pieces",
    "exact_text": "white space",
    "words": "words",
    "sentences": "sentences",
    "groups": "groups",
    "document_keys": "other keys",
    "scores": "scores",
    "ids": "ids",
    "datasets": "datasets",
}


def format_row(name: str) -> str:
    """The row of a format in docs/formats.md, as its code has it."""
    form = format_named(name)
    held = {key: value if isinstance(value, bool) else value == "all" for key, value in vars(form.holds).items()}
    held["datasets"] = form.holds.datasets
    lost = [word for key, word in LOST.items() if not held[key]]
    if held["document_keys"] and not held["entity_keys"]:
        lost.append("other keys of entities")
    unit = "words" if held["words"] and not held["exact_text"] else "code points"
    ends = "inclusive" if name in ("pure", "gliner") else "half-open"
    suffixes = " ".join(f"`{suffix}`" for suffix in FORMATS[name].suffixes)
    return f"| `{name}` | {suffixes} | {unit} | {ends} | {', '.join(lost) or 'nothing'} |"


def test_the_table_of_formats_is_the_codes():
    page = (ROOT / "docs" / "formats.md").read_text()
    rows = [line for line in page.splitlines() if re.match(r"\| `[\w-]+` \| `\.", line)]
    assert rows == [format_row(name) for name in FORMATS]


def test_the_layers_are_the_contracts():
    (drawn,) = (block.code for block in blocks(ROOT / "docs" / "architecture.md") if block.code.startswith("cli "))
    layers = [re.split(r"  +", line)[0] for line in drawn.splitlines()]
    assert layers == PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]


def test_the_tree_is_the_packages():
    (drawn,) = (b.code for b in blocks(ROOT / "docs" / "architecture.md") if b.code.startswith("wingspan/"))
    listed, path = set(), Path()
    for line in drawn.splitlines()[1:]:
        name, depth = line.split()[0], len(line) - len(line.lstrip())
        path = Path(*path.parts[: depth // 2 - 1], name)
        listed.add((path / "__init__.py" if name.endswith("/") else path).as_posix())
    package = ROOT / "src" / "wingspan"
    modules = {path.relative_to(package).as_posix() for path in package.rglob("*.py")} - {"__init__.py", "__main__.py"}
    assert listed - modules == set(), "listed on the page, but not in the package"
    assert modules - listed == set(), "in the package, but not listed on the page"


PLACES = [ROOT / folder for folder in ("", "src/wingspan", "tests", "benchmarks")]
PACKAGES = "corpora|evaluation|experiments|layers|objectives|recipe|recipe_json|recipes|report|training|views"
NAMED = re.compile(rf"`(?:wingspan\.)?((?:{PACKAGES})(?:\.\w+)+)`")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_named_files_and_functions_exist(page):
    own = {block.detail for block in blocks(page) if block.note == "file"}
    for path in re.findall(r"`([\w/]+\.(?:py|sh))`", prose(page)):
        there = any((place / path).exists() for place in PLACES) or list(ROOT.glob(f"tests/**/{path}"))
        assert there or path in own or "NAME" in path, f"{name_of(page)}: {path}"
    for name in NAMED.findall(prose(page)):
        if not name.endswith((".json", ".toml")):
            assert resolves(f"wingspan.{name}"), f"{name_of(page)}: {name}"


def resolves(name: str) -> bool:
    """Whether a dotted name leads to a module, or to something in one."""
    with contextlib.suppress(ImportError, AttributeError):
        pkgutil.resolve_name(name)
        return True
    return False


def test_named_settings_variants_tests_and_extras_exist():
    training_page, papers, readme = (prose(ROOT / name) for name in ("docs/training.md", "docs/papers.md", "README.md"))
    settings = {field.name for field in fields(TrainSettings)}
    assert set(re.findall(r"`train\.(\w+)", training_page)) == settings
    parameters = ConvolvedEncoder.__init__.__kwdefaults__ | PretrainedEncoder.__init__.__kwdefaults__
    assert set(re.findall(r"`encoder\.(\w+)", training_page)) <= set(parameters)
    listed = set(re.findall(r"`([a-z]+(?:-[a-z0-9]+)*)`", papers[papers.index("### The variants") :]))
    known = {variant for name in NAMES for variant in variants(name)}
    assert {name for name in listed if name.startswith(("seq", "span", "bl-", "paper"))} - known <= {"spans"}
    for test in set(re.findall(r"`(test_\w+\.py)`", papers)):
        assert list(ROOT.glob(f"tests/**/{test}")), test
    assert {"spacy", "hub", "tensorboard"} <= set(PROJECT["project"]["optional-dependencies"])
    assert {"<!-- results:peers -->", "<!-- results:claims -->"} <= set(readme.splitlines())
    assert "<!-- /results -->" in readme


def test_the_walks_name_what_there_is():
    walks = [b.code for b in blocks(ROOT / "docs" / "architecture.md") if "─> " in b.code]
    assert len(walks) == 2
    for name in re.findall(r"(?<![\w.])[a-z_]+(?:\.\w+)+", "".join(walks)):
        assert resolves(f"wingspan.{name}"), name


def test_the_examples_are_the_generated_corpus():
    for name, part, number in zip(("train", "dev", "test"), corpus(), (40, 10, 10), strict=True):
        assert tuple(read(ROOT / "examples" / f"{name}.jsonl")) == part[:number]


def test_the_picture_is_drawn_by_its_script():
    drawn = runpy.run_path(str(ROOT / "docs" / "picture.py"))["picture"]()
    shown = (ROOT / "docs" / "demo.svg").read_text()
    assert drawn == shown, "run: python docs/picture.py"
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "")


def test_tables_show_what_the_results_say():
    script = ROOT / "benchmarks" / "tables.py"
    checked = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
