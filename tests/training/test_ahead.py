"""Batches are made one ahead, in a thread: in order, with the errors of the thread, and no thread is left behind."""

import threading
import time

import pytest
import torch

import wingspan
from trainings import dev_documents, on_cpu, run_of, tiny, train_documents
from wingspan.objectives.classification import Classification
from wingspan.training import loop
from wingspan.training.ahead import Ahead
from wingspan.training.loop import train


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("wingspan-ahead")]


def test_items_are_taken_in_order_and_one_ahead():
    begun: list[int] = []
    with Ahead(lambda item: begun.append(item) or item * item, range(4)) as squares:
        assert begun == []  # nothing is made before someone asks
        assert squares.take() == 0
        squares.start()
        squares.start()  # one ahead at most
        while begun != [0, 1]:
            time.sleep(0.001)
        assert [squares.take(), squares.take(), squares.take()] == [1, 4, 9]
        squares.start()  # nothing is left to start
        with pytest.raises(IndexError):
            squares.take()
        assert begun == [0, 1, 2, 3]
    assert threads() == []


def test_items_are_made_in_another_thread():
    with Ahead(lambda item: threading.current_thread().name, "a") as names:
        assert names.take().startswith("wingspan-ahead")


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_an_error_is_raised_where_its_item_is_taken(kind):
    def make(item: int) -> int:
        if item == 1:
            raise kind("the second")
        return item

    with Ahead(make, range(3)) as items:
        assert items.take() == 0
        items.start()
        with pytest.raises(kind, match="the second"):
            items.take()
    assert threads() == []


@pytest.mark.parametrize("name", ["bundling/bl-span", "discontinuous"])
def test_the_weights_are_those_of_a_loop_without_a_thread(name, monkeypatch):
    recipe = tiny(name, epochs=2, batch_size=4, accumulate=2)
    run = run_of(recipe, documents=train_documents(4))
    list(train(run, on_cpu()))

    class InPlace(Ahead):
        """Makes an item when it is taken."""

        def start(self):
            pass

        def take(self):
            return self._make(next(self._items))

    monkeypatch.setattr(loop, "Ahead", InPlace)
    other = run_of(recipe, documents=train_documents(4))
    list(train(other, on_cpu()))
    found, expected = run.learner.state_dict(), other.learner.state_dict()
    assert all(torch.equal(found[key], expected[key]) for key in expected)


def broken_targets(self, sentences, inputs):
    if any("fever" in sentence.words for sentence in sentences):
        return
    raise ValueError("no target for this batch; give it another")


def test_an_error_of_the_collate_is_the_users_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(Classification, "targets", broken_targets)
    with pytest.raises(ValueError, match="^no target for this batch; give it another$"):
        wingspan.train(tiny("baseline"), train=train_documents(4), device="cpu")
    assert threads() == []


def interrupt(*given):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["consumer", "step", "dev"])
def test_an_interrupt_leaves_no_thread(where, monkeypatch):
    options = {"watch": interrupt} if where == "consumer" else {}
    if where == "step":
        monkeypatch.setattr(loop.Update, "step", interrupt)  # the next batch is being made
    if where == "dev":
        monkeypatch.setattr(loop, "score", interrupt)
    recipe = tiny("baseline", epochs=3, batch_size=4)
    with pytest.raises(KeyboardInterrupt):
        wingspan.train(recipe, train=train_documents(4), dev=dev_documents(1), device="cpu", **options)
    assert threads() == []


def test_a_run_that_is_given_up_leaves_no_thread():
    run = run_of(tiny("baseline", epochs=2), documents=train_documents(4))
    progress = train(run, on_cpu())
    next(progress)
    assert len(threads()) == 1
    progress.close()
    assert threads() == []


def test_patience_leaves_no_thread_and_no_batch(monkeypatch):
    monkeypatch.setattr(loop, "headline", lambda scores: 0.5)
    recipe = tiny("baseline", epochs=9, patience=1)
    wingspan.train(recipe, train=train_documents(3), dev=dev_documents(1), device="cpu")
    assert threads() == []
