"""Every reader on damaged files; a sample of what `make fuzz` runs. What must hold is in `examining`."""

import random
from pathlib import Path

import pytest
from damage import EXTRAS, a_long_file, available, sound_files
from examining import examine

from wingspan.corpora.formats import FORMATS, format_named
from wingspan.files import Problems

FILES = 40
LONG = 3


def skip_without_extra(name: str) -> None:
    if not available(name):
        pytest.skip(f"the extra for {EXTRAS[name]} is not installed")


@pytest.mark.parametrize("name", FORMATS)
def test_the_files_themselves_are_sound(name: str, tmp_path: Path) -> None:
    skip_without_extra(name)
    sound = sound_files(name, tmp_path)
    assert sound
    for file in sound:
        findings = examine(name, file.path, 10_000)
        assert (findings.outcome, findings.defects) == ("read", [])
        assert any(document.entities for document in format_named(name).read(file.path, Problems()))


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_files_are_read_or_refused_and_never_misread(name: str, tmp_path: Path) -> None:
    skip_without_extra(name)
    sound = sound_files(name, tmp_path)
    draw = random.Random(name)
    outcomes = set()
    for number in range(FILES):
        chosen = draw.choice(sound)
        file, mutation, data = chosen.damaged(draw)
        whole = file.read_bytes()
        file.write_bytes(data)
        findings = examine(name, chosen.path, len(data))
        assert not findings.defects, f"file {number}, {mutation.__name__} of {file.name}: {data[:3000]!r}"
        outcomes.add(findings.outcome)
        file.write_bytes(whole)
    assert "read" in outcomes  # the damage is neither always fatal
    assert len(outcomes) > 1  # nor always harmless


@pytest.mark.parametrize("name", FORMATS)
def test_long_files_take_no_longer_than_they_must(name: str, tmp_path: Path) -> None:
    skip_without_extra(name)
    long = a_long_file(name, tmp_path, 60_000)
    draw = random.Random(name)
    for _ in range(LONG):
        file, mutation, data = long.damaged(draw)
        whole = file.read_bytes()
        file.write_bytes(data)
        findings = examine(name, long.path, len(data), again=False)
        assert not findings.defects, mutation.__name__
        file.write_bytes(whole)
