"""`typed_spans`: every variant, and one test for each deviation of `paper` that systems.md names (section 2)."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from test_recipes import trained_and_back
from torch import nn

from trainings import alike, dev_documents, first_losses, run_of, train_documents
from wingspan.batch import Collate
from wingspan.candidates import Given, Sampled
from wingspan.encoders.static import StaticEncoder
from wingspan.labels import LabelSet
from wingspan.model import tensors
from wingspan.recipe import Recipe, bundle, made_by
from wingspan.recipes import find, variants
from wingspan.recipes.typed_spans import paper
from wingspan.text import Document, Entity, Span
from wingspan.training.fit import fit
from wingspan.training.loop import TrainingData, TrainingRun, accelerator_for, collator
from wingspan.training.loop import train as train_loop
from wingspan.training.run import prepare

PAPER = find("typed_spans/paper")
SIZE = {"encoder.size": 8, "spans.hidden_size": 12}


def small(name: str, **settings) -> Recipe:
    """A variant with small vectors and one epoch."""
    recipe = prepare(f"typed_spans/{name}" if name else "typed_spans", None, {**SIZE, "train.epochs": 1, **settings})
    return replace(recipe, train=replace(recipe.train, batch_size=4))


def words(number: str, text: str, *entities: Entity) -> Document:
    return Document.from_words(number, tuple(text.split()), entities)


CONTEXTS = (
    words("a", "the tall tower of London fell", Entity.at("LOC", 3, 5), Entity.at("FAC", 0, 3)),
    words("b", "of London", Entity.at("PER", 0, 2)),
    words("c", "in nothing of note"),
    words("d", "Mary saw London of old", Entity.at("PER", 0, 1), Entity.at("LOC", 2, 4)),
)


@pytest.mark.parametrize("name", variants("typed_spans"))
def test_every_variant_trains_and_survives_saving(name, tmp_path):
    again = trained_and_back(small(name), tmp_path / "model")
    wanted = "recognition" if name.startswith("recognize") else "typing"
    assert again.recipe.protocol == wanted


def test_it_can_be_bundled_with_tags(tmp_path):
    both = bundle(small(""), 0.1)
    assert trained_and_back(both, tmp_path / "spans").recipe.protocol == "typing"
    assert trained_and_back(replace(both, read_with="tags"), tmp_path / "tags").recipe.protocol == "recognition"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("typed_spans", [1.610751, 1.608929, 1.609773]),
        ("typed_spans/recognize", [1.788788, 1.785832, 1.783692]),
        ("typed_spans/paper", [53.136791, 53.095600, 64.377106]),
    ],
)
def test_golden_losses(name, expected):
    """Three batches from seed 1; a change here is a change of what is learned."""
    recipe = small(name.partition("/")[2])
    run = run_of(replace(recipe, train=replace(recipe.train, batch_size=16)))
    assert first_losses(run, 3) == pytest.approx(expected, rel=1e-4)


def fitted_to_contexts(name: str = "paper", **settings):
    fitted = fit(small(name, **settings), CONTEXTS, seed=1)
    fitted.learner.eval()
    return fitted


def scores_of(fitted, documents) -> list[torch.Tensor]:
    """The types' logits of the spans of each document."""
    batch = collator(fitted.recipe, fitted.labels, fitted.learner)
    arrays = batch([s for d in documents for s in fit_sentences(fitted, d)])
    inputs, gold = tensors(arrays.inputs, "cpu"), tensors(arrays.gold, "cpu")
    scores = fitted.learner.model(inputs, gold).scores
    return [row[mask][:, 1:] for row, mask in zip(scores, gold.mask, strict=True)]


def fit_sentences(fitted, document):
    from wingspan.corpora.segment import segment

    return segment(document, fitted.recipe.segments, fitted.learner.model.encoder.tokenize.table)


@pytest.mark.parametrize("name", ["paper", "", "frozen"])
def test_no_word_outside_a_span_is_seen(name):
    """2.B: the same span has the same logits in two sentences, so the same words always have the same type."""
    (_, here), (there,), *_ = scores_of(fitted_to_contexts(name), CONTEXTS)
    torch.testing.assert_close(here, there, rtol=0, atol=1e-6)


def test_in_context_the_same_words_may_differ():
    (_, here), (there,), *_ = scores_of(fitted_to_contexts("in-context"), CONTEXTS)
    assert not torch.allclose(here, there, atol=1e-4)


def test_the_order_inside_a_span_counts():
    """2.I: "of London" and "London of" differ."""
    _, (of_london,), _, (_, london_of) = scores_of(fitted_to_contexts(), CONTEXTS)
    assert not torch.allclose(of_london, london_of, atol=1e-4)


def test_sizes_of_the_paper():
    """2.B: frozen vectors of 300, 200 states for each direction, a linear layer, no dropout anywhere."""
    recipe = replace(PAPER, train=replace(PAPER.train, epochs=1))
    learner = fit(recipe, CONTEXTS, seed=1).learner
    assert learner.model.encoder.size == 300
    assert learner.model.scorer.spans.size == 400
    assert learner.model.scorer.spans.recurrent.forwards.hidden_size == 200
    assert [(layer.in_features, layer.out_features) for layer in learner.model.scorer.head.layers] == [(400, 4)]
    assert all(part.p == 0 for part in learner.modules() if isinstance(part, nn.Dropout))
    assert not any(parameter.requires_grad for parameter in learner.model.encoder.parameters())


def test_there_is_no_class_for_no_entity():
    """2.B: the softmax is over the three types; what the head says of "nothing" changes no loss and no gradient."""
    fitted = fitted_to_contexts()
    layer = fitted.learner.model.scorer.head.layers[-1]
    losses = []
    for bias in (0.0, 50.0):
        with torch.no_grad():
            layer.bias[0] = bias
        losses.append(summed_loss(fitted))
    assert float(losses[0].detach()) == float(losses[1].detach())
    losses[1].backward()
    assert not layer.bias.grad[0]
    assert not layer.weight.grad[0].any()


def summed_loss(fitted) -> torch.Tensor:
    """The sum of the cross entropies of all gold spans, one sentence after the other, as the paper's code adds it."""
    collate = Collate(fitted.learner.model.encoder.tokenize, fitted.labels, {"spans": lambda *_: None})
    total = torch.zeros(())
    for document in CONTEXTS:
        for sentence in fit_sentences(fitted, document):
            batch = collate([sentence])
            inputs, gold = tensors(batch.inputs, "cpu"), tensors(batch.gold, "cpu")
            total = total + fitted.learner(inputs, gold, {"spans": None}, ("spans",))["loss"]
    return total


def test_all_gradients_of_an_epoch_make_one_step_of_adam():
    """2.B: "batch size 1" of the paper is full-batch Adam with rate 1e-3 on the sum of the losses."""
    plain = fitted_to_contexts()
    trained = [parameter for parameter in plain.learner.parameters() if parameter.requires_grad]
    adam = torch.optim.Adam(trained, lr=1e-3)
    for _ in range(3):
        adam.zero_grad()
        summed_loss(plain).backward()
        adam.step()
    ours = fit(small("paper", **{"train.epochs": 3}), CONTEXTS, seed=1)
    recipe = replace(ours.recipe, train=replace(ours.recipe.train, batch_size=2))  # two batches share the step
    run = TrainingRun(recipe, ours.labels, ours.learner, TrainingData(ours.sentences), seed=1)
    steps = [progress.position.total for progress in train_loop(run, accelerator_for("no", "cpu", None, None))]
    assert steps == [1, 2, 3]
    for name, value in plain.learner.state_dict().items():
        torch.testing.assert_close(ours.learner.state_dict()[name].cpu(), value, rtol=0, atol=2e-6, msg=name)


def test_how_long_and_how_fast():
    """2.B and 2.C: 600 steps in 600 epochs, 1,500 for NEREL; one constant rate, no decay, no clipping."""
    settings = PAPER.train
    assert (settings.epochs, settings.accumulate) == (600, "epoch")
    assert find("typed_spans/paper-nerel").train.epochs == 1500
    assert (settings.learning_rate, settings.schedule, settings.warmup) == (1e-3, "constant", 0.0)
    assert (settings.weight_decay, settings.clip, settings.adam_eps) == (0.0, 0.0, 1e-8)


def test_sentences_without_entities_teach_nothing():
    """2.E: the paper removes them."""
    fitted = fitted_to_contexts()
    everything = summed_loss(fitted)
    without = [document for document in CONTEXTS if document.entities]
    assert len(without) == len(CONTEXTS) - 1
    batch = collator(fitted.recipe, fitted.labels, fitted.learner)(
        [s for d in without for s in fit_sentences(fitted, d)]
    )
    inputs, gold = tensors(batch.inputs, "cpu"), tensors(batch.gold, "cpu")
    loss = fitted.learner(inputs, gold, {"spans": None}, ("spans",))["loss"]
    assert float(loss.detach()) == pytest.approx(float(everything.detach()), rel=1e-6)


def test_unknown_words_share_one_vector():
    """2.B: they get that of <unk>."""
    fitted = fitted_to_contexts()
    (one,), (other,) = scores_of(
        fitted, [words("x", "Xyzzy", Entity.at("PER", 0, 1)), words("y", "plugh", Entity.at("PER", 0, 1))]
    )
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_only_gold_spans_are_looked_at_of_any_width():
    """2.B: whatever their width, and no other ones."""
    long = words("l", " ".join(f"w{n}" for n in range(40)), Entity.at("PER", 0, 40))
    fitted = fit(small("paper", max_width=1), [*CONTEXTS, long], seed=1)
    assert made_by(fitted.recipe.candidates) is Given
    assert fitted.recipe.ceiling is None
    assert scores_of(fitted, [long])[0].shape == (1, 3)


def test_discontinuous_entities_have_no_part_in_training():
    """2.E: the code reads contiguous entities only in training; fragments are typed one by one afterwards."""
    parted = words("p", "Mary and old London", Entity("LOC", (Span(0, 1), Span(3, 4))))
    more = [*CONTEXTS, parted]
    published, plain, ours = fit(small("paper"), more, seed=1), fit(small("paper"), CONTEXTS), fit(small(""), more)
    spans = [collator(f.recipe, f.labels, f.learner)(f.sentences).gold.mask.sum() for f in (published, plain, ours)]
    assert spans == [5, 5, 7]  # the default learns from both fragments


def test_negatives_of_the_recognizers():
    assert find("typed_spans/recognize-sampled").candidates.keywords == {"negatives": 100}
    assert made_by(find("typed_spans/recognize-sampled").candidates) is Sampled
    assert find("typed_spans/recognize").encoder.keywords == find("typed_spans").encoder.keywords
    assert find("typed_spans/recognize").spans.keywords == find("typed_spans").spans.keywords


def test_random_vectors_are_not_trained():
    learner = fit(small("random-vectors"), CONTEXTS, seed=1).learner
    assert not any(parameter.requires_grad for parameter in learner.model.encoder.parameters())


def test_a_paper_model_types_as_well_after_it_is_loaded(tmp_path):
    model = trained_and_back(small("paper"), tmp_path / "model")
    assert alike(model.predict(dev_documents()), model.predict(dev_documents()), 1e-6)
    assert {e.label for d in model.predict(dev_documents()) for e in d.entities} <= set(
        LabelSet.of(train_documents(15)).types["main"]
    )


def test_the_paper_uses_vectors_as_they_are_written():
    keywords = partial(paper().encoder.func, **paper().encoder.keywords).keywords
    assert keywords == {"unknown": "mean", "case": "exact", "trained": False, "size": 300}
    assert paper().encoder.func is StaticEncoder
