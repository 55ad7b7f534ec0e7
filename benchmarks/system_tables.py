"""Tables about single systems: typed spans, deep spans, several corpora in one model, discontinuous entities."""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import Any

from table_rows import chance, markdown, rows, spread

Run = dict[str, Any]

# Typed spans: SNG

TYPED_CORPORA = {"genia": ("GENIA", 91.76), "litbank": ("LitBank", 87.93), "germeval14": ("GermEval14", 69.47)}
"""Names, and the accuracies of SNG, Table 2."""
TYPING = {
    "typed_spans": "default",
    "typed_spans/paper": "as published",
    "typed_spans/paper-mini-batch": "published model, mini-batches",
    "typed_spans/random-vectors": "random vectors",
}
FINDING = "typed_spans/recognize"


def typed_spans() -> str:
    """Typing accuracy by system, the paper's beside it, and the strict F1 of the recognizer."""
    figures: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows("typed_spans"):
        figures[row["corpus"], row["recipe"]].append(row["test"].get("accuracy", row["test"].get("f1")))
    lines = []
    for corpus, (title, published) in TYPED_CORPORA.items():
        runs = [figures[corpus, system] for system in (*TYPING, FINDING)]
        if any(runs):
            *typing, finding = (spread(values) if values else "" for values in runs)
            lines.append(f"{title} | {' | '.join(typing)} | {published:.2f} | {finding} | {max(map(len, runs))}")
    header = f"test | typing accuracy: {' | '.join(TYPING.values())} | SNG | recognition, strict F1 | seeds"
    return markdown(header, lines)


def recurrent_spans() -> str:
    """How much faster all spans at once are than one after the other."""
    lines = []
    for row in rows("recurrent_spans"):
        seconds = f"{row['floor_seconds']:.2f} | {row['seconds']:.3f}"
        times = f"×{row['faster']:.0f} | ×{1 / row['ratio_cpu']:.0f}"
        lines.append(f"{row['spans']:,} | {row['layout']} | {row['what']} | {seconds} | {times}")
    return markdown("spans | layout | what | loop, seconds | ours, seconds | times faster | by processor time", lines)


# Parts that the papers do not have, and combinations of theirs

TRIED = {
    "bundling/span": ("SpanNER", None),
    "bundling/bl-span": ("SpanNER bundled with tags", "bundling/span"),
    "deep_span/biaffine": ("biaffine", None),
    "deep_span/depth-2-no-bilstm": ("deep 2", None),
    "compress_generate/supvib": ("bottleneck", None),
    "deep_span/biaffine-cnn": ("biaffine with convolutions", "deep_span/biaffine"),
    "bundling/bl-span-cnn": ("bundled with convolutions", "bundling/bl-span"),
    "deep-cnn": ("deep 2 with convolutions", "deep_span/depth-2-no-bilstm"),
    "bl-deep": ("deep 2 bundled with tags", "deep_span/depth-2-no-bilstm"),
    "bl-supvib": ("bottleneck bundled with tags", "compress_generate/supvib"),
    "deep_span/biaffine-rotary": ("biaffine with rotary positions", "deep_span/biaffine"),
    "biaffine-rotary-cnn": ("the same with convolutions", "deep_span/biaffine-cnn"),
    "deep_span/biaffine-pooled-cnn": ("the same beside pooled spans", "biaffine-rotary-cnn"),
    "biaffine-deep-cnn": ("the same beside deep 2 instead", "biaffine-rotary-cnn"),
    "bl-biaffine-cnn": ("biaffine with convolutions, bundled with tags", "deep_span/biaffine-cnn"),
    "bl-span-adapted": ("bundled, after guessing hidden words of the train part", "bundling/bl-span"),
    "bl-span-averaged": ("bundled, moving average", "bundling/bl-span"),
    "biaffine-cnn-averaged": ("biaffine with convolutions, moving average", "deep_span/biaffine-cnn"),
    "bl-span-agreeing": ("bundled, R-Drop", "bundling/bl-span"),
    "biaffine-cnn-agreeing": ("biaffine with convolutions, R-Drop", "deep_span/biaffine-cnn"),
}
"""Systems of combinations.jsonl: what each is, and the system that it adds something to."""
PAPERS = [name for name, (_, base) in TRIED.items() if base is None or name == "bundling/bl-span"]
CHOSEN = "deep_span/biaffine-pooled-cnn"
TRIED_ON = {"ncbi-disease": "NCBI-disease", "genia": "GENIA", "bc5cdr": "BC5CDR"}


def combinations() -> str:
    """Dev F1 of each system, and its distance from the one that it adds something to."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows("combinations"):
        scores[row["corpus"], row["recipe"]].append(row["dev"]["f1"])
    lines = []
    for system, (title, base) in TRIED.items():
        cells = []
        for corpus in TRIED_ON:
            own = scores[corpus, system]
            added = f" ({fmean(own) - fmean(scores[corpus, base]):+.2f})" if base and own else ""
            cells.append(f"{spread(own)}{added}" if own else "")
        runs = ", ".join(str(len(scores[corpus, system])) for corpus in TRIED_ON)
        lines.append(f"{title} | `{system}` | {' | '.join(cells)} | {runs}")
    corpora = " | ".join(f"{name}, dev F1" for name in TRIED_ON.values())
    return markdown(f"system | name | {corpora} | runs", lines)


def combinations_tested(combination: str = CHOSEN) -> str:
    """Test F1 of a combination and of each system of a paper, with the distance of that one from the combination."""
    found: dict[str, dict[str, Run]] = defaultdict(dict)
    for row in rows("combinations-significance"):
        if row["system"] == combination and row["against"] in PAPERS:
            found[row["against"]][row["corpus"]] = row
    own = found["bundling/bl-span"]
    lines = [" | ".join([f"`{combination}`", *(f"{spread(own[corpus]['f1'][0])} | " for corpus in TRIED_ON)])]
    for against, by_corpus in found.items():
        cells = [
            f"{spread(row['f1'][1])} | {apart(row)}{of_seeds(row)}"
            for row in (by_corpus[corpus] for corpus in TRIED_ON)
        ]
        lines.append(f"{TRIED[against][0]} | {' | '.join(cells)}")
    columns = " | ".join(f"{name}, test F1 | the first is ahead by" for name in TRIED_ON.values())
    return markdown(f"system | {columns}", lines)


def of_seeds(row: Run) -> str:
    """How many seeds either system has, where they differ."""
    one, other = row["seeds"]
    return f", {one} against {other} seeds" if one != other else ""


def combinations_added() -> str:
    """What each part adds to test F1, where what its runs found there is kept."""
    found = {(row["system"], row["against"], row["corpus"]): row for row in rows("combinations-significance")}
    lines = []
    for system, (title, base) in TRIED.items():
        cells = [apart(row) if (row := found.get((system, base or "", corpus))) else "" for corpus in TRIED_ON]
        if any(cells):
            lines.append(f"{title} | `{base}` | {' | '.join(cells)}")
    return markdown(f"system | added to | {' | '.join(TRIED_ON.values())}", lines)


def apart(row: Run) -> str:
    """A difference with its interval and p."""
    return f"{row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}], p {chance(row['p'])}"


# Deep spans: Zhu et al. 2023

DEEP_CORPORA = {"genia": "GENIA", "litbank": "LitBank"}
DEEP_SPANS = {
    "shallow max": ("shallow-max-no-bilstm", "shallow-max-proposals"),
    "biaffine": ("biaffine", "biaffine-proposals"),
    "deep 2": ("depth-2-no-bilstm", "depth-2-proposals"),
    "deep 12": ("no-bilstm", "proposals"),
}
DEEP_ABLATIONS = {
    "depth-12": "deep 12",
    "no-bilstm": "deep 12, no BiLSTM",
    "share-weights": "deep 12, the encoder's own blocks",
    "no-smoothing": "deep 12, no boundary smoothing",
    "init-mean": "deep 12 from means",
    "init-multiplicative": "deep 12 from multiplicative attention",
    "init-additive": "deep 12 from additive attention",
    "depth-6": "deep 6",
    "depth-2": "deep 2",
    "shallow-max": "shallow max",
    "shallow-mean": "shallow mean",
    "shallow-multiplicative": "shallow multiplicative attention",
    "shallow-additive": "shallow additive attention",
}


def deep_runs(*names: str) -> dict[tuple[str, str], list[Run]]:
    """The runs of result files by corpus and system."""
    runs: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for row in (row for name in names for row in rows(name)):
        runs[row["corpus"], row["recipe"].removeprefix("deep_span/")].append(row)
    return runs


def dev_and_test(runs: list[Run]) -> str:
    """Two cells with F1."""
    return " | ".join(spread([run[part]["f1"] for run in runs]) for part in ("dev", "test"))


def recalls(runs: list[Run], part: str, budget: float) -> list[float]:
    """The share of gold entities that were proposed, run by run."""
    return [one["recall"] for run in runs for one in run["proposals"][part] if one["budget"] == budget]


def interval(value: list[float], sign: str = "+") -> str:
    """A figure with its bounds, such as +0.3 [-0.1, +0.8]."""
    middle, low, high = (f"{number:{sign}.1f}" for number in value)
    return f"{middle} [{low}, {high}]"


MPNET_EPOCHS = (3, 6, 9, 12)
MPNET_FILES = (*(f"deep_accuracy-mpnet{round}" for round in ("", "-second", "-third")), "combinations-mpnet")


def deep_accuracy() -> str:
    """Dev and test F1 by span vector, on the grid and with proposals."""
    found, lines = deep_runs("deep_accuracy"), []
    for corpus, title in DEEP_CORPORA.items():
        for spans, systems in DEEP_SPANS.items():
            for runs in filter(None, (found[corpus, system] for system in systems)):
                candidates, recall = f"grid of {runs[0]['max_width']}", ""
                if "proposals" in runs[0]:
                    budget = float(runs[0]["settings"]["candidates.budget"])
                    candidates = f"{budget:g} per word, any width"
                    recall = ", ".join(spread(recalls(runs, part, budget)) for part in ("dev", "test"))
                lines.append(f"{title} | {spans} | {candidates} | {dev_and_test(runs)} | {recall} | {len(runs)}")
    return markdown("corpus | spans | candidates | dev F1 | test F1 | proposal recall, dev, test | seeds", lines)


def deep_mpnet() -> str:
    """GENIA with a base-size encoder: dev F1 on the way, dev and test F1 at the end."""
    lines, titles = [], {f"deep_span/{grid}": spans for spans, (grid, _) in DEEP_SPANS.items()}
    titles |= {name: TRIED[name][0] for name in ("bundling/span", "bundling/bl-span", "deep_span/biaffine-cnn")}
    for name in MPNET_FILES:
        for system, title in titles.items():
            if runs := [run for run in rows(name) if run["recipe"] == system]:
                curve = [spread([run["curve"][epoch - 1][1] for run in runs]) for epoch in MPNET_EPOCHS]
                commits = ", ".join(dict.fromkeys(run["commit"] for run in runs))
                lines.append(f"{title} | {' | '.join(curve)} | {dev_and_test(runs)} | {len(runs)} | {commits}")
    runs = [run for name in MPNET_FILES for run in rows(name)]
    every = {title: [run["test"]["f1"] for run in runs if run["recipe"] == system] for system, title in titles.items()}
    twice = [f"{title} {spread(f1)} ({len(f1)} runs)" for title, f1 in every.items() if len(f1) > 3]
    table = markdown(f"spans | {curve_header(MPNET_EPOCHS)} | dev F1, best | test F1 | seeds | commit", lines)
    return f"{table}\n\nTest F1 over both repeats: {', '.join(twice)}."


def curve_header(epochs: tuple[int, ...]) -> str:
    """The columns of a curve."""
    return " | ".join(f"dev, epoch {epoch}" for epoch in epochs)


SYSTEMS_OF_JI = {"seq": "SeqNER", "bl-seq": "BL-SeqNER", "span": "SpanNER", "bl-span": "BL-SpanNER"}
BUNDLED_EPOCHS = (5, 10, 15, 20)


def bundling_mpnet() -> str:
    """NCBI-disease with a base-size encoder: dev F1 on the way, dev and test F1 at the end."""
    lines = []
    for name in ("seq", "bl-seq", "span", "bl-span"):
        runs = [run for run in rows("bundling-mpnet") if run["recipe"] == f"bundling/{name}"]
        curve = [spread([run["curve"][epoch - 1][1] for run in runs]) for epoch in BUNDLED_EPOCHS]
        lines.append(f"{SYSTEMS_OF_JI[name]} | {' | '.join(curve)} | {dev_and_test(runs)} | {len(runs)}")
    return markdown(f"NCBI-disease | {curve_header(BUNDLED_EPOCHS)} | dev F1, best | test F1 | seeds", lines)


def deep_reading() -> str:
    """Differences with their intervals, for all entities and for long ones."""
    lines = [
        f"{DEEP_CORPORA[row['corpus']]} | {row['entities']:,} ({row['subset']}, {row['part']}) | `{row['system']}` "
        f"| {interval(row['f1'], '')} | `{row['against']}` | {interval(row['difference'])} | {chance(row['p'])}"
        for row in rows("deep_reading")
        if row["system"] != row["against"]
    ]
    return markdown("corpus | entities | system | F1 | against | difference | p", lines)


def deep_roles() -> str:
    """Mean F1 by nested role."""
    roles = ("flat", "nested", "covering", "both")
    lines = []
    for row in rows("deep_reading"):
        if "roles" in row:
            cells = " | ".join(f"{row['roles'][role]:.1f}" for role in roles)
            lines.append(f"{DEEP_CORPORA[row['corpus']]} | `{row['system']}` | {cells}")
    return markdown(f"corpus | system | {' | '.join(roles)}", lines)


def deep_ablations() -> str:
    """GENIA with the paper's BiLSTM, and the difference to the row that each is a change of."""
    found = deep_runs("deep_ablations", "deep_accuracy")
    compared = {row["system"]: row for row in rows("deep_ablation_reading") if row["corpus"] == "genia"}
    lines = []
    for system, title in DEEP_ABLATIONS.items():
        if runs := found["genia", system]:
            against = "| |"
            if row := compared.get(system):
                other = DEEP_ABLATIONS[row["against"]]
                against = f"{other} | {interval(row['difference'])} | {chance(row['p'])}"
            lines.append(f"{title} | {dev_and_test(runs)} | {len(runs)} | {against}")
    return markdown("spans | dev F1 | test F1 | seeds | against | difference on test | p", lines)


def deep_cost() -> str:
    """A training step compared to the bare encoder's; proposals with their recall and F1 on GENIA's dev part."""
    lines = []
    for row in rows("deep_span"):
        least, most = row["spread"]
        lines.append(
            f"{row['row']} | {row.get('scope', '')} | ×{row['ratio']:.2f} | ×{least:.2f} to ×{most:.2f} "
            f"| {row['ms']:.1f} | {row['peak_mib']:,.0f} | {kept(row)}"
        )
    return markdown(
        "spans | candidates | times the bare step | least to greatest turn | ms | peak memory, MiB "
        "| GENIA dev: proposal recall, F1 (grid)",
        lines,
    )


def kept(row: Run) -> str:
    """What the proposals of a row keep: recall and F1 on GENIA's dev part at that budget, and F1 on the grid."""
    grids = {proposing: grid for grid, proposing in DEEP_SPANS.values()}
    system = row["row"].removeprefix("deep_span/")
    if system not in grids:
        return ""
    found = deep_runs("deep_accuracy")
    runs, grid = ([run for run in found["genia", name] if "test" in run] for name in (system, grids[system]))
    budget = float(row["scope"].split()[-3])
    f1 = [one["dev_f1"] for run in runs for one in run["budgets"] if one["budget"] == budget]
    if not f1 or not grid:
        return ""
    return f"{spread(recalls(runs, 'dev', budget))}, {spread(f1)} ({spread([run['dev']['f1'] for run in grid])})"


def deep_prediction() -> str:
    """Prediction on two threads compared to the bare encoder."""
    lines = [
        f"{row['row']} | {row.get('scope', '')} | ×{row['ratio']:.2f} | {row['ms']:,.0f}"
        for row in rows("deep_predict")
    ]
    return markdown("spans | candidates | times the bare encoder | ms", lines)


def deep_scaling() -> str:
    """The cost of the span part, by length of the sentence and by width."""
    lines = [
        f"{row['length']} | {row['scope']} | {row['span_ms'] / row['sentences']:.2f} | {row['peak_mib']:,.0f}"
        for row in rows("deep_scaling")
        if "scope" in row
    ]
    return markdown("words | candidates | span part, ms per sentence | peak memory, MiB", lines)


# Several corpora in one model: Oi and Miwa 2025

BIORED_TYPES = ("Disease", "Chemical", "Gene", "Variant", "Species", "CellLine")
LEAKS = {"none": "", "with": "with leaks", "without": "without leaks"}
CONDITIONAL = {
    ("single", "none"): "Single",
    ("multi", "with"): "Multi",
    ("multi", "without"): "Multi",
    ("multi-cvae", "with"): "Multi + CVAE",
    ("multi-cvae", "without"): "Multi + CVAE",
}
CONDITIONAL_ABLATIONS = {
    "multi": "Multi",
    "multi-cvae": "Multi + CVAE",
    "fixed": "Multi + CVAE (Fixed)",
    "unshared": "Multi + CVAE (Unshared)",
    "shared-label": "Multi + CVAE (Shared label)",
    "random": "Multi + CVAE (Random)",
    "multi-shared-label": "Multi (Shared label)",
    "single": "Single",
    "single-cvae": "Single + CVAE",
}
WITHOUT_CVAE = ("multi", "single", "multi-shared-label")
CONDITIONAL_PUBLISHED = {"single": 87.86, "multi": 93.22, "multi-cvae": 94.19}
"""Oi and Miwa 2025, Table 1, PubMedBERT, one run each, with leaks."""
USUAL_WEIGHT = "1e-4"


def conditional_runs() -> dict[tuple[str, str, str], list[Run]]:
    """The runs by variant, leaks, and the weight of the CVAE."""
    found: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
    for row in rows("conditional"):
        weight = row["settings"].get("terms.cvae.weight", USUAL_WEIGHT)
        found[row["recipe"].removeprefix("conditional/"), row["leaks"], weight].append(row)
    return found


def conditional() -> str:
    """Dev and test of BioRED, type by type."""
    found, lines = conditional_runs(), []
    for (name, leaks), title in CONDITIONAL.items():
        if runs := found[name, leaks, USUAL_WEIGHT]:
            types = (fmean(row["test_labels"][label]["f1"] for row in runs) for label in BIORED_TYPES)
            cells = " | ".join(f"{f1:.2f}" for f1 in types)
            lines.append(f"{title} | {LEAKS[leaks]} | {dev_and_test(runs)} | {cells} | {len(runs)}")
    return markdown(f"system | auxiliary files | dev F1 | test F1 | {' | '.join(BIORED_TYPES)} | seeds", lines)


def conditional_leaks() -> str:
    """The gain over Single with and without leaks, on leaking and on other test documents, as a finding."""
    found, lines, gains = conditional_runs(), [], {}

    def means(runs: list[Run]) -> list[float]:
        return [fmean(row[part]["f1"] for row in runs if row[part]) for part in ("test", "leaking", "others")]

    single = means(found["single", "none", USUAL_WEIGHT])
    for (name, leaks), title in CONDITIONAL.items():
        if name != "single":
            ours = means(found[name, leaks, USUAL_WEIGHT])
            parts = [mine - alone for mine, alone in zip(ours, single, strict=True)]
            gains[name, leaks] = parts[0]
            lines.append(f"{title}, {LEAKS[leaks]} | {' | '.join(f'{gain:+.2f}' for gain in parts)}")
    text = markdown("gain over Single, test F1 | all | 72 leaking documents | 28 others", lines)
    for name, title in (("multi", "Multi"), ("multi-cvae", "Multi + CVAE")):
        whole, clean = gains[name, "with"], gains[name, "without"]
        paper = CONDITIONAL_PUBLISHED[name] - CONDITIONAL_PUBLISHED["single"]
        share = f"{100 * (whole - clean) / whole:.0f} % of it" if whole > 0 else "more than all of it"
        text += (
            f"\n\n{title}: {whole:+.2f} over Single with leaks, {clean:+.2f} without; {share} is leakage here. "
            f"The paper has {paper:+.2f}, with leaks."
        )
    return text


def conditional_ablations() -> str:
    """Every condition of the CVAE, and its weight, without leaks."""
    found, lines = conditional_runs(), []
    for name, title in CONDITIONAL_ABLATIONS.items():
        leaks = "none" if name.startswith("single") else "without"
        for weight in sorted((w for n, k, w in found if (n, k) == (name, leaks)), key=float):
            runs = found[name, leaks, weight]
            lines.append(f"{title} | {'' if name in WITHOUT_CVAE else weight} | {dev_and_test(runs)} | {len(runs)}")
    return markdown("system | weight of the CVAE | dev F1 | test F1 | seeds", lines)


def conditional_corpora() -> str:
    """The tests of the other corpora, in their own labels."""
    found = conditional_runs()
    runs = {key: found[(*key, USUAL_WEIGHT)] for key in CONDITIONAL}
    shown = [key for key in CONDITIONAL if any("corpora" in row for row in runs[key])]
    names = dict.fromkeys(name for key in shown for row in runs[key] for name in row.get("corpora", ()))
    lines = []
    for name in names:
        cells = (spread([row["corpora"][name]["f1"] for row in runs[key]]) for key in shown)
        lines.append(f"{name} | {' | '.join(cells)}")
    titles = " | ".join(f"{CONDITIONAL[name, leaks]}, {LEAKS[leaks]}" for name, leaks in shown)
    return markdown(f"test F1 | {titles}", lines)


# Nguyen et al., Ji et al., Oi and Miwa after their repairs

SECOND = {
    "baseline": "Baseline",
    "supvib": "SupVIB",
    "supvib-spanreco": "SupVIB + SpanReco",
    "all": "All",
    "multi": "Multi",
    "multi-cvae": "Multi + CVAE",
    "seq": "SeqNER",
    "bl-seq": "BL-SeqNER",
}
SECOND_CORPORA = {"ncbi-disease": "NCBI-disease", "genia": "GENIA"}
BETA, GAMMA, ALPHA = "terms.compress.objective.beta", "terms.generate.weight", "terms.cvae.weight"
BETA_THEN = "3e-6"  # the recipe's own where a run set none


def second_runs(name: str) -> dict[tuple[str, str, str, str], list[Run]]:
    """The runs by corpus, variant, and two weights: of divergence and generation, or of the CVAE and none."""
    found: dict[tuple[str, str, str, str], list[Run]] = defaultdict(list)
    for row in rows(name):
        variant, chosen = row["recipe"].rpartition("/")[2], row["settings"]
        beta = chosen.get(BETA, BETA_THEN) if variant in ("supvib", "supvib-spanreco", "all") else ""
        found[row["corpus"], variant, chosen.get(ALPHA, beta), chosen.get(GAMMA, "")].append(row)
    order = list(SECOND)
    return dict(sorted(found.items(), key=lambda item: (order.index(item[0][1]), *map(number, item[0][2:]))))


def number(text: str) -> float:
    """A weight, or 0 for none."""
    return float(text or 0)


def against_first(corpus: str, part: str = "test", name: str = "second-significance") -> dict[str, str]:
    """The difference of each system to the one that it is compared with, its interval and p, by system."""
    return {
        row["system"]: f"{row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}] | {chance(row['p'])}"
        for row in reversed(rows(name))  # the first line of a system counts
        if (row["corpus"], row["part"]) == (corpus, part)
    }


def compress_generate_second(name: str = "compress_generate-second", pairs: str = "second-significance") -> str:
    """Dev and test F1 by weights, with the difference to the baseline, and what is written."""
    lines = []
    for corpus, title in SECOND_CORPORA.items():
        sure = against_first(corpus, name=pairs)
        for (of, variant, beta, gamma), runs in second_runs(name).items():
            if of == corpus:
                system = " ".join(filter(None, (variant, beta and f"beta {beta}", gamma and f"gamma {gamma}")))
                written = f"{fmean(run['bleu2'] for run in runs):.3f}" if "bleu2" in runs[0] else ""
                cells = f"{dev_and_test(runs)} | {sure.get(system, ' | ')} | {written} | {len(runs)}"
                lines.append(f"{title} | {SECOND[variant]} | {beta} | {gamma} | {cells}")
    return markdown(
        "corpus | setting | β | γ | dev F1 | test F1 | to the baseline, test | p | BLEU-2, dev | seeds", lines
    )


def conditional_second(name: str = "conditional-second", pairs: str = "second-significance") -> str:
    """Multi with and without the CVAE, by its weight; what its latents hold, and how much it needs the right label."""
    lines, sure = [], against_first("biored", name=pairs)
    for (_, variant, weight, _), runs in second_runs(name).items():
        figures = [run["figures"]["cvae"] for run in runs if run["figures"]]
        held = ["", ""]
        if figures:
            held = [f"{fmean(one['nats_per_span'] for one in figures):.2g}"]
            held.append(f"{100 * fmean(one['label_gain'] for one in figures):+.0f} %")
        cells = f"{dev_and_test(runs)} | {sure.get(f'{variant} {weight}', ' | ')} | {len(runs)}"
        lines.append(f"{SECOND[variant]} | {weight} | {' | '.join(held)} | {cells}")
    return markdown(
        "system | weight | nats per span | error with another label | dev F1 | test F1 | to Multi, test | p | seeds",
        lines,
    )


def bundling_tags() -> str:
    """The tagger on GENIA, alone and bundled, with tags that weigh per word."""
    sure, lines = against_first("genia"), []
    for (_, variant, *_), runs in reversed(second_runs("bundling-tags").items()):
        lines.append(f"{SECOND[variant]} | {dev_and_test(runs)} | {sure.get(variant, ' | ')} | {len(runs)}")
    return markdown("GENIA (nested) | dev F1 | test F1 | to SeqNER, test | p | seeds", lines[::-1])


# Discontinuous entities

JOINED_CORPORA = {"craft": "CRAFT", "genia-disc": "GENIA, discontinuous"}
JOINED_SYSTEMS = {
    "links": "links",
    "nearest-discontinuous": "rule, gap tuned on dev's discontinuous entities",
    "nearest-all": "rule, gap tuned on all dev entities",
    "split": "split",
    "hull": "hull",
    "drop": "drop",
}
JOINED_PARTS = {
    "all": "all entities",
    "sentences": "sentences with a discontinuous one",
    "discontinuous": "discontinuous alone",
    "continuous": "continuous alone",
}


def discontinuous() -> str:
    """Strict test F1 of every system on every part, mean and deviation over seeds."""
    f1: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    gaps: dict[tuple[str, str], set[int]] = defaultdict(set)
    for row in rows("discontinuous"):
        for system, figures in row["systems"].items():
            for part in JOINED_PARTS:
                f1[row["corpus"], system, part].append(figures["test"][part]["f1"])
            if "gap" in figures:
                gaps[row["corpus"], system].add(figures["gap"])
    lines = []
    for corpus, title in JOINED_CORPORA.items():
        for system, name in JOINED_SYSTEMS.items():
            if runs := f1[corpus, system, "all"]:
                chosen = ", ".join(map(str, sorted(gaps[corpus, system])))
                cells = " | ".join(spread(f1[corpus, system, part]) for part in JOINED_PARTS)
                lines.append(f"{title} | {name}{f' ({chosen})' if chosen else ''} | {cells} | {len(runs)}")
    return markdown(f"corpus | system | {' | '.join(JOINED_PARTS.values())} | seeds", lines)


def discontinuous_significance() -> str:
    """Links against the others: the difference of test F1 with its interval, and p."""
    lines = []
    for row in rows("discontinuous-significance"):
        if row["part"] in ("discontinuous", "continuous") and "links" in (row.get("first"), row.get("second")):
            other, sign = (row["second"], -1) if row["first"] == "links" else (row["first"], 1)
            low, high = sorted((sign * row["low"], sign * row["high"]))
            figures = f"{sign * row['difference']:+.2f} | {low:+.2f} to {high:+.2f} | {chance(row['p'])}"
            names = f"{JOINED_CORPORA[row['corpus']]} | {JOINED_PARTS[row['part']]} | {JOINED_SYSTEMS[other]}"
            lines.append(f"{names} | {figures}")
    return markdown("corpus | of | links against | difference | 95 % interval | p", lines)


def discontinuous_bundled() -> str:
    """Links with and without tags: F1 on dev and test, of all entities and of those in pieces, and the difference."""
    f1: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows("discontinuous-bundled"):
        for system, figures in row["systems"].items():
            for of in ("all", "discontinuous"):
                for part in ("dev", "test"):
                    f1[system, of, part].append(figures[part][of]["f1"])
    apart = {row["part"]: row for row in rows("discontinuous-bundled-significance") if "difference" in row}
    lines = []
    for of in ("all", "discontinuous"):
        cells = (spread(f1[system, of, part]) for part in ("dev", "test") for system in ("links", "bundled"))
        row = apart[of]
        difference = f"{row['difference']:+.2f} [{row['low']:+.2f}, {row['high']:+.2f}]"
        lines.append(f"{JOINED_PARTS[of]} | {' | '.join(cells)} | {difference} | {chance(row['p'])}")
    return markdown("of | dev: links | with tags | test: links | with tags | tags add, test | p", lines)


def discontinuous_intervals() -> str:
    """Test F1 on discontinuous entities alone, all seeds together, with the interval over documents."""
    lines = [
        f"{JOINED_CORPORA[row['corpus']]} | {JOINED_SYSTEMS[row['system']]} | {row['f1']:.2f} "
        f"| {row['low']:.2f} to {row['high']:.2f}"
        for row in rows("discontinuous-significance")
        if row["part"] == "discontinuous" and "system" in row
    ]
    return markdown("corpus | system | F1 on discontinuous entities | 95 % interval", lines)


def discontinuous_examples() -> str:
    """The outcomes of discontinuous test entities, with examples by document and characters."""
    lines = []
    for row in rows("discontinuous-examples"):
        shown = []
        for example in row["examples"]:
            places = ", ".join(f"{start}-{end}" for start, end in example["spans"])
            shown.append(f"*{example['text']}* ({example['label']}, {example['document']}: {places})")
        lines.append(f"{JOINED_CORPORA[row['corpus']]} | {row['kind']} | {row['count']} | {'; '.join(shown)}")
    return markdown("corpus | with links, first seed | how many | for example", lines)


def joining() -> str:
    """How long 200 fragments of one sentence take, by their links: all of one label, and shared out among ten."""
    found = {(row["links"], row["labels"]): row for row in rows("joining")}
    lines = []
    for links in dict.fromkeys(name for name, _ in found):
        one, ten = found[links, 1], found[links, 10]
        stopped = "yes" if one["capped"] else "no"
        times = f"{one['milliseconds']:.1f} | {ten['milliseconds']:.1f}"
        lines.append(f"{links} | {one['entities']:,} | {stopped} | {times}")
    return markdown("links | one label: entities | stopped early | ms | ten labels: ms", lines)
