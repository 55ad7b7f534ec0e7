import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wingspan.corpora.leaks.index import Laid, Postings, window_numbers
from wingspan.corpora.words import bare, bare_places, text_key

TEXTS = st.lists(st.text(alphabet="abcé漢", max_size=40), max_size=6)


@given(TEXTS)
def test_equal_windows_have_equal_numbers_and_others_have_others(texts):
    laid = Laid.out(texts)
    for width, numbers in zip((4, 8), window_numbers(laid, 4, 8), strict=True):
        places = laid.inside(np.arange(len(numbers)), width)
        owners = laid.owners(places)
        found = [texts[o][p - laid.bounds[o] :][:width] for o, p in zip(owners, places, strict=True)]
        wanted = [text[at : at + width] for text in texts for at in range(len(text) - width + 1)]
        assert found == wanted
        by_number = {(int(numbers[place]), text) for place, text in zip(places, found, strict=True)}
        assert len(by_number) == len(set(found)) == len({number for number, _ in by_number})


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 5))), st.lists(st.integers(0, 10)))
def test_postings_find_every_owner(pairs, asked):
    numbers, owners = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    at, found = Postings.of(numbers.astype(np.uint64), owners).pairs(np.array(asked, np.uint64))
    wanted = [(place, owner) for place, number in enumerate(asked) for known, owner in pairs if known == number]
    assert sorted(zip(at.tolist(), found.tolist(), strict=True)) == sorted(wanted)


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
