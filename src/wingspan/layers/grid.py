"""Pooling of words over spans, without a loop over spans: over the whole grid of (start, width), and over listed spans.

The grid itself is `candidates.Grid`.

A real span holds no padding, so pooling needs no inner mask: cells that are no spans are never read.

Legend: B sentences, L words (units), W widths, D word size, M candidates.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from wingspan.layers.autocast import at_least_float32
from wingspan.layers.tracing import exporting, most_units


def windows(words: Tensor, width: int) -> Tensor:
    """The words that follow each start; also the last word of each span.  (B, L, D) -> (B, L, W, D), a view"""
    return F.pad(words, (0, 0, 0, width - 1)).unfold(1, width, 1).transpose(2, 3)


def first_words(words: Tensor, width: int) -> Tensor:
    """The first word of each span.  (B, L, D) -> (B, L, W, D), a view"""
    return words.unsqueeze(2).expand(-1, -1, width, -1)


def mean_words(words: Tensor, width: int) -> Tensor:
    """The mean of each span's words.  (B, L, D) -> (B, L, W, D)"""
    counts = torch.arange(1, width + 1, device=words.device, dtype=words.dtype)
    return windows(words, width).cumsum(2) / counts[:, None]


def max_words(words: Tensor, width: int) -> Tensor:
    """The maximum of each span's words, dimension by dimension.  (B, L, D) -> (B, L, W, D)"""
    if words.is_cuda:
        return windows(words, width).cummax(2).values  # one launch each way; small batches wait for launches
    if exporting():
        return running_maxima(words, width)
    widest: Tensor = RunningMax.apply(words, width)  # type: ignore[no-untyped-call]
    return widest


def running_maxima(words: Tensor, width: int) -> Tensor:
    """The same for a graph, which has nothing to write into."""
    columns = [words]
    for step in range(1, width):
        columns.append(torch.maximum(columns[-1], F.pad(words, (0, 0, 0, step))[:, step:]))
    return torch.stack(columns, 2)


class RunningMax(torch.autograd.Function):
    """Each width is the maximum of the width before and one more word: ten times faster on a CPU than `cummax`."""

    @staticmethod
    def forward(ctx: Any, words: Tensor, width: int) -> Tensor:
        """(B, L, D) -> (B, L, W, D)"""
        following = windows(words, width)
        out = torch.empty_like(following, memory_format=torch.contiguous_format)
        out[:, :, 0] = words
        for step in range(1, width):
            torch.maximum(out[:, :, step - 1], following[:, :, step], out=out[:, :, step])
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """To the word that set the maximum; the first of equals."""
        (out,), (gradient,) = ctx.saved_tensors, gradients
        length, width = out.shape[1], out.shape[2]
        passed = gradient[:, :, -1]
        total = torch.zeros_like(passed)
        for step in range(width - 1, 0, -1):
            hit = passed * (out[:, :, step] > out[:, :, step - 1])  # the word at this step raised the maximum
            total[:, step:] += hit[:, : max(length - step, 0)]
            passed = gradient[:, :, step - 1] + (passed - hit)
        return total + passed, None


def add_maxima(base: Tensor, words: Tensor, weight: Tensor, width: int) -> Tensor:
    """Maxima of all spans times a weight, plus a base that many of them may share.  -> (B, L, W, out)

    Prediction on a CPU goes width by width: the maxima are never all in memory, and cells off the sentence are free.
    """
    if torch.is_grad_enabled() or words.is_cuda:
        widest = max_words(words, width)
        flat = base.expand(*widest.shape[:3], -1).flatten(0, 2)
        return torch.addmm(flat, widest.flatten(0, 2), weight).view(*widest.shape[:3], -1)  # sum and product at once
    widest = words
    if exporting():  # a graph has nothing to write into
        columns = [widest @ weight]
        for step in range(1, width):
            widest = torch.maximum(widest[:, :-1], words[:, step:])
            columns.append(F.pad(widest @ weight, (0, 0, 0, step)))
        return base + torch.stack(columns, 2)
    out = base.expand(*words.shape[:2], width, -1).contiguous()  # no copy if it is already large enough
    for step in range(min(width, words.shape[1])):
        widest = torch.maximum(widest[:, : words.shape[1] - step], words[:, step:])
        out[:, : widest.shape[1], step] += widest @ weight
    return out


def range_means(words: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Means over listed spans of any width, from prefix sums.  (B, L, D), (B, M), (B, M) -> (B, M, D)"""
    sums = F.pad(at_least_float32(words).cumsum(1), (0, 0, 1, 0))  # (B, L+1, D); long sums lose digits
    total = pick(sums, end) - pick(sums, start)
    return (total / (end - start).clamp(min=1).unsqueeze(-1)).to(words.dtype)


LAST = 2**24 - 1  # places in a sentence have 24 bits
FEW = 2**27  # this many numbers fit into any GPU's memory several times


def range_maxima(words: Tensor, start: Tensor, end: Tensor, held: Tensor | None = None) -> Tensor:
    """Maxima over listed spans of any width.  (B, L, D), (B, M), (B, M) -> (B, M, D)

    Training finds the places of the maxima first, then gathers once: its backward pass is one scatter, not one step per
    level. A few spans on a GPU copy all words instead, with few launches; `held` is the mask of their words, if known.
    """
    if words.is_cuda and start.numel() * words.shape[1] * words.shape[2] <= FEW:
        return held_maxima(words, inside(start, end, words.shape[1]) if held is None else held)
    if not (torch.is_grad_enabled() and words.requires_grad):
        return over_ranges(words, start, end)
    # integers in the order of the values, with their places in the low bits: of equal values the first is largest
    bits = words.detach().float().contiguous().view(torch.int32)
    ordered = (bits ^ ((bits >> 31) & 0x7FFFFFFF)).long()  # negative floats sort backwards
    sortable = (ordered << 24) | (LAST - torch.arange(words.shape[1], device=words.device)[:, None])
    return words.gather(1, LAST - (over_ranges(sortable, start, end) & LAST))


def over_ranges(words: Tensor, start: Tensor, end: Tensor) -> Tensor:
    """Maxima over listed spans: two overlapping power-of-two blocks each.  -> (B, M, D)"""
    levels, step, length = [words], 1, words.shape[1]
    kind = torch.finfo if words.is_floating_point() else torch.iinfo
    lowest = kind(words.dtype).min  # beyond the end: candidates that are only padding may reach there
    while 2 * step <= most_units(length):
        following = F.pad(levels[-1], (0, 0, 0, step), value=lowest)[:, step:]
        levels.append(torch.maximum(levels[-1], following))
        step *= 2
    table = torch.cat(levels, 1)  # level k holds the maxima of 2^k words, from L places
    powers = 2 ** torch.arange(1, len(levels), device=start.device)
    reached = (end - start).unsqueeze(-1) >= powers  # (B, M, levels - 1)
    level, block = reached.sum(-1), 1 + (reached * powers).sum(-1) // 2
    base = level * length
    return torch.maximum(pick(table, base + start), pick(table, base + end - block))


def pick(rows: Tensor, index: Tensor) -> Tensor:
    """One row of each sentence per candidate.  (B, N, D), (B, M) -> (B, M, D)"""
    at = index.clamp(0, rows.shape[1] - 1).long().unsqueeze(-1).expand(-1, -1, rows.shape[-1])
    return rows.gather(1, at)


def held_maxima(words: Tensor, held: Tensor) -> Tensor:
    """The maximum of each span's words, from copies of all words: for few spans.  (B, N, L) -> (B, N, D)"""
    return words.unsqueeze(1).masked_fill(~held.unsqueeze(-1), -torch.inf).max(2).values


def inside(start: Tensor, end: Tensor, length: int) -> Tensor:
    """Mask of the words in each span; at least one, so that no softmax is empty.  (B, M) -> (B, M, L)"""
    at = torch.arange(length, device=start.device)
    first = start.clamp(0, max(length - 1, 0))
    past = torch.maximum(end, first + 1)
    return (at >= first.unsqueeze(-1)) & (at < past.unsqueeze(-1))
