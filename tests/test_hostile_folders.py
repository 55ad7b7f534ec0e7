"""Model folders made to hang, to run code or to fill the memory: each is refused in one sentence, or harmless."""

import json
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hostile import ATTACKS, KERNEL, Attack, changed, pipe, time_limit

import wingspan
from trainings import entities, untrained
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.encoders.static import StaticPieces

TEXT = "Aspirin lowers BRCA1 in the cell ."
SECONDS = 20


@pytest.fixture(scope="module")
def good(tmp_path_factory, saved_bert) -> dict[str, Path]:
    hashed = tmp_path_factory.mktemp("good") / "model"
    untrained().save_pretrained(hashed)
    return {"bert": saved_bert, "hashed": hashed}


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_folder(good, tmp_path, name):
    attack = ATTACKS[name]
    folder = Path(shutil.copytree(good[attack.encoder], tmp_path / "model"))
    attack.edit(folder)
    if attack.message is None:
        with time_limit(SECONDS):
            assert entities(wingspan.load(folder, device="cpu").predict(TEXT)) == entities(
                wingspan.load(good[attack.encoder], device="cpu").predict(TEXT)
            )
        return
    with time_limit(SECONDS), pytest.raises(ValueError, match=attack.message) as caught:
        wingspan.load(folder, device="cpu")
    assert len(str(caught.value)) < 600


def pickled(folder):
    """Weights as a pickle, which would run code."""
    (folder / "model.safetensors").unlink()
    for name in ("model.safetensors", "pytorch_model.bin"):
        (folder / name).write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")


nested_code = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}}
EVERYWHERE = {
    "a pickle": Attack(pickled, "the weights do not fit or are damaged"),
    "a foreign part": Attack(changed("recipe.json", recipe__spans__part="os:system"), "a part 'os:system' outside"),
    "a path escape": ATTACKS["link out"],
    "a giant shape": ATTACKS["hidden 1e9"],
    "remote code": ATTACKS["code elsewhere"],
    "remote code in a nested config": Attack(
        changed("encoder/config.json", model_type="clip", text_config=nested_code), "knows no model_type 'evil'"
    ),
}


def opened_by_spacy(folder, shell):
    spacy = pytest.importorskip("spacy")
    __import__("wingspan.adapters.spacy_component")  # as the entry point does where this checkout is installed
    with pytest.raises(ValueError, match=r"\w") as refused:  # the caller looks at the words
        spacy.blank("en").add_pipe("wingspan", config={"model": str(folder), "device": "cpu"})
    return str(refused.value)


def opened_by_export(folder, shell):
    pytest.importorskip("onnxruntime")
    return shell.refuses("export", folder, "out")


def opened_by_service(folder, shell):
    pytest.importorskip("uvicorn")
    return shell.refuses("serve", folder, "--port", "0")


@pytest.mark.parametrize("name", EVERYWHERE)
@pytest.mark.parametrize("opened", [opened_by_service, opened_by_export, opened_by_spacy])
def test_service_export_and_spacy_refuse_the_same_folders(opened, name, saved_bert, shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path(shutil.copytree(saved_bert, tmp_path / "model"))
    EVERYWHERE[name].edit(folder)
    with time_limit(SECONDS):
        assert re.search(EVERYWHERE[name].message, opened(folder, shell))
    assert [path.name for path in tmp_path.iterdir()] == ["model"], "nothing ran, nothing was written"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_pipe_in_the_folder_of_a_base_model(folders, tmp_path, name):
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "base"))
    pipe(name)(folder)
    with time_limit(SECONDS), pytest.raises(ValueError, match=r"cannot be loaded \(.*no regular file but a pipe"):
        PretrainedEncoder(name=str(folder))


def test_a_base_model_larger_than_its_weights(folders, tmp_path):
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "base"))
    changed("config.json", num_hidden_layers=9_000)(folder)
    with time_limit(SECONDS), pytest.raises(ValueError, match="far larger than its weights"):
        PretrainedEncoder(name=str(folder))


def test_a_shard_outside_the_folder(folders, tmp_path):
    folder = Path(shutil.copytree(folders["bert"], tmp_path / "base"))
    (folder / "model.safetensors").rename(tmp_path / "elsewhere.safetensors")
    index = {"metadata": {}, "weight_map": {"embeddings": "../elsewhere.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(ValueError, match=r"names '../elsewhere.safetensors', which is no file beside it"):
        PretrainedEncoder(name=str(folder))


def test_a_table_of_pieces_larger_than_its_weights(folders, tmp_path):
    untrained(encoder=partial(StaticPieces, name=str(folders["bert"]))).save_pretrained(tmp_path)
    (tmp_path / "vocabulary.json").write_text('{"table": [1000000000, 1000000000]}')
    with time_limit(SECONDS), pytest.raises(ValueError, match="far larger than its weights"):
        wingspan.load(tmp_path)


def test_a_snapshot_of_the_hub_is_links_into_its_cache(saved_bert, tmp_path, monkeypatch):
    cache = tmp_path / "hub"
    snapshot = cache / "models--me--mine" / "snapshots" / "0123"
    for file in [file for file in saved_bert.rglob("*") if file.is_file()]:
        blob = cache / "models--me--mine" / "blobs" / file.name
        blob.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, blob)
        place = snapshot / file.relative_to(saved_bert)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(blob)
    with pytest.raises(ValueError, match="a link that leaves the model folder"):
        wingspan.load(snapshot)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    assert wingspan.load(snapshot).labels == wingspan.load(saved_bert).labels


def test_nobody_is_asked_whether_code_may_run(saved_bert, tmp_path, monkeypatch):
    """Transformers asks on the terminal, or takes a line of a piped text for the answer, where classes are named so."""
    folder, mark = Path(shutil.copytree(saved_bert, tmp_path / "model")), tmp_path / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')")
    own = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model", "AutoTokenizer": ["evil.Slow", "evil.Fast"]}
    (folder / "config.json").write_text(json.dumps({"model_type": "evil", "auto_map": own}))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    for name in ("AutoModel", "AutoConfig", "AutoProcessor", "AutoTokenizer"):
        changed("tokenizer_config.json", tokenizer_class=name, auto_map=own)(folder)
        with time_limit(SECONDS), pytest.raises(ValueError, match=f"tokenizer_class '{name}' is no tokenizer"):
            wingspan.load(folder, device="cpu")
    changed("tokenizer_config.json", tokenizer_class="EvilTokenizer", auto_map=own)(folder)
    with time_limit(SECONDS), suppress(ValueError):  # refused, or read without that class
        wingspan.load(folder, device="cpu")
    assert not mark.exists()


FAKE_KERNELS = """
import pathlib, types
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything(name)
class Anything:
    def __init__(self, *names, **others):
        self.names = names
    def __getattr__(self, name):
        return Anything(*self.names, name)
    def __call__(self, *arguments, **others):
        if "get_kernel" in self.names or "kernelize" in self.names:
            pathlib.Path({mark!r}).write_text(str(arguments))
            raise RuntimeError("a kernel was fetched")
        return arguments[0] if arguments and callable(arguments[0]) else Anything()
"""


def test_no_kernel_is_fetched_even_where_the_package_is_installed(saved_bert, folders, tmp_path):
    """The control shows that plain transformers does fetch it, by the same configuration."""
    from transformers.utils.import_utils import KERNELS_MIN_VERSION

    site, mark = tmp_path / "site", tmp_path / "fetched"
    for place in (site / "kernels", site / "kernels" / "layer", site / f"kernels-{KERNELS_MIN_VERSION}.dist-info"):
        place.mkdir(parents=True)
    fake = FAKE_KERNELS.format(mark=str(mark))
    for module in ("__init__.py", "layer/__init__.py", "layer/mode.py"):
        (site / "kernels" / module).write_text(fake)
    metadata = f"Metadata-Version: 2.1\nName: kernels\nVersion: {KERNELS_MIN_VERSION}\n"
    (site / f"kernels-{KERNELS_MIN_VERSION}.dist-info" / "METADATA").write_text(metadata)
    saved = Path(shutil.copytree(saved_bert, tmp_path / "saved"))
    base = Path(shutil.copytree(folders["bert"], tmp_path / "base"))
    named = {"attn_implementation": KERNEL, "_attn_implementation": KERNEL}
    changed("encoder/config.json", **named)(saved)
    changed("config.json", **named)(base)

    def ran(code: str) -> subprocess.CompletedProcess[str]:
        lines = f"import sys; sys.path.insert(0, {str(site)!r}); {code}"
        return subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=False)

    done = ran(
        "import wingspan; from wingspan.encoders.pretrained import PretrainedEncoder; "
        f"wingspan.load({str(saved)!r}).predict({TEXT!r}); PretrainedEncoder(name={str(base)!r}); print('loaded')"
    )
    assert done.stdout.strip() == "loaded", done.stderr
    assert not mark.exists()
    control = ran(f"import transformers; transformers.AutoModel.from_pretrained({str(base)!r})")
    assert control.returncode != 0
    assert "flash-attn2" in mark.read_text()
