import inspect
import json
import math
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest

from wingspan.encoders.hashed import HashedEncoder
from wingspan.heads.feedforward import FeedForwardHead
from wingspan.recipe import Phase, Recipe, assemble
from wingspan.recipe_json import as_json, flat, from_json, override, settings_of, spelled_out
from wingspan.recipes import NAMES, find, variants

EVERY = [f"{system}/{variant}".rstrip("/") for system in NAMES for variant in variants(system)]


def baseline() -> Recipe:
    return find("baseline")


def bundled() -> Recipe:
    return find("bundling/bl-span")


@pytest.mark.parametrize("name", EVERY)
def test_every_recipe_survives_json(name):
    recipe = find(name)
    record = json.loads(json.dumps(as_json(recipe), allow_nan=False))
    back = from_json(record)
    assert isinstance(back, Recipe)
    assert as_json(back) == as_json(recipe)
    assert back.train == recipe.train
    assert back.segments == recipe.segments
    assert back.phases == recipe.phases
    assert (back.encoder.func, back.encoder.keywords) == (recipe.encoder.func, recipe.encoder.keywords)
    assert {n: t.weight for n, t in back.terms.items()} == {n: t.weight for n, t in recipe.terms.items()}


@pytest.mark.parametrize("name", ["baseline", "bundling/bl-span", "conditional", "compress_generate"])
def test_a_recipe_that_is_spelled_out_is_the_same_and_no_default_can_change_it(name):
    recipe = find(name)
    spelled = spelled_out(recipe)
    assert {s.key: s.value for s in settings_of(spelled)} == {s.key: s.value for s in settings_of(recipe)}
    assert as_json(from_json(as_json(spelled))) == as_json(spelled) == as_json(spelled_out(spelled))
    for part in (spelled.encoder, spelled.spans, spelled.head, *(term.objective for term in spelled.terms.values())):
        if part is not None:
            named = inspect.signature(part.func).parameters.values()
            assert {p.name for p in named if p.kind is p.KEYWORD_ONLY} == set(part.keywords)


def test_defaults_that_a_file_could_not_hold_are_left_where_they_are():
    numbers = [1]

    class Own(FeedForwardHead):
        def __init__(self, sizes, *, most: float = math.inf, some: list[int] = numbers, dropout: float = 0.1):
            super().__init__(sizes, dropout=dropout)

    assert spelled_out(partial(Own)).keywords == {"dropout": 0.1}


def test_lists_come_back_as_tuples_and_parts_can_be_built():
    recipe = replace(baseline(), max_width=3, overlap="flat", thresholds={"Drug": 0.25})
    back = from_json(json.loads(json.dumps(as_json(recipe))))
    assert back.spans.keywords["views"] == ("first", "last", "max")
    assert back.thresholds == {"Drug": 0.25}
    from wingspan.labels import LabelSet

    assert assemble(back, LabelSet({"main": ("Drug",)})).model.scorer is not None


@pytest.mark.parametrize("label", ["part", "record", "pairs"])
def test_labels_may_have_any_name(label):
    recipe = replace(baseline(), thresholds={label: 0.5, "Drug": 0.25})
    back = from_json(json.loads(json.dumps(as_json(recipe))))
    assert back.thresholds == {label: 0.5, "Drug": 0.25}


def test_what_json_cannot_hold_is_refused_when_saving():
    with pytest.raises(ValueError, match="scalars, lists, maps and parts"):
        as_json(replace(baseline(), thresholds=object()))
    with pytest.raises(ValueError, match="give the settings of FeedForwardHead by name"):
        as_json(partial(FeedForwardHead, 5))


def trap(tmp_path, monkeypatch, name: str):
    """A module that leaves a mark when it is imported."""
    mark = tmp_path / "imported"
    (tmp_path / f"{name}.py").write_text(
        f"open({str(mark)!r}, 'w').close()\nfrom wingspan.encoders.hashed import HashedEncoder\n"
        "class Mine(HashedEncoder):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    return mark


def test_a_part_from_elsewhere_is_refused_before_it_is_imported(tmp_path, monkeypatch):
    mark = trap(tmp_path, monkeypatch, "parts_of_mine")
    record = {**as_json(baseline()), "encoder": {"part": "parts_of_mine:Mine"}}
    with pytest.raises(ValueError, match=r"outside wingspan; if you trust it, load with parts=\['parts_of_mine'\]"):
        from_json(record)
    assert not mark.exists()
    trusted = from_json(record, parts=["parts_of_mine"])
    assert trusted.encoder.func.__name__ == "Mine"
    assert mark.exists()


@pytest.mark.parametrize(
    "path", ["os:system", "wingspan_evil.x:Y", "wingspanx:Y", "builtins:eval", "", ":", "wingspan:load", ".os:system"]
)
def test_no_other_prefix_passes(path):
    with pytest.raises(ValueError, match="outside wingspan"):
        from_json({"part": path})


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("wingspan.nowhere:X", "cannot be imported"),
        ("wingspan.:X", "cannot be imported"),
        ("wingspan.recipe_json:import_module", "no encoder"),
        ("wingspan.recipe_json:nothing", "no encoder"),
        ("wingspan.recipe:Recipe", "no encoder"),
        ("wingspan.encoders.pretrained:AutoModel", "no encoder"),
    ],
)
def test_what_is_no_part_is_said(path, said):
    with pytest.raises(ValueError, match=said):
        from_json({"part": path})


def test_a_part_in_the_wrong_place_is_said():
    record = as_json(baseline())
    with pytest.raises(ValueError, match="the encoder must be a part of the family Encoder"):
        from_json({**record, "encoder": record["head"]})
    with pytest.raises(ValueError, match="the encoder must be a part of the family Encoder"):
        from_json({**record, "encoder": "hashed"})


def test_a_setting_of_an_older_folder_that_is_gone_is_left_out():
    record = as_json(baseline())
    record["train"]["average"] = 0.99
    assert from_json(record).train == baseline().train


def test_an_objective_of_an_older_folder_that_is_gone_is_left_out():
    """R-Drop, whose weightless term was only for training."""
    record = as_json(replace(baseline(), phases=(Phase(2, ("spans",)), Phase())))
    record["terms"]["consistency"] = {
        "record": "Term",
        "objective": {"part": "wingspan.objectives.classification:Consistency", "link": "softmax"},
        "weight": 1.0,
    }
    record["phases"][0]["terms"].append("consistency")
    read = from_json(record)
    assert list(read.terms) == ["spans"]
    assert read.phases[0].terms == ("spans",)


@pytest.mark.parametrize(
    "damage",
    [
        {"record": "Novelty"},
        {"novelty": 1},
        {"encoder": {"part": "wingspan.encoders.hashed:HashedEncoder", "novelty": 1}},
        {"terms": None},
        {"read_with": "tags"},
    ],
)
def test_a_foreign_or_damaged_record_is_one_sentence(damage):
    with pytest.raises(ValueError, match="recipe"):
        from_json({**as_json(baseline()), **damage})


def test_a_record_without_its_settings_is_one_sentence():
    with pytest.raises(ValueError, match="Recipe is damaged"):
        from_json({"record": "Recipe"})


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("train.epochs", "3", 3),
        ("train.epochs", "3.0", 3),
        ("train.learning_rate", "1e-4", 1e-4),
        ("train.learning_rate", "1", 1),
        ("train.schedule", "cosine", "cosine"),
        ("train.patience", "5", 5),
        ("train.patience", "none", None),
        ("train.decay_bias", "true", True),
        ("train.decay_bias", "False", False),
        ("train.precision", "no", "no"),
        ("max_width", "8", 8),
        ("max_width", "auto", "auto"),
        ("overlap", "nested", "nested"),
        ("thresholds", "0.4", 0.4),
        ("segments.max_length", "128", 128),
        ("spans.width_size", "10", 10),
        ("spans.views", '["first", "mean"]', ("first", "mean")),
        ("spans.sentence", "true", True),
        ("head.hidden", "[64, 32]", (64, 32)),
        ("head.hidden", "[]", ()),
        ("head.dropout", "0", 0),
        ("encoder.name", "my/model", "my/model"),
        ("encoder.name", "123", "123"),
        ("encoder.shapes", "none", None),
        ("encoder.shapes", "false", False),
        ("encoder.pooling", "first", "first"),
        ("terms.tags.weight", "0.3", 0.3),
        ("terms.tags.objective.crf", "true", True),
        ("terms.spans.objective.link", "sigmoid", "sigmoid"),
    ],
)
def test_a_scalar_is_set(key, text, value):
    changed = override(bundled(), key, text)
    for name in key.split("."):
        if isinstance(changed, partial):
            changed = changed.keywords[name]
        else:
            changed = changed[name] if isinstance(changed, dict) else getattr(changed, name)
    assert changed == value
    assert type(changed) is type(value)
    json.dumps(as_json(override(bundled(), key, text)))


def test_setting_leaves_the_rest_and_the_original_alone():
    recipe = bundled()
    before = as_json(recipe)
    after = as_json(override(recipe, "terms.tags.weight", "0.3"))
    assert as_json(recipe) == before
    assert after["terms"]["tags"]["weight"] == 0.3
    after["terms"]["tags"]["weight"] = before["terms"]["tags"]["weight"]
    assert after == before


def test_maps_of_numbers_take_new_names_with_dots():
    changed = override(bundled(), "train.factors.model.encoder", "0.5")
    assert changed.train.factors == {**bundled().train.factors, "model.encoder": 0.5}
    changed = override(changed, "train.factors.model", "2")
    assert override(changed, "train.factors.model.encoder", "1").train.factors["model.encoder"] == 1
    both = override(override(bundled(), "thresholds.Drug", "0.3"), "thresholds.Cell type", "0.6")
    assert both.thresholds == {"Drug": 0.3, "Cell type": 0.6}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("train.epoch", "no such setting; did you mean 'train.epochs'?"),
        ("trian.epochs", "no such setting; did you mean 'train.epochs'?"),
        ("max_widht", "did you mean 'max_width'?"),
        ("spans.width", "did you mean 'spans.width_size'?"),
        ("terms.tag.weight", "did you mean 'terms.tags.weight'?"),
        ("head.xyz", "no setting 'xyz'; there are hidden, shares, dropout, input_dropout, spread, start_chance"),
        ("train.epochs.more", "nothing can be set inside"),
    ],
)
def test_a_wrong_name_gets_a_suggestion(key, said):
    with pytest.raises(ValueError, match="--set") as caught:
        override(bundled(), key, "1")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("train.epochs", "many", "expected a whole number, not 'many'"),
        ("train.epochs", "2.5", "expected a whole number"),
        ("train.epochs", "auto", "expected a whole number"),
        ("train.epochs", "none", "expected a whole number"),
        ("train.epochs", "true", "expected a whole number"),
        ("train.learning_rate", "fast", "expected a number"),
        ("train.learning_rate", "NaN", "expected a number"),
        ("train.learning_rate", "Infinity", "expected a number"),
        ("train.decay_bias", "1", "expected true or false"),
        ("train.schedule", "quadratic", "expected linear or cosine or constant, not 'quadratic'"),
        ("train.patience", "soon", "expected a whole number or none"),
        ("train.factors", "3", "expected a number for each name"),
        ("train.factors.model", "high", "expected a number"),
        ("max_width", "wide", "expected a whole number or auto"),
        ("overlap", "crossing", "expected flat or nested or any or auto"),
        ("thresholds", "high", "expected a number"),
        ("spans.views", "first", "expected a list in brackets"),
        ("head.hidden", "64", "expected a list in brackets, each a whole number"),
        ("head.hidden", '["a"]', "expected a list in brackets"),
        ("encoder.pooling", "median", "expected first or last or mean or max"),
        ("segments.max_length", "0", "a window holds at least 1"),
        ("read_with", "links", "reads with 'links'"),
    ],
)
def test_a_wrong_value_is_refused(key, text, said):
    with pytest.raises(ValueError, match=r".") as caught:
        override(bundled(), key, text)
    assert said in str(caught.value)


@pytest.mark.parametrize("key", ["encoder", "spans", "head", "terms", "terms.tags", "train", "segments", "phases"])
def test_a_part_is_no_scalar(key):
    with pytest.raises(ValueError, match="this is a part, not a scalar; write a recipe file"):
        override(bundled(), key, "hashed")


def test_settings_without_a_recipe_part_are_said():
    with pytest.raises(ValueError, match="nothing can be set inside None"):
        override(find("bundling/seq"), "spans.width_size", "3")


def test_records_name_parts_by_module_and_class():
    assert as_json(partial(HashedEncoder, hidden=3)) == {
        "part": "wingspan.encoders.hashed:HashedEncoder",
        "hidden": 3,
    }
    assert as_json(HashedEncoder) == {"part": "wingspan.encoders.hashed:HashedEncoder"}


def test_decoding_and_batches_import_no_torch():
    code = "import sys, wingspan.batch, wingspan.decoding, wingspan.labels; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", EVERY)
def test_every_setting_that_is_shown_can_be_set(name):
    recipe = find(name)
    before = dict(flat(as_json(recipe)))
    for key, value, settable, unused in settings_of(recipe):
        if settable:
            after = dict(flat(as_json(override(recipe, key, json.dumps(value)))))
            if unused is None:
                assert after == (before if key.startswith("phases.") else {**before, key: value})
            else:
                assert after[key] == value
        elif key.endswith(".NAME"):
            own = key.replace(".NAME", ".mine.too")
            assert (own, 0.5) in flat(as_json(override(recipe, own, "0.5")))
        else:
            with pytest.raises(ValueError, match="not a scalar"):
                override(recipe, key, "x")


def test_defaults_of_parts_are_shown_and_what_a_recipe_sets():
    shown = {setting.key: setting for setting in settings_of(find("baseline/pretrained"))}
    assert shown["spans.width_size"].value == 25  # set by the recipe
    assert shown["spans.sentence"].value is False  # left at its default
    assert shown["encoder.adapters"].value is None
    assert shown["encoder.adapters.rank"].unused == "encoder.adapters"
    assert shown["encoder"] == ("encoder", "wingspan.encoders.pretrained:PretrainedEncoder", False, None)
    for part in ("encoder", "spans", "head", "candidates"):
        parameters = inspect.signature(getattr(find("baseline/pretrained"), part).func).parameters
        for parameter in parameters.values():
            assert parameter.kind is not parameter.KEYWORD_ONLY or f"{part}.{parameter.name}" in shown
