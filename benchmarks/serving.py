"""The service under load on this machine: its rate against the offline rate of one core, and what it does when pressed.

    python benchmarks/serving.py prepare --folder /tmp/served           # a MiniLM model with random weights behind it
    python benchmarks/serving.py PART --folder /tmp/served --output benchmarks/results/serving.jsonl

Parts: `rate` (the offline rate of core 0, then 64 clients on core 1, eight texts a request), `steady` (10,000 requests,
the most memory in each tenth, and at rest after it), `overload` (more clients than the queue holds), `leaving`
(clients that go away), `shutdown` (the service ends under load). The server is `wingspan serve` pinned to core 0 with
one thread; all clients are one process on core 1. `share_cpu` compares processor time, which others on the machine
disturb less. Every answer is compared with the one of the same texts offline. One JSON line a part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple
from urllib.request import urlopen

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

TEXTS_PER_REQUEST, CLIENTS = 8, 64
SERVER_CORE, CLIENT_CORE = 0, 1
PAUSE = 2.0  # seconds without a request, in which the service gives memory back
Row = dict[str, Any]


class Question(NamedTuple):
    """A request as bytes, and the answer that is right."""

    body: bytes
    answer: Any


# The model, the texts and their right answers


def prepare(folder: Path, data: Path, encoder: Path, sentences: int) -> None:
    """A model that predicts as much as a trained one, sentences, and what it finds in them offline."""
    from measuring import untrained
    from throughput import documents_of

    documents = documents_of(data / "genia", sentences)
    model = untrained("bundling/bl-span", str(encoder), documents, 8, "cpu")
    model.save_pretrained(folder / "model")
    (folder / "texts.json").write_text(json.dumps([document.text for document in documents]))


def offline(folder: Path) -> None:
    """Prints seconds for all texts on this process' core, and writes what was found."""
    import torch

    import wingspan

    torch.set_num_threads(1)
    model = wingspan.load(folder / "model", device="cpu")
    texts = json.loads((folder / "texts.json").read_text())
    model.predict(texts[:64])
    seconds, spent = [], []
    for _ in range(3):
        began, before = time.perf_counter(), time.process_time()
        found = model.predict(texts)
        seconds.append(time.perf_counter() - began)
        spent.append(time.process_time() - before)
    (folder / "found.json").write_text(json.dumps([document.to_dict()["entities"] for document in found]))
    print(json.dumps({"seconds": median(seconds), "cpu_seconds": median(spent), "texts": len(texts)}))


def questions(folder: Path, seed: int = 1) -> list[Question]:
    """All texts, eight by eight, each with its answer."""
    texts, found = (json.loads((folder / f"{name}.json").read_text()) for name in ("texts", "found"))
    order = list(range(len(texts)))
    random.Random(seed).shuffle(order)
    asked = []
    for at in range(0, len(order) - TEXTS_PER_REQUEST + 1, TEXTS_PER_REQUEST):
        some = order[at : at + TEXTS_PER_REQUEST]
        body = json.dumps({"texts": [texts[n] for n in some]}).encode()
        asked.append(Question(body, [found[n] for n in some]))
    return asked


# The server


class Server:
    """`wingspan serve` on core 0."""

    def __init__(self, folder: Path, given: argparse.Namespace, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "wingspan", "serve", str(folder / "model"), "--port", str(self.port)]
        pinned = ["taskset", "-c", str(SERVER_CORE)] if given.pinned else []
        self.log = (folder / "server.log").open("w")
        self.process = subprocess.Popen(
            [*pinned, *command, "--threads", "1", "--device", "cpu", *options], stdout=self.log, stderr=self.log
        )
        end = time.monotonic() + 120
        while time.monotonic() < end and self.process.poll() is None:
            try:
                urlopen(f"http://127.0.0.1:{self.port}/ready", timeout=2).read()
                return
            except OSError:
                time.sleep(0.2)
        raise SystemExit(f"the service did not start; see {self.log.name}")

    def memory(self, name: str = "VmRSS") -> float:
        """MB now; of `VmHWM`, the most since `forget_peak`."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(name)) / 1024

    def forget_peak(self) -> None:
        """Lets the system count the most memory from now on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def cpu_seconds(self) -> float:
        """Processor time of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> tuple[int, float]:
        """Asks it to end; its exit code, and how long that took."""
        began = time.perf_counter()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(120), time.perf_counter() - began


# The clients: plain sockets, so that they take little of their core


class Client:
    """A connection that is kept."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def send(self, body: bytes) -> None:
        """Sends a request."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**24)
        headers = f"host: x\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self.writer.write(f"POST /v1/entities HTTP/1.1\r\n{headers}".encode() + body)
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers, body."""
        assert self.reader is not None
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(head[0].split()[1]), headers, body

    def leave(self) -> None:
        """Goes away without a word."""
        if self.writer is not None:
            self.writer.transport.abort()
        self.reader = self.writer = None


class Tally:
    """What came back."""

    def __init__(self) -> None:
        self.status: Counter[int] = Counter()
        self.seconds: list[float] = []
        self.wrong = self.lost = 0

    def check(self, question: Question, status: int, body: bytes, seconds: float) -> None:
        """Counts an answer; scores of other batches differ in the last digits."""
        self.status[status] += 1
        if status == 200:
            self.seconds.append(seconds)
            documents = [document["entities"] for document in json.loads(body)["documents"]]
            self.wrong += list(map(places, documents)) != list(map(places, question.answer))

    def row(self) -> Row:
        """Figures."""
        cuts = quantiles(self.seconds, n=100) if len(self.seconds) > 1 else [0.0] * 99
        times = {"p50_s": round(cuts[49], 3), "p99_s": round(cuts[98], 3)}
        others = {str(status): count for status, count in sorted(self.status.items()) if status != 200}
        return {"answers": self.status[200], "other": others, "wrong": self.wrong, "lost": self.lost, **times}


def places(entities: list[Row]) -> list[Any]:
    """Entities without the last digits of their scores."""
    return [(entity["label"], entity["fragments"], round(entity["score"], 3)) for entity in entities]


async def load(port: int, asked: list[Question], clients: int, requests: int, wait: bool = True) -> tuple[Tally, float]:
    """So many requests by so many clients, each one after the other; with `wait`, 429 is answered by waiting."""
    tally, number = Tally(), iter(range(requests))

    async def one() -> None:
        client = Client(port)
        for at in number:
            question = asked[at % len(asked)]
            while True:
                began = time.perf_counter()
                try:
                    await client.send(question.body)
                    status, headers, body = await client.answer()
                except (OSError, asyncio.IncompleteReadError):
                    tally.lost += 1
                    client.leave()
                    return
                tally.check(question, status, body, time.perf_counter() - began)
                if status != 429 or not wait:
                    break
                await asyncio.sleep(float(headers["retry-after"]))
        client.leave()

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return tally, time.perf_counter() - began


# The parts


def rate(folder: Path, given: argparse.Namespace) -> Row:
    """The offline rate of core 0, and that of the service there with 64 clients."""
    pinned = ["taskset", "-c", str(SERVER_CORE)] if given.pinned else []
    command = [*pinned, sys.executable, __file__, "offline", "--folder", str(folder)]
    alone = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])
    offline_rate = alone["texts"] / alone["seconds"]
    server, asked = Server(folder, given), questions(folder)
    asyncio.run(load(server.port, asked, CLIENTS, len(asked) // 2))  # it knows its own rate, as after a while
    rounds, before = [], server.cpu_seconds()
    for _ in range(2):
        tally, seconds = asyncio.run(load(server.port, asked, CLIENTS, 2 * len(asked)))
        rounds.append((tally.status[200] * TEXTS_PER_REQUEST / seconds, tally))
    spent = server.cpu_seconds() - before
    code, _ = server.end()
    texts = TEXTS_PER_REQUEST * sum(tally.status[200] for _, tally in rounds)
    best = sorted(rounds, key=lambda pair: pair[0])
    served = sum(pair[0] for pair in rounds) / len(rounds)
    return {
        "offline_texts_per_second": round(offline_rate, 1),
        "texts_per_second": round(served, 1),
        "spread": [round(pair[0], 1) for pair in best],
        "share": round(served / offline_rate, 3),
        "share_cpu": round(alone["cpu_seconds"] / alone["texts"] / (spent / texts), 3),
        "clients": CLIENTS,
        **rounds[-1][1].row(),
        "exit_code": code,
    }


def steady(folder: Path, given: argparse.Namespace) -> Row:
    """Memory over many requests of one text each, so that ten thousand take minutes, not an hour."""
    server, asked = Server(folder, given), []
    for question in questions(folder):
        texts = json.loads(question.body)["texts"]
        asked += [
            Question(json.dumps({"texts": [text]}).encode(), [entities])
            for text, entities in zip(texts, question.answer, strict=True)
        ]
    peak, rest, tally, seconds = [], [], Tally(), 0.0
    for _ in range(10):
        server.forget_peak()
        part, spent = asyncio.run(load(server.port, asked, 16, given.requests // 10))
        peak.append(round(server.memory("VmHWM"), 1))
        time.sleep(PAUSE)
        rest.append(round(server.memory(), 1))
        tally.status += part.status
        tally.wrong, tally.lost, tally.seconds = (
            tally.wrong + part.wrong,
            tally.lost + part.lost,
            tally.seconds + part.seconds,
        )
        seconds += spent
    code, _ = server.end()
    return {**tally.row(), "peak_mb": peak, "rest_mb": rest, "seconds": round(seconds, 1), "exit_code": code}


def overload(folder: Path, given: argparse.Namespace) -> Row:
    """Four times as many clients as the queue holds, none of which waits when it is sent away."""
    server, asked = Server(folder, given, "--queue", "32"), questions(folder)
    tally, seconds = asyncio.run(load(server.port, asked, 128, 1_500, wait=False))
    code, _ = server.end()
    return {"clients": 128, "queue": 32, **tally.row(), "seconds": round(seconds, 1), "exit_code": code}


def leaving(folder: Path, given: argparse.Namespace) -> Row:
    """Sixteen clients that stay, alone and beside a crowd that sends requests and goes away."""
    server, asked = Server(folder, given), questions(folder)
    alone, seconds = asyncio.run(load(server.port, asked, 16, 150))
    left = 0

    async def both() -> tuple[Tally, float]:
        async def crowd() -> None:
            nonlocal left
            while True:
                client = Client(server.port)
                await client.send(asked[left % len(asked)].body)
                await asyncio.sleep(0.002)
                client.leave()
                left += 1
                await asyncio.sleep(0.05)

        going = asyncio.ensure_future(crowd())
        found = await load(server.port, asked, 16, 150)
        going.cancel()
        return found

    beside, longer = asyncio.run(both())
    texts = metric(server.port, 'wingspan_texts_total{model="model"}')
    code, _ = server.end()
    return {
        "left": left,
        "seconds_alone": round(seconds, 2),
        "seconds_beside": round(longer, 2),
        "requests_answered": int(texts) // TEXTS_PER_REQUEST,
        "p99_alone_s": alone.row()["p99_s"],
        **beside.row(),
        "exit_code": code,
    }


def metric(port: int, name: str) -> float:
    """A value of /metrics."""
    lines = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode().splitlines()
    return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def shutdown(folder: Path, given: argparse.Namespace) -> Row:
    """The service is told to end while 32 clients have a request each: all of them get their answers."""
    server, asked = Server(folder, given), questions(folder)

    async def ended() -> tuple[Tally, int, float]:
        tally, clients = Tally(), [Client(server.port) for _ in range(32)]
        for client, question in zip(clients, asked, strict=False):
            await client.send(question.body)
        await asyncio.sleep(0.3)  # all are accepted, and most wait
        ending = asyncio.ensure_future(asyncio.to_thread(server.end))
        for client, question in zip(clients, asked, strict=False):
            try:
                status, _, body = await client.answer()
                tally.check(question, status, body, 0.0)
            except (OSError, asyncio.IncompleteReadError):
                tally.lost += 1
        return tally, *(await ending)

    tally, code, seconds = asyncio.run(ended())
    facts = {key: value for key, value in tally.row().items() if not key.startswith("p")}
    return {"in_flight": 32, **facts, "seconds_to_end": round(seconds, 2), "exit_code": code}


PARTS = {"rate": rate, "steady": steady, "overload": overload, "leaving": leaving, "shutdown": shutdown}


def main() -> None:
    """Runs one part; writes and prints its row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["prepare", "offline", *PARTS])
    parser.add_argument("--folder", type=Path, required=True, help="for the model, the texts and the log")
    parser.add_argument("--data", type=Path, default=os.environ.get("WINGSPAN_DATA"))
    encoder = Path(os.environ.get("WINGSPAN_ENCODERS", ".")) / "all-MiniLM-L6-v2"
    parser.add_argument("--encoder-folder", type=Path, default=encoder)
    parser.add_argument("--sentences", type=int, default=1200)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--unpinned", dest="pinned", action="store_false", help="on any cores: for what is no timing")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, help="the row is added to this file")
    given = parser.parse_args()
    if given.part == "prepare":
        given.folder.mkdir(parents=True, exist_ok=True)
        prepare(given.folder, given.data, given.encoder_folder, given.sentences)
        return
    if given.part == "offline":
        offline(given.folder)
        return
    if given.pinned:
        os.sched_setaffinity(0, {CLIENT_CORE})
    from measuring import versions

    row = {
        "part": given.part,
        "pinned": given.pinned,
        "model": "bundling/bl-span, all-MiniLM-L6-v2, width 8",
        **PARTS[given.part](given.folder, given),
    }
    print(json.dumps(row))
    if given.output is not None:
        with given.output.open("a") as out:
            out.write(json.dumps({**row, "versions": versions(), "commit": given.commit}) + "\n")


if __name__ == "__main__":
    main()
