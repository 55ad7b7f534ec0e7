"""Linear-chain conditional random field over several independent tag layers: partition, path score, Viterbi, marginals.

Shapes: scores (B, G, L, K), mask (B, L) with the real words first, transitions (G, K, K) from tag to tag.
"""

import torch
from torch import Tensor, nn

from wingspan.layers.autocast import at_least_float32
from wingspan.layers.tracing import carried


class LinearChain(nn.Module):
    """Transition, start and end scores of G layers with K tags each."""

    def __init__(self, layers: int, tags: int) -> None:
        super().__init__()
        self.transitions = nn.Parameter(torch.zeros(layers, tags, tags))
        self.first = nn.Parameter(torch.zeros(layers, tags))
        self.last = nn.Parameter(torch.zeros(layers, tags))

    def log_likelihood(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """log p(tags) of each sentence and layer.  tags (B, G, L) -> (B, G)"""
        scores = at_least_float32(scores)
        return self.path_score(scores, tags, mask) - self.log_partition(scores, mask)

    def path_score(self, scores: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """The score of one path.  -> (B, G)"""
        layer = torch.arange(scores.shape[1], device=scores.device)
        real = mask[:, None, :].to(scores.dtype)  # (B, 1, L)
        emitted = (scores.gather(-1, tags.unsqueeze(-1)).squeeze(-1) * real).sum(-1)
        moved = (self.transitions[layer[None, :, None], tags[..., :-1], tags[..., 1:]] * real[..., 1:]).sum(-1)
        at = (mask.sum(-1) - 1).clamp(min=0)  # (B,) the last real word
        end = tags.gather(-1, at[:, None, None].expand(-1, tags.shape[1], 1)).squeeze(-1)
        begin_and_end = self.first[layer, tags[..., 0]] + self.last[layer, end]
        return emitted + moved + begin_and_end * mask[:, :1]  # a sentence without words has the empty path, score 0

    def log_partition(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The log of the sum over all paths.  -> (B, G)"""
        alphas = self._forward(at_least_float32(scores), mask)
        return torch.logsumexp(alphas[-1] + self.last, -1) * mask[:, :1]

    def viterbi(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The best path of each sentence and layer.  -> (B, G, L)"""
        emitted, real = by_word(at_least_float32(scores), mask)
        identity = torch.arange(scores.shape[-1], device=scores.device)

        def onwards(best: Tensor, word: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            step, pointer = (best.unsqueeze(-1) + self.transitions).max(-2)  # over the previous tag
            # past the end, each tag points to itself
            return torch.where(word[1], step + word[0], best), torch.where(word[1], pointer, identity)

        def back(tag: Tensor, pointer: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            before = pointer[0].gather(-1, tag.unsqueeze(-1)).squeeze(-1)
            return before, before

        best, pointers = carried(onwards, self.first + emitted[0], (emitted[1:], real[1:]))
        tag = (best + self.last).argmax(-1)  # (B, G)
        _, path = carried(back, tag, (pointers,), backwards=True)
        return torch.cat([path, tag.unsqueeze(0)]).permute(1, 2, 0)

    def marginals(self, scores: Tensor, mask: Tensor) -> Tensor:
        """p(tag at word) by forward and backward sums.  -> (B, G, L, K)"""
        scores = at_least_float32(scores)
        emitted, real = by_word(scores, mask)

        def backwards(beta: Tensor, word: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            step = torch.logsumexp(self.transitions + (word[0] + beta).unsqueeze(-2), -1)
            beta = torch.where(word[1], step, beta)
            return beta, beta

        last = self.last.expand_as(emitted[0])
        _, betas = carried(backwards, last, (emitted[1:], real[1:]), backwards=True)
        alphas = self._forward(scores, mask)
        return (alphas + torch.cat([betas, last.unsqueeze(0)])).softmax(-1).permute(1, 2, 0, 3)

    def _forward(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The log of the sum over all paths up to each word and tag.  -> (L, B, G, K)"""
        emitted, real = by_word(scores, mask)

        def onwards(alpha: Tensor, word: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
            step = torch.logsumexp(alpha.unsqueeze(-1) + self.transitions, -2) + word[0]
            alpha = torch.where(word[1], step, alpha)
            return alpha, alpha

        first = self.first + emitted[0]  # (B, G, K)
        _, alphas = carried(onwards, first, (emitted[1:], real[1:]))
        return torch.cat([first.unsqueeze(0), alphas])


def by_word(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and mask word by word.  -> (L, B, G, K), (L, B, 1, 1)"""
    return scores.permute(2, 0, 1, 3), mask.T[:, :, None, None]
