"""The documents to annotate next."""

import json

import pytest

from trainings import untrained
from wingspan.corpora.formats import read
from wingspan.recognizer.uncertain import margin, most_uncertain
from wingspan.text import Document, Entity


def test_the_margin_is_the_mean_distance_from_a_half():
    def scored(*scores):
        return Document("0", "x" * 9, tuple(Entity.at("A", n, n + 1, score) for n, score in enumerate(scores)))

    assert margin(scored(0.5)) == 0
    assert margin(scored(0.25, 0.75)) == 0.5
    assert margin(scored(1.0, 0.5)) == 0.5
    assert margin(scored()) == 1


def test_the_least_certain_documents_come_first_and_as_they_were_given():
    model = untrained()
    given = [Document(str(n), " ".join(["gene", "cell", "drug", "Aspirin"][: n % 4 + 1]) + f" {n} .") for n in range(9)]
    given = [Document(one.id, one.text, (Entity.at("Gold", 0, 4),)) for one in given]
    chosen = most_uncertain(model, iter(given), 3)
    margins = [margin(one) for one in model.predict(given, threshold=0.1, overlap="any")]
    order = sorted(range(9), key=lambda n: (margins[n], n))
    assert chosen == [given[n] for n in order[:3]]
    assert len(most_uncertain(model, given, 20)) == 9


@pytest.mark.parametrize(
    ("output", "options"),
    [
        ("tasks.label-studio.json", []),
        ("tasks.doccano.jsonl", []),
        ("tasks.prodigy.jsonl", []),
        ("brat", ["--to", "brat"]),
    ],
)
def test_files_for_annotators(shell, tmp_path, output, options):
    out, _ = shell(
        "predict",
        shell.dev,
        "--model",
        shell.folder / "model",
        "--uncertain",
        2,
        "--output",
        tmp_path / output,
        *options,
    )
    assert "2 documents" in out
    first = tmp_path / "all.jsonl"
    shell("predict", shell.dev, "--model", shell.folder / "model", "--output", first, "--uncertain", 2)
    wanted = {row["text"]: row["entities"] for row in map(json.loads, first.read_text().splitlines())}
    format = options[1] if options else output.split(".")[1]
    for document in read(tmp_path / output, format, on_error="skip"):
        assert [e.hull for e in document.entities] == [(row["start"], row["end"]) for row in wanted[document.text]]
