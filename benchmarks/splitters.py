"""Given words in training, raw text in use: what it costs, and what it costs with the splitter that training chooses.

    python benchmarks/splitters.py ncbi-disease bc5cdr genia --results benchmarks/results/splitters.jsonl
    python benchmarks/splitters.py wnut17 crossner/politics --encoder minilm --results ...

A model is trained once, on the given words of a corpus. It then reads the test part as given words, and as raw text cut
by `words` (what every model did before) and by the splitter that training has chosen. Raw text is that of the source
where `WINGSPAN_DATA` has it (`.text.jsonl`); otherwise the words are put together by the detokenizer of the package
sacremoses, which knows nothing of our splitters.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

import wingspan
from walks import commit
from wingspan.corpora.formats import read
from wingspan.evaluation.scores import recognition
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Entity, Span

DATA = Path(os.environ.get("WINGSPAN_DATA", "data"))
TOKENS, TEXTS = {"genia": "genia-doc"}, {"genia": "genia-disc"}  # the same documents, in words and as text


def part(folder: str, name: str) -> list[Document]:
    """The documents of a part of a corpus, plain or packed."""
    return list(read(next(DATA.glob(f"{folder}/{name}.jsonl*"))))


def raw_text(corpus: str, given: list[Document]) -> list[Document]:
    """The test documents as raw text, without given words."""
    folder = TEXTS.get(corpus, corpus)
    if not list(DATA.glob(f"{folder}/test.text.jsonl*")):
        return [detokenized(document) for document in given]
    documents = [replace(document, words=None, sentences=None) for document in part(folder, "test.text")]
    return [replace(one, entities=tuple(e for e in one.entities if not e.discontinuous)) for one in documents]


def detokenized(document: Document) -> Document:
    """The document as people would write it, by sacremoses."""
    from sacremoses import MosesDetokenizer

    words = [document.text[word.start : word.end] for word in document.words or ()]
    text = MosesDetokenizer("en").detokenize(words, unescape=False)
    spans, at = list[Span](), 0
    for word in words:
        start = text.index(word, at)
        at = start + len(word)
        spans.append(Span(start, at))
    place = {(span.start, span.end): moved for span, moved in zip(document.words or (), spans, strict=True)}
    starts, ends = {s: new.start for (s, _), new in place.items()}, {e: new.end for (_, e), new in place.items()}
    entities = tuple(Entity.at(e.label, starts[e.start], ends[e.end]) for e in document.entities)
    return Document(document.id, text, entities)


def score(model: Recognizer, gold: list[Document], splitter: str) -> dict[str, float]:
    """Strict precision, recall and F1, with raw text cut by this splitter."""
    chosen = replace(model.recipe, segments=replace(model.recipe.segments, splitter=splitter))
    other = Recognizer(chosen, model.labels, model.learner, device=model.device)
    micro = recognition(gold, other.predict(gold, batch_size=64)).micro
    return {name: round(getattr(micro, name), 2) for name in ("precision", "recall", "f1")}


def run(corpus: str, encoder: str, epochs: int, seed: int, limit: int | None) -> dict[str, Any]:
    """Trains and scores on one corpus."""
    folder = TOKENS.get(corpus, corpus)
    train, dev, given = (part(folder, name) for name in ("train", "dev", "test"))
    model = wingspan.train(
        "baseline",
        train=train[:limit],
        dev=dev[:300],
        encoder=encoder,
        settings={"train.epochs": epochs},
        seed=seed,
        console=Console(),
    )
    raw, splitter = raw_text(corpus, given), model.recipe.segments.splitter
    if len(labels := sorted({entity.label for document in train for entity in document.entities})) == 1:
        raw = [  # the text of NCBI disease has four kinds of diseases, the words have one
            replace(one, entities=tuple(Entity(labels[0], entity.spans) for entity in one.entities)) for one in raw
        ]
    row = {"commit": commit(), "corpus": corpus, "encoder": encoder, "epochs": epochs, "seed": seed}
    row |= {"splitter": splitter, "said": model.facts["words"]}
    source = "source" if list(DATA.glob(f"{TEXTS.get(corpus, corpus)}/test.text.jsonl*")) else "detokenized"
    return {
        **row,
        "raw_text": source,
        "given": score(model, given, splitter),
        "raw_words": score(model, raw, "words"),
        "raw_chosen": score(model, raw, splitter),
    }


def main() -> None:
    """Runs the corpora one after the other."""
    parser = argparse.ArgumentParser(description="Given words against raw text.")
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--encoder", default="hashed")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, help="train on the first documents only")
    parser.add_argument("--results", type=Path, help="append JSON lines to this file")
    arguments = parser.parse_args()
    for corpus in arguments.corpora:
        row = run(corpus, arguments.encoder, arguments.epochs, arguments.seed, arguments.limit)
        print(json.dumps(row))
        if arguments.results is not None:
            with arguments.results.open("a") as results:
                results.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
