"""`bundling/paper`: one test for each open choice and deviation that systems.md names (4.B, 4.C, 4.F)."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from tiny import LABELS, of_length, sentence, targets_of

import wingspan
from trainings import HASHED, dev_documents, tiny, train_documents, untrained
from wingspan.batch import Collate
from wingspan.candidates import Sampled
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.evaluation.scores import recognition
from wingspan.model import tensors
from wingspan.recipe import Learner, assemble
from wingspan.recipes import find
from wingspan.recipes.bundling import BERT_LARGE, BIO_BERT, SCI_BERT
from wingspan.text import Document
from wingspan.training import loop
from wingspan.training.loop import build_optimizer, rate_factor

WIDE = of_length(9, ("Gene", 1, 8))  # seven words, two more than the widest span


def learner_of(encoder=HASHED, name: str = "bundling/paper") -> Learner:
    torch.manual_seed(0)
    return assemble(replace(find(name), encoder=encoder), LABELS)


def states_of(learner: Learner, sentences, gold: bool = True):
    batch = tensors(Collate(learner.model.encoder.tokenize, LABELS, {})(sentences), "cpu")
    return learner.model(batch.inputs, batch.gold if gold else None), batch


def test_hybrid_spans_with_a_width_embedding_of_25():
    learner = learner_of()
    spans = learner.model.scorer.spans
    assert spans.views == ("first", "last", "max")
    assert spans.sentence
    assert spans.widths.embedding_dim == 25
    assert spans.size == 4 * learner.model.encoder.size + 25


def test_a_linear_classifier_with_dropout_before_it_on_both_sides():
    learner = learner_of().train()
    head, tags = learner.model.scorer.head, learner.objectives["tags"]
    assert len(head.layers) == 1
    assert head.input_dropout.p == tags.dropout.p == 0.1
    assert learner.model.scorer.spans.dropout.p == 0
    ones = torch.ones(1, 200, head.entry.in_features)
    seen = []
    head.entry.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    head(ones)
    assert 0.08 < (seen[0] == 0).float().mean() < 0.12


def test_the_weights_of_the_two_losses():
    recipe = find("bundling/paper")
    assert {name: term.weight for name, term in recipe.terms.items()} == {"spans": 0.9, "tags": 0.1}


def test_the_tag_loss_is_over_words_without_the_sentence_token(folders):
    learner = learner_of(partial(PretrainedEncoder, name=str(folders["bert"]), shapes=False)).eval()
    sentences = [sentence("drug in genes", ("Drug", 0, 1), ("Gene", 2, 3)), sentence("a cell")]
    states, batch = states_of(learner, sentences)
    assert batch.inputs.tokens.shape[1] > states.words.top.shape[1] == 3
    tags = learner.objectives["tags"]
    costs = []
    for row, wanted in enumerate([[1, 0, 3], [0, 0]]):  # O, B-Drug, I-Drug, B-Gene, I-Gene
        chance = tags.score(states.words.top[row, : len(wanted)]).log_softmax(-1)
        costs += [-chance[at, tag] for at, tag in enumerate(wanted)]
    torch.testing.assert_close(
        tags(states, batch.gold, targets_of(tags, sentences, states.inputs)), torch.stack(costs).mean()
    )


def test_wide_positives_are_trained_on_and_never_found():
    learner = learner_of().train()
    states, _ = states_of(learner, [WIDE])
    spans = {(s, e) for s, e, m in zip(*(part[0].tolist() for part in states.candidates[:3]), strict=True) if m}
    assert (1, 8) in spans
    states, _ = states_of(learner.eval(), [WIDE], gold=False)
    widths = (states.candidates.end - states.candidates.start)[states.candidates.mask]
    assert int(widths.max()) == find("bundling/paper").max_width == 5


def test_an_inside_tag_without_its_begin_starts_an_entity():
    learner = learner_of(name="bundling/paper-seq").eval()
    tags = learner.objectives["tags"]
    torch.nn.init.zeros_(tags.score.weight)
    tags.score.bias.data.copy_(torch.tensor([0.0, 0.0, 0.0, 0.0, 9.0]))  # I-Gene everywhere
    states, _ = states_of(learner, [of_length(4)], gold=False)
    found = tags.decode(states)
    assert [part.tolist() for part in found[1:4]] == [[0], [4], [2]]


def test_negatives_are_at_most_100_and_drawn_anew():
    recipe = find("bundling/paper")
    assert recipe.candidates.func is Sampled
    assert recipe.candidates.keywords == {"negatives": 100}
    learner = learner_of().train()
    long, short = of_length(60, ("Gene", 3, 5)), of_length(4, ("Gene", 0, 1))
    draws = []
    for _ in range(2):
        states, _ = states_of(learner, [long, short])
        kept = [
            {(int(s), int(e)) for s, e, m in zip(start, end, mask, strict=True) if m}
            for start, end, mask in zip(*states.candidates[:3], strict=True)
        ]
        assert len(kept[0]) == 101
        assert kept[1] == {(s, e) for s in range(4) for e in range(s + 1, 5)}  # fewer than 100: all of them
        draws.append(kept[0])
    assert draws[0] != draws[1]
    assert (3, 5) in draws[0] & draws[1]


def test_classifiers_start_from_a_narrow_normal():
    learner = learner_of()
    for layer in (learner.model.scorer.head.entry, learner.objectives["tags"].score):
        assert 0.016 < layer.weight.detach().std().item() < 0.024
        assert not layer.bias.any()


def test_one_learning_rate_no_decay_of_biases_and_norms():
    train = find("bundling/paper").train
    assert (train.learning_rate, train.factors) == (5e-5, {})
    assert (train.weight_decay, train.decay_bias, train.clip) == (0.01, False, 1.0)
    assert (train.epochs, train.schedule, train.warmup) == (20, "linear", 0.1)
    learner = learner_of()
    groups = build_optimizer(learner, train).param_groups
    assert {group["lr"] for group in groups} == {5e-5}
    decayed = {id(p) for group in groups if group["weight_decay"] == 0.01 for p in group["params"]}
    assert sum(len(group["params"]) for group in groups) == len(list(learner.parameters()))
    for name, parameter in learner.named_parameters():
        vector = name.endswith("bias") or ".bias_" in name or "normalize" in name
        assert (id(parameter) in decayed) != vector, name


def test_the_rate_rises_over_a_tenth_of_the_steps_and_falls_to_zero():
    train = find("bundling/paper").train
    rates = [rate_factor(step, 100, train) for step in range(100)]
    assert rates[:10] == pytest.approx([n / 10 for n in range(1, 11)])
    assert rates[10:] == pytest.approx([1 - n / 90 for n in range(90)])


def test_decoding_is_flat_and_keeps_the_likelier():
    assert find("bundling/paper").overlap == "flat"
    model = untrained("bundling/paper", overlap="flat", max_width=5)
    found = model.predict(["one two three four five six seven eight nine ten eleven twelve"], threshold=0.0)[0].entities
    assert len(found) > 1
    assert all(one.end <= other.start for one, other in zip(found, found[1:], strict=False))
    everything = model.predict(Document("0", "one two three four"), threshold=0.0, overlap="any")[0].entities
    flat = model.predict(Document("0", "one two three four"), threshold=0.0)[0].entities
    assert max(everything, key=lambda e: e.score).score == max(flat, key=lambda e: e.score).score


@pytest.mark.parametrize(
    ("corpus", "width", "batch", "encoder"),
    [
        ("ontonotes", 10, 12, BERT_LARGE),
        ("conll03", 5, 32, BERT_LARGE),
        ("conllpp", 5, 32, BERT_LARGE),
        ("conll04", 10, 2, BERT_LARGE),
        ("ace04", 10, 8, BERT_LARGE),
        ("ace05", 10, 8, BERT_LARGE),
        ("bc5cdr", 7, 16, BIO_BERT),
        ("ncbi", 7, 16, BIO_BERT),
        ("scierc", 8, 12, SCI_BERT),
        ("wnut16", 6, 32, BERT_LARGE),
        ("wnut17", 6, 24, BERT_LARGE),
    ],
)
def test_settings_of_each_corpus(corpus, width, batch, encoder):
    recipe = find(f"bundling/paper-{corpus}")
    assert (recipe.max_width, recipe.train.batch_size) == (width, batch)
    assert recipe.encoder.keywords == {"name": encoder, "pooling": "max", "shapes": False}


def test_the_number_of_spans_of_the_paper():
    """eps (2n - eps + 1) / 2 = 955 for n = 100, eps = 10."""
    learner = learner_of(name="bundling/paper-ontonotes").eval()
    states, _ = states_of(learner, [of_length(100)], gold=False)
    assert int(states.candidates.mask.sum()) == 955


def test_the_best_epoch_on_dev_is_kept(monkeypatch):
    """Which epoch the paper took is not stated; SpERT took the last, we take the best on dev."""
    seen = []
    right = iter([0, 2, 1])  # found in each document: the second of three epochs is the best
    gold = dev_documents()

    def score(run, accelerator):
        seen.append({name: value.clone() for name, value in run.learner.state_dict().items()})
        number = next(right)
        return recognition(gold, [replace(document, entities=document.entities[:number]) for document in gold])

    monkeypatch.setattr(loop, "score", score)
    model = wingspan.train(tiny("bundling/paper", epochs=3), train=train_documents(6), dev=gold, device="cpu")
    found = model.learner.state_dict()
    assert len(seen) == 3
    assert all(torch.equal(found[name], seen[1][name]) for name in found)
    assert not all(torch.equal(found[name], seen[2][name]) for name in found)
