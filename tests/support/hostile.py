"""Model folders as an attacker would make them: each edits the folder of a good model with a BERT or hashed encoder."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class Attack(NamedTuple):
    """What is done to the folder, and what must be said of it; no message: it must load as if nothing were."""

    edit: Callable[[Path], None]
    message: str | None
    encoder: str = "bert"


CONFIG, TOKENIZER = "encoder/config.json", "tokenizer_config.json"


def changed(name: str, **values: Any) -> Callable[[Path], None]:
    """Sets keys of a JSON file; `a__b` is key b of the object at key a."""

    def edit(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text())
        for key, value in values.items():
            *places, last = key.split("__")
            inner = content
            for place in places:
                inner = inner[place]
            inner[last] = value
        path.write_text(json.dumps(content))

    return edit


def written(name: str, content: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)

    return edit


def replaced(name: str, make: Callable[[Path], Any]) -> Callable[[Path], None]:
    """Puts something else in the place of a file."""

    def edit(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        make(path)

    return edit


def linked(name: str, target: str) -> Callable[[Path], None]:
    return replaced(name, lambda path: path.symlink_to(target))


def pipe(name: str) -> Callable[[Path], None]:
    return replaced(name, os.mkfifo)


def giant(name: str) -> Callable[[Path], None]:
    """A file of a terabyte that takes no room on the disk."""
    return replaced(name, lambda path: path.touch() or os.truncate(path, 2**40))


def moved_outside(name: str) -> Callable[[Path], None]:
    """A link to the very file, outside the folder."""

    def edit(folder: Path) -> None:
        outside = folder.parent / "outside"
        shutil.move(folder / name, outside)
        (folder / name).symlink_to(outside)

    return edit


def bound_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the address of a socket must be short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(here)


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


PIPE, LEAVES, NOWHERE = "no regular file but a pipe", "a link that leaves the model folder", "a link that leads nowhere"
LARGER, DAMAGED = "far larger than its weights", "the encoder's files are missing or damaged"
KERNEL = "kernels-community/flash-attn2"

ATTACKS = {
    # what is no regular file inside the folder
    **{f"pipe {name}": Attack(pipe(name), PIPE) for name in ("recipe.json", "labels.json", "model.safetensors")},
    **{f"pipe {name}": Attack(pipe(name), PIPE) for name in ("facts.json", "calibration.json", CONFIG)},
    **{f"pipe {name}": Attack(pipe(name), PIPE) for name in ("tokenizer.json", TOKENIZER, "vocab.txt")},
    **{f"pipe {name}": Attack(pipe(name), PIPE) for name in ("chat_template.jinja", "special_tokens_map.json")},
    "pipe for templates": Attack(pipe("additional_chat_templates/x.jinja"), PIPE),
    "pipe journal": Attack(pipe("journal.jsonl"), PIPE, "hashed"),
    "endless recipe": Attack(linked("recipe.json", "/dev/zero"), PIPE),
    "endless config": Attack(linked(CONFIG, "/dev/zero"), PIPE),
    "endless tokenizer": Attack(linked("tokenizer.json", "/dev/urandom"), PIPE),
    "endless weights": Attack(linked("model.safetensors", "/dev/zero"), PIPE),
    "socket": Attack(replaced("labels.json", bound_socket), PIPE, "hashed"),
    "link out": Attack(linked("labels.json", "/etc/hostname"), LEAVES),
    "weights outside": Attack(moved_outside("model.safetensors"), LEAVES),
    "encoder outside": Attack(moved_outside("encoder"), LEAVES),
    "link to nothing": Attack(linked("tokenizer.json", "nothing"), NOWHERE),
    "link to itself": Attack(linked("recipe.json", "recipe.json"), NOWHERE),
    "link inside": Attack(
        lambda folder: ((folder / "labels.json").rename(folder / "l"), (folder / "labels.json").symlink_to("l")), None
    ),
    "folder for a file": Attack(replaced("labels.json", Path.mkdir), "labels.json: missing"),
    "link to data": Attack(linked("data", "/etc"), None, "hashed"),
    # sizes
    "giant recipe": Attack(giant("recipe.json"), "larger than 256 MB"),
    "giant labels": Attack(giant("labels.json"), "larger than 256 MB"),
    "giant config": Attack(giant(CONFIG), "larger than 256 MB"),
    "giant tokenizer settings": Attack(giant(TOKENIZER), "larger than 256 MB"),
    "giant tokenizer": Attack(giant("tokenizer.json"), "larger than 256 MB"),
    "layers 1e6": Attack(changed(CONFIG, num_hidden_layers=10**6), "num_hidden_layers is 1000000, which no model has"),
    "layers 9999": Attack(changed(CONFIG, num_hidden_layers=9_999), LARGER),
    "layers 1e12": Attack(changed(CONFIG, num_hidden_layers=10**12), "which no model has"),
    "hidden 1e9": Attack(changed(CONFIG, hidden_size=10**9), LARGER),
    "intermediate 1e9": Attack(changed(CONFIG, intermediate_size=10**9), LARGER),
    "vocabulary 1e9": Attack(changed(CONFIG, vocab_size=10**9), LARGER),
    "vocabulary 1e15": Attack(changed(CONFIG, vocab_size=10**15), "which no model has"),
    "positions 2e9": Attack(changed(CONFIG, max_position_embeddings=2 * 10**9), LARGER),
    "labels 1e9": Attack(changed(CONFIG, num_labels=10**9), None),
    "buckets 1e12": Attack(changed("recipe.json", recipe__encoder__buckets=10**12), LARGER, "hashed"),
    "embedding 1e9": Attack(changed("recipe.json", recipe__encoder__embedding=10**9), LARGER, "hashed"),
    "hidden of recipe 1e9": Attack(changed("recipe.json", recipe__encoder__hidden=10**9), LARGER, "hashed"),
    "width 1e9": Attack(changed("recipe.json", recipe__spans__width_size=10**9), LARGER, "hashed"),
    "many labels": Attack(
        written("labels.json", json.dumps({"main": [str(n) for n in range(10**6)]})), "weights|larger", "hashed"
    ),
    # malformed
    "zero heads": Attack(changed(CONFIG, num_attention_heads=0), DAMAGED),
    "negative heads": Attack(changed(CONFIG, num_attention_heads=-1), "which no model has"),
    "heads as text": Attack(changed(CONFIG, num_attention_heads="2"), DAMAGED),
    "hidden size as text": Attack(changed(CONFIG, hidden_size="8"), DAMAGED),
    "hidden size null": Attack(changed(CONFIG, hidden_size=None), DAMAGED),
    "negative layers": Attack(changed(CONFIG, num_hidden_layers=-1), "which no model has"),
    "empty vocabulary": Attack(changed(CONFIG, vocab_size=0), "weights do not fit|damaged"),
    "odd activation": Attack(changed(CONFIG, hidden_act="os.system"), DAMAGED),
    "odd type of numbers": Attack(changed(CONFIG, dtype="nonsense"), DAMAGED),
    "number of 5,000 digits": Attack(written(CONFIG, '{"model_type": "bert", "x": ' + "9" * 5000 + "}"), DAMAGED),
    "config 900 deep": Attack(written(CONFIG, nested(900)), "nested deeper than 64"),
    "config 60 deep": Attack(changed(CONFIG, extra=json.loads(nested(55))), None),
    "config 1e5 deep": Attack(written(CONFIG, nested(100_000)), "damaged"),
    "recipe 900 deep": Attack(written("recipe.json", nested(900)), "nested deeper than 64"),
    "recipe of lists": Attack(changed("recipe.json", recipe__terms=json.loads("[" * 400 + "]" * 400)), "nested"),
    "facts 900 deep": Attack(written("facts.json", nested(900)), "nested deeper than 64"),
    "tokenizer 900 deep": Attack(written("tokenizer.json", nested(900)), DAMAGED),
    "tokenizer settings 900 deep": Attack(written(TOKENIZER, nested(900)), "nested deeper than 64"),
    "special token without a vector": Attack(changed(TOKENIZER, cls_token="x"), "tokens that its model has no vectors"),
    "encoder and decoder": Attack(
        written(
            CONFIG,
            json.dumps(
                {"model_type": "encoder-decoder", "encoder": {"model_type": "bert"}, "decoder": {"model_type": "bert"}}
            ),
        ),
        "is no text encoder",
    ),
    "pictures": Attack(written(CONFIG, '{"model_type": "vit"}'), "no text encoder|larger|damaged"),
    "speech": Attack(written(CONFIG, '{"model_type": "whisper"}'), "no text encoder|larger|damaged"),
    "no type": Attack(written(CONFIG, '{"hidden_size": 8}'), DAMAGED),
    "unknown type": Attack(changed(CONFIG, model_type="evil"), "knows no model_type 'evil'"),
    "list for a type": Attack(changed(CONFIG, model_type=["bert"]), "knows no model_type"),
    "another type": Attack(changed(CONFIG, model_type="t5"), "weights do not fit|larger|damaged"),
    # code, kernels, quantizers, other repositories
    "code of a model": Attack(changed(CONFIG, auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}), None),
    "code elsewhere": Attack(
        changed(CONFIG, model_type="evil", auto_map={"AutoConfig": "evil/repo--evil.Config"}), "no model_type 'evil'"
    ),
    "code of a tokenizer": Attack(
        changed(TOKENIZER, auto_map={"AutoTokenizer": ["evil.Slow", "evil.Fast"]}, tokenizer_class="EvilTokenizer"), "."
    ),
    "a model for a tokenizer": Attack(changed(TOKENIZER, tokenizer_class="AutoModel"), "'AutoModel' is no tokenizer"),
    "pipeline for a tokenizer": Attack(changed(TOKENIZER, tokenizer_class="pipeline"), "'pipeline' is no tokenizer"),
    "trainer in the config": Attack(changed(CONFIG, tokenizer_class="Trainer"), "'Trainer' is no tokenizer"),
    "number for a tokenizer": Attack(changed(TOKENIZER, tokenizer_class=5), "'5' is no tokenizer"),
    "kernel": Attack(changed(CONFIG, attn_implementation=KERNEL), None),
    "private kernel": Attack(changed(CONFIG, _attn_implementation=KERNEL), None),
    "internal kernel": Attack(changed(CONFIG, _attn_implementation_internal=KERNEL), None),
    "kernel by name": Attack(changed(CONFIG, attn_implementation={"": KERNEL}), None),
    "kernel by number": Attack(changed(CONFIG, attn_implementation=5), None),
    "flash attention": Attack(changed(CONFIG, attn_implementation="flash_attention_2"), None),
    "experts": Attack(changed(CONFIG, experts_implementation=KERNEL, _experts_implementation=KERNEL), None),
    "kernels on": Attack(changed(CONFIG, use_kernels=True, kernel_config={"RMSNorm": KERNEL}), None),
    "kernels of a model": Attack(written(CONFIG, '{"model_type": "yoso"}'), "fetch kernels from a hub"),
    "kernels inside": Attack(
        changed(CONFIG, text_config={"model_type": "mra"}, model_type="clip"), "fetch kernels from a hub"
    ),
    **{
        f"quantized by {method}": Attack(changed(CONFIG, quantization_config={"quant_method": method}), None)
        for method in ("bitsandbytes", "fp8", "mxfp4", "gptq", "evil")
    },
    "weights elsewhere": Attack(changed(CONFIG, transformers_weights="../../evil.safetensors"), None),
    "fused": Attack(changed(CONFIG, fusion_config={"evil": True}), None),
}


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Ends what hangs in this thread, so that one test fails instead of all."""

    def end(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
