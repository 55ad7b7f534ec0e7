"""Two phases, killed and resumed: the same weights, also of what only training needs, and of each phase's end."""

from dataclasses import replace

import pytest
import torch
from names import Invented
from safetensors.torch import load_file

from trainings import dev_documents, on_cpu, run_of, tiny
from wingspan.recipe import Phase
from wingspan.recipe_json import override
from wingspan.training.loop import TrainingData, train


def small():
    recipe = tiny("compress_generate", batch_size=16, checkpoint_steps=3)
    for key, value in {"latent_size": 8, "embedding_size": 8, "hidden": 16}.items():
        recipe = override(recipe, f"terms.generate.objective.{key}", str(value))
    return replace(recipe, phases=(Phase(2, ("generate",)), Phase(2)))


def through(folder, stop: int | None = None, resume: bool = False):
    """A training in a folder, left after so many progresses."""
    run = run_of(small(), lexicon=Invented(), states=folder, resume=resume)
    run = replace(run, data=TrainingData(run.data.sentences, dev_documents(1)))
    found = []
    for progress in train(run, on_cpu()):
        found.append(progress)
        if len(found) == stop:
            break
    return run, found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The folder, the run and the progress of a training from its beginning to its end."""
    folder = tmp_path_factory.mktemp("phases") / "whole"
    return folder, *through(folder)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_resumed_run_of_two_phases_ends_with_the_same_weights(stop, tmp_path, undisturbed):
    folder, whole, progress = undisturbed
    through(tmp_path / "cut", stop)
    again, _ = through(tmp_path / "cut", resume=True)
    one, other = whole.learner.state_dict(), again.learner.state_dict()
    assert any(name.startswith("objectives.generate") for name in one)
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    for phase in ("phase-1", "phase-2"):
        kept = [load_file(path / phase / "learner.safetensors") for path in (folder, tmp_path / "cut")]
        assert all(torch.equal(value, kept[1][name]) for name, value in kept[0].items())
    ends = [found for found in progress if found.position.step == 0]
    assert [found.scores is None for found in ends] == [True, True, False, False]  # no head, no scores


def test_the_end_of_a_phase_is_kept_when_the_next_one_goes_on(undisturbed):
    folder, run, _ = undisturbed
    first = load_file(folder / "phase-1" / "learner.safetensors")
    last = load_file(folder / "phase-2" / "learner.safetensors")
    end = run.learner.state_dict()
    assert all(torch.equal(value, end[name]) for name, value in last.items())
    assert not torch.equal(first["model.scorer.head.mean.weight"], last["model.scorer.head.mean.weight"])
