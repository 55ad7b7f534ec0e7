"""A color for each label, the same in a terminal, on a page and in a figure."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

PALETTE = ("#0274e0", "#b06202", "#008923", "#db0ca0", "#028383", "#ec001a", "#9945f9", "#7f7803")
"""Eight hues of one luminance, which has a contrast of at least 4.5 to both black and white backgrounds."""


def label_colors(labels: Iterable[str]) -> dict[str, str]:
    """A color for each label; two share one only when there are more labels than colors.

    It follows from the name and gives way only to labels that come earlier in the alphabet, so it seldom changes.
    """
    colors: dict[str, str] = {}
    for label in sorted(set(labels)):
        first = zlib.crc32(label.encode("utf-8", "surrogatepass")) % len(PALETTE)
        turned = PALETTE[first:] + PALETTE[:first]
        colors[label] = next((color for color in turned if color not in colors.values()), turned[0])
    return colors
