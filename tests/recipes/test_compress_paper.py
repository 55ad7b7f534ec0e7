"""`compress_generate/paper`: what Nguyen et al.'s code really did, deviation by deviation (systems.md 1.B, 1.C, 1.F).

In other files: KL weight by the batch of the epoch (test_schedules.py), word-internal spans charged and one label per
span (test_bottleneck.py), the wrong words read, rare words first, unknown synonyms, singletons (test_generation.py).
"""

import math
from dataclasses import replace

import pytest
import torch
from names import Invented
from torch import nn

from trainings import HASHED, on_cpu, run_of, tiny
from wingspan.layers.schedules import Moment
from wingspan.objectives import Objective
from wingspan.objectives.compression import Compression
from wingspan.recipe import Phase, Term, TrainSettings
from wingspan.recipes import find
from wingspan.training.loop import build_optimizer, leave_uncorrected, set_rates, train


def test_the_settings_of_table_9():
    recipe = find("compress_generate/paper")
    assert recipe.encoder.keywords == {"name": "allenai/scibert_scivocab_cased", "unit": "piece", "shapes": False}
    assert recipe.spans.keywords == {"views": ("first", "mean", "last"), "dropout": 0.1}
    assert (recipe.max_width, recipe.overlap) == (14, "any")  # 14 pieces; nothing is removed for overlapping
    assert (recipe.train.batch_size, recipe.train.epochs, recipe.phases[0].epochs) == (16, 10, 10)
    assert recipe.phases[1] == Phase()
    assert recipe.head.keywords == {}  # 5 samples, a learned prior, 7/8, 3/4, 1/2
    assert recipe.terms["compress"].objective.keywords == {"beta": 2.81e-6, "within_words": True}
    assert recipe.terms["generate"].weight == 1.825e-6
    generation = recipe.terms["generate"].objective.keywords
    assert generation == {
        "latent_size": 1024,
        "schedule": "logistic-each-epoch",
        "reads": "source",
        "lower_case": False,
        "synonym_words": False,
        "rare_first": True,
        "adaptive_above": 0,
        "singleton_dropout": 0.01,
    }
    assert "free_nats" not in generation


def test_the_released_file():
    recipe = find("compress_generate/paper-ncbi")
    assert (recipe.train.batch_size, recipe.phases[0].epochs, recipe.train.epochs) == (8, 3, 7)


def test_the_bottleneck_learns_like_the_autoencoders_and_only_ner_decays():
    recipe = replace(find("compress_generate/paper"), encoder=HASHED, max_width=4)
    run = run_of(recipe, lexicon=Invented())
    groups = build_optimizer(run.learner, run.recipe.train).param_groups
    found = {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
    assert {group["eps"] for group in groups} == {1e-6}
    for name, parameter in run.learner.named_parameters():
        slow = name.startswith(("model.encoder", "model.scorer.head.classify"))
        rate, decay = found[id(parameter)]
        assert rate == pytest.approx(2.897e-5 if slow else 3.265e-4), name
        assert decay == (0.01 if slow and parameter.dim() > 1 else 0.0), name


def test_beta_counts_epochs_from_the_very_start():
    """NER that starts in epoch 4 starts with four times beta."""
    compression = Compression(None, beta=2.81e-6)
    assert compression.weight(Moment(phase=1, epoch=3)) == pytest.approx(1.124e-5)


def test_adam_without_correction_is_the_older_implementation():
    """HuggingFace's AdamW with correct_bias=False, step by step and by hand."""
    torch.manual_seed(0)
    module, start = nn.Linear(3, 2, bias=False), None
    start = module.weight.detach().clone()
    settings = TrainSettings(learning_rate=0.01, weight_decay=0.1, adam_eps=1e-3, correct_bias=False)
    optimizer = build_optimizer(module, settings)
    first, second, expected = torch.zeros_like(start), torch.zeros_like(start), start
    for step in range(6):
        gradient = torch.randn_like(start)
        module.weight.grad = gradient.clone()
        factor = 1.0 - step / 10
        set_rates(optimizer, factor)
        leave_uncorrected(optimizer, step)
        optimizer.step()
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient.square()
        rate = 0.01 * factor
        expected = expected * (1 - rate * 0.1) - rate * first / (second.sqrt() + 1e-3)
        torch.testing.assert_close(module.weight.detach(), expected)


class Watched(Objective):
    """Notes where the training is."""

    seen: list = []

    def __init__(self, sizes) -> None:
        super().__init__()
        self.zero = nn.Parameter(torch.zeros(()))

    def forward(self, states, gold, targets=None):
        Watched.seen.append(states.moment)
        return self.zero * 0.0


def watched(accumulate: int = 1, **train_settings) -> list[Moment]:
    """The moments of a training of two phases, two and three epochs."""
    recipe = tiny("baseline", epochs=3, batch_size=16, accumulate=accumulate, **train_settings)
    terms = {**recipe.terms, "watched": Term(Watched)}
    run = run_of(replace(recipe, terms=terms, phases=(Phase(2, ("watched",)), Phase())))
    Watched.seen = []
    for _ in train(run, on_cpu()):
        pass
    return list(Watched.seen)


def test_objectives_know_where_the_training_is():
    moments = watched()
    batches = len(moments) // 5
    assert [moment.step for moment in moments] == list(range(5 * batches))
    assert {moment.steps for moment in moments} == {5 * batches}
    assert [moment.epoch for moment in moments] == [at // batches for at in range(5 * batches)]
    assert [moment.batch for moment in moments] == [at % batches for at in range(5 * batches)]
    assert [moment.phase for moment in moments] == [0] * 2 * batches + [1] * 3 * batches
    together = watched(accumulate=2)
    assert together[-1].steps == 5 * math.ceil(batches / 2)
    assert [moment.step for moment in together[:3]] == [0, 0, 1]


def test_the_rate_rises_and_falls_once_in_the_whole_run(monkeypatch):
    from wingspan.training import loop

    seen: list[float] = []
    monkeypatch.setattr(loop, "set_rates", lambda optimizer, factor: seen.append(factor))
    steps = len(watched(schedule_over="run", warmup=0.0))
    assert seen == pytest.approx([1.0 - at / steps for at in range(steps)])
    seen.clear()
    watched(warmup=0.0)
    assert seen[0] == seen[2 * steps // 5] == 1.0  # once in each phase
