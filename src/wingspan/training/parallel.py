"""Several processes, one training: who takes which sentences of a batch, and how dev documents are shared out."""

from __future__ import annotations

from collections.abc import Sequence

from accelerate import Accelerator
from accelerate.utils import gather_object

from wingspan.recognizer import Recognizer
from wingspan.text import Document


def part_of(batch: Sequence[int], number: int, processes: int) -> list[int]:
    """The sentences of a batch that a process takes: every n-th, so that all get long and short ones."""
    return list(batch[number::processes])


def predict_together(
    recognizer: Recognizer, documents: Sequence[Document], accelerator: Accelerator, batch_size: int
) -> list[Document]:
    """All documents with their entities, on every process; each has read some of them."""
    parts = shared_out(documents, accelerator.num_processes)
    found = recognizer.predict(parts[accelerator.process_index], batch_size=batch_size)
    gathered: list[Document] = gather_object(found) if accelerator.num_processes > 1 else found
    return gathered


def shared_out(documents: Sequence[Document], processes: int) -> list[list[Document]]:
    """Parts of about equal length, in order; rows of one document stay together: they may be each other's context."""
    total = sum(len(document.text) for document in documents)
    parts: list[list[Document]] = [[] for _ in range(processes)]
    part, passed = 0, 0
    for at, document in enumerate(documents):
        alone = at == 0 or document.group is None or document.group != documents[at - 1].group
        if alone:
            part = min(passed * processes // max(total, 1), processes - 1)
        parts[part].append(document)
        passed += len(document.text)
    return parts
