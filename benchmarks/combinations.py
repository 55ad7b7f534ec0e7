"""Parts that the five papers do not have, and combinations that none of them tried; settings for base encoders.

python benchmarks/combinations.py --data $WINGSPAN_DATA --plan parts --output benchmarks/results/combinations.jsonl
python benchmarks/combinations.py --data $WINGSPAN_DATA --plan combinations --output ...
python benchmarks/combinations.py --data $WINGSPAN_DATA --plan base --encoder MPNET --output ...
python benchmarks/combinations.py --data $WINGSPAN_DATA --plan best --systems bundling/bl-span,bl-deep --output ...

`parts` puts each new part beside the system it is added to, with the same encoder, epochs, batches and rates;
`combinations` puts two papers into one model; both are scored on dev only. With `--predictions`, what they find in test
is kept unseen, and `paired.py` scores what dev has chosen. `base` tries settings of one system with a base encoder, on
dev. `best` scores chosen systems on test, too. The longest runs are the first, unless `--systems` gives an order. Links
with tags are in `discontinuous.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from training_runs import Job, Row, arguments, choices, run_jobs, train

HIDDEN = {"encoder.word_dropout": "0.15"}
SHARED = {"train.precision": "bf16", "train.learning_rate": "1.5e-4", **HIDDEN}
CORPORA: dict[str, dict[str, str]] = {
    "ncbi-disease": {**SHARED, "overlap": "flat", "train.epochs": "8", "train.batch_size": "32"},
    "genia": {
        **{**SHARED, "overlap": "nested", "train.epochs": "5", "train.batch_size": "48", "train.budget": "1600"},
        "max_width": "10",
    },
    "bc5cdr": {**SHARED, "overlap": "flat", "train.epochs": "8", "train.batch_size": "32"},
    "litbank": {  # for spans of any width
        **{**SHARED, "overlap": "nested", "train.epochs": "8", "train.batch_size": "48", "train.budget": "1600"},
        "candidates.budget": "2",
    },
}
FLAT_AND_NESTED = ("ncbi-disease", "genia")


def bl_span(spans: Any = None) -> Any:
    """BL-SpanNER, with other span vectors if some are given; a span Transformer learns as slowly as the encoder."""
    from wingspan.recipes import bundling, deep_span

    recipe = bundling.bl_span() if spans is None else bundling.bl_span(spans)
    return replace(recipe, train=replace(recipe.train, factors=deep_span.fresh(10.0)))


def deep(**settings: Any) -> Any:
    """Two layers of the span Transformer."""
    from wingspan.spans.deep import DeepSpans

    return partial(DeepSpans, depth=2, **settings)


def deep_cnn() -> Any:
    """Deep spans that see their neighbors. Proposals have none: a convolution needs the grid."""
    from wingspan.recipes import find
    from wingspan.spans.contextual import ConvolvedSpans

    return replace(find("deep_span/depth-2-no-bilstm"), spans=partial(ConvolvedSpans, around=deep(width_size=25)))


def rotary_cnn(beside: Any = None, slow: tuple[str, ...] = ()) -> Any:
    """Convolutions over biaffine spans with rotary positions, and over others beside them."""
    from wingspan.recipes import find
    from wingspan.spans.biaffine import RotaryBiaffineSpans
    from wingspan.spans.contextual import ConvolvedSpans

    recipe = find("deep_span/biaffine-cnn")
    factors = {**recipe.train.factors, **{f"model.scorer.spans.beside.{part}": 1.0 for part in slow}}
    spans = partial(ConvolvedSpans, around=partial(RotaryBiaffineSpans), **({"beside": beside} if beside else {}))
    return replace(recipe, spans=spans, train=replace(recipe.train, factors=factors))


def bundled(name: str) -> Any:
    """Tags beside the spans of a recipe of the package."""
    from wingspan.recipe import bundle
    from wingspan.recipes import find

    return bundle(find(name), 0.1)


# the recipe, and about how much longer than SpanNER's a run takes
SYSTEMS: dict[str, tuple[str | Callable[[], Any], float]] = {
    "bundling/span": ("bundling/span", 1.0),
    "bundling/bl-span": ("bundling/bl-span", 1.2),
    "bundling/span-proposals": ("bundling/span-proposals", 1.0),
    "deep_span/biaffine": ("deep_span/biaffine", 1.1),
    "deep_span/shallow-max-no-bilstm": ("deep_span/shallow-max-no-bilstm", 1.0),
    "deep_span/depth-2-no-bilstm": ("deep_span/depth-2-no-bilstm", 1.4),
    "deep_span/depth-2-proposals": ("deep_span/depth-2-proposals", 1.4),
    "deep_span/biaffine-proposals": ("deep_span/biaffine-proposals", 1.2),
    "deep_span/shallow-max-proposals": ("deep_span/shallow-max-proposals", 1.2),
    "compress_generate/supvib": ("compress_generate/supvib", 1.5),
    "bundling/seq": ("bundling/seq", 0.9),
    "bundling/bl-seq": ("bundling/bl-seq", 1.2),
    # a new part each
    "deep_span/biaffine-cnn": ("deep_span/biaffine-cnn", 1.5),
    "deep_span/biaffine-rotary": ("deep_span/biaffine-rotary", 1.1),
    "bundling/bl-span-cnn": ("bundling/bl-span-cnn", 1.5),
    # two in one
    "bl-deep": (lambda: bl_span(deep(width_size=25)), 1.6),
    "deep-cnn": (deep_cnn, 1.8),
    "bl-supvib": (lambda: bundled("compress_generate/supvib"), 1.7),
    "bl-proposals": (lambda: bundled("bundling/span-proposals"), 1.2),
    "biaffine-rotary-cnn": (rotary_cnn, 1.6),
    "deep_span/biaffine-pooled-cnn": ("deep_span/biaffine-pooled-cnn", 1.7),
    "biaffine-deep-cnn": (lambda: rotary_cnn(deep(), ("blocks", "distances")), 2.0),
    "bl-biaffine-cnn": (lambda: bundled("deep_span/biaffine-cnn"), 1.6),
}
REFERENCES = ("bundling/span", "bundling/bl-span", "deep_span/biaffine", "deep_span/shallow-max-no-bilstm")
PARTS = ("deep_span/biaffine-cnn", "deep_span/biaffine-rotary", "bundling/bl-span-cnn")
COMBINATIONS = ("deep_span/depth-2-no-bilstm", "compress_generate/supvib", "bundling/span-proposals")
COMBINATIONS += ("bl-deep", "deep-cnn", "bl-supvib", "bl-proposals", "bl-biaffine-cnn")
COMBINATIONS += ("biaffine-rotary-cnn", "deep_span/biaffine-pooled-cnn", "biaffine-deep-cnn")
LONG = {"genia": 3.0, "litbank": 3.0}
# for a base encoder, one change at a time; three times ten is the rate of fresh parts beside a small encoder
FRESH = {f"train.factors.{part}": "30" for part in ("model.scorer", "objectives", "model.encoder.shapes")}
BASE: tuple[dict[str, str], ...] = (
    {"train.learning_rate": "3e-5"},
    {"train.learning_rate": "5e-5"},
    {"train.learning_rate": "8e-5"},
    {"train.learning_rate": "1.2e-4"},
    {"train.learning_rate": "5e-5", **FRESH},
    {"train.learning_rate": "5e-5", "train.warmup": "0.2"},
    {"train.learning_rate": "5e-5", "encoder.word_dropout": "0"},
)


def planned(plan: str) -> list[tuple[str, str, dict[str, str]]]:
    """Corpus, system and settings of the runs of a plan."""
    if plan == "base":
        return [(corpus, "bundling/bl-span", choice) for corpus in FLAT_AND_NESTED for choice in BASE]
    systems = (*REFERENCES, *PARTS) if plan == "parts" else COMBINATIONS
    return [(corpus, system, {}) for corpus in FLAT_AND_NESTED for system in systems]


def work(job: Job) -> Row:
    """A training of a system of this file, which may be no recipe of the package."""
    made = SYSTEMS[job["recipe"]][0]
    return train(job, recipe=made if isinstance(made, str) else made())[0]


def main() -> None:
    """Runs what is missing, the longest first."""
    parser = arguments(__doc__)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--plan", choices=("parts", "combinations", "base", "best"), default="parts")
    parser.add_argument("--systems", help="names of systems, by commas, instead of a plan's")
    parser.add_argument("--corpora", help="by commas, instead of a plan's")
    given = parser.parse_args()
    if given.plan == "best" and not given.systems:
        parser.error("--plan best needs --systems: those that dev has chosen")
    given.dev_only = given.dev_only or given.plan != "best"
    runs = [] if given.plan == "best" else planned(given.plan)
    if given.systems or given.plan == "best":
        corpora = given.corpora.split(",") if given.corpora else FLAT_AND_NESTED
        runs = [(corpus, system, {}) for system in given.systems.split(",") for corpus in corpora]
    elif given.corpora:
        runs = [run for run in runs if run[0] in given.corpora.split(",")]
    jobs: list[Job] = [
        {
            "corpus": corpus,
            "recipe": system,
            "seed": int(seed),
            "encoder": given.encoder,
            "settings": {**CORPORA[corpus], **chosen, **choice},
        }
        for corpus, system, chosen in runs
        for choice in choices(given.set)
        for seed in given.seeds.split(",")
    ]
    if not given.systems:
        jobs.sort(key=lambda job: -LONG.get(job["corpus"], 1.0) * SYSTEMS[job["recipe"]][1])
    run_jobs(given, jobs, work)


if __name__ == "__main__":
    main()
