"""What is known of a training before it starts: what the run log says, what the model card keeps."""

from __future__ import annotations

import platform
from collections import Counter
from itertools import chain
from typing import Any

import torch
import transformers
from rich.console import Console

import wingspan
from wingspan.adapters import counted
from wingspan.training.fitting import Fitted


def announce(fitted: Fitted, console: Console) -> None:
    """What is about to be trained, and what can never be found, before the first step."""
    recipe, types = fitted.recipe, sum(len(labels) for labels in fitted.labels.types.values())
    console.print(f"Recipe {recipe.name}: {recipe.paper}", highlight=False, markup=False, soft_wrap=True)
    objectives: list[Any] = list(fitted.learner.objectives.values())
    encoder = fitted.learner.model.encoder
    parts = [fitted.coverage.lines(), corpora_lines(fitted), encoder.lines(), *(part.lines() for part in objectives)]
    for line in chain.from_iterable(parts):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    how = f"{recipe.overlap} decoding, entities read from {recipe.read_with}"
    if recipe.protocol == "typing":
        how = "each gets a type; scored by accuracy"
    console.print(
        f"{len(fitted.sentences):,} training sentences, {types} entity types; {recipe.scope}, {how}.",
        highlight=False,
        soft_wrap=True,
    )
    every, learned = counted(fitted.learner)
    share = f"{100 * learned / every:.2f}%" if learned < every else "all"
    console.print(f"{every:,} parameters, {learned:,} of them trained ({share}).", highlight=False, soft_wrap=True)


def corpora_lines(fitted: Fitted) -> list[str]:
    """Where there are several corpora: how large each of them is, and about which types it is silent."""
    labels = fitted.labels
    if len(labels.types) == 1:
        return []
    counts = Counter(sentence.dataset for sentence in fitted.sentences)
    blocks = "one block for all" if labels.shared else "a block for each"
    lines = [f"{len(labels.types)} corpora, {labels.num_classes} classes, {blocks}:"]
    for name, types, silent in zip(labels.types, labels.types.values(), labels.silent(), strict=True):
        unmarked = [label for label, left in zip(labels.names(), silent, strict=True) if left]
        said = f"; silence about {', '.join(map(str, unmarked))} teaches nothing" if unmarked else ""
        if unmarked and not labels.shared:
            said += ', nor does any other corpus, so such answers mean nothing (heads = "shared": others teach it)'
        if not counts[name] and not labels.shared:
            said = "; nothing teaches these classes, so answers in its own labels mean nothing"
        role = " (target)" if name == labels.target else ""
        lines.append(f"  {name}{role}: {counts[name]:,} training sentences, {len(types)} types{said}")
    return lines


def versions() -> dict[str, str]:
    """What the model was trained with."""
    return {
        "wingspan": wingspan.__version__,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "python": platform.python_version(),
    }
