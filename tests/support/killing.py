"""Functions that kill their process, to see what is left of its work."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def deadly(original: Callable, number: int, last: Callable[..., None] | None = None) -> Callable:
    """The function, with SIGKILL at the so-manieth call."""
    calls = 0

    def counted(*arguments, **others):
        nonlocal calls
        calls += 1
        if calls == number:
            if last is not None:
                last(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **others)

    return counted
