"""What the benchmarks' comparisons draw: articles, not their sentences."""

import json
from pathlib import Path

import pytest

from wingspan.text import Document

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def by_article(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import paired

    return paired.by_article


@pytest.fixture
def folder(tmp_path):
    """Two articles, in another order than their sentences; the second begins like the first."""
    texts = {"7": "Low dose.\nIt helped (p < 0.05).", "3": "Low dose. No cure -- yet."}
    rows = [json.dumps({"id": name, "text": text, "entities": []}) for name, text in texts.items()]
    (tmp_path / "test.text.jsonl").write_text("\n".join(rows) + "\n")
    return tmp_path


def sentences(*texts, group=None):
    return [Document(str(number), text, group=group) for number, text in enumerate(texts)]


def test_sentences_are_grouped_by_the_article_that_they_are_of(by_article, folder):
    found = by_article(
        sentences("Low dose .", "It helped ( p < 0.05 ) .", "Low dose .", "No cure", "-- yet ."), folder, "test"
    )
    assert [sentence.group for sentence in found] == ["7", "7", "3", "3", "3"]


def test_a_sentence_of_signs_stays_in_its_article(by_article, folder):
    found = by_article(sentences("Low dose .", "It helped ( p < 0.05 ) .", "* *", "Low dose ."), folder, "test")
    assert [sentence.group for sentence in found] == ["7", "7", "7", "3"]


def test_known_groups_stay_and_nothing_is_guessed_without_whole_texts(by_article, folder, tmp_path_factory):
    known = sentences("Something else .", group="9")
    assert by_article(known, folder, "test") == known
    unknown = sentences("Low dose .")
    assert by_article(unknown, tmp_path_factory.mktemp("none"), "test") == unknown


def test_a_sentence_of_no_article_ends_it(by_article, folder):
    with pytest.raises(SystemExit, match="1 is in none of the whole texts of test"):
        by_article(sentences("Low dose .", "High dose ."), folder, "test")
