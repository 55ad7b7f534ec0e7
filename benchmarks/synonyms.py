"""Does synonym training teach synonyms that were never seen? Token recall of held-out synonyms.

python benchmarks/synonyms.py --corpus $WINGSPAN_DATA/ncbi-disease/train.jsonl --lexicon diseases.sqlite \
    --output benchmarks/results/synonyms.jsonl

Every third synonym of each name is hidden from training. Then 200 entities are written greedily, by the synonyms'
decoder of the model with synonyms (All) and by the only decoder of the one without (SupVIB + SpanReco). Counted is the
share of the hidden synonyms' words that were written. Both train their autoencoders only, from nothing.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from measuring import versions
from wingspan.corpora.formats import read
from wingspan.corpora.lexicon import Lexicon, load
from wingspan.recipe import Phase
from wingspan.report.generation import Written, regenerate, synonym_recall
from wingspan.training.run import prepare, train

SETTINGS = {"train.batch_size": 16, "terms.generate.weight": 1.0, "terms.generate.objective.latent_size": 128}
SYSTEMS = {"all": ("compress_generate/all", "synonyms"), "spanreco": ("compress_generate/supvib-spanreco", "words")}


@dataclass(frozen=True)
class Part:
    """Every third synonym of a name, or the others."""

    lexicon: Lexicon
    hidden: bool

    def synonyms(self, surface: str, label: str | None = None) -> tuple[str, ...]:
        """What this part has of the lexicon's synonyms."""
        names = self.lexicon.synonyms(surface, label)
        return tuple(name for at, name in enumerate(names) if (at % 3 == 1) == self.hidden)


def written(system: str, seed: int, documents: list[Any], seen: Part, epochs: int, entities: set[str]) -> list[Written]:
    """What a model that was trained from this seed writes for the entities, each once."""
    recipe, task = SYSTEMS[system]
    chosen = prepare(recipe, "hashed", {**SETTINGS, "train.epochs": epochs})
    alone = replace(chosen, phases=(Phase(terms=("generate",)),))
    model = train(alone, train=documents, seed=seed, lexicon=seen, device="cpu")
    found = {pair.surface.lower(): pair for pair in regenerate(model, documents, task=task)}
    return [found[name] for name in sorted(entities)]


def main() -> None:
    """Trains both for each seed, prints, adds JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--lexicon", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--generations", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    documents = [document for document in read(given.corpus) if document.entities][: given.documents]
    lexicon = load(given.lexicon)
    seen, hidden = Part(lexicon, False), Part(lexicon, True)
    names = [(d.text_of(e), e.label) for d in documents for e in d.entities]
    entities = list(dict.fromkeys(name.lower() for name, label in names if hidden.synonyms(name, label)))
    chosen = set(entities[: given.generations])
    for seed in map(int, given.seeds.split(",")):
        began = time.perf_counter()
        recall = {
            system: synonym_recall(written(system, seed, documents, seen, given.epochs, chosen), hidden)
            for system in SYSTEMS
        }
        row = {"seed": seed, "generations": len(chosen), **recall, "seconds": round(time.perf_counter() - began, 1)}
        print(row, flush=True)
        if given.output is not None:
            facts = {"corpus": given.corpus.parent.name, "lexicon": given.lexicon.name, "epochs": given.epochs}
            facts |= {"documents": len(documents), "versions": versions(), "commit": given.commit}
            with given.output.open("a") as out:
                out.write(json.dumps({**row, **facts}) + "\n")


if __name__ == "__main__":
    main()
