"""Zhu, Liu and Li 2023: span vectors built layer by layer by a Transformer of their own (DSpERT, Zhu et al. 2023).

The default is the paper's model on words instead of pieces, sentence by sentence, with a small encoder's learning
rates. `paper` is what was run: pieces as units, negatives inside words, dropout 0.2 in both towers, whole documents as
inputs where the corpus has them. In `proposals` the spans are the best of any width; the BiLSTM over neighbors needs
the whole grid, so `no-bilstm` is what `proposals` is to be compared with (likewise `depth-2-...`, `shallow-max-...`).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from wingspan.candidates import Grid
from wingspan.corpora.segment import Segmenting
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.objectives.classification import Classification
from wingspan.recipe import Between, OneOf, Part, Range, Recipe, Term, Times, TrainSettings, with_proposals
from wingspan.spans.attentive import AttentiveSpans
from wingspan.spans.biaffine import BiaffineSpans, RotaryBiaffineSpans
from wingspan.spans.contextual import ContextualSpans, ConvolvedSpans
from wingspan.spans.deep import DeepSpans
from wingspan.spans.pooled import PooledSpans

CITATION = "Zhu, Liu and Li, 2023: Deep Span Representations for Named Entity Recognition (DSpERT), Findings of ACL"
CNN_NER = "Yan et al., 2023: An Embarrassingly Easy but Strong Baseline for Nested Named Entity Recognition, ACL"

# a deviation of 0.07 is that of Kaiming's 425 x 300 weights, and close to Xavier's of the class scores
HEAD: Part = partial(FeedForwardHead, hidden=(300,), dropout=0.2, input_dropout=0.4, spread=0.07)
DEEP: Part = partial(DeepSpans)


def fresh(factor: float) -> dict[str, float]:
    """Learning rates: the span Transformer learns as slowly as the encoder it was copied from, the rest faster."""
    slow = {f"model.scorer.spans.{part}": 1.0 for part in ("blocks", "around.blocks", "distances", "around.distances")}
    return {"model.scorer": factor, "objectives": factor, "model.encoder.shapes": factor, **slow}


def recipe(
    spans: Part = DEEP, name: str = "", bilstm: bool = True, share_weights: bool = False, smoothing: float = 0.1
) -> Recipe:
    """Any span vectors under the paper's head: a BiLSTM over the spans of one width, the width, one hidden layer."""
    keywords = spans.keywords if isinstance(spans, partial) else {}
    alone = partial(spans, **{**keywords, "width_size": 25})
    around = partial(ContextualSpans, around=spans, hidden_size=400, share_weights=share_weights, width_size=25)
    return Recipe(
        name=f"deep_span/{name}" if name else "deep_span",
        paper=CITATION,
        encoder=partial(PretrainedEncoder, name="minilm", pooling="max"),
        spans=around if bilstm else alone,
        head=HEAD,
        candidates=partial(Grid),
        terms={"spans": Term(partial(Classification, smoothing=smoothing, reduction="sentences"))},
        train=TrainSettings(epochs=15, batch_size=32, learning_rate=1.5e-4, factors=fresh(10.0), clip=5.0),
    )


def biaffine(
    spans: Part = partial(BiaffineSpans), name: str = "biaffine", paper: str = f"the baseline of {CITATION}"
) -> Recipe:
    """The classic baseline: its span vector holds all products of start and end, so its head is one linear layer."""
    return replace(recipe(name=name), paper=paper, spans=spans, head=partial(FeedForwardHead))


def rotary() -> Recipe:
    """Not the paper's: biaffine spans that know how far apart their borders are."""
    return biaffine(partial(RotaryBiaffineSpans), "biaffine-rotary", f"rotary positions in the baseline of {CITATION}")


def cnn() -> Recipe:
    """Not the paper's: convolutions over biaffine spans."""
    return biaffine(partial(ConvolvedSpans, around=partial(BiaffineSpans)), "biaffine-cnn", f"after {CNN_NER}")


def pooled_cnn() -> Recipe:
    """Not the paper's: convolutions over biaffine spans with rotary positions and pooled ones beside them."""
    pooled = partial(PooledSpans, views=("max",), dropout=0.2)
    spans = partial(ConvolvedSpans, around=partial(RotaryBiaffineSpans), beside=pooled)
    return biaffine(spans, "biaffine-pooled-cnn", f"our own, biaffine and pooled spans together, after {CNN_NER}")


def proposals(of: Callable[[], Recipe], name: str) -> Recipe:
    """The best spans of any width instead of the grid."""
    return replace(with_proposals(of()), name=f"deep_span/{name}")


# as published: widest span in pieces, epochs, learning rate of both towers, batch size; are inputs whole documents
PAPER: dict[str, tuple[int, int, float, int, bool]] = {
    "ace04": (25, 50, 2e-5, 48, False),
    "ace05": (25, 50, 2e-5, 48, False),
    "genia": (18, 30, 4e-5, 16, True),
    "kbp17": (16, 50, 2e-5, 48, True),
    "conll03": (10, 50, 2e-5, 48, True),
    "ontonotes": (16, 30, 2e-5, 16, True),
}


def paper(corpus: str = "ace04", spans: str = "") -> Recipe:
    """As published and run, with the settings of one corpus; `spans` names another kind of span vectors."""
    width, epochs, rate, batch, documents = PAPER[corpus]
    return replace(
        biaffine() if spans == "biaffine" else recipe(SPANS[spans]),
        name=f"deep_span/paper ({f'{spans}, ' if spans else ''}{corpus} settings)",
        encoder=partial(PretrainedEncoder, name="roberta-base", unit="piece", shapes=False, dropout=0.2),
        candidates=partial(Grid, within_words=True),
        max_width=width,
        segments=Segmenting(510, sentences="whole", context="document") if documents else Segmenting(510),
        train=TrainSettings(
            epochs=epochs,
            batch_size=batch,
            learning_rate=rate,
            factors=fresh(2e-3 / rate),
            warmup=0.2,  # the paper's max(2, epochs // 5) epochs
            decay_bias=True,
            clip=5.0,
            budget=512 * batch,
        ),
    )


SPANS: dict[str, Part] = {
    "": DEEP,
    **{f"depth-{depth}": partial(DeepSpans, depth=depth) for depth in (1, 2, 4, 6, 8, 10, 12)},
    "init-mean": partial(DeepSpans, aggregation="mean"),
    "init-multiplicative": partial(DeepSpans, aggregation="multiplicative"),
    "init-additive": partial(DeepSpans, aggregation="additive"),
    "shallow-max": partial(PooledSpans, views=("max",)),
    "shallow-mean": partial(PooledSpans, views=("mean",)),
    "shallow-multiplicative": partial(AttentiveSpans, scoring="multiplicative"),
    "shallow-additive": partial(AttentiveSpans, scoring="additive"),
}


def with_others(name: str, spans: Part) -> dict[str, Callable[[], Recipe]]:
    """One kind of span vectors without the BiLSTM, and with proposals."""
    plain, listed = f"{name}-no-bilstm".lstrip("-"), f"{name}-proposals".lstrip("-")
    bare = partial(recipe, spans, plain, bilstm=False)
    return {plain: bare, listed: partial(proposals, bare, listed)}


variants: dict[str, Callable[[], Recipe]] = {
    **{name: partial(recipe, spans, name) for name, spans in SPANS.items()},
    **{key: made for name in ("", "depth-2", "shallow-max") for key, made in with_others(name, SPANS[name]).items()},
    "share-weights": partial(recipe, partial(DeepSpans, share_weights=True), "share-weights", share_weights=True),
    "no-smoothing": partial(recipe, DEEP, "no-smoothing", smoothing=0.0),
    "biaffine": biaffine,
    "biaffine-rotary": rotary,
    "biaffine-cnn": cnn,
    "biaffine-pooled-cnn": pooled_cnn,
    "biaffine-proposals": partial(proposals, biaffine, "biaffine-proposals"),
    "paper": paper,
    **{f"paper-{corpus}": partial(paper, corpus) for corpus in PAPER},
    **{f"paper-{name}": partial(paper, spans=name) for name in SPANS if name.startswith(("depth", "shallow"))},
    "paper-biaffine": partial(paper, spans="biaffine"),
}

ranges: dict[str, Range] = {
    "train.learning_rate": Times(0.2, 5.0),
    "train.batch_size": OneOf((16, 32, 48)),
    "terms.spans.objective.smoothing": Between(0.0, 0.3),
    "head.dropout": Between(0.0, 0.5),
    "head.input_dropout": Between(0.0, 0.5),
}
