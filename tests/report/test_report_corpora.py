"""The chapter on several corpora, from scores by hand."""

import pytest

from wingspan.evaluation.comparison import compare
from wingspan.evaluation.scores import recognition
from wingspan.report.scores import by_corpus, type_changes
from wingspan.text import Document, Entity


def test_a_corpus_whose_own_labels_the_model_does_not_know_is_in_the_table():
    gold = [Document("1", "aspirin", (Entity.at("Drug", 0, 7),))]
    right, missed = recognition(gold, gold), recognition(gold, [Document("1", "aspirin")])
    table = by_corpus({"drugs": right}, {"drugs": missed, "genes": right})
    assert table.rows == [("drugs", 100.0, 100.0, 100.0, 0.0), ("genes", None, None, None, 100.0)]


def test_the_effect_of_additions_by_hand():
    drug, gene = Entity.at("Drug", 0, 3), Entity.at("Gene", 4, 7)
    gold, nothing, half = ([Document("1", "abc def ghi", found)] for found in ((drug, gene), (), (drug,)))
    result = compare(gold, {"before": [nothing, half], "two": [half], "three": [gold, gold]}, samples=5)
    table = type_changes(result.systems)
    (one, *drugs), (other, *genes) = table.rows
    assert (one, other) == ("Drug", "Gene")
    assert drugs == pytest.approx([50, 50, 50])  # means over runs: 0 and 100
    assert genes == pytest.approx([0, 0, 100])
    ((name, *micro),) = table.totals
    assert name == "micro"
    assert micro == pytest.approx([100 / 3, 100 / 3, 200 / 3])
