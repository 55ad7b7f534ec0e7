"""A paper is a recipe: which parts, which losses, how long. An ablation is another recipe, never an `if` in a model.

Parts are `functools.partial` objects over real constructors, so that mypy checks them and no registry is needed.
In order: the settings of a training, the recipe, the model that `assemble` builds from it and the checks that its parts
fit together, functions that extend recipes, and the ranges that `wingspan tune` searches.
"""

import inspect
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, Literal, TypeVar

from torch import nn

from wingspan.candidates import CandidatePolicy, Grid
from wingspan.candidates.proposed import Proposed
from wingspan.corpora.segment import Segmenting
from wingspan.decoding import Joining, Overlap
from wingspan.encoders import Encoder
from wingspan.evaluation.scores import Protocol
from wingspan.heads import Head
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.labels import LabelSet, Thresholds
from wingspan.layers.schedules import Moment
from wingspan.model import Scorer, SpanModel
from wingspan.objectives import Objective, Sizes
from wingspan.objectives.classification import Classification
from wingspan.objectives.distillation import Distillation
from wingspan.objectives.links import Links
from wingspan.objectives.proposing import Proposing
from wingspan.objectives.tagging import Tagging
from wingspan.objectives.typing import Typing
from wingspan.spans import SpanRepresentation
from wingspan.spans.pooled import PooledSpans

Sampling = Literal["proportion", "uniform", "temperature", "each"]
Batches = Literal["mixed", "single", "turns"]


@dataclass(frozen=True)
class TrainSettings:
    """How weights are learned.

    `factors` and `decays` multiply the learning rate and the weight decay of parameters by the prefix of their name;
    the longest matching prefix counts.
    """

    epochs: int = 20
    batch_size: int = 16
    learning_rate: float = 5e-5
    factors: Mapping[str, float] = field(default_factory=dict)
    schedule: Literal["linear", "cosine", "constant"] = "linear"
    schedule_over: Literal["phase", "run"] = "phase"
    """Whether the learning rate rises and falls once in each phase, or once in the whole run."""
    warmup: float = 0.1  # the share of all steps during which the learning rate rises
    stretch: float = 1.0  # stretches the schedule by this factor; it stops before reaching zero
    frozen: Sequence[str] = ()  # parameters with one of these in their name are not trained
    weight_decay: float = 0.01
    decays: Mapping[str, float] = field(default_factory=dict)
    decay_bias: bool = False
    adam_eps: float = 1e-8
    correct_bias: bool = True
    """Whether Adam corrects the bias of its early means; older implementations for BERT did not."""
    clip: float = 1.0
    accumulate: int | Literal["epoch"] = 1
    """Batches per optimizer step, with the mean of their losses; `epoch`: all batches of an epoch, with the sum."""
    precision: Literal["no", "bf16", "fp16"] = "no"
    budget: int = 16_384  # the most units (sentences times longest) of one batch
    sampling: Sampling = "proportion"
    """How often corpora are drawn: by their sentences, all alike, by sentences ** (1 / temperature), or equally many of
    each in every batch."""
    temperature: float = 2.0
    batches: Batches = "mixed"
    """Whether a batch mixes corpora or holds a single one; with `turns`, the batches of one step are of several."""
    whole_batches: bool = False
    """Whether incomplete batches are left out: the rest of each corpus, a different one in each epoch."""
    patience: int | None = None  # stop after this many epochs without a better dev F1 (accuracy if spans are given)
    checkpoint_steps: int | None = None
    """Also save a state for `--resume` every this many steps; one is saved after each epoch anyway."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "accumulate", "budget", "patience", "checkpoint_steps"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise ValueError(f"train.{name} is {value}; give at least 1")
        for name in ("learning_rate", "weight_decay", "adam_eps", "clip", "warmup"):
            if getattr(self, name) < 0:
                raise ValueError(f"train.{name} is {getattr(self, name)}; give 0 or more")
        if self.stretch < 1:
            raise ValueError(f"train.stretch is {self.stretch}; give 1 or more")
        if self.temperature <= 0:
            raise ValueError(f"train.temperature is {self.temperature}; give a number above 0")
        if self.warmup > 1:
            raise ValueError(f"train.warmup is {self.warmup}; it is a share of all steps, from 0 to 1")

    @property
    def together(self) -> int:
        """The most batches that share an optimizer step."""
        return sys.maxsize if self.accumulate == "epoch" else self.accumulate

    def share(self, batches: int) -> float:
        """The weight of each batch's loss when this many share an optimizer step."""
        return 1.0 if self.accumulate == "epoch" else 1.0 / batches


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
    frozen: Sequence[str] = ()  # as `train.frozen`, in this phase only


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
    """The term that predicts entities: `spans`, `tags`, or `links` for spans and joined fragments."""
    joining: Joining = Joining()
    overlap: Overlap | Literal["auto"] = "auto"
    thresholds: Thresholds = None
    max_width: int | Literal["auto"] = "auto"
    segments: Segmenting = Segmenting()
    phases: tuple[Phase, ...] = (Phase(),)
    train: TrainSettings = TrainSettings()

    def __post_init__(self) -> None:
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
        """The term that predicts entities in one piece."""
        return "spans" if self.read_with == "links" else self.read_with

    @property
    def one_label(self) -> bool:
        """Whether the term that predicts gives a span one label at most."""
        settings: Mapping[str, object] = getattr(self.terms[self.reader].objective, "keywords", {})
        return self.reader == "spans" and settings.get("link", "softmax") == "softmax"

    @property
    def ceiling(self) -> int | None:
        """The widest span that a resolved recipe can find; None if width is unlimited."""
        unlimited = self.read_with == "tags" or getattr(made_by(self.candidates), "unlimited", False)
        return None if unlimited or self.max_width == "auto" else self.max_width

    @property
    def protocol(self) -> Protocol:
        """Whether a model of this recipe finds spans or types given ones."""
        given = getattr(made_by(self.candidates), "given", False) and self.read_with == "spans"
        return "typing" if given else "recognition"

    @property
    def unit(self) -> str:
        """The unit of widths: words, or pieces if the encoder is set to them."""
        setting = inspect.signature(self.encoder).parameters.get("unit")
        return str(setting.default) if setting is not None else "word"

    @property
    def scope(self) -> str:
        """The spans that the model considers, in a few words."""
        if self.protocol == "typing":
            return "given spans of any width"
        if made_by(self.candidates) is not Proposed:
            return f"spans up to {self.max_width} {self.unit}s"
        settings = inspect.signature(self.candidates).parameters
        budget, threshold = settings["budget"].default, settings["threshold"].default
        least = f" with a chance of {threshold:g} or more" if threshold is not None else ""
        return f"spans of any width, the best {budget:g} per word{least}"


class Learner(nn.Module):
    """Model and objectives together: the one module that training wraps, so that it sees every parameter."""

    def __init__(self, model: SpanModel, objectives: Mapping[str, Objective], weights: Mapping[str, float]) -> None:
        super().__init__()
        self.model = model
        self.objectives = nn.ModuleDict(dict(objectives))
        self.weights = dict(weights)

    def forward(
        self, inputs: Any, gold: Any, targets: Mapping[str, Any], terms: tuple[str, ...], moment: Moment | None = None
    ) -> dict[str, Any]:
        """The losses by name; the weighted sum under "loss"."""
        chosen: list[Any] = [self.objectives[name] for name in terms]
        required = gold
        for name in terms:
            objective: Any = self.objectives[name]
            required = objective.required(required, targets[name])
        wanted = {
            "vectors": any(objective.needs_vectors for objective in chosen),
            "spans": any(objective.reads_spans for objective in chosen),
            "gold_vectors": any(objective.needs_gold_vectors for objective in chosen),
            "features": any(objective.needs_features for objective in chosen),
            "required": required,
        }
        states = self.model(inputs, gold, **wanted)._replace(moment=moment)
        losses = {name: self.objectives[name](states, gold, targets[name]) for name in terms}
        losses["loss"] = reduce(add, (self.weights[name] * losses[name] for name in terms))  # no 0 to begin with
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

    `studied` is what objectives learned from the training data; with `predicting`, only those that predict are built.
    """
    assert isinstance(recipe.max_width, int), "max_width is resolved before assembling"
    assert recipe.overlap != "auto", "overlap is resolved before assembling"
    encoder = encoder if encoder is not None else expect(recipe.encoder(), Encoder)
    scorer, span_size, feature_size = None, 0, 0
    if recipe.spans is not None and recipe.head is not None:
        spans = expect(recipe.spans(encoder, recipe.max_width), SpanRepresentation)
        head = expect(recipe.head(spans.size, labels.num_classes), Head)
        head.expect_nothing([labels.nothing(name) for name in labels.datasets])
        candidates = expect(recipe.candidates(encoder, recipe.max_width), CandidatePolicy)
        if candidates.gives_lists and not spans.takes_lists:
            raise ValueError(needs_grid(recipe.name, type(spans), type(candidates)))
        scorer, span_size, feature_size = Scorer(candidates, spans, head), spans.size, head.size
    sizes = Sizes(labels, recipe.max_width, recipe.overlap, encoder.size, span_size, feature_size)
    terms = {
        name: term
        for name, term in recipe.terms.items()
        if not predicting or getattr(made_by(term.objective), "predicts", True)
    }
    known = studied or {}
    objectives = {
        name: expect(term.objective(sizes._replace(studied=known.get(name))), Objective) for name, term in terms.items()
    }
    check_together(recipe, scorer, objectives, predicting=predicting)
    weights = {name: term.weight for name, term in terms.items()}
    encoder.adapt(merged=predicting)  # last: a deep tower has copied its blocks by now
    return Learner(SpanModel(encoder, scorer), objectives, weights)


def must_recognize(recipe: Recipe, verb: str) -> Recipe:
    """Rejects recipes that type given spans: they have an accuracy, and `verb` is about F1."""
    if recipe.protocol == "typing":
        raise ValueError(
            f"{recipe.name} types given spans and has no F1, which {verb} is about; "
            "use wingspan train and evaluate, or a variant that recognizes"
        )
    return recipe


def check_together(
    recipe: Recipe, scorer: Scorer | None, objectives: Mapping[str, Objective], *, predicting: bool
) -> None:
    """Rejects objectives that need what the other parts of the recipe do not provide."""
    prefix, parts = f"recipe {recipe.name!r}", list(objectives.values())
    if any(part.needs_gold_vectors for part in parts) and not (scorer and scorer.spans.takes_lists):
        raise ValueError(f"{prefix}: an objective needs the vectors of gold spans; use spans that take lists")
    proposed = scorer is not None and isinstance(scorer.candidates, Proposed)
    if not predicting and proposed != any(isinstance(part, Proposing) for part in parts):
        raise ValueError(f"{prefix} needs both Proposed and Proposing; see recipe.with_proposals")
    if (scorer is not None and scorer.candidates.given) != any(isinstance(part, Typing) for part in parts):
        raise ValueError(f"{prefix}: candidates Given and the objective Typing need each other")
    if not objectives[recipe.read_with].predicts:
        raise ValueError(f"{prefix}: {recipe.read_with!r} cannot read entities; use spans, tags or links")


def expect(part: Any, family: type[T]) -> T:
    """The part, if it is of this family: a clear error now instead of an attribute error later."""
    if not isinstance(part, family):
        raise ValueError(f"a {family.__name__} is needed here, not a {type(part).__name__}")
    return part


def made_by(part: Part | None) -> Any:
    """The class a part is made by."""
    return part.func if isinstance(part, partial) else part


def needs_grid(name: str, spans: Any, candidates: Any) -> str:
    """The message for a span representation that cannot take a list of spans."""
    return (
        f"recipe {name!r}: {spans.__name__} needs the whole grid, which {candidates.__name__} does not give; "
        "use other spans, or candidates Grid"
    )


def with_proposals(
    recipe: Recipe, budget: float = 1.0, weight: float = 1.0, *, threshold: float | None = None
) -> Recipe:
    """A span recipe on the best spans of any width instead of its grid; their scores are one more term."""
    if recipe.spans is None:
        raise ValueError(f"recipe {recipe.name!r} has no spans to propose; start from a span recipe")
    if not getattr(made_by(recipe.spans), "takes_lists", True):
        raise ValueError(needs_grid(recipe.name, made_by(recipe.spans), Proposed))
    terms = {**recipe.terms, "proposals": Term(partial(Proposing), weight)}
    return replace(recipe, terms=terms, candidates=partial(Proposed, budget=budget, threshold=threshold))


def with_links(recipe: Recipe, weight: float = 1.0) -> Recipe:
    """A span recipe that also finds discontinuous entities; those in one piece are learned and predicted as before."""
    if recipe.spans is None or "spans" not in recipe.terms:
        raise ValueError(f"recipe {recipe.name!r} has no spans that could be fragments; start from a span recipe")
    return replace(
        recipe,
        terms={**recipe.terms, "links": Term(partial(Links), weight)},
        read_with="links",
        joining=replace(recipe.joining, fragments="join", gap=0),
    )


def with_teachers(recipe: Recipe, weight: float = 0.5, temperature: float = 1.0) -> Recipe:
    """A span recipe that also learns the chances that teachers give to spans: losses (1 - weight) and weight."""
    if "teachers" in recipe.terms:
        raise ValueError(f"recipe {recipe.name!r} has teachers already; change terms.teachers.weight instead")
    objective = recipe.terms["spans"].objective if "spans" in recipe.terms else None
    if made_by(objective) is not Classification:
        raise ValueError(f"recipe {recipe.name!r} classifies no spans that teachers could teach; use a span recipe")
    settings = getattr(objective, "keywords", {})
    shared = {name: settings[name] for name in ("link", "reduction", "foreign") if name in settings}
    taught = partial(Distillation, temperature=temperature, **shared)
    rest = {name: replace(term, weight=term.weight * (1 - weight)) for name, term in recipe.terms.items()}
    return replace(recipe, terms={**rest, "teachers": Term(taught, weight)})


def without_teachers(recipe: Recipe) -> Recipe:
    """The other losses with the weights that they have: their sum is smaller, which Adam does not see.

    Phases forget the teachers, too, and one that had nothing else is over.
    """
    if "teachers" not in recipe.terms:
        return recipe
    rest = {name: term for name, term in recipe.terms.items() if name != "teachers"}
    if not any(term.weight for term in rest.values()):
        raise ValueError(f"recipe {recipe.name!r} learns from teachers alone; give them with --teacher")
    phases = tuple(
        replace(phase, terms=tuple(name for name in phase.terms if name != "teachers")) if phase.terms else phase
        for phase in recipe.phases
        if phase.terms != ("teachers",)
    )
    return replace(recipe, terms=rest, phases=phases or (Phase(),))


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
    """Adds tags to a span recipe, or spans to a tagger: losses (1 - weight) and weight.  See: Ji et al. 2022 eq. 19.

    `crf` is for tags added to a span recipe; `spans`, `head`, `candidates`, `objective` for spans added to a tagger.
    """
    if "tags" in recipe.terms and "spans" in recipe.terms:
        raise ValueError(f"recipe {recipe.name!r} is bundled already; change terms.tags.weight instead")
    if "tags" not in recipe.terms:
        rest = {name: replace(term, weight=term.weight * (1 - weight)) for name, term in recipe.terms.items()}
        return replace(recipe, terms={**rest, "tags": Term(partial(Tagging, crf=crf), weight)})
    terms = {"spans": Term(objective, 1 - weight), "tags": replace(recipe.terms["tags"], weight=weight)}
    return replace(recipe, terms=terms, spans=spans, head=head, candidates=candidates)


# Ranges of settings that `wingspan tune` searches, declared by a recipe or given in the shell


Scalar = None | bool | int | float | str


@dataclass(frozen=True)
class Between:
    """Any number from low to high, whole if both ends are; with `log`, all orders of magnitude alike."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"a range goes from a lower to a higher number, not from {self.low} to {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"a log range starts above 0, not at {self.low}")

    @property
    def whole(self) -> bool:
        """Whether the range holds only whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def holds(self, value: object) -> bool:
        """Whether a value lies in the range."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high


@dataclass(frozen=True)
class OneOf:
    """One of several values; a list is written as text, as `--set` takes it."""

    values: tuple[Scalar, ...]

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        return value in self.values


@dataclass(frozen=True)
class Times:
    """From low to high times the recipe's value, on a log scale: for settings that depend on the encoder."""

    low: float
    high: float

    def around(self, value: object) -> Between:
        """The range around a value."""
        if not isinstance(value, int | float) or value <= 0:
            raise ValueError(f"a range of factors needs a number above 0 to multiply, not {value!r}")
        return Between(self.low * value, self.high * value, log=True)


Range = Between | OneOf | Times

DEFAULT_RANGES: dict[str, Range] = {
    "train.learning_rate": Times(0.2, 5.0),
    "train.batch_size": OneOf((8, 16, 32)),
    "train.warmup": Between(0.0, 0.2),
    "head.dropout": Between(0.0, 0.5),
}
"""For recipes that declare none; settings that a recipe lacks are left out."""


def parse_range(text: str) -> Between | OneOf:
    """`1e-5:1e-3:log`, `0:0.5`, `1:4` or `8,16,32`."""
    parts = text.split(":")
    if len(parts) == 1:
        values = tuple(_scalar(part.strip()) for part in text.split(","))
        if len(values) < 2 or "" in values:
            raise ValueError(f"{text!r} is no range; write low:high, low:high:log, or values with commas")
        return OneOf(values)
    try:
        low, high = (json.loads(part) for part in parts[:2])
        if parts[2:] not in ([], ["log"]):
            raise ValueError
        return Between(low + 0, high + 0, log=len(parts) == 3)
    except (ValueError, TypeError) as error:
        reason = str(error) if str(error).startswith("a ") else "write low:high, low:high:log, or values with commas"
        raise ValueError(f"{text!r} is no range; {reason}") from error


def _scalar(text: str) -> Scalar:
    """A JSON scalar, else a word."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if value is None or isinstance(value, bool | int | float | str) else text
