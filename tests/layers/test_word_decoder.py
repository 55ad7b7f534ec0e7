"""Writing words from latents: greedy, drawn, and by beams, against every sequence there is."""

from collections import Counter
from itertools import product

import pytest
import torch

from wingspan.layers.word_decoder import END, PAD, START, Vocabulary, WordDecoder, WrittenWords, by_frequency, write

WORDS = 4  # besides the specials


@pytest.fixture(params=[0, 1, 2])
def parts(request):
    torch.manual_seed(request.param)
    table = WrittenWords(4 + WORDS, 3, 6, 1000)
    decoder = WordDecoder(2, 3, 6)
    with torch.no_grad():
        for parameter in (*table.parameters(), *decoder.parameters()):
            parameter.mul_(3.0)  # so that words differ clearly
    return decoder, table, torch.randn(5, 2)


def chance_of(decoder, table, latent, words) -> float:
    """The logarithm of a sequence's chance."""
    read = torch.tensor([[START, *words[:-1]]])
    states = decoder(latent[None], table.embed(read))
    chances = table.chances(states[0])
    return float(sum(chances[at, word] for at, word in enumerate(words)))


def every_sequence(longest: int):
    """All that can be written in so many words: ended, or cut off."""
    writable = range(4, 4 + WORDS)
    for length in range(longest):
        yield from ((*words, END) for words in product(writable, repeat=length))
    yield from product(writable, repeat=longest)


@torch.no_grad()
def test_a_wide_beam_finds_the_best_of_all_sequences(parts):
    decoder, table, latents = parts
    found = write(decoder, table, latents, "beam", longest=3, beams=(WORDS + 1) ** 3)
    for latent, row in zip(latents, found.tolist(), strict=True):
        best = max(every_sequence(3), key=lambda words: chance_of(decoder, table, latent, words) / len(words))
        assert [word for word in row if word != PAD] == list(best)


@torch.no_grad()
def test_greedy_takes_the_likeliest_word_and_stops_at_the_end(parts):
    decoder, table, latents = parts
    found = write(decoder, table, latents, "greedy", longest=6)
    assert torch.equal(found, write(decoder, table, latents, "beam", longest=6, beams=1))
    for latent, row in zip(latents, found.tolist(), strict=True):
        words: list[int] = []
        while len(words) < 6 and END not in words:
            states = decoder(latent[None], table.embed(torch.tensor([[START, *words]])))
            words.append(int(table.chances(states[0, -1:]).argmax()))
        assert row == words + [PAD] * (6 - len(words))


def test_drawn_words_follow_their_chances(parts):
    decoder, table, latents = parts
    one = latents[:1].expand(4000, -1)
    torch.manual_seed(0)
    first = write(decoder, table, one, "sampled", longest=1)[:, 0]
    with torch.no_grad():
        states = decoder(latents[:1], table.embed(torch.tensor([[START]])))
        expected = table.chances(states[:, 0]).exp()[0]
    found = torch.bincount(first, minlength=4 + WORDS) / 4000
    torch.testing.assert_close(found, expected / expected.sum(), atol=0.03, rtol=0)


def test_the_latent_stands_beside_every_word(parts):
    decoder, table, latents = parts
    embedded = torch.randn(5, 3, 3)
    whole = decoder(latents, embedded)
    hidden, cell = decoder.begin(latents)
    assert torch.equal(cell, torch.zeros_like(cell))
    torch.testing.assert_close(hidden[0], decoder.start(latents))
    state, outs = (hidden, cell), []
    for at in range(3):
        out, state = decoder.step(latents, embedded[:, at : at + 1], state)
        outs.append(out)
    torch.testing.assert_close(torch.cat(outs, 1), whole)


def test_words_as_numbers_and_back():
    vocabulary = Vocabulary(by_frequency(Counter(["b", "a", "c", "a", "b", "a"])))
    assert vocabulary.words == ("<pad>", "<start>", "<end>", "<unknown>", "a", "b", "c")
    assert vocabulary.ids(["c", "a", "z"]) == [6, 4, 3]
    assert vocabulary.text([4, 6, END, 5]) == ["a", "c"]
