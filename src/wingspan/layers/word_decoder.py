"""Words for objectives that write names: vocabulary, LSTM decoder from a latent vector, names and synonyms.

See: Nguyen et al. 2023 section 3.1.2. Legend: N latents, T words, V vocabulary, Z latent size, H hidden size.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wingspan.batch import Array
from wingspan.corpora.words import split_words
from wingspan.text import Entity, Sentence

How = Literal["greedy", "sampled", "beam"]
State = tuple[Tensor, Tensor]


SPECIALS = ("<pad>", "<start>", "<end>", "<unknown>")
PAD, START, END, UNKNOWN = range(len(SPECIALS))


class Vocabulary:
    """Words and their ids: special words first, then the given words in their order."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = (*SPECIALS, *words)
        self._ids = {word: at for at, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Iterable[str]) -> list[int]:
        """The id of each word; unknown words share one."""
        return [self._ids.get(word, UNKNOWN) for word in words]

    def text(self, ids: Iterable[int]) -> list[str]:
        """The words of ids, up to the end."""
        return [self.words[at] for at in takewhile(lambda at: at != END, ids)]


def by_frequency(counts: Counter[str], rare_first: bool = False) -> list[str]:
    """The most frequent words first, or last; equally frequent ones alphabetically."""
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return ordered[::-1] if rare_first else ordered


class WrittenWords(nn.Module):
    """The vector of each input word, and the chance of each output word.

    Above `adaptive_above` words the softmax is adaptive: rare words (with high ids) are scored in fewer dimensions.
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
        """The cost of writing these words, in nats; 0 for padding.  (N, T, H), (N, T) -> (N, T)"""
        flat, target = states.flatten(0, 1), words.flatten()
        if isinstance(self.out, nn.AdaptiveLogSoftmaxWithLoss):
            cost: Tensor = -self.out(flat, target).output
        else:
            cost = F.cross_entropy(self.out(flat), target, reduction="none")
        return cost.view_as(words).masked_fill(words == PAD, 0.0)

    def chances(self, states: Tensor) -> Tensor:
        """Log chances of all words; padding, start and unknown are never written.  (N, H) -> (N, V)"""
        if isinstance(self.out, nn.AdaptiveLogSoftmaxWithLoss):
            chance: Tensor = self.out.log_prob(states)
        else:
            chance = self.out(states).log_softmax(-1)
        chance[:, [PAD, START, UNKNOWN]] = -torch.inf
        return chance


class WordDecoder(nn.Module):
    """An LSTM whose first state comes from the latent, which is also appended to every input word."""

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
        """Continues from a state with more words."""
        beside = latents[:, None].expand(-1, embedded.shape[1], -1)
        out, state = self.lstm(torch.cat([embedded, beside], -1), state)
        return out, state


@torch.no_grad()
def write(
    decoder: WordDecoder, table: WrittenWords, latents: Tensor, how: How = "greedy", longest: int = 15, beams: int = 5
) -> Tensor:
    """Word ids for each latent, with END and padding: greedy, sampled, or by beam search.  (N, T)"""
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


def write_beam(decoder: WordDecoder, table: WrittenWords, latents: Tensor, longest: int, beams: int) -> Tensor:
    """The sequence that a beam search finds, by its chance to the power 1 / length, among the best K of each latent."""
    number = len(latents)
    wide = latents.repeat_interleave(beams, 0)  # (N * K, Z)
    state = decoder.begin(wide)
    last = torch.full((number * beams,), START, device=latents.device)
    first = torch.tensor([0.0] + [-torch.inf] * (beams - 1), device=latents.device)  # all beams start the same
    total, words = first.repeat(number, 1), torch.empty(number, beams, 0, dtype=torch.long, device=latents.device)
    ended = torch.zeros(number, beams, dtype=torch.bool, device=latents.device)
    each = torch.arange(number, device=latents.device)
    for _ in range(longest):
        out, state = decoder.step(wide, table.embed(last[:, None]), state)
        chances = table.chances(out[:, 0]).view(number, beams, -1)  # (N, K, V)
        stay = torch.full_like(chances[0, 0], -torch.inf)
        stay[PAD] = 0.0  # ended sequences stay as they are
        chances = total[..., None] + torch.where(ended[..., None], stay, chances)
        total, at = chances.flatten(1).topk(beams, 1)  # (N, K)
        parents, new = at // chances.shape[-1], at % chances.shape[-1]
        before = words.gather(1, parents[..., None].expand_as(words))
        words, ended = torch.cat([before, new[..., None]], -1), ended.gather(1, parents) | (new == END)
        rows = (parents + each[:, None] * beams).flatten()
        state, last = (state[0][:, rows], state[1][:, rows]), new.flatten()
    lengths = (words != PAD).sum(-1).clamp(min=1)
    return words[each, (total / lengths).argmax(-1)]


class Synonyms(Protocol):
    """The part of a lexicon that objectives need."""

    def synonyms(self, surface: str, label: str | None = None) -> tuple[str, ...]:
        """Other names of the same thing; none if the surface is unknown."""


class Sequences(NamedTuple):
    """The decoder's input and target for some of a batch's gold spans."""

    rows: Array  # (N,) index of the gold span, over all sentences in order
    read: Array  # (N, T) input words
    write: Array  # (N, T) target words
    weight: Array  # (N,) 0 for a row that only fills an empty table


def surface_of(sentence: Sentence, entity: Entity) -> str:
    """The text of an entity, with spaces only where the document has them."""
    words, offsets = sentence.words, sentence.offsets
    text = words[entity.start]
    for at in range(entity.start + 1, entity.end):
        close = len(offsets) > 0 and offsets[at, 0] == offsets[at - 1, 1]
        text += words[at] if close else f" {words[at]}"
    return text


def as_words(text: str, lower_case: bool) -> list[str]:
    """A name as words, split as texts are."""
    text = text.lower() if lower_case else text
    return [text[span.start : span.end] for span in split_words(text)]


def study_names(
    sentences: Sequence[Sentence],
    lexicon: Synonyms | None,
    *,
    lower_case: bool,
    most: int,
    longest: int,
    rare_first: bool,
    synonym_words: bool,
) -> dict[str, Any]:
    """Vocabulary and synonyms of the training data as plain data; without a lexicon there are no synonyms.

    The vocabulary has the words of all sentences and, with `synonym_words`, of the synonyms.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        words = sentence.words[sentence.core.start : sentence.core.end]  # the rest belongs to other sentences
        counts.update(word.lower() if lower_case else word for word in words)
    names: dict[str, dict[str, list[list[str]]]] = {}  # by label and surface: synonyms as words
    entities = covered = 0
    for sentence in sentences:
        for entity in sentence.entities if lexicon is not None else ():
            if entity.discontinuous or not sentence.core.start <= entity.start < sentence.core.end:
                continue
            assert lexicon is not None
            surface = surface_of(sentence, entity)
            known = names.setdefault(entity.label, {})
            if surface not in known:
                others = [as_words(name, lower_case) for name in lexicon.synonyms(surface, entity.label)[:most]]
                known[surface] = [name[:longest] for name in others if name]
                if synonym_words:
                    counts.update(word for name in known[surface] for word in name)
            entities += 1
            covered += bool(known[surface])
    return {
        "words": by_frequency(counts, rare_first),
        "singletons": sum(count == 1 for count in counts.values()),
        "synonyms": {label: {key: some for key, some in known.items() if some} for label, known in names.items()},
        "entities": entities,
        "with_synonyms": covered,
    }


def teacher_forcing(rows: Sequence[int], read: Sequence[Sequence[int]], write: Sequence[Sequence[int]]) -> Sequences:
    """Inputs start with START, targets end with END."""
    longest = max([len(row) + 1 for row in write] + [1])
    source, target = np.full((2, max(len(rows), 1), longest), PAD, dtype=np.int64)
    for at, (begun, ended) in enumerate(zip(read, write, strict=True)):
        source[at, : len(begun) + 1] = [START, *begun][:longest]
        target[at, : len(ended) + 1] = [*ended, END]
    weight = np.ones(len(target), dtype=np.float32) if rows else np.zeros(1, dtype=np.float32)
    return Sequences(np.array(rows or [0], dtype=np.int64), source, target, weight)
