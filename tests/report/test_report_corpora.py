"""The chapter on several corpora, from scores by hand."""

from wingspan.evaluation.scores import recognition
from wingspan.report.scores import by_corpus
from wingspan.text import Document, Entity


def test_a_corpus_whose_own_labels_the_model_does_not_know_is_in_the_table():
    gold = [Document("1", "aspirin", (Entity.at("Drug", 0, 7),))]
    right, missed = recognition(gold, gold), recognition(gold, [Document("1", "aspirin")])
    table = by_corpus({"drugs": right}, {"drugs": missed, "genes": right})
    assert table.rows == [("drugs", 100.0, 100.0, 100.0, 0.0), ("genes", None, None, None, 100.0)]
