"""Hashed word, prefix, suffix and shape features with a BiLSTM, trained from scratch: the default, without a download.

Cf. hash embeddings in spaCy's tok2vec (Miranda et al. 2022): no vocabulary is fitted; new words share their affixes.
"""

import zlib
from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor, nn

from wingspan.batch import Inputs, Tokenize
from wingspan.corpora.words import kind
from wingspan.encoders import Encoder, Words
from wingspan.layers.lstm import BiLSTM

FEATURES = 10
LONGEST = 64  # characters of a word that are used, so that a 300,000-character "word" costs no more than its affixes


def features(word: str) -> tuple[int, ...]:
    """The hashed features of one word, as 31-bit numbers; the encoder takes them modulo its table."""
    head, tail = word[:LONGEST], word[-LONGEST:]
    low, end = head.lower(), tail.lower()
    pattern = "".join(key for key, _ in groupby(map(kind, head)))
    named = (
        f"w{head}",
        f"l{low}" if len(word) <= LONGEST else "l",
        *(f"p{low[:n]}" for n in (2, 3, 4)),
        *(f"s{end[-n:]}" for n in (2, 3, 4)),
        f"x{pattern}",
        f"n{min(len(word), 12)}{head[:1]}",
    )
    return tuple(zlib.crc32(name.encode("utf-8", "surrogatepass")) & 0x7FFFFFFF for name in named)


class HashedTokenize(Tokenize):
    """Words to feature hashes: each word has `FEATURES` tokens, one after the other."""

    fewest_tokens = FEATURES

    def __init__(self, buckets: int, max_length: int) -> None:
        self.buckets = buckets
        self.max_length = max_length

    def cut(self, words: Sequence[str]) -> list[list[int]]:
        """The features of each word."""
        return [[number % self.buckets for number in features(word)] for word in words]

    def places(self, words: Sequence[str], tokens: Sequence[Sequence[int]]) -> list[int]:
        """A word is one unit, however long."""
        return [1] * len(words)


class HashedEncoder(Encoder):
    """Feature hashes to vectors: a table, a projection, a BiLSTM."""

    def __init__(
        self,
        *,
        buckets: int = 20_000,
        embedding: int = 64,
        hidden: int = 128,
        dropout: float = 0.3,
        max_length: int = 256,
    ) -> None:
        super().__init__()
        self.tokenize = HashedTokenize(buckets, max_length)
        self.table = nn.Embedding(buckets, embedding)
        nn.init.normal_(self.table.weight, std=0.1)
        self.project = nn.Linear(FEATURES * embedding, hidden)
        self.normalize = nn.LayerNorm(hidden)
        self.recurrent = BiLSTM(hidden, hidden)
        self.dropout = nn.Dropout(dropout)
        self.size = hidden + self.recurrent.size

    def forward(self, inputs: Inputs) -> Words:
        """Word vectors: the word's features beside the BiLSTM's states."""
        batch, longest = inputs.unit_mask.shape
        looked_up: Tensor = self.table(inputs.tokens)  # (B, L * features, embedding)
        own = self.normalize(torch.relu(self.project(looked_up.view(batch, longest, -1))))
        own = self.dropout(own)  # (B, L, hidden)
        top = torch.cat([own, self.dropout(self.recurrent(own, inputs.unit_mask.sum(-1)))], -1)
        top = top * inputs.unit_mask.unsqueeze(-1)
        count = inputs.unit_mask.sum(-1, keepdim=True).clamp(min=1)
        return Words(top, (), top.sum(1) / count, inputs.unit_mask)
