"""Moving averages of weights: by hand, what is scored and saved with them, and after a kill."""

import signal
from contextlib import suppress

import pytest
import torch
from resumable import process
from safetensors.torch import load_file
from torch import nn

import wingspan
from trainings import dev_documents, on_cpu, run_of, tiny, train_documents
from wingspan.recipe import TrainSettings
from wingspan.training.loop import MovingAverage, train
from wingspan.training.state import latest_state


def test_by_hand():
    module = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        module.weight.fill_(1.0)
        average, expected = MovingAverage(module, 0.5), 1.0
        for step, value in enumerate((3.0, -2.0, 7.0, 4.0)):
            module.weight.fill_(value)
            average.step(step)
            stays = min(0.5, (1 + step) / (10 + step))
            expected = stays * expected + (1 - stays) * value
        assert average.weights[0].item() == pytest.approx(expected)
        with average.in_place():
            assert module.weight.item() == pytest.approx(expected)
        assert module.weight.item() == 4.0


def test_the_weights_come_back_after_an_error():
    module = nn.Linear(2, 2)
    average, before = MovingAverage(module, 0.9), module.weight.clone()
    average.weights[0].zero_()
    with suppress(KeyError), average.in_place():
        assert float(module.weight.detach().abs().sum()) == 0
        raise KeyError
    assert torch.equal(module.weight, before)


def test_frozen_weights_and_none_are_left_alone():
    module = nn.Linear(2, 2)
    module.bias.requires_grad_(False)
    assert len(MovingAverage(module, 0.9).weights) == 1
    nothing = MovingAverage(module, None)
    nothing.step(0)
    with nothing.in_place():
        assert not nothing.weights


def test_the_average_is_scored_and_kept_and_the_weights_learn_on():
    """Epoch by epoch the consumer sees the average; the run itself goes on as one without it."""
    plain, averaged = (run_of(tiny("baseline", epochs=3, average=share)) for share in (None, 0.9))
    seen: list[dict[str, torch.Tensor]] = []
    for progress in train(averaged, on_cpu()):
        if progress.position.step == 0:
            seen.append({name: value.clone() for name, value in averaged.learner.state_dict().items()})
    list(train(plain, on_cpu()))
    ends = [run.learner.state_dict() for run in (plain, averaged)]
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert any(not torch.equal(seen[-1][name], ends[1][name]) for name in seen[-1])


def test_the_saved_model_has_the_average(tmp_path):
    recipe = tiny("baseline", epochs=2, average=0.95, learning_rate=1e-2)
    model = wingspan.train(recipe, train=train_documents(6), dev=dev_documents(3), output=tmp_path, device="cpu")
    saved = load_file(tmp_path / "model.safetensors")
    last = load_file(latest_state(tmp_path / "state") / "learner.safetensors")
    name = "model.scorer.head.layers.0.weight"
    assert torch.equal(saved[name], dict(model.learner.named_parameters())[name])
    assert not torch.equal(saved[name], last[name])


def test_a_killed_run_goes_on_with_its_average(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    settings = {"average": 0.8}
    first = process(whole, train=settings)
    dying = process(killed, kill=("step", 7), train=settings)
    for running in (first, dying):
        running.join(120)
    assert (first.exitcode, dying.exitcode) == (0, -signal.SIGKILL)
    again = process(killed, resume=True, train=settings)
    again.join(120)
    assert again.exitcode == 0
    models = [load_file(folder / "model.safetensors") for folder in (whole, killed)]
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[0])
    averages = [
        torch.load(latest_state(folder / "state") / "optimizer.pt", weights_only=True)["average"]
        for folder in (whole, killed)
    ]
    assert averages[0]
    assert all(torch.equal(*pair) for pair in zip(*averages, strict=True))


def test_a_share_is_a_share():
    with pytest.raises(ValueError, match=r"train.average is 1; it is a share of the average, from 0 to less than 1"):
        TrainSettings(average=1)
