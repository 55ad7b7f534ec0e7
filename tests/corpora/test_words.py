"""Words and sentences of any script."""

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from wingspan.corpora.sentences import is_one_sentence, split_sentences
from wingspan.corpora.words import SPLITTERS, find_words, split_words, word_strings
from wingspan.text import Span, spans_of

# all of Unicode, with a good share of what splitting can get wrong
TRICKY = (
    "aZ1 .\n\r\t\u0301\u200b\u200c\u200d\u200f\u00ad\ufeff\U0001f468\U0001f3fd\U0001f1e9\u0600\u0627\u0915\u094d東か゚ー"
)
anything = st.text(st.one_of(st.sampled_from(TRICKY), st.characters(exclude_categories=["Cs"])), max_size=60)


def shown(text: str) -> list[str]:
    return [text[start:end] for start, end in split_words(text)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("BRCA1-positive", ["BRCA", "1", "-", "positive"]),
        ("IL-2R\u03b1 10.5mg", ["IL", "-", "2", "Rα", "10", ".", "5", "mg"]),
        ("cafe\u0301 nai\u0308ve", ["cafe\u0301", "nai\u0308ve"]),
        ("Болезнь Паркинсона", ["Болезнь", "Паркинсона"]),
        ("مرضُ السُّكَّري، نعم", ["مرضُ", "السُّكَّري", "،", "نعم"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("क्षय रोग", ["क्षय", "रोग"]),
        ("肺がんの2例", ["肺", "が", "ん", "の", "2", "例"]),
        ("ラーメン", ["ラ", "ー", "メ", "ン"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("ok👨\u200d👩\u200d👧!", ["ok", "👨\u200d👩\u200d👧", "!"]),
        ("🇩🇪🇫🇷 👍🏽", ["🇩🇪", "🇫🇷", "👍🏽"]),
        ("a\u200bb", ["a", "\u200b", "b"]),
        ("in\u00adfor", ["in\u00adfor"]),
        ("x\r\ny", ["x", "y"]),
        ("snake_case", ["snake", "_", "case"]),
        ("", []),
        (" \t\r\n\u3000", []),
    ],
)
def test_words_of_many_scripts(text: str, words: list[str]) -> None:
    assert shown(text) == words


@given(anything)
def test_nothing_visible_is_left_out(text: str) -> None:
    words = split_words(text)
    assert all(a.end <= b.start for a, b in zip(words, words[1:], strict=False))
    assert "".join(text[s:e] for s, e in words) == regex.sub(r"\s", "", text)
    assert all(word.width > 0 for word in words)


@given(anything)
def test_no_word_border_lies_inside_a_grapheme(text: str) -> None:
    borders = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    for start, end in split_words(text):
        # a mark after a space makes one grapheme with it, but no word holds a space
        assert start in borders or text[start - 1].isspace()
        assert end in borders


@given(anything)
def test_words_depend_on_their_surroundings_up_to_white_space_only(text: str) -> None:
    words = shown(text)
    assert shown(text + " x") == [*words, "x"]
    assert shown("x " + text) == ["x", *words]


@pytest.mark.parametrize(
    "unit",
    ["a", "e\u0301", "\u0301", "\u200d", "1", "\u0600", "\U0001f1e9", "\U0001f469\u200d", "\u1100", "क्", "東", " "],
)
def test_long_rows_of_one_character_are_walked_once(unit: str) -> None:
    """A quadratic pattern would need hours here: 300,000 characters are 4.5e10 steps."""
    text = unit * (300_000 // len(unit))
    assert sum(word.width for word in spans_of(find_words(text))) == (0 if unit == " " else len(text))


def test_a_word_of_ten_million_letters() -> None:
    assert split_words("a" * 10_000_000) == (Span(0, 10_000_000),)


def test_whitespace_splitter_keeps_signs() -> None:
    assert spans_of(SPLITTERS["whitespace"]("a-b  c.\u3000d")) == (Span(0, 3), Span(5, 7), Span(8, 9))
    assert spans_of(SPLITTERS["words"]("a-b c")) == split_words("a-b c")


def sentences(text: str, keep: tuple[Span, ...] = ()) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text, find_words(text), keep)]


@pytest.mark.parametrize(
    "expected",
    [
        ["It rained.", "Nobody came."],
        ["We gave 3.5 mg (Fig. 2) daily.", "No harm was seen."],
        ["Growth of E. coli was slow, e.g. in Dr. J. Miller et al. and in sp. nov. strains."],
        ["He got vitamin C.", "The result was good."],
        ["Levels rose.", "p53 fell.", "mRNA did not."],
        ['She said "no."', "Then she left (at last!).", "Why?"],
        ["See No. 5 of the list.", "The answer is no.", "Yes!"],
        ["1. Wash the plate.", "2. Dry it."],
        ["We waited...", "And waited ... for long."],
        ["A. Berg wrote it."],
        ["The odds were 0. 5 (Berg et al. 2005, p. 1).", "They fell."],
    ],
)
def test_english_sentences(expected: list[str]) -> None:
    assert sentences(" ".join(expected)) == expected


def test_stops_of_other_scripts_need_no_space() -> None:
    assert sentences("肺がんです。「はい。」そう！本当？") == ["肺がんです。", "「はい。」", "そう！", "本当？"]
    assert sentences("هل هو مريض؟ نعم.") == ["هل هو مريض؟", "نعم."]
    assert sentences("यह रोग है। ठीक है।") == ["यह रोग है।", "ठीक है।"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_breaks(newline: str) -> None:
    title = f"A short title of 5 words{newline}Here begins the text, which is wrapped after a good number of{newline}"
    text = f"{title}words and goes on.{newline}{newline}and a new paragraph"
    assert sentences(text) == [
        "A short title of 5 words",
        f"Here begins the text, which is wrapped after a good number of{newline}words and goes on.",
        "and a new paragraph",
    ]


def test_kept_ranges_are_never_cut() -> None:
    text = "Found in St. Louis. Ohio. Then gone.\n\nEnd"
    assert sentences(text) == ["Found in St. Louis.", "Ohio.", "Then gone.", "End"]
    assert sentences(text, (Span(9, 24), Span(9, 11))) == ["Found in St. Louis. Ohio.", "Then gone.", "End"]
    assert sentences(text, (Span(9, 24), Span(12, 14))) == ["Found in St. Louis. Ohio.", "Then gone.", "End"]
    assert sentences(text, (Span(31, 40),)) == ["Found in St. Louis.", "Ohio.", "Then gone.\n\nEnd"]


@given(anything, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted), max_size=4))
def test_sentences_share_the_words_out_and_keep_what_they_must(text: str, ranges: list[list[int]]) -> None:
    words = split_words(text)
    keep = tuple(Span(*r) for r in ranges)
    found = split_sentences(text, find_words(text), keep)
    assert all(a.end <= b.start for a, b in zip(found, found[1:], strict=False))
    assert all(any(sentence.contains(word) for sentence in found) for word in words)
    for span in keep:
        touched = [word for word in words if word.overlaps(span)]
        if touched:
            assert any(s.start <= touched[0].start and touched[-1].end <= s.end for s in found)


@given(anything)
def test_words_as_strings_are_the_words(text: str) -> None:
    assert word_strings(text) == shown(text)


@given(st.text("aZ1 .!。)\u2029\t\u0301", max_size=12) | anything)
def test_one_sentence_at_a_glance(text: str) -> None:
    if is_one_sentence(text):
        assert len(split_sentences(text, find_words(text))) <= 1


def test_most_single_sentences_are_seen_at_a_glance() -> None:
    assert is_one_sentence("The p53 gene (TP53) was lost.")
    assert is_one_sentence('"Why?"  ')
    assert is_one_sentence("")
    assert not is_one_sentence("Lost. Found")
    assert not is_one_sentence("見た。来た")
