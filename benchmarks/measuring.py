"""Tools for benchmarks: alternating rounds, the floor, peak memory, a model that predicts as much as a trained one.

Ours is imported where it is needed, so that the environments of other libraries can use the rest.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from wingspan.recognizer import Recognizer
    from wingspan.text import Document

Texts = Sequence[str] | Sequence[list[str]]  # raw, or words
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def memory(kind: str = "VmHWM") -> float:
    """The process' memory in MB: `VmRSS` now, `VmHWM` the most since the last `forget_peak`."""
    if STATUS.exists():
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith(kind))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on a Mac, and the most since the start


def forget_peak() -> None:
    """Starts the search for the highest memory anew, where the system can."""
    if CLEAR.exists():
        CLEAR.write_text("5")
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()


@dataclass
class Timing:
    """Rounds of one thing: seconds on the clock, seconds of all its threads, and the highest memory of its device."""

    on_gpu: bool
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    peak_mb: float = 0.0

    def run(self, work: Callable[[], Any]) -> None:
        """One round more."""
        gc.collect()  # so that nobody pays for what the one before has left
        forget_peak()
        if self.on_gpu:
            torch.cuda.synchronize()
        began, spent = time.perf_counter(), time.process_time()
        work()
        if self.on_gpu:
            torch.cuda.synchronize()
        self.wall.append(time.perf_counter() - began)
        self.cpu.append(time.process_time() - spent)
        self.peak_mb = max(self.peak_mb, torch.cuda.max_memory_allocated() / 2**20 if self.on_gpu else memory())


def take_turns(
    floor: Callable[[], Any], ours: Callable[[], Any], rounds: int, *, warm_up: int = 1, on_gpu: bool = False
) -> dict[str, Any]:
    """Alternates floor and ours, so that a busy machine is unfair to neither; the ratio is that of the medians.

    `ratio_cpu` compares the processor time of all threads, which other processes disturb less; `spread` is the least
    and the greatest ratio of a floor and the round right after it.
    """
    for _ in range(warm_up):
        floor()
        ours()
    one, other = Timing(on_gpu), Timing(on_gpu)
    for _ in range(rounds):
        one.run(floor)
        other.run(ours)
    turns = [b / a for a, b in zip(one.wall, other.wall, strict=True)]
    return {
        "ratio": round(median(other.wall) / median(one.wall), 3),
        "ratio_cpu": round(median(other.cpu) / median(one.cpu), 3),
        "spread": [round(min(turns), 3), round(max(turns), 3)],
        "rounds": rounds,
        "seconds": round(median(other.wall), 4),
        "floor_seconds": round(median(one.wall), 4),
        "cpu_seconds": round(median(other.cpu), 4),
        "floor_cpu_seconds": round(median(one.cpu), 4),
        "peak_mb": round(other.peak_mb, 1),
        "floor_peak_mb": round(one.peak_mb, 1),
    }


class Bare:
    """The floor: what anyone would run who wants the encoder's vectors of these texts."""

    def __init__(self, folder: str, device: str, dtype: torch.dtype) -> None:
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging as transformers_logging

        self.device = device
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModel.from_pretrained(folder, add_pooling_layer=False)
        self.model = model.eval().to(device, dtype)

    def ordered(self, texts: Texts) -> Texts:
        """The longest first, in tokens, so that there is as little padding as can be."""
        tokens = [len(ids) for ids in self.tokens(texts)["input_ids"]]
        return [texts[at] for at in sorted(range(len(texts)), key=lambda at: -tokens[at])]

    def tokens(self, texts: Texts, **options: Any) -> Any:
        """What the tokenizer makes of the texts."""
        words = not isinstance(texts[0], str)
        return self.tokenizer(texts, is_split_into_words=words, truncation=True, max_length=512, **options)

    @torch.inference_mode()
    def __call__(self, ordered: Texts, batch_size: int) -> None:
        """Texts to vectors."""
        for at in range(0, len(ordered), batch_size):
            inputs = self.tokens(ordered[at : at + batch_size], padding=True, return_tensors="pt")
            self.model(**inputs.to(self.device))


def untrained(
    recipe: str, encoder: str, documents: Sequence[Document], width: int, device: str, found: float = 2.0
) -> Recognizer:
    """A model with random weights behind the encoder that finds about `found` entities in a sentence, as if trained.

    An untrained model would find hundreds, and decoding them would be what is measured: "nothing" gets a bonus.
    """
    from wingspan.recognizer import Recognizer
    from wingspan.training.fit import fit
    from wingspan.training.run import prepare

    settings = {"max_width": width, "overlap": "nested"}
    fitted = fit(prepare(recipe, encoder, settings), documents, seed=1)
    layer, classes, sign = last_layer(fitted.learner, fitted.recipe.reader)
    fitted.learner.eval()
    model = Recognizer(fitted.recipe, fitted.labels, fitted.learner, device=device)
    sample = [document.text for document in documents[:200]]
    low, high, start = -8.0, 8.0, layer.bias.detach().clone()
    for _ in range(12):
        bonus = (low + high) / 2
        with torch.no_grad():
            layer.bias[classes] = start[classes] + sign * bonus
        if sum(len(document.entities) for document in model.predict(sample)) > found * len(sample):
            low = bonus
        else:
            high = bonus
    return model


def last_layer(learner: Any, read_with: str) -> tuple[Any, slice, int]:
    """Where scores come from, which of them to move, and up or down, so that less is found."""
    objective = learner.objectives[read_with]
    if read_with == "tags":
        return objective.score, slice(None, None, objective.tags), 1
    head = learner.model.scorer.head
    layer = getattr(head, "classify", None) or head.layers[-1]
    return (layer, slice(1, None), -1) if objective.link == "sigmoid" else (layer, slice(0, 1), 1)


def versions() -> dict[str, str]:
    """Versions that a result depends on besides the code."""
    import platform

    import tokenizers
    import transformers

    processor = next((x.split(":")[1].strip() for x in read_lines("/proc/cpuinfo") if x.startswith("model name")), "")
    return {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
        "python": platform.python_version(),
        "processor": f"{processor} ({os.cpu_count()} cores)",
    }


def read_lines(path: str) -> list[str]:
    """A file's lines; none where it does not exist."""
    return Path(path).read_text().splitlines() if Path(path).exists() else []
