import pytest

from wingspan.text import Document, Entity, Span, join_words, without_gold

SENTENCES = [
    # given words, with | between them, and the text that they make
    ("U.S.|and|Japan", "U.S. and Japan"),
    ("口|腔|溃|疡|很|痛|。", "口腔溃疡很痛。"),
    ("口腔|溃疡|，|T|细胞", "口腔溃疡，T细胞"),
    ("2|0|1|9|年|C|T", "2019年CT"),  # cut into characters
    ("在|New|York|写|了|3|行", "在New York写了3行"),
    ("口腔|CT", "口腔CT"),  # as much of one script as of the other
    ("他|说|“|好|”|。", "他说“好”。"),
    ("The|word|中|means|middle", "The word 中 means middle"),  # mostly another script
    ("東京|は|ラーメン|の|街", "東京はラーメンの街"),
    ("บริษัท|ใน|ปี|2562|Google", "บริษัทในปี 2562 Google"),  # Thai has blanks around other scripts
    ("မြန်မာ|နိုင်ငံ", "မြန်မာနိုင်ငံ"),
    ("서울|은|大韓民國|의|수도", "서울 은 大韓民國 의 수도"),
    ("", ""),
]


@pytest.mark.parametrize(("given", "text"), SENTENCES)
def test_words_are_joined_by_script(given: str, text: str) -> None:
    words = tuple(given.split("|")) if given else ()
    document = Document.from_words("d", words)
    assert join_words(words) == document.text == text
    assert tuple(document.text[start:end] for start, end in document.words or ()) == words


def test_entities_follow_the_words() -> None:
    document = Document.from_words("d", ("口", "腔", "溃", "疡", "痛"), (Entity.at("DIS", 0, 4),))
    assert document.entities == (Entity.at("DIS", 0, 4),)
    assert document.text_of(document.entities[0]) == "口腔溃疡"


def test_an_entity_ends_where_its_furthest_fragment_does() -> None:
    entity = Entity("DIS", (Span(4, 6), Span(0, 10)))
    assert (entity.start, entity.end, entity.hull) == (0, 10, Span(0, 10))


def test_a_document_without_gold_keeps_its_layout_and_no_relation() -> None:
    meta = {
        "pubtator": {"passages": [["t", 5]], "relations": [["Cause", "C1", "D1"]]},
        "bioc": {"passages": [{"offset": 0, "relations": [{"id": "R1"}]}]},
        "relations": [[0, 1]],
        "source": "ward 3",
    }
    bare = without_gold(Document("d", "Fever", (Entity.at("DIS", 0, 5),), meta=meta))
    assert bare.entities == ()
    assert bare.meta == {
        "pubtator": {"passages": [["t", 5]]},
        "bioc": {"passages": [{"offset": 0}]},
        "source": "ward 3",
    }
