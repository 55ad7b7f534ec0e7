"""Tiny random BERT, RoBERTa, T5 and BART folders with tokenizers of their own, as the hub has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import AutoModel, BartConfig, BertConfig, RobertaConfig, T5Config

WORD_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "drug", "gene", "##s", "##xy", "cell", "in", "the", ".", "-"]


def tiny_bert(folder: Path, pieces: Sequence[str] = WORD_PIECES) -> Path:
    """Uncased; its tokenizer.json carries truncation and padding, as some published ones do."""
    numbers = {piece: at for at, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, numbers[name]) for name in ("[CLS]", "[SEP]")]
    )
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=16, pad_id=numbers["[PAD]"], pad_token="[PAD]")
    special = dict(unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]", sep_token="[SEP]")
    config = BertConfig(
        vocab_size=len(pieces),
        pad_token_id=numbers["[PAD]"],
        hidden_size=8,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=40,
    )
    return _write(folder, tokenizer, {"tokenizer_class": "BertTokenizer", "do_lower_case": True, **special}, config)


def tiny_roberta(folder: Path) -> Path:
    """Cased, byte-level; words at the beginning have no space before them unless one is added."""
    letters = [*"abcdefghijklmnopqrstuvwxyzABCDEFG.-", "Ġ"]
    vocabulary = ["<s>", "<pad>", "</s>", "<unk>", *letters, "dr", "ug", "drug", "Ġdrug", "Ġg", "en", "Ġgen", "Ġgene"]
    merges = [("d", "r"), ("u", "g"), ("dr", "ug"), ("Ġ", "drug"), ("Ġ", "g"), ("e", "n"), ("Ġg", "en"), ("Ġgen", "e")]
    tokenizer = Tokenizer(models.BPE({piece: at for at, piece in enumerate(vocabulary)}, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    special = dict(unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", cls_token="<s>")
    config = RobertaConfig(
        vocab_size=len(vocabulary),
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=42,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    settings = {"tokenizer_class": "RobertaTokenizer", "sep_token": "</s>", "mask_token": "<unk>", **special}
    return _write(folder, tokenizer, settings, config)


def tiny_t5(folder: Path, activation: str = "relu", size: int = 8) -> Path:
    """Cased, with an end and no beginning; encoder and decoder, as published. `gated-gelu` is T5 1.1."""
    words = ["▁a", "▁drug", "▁gene", "▁Gene", "s", "xy", "▁cell", "▁in", "▁the", "▁", ".", "-", "▁Drug"]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", -9.0), *((word, -1.0 - len(word) / 9) for word in words)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    config = T5Config(
        vocab_size=len(pieces) + 3,  # published ones have more rows than pieces
        d_model=size,
        d_kv=size // 2,
        d_ff=2 * size,
        num_layers=3,
        num_heads=2,
        relative_attention_num_buckets=6,
        relative_attention_max_distance=8,
        feed_forward_proj=activation,
    )
    special = dict(unk_token="<unk>", pad_token="<pad>", eos_token="</s>", extra_ids=0)
    return _write(folder, tokenizer, {"tokenizer_class": "T5Tokenizer", **special}, config)


def tiny_bart(folder: Path) -> Path:
    """RoBERTa's tokenizer before an encoder and a decoder."""
    tiny_roberta(folder)
    rows = json.loads((folder / "config.json").read_text())["vocab_size"]
    config = BartConfig(
        vocab_size=rows,
        d_model=8,
        encoder_layers=2,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        max_position_embeddings=40,
    )
    _write_model(folder, config)
    return folder


def _write(folder: Path, tokenizer: Tokenizer, settings: dict, config) -> Path:
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    _write_model(folder, config)
    return folder


def _write_model(folder: Path, config) -> None:
    torch.manual_seed(0)
    model = AutoModel.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # larger than the usual start, so that words differ clearly
            parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)
