"""Two small corpora of generated documents: drugs and diseases in one, diseases and genes in the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainings import dev_documents, train_documents
from wingspan.corpora.formats import write
from wingspan.text import Document
from wingspan.training.multi_corpus import CorporaPlan, OneOfSeveral

TYPES = {"drugs": ("Chemical", "Disease"), "genes": ("Disease", "Gene")}


def kept(documents: Sequence[Document], name: str) -> tuple[Document, ...]:
    """The documents with only the types that a corpus annotates."""
    return tuple(
        replace(d, dataset=name, entities=tuple(e for e in d.entities if e.label in TYPES[name])) for d in documents
    )


def two_corpora(number: int = 12, **others) -> CorporaPlan:
    """The first half of the documents, and the second; drugs are the target."""
    documents, dev = train_documents(2 * number), dev_documents(4)
    parts = {"drugs": documents[:number], "genes": documents[number:]}
    corpora = tuple(
        OneOfSeveral(
            name,
            TYPES[name],
            TYPES[name],
            kept(documents, name),
            kept(dev, name),
            kept(dev, name) if name == "genes" else (),
            "target" if name == "drugs" else "auxiliary",
        )
        for name, documents in parts.items()
    )
    return CorporaPlan(corpora, **others)


def save_two(folder: Path, *lines: str, number: int = 12) -> Path:
    """The two as files, with a `corpora.toml`; `lines` stand on top of it."""
    text = "\n".join(lines) + "\n"
    for corpus in two_corpora(number).corpora:
        text += f'[[corpora]]\nname = "{corpus.name}"\nlabels = {list(corpus.labels)}\n'
        for part in ("train", "dev", "test"):
            if documents := getattr(corpus, part):
                write([replace(d, dataset="main") for d in documents], folder / f"{corpus.name}-{part}.jsonl")
                text += f'{part} = "{corpus.name}-{part}.jsonl"\n'
    (folder / "corpora.toml").write_text(text)
    return folder / "corpora.toml"
