"""A component of spaCy: `nlp.add_pipe("wingspan", config={"model": "runs/mine"})`. Needs the extra `spacy`.

spaCy finds it by the entry point `spacy_factories` and imports it wherever it starts, so torch is imported later.
Every entity becomes a span of `doc.spans`, and of `doc.ents` where none overlaps another. spaCy's spans are made of its
tokens: an entity that begins or ends inside of one is widened to whole tokens, one of several fragments is the span
over all of them, and a warning says so; `attrs["fragments"]` of the span group has the characters as they were found,
and `attrs["scores"]` the scores.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import srsly
from spacy.language import Language
from spacy.tokens import Doc, SpanGroup
from spacy.util import ensure_path, filter_spans

from wingspan.corpora.formats.docbin import SPANS_KEY
from wingspan.text import Document

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer

FOLDER = "model"  # of a saved pipeline, inside the folder of this component
SETTINGS = {
    "spans_key": SPANS_KEY,
    "ents": True,
    "threshold": None,
    "overlap": None,
    "dataset": None,
    "device": None,
    "precision": "auto",
}


@Language.factory("wingspan", assigns=["doc.spans", "doc.ents"], default_config={"model": "", **SETTINGS})
def make_component(
    nlp: Language,
    name: str,
    model: str,
    spans_key: str,
    ents: bool,
    threshold: float | dict[str, float] | None,
    overlap: str | None,
    dataset: str | None,
    device: str | None,
    precision: str,
) -> EntitySpans:
    """A component with a model folder, a hub id, or the installed model."""
    return EntitySpans(model, spans_key, ents, threshold, overlap, dataset, device, precision)


class EntitySpans:
    """Adds the entities of a model to Docs."""

    def __init__(
        self,
        model: str,
        spans_key: str,
        ents: bool,
        threshold: float | dict[str, float] | None,
        overlap: str | None,
        dataset: str | None,
        device: str | None,
        precision: str,
    ) -> None:
        self.model, self.spans_key, self.ents = model, spans_key, ents
        self.options: dict[str, Any] = {"threshold": threshold, "overlap": overlap, "dataset": dataset}
        self.where: dict[str, Any] = {"device": device, "precision": precision}
        self.warned = False
        # a saved pipeline is made with the name of the folder that it was trained in, which may be gone; its own model
        # is loaded after that, by `from_disk`
        self._recognizer = self._load(model) if model and Path(model).is_dir() else None

    def _load(self, model: str | Path | None) -> Recognizer:
        from wingspan.recognizer import load

        return load(model, **self.where)

    @property
    def recognizer(self) -> Recognizer:
        """The model, without a name the installed one; what is no folder is looked for when it is first used."""
        if self._recognizer is None:
            self._recognizer = self._load(self.model or None)
        return self._recognizer

    def __call__(self, doc: Doc) -> Doc:
        """The Doc with its entities."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 256) -> Iterator[Doc]:
        """The Docs with their entities, predicted in batches."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            found = self.recognizer.predict([doc.text for doc in batch], **self.options)
            for doc, document in zip(batch, found, strict=True):
                self._fill(doc, document)
                yield doc

    def _fill(self, doc: Doc, document: Document) -> None:
        entities = document.entities
        spans: list[Any] = [
            doc.char_span(*entity.hull, label=entity.label, alignment_mode="expand") for entity in entities
        ]
        group = SpanGroup(doc, name=self.spans_key, spans=spans)
        group.attrs["scores"] = [entity.score for entity in entities]
        group.attrs["fragments"] = [[list(fragment) for fragment in entity.spans] for entity in entities]
        doc.spans[self.spans_key] = group
        flat = all(one.end <= other.start for one, other in pairwise(entities))
        kept = filter_spans(spans) if flat else []  # of two that share a token, the longer one
        if self.ents and flat:
            doc.ents = kept
        moved = [e for e, span in zip(entities, spans, strict=True) if e.spans != ((span.start_char, span.end_char),)]
        if (moved or (flat and len(kept) < len(spans))) and not self.warned:
            self.warned = True  # one line, not one for each Doc
            example = document.text_of((moved or entities)[0])
            warnings.warn(
                f"entities that are no whole tokens of spaCy, such as {example!r}, are widened to them; "
                f"doc.spans[{self.spans_key!r}].attrs['fragments'] has the characters",
                stacklevel=2,
            )

    # Saving: the whole model goes with the pipeline

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Writes the model folder into that of the component."""
        self.recognizer.save_pretrained(ensure_path(path) / FOLDER)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> EntitySpans:
        """Loads the model of a saved pipeline."""
        self._recognizer = self._load(ensure_path(path) / FOLDER)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The files of the model folder."""
        with TemporaryDirectory() as folder:
            self.recognizer.save_pretrained(folder)
            files = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
            packed: bytes = srsly.msgpack_dumps(
                {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
            )
        return packed

    def from_bytes(self, content: bytes, *, exclude: Iterable[str] = ()) -> EntitySpans:
        """Loads the model from the files of its folder."""
        with TemporaryDirectory() as folder:
            for name, data in srsly.msgpack_loads(content).items():
                path = Path(folder, name)
                if not path.resolve().is_relative_to(Path(folder).resolve()):
                    raise ValueError(f"the pipeline has a file {name!r} outside of its model folder; it is refused")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            self._recognizer = self._load(folder)
        return self
