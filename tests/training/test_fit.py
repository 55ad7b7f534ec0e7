"""What a training makes of its documents before the first step: sentences and coverage, in one segmentation."""

from collections import Counter
from dataclasses import replace

import pytest
from covered import measure_coverage

from trainings import dev_documents, tiny, train_documents
from wingspan.corpora import segment
from wingspan.corpora.fragments import arranged
from wingspan.corpora.segment import Segmenting, segment_all
from wingspan.corpora.words import SPLITTERS
from wingspan.text import Document, Entity, Span
from wingspan.training.fit import count_coverage, coverage_of, cut_documents, fit

ODD = (
    Document("within", "It bit S. aureus today. Then it left.", (Entity.at("Bug", 7, 16),)),
    Document(
        "across", "We saw it. The BRCA1 gene. Later it left.", (Entity.at("Odd", 7, 20), Entity.at("Gene", 15, 20))
    ),
    Document("inside a word", "We saw dogs here. It left.", (Entity.at("Dog", 7, 10),)),
    Document("in two", "Left and right lungs. Both.", (Entity("Part", (Span(0, 4), Span(15, 20))),)),
    Document("long", " ".join(f"word{n}" for n in range(40)), (Entity.at("Gene", 0, 5),)),
    Document.from_words("words", ("A", "big", "dog", "."), (Entity.at("Dog", 1, 3),)),
)


@pytest.fixture
def split(monkeypatch):
    """How often each text is split into words."""
    counts = Counter()
    whole = SPLITTERS["words"]

    def counting(text):
        counts.update(text.split("\n"))  # texts are split together
        return whole(text)

    for name in ("auto", "words"):
        monkeypatch.setitem(segment.SPLITTERS, name, counting)
    return counts


@pytest.mark.parametrize("name", ["baseline", "bundling/seq", "typed_spans"])
def test_every_document_is_split_into_words_once(name, split):
    train, dev = train_documents(6), dev_documents(2)
    fitted = fit(tiny(name), train, dev)
    assert fitted.coverage.total == sum(len(document.entities) for document in train)
    assert split == Counter(line for document in (*train, *dev) for line in document.text.split("\n"))


@pytest.mark.parametrize("misaligned", ["expand", "contract", "drop"])
@pytest.mark.parametrize("fragments", ["drop", "split", "hull"])
@pytest.mark.parametrize("context", ["sentence", "document"])
def test_one_segmentation_gives_the_sentences_of_training_and_of_prediction(misaligned, fragments, context):
    documents = (*ODD, *train_documents(4))
    recipe = tiny("baseline")
    cut = Segmenting(max_length=12, overlap=3, misaligned=misaligned, context=context)
    recipe = replace(recipe, segments=cut, joining=replace(recipe.joining, fragments=fragments))
    recipe = replace(recipe, max_width=4, overlap="any")
    encoder = recipe.encoder()
    found = cut_documents(recipe, encoder, documents)
    assert found.training == list(segment_all(arranged(documents, fragments), cut, encoder.tokenize.table))
    counted = count_coverage(found.census, found.prediction, recipe, encoder.tokenize)
    assert counted == coverage_of(recipe, encoder.tokenize, documents)
    assert counted.lost["cut"] >= 1  # the entity across two sentences
    limits = {"max_width": 4, "overlap": "any", "tables": encoder.tokenize.table}
    assert counted == measure_coverage(documents, cut, **limits, one_label_per_span=True)


def test_a_document_that_prediction_cuts_is_cut_again_for_training(split):
    recipe = replace(tiny("baseline"), max_width=4, overlap="any")
    cut_documents(recipe, recipe.encoder(), ODD)
    twice = {document.id for document in ODD if split[document.text] == 2}
    assert twice == {"across", "inside a word"}
