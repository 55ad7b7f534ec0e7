"""Single-line faults in the source, each of which some test must notice.

    python benchmarks/faults.py                     all faults, one line each; exit code 1 if one goes unnoticed
    python benchmarks/faults.py --results FILE      also appends a JSON line
    python benchmarks/faults.py --check             only checks that every fault still finds its line
    python benchmarks/faults.py --group new --only conll     a part of them

A fault is a line of the source and its wrong version. The source is copied to a temporary folder, the fault put in, and
the tests named beside it are run against the copy; where they stay green, the quick run is. The tests must pass without
the fault (`--clean` runs them so).
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

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
    # resume
    Fault("training/state.py", "weights_only=True", "weights_only=False", "tests/training/test_resume.py -k no_code"),
    Fault("training/state.py", 'name += "-again"', "pass", "tests/training/test_resume.py"),
    Fault(
        "training/loop.py",
        "step_seed(run.seed, position.phase, epoch, step,",
        "step_seed(run.seed, position.phase, 0, step,",
        "tests/frozen/test_frozen_trainings.py",
    ),
    # checkpoint safety
    Fault("checkpoint.py", "strict=True)", "strict=False)", "tests/test_model_folder.py tests/test_model_saving.py"),
    Fault(
        "recipe_json.py",
        'module.startswith("wingspan.")',
        'module.startswith("w")',
        "tests/test_recipe_json.py tests/test_model_folder.py",
    ),
    Fault(
        "files.py",
        "part.replace(path)",
        "shutil.copy(part, path)",
        "tests/corpora/formats/test_files.py tests/test_model_saving.py",
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
        "tests/training/test_resume.py",
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
        ", budget=self.recipe.train.budget)",
        ")",
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
    Fault("corpora/formats/tagged.py", "0 <= tag < len(names)", "tag < len(names)", "tests/corpora/formats"),
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
        "objectives/__init__.py",
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
    option("train", "parts=trusted(parts)", "parts=[]"),
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
        "tests/corpora/formats",
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
        "alpha = torch.where(mask[:, at, None, None], step, alpha)",
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

FAULTS = {"first": FIRST, "listed": LISTED, "new": NEW}


QUICK_RUN = "-m 'not slow'"
PATIENCE = 300  # seconds


def noticed(fault: Fault | None, tests: str, folder: Path) -> bool:
    """Whether the tests fail on a copy of the source with the fault."""
    source = folder / "src"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "src", source)
    if fault is not None:
        path = source / "wingspan" / fault.file
        path.write_text(path.read_text(encoding="utf-8").replace(fault.line, fault.wrong, 1), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    quiet = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", *quiet, *shlex.split(tests)]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:  # a fault that never ends is seen by everyone
        return fault is not None
    if done.returncode not in (0, 1, 2):  # 2: a module could not be imported
        raise SystemExit(done.stdout + done.stderr)
    return done.returncode > 0


def main() -> None:
    """Tries every fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--named", action="store_true", help="only the named tests, no quick run")
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
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.clean and noticed(
            None, " ".join(sorted({name for _, fault in chosen for name in fault.tests.split()})), folder
        ):
            raise SystemExit("the tests are red without a fault")
        for group, fault in chosen:
            by = next(
                (tests for tests in (fault.tests, QUICK_RUN)[: 2 - given.named] if noticed(fault, tests, folder)), None
            )
            rows.append(
                {"group": group, "file": fault.file, "line": fault.line, "wrong": fault.wrong, "noticed_by": by}
            )
            print(
                f"{'noticed' if by else 'NOT NOTICED'}  {group}  {fault.file}: {fault.wrong.strip()}  ({by})",
                flush=True,
            )
    if given.results:
        counts = {
            group: {"faults": len(own), "noticed": sum(row["noticed_by"] is not None for row in own)}
            for group in FAULTS
            if (own := [row for row in rows if row["group"] == group])
        }
        figures = {"faults": len(rows), "noticed": sum(row["noticed_by"] is not None for row in rows), "groups": counts}
        with given.results.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**figures, "rows": rows}) + "\n")
    sys.exit(not all(row["noticed_by"] for row in rows))


if __name__ == "__main__":
    main()
