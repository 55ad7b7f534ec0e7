"""Rows from a model: they say what the model says, and survive being saved."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
import torch

from trainings import HASHED, dev_documents, run_of, tiny, untrained
from wingspan.candidates.proposed import Proposed
from wingspan.corpora.segment import Segmenting
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.model import tensors
from wingspan.objectives.classification import Classification
from wingspan.recipe import Term, with_proposals
from wingspan.recognizer import Recognizer
from wingspan.report.collect import collect, templates_of
from wingspan.report.geometry import load_collected
from wingspan.spans.contextual import ContextualSpans
from wingspan.spans.pooled import PooledSpans
from wingspan.text import Document, Entity, Span

POOLED = partial(PooledSpans, views=("first", "last"), width_size=3)
KINDS = {
    "grid": {},
    "neighbors": {"spans": partial(ContextualSpans, around=POOLED, hidden_size=6)},
    "context": {"segments": Segmenting(max_length=40, overlap=4, context="document")},
    "linear": {"head": partial(FeedForwardHead)},
    "sigmoid": {"terms": {"spans": Term(partial(Classification, link="sigmoid"))}},
}


def documents() -> tuple[Document, ...]:
    """Generated documents with two labels of the five."""
    known = {"Drug", "Gene"}
    return tuple(
        replace(d, entities=tuple(e for e in d.entities if e.label in known), group="one") for d in dev_documents(3)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_rows_say_what_the_model_says(kind):
    """Chances of every row against the whole grid of its sentence, read the way prediction does."""
    model = untrained(**KINDS[kind])
    gold = documents()
    rows = collect(model, gold, negatives=3)
    sentences = list(model.segment(gold))
    with torch.inference_mode():
        for number in sorted(set(rows.sentence.tolist()))[:4]:
            states = model.learner.model(tensors(model.collate.inputs([sentences[number]])._replace(near=None), "cpu"))
            cells = {
                (int(s), int(e)): at
                for at, (s, e, m) in enumerate(zip(*(part[0] for part in states.candidates[:3]), strict=True))
                if m
            }
            for row in np.flatnonzero(rows.sentence == number):
                scores = states.scores[0, cells[rows.word_start[row], rows.word_end[row]]]
                expected = scores.softmax(-1).numpy()
                if kind == "sigmoid":
                    expected = scores.sigmoid().numpy()
                    expected[0] = 1 - expected[1:].max()
                assert rows.chance[row] == pytest.approx(expected, abs=1e-5)


def test_scores_are_linear_in_features():
    model = untrained()
    rows = collect(model, documents())
    bias = model.learner.model.scorer.head.layers[-1].bias.detach().numpy()
    scores = rows.feature @ rows.templates.T + bias
    chance = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert rows.chance == pytest.approx(chance, abs=1e-5)
    assert rows.vector.shape[1] == model.learner.model.scorer.spans.size
    assert rows.templates.shape == (3, model.learner.model.scorer.head.size)


def test_rows_have_their_place_and_class():
    gold = documents()
    rows = collect(untrained(), gold, negatives=3)
    by_id = {document.id: document for document in gold}
    entities = {(d.id, e.start, e.end, e.label) for d in gold for e in d.entities if not e.discontinuous}
    columns = (rows.document, rows.start, rows.end, rows.label)
    collected = set(zip(*(part[rows.entities].tolist() for part in columns), strict=True))
    assert collected <= entities
    assert len(collected) + rows.left_out == sum(len(document.entities) for document in gold)
    for name, start, end, text in zip(rows.document, rows.start, rows.end, rows.text, strict=True):
        assert by_id[name].text[start:end] == text
    assert not rows.entities[rows.pairs[:, 1]].any()
    assert rows.entities[rows.pairs[:, 0]].all()
    assert (rows.sentence[rows.pairs[:, 0]] == rows.sentence[rows.pairs[:, 1]]).all()
    assert not (rows.sampled & rows.entities).any()
    assert rows.sampled.any()
    columns = (rows.sentence, rows.word_start, rows.word_end, rows.gold)
    places = list(zip(*(part.tolist() for part in columns), strict=True))
    assert len(places) == len(set(places))


def test_too_wide_discontinuous_and_unknown_entities_are_counted():
    words = tuple(["a", "b", "c", "d", "e", "f", "g"])
    entities = (
        Entity.at("Drug", 0, 2),
        Entity.at("Drug", 0, 5),  # wider than 4
        Entity("Gene", (Span(0, 1), Span(3, 4))),
        Entity.at("Disease", 5, 6),
    )
    rows = collect(untrained(), [Document.from_words("d", words, entities)], neighbors=0, negatives=0)
    assert rows.left_out == 3
    assert rows.text.tolist() == ["a b"]
    assert rows.pairs.shape == (0, 2)


def test_spans_of_any_width_where_the_model_proposes_them():
    model = untrained()
    recipe = replace(with_proposals(model.recipe), encoder=HASHED)
    run = run_of(replace(recipe, max_width=2), documents=dev_documents(2))
    proposing = Recognizer(run.recipe, run.labels, run.learner, device="cpu")
    assert isinstance(proposing.learner.model.scorer.candidates, Proposed)
    rows = collect(proposing, dev_documents(2))
    widths = rows.word_end - rows.word_start
    assert widths[rows.entities].max() > 2
    assert widths[~rows.entities].max() == 2


def test_pieces_as_units(folders):
    model = untrained(encoder=partial(PretrainedEncoder, name=str(folders["bert"]), unit="piece", max_length=200))
    words = ("a", "drugs", "in", "drugxy", "genes", ".")  # 1, 2, 1, 2, 2, 1 pieces
    document = Document.from_words("d", words, (Entity.at("Drug", 3, 5), Entity.at("Gene", 1, 5)))
    rows = collect(model, [document], negatives=99, neighbors=99)
    sizes = np.array([0, 1, 3, 4, 6, 8, 9])
    assert rows.left_out == 1  # 7 pieces; the widest span has 4
    assert rows.text[rows.entities].tolist() == ["drugxy genes"]
    assert (sizes[rows.word_end] - sizes[rows.word_start]).max() == 4


def test_the_limit_takes_sentences_at_random_but_always_the_same():
    model, gold = untrained(), dev_documents(4)
    few, again, other = (collect(model, gold, limit=5, seed=seed) for seed in (0, 0, 1))
    assert 5 <= few.entities.sum() < collect(model, gold).entities.sum()
    assert few.text.tolist() == again.text.tolist() != other.text.tolist()
    assert (np.diff(few.sentence) >= 0).all()


def test_a_latent_of_ones_own():
    rows = collect(untrained(), documents(), latent=lambda vectors: vectors[..., :2] * 3)
    assert rows.latent == pytest.approx(rows.vector[:, :2] * 3)
    assert rows.of("latent").shape[1] == 2


def test_saved_and_loaded_rows_are_the_same(tmp_path):
    rows = collect(untrained(), documents())
    rows.save(tmp_path / "rows.npz")
    again = load_collected(tmp_path / "rows.npz")
    for field in fields(rows):
        assert np.array_equal(getattr(rows, field.name), getattr(again, field.name)), field.name
    assert isinstance(again.classes, tuple)


def test_damaged_and_foreign_files_are_said(tmp_path):
    (tmp_path / "bad.npz").write_bytes(b"")
    np.savez(tmp_path / "other.npz", chance=np.zeros(3))
    with pytest.raises(ValueError, match="not a file of collected rows, or damaged"):
        load_collected(tmp_path / "bad.npz")
    with pytest.raises(ValueError, match="no 'classes' in it"):
        load_collected(tmp_path / "other.npz")


def test_a_tagger_has_no_spans_to_collect():
    model = untrained("bundling/seq")
    with pytest.raises(ValueError, match="has no spans, so there is nothing to collect"):
        collect(model, dev_documents(1))


def test_documents_without_words_or_entities():
    rows = collect(untrained(), [Document("empty", ""), Document("plain", "nothing here")], negatives=1)
    assert len(rows.gold) == 1
    assert collect(untrained(), []).chance.shape == (0, 3)


def test_templates_are_the_layer_behind_the_features():
    head = FeedForwardHead(4, 3, hidden=(5,))
    assert templates_of(head, 3) == pytest.approx(head.layers[-1].weight.detach().numpy())
    assert templates_of(head, 7).shape == (0, 0)


def test_trained_models_can_be_collected_too():
    run = run_of(tiny("bundling/bl-span"), documents=dev_documents(2))
    rows = collect(Recognizer(run.recipe, run.labels, run.learner, device="cpu"), dev_documents(2))
    assert set(rows.label[rows.entities]) <= set(rows.classes) - {""}
