"""Documents against documents: what was found, what was missed, under which rule. Needs no tensors.

Two protocols, never mixed: `recognition` scores found entities, `typing` scores the labels of given spans.
"""

from wingspan.evaluation.given_spans import TypingScores, typing
from wingspan.evaluation.matching import Match, Mode, Verdict, match
from wingspan.evaluation.pairing import discontinuous_documents, discontinuous_entities, pair
from wingspan.evaluation.scores import MODES, Average, Counts, Scores, recognition
from wingspan.evaluation.seeds import Row, Spread, average_rows, label_rows, over_seeds, spread

__all__ = [
    "MODES",
    "Average",
    "Counts",
    "Match",
    "Mode",
    "Row",
    "Scores",
    "Spread",
    "TypingScores",
    "Verdict",
    "average_rows",
    "discontinuous_documents",
    "discontinuous_entities",
    "label_rows",
    "match",
    "over_seeds",
    "pair",
    "recognition",
    "spread",
    "typing",
]
