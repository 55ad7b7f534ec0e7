import csv
import json
import re
from html.parser import HTMLParser

import pytest
from reported import EVIL, every_block

from wingspan.report.blocks import Column, Prose, Report, Section, Table
from wingspan.report.errors import cropped, windows
from wingspan.report.html import as_text, rendered, write_report, write_tables
from wingspan.report.plots import drawn, lines
from wingspan.text import Document, Entity, Span

VOID = {"meta", "br", "hr", "img", "input", "link"}


class Outline(HTMLParser):
    """Ids, links and the nesting of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.ids, self.links, self.open, self.scripts, self.texts = [], [], [], 0, []
        self.feed(page)
        assert not self.open, "every element is closed"

    def handle_starttag(self, tag, attributes):
        known = dict(attributes)
        self.ids += [known["id"]] if "id" in known else []
        self.links += [known["href"]] if tag == "a" else []
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "script" not in self.open:
            self.texts.append(data)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(every_block(), path)
    return path.read_text(encoding="utf-8")


def test_every_section_and_block_can_be_pointed_to(page):
    outline = Outline(page)
    assert len(outline.ids) == len(set(outline.ids))
    assert {"overview", "figures", "errors", "scores", "cloud", "mistakes", "facts"} <= set(outline.ids)
    assert {link.removeprefix("#") for link in outline.links} <= set(outline.ids)


def test_nothing_that_comes_from_documents_is_markup(page):
    outline = Outline(page)
    assert EVIL not in page
    assert outline.scripts == 6  # five of ours and the data of the points
    assert any(EVIL in text for text in outline.texts)
    data = re.search(r'<script type="application/json">(.*?)</script>', page)[1]
    assert json.loads(data)["words"][0] == f"{EVIL} 0"


def test_the_page_loads_nothing(page):
    assert not re.search(r"""\b(src|href)=["']?(?![#"'])|@import|url\((?!#)|https?:""", page)
    assert "default-src 'none'" in page


def test_what_is_left_out_is_counted(page, tmp_path):
    assert "1,234 more are not shown." in page
    rows = [(number,) for number in range(700)]
    report = Report("r", [Section("s", "S", [Table("long", "Long", (Column("n"),), rows)])])
    write_report(report, tmp_path / "r.html")
    said = (tmp_path / "r.html").read_text()
    assert "The first 500 of 700 rows; all are in tables/long.csv beside this page." in said
    (path,) = write_tables(report, tmp_path / "tables")
    assert len(path.read_text().splitlines()) == 701


def test_tables_as_files_have_every_digit(tmp_path):
    paths = {path.stem: path for path in write_tables(every_block(), tmp_path)}
    with paths["scores"].open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["label", "F1", "change", "note, quoted"]
    assert rows[1] == [EVIL, "12.345", "-1.5", 'say "hi", twice']
    assert rows[3][1] == ""
    assert rows[4] == ["micro", "50.0", "", ""]


def test_rows_may_be_made_while_they_are_written(tmp_path):
    class Streamed:
        alive = most = 0

        def __iter__(self):
            for number in range(5000):
                yield (number,)

    report = Report("r", [Section("s", "S", [Table("t", "T", (Column("n"),), Streamed(), shown=10)])])
    write_report(report, tmp_path / "r.html")
    assert "The first 10 of 5,000 rows" in (tmp_path / "r.html").read_text()
    (path,) = write_tables(report, tmp_path)
    assert len(path.read_text().splitlines()) == 5001


@pytest.mark.parametrize(
    ("value", "column", "text"),
    [
        (None, Column("n"), "–"),
        (1234567, Column("n"), "1,234,567"),
        (12.345, Column("n", digits=1), "12.3"),
        (1.5, Column("n", "change"), "+1.50"),
        (-1.5, Column("n", "cost"), "-1.50"),
        (0.00001, Column("p", digits=4), "< 0.0001"),
        (0.0, Column("p", digits=4), "0.0000"),
        (3.0, Column("n", digits=1), "3"),
        ("<b>", Column("n", "text"), "<b>"),
    ],
)
def test_numbers_are_shown_as_people_read_them(value, column, text):
    assert as_text(value, column) == text


def test_a_rise_is_green_where_more_is_better_and_red_where_it_costs(tmp_path):
    table = Table(
        "t", "T", (Column("n"), Column("gain", "change"), Column("loss", "cost")), [(1, 2.0, 1.0), (1, -1.0, 0)]
    )
    write_report(Report("r", [Section("s", "S", [table])]), tmp_path / "r.html")
    body = re.search(r"<tbody>.*?</tbody>", (tmp_path / "r.html").read_text(), re.DOTALL)[0]
    assert re.findall(r'class="tint (\w+)" style="--t:([\d.]+)"', body) == [
        ("up", "0.45"),
        ("down", "0.23"),
        ("down", "0.23"),
        ("up", "0.00"),
    ]


def test_excerpts_of_long_texts_end_between_words_and_keep_their_entities():
    text = " ".join(f"word{n:03d}" for n in range(200))
    entity = Entity("A", (Span(800, 807), Span(816, 823)), 0.5)
    document = Document("d", text, (entity, Entity.at("B", 0, 7), Entity.at("C", 600, 700)))
    (window,) = windows(text, [entity.hull])
    assert text[window.start - 1] == " "
    assert text[window.end] == " "
    part = cropped(document, window)
    assert part.text.startswith("… word")
    assert part.text.endswith(" …")
    assert [(e.label, part.text_of(e)) for e in part.entities] == [
        ("C", text[window.start : 700]),
        ("A", document.text_of(entity)),
    ]
    assert windows("short", [Span(0, 1)]) == [Span(0, 5)]
    assert len(windows(text, [Span(0, 5), Span(200, 205), Span(1500, 1505)])) == 2
    assert windows("字" * 900, [Span(450, 452)]) == [Span(310, 592)]


def test_figures_have_the_pages_ink_and_files_beside_it(tmp_path):
    pytest.importorskip("matplotlib")
    block = drawn(
        lines({"<b>": ([0, 1], [0, 1]), "$x$": ([0, 1], [1, 0])}, "x", "y"), "line", 'A "line"', tmp_path / "f"
    )
    assert "currentColor" in block.svg
    assert "<metadata" not in block.svg
    assert "&lt;b&gt;" in block.svg
    assert 'aria-label="A &quot;line&quot;"' in block.svg
    assert all(name.startswith("line-") for name in re.findall(r'\bid="([^"]*)"', block.svg))
    assert (tmp_path / "f" / "line.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "f" / "line.svg").read_text().startswith("<?xml")


def test_no_line_ends_before_a_percent_sign():
    page = rendered(Prose(("A 95 % interval, 5 to 10 %",)))
    assert page == "<p>A 95\u00a0% interval, 5 to 10\u00a0%</p>\n"
