"""The component of spaCy against spaCy itself: found by its entry point, batched, saved with its model, careful."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest
from boxes import uninstall
from hostile import changed, written

import wingspan
from trainings import untrained
from wingspan.corpora.demo import corpus
from wingspan.text import Document, Entity, Span

spacy = pytest.importorskip("spacy")
pytestmark = pytest.mark.filterwarnings("ignore:entities that are no whole tokens")
ROOT = Path(__file__).parents[2]
MODEL = Path(__file__).parents[1] / "frozen" / "models" / "baseline"
TEXTS = [document.text for document in corpus()[0][:6]]
CONFIG = {"model": str(MODEL), "threshold": 0.1, "device": "cpu"}


@pytest.fixture(scope="module", autouse=True)
def factory():
    """As the entry point does it in an environment where this checkout is installed."""
    return __import__("wingspan.adapters.spacy_component").adapters.spacy_component


def pipeline(**config):
    nlp = spacy.blank("en")
    nlp.add_pipe("wingspan", config={**CONFIG, **config})
    return nlp


@pytest.fixture(scope="module")
def nlp():
    return pipeline()


@pytest.fixture(scope="module")
def expected() -> list[list[tuple]]:
    documents = wingspan.load(MODEL, device="cpu").predict(TEXTS, threshold=0.1)
    return [[(e.label, e.spans, round(e.score, 5)) for e in document.entities] for document in documents]


def found(doc, key="sc") -> list[tuple]:
    group = doc.spans[key]
    pieces = [tuple(Span(*piece) for piece in pieces) for pieces in group.attrs["fragments"]]
    rows = zip(group, pieces, group.attrs["scores"], strict=True)
    return [(span.label_, fragments, round(score, 5)) for span, fragments, score in rows]


def test_no_import_is_needed(tmp_path):
    """In a new process, with the entry points of pyproject.toml as an installation leaves them."""
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["spacy_factories"]
    metadata = tmp_path / "wingspan_ner-9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: wingspan-ner\nVersion: 9\n")
    lines = [f"{name} = {place}" for name, place in entry.items()]
    (metadata / "entry_points.txt").write_text("\n".join(["[spacy_factories]", *lines]) + "\n")
    code = (
        f"import sys; sys.path[:0] = {[str(tmp_path), str(ROOT / 'src')]!r}; import spacy\n"
        f"nlp = spacy.blank('en'); assert 'wingspan.recognizer' not in sys.modules\n"
        f"nlp.add_pipe('wingspan', config={CONFIG!r})\n"
        f"print(len(nlp({TEXTS[3]!r}).spans['sc']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) > 0


def test_docs_get_the_entities_of_predict(nlp, expected):
    docs = list(nlp.pipe(TEXTS))
    assert [found(doc) for doc in docs] == expected
    assert found(nlp(TEXTS[3])) == expected[3]
    assert sum(map(len, expected)) > 5
    for doc in docs:
        assert all(doc.text[s.start_char : s.end_char] == s.text for s in doc.spans["sc"])
        places = sorted((span.start, span.end) for span in doc.spans["sc"])
        flat = all(one[1] <= other[0] for one, other in zip(places, places[1:], strict=False))
        assert len(doc.ents) == (len(places) if flat else 0)


def test_pipe_predicts_in_batches(nlp, monkeypatch):
    component = nlp.get_pipe("wingspan")
    sizes, predict = [], component.recognizer.predict
    monkeypatch.setattr(
        component.recognizer, "predict", lambda texts, **options: sizes.append(len(texts)) or predict(texts, **options)
    )
    assert [doc.text for doc in nlp.pipe(TEXTS, batch_size=4)] == TEXTS
    assert sizes == [4, 2]


def answering(nlp, monkeypatch, *entities: Entity):
    """The pipeline with these entities for every text."""
    component = nlp.get_pipe("wingspan")
    monkeypatch.setattr(component, "warned", False)
    monkeypatch.setattr(
        component.recognizer, "predict", lambda texts, **_: [Document("0", text, entities) for text in texts]
    )
    return component


def test_borders_inside_tokens_are_said_and_kept(nlp, monkeypatch):
    text = "TGFB1mice have colon and lung tumors ."
    gene, tumor = Entity.at("Gene", 0, 5, 0.9), Entity("Tumor", (Span(15, 20), Span(30, 36)), 0.8)
    answering(nlp, monkeypatch, gene, tumor)
    with pytest.warns(UserWarning, match=r"such as 'TGFB1', are widened .*attrs\['fragments'\]"):
        doc = nlp(text)
    assert [(span.text, span.label_) for span in doc.spans["sc"]] == [
        ("TGFB1mice", "Gene"),
        ("colon and lung tumors", "Tumor"),
    ]
    assert found(doc) == [("Gene", gene.spans, 0.9), ("Tumor", tumor.spans, 0.8)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one line, not one for each Doc
        nlp(text)
    again = spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert found(again) == found(doc)


def test_ents_are_filled_only_where_nothing_overlaps(nlp, monkeypatch):
    answering(nlp, monkeypatch, Entity.at("A", 0, 4), Entity.at("B", 5, 8))
    assert [(span.text, span.label_) for span in nlp("lung one .").ents] == [("lung", "A"), ("one", "B")]
    answering(nlp, monkeypatch, Entity.at("A", 0, 8), Entity.at("B", 5, 8))
    doc = nlp("lung one .")
    assert (len(doc.ents), len(doc.spans["sc"])) == (0, 2)
    answering(nlp, monkeypatch, Entity.at("A", 0, 2), Entity.at("B", 2, 4))  # two in one token
    with pytest.warns(UserWarning, match="widened"):
        doc = nlp("lung one .")
    assert (len(doc.ents), len(doc.spans["sc"])) == (1, 2)


def test_settings(monkeypatch):
    nlp = pipeline(spans_key="found", ents=False, threshold=0.3, overlap="flat")
    doc = nlp(TEXTS[3])
    assert [*doc.spans] == ["found"]
    assert doc.ents == ()
    with pytest.raises(ValueError, match="overlap is 'other'"):
        pipeline(overlap="other")("A text.")
    uninstall(monkeypatch)
    with pytest.raises(ValueError, match="no other model is named"):
        pipeline(model="")("A text.")
    with pytest.raises(ValueError, match="neither a model folder nor a hub id"):
        pipeline(model="/no/such/model")("A text.")


def test_a_saved_pipeline_brings_its_model(nlp, expected, tmp_path):
    copy = Path(shutil.copytree(MODEL, tmp_path / "model"))
    pipeline(model=str(copy)).to_disk(tmp_path / "saved")
    shutil.rmtree(copy)
    loaded = spacy.load(tmp_path / "saved")
    assert [found(doc) for doc in loaded.pipe(TEXTS)] == expected
    other = spacy.blank("en")
    other.add_pipe("wingspan", config={**CONFIG, "model": "/gone"})
    other.from_bytes(loaded.to_bytes())
    assert [found(doc) for doc in other.pipe(TEXTS)] == expected


# Folders of strangers


@pytest.fixture(scope="module")
def good(tmp_path_factory, saved_bert) -> dict[str, Path]:
    hashed = tmp_path_factory.mktemp("good") / "model"
    untrained().save_pretrained(hashed)
    return {"bert": saved_bert, "hashed": hashed}


def test_a_saved_pipeline_is_read_as_a_strangers(good, tmp_path, factory):
    evil = tmp_path / "evil"
    component = pipeline(model=str(good["hashed"])).get_pipe("wingspan")
    component.to_disk(tmp_path / "saved")
    folder = tmp_path / "saved" / "model"
    changed("recipe.json", recipe__head={"part": "os:system", "command": f"touch {evil}"})(folder)
    with pytest.raises(ValueError, match="recipe.json"):
        component.from_disk(tmp_path / "saved")
    component.to_disk(tmp_path / "saved")
    (folder / "model.safetensors").write_bytes(pickle.dumps({"weights": [0.0]}))
    with pytest.raises(ValueError, match="the weights do not fit or are damaged"):
        component.from_disk(tmp_path / "saved")
    component.to_disk(tmp_path / "saved")
    written("labels.json", json.dumps({"main": ["x"] * 3}))(folder)
    with pytest.raises(ValueError, match=r"labels|weights"):
        component.from_disk(tmp_path / "saved")
    for name in ("../../outside", "/tmp/outside-of-wingspan"):
        with pytest.raises(ValueError, match="outside of its model folder"):
            component.from_bytes(factory.srsly.msgpack_dumps({name: b"x"}))
    assert not evil.exists()
    assert not Path("/tmp/outside-of-wingspan").exists()
