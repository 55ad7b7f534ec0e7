"""Documents compared with documents: what was found and what was missed, under which rule. Needs no tensors.

Two protocols, never mixed: `recognition` scores found entities, `typing` scores the labels of given spans. Analyses are
in modules of their own: `errors`, `buckets`, `worst`, `significance`, `comparison`, `calibration`, `transfer`.
"""

from wingspan.evaluation.matching import realign
from wingspan.evaluation.scores import MODES, Scores, TypingScores, by_continuity, over_seeds, recognition, typing

__all__ = ["MODES", "Scores", "TypingScores", "by_continuity", "over_seeds", "realign", "recognition", "typing"]
