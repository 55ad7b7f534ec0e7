"""`wingspan label-map` as users run it."""

import json

from trainings import dev_documents
from wingspan.corpora.formats import write
from wingspan.corpora.label_map import read_label_map


def other_labels(shell, tmp_path):
    """The dev documents with other names for their labels, and the labels of the target."""
    from dataclasses import replace

    documents = dev_documents()
    labels = sorted({entity.label for one in documents for entity in one.entities})
    renamed = [
        replace(one, entities=tuple(replace(e, label=f"X{e.label[::-1]}") for e in one.entities)) for one in documents
    ]
    write(renamed, tmp_path / "other.jsonl")
    return tmp_path / "other.jsonl", {("other", f"X{label[::-1]}"): label for label in labels}


def test_a_map_with_evidence_and_what_a_reference_says(shell, tmp_path):
    other, right = other_labels(shell, tmp_path)
    out, _ = shell("label-map", f"other={other}", "--target", f"main={shell.train}", "--output", tmp_path / "map.tsv")
    found = read_label_map(tmp_path / "map.tsv")
    assert set(found.targets) == set(right)
    assert sum(found.targets[pair] == label for pair, label in right.items()) >= len(right) - 1
    assert out.splitlines()[0] == "Suggested label map"
    assert f"of {len(right)} labels are confident (0.5 or more)" in out

    (tmp_path / "known.tsv").write_text(
        "corpus\tlabel\ttarget\n" + "".join(f"{corpus}\t{label}\t-\n" for corpus, label in right)
    )
    out, _ = shell(
        "label-map",
        f"other={other}",
        "--target",
        f"main={shell.train}",
        "--reference",
        tmp_path / "known.tsv",
        "--json",
        tmp_path / "map.json",
    )
    figures = json.loads((tmp_path / "map.json").read_text())
    assert len(figures["suggestions"]) == len(right)
    wrong = [one for one in figures["suggestions"] if one["target"] is not None]
    assert figures["reference"]["right"] == len(right) - len(wrong)
    assert len(figures["reference"]["disagreements"]) == len(wrong)
    assert out.count(", the reference has -") == len(wrong)


def test_a_model_of_the_target_is_asked(shell, tmp_path):
    other, right = other_labels(shell, tmp_path)
    shell(
        "label-map",
        f"other={other}",
        "--target",
        f"main={shell.train}",
        "--model",
        shell.model,
        "--device",
        "cpu",
        "--json",
        tmp_path / "map.json",
    )
    (first, *_) = json.loads((tmp_path / "map.json").read_text())["suggestions"]
    assert first["evidence"]["model"]["names"] > 0
    assert round(sum(first["evidence"]["model"]["chances"].values()), 6) == 1


def test_what_cannot_be_is_one_sentence(shell, tmp_path):
    target = f"main={shell.train}"
    assert "give a corpus as NAME=FILE" in shell.refuses("label-map", str(shell.dev), "--target", target)
    assert "there is a corpus 'a' already" in shell.refuses(
        "label-map", f"a={shell.dev}", f"a={shell.dev}", "--target", target
    )
    assert "there is no such label map" in shell.refuses(
        "label-map", f"a={shell.dev}", "--target", target, "--reference", tmp_path / "none.tsv"
    )
    assert "there is a corpus 'main' already" in shell.refuses("label-map", f"main={shell.dev}", "--target", target)
    (tmp_path / "bare.jsonl").write_text('{"id": "1", "text": "Nothing here.", "entities": []}\n')
    assert "corpus 'bare' has no entities" in shell.refuses(
        "label-map", f"bare={tmp_path / 'bare.jsonl'}", "--target", target
    )
