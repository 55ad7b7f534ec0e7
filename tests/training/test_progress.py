import io
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from wingspan.evaluation.scores import recognition
from wingspan.text import Document, Entity
from wingspan.training.journal import TrainingBar
from wingspan.training.loop import Progress
from wingspan.training.state import Position

GOLD = [Document("d", "fever and cough", (Entity.at("S", 0, 5), Entity.at("S", 10, 15)))]
HALF = recognition(GOLD, [Document("d", "fever and cough", (Entity.at("S", 0, 5),))])


class Clock:
    """A clock that goes on only when told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def training(clock: Clock, seconds: float = 1.0, resumed: int = 0) -> Iterator[Progress]:
    """Three epochs of 40 steps with a progress every 20, scored from the second epoch on."""
    for total in range(resumed + 20, 121, 20):
        clock.now += 20 * seconds
        epoch, step = divmod(total, 40)
        losses = {"loss": 1 / total, "tags": 9.0}
        if step:
            yield Progress(Position(0, epoch, step, total), 120, losses, None, False)
        else:
            yield Progress(Position(0, epoch - 1, 40, total), 120, losses, None, False)
            scores = HALF if epoch > 1 else None
            yield Progress(Position(0, epoch, 0, total), 120, losses, scores, best=epoch == 2)


def test_in_a_pipe_one_plain_line_for_each_epoch() -> None:
    out, clock = io.StringIO(), Clock()
    with TrainingBar(Console(file=out, width=40, force_terminal=False), True, clock) as bar:
        for progress in training(clock):
            bar.update(progress)
    assert out.getvalue().splitlines() == [
        "epoch 1  loss 0.0250  step 40/120  0:01:20 left",
        "epoch 2  loss 0.0125  dev F1 66.67 (best)  step 80/120  0:00:40 left",
        "epoch 3  loss 0.0083  dev F1 66.67  step 120/120",
    ]


def test_disabled_on_a_terminal_prints_the_same_lines_and_no_bar() -> None:
    out, clock = io.StringIO(), Clock()
    with TrainingBar(Console(file=out, force_terminal=True, width=100, _environ={}), False, clock) as bar:
        for progress in training(clock):
            bar.update(progress)
    assert len(out.getvalue().splitlines()) == 3
    assert "\x1b" not in out.getvalue()


def test_on_a_terminal_a_bar_with_loss_f1_epoch_and_time_left() -> None:
    out, clock = io.StringIO(), Clock()
    console = Console(file=out, width=100, force_terminal=True, _environ={})
    with TrainingBar(console, True, clock) as bar:
        assert bar.bars is not None
        for progress in training(clock):
            bar.update(progress)
            if progress.position.total == 100:
                bar.bars.refresh()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    lines = [line.strip() for line in re.split(r"[\r\n]+", shown)]
    assert any(
        re.fullmatch(r"epoch 3 ━*\S* *━*\s+83% loss 0\.0100  dev F1 66\.67 0:00:20 left", line) for line in lines
    )
    assert "epoch 2  loss 0.0125  dev F1 66.67 (best)  step 80/120  0:00:40 left" in lines


def test_a_resumed_run_is_timed_by_its_own_steps() -> None:
    out, clock = io.StringIO(), Clock()
    with TrainingBar(Console(file=out, width=100, force_terminal=True, _environ={}), True, clock) as bar:
        assert bar.bars is not None
        for progress in training(clock, seconds=2.0, resumed=40):
            bar.update(progress)
            if progress.position.total == 100:
                assert bar.bars.tasks[0].time_remaining == 40
    assert "step 80/120  0:01:20 left" in out.getvalue()


def test_later_phases_are_named() -> None:
    out = io.StringIO()
    with TrainingBar(Console(file=out, width=100, force_terminal=False)) as bar:
        bar.update(Progress(Position(1, 2, 0, 7), 9, {}, None, False))
    assert out.getvalue() == "phase 2, epoch 2  step 7/9\n"


def test_an_error_leaves_the_terminal_as_it_was() -> None:
    out = io.StringIO()
    bar = TrainingBar(Console(file=out, width=100, force_terminal=True, _environ={}), True)
    with pytest.raises(AttributeError), bar:
        bar.update(None)
    assert out.getvalue().rfind("\x1b[?25h") > out.getvalue().rfind("\x1b[?25l")


def test_the_bar_needs_no_torch() -> None:
    code = "import sys, wingspan.training.journal, wingspan.views.terminal; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("steps", "said"), [(100, "100 steps in all are few: take a smaller --batch-size"), (5000, "--l")]
)
def test_epochs_without_a_right_entity_get_advice_once(steps, said) -> None:
    out = io.StringIO()
    nothing = recognition(GOLD, [Document("d", "fever and cough")])
    with TrainingBar(Console(file=out, width=300, force_terminal=False)) as bar:
        for epoch in range(1, 6):
            bar.update(Progress(Position(0, epoch, 0, epoch), steps, {"loss": 1.0}, nothing, True))
    assert out.getvalue().count("Nothing is right on dev yet.") == 1
    assert said in out.getvalue()
