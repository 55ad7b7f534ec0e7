"""Every option and argument of every verb reaches the function that works with it.

A table has a line for each: a command line, the function that must see the value, and the value. The walk over the
verbs fails for an option that has no line.
"""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from plans import plan_file
from typer.main import get_command

from wingspan.cli import app, load_verbs, main
from wingspan.experiments.run import Summary

DATA = Path(__file__).parents[1] / "frozen" / "data"
MODEL = Path(__file__).parents[1] / "frozen" / "models" / "baseline"


class Reaches(NamedTuple):
    """A line of the table: after this command line, the function is called with the value.

    `seen` is the name of one of its parameters, `job.seed` for an attribute of one, or a function of all of them;
    `instead` are results of functions that would take long.
    """

    line: str
    function: str
    seen: str | Callable[[SimpleNamespace], Any]
    value: Any = True
    instead: dict[str, Any] = {}  # noqa: RUF012


def parameters(function: str, base: str, **rows: tuple[str, Any]) -> dict[str, Reaches]:
    """Lines for options that reach a parameter of the same name, or `prefix.name`; each has its words and its value."""
    place, _, prefix = function.partition(" ")
    return {
        name: Reaches(f"{base} {words}", place, f"{prefix}.{name}" if prefix else name, value)
        for name, (words, value) in rows.items()
    }


LOAD, PREDICT = "wingspan.recognizer:Recognizer.from_pretrained", "wingspan.recognizer:Recognizer.predict"
STREAM, THREADS = "wingspan.recognizer:Recognizer.predict_stream", "torch:set_num_threads"
REPORT = {"wingspan.report:from_documents": []}  # the chapters take their time
SEEDS, CORPORA = "wingspan.training.run:train_seeds", "wingspan.training.corpora:corpora_of"
SCORES = "wingspan.evaluation.scores:"


def threads(line: str) -> Reaches:
    return Reaches(f"{line} --threads 3", THREADS, lambda call: call.positional[0], 3)


def parts(line: str) -> Reaches:
    return Reaches(f"{line} --parts {{parts}}", LOAD, "parts", ["own_parts"])


def loading(line: str) -> dict[str, Reaches]:
    """What all verbs share that load a model."""
    return {
        "parts": parts(line),
        "device": Reaches(f"{line} --device cpu", LOAD, "device", "cpu"),
        "threads": threads(line),
    }


def precise(line: str) -> Reaches:
    return Reaches(f"{line} --precision float32", LOAD, "precision", "float32")


def json(line: str, verb: str, **others: Any) -> dict[str, Reaches]:
    return {"json": Reaches(f"{line} --json {{out}}/j.json", f"{verb}:write_json", "path", "{out}/j.json", **others)}


TRAIN = "train baseline --train {train} --output {out}/run"
SERVE, UVICORN = "serve {model}", "uvicorn:run"
EVALUATE, CALIBRATE = "evaluate {model} {dev}", "calibrate {model} {dev} --output {out}/model"
SCORE, COMPARE = "score {gold} {one}", "compare {gold} {one} {two} --samples 20"
ANALYZE = "analyze --gold {gold} --predicted A={one} --output {out}/a"
OF_MODEL = "analyze {model} {dev} --output {out}/a --skip-representation"
TUNE = "tune baseline --train {train} --dev {dev} --output {out}/search"
LABELS = "label-map genes={data}/genes-train.jsonl --target drugs={data}/drugs-train.jsonl"
LEXICON = "lexicon {data}/names.tsv"
VECTORS = "vectors {train} --output {out}/v.txt"
BOTH = "--from {model} --rename Disease=Illness"

TABLE: dict[str, dict[str, Reaches]] = {
    "demo": {
        "output": Reaches("demo --output {out}/m", "wingspan.training.run:run", "job.folder", "{out}/m"),
        "seed": Reaches("demo --seed 7", "wingspan.training.run:run", "job.seed", 7),
        "threads": threads("demo"),
    },
    "recipes": {"name": Reaches("recipes bundling/seq", "wingspan.recipes:find", "name", "bundling/seq")},
    "train": {
        **parameters(
            f"{SEEDS} job",
            TRAIN,
            resume=("--resume", True),
            start=("--from some/model", "some/model"),
            rename=(BOTH, {"Disease": "Illness"}),
            lexicon=("--lexicon corpus", "corpus"),
            on_leak=("--on-leak allow", "allow"),
            track=("--track tensorboard", "tensorboard"),
            device=("--device cpu", "cpu"),
        ),
        **parameters(
            CORPORA,
            "train baseline --output {out}/run",
            dev=("--train {train} --dev {dev}", "{dev}"),
            test=("--train {train} --test {dev}", "{dev}"),
            format=("--train {train} --format jsonl", "jsonl"),
        ),
        **parameters(
            f"{SEEDS} job.recipe.train",
            TRAIN,
            epochs=("--epochs 7", 7),
            batch_size=("--batch-size 5", 5),
            learning_rate=("--learning-rate 0.123", 0.123),
        ),
        "recipe": Reaches(TRAIN, SEEDS, "job.recipe.name", "baseline"),
        "output": Reaches(TRAIN, SEEDS, "job.folder", "{out}/run"),
        "train": Reaches(TRAIN, CORPORA, lambda call: call.train[0], "{train}"),
        "corpora": Reaches(
            "train baseline --corpora {data}/corpora.toml --output {out}/run", CORPORA, "several", "{data}/corpora.toml"
        ),
        "encoder": Reaches(
            f"{TRAIN} --encoder {{data}}/bert", "wingspan.training.run:prepare", "encoder", "{data}/bert"
        ),
        "set": Reaches(f"{TRAIN} --set train.patience=3", SEEDS, "job.recipe.train.patience", 3),
        "settings": Reaches(f"{TRAIN} --settings {{settings}}", SEEDS, "job.recipe.train.epochs", 9),
        "seed": Reaches(f"{TRAIN} --seed 7", SEEDS, "seeds", [7]),
        "seeds": Reaches(f"{TRAIN} --seeds 4,5", SEEDS, "seeds", [4, 5]),
        "parts": Reaches(f"{TRAIN} --parts {{parts}}", SEEDS, "job.parts", ["own_parts"]),
        "threads": threads(TRAIN),
        "teacher": Reaches(f"{TRAIN} --teacher {{model}}", SEEDS, "job.teachers", ["{model}"]),
        "no_progress": Reaches(f"{TRAIN} --no-progress", SEEDS, lambda call: call.job.bar is not None),
        **json(TRAIN, "wingspan.views.console", instead={SEEDS: {"f1": 1.0}}),
    },
    "predict": {
        **parameters(
            STREAM,
            "predict 'Some text.' --model {model}",
            overlap=("--overlap nested", "nested"),
            threshold=("--threshold 0.25", 0.25),
            dataset=("--dataset main", "main"),
            batch_size=("--batch-size 5", 5),
        ),
        **loading("predict 'Some text.' --model {model}"),
        "inputs": Reaches(
            "predict 'Some text.' --model {model}", STREAM, lambda call: next(iter(call.texts)).text, "Some text."
        ),
        "uncertain": Reaches(
            "predict {dev} --model {model} --uncertain 2",
            "wingspan.recognizer.uncertain:most_uncertain",
            "number",
            2,
        ),
        "precision": precise("predict 'Some text.' --model {model}"),
        "model": Reaches("predict 'Some text.' --model {model}", LOAD, "name", "{model}"),
        "format": Reaches("predict {dev} --model {model} --from jsonl", "wingspan.cli.predict:read", "format", "jsonl"),
        "output": Reaches(
            "predict {dev} --model {model} --output {out}/p.jsonl",
            "wingspan.cli.predict:write_predictions",
            "path",
            "{out}/p.jsonl",
        ),
        "to": Reaches(
            "predict {dev} --model {model} --output {out}/p --to brat --lossy",
            "wingspan.cli.predict:write_predictions",
            "format.name",
            "brat",
        ),
        "lossy": Reaches(
            "predict {dev} --model {model} --output {out}/p.jsonl --lossy",
            "wingspan.cli.predict:Counted.fitted",
            "lossy",
        ),
        "on_error": Reaches(
            "predict {dev} --model {model} --on-error skip",
            "wingspan.cli.predict:documents",
            "problems.on_error",
            "skip",
        ),
        **parameters(
            "wingspan.scale.run:predict_files",
            "predict {dev} --model {model} --output {out}/o",
            engine=("--engine ray", "ray"),
            workers=("--engine local --workers 3", 3),
            address=("--engine ray --address 127.0.0.1:6379", "127.0.0.1:6379"),
            text=("--engine local --text abstract", "abstract"),
        ),
        "no_progress": Reaches(
            "predict {dev} --model {model} --output {out}/o --engine local --no-progress",
            "wingspan.cli.predict:predict_at_scale",
            "no_progress",
        ),
    },
    "serve": {
        **parameters(
            "wingspan.recognizer:load",
            SERVE,
            parts=("--parts {parts}", ["own_parts"]),
            device=("--device cpu", "cpu"),
            precision=("--precision float32", "float32"),
        ),
        "threads": threads(SERVE),
        "models": Reaches(SERVE, "wingspan.recognizer:load", "name", "{model}"),
        **parameters(
            "wingspan.serving.service:service settings",
            SERVE,
            api_key=("--api-key k", "k"),
            body_limit=("--body-limit 7", 7),
            text_limit=("--text-limit 7", 7),
            texts_limit=("--texts-limit 7", 7),
            time_limit=("--time-limit 7", 7.0),
            queue=("--queue 7", 7),
            batch_tokens=("--batch-tokens 7", 7),
        ),
        "allow_origin": Reaches(
            f"{SERVE} --allow-origin https://a.example",
            "wingspan.serving.service:service",
            "settings.allow_origins",
            ("https://a.example",),
        ),
        "host": Reaches(f"{SERVE} --host ::1", UVICORN, "host", "::1"),
        "port": Reaches(f"{SERVE} --port 0", UVICORN, "port", 0),
        "processes": Reaches(f"{SERVE} --processes 2", UVICORN, "workers", 2),
    },
    "evaluate": {
        **loading(EVALUATE),
        **json(EVALUATE, "wingspan.cli.evaluate"),
        "precision": precise(EVALUATE),
        "inputs": Reaches(EVALUATE, "wingspan.cli.evaluate:read", "path", "{dev}"),
        "model": Reaches("evaluate {dev} --model {model}", LOAD, "name", "{model}"),
        "format": Reaches(f"{EVALUATE} --format jsonl", "wingspan.cli.evaluate:read", "format", "jsonl"),
        "dataset": Reaches(f"{EVALUATE} --dataset main", PREDICT, "dataset", "main"),
        "label_map": Reaches(
            f"{EVALUATE} --dataset genes --label-map {{data}}/label_map.tsv",
            "wingspan.cli.evaluate:read_label_map",
            "path",
            "{data}/label_map.tsv",
        ),
        "batch_size": Reaches(f"{EVALUATE} --batch-size 5", PREDICT, "batch_size", 5),
    },
    "info": {
        "model": Reaches("info {model}", LOAD, "name", "{model}"),
        "parts": parts("info {model}"),
        **json("info {model}", "wingspan.cli.recipes"),
    },
    "calibrate": {
        **loading(CALIBRATE),
        **json(CALIBRATE, "wingspan.cli.calibrate"),
        "model": Reaches(CALIBRATE, LOAD, "name", "{model}"),
        "dev": Reaches(CALIBRATE, "wingspan.training.corpora:documents_of", "corpus", "{dev}"),
        "format": Reaches(f"{CALIBRATE} --format jsonl", "wingspan.training.corpora:documents_of", "format", "jsonl"),
        "output": Reaches(CALIBRATE, "wingspan.recognizer:Recognizer.save_pretrained", "folder", "{out}/model"),
        "thresholds": Reaches(
            f"{CALIBRATE} --thresholds 90", "wingspan.evaluation.calibration:choose_thresholds", "precision", 90.0
        ),
        "batch_size": Reaches(f"{CALIBRATE} --batch-size 5", PREDICT, "batch_size", 5),
    },
    "export": {
        **parameters(
            "wingspan.export:export",
            "export {model} {out}/onnx --texts {dev}",
            int8=("--int8", True),
        ),
        "model": Reaches("export {model} {out}/onnx", LOAD, "name", "{model}"),
        "parts": parts("export {model} {out}/onnx"),
        "threads": threads("export {model} {out}/onnx"),
        "output": Reaches("export {model} {out}/onnx", "wingspan.export:export", "folder", "{out}/onnx"),
        "texts": Reaches("export {model} {out}/onnx --texts {dev}", "wingspan.cli.export:read", "path", "{dev}"),
        "format": Reaches(
            "export {model} {out}/onnx --texts {dev} --format jsonl", "wingspan.cli.export:read", "format", "jsonl"
        ),
        "first": Reaches(
            "export {model} {out}/onnx --first 3", "wingspan.export:export", lambda call: len(call.texts), 3
        ),
    },
    "score": {
        **json(SCORE, "wingspan.cli.score"),
        "gold": Reaches(SCORE, "wingspan.cli.score:read", "path", "{gold}"),
        "predicted": Reaches(SCORE, "wingspan.cli.score:read", "path", "{one}"),
        "format": Reaches(f"{SCORE} --format jsonl", "wingspan.cli.score:read", "format", "jsonl"),
        "predicted_format": Reaches(f"{SCORE} --predicted-format jsonl", "wingspan.cli.score:read", "format", "jsonl"),
        "mode": Reaches(f"{SCORE} --mode lenient", f"{SCORES}recognition", "mode", "lenient"),
        "protocol": Reaches("score {gold} {data}/typed.jsonl --protocol typing", f"{SCORES}typing", lambda _: True),
        "subset": Reaches(
            f"{SCORE} --subset discontinuous-documents", f"{SCORES}discontinuous_documents", lambda _: True
        ),
        "allow_missing": Reaches(f"{SCORE} --allow-missing", f"{SCORES}recognition", "allow_missing"),
    },
    "compare": {
        **parameters(
            "wingspan.cli.compare:compare_systems",
            "compare {gold} {one} {two}",
            mode=("--mode exact", "exact"),
            samples=("--samples 21", 21),
            seed=("--seed 7", 7),
            confidence=("--confidence 0.9", 0.9),
            allow_missing=("--allow-missing", True),
        ),
        **json(COMPARE, "wingspan.cli.compare"),
        "gold": Reaches(COMPARE, "wingspan.cli.compare:documents", "path", "{gold}"),
        "systems": Reaches(COMPARE, "wingspan.cli.compare:documents", "path", "{two}"),
        "format": Reaches(f"{COMPARE} --format jsonl", "wingspan.cli.compare:documents", "format", "jsonl"),
        "predicted_format": Reaches(
            f"{COMPARE} --predicted-format jsonl", "wingspan.cli.compare:read_systems", "format", "jsonl"
        ),
        "examples": Reaches(f"{COMPARE} --examples 2", "wingspan.cli.compare:show", "examples", 2),
        "report": Reaches(
            f"{COMPARE} --report {{out}}/r.html", "wingspan.report.html:write_report", "path", "{out}/r.html", REPORT
        ),
        "train": Reaches(
            f"{COMPARE} --report {{out}}/r.html --train {{train}}", "wingspan.cli.compare:documents", "path", "{train}"
        ),
    },
    "analyze": {
        **parameters(
            "wingspan.report:ReportOptions",
            ANALYZE,
            quantiles=("--quantiles 4", 4),
            samples=("--samples 21", 21),
            seed=("--seed 7", 7),
        ),
        **loading(OF_MODEL),
        **json(ANALYZE, "wingspan.cli.analyze", instead=REPORT),
        "attribute": Reaches(f"{ANALYZE} --attribute width", "wingspan.report:ReportOptions", "attributes", ["width"]),
        "output": Reaches(ANALYZE, "wingspan.report.html:write_report", "path", "{out}/a/report.html", REPORT),
        "model": Reaches(OF_MODEL, LOAD, "name", "{model}"),
        "corpus": Reaches(OF_MODEL, "wingspan.cli.analyze:documents", "path", "{dev}"),
        "gold": Reaches(ANALYZE, "wingspan.cli.analyze:documents", "path", "{gold}"),
        "predicted": Reaches(ANALYZE, "wingspan.cli.analyze:name_systems", "arguments", ["A={one}"]),
        "train": Reaches(f"{ANALYZE} --train {{train}}", "wingspan.cli.analyze:documents", "path", "{train}"),
        "format": Reaches(f"{ANALYZE} --format jsonl", "wingspan.cli.analyze:documents", "format", "jsonl"),
        "predicted_format": Reaches(
            f"{ANALYZE} --predicted-format jsonl", "wingspan.cli.analyze:read_systems", "format", "jsonl"
        ),
        "allow_missing": Reaches(f"{ANALYZE} --allow-missing", "wingspan.report.blocks:Subject.of", "allow_missing"),
        "robustness": Reaches(
            f"{OF_MODEL} --robustness", "wingspan.report.errors:robustness", lambda _: True, True, REPORT
        ),
        "skip_representation": Reaches(
            OF_MODEL, "wingspan.cli.analyze:inner_chapters", "skip_representation", True, REPORT
        ),
        "corpora": Reaches(
            f"{OF_MODEL} --corpora {{data}}/corpora.toml",
            "wingspan.training.multi_corpus:read_corpora",
            "path",
            "{data}/corpora.toml",
        ),
        "transfer": Reaches(
            f"{OF_MODEL} --corpora {{data}}/corpora.toml --transfer genes=x",
            "wingspan.cli.analyze:across_corpora",
            "transfer",
            {"genes": "x"},
            REPORT,
        ),
        "batch_size": Reaches(f"{OF_MODEL} --batch-size 5", STREAM, "batch_size", 5),
        "no_progress": Reaches(f"{ANALYZE} --no-progress", "wingspan.cli.analyze:steps", "progress", False),
    },
    "experiment": {
        **parameters(
            "wingspan.experiments.run:run_experiment plan",
            "experiment {plan}",
            output=("--output {out}/o", "{out}/o"),
            seeds=("--seeds 4,5", (4, 5)),
            workers=("--workers 2", 2),
            published=("--published {plan}", "{plan}"),
            on_leak=("--on-leak allow", "allow"),
            commit=("--commit abc", "abc"),
            device=("--device cuda", "cuda"),
            threads=("--threads 2", 2),
        ),
        **parameters(
            "wingspan.experiments.run:run_experiment",
            "experiment {plan}",
            time_budget=("--time-budget 3.5", 3.5),
            tables_only=("--tables-only", True),
        ),
        "plan": Reaches("experiment {plan}", "wingspan.experiments.plan:read_plan", "path", "{plan}"),
        **json(
            "experiment {plan}",
            "wingspan.views.console",
            instead={"wingspan.experiments.run:run_experiment": Summary(0, 0, {}, ())},
        ),
    },
    "tune": {
        **parameters(
            "wingspan.tuning.search:tune request",
            TUNE,
            recipe=("", "baseline"),
            dev=("", "{dev}"),
            output=("", "{out}/search"),
            format=("--format jsonl", "jsonl"),
            encoder=("--encoder minilm", "minilm"),
            lexicon=("--lexicon corpus", "corpus"),
            trials=("--trials 7", 7),
            time_budget=("--time-budget 3.5", 3.5),
            pruner=("--pruner hyperband", "hyperband"),
            study=("--study s.db", "s.db"),
            name=("--name mine", "mine"),
            seed=("--seed 7", 7),
            on_leak=("--on-leak stop", "stop"),
            device=("--device cpu", "cpu"),
        ),
        "train": Reaches(TUNE, "wingspan.tuning.search:tune", lambda call: call.request.train[0], "{train}"),
        "set": Reaches(f"{TUNE} --set a.b=3", "wingspan.tuning.search:tune", "request.settings", {"a.b": "3"}),
        "range": Reaches(
            f"{TUNE} --range a.b=1:3", "wingspan.tuning.search:tune", lambda call: call.request.ranges["a.b"].high, 3
        ),
        "threads": threads(TUNE),
        **json(
            TUNE,
            "wingspan.views.console",
            instead={"wingspan.tuning.search:tune": SimpleNamespace(to_dict=dict, best=1)},
        ),
    },
    "convert": parameters(
        "wingspan.cli.convert:convert_corpus",
        "convert {dev} {out}/c.jsonl",
        source=("", "{dev}"),
        target=("", "{out}/c.jsonl"),
        from_format=("--from jsonl", "jsonl"),
        to_format=("--to brat", "brat"),
        lossy=("--lossy", True),
        on_error=("--on-error skip", "skip"),
        flattening=("--flatten outer", "outer"),
        labels=("--labels O,B-Drug", ("O", "B-Drug")),
    )
    | {
        "overlap": Reaches(
            "convert {dev} {out}/c.jsonl --overlap inner", "wingspan.cli.convert:convert_corpus", "flattening", "inner"
        )
    },
    "validate": {
        **parameters(
            "wingspan.cli.validate:validate_corpora",
            "validate {dev}",
            corpora=("", ["{dev}"]),
            format=("--format jsonl", "jsonl"),
            on_error=("--on-error raise", "raise"),
            labels=("--labels O,B-Drug", ("O", "B-Drug")),
        ),
        **json("validate {dev}", "wingspan.cli.validate"),
    },
    "split": {
        **parameters(
            "wingspan.cli.split:split_corpus",
            "split {dev} --output {out}/s",
            corpus=("", "{dev}"),
            output=("", "{out}/s"),
            dev=("--dev 21", 21),
            test=("--test 22", 22),
            folds=("--folds 3", 3),
            seed=("--seed 7", 7),
            format=("--format jsonl", "jsonl"),
            on_error=("--on-error skip", "skip"),
        ),
        **json("split {gold} --dev 20 --test 20 --output {out}/s", "wingspan.cli.split"),
    },
    "leaks": {
        **parameters(
            "wingspan.cli.leaks:documents",
            "leaks {train} --against {dev}",
            format=("--format jsonl", "jsonl"),
        ),
        "train": Reaches("leaks {train} --against {dev}", "wingspan.cli.leaks:documents", "path", "{train}"),
        "against": Reaches("leaks {train} --against {dev}", "wingspan.cli.leaks:documents", "path", "{dev}"),
        "fail": Reaches("leaks {train} --against {train} --fail", "sys:exit", lambda call: call.positional[0], 1),
        **json("leaks {train} --against {dev}", "wingspan.cli.leaks"),
    },
    "show": {
        **parameters(
            "wingspan.cli.show:pairs",
            "show {gold} --with {one}",
            predicted=("", "{one}"),
            format=("--format jsonl", "jsonl"),
            predicted_format=("--predicted-format jsonl", "jsonl"),
        ),
        "file": Reaches("show {gold}", "wingspan.cli.show:pairs", "path", "{gold}"),
        "output": Reaches(
            "show {gold} --output {out}/p.html", "wingspan.views.html:write_page", "path", "{out}/p.html"
        ),
        "first": Reaches(
            "show {gold} --first 2 --output {out}/p.html",
            "wingspan.views.html:write_page",
            lambda call: len(call.others["documents"]),
            2,
        ),
        "label": Reaches("show {gold} --label Disease", "wingspan.cli.show:only", "labels", ["Disease"]),
    },
    "label-map": {
        "corpora": Reaches(
            LABELS, "wingspan.cli.label_map:corpora_of", lambda call: call.named[1], "genes={data}/genes-train.jsonl"
        ),
        "target": Reaches(
            LABELS, "wingspan.cli.label_map:corpora_of", lambda call: call.named[0], "drugs={data}/drugs-train.jsonl"
        ),
        "output": Reaches(
            f"{LABELS} --output {{out}}/m.tsv", "wingspan.cli.label_map:write_suggestions", "path", "{out}/m.tsv"
        ),
        "model": Reaches(f"{LABELS} --model {{model}}", LOAD, "name", "{model}"),
        "reference": Reaches(
            f"{LABELS} --reference {{data}}/label_map.tsv",
            "wingspan.cli.label_map:read_label_map",
            "path",
            "{data}/label_map.tsv",
        ),
        "format": Reaches(f"{LABELS} --format jsonl", "wingspan.cli.label_map:corpora_of", "format", "jsonl"),
        "batch_size": Reaches(f"{LABELS} --model {{model}} --batch-size 5", PREDICT, "batch_size", 5),
        "device": Reaches(f"{LABELS} --model {{model}} --device cpu", LOAD, "device", "cpu"),
        **json(LABELS, "wingspan.cli.label_map"),
    },
    "lexicon": {
        **parameters(
            "wingspan.cli.lexicon:read_concepts",
            LEXICON,
            language=("--language GER", "GER"),
        ),
        "sources": Reaches(LEXICON, "wingspan.cli.lexicon:read_concepts", "path", "{data}/names.tsv"),
        "on_error": Reaches(
            f"{LEXICON} --on-error skip", "wingspan.cli.lexicon:read_concepts", "problems.on_error", "skip"
        ),
        "from_corpus": Reaches(f"{LEXICON} --from-corpus {{train}}", "wingspan.cli.lexicon:read", "path", "{train}"),
        "output": Reaches(
            f"{LEXICON} --output {{out}}/l.sqlite", "wingspan.corpora.lexicon:Lexicon.save", "path", "{out}/l.sqlite"
        ),
        "coverage": Reaches(f"{LEXICON} --coverage {{dev}}", "wingspan.cli.lexicon:documents", "path", "{dev}"),
        "term": Reaches(f"{LEXICON} --term spleen", "wingspan.corpora.lexicon:Lexicon.lookup", "surface", "spleen"),
        "type": Reaches(
            f"{LEXICON} --type Disease",
            "wingspan.corpora.lexicon:Lexicon.of",
            lambda call: {kind for concept in call.concepts for kind in concept.types},
            {"Disease"},
        ),
        "only_in": Reaches(f"{LEXICON} --only-in {{dev}}", "wingspan.cli.lexicon:documents", "path", "{dev}"),
        "fold": Reaches(
            f"{LEXICON} --fold plural",
            "wingspan.corpora.lexicon:Lexicon.of",
            lambda call: tuple(call.folds),
            ("plural",),
        ),
        "ambiguous": Reaches(
            f"{LEXICON} --ambiguous first --output {{out}}/l.sqlite",
            "wingspan.corpora.lexicon:Lexicon.save",
            "self.ambiguous",
            "first",
        ),
        "label_types": Reaches(
            f"{LEXICON} --label-types Disease=a,b --output {{out}}/l.sqlite",
            "wingspan.corpora.lexicon:Lexicon.save",
            "self.label_types",
            {"Disease": ["a", "b"]},
        ),
        "format": Reaches(
            f"{LEXICON} --coverage {{dev}} --format jsonl", "wingspan.cli.lexicon:documents", "format", "jsonl"
        ),
        **json(LEXICON, "wingspan.cli.lexicon"),
    },
    "vectors": {
        **{
            name: Reaches(
                f"{VECTORS} --{name.replace('_', '-')} 7",
                "wingspan.cli.vectors:train",
                lambda call, key=key: call.settings[key],
                7,
            )
            for name, key in (
                ("size", "vector_size"),
                ("window", "window"),
                ("min_count", "min_count"),
                ("epochs", "epochs"),
                ("seed", "seed"),
                ("threads", "workers"),
            )
        },
        **parameters(
            "wingspan.cli.vectors:train texts",
            VECTORS,
            lower_case=("--lower-case", True),
            splitter=("--splitter whitespace", "whitespace"),
            format=("--format jsonl", "jsonl"),
        ),
        "texts": Reaches(VECTORS, "wingspan.cli.vectors:train", "texts.paths", ["{train}"]),
        "method": Reaches(f"{VECTORS} --method fasttext", "wingspan.cli.vectors:train", "method", "fasttext"),
        "output": Reaches(
            VECTORS,
            "wingspan.cli.vectors:write",
            "path",
            "{out}/v.txt",
            {"wingspan.cli.vectors:train": SimpleNamespace(wv=[1, 2], corpus_count=1, corpus_total_words=2)},
        ),
        "nearest": Reaches(
            "vectors {data}/vectors.txt --nearest after", "wingspan.encoders.vectors:nearest", "words", ["after"]
        ),
        "count": Reaches(
            "vectors {data}/vectors.txt --nearest after --count 3", "wingspan.encoders.vectors:nearest", "count", 3
        ),
        **json("vectors {data}/vectors.txt --nearest after", "wingspan.cli.vectors"),
    },
}


class Reached(BaseException):
    """The function has seen the value: the rest of the command is not needed."""


def found(function: str) -> tuple[Any, str]:
    """Where a function is looked up: a module or a class, and the name in it."""
    module, _, name = function.partition(":")
    *places, last = name.split(".")
    owner = import_module(module)
    return (attrgetter(*places)(owner) if places else owner), last


def plain(value: Any) -> Any:
    """Paths as text, at any depth, to be compared with the table."""
    if isinstance(value, Path):
        return str(value)
    return type(value)(map(plain, value)) if isinstance(value, list | tuple) else value


def watched(function: str, check: Callable[[SimpleNamespace], bool]) -> Any:
    """A patch with which the function ends the command when it is called as the table says."""
    owner, name = found(function)
    own = inspect.getattr_static(owner, name)
    original = getattr(owner, name)
    try:
        signature = inspect.signature(original)
    except ValueError:  # built in
        signature = None

    def watching(*arguments: Any, **keywords: Any) -> Any:
        given = keywords
        if signature is not None:
            bound = signature.bind(*arguments, **keywords)
            bound.apply_defaults()
            given = bound.arguments
        given = {"self" if name == "cls" else name: value for name, value in given.items()}
        if check(SimpleNamespace(**{**given, "positional": arguments, "others": keywords})):
            raise Reached
        return original(*arguments, **keywords)

    return patch.object(owner, name, staticmethod(watching) if isinstance(own, classmethod) else watching)


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("options")
    (folder / "own_parts.py").write_text("")
    (folder / "settings.toml").write_text('recipe = "baseline"\n[set]\n"train.epochs" = 9\n')
    files = {name: f"{DATA}/{name}.jsonl" for name in ("train", "dev", "gold", "one", "two")}
    others = {"data": DATA, "model": MODEL, "parts": folder / "own_parts.py", "settings": folder / "settings.toml"}
    return {**files, **{name: str(path) for name, path in others.items()}, "plan": str(plan_file(folder))}


def commands() -> dict[str, list[str]]:
    load_verbs([])
    return {name: [parameter.name for parameter in verb.params] for name, verb in get_command(app).commands.items()}


def test_every_option_has_its_line():
    assert {verb: sorted(rows) for verb, rows in TABLE.items()} == {
        verb: sorted(names) for verb, names in commands().items()
    }


@pytest.mark.parametrize(("verb", "option"), [(verb, option) for verb, rows in TABLE.items() for option in rows])
def test_every_option_reaches_its_function(verb, option, places, tmp_path, monkeypatch):
    row = TABLE[verb][option]
    known = {**places, "out": str(tmp_path)}

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return list(map(filled, value))
        return value.format(**known) if isinstance(value, str) else value

    wanted = filled(row.value)

    def check(call: SimpleNamespace) -> bool:
        seen = row.seen(call) if callable(row.seen) else attrgetter(row.seen)(call)
        return plain(seen) == wanted

    monkeypatch.setattr(sys, "argv", ["wingspan", *shlex.split(row.line.format(**known))])
    monkeypatch.chdir(tmp_path)
    with watched(row.function, check):
        for name, result in row.instead.items():
            owner, last = found(name)
            monkeypatch.setattr(owner, last, lambda *_, result=result, **__: result)
        with pytest.raises(Reached):
            main()


def test_validate_fails_where_any_of_several_files_has_a_problem(shell, tmp_path):
    good, bad = DATA / "dev.jsonl", DATA / "broken.jsonl"
    for files in ((bad, good), (good, bad), (bad, bad)):
        shell("validate", *files, code=1)
    shell("validate", good, DATA / "gold.jsonl")


def test_a_pipe_that_is_closed_is_no_error(monkeypatch, capsys):
    """As `wingspan show CORPUS | head -1` has it: nothing is said, and the exit code is 0."""
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(sys, "argv", ["wingspan", "show", str(DATA / "gold.jsonl"), "--first", "0"])
    with os.fdopen(writing, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        main()
    assert capsys.readouterr().err == ""
