"""The compact file of a lexicon: numpy arrays in one .npz, nothing in it that has to be unpickled."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path

import numpy as np

from wingspan.corpora.concept_table import ConceptTable, Strings
from wingspan.corpora.formats import CorpusError
from wingspan.corpora.term_keys import in_order

SUFFIX = ".npz"
_KIND, _VERSION = "wingspan lexicon", 1
_Bytes = np.uint8


def write_table(table: ConceptTable, folds: tuple[str, ...], path: Path) -> None:
    """Writes under a temporary name, then renames. Equal tables give equal bytes."""
    if path.suffix != SUFFIX:
        raise CorpusError(f"{path}: a compact lexicon is a {SUFFIX} file; name it {path.name}{SUFFIX}")
    header = {"kind": _KIND, "version": _VERSION, "folds": folds, "types": table.types}
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
            np.savez_compressed(
                out,
                header=np.frombuffer(json.dumps(header).encode(), _Bytes),
                ids=np.frombuffer(table.ids.text, _Bytes),
                id_sizes=_sizes(table.ids.ends),
                names=np.frombuffer(table.names.text, _Bytes),
                name_sizes=_sizes(table.names.ends),
                names_of_concept=np.diff(table.first).astype(np.uint32),
                checksums=table.checksums,
                places=table.places,
                kinds=table.kinds,
            )
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_table(path: Path) -> tuple[ConceptTable, tuple[str, ...]]:
    """The table of a file, and how its terms are folded."""
    try:
        # a file that is no zip is refused before numpy guesses what else it may be
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            header = json.loads(file["header"].tobytes())
            if header.get("kind") != _KIND or header.get("version") != _VERSION:
                raise ValueError("another kind or version")
            table = ConceptTable(
                Strings(file["ids"].tobytes(), _ends(file["id_sizes"])),
                Strings(file["names"].tobytes(), _ends(file["name_sizes"])),
                np.concatenate([[0], _ends(file["names_of_concept"])]),
                file["checksums"],
                file["places"],
                file["kinds"],
                tuple(map(tuple, header["types"])),
            )
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise CorpusError(
            f"{path}: this is no lexicon that this version can read; make it again with wingspan lexicon"
        ) from error
    return table, in_order(header["folds"])


def _sizes(ends: np.ndarray) -> np.ndarray:
    """Lengths take less room than places when they are compressed."""
    return np.diff(ends, prepend=0).astype(np.uint32)


def _ends(sizes: np.ndarray) -> np.ndarray:
    return np.cumsum(sizes, dtype=np.int64)
