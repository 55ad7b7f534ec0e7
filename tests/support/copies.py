"""Texts that are nearly the same: invented ones, and words of a text edited."""

from __future__ import annotations

from random import Random

VOCABULARY = [
    "".join(pair) for pair in zip("bcdfghklmnprstvz" * 40, ["aline", "orex", "utam", "ivos", "etri"] * 128, strict=True)
]


def invented_text(seed: int, words: int = 180) -> str:
    """Sentences of made-up words; two seeds share words and hardly ever three in a row."""
    draw = Random(seed)
    chosen = [f"{draw.choice(VOCABULARY)}{draw.choice(VOCABULARY)}"[: draw.randint(2, 11)] for _ in range(words)]
    return ". ".join(" ".join(chosen[at : at + 15]).capitalize() for at in range(0, words, 15)) + "."


def edited(text: str, draw: Random, share: float = 0.05) -> str:
    """The text with a share of its words replaced, left out, or followed by another word, in equal parts."""
    words = text.split()
    for at in sorted(draw.sample(range(len(words)), round(share * len(words))), reverse=True):
        other = draw.choice(VOCABULARY)
        words[at : at + 1] = draw.choice([[other], [], [words[at], other]])
    return " ".join(words)
