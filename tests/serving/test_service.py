"""The routes: the model's own answers, every refusal one sentence, nothing of a text where it does not belong."""

import io
import json
import logging
import re
import socket
import threading
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from serving import SlowModel
from trainings import untrained
from wingspan.answers import SHAPES
from wingspan.cli.serve import named
from wingspan.corpora.formats import read
from wingspan.serving import Settings
from wingspan.serving.border import OPEN
from wingspan.serving.export import DOWNLOADS
from wingspan.serving.service import service

TEXTS = ["Aspirin lowers BRCA1 in the cell .", "", "Zwei <b>Drugs</b> & a gene — 😀 here ."]


@pytest.fixture(scope="module")
def models():
    return {"one": untrained(), "two": untrained(seed=3, labels=("Gene", "Cell"))}


@pytest.fixture(scope="module")
def client(models):
    limits = Settings(body_limit=20_000, text_limit=1_000, texts_limit=5)
    with TestClient(service(models, limits)) as client:
        yield client


def found(client, **question):
    answer = client.post("/v1/entities", json={"texts": TEXTS, **question})
    assert answer.status_code == 200, answer.text
    return answer.json()["documents"]


@pytest.mark.parametrize(
    "options", [{}, {"threshold": 0.3}, {"threshold": {"Gene": 0.2}}, {"overlap": "flat"}, {"overlap": "any"}]
)
@pytest.mark.parametrize("model", ["one", "two"])
def test_answers_are_those_of_the_model(client, models, model, options):
    own = models[model].predict(TEXTS, **options)
    assert any(document.entities for document in own)
    assert found(client, model=model, **options) == [{"entities": document.to_dict()["entities"]} for document in own]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_format(client, models, shape):
    wanted = [SHAPES[shape](document) for document in models["one"].predict(TEXTS)]
    assert found(client, format=shape) == json.loads(json.dumps(wanted))


BAD = {
    "no list": ({"texts": "secret"}, 422, "texts: input should be a valid list"),
    "no text": ({}, 422, "texts is missing"),
    "number": ({"texts": [5]}, 422, "texts.0: input should be a valid string"),
    "unknown key": ({"texts": ["secret"], "treshold": 1}, 422, "a key that this route does not know"),
    "threshold": ({"texts": ["secret"], "threshold": 7}, 422, "threshold: input should be less than or equal to 1"),
    "label": ({"texts": ["secret"], "threshold": {"Nix": 0.5}}, 422, "no such label; the model has"),
    "overlap": ({"texts": ["secret"], "overlap": "no"}, 422, "overlap: input should be 'flat', 'nested' or 'any'"),
    "model": ({"texts": ["secret"], "model": "no"}, 422, "no model of this name; use one of one, two"),
    "dataset": ({"texts": ["secret"], "dataset": "no"}, 422, "dataset 'no' is unknown"),
    "format": ({"texts": ["secret"], "format": "no"}, 422, "format: input should be 'own'"),
    "long text": ({"texts": ["a", "secret" * 200]}, 413, "text 1 has 1,200 characters; send at most 1,000"),
    "many texts": ({"texts": ["secret"] * 6}, 413, "6 texts; send at most 5 at a time"),
    "array": (["secret"], 422, "the body: input should be"),
}
RAW = {
    "binary": (b"\xff\xfe\x00secret", 400, "the body is no JSON"),
    "half": (b'{"texts": ["secret"', 400, "the body is no JSON"),
    "deep": (b"[" * 15_000, 400, "the body is no JSON"),
    "empty": (b"", 422, "the body is missing"),
    "half a character": (b'{"texts": ["secret \\ud800"]}', 422, "half of a surrogate pair"),
    "not a number": (b'{"texts": ["secret"], "threshold": NaN}', 422, "threshold: input should be"),
    "too large": (b'{"texts": ["' + b"secret" * 4_000 + b'"]}', 413, "larger than 20,000 bytes"),
}


@pytest.mark.parametrize("name", [*BAD, *RAW])
def test_a_bad_request_gets_one_sentence(client, name):
    if name in BAD:
        body, status, sentence = BAD[name]
        answer = client.post("/v1/entities", json=body)
    else:
        body, status, sentence = RAW[name]
        answer = client.post("/v1/entities", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert sentence in error
    assert "secret" not in error
    assert "\n" not in error
    assert len(error) < 300


def test_a_body_without_a_length_is_bounded_too(client):
    parts = (b"secret" * 1_000 for _ in range(20))
    answer = client.post("/v1/entities", content=parts, headers={"content-type": "application/json"})
    assert (answer.status_code, answer.json()) == (
        413,
        {"error": "the body is larger than 20,000 bytes; send fewer texts at a time"},
    )


def test_other_paths_and_methods(client):
    assert client.get("/v1/nothing").status_code == 404
    assert client.get("/docs").status_code == 404  # it would load scripts from elsewhere
    assert client.get("/v1/entities").json() == {"error": "this route takes another method"}


def test_what_a_client_can_know(client):
    about = client.get("/v1/models").json()
    assert [model["name"] for model in about["models"]] == ["one", "two"]
    assert about["models"][1]["labels"] == ["Gene", "Cell"]
    assert set(about["colors"]) == {"Cell", "Drug", "Gene"}
    assert about["formats"] == list(SHAPES)
    assert client.get("/health").json()["status"] == "UP"
    assert client.get("/ready").json() == {"ready": True, "waiting": 0}
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/v1/entities", "/v1/models", "/health", "/ready", "/metrics", "/predict", "/setup", "/train"} <= set(paths)


def test_metrics_are_in_the_format_of_prometheus(models):
    with TestClient(service(models)) as client:
        found(client)
        client.post("/v1/entities", json={})
        text = client.get("/metrics").text
    line = re.compile(r'wingspan_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+0-9.e]+')
    for row in text.splitlines():
        assert line.fullmatch(row) or re.fullmatch(r"# (HELP|TYPE) wingspan_[a-z_]+ .+", row), row
    assert 'wingspan_requests_total{route="/v1/entities",status="200"} 1' in text
    assert 'wingspan_requests_total{route="/v1/entities",status="422"} 1' in text
    assert 'wingspan_texts_total{model="one"} 3' in text
    assert 'wingspan_request_seconds_count{route="/v1/entities"} 2' in text


def test_no_text_in_logs(models, caplog):
    with caplog.at_level(logging.DEBUG), TestClient(service(models)) as client:
        found(client)
        client.post("/v1/entities?secret=1", json={"texts": ["secret"], "nix": 1})
        client.post("/v1/export", json={"documents": [{"text": "secret", "entities": 5}], "format": "brat"})
        client.get("/secret")
    lines = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("wingspan"))
    assert "POST /v1/entities 200" in lines
    assert "GET other 404" in lines
    assert "secret" not in lines
    assert "Aspirin" not in lines


def test_an_error_that_nobody_foresaw_quotes_no_text(models, caplog, monkeypatch):
    def fail(*_):
        raise KeyError("a secret text")

    monkeypatch.setattr("wingspan.serving.service.download", fail)
    with caplog.at_level(logging.DEBUG), TestClient(service(models)) as client:
        answer = client.post("/v1/export", json={"documents": [{"text": "x"}], "format": "brat"})
    assert (answer.status_code, answer.json()["error"]) == (
        500,
        "the service failed on this request; its log says where",
    )
    assert "KeyError" in caplog.text
    assert "'a secret text'" not in caplog.text.replace('KeyError("a secret text")', "")  # the line of this test


def test_the_key(models):
    with TestClient(service(models, Settings(api_key="schlüssel"))) as client:
        assert {path: client.get(path).status_code for path in OPEN} == dict.fromkeys(OPEN, 200)
        key = "schlüssel".encode()
        good = [
            {"authorization": b"Bearer " + key},
            {"x-api-key": key},
            {"authorization": b"Basic bmFtZTpzY2hsw7xzc2Vs"},  # name:schlüssel
        ]
        bad = [{}, {"authorization": b"Bearer "}, {"authorization": b"Bearer x"}, {"authorization": b"Basic ???"}]
        assert [client.get("/v1/models", headers=headers).status_code for headers in good] == [200] * 3
        assert [client.get("/v1/models", headers=headers).status_code for headers in bad] == [401] * 4
        assert client.get("/metrics").json()["error"].startswith("this service needs its key")
    assert "schlüssel" not in repr(Settings(api_key="schlüssel"))


def test_pages_of_other_sites_are_allowed_by_name_only(models, client):
    asked = {"origin": "https://a.example", "access-control-request-method": "POST"}
    assert "access-control-allow-origin" not in client.get("/v1/models", headers=asked).headers
    with TestClient(service(models, Settings(allow_origins=("https://a.example",), api_key="k"))) as open_to_one:
        answer = open_to_one.options("/v1/entities", headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        other = open_to_one.options("/v1/entities", headers={**asked, "origin": "https://b.example"})
        assert "access-control-allow-origin" not in other.headers


def test_the_page_may_load_nothing_from_elsewhere(client):
    for path in ("/", "/page.css", "/page.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert not re.search(r"https?://|//[a-z]+\.", answer.text.replace("http://127", ""))
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_grid_has_the_scores_of_the_model(client, models):
    text = "A drug. Aspirin lowers BRCA ."
    grid = client.post("/v1/grid", json={"text": text, "at": 10}).json()
    assert [text[start:end] for start, end in grid["words"]] == ["Aspirin", "lowers", "BRCA", "."]
    assert grid["labels"] == ["Drug", "Gene"]
    assert [[value is None for value in row] for row in grid["grids"]["Drug"]] == [
        [False] * 4, [False, False, False, True], [False, False, True, True], [False, True, True, True]
    ]  # fmt: skip
    for entity in models["one"].predict(text)[0].entities:
        if entity.start >= 8:
            at = [start for start, _ in grid["words"]].index(entity.start)
            last = [end for _, end in grid["words"]].index(entity.end)
            assert grid["grids"][entity.label][last - at][at] == round(1000 * entity.score)
    assert client.post("/v1/grid", json={"text": " "}).json()["words"] == []
    assert client.post("/v1/grid", json={"text": "x" * 20_001}).status_code == 413


def test_downloads_can_be_read_again(client, tmp_path):
    document = {
        "id": "../odd/id",
        "text": "Tumors of colon and lung.",
        "entities": [
            {"start": 0, "end": 24, "label": "Tumor", "score": 0.5, "fragments": [[0, 9], [20, 24]]},
            {"start": 10, "end": 15, "text": "colon", "label": "Organ", "score": 0.75, "fragments": [[10, 15]]},
        ],
    }
    for format in DOWNLOADS:
        answer = client.post("/v1/export", json={"documents": [document], "format": format})
        assert answer.status_code == 200, answer.text
        name = re.search('filename="([^"]+)"', answer.headers["content-disposition"])[1]
        notes = unquote(answer.headers.get("wingspan-notes", ""))
        if format in ("hugging-face", "spacy"):
            assert answer.json()["documents"][0]["id"] == "../odd/id"
            continue
        if format == "brat":
            names = zipfile.ZipFile(io.BytesIO(answer.content)).namelist()
            assert names == ["entities/%2E%2E/odd/id.ann", "entities/%2E%2E/odd/id.txt"]
            zipfile.ZipFile(io.BytesIO(answer.content)).extractall(tmp_path)
            name = "entities"
        else:
            (tmp_path / name).write_bytes(answer.content)
        (back,) = read(tmp_path / name, format)
        whole = [(entity.label, *entity.hull) for entity in back.entities]
        if format in ("jsonl", "brat", "bioc-xml", "bioc-json", "w2ner"):
            assert whole == [("Tumor", 0, 24), ("Organ", 10, 15)], format
        else:
            assert "1 discontinuous entity" in notes, format
    refused = client.post("/v1/export", json={"documents": [{"text": 5}], "format": "brat"})
    assert (refused.status_code, refused.json()["error"]) == (
        422,
        "documents.0.text: input should be a valid string",
    )
    outside = {"text": "abc", "entities": [{"label": "A", "start": 1, "end": 9}]}
    refused = client.post("/v1/export", json={"documents": [outside], "format": "brat"})
    assert (refused.status_code, refused.json()["error"][:12]) == (422, "documents:1:")
    assert client.post("/v1/export", json={"documents": [document], "format": "hub"}).status_code == 422


def test_schemathesis_finds_no_server_error(models):
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    hypothesis = pytest.importorskip("hypothesis")
    schema = schemathesis.openapi.from_asgi("/openapi.json", service(models))
    few = hypothesis.settings(max_examples=8, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
    for operation in schema.get_all_operations():

        @few
        @hypothesis.given(case=operation.ok().as_strategy())
        def attack(case):
            assert case.call().status_code < 500

        attack()


def test_names_of_models(tmp_path):
    (tmp_path / "a=b").mkdir()
    assert named([f"x={tmp_path}", str(tmp_path / "a=b"), "me/hub-model"]) == {
        "x": str(tmp_path),
        "a=b": str(tmp_path / "a=b"),
        "hub-model": "me/hub-model",
    }
    with pytest.raises(ValueError, match="two models are called 'm'; name them, as in first=runs/b/m"):
        named(["runs/a/m", "runs/b/m"])


def test_a_model_that_types_given_spans_is_not_served(shell):
    folder = Path(__file__).parents[1] / "frozen" / "models" / "typed_spans"
    assert "types given spans and finds none itself" in shell.refuses("serve", folder, "--port", "0")


def test_an_address_that_is_taken(shell):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        said = shell.refuses("serve", "no/such/model", "--port", other.getsockname()[1])
    assert re.search(r"cannot listen at 127.0.0.1, port \d+ \(Address already in use\); choose another --port", said)


def test_too_many_requests_get_429_and_a_time():
    model = SlowModel()
    with TestClient(service({"m": model}, Settings(queue=1))) as client:
        model.go_on.clear()
        model.begun.clear()
        threads = [threading.Thread(target=client.post, args=("/v1/entities",), kwargs={"json": {"texts": ["a"]}})]
        threads[0].start()
        model.begun.wait(10)
        threads.append(threading.Thread(target=client.post, args=("/v1/entities",), kwargs={"json": {"texts": ["b"]}}))
        threads[1].start()
        while client.get("/ready").json()["waiting"] < 1:
            pass
        late = client.post("/v1/entities", json={"texts": ["c"]})
        assert client.get("/ready").status_code == 503
        model.go_on.set()
        for thread in threads:
            thread.join()
    assert (late.status_code, late.headers["retry-after"]) == (429, "1")
