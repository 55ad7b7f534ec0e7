"""The packages of other libraries for a machine without a network: the folder that `peers.py --packages` takes.

    python benchmarks/peer_packages.py --folder build/peer-packages --archive build/peer-packages.tar.xz

Each library has a folder with what its pins in `peers.py` need and the machine does not have, for the machine's Python
and Linux x86_64, without what no race needs (tests, sources, symbols for debuggers). What the machine has is in
`MACHINE`, from `pip list` there: pip is given an empty package for each, so that it neither fetches torch nor chooses
what does not go with it. `strip` (binutils) must be there.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from peers import PINS

PYTHON = "3.12"
MACHINE = {
    "accelerate": "1.15.0",
    "huggingface-hub": "1.33.0",
    "numpy": "2.5.2",
    "pyarrow": "21.0.0",  # or later
    "rich": "13.8.0",  # or later
    "safetensors": "0.8.0",
    "scikit-learn": "1.7.0",  # or later
    "sentencepiece": "0.2.2",
    "tokenizers": "0.23.2",
    "torch": "2.11.0",
}
"""Packages of the machine and their versions; small ones that are not named here are brought along."""
UNUSED = {"hf-xet": "1.1.3", "seqeval": "1.2.2", "setuptools": "80.0.0"}
"""Packages that a library requires and no race imports; of seqeval, only an old wheel that needs Keras is to be had."""
LIBRARIES = {"span_marker": ("huggingface-hub", "tokenizers"), "spacy": ("huggingface-hub", "tokenizers"), "gliner": ()}
"""The libraries, and what each needs in another version than the machine's."""
WITHOUT = ("**/__pycache__", "**/tests", "bin", "share", "**/*.pyx", "**/*.cpp")


def packed(library: str, place: Path) -> None:
    """Installs what a library needs beside the machine's packages into an empty folder."""
    there = {name: version for name, version in (MACHINE | UNUSED).items() if name not in LIBRARIES[library]}
    platforms = [f"--platform=manylinux_2_{minor}_x86_64" for minor in (17, 24, 26, 27, 28)]
    with tempfile.TemporaryDirectory() as made:
        for name, version in there.items():
            stand_in(Path(made), name, version)
        constraint = Path(made, "constraint.txt")
        constraint.write_text("".join(f"{name}=={version}+there\n" for name, version in there.items()))
        where = [f"--target={place}", f"--find-links={made}", f"--constraint={constraint}"]
        kinds = ["--only-binary=:all:", f"--python-version={PYTHON}", "--platform=manylinux2014_x86_64", *platforms]
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-compile", "--no-warn-conflicts"]
        subprocess.run([*pip, *where, *kinds, *PINS[library]], check=True)
    for name in there:
        for info in place.glob(f"{name.replace('-', '_')}-*+there.dist-info"):
            shutil.rmtree(info)


def stand_in(folder: Path, name: str, version: str) -> None:
    """An empty wheel, which pip takes for the package that the machine has."""
    stem = f"{name.replace('-', '_')}-{version}+there"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        info = f"{stem}.dist-info"
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}+there\n")
        about = "Wheel-Version: 1.0\nGenerator: peers\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(f"{info}/WHEEL", about)
        wheel.writestr(f"{info}/RECORD", "")


def strip(place: Path) -> None:
    """Removes what no race needs, also the symbols for debuggers, which are most of spaCy."""
    for path in [path for pattern in WITHOUT for path in place.glob(pattern)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    modules = [str(path) for path in place.rglob("*.so")]
    subprocess.run(["strip", "--strip-debug", *modules], check=True)


def unmet(place: Path, machine: Mapping[str, str]) -> Iterator[str]:
    """What the packages of a folder require on the machine's Python, and neither they nor the machine have."""
    python = {"python_version": PYTHON, "python_full_version": f"{PYTHON}.3", "extra": ""}
    found = list(distributions(path=[str(place)]))
    versions = dict(machine) | {str(canonicalize_name(one.name)): one.version for one in found}
    for one in found:
        for wanted in map(Requirement, one.requires or ()):
            if wanted.marker is None or wanted.marker.evaluate(python):
                version = versions.get(canonicalize_name(wanted.name))
                if version is None or not wanted.specifier.contains(version, prereleases=True):
                    yield f"{one.name} {one.version} needs {wanted}, not {version}"


def main() -> None:
    """Makes the folder of each library, says what is missing, and packs them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--archive", type=Path, help="a .tar.xz of the folder")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    given, missing = parser.parse_args(), list[str]()
    for library in given.libraries.split(","):
        place = given.folder / library
        shutil.rmtree(place, ignore_errors=True)
        packed(library, place)
        strip(place)
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        print(f"{library}: {size / 1e6:.0f} MB", flush=True)
        missing += unmet(place, MACHINE | UNUSED)
    if given.archive:
        files = [path.relative_to(given.folder) for path in given.folder.glob("*/**/*") if path.is_file()]
        with tarfile.open(given.archive, "w:xz", preset=9) as archive:
            for path in sorted(files, key=lambda path: path.parts[1:]):  # what libraries have in common comes together
                archive.add(given.folder / path, Path(given.folder.name, path))
        print(f"{given.archive}: {given.archive.stat().st_size / 1e6:.0f} MB")
    if missing:
        raise SystemExit("\n".join(["these packages will not work there:", *missing]))


if __name__ == "__main__":
    main()
