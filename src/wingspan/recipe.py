"""A paper is a recipe: which parts, which losses, how long. An ablation is another recipe, never an `if` in a model.

Parts are `functools.partial` objects over real constructors, so that mypy checks them and no registry is needed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar

from torch import nn

from wingspan.agreement import agree
from wingspan.candidates import CandidatePolicy, Grid, Proposed
from wingspan.corpora.segment import Segmenting
from wingspan.decoding import Overlap
from wingspan.encoders import Encoder
from wingspan.evaluation.protocols import Protocol
from wingspan.heads import Head
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.joining import Joining
from wingspan.labels import LabelSet
from wingspan.model import Scorer, SpanModel
from wingspan.objectives import Objective, Sizes, Thresholds
from wingspan.objectives.classification import Classification
from wingspan.objectives.proposing import Proposing
from wingspan.objectives.tagging import Tagging
from wingspan.schedules import Moment
from wingspan.spans import SpanRepresentation
from wingspan.spans.pooled import PooledSpans
from wingspan.train_settings import TrainSettings as TrainSettings  # a recipe's user looks for it here

Part = Callable[..., Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Term:
    """One loss and its weight (the papers' alpha, beta, gamma)."""

    objective: Part
    weight: float = 1.0


@dataclass(frozen=True)
class Phase:
    """A stretch of training: for how many epochs (None: `train.epochs`), with which terms (None: all)."""

    epochs: int | None = None
    terms: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Recipe:
    """Everything that varies between systems, and nothing else."""

    name: str
    paper: str
    encoder: Part
    terms: Mapping[str, Term]
    spans: Part | None = None
    head: Part | None = None
    candidates: Part = partial(Grid)
    read_with: str = "spans"
    """The term that reads entities: spans or tags; with links, spans and what fragments are joined to."""
    joining: Joining = Joining()
    overlap: Overlap | Literal["auto"] = "auto"
    thresholds: Thresholds = None
    max_width: int | Literal["auto"] = "auto"
    segments: Segmenting = Segmenting()
    phases: tuple[Phase, ...] = (Phase(),)
    train: TrainSettings = TrainSettings()

    def __post_init__(self) -> None:
        """A recipe that cannot read entities is a mistake worth one sentence."""
        if self.read_with not in self.terms:
            raise ValueError(
                f"recipe {self.name!r} reads with {self.read_with!r} but has terms {', '.join(self.terms)}"
            )
        if (self.read_with == "links") != (self.joining.fragments == "join") or self.reader not in self.terms:
            raise ValueError(f"recipe {self.name!r}: links need spans and joining.fragments=join; see with_links")
        if isinstance(self.max_width, int) and self.max_width < 1:
            raise ValueError(f"max_width is {self.max_width}; give at least 1, or auto")
        if (self.spans is None) != (self.head is None):
            raise ValueError(f"recipe {self.name!r} needs both spans and head, or neither")

    @property
    def reader(self) -> str:
        """The term that reads entities in one piece."""
        return "spans" if self.read_with == "links" else self.read_with

    @property
    def ceiling(self) -> int | None:
        """The widest span that can be found once the recipe is resolved; None where width is no limit."""
        unlimited = self.read_with == "tags" or getattr(made_by(self.candidates), "unlimited", False)
        return None if unlimited or self.max_width == "auto" else self.max_width

    @property
    def protocol(self) -> Protocol:
        """Whether a model of this recipe finds spans, or says the types of given ones."""
        given = getattr(made_by(self.candidates), "given", False) and self.read_with == "spans"
        return "typing" if given else "recognition"

    @property
    def unit(self) -> str:
        """What widths count: words, or pieces where the encoder is set to them."""
        setting = inspect.signature(self.encoder).parameters.get("unit")
        return str(setting.default) if setting is not None else "word"

    @property
    def scope(self) -> str:
        """Which spans are looked at, in a few words."""
        if self.protocol == "typing":
            return "given spans of any width"
        if made_by(self.candidates) is not Proposed:
            return f"spans up to {self.max_width} {self.unit}s"
        settings = inspect.signature(self.candidates).parameters
        budget, threshold = settings["budget"].default, settings["threshold"].default
        least = f" with a chance of {threshold:g} or more" if threshold is not None else ""
        return f"spans of any width, the best {budget:g} per word{least}"


class Learner(nn.Module):
    """Model and objectives together: the one module that training wraps, so that every parameter is seen."""

    def __init__(self, model: SpanModel, objectives: Mapping[str, Objective], weights: Mapping[str, float]) -> None:
        super().__init__()
        self.model = model
        self.objectives = nn.ModuleDict(dict(objectives))
        self.weights = dict(weights)

    def forward(
        self,
        inputs: Any,
        gold: Any,
        targets: Mapping[str, Any],
        terms: tuple[str, ...],
        moment: Moment | None = None,
    ) -> dict[str, Any]:
        """The losses by name; the weighted sum under "loss"."""
        chosen: list[Any] = [self.objectives[name] for name in terms]
        wanted = gold
        for name in terms:
            objective: Any = self.objectives[name]
            wanted = objective.wanted(wanted, targets[name])
        states = self.model(
            inputs,
            gold,
            vectors=any(objective.needs_vectors for objective in chosen),
            spans=any(objective.reads_spans for objective in chosen),
            gold_vectors=any(objective.needs_gold_vectors for objective in chosen),
            features=any(objective.needs_features for objective in chosen),
            wanted=wanted,
        )._replace(moment=moment)
        losses = {name: self.objectives[name](states, gold, targets[name]) for name in terms}
        losses["loss"] = sum(self.weights[name] * losses[name] for name in terms)
        return losses


def assemble(
    recipe: Recipe,
    labels: LabelSet,
    encoder: Encoder | None = None,
    studied: Mapping[str, Any] | None = None,
    *,
    predicting: bool = False,
) -> Learner:
    """Builds the parts of a resolved recipe. Sizes flow from part to part; none is computed by hand.

    `studied` is what objectives found in the training data; with `predicting`, only those that read entities are built.
    """
    assert isinstance(recipe.max_width, int), "max_width is resolved before assembling"
    assert recipe.overlap != "auto", "overlap is resolved before assembling"
    encoder = encoder if encoder is not None else expect(recipe.encoder(), Encoder)
    scorer, span_size, feature_size = None, 0, 0
    if recipe.spans is not None and recipe.head is not None:
        spans = expect(recipe.spans(encoder, recipe.max_width), SpanRepresentation)
        head = expect(recipe.head(spans.size, labels.num_classes), Head)
        candidates = expect(recipe.candidates(encoder, recipe.max_width), CandidatePolicy)
        if candidates.gives_lists and not spans.takes_lists:
            raise ValueError(needs_grid(recipe.name, type(spans), type(candidates)))
        scorer, span_size, feature_size = Scorer(candidates, spans, head), spans.size, head.size
    sizes = Sizes(labels, recipe.max_width, recipe.overlap, encoder.size, span_size, feature_size)
    terms = {name: term for name, term in recipe.terms.items() if not predicting or reads(term)}
    known = studied or {}
    objectives = {
        name: expect(term.objective(sizes._replace(studied=known.get(name))), Objective) for name, term in terms.items()
    }
    agree(recipe.name, recipe.read_with, scorer, objectives, predicting=predicting)
    weights = {name: term.weight for name, term in terms.items()}
    encoder.adapt(merged=predicting)  # last: a deep tower has copied its blocks by now
    return Learner(SpanModel(encoder, scorer), objectives, weights)


def expect(part: Any, family: type[T]) -> T:
    """A part of the wrong family is said here, not as an attribute error later."""
    if not isinstance(part, family):
        raise ValueError(f"a {family.__name__} is needed here, not a {type(part).__name__}")
    return part


def reads(term: Term) -> bool:
    """Whether prediction needs a term's objective."""
    return bool(getattr(made_by(term.objective), "predicts", True))


def made_by(part: Part | None) -> Any:
    """The class a part is made by."""
    return part.func if isinstance(part, partial) else part


def needs_grid(name: str, spans: Any, candidates: Any) -> str:
    """What is said where a span representation gets a list that it cannot take."""
    return (
        f"recipe {name!r}: {spans.__name__} needs the whole grid, which {candidates.__name__} does not give; "
        "use other spans, or candidates Grid"
    )


def with_proposals(
    recipe: Recipe, budget: float = 1.0, weight: float = 1.0, *, threshold: float | None = None
) -> Recipe:
    """A span recipe that looks at the best spans of any width instead of its grid; their scores are one more term."""
    if recipe.spans is None:
        raise ValueError(f"recipe {recipe.name!r} has no spans to propose; start from a span recipe")
    if not getattr(made_by(recipe.spans), "takes_lists", True):
        raise ValueError(needs_grid(recipe.name, made_by(recipe.spans), Proposed))
    terms = {**recipe.terms, "proposals": Term(partial(Proposing), weight)}
    return replace(recipe, terms=terms, candidates=partial(Proposed, budget=budget, threshold=threshold))


def bundle(
    recipe: Recipe,
    weight: float = 0.1,
    crf: bool = False,
    *,
    spans: Part = partial(PooledSpans, views=("first", "last", "max"), sentence=True, width_size=25),
    head: Part = partial(FeedForwardHead),
    candidates: Part = partial(Grid),
    objective: Part = partial(Classification),
) -> Recipe:
    """Adds tags to a span recipe, or spans to a tagger: losses (1 - weight) and weight.  See: paper 002 eq. 19.

    `crf` is about the tags that a span recipe gets; `spans`, `head`, `candidates`, `objective` about a tagger's spans.
    """
    if "tags" in recipe.terms and "spans" in recipe.terms:
        raise ValueError(f"recipe {recipe.name!r} is bundled already; change terms.tags.weight instead")
    if "tags" not in recipe.terms:
        rest = {name: replace(term, weight=term.weight * (1 - weight)) for name, term in recipe.terms.items()}
        return replace(recipe, terms={**rest, "tags": Term(partial(Tagging, crf=crf), weight)})
    terms = {"spans": Term(objective, 1 - weight), "tags": replace(recipe.terms["tags"], weight=weight)}
    return replace(recipe, terms=terms, spans=spans, head=head, candidates=candidates)
