"""The corpora of a training: documents from files, leaks into dev and test, and the lexicon.

Everything about the data that a training settles before it looks at the recipe is here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from wingspan.corpora.formats import read
from wingspan.corpora.formats.jsonl import documents_of_records
from wingspan.corpora.leaks import Leaks, OnLeak, find_leaks
from wingspan.corpora.lexicon import Lexicon, load
from wingspan.corpora.lexicon.synonyms import found_synonyms
from wingspan.labels import LabelSet
from wingspan.layers.word_decoder import Synonyms
from wingspan.recipe import Recipe, made_by
from wingspan.text import Document
from wingspan.training.multi_corpus import CorporaPlan, read_corpora
from wingspan.views.console import counted

Corpus = str | Path | Sequence[Document] | Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Corpora:
    """The documents of one training, with the plan where they come from several corpora."""

    train: Sequence[Document]
    dev: Sequence[Document] = ()
    test: Sequence[Document] = ()
    plan: CorporaPlan | None = None
    """The several corpora, if there are several. Dev and test are then the target's."""

    @property
    def declared(self) -> LabelSet | None:
        """The labels of several corpora; None where labels are read off the documents."""
        return self.plan.labels if self.plan is not None else None

    @property
    def target(self) -> str | None:
        """The name of the target among several corpora."""
        return self.plan.target.name if self.plan is not None else None

    @property
    def weights(self) -> dict[str, float]:
        """Sampling weights of several corpora, by name."""
        return {corpus.name: corpus.weight for corpus in self.plan.corpora} if self.plan is not None else {}

    @property
    def settings(self) -> dict[str, str]:
        """The recipe settings of several corpora."""
        return dict(self.plan.settings) if self.plan is not None else {}

    @property
    def held_out(self) -> dict[str, Sequence[Document]]:
        """The dev and test documents of every corpus, by the name of their part: training must not have them."""
        if self.plan is None:
            return {"dev": self.dev, "test": self.test}
        return {f"{c.name} {part}": documents for c in self.plan.corpora for part, documents in c.held_out.items()}


def corpora_of(
    train: Any, dev: Corpus | None, test: Corpus | None, format: str | None, several: str | Path | CorporaPlan | None
) -> Corpora:
    """The corpora of files or documents, or of a `corpora.toml` or its plan."""
    if (train is None) == (several is None):
        raise ValueError("give training documents with --train, or several corpora with --corpora; one of the two")
    if several is not None:
        if dev is not None or test is not None or format is not None:
            raise ValueError(
                "--corpora names dev files, test files and formats itself; leave out --dev, --test, --format"
            )
        plan = several if isinstance(several, CorporaPlan) else read_corpora(several)
        return Corpora(plan.training, plan.target.dev, plan.target.test, plan)
    return gather(train, dev, test, format)


def gather(train: Any, dev: Corpus | None, test: Corpus | None, format: str | None) -> Corpora:
    """The corpora of files or documents; `train` may be a list of files."""
    several = isinstance(train, list | tuple) and train and all(isinstance(part, str | Path) for part in train)
    parts = [document for path in (train if several else [train]) for document in documents_of(path, format, "train")]
    return Corpora(parts, documents_of(dev, format, "dev"), documents_of(test, format, "test"))


def documents_of(corpus: Corpus | None, format: str | None, part: str = "corpus") -> list[Document]:
    """A file's documents, or the documents themselves, or those of dictionaries as in JSON-lines."""
    if corpus is None:
        return []
    if not isinstance(corpus, str | Path):
        if not isinstance(corpus, Iterable):
            raise TypeError(f"{part} is of type {type(corpus).__name__}; give a file, documents, or dictionaries")
        given: list[Any] = list(corpus)
        if all(isinstance(each, Mapping) for each in given):
            return list(documents_of_records(given, part))
        odd = next((each for each in given if not isinstance(each, Document)), None)
        if odd is not None:
            raise TypeError(
                f"{part} holds a value of type {type(odd).__name__}; give wingspan.Document or dictionaries"
            )
        return given
    documents = list(read(corpus, format))
    if not documents:
        raise ValueError(f"{corpus}: there are no documents in it; check the file, and its format with --format")
    return documents


# Leaks: training documents that are also in dev or test are dropped, stop the training, or are trained on.

CONSEQUENCES = {"drop": "are dropped", "allow": "are trained on anyway (--on-leak allow), so scores are too good"}


@dataclass(frozen=True)
class LeakHandling:
    """The leaks of a training, and the documents that are left to train on."""

    on_leak: OnLeak
    leaks: Leaks
    documents: Sequence[Document]
    corpora: Mapping[str, int]
    """The number of leaking documents of each corpus."""

    @property
    def line(self) -> str:
        """The leaks and what was done about them, in one sentence."""
        leaks = self.leaks
        if not leaks.against_documents:
            return "Leaks: there are no dev or test documents to look for in training."
        total = counted(leaks.train_documents, "training document")
        besides = [counted(leaks.sentences.equal, "equal sentence"), counted(leaks.shared_ids, "shared id")]
        if leaks.sentences.covered_documents:
            besides.append(f"{counted(len(leaks.sentences.covered_documents), 'document')} sentence by sentence")
        if leaks.short:
            besides.append(f"{counted(leaks.short, 'equal document')} too short to count")
        if not leaks.leaking:
            return f"Leaks: none of {total} is in {' or '.join(leaks.parts)}; there are {', '.join(besides)}."
        if len(self.corpora) > 1:
            each = ", ".join(f"{name} {count:,}" for name, count in self.corpora.items() if count)
            total = f"{total} ({each})"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in leaks.kinds.items() if count)
        return (
            f"Leaks: {leaks.leaking:,} of {total} are in {_leaky_parts(leaks)} ({kinds}) and "
            f"{CONSEQUENCES[self.on_leak]}; besides, {', '.join(besides)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts for the model's facts and the results; `leaks.json` has the pairs too."""
        dropped = self.leaks.leaking if self.on_leak == "drop" else 0
        return {"on_leak": self.on_leak, "dropped": dropped, "said": self.line, **self.leaks.counts()}


def handle_leaks(
    train: Sequence[Document],
    held_out: Mapping[str, Sequence[Document]],
    on_leak: OnLeak,
    target: str | None = None,
) -> LeakHandling:
    """Compares training documents with the held-out ones of each part, and drops them or stops.

    Only documents that are, or nearly are, the same are dropped or stop the training; sentences and ids are reported.
    Something must be left to train on; of several corpora, of the `target`.
    """
    if on_leak not in get_args(OnLeak):
        raise ValueError(f"on_leak is {on_leak!r}; use {', '.join(get_args(OnLeak))}")
    rows: dict[str, list[int]] = defaultdict(list)
    for at, document in enumerate(train):
        rows[document.dataset].append(at)
    leaks = find_leaks(
        {name: [train[at] for at in places] for name, places in rows.items()},
        {name: documents for name, documents in held_out.items() if documents},
    )
    leaking = {rows[name][at] for name, places in leaks.rows.items() for at in places}
    if leaking and on_leak == "stop":
        first = (*leaks.pairs, *leaks.near)[0].train.id
        raise ValueError(
            f"{leaks.leaking:,} of {counted(leaks.train_documents, 'training document')} are in {_leaky_parts(leaks)}, "
            f"such as {first!r}; see them with `wingspan leaks`, leave them out with --on-leak drop"
        )
    needed = set(range(len(train)) if target is None else rows.get(target, ()))
    if needed and on_leak == "drop" and needed <= leaking:
        all_of = counted(leaks.train_documents, "training document") if target is None else f"documents of {target!r}"
        raise ValueError(
            f"all {all_of} are in {_leaky_parts(leaks)}, so that none is left to train on; give other documents, or "
            "use them anyway with --on-leak allow"
        )
    kept = [document for at, document in enumerate(train) if at not in leaking] if on_leak == "drop" else train
    corpora = {name: len({train[rows[name][at]].group or at for at in leaks.rows.get(name, ())}) for name in rows}
    return LeakHandling(on_leak, leaks, kept, corpora)


def _leaky_parts(leaks: Leaks) -> str:
    """The parts that have documents in training."""
    return " and ".join(part for part, kinds in leaks.parts.items() if any(kinds.values()))


def lexicon_of(lexicon: str | Path | Synonyms | None, documents: Sequence[Document]) -> Synonyms | None:
    """The lexicon that `train --lexicon` names: a file, or `corpus` for the synonyms in the training documents."""
    if lexicon is None or not isinstance(lexicon, str | Path):
        return lexicon
    if str(lexicon) != "corpus":
        return load(lexicon)
    found = corpus_lexicon(documents)
    if found is None:
        raise ValueError(
            f"--lexicon corpus: the {len(documents):,} training documents have no synonyms "
            "(mentions with one concept id, abbreviations in brackets, chains); give a file"
        )
    return found


def lexicon_for(
    recipe: Recipe, lexicon: str | Path | Synonyms | None, documents: Sequence[Document]
) -> tuple[Synonyms | None, str | None]:
    """The lexicon of a training; a recipe that learns synonyms takes the corpus's where none is named, and says so."""
    parts = [term.objective for term in recipe.terms.values()]
    learns = any(made_by(part).learns_synonyms(getattr(part, "keywords", {})) for part in parts)
    if lexicon is not None or not learns:
        return lexicon_of(lexicon, documents), None
    found = corpus_lexicon(documents)
    which = "none in" if found is None else f"{counted(len(found), 'concept')} from"
    return found, f"Synonyms: {which} the training documents; --lexicon FILE gives others."


def corpus_lexicon(documents: Sequence[Document]) -> Lexicon | None:
    """The synonyms that documents show, or None where they show none."""
    concepts = [concept for synonyms in found_synonyms(documents).values() for concept in synonyms]
    return Lexicon.of(concepts) if concepts else None
