"""Which parts of a recipe need each other, said in one sentence before anything is trained."""

from __future__ import annotations

from collections.abc import Mapping

from wingspan.candidates import Proposed
from wingspan.model import Scorer
from wingspan.objectives import Objective
from wingspan.objectives.proposing import Proposing
from wingspan.objectives.typing import Typing


def agree(
    name: str, read_with: str, scorer: Scorer | None, objectives: Mapping[str, Objective], *, predicting: bool
) -> None:
    """Refuses objectives that ask for what the other parts of the recipe do not give."""
    parts = list(objectives.values())
    if any(part.needs_gold_vectors for part in parts) and not (scorer and scorer.spans.takes_lists):
        raise ValueError(f"recipe {name!r}: an objective needs the vectors of gold spans; use spans that take lists")
    proposed = scorer is not None and isinstance(scorer.candidates, Proposed)
    if not predicting and proposed != any(isinstance(part, Proposing) for part in parts):
        raise ValueError(f"recipe {name!r} needs both Proposed and Proposing; see recipe.with_proposals")
    given = scorer is not None and scorer.candidates.given
    if given != any(isinstance(part, Typing) for part in parts):
        raise ValueError(f"recipe {name!r}: candidates Given and the objective Typing need each other")
    if not objectives[read_with].predicts:
        raise ValueError(f"recipe {name!r}: {read_with!r} cannot read entities; use spans, tags or links")
