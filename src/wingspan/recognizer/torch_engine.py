"""A trained model on a device: inputs to tensors, through the model, and back."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch

from wingspan.decoding import Linkable
from wingspan.model import Packed, fetch, tensors
from wingspan.recipe import Learner, Recipe
from wingspan.recognizer.engine import Answer, Engine, Question, Read, unsearched
from wingspan.recognizer.precision import Precision, computing_in, lower, number_type


class TorchEngine(Engine):
    """A learner on a device, in a number type."""

    too_large = torch.OutOfMemoryError

    def __init__(
        self, recipe: Recipe, learner: Learner, device: str | torch.device | None, precision: Precision | str
    ) -> None:
        self.reader = recipe.reader
        self.device = usable_device(device)
        self.number_type = number_type(precision, self.device)
        self._learner = learner.to(self.device).eval()
        self.tokenize = learner.model.encoder.tokenize
        self.on_gpu = self.device.type == "cuda"
        lower(learner.model.encoder, precision, self.device)

    @property
    def learner(self) -> Learner:
        """The weights."""
        return self._learner

    @property
    def parameters(self) -> int:  # type: ignore[override]
        """How many numbers the weights are."""
        return sum(parameter.numel() for parameter in self._learner.parameters())

    @contextmanager
    def working(self) -> Iterator[None]:
        """Casts of weights to a lower precision are kept meanwhile; with a GPU, nobody looks for cycles."""
        with computing_in(self.number_type, self.device), unsearched() if self.on_gpu else nullcontext():
            yield

    @torch.inference_mode()
    def ask(self, question: Question, *, bounded: bool = False) -> Answer:
        """The forward pass of the model, then what its objectives read off it."""
        arrays = {"inputs": question.inputs, "spans": question.spans}
        on_device = tensors(Packed(arrays) if self.on_gpu else arrays, self.device)
        reader: Any = self._learner.objectives[self.reader]
        links: Any = self._learner.objectives["links"] if question.least_chances is not None else None
        inside, temperature = question.inside, question.temperature
        options: dict[str, Any] = {"temperature": temperature} if temperature != 1.0 else {}
        room = {"room": inside.unit_mask.size} if bounded else {}
        linkable = None
        with self.working():
            states = self._learner.model(*on_device.values(), spans=reader.reads_spans, features=links is not None)
            found = reader.decode(states, question.thresholds, **options, **room)
            if links is not None:
                fragments, left, right, distance = links.read_fragments(states, question.least_chances, **room)
                linkable = Linkable(fragments, left, right, distance, inside.core, temperature)
        return Answer(fetch(Read(inside, found, linkable)), states)


def usable_device(name: str | torch.device | None) -> torch.device:
    """The device of that name; without a name, a GPU if there is one."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise ValueError(f"no device {name!r}; use cpu, cuda or cuda:N") from None
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ValueError(f"device {str(device)!r}: there are {torch.cuda.device_count()} GPUs here; use cpu")
    return device
