"""One thread that owns the models. Texts of many requests are predicted together, as many as a budget of tokens allows.

Nothing waits for a fuller batch: what has come while one round was computed is the next round. A request of many texts
takes at most a share of a round while others wait, so that nobody waits behind a large one. Texts of a client that
went away, or that waited longer than the time limit, are never predicted.
"""

import asyncio
import ctypes
import logging
import math
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from wingspan.decoding import Overlap
from wingspan.serving import Refusal, Settings
from wingspan.text import Document

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

log = logging.getLogger("wingspan.serving")


class RoundPace(NamedTuple):
    """How much is predicted at once on a device."""

    tokens: int  # of a round, where the settings leave it open
    batch_size: int | None  # sentences of a batch; None as everywhere


# of few sentences, sorted by length, batches of 32 would be padded by a fifth; a GPU wants many at once
ON_CPU, ON_GPU = RoundPace(8_192, 8), RoundPace(131_072, None)
CHARACTERS_PER_TOKEN = 4  # an estimate for budgets; the model divides a round by the exact number
SHARE = 4  # a request gets at most this part of a round while others wait
SMOOTHING = 0.2  # of the measured rate: the weight of the last round
SECONDS_TO_TRIM = 0.5  # between two times that freed memory is given back; seldom enough to cost little
WAIT_SHARE = 0.5  # a request is sent away if those before it take more than this part of the time limit


class Options(NamedTuple):
    """How texts are predicted; only texts with the same options share a round."""

    model: str
    threshold: float | tuple[tuple[str, float], ...] | None = None  # for all labels, or for each of these
    overlap: Overlap | None = None
    dataset: str | None = None

    def arguments(self) -> dict[str, Any]:
        """As `Recognizer.predict` takes them."""
        threshold = dict(self.threshold) if isinstance(self.threshold, tuple) else self.threshold
        return {"threshold": threshold, "overlap": self.overlap, "dataset": self.dataset}


@dataclass(eq=False)
class Pending:
    """The texts of a request, and its answer to come."""

    texts: Sequence[str]
    options: Options
    deadline: float
    answer: "asyncio.Future[Any]"
    call: Callable[["Recognizer"], Any] | None = None  # instead of predicting texts
    taken: int = 0  # texts that are predicted or in the round
    found: list[Document] = field(default_factory=list)
    gone: bool = False  # nobody waits for it any more

    @property
    def tokens(self) -> int:
        """An estimate of what is still to be done."""
        return sum(tokens_of(text) for text in self.texts[self.taken :])


class Taken(NamedTuple):
    """A part of a job that is in a round."""

    job: Pending
    texts: Sequence[str]


def tokens_of(text: str) -> int:
    """An estimate of the tokens of a text."""
    return 1 + len(text) // CHARACTERS_PER_TOKEN


class Worker:
    """The queue and its thread. All methods but those of the thread are called in the event loop."""

    def __init__(self, models: Mapping[str, "Recognizer"], settings: Settings) -> None:
        self.models = dict(models)
        self.settings = settings
        self.rounds = self.texts = self.tokens = 0  # done since the start
        self.rate: float | None = None  # tokens per second
        self._jobs: deque[Pending] = deque()
        self._waiting = 0  # tokens of the jobs in the queue, and of the round that is computed
        self._change = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the thread."""
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="wingspan-worker", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Takes nothing more, finishes what is in the queue, and waits for that."""
        with self._change:
            self._stopping = True
            self._change.notify()
        if self._thread is not None:
            self._thread.join()

    @property
    def alive(self) -> bool:
        """Whether the thread works and takes requests."""
        return self._thread is not None and self._thread.is_alive() and not self._stopping

    @property
    def waiting(self) -> int:
        """How many requests are in the queue."""
        return len(self._jobs)

    async def predict(self, texts: Sequence[str], options: Options, gone: "asyncio.Future[Any] | None" = None) -> Any:
        """Documents with entities. `gone` is done when the client is: then nothing more is computed for it."""
        if not texts:
            return []
        return await self._finished(self._put(texts, options), gone)

    async def run(
        self, model: str, call: Callable[["Recognizer"], Any], text: str, gone: "asyncio.Future[Any] | None" = None
    ) -> Any:
        """What a function makes of a model, in the thread that owns it; the text says about how long that takes."""
        return await self._finished(self._put([text], Options(model), call), gone)

    def _put(
        self, texts: Sequence[str], options: Options, call: Callable[["Recognizer"], Any] | None = None
    ) -> Pending:
        loop = asyncio.get_running_loop()
        job = Pending(texts, options, time.monotonic() + self.settings.time_limit, loop.create_future(), call)
        with self._change:
            if self._stopping:
                raise Refusal(503, "the service is shutting down; ask again in a moment", retry_after=5)
            wait = self._waiting / self.rate if self.rate else 0.0
            if len(self._jobs) >= self.settings.queue or wait > WAIT_SHARE * self.settings.time_limit:
                retry_after = max(1, math.ceil(wait / 2))
                raise Refusal(
                    429, f"too many requests are waiting; ask again in {retry_after} s, or one at a time", retry_after
                )
            self._jobs.append(job)
            self._waiting += job.tokens
            self._change.notify()
        return job

    async def _finished(self, job: Pending, gone: "asyncio.Future[Any] | None") -> Any:
        """The answer, unless the client goes away or the time is over first."""
        try:
            waited_for = {job.answer} if gone is None else {job.answer, gone}
            left = job.deadline - time.monotonic()
            await asyncio.wait(waited_for, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if job.answer.done():
                return job.answer.result()
        finally:
            self._drop(job)
        if gone is not None and gone.done():
            raise Refusal(499, "the client went away")
        limit = self.settings.time_limit
        raise Refusal(503, f"not done after {limit:g} s; send fewer or shorter texts at a time", retry_after=5)

    def _drop(self, job: Pending) -> None:
        """Takes a job out of the queue, if it is still there; its round goes on without an answer."""
        with self._change:
            job.gone = True
            if job in self._jobs:
                self._jobs.remove(job)
                self._waiting -= job.tokens

    # The thread

    def _work(self) -> None:
        trimmed = time.monotonic()
        while taken := self._next_round():
            began = time.monotonic()
            tokens = sum(tokens_of(text) for part in taken for text in part.texts)
            self._compute(taken)
            rate = tokens / max(time.monotonic() - began, 1e-6)
            with self._change:
                self.rate = rate if self.rate is None else (1 - SMOOTHING) * self.rate + SMOOTHING * rate
                self._waiting -= tokens
                self.rounds += 1
                self.texts += sum(len(part.texts) for part in taken)
                self.tokens += tokens
            with self._change:  # in a pause, what the last round freed goes back too
                self._change.wait_for(lambda: bool(self._jobs) or self._stopping, SECONDS_TO_TRIM)
            if time.monotonic() - trimmed > SECONDS_TO_TRIM:
                give_back_memory()
                trimmed = time.monotonic()

    def _next_round(self) -> list[Taken]:
        """Parts of waiting jobs with the same options, the oldest first; nothing at the end."""
        with self._change:
            while not self._jobs:
                if self._stopping:
                    return []
                self._change.wait()
            first = self._jobs[0]
            alike = [job for job in self._jobs if job.options == first.options and job.call is None]
            if first.call is not None:
                alike = [first]
            budget = whole = self.settings.batch_tokens or self._pace(first.options.model).tokens
            taken: list[Taken] = []
            for job in alike:
                if budget <= 0:
                    break
                share = budget if len(alike) == 1 else min(budget, whole // SHARE)
                texts = head(job.texts[job.taken :], share)
                taken.append(Taken(job, texts))
                job.taken += len(texts)
                budget -= sum(map(tokens_of, texts))
                self._jobs.remove(job)
                if job.taken < len(job.texts):
                    self._jobs.append(job)  # behind the others
            return taken

    def _pace(self, model: str) -> RoundPace:
        return ON_GPU if str(getattr(self.models[model], "device", "cpu")).startswith("cuda") else ON_CPU

    def _compute(self, taken: Sequence[Taken]) -> None:
        first = taken[0].job
        recognizer = self.models[first.options.model]
        try:
            if first.call is not None:
                settle(first, result=first.call(recognizer))
                return
            texts = [text for part in taken for text in part.texts]
            batch_size = self._pace(first.options.model).batch_size
            documents = iter(recognizer.predict(texts, batch_size=batch_size, **first.options.arguments()))
            for job, own in taken:
                job.found += [next(documents) for _ in own]
                if len(job.found) == len(job.texts):
                    settle(job, result=job.found)
        except Exception as error:  # a model is foreign code here: one text that it fails on must not end the service
            if len(taken) > 1:
                for part in taken:
                    self._compute([part])
            elif isinstance(error, Refusal):
                settle(first, error=error)
            elif isinstance(error, ValueError):  # about what was asked for, such as an unknown label
                settle(first, error=Refusal(422, " ".join(str(error).split())))
            else:
                trace = "".join(traceback.format_tb(error.__traceback__))  # without the message, which may quote texts
                log.error("%s in prediction\n%s", type(error).__name__, trace)
                settle(first, error=Refusal(500, "the model failed on this request; the service's log says where"))


def head(texts: Sequence[str], budget: int) -> Sequence[str]:
    """The first texts up to a budget of tokens, at least one."""
    count = used = 0
    for text in texts:
        used += tokens_of(text)
        if count and used > budget:
            break
        count += 1
    return texts[:count]


def settle(job: Pending, result: Any = None, error: Refusal | None = None) -> None:
    """Hands the answer to the event loop, unless nobody waits for it any more."""

    def answer() -> None:
        if not job.answer.done():
            job.answer.set_result(result) if error is None else job.answer.set_exception(error)

    if not job.gone:
        job.answer.get_loop().call_soon_threadsafe(answer)


def give_back_memory() -> None:
    """Asks the C library to return what was freed: tensors of ever other sizes leave holes that add up."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)


def warmed(models: Iterable["Recognizer"]) -> None:
    """Predicts a text with every model, so that the first request does not wait for what is set up once."""
    for recognizer in models:
        recognizer.predict("A first text.")
