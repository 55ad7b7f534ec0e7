"""What stands below every table: encoder, device, commit, and which corpora exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wingspan.experiments.plan import PARTS, Plan
from wingspan.experiments.tables import Results


def provenance(plan: Plan, results: Results) -> list[str]:
    """One sentence about the runs, one about the corpora."""
    lines = [line for runs in results.values() for line in runs]
    if not lines:
        return []
    about = {
        "Encoder": [line["encoder"] for line in lines],
        "Device": [line["device"] for line in lines],
        "Commit": [line["commit"] or "not given" for line in lines],
    }
    runs = ". ".join(f"{name}: {', '.join(dict.fromkeys(values))}" for name, values in about.items())
    corpora = {line["corpus"]["name"]: line["corpus"]["fingerprints"] for line in lines}
    named = [f"{corpus.name}: {contents(corpora[corpus.name])}" for corpus in plan.corpora if corpus.name in corpora]
    return [f"{runs}.", "; ".join(named) + ".", *about_leaks(lines)]


def about_leaks(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """What became of training documents that are in dev or test, for each corpus that has some."""
    told = {
        line["corpus"]["name"]: line["leaks"] for line in lines if line.get("leaks", {}).get("leaking_train_documents")
    }
    kept = {"drop": "dropped", "allow": "trained on all the same"}
    return [
        f"{name}: {leaks['leaking_train_documents']:,} training documents are in dev or test, {kept[leaks['on_leak']]}."
        for name, leaks in told.items()
    ]


def contents(fingerprints: Mapping[str, Any]) -> str:
    """Documents and entities of each part, with the beginning of its fingerprint."""
    parts = [part for part in ("train", *PARTS) if part in fingerprints]
    found: Sequence[str] = [f"{part} {_content(fingerprints[part])}" for part in parts]
    return ", ".join(found)


def _content(fingerprint: str) -> str:
    digest, documents, entities = fingerprint.removeprefix("sha256:").split("-")
    return f"{int(documents):,} documents with {int(entities):,} entities ({digest[:8]})"
