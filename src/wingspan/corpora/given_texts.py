"""Whatever a user may hand in to be predicted, as a document."""

from __future__ import annotations

from collections.abc import Sequence

from wingspan.text import Document

Text = str | Document | Sequence[str]


def as_document(text: Text, number: int, split: bool) -> Document:
    """A text, a document, or the words of a text where that was said; anything else is refused."""
    if isinstance(text, Document):
        return text
    if isinstance(text, str):
        if split:
            raise ValueError(f"text {number} is a string, but is_split_into_words=True expects a list of words")
        return Document(str(number), text)
    if not isinstance(text, list | tuple):
        raise TypeError(f"text {number} is of type {type(text).__name__}; give a str, a Document, or a list of words")
    if not split:
        raise ValueError(f"text {number} is a list; pass is_split_into_words=True if these are the words of one text")
    odd = next((word for word in text if not isinstance(word, str) or not word), None)
    if odd is not None:
        raise ValueError(f"text {number} has the word {odd!r}; every word is a string that is not empty")
    return Document.from_words(str(number), tuple(text))
