"""Oi and Miwa: one model for several corpora, whose span vectors a conditional autoencoder shapes (Oi and Miwa).

Spans are first and last word and a width, through a linear layer. Each corpus has its own classes; in training an
autoencoder rebuilds span vectors given what their labels have in common and what not. Prediction does without it.

Which corpora there are is no part of a recipe: `single` is for one (`--train`), the others for several (`--corpora`).
The default is the system as the paper means it, on a small encoder. `paper` is what was run, with what its code really
does: see `docs/conditional.md` for the list.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from wingspan.corpora.segment import Segmenting
from wingspan.encoders.lora import Lora
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.objectives.classification import Classification
from wingspan.objectives.conditional import ConditionalReconstruction
from wingspan.recipe import Between, OneOf, Part, Range, Recipe, Term, Times, TrainSettings
from wingspan.spans.contextual import ProjectedSpans
from wingspan.spans.pooled import PooledSpans

CITATION = "Oi and Miwa 2025, Enhancing NER by Harnessing Multiple Datasets with Conditional Variational Autoencoders"

WEIGHT = 1e-6  # chosen on dev; from 1e-4 on, span vectors shrink until no latent is worth its cost
PAPER_WEIGHT = 1e-4  # the paper's alpha (Table 4, Figure 2), for a mean of squared errors instead of a sum
FRESH = {
    "model.scorer": 10.0,
    "objectives": 10.0,
    "objectives.cvae.rows": 5.0,
    "model.encoder.shapes": 10.0,
    "model.encoder.corpus_tokens": 10.0,
}
"""Parameters that are not pretrained learn faster; the rows of labels half as fast as the others."""


def multi(name: str = "multi") -> Recipe:
    """Single or Multi, after the corpora that are given: classes of each corpus in a block of their own, no CVAE."""
    return Recipe(
        name=f"conditional/{name}",
        paper=CITATION,
        encoder=partial(PretrainedEncoder, name="minilm", pooling="max", corpus_token="end"),
        spans=partial(ProjectedSpans, around=partial(PooledSpans, views=("first", "last"), width_size=150)),
        head=partial(FeedForwardHead, shares=(1.0, 0.5), dropout=0.2),
        terms={"spans": Term(partial(Classification))},
        train=TrainSettings(epochs=12, batch_size=32, learning_rate=1e-4, factors=FRESH),
    )


def reconstructed(name: str = "", weight: float = WEIGHT, **settings: Any) -> Recipe:
    """Multi+CVAE, or Single+CVAE: span vectors are rebuilt given the rows of their labels."""
    start = multi()
    cvae: Part = partial(ConditionalReconstruction, **{"error": "sum", **settings})
    return replace(
        start, name=f"conditional/{name}" if name else "conditional", terms={**start.terms, "cvae": Term(cvae, weight)}
    )


PUBMEDBERT = "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"


def paper() -> Recipe:
    """As run with PubMedBERT and the released command: rows fixed, foreign classes at a score of 0, biases unlearned.

    The released command asks for rows that cannot learn, so it is the paper's ablation Fixed.
    """
    start = reconstructed("paper", PAPER_WEIGHT, trained=False, over="everything", error="mean")
    return replace(
        start,
        encoder=partial(PretrainedEncoder, name=PUBMEDBERT, pooling="first", shapes=False, corpus_token="unknown"),
        head=partial(FeedForwardHead, shares=(1.0, 0.5), dropout=0.2, spread=None),
        terms={**start.terms, "spans": Term(partial(Classification, foreign="multiply"))},
        overlap="any",
        max_width=10,
        segments=Segmenting(max_length=512, context="document", context_words=150),
        train=TrainSettings(
            epochs=100,
            batch_size=16,
            accumulate=4,
            batches="single",
            whole_batches=True,
            learning_rate=7e-4,
            factors={"objectives.cvae.rows": 0.5},
            warmup=0.1,
            stretch=4.0,
            weight_decay=0.0,
            adam_eps=1e-6,
            frozen=("bias",),
            clip=0.0,
            patience=5,
        ),
    )


def proposed() -> Recipe:
    """`paper` with rows that learn: the paper's proposal, with all else as its code has it."""
    start = paper()
    cvae = replace(start.terms["cvae"], objective=partial(ConditionalReconstruction, over="everything", error="mean"))
    return replace(start, name="conditional/paper-trained-rows", terms={**start.terms, "cvae": cvae})


def paper_without_cvae(name: str) -> Recipe:
    """Single or Multi as run: `paper` without the autoencoder."""
    start = paper()
    return replace(start, name=f"conditional/{name}", terms={"spans": start.terms["spans"]})


T5 = "google-t5/t5-3b"
WITHOUT_KEYS = ("q", "v", "o", "wi", "wo")  # the code also names ".k", which is no layer's: keys have no adapters


def paper_t5() -> Recipe:
    """As run with T5-3B: in 4 bits, with adapters; the corpora have tokens here, whose rows never learn."""
    start = paper()
    adapters = Lora(rank=32, alpha=32, dropout=0.05, targets=WITHOUT_KEYS)
    encoder: Part = partial(
        PretrainedEncoder,
        name=T5,
        pooling="first",
        shapes=False,
        adapters=adapters,
        quantize="4bit",
        gradient_checkpointing=True,
        corpus_token="end",
    )
    train = replace(start.train, frozen=("bias", "layer_norm", "corpus_tokens"))
    return replace(start, name="conditional/paper-t5", encoder=encoder, train=train)


variants: dict[str, Callable[[], Recipe]] = {
    "": reconstructed,
    "single": partial(multi, "single"),
    "multi": multi,
    "multi-cvae": partial(reconstructed, "multi-cvae"),
    "fixed": partial(reconstructed, "fixed", trained=False),
    "unshared": partial(reconstructed, "unshared", conditions="own"),
    "shared-label": partial(reconstructed, "shared-label", conditions="shared"),
    "random": partial(reconstructed, "random", conditions="random"),
    "multi-shared-label": partial(multi, "multi-shared-label"),
    "single-cvae": partial(reconstructed, "single-cvae"),
    "paper": paper,
    "paper-single": partial(paper_without_cvae, "paper-single"),
    "paper-multi": partial(paper_without_cvae, "paper-multi"),
    "paper-t5": paper_t5,
    "paper-trained-rows": proposed,
}

ranges: dict[
    str, Range
] = {  # around the encoder's own rate; two orders of magnitude below Figure 2, whose error is a mean
    "terms.cvae.weight": Between(1e-7, 1e-4, log=True),
    "terms.cvae.objective.beta": Between(1e-3, 1.0, log=True),
    "terms.cvae.objective.latent_size": OneOf((75, 150, 300)),
    "train.learning_rate": Times(0.3, 3.0),
    "train.factors.model.scorer": Between(1.0, 30.0, log=True),
}
