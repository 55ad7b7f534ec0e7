import math

import numpy as np
import pytest
import torch
from tiny import DRUG, ENCODER, GENE, LABELS, arrays_of, gold_of, grid_of, of_length, targets_of, vectors, word_inputs

from wingspan.batch import Found
from wingspan.candidates.proposed import BUCKETS as PAIR_BUCKETS
from wingspan.candidates.proposed import Proposed, bucket
from wingspan.decoding import BUCKETS, Linkable, buckets, link_chances
from wingspan.labels import LabelSet
from wingspan.model import States, fetch
from wingspan.objectives import Sizes
from wingspan.objectives.links import Links, possible
from wingspan.objectives.proposing import Proposing
from wingspan.text import Entity, Sentence, Span

FEATURES = 6


def with_fragments(sentence: Sentence, *entities: Entity) -> Sentence:
    return Sentence(
        sentence.words, (*sentence.entities, *entities), sentence.core, sentence.reach, (), sentence.dataset
    )


def broken(label: str, *spans: tuple[int, int]) -> Entity:
    return Entity(label, tuple(Span(*span) for span in spans))


SENTENCES = [
    with_fragments(
        of_length(8, ("Gene", 4, 6)),
        broken("Drug", (0, 1), (3, 4)),
        broken("Drug", (0, 1), (5, 6)),  # shares its first fragment
        broken("Gene", (0, 1), (2, 3), (6, 8)),
    ),
    of_length(5, ("Drug", 0, 2)),
]


def links(**settings) -> Links:
    torch.manual_seed(3)
    made = Links(Sizes(LABELS, 4, "nested", 5, 7, FEATURES), **settings)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def states_of(sentences, width=3, seed=0) -> States:
    inputs = word_inputs(sentences)
    candidates = grid_of(inputs, width)
    features = torch.randn(len(sentences), 40, 3, FEATURES, generator=torch.Generator().manual_seed(seed))
    length, real = inputs.unit_mask.shape[1], candidates.width
    features = features[:, :length, :real].flatten(1, 2)
    return States(inputs, vectors(inputs), candidates, features=features)


def test_targets_are_fragments_and_who_belongs_together():
    start, end, label, mask, linked = links().targets(SENTENCES, arrays_of(word_inputs(SENTENCES)))
    rows = list(zip(start[0].tolist(), end[0].tolist(), label[0].tolist(), strict=True))
    assert rows == [(0, 1, DRUG), (3, 4, DRUG), (5, 6, DRUG), (0, 1, GENE), (2, 3, GENE), (6, 8, GENE)]
    assert mask.sum(1).tolist() == [6, 0]
    pairs = {(i, j) for i, j in zip(*np.nonzero(linked[0]), strict=True) if i < j}
    assert pairs == {(0, 1), (0, 2), (3, 4), (3, 5), (4, 5)}
    assert (linked[0] == linked[0].T).all()
    assert not linked[1].any()


def test_labels_that_the_model_does_not_know_are_left_out():
    other = [with_fragments(of_length(4), broken("Else", (0, 1), (2, 3)))]
    assert not links().targets(other, arrays_of(word_inputs(other))).mask.any()


def naive_loss(objective: Links, states: States, targets, pairs: float) -> float:
    """Cell by cell and pair by pair."""
    total, words = 0.0, int(states.inputs.starts.sum())
    weighted = 0.0
    for row in range(len(states.inputs.words)):
        length = int(states.inputs.unit_mask[row].sum())
        fragments: dict[tuple[int, int], dict[int, int]] = {}
        for at in range(targets.mask.shape[1]):
            if targets.mask[row, at]:
                span = int(targets.start[row, at]), int(targets.end[row, at])
                fragments.setdefault(span, {})[int(targets.label[row, at])] = at
        cells = []
        for cell in range(states.candidates.start.shape[1]):
            span = int(states.candidates.start[row, cell]), int(states.candidates.end[row, cell])
            if span[1] > length:
                continue
            feature = states.features[row, cell]
            scores = objective.fragment(feature)
            for label in (DRUG, GENE):
                yes = label in fragments.get(span, {})
                total += math.log1p(math.exp(-scores[label] if yes else scores[label]))
            likely = math.inf if span in fragments else float(scores[1:].max())
            cells.append((likely, span, feature, scores))
        cells = sorted(cells, key=lambda cell: -cell[0])[: objective.most]
        for _, one, first, scores_one in cells:
            for _, two, second, scores_two in cells:
                if one[1] > two[0]:
                    continue
                sure = 0.0
                for label in (DRUG, GENE):
                    chances = []
                    for span, scores in ((one, scores_one), (two, scores_two)):
                        gold = fragments.get(span)
                        chances.append(float(label in gold) if gold else float(scores[label].sigmoid()))
                    sure += chances[0] * chances[1]
                left, right = objective.left(first), objective.right(second)
                score = left[:-1] @ right[:-1] / math.sqrt(objective.size) + left[-1] + right[-1]
                score = score + objective.distance.weight[buckets(np.array(two[0] - one[1]))][0]
                mine, yours = fragments.get(one, {}), fragments.get(two, {})
                together = any(targets.linked[row, i, j] for i in mine.values() for j in yours.values())
                weighted += min(sure, 1.0) * math.log1p(math.exp(-score if together else score))
    return (total + pairs * weighted) / words


@pytest.mark.parametrize("most", [24, 9])
def test_the_loss_is_that_of_every_cell_and_pair(most):
    objective = links(pairs=0.7, most=most, size=5)
    states, targets = states_of(SENTENCES), targets_of(objective, SENTENCES)
    loss = objective(states, None, targets)
    with torch.no_grad():
        assert float(loss) == pytest.approx(float(naive_loss(objective, states, targets, 0.7)), rel=1e-5)


def test_every_parameter_learns_and_the_features_too():
    objective = links()
    states = states_of(SENTENCES)
    states.features.requires_grad_()
    objective(states, None, targets_of(objective, SENTENCES)).backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in objective.parameters())
    assert states.features.grad.abs().sum() > 0


def test_padding_changes_nothing():
    objective = links()
    alone, beside = SENTENCES[:1], [SENTENCES[0], of_length(12)]
    losses = []
    for sentences in (alone, beside):
        states = states_of(sentences)
        words = int(states.inputs.starts.sum())
        mask = possible(states)
        scores = objective.fragment(states.features)
        losses.append((words, scores[0][mask[0]]))
    assert torch.equal(losses[0][1], losses[1][1])


def test_sentences_without_fragments_still_say_no():
    objective = links()
    plain = SENTENCES[1:]
    loss = objective(states_of(plain), None, targets_of(objective, plain))
    assert torch.isfinite(loss)
    assert loss > 0


def test_links_are_scored_the_same_in_training_and_joining():
    objective = links(size=5).eval()
    states = states_of(SENTENCES)
    with torch.no_grad():
        read = Linkable(*objective.read_fragments(states, [0.5, 0.0, 2.0]), np.zeros((2, 2)))
        linkable = fetch(read)()
        found = linkable.found
        assert set(found.label.tolist()) == {DRUG}
        first = np.flatnonzero(found.sentence == 0)
        chances = link_chances(linkable, first)
        start, end = (torch.from_numpy(part[first]) for part in (found.start, found.end))
        at = start * states.candidates.width + end - start - 1
        scores = objective.link_scores(states.features[:1, at], start[None], end[None])[0]
    expected = torch.where(end[:, None] <= start, scores.sigmoid(), 0.0)
    np.testing.assert_allclose(chances, expected.numpy(), atol=1e-6)


def test_distances_have_the_same_buckets_in_training_and_joining():
    gap = np.arange(5000)
    assert PAIR_BUCKETS == BUCKETS
    assert (bucket(torch.from_numpy(gap) + 1).numpy() == buckets(gap)).all()


def test_fragments_are_found_where_their_chance_reaches_the_bar():
    objective = links().eval()
    states = states_of(SENTENCES)
    with torch.no_grad():
        chance = objective.fragment(states.features).sigmoid()
        found, *_ = objective.read_fragments(states, [0.1, 0.6, 0.4])
    mask = possible(states)
    expected = {
        (row, int(states.candidates.start[row, cell]), int(states.candidates.end[row, cell]), label)
        for row, cell, label in (mask[..., None] & (chance >= torch.tensor([2.0, 0.6, 0.4]))).nonzero().tolist()
    }
    assert set(zip(*(part.tolist() for part in found[:4]), strict=True)) == expected
    assert isinstance(found, Found)


def test_a_fragment_may_start_behind_the_core_and_must_fit_into_the_reach():
    sentences = [of_length(8, core=(2, 4), reach=(0, 6))]
    states = states_of(sentences, width=2)
    spans = [
        (int(start), int(end))
        for start, end, real in zip(
            states.candidates.start[0], states.candidates.end[0], possible(states)[0], strict=True
        )
        if real
    ]
    assert spans == [(2, 3), (2, 4), (3, 4), (3, 5), (4, 5), (4, 6), (5, 6)]


def test_fragments_are_wanted_among_the_candidates():
    inputs = word_inputs(SENTENCES)
    objective = links()
    wanted = objective.required(gold_of(SENTENCES, inputs), targets_of(objective, SENTENCES))
    assert wanted.mask.sum(1).tolist() == [1 + 6, 1]
    torch.manual_seed(0)
    policy = Proposed(ENCODER, 3, budget=0.2)
    chosen = policy(inputs, vectors(inputs), wanted)
    spans = {
        (int(start), int(end))
        for start, end, real in zip(chosen.start[0], chosen.end[0], chosen.mask[0], strict=True)
        if real
    }
    assert {(0, 1), (3, 4), (5, 6), (2, 3), (6, 8), (4, 6)} <= spans
    states = States(
        inputs, vectors(inputs), chosen, features=torch.randn(*chosen.start.shape, FEATURES), required=wanted
    )
    loss = objective(states, None, targets_of(objective, SENTENCES))
    assert torch.isfinite(loss)
    proposing = Proposing(Sizes(LABELS, 4, "nested", 5, 7, FEATURES))
    gold = gold_of(SENTENCES, inputs)
    assert proposing(states, gold) == proposing(states._replace(required=None), wanted)
    assert proposing(states, gold) != proposing(states._replace(required=None), gold)


def test_what_is_exported_says_the_same_of_every_candidate():
    objective = links()
    features = torch.randn(2, 3, FEATURES)
    left, right = objective.vectors(features)
    assert left.shape == right.shape == (2, 3, objective.size + 2)
    first, _ = objective.vectors(features[1, 2])
    assert torch.allclose(first, left[1, 2], atol=1e-6)


def test_corpora_have_blocks_of_their_own():
    labels = LabelSet({"one": ("A",), "two": ("B", "A")})
    objective = Links(Sizes(labels, 4, "nested", 5, 7, FEATURES))
    sentences = [
        Sentence(s.words, s.entities, s.core, s.reach, (), name)
        for s, name in ((with_fragments(of_length(4), broken("A", (0, 1), (2, 3))), "two"),)
    ]
    assert objective.targets(sentences, arrays_of(word_inputs(sentences))).label.tolist() == [[4, 4]]
    inputs = word_inputs(sentences)._replace(dataset=torch.tensor([1]))
    states = states_of(sentences)._replace(inputs=inputs)
    with torch.no_grad():
        found, *_ = objective.read_fragments(states, [0.0] * 5)
    assert set(found.label.tolist()) == {3, 4}
    loss = objective(states, None, targets_of(objective, sentences, inputs))
    loss.backward()
    assert objective.fragment.bias.grad.nonzero().flatten().tolist() == [3, 4]


def test_a_pair_needs_two():
    with pytest.raises(ValueError, match="at least 2"):
        links(most=1)
