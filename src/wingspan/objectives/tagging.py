"""BIO tags for words, by softmax or a linear-chain CRF; predicts entities from the tags.

Flat gold has one tag layer with 2m+1 tags; gold with nesting has one layer of three tags (O, B, I) for each type.
Tags of other corpora are impossible, and an unmarked word may have a tag of a type that its corpus does not mark.
See: Ji et al. 2022 eq. 5 to 11. `corpora.coverage` counts what tags cannot express (same-type nesting, discontinuity).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.batch import Array, Found, Gold, Inputs, labeled_spans
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.crf import LinearChain
from wingspan.layers.distributed import share_of
from wingspan.model import States
from wingspan.objectives import Decisions, Limits, Objective, Sizes, limits, where
from wingspan.text import Sentence

NEVER = -1e4  # the score of an impossible tag; finite, so that a chain can be summed over it


class TaggedWords(NamedTuple):
    """The words of a batch that are tagged, moved to the front, so that a chain runs over them only."""

    unit: Array  # (B, L) the first unit of each such word
    mask: Array  # (B, L)
    tags: Array | None = None  # (B, G, L) the right ones, in training


class Tagging(Objective):
    """Cross entropy, or the CRF's negative log likelihood, per word: a mean over words of the sum over layers."""

    predicts = True
    calibrates = True
    reads_spans = False
    _foreign: Tensor
    _silent: Tensor
    _answers: Tensor
    _class_of: Tensor

    def __init__(self, sizes: Sizes, *, crf: bool = False, dropout: float = 0.1, spread: float = 0.02) -> None:
        super().__init__()
        self.labels = sizes.labels
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
        known["_class_of"] = torch.tensor(classes or [0])
        for name, table in known.items():  # (datasets, G, K) twice, (datasets, C), (types,)
            self.register_buffer(name, table, persistent=False)

    def targets(self, sentences: Sequence[Sentence], inputs: Inputs) -> TaggedWords:
        """The words of the core with their tags; the rest belongs to other windows.

        If two entities of one layer overlap, the first in the text is tagged, and of those that start together the
        shortest.
        """
        at = np.arange(inputs.unit_mask.shape[1])
        chosen = inputs.starts & inputs.unit_mask & (at >= inputs.core[:, :1]) & (at < inputs.core[:, 1:])  # (B, L)
        order = np.argsort(~chosen, axis=1, kind="stable")
        tags = np.zeros((len(sentences), self.layers, len(at)), dtype=np.int64)
        for row, sentence in enumerate(sentences):
            first, past = sentence.core
            free = [first] * self.layers  # the first word of each layer that no entity has
            for start, end, label in labeled_spans(sentence, self.labels):
                layer, begin = self.layer_of[label], self.begin_of[label]
                inside, stop = max(start, first), min(end, past)
                if free[layer] <= inside < stop:
                    free[layer] = stop
                    tags[row, layer, inside - first : stop - first] = begin + 1
                    if inside == start:
                        tags[row, layer, start - first] = begin
        return TaggedWords(order, np.take_along_axis(chosen, order, 1), tags)

    def forward(self, states: States, gold: Gold, targets: TaggedWords) -> Tensor:
        """The loss over the words of the core."""
        words, tags, dataset = targets, targets.tags, states.inputs.dataset
        assert tags is not None
        scores = self._scores(states, words)  # (B, G, L, K)
        count = share_of(words.mask.sum(), scores)
        if self.some_silent:
            return self._open_cost(scores, tags, words.mask, dataset) / count
        if self.chain is not None:
            return -self.chain.log_likelihood(scores, tags, words.mask).sum() / count
        cost = F.cross_entropy(at_least_float32(scores).permute(0, 3, 1, 2), tags, reduction="none")
        loss: Tensor = (cost * words.mask[:, None]).sum() / count
        return loss

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

    def decisions(self, states: States, gold: Gold) -> Decisions:
        """Each predicted entity, as 0 against the log-odds of its least certain word: is all of it right?"""
        found = self.decode(states)
        spans = zip(*(part.cpu().tolist() for part in (gold.start, gold.end, gold.label, gold.mask)), strict=True)
        right = [{(s, e, c) for s, e, c, real in zip(*row, strict=True) if real} for row in spans]
        target = [tuple(key) in right[row] for row, *key in zip(*(part.tolist() for part in found[:4]), strict=True)]
        logits = log_odds(found.score.cpu())
        return Decisions(torch.stack([torch.zeros_like(logits), logits], -1), torch.tensor(target, dtype=torch.long))

    def decode(
        self, states: States, thresholds: Limits = None, temperature: float = 1.0, room: int | None = None
    ) -> Found:
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
        begins, last, least = runs(tags * words.mask[:, None], sure)  # padding is O
        begins &= within(words.unit, inputs.core)[:, None]  # others belong to another window
        kind = (tags - 1) // 2 if self.one_layer else torch.arange(self.layers, device=tags.device)[:, None]
        label = self._class_of[kind.clamp(min=0).expand_as(tags)]  # (B, G, L)
        score = least.double()
        shown = score if temperature == 1.0 else 1 / (1 + torch.exp(-log_odds(score) / temperature))
        enough = begins & (shown >= limits(self.names, thresholds, self.usual_threshold, shown)[label])
        enough &= self._answers[inputs.dataset[:, None, None], label]
        place, total = where(enough, room)
        row, _, at = place
        start, end = words.unit[row, at], past_words(inputs)[row, words.unit[row, last[place]]]
        parts = (row, start, end, label[place], score[place], *(() if temperature == 1.0 else (shown[place],)))
        return Found(*(part.detach() for part in parts))._replace(total=total)


def runs(tags: Tensor, sure: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where entities begin in BIO tags; there, their last word and the least certain of their words.  (..., L) each"""
    kind = (tags + 1) // 2  # 0 for O, else the number of the type inside its layer, from 1
    before = F.pad(kind, (1, 0))[..., :-1]
    begins = (kind > 0) & ((tags % 2 == 1) | (before != kind))
    at = torch.arange(tags.shape[-1], device=tags.device)
    number = begins.cumsum(-1)  # of the run; words of no run are certain
    last = torch.zeros_like(F.pad(tags, (1, 0))).scatter_reduce(-1, number, torch.where(kind > 0, at, 0), "amax")
    least = torch.full_like(F.pad(sure, (1, 0)), torch.inf)
    least = least.scatter_reduce(-1, number, sure.masked_fill(kind == 0, torch.inf), "amin")
    return begins, last.gather(-1, number), least.gather(-1, number)


def past_words(inputs: Inputs) -> Tensor:
    """One past the last unit of each unit's word.  (B, L)"""
    after = torch.arange(1, inputs.words.shape[1] + 1, device=inputs.ends.device).expand_as(inputs.words)
    number = inputs.ends.cumsum(1) - inputs.ends.long()  # how many words end before
    past = torch.zeros_like(F.pad(after, (1, 0))).scatter_reduce(1, number, after, "amax")
    return past.gather(1, number)


def log_odds(chance: Tensor) -> Tensor:
    """The logarithm of p / (1 - p), for certainties too."""
    tiny = torch.finfo(torch.float32).eps
    inside = chance.clamp(tiny, 1 - tiny)
    return torch.log(inside / (1 - inside))


def words_between(inputs: Inputs, bounds: Tensor) -> TaggedWords:
    """The words whose first unit is within the bounds."""
    at = torch.arange(inputs.unit_mask.shape[1], device=inputs.unit_mask.device)
    chosen = inputs.starts & inputs.unit_mask & within(at, bounds)  # (B, L)
    # the chosen ones come first, all in their order; a stable sort would do the same, but no graph has one
    count = chosen.sum(1, keepdim=True)
    place = torch.where(chosen, chosen.cumsum(1) - 1, count + (~chosen).cumsum(1) - 1)
    order = torch.zeros_like(place).scatter(1, place, at.expand_as(place))
    return TaggedWords(order, at < count)


def within(at: Tensor, bounds: Tensor) -> Tensor:
    """Which places are within the bounds of their sentence.  (L,) or (B, L), (B, 2) -> (B, L)"""
    inside: Tensor = (at >= bounds[:, :1]) & (at < bounds[:, 1:])
    return inside
