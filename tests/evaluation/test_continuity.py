import json

import pytest

from wingspan.cli import score as run
from wingspan.corpora.formats import write
from wingspan.evaluation.matching import SentenceIndex
from wingspan.evaluation.scores import (
    by_continuity,
    continuous_entities,
    discontinuous_sentences,
    recognition,
)
from wingspan.report import from_documents
from wingspan.report.blocks import Subject
from wingspan.text import Document, Entity, Span

TEXT = "He had muscle pain and fatigue. The fever was high. Pain in arms and legs."
#       0123456789...


def at(text: str, after: int = 0) -> Span:
    start = TEXT.index(text, after)
    return Span(start, start + len(text))


def finding(*texts: str, after: int = 0) -> Entity:
    return Entity("Finding", tuple(at(text, after) for text in texts))


PAIN, FATIGUE, FEVER = finding("muscle pain"), finding("muscle", "fatigue"), finding("fever")
ARMS, LEGS = finding("Pain in arms"), finding("Pain in", "legs", after=50)
GOLD = [
    Document("1", TEXT, (PAIN, FATIGUE, FEVER, ARMS, LEGS)),
    Document("2", "No fever.", (Entity.at("Finding", 3, 8),)),
]
# found: the pain, a fatigue without its muscle, the fever with too much, both of the arms and legs, one more fragmented
FOUND = [
    Document("1", TEXT, (PAIN, finding("fatigue"), finding("fever was"), ARMS, LEGS, finding("had", "pain"))),
    Document("2", "No fever.", ()),
]


def test_counts_by_hand():
    parts = by_continuity(GOLD, FOUND)
    counts = {name: (part.correct, part.found, part.gold) for name, part in parts.items()}
    assert counts == {
        "discontinuous": (1, 2, 2),  # the legs; the fatigue is missed, "had ... pain" is none
        "continuous": (2, 4, 4),  # pain and arms of pain, fever, arms, and the fever of document 2
        "sentences": (3, 5, 4),  # without the second sentence and without document 2
        # gold: muscle pain, muscle, fatigue, fever, Pain in arms, Pain in, legs, fever; found: muscle pain, fatigue,
        # fever was, Pain in arms, Pain in, legs, had, pain; both: muscle pain, fatigue, Pain in arms, Pain in, legs
        "fragments": (5, 8, 8),
    }
    assert parts["sentences"].f1 == pytest.approx(100 * 2 * 3 / (5 + 4))


def test_nothing_is_said_where_nothing_is_discontinuous():
    plain = [Document("1", TEXT, (PAIN,))]
    assert by_continuity(plain, plain) == {}
    assert "continuity" not in recognition(plain, plain).to_dict()
    assert by_continuity(plain, FOUND[:1])["discontinuous"].spurious == 2


def sentence_starts(document: Document) -> list[int]:
    index = SentenceIndex(document)
    return [index.characters(number).start for number in range(len(index.sentences))]


def test_sentences_are_the_documents_own_or_by_rules_and_a_row_of_words_is_one():
    assert sentence_starts(GOLD[0]) == [0, 32, 52]
    own = Document("1", TEXT, sentences=(Span(0, 51), Span(52, len(TEXT))))
    assert sentence_starts(own) == [0, 52]
    assert sentence_starts(Document.from_words("1", ("Pain", ".", "Fever", "."))) == [0]
    wanted, given = discontinuous_sentences(GOLD, FOUND)
    assert [document.id for document in wanted] == [document.id for document in given] == ["1"]
    assert FEVER not in wanted[0].entities
    assert len(given[0].entities) == 5


def test_continuous_entities_of_both_sides():
    assert [len(document.entities) for document in continuous_entities(GOLD)] == [3, 1]


@pytest.fixture
def files(tmp_path):
    for name, documents in (("gold", GOLD), ("found", FOUND)):
        write(documents, tmp_path / f"{name}.jsonl")
    return tmp_path / "gold.jsonl", tmp_path / "found.jsonl"


def test_the_command_has_a_table_and_keys(files, tmp_path, capsys):
    run.score(*files, json=tmp_path / "figures.json")
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert {name: part["tp"] for name, part in figures["continuity"].items()} == {
        "discontinuous": 1,
        "continuous": 2,
        "sentences": 3,
        "fragments": 5,
    }
    printed = capsys.readouterr().out
    assert "discontinuous entities, whole" in printed
    assert "sentences with a discontinuous entity" in printed
    (subset,) = run.score(*files, subset="discontinuous-sentences")
    assert (subset.micro.correct, subset.micro.found, subset.micro.gold) == (3, 5, 4)
    assert "continuity" not in subset.to_dict()


def test_the_report_has_a_table():
    chapters = from_documents(Subject.of(GOLD, {"ours": [FOUND]}))
    table = next(block for block in chapters[0].blocks if getattr(block, "name", "") == "continuity")
    assert [row[0] for row in table.rows][0] == "discontinuous entities, whole"
    assert table.rows[0][1:] == (50.0, 50.0, 50.0, 1, 1, 1)
    plain = [Document("1", TEXT, (PAIN,))]
    chapters = from_documents(Subject.of(plain, {"ours": [plain]}))
    assert not [block for block in chapters[0].blocks if getattr(block, "name", "") == "continuity"]
