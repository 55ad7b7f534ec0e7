"""Long documents are read in windows: nothing is lost or doubled at their edges, for spans and tags alike.

A transparent model stands in for a trained one: its vectors say which of four words stands there, and the real span
classifier and tagger get weights that spell out a rule. The rule is checked by brute force on the whole document.
"""

from collections import Counter
from dataclasses import replace
from functools import partial
from random import Random

import pytest
import torch

from trainings import tiny
from wingspan.corpora.segment import Segmenting, place
from wingspan.encoders import Encoder, Words
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.labels import LabelSet
from wingspan.recipe import assemble
from wingspan.recognizer import Recognizer
from wingspan.spans.pooled import PooledSpans
from wingspan.text import Document, Span
from wingspan.tokenizing.hashed import FEATURES, HashedTokenize, features

ALPHABET = ("o", "b", "i", "e")


class Costly(HashedTokenize):
    """Some words cost two places of a window, as pieces do."""

    def places(self, words, tokens):
        return [2 if word == "i" else 1 for word in words]


class Transparent(Encoder):
    """One-hot vectors of the four words."""

    def __init__(self, *, pieces: bool = False) -> None:
        super().__init__()
        self.size = len(ALPHABET)
        self.tokenize = (Costly if pieces else HashedTokenize)(2**31, 10_000)
        self.known = torch.tensor([features(word)[0] for word in ALPHABET])

    def forward(self, inputs):
        word = inputs.tokens.view(*inputs.unit_mask.shape, FEATURES)[..., :1]
        top = (word == self.known).float()
        return Words(top, (), top.sum(1), inputs.unit_mask)

    @classmethod
    def rebuild(cls, folder, **settings):
        return cls(**settings)


def transparent(segments: Segmenting, width: int, read_with: str, pieces: bool = False) -> Recognizer:
    recipe = replace(
        tiny("bundling/bl-span"),
        encoder=partial(Transparent, pieces=pieces),
        spans=partial(PooledSpans, views=("first", "last", "max")),
        head=partial(FeedForwardHead),
        read_with=read_with,
        max_width=width,
        overlap="any" if read_with == "spans" else "flat",
        segments=segments,
    )
    labels = LabelSet({"main": ("X",)})
    learner = assemble(recipe, labels)
    with torch.no_grad():
        entry = learner.model.scorer.head.entry
        entry.weight.zero_()
        entry.bias.copy_(torch.tensor([0.0, -1.5]))
        entry.weight[1, 1] = 1.0  # the first word is b
        entry.weight[1, 4 + 3] = 1.0  # the last word is e
        entry.weight[1, 8 + 0] = -9.0  # no word is o
        if read_with == "tags":
            score = learner.objectives["tags"].score
            score.bias.copy_(torch.tensor([0.5, 0.0, 0.0]))
            score.weight.copy_(torch.tensor([[0.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]))  # b is B, i is I
    return Recognizer(recipe, labels, learner, device="cpu")


def spans_of(words: list[str], width: int) -> list[tuple[int, int]]:
    """The rule of the span classifier: from b to e with no o between."""
    return [
        (start, end)
        for start in range(len(words))
        for end in range(start + 1, min(start + width, len(words)) + 1)
        if words[start] == "b" and words[end - 1] == "e" and "o" not in words[start:end]
    ]


def tags_of(words: list[str]) -> list[tuple[int, int]]:
    """The rule of the tagger: b begins, i goes on, or begins where nothing goes on."""
    found: list[tuple[int, int]] = []
    for at, word in enumerate(words):
        if word == "i" and found and found[-1][1] == at:
            found[-1] = (found[-1][0], at + 1)
        elif word in "bi":
            found.append((at, at + 1))
    return found


def found_in_words(model: Recognizer, document: Document) -> Counter[tuple[int, int]]:
    """How often each span of words is found, before duplicates are put together."""
    assert document.words is not None
    start = {word.start: n for n, word in enumerate(document.words)}
    end = {word.end: n + 1 for n, word in enumerate(document.words)}
    found: Counter[tuple[int, int]] = Counter()
    for sentence in model.segment(document):
        (entities,) = model.predict_batch([sentence])
        found.update((start[e.start], end[e.end]) for e in place(sentence, entities))
    return found


SHAPES = [(4, 1), (8, 2), (9, 2), (12, 3), (13, 3), (16, 4), (20, 5), (40, 10), (64, 3), (1000, 6)]


@pytest.mark.parametrize("pieces", [False, True], ids=["words", "pieces"])
@pytest.mark.parametrize(("length", "width"), SHAPES)
def test_every_span_is_found_exactly_once(length, width, pieces):
    overlap = width
    model = transparent(Segmenting(length * (1 + pieces), overlap, sentences="whole"), width, "spans", pieces)
    for seed in range(6):
        words = Random(seed).choices(ALPHABET, (1, 3, 3, 3), k=37 * (seed + 1))
        document = Document.from_words("d", tuple(words))
        expected = spans_of(words, width)
        assert expected or width == 1
        assert found_in_words(model, document) == Counter(expected)
        (predicted,) = model.predict(document, batch_size=4)
        assert [e.hull for e in predicted.entities] == sorted(in_characters(document, expected))


@pytest.mark.parametrize("pieces", [False, True], ids=["words", "pieces"])
@pytest.mark.parametrize(("length", "width"), SHAPES)
def test_every_tagged_entity_is_found_exactly_once(length, width, pieces):
    model = transparent(Segmenting(length * (1 + pieces), width, sentences="whole"), width, "tags", pieces)
    for seed in range(6):
        random = Random(seed)
        words: list[str] = []
        while len(words) < 37 * (seed + 1):  # no entity is wider than the overlap
            words += [random.choice("bi"), *"i" * random.randrange(width)] + ["o"] * random.randint(0, 2)
            words += ["o"] if words[-1] in "bi" and random.random() < 0.5 else ["e"]
        document = Document.from_words("d", tuple(words))
        expected = tags_of(words)
        assert found_in_words(model, document) == Counter(expected)
        (predicted,) = model.predict(document, batch_size=4)
        assert [e.hull for e in predicted.entities] == in_characters(document, expected)


def in_characters(document: Document, spans: list[tuple[int, int]]) -> list[Span]:
    assert document.words is not None
    return [Span(document.words[start].start, document.words[end - 1].end) for start, end in spans]


@pytest.mark.parametrize("read_with", ["spans", "tags"])
def test_a_document_of_60_000_words(read_with):
    width, length = 3, 64
    model = transparent(Segmenting(length, width, sentences="whole"), width, read_with)
    pattern = ["o", "o", "b", "i", "e", "o", "b", "e"]
    seen: dict[int, int] = {}
    for size in (30_000, 60_000):
        words = (pattern * (size // len(pattern) + 1))[:size]
        document = Document.from_words("d", tuple(words))
        read: list[int] = []
        (predicted,) = counting(model, read).predict(document)
        expected = spans_of(words, width) if read_with == "spans" else tags_of(words)
        assert [e.hull for e in predicted.entities] == in_characters(document, expected)
        # sentences at once: memory does not grow with the document
        assert max(read) <= 32 * model.engine.tokenize.lightness
        seen[size] = sum(read)
        sentences = list(model.segment(document))
        assert sum(sentence.core.width for sentence in sentences) == size
        assert max(len(sentence.words) for sentence in sentences) <= length
        assert seen[size] == len(sentences) <= size / (length - 2 * width) + 2
    assert seen[60_000] == pytest.approx(2 * seen[30_000], abs=2)


def counting(model: Recognizer, read: list[int]) -> Recognizer:
    """The model, noting how many sentences it reads at once."""

    class Counting(Recognizer):
        def _read(self, sentences, *options, **others):
            read.append(len(sentences))
            return super()._read(sentences, *options, **others)

    return Counting(model.recipe, model.labels, model.learner, device="cpu")
