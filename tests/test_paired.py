"""What the benchmarks' comparisons draw: articles, not their sentences."""

import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from wingspan.text import Document

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def paired(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import paired

    return paired


@pytest.fixture
def by_article(paired):
    return paired.by_article


@pytest.fixture
def folder(tmp_path):
    """Two articles, in another order than their sentences; the second begins like the first."""
    texts = {"7": "Low dose.\nIt helped (p < 0.05).", "3": "Low dose. No cure -- yet."}
    return written(tmp_path, texts)


def written(folder, texts):
    rows = [json.dumps({"id": name, "text": text, "entities": []}) for name, text in texts.items()]
    (folder / "test.text.jsonl").write_text("\n".join(rows) + "\n")
    return folder


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


def test_a_sentence_that_begins_several_articles_is_of_the_one_that_the_next_are_of_too(by_article, tmp_path):
    folder = written(tmp_path, {"1": "Stroke and rye.", "2": "St. John.", "3": "St. John. A bear came.", "4": "St."})
    told = sentences("St .", "John .", "A bear came .", "St .", "St .", "John .", "Stroke and rye .")
    assert [sentence.group for sentence in by_article(told, folder, "test")] == ["3", "3", "3", "4", "2", "2", "1"]


@pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA names no folder with corpora")
@pytest.mark.parametrize("part", ["dev", "test"])
@pytest.mark.parametrize(("corpus", "articles"), [("ncbi-disease", 100), ("bc5cdr", 500)])
def test_all_articles_of_real_corpora_are_found(paired, corpus, articles, part):
    folder = Path(os.environ["WINGSPAN_DATA"]) / corpus
    found = paired.by_article(paired.gold(folder, part), folder, part)
    assert len({sentence.group for sentence in found}) == articles


def kept_predictions(folder, name, seed, found):
    rows = "".join(f"{json.dumps([sentence, entities])}\n" for sentence, entities in found.items())
    (folder / f"{name}-{seed}-test.jsonl.gz").write_bytes(gzip.compress(rows.encode()))


def test_runs_of_all_seeds_are_read_and_of_no_other_system(paired, tmp_path):
    for seed in (1, 9, 10, 123):
        kept_predictions(tmp_path, "toy-span", seed, {"0": [["Disease", 0, 1, seed / 1000]]})
    kept_predictions(tmp_path, "toy-span-cnn", 1, {"0": []})
    kept_predictions(tmp_path, "toy-span-2", 1, {"0": []})
    runs = paired.runs_of(str(tmp_path / "toy-span"), "test", sentences("Flu ."))
    assert [round(1000 * document.entities[0].score) for (document,) in runs] == [1, 9, 10, 123]


@pytest.mark.parametrize(
    ("articles", "known", "unit", "units"),
    [(20, True, "articles", 20), (10, True, "sentences", 40), (20, False, "sentences", 80)],
)
def test_a_row_says_what_was_drawn(paired, monkeypatch, tmp_path, articles, known, unit, units):
    disease = [{"start": 0, "end": 1, "label": "Disease"}]
    rows = [
        {"id": f"{article}-{number}", "tokens": ["Flu", "."], "entities": disease}
        | ({"doc_id": str(article)} if known else {})
        for article in range(articles)
        for number in range(4)
    ]
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "test.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for name, entities in (("one", []), ("two", [["Disease", 0, 3, 0.9]])):
        for seed in (1, 2):
            kept_predictions(tmp_path, name, seed, {row["id"]: entities for row in rows})
    output = tmp_path / "rows.jsonl"
    given = ["--data", tmp_path, "--corpus", "toy", "--samples", 20, "--output", output]
    monkeypatch.setattr(sys, "argv", ["paired.py", *map(str, given), f"One={tmp_path}/one", f"Two={tmp_path}/two"])
    paired.main()
    row = json.loads(output.read_text())
    assert (row["unit"], row["units"], row["difference"]) == (unit, units, 100.0)
