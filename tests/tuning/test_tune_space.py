"""What a search tries: ranges of what a variant has, the recipe itself first, synonyms where they are needed."""

import json

import pytest
from plans import make_corpora

from trainings import TINY
from wingspan.recipe import Between
from wingspan.recipes import find, ranges, variants
from wingspan.training.run import prepare
from wingspan.tuning.space import own_values, search_space, value_of

RATES = "train.factors.objectives.generate"
GENERATING = {"terms.generate.weight", "terms.generate.objective.latent_size", RATES}
COMPRESSING = {"terms.compress.objective.beta"}


@pytest.mark.parametrize(
    ("variant", "lacking"),
    [("baseline", GENERATING | COMPRESSING), ("supvib-beta-0", GENERATING | COMPRESSING), ("supvib", GENERATING)],
)
def test_ranges_of_terms_that_a_variant_lacks_are_left_out(variant, lacking):
    declared = ranges("compress_generate")
    space = search_space(find(f"compress_generate/{variant}"), declared, {}, {})
    assert set(declared) - set(space) == lacking
    assert set(search_space(find("compress_generate"), declared, {}, {})) == set(declared)


@pytest.mark.parametrize("encoder", [None, "hashed"])
@pytest.mark.parametrize("variant", variants("compress_generate"))
def test_the_recipe_itself_comes_first_on_every_encoder(variant, encoder):
    name = f"compress_generate/{variant}".rstrip("/")
    recipe = prepare(name, encoder, {})
    space = search_space(recipe, ranges(name), {}, {})
    own = own_values(recipe, space)
    assert own is not None
    assert own["train.learning_rate"] == recipe.train.learning_rate
    if encoder is None and variant == "":
        rate = space["train.learning_rate"]
        assert (rate.low, rate.high) == pytest.approx((1e-5, 3e-4))  # Table 9
        assert own[RATES] == own["train.factors.model.scorer.head"] == 10.0  # from shorter prefixes


def test_the_epochs_of_a_phase_have_a_value_too():
    recipe = find("compress_generate")
    assert value_of(recipe, "phases.0.epochs") == 3
    assert value_of(recipe, "phases.2.epochs") is None
    space = search_space(recipe, {}, {"phases.0.epochs": Between(1, 4)}, {})
    assert own_values(recipe, space) == {"phases.0.epochs": 3}


def test_a_rate_that_nobody_set_is_one():
    recipe = prepare("baseline", "hashed", {})
    assert value_of(recipe, "train.factors.model.encoder") == value_of(recipe, "train.decays.model") == 1.0


def test_a_range_that_was_asked_for_must_fit():
    with pytest.raises(ValueError, match=f"--range {RATES}: the recipe has no term 'generate'; it has spans"):
        search_space(find("compress_generate/baseline"), {}, {RATES: Between(1.0, 30.0)}, {})


def test_synonyms_are_searched_with_and_a_bad_lexicon_is_refused_before_the_first_trial(tmp_path, shell):
    pytest.importorskip("optuna")
    corpus = make_corpora(tmp_path)[0]
    small = {**TINY, "train.epochs": 1, "phases.0.epochs": 1, "terms.generate.objective.hidden": 16}
    asked = [
        *["tune", "compress_generate", "--encoder", "hashed", "--device", "cpu", "--trials", 1],
        *["--train", tmp_path / corpus["train"], "--dev", tmp_path / corpus["dev"], "--output", tmp_path / "search"],
        *[part for key, value in small.items() for part in ("--set", f"{key}={value}")],
    ]
    assert "no synonyms (mentions with one concept id" in shell.refuses(*asked, "--lexicon", "corpus")
    assert not (tmp_path / "search").exists()
    names = tmp_path / "names.tsv"
    names.write_text("concept_id\tname\tsynonyms\nD:1\taspirin\tacetylsalicylic acid\n")
    shell(*asked, "--lexicon", names, "--json", tmp_path / "found.json")
    (trial,) = json.loads((tmp_path / "found.json").read_text())["trials"]
    assert trial["state"] == "complete"
    assert trial["settings"]["train.learning_rate"] == 2e-3  # the recipe's own on this encoder
