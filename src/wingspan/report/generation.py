"""The chapter on generation: entities written again by decoders.  See: Nguyen et al., section 5.3, Tables 7 and 8."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch

from wingspan.batch import Collate, batches, narrowed
from wingspan.layers.word_decoder import How, Synonyms, as_words, surface_of
from wingspan.model import tensors
from wingspan.objectives.generation import Generation
from wingspan.recognizer import Recognizer
from wingspan.report.blocks import Column, Section, Table, TableRow, numbers
from wingspan.text import Document, Entity, join_words

TASK_NAMES = {"words": "the entity's own words", "synonyms": "a synonym"}
LEAD = (
    "The decoders of the training read the vectors of gold entities once more; the model that predicts does not need "
    "them. Words are as the decoder has them, mostly lower-cased."
)


class Written(NamedTuple):
    """A gold entity and the words that a decoder wrote from its vector."""

    label: str
    surface: str
    words: tuple[str, ...]
    written: tuple[str, ...]


def generation_chapter(tasks: Mapping[str, Sequence[Written]]) -> Section:
    """The words of each decoder for the gold entities."""
    with_bleu = find_spec("sacrebleu") is not None
    rows: list[TableRow] = []
    for task, pairs in tasks.items():
        own = task == "words"  # a synonym is not meant to equal the entity
        score = bleu2(pairs) if own and with_bleu else None
        rows.append((TASK_NAMES[task], len(pairs), score, 100 * token_accuracy(pairs) if own else None))
    columns = (Column("task", "text"), Column("entities"), Column("BLEU-2", digits=4), Column("right words, %"))
    by_label: dict[str, list[Written]] = {}
    for pair in tasks.get("words", ()):
        by_label.setdefault(pair.label, []).append(pair)
    accuracies = [(label, len(own), 100 * token_accuracy(own)) for label, own in sorted(by_label.items())]
    shown: dict[tuple[str, tuple[str, ...]], TableRow] = {}  # each entity once
    for pairs in zip(*tasks.values(), strict=True):
        first = pairs[0]
        row = (join_words(first.words), first.label, *(join_words(pair.written) for pair in pairs))
        shown.setdefault((first.label, first.words), row)
    note = "" if with_bleu else "BLEU needs sacrebleu: pip install 'wingspan-ner[bleu]'."
    label = Column("label", "label")
    label_columns = (label, *numbers("entities", "right words, %"))
    written = (Column("entity", "text"), label, *(Column(TASK_NAMES[task], "text") for task in tasks))
    blocks = [
        Table("regeneration", "How well entities are written again", columns, rows, note=note),
        Table("generation-by-label", "Right words by label", label_columns, accuracies),
        Table("generated", "What is written for gold entities", written, list(shown.values()), shown=100),
    ]
    return Section("generation", "Generation", blocks, LEAD)


def generation_of(model: Recognizer) -> Generation:
    """The objective that generates; a model that was saved for prediction no longer has it."""
    for objective in model.learner.objectives.values():
        if isinstance(objective, Generation):
            return objective
    raise ValueError(
        "this model writes nothing: decoders are not saved for prediction; "
        "use wingspan.training.state.load_phase(RUN, PHASE) on the folder of a compress_generate run"
    )


@torch.inference_mode()
def regenerate(
    model: Recognizer,
    documents: Iterable[Document],
    *,
    task: str = "words",
    how: How = "greedy",
    draw: bool = False,
    batch_size: int = 64,
) -> list[Written]:
    """The words written for each gold entity, in the order of the documents; discontinuous ones are left out."""
    generation = generation_of(model)
    sentences = [sentence for sentence in model.segment(documents, gold=True) if sentence.entities]
    collate = Collate(model.learner.model.encoder.tokenize, model.labels, {})
    names = model.labels.names()
    lengths = [len(sentence.words) for sentence in sentences]
    numbered: list[tuple[int, Written]] = []
    for places in batches(lengths, batch_size, budget=model.recipe.train.budget):
        batch = collate([sentences[place] for place in places])
        inputs, gold = tensors(batch.inputs, model.device), tensors(batch.gold, model.device)
        states = model.learner.model(inputs, gold, spans=False, gold_vectors=True)
        units = narrowed(batch.inputs).words
        rows, columns = batch.gold.mask.nonzero()
        vectors = states.gold[torch.from_numpy(rows), torch.from_numpy(columns)]  # (N, S)
        texts = generation.write(vectors, task, how, draw=draw)
        for row, column, text in zip(rows.tolist(), columns.tolist(), texts, strict=True):
            sentence = sentences[places[row]]
            first = int(units[row, batch.gold.start[row, column]])
            past = int(units[row, batch.gold.end[row, column] - 1]) + 1
            label = names[batch.gold.label[row, column]] or ""
            surface = surface_of(sentence, Entity.at(label, first, past))
            words = sentence.words[first:past]
            words = tuple(word.lower() for word in words) if generation.lower_case else words
            numbered.append((places[row], Written(label, surface, words, tuple(text))))
    return [written for _, written in sorted(numbered, key=lambda pair: pair[0])]


def bleu2(pairs: Sequence[Written]) -> float:
    """BLEU-2 of the written words against the entities' own, from 0 to 1, without smoothing (Table 7)."""
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        raise ValueError("BLEU needs sacrebleu: pip install 'wingspan-ner[bleu]'") from None
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
    hits = total = 0
    for pair in pairs:
        names = lexicon.synonyms(pair.surface, pair.label)
        words = {word for name in names for word in as_words(name, lower_case=True)}
        total += len(words)
        hits += len(words & {word.lower() for word in pair.written})
    return hits / max(1, total)


def examples(columns: dict[str, Sequence[Written]], number: int = 10) -> list[dict[str, str]]:
    """Rows as in Table 8: each original once with the words of each model; where models differ first."""
    kept: dict[tuple[str, ...], dict[str, str]] = {}
    for row in zip(*columns.values(), strict=True):
        written = {name: join_words(pair.written) for name, pair in zip(columns, row, strict=True)}
        kept.setdefault(row[0].words, {"original": join_words(row[0].words), **written})
    return sorted(kept.values(), key=lambda row: len({row[name] for name in columns}) == 1)[:number]
