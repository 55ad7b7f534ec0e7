"""Tags to spans and back: IOB1, IOB2, BIOES, BILOU, BMES (also BMEWO) and IO (labels without prefixes)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

TaggedSpan = tuple[str, int, int]
"""A label and a half-open range of words."""

UNTYPED = "ENTITY"
"""The label of tags that are a bare prefix, as in corpora with one class (`B`, `I`, `O`)."""

_PREFIXED = re.compile(r"([BIMELSUW])[-_](.+)", re.DOTALL)
_BARE = re.compile(r"[BIMELSUW]")
_OUTSIDE = frozenset({"O", "", "-", "_"})
# every scheme says the same four things with other letters
_ROLES = {
    "B": "begin",
    "I": "inside",
    "M": "inside",
    "E": "end",
    "L": "end",
    "S": "single",
    "U": "single",
    "W": "single",
}
_CLOSES_EXPLICITLY = frozenset({"BIOES", "BILOU", "BMES"})
SCHEMES = ("IOB1", "IOB2", "BIOES", "BILOU", "BMES", "IO")


def detect_scheme(tag_sequences: Iterable[Sequence[str]]) -> str:
    """The scheme that the tags follow, or break least: a corpus without entities counts as IOB2."""
    letters: set[str] = set()
    starts_inside = False  # some entity starts with I-, which IOB2 forbids
    begins_apart = False  # some B- does not follow an entity of its own label, which IOB1 forbids
    unprefixed = False
    for tags in tag_sequences:
        before: str | None = None
        for tag in tags:
            letter, label = parse(tag)
            if letter:
                letters.add(letter)
                starts_inside |= letter == "I" and before != label
                begins_apart |= letter == "B" and before != label
            elif label is not None:
                unprefixed = True
            before = label
    if letters & {"M", "W"}:
        return "BMES"
    if letters & {"L", "U"}:
        return "BILOU"
    if letters & {"E", "S"}:
        return "BIOES"
    if not letters and unprefixed:
        return "IO"
    return "IOB1" if starts_inside and not begins_apart else "IOB2"


@lru_cache(maxsize=65536)  # a corpus has few tags and asks for each of them at every word
def parse(tag: str) -> tuple[str, str | None]:
    """A tag's prefix letter ("" if it has none) and its label (None outside of entities)."""
    if tag in _OUTSIDE:
        return "", None
    if found := _PREFIXED.fullmatch(tag):
        return found[1], found[2]
    if _BARE.fullmatch(tag):
        return tag, UNTYPED
    return "", tag


def spans_of(tags: Sequence[str], scheme: str) -> tuple[list[TaggedSpan], int]:
    """The spans of one sentence, and how many tags broke the scheme.

    A broken tag never loses a word: an entity without a beginning begins where it is met, and one without an end goes
    on to its last word, as conlleval reads them.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"unknown tagging scheme {scheme!r}; use one of {', '.join(SCHEMES)}")
    spans: list[TaggedSpan] = []
    repairs = 0
    start, label = 0, None  # the entity that is open

    def close(end: int) -> None:
        if label is not None:
            spans.append((label, start, end))

    for at, tag in enumerate(tags):
        letter, new = _untyped_as_label(tag) if scheme == "IO" else parse(tag)
        role = _ROLES.get(letter, "inside")
        goes_on = new is not None and new == label and role in ("inside", "end")
        if not goes_on:
            repairs += label is not None and scheme in _CLOSES_EXPLICITLY
            close(at)
            start, label = at, new
            repairs += new is not None and role in ("inside", "end") and scheme not in ("IOB1", "IO")
        if new is not None and role in ("end", "single"):
            close(at + 1)
            label = None
    repairs += label is not None and scheme in _CLOSES_EXPLICITLY
    close(len(tags))
    return spans, repairs


def _untyped_as_label(tag: str) -> tuple[str, str | None]:
    return "", None if tag in _OUTSIDE else tag


def tags_of(n_words: int, entities: Iterable[TaggedSpan]) -> list[list[str]]:
    """IOB2 tags in as many layers as nesting asks for, at least one; the outermost entities are in the first."""
    layers = [["O"] * n_words]
    for label, start, end in sorted(entities, key=lambda entity: (entity[1], -entity[2], entity[0])):
        if not 0 <= start < end <= n_words:
            raise ValueError(
                f"entity {label!r} at words {start}-{end} does not fit {n_words} words; ends are half-open"
            )
        for tags in layers:
            if all(tag == "O" for tag in tags[start:end]):
                break
        else:
            tags = ["O"] * n_words
            layers.append(tags)
        tags[start:end] = [f"B-{label}"] + [f"I-{label}"] * (end - start - 1)
    return layers
