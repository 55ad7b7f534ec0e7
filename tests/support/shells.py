"""Runs `wingspan` commands in the process of the tests, which has torch loaded already."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from unittest.mock import patch

from trainings import TINY
from wingspan.cli import main

QUICK = [f"{key}={value}" for key, value in {**TINY, "train.epochs": 1, "train.learning_rate": 0.02}.items()]


class Shell:
    """Runs commands in this process, which has torch loaded."""

    def __init__(self, monkeypatch, capsys, folder: Path) -> None:
        self.monkeypatch, self.capsys, self.folder = monkeypatch, capsys, folder

    def __call__(self, *arguments: object, code: int = 0, stdin: bytes = b"") -> tuple[str, str]:
        """The text of both outputs, after checking the exit code."""
        self.monkeypatch.setattr(sys, "argv", ["wingspan", *map(str, arguments)])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self.capsys.readouterr()
        try:
            main()
            found = 0
        except SystemExit as stop:
            found = stop.code or 0
        out, err = self.capsys.readouterr()
        assert found == code, out + err
        return out, err

    def refuses(self, *arguments: object, stdin: bytes = b"") -> str:
        """The one sentence of a command that fails."""
        _, err = self(*arguments, code=1, stdin=stdin)
        assert err.startswith("wingspan: ")
        assert err.count("\n") == 1
        assert "Traceback" not in err
        assert len(err) < 700
        return err

    def trains(self, output: Path, *options: object, recipe: str = "baseline") -> tuple[str, str]:
        sets = [part for item in QUICK for part in ("--set", item)]
        return self("train", recipe, "--train", self.train, "--output", output, "--device", "cpu", *sets, *options)

    @property
    def train(self) -> Path:
        return self.folder / "train.jsonl"

    @property
    def dev(self) -> Path:
        return self.folder / "dev.jsonl"

    @property
    def model(self) -> Path:
        return self.folder / "model"


def run_command(*arguments: object) -> CompletedProcess[str]:
    """A command run in this process, as `subprocess.run` returns it; an error that is not handled is raised."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    line, code = ["wingspan", *map(str, arguments)], 0
    with (
        patch.object(sys, "argv", line),
        patch.dict(os.environ, COLUMNS="200"),
        redirect_stdout(streams[0]),
        redirect_stderr(streams[1]),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    out, err = (stream.buffer.getvalue().decode() for stream in streams)
    return CompletedProcess(line, code, out, err)


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
    return path


def training(shell, tmp_path, *options: object, train: Path | None = None, recipe: str = "baseline") -> list[object]:
    sets = [part for item in QUICK for part in ("--set", item)]
    where = ["--train", train or shell.train, "--output", tmp_path / "run", "--device", "cpu"]
    return ["train", recipe, *where, *sets, *options]
