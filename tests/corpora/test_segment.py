"""Documents to sentences and windows, and entities back to characters."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tables import letters, tables_of
from wingspan.corpora.segment import BLOCK_CHARACTERS, Segmenting, place, segment
from wingspan.corpora.words import split_words
from wingspan.text import Document, Entity, Sentence, Span, spans_of

TRICKY = "abcXYZ12 .,\n\r\t\u0301\u200b\u200c\u200d\u200f\u0627\u0628東か👩\U0001f3fd-"
texts = st.text(st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=["Cs"])), max_size=80)


@st.composite
def documents(draw: st.DrawFn, aligned: bool = False) -> Document:
    text = draw(texts)
    words = split_words(text)
    size = len(words) if aligned else len(text)
    entities = []
    if size:
        for _ in range(draw(st.integers(0, 5))):
            borders = sorted(draw(st.lists(st.integers(0, size), min_size=2, max_size=4, unique=True)))
            pairs = [Span(a, b) for a, b in zip(borders[::2], borders[1::2], strict=False)]
            if aligned:
                pairs = [Span(words[a].start, words[b - 1].end) for a, b in pairs]
            entities.append(Entity(draw(st.sampled_from("AB")), tuple(pairs)))
    return Document("d", text, tuple(entities))


cuts = st.builds(Segmenting, max_length=st.integers(1, 12), overlap=st.integers(0, 5))


def owned(sentences: Sequence[Sentence]) -> list[Span]:
    return [word for s in sentences for word in spans_of(s.offsets[slice(*s.core)])]


@given(documents(), cuts, st.booleans(), st.booleans())
def test_every_word_is_owned_once_and_no_window_is_too_long(
    document: Document, cut: Segmenting, measured: bool, gold: bool
) -> None:
    sentences = list(segment(document, cut, tables_of() if measured else None, gold))
    assert owned(sentences) == list(split_words(document.text))
    for s in sentences:
        assert s.reach == Span(0, len(s.words))
        assert s.reach.contains(s.core)
        assert s.core.width > 0
        assert list(s.words) == [document.text[a:b] for a, b in s.offsets]
        size = sum(letters(s.words)) if measured else len(s.words)
        assert size <= cut.max_length or len(s.words) == 1
        assert s.core.start <= cut.overlap


@given(documents(aligned=True), cuts, st.booleans())
def test_entities_come_back_exactly_once_or_are_told(document: Document, cut: Segmenting, gold: bool) -> None:
    told: Counter[str] = Counter()
    sentences = list(segment(document, cut, None, gold, lambda entity, outcome, _: told.update([outcome])))
    back = [(s, e) for s in sentences for e in place(s, s.entities)]
    assert told.total() == len(document.entities)
    assert set(told) <= {"exact", "cut"}
    assert len(back) == len({e for _, e in back})
    assert {e for _, e in back} <= set(document.entities)
    missing = [e for e in document.entities if e not in {e for _, e in back}]
    assert len(missing) == told["cut"]
    for s in sentences:
        for entity in s.entities:
            assert s.core.start <= entity.start < s.core.end
            assert entity.end <= s.reach.end
            placed = place(s, [entity])[0]
            assert document.text_of(placed) == " ".join(
                document.text[slice(*s.characters(span))] for span in entity.spans
            )


@given(documents(), st.sampled_from(["expand", "contract", "drop"]), st.booleans())
def test_entities_off_the_word_borders_are_moved_or_told(document: Document, policy: str, gold: bool) -> None:
    told: Counter[str] = Counter()
    cut = Segmenting(max_length=8, overlap=2, misaligned=policy)  # type: ignore[arg-type]
    sentences = list(segment(document, cut, None, gold, lambda entity, outcome, _: told.update([outcome])))
    assert told.total() == len(document.entities)
    assert len({e for s in sentences for e in place(s, s.entities)}) <= told["exact"] + told["moved"]
    assert policy != "drop" or told["moved"] == 0


@given(documents(aligned=True), cuts, st.booleans())
def test_gold_has_no_part_in_the_windows_of_prediction(document: Document, cut: Segmenting, measured: bool) -> None:
    bare = Document("d", document.text)
    tables = tables_of() if measured else None

    def cores(document: Document, gold: bool) -> list[tuple[tuple[Span, ...], Span]]:
        return [(spans_of(s.offsets), s.core) for s in segment(document, cut, tables, gold)]

    assert cores(document, gold=False) == cores(bare, gold=True)


@given(documents(aligned=True))
def test_training_sentences_cut_no_entity(document: Document) -> None:
    sentences = list(segment(document, Segmenting(max_length=10_000)))
    assert {e for s in sentences for e in place(s, s.entities)} == set(document.entities)


words_with_entities = st.lists(st.text("ab \u200b", max_size=3), min_size=1, max_size=12).flatmap(
    lambda words: st.tuples(
        st.just(tuple(words)),
        st.lists(
            st.tuples(st.integers(0, len(words) - 1), st.integers(1, 4)).map(
                lambda at: Entity.at("A", at[0], min(at[0] + at[1], len(words)))
            ),
            max_size=4,
            unique=True,
        ),
    )
)


@given(words_with_entities)
def test_given_words_are_used_as_they_are(record: tuple[tuple[str, ...], list[Entity]]) -> None:
    """Empty words and words of spaces too: one row is one sentence."""
    words, entities = record
    document = Document.from_words("d", words, tuple(entities))
    (sentence,) = segment(document, Segmenting())
    assert sentence.words == words
    assert set(sentence.entities) == set(entities)
    assert set(place(sentence, sentence.entities)) == set(document.entities)


def test_given_sentences_and_the_words_between_them() -> None:
    text = "one. Two three x four"
    document = Document("d", text, sentences=(Span(0, 4), Span(5, 14), Span(17, 21)))
    assert [s.words for s in segment(document, Segmenting())] == [("one", "."), ("Two", "three"), ("x",), ("four",)]
    whole = list(segment(document, Segmenting(sentences="whole")))
    assert [s.words for s in whole] == [("one", ".", "Two", "three", "x", "four")]


@pytest.mark.parametrize("text", ["", " ", "\r\n\t\n"])
def test_text_without_words_has_no_sentences(text: str) -> None:
    told: list[str] = []
    document = Document("d", text, (Entity.at("A", 0, len(text)),))
    assert list(segment(document, Segmenting(), record=lambda entity, outcome, _: told.append(outcome))) == []
    assert told == ["misaligned"]


def test_policies_for_an_entity_inside_words() -> None:
    document = Document("d", "the xylocin level", (Entity.at("A", 5, 17),))

    def placed(policy: str) -> list[str]:
        cut = Segmenting(misaligned=policy)  # type: ignore[arg-type]
        return [document.text_of(e) for s in segment(document, cut) for e in place(s, s.entities)]

    assert placed("expand") == ["xylocin level"]
    assert placed("contract") == ["level"]
    assert placed("drop") == []
    with pytest.raises(ValueError, match="document 'd': A 'ylocin level' at characters 5-17 .* misaligned=expand"):
        placed("error")


def test_fragments_are_kept() -> None:
    text = "breast and ovarian cancer."
    document = Document("d", text, (Entity("D", (Span(0, 6), Span(19, 25))), Entity.at("D", 11, 25)))
    (sentence,) = segment(document, Segmenting())
    assert [e.spans for e in sentence.entities] == [((0, 1), (3, 4)), ((2, 4),)]
    assert place(sentence, sentence.entities) == document.entities
    # the window that owns the first word must hold the last one
    assert [len(s.entities) for s in segment(document, Segmenting(max_length=3, overlap=1))] == [0, 1]


def test_windows_of_a_long_sentence() -> None:
    words = tuple(f"w{i}" for i in range(1000))
    entities = tuple(Entity.at("A", i, i + 8) for i in range(0, 992, 5))
    document = Document.from_words("d", words, entities)
    sentences = list(segment(document, Segmenting(max_length=64, overlap=8)))
    assert sum(len(s.entities) for s in sentences) == len(entities)
    assert {e for s in sentences for e in place(s, s.entities)} == set(document.entities)
    assert all(s.core.width >= 64 - 16 for s in sentences[1:-1])


def test_a_word_larger_than_a_window_stands_alone() -> None:
    giant = "a" * 300_000
    document = Document("d", f"one two {giant} three", (Entity.at("A", 8, 300_008), Entity.at("B", 4, 300_008)))
    told: list[str] = []
    cut = Segmenting(max_length=256)
    sentences = list(segment(document, cut, tables_of(), record=lambda entity, outcome, _: told.append(outcome)))
    assert [tuple(len(w) for w in s.words) for s in sentences] == [(3, 3), (300_000,), (5,)]
    assert [e.label for s in sentences for e in s.entities] == ["A"]
    assert sorted(told) == ["cut", "exact"]


def test_right_to_left_text_combining_marks_and_emoji_keep_their_places() -> None:
    text = "قال: دواءُ الأَسبرين 👨\u200d👩\u200d👧 cafe\u0301\r\nX1"
    surfaces = ["دواءُ الأَسبرين", "👨\u200d👩\u200d👧", "cafe\u0301", "X1"]
    entities = tuple(Entity.at("A", text.index(s), text.index(s) + len(s)) for s in surfaces)
    document = Document("d", text, entities)
    sentences = list(segment(document, Segmenting(misaligned="error")))
    assert [document.text_of(e) for s in sentences for e in place(s, s.entities)] == surfaces


@pytest.mark.parametrize("unit", ["word ", "word. ", "Word. ", "東", "a\n", "x" * 50 + " ", "क्", "\u0600 "])
@pytest.mark.parametrize("given", [False, True], ids=["text", "words"])
def test_long_documents_are_segmented_lazily_and_each_word_is_looked_up_once(unit: str, given: bool) -> None:
    text = unit * (1_000_000 // len(unit))
    seen = calls = 0

    def measure(words: Sequence[str]) -> list[int]:
        return [1] * len(words)

    table = tables_of(measure)()
    plain = table.numbers

    def numbers(words: Sequence[str]) -> NDArray[np.int32]:
        nonlocal seen, calls
        seen, calls = seen + len(words), calls + 1
        return plain(words)

    table.numbers = numbers  # type: ignore[method-assign]
    document = Document("d", text, words=split_words(text) if given else None)
    sentences = segment(document, Segmenting(), lambda: table)
    next(sentences)
    assert seen <= BLOCK_CHARACTERS  # nothing but the beginning has been looked at
    words = covered = 1
    for s in sentences:
        words += len(s.words)
        covered += s.core.width
    assert covered <= seen <= covered + calls * 256  # those that wait for the next block are looked up again
    assert words <= 2 * covered  # overlaps add a bounded share


@pytest.mark.parametrize(
    ("settings_", "message"),
    [
        ({"max_length": 0}, "max_length is 0"),
        ({"overlap": -1}, "overlap is -1"),
        ({"misaligned": "shrink"}, "use expand, contract, drop or error"),
        ({"sentences": "some"}, "use split or whole"),
        ({"splitter": "mine"}, "use one of auto, words, whitespace"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings_: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Segmenting(**settings_)  # type: ignore[arg-type]
