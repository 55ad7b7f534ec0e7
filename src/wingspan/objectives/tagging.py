"""BIO tags for words, by softmax or a linear-chain CRF; predicts entities from the tags.

Flat gold has one tag layer with 2m+1 tags; gold with nesting has one layer of three tags (O, B, I) for each type.
Tags of other corpora are impossible, and an unmarked word may have a tag of a type that its corpus does not mark.
See: paper 002 eq. 5 to 11. `corpora.coverage` counts what tags cannot express (same-type nesting, discontinuity).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.batch import Found, Gold, Inputs
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.crf import LinearChain
from wingspan.layers.distributed import share_of
from wingspan.model import States
from wingspan.objectives import Decisions, Objective, Sizes, Thresholds, threshold_of

NEVER = -1e4  # the score of an impossible tag; finite, so that a chain can be summed over it


class TaggedWords(NamedTuple):
    """The words of a batch that are tagged, moved to the front."""

    unit: Tensor  # (B, L) the first unit of each such word
    mask: Tensor  # (B, L)


class Tagging(Objective):
    """Cross entropy, or the CRF's negative log likelihood, per word: a mean over words of the sum over layers."""

    predicts = True
    calibrates = True
    reads_spans = False
    _foreign: Tensor
    _silent: Tensor
    _answers: Tensor

    def __init__(self, sizes: Sizes, *, crf: bool = False, dropout: float = 0.1, spread: float = 0.02) -> None:
        super().__init__()
        self.names = sizes.labels.names()
        classes = [at for at, name in enumerate(self.names) if name is not None]
        # the B tag of a class is begin_of in layer_of; I follows B
        self.one_layer = sizes.overlap == "flat"
        self.layer_of = {c: 0 if self.one_layer else n for n, c in enumerate(classes)}
        self.begin_of = {c: 1 + 2 * n if self.one_layer else 1 for n, c in enumerate(classes)}
        self.classes = classes
        self.layers = 1 if self.one_layer else max(len(classes), 1)
        self.tags = 1 + 2 * len(classes) if self.one_layer else 3
        self.dropout = nn.Dropout(dropout)
        self.score = nn.Linear(sizes.word, self.layers * self.tags)
        nn.init.normal_(self.score.weight, std=spread)
        nn.init.zeros_(self.score.bias)
        self.chain = LinearChain(self.layers, self.tags) if crf else None
        # masks of the tags of other corpora, and of those that a corpus leaves unmarked
        labels = sizes.labels
        answers, silent = torch.from_numpy(labels.allowed()), torch.from_numpy(labels.silent())
        tables = torch.zeros(2, len(answers), self.layers, self.tags, dtype=torch.bool)
        for c in self.classes:
            place = (slice(None), self.layer_of[c], slice(self.begin_of[c], self.begin_of[c] + 2))
            tables[0][place] = ~answers[:, c, None] & (not labels.shared)
            tables[1][place] = silent[:, c, None]
        self.some_foreign, self.some_silent = (bool(table.any()) for table in tables)
        known = {"_foreign": tables[0], "_silent": tables[1], "_answers": answers}
        for name, table in known.items():  # (datasets, G, K) twice, (datasets, C)
            self.register_buffer(name, table, persistent=False)

    def forward(self, states: States, gold: Gold, targets: Any = None) -> Tensor:
        """The loss over the words of the core; the rest belongs to other windows."""
        words, dataset = words_between(states.inputs, states.inputs.core), states.inputs.dataset
        scores = self._scores(states, words)  # (B, G, L, K)
        tags = self._tags(words, gold)  # (B, G, L)
        count = share_of(words.mask.sum(), scores)
        if self.some_silent:
            return self._open_cost(scores, tags, words.mask, dataset) / count
        if self.chain is not None:
            return -self.chain.log_likelihood(scores, tags, words.mask).sum() / count
        cost = F.cross_entropy(at_least_float32(scores).permute(0, 3, 1, 2), tags, reduction="none")
        return (cost * words.mask[:, None]).sum() / count

    def _open_cost(self, scores: Tensor, tags: Tensor, mask: Tensor, dataset: Tensor) -> Tensor:
        """Minus the log chance that every word has its tag or, without one, O or an unmarked tag."""
        scores = at_least_float32(scores)
        right = F.one_hot(tags, self.tags).bool() | ((tags == 0).unsqueeze(-1) & self._silent[dataset].unsqueeze(2))
        inside = scores.masked_fill(~right, NEVER)
        if self.chain is not None:
            return (self.chain.log_partition(scores, mask) - self.chain.log_partition(inside, mask)).sum()
        return ((scores.logsumexp(-1) - inside.logsumexp(-1)) * mask[:, None]).sum()

    def _scores(self, states: States, words: TaggedWords) -> Tensor:
        top = states.words.top.gather(1, words.unit.unsqueeze(-1).expand(-1, -1, states.words.top.shape[-1]))
        scores: Tensor = self.score(self.dropout(top))  # (B, L, G * K)
        scores = scores.view(*words.unit.shape, self.layers, self.tags).transpose(1, 2)
        if not self.some_foreign:
            return scores
        return scores.masked_fill(self._foreign[states.inputs.dataset].unsqueeze(2), NEVER)

    def _tags(self, words: TaggedWords, gold: Gold) -> Tensor:
        """Gold spans as tags. If two of one layer overlap, the first in the text wins."""
        batch, length = words.unit.shape
        tags = words.unit.new_zeros(batch, self.layers, length)
        device = tags.device
        layer = torch.tensor([self.layer_of.get(c, 0) for c in range(len(self.names))], device=device)[gold.label]
        begin = torch.tensor([self.begin_of.get(c, 0) for c in range(len(self.names))], device=device)[gold.label]
        inside = (words.unit[:, None] >= gold.start[..., None]) & (words.unit[:, None] < gold.end[..., None])
        inside &= gold.mask[..., None] & words.mask[:, None]  # (B, E, L)
        first = words.unit[:, None] == gold.start[..., None]
        of_span = torch.where(first, begin[..., None], begin[..., None] + 1)  # (B, E, L)
        rows = torch.arange(batch, device=device)
        free = torch.ones_like(tags, dtype=torch.bool)
        for at in range(gold.start.shape[1]):  # few gold spans per sentence, all sentences at once
            here = inside[:, at]  # (B, L)
            taken = free[rows, layer[:, at]]
            fits = (taken | ~here).all(-1, keepdim=True)  # all of the span is still free
            put = here & fits
            tags[rows, layer[:, at]] = torch.where(put, of_span[:, at], tags[rows, layer[:, at]])
            free[rows, layer[:, at]] = taken & ~put
        return tags

    def decisions(self, states: States, gold: Gold) -> Decisions:
        """Each predicted entity, as 0 against the log-odds of its least certain word: is all of it right?"""
        found = self.decode(states)
        spans = zip(*(part.cpu().tolist() for part in (gold.start, gold.end, gold.label, gold.mask)), strict=True)
        right = [{(s, e, c) for s, e, c, real in zip(*row, strict=True) if real} for row in spans]
        target = [tuple(key) in right[row] for row, *key in zip(*(part.tolist() for part in found[:4]), strict=True)]
        logits = torch.from_numpy(log_odds(found.score))
        return Decisions(torch.stack([torch.zeros_like(logits), logits], -1), torch.tensor(target, dtype=torch.long))

    def decode(self, states: States, thresholds: Thresholds = None, temperature: float = 1.0) -> Found:
        """Entities from the best tags; an I without its B starts a new entity. The least certain word gives the score.

        Words before the core are tagged too, so that an entity that starts there does not start again in the core.
        The temperature divides the log-odds of the score: the chances of words say little about whole entities.
        """
        inputs = states.inputs
        words = words_between(inputs, inputs.reach)
        scores = self._scores(states, words)
        if self.chain is not None:
            tags = self.chain.viterbi(scores, words.mask)
            chance = self.chain.marginals(scores, words.mask)
        else:
            chance = scores.float().softmax(-1)
            tags = chance.argmax(-1)
        sure = chance.gather(-1, tags.unsqueeze(-1)).squeeze(-1)
        tags = tags * words.mask[:, None]  # padding is O
        length = inputs.unit_mask.shape[1]
        after = torch.arange(1, length + 1, device=tags.device).expand_as(inputs.words)
        past = torch.where(inputs.ends, after, length).flip(1).cummin(1).values.flip(1)  # the word's end, for each unit
        past = past.gather(1, words.unit)  # (B, L) one past the last unit of each word
        arrays = (part.detach().cpu().numpy() for part in (tags, sure, words.unit, past, inputs.core))
        found = self._entities(arrays)
        if temperature != 1.0:
            found = found._replace(calibrated=1 / (1 + np.exp(-log_odds(found.score) / temperature)))
        shown = found.score if found.calibrated is None else found.calibrated
        limits = [threshold_of(self.names[label], thresholds) or 0.0 for label in found.label.tolist()]
        enough = shown >= np.array(limits)
        enough &= self._answers.cpu().numpy()[inputs.dataset.cpu().numpy()[found.sentence], found.label]
        return Found(*(None if part is None else part[enough] for part in found))

    def _entities(self, arrays: Iterable[Any]) -> Found:
        tags, sure, unit, past, core = arrays
        type_of = (tags + 1) // 2  # 0 for O, else the number of the type inside its layer, from 1
        before = np.concatenate([np.zeros_like(type_of[..., :1]), type_of[..., :-1]], -1)
        begins = (type_of > 0) & ((tags % 2 == 1) | (before != type_of))
        rows: list[tuple[int, int, int, int, float]] = []
        for row, layer, at in zip(*(part.tolist() for part in np.nonzero(begins)), strict=True):
            if not core[row, 0] <= unit[row, at] < core[row, 1]:
                continue  # starts outside the core: it belongs to another window
            end = at + 1
            while end < tags.shape[-1] and tags[row, layer, end] == 2 * type_of[row, layer, at]:
                end += 1
            label = self.classes[int(type_of[row, layer, at]) - 1 if self.one_layer else layer]
            score = float(sure[row, layer, at:end].min())
            rows.append((row, int(unit[row, at]), int(past[row, end - 1]), label, score))
        columns = list(zip(*rows, strict=True)) or [()] * 5
        kinds = (np.int64, np.int64, np.int64, np.int64, np.float64)
        return Found(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))


def log_odds(chance: Any) -> Any:
    """The logarithm of p / (1 - p), for certainties too."""
    tiny = np.finfo(np.float32).eps
    inside = np.clip(chance, tiny, 1 - tiny)
    return np.log(inside / (1 - inside))


def words_between(inputs: Inputs, bounds: Tensor) -> TaggedWords:
    """The words whose first unit is within the bounds, moved to the front, so that a chain runs over them only."""
    at = torch.arange(inputs.unit_mask.shape[1], device=inputs.unit_mask.device)
    chosen = inputs.starts & inputs.unit_mask & (at >= bounds[:, :1]) & (at < bounds[:, 1:])  # (B, L)
    order = (~chosen).long().argsort(dim=1, stable=True)
    return TaggedWords(order, chosen.gather(1, order))
