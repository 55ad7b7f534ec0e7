"""Linear-chain conditional random field over several independent tag layers: partition, path score, Viterbi, marginals.

Shapes: scores (B, G, L, K), mask (B, L) with the real words first, transitions (G, K, K) from tag to tag.
"""

import torch
from torch import Tensor, nn

from wingspan.layers.autocast import at_least_float32


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
        scores = at_least_float32(scores)
        best = self.first + scores[:, :, 0]  # (B, G, K)
        pointers = []
        identity = torch.arange(scores.shape[-1], device=scores.device).expand_as(best)
        for at in range(1, scores.shape[2]):
            step, pointer = (best.unsqueeze(-1) + self.transitions).max(-2)  # over the previous tag
            real = mask[:, at, None, None]
            best = torch.where(real, step + scores[:, :, at], best)
            pointers.append(torch.where(real, pointer, identity))  # past the end, each tag points to itself
        tag = (best + self.last).argmax(-1)  # (B, G)
        path = [tag]
        for pointer in reversed(pointers):
            tag = pointer.gather(-1, tag.unsqueeze(-1)).squeeze(-1)
            path.append(tag)
        return torch.stack(path[::-1], -1)

    def marginals(self, scores: Tensor, mask: Tensor) -> Tensor:
        """p(tag at word) by forward and backward sums.  -> (B, G, L, K)"""
        scores = at_least_float32(scores)
        alphas = self._forward(scores, mask)
        beta = self.last.expand_as(alphas[0])
        betas = [beta]
        for at in range(scores.shape[2] - 1, 0, -1):
            step = torch.logsumexp(self.transitions + (scores[:, :, at] + beta).unsqueeze(-2), -1)
            beta = torch.where(mask[:, at, None, None], step, beta)
            betas.append(beta)
        return (torch.stack(alphas, 2) + torch.stack(betas[::-1], 2)).softmax(-1)

    def _forward(self, scores: Tensor, mask: Tensor) -> list[Tensor]:
        alpha = self.first + scores[:, :, 0]  # (B, G, K)
        alphas = [alpha]
        for at in range(1, scores.shape[2]):
            step = torch.logsumexp(alpha.unsqueeze(-1) + self.transitions, -2) + scores[:, :, at]
            alpha = torch.where(mask[:, at, None, None], step, alpha)
            alphas.append(alpha)
        return alphas
