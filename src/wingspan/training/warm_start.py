"""Warm start: the weights of a trained model in a new one with more labels, or labels in another order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torch import Tensor

from wingspan.labels import LabelSet
from wingspan.objectives.links import Links
from wingspan.objectives.tagging import Tagging
from wingspan.recipe import Learner
from wingspan.recognizer import Recognizer

Key = tuple[str, str | None]
"""The meaning of a class: a corpus and one of its labels, or None for "nothing"."""


def renamed(model: Recognizer, names: Mapping[str, str]) -> Recognizer:
    """A loaded model with other names for some labels, so that they match the new corpus."""
    known = sorted({label for labels in model.labels.types.values() for label in labels})
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ValueError(f"--rename {unknown[0]}: the model has no such label; it has {', '.join(known)}")
    taken = sorted({new for old, new in names.items() if new in known and new not in names})
    if taken or len(set(names.values())) < len(names):
        raise ValueError(f"--rename: {(taken or list(names.values()))[0]!r} would name two labels of the model")
    types = {name: tuple(names.get(label, label) for label in labels) for name, labels in model.labels.types.items()}
    model.labels = replace(model.labels, types=types)
    return model


def both(one: LabelSet, other: LabelSet) -> LabelSet:
    """The labels of two sets, corpus by corpus."""
    corpora = dict.fromkeys([*one.types, *other.types])
    return LabelSet({name: tuple(sorted({*one.types.get(name, ()), *other.types.get(name, ())})) for name in corpora})


def adopt(learner: Learner, labels: LabelSet, start: Recognizer) -> None:
    """Copies every weight of the old model that fits the new one; rows of a class move with it."""
    old, new = start.learner.state_dict(), learner.state_dict()
    before, after = list(start.labels.meanings()), list(labels.meanings())
    known = set(start.labels.types) & set(labels.types) and not labels.shared
    if len(start.labels.types) == 1 and not known:  # labels of a single unknown corpus become the target's
        before = [("" if labels.shared else labels.target, label) for _, label in before]
    for name, value in new.items():
        source = old.get(name)
        if source is None or source.shape[1:] != value.shape[1:] or name.startswith("objectives."):
            continue
        if name.startswith("model.scorer.head") and len(source) == len(before) and len(value) == len(after):
            for row, key in enumerate(after):
                if key in before:
                    value[row] = source[before.index(key)]
        elif name == "model.scorer.spans.widths.weight":
            value[:] = source[[min(row, len(source) - 1) for row in range(len(value))]]
        elif source.shape == value.shape:
            value.copy_(source)
    for name, objective in learner.objectives.items():
        mine = f"objectives.{name}."
        rest = {key.removeprefix(mine): source for key, source in old.items() if key.startswith(mine)}
        earlier = start.learner.objectives[name] if rest else None
        if isinstance(objective, Tagging) and isinstance(earlier, Tagging):
            adopt_tags(objective, earlier, start.labels)
        elif isinstance(objective, Links) and isinstance(earlier, Links):
            adopt_links(objective, earlier, before, after)
        elif {key: part.shape for key, part in rest.items()} == {k: p.shape for k, p in objective.state_dict().items()}:
            objective.load_state_dict(rest)


def adopt_links(links: Links, old: Links, before: list[Key], after: list[Key]) -> None:
    """Copies vectors and distances that have the same size, and fragments class by class."""
    mine, parts = links.state_dict(), old.state_dict()
    for name, value in mine.items():
        if not name.startswith("fragment.") and value.shape == parts[name].shape:
            value.copy_(parts[name])
    for name in ("fragment.weight", "fragment.bias"):
        if mine[name].shape[1:] == parts[name].shape[1:]:
            for row, key in enumerate(after):
                if key in before:
                    mine[name][row] = parts[name][before.index(key)]


def adopt_tags(tagging: Tagging, old: Tagging, labels: LabelSet) -> None:
    """Copies the rows of common tags. One layer cannot be made of several: it starts anew."""
    if tagging.one_layer and not old.one_layer:
        return
    names = labels.names()  # labels may have been renamed since the old objective was built
    rows = {
        (names[c], offset): (old.layer_of[c], old.begin_of[c] + offset - 1) for c in old.classes for offset in (1, 2)
    }
    known_tags: list[dict[int, tuple[int, int]]] = [{} for _ in range(tagging.layers)]
    for c in tagging.classes:
        for offset in (1, 2):  # B and I
            if (tagging.names[c], offset) in rows:
                tag = tagging.begin_of[c] + offset - 1
                known_tags[tagging.layer_of[c]][tag] = rows[tagging.names[c], offset]
    for layer, known in enumerate(known_tags):
        if not known and not tagging.one_layer:
            continue  # a new type
        source = next(iter(known.values()), (0, 0))[0]
        tags = {0: 0, **{tag: at for tag, (_, at) in known.items()}}  # tag in the new model -> tag in the old one
        to, of = list(tags), list(tags.values())
        for name in ("weight", "bias"):
            new_part: Tensor = getattr(tagging.score, name).data.view(tagging.layers, tagging.tags, -1)
            old_part: Tensor = getattr(old.score, name).data.view(old.layers, old.tags, -1)
            new_part[layer, to] = old_part[source, of]
        if tagging.chain is not None and old.chain is not None:
            for name in ("first", "last"):
                getattr(tagging.chain, name).data[layer, to] = getattr(old.chain, name).data[source, of]
            new_moves, old_moves = tagging.chain.transitions.data[layer], old.chain.transitions.data[source]
            for at, tag in tags.items():
                new_moves[at, to] = old_moves[tag, of]
