"""Words are cut once each, whoever asks, and a number keeps its meaning while the table grows."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np

from wingspan.corpora.word_table import LONGEST, WordTable, key_of


class Letters:
    """Cuts words into letters, and remembers which ones it was asked for."""

    def __init__(self):
        self.asked: list[str] = []

    def cut(self, words):
        self.asked += words
        return [[ord(letter) for letter in word] for word in words]

    def table(self) -> WordTable:
        return WordTable(self.cut, lambda words, tokens: [2 * len(row) for row in tokens], len)


def test_each_word_is_cut_once():
    letters = Letters()
    table = letters.table()
    numbers = table.numbers(["ab", "c", "ab"])
    assert numbers.dtype == np.int32
    assert numbers.tolist() == [0, 1, 0]
    assert table.numbers(["c", "d"]).tolist() == [1, 2]
    assert letters.asked == ["ab", "c", "d"]
    assert len(table) == 3


def test_everything_about_words_by_their_numbers():
    table = Letters().table()
    numbers = table.numbers(["ab", "c", "ab"])
    assert table.tokens(numbers).tolist() == [97, 98, 99, 97, 98]
    assert table.counts(numbers).tolist() == [2, 1, 2]
    assert table.sizes(numbers).tolist() == [4, 2, 4]
    assert table.shapes(numbers).tolist() == [2, 1, 2]
    assert table.tokens(numbers[:0]).tolist() == []


def test_a_long_word_is_kept_as_its_digest():
    letters = Letters()
    table = letters.table()
    one, other = "a" * 100_000, "a" * 100_000 + "b"
    first, second, again, short = table.numbers([one, other, one, "a" * LONGEST])
    assert len({first, second, short}) == 3
    assert first == again
    assert max(len(key_of(word)) for word in (one, other)) <= LONGEST
    assert table.numbers([one]).tolist() == [first]
    assert letters.asked == [one, other, "a" * LONGEST]
    assert len(key_of("\ud800" * 300)) <= LONGEST


def test_threads_share_a_growing_table():
    letters = Letters()
    table = letters.table()
    words = [f"w{number}" for number in range(5000)]

    def look_up(seed: int) -> bool:
        random = Random(seed)
        for _ in range(40):
            some = random.choices(words, k=200)
            numbers = table.numbers(some)
            assert table.tokens(numbers).tolist() == [ord(letter) for word in some for letter in word]
            assert table.counts(numbers).tolist() == [len(word) for word in some]
        return True

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(look_up, range(16)))
    assert len(letters.asked) == len(set(letters.asked)) == len(table)
