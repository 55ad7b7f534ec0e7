"""Processes forked from one server that has torch and the modules of the tests loaded."""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerContext

MODULES = ["plans", "resumable", "twins"]
"""All modules whose functions are started; a process of tests has one server, and the first start fixes its imports."""


def forking() -> ForkServerContext:
    """The context in which to start a process."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # Python 3.11 does not tell the server
    return context
