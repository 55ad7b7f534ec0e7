"""Words to word pieces, as arrays: the CPU side of pretrained encoders, without weights or torch, for workers."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np

from wingspan.batch import SHAPES, Inputs, Tokenize, within, word_units
from wingspan.text import Sentence

PIECES_PER_WORD = 64  # no word of a language has more; a 300,000-character "word" must not fill the whole input
CHARACTERS_PER_WORD = 256
CACHED_WORDS = 200_000


CorpusToken = Literal["end", "unknown"]
"""The corpus name after the pieces: a token per corpus, or the unknown token, as paper 004's code does for BERT."""


class PieceTokenize(Tokenize):
    """Words to pieces. Each word is cut alone, so its pieces can be cached.

    The name of one of the `corpora` is a token after the pieces, between two of the tokenizer's end tokens; an unknown
    corpus gets the token of the first.
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int,
        unit: Literal["word", "piece"],
        vocabulary: int,
        corpora: Sequence[str] = (),
        corpus_token: CorpusToken | None = "end",
    ) -> None:
        self.backend = tokenizer.backend_tokenizer
        self.backend.no_truncation()  # some tokenizer.json files store both, which would cut text silently
        self.backend.no_padding()
        self.unit = unit
        self.vocabulary = vocabulary
        self.cache: dict[str, tuple[int, ...]] = {}
        around = self.backend.encode(["a"], is_pretokenized=True)
        special = [i for i, mark in zip(around.ids, around.special_tokens_mask, strict=True) if mark]
        in_front = around.special_tokens_mask.index(0)
        self.front, self.behind = special[:in_front], special[in_front:]
        self.has_sentence_token = bool(self.front)
        self.padding = tokenizer.pad_token_id or 0
        self.hidden = tokenizer.mask_token_id if tokenizer.mask_token_id is not None else tokenizer.unk_token_id
        self.unknown = tokenizer.unk_token_id if tokenizer.unk_token_id is not None else self.padding
        if max(*special, self.padding, self.unknown) >= vocabulary:
            raise ValueError("the encoder's tokenizer adds tokens that its model has no vectors for")
        corpora = corpora if corpus_token is not None else ()
        marks = [vocabulary + at if corpus_token == "end" else self.unknown for at in range(len(corpora))]
        named = [[*self.behind, mark, *self.behind] for mark in marks]
        self.endings = dict(zip(corpora, named, strict=True))
        self.ending = named[0] if named else self.behind
        self.max_length = max_length - len(self.front) - len(self.ending)
        self.lower_case = self.pieces("Abc") == self.pieces("abc")

    def pieces(self, word: str) -> tuple[int, ...]:
        """The pieces of one word; the unknown piece if there are none, so that every word has a vector."""
        short = word[:CHARACTERS_PER_WORD]
        cut = self.cache.get(short)
        if cut is None:
            whole = short.encode("utf-8", "replace").decode()  # the tokenizer refuses half a surrogate pair
            ids = self.backend.encode([whole], is_pretokenized=True, add_special_tokens=False).ids
            # some tokenizers have a mask token without a row in the model, and any word may occur in a text
            known = (i if i < self.vocabulary else self.unknown for i in ids[:PIECES_PER_WORD])
            cut = tuple(known) or (self.unknown,)
            if len(self.cache) >= CACHED_WORDS:
                self.cache.clear()
            self.cache[short] = cut
        return cut

    def cut(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The pieces of each word; most are in the cache."""
        known = self.cache.get
        return [known(word) or self.pieces(word) for word in words]

    def measure(self, words: Sequence[str]) -> list[int]:
        """The number of pieces of each word."""
        return [len(pieces) for pieces in self.cut(words)]

    def __call__(self, sentences: Sequence[Sentence]) -> Inputs:
        """Pieces with the tokenizer's own special tokens around them."""
        cuts = [self.cut(sentence.words) for sentence in sentences]
        ends = [self.endings.get(sentence.dataset, self.ending) for sentence in sentences]
        ids = [[*self.front, *chain.from_iterable(row), *end] for row, end in zip(cuts, ends, strict=True)]
        longest = max(len(row) for row in ids)
        tokens = np.full((len(ids), longest), self.padding, dtype=np.int64)
        owner = np.full((len(ids), longest), -1, dtype=np.int64)  # the word of each token
        mask = np.zeros((len(ids), longest), dtype=bool)
        for row, (cut, line) in enumerate(zip(cuts, ids, strict=True)):
            tokens[row, : len(line)] = line
            mask[row, : len(line)] = True
            words = np.repeat(np.arange(len(cut)), [len(word) for word in cut])
            owner[row, len(self.front) : len(self.front) + len(words)] = words
        units = word_units(sentences) if self.unit == "word" else piece_units(sentences, cuts)
        if self.unit == "piece":
            at = np.arange(longest) - len(self.front)
            owner = np.where(owner >= 0, at, -1)
        last = units["unit_mask"].shape[1]
        return Inputs(tokens=tokens, token_mask=mask, unit_of_token=np.where(owner < 0, last, owner), **units)


def piece_units(sentences: Sequence[Sentence], cuts: list[list[tuple[int, ...]]]) -> dict[str, Any]:
    """The fields of `Inputs` when each piece is a unit: as for words, spread over the pieces."""
    words = word_units(sentences)
    counts = [np.array([len(cut) for cut in row], dtype=np.int64) for row in cuts]
    longest = max([int(count.sum()) for count in counts] + [1])
    shape = (len(sentences), longest)
    units: dict[str, Any] = {name: np.zeros(shape, dtype=bool) for name in ("unit_mask", "starts", "ends")}
    units |= {name: np.zeros_like(words[name]) for name in ("core", "reach", "dataset")}
    units["words"] = np.zeros(shape, dtype=np.int64)
    units["shapes"] = np.full((len(sentences), longest + 1), len(SHAPES), dtype=np.int64)
    for row, (sentence, count) in enumerate(zip(sentences, counts, strict=True)):
        edges = np.concatenate([[0], count.cumsum()])  # the first piece of each word, and one past the last
        total = int(edges[-1])
        units["unit_mask"][row, :total] = True
        units["words"][row, :total] = np.repeat(np.arange(len(count)), count)
        units["words"][row, total:] = max(len(count) - 1, 0)
        units["starts"][row, edges[:-1]] = True
        units["ends"][row, edges[1:] - 1] = True
        units["shapes"][row, :total] = np.repeat(words["shapes"][row, : len(count)], count)
        units["core"][row] = edges[list(sentence.core)]
        units["reach"][row] = edges[list(sentence.reach)]
    units["opens"] = units["starts"] & within(units["core"], longest)
    units["closes"] = units["ends"] & within(units["reach"], longest)
    return units
