"""The chapter on what a model writes: regenerated entities and how close they come (paper 000, Tables 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch

from wingspan.batch import Collate, batches, narrowed
from wingspan.layers.word_decoder import How, Synonyms, as_words, surface_of
from wingspan.model import tensors
from wingspan.objectives.generation import Generation
from wingspan.recognizer import Recognizer
from wingspan.report.blocks import Column, Row, Section, Table
from wingspan.text import Document, Entity

SAID = {"words": "the entity's own words", "synonyms": "a synonym"}
LEAD = (
    "The decoders of the training read the vectors of gold entities once more; the model that predicts does not need "
    "them. Words are as the decoder has them, mostly lower-cased."
)


def writing(tasks: Mapping[str, Sequence[Written]]) -> Section:
    """What each decoder wrote for the gold entities."""
    rows: list[Row] = []
    for task, pairs in tasks.items():
        own = task == "words"  # a synonym is not meant to equal the entity
        score = bleu2(pairs) if own and find_spec("sacrebleu") is not None else None
        rows.append((SAID[task], len(pairs), score, 100 * token_accuracy(pairs) if own else None))
    columns = (Column("task", "text"), Column("entities"), Column("BLEU-2", digits=4), Column("right words, %"))
    note = "" if find_spec("sacrebleu") else "BLEU needs sacrebleu: pip install 'wingspan[bleu]'."
    blocks = [
        Table("regeneration", "How well entities are written again", columns, rows, note=note),
        Table(
            "generation-by-label",
            "Right words by label",
            (Column("label", "label"), Column("entities"), Column("right words, %")),
            list(_by_label(tasks.get("words", ()))),
        ),
        examples_table(tasks),
    ]
    return Section("generation", "Generation", blocks, LEAD)


def _by_label(pairs: Sequence[Written]) -> Iterator[Row]:
    for label in sorted({pair.label for pair in pairs}):
        own = [pair for pair in pairs if pair.label == label]
        yield label, len(own), 100 * token_accuracy(own)


def examples_table(tasks: Mapping[str, Sequence[Written]]) -> Table:
    """Entities beside what was written for them, each once."""
    seen: dict[tuple[str, tuple[str, ...]], Row] = {}
    for pairs in zip(*tasks.values(), strict=True):
        key = pairs[0].label, pairs[0].words
        seen.setdefault(key, (" ".join(pairs[0].words), pairs[0].label, *(" ".join(pair.written) for pair in pairs)))
    columns = (Column("entity", "text"), Column("label", "label"), *(Column(SAID[task], "text") for task in tasks))
    return Table("generated", "What is written for gold entities", columns, list(seen.values()), shown=100)


# --- How well a model writes: regenerated entities, BLEU-2, token accuracy, recall of synonyms.
#
# See: paper 000 section 5.3, Tables 7 and 8.


class Written(NamedTuple):
    """A gold entity and what a decoder wrote from its vector."""

    label: str
    surface: str
    words: tuple[str, ...]
    written: tuple[str, ...]


def generation_of(model: Recognizer) -> Generation:
    """The objective that writes; a model that was saved for prediction has none any more."""
    for objective in model.learner.objectives.values():
        if isinstance(objective, Generation):
            return objective
    raise ValueError(
        "this model writes nothing: what generates is not saved for prediction; "
        "use training.phases.load_phase(RUN, PHASE) on the folder of a compress_generate run"
    )


def regenerate(
    model: Recognizer,
    documents: Iterable[Document],
    *,
    task: str = "words",
    how: How = "greedy",
    draw: bool = False,
    batch_size: int = 64,
) -> list[Written]:
    """What is written for each gold entity, in the order of the documents; discontinuous ones are left out."""
    generation = generation_of(model)
    found: list[tuple[int, Written]] = []
    for entities, vectors in gold_vectors(model, documents, batch_size):
        texts = generation.write(vectors, task, how, draw=draw)
        for (number, label, surface, words), text in zip(entities, texts, strict=True):
            found.append((number, Written(label, surface, words, tuple(text))))
    return [written for _, written in sorted(found, key=lambda pair: pair[0])]


Named = tuple[int, str, str, tuple[str, ...]]
"""The number of a gold entity's sentence, its label, surface and words, words as the decoder has them."""


@torch.inference_mode()
def gold_vectors(
    model: Recognizer, documents: Iterable[Document], batch_size: int = 64
) -> Iterator[tuple[list[Named], torch.Tensor]]:
    """The gold entities of some sentences, and their span vectors.  (N, S)"""
    lower = generation_of(model).lower_case
    sentences = [sentence for sentence in model.segment(documents, gold=True) if sentence.entities]
    collate = Collate(model.learner.model.encoder.tokenize, model.labels, {})
    names = model.labels.names()
    order = batches([len(sentence.words) for sentence in sentences], batch_size, budget=model.recipe.train.budget)
    for numbers in order:
        chosen = [sentences[number] for number in numbers]
        batch = collate(chosen)
        inputs, gold = tensors(batch.inputs, model.device), tensors(batch.gold, model.device)
        states = model.learner.model(inputs, gold, spans=False, gold_vectors=True)
        units = narrowed(batch.inputs).words
        rows, places = batch.gold.mask.nonzero()
        entities: list[Named] = []
        for row, place in zip(rows.tolist(), places.tolist(), strict=True):
            first = int(units[row, batch.gold.start[row, place]])
            last = int(units[row, batch.gold.end[row, place] - 1])
            label = names[batch.gold.label[row, place]] or ""
            words = chosen[row].words[first : last + 1]
            surface = surface_of(chosen[row], Entity.at(label, first, last + 1))
            written = tuple(word.lower() for word in words) if lower else words
            entities.append((numbers[row], label, surface, written))
        yield entities, states.gold[torch.from_numpy(rows), torch.from_numpy(places)]


def bleu2(pairs: Sequence[Written]) -> float:
    """BLEU-2 of what was written against the entities' own words, from 0 to 1, without smoothing (Table 7)."""
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise ValueError("BLEU needs sacrebleu: pip install 'wingspan[bleu]'") from None
    if not pairs:
        raise ValueError("no entity was written, so there is no BLEU; give documents with gold entities")
    metric: Any = BLEU(max_ngram_order=2, tokenize="none", smooth_method="none", force=True)
    score = metric.corpus_score([" ".join(p.written) for p in pairs], [[" ".join(p.words) for p in pairs]])
    return float(score.score) / 100


def token_accuracy(pairs: Sequence[Written]) -> float:
    """The share of places where the right word was written; missing and superfluous words are wrong."""
    right = sum(a == b for pair in pairs for a, b in zip(pair.words, pair.written, strict=False))
    return right / max(1, sum(max(len(pair.words), len(pair.written)) for pair in pairs))


def synonym_recall(pairs: Sequence[Written], lexicon: Synonyms) -> float:
    """The share of the words of all synonyms that was written for their entity; each word of an entity once."""
    hits = wanted = 0
    for pair in pairs:
        names = lexicon.synonyms(pair.surface, pair.label)
        words = {word for name in names for word in as_words(name, lower_case=True)}
        wanted += len(words)
        hits += len(words & {word.lower() for word in pair.written})
    return hits / max(1, wanted)


def examples(columns: dict[str, Sequence[Written]], number: int = 10) -> list[dict[str, str]]:
    """Rows as in Table 8: an original, once, and what each model wrote; where models differ first."""
    kept: dict[tuple[str, ...], dict[str, str]] = {}
    for row in zip(*columns.values(), strict=True):
        written = {name: " ".join(pair.written) for name, pair in zip(columns, row, strict=True)}
        kept.setdefault(row[0].words, {"original": " ".join(row[0].words), **written})
    return sorted(kept.values(), key=lambda row: len({row[name] for name in columns}) == 1)[:number]
