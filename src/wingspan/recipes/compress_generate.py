"""Nguyen, Miwa and Ananiadou 2023: spans are compressed to be classified, and made to hold their names (Nguyen et al.).

A supervised variational information bottleneck (SupVIB) classifies spans; two variational autoencoders write each gold
span's own words (SpanReco) and its synonyms (SynGen), first alone, then together with the classifier.

The default is the system as the paper means it, on a small encoder. `paper` is what was run, with what its code really
does: see `docs/compress_generate.md` for the list.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from wingspan.corpora.segment import Segmenting
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.heads.bottleneck import BottleneckHead
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.objectives.classification import Classification
from wingspan.objectives.compression import Compression
from wingspan.objectives.generation import Generation
from wingspan.recipe import Between, OneOf, Part, Phase, Range, Recipe, Term, Times, TrainSettings, with_proposals
from wingspan.spans.pooled import PooledSpans

CITATION = "Nguyen, Miwa and Ananiadou 2023, Span-based NER by Generating and Compressing Information, EACL"

FRESH = {"model.scorer": 10.0, "objectives": 10.0, "model.encoder.shapes": 10.0}
RARE = 0.01  # the chance of each type in each span before training; from one half, nothing is found for epochs
TRAIN = TrainSettings(epochs=12, batch_size=32, learning_rate=1e-4, factors=FRESH)
# the autoencoders alone, before the bottleneck joins them; Adam cancels their small weight where nothing is weighed
# against it, so that they would move the encoder at its full rate
ALONE = Phase(3, ("generate",), frozen=("model.encoder",))
GAMMA = 1e-6  # the best of three on dev of NCBI-disease, which hardly differ there


def baseline(name: str = "baseline") -> Recipe:
    """Baseline: first, mean and last of the units, a yes or no for each type."""
    return Recipe(
        name=f"compress_generate/{name}",
        paper=CITATION,
        encoder=partial(PretrainedEncoder, name="minilm", pooling="max"),
        spans=partial(PooledSpans, views=("first", "mean", "last"), dropout=0.1),
        head=partial(FeedForwardHead, start_chance=RARE),
        terms={"spans": Term(partial(Classification, link="sigmoid"))},
        train=TRAIN,
    )


def compressed(name: str = "supvib", beta: float = 3e-6) -> Recipe:
    """SupVIB: the bottleneck, with what it charges; with beta 0 nothing is charged."""
    start = baseline(name)
    terms = {**start.terms, "compress": Term(partial(Compression, beta=beta))} if beta else start.terms
    return replace(start, head=partial(BottleneckHead, start_chance=RARE), terms=terms)


def generated(
    name: str = "", tasks: tuple[str, ...] = ("words", "synonyms"), sharing: Literal["mean", "all", "none"] = "mean"
) -> Recipe:
    """SupVIB with autoencoders of these tasks: by default both, with one mean and two spreads (All)."""
    start = compressed()
    # a latent that is charged in full for what a name tells stays empty, and shapes no span vector
    generation = Term(partial(Generation, tasks=tasks, sharing=sharing, free_nats=10.0), GAMMA)
    return replace(
        start,
        name=f"compress_generate/{name}" if name else "compress_generate",
        terms={**start.terms, "generate": generation},
        phases=(ALONE, Phase()),
    )


def proposed() -> Recipe:
    """SupVIB that looks at the best spans of any width: the bottleneck costs little where few spans go through it."""
    return replace(with_proposals(compressed()), name="compress_generate/supvib-proposals")


def only_generated() -> Recipe:
    """The autoencoders alone, for pictures of their latents; the classifier stays as it was drawn."""
    return replace(generated("vaes-only"), phases=(Phase(terms=("generate",)),))


SCIBERT = "allenai/scibert_scivocab_cased"
# learning rates of NER and VAEs, beta, gamma, latent size as released for NCBI; batch size, epochs, those of VAEs alone
PAPER: dict[str, tuple[int, int, int]] = {"": (16, 20, 10), "ncbi": (8, 10, 3)}
NER_RATE, VAE_RATE, PAPER_BETA, PAPER_GAMMA, LATENT = 2.897e-5, 3.265e-4, 2.810e-6, 1.825e-6, 1024


def paper(corpus: str = "") -> Recipe:
    """As run: Table 9 with the one set of tuned values that was released; `ncbi` is the released file itself."""
    batch, epochs, alone = PAPER[corpus]
    generation: Part = partial(
        Generation,
        latent_size=LATENT,
        schedule="logistic-each-epoch",
        reads="source",
        lower_case=False,
        synonym_words=False,
        rare_first=True,
        adaptive_above=0,
        singleton_dropout=0.01,
    )
    faster = VAE_RATE / NER_RATE
    # the bottleneck learns like the autoencoders, but for its classifier
    factors = {"objectives": faster, "model.scorer.head": faster, "model.scorer.head.classify": 1.0}
    decays = {"objectives": 0.0, "model.scorer.head": 0.0, "model.scorer.head.classify": 1.0}
    start = generated()
    return replace(
        start,
        name=f"compress_generate/paper{' (released NCBI settings)' if corpus else ''}",
        encoder=partial(PretrainedEncoder, name=SCIBERT, unit="piece", shapes=False),
        head=partial(BottleneckHead),
        terms={
            "spans": Term(partial(Classification, link="sigmoid", most_labels=1)),
            "compress": Term(partial(Compression, beta=PAPER_BETA, within_words=True)),
            "generate": Term(generation, PAPER_GAMMA),
        },
        max_width=14,
        overlap="any",
        segments=Segmenting(max_length=512),
        phases=(Phase(alone, ("generate",)), Phase()),
        train=TrainSettings(
            epochs=epochs - alone,
            batch_size=batch,
            learning_rate=NER_RATE,
            factors=factors,
            decays=decays,
            schedule_over="run",
            warmup=0.1,
            weight_decay=0.01,
            adam_eps=1e-6,
            correct_bias=False,
            clip=1.0,
            budget=512 * batch,
        ),
    )


variants: dict[str, Callable[[], Recipe]] = {
    "": generated,
    "baseline": baseline,
    "supvib-beta-0": partial(compressed, "supvib-beta-0", beta=0.0),
    "supvib": compressed,
    "supvib-proposals": proposed,
    "supvib-spanreco": partial(generated, "supvib-spanreco", tasks=("words",)),
    "all": partial(generated, "all"),
    "all-shared-spread": partial(generated, "all-shared-spread", sharing="all"),
    "all-no-sharing": partial(generated, "all-no-sharing", sharing="none"),
    "vaes-only": only_generated,
    "paper": paper,
    "paper-ncbi": partial(paper, "ncbi"),
}

ranges: dict[str, Range] = {  # Table 9, around the encoder's own rate; what the VAEs and the head have more of it
    "terms.compress.objective.beta": Between(1e-6, 1e-4, log=True),
    "terms.generate.weight": Between(1e-6, 1e-4, log=True),
    "terms.generate.objective.latent_size": OneOf((512, 768, 1024)),
    "train.learning_rate": Times(0.1, 3.0),
    "train.factors.objectives.generate": Between(1.0, 30.0, log=True),
    "train.factors.model.scorer.head": Between(1.0, 30.0, log=True),
}
