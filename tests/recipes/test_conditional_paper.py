"""`conditional/paper`: what Oi and Miwa 2025's code really did, deviation by deviation (systems.md 5.B, 5.C, 5.D).

In other files: padding as "nothing" of the first corpus (test_conditional.py), foreign classes at a score of 0
(test_corpus_classes.py), context in words (test_context.py), a schedule that is four times too long and names that are
frozen (test_optimizer.py), whole batches only (test_mixing.py), keys without adapters (test_adapters.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from conditionals import MAP, run_of, small
from several import two_corpora
from tiny import sentence
from tiny_models import tiny_t5
from torch import nn

from trainings import HASHED, on_cpu
from wingspan.corpora.label_map import read_label_map
from wingspan.encoders.lora import adapted_layers
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.model import tensors
from wingspan.recipes import find
from wingspan.training.loop import build_optimizer, collator, held_still, kept, plan, rate_factor, train
from wingspan.training.multi_corpus import epoch_batches

EXAMPLE = Path(__file__).parents[2] / "examples" / "biomedical"


def paper():
    return replace(find("conditional/paper"), encoder=HASHED)


def test_the_settings_of_table_4_and_of_the_released_command():
    recipe = find("conditional/paper")
    assert recipe.encoder.keywords["name"] == "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"
    assert recipe.train.learning_rate == 7e-4
    assert recipe.terms["cvae"].weight == 1e-4
    assert (recipe.train.batch_size, recipe.train.accumulate) == (16, 4)  # 64, four batches of one corpus each
    assert recipe.max_width == 10
    assert recipe.spans.keywords["around"].keywords["width_size"] == 150
    assert (recipe.train.epochs, recipe.train.patience, recipe.train.clip, recipe.train.weight_decay) == (100, 5, 0, 0)
    assert recipe.train.adam_eps == 1e-6
    for alone in ("conditional/paper-single", "conditional/paper-multi"):
        assert set(find(alone).terms) == {"spans"}
        assert find(alone).train == recipe.train
    assert recipe.overlap == "any"  # nothing is removed for overlapping
    assert (recipe.segments.context, recipe.segments.context_words) == ("document", 150)


def test_the_head_has_three_layers():
    learner = run_of(small("conditional/paper")).learner
    layers = [layer for layer in learner.model.scorer.head.modules() if isinstance(layer, nn.Linear)]
    size = learner.model.scorer.spans.size
    assert [(layer.in_features, layer.out_features) for layer in layers] == [
        (size, size),
        (size, size // 2),
        (size // 2, 6),
    ]


def test_foreign_classes_keep_a_score_of_zero_and_can_win():
    run = run_of(small("conditional/paper"))
    classes = run.learner.objectives["spans"].classes
    assert classes.foreign == "multiply"
    scores = torch.full((1, 1, 6), -1.0)
    read = classes.read(scores, torch.tensor([0]))
    assert read[0, 0].tolist() == [-1, -1, -1, 0, 0, 0]
    default = run_of(small("conditional")).learner.objectives["spans"].classes
    assert default.read(scores, torch.tensor([0]))[0, 0].argmax() < 3


def test_the_rows_are_frozen_by_the_released_command():
    run = run_of(small("conditional/paper"))
    assert not run.learner.objectives["cvae"].rows.requires_grad
    assert run_of(small("conditional/paper-trained-rows")).learner.objectives["cvae"].rows.requires_grad


def test_rows_that_learn_do_so_half_as_fast():
    recipe = replace(find("conditional/paper-trained-rows"), encoder=HASHED, segments=find("conditional").segments)
    run = run_of(recipe)
    groups = build_optimizer(run.learner, run.recipe.train).param_groups
    rates = {id(p): group["lr"] for group in groups for p in group["params"]}
    assert rates[id(run.learner.objectives["cvae"].rows)] == pytest.approx(3.5e-4)


def test_no_bias_learns():
    run = run_of(small("conditional/paper", frozen=paper().train.frozen))
    head = run.learner.model.scorer.head
    assert all(layer.bias.any() for layer in FeedForwardHead(8, 3, **find("conditional/paper").head.keywords).layers)
    before = {name: parameter.detach().clone() for name, parameter in run.learner.named_parameters()}
    *_, _ = train(run, on_cpu())
    for name, parameter in run.learner.named_parameters():
        if "bias" in name:
            assert torch.equal(parameter, before[name]), name
    assert not torch.equal(head.layers[0].weight, before["model.scorer.head.layers.0.weight"])


def test_the_whole_loss_counts_padding_and_moves_no_target_away():
    objective = run_of(small("conditional/paper")).learner.objectives["cvae"]
    assert (objective.over, objective.detach) == ("everything", False)
    assert (objective.error, objective.beta, objective.schedule) == ("mean", 1.0, "constant")
    trained_rows = run_of(small("conditional/paper-trained-rows")).learner.objectives["cvae"]
    assert (trained_rows.error, trained_rows.beta) == ("mean", 1.0)


def test_batches_are_of_one_corpus_and_the_rest_is_dropped():
    lengths, corpora = [5] * 70, ["a"] * 40 + ["b"] * 30
    settings = find("conditional/paper").train
    found = kept(epoch_batches(lengths, corpora, settings, {}, (1, 0), 0), settings)
    assert sorted({corpora[at] for at in batch} == {"a"} for batch in found) == [False, True, True]
    assert {len(batch) for batch in found} == {16}  # 8 of the first and 14 of the second are left over


def test_the_schedule_runs_on_steps_but_was_made_for_batches():
    """Accelerate's scheduler moves once in four batches: a warm-up of 10 epochs lasts 40."""
    settings = find("conditional/paper").train
    steps = 100 * 25  # optimizer steps of 100 epochs of 100 batches
    assert rate_factor(40 * 25 - 1, steps, settings) == pytest.approx(1.0)
    assert rate_factor(15 * 25 - 1, steps, settings) * settings.learning_rate == pytest.approx(2.625e-4)


def test_four_batches_make_a_step():
    recipe = small("conditional/paper", batch_size=2, accumulate=4, batches="single", whole_batches=True)
    run = run_of(recipe, two_corpora(6, label_map=MAP))
    batches = len(plan(run, 0)[0])
    *_, last = train(run, on_cpu())
    assert last.position.total == -(-batches // 4)


def test_the_released_code_has_another_map_for_gnormplus():
    table7, code = (read_label_map(EXAMPLE / name) for name in ("label_map.tsv", "label_map_code.tsv"))
    differ = {
        pair: (table7.targets[pair], code.targets[pair])
        for pair in table7.targets
        if table7.targets[pair] != code.targets[pair]
    }
    assert differ == {("gnormplus", "FamilyName"): ("Gene", None), ("gnormplus", "DomainMotif"): (None, "Gene")}
    assert set(code.targets) == set(table7.targets)


def test_with_bert_every_corpus_is_the_unknown_token(folders):
    recipe = find("conditional/paper")
    settings = {**recipe.encoder.keywords, "name": str(folders["bert"]), "corpora": ("drugs", "genes")}
    encoder = recipe.encoder.func(**settings)
    tokens = encoder.tokenize([sentence("a b", dataset=name) for name in ("drugs", "genes")]).tokens
    unknown = encoder.tokenizer.unk_token_id
    assert tokens[0].tolist() == tokens[1].tolist()
    assert tokens[0, -2] == unknown
    assert encoder.corpus_tokens is None  # nothing was added, nothing learns
    own = find("conditional").encoder.keywords
    assert own["corpus_token"] == "end"


def test_with_t5_keys_have_no_adapters_and_tokens_of_corpora_do_not_learn(tmp_path):
    pytest.importorskip("peft")
    recipe = find("conditional/paper-t5")
    settings = recipe.encoder.keywords
    assert (settings["quantize"], settings["adapters"].rank, settings["corpus_token"]) == ("4bit", 32, "end")
    folder = tiny_t5(tmp_path / "t5")
    encoder = partial(recipe.encoder.func, **{**settings, "name": str(folder), "quantize": None})
    run = run_of(replace(recipe, encoder=encoder, segments=find("conditional").segments))
    adapted = {name.rpartition(".")[2] for name in adapted_layers(run.learner.model.encoder.model)}
    assert adapted <= {"q", "v", "o", "wi", "wo"}
    assert {"q", "v", "o", "wo"} <= adapted
    assert recipe.train.frozen == ("bias", "layer_norm", "corpus_tokens")
    with held_still(run.learner, recipe.train.frozen):
        for name, parameter in run.learner.named_parameters():
            if any(part in name for part in recipe.train.frozen):
                assert not parameter.requires_grad, name


def test_what_counts_is_read_in_float32_by_the_loss():
    run = run_of(small("conditional/paper"))
    collate = collator(run.recipe, run.labels, run.learner)
    batch = tensors(collate(run.data.sentences[:4]), "cpu")
    losses = run.learner(batch.inputs, batch.gold, dict(batch.targets), tuple(run.recipe.terms))
    assert losses["loss"].item() == pytest.approx(losses["spans"].item() + 1e-4 * losses["cvae"].item())
