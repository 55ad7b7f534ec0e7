"""The autoencoders of Nguyen et al. 2023: what they read and write, what it costs, what learns from it."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from names import Invented, Listed, batch_of, generation
from tiny import sentence, sizes
from torch.distributions import Normal, kl_divergence

from wingspan.layers.schedules import Moment
from wingspan.layers.word_decoder import END, PAD, START, UNKNOWN, surface_of
from wingspan.objectives.generation import Generation
from wingspan.text import Entity, Sentence, Span

ONE = sentence("the Red cell died", ("Drug", 1, 3))
TWO = sentence("a gene and the old red cell", ("Gene", 1, 2), ("Drug", 4, 7))
NONE = sentence("nothing here")
LEXICON = Listed({"red cell": ["erythrocyte", "RBC cell"], "gene": ["locus"]})
EVERYTHING = [ONE, TWO, NONE]


def test_the_vocabulary_has_frequent_words_first_and_those_of_synonyms():
    objective = generation([ONE, TWO], LEXICON)
    words = objective.vocabulary.words[4:]
    assert words[:3] == ("cell", "red", "the")  # cell: twice in the text and once in a synonym; the, red: twice
    assert {"erythrocyte", "rbc", "locus", "gene"} <= set(words)
    assert "Red" not in words
    rare = generation([ONE, TWO], LEXICON, rare_first=True).vocabulary.words[4:]
    assert rare == words[::-1]
    own = generation([ONE, TWO], LEXICON, lower_case=False, synonym_words=False).vocabulary.words
    assert "Red" in own
    assert "erythrocyte" not in own


def text(objective: Generation, rows) -> list[list[str]]:
    return [[objective.vocabulary.words[at] for at in row if at != PAD] for row in rows.tolist()]


def test_each_gold_span_writes_its_words():
    objective = generation([ONE, TWO], LEXICON)
    _, _, targets = batch_of(objective, [ONE, NONE, TWO])
    assert targets["words"].rows.tolist() == [0, 4, 5]  # two places for gold in each sentence
    assert text(objective, targets["words"].read) == [
        ["<start>", "red", "cell"],
        ["<start>", "gene"],
        ["<start>", "old", "red", "cell"],
    ]
    assert text(objective, targets["words"].write) == [
        ["red", "cell", "<end>"],
        ["gene", "<end>"],
        ["old", "red", "cell", "<end>"],
    ]


def test_synonyms_are_written_from_their_own_words():
    objective = generation([ONE, TWO], LEXICON)
    _, _, targets = batch_of(objective, [ONE, NONE, TWO])
    assert targets["synonyms"].rows.tolist() == [0, 0, 4]
    assert text(objective, targets["synonyms"].read) == [
        ["<start>", "erythrocyte"],
        ["<start>", "rbc", "cell"],
        ["<start>", "locus"],
    ]
    assert text(objective, targets["synonyms"].write) == [
        ["erythrocyte", "<end>"],
        ["rbc", "cell", "<end>"],
        ["locus", "<end>"],
    ]


def test_the_published_decoder_reads_the_wrong_words():
    """Nguyen et al. 2023's code gives the synonyms' decoder the words of the span: systems.md 1.F2."""
    objective = generation([ONE, TWO], LEXICON, reads="source")
    _, _, targets = batch_of(objective, [ONE, TWO])
    assert text(objective, targets["synonyms"].read) == [
        ["<start>", "red", "cell"],
        ["<start>", "red", "cell"],
        ["<start>", "gene"],
    ]
    assert text(objective, targets["synonyms"].write)[0] == ["erythrocyte", "<end>"]


def test_lower_case_synonyms_of_a_cased_vocabulary_are_unknown():
    """The published vocabulary holds the cased words of training sentences only: systems.md 1.B."""
    objective = generation([ONE, TWO], LEXICON, lower_case=False, synonym_words=False)
    _, _, targets = batch_of(objective, [ONE])
    assert text(objective, targets["words"].write) == [["Red", "cell", "<end>"]]
    assert text(objective, targets["synonyms"].write) == [["<unknown>", "<end>"], ["<unknown>", "cell", "<end>"]]


def test_long_names_and_many_synonyms_are_cut():
    many = Listed({"gene": [f"name {number} a b c" for number in range(30)]})
    objective = generation([TWO], many, most_synonyms=4, longest=2)
    _, _, targets = batch_of(objective, [TWO])
    assert text(objective, targets["words"].write)[1] == ["old", "red", "<end>"]
    assert len(targets["synonyms"].rows) == 4
    assert text(objective, targets["synonyms"].write)[3] == ["name", "3", "<end>"]


def test_surfaces_have_spaces_where_the_document_has_them():
    words, offsets = ("beta", "-", "globin", "gene"), np.array([(0, 4), (4, 5), (5, 11), (12, 16)])
    found = Sentence(words, (), Span(0, 4), Span(0, 4), offsets)
    assert surface_of(found, Entity.at("Gene", 0, 4)) == "beta-globin gene"
    split = sentence("beta - globin gene", ("Gene", 0, 4))
    assert surface_of(split, split.entities[0]) == "beta - globin gene"


def by_hand(objective, task, vectors, wanted, weight) -> torch.Tensor:
    """One span after the other, one word after the other, from the latents' means."""
    total = torch.tensor(0.0)
    for row, read, write in zip(*wanted[:3], strict=True):
        mean, log_variance = objective.latent(vectors[row], task)
        decoder, state = objective.decoders[task], objective.decoders[task].begin(mean[None])
        for given, word in zip(read.tolist(), write.tolist(), strict=True):
            if word == PAD:
                break
            out, state = decoder.step(mean[None], objective.table.embed(torch.tensor([[given]])), state)
            total = total + F.cross_entropy(objective.table.out(out[:, 0]), torch.tensor([word]))
        spread = (0.5 * log_variance).exp()
        total = total + weight * kl_divergence(Normal(mean, spread), Normal(0.0, 1.0)).sum()
    return total / len(wanted.rows)


@pytest.mark.parametrize("sharing", ["mean", "all", "none"])
def test_the_loss_is_that_of_loops_over_spans_and_words(sharing):
    objective = generation(EVERYTHING, LEXICON, sharing=sharing, schedule="linear")
    for layer in objective.spreads.values():  # so small a spread that every draw is the mean
        torch.nn.init.zeros_(layer.weight)
        torch.nn.init.constant_(layer.bias, -30.0)
    states, gold, targets = batch_of(objective, EVERYTHING)
    states = states._replace(moment=Moment(step=3, steps=4))
    flat = states.gold.flatten(0, 1)
    expected = sum(by_hand(objective, task, flat, targets[task], 0.75) for task in ("words", "synonyms"))
    torch.testing.assert_close(objective(states, gold, targets), expected, rtol=1e-4, atol=1e-4)


def reached(objective, loss) -> set[str]:
    objective.zero_grad()
    loss.backward()
    return {name for name, p in objective.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}


def test_what_is_shared_is_shared_and_every_part_learns():
    shared = {"mean": (["shared"], ["words", "synonyms"]), "all": (["shared"], ["shared"])}
    for sharing, (means, spreads) in {**shared, "none": (["words", "synonyms"],) * 2}.items():
        objective = generation(EVERYTHING, LEXICON, sharing=sharing)
        assert (list(objective.means), list(objective.spreads)) == (means, spreads)
        states, gold, targets = batch_of(objective, EVERYTHING)
        names = {name for name, _ in objective.named_parameters()}
        assert reached(objective, objective(states, gold, targets)) == names
        real = torch.zeros(states.gold.shape[:2], dtype=torch.bool)
        real.view(-1)[targets["words"].rows] = True
        assert (states.gold.grad.abs().sum(-1) > 0).equal(real)  # gold spans learn, padding does not


def test_without_synonyms_there_is_one_decoder():
    objective = generation(EVERYTHING)
    assert list(objective.decoders) == ["words"]
    states, gold, targets = batch_of(objective, EVERYTHING)
    assert "synonyms" not in targets
    assert torch.isfinite(objective(states, gold, targets))


def test_a_batch_without_gold_costs_nothing_but_can_be_learned_from():
    objective = generation(EVERYTHING, LEXICON)
    states, gold, targets = batch_of(objective, [NONE])
    loss = objective(states, gold, targets)
    assert loss.item() == 0.0
    loss.backward()
    assert all(p.grad is None or not p.grad.any() for p in objective.parameters())


def test_up_to_the_free_nats_nothing_is_charged():
    plain = generation(EVERYTHING, schedule="constant")
    states, gold, targets = batch_of(plain, EVERYTHING)
    mean, log_variance = plain.latent(states.gold.flatten(0, 1)[targets["words"].rows])
    divergence = kl_divergence(Normal(mean, (0.5 * log_variance).exp()), Normal(0.0, 1.0)).sum(-1).mean()

    def cost(**settings):
        objective = generation(EVERYTHING, schedule="constant", **settings)
        torch.manual_seed(5)
        return objective(states, gold, targets)

    divergence = divergence.detach()
    words = cost() - divergence
    torch.testing.assert_close(cost(free_nats=float(divergence) + 7.0), words + divergence + 7.0)
    torch.testing.assert_close(cost(free_nats=float(divergence) / 2), words + divergence)


def test_hidden_words_are_unknown_but_the_start_is_not():
    objective = generation(EVERYTHING, word_dropout=1.0)
    seen = []
    objective.table.embed.register_forward_hook(lambda module, given, out: seen.append(given[0]))
    states, gold, targets = batch_of(objective, EVERYTHING)
    objective(states, gold, targets)
    assert set(seen[0].flatten().tolist()) == {START, UNKNOWN, PAD}
    assert torch.equal(seen[0] == START, targets["words"].read == START)


@pytest.mark.parametrize("rare_first", [False, True])
def test_words_seen_once_may_become_unknown(rare_first):
    """Nguyen et al. 2023: singletons with a chance of 1 in 100."""
    objective = generation(EVERYTHING, singleton_dropout=1.0, rare_first=rare_first)
    _, _, targets = batch_of(objective, EVERYTHING)
    found = text(objective, objective._with_unknown(targets["words"].write))
    assert found == [["red", "cell", "<end>"], ["<unknown>", "<end>"], ["<unknown>", "red", "cell", "<end>"]]


def test_a_large_vocabulary_gets_an_adaptive_softmax():
    many = [sentence(" ".join(f"w{number}" for number in range(100)), ("Drug", 0, 2))]
    full, adaptive = (generation(many, hidden=16, adaptive_above=above) for above in (1000, 50))
    assert not full.table.adaptive
    assert adaptive.table.adaptive
    assert adaptive.table.out.cutoffs == [7, 21, 104]  # V = 104: round(V / 15) and three times that
    states, gold, targets = batch_of(adaptive, many)
    assert torch.isfinite(adaptive(states, gold, targets))
    chances = adaptive.table.chances(torch.randn(3, 16))
    assert chances.shape == (3, 104)
    assert (chances[:, [PAD, START, UNKNOWN]] == -torch.inf).all()


def test_a_lexicon_is_wanted_for_synonyms_and_has_to_fit():
    assert Generation.learns_synonyms({})
    assert not Generation.learns_synonyms({"tasks": ("words",)})
    assert Generation.study([ONE], None, {})["with_synonyms"] == 0
    with pytest.raises(ValueError, match="synonyms for none of the 3 entities"):
        Generation.study([ONE, TWO], Listed({"heart": ["cor"]}), {})
    with pytest.raises(ValueError, match="no task 'rhymes'"):
        Generation.study([ONE], None, {"tasks": ("rhymes",)})
    with pytest.raises(ValueError, match="has to study the training data"):
        Generation(sizes())


def test_the_run_log_says_how_many_entities_have_synonyms():
    objective = generation([ONE, TWO], LEXICON)
    known = len(objective.vocabulary) - 4
    assert objective.lines() == [f"Vocabulary of {known} words; synonyms for 2 of 3 training entities (66.7%)."]
    assert generation([ONE]).lines() == ["Vocabulary of 4 words."]


def test_drawing_latents_changes_what_is_written_and_the_mean_does_not():
    objective = generation([ONE, TWO], Invented())
    vectors = torch.randn(8, 6)
    assert objective.write(vectors) == objective.write(vectors)
    torch.manual_seed(0)
    drawn = [objective.write(vectors, draw=True, how="sampled") for _ in range(2)]
    assert drawn[0] != drawn[1]
    assert all(END not in objective.vocabulary.ids(words) for words in drawn[0])
