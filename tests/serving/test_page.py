"""The page in headless Chromium: paste, look, slide, compare, export; on a narrow screen, with the keyboard alone."""

import json

import pytest
from browsing import CONTRASTS, Page, chromium

from serving import listening
from trainings import untrained
from wingspan.decoding import resolve
from wingspan.serving import Settings
from wingspan.text import Document, Entity, Span
from wingspan.views.html import marked

TEXT = "Aspirin lowers BRCA in 😀 cells . <script>document.title = 'run'</script>"
RESOLVED = """([entities, overlap]) => resolve(entities, overlap).map(entity => [entity.label, entity.fragments])"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def models():
    return {"one": untrained(), "two": untrained(seed=3, labels=("Gene", "Cell"))}


@pytest.fixture(scope="module")
def address(models):
    with listening(models) as (address, _):
        yield address


@pytest.fixture
def opened(browser, address):
    pages = []

    def open_page(width=1280, scheme="light", at=address):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        page = Page(context.new_page())
        page.page.set_default_timeout(10_000)
        page.page.goto(at)
        pages.append((context, page, at))
        return page

    yield open_page
    for context, page, at in pages:
        assert [url for url in page.asked if not url.startswith((at, "data:", "blob:"))] == []
        context.close()


def ask(page, text=TEXT):
    page.page.wait_for_selector("#model option", state="attached")
    page.page.fill("#text", text)
    page.page.click("#find")
    page.page.wait_for_selector("article.doc")


def chips(page, within="article.doc"):
    return page.page.eval_on_selector_all(f"{within} .ws-chip", "all => all.map(one => one.dataset.tip)")


def tips(document):
    ordered = [(entity.label, document.text_of(entity), f"score {entity.score:.3f}") for entity in document.entities]
    return sorted(" · ".join(parts) for parts in ordered)


def slide(page, value):
    script = "([id, value]) => { const one = document.getElementById(id); one.value = value; "
    page.page.evaluate(script + "one.dispatchEvent(new Event('input')); }", ["threshold", value])
    page.page.evaluate("() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))")


def test_paste_look_slide_and_switch(opened, models):
    page = opened()
    ask(page)
    own = models["one"].predict(TEXT)[0]
    assert own.entities
    assert sorted(chips(page)) == tips(own)
    words = page.page.eval_on_selector(
        "article .ws-text",
        "box => { box.querySelectorAll('.ws-chip').forEach(x => x.remove()); return box.textContent; }",
    )
    assert words.replace("\u202f", "") == TEXT  # nothing of it became markup
    assert page.page.title() == "Wingspan"
    asked = len(page.asked)
    page.page.uncheck("#own")
    for least, overlap in ((0.3, "any"), (0.2, "flat"), (0.1, "nested"), (0.9, "flat")):
        page.page.select_option("#overlap", overlap)
        slide(page, least)
        wanted = tips(models["one"].predict(TEXT, threshold=least, overlap=overlap)[0])
        assert sorted(chips(page)) == wanted
        assert page.page.text_content("#least") == f"{least:.2f}"
    assert len(page.asked) == asked  # no request for any of it
    slide(page, 0.05)
    page.page.select_option("#overlap", "any")
    page.page.click(".type:has-text('Gene') input")
    page.page.wait_for_timeout(100)
    assert {tip.split(" ")[0] for tip in chips(page)} == {"Drug"}
    page.page.hover("article .ws-chip >> nth=0")
    assert page.page.text_content("#tip") == chips(page)[0]
    assert page.said == []


def test_overlaps_are_resolved_as_in_python(opened, address):
    page = opened()
    fragments = [[(0, 5)], [(3, 8)], [(0, 8)], [(10, 12)], [(11, 14), (20, 22)], [(12, 21)], [(0, 5)], [(11, 12)]]
    rows = [
        Entity(label, tuple(Span(*span) for span in spans), score)
        for number, spans in enumerate(fragments)
        for label, score in (("A", 0.1 * (number % 4) + 0.2), ("B", 0.1 * (number % 3) + 0.35))
    ]
    plain = [
        {"label": e.label, "score": e.score, "start": e.start, "end": e.end, "fragments": [list(s) for s in e.spans]}
        for e in rows
    ]
    for overlap in ("flat", "nested", "any"):
        wanted = [[e.label, [list(span) for span in e.spans]] for e in resolve(rows, overlap)]
        assert page.page.evaluate(RESOLVED, [plain, overlap]) == wanted


def test_nested_and_discontinuous_entities_are_drawn_as_in_reports(opened):
    page = opened()
    page.page.wait_for_selector("#model option", state="attached")
    text = "Tumors of colon and lung"
    document = Document("0", text, (Entity("Gene", (Span(0, 9), Span(20, 24)), 0.5), Entity.at("Drug", 0, 15, 0.25)))
    drawn = """([text, entities]) => [...drawn({points: Array.from(text)}, entities, null, 2).children].map(piece =>
      [piece.firstChild.textContent, (piece.style.background.match(/gradient/g) ?? []).length,
       piece.style.background.includes("repeating"), piece.querySelector(".ws-chip")?.textContent ?? ""])"""
    rows = page.page.evaluate(drawn, [text, document.to_dict()["entities"]])
    assert rows == [
        ["Tumors of", 3, False, ""],  # two bars and the light behind the words
        [" colon", 3, True, ""],  # dotted where the first goes on behind a gap
        ["\u202f", 2, True, "Drug"],
        [" and ", 1, True, ""],
        ["lung", 2, False, ""],
        ["\u202f", 1, False, "Gene"],
    ]
    python = marked(document, labels=["Cell", "Drug", "Gene"])
    assert [python.count(part) for part in ("repeating-linear-gradient", "ws-chip", "--ws-lanes:10px")] == [3, 2, 1]


def test_files_can_be_dropped(opened):
    page = opened()
    page.page.wait_for_selector("#model option", state="attached")
    page.page.evaluate("""() => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File(["A drug ."], "dropped.txt"));
      for (const kind of ["dragenter", "drop"]) dispatchEvent(new DragEvent(kind, {dataTransfer, cancelable: true}));
    }""")
    page.page.wait_for_selector("article h2:has-text('dropped.txt')")
    assert page.page.is_hidden("#drop")
    assert page.said == []


def test_two_models_side_by_side(opened, models):
    page = opened()
    page.page.wait_for_selector("#model option", state="attached")
    page.page.select_option("#other", "two")
    ask(page)
    found = [{(e.label, e.spans) for e in models[name].predict(TEXT)[0].entities} for name in ("one", "two")]
    both = len(found[0] & found[1])
    counts = f"{both} in both, {len(found[0]) - both} only in one, {len(found[1]) - both} only in two"
    assert page.page.text_content(".tally") == counts
    assert page.page.locator(".ws-chip.only").count() == len(found[0] ^ found[1])
    assert page.said == []


def test_export_is_what_is_shown(opened, models, tmp_path):
    page = opened()
    ask(page)
    for format in ("jsonl", "pubtator", "brat"):
        page.page.select_option("#format", format)
        with page.page.expect_download() as started:
            page.page.click("#download")
        started.value.save_as(tmp_path / started.value.suggested_filename)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["entities.jsonl", "entities.pubtator", "entities.zip"]
    record = json.loads((tmp_path / "entities.jsonl").read_text())
    assert record["entities"] == models["one"].predict(TEXT)[0].to_dict()["entities"]
    page.page.wait_for_selector("#status:has-text('not kept by brat: scores')")
    assert page.said == []


def test_files_and_the_grid(opened, tmp_path):
    page = opened()
    (tmp_path / "a.txt").write_text("A drug . Aspirin in cells .")
    (tmp_path / "b.jsonl").write_text('{"id": "x", "text": "A gene ."}\n{"id": "y", "text": "Two genes ."}\n')
    (tmp_path / "c.pdf").write_bytes(b"%PDF\xff\xfe")
    page.page.wait_for_selector("#model option", state="attached")
    page.page.set_input_files("#file", [tmp_path / name for name in ("a.txt", "b.jsonl", "c.pdf")])
    page.page.wait_for_selector("#files:visible")
    assert page.page.text_content("#problem") == "c.pdf is no text in UTF-8; convert it first."
    page.page.click("#find")
    page.page.wait_for_selector("article.doc >> nth=2")
    assert page.page.eval_on_selector_all("article h2", "all => all.map(one => one.textContent)") == ["a.txt", "x", "y"]
    page.page.click("article.doc >> nth=0 >> text=grid")
    page.page.wait_for_selector(".cells td")
    head = "() => [...document.querySelectorAll('.cells thead span')].map(one => one.textContent)"
    assert page.page.evaluate(head) == ["A", "drug", "."]
    page.page.click("#after")
    page.page.wait_for_selector(".cells th:nth-child(2):has-text('Aspirin')")
    page.page.select_option("#kind", "Gene")
    assert page.page.text_content("#cell").startswith("Highest: Gene · ")
    page.page.click("#before")
    page.page.wait_for_selector(".cells th:nth-child(3):has-text('drug')")
    assert page.said == []


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_a_narrow_screen_and_the_dark(opened, width, scheme):
    page = opened(width, scheme)
    page.page.wait_for_selector("#model option", state="attached")
    page.page.select_option("#other", "two")
    ask(page, TEXT + " A long text with many words." * 8)
    page.page.click("article.doc >> text=grid")
    page.page.wait_for_selector(".cells td")
    assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.page.evaluate(CONTRASTS) == []
    assert page.said == []


def test_it_opens_with_an_example_that_can_be_cleared(opened, models):
    with listening(models, Settings(example=TEXT)) as (at, _):
        page = opened(at=at)
        page.page.wait_for_selector("article.doc")
        assert page.page.input_value("#text") == TEXT
        assert sorted(chips(page)) == tips(models["one"].predict(TEXT)[0])
        page.page.click("#clear")
        assert page.page.input_value("#text") == ""
        assert page.page.locator("article.doc").count() == 0
        assert [page.page.is_hidden(part) for part in ("#view", "#grid", "#files")] == [True] * 3
        assert page.page.text_content("#status") == ""
        assert page.page.evaluate("document.activeElement.id") == "text"
        ask(page, "A gene .")
        page.page.click("#example")
        page.page.wait_for_selector("article .ws-text:has-text('Aspirin')")
        assert page.page.input_value("#text") == TEXT
        assert page.said == []
    page = opened()
    page.page.wait_for_selector("#model option", state="attached")
    assert page.page.input_value("#text") == ""


def test_an_example_waits_for_the_key(opened, models):
    with listening(models, Settings(api_key="k", example=TEXT)) as (at, _):
        page = opened(at=at)
        page.page.wait_for_selector("#locked:visible")
        page.page.fill("#key", "k")
        page.page.press("#key", "Enter")
        page.page.wait_for_selector("article.doc")
        assert page.page.input_value("#text") == TEXT


def test_the_keyboard_alone(opened):
    page = opened()
    keys = page.page.keyboard
    page.page.wait_for_selector("#model option", state="attached")
    focused = "document.activeElement.id || document.activeElement.textContent"
    for _ in range(8):
        keys.press("Tab")
        if page.page.evaluate(focused) == "text":
            break
    keys.type(TEXT[:20])
    keys.press("Control+Enter")
    page.page.wait_for_selector("article.doc")
    seen = []
    for _ in range(30):
        keys.press("Tab")
        seen.append(page.page.evaluate(focused))
        if page.page.evaluate("document.activeElement.matches('.doc .ws-chip')"):
            break
    assert {"find", "choose", "example", "clear", "model", "other", "own", "format", "download", "grid"} <= set(seen)
    assert "score 0." in page.page.text_content("#tip")
    keys.press("Enter")
    page.page.wait_for_selector(".cells td")
    unnamed = """() => [...document.querySelectorAll("button, select, input:not([hidden]), textarea")].filter(one =>
      !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim())).map(one => one.id)"""
    assert page.page.evaluate(unnamed) == []
    assert page.said == []


def test_a_service_with_a_key(opened, models):
    with listening({"one": models["one"]}, Settings(api_key="k")) as (address, _):
        page = opened(at=address)
        page.page.wait_for_selector("#locked:visible")
        page.page.fill("#key", "k")
        page.page.fill("#text", TEXT)
        page.page.keyboard.press("Control+Enter")
        page.page.wait_for_selector("article.doc")
        assert page.page.is_hidden("#locked")
