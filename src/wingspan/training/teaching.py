"""Teachers: trained models whose chances of spans a student learns (`objectives.distillation`), asked before training.

They read the student's sentences word by word, each in its own windows and pieces. Their chances come back in words,
and only those of spans that may be entities are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from wingspan.batch import Array, batches
from wingspan.box import located
from wingspan.corpora.segment import by_document, segment_rows
from wingspan.files import sha256_of
from wingspan.labels import LabelSet
from wingspan.model import fetch, tensors
from wingspan.objectives.classification import Classification
from wingspan.objectives.distillation import KEY, Distillation, Taught, in_words
from wingspan.recipe import Recipe, made_by
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Sentence, corpus_fingerprint
from wingspan.training.fit import Fitted
from wingspan.views.console import counted

LEAST = 1e-3  # spans whose labels have less chance than this together are nothing
BATCH_SIZE = 256  # sentences, within the teacher's own budget of units


@dataclass(frozen=True)
class Teacher:
    """A model that teaches, by the name it was given with."""

    name: str
    model: Recognizer

    @property
    def fact(self) -> dict[str, Any]:
        """What is written down about it."""
        kept = {name: self.model.facts.get(name) for name in ("train_fingerprint", "seed")}
        return {"model": Path(self.name).name, "recipe": self.model.recipe.name, **kept}

    @property
    def identity(self) -> str:
        """A name that changes with its weights."""
        return identity_of(self.name)


def identity_of(model: str | Path) -> str:
    """A name of a trained model that changes with its weights; of one from the hub, its id."""
    weights = located(model) / "model.safetensors"
    return sha256_of(weights)[:16] if weights.is_file() else str(model)


def open_teachers(
    recipe: Recipe, names: Sequence[str | Path], device: str | None, parts: Sequence[str]
) -> list[Teacher]:
    """The teachers of a recipe; refuses models that have no chances of spans, and recipes that lack teachers."""
    if not names and any(made_by(term.objective) is Distillation for term in recipe.terms.values()):
        raise ValueError(f"recipe {recipe.name!r} learns from teachers; name them with --teacher MODEL")
    teachers = []
    for name in names:
        model = Recognizer.from_pretrained(name, device=device, parts=parts)
        if model.recipe.protocol == "typing":
            raise ValueError(
                f"--teacher {name}: types given spans and has no chances of others; use one that finds them"
            )
        learner = model.learner
        if "spans" not in learner.objectives or not isinstance(learner.objectives["spans"], Classification):
            raise ValueError(
                f"--teacher {name}: a {model.recipe.name} model has no chances of spans; use one with spans"
            )
        teachers.append(Teacher(str(name), model))
    return teachers


def teach(fitted: Fitted, teachers: Sequence[Teacher]) -> tuple[Fitted, str]:
    """The training sentences with what all teachers say of them, and a line about what they know."""
    (temperature,) = (
        objective.temperature for objective in fitted.learner.objectives.values() if isinstance(objective, Distillation)
    )
    said = [ask(teacher, fitted.sentences, fitted.labels, temperature) for teacher in teachers]
    sentences = tuple(
        replace(sentence, taught=tuple(in_one_voice(each)))
        for sentence, each in zip(fitted.sentences, zip(*said, strict=True), strict=True)
    )
    return replace(fitted, sentences=sentences), line_about(teachers, sentences, fitted)


def leak_lines(teachers: Sequence[Teacher], held_out: Mapping[str, Sequence[Document]]) -> list[str]:
    """The teachers that were trained on exactly the documents of a part that is scored."""
    parts = {corpus_fingerprint(documents): part for part, documents in held_out.items() if documents}
    return [
        f"Leaks: teacher {each.name} was trained on the {part} documents, so scores on them are too good."
        for each in teachers
        if (part := parts.get(each.model.facts.get("train_fingerprint", ""))) is not None
    ]


class Window(NamedTuple):
    """Words of a sentence that a teacher reads at once."""

    place: int  # of the sentence among all
    first: int  # the place of its first word in the sentence
    words: Sentence


def ask(teacher: Teacher, sentences: Sequence[Sentence], labels: LabelSet, temperature: float) -> list[Taught]:
    """What one teacher says of each sentence, with the classes of the student."""
    model = teacher.model
    places: dict[str, list[int]] = defaultdict(list)
    for place, sentence in enumerate(sentences):
        places[sentence.dataset].append(place)
    common = {dataset: common_classes(model.labels, labels, dataset) for dataset in places}
    if not any(len(mine) for mine, _ in common.values()):
        known = sorted({label for types in model.labels.types.values() for label in types})
        raise ValueError(f"--teacher {teacher.name}: has no label of the training documents; it has {', '.join(known)}")
    taught: dict[int, Taught] = {}
    for dataset, of_dataset in places.items():
        mine, theirs = common[dataset]
        until = {place: np.zeros(len(sentences[place].words), dtype=np.int32) for place in of_dataset}
        found: dict[int, list[Array]] = defaultdict(list)
        if not len(mine):  # of a corpus whose labels it does not know it says nothing, not that nothing is there
            none, no_chance = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
            taught |= {place: Taught(mine, until[place], none, none, no_chance) for place in of_dataset}
            continue
        windows = list(windows_of(model, sentences, of_dataset))
        lengths = model.engine.tokenize.lengths([window.words for window in windows]).tolist()
        for batch in batches(lengths, BATCH_SIZE, budget=model.recipe.train.budget):
            rows = [windows[at] for at in batch]
            for window, (ends, start, end, chance) in zip(rows, chances(model, rows, theirs, temperature), strict=True):
                own = slice(window.first, window.first + len(window.words.words))
                here = until[window.place][own]
                np.maximum(here, np.where(ends > 0, ends + window.first, 0), out=here)
                found[window.place].append((start + window.first, end + window.first, chance))
        for place in of_dataset:
            start, end, chance = (np.concatenate(parts) for parts in zip(*found[place], strict=True))
            taught[place] = Taught(mine, until[place], start, end, chance)
    return [taught[place] for place in range(len(sentences))]


def common_classes(teacher: LabelSet, student: LabelSet, dataset: str) -> tuple[Array, Array]:
    """The student's classes of the labels that both have in a corpus' sentences, and the teacher's of the same.

    A type that the teacher's corpus left unmarked means nothing, unless other corpora have taught it. (K,), (K,)
    """
    silent = teacher.silent()[teacher.dataset_id(dataset)] & (not teacher.shared)
    theirs = {label: at for label, at in teacher.block(dataset).items() if not silent[at]}
    pairs = sorted((at, theirs[label]) for label, at in student.block(dataset).items() if label in theirs)
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def windows_of(model: Recognizer, sentences: Sequence[Sentence], places: Sequence[int]) -> Iterator[Window]:
    """Sentences as a teacher reads them: whole where they fit, else in windows whose cores partition the words."""
    settings = replace(model.recipe.segments, sentences="whole", context="sentence")
    documents = (
        Document.from_words(str(at), sentences[at].words, dataset=model.labels.known(sentences[at].dataset))
        for at in places
    )
    rows = by_document(segment_rows(documents, settings, model.engine.tokenize.table, gold=False))
    for place, windows in zip(places, rows, strict=True):
        done = 0
        for window in windows:
            yield Window(place, done - window.core.start, window)
            done += window.core.width


@torch.inference_mode()
def chances(
    model: Recognizer, windows: Sequence[Window], classes: Array, temperature: float
) -> Iterator[tuple[Array, Array, Array, Array]]:
    """Of each window: the end of the longest span from each word that is scored; start, end and chances of some spans.

    They are in words of the window. A model with proposals looks at spans of any width, and proposes those that matter.
    """
    reader: Any = model.learner.objectives["spans"]
    inputs = tensors(model.collate.inputs([window.words for window in windows]), model.device)
    with model.engine.working():
        states = model.learner.model(inputs)
    candidates = states.candidates
    start, end, whole = in_words(candidates, states.inputs)  # (B, M)
    counts = candidates.mask & whole
    chance = reader.chances(states, temperature)[..., torch.from_numpy(classes).to(start.device)]  # (B, M, K)
    row, cell = torch.nonzero(counts & (chance.sum(-1) >= LEAST), as_tuple=True)
    until = start.new_zeros(len(start), max(len(window.words.words) for window in windows))
    until = until.scatter_reduce(1, start, torch.where(counts, end, 0), "amax")
    parts = {"until": until, "row": row, "start": start[row, cell], "end": end[row, cell], "chance": chance[row, cell]}
    found = fetch(parts)()
    edges = np.searchsorted(found["row"], np.arange(len(windows) + 1))
    for at, window in enumerate(windows):
        words, core, reach = len(window.words.words), window.words.core, window.words.reach
        ends = found["until"][at, :words]
        if candidates.width is None:
            ends = np.zeros_like(ends)
            ends[core.start : core.end] = reach.end
        listed = slice(edges[at], edges[at + 1])
        yield ends, found["start"][listed], found["end"][listed], found["chance"][listed].astype(np.float32)


def in_one_voice(said: Sequence[Taught]) -> Iterator[Taught]:
    """Teachers of one sentence that know the same labels as one: mean chances of those that score a span."""
    voices: dict[bytes, list[Taught]] = defaultdict(list)
    for taught in said:
        voices[taught.classes.tobytes()].append(taught)
    for alike in voices.values():
        keys = np.concatenate([taught.start * KEY + taught.end for taught in alike])
        key, place = np.unique(keys, return_inverse=True)
        chance = np.zeros((len(key), len(alike[0].classes)), dtype=np.float32)
        np.add.at(chance, place, np.concatenate([taught.chance for taught in alike]))
        start, end = np.divmod(key, KEY)
        score = sum(taught.until[start] >= end for taught in alike)
        until = np.maximum.reduce([taught.until for taught in alike])
        yield Taught(alike[0].classes, until, start, end, chance / np.reshape(score, (-1, 1)))


def line_about(teachers: Sequence[Teacher], sentences: Sequence[Sentence], fitted: Fitted) -> str:
    """The labels that teachers know, the share of the student's spans that they score, and of those that are kept."""
    widest, names = fitted.recipe.ceiling, fitted.labels.names()
    taught = {names[at] for sentence in sentences for said in sentence.taught for at in said.classes.tolist()}
    labels = list(dict.fromkeys(label for label in names if label is not None))
    every = scored = listed = 0
    for sentence in sentences:
        at = np.arange(sentence.core.start, sentence.core.end)
        own = sentence.reach.end - at if widest is None else np.minimum(sentence.reach.end - at, widest)
        until = np.maximum.reduce([said.until for said in sentence.taught])[sentence.core.start : sentence.core.end]
        every, scored = every + int(own.sum()), scored + int(np.clip(until - at, 0, own).sum())
        spans = chain.from_iterable((said.start * KEY + said.end).tolist() for said in sentence.taught)
        listed += len(set(spans))
    unknown = [label for label in labels if label not in taught]
    silence = f", not {', '.join(unknown)}" if unknown else ""
    return (
        f"{counted(len(teachers), 'teacher')} ({', '.join(Path(teacher.name).name for teacher in teachers)}): "
        f"{len(labels) - len(unknown)} of {counted(len(labels), 'label')} known{silence}, "
        f"{100 * scored / max(every, 1):.1f}% of the spans scored; "
        f"{listed / max(len(sentences), 1):.1f} spans of a sentence may be entities."
    )
