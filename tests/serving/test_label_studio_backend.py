"""Label Studio's protocol: what it sends is understood, what it gets is what its own library takes."""

import json

import pytest
from starlette.testclient import TestClient

from trainings import untrained
from wingspan.serving import Refusal
from wingspan.serving.label_studio import Interface, interface_of, prediction
from wingspan.serving.service import service
from wingspan.text import Document, Entity, Span

CONFIG = """
<View>
  <!-- a comment -->
  <Labels name="kind" toName="body"><Label value="drug"/><Label value="Gene" background="red"/></Labels>
  <Text name="body" value="$abstract"/>
</View>
"""
TEXT = "Aspirin lowers BRCA in 😀 cells ."
TASKS = [
    {"id": 1, "data": {"abstract": TEXT, "title": "x"}, "annotations": [], "predictions": []},
    {"id": 2, "data": {"abstract": ""}},
]


@pytest.fixture(scope="module")
def model():
    return untrained()


@pytest.fixture(scope="module")
def client(model):
    with TestClient(service({"m": model})) as client:
        yield client


def test_tasks_get_predictions(client, model):
    answer = client.post("/predict", json={"tasks": TASKS, "project": "1.2", "label_config": CONFIG, "params": {}})
    first, empty = answer.json()["results"]
    (document,) = model.predict(TEXT)
    assert document.entities
    for row, entity in zip(first["result"], document.entities, strict=True):
        assert row["value"]["labels"] == [{"Drug": "drug", "Gene": "Gene"}[entity.label]]
        assert (row["from_name"], row["to_name"], row["type"]) == ("kind", "body", "labels")
        assert (row["value"]["start"], row["value"]["end"]) == entity.hull
        assert row["value"]["text"] == document.text_of(entity)
        assert row["score"] == entity.score
    assert first["score"] == min(entity.score for entity in document.entities)
    assert empty["result"] == []
    assert first["model_version"] == answer.json()["model_version"] == client.get("/versions").json()["versions"][0]


def test_the_sdk_takes_the_predictions(client):
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason="label-studio-sdk is not installed")
    from label_studio_sdk.label_interface.objects import PredictionValue

    interface = sdk.LabelInterface(CONFIG)
    for result in client.post("/predict", json={"tasks": TASKS, "label_config": CONFIG}).json()["results"]:
        value = PredictionValue(**result)
        assert len(value.result) == len(result["result"])
        assert interface.validate_prediction(result)
        assert not interface.validate_prediction({**result, "result": [{"from_name": "other"}]})


def test_setup_checks_the_labeling_interface(client):
    asked = {"project": "1.2", "schema": CONFIG, "hostname": "http://localhost:8080", "access_token": "t"}
    assert set(client.post("/setup", json=asked).json()) == {"model_version"}
    other = CONFIG.replace("drug", "Person").replace("Gene", "Place")
    refused = client.post("/setup", json={**asked, "schema": other})
    assert refused.status_code == 422
    assert refused.json()["error"].endswith("has no label that this model finds; add some of Drug, Gene")


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        ("<View>", "not valid XML"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><View/>', "has a declaration"),
        ("<View><Image name='i' value='$i'/></View>", "no <Labels> of a <Text>"),
    ],
)
def test_interfaces_that_are_refused(config, sentence):
    with pytest.raises(Refusal, match=sentence):
        interface_of(config)


def test_without_an_interface_the_usual_names_are_taken(client):
    (result,) = client.post("/predict", json={"tasks": [{"data": {"anything": TEXT}}]}).json()["results"]
    assert {row["from_name"] for row in result["result"]} == {"label"}
    refused = client.post("/predict", json={"tasks": [{"data": {"a": TEXT, "b": TEXT}}]})
    assert (refused.status_code, "no text under 'text'" in refused.text) == (422, True)
    assert client.post("/predict", json={"tasks": [{"id": 1}]}).status_code == 422


def test_training_is_not_here(client):
    answer = client.post("/train", json={"annotations": []})
    assert answer.status_code == 404
    assert answer.json()["error"].startswith("nothing is trained here; export the annotations and run `wingspan train`")
    assert client.post("/webhook", json={"action": "ANNOTATION_CREATED"}).json() == {"status": "ignored"}
    assert client.get("/health").json()["status"] == "UP"


def test_what_cannot_be_held_is_said():
    document = Document("0", TEXT, (Entity("Drug", (Span(0, 7), Span(15, 19)), 0.5), Entity.at("Cell", 23, 30, 0.6)))
    answer = prediction(document, Interface(labels=("Drug",)), "v1")
    assert [row["value"]["text"] for row in answer["result"]] == ["Aspirin", "BRCA"]
    assert json.dumps(answer["notes"]).count("1 discontinuous entity") == 1
    assert "the interface has no label 'Cell': 1 left out" in answer["notes"]
