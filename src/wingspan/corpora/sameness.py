"""When two texts are the same: letters and digits count; case, white space and signs do not.

A file of words has "( IL - 2 )" where a file of characters has "(IL-2)", and one source writes a quote or a dash
otherwise than the next: none of that makes another text.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())
_NEITHER = re.compile(r"[\W_]+")


def bare(text: str) -> str:
    """The letters and digits of a text, without case (NFKC, then case-folded); empty if there are none."""
    if text.isascii():
        return text.lower().encode("ascii").translate(None, _SIGNS).decode("ascii")
    return _NEITHER.sub("", unicodedata.normalize("NFKC", text).casefold())


def text_key(text: str) -> str:
    """What two texts share if they are the same: their letters and digits, or their signs where they have no others."""
    return bare(text) or "".join(text.split())


def bare_places(text: str) -> NDArray[np.int64]:
    """How many characters of `bare(text)` stand before each character of the text, and in all of it.  (len + 1,)"""
    kept = {character: len(bare(character)) for character in set(text)}
    return np.concatenate([[0], np.cumsum([kept[character] for character in text], dtype=np.int64)])
