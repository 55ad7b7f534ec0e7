"""The cost of deep spans: time and memory of a training step and of prediction, compared to the bare encoder.

Random weights and random tokens, in one process, so that only the computation is measured. One JSON line for each row.

    python benchmarks/deep_span.py --output benchmarks/results/deep_span.jsonl            # one GPU, bf16
    python benchmarks/deep_span.py --predict --cpu --threads 2 --output FILE              # prediction on two threads
    python benchmarks/deep_span.py --scaling --output FILE                                # lengths 16 to 512
    python benchmarks/deep_span.py --cpu --tiny --repeats 2                               # rehearsal, some seconds
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertModel

from wingspan.batch import Gold, Inputs, units_of
from wingspan.candidates import Candidates
from wingspan.candidates.proposed import BUCKETS, Proposed
from wingspan.encoders import Encoder, Words
from wingspan.labels import LabelSet
from wingspan.layers.autocast import working_type
from wingspan.layers.bert_blocks import attention_bias, call_fused
from wingspan.model import tensors
from wingspan.recipe import Recipe, assemble
from wingspan.recipe_json import override
from wingspan.recipes import find
from wingspan.spans.deep import DeepSpans
from wingspan.text import Sentence, Span

LABELS = LabelSet({"main": ("DNA", "RNA", "cell_line", "cell_type", "protein")})
BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
SMALL = dict(hidden_size=384, num_hidden_layers=12, num_attention_heads=12, intermediate_size=1536)
TINY = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
FRONT = 1  # [CLS]; one [SEP] behind


class RandomEncoder(Encoder):
    """A BERT with random weights whose units are its tokens; `bare` as anyone would call it."""

    def __init__(self, sizes: dict[str, int], longest: int, bare: bool = False) -> None:
        super().__init__()
        self.bare = bare
        config = BertConfig(vocab_size=1000, max_position_embeddings=longest + 2, **sizes)
        self.model: Any = BertModel(config, add_pooling_layer=False)
        self.size = config.hidden_size

    @property
    def blocks(self) -> nn.ModuleList:
        """The blocks of BERT."""
        found: nn.ModuleList = self.model.encoder.layer
        return found

    def forward(self, inputs: Inputs) -> Words:
        """Units are the tokens between the special ones."""
        mask = inputs.token_mask.long()
        if mask.is_cuda and not self.bare:  # as encoders/pretrained.py does
            mask = attention_bias(inputs.token_mask.unsqueeze(1), working_type(mask.device, torch.float32))
        called = self.model if self.bare else partial(call_fused, self.model, list(self.blocks))
        out = called(input_ids=inputs.tokens, attention_mask=mask, output_hidden_states=self.keep_layers > 0)
        kept = out.hidden_states[-self.keep_layers :] if self.keep_layers else ()
        layers = tuple(states[:, FRONT:-1] for states in kept)
        return Words(out.last_hidden_state[:, FRONT:-1], layers, out.last_hidden_state[:, 0], inputs.unit_mask)

    @classmethod
    def rebuild(cls, folder: Path, **settings: Any) -> Self:
        """Never saved."""
        raise NotImplementedError


class LoopedSpans(DeepSpans):
    """The same tower width by width, windows unfolded at every layer, keys and values projected for each window."""

    def _packed(self, words: Words, width: int) -> Tensor:
        batch, length, size = words.top.shape
        out = words.top.new_zeros(batch, length, width, size)
        out[:, :, 0] = words.top
        blocks: list[Any] = list(self.blocks)
        below = words.layers[-len(blocks) - 1 : -1]
        for k in range(2, width + 1):
            spans = self.dropout(below[0].unfold(1, k, 1)).amax(-1)
            for block, states in zip(blocks, below, strict=True):
                attention = block.attention.self
                heads = attention.num_attention_heads
                inside = states.unfold(1, k, 1).transpose(2, 3)  # (B, N, k, D)
                query = attention.query(spans).unflatten(-1, (heads, -1)).unsqueeze(-2)
                key = attention.key(inside).unflatten(-1, (heads, -1)).transpose(2, 3)
                value = attention.value(inside).unflatten(-1, (heads, -1)).transpose(2, 3)
                weights = attention.dropout((query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).softmax(-1))
                spans = block.attention.output((weights @ value).squeeze(-2).flatten(-2), spans)
                spans = block.output(block.intermediate(spans), spans)
            out[:, : length - k + 1, k - 1] = spans.to(out.dtype)
        return out.flatten(1, 2)

    _blocked = _packed

    def _listed(self, words: Words, candidates: Candidates) -> Tensor:
        raise NotImplementedError("the loop is about the grid")


def looped() -> Recipe:
    """`deep_span/no-bilstm` with the loop over widths."""
    recipe = find("deep_span/no-bilstm")
    return replace(recipe, name="loop over widths", spans=partial(LoopedSpans, width_size=25))


def data(sentences: int, length: int, device: torch.device) -> tuple[Inputs, Gold]:
    """Random tokens, and one gold span for every eight of them."""
    draw = np.random.default_rng(0)
    whole = Span(0, length)
    rows = [Sentence(("w",) * length, (), whole, whole, ())] * sentences
    units = units_of(rows, np.zeros(sentences * length, dtype=np.int64), np.full(sentences, length))
    full = np.ones((sentences, length + 2), dtype=bool)
    owner = np.broadcast_to(np.concatenate([[length], np.arange(length), [length]]), full.shape).copy()
    tokens = draw.integers(5, 1000, full.shape)
    start = np.sort(draw.integers(0, length, (sentences, max(length // 8, 1))), 1)
    end = np.minimum(start + draw.integers(1, 6, start.shape), length)
    gold = Gold(start, end, draw.integers(1, LABELS.num_classes, start.shape), np.ones_like(start, dtype=bool))
    inputs: Inputs = tensors(Inputs(tokens=tokens, token_mask=full, unit_of_token=owner, **units), device)
    return inputs, tensors(gold, device)


def clocked(step: Callable[[], None], device: torch.device) -> float:
    """Milliseconds of one step, until the device is done."""
    begun = time.perf_counter()
    step()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return 1000 * (time.perf_counter() - begun)


class Bench:
    """One size of encoder on one device; every row takes turns with the bare encoder's own step."""

    def __init__(self, options: argparse.Namespace, sentences: int, length: int) -> None:
        self.options = options
        self.device = torch.device("cpu" if options.cpu else "cuda")
        self.sizes = TINY if options.tiny else SMALL if options.small else BASE
        self.length = length
        self.inputs, self.gold = data(sentences, length, self.device)
        self.shape = {"sentences": sentences, "length": length}
        torch.manual_seed(0)
        with self.device:  # weights are drawn where they are used: on a CPU that takes longer than the measurement
            encoder = RandomEncoder(self.sizes, length, bare=True).to(self.device)
        self.beside = sum(part.numel() * part.element_size() for part in encoder.parameters())
        self.bare = self.step_of(encoder, lambda: encoder(self.inputs).top.float().square().mean())

    def step_of(self, module: nn.Module, loss: Callable[[], Tensor]) -> Callable[[], None]:
        """A training step without the optimizer, or a prediction."""
        module.train(not self.options.predict)
        half = torch.autocast(self.device.type, torch.bfloat16) if not self.options.cpu else nullcontext()

        def step() -> None:
            with half, torch.inference_mode() if self.options.predict else nullcontext():
                cost = loss()
            if not self.options.predict:
                cost.backward()
                module.zero_grad(set_to_none=True)

        return step

    def measure(self, step: Callable[[], None]) -> dict[str, Any]:
        """Medians of both, and the most memory of this one, its own weights included and the bare encoder's not."""
        cuda = self.device.type == "cuda"
        gc.collect()  # what earlier rows left behind is not this row's memory
        if cuda:
            torch.cuda.reset_peak_memory_stats()
        for _ in range(3 if cuda else 1):
            clocked(step, self.device)
        peak = round((torch.cuda.max_memory_allocated() - self.beside) / 2**20, 1) if cuda else None
        clocked(self.bare, self.device)
        turns = [(clocked(self.bare, self.device), clocked(step, self.device)) for _ in range(self.options.repeats)]
        bare, ours = (statistics.median(times) for times in zip(*turns, strict=True))
        return {
            "ms": round(ours, 3),
            "bare_ms": round(bare, 3),
            "span_ms": round(ours - bare, 3),
            "ratio": round(ours / bare, 3),
            "spread": [round(pick(b / a for a, b in turns), 3) for pick in (min, max)],
            "peak_mib": peak,
        }

    def alone(self) -> dict[str, Any]:
        """The bare encoder against itself: what the ratios of this process are worth."""
        found = self.measure(self.bare)
        if found["peak_mib"] is not None:
            found["peak_mib"] = round(found["peak_mib"] + self.beside / 2**20, 1)
        return self.described("bare encoder", found)

    def own(self) -> dict[str, Any]:
        """The encoder alone as recipes call it: one mask, weights cast together, query, key and value one product."""
        torch.manual_seed(0)
        with self.device:
            encoder = RandomEncoder(self.sizes, self.length).to(self.device)
        step = self.step_of(encoder, lambda: encoder(self.inputs).top.float().square().mean())
        return self.described("encoder alone, as recipes call it", self.measure(step))

    def row(self, recipe: Recipe, width: int) -> dict[str, Any]:
        """One recipe at one width."""
        recipe = replace(recipe, max_width=min(width, self.length), overlap="nested")
        torch.manual_seed(0)
        with self.device:
            learner = assemble(recipe, LABELS, RandomEncoder(self.sizes, self.length)).to(self.device)
        scorer: Any = learner.model.scorer
        if isinstance(scorer.candidates, Proposed):  # short spans first, as after training: half are single words
            scorer.candidates.widths.weight.data[:, 0] = -0.5 * torch.arange(BUCKETS)
        terms, targets = tuple(recipe.terms), dict.fromkeys(recipe.terms)
        if self.options.predict:

            def loss() -> Tensor:
                states = learner.model(self.inputs)
                learner.objectives["spans"].decode(states)
                scores: Tensor = states.scores
                return scores
        else:

            def loss() -> Tensor:
                found: Tensor = learner(self.inputs, self.gold, targets, terms)["loss"]
                return found

        found = self.measure(self.step_of(learner, loss))
        parameters = sum(part.numel() for part in learner.parameters())
        return self.described(recipe.name, found, width=width, scope=recipe.scope, parameters=parameters)

    def described(self, name: str, found: dict[str, Any], **others: Any) -> dict[str, Any]:
        """A row with everything that is needed to read it alone."""
        return {"row": name, **self.shape, **others, **found}


def rows(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The rows of issue 3 whose names have one of the chosen words in them."""
    bench = Bench(options, options.sentences, options.length)
    yield bench.alone()
    yield bench.own()
    for recipe, width in plan(options):
        if any(word in recipe.name for word in options.only.split(",")):
            yield bench.row(recipe, width)


def plan(options: argparse.Namespace) -> Iterator[tuple[Recipe, int]]:
    """Every representation at the widths of the paper, the loop beside them; what is slow to measure comes last."""
    shallow, depth = ("deep_span/shallow-max-no-bilstm", "deep_span/biaffine"), options.depth
    for width in options.widths:
        for name in (*shallow, "deep_span/no-bilstm", "deep_span"):
            yield find(name), width
        yield changed("deep_span/no-bilstm", "depth", depth, f"deep_span/depth-{depth}-no-bilstm"), width
        if not options.predict:
            yield changed("deep_span/no-bilstm", "checkpointing", True, "deep_span/no-bilstm, recomputed"), width
    for budget in options.budgets:
        for name in ("deep_span/shallow-max-proposals", "deep_span/proposals"):
            yield override(find(name), "candidates.budget", str(budget)), max(options.widths)
    if not options.predict and not options.cpu:  # the translation takes up to a minute
        proposing = changed("deep_span/proposals", "compiled", True, "deep_span/proposals, compiled")
        for budget in options.budgets:
            yield override(proposing, "candidates.budget", str(budget)), max(options.widths)
        for width in options.widths:
            yield changed("deep_span/no-bilstm", "compiled", True, "deep_span/no-bilstm, compiled"), width
    if not options.predict:
        yield looped(), max(options.widths)


def changed(name: str, setting: str, value: object, shown: str) -> Recipe:
    """A recipe with one setting of its spans changed, under a name that says so."""
    return replace(override(find(name), f"spans.{setting}", str(value).lower()), name=shown)


def scaling(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Time and memory against length and width, exhaustive and with proposals."""
    for length in options.lengths:
        bench = Bench(options, options.sentences, length)
        yield bench.alone()
        for width in options.widths:
            if width <= length:
                yield bench.row(find("deep_span/no-bilstm"), width)
        for budget in options.budgets:
            proposing = override(find("deep_span/proposals"), "candidates.budget", str(budget))
            yield bench.row(proposing, max(options.widths))


def options() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cpu", action="store_true", help="float32 on the CPU instead of bf16 on a GPU")
    parser.add_argument("--tiny", action="store_true", help="a tiny encoder and few tokens: a rehearsal")
    parser.add_argument("--small", action="store_true", help="12 layers of 384, as e5-small has")
    parser.add_argument("--predict", action="store_true", help="prediction instead of a training step")
    parser.add_argument("--scaling", action="store_true", help="over lengths and widths")
    parser.add_argument("--only", default="", help="words, one of which must be in a row's name, by commas")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--length", type=int)
    parser.add_argument("--lengths", type=int, nargs="+")
    parser.add_argument("--widths", type=int, nargs="+")
    parser.add_argument("--budgets", type=float, nargs="+", default=[1.0, 2.0])
    parser.add_argument("--depth", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, help="JSON lines are added to this file; without it they are printed")
    chosen = parser.parse_args()
    tiny, wide = chosen.tiny, chosen.scaling
    chosen.sentences = chosen.sentences or (3 if tiny else 4 if wide else 48)
    chosen.length = chosen.length or (12 if tiny else 40)
    chosen.lengths = chosen.lengths or ([8, 140] if tiny else [16, 32, 64, 128, 256, 512])
    chosen.widths = chosen.widths or ([4, 6] if tiny else [5, 10, 25, 64] if wide else [10, 18, 25])
    chosen.depth = min(chosen.depth, 1) if tiny else chosen.depth
    return chosen


def main() -> None:
    """Runs the rows that were asked for."""
    chosen = options()
    torch.set_num_threads(chosen.threads)
    device = "cpu" if chosen.cpu else torch.cuda.get_device_name()
    about = {
        "mode": "predict" if chosen.predict else "train",
        "encoder": "tiny" if chosen.tiny else "small" if chosen.small else "base",
        "device": device if not chosen.cpu else f"cpu, {chosen.threads} threads",
        "precision": "float32" if chosen.cpu else "bf16",
        "torch": torch.__version__,
        "commit": chosen.commit,
    }
    for row in scaling(chosen) if chosen.scaling else rows(chosen):
        line = json.dumps({**row, **about})
        print(f"{row['row']:<40} W={row.get('width', '-')!s:<3} {row['ms']:>9.2f} ms  x{row['ratio']:.2f}", flush=True)
        if chosen.output:
            with chosen.output.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        else:
            print(line, flush=True)


if __name__ == "__main__":
    main()
