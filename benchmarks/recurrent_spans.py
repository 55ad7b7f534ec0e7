"""The BiLSTM inside every span against one call for each span: about 2,000 spans, alternating in one process.

python benchmarks/recurrent_spans.py --output benchmarks/results/recurrent_spans.jsonl

The loop is the paper's: a bidirectional LSTM on the words of one span, attention, the next span. Both get the same
words and weights; a line each for prediction (forward) and for training (forward and backward).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn

from measuring import take_turns, versions
from wingspan.candidates import Candidates, cells
from wingspan.encoders import Words
from wingspan.spans.recurrent import RecurrentSpans


def span_by_span(lstm: nn.LSTM, words: Tensor, candidates: Candidates) -> Tensor:
    """One span after the other.  -> (N, 2 H)"""
    rows = []
    for sentence, cell in candidates.mask.nonzero().tolist():
        inside = words[sentence, candidates.start[sentence, cell] : candidates.end[sentence, cell]]
        states, (final, _) = lstm(inside[None])
        states, final = states[0], final[:, 0].flatten()
        rows.append((states @ final).softmax(0) @ states)
    return torch.stack(rows)


def main() -> None:
    """Measures, prints, adds JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=11)
    parser.add_argument("--length", type=int, default=26)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--size", type=int, default=300)
    parser.add_argument("--hidden", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    torch.manual_seed(1)
    shape = (given.sentences, given.length)
    start, end = (part.expand(given.sentences, -1) for part in cells(given.length, given.width, torch.device("cpu")))
    grid = Candidates(start, end, end <= given.length, given.width)
    top = torch.randn(*shape, given.size)
    part = RecurrentSpans(SimpleNamespace(size=given.size), given.width, hidden_size=given.hidden)
    lstm = nn.LSTM(given.size, given.hidden // 2, bidirectional=True, batch_first=True)
    lstm.load_state_dict(
        dict(part.recurrent.forwards.state_dict())
        | {f"{name}_reverse": value for name, value in part.recurrent.backwards.state_dict().items()}
    )
    words = Words(top, (), top[:, 0], torch.ones(shape, dtype=torch.bool))
    loop = lambda: span_by_span(lstm, top, grid)  # noqa: E731
    spans = int(grid.mask.sum())
    for layout, candidates in {"grid": grid, "list": grid._replace(width=None)}.items():
        ours = lambda candidates=candidates: part(words, candidates)[grid.mask]  # noqa: E731
        difference = float((ours() - loop()).detach().abs().max())
        for what, around in {"forward": forward, "forward and backward": both}.items():
            row = take_turns(around(loop), around(ours), given.rounds)
            faster = round(row["floor_seconds"] / row["seconds"], 1)
            facts = {"layout": layout, "what": what, "spans": spans, "faster": faster, "difference": difference}
            print(f"{layout}, {what}: {spans} spans, x{faster}, difference {difference:.1e}, {row}", flush=True)
            if given.output is not None:
                facts |= {"threads": given.threads, "versions": versions(), "commit": given.commit}
                sizes = {name: getattr(given, name) for name in ("sentences", "length", "width", "size", "hidden")}
                with given.output.open("a") as out:
                    out.write(json.dumps({**facts, **sizes, **row}) + "\n")


def forward(work: Callable[[], Tensor]) -> Callable[[], None]:
    """Span vectors only."""

    def run() -> None:
        with torch.inference_mode():
            work()

    return run


def both(work: Callable[[], Tensor]) -> Callable[[], None]:
    """Span vectors and gradients of all weights."""
    return lambda: work().square().sum().backward()


if __name__ == "__main__":
    main()
