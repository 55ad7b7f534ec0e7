import os
import tracemalloc
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import pytest
from copies import edited, invented_text

from wingspan.corpora import leaks
from wingspan.corpora.formats import read
from wingspan.corpora.leaks import find_leaks
from wingspan.corpora.leaks.index import NEAR, resemblance
from wingspan.corpora.split import split
from wingspan.corpora.words import bare, word_strings
from wingspan.text import Document, Entity

DATA = Path(os.environ["WINGSPAN_DATA"]) if "WINGSPAN_DATA" in os.environ else None
needs_data = pytest.mark.skipif(DATA is None, reason="WINGSPAN_DATA is not set")
AUXILIARY = ("bc5cdr", "bioid", "gnormplus", "linnaeus", "ncbi-disease", "nlmgene", "species800", "tmvar3")

ABSTRACT = (
    "Aspirin (ASA) lowered the fever of 12 patients. No headache was seen in any of them after seven days. "
    "We conclude that the remedy works at least as well as the one before."
)


def document(text: str, id: str = "1", *spans: tuple[int, int], label: str = "Drug", **others) -> Document:
    return Document(id, text, tuple(Entity.at(label, *span) for span in spans), **others)


def rows(text: str, group: str | None = None) -> list[Document]:
    """One row for each sentence, in words."""
    sentences = [sentence + "." for sentence in text.rstrip(".").split(". ")]
    return [
        Document.from_words(f"{group}-{at}", tuple(word_strings(one)), group=group) for at, one in enumerate(sentences)
    ]


def kinds(train, against) -> dict[str, int]:
    return find_leaks({"train": train}, {"test": against}).kinds


def test_equal_texts_are_exact_and_those_with_other_case_and_spaces_normalized():
    assert kinds([document(ABSTRACT)], [document(ABSTRACT, "x")]) == {"exact": 1, "normalized": 0, "near": 0}
    assert kinds([document(ABSTRACT.upper())], [document(ABSTRACT)]) == {"exact": 0, "normalized": 1, "near": 0}
    assert kinds([document(invented_text(1))], [document(invented_text(2))]) == {"exact": 0, "normalized": 0, "near": 0}


def test_rows_of_words_and_a_text_are_one_document_if_the_rows_share_a_group():
    for train, against in ((rows(ABSTRACT, "9"), [document(ABSTRACT)]), ([document(ABSTRACT)], rows(ABSTRACT, "9"))):
        found = find_leaks({"train": train}, {"test": against})
        assert (found.train_documents, found.against_documents, found.documents) == (1, 1, 1)
        assert found.rows == {"train": frozenset(range(len(train)))}
        assert found.sentences.equal == 0, "what a shared document explains is not told again"


def test_one_group_in_two_files_is_two_documents():
    twice = [*rows(ABSTRACT, "9"), *rows(invented_text(3), "8"), *rows(ABSTRACT, "9")]
    found = find_leaks({"train": twice}, {"test": [document(ABSTRACT)]})
    assert (found.train_documents, found.leaking) == (3, 2)
    assert len(found.rows["train"]) == 6


def test_rows_without_a_group_are_documents_and_what_they_make_up_together_is_told():
    found = find_leaks({"train": rows(ABSTRACT)}, {"test": [document(ABSTRACT, "7")]})
    assert (found.documents, found.rows) == (0, {})
    assert found.sentences.equal == found.sentences.of == 2, "the title is too short"
    assert kinds(rows(ABSTRACT), rows(ABSTRACT)) == {"exact": 2, "normalized": 0, "near": 0}
    whole = find_leaks({"train": rows(invented_text(5))}, {"test": [document(invented_text(5), "7")]})
    assert [one.id for one in whole.sentences.covered_documents] == ["7"]


def test_short_texts_mean_nothing():
    found = find_leaks({"train": [document("Methods :")]}, {"test": [document("METHODS"), document("Methods")]})
    assert (found.documents, found.short, found.rows, found.shared_ids) == (0, 1, {}, 0)


def test_an_id_alone_is_no_leak():
    found = find_leaks({"a": [document(ABSTRACT, "12")]}, {"b": [document(invented_text(1), "12")]})
    assert (found.documents, found.leaking, found.shared_ids) == (0, 0, 1)
    assert asdict(found.ids[0]) == {
        "kind": "id",
        "train": {"file": "a", "id": "12"},
        "against": {"file": "b", "id": "12"},
        "similarity": 0.0,
        "same_id": True,
    }


def test_a_sentence_in_another_document_is_told_and_drops_nothing():
    quoting = document(f"{invented_text(1)} {ABSTRACT.split('. ')[1]}. {invented_text(2)}", "q")
    found = find_leaks({"train": [quoting]}, {"test": [document(ABSTRACT)]})
    assert (found.documents, found.rows, found.sentences.equal, found.sentences.documents) == (0, {}, 1, 1)
    assert found.sentences.listed[0].text == "No headache was seen in any of them after seven days."
    assert found.sentences.covered_documents == []


def test_mentions_are_counted_where_training_annotates_the_same_place():
    sentence = ABSTRACT.split(". ")[1] + "."
    start = ABSTRACT.index("headache")
    gold = document(ABSTRACT, "1", (0, 7), (9, 12), (start, start + 8))
    words = Document.from_words("w", tuple(word_strings(ABSTRACT)), (Entity.at("Chemical", 0, 1),))
    found = find_leaks({"train": [words]}, {"test": [gold]}).mentions
    assert (found.of, found.in_leaking_documents, found.annotated_in_training) == (3, 3, 1)
    row = Document.from_words("w", tuple(word_strings(sentence)), (Entity.at("Symptom", 1, 2), Entity.at("X", 2, 3)))
    found = find_leaks({"train": [row]}, {"test": [gold]}).mentions
    assert (found.of, found.in_leaking_documents, found.annotated_in_training) == (3, 0, 1)


def test_many_copies_are_all_dropped_and_few_listed(monkeypatch):
    monkeypatch.setattr(leaks, "COPIES", 2)
    found = find_leaks(
        {"a": [document(ABSTRACT)] * 5, "b": [document(ABSTRACT.lower())]}, {"t": [document(ABSTRACT)] * 3}
    )
    assert found.documents == 3
    assert found.files == {
        "a": {"exact": 3, "normalized": 0, "near": 0},
        "b": {"exact": 0, "normalized": 3, "near": 0},
    }
    assert (found.leaking, len(found.pairs)) == (6, 9)
    assert found.rows == {"a": frozenset(range(5)), "b": frozenset({0})}


def test_training_documents_are_not_kept():
    """A stream of them takes the memory of one, however long it is."""
    against = [document(invented_text(999))]

    def most(number: int) -> int:
        tracemalloc.start()
        find_leaks({"train": (document(invented_text(seed), str(seed)) for seed in range(number))}, {"test": against})
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    most(30)  # fills caches
    few, many = most(30), most(300)
    assert many - few < 100 * len(invented_text(0))


def test_nearly_equal_texts_are_those_with_half_of_their_ngrams_in_common():
    """Against all pairs, one by one; most of them are close to the border."""
    draw = Random(4)
    texts = [invented_text(seed) for seed in range(20)]
    changed = [edited(text, draw, share) for text in texts for share in (0.02, 0.1, 0.11, 0.12, 0.13, 0.15, 0.4)]
    found = find_leaks(
        {"train": [document(text, str(at)) for at, text in enumerate(changed)]},
        {"test": [document(text, str(at)) for at, text in enumerate(texts)]},
    )
    wanted = {
        (str(at), str(other))
        for at, one in enumerate(changed)
        for other, two in enumerate(texts)
        if resemblance(bare(one), bare(two)) >= NEAR
    }
    assert {(pair.train.id, pair.against.id) for pair in found.near} == wanted
    assert 40 < len(wanted) < 120


def test_what_very_many_documents_share_is_no_reason_to_compare_them(monkeypatch):
    monkeypatch.setattr("wingspan.corpora.leaks.index.BOILERPLATE", 5)
    compared = []

    def counted(one: str, other: str) -> float:
        compared.append(one)
        return resemblance(one, other)

    monkeypatch.setattr("wingspan.corpora.leaks.index.resemblance", counted)
    texts = [f"{invented_text(99, 130)} {invented_text(seed, 120)}" for seed in range(10)]
    copies = [document(edited(text, Random(1)), str(at)) for at, text in enumerate(texts)]
    found = find_leaks({"train": copies}, {"test": [document(text, str(at)) for at, text in enumerate(texts)]})
    assert [(pair.train.id, pair.against.id) for pair in found.near] == [(str(at), str(at)) for at in range(10)]
    assert len(compared) == 10


def test_edited_copies_of_invented_texts_are_found_and_nothing_else():
    draw = Random(1)
    texts = [document(invented_text(seed), f"d{seed}") for seed in range(400)]
    copies = [replace(text, text=edited(text.text, draw)) for text in texts[:200]]
    found = find_leaks({"train": texts[100:]}, {"test": copies})
    assert {(pair.train.id, pair.against.id) for pair in found.near} == {(f"d{at}",) * 2 for at in range(100, 200)}
    assert found.documents == 0


def test_a_split_has_no_leaks():
    texts = [invented_text(seed, 30) for seed in range(30)]
    written = [*texts, *(text.upper() for text in texts), *(" ".join(word_strings(text)) for text in texts)]
    parts = split([document(text, str(at)) for at, text in enumerate(written)], {"train": 2, "dev": 1, "test": 1})
    found = find_leaks({"train": parts["train"]}, {name: parts[name] for name in ("dev", "test")})
    assert (found.documents, found.against_documents) == (0, len(parts["dev"]) + len(parts["test"]))


@needs_data
def test_the_auxiliary_corpora_hold_72_test_and_64_dev_documents_of_biored():
    """And the mentions in them, as counted from the PubTator files (systems.md, 5.F)."""
    files = [
        path for name in AUXILIARY for part in ("train", "dev") for path in DATA.glob(f"{name}/{part}.text.jsonl*")
    ]
    train = {str(path.relative_to(DATA)): list(read(path)) for path in files}
    for part, number, mentions, annotated in (("test", 72, 2600, 1840), ("dev", 64, 2190, 1455)):
        found = find_leaks(train, {part: read(DATA / "biored" / f"{part}.text.jsonl")})
        assert (found.documents, found.kinds["near"], found.against_documents) == (number, 0, 100)
        assert (found.mentions.in_leaking_documents, found.mentions.annotated_in_training) == (mentions, annotated)
        if part == "test":
            by_corpus = {name: 0 for name in AUXILIARY}
            for file, counts in found.files.items():
                by_corpus[file.split("/")[0]] += sum(counts.values())
            assert {name: count for name, count in by_corpus.items() if count} == {
                "tmvar3": 24,
                "bc5cdr": 21,
                "nlmgene": 21,
                "gnormplus": 5,
                "ncbi-disease": 1,
            }


@needs_data
def test_edited_abstracts_are_found_and_nothing_unrelated():
    draw = Random(2)
    abstracts = list(read(DATA / "biored" / "train.text.jsonl.gz"))
    copies = [replace(one, text=edited(one.text, draw), entities=()) for one in abstracts[:200]]
    found = find_leaks({"train": abstracts}, {"test": copies})
    assert {pair.train.id == pair.against.id for pair in found.near} == {True}
    assert found.kinds["near"] >= 190
