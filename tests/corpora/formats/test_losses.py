from collections import Counter
from typing import Any

from wingspan.corpora.formats import ALL, Format, Holds, conversion_loss
from wingspan.corpora.formats.conversion_loss import described, fit
from wingspan.text import Document, Entity, Span


def format_that(**holds: Any) -> Format:
    return Format("test", lambda path, problems: iter(()), None, Holds(**holds))


def test_a_format_that_holds_everything_changes_nothing() -> None:
    document = Document("d", "a b", (Entity("X", (Span(0, 1), Span(2, 3)), 0.5, {"k": 1}),), meta={"k": 1})
    assert fit(document, format_that(document_keys=ALL, entity_keys=ALL, scores=True)) == (document, Counter())


def test_fragments_become_entities_and_merge_where_equal() -> None:
    found = (Entity("X", (Span(0, 1), Span(4, 5))), Entity.at("X", 4, 5), Entity.at("Y", 2, 3))
    document, lost = fit(Document("d", "a b c", found), format_that(discontinuous=False))
    assert document.entities == (Entity.at("X", 0, 1), Entity.at("Y", 2, 3), Entity.at("X", 4, 5))
    assert lost == {conversion_loss.FRAGMENTS: 1, conversion_loss.MERGED: 1}


def test_entities_are_widened_to_words_and_counted() -> None:
    found = (Entity.at("X", 0, 2), Entity.at("Y", 4, 8), Entity.at("Z", 3, 4))
    document, lost = fit(Document("d", "Evas Oslo", found), format_that(documents_without_words=False))
    assert [(e.label, document.text_of(e)) for e in document.entities] == [("X", "Evas"), ("Z", "Evas"), ("Y", "Oslo")]
    assert document.words is None  # the writer makes them
    assert lost == {conversion_loss.WIDENED: 3}


def test_an_entity_on_white_space_has_no_word() -> None:
    document, lost = fit(
        Document("d", "a  b", (Entity.at("X", 1, 2),)), format_that(documents_without_words=False, exact_text=False)
    )
    assert document.entities == ()
    assert lost == {conversion_loss.WORDLESS: 1, conversion_loss.SPACES: 1}


def test_overlaps_and_second_labels() -> None:
    found = (Entity.at("A", 0, 1), Entity.at("B", 0, 1), Entity.at("C", 0, 3))
    nested = Document("d", "a b", found)
    document, lost = fit(nested, format_that(nested=False))
    assert (document.entities, lost) == ((found[2],), {conversion_loss.OVERLAPS: 2})
    document, lost = fit(Document("d", "a b", found[:2]), format_that(nested=False))
    assert (document.entities, lost) == ((found[0],), {conversion_loss.OVERLAPS: 1})


def test_fields_are_counted_by_name() -> None:
    document = Document(
        "d",
        "a",
        (Entity.at("X", 0, 1, 0.5), Entity("Y", (Span(0, 1),), meta={"concept": "C1"})),
        dataset="two",
        words=(Span(0, 1),),
        sentences=(Span(0, 1),),
        group="g",
        meta={"title": "t", "record_shape": "words"},
    )
    _, lost = fit(document, format_that(ids=False))
    assert lost == {
        conversion_loss.WORD_EDGES: 1,
        conversion_loss.SENTENCES: 1,
        conversion_loss.GROUPS: 1,
        conversion_loss.IDS: 1,
        conversion_loss.DATASETS: 1,
        conversion_loss.SCORES: 2,
        "'title' of {documents}": 1,
        "'concept' of {entities}": 1,
    }
    lost_concept = "'concept' of {entities}"
    assert lost_concept in fit(document, format_that(document_keys=ALL))[1]
    assert lost_concept not in fit(document, format_that(entity_keys=ALL))[1]
    assert lost_concept not in fit(document, format_that(entity_keys=frozenset({"concept"})))[1]
    assert conversion_loss.DATASETS not in fit(document, format_that(document_keys=ALL))[1]


def test_a_score_of_1_is_one_beside_others_only() -> None:
    certain, likely = Entity.at("X", 0, 1), Entity.at("X", 2, 3, 0.9)
    assert fit(Document("d", "a b", (certain, likely)), format_that())[1] == {conversion_loss.SCORES: 2}
    assert not fit(Document("d", "a b", (certain,)), format_that())[1]


def test_losses_are_told_with_their_numbers() -> None:
    lost = {conversion_loss.FRAGMENTS: 1, conversion_loss.MERGED: 2, conversion_loss.WORD_EDGES: 3250, "of mine": 4}
    pieces = "1 discontinuous entity (an entity is made of each fragment)"
    assert described(lost, of_entities=True) == f"2 entities equal to another one then (one of them stays), {pieces}"
    assert described(lost, of_entities=False) == "word boundaries of 3,250 documents, 4 of mine"
    assert described({conversion_loss.SPACES: 1}, of_entities=True) == ""
