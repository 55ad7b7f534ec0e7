import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wingspan.corpora.leaks.index import HashTable, ngram_hash
from wingspan.corpora.words import bare, bare_places, text_key

TEXTS = st.lists(st.text(alphabet="abcé漢", max_size=40), max_size=6)


@given(TEXTS)
def test_equal_ngrams_have_equal_hashes_and_others_have_others(texts):
    for width, hashes in zip((4, 8), zip(*(ngram_hash(text, 4, 8) for text in texts), strict=True), strict=False):
        ngrams = [text[at : at + width] for text in texts for at in range(len(text) - width + 1)]
        by_hash = set(zip(np.concatenate(hashes).tolist(), ngrams, strict=True))
        assert len(by_hash) == len(set(ngrams)) == len({number for number, _ in by_hash})


@given(st.lists(st.lists(st.integers(0, 8))), st.lists(st.integers(0, 10)))
def test_a_table_finds_every_position_of_a_hash(known, asked):
    positions = HashTable([np.array(hashes, np.uint64) for hashes in known]).find(np.array(asked, np.uint64))
    together = [number for hashes in known for number in hashes]
    expected = [
        (at, place) for at, number in enumerate(asked) for place, other in enumerate(together) if other == number
    ]
    assert list(zip(*(side.tolist() for side in positions), strict=True)) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(IL-2) in Parkinson's disease", "( il - 2 ) in  Parkinson 's\ndisease"),
        ("ﬁbrosis of 5 µm “naïve” cells", "Fibrosis of 5 μm ``naïve'' cells"),
        ("e\u0301tude", "étude"),
        ("STRASSE", "Straße"),
    ],
)
def test_case_white_space_and_signs_make_no_other_text(one, other):
    assert bare(one) == bare(other)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_plain_letters_take_a_shortcut_to_the_same_key(text):
    assert bare(text) == bare(f"{text}\u00b7")[: len(bare(text))]
    assert bare(text) == "".join(character for character in text.casefold() if character.isalnum())


def test_texts_of_signs_have_a_key_too():
    assert bare("+ -") == ""
    assert text_key("+ -") == "+-" != text_key("- -")
    assert text_key(" ") == ""


@given(st.text(alphabet="aB ß-2ﬁ漢", max_size=30), st.data())
def test_places_in_a_text_are_places_in_its_key(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    places = bare_places(text)
    assert bare(text)[places[start] : places[end]] == bare(text[start:end])
