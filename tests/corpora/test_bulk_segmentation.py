"""Segmentation in bulk equals the old rules, which took one word after the other (`support/old_segmentation.py`)."""

import os
from collections.abc import Callable, Sequence
from itertools import count, islice
from pathlib import Path
from random import Random
from typing import Any

import old_segmentation as old
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from old_segmentation import OldSentence

from tables import letters, tables_of
from wingspan.corpora import segment as bulk
from wingspan.corpora.formats import detect, read
from wingspan.corpora.segment import Segmenting, Tables, segment_rows
from wingspan.corpora.sentences import split_sentences
from wingspan.corpora.word_table import WordTable
from wingspan.corpora.words import SPLITTERS
from wingspan.files import Problems
from wingspan.text import Document, Entity, Sentence, Span, offsets_of, spans_of

# letters, digits, signs; spaces and line breaks; stops, closing and opening signs; marks, joiners, flags, emoji; Hangul
# syllables and their parts; Arabic signs before numbers, which take a space with them; scripts without spaces; Indic
# conjuncts; letters that are marks or lead others; halves of surrogate pairs; what no one expects in a text
TRICKY = (
    "abZ19µ_-,;:* \t\n\r\x0b\x0c\x85\xa0\u2028\u2029\u3000.!?…。！؟।‼)]}\"'»”([{«“¿•"
    "\u0301\u0308\ufe0f\u20e3\u200b\u200c\u200d\u2060\u00ad\ufeff\U0001f1e9\U0001f1ea\U0001f468\U0001f469\U0001f3fd❤"
    "가각\u1100\u1161\u11a8\ua960\ud7b0\u0600\u06dd\u070f\u08e2\U000110bdابُ東か゚ーﾞกำ\u0e40ລ\u0eb3ក្មမ္"
    "क\u094d\u0937\u0d4e\U000111c2\U00011046𝒜𠀀\ud800\udfff\x00\x1f\uffff\U0010ffff"
)
PROSE = (
    *("The", "cells", "p53", "mRNA", "BRCA1", "IL-2", "x", "A", "however", "12", "0", "5"),
    *(" ", " ", " ", "  ", "\n", "\n\n", "\r\n", ". ", ". ", ".", "? ", "!", '."', ".) ", "...", "。", ", ", "- "),
    *("e.g. ", "Fig. ", "No. ", "et al. ", "J. ", "0. 5", "1. ", "\f", "\u2029"),
    *("a" * 70 + " ", "cafe\u0301 ", "👩\u200d👧 "),
)

texts = st.one_of(
    st.lists(st.sampled_from(PROSE), max_size=40).map("".join),
    st.text(st.sampled_from(TRICKY), max_size=60),
    st.text(st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=())), max_size=60),
)


@st.composite
def ranges(draw: st.DrawFn, size: int, most: int = 4) -> list[Span]:
    borders = sorted(draw(st.lists(st.integers(0, size), max_size=2 * most, unique=True)))
    return [Span(*pair) for pair in zip(borders[::2], borders[1::2], strict=False)]


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A text with entities anywhere, sometimes with words (empty ones, too) or sentences."""
    text = draw(texts)
    fragments = [draw(ranges(len(text), 2)) for _ in range(draw(st.integers(0, 3)))]
    words = sentences = None
    if draw(st.integers(0, 3)) == 0:
        empty = [Span(at, at) for at in draw(st.lists(st.integers(0, len(text)), max_size=2))]
        words = tuple(sorted([*old.each_word(text), *empty]))
    if draw(st.integers(0, 3)) == 0:
        sentences = tuple(draw(ranges(len(text))))
    return Document(
        draw(st.sampled_from(["1", "2"])),
        text,
        tuple(Entity(draw(st.sampled_from("AB")), tuple(spans)) for spans in fragments if spans),
        words=words,
        sentences=sentences,
        dataset=draw(st.sampled_from(["main", "other"])),
        group=draw(st.sampled_from([None, "a", "b"])),
    )


settings = st.builds(
    Segmenting,
    max_length=st.one_of(st.integers(1, 14), st.sampled_from([40, 256])),
    overlap=st.integers(0, 5),
    misaligned=st.sampled_from(["expand", "contract", "drop"]),
    sentences=st.sampled_from(["split", "split", "whole"]),
    splitter=st.sampled_from(["words", "words", "whitespace"]),
    context=st.sampled_from(["sentence", "document"]),
    context_words=st.sampled_from([None, None, 6, 30]),
)


def as_it_was(sentence: Sentence | None) -> OldSentence | None:
    """The sentence with spans, whose numbers are those of its words."""
    if sentence is None:
        return None
    if isinstance(sentence.table, WordTable):
        assert sentence.numbers is not None
        assert sentence.numbers.tolist() == sentence.table.numbers(sentence.words).tolist()
    return OldSentence(
        sentence.words, sentence.entities, sentence.core, sentence.reach, spans_of(sentence.offsets), sentence.dataset
    )


def assert_same(
    rows: Sequence[Document],
    cut: Segmenting,
    gold: bool,
    measure: Callable[[Sequence[str]], Sequence[int]] | None = None,
    tables: Tables | None = None,
) -> None:
    """The same sentences, and the same told of each entity."""
    told: list[Any] = []
    told_before: list[Any] = []
    found = segment_rows(rows, cut, tables, gold, lambda *outcome: told.append(outcome))
    assert list(map(as_it_was, found)) == list(old.segment_rows(rows, cut, measure, gold))
    for document in rows:
        if document.entities:
            list(old.segment(document, cut, measure, gold, lambda *outcome: told_before.append(outcome)))
    assert told == told_before


@pytest.fixture(params=[None, 1, 7, 50], ids=lambda size: f"blocks of {size}" if size else "usual blocks")
def block(request, monkeypatch):
    """Blocks of a few characters, so that every document is a long one, and state is carried from block to block."""
    if request.param:
        monkeypatch.setattr(bulk, "BLOCK_CHARACTERS", request.param)
        monkeypatch.setattr(bulk, "BLOCK_WORDS", request.param)
        monkeypatch.setattr(bulk, "BLOCK_DOCUMENTS", 2)


@pytest.fixture
def changing_tables():
    """A new table with every third block, as on an endless stream."""
    numbers, current = count(), [tables_of()]

    def tables() -> WordTable:
        if next(numbers) % 3 == 2:
            current[0] = tables_of()
        return current[0]()

    return tables


@pytest.mark.usefixtures("block")
class TestBlocks:
    @given(st.lists(documents(), min_size=1, max_size=4), settings, st.booleans(), st.booleans())
    def test_sentences_windows_and_gold_are_the_same(self, rows, cut, measured, gold):
        assert_same(rows, cut, gold, *((letters, tables_of()) if measured else ()))

    def test_tables_may_change_from_block_to_block(self, changing_tables):
        random = Random(0)
        rows = [Document(str(at), "".join(random.choices(PROSE, k=60)), group="one") for at in range(20)]
        for context in ("sentence", "document"):
            cut = Segmenting(max_length=30, overlap=3, context=context)
            assert_same(rows, cut, False, letters, changing_tables)

    @pytest.mark.parametrize("closers", [1, 30, 300])
    def test_a_stop_counts_behind_any_number_of_closing_signs(self, closers):
        text = f"It left.{')' * closers} Then it came.{')' * closers} so it was。{'»' * closers}It was"
        assert_same([Document("1", text)], Segmenting(max_length=8, overlap=2), False)


@given(texts)
@example("\u0600 \u0301a")
def test_words_are_the_same(text):
    assert spans_of(SPLITTERS["words"](text)) == tuple(old.each_word(text))
    assert spans_of(SPLITTERS["whitespace"](text)) == tuple(old.each_unspaced(text))


@given(documents(), st.data())
def test_sentence_ends_of_any_words_are_the_same(document, data):
    keep = data.draw(ranges(len(document.text)))
    words = document.words if document.words is not None else tuple(old.each_word(document.text))
    found, start = [], None
    for word, ends in old.mark_sentence_ends(document.text, words, keep):
        start = word.start if start is None else start
        if ends:
            found.append(Span(start, word.end))
            start = None
    assert list(split_sentences(document.text, offsets_of(words), keep)) == found


@pytest.mark.slow
def test_a_million_random_characters():
    """From all of Unicode, the tricky ones, and prose, in texts of every length up to some blocks."""
    random = Random(20261116)
    read_so_far = 0
    while read_so_far < 1_000_000:
        rows = []
        for _ in range(random.randint(1, 40)):
            size, kind = int(2 ** random.uniform(0, 11)), random.random()
            if kind < 0.4:
                text = "".join(random.choices(PROSE, k=size // 3))
            elif kind < 0.7:
                text = "".join(random.choices(TRICKY, k=size))
            else:
                most = random.choice((0x300, 0x3100, 0x20000, 0x110000))
                text = "".join(map(chr, random.choices(range(most), k=size)))
            rows.append(Document(str(len(rows)), text, group=random.choice((None, "a"))))
        read_so_far += sum(len(row.text) for row in rows)
        cut = Segmenting(random.choice((8, 64, 256)), 4, context=random.choice(("sentence", "document")))
        assert_same(rows, cut, False, letters, tables_of())


@pytest.mark.slow
@pytest.mark.parametrize("joint", ["", " "])
def test_a_text_of_several_blocks(joint):
    random = Random(1)
    pieces = ["".join(random.choices(PROSE if random.random() < 0.7 else TRICKY, k=20)) for _ in range(8000)]
    text = joint.join(pieces)
    assert len(text) > 2 * bulk.BLOCK_CHARACTERS
    assert_same([Document("1", text)], Segmenting(64, 8), False, letters, tables_of())


ROOT = Path(os.environ.get("WINGSPAN_DATA", "/nowhere"))
KINDS = ("*.jsonl", "*.jsonl.gz", "*ubtator*", "*ubTator*", "*BioC*", "*.iob2*", "*.conll*", "*.tsv*", "*.annotated")
FILES = sorted({path for kind in KINDS for path in ROOT.rglob(kind) if path.is_file() and "kb" not in path.parts})
FOLDERS = sorted({path.parent for path in ROOT.rglob("*.ann")})  # brat


def pieces_of(words: Sequence[str]) -> list[int]:
    """About as many as a tokenizer makes."""
    return [(len(word) + 3) // 4 for word in words]


@pytest.mark.skipif(not ROOT.is_dir(), reason="WINGSPAN_DATA does not name the folder of corpora")
@pytest.mark.parametrize("path", [*FILES, *FOLDERS], ids=lambda path: str(path.relative_to(ROOT)))
def test_the_beginnings_of_all_corpora(path):
    """As they are, in training; and their texts alone, in prediction. `benchmarks/segmenting.py` has all of them."""
    rows = list(islice(read(path, detect(path), problems=Problems("skip")), 100))
    assert rows
    cut = Segmenting(max_length=64, overlap=8)
    assert_same(rows, cut, True)
    plain = [Document(row.id, row.text, group=row.group) for row in rows]
    assert_same(plain, cut, False, pieces_of, tables_of(pieces_of))
