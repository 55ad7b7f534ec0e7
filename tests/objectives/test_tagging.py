from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import DRUG, GENE, arrays_of, of_length, piece_inputs, sizes, targets_of, vectors, word_inputs
from torch import nn

from wingspan.batch import entities_found
from wingspan.encoders import Words
from wingspan.labels import LabelSet
from wingspan.model import States, fetch
from wingspan.objectives.tagging import Tagging
from wingspan.text import Sentence

OUT, B_DRUG, I_DRUG, B_GENE, I_GENE = range(5)  # flat: one layer
BEGIN, IN = 1, 2  # nested: a layer for each type


def tagger(overlap: str = "flat", crf: bool = False) -> Tagging:
    """A tagger whose scores are the word vectors themselves."""
    size = 5 if overlap == "flat" else 6
    objective = Tagging(sizes(overlap, word=size), crf=crf, dropout=0.0)
    with torch.no_grad():
        objective.score.weight.copy_(torch.eye(size))
        objective.score.bias.zero_()
    return objective.eval()


def states_with(inputs, top: torch.Tensor) -> States:
    return States(inputs, Words(top, (), top[:, 0], inputs.unit_mask))


def saying(inputs, tags: list[list[list[int]]], overlap: str = "flat", sure: float = 6.0) -> States:
    """States whose units say these tags.  tags[row][layer][unit]"""
    layers, kinds = (1, 5) if overlap == "flat" else (2, 3)
    top = torch.zeros(*inputs.unit_mask.shape, layers, kinds)
    for row, of_layers in enumerate(tags):
        for layer, of_units in enumerate(of_layers):
            for unit, tag in enumerate(of_units):
                top[row, unit, layer, tag] = sure
    return states_with(inputs, top.flatten(2))


def random_states(inputs, overlap: str = "flat", seed: int = 0) -> States:
    size = 5 if overlap == "flat" else 6
    draws = torch.Generator().manual_seed(seed)
    return states_with(inputs, torch.randn(*inputs.unit_mask.shape, size, generator=draws))


def naive_tags(sentence: Sentence, overlap: str, core: tuple[int, int] = (0, 99)) -> list[list[int]]:
    """One row per layer, by a loop over gold in reading order; words outside the core are free for all."""
    flat = overlap == "flat"
    rows = [[OUT] * len(sentence.words) for _ in range(1 if flat else 2)]
    for entity in sorted(sentence.entities, key=lambda e: (e.start, e.end, e.label)):
        kind = {"Drug": 0, "Gene": 1}[entity.label]
        row, begin = (rows[0], 1 + 2 * kind) if flat else (rows[kind], 1)
        if not any(row[max(entity.start, core[0]) : min(entity.end, core[1])]):
            row[entity.start : entity.end] = [begin] + [begin + 1] * (entity.end - entity.start - 1)
    return rows


def loss_of(objective: Tagging, states: States, gold: list[Sentence]) -> torch.Tensor:
    return objective(states, None, targets_of(objective, gold, states.inputs))


def test_words_are_dropped_in_training_and_only_there():
    inputs, objective = word_inputs([of_length(6)]), Tagging(sizes("flat", word=5), dropout=0.5).train()

    def drawn(seed: int) -> float:
        torch.manual_seed(seed)
        return loss_of(objective, random_states(inputs), [of_length(6, ("Drug", 0, 2))]).item()

    assert drawn(1) != drawn(2)
    objective.eval()
    assert drawn(1) == drawn(2)


def read(objective: Tagging, states: States, thresholds=None) -> list[tuple[int, int, int, int]]:
    found = objective.decode(states, thresholds)
    return list(zip(*(part.tolist() for part in found[:4]), strict=True))


NESTED = of_length(6, ("Drug", 0, 4), ("Gene", 1, 3), ("Gene", 3, 6))
FLAT = [
    of_length(5, ("Drug", 0, 2), ("Drug", 2, 3), ("Gene", 4, 5)),
    of_length(3),
    of_length(4, ("Gene", 1, 4)),
]
CLASHING = of_length(5, ("Drug", 0, 3), ("Gene", 2, 5), ("Gene", 4, 5))  # in one layer the second has no room


@pytest.mark.parametrize("crf", [False, True])
def test_a_types_share_of_the_loss_does_not_shrink_with_the_number_of_types(crf):
    """A layer of a type costs the same alone and beside a second one: bundling weighs tags per word, not per tag."""
    torch.manual_seed(0)
    one, two = (Tagging(sizes("nested", labels=LabelSet({"main": names})), crf=crf) for names in (("A",), ("A", "B")))
    with torch.no_grad():
        for name, parameter in two.named_parameters():  # the layer of B is certain that there is none
            parameter[: len(one.get_parameter(name))] = one.get_parameter(name)
        two.score.weight[3:] = 0.0
        two.score.bias[3:] = torch.tensor([50.0, 0.0, 0.0])
    sentences = [of_length(3, ("A", 1, 2))]
    inputs = word_inputs(sentences)
    states = States(inputs, vectors(inputs))
    losses = [loss_of(tagging.eval(), states, sentences) for tagging in (one, two)]
    torch.testing.assert_close(*losses)


@pytest.mark.parametrize("overlap", ["flat", "nested"])
@pytest.mark.parametrize("gold", [FLAT, [NESTED], [CLASHING, *FLAT]], ids=["flat", "nested", "clashing"])
def test_softmax_loss_by_hand(overlap, gold):
    inputs = word_inputs(gold)
    states = random_states(inputs, overlap)
    costs = []
    for row, sentence in enumerate(gold):
        for layer, tags in enumerate(naive_tags(sentence, overlap)):
            for at, tag in enumerate(tags):
                scores = states.words.top[row, at].view(-1, 5 if overlap == "flat" else 3)[layer]
                costs.append(torch.logsumexp(scores, 0) - scores[tag])
    loss = loss_of(tagger(overlap), states, gold)
    torch.testing.assert_close(loss.detach(), torch.stack(costs).sum() / inputs.unit_mask.sum(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("overlap", ["flat", "nested"])
def test_crf_loss_is_the_likelihood_of_the_tags_per_word(overlap):
    gold = [NESTED, *FLAT] if overlap == "nested" else FLAT
    inputs = word_inputs(gold)
    states = random_states(inputs, overlap)
    objective = tagger(overlap, crf=True)
    nn.init.normal_(objective.chain.transitions)
    total, words = 0.0, 0
    for row, sentence in enumerate(gold):
        length = len(sentence.words)
        scores = states.words.top[row, :length].view(length, objective.layers, objective.tags).transpose(0, 1)
        tags = torch.tensor(naive_tags(sentence, overlap))
        alone = objective.chain.log_likelihood(scores[None], tags[None], torch.ones(1, length) > 0)
        total, words = total - alone.sum().item(), words + length
    assert loss_of(objective, states, gold).item() == pytest.approx(total / words, rel=1e-5)


@given(data=st.data())
@pytest.mark.parametrize("overlap", ["flat", "nested"])
def test_tags_of_any_entities_in_any_window(overlap, data):
    """Clashing entities, entities across the borders of the core, pieces as units, sentences of different lengths."""
    sentences, counts = [], []
    for length in data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)):
        borders = st.tuples(st.integers(0, length - 1), st.integers(1, length)).filter(lambda pair: pair[0] < pair[1])
        spans = data.draw(st.lists(st.tuples(st.sampled_from(["Drug", "Gene"]), borders), max_size=5))
        core = data.draw(borders)
        sentences.append(of_length(length, *((label, *span) for label, span in spans), core=core))
        counts.append(data.draw(st.lists(st.integers(1, 3), min_size=length, max_size=length)))
    inputs = piece_inputs(sentences, counts)
    targets = targets_of(tagger(overlap), sentences, inputs)
    for row, sentence in enumerate(sentences):
        first, past = sentence.core
        assert targets.mask[row].sum() == past - first
        units = [sum(counts[row][:word]) for word in range(first, past)]
        assert targets.unit[row, : past - first].tolist() == units
        inside = [e for e in sentence.entities if e.start < past and first < e.end]
        expected = naive_tags(replace(sentence, entities=tuple(inside)), overlap, sentence.core)
        assert targets.tags[row, :, : past - first].tolist() == [tags[first:past] for tags in expected]
        assert not targets.tags[row, :, past - first :].any()


@pytest.mark.parametrize("crf", [False, True])
def test_words_outside_the_core_do_not_enter_the_loss(crf):
    window = of_length(7, ("Drug", 4, 6), core=(2, 5))
    inputs = word_inputs([window])
    states = random_states(inputs)
    top = states.words.top.clone().requires_grad_()
    objective = tagger(crf=crf)
    loss = loss_of(objective, states_with(inputs, top), [window])
    (felt,) = torch.autograd.grad(loss, top)
    assert float(felt[0, [0, 1, 5, 6]].abs().sum()) == 0
    assert bool((felt[0, 2:5].abs().sum(-1) > 0).all())
    inner = of_length(3, ("Drug", 2, 3))
    alone = word_inputs([inner])
    own = loss_of(objective, states_with(alone, states.words.top[:, 2:5]), [inner])
    assert loss.item() == pytest.approx(own.item(), rel=1e-5)


def test_with_pieces_only_the_first_piece_of_a_word_is_tagged():
    gold = [of_length(3, ("Gene", 1, 3))]
    inputs = piece_inputs(gold, [[2, 1, 3]])
    states = random_states(inputs)
    top = states.words.top.clone().requires_grad_()
    loss = loss_of(tagger(), states_with(inputs, top), gold)
    (felt,) = torch.autograd.grad(loss, top)
    assert [at for at in range(6) if float(felt[0, at].abs().sum()) > 0] == [0, 2, 3]
    words = word_inputs(gold)
    own = loss_of(tagger(), states_with(words, states.words.top[:, [0, 2, 3]]), gold)
    assert loss.item() == pytest.approx(own.item(), rel=1e-6)


@pytest.mark.parametrize("crf", [False, True])
def test_padding_and_other_sentences_change_nothing(crf):
    objective = tagger(crf=crf)
    inputs = word_inputs(FLAT)
    states = random_states(inputs)
    together = loss_of(objective, states, FLAT).item() * 12
    alone, found = 0.0, []
    for row, one in enumerate(FLAT):
        own = word_inputs([one])
        own_states = states_with(own, states.words.top[row : row + 1, : len(one.words)])
        alone += loss_of(objective, own_states, [one]).item() * len(one.words)
        found += [(row, *entity[1:]) for entity in read(objective, own_states)]
    assert together == pytest.approx(alone, rel=1e-5)
    assert sorted(read(objective, states)) == sorted(found)
    assert found


@pytest.mark.parametrize("crf", [False, True])
def test_tags_are_read_as_entities(crf):
    inputs = word_inputs([of_length(6), of_length(2)])
    states = saying(inputs, [[[B_DRUG, I_DRUG, B_DRUG, OUT, B_GENE, I_GENE]], [[OUT, B_GENE]]])
    expected = [(0, 0, 2, DRUG), (0, 2, 3, DRUG), (0, 4, 6, GENE), (1, 1, 2, GENE)]
    assert read(tagger(crf=crf), states) == expected


def test_an_inside_tag_without_its_beginning_starts_an_entity():
    inputs = word_inputs([of_length(6)])
    assert read(tagger(), saying(inputs, [[[I_GENE, I_GENE, OUT, I_DRUG, I_GENE, I_GENE]]])) == [
        (0, 0, 2, GENE),
        (0, 3, 4, DRUG),
        (0, 4, 6, GENE),
    ]


def test_nested_entities_have_a_layer_for_each_type():
    inputs = word_inputs([NESTED])
    states = saying(inputs, [[[BEGIN, IN, IN, IN, OUT, OUT], [OUT, BEGIN, IN, BEGIN, IN, IN]]], "nested")
    assert sorted(read(tagger("nested"), states)) == [(0, 0, 4, DRUG), (0, 1, 3, GENE), (0, 3, 6, GENE)]


@given(data=st.data())
@pytest.mark.parametrize(("overlap", "crf"), [("flat", False), ("flat", True), ("nested", False), ("any", True)])
def test_reading_gives_back_what_the_tags_can_hold(overlap, crf, data):
    length = data.draw(st.integers(1, 8))
    layers = 1 if overlap == "flat" else 2
    entities = []
    for layer in range(layers):
        at = 0
        while at < length:
            width = data.draw(st.integers(0, length - at))
            if width:
                label = data.draw(st.sampled_from(["Drug", "Gene"])) if layers == 1 else ["Drug", "Gene"][layer]
                entities.append((label, at, at + width))
            at += max(width, 1)
    gold = of_length(length, *entities)
    inputs = word_inputs([gold])
    states = saying(inputs, [naive_tags(gold, overlap)], overlap)
    objective = tagger(overlap, crf=crf)
    assert loss_of(objective, states, [gold]).item() < 0.02
    arrays = arrays_of(inputs)
    (found,) = entities_found(fetch(objective.decode(states))(), arrays, sizes().labels)
    assert sorted(found, key=str) == sorted(gold.entities, key=str)


@pytest.mark.parametrize("crf", [False, True])
def test_an_entity_belongs_to_the_window_whose_core_it_begins_in(crf):
    # words 2 to 4 are the core; one entity runs into it, one begins in it and runs out of it, one begins behind it
    inputs = word_inputs([of_length(9, core=(2, 5))])
    says = [[[OUT, B_DRUG, I_DRUG, OUT, B_GENE, I_GENE, I_GENE, B_DRUG, OUT]]]
    assert read(tagger(crf=crf), saying(inputs, says)) == [(0, 4, 7, GENE)]


def test_an_entity_ends_in_the_reach():
    inputs = word_inputs([of_length(6, core=(1, 4), reach=(1, 4))])
    says = [[[B_DRUG, I_DRUG, OUT, B_GENE, I_GENE, I_GENE]]]
    # context outside the reach is not read: what goes on from there begins anew, what goes on into it is cut
    assert read(tagger(), saying(inputs, says)) == [(0, 1, 2, DRUG), (0, 3, 4, GENE)]


def test_with_pieces_entities_are_whole_words():
    inputs = piece_inputs([of_length(4), of_length(2)], [[2, 1, 3, 1], [3, 1]])
    # tags of later pieces have no say
    says = [[[B_DRUG, B_GENE, I_DRUG, B_GENE, OUT, B_DRUG, I_GENE]], [[OUT, B_DRUG, B_DRUG, B_GENE]]]
    assert read(tagger(), saying(inputs, says)) == [(0, 0, 3, DRUG), (0, 3, 7, GENE), (1, 3, 4, GENE)]
    arrays = arrays_of(inputs)
    found = entities_found(fetch(tagger().decode(saying(inputs, says)))(), arrays, sizes().labels)
    assert [(e.label, e.start, e.end) for row in found for e in row] == [
        ("Drug", 0, 2),
        ("Gene", 2, 4),
        ("Gene", 1, 2),
    ]


def test_the_least_certain_word_is_the_score():
    inputs = word_inputs([of_length(3)])
    top = saying(inputs, [[[B_DRUG, I_DRUG, OUT]]]).words.top
    top[0, 1] *= 0.3
    found = tagger().decode(states_with(inputs, top))
    assert found.score.tolist() == pytest.approx([top[0, 1].softmax(0)[I_DRUG].item()])


def test_a_crf_gives_its_least_marginal_as_score():
    inputs = word_inputs([of_length(3)])
    objective = tagger(crf=True)
    nn.init.normal_(objective.chain.transitions, std=0.3)
    states = saying(inputs, [[[B_DRUG, I_DRUG, OUT]]], sure=3.0)
    marginals = objective.chain.marginals(states.words.top[:, None], inputs.unit_mask)[0, 0]
    found = objective.decode(states)
    expected = min(marginals[0, B_DRUG].item(), marginals[1, I_DRUG].item())
    assert found.score.tolist() == pytest.approx([expected], rel=1e-5)


def test_thresholds_are_on_the_score():
    inputs = word_inputs([of_length(3)])
    states = saying(inputs, [[[B_DRUG, OUT, B_GENE]]], sure=2.0)
    score = float(tagger().decode(states).score[0])
    assert len(read(tagger(), states, score - 0.01)) == 2
    assert read(tagger(), states, score + 0.01) == []
    assert read(tagger(), states, {"Gene": 0.99}) == [(0, 0, 1, DRUG)]


def test_nothing_found_is_empty_and_typed():
    inputs = word_inputs([of_length(2)])
    found = tagger().decode(saying(inputs, [[[OUT, OUT]]]))
    assert [len(part) for part in found[:5]] == [0] * 5
    assert found.label.dtype == torch.long
    assert found.score.dtype == torch.double
