"""How corpora split words: every splitter's words, and which splitter agrees best with given ones."""

import time

import pytest

from wingspan.corpora.conventions import CONVENTIONS, best_agreement
from wingspan.corpora.words import AUTO, SPLITTERS
from wingspan.text import Document, Span, spans_of

ALL = {name: splitter for name, splitter in SPLITTERS.items() if name != AUTO}


def cut(name: str, text: str) -> str:
    return "|".join(text[start:end] for start, end in SPLITTERS[name](text))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("alphanumeric", "BRCA1 (IL-2), 3.5 mg; naïve", "BRCA1|(|IL|-|2|)|,|3|.|5|mg|;|naïve"),
        ("alphanumeric", "口腔CT2检查", "口|腔|CT2|检|查"),
        ("characters", "口服 10mg。e\u0301", "口|服|1|0|m|g|。|e\u0301"),
        ("newswire", "The U.S. won't pay Dr. Ash $1,000.50.", "The|U.S.|wo|n't|pay|Dr.|Ash|$|1,000.50|."),
        ("newswire", "It's O'Hara's NF-kappa/B, 1899-1902...", "It|'s|O'Hara|'s|NF-kappa/B|,|1899-1902|..."),
        ("newswire", "See www.a.org/b, 1st--“last”!", "See|www.a.org/b|,|1st|--|“|last|”|!"),
        ("newswire", "J. Doe left at 10:30. No.", "J.|Doe|left|at|10:30|.|No|."),
        ("tweets", "@ann I can't!!! #fail :-) http://t.co/x &amp; it's 100%", "@ann|I|can't|!!!|#fail|:-)|http://t.co/x|&amp;|it|'s|100%"),
    ],
)  # fmt: skip
def test_words_of_a_convention(name: str, text: str, words: str) -> None:
    assert cut(name, text) == words


@pytest.mark.parametrize("name", CONVENTIONS)
def test_every_visible_character_is_in_one_word(name: str) -> None:
    text = "Ünï-cødé: «o» 3,5.6a U.S.A's n't don't 😀\u0301 \u200b口。ไทย\n\t(x_y)=8D <3 @ # 's"
    spans = list(spans_of(SPLITTERS[name](text)))
    assert all(left.end <= right.start for left, right in zip(spans, spans[1:], strict=False))
    kept = "".join(text[start:end] for start, end in spans)
    assert kept == "".join(text.split())


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("piece", ["1.1", "www.", "a-", "n't", "x(", "A.", "'", "http://", "\u0301", "3,", "&a"])
def test_any_text_takes_linear_time(name: str, piece: str) -> None:
    began = time.process_time()
    assert len(SPLITTERS[name](piece * 40_000))
    assert time.process_time() - began < 4


GIVEN = {
    "words": ["p 53 and IL - 2 .", "( x ) ; 3 , 5"],
    "alphanumeric": ["p53 and IL - 2 .", "L - dopa ( m2 ) , HT1B", "a non - x , T1 ."],
    "newswire": ["The U.S. do n't pay .", "Dr. Ash 's well-known report , 3.5 %", "He said : \" no \" ."],
    "tweets": ["@ann can't wait !!!", "I'm #done :)", "see http://t.co/x !!!"],
    "characters": ["患 者 口 服 1 0 0 m g 。", "C T 检 查 ，", "2 0 1 9 年"],
    "whitespace": ["Well, (yes) no;", "end. \"It\" was", "so/so, 3%; x."],
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_the_splitter_that_agrees_best_is_found(name: str) -> None:
    documents = [Document.from_words(str(at), tuple(words.split())) for at, words in enumerate(GIVEN[name])]
    found = best_agreement(documents, ALL)
    assert found is not None
    assert (found.splitter, found.share) == (name, 1.0)
    assert found.line == f"Words: raw text is cut as the given words are ({name})."


def test_a_dash_that_is_mostly_inside_of_words_is_not_glued_to_others() -> None:
    rows = ["well-known x-ray and follow-up", "a long-term one - or none"]
    documents = [Document.from_words(row, tuple(row.split())) for row in rows]
    found = best_agreement(documents, {"newswire": SPLITTERS["newswire"]})
    assert found is not None
    assert found.share == 1.0


def test_a_real_text_is_not_guessed() -> None:
    text = "p53-like"
    spans = (Span(0, 3), Span(3, 4), Span(4, 8))
    found = best_agreement([Document("1", text, words=spans)], ALL)
    assert found is not None
    assert (found.splitter, found.words, found.same) == ("alphanumeric", 3, 3)


def test_what_differs_is_said() -> None:
    documents = [Document.from_words("1", ("U.S", ".", "and", "U.K."))]
    found = best_agreement(documents, {"newswire": SPLITTERS["newswire"]})
    assert found is not None
    assert 0 < found.share < 1
    assert f"{100 * (1 - found.share):.2f}% of the words differ from the given ones" in found.line
    assert best_agreement([Document("1", "no words")], ALL) is None


def test_words_that_no_splitter_makes_are_said_to_be_needed_in_use() -> None:
    found = best_agreement([Document.from_words("1", ("患者", "口服", "阿司匹林", "。"))], ALL)
    assert found is not None
    assert "so little will be found in raw text" in found.line
    assert "wingspan convert IN OUT.doccano.jsonl" in found.line
