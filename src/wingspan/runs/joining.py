"""What a recipe leaves open about joining fragments, chosen on dev documents: the bar of links, the gap of the rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.console import Console

from wingspan import readers
from wingspan.decoding import resolve
from wingspan.evaluation.scores import Counts
from wingspan.joining import Joining
from wingspan.recognizer import Recognizer
from wingspan.sampling import batches
from wingspan.text import Document, Entity

BARS = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.55, 0.6, 0.65, 0.7)
GAPS = tuple(range(11))


class Tried(NamedTuple):
    """One way of joining, and the strict counts of dev with it: of all entities, and of discontinuous ones."""

    joining: Joining
    every: Counts
    discontinuous: Counts


def fit_joining(model: Recognizer, documents: Sequence[Document], console: Console, *, batch_size: int = 64) -> None:
    """Fixes what is `auto` to what gives the best strict F1 of all entities; of equals, the first that is tried."""
    joining = model.recipe.joining
    links = model.recipe.read_with == "links" and joining.bar == "auto"
    if not links and joining.gap != "auto":
        return
    if not documents:
        said = "Fragments are joined at a bar of 0.5" if links else "Nothing is joined"
        fix = "joining.bar=X" if links else "joining.gap=N"
        line = f"{said}: there are no dev documents to choose on; give --dev, or --set {fix}."
    else:
        tried = attempts(model, documents, batch_size=batch_size)
        best = max(tried, key=lambda one: one.every.f1)
        model.recipe = replace(model.recipe, joining=best.joining)
        value = f"bar {best.joining.bar:g}" if links else f"gap {best.joining.gap} words"
        line = (
            f"Joining, chosen on dev: {value} (F1 {best.every.f1:.2f} of all entities, "
            f"{best.discontinuous.f1:.2f} of {best.discontinuous.gold:,} discontinuous ones)."
        )
    console.print(line, highlight=False, markup=False, soft_wrap=True)


def attempts(model: Recognizer, documents: Sequence[Document], *, batch_size: int = 64) -> list[Tried]:
    """Every bar of links, or every gap of the rule, on the same reading of the documents."""
    joining = model.recipe.joining
    if model.recipe.read_with == "links":
        choices = [replace(joining, bar=bar) for bar in BARS]
    else:
        choices = [replace(joining, gap=gap) for gap in GAPS]
    sentences = list(model.segment(documents))
    lengths = [len(sentence.words) for sentence in sentences]
    counts = [(Counter[str](), Counter[str]()) for _ in choices]
    for batch in batches(lengths, batch_size, budget=model.recipe.train.budget):
        rows = [sentences[at] for at in batch]
        reading = model.reading(rows, bar=min(BARS))
        for choice, (every, broken) in zip(choices, counts, strict=True):
            recipe = replace(model.recipe, joining=choice)
            for sentence, entities in zip(rows, readers.joined(reading, recipe, model.labels), strict=True):
                assert recipe.overlap != "auto", "a trained model's overlap is resolved"
                found, gold = resolve(entities, recipe.overlap), sentence.entities
                every.update(verdicts(gold, found))
                broken.update(verdicts(*(filter(discontinuous, side) for side in (gold, found))))
    return [
        Tried(choice, Counts(**every), Counts(**broken))
        for choice, (every, broken) in zip(choices, counts, strict=True)
    ]


def verdicts(gold: Iterable[Entity], found: Iterable[Entity]) -> dict[str, int]:
    """Strict verdicts on the entities of one sentence."""
    wanted, given = set(gold), set(found)
    return {"correct": len(wanted & given), "missed": len(wanted - given), "spurious": len(given - wanted)}


def discontinuous(entity: Entity) -> bool:
    """Whether an entity has several fragments."""
    return entity.discontinuous
