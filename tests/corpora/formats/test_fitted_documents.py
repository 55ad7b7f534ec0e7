"""Any document through every format that can be written: what the format says it holds is there after reading."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wingspan.corpora.formats import FORMATS, Format, format_named
from wingspan.corpora.formats.conversion_loss import SPACE, fit
from wingspan.corpora.words import in_words
from wingspan.files import Problems
from wingspan.text import Document, Entity, Span

EXTRAS = {"docbin": "spacy", "hub": "datasets"}
ENDINGS = {"brat": "folder", "hub": "folder", "docbin": "x.spacy", "bioc-xml": "x.xml", "pubtator": "x.txt"}
SLOW = {"docbin", "hub"}
FIRST = Document.from_words("id-0", ("Plain", "words"), (Entity.at("A", 1, 2),))

texts = st.text(
    st.one_of(st.sampled_from("ab .,-\n\r\t😀é\u0301ه中\u200b|\\\"'"), st.characters(exclude_categories=("Cs", "Cc"))),
    max_size=30,
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    text = draw(texts)
    spans = st.tuples(st.integers(0, max(0, len(text) - 1)), st.integers(1, 8)).map(
        lambda pair: Span(pair[0], min(len(text), sum(pair)))
    )
    fragments = st.lists(spans, min_size=1, max_size=2, unique=True).filter(
        lambda found: all(not a.overlaps(b) for a in found for b in found if a != b)
    )
    found = draw(st.lists(st.tuples(st.sampled_from(["A", "two words", "é-x"]), fragments), max_size=4)) if text else []
    entities = {Entity(label, tuple(spans)) for label, spans in found}
    return Document("id-1", text, tuple(entities))


def check(document: Document, chosen: Format) -> None:
    fitted, _ = fit(document, chosen)
    problems = Problems()
    assert chosen.write is not None
    with TemporaryDirectory() as folder:
        path = Path(folder) / ENDINGS.get(chosen.name, f"x.{chosen.name}")
        chosen.write([FIRST, fitted], path)
        first, *back = chosen.read(path, problems)
    assert first.entities == FIRST.entities
    if not fitted.text.strip() and len(back) == 0:
        return  # formats of lines have no line for a text without words
    assert len(back) == 1
    if chosen.holds.ids:
        assert back[0].id == fitted.id
    if chosen.holds.exact_text:
        assert replace(back[0], id="", words=None, sentences=None) == replace(fitted, id="")
    elif chosen.holds.documents_without_words:
        assert SPACE.sub(" ", back[0].text) == SPACE.sub(" ", fitted.text)
        assert back[0].entities == fitted.entities
    else:
        expected_words, expected = in_words(fitted)
        words, found = in_words(back[0])
        assert words == expected_words
        assert {(entity.label, spans) for entity, spans in found} == {
            (entity.label, spans) for entity, spans in expected
        }


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.slow
def test_what_a_format_holds_survives_it(name: str) -> None:
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name], reason=f"{EXTRAS[name]} is not installed")
    chosen = format_named(name)
    if chosen.write is None:
        pytest.skip(f"{name} can only be read")

    @settings(max_examples=25 if name in SLOW else 100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(documents())
    def survives(document: Document) -> None:
        check(document, chosen)

    survives()
