"""Perturbed documents keep every annotation exactly, whatever the text, nested and discontinuous entities included."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wingspan.corpora.demo import corpus
from wingspan.corpora.perturb import PERTURBATIONS, Edit, edited, perturb
from wingspan.corpora.words import split_words
from wingspan.text import Document, Entity, Span

# letters of several scripts, some whose case has another length, marks, emoji, spaces and signs
ALPHABET = "abcdeimnrlOIS185ßİŉﬁÄΣσжя漢क्\u0301🙂👩\u200d  \n\t.,;-–()'\"/+ rn cl fi "


@st.composite
def documents(draw, alphabet=ALPHABET):
    text = draw(st.text(alphabet, min_size=1, max_size=40))
    ends = st.integers(0, len(text))
    entities = []
    for _ in range(draw(st.integers(0, 5))):
        spans = [tuple(sorted(draw(st.tuples(ends, ends)))) for _ in range(draw(st.integers(1, 2)))]
        spans = [Span(*span) for span in spans if span[0] < span[1]]
        if spans:
            entities.append(Entity(draw(st.sampled_from("XY")), tuple(spans)))
    words = draw(st.sampled_from([None, split_words(text)]))
    cut = draw(ends)
    sentences = draw(st.sampled_from([None, (Span(0, cut), Span(cut, len(text)))]))
    name = draw(st.sampled_from("ab"))
    return Document(name, text, tuple(dict.fromkeys(entities)), words=words, sentences=sentences)


def by_hand(document, edits):
    """Edits applied from the right, one at a time; borders move by the edits that lie before them."""
    text, borders = document.text, [(s, e) for entity in document.entities for s, e in entity.spans]
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
        grown = len(new) - (end - start)
        borders = [(s + grown * (end <= s), e + grown * (end <= e and not start == end == e)) for s, e in borders]
    return text, borders


@st.composite
def edit_lists(draw, size):
    places = sorted(draw(st.lists(st.integers(0, size), max_size=12, unique=True)))
    found, done = [], -1
    for start, end in zip(places, places[1:], strict=False):
        if start >= done and draw(st.booleans()):
            end = start if draw(st.booleans()) else end
            found.append(Edit(start, end, draw(st.text("XY \n", max_size=3))))
            done = max(end, start + 1)
    return found


def makes_sense(document, edit):
    """The rule of `edited`, character by character."""
    for entity in document.entities:
        for s, e in entity.spans:
            touched = [at for at in range(edit.start, edit.end) if s <= at < e]
            outside = [at for at in range(edit.start, edit.end) if not s <= at < e]
            if touched and outside:
                return False
            if touched and not edit.text.strip() and {s, e - 1} & set(touched):
                return False
    return True


@given(st.data())
@settings(max_examples=400)
def test_edits_against_doing_it_by_hand(data):
    document = data.draw(documents())
    edits = data.draw(edit_lists(len(document.text)))
    after = edited(document, edits)
    text, borders = by_hand(document, [edit for edit in edits if makes_sense(document, edit)])
    assert after.text == text
    moved, expected = iter(borders), []
    for entity in document.entities:
        expected.append(Entity(entity.label, tuple(Span(*next(moved)) for _ in entity.spans)))
    assert sorted(after.entities, key=repr) == sorted(expected, key=repr)
    assert len(set(after.entities)) == len(set(document.entities))


def check_annotations(before, after):
    assert (after.id, after.dataset, after.group) == (before.id, before.dataset, before.group)
    assert sorted(e.label for e in after.entities) == sorted(e.label for e in before.entities)
    assert sorted(len(e.spans) for e in after.entities) == sorted(len(e.spans) for e in before.entities)
    assert len(set(after.entities)) == len(set(before.entities))
    assert all(0 <= s < e <= len(after.text) for entity in after.entities for s, e in entity.spans)
    if after.sentences is not None:
        borders = [border for sentence in after.sentences for border in sentence]
        assert borders == sorted(borders)
        assert borders[-1] == len(after.text)
    if after.words is not None:
        assert all(a.end <= b.start for a, b in zip(after.words, after.words[1:], strict=False))
        parts = [after.text[s:e] for s, e in after.words]
        assert "".join(parts) == "".join(after.text.split())  # every visible character is in one word, no other is
        assert not any(sign.isspace() for part in parts for sign in part)


@pytest.mark.parametrize("name", PERTURBATIONS)
@given(st.lists(documents(), min_size=1, max_size=3), st.integers(0, 3))
@settings(max_examples=80)
def test_no_annotation_is_lost_or_shifted(name, before, seed):
    after = perturb(before, name, seed)
    assert after == perturb(before, name, seed)
    for one, other in zip(before, after, strict=True):
        check_annotations(one, other)


@given(documents())
@settings(max_examples=200)
def test_case_changes_every_surface_character_by_character(document):
    for name, change in (("lower_case", str.lower), ("upper_case", str.upper)):
        (after,) = perturb([document], name)
        assert after.text == "".join(map(change, document.text))
        before = sorted("".join(map(change, document.text_of(e))) for e in document.entities)
        assert sorted(after.text_of(e) for e in after.entities) == before


@given(documents())
@example(Document("1", "11İﬁΣ", (Entity.at("X", 0, 5),)))  # case mappings that change lengths or look at neighbors
@example(Document("1", "ßﬁΣΣ İİİİ", (Entity.at("X", 0, 9),)))
@settings(max_examples=200)
def test_what_does_not_move_does_not_move(document):
    for name in ("line_breaks", "unseen_entities"):
        (after,) = perturb([document], name)
        assert after.entities == document.entities
        assert len(after.text) == len(document.text)
    (after,) = perturb([document], "line_breaks")
    assert after.text.replace("\n", " ") == document.text.replace("\n", " ")
    (after,) = perturb([document], "unseen_entities")
    inside = {at for entity in document.entities for span in entity.spans for at in range(*span)}
    assert all(a == b for at, (a, b) in enumerate(zip(document.text, after.text, strict=True)) if at not in inside)


def test_the_rules_of_edits_by_hand():
    text = "the severe chest pain"
    gold = (Entity.at("Sign", 4, 21), Entity("Sign", (Span(4, 10), Span(17, 21))), Entity.at("Part", 11, 16))
    document = Document("1", text, gold, words=split_words(text), sentences=(Span(0, 21),), meta={"brat": [], "k": 1})
    edits = [
        Edit(4, 4, "("),  # before the entities that start there
        Edit(10, 11, " very "),  # inside the widest one only
        Edit(15, 16, "sts"),  # the end of chest
        Edit(16, 17, ""),  # between chest and pain: white space goes
        Edit(21, 21, ")."),  # after those that end there
        Edit(2, 3, ""),
    ]
    after = edited(document, edits)
    assert after.text == "th (severe very chesstspain)."
    assert [after.text_of(e) for e in after.entities] == ["severe pain", "severe very chesstspain", "chessts"]
    assert [after.text[s:e] for s, e in after.words] == ["th", "(", "severe", "very", "chessts", "pain", ")", "."]
    assert after.sentences == (Span(0, 29),)
    assert after.meta == {"k": 1}
    assert edited(document, [Edit(9, 12, "x"), Edit(20, 21, ""), Edit(4, 5, " ")]) is document  # none can be made


def test_words_that_an_edit_joins_are_split_anew():
    document = Document.from_words("1", ("left-handed", "man"), (Entity.at("X", 0, 2),))
    after = edited(document, [Edit(0, 15, "old woman, ill")])
    assert [after.text[s:e] for s, e in after.words] == ["old", "woman", ",", "ill"]
    assert after.text_of(after.entities[0]) == "old woman, ill"


def test_swapped_entities_take_names_of_their_label():
    texts = ["Aspirin cures fever", "Codeine cures pain", "Ibuprofen cures pain"]
    documents = [
        Document(
            str(n), text, (Entity.at("Drug", 0, text.index(" ")), Entity.at("Sign", text.rindex(" ") + 1, len(text)))
        )
        for n, text in enumerate(texts)
    ]
    for seed in range(5):
        for before, after in zip(documents, perturb(documents, "swapped_entities", seed), strict=True):
            drug, sign = after.entities
            assert after.text_of(drug) in {"Aspirin", "Codeine", "Ibuprofen"} - {before.text_of(before.entities[0])}
            assert after.text_of(sign) in {"fever", "pain"} - {before.text_of(before.entities[1])}
            assert after.text == f"{after.text_of(drug)} cures {after.text_of(sign)}"
    nested = Document("n", "lung cancer", (Entity.at("Part", 0, 4), Entity.at("Drug", 0, 11)))
    assert perturb([*documents, nested], "swapped_entities")[-1] == nested
    twice = Document("t", "Aspirin or Aspirin", (Entity.at("Drug", 0, 7), Entity.at("Drug", 11, 18)))
    (first, second) = (after := perturb([*documents, twice], "swapped_entities")[-1]).entities
    assert after.text_of(first) == after.text_of(second) != "Aspirin"


def test_unseen_entities_have_new_words_of_the_same_shape():
    train, *_ = corpus()
    documents = train[:60]
    known = {d.text[s:e].lower() for d in documents for s, e in split_words(d.text)}
    after = perturb(documents, "unseen_entities", 3)
    changed = 0
    names = {}
    for before, other in zip(documents, after, strict=True):
        for entity in before.entities:
            for s, e in split_words(before.text_of(entity)):
                old, new = before.text_of(entity)[s:e], other.text_of(entity)[s:e]
                assert names.setdefault(old.lower(), new.lower()) == new.lower()  # the same word everywhere
                assert [c.isupper() for c in old] == [c.isupper() for c in new]
                if old != new and len(old) > 3:
                    changed += 1
                    assert new.lower() not in known
    assert changed > 100


def test_each_perturbation_does_something_typical():
    text = "Dr. Smith's modern well-known immunotherapy (NF-kB, 3.5 mg) helped. " * 6
    name = Entity.at("Person", 4, 9)
    documents = [Document("1", text, (name, Entity.at("Person", 4 + 68, 9 + 68)))]
    (after,) = perturb(documents, "without_punctuation")
    assert after.text.startswith("Dr Smiths modern well-known immunotherapy NF-kB 3.5 mg helped ")
    (after,) = perturb(documents, "title_case")
    assert after.text.startswith("Dr. Smith'S Modern Well-Known Immunotherapy (Nf-Kb, 3.5 Mg) Helped. ")
    (after,) = perturb(documents, "hyphens")
    assert "well-known" not in after.text
    assert len(after.text) > len(text)  # some long word is divided
    assert after.text.replace("-\n", "") != text
    (after,) = perturb(documents, "scanned")
    assert after.text != text
    (after,) = perturb(documents, "typos")
    assert after.text.split()[0] == "Dr."  # short words are left alone
    assert after.text != text
    for seed in range(20):
        (after,) = perturb(documents, "more_punctuation", seed)
        assert [after.text_of(e) for e in after.entities] == ["Smith", "Smith"]
    with pytest.raises(ValueError, match="unknown perturbation 'noise'; use one of lower_case, "):
        perturb(documents, "noise")


def test_draws_depend_on_the_seed_and_the_place_alone():
    train, *_ = corpus()
    documents = train[:30]
    for name in PERTURBATIONS:
        assert perturb(documents, name, 1) == perturb(documents, name, 1)
        if name not in ("lower_case", "upper_case", "title_case", "without_punctuation"):
            assert perturb(documents, name, 1) != perturb(documents, name, 2)
    state = random.getstate()
    perturb(documents, "typos", 1)
    assert random.getstate() == state


def test_the_documentation_names_them_all():
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page[page.index("## Robustness") :], re.MULTILINE) == list(PERTURBATIONS)
