"""From documents and a recipe to everything a training needs: labels, widths, sentences, coverage, initial weights.

Settings that depend on the data (auto width, auto overlap, window length) are resolved here, before parts are
assembled, and stored resolved in the model's recipe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, compress
from typing import Any, NamedTuple

import torch

from wingspan.corpora.conventions import Agreement, best_agreement
from wingspan.corpora.coverage import Census, Coverage, auto_overlap, auto_width
from wingspan.corpora.fragments import arranged
from wingspan.corpora.segment import by_document, segment_all, segment_rows
from wingspan.corpora.words import AUTO, SPLITTERS
from wingspan.decoding import Overlap
from wingspan.encoders import Encoder, Tokenize
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
    """A resolved recipe, and what training starts from."""

    recipe: Recipe
    labels: LabelSet
    learner: Learner
    sentences: tuple[Sentence, ...]
    coverage: Coverage
    studied: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the data that objectives were built with, by the names of their terms."""
    agreement: Agreement | None = None
    """How raw text will be cut, compared with the words that the documents give."""


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
    """Resolves the settings that depend on the data, and builds the parts.

    `start` is a model to go on from; `lexicon` has the synonyms for objectives that learn from them. Labels are read
    off the documents unless they are `declared`, which labels of several corpora have to be.
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
    before = start.recipe if start is not None else None
    recipe, agreement = with_splitter(recipe, documents, before)
    limit = min(recipe.segments.max_length, encoder.tokenize.max_length)
    recipe = replace(recipe, segments=replace(recipe.segments, max_length=limit))
    known = list(segment_all(as_learned(dev, recipe), recipe.segments, encoder.tokenize.table))
    cut = cut_documents(recipe, encoder, documents)
    resolved = settle_auto(recipe, encoder, [*cut.training, *known], before)
    if resolved.segments != recipe.segments:  # windows overlap by the widest entity, which was not known before
        cut = cut_documents(resolved, encoder, documents)
    recipe = resolved
    if start is None:
        encoder.study(cut.training, known)
    studied = {}  # facts about the data that objectives need, by the names of their terms
    for name, term in recipe.terms.items():
        cls: type[Objective] = made_by(term.objective)
        facts = cls.study(cut.training, lexicon, getattr(term.objective, "keywords", {}))
        if facts is not None:
            studied[name] = facts
    learner = assemble(recipe, labels, encoder, studied)
    if start is not None:
        adopt(learner, labels, start)
    coverage = count_coverage(cut.census, cut.prediction, recipe, encoder.tokenize)
    return Fitted(recipe, labels, learner, tuple(cut.training), coverage, studied, agreement)


def with_splitter(
    recipe: Recipe, documents: Sequence[Document], start: Recipe | None
) -> tuple[Recipe, Agreement | None]:
    """The splitter for raw text: that of the recipe or of the model `start`, or the one most like the given words."""
    chosen = start.segments.splitter if start is not None else recipe.segments.splitter
    names = [name for name in SPLITTERS if name != AUTO] if chosen == AUTO else [chosen]
    found = best_agreement(documents, {name: SPLITTERS[name] for name in names})
    splitter = found.splitter if found is not None else names[0]
    return replace(recipe, segments=replace(recipe.segments, splitter=splitter)), found


def as_learned(documents: Sequence[Document], recipe: Recipe) -> Sequence[Document]:
    """The documents with the entities that a model without links learns instead of discontinuous ones."""
    policy = recipe.joining.fragments
    return list(arranged(documents, policy)) if policy in ("split", "hull") else documents


class CutDocuments(NamedTuple):
    """The sentences of documents in training and in prediction, and what became of their entities in the latter."""

    training: list[Sentence]
    prediction: list[Sentence]
    census: Census


def cut_documents(recipe: Recipe, encoder: Encoder, documents: Sequence[Document]) -> CutDocuments:
    """Segments the documents once for both.

    In training no sentence end cuts an entity, in prediction it may. Where every entity of a document is exactly on
    words of one sentence in prediction, no end was in the way, and both have the same sentences.
    """
    tables, segments = encoder.tokenize.table, recipe.segments
    census = Census(segments, tables, gold=recipe.protocol == "typing")
    learned = as_learned(documents, recipe)
    predicted: list[list[Sentence]] = []  # of each document
    other: list[bool] = []  # whether training has other sentences
    rows = by_document(census.rows(documents))
    for document, arrangement in zip(documents, learned, strict=True):
        exact = census.outcomes["exact"]
        predicted.append(next(rows))
        other.append(arrangement is not document or census.outcomes["exact"] - exact < len(document.entities))
    prediction = list(chain.from_iterable(predicted))
    if segments.context == "document":
        return CutDocuments(list(segment_all(learned, segments, tables)), prediction, census)
    again = by_document(segment_rows(compress(learned, other), segments, tables))
    training = [
        sentence for same, cut in zip(predicted, other, strict=True) for sentence in (next(again) if cut else same)
    ]
    return CutDocuments(training, prediction, census)


def with_names(recipe: Recipe, labels: LabelSet, new: bool) -> Recipe:
    """Gives the names of the corpora to an encoder with a token for each; a model that is not `new` has its own."""
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


def settle_auto(recipe: Recipe, encoder: Encoder, sentences: Sequence[Sentence], start: Recipe | None = None) -> Recipe:
    """Width, overlap and context of windows for these sentences; never less than the model `start` could find."""
    before = start.max_width if start is not None and isinstance(start.max_width, int) else 1
    pieces = encoder.tokenize.unit == "piece"
    width = max(auto_width(sentences, pieces=pieces), before) if recipe.max_width == "auto" else recipe.max_width
    overlap = recipe.overlap
    if overlap == "auto":
        needs = auto_overlap(sentences)
        overlap = max(needs, needs if start is None or start.overlap == "auto" else start.overlap, key=LOOSER.index)
    # a window holds its core and context on both sides, so context can take a quarter of it at most
    room = min(max(recipe.segments.overlap, width), max(1, recipe.segments.max_length // 4))
    return replace(recipe, max_width=width, overlap=overlap, segments=replace(recipe.segments, overlap=room))


def coverage_of(recipe: Recipe, tokenize: Tokenize, documents: Sequence[Document]) -> Coverage:
    """The gold entities that the resolved recipe can never find, by reason."""
    census = Census(recipe.segments, tokenize.table, gold=recipe.protocol == "typing")
    return count_coverage(census, census.sentences(documents), recipe, tokenize)


def count_coverage(census: Census, sentences: Iterable[Sentence], recipe: Recipe, tokenize: Tokenize) -> Coverage:
    """The coverage of sentences that the census has made, within the limits of the recipe."""
    typing = recipe.protocol == "typing"
    assert recipe.overlap != "auto", "overlap is resolved before coverage is measured"
    coverage = census.coverage(
        sentences,
        max_width=recipe.ceiling,
        overlap="any" if typing else recipe.overlap,
        one_label_per_span=recipe.one_label and not typing,
        discontinuous=typing or recipe.read_with == "links" or recipe.joining.gap != 0,
        tags=recipe.read_with == "tags",
        pieces=tokenize.unit == "piece",
    )
    return replace(coverage, verb="typed") if typing else coverage
