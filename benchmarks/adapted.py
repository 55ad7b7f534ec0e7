"""Continued pretraining: an encoder guesses hidden pieces of a corpus's own sentences before it learns from labels.

Only the train part is read, and of it no sentence that is also in dev or test. No label is looked at. The batches are
those of the supervised training, so that an epoch here has as many optimizer steps as one there.
See: Devlin et al. 2019 (the task), Gururangan et al. 2020 (on the text of the task at hand).

Legend: B sentences, T pieces, D vector size, N hidden pieces, V vocabulary.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.attention import sdpa_kernel

from training_runs import Job, Row, gold, train
from wingspan.batch import batches
from wingspan.corpora.segment import Segmenting, segment_all
from wingspan.encoders import loading
from wingspan.layers.autocast import ATTENTION
from wingspan.recipe import TrainSettings
from wingspan.recognizer.torch_engine import usable_device
from wingspan.text import Document
from wingspan.tokenizing.pieces import PieceTokenize
from wingspan.training.corpora import handle_leaks
from wingspan.training.loop import Update, build_optimizer, rate_factor, seed_draws, set_rates, step_seed
from wingspan.training.run import prepare

GUESSED = 0.15  # the share of pieces that are guessed
MASKED, REPLACED = 0.8, 0.1  # of these; the rest stays as it is, so that every vector must know its own piece
RATE = 1e-4
HEAD = 10.0  # the head is fresh and learns faster, as fresh parts do in the recipes


class Head(nn.Module):
    """BERT's head for hidden pieces, which compares vectors with the encoder's own embeddings."""

    def __init__(self, size: int, vocabulary: int) -> None:
        super().__init__()
        self.dense = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, vectors: Tensor, embeddings: Tensor) -> Tensor:
        """The scores of all pieces.  (N, D), (V, D) -> (N, V)"""
        return F.linear(self.norm(F.gelu(self.dense(vectors))), embeddings, self.bias)


class Guesser(nn.Module):
    """An encoder with the head."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        table = model.get_input_embeddings()
        self.model = model
        self.head = Head(table.embedding_dim, table.num_embeddings)

    def forward(self, shown: Tensor, real: Tensor, guessed: Tensor, answers: Tensor) -> Tensor:
        """The mean loss of the guesses, 0 without any.  (B, T), (B, T), (B, T), (N,) -> ()"""
        states = self.model(input_ids=shown, attention_mask=real.long()).last_hidden_state  # (B, T, D)
        scores = self.head(states[guessed], self.model.get_input_embeddings().weight)  # (N, V)
        return F.cross_entropy(scores, answers, reduction="sum") / max(1, len(answers))


def hide(pieces: Tensor, ordinary: Tensor, mask: int, vocabulary: int) -> tuple[Tensor, Tensor]:
    """The pieces as the encoder sees them, and which of them it guesses.  (B, T), (B, T) -> (B, T), (B, T)"""
    guessed = ordinary & (torch.rand(pieces.shape, device=pieces.device) < GUESSED)
    how = torch.rand(pieces.shape, device=pieces.device)
    shown = torch.where(guessed & (how < MASKED), mask, pieces)
    replaced = guessed & (how >= MASKED) & (how < MASKED + REPLACED)
    return torch.where(replaced, torch.randint_like(pieces, vocabulary), shown), guessed


def unseen(parts: Mapping[str, Sequence[Document]]) -> list[Document]:
    """The rows of train that are not in dev or test.

    Each row is compared as a document of its own: an article that differs as a whole can still share a sentence.
    """
    alone = {part: [replace(row, group=None) for row in rows] for part, rows in parts.items()}
    return list(handle_leaks(alone.pop("train"), alone, "drop").documents)


def adapt(
    encoder: str, parts: Mapping[str, Sequence[Document]], folder: Path, settings: TrainSettings, seed: int
) -> dict[str, Any]:
    """Writes the encoder, adapted to the sentences of train, into a folder. Returns the facts of its training.

    `encoder` is a short name or a folder; dev and test of the `parts` are there to be left out.
    """
    began = time.perf_counter()
    device = usable_device(None)
    torch.manual_seed(seed)
    model, tokenizer = loading.open_named(encoder, None, torch.float32, None)
    vocabulary = model.get_input_embeddings().num_embeddings
    tokenize = PieceTokenize(tokenizer, 512, "word", vocabulary)
    documents = unseen(parts)
    sentences = list(segment_all(documents, Segmenting(), tokenize.table))  # as the supervised training cuts them
    lengths = [len(sentence.words) for sentence in sentences]
    inside = [np.concatenate(tokenize.cut(sentence.words)) for sentence in sentences]
    plan = [
        (step_seed(seed, 0, epoch, step), batch)
        for epoch in range(settings.epochs)
        for step, batch in enumerate(
            batches(lengths, settings.batch_size, budget=settings.budget, seed=(seed, 0, epoch))
        )
    ]
    guesser = Guesser(model).to(device).train()
    optimizer = build_optimizer(guesser, settings)
    update = Update(guesser, optimizer, settings.clip)
    half = torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
    losses: list[Tensor] = []  # they stay on the device: a look at each would wait for it
    for at, (draws, batch) in enumerate(plan):
        seed_draws(draws, device)
        pieces, real, ordinary = (part.to(device) for part in padded([inside[i] for i in batch], tokenize))
        shown, guessed = hide(pieces, ordinary, tokenize.hidden, vocabulary)
        with half, sdpa_kernel(ATTENTION):
            loss = guesser(shown, real, guessed, pieces[guessed])
        update.backward(loss, 1.0)
        set_rates(optimizer, rate_factor(at, len(plan), settings))
        update.step()
        losses.append(loss.detach())
    write(model, loading.base_folder(encoder, None), folder)
    few = max(1, len(plan) // 20)  # a batch has a hundred guesses or two; one alone says little
    return {
        "epochs": settings.epochs,
        "steps": len(plan),
        "learning_rate": settings.learning_rate,
        "sentences": len(sentences),
        "dropped": len(parts["train"]) - len(documents),
        "first_loss": round(float(torch.stack(losses[:few]).mean()), 3),
        "last_loss": round(float(torch.stack(losses[-few:]).mean()), 3),
        "seconds": round(time.perf_counter() - began, 1),
    }


def padded(rows: Sequence[Any], tokenize: PieceTokenize) -> tuple[Tensor, Tensor, Tensor]:
    """Sentences between the tokenizer's own tokens: pieces, which are no padding, which can be guessed.  (B, T)"""
    front, behind = len(tokenize.front), len(tokenize.behind)
    lengths = torch.tensor([front + len(row) + behind for row in rows]).unsqueeze(1)  # (B, 1)
    pieces = torch.full((len(rows), int(lengths.max())), tokenize.padding)
    for at, row in enumerate(rows):
        pieces[at, : lengths[at]] = torch.tensor([*tokenize.front, *row.tolist(), *tokenize.behind])
    place = torch.arange(pieces.shape[1])
    return pieces, place < lengths, (place >= front) & (place < lengths - behind)


def write(model: Any, base: Path, folder: Path) -> None:
    """The weights in float32, beside the base's configuration and tokenizer as they are."""
    weights = {name: weight.detach().cpu().contiguous() for name, weight in model.state_dict().items()}
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    kept = {file for pattern in ("config.json", *loading.TOKENIZER_FILES) for file in base.glob(pattern)}
    for file in sorted(kept):
        copyfile(file, folder / file.name)


def train_adapted(job: Job, recipe: Any, epochs: int) -> Row:
    """A training on an encoder that was adapted to the corpus for so many epochs, from the same seed."""
    torch.set_num_threads(1)
    torch.set_float32_matmul_precision("high")
    own = prepare(recipe, job["encoder"], job["settings"]).train
    settings = TrainSettings(
        epochs=epochs, batch_size=own.batch_size, budget=own.budget, learning_rate=RATE, factors={"head": HEAD}
    )
    corpus = Path(job["data"]) / job["corpus"]
    parts = {part: gold(corpus, part, limit=job["limit"]) for part in ("train", "dev", "test")}
    with TemporaryDirectory() as folder:
        facts = adapt(job["encoder"], parts, Path(folder), settings, job["seed"])
        row, _, _ = train({**job, "encoder": folder}, recipe=recipe)
    return {**row, "encoder": job["encoder"], "adapted": facts}
