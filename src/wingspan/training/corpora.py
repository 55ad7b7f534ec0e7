"""The corpora of a training, from files or as documents."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, get_args

from wingspan.corpora.formats import read
from wingspan.corpora.leaks import Leaks, OnLeak, find_leaks
from wingspan.corpora.lexicon import Lexicon, load
from wingspan.corpora.lexicon.synonyms import found_synonyms
from wingspan.labels import LabelSet
from wingspan.layers.word_decoder import Synonyms
from wingspan.text import Document
from wingspan.training.multi_corpus import CorporaPlan, read_corpora
from wingspan.views.console import counted

Corpus = str | Path | Sequence[Document]


@dataclass(frozen=True)
class Corpora:
    """The documents of one training."""

    train: Sequence[Document]
    dev: Sequence[Document] = ()
    test: Sequence[Document] = ()
    plan: CorporaPlan | None = None
    """Where there are several corpora: what each of them is. Dev and test are those of their target."""

    @property
    def declared(self) -> LabelSet | None:
        """The labels, where they are not read off the documents."""
        return self.plan.labels if self.plan is not None else None

    @property
    def target(self) -> str | None:
        """The name of the corpus that the others help, where there are others."""
        return self.plan.target.name if self.plan is not None else None

    @property
    def weights(self) -> dict[str, float]:
        """How much more often than others corpora are drawn from."""
        return {corpus.name: corpus.weight for corpus in self.plan.corpora} if self.plan is not None else {}

    @property
    def settings(self) -> dict[str, str]:
        """What the plan sets of a recipe."""
        return dict(self.plan.settings) if self.plan is not None else {}

    @property
    def held_out(self) -> dict[str, Sequence[Document]]:
        """What is scored, of every corpus, by the name of its part: training must not have it."""
        if self.plan is None:
            return {"dev": self.dev, "test": self.test}
        parts: dict[str, Sequence[Document]] = {}
        for corpus in self.plan.corpora:
            parts[f"{corpus.name} dev"] = () if corpus.dev_into_training else corpus.dev
            parts[f"{corpus.name} test"] = corpus.test
        return parts


def corpora_of(
    train: Any, dev: Corpus | None, test: Corpus | None, format: str | None, several: str | Path | CorporaPlan | None
) -> Corpora:
    """Files or documents, or the corpora of a `corpora.toml` or of a plan."""
    if (train is None) == (several is None):
        raise ValueError("give training documents with --train, or several corpora with --corpora; one of the two")
    if several is None:
        return gather(train, dev, test, format)
    if dev is not None or test is not None or format is not None:
        raise ValueError("--corpora names dev files, test files and formats itself; leave out --dev, --test, --format")
    plan = several if isinstance(several, CorporaPlan) else read_corpora(several)
    return Corpora(plan.training, plan.target.dev, plan.target.test, plan)


def gather(train: Any, dev: Corpus | None, test: Corpus | None, format: str | None) -> Corpora:
    """Reads what is given as files."""
    paths: list[Any] = [train] if isinstance(train, str | Path) else list(train)
    if paths and all(isinstance(path, str | Path) for path in paths):
        documents = [document for path in paths for document in documents_of(path, format)]
    else:
        documents = documents_of(paths, format)
    return Corpora(documents, documents_of(dev, format), documents_of(test, format))


def documents_of(corpus: Corpus | None, format: str | None) -> list[Document]:
    """A file's documents, or the documents themselves."""
    if corpus is None:
        return []
    if not isinstance(corpus, str | Path):
        return list(corpus)
    documents = list(read(corpus, format))
    if not documents:
        raise ValueError(f"{corpus}: there are no documents in it; check the file, and its format with --format")
    return documents


# --- What a training does about documents that it shares with what it is scored on: drop them, stop, or say so.


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


# --- What `train --lexicon` takes: a file of synonyms, or `corpus` for those that the training documents hold.


def lexicon_of(given: str | Path | Synonyms | None, documents: Sequence[Document]) -> Synonyms | None:
    """The lexicon of a training; one that is there already is taken as it is."""
    if given is None or not isinstance(given, str | Path):
        return given
    if str(given) != "corpus":
        return load(given)
    concepts = [concept for found in found_synonyms(documents).values() for concept in found]
    if not concepts:
        raise ValueError(
            f"--lexicon corpus: the {len(documents):,} training documents have no synonyms "
            "(mentions with one concept id, abbreviations in brackets, chains); give a file"
        )
    return Lexicon.of(concepts)


def fingerprint(studied: Mapping[str, Any]) -> str | None:
    """What objectives know of the data, the lexicon's part in it above all, as one number; None where it is nothing."""
    return sha256(json.dumps(studied, sort_keys=True).encode()).hexdigest()[:16] if studied else None
