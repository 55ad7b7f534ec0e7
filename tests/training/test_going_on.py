"""`train --from MODEL`: what was learned stays, labels are added or renamed."""

from dataclasses import replace
from functools import partial

import pytest
import torch

import wingspan
from trainings import dev_documents, tiny, train_documents, untrained
from wingspan.labels import LabelSet
from wingspan.recipe import assemble
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Entity
from wingspan.training.fit import fit
from wingspan.training.warm_start import adopt, both, renamed

LABELS = LabelSet({"main": ("Drug", "Gene")})
WIDER = LabelSet({"main": ("Cell", "Drug", "Gene", "Organ")})


def recognizer(name: str, labels: LabelSet, seed: int, **changes) -> Recognizer:
    recipe = replace(tiny(name), **{"max_width": 4, "overlap": "flat", **changes})
    torch.manual_seed(seed)
    learner = assemble(recipe, labels)
    for parameter in learner.parameters():
        parameter.data.normal_()
    return Recognizer(recipe, labels, learner, device="cpu")


@pytest.mark.parametrize("after", [LABELS, WIDER])
def test_rows_of_the_head_move_with_their_class(after):
    old, new = recognizer("bundling/span", LABELS, 1), recognizer("bundling/span", after, 2)
    fresh = {name: value.clone() for name, value in new.learner.state_dict().items()}
    adopt(new.learner, after, old)
    before, now = old.learner.state_dict(), new.learner.state_dict()
    last = max(name for name in now if name.startswith("model.scorer.head") and name.endswith("weight"))
    for name in (last, last.replace("weight", "bias")):
        for row, label in enumerate(after.names()):
            source = before[name][LABELS.names().index(label)] if label in LABELS.names() else fresh[name][row]
            assert torch.equal(now[name][row], source), (name, label)
    assert all(torch.equal(now[n], before[n]) for n in now if not n.startswith("model.scorer.head.layers.1"))


def tag_scores(model: Recognizer, vectors: torch.Tensor) -> dict[tuple[str, int], torch.Tensor]:
    """The score of B (1) and I (2) of each label, and of O (0) of its layer."""
    tags = model.learner.objectives["tags"]
    found = tags.score(vectors).view(len(vectors), tags.layers, tags.tags)
    places = {(tags.names[c], n): (tags.layer_of[c], tags.begin_of[c] + n - 1) for c in tags.classes for n in (1, 2)}
    zeros = {(tags.names[c], 0): (tags.layer_of[c], 0) for c in tags.classes}
    return {key: found[:, layer, tag].detach() for key, (layer, tag) in {**places, **zeros}.items()}


@pytest.mark.parametrize("crf", ["", "-crf"])
@pytest.mark.parametrize(("was", "is_now"), [("flat", "flat"), ("nested", "nested"), ("flat", "nested")])
def test_rows_of_the_tagger_move_with_their_class(was, is_now, crf):
    old = recognizer(f"bundling/seq{crf}", LABELS, 1, overlap=was)
    new = recognizer(f"bundling/seq{crf}", WIDER, 2, overlap=is_now)
    adopt(new.learner, WIDER, old)
    vectors = torch.randn(7, old.learner.model.encoder.size)
    before, now = tag_scores(old, vectors), tag_scores(new, vectors)
    # the rows are the same, but products of matrices of other sizes are rounded differently
    assert all(torch.allclose(now[key], before[key], atol=1e-5) for key in before)
    if crf:
        chains = [model.learner.objectives["tags"].chain for model in (old, new)]
        places = [model.learner.objectives["tags"] for model in (old, new)]
        for one in ("Drug", "Gene"):
            layers = [tags.layer_of[tags.names.index(one)] for tags in places]
            begins = [tags.begin_of[tags.names.index(one)] for tags in places]
            moves = [
                chain.transitions[layer][[[0], [begin], [begin + 1]], [0, begin, begin + 1]]
                for chain, layer, begin in zip(chains, layers, begins, strict=True)
            ]
            assert torch.equal(*moves)


def test_several_tag_layers_cannot_become_one():
    old, new = recognizer("bundling/seq", LABELS, 1, overlap="nested"), recognizer("bundling/seq", WIDER, 2)
    before = new.learner.objectives["tags"].score.weight.clone()
    adopt(new.learner, WIDER, old)
    assert torch.equal(new.learner.objectives["tags"].score.weight, before)


def test_widths_beyond_the_old_ones_start_from_the_widest():
    old, new = recognizer("baseline", LABELS, 1), recognizer("baseline", LABELS, 2, max_width=6)
    adopt(new.learner, LABELS, old)
    widths = [model.learner.model.scorer.spans.widths.weight for model in (old, new)]
    assert torch.equal(widths[1][:4], widths[0])
    assert torch.equal(widths[1][5], widths[0][3])


def test_with_the_same_labels_it_says_the_same_before_the_first_step(tmp_path):
    documents = train_documents(8)
    model = wingspan.train(tiny("bundling/bl-span", epochs=2), train=documents, output=tmp_path / "old", device="cpu")
    fitted = fit(tiny("bundling/bl-span"), documents[:3], start=wingspan.load(tmp_path / "old", device="cpu"))
    again = Recognizer(fitted.recipe, fitted.labels, fitted.learner, device="cpu")
    ask = partial(Recognizer.predict, texts=dev_documents(), threshold=0.001)
    assert [d.entities for d in ask(again)] == [d.entities for d in ask(model)] != [()] * len(dev_documents())
    assert fitted.labels == model.labels


def sparse(label: str) -> list[Document]:
    """Documents that know one label only."""
    texts = [f"The {name} was seen in {n} of them." for n, name in enumerate(["kidney", "liver", "lung", "heart"] * 3)]
    return [Document(str(n), text, (Entity.at(label, 4, 4 + len(text.split()[1])),)) for n, text in enumerate(texts)]


@pytest.mark.slow
def test_labels_are_added_and_the_old_ones_live_on(tmp_path):
    old = wingspan.train(
        tiny("baseline", epochs=8, batch_size=4, learning_rate=1e-2),
        train=train_documents(30),
        output=tmp_path / "old",
        device="cpu",
    )
    known = old.labels.types["main"]
    before = old.predict(dev_documents())
    assert sum(len(document.entities) for document in before) > 20
    model = wingspan.train(
        tiny("baseline", learning_rate=1e-3),
        train=sparse("Organ"),
        start=tmp_path / "old",
        output=tmp_path / "new",
        device="cpu",
    )
    assert model.labels.types["main"] == tuple(sorted([*known, "Organ"]))
    assert model.recipe.max_width >= old.recipe.max_width
    assert model.recipe.overlap == old.recipe.overlap != "flat"
    after = model.predict(dev_documents())
    kept = sum(len(set(b.entities) & set(a.entities)) for b, a in zip(before, after, strict=True))
    assert kept > 0.8 * sum(len(document.entities) for document in before)
    loaded = wingspan.load(tmp_path / "new", device="cpu")
    assert [d.entities for d in loaded.predict(dev_documents())] == [d.entities for d in after]


def test_renamed_labels_meet_those_of_the_new_corpus(tmp_path):
    old = wingspan.train(tiny("bundling/bl-span"), train=train_documents(6), output=tmp_path / "old", device="cpu")
    known = old.labels.types["main"]
    model = wingspan.train(
        tiny("bundling/bl-span", learning_rate=0.0),
        train=sparse("Organ"),
        start=tmp_path / "old",
        rename={known[0]: "Organ"},
        device="cpu",
    )
    assert model.labels.types["main"] == tuple(sorted(["Organ", *known[1:]]))
    head = [m.learner.model.scorer.head.layers[-1].weight for m in (old, model)]
    at = [old.labels.names().index(known[0]), model.labels.names().index("Organ")]
    assert torch.equal(head[0][at[0]], head[1][at[1]])
    vectors = torch.randn(3, old.learner.model.encoder.size)
    scores = [tag_scores(m, vectors) for m in (old, model)]
    assert torch.allclose(scores[0][known[0], 1], scores[1]["Organ", 1])
    with pytest.raises(ValueError, match="--rename Nonsense: the model has no such label; it has"):
        renamed(old, {"Nonsense": "X"})


def test_two_labels_cannot_take_one_name():
    model: Recognizer = untrained()
    with pytest.raises(ValueError, match="'Gene' would name two labels"):
        renamed(model, {"Drug": "Gene"})
    with pytest.raises(ValueError, match="'Thing' would name two labels"):
        renamed(model, {"Drug": "Thing", "Gene": "Thing"})
    assert renamed(model, {"Drug": "Gene", "Gene": "Drug"}).labels.types["main"] == ("Gene", "Drug")


def test_another_system_takes_the_encoder_only(tmp_path):
    old = wingspan.train(tiny("bundling/seq"), train=train_documents(4), output=tmp_path / "old", device="cpu")
    model = wingspan.train(
        tiny("baseline", learning_rate=0.0),
        train=train_documents(4),
        start=tmp_path / "old",
        output=tmp_path / "new",
        device="cpu",
    )
    assert torch.equal(model.learner.model.encoder.table.weight, old.learner.model.encoder.table.weight)
    wingspan.load(tmp_path / "new", device="cpu")


def test_the_encoder_of_the_start_is_the_one_that_is_saved(tmp_path):
    """Its sizes are the model's, whatever the recipe says."""
    wingspan.train(tiny("baseline"), train=train_documents(3), output=tmp_path / "old", device="cpu")
    wingspan.train(
        "baseline",
        train=train_documents(3),
        start=tmp_path / "old",
        output=tmp_path / "new",
        settings={"train.epochs": 1},
        device="cpu",
    )
    assert wingspan.load(tmp_path / "new").recipe.encoder.keywords["hidden"] == 8


def test_labels_of_two_sets():
    one = LabelSet({"main": ("B",), "x": ("A",)})
    assert both(one, LabelSet({"main": ("A", "C"), "y": ("D",)})).types == {
        "main": ("A", "B", "C"),
        "x": ("A",),
        "y": ("D",),
    }


@pytest.mark.parametrize("given", [{"encoder": "hashed"}, {"settings": {"encoder.size": 8}}])
def test_a_model_to_go_on_from_has_its_encoder_in_python_too(given):
    with pytest.raises(ValueError, match="--from brings its own encoder"):
        wingspan.train("baseline", train=train_documents(4), start="runs/none", **given)
    with pytest.raises(ValueError, match="--rename gives labels of the --from model"):
        wingspan.train("baseline", train=train_documents(4), rename={"Drug": "Chemical"})
