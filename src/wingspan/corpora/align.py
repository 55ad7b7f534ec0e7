"""Gold entities from characters to words: which window owns them, and what to do with those off the word borders."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Literal

from wingspan.text import Document, Entity, Span

Misaligned = Literal["expand", "contract", "drop", "error"]
"""What becomes of an entity that starts or ends inside a word."""

Outcome = Literal["exact", "moved", "misaligned", "cut"]
"""What became of it: in words as in characters; on other borders; left out because of its borders, or of a window's."""

Record = Callable[[Entity, Outcome, Entity | None], None]
"""Hears of each entity of a document what became of it, and where it is in words if it was placed."""


class Gold:
    """Hands a document's entities to the windows that own their first words, from left to right, each one once."""

    def __init__(self, document: Document, misaligned: Misaligned, record: Record | None) -> None:
        """Starts before the first word; `record` hears what becomes of each entity."""
        self.document = document
        self.misaligned = misaligned
        self.record = record
        self.next = 0

    def place(self, words: Sequence[Span], core: Span, following: Span | None) -> tuple[Entity, ...]:
        """The entities whose first word is in the core, in words of the window, those that fit into it."""
        entities = self.document.entities
        last = words[core.end - 1]
        # the first word of an entity is the one it starts in, or, when it is contracted, the first one inside it
        owned_to = last.start if self.misaligned == "contract" else max(last.start, last.end - 1)
        if self.next == len(entities) or entities[self.next].start > owned_to:
            return ()
        starts, ends = [word.start for word in words], [word.end for word in words]
        found: dict[Entity, None] = {}  # two mentions moved to the same words are one
        while self.next < len(entities) and entities[self.next].start <= owned_to:
            entity = entities[self.next]
            self.next += 1
            if self._beyond(entity, following):
                self._tell(entity, "cut")
                continue
            spans, exact = self._in_words(entity, starts, ends)
            if not exact and self.misaligned == "error":
                raise ValueError(self._complaint(entity))
            if not spans or (not exact and self.misaligned == "drop"):
                self._tell(entity, "misaligned")
            elif not core.start <= spans[0].start < core.end:
                self._tell(entity, "cut")
            else:
                placed = Entity(entity.label, spans, entity.score, entity.meta)
                found.setdefault(placed)
                self._tell(entity, "exact" if exact else "moved", placed)
        return tuple(found)

    def close(self) -> None:
        """After the last window: what is left lies behind the last word."""
        for entity in self.document.entities[self.next :]:
            if self.misaligned == "error":
                raise ValueError(self._complaint(entity))
            self._tell(entity, "misaligned")
        self.next = len(self.document.entities)

    def _tell(self, entity: Entity, outcome: Outcome, placed: Entity | None = None) -> None:
        if self.record is not None:
            self.record(entity, outcome, placed)

    def _beyond(self, entity: Entity, following: Span | None) -> bool:
        """Whether the entity goes on into words after the window."""
        if following is None:
            return False
        if self.misaligned == "contract":
            return entity.end >= following.end and entity.end > following.start
        return entity.end > following.start

    def _in_words(self, entity: Entity, starts: list[int], ends: list[int]) -> tuple[tuple[Span, ...], bool]:
        """The fragments in words, and whether every border of theirs is a word's; without a word there is none."""
        fragments: list[Span] = []
        exact = True
        for start, end in entity.spans:
            first, last = bisect_left(starts, start), bisect_right(ends, end) - 1
            on_start = first < len(starts) and starts[first] == start
            on_end = last >= 0 and ends[last] == end
            exact = exact and on_start and on_end and first <= last
            if self.misaligned != "contract":
                first = first if on_start else bisect_right(ends, start)
                last = last if on_end else bisect_left(starts, end) - 1
            if first > last:
                continue
            if fragments and first < fragments[-1].end:  # two fragments in one word have become one
                exact = False
                fragments[-1] = Span(fragments[-1].start, max(last + 1, fragments[-1].end))
            else:
                fragments.append(Span(first, last + 1))
        return tuple(fragments), exact

    def _complaint(self, entity: Entity) -> str:
        return (
            f"document {self.document.id!r}: {entity.label} {self.document.text_of(entity)[:80]!r} at characters"
            f" {entity.start}-{entity.end} does not start and end with a word; correct it, or use misaligned=expand"
        )
