import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wingspan.text import Document, Entity, Span
from wingspan.views.entities import label_colors
from wingspan.views.html import cell, escaped, legend, marked, tally


class Reader(HTMLParser):
    """What a browser would show: the text, the chips, the backgrounds."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.chips, self.titles, self.tags = "", [], [], set()
        self.open: list[str] = []
        self.feed(str(source))
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "bdi":
            self.chips.append("")
            self.titles.append(dict(attributes)["title"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "bdi" in self.open:
            self.chips[-1] += data
        elif "p" not in self.open:
            self.text += data


def shown(document: Document, **others) -> Reader:
    return Reader(marked(document, **others))


NESTED = Document("d", "familial breast cancer risk", (Entity.at("Disease", 0, 22), Entity.at("Part", 9, 15)))


def test_labels_stand_behind_their_entities_and_bars_in_lanes():
    page = marked(NESTED)
    assert Reader(page).chips == ["Part", "Disease"]
    colors = label_colors(["Disease", "Part"])
    assert "--ws-lanes:10px" in page  # two lanes of five pixels
    outer = f"linear-gradient({colors['Disease']},{colors['Disease']}) 0 calc(100% - 0px)/100% 3px no-repeat"
    inner = f"linear-gradient({colors['Part']},{colors['Part']}) 0 calc(100% - 5px)/100% 3px no-repeat"
    pieces = [piece for piece in page.split("<span") if "background" in piece]
    assert [outer in piece for piece in pieces] == [True, True, True, True, True]
    assert [inner in piece for piece in pieces] == [False, True, True, False, False]
    assert page.endswith(" risk</div>")


def test_fragments_are_joined_by_a_dotted_line():
    page = marked(Document("d", "colon and lung cancer", (Entity("D", (Span(0, 5), Span(15, 21))),)))
    assert page.count("repeating-linear-gradient") == 1
    assert Reader(page).titles == ["D · colon cancer"]


def test_verdicts_have_signs_strokes_and_a_tally():
    gold = Document("d", "a b c", (Entity.at("X", 0, 1), Entity.at("Y", 2, 3)))
    found = Document("d", "a b c", (Entity.at("X", 0, 1), Entity.at("Z", 4, 5, 0.25)))
    reader = shown(found, gold=gold)
    assert reader.chips == ["✓\u00a0X", "✗\u00a0Y", "+\u00a0Z"]
    assert reader.titles == ["X · a · right", "Y · b · missed", "Z · c · spurious · score 0.250"]
    assert "1 right" in tally(found, gold)
    assert "1 missed" in tally(found, gold)


def test_nothing_in_a_document_is_markup():
    text = "<script>alert(1)</script> & \"q\" 'x'"
    page = marked(Document("d", text, (Entity.at("<img src=x onerror=alert(1)>", 0, 8),)))
    assert Reader(page).tags == {"div", "span", "bdi"}
    assert Reader(page).text.replace("\u202f", "") == text
    assert "<img" not in legend(["<img>"])


def test_control_characters_and_halves_of_pairs_can_be_written():
    assert escaped("a\x00b\x7f\ud800\n") == "a\u2400b\u2421\ufffd\n"
    marked(Document("d", "\ud800", (Entity.at("\ud800", 0, 1),))).encode()


def test_empty_texts_and_entities_outside_are_said():
    assert "(empty text)" in marked(Document("d", ""))
    assert "not drawn: A at 1-9; the text ends at 3" in marked(Document("d", "abc", (Entity.at("A", 1, 9),)))


def test_many_lanes_stay_low():
    page = marked(Document("d", "abc", tuple(Entity.at(f"L{n}", 0, 3) for n in range(30))))
    assert "--ws-lanes:60px" in page


@given(st.text(max_size=30), st.data())
def test_the_text_is_shown_as_it_is(text, data):
    borders = st.integers(0, len(text))
    drawn = data.draw(st.lists(st.lists(st.tuples(borders, borders).map(sorted), min_size=1, max_size=2), max_size=4))
    entities = tuple(Entity("L", tuple(Span(*span) for span in spans)) for spans in drawn)
    page = shown(Document("d", text, entities))
    visible = [entity for entity in entities if all(s < e for s, e in entity.spans)]
    kept = Reader(f"<div>{escaped(text)}</div>").text
    assert page.text.replace("\u202f", "") == kept.replace("\u202f", "")
    assert len(page.chips) == len(visible)


def test_a_notebook_shows_documents_and_text_alone_loads_nothing():
    assert NESTED._repr_html_() == cell(NESTED)
    assert cell(NESTED).startswith("<style>")
    code = "import sys, wingspan.text; print([n for n in sys.modules if n.startswith('wingspan.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "['wingspan.text']"


@pytest.mark.parametrize("scheme", ["http://", "https://", "url(", "@import"])
def test_a_cell_asks_nobody_for_anything(scheme):
    assert scheme not in cell(NESTED)
