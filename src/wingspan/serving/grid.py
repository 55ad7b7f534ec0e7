"""The span grid of one sentence: a score for every span and label, by start and width, through `Recognizer` alone."""

from typing import TYPE_CHECKING, Any

import numpy as np

from wingspan.text import Document, Sentence, Span

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

MOST_LABELS = 40  # each is one pass over the sentence
NEVER = 1.0  # a threshold that keeps a label from hiding another one of the same span


def span_grid(recognizer: "Recognizer", text: str, at: int = 0, dataset: str | None = None) -> dict[str, Any]:
    """The words of the sentence with character `at`, and the scores of all spans that the model scores, by label.

    `grids[label][width - 1][start]` is a score in thousandths; None is a span that the model does not score.
    """
    labels = recognizer.labels.types[dataset or recognizer.labels.target][:MOST_LABELS]
    sentence = sentence_at(list(recognizer.segment(Document("0", text))), at)
    if sentence is None:
        return {"words": [], "labels": list(labels), "grids": {label: [] for label in labels}}
    words = [Span(*row) for row in sentence.offsets[sentence.core.start : sentence.core.end].tolist()]
    first, last = words[0].start, words[-1].end
    starts, ends = ({getattr(word, edge): n for n, word in enumerate(words)} for edge in ("start", "end"))
    # the document is predicted whole, so that the sentence keeps its context
    found = {label: scores(recognizer, text, label, labels, dataset) for label in labels}
    inside = {
        label: [(starts[start], ends[end], score) for start, end, score in rows if start in starts and end in ends]
        for label, rows in found.items()
    }
    widest = max((end - start + 1 for rows in inside.values() for start, end, _ in rows), default=0)
    grids: dict[str, list[list[int | None]]] = {}
    for label, rows in inside.items():
        grid = np.full((widest, len(words)), -1, dtype=np.int64)
        for start, end, score in rows:
            grid[end - start, start] = round(1000 * score)
        grids[label] = [[None if value < 0 else value for value in row] for row in grid.tolist()]
    offsets = [[word.start, word.end] for word in words]
    return {"start": first, "end": last, "words": offsets, "labels": list(labels), "grids": grids}


def sentence_at(sentences: list[Sentence], at: int) -> Sentence | None:
    """The sentence or window whose core has this character, or the next one; the last where there is none."""
    with_words = [sentence for sentence in sentences if sentence.core.end > sentence.core.start]
    for sentence in with_words:
        if at < int(sentence.offsets[sentence.core.end - 1, 1]):
            return sentence
    return with_words[-1] if with_words else None


def scores(
    recognizer: "Recognizer", text: str, label: str, labels: tuple[str, ...], dataset: str | None
) -> list[tuple[int, int, float]]:
    """The scores of one label for all spans in one piece."""
    threshold = {name: 0.0 if name == label else NEVER for name in labels}
    (document,) = recognizer.predict(text, threshold=threshold, overlap="any", dataset=dataset)
    return [
        (entity.start, entity.end, entity.score)
        for entity in document.entities
        if entity.label == label and not entity.discontinuous
    ]
