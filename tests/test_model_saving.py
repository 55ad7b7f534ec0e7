"""Saving a model: all of it, under any label, and a save that fails leaves the old model whole."""

import errno
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import wingspan
from trainings import entities, untrained
from wingspan import checkpoint
from wingspan.encoders.pretrained import PretrainedEncoder

TEXT = "Aspirin lowers BRCA1 in the cell ."


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    untrained().save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def test_labels_with_odd_names_survive(tmp_path):
    labels = ("cell line", "part", "record", "💊", "מחלה", "a\u200bb", 'quo"te', "new\nline", "")
    model = untrained(labels=labels)
    model.save_pretrained(tmp_path)
    again = wingspan.load(tmp_path)
    assert again.labels == model.labels
    assert entities(again.predict(TEXT, threshold=0.05)) == entities(model.predict(TEXT, threshold=0.05)) != [[]]


def test_weights_in_half_precision_are_computed_with_in_full(saved_bert, tmp_path):
    folder = Path(shutil.copytree(saved_bert, tmp_path / "model"))
    weights = load_file(folder / "model.safetensors")
    save_file({name: value.half() for name, value in weights.items()}, folder / "model.safetensors")
    assert (folder / "model.safetensors").stat().st_size < 0.6 * (saved_bert / "model.safetensors").stat().st_size
    half, full = wingspan.load(folder, device="cpu"), wingspan.load(saved_bert, device="cpu")
    assert {value.dtype for value in half.learner.parameters()} == {torch.float32}
    full.learner.load_state_dict({name: value.half().float() for name, value in full.learner.state_dict().items()})
    assert entities(half.predict(TEXT, threshold=0.05)) == entities(full.predict(TEXT, threshold=0.05)) != [[]]


def files_of(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("broken", ["weights", "tokenizer", "card", "rename"])
def test_a_failed_save_leaves_the_old_model(saved_bert, tmp_path, folders, monkeypatch, broken):
    folder = Path(shutil.copytree(saved_bert, tmp_path / "model"))
    before = files_of(folder)
    full = OSError(errno.ENOSPC, "No space left on device")

    def fail(*_, **__):
        raise full

    if broken == "weights":
        monkeypatch.setattr(checkpoint, "save_model", fail)
    elif broken == "tokenizer":
        monkeypatch.setattr(PretrainedEncoder, "save_files", fail)
    elif broken == "card":
        monkeypatch.setattr("wingspan.checkpoint.model_card", fail)
    else:
        monkeypatch.setattr("os.replace", fail)
    other = untrained("bundling/seq", labels=("A",), encoder=partial(PretrainedEncoder, name=str(folders["bert"])))
    with pytest.raises(OSError, match="No space left"):
        other.save_pretrained(folder)
    assert files_of(folder) == before
    assert {path.name for path in folder.iterdir()} == {Path(name).parts[0] for name in before}


@pytest.fixture
def small_disk(tmp_path):
    """A disk of a few hundred kilobytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("room", [1_000, 20_000, 40_000])
@pytest.mark.parametrize("kind", ["hashed", "bert"])
def test_a_full_disk(small_disk, folders, kind, room):
    encoder = {"encoder": partial(PretrainedEncoder, name=str(folders["bert"]))} if kind == "bert" else {}
    folder = small_disk / "model"
    model = untrained(**encoder)
    model.save_pretrained(folder)
    before = files_of(folder)
    status = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(b"x" * max(0, status.f_bavail * status.f_frsize - room))
    with pytest.raises(OSError, match=r"(?i)space|written|quota"):
        untrained(seed=2, labels=("A", "B"), **encoder).save_pretrained(folder)
    assert files_of(folder) == before
    assert entities(wingspan.load(folder).predict(TEXT)) == entities(model.predict(TEXT))
    assert not list(folder.glob(".*"))


def test_the_file_that_makes_a_folder_a_model_comes_last(folder, monkeypatch):
    moved = []
    rename, listed = Path.replace, Path.rglob

    def noted(self, target):
        moved.append(Path(target))
        return rename(self, target)

    model = wingspan.load(folder)
    monkeypatch.setattr(Path, "replace", noted)
    # whatever the order in which the disk lists files
    monkeypatch.setattr(Path, "rglob", lambda self, pattern: sorted(listed(self, pattern), reverse=True))
    model.save_pretrained(folder)
    names = [path.name for path in moved if path.parent == folder]
    assert sorted(names) == sorted(path.name for path in folder.iterdir())
    assert names[-1] == "recipe.json"


def test_weights_are_written_beside_the_old_ones_and_then_renamed(tmp_path, monkeypatch):
    path = tmp_path / "some.safetensors"
    checkpoint.write_weights(path, torch.nn.Linear(2, 2))
    before = path.read_bytes()

    def half(module, name):
        Path(name).write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(checkpoint, "save_model", half)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.write_weights(path, torch.nn.Linear(2, 2))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("write", [checkpoint.write_text, checkpoint.write_json])
def test_a_text_is_written_whole_or_not_at_all(tmp_path, write):
    path = tmp_path / "place.json"
    write(path, "old")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="surrogate"):
        write(path, "new, and then half of a pair: \ud83d")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_kill_left_is_cleared_away(folder):
    (folder / ".new-left").mkdir()
    (folder / ".new-left" / "model.safetensors").write_bytes(b"half")
    model = wingspan.load(folder)
    model.save_pretrained(folder)
    assert not list(folder.glob(".*"))


def test_the_card_tells_what_it_is(folder):
    model = wingspan.load(folder)
    micro = {"precision": 50.0, "recall": 25.0, "f1": 33.333, "tp": 1, "fp": 1, "fn": 3}
    model.facts["test"] = {"micro": micro}
    model.save_pretrained(folder)
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: wingspan\n")
    assert "{type: f1, value: 33.33}" in card
    assert "Entity types: Drug, Gene." in card
    assert "precision 50.00, recall 25.00, F1 33.33 (1 right, 1 spurious, 3 missed)" in card
    assert wingspan.load(folder).facts["test"] == {"micro": micro}


def test_weights_are_float32_and_shared_tensors_are_stored_once(saved):
    from safetensors.torch import load_file

    weights = load_file(saved / "model.safetensors")
    assert {value.dtype for value in weights.values()} == {torch.float32}
    assert set(weights) == set(untrained().learner.state_dict())


def test_weights_that_are_missing_in_the_file_are_refused(tmp_path):
    checkpoint.write_weights(tmp_path / "some.safetensors", torch.nn.Linear(2, 2, bias=False))
    with pytest.raises(ValueError, match="the weights do not fit or are damaged"):
        checkpoint.read_weights(tmp_path / "some.safetensors", torch.nn.Linear(2, 2))
