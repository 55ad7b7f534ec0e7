"""From a trained model and gold documents to collected rows: spans are sampled first, then represented in one pass."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import safe_open
from torch import Tensor, nn

from wingspan.batch import batches, narrowed, unit_ranges
from wingspan.candidates import Candidates, Grid
from wingspan.corpora.segment import by_document, segment_rows, word_sizes
from wingspan.heads import Head
from wingspan.labels import LabelSet
from wingspan.model import Scorer, tensors
from wingspan.objectives.classification import Classification
from wingspan.objectives.conditional import ConditionalReconstruction
from wingspan.recipe import Recipe, made_by
from wingspan.recognizer import Recognizer
from wingspan.report.geometry import OVERLAPS, Array, Collected, overlap_kind, overlap_ratio
from wingspan.text import Document, Sentence, Span

Latent = Callable[[Tensor], Tensor]  # span vectors to others, such as a generator's posterior.  (N, S) -> (N, Z)

MOST_NUMBERS = 50_000_000  # kept in all; systems with very long vectors get fewer rows
LONGEST_TEXT = 100  # characters
BATCH_SIZE = 16


class SpanSample(NamedTuple):
    """The spans of a sentence that are collected, in words and without repetition."""

    spans: list[Span]
    labels: list[tuple[int, str]]  # which span has which gold label
    pairs: list[tuple[int, int]]  # an entity's span and its neighbor's
    sampled: list[int]  # which spans were drawn from all that are no entity


class SampledSentence(NamedTuple):
    """A sentence whose spans are collected; `number` counts all sentences of the documents."""

    number: int
    document: Document
    sentence: Sentence
    sample: SpanSample


def collect(
    recognizer: Recognizer,
    documents: Sequence[Document],
    *,
    limit: int = 2000,
    neighbors: int = 2,
    negatives: int = 2,
    seed: int = 0,
    latent: Latent | None = None,
) -> Collected:
    """Rows about gold spans, up to `neighbors` for each kind of overlap around each, and `negatives` per sentence.

    Sentences are taken at random until there are `limit` gold entities: figures stay readable and files small.
    """
    scorer, random = scorer_of(recognizer), np.random.default_rng(seed)
    tokenize = recognizer.learner.model.encoder.tokenize
    widest = recognizer.recipe.max_width
    assert isinstance(widest, int), "a trained model's width is resolved"
    size = (scorer.spans.size + scorer.head.size) * (1 + 3 * neighbors + negatives)
    limit = min(limit, max(MOST_NUMBERS // size, 1))
    rows = by_document(segment_rows(documents, recognizer.recipe.segments, tokenize.table, gold=False))
    # as prediction makes them
    segmented = [(document, sentence) for document, row in zip(documents, rows, strict=True) for sentence in row]
    sentences: list[SampledSentence] = []
    entities = 0
    for number in random.permutation(len(segmented)).tolist():
        if entities >= limit:
            break
        document, sentence = segmented[number]
        pieces = word_sizes(sentence) if tokenize.unit == "piece" else np.ones(len(sentence.words), dtype=np.int64)
        edges = np.concatenate([[0], pieces.cumsum()])

        def counts(span: Span, edges: Array = edges) -> bool:
            return scorer.candidates.unlimited or bool(edges[span.end] - edges[span.start] <= widest)

        def known(label: str, dataset: str = sentence.dataset) -> bool:
            return recognizer.labels.id(dataset, label) is not None

        sample = sample_spans(sentence, counts, known, widest, neighbors=neighbors, negatives=negatives, random=random)
        entities += len(sample.labels)
        sentences.append(SampledSentence(number, document, sentence, sample))
    sentences.sort(key=lambda each: each.number)  # in the order of the documents
    values: dict[int, dict[str, Array]] = {}
    lengths = [len(each.sentence.words) for each in sentences]
    for batch in batches(lengths, BATCH_SIZE, budget=recognizer.recipe.train.budget):
        values.update(zip(batch, represent(recognizer, [sentences[at] for at in batch], latent), strict=True))
    return as_rows(recognizer, sentences, values)


def sample_spans(
    sentence: Sentence,
    counts: Callable[[Span], bool],
    known: Callable[[str], bool],
    widest: int,
    *,
    neighbors: int,
    negatives: int,
    random: np.random.Generator,
) -> SpanSample:
    """Gold spans that count, up to `neighbors` of each kind of overlap around each, and `negatives` random ones.

    A neighbor is no entity, is not wider than `widest` words, and overlaps the entity or touches it. `counts` tells
    which spans a model can look at, `known` which labels it has.
    """
    gold = {(entity.spans[0], entity.label) for entity in sentence.entities if not entity.discontinuous}
    labels = sorted((span, label) for span, label in gold if known(label) and counts(span))
    all_spans = (
        Span(start, end)
        for start in range(*sentence.core)
        for end in range(start + 1, min(start + widest, sentence.reach.end) + 1)
    )
    entities = {span for span, _ in gold}
    others = [span for span in all_spans if span not in entities and counts(span)]
    at: dict[Span, int] = {}

    def place(span: Span) -> int:
        return at.setdefault(span, len(at))

    def draw(spans: Sequence[Span], number: int) -> list[int]:
        if len(spans) > number:
            spans = [spans[n] for n in sorted(random.choice(len(spans), number, replace=False).tolist())]
        return [place(span) for span in spans]

    labeled = [(place(span), label) for span, label in labels]
    sampled = draw(others, negatives)
    pairs = []
    for entity in sorted({span for span, _ in labels}):
        near = [span for span in others if span.start <= entity.end and span.end >= entity.start]
        for kind in OVERLAPS:
            alike = [span for span in near if overlap_kind(overlap_ratio(entity, span)) == kind]
            pairs += [(at[entity], neighbor) for neighbor in draw(alike, neighbors)]
    return SpanSample(list(at), labeled, pairs, sampled)


@torch.inference_mode()
def represent(
    recognizer: Recognizer, sentences: Sequence[SampledSentence], latent: Latent | None
) -> Iterator[dict[str, Array]]:
    """Chances, vectors, features and latents of the sampled spans of each sentence of a batch, one row each."""
    arrays = recognizer.collate.inputs([each.sentence for each in sentences])
    most = max([len(each.sample.spans) for each in sentences] + [1])
    start, end = np.zeros((2, len(sentences), most), dtype=np.int64)
    end += 1  # padding is the first unit, and never read
    inside = narrowed(arrays)
    for row, each in enumerate(sentences):
        first, past = unit_ranges(inside.words[row], int(inside.unit_mask[row].sum()))
        for column, span in enumerate(each.sample.spans):
            start[row, column], end[row, column] = first[span.start], past[span.end - 1]
    inputs, words = recognizer.learner.model.encode(tensors(arrays, recognizer.device))
    begin, past_end = (torch.from_numpy(part).to(recognizer.device) for part in (start, end))
    scorer = scorer_of(recognizer)
    if scorer.spans.takes_lists:
        vectors = scorer.spans(words, Candidates(begin, past_end, past_end > begin, None))  # (B, M, S)
    else:
        cells: Candidates = Grid(recognizer.learner.model.encoder, int(recognizer.recipe.max_width))(inputs, words)
        assert cells.width is not None
        dense = scorer.spans(words, cells)
        cell = begin * cells.width + past_end - begin - 1  # (B, M)
        vectors = dense.gather(1, cell.unsqueeze(-1).expand(-1, -1, dense.shape[-1]))
    scored = scorer.head(vectors)
    parts = {
        "chance": chances(recognizer, scored.scores, inputs.dataset),
        "vector": vectors,
        "feature": scored.features if scored.features is not None else vectors,
        "latent": latent(vectors.flatten(0, 1)).unflatten(0, vectors.shape[:2]) if latent else vectors[..., :0],
    }
    kept = {name: part.float().cpu().numpy() for name, part in parts.items()}
    for row, each in enumerate(sentences):
        yield {name: part[row, : len(each.sample.spans)] for name, part in kept.items()}


def chances(recognizer: Recognizer, scores: Tensor, dataset: Tensor) -> Tensor:
    """Chances of all classes in the eyes of each sentence's corpus, as they are before any calibration.

    With a sigmoid, "nothing" gets what the likeliest label leaves; a model that types given spans never predicts it.
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
    """The weights of the layer that turns features into scores, one row for each class.  (C, F)"""
    layers = [part for part in head.modules() if isinstance(part, nn.Linear)]
    fitting = [part for part in layers if (part.in_features, part.out_features) == (head.size, num_classes)]
    return np.asarray(fitting[-1].weight.detach().float().cpu()) if fitting else np.zeros((0, 0), dtype=np.float32)


COLUMNS = ("document", "dataset", "sentence", "start", "end", "word_start", "word_end", "text", "gold", "sampled")
COLUMN_TYPES = {"document": np.str_, "dataset": np.str_, "text": np.str_, "sampled": np.bool_}  # others are integers


def as_rows(
    recognizer: Recognizer, sentences: Sequence[SampledSentence], values: dict[int, dict[str, Array]]
) -> Collected:
    """All rows: for each sentence its gold, one row for each label of a span, then the other spans."""
    labels = recognizer.labels
    rows: list[tuple[object, ...]] = []
    places: list[tuple[int, int]] = []  # sentence and span of each row
    pairs: list[tuple[int, int]] = []
    for at, (number, document, sentence, sample) in enumerate(sentences):
        gold = [(place, labels.id(sentence.dataset, label)) for place, label in sample.labels]
        named = {place for place, _ in gold}
        nothing = labels.nothing(sentence.dataset)
        row_of: dict[int, int] = {}
        for place, label in [*gold, *((n, nothing) for n in range(len(sample.spans)) if n not in named)]:
            row_of.setdefault(place, len(rows))
            span = sample.spans[place]
            start, end = sentence.characters(span)
            text = document.text[start:end]
            text = text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
            sampled = place in sample.sampled
            rows.append((document.id, sentence.dataset, number, start, end, *span, text, label, sampled))
            places.append((at, place))
        pairs += [(row_of[entity], row_of[neighbor]) for entity, neighbor in sample.pairs]
    names = tuple(name or "" for name in labels.names())
    scorer = scorer_of(recognizer)
    sizes = {"chance": len(names), "vector": scorer.spans.size, "feature": scorer.head.size, "latent": 0}
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    arrays: dict[str, Any] = {}
    for name, column in zip(COLUMNS, columns, strict=True):
        arrays[name] = np.array(column, dtype=COLUMN_TYPES.get(name, np.int64))
    for name, size in sizes.items():
        vectors = [values[at][name][place] for at, place in places]
        arrays[name] = np.stack(vectors) if vectors else np.zeros((0, size), np.float32)
    if len(labels.types) > 1:
        target = ("", *labels.types[labels.target])
        arrays["corpora"] = tuple(corpus for corpus, _ in labels.meanings())
        arrays["meanings"] = tuple("" if place is None else target[place] for place in labels.target_classes())
    return Collected(
        system=recognizer.recipe.name,
        classes=names,
        left_out=sum(len(set(each.sentence.entities)) - len(each.sample.labels) for each in sentences),
        templates=templates_of(scorer.head, len(names)),
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        **arrays,
    )


class LabelRows(NamedTuple):
    """One row of a conditional autoencoder for each class.  See: Oi and Miwa 2025, Figure 3."""

    values: Array  # (C, K)
    names: tuple[str, ...]  # corpus and label
    meanings: tuple[str, ...]  # the target's label; "none" where there is no counterpart


def read_label_rows(run: str | Path, recipe: Recipe, labels: LabelSet) -> LabelRows | None:
    """The rows in a run's `state/` folder (a saved model has none); None if the recipe has none or it was not kept."""
    terms = [name for name, term in recipe.terms.items() if made_by(term.objective) is ConditionalReconstruction]
    kept = sorted((Path(run) / "state").glob("phase-*/learner.safetensors"))
    if not terms or not kept:
        return None
    with safe_open(str(kept[-1]), framework="numpy") as file:
        values: Array = file.get_tensor(f"objectives.{terms[0]}.rows")
    target = ("nothing", *labels.types[labels.target])
    names = tuple(f"{corpus}: {label or 'nothing'}" for corpus, label in labels.meanings())
    return LabelRows(values, names, tuple("none" if at is None else target[at] for at in labels.target_classes()))
