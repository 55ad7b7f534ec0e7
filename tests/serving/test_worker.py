"""One thread, many requests: what shares a round, who waits, who is sent away, what is never computed."""

import asyncio
import gc
import logging
import threading

import pytest

from serving import SlowModel
from wingspan.serving import Refusal, Settings
from wingspan.serving.worker import Options, Pending, Worker, head


def working(model, scenario, **settings):
    """Runs a scenario with a worker, and stops the worker."""

    async def run():
        worker = Worker({"m": model}, Settings(**settings))
        worker.start()
        try:
            return await scenario(worker)
        finally:
            model.go_on.set()
            await asyncio.to_thread(worker.stop)

    return asyncio.run(run())


async def busy(worker, model, text="busy"):
    """A request that is being computed until `go_on`."""
    model.go_on.clear()
    model.begun.clear()
    task = asyncio.ensure_future(worker.predict([text], Options("m")))
    await asyncio.to_thread(model.begun.wait, 10)
    return task


def test_what_came_meanwhile_is_one_round_and_every_answer_is_its_own():
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        asked = [asyncio.ensure_future(worker.predict([f"a{n} x", f"b{n} x"], Options("m"))) for n in range(20)]
        await asyncio.sleep(0)
        model.go_on.set()
        await first
        return await asyncio.gather(*asked)

    answers = working(model, scenario)
    assert [[document.text for document in found] for found in answers] == [[f"a{n} x", f"b{n} x"] for n in range(20)]
    assert [len(texts) for texts in model.rounds] == [1, 40]


def test_only_texts_with_the_same_options_share_a_round():
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        thresholds = [None, 0.3, None, 0.3]
        asked = [
            asyncio.ensure_future(worker.predict([str(n)], Options("m", threshold)))
            for n, threshold in enumerate(thresholds)
        ]
        await asyncio.sleep(0)
        model.go_on.set()
        await asyncio.gather(first, *asked)

    working(model, scenario)
    assert model.rounds == [["busy"], ["0", "2"], ["1", "3"]]


def test_nobody_waits_behind_a_large_request():
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        large = asyncio.ensure_future(worker.predict(["x" * 400] * 40, Options("m")))
        small = asyncio.ensure_future(worker.predict(["small"], Options("m")))
        await asyncio.sleep(0)
        model.go_on.set()
        await asyncio.gather(first, large, small)
        return len(large.result())

    assert working(model, scenario, batch_tokens=1_000) == 40
    assert "small" in model.rounds[1]
    assert max(len(texts) for texts in model.rounds) <= 11


def test_a_full_queue_sends_away_at_once():
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        waiting = [asyncio.ensure_future(worker.predict(["w"], Options("m"))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="too many requests are waiting; ask again in 1 s") as refused:
            await worker.predict(["late"], Options("m"))
        model.go_on.set()
        await asyncio.gather(first, *waiting)
        return refused.value

    refusal = working(model, scenario, queue=2)
    assert (refusal.status, refusal.retry_after) == (429, 1)
    assert not any("late" in texts for texts in model.rounds)


def test_a_queue_that_takes_too_long_sends_away_too():
    model = SlowModel()

    async def scenario(worker):
        await worker.predict(["x"], Options("m"))
        first = await busy(worker, model)
        worker.rate = 100.0  # tokens a second; the round before has told its own by now
        waiting = asyncio.ensure_future(worker.predict(["x" * 40_000], Options("m")))
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="too many requests") as refused:
            await worker.predict(["late"], Options("m"))
        model.go_on.set()
        await asyncio.gather(first, waiting)
        return refused.value

    assert working(model, scenario, time_limit=60).retry_after > 10


def test_a_client_that_went_away_costs_nothing_further():
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        gone = asyncio.get_running_loop().create_future()
        left = asyncio.ensure_future(worker.predict(["left"], Options("m"), gone))
        stays = asyncio.ensure_future(worker.predict(["stays"], Options("m")))
        await asyncio.sleep(0)
        gone.set_result(None)
        with pytest.raises(Refusal, match="went away"):
            await left
        model.go_on.set()
        await asyncio.gather(first, stays)
        assert worker.waiting == 0
        assert worker._waiting >= 0

    working(model, scenario)
    assert model.rounds == [["busy"], ["stays"]]


def test_a_request_over_its_time_is_given_up():
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        with pytest.raises(Refusal, match="not done after 0.2 s; send fewer or shorter texts") as late:
            await first
        model.go_on.set()
        return late.value.status

    assert working(model, scenario, time_limit=0.2) == 503


def test_a_text_that_the_model_fails_on_spoils_no_other(caplog):
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        asked = [
            asyncio.ensure_future(worker.predict([text], Options("m"))) for text in ("good", "fail: secret", "fine")
        ]
        await asyncio.sleep(0)
        model.go_on.set()
        await first
        return await asyncio.gather(*asked, return_exceptions=True)

    with caplog.at_level(logging.DEBUG):
        good, failed, fine = working(model, scenario)
    assert (good[0].text, fine[0].text, failed.status) == ("good", "fine", 500)
    assert "RuntimeError in prediction" in caplog.text
    assert "secret" not in caplog.text


def test_stopping_finishes_what_was_accepted_and_takes_nothing_more():
    model = SlowModel()

    async def scenario(worker):
        first = await busy(worker, model)
        waiting = asyncio.ensure_future(worker.predict(["w"], Options("m")))
        await asyncio.sleep(0)
        stopping = asyncio.ensure_future(asyncio.to_thread(worker.stop))
        while worker.alive:
            await asyncio.sleep(0.01)
        with pytest.raises(Refusal, match="shutting down"):
            await worker.predict(["late"], Options("m"))
        model.go_on.set()
        await stopping
        return [(await task)[0].text for task in (first, waiting)]

    assert working(model, scenario) == ["busy", "w"]


def test_head_takes_at_least_one_text():
    assert head(["x" * 4_000, "y"], 10) == ["x" * 4_000]
    assert head(["x", "y", "z" * 400], 10) == ["x", "y"]


def test_nothing_of_a_request_stays():
    model = SlowModel()

    async def scenario(worker):
        for n in range(50):
            await worker.predict([f"{n} x"], Options("m"))
        task = await busy(worker, model)
        task.cancel()  # a client that went away
        model.go_on.set()
        await asyncio.wait([task])
        await worker.predict(["the last"], Options("m"))
        return worker

    worker = working(model, scenario)
    assert (worker.waiting, worker._waiting, worker.texts) == (0, 0, 52)
    gc.collect()
    assert not [each for each in gc.get_objects() if type(each) is Pending]


def test_a_pause_gives_memory_back(monkeypatch):
    model, given = SlowModel(), threading.Event()
    monkeypatch.setattr("wingspan.serving.worker.SECONDS_TO_TRIM", 0.01)
    monkeypatch.setattr("wingspan.serving.worker.give_back_memory", given.set)

    async def scenario(worker):
        await worker.predict(["only one"], Options("m"))
        assert await asyncio.to_thread(given.wait, 10)
        return await worker.predict(["another"], Options("m"))

    assert [document.text for document in working(model, scenario)] == ["another"]
