"""A conditional variational autoencoder over span vectors, given their labels. Only training needs it.

The condition ties labels of several corpora together: a row for each class, with one place for the class itself and one
for its meaning in the target corpus. See: Oi and Miwa 2025, section 3.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from wingspan.batch import Gold
from wingspan.candidates import same_spans
from wingspan.labels import LabelSet
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.distributed import share_of
from wingspan.layers.schedules import SCHEDULES, Moment
from wingspan.model import States
from wingspan.objectives import Objective, Sizes

Conditions = Literal["both", "own", "shared", "random"]
Over = Literal["spans", "entities", "everything"]


class ConditionalReconstruction(Objective):
    """The cost of rebuilding span vectors from a latent and the row of their class, plus the latent's divergence.

    `conditions` are the rows at the start: class and meaning (`both`), one of them (`own`, `shared`), or random; they
    learn if `trained`. `over` chooses the vectors: all `spans` that count and whose class is known (unmarked spans
    of a corpus that leaves types unmarked are not), `entities` only, or `everything` with padding (as "nothing" of the
    first corpus). With `detach` the rebuilt vectors get no gradient as targets. The weight of the divergence is `beta`
    times `schedule`.

    `error` is the `sum` of the squared errors of a vector's numbers, halved: a bound like that of any variational
    autoencoder, where `beta` is the variance of the noise that a number may have. The published code takes their
    `mean`, while the divergence is a sum over the latent: then no latent is worth its cost, and all stay empty.
    """

    needs_vectors = True
    _nothing: Tensor
    _silent: Tensor

    def __init__(
        self,
        sizes: Sizes,
        *,
        conditions: Conditions = "both",
        trained: bool = True,
        over: Over = "spans",
        detach: bool = False,
        hidden: int = 768,
        latent_size: int = 150,
        error: Literal["sum", "mean"] = "mean",
        beta: float = 1.0,
        schedule: Literal["constant", "linear", "warmup", "logistic", "cyclic"] = "constant",
    ) -> None:
        super().__init__()
        if beta < 0:
            raise ValueError(f"beta is {beta}; it is the weight of the divergence, 0 or more")
        rows = condition_rows(sizes.labels, conditions)  # (C, K)
        self._apart = len(sizes.labels.types) > 1 and not any(sizes.labels.counterparts.values())
        self.over = over
        self.detach = detach
        self.error = error
        self.beta = beta
        self.schedule = schedule
        self._last: tuple[Tensor, Tensor, Tensor] | None = None  # span vectors, classes, chosen, for `figures`
        self.rows = nn.Parameter(rows, requires_grad=trained)
        width = rows.shape[1]
        self.enter = nn.Linear(sizes.span + width, hidden)
        self.mean = nn.Linear(hidden, latent_size)
        self.log_variance = nn.Linear(hidden, latent_size)
        self.write = nn.Sequential(
            nn.Linear(latent_size + width, latent_size), nn.ReLU(), nn.Linear(latent_size, sizes.span), nn.ReLU()
        )
        nothing = torch.tensor([sizes.labels.nothing(name) for name in sizes.labels.datasets])
        self.register_buffer("_nothing", nothing, persistent=False)
        self.register_buffer("_silent", torch.from_numpy(sizes.labels.silent().any(1)), persistent=False)  # (datasets,)

    def lines(self) -> list[str]:
        """A note if nothing ties the corpora together."""
        missing = "No label_map: no label of another corpus means one of the target's, so the CVAE ties none together."
        return [missing] if self._apart else []

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The loss over the chosen vectors, in float32: squared error and weighted divergence."""
        assert states.spans is not None
        assert states.candidates is not None
        hits = same_spans(states.candidates, gold)  # (B, M, E)
        marked = hits.any(-1)
        label = gold.label.gather(1, hits.int().argmax(-1))  # the first hit, as in the classifier
        label = torch.where(marked, label, self._nothing[states.inputs.dataset][:, None])  # (B, M)
        chosen = states.candidates.mask
        if self.over == "spans":
            chosen = chosen & (marked | ~self._silent[states.inputs.dataset][:, None])
        elif self.over == "entities":
            chosen = chosen & marked
        elif self.over == "everything":
            label, chosen = torch.where(chosen, label, 0), torch.ones_like(chosen)
        with torch.autocast(states.spans.device.type, enabled=False):
            vectors = at_least_float32(states.spans)
            self._last = vectors.detach(), label, chosen
            error, divergence = self.costs(vectors, label)
            share = chosen.to(error.dtype) / share_of(chosen.sum(), error)
            weight = self.beta * SCHEDULES[self.schedule](states.moment or Moment())
            loss: Tensor = ((error + weight * divergence) * share).sum()
        return loss

    def costs(self, vectors: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
        """The squared error and the divergence of each span.  (B, M, S), (B, M) -> (B, M), (B, M)"""
        row = self.rows[label]  # (B, M, K)
        mean, log_variance = self.latent(vectors, row)
        latent = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        target = vectors.detach() if self.detach else vectors
        squared = (self.write(torch.cat([latent, row], -1)) - target).square()
        error = 0.5 * squared.sum(-1) if self.error == "sum" else squared.mean(-1)
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance).sum(-1)  # from the standard normal
        return error, divergence

    @torch.no_grad()
    def figures(self) -> dict[str, float]:
        """Of the last batch: nats in a latent, and how much larger errors of entities are with another class' row."""
        if self._last is None:
            return {}
        vectors, label, chosen = self._last
        nats = self.costs(vectors, label)[1][chosen]
        entities = chosen & ~torch.isin(label, self._nothing)
        vectors, label = vectors[entities], label[entities]
        other = (label + torch.randint_like(label, 1, len(self.rows))) % len(self.rows)
        right, wrong = (self.costs(vectors, one)[0].mean() for one in (label, other))
        gain = {"label_gain": (wrong / right - 1.0).item()} if len(label) else {}
        return {"nats_per_span": nats.mean().item(), **gain}

    def latent(self, vectors: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of the latents, given the rows of the labels.  (..., S), (..., K) -> (..., Z)"""
        entered = torch.relu(self.enter(torch.cat([vectors, row], -1)))
        return self.mean(entered), self.log_variance(entered)


def condition_rows(labels: LabelSet, conditions: Conditions = "both") -> Tensor:
    """The rows before training, one for each class.  (C, C + 1 + labels of the target), or some of its columns

    The first columns are the class itself; the others its meaning, with "nothing" of the target first. A label without
    a counterpart has no meaning there.
    """
    own = torch.eye(labels.num_classes)
    meanings = labels.target_classes()
    shared = torch.zeros(labels.num_classes, 1 + len(labels.types[labels.target]))
    for at, meaning in enumerate(meanings):
        if meaning is not None:
            shared[at, meaning] = 1.0
    both = torch.cat([own, shared], 1)
    parts: dict[Conditions, Tensor] = {"both": both, "own": own, "shared": shared}
    return torch.randn_like(both) if conditions == "random" else parts[conditions]
