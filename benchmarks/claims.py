"""The papers' claims beside our differences: one table, made of the paired comparisons that are kept.

A difference is that of mean strict F1 on the same test articles, with its 95 % interval; runs are drawn, too. The
verdict follows from the interval: whether it excludes nothing (0), and whether it excludes the published gain. Where
the same systems were run in other calls, without keeping predictions, their differences stand beside it without an
interval, and a gain or a loss says how many of them fall short of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from table_rows import chance, markdown, rows

Row = dict[str, Any]


TRAININGS = {
    "mpnet-significance": ("bundling-mpnet",),
    "mpnet-second-significance": (
        "deep_accuracy-mpnet-second",
        "deep_accuracy-mpnet-third",
        "combinations-mpnet",
        "compress_generate-mpnet",
        "conditional-mpnet",
    ),
    "second-significance": ("bundling-tags", "compress_generate-second", "conditional-second"),
    "combinations-significance": ("combinations",),
    "deep-subsets": ("deep_accuracy-mpnet-third", "combinations"),
    "deep_reading": ("deep_accuracy",),
}
"""The result files with the runs that a file of comparisons compares."""


class Pair(NamedTuple):
    """Where a comparison is kept: a result file, and what its row has."""

    file: str
    has: dict[str, Any]

    def runs(self) -> list[Row]:
        """The runs that it compares."""
        sides = (self.has.get(side, "") for side in ("system", "against", "first", "second"))
        systems = {side.split("/")[-1].split()[0] for side in sides if side}
        return [row for file in TRAININGS[self.file] for row in rows(file) if row["recipe"].split("/")[-1] in systems]

    def row(self) -> Row | None:
        """Its row; None while nobody has run it."""
        return next((row for row in rows(self.file) if all(row.get(name) == it for name, it in self.has.items())), None)


class Repeat(NamedTuple):
    """The same two systems in another call, often with other settings, whose predictions are not kept."""

    corpus: str
    system: str
    against: str
    file: str
    file_against: str = ""
    """Where the second system was run, if that was in another call."""

    def sides(self) -> tuple[list[Row], list[Row]]:
        """The runs of either system."""
        one, other = (
            [row for row in rows(file) if (row["corpus"], row["recipe"]) == (self.corpus, system)]
            for file, system in ((self.file, self.system), (self.file_against or self.file, self.against))
        )
        return one, other

    def runs(self) -> list[Row]:
        """The runs of both."""
        return [run for side in self.sides() for run in side]

    def difference(self) -> float:
        """Of mean test F1, over the seeds that both have."""
        one, other = ({run["seed"]: run["test"]["f1"] for run in side} for side in self.sides())
        return round(fmean(one[seed] - other[seed] for seed in one.keys() & other.keys()), 2) + 0.0  # no -0.00


def difference(row: Row) -> tuple[float, float, float, float, int]:
    """Difference, lower and upper end, p, seeds."""
    if isinstance(row["difference"], list):
        return (*row["difference"], row["p"], row["runs"])
    seeds = row["seeds"]
    fewest = min(seeds) if "p" in row else len(seeds)  # of each system, or their names
    return row["difference"], row["low"], row["high"], row.get("p", row.get("p_bootstrap", 1.0)), fewest


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
    base_again: tuple[Repeat, ...] = ()
    small_again: tuple[Repeat, ...] = ()


def repeats(corpus: str, system: str, against: str, *files: str) -> tuple[Repeat, ...]:
    """The same two systems in other result files."""
    return tuple(Repeat(corpus, system, against, file) for file in files)


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
BUNDLED, BUNDLED_TAGS = ("bundling/bl-span", "bundling/span"), ("bundling/bl-seq", "bundling/seq")
CLAIMS = (
    Claim(
        f"{JI} spans",
        "NCBI-disease",
        0.48,
        mpnet("ncbi-disease", "bundling/span", "bundling/bl-span"),
        combined("ncbi-disease", *BUNDLED),
        small_again=repeats("ncbi-disease", *BUNDLED, "bundling-first", "bundling-second", "bundling"),
    ),
    Claim(
        f"{JI} spans",
        "BC5CDR",
        0.49,
        None,
        combined("bc5cdr", *BUNDLED),
        small_again=repeats("bc5cdr", *BUNDLED, "bundling-first", "bundling"),
    ),
    Claim(
        f"{JI} spans",
        "GENIA",
        0.88,
        mpnet_again("genia", *BUNDLED),
        combined("genia", *BUNDLED),
        gain="gain of another span model",
        small_again=repeats("genia", *BUNDLED, "bundling-first", "bundling"),
    ),
    Claim(
        f"{JI} tags",
        "NCBI-disease",
        0.92,
        mpnet("ncbi-disease", "bundling/seq", "bundling/bl-seq"),
        combined("ncbi-disease", *BUNDLED_TAGS),
        small_again=repeats("ncbi-disease", *BUNDLED_TAGS, "bundling-first", "bundling-second", "bundling"),
    ),
    Claim(f"{JI} tags", "GENIA", 0.88, None, second("genia", "bl-seq", "seq"), gain="average of eleven other corpora"),
    Claim(
        f"{ZHU} shallow",
        "GENIA",
        2.02,
        mpnet_again("genia", DEEP, SHALLOW),
        reading("genia", "no-bilstm", SHALLOW[10:]),
        "e5-small",
        base_again=(Repeat("genia", DEEP, SHALLOW, "deep_accuracy-mpnet-third", "deep_accuracy-mpnet"),),
    ),
    Claim(
        f"{ZHU} biaffine",
        "GENIA",
        0.53,
        mpnet_again("genia", DEEP, BIAFFINE),
        combined("genia", "deep_span/depth-2-no-bilstm", BIAFFINE),
        "two deep layers",
        base_again=(Repeat("genia", DEEP, BIAFFINE, "deep_accuracy-mpnet-second", "deep_accuracy-mpnet"),),
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


def shown(pair: Pair | None, again: tuple[Repeat, ...] = (), remark: str = "") -> str:
    """A difference with its interval and p, and those of repeats."""
    row = pair.row() if pair is not None else None
    if row is None:
        return "not run"
    value, low, high, p, seeds = difference(row)
    part = "" if row["part"] == "test" else f", {row['part']}"
    unit = ", by sentence" if row["unit"] == "sentences" else ""
    others = f"; other calls: {', '.join(f'{each.difference():+.2f}' for each in again)}" if again else ""
    told = f", {remark}" if remark else ""
    return f"{value:+.2f} [{low:+.2f}, {high:+.2f}], p {chance(p)}, {seeds} seeds{part}{unit}{told}{others}"


def verdict(claim: Claim) -> str:
    """What the larger encoder's interval says; the smaller one's where only that was run or shows a gain or a loss."""
    found, doubts = {}, {}
    for size, pair, again in (("base", claim.base, claim.base_again), ("small", claim.small, claim.small_again)):
        if row := pair.row() if pair is not None else None:
            low, high = difference(row)[1:3]
            others = [each.difference() for each in again]
            found[size], doubts[size] = read_off(low, high, claim), unseen(low, high, others)
    if "base" not in found:
        return f"{found['small']} (small encoder only){doubts['small']}" if found else "not run"
    own, small = found["base"], found.get("small", "")
    other = small if small.startswith(("a gain", "a loss")) and not own.startswith(small[:6]) else ""
    return f"{own}{doubts['base']}{f'; {other} with a small encoder' + doubts['small'] if other else ''}"


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


def unseen(low: float, high: float, others: Sequence[float]) -> str:
    """In how many other calls a gain, or a loss, is less than its interval has."""
    short = sum(value < low if low > 0 else high < 0 and value > high for value in others)
    return f", not seen in {short} of {len(others)} other calls" if short else ""


def published(claim: Claim) -> str:
    """The published gain, and what it is where it is not that of this system on this corpus."""
    if claim.published is None:
        return ""
    return f"{claim.published:+.2f}{'' if claim.gain == 'published one' else f', {claim.gain}'}"


def claims() -> str:
    """All claims."""
    lines = [
        f"{claim.says} | {claim.corpus} | {published(claim)} | {shown(claim.base, claim.base_again)} "
        f"| {shown(claim.small, claim.small_again, claim.remark)} | {verdict(claim)}"
        for claim in CLAIMS
    ]
    table = markdown("claim | corpus | published | MPNet, 109 M | small encoder, MiniLM unless noted | verdict", lines)
    pairs = [pair for claim in CLAIMS for pair in (claim.base, claim.small) if pair is not None and pair.row()]
    repeated = [each for claim in CLAIMS for each in (*claim.base_again, *claim.small_again)]
    trained = commits(run for some in (*pairs, *repeated) for run in some.runs())
    compared = commits(pair.row() or {} for pair in pairs)
    encoders = "all-mpnet-base-v2, all-MiniLM-L6-v2, e5-small"
    return f"{table}\n\n{encoders}; trained with commit {trained}; compared with commit {compared}."


def commits(made: Iterable[Row]) -> str:
    """The commits of some rows."""
    return ", ".join(dict.fromkeys(f"`{row['commit']}`" for row in made if "commit" in row))
