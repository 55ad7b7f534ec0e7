"""The recipe `compress_generate`: every variant trains, is saved, is loaded, and says the same; what is in the file."""

import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from marks import mostly_slow
from names import Invented, Listed
from safetensors import safe_open

import wingspan
from trainings import alike, dev_documents, first_losses, on_cpu, run_of, tiny, train_documents
from wingspan.encoders.hashed import HashedEncoder
from wingspan.evaluation.scores import recognition
from wingspan.heads.bottleneck import BottleneckHead
from wingspan.objectives.generation import Generation
from wingspan.recipe import OneOf, Phase, Recipe, Term, bundle, with_proposals
from wingspan.recipe_json import as_json, from_json, override
from wingspan.recipes import compress_generate, find, variants
from wingspan.report.generation import bleu2, examples, regenerate, synonym_recall, token_accuracy
from wingspan.text import Document, Entity, Span
from wingspan.training.loop import train
from wingspan.training.state import load_phase

EVERY = [
    f"compress_generate/{variant}" if variant else "compress_generate" for variant in variants("compress_generate")
]
SMALL = {"latent_size": 8, "embedding_size": 8, "hidden": 16}


def small(name: str, **train) -> Recipe:
    """A variant with a tiny encoder, small decoders, one quick epoch in each phase."""
    recipe = tiny(name, **train)
    if "generate" in recipe.terms:
        for key, value in SMALL.items():
            recipe = override(recipe, f"terms.generate.objective.{key}", str(value))
        phases = [replace(phase, epochs=min(phase.epochs or 1, 1)) for phase in recipe.phases]
        recipe = replace(recipe, phases=tuple(phases))
    return recipe if recipe.max_width == "auto" else replace(recipe, max_width=5)


@pytest.mark.parametrize("name", mostly_slow(EVERY, "compress_generate", "compress_generate/supvib"))
def test_every_variant_trains_and_survives_saving(name, tmp_path):
    folder = tmp_path / "model"
    model = wingspan.train(small(name), train=train_documents(4), output=folder, lexicon=Invented(), device="cpu")
    again = wingspan.load(folder, device="cpu")
    found = model.predict(dev_documents(2), threshold=0.001)  # less than what each span starts with
    assert any(document.entities for document in found)
    assert alike(found, again.predict(dev_documents(2), threshold=0.001), 1e-6)
    kept = json.loads((folder / "recipe.json").read_text())["recipe"]
    assert as_json(from_json(kept)) == kept == as_json(again.recipe)
    assert list(again.learner.objectives) == ["spans"]


@pytest.mark.parametrize(
    ("name", "moves"),
    [("compress_generate", False), ("compress_generate/supvib-spanreco", False), ("compress_generate/paper", True)],
)
def test_the_autoencoders_alone_move_the_encoder_only_in_the_published_code(name, moves):
    """Nothing is weighed against them in their phase, so their small weight cancels inside Adam."""
    recipe = small(name)
    run = run_of(replace(recipe, phases=recipe.phases[:1]), lexicon=Invented())
    before = {key: value.clone() for key, value in run.learner.state_dict().items()}
    *_, _ = train(run, on_cpu())
    after = run.learner.state_dict()
    still = [key for key in before if key.startswith("model.encoder") and before[key].is_floating_point()]
    assert still
    assert any(not torch.equal(before[key], after[key]) for key in still) == moves
    assert not torch.equal(
        before["objectives.generate.table.embed.weight"], after["objectives.generate.table.embed.weight"]
    )
    assert all(parameter.requires_grad for parameter in run.learner.parameters())  # the next phase trains them


@pytest.mark.parametrize("name", EVERY)
def test_recipe_to_json_and_back(name):
    recipe = find(name)
    record = json.loads(json.dumps(as_json(recipe)))
    assert as_json(from_json(record)) == record
    assert recipe.name == name or name.startswith("compress_generate/paper")
    assert set(bundle(recipe).terms) == {*recipe.terms, "tags"}


def test_the_variants_are_the_settings_of_table_4():
    parts = {name: find(name) for name in EVERY}
    head = {name.partition("/")[2]: recipe.head.func is BottleneckHead for name, recipe in parts.items()}
    assert [name for name, compressed in head.items() if not compressed] == ["baseline"]
    terms = {name.partition("/")[2]: tuple(recipe.terms) for name, recipe in parts.items()}
    assert terms["baseline"] == terms["supvib-beta-0"] == ("spans",)
    assert terms["supvib"] == ("spans", "compress")
    assert terms["supvib-proposals"] == ("spans", "compress", "proposals")
    assert terms[""] == terms["all"] == terms["supvib-spanreco"] == ("spans", "compress", "generate")
    generation = {
        name.partition("/")[2]: r.terms["generate"].objective.keywords
        for name, r in parts.items()
        if "generate" in r.terms
    }
    assert generation["supvib-spanreco"]["tasks"] == ("words",)
    assert {name: generation[name]["sharing"] for name in ("", "all", "all-shared-spread", "all-no-sharing")} == {
        "": "mean",
        "all": "mean",
        "all-shared-spread": "all",
        "all-no-sharing": "none",
    }
    assert [phase.terms for phase in find("compress_generate").phases] == [("generate",), None]
    assert [phase.terms for phase in find("compress_generate/vaes-only").phases] == [("generate",)]


def weights_in(path) -> set[str]:
    with safe_open(path, "pt") as file:
        return set(file.keys())


def test_nothing_that_generates_is_in_the_model_file(tmp_path):
    folder = tmp_path / "model"
    model = wingspan.train(
        small("compress_generate"), train=train_documents(4), output=folder, lexicon=Invented(), device="cpu"
    )
    names = weights_in(folder / "model.safetensors")
    own = {name for name, _ in model.learner.named_parameters() if name.startswith("objectives.generate")}
    assert len(own) > 10
    assert not own & names
    assert all(name.startswith("model.") for name in names)
    assert own <= weights_in(folder / "state" / "phase-1" / "learner.safetensors")
    assert not (folder / "vocabulary.json").exists()


def test_each_phase_is_kept_and_can_be_analyzed(tmp_path):
    folder = tmp_path / "model"
    documents = train_documents(4)
    model = wingspan.train(small("compress_generate"), train=documents, output=folder, lexicon=Invented(), device="cpu")
    one, two = (load_phase(folder, number, device="cpu") for number in (1, 2))
    assert list(one.learner.objectives) == list(two.learner.objectives) == ["spans", "compress", "generate"]
    weights = [part.learner.state_dict() for part in (one, two, model)]
    assert all(torch.equal(value, weights[2][name]) for name, value in weights[1].items())  # the last epoch is the best
    changed = {name for name, value in weights[0].items() if not torch.equal(value, weights[1][name])}
    assert any(name.startswith("model.scorer.head") for name in changed)
    assert regenerate(two, documents) == regenerate(model, documents)
    with pytest.raises(ValueError, match="phase 3 is not kept; there are phase-1, phase-2"):
        load_phase(folder, 3)
    with pytest.raises(ValueError, match="decoders are not saved for prediction"):
        regenerate(wingspan.load(folder, device="cpu"), documents)


def test_alone_the_autoencoders_leave_the_head_as_it_was():
    run = run_of(small("compress_generate/vaes-only"), lexicon=Invented())
    before = {name: value.clone() for name, value in run.learner.state_dict().items()}
    batchwise = first_losses(run, 2, ("generate",))
    assert all(torch.isfinite(torch.tensor(batchwise)))
    changed = {name for name, value in run.learner.state_dict().items() if not torch.equal(value, before[name])}
    assert {name.split(".")[1] for name in changed} == {"encoder", "generate"}  # the encoder learns, the head does not


def test_a_lexicon_has_to_fit_and_none_is_needed(tmp_path):
    wingspan.train(small("compress_generate"), train=train_documents(4), device="cpu")
    with pytest.raises(ValueError, match=r"synonyms for none of the \d+ entities of the training documents"):
        wingspan.train(small("compress_generate"), train=train_documents(4), lexicon=Listed({}), device="cpu")
    wingspan.train(small("compress_generate/supvib-spanreco"), train=train_documents(4), device="cpu")


def test_a_resumed_run_wants_the_same_lexicon(tmp_path):
    given = {"train": train_documents(4), "output": tmp_path / "model", "device": "cpu"}
    wingspan.train(small("compress_generate"), lexicon=Invented(), **given)
    wingspan.train(small("compress_generate"), lexicon=Invented(), resume=True, **given)
    other = Listed({train_documents(4)[0].text_of(train_documents(4)[0].entities[0]).lower(): ["another name"]})
    with pytest.raises(ValueError, match="--resume: lexicon is"):
        wingspan.train(small("compress_generate"), lexicon=other, resume=True, **given)


def test_proposals_and_generation_go_together():
    recipe = with_proposals(small("compress_generate"))
    model = wingspan.train(recipe, train=train_documents(4), lexicon=Invented(), device="cpu")
    assert set(model.learner.objectives) == {"spans", "compress", "generate", "proposals"}
    assert len(regenerate(model, train_documents(1))) == len(train_documents(1)[0].entities)


@pytest.mark.parametrize("context", ["sentence", "document"])
def test_entities_are_written_in_order_whatever_they_are_read_with(context):
    recipe = small("compress_generate/supvib-spanreco")
    recipe = replace(recipe, segments=replace(recipe.segments, context=context, max_length=40))
    documents = train_documents(3)
    model = wingspan.train(recipe, train=documents, device="cpu")
    found = [(pair.label, pair.surface) for pair in regenerate(model, documents, batch_size=3)]
    assert sorted(found) == sorted((e.label, d.text_of(e)) for d in documents for e in d.entities)
    alone = [(pair.label, pair.surface) for d in documents for pair in regenerate(model, [d])]
    assert found == alone


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("compress_generate/supvib", [0.055730, 0.059366, 0.108580]),
        ("compress_generate", [0.055841, 0.059083, 0.108295]),
    ],
)
def test_golden_losses(name, expected):
    """Three steps from seed 1; a change here is a change of what is learned."""
    losses = first_losses(run_of(small(name), lexicon=Invented()), 3)
    assert losses == pytest.approx(expected, rel=1e-4)


def test_the_ranges_of_table_9_can_be_set():
    recipe = find("compress_generate")
    for key, found in compress_generate.ranges.items():
        for value in found.values if isinstance(found, OneOf) else (found.low, found.high):
            recipe = override(recipe, key, str(value))
    assert recipe.terms["compress"].objective.keywords["beta"] == 1e-4
    assert recipe.terms["generate"].objective.keywords["latent_size"] == 1024
    assert override(recipe, "phases.0.epochs", "7").phases[0] == Phase(7, ("generate",), frozen=("model.encoder",))
    assert override(recipe, "phases.0.frozen", "[]").phases[0] == Phase(3, ("generate",))
    with pytest.raises(ValueError, match="phases.2.epochs: no such setting"):
        override(recipe, "phases.2.epochs", "7")


def toy() -> list[Document]:
    """Twenty spans of two or three words, each once."""
    documents = []
    for number in range(20):
        name = [["red", "old", "big", "odd", "new"][number % 5], ["cell", "drug", "gene", "rat"][number % 4]]
        name += ["loss"] if number % 2 else []
        words = ("the", *name, "was", "seen")
        documents.append(Document.from_words(str(number), words, (Entity("Drug", (Span(1, 1 + len(name)),)),)))
    return documents


@pytest.mark.parametrize(
    ("name", "epochs"), [("baseline", 30), ("supvib-beta-0", 10), ("supvib", 10), ("supvib-spanreco", 10), ("all", 10)]
)
def test_every_setting_of_table_4_finds_twenty_spans(name, epochs):
    """From a chance of one half for every span, none of them finds anything in this time."""
    recipe = small(f"compress_generate/{name}", epochs=epochs, batch_size=8)
    recipe = replace(recipe, phases=(*recipe.phases[:-1], Phase()))
    model = wingspan.train(recipe, train=toy(), lexicon=Invented(), device="cpu")
    assert recognition(toy(), model.predict(toy())).micro.f1 > 75


@pytest.mark.slow
def test_twenty_spans_are_reconstructed():
    """Oracle 5: with word dropout 0 and weight 1, more than 95 % of the words."""
    settings = {"latent_size": 32, "embedding_size": 16, "hidden": 48, "word_dropout": 0.0}
    recipe = tiny("compress_generate/supvib-spanreco", epochs=100, batch_size=10, learning_rate=1e-2)
    own = recipe.terms["generate"].objective.keywords
    terms = {**recipe.terms, "generate": Term(partial(Generation, **{**own, **settings}), 1.0)}
    encoder = partial(HashedEncoder, buckets=300, embedding=16, hidden=32, dropout=0.0)
    recipe = replace(recipe, encoder=encoder, terms=terms, phases=(Phase(terms=("generate",)),))
    model = wingspan.train(recipe, train=toy(), device="cpu")
    pairs = regenerate(model, toy())
    assert len(pairs) == 20
    assert token_accuracy(pairs) > 0.95
    assert bleu2(pairs) > 0.95
    assert token_accuracy(regenerate(model, toy(), how="beam")) > 0.95
    assert examples({"ours": pairs}, 2)[0].keys() == {"original", "ours"}
    mine = Listed({pair.surface: ["unheard of", pair.words[0]] for pair in pairs})
    assert synonym_recall(pairs, mine) == pytest.approx(20 / 60, abs=0.05)  # one word of three, if all is written right
