"""`auto`: what kind of data it sees, and that the kept results, nothing else, decide."""

import io
import json
import os
import runpy
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from rich.console import Console
from several import two_corpora
from transformers import BertConfig, BertModel

import wingspan
from trainings import dev_documents, train_documents, untrained
from wingspan.corpora.statistics import Statistics
from wingspan.encoders.hashed import HashedEncoder
from wingspan.recipe import with_teachers
from wingspan.recipe_json import as_json, flat, spelled_out
from wingspan.recipes import find
from wingspan.training.choice import FOR_BASE, KeptRuns, Settled, choose, kept, rank, settle, weights_of
from wingspan.training.corpora import Corpora
from wingspan.training.run import decide, prepare


def figures(entities=1000, nested=0, discontinuous=0, p99=6) -> Statistics:
    return Statistics(entities=entities, nested=nested, discontinuous=discontinuous, mention_words={"p99": p99})


SHAPES = {
    "flat": (figures(), 0),
    "nested": (figures(nested=80), 0),
    "long": (figures(nested=80, p99=24), 0),
    "discontinuous": (figures(discontinuous=20), 0),
    "several": (figures(), 3),
}


def row(kind, recipe, dev, corpus="one", encoder="minilm", weights=10616832, settings=None, cost=None) -> KeptRuns:
    about = {"kind": kind, "corpus": corpus, "encoder": encoder, "weights": weights}
    timed = {"cost": cost, "cost_encoder": None if cost is None else "minilm"}
    return KeptRuns(**about, recipe=recipe, settings=settings or {}, dev=dev, **timed)


@pytest.mark.parametrize("kind", SHAPES)
def test_another_result_is_another_choice(kind):
    found, corpora = SHAPES[kind]
    first = [row(kind, "a", [80.0, 81.0, 82.0]), row(kind, "b", [70.0, 71.0, 72.0])]
    second = [row(kind, "a", [80.0, 81.0, 82.0]), row(kind, "b", [90.0, 91.0, 92.0])]
    others = [row(other, "c", [99.0, 99.0, 99.0]) for other in SHAPES if other != kind]
    assert choose(found, corpora, "minilm", first + others).recipe == "a"
    chosen = choose(found, corpora, "minilm", second + others)
    assert chosen.recipe == "b"
    assert "b was best on dev of one with minilm, 10.00 F1" in chosen.reason
    assert "chance" not in chosen.reason


@pytest.mark.parametrize(
    ("below", "above", "kind"),
    [
        ({"nested": 9}, {"nested": 10}, "nested"),
        ({"p99": 16}, {"p99": 17}, "long"),
        ({"discontinuous": 4}, {"discontinuous": 5}, "discontinuous"),
    ],
)
def test_the_shares_that_make_a_kind_are_those_of_the_table(below, above, kind):
    rows = [row("flat", "a", [80.0] * 3), row(kind, "b", [80.0] * 3)]
    assert choose(figures(**below), 0, "minilm", rows).recipe == "a"
    assert choose(figures(**above), 0, "minilm", rows).recipe == "b"


def test_recipes_that_share_no_corpus_have_no_lead():
    rows = [row("flat", "a", [80.0] * 3, "one"), row("flat", "b", [70.0] * 3, "two")]
    assert choose(figures(), 0, "minilm", rows).reason.endswith("a was best on dev of one with minilm.")


def test_a_lead_within_the_noise_is_said_to_be_one():
    close = [row("flat", "a", [80.0, 82.0, 84.0]), row("flat", "b", [80.1, 82.1, 83.9])]
    assert "0.03 F1 before a, which may be chance" in choose(figures(), 0, "minilm", close).reason


@pytest.mark.parametrize(
    ("dev", "cost", "chosen"),
    [
        (79.95, 2.0, "quick"),  # as near as nothing
        (79.91, 2.0, "quick"),
        (79.89, 2.0, "best"),
        (79.95, 13.0, "best"),  # quick in name only
        (79.95, None, "best"),  # nobody knows
    ],
)
def test_of_recipes_next_to_each_other_the_one_that_predicts_faster_is_taken(dev, cost, chosen):
    rows = [row("flat", "best", [79.9, 80.0, 80.1], cost=12.0), row("flat", "quick", [dev] * 3, cost=cost)]
    found = choose(figures(), 0, "minilm", rows)
    assert found.recipe == chosen
    quick = (
        f"quick was next to the best on dev of one with minilm, {80 - dev:.2f} F1 behind best, which may be chance, "
        "but predicts 6.0 times as fast on a CPU."
    )
    assert (quick in found.reason) == (chosen == "quick")


def test_a_cost_that_was_measured_with_another_encoder_says_so():
    other = {"encoder": "e5-small", "weights": 21233664}
    rows = [row("flat", "best", [79.9, 80.0, 80.1], cost=12.0, **other)]
    rows += [row("flat", "quick", [79.95] * 3, cost=2.0, **other)]
    reason = choose(figures(), 0, "e5-small", rows).reason
    assert "but predicts 6.0 times as fast on a CPU (measured with minilm)." in reason


def test_the_encoder_of_the_nearest_size_is_asked(tmp_path):
    rows = [
        row("flat", "small", [80.0, 80.0, 80.0]),
        row("flat", "large", [70.0, 70.0, 70.0], encoder="mpnet", weights=84934656),
    ]
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 384, "num_hidden_layers": 6}))
    assert choose(figures(), 0, str(tmp_path), rows).recipe == "small"
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 1024, "num_hidden_layers": 24}))
    assert choose(figures(), 0, str(tmp_path), rows).recipe == "large"
    assert choose(figures(), 0, "someone/some-hub-id", rows).recipe == "large"
    # 32 million: three times the one, but the other is less than three times that
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 384, "num_hidden_layers": 18}))
    assert choose(figures(), 0, str(tmp_path), rows).recipe == "large"


@pytest.mark.parametrize(
    "config",
    ['{"model_type": "bert"}', '{"hidden_size": 384, "num_hidden_layers": -2}', "[" * 100_000, "a list", "[1]", None],
)
def test_an_encoder_whose_size_cannot_be_told_is_taken_for_a_large_one(config, tmp_path):
    path = tmp_path / "config.json"
    os.mkfifo(path) if config is None else path.write_text(config)
    assert weights_of(str(tmp_path)) is None
    chosen = prepare("bundling/span", str(tmp_path), {})
    assert chosen.train.learning_rate == float(FOR_BASE["train.learning_rate"])


@pytest.mark.parametrize(
    ("family", "copied"),
    [("bert", True), ("mpnet", True), ("distilbert", True), ("t5", False), ("modernbert", False)],
)
def test_deep_spans_are_not_chosen_for_an_encoder_whose_blocks_they_cannot_copy(tmp_path, family, copied):
    sizes = {"hidden_size": 384, "num_hidden_layers": 6}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family, **sizes}))
    rows = [row("long", "deep_span/proposals", [80.0] * 3), row("long", "deep_span/biaffine-proposals", [70.0] * 3)]
    chosen = choose(*SHAPES["long"], str(tmp_path), rows).recipe
    assert chosen == ("deep_span/proposals" if copied else "deep_span/biaffine-proposals")


def test_the_reason_names_only_corpora_that_the_winner_ran_on():
    found, corpora = SHAPES["flat"]
    rows = [row("flat", "a", [70.0, 70.0], corpus) for corpus in ("one", "two")] + [row("flat", "b", [80.0, 80.0])]
    assert "b was best on dev of one with minilm" in choose(found, corpora, "minilm", rows).reason


def test_a_recipe_that_ran_on_few_of_the_corpora_is_out():
    rows = [row("flat", "a", [80.0] * 3, corpus) for corpus in ("one", "two", "three")]
    rows.append(row("flat", "lucky", [90.0] * 3, "three"))
    assert choose(figures(), 0, "minilm", rows).recipe == "a"


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("encoder", [None, "hashed", "static:vectors.txt", "minilm", "e5-small", "a/base"])
def test_every_choice_is_a_recipe_that_exists(kind, encoder):
    chosen = choose(*SHAPES[kind], encoder)
    assert find(chosen.recipe).protocol == "recognition"
    assert chosen.reason.startswith("auto: ")
    assert chosen.encoder == (encoder or "hashed")


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "evidence.py"))


def test_the_shipped_results_are_those_that_are_kept(script):
    assert list(kept()) == script["collect"](), "run python benchmarks/evidence.py"


@pytest.mark.parametrize("kind", SHAPES)
def test_other_lines_in_the_results_are_another_choice(kind, script, tmp_path):
    """From the files that are kept to the choice: better dev scores make the last of a ranking the first."""
    encoder = {"long": "e5-small"}.get(kind, "minilm")
    last, _ = rank([row for row in kept() if (row["kind"], row["encoder"]) == (kind, encoder)])[-1]
    assert choose(*SHAPES[kind], encoder).recipe != last
    for name in script["FILES"]:
        rows = [json.loads(line) for line in (script["RESULTS"] / name).read_text(encoding="utf-8").splitlines()]
        for each in rows:
            if each["recipe"] == last and script["KINDS"].get(each["corpus"]) == kind:
                scored = [system["dev"]["discontinuous"] for system in each.get("systems", {}).values()]
                for figures in scored or [each["dev"]]:
                    figures["f1"] = 99.0
        (tmp_path / name).write_text("".join(f"{json.dumps(each)}\n" for each in rows), encoding="utf-8")
    changed = choose(*SHAPES[kind], encoder, script["collect"](tmp_path))
    assert changed.recipe == last
    assert f"{last} was best on dev of" in changed.reason


def test_no_two_recipes_of_the_results_differ_in_name_only():
    recipes = [find(name) for name in sorted({row["recipe"] for row in kept()})]
    facts = [json.dumps(as_json(replace(recipe, name="", paper=""))) for recipe in recipes]
    same = {recipe.name for recipe, fact in zip(recipes, facts, strict=True) if facts.count(fact) > 1}
    assert not same


def collected(script, folder, runs, seeds=(0, 1, 2)):
    """What the script makes of runs with a recipe, settings and a dev score that rises with the seed."""
    lines = [
        {"recipe": recipe, "settings": settings, "seed": seed, "dev": {"f1": dev + seed}}
        for recipe, settings, dev in runs
        for seed in seeds
    ]
    for name in script["FILES"]:
        (folder / name).write_text("")
    rows = [json.dumps({"corpus": "genia", "encoder": "minilm", **line}) for line in lines]
    (folder / script["FILES"][0]).write_text("\n".join(rows))
    return [(each["recipe"], each["settings"], each["dev"]) for each in script["collect"](folder)]


def test_runs_of_other_budgets_are_not_compared(script, tmp_path):
    few, many = {"train.epochs": "5"}, {"train.epochs": "50"}
    runs = [("deep_span/biaffine", few, 80), ("bundling/span", few, 81), ("bundling/bl-span", many, 90)]
    runs += [("bundling/span", {**few, "train.precision": "bf16", "spans.dropout": "0.3"}, 83)]
    assert collected(script, tmp_path, runs) == [
        ("bundling/span", {"spans.dropout": "0.3"}, [83, 84, 85]),
        ("deep_span/biaffine", {}, [80, 81, 82]),
    ]


def test_the_epochs_of_all_phases_are_a_budget_and_none_of_them_a_setting(script, tmp_path):
    runs = [("compress_generate/baseline", {"train.epochs": "8"}, 80), ("compress_generate/supvib", {}, 85)]
    runs += [("compress_generate/supvib", {"train.epochs": "8"}, 81)]
    runs += [("compress_generate/all", {"train.epochs": "8", "phases.0.epochs": "2"}, 90)]
    runs += [("compress_generate/all", {"train.epochs": "6", "phases.0.epochs": "2"}, 79)]
    runs += [("compress_generate/supvib-spanreco", {"train.epochs": "5"}, 78)]  # after the recipe's own three
    assert collected(script, tmp_path, runs) == [
        ("compress_generate/all", {}, [79, 80, 81]),
        ("compress_generate/baseline", {}, [80, 81, 82]),
        ("compress_generate/supvib", {}, [81, 82, 83]),
        ("compress_generate/supvib-spanreco", {}, [78, 79, 80]),
    ]


def test_runs_of_one_seed_count_as_one(script, tmp_path):
    runs = [("bundling/span", {}, 80), ("deep_span/biaffine", {}, 70), ("deep_span/biaffine", {}, 72)]
    assert collected(script, tmp_path, runs) == [
        ("bundling/span", {}, [80, 81, 82]),
        ("deep_span/biaffine", {}, [71, 72, 73]),
    ]
    assert collected(script, tmp_path, 3 * runs, seeds=(1, 2)) == []


def test_a_cost_names_the_encoder_that_it_was_measured_with(script):
    encoder, costs = script["costs"]()
    assert encoder == "minilm"
    assert {row["recipe"]: row["cost"] for row in kept() if row["cost_encoder"] == encoder}.items() <= costs.items()
    assert all((row["cost"] is None) == (row["cost_encoder"] is None) for row in kept())


def test_the_table_shows_what_auto_chooses(monkeypatch):
    """Also where deep spans cannot be made for the encoders."""
    folder = Path(__file__).parents[2] / "benchmarks"
    monkeypatch.syspath_prepend(str(folder))
    choices = runpy.run_path(str(folder / "tables.py"))["choices"]  # tests share helpers in a module of that name
    for copyable in (True, False):
        monkeypatch.setattr("wingspan.training.choice.has_copyable_blocks", lambda _, copyable=copyable: copyable)
        _, _, *lines = choices().splitlines()
        for kind, line in zip(SHAPES, lines, strict=True):
            cells = line.strip("| ").split(" | ")[1:]
            for encoder, cell in zip(("minilm", "e5-small", "all-mpnet-base-v2"), cells, strict=True):
                assert cell.split("`")[1] == choose(*SHAPES[kind], encoder).recipe


def test_the_lead_is_that_on_corpora_that_both_recipes_saw():
    rows = [row("flat", "a", [80.0, 82.0], "one"), row("flat", "a", [50.0, 52.0], "two")]
    rows += [row("flat", "b", [79.0, 81.0], "one")]
    assert "1.00 F1 before b on one, which may be chance" in choose(figures(), 0, "minilm", rows).reason


def test_the_corpora_of_the_lead_are_named_where_they_are_fewer():
    rows = [row("flat", "a", [80.0, 82.0], "one"), row("flat", "a", [50.0, 52.0], "two")]
    rows += [row("flat", "b", [79.0, 81.0], "one")]
    reason = choose(figures(), 0, "minilm", rows).reason
    assert "a was best on dev of one and two with minilm, 1.00 F1 before b on one, which may be chance." in reason


def test_a_lead_that_contradicts_the_ranking_is_not_told():
    """On the one corpus that both saw b is ahead of a, and on another far behind c, which saw too few."""
    rows = [row("flat", "a", [80.0] * 3, "one"), row("flat", "a", [90.0] * 3, "two")]
    rows += [row("flat", "b", [80.4] * 3, "one"), row("flat", "b", [70.0] * 3, "three")]
    rows += [row("flat", "c", [99.0] * 3, "three")]
    assert choose(figures(), 0, "minilm", rows).reason.endswith(" a was best on dev of one and two with minilm.")


def test_a_lead_that_contradicts_it_is_not_told_of_the_faster_one_either():
    """By the mean distance from each corpus' best `best` is just ahead; on the corpus that both saw it is behind."""
    rows = [row("flat", "best", [80.0] * 3, "one", cost=12.0), row("flat", "best", [80.0] * 3, "two", cost=12.0)]
    rows += [row("flat", "quick", [80.05] * 3, "one", cost=2.0), row("flat", "quick", [69.92] * 3, "three", cost=2.0)]
    rows += [row("flat", "c", [70.0] * 3, "three")]
    reason = choose(figures(), 0, "minilm", rows).reason
    assert "quick was next to the best on dev of one and three with minilm, but predicts 6.0 times as fast" in reason
    assert reason.endswith(" times as fast as best on a CPU.")


def test_the_noise_of_a_lead_shrinks_with_the_corpora():
    """Two standard errors of one corpus are 1.6, of the mean over four 0.8."""
    noisy = [-1.0, 0.0, 1.0]
    rows = [row("flat", "a", [80.0 + one for one in noisy], str(at)) for at in range(4)]
    rows += [row("flat", "b", [78.5 + one for one in noisy], str(at)) for at in range(4)]
    assert "chance" not in choose(figures(), 0, "minilm", rows).reason
    assert "chance" in choose(figures(), 0, "minilm", [each for each in rows if each["corpus"] == "0"]).reason


def test_the_lead_of_one_seed_may_be_chance():
    rows = [row("flat", "a", [90.0]), row("flat", "b", [70.0])]
    assert "which may be chance" in choose(figures(), 0, "minilm", rows).reason


def test_settings_of_the_best_runs_come_with_the_recipe():
    settings = {"encoder.word_dropout": "0.15", "spans.dropout": "0.3"}
    rows = [row("flat", "a", [80.0, 80.0], "one", settings=settings), row("flat", "b", [70.0, 70.0])]
    rows += [row("flat", "a", [80.0, 80.0], "two", settings={**settings, "spans.dropout": "0.1"})]
    chosen = choose(figures(), 0, "minilm", rows)
    assert chosen.settings == {"encoder.word_dropout": "0.15"}
    assert chosen.reason.endswith(" Set as there, unless you do: encoder.word_dropout=0.15.")


@pytest.mark.parametrize("given", [{}, {"encoder.word_dropout": "0.25"}])
def test_auto_trains_with_them_where_the_user_sets_nothing(folders, given):
    small = {"encoder": str(folders["bert"]), "epochs": 1, "device": "cpu"}
    documents = [replace(d, entities=tuple(e for e in d.entities if len(e.spans) == 1)) for d in train_documents(4)]
    model = wingspan.train("auto", train=documents, settings=given, **small)
    assert model.recipe.encoder.keywords["word_dropout"] == float(given.get("encoder.word_dropout", 0.15))


SET = {"train.learning_rate": "0.0007", "head.dropout": "0.2", "joining.fragments": "split", "max_width": "3"}


def test_auto_goes_on_from_a_model_with_its_settings(tmp_path):
    start = {"encoder": "hashed", "epochs": 1, "output": tmp_path / "one", "device": "cpu"}
    before = wingspan.train("bundling/span", train=train_documents(4), settings=SET, **start)
    log = Console(file=io.StringIO(), width=300)
    more = {"train": train_documents(4), "device": "cpu", "console": log}
    model = wingspan.train("auto", start=tmp_path / "one", settings={"train.clip": "2.0"}, **more)
    said = f"auto: {tmp_path / 'one'} was trained as bundling/span, and goes on with the same settings."
    assert said in log.file.getvalue()
    old, new = (dict(flat(as_json(each.recipe))) for each in (before, model))
    assert {name for name in old if old[name] != new[name]} <= {"train.clip", "max_width", "segments.overlap"}
    assert new["max_width"] >= 3  # wider where the documents need it


def test_auto_goes_on_from_what_a_teacher_has_taught(tmp_path):
    """Without the teacher the other losses are as they were, and with one again that of the teacher is, too."""
    teacher, taught = tmp_path / "teacher", tmp_path / "taught"
    untrained("bundling/span", encoder=partial(HashedEncoder)).save_pretrained(teacher)
    some = {"train": train_documents(4), "device": "cpu"}
    settings = {"terms.teachers.weight": 0.9, "terms.teachers.objective.temperature": 2.0}
    wingspan.train(
        "bundling/bl-span", teachers=[teacher], settings=settings, encoder="hashed", epochs=1, output=taught, **some
    )
    alone, again = (
        {name: term.weight for name, term in wingspan.train("auto", start=taught, **given, **some).recipe.terms.items()}
        for given in ({}, {"teachers": [teacher]})
    )
    assert alone == pytest.approx({"spans": 0.45, "tags": 0.05})
    assert again == pytest.approx({"spans": 0.45, "tags": 0.05, "teachers": 0.9})


def test_nothing_goes_on_without_the_teachers_that_were_all_it_had(tmp_path):
    terms = with_teachers(find("bundling/span"), 1.0).terms
    untrained("bundling/span", encoder=partial(HashedEncoder), terms=terms).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="'bundling/span' learns from teachers alone; give them with --teacher"):
        settle("auto", Corpora(train_documents(2)), None, tmp_path)
    assert "teachers" in settle("auto", Corpora(train_documents(2)), None, tmp_path, taught=True).recipe.terms


def test_teachers_leave_what_auto_brings_in_proportion(monkeypatch):
    settled = Settled("bundling/bl-span", None, None, {"terms.tags.weight": "0.3"})
    monkeypatch.setattr("wingspan.training.run.settle", lambda *_, **__: settled)
    recipe, _ = decide("auto", Corpora(train_documents(2)), None, {}, Console(quiet=True), taught=True)
    assert {name: term.weight for name, term in recipe.terms.items()} == {"spans": 0.45, "tags": 0.15, "teachers": 0.5}


def test_auto_goes_on_from_a_model_of_the_hub_and_with_parts_that_are_trusted(tmp_path, monkeypatch):
    (tmp_path / "mine_to_go_on.py").write_text("from wingspan.heads.feedforward import FeedForwardHead as Mine\n")
    folder = tmp_path / "one"
    untrained("bundling/span", encoder=partial(HashedEncoder)).save_pretrained(folder)
    path = folder / "recipe.json"
    path.write_text(path.read_text().replace("wingspan.heads.feedforward:FeedForwardHead", "mine_to_go_on:Mine"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("wingspan.training.choice.download", lambda name, _: {"someone/model": folder}[name])
    with pytest.raises(ValueError, match="outside wingspan; if you trust it"):
        settle("auto", Corpora(train_documents(2)), None, "someone/model")
    found = settle("auto", Corpora(train_documents(2)), None, "someone/model", ["mine_to_go_on"])
    assert found.recipe.name == "bundling/span"


def test_what_a_model_calls_its_recipe_writes_no_lines_of_the_log(tmp_path):
    untrained("bundling/span", encoder=partial(HashedEncoder)).save_pretrained(tmp_path)
    path = tmp_path / "recipe.json"
    path.write_text(path.read_text().replace('"bundling/span"', json.dumps("a\x1b[2J\nLeaks: none")))
    reason = settle("auto", Corpora(train_documents(2)), None, tmp_path).reason
    assert "was trained as a [2J Leaks: none, and" in reason


def test_auto_goes_on_from_a_papers_settings_and_from_the_installed_kind(tmp_path):
    """Two variants may have one name, and some have one that is none here."""
    for recipe in ("bundling/seq-crf", "bundling/paper"):
        untrained(recipe, encoder=partial(HashedEncoder)).save_pretrained(tmp_path / "one")
        stored = json.loads((tmp_path / "one" / "recipe.json").read_text())["recipe"]
        found = settle("auto", Corpora(train_documents(2)), None, tmp_path / "one").recipe
        assert as_json(spelled_out(found)) == {**stored, "max_width": "auto", "overlap": "auto"}


def test_a_name_in_a_model_folder_runs_no_code(tmp_path, monkeypatch):
    folder = tmp_path / "one"
    untrained("bundling/span", encoder=partial(HashedEncoder)).save_pretrained(folder)
    (folder / "evil.py").write_text("raise SystemExit('code of a model folder was run')\n")
    saved = json.loads((folder / "recipe.json").read_text())
    saved["recipe"]["name"] = str(folder / "evil.py")
    (folder / "recipe.json").write_text(json.dumps(saved))
    more = {"train": train_documents(4), "epochs": 1, "device": "cpu"}
    wingspan.train("auto", start=folder, **more)


def test_auto_reads_no_pipe(tmp_path):
    folder = tmp_path / "one"
    untrained("bundling/span", encoder=partial(HashedEncoder)).save_pretrained(folder)
    (folder / "recipe.json").unlink()
    os.mkfifo(folder / "recipe.json")
    with pytest.raises(ValueError, match="no regular file but a pipe"):
        settle("auto", Corpora(train_documents(2)), None, folder)


@pytest.mark.parametrize("recipe", ["auto", "baseline"])
def test_nothing_goes_on_from_an_exported_model(recipe, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ValueError, match="--from: .* is exported and can only predict; give the model that it was"):
        wingspan.train(recipe, start=tmp_path, train=train_documents(2))


def test_the_corpora_file_wins_over_what_auto_brings_and_the_user_over_both(monkeypatch):
    brought = {"train.sampling": "uniform", "train.epochs": "3", "train.clip": "2.0"}
    settled = Settled("baseline", None, "auto: so.", brought)
    monkeypatch.setattr("wingspan.training.run.settle", lambda *_, **__: settled)
    plan = two_corpora(2, settings={"train.sampling": "temperature", "train.epochs": "4"})
    data = Corpora(plan.training, plan=plan)
    log = Console(file=io.StringIO())
    recipe, reason = decide("auto", data, None, {"train.epochs": 5}, log)
    assert (recipe.train.sampling, recipe.train.epochs, recipe.train.clip) == ("temperature", 5, 2.0)
    assert reason == "auto: so."


def test_the_choice_is_said_before_a_setting_is_refused():
    log = Console(file=io.StringIO(), width=300)
    with pytest.raises(ValueError, match="no such setting"):
        wingspan.train("auto", train=train_documents(2), settings={"train.epoch": "1"}, console=log)
    assert "auto: " in log.file.getvalue()


@pytest.mark.parametrize("kind", ["discontinuous", "several"])
def test_without_an_encoder_recipes_are_made_for_that(kind):
    """The rates and epochs of recipes for pretrained encoders end far below."""
    chosen = find(choose(*SHAPES[kind], None).recipe)
    assert as_json(chosen.encoder) == as_json(find("baseline").encoder)
    assert chosen.train == find("baseline").train
    assert ("links" in chosen.terms) == (kind == "discontinuous")


def test_a_corpus_that_is_only_scored_does_not_make_several():
    target, other = two_corpora(4).corpora
    scored = replace(other, train=(), dev=(), test=other.train)
    assert choose_for(target, other).reason.startswith("auto: 2 corpora with documents to train on")
    assert "corpora" not in choose_for(target, scored).reason


def choose_for(*corpora):
    plan = replace(two_corpora(4), corpora=corpora)
    return settle("auto", Corpora(plan.training, plan.target.dev, plan=plan), None)


def test_what_other_recipes_would_find_is_said():
    missed = "2 corpora with documents to train on; 20 entities in pieces will be missed, which {} finds. "
    assert missed.format("baseline/links") in choose(figures(discontinuous=20), 2, None).reason
    assert missed.format("discontinuous") in choose(figures(discontinuous=20), 2, "minilm").reason
    assert "; 1 entity in pieces will be missed" in choose(figures(discontinuous=1), 2, "minilm").reason
    assert "missed" not in choose(figures(discontinuous=20), 0, None).reason


def test_only_commands_with_a_corpus_know_auto():
    with pytest.raises(ValueError, match="auto is chosen for one corpus, by `wingspan train` and `tune`"):
        find("auto")
    with pytest.raises(ValueError, match="auto has no variant 'paper': it chooses among all recipes"):
        find("auto/paper")


def test_named_recipes_stay_as_they_are():
    assert settle("bundling/span", Corpora(train_documents(2)), None) == Settled("bundling/span", None)


def test_auto_trains_says_why_and_remembers_it(tmp_path):
    console = Console(record=True, width=200, file=io.StringIO())
    model = wingspan.train(
        "auto", train=train_documents(6), dev=dev_documents(), epochs=1, output=tmp_path / "run", console=console
    )
    assert model.recipe.name == "baseline"
    said = console.export_text()
    assert "No pretrained encoder, so baseline, which needs none" in said
    assert model.facts["choice"].startswith("auto: ")
    assert "No pretrained encoder" in (tmp_path / "run" / "README.md").read_text()


@pytest.fixture(scope="module")
def base(tmp_path_factory, folders):
    """A random encoder of base shape: six layers of 768, like DistilBERT, thin inside."""
    folder = Path(shutil.copytree(folders["bert"], tmp_path_factory.mktemp("encoders") / "base"))
    shape = dict(hidden_size=768, num_hidden_layers=6, num_attention_heads=2, intermediate_size=8)
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=20, max_position_embeddings=40, **shape)).save_pretrained(folder)
    return str(folder)


def test_an_encoder_of_base_size_gets_settings_of_its_own(base, folders):
    small, large = (prepare("bundling/bl-span", name, {}) for name in (str(folders["bert"]), base))
    assert small.train == find("bundling/bl-span").train
    assert large.train.learning_rate == float(FOR_BASE["train.learning_rate"]) < small.train.learning_rate
    assert large.train.warmup == float(FOR_BASE["train.warmup"])
    assert large.train.epochs == int(FOR_BASE["train.epochs"])
    assert large.train.factors["model.scorer"] == float(FOR_BASE["train.factors.model.scorer"])
    assert large.encoder.keywords["word_dropout"] == float(FOR_BASE["encoder.word_dropout"])
    assert large.train.batch_size == small.train.batch_size


@pytest.mark.parametrize("key", FOR_BASE)
def test_what_the_user_sets_wins(base, key):
    own = {"train.epochs": "3"}.get(key, "0.25")
    recipe = prepare("deep_span", base, {key: own})
    values = dict(flat(as_json(recipe)))
    for name, value in FOR_BASE.items():
        assert float(values[name]) == float(own if name == key else value)


@pytest.mark.parametrize("factors", ["{}", '{"model.scorer": 2}'])
def test_all_factors_that_the_user_sets_win(base, factors):
    assert prepare("bundling/span", base, {"train.factors": factors}).train.factors == json.loads(factors)


def test_recipes_of_papers_and_of_users_stay_as_they_are(base, tmp_path):
    paper = prepare("bundling/paper", base, {})
    assert paper.train == find("bundling/paper").train
    assert "word_dropout" not in paper.encoder.keywords
    assert prepare(find("bundling/bl-span"), base, {}).train == find("bundling/bl-span").train
    file = tmp_path / "own.py"
    file.write_text("from wingspan.recipes import find\n\ndef recipe():\n    return find('bundling/bl-span')\n")
    assert prepare(str(file), base, {}).train == find("bundling/bl-span").train
    adapted = prepare("bundling/bl-span", base, {"encoder.adapters.rank": 4})
    assert adapted.train == find("bundling/bl-span").train


def test_the_log_says_the_settings_and_the_model_keeps_them(base, tmp_path):
    log = Console(file=io.StringIO(), width=300)
    given = {"train": train_documents(2), "device": "cpu", "console": log}
    wingspan.train("bundling/span", encoder=base, epochs=1, output=tmp_path / "one", **given)
    assert (
        "An encoder of base size: learning rate 5e-05, 10 times that for new parts, warm-up 0.1, 1 epoch, "
        "word dropout 0.15; --set changes them." in log.file.getvalue()
    )
    kept_recipe = json.loads((tmp_path / "one" / "recipe.json").read_text())["recipe"]
    assert kept_recipe["train"]["learning_rate"] == 5e-5
    assert kept_recipe["train"]["epochs"] == 1
    assert kept_recipe["encoder"]["word_dropout"] == 0.15
    again = prepare("bundling/span", None, {"train.epochs": 1}, tmp_path / "one")
    assert again.train.learning_rate == 5e-5  # a model to go on from has a size, too
    assert again.train.epochs == 1


def test_sizes_of_encoders(folders, base, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert weights_of("minilm") == 12 * 384 * 384 * 6
    assert weights_of("e5-small") == 12 * 384 * 384 * 12
    assert weights_of(base) == 12 * 768 * 768 * 6
    assert weights_of("nobody/has-this") is None
    assert "(the size of nobody/has-this is not known)" in choose(figures(), 0, "nobody/has-this").reason
    for name in ("bert", "roberta", "t5", "bart"):
        assert weights_of(str(folders[name])) < 10_000


def test_the_page_has_the_settings_for_base_encoders():
    page = (Path(__file__).parents[2] / "docs" / "encoders.md").read_text(encoding="utf-8")
    table = page[page.index("## Settings for base encoders") : page.index("## Trained from scratch")]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    assert {name.strip("` "): value for names, value in rows for name in names.split(",")} == FOR_BASE
