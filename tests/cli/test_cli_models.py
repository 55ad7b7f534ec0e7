"""The commands that run a model, as users run them: trained, used, scored, described."""

import json
import re
from dataclasses import replace

import pytest
from shells import lines

from wingspan.corpora.formats import read, write
from wingspan.corpora.words import split_words
from wingspan.text import Document, Entity, Span
from wingspan.training.choice import Settled


def test_train_predict_evaluate_info(shell, tmp_path):
    out, _ = shell.trains(
        tmp_path / "run", "--dev", shell.dev, "--test", shell.dev, "--json", tmp_path / "figures.json"
    )
    assert out.index("Coverage: ") < out.index("epoch 1")
    assert "Recipe baseline" in out
    assert "Test scores of the best epoch's model, seed 1" in out
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["protocol"] == "recognition"
    assert {"precision", "recall", "f1", "tp", "fp", "fn"} <= set(figures["micro"])
    kept = {path.name for path in (tmp_path / "run").iterdir()}
    assert kept == {
        "recipe.json",
        "labels.json",
        "model.safetensors",
        "calibration.json",
        "facts.json",
        "README.md",
        "journal.jsonl",
        "leaks.json",
        "state",
    }

    out, _ = shell("evaluate", tmp_path / "run", shell.dev, "--json", tmp_path / "again.json", "--device", "cpu")
    assert "Coverage: " in out
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["micro"] == figures["micro"]
    assert again["coverage"]["entities"] > 0

    out, _ = shell("info", tmp_path / "run")
    assert "recipe: baseline" in out
    assert f", f1 {figures['micro']['f1']:.2f} (" in out
    out, _ = shell("info", tmp_path / "run", "--json", "-")
    facts = json.loads(out)
    assert facts["test"]["micro"] == figures["micro"]
    assert facts["parameters"] > 100
    assert facts["max_width"] >= 1


def test_auto_brings_its_settings_and_goes_on_from_a_model(shell, tmp_path, monkeypatch):
    asked = []

    def settled(recipe, corpora, encoder, start, parts, *, taught):
        asked.append((recipe, encoder, start, tuple(parts)))
        return Settled("bundling/span", None if start else "hashed", "auto: so.", {"train.clip": "2.5"})

    monkeypatch.setattr("wingspan.training.run.settle", settled)
    out, _ = shell.trains(tmp_path / "run", recipe="auto")
    assert out.count("auto: so.") == 1
    stored = json.loads((tmp_path / "run" / "recipe.json").read_text())["recipe"]
    assert (stored["name"], stored["train"]["clip"]) == ("bundling/span", 2.5)
    more = ("--train", shell.train, "--from", tmp_path / "run", "--output", tmp_path / "more", "--epochs", 1)
    shell("train", "auto", *more, "--device", "cpu")
    assert asked == [("auto", None, None, ()), ("auto", None, str(tmp_path / "run"), ())]


def test_lines_are_not_wrapped_in_a_pipe(shell, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out, _ = shell("info", shell.model)
    facts = json.loads(shell("info", shell.model, "--json", "-")[0])
    assert [line.partition(":")[0] for line in out.splitlines() if not line.startswith(" ")] == list(facts)
    assert "{" not in out
    out, _ = shell("evaluate", shell.model, shell.dev)
    assert any(line.startswith("Coverage: ") and len(line) > 40 for line in out.splitlines())


def test_predict_reads_a_corpus_by_its_ending_or_content(shell, tmp_path):
    (tmp_path / "x.pubtator.txt").write_text("7|t|Loss of BRCA1 in mice.\n7|a|None.\n7\t8\t13\tBRCA1\tGene\n")
    (tmp_path / "y.txt").write_text("7|t|Loss of BRCA1 in mice.\n")
    for given in (["x.pubtator.txt", "y.txt"], [""]):  # two files, and the folder that holds them
        out, _ = shell("predict", *(tmp_path / name for name in given), "--model", shell.model)
        records = [json.loads(line) for line in out.splitlines()]
        assert [(record["id"], record["text"]) for record in records] == [
            ("7", "Loss of BRCA1 in mice. None."),
            ("7", "Loss of BRCA1 in mice."),
        ]


def test_json_on_standard_output_is_nothing_but_json(shell, tmp_path):
    out, err = shell.trains(tmp_path / "run", "--dev", shell.dev, "--json", "-")
    assert json.loads(out)["protocol"] == "recognition"
    assert "Coverage" in err
    out, err = shell("evaluate", shell.model, shell.dev, "--json", "-")
    assert json.loads(out)["protocol"] == "recognition"
    assert "Coverage" in err


def test_predict_prints_json_lines_in_a_pipe(shell):
    out, _ = shell("predict", shell.dev, "--model", shell.model, "--threshold", "0.1")
    records = [json.loads(line) for line in out.splitlines()]
    gold = list(read(shell.dev))
    assert [record["id"] for record in records] == [document.id for document in gold]
    assert [record["text"] for record in records] == [document.text for document in gold]
    found = [entity for record in records for entity in record["entities"]]
    assert found
    assert {"start", "end", "text", "label", "score", "fragments"} == set(found[0])


def test_offsets_count_the_line_ends_of_a_text_file(shell, tmp_path):
    path = tmp_path / "windows.txt"
    path.write_bytes(b"First line.\r\nMutations in TGFB1 cause lung fibrosis.\r\n")
    out, _ = shell("predict", path, "--model", shell.model, "--threshold", 0.0)
    record = json.loads(out)
    assert record["text"] == path.read_bytes().decode()
    assert record["entities"]
    assert all(record["text"][e["start"] : e["end"]] == e["text"] for e in record["entities"])


def test_texts_in_folders_below_are_read_and_keep_apart(shell, tmp_path):
    for name in ("a/x.txt", "b/x.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("One text.")
    out, _ = shell("predict", tmp_path, "--model", shell.model)
    assert [json.loads(line)["id"] for line in out.splitlines()] == ["a/x", "b/x"]


def test_predict_takes_a_text_a_file_a_folder_and_standard_input(shell, tmp_path):
    texts = ["Loss of BRCA1 in mice.", "Effects of zodridine on gastritis."]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.txt").write_text(text)
    asked = {
        "texts": shell("predict", *texts, "--model", shell.model),
        "files": shell("predict", tmp_path / "0.txt", tmp_path / "1.txt", "--model", shell.model),
        "folder": shell("predict", tmp_path, "--model", shell.model),
        "lines": shell("predict", "-", "--model", shell.model, stdin="\r\n".join(texts).encode()),
        "bom": shell("predict", "-", "--model", shell.model, stdin=b"\xef\xbb\xbf" + "\n".join(texts).encode()),
    }
    found = {kind: [json.loads(line) for line in out.splitlines()] for kind, (out, _) in asked.items()}
    assert all([record["text"] for record in records] == texts for records in found.values())
    first = [record["entities"] for record in found["texts"]]
    assert all([record["entities"] for record in records] == first for records in found.values())


@pytest.mark.parametrize("length", [200, 300, 900, 5000])
def test_a_text_of_any_length_is_no_file_name(shell, length):
    text = ("word " * length)[:length].strip()
    out, _ = shell("predict", text, "--model", shell.model)
    assert json.loads(out)["text"] == text


def test_an_empty_text_is_a_text(shell, tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("A text that nobody has named.")
    monkeypatch.chdir(tmp_path)
    out, _ = shell("predict", "", " ", "--model", shell.model)
    assert [json.loads(line) for line in out.splitlines()] == [
        {"id": str(number), "text": text, "entities": []} for number, text in enumerate(("", " "))
    ]


COLUMNS = "-DOCSTART- O\n\nLoss O\nof O\nBRCA1 B-Gene\n. O\n\nMice O\nsleep O\n. O\n"


def test_predict_reads_what_the_other_verbs_read(shell, tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "test.txt").write_text(COLUMNS)
    for source in (tmp_path / "texts" / "test.txt", tmp_path / "texts"):
        out, err = shell("predict", source, "--model", shell.model)
        assert [json.loads(line)["text"] for line in out.splitlines()] == ["Loss of BRCA1 .", "Mice sleep ."]
        assert "test.txt: tags in scheme IOB2 in column 2; words in column 1" in err
    out, _ = shell("validate", tmp_path / "texts" / "test.txt")
    assert "test.txt (conll)" in out


@pytest.mark.parametrize(
    ("content", "like"),
    [
        ("{\\bf Loss} of BRCA1.\n", "JSON"),
        ("<p>Loss of BRCA1.</p>\n", "bioc-xml"),
        ("Name|Age|City\nEva|7|Oslo\n", "pubtator"),
        ("Loss of BRCA1\nvitamin B\nhepatitis B\n", "conll"),
        ("A deficiency of vitamin B", "conll"),
    ],
)
def test_predict_says_where_it_takes_signs_of_a_format_for_text(shell, tmp_path, content, like):
    (tmp_path / "a.txt").write_text(content)
    out, err = shell("predict", tmp_path / "a.txt", "--model", shell.model)
    assert json.loads(out)["text"] == content
    assert f"a.txt: read as text although it looks like {like}; name the format with --format (--from of" in err


def test_prose_and_lines_of_records(shell, tmp_path):
    (tmp_path / "a.txt").write_text("[1] The loss of BRCA1 in mice.\nAnd more.\n")
    out, err = shell("predict", tmp_path / "a.txt", "--model", shell.model)
    assert (json.loads(out)["id"], err) == ("a", "")
    _, err = shell("predict", "-", "--model", shell.model, stdin=b'{"text": "Mice."}\n')
    assert "standard input: every line is read as a text; to read a format, name a file instead of -" in err


@pytest.mark.parametrize("name", ["dev.jsonl", "words.jsonl", "dev.conll"])
def test_predictions_have_one_schema_wherever_they_go(shell, tmp_path, name):
    write([from_characters(document) for document in read(shell.dev)], tmp_path / "words.jsonl")
    shell("convert", tmp_path / "words.jsonl", tmp_path / "dev.conll", "--lossy")
    source = shell.dev if name == "dev.jsonl" else tmp_path / name
    options = ["--model", shell.model, "--threshold", "0.05"]
    piped, _ = shell("predict", source, *options)
    shell("predict", source, *options, "--output", tmp_path / "found.jsonl")
    shell("analyze", shell.model, source, "--output", tmp_path / "report", "--samples", 2, "--skip-representation")
    written, reported = tmp_path / "found.jsonl", tmp_path / "report" / "predictions.jsonl"
    assert written.read_text() == piped
    for path in (written, reported):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        entities = [(record["text"], entity) for record in records for entity in record["entities"]]
        assert entities or path == reported
        for text, entity in entities:
            assert set(entity) == {"start", "end", "text", "label", "score", "fragments"}
            assert entity["fragments"] == [[entity["start"], entity["end"]]]
            assert text[entity["start"] : entity["end"]] == entity["text"]
    assert [document.text for document in read(written)] == [document.text for document in read(source)]


def from_characters(document: Document) -> Document:
    """The document with given words, as formats of words have it."""
    words = tuple(document.text[start:end] for start, end in split_words(document.text))
    return Document.from_words(document.id, words, meta={"record_shape": "words"})


def test_predictions_are_no_work_of_annotators(shell, tmp_path):
    asked = ["predict", shell.dev, "--model", shell.model, "--threshold", "0.05", "--output"]
    shell(*asked, tmp_path / "found.jsonl")
    shell(*asked, tmp_path / "tasks.label-studio.json")
    shell(*asked, tmp_path / "tasks.prodigy.jsonl")
    expected = [(document.text, document.entities) for document in read(tmp_path / "found.jsonl")]
    assert any(entities for _, entities in expected)
    tasks = json.loads((tmp_path / "tasks.label-studio.json").read_text())
    for task, (_, entities) in zip(tasks, expected, strict=True):
        assert "annotations" not in task
        (prediction,) = task["predictions"]
        assert re.fullmatch(r"baseline [0-9a-f]{8}", prediction["model_version"])
        assert [result["score"] for result in prediction["result"]] == [entity.score for entity in entities]
        assert prediction.get("score") == min((entity.score for entity in entities), default=None)
    for line in (tmp_path / "tasks.prodigy.jsonl").read_text().splitlines():
        assert "answer" not in json.loads(line)
        assert json.loads(line)["meta"]["model"] == tasks[0]["predictions"][0]["model_version"]
    for name in ("tasks.label-studio.json", "tasks.prodigy.jsonl"):
        assert [(document.text, document.entities) for document in read(tmp_path / name)] == expected
    out, err = shell("score", shell.dev, tmp_path / "tasks.label-studio.json")
    assert "its tasks have no annotations; the first prediction of each is read" in err
    assert out == shell("score", shell.dev, tmp_path / "found.jsonl")[0]


def test_predict_writes_any_format_and_says_what_it_cannot_hold(shell, tmp_path):
    options = ["--model", shell.model, "--threshold", "0.05", "--overlap", "nested"]
    out, _ = shell("predict", shell.dev, *options, "--output", tmp_path / "found.jsonl")
    assert "found.jsonl: 4 documents" in out
    assert "not kept" not in out
    nested = list(read(tmp_path / "found.jsonl"))
    assert any(document.entities for document in nested)
    out, _ = shell("predict", shell.dev, *options, "--output", tmp_path / "found.conll")
    assert re.search(r"^not kept by conll: .*scores of \d+ entit", out, re.MULTILINE)
    assert len(list(read(tmp_path / "found.conll"))) >= 4
    shell("predict", shell.dev, *options, "--output", tmp_path / "found.x", "--format", "bioc-json")
    assert len(list(read(tmp_path / "found.x", "bioc-json"))) == 4


def test_predict_changes_no_entity_to_fit_a_format_unless_told_to(shell, tmp_path, monkeypatch):
    apart = Entity("Sign", (Span(0, 6), Span(16, 20)), 0.5)

    def found(self, documents, **options):
        return (replace(document, entities=(apart,)) for document in documents)

    monkeypatch.setattr("wingspan.recognizer.Recognizer.predict_stream", found)
    asked = ["predict", "muscle spasm or pain", "--model", shell.model, "--output", tmp_path / "found.conll"]
    said = shell.refuses(*asked)
    assert "found.conll: 'conll' cannot hold 1 discontinuous entity" in said
    assert "of document '0'; go on with --lossy, or choose another --to" in said
    assert not (tmp_path / "found.conll").exists()
    out, _ = shell(*asked, "--lossy")
    assert "changed for conll: 1 discontinuous entity" in out
    (document,) = read(tmp_path / "found.conll")
    assert [entity.spans for entity in document.entities] == [(Span(0, 6),), (Span(16, 20),)]


def test_a_model_that_finds_discontinuous_entities_says_beforehand_that_a_format_cannot_hold_them(shell, tmp_path):
    shell.trains(tmp_path / "links", "--encoder", "hashed", recipe="discontinuous")
    asked = ["predict", shell.dev, "--model", tmp_path / "links", "--output", tmp_path / "found.conll"]
    said = shell.refuses(*asked)
    assert "found.conll: 'conll' cannot hold discontinuous entities, and this model finds them; go on with" in said
    shell(*asked, "--lossy")
    assert len(list(read(tmp_path / "found.conll"))) >= 4
    assert "about the file of --output" in shell.refuses("predict", "a text", "--model", shell.model, "--lossy")
    assert "about the file of --output" in shell.refuses("predict", "a", "--model", shell.model, "--format", "brat")


def test_overlap_and_threshold_reach_the_model(shell):
    def number(*options):
        out, _ = shell("predict", shell.dev, "--model", shell.model, *options)
        return sum(len(json.loads(line)["entities"]) for line in out.splitlines())

    low = number("--threshold", "0.02", "--overlap", "any")
    assert low > number("--threshold", "0.02", "--overlap", "flat") > 0
    assert low > number("--threshold", "0.9", "--overlap", "any")


def test_the_demo_does_not_write_over_a_folder(shell, tmp_path):
    assert "is there already; choose another --output" in shell.refuses("demo", "--output", tmp_path)


def test_recipes(shell):
    out, _ = shell("recipes")
    assert "bundling" in out
    assert "bl-span" in out
    out, _ = shell("recipes", "bundling/bl-span")
    assert "train.learning_rate" in out
    assert "terms.tags.weight = 0.1" in out


def test_every_shown_setting_can_be_set(shell):
    from wingspan.recipe_json import override
    from wingspan.recipes import find

    out, _ = shell("recipes", "bundling/paper")
    shown = [line.split("  (unused")[0].strip().split(" = ") for line in out.splitlines() if " = " in line]
    assert len(shown) > 60
    recipe = find("bundling/paper")
    for key, value in shown:
        override(recipe, key, value)
    assert ["head.start_chance", "null"] in shown  # a default
    assert ["encoder.adapters.rank", "32"] in shown
    assert "  spans: wingspan.spans.pooled:PooledSpans" in out.splitlines()


def test_several_seeds(shell, tmp_path):
    out, _ = shell.trains(tmp_path / "runs", "--dev", shell.dev, "--seeds", "1,2", "--json", tmp_path / "f.json")
    assert "Dev scores over 2 seeds" in out
    summary = json.loads((tmp_path / "runs" / "summary.json").read_text())
    assert summary == json.loads((tmp_path / "f.json").read_text())
    assert summary["micro"]["f1"].keys() == {"mean", "deviation", "values"}


def test_resume_and_from(shell, tmp_path):
    shell.trains(tmp_path / "run", "--dev", shell.dev)
    out, _ = shell.trains(tmp_path / "run", "--resume", "--dev", shell.dev)
    assert "Dev scores" in out
    new = lines(
        tmp_path / "new.jsonl", {"text": "The kidney.", "entities": [{"label": "Organ", "start": 4, "end": 10}]}
    )
    options = ["--train", new, "--output", tmp_path / "more", "--set", "train.epochs=1", "--device", "cpu"]
    shell("train", "baseline", *options, "--from", tmp_path / "run", "--rename", "Gene=Protein")
    labels = json.loads((tmp_path / "more" / "labels.json").read_text())["main"]
    assert "Organ" in labels
    assert "Protein" in labels
    assert "Gene" not in labels


def test_a_changed_recipe_is_not_resumed(shell, tmp_path):
    shell.trains(tmp_path / "run")
    said = shell.refuses(
        "train", "baseline", "--train", shell.train, "--dev", shell.dev, "--output", tmp_path / "run", "--resume"
    )
    assert "--resume: " in said
    assert "now and was" in said


def test_a_run_without_dev_says_so(shell, tmp_path):
    out, _ = shell.trains(tmp_path / "run")
    assert "No dev or test documents were given" in out


def test_a_recipe_file(shell, tmp_path):
    own = tmp_path / "mine.py"
    own.write_text(
        "from dataclasses import replace\n"
        "from wingspan.recipes.baseline import recipe as base\n"
        "from wingspan.encoders.hashed import HashedEncoder\n"
        "def recipe():\n"
        "    return replace(base(), name='mine', encoder=HashedEncoder)\n"
    )
    shell(
        *["train", own, "--train", shell.train, "--output", tmp_path / "run", "--encoder", "hashed"],
        *["--set", "train.epochs=1", "--device", "cpu"],
    )
    out, _ = shell("info", tmp_path / "run")
    assert "recipe: mine" in out


def test_help_lists_every_command_in_the_order_of_use(shell):
    from wingspan.cli import VERBS

    out, _ = shell("--help")
    assert re.findall(r"^│ ([a-z][a-z-]*) ", out, re.MULTILINE) == list(VERBS)


def test_help_has_an_example(shell):
    for verb in ("train", "predict", "evaluate", "info", "recipes", "demo"):
        out, _ = shell(verb, "--help")
        assert f"Example: wingspan {verb}" in " ".join(out.split())
