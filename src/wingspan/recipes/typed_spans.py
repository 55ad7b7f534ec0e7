"""The span-level strategy of SNG (SNG): static vectors, a BiLSTM with attention inside each span, a softmax.

The published system types given spans: its code looks at gold spans only, and the "F1" of its Table 2 follows from
typing accuracies. So the default and `paper` are scored by accuracy. `recognize` is the same model as a recognizer: all
spans, a class for no entity, strict F1.

`paper` differs from the default as its code does: all gradients of an epoch make one step of Adam (600 steps in all,
without dropout), vectors are frozen, discontinuous entities are left out of training.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from wingspan.candidates import Given, Grid, Sampled
from wingspan.decoding import Joining
from wingspan.encoders.static import StaticEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.objectives.classification import Classification
from wingspan.objectives.typing import Typing
from wingspan.recipe import Between, OneOf, Part, Range, Recipe, Term, Times, TrainSettings
from wingspan.spans.recurrent import RecurrentSpans

CITATION = "SNG, a span-level strategy with static vectors; what was published types given spans"

GRID: Part = partial(Grid)
TRAIN = TrainSettings(epochs=15, batch_size=32, learning_rate=1e-3, warmup=0.05, weight_decay=0.0, clip=5.0)


def recipe() -> Recipe:
    """Types of given spans, from the words inside each span alone; mini-batches."""
    return Recipe(
        name="typed_spans",
        paper=CITATION,
        encoder=partial(StaticEncoder, unknown="hashed", trained=True),
        spans=partial(RecurrentSpans, hidden_size=400, dropout=0.5),
        head=partial(FeedForwardHead),
        candidates=partial(Given),
        terms={"spans": Term(partial(Typing))},
        joining=Joining(fragments="split"),
        train=TRAIN,
    )


def paper(epochs: int = 600) -> Recipe:
    """As the published code does it: frozen vectors of 300, 2 x 200 states, one step of Adam for each epoch."""
    return replace(
        recipe(),
        name="typed_spans/paper",
        encoder=partial(StaticEncoder, unknown="mean", case="exact", trained=False, size=300),
        spans=partial(RecurrentSpans, hidden_size=400, width_size=0, dropout=0.0),
        head=partial(FeedForwardHead, dropout=0.0),
        terms={"spans": Term(partial(Typing, reduction="sum"))},
        joining=Joining(fragments="drop"),
        train=TrainSettings(
            epochs=epochs,
            batch_size=256,
            accumulate="epoch",
            learning_rate=1e-3,
            schedule="constant",
            warmup=0.0,
            weight_decay=0.0,
            clip=0.0,
        ),
    )


def paper_mini_batch() -> Recipe:
    """The published model, trained in mini-batches like the default."""
    published = replace(paper(), name="typed_spans/paper-mini-batch", terms=recipe().terms)
    return replace(published, train=replace(TRAIN, epochs=30))


def on_vectors(name: str, **settings: Any) -> Recipe:
    """Other static vectors: frozen, random (the ablation of pre-training), or below a BiLSTM over the sentence."""
    return replace(recipe(), name=f"typed_spans/{name}", encoder=partial(StaticEncoder, **settings))


def recognize(name: str = "recognize", candidates: Part = GRID) -> Recipe:
    """A recognizer: the same vectors of all spans of the grid, one more class for those that are no entity."""
    return replace(
        recipe(),
        name=f"typed_spans/{name}",
        candidates=candidates,
        terms={"spans": Term(partial(Classification))},
        joining=Joining(fragments="drop"),
    )


variants: dict[str, Callable[[], Recipe]] = {
    "": recipe,
    "frozen": partial(on_vectors, "frozen", unknown="hashed", trained=False),
    "random-vectors": partial(on_vectors, "random-vectors", vectors=None, unknown="random", trained=False),
    "in-context": partial(on_vectors, "in-context", unknown="hashed", trained=True, hidden=128, dropout=0.3),
    "recognize": recognize,
    "recognize-sampled": partial(recognize, "recognize-sampled", partial(Sampled, negatives=100)),
    "paper": paper,
    "paper-nerel": partial(paper, epochs=1500),
    "paper-mini-batch": paper_mini_batch,
}

ranges: dict[str, Range] = {
    "train.learning_rate": Times(0.2, 5.0),
    "train.batch_size": OneOf((16, 32, 64)),
    "spans.hidden_size": OneOf((200, 400, 600)),
    "spans.dropout": Between(0.0, 0.6),
}
