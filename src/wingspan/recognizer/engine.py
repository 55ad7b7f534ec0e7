"""What computes for a recognizer: arrays in, found spans out. Siblings do it with torch, or with an exported graph."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from wingspan.batch import Found, Gold, Inputs, Tokenize
from wingspan.decoding import Linkable
from wingspan.labels import Thresholds

if TYPE_CHECKING:
    from wingspan.model import States
    from wingspan.recipe import Learner


class Question(NamedTuple):
    """What is asked of a batch."""

    inputs: Inputs
    inside: Inputs  # the same without context
    spans: Gold | None  # given spans, of a model that types them
    thresholds: Thresholds
    least_chances: Sequence[float] | None  # of fragments and links, by class; None unless the model has links
    temperature: float


class Read(NamedTuple):
    """What a model finds in a batch: first on its device, then as arrays."""

    inputs: Inputs  # arrays, narrowed
    found: Found
    linkable: Linkable | None

    def without_padding(self) -> Read | None:
        """As arrays, only what was found; None if that is more than there was room for."""
        found = self.found.without_padding()
        linkable = None if self.linkable is None else self.linkable.without_padding()
        if found is None or (linkable is None and self.linkable is not None):
            return None
        return Read(self.inputs, found, linkable)


class Answer(NamedTuple):
    """What is computed for a batch; the call of `read` waits for it."""

    read: Callable[[], Read]
    states: States | None = None  # of a trained model, on its device


class Engine(ABC):
    """A model that can be asked; asking changes nothing in it."""

    tokenize: Tokenize
    device: Any
    parameters: int
    on_gpu: bool = False
    too_large: ClassVar[type[Exception]] = MemoryError
    """What `ask` raises for a batch that does not fit into memory; a smaller one may."""

    @abstractmethod
    def ask(self, question: Question, *, bounded: bool = False) -> Answer:
        """Starts to compute. `bounded` waits for nothing on a GPU: as many spans as units, padded or cut off."""

    def working(self) -> AbstractContextManager[None]:
        """Held while several batches are asked for."""
        return nullcontext()

    @property
    def learner(self) -> Learner:
        """The weights, for those who train or look into a model."""
        raise ValueError("an exported model predicts and does nothing else; use the model folder that it was made from")


_searching = Lock()  # held by the thread that lets Python's collector wait


@contextmanager
def unsearched(*, lasting: bool = False) -> Iterator[None]:
    """Python does not look for reference cycles meanwhile, where there are none and it would go through all objects.

    Of several threads one makes it wait, and not for longer than a pool, so that it gets its turn in between. What is
    `lasting` counts as old afterwards, and is not searched at once.
    """
    if not gc.isenabled() or not _searching.acquire(blocking=False):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if lasting and not gc.get_freeze_count():  # nobody else has frozen anything
            gc.freeze()
            gc.unfreeze()  # which makes everything old
        gc.enable()
        _searching.release()
