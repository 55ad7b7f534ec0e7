import pytest
import torch
from torch import nn

from trainings import first_losses, run_of, tiny
from wingspan.recipe import TrainSettings
from wingspan.training.loop import Update, build_optimizer, held_still, rate_factor, set_rates


def factors(schedule: str, steps: int = 20, warmup: float = 0.0) -> list[float]:
    settings = TrainSettings(schedule=schedule, warmup=warmup)
    return [rate_factor(step, steps, settings) for step in range(steps)]


def test_linear_falls_evenly():
    assert factors("linear") == pytest.approx([1 - n / 20 for n in range(20)])


def test_cosine_starts_slowly_and_ends_near_zero():
    found = factors("cosine")
    assert found[0] == 1.0
    assert found[10] == pytest.approx(0.5)
    assert found[-1] < 0.01
    assert all(a > b for a, b in zip(found, found[1:], strict=False))


def test_constant_stays():
    assert factors("constant") == [1.0] * 20


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant"])
def test_warmup_rises_to_one(schedule):
    found = factors(schedule, 100, 0.1)
    assert found[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert found[10] == pytest.approx(1.0)
    assert all(0 < factor <= 1 for factor in found)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("warmup", [0.0, 0.1, 1.0])
def test_short_runs_have_rates(steps, warmup):
    assert all(0 < factor <= 1 for factor in factors("linear", steps, warmup))


def test_a_stretched_schedule_does_not_come_to_its_end():
    settings = TrainSettings(warmup=0.1, stretch=4.0)
    found = [rate_factor(step, 100, settings) for step in range(100)]
    assert found[:40] == pytest.approx([n / 40 for n in range(1, 41)])  # a tenth of four times the steps
    assert found[99] == pytest.approx(1 - 59 / 360)
    with pytest.raises(ValueError, match="train.stretch is 0.5"):
        TrainSettings(stretch=0.5)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"deep": nn.Linear(2, 2), "norm": nn.LayerNorm(2)})
        self.head = nn.Linear(2, 3)
        self.frozen = nn.Linear(2, 2).requires_grad_(False)


def groups(module: nn.Module, settings: TrainSettings) -> dict[str, tuple[float, float]]:
    """Rate and decay of each parameter."""
    found = build_optimizer(module, settings).param_groups
    place = {id(p): (group["lr"], group["weight_decay"]) for group in found for p in group["params"]}
    return {name: place[id(p)] for name, p in module.named_parameters() if id(p) in place}


def test_what_is_held_still_is_in_no_group_until_it_is_released():
    module = Small()
    before = set(groups(module, TrainSettings()))
    with held_still(module, ("bias", "norm")):
        assert set(groups(module, TrainSettings())) == {"encoder.deep.weight", "head.weight"}
    assert set(groups(module, TrainSettings())) == before  # not what could not learn before either


def test_gradients_of_what_is_frozen_are_not_clipped_with_the_others():
    module = Small()
    with held_still(module, ("head",)):
        optimizer = build_optimizer(module, TrainSettings(learning_rate=0.0))
    update = Update(module, optimizer, clip=1.0)
    for parameter in (module.head.weight, module.encoder["deep"].weight):
        parameter.grad = torch.full_like(parameter, 100.0 if parameter is module.head.weight else 0.25)
    kept = module.encoder["deep"].weight.grad
    update.step()
    assert kept.tolist() == [[0.25, 0.25], [0.25, 0.25]]  # their norm is 0.5


def test_decays_multiply_the_weight_decay_of_their_part():
    found = groups(Small(), TrainSettings(weight_decay=0.5, decays={"encoder": 0.1, "encoder.norm": 2.0}))
    decays = {name: decay for name, (_, decay) in found.items()}
    assert decays["encoder.deep.weight"] == pytest.approx(0.05)
    assert decays["head.weight"] == 0.5
    assert decays["encoder.deep.bias"] == decays["encoder.norm.weight"] == 0.0


def test_the_longest_prefix_counts():
    settings = TrainSettings(learning_rate=1.0, factors={"encoder": 0.1, "encoder.deep": 0.01, "head": 10.0})
    rates = {name: rate for name, (rate, _) in groups(Small(), settings).items()}
    assert rates["encoder.deep.weight"] == rates["encoder.deep.bias"] == pytest.approx(0.01)
    assert rates["encoder.norm.weight"] == pytest.approx(0.1)
    assert rates["head.weight"] == pytest.approx(10.0)
    assert not any(name.startswith("frozen") for name in rates)


def test_biases_and_norms_do_not_decay_unless_asked():
    decays = {name: decay for name, (_, decay) in groups(Small(), TrainSettings(weight_decay=0.5)).items()}
    assert {name for name, decay in decays.items() if decay} == {"encoder.deep.weight", "head.weight"}
    every = groups(Small(), TrainSettings(weight_decay=0.5, decay_bias=True))
    assert {decay for _, decay in every.values()} == {0.5}


def test_rates_follow_from_the_step_alone():
    optimizer = build_optimizer(Small(), TrainSettings(learning_rate=2.0, factors={"head": 0.5}))
    for factor in (0.25, 1.0, 0.25):
        set_rates(optimizer, factor)
        assert {group["lr"] for group in optimizer.param_groups} == {2.0 * factor, 1.0 * factor}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "train.epochs is 0; give at least 1"),
        ({"batch_size": -3}, "train.batch_size is -3; give at least 1"),
        ({"accumulate": 0}, "train.accumulate is 0"),
        ({"patience": 0}, "train.patience is 0"),
        ({"checkpoint_steps": 0}, "train.checkpoint_steps is 0"),
        ({"learning_rate": -1.0}, "train.learning_rate is -1.0; give 0 or more"),
        ({"warmup": 2.0}, "train.warmup is 2.0; it is a share of all steps"),
    ],
)
def test_numbers_that_cannot_work_are_said(settings, message):
    with pytest.raises(ValueError, match=message):
        TrainSettings(**settings)


def test_every_parameter_of_a_recipe_is_in_one_group():
    run = run_of(tiny("bundling/bl-span-crf", factors={"model.scorer": 10.0, "objectives": 3.0}))
    found = build_optimizer(run.learner, run.recipe.train).param_groups
    ids = [id(p) for group in found for p in group["params"]]
    assert len(ids) == len(set(ids)) == len(list(run.learner.parameters()))
    rates = groups(run.learner, run.recipe.train)
    assert rates["model.scorer.head.layers.0.weight"][0] == pytest.approx(5e-2)
    assert rates["objectives.tags.score.weight"][0] == pytest.approx(1.5e-2)
    assert rates["model.encoder.table.weight"][0] == pytest.approx(5e-3)


def test_a_rate_of_zero_learns_nothing():
    run = run_of(tiny("baseline", learning_rate=0.0))
    before = {name: value.clone() for name, value in run.learner.state_dict().items()}
    first_losses(run, 2)
    assert all(torch.equal(value, before[name]) for name, value in run.learner.state_dict().items())
