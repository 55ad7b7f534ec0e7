"""The sentences written for the project are what their guidelines say."""

import re
from collections import Counter

from pages import ROOT

from wingspan.corpora.formats import read
from wingspan.corpora.words import split_words

FOLDER = ROOT / "examples" / "biomedical"
SENTENCES = list(read(FOLDER / "regression.jsonl"))
ENTITIES = [(sentence, entity) for sentence in SENTENCES for entity in sentence.entities]
LABELS = Counter(entity.label for _, entity in ENTITIES)
CATEGORIES = Counter(sentence.meta["category"] for sentence in SENTENCES)
DISCONTINUOUS = sum(entity.discontinuous for _, entity in ENTITIES)
NESTED = sum(
    any(
        other != entity and not other.discontinuous and other.start <= entity.start and entity.end <= other.end
        for other in sentence.entities
    )
    for sentence, entity in ENTITIES
    if not entity.discontinuous
)


def test_two_hundred_different_short_sentences() -> None:
    assert len({sentence.id for sentence in SENTENCES}) == 200
    assert len({" ".join(re.findall(r"\w+", sentence.text.casefold())) for sentence in SENTENCES}) == 200
    assert all(4 <= len(sentence.text.split()) <= 35 for sentence in SENTENCES)


def test_enough_of_every_kind() -> None:
    assert len(CATEGORIES) == 10
    assert min(CATEGORIES.values()) >= 10
    assert set(LABELS) == {"Disease", "Chemical", "Gene", "Variant", "Species", "CellLine"}
    assert min(LABELS.values()) >= 40
    assert NESTED >= 15
    assert DISCONTINUOUS >= 15


def test_categories_are_true() -> None:
    for sentence in SENTENCES:
        category = sentence.meta["category"]
        assert sentence.id.startswith(f"{category}-")
        assert (category == "none") == (not sentence.entities), sentence.id
        assert category != "all-caps" or sentence.text.isupper(), sentence.id
        assert category != "lower-case" or sentence.text.islower(), sentence.id
        assert category != "greek" or re.search("[α-ωΔ]", sentence.text), sentence.id
        pieces = any(entity.discontinuous for entity in sentence.entities)
        assert (category in ("shared-head", "discontinuous")) == pieces, sentence.id
    assert CATEGORIES["none"] >= 20


def test_mentions_are_whole_words_and_annotated_once() -> None:
    for sentence in SENTENCES:
        words = split_words(sentence.text)
        starts, ends = {word.start for word in words}, {word.end for word in words}
        assert len(set(sentence.entities)) == len(sentence.entities), sentence.id
        for entity in sentence.entities:
            assert all(span.start in starts and span.end in ends for span in entity.spans), (sentence.id, entity)


def test_guidelines_give_these_counts() -> None:
    page = " ".join((FOLDER / "regression.md").read_text(encoding="utf-8").split())
    assert f"{len(SENTENCES)} sentences written for this project, {len(ENTITIES)} mentions" in page
    for label, count in LABELS.items():
        assert f"{count} {label}" in page
    assert f"{DISCONTINUOUS} discontinuous; {NESTED} inside another" in page
    rows = re.findall(r"\| (`[^|]+`) \| ([\d, ]+) \|", page)
    told = {
        name: int(count)
        for names, counts in rows
        for name, count in zip(re.findall(r"`(.+?)`", names), counts.split(", "), strict=True)
    }
    assert told == CATEGORIES
