"""The service in its own process and over real connections: starting, leaving clients, ending."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from urllib.request import Request, urlopen

from serving import SlowModel, listening
from wingspan.serving import Settings


def post(address, texts, timeout=20):
    body = json.dumps({"texts": texts}).encode()
    with urlopen(Request(f"{address}/v1/entities", body, {"content-type": "application/json"}), timeout=timeout) as got:
        return json.load(got)["documents"]


def until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def waiting(address):
    with urlopen(f"{address}/ready") as answer:
        return json.load(answer)["waiting"]


def test_many_clients_get_their_own_answers():
    with listening({"m": SlowModel(0.0005)}) as (address, _):
        wrong = []

        def ask(client):
            for number in range(10):
                words = [f"w{client}x{number}x{at}" for at in range(8)]
                found = [document["entities"][0]["text"] for document in post(address, [f"{word} y" for word in words])]
                if found != words:
                    wrong.append((client, number))

        threads = [threading.Thread(target=ask, args=(client,)) for client in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_client_that_disconnects_is_not_computed_for_and_stalls_nobody():
    model = SlowModel()
    with listening({"m": model}) as (address, _):
        model.go_on.clear()
        model.begun.clear()
        first = threading.Thread(target=post, args=(address, ["first"]))
        first.start()
        model.begun.wait(10)
        for _ in range(5):
            leaving = http.client.HTTPConnection(address.removeprefix("http://"))
            leaving.request(
                "POST", "/v1/entities", json.dumps({"texts": ["left"]}), {"content-type": "application/json"}
            )
            until(lambda: waiting(address) == 1)
            leaving.close()
            until(lambda: waiting(address) == 0)
        model.go_on.set()
        assert post(address, ["stays"])[0]["entities"][0]["text"] == "stays"
        first.join()
    assert [texts for texts in model.rounds if "left" in texts] == []


def test_ending_answers_what_was_accepted():
    model, answers = SlowModel(), []
    with listening({"m": model}) as (address, server):
        model.go_on.clear()
        model.begun.clear()
        asked = [
            threading.Thread(target=lambda n=n: answers.append(post(address, [f"text{n}"])[0]["entities"][0]["text"]))
            for n in range(6)
        ]
        asked[0].start()
        model.begun.wait(10)
        for thread in asked[1:]:
            thread.start()
        until(lambda: waiting(address) == 5)
        server.should_exit = True
        time.sleep(0.2)
        model.go_on.set()
        for thread in asked:
            thread.join()
    assert sorted(answers) == [f"text{n}" for n in range(6)]


def test_a_body_over_the_limit_is_answered_over_a_real_connection():
    with listening({"m": SlowModel()}, Settings(body_limit=1_000)) as (address, _):
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
        for body in (b"x" * 3_000_000, (b"x" * 100_000 for _ in range(30))):
            connection.request("POST", "/v1/entities", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            assert (answer.status, json.load(answer)["error"][:18]) == (413, "the body is larger")
        connection.close()


def test_a_body_that_does_not_come_is_not_waited_for():
    with listening({"m": SlowModel()}, Settings(time_limit=0.3)) as (address, _):
        connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
        connection.putrequest("POST", "/v1/entities")
        connection.putheader("content-type", "application/json")
        connection.putheader("content-length", "100")
        connection.endheaders(b'{"texts": ')
        answer = connection.getresponse()
        assert (answer.status, json.load(answer)["error"]) == (408, "the body did not come in 0.3 s; send it")
        connection.close()


def test_the_command_serves_with_two_processes_and_ends_cleanly(prepared):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "wingspan", "serve", f"mine={prepared / 'model'}", "--port", str(port)]
    environment = {**os.environ, "WINGSPAN_API_KEY": "k"}
    options = ["--processes", "2", "--threads", "1", "--device", "cpu"]
    process = subprocess.Popen([*command, *options], env=environment, stderr=subprocess.PIPE, text=True)
    try:
        address, ready = f"http://127.0.0.1:{port}", []

        def answers():
            try:
                ready.append(json.load(urlopen(f"{address}/ready", timeout=2))["ready"])
            except OSError:
                time.sleep(0.2)
            return ready or process.poll() is not None

        until(answers, 60)
        found = Request(f"{address}/v1/models", headers={"authorization": "Bearer k"})
        assert [model["name"] for model in json.load(urlopen(found))["models"]] == ["mine"]
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert re.search(r"mine: http://127.0.0.1:\d+; end with Ctrl\+C", said)
