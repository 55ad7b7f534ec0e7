"""Models that see the document around a sentence: they find what its own words hold, in training and prediction."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from tiny import ENCODER, LABELS, gold_of, grid_of, of_length, vectors, word_inputs

import wingspan
from trainings import alike, dev_documents, entities, run_of, tiny, train_documents, untrained
from wingspan.batch import narrowed
from wingspan.candidates import Grid
from wingspan.candidates.proposed import Proposed
from wingspan.corpora.formats import write
from wingspan.corpora.segment import Segmenting, place
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.model import tensors
from wingspan.objectives.classification import neighbors, smoothed
from wingspan.recipe import assemble, with_proposals
from wingspan.recipe_json import override
from wingspan.recipes import find
from wingspan.recognizer import ON_CPU
from wingspan.spans.deep import DeepSpans
from wingspan.spans.pooled import PooledSpans
from wingspan.text import Document, Entity
from wingspan.training.loop import collator

DOCUMENT = Segmenting(max_length=32, overlap=4, context="document")
RECIPES = ["baseline", "baseline/proposals", "bundling/bl-span"]


def rows(number: int = 6, group: str | None = "article") -> list[Document]:
    """Sentences of a document, one per row."""
    words = ["a", "gene", "in", "the", "cell", ".", "drugs", "drug", "-", "gene"]
    return [
        Document.from_words(
            f"row-{at}", tuple(words[at % 5 :] + words[: at % 3]), (Entity.at("Gene", 1, 2),), group=group
        )
        for at in range(number)
    ]


def reads_context(bert, **changes) -> wingspan.Recognizer:
    """An untrained model whose encoder sees all of its input."""
    encoder = partial(PretrainedEncoder, name=str(bert), max_length=40)
    return untrained("baseline", encoder=encoder, segments=DOCUMENT, **changes)


@pytest.mark.parametrize("policy", [Grid, partial(Grid, within_words=True)])
def test_only_spans_of_the_sentence_itself_are_candidates(policy):
    sentence = replace(of_length(9, ("Drug", 3, 5)), core=(3, 6), reach=(3, 6))
    inputs = word_inputs([sentence])
    for gold in (None, gold_of([sentence], inputs)):
        cells = policy(None, 4)(inputs, None, gold)
        spans = {(int(s), int(e)) for s, e, m in zip(*(part[0] for part in cells[:3]), strict=True) if m}
        assert spans == {(3, 4), (3, 5), (3, 6), (4, 5), (4, 6), (5, 6)}


def test_smoothing_gives_nothing_to_spans_beyond_the_sentence():
    """As without context: the mass of what cannot be stays with the entity."""
    alone = [of_length(3, ("Drug", 0, 1))]
    among = [replace(of_length(9, ("Drug", 3, 4)), core=(3, 6), reach=(3, 6))]
    found = []
    for sentences in (alone, among):
        inputs = word_inputs(sentences)
        cells = grid_of(inputs, 3)
        shares = smoothed(cells, gold_of(sentences, inputs), inputs, 0.1, neighbors(1))[0, :, 0]
        found.append(shares[cells.mask[0]])
    assert torch.allclose(found[0], found[1])
    assert found[0].tolist() == pytest.approx([0.975, 0.025, 0, 0, 0, 0])


def test_predictions_stay_the_same_where_there_is_nothing_around(folders):
    model = reads_context(folders["bert"])
    plain = wingspan.Recognizer(
        replace(model.recipe, segments=replace(DOCUMENT, context="sentence")), model.labels, model.learner, device="cpu"
    )
    alone = rows(group=None)
    assert any(document.entities for document in model.predict(alone))
    assert entities(model.predict(alone)) == entities(plain.predict(alone))
    assert entities(model.predict(rows())) != entities(plain.predict(rows()))  # and the context is seen


def test_entities_lie_in_their_own_row_and_only_there(folders):
    model = reads_context(folders["bert"])
    given = rows()
    found = model.predict(given, threshold=0.0)
    assert [document.id for document in found] == [document.id for document in given]
    for document in found:
        assert document.words is not None
        borders = {word.start for word in document.words}, {word.end for word in document.words}
        assert document.entities
        assert all(e.start in borders[0] and e.end in borders[1] for e in document.entities)
    by_row = [
        {e.spans for e in place(sentence, sentence_found)}
        for sentence in model.segment(given)
        for sentence_found in model.predict_batch([sentence], threshold=0.0)
    ]
    assert [{e.spans for e in document.entities} for document in found] == by_row


@pytest.mark.parametrize("batch_size", [1, 4])
def test_a_stream_of_rows_is_read_as_the_list_is(folders, batch_size, monkeypatch):
    monkeypatch.setattr(
        "wingspan.recognizer.ON_CPU", ON_CPU._replace(sentences=3)
    )  # pools that end in the middle of a document
    model = reads_context(folders["bert"])
    mixed = [*rows(5, "a"), Document("empty", "", group="a"), *rows(3, "a"), *rows(2, None), *rows(4, "b")]
    streamed = list(model.predict_stream(iter(mixed), batch_size=batch_size))
    monkeypatch.undo()
    assert alike(streamed, model.predict(mixed))
    assert [document.id for document in streamed] == [document.id for document in mixed]


def test_sentences_of_one_document_see_each_other(folders):
    model = reads_context(folders["bert"])
    text = "The gene in a cell. A drug in the cell."
    (together,) = model.predict(text)
    alone = replace(model.recipe, segments=replace(DOCUMENT, context="sentence"))
    (apart,) = wingspan.Recognizer(alone, model.labels, model.learner, device="cpu").predict(text)
    assert entities([together]) != entities([apart])
    assert all(not (e.start < 19 <= e.end - 1) for e in model.predict(text, threshold=0.0)[0].entities)


@pytest.mark.parametrize("name", [*RECIPES, "bundling/bl-seq", "deep_span/depth-2"])
def test_gold_is_trained_on_once_and_models_survive_saving(name, folders, tmp_path):
    recipe = override(tiny(name, folders["bert"]), "segments.context", "document")
    documents = train_documents(3)
    run = run_of(recipe, documents=documents)
    plain = run_of(tiny(name, folders["bert"]), documents=documents)
    assert [len(s.entities) for s in run.data.sentences] == [len(s.entities) for s in plain.data.sentences]
    assert max(len(s.words) for s in run.data.sentences) > max(len(s.words) for s in plain.data.sentences)
    model = wingspan.train(recipe, train=documents, output=tmp_path / "model", device="cpu")
    again = wingspan.load(tmp_path / "model", device="cpu")
    assert again.recipe.segments.context == "document"
    found = model.predict(dev_documents(1), threshold=0.0)
    assert any(document.entities for document in found)
    assert alike(found, again.predict(dev_documents(1), threshold=0.0), 1e-6)


def test_shell_setting_and_files(folders, tmp_path):
    """Rows of a file with one `doc_id` are one document from the file to the prediction."""
    write(rows(), tmp_path / "rows.jsonl")
    read = list(wingspan.corpora.read(tmp_path / "rows.jsonl"))
    assert {document.group for document in read} == {"article"}
    model = reads_context(folders["bert"])
    assert entities(model.predict(read)) == entities(model.predict(rows()))
    with pytest.raises(ValueError, match="context"):
        override(find("baseline"), "segments.context", "paragraph")


def test_scope_counts_what_the_encoder_counts():
    recipe = replace(find("deep_span"), max_width=7)
    assert recipe.scope == "spans up to 7 words"
    assert override(recipe, "encoder.unit", "piece").scope == "spans up to 7 pieces"
    assert replace(find("baseline"), max_width=3).scope == "spans up to 3 words"


CHANGES = {
    "pooled": {},
    "with the sentence": {"spans": partial(PooledSpans, views=("first", "mean"), sentence=True, width_size=3)},
    "deep": {"spans": partial(DeepSpans, depth=2)},
    "pieces": {"encoder": partial(PretrainedEncoder, unit="piece")},
    "first pieces": {"encoder": partial(PretrainedEncoder, pooling="first")},
    "proposed": {},
}


@pytest.mark.parametrize("kind", CHANGES)
def test_context_costs_no_spans_and_changes_no_score(kind, folders):
    """Units that are only context are left out behind the encoder; every score is that of the whole window's grid."""
    recipe = replace(untrained().recipe, **{"encoder": partial(PretrainedEncoder), **CHANGES[kind]}, segments=DOCUMENT)
    recipe = replace(recipe, encoder=partial(recipe.encoder, name=str(folders["bert"]), max_length=40))
    recipe = with_proposals(recipe) if kind == "proposed" else recipe
    torch.manual_seed(0)
    model = wingspan.Recognizer(recipe, LABELS, assemble(recipe, LABELS), device="cpu")
    sentences = list(model.segment(rows()))
    inputs = model.collate.inputs(sentences)
    widest = max(int(row.reach.end - row.reach.start) for row in sentences)
    assert inputs.near is not None
    assert inputs.unit_mask.shape[1] > narrowed(inputs).unit_mask.shape[1] >= widest
    with torch.inference_mode():
        narrow = model.learner.model(tensors(inputs, "cpu"))
        whole = model.learner.model(tensors(inputs._replace(near=None), "cpu"))
    assert narrow.scores.shape[1] < whole.scores.shape[1]
    shift = torch.from_numpy(inputs.reach[:, :1])
    assert cells_of(narrow, shift) == {key: pytest.approx(value, abs=1e-5) for key, value in cells_of(whole, 0).items()}


def cells_of(states, shift) -> dict:
    """The scores of each candidate that counts, by sentence, start and end."""
    start, end = states.candidates.start + shift, states.candidates.end + shift
    found = torch.nonzero(states.candidates.mask).tolist()
    return {(b, int(start[b, m]), int(end[b, m])): states.scores[b, m].tolist() for b, m in found}


@pytest.mark.parametrize("name", [*RECIPES, "bundling/seq", "compress_generate/supvib-spanreco"])
def test_losses_are_those_of_the_whole_window(name, folders):
    recipe = override(tiny(name, folders["bert"]), "segments.context", "document")
    run = run_of(replace(recipe, encoder=partial(recipe.encoder, dropout=0.0)), documents=rows())
    run.learner.eval()
    collate = collator(run.recipe, run.labels, run.learner)
    batch = tensors(collate(run.data.sentences), "cpu")
    near, gold = batch.inputs.near, batch.gold
    assert near is not None
    shift = batch.inputs.reach[:, :1]
    moved = gold._replace(start=gold.start + shift, end=gold.end + shift)
    terms = tuple(run.recipe.terms)

    arrays = collate.inputs(run.data.sentences)._replace(near=None)
    targets = {name: make(run.data.sentences, arrays) for name, make in collate.targets.items()}

    def losses(inputs, spans, targets) -> dict[str, float]:
        torch.manual_seed(0)  # a generator draws its latents
        found = run.learner(inputs, spans, dict(targets), terms)
        return {name: float(loss.detach()) for name, loss in found.items()}

    narrow = losses(batch.inputs, gold, batch.targets)
    whole = losses(batch.inputs._replace(near=None), moved, tensors(targets, "cpu"))
    for term in set(terms) - {"proposals"}:  # that one is a mean over words, and context would make it small
        assert narrow[term] == pytest.approx(whole[term], abs=1e-5)
        assert narrow[term] > 0


def test_windows_without_context_are_left_as_they_are():
    model = untrained()
    assert model.collate.inputs([of_length(5), of_length(3, core=(1, 2))]).near is None


def test_proposals_are_spent_on_the_sentence_itself():
    sentence = replace(of_length(9), core=(3, 6), reach=(3, 6))
    inputs = word_inputs([sentence])
    best = Proposed(ENCODER, 4, budget=2.0)(inputs, vectors(inputs))
    kept = best.mask[0]
    assert int(kept.sum()) == 6
    assert bool(((best.start[0][kept] >= 3) & (best.end[0][kept] <= 6)).all())
