"""The two protocols, and which one a model is scored by. What finds spans has an F1, what types given ones has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from wingspan.evaluation.given_spans import TypingScores, typing
from wingspan.evaluation.scores import Scores, recognition
from wingspan.text import Document

Protocol = Literal["recognition", "typing"]

HEADLINES: dict[Protocol, str] = {"recognition": "F1", "typing": "accuracy"}
"""The one figure that decides which of two models is better, as people call it; micro, strict, in percent."""


def measure(protocol: Protocol, gold: Sequence[Document], found: Sequence[Document]) -> Scores | TypingScores:
    """What a model found, or said about given spans, against the gold."""
    return typing(gold, found) if protocol == "typing" else recognition(gold, found)


def headline(scores: Scores | TypingScores) -> float:
    """The figure of `HEADLINES`."""
    return scores.accuracy if isinstance(scores, TypingScores) else scores.micro.f1


def protocol_of(scores: Scores | TypingScores) -> Protocol:
    """Which protocol made the scores."""
    return "typing" if isinstance(scores, TypingScores) else "recognition"
