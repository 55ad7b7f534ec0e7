"""Writes down which files the model in the box has: `python models/pin.py`, after every change of the model folder.

The list, `src/wingspan/box.json`, has the SHA-256 of each file, and goes into the main package. With `--check` nothing
is written, and the exit code is 1 where the list and the folder differ.
"""

import json
import shutil
import sys
from pathlib import Path

from wingspan.box import FOLDER, NAME, PACKAGE, differences, files_in
from wingspan.files import atomic_write, sha256_of

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "models" / NAME / PACKAGE / FOLDER
PINS = ROOT / "src" / "wingspan" / "box.json"


def pin(folder: Path = MODEL, pins: Path = PINS) -> dict[str, str]:
    """Writes the list of a folder's files; returns it."""
    found = {name: sha256_of(folder / name) for name in files_in(folder)}
    with atomic_write(pins) as file:
        file.write(json.dumps(found, indent=1) + "\n")
    return found


def main() -> None:
    """Writes the list, or checks it."""
    if sys.argv[1:] == ["--check"]:
        wrong = differences(MODEL, json.loads(PINS.read_text(encoding="utf-8")))
        sys.exit(f"{MODEL}: {', '.join(wrong)}; run: python models/pin.py" if wrong else 0)
    if sys.argv[1:]:
        sys.exit(__doc__)
    shutil.rmtree(ROOT / "models" / NAME / "build", ignore_errors=True)  # files of an older model would be packed again
    found = pin()
    size = sum((MODEL / name).stat().st_size for name in found)
    print(f"{PINS.relative_to(ROOT)}: {len(found)} files, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
