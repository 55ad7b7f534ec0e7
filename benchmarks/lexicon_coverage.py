"""How much of three corpora the lexicons of $WINGSPAN_DATA/kb cover, and table 1 of Nguyen et al. 2023 (UMLS 2017AA).

python benchmarks/lexicon_coverage.py [--output benchmarks/results/lexicon-coverage.jsonl]
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from wingspan.corpora.formats import read
from wingspan.corpora.lexicon import Lexicon, coverage
from wingspan.corpora.lexicon.concepts import Concept, read_concepts
from wingspan.corpora.lexicon.synonyms import found_synonyms
from wingspan.files import Problems
from wingspan.text import Document, content_digest, fingerprint

PARTS = ("train", "dev", "test")
# corpus -> its folder, the type of its entities, and the share of entities with synonyms in UMLS that table 1 prints
CORPORA: dict[str, tuple[str, str, tuple[float, float, float]]] = {
    "NCBI-disease": ("ncbi-disease", "Disease", (79.25, 74.46, 75.62)),
    "BC5CDR-Disease": ("bc5cdr", "Disease", (87.18, 87.18, 89.69)),
    "BC5CDR-Chemical": ("bc5cdr", "Chemical", (93.14, 94.58, 94.00)),
}
BASES = {"Disease": ("mesh", "doid", "mondo"), "Chemical": ("mesh",)}
TITLES = {"mesh": "MeSH", "doid": "DOID", "mondo": "MONDO"}


def documents(root: Path, folder: str, part: str, kind: str) -> list[Document]:
    """The texts of a part with the entities of one type; the four sub-types of NCBI-disease are all diseases."""
    path = root / folder / f"{part}.text.jsonl"
    found = list(read(path if path.exists() else path.with_name(f"{path.name}.gz")))
    if folder == "bc5cdr":
        found = [replace(one, entities=tuple(e for e in one.entities if e.label == kind)) for one in found]
    return found


def lexicons(bases: dict[str, list[Concept]], kind: str, train: list[Document]) -> Iterator[tuple[str, Lexicon]]:
    """Lexicons from narrow to wide: one base, all that fit, folded, and with what the training part shows."""
    names = BASES[kind]
    of_type = {name: [concept for concept in bases[name] if kind in concept.types] for name in names}
    yield TITLES[names[0]], Lexicon.of(of_type[names[0]])
    title, every = " + ".join(TITLES[name] for name in names), list(chain.from_iterable(of_type.values()))
    if len(names) > 1:
        yield title, Lexicon.of(every)
    folds = ("hyphen", "plural")
    yield f"{title}, hyphens and plurals folded", Lexicon.of(every, folds)
    own: Iterable[Concept] = chain.from_iterable(found_synonyms(train).values())
    yield f"{title}, folded, and the training part itself", Lexicon.of(chain(every, own), folds)


def rows(root: Path) -> Iterator[dict[str, Any]]:
    """One row for each corpus, part and lexicon."""
    bases = {name: list(read_concepts(root / "kb" / f"{name}.tsv.gz", Problems())) for name in TITLES}
    for corpus, (folder, kind, published) in CORPORA.items():
        parts = {part: documents(root, folder, part, kind) for part in PARTS}
        for title, lexicon in lexicons(bases, kind, parts["train"]):
            for (part, found), paper in zip(parts.items(), published, strict=True):
                counts = coverage(lexicon, found).to_dict()
                counts.pop("labels")
                digests = [content_digest(document) for document in found]
                yield {
                    "corpus": corpus,
                    "part": part,
                    "lexicon": title,
                    "concepts": len(lexicon),
                    "names": lexicon.num_names,
                    "folds": list(lexicon.folds),
                    **counts,
                    "paper": paper,
                    "fingerprint": fingerprint(digests, counts["entities"]),
                }


def main() -> None:
    """Prints and writes the rows."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "lexicon-coverage.jsonl")
    output = options.parse_args().output
    made = []
    for row in rows(Path(os.environ["WINGSPAN_DATA"])):
        made.append(json.dumps(row))
        name = f"{row['corpus']} {row['part']}, {row['lexicon']}"
        shares = f"{row['synonym_coverage']:.2f}% of {row['entities']:,}; UMLS {row['paper']:.2f}%"
        print(f"{name}: {shares}", flush=True)
    output.write_text("\n".join(made) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
