"""What stands around a sentence: from its own row and its neighbors, never in the way of what counts."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import pytest
from covered import measure_coverage
from hypothesis import given
from hypothesis import strategies as st

from tables import letters, tables_of
from wingspan.corpora.segment import BLOCK_DOCUMENTS, Segmenting, place, segment, segment_all, segment_rows
from wingspan.text import Document, Entity, Sentence, Span, spans_of

DOCUMENT = Segmenting(max_length=10, overlap=2, context="document")


def row(words: str, *entities: tuple[str, int, int], group: str | None = "article", **others) -> Document:
    """A row of words between spaces; entities in words."""
    return Document.from_words(
        "row", tuple(words.split()), tuple(Entity.at(*e) for e in entities), group=group, **others
    )


def seen(sentence: Sentence) -> str:
    """The words, with brackets around those that count."""
    words = list(sentence.words)
    start, end = sentence.core
    return " ".join([*words[:start], "[", *words[start:end], "]", *words[end:]])


def test_neighbors_of_one_group_are_context_on_both_sides():
    rows = [row("a b c"), row("d e"), row("f g h i j k l m n"), row("o p", group="other")]
    sentences = list(segment_all(rows, DOCUMENT))
    assert [seen(s) for s in sentences] == [
        "[ a b c ] d e f g h i j",
        "a b c [ d e ] f g h i j",  # half of the room of 8 on each side; what the left has no words for goes right
        "e [ f g h i j k l m n ]",
        "[ o p ]",
    ]
    assert all(s.reach == s.core for s in sentences)


def test_room_that_one_side_does_not_need_goes_to_the_other():
    rows = [row("a b c d e f g h i j k l"), row("m n"), row("o")]
    assert [seen(s) for s in segment_all(rows, replace(DOCUMENT, max_length=14))][1:] == [
        "b c d e f g h i j k l [ m n ] o",
        "b c d e f g h i j k l m n [ o ]",
    ]


def test_context_in_words_is_symmetric():
    """Oi and Miwa: so many words in all, half of the rest on each side; what one side lacks the other does not get."""
    rows = [row("a b"), row("d e"), row("f g h i j k l")]
    counted = replace(DOCUMENT, max_length=50, context_words=7)
    assert [seen(s) for s in segment_all(rows, counted, tables_of())] == [
        "[ a b ] d e",
        "a b [ d e ] f g",
        "[ f g h i j k l ]",
    ]
    tight = replace(counted, max_length=4)  # pieces still bound it
    assert [seen(s) for s in segment_all(rows[:2], tight, tables_of())] == ["[ a b ] d e", "a b [ d e ]"]
    with pytest.raises(ValueError, match="context_words is 0"):
        Segmenting(context_words=0)


def test_only_neighbors_that_follow_each_other_are_joined():
    assert [seen(s) for s in segment_all([row("a"), row("b", group="x"), row("c")], DOCUMENT)] == [
        "[ a ]",
        "[ b ]",
        "[ c ]",
    ]
    alone = [row("a", group=None), row("b", group=None)]
    assert [seen(s) for s in segment_all(alone, DOCUMENT)] == ["[ a ]", "[ b ]"]
    corpora = [row("a"), row("b", dataset="another")]
    assert [seen(s) for s in segment_all(corpora, DOCUMENT)] == ["[ a ]", "[ b ]"]


def test_sentences_of_one_document_are_context_for_each_other():
    text = "One two. Three four five. Six."
    document = Document("d", text, (Entity.at("X", 9, 19), Entity.at("X", 26, 29)))
    sentences = list(segment_all([document], replace(DOCUMENT, max_length=8)))
    assert [seen(s) for s in sentences] == [
        "[ One two . ] Three four five . Six",
        "two . [ Three four five . ] Six .",
        "two . Three four five . [ Six . ]",
    ]
    assert [e for s in sentences for e in place(s, s.entities)] == list(document.entities)
    assert spans_of(sentences[2].offsets)[0] == Span(4, 7)  # words of the same row keep their places


def test_words_of_other_rows_have_no_place_in_this_one():
    (_, sentence) = segment_all([row("aa bb"), row("cc")], DOCUMENT)
    assert spans_of(sentence.offsets) == (Span(0, 0), Span(0, 0), Span(0, 2))
    assert sentence.characters(sentence.core) == Span(0, 2)


def test_a_long_sentence_keeps_its_windows():
    rows = [row("x y"), row("a b c d e f g h i j k l"), row("z")]
    plain = [s for document in rows for s in segment(document, DOCUMENT)]
    for own, sentence in zip(plain, segment_all(rows, DOCUMENT), strict=True):
        assert sentence.words[slice(*sentence.reach)] == own.words
        assert sentence.core.start - sentence.reach.start == own.core.start
        assert len(sentence.words) <= 10


def test_a_word_larger_than_the_window_stands_alone():
    sentences = list(segment_all([row("aa"), row("bbbbbbbbbbbbbbb"), row("cc")], DOCUMENT, tables_of()))
    assert [seen(s) for s in sentences] == ["[ aa ]", "[ bbbbbbbbbbbbbbb ]", "[ cc ]"]


def test_without_neighbors_nothing_changes():
    rows = [row("a b c", ("X", 0, 2), group=None), row("d e", group="only")]
    assert list(segment_all(rows, DOCUMENT)) == list(segment_all(rows, replace(DOCUMENT, context="sentence")))


words = st.lists(st.sampled_from(["a", "bb", "ccc", "dddddd"]), max_size=14)


@st.composite
def articles(draw: st.DrawFn) -> list[Document]:
    rows = []
    for _ in range(draw(st.integers(0, 6))):
        chosen = draw(words)
        spans = draw(st.lists(st.tuples(st.integers(0, 13), st.integers(1, 4)), max_size=3))
        entities = {("X", start, start + width) for start, width in spans if start + width <= len(chosen)}
        rows.append(row(" ".join(chosen), *sorted(entities), group=draw(st.sampled_from([None, "a", "b"]))))
    return rows


@given(articles(), st.integers(1, 20), st.booleans(), st.booleans())
def test_context_is_what_stands_around_and_gold_is_where_it_was(rows, limit, measured, gold):
    tables = tables_of() if measured else None
    cut = Segmenting(limit, 2, context="document")
    expected = by_hand(rows, cut, tables, gold)
    assert [seen(s) for s in segment_all(rows, cut, tables, gold)] == expected
    alone = (segment(document, cut, tables, gold) for document in rows)
    for one, all_of_it in zip((s for part in alone for s in part), segment_all(rows, cut, tables, gold), strict=True):
        assert place(all_of_it, all_of_it.entities) == place(one, one.entities)
        assert all(all_of_it.reach.contains(e.hull) for e in all_of_it.entities)
        assert all_of_it.words[slice(*all_of_it.reach)] == one.words


def by_hand(rows: Sequence[Document], cut: Segmenting, tables, gold: bool) -> list[str]:
    """The same sentences, the long way: word by word from each sentence outwards."""
    size = (lambda word: letters([word])[0]) if tables else (lambda word: 1)
    found = []
    runs: list[list[Document]] = []
    for document in rows:
        if runs and document.group is not None and runs[-1][0].group == document.group:
            runs[-1].append(document)
        else:
            runs.append([document])
    for run in runs:
        sentences = [s for document in run for s in segment(document, cut, tables, gold)]
        text = [word for s in sentences for word in s.words[slice(*s.core)]]
        at = 0
        for s in sentences:
            first, end = at - s.core.start, at - s.core.start + len(s.words)
            room = max(cut.max_length - sum(map(size, s.words)), 0)
            for_left = max(room // 2, room - sum(map(size, text[end:])))
            start, last = first, end
            while start and size(text[start - 1]) <= for_left:
                start -= 1
                for_left, room = for_left - size(text[start]), room - size(text[start])
            while last < len(text) and size(text[last]) <= room:
                room -= size(text[last])
                last += 1
            own = " ".join([*text[start:at], "[", *text[at : at + s.core.width], "]", *text[at + s.core.width : last]])
            found.append(own)
            at += s.core.width
    return found


@given(articles(), st.integers(1, 20))
def test_each_row_ends_after_its_sentences(rows, limit):
    cut = Segmenting(limit, 2, context="document")
    events = list(segment_rows(rows, cut))
    assert events.count(None) == len(rows)
    ends = [at for at, event in enumerate(events) if event is None]
    counts = [end - start - 1 for start, end in zip([-1, *ends], ends, strict=False)]
    assert counts == [len(list(segment(document, cut))) for document in rows]


def test_context_loses_no_gold():
    rows = [row("a b c d e", ("X", 0, 2), ("Y", 1, 5)), row("f g h", ("X", 2, 3))] * 3
    for length in (3, 5, 8, 50):
        cut = Segmenting(length, 2, context="document")
        alone = replace(cut, context="sentence")
        assert measure_coverage(rows, cut, max_width=3) == measure_coverage(rows, alone, max_width=3)


def test_a_long_stream_is_read_only_as_far_as_a_block_reaches():
    read = 0

    def stream() -> Iterator[Document]:
        nonlocal read
        for at in range(100_000):
            read += 1
            yield row(f"w{at} x", group="one")

    events = segment_rows(stream(), Segmenting(64, 8, context="document"))
    sentences = [s for s in islice(events, 5_000) if s is not None]
    assert len(sentences) == 2_500
    assert read <= 2_500 + 40 + BLOCK_DOCUMENTS
    assert all(len(s.words) == 64 for s in sentences[20:])
    assert sentences[2_000].words[slice(*sentences[2_000].core)] == ("w2000", "x")


def test_an_unknown_context_is_refused():
    with pytest.raises(ValueError, match="context is 'paragraph'; use sentence or document"):
        Segmenting(context="paragraph")
