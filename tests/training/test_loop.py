"""What a training does besides learning: stops when it breaks or gets no better, keeps the best, writes things down."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from rich.console import Console

import wingspan
from trainings import HASHED, dev_documents, on_cpu, run_of, tiny, train_documents
from wingspan.evaluation.scores import recognition
from wingspan.objectives.classification import Classification
from wingspan.recipe import Phase, Term
from wingspan.training import loop
from wingspan.training.corpora import Corpora
from wingspan.training.journal import read_journal
from wingspan.training.loop import TrainingData, accelerator_for, train
from wingspan.training.run import TrainingJob, train_seeds
from wingspan.training.state import latest_state, load_position


class Breaking(Classification):
    """Loses its number in the third epoch."""

    calls = 0

    def forward(self, states, gold, targets=None):
        Breaking.calls += 1
        loss = super().forward(states, gold, targets)
        return loss * float("nan") if Breaking.calls > 8 else loss


def test_a_loss_that_is_no_number_ends_the_run_and_keeps_the_last_good_state(tmp_path):
    Breaking.calls = 0
    recipe = replace(tiny("baseline", epochs=9, batch_size=16), terms={"spans": Term(partial(Breaking))})
    with pytest.raises(ValueError, match=r"the loss 'spans' is nan in epoch \d near step \d+; the last good") as caught:
        wingspan.train(recipe, train=train_documents(8), output=tmp_path, device="cpu", settings={})
    assert "lower train.learning_rate" in str(caught.value)
    events = read_journal(tmp_path / "journal.jsonl")
    assert events[-1]["event"] == "error"
    assert events[-1]["message"] == str(caught.value)
    epochs = [event for event in events if event["event"] == "epoch"]
    assert epochs
    assert load_position(latest_state(tmp_path / "state")).total == epochs[-1]["step"]
    recipe_kept = json.loads((tmp_path / "recipe.json").read_text())["recipe"]
    assert recipe_kept["terms"]["spans"]["objective"]["part"].endswith(":Breaking")


@pytest.mark.parametrize("checkpoint_steps", [None, 1])
def test_weights_that_break_in_the_last_step_are_not_kept(tmp_path, checkpoint_steps):
    """The loss of a step is computed before it, so the last one is a number still."""
    good = wingspan.train(tiny("baseline"), train=train_documents(3), output=tmp_path / "good", device="cpu")
    assert all(bool(torch.isfinite(value).all()) for value in good.learner.parameters())
    run = run_of(
        tiny("baseline", learning_rate=1e38, clip=0.0, batch_size=1000, checkpoint_steps=checkpoint_steps),
        documents=train_documents(3),
        states=tmp_path / "state",
    )
    for parameter in run.learner.parameters():
        parameter.data.mul_(1e4)
    with pytest.raises(ValueError, match=r"(are no longer finite|is nan|is inf) in epoch 1 near step"):
        list(train(run, on_cpu()))
    assert latest_state(tmp_path / "state") is None


def test_a_state_is_saved_after_the_model_that_it_relies_on(tmp_path):
    """A run that is killed while the best model is saved goes on before that epoch's end, and saves it again."""
    run = run_of(tiny("baseline", epochs=3), documents=train_documents(3), states=tmp_path)
    for progress in train(run, on_cpu()):
        if progress.position.step == 0:  # an epoch has ended, and whoever listens saves the model now
            state = latest_state(tmp_path)
            assert (load_position(state).epoch if state else 0) == progress.position.epoch - 1
    assert load_position(latest_state(tmp_path)).epoch == 3


def test_every_step_of_every_epoch_draws_otherwise(monkeypatch):
    seeds = []
    monkeypatch.setattr(loop, "seed_draws", lambda seed, device: seeds.append(seed))
    run = run_of(tiny("baseline", epochs=3, batch_size=8), documents=train_documents(8))
    list(train(run, on_cpu()))
    assert len(set(seeds)) == len(seeds) > 6


def test_every_epoch_has_its_own_order():
    run = run_of(tiny("baseline", epochs=3, batch_size=2), documents=train_documents(8))
    epochs = loop.plan(run, 0)
    assert len({str(epoch) for epoch in epochs}) == 3
    assert len({str(sorted(at for batch in epoch for at in batch)) for epoch in epochs}) == 1
    again = run_of(tiny("baseline", epochs=3, batch_size=2), documents=train_documents(8))
    assert loop.plan(again, 0) == epochs


@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_gradients_are_clipped_before_the_weights_change(clip):
    norms = []
    module = torch.nn.Linear(4, 1, bias=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    update = loop.Update(module, optimizer, clip)
    optimizer.register_step_pre_hook(lambda *_: norms.append(float(module.weight.grad.norm())))
    update.backward(100 * module(torch.ones(1, 4)).sum(), share=1)
    update.step()
    assert norms == [pytest.approx(clip or 200.0)]
    assert module.weight.grad is None


def scores_by_epoch(monkeypatch, right: list[int]) -> list[dict[str, torch.Tensor]]:
    """Dev scores as wished: so many entities found in each document. Returns the weights of every epoch."""
    gold, seen, numbers = dev_documents(), [], iter(right)

    def score(run, accelerator):
        seen.append({name: value.clone() for name, value in run.learner.state_dict().items()})
        number = next(numbers)
        return recognition(gold, [replace(document, entities=document.entities[:number]) for document in gold])

    monkeypatch.setattr(loop, "score", score)
    return seen


def test_patience_ends_a_run_that_gets_no_better(monkeypatch, tmp_path):
    seen = scores_by_epoch(monkeypatch, [1, 3, 2, 2, 4, 4])
    recipe = tiny("baseline", epochs=6, patience=2)
    model = wingspan.train(recipe, train=train_documents(3), dev=dev_documents(), output=tmp_path, device="cpu")
    assert len(seen) == 4
    found = model.learner.state_dict()
    assert all(torch.equal(found[name], seen[1][name]) for name in found)
    events = [event for event in read_journal(tmp_path / "journal.jsonl") if event["event"] == "epoch"]
    assert [event["best"] for event in events] == [True, True, False, False]
    # resumed, it knows that its patience is spent
    wingspan.train(recipe, train=train_documents(3), dev=dev_documents(), output=tmp_path, device="cpu", resume=True)
    assert len(seen) == 4


def test_an_epoch_that_is_only_as_good_is_kept_and_costs_patience(monkeypatch):
    seen = scores_by_epoch(monkeypatch, [1, 3, 3, 3, 4])
    recipe = tiny("baseline", epochs=5, patience=2)
    model = wingspan.train(recipe, train=train_documents(3), dev=dev_documents(), device="cpu")
    assert len(seen) == 4
    found = model.learner.state_dict()
    assert all(torch.equal(found[name], seen[3][name]) for name in found)


def test_without_dev_the_last_epoch_is_kept():
    run = run_of(tiny("baseline", epochs=2), documents=train_documents(3))
    events = [progress for progress in train(run, on_cpu()) if progress.position.step == 0]
    assert [progress.best for progress in events] == [True, True]
    assert [progress.scores for progress in events] == [None, None]


def test_phases_train_their_own_terms(tmp_path):
    recipe = replace(
        tiny("bundling/bl-span", epochs=2), phases=(Phase(epochs=1, terms=("tags",)), Phase(epochs=None, terms=None))
    )
    run = run_of(recipe, documents=train_documents(4), states=tmp_path)
    before = {name: value.clone() for name, value in run.learner.state_dict().items()}
    progresses = train(run, on_cpu())
    first = next(progress for progress in progresses if progress.position.step == 0)
    assert set(first.losses) == {"loss", "tags"}
    head = "model.scorer.head.layers.0.weight"
    assert torch.equal(run.learner.state_dict()[head], before[head])
    assert not torch.equal(
        run.learner.state_dict()["objectives.tags.score.weight"], before["objectives.tags.score.weight"]
    )
    rest = [progress for progress in progresses if progress.position.step == 0]
    assert [(progress.position.phase, progress.position.epoch) for progress in rest] == [(1, 1), (1, 2)]
    assert set(rest[0].losses) == {"loss", "tags", "spans"}
    assert not torch.equal(run.learner.state_dict()[head], before[head])
    assert rest[-1].position.total == rest[-1].steps
    # resumed between the phases, the second one is the same
    again = run_of(recipe, documents=train_documents(4), states=tmp_path / "again")
    for progress in train(again, on_cpu()):
        if progress.position.phase == 1:
            break  # the state of the first phase's end is the latest
    resumed = run_of(recipe, documents=train_documents(4), states=tmp_path / "again", resume=True)
    list(train(resumed, on_cpu()))
    assert all(
        torch.equal(value, resumed.learner.state_dict()[name]) for name, value in run.learner.state_dict().items()
    )


def test_a_new_phase_has_new_patience(monkeypatch):
    seen = scores_by_epoch(monkeypatch, [3, 1, 1, 1, 1, 1])
    recipe = replace(tiny("baseline", epochs=3, patience=2), phases=(Phase(), Phase()))
    wingspan.train(recipe, train=train_documents(3), dev=dev_documents(), device="cpu")
    assert len(seen) == 3 + 2


def test_accumulated_batches_are_one_large_batch():
    """Every sentence has the same number of words and cells here, so the mean of means is the mean."""
    recipe = replace(
        tiny("bundling/span", epochs=1, batch_size=2, clip=0.0),
        encoder=partial(HASHED.func, **{**HASHED.keywords, "dropout": 0.0}),
        max_width=2,
        overlap="flat",
    )
    recipe = replace(
        recipe,
        spans=partial(recipe.spans.func, **{**recipe.spans.keywords, "dropout": 0.0}),
        head=partial(recipe.head.func, **{**recipe.head.keywords, "dropout": 0.0}),
    )
    document = train_documents(1)[0]
    run = run_of(recipe, documents=[document])
    short = [
        replace(s, words=s.words[:4], entities=(), core=type(s.core)(0, 4), reach=type(s.core)(0, 4))
        for s in run.data.sentences[:4]
    ]
    results = []
    for batch, accumulate in ((4, 1), (2, 2), (1, 4)):
        changed = replace(recipe, train=replace(recipe.train, batch_size=batch, accumulate=accumulate))
        each = replace(run_of(changed, documents=[document]), data=TrainingData(short))
        progress = list(train(each, on_cpu()))
        assert progress[-1].steps == progress[-1].position.total == 1
        results.append(each.learner.state_dict())
    for other in results[1:]:
        for name, value in results[0].items():
            torch.testing.assert_close(other[name], value, rtol=1e-4, atol=1e-5)


def test_a_rest_of_accumulated_batches_counts_as_a_step_when_resumed(tmp_path):
    recipe = tiny("baseline", epochs=3, accumulate=2, batch_size=16, checkpoint_steps=1)
    whole = run_of(recipe, documents=train_documents(9))
    batches = len(whole.data.sentences) // 16 + 1
    assert batches % 2, "the last optimizer step of an epoch has one batch only"
    list(train(whole, accelerator_for("no", "cpu")))
    stopped = replace(run_of(recipe, documents=train_documents(9)), states=tmp_path)
    for _ in train(stopped, accelerator_for("no", "cpu")):
        break  # at the end of the first epoch, before its own state is kept
    assert load_position(latest_state(tmp_path)).step == batches
    resumed = replace(run_of(recipe, documents=train_documents(9)), states=tmp_path, resume=True)
    list(train(resumed, accelerator_for("no", "cpu")))
    for name, value in whole.learner.state_dict().items():
        assert value.equal(resumed.learner.state_dict()[name]), name


def test_several_seeds_have_folders_and_a_summary(tmp_path):
    job = TrainingJob(tiny("baseline"), Corpora(train_documents(6), dev_documents()), tmp_path / "runs", device="cpu")
    figures = train_seeds(job, [3, 5], Console(quiet=True))
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed-3", "seed-5", "summary.json"]
    summary = json.loads((tmp_path / "runs" / "summary.json").read_text())
    assert summary == json.loads(json.dumps(figures))
    assert summary["seeds"] == [3, 5]
    values = summary["micro"]["f1"]["values"]
    each = [
        json.loads((tmp_path / "runs" / f"seed-{n}" / "facts.json").read_text())["dev"]["micro"]["f1"] for n in (3, 5)
    ]
    assert values == each
    assert summary["micro"]["f1"]["mean"] == pytest.approx(sum(values) / 2)
    assert summary["micro"]["f1"]["deviation"] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
    with pytest.raises(ValueError, match="--seeds 1,1: each seed once"):
        train_seeds(replace(job, folder=tmp_path / "twice"), [1, 1], Console(quiet=True))


def test_a_run_resumed_with_another_order_of_the_data_is_refused(tmp_path):
    wingspan.train(tiny("baseline"), train=train_documents(3), output=tmp_path, device="cpu")
    again = partial(wingspan.train, output=tmp_path, device="cpu", resume=True)
    with pytest.raises(ValueError, match="--resume: train.batch_size is 3 now and was 16; give the same"):
        again(tiny("baseline", batch_size=3), train=train_documents(3))
    with pytest.raises(ValueError, match="--resume: seed is 2 now and was 1"):
        again(tiny("baseline"), train=train_documents(3), seed=2)
    with pytest.raises(ValueError, match="--resume: training corpus is"):
        again(tiny("baseline"), train=train_documents(2))
    with pytest.raises(ValueError, match="there is a run already; choose another --output, or go on with --resume"):
        wingspan.train(tiny("baseline"), train=train_documents(3), output=tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("place.json", b"{}x", "place.json: damaged"),
        ("place.json", b'{"where": 1}', "place.json: damaged"),
        ("learner.safetensors", b"half", "the weights do not fit or are damaged"),
        ("optimizer.pt", b"half", "the optimizer's state is damaged"),
    ],
)
def test_a_damaged_state_is_one_sentence(tmp_path, name, content, message):
    wingspan.train(tiny("baseline", epochs=2), train=train_documents(3), output=tmp_path, device="cpu")
    (latest_state(tmp_path / "state") / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        wingspan.train(tiny("baseline", epochs=2), train=train_documents(3), output=tmp_path, device="cpu", resume=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_gets_events(tmp_path):
    pytest.importorskip("tensorboard")
    recipe = tiny("baseline", epochs=2)
    wingspan.train(
        recipe, train=train_documents(3), dev=dev_documents(2), output=tmp_path, device="cpu", track="tensorboard"
    )
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (file,) = tmp_path.rglob("*tfevents*")
    events = EventAccumulator(str(file.parent))
    events.Reload()
    assert {"loss", "spans", "dev_f1"} <= set(events.Tags()["scalars"])
    assert len(events.Scalars("dev_f1")) == 2


def test_hardware_that_is_not_there_is_said(tmp_path):
    with pytest.raises(ValueError, match="--track nonsense: not installed or unknown"):
        accelerator_for("no", "cpu", "nonsense", tmp_path)
    with pytest.raises(ValueError, match="no device 'gpu'"):
        accelerator_for("no", "gpu")
    for precision in ("fp16", "bf16"):
        with pytest.raises(ValueError, match=f"train.precision={precision} needs a GPU"):
            accelerator_for(precision, "cpu")


def test_the_journal_tells_the_run(tmp_path):
    wingspan.train(
        tiny("baseline", epochs=2), train=train_documents(5), dev=dev_documents(2), output=tmp_path, device="cpu"
    )
    events = read_journal(tmp_path / "journal.jsonl")
    assert [event["event"] for event in events] == ["start", "epoch", "epoch", "end"]
    assert events[0]["coverage"][0].startswith("Coverage: ")
    assert events[1]["losses"]["loss"] > events[2]["losses"]["loss"] > 0
    assert events[2]["step"] == events[2]["steps"]
    assert events[3]["dev"]["micro"]["f1"] == max(event["dev_f1"] for event in events[1:3])
