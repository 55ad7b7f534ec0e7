"""The race with other libraries, as far as none of them is needed: the protocol, the scores, what is shown."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from wingspan.text import Document, Entity, Span

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
WORDS = ["No", "breast", "cancer", "cells", "here"]


@pytest.fixture
def scripts(monkeypatch):
    """The modules of the race, which are no part of the package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import peer_systems
    import peers

    return peers, peer_systems


def document(*entities):
    text = " ".join(WORDS)
    starts = [sum(len(word) + 1 for word in WORDS[:at]) for at in range(len(WORDS))]
    words = tuple(Span(start, start + len(word)) for start, word in zip(starts, WORDS, strict=True))
    made = tuple(Entity.at(label, words[a].start, words[b - 1].end) for a, b, label in entities)
    return Document("1", text, made, words=words)


def test_sentences_and_answers_are_the_same_entities(scripts):
    peers, _ = scripts
    gold = document((1, 3, "Disease"), (1, 4, "Cell"))
    words, entities = peers.sentence_of(gold)
    assert words == WORDS
    assert sorted(entities) == [(1, 3, "Disease"), (1, 4, "Cell")]
    (answer,) = peers.answered([gold], json.loads(json.dumps([entities])))
    assert set(answer.entities) == set(gold.entities)


def test_tags_hold_the_outermost_entities(scripts):
    _, systems = scripts
    tags = systems.tags_of((WORDS, [(1, 3, "Disease"), (1, 4, "Cell"), (4, 5, "Place")]))
    assert tags == ["O", "B-Cell", "I-Cell", "I-Cell", "B-Place"]
    assert systems.entities_of(tags) == [(1, 4, "Cell"), (4, 5, "Place")]
    assert systems.entities_of(["I-Cell", "I-Place", "B-Place"]) == [(0, 1, "Cell"), (1, 2, "Place"), (2, 3, "Place")]


@pytest.mark.usefixtures("scripts")
def test_packages_that_another_machine_lacks_are_named(tmp_path):
    from peer_packages import unmet

    about = "Metadata-Version: 2.1\nName: one\nVersion: 1.0\nRequires-Dist: two>=2\n"
    about += "Requires-Dist: three; python_version < '3'\nRequires-Dist: four; extra == 'more'\n"
    (tmp_path / "one-1.0.dist-info").mkdir()
    (tmp_path / "one-1.0.dist-info" / "METADATA").write_text(about)
    assert list(unmet(tmp_path, {"two": "1.5"})) == ["one 1.0 needs two>=2, not 1.5"]
    assert list(unmet(tmp_path, {})) == ["one 1.0 needs two>=2, not None"]
    assert not list(unmet(tmp_path, {"two": "2.1"}))


def test_words_that_were_joined_are_found_again(scripts):
    _, systems = scripts
    places = list(systems.given_words(" ".join(WORDS)))
    assert [word for word, _, _ in places] == WORDS
    assert all(" ".join(WORDS)[start:end] == word for word, start, end in places)


def test_other_scorers_agree_on_flat_answers(scripts):
    peers, _ = scripts
    gold = [document((1, 3, "Disease")), document((1, 3, "Disease"), (4, 5, "Disease"))]
    found = [[(1, 3, "Disease")], [(1, 4, "Disease"), (4, 5, "Disease")]]
    row = peers.scored(gold, found, flat=True)
    assert row["f1"] == pytest.approx(200 / 3, abs=0.001)
    assert row["checked_with"] == ["nervaluate", "seqeval"]


def test_scorers_that_disagree_stop_the_race(scripts, monkeypatch):
    peers, _ = scripts
    monkeypatch.setattr(peers, "other_scorers", lambda documents, found: {"seqeval": 12.0})
    with pytest.raises(RuntimeError, match="scorers disagree"):
        peers.scored([document((1, 3, "Disease"))], [[(1, 3, "Disease")]], flat=True)


def line(kind, system, **more):
    sizes = {"train": 6, "dev": 2, "test": 4}
    budget = {"epochs": 3, "batch_size": 8, "width": 8, "threads": 2, "commit": "abc", "encoder": "mini"}
    return {"kind": kind, "system": system, "corpus": "genia", "sentences": sizes, **budget, **more}


def test_dev_chooses_the_rate_whose_test_scores_are_shown(scripts):
    peers, _ = scripts
    runs = [(1e-4, 1, 50, 90), (5e-4, 1, 60, 40), (5e-4, 2, 62, 44)]
    rows = [line("accuracy", "Flair", rate=r, seed=s, dev={"f1": d}, test={"f1": t}) for r, s, d, t in runs]
    cost = {
        "turns": {"ratio": 1.5, "texts": 9},
        "timed_training": 7,
        "timed_epochs": 3,
        "training_cpu_seconds": 70.0,
        "peak_mb": 500,
        "training_peak_mb": 900,
        "startup_seconds": 3.0,
    }
    rows += [line("cost", "Flair", **cost), line("failed", "eznlp", reason="pip cannot install it")]
    flair, eznlp = peers.summary(rows)
    assert (flair["rate"], flair["f1"]) == (5e-4, [40, 44])
    assert "F1  42.0 (2 seeds, rate 0.0005); x1.50, 70 s" in peers.text_of(flair)
    assert peers.text_of(eznlp).endswith("eznlp                pip cannot install it")
    caption = peers.caption([flair, eznlp])
    assert "mini in float32; the first 6 training sentences, 3 epochs in batches of 8" in caption
    assert (
        "seeds: 2; cost with 2 threads: 7 sentences trained, 3 epochs less one, 9 predicted; commit `abc`." in caption
    )


def test_a_system_that_was_only_timed_has_its_cost_and_no_score(scripts):
    peers, _ = scripts
    cost = {"turns": {"ratio": 1.5}, "training_cpu_seconds": 70.0, "startup_seconds": 3.0}
    (timed,) = peers.summary([line("cost", "Flair", **cost, peak_mb=500, training_peak_mb=900)])
    assert "f1" not in timed
    assert timed["cost"]["startup_seconds"] == 3.0
    assert peers.text_of(timed).split(maxsplit=2)[2].startswith("x1.50, 70 s / 1,000 and epoch")


def test_only_runs_with_the_first_seed_choose_the_rate(scripts):
    """The other seeds have run with one rate alone, so their mean would not be comparable."""
    peers, _ = scripts
    runs = [(1e-4, 1, 50), (5e-4, 1, 60), (5e-4, 2, 20)]
    assert peers.best_rate([{"rate": rate, "seed": seed, "dev": {"f1": dev}} for rate, seed, dev in runs]) == 5e-4


def test_other_seeds_wait_for_the_rate_that_dev_chooses(scripts):
    peers, _ = scripts
    race = peers.Race.__new__(peers.Race)
    race.given, race.rows = argparse.Namespace(seeds="1,2"), []
    race.corpora = {"genia": peers.Corpus("genia", [], [], [])}
    known = {system.name: system for system in peers.SYSTEMS}
    race.systems = [known["bundling/span"], known["GLiNER"], known["spaCy ner"]]

    def waiting(*running):
        return [(run.system.name, run.rate, run.seed) for run in race.waiting(running)]

    rates = known["GLiNER"].rates
    assert waiting()[:3] == [("GLiNER", rate, 1) for rate in rates]
    assert waiting()[3:5] == [("bundling/span", 1.5e-4, seed) for seed in (1, 2)]
    assert all(name == "spaCy ner" for name, _, _ in waiting()[5:])
    for rate, dev in zip(rates, (10, 30, 20), strict=True):
        race.rows.append(line("accuracy", "GLiNER", rate=rate, seed=1, dev={"f1": dev}))
    assert waiting()[0] == ("GLiNER", rates[1], 2)
    assert ("GLiNER", rates[1], 2) not in waiting(peers.Run(known["GLiNER"], "genia", rates[1], 2))
    race.rows.append(line("failed", "GLiNER", step="time", reason="it takes too long"))
    assert waiting()[0] == ("GLiNER", rates[1], 2)
    race.rows.append(line("failed", "GLiNER", reason="it fails"))
    assert all(name != "GLiNER" for name, _, _ in waiting())


def test_given_packages_come_before_those_of_the_environment(scripts, tmp_path, monkeypatch):
    peers, _ = scripts
    monkeypatch.setenv("PYTHONPATH", "src")
    hidden = peers.environment_of(2, "cpu", None)
    assert (hidden["CUDA_VISIBLE_DEVICES"], hidden["PYTHONPATH"], hidden["OMP_NUM_THREADS"]) == ("", "src", "2")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    shown = peers.environment_of(1, "cuda", tmp_path)
    assert "CUDA_VISIBLE_DEVICES" not in shown
    assert shown["PYTHONPATH"] == f"{tmp_path}{os.pathsep}src"


def test_a_job_is_answered_with_one_line_of_json(scripts, tmp_path):
    """Whatever a library prints, and whatever modules lie beside the driver."""
    stand_in = tmp_path / "site"
    stand_in.mkdir()
    (stand_in / "span_marker.py").write_text("raise ImportError('there is none')")
    job = {"action": "train", "system": "SpanMarker", "train": [], "labels": [], "seed": 1, "folder": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(BENCHMARKS / "peer_systems.py")],
        input=json.dumps(job),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(stand_in)},
    )
    peers, _ = scripts
    assert done.returncode == 1
    assert done.stdout == ""
    assert peers.last_line(done.stderr) == "ImportError: there is none"


def test_the_cost_of_training_is_that_of_further_epochs(scripts, monkeypatch):
    """What comes before the first step, 12 s here, would count more the shorter the training is."""
    peers, _ = scripts
    race = peers.Race.__new__(peers.Race)
    corpus = peers.Corpus("genia", [document()] * 60, [], [document((1, 2, "Cell"))])
    race.rows, race.encoder, race.corpora = [], Path("mini"), {"genia": corpus}
    race.given = argparse.Namespace(
        **{"timed_training": 50, "timed_epochs": 3, "timed": 1, "rounds": 2, "folder": Path("models")},
        **{"epochs": 6, "batch_size": 8, "width": 8, "threads": 2, "commit": "abc", "encoder_folder": Path("mini")},
    )

    def ask(system, job, name):
        if job["action"] == "train":
            return {"cpu_seconds": 12 + 4 * job["epochs"], "peak_mb": 900.2}
        found = {"entities": [[(0, 1, "Cell")]], "turns": {"ratio": 1.5, "texts": 1}}
        return {"startup_seconds": 3, "peak_mb": 500, "versions": {}, **found}

    monkeypatch.setattr(race, "ask", ask)
    row = race.cost(peers.SYSTEMS[0], corpus)
    assert row["training_cpu_seconds"] == 4 * 1000 / 50
    assert (row["timed_training"], row["timed_epochs"], row["found"]) == (50, 3, 1)
