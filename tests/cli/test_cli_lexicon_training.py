"""`wingspan train --lexicon`: what is said where synonyms are missing, foreign or found."""

import pytest
from shells import lines, training

TABLE = "concept_id\ttype\tname\tsynonyms\n"


def given(shell, folder, *options):
    """A training of the whole system, small."""
    small = ["latent_size=8", "embedding_size=8", "hidden=16"]
    more = [part for item in small for part in ("--set", f"terms.generate.objective.{item}")]
    quick = ["--encoder", "hashed", "--set", "phases.0.epochs=1", *more]
    return training(shell, folder, *quick, *options, recipe="compress_generate")


@pytest.mark.parametrize(
    ("lexicon", "message"),
    [
        ("missing.tsv", "missing.tsv"),
        ("foreign.tsv", "the lexicon has synonyms for none of the"),
        ("corpus", "--lexicon corpus: the"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(shell, tmp_path, lexicon, message):
    (tmp_path / "foreign.tsv").write_text(f"{TABLE}X:1\tThing\tno such name\tnor this one\n")
    named = lexicon if lexicon == "corpus" else tmp_path / lexicon
    assert message in shell.refuses(*given(shell, tmp_path, "--lexicon", named))


def test_a_table_of_synonyms_is_learned_from(shell, tmp_path):
    (tmp_path / "mine.tsv").write_text(f"{TABLE}A:1\tAnatomy\tspleen\tlien|splenic organ\n")
    out, _ = shell(*given(shell, tmp_path, "--lexicon", tmp_path / "mine.tsv"))
    assert "synonyms for " in " ".join(out.split())
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert (tmp_path / "run" / "state" / "phase-2" / "learner.safetensors").exists()


@pytest.mark.parametrize(("concept", "said"), [("C1", "1 concept from"), (None, "none in")])
def test_without_a_lexicon_the_corpus_gives_the_synonyms(shell, tmp_path, concept, said):
    about = {} if concept is None else {"concept_id": concept}
    records = [
        {"text": f"A {name} was seen.", "entities": [{"label": "Organ", "start": 2, "end": 2 + len(name), **about}]}
        for name in ("spleen", "lien")
    ]
    corpus = lines(tmp_path / "train.jsonl", *records)
    small = ["latent_size=8", "embedding_size=8", "hidden=16"]
    more = [part for item in small for part in ("--set", f"terms.generate.objective.{item}")]
    asked = training(shell, tmp_path, "--encoder", "hashed", *more, train=corpus, recipe="compress_generate")
    out, _ = shell(*asked, "--set", "phases.0.epochs=1")
    assert f"Synonyms: {said} the training documents; --lexicon FILE gives others." in out
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert ("synonyms for 2 of 2 training entities" in out) == (concept is not None)
