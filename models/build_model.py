"""Makes the folder of wingspan-bio-small of a trained model: weights of 16 bits, of word pieces only the usual ones.

    python models/build_model.py runs/bio-small                   # into the package
    python models/build_model.py runs/bio-small --output build/trimmed --bits 32

`make model` trains and builds. Where the encoder has word pieces, those that the training texts use most are kept;
words with other pieces are cut into smaller ones, down to single characters, so every text can still be read.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from wingspan.checkpoint import WEIGHTS
from wingspan.tokenizing.pieces import TOKENIZER, PieceTokenize
from wingspan.training.multi_corpus import read_corpora

HERE = Path(__file__).parent
PACKAGED = HERE / "wingspan-bio-small" / "wingspan_bio_small" / "model"
PIECES = 19_000  # with as many, weights of 16 bits take less than 40 MB
TABLE = "model.encoder.model.embeddings.word_embeddings.weight"
LATIN_AND_GREEK = range(0x400)
SYMBOLS = range(0x2000, 0x2300)  # punctuation, arrows, letter-like and mathematical signs
CONTINUED = "##"
NEVER_USED = re.compile(r"\[unused\d+\]")
FOLDERS = re.compile(r'(?<=[" :])/(?:[^\s"/]+/)+')  # of absolute paths
LEFT_OUT = ("journal.jsonl", "leaks.json", "README.md", "state")
"""What a run folder has besides its model; the card of the package is README.md there."""


def counted_pieces(tokenize: PieceTokenize, texts: Iterable[str]) -> Counter[int]:
    """How often the training texts use each piece."""
    found: Counter[int] = Counter()
    for text in texts:
        found.update(tokenize.backend.encode(text, add_special_tokens=False).ids)
    return found


def is_single(piece: str) -> bool:
    """Whether a piece is one character that any text may have."""
    character = piece.removeprefix(CONTINUED)
    return len(character) == 1 and (ord(character) in LATIN_AND_GREEK or ord(character) in SYMBOLS)


def kept_pieces(vocabulary: dict[str, int], special: set[str], used: Counter[int], size: int) -> list[str]:
    """The pieces of the smaller vocabulary, in their old order."""
    always = {piece for piece in vocabulary if piece in special or is_single(piece)}
    others = [piece for piece in vocabulary if piece not in always and not NEVER_USED.fullmatch(piece)]
    others.sort(key=lambda piece: (-used[vocabulary[piece]], vocabulary[piece]))
    return sorted([*always, *others[: max(0, size - len(always))]], key=vocabulary.__getitem__)


def copy_without_paths(model: Path, output: Path) -> None:
    """Copies the files of the model; names of files on this machine become those of the files alone."""
    shutil.rmtree(output, ignore_errors=True)
    shutil.copytree(model, output, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for name in ("recipe.json", "facts.json"):
        text = (output / name).read_text(encoding="utf-8")
        (output / name).write_text(FOLDERS.sub("", text), encoding="utf-8")


def trim(model: Path, output: Path, used: Counter[int], size: int) -> None:
    """Leaves at most `size` word pieces in the copied tokenizer and weights."""
    stored = json.loads((model / TOKENIZER).read_text(encoding="utf-8"))
    vocabulary: dict[str, int] = stored["model"]["vocab"]
    special = {token["content"] for token in stored["added_tokens"]}
    kept = kept_pieces(vocabulary, special, used, size)
    new = {piece: number for number, piece in enumerate(kept)}
    weights = load_file(model / WEIGHTS)
    weights[TABLE] = weights[TABLE][[vocabulary[piece] for piece in kept]].contiguous()
    save_file(weights, output / WEIGHTS, metadata={"format": "pt"})
    renumber(stored, new)
    (output / TOKENIZER).write_text(json.dumps(stored, ensure_ascii=False), encoding="utf-8")
    config = json.loads((model / "encoder" / "config.json").read_text(encoding="utf-8"))
    config |= {"vocab_size": len(kept), "pad_token_id": new["[PAD]"]}
    (output / "encoder" / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def store_in(bits: int, output: Path) -> None:
    """Rounds the weights to so many bits."""
    number_type = {16: torch.float16, 32: torch.float32}[bits]
    rounded = {name: value.to(number_type).contiguous() for name, value in load_file(output / WEIGHTS).items()}
    save_file(rounded, output / WEIGHTS, metadata={"format": "pt"})


def renumber(stored: dict[str, object], new: dict[str, int]) -> None:
    """Puts the new numbers of pieces into a tokenizer.json, everywhere that it has numbers."""
    tokenizer: dict[str, object] = stored  # as the library writes it
    model, processor = tokenizer["model"], tokenizer.get("post_processor")
    assert isinstance(model, dict)
    model["vocab"] = new
    added = tokenizer["added_tokens"]
    assert isinstance(added, list)
    for token in added:
        token["id"] = new[token["content"]]
    tokenizer["truncation"] = tokenizer["padding"] = None  # both would cut or lengthen texts silently
    if isinstance(processor, dict):
        for end in ("sep", "cls"):
            if end in processor:
                processor[end][1] = new[processor[end][0]]
        for token in processor.get("special_tokens", {}).values():
            token["ids"] = [new[piece] for piece in token["tokens"]]


def main() -> None:
    """Compresses a model; into the package, unless another folder is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--output", type=Path, default=PACKAGED)
    parser.add_argument("--pieces", type=int, default=PIECES)
    parser.add_argument("--bits", type=int, choices=(16, 32), default=16)
    given = parser.parse_args()
    from wingspan.recognizer import Recognizer

    if given.output.resolve() == given.model.resolve():
        parser.error("--output is the trained model itself; give another folder")
    if given.output.exists() and given.output != PACKAGED:
        parser.error(f"{given.output} is there already; choose another --output")
    tokenize = Recognizer.from_pretrained(given.model, device="cpu").engine.tokenize
    copy_without_paths(given.model, given.output)
    if isinstance(tokenize, PieceTokenize):
        texts = (document.text for document in read_corpora(HERE / "corpora.toml").training)
        trim(given.model, given.output, counted_pieces(tokenize, texts), given.pieces)
    store_in(given.bits, given.output)
    size = sum(file.stat().st_size for file in given.output.rglob("*") if file.is_file())
    print(f"{given.output}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
