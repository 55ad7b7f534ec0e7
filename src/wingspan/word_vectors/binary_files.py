"""word2vec's binary files: the counts on a line, then each word, a space, and its numbers as float32."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from wingspan.corpora.files import open_bytes
from wingspan.word_vectors.text_files import HEADER, Block

WORDS = 4096
CHUNK = 1 << 22


class Buffer:
    """Bytes of a stream, as many as are asked for, or up to a byte."""

    def __init__(self, raw: IO[bytes]) -> None:
        self.raw, self.held, self.at = raw, b"", 0

    def fill(self) -> bool:
        """Reads on; False at the end."""
        more = self.raw.read(CHUNK)
        self.held, self.at = self.held[self.at :] + more, 0
        return bool(more)

    def until(self, mark: bytes) -> bytes | None:
        """What stands before the next mark; None at the end of the file."""
        while (end := self.held.find(mark, self.at)) < 0:
            if not self.fill():
                return None
        found, self.at = self.held[self.at : end], end + 1
        return found

    def take(self, count: int) -> bytes:
        """The next bytes; fewer at the end of the file."""
        while len(self.held) - self.at < count and self.fill():
            pass
        found = self.held[self.at : self.at + count]
        self.at += len(found)
        return found


def read_binary_file(path: Path) -> Iterator[Block]:
    """The file block by block."""
    with open_bytes(path) as raw:
        buffer = Buffer(raw)
        header = HEADER.fullmatch((buffer.until(b"\n") or b"").decode("ascii", "replace"))
        assert header, "the file's kind was looked at before"
        count, size = int(header[1]), int(header[2])
        for start in range(0, count, WORDS):
            some = min(WORDS, count - start)
            vectors = np.empty((some, size), np.float32)
            words = []
            for row in range(some):
                word, numbers = buffer.until(b" "), buffer.take(4 * size)
                if word is None or len(numbers) < 4 * size:
                    raise ValueError(
                        f"{path}: {count:,} words are announced, but it ends in word {start + row + 1:,}; "
                        "the file was cut off: fetch it again"
                    )
                try:
                    words.append(word.removeprefix(b"\n").decode())
                except UnicodeDecodeError as error:
                    raise ValueError(
                        f"{path}: word {start + row + 1:,} ({word!r}) is no UTF-8; make the file from UTF-8 text"
                    ) from error
                vectors[row] = np.frombuffer(numbers, "<f4")
            yield Block(words, vectors)
        if buffer.take(2).strip():
            raise ValueError(f"{path}: there is more than the {count:,} words that are announced; fetch it again")
