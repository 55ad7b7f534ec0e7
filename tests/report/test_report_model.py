"""A report from a real run of a tiny model: every table and figure kind of the papers has its place in it."""

import csv
import re
from pathlib import Path

import pytest
from pages import ROOT

from wingspan.corpora.formats import read
from wingspan.report.geometry import load_collected

pytestmark = pytest.mark.slow
PAGE = ROOT / "docs" / "analysis.md"
ATTRIBUTES = ["entity_length", "text_length", "label_consistency", "entity_density", "nested_role"]
"""Those of the papers; the others are tested elsewhere, and every figure takes its time."""
ROW = re.compile(r"^\| (SNG|[A-Z][\w. ]+ 20\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def analyzed(prepared, tmp_path_factory) -> Path:
    """The folder of `wingspan analyze` on the model of the shell's tests."""
    from wingspan.cli.analyze import analyze

    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    folder = tmp_path_factory.mktemp("analyzed")
    model, dev, train = (prepared / name for name in ("model", "dev.jsonl", "train.jsonl"))
    chosen = {"samples": 20, "attribute": ATTRIBUTES, "robustness": True}
    analyze(folder, str(model), dev, train=train, **chosen, device="cpu")
    return folder


@pytest.fixture(scope="module")
def written(prepared, tmp_path_factory) -> Path:
    """The report on a model whose training had decoders."""
    from dataclasses import replace

    import wingspan
    from trainings import tiny
    from wingspan.cli.analyze import analyze
    from wingspan.recipe_json import override
    from wingspan.recognizer import Recognizer

    recipe = tiny("compress_generate/supvib-spanreco")
    for key, value in {"latent_size": 8, "embedding_size": 8, "hidden": 16}.items():
        recipe = override(recipe, f"terms.generate.objective.{key}", str(value))
    recipe = replace(recipe, phases=tuple(replace(phase, epochs=1) for phase in recipe.phases))
    folder = tmp_path_factory.mktemp("written")
    wingspan.train(recipe, train=prepared / "train.jsonl", output=folder / "run", device="cpu")
    dev = prepared / "dev.jsonl"
    predict, calls = Recognizer.predict_stream, []

    def counted(self, texts, **others):
        calls.append(len(texts))
        return predict(self, texts, **others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recognizer, "predict_stream", counted)
        analyze(folder / "out", str(folder / "run"), dev, samples=5, attribute=["entity_length"], device="cpu")
    assert calls == [len(list(read(dev)))]  # the corpus is predicted once
    return folder / "out"


@pytest.fixture(scope="module")
def several(tmp_path_factory) -> Path:
    """The report on a model of two corpora with a conditional autoencoder."""
    from conditionals import small
    from several import save_two

    import wingspan
    from wingspan.cli.analyze import analyze

    pytest.importorskip("sklearn")
    folder = tmp_path_factory.mktemp("several")
    (folder / "map.tsv").write_text("corpus\tlabel\ttarget\ngenes\tDisease\tDisease\ngenes\tGene\t-\n")
    corpora = save_two(folder, 'label_map = "map.tsv"', number=6)
    recipe = small("conditional", batch_size=4, learning_rate=2e-2)
    wingspan.train(recipe, corpora=corpora, output=folder / "run", device="cpu")
    chosen = {"samples": 5, "attribute": ["entity_length"], "device": "cpu"}
    analyze(folder / "out", str(folder / "run"), folder / "drugs-dev.jsonl", corpora=corpora, **chosen)
    return folder / "out"


@pytest.fixture(scope="module")
def typed(prepared, tmp_path_factory) -> Path:
    """The report on a model that types given spans."""
    import wingspan
    from trainings import tiny
    from wingspan.cli.analyze import analyze

    pytest.importorskip("sklearn")
    folder = tmp_path_factory.mktemp("typed")
    recipe = tiny("typed_spans/random-vectors")
    wingspan.train(recipe, train=prepared / "train.jsonl", output=folder / "run", device="cpu")
    analyze(folder / "out", str(folder / "run"), prepared / "dev.jsonl", device="cpu")
    return folder / "out"


@pytest.fixture(scope="module")
def compared(prepared, analyzed, tmp_path_factory) -> Path:
    """The report on two systems, for the tables that compare."""
    from wingspan.cli.analyze import analyze

    folder = tmp_path_factory.mktemp("compared")
    systems = [f"model={analyzed / 'predictions.jsonl'}", f"gold={prepared / 'dev.jsonl'}"]
    analyze(folder, gold=prepared / "dev.jsonl", predicted=systems, samples=20, attribute=["entity_length"])
    return folder


def test_the_folder_holds_everything(analyzed, prepared):
    assert {path.name for path in analyzed.iterdir()} == {
        "report.html",
        "predictions.jsonl",
        "collected.npz",
        "figures",
        "tables",
    }
    assert len(list(read(analyzed / "predictions.jsonl"))) == len(list(read(prepared / "dev.jsonl")))
    assert load_collected(analyzed / "collected.npz").entities.any()
    figures = {path.name for path in (analyzed / "figures").iterdir()}
    assert {
        f"{name}.{kind}" for name in ("features-pca", "violins", "loss-curve") for kind in ("png", "svg")
    } <= figures


def test_no_two_places_have_one_name(analyzed, compared, written, several):
    for folder in (analyzed, compared, written, several):
        names = re.findall(r'<[a-z]+ [^>]*?\bid="([^"]+)"', (folder / "report.html").read_text())
        assert len(names) == len(set(names)), [name for name in names if names.count(name) > 1]


def test_chapters_are_in_order(analyzed):
    names = re.findall(r'<section class="chapter" id="([^"]*)"', (analyzed / "report.html").read_text())
    chapters = ["overview", "errors", "buckets", "calibration", "robustness", "representation", "model"]
    assert names == chapters


def test_robustness_is_on_request(written):
    assert 'id="robustness"' not in (written / "report.html").read_text()


def test_what_decoders_write_is_shown(written, prepared):
    entities = [e for one in read(prepared / "dev.jsonl") for e in one.entities if not e.discontinuous]
    with (written / "tables" / "regeneration.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert row["task"] == "the entity's own words"
    assert 0 < int(row["entities"]) <= len(entities)
    with (written / "tables" / "generation-by-label.csv").open() as file:
        counts = {each["label"]: int(each["entities"]) for each in csv.DictReader(file)}
    assert sum(counts.values()) == int(row["entities"])
    assert load_collected(written / "collected.npz").latent.shape[1] == 8


def test_the_chapter_on_several_corpora(several):
    def table(name: str) -> list[dict[str, str]]:
        with (several / "tables" / f"{name}.csv").open() as file:
            return list(csv.DictReader(file))

    assert [tuple(row.values()) for row in table("label-correspondences")] == [
        ("genes", "Disease", "Disease"),
        ("genes", "Gene", "-"),
    ]
    (genes,) = table("scores-by-corpus")  # drugs have no test documents
    assert genes["corpus"] == "genes"
    assert 0 <= float(genes["F1"]) <= 100
    matrix = table("transfer-matrix")
    assert [row["answers of"] for row in matrix] == ["drugs", "genes"]
    rows = load_collected(several / "collected.npz")
    assert set(rows.dataset.tolist()) == {"main", "genes"}
    assert rows.corpora == ("drugs",) * 3 + ("genes",) * 3
    assert rows.meanings == ("", "Chemical", "Disease", "", "Disease", "")
    foreign = rows.chance[rows.dataset == "genes"][:, :3]
    assert not foreign.any()  # classes of another corpus have no chance


def anchors_of(cell: str) -> list[str]:
    return re.findall(r"`#([\w-]+)`", cell)


def test_every_table_and_figure_of_the_papers_has_its_place(analyzed, compared, written, several, typed):
    ids = {
        anchor
        for folder in (analyzed, compared, written, several, typed)
        for anchor in re.findall(r'\bid="([\w-]+)"', (folder / "report.html").read_text())
    }
    rows = ROW.findall(PAGE.read_text())
    assert len(rows) > 30
    for paper, what, _, place in rows:
        found = anchors_of(place)
        assert found or "docs/" in place or "experiment" in place, f"{paper} {what}: no place"
        assert set(found) <= ids, f"{paper} {what}: {set(found) - ids} not in the report"


def test_every_function_on_the_list_exists():
    from importlib import import_module

    for paper, what, functions, _ in ROW.findall(PAGE.read_text()):
        for name in re.findall(r"`((?:evaluation|report|corpora|experiments|recipe_json)\.[\w.]+)`", functions):
            module, _, function = name.rpartition(".")
            assert hasattr(import_module(f"wingspan.{module}"), function), f"{paper} {what}: {name}"


def test_the_list_names_every_table_and_figure():
    named = {(paper, number) for paper, what, _, _ in ROW.findall(PAGE.read_text()) for number in numbers(what)}
    counts = {
        "Nguyen et al. 2023": (9, 2),
        "SNG": (2, 7),
        "Ji et al. 2022": (8, 7),
        "Zhu et al. 2023": (11, 4),
        "Oi and Miwa 2025": (8, 4),
    }
    wanted = {
        (paper, f"{kind} {n}")
        for paper, (tables, figures) in counts.items()
        for kind, most in (("Table", tables), ("Figure", figures))
        for n in range(1, most + 1)
    }
    assert wanted == named


def numbers(what: str) -> list[str]:
    """`Tables 1, 2` as two names."""
    kind, _, rest = what.partition(" ")
    return [f"{kind.removesuffix('s')} {number}" for number in re.findall(r"\d+", rest)]


def test_a_tagger_is_said_to_have_no_spans(prepared, tmp_path):
    from shells import QUICK

    import wingspan
    from wingspan.cli.analyze import collected
    from wingspan.recognizer import Recognizer

    settings = {name: value for name, _, value in (item.partition("=") for item in QUICK)}
    wingspan.train(
        "bundling/seq",
        train=prepared / "train.jsonl",
        output=tmp_path / "tagger",
        encoder="hashed",
        settings=settings,
        device="cpu",
    )
    model = Recognizer.from_pretrained(tmp_path / "tagger")
    section = collected(model, list(read(prepared / "dev.jsonl")), tmp_path, 1, tmp_path / "tagger")
    assert not (tmp_path / "collected.npz").exists()
    assert "span" in section.blocks[0].paragraphs[0]
