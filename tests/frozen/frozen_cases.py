"""Small trainings of every recipe, through what is public only: names, settings, `wingspan.train`, the journal.

Nothing here imports a module below `wingspan`, so that modules may be moved, merged and renamed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA, MODELS, TRAININGS = HERE / "data", HERE / "models", HERE / "trainings"

BERT = "bert"
"""The encoder in `data/bert`: twelve tiny layers, pieces of letters."""
VECTORS = "static:vectors.txt"
HASHED = {"encoder.buckets": 100, "encoder.embedding": 4, "encoder.hidden": 8}
QUICK = {"train.epochs": 2, "train.batch_size": 4, "train.learning_rate": 0.02, "train.warmup": 0.0}
LARGER = {"encoder.buckets": 300, "encoder.embedding": 8, "encoder.hidden": 16, "encoder.dropout": 0.0}
SURE = {**LARGER, "train.epochs": 20}  # taggers find nothing sooner
SLOW_RATES = {"train.learning_rate": 0.005, "train.factors.model.scorer": 1.0}
CVAE = {"terms.cvae.weight": 0.1, "terms.cvae.objective.hidden": 8, "terms.cvae.objective.latent_size": 4}
GENERATE = {
    "terms.generate.objective.latent_size": 8,
    "terms.generate.objective.embedding_size": 8,
    "terms.generate.objective.hidden": 16,
    "phases.0.epochs": 1,
}
STATIC = {"encoder.size": 6, "encoder.buckets": 50, "spans.hidden_size": 8}


@dataclass(frozen=True)
class Case:
    """One training; `name` is that of its results."""

    name: str
    recipe: str
    encoder: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    train: str = "train.jsonl"
    dev: str = "dev.jsonl"
    corpora: bool = False
    lexicon: bool = False

    @property
    def system(self) -> str:
        """The recipe without its variant."""
        return self.recipe.partition("/")[0]

    @property
    def given_spans(self) -> bool:
        """Whether labels of given spans are asked for, not entities."""
        return self.system == "typed_spans" and "recognize" not in self.recipe


def variants(system: str, names: str) -> list[str]:
    """Full names; `-` is the default."""
    return [system if name == "-" else f"{system}/{name}" for name in names.split()]


def baseline() -> list[Case]:
    """Hashed, pretrained and static encoders."""
    cases = [Case(name, name, "hashed", HASHED) for name in variants("baseline", "- proposals")]
    cases.append(Case("baseline on vectors", "baseline", VECTORS, {"encoder.hidden": 8, "encoder.buckets": 50}))
    cases.append(Case("baseline on pieces", "baseline", "static:bert", {"encoder.hidden": 8}))
    return [*cases, Case("baseline/pretrained", "baseline/pretrained", BERT, SLOW_RATES, "short.jsonl")]


def bundling() -> list[Case]:
    """Variants that differ in more than the settings of a corpus, and some of them on a pretrained encoder."""
    names = "- seq seq-crf span span-boundary span-pooling span-proposals bl-seq bl-seq-crf bl-span bl-span-crf "
    names += "bl-span-boundary bl-span-pooling paper paper-seq paper-ncbi"
    cases = [Case(n, n, "hashed", HASHED | (SURE if "seq" in n else {})) for n in variants("bundling", names)]
    cases.append(Case("bundling/bl-span-cnn", "bundling/bl-span-cnn", "hashed", {**HASHED, "spans.size": 8}))
    on_bert = variants("bundling", "bl-span-crf paper paper-seq")
    return [*cases, *(Case(f"{n} on bert", n, BERT, {"train.learning_rate": 0.005}, "short.jsonl") for n in on_bert)]


def deep_span() -> list[Case]:
    """All kinds of span vectors; depths and corpora differ in a number."""
    names = "- depth-2 init-mean init-multiplicative init-additive shallow-max shallow-mean shallow-multiplicative "
    names += "shallow-additive share-weights no-smoothing paper paper-genia"
    small = {"spans.hidden_size": 12, "head.hidden": "[16]", **SLOW_RATES}
    bare = "no-bilstm proposals depth-2-no-bilstm depth-2-proposals shallow-max-no-bilstm shallow-max-proposals"
    cases = [Case(n, n, BERT, small, "short.jsonl") for n in variants("deep_span", names)]
    cases += [
        Case(n, n, BERT, {"head.hidden": "[16]", **SLOW_RATES}, "short.jsonl") for n in variants("deep_span", bare)
    ]
    own = variants("deep_span", "biaffine biaffine-rotary biaffine-proposals")
    limits = {"max_width": 8, "segments.max_length": 60, "train.epochs": 1}
    cases += [Case(n, n, BERT, {"spans.hidden": 8, **SLOW_RATES}, "short.jsonl") for n in own]
    small_cnn = {"spans.size": 8, "spans.around.hidden": 8, **SLOW_RATES}
    convolved = variants("deep_span", "biaffine-cnn biaffine-pooled-cnn")
    cases += [Case(n, n, BERT, small_cnn, "short.jsonl") for n in convolved]
    return [
        Case(c.name, c.recipe, c.encoder, c.settings | (limits if "paper" in c.name else {}), c.train) for c in cases
    ]


def compress_generate() -> list[Case]:
    """Every variant, with synonyms where they are learned from."""
    plain = variants("compress_generate", "baseline supvib-beta-0 supvib supvib-proposals")
    names = "- supvib-spanreco all all-shared-spread all-no-sharing vaes-only paper paper-ncbi"
    generating = variants("compress_generate", names)
    cases = [Case(n, n, "hashed", HASHED) for n in plain]
    cases += [Case(n, n, "hashed", {**HASHED, **GENERATE}, lexicon="spanreco" not in n) for n in generating]
    on_bert = {**GENERATE, "train.learning_rate": 0.005}
    paper = "compress_generate/paper"
    return [*cases, Case(f"{paper} on bert", paper, BERT, on_bert, "short.jsonl", lexicon=True)]


def conditional() -> list[Case]:
    """Two corpora in one model, hashed and pretrained; one corpus where a variant is meant for it."""
    small = {"spans.around.width_size": 3, "head.spread": 0.3}
    plain = variants("conditional", "multi multi-shared-label")
    names = "- multi-cvae fixed unshared shared-label random paper paper-t5 paper-trained-rows"
    cases = [Case(n, n, "hashed", {**HASHED, **small}, corpora=True) for n in plain]
    cases += [Case(n, n, "hashed", {**HASHED, **small, **CVAE}, corpora=True) for n in variants("conditional", names)]
    cases += [Case("conditional/single", "conditional/single", "hashed", {**HASHED, **small})]
    cases += [Case("conditional/single-cvae", "conditional/single-cvae", "hashed", {**HASHED, **small, **CVAE})]
    on_bert = {**small, **CVAE, "train.learning_rate": 0.002}
    cases += [
        Case(f"{n} on bert", n, BERT, {**on_bert, "segments.max_length": 100, "max_width": 6}, corpora=True)
        for n in variants("conditional", "- paper")
    ]
    return cases


def typed_spans() -> list[Case]:
    """Every variant with random vectors, the default with vectors of a file."""
    names = "- frozen random-vectors in-context recognize recognize-sampled paper paper-nerel paper-mini-batch"
    cases = [Case(n, n, None, STATIC) for n in variants("typed_spans", names)]
    return [*cases, Case("typed_spans on vectors", "typed_spans", VECTORS, STATIC | {"encoder.size": 6})]


def discontinuous() -> list[Case]:
    """Entities of several fragments."""
    files = {"train": "colors.jsonl", "dev": "colors-dev.jsonl"}
    names = variants("discontinuous", "- bundled proposals drop split hull nearest")
    sizes = {"encoder.buckets": 300, "encoder.embedding": 8, "encoder.hidden": 24, "encoder.dropout": 0.0}
    settings = {**sizes, "head.hidden": "[32]", "head.dropout": 0.0, "train.batch_size": 6, "train.epochs": 30}
    settings["train.learning_rate"] = 0.01
    cases = [Case(n, n, "hashed", settings, **files) for n in names]
    deep = {"head.hidden": "[16]", **SLOW_RATES}
    return [*cases, Case("discontinuous/deep", "discontinuous/deep", BERT, deep, **files)]


CASES = {
    case.name: case
    for cases in (baseline, bundling, deep_span, compress_generate, conditional, typed_spans, discontinuous)
    for case in cases()
}
KEPT = {  # the folders of these models are kept as today's code saves them
    "baseline": "baseline",
    "baseline-pretrained": "baseline/pretrained",
    "baseline-vectors": "baseline on vectors",
    "baseline-pieces": "baseline on pieces",
    "bundling": "bundling/bl-span",
    "bundling-crf": "bundling/bl-seq-crf",
    "bundling-paper": "bundling/paper on bert",
    "deep_span": "deep_span",
    "deep_span-proposals": "deep_span/proposals",
    "deep_span-biaffine": "deep_span/biaffine",
    "compress_generate": "compress_generate",
    "conditional": "conditional",
    "conditional-bert": "conditional on bert",
    "typed_spans": "typed_spans",
    "typed_spans-recognize": "typed_spans/recognize-sampled",
    "discontinuous": "discontinuous",
    "discontinuous-proposals": "discontinuous/proposals",
}


def documents(file: str, with_entities: bool = False) -> list[Any]:
    """Documents of a file in `data`, read without the package's readers."""
    from wingspan import Document, Entity, Span

    found = []
    for line in (DATA / file).read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        entities = tuple(
            Entity(e["label"], tuple(Span(*span) for span in e.get("fragments", [[e["start"], e["end"]]])))
            for e in record["entities"]
        )
        found.append(Document(record["id"], record["text"], entities if with_entities else ()))
    return found


def train(case: Case, output: Path) -> Any:
    """Trains; the working folder must be `data`, so that no path of this machine is in the model."""
    import wingspan

    corpora = {"corpora": "corpora.toml"} if case.corpora else {"train": case.train, "dev": case.dev}
    settings = {**QUICK, **case.settings}
    encoder = {"encoder": case.encoder} if case.encoder else {}
    lexicon = {"lexicon": "names.tsv"} if case.lexicon else {}
    return wingspan.train(case.recipe, **corpora, output=output, settings=settings, device="cpu", **encoder, **lexicon)


def losses(folder: Path) -> list[dict[str, float]]:
    """What the journal says of each epoch: the mean of every loss."""
    events = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return [event["losses"] for event in events if event["event"] == "epoch"]


def predict(model: Any, case: Case, threshold: float | None) -> list[list[Any]]:
    """Entities of each dev document: label, fragments, score; of several corpora one answer after the other."""
    asked = documents(case.dev, case.given_spans)
    chosen = {} if case.given_spans else {"threshold": threshold}
    names = ["drugs", "genes"] if case.corpora else [None]
    found = [d for name in names for d in model.predict(asked, **chosen, **({"dataset": name} if name else {}))]
    return [[[e.label, [list(span) for span in e.spans], e.score] for e in document.entities] for document in found]


def same_entities(found: list[list[Any]], frozen: dict[str, Any], tolerance: float) -> None:
    """Labels and places are equal, scores within the tolerance."""
    short = shortened(found)
    assert short["count"] == frozen["count"]
    assert [e[:3] for e in short["entities"]] == [e[:3] for e in frozen["entities"]]
    for entity, expected in zip(short["entities"], frozen["entities"], strict=True):
        assert abs(entity[3] - expected[3]) <= tolerance, (entity, expected)


def shortened(found: list[list[Any]], most: int = 40) -> dict[str, Any]:
    """How many entities there are, and the first of them with their document's number."""
    flat = [[number, *entity] for number, document in enumerate(found) for entity in document]
    return {"count": len(flat), "entities": [[*entity[:3], round(entity[3], 5)] for entity in flat[:most]]}


def as_json(results: dict[str, Any]) -> str:
    """JSON, indented at the first two levels; an entity or an epoch has a line of its own."""
    lines = re.split(r"\n(?= {0,2}\S| {3}[^\s\]}])", json.dumps(results, indent=1, ensure_ascii=False))
    return "\n".join(re.sub(r"\s*\n\s*", " ", line) for line in lines) + "\n"
