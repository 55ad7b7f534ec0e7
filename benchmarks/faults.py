"""Single-line faults in the source, each of which some test must notice.

    python benchmarks/faults.py                     tries all faults; exit code 1 if one goes unnoticed
    python benchmarks/faults.py --minutes 14        tries some; the next call goes on
    python benchmarks/faults.py --check             only checks that every fault still finds its line
    python benchmarks/faults.py --group new --only conll     a part of them

A fault is a line of the source and its wrong version. The source is copied to a temporary folder, the fault put in, and
tests are run against the copy up to the first failure: those named beside the fault, then those of its package, then
the quick run. Each fault is one line in benchmarks/results/faults.jsonl; a noticed one is not tried again. The tests
must pass without a fault (`--clean` runs those named so).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy  # noqa: F401  -- imported once, for all forks
import pytest
import torch  # noqa: F401
import transformers  # noqa: F401

from walks import commit

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "wingspan"


class Fault(NamedTuple):
    """A line of a file, its wrong version, and the tests that should notice."""

    file: str
    line: str
    wrong: str
    tests: str


FIRST = [
    # grid
    Fault(
        "layers/grid.py",
        "unfold(1, width, 1).transpose(2, 3)",
        "unfold(1, width, 1).transpose(2, 3).flip(2)",
        "tests/layers/test_grid.py",
    ),
    Fault(
        "layers/grid.py",
        "counts = torch.arange(1, width + 1,",
        "counts = torch.arange(2, width + 2,",
        "tests/layers/test_grid.py",
    ),
    Fault(
        "layers/grid.py",
        "torch.maximum(out[:, :, step - 1], following[:, :, step]",
        "torch.maximum(out[:, :, step - 1], following[:, :, step - 1]",
        "tests/layers/test_grid.py",
    ),
    # windows
    Fault(
        "corpora/segment.py",
        "while sums[end] - sums[first] > limit:",
        "while sums[end] - sums[first] > limit + 1:",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    Fault(
        "corpora/segment.py",
        "yield _Window(first, own, core_end, at)",
        "yield _Window(first, own + 1, core_end, at)",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    Fault(
        "corpora/segment.py",
        "np.searchsorted(self.words[:, 0], np.concatenate(borders))",
        "np.searchsorted(self.words[:, 0], np.concatenate(borders), 'right')",
        "tests/corpora/test_segment.py",
    ),
    Fault(
        "candidates/__init__.py",
        "(start < inputs.core[:, 1:])",
        "(start <= inputs.core[:, 1:])",
        "tests/candidates tests/corpora/test_windows.py",
    ),
    # leaks
    Fault(
        "corpora/leaks/index.py",
        "return common / max(1, len(mine) + len(theirs) - common)",
        "return common / max(1, len(mine) + len(theirs))",
        "tests/corpora/test_leaks.py",
    ),
    Fault(
        "corpora/leaks/index.py",
        "if key != other and (share :=",
        "if key == other and (share :=",
        "tests/corpora/test_leaks.py",
    ),
    Fault(
        "corpora/leaks/index.py",
        "if span.width >= SHORTEST]",
        "if span.width >= 2 * SHORTEST]",
        "tests/corpora/test_leaks.py",
    ),
    # decoding
    Fault(
        "decoding.py",
        "if entity not in best or entity.score > best[entity].score:",
        "if entity not in best:",
        "tests/test_decoding.py",
    ),
    Fault(
        "decoding.py",
        "key=lambda e: (-e.score, reading_order(e))",
        "key=lambda e: (e.score, reading_order(e))",
        "tests/test_decoding.py",
    ),
    Fault(
        "decoding.py",
        "past = bisect_left(chosen, entity.end, key=start_of)",
        "past = bisect_left(chosen, entity.start, key=start_of)",
        "tests/test_decoding.py",
    ),
    # calibration
    Fault(
        "evaluation/calibration.py",
        "(scores * bins).astype(np.int64), bins - 1)",
        "(scores * bins).astype(np.int64), bins - 2)",
        "tests/evaluation/test_calibration.py",
    ),
    Fault(
        "evaluation/calibration.py",
        "chance = softmax(coldness * logits)",
        "chance = softmax(logits)",
        "tests/evaluation/test_calibration.py",
    ),
    Fault(
        "evaluation/calibration.py",
        "best[entity] = max(entity.score,",
        "best[entity] = min(entity.score,",
        "tests/evaluation/test_calibration.py",
    ),
    # checkpoint safety
    Fault(
        "recipe_json.py",
        'module.startswith("wingspan.")',
        'module.startswith("w")',
        "tests/test_recipe_json.py tests/test_model_folder.py",
    ),
]

OPTIONS = "tests/cli/test_every_option.py"


def option(verb: str, line: str, wrong: str) -> Fault:
    """A line of a verb that passes an option on, and what drops it."""
    return Fault(f"cli/{verb}.py", line, wrong, OPTIONS)


LISTED = [  # of the trial with 211 faults: those that no test noticed then
    # ownership at window edges
    Fault(
        "candidates/__init__.py", "(start >= inputs.core[:, :1])", "(start > inputs.core[:, :1])", "tests/candidates"
    ),
    Fault("candidates/__init__.py", "(end <= inputs.reach[:, 1:])", "(end < inputs.reach[:, 1:])", "tests/candidates"),
    Fault("candidates/__init__.py", "(end <= inputs.reach[:, 1:])", "(end > 0)", "tests/candidates"),
    Fault(
        "corpora/segment.py",
        "        return entity.end > following.start\n",
        "        return entity.end > following.end\n",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    Fault(
        "corpora/segment.py",
        "entity.end >= following.end and entity.end > following.start",
        "entity.end > following.end and entity.end > following.start",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    Fault(
        "corpora/segment.py",
        "words[core.end - 1].tolist()",
        "words[-1].tolist()",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    Fault(
        "corpora/segment.py",
        "elif not core.start <= spans[0].start < core.end:",
        "elif not core.start <= spans[0].start <= core.end:",
        "tests/corpora/test_segment.py tests/corpora/test_windows.py",
    ),
    # code and weights of strangers
    Fault("encoders/loading.py", "trust_remote_code=False", "trust_remote_code=True", "tests/test_hostile_folders.py"),
    Fault("training/state.py", "weights_only=True", "weights_only=False", "tests/training/test_resume.py"),
    Fault(
        "checkpoint.py",
        "load_model(module, str(path), strict=True)",
        "load_model(module, str(path), strict=False)",
        "tests/test_model_saving.py",
    ),
    # the order of files, and files in place
    Fault(
        "recognizer/__init__.py",
        'staged_folder(Path(folder), last="recipe.json")',
        "staged_folder(Path(folder))",
        "tests/test_model_saving.py",
    ),
    Fault(
        "files.py",
        "key=lambda file: file.name == last",
        "key=lambda file: file.name != last",
        "tests/test_model_saving.py",
    ),
    Fault(
        "files.py",
        "            file.replace(target)",
        "            shutil.copyfile(file, target)",
        "tests/test_model_saving.py",
    ),
    Fault(
        "files.py",
        "        part.replace(path)",
        "        shutil.copyfile(part, path)",
        "tests/test_model_saving.py tests/corpora/formats/test_files.py",
    ),
    Fault(
        "checkpoint.py",
        "        with atomic_path(path) as part:\n            save_model(module, str(part))",
        "        save_model(module, str(path))",
        "tests/test_model_saving.py",
    ),
    Fault(
        "checkpoint.py",
        "    with atomic_write(path) as file:",
        '    with path.open("w", encoding="utf-8") as file:',
        "tests/test_model_saving.py tests/training/test_resume.py",
    ),
    Fault("training/state.py", '        name += "-again"', "        pass", "tests/training/test_resume.py"),
    Fault(
        "training/state.py",
        '        write_json(target / "place.json", asdict(position))\n        write_text(folder / "latest", name)',
        '        write_text(folder / "latest", name)\n        write_json(target / "place.json", asdict(position))',
        "tests/training/test_resume.py",
    ),
    Fault(
        "training/loop.py",
        "        yield Progress(position, steps, means, scores, keep)\n",
        "        if run.states:\n"
        "            save_state(run.states, position, run.learner, optimizer, accelerator.scaler)\n"
        "        yield Progress(position, steps, means, scores, keep)\n",
        "tests/training/test_loop.py",
    ),
    # the steps of a training
    Fault("training/loop.py", "        if self.clip:\n", "        if False:\n", "tests/training/test_loop.py"),
    Fault(
        "training/loop.py",
        "step_seed(run.seed, position.phase, epoch, step,",
        "step_seed(run.seed, position.phase, 0, step,",
        "tests/training/test_loop.py",
    ),
    Fault(
        "training/loop.py", "seed=(run.seed, number, epoch))", "seed=(run.seed, number))", "tests/training/test_loop.py"
    ),
    Fault(
        "recognizer/__init__.py",
        "budget = min(budget, self._pace.units * self.engine.tokenize.lightness)",
        "budget = self._pace.units * self.engine.tokenize.lightness",
        "tests/test_recognizer.py",
    ),
    Fault(
        "objectives/tagging.py", "self.score(self.dropout(top))", "self.score(top)", "tests/objectives/test_tagging.py"
    ),
    Fault(
        "spans/pooled.py",
        "top=self.dropout(words.top), sentence=self.dropout(words.sentence)",
        "top=words.top, sentence=words.sentence",
        "tests/spans/test_spans.py",
    ),
    Fault(
        "spans/attentive.py",
        "        top = self.dropout(words.top)\n",
        "        top = words.top\n",
        "tests/spans/test_spans.py",
    ),
    Fault(
        "spans/biaffine.py",
        "        top = self.dropout(words.top)\n",
        "        top = words.top\n",
        "tests/spans/test_spans.py",
    ),
    Fault("spans/recurrent.py", "        top = self.dropout(words.top)\n", "        top = words.top\n", "tests/spans"),
    Fault(
        "spans/contextual.py",
        "self.dropout(self.around(words, candidates))",
        "self.around(words, candidates)",
        "tests/spans",
    ),
    Fault(
        "spans/contextual.py",
        "self.dropout(torch.relu(self.around.project",
        "(torch.relu(self.around.project",
        "tests/spans",
    ),
    # data and figures
    Fault("corpora/leaks/index.py", "likely = 2 * common *", "likely = common *", "tests/corpora/test_leaks.py"),
    Fault(
        "corpora/formats/tagged.py",
        "0 <= tag < len(names)",
        "tag < len(names)",
        "tests/corpora/formats/test_tagged.py tests/corpora/formats/test_hub.py",
    ),
    Fault(
        "evaluation/calibration.py",
        "np.append(scores[1:] != scores[:-1], True)",
        "np.append(scores[1:] == scores[1:], True)",
        "tests/evaluation/test_calibration.py",
    ),
    Fault(
        "evaluation/calibration.py",
        "at = int(points.f1.argmax())",
        "at = int(len(points.f1) - 1 - points.f1[::-1].argmax())",
        "tests/evaluation/test_calibration.py",
    ),
    Fault(
        "labels.py",
        '    return thresholds.get(label or "")\n',
        "    return None\n",
        "tests/objectives tests/test_recognizer.py",
    ),
    # options of the shell
    option("train", "[seed]", "[1]"),
    option("compare", "        seed=seed,\n", ""),
    option("analyze", "samples, seed, attribute", "samples, 1, attribute"),
    option("split", "folds, seed, format, on_error)\n    if json", "folds, 0, format, on_error)\n    if json"),
    option("compare", "        mode=mode,\n", ""),
    option("score", 'modes = MODES if mode == "all" else (mode,)', 'modes = MODES if mode == "all" else ("strict",)'),
    option("score", 'if subset == "discontinuous-documents":', 'if subset == "discontinuous":'),
    option("score", 'if protocol == "typing":', 'if protocol == "types":'),
    option("compare", "        samples=samples,\n", ""),
    option("analyze", "samples, seed, attribute", "1000, seed, attribute"),
    option("train", "        track=track,\n", ""),
    option("predict", "predict_stream(given, batch_size=batch_size,", "predict_stream(given,"),
    option("evaluate", "recognizer.predict(gold, batch_size=batch_size,", "recognizer.predict(gold,"),
    option("train", "    use_threads(threads)\n", ""),
    option("predict", "    use_threads(threads)\n", ""),
    option("train", "        on_leak=on_leak,\n", ""),
    option("experiment", '        "on_leak": on_leak,\n', ""),
    option("experiment", "        pruner=pruner,\n", ""),
    option("compare", "show(result, Console(), examples)", "show(result, Console())"),
    option("train", "mine = trusted(parts)", "mine = []"),
    option("predict", ", parts=trusted(parts))", ")"),
    option("evaluate", "parts=options.trusted(parts)", "parts=()"),
    option("validate", "if any(report.problems for report in reports):", "if reports[-1].problems:"),
    option("__init__", "except (BrokenPipeError, SystemExit) as end:", "except ZeroDivisionError as end:"),
]

NEW = [  # picked over the whole code base, before any test was written for them
    Fault(
        "corpora/formats/conll.py",
        "while len(columns) > self.width and not columns[-1]:",
        "while len(columns) > self.width:",
        "tests/corpora/formats/test_conll.py",
    ),
    Fault(
        "evaluation/matching.py",
        "max(span.end, span.start + 1), side, index)",
        "span.end, side, index)",
        "tests/evaluation/test_matching.py",
    ),
    Fault(
        "evaluation/matching.py",
        '(HALVES[verdict] * base + (verdict == "correct")) * base + 1',
        "HALVES[verdict] * base * base + 1",
        "tests/evaluation/test_matching.py",
    ),
    Fault(
        "evaluation/matching.py",
        "if total <= max(best, gain_at.get(wish, 0)):",
        "if total <= best:",
        "tests/evaluation/test_matching.py",
    ),
    Fault(
        "evaluation/significance.py",
        "(1 + beyond) / (1 + len(samples))",
        "beyond / len(samples)",
        "tests/evaluation/test_significance.py",
    ),
    Fault(
        "evaluation/significance.py",
        "highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[at]))",
        "highest = min(1.0, (len(p_values) - rank) * p_values[at])",
        "tests/evaluation/test_significance.py",
    ),
    Fault(
        "evaluation/significance.py",
        "draws = max(len(system) - 1, 1)",
        "draws = len(system)",
        "tests/evaluation/test_significance.py",
    ),
    Fault(
        "evaluation/significance.py",
        "return float(min(1.0, 2 * tail))",
        "return float(min(1.0, tail))",
        "tests/evaluation/test_significance.py",
    ),
    Fault(
        "evaluation/calibration.py",
        "threshold = float(points.thresholds[at : at + 2].mean())",
        "threshold = float(points.thresholds[at])",
        "tests/evaluation/test_calibration.py",
    ),
    Fault(
        "decoding.py",
        "return any(a.crosses(b) for a in one.spans for b in other.spans)",
        "return any(a.crosses(b) for a in one.spans[:1] for b in other.spans)",
        "tests/test_decoding.py",
    ),
    Fault(
        "decoding.py",
        "table = np.maximum(table, table.T)",
        "table = np.triu(table) + np.triu(table).T",
        "tests/test_joining.py",
    ),
    Fault(
        "decoding.py",
        "1 <= entity.start - groups[-1][-1].end <= gap",
        "0 <= entity.start - groups[-1][-1].end <= gap",
        "tests/test_joining.py",
    ),
    Fault("corpora/split.py", 'keys.append(("text", text))', "pass", "tests/corpora/test_splitting.py"),
    Fault(
        "corpora/leaks/index.py",
        "self.boilerplate = hashes[counts > BOILERPLATE]",
        "self.boilerplate = hashes[counts > 10**9]",
        "tests/corpora/test_leaks.py",
    ),
    Fault("batch.py", "pool = 32 * batch_size", "pool = len(lengths)", "tests/test_batch.py"),
    Fault(
        "layers/crf.py",
        "alpha = torch.where(word[1], step, alpha)",
        "alpha = step",
        "tests/layers/test_crf.py",
    ),
    Fault(
        "labels.py",
        "label not in self.annotates.get(corpus, self.types[corpus])",
        "label not in self.types[corpus]",
        "tests/test_labels.py",
    ),
    Fault("report/geometry.py", "float(values.std(ddof=1))", "float(values.std())", "tests/report/test_geometry.py"),
    Fault(
        "corpora/coverage.py",
        "if reached >= share * widths.total():",
        "if reached > share * widths.total():",
        "tests/corpora/test_coverage.py",
    ),
    Fault(
        "training/loop.py",
        "groups.setdefault((rate, decay * by_prefix(name, settings.decays)), [])",
        "groups.setdefault((rate, decay), [])",
        "tests/training/test_optimizer.py",
    ),
    Fault(
        "recipe_json.py",
        "isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)",
        "isinstance(value, int | float) and not isinstance(value, bool)",
        "tests/test_recipe_json.py",
    ),
    Fault(
        "experiments/run.py",
        'lines.setdefault(line["id"], line)',
        'lines[line["id"]] = line',
        "tests/experiments/test_experiment.py",
    ),
]

SUBTLE = [  # picked by reading the sources, before looking at any test
    Fault("text.py", "return max(span.end for span in self.spans)", "return self.spans[-1].end", "tests/test_text.py"),
    Fault(
        "text.py",
        "key: _without_relations(value) if key in LAYOUTS else value",
        "key: value",
        "tests/test_text.py tests/test_recognizer.py",
    ),
    Fault("text.py", "if spaceless >= spaced else", "if spaceless > spaced else", "tests/test_text.py"),
    Fault(
        "corpora/conventions.py",
        "if alone[sign] > inside[sign])",
        "if alone[sign])",
        "tests/corpora/test_conventions.py tests/training/test_given_words.py",
    ),
    Fault(
        "corpora/sentences.py",
        "self.kept_to = max(self.kept_to, self.kept.popleft().end)",
        "self.kept_to = self.kept.popleft().end",
        "tests/corpora/test_words.py",
    ),
    Fault(
        "corpora/statistics.py",
        "math.ceil(passed[-1] * share)",
        "math.floor(passed[-1] * share)",
        "tests/corpora/test_statistics.py",
    ),
    Fault(
        "corpora/overlaps.py",
        "max(merged[-1].end, span.end))",
        "span.end)",
        "tests/corpora/test_overlaps.py",
    ),
    Fault(
        "corpora/formats/standoff.py",
        "if INSIDE in span or span.start >= span.end:",
        "if span.start >= span.end:",
        "tests/corpora/formats/test_brat.py tests/corpora/formats/test_bioc.py tests/corpora/formats/test_pubtator.py",
    ),
    Fault(
        "corpora/formats/annotators.py",
        'chosen = [item for item in done if item.get("ground_truth") is True] or done',
        "chosen = done",
        "tests/corpora/formats/test_label_studio.py",
    ),
    Fault(
        "corpora/formats/annotators.py",
        '{"score": min(entity.score',
        '{"score": max(entity.score',
        "tests/corpora/formats/test_label_studio.py",
    ),
    Fault(
        "corpora/formats/pubtator.py",
        "return text[:-1] if len(passages) > 1 and not passages[-1][1] else text",
        "return text",
        "tests/corpora/formats/test_pubtator.py",
    ),
    Fault("files.py", ', mode="wb", mtime=0)', ', mode="wb")', "tests/corpora/formats/test_files.py"),
    Fault("batch.py", "return 2 if len(word) > 1 else 1", "return 2", "tests/test_batch.py"),
    Fault(
        "evaluation/errors.py",
        "return entity.spans == other.spans, entity.label == other.label, shared",
        "return entity.spans == other.spans, shared > 0, shared",
        "tests/evaluation/test_errors.py",
    ),
    Fault(
        "evaluation/errors.py",
        "_percent(self.span_errors, self.correct + self.fp)",
        "_percent(self.span_errors, self.fp + self.fn)",
        "tests/evaluation/test_errors.py",
    ),
    Fault(
        "evaluation/comparison.py",
        "(-gap.high, -gap.low, 1 - gap.wins)",
        "(-gap.high, -gap.low, gap.wins)",
        "tests/evaluation/test_comparison.py",
    ),
    Fault("candidates/proposed.py", ".ceil().clamp(min=1)", ".ceil()", "tests/candidates/test_proposed.py"),
    Fault(
        "objectives/links.py",
        "(at >= inputs.core[:, :1]) & (at < inputs.reach[:, 1:])",
        "(at >= inputs.core[:, :1]) & (at < inputs.core[:, 1:])",
        "tests/objectives/test_links.py",
    ),
    Fault(
        "objectives/conditional.py",
        "chosen = chosen & (marked | ~self._silent[states.inputs.dataset][:, None])",
        "chosen = chosen & (marked | True)",
        "tests/objectives/test_conditional.py",
    ),
    Fault(
        "layers/schedules.py",
        "return min(1.0, 2.0 * (at - math.floor(at)))",
        "return min(1.0, at - math.floor(at))",
        "tests/layers tests/recipes/test_conditional_recipe.py",
    ),
    Fault(
        "training/loop.py",
        "stale=0 if rises else position.stale + 1",
        "stale=0 if keep else position.stale + 1",
        "tests/training/test_loop.py tests/training/test_going_on.py",
    ),
    Fault(
        "training/loop.py",
        "+ math.ceil(position.step / settings.together)",
        "+ position.step",
        "tests/training/test_resume.py -k killed_inside",
    ),
    Fault(
        "training/loop.py",
        'group["eps"] = group["base_eps"] / math.sqrt(second)',
        'group["eps"] = group["base_eps"]',
        "tests/recipes/test_compress_paper.py",
    ),
    Fault(
        "training/multi_corpus.py",
        "draw(own, epoch * quotas[name],",
        "draw(own, 0,",
        "tests/training/test_mixing.py",
    ),
    Fault(
        "training/warm_start.py",
        "if taken or len(set(names.values())) < len(names):",
        "if taken:",
        "tests/training",
    ),
    Fault(
        "recognizer/documents.py",
        "(label, min(calibrated(types[label]).score for types in fragments))",
        "(label, max(calibrated(types[label]).score for types in fragments))",
        "tests/test_recognizer.py tests/objectives/test_typing.py",
    ),
    Fault(
        "recognizer/__init__.py",
        "tempered(low, 1 / temperature)",
        "tempered(low, temperature)",
        "tests/test_recognizer.py tests/training/test_calibrated_model.py",
    ),
    Fault(
        "experiments/results.py",
        ".get(label, {}).get(name, 0.0) for line in lines]",
        '.get(label, {}).get(name, 0.0) for line in lines if label in line[part]["labels"]]',
        "tests/experiments/test_experiment_tables.py",
    ),
    Fault(
        "tuning/search.py",
        '"dev corpus": corpus_fingerprint(corpora.dev)',
        '"dev corpus": corpus_fingerprint(corpora.train)',
        "tests/tuning/test_tune.py -k something_else",
    ),
    Fault(
        "tokenizing/hashed.py",
        'f"l{low}" if len(word) <= LONGEST else "l"',
        'f"l{low}"',
        "tests/encoders/test_hashed.py",
    ),
]

FAULTS = {"first": FIRST, "listed": LISTED, "new": NEW, "subtle": SUBTLE}

WIDER = "tests -m 'not slow'"
PATIENCE = {"named": 120, "package": 420, "wider": 840}
"""Seconds that each round of tests may take."""
ENDLESS = "no end"  # what is noticed where tests run out of time that end in time without the fault


def rounds(fault: Fault) -> dict[str, str]:
    """The tests of a fault, nearest first: those named beside it, those of its package, the quick run."""
    folder = Path("tests", *Path(fault.file).parent.parts)
    package = {"package": str(folder)} if folder != Path("tests") and (ROOT / folder).is_dir() else {}
    return {"named": fault.tests, **package, "wider": WIDER}


def noticed(fault: Fault | None, tests: str, patience: float, folder: Path) -> str | None:
    """The first test that fails on a copy of the source with the fault, or `ENDLESS`; None where all pass in time.

    The tests run in a fork of this process, which has imported torch already.
    """
    source = folder / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    if fault is not None:
        path = source / "wingspan" / fault.file
        path.write_text(path.read_text(encoding="utf-8").replace(fault.line, fault.wrong, 1), encoding="utf-8")
    printed = folder / "printed"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = run_tests(tests, source, printed)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:  # a copy of this process must not go on with its work
            os._exit(code)
    code = ended(child, patience)
    if code is None:
        return ENDLESS
    if code == 0:
        return None
    text = printed.read_text(encoding="utf-8", errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\S+)", text, re.MULTILINE)
    if failed is None:
        raise SystemExit(f"{fault}: the tests ended with {code}\n{text[-3000:]}")
    return failed[1]


def run_tests(tests: str, source: Path, printed: Path) -> int:
    """The exit code of the tests on a source, in a process that is good for nothing else; writes what they print."""
    os.setpgid(0, 0)
    out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, 1)
    os.dup2(out, 2)
    os.chdir(ROOT)
    os.environ["PYTHONPATH"] = str(source)  # for the processes that tests start
    sys.path[0] = str(source)  # in place of this folder, whose modules are called as others' are
    del sys.modules["__main__"].__file__  # or processes that tests start would import this file
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
    quiet += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # modules of plugins that transformers has imported
    return pytest.main([*quiet, *shlex.split(tests)])


def ended(child: int, patience: float) -> int | None:
    """The exit code of a process; None if it had to be killed, with all that it started."""
    last = time.monotonic() + patience
    while time.monotonic() < last:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def tried(fault: Fault, furthest: str, folder: Path) -> dict[str, object]:
    """Which test notices a fault, in which round, and how long that took."""
    began = time.monotonic()
    test = None
    for name, tests in rounds(fault).items():
        test = noticed(fault, tests, PATIENCE[name], folder)
        if test == ENDLESS and noticed(None, tests, PATIENCE[name], folder) is not None:
            test = None  # these tests always take as long
        if test or name == furthest:
            break
    seconds = round(time.monotonic() - began, 1)
    return {"noticed_by": test, "round": name, "seconds": seconds}


def main() -> None:
    """Tries every fault that no earlier line of the results says was noticed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results" / "faults.jsonl")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--furthest", choices=PATIENCE, default="wider", help="the last round to try")
    parser.add_argument("--minutes", type=float, default=1e9, help="start no fault after so many")
    parser.add_argument("--group", choices=FAULTS)
    parser.add_argument("--only", default="", help="a part of the file's name or of the fault")
    given = parser.parse_args()
    chosen = [
        (group, fault)
        for group, faults in FAULTS.items()
        for fault in faults
        if given.group in (None, group) and given.only in f"{fault.file} {fault.line} {fault.wrong}"
    ]
    lost = [
        fault
        for _, fault in chosen
        if not (place := SOURCE / fault.file).is_file() or fault.line not in place.read_text("utf-8")
    ]
    for fault in lost:
        print(f"{fault.file}: the line is gone: {fault.line}")
    if given.check or lost:
        sys.exit(bool(lost))
    last = time.monotonic() + 60 * given.minutes
    known = {(row["group"], row["file"], row["line"], row["wrong"]): row["noticed_by"] for row in read(given.results)}
    with tempfile.TemporaryDirectory() as name, given.results.open("a", encoding="utf-8") as out:
        folder = Path(name)
        every = " ".join(sorted({name for _, fault in chosen for name in shlex.split(fault.tests) if "/" in name}))
        if given.clean and (test := noticed(None, every, 3600, folder)):
            raise SystemExit(f"{test} is red without a fault")
        for group, fault in sorted(chosen, key=lambda one: (one[0], *one[1][:3]) in known):  # new ones first
            place = {"group": group, "file": fault.file, "line": fault.line, "wrong": fault.wrong}
            if known.get(tuple(place.values())) is None and time.monotonic() < last:
                row = {**place, **tried(fault, given.furthest, folder), "commit": commit()}
                known[tuple(place.values())] = row["noticed_by"]
                print(json.dumps(row), file=out, flush=True)
                print(f"{fault.file}: {fault.wrong.strip()}: {row['noticed_by'] or 'NOT NOTICED'}", flush=True)
    wanted = [(group, fault.file, fault.line, fault.wrong) for group, fault in chosen]
    found = sum(known.get(key) is not None for key in wanted)
    print(f"{found} of {len(wanted)} faults are noticed; {sum(key not in known for key in wanted)} were not tried")
    sys.exit(found < len(wanted))


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a result file, if it exists."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


if __name__ == "__main__":
    main()
