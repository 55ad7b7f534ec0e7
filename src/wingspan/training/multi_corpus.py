"""Several corpora for one model: their labels and roles, and the `corpora.toml` that declares them:

heads = "own"
sampling = "proportion"

[[corpora]]
name = "biored"
train = "biored/train.jsonl"
dev = "biored/dev.jsonl"
labels = ["Disease", "Chemical"]
role = "target"
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from wingspan.batch import batches, cut
from wingspan.corpora.formats import FORMATS, read
from wingspan.corpora.label_map import LabelMap, read_label_map
from wingspan.files import TomlTable, flag, load_toml, number, path_from, several, tables, word
from wingspan.labels import LabelSet
from wingspan.recipe import Batches, Sampling, TrainSettings
from wingspan.text import Document

Role = Literal["target", "auxiliary"]
Heads = Literal["own", "shared"]
Silence = Literal["unknown", "negative"]


@dataclass(frozen=True)
class OneOfSeveral:
    """One corpus of a training on several; its name is the dataset of its documents."""

    name: str
    labels: tuple[str, ...]
    annotates: tuple[str, ...]
    """The labels that its training documents annotate completely; a missing annotation of others means nothing."""
    train: tuple[Document, ...] = ()
    dev: tuple[Document, ...] = ()
    test: tuple[Document, ...] = ()
    role: Role = "auxiliary"
    weight: float = 1.0
    """The sampling weight of its sentences."""
    dev_into_training: bool = False

    @property
    def training(self) -> tuple[Document, ...]:
        """The training documents."""
        return (*self.train, *self.dev) if self.dev_into_training else self.train

    @property
    def held_out(self) -> dict[str, tuple[Document, ...]]:
        """The dev and test documents that are kept out of training."""
        return {"dev": () if self.dev_into_training else self.dev, "test": self.test}


@dataclass(frozen=True)
class CorporaPlan:
    """The corpora of a training, in the order of their classes; exactly one is the target."""

    corpora: tuple[OneOfSeveral, ...]
    heads: Heads = "own"
    """Separate classes for each corpus, or equal labels as one class."""
    label_map: LabelMap | None = None
    """The label of the target that each corpus' labels mean."""
    silence: Silence = "unknown"
    """Whether a span without annotation may be of a type that its corpus does not annotate, or is a negative."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Sampling settings in the form of `--set`; the recipe's count where there is none."""

    @property
    def target(self) -> OneOfSeveral:
        """The corpus that the model is for: its dev set decides which epoch is best, and predictions use its labels."""
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
        """The target's labels for labels of other corpora, by the label map; empty without one."""
        counterparts: dict[str, dict[str, str]] = {}
        for corpus, label, target in self.label_map or ():
            if target is not None and self.heads == "own":  # with shared heads, documents have the target's labels
                counterparts.setdefault(corpus, {})[label] = target
        return counterparts

    @property
    def training(self) -> list[Document]:
        """All training documents, corpus by corpus."""
        return [document for corpus in self.corpora for document in corpus.training]


def in_target_labels(corpus: OneOfSeveral, label_map: LabelMap, order: Sequence[str]) -> OneOfSeveral:
    """A corpus in the target's labels, which are given in `order`."""
    meanings = {label: label_map.target(corpus.name, label) for label in corpus.labels}
    # a target label is annotated completely where all labels that mean it are
    partly = {meanings[label] for label in corpus.labels if label not in corpus.annotates}
    labels = tuple(label for label in order if label in meanings.values())
    train, dev, test = (tuple(map(label_map.mapped, part)) for part in (corpus.train, corpus.dev, corpus.test))
    marked = tuple(label for label in labels if label not in partly)
    return replace(corpus, labels=labels, annotates=marked, train=train, dev=dev, test=test)


def read_corpora(path: str | Path) -> CorporaPlan:
    """Reads a `corpora.toml` with its documents. Relative paths start at the file's folder."""
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
    settings = {name: str(value) for name, value in drawing.items() if value is not None}
    plan = CorporaPlan(corpora, heads, None, silence, settings)
    if plan.target.dev_into_training:
        raise ValueError(
            f"{path}: corpus {targets[0]!r}: dev_into_training is for auxiliary corpora; "
            "the target's dev set says which epoch is best"
        )
    if not plan.target.train:
        raise ValueError(f"{path}: corpus {targets[0]!r}: train is missing; the target needs training documents")
    if map_file is None:
        return plan
    label_map = read_label_map(map_file).about([corpus.name for corpus in corpora])
    label_map.check({corpus.name: corpus.labels for corpus in corpora}, plan.target.name)
    if heads == "shared":
        order = plan.target.labels
        corpora = tuple(c if c.role == "target" else in_target_labels(c, label_map, order) for c in corpora)
    return replace(plan, corpora=corpora, label_map=label_map)


def _chosen(table: TomlTable, name: str, kinds: Any, default: Any) -> Any:
    """The word of a key, one of a Literal's."""
    words = get_args(kinds)
    expected = " or ".join(f'"{choice}"' for choice in words)
    return table.take(name, lambda value: value if value in words else None, expected, default)


def _corpus(item: Any, path: Path) -> tuple[OneOfSeveral, Role | None]:
    """The corpus of a table with the documents of its files, and the role that the table gives."""
    if not isinstance(item, dict):
        raise ValueError(f"{path}: corpora must be a list of tables, [[corpora]], not {item!r}")
    table = TomlTable(item, f"{path}: corpora")
    name = table.need("name", word, "a text")
    table.place = f"{path}: corpus {name!r}"

    def files(value: Any) -> tuple[Path, ...] | None:
        here = path_from(path.parent)
        single = here(value)
        return (single,) if single is not None else several(here)(value)

    def format_name(value: Any) -> str | None:
        return value if value in FORMATS or ":" in str(value) else None

    format = table.take("format", format_name, f"one of {', '.join(FORMATS)}", None)
    parts: dict[str, tuple[Document, ...]] = {"train": (), "dev": (), "test": ()}
    none: tuple[Path, ...] = ()
    for part in parts:
        for file in table.take(part, files, "a file, or a list of different files", none):
            place = f"{table.place}: {part}"
            if not file.exists():
                fix = "correct the path, relative ones start at the file's folder"
                raise ValueError(f"{place}: there is no {file}; {fix}")
            own = tuple(replace(document, dataset=name) for document in read(file, format))
            if not own:
                raise ValueError(f"{place}: {file} holds no documents; check the file, and its format")
            parts[part] += own
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
    unknown = [label for label in corpus.annotates if label not in labels]
    if unknown:
        raise ValueError(
            f"{table.place}: annotates names {unknown[0]!r}, which is none of its labels; add it to labels"
        )

    def undeclared(documents: Sequence[Document], declared: Sequence[str]) -> str:
        """The first label of entities that is not declared, with its count."""
        counts = Counter(entity.label for document in documents for entity in document.entities)
        return next((f"{label!r} ({counts[label]:,})" for label in sorted(counts) if label not in declared), "")

    for part, documents in parts.items():
        if extra := undeclared(documents, labels):
            raise ValueError(f"{table.place}: {part} has entities of {extra}, none of its labels; add it to labels")
    if extra := undeclared(corpus.training, corpus.annotates):
        raise ValueError(
            f"{table.place}: its training documents mark {extra}, which annotates leaves out; add it there"
        )
    return corpus, role


def _positive(value: Any) -> float | None:
    positive = number(value)
    return positive if positive is not None and 0 < positive < math.inf else None


# The batches of an epoch: how many sentences of each corpus, and which share a batch. Everything follows from (seed,
# phase, epoch), so that a resumed run goes on as it would have.


def epoch_batches(
    lengths: Sequence[int],
    corpora: Sequence[str],
    settings: TrainSettings,
    weights: Mapping[str, float],
    seed: tuple[int, int],
    epoch: int,
) -> list[list[int]]:
    """Indices of sentences, batch by batch. `corpora` has the corpus of each sentence; `weights` default to 1.

    An epoch has as many sentences as the corpora together. Where that is not each of them once, a corpus is read in
    shuffled rounds, and the next epoch goes on where the last one stopped.
    """
    members: dict[str, list[int]] = {}
    for index, name in enumerate(corpora):
        members.setdefault(name, []).append(index)
    shares = {name: weights.get(name, 1.0) for name in members}
    once = settings.sampling == "proportion" and len(set(shares.values())) <= 1
    if len(members) <= 1 or (once and settings.batches == "mixed"):
        return batches(lengths, settings.batch_size, budget=settings.budget, seed=(*seed, epoch))
    if settings.sampling == "each":  # a fixed number of sentences of each corpus in every batch
        if settings.batch_size < len(members):
            raise ValueError(
                f"train.batch_size is {settings.batch_size}, and train.sampling=each draws from {len(members)} "
                f"corpora; give at least {len(members)}"
            )
        steps = math.ceil(len(lengths) / settings.batch_size)
        counts = apportion(settings.batch_size, shares)
        quotas = {name: steps * count for name, count in counts.items()}
    else:
        power = {"proportion": 1.0, "uniform": 0.0, "temperature": 1 / settings.temperature}[settings.sampling]
        quotas = apportion(len(lengths), {name: shares[name] * len(own) ** power for name, own in members.items()})
    drawn = [
        draw(own, epoch * quotas[name], quotas[name], (*seed, at)) for at, (name, own) in enumerate(members.items())
    ]
    if settings.sampling == "each":
        in_turns: list[list[int]] = []
        for step in range(steps):
            parts = [own[step * n : (step + 1) * n] for own, n in zip(drawn, counts.values(), strict=True)]
            if settings.batches == "mixed":
                parts = [[index for part in parts for index in part]]
            for part in parts:
                order = sorted(part, key=lambda index: -lengths[index])
                in_turns += cut(order, lengths, settings.batch_size, settings.budget)
        return in_turns

    def batches_of(part: Sequence[int], *part_seed: int) -> list[list[int]]:
        own = [lengths[index] for index in part]
        order = batches(own, settings.batch_size, budget=settings.budget, seed=(*seed, epoch, *part_seed))
        return [[part[at] for at in batch] for batch in order]

    if settings.batches == "mixed":
        return batches_of([index for part in drawn for index in part])
    streams = [batches_of(part, at) for at, part in enumerate(drawn)]
    random = np.random.default_rng([*seed, epoch])
    if settings.batches == "single":
        together = [batch for stream in streams for batch in stream]
        return [together[at] for at in random.permutation(len(together))]
    # each corpus' batches at equal distances over the epoch, so that neighbors are of different corpora
    places = [
        ((at + first) / len(stream), batch)
        for stream, first in zip(streams, random.random(len(streams)), strict=True)
        for at, batch in enumerate(stream)
    ]
    return [batch for _, batch in sorted(places, key=lambda place: place[0])]


def apportion(total: int, shares: Mapping[str, float]) -> dict[str, int]:
    """Splits a number into whole parts as near to the shares as possible (largest remainders), at least 1 each."""
    exact = {name: total * share / sum(shares.values()) for name, share in shares.items()}
    parts = {name: max(1, math.floor(value)) for name, value in exact.items()}
    rest = sorted(exact, key=lambda name: -(exact[name] % 1))
    for name in rest[: max(0, total - sum(parts.values()))]:
        parts[name] += 1
    while sum(parts.values()) > max(total, len(parts)):  # the largest give back what the smallest got
        parts[max(parts, key=lambda name: parts[name])] -= 1
    return parts


def draw(members: Sequence[int], start: int, number: int, seed: Sequence[int]) -> list[int]:
    """A `number` of entries, from `start` on, of an endless sequence of shuffled rounds through the members."""
    drawn: list[int] = []
    while len(drawn) < number:
        round, at = divmod(start + len(drawn), len(members))
        order = np.random.default_rng([*seed, round]).permutation(len(members))
        drawn += [members[index] for index in order[at : at + number - len(drawn)].tolist()]
    return drawn
