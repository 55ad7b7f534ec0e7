"""Encoder, candidates, spans, head, in that order: one forward pass from inputs to states."""

from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from wingspan.batch import Array, Gold, Inputs, narrowed
from wingspan.candidates import CandidatePolicy, Candidates
from wingspan.encoders import Encoder, Words
from wingspan.heads import Head, Scored
from wingspan.layers.grid import pick
from wingspan.layers.schedules import Moment
from wingspan.layers.tracing import exporting
from wingspan.spans import SpanRepresentation


class States(NamedTuple):
    """The results of a model for a batch; objectives need nothing else."""

    inputs: Inputs  # narrowed, as candidates and gold are
    words: Words
    candidates: Candidates | None = None
    spans: Tensor | None = None  # (B, M, S); None if the scores were computed without it
    features: Tensor | None = None  # (B, M, F)
    scores: Tensor | None = None  # (B, M, C)
    divergence: Tensor | None = None  # (B, M)
    samples: Tensor | None = None  # (K, B, M, C) scores of a stochastic head's draws, in training
    gold: Tensor | None = None  # (B, E, S) vectors of the gold spans, independent of the candidates
    moment: Moment | None = None  # the point in training; None outside it
    required: Gold | None = None  # in training, the spans that are candidates in any case


class Scorer(nn.Module):
    """Span vectors and their head; a tagger has none."""

    def __init__(self, candidates: CandidatePolicy, spans: SpanRepresentation, head: Head) -> None:
        super().__init__()
        self.candidates = candidates
        self.spans = spans
        self.head = head

    def saves_rows(self, candidates: Candidates) -> bool:
        """Whether only the spans of the grid that count are scored: on a CPU, where hidden layers take their time.

        Of short sentences every fifth span would end behind the sentence. A GPU would wait for their number.
        """
        hidden = len(self.head.layers) > 1
        plain = not (torch.is_grad_enabled() or self.training or exporting())
        return hidden and plain and candidates.width is not None and candidates.mask.device.type == "cpu"

    def counting(self, words: Words, candidates: Candidates) -> Scored:
        """The scores of spans that count; those of others are 0.  (B, M, C)"""
        mask, entry = candidates.mask, self.head.entry
        if type(self.spans).project is SpanRepresentation.project:  # a linear layer over vectors, like the others
            entered = entry(self.spans(words, candidates)[mask])
        else:
            entered = self.spans.project(words, candidates, entry)[mask]
        scored = self.head.finish(entered)  # (N, C)
        divergence = None if scored.divergence is None else spread(scored.divergence, mask)
        return Scored(None, spread(scored.scores, mask), divergence)


def spread(rows: Tensor, mask: Tensor) -> Tensor:
    """Rows at the places of a mask, in order; 0 elsewhere.  (N, ...), (B, M) -> (B, M, ...)"""
    room = rows.new_zeros(*mask.shape, *rows.shape[1:])
    room[mask] = rows
    return room


class SpanModel(nn.Module):
    """The model that is saved and used for prediction, together with the objectives that predict."""

    def __init__(self, encoder: Encoder, scorer: Scorer | None) -> None:
        super().__init__()
        self.encoder = encoder
        self.scorer = scorer

    def encode(self, inputs: Inputs) -> tuple[Inputs, Words]:
        """Vectors of the units that spans can hold; context is encoded, then left out."""
        words: Words = self.encoder(inputs)
        if inputs.near is None:
            return inputs, words
        top, *layers = (pick(layer, inputs.near.unit) for layer in (words.top, *words.layers))
        return narrowed(inputs), Words(top, tuple(layers), words.sentence, inputs.near.unit_mask)

    def forward(
        self,
        inputs: Inputs,
        gold: Gold | None = None,
        *,
        vectors: bool = False,
        spans: bool = True,
        gold_vectors: bool = False,
        features: bool = False,
        required: Gold | None = None,
    ) -> States:
        """Scores of all candidates; without `spans` there are no candidates.

        The flags ask for span `vectors`, `gold_vectors` and `features`, which are otherwise left out where possible. In
        training, `required` spans are candidates in any case; by default the gold ones.
        """
        inputs, words = self.encode(inputs)
        states = States(inputs, words)
        if self.scorer is None:
            return states
        if gold_vectors:
            assert gold is not None
            states = states._replace(gold=self.scorer.spans(words, listed(gold)))
        if not spans:
            return states
        required = gold if required is None else required
        candidates: Candidates = self.scorer.candidates(inputs, words, required)
        states = states._replace(candidates=candidates, required=required)
        head = self.scorer.head
        if not (vectors or features) and self.scorer.saves_rows(candidates):
            return states._replace(**self.scorer.counting(words, candidates)._asdict())
        if not (vectors or (self.training and head.wants_vectors)):
            scored = head.finish(self.scorer.spans.project(words, candidates, head.entry))
            if scored.features is not None or not features:
                return states._replace(**scored._asdict())
        represented = self.scorer.spans(words, candidates)
        scored = head(represented)
        if scored.features is None:
            scored = scored._replace(features=represented)
        return states._replace(spans=represented, **scored._asdict())


def listed(gold: Gold) -> Candidates:
    """The gold spans as candidates; rows with fewer spans are padded with their first word."""
    return Candidates(gold.start, gold.end.clamp(min=1), gold.mask, None)


def tensors(value: Any, device: torch.device | str) -> Any:
    """Arrays to tensors on a device, through named tuples and mappings: the one place where numpy becomes torch."""
    if isinstance(value, Packed):
        return value.on(device)
    return changed(np.ndarray, value, lambda array: torch.from_numpy(array).to(device, non_blocking=True))


def fetch(value: Any) -> Callable[[], Any]:
    """Tensors to arrays, through named tuples and mappings: the one way back.

    Copies from a GPU start at once; the call of the result waits for them.
    """
    there: list[Tensor] = []
    changed(Tensor, value, there.append)
    here = changed(Tensor, value, lambda tensor: tensor.detach().to("cpu", non_blocking=tensor.is_cuda))
    gpu = next((tensor.device for tensor in there if tensor.is_cuda), None)
    done = None if gpu is None else torch.cuda.current_stream(gpu).record_event(torch.cuda.Event(blocking=True))

    def wait() -> Any:
        if done is not None:
            done.synchronize()
        return changed(Tensor, here, lambda tensor: tensor.numpy())

    return wait


def changed(kind: type, value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with all arrays, or all tensors, in it changed."""
    if isinstance(value, kind):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(changed(kind, part, change) for part in value))
    if isinstance(value, Mapping):
        return {name: changed(kind, part, change) for name, part in value.items()}
    return value


class Packed:
    """A batch whose arrays lie one after the other in pinned memory, so that one copy takes all of them to a GPU.

    Arrays that are copied one by one cost a call each, and from ordinary memory a GPU may make the caller wait.
    """

    def __init__(self, value: Any) -> None:
        arrays: list[Array] = []
        changed(np.ndarray, value, arrays.append)
        arrays.sort(key=lambda array: (-array.itemsize, array.dtype.str))  # each at a multiple of its own item size
        self.value = value
        self.kinds = [list(group) for _, group in groupby(arrays, key=lambda array: array.dtype)]
        size = sum(array.nbytes for array in arrays)
        self.room = torch.empty(size, dtype=torch.uint8, pin_memory=torch.cuda.is_available())
        for arrays, kind in self._kinds(self.room):
            np.concatenate([array.ravel() for array in arrays], out=kind.numpy())

    def on(self, device: torch.device | str) -> Any:
        """The batch with tensors on a device, all of them in one block of its memory."""
        parts = {id(array): part for array, part in self._parts(self.room.to(device, non_blocking=True))}
        return changed(np.ndarray, self.value, lambda array: parts[id(array)])

    def _parts(self, room: Tensor) -> Iterator[tuple[Array, Tensor]]:
        """Each array, and the part of the room that is its own."""
        for arrays, kind in self._kinds(room):
            for array, part in zip(arrays, kind.split([array.size for array in arrays]), strict=True):
                yield array, part.view(array.shape)

    def _kinds(self, room: Tensor) -> Iterator[tuple[list[Array], Tensor]]:
        """The arrays of each type, and their part of the room."""
        parts = room.split([sum(array.nbytes for array in arrays) for arrays in self.kinds])
        for arrays, part in zip(self.kinds, parts, strict=True):
            yield arrays, part.view(torch.from_numpy(np.empty(0, arrays[0].dtype)).dtype)
