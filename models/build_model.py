"""Makes the folder of wingspan-bio-small of a trained model: weights of 16 bits, of word pieces only the usual ones.

    python models/build_model.py runs/bio-small                   # into the package
    python models/build_model.py runs/bio-small --output build/trimmed --bits 32

Where the encoder has word pieces, those that the training texts use most are kept. Words with other pieces are cut
into smaller ones; all single characters are kept, so no word becomes unknown that was not. A model that was calibrated
(calibrate_model.py) stays so.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from wingspan.checkpoint import WEIGHTS
from wingspan.recognizer import Recognizer
from wingspan.text import Document
from wingspan.tokenizing.pieces import TOKENIZER, PieceTokenize
from wingspan.training.corpora import corpora_of, handle_leaks

HERE = Path(__file__).parent
PACKAGED = HERE / "wingspan-bio-small" / "wingspan_bio_small" / "model"
PIECES = 21_000  # with as many, six layers of 384 in 16 bits take 39.4 MB; the training texts use 15,500
TABLE = "model.encoder.model.embeddings.word_embeddings.weight"
CONTINUED = "##"
NEVER_USED = re.compile(r"\[unused\d+\]")
FOLDERS = re.compile(r'(?<=[" :])/(?:[^\s"/]+/)+')  # of absolute paths
LEFT_OUT = ("journal.jsonl", "leaks.json", "README.md", "state")
"""What a run folder has besides its model; the card of the package is README.md there."""


def training_documents() -> Sequence[Document]:
    """The documents that training keeps: none that is in a test set, or in a dev set that is held out."""
    corpora = corpora_of(None, None, None, None, HERE / "corpora.toml")
    return handle_leaks(corpora.train, corpora.held_out, "drop", corpora.target).documents


def counted_pieces(model: Recognizer, documents: Sequence[Document]) -> Counter[int]:
    """How often the words that the model sees in these documents need each piece."""
    words = Counter(word for sentence in model.segment(documents) for word in sentence.words)
    found: Counter[int] = Counter()
    for pieces, count in zip(model.engine.tokenize.cut(list(words)), words.values(), strict=True):
        for piece in pieces:
            found[piece] += count
    return found


def kept_pieces(vocabulary: dict[str, int], special: set[str], used: Counter[int], size: int) -> list[str]:
    """The pieces of the smaller vocabulary, in their old order."""
    always = {piece for piece in vocabulary if piece in special or len(piece.removeprefix(CONTINUED)) == 1}
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


def renumber(stored: dict[str, Any], new: dict[str, int]) -> None:
    """Puts the new numbers of pieces into a tokenizer.json, everywhere that it has numbers."""
    stored["model"]["vocab"] = new
    for token in stored["added_tokens"]:
        token["id"] = new[token["content"]]
    stored["truncation"] = stored["padding"] = None  # both would cut or lengthen texts silently
    processor = stored["post_processor"]  # of BERT's kind, or a template, which tells the same with more words
    for end in {"sep", "cls"} & set(processor):
        processor[end][1] = new[processor[end][0]]
    for token in processor.get("special_tokens", {}).values():
        token["ids"] = [new[piece] for piece in token["tokens"]]


def build(model: Path, output: Path, pieces: int, bits: int, documents: Sequence[Document] = ()) -> None:
    """Writes the smaller model; `documents` choose its word pieces, by default those that it was trained on."""
    recognizer = Recognizer.from_pretrained(model, device="cpu")
    copy_without_paths(model, output)
    if isinstance(recognizer.engine.tokenize, PieceTokenize):
        trim(model, output, counted_pieces(recognizer, documents or training_documents()), pieces)
    store_in(bits, output)


def main() -> None:
    """Compresses a model; into the package, unless another folder is given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--output", type=Path, default=PACKAGED)
    parser.add_argument("--pieces", type=int, default=PIECES)
    parser.add_argument("--bits", type=int, choices=(16, 32), default=16)
    given = parser.parse_args()
    if given.output.resolve() == given.model.resolve():
        parser.error("--output is the trained model itself; give another folder")
    if given.output.exists() and given.output != PACKAGED:
        parser.error(f"{given.output} is there already; choose another --output")
    build(given.model, given.output, given.pieces, given.bits)
    size = sum(file.stat().st_size for file in given.output.rglob("*") if file.is_file())
    print(f"{given.output}: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
