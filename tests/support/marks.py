"""Which of many cases belong to a quick run."""

from __future__ import annotations

from collections.abc import Iterable

import pytest


def mostly_slow(cases: Iterable[str], *quick: str) -> list[object]:
    """Cases for `parametrize`: all but the named ones are slow."""
    return [case if case in quick else pytest.param(case, marks=pytest.mark.slow) for case in cases]
