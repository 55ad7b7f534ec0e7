"""Proposals from training to prediction: wide entities, the same scores as on the grid, saving, reports."""

import random
from dataclasses import replace
from functools import partial

import pytest
import torch
from tiny import LABELS, of_length, sentence

import wingspan
from trainings import HASHED, alike, dev_documents, tiny, train_documents
from wingspan.batch import Collate
from wingspan.candidates import Grid
from wingspan.candidates.proposed import Proposed
from wingspan.cli.evaluate import evaluate
from wingspan.encoders.hashed import HashedEncoder
from wingspan.model import tensors
from wingspan.objectives.proposing import Proposing
from wingspan.recipe import Phase, Recipe, Term, TrainSettings, assemble, bundle, with_proposals
from wingspan.recipe_json import override
from wingspan.recipes import find
from wingspan.recognizer import Recognizer
from wingspan.spans.pooled import PooledSpans
from wingspan.text import Document, Entity
from wingspan.training.finish import proposal_recall
from wingspan.training.fit import coverage_of, fit

SENTENCES = [sentence("aspirin lowers BRCA1 levels", ("Drug", 0, 1), ("Gene", 2, 3)), of_length(7, ("Gene", 1, 6))]


def resolved(recipe: Recipe, **changes) -> Recipe:
    return replace(recipe, encoder=HASHED, max_width=4, overlap="nested", **changes)


def with_wide_entities(number: int, seed: int) -> list[Document]:
    """Texts with a clause of forty words between two marks, and names of one word."""
    draw = random.Random(seed)
    documents = []
    for at in range(number):
        before, after = (draw.choices(["ab", "cd", "ef", "gh", "ij", "kl"], k=draw.randint(1, 5)) for _ in range(2))
        inside = draw.choices(["ab", "cd", "ef", "gh", "ij", "kl", "Anna", "Bert"], k=38)
        words = [*before, "whereas", *inside, "hence", *after]
        clause = Entity.at("Clause", len(before), len(before) + 40)
        names = [Entity.at("Name", n, n + 1) for n, word in enumerate(words) if word in ("Anna", "Bert")]
        documents.append(Document.from_words(str(at), tuple(words), (clause, *names)))
    return documents


def recall_of(found, gold, label: str) -> float:
    pairs = zip(gold, found, strict=True)
    hits = [e in f.entities for g, f in pairs for e in g.entities if e.label == label]
    return sum(hits) / len(hits)


@pytest.fixture(scope="module")
def trained():
    train = TrainSettings(epochs=6, batch_size=4, learning_rate=1e-2, clip=5.0, warmup=0.05)
    encoder = partial(HashedEncoder, buckets=500, embedding=8, hidden=16, dropout=0.0)
    small = replace(find("baseline"), encoder=encoder, max_width=4, train=train)
    documents = with_wide_entities(40, seed=1)
    return {
        name: wingspan.train(recipe, train=documents, device="cpu")
        for name, recipe in {"grid": small, "proposals": with_proposals(small)}.items()
    }


def test_entities_wider_than_the_grid_are_found(trained):
    gold = with_wide_entities(20, seed=2)
    found = {name: model.predict(gold) for name, model in trained.items()}
    assert recall_of(found["grid"], gold, "Clause") == 0
    assert recall_of(found["proposals"], gold, "Clause") > 0.9
    assert recall_of(found["grid"], gold, "Name") > 0.9
    assert recall_of(found["proposals"], gold, "Name") > 0.9


def test_coverage_knows_that_width_is_no_limit(trained):
    gold = with_wide_entities(5, seed=3)
    lost = {name: coverage_of(m.recipe, m.engine.tokenize, gold).lost for name, m in trained.items()}
    assert lost == {"grid": {"too_wide": 5}, "proposals": {}}


def test_recall_of_proposals_by_width(trained):
    gold = with_wide_entities(10, seed=4)
    figures = proposal_recall(trained["proposals"], gold)
    names = sum(e.label == "Name" for document in gold for e in document.entities)
    assert figures["budget"] == 1.0
    assert figures["entities"] == names + 10
    assert figures["cells_per_word"] == pytest.approx(1.0, abs=1e-3)
    assert figures["widths"]["over 20"]["entities"] == 10
    assert figures["widths"]["1"]["entities"] == names
    assert figures["recall"] == pytest.approx(100 * figures["proposed"] / figures["entities"])
    assert figures["recall"] > 95
    little = proposal_recall(trained["proposals"], gold, budget=0.05)
    assert little["recall"] < figures["recall"]
    assert little["cells_per_word"] < 0.1
    every = proposal_recall(trained["proposals"], gold, budget=1000)
    assert every["recall"] == 100
    assert trained["proposals"].learner.model.scorer.candidates.budget == 1.0  # measuring changes nothing


def test_a_grid_can_be_measured_to_compare(trained):
    gold = with_wide_entities(10, seed=4)
    figures = proposal_recall(trained["grid"], gold)
    assert figures["widths"]["over 20"]["recall"] == 0
    assert figures["widths"]["1"]["recall"] == 100
    assert figures["budget"] is None
    assert 3.5 < figures["cells_per_word"] < 4
    with pytest.raises(ValueError, match="Grid has no budget"):
        proposal_recall(trained["grid"], gold, budget=2)


def test_entities_that_no_window_holds_are_missed(trained):
    model = trained["proposals"]
    cut = replace(model.recipe, segments=replace(model.recipe.segments, max_length=12, overlap=2))
    figures = proposal_recall(Recognizer(cut, model.labels, model.learner, device="cpu"), with_wide_entities(3, seed=5))
    assert figures["entities"] - sum(width["entities"] for width in figures["widths"].values()) == 3
    assert figures["recall"] < 100


def test_saved_and_loaded_it_proposes_the_same(trained, tmp_path, capsys):
    from wingspan.corpora.formats import write

    model, gold = trained["proposals"], with_wide_entities(6, seed=6)
    model.save_pretrained(tmp_path / "model")
    again = wingspan.load(tmp_path / "model", device="cpu")
    assert alike(model.predict(gold), again.predict(gold), 1e-6)
    assert proposal_recall(model, gold) == proposal_recall(again, gold)
    assert "any width, the best 1 per word" in (tmp_path / "model" / "README.md").read_text()
    write(gold, tmp_path / "gold.jsonl")
    scores = evaluate([tmp_path / "model", tmp_path / "gold.jsonl"], device="cpu")
    assert scores.coverage["proposals"] == proposal_recall(model, gold)
    said = capsys.readouterr().out
    assert "Coverage: 100.0%" in said
    assert "per word (budget 1)" in said


def test_training_says_budget_and_recall(tmp_path, capsys):
    from rich.console import Console

    wingspan.train(
        tiny("baseline/proposals"),
        train=train_documents(8),
        dev=dev_documents(),
        settings={"candidates.budget": 2},
        output=tmp_path / "model",
        device="cpu",
        console=Console(width=200),
    )
    said = capsys.readouterr().out
    assert "spans of any width, the best 2 per word" in said
    assert "per word (budget 2)" in said
    assert wingspan.load(tmp_path / "model", device="cpu").facts["proposals"]["budget"] == 2
    assert "Proposals:" in (tmp_path / "model" / "README.md").read_text()


@pytest.mark.parametrize("views", [("first", "last"), ("mean", "max")])
def test_cells_get_the_scores_they_have_on_the_grid(views):
    spans = partial(PooledSpans, views=views, sentence=True, width_size=3)
    base = resolved(replace(find("baseline"), spans=spans))
    torch.manual_seed(0)
    listed = assemble(with_proposals(base, budget=100.0), LABELS).eval()
    dense = assemble(base, LABELS).eval()
    weights = {name: value for name, value in listed.state_dict().items() if ".candidates." not in name}
    dense.load_state_dict(weights)
    inputs = tensors(Collate(dense.model.encoder.tokenize, LABELS, {}).inputs(SENTENCES), "cpu")
    with torch.no_grad():
        few, all_cells = listed.model(inputs), dense.model(inputs)
    seen = 0
    for row in range(len(SENTENCES)):
        place = {cell: at for at, cell in enumerate(cells_of(few, row))}
        for at, cell in enumerate(cells_of(all_cells, row)):
            if all_cells.candidates.mask[row, at]:
                torch.testing.assert_close(few.scores[row, place[cell]], all_cells.scores[row, at])
                seen += 1
    assert seen == 10 + 4 * (2 * 7 - 4 + 1) // 2


def cells_of(states, row: int) -> list[tuple[int, int]]:
    return list(zip(states.candidates.start[row].tolist(), states.candidates.end[row].tolist(), strict=True))


def test_a_recipe_with_proposals_keeps_everything_else():
    for name in ("baseline", "bundling/span", "bundling/bl-span", "bundling/paper"):
        plain = find(name)
        changed = with_proposals(plain, 2.0, 0.5)
        assert replace(changed, candidates=plain.candidates, terms=plain.terms) == plain
        assert {n: t for n, t in changed.terms.items() if n != "proposals"} == dict(plain.terms)
        assert changed.terms["proposals"].weight == 0.5
        assert changed.candidates.func is Proposed
        assert changed.candidates.keywords["budget"] == 2.0
    assert find("baseline").candidates.func is Grid


def test_tags_can_be_bundled_with_proposals():
    recipe = bundle(with_proposals(find("bundling/span")), 0.2)
    assert {name: term.weight for name, term in recipe.terms.items()} == {"spans": 0.8, "proposals": 0.8, "tags": 0.2}
    model = wingspan.train(
        replace(recipe, encoder=HASHED, train=tiny("baseline").train), train=train_documents(4), device="cpu"
    )
    assert set(model.learner.objectives) == {"spans", "proposals", "tags"}


class GridOnly(PooledSpans):
    takes_lists = False


def test_spans_that_need_the_grid_are_refused_with_a_sentence():
    recipe = replace(find("baseline"), spans=partial(GridOnly))
    said = "recipe 'baseline': GridOnly needs the whole grid, which Proposed does not give"
    with pytest.raises(ValueError, match=said):
        with_proposals(recipe)
    with pytest.raises(ValueError, match=said):
        assemble(resolved(with_proposals(find("baseline")), spans=partial(GridOnly)), LABELS)
    with pytest.raises(ValueError, match="recipe 'bundling/seq' has no spans to propose"):
        with_proposals(find("bundling/seq"))


def test_proposals_and_their_loss_belong_together():
    base = resolved(find("baseline"))
    for odd in (
        replace(base, candidates=partial(Proposed)),
        replace(base, terms={**base.terms, "proposals": Term(partial(Proposing))}),
    ):
        with pytest.raises(ValueError, match="needs both Proposed and Proposing"):
            assemble(odd, LABELS)


def test_what_cannot_be_read_with_is_said():
    recipe = replace(tiny("baseline/proposals"), read_with="proposals", phases=(Phase(),))
    with pytest.raises(ValueError, match="'proposals' cannot read entities; use spans, tags or links"):
        fit(recipe, train_documents(2), dev_documents(1))


def test_budget_and_threshold_can_be_set_from_the_shell():
    recipe = override(override(find("baseline/proposals"), "candidates.budget", "2"), "candidates.threshold", "0.01")
    assert recipe.candidates.keywords == {"budget": 2, "threshold": 0.01}
    assert recipe.scope == "spans of any width, the best 2 per word with a chance of 0.01 or more"
    assert recipe.ceiling is None
    assert replace(find("baseline"), max_width=7).ceiling == 7
    assert replace(find("bundling/bl-seq"), max_width=7).ceiling is None
