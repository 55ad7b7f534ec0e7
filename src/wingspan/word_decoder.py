"""An LSTM that writes words from a latent vector, and the table of words that several of them share.

See: paper 000 section 3.1.2. Legend: N latents, T words, V vocabulary, Z latent size, H hidden size.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.vocabulary import END, PAD, START, UNKNOWN

How = Literal["greedy", "sampled", "beam"]
State = tuple[Tensor, Tensor]


class WordTable(nn.Module):
    """One vector for each word that is read, and the chance of each word that may be written.

    Above `adaptive_above` words the softmax is adaptive: rare words (with high numbers) are scored in fewer dimensions.
    """

    def __init__(self, vocabulary: int, embedding_size: int, hidden: int, adaptive_above: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary, embedding_size, padding_idx=PAD)
        share = max(1, round(vocabulary / 15))
        self.adaptive = vocabulary > max(adaptive_above, 3 * share + 1) and hidden >= 16
        self.out: nn.Module = (
            nn.AdaptiveLogSoftmaxWithLoss(hidden, vocabulary, [share, 3 * share], div_value=4.0, head_bias=False)
            if self.adaptive
            else nn.Linear(hidden, vocabulary)
        )

    def costs(self, states: Tensor, words: Tensor) -> Tensor:
        """What it costs to write these words, in nats; nothing for padding.  (N, T, H), (N, T) -> (N, T)"""
        flat, wanted = states.flatten(0, 1), words.flatten()
        if isinstance(self.out, nn.AdaptiveLogSoftmaxWithLoss):
            cost: Tensor = -self.out(flat, wanted).output
        else:
            cost = F.cross_entropy(self.out(flat), wanted, reduction="none")
        return cost.view_as(words).masked_fill(words == PAD, 0.0)

    def chances(self, states: Tensor) -> Tensor:
        """The logarithm of each word's chance; padding, start and unknown are never written.  (N, H) -> (N, V)"""
        if isinstance(self.out, nn.AdaptiveLogSoftmaxWithLoss):
            chance: Tensor = self.out.log_prob(states)
        else:
            chance = self.out(states).log_softmax(-1)
        chance[:, [PAD, START, UNKNOWN]] = -torch.inf
        return chance


class WordDecoder(nn.Module):
    """The latent starts the hidden state and stands beside every word that is read."""

    def __init__(self, latent_size: int, embedding_size: int, hidden: int) -> None:
        super().__init__()
        self.start = nn.Linear(latent_size, hidden)
        self.lstm = nn.LSTM(embedding_size + latent_size, hidden, batch_first=True)

    def forward(self, latents: Tensor, embedded: Tensor) -> Tensor:
        """Hidden states, word by word.  (N, Z), (N, T, E) -> (N, T, H)"""
        return self.step(latents, embedded, self.begin(latents))[0]

    def begin(self, latents: Tensor) -> State:
        """The state before the first word."""
        hidden = self.start(latents)[None].contiguous()  # (1, N, H)
        return hidden, torch.zeros_like(hidden)

    def step(self, latents: Tensor, embedded: Tensor, state: State) -> tuple[Tensor, State]:
        """Reads words and goes on from a state."""
        beside = latents[:, None].expand(-1, embedded.shape[1], -1)
        out, state = self.lstm(torch.cat([embedded, beside], -1), state)
        return out, state


class Beam(NamedTuple):
    """The best beginnings of each latent so far: K of them, N * K rows in the tensors of the decoder."""

    words: Tensor  # (N, K, t)
    chance: Tensor  # (N, K) logarithms
    ended: Tensor  # (N, K)


@torch.no_grad()
def write(
    decoder: WordDecoder, table: WordTable, latents: Tensor, how: How = "greedy", longest: int = 15, beams: int = 5
) -> Tensor:
    """Words for each latent, ended by END and padded: the likeliest one by one, drawn, or the best beam.  (N, T)"""
    if how == "beam":
        return write_beam(decoder, table, latents, longest, beams)
    state, last = decoder.begin(latents), torch.full((len(latents),), START, device=latents.device)
    ended = torch.zeros_like(last, dtype=torch.bool)
    written = []
    for _ in range(longest):
        out, state = decoder.step(latents, table.embed(last[:, None]), state)
        chance = table.chances(out[:, 0])
        last = chance.argmax(-1) if how == "greedy" else torch.multinomial(chance.exp(), 1)[:, 0]
        last = last.masked_fill(ended, PAD)
        written.append(last)
        ended = ended | (last == END)
    return torch.stack(written, 1)


def write_beam(decoder: WordDecoder, table: WordTable, latents: Tensor, longest: int, beams: int) -> Tensor:
    """The likeliest sequence that a beam of so many beginnings finds, its chance taken to the power 1 / length."""
    number = len(latents)
    wide = latents.repeat_interleave(beams, 0)  # (N * K, Z)
    state = decoder.begin(wide)
    last = torch.full((number * beams,), START, device=latents.device)
    first = torch.tensor([0.0] + [-torch.inf] * (beams - 1), device=latents.device)  # at first all beginnings are one
    empty = torch.empty(number, beams, 0, dtype=torch.long, device=latents.device)
    beam = Beam(empty, first.repeat(number, 1), torch.zeros(number, beams, dtype=torch.bool, device=latents.device))
    for _ in range(longest):
        out, state = decoder.step(wide, table.embed(last[:, None]), state)
        beam, parents = extended(beam, table.chances(out[:, 0]).view(number, beams, -1))
        rows = (parents + torch.arange(number, device=latents.device)[:, None] * beams).flatten()
        state = (state[0][:, rows], state[1][:, rows])
        last = beam.words[:, :, -1].flatten()
    lengths = (beam.words != PAD).sum(-1).clamp(min=1)
    best = (beam.chance / lengths).argmax(-1)
    return beam.words[torch.arange(number, device=latents.device), best]


def extended(beam: Beam, chances: Tensor) -> tuple[Beam, Tensor]:
    """Each beginning with one word more, the best K of all; what has ended stays as it is.  (N, K, V)"""
    vocabulary, beams = chances.shape[-1], chances.shape[1]
    stay = torch.full_like(chances[0, 0], -torch.inf)
    stay[PAD] = 0.0
    chances = torch.where(beam.ended[..., None], stay, chances)
    chance, at = (beam.chance[..., None] + chances).flatten(1).topk(beams, 1)  # (N, K)
    parents, words = at // vocabulary, at % vocabulary
    before = beam.words.gather(1, parents[..., None].expand(-1, -1, beam.words.shape[-1]))
    ended = beam.ended.gather(1, parents) | (words == END)
    return Beam(torch.cat([before, words[..., None]], -1), chance, ended), parents
