"""Tables of words with sizes that a test can see."""

from collections.abc import Callable, Sequence

from wingspan.corpora.segment import Tables
from wingspan.corpora.word_table import WordTable


def letters(words: Sequence[str]) -> list[int]:
    """Stands for a tokenizer: one piece per character, none for a sign that cannot be seen."""
    return [0 if word == "\u200b" else len(word) for word in words]


def tables_of(measure: Callable[[Sequence[str]], Sequence[int]] = letters) -> Tables:
    """One table of words with these sizes; a word without pieces takes one place, too."""
    table = WordTable(
        cut=lambda words: [[0]] * len(words),
        places=lambda words, _: [max(size, 1) for size in measure(words)],
        shape=lambda word: 0,
    )
    return lambda: table
