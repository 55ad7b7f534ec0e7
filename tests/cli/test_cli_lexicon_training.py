"""`wingspan train --lexicon`: what is said where synonyms are missing, foreign or found."""

import pytest
from shells import training

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
        (None, "there is no lexicon; give --lexicon FILE, --lexicon corpus, or use compress_generate/supvib-spanreco"),
        ("missing.tsv", "missing.tsv"),
        ("foreign.tsv", "the lexicon has synonyms for none of the"),
        ("corpus", "--lexicon corpus: the"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(shell, tmp_path, lexicon, message):
    (tmp_path / "foreign.tsv").write_text(f"{TABLE}X:1\tThing\tno such name\tnor this one\n")
    named = [] if lexicon is None else ["--lexicon", lexicon if lexicon == "corpus" else tmp_path / lexicon]
    assert message in shell.refuses(*given(shell, tmp_path, *named))


def test_a_table_of_synonyms_is_learned_from(shell, tmp_path):
    (tmp_path / "mine.tsv").write_text(f"{TABLE}A:1\tAnatomy\tspleen\tlien|splenic organ\n")
    out, _ = shell(*given(shell, tmp_path, "--lexicon", tmp_path / "mine.tsv"))
    assert "synonyms for " in " ".join(out.split())
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert (tmp_path / "run" / "state" / "phase-2" / "learner.safetensors").exists()
