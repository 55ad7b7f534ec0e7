"""Word vectors without context: from a file, drawn at random (an ablation), or the input embeddings of a model.

The words of a model are fixed before training and stored with it: a saved model no longer needs the file.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from wingspan.batch import Inputs
from wingspan.encoders import Encoder, Words
from wingspan.encoders.loading import open_named, open_tokenizer, quiet, reading
from wingspan.encoders.vectors import WordVectors, open_vectors
from wingspan.files import stored_object
from wingspan.layers.lstm import InContext
from wingspan.layers.pooling import pool_pieces
from wingspan.text import Sentence
from wingspan.tokenizing.pieces import PieceTokenize
from wingspan.tokenizing.static import VOCABULARY, Case, StaticTokenize, Unknown

UNKNOWN_WORDS = ("<unk>", "<UNK>", "[UNK]")
RANDOM_SPREAD = 0.1


class StaticEncoder(Encoder):
    """Looks words up. `hidden` adds a BiLSTM beside the vectors, without which no word sees another.

    `vectors` is a file, or None for a random table of `size`. With `trained` all training words are trained, in the
    file or not; other rows stay as they are. `unknown` words are zero, one of `buckets` random rows, the mean (the
    file's <unk>, otherwise the mean of the vectors), or the mean of the words that share their n-grams (hashed).
    The model keeps the words of train and dev, and the first `keep` words of the file (None: all).
    """

    tokenize: StaticTokenize
    fixed: Tensor  # (1 + buckets + words, D)

    def __init__(
        self,
        *,
        vectors: str | None = None,
        trained: bool = False,
        unknown: Unknown = "mean",
        case: Case = "both",
        keep: int | None = 100_000,
        size: int = 300,
        hidden: int = 0,
        dropout: float = 0.0,
        buckets: int = 20_000,
        max_length: int = 256,
    ) -> None:
        words: dict[str, Any] = {"size": size, "learned": [], "fixed": []}
        self.source = None
        if self.saved_in is not None:
            path = self.saved_in / VOCABULARY
            record = stored_object(path)
            if not words.keys() <= record.keys():
                raise ValueError(f"{path}: damaged (it has no {', '.join(words)}); copy or train the model again")
            words = {name: record[name] for name in words}
        elif vectors is not None:
            self.source = open_vectors(vectors)
            words["size"] = self.source.size
        super().__init__()
        self.keep, self.name, self.trained, self.vector_size = keep, vectors, trained, words["size"]
        self.tokenize = StaticTokenize(unknown, case, buckets, max_length)
        self.tokenize.learn(words["learned"], words["fixed"])
        self.context = InContext(self.vector_size, hidden, dropout)
        self.size = self.context.size
        self.summary: list[str] = []
        rows = 1 + self.tokenize.buckets + len(words["fixed"])
        self._hold(torch.zeros(len(words["learned"]), self.vector_size), torch.zeros(rows, self.vector_size))

    def _hold(self, learned: Tensor, fixed: Tensor) -> None:
        self.learned = nn.Parameter(learned) if self.trained else None
        self.register_buffer("fixed", fixed)

    def study(self, sentences: Sequence[Sentence], others: Iterable[Sentence]) -> None:
        """Fixes the words of the model; afterwards the file is no longer needed."""
        case = self.tokenize.case
        counts = Counter(word for sentence in sentences for word in sentence.words)
        source = self.source
        if source is None:
            drawn = list(dict.fromkeys(word.lower() if case == "lower" else word for word in counts))
            source = WordVectors(drawn, (torch.randn(len(drawn), self.vector_size) * RANDOM_SPREAD).numpy())
        forms = {word: source.form_of(word, case) for word in counts}
        # words of the training text can be trained even if the file does not have them
        own = [forms[word] or (word.lower() if case == "lower" else word) for word in counts]
        learned = list(dict.fromkeys(own)) if self.trained else []
        dev = (source.form_of(word, case) for word in {word: None for sentence in others for word in sentence.words})
        first = source.words[: self.keep]
        kept = list(dict.fromkeys(form for form in chain(forms.values(), dev, first) if form is not None))
        table = torch.from_numpy(source.of(kept))
        stand_ins = self._stand_ins(source, kept, table)
        row = {word: at for at, word in enumerate(kept)}
        trained = set(learned)
        fixed = [word for word in kept if word not in trained]
        start = [table[row[w]] if w in row else stand_ins[[*self.tokenize.stand_ins(w)]].mean(0) for w in learned]
        self.tokenize.learn(learned, fixed)
        self._hold(
            torch.stack(start) if start else table[:0], torch.cat([stand_ins, table[[row[word] for word in fixed]]])
        )
        known = sum(count for word, count in counts.items() if forms[word] is not None)
        kinds = sum(form is not None for form in forms.values())
        self.summary = [
            f"Static vectors: {self.vector_size} numbers from {self.name or 'a random draw'}, "
            f"{'trained' if self.trained else 'frozen'}; {kinds:,} of {len(forms):,} different training words have one "
            f"({100 * known / max(1, counts.total()):.1f}% of the text), others: {self.tokenize.unknown}. "
            f"The model keeps {len(kept):,} words."
        ]
        self.source = None

    def _stand_ins(self, source: WordVectors, words: Sequence[str], table: Tensor) -> Tensor:
        """The vectors of unknown words; zero if no word is known.  (1 + buckets, size)"""
        rows = torch.zeros(1 + self.tokenize.buckets, self.vector_size)
        kind = self.tokenize.unknown if words else "zero"
        if kind == "mean":
            own = [word for word in UNKNOWN_WORDS if word in source][:1]
            rows[0] = torch.from_numpy(source.of(own))[0] if own else table.mean(0)
        if kind == "random":
            rows[1:] = torch.randn(self.tokenize.buckets, self.vector_size) * table.std(correction=0)
        if kind == "hashed":
            count = torch.zeros(len(rows), 1)
            for at, word in enumerate(words):  # a bucket is the mean of the words with an n-gram in it
                parts = torch.tensor(self.tokenize.stand_ins(word))
                rows.index_add_(0, parts, table[at].expand(len(parts), -1))
                count[parts] += 1
            rows /= count.clamp(min=1)
        return rows

    def lines(self) -> list[str]:
        """How much of the training text has vectors."""
        return self.summary

    def forward(self, inputs: Inputs) -> Words:
        """The vectors of the words, and their mean."""
        mask = inputs.unit_mask
        tokens, count = inputs.tokens, self.tokenize.num_learned
        own = functional.embedding((tokens - count).clamp(min=0), self.fixed)  # (B, T, D)
        if self.learned is not None and count:
            learned = functional.embedding(tokens.clamp(max=count - 1), self.learned)
            own = torch.where((tokens < count).unsqueeze(-1), learned, own)
        if self.tokenize.unknown == "hashed":  # some words are the mean of several rows
            own = pool_pieces(own, inputs.unit_of_token, mask.shape[1], "mean", 0)
        top = self.context(own, mask)
        return Words(top, (), top.sum(1) / mask.sum(-1, keepdim=True).clamp(min=1), mask)

    def save_files(self, folder: Path) -> None:
        """The words, in the order of their rows."""
        words, count = list(self.tokenize.rows), self.tokenize.num_learned
        record = {"size": self.vector_size, "learned": words[:count], "fixed": words[count:]}
        (folder / VOCABULARY).write_text(json.dumps(record), encoding="utf-8")


class StaticPieces(Encoder):
    """The input embeddings of a pretrained model: a word is the mean of its pieces, so no word is unknown.

    Only the model's tokenizer and this table are kept. `hidden` adds a BiLSTM beside the vectors, as above.
    """

    tokenize: PieceTokenize

    def __init__(
        self,
        *,
        name: str = "minilm",
        trained: bool = False,
        hidden: int = 0,
        dropout: float = 0.0,
        max_length: int = 256,
        revision: str | None = None,
    ) -> None:
        if self.saved_in is not None:
            with reading(self.saved_in), quiet():
                rows, size = stored_object(self.saved_in / VOCABULARY)["table"]
                table, tokenizer = torch.zeros(rows, size), open_tokenizer(self.saved_in)
        else:
            model, tokenizer = open_named(name, revision, torch.float32, None)
            table = model.get_input_embeddings().weight.detach().clone()
        super().__init__()
        self.name = name if self.saved_in is None else ""
        self.tokenizer = tokenizer
        self.tokenize = PieceTokenize(tokenizer, max_length, "word", len(table))
        self.table = nn.Embedding.from_pretrained(table, freeze=not trained)
        self.context = InContext(table.shape[1], hidden, dropout)
        self.size = self.context.size

    def lines(self) -> list[str]:
        """The origin of the vectors."""
        rows, size = self.table.weight.shape
        state = "trained" if self.table.weight.requires_grad else "frozen"
        origin = f" of {self.name}" if self.name else ""
        return [f"Static vectors: the input embeddings{origin}, {rows:,} pieces of {size} numbers, {state}."]

    def forward(self, inputs: Inputs) -> Words:
        """The mean of each word's pieces, and the mean of all words."""
        mask = inputs.unit_mask
        own = pool_pieces(self.table(inputs.tokens), inputs.unit_of_token, mask.shape[1], "mean", 0)  # (B, L, D)
        top = self.context(own, mask)
        return Words(top, (), top.sum(1) / mask.sum(-1, keepdim=True).clamp(min=1), mask)

    def save_files(self, folder: Path) -> None:
        """The tokenizer's files, and the shape of the table."""
        self.tokenizer.save_pretrained(folder)
        (folder / VOCABULARY).write_text(json.dumps({"table": list(self.table.weight.shape)}), encoding="utf-8")
