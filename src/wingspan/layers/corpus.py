"""Scores from the view of one corpus: classes of other corpora are impossible, and unmarked types are unknown.

If a corpus leaves a type unmarked, a span without a mark is nothing or of that type, and the chances of both are added:
an unmarked span costs -log(p(nothing) + sum of p(unmarked types)). Shared labels that a corpus does not have at all are
treated the same way in prediction.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from wingspan.labels import LabelSet

Foreign = Literal["never", "multiply"]
"""Classes of other corpora: never possible (a score of minus infinity), or possible at a score of 0 (Oi and Miwa's code
multiplies scores by 0 and 1, so that they keep a share of the chance and can win)."""


class CorpusClasses(nn.Module):
    """For each corpus its classes, and those that its training documents leave unmarked."""

    nothing: Tensor
    _own: Tensor
    _answers: Tensor
    _silent: Tensor
    _lost: Tensor

    def __init__(self, labels: LabelSet, foreign: Foreign = "never") -> None:
        super().__init__()
        self.foreign = foreign
        answers, silent = torch.from_numpy(labels.allowed()), torch.from_numpy(labels.silent())
        own = torch.ones_like(answers) if labels.shared else answers
        tables = {
            "nothing": torch.tensor([labels.nothing(name) for name in labels.datasets]),
            "_own": own,  # (datasets, C) the classes of its block
            "_answers": answers,  # ... that may be predicted for it
            "_silent": silent,  # ... that its training documents leave unmarked
            "_lost": own & ~answers,  # ... shared classes that it does not have
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)
        self._learns_all = bool(own.all() and not silent.any())
        self._reads_all = bool(answers.all())
        self._some_silent, self._some_lost = bool(silent.any()), bool((own & ~answers).any())

    def nothing_of(self, dataset: Tensor) -> Tensor:
        """The class of no entity for each sentence.  (B,) -> (B, 1)"""
        return self.nothing[dataset].unsqueeze(-1)

    def learned(self, scores: Tensor, dataset: Tensor) -> Tensor:
        """Log chances to learn from; "nothing" includes the classes that a corpus leaves unmarked.  (B, M, C)

        Unmarked classes keep their chances: where several labels have one meaning, some of their spans may be marked.
        """
        chances = (scores if self._learns_all else self._within(scores, dataset)).log_softmax(-1)
        return self._held_by_nothing(chances, dataset, self._silent[dataset]) if self._some_silent else chances

    def within_block(self, scores: Tensor, dataset: Tensor, known: Tensor) -> Tensor:
        """Log chances; "nothing" includes the classes that are not `known`.  (B, M, C), (B,), (B, C) -> (B, M, C)"""
        return self._held_by_nothing(self._within(scores, dataset).log_softmax(-1), dataset, ~known)

    def read(self, scores: Tensor, dataset: Tensor) -> Tensor:
        """Scores to predict from; "nothing" includes the classes that a corpus does not have.  (B, M, C)"""
        if self._reads_all:
            return scores
        scores = self._within(scores, dataset)
        if not self._some_lost:
            return scores
        lost = self._lost[dataset]
        return self._held_by_nothing(scores, dataset, lost).masked_fill(lost.unsqueeze(1), -torch.inf)

    def charged(self, dataset: Tensor) -> Tensor:
        """The classes that the sentence's corpus marks, so that yes or no is known for every span.  (B, 1, C)"""
        marks = self._answers & ~self._silent
        return marks.scatter(1, self.nothing[:, None], False)[dataset].unsqueeze(1)

    def possible(self, dataset: Tensor) -> Tensor:
        """The labels that may be predicted in each sentence.  (B, 1, C)"""
        labels = self._answers if self.foreign == "never" else torch.ones_like(self._answers)
        return labels.scatter(1, self.nothing[:, None], False)[dataset].unsqueeze(1)

    def _within(self, scores: Tensor, dataset: Tensor) -> Tensor:
        """Scores with those of other corpora at minus infinity, or at 0."""
        own = self._own[dataset].unsqueeze(1)  # (B, 1, C)
        return scores * own if self.foreign == "multiply" else scores.masked_fill(~own, -torch.inf)

    def _held_by_nothing(self, scores: Tensor, dataset: Tensor, held: Tensor) -> Tensor:
        """Scores, or log chances, in which "nothing" also includes the `held` classes, (B, C).  (B, M, C)"""
        nothing = self.nothing[dataset].view(-1, 1, 1)
        into = held.unsqueeze(1) | (torch.arange(scores.shape[-1], device=scores.device) == nothing)
        together = scores.masked_fill(~into, -torch.inf).logsumexp(-1, keepdim=True)  # (B, M, 1)
        return scores.scatter(-1, nothing.expand_as(together), together)


class CorpusTokens(nn.Module):
    """The name of a sentence's corpus as a learned token. Ids from `vocabulary` on are corpora.

    A row starts as the mean of the pieces of the corpus' name. Rows are kept beside the pretrained table, so that they
    learn even if it is frozen, quantized or adapted. See: Oi and Miwa, whose released code adds them for one kind of
    encoder only and never trains them.
    """

    def __init__(self, table: nn.Module, vocabulary: int, pieces: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        with torch.no_grad():
            device = next(table.parameters()).device
            rows = [table(torch.tensor(ids, device=device)).float().mean(0).cpu() for ids in pieces]
        self.rows = nn.Embedding.from_pretrained(torch.stack(rows), freeze=False)

    def forward(self, table: nn.Module, tokens: Tensor) -> Tensor:
        """The embeddings of pieces and corpora.  (B, T) -> (B, T, D)"""
        corpus = tokens - self.vocabulary
        embedded: Tensor = table(tokens.clamp(max=self.vocabulary - 1))
        rows = self.rows(corpus.clamp(min=0)).to(embedded.dtype)
        return torch.where((corpus >= 0).unsqueeze(-1), rows, embedded)
