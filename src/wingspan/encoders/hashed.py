"""Hashed word, prefix, suffix and shape features, trained from scratch: the default, without a download.

Cf. hash embeddings in spaCy's tok2vec (Miranda et al. 2022): no vocabulary is fitted; new words share their affixes.
Word vectors from a file can be one more feature. Alone they lose case and affixes, and all unknown words are one.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from wingspan.batch import Inputs
from wingspan.encoders import Encoder, Words
from wingspan.encoders.vectors import open_vectors
from wingspan.files import stored_object
from wingspan.layers.convolution import Convolutions
from wingspan.layers.lstm import BiLSTM
from wingspan.text import Sentence
from wingspan.tokenizing.hashed import FEATURES, ConvolvedTokenize, HashedTokenize
from wingspan.tokenizing.static import VOCABULARY, Case


class ConvolvedEncoder(Encoder):
    """Feature hashes to vectors: a table, a projection of a word's features, `depth` convolutions over its neighbors.

    `vectors` is a file of word vectors, one more feature, which is not trained; words that it lacks have zeros. The
    model keeps the words of train and dev, and the first `keep` words of the file (None: all).
    """

    tokenize: ConvolvedTokenize
    known: Tensor  # (1 + words, D), the first for unknown words

    def __init__(
        self,
        *,
        buckets: int = 20_000,
        embedding: int = 64,
        hidden: int = 96,
        depth: int = 4,
        dropout: float = 0.3,
        vectors: str | None = None,
        case: Case = "both",
        keep: int | None = 100_000,
        max_length: int = 256,
    ) -> None:
        super().__init__()
        words: list[str] = []
        size = 0
        self.source = None
        if vectors is not None and self.saved_in is not None:
            path = self.saved_in / VOCABULARY
            record = stored_object(path)
            if not {"size", "words"} <= record.keys():
                raise ValueError(f"{path}: damaged (it has no size, words); copy or train the model again")
            size, words = record["size"], record["words"]
        elif vectors is not None:
            self.source = open_vectors(vectors)
            size = self.source.size
        self.name, self.case, self.keep, self.vector_size = vectors, case, keep, size
        self.summary: list[str] = []
        self.tokenize = ConvolvedTokenize(buckets, max_length, case if vectors is not None else None)
        self.tokenize.learn(words)
        self.register_buffer("known", torch.zeros(1 + len(words), size))
        self.table = nn.Embedding(buckets, embedding)
        nn.init.normal_(self.table.weight, std=0.1)
        self.project = nn.Linear(FEATURES * embedding + size, hidden)
        self.normalize = nn.LayerNorm(hidden)
        self.context = Convolutions(hidden, depth, dropout)
        self.dropout = nn.Dropout(dropout)
        self.size = 2 * hidden

    def study(self, sentences: Sequence[Sentence], others: Iterable[Sentence]) -> None:
        """Fixes the words that have vectors; afterwards the file is no longer needed."""
        source = self.source
        if source is None:
            return
        met = list(dict.fromkeys(word for sentence in sentences for word in sentence.words))
        dev = dict.fromkeys(word for sentence in others for word in sentence.words)
        forms = {word: source.form_of(word, self.case) for word in chain(met, dev)}
        own = (form for form in chain(forms.values(), source.words[: self.keep]) if form is not None)
        kept = list(dict.fromkeys(own))
        rows = torch.from_numpy(source.of(kept))
        scale = rows.square().mean().sqrt().clamp(min=1e-6)  # vectors of any file enter on the scale of the features
        self.tokenize.learn(kept)
        self.known = torch.cat([rows.new_zeros(1, self.vector_size), rows / scale])
        known = sum(forms[word] is not None for word in met)
        self.summary = [
            f"Word vectors beside hashed features: {self.vector_size} numbers from {self.name}; {known:,} of "
            f"{len(met):,} different training words have one; {len(kept):,} words kept."
        ]

    def lines(self) -> list[str]:
        """How many training words have vectors."""
        return self.summary

    def forward(self, inputs: Inputs) -> Words:
        """Word vectors: the word's own features beside those in their context."""
        mask = inputs.unit_mask
        tokens = inputs.tokens.view(*mask.shape, self.tokenize.fewest_tokens)  # (B, L, features)
        own: Tensor = self.table(tokens[..., :FEATURES]).flatten(2)  # (B, L, features * embedding)
        if self.name is not None:
            own = torch.cat([own, functional.embedding(tokens[..., FEATURES], self.known)], -1)
        own = self.dropout(self.normalize(torch.relu(self.project(own)))) * mask.unsqueeze(-1)
        top = torch.cat([own, self.context(own, mask)], -1)
        return Words(top, (), top.sum(1) / mask.sum(-1, keepdim=True).clamp(min=1), mask)

    def save_files(self, folder: Path) -> None:
        """The words that have vectors, in the order of their rows."""
        if self.name is not None:
            record = {"size": self.vector_size, "words": list(self.tokenize.rows)}
            (folder / VOCABULARY).write_text(json.dumps(record), encoding="utf-8")


class HashedEncoder(Encoder):
    """Feature hashes to vectors by a BiLSTM: the encoder of models before `ConvolvedEncoder`, which still load."""

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
