"""Hashed word, prefix, suffix and shape features with a BiLSTM, trained from scratch: the default, without a download.

Cf. hash embeddings in spaCy's tok2vec (Miranda et al. 2022): no vocabulary is fitted; new words share their affixes.
"""

import torch
from torch import Tensor, nn

from wingspan.batch import Inputs
from wingspan.encoders import Encoder, Words
from wingspan.layers.lstm import BiLSTM
from wingspan.tokenizing.hashed import FEATURES, HashedTokenize


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
