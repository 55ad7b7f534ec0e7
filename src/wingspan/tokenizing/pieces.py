"""Words to word pieces: the CPU side of pretrained encoders."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np

from wingspan.batch import Tokenize
from wingspan.files import brief, check_size, whole

PIECES_PER_WORD = 64  # no word of a language has more; a 300,000-character "word" must not fill the whole input
CHARACTERS_PER_WORD = 256
WORDS_PER_CALL = 8192  # bounds the memory of a call


CorpusToken = Literal["end", "unknown"]
"""The corpus name after the pieces: a token per corpus, or the unknown token, as Oi and Miwa's code does for BERT."""


TOKENIZER = "tokenizer.json"


class StoredTokenizer(NamedTuple):
    """A tokenizer from its file, with the names that transformers gives these things."""

    backend_tokenizer: Any
    pad_token_id: int | None
    mask_token_id: int | None
    unk_token_id: int | None


class PieceTokenize(Tokenize):
    """Words to pieces. The pieces of a word do not depend on the words around it.

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
        names = ("pad_token_id", "mask_token_id", "unk_token_id")
        self.settings: dict[str, Any] = {
            **{name: getattr(tokenizer, name) for name in names},
            **{"max_length": max_length, "unit": unit, "vocabulary": vocabulary},
            **{"corpora": list(corpora), "corpus_token": corpus_token},
        }
        around = self.backend.encode(["a"], is_pretokenized=True)
        special = [i for i, mark in zip(around.ids, around.special_tokens_mask, strict=True) if mark]
        in_front = around.special_tokens_mask.index(0)
        self.front, self.behind = special[:in_front], special[in_front:]
        self.has_sentence_token = bool(self.front)
        self.padding = tokenizer.pad_token_id or 0
        self.unknown = tokenizer.unk_token_id if tokenizer.unk_token_id is not None else self.padding
        mask = tokenizer.mask_token_id
        self.hidden = self.unknown if mask is None or mask >= vocabulary else mask  # some have no row in the model
        if max(*special, self.padding, self.unknown) >= vocabulary:
            raise ValueError("the encoder's tokenizer adds tokens that its model has no vectors for")
        corpora = corpora if corpus_token is not None else ()
        marks = [vocabulary + at if corpus_token == "end" else self.unknown for at in range(len(corpora))]
        named = [[*self.behind, mark, *self.behind] for mark in marks]
        self.by_corpus = dict(zip(corpora, named, strict=True))
        self.ending = named[0] if named else self.behind
        self.max_length = max_length - len(self.front) - len(self.ending)
        # some tokenizers mark the first word of a text only, so each word must be the first
        some = ["a", "Abc", "12", "a", "."]
        self.by_place = list(self._together(some)) != self._each(some)
        self.lower_case = self.pieces("Abc") == self.pieces("abc")

    def pieces(self, word: str) -> tuple[int, ...]:
        """The pieces of one word."""
        return self.cut([word])[0]

    def cut(self, words: Sequence[str]) -> list[tuple[int, ...]]:
        """The pieces of each word; the unknown piece if there are none, so that every word has a vector."""
        # the tokenizer refuses half a surrogate pair
        short = [word[:CHARACTERS_PER_WORD].encode("utf-8", "replace").decode() for word in words]
        rows = self._each(short) if self.by_place else self._together(short)
        # some tokenizers have tokens without a row in the model, and any word may occur in a text
        known = (tuple(i if i < self.vocabulary else self.unknown for i in row[:PIECES_PER_WORD]) for row in rows)
        return [row or (self.unknown,) for row in known]

    def _each(self, words: Sequence[str]) -> list[Sequence[int]]:
        """Each word alone."""
        encode = self.backend.encode
        return [encode([word], is_pretokenized=True, add_special_tokens=False).ids for word in words]

    def _together(self, words: Sequence[str]) -> Iterator[Sequence[int]]:
        """Many words in one call, which costs less than half."""
        for at in range(0, len(words), WORDS_PER_CALL):
            block = words[at : at + WORDS_PER_CALL]
            found = self.backend.encode(block, is_pretokenized=True, add_special_tokens=False)
            ids = found.ids
            edges = np.searchsorted(found.word_ids, np.arange(len(block) + 1)).tolist()
            yield from (ids[start:end] for start, end in pairwise(edges))

    def endings(self, datasets: Sequence[str]) -> Any:
        """The tokenizer's own tokens at the end, and the name of the corpus, if it is one of them."""
        rows = [self.by_corpus.get(dataset, self.ending) for dataset in datasets]
        return np.array(rows, dtype=np.int64).reshape(len(rows), -1)

    def store(self, folder: Path) -> dict[str, Any]:
        """The settings of the constructor; the tokenizer itself is a file."""
        (folder / TOKENIZER).write_text(self.backend.to_str(), encoding="utf-8")
        return self.settings

    @classmethod
    def restore(cls, folder: Path, settings: Mapping[str, Any]) -> Self:
        """From the settings of the constructor and the file, with the tokenizers library alone."""
        from tokenizers import Tokenizer

        path = folder / TOKENIZER
        special = [settings.get(name) for name in StoredTokenizer._fields[1:]]
        numbers: list[Any] = [whole(settings.get(name)) for name in ("max_length", "vocabulary")]
        others: list[Any] = [settings.get(name) for name in ("corpora", "unit", "corpus_token")]
        corpora, unit, mark = others
        named = isinstance(corpora, list) and all(isinstance(name, str) for name in corpora)
        known = unit in ("word", "piece") and mark in (None, *get_args(CorpusToken))
        if not (all(numbers) and named and known and all(i is None or whole(i) is not None for i in special)):
            raise ValueError("the settings of the tokenizer are damaged")
        if not path.is_file():
            raise ValueError(f"{TOKENIZER} is missing")
        check_size(path)
        try:
            tokenizer = StoredTokenizer(Tokenizer.from_str(path.read_text(encoding="utf-8")), *special)
            return cls(tokenizer, numbers[0], unit, numbers[1], corpora, mark)
        except Exception as error:  # the tokenizers library raises the bare class
            raise ValueError(f"{TOKENIZER} is damaged ({brief(error)})") from error
