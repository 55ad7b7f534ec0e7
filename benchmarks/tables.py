"""Tables from result files, written between their markers in the documents: python benchmarks/tables.py [--check]

`--check` changes nothing and fails where a document does not show what the results say.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import conditional_tables
import corpora_tables
import deep_tables
import discontinuous_tables
import label_tables
import leak_tables
import typed_tables
import vector_tables
from table_rows import rows, spread

ROOT = Path(__file__).parent.parent
PAGES = (
    "results",
    "lexicon",
    "compress_generate",
    "deep_span",
    "tuning",
    "label_map",
    "several_corpora",
    "vectors",
    "discontinuous",
    "conditional",
    "typed_spans",
    "leaks",
)
DOCUMENTS = ("README.md", *(f"docs/{page}.md" for page in PAGES))

CORPORA = {"ncbi-disease": "NCBI-disease", "bc5cdr": "BC5CDR", "wnut17": "WNUT17", "genia": "GENIA (nested)"}
ONE_TYPE = {"ncbi-disease": "NCBI-disease", "bc5cdr-disease": "BC5CDR-Disease", "bc5cdr-chemical": "BC5CDR-Chemical"}
TABLE_4 = {
    "baseline": "Baseline",
    "supvib-beta-0": "SupVIB₀",
    "supvib": "SupVIB",
    "supvib-spanreco": "SupVIB + SpanReco",
    "all": "All",
    "all-shared-spread": "All, shared σ",
    "all-no-sharing": "All, nothing shared",
}
SYSTEMS = {"seq": "SeqNER", "bl-seq": "BL-SeqNER", "span": "SpanNER", "bl-span": "BL-SpanNER"}


def bundling(name: str = "bundling") -> str:
    """Test F1 of the four systems of paper 002, and what bundling adds."""
    scores: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows(name):
        scores[row["corpus"], row["recipe"].removeprefix("bundling/")].append(row["test"]["f1"])
    lines = [
        f"| test F1 | {' | '.join(SYSTEMS.values())} | bundling adds (tags, spans) | seeds |",
        "|---|" + "---|" * (len(SYSTEMS) + 2),
    ]
    for corpus, title in CORPORA.items():
        if all(scores[corpus, system] for system in SYSTEMS):
            mean = {system: fmean(scores[corpus, system]) for system in SYSTEMS}
            gains = f"{mean['bl-seq'] - mean['seq']:+.2f}, {mean['bl-span'] - mean['span']:+.2f}"
            cells = " | ".join(spread(scores[corpus, system]) for system in SYSTEMS)
            counts = sorted({len(scores[corpus, system]) for system in SYSTEMS})
            lines.append(f"| {title} | {cells} | {gains} | {' to '.join(map(str, counts))} |")
    return "\n".join(lines)


def throughput() -> str:
    """The cost of prediction over the bare encoder."""
    lines = ["| what | device | times the floor | seconds | peak memory, MB |", "|---|---|---|---|---|"]
    for row in rows("throughput"):
        ratio = f"×{row['ratio']:.2f}" if row.get("ratio") is not None else ""
        lines.append(f"| {row['name']} | {row['device']} | {ratio} | {row['seconds']:.2f} | {row['peak_mb']:.0f} |")
    return "\n".join(lines)


def throughput_gpu() -> str:
    """Tensors to scores on a GPU, and texts to entities beside it."""
    lines = ["| what | device | times the floor | end to end | peak memory, MB |", "|---|---|---|---|---|"]
    for row in rows("throughput-gpu"):
        ratios = f"×{row['ratio']:.2f} | ×{row['end_to_end_ratio']:.2f}"
        lines.append(f"| {row['name']} | {row['device']} | {ratios} | {row['peak_mb']:.0f} |")
    return "\n".join(lines)


def lexicon_coverage() -> str:
    """The share of entities with synonyms, beside table 1 of paper 000."""
    shares: dict[tuple[str, str], list[str]] = defaultdict(list)
    umls: dict[str, list[str]] = defaultdict(list)
    for row in rows("lexicon-coverage"):
        shares[row["corpus"], row["lexicon"]].append(f"{row['synonym_coverage']:.2f} %")
        if row["lexicon"] == "MeSH":
            umls[row["corpus"]].append(f"{row['paper']:.2f} %")
    lines = ["| corpus | lexicon | train | dev | test |", "|---|---|---|---|---|"]
    for corpus, published in umls.items():
        lines.append(f"| {corpus} | UMLS 2017AA (paper 000, table 1) | {' | '.join(published)} |")
        lines += [f"| | {name} | {' | '.join(cells)} |" for (of, name), cells in shares.items() if of == corpus]
    return "\n".join(lines)


def lexicon() -> str:
    """The cost of building, opening and querying a lexicon."""
    titles = ("concepts", "names", "file", "built in", "opened in", "memory", "one term looked up in")
    lines = [f"| {' | '.join(titles)} |", "|---|---|---|---|---|---|---|"]
    for row in rows("lexicon"):
        counts = f"{row['concepts']:,} | {row['names']:,} | {row['file_mib']:.1f} MiB"
        opened = f"{1000 * row['load_seconds']:.0f} ms | {row['memory_mib']:.0f} MiB"
        lines.append(f"| {counts} | {row['make_seconds']:.1f} s | {opened} | {row['lookup_microseconds']:.0f} µs |")
    return "\n".join(lines)


def evaluation() -> str:
    """How long scoring and comparing take."""
    lines = ["| what | sentences | seconds | limit | peak memory, MB |", "|---|---|---|---|---|"]
    for row in rows("evaluation"):
        figures = f"{row['sentences']:,} | {row['seconds']:.2f} | {row['limit']} | {row['peak_mb']:,}"
        lines.append(f"| {row['name']} | {figures} |")
    return "\n".join(lines)


def compress_generate() -> str:
    """Dev and test F1 of the settings of paper 000's Table 4, with the difference to the baseline on test."""
    scores: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in rows("compress_generate"):
        for part in ("dev", "test"):
            scores[row["corpus"], row["recipe"].removeprefix("compress_generate/"), part].append(row[part]["f1"])
    sure = {
        (row["corpus"], row["system"]): row for row in rows("compress_generate-significance") if row["part"] == "test"
    }
    lines = ["| corpus | setting | dev F1 | test F1 | to the baseline | seeds |", "|---|---|---|---|---|---|"]
    for corpus, title in ONE_TYPE.items():
        for name, setting in TABLE_4.items():
            dev, test = scores[corpus, name, "dev"], scores[corpus, name, "test"]
            found = sure.get((corpus, name))
            gain = f"{found['difference']:+.2f} (p = {found['p_holm']:.3f})" if found else ""
            if dev and test:
                lines.append(f"| {title} | {setting} | {spread(dev)} | {spread(test)} | {gain} | {len(test)} |")
    return "\n".join(lines)


def compress_generate_writing() -> str:
    """BLEU-2 of regenerated dev entities with and without synonyms, and what the lexicon covers."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    covered = {row["corpus"]: row["synonyms"] for row in rows("compress_generate")}
    for row in rows("compress_generate"):
        if "bleu2" in row:
            found[row["corpus"], row["recipe"].removeprefix("compress_generate/")].append(row["bleu2"])
    writing = [name for name in TABLE_4 if name.startswith(("supvib-spanreco", "all"))]
    lines = [
        f"| BLEU-2, dev | {' | '.join(TABLE_4[name] for name in writing)} | entities with synonyms, train, dev, test |",
        "|---|" + "---|" * (len(writing) + 1),
    ]
    for corpus, title in ONE_TYPE.items():
        if corpus in covered:
            means = [f"{fmean(found[corpus, name]):.4f}" if found[corpus, name] else "" for name in writing]
            shares = ", ".join(f"{covered[corpus][part]:.1f} %" for part in ("train", "dev", "test"))
            lines.append(f"| {title} | {' | '.join(means)} | {shares} |")
    return "\n".join(lines)


def bottleneck() -> str:
    """What the bottleneck costs in prediction, against the linear head."""
    lines = ["| what | times the linear head | processor time | seconds |", "|---|---|---|---|"]
    for row in rows("bottleneck"):
        lines.append(f"| {row['name']} | ×{row['ratio']:.2f} | ×{row['ratio_cpu']:.2f} | {row['seconds']:.2f} |")
    return "\n".join(lines)


def synonyms() -> str:
    """Token recall of held-out synonyms, with synonym training and without."""
    lines = ["| seed | generations | All | SupVIB + SpanReco |", "|---|---|---|---|"]
    for row in rows("synonyms"):
        lines.append(
            f"| {row['seed']} | {row['generations']} | {100 * row['all']:.1f} % | {100 * row['spanreco']:.1f} % |"
        )
    return "\n".join(lines)


def tuning() -> str:
    """Tuned settings against a recipe's own: dev of the search, then dev and test of seeds it has not seen."""
    lines = ["| settings | dev F1, the search's seed | dev F1 | test F1 | seeds |", "|---|---|---|---|---|"]
    found = {row["kind"]: row for row in rows("tuning")}
    for name in ("default", "tuned") if found else ():
        runs = [row for row in rows("tuning") if row["kind"] == "run" and row["name"] == name]
        dev, test = (spread([row[part]["micro"]["f1"] for row in runs]) for part in ("dev", "test"))
        lines.append(f"| {name} | {found['search']['dev'][name]:.2f} | {dev} | {test} | {len(runs)} |")
    for row in [found["search"]] if found else []:
        trials = f"{row['trials']} trials ({row['pruned']} ended early) of {row['epochs']} epochs"
        trained = f"the first {row['sentences']:,} training sentences of {ONE_TYPE[row['corpus']]}"
        chosen = ", ".join(f"`{key}={value:.3g}`" for key, value in row["settings"].items())
        lines += [
            "",
            f"`{row['recipe']}`, encoder {row['encoder']}, on {trained}. The budget:",
            f"{trials} by {row['workers']} workers,",
        ]
        lines += [f"{row['trial_seconds'] / 60:.0f} minutes of training. Found:", f"{chosen}."]
    return "\n".join(lines)


TABLES: dict[str, Callable[[], str]] = {
    "lexicon": lexicon,
    "compress_generate": compress_generate,
    "compress_generate-writing": compress_generate_writing,
    "bottleneck": bottleneck,
    "synonyms": synonyms,
    "tuning": tuning,
    "lexicon-coverage": lexicon_coverage,
    "bundling": bundling,
    "bundling-first": lambda: bundling("bundling-first"),
    "bundling-second": lambda: bundling("bundling-second"),
    "partial-annotation": corpora_tables.partial_annotation,
    "evaluation": evaluation,
    "throughput": throughput,
    "throughput-gpu": throughput_gpu,
    "conditional": conditional_tables.results,
    "conditional-leaks": conditional_tables.leaks,
    "conditional-ablations": conditional_tables.ablations,
    "conditional-corpora": conditional_tables.corpora,
    "label-map": label_tables.label_map,
    "label-map-disagreements": label_tables.disagreements,
    "label-map-threshold": label_tables.threshold,
    "vectors-training": vector_tables.training,
    "vectors-nearest": vector_tables.neighbors,
    "vectors-opening": vector_tables.opening,
    "discontinuous": discontinuous_tables.accuracy,
    "discontinuous-significance": discontinuous_tables.significance,
    "discontinuous-intervals": discontinuous_tables.intervals,
    "discontinuous-examples": discontinuous_tables.examples,
    "joining": discontinuous_tables.joining,
    "typed-spans": typed_tables.typed_spans,
    "recurrent-spans": typed_tables.recurrent_spans,
    "leaks-corpora": leak_tables.corpora,
    "leaks-biored": leak_tables.biored,
    "leaks-speed": leak_tables.speed,
    "deep-accuracy": deep_tables.accuracy,
    "deep-reading": deep_tables.reading,
    "deep-roles": deep_tables.roles,
    "deep-ablations": deep_tables.ablations,
    "deep-cost": deep_tables.cost,
    "deep-scaling": deep_tables.scaling,
    "deep-predict": deep_tables.prediction,
}


def filled(text: str) -> str:
    """A document with every marked table as the results have it now."""
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- results:{name} -->\n).*?(<!-- /results -->)", re.DOTALL)
        made = table()
        text = pattern.sub(lambda found, made=made: f"{found[1]}{made}\n{found[2]}", text)
    return text


def main() -> None:
    """Fills or checks the documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    stale = []
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if filled(text) != text:
            stale.append(name)
            if not check:
                path.write_text(filled(text), encoding="utf-8")
    if check and stale:
        sys.exit(f"{', '.join(stale)}: tables differ from benchmarks/results; run python benchmarks/tables.py")


if __name__ == "__main__":
    main()
