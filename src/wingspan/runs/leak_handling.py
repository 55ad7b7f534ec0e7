"""What a training does about documents that it shares with what it is scored on: drop them, stop, or say so."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from wingspan.corpora.leak_report import Leaks, OnLeak
from wingspan.corpora.leaks import find_leaks
from wingspan.runs.speaking import counted
from wingspan.text import Document

DONE = {"drop": "are dropped", "allow": "are trained on all the same (--on-leak allow), so scores are too good"}


@dataclass(frozen=True)
class Handled:
    """What was found and done, and the documents that are left to train on."""

    on_leak: OnLeak
    leaks: Leaks
    documents: Sequence[Document]
    corpora: Mapping[str, int]
    """How many documents of each corpus leak."""

    @property
    def line(self) -> str:
        """All of it in one sentence."""
        found = self.leaks
        if not found.against_documents:
            return "Leaks: there are no dev or test documents to look for in training."
        seen = counted(found.train_documents, "training document")
        besides = [counted(found.sentences.equal, "equal sentence"), counted(found.shared_ids, "shared id")]
        if found.sentences.covered:
            besides.append(f"{counted(len(found.sentences.covered), 'document')} sentence by sentence")
        if found.short:
            besides.append(f"{counted(found.short, 'equal document')} too short to count")
        if not found.leaking:
            return f"Leaks: none of {seen} is in {' or '.join(found.parts)}; there are {', '.join(besides)}."
        if len(self.corpora) > 1:
            each = ", ".join(f"{name} {count:,}" for name, count in self.corpora.items() if count)
            seen = f"{seen} ({each})"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in found.kinds.items() if count)
        return (
            f"Leaks: {found.leaking:,} of {seen} are in {leaky(found)} ({kinds}) and {DONE[self.on_leak]}; "
            f"besides, {', '.join(besides)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """What the model and the results keep; `leaks.json` has the pairs too."""
        dropped = self.leaks.leaking if self.on_leak == "drop" else 0
        return {"on_leak": self.on_leak, "dropped": dropped, "said": self.line, **self.leaks.counts()}


def handle_leaks(
    train: Sequence[Document],
    held_out: Mapping[str, Sequence[Document]],
    on_leak: OnLeak,
    target: str | None = None,
) -> Handled:
    """Compares training documents with those that are held out, by the names of their parts, and acts.

    Only documents that are, or nearly are, the same are dropped or stop the training; sentences and ids are told.
    Something must be left to train on; of several corpora, of the `target`.
    """
    if on_leak not in get_args(OnLeak):
        raise ValueError(f"on_leak is {on_leak!r}; use {', '.join(get_args(OnLeak))}")
    rows: dict[str, list[int]] = defaultdict(list)
    for at, document in enumerate(train):
        rows[document.dataset].append(at)
    found = find_leaks(
        {name: [train[at] for at in places] for name, places in rows.items()},
        {name: documents for name, documents in held_out.items() if documents},
    )
    leaking = {rows[name][at] for name, places in found.rows.items() for at in places}
    if leaking and on_leak == "stop":
        first = (*found.pairs, *found.near)[0].train.id
        raise ValueError(
            f"{found.leaking:,} of {counted(found.train_documents, 'training document')} are in {leaky(found)}, such "
            f"as {first!r}; see them with `wingspan leaks`, leave them out with --on-leak drop"
        )
    needed = set(range(len(train)) if target is None else rows.get(target, ()))
    if needed and on_leak == "drop" and needed <= leaking:
        all_of = counted(found.train_documents, "training document") if target is None else f"documents of {target!r}"
        raise ValueError(
            f"all {all_of} are in {leaky(found)}, so that none is left to train on; give other documents, or use them "
            "all the same with --on-leak allow"
        )
    kept = [document for at, document in enumerate(train) if at not in leaking] if on_leak == "drop" else train
    corpora = {name: len({train[rows[name][at]].group or at for at in found.rows.get(name, ())}) for name in rows}
    return Handled(on_leak, found, kept, corpora)


def leaky(found: Leaks) -> str:
    """The parts that have documents in training."""
    return " and ".join(part for part, kinds in found.parts.items() if any(kinds.values()))
