"""The pages in headless Chromium: phone and desktop, light and dark, keys and mouse, CSV, nothing from the network."""

import csv

import pytest
from browsing import CONTRASTS, chromium, opened
from reported import EVIL, damaged, every_block, gold

from wingspan.cli import show
from wingspan.corpora.formats import write
from wingspan.report import ReportOptions, from_documents, report_of
from wingspan.report.blocks import Subject
from wingspan.report.html import write_report

pytestmark = pytest.mark.slow
SIZES = pytest.mark.parametrize("width", [390, 1280])
SCHEMES = pytest.mark.parametrize("scheme", ["light", "dark"])


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory, browser):
    """The pages, written only where there is a browser to look at them."""
    folder = tmp_path_factory.mktemp("pages")
    write_report(every_block(), folder / "blocks.html")
    documents = gold()
    subject = Subject.of(documents, {"A": [damaged(documents)], "B": [damaged(documents, 5)]}, documents)
    write_report(
        report_of(
            "Two systems",
            subject,
            from_documents(subject, ReportOptions(samples=20, attributes=["entity_length", "nested_role"])),
            {},
        ),
        folder / "real.html",
    )
    write(documents, folder / "gold.jsonl")
    show.show(folder / "gold.jsonl", output=folder / "show.html")
    return folder


@SIZES
@SCHEMES
@pytest.mark.parametrize("name", ["blocks", "real", "show"])
def test_pages_fit_phones_and_desktops(browser, folder, name, width, scheme):
    with opened(browser, folder / f"{name}.html", width, scheme) as page:
        page.is_sound()
        assert page.page.evaluate(CONTRASTS) == []
        assert page.page.title() != "hacked"


def test_text_of_documents_runs_nowhere(browser, folder):
    with opened(browser, folder / "blocks.html") as page:
        assert page.page.title() == f"A report {EVIL}"
        assert page.page.locator("h1").inner_text() == f"A report {EVIL}"


def test_the_theme_can_be_switched(browser, folder):
    with opened(browser, folder / "blocks.html", scheme="dark") as page:
        paper = "getComputedStyle(document.body).backgroundColor"
        assert page.page.evaluate(paper) == "rgb(20, 22, 26)"
        page.page.click("#theme")
        assert page.page.evaluate(paper) == "rgb(251, 251, 249)"
        page.is_sound()


def test_tables_sort_and_are_saved(browser, folder, tmp_path):
    with opened(browser, folder / "blocks.html") as page:
        table = page.page.locator("#scores")
        names = "document.querySelectorAll('#scores tbody th')"
        table.locator("thead button").nth(1).click()
        assert page.page.evaluate(f"[...{names}].map(cell => cell.textContent)") == ["Gene", EVIL, "Disease"]
        table.locator("thead button").nth(1).press("Enter")
        assert page.page.evaluate(f"[...{names}].map(cell => cell.textContent)") == [EVIL, "Gene", "Disease"]
        with page.page.expect_download() as download:
            table.locator("button.csv").click()
        assert download.value.suggested_filename == "scores.csv"
        download.value.save_as(tmp_path / "scores.csv")
        with (tmp_path / "scores.csv").open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0] == ["label", "F1", "change", "note, quoted"]
        assert [EVIL, "12.345", "-1.5", 'say "hi", twice'] in rows
        page.is_sound()


def test_examples_are_filtered_and_come_in_steps(browser, folder):
    with opened(browser, folder / "blocks.html") as page:
        block = page.page.locator("#mistakes")
        shown = block.locator("article:visible")
        assert shown.count() == 5
        block.get_by_text("Show more").click()
        assert shown.count() == 10
        block.locator("select").first.select_option("type")
        assert block.get_by_role("status").inner_text() == "5 of 16"
        block.locator("select").nth(1).select_option("Chemical")
        assert block.get_by_role("status").inner_text() == "5 of 6"
        block.get_by_text("Show more").click()
        assert shown.count() == 6


def test_points_zoom_and_say_what_they_are(browser, folder):
    with opened(browser, folder / "blocks.html") as page:
        block = page.page.locator("#cloud")
        canvas, tip = block.locator("canvas"), block.locator(".tip")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        page.page.mouse.move(box["x"] + 28, box["y"] + box["height"] - 28)  # the lower left corner is point 0
        assert tip.inner_text() == f"{EVIL} 0 · Anatomy"
        block.get_by_label("Zoom in").click()
        assert canvas.get_attribute("data-zoom") == "1.50"
        canvas.press("+")
        assert canvas.get_attribute("data-zoom") == "2.25"
        page.page.keyboard.down("Control")
        page.page.mouse.move(box["x"] + 200, box["y"] + 200)
        page.page.mouse.wheel(0, -100)
        page.page.keyboard.up("Control")
        page.page.wait_for_function("document.querySelector('#cloud canvas').dataset.zoom === '2.81'")
        canvas.press("0")
        assert canvas.get_attribute("data-zoom") == "1.00"
        block.get_by_role("button", name="Anatomy").click()
        page.page.mouse.move(box["x"] + 29, box["y"] + box["height"] - 28)
        assert tip.is_hidden()
        page.is_sound()


def test_a_page_on_paper_shows_everything(browser, folder):
    with opened(browser, folder / "blocks.html") as page:
        page.page.emulate_media(media="print", color_scheme="dark")
        assert page.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.page.evaluate("getComputedStyle(document.querySelector('#wide .scroll')).overflowX") == "visible"
        assert page.page.locator("#theme").is_hidden()


def test_on_a_phone_a_label_stays_on_a_line_with_its_dot(browser, folder):
    apart = """[...document.querySelectorAll('th.label:not(.long) .dot')].filter(dot => {
        const words = document.createRange(); words.selectNode(dot.nextSibling);
        const [text, mark] = [words.getBoundingClientRect(), dot.getBoundingClientRect()];
        return mark.top > text.bottom || mark.bottom < text.top || text.height > 4 * mark.height;
    }).map(dot => dot.nextSibling.textContent)"""
    with opened(browser, folder / "real.html", 390) as page:
        assert page.page.locator("th.label .dot").count() > 3
        assert page.page.evaluate(apart) == []
