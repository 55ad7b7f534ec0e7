"""GloVe, word2vec and fastText as text: a word and its numbers on each line; the last two begin with their counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wingspan.corpora.files import read_lines
from wingspan.word_vectors.table import Vector

LINES = 4096
HEADER = re.compile(r"(\d+) (\d+)\s*")


class Block(NamedTuple):
    """Some words that follow each other, and their vectors."""

    words: list[str]
    vectors: Vector  # (n, size)


def read_text_file(path: Path) -> Iterator[Block]:
    """The file block by block. A word may hold spaces: the numbers are counted from the end of the line."""
    lines = read_lines(path)
    number, line = next(lines, (0, ""))
    header = HEADER.fullmatch(line)
    size = int(header[2]) if header else len(line.rstrip().split(" ")) - 1
    if size < 1:
        raise ValueError(f"{path}:1: a word and its numbers are expected, with spaces between")
    waiting = [] if header else [(number, line)]
    told, read = int(header[1]) if header else None, 0
    while block := [*waiting, *islice(lines, LINES - len(waiting))]:
        waiting = []
        parsed = parse(path, block, size)
        read += len(parsed.words)
        yield parsed
    if told is not None and told != read:
        raise ValueError(
            f"{path}:1: {told:,} words are announced, but there are {read:,}; the file was cut off, or line 1 is wrong"
        )


def parse(path: Path, lines: list[tuple[int, str]], size: int) -> Block:
    """Words and numbers of some lines."""
    words = []
    vectors = np.empty((len(lines), size), np.float32)
    for row, (number, line) in enumerate(lines):
        word, *fields = line.rstrip(" \t").rsplit(" ", size)
        numbers = parsed(" ".join(fields))
        if len(fields) != size or len(numbers) != size or is_number(word.rpartition(" ")):
            raise ValueError(f"{path}:{number}: {mistake(line, size)}")
        words.append(word)
        vectors[row] = numbers
    return Block(words, vectors)


def parsed(text: str) -> Vector:
    """The numbers of a line; none where some are no numbers."""
    try:
        return np.fromstring(text, np.float32, sep=" ")
    except ValueError:
        return np.empty(0, np.float32)


def is_number(parts: tuple[str, str, str]) -> bool:
    """Whether what stands before the numbers is a word and one number more."""
    before, space, last = parts
    return bool(space and before.strip()) and bool(re.fullmatch(r"-?\d+\.\d+(e-?\d+)?", last))


def mistake(line: str, size: int) -> str:
    """What is wrong with a line."""
    found = len(line.rstrip().split(" ")) - 1
    if found != size:
        return f"{found} numbers where {size} are expected as in line 1; remove the line, or make the file again"
    return f"a word and its {size} numbers are expected, with spaces between; remove the line"
