"""What an experiment has done: one JSON line per finished run, and who is at which run right now.

A run is claimed with a lock that ends with the process that holds it, however that ends. Its line is the last thing it
writes; a kill can tear that line only, and whoever writes next cuts it off. So no run is lost, and none is done twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from wingspan.corpora.files import atomic_write
from wingspan.evaluation.scores import Counts
from wingspan.training.journal import Journal, read_journal

VERDICTS = ("correct", "incorrect", "partial", "missed", "spurious")


class Ledger:
    """The lines of an output folder, and the counts of every document beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "results.jsonl"
        self.claims = folder / ".claims"

    def prepare(self) -> None:
        """Makes the folder and tries to write in it, before anything is trained."""
        self.claims.mkdir(parents=True, exist_ok=True)
        trial = self.claims / "trial"
        trial.write_text("")
        trial.unlink(missing_ok=True)  # of two that begin together, the other may have been faster

    def lines(self) -> dict[str, dict[str, Any]]:
        """The finished runs by their identity; of a run that is there twice the first."""
        if not self.path.exists():
            return {}
        found: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(read_journal(self.path), 1):
            if line["event"] != "run" or not isinstance(line.get("id"), str):
                raise ValueError(f"{self.path}:{number}: not the line of a run; choose another output folder")
            found.setdefault(line["id"], line)
        return found

    @contextmanager
    def claim(self, run: str) -> Iterator[bool]:
        """Whether this process may do the run; nobody else may while it does."""
        lock = FileLock(self.claims / f"{run}.lock")
        try:
            lock.acquire(blocking=False)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def add(self, run: str, line: Mapping[str, Any], documents: Mapping[str, tuple[Counts, ...]]) -> None:
        """Writes the documents' counts, then the line that says that the run is done."""
        rows = {
            part: [[getattr(one, name) for name in VERDICTS] for one in counts] for part, counts in documents.items()
        }
        with atomic_write(self._documents(run)) as file:
            file.write(json.dumps({"verdicts": VERDICTS, **rows}) + "\n")
        with FileLock(self.claims / "results.lock"), Journal(self.path) as journal:
            journal.write("run", id=run, **line)

    def documents(self, run: str, part: str) -> tuple[Counts, ...]:
        """The counts of every document of a part, in the order of the corpus."""
        path = self._documents(run)
        try:
            rows = json.loads(path.read_text(encoding="utf-8"))[part]
            return tuple(Counts(*row) for row in rows)
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: damaged; delete it and the run's line in {self.path.name}") from error

    def _documents(self, run: str) -> Path:
        return self.folder / "documents" / f"{run}.json"
