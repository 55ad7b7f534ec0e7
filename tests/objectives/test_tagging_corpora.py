"""Tags of several corpora: foreign ones cannot be, and silence is no O."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import arrays_of, sentence, sizes, targets_of, vectors, word_inputs

from wingspan.batch import entities_found
from wingspan.labels import LabelSet
from wingspan.model import States, fetch
from wingspan.objectives.tagging import Tagging

OWN = LabelSet({"one": ("A", "B"), "two": ("B", "C")}, annotates={"two": ("C",)})
SHARED = LabelSet(OWN.types, OWN.annotates, shared=True)
SENTENCES = [sentence("a b c", ("A", 1, 2), dataset="one"), sentence("a b", ("C", 0, 1), dataset="two")]
# what each word of the two sentences may be besides its tag, by corpus: types that are left unmarked
UNMARKED = {("own", 0): [], ("own", 1): ["B"], ("shared", 0): ["C"], ("shared", 1): ["A", "B"]}


def tagger(labels: LabelSet, overlap: str, crf: bool) -> Tagging:
    torch.manual_seed(1)
    made = Tagging(sizes(overlap, labels=labels), crf=crf, dropout=0.0, spread=1.0)
    if made.chain is not None:
        for part in made.chain.parameters():
            torch.nn.init.normal_(part)
    return made


def states_of_both() -> States:
    inputs = word_inputs(SENTENCES)._replace(dataset=torch.tensor([0, 1]))
    return States(inputs, vectors(inputs))


@pytest.mark.parametrize("crf", [False, True])
@pytest.mark.parametrize("overlap", ["flat", "nested"])
@pytest.mark.parametrize(("kind", "labels"), [("own", OWN), ("shared", SHARED)])
@torch.no_grad()
def test_the_loss_is_the_chance_of_all_that_the_corpus_may_mean(kind, labels, overlap, crf):
    """By brute force: every sequence of tags that a corpus can have, and those that its annotation leaves open."""
    tagging = tagger(labels, overlap, crf)
    states = states_of_both()
    total = 0.0
    for row, (corpus, length) in enumerate((("one", 3), ("two", 2))):
        scores = tagging.score(states.words.top[row, :length]).view(length, tagging.layers, tagging.tags)
        types = labels.types[corpus] if kind == "own" else [name for name in labels.names() if name]
        of_corpus = {c for c, (block, name) in enumerate(labels.meanings()) if name in types and block in ("", corpus)}
        silent = {c for c in of_corpus if labels.names()[c] in UNMARKED[kind, row]}
        marked = {(1 if row == 0 else 0): labels.id(corpus, "A" if row == 0 else "C")}
        for layer in range(tagging.layers):
            here = [c for c in of_corpus if tagging.layer_of[c] == layer]
            tags = [0] + [tagging.begin_of[c] + n for c in here for n in (0, 1)]
            left_open = [0] + [tagging.begin_of[c] + n for c in here if c in silent for n in (0, 1)]
            if not set(here) - silent:
                continue  # nothing is known of this layer
            sums = {True: 0.0, False: 0.0}
            for path in product(tags, repeat=length):
                score = sum(float(scores[at, layer, tag]) for at, tag in enumerate(path))
                if crf:
                    chain = tagging.chain
                    score += float(chain.first[layer, path[0]] + chain.last[layer, path[-1]])
                    score += sum(float(chain.transitions[layer, a, b]) for a, b in zip(path, path[1:], strict=False))
                fits = all(
                    tag == tagging.begin_of[marked[at]]
                    if at in marked and tagging.layer_of[marked[at]] == layer
                    else tag in left_open
                    for at, tag in enumerate(path)
                )
                sums[fits] += math.exp(score)
            total -= math.log(sums[True] / (sums[True] + sums[False]))
    loss = tagging(states, None, targets_of(tagging, SENTENCES, states.inputs))
    assert loss.item() == pytest.approx(total / 5, rel=1e-4)  # words of both sentences


@settings(max_examples=40)
@given(
    types=st.lists(st.lists(st.sampled_from("ABCD"), min_size=1, max_size=3, unique=True), min_size=2, max_size=3),
    shared=st.booleans(),
    overlap=st.sampled_from(["flat", "nested"]),
    crf=st.booleans(),
    thresholds=st.sampled_from([None, 0.0]),
    seed=st.integers(0, 1000),
)
def test_no_foreign_label_is_ever_read(types, shared, overlap, crf, thresholds, seed):
    labels = LabelSet({f"c{n}": tuple(own) for n, own in enumerate(types)}, shared=shared)
    sentences = [sentence("a b c d e", dataset=name) for name in labels.types]
    inputs = word_inputs(sentences)._replace(dataset=torch.arange(len(types)))
    torch.manual_seed(seed)
    tagging = Tagging(sizes(overlap, labels=labels), crf=crf, spread=30.0).eval()
    states = States(inputs, vectors(inputs, seed=seed))
    found = entities_found(fetch(tagging.decode(states, thresholds))(), arrays_of(inputs), labels)
    for name, entities in zip(labels.types, found, strict=True):
        assert {entity.label for entity in entities} <= set(labels.types[name])
