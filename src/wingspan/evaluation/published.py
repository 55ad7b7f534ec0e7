"""How paper 001 made "precision", "recall" and "F1" of typing accuracies. Only here to check its Table 2.

Nothing of it is a score of recognition: the spans were given. No report, table or command uses this module.
"""

from __future__ import annotations

from typing import NamedTuple


class Printed(NamedTuple):
    """What the table prints, in percent."""

    precision: float
    recall: float
    f1: float


def sng_f1(accuracy: float) -> float:
    """The "F1" of a typing accuracy in percent: 2a / (1 + a), as recall is declared to be 100 %."""
    return harmonic(accuracy, 100.0)


def sng_printed(accuracy: float) -> Printed:
    """The row of a corpus without discontinuous entities, from its typing accuracy in percent."""
    return Printed(accuracy, 100.0, sng_f1(accuracy))


def sng_printed_discontinuous(right: float, spans: float, joined_right: float, joined: float) -> Printed:
    """The row of a corpus with discontinuous entities.

    `right` of `spans` contiguous entities have the right type; `joined_right` of `joined` discontinuous ones have it in
    every fragment. Those that have it not are added to what recall is divided by; those that have it add nothing.
    """
    precision = 100 * right / spans
    recall = 100 * right / (spans + joined - joined_right)
    return Printed(precision, recall, harmonic(precision, recall))


def harmonic(one: float, other: float) -> float:
    """The harmonic mean; 0 where both are."""
    return 2 * one * other / (one + other) if one + other else 0.0
