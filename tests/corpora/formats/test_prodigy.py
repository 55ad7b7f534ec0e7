"""The schema is documented at https://prodi.gy/docs/api-interfaces (ner_manual): token_end is inclusive."""

import json
from pathlib import Path

import pytest

from wingspan.corpora.formats import annotators, write, write_predictions
from wingspan.files import CorpusError, Problems
from wingspan.text import Document, Entity

FIXTURE = Path(__file__).parent / "fixtures" / "prodigy.jsonl"


def test_accepted_tasks_are_read_and_the_others_noted() -> None:
    problems = Problems()
    first, second = annotators.PRODIGY.read(FIXTURE, problems)
    assert [(e.label, first.text_of(e)) for e in first.entities] == [("PER", "Iben"), ("LOC", "Aarhus")]
    assert first.words is not None
    assert len(first.words) == 6
    assert first.meta["_task_hash"] == 12
    assert first.entities[1].meta == {"source": "model"}
    assert (second.words, second.text_of(second.entities[0])) == (None, "Odense")
    assert problems.notes == [f"{FIXTURE}: 1 tasks whose answer is not 'accept' are left out"]


def test_writing_gives_tokens_and_inclusive_token_ends_back(tmp_path: Path) -> None:
    documents = list(annotators.PRODIGY.read(FIXTURE, Problems()))
    write(documents, tmp_path / "out.jsonl", annotators.PRODIGY)
    assert list(annotators.PRODIGY.read(tmp_path / "out.jsonl", Problems())) == documents
    written = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()[0])
    original = json.loads(FIXTURE.read_text(encoding="utf-8").splitlines()[0])
    assert written == {"id": "prodigy-1", **original}


def test_a_prediction_is_not_answered(tmp_path: Path) -> None:
    document = Document("1", "in Ribe", (Entity.at("LOC", 3, 7, 0.75),), meta={"meta": {"page": 4}})
    write_predictions([document], tmp_path / "out.jsonl", "prodigy", "new 1f")
    span = {"start": 3, "end": 7, "label": "LOC", "score": 0.75}
    assert json.loads((tmp_path / "out.jsonl").read_text()) == {
        "id": "1",
        "text": "in Ribe",
        "spans": [span],
        "meta": {"page": 4, "model": "new 1f"},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"spans": [{"start": 3, "end": 99, "label": "X"}]},
            "3-99 goes past the end of the text, which has 7 characters",
        ),
        ({"spans": [{"start": 3, "end": 7, "label": "X", "text": "Oslo"}]}, "is 'Ribe', the file says 'Oslo'"),
        ({"tokens": [{"text": "im", "start": 0, "end": 2}]}, "token 0: the text at 0-2 is 'in', the file says 'im'"),
        ({"tokens": [{"start": 0, "end": 2}, {"start": 1, "end": 4}]}, "token 1 overlaps the one before it"),
        ({"text": 7}, "text is a number, not a string"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path: Path, change: dict[str, object], message: str) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps({"text": "in Ribe", **change}))
    with pytest.raises(CorpusError, match=message):
        list(annotators.PRODIGY.read(tmp_path / "x.jsonl", Problems()))
