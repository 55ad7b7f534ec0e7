"""The next batch, made in a thread while this one is learned from."""

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, Self, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class Ahead(Generic[Item, Made]):
    """What a function makes of each item, in order, one item ahead of the caller.

    The caller says when the thread may `start` on the next item: during a backward pass, say, when Python rests. A
    thread that started earlier would take turns with the caller at Python, and nothing would be won. An error in the
    thread is raised where its item is taken.
    """

    def __init__(self, make: Callable[[Item], Made], items: Iterable[Item]) -> None:
        self._make = make
        self._items = iter(items)
        self._next: Future[Made] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="wingspan-ahead")

    def start(self) -> None:
        """Lets the thread work on the next item, if there is one and none is waiting."""
        if self._next is None:
            for item in self._items:
                self._next = self._thread.submit(self._make, item)
                return

    def take(self) -> Made:
        """What was made of the next item; waits for it."""
        self.start()
        if self._next is None:
            raise IndexError("there is no item left")
        made, self._next = self._next, None
        return made.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Ends the thread, after the item it works on."""
        self._thread.shutdown(cancel_futures=True)
