"""From documents and a recipe to all a training needs: labels, widths, sentences, coverage, weights to start from.

What is read off the data (auto width, auto overlap, window length) is fixed here, before parts are assembled, and
stored resolved in the model's recipe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from wingspan.corpora.coverage import Coverage, auto_overlap, auto_width, measure_coverage
from wingspan.corpora.fragments import arranged
from wingspan.corpora.segment import segment, segment_all
from wingspan.decoding import Overlap
from wingspan.encoders import Encoder
from wingspan.labels import LabelSet
from wingspan.layers.word_decoder import Synonyms
from wingspan.objectives import Objective
from wingspan.recipe import Learner, Recipe, assemble, expect, made_by
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Sentence
from wingspan.training.warm_start import adopt, both

LOOSER: tuple[Overlap, ...] = ("flat", "nested", "any")


@dataclass(frozen=True)
class Fitted:
    """A recipe without anything left open, and what training starts from."""

    recipe: Recipe
    labels: LabelSet
    learner: Learner
    sentences: tuple[Sentence, ...]
    coverage: Coverage
    studied: Mapping[str, Any] = field(default_factory=dict)
    """What objectives had to know of the data before they were built, by the names of their terms."""


def fit(
    recipe: Recipe,
    documents: Sequence[Document],
    dev: Sequence[Document] = (),
    *,
    seed: int = 0,
    start: Recognizer | None = None,
    lexicon: Synonyms | None = None,
    declared: LabelSet | None = None,
) -> Fitted:
    """Resolves what the recipe leaves to the data, and builds the parts.

    `start` is a model to go on from; `lexicon` has the synonyms for objectives that learn from them. Labels are those
    of the documents unless they are `declared`, which those of several corpora have to be.
    """
    labels = LabelSet.of(documents)
    if not any(labels.types.values()):
        raise ValueError(f"no entity in {len(documents)} training documents; there is nothing to learn")
    if len(labels.types) > 1 and declared is None:
        raise ValueError(
            f"the documents are of several datasets ({', '.join(labels.types)}); say in a corpora.toml what they are "
            "to each other, and give it with --corpora"
        )
    if start is not None and len(start.labels.types) > 1 and declared is None:
        raise ValueError(
            f"--from: this model is of several corpora ({', '.join(start.labels.types)}); say which of them the new "
            "documents are of in a corpora.toml, and give it with --corpora"
        )
    labels = declared or (labels if start is None else both(start.labels, labels))
    torch.manual_seed(seed)
    if start is not None:
        recipe = replace(recipe, encoder=start.recipe.encoder)
    recipe = with_names(recipe, labels, new=start is None)
    encoder = start.learner.model.encoder if start is not None else expect(recipe.encoder(), Encoder)
    learned, known = (tuple(arranged(part, recipe.joining.fragments)) for part in (documents, dev))
    recipe = resolve(recipe, encoder, [*learned, *known], start.recipe if start is not None else None)
    sentences = tuple(segment_all(learned, recipe.segments, encoder.tokenize.measure))
    if start is None:
        encoder.study(sentences, segment_all(dev, recipe.segments, encoder.tokenize.measure))
    studied = study(recipe, sentences, lexicon)
    learner = assemble(recipe, labels, encoder, studied)
    if start is not None:
        adopt(learner, labels, start)
    return Fitted(recipe, labels, learner, sentences, coverage_of(recipe, encoder, documents), studied)


def with_names(recipe: Recipe, labels: LabelSet, new: bool) -> Recipe:
    """Tells an encoder that has a token for each corpus which ones there are; one of an older model has its own."""
    part: Any = recipe.encoder
    settings: dict[str, Any] = dict(getattr(part, "keywords", {}))
    if settings.get("corpus_token") is None:
        return recipe
    names = (labels.target, *(name for name in labels.datasets if name != labels.target))
    if new:
        return replace(recipe, encoder=partial(part.func, **{**settings, "corpora": names}))
    unknown = [name for name in names if name not in settings["corpora"]]
    if unknown:
        raise ValueError(f"--from: this model has no token for the corpus {unknown[0]!r}; train a new one")
    return recipe


def study(recipe: Recipe, sentences: Sequence[Sentence], lexicon: Synonyms | None) -> dict[str, Any]:
    """What the objectives have to know of the data, by the names of their terms; only where there is something."""
    found = {}
    for name, term in recipe.terms.items():
        cls: type[Objective] = made_by(term.objective)
        known = cls.study(sentences, lexicon, getattr(term.objective, "keywords", {}))
        if known is not None:
            found[name] = known
    return found


def resolve(recipe: Recipe, encoder: Encoder, documents: Sequence[Document], start: Recipe | None = None) -> Recipe:
    """Width, overlap and window length as the data and the encoder have them; never less than `start` could find."""
    limit = min(recipe.segments.max_length, encoder.tokenize.max_length)
    segments = replace(recipe.segments, max_length=limit)
    sentences = [s for document in documents for s in segment(document, segments, encoder.tokenize.measure)]
    before = start.max_width if start is not None and isinstance(start.max_width, int) else 1
    units = encoder.tokenize.measure if encoder.tokenize.unit == "piece" else None
    width = max(auto_width(sentences, units=units), before) if recipe.max_width == "auto" else recipe.max_width
    overlap = recipe.overlap
    if overlap == "auto":
        needs = auto_overlap(sentences)
        overlap = max(needs, needs if start is None or start.overlap == "auto" else start.overlap, key=LOOSER.index)
    # a window holds its core and context on both sides, so context can take a quarter of it at most
    room = min(max(segments.overlap, width), max(1, limit // 4))
    return replace(recipe, max_width=width, overlap=overlap, segments=replace(segments, overlap=room))


def coverage_of(recipe: Recipe, encoder: Encoder, documents: Sequence[Document]) -> Coverage:
    """How many gold entities the resolved recipe can never find, and why."""
    tags, typing = recipe.read_with == "tags", recipe.protocol == "typing"
    assert recipe.overlap != "auto", "overlap is resolved before coverage is measured"
    coverage = measure_coverage(
        documents,
        recipe.segments,
        max_width=recipe.ceiling,
        measure=encoder.tokenize.measure,
        overlap="any" if typing else recipe.overlap,
        one_label_per_span=one_label(recipe) and not typing,
        discontinuous=typing or recipe.read_with == "links" or recipe.joining.gap != 0,
        tags=tags,
        pieces=encoder.tokenize.unit == "piece",
        gold=typing,
    )
    return replace(coverage, verb="typed") if typing else coverage


def one_label(recipe: Recipe) -> bool:
    """Whether a span can have one label only."""
    objective = recipe.terms[recipe.reader].objective
    settings: Mapping[str, object] = getattr(objective, "keywords", {})
    return recipe.reader == "spans" and settings.get("link", "softmax") == "softmax"
