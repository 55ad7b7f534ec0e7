"""Random documents for the tests of scoring: any shape of overlap, or as tame as another scorer needs them."""

import random

from wingspan.text import Document, Entity, Span

LABELS = ("gene", "drug", "a b")


def document(entities, id="d"):
    return Document(id, "x" * 60, tuple(entities))


def span(rng, length=12):
    start = rng.randrange(length)
    return Span(start, rng.randint(start + 1, min(length, start + 5)))


def entity(rng, discontinuous=0.3):
    """Nested, crossing, multi-label and discontinuous entities are all likely on a text this short."""
    spans = {span(rng)}
    while rng.random() < discontinuous:
        spans.add(span(rng))
    return Entity(rng.choice(LABELS), tuple(spans))


def wild(rng, most=5):
    """Two sides that know something of each other."""
    gold = [entity(rng) for _ in range(rng.randint(0, most))]
    found = [
        e if rng.random() < 0.4 else Entity(rng.choice(LABELS), e.spans) if rng.random() < 0.3 else entity(rng)
        for e in gold
        if rng.random() < 0.8
    ]
    found += [entity(rng) for _ in range(rng.randint(0, most - len(found)))] if len(found) < most else []
    return gold, found


def tame(rng, slots=5):
    """Both sides flat, and every entity overlaps at most one of the other side: slots of ten words are independent."""
    gold, found = [], []
    for slot in range(slots):
        for side in (gold, found):
            if rng.random() < 0.7:
                start = rng.randrange(3)
                if side is found and gold and gold[-1].start // 10 == slot and rng.random() < 0.4:
                    side.append(Entity(rng.choice(LABELS), gold[-1].spans))
                else:
                    side.append(Entity.at(rng.choice(LABELS), slot * 10 + start, slot * 10 + start + rng.randint(1, 6)))
    return gold, found


def generator(seed):
    return random.Random(seed)
