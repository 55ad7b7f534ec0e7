"""Ji, Yang, Li, Yu, Ma, Liu: a sequence tagger and a span classifier trained together (Ji et al. 2022).

SeqNER tags words, SpanNER classifies spans, BL trains both with losses alpha and 1 - alpha (eq. 19), reads either.

The default differs from `paper`, for small encoders: all spans instead of 100 sampled ones, one hidden layer in the
head, fresh parameters learn faster than pretrained ones, word shapes for uncased tokenizers. Dropout, rate, batches and
epochs were chosen on the dev sets of NCBI-disease, WNUT17 and GENIA. Types start rare, for trainings of a few hundred
steps.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from wingspan.candidates import Grid, Sampled
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.objectives.classification import Classification
from wingspan.objectives.tagging import Tagging
from wingspan.recipe import Between, OneOf, Part, Range, Recipe, Term, Times, TrainSettings, bundle, with_proposals
from wingspan.spans.contextual import ConvolvedSpans
from wingspan.spans.pooled import PooledSpans

CITATION = "Ji et al. 2022, Win-Win Cooperation: Bundling Sequence and Span Models for NER, arXiv 2207.03300"

# span vectors of eq. 13, 14 and 15; the width embedding belongs to all three
BOUNDARY: Part = partial(PooledSpans, views=("first", "last"), width_size=25, dropout=0.2)
POOLING: Part = partial(PooledSpans, views=("max",), sentence=True, width_size=25, dropout=0.2)
HYBRID: Part = partial(PooledSpans, views=("first", "last", "max"), sentence=True, width_size=25, dropout=0.2)
# not the paper's: hybrid vectors that see the spans beside them
CONVOLVED: Part = partial(ConvolvedSpans, around=HYBRID)

RARE = 0.01  # the chance of each type before training; from even ones, hundreds of steps learn only that
FRESH = {"model.scorer": 10.0, "objectives": 10.0, "model.encoder.shapes": 10.0}
TRAIN = TrainSettings(epochs=15, batch_size=32, learning_rate=1.5e-4, factors=FRESH)


def span(vectors: Part = HYBRID) -> Recipe:
    """SpanNER: every span of the grid gets a type or none."""
    return Recipe(
        name="bundling/span",
        paper=CITATION,
        encoder=partial(PretrainedEncoder, name="minilm", pooling="max"),
        spans=vectors,
        head=partial(FeedForwardHead, hidden=(256,), dropout=0.2, start_chance=RARE),
        candidates=partial(Grid),
        terms={"spans": Term(partial(Classification))},
        train=TRAIN,
    )


def seq(crf: bool = False) -> Recipe:
    """SeqNER: every word gets a BIO tag."""
    return Recipe(
        name="bundling/seq",
        paper=CITATION,
        encoder=partial(PretrainedEncoder, name="minilm", pooling="max"),
        terms={"tags": Term(partial(Tagging, crf=crf))},
        read_with="tags",
        train=TRAIN,
    )


def bl_span(vectors: Part = HYBRID, crf: bool = False, alpha: float = 0.1) -> Recipe:
    """BL-SpanNER: trained together, read from the spans."""
    return replace(bundle(span(vectors), alpha, crf=crf), name="bundling/bl-span")


def bl_span_cnn() -> Recipe:
    """Not the paper's: BL-SpanNER with convolutions over its spans."""
    return replace(bl_span(CONVOLVED), name="bundling/bl-span-cnn", paper=f"convolutions over the spans of {CITATION}")


def bl_seq(vectors: Part = HYBRID, crf: bool = False, alpha: float = 0.1) -> Recipe:
    """BL-SeqNER: trained together, read from the tags."""
    return replace(bl_span(vectors, crf, alpha), name="bundling/bl-seq", read_with="tags")


def span_proposals(vectors: Part = HYBRID) -> Recipe:
    """SpanNER that looks at the best spans of any width."""
    return replace(with_proposals(span(vectors)), name="bundling/span-proposals")


# as published: widest span, batch size, encoder of each corpus
BERT_LARGE, SCI_BERT = "bert-large-cased", "allenai/scibert_scivocab_cased"
BIO_BERT = "monologg/biobert_v1.0_pubmed_pmc"
PAPER: dict[str, tuple[int, int, str]] = {
    "ontonotes": (10, 12, BERT_LARGE),
    "conll03": (5, 32, BERT_LARGE),
    "conllpp": (5, 32, BERT_LARGE),
    "conll04": (10, 2, BERT_LARGE),
    "ace04": (10, 8, BERT_LARGE),
    "ace05": (10, 8, BERT_LARGE),
    "bc5cdr": (7, 16, BIO_BERT),
    "ncbi": (7, 16, BIO_BERT),
    "scierc": (8, 12, SCI_BERT),
    "wnut16": (6, 32, BERT_LARGE),
    "wnut17": (6, 24, BERT_LARGE),
}


def paper(corpus: str = "conll03", read_with: str = "spans") -> Recipe:
    """BL as published: one learning rate, 20 epochs, 100 sampled negatives, flat decoding, a width per corpus."""
    width, batch, encoder = PAPER[corpus]
    system = "bl-span" if read_with == "spans" else "bl-seq"
    return replace(
        bl_span(),
        name=f"bundling/paper ({system}, {corpus} settings)",
        encoder=partial(PretrainedEncoder, name=encoder, pooling="max", shapes=False),
        spans=partial(PooledSpans, views=("first", "last", "max"), sentence=True, width_size=25),
        head=partial(FeedForwardHead, input_dropout=0.1),
        candidates=partial(Sampled, negatives=100),
        read_with=read_with,
        max_width=width,
        overlap="flat",
        train=TrainSettings(epochs=20, batch_size=batch, learning_rate=5e-5, warmup=0.1, weight_decay=0.01, clip=1.0),
    )


def paper_alone(read_with: str) -> Recipe:
    """SpanNER or SeqNER as published: one of the two losses, all else as in `paper`."""
    both = paper(read_with=read_with)
    parts: dict[str, Any] = {} if read_with == "spans" else {"spans": None, "head": None, "candidates": partial(Grid)}
    term = replace(both.terms[read_with], weight=1.0)
    return replace(both, name=both.name.replace("bl-", ""), terms={read_with: term}, **parts)


variants: dict[str, Callable[[], Recipe]] = {
    "": bl_span,
    "seq": seq,
    "seq-crf": partial(seq, crf=True),
    "span": span,
    "span-boundary": partial(span, BOUNDARY),
    "span-pooling": partial(span, POOLING),
    "span-proposals": span_proposals,
    "bl-seq": bl_seq,
    "bl-seq-crf": partial(bl_seq, crf=True),
    "bl-span": bl_span,
    "bl-span-crf": partial(bl_span, crf=True),
    "bl-span-boundary": partial(bl_span, BOUNDARY),
    "bl-span-pooling": partial(bl_span, POOLING),
    "bl-span-cnn": bl_span_cnn,
    "paper": paper,
    "paper-seq": partial(paper, read_with="tags"),
    "paper-span-alone": partial(paper_alone, "spans"),
    "paper-seq-alone": partial(paper_alone, "tags"),
    **{f"paper-{corpus}": partial(paper, corpus) for corpus in PAPER},
}

ranges: dict[str, Range] = {
    "train.learning_rate": Times(0.2, 5.0),
    "train.batch_size": OneOf((16, 32, 48)),
    "terms.tags.weight": Between(0.05, 0.5),
    "encoder.word_dropout": Between(0.0, 0.3),
    "spans.dropout": Between(0.0, 0.5),
    "head.dropout": Between(0.0, 0.5),
}
