"""Encoder, candidates, spans, head, in that order: one forward pass from inputs to states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wingspan.batch import Gold, Inputs
from wingspan.candidates import CandidatePolicy, Candidates
from wingspan.encoders import Encoder, Words
from wingspan.heads import Head
from wingspan.spans import SpanRepresentation


class States(NamedTuple):
    """All a model says about a batch; objectives and readers need nothing else."""

    inputs: Inputs
    words: Words
    candidates: Candidates | None = None
    spans: Tensor | None = None  # (B, M, S); None where the scores were computed without it
    features: Tensor | None = None  # (B, M, F)
    scores: Tensor | None = None  # (B, M, C)
    divergence: Tensor | None = None  # (B, M)


class Scorer(nn.Module):
    """Span vectors and their head; a tagger has none."""

    def __init__(self, candidates: CandidatePolicy, spans: SpanRepresentation, head: Head) -> None:
        super().__init__()
        self.candidates = candidates
        self.spans = spans
        self.head = head


class SpanModel(nn.Module):
    """What is saved, exported and used for prediction, together with the objectives that read entities."""

    def __init__(self, encoder: Encoder, scorer: Scorer | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.scorer = scorer

    def forward(self, inputs: Inputs, gold: Gold | None = None, *, vectors: bool = False, spans: bool = True) -> States:
        """Scores of all candidates. Span vectors exist only where they are asked for; without `spans`, words only."""
        words: Words = self.encoder(inputs)
        if self.scorer is None or not spans:
            return States(inputs, words)
        candidates: Candidates = self.scorer.candidates(inputs, words, gold)
        head = self.scorer.head
        if not (vectors or (self.training and head.wants_vectors)):
            scored = head.finish(self.scorer.spans.project(words, candidates, head.entry))
            return States(inputs, words, candidates, None, scored.features, scored.scores, scored.divergence)
        represented = self.scorer.spans(words, candidates)
        scored = head(represented)
        features = scored.features if scored.features is not None else represented
        return States(inputs, words, candidates, represented, features, scored.scores, scored.divergence)


def tensors(value: Any, device: torch.device | str) -> Any:
    """Arrays to tensors on a device, through named tuples and mappings: the one place where numpy becomes torch."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value).to(device, non_blocking=True)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(tensors(part, device) for part in value))
    if isinstance(value, dict):
        return {name: tensors(part, device) for name, part in value.items()}
    return value
