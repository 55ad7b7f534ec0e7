"""Commands on small files, through the shell's entry point: what they print, and the files they leave.

Everything runs in a copy of `data/` with relative paths, so that outputs name no folder of this machine.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from frozen_cases import DATA, HERE, MODELS

HELP, OUTPUTS = HERE / "help", HERE / "outputs"
VERBS = (
    *("demo", "recipes", "train", "predict", "serve", "evaluate", "info", "calibrate", "export", "score"),
    *("compare", "analyze"),
    *("experiment", "tune", "convert", "validate", "split", "leaks", "show", "label-map", "lexicon", "vectors"),
)
PLAIN = {"COLUMNS": "120", "LINES": "50", "TERM": "dumb", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1"}
COLORFUL = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "CLICOLOR_FORCE", "TERMINAL_WIDTH", "WORLD_SIZE")
SYSTEMS = {
    "baseline": "pretrained proposals",
    "bundling": "seq seq-crf span span-boundary span-pooling span-proposals bl-seq bl-seq-crf bl-span bl-span-crf "
    "bl-span-boundary bl-span-pooling paper paper-seq paper-ontonotes paper-conll03 paper-conllpp paper-conll04 "
    "paper-ace04 paper-ace05 paper-bc5cdr paper-ncbi paper-scierc paper-wnut16 paper-wnut17",
    "deep_span": "depth-1 depth-2 depth-4 depth-6 depth-8 depth-10 depth-12 init-mean init-multiplicative "
    "init-additive shallow-max shallow-mean shallow-multiplicative shallow-additive no-bilstm proposals "
    "depth-2-no-bilstm depth-2-proposals shallow-max-no-bilstm shallow-max-proposals share-weights no-smoothing "
    "biaffine biaffine-proposals paper paper-ace04 paper-ace05 paper-genia paper-kbp17 paper-conll03 paper-ontonotes",
    "compress_generate": "baseline supvib-beta-0 supvib supvib-proposals supvib-spanreco all all-shared-spread "
    "all-no-sharing vaes-only paper paper-ncbi",
    "conditional": "single multi multi-cvae fixed unshared shared-label random multi-shared-label single-cvae paper "
    "paper-t5 paper-trained-rows",
    "typed_spans": "frozen random-vectors in-context recognize recognize-sampled paper paper-nerel paper-mini-batch",
    "discontinuous": "deep bundled proposals drop split hull nearest",
}
FORMATS = {
    "conll": "gold.conll",
    "brat": "brat",
    "pubtator": "gold.pubtator",
    "bioc-xml": "gold.bioc.xml",
    "bioc-json": "gold.bioc.json",
    "spert": "gold.spert.json",
    "pure": "gold.pure.jsonl",
    "w2ner": "gold.w2ner.json",
    "doccano": "gold.doccano.jsonl",
    "prodigy": "gold.prodigy.jsonl",
    "label-studio": "gold.ls.json",
}
TINY = "encoder.buckets=100 encoder.embedding=4 encoder.hidden=8 train.epochs=2 train.batch_size=4"


@dataclass(frozen=True)
class Command:
    """Lines of a shell, run in one folder, and the files they leave that are worth a look."""

    lines: tuple[str, ...]
    files: tuple[str, ...] = ()


def score_commands() -> Iterator[tuple[str, Command]]:
    """What compares documents with documents; no model is needed."""
    modes = ("score gold.jsonl one.jsonl --mode all --json figures.json", "score gold.jsonl two.jsonl")
    subsets = ("documents", "sentences", "entities")
    yield "score", Command(modes, ("figures.json",))
    yield "score-subsets", Command(tuple(f"score gold.jsonl one.jsonl --subset discontinuous-{s}" for s in subsets))
    yield "score-typing", Command(("score gold.jsonl typed.jsonl --protocol typing --json -",))
    yield (
        "compare",
        Command(
            ("compare gold.jsonl one.jsonl two.jsonl three.jsonl --samples 200 --json figures.json",), ("figures.json",)
        ),
    )
    yield (
        "compare-seeds",
        Command(("compare gold.jsonl A=one.jsonl,three.jsonl B=two.jsonl,one.jsonl --samples 200 --mode lenient",)),
    )
    yield (
        "compare-report",
        Command(
            ("compare gold.jsonl one.jsonl two.jsonl --samples 100 --train train.jsonl --report report.html",),
            ("report.html",),
        ),
    )
    analyzed = "analyze --gold gold.jsonl --predicted A=one.jsonl --predicted B=two.jsonl --train train.jsonl"
    yield "analyze-documents", Command((f"{analyzed} --samples 100 --output report --json figures.json",), ("report",))


def corpus_commands() -> Iterator[tuple[str, Command]]:
    """What works on corpora."""
    yield (
        "validate",
        Command(
            ("validate train.jsonl colors.jsonl --json figures.json", "validate broken.jsonl", "validate gold.jsonl"),
            ("figures.json",),
        ),
    )
    yield (
        "leaks",
        Command(
            ("leaks leaking.jsonl train.jsonl --against gold.jsonl dev.jsonl --fail --json figures.json",),
            ("figures.json",),
        ),
    )
    for name, target in FORMATS.items():
        there = f"convert gold.jsonl {target} --to {name} --lossy"
        back = f"convert {target} back.jsonl --from {name}"
        yield f"convert-{name}", Command((there, back), (target, "back.jsonl"))
    yield "convert-refused", Command(("convert colors.jsonl colors.conll", "convert nothing.jsonl out.conll"))
    yield "convert-overlap", Command(("convert gold.jsonl outer.jsonl --flatten outer",), ("outer.jsonl",))
    yield "split", Command(("split gold.jsonl --dev 25 --test 25 --output parts --json -",), ("parts",))
    yield "split-folds", Command(("split colors.jsonl --folds 3 --dev 20 --output parts",), ("parts",))
    yield (
        "show",
        Command(
            ("show colors.jsonl --first 4", "show gold.jsonl --with one.jsonl --first 2 --output page.html"),
            ("page.html",),
        ),
    )
    yield (
        "lexicon",
        Command(("lexicon names.tsv --coverage train.jsonl --coverage gold.jsonl --term spleen --term MGA",)),
    )
    yield (
        "label-map",
        Command(("label-map genes=genes-train.jsonl --target drugs=drugs-train.jsonl --output map.tsv",), ("map.tsv",)),
    )
    yield "vectors", Command(("vectors vectors.txt --nearest the --nearest cortex --count 5",))


def model_commands() -> Iterator[tuple[str, Command]]:
    """What runs or makes a model."""
    yield "recipes", Command(("recipes",))
    for system, names in SYSTEMS.items():
        yield f"recipes-{system}", Command((f"recipes {system}", *(f"recipes {system}/{n}" for n in names.split())))
    for name in ("baseline", "bundling-crf", "conditional-bert", "typed_spans", "discontinuous"):
        model = f"models/{name}"
        yield f"info-{name}", Command((f"info {model}", f"info {model} --json -"))
    yield (
        "predict",
        Command(
            (
                "predict lines.txt --model models/baseline --threshold 0.02 --device cpu",
                "predict colors-dev.jsonl --model models/discontinuous --threshold 0.02 --device cpu",
                "predict dev.jsonl --model models/typed_spans --device cpu",
                "predict dev.jsonl --model models/conditional-bert --dataset genes --overlap flat --device cpu",
                "predict dev.jsonl --model models/bundling-crf --output found.conll --lossy --device cpu",
            ),
            ("found.conll",),
        ),
    )
    yield (
        "evaluate",
        Command(
            (
                "evaluate models/bundling-crf dev.jsonl --device cpu --json figures.json",
                "evaluate models/typed_spans dev.jsonl --device cpu",
                "evaluate models/conditional drugs-dev.jsonl --device cpu",
            ),
            ("figures.json",),
        ),
    )
    yield (
        "calibrate",
        Command(
            ("calibrate models/baseline gold.jsonl --output calibrated --device cpu",),
            ("calibrated/calibration.json",),
        ),
    )
    early = f"{TINY} head.start_chance=none"  # types that start rare would not be found after two epochs
    sets = " ".join(f"--set {item}" for item in early.split())
    made = f"train baseline --train train.jsonl --dev dev.jsonl --output made --device cpu {sets}"
    yield "train", Command((f"{made} --test gold.jsonl", made, "predict lines.txt --model made --threshold 0.05"))
    yield (
        "train-refused",
        Command(
            (
                "train nonsense --train train.jsonl --output made",
                "train baseline --train missing.jsonl --output made",
                "train baseline --train train.jsonl --output made --set encoder.bucket=3",
                "train baseline --train train.jsonl --output made --set train.epochs=many",
                "train compress_generate --train train.jsonl --output made --encoder hashed --lexicon corpus",
                "predict lines.txt --model missing/model",
            )
        ),
    )
    yield (
        "analyze-model",
        Command(
            (
                "analyze models/discontinuous-proposals colors-dev.jsonl --train colors.jsonl --samples 50 "
                "--output report --device cpu --robustness --json figures.json",
            ),
            ("figures.json",),
        ),
    )


COMMANDS: Mapping[str, Command] = dict([*score_commands(), *corpus_commands(), *model_commands()])


@contextmanager
def workplace() -> Iterator[Path]:
    """A copy of the data and the models, as the working folder."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve() / "work"
        shutil.copytree(DATA, place)
        (place / "models").symlink_to(MODELS)
        os.chdir(place)
        try:
            yield place
        finally:
            os.chdir(before)


def run(line: str) -> str:
    """What a command prints on both outputs, and its exit code."""
    from wingspan.cli import main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    kept = {name: value for name, value in os.environ.items() if name not in COLORFUL}
    code: object = 0
    with (
        patch.dict(os.environ, {**kept, **PLAIN}, clear=True),
        patch.object(sys, "argv", ["wingspan", *line.split()]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    texts = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    said = "".join(f"[{name}]\n{text}" for name, text in zip(("out", "err"), texts, strict=True) if text)
    return f"$ wingspan {line}\n{said}[exit {code}]\n"


def outputs_of(command: Command) -> dict[str, str]:
    """All texts a command leaves: `printed`, and files by their path."""
    with workplace() as place:
        texts = {"printed": "\n".join(map(run, command.lines))}
        for name in command.files:
            path = place / name
            inside = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
            for file in inside:
                if file.suffix not in (".png", ".svg", ".pdf", ".npz"):
                    texts[file.relative_to(place).as_posix()] = file.read_text(encoding="utf-8")
        plain = {name: normalized(text, place) for name, text in texts.items()}
        return {name: as_read(text) if name.endswith(".html") else text for name, text in plain.items()}


def as_read(page: str) -> str:
    """A page in short: what a reader sees of it, line by line, how many of each tag it has, and its checksum."""
    tags = Counter(re.findall(r"<([a-z]\w*)", page))
    seen = re.sub(r"<(svg|style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    seen = re.sub(r"</?(?:span|bdi|b|i|a|code|strong|em|mark|small)\b[^>]*>", "", seen)
    lines = [" ".join(line.split()) for line in re.sub(r"<[^>]*>", "\n", seen).splitlines()]
    counts = " ".join(f"{tag}={count}" for tag, count in sorted(tags.items()))
    checksum = hashlib.sha256(page.encode()).hexdigest()
    return "".join(f"{line}\n" for line in [*filter(None, lines), counts, f"sha256 {checksum}"])


def normalized(text: str, place: Path) -> str:
    """Without what differs between machines, days and layouts of the package."""
    text = text.replace(str(place), "PLACE")
    text = re.sub(r"Usage: .*?\bwingspan", "Usage: wingspan", text)  # `python -m pytest.wingspan` in a test
    text = re.sub(r"\bwingspan(?:\.\w+)+:(?=[A-Z])", "wingspan:", text)  # parts by class; modules may move
    text = re.sub(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:\+00:00|Z)?( UTC)?", "TIME", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\d\b", "DATE", text)
    text = re.sub(r"  \d+:\d\d:\d\d left", "", text)
    text = re.sub(r"(torch|transformers|python|numpy|accelerate)(\W{1,5})\d+\.\d+[\w.+]*", r"\1\2VERSION", text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


NUMBER = re.compile(r"(?<![\w.])(?:\d+\.\d{5,}(?:e[-+]?\d+)?|\d+(?:\.\d+)?e-?\d+)(?![\w.])")  # not inside a checksum


def same_text(found: str, frozen: str, tolerance: float = 1e-4) -> None:
    """Texts are equal; numbers of five and more decimals within the tolerance."""
    assert NUMBER.sub("NUMBER", found) == NUMBER.sub("NUMBER", frozen)
    for one, other in zip(NUMBER.findall(found), NUMBER.findall(frozen), strict=True):
        assert abs(float(one) - float(other)) <= tolerance * max(1.0, abs(float(other))), (one, other)


def help_of(verb: str) -> str:
    """The help of a command; of all of them for the empty verb."""
    return normalized(run(f"{verb} --help".strip()), Path("/nowhere"))


def freeze(names: list[str]) -> None:
    """Writes help texts (`help`) and outputs, or the named ones."""
    if not names or "help" in names:
        HELP.mkdir(exist_ok=True)
        for verb in ("", *VERBS):
            (HELP / f"{verb or 'wingspan'}.txt").write_text(help_of(verb), encoding="utf-8")
    for name in [name for name in names if name != "help"] if names else COMMANDS:
        shutil.rmtree(OUTPUTS / name, ignore_errors=True)
        for file, text in outputs_of(COMMANDS[name]).items():
            path = OUTPUTS / name / f"{file}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
