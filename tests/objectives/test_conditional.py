"""The conditional autoencoder of Oi and Miwa 2025: its rows, what it costs by hand, what learns from it."""

from dataclasses import replace

import pytest
import torch
from tiny import gold_of, grid_of, of_length, vectors, word_inputs
from torch.distributions import Normal, kl_divergence

from wingspan.labels import LabelSet
from wingspan.layers.schedules import Moment
from wingspan.model import States
from wingspan.objectives import Sizes
from wingspan.objectives.conditional import ConditionalReconstruction, condition_rows

# Oi and Miwa 2025, section 3: a target that tags chemicals and proteins, a source that tags diseases and proteins
TOY = LabelSet({"T": ("Chemical", "Protein"), "S": ("Disease", "Protein")}, counterparts={"S": {"Protein": "Protein"}})
SIZE = 4


def test_the_rows_of_the_papers_example():
    rows = condition_rows(TOY)
    assert rows.shape == (6, 9)
    assert rows[TOY.id("S", "Protein")].tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 1]
    assert rows[TOY.id("T", "Protein")].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 1]
    assert rows[TOY.nothing("S")].tolist() == [0, 0, 0, 1, 0, 0, 1, 0, 0]  # every "nothing" is that of the target
    assert rows[TOY.id("S", "Disease")].tolist() == [0, 0, 0, 0, 1, 0, 0, 0, 0]  # no counterpart


def test_the_rows_of_the_ablations():
    both = condition_rows(TOY)
    assert torch.equal(condition_rows(TOY, "own"), both[:, :6])
    assert torch.equal(condition_rows(TOY, "shared"), both[:, 6:])
    torch.manual_seed(0)
    random = condition_rows(TOY, "random")
    assert random.shape == both.shape
    assert not torch.isin(random, both).any()


def made(**settings) -> ConditionalReconstruction:
    torch.manual_seed(0)
    settings = {"hidden": 7, "latent_size": 3, **settings}
    return ConditionalReconstruction(Sizes(TOY, 3, "flat", 5, SIZE, 1), **settings)


def states_of(*sentences, moment: Moment | None = None) -> tuple[States, object]:
    """Two widths; random span vectors that learn."""
    inputs = word_inputs(sentences)
    datasets = torch.tensor([TOY.dataset_id(sentence.dataset) for sentence in sentences])
    inputs = inputs._replace(dataset=datasets)
    candidates = grid_of(inputs, 2)
    torch.manual_seed(1)
    spans = torch.randn(*candidates.start.shape, SIZE).relu().requires_grad_()
    states = States(inputs, vectors(inputs), candidates, spans=spans, moment=moment)
    return states, gold_of(sentences, inputs, TOY)


BATCH = (of_length(3, ("Protein", 1, 2), dataset="S"), of_length(2, ("Chemical", 0, 2), dataset="T"))


def by_hand(objective, states, gold, chosen, classes, beta=1.0, share=1 / SIZE) -> torch.Tensor:
    """The loss, span by span: a share of the squared errors of its numbers, the divergence summed over the latent."""
    torch.manual_seed(5)
    noise = torch.randn(*states.spans.shape[:2], 3)
    total = torch.zeros(())
    for row, cell in chosen:
        vector, condition = states.spans[row, cell], objective.rows[classes[row, cell]]
        hidden = torch.relu(objective.enter(torch.cat([vector, condition])))
        mean, log_variance = objective.mean(hidden), objective.log_variance(hidden)
        latent = mean + (0.5 * log_variance).exp() * noise[row, cell]
        first, second = objective.write[0], objective.write[2]
        again = torch.relu(second(torch.relu(first(torch.cat([latent, condition])))))
        error = ((again - vector) ** 2).sum() * share
        spread = (0.5 * log_variance).exp()
        divergence = kl_divergence(Normal(mean, spread), Normal(torch.zeros(3), torch.ones(3))).sum()
        total = total + error + beta * divergence
    return total / len(chosen)


def classes_of(states) -> torch.Tensor:
    """By hand: in the first sentence word 1 is a protein of S, in the second both words are a chemical of T."""
    found = torch.full(states.candidates.start.shape, TOY.nothing("S"))
    found[1] = TOY.nothing("T")
    found[0, 2] = TOY.id("S", "Protein")  # start 1, width 1: cell 1 * 2 + 0
    found[1, 1] = TOY.id("T", "Chemical")  # start 0, width 2
    return found


def test_the_loss_by_hand_over_spans_that_count():
    objective = made()
    states, gold = states_of(*BATCH)
    real = [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2)]  # the others end behind their sentence
    assert torch.nonzero(states.candidates.mask).tolist() == [list(pair) for pair in real]
    torch.manual_seed(5)
    found = objective(states, gold, None)
    torch.testing.assert_close(found, by_hand(objective, states, gold, real, classes_of(states)))


def test_the_loss_by_hand_on_one_scale():
    """Half the sum of squared errors is minus the log chance under unit noise, but for a constant."""
    objective = made(error="sum", beta=0.3)
    states, gold = states_of(*BATCH)
    real = torch.nonzero(states.candidates.mask).tolist()
    torch.manual_seed(5)
    found = objective(states, gold, None)
    torch.testing.assert_close(found, by_hand(objective, states, gold, real, classes_of(states), 0.3, share=0.5))


def test_figures_of_the_last_batch():
    objective = made()
    assert objective.figures() == {}
    states, gold = states_of(*BATCH)
    objective(states, gold, None)
    found = objective.figures()
    assert found["nats_per_span"] == pytest.approx(
        objective.costs(states.spans, classes_of(states))[1][states.candidates.mask].mean().item()
    )
    with torch.no_grad():  # a decoder that repeats the row of the class, and an encoder that says nothing
        for layer in (objective.mean, objective.log_variance, objective.write[0], objective.write[2]):
            layer.weight.zero_()
            layer.bias.zero_()
    objective(states, gold, None)
    assert objective.figures() == {"nats_per_span": 0.0, "label_gain": 0.0}  # no row matters
    objective(states, gold._replace(mask=torch.zeros_like(gold.mask)), None)
    assert objective.figures() == {"nats_per_span": 0.0}  # no entity in the batch


def test_entities_alone():
    objective = made(over="entities")
    states, gold = states_of(*BATCH)
    torch.manual_seed(5)
    found = objective(states, gold, None)
    torch.testing.assert_close(found, by_hand(objective, states, gold, [(0, 2), (1, 1)], classes_of(states)))


def test_what_a_corpus_leaves_unmarked_is_not_taken_for_nothing_where_it_leaves_types_unmarked():
    silent = replace(TOY, annotates={"S": ("Protein",)})
    torch.manual_seed(0)
    objective = ConditionalReconstruction(Sizes(silent, 3, "flat", 5, SIZE, 1), hidden=7, latent_size=3)
    states, gold = states_of(*BATCH)
    known = [(0, 2), (1, 0), (1, 1), (1, 2)]  # of S only what it marks, of T all that counts
    torch.manual_seed(5)
    found = objective(states, gold, None)
    torch.testing.assert_close(found, by_hand(objective, states, gold, known, classes_of(states)))


def test_the_paper_counts_padding_as_nothing_of_the_first_corpus():
    objective = made(over="everything")
    states, gold = states_of(*BATCH)
    classes = classes_of(states).masked_fill(~states.candidates.mask, TOY.nothing("T"))
    everything = [(row, cell) for row in range(2) for cell in range(6)]
    torch.manual_seed(5)
    found = objective(states, gold, None)
    torch.testing.assert_close(found, by_hand(objective, states, gold, everything, classes))


def test_padding_changes_nothing_by_default():
    objective = made(beta=0.0)
    with torch.no_grad():  # no noise, so that other draws make no difference
        objective.log_variance.weight.zero_()
        objective.log_variance.bias.fill_(-200.0)
    states, gold = states_of(*BATCH)
    found = objective(states, gold, None)
    noisy = torch.where(states.candidates.mask[..., None], states.spans, states.spans + 100.0)
    torch.testing.assert_close(objective(states._replace(spans=noisy), gold, None), found)


@pytest.mark.parametrize(("schedule", "weight"), [("constant", 0.5), ("linear", 0.125), ("cyclic", 0.0)])
def test_the_weight_of_the_divergence(schedule, weight):
    objective = made(beta=0.5, schedule=schedule)
    states, gold = states_of(*BATCH, moment=Moment(step=1, steps=4))
    real = torch.nonzero(states.candidates.mask).tolist()
    torch.manual_seed(5)
    found = objective(states, gold, None)
    torch.testing.assert_close(found, by_hand(objective, states, gold, real, classes_of(states), weight))


@pytest.mark.parametrize(
    ("settings", "learns"),
    [
        ({}, True),
        ({"trained": False}, False),
        ({"conditions": "own"}, True),
        ({"conditions": "random"}, True),
    ],
)
def test_the_rows_learn_only_if_they_may(settings, learns):
    objective = made(**settings)
    states, gold = states_of(*BATCH)
    objective(states, gold, None).backward()
    moved = objective.rows.grad is not None and bool(objective.rows.grad.abs().sum() > 0)
    assert moved == learns
    assert states.spans.grad.abs().sum() > 0  # span vectors are what it is all for
    others = {name: p.grad for name, p in objective.named_parameters() if name != "rows"}
    assert all(grad is not None for grad in others.values())


def test_a_detached_target_does_not_come_to_meet_the_decoder():
    """With an encoder that sees nothing, only the target is left to learn from."""
    for detach in (True, False):
        objective = made(detach=detach, beta=0.0)
        with torch.no_grad():
            objective.enter.weight[:, :SIZE] = 0.0
        states, gold = states_of(*BATCH)
        objective(states, gold, None).backward()
        assert (states.spans.grad.abs().sum() == 0) == detach


def test_half_precision_is_computed_in_full():
    objective = made()
    states, gold = states_of(*BATCH)
    torch.manual_seed(5)
    whole = objective(states, gold, None)
    torch.manual_seed(5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = objective(states._replace(spans=states.spans.float()), gold, None)
    assert half.dtype == torch.float32
    torch.testing.assert_close(half, whole)


def test_where_no_label_means_one_of_the_targets_the_log_says_so():
    assert made().lines() == []
    alone = ConditionalReconstruction(Sizes(replace(TOY, counterparts={}), 3, "flat", 5, SIZE, 1))
    assert alone.lines() == [
        "No label_map: no label of another corpus means one of the target's, so the CVAE ties none together."
    ]
    one = LabelSet({"main": ("Chemical",)})
    assert ConditionalReconstruction(Sizes(one, 3, "flat", 5, SIZE, 1)).lines() == []


def test_a_negative_beta_is_refused():
    with pytest.raises(ValueError, match="beta is -1.0; it is the weight of the divergence"):
        made(beta=-1.0)
