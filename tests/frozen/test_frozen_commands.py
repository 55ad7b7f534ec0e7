"""Every command says and writes what it did when it was frozen."""

import pytest

import frozen_commands as commands

SLOW = ("analyze-documents", "analyze-model", "compare-report")


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.mark.parametrize("verb", ["", *commands.VERBS])
def test_help(verb):
    frozen = (commands.HELP / f"{verb or 'wingspan'}.txt").read_text(encoding="utf-8")
    assert commands.help_of(verb) == frozen


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in commands.COMMANDS]
)
def test_outputs(name):
    folder = commands.OUTPUTS / name
    frozen = {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in folder.rglob("*.txt")}
    found = {f"{file}.txt": text for file, text in commands.outputs_of(commands.COMMANDS[name]).items()}
    assert sorted(found) == sorted(frozen)
    for file, text in found.items():
        commands.same_text(text, frozen[file])
