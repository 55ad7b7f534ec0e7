"""Several corpora for one model: what each of them has, marks and counts. `corpora_file` reads such a plan."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from wingspan.corpora.formats import FORMATS, read
from wingspan.corpora.label_map import LabelMap, read_label_map
from wingspan.files import TomlTable, flag, load_toml, number, path_from, several, tables, word
from wingspan.labels import LabelSet
from wingspan.recipe import Batches, Sampling
from wingspan.text import Document

Role = Literal["target", "auxiliary"]
Heads = Literal["own", "shared"]
Silence = Literal["unknown", "negative"]


@dataclass(frozen=True)
class OneOfSeveral:
    """One corpus of a training on several; its documents carry its name as their dataset."""

    name: str
    labels: tuple[str, ...]
    annotates: tuple[str, ...]
    """The labels that its training documents mark wherever they occur; silence about the others says nothing."""
    train: tuple[Document, ...] = ()
    dev: tuple[Document, ...] = ()
    test: tuple[Document, ...] = ()
    role: Role = "auxiliary"
    weight: float = 1.0
    """How much more often than others its sentences are drawn."""
    dev_into_training: bool = False

    @property
    def training(self) -> tuple[Document, ...]:
        """The documents that are trained on."""
        return (*self.train, *self.dev) if self.dev_into_training else self.train


@dataclass(frozen=True)
class CorporaPlan:
    """The corpora of a training, in the order of their classes; exactly one is the target."""

    corpora: tuple[OneOfSeveral, ...]
    heads: Heads = "own"
    """Classes of its own for each corpus, or equal labels as one class."""
    label_map: LabelMap | None = None
    """Which label of each corpus means which label of the target's."""
    silence: Silence = "unknown"
    """What an unmarked span may be where its corpus leaves a type unmarked: of that type too, or surely nothing."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """How sentences are drawn from the corpora, as `--set` takes it; what is not here is left to the recipe."""

    @property
    def target(self) -> OneOfSeveral:
        """The corpus that the model is for: it decides which epoch is best, and unknown texts get its labels."""
        return next(corpus for corpus in self.corpora if corpus.role == "target")

    @property
    def labels(self) -> LabelSet:
        """All classes, block by block in the order of the corpora."""
        shared = self.heads == "shared"
        types = {corpus.name: corpus.labels for corpus in self.corpora}
        partly = {c.name: c.annotates for c in self.corpora if set(c.annotates) != set(c.labels)}
        if self.silence == "negative":  # every corpus claims to mark all classes of its block
            everything = tuple(dict.fromkeys(label for labels in types.values() for label in labels))
            partly = dict.fromkeys(types, everything) if shared else {}
        first = self.corpora[0].role == "target"
        main = "" if first else self.target.name
        return LabelSet(types, annotates=partly, shared=shared, main=main, counterparts=self.counterparts)

    @property
    def counterparts(self) -> dict[str, dict[str, str]]:
        """What labels of other corpora are in the target's, by the label map; nothing without one."""
        found: dict[str, dict[str, str]] = {}
        for corpus, label, target in self.label_map or ():
            if target is not None and self.heads == "own":  # documents of shared labels are in the target's already
                found.setdefault(corpus, {})[label] = target
        return found

    @property
    def training(self) -> list[Document]:
        """All documents that are trained on, corpus by corpus."""
        return [document for corpus in self.corpora for document in corpus.training]

    def named(self, name: str) -> OneOfSeveral:
        """The corpus of that name."""
        found = [corpus for corpus in self.corpora if corpus.name == name]
        if not found:
            raise ValueError(f"no corpus {name!r} here; there are {', '.join(c.name for c in self.corpora)}")
        return found[0]


def in_target_labels(corpus: OneOfSeveral, label_map: LabelMap, order: Sequence[str]) -> OneOfSeveral:
    """A corpus as if it had been marked in the target's labels; `order` is that of the target's."""
    meanings = {label: label_map.target(corpus.name, label) for label in corpus.labels}
    # a target label is marked throughout where all labels that mean it are
    partly = {meanings[label] for label in corpus.labels if label not in corpus.annotates}
    labels = tuple(label for label in order if label in meanings.values())
    train, dev, test = (tuple(map(label_map.mapped, part)) for part in (corpus.train, corpus.dev, corpus.test))
    marked = tuple(label for label in labels if label not in partly)
    return replace(corpus, labels=labels, annotates=marked, train=train, dev=dev, test=test)


def undeclared(documents: Sequence[Document], labels: Sequence[str]) -> list[str]:
    """Labels of entities that are none of these, with how often they occur: `'Gene' (12)`."""
    counts = Counter(entity.label for document in documents for entity in document.entities)
    return [f"{label!r} ({count:,})" for label, count in sorted(counts.items()) if label not in labels]


# --- `corpora.toml`: several corpora for one model, one table each.
#
# heads = "own" sampling = "proportion"
#
# [[corpora]] name = "biored" train = "biored/train.jsonl" dev = "biored/dev.jsonl" labels = ["Disease", "Chemical"]
# role = "target"


Files = tuple[Path, ...]


def read_corpora(path: str | Path) -> CorporaPlan:
    """The corpora of a file, documents and all. Relative paths start at the folder the file lies in."""
    path = Path(path)
    table = load_toml(path)
    entries = [_corpus(item, path) for item in table.need("corpora", tables, "a list of tables, [[corpora]]")]
    heads = _chosen(table, "heads", Heads, "own")
    silence = _chosen(table, "silence", Silence, "unknown")
    map_file = table.take("label_map", path_from(path.parent), "a file with corpus, label and target", None)
    drawing = {
        "train.sampling": _chosen(table, "sampling", Sampling, None),
        "train.temperature": table.take("temperature", _positive, "a number above 0", None),
        "train.batches": _chosen(table, "batches", Batches, None),
    }
    table.close()
    corpora = _with_target(entries, path)
    settings = {name: str(value) for name, value in drawing.items() if value is not None}
    plan = CorporaPlan(corpora, heads, None, silence, settings)
    if map_file is None:
        return plan
    label_map = read_label_map(map_file).about([corpus.name for corpus in corpora])
    label_map.check({corpus.name: corpus.labels for corpus in corpora}, plan.target.name)
    if heads == "shared":
        order = plan.target.labels
        corpora = tuple(c if c.role == "target" else in_target_labels(c, label_map, order) for c in corpora)
    return replace(plan, corpora=corpora, label_map=label_map)


def _chosen(table: TomlTable, name: str, kinds: Any, default: Any) -> Any:
    """One of a few words."""
    words = get_args(kinds)
    expected = " or ".join(f'"{choice}"' for choice in words)
    return table.take(name, lambda value: value if value in words else None, expected, default)


def _corpus(item: Any, path: Path) -> tuple[OneOfSeveral, Role | None]:
    """One table with the documents of its files, and the role it asks for."""
    if not isinstance(item, dict):
        raise ValueError(f"{path}: corpora must be a list of tables, [[corpora]], not {item!r}")
    table = TomlTable(item, f"{path}: corpora")
    name = table.need("name", word, "a text")
    table.place = f"{path}: corpus {name!r}"

    def files(value: Any) -> Files | None:
        here = path_from(path.parent)
        found = here(value)
        return (found,) if found is not None else several(here)(value)

    def format_name(value: Any) -> str | None:
        return value if value in FORMATS or ":" in str(value) else None

    format = table.take("format", format_name, f"one of {', '.join(FORMATS)}", None)
    parts = {
        part: _documents(
            table.take(part, files, "a file, or a list of different files", ()), format, name, f"{table.place}: {part}"
        )
        for part in ("train", "dev", "test")
    }
    if not any(parts.values()):
        raise ValueError(f"{table.place}: train is missing; give a file, or a list of files")
    occurring = LabelSet.of(document for part in parts.values() for document in part).types[name]
    labels = table.take("labels", several(word), "a list of different labels", occurring)
    role = _chosen(table, "role", Role, None)
    corpus = OneOfSeveral(
        name,
        labels,
        annotates=table.take("annotates", several(word), "a list of different labels", labels),
        weight=table.take("weight", _positive, "a number above 0", 1.0),
        dev_into_training=table.take("dev_into_training", flag, "true or false", False),
        train=parts["train"],
        dev=parts["dev"],
        test=parts["test"],
    )
    table.close()
    if corpus.dev_into_training and not corpus.dev:
        raise ValueError(f"{table.place}: dev_into_training needs dev, which is missing; give a file, or leave it out")
    _check_labels(corpus, table.place)
    return corpus, role


def _documents(paths: Files, format: str | None, name: str, place: str) -> tuple[Document, ...]:
    """The documents of some files, as those of this corpus."""
    found: list[Document] = []
    for path in paths:
        if not path.exists():
            raise ValueError(f"{place}: there is no {path}; correct the path, relative ones start at the file's folder")
        documents = [replace(document, dataset=name) for document in read(path, format)]
        if not documents:
            raise ValueError(f"{place}: {path} holds no documents; check the file, and its format")
        found += documents
    return tuple(found)


def _positive(value: Any) -> float | None:
    found = number(value)
    return found if found is not None and 0 < found < math.inf else None


def _check_labels(corpus: OneOfSeveral, place: str) -> None:
    """Files and declarations say the same."""
    unknown = [label for label in corpus.annotates if label not in corpus.labels]
    if unknown:
        raise ValueError(f"{place}: annotates names {unknown[0]!r}, which is none of its labels; add it to labels")
    for part, documents in (("train", corpus.train), ("dev", corpus.dev), ("test", corpus.test)):
        extra = undeclared(documents, corpus.labels)
        if extra:
            raise ValueError(f"{place}: {part} has entities of {extra[0]}, none of its labels; add it to labels")
    extra = undeclared(corpus.training, corpus.annotates)
    if extra:
        raise ValueError(f"{place}: its training documents mark {extra[0]}, which annotates leaves out; add it there")


def _with_target(entries: Sequence[tuple[OneOfSeveral, Role | None]], path: Path) -> tuple[OneOfSeveral, ...]:
    """The corpora with their roles; the first that is not auxiliary is the target where none says so."""
    names = [corpus.name for corpus, _ in entries]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise ValueError(f"{path}: two corpora are called {twice[0]!r}; give each its own name")
    targets = [corpus.name for corpus, role in entries if role == "target"]
    if len(targets) > 1:
        raise ValueError(f"{path}: {' and '.join(map(repr, targets))} are both the target; give one the role auxiliary")
    targets += [corpus.name for corpus, role in entries if role is None]
    if not targets:
        raise ValueError(f'{path}: all corpora are auxiliary; give one of them role = "target"')
    corpora = tuple(replace(c, role="target" if c.name == targets[0] else "auxiliary") for c, _ in entries)
    for corpus in corpora:
        if corpus.role == "target" and corpus.dev_into_training:
            raise ValueError(
                f"{path}: corpus {corpus.name!r}: dev_into_training is for auxiliary corpora; "
                "the target's dev set says which epoch is best"
            )
        if corpus.role == "target" and not corpus.train:
            raise ValueError(f"{path}: corpus {corpus.name!r}: train is missing; the target needs training documents")
    return corpora
