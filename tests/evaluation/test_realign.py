"""Predictions from elsewhere: other tokens, other rows, another order, and what is said when they do not fit."""

import os
import random
from pathlib import Path

import pytest

from wingspan.cli import score as run
from wingspan.cli.compare import compare
from wingspan.corpora.formats import read, write
from wingspan.evaluation.matching import realign
from wingspan.evaluation.scores import recognition
from wingspan.report.blocks import Subject
from wingspan.text import Document, Entity, Span

FIRST = "Familial breast cancer (BRCA1)  runs in\nfamilies. It's rare."
SECOND = "TNF-alpha\tis up."


def at(label, text, surface):
    start = text.index(surface)
    return Entity.at(label, start, start + len(surface))


GOLD = [
    Document("one", FIRST, (at("Disease", FIRST, "breast cancer"), at("Gene", FIRST, "BRCA1"))),
    Document("two", SECOND, (at("Gene", SECOND, "TNF-alpha"),)),
]
ROWS = [
    Document.from_words(
        "p-1",
        tuple(["Familial", "breast", "cancer", "(", "BRCA1", ")", "runs", "in", "families", "."]),
        (Entity.at("Disease", 0, 3), Entity.at("Gene", 4, 5)),
    ),
    Document.from_words("p-2", tuple(["It", "'s", "rare", "."])),
    Document.from_words("p-3", tuple(["TNF", "-", "alpha", "is", "up", "."]), (Entity("Gene", (Span(0, 3),), 0.7),)),
]


def surfaces(documents):
    return [[(e.label, d.text_of(e)) for e in d.entities] for d in documents]


def test_rows_of_other_words_are_put_onto_the_gold_text():
    placed = realign(GOLD, ROWS)
    assert [d.text for d in placed.documents] == [FIRST, SECOND]
    assert surfaces(placed.documents) == [
        [("Disease", "Familial breast cancer"), ("Gene", "BRCA1")],
        [("Gene", "TNF-alpha")],
    ]
    assert placed.documents[1].entities[0].score == 0.7
    assert placed.notes == (
        "the predictions (3 rows) were put onto the texts of 2 gold documents by their characters, white space aside",
    )
    micro = recognition(GOLD, placed.documents).micro
    assert (micro.tp, micro.fp, micro.fn) == (2, 1, 1)


def test_documents_may_come_in_another_order_and_some_may_be_missing():
    placed = realign(GOLD, [ROWS[2], *ROWS[:2]])
    assert recognition(GOLD, placed.documents).micro.tp == 2
    part = realign(GOLD, ROWS[2:]).documents
    assert [d.id for d in part] == ["two"]
    assert recognition(GOLD, part, allow_missing=True).micro.tp == 1
    with pytest.raises(ValueError, match=r"1 gold documents have no predicted counterpart of the same id \('one'\)"):
        recognition(GOLD, part)


def test_whole_documents_against_a_gold_of_sentences():
    found = [Document("whole", FIRST, (at("Gene", FIRST, "BRCA1"), at("X", FIRST, "It's")))]
    placed = realign(ROWS[:2], found)
    assert surfaces(placed.documents) == [[("Gene", "BRCA1")], [("X", "It 's")]]
    across = [Document("whole", FIRST, (at("X", FIRST, "families. It's"),))]
    with pytest.raises(ValueError, match="'X' at 40-54 goes beyond the end of the gold document 'p-1'"):
        realign(ROWS[:2], across)


def test_same_texts_are_left_alone_and_ids_come_first():
    same = [Document(d.id, d.text) for d in reversed(GOLD)]
    assert realign(GOLD, same) == (same, ())
    by_position = [Document(f"x{n}", d.text) for n, d in enumerate(GOLD)]
    assert realign(GOLD, by_position) == (by_position, ())
    spaced = [Document("two", "TNF -alpha is up.", (Entity.at("Gene", 0, 10),)), Document("one", FIRST)]
    assert surfaces(realign(GOLD, spaced).documents) == [[("Gene", "TNF-alpha")], []]
    assert realign(GOLD, []) == ([], ())


def test_equal_texts_are_told_apart_by_their_order():
    gold = [Document(name, "No change .") for name in "abc"]
    found = [Document.from_words(f"{n}", ("No", "change."), (Entity.at(f"{n}", 0, 1),)) for n in range(3)]
    placed = realign(gold, found).documents
    assert [(d.id, d.entities[0].label) for d in placed] == [("a", "0"), ("b", "1"), ("c", "2")]


def test_a_document_that_begins_another_one():
    gold = [Document("short", "A cat"), Document("long", "A cat sat"), Document("empty", " ")]
    found = [Document.from_words(str(n), tuple(text.split())) for n, text in enumerate(["A cat", "sat", "A cat"])]
    assert [d.id for d in realign(gold[1::-1], found).documents] == ["long", "short"]
    assert {d.id for d in realign([gold[0], gold[2]], found[:1]).documents} == {"short", "empty"}


def test_brackets_and_quotes_of_the_treebank():
    gold = [Document("g", 'He said "no" (twice).', (Entity.at("X", 13, 20),))]
    words = tuple(["He", "said", "``", "no", "''", "-LRB-", "twice", "-RRB-", "."])
    found = [Document.from_words("f-1", words[:5]), Document.from_words("f-2", words[5:], (Entity.at("X", 0, 3),))]
    assert surfaces(realign(gold, found).documents) == [[("X", "(twice)")]]


def test_what_does_not_fit_is_said_in_one_sentence():
    other = [ROWS[0], Document.from_words("p-2", ("It", "is", "rare", ".")), ROWS[2]]
    with pytest.raises(ValueError, match="fit no gold document") as raised:
        realign(GOLD, other)
    said = str(raised.value)
    assert "'amilies.Itisrare.TNF' in predicted document 'p-2'" in said
    assert "\"amilies.It'srare.\" in gold document 'one'" in said
    with pytest.raises(ValueError, match="predicted document 'z' reads 'more', as no gold does"):
        realign(GOLD, [*ROWS, Document("z", "more")])
    blank = [Document.from_words("b", ("It", "'s", "rare", "."), ()), Document("c", "x y", (Entity.at("X", 1, 2),))]
    with pytest.raises(ValueError, match="holds nothing but white space; remove it"):
        realign([Document("g", "It's rare. xy")], blank)
    named = [Document("one", "Other words"), Document("two", SECOND)]
    assert realign(GOLD, named) == (named, ())  # they have names: `pair` says which document differs
    with pytest.raises(ValueError, match="document 'one': the two texts differ"):
        recognition(GOLD, named)


def cut(rng, text):
    """The words of another tokenizer: white space gone, cuts anywhere."""
    squeezed = "".join(text.split())
    places = sorted({0, len(squeezed), *(rng.randint(0, len(squeezed)) for _ in range(len(squeezed) // 3))})
    return [squeezed[a:b] for a, b in zip(places, places[1:], strict=False)]


def test_random_texts_come_back_exactly():
    rng = random.Random("placing")
    for _ in range(300):
        gold, rows = [], []
        for number in range(rng.randint(1, 5)):
            text = "".join(rng.choice("ab \n\u00a0ß🙂") for _ in range(rng.randint(1, 30))) + rng.choice("xyz")
            visible = [at for at, sign in enumerate(text) if not sign.isspace()]
            entities = []
            for _ in range(rng.randint(0, 3)):
                a, b = sorted(rng.sample(range(len(visible) + 1), 2))
                entities.append(Entity.at(rng.choice("XY"), visible[a], visible[b - 1] + 1))
            gold.append(Document(f"g{number}", text, tuple(set(entities))))
            words = cut(rng, text)
            spaced = Document.from_words(f"f{number}", tuple(words))
            where = [at for at, sign in enumerate(spaced.text) if not sign.isspace()]
            rank = {at: n for n, at in enumerate(visible)}
            moved = tuple(
                Entity.at(e.label, where[rank[e.start]], where[rank[e.end - 1]] + 1) for e in gold[-1].entities
            )
            rows.append(Document(f"f{number}", spaced.text, moved))
        placed = realign(gold, rows).documents
        by_content = sorted(placed, key=lambda d: (d.text, d.entities))
        assert [(d.text, d.entities) for d in by_content] == sorted((d.text, d.entities) for d in gold)


@pytest.mark.parametrize("mark", [False, True])
def test_a_column_file_against_a_brat_folder(tmp_path, mark):
    """What another tagger hands over, from the shell's side."""
    write(GOLD, tmp_path / "gold", "brat")
    groups = ["A", "A", "B"] if mark else [None] * 3
    lines = []
    group = None
    for row, name in zip(ROWS, groups, strict=True):
        if name != group:
            lines += [f"-DOCSTART- ({name})", ""]
            group = name
        tags = ["O"] * len(row.words)
        for entity in row.entities:
            inside = [n for n, word in enumerate(row.words) if entity.start <= word.start < entity.end]
            for n in inside:
                tags[n] = f"{'B' if n == inside[0] else 'I'}-{entity.label}"
        lines += [f"{row.text[s:e]}\t{tag}" for (s, e), tag in zip(row.words, tags, strict=True)] + [""]
    (tmp_path / "tagger.conll").write_text("\n".join(lines), encoding="utf-8")
    (scores,) = run.score(tmp_path / "gold", tmp_path / "tagger.conll")
    assert (scores.micro.tp, scores.micro.fp, scores.micro.fn) == (2, 1, 1)
    assert "white space aside" in scores.notes[0]
    assert run.score(tmp_path / "gold", tmp_path / "tagger.conll", mode="lenient")[0].micro.f1 == 100
    write(GOLD, tmp_path / "right.jsonl")
    compared = compare(tmp_path / "gold", [str(tmp_path / "tagger.conll"), str(tmp_path / "right.jsonl")], samples=20)
    assert [round(system.rows.micro.f1.value, 2) for system in compared.systems] == [66.67, 100]
    assert compared.notes[0].startswith("tagger: the predictions (3 rows) were put onto")


@pytest.mark.skipif("WINGSPAN_DATA" not in os.environ, reason="WINGSPAN_DATA names no folder with corpora")
def test_sentences_of_another_conversion_against_whole_abstracts():
    """BC5CDR as 500 abstracts, and as 4,797 rows of words that others made: 5 mentions have other boundaries there."""
    folder = Path(os.environ["WINGSPAN_DATA"]) / "bc5cdr"
    gold, rows = list(read(next(folder.glob("test.text.jsonl*")))), list(read(next(folder.glob("test.jsonl*"))))
    placed = realign(gold, rows).documents
    micro = recognition(gold, placed).micro
    assert (len(placed), micro.gold, micro.fn, micro.fp) == (500, 9809, 5, 5)


def test_reports_take_them_too():
    subject = Subject.of(GOLD, {"tagger": [ROWS]})
    assert [d.text for d in subject.predicted("tagger")] == [FIRST, SECOND]
    assert recognition(GOLD, subject.predicted("tagger")).micro.tp == 2
