"""Offsets in other units than code points: UTF-16 units, and texts in which a browser made one character of CR LF."""

from __future__ import annotations

from collections.abc import Sequence

ASTRAL = 0xFFFF
"""Code points above this one are two units in UTF-16, which is what JavaScript counts in."""

UNITS = ("code points", "utf-16", "code points, CR LF as one", "utf-16, CR LF as one")


def positions(text: str, unit: str) -> Sequence[int]:
    """Where each offset of the unit lies in code points; half of a character lies at its start. The end is included."""
    wide, joined = unit.startswith("utf-16"), unit.endswith("as one")
    if (not wide or text.isascii()) and not (joined and "\r\n" in text):
        return range(len(text) + 1)
    found: list[int] = []
    for at, character in enumerate(text):
        if joined and character == "\n" and text[at - 1 : at] == "\r":
            continue
        found.append(at)
        if wide and ord(character) > ASTRAL:
            found.append(at)
    found.append(len(text))
    return found
