"""What is written is read back equal, in every format and between every two of them.

Equal means: in everything that the format says it holds (`Format.holds`). Ids are compared where they are stored.
"""

from dataclasses import replace
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wingspan.corpora.formats import ALL, FORMATS, Format, Holds, format_named
from wingspan.files import Problems
from wingspan.text import Document, Entity, Span

EXTRAS = {"docbin": "spacy", "hub": "datasets"}
SLOW = set(EXTRAS)


def the_format(name: str) -> Format:
    if name in EXTRAS and find_spec(EXTRAS[name]) is None:
        pytest.skip(f"the extra {EXTRAS[name]} is not installed")
    return format_named(name)


def through(documents: list[Document], form: Format) -> list[Document]:
    """Writes and reads; every problem raises."""
    assert form.write is not None
    with TemporaryDirectory() as folder:
        path = Path(folder) / ("corpus" if form.name == "brat" else f"corpus{FORMATS[form.name].suffixes[0]}")
        form.write(documents, path)
        found = list(form.read(path, Problems()))
    return sorted(found, key=lambda document: document.id) if form.name == "brat" else found


def adapted(document: Document, holds: Holds) -> Document | None:
    """The document without what the format does not hold, or None if its text is not for it."""
    if document.words is None and not holds.documents_without_words:
        return None
    joined = document.words is not None and Document.from_words("", words_of(document)).text == document.text
    if not holds.exact_text and not joined and (holds.words or set(document.text) & {"\r", "\n"}):
        return None
    kept: list[Entity] = []
    for entity in document.entities:
        if entity.discontinuous and not holds.discontinuous:
            continue
        if not holds.nested and any(span.overlaps(other) for other in spans_of(kept) for span in entity.spans):
            continue
        kept.append(entity if holds.scores else replace(entity, score=1.0))
    return replace(
        document,
        entities=tuple(kept),
        words=document.words if holds.words else None,
        sentences=document.sentences if holds.sentences else None,
        group=document.group if holds.groups else None,
        dataset=document.dataset if holds.datasets else "main",
    )


def words_of(document: Document) -> tuple[str, ...]:
    return tuple(document.text[word.start : word.end] for word in document.words or ())


def spans_of(entities: list[Entity]) -> list[Span]:
    return [span for entity in entities for span in entity.spans]


def assert_same(found: list[Document], expected: list[Document], holds: Holds) -> None:
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        same_id = ours if holds.ids else replace(ours, id=theirs.id)
        assert same_id == theirs
        for entity, other in zip(ours.entities, theirs.entities, strict=True):
            assert ours.text_of(entity) == theirs.text_of(other)
            assert not holds.scores or entity.score == other.score


LABELS = st.sampled_from(["PER", "Cell line", "a-b_c", "Ünï", "O"])
# everything but control characters, half pairs and unassigned code points: what no text should hold
CHARACTERS = st.characters(exclude_categories=("Cc", "Cs", "Cn"))
WORDS = st.text(
    st.characters(exclude_categories=("Cc", "Cs", "Cn", "Z")) | st.sampled_from("🦅é#\u0301-"), min_size=1, max_size=6
)


def scored(draw: st.DrawFn, spans: set[tuple[int, int]]) -> Entity:
    ordered: list[Span] = []
    for start, end in sorted(spans):
        if not ordered or ordered[-1].end <= start:
            ordered.append(Span(start, end))
    return Entity(draw(LABELS), tuple(ordered), draw(st.sampled_from([1.0, 0.25])))


@st.composite
def texts(draw: st.DrawFn) -> Document:
    """Text without given words, with entities anywhere."""
    text = draw(st.text(CHARACTERS | st.sampled_from("🦅 \n\r\té "), max_size=30))
    place = st.tuples(st.integers(0, len(text)), st.integers(0, len(text))).map(lambda pair: (min(pair), max(pair)))
    filled = place.filter(lambda pair: pair[0] < pair[1])
    entities: set[Entity] = set()
    if text:
        for spans in draw(st.lists(st.sets(filled, min_size=1, max_size=3), max_size=4)):
            entities.add(scored(draw, spans))
    return Document("x", text, tuple(entities))


@st.composite
def sentences(draw: st.DrawFn) -> Document:
    """Words with one blank between them, and entities of whole words."""
    words = tuple(draw(st.lists(WORDS.filter(lambda word: not word.startswith("-DOCSTART-")), min_size=1, max_size=8)))
    place = st.integers(0, len(words) - 1).flatmap(
        lambda start: st.integers(start + 1, len(words)).map(lambda end: (start, end))
    )
    spans = draw(st.lists(st.sets(place, min_size=1, max_size=3), max_size=4))
    entities = {scored(draw, chosen) for chosen in spans}
    group = draw(st.sampled_from([None, "article (1)", "b"]))
    return Document.from_words(
        "x", words, tuple(entities), group=group, dataset=draw(st.sampled_from(["main", "ncbi"]))
    )


CORPORA = st.lists(texts() | sentences(), min_size=1, max_size=4).map(
    lambda documents: [replace(document, id=f"d{at}/ü") for at, document in enumerate(documents)]
)


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in SLOW])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(corpus=CORPORA)
def test_random_documents_come_back(name: str, corpus: list[Document]) -> None:
    form = the_format(name)
    expected = [fit for document in corpus if (fit := adapted(document, form.holds)) is not None]
    if expected:
        assert_same(through(expected, form), expected, form.holds)


@pytest.mark.parametrize("name", sorted(SLOW))
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(corpus=CORPORA)
def test_random_documents_come_back_from_extras(name: str, corpus: list[Document]) -> None:
    form = the_format(name)
    expected = [fit for document in corpus if (fit := adapted(document, form.holds)) is not None]
    if expected:
        assert_same(through(expected, form), expected, form.holds)


SAMPLE = [
    Document.from_words(
        "a/1",
        ("Sore", "left", "🦅", "and", "right", "arm", "."),
        (
            Entity("Pain", (Span(0, 2), Span(5, 6)), 0.5),
            Entity.at("Pain", 0, 6),
            Entity.at("Part", 4, 6),
            Entity.at("Limb", 4, 6),
        ),
        group="article 1",
        dataset="made",
        meta={"year": 1999},
    ),
    Document.from_words("a/2", ("Naïve", "e\u0301tude"), (Entity.at("Work of art", 0, 2),), group="article 1"),
    Document.from_words("b", ("Rain", "#", "1"), ()),
]


def common(one: Holds, other: Holds) -> Holds:
    both = {key: value and getattr(other, key) for key, value in vars(one).items()}
    return Holds(**{**both, "document_keys": ALL if one.datasets and other.datasets else frozenset()})


@pytest.mark.parametrize(("first", "second"), list(product(FORMATS, FORMATS)))
def test_between_every_two_formats(first: str, second: str) -> None:
    one, other = the_format(first), the_format(second)
    holds = common(one.holds, other.holds)
    # every format is handed the words, as word formats need them; where one of the two drops them they are not compared
    start = [fit for document in SAMPLE if (fit := adapted(document, replace(holds, words=True))) is not None]
    assert len(start) == len(SAMPLE)
    between = through(start, one)
    handed = [replace(found, words=document.words) for found, document in zip(between, start, strict=True)]
    end = through(handed, other)
    for found in (between, end):
        assert_same([in_common(d, holds) for d in found], [in_common(d, holds) for d in start], holds)


def in_common(document: Document, holds: Holds) -> Document:
    return document if holds.words else replace(document, words=None)
