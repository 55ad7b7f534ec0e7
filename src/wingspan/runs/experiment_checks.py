"""Everything about a plan that can go wrong is found before anything is trained."""

from __future__ import annotations

import json
from collections.abc import Mapping

from wingspan.corpora.statistics import describe
from wingspan.encoders import Encoder
from wingspan.experiments.ledger import Ledger
from wingspan.experiments.plan import Plan, PlannedCorpus, identity
from wingspan.recipe import expect
from wingspan.recognizer import usable_device
from wingspan.record import to_record
from wingspan.runs.experiment_run import Assignment, read_part
from wingspan.runs.synonyms import lexicon_of
from wingspan.runs.train import prepare


def check(plan: Plan) -> dict[str, Assignment]:
    """The runs of a plan by identity, in order, after a look at folder, device, recipes, corpora and encoders."""
    Ledger(plan.output).prepare()
    usable_device(plan.device)
    check_recipes(plan)
    fingerprints = {corpus.name: corpus_fingerprints(corpus) for corpus in plan.corpora}
    return assignments(plan, fingerprints)


def check_recipes(plan: Plan) -> None:
    """Every recipe takes the settings it gets on every corpus, and every encoder can be loaded."""
    seen: set[str] = set()
    for system in plan.systems:
        for corpus in plan.corpora:
            try:
                recipe = prepare(system.recipe, system.encoder, plan.settings_of(system, corpus))
                encoder = json.dumps(to_record(recipe.encoder))
                if encoder not in seen:
                    expect(recipe.encoder(), Encoder)
                    seen.add(encoder)
            except ValueError as error:
                raise ValueError(f"recipe {system.name!r} on corpus {corpus.name!r}: {error}") from error


def corpus_fingerprints(corpus: PlannedCorpus) -> dict[str, str]:
    """Reads all parts of a corpus once: what is in them is part of a run's identity."""
    documents = {part: read_part(paths, corpus.format) for part, paths in corpus.files().items()}
    lexicon_of(corpus.lexicon, documents["train"])  # read to see that it can be
    found = {part: describe(some) for part, some in documents.items()}
    if not found["train"].entities:
        raise ValueError(f"corpus {corpus.name!r}: no entity in {corpus.train[0]}; there is nothing to learn")
    return {part: statistics.fingerprint for part, statistics in found.items()}


def assignments(plan: Plan, fingerprints: Mapping[str, Mapping[str, str]]) -> dict[str, Assignment]:
    """Each run once; two entries of a plan that are the same training are a slip of the pen."""
    found: dict[str, Assignment] = {}
    for run in plan.runs():
        of_corpus = fingerprints[run.corpus.name]
        name = identity(run, of_corpus, plan.evaluate)
        if name in found:
            raise ValueError(f"{run} is the same training as {found[name].run}; remove one, or change its settings")
        found[name] = Assignment(name, run, plan, of_corpus)
    return found
