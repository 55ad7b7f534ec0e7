"""A lexicon of a hundred thousand concepts: how long it takes to build, to open and to query, and its memory.

python benchmarks/lexicon.py [--concepts 100000] [--json benchmarks/results/lexicon.jsonl]

The concepts are invented. Loading is measured in fresh processes, from the start of `load` to the first answer, and so
is the memory that loading and 2,000 look-ups add. Building and look-ups are in CPU time. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from wingspan.corpora.lexicon import Lexicon
from wingspan.corpora.lexicon.concepts import Concept

SYLLABLES = ("ber", "cor", "dex", "fen", "gly", "hep", "kar", "lum", "myc", "neph", "osi", "pul", "ren", "ster", "tox")
LOAD = """
import sys, time
from wingspan.corpora.lexicon import load
terms = sys.stdin.read().splitlines()
def resident():  # the peak would be that of the parent process
    return int(open("/proc/self/statm").read().split()[1]) / 256
before = resident()
began = time.perf_counter()
lexicon = load(sys.argv[1])
lexicon.synonyms(terms[0])
seconds = time.perf_counter() - began
assert any([lexicon.synonyms(term) for term in terms])
print(seconds, resident() - before)
"""


def invented(number: int, seed: int = 1) -> Iterator[Concept]:
    """Concepts with one to six names of one to four words, about as many and as long as in MeSH."""
    draw = random.Random(seed)

    def word() -> str:
        return "".join(draw.choices(SYLLABLES, k=draw.randint(2, 5)))

    for at in range(number):
        names = {" ".join(word() for _ in range(draw.randint(1, 4))) for _ in range(draw.randint(1, 6))}
        yield Concept(f"MADE:{at:07}", tuple(sorted(names)), (draw.choice(("Disease", "Chemical")),))


def main() -> None:
    """Measures once what is slow, several times what is quick."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--concepts", type=int, default=100_000)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    concepts = list(invented(chosen.concepts))
    began = time.process_time()
    lexicon = Lexicon.of(concepts)
    made = time.process_time() - began
    terms = [concept.names[0] for concept in concepts[:: max(1, len(concepts) // 2_000)]]
    each = []
    for _ in range(5):
        began = time.process_time()
        for term in terms:
            lexicon.synonyms(term)
        each.append((time.process_time() - began) / len(terms))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.sqlite"
        lexicon.save(path)
        size = path.stat().st_size / 2**20
        rounds = []
        for _ in range(5):
            command = [sys.executable, "-c", LOAD, str(path)]
            done = subprocess.run(command, input="\n".join(terms), capture_output=True, text=True, check=True)
            rounds.append([float(number) for number in done.stdout.split()])
    line = {
        "concepts": len(lexicon),
        "names": lexicon.num_names,
        "make_seconds": round(made, 2),
        "load_seconds": round(median(seconds for seconds, _ in rounds), 4),
        "lookup_microseconds": round(1e6 * median(each), 1),
        "memory_mib": round(median(memory for _, memory in rounds), 1),
        "file_mib": round(size, 2),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    print(json.dumps(line))
    if chosen.json:
        chosen.json.write_text(json.dumps(line) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
