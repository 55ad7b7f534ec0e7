"""JSON of annotation tools, all in characters: doccano, Prodigy, Label Studio.

doccano has one text per line, with `label` as [start, end, label] rows, or with `entities` and `relations` that have
ids. Prodigy has one task per line, with spans and with tokens that carry their offsets. Label Studio has a JSON list of
tasks, in the full export and in JSON-MIN.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import ALL, Format, Holds, records
from wingspan.corpora.formats.records import Json, Misfit, RecordRef
from wingspan.corpora.words import WordRanges
from wingspan.files import Problems
from wingspan.text import Document, Entity, Span

_HOLDS = Holds(discontinuous=False, groups=True, scores=True, document_keys=ALL, entity_keys=ALL)


# doccano

_DOCCANO_OWN = frozenset({"id", "text", "label", "labels", "entities"})
_DOCCANO_ENTITY = records.EntityKeys("label", "start_offset", "end_offset", score=False)


def _from_doccano(record: Json, ref: RecordRef) -> Iterator[Document]:
    """A text of either export. Relations, comments and other columns are kept in `meta`."""
    text = records.text_of(record.get("text"), "text")
    if "annotations" in record and not {"label", "labels", "entities"} & set(record):
        raise Misfit("'annotations' names labels by number only; export from doccano as JSONL with label names")

    def from_row(value: Any) -> Entity:
        row = records.list_of(value, "an entity")
        if len(row) != 3:
            raise Misfit(f"{len(row)} values where [start, end, label] has three")
        return Entity(records.label_of(row[2]), (records.span_of(row[0], row[1], len(text)),))

    entities = records.gather(records.list_of(record.get("label", record.get("labels")), "label"), from_row, ref)
    objects = records.list_of(record.get("entities"), "entities")
    entities += records.gather(objects, lambda value: _DOCCANO_ENTITY.read(value, text), ref)
    yield Document(
        records.identity(record, "id", ref.name), text, entities, **records.common_fields(record, _DOCCANO_OWN)
    )


def _to_doccano(document: Document) -> Json:
    """With `label` rows, or with `entities` for a document that has relations or keys of entities to keep."""
    records.refuse_fragments(document, "doccano")
    record: Json = {"id": records.numeric(document.id), "text": document.text}
    if "relations" in document.meta or any(entity.meta for entity in document.entities):
        record["entities"] = [_DOCCANO_ENTITY.write(entity, entity.hull) for entity in document.entities]
    else:
        record["label"] = [[entity.start, entity.end, entity.label] for entity in document.entities]
    return records.with_common_fields(record, document, _DOCCANO_OWN)


DOCCANO = records.json_format("doccano", _from_doccano, _to_doccano, replace(_HOLDS, scores=False))


# Prodigy

_TOKEN_KEYS = frozenset({"text", "start", "end", "id", "ws"})
_PRODIGY_OWN = frozenset({"id", "text", "tokens", "spans", "answer"})
# where a span lies in tokens (with an inclusive end) follows from its characters
_PRODIGY_ENTITY = records.EntityKeys("label", surface="text", derived=("token_start", "token_end"))


def _read_prodigy(path: Path, problems: Problems) -> Iterator[Document]:
    """The accepted tasks. Rejected and ignored ones are not gold data: they are left out, and a note counts them."""
    left_out = 0
    unkept: set[str] = set()

    def build(record: Json, ref: RecordRef) -> Iterator[Document]:
        nonlocal left_out
        if record.get("answer", "accept") != "accept":
            left_out += 1
            return
        text = records.text_of(record.get("text"), "text")
        words = None if record.get("tokens") is None else _words(records.list_of(record["tokens"], "tokens"), text)
        unkept.update(key for token in record.get("tokens") or () for key in token.keys() - _TOKEN_KEYS)
        spans = records.list_of(record.get("spans"), "spans")
        entities = records.gather(spans, lambda value: _PRODIGY_ENTITY.read(value, text), ref)
        name, fields = records.identity(record, "id", ref.name), records.common_fields(record, _PRODIGY_OWN)
        yield Document(name, text, entities, words=words, **fields)

    yield from records.read_documents(path, problems, build)
    if left_out:
        problems.note(path, f"{left_out} tasks whose answer is not 'accept' are left out")
    if unkept:
        problems.note(path, f"{', '.join(map(records.shorten, sorted(unkept)[:5]))} of tokens is not kept")


def _words(tokens: list[Any], text: str) -> tuple[Span, ...]:
    words: list[Span] = []
    for at, value in enumerate(tokens):
        token = records.record_of(value, f"token {at}")
        try:
            span = records.span_of(token.get("start"), token.get("end"), len(text))
            records.same_surface(text[span.start : span.end], token.get("text"), span)
        except Misfit as misfit:
            raise Misfit(f"token {at}: {misfit}") from None
        if words and span.start < words[-1].end:
            raise Misfit(f"token {at} overlaps the one before it; tokens have to stand in the order of the text")
        words.append(span)
    return tuple(words)


def _to_prodigy(document: Document, **decided: str) -> Json:
    """A task, with tokens where the document gives words, and with the answer if it was given."""
    records.refuse_fragments(document, "Prodigy")
    text, words = document.text, document.words
    record: Json = {"id": document.id, "text": text}
    if words is not None:
        record["tokens"] = [
            {"text": text[start:end], "start": start, "end": end, "id": at, "ws": text[end : end + 1] == " "}
            for at, (start, end) in enumerate(words)
        ]
    record["spans"] = []
    ranges = WordRanges(words or ())
    for entity in document.entities:
        row: Json = {"start": entity.start, "end": entity.end, "label": entity.label}
        if inside := ranges.exact(entity.hull):
            row |= {"token_start": inside.start, "token_end": inside.end - 1}
        if entity.score != 1.0:
            row["score"] = entity.score
        record["spans"].append(records.with_meta(row, entity.meta, _PRODIGY_ENTITY.own))
    return records.with_common_fields({**record, **decided}, document, _PRODIGY_OWN)


def _write_prodigy(documents: Iterable[Document], path: Path) -> None:
    """Annotations: tasks that were accepted."""
    records.write_lines((_to_prodigy(document, answer="accept") for document in documents), path)


def _write_prodigy_predictions(documents: Iterable[Document], path: Path, model: str) -> None:
    """Tasks to be answered; Prodigy shows below a text what is in its `meta`."""

    def task(document: Document) -> Json:
        shown = document.meta.get("meta")
        about = {**(shown if isinstance(shown, dict) else {}), "model": model}
        return _to_prodigy(replace(document, meta={**document.meta, "meta": about}))

    records.write_lines(map(task, documents), path)


PRODIGY = Format(
    "prodigy",
    _read_prodigy,
    _write_prodigy,
    replace(_HOLDS, words=True),
    write_predictions=_write_prodigy_predictions,
)


# Label Studio. Older versions counted in UTF-16 units, and browsers count CR LF as one character; the surface text of
# each region shows which unit a task uses.

_LABEL_STUDIO_OWN = frozenset({"id", "data", "annotations"})
_REGION_OWN = frozenset({"value", "type", "score"})
_VALUE_OWN = frozenset({"start", "end", "text", "labels"})
_PREDICTIONS = "predictions"  # the key of a task, and in `meta`, for what models found
_OTHER_RESULTS = "label_studio_results"  # the key in `meta` for results that are not spans: relations, choices, text
_ABOUT = "label_studio_annotation"  # the key in `meta` for who annotated, when, and the like
_TEXT_KEY = "label_studio_text"  # the key in `meta` for the name of the text in the data, where it is another one
_VALUE = "label_studio_value"  # the key in the `meta` of entities for other values of a region


def _from_label_studio(record: Json, ref: RecordRef) -> Iterator[Document]:
    """One document for each annotation of a task that was not cancelled; the documents of a task share a group."""
    name = records.identity(record, "id", ref.name)
    if "data" not in record:  # JSON-MIN: the task has the keys of the data, and one list of values without regions
        text = records.text_of(record.get("text"), "text")
        rows = [{"type": "labels", "value": row} for row in records.list_of(record.get("label"), "label")]
        fields = records.common_fields(record, _LABEL_STUDIO_OWN | {"text", "label"})
        yield Document(name, text, _regions(rows, text, ref), **fields)
        return
    data = dict(records.record_of(record["data"], "data"))
    strings = [key for key, value in data.items() if isinstance(value, str)]
    if "text" not in strings and ("text" in data or len(strings) != 1):
        raise Misfit(f"data has {len(strings)} strings and none is named 'text'; rename the one that was annotated")
    key = "text" if "text" in strings else strings[0]
    text = records.text_of(data.pop(key), key)
    kept_apart = {"data": data, _TEXT_KEY: key if key != "text" else ""}
    fields = records.common_fields(
        record, _LABEL_STUDIO_OWN, **{name: kept for name, kept in kept_apart.items() if kept}
    )
    annotations = records.records_of(record.get("annotations"), "annotations", "an annotation")
    if "annotations" not in record and record.get(_PREDICTIONS):  # nobody was asked: a file of predictions
        predicted = records.records_of(fields["meta"].pop(_PREDICTIONS), _PREDICTIONS, "a prediction")
        annotations, others = predicted[:1], predicted[1:]
        fields["meta"] |= {_PREDICTIONS: others} if others else {}
        ref.problems.note(ref.path, "its tasks have no annotations; the first prediction of each is read")
    done = [item for item in annotations if item.get("was_cancelled") is not True]
    chosen = [item for item in done if item.get("ground_truth") is True] or done
    if len(annotations) > 1 or len(done) < len(annotations):
        ref.problems.note(ref.path, f"task {name}: {len(chosen)} of {len(annotations)} annotations are used")
    if len(chosen) > 1:
        fields["group"] = fields["group"] or name
    for number, annotation in enumerate(chosen or [{}]):
        results = records.records_of(annotation.get("result"), "result", "a result")
        regions, others = list[Json](), list[Json]()
        for item in results:
            labeled = isinstance(item.get("value"), dict) and "labels" in item["value"]
            (regions if labeled else others).append(item)
        by_people = "annotations" in record
        about = {key: value for key, value in annotation.items() if key != "result" and by_people}
        kept = {key: value for key, value in ((_OTHER_RESULTS, others), (_ABOUT, about)) if value}
        meta = {**fields["meta"], **kept}
        entities = _regions(regions, text, ref)
        yield Document(f"{name}-{number + 1}" if number else name, text, entities, **{**fields, "meta": meta})


def _regions(rows: list[Json], text: str, ref: RecordRef) -> tuple[Entity, ...]:
    """The regions in the unit in which most of the surface texts fit; a region with two labels is two entities."""
    values = [row["value"] for row in rows if isinstance(row["value"], dict)]
    values = [value for value in values if isinstance(value.get("text"), str)]

    def fitting(unit: str) -> int:
        table = records.positions(text, unit)
        count = 0
        for value in values:
            start, end = value.get("start"), value.get("end")
            if isinstance(start, int) and isinstance(end, int) and 0 <= start < end < len(table):
                count += text[table[start] : table[end]].split() == _plain(value["text"]).split()
        return count

    unit = records.UNITS[0]
    if fitting(unit) < len(values):
        unit = max(records.UNITS, key=fitting)  # the first of equals
    if unit != records.UNITS[0]:
        ref.problems.note(ref.path, f"record {ref.number}: offsets count {unit}, as the surface texts show")
    table = records.positions(text, unit)
    pairs: list[tuple[Json, Any]] = []
    for row in rows:
        labels = row["value"].get("labels") if isinstance(row["value"], dict) else None
        pairs += [(row, label) for label in (labels if isinstance(labels, list) and labels else [None])]
    return records.gather(pairs, lambda pair: _region(pair[0], pair[1], text, table), ref)


def _plain(surface: str) -> str:
    return surface.replace("\\n", "\n")  # line ends in surface texts are written as a backslash and an n


def _region(row: Json, label: Any, text: str, table: Sequence[int]) -> Entity:
    value = records.record_of(row["value"], "value")
    if not {"start", "end"} <= set(value) or isinstance(value["start"], str):
        raise Misfit("a region without offsets into the text, as HTML has them; export the plain text instead")
    raw = records.span_of(records.whole(value["start"], "start"), records.whole(value["end"], "end"), len(table) - 1)
    span = records.span_of(table[raw.start], table[raw.end], len(text))
    surface = value.get("text")
    records.same_surface(text[span.start : span.end], _plain(surface) if isinstance(surface, str) else surface, span)
    meta = records.other_keys(row, _REGION_OWN)
    if row.get("type", "labels") != "labels":
        meta["type"] = row["type"]
    if others := {key: value[key] for key in value.keys() - _VALUE_OWN}:
        meta[_VALUE] = others
    return Entity(records.label_of(label), (span,), records.score_of(row.get("score")), meta)


def _to_label_studio(document: Document) -> Json:
    """A task with one annotation."""
    about = document.meta.get(_ABOUT)
    return _task(
        document, {"annotations": [{**(about if isinstance(about, dict) else {}), "result": _results(document)}]}
    )


def _results(document: Document, control: str = "label", text: str = "text") -> list[Json]:
    """The regions in code points, as Label Studio counts since 2021, and what else was annotated."""
    records.refuse_fragments(document, "Label Studio")
    results: list[Json] = []
    for number, entity in enumerate(document.entities):
        others = entity.meta.get(_VALUE)
        value = {**(others if isinstance(others, dict) else {}), "start": entity.start, "end": entity.end}
        value |= {"text": document.text_of(entity), "labels": [entity.label]}
        row: Json = {"id": f"entity-{number}", "from_name": control, "to_name": text, "type": "labels"}
        row |= {"value": value} | ({} if entity.score == 1.0 else {"score": entity.score})
        meta = {key: value for key, value in entity.meta.items() if key != _VALUE}
        results.append(row | records.with_meta({}, meta, _REGION_OWN - {"type"}))
    return [*results, *document.meta.get(_OTHER_RESULTS, [])]


def _task(document: Document, work: Json) -> Json:
    """A task with what was done on it."""
    meta = {key: value for key, value in document.meta.items() if key not in (_OTHER_RESULTS, _ABOUT, *work)}
    data, key = meta.pop("data", {}), str(meta.pop(_TEXT_KEY, "text"))
    record = {
        "id": records.numeric(document.id),
        "data": {**(data if isinstance(data, dict) else {}), key: document.text},
        **work,
    }
    return records.with_common_fields(record, replace(document, meta=meta), _LABEL_STUDIO_OWN)


def label_studio_prediction(document: Document, model: str, control: str = "label", text: str = "text") -> Json:
    """The entities as a model's prediction, for the tags of these names in a labeling interface.

    Its score is that of its least certain entity, for Label Studio can show uncertain tasks first.
    """
    entities = document.entities
    rows = zip(_results(document, control, text), entities, strict=False)
    score = {"score": min(entity.score for entity in entities)} if entities else {}
    return {"model_version": model, **score, "result": [{**row, "score": entity.score} for row, entity in rows]}


def _write_label_studio_predictions(documents: Iterable[Document], path: Path, model: str) -> None:
    """Tasks to be annotated, with the prediction before those they came with."""

    def task(document: Document) -> Json:
        earlier = document.meta.get(_PREDICTIONS)
        others = earlier if isinstance(earlier, list) else []
        return _task(document, {_PREDICTIONS: [label_studio_prediction(document, model), *others]})

    records.write_list(map(task, documents), path)


LABEL_STUDIO = replace(
    records.json_format("label-studio", _from_label_studio, _to_label_studio, _HOLDS, as_list=True),
    write_predictions=_write_label_studio_predictions,
)
