"""A service on a free port of this machine, and what a model is to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import uvicorn

from wingspan.serving import Settings
from wingspan.serving.service import service
from wingspan.text import Document, Entity


class SlowModel:
    """Finds the first word of every text, slowly, and remembers what it was asked for in each round."""

    recipe = SimpleNamespace(name="slow", overlap="nested", protocol="recognition")
    labels = SimpleNamespace(types={"main": ("First",)}, target="main")
    facts: dict[str, object] = {}  # noqa: RUF012

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds
        self.rounds: list[list[str]] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun = threading.Event()

    def predict(self, texts, **options) -> list[Document]:
        texts = [texts] if isinstance(texts, str) else texts
        self.rounds.append(list(texts))
        self.begun.set()
        self.go_on.wait(20)
        time.sleep(self.seconds * len(texts))
        if any(text.startswith("fail") for text in texts):
            raise RuntimeError(f"cannot read {texts}")
        return [
            Document(str(n), text, (Entity.at("First", 0, len(text.split()[0]), 0.9),) if text.split() else ())
            for n, text in enumerate(texts)
        ]


@contextmanager
def listening(models, settings: Settings | None = None) -> Iterator[tuple[str, uvicorn.Server]]:
    """The address of a running service, and its server."""
    app = service(models, settings or Settings())
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started and time.monotonic() < end:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()
