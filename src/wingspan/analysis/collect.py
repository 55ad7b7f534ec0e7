"""From a trained model and gold documents to collected rows: spans are chosen first, then represented in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wingspan.analysis.choosing import Chosen, choose_spans
from wingspan.analysis.collected import Array, Collected
from wingspan.batch import narrowed, unit_ranges
from wingspan.candidates import Candidates, Grid
from wingspan.corpora.context import segment_rows
from wingspan.heads import Head
from wingspan.labels import LabelSet
from wingspan.model import Scorer, tensors
from wingspan.objectives.classification import Classification
from wingspan.recognizer import Recognizer
from wingspan.sampling import batches
from wingspan.text import Document, Sentence, Span

Latent = Callable[[Tensor], Tensor]
"""Span vectors to something of one's own, such as the posterior of a generator.  (N, S) -> (N, Z)"""

MOST_NUMBERS = 50_000_000  # kept in all; systems with very long vectors get fewer rows
LONGEST_TEXT = 100  # characters


class Picked(NamedTuple):
    """A sentence whose spans are collected."""

    number: int
    document: Document
    sentence: Sentence
    chosen: Chosen


class Values(NamedTuple):
    """What a model says about the chosen spans of a sentence, one row each."""

    chance: Array
    vector: Array
    feature: Array
    latent: Array


def collect(
    recognizer: Recognizer,
    documents: Sequence[Document],
    *,
    limit: int = 2000,
    neighbors: int = 2,
    negatives: int = 2,
    seed: int = 0,
    batch_size: int = 16,
    latent: Latent | None = None,
) -> Collected:
    """Rows about gold spans, up to `neighbors` for each kind of overlap around each, and `negatives` per sentence.

    Sentences are taken at random until there are `limit` gold entities: figures stay readable and files small.
    """
    scorer = scorer_of(recognizer)
    size = (scorer.spans.size + scorer.head.size) * (1 + 3 * neighbors + negatives)
    limit = min(limit, max(MOST_NUMBERS // size, 1))
    picked = pick(recognizer, documents, limit, neighbors, negatives, np.random.default_rng(seed))
    values: dict[int, Values] = {}
    lengths = [len(row.sentence.words) for row in picked]
    for batch in batches(lengths, batch_size, budget=recognizer.recipe.train.budget):
        found = represent(recognizer, [picked[at] for at in batch], latent)
        values.update(zip(batch, found, strict=True))
    return table(recognizer, picked, [values[at] for at in range(len(picked))])


def pick(
    recognizer: Recognizer,
    documents: Sequence[Document],
    limit: int,
    neighbors: int,
    negatives: int,
    random: np.random.Generator,
) -> list[Picked]:
    """Sentences at random and the spans chosen of each, in the order of the documents."""
    tokenize = recognizer.learner.model.encoder.tokenize
    widest = recognizer.recipe.max_width
    assert isinstance(widest, int), "a trained model's width is resolved"
    bounded = not scorer_of(recognizer).candidates.unlimited
    sentences = list(placed(recognizer, documents))
    picked: list[Picked] = []
    entities = 0
    for number in random.permutation(len(sentences)).tolist():
        if entities >= limit:
            break
        document, sentence = sentences[number]
        units = tokenize.measure(sentence.words) if tokenize.unit == "piece" else [1] * len(sentence.words)
        edges = np.concatenate([[0], np.cumsum(units)])

        def counts(span: Span, edges: Array = edges) -> bool:
            return not bounded or bool(edges[span.end] - edges[span.start] <= widest)

        def known(label: str, dataset: str = sentence.dataset) -> bool:
            return recognizer.labels.id(dataset, label) is not None

        chosen = choose_spans(sentence, counts, known, widest, neighbors=neighbors, negatives=negatives, random=random)
        entities += len(chosen.labels)
        picked.append(Picked(number, document, sentence, chosen))
    return sorted(picked, key=lambda row: row.number)


def placed(recognizer: Recognizer, documents: Sequence[Document]) -> Iterator[tuple[Document, Sentence]]:
    """The sentences as prediction makes them, each with its document."""
    measure = recognizer.learner.model.encoder.tokenize.measure
    rows = iter(documents)
    document = next(rows, None)
    for sentence in segment_rows(documents, recognizer.recipe.segments, measure, gold=False):
        if sentence is None:
            document = next(rows, None)
        else:
            assert document is not None
            yield document, sentence


@torch.inference_mode()
def represent(recognizer: Recognizer, picked: Sequence[Picked], latent: Latent | None) -> Iterator[Values]:
    """The chosen spans of each sentence of a batch."""
    arrays = recognizer.collate.inputs([row.sentence for row in picked])
    most = max([len(row.chosen.spans) for row in picked] + [1])
    start, end = np.zeros((2, len(picked), most), dtype=np.int64)
    end += 1  # padding is the first unit, and never read
    inside = narrowed(arrays)
    for row, (_, _, _, chosen) in enumerate(picked):
        first, past = unit_ranges(inside.words[row], int(inside.unit_mask[row].sum()))
        for column, span in enumerate(chosen.spans):
            start[row, column], end[row, column] = first[span.start], past[span.end - 1]
    inputs, words = recognizer.learner.model.encode(tensors(arrays, recognizer.device))
    begin, past_end = (torch.from_numpy(part).to(recognizer.device) for part in (start, end))
    scorer = scorer_of(recognizer)
    if scorer.spans.takes_lists:
        vectors = scorer.spans(words, Candidates(begin, past_end, past_end > begin, None))  # (B, M, S)
    else:
        widest = recognizer.recipe.max_width
        cells: Candidates = Grid(recognizer.learner.model.encoder, int(widest))(inputs, words)
        assert cells.width is not None
        dense = scorer.spans(words, cells)
        cell = begin * cells.width + past_end - begin - 1  # (B, M)
        vectors = dense.gather(1, cell.unsqueeze(-1).expand(-1, -1, dense.shape[-1]))
    scored = scorer.head(vectors)
    feature = scored.features if scored.features is not None else vectors
    extra = vectors[..., :0]
    if latent is not None:
        extra = latent(vectors.flatten(0, 1)).unflatten(0, vectors.shape[:2])
    chance = chances(recognizer, scored.scores, inputs.dataset)
    parts = [part.float().cpu().numpy() for part in (chance, vectors, feature, extra)]
    for row, (_, _, _, chosen) in enumerate(picked):
        yield Values(*(part[row, : len(chosen.spans)] for part in parts))


def chances(recognizer: Recognizer, scores: Tensor, dataset: Tensor) -> Tensor:
    """Chances of all classes in the eyes of each sentence's corpus, as they are before any calibration.

    Where labels are asked one by one, "nothing" has what the likeliest of them leaves; a model that types given spans
    never says it.
    """
    nothing = torch.tensor([name is None for name in recognizer.labels.names()], device=scores.device)
    if recognizer.recipe.protocol == "typing":
        return scores.float().masked_fill(nothing, -torch.inf).softmax(-1)
    terms = [term for term in recognizer.learner.objectives.values() if isinstance(term, Classification)]
    scores = terms[0].classes.read(scores.float(), dataset) if terms else scores
    if {term.link for term in terms} == {"sigmoid"}:
        chance = scores.float().sigmoid()
        rest = 1.0 - chance.masked_fill(nothing, 0.0).amax(-1, keepdim=True)
        return torch.where(nothing, rest, chance)
    return scores.float().softmax(-1)


def scorer_of(recognizer: Recognizer) -> Scorer:
    """Span vectors and their head."""
    scorer = recognizer.learner.model.scorer
    if scorer is None:
        raise ValueError(f"a {recognizer.recipe.name} model has no spans, so there is nothing to collect")
    return scorer


def templates_of(head: Head, num_classes: int) -> Array:
    """The weights of the layer that makes scores of features, one row for each class.  (C, F)"""
    layers = [part for part in head.modules() if isinstance(part, nn.Linear)]
    fitting = [part for part in layers if (part.in_features, part.out_features) == (head.size, num_classes)]
    if not fitting:
        return np.zeros((0, 0), dtype=np.float32)
    weight: Array = fitting[-1].weight.detach().float().cpu().numpy()
    return weight


def table(recognizer: Recognizer, picked: Sequence[Picked], values: Sequence[Values]) -> Collected:
    """All rows: for each sentence its gold, one row for each label of a span, then the other spans."""
    columns: dict[str, list[object]] = {name: [] for name in COLUMNS}
    kept: list[tuple[int, int]] = []  # sentence and span of each row
    pairs: list[tuple[int, int]] = []
    for at, (number, document, sentence, chosen) in enumerate(picked):
        nothing = recognizer.labels.nothing(sentence.dataset)
        named = {place for place, _ in chosen.labels}
        ids = [(place, recognizer.labels.id(sentence.dataset, label)) for place, label in chosen.labels]
        row_of: dict[int, int] = {}
        for place, gold in [*ids, *((place, nothing) for place in range(len(chosen.spans)) if place not in named)]:
            row_of.setdefault(place, len(kept))
            span = chosen.spans[place]
            start, end = sentence.characters(span)
            text = document.text[start:end]
            text = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
            row = (document.id, sentence.dataset, number, start, end, *span, text, gold, place in chosen.sampled)
            for name, value in zip(COLUMNS, row, strict=True):
                columns[name].append(value)
            kept.append((at, place))
        pairs += [(row_of[entity], row_of[neighbor]) for entity, neighbor in chosen.pairs]
    names = tuple(name or "" for name in recognizer.labels.names())
    scorer = scorer_of(recognizer)
    empty = Values(*(np.zeros((0, n), np.float32) for n in (len(names), scorer.spans.size, scorer.head.size, 0)))
    arrays: dict[str, Any] = {
        **{name: np.array(columns[name], dtype=kind) for name, kind in COLUMNS.items()},
        **{
            name: np.stack([getattr(values[at], name)[place] for at, place in kept]) if kept else getattr(empty, name)
            for name in Values._fields
        },
        **meanings_of(recognizer.labels),
    }
    return Collected(
        system=recognizer.recipe.name,
        classes=names,
        left_out=sum(len(set(row.sentence.entities)) - len(row.chosen.labels) for row in picked),
        templates=templates_of(scorer.head, len(names)),
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        **arrays,
    )


def meanings_of(labels: LabelSet) -> dict[str, tuple[str, ...]]:
    """Whose each class is and what it means to the target, where there are several corpora."""
    if len(labels.types) < 2:
        return {}
    target = ("", *labels.types[labels.target])
    return {
        "corpora": tuple(corpus for corpus, _ in labels.meanings()),
        "meanings": tuple("" if place is None else target[place] for place in labels.target_classes()),
    }


COLUMNS: dict[str, type] = {
    "document": np.str_,
    "dataset": np.str_,
    "sentence": np.int64,
    "start": np.int64,
    "end": np.int64,
    "word_start": np.int64,
    "word_end": np.int64,
    "text": np.str_,
    "gold": np.int64,
    "sampled": np.bool_,
}
