"""Entities in one piece and in several from one model: learned, saved, loaded, chosen on dev, and without links."""

import io
import json
from dataclasses import replace
from functools import partial

import pytest
import torch
from rich.console import Console
from tiny_models import tiny_bert

import wingspan
from trainings import FAST, HASHED, alike, dev_documents, first_losses, run_of, tiny, train_documents
from wingspan.decoding import Joining, resolve
from wingspan.encoders.hashed import HashedEncoder
from wingspan.evaluation.scores import by_continuity, recognition
from wingspan.recipe import bundle, with_links, with_proposals
from wingspan.recipe_json import as_json, from_json, override, spelled_out
from wingspan.recipes import baseline, bundling, compress_generate, discontinuous, find, variants
from wingspan.report.collect import collect
from wingspan.text import Document, Entity, Span
from wingspan.training.finish import fit_calibration, sentence_batches, settle_on_dev, try_joinings
from wingspan.training.fit import fit

VARIANTS = [f"discontinuous/{name}" if name else "discontinuous" for name in variants("discontinuous")]
SURE = replace(FAST, epochs=40, batch_size=8, learning_rate=1e-2)


def written(number: int) -> list[Document]:
    """Sentences with one, two or three fragments; two entities share their first word, one lies inside another."""
    names = ("red", "blue", "green", "black", "white", "brown", "gray", "pink")
    documents = []
    for at in range(number):
        one, two, three = (names[(at + step) % len(names)] for step in (0, 3, 5))
        both = f"A {one} and {two} mouse ran .".split()
        three_parts = f"Of {one} , tall {two} and big {three} cats few ran .".split()
        shared = f"The tail of {one} and {two} dogs .".split()
        rows = (
            (both, (Entity("Animal", (Span(1, 2), Span(4, 5))), Entity.at("Animal", 3, 5), Entity.at("Color", 1, 2))),
            (three_parts, (Entity("Cat", (Span(3, 4), Span(6, 7), Span(8, 9))), Entity.at("Color", 1, 2))),
            (shared, (Entity("Part", (Span(1, 4), Span(6, 7))), Entity("Part", (Span(1, 3), Span(5, 7))))),
        )
        documents += [Document.from_words(f"{at}-{n}", tuple(words), found) for n, (words, found) in enumerate(rows)]
    return documents


def sure(name: str = "discontinuous", **train):
    encoder = partial(HashedEncoder, buckets=2000, embedding=16, hidden=32, dropout=0.0)
    return replace(find(name), encoder=encoder, train=replace(SURE, **train))


@pytest.fixture(scope="module")
def learned():
    return wingspan.train(sure(), train=written(16), dev=written(20)[-12:], device="cpu")


@pytest.mark.slow
def test_one_model_finds_entities_in_one_two_and_three_pieces(learned):
    gold = written(16)
    found = learned.predict(gold)
    parts = by_continuity(gold, found)
    assert parts["discontinuous"].f1 > 95
    assert parts["continuous"].f1 > 95
    three = next(document for document in found if document.id == "3-1")
    assert max(len(entity.spans) for entity in three.entities) == 3
    tails = next(document for document in found if document.id == "3-2")
    assert len([entity for entity in tails.entities if entity.label == "Part"]) == 2


@pytest.mark.slow
def test_what_dev_decides_is_stored(learned, tmp_path):
    assert learned.recipe.joining.bar != "auto"
    learned.save_pretrained(tmp_path)
    again = wingspan.load(tmp_path, device="cpu")
    assert again.recipe.joining == learned.recipe.joining
    assert alike(learned.predict(written(4)), again.predict(written(4)), 1e-6)
    tried = try_joinings(learned, written(20)[-12:])
    assert len({one.joining.bar for one in tried}) == len(tried)
    best = next(one for one in tried if one.joining == learned.recipe.joining)
    assert best.every.f1 == max(one.every.f1 for one in tried)
    assert best.every.f1 == pytest.approx(recognition(written(20)[-12:], learned.predict(written(20)[-12:])).micro.f1)


@pytest.mark.slow
def test_joining_and_calibration_share_one_pass_through_dev(learned):
    dev = written(20)
    model = wingspan.recognizer.Recognizer(
        replace(learned.recipe, joining=replace(learned.recipe.joining, bar="auto")),
        learned.labels,
        learned.learner,
        device="cpu",
    )
    calls = []
    hook = model.learner.model.register_forward_hook(lambda *_: calls.append(1))
    settle_on_dev(model, dev, Console(quiet=True), batch_size=8)
    hook.remove()
    assert len(calls) == len(list(sentence_batches(model, dev, 8)))
    trials = try_joinings(learned, dev)
    assert model.recipe.joining == max(trials, key=lambda trial: trial.every.f1).joining
    alone = fit_calibration(learned, dev, batch_size=8)
    assert model.calibration.facts["decisions"] == alone.facts["decisions"]
    assert model.calibration.temperature == pytest.approx(alone.temperature, rel=1e-4)


@pytest.mark.slow
def test_entities_in_one_piece_are_read_as_without_links(learned):
    plain = wingspan.recognizer.Recognizer(
        replace(learned.recipe, read_with="spans", joining=Joining(), terms={"spans": learned.recipe.terms["spans"]}),
        learned.labels,
        learned.learner,
        device="cpu",
        calibration=learned.calibration,
    )
    sentences = list(learned.segment(written(6)))
    for alone, both in zip(plain.predict_batch(sentences), learned.predict_batch(sentences), strict=True):
        assert alone == [entity for entity in both if not entity.discontinuous]
        assert [entity.score for entity in alone] == [e.score for e in both if not e.discontinuous]


@pytest.mark.slow
def test_thresholds_are_about_joined_entities_too(learned):
    low, usual, high = (
        sum(
            entity.discontinuous
            for document in learned.predict(written(8), threshold=bar)
            for entity in document.entities
        )
        for bar in (0.01, None, 0.9999)
    )
    assert low >= usual > high
    for document in learned.predict(written(8), threshold=0.6):
        assert all(entity.score >= 0.6 for entity in document.entities)


@pytest.mark.slow
def test_a_temperature_changes_scores_and_no_decision(learned):
    calibration = fit_calibration(learned, written(16))
    assert calibration.temperature > 0
    plain, warm = (
        wingspan.recognizer.Recognizer(learned.recipe, learned.labels, learned.learner, device="cpu", calibration=given)
        for given in (None, replace(calibration, temperature=2.0))
    )
    one, other = plain.predict(written(6)), warm.predict(written(6))
    assert one == other
    pairs = [(a, b) for x, y in zip(one, other, strict=True) for a, b in zip(x.entities, y.entities, strict=True)]
    assert any(a.discontinuous and a.score != b.score for a, b in pairs)
    shown = sorted(b.score for _, b in pairs if b.discontinuous)
    middle = (shown[0] + shown[-1]) / 2  # thresholds are about what is shown, in one piece or joined
    kept = [e.score for d in warm.predict(written(6), threshold=middle) for e in d.entities if e.discontinuous]
    assert 0 < len(kept) < len(shown)
    assert min(kept) > middle


@pytest.mark.slow
def test_collecting_looks_at_entities_in_one_piece(learned):
    rows = collect(learned, written(4), limit=20)
    assert rows.left_out > 0
    assert len(rows.gold) > 0


@pytest.mark.parametrize("name", [name for name in VARIANTS if name != "discontinuous/deep"])
def test_every_variant_trains_and_survives_saving(name, tmp_path):
    recipe = tiny(name, learning_rate=2e-2, batch_size=4)
    model = wingspan.train(recipe, train=train_documents(15), dev=dev_documents(), output=tmp_path, device="cpu")
    again = wingspan.load(tmp_path, device="cpu")
    found = model.predict(dev_documents(), threshold=0.01)
    assert any(document.entities for document in found)
    assert alike(found, again.predict(dev_documents(), threshold=0.01), 1e-6)
    assert as_json(again.recipe) == as_json(spelled_out(model.recipe))
    kept = json.loads((tmp_path / "recipe.json").read_text())["recipe"]
    assert as_json(from_json(kept)) == kept
    assert "auto" not in (again.recipe.joining.gap, again.recipe.joining.bar if "links" in again.recipe.terms else 0)


def test_links_on_deep_spans(tmp_path):
    bert = tiny_bert(tmp_path / "bert")
    model = wingspan.train(
        tiny("discontinuous/deep", bert), train=train_documents(6), output=tmp_path / "m", device="cpu"
    )
    again = wingspan.load(tmp_path / "m", device="cpu")
    assert alike(*(one.predict(dev_documents(), threshold=0.01) for one in (model, again)), 1e-6)


@pytest.mark.parametrize(
    "recipe",
    [
        baseline.recipe(),
        bundling.bl_span(),
        bundling.paper(),  # a linear head, sampled candidates, dropout on span vectors
        with_proposals(bundle(baseline.recipe())),
        compress_generate.variants["supvib"](),  # a bottleneck
    ],
    ids=lambda recipe: recipe.name,
)
def test_links_are_added_to_any_span_recipe(recipe, tmp_path):
    recipe = with_links(replace(recipe, encoder=HASHED, train=replace(FAST, epochs=1)))
    model = wingspan.train(recipe, train=written(6), output=tmp_path, device="cpu")
    again = wingspan.load(tmp_path, device="cpu")
    assert alike(*(one.predict(written(2), threshold=0.02) for one in (model, again)), 1e-6)


def test_golden_losses():
    """Three steps from seed 1; a change here is a change of what is learned."""
    losses = first_losses(run_of(tiny("discontinuous")), 3)
    assert losses == pytest.approx([1.872144, 1.381864, 0.799358], rel=1e-4)


def sentences_of(name: str):
    fitted = fit(tiny(name), written(2))
    return fitted, [entity for sentence in fitted.sentences for entity in sentence.entities]


def test_policies_for_models_without_links():
    for name in ("split", "hull"):
        fitted, entities = sentences_of(f"discontinuous/{name}")
        assert not any(entity.discontinuous for entity in entities)
        assert fitted.coverage.lost == {"discontinuous": 8}
    fitted, entities = sentences_of("discontinuous/hull")
    assert Entity.at("Animal", 1, 5) in entities
    fitted, entities = sentences_of("discontinuous/split")
    assert {Entity.at("Cat", 3, 4), Entity.at("Cat", 6, 7), Entity.at("Cat", 8, 9)} <= set(entities)
    fitted, entities = sentences_of("discontinuous/drop")
    assert fitted.coverage.lost == {"discontinuous": 8}
    fitted, entities = sentences_of("discontinuous")
    assert fitted.coverage.lost == {}
    assert sum(entity.discontinuous for entity in entities) == 8


def test_what_links_cannot_say_is_counted_before_training():
    words = tuple(["a", "b", "c", "d", "e", "f"])
    part, whole = Entity("X", (Span(0, 1), Span(2, 3))), Entity("X", (Span(0, 1), Span(2, 3), Span(4, 5)))
    fitted = fit(tiny("discontinuous"), [Document.from_words("1", words, (part, whole))])
    assert fitted.coverage.lost == {"unjoined": 1}
    assert "1 made of links that others share" in fitted.coverage.lines()[0]


@pytest.mark.slow
def test_the_rule_gets_its_gap_from_dev_and_keeps_it(tmp_path):
    recipe = replace(sure("discontinuous/nearest"), max_width=3)
    gold = [document for document in written(16) if document.id.endswith("-1")]  # fragments of cats stand close
    model = wingspan.train(recipe, train=gold, dev=gold, output=tmp_path, device="cpu")
    assert model.recipe.joining == Joining("split", gap=2)
    assert wingspan.load(tmp_path, device="cpu").recipe.joining == model.recipe.joining
    found = model.predict(gold[:3])
    assert recognition(gold[:3], found).micro.f1 == 100
    assert found[0].entities[-1].spans == gold[0].entities[-1].spans


def test_without_dev_it_is_said_that_nothing_was_chosen():
    console = Console(file=io.StringIO(), width=300)
    model = wingspan.train(tiny("discontinuous/nearest"), train=written(2), device="cpu", console=console)
    assert "Nothing is joined: there are no dev documents" in console.file.getvalue()
    assert model.recipe.joining.most_between == 0
    with pytest.raises(ValueError, match="joining.gap is -1"):
        override(find("discontinuous/nearest"), "joining.gap", "-1")
    with pytest.raises(ValueError, match="joining.bar is 2"):
        override(find("discontinuous"), "joining.bar", "2")
    assert override(find("discontinuous/split"), "joining.gap", "3").joining.gap == 3


def test_recipes_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="start from a span recipe"):
        with_links(bundling.seq())
    with pytest.raises(ValueError, match="links need spans"):
        replace(baseline.recipe(), joining=Joining("join"))
    with pytest.raises(ValueError, match="links need spans"):
        replace(find("discontinuous"), joining=Joining("split"))


@pytest.mark.slow
def test_going_on_keeps_fragments_and_links(learned, tmp_path):
    learned.save_pretrained(tmp_path / "first")
    gold = written(16)
    more = Document.from_words("more", ("A", "new", "thing"), (Entity.at("Aaa", 1, 2),))  # all classes move by one
    still = sure(epochs=1, learning_rate=1e-9)
    again = wingspan.train(still, train=[*gold, more], start=tmp_path / "first", device="cpu")
    assert again.labels.types["main"][0] == "Aaa"
    assert by_continuity(gold, again.predict(gold))["discontinuous"].f1 > 90


def test_a_resumed_training_ends_the_same(tmp_path):
    recipe = replace(tiny("discontinuous"), train=replace(FAST, epochs=2))
    whole = wingspan.train(recipe, train=written(3), output=tmp_path / "whole", device="cpu")

    class Stopped(RuntimeError):
        pass

    def stop(progress):
        if progress.position.epoch == 1:
            raise Stopped

    with pytest.raises(Stopped):
        wingspan.train(recipe, train=written(3), output=tmp_path / "part", device="cpu", watch=stop)
    resumed = wingspan.train(recipe, train=written(3), output=tmp_path / "part", device="cpu", resume=True)
    weights = [model.learner.state_dict() for model in (whole, resumed)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_flat_decoding_keeps_one_of_two_that_share_a_fragment():
    one, other = (Entity("A", (Span(0, 1), Span(2 * n, 2 * n + 1)), n / 10) for n in (1, 2))
    assert resolve([one, other], "flat") == (other,)
    assert set(resolve([one, other], "nested")) == {one, other}


def test_the_recipe_has_no_paper():
    assert "paper" not in variants("discontinuous")
    assert all(make().paper == discontinuous.ABOUT for make in variants("discontinuous").values())
