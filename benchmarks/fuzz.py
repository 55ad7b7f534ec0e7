"""Readers under mutation: damaged files of every format, and everything that must hold of a reader on each.

    python benchmarks/fuzz.py                              20,000 files, one line for each format
    python benchmarks/fuzz.py --files 1000 --only conll    fewer files, one format
    python benchmarks/fuzz.py --results FILE               also appends JSON lines

Files are damaged as in `tests/support/damage.py`, one in fifty of them a long one, and examined as in
`tests/support/examining.py`: read or refused in one sentence, sound documents, as many documents and entities as an
independent count of the file says or a message, equal when written and read again, and not slow. The exit code is 1 if
there is a defect; each is printed, and the file that shows it is left in the folder that `--keep` names.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from walks import ROOT, commit

sys.path[0] = str(ROOT / "tests" / "support")

from damage import SoundFile, a_long_file, available, sound_files  # noqa: E402
from examining import examine  # noqa: E402

from wingspan.corpora.formats import FORMATS  # noqa: E402

LONG_EVERY = 50


def run(name: str, files: int, seed: str, keep: Path | None) -> dict[str, Any]:
    """Damages and examines files of one format."""
    draw = random.Random(f"{seed} {name}")
    outcomes: Counter[str] = Counter()
    defects: list[str] = []
    slowest, began = 0.0, time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        short = sound_files(name, Path(folder))
        long = a_long_file(name, Path(folder))
        for number in range(files):
            chosen = long if number % LONG_EVERY == LONG_EVERY - 1 else draw.choice(short)
            found, seconds, shown = one_file(chosen, draw, again=chosen is not long)
            outcomes[found] += 1
            slowest = max(slowest, seconds)
            for defect, data in shown:
                defects.append(f"file {number}: {defect}")
                print(f"  {name}, {defects[-1]}", flush=True)
                if keep is not None:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{name}-{number}").write_bytes(data)
    return {
        "commit": commit(),
        "format": name,
        "seed": seed,
        "files": files,
        "read": outcomes["read"],
        "reported": outcomes["reported"],
        "refused": outcomes["refused"],
        "defects": len(defects),
        "slowest_seconds": round(slowest, 2),
        "seconds": round(time.process_time() - began),
    }


def one_file(sound: SoundFile, draw: random.Random, again: bool) -> tuple[str, float, list[tuple[str, bytes]]]:
    """How one damaged file was taken, in how many seconds, and its defects with what is in the file."""
    file, mutation, data = sound.damaged(draw)
    whole = file.read_bytes()
    file.write_bytes(data)
    findings = examine(sound.format, sound.path, len(data), again)
    file.write_bytes(whole)
    return findings.outcome, findings.seconds, [(f"{mutation.__name__}: {one}", data) for one in findings.defects]


def main() -> None:
    """Runs the formats one after the other."""
    parser = argparse.ArgumentParser(description="Readers under mutation.")
    parser.add_argument("--files", type=int, default=20_000, help="damaged files over all formats")
    parser.add_argument("--only", action="append", help="a format; may be given several times")
    parser.add_argument("--seed", default="1", help="other seeds damage otherwise")
    parser.add_argument("--keep", type=Path, help="a folder for files that show a defect")
    parser.add_argument("--results", type=Path, help="append JSON lines to this file")
    arguments = parser.parse_args()
    names = [name for name in arguments.only or FORMATS if available(name)]
    share = -(-arguments.files // len(names))
    total: Counter[str] = Counter()
    for name in names:
        row = run(name, share, arguments.seed, arguments.keep)
        total.update({key: row[key] for key in ("files", "read", "reported", "refused", "defects")})
        print(" ".join(f"{key}={row[key]}" for key in list(row)[1:]), flush=True)
        if arguments.results is not None:
            with arguments.results.open("a") as results:
                results.write(json.dumps(row) + "\n")
    print(" ".join(f"{key}={count:,}" for key, count in total.items()))
    sys.exit(total["defects"] > 0)


if __name__ == "__main__":
    main()
