"""The papers' claims beside our differences: one table, made of the paired comparisons that are kept.

A difference is that of mean strict F1 on the same test articles, with its 95 % interval; runs are drawn, too. The
verdict follows from the interval alone: whether it excludes nothing (0), and whether it excludes the published gain.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from table_rows import chance, markdown, rows

Row = dict[str, Any]


class Pair(NamedTuple):
    """Where a comparison is kept: a result file, and what its row has."""

    file: str
    has: dict[str, Any]

    def row(self) -> Row | None:
        """Its row; None while nobody has run it."""
        return next((row for row in rows(self.file) if all(row.get(name) == it for name, it in self.has.items())), None)


def difference(row: Row) -> tuple[float, float, float, float, int]:
    """Difference, lower and upper end, p, seeds."""
    if isinstance(row["difference"], list):
        return (*row["difference"], row["p"], row["runs"])
    seeds = row["seeds"]
    fewest = min(seeds) if "p" in row else len(seeds)  # of each system, or their names
    return row["difference"], row["low"], row["high"], row.get("p", row.get("p_bootstrap", 1.0)), fewest


SENTENCES = ("ncbi-disease", "bc5cdr", "litbank")
"""Corpora that number their sentences only, or have too few articles: older comparisons drew their sentences."""


class Claim(NamedTuple):
    """What a paper says a part adds to F1 on one corpus."""

    says: str
    corpus: str
    published: float | None
    """The gain in F1; None where the paper has a figure without numbers."""
    base: Pair | None
    small: Pair | None
    remark: str = ""
    """What is particular about the small encoder's runs."""
    gain: str = "published one"
    """What the published figure is, where it is not the gain of this system on this corpus."""


def mpnet(corpus: str, first: str, second: str) -> Pair:
    """A comparison with the base-size encoder."""
    return Pair("mpnet-significance", {"corpus": corpus, "part": "test", "first": first, "second": second})


def second(corpus: str, system: str, against: str) -> Pair:
    """A comparison of the second round, after the repairs."""
    return Pair("second-significance", {"corpus": corpus, "part": "test", "system": system, "against": against})


def reading(corpus: str, system: str, against: str, part: str = "test", subset: str = "all") -> Pair:
    """A comparison of span vectors with a small encoder."""
    has = {"corpus": corpus, "part": part, "subset": subset, "system": system, "against": against}
    return Pair("deep_reading", has)


def part_of_genia(system: str, subset: str) -> Pair:
    """A comparison of deep spans with biaffine ones where the paper sees most."""
    return Pair("deep-subsets", {"subset": subset, "system": system, "against": BIAFFINE})


def mpnet_again(corpus: str, system: str, against: str) -> Pair:
    """A comparison with the base-size encoder, of runs whose predictions were kept."""
    has = {"corpus": corpus, "part": "test", "system": system, "against": against}
    return Pair("mpnet-second-significance", has)


def combined(corpus: str, system: str, against: str) -> Pair:
    """A comparison of systems that were run beside combinations of them, with a small encoder."""
    return Pair("combinations-significance", {"corpus": corpus, "part": "test", "system": system, "against": against})


DEEP, SHALLOW, BIAFFINE = "deep_span/no-bilstm", "deep_span/shallow-max-no-bilstm", "deep_span/biaffine"
JI, ZHU = "Ji et al. 2022: bundling adds to", "Zhu et al. 2023: deep spans beat"
OURS = "not in a paper: deep spans beat"
ALL = "all beta 3e-6 gamma 1e-6"
NGUYEN, OI = "Nguyen et al. 2023: bottleneck, reconstruction and synonyms add", "Oi and Miwa 2025: the autoencoder adds"
BUNDLED = ("bundling/bl-span", "bundling/span")
CLAIMS = (
    Claim(
        f"{JI} spans",
        "NCBI-disease",
        0.48,
        mpnet("ncbi-disease", "bundling/span", "bundling/bl-span"),
        combined("ncbi-disease", *BUNDLED),
    ),
    Claim(f"{JI} spans", "BC5CDR", 0.49, None, combined("bc5cdr", *BUNDLED)),
    Claim(
        f"{JI} spans",
        "GENIA",
        0.88,
        mpnet_again("genia", *BUNDLED),
        combined("genia", *BUNDLED),
        gain="gain of another span model",
    ),
    Claim(
        f"{JI} tags",
        "NCBI-disease",
        0.92,
        mpnet("ncbi-disease", "bundling/seq", "bundling/bl-seq"),
        combined("ncbi-disease", "bundling/bl-seq", "bundling/seq"),
    ),
    Claim(f"{JI} tags", "GENIA", 0.88, None, second("genia", "bl-seq", "seq"), gain="average of eleven other corpora"),
    Claim(
        f"{ZHU} shallow",
        "GENIA",
        2.02,
        mpnet_again("genia", DEEP, SHALLOW),
        reading("genia", "no-bilstm", SHALLOW[10:]),
        "e5-small",
    ),
    Claim(
        f"{ZHU} biaffine",
        "GENIA",
        0.53,
        mpnet_again("genia", DEEP, BIAFFINE),
        combined("genia", "deep_span/depth-2-no-bilstm", BIAFFINE),
        "two deep layers",
    ),
    *(
        Claim(
            f"{OURS} biaffine",
            f"GENIA, {words}",
            None,
            *(part_of_genia(system, subset) for system in (DEEP, "deep_span/depth-2-no-bilstm")),
            "two deep layers",
        )
        for words, subset in (("entities of 5 words and more", "long"), ("sentences with nested entities", "nested"))
    ),
    Claim(
        f"{ZHU} shallow",
        "LitBank, entities of 11 words and more",
        None,
        None,
        reading("litbank", "no-bilstm", SHALLOW[10:], "dev and test", "over 10 words"),
        "e5-small",
    ),
    Claim(NGUYEN, "NCBI-disease", 0.17, *(pair("ncbi-disease", ALL, "baseline") for pair in (mpnet_again, second))),
    Claim(NGUYEN, "GENIA", 0.50, None, second("genia", "all beta 1e-4 gamma 1e-6", "baseline"), "β 1e-4"),
    Claim(
        f"{OI} to many corpora",
        "BioRED",
        0.97,
        *(pair("biored", "multi-cvae 1e-6", "multi") for pair in (mpnet_again, second)),
    ),
)


def shown(pair: Pair | None) -> str:
    """A difference with its interval and p."""
    row = pair.row() if pair is not None else None
    if row is None:
        return "not run"
    value, low, high, p, seeds = difference(row)
    part = "" if row["part"] == "test" else f", {row['part']}"
    unit = ", by sentence" if row["corpus"] in SENTENCES and "units" not in row else ""
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}], p {chance(p)}, {seeds} seeds{part}{unit}"


def verdict(claim: Claim) -> str:
    """What the larger encoder's interval says, and the smaller one's where only that was run or says otherwise."""
    found = {
        size: difference(row)[1:3]
        for size, pair in (("base", claim.base), ("small", claim.small))
        if pair is not None and (row := pair.row())
    }
    if "base" not in found:
        return f"{read_off(*found['small'], claim)} (a small encoder)" if found else "not run"
    own, small = (read_off(*found[size], claim) if size in found else "" for size in ("base", "small"))
    other = small if small.startswith(("a gain", "a loss")) and not own.startswith(small[:6]) else ""
    return f"{own}; {other} with a small encoder" if other else own


def read_off(low: float, high: float, claim: Claim) -> str:
    """What one interval says."""
    published = claim.published
    if low > 0:
        return "a gain" if published is None or high >= published else "a gain, smaller than published"
    if high < 0:
        return "a loss"
    if published is None:
        return "open: nothing is excluded"
    return f"no gain shown, the {claim.gain} excluded" if high < published else "open: neither is excluded"


def published(claim: Claim) -> str:
    """The published gain, and what it is where it is not that of this system on this corpus."""
    if claim.published is None:
        return ""
    return f"{claim.published:+.2f}{'' if claim.gain == 'published one' else f', {claim.gain}'}"


def claims() -> str:
    """All claims."""
    lines = [
        f"{claim.says} | {claim.corpus} | {published(claim)} "
        f"| {shown(claim.base)} | {shown(claim.small)}{f', {claim.remark}' if claim.remark else ''} | {verdict(claim)}"
        for claim in CLAIMS
    ]
    table = markdown("claim | corpus | published | MPNet, 109 M | MiniLM, 22 M, or as it says | verdict", lines)
    made = [pair.row() or {} for claim in CLAIMS for pair in (claim.base, claim.small) if pair is not None]
    commits = dict.fromkeys(f"`{row['commit']}`" for row in made if "commit" in row)
    return f"{table}\n\nall-mpnet-base-v2, all-MiniLM-L6-v2, e5-small; compared with commit {', '.join(commits)}."
