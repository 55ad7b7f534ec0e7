"""Model folders: no code of theirs is run, damage is said in one sentence."""

import json
import pickle
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import wingspan
from trainings import entities, untrained

TEXT = "Aspirin lowers BRCA1 in the cell ."


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    untrained().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def change(path: Path, edit) -> None:
    value = json.loads(path.read_text())
    edit(value)
    path.write_text(json.dumps(value))


def one_sentence(folder: Path) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        wingspan.load(folder, device="cpu")
    message = " ".join(str(caught.value).split())
    assert 10 < len(message) < 600
    return message


def test_what_is_in_a_folder(saved, saved_bert):
    assert {path.name for path in saved.iterdir()} == {
        "recipe.json",
        "labels.json",
        "model.safetensors",
        "facts.json",
        "README.md",
    }
    names = {path.relative_to(saved_bert).as_posix() for path in saved_bert.rglob("*")}
    assert {"encoder/config.json", "tokenizer.json"} <= names
    assert not [name for name in names if Path(name).suffix in (".bin", ".pt", ".pkl", ".pickle", ".py")]


def test_a_folder_can_be_moved_and_needs_no_encoder_elsewhere(saved_bert, tmp_path, folders):
    moved = shutil.copytree(saved_bert, tmp_path / "moved")
    change(moved / "recipe.json", lambda r: r["recipe"]["encoder"].update(name="/nowhere"))
    assert entities(wingspan.load(moved).predict(TEXT)) == entities(wingspan.load(saved_bert).predict(TEXT))


@pytest.mark.parametrize("part", ["os:system", "subprocess:Popen", "evil_part:Encoder", "wingspanner.evil:Encoder"])
@pytest.mark.parametrize("slot", ["encoder", "spans", "head", "candidates"])
def test_parts_outside_are_refused_before_import(folder, part, slot, monkeypatch):
    change(folder / "recipe.json", lambda record: record["recipe"].update({slot: {"part": part}}))
    imported = []
    monkeypatch.setattr("wingspan.recipe_json.import_module", lambda name: imported.append(name) or import_module(name))
    assert "outside wingspan" in one_sentence(folder)
    assert part.partition(":")[0] not in imported


def test_a_module_beside_the_weights_is_not_run(folder, tmp_path):
    mark = tmp_path / "ran"
    (folder / "evil_part.py").write_text(f"open({str(mark)!r}, 'w')\nclass Encoder: pass\n")
    change(
        folder / "recipe.json",
        lambda record: record["recipe"]["terms"]["spans"].update(objective={"part": "evil_part:X"}),
    )
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); import wingspan; wingspan.load({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode != 0
    assert "outside wingspan" in done.stderr
    assert not mark.exists()


def test_parts_inside_of_the_wrong_kind_are_refused(folder):
    change(folder / "recipe.json", lambda record: record["recipe"].update(encoder={"part": "wingspan.cli:main"}))
    assert "no encoder, span representation, head or objective" in one_sentence(folder)
    change(
        folder / "recipe.json",
        lambda record: record["recipe"].update(encoder={"part": "wingspan.heads.feedforward:FeedForwardHead"}),
    )
    assert "the encoder must be a part of the family Encoder" in one_sentence(folder)


class Bomb:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return open, (str(self.mark), "w")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.bin", "model.pt", "training_args.bin", "tokenizer.pkl"])
def test_pickles_are_never_opened(saved, saved_bert, tmp_path, name):
    for source in (saved, saved_bert):
        folder = Path(shutil.copytree(source, tmp_path / source.parent.name))
        mark = tmp_path / "ran"
        for place in (folder / name, folder / "encoder" / name):
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(pickle.dumps(Bomb(mark)))
        wingspan.load(folder).predict(TEXT)
        (folder / "model.safetensors").unlink()
        assert "the weights are missing" in one_sentence(folder)
        assert not mark.exists()


def test_code_of_the_encoder_is_never_trusted(saved_bert, tmp_path):
    mark = tmp_path / "ran"
    folder = Path(shutil.copytree(saved_bert, tmp_path / "model"))
    for place in (folder, folder / "encoder"):
        (place / "evil.py").write_text(f"open({str(mark)!r}, 'w')\n")
    own = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model", "AutoTokenizer": ["evil.Tokenizer", None]}
    change(folder / "encoder" / "config.json", lambda config: config.update(auto_map=own, model_type="evil"))
    assert "the encoder's files are missing or damaged" in one_sentence(folder)
    change(folder / "encoder" / "config.json", lambda config: config.update(model_type="bert"))
    wingspan.load(folder).predict(TEXT)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("recipe.json", None, "no model here (recipe.json is missing)"),
        ("labels.json", None, "labels.json: missing; copy the whole model folder"),
        ("model.safetensors", None, "model.safetensors: the weights are missing"),
        ("recipe.json", b"{", "recipe.json: damaged"),
        ("recipe.json", b"", "recipe.json: damaged"),
        ("recipe.json", b"\xff\xfe{}", "recipe.json: damaged"),
        ("recipe.json", b"[]", "recipe.json: damaged (no JSON object)"),
        ("recipe.json", b"{}", "format None is unknown"),
        ("recipe.json", b'{"format": 99}', "format 99 is unknown; it needs a newer wingspan"),
        ("recipe.json", b'{"format": 1}', "holds no recipe"),
        ("recipe.json", b'{"format": 1, "recipe": 5}', "holds no recipe"),
        ("recipe.json", b"[" * 100_000, "recipe.json: damaged"),
        ("labels.json", b"[]", "labels.json: damaged"),
        ("labels.json", b"{}", "labels.json: damaged"),
        ("labels.json", b'{"main": "Drug"}', "labels.json: damaged"),
        ("labels.json", b'{"main": [1, 2]}', "labels.json: damaged"),
        ("labels.json", b'{"main": ["one"]}', "the weights do not fit"),
        ("labels.json", b'{"main": ["a", "b", "c"]}', "the weights do not fit"),
        ("facts.json", b"[1]", "facts.json: damaged"),
        ("model.safetensors", b"", "the weights do not fit or are damaged"),
        ("model.safetensors", b"\x00" * 100, "the weights do not fit or are damaged"),
        ("model.safetensors", b"not weights at all", "the weights do not fit or are damaged"),
    ],
)
def test_damage_is_one_sentence(folder, name, content, message):
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    assert message in one_sentence(folder)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_truncated_weights(folder, part):
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(weights[: int(len(weights) * part)])
    assert "the weights do not fit or are damaged" in one_sentence(folder)


@pytest.mark.parametrize("name", ["encoder/config.json", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b'{"model_type": "bert"}'])
def test_damaged_files_of_an_encoder(saved_bert, tmp_path, name, content):
    folder = Path(shutil.copytree(saved_bert, tmp_path / "model"))
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    one_sentence(folder)


def scalars(value, path=()):
    """The place of every value in a JSON object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield (*path, key)
        yield from scalars(part, (*path, key))


def test_any_damaged_value_of_a_recipe_is_one_sentence(folder):
    """Each value of recipe.json replaced by others: it loads or says why not; nothing else."""
    path = folder / "recipe.json"
    original = json.loads(path.read_text())
    tried, said = 0, []
    for place in scalars(original["recipe"]):
        for value in (None, -1, 10**9, "x", [], {}, [None], {"part": 5}, {"record": "Term"}, True):
            if value == 10**9 and place[-1] in ("buckets", "embedding", "hidden", "max_width", "width_size", 0):
                continue  # a size that is a number is believed
            damaged = json.loads(json.dumps(original))
            inner = damaged["recipe"]
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            path.write_text(json.dumps(damaged))
            tried += 1
            try:
                wingspan.load(folder, device="cpu").predict(TEXT)
            except ValueError as error:
                said.append(str(error))
            except Exception as error:  # the test is about exactly these
                pytest.fail(f"{place} = {value!r}: {type(error).__name__}: {error}")
    assert tried > 300
    assert len(said) > 200
    assert all(10 < len(message) < 600 for message in said)


@pytest.mark.parametrize("name", ["runs/nothing", "./nothing", "a/b/c", "/nowhere/at/all", "", "..", "x y"])
def test_no_model_of_that_name(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ValueError, match=r"neither a model folder nor a hub id|no model here"):
        wingspan.load(name)
