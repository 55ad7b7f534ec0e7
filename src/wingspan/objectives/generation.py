"""Two variational autoencoders over gold spans: one writes the span's own words, one its synonyms.

Only training needs them: they shape the span vectors. See: Nguyen et al. 2023 section 3.1.
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from wingspan.batch import Gold, Inputs, gold_spans
from wingspan.encoders.vectors import read_vectors
from wingspan.layers import word_decoder
from wingspan.layers.autocast import at_least_float32
from wingspan.layers.distributed import floored, share_of
from wingspan.layers.schedules import SCHEDULES, Moment
from wingspan.layers.word_decoder import PAD, SPECIALS, START, UNKNOWN, How, Sequences, Synonyms, WordDecoder
from wingspan.model import States
from wingspan.objectives import Objective, Sizes
from wingspan.text import Entity, Sentence

TASKS = ("words", "synonyms")


class Generation(Objective):
    """Reconstruction and divergence of both tasks, each the mean over spans, or over pairs of span and synonym.

    `sharing` of the latents between the tasks: the `mean` only, `all` of them, or `none`. The weight of the divergence
    follows `schedule`; up to `free_nats` a latent costs nothing (free bits), so that it does not stay empty.
    `word_dropout` hides input words of the decoder. With `reads="source"` the synonyms' decoder reads the span's words.
    """

    needs_gold_vectors = True
    reads_spans = False

    def __init__(
        self,
        sizes: Sizes,
        *,
        tasks: Sequence[str] = TASKS,
        sharing: Literal["mean", "all", "none"] = "mean",
        latent_size: int = 512,
        embedding_size: int = 200,
        hidden: int = 256,
        word_dropout: float = 0.3,
        schedule: Literal["constant", "linear", "logistic", "cyclic", "logistic-each-epoch"] = "logistic",
        free_nats: float = 0.0,
        reads: Literal["own", "source"] = "own",
        most_synonyms: int = 10,
        longest: int = 14,
        lower_case: bool = True,
        synonym_words: bool = True,
        rare_first: bool = False,
        adaptive_above: int = 5_000,
        singleton_dropout: float = 0.0,
        vectors: str | None = None,
    ) -> None:
        super().__init__()
        check_tasks(tasks)
        studied = sizes.studied
        if studied is None:
            raise ValueError("Generation has to study the training data before it is built; see training.fit")
        self.tasks = tuple(tasks)
        self.schedule = schedule
        self.free_nats = free_nats
        self.word_dropout = word_dropout
        self.singleton_dropout = singleton_dropout
        self.reads = reads
        self.longest = longest
        self.labels = sizes.labels
        self.vocabulary = word_decoder.Vocabulary(studied["words"])
        self.lower_case = lower_case
        self.synonyms = {
            label: {surface: [self.vocabulary.ids(name) for name in names] for surface, names in known.items()}
            for label, known in studied["synonyms"].items()
        }
        self.studied = studied
        known = len(studied["words"])
        rare = slice(0, studied["singletons"]) if rare_first else slice(known - studied["singletons"], known)
        self._singletons = slice(rare.start + len(SPECIALS), rare.stop + len(SPECIALS))
        self.mean_of = {task: task if sharing == "none" else "shared" for task in tasks}
        self.spread_of = {task: "shared" if sharing == "all" else task for task in tasks}
        self.means = nn.ModuleDict(
            {name: nn.Linear(sizes.span, latent_size) for name in dict.fromkeys(self.mean_of.values())}
        )
        self.spreads = nn.ModuleDict(
            {name: nn.Linear(sizes.span, latent_size) for name in dict.fromkeys(self.spread_of.values())}
        )
        self.table = word_decoder.WrittenWords(len(self.vocabulary), embedding_size, hidden, adaptive_above)
        self.decoders = nn.ModuleDict({task: WordDecoder(latent_size, embedding_size, hidden) for task in tasks})
        if vectors is not None:
            self._start_from(vectors, embedding_size)

    @classmethod
    def learns_synonyms(cls, settings: Mapping[str, Any]) -> bool:
        """If they are one of its tasks."""
        return "synonyms" in {**_defaults(cls), **settings}["tasks"]

    @classmethod
    def study(cls, sentences: Sequence[Sentence], lexicon: Synonyms | None, settings: Mapping[str, Any]) -> Any:
        """Vocabulary and synonyms, none without a lexicon; refuses one that has none for any training entity."""
        chosen = {**_defaults(cls), **settings}
        check_tasks(chosen["tasks"])
        lexicon = lexicon if cls.learns_synonyms(settings) else None
        studied = word_decoder.study_names(
            sentences,
            lexicon,
            lower_case=chosen["lower_case"],
            most=chosen["most_synonyms"],
            longest=chosen["longest"],
            rare_first=chosen["rare_first"],
            synonym_words=chosen["synonym_words"],
        )
        if lexicon is not None and not studied["with_synonyms"]:
            raise ValueError(
                f"the lexicon has synonyms for none of the {studied['entities']:,} entities of the training documents; "
                "give one of the same field, or --lexicon corpus"
            )
        return studied

    def lines(self) -> list[str]:
        """The size of the vocabulary, and how many entities have synonyms."""
        vocabulary = f"Vocabulary of {len(self.vocabulary) - len(SPECIALS):,} words"
        entities, covered = self.studied["entities"], self.studied["with_synonyms"]
        if not covered:
            return [f"{vocabulary}."]
        share = 100 * covered / entities
        return [f"{vocabulary}; synonyms for {covered:,} of {entities:,} training entities ({share:.1f}%)."]

    def targets(self, sentences: Sequence[Sentence], inputs: Inputs) -> dict[str, Sequences]:
        """The words of each gold span, and those of its synonyms."""
        gold, labels = gold_spans(sentences, inputs, self.labels), self.labels.names()
        own: list[tuple[int, list[int]]] = []
        pairs: list[tuple[int, list[int], list[int]]] = []
        for at, (row, place) in enumerate((r, e) for r in range(len(sentences)) for e in range(gold.mask.shape[1])):
            if not gold.mask[row, place]:
                continue
            first = int(inputs.words[row, gold.start[row, place]])
            last = int(inputs.words[row, gold.end[row, place] - 1])
            text = sentences[row].words[first : last + 1][: self.longest]
            words = self.vocabulary.ids(word.lower() if self.lower_case else word for word in text)
            own.append((at, words))
            label = labels[gold.label[row, place]] or ""
            surface = word_decoder.surface_of(sentences[row], Entity.at(label, first, last + 1))
            pairs.extend((at, words, name) for name in self.synonyms.get(label, {}).get(surface, []))
        read = [words if self.reads == "source" else name for _, words, name in pairs]
        texts, others = [words for _, words in own], [name for _, _, name in pairs]
        every = {
            "words": word_decoder.teacher_forcing([at for at, _ in own], texts, texts),
            "synonyms": word_decoder.teacher_forcing([at for at, _, _ in pairs], read, others),
        }
        return {task: every[task] for task in self.tasks}

    def forward(self, states: States, gold: Gold, targets: Mapping[str, Sequences]) -> Tensor:
        """The loss of both tasks, in float32."""
        assert states.gold is not None
        weight = SCHEDULES[self.schedule](states.moment or Moment())
        with torch.autocast(states.gold.device.type, enabled=False):
            vectors = at_least_float32(states.gold).flatten(0, 1)  # (B * E, S)
            costs = [self.cost(task, vectors, targets[task], weight) for task in self.tasks]
        return torch.stack(costs).sum()

    def cost(self, task: str, vectors: Tensor, target: Sequences, weight: float) -> Tensor:
        """The cost of the words of one task, plus the divergence times its weight."""
        mean, log_variance = self.latent(vectors[target.rows], task)  # (N, Z)
        latents = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        read, write = self._with_unknown(target.read), self._with_unknown(target.write)
        hidden = torch.rand(read.shape, device=read.device) < self.word_dropout
        read = torch.where(hidden & (read != PAD) & (read != START), UNKNOWN, read)
        states = self.decoders[task](latents, self.table.embed(read))
        share = target.weight.to(mean.dtype) / share_of(target.weight.sum(), mean)  # (N,)
        words = (self.table.costs(states, write).sum(-1) * share).sum()
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1.0 - log_variance)  # from the standard normal
        charged = floored((divergence.sum(-1) * share).sum(), self.free_nats)
        cost: Tensor = words + weight * charged
        return cost

    def latent(self, vectors: Tensor, task: str = "words") -> tuple[Tensor, Tensor]:
        """Mean and log variance of a task's latents.  (N, S) -> (N, Z), (N, Z)"""
        return self.means[self.mean_of[task]](vectors), self.spreads[self.spread_of[task]](vectors)

    @torch.no_grad()
    def write(
        self, vectors: Tensor, task: str = "words", how: How = "greedy", *, draw: bool = False, beams: int = 5
    ) -> list[list[str]]:
        """The words that a decoder writes from span vectors: from the latents' means, or from a `draw`."""
        latents, log_variance = self.latent(vectors.float(), task)
        if draw:
            latents = latents + (0.5 * log_variance).exp() * torch.randn_like(latents)
        decoder = self.decoders[task]
        assert isinstance(decoder, WordDecoder)
        return [
            self.vocabulary.text(row)
            for row in word_decoder.write(decoder, self.table, latents, how, self.longest + 1, beams).tolist()
        ]

    def _with_unknown(self, words: Tensor) -> Tensor:
        """Makes some of the words that occur once in training unknown, the same ones in the whole batch."""
        if not self.singleton_dropout:
            return words
        hidden = torch.zeros(len(self.vocabulary), dtype=torch.bool, device=words.device)
        rare = hidden[self._singletons]
        rare |= torch.rand(rare.shape, device=words.device) < self.singleton_dropout
        return torch.where(hidden[words], UNKNOWN, words)

    def _start_from(self, path: str, size: int) -> None:
        """Starts words from the vectors of a file, if it has them."""
        vectors = read_vectors(path, self.vocabulary.words, size)
        with torch.no_grad():
            for at, word in enumerate(self.vocabulary.words):
                if word in vectors:
                    self.table.embed.weight[at] = torch.from_numpy(vectors[word])


def _defaults(cls: type[Generation]) -> dict[str, Any]:
    return {name: part.default for name, part in inspect.signature(cls).parameters.items()}


def check_tasks(tasks: Sequence[str]) -> None:
    """Refuses unknown tasks before anything is read."""
    unknown = [task for task in tasks if task not in TASKS]
    if unknown or not tasks:
        raise ValueError(f"Generation has no task {unknown[0] if unknown else ''!r}; use {' and '.join(TASKS)}")
