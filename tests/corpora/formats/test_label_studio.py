"""Schemas: https://labelstud.io/guide/export (JSON and JSON_MIN), https://labelstud.io/tags/labels.

UTF-16 offsets were written until https://github.com/HumanSignal/label-studio/pull/1559.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wingspan.corpora.formats import annotators, write, write_predictions
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity, without_gold

FIXTURE = Path(__file__).parent / "fixtures" / "label-studio.json"


def region(start: object, end: object, text: str, *labels: str) -> dict[str, Any]:
    value = {"start": start, "end": end, "text": text, "labels": list(labels)}
    return {"id": "r", "from_name": "label", "to_name": "text", "type": "labels", "value": value}


def task(text: str, *results: dict[str, Any]) -> dict[str, Any]:
    return {"id": 5, "data": {"text": text}, "annotations": [{"id": 1, "result": list(results)}]}


def read(tmp_path: Path, *tasks: dict[str, Any], problems: Problems | None = None) -> list[Any]:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(list(tasks)), encoding="utf-8")
    return list(annotators.LABEL_STUDIO.read(path, problems or Problems()))


def test_utf16_offsets_are_found_by_the_surface_texts_and_noted() -> None:
    problems = Problems()
    first, second, third = annotators.LABEL_STUDIO.read(FIXTURE, problems)
    assert [(e.label, first.text_of(e)) for e in first.entities] == [
        ("PER", "Karin"),
        ("LOC", "Turku"),
        ("FAC", "Åbo Castle"),
        ("LOC", "Åbo Castle"),
    ]
    assert second.text_of(second.entities[0]) == "Karin"
    assert (third.text, third.entities) == ("Not annotated yet.", ())
    assert problems.notes == [f"{FIXTURE}: record 1: offsets count utf-16, as the surface texts show"]


def test_code_points_are_taken_as_they_are(tmp_path: Path) -> None:
    problems = Problems()
    (document,) = read(tmp_path, task("😀😀 in Ribe", region(6, 10, "Ribe", "LOC")), problems=problems)
    assert document.text_of(document.entities[0]) == "Ribe"
    assert problems.notes == []


def test_browsers_that_count_crlf_as_one_are_found_out(tmp_path: Path) -> None:
    problems = Problems()
    text = "one\r\ntwo\r\nin Ribe\r\nnow"
    (document,) = read(
        tmp_path, task(text, region(11, 15, "Ribe", "LOC"), region(8, 19, "in Ribe\\nnow", "X")), problems=problems
    )
    assert [document.text_of(entity) for entity in document.entities] == ["in Ribe\r\nnow", "Ribe"]
    assert "CR LF as one" in problems.notes[0]


def test_relations_and_other_keys_survive_writing(tmp_path: Path) -> None:
    documents = list(annotators.LABEL_STUDIO.read(FIXTURE, Problems()))
    write(documents, tmp_path / "out.json", annotators.LABEL_STUDIO)
    problems = Problems()
    assert list(annotators.LABEL_STUDIO.read(tmp_path / "out.json", problems)) == documents
    assert problems.notes == []  # written in code points
    first = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))[0]
    assert first["data"]["page"] == "4"
    assert first["annotations"][0]["result"][-1]["type"] == "relation"
    assert [result["id"] for result in first["annotations"][0]["result"][:2]] == ["r1", "r2"]


def test_predictions_come_before_those_a_task_had_and_take_nothing_of_annotators(tmp_path: Path) -> None:
    earlier = {"model_version": "old", "result": []}
    documents = read(tmp_path, {**task("in Ribe", region(3, 7, "Ribe", "LOC")), "predictions": [earlier], "project": 3})
    found = [replace(without_gold(one), entities=(Entity.at("LOC", 3, 7, 0.75),)) for one in documents]
    write_predictions(found, tmp_path / "out.json", "label-studio", "new 1f")
    (written,) = json.loads((tmp_path / "out.json").read_text())
    result = {**region(3, 7, "Ribe", "LOC"), "id": "entity-0", "score": 0.75}
    assert written == {
        "id": 5,
        "data": {"text": "in Ribe"},
        "predictions": [{"model_version": "new 1f", "score": 0.75, "result": [result]}, earlier],
        "project": 3,
    }
    problems = Problems()
    (back,) = annotators.LABEL_STUDIO.read(tmp_path / "out.json", problems)
    assert (back.entities, back.entities[0].score) == (found[0].entities, 0.75)
    assert back.meta == {"predictions": [earlier], "project": 3}
    assert problems.notes == [
        f"{tmp_path / 'out.json'}: its tasks have no annotations; the first prediction of each is read"
    ]


def test_a_task_is_as_sure_as_its_least_certain_entity(tmp_path: Path) -> None:
    found = Document("1", "Ribe, Oslo", (Entity.at("LOC", 0, 4, 0.9), Entity.at("LOC", 6, 10, 0.4)))
    write_predictions([found], tmp_path / "out.json", "label-studio", "new")
    (written,) = json.loads((tmp_path / "out.json").read_text())
    assert written["predictions"][0]["score"] == 0.4


def test_other_work_of_annotators_is_not_predicted(tmp_path: Path) -> None:
    first = next(iter(annotators.LABEL_STUDIO.read(FIXTURE, Problems())))
    write_predictions([without_gold(first)], tmp_path / "out.json", "label-studio", "new")
    assert json.loads((tmp_path / "out.json").read_text())[0]["predictions"][0]["result"] == []


def test_predictions_beside_annotations_are_no_entities(tmp_path: Path) -> None:
    predicted = {"predictions": [{"result": [region(3, 7, "Ribe", "LOC")]}]}
    (document,) = read(tmp_path, {"id": 5, "data": {"text": "in Ribe"}, "annotations": [], **predicted})
    assert document.entities == ()


def test_json_min_is_read(tmp_path: Path) -> None:
    record = {"id": 9, "text": "in Ribe", "label": [{"start": 3, "end": 7, "text": "Ribe", "labels": ["LOC"]}]}
    (document,) = read(tmp_path, {**record, "annotator": 1})
    assert (document.id, document.text_of(document.entities[0])) == ("9", "Ribe")
    assert document.meta == {"annotator": 1}


def test_several_annotators_give_documents_of_one_group(tmp_path: Path) -> None:
    record = task("in Ribe", region(3, 7, "Ribe", "LOC"))
    record["annotations"] += [{"id": 2, "result": []}, {"id": 3, "was_cancelled": True, "result": []}]
    problems = Problems()
    first, second = read(tmp_path, record, problems=problems)
    assert (first.group, second.group) == ("5", "5")
    assert first.id != second.id
    assert (len(first.entities), len(second.entities)) == (1, 0)
    assert "2 of 3 annotations are used" in problems.notes[0]
    record["annotations"][1]["ground_truth"] = True
    assert [len(document.entities) for document in read(tmp_path, record)] == [0]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (region(3, 7, "Oslo", "LOC"), "the text at 3-7 is 'Ribe', the file says 'Oslo'"),
        (region("/p[1]", "/p[1]", "Ribe", "LOC"), "export the plain text instead"),
        (region(3, 70, "Ribe", "LOC"), "3-70 goes past the end"),
        (region(3, 7, "Ribe"), "the label is missing"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, result: dict[str, Any], message: str) -> None:
    with pytest.raises(CorpusError, match=message):
        read(tmp_path, task("in Ribe", result))
