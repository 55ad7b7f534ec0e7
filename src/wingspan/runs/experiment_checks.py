"""Everything about a plan that can go wrong is found before anything is trained."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from wingspan.corpora.statistics import describe
from wingspan.encoders import Encoder
from wingspan.experiments.ledger import Ledger
from wingspan.experiments.plan import Plan, PlannedCorpus, identity
from wingspan.recipe import expect
from wingspan.recognizer import usable_device
from wingspan.record import to_record
from wingspan.runs.experiment_run import Assignment, read_parts
from wingspan.runs.recognizers_only import must_recognize
from wingspan.runs.synonyms import lexicon_of
from wingspan.runs.train import prepare


def check(plan: Plan) -> dict[str, Assignment]:
    """The runs of a plan by identity, in order, after a look at folder, device, recipes, corpora and encoders."""
    Ledger(plan.output).prepare()
    usable_device(plan.device)
    check_recipes(plan)
    fingerprints = {corpus.name: corpus_fingerprints(corpus, plan.evaluate) for corpus in plan.corpora}
    return assignments(plan, fingerprints)


def check_recipes(plan: Plan) -> None:
    """Every recipe takes the settings it gets on every corpus, and every encoder can be loaded."""
    seen: set[str] = set()
    for system in plan.systems:
        for corpus in plan.corpora:
            try:
                recipe = prepare(system.recipe, system.encoder, plan.settings_of(system, corpus))
                must_recognize(recipe, "an experiment")
                encoder = json.dumps(to_record(recipe.encoder))
                if encoder not in seen:
                    expect(recipe.encoder(), Encoder)
                    seen.add(encoder)
            except ValueError as error:
                raise ValueError(f"recipe {system.name!r} on corpus {corpus.name!r}: {error}") from error


def corpus_fingerprints(corpus: PlannedCorpus, evaluate: Sequence[str]) -> dict[str, str]:
    """Reads all parts of a corpus once: what is in them is part of a run's identity."""
    given = read_parts(corpus.sources())
    lexicon_of(corpus.lexicon, given.train)  # read to see that it can be
    parts = {"train": given.train, "dev": given.dev, "test": given.test}
    found = {part: describe(documents) for part, documents in parts.items() if documents}
    missing = [part for part in evaluate if part not in found]
    if missing:
        raise ValueError(f"{corpus.several}: the target has no {missing[0]} documents; give them, or set evaluate")
    if not found["train"].entities:
        where = corpus.several or corpus.train[0]
        raise ValueError(f"corpus {corpus.name!r}: no entity in {where}; there is nothing to learn")
    fingerprints = {part: statistics.fingerprint for part, statistics in found.items()}
    if given.declared is not None:
        said = json.dumps([given.declared.to_dict(), given.weights, given.settings], sort_keys=True)
        fingerprints["corpora"] = hashlib.sha256(said.encode()).hexdigest()[:12]
    return fingerprints


def assignments(plan: Plan, fingerprints: Mapping[str, Mapping[str, str]]) -> dict[str, Assignment]:
    """Each run once; two entries of a plan that are the same training are a slip of the pen."""
    found: dict[str, Assignment] = {}
    for run in plan.runs():
        of_corpus = fingerprints[run.corpus.name]
        name = identity(run, of_corpus, plan.evaluate, plan.on_leak)
        if name in found:
            raise ValueError(f"{run} is the same training as {found[name].run}; remove one, or change its settings")
        found[name] = Assignment(name, run, plan, of_corpus)
    return found
