"""Headless Chromium on a page: what it loads, what it complains about, where things lie."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

OVERLAPS = """() => {
  const found = [];
  const groups = ".chapter, .block, .block > header, .keys, .filters, .contents ol, .facts > dl, main, .layout";
  for (const parent of document.querySelectorAll(groups)) {
    const boxes = [...parent.children].filter(child => child.checkVisibility() && !child.matches("script, .tip"))
      .map(child => [child, child.getBoundingClientRect()]).filter(([, box]) => box.width > 1 && box.height > 1);
    boxes.forEach(([one, a], n) => boxes.slice(n + 1).forEach(([two, b]) => {
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 1 && height > 1) found.push(`${one.tagName}.${one.className} and ${two.tagName}.${two.className}`);
    }));
  }
  return found;
}"""
"""Names pairs of neighbors that lie over each other."""

OUTSIDE = """() => [...document.querySelectorAll("main *")].filter(one => {
  if (!one.checkVisibility() || one.closest(".scroll, svg")) return false;
  const box = one.getBoundingClientRect();
  return box.width && (box.right > innerWidth + 1 || box.left < -1);
}).map(one => `${one.tagName}.${one.className}`)"""
"""Names what sticks out of the window, tables aside, which scroll inside of their frames."""

CONTRASTS = """() => {
  const numbers = color => {
    const found = color.match(/[\\d.]+/g).map(Number);
    return color.startsWith("color(") ? [...found.slice(0, 3).map(value => value * 255), ...found.slice(3)] : found;
  };
  const light = rgb => {
    const [r, g, b] = rgb.map(value => value / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = element => {  // a tint lets some of what is behind it through
    const [r, g, b, a = 1] = numbers(getComputedStyle(element).backgroundColor);
    if (a === 1 || !element.parentElement) return [r, g, b];
    return paper(element.parentElement).map((value, n) => value * (1 - a) + [r, g, b][n] * a);
  };
  const low = [];
  const texts = "main p, h1, h2, h3, h4, td, th, dt, dd, .contents a, .ws-chip, button";
  for (const one of document.querySelectorAll(texts)) {
    if (!one.checkVisibility() || !one.textContent.trim()) continue;
    const [a, b] = [light(numbers(getComputedStyle(one).color).slice(0, 3)), light(paper(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${one.tagName}.${one.className} ${one.textContent.slice(0, 20)}`);
  }
  return low;
}"""
"""Names texts whose contrast is below the 4.5 of WCAG AA."""


class Page:
    """A page and what happened on it."""

    def __init__(self, page) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    def is_sound(self) -> None:
        """Nothing was loaded but the file, nothing failed, nothing sticks out or lies over something else."""
        assert self.said == []
        assert [url for url in self.asked if not url.startswith(("file:", "blob:", "data:"))] == []
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert self.page.evaluate(OUTSIDE) == []
        assert self.page.evaluate(OVERLAPS) == []


@contextmanager
def chromium() -> Iterator[object]:
    """A browser, or a skipped test where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@contextmanager
def opened(browser, path: Path, width: int = 1280, scheme: str = "light") -> Iterator[Page]:
    """The file in a new window."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, has_touch=width < 600, accept_downloads=True
    )
    page = Page(context.new_page())
    page.page.goto(path.resolve().as_uri())
    yield page
    context.close()
