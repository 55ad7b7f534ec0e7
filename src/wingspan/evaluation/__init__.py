"""Documents against documents: what was found, what was missed, under which rule. Needs no tensors.

Two protocols, never mixed: `recognition` scores found entities, `typing` scores the labels of given spans.
"""

from wingspan.evaluation.attributes import ATTRIBUTES, Attribute
from wingspan.evaluation.buckets import Bucket, BucketTable, Gap, buckets, error_rate_gaps, gaps
from wingspan.evaluation.confusion import Confusion, confusion
from wingspan.evaluation.continuity import by_continuity, continuous_entities, discontinuous_sentences
from wingspan.evaluation.errors import Errors, Mistake, errors
from wingspan.evaluation.given_spans import TypingScores, typing
from wingspan.evaluation.matching import Match, Mode, Verdict, match
from wingspan.evaluation.pairing import discontinuous_documents, discontinuous_entities, pair
from wingspan.evaluation.placing import Placed, place_on_gold
from wingspan.evaluation.scores import MODES, Average, Counts, Scores, recognition
from wingspan.evaluation.seeds import Row, Spread, average_rows, label_rows, over_seeds, spread
from wingspan.evaluation.trouble import (
    Conflict,
    Repeated,
    Trouble,
    label_conflicts,
    repeated_mistakes,
    worst_documents,
    worst_sentences,
)

__all__ = [
    "ATTRIBUTES",
    "MODES",
    "Attribute",
    "Average",
    "Bucket",
    "BucketTable",
    "Conflict",
    "Confusion",
    "Counts",
    "Errors",
    "Gap",
    "Match",
    "Mistake",
    "Mode",
    "Placed",
    "Repeated",
    "Row",
    "Scores",
    "Spread",
    "Trouble",
    "TypingScores",
    "Verdict",
    "average_rows",
    "buckets",
    "by_continuity",
    "confusion",
    "continuous_entities",
    "discontinuous_documents",
    "discontinuous_entities",
    "discontinuous_sentences",
    "error_rate_gaps",
    "errors",
    "gaps",
    "label_conflicts",
    "label_rows",
    "match",
    "over_seeds",
    "pair",
    "place_on_gold",
    "recognition",
    "repeated_mistakes",
    "spread",
    "typing",
    "worst_documents",
    "worst_sentences",
]
