"""Learns what teachers think of spans, beside the gold.

Teachers may have another encoder, another tokenizer and other labels: what they say of a sentence is kept in words, by
the classes of the student (`Taught`), and is made once, before training, by `training.teaching`. See: Hinton et al.
2015, arXiv 1503.02531, section 2.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from wingspan.batch import Array, Gold, Inputs
from wingspan.candidates import Candidates
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.corpus import CorpusClasses, Foreign
from wingspan.layers.distributed import share_of
from wingspan.model import States
from wingspan.objectives import Objective, Sizes
from wingspan.text import Sentence

KEY = 1 << 31
"""Start and end of a span in words as one number: start * KEY + end. No sentence has so many words."""


class Taught(NamedTuple):
    """Chances of a sentence's spans by teachers that know the same labels; those that are not listed are nothing."""

    classes: Array  # (K,) the student's classes that they know
    until: Array  # (L,) the end of the longest span from each word that they score; 0 where they score none
    start: Array  # (R,) in words; in the order of starts, then ends
    end: Array  # (R,)
    chance: Array  # (R, K)


class Lessons(NamedTuple):
    """What teachers say of a batch; those that know the same labels speak with one voice, of V."""

    known: Array  # (B, V, C) the classes that they know
    until: Array  # (B, V, L)
    span: Array  # (B, V, R) the listed spans as keys, in order; padding comes last
    chance: Array  # (B, V, R, C)


class Distillation(Objective):
    """Cross entropy of the student's chances against the mean chances of the teachers, over spans that both score.

    Both are taken at the `temperature`, and the loss is multiplied by its square, so that gradients keep their size. A
    class that teachers do not know costs nothing: their "nothing" is the student's "nothing" or any such class. The
    other settings are those of the classification whose scores it teaches.
    """

    def __init__(
        self,
        sizes: Sizes,
        *,
        temperature: float = 1.0,
        link: Literal["softmax", "sigmoid"] = "softmax",
        reduction: Literal["cells", "sentences"] = "cells",
        foreign: Foreign = "never",
    ) -> None:
        super().__init__()
        if temperature <= 0:
            raise ValueError(f"the teachers' temperature is {temperature}; give a number above 0")
        self.temperature = temperature
        self.link = link
        self.reduction = reduction
        self.num_classes = sizes.labels.num_classes
        self.classes = CorpusClasses(sizes.labels, foreign)

    def targets(self, sentences: Sequence[Sentence], inputs: Inputs) -> Lessons:
        """What teachers said of these sentences; of a sentence that none has seen, nothing."""
        said: list[Sequence[Taught]] = [sentence.taught for sentence in sentences]
        voices = max([1, *map(len, said)])
        longest = max([1, *(len(sentence.words) for sentence in sentences)])
        most = max([1, *(len(taught.start) for each in said for taught in each)])
        shape = (len(sentences), voices)
        lessons = Lessons(
            np.zeros((*shape, self.num_classes), dtype=bool),
            np.zeros((*shape, longest), dtype=np.int64),
            np.full((*shape, most), np.iinfo(np.int64).max),
            np.zeros((*shape, most, self.num_classes), dtype=np.float32),
        )
        for row, each in enumerate(said):
            for voice, taught in enumerate(each):
                at, listed = (row, voice), slice(len(taught.start))
                lessons.known[at][taught.classes] = True
                lessons.until[at][: len(taught.until)] = taught.until
                lessons.span[at][listed] = taught.start * KEY + taught.end
                lessons.chance[at][listed, taught.classes] = taught.chance
        return lessons

    def forward(self, states: States, gold: Gold, targets: Lessons) -> Tensor:
        """The loss over the candidates that teachers score; a mean over voices where several do."""
        assert states.scores is not None
        assert states.candidates is not None
        draws = states.scores[None] if states.samples is None else states.samples  # of a stochastic head
        start, end, whole = in_words(states.candidates, states.inputs)
        counts, keys = states.candidates.mask & whole, start * KEY + end
        costs, scored = [], []
        for known, until, span, chance in zip(*(part.unbind(1) for part in targets), strict=True):
            scored.append(counts & (until.gather(1, start) >= end))  # (B, M)
            said = listed(keys, span, chance)  # (B, M, C)
            cost = torch.stack([self._cost(scores, states.inputs.dataset, said, known) for scores in draws]).mean(0)
            costs.append(cost.masked_fill(~scored[-1], 0.0))
        voices = torch.stack(scored).sum(0)  # (B, M)
        total = self.temperature**2 * torch.stack(costs).sum(0) / voices.clamp(min=1)
        return total.sum() / share_of(len(total) if self.reduction == "sentences" else (voices > 0).sum(), total)

    def _cost(self, scores: Tensor, dataset: Tensor, said: Tensor, known: Tensor) -> Tensor:
        """The cost of each candidate.  (B, M, C), (B,), (B, M, C), (B, C) -> (B, M)"""
        scores = at_least_float32(scores) / self.temperature
        if self.link == "sigmoid":
            real = known.unsqueeze(1).to(scores.dtype)
            cost = F.binary_cross_entropy_with_logits(scores, said.to(scores.dtype), reduction="none")
            return (cost * real).sum(-1) / real.sum(-1).clamp(min=1)
        nothing = self.classes.nothing_of(dataset).unsqueeze(-1)  # (B, 1, 1)
        total = said.sum(-1, keepdim=True)
        said = said / total.clamp(min=1.0)  # of a teacher that gives a span several labels
        said = said.scatter(-1, nothing.expand_as(total), (1.0 - total).clamp(min=0.0))
        chances = self.classes.within_block(scores, dataset, known)
        return -(said * chances.masked_fill(said == 0, 0.0)).sum(-1)


def in_words(candidates: Candidates, inputs: Inputs) -> tuple[Tensor, Tensor, Tensor]:
    """Candidates as spans of words, and which of them start and end with a word.  (B, M) each"""
    last = (candidates.end - 1).clamp(min=0, max=inputs.words.shape[1] - 1)
    whole = inputs.starts.gather(1, candidates.start) & inputs.ends.gather(1, last)
    return inputs.words.gather(1, candidates.start), inputs.words.gather(1, last) + 1, whole


def listed(keys: Tensor, span: Tensor, chance: Tensor) -> Tensor:
    """The chances of candidates, 0 for those that are not listed.  (B, M), (B, R), (B, R, C) -> (B, M, C)"""
    at = torch.searchsorted(span.contiguous(), keys.contiguous()).clamp(max=span.shape[1] - 1)  # (B, M)
    found = span.gather(1, at) == keys
    return chance.gather(1, at.unsqueeze(-1).expand(-1, -1, chance.shape[-1])) * found.unsqueeze(-1)
