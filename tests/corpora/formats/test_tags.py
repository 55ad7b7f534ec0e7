import pytest
from hypothesis import given
from hypothesis import strategies as st

from wingspan.corpora.formats.conll import detect_scheme, spans_of, tags_of

# one sentence of two touching entities and a lone one, in every scheme
EXPECTED = [("PER", 0, 2), ("PER", 2, 3), ("LOC", 4, 7)]
SENTENCE = {
    "IOB1": "I-PER I-PER B-PER O I-LOC I-LOC I-LOC",
    "IOB2": "B-PER I-PER B-PER O B-LOC I-LOC I-LOC",
    "BIOES": "B-PER E-PER S-PER O B-LOC I-LOC E-LOC",
    "BILOU": "B-PER L-PER U-PER O B-LOC I-LOC L-LOC",
    "BMES": "B-PER E-PER S-PER O B-LOC M-LOC E-LOC",
}


@pytest.mark.parametrize("scheme", SENTENCE)
def test_every_scheme_is_detected_and_read(scheme: str) -> None:
    tags = SENTENCE[scheme].split()
    assert detect_scheme([tags]) == scheme
    assert spans_of(tags, scheme) == (EXPECTED, 0)


def test_bmewo_is_bmes_with_w_for_single_words() -> None:
    tags = ["B-PER", "E-PER", "W-PER", "O", "B-LOC", "M-LOC", "E-LOC"]
    assert detect_scheme([tags]) == "BMES"
    assert spans_of(tags, "BMES") == (EXPECTED, 0)


def test_labels_without_prefixes_are_read_as_runs() -> None:
    tags = ["person", "person", "O", "building-airport", "person"]
    assert detect_scheme([tags]) == "IO"
    assert spans_of(tags, "IO")[0] == [("person", 0, 2), ("building-airport", 3, 4), ("person", 4, 5)]


def test_bare_prefixes_get_one_label() -> None:
    assert detect_scheme([["B", "I", "O"]]) == "IOB2"
    assert spans_of(["B", "I", "O", "B"], "IOB2") == ([("ENTITY", 0, 2), ("ENTITY", 3, 4)], 0)


def test_a_mixture_is_iob2_with_repairs() -> None:
    tags = ["B-PER", "O", "I-PER", "I-LOC"]
    assert detect_scheme([tags]) == "IOB2"
    assert spans_of(tags, "IOB2") == ([("PER", 0, 1), ("PER", 2, 3), ("LOC", 3, 4)], 2)


def test_entities_that_never_end_are_repaired_and_counted() -> None:
    assert spans_of(["B-PER", "I-PER", "O", "B-LOC"], "BIOES") == ([("PER", 0, 2), ("LOC", 3, 4)], 2)


def test_no_entities_is_iob2() -> None:
    assert detect_scheme([["O", "O"], []]) == "IOB2"
    assert spans_of([], "IOB2") == ([], 0)


def test_labels_may_hold_spaces_and_dashes() -> None:
    assert spans_of(["B-cell-line type", "I-cell-line type"], "IOB2") == ([("cell-line type", 0, 2)], 0)


def test_nesting_takes_layers_with_the_outermost_first() -> None:
    layers = tags_of(4, [("GPE", 3, 4), ("ORG", 1, 4), ("PER", 0, 1)])
    assert layers == [["B-PER", "B-ORG", "I-ORG", "I-ORG"], ["O", "O", "O", "B-GPE"]]


entities = st.lists(
    st.tuples(st.sampled_from(["A", "B-c", "I"]), st.integers(0, 11), st.integers(1, 6)).map(
        lambda found: (found[0], found[1], min(12, found[1] + found[2]))
    ),
    max_size=8,
)


@given(entities)
def test_layers_give_the_entities_back(found: list[tuple[str, int, int]]) -> None:
    layers = tags_of(12, found)
    assert sorted(span for tags in layers for span in spans_of(tags, "IOB2")[0]) == sorted(found)
    assert all(spans_of(tags, "IOB2")[1] == 0 for tags in layers)
