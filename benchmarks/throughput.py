"""The cost of prediction over tokenizing and the bare encoder; and one long document in bounded memory, linear time.

    python benchmarks/throughput.py --data $WINGSPAN_DATA --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --output benchmarks/results/throughput.jsonl --commit $(git rev-parse --short HEAD)

On the CPU: texts to entities (`Recognizer.predict`, its cache of words emptied before each round) against the fast
tokenizer plus the bare encoder's forward pass over the same words in the same length-sorted batches. On a GPU: tensors
to scores against the bare forward pass over the same tensors, with the end-to-end ratio beside it. One JSON line a row.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait leave the processor to others
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging as transformers_logging

from measuring import forget_peak, memory, take_turns, untrained, versions
from wingspan.batch import batches, shape_of
from wingspan.corpora.formats import read
from wingspan.model import tensors
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Entity, Sentence

SYSTEMS = (("bundling/bl-span", 8), ("bundling/bl-span", 16), ("bundling/bl-seq", 8))
Row = dict[str, Any]


def documents_of(folder: Path, count: int) -> list[Document]:
    """The first sentences of a corpus' test and dev part, as raw texts with their gold labels."""
    found: list[Document] = []
    for part in ("test", "dev"):
        path = next(path for path in (folder / f"{part}.jsonl", folder / f"{part}.jsonl.gz") if path.exists())
        found += [Document(d.id, d.text, d.entities) for d in read(path)]
    return found[:count]


def groups_of(model: Recognizer, texts: list[str], batch_size: int) -> list[list[Sentence]]:
    """The batches that prediction makes of the texts."""
    sentences = [s for number, text in enumerate(texts) for s in model.segment(Document(str(number), text))]
    measure = model.learner.model.encoder.tokenize.measure
    lengths = [sum(measure(sentence.words)) for sentence in sentences]
    cut = batches(lengths, batch_size, budget=model.recipe.train.budget)
    return [[sentences[at] for at in batch] for batch in cut]


class Bare:
    """The floor: what anyone would run who wants the encoder's vectors of these words."""

    def __init__(self, folder: str, device: str) -> None:
        self.device = device
        transformers_logging.set_verbosity_error()
        transformers_logging.disable_progress_bar()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        model = AutoModel.from_pretrained(folder, dtype=torch.float32, add_pooling_layer=False)
        self.model = model.eval().to(device)

    @torch.inference_mode()
    def texts(self, groups: list[list[list[str]]]) -> None:
        """Words to vectors."""
        for words in groups:
            inputs = self.tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
            self.model(**inputs.to(self.device))

    @torch.inference_mode()
    def tensors(self, groups: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        """Tensors to vectors."""
        for tokens, mask in groups:
            self.model(input_ids=tokens, attention_mask=mask)


def predicting(model: Recognizer, texts: list[str], batch_size: int) -> Callable[[], list[Document]]:
    """End to end, as if these words had never been seen."""

    def work() -> list[Document]:
        model.collate.tokenize.cache.clear()
        shape_of.cache_clear()
        return model.predict(texts, batch_size=batch_size)

    return work


def end_to_end(given: argparse.Namespace, corpus: str, device: str) -> Iterator[Row]:
    """Texts to entities against the floor, for each system."""
    documents = documents_of(given.data / corpus, given.sentences)
    texts = [document.text for document in documents]
    bare = Bare(given.encoder_folder, device)
    for recipe, width in SYSTEMS:
        model = untrained(recipe, given.encoder_folder, documents, width, device)
        groups = groups_of(model, texts, given.batch_size)
        words = [[list(sentence.words) for sentence in group] for group in groups]
        ours = predicting(model, texts, given.batch_size)
        row = take_turns(lambda words=words: bare.texts(words), ours, given.rounds)
        found = sum(len(document.entities) for document in ours())
        name = f"{corpus}: {len(texts)} sentences, {recipe}, width {width}, batch {given.batch_size}"
        yield {"name": name, "device": device, **row, "words": sum(len(s) for g in words for s in g), "found": found}


def on_gpu(given: argparse.Namespace, corpus: str) -> Iterator[Row]:
    """Tensors to scores against the bare forward pass, for each system, batch size and precision."""
    documents = documents_of(given.data / corpus, given.sentences)
    texts = [document.text for document in documents]
    bare = Bare(given.encoder_folder, "cuda")
    torch.set_float32_matmul_precision("high")  # tf32, for both sides
    for recipe, width in SYSTEMS:
        model = untrained(recipe, given.encoder_folder, documents, width, "cuda")
        reader: Any = model.learner.objectives[model.recipe.read_with]
        for batch_size in (32, 128):
            groups = groups_of(model, texts, batch_size)
            words = [[list(sentence.words) for sentence in group] for group in groups]
            inputs = [tensors(model.collate.inputs(group), "cuda") for group in groups]
            plain = [(one.tokens, one.token_mask.long()) for one in inputs]

            @torch.inference_mode()
            def ours(inputs: Any = inputs, model: Recognizer = model, spans: bool = reader.reads_spans) -> None:
                for one in inputs:
                    model.learner.model(one, spans=spans)

            for precision in ("tf32", "bf16"):
                with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bf16"):
                    row = take_turns(
                        lambda plain=plain: bare.tensors(plain), ours, 5 * given.rounds, warm_up=3, on_gpu=True
                    )
                    whole = predicting(model, texts, batch_size)
                    ends = take_turns(lambda words=words: bare.texts(words), whole, 3, on_gpu=True)
                name = f"{corpus}: tensors to scores, {recipe}, width {width}, batch {batch_size}, {precision}"
                device = torch.cuda.get_device_name()
                yield {"name": name, "device": device, **row, **{f"end_to_end_{k}": v for k, v in ends.items()}}


def long_documents(given: argparse.Namespace, encoder: str, sizes: tuple[float, ...]) -> Iterator[Row]:
    """One document of so many MB: a text of some 20 KB again and again, so that the right answer is known."""
    documents = documents_of(given.data / given.corpora.split(",")[0], given.sentences)
    model = untrained("bundling/bl-span", encoder, documents, 8, "cpu")
    piece = piece_of(documents)
    expected = Counter(places(model.predict(piece)[0].entities))
    for megabytes in sizes:
        copies = round(megabytes * 1e6 / len(piece))
        text = piece * copies
        forget_peak()
        before, began, spent = memory("VmRSS"), time.perf_counter(), time.process_time()
        (document,) = model.predict(text)
        seconds, cpu = time.perf_counter() - began, time.process_time() - spent
        peak = memory()
        found: list[Counter[Any]] = [Counter() for _ in range(copies)]
        for label, start, end in places(document.entities):
            found[start // len(piece)][label, start % len(piece), end - start // len(piece) * len(piece)] += 1
        yield {
            "name": f"one document of {len(text) / 1e6:.1f} MB, {Path(encoder).name}",
            "device": "cpu",
            "ratio": None,
            "seconds": round(seconds, 3),
            "cpu_seconds": round(cpu, 3),
            "floor_seconds": None,
            "peak_mb": round(peak, 1),
            "grown_mb": round(peak - before, 1),
            "windows": sum(1 for _ in model.segment(Document("0", text))),
            "found": len(document.entities),
            "lost": sum((expected - copy).total() for copy in found),
            "doubled_or_new": sum((copy - expected).total() for copy in found),
        }


def piece_of(documents: list[Document], characters: int = 20_000) -> str:
    """Paragraphs of real sentences; every fourth without any stop, far longer than a window."""
    texts = cycle(document.text for document in documents)
    paragraphs: list[str] = []
    while sum(map(len, paragraphs)) < characters:
        endless = len(paragraphs) % 4 == 3
        text = " ".join(islice(texts, 24 if endless else 6))
        paragraphs.append(text.translate({ord(stop): "," for stop in ".!?"}) if endless else text)
    return "\n\n".join(paragraphs) + "\n\n"


def places(entities: tuple[Entity, ...]) -> list[tuple[str, int, int]]:
    """Entities without their scores."""
    return [(entity.label, entity.start, entity.end) for entity in entities]


def rows(given: argparse.Namespace) -> Iterator[Row]:
    """Everything that was asked for."""
    corpora = given.corpora.split(",")
    if torch.cuda.is_available():
        yield from on_gpu(given, corpora[0])
    if given.gpu_only:
        return
    for corpus in corpora:
        yield from end_to_end(given, corpus, "cpu")
    yield from long_documents(given, "hashed", (0.5, 1.0, 2.0))
    yield from long_documents(given, given.encoder_folder, (0.1, 0.2, 0.4))


def main() -> None:
    """Runs, writes one JSON line per row, prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("WINGSPAN_DATA"))
    folder = Path(os.environ.get("WINGSPAN_ENCODERS", ".")) / "all-MiniLM-L6-v2"
    parser.add_argument("--encoder-folder", default=str(folder))
    parser.add_argument("--corpora", default="genia,ncbi-disease", help="folders under --data, comma separated")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--gpu-only", action="store_true", help="only what needs a GPU")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, help="JSON lines are added to this file")
    given = parser.parse_args()
    if given.data is None or not Path(given.encoder_folder).is_dir():
        parser.error("give --data and --encoder-folder, or set WINGSPAN_DATA and WINGSPAN_ENCODERS")
    if given.gpu_only and not torch.cuda.is_available():
        parser.error("--gpu-only: there is no GPU here")
    torch.set_num_threads(given.threads)
    facts = {"threads": given.threads, "versions": versions(), "commit": given.commit}
    for row in rows(given):
        if given.output is not None:
            with given.output.open("a") as out:
                out.write(json.dumps({**row, **facts}) + "\n")
        print(line(row), flush=True)


def line(row: Row) -> str:
    """A row for people."""
    parts = [f"{row['name']:75} {row['seconds']:8.3f} s {row['peak_mb']:7.0f} MB"]
    if row["ratio"] is not None:
        parts.append(f"x{row['ratio']:.2f} (cpu x{row['ratio_cpu']:.2f}, {row['spread'][0]} to {row['spread'][1]})")
    if "end_to_end_ratio" in row:
        parts.append(f"end to end x{row['end_to_end_ratio']:.2f}")
    if "lost" in row:
        parts.append(f"grown {row['grown_mb']:.0f} MB, lost {row['lost']}, doubled or new {row['doubled_or_new']}")
    return "; ".join(parts)


if __name__ == "__main__":
    main()
