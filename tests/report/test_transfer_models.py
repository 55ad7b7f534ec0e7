"""Models for the transfer matrix: the block that is asked is that of the corpus the model stands for."""

import pytest
from several import two_corpora

import wingspan
from trainings import tiny, train_documents
from wingspan.cli.analyze import block_of


def test_a_model_of_several_corpora_answers_as_the_one_it_stands_for():
    plan = two_corpora(3)
    model = wingspan.train(tiny("baseline"), corpora=plan, device="cpu")
    assert [block_of(model, corpus.name, corpus.labels) for corpus in plan.corpora] == ["drugs", "genes"]


def test_a_model_of_one_corpus_has_one_answer_and_must_know_a_label():
    model = wingspan.train(tiny("baseline"), train=train_documents(4), device="cpu")
    known = model.labels.types["main"]
    assert block_of(model, "genes", known[:1]) is None
    with pytest.raises(ValueError, match="--transfer genes=...: this model knows none of the labels of 'genes' .Cell"):
        block_of(model, "genes", ("Cell", "Organ"))
