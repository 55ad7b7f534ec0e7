"""The generated corpus keeps what the demo promises about it."""

import hashlib
from collections import Counter

from coverages import measure_coverage

from wingspan.corpora.coverage import auto_overlap, auto_width
from wingspan.corpora.demo import corpus, memorizer
from wingspan.corpora.segment import Segmenting, place, segment
from wingspan.corpora.words import split_words
from wingspan.evaluation.scores import recognition
from wingspan.text import Document, Entity, Span

TRAIN, DEV, TEST = corpus()
EVERYTHING = (*TRAIN, *DEV, *TEST)


def mentions(documents: tuple[Document, ...]) -> list[str]:
    return [document.text_of(entity).casefold() for document in documents for entity in document.entities]


def test_always_the_same() -> None:
    corpus.cache_clear()
    assert corpus() == (TRAIN, DEV, TEST)
    digest = hashlib.sha256("".join(document.text for document in EVERYTHING).encode()).hexdigest()
    assert digest.startswith("c5fe29be5cc3d3d1"), "the demo's figures in the README belong to another corpus"


def test_size_and_types() -> None:
    assert 12_000 <= sum(len(split_words(document.text)) for document in EVERYTHING) <= 18_000
    assert len({document.id for document in EVERYTHING}) == len({document.text for document in EVERYTHING})
    for part in (TRAIN, DEV, TEST):
        labels = Counter(entity.label for document in part for entity in document.entities)
        assert set(labels) == {"Disease", "Chemical", "Gene", "Organism", "Anatomy"}
        assert min(labels.values()) >= 0.08 * labels.total()
    assert all(document.words is None and document.sentences is None for document in EVERYTHING)


def test_nested_and_some_discontinuous() -> None:
    entities = [(d, e) for d in EVERYTHING for e in d.entities]
    nested = sum(
        any(o is not e and o.hull.contains(e.hull) and o.hull != e.hull for o in d.entities) for d, e in entities
    )
    discontinuous = sum(e.discontinuous for _, e in entities)
    assert 0.1 <= nested / len(entities) <= 0.5
    assert 0.005 <= discontinuous / len(entities) <= 0.02
    assert any(e.discontinuous for d in TEST for e in d.entities)
    assert auto_overlap([s for d in EVERYTHING for s in segment(d, Segmenting())]) == "nested"


def test_half_of_the_held_out_names_are_new() -> None:
    known = set(mentions(TRAIN))
    for part in (DEV, TEST):
        names = mentions(part)
        assert sum(name not in known for name in names) >= 0.5 * len(names)


def test_a_dictionary_does_not_solve_it() -> None:
    predict = memorizer(TRAIN)
    bare = [Document(d.id, d.text) for d in TEST]
    assert 25 < recognition(list(TEST), [predict(d) for d in bare]).micro.f1 < 60
    assert recognition(list(TRAIN), [predict(d) for d in TRAIN]).micro.f1 > 95  # it does know its own names


def test_the_whole_chain_loses_discontinuous_names_and_the_widest_only() -> None:
    sentences = [s for d in EVERYTHING for s in segment(d, Segmenting(misaligned="error"), gold=False)]
    width = auto_width(sentences)
    assert width <= 8
    found = measure_coverage(EVERYTHING, Segmenting(), max_width=width)
    assert set(found.lost) == {"discontinuous", "too_wide"}
    assert found.percent > 97
    for document in TEST:
        back = [e for s in segment(document, Segmenting()) for e in place(s, s.entities)]
        assert sorted(back, key=lambda e: (e.spans, e.label)) == list(document.entities)


def test_the_memorizer_takes_the_most_frequent_label_and_leaves_common_words_alone() -> None:
    train = [
        Document("1", "Xin cured lung pain. Xin again.", (Entity.at("B", 0, 3), Entity.at("A", 21, 24))),
        Document("2", "XIN in the lung, lung, lung", (Entity.at("A", 0, 3), Entity.at("P", 11, 15))),
    ]
    found = memorizer(train)(Document("3", "A xin lung"))
    assert found.entities == (Entity.at("A", 2, 5),)
    assert memorizer([])(Document("4", "Nothing known")).entities == ()


def test_the_memorizer_takes_the_words_of_the_document() -> None:
    words = ("The", "IL-2", "gene", "of", "T-cells")  # the splitter would make three words of IL-2
    train = Document.from_words("1", words, (Entity.at("Gene", 1, 3), Entity.at("Cell", 4, 5)))
    found = memorizer([train])(Document.from_words("2", ("T-cells", "and", "the", "IL-2", "gene")))
    assert [(found.text_of(entity), entity.label) for entity in found.entities] == [
        ("T-cells", "Cell"),
        ("IL-2 gene", "Gene"),
    ]


def test_the_memorizer_learns_a_name_that_ends_inside_of_a_word() -> None:
    train = Document("1", "aspirinlike", (Entity.at("Drug", 0, 7),), words=(Span(0, 11),))
    assert memorizer([train])(Document("2", "Aspirin")).entities == (Entity.at("Drug", 0, 7),)
