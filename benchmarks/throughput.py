"""The cost of prediction over tokenizing and the bare encoder, by stage; and one long document in bounded memory.

    python benchmarks/throughput.py --data $WINGSPAN_DATA --encoder-folder $WINGSPAN_ENCODERS/all-MiniLM-L6-v2 \
        --output benchmarks/results/throughput.jsonl --commit $(git rev-parse --short HEAD)

Texts, or texts that are already words, to entities (`Recognizer.predict`, as if it had never seen a word of them)
against the fast tokenizer plus the bare encoder's forward pass in the same number type, in batches that are sorted by
length. Each stage is also measured alone, the device waited for: what overlaps in a prediction is added up there. One
JSON line a row.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice, product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # threads that wait leave the processor to others
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch

from measuring import Bare, Texts, Timing, forget_peak, memory, take_turns, untrained, versions
from wingspan.corpora.formats import read
from wingspan.corpora.segment import segment_rows
from wingspan.recognizer import Pooled, Recognizer
from wingspan.recognizer.documents import PartialDocument, as_document, finished
from wingspan.text import Document, Entity

ON_CPU_SYSTEMS = (("bundling/bl-span", 8), ("bundling/bl-span", 16), ("bundling/bl-seq", 8))
ON_GPU_SYSTEMS = (("bundling/bl-span", 8), ("bundling/bl-seq", 8), ("deep_span/proposals", 8), ("discontinuous", 8))
FLOOR_BATCH = {"cpu": 32, "cuda": 128}
Row = dict[str, Any]


def documents_of(folder: Path, count: int) -> list[Document]:
    """The first sentences of a corpus' test, dev and training part, as raw texts with their gold labels."""
    found: list[Document] = []
    for part in ("test", "dev", "train"):
        if len(found) < count:
            path = next(path for path in (folder / f"{part}.jsonl", folder / f"{part}.jsonl.gz") if path.exists())
            found += [Document(d.id, d.text, d.entities) for d in read(path)]
    return found[:count]


def predicting(model: Recognizer, texts: Texts, batch_size: int | None = None) -> Callable[[], list[Document]]:
    """End to end, as if these words had never been seen."""
    words = not isinstance(texts[0], str)

    def work() -> list[Document]:
        model.learner.model.encoder.tokenize.forget()
        return model.predict(texts, batch_size=batch_size, is_split_into_words=words)

    return work


def replaced(kept: list[Document], work: Callable[[], list[Document]]) -> None:
    """Puts what the work finds in the place of what was kept."""
    kept[:] = work()


def stages(model: Recognizer, texts: Texts) -> dict[str, float]:
    """Seconds of each stage by itself."""
    seconds: dict[str, float] = {}

    def clocked(name: str, work: Callable[[], Any]) -> Any:
        timing, results = Timing(model.device.type == "cuda"), []
        timing.run(lambda: results.append(work()))
        seconds[name] = timing.wall[0]
        return results[0]

    tokenize, split = model.learner.model.encoder.tokenize, not isinstance(texts[0], str)
    documents = clocked("read", lambda: [as_document(text, number, split) for number, text in enumerate(texts)])
    words = list({word: None for sentence in model.segment(documents) for word in sentence.words})
    tokenize.forget()
    clocked("tokenize", lambda: tokenize.table().numbers(words))  # each word once; segmenting looks them up
    rows = clocked("segment", lambda: list(segment_rows(documents, model.recipe.segments, tokenize.table, gold=False)))
    unfinished = deque(PartialDocument(document, segmented=True) for document in documents)
    pool, number = [], 0
    for sentence in rows:
        if sentence is not None:
            pool.append(Pooled(unfinished[number], sentence, unfinished[number].await_sentence(sentence)))
        number += sentence is None
    cut = clocked("sort", lambda: list(model._batches(pool, None)))
    clocked("collate", lambda: [model.collate.inputs([pooled.sentence for pooled in batch]) for batch in cut])
    with model.engine.working():
        asked = clocked("collate and device", lambda: [one for batch in cut for one in model._ask(batch, None)])

    def decoded() -> int:
        for one in asked:
            model._answer(one, None, model.recipe.overlap)
        return len(list(finished(unfinished, model.recipe.overlap)))

    with model.engine.working():
        assert clocked("decode", decoded) == len(documents)
    seconds["device"] = seconds.pop("collate and device") - seconds["collate"]
    seconds["collate"] += seconds.pop("sort")
    names = ("read", "segment", "tokenize", "collate", "device", "decode")
    return {name: round(seconds[name], 4) for name in names}


def end_to_end(given: argparse.Namespace, corpus: str, device: str) -> Iterator[Row]:
    """Texts and words to entities against the floor, for each system and number type."""
    documents = documents_of(given.data / corpus, given.sentences)
    texts = [document.text for document in documents]
    inputs: dict[str, Texts] = {"texts": texts, "words": [text.split() for text in texts]}
    types = given.types or {"cpu": [torch.float32], "cuda": [torch.bfloat16, torch.float32]}[device]
    floors = {dtype: Bare(given.encoder_folder, device, dtype) for dtype in types}
    systems = given.systems or {"cpu": ON_CPU_SYSTEMS, "cuda": ON_GPU_SYSTEMS}[device]
    where = torch.cuda.get_device_name() if device == "cuda" else "cpu"
    for recipe, width in systems:
        model = untrained(recipe, given.encoder_folder, documents, width, device)
        for (kind, items), dtype in product(inputs.items(), types):
            model.engine.number_type = dtype
            work = predicting(model, items, given.batch_size)
            floor_batch = given.floor_batch_size or FLOOR_BATCH[device]
            floor = partial(floors[dtype], floors[dtype].ordered(items), floor_batch)
            last: list[Document] = []
            row = take_turns(floor, partial(replaced, last, work), given.rounds, on_gpu=device == "cuda")
            found = sum(len(document.entities) for document in last)
            settings = (
                f"{Path(given.encoder_folder).name}, {recipe}, width {width}, {str(dtype).removeprefix('torch.')}"
            )
            name = f"{corpus}: {len(texts)} {kind}, {settings}"
            rate = round(len(texts) / row["seconds"])
            facts = {"floor_batch": floor_batch, "sentences_per_second": rate, "found": found}
            yield {"name": name, "device": where, **row, **facts, "stages": stages(model, items)}


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
    if given.end_to_end is not None:
        yield from end_to_end(given, corpora[0], given.end_to_end)
        return
    if torch.cuda.is_available():
        yield from end_to_end(given, corpora[0], "cuda")
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
    parser.add_argument("--systems", type=systems_of, help="recipe:width, comma separated; otherwise the usual ones")
    parser.add_argument("--types", type=types_of, help="float32, bfloat16, comma separated; otherwise the usual ones")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, help="otherwise as users predict")
    parser.add_argument("--floor-batch-size", type=int, help="otherwise 32 on a CPU and 128 on a GPU")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--end-to-end", metavar="DEVICE", choices=("cpu", "cuda"), help="only texts to entities, there")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path, help="JSON lines are added to this file")
    given = parser.parse_args()
    if given.data is None or not Path(given.encoder_folder).is_dir():
        parser.error("give --data and --encoder-folder, or set WINGSPAN_DATA and WINGSPAN_ENCODERS")
    torch.set_num_threads(given.threads)
    facts = {"threads": given.threads, "versions": versions(), "commit": given.commit}
    for row in rows(given):
        if given.output is not None:
            with given.output.open("a") as out:
                out.write(json.dumps({**row, **facts}) + "\n")
        print(line(row), flush=True)


def systems_of(text: str) -> list[tuple[str, int]]:
    """`bundling/bl-span:8,bundling/bl-seq:8` as pairs."""
    return [(name, int(width)) for name, _, width in (item.partition(":") for item in text.split(","))]


def types_of(text: str) -> list[torch.dtype]:
    """`bfloat16,float32` as number types."""
    return [getattr(torch, name) for name in text.split(",")]


def line(row: Row) -> str:
    """A row for people."""
    parts = [f"{row['name']:90} {row['seconds']:8.3f} s {row['peak_mb']:7.0f} MB"]
    if row["ratio"] is not None:
        parts.append(f"x{row['ratio']:.2f} (cpu x{row['ratio_cpu']:.2f}, {row['spread'][0]} to {row['spread'][1]})")
        parts.append(", ".join(f"{name} {seconds:.3f}" for name, seconds in row["stages"].items()))
    if "lost" in row:
        parts.append(f"grown {row['grown_mb']:.0f} MB, lost {row['lost']}, doubled or new {row['doubled_or_new']}")
    return "; ".join(parts)


if __name__ == "__main__":
    main()
