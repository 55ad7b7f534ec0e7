"""From a trained model and gold documents to collected rows: spans are chosen first, then represented in one pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple
from zipfile import BadZipFile

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn

from wingspan.batch import batches, narrowed, unit_ranges
from wingspan.candidates import Candidates, Grid
from wingspan.corpora.segment import segment_rows
from wingspan.heads import Head
from wingspan.labels import LabelSet
from wingspan.model import Scorer, tensors
from wingspan.objectives.classification import Classification
from wingspan.objectives.conditional import ConditionalReconstruction
from wingspan.recipe import Recipe, made_by
from wingspan.recognizer import Recognizer
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


# --- Rows about spans, collected once from a model; every table and figure about representations is made of them.
#
# One `.npz` file, read without unpickling. No torch here: what a table needs is in the arrays.


Array = np.ndarray[Any, np.dtype[Any]]
What = Literal["vector", "feature", "latent", "chance"]
"""What can be looked at: the span's vector, the features that scores are linear in, a latent, the class chances."""


@dataclass(frozen=True)
class Collected:
    """Gold spans, their neighbors that are no entities, and sampled spans that are none. N rows, C classes.

    Neighbors overlap an entity or touch it; `pairs` ties them to it. A span with two gold labels has two rows.
    """

    system: str
    """The recipe's name."""
    classes: tuple[str, ...]
    """The label of each class; empty for "nothing"."""
    left_out: int
    """Gold entities of the same sentences without a row: discontinuous, wider than the model looks at, or of a label
    it does not know."""
    document: Array  # (N,) ids
    dataset: Array  # (N,) names
    sentence: Array  # (N,) which input of the model a span is in
    start: Array  # (N,) in characters of the document, half-open
    end: Array  # (N,)
    word_start: Array  # (N,) in words of the input, half-open
    word_end: Array  # (N,)
    text: Array  # (N,) the span, long ones cut
    gold: Array  # (N,) class ids
    sampled: Array  # (N,) drawn at random from all spans that are no entity
    chance: Array  # (N, C)
    vector: Array  # (N, S) the span representation
    feature: Array  # (N, F) what scores are linear in: paper 003's pre-logit z; the mean of a bottleneck's Gaussian
    latent: Array  # (N, Z) what else was asked for; Z = 0 without
    templates: Array  # (C, F) the last layer's weights; (0, 0) where there is no such layer
    pairs: Array  # (P, 2) rows of an entity and of a neighbor
    corpora: tuple[str, ...] = ()
    """The corpus of each class, where a model has several."""
    meanings: tuple[str, ...] = ()
    """What each class is called in the target's labels, where a model has several corpora; empty for none of them."""

    @property
    def entities(self) -> Array:
        """Which rows are gold entities.  (N,)"""
        named = np.array([bool(name) for name in self.classes], dtype=bool)
        found: Array = named[self.gold]
        return found

    @property
    def guess(self) -> Array:
        """The likeliest class of each row.  (N,)"""
        best: Array = self.chance.argmax(1) if len(self.chance) else np.zeros(0, dtype=np.int64)
        return best

    @property
    def label(self) -> Array:
        """The gold label of each row; empty for spans that are no entity.  (N,)"""
        names: Array = np.array(self.classes, dtype=str)[self.gold]
        return names

    @property
    def meaning(self) -> Array:
        """The gold label of each row in the target's labels, where there are several corpora; else the label.  (N,)"""
        if not self.meanings:
            return self.label
        names = [meaning or name for meaning, name in zip(self.meanings, self.classes, strict=True)]
        found: Array = np.array(names, dtype=str)[self.gold]
        return found

    @property
    def class_names(self) -> list[str]:
        """What a figure calls each class: with its corpus where there are several."""
        names = [name or "nothing" for name in self.classes]
        if not self.corpora:
            return names
        return [f"{corpus}: {name}" if corpus else name for corpus, name in zip(self.corpora, names, strict=True)]

    def of(self, what: What) -> Array:
        """One of the arrays of vectors.  (N, .)"""
        values: Array = getattr(self, what)
        if not values.shape[1]:
            raise ValueError(f"these rows have no {what}; collect them with one, or look at the feature")
        return values

    def save(self, path: str | Path) -> None:
        """Writes one compressed `.npz`."""
        arrays: dict[str, Any] = {field.name: as_array(getattr(self, field.name)) for field in fields(self)}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, **arrays)


def as_array(value: Any) -> Array:
    """A value as it is kept; names are text even where there are none."""
    return np.array(value, dtype=str) if isinstance(value, tuple) else np.asarray(value)


def load_collected(path: str | Path) -> Collected:
    """What `Collected.save` wrote."""
    try:
        with np.load(path, allow_pickle=False) as file:
            needed = {field.name for field in fields(Collected) if field.default is MISSING}
            missing = sorted(needed - set(file.files))
            if missing:
                raise ValueError(f"{path}: no {missing[0]!r} in it; collect the rows again with this version")
            known = (field.name for field in fields(Collected) if field.name in file.files)
            arrays: dict[str, Any] = {name: file[name] for name in known}
    except (BadZipFile, EOFError) as error:
        raise ValueError(f"{path}: not a file of collected rows, or damaged; collect them again") from error
    arrays["system"] = str(arrays["system"])
    for name in ("classes", "corpora", "meanings"):
        arrays[name] = tuple(str(value) for value in arrays.get(name, ()))
    arrays["left_out"] = int(arrays["left_out"])
    return Collected(**arrays)


# --- Which spans of a sentence are collected: its gold, neighbors of each entity, and a sample of the others.


Overlap = Literal["none", "weak", "strong"]
OVERLAPS: tuple[Overlap, ...] = ("none", "weak", "strong")


class Chosen(NamedTuple):
    """Spans in words, without repetition, and what they are."""

    spans: list[Span]
    labels: list[tuple[int, str]]  # which span has which gold label
    pairs: list[tuple[int, int]]  # an entity's span and its neighbor's
    sampled: list[int]  # which spans were drawn from all that are no entity


def overlap_ratio(one: Span, other: Span) -> float:
    """The share of words that both spans hold, of those that either holds.  See: paper 003, section 5.1 (alpha)."""
    shared = max(0, min(one.end, other.end) - max(one.start, other.start))
    return shared / (one.width + other.width - shared)


def overlap_kind(ratio: float) -> Overlap:
    """None, weak (up to a half) or strong.  See: paper 003, section 5.1."""
    return "none" if ratio == 0 else "weak" if ratio <= 0.5 else "strong"


def choose_spans(
    sentence: Sentence,
    counts: Callable[[Span], bool],
    known: Callable[[str], bool],
    widest: int,
    *,
    neighbors: int,
    negatives: int,
    random: np.random.Generator,
) -> Chosen:
    """Gold spans that count, up to `neighbors` of each kind of overlap around each, and `negatives` random ones.

    A neighbor is no entity, is not wider than `widest` words, and overlaps the entity or touches it. Which
    spans a model can look at is for `counts` to say, which labels it knows for `known`.
    """
    gold = {entity.spans[0] for entity in sentence.entities if not entity.discontinuous}
    labels = sorted(
        {
            (entity.spans[0], entity.label)
            for entity in sentence.entities
            if not entity.discontinuous and known(entity.label) and counts(entity.spans[0])
        }
    )
    others = [span for span in spans_of(sentence, widest) if span not in gold and counts(span)]
    at: dict[Span, int] = {}

    def place(span: Span) -> int:
        return at.setdefault(span, len(at))

    labeled = [(place(span), label) for span, label in labels]
    sampled = [place(span) for span in draw(others, negatives, random)]
    pairs = []
    for entity in sorted({span for span, _ in labels}):
        near = [span for span in others if span.start <= entity.end and span.end >= entity.start]
        for kind in OVERLAPS:
            alike = [span for span in near if overlap_kind(overlap_ratio(entity, span)) == kind]
            pairs += [(at[entity], place(span)) for span in draw(alike, neighbors, random)]
    return Chosen(list(at), labeled, pairs, sampled)


def spans_of(sentence: Sentence, widest: int) -> list[Span]:
    """All spans that start in the core and end in the reach, up to a width in words."""
    return [
        Span(start, end)
        for start in range(*sentence.core)
        for end in range(start + 1, min(start + widest, sentence.reach.end) + 1)
    ]


def draw(spans: Sequence[Span], number: int, random: np.random.Generator) -> list[Span]:
    """So many of the spans at random, in their order; all where there are fewer."""
    if len(spans) <= number:
        return list(spans)
    return [spans[at] for at in sorted(random.choice(len(spans), number, replace=False).tolist())]


# --- The rows that a conditional autoencoder has for labels, from the state that training kept. See: paper 004,
# Figure 3.
#
# Prediction has no use for them, so that a saved model does not hold them; the run's `state/` folder does.


@dataclass(frozen=True)
class LabelRows:
    """One row for each class."""

    values: Array  # (C, K)
    names: tuple[str, ...]
    """Corpus and label."""
    meanings: tuple[str, ...]
    """The target's label; "none" where there is no counterpart."""


def read_label_rows(run: str | Path, recipe: Recipe, labels: LabelSet) -> LabelRows | None:
    """The rows at the end of a run's last phase; None where the recipe has none, or the state was not kept."""
    terms = [name for name, term in recipe.terms.items() if made_by(term.objective) is ConditionalReconstruction]
    kept = sorted((Path(run) / "state").glob("phase-*/learner.safetensors"))
    if not terms or not kept:
        return None
    with safe_open(str(kept[-1]), framework="numpy") as file:
        values: Array = file.get_tensor(f"objectives.{terms[0]}.rows")
    return rows_of(values, labels)


def rows_of(values: Array, labels: LabelSet) -> LabelRows:
    """Rows with the names of their classes."""
    target = ("nothing", *labels.types[labels.target])
    names = tuple(f"{corpus}: {label or 'nothing'}" for corpus, label in labels.meanings())
    return LabelRows(values, names, tuple("none" if at is None else target[at] for at in labels.target_classes()))
