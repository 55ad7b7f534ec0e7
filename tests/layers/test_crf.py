from itertools import product

import pytest
import torch

from wingspan.layers.crf import LinearChain

LAYERS, TAGS = 2, 3


def chain_with_numbers(seed: int = 0) -> LinearChain:
    """Zeros would hide a wrong direction of the transitions."""
    chain = LinearChain(LAYERS, TAGS)
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in chain.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draws))
    return chain


def batch(lengths: list[int], longest: int, seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.randn(len(lengths), LAYERS, longest, TAGS, generator=torch.Generator().manual_seed(seed))
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    return scores, mask


def path_score(chain: LinearChain, layer: int, scores: torch.Tensor, path: tuple[int, ...]) -> float:
    total = chain.first[layer, path[0]] + chain.last[layer, path[-1]]
    total = total + sum(scores[at, tag] for at, tag in enumerate(path))
    total = total + sum(chain.transitions[layer, a, b] for a, b in zip(path, path[1:], strict=False))
    return total.item()


def brute_force(chain: LinearChain, layer: int, scores: torch.Tensor) -> dict[tuple[int, ...], float]:
    paths = product(range(TAGS), repeat=len(scores))
    return {path: path_score(chain, layer, scores, path) for path in paths}


@pytest.mark.parametrize("length", [1, 2, 4])
def test_likelihood_of_every_path_is_the_brute_force_one(length):
    chain = chain_with_numbers()
    scores, mask = batch([length], length)
    for layer in range(LAYERS):
        paths = brute_force(chain, layer, scores[0, layer])
        total = torch.logsumexp(torch.tensor(list(paths.values())), 0)
        for path, score in paths.items():
            tags = torch.tensor(path).expand(1, LAYERS, -1)
            found = chain.log_likelihood(scores, tags, mask)[0, layer]
            torch.testing.assert_close(found.detach(), score - total, rtol=1e-4, atol=1e-4)


def test_the_best_path_is_the_brute_force_one():
    chain = chain_with_numbers(3)
    for seed in range(20):
        scores, mask = batch([4], 4, seed)
        found = chain.viterbi(scores, mask)
        for layer in range(LAYERS):
            paths = brute_force(chain, layer, scores[0, layer])
            assert tuple(found[0, layer].tolist()) == max(paths, key=paths.__getitem__)


def test_marginals_are_the_brute_force_ones():
    chain = chain_with_numbers(4)
    scores, mask = batch([4], 4)
    found = chain.marginals(scores, mask)
    torch.testing.assert_close(found.sum(-1).detach(), torch.ones(1, LAYERS, 4))
    for layer in range(LAYERS):
        paths = brute_force(chain, layer, scores[0, layer])
        chance = torch.tensor(list(paths.values())).softmax(0)
        expected = torch.zeros(4, TAGS)
        for path, share in zip(paths, chance, strict=True):
            for at, tag in enumerate(path):
                expected[at, tag] += share
        torch.testing.assert_close(found[0, layer].detach(), expected, rtol=1e-4, atol=1e-5)


def test_padding_changes_nothing():
    chain = chain_with_numbers(5)
    lengths = [3, 5, 1]
    scores, mask = batch(lengths, 7)
    tags = torch.randint(TAGS, (3, LAYERS, 7), generator=torch.Generator().manual_seed(6))
    together = chain.log_likelihood(scores, tags, mask), chain.viterbi(scores, mask), chain.marginals(scores, mask)
    for row, length in enumerate(lengths):
        alone = scores[row : row + 1, :, :length], mask[row : row + 1, :length]
        likelihood = chain.log_likelihood(alone[0], tags[row : row + 1, :, :length], alone[1])
        torch.testing.assert_close(together[0][row], likelihood[0], rtol=1e-5, atol=1e-5)
        assert torch.equal(together[1][row, :, :length], chain.viterbi(*alone)[0])
        torch.testing.assert_close(together[2][row, :, :length], chain.marginals(*alone)[0], rtol=1e-5, atol=1e-5)


def test_layers_are_independent():
    chain = chain_with_numbers(7)
    scores, mask = batch([4], 4)
    changed = scores.clone()
    changed[:, 0] += torch.randn(4, TAGS, generator=torch.Generator().manual_seed(8))
    tags = torch.zeros(1, LAYERS, 4, dtype=torch.long)
    before, after = chain.log_likelihood(scores, tags, mask), chain.log_likelihood(changed, tags, mask)
    assert before[0, 1] == after[0, 1]
    assert before[0, 0] != after[0, 0]


def test_a_sentence_without_words_costs_nothing_and_gets_no_gradient():
    chain = chain_with_numbers(9)
    scores, mask = batch([0], 3)
    cost = chain.log_likelihood(scores, torch.zeros(1, LAYERS, 3, dtype=torch.long), mask)
    assert cost.tolist() == [[0.0] * LAYERS]
    cost.sum().backward()
    assert all(float(parameter.grad.abs().sum()) == 0 for parameter in chain.parameters())


def test_padding_gets_no_gradient_and_real_words_do():
    chain = chain_with_numbers(10)
    scores, mask = batch([2], 4)
    scores.requires_grad_()
    chain.log_likelihood(scores, torch.zeros(1, LAYERS, 4, dtype=torch.long), mask).sum().backward()
    assert float(scores.grad[:, :, 2:].abs().sum()) == 0
    assert float(scores.grad[:, :, :2].abs().min()) > 0


def test_half_precision_scores_are_summed_in_single():
    chain = chain_with_numbers(11)
    scores, mask = batch([4], 4)
    assert chain.log_partition(scores.bfloat16(), mask).dtype == torch.float32
