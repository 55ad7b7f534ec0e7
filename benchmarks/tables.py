"""Tables from result files, written between their markers in the documents: python benchmarks/tables.py [--check]

`--check` changes nothing and fails if a document does not show the results.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

import bio_small_tables
import claims
import peers as race
import scale_tables
import system_tables
import vector_tables
from table_rows import markdown, rows, spread, told
from wingspan.training.choice import kept, winner_for

ROOT = Path(__file__).parent.parent
PAGES = (
    "results",
    "encoders",
    "data",
    "formats",
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
    "export",
    "choosing",
    "serving",
    "scale",
)
CARD = "models/wingspan-bio-small/README.md"
DOCUMENTS = ("README.md", "CONTRIBUTING.md", CARD, *(f"docs/{page}.md" for page in PAGES))

CORPORA = {"ncbi-disease": "NCBI-disease", "bc5cdr": "BC5CDR", "wnut17": "WNUT17", "genia": "GENIA (nested)"}
ONE_TYPE = {"ncbi-disease": "NCBI-disease", "bc5cdr-disease": "BC5CDR-Disease", "bc5cdr-chemical": "BC5CDR-Chemical"}
TABLE_4 = {
    "baseline": "Baseline",
    "supvib-beta-0": "SupVIB₀",
    "supvib": "SupVIB",
    "supvib-proposals": "SupVIB, proposals",
    "supvib-spanreco": "SupVIB + SpanReco",
    "all": "All",
    "all-shared-spread": "All, shared σ",
    "all-no-sharing": "All, nothing shared",
}
PARTIAL = {
    "full": "both types everywhere",
    "masked": "diseases in one half, chemicals in the other; silence is open",
    "unmasked": "the same halves; silence is taken for nothing",
}
KINDS_OF_DATA = {
    "flat": "flat entities",
    "nested": "nested entities (1 % or more)",
    "long": "long entities (1 % or more with over 16 words)",
    "discontinuous": "entities in pieces (0.5 % or more)",
    "several": "several corpora",
}
SIDES = {"dev": "train, dev", "test": "train, test", "dev-test": "dev, test"}
SYSTEMS = system_tables.SYSTEMS_OF_JI


def bundling(name: str = "bundling") -> str:
    """Test F1 of the four systems of Ji et al. 2022, and what bundling adds."""
    by_seed: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in rows(name):
        by_seed[row["corpus"], row["recipe"].removeprefix("bundling/")][row["seed"]] = row["test"]["f1"]
    scores: dict[tuple[str, str], list[float]] = {}
    for corpus in CORPORA:  # of seeds that all systems have
        seeds = set.intersection(*(set(by_seed[corpus, system]) for system in SYSTEMS))
        scores |= {(corpus, system): [by_seed[corpus, system][seed] for seed in sorted(seeds)] for system in SYSTEMS}
    lines = [
        f"| test F1 | {' | '.join(SYSTEMS.values())} | bundling adds (tags, spans) | seeds |",
        "|---|" + "---|" * (len(SYSTEMS) + 2),
    ]
    for corpus, title in CORPORA.items():
        if all(scores[corpus, system] for system in SYSTEMS):
            mean = {system: fmean(scores[corpus, system]) for system in SYSTEMS}
            gains = f"{mean['bl-seq'] - mean['seq']:+.2f}, {mean['bl-span'] - mean['span']:+.2f}"
            cells = " | ".join(spread(scores[corpus, system]) for system in SYSTEMS)
            lines.append(f"| {title} | {cells} | {gains} | {len(scores[corpus, 'seq'])} |")
    return "\n".join(lines)


VERSIONS = {
    "before": "before",
    "after": "after",
    "plain": "",
}
STAGES = ("batches", "copy", "forward", "backward", "optimizer", "dev")


def training_speed() -> str:
    """The seconds of a small training by stage, before and after, beside a plain loop."""
    lines = []
    for row in rows("training_speed"):
        version = VERSIONS[row["when"]]
        name = f"{row['system']}{f', {version}' if version else ''}"
        least, most = row["spread"]
        later = f"{row['seconds']:.2f}" if least == most else f"{row['seconds']:.2f} ({least:.2f} to {most:.2f})"
        stages = " | ".join(f"{row['stages'][stage]:.2f}" if "stages" in row else "" for stage in STAGES)
        device = (
            f"{row['launches']:.0f} | {row['waits']:.1f} | {row['device_ms']:.1f}" if "launches" in row else " | | "
        )
        lines.append(f"{name} | {row['first']:.2f} | {later} | {stages} | {device}")
    header = f"system | first turn | later turns | {' | '.join(STAGES)} | launches | waits | device, ms"
    return markdown(header, lines)


def laptop_cost() -> str:
    """The cost of training and prediction, twelve runs side by side, and of training one at a time."""
    beside, alone = (by_system(rows(name)) for name in ("laptop-beside", "laptop-cost"))
    lines = []
    for (corpus, title), (system, name) in product(LAPTOP.items(), ON_A_LAPTOP.items()):
        both, single = beside[corpus, *system], alone[corpus, *system]
        if both or single:
            costs = [f"{fmean(row['ms_per_sentence'] for row in runs):.1f}" if runs else "" for runs in (both, single)]
            speed = f"{fmean(row['words_per_second'] for row in both):,.0f}" if both else ""
            lines.append(f"{title} | {name} | {costs[0]} | {speed} | {costs[1]} | {len(single) or ''}")
    header = "corpus | system | training, CPU ms a sentence and epoch | words a CPU second | "
    return markdown(header + "training alone, CPU ms a sentence and epoch | seeds alone", lines)


LAPTOP = {
    "crossner/politics": "CrossNER politics",
    "wnut17": "WNUT17",
    "ncbi-disease": "NCBI-disease",
}
ON_A_LAPTOP = {
    ("baseline", "hashed"): "`baseline`, `hashed`",
    ("baseline", "vectors"): "`baseline`, `static:glove.6B.100d`",
    ("spaCy ner", "tok2vec"): "spaCy `ner`",
    ("spaCy spancat", "tok2vec"): "spaCy `spancat`",
}


def by_system(known: list[Any]) -> dict[tuple[str, str, str], list[Any]]:
    """Runs by corpus, recipe and encoder."""
    runs: dict[tuple[str, str, str], list[Any]] = defaultdict(list)
    for row in known:
        runs[row["corpus"], row["recipe"], row["encoder"]].append(row)
    return runs


def laptop() -> str:
    """What needs no download beside spaCy: scores. They were made on several machines; costs are in `laptop_cost`."""
    runs = by_system(rows("laptop"))
    lines = []
    for (corpus, title), (system, name) in product(LAPTOP.items(), ON_A_LAPTOP.items()):
        if known := runs[corpus, *system]:
            dev, test = (spread([row[part]["f1"] for row in known]) for part in ("dev", "test"))
            epochs = ", ".join(f"{row['best_epoch']}" for row in known)
            lines.append(f"{title} | {name} | {dev} | {test} | {epochs} of {known[0]['epochs']} | {len(known)}")
    return markdown("corpus | system | dev F1 | test F1 | best epochs | seeds", lines) if lines else ""


def peers() -> str:
    """Our recipes beside other libraries: a line for each system, the two corpora beside each other."""
    known = race.summary(rows("peers"))
    lines = {(line["system"], line["corpus"]): line for line in known}
    table = []
    for system in race.SYSTEMS:
        both = [found for corpus in race.CORPORA if (found := lines.get((system.name, corpus)))]
        if not both:
            continue
        name = f"**{system.name}**" if system.environment is None and "/" in system.name else system.name
        if any(line["reason"] for line in both):
            reason = next(line["reason"] for line in both if line["reason"])
            table.append(f"{name} | {system.kind} | {reason} | | | | | |")
            continue
        costs = [line["cost"] for line in both if line["cost"]]
        scores = [spread(line["f1"]) if "f1" in line else "not trained" for line in both]
        scores += [""] * (len(race.CORPORA) - len(both))
        rates = ", ".join(dict.fromkeys(f"{line['rate']:g}" for line in both if "rate" in line))
        figures = [
            " / ".join(f"×{cost['turns']['ratio']:.2f}" for cost in costs),
            " / ".join(f"{cost['training_cpu_seconds']:.0f}" for cost in costs),
            f"{max(cost['peak_mb'] for cost in costs):,} / {max(cost['training_peak_mb'] for cost in costs):,}"
            if costs
            else "",
            f"{fmean(cost['startup_seconds'] for cost in costs):.1f}" if costs else "",
        ]
        table.append(" | ".join([name, system.kind, *scores, *figures, rates]))
    header = (
        "system | classifies | NCBI-disease F1 | GENIA F1 | × the bare encoder | training, CPU s | peak MB | start, s"
    )
    return "\n\n".join([markdown(f"{header} | rate", table), race.caption(known)])


def fuzz() -> str:
    """Damaged files by format, as the last run of each has them."""
    last = {row["format"]: row for row in rows("fuzz")}.values()
    counts = ("files", "read", "reported", "refused", "defects")
    total = {key: sum(row[key] for row in last) for key in counts}
    lines = [f"`{row['format']}` | {' | '.join(f'{row[key]:,}' for key in counts)}" for row in last]
    return markdown(
        f"format | {' | '.join(counts)}", [*lines, f"all | {' | '.join(f'{total[key]:,}' for key in counts)}"]
    )


FAULTS = {
    "first": "of the first trial",
    "listed": "that no test noticed in a trial with 211",
    "new": "picked over the whole code",
    "subtle": "picked by reading, in subtle places",
}


def faults() -> str:
    """Single-line faults by group, and how many of them a test notices, as the last trial of each has it."""
    last = {(row["group"], row["file"], row["line"], row["wrong"]): row["noticed_by"] for row in rows("faults")}
    counts = {group: [found for key, found in last.items() if key[0] == group] for group in FAULTS}
    counts["all"] = list(last.values())
    return markdown(
        "faults | tried | noticed | %",
        [
            f"{FAULTS.get(group, group)} | {len(own)} | {len(own) - own.count(None)} | "
            f"{100 * (len(own) - own.count(None)) / len(own):.0f}"
            for group, own in counts.items()
            if own
        ],
    )


def splitters() -> str:
    """Given words against raw text, cut as before and as training chose."""
    lines = []
    for row in rows("splitters"):
        f1 = {key: row[key]["f1"] for key in ("given", "raw_words", "raw_chosen")}
        corpus = CORPORA.get(row["corpus"], row["corpus"].replace("crossner/", "CrossNER "))
        cells = [corpus, row["encoder"], row["raw_text"], f"{f1['given']:.2f}", f"{f1['raw_words']:.2f}"]
        lines.append(" | ".join([*cells, f"{f1['raw_chosen']:.2f} (`{row['splitter']}`)"]))
    return markdown("corpus | encoder | raw text | given words | raw, `words` | raw, the chosen splitter", lines)


def throughput() -> str:
    """The cost of prediction over the bare encoder."""
    return ends_to_ends("throughput")


def throughput_recipes() -> str:
    """The same for every kind of recipe, of one call."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows("throughput-recipes"):
        found.setdefault(row["name"].split(", ")[2], {})["texts" if " texts, " in row["name"] else "words"] = row
    lines = []
    for recipe, kinds in found.items():
        ratios = (f"×{row['ratio']:.2f} ({row['spread'][0]:.2f} to {row['spread'][1]:.2f})" for row in kinds.values())
        lines.append(f"`{recipe}` | {' | '.join(ratios)} | {kinds['texts']['sentences_per_second']}")
    return markdown("recipe | texts, times the floor | words | texts a second", lines)


def throughput_gpu() -> str:
    """The same on a GPU."""
    return ends_to_ends("throughput-gpu")


def ends_to_ends(name: str) -> str:
    """Texts to entities beside the floor, and each stage by itself."""
    lines = []
    for row in rows(name):
        if row["ratio"] is not None:
            ratio = f"×{row['ratio']:.2f} ({row['spread'][0]:.2f} to {row['spread'][1]:.2f})"
            stages = row.get("stages", {})
            segment = f"{stages['segment'] + stages['tokenize']:.2f}" if stages else ""
            others = " | ".join(f"{stages[stage]:.2f}" if stages else "" for stage in ("collate", "device", "decode"))
            floor = f"{row['floor_seconds']:.2f}" + (f", by {row['floor_batch']}" if "floor_batch" in row else "")
            seconds = f"{row['seconds']:.2f} | {floor} | {row['sentences_per_second']:,}"
            lines.append(f"{row['name']} | {ratio} | {seconds} | {segment} | {others} | {row['peak_mb']:.0f}")
    stages_named = "segment and tokenize | collate | device | decode"
    head = f"what | times the floor | seconds | floor | sentences a second | {stages_named} | peak memory, MB"
    return markdown(head, lines)


def long_documents() -> str:
    """One document of many windows."""
    lines = []
    for row in rows("throughput"):
        if row["ratio"] is None:
            rest = f"{row['grown_mb']:.0f} | {row['windows']:,}" if "windows" in row else " | "
            lines.append(f"{row['name']} | {row['seconds']:.2f} | {row['cpu_seconds']:.2f} | {rest}")
    return markdown("what | seconds | seconds of CPU | memory grows by, MB | windows", lines)


def segmenting() -> str:
    """Words a second into sentences, by the rules as they are and as they were."""
    lines = [
        f"{row['name']} | {row['words_a_second']:,} | {row['words_a_second_before']:,}"
        for row in rows("segmenting")
        if "words_a_second" in row
    ]
    return markdown("what | words a second of CPU | before", lines)


def onnx() -> str:
    """Exported models beside their models: entities, scores, speed, and what 8 bits cost."""
    lines = []
    for row in rows("onnx"):
        small = row["int8"]
        same = f"{row['entities']:,}, {row['different']} differ | {row['largest']:.0e} | {row['cold_seconds'][0]:.2f} s"
        speed = f"{row['torch_rate']:.0f} | {row['onnx_rate']:.0f} | ×{row['gain']:.2f}"
        cost = f"{small['f1'] - row['f1']:+.2f}" if row["f1"] > 5 else "–"  # of a model that finds nothing
        bits = f"{row['mb']:.1f} → {small['mb']:.1f} | ×{small['gain']:.2f} | {cost}"
        lines.append(f"`{row['recipe']}` | {row['encoder']} | {same} | {speed} | {bits}")
    head = "recipe | encoder | entities | scores differ by | first entity after | torch, sentences/s | ONNX | gain"
    head += " | int8, MB | int8 gain | F1"
    return markdown(head, lines)


def precision() -> str:
    """What fewer bits save on a CPU, and what they cost."""
    exact = {row["corpus"]: row for row in rows("precision") if row["precision"] == "float32"}
    lines = []
    for row in rows("precision"):
        plain = exact[row["corpus"]]
        costs = f"×{row['ratio']:.2f} | ×{row['ratio'] / plain['ratio']:.2f}"
        quality = f"{row['f1']:.2f} | {row['f1'] - plain['f1']:+.2f} | {row['same_documents']:.1f} %"
        lines.append(f"{row['corpus']} | {row['precision']} | {costs} | {quality}")
    return markdown("test | precision | times the floor | times float32 | F1 | difference | sentences alike", lines)


def lexicon_coverage() -> str:
    """The share of entities with synonyms, beside table 1 of Nguyen et al. 2023."""
    shares: dict[tuple[str, str], list[str]] = defaultdict(list)
    umls: dict[str, list[str]] = defaultdict(list)
    for row in rows("lexicon-coverage"):
        shares[row["corpus"], row["lexicon"]].append(f"{row['synonym_coverage']:.2f} %")
        if row["lexicon"] == "MeSH":
            umls[row["corpus"]].append(f"{row['paper']:.2f} %")
    lines = ["| corpus | lexicon | train | dev | test |", "|---|---|---|---|---|"]
    for corpus, published in umls.items():
        lines.append(f"| {corpus} | UMLS 2017AA (Nguyen et al. 2023, table 1) | {' | '.join(published)} |")
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
    lines = [
        f"{row['name']} | {row['sentences']:,} | {row['seconds']:.2f} | {row['limit']} | {row['peak_mb']:,}"
        for row in rows("evaluation")
    ]
    return markdown("what | sentences | seconds | limit | peak memory, MB", lines)


def compress_generate() -> str:
    """Dev and test F1 of the settings of Nguyen et al. 2023's Table 4, with the difference to the baseline on test."""
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
    """The cost of the bottleneck in prediction, compared to the linear head."""
    lines = [
        f"{row['name']} | ×{row['ratio']:.2f} | ×{row['ratio_cpu']:.2f} | {row['seconds']:.2f}"
        for row in rows("bottleneck_cost")
    ]
    return markdown("what | times the linear head | processor time | seconds", lines)


def synonyms() -> str:
    """Token recall of held-out synonyms, with synonym training and without."""
    lines = [
        f"{row['seed']} | {row['generations']} | {100 * row['all']:.1f} % | {100 * row['spanreco']:.1f} %"
        for row in rows("synonyms")
    ]
    return markdown("seed | generations | All | SupVIB + SpanReco", lines)


def partial_annotation() -> str:
    """BC5CDR with half of its annotation, and two meanings of silence."""
    found = defaultdict(list)
    for row in rows("partial_annotation"):
        found[row["system"]].append(row["test"])
    lines = []
    for system, title in PARTIAL.items():
        figures = " | ".join(spread([run[name] for run in found[system]]) for name in ("f1", "precision", "recall"))
        lines.append(f"{title} | {figures} | {len(found[system])}")
    return markdown("training annotation | test F1 | precision | recall | seeds", lines)


def label_map() -> str:
    """Right and confident suggestions, from all evidence and from each kind alone."""
    lines = []
    for row in rows("label_map", "biomedical"):
        share = f"{100 * row['confident_right'] / max(1, row['confident']):.0f} %"
        some = row["with_training_data"]
        lines.append(
            f"{row['witnesses']} | {row['right']} | {row['confident']} | {row['confident_right']} ({share}) "
            f"| {some['confident']}, {some['confident_right']}"
        )
    header = "evidence | right of 31 | confident | right of these | the 28 with training data: confident, right"
    return markdown(header, lines)


def label_map_disagreements() -> str:
    """Where all evidence together disagrees with the paper."""
    lines = [
        f"{one['corpus']} | {one['label']} | {one['suggested'] or '-'} | {one['confidence']:.2f} "
        f"| {one['reference'] or '-'}"
        for row in rows("label_map", "biomedical")
        if row["witnesses"] == "all evidence"
        for one in row["disagreements"]
    ]
    return markdown("corpus | label | suggested | confidence | Oi and Miwa 2025, Table 7", lines)


def label_map_threshold() -> str:
    """CrossNER: how many suggestions reach a threshold, and how many of these are right."""
    judged, lines = rows("label_map", "crossner"), []
    for threshold in (0, 0.4, 0.5, 0.6, 0.7, 0.8):
        sure = [row for row in judged if row["confidence"] >= threshold]
        right = sum(row["suggested"] == row["right"] for row in sure)
        share = f"{100 * right / max(1, len(sure)):.0f} %"
        lines.append(f"{threshold:g} | {len(sure)} of {len(judged)} | {right} ({share})")
    return markdown("confidence from | suggestions | right", lines)


def leaks_corpora() -> str:
    """Corpora that share documents, ids or many sentences with their own dev and test parts."""
    lines = []
    for row in rows("leaks", "corpus"):
        if row["leaking_train_documents"] or row["shared_ids"] or row["equal_but_short"]:
            dropped = row["leaking_train_documents"] if row["sides"] != "dev-test" else "–"
            kinds = " | ".join(map(str, row["kinds"].values()))
            sides = f"{row['corpus']} | {SIDES[row['sides']]} | {row['against_documents']:,}"
            rest = f"{row['shared_ids']} | {row['equal_sentences']} | {row['equal_but_short']}"
            lines.append(f"{sides} | {kinds} | {dropped} | {rest}")
    return markdown(
        "corpus | sides | documents | exact | normalized | near | training documents dropped | same id, other text "
        "| equal sentences | equal but short",
        lines,
    )


def leaks_biored() -> str:
    """How much of BioRED the auxiliary corpora of Oi and Miwa 2025 hold."""
    lines = []
    for row in rows("leaks", "biored"):
        by_corpus: Counter[str] = Counter()
        for file, kinds in row["train_files"].items():
            by_corpus[file.split("/")[0]] += sum(kinds.values())
        named = ", ".join(f"{name} {count}" for name, count in by_corpus.most_common())
        mentions = row["mentions"]
        lines.append(
            f"`{row['files']}` | {row['part']} | {row['documents']} of {row['against_documents']} | "
            f"{row['near_documents']} | {row['covered_documents']} | {named} | {mentions['in_leaking_documents']:,} of "
            f"{mentions['of']:,} | {mentions['annotated_in_training']:,} | {row['seconds']:.1f}"
        )
    return markdown(
        "files | part | exact and normalized | near | sentence by sentence | by corpus | mentions in them "
        "| annotated there too | seconds",
        lines,
    )


def leaks_speed() -> str:
    """Generated documents: time and memory."""
    lines = []
    for row in rows("leaks", "generated"):
        memory = f"{row['peak_mb']:,} ({row['peak_mb_before']:,} before)"
        copies = f"{row['near']} of {row['edited']}"
        lines.append(f"{row['train']:,} | {row['against']:,} | {copies} | {row['seconds']:.0f} | {memory}")
    return markdown("training documents | scored documents | edited copies found | seconds | peak memory, MB", lines)


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
            f"{trials} by {row['workers']} processes,",
        ]
        lines += [f"{row['trial_seconds'] / 60:.0f} minutes of training. Found:", f"{chosen}."]
    return "\n".join(lines)


def choices() -> str:
    """What `auto` chooses, by kind of data and encoder, and how far ahead it was on dev."""
    encoders = ("minilm", "e5-small", "all-mpnet-base-v2")
    lines = []
    for kind, words in KINDS_OF_DATA.items():
        cells = [words]
        for encoder in encoders:
            winner = winner_for(kind, encoder)
            about = []
            if winner.lead is not None:
                about.append(f"{'+' if winner.faster is None else '-'}{winner.lead:.2f}")
                about += ["may be chance"] if winner.chance else []
            if winner.faster is not None:
                timed = winner.runs[0]["cost_encoder"]
                elsewhere = "" if timed == winner.encoder else f" with {timed}"
                about.append(f"{winner.faster:.1f} times as fast{elsewhere}")
            about += [] if winner.encoder == encoder else [f"F1 with {winner.encoder}"]
            cells.append(f"`{winner.recipe}`" + (f" ({', '.join(about)})" if about else ""))
        lines.append(" | ".join(cells))
    return markdown(" | ".join(["your data", *(f"encoder like {name}" for name in encoders)]), lines)


SHOWN = 4  # recipes in a row


def choices_evidence() -> str:
    """The dev scores that `auto` goes by: the best recipes of each corpus and encoder."""
    found: defaultdict[tuple[str, str, str], list[tuple[str, list[float]]]] = defaultdict(list)
    for row in kept():
        found[KINDS_OF_DATA[row["kind"]], row["corpus"], row["encoder"]].append((row["recipe"], row["dev"]))
    lines = []
    for (words, corpus, encoder), runs in sorted(
        found.items(), key=lambda item: list(KINDS_OF_DATA.values()).index(item[0][0])
    ):
        best = sorted(runs, key=lambda run: -fmean(run[1]))
        cells = [f"`{recipe}` {spread(dev)} ({len(dev)})" for recipe, dev in best[:SHOWN]]
        lines.append(f"{words} | {corpus} | {encoder} | {', '.join(cells)} | {len(best)}")
    return markdown("your data | dev of | encoder | the best, dev F1 (seeds) | recipes in all", lines)


def serving() -> str:
    """The service under load: the newest row of each part, in words."""
    parts = {row["part"]: row for row in rows("serving")}
    lines = []
    if row := parts.get("rate"):
        rates = f"{row['texts_per_second']:.0f} texts a second, offline {row['offline_texts_per_second']:.0f}"
        held = f"{100 * row['share']:.0f} %" if row["pinned"] else "other work on the cores"
        held += f"; {100 * row['share_cpu']:.0f} % by processor time"
        lines.append(f"{row['clients']} clients, saturated | {rates} ({held}) | {answered(row)}")
    if row := parts.get("steady"):
        most, rest = (f"{', '.join(f'{mb:.0f}' for mb in row[name])} MB" for name in ("peak_mb", "rest_mb"))
        memory = f"most memory in each tenth: {most}; at rest after it: {rest}"
        lines.append(f"{row['answers']:,} requests of one text, 16 clients | {memory} | {answered(row)}")
    if row := parts.get("overload"):
        refused = f"{row['other'].get('429', 0):,} requests got 429 at once"
        lines.append(f"{row['clients']} clients, a queue of {row['queue']}, none waits | {refused} | {answered(row)}")
    if row := parts.get("leaving"):
        times = f"{row['seconds_alone']:.1f} s alone, {row['seconds_beside']:.1f} s beside {row['left']} that left"
        lines.append(f"16 clients with 150 requests beside others that go away | {times} | {answered(row)}")
    if row := parts.get("shutdown"):
        ended = f"ended with code {row['exit_code']} after {row['seconds_to_end']:.1f} s"
        lines.append(f"SIGTERM with {row['in_flight']} requests in flight | {ended} | {answered(row)}")
    return markdown("load | outcome | answers", lines)


def answered(row: dict[str, Any]) -> str:
    """How many answers there were, what was wrong with them, and how long they took."""
    others = [f"{count:,} × {status}" for status, count in row["other"].items() if status != "429"]
    times = [f"p50 {row['p50_s']:.2f} s, p99 {row['p99_s']:.2f} s"] if "p50_s" in row else []
    counts = [f"{row['answers']:,}, {row['wrong']} wrong, {row['lost']} lost", *others, *times]
    return "; ".join(counts)


TABLES: dict[str, Callable[[], str]] = {
    "choices": choices,
    "choices-evidence": choices_evidence,
    "claims": claims.claims,
    "bundling-mpnet": system_tables.bundling_mpnet,
    "lexicon": lexicon,
    "compress_generate": compress_generate,
    "compress_generate-writing": compress_generate_writing,
    "compress_generate-second": system_tables.compress_generate_second,
    "compress_generate-mpnet": partial(
        system_tables.compress_generate_second, "compress_generate-mpnet", "mpnet-second-significance"
    ),
    "bottleneck": bottleneck,
    "synonyms": synonyms,
    "tuning": tuning,
    "lexicon-coverage": lexicon_coverage,
    "bundling": bundling,
    "bundling-first": lambda: bundling("bundling-first"),
    "bundling-tags": system_tables.bundling_tags,
    "bundling-second": lambda: bundling("bundling-second"),
    "partial-annotation": partial_annotation,
    "evaluation": evaluation,
    "training-speed": training_speed,
    "throughput": throughput,
    "throughput-recipes": throughput_recipes,
    "throughput-gpu": throughput_gpu,
    "long-documents": long_documents,
    "laptop-cost": laptop_cost,
    "segmenting": segmenting,
    "scale": scale_tables.scale,
    "scale-cost": scale_tables.scale_cost,
    "precision": precision,
    "onnx": onnx,
    "conditional": system_tables.conditional,
    "conditional-second": system_tables.conditional_second,
    "conditional-mpnet": partial(system_tables.conditional_second, "conditional-mpnet", "mpnet-second-significance"),
    "conditional-leaks": system_tables.conditional_leaks,
    "conditional-ablations": system_tables.conditional_ablations,
    "conditional-corpora": system_tables.conditional_corpora,
    "label-map": label_map,
    "label-map-disagreements": label_map_disagreements,
    "label-map-threshold": label_map_threshold,
    "bio-small-tests": bio_small_tables.tests,
    "bio-small-types": bio_small_tables.types,
    "bio-small-distillation": bio_small_tables.distillation,
    "bio-small-compression": bio_small_tables.compression,
    "bio-small-robustness": bio_small_tables.robustness,
    "bio-small-costs": bio_small_tables.costs,
    "vectors-training": vector_tables.training,
    "vectors-nearest": vector_tables.neighbors,
    "vectors-opening": vector_tables.opening,
    "discontinuous": system_tables.discontinuous,
    "discontinuous-significance": system_tables.discontinuous_significance,
    "discontinuous-bundled": system_tables.discontinuous_bundled,
    "discontinuous-intervals": system_tables.discontinuous_intervals,
    "discontinuous-examples": system_tables.discontinuous_examples,
    "joining": system_tables.joining,
    "typed-spans": system_tables.typed_spans,
    "recurrent-spans": system_tables.recurrent_spans,
    "laptop": laptop,
    "peers": peers,
    "fuzz": fuzz,
    "faults": faults,
    "splitters": splitters,
    "leaks-corpora": leaks_corpora,
    "leaks-biored": leaks_biored,
    "leaks-speed": leaks_speed,
    "combinations": system_tables.combinations,
    "combinations-added": system_tables.combinations_added,
    "combinations-tested": system_tables.combinations_tested,
    "combinations-tested-cnn": partial(system_tables.combinations_tested, "deep_span/biaffine-cnn"),
    "deep-accuracy": system_tables.deep_accuracy,
    "deep-reading": system_tables.deep_reading,
    "deep-mpnet": system_tables.deep_mpnet,
    "deep-roles": system_tables.deep_roles,
    "deep-ablations": system_tables.deep_ablations,
    "deep-cost": system_tables.deep_cost,
    "deep-scaling": system_tables.deep_scaling,
    "deep-predict": system_tables.deep_prediction,
    "serving": serving,
}


MADE_OF: dict[str, tuple[str, ...]] = {
    "compress_generate": ("compress_generate",),
    "compress_generate-second": ("compress_generate-second",),
    "compress_generate-mpnet": ("compress_generate-mpnet",),
    "bundling": ("bundling",),
    "bundling-first": ("bundling-first",),
    "bundling-second": ("bundling-second",),
    "bundling-tags": ("bundling-tags",),
    "bundling-mpnet": ("bundling-mpnet",),
    "conditional": ("conditional",),
    "conditional-second": ("conditional-second",),
    "conditional-mpnet": ("conditional-mpnet",),
    "conditional-leaks": ("conditional",),
    "conditional-ablations": ("conditional",),
    "conditional-corpora": ("conditional",),
    "discontinuous": ("discontinuous",),
    "discontinuous-bundled": ("discontinuous-bundled",),
    "typed-spans": ("typed_spans",),
    "combinations": ("combinations",),
    "combinations-added": ("combinations", "combinations-significance"),
    "combinations-tested": ("combinations", "combinations-significance"),
    "combinations-tested-cnn": ("combinations", "combinations-significance"),
    "deep-accuracy": ("deep_accuracy",),
    "deep-mpnet": system_tables.MPNET_FILES,
    "deep-ablations": ("deep_ablations", "deep_accuracy"),  # one of its rows is there
    "deep-reading": ("deep_accuracy",),
    "deep-roles": ("deep_accuracy",),
    "deep-cost": ("deep_span", "deep_accuracy"),  # its last column
    "deep-scaling": ("deep_scaling",),
    "deep-predict": ("deep_predict",),
    "discontinuous-significance": ("discontinuous",),
    "discontinuous-intervals": ("discontinuous",),
    "discontinuous-examples": ("discontinuous",),
    "compress_generate-writing": ("compress_generate",),
    "synonyms": ("synonyms",),
    "bottleneck": ("bottleneck_cost",),
    "laptop": ("laptop",),
    "laptop-cost": ("laptop-cost",),
    "precision": ("precision",),
    "training-speed": ("training_speed",),
    "throughput": ("throughput",),
    "throughput-recipes": ("throughput-recipes",),
    "throughput-gpu": ("throughput-gpu",),
    "recurrent-spans": ("recurrent_spans",),
    "long-documents": ("throughput",),
    "segmenting": ("segmenting",),
    "evaluation": ("evaluation",),
    "onnx": ("onnx",),
    "splitters": ("splitters",),
    "tuning": ("tuning",),
    "partial-annotation": ("partial_annotation",),
}
"""The result files of tables, for the line below them."""
SYSTEMS_OF = {
    "combinations-tested": {system_tables.CHOSEN, *system_tables.PAPERS},
    "combinations-tested-cnn": {"deep_span/biaffine-cnn", *system_tables.PAPERS},
}
"""Of tables that show some of the systems in their files, which ones."""


def made_of(name: str) -> list[dict[str, Any]]:
    """The lines that a table is made of."""
    found = [row for file in MADE_OF.get(name, ()) for row in rows(file)]
    return [row for row in found if name not in SYSTEMS_OF or row.get("recipe", row.get("system")) in SYSTEMS_OF[name]]


def filled(text: str) -> str:
    """A document with every marked table as the results have it now."""
    for name, table in TABLES.items():
        pattern = re.compile(rf"(<!-- results:{name} -->\n).*?(<!-- /results -->)", re.DOTALL)
        made = told(table(), made_of(name))
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
