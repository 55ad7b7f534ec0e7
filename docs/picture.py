"""Draws docs/demo.svg, the picture of the README: entities that nest and entities in pieces, as a terminal shows them.

python docs/picture.py
"""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from wingspan.text import Document, Entity, Span
from wingspan.views.terminal import legend, show

LABELS = ("Anatomy", "Chemical", "Disease", "Gene", "Organism")
SENTENCES: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    (
        "Loss of the interleukin 2 receptor alpha chain caused colitis and lupus nephritis in mice.",
        (
            ("Gene", "interleukin 2"),
            ("Gene", "interleukin 2 receptor"),
            ("Gene", "interleukin 2 receptor alpha chain"),
            ("Disease", "colitis"),
            ("Disease", "lupus nephritis"),
            ("Organism", "mice"),
        ),
    ),
    (
        "Aspirin lowered the risk of colon, breast and lung cancer, but not that of heart failure.",
        (
            ("Chemical", "Aspirin"),
            ("Anatomy", "colon"),
            ("Anatomy", "breast"),
            ("Anatomy", "lung"),
            ("Disease", "colon", "cancer"),
            ("Disease", "breast", "cancer"),
            ("Disease", "lung cancer"),
            ("Anatomy", "heart"),
            ("Disease", "heart failure"),
        ),
    ),
)
DARK, LIGHT = (31, 35, 40), (255, 255, 255)
THEME = TerminalTheme(LIGHT, DARK, [DARK] * 8, [DARK] * 8)
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
COLUMNS = 94
WIDTH = 1200  # 94 columns of 12.2 and a margin
# rich's own template loads a font from the net and draws a window around the text; this one needs neither
CARD = f"""<svg viewBox="0 0 {WIDTH} {{height}}" xmlns="http://www.w3.org/2000/svg">
<style>
.{{unique_id}}-matrix {{{{ font-family: {FONTS}; font-size: {{char_height}}px; }}}}
{{styles}}
</style>
<defs>
{{lines}}
</defs>
<rect x="1" y="1" width="{WIDTH - 2}" height="99%" rx="10" fill="#ffffff" stroke="#d1d9e0"/>
<g class="{{unique_id}}-matrix" transform="translate(32, 20)">
{{matrix}}
</g>
</svg>
"""


def document(text: str, mentions: tuple[tuple[str, ...], ...]) -> Document:
    """A document from its text and, for each entity, the label and the pieces as they follow each other in the text."""
    entities = []
    for label, *pieces in mentions:
        at, spans = 0, []
        for piece in pieces:
            start = text.index(piece, at)
            at = start + len(piece)
            spans.append(Span(start, at))
        entities.append(Entity(label, tuple(spans)))
    return Document("picture", text, tuple(entities))


def picture() -> str:
    """The drawing as SVG."""
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, force_terminal=True, color_system="truecolor")
    for text, mentions in SENTENCES:
        show(document(text, mentions), console, labels=LABELS)
        console.print(Text())
    legend(LABELS, console)
    return console.export_svg(theme=THEME, code_format=CARD, unique_id="wingspan")


if __name__ == "__main__":
    Path(__file__).with_name("demo.svg").write_text(picture(), encoding="utf-8")
