"""Chapters that need the model: its recipe and training, and how it stands up to documents that came otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wingspan.analysis import plots
from wingspan.analysis.outcomes import losses_by_epoch
from wingspan.analysis.report.blocks import Block, Column, Facts, Row, Section, Table
from wingspan.analysis.report.drawing import available, drawn
from wingspan.analysis.robustness import Drop


def perturbed(drops: Sequence[Drop], documents: int) -> Section:
    """What is lost under each perturbation, overall and by label."""
    columns = (
        Column("perturbation", "text"),
        Column("changed documents"),
        Column("precision"),
        Column("recall"),
        Column("F1"),
        Column("change", "change"),
    )
    rows: list[Row] = []
    for drop in drops:
        micro = drop.scores.micro
        rows.append((named(drop), drop.changed, micro.precision, micro.recall, micro.f1, -drop.drop))
    labels = sorted({label for drop in drops for label in drop.clean.labels})
    by_label: list[Row] = []
    for drop in drops:
        figures = drop.to_dict()["labels"]
        changes = (-figures[label]["drop"] if label in figures else None for label in labels)
        by_label.append((named(drop), *changes))
    lead = f"Each perturbation is made on {documents:,} documents, with entities as exact as in the originals."
    return Section(
        "robustness",
        "Robustness",
        [
            Table("perturbations", "F1 on perturbed documents", columns, rows),
            Table(
                "robustness-by-label",
                "Change of F1 by label",
                (Column("perturbation", "text"), *(Column(label, "change") for label in labels)),
                by_label,
            ),
        ],
        lead,
    )


def named(drop: Drop) -> str:
    """A perturbation in words."""
    return drop.perturbation.replace("_", " ")


def trained(recipe: Mapping[str, Any], facts: Mapping[str, Any], journal: Path | None, figures: Path | None) -> Section:
    """The recipe with all its settings, what is known of the training, and its curves."""
    blocks: list[Block] = []
    if journal is not None:
        blocks += curves(journal, figures)
    blocks.append(Facts("training", "The training", facts))
    blocks.append(Facts("recipe", "The recipe", recipe))
    return Section("model", "Model and training", blocks)


def curves(journal: Path, figures: Path | None) -> list[Block]:
    """Losses and dev F1 or accuracy, epoch by epoch (001, Figure 3)."""
    epochs = losses_by_epoch(journal)
    if not epochs:
        return []
    blocks: list[Block] = []
    dev = f"dev {epochs[0].figure}"
    if available():
        blocks.append(drawn(plots.losses_figure(epochs), "loss-curve", f"Loss and {dev} by epoch", figures))
    names = list(dict.fromkeys(name for one in epochs for name in one.losses))
    columns = (Column("epoch"), *(Column(name, digits=4) for name in names), Column(dev))
    rows: list[Row] = [(one.epoch, *(one.losses.get(name) for name in names), one.dev) for one in epochs]
    return [*blocks, Table("epochs", f"Losses and {dev} by epoch", columns, rows)]
