"""The arrays of a batch are gathered from the table of words; word by word they would be the same."""

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from old_collate import collated
from tiny import sentence

from wingspan import batch
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.text import Sentence, Span
from wingspan.tokenizing.hashed import HashedTokenize
from wingspan.tokenizing.static import StaticTokenize

WORDS = st.sampled_from(
    ["the", "Drugs", "IN", "genexys", "12", ".", "\u200b", "été", "x" * 400, "\ud800", "[MASK]", "🧬"]
)


@st.composite
def sentences(draw) -> Sentence:
    words = tuple(draw(st.lists(WORDS | st.text(min_size=1, max_size=6), max_size=9)))
    bounds = sorted(draw(st.lists(st.integers(0, len(words)), min_size=4, max_size=4)))
    core, reach = Span(bounds[1], bounds[2]), Span(bounds[0], bounds[3])
    return Sentence(words, (), core, reach, (), draw(st.sampled_from(["main", "first", "second"])))


def static(unknown: str) -> StaticTokenize:
    tokenize = StaticTokenize(unknown, "both", 100, 256)
    tokenize.learn(["the", "drugs"], ["in", "genexys"])
    return tokenize


@pytest.fixture(scope="module")
def tokenizers(folders):
    named = {"corpus_token": "end", "corpora": ("first", "second")}
    families = {name: PretrainedEncoder(name=str(folder)).tokenize for name, folder in folders.items()}
    return {
        **families,
        **{f"{name} pieces": PretrainedEncoder(name=str(folders[name]), unit="piece").tokenize for name in families},
        "corpora": PretrainedEncoder(name=str(folders["bert"]), **named).tokenize,
        "hashed": HashedTokenize(1000, 256),
        "static": static("mean"),
        "static hashed": static("hashed"),
    }


def assert_equal(found, expected):
    for name, one, other in zip(found._fields, found, expected, strict=True):
        if other is not None:
            assert one.dtype == other.dtype, name
            np.testing.assert_array_equal(one, other, name)


@settings(max_examples=60)
@given(rows=st.lists(sentences(), min_size=1, max_size=6))
def test_gathered_as_word_by_word(tokenizers, rows):
    for tokenize in tokenizers.values():
        table = tokenize.table()
        looked_up = [replace(row, numbers=table.numbers(row.words), table=table) for row in rows[1:]]
        assert_equal(tokenize([*rows[:1], *looked_up]), collated(tokenize, rows))


def test_places_of_sentences(tokenizers):
    rows = [sentence("the drugs"), Sentence((), (), Span(0, 0), Span(0, 0), ()), sentence("genexys")]
    for tokenize in tokenizers.values():
        assert tokenize.lengths(rows).tolist() == [sum(tokenize.measure(row.words)) for row in rows]


def test_many_words_are_cut_as_one_by_one(tokenizers):
    words = [f"{stem}{number}" for number in range(700) for stem in ("gene", "Drug-", "été")]
    for tokenize in tokenizers.values():
        assert list(tokenize.cut(words)) == [tokenize.cut([word])[0] for word in words]


def test_numbers_of_another_table_are_not_used(monkeypatch):
    tokenize = HashedTokenize(1000, 256)
    row = sentence("the drugs in genexys")
    table = tokenize.table()
    seen = replace(row, numbers=table.numbers(row.words), table=table)
    expected = tokenize([row])
    monkeypatch.setattr(batch, "MOST_WORDS", 3)
    assert tokenize.table() is not table  # it is full
    tokenize.table().numbers(["other", "words"])
    assert_equal(tokenize([seen]), expected)


def test_new_rows_of_static_words_begin_a_new_table():
    tokenize = static("mean")
    before = tokenize([sentence("the drugs")]).tokens.tolist()
    tokenize.learn(["drugs", "the"], [])
    assert tokenize([sentence("the drugs")]).tokens.tolist() != before


def test_a_copy_has_no_table():
    tokenize = HashedTokenize(1000, 256)
    expected = tokenize([sentence("the drugs")])
    for other in (pickle.loads(pickle.dumps(tokenize)), copy.deepcopy(tokenize)):
        assert len(other.table()) == 0
        assert_equal(other([sentence("the drugs")]), expected)
