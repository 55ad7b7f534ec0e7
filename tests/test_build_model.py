"""The model in the box is made smaller: fewer word pieces, weights of 16 bits, no paths; and it reads as before."""

import json
import runpy
import shutil
from functools import partial
from string import ascii_lowercase

import pytest
from pages import ROOT
from safetensors.torch import load_file
from tiny_models import tiny_bert
from tokenizers import Tokenizer

import wingspan
from trainings import entities, untrained
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.text import Document

BUILD = runpy.run_path(str(ROOT / "models" / "build_model.py"))
LETTERS = [*ascii_lowercase, ".", "-", "β", "ж", "病"]
WORDS = ["protein", "drug", "gene", "cell", "in", "the", "##xy", "##ase"]
INSIDE = [f"##{letter}" for letter in LETTERS]
PIECES = ["[unused0]", *WORDS[:2], "[UNK]", *LETTERS, "[CLS]", "[PAD]", *INSIDE, "[SEP]", "[MASK]", *WORDS[2:]]
"""Not in the usual order, so that a number that was forgotten is wrong."""
FEW = 5 + 2 * len(LETTERS) + 4
"""Special tokens, letters, and the four other pieces of the training text."""
TRAINED_ON = [Document("1", "The drug in the cells . The drug .")]
READ_AS_BEFORE = "A drug in cells . The q β-drug in жж 病 🧬 .\nThe cells in the q cells - a drug ."


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The trained model, and the small one made of it in 32 and in 16 bits."""
    folder = tmp_path_factory.mktemp("built")
    bert = tiny_bert(folder / "deep" / "bert", PIECES)
    trained = folder / "trained"
    untrained("bundling/bl-span", encoder=partial(PretrainedEncoder, name=str(bert))).save_pretrained(trained)
    (trained / "journal.jsonl").touch()
    for bits in (32, 16):
        BUILD["build"](trained, folder / str(bits), FEW, bits, TRAINED_ON)
    shutil.rmtree(folder / "deep")  # whatever is left needs no base encoder
    return folder


def test_only_used_pieces_and_single_characters_are_left(built):
    stored = json.loads((built / "16" / "tokenizer.json").read_text())
    vocabulary = stored["model"]["vocab"]
    left_out = {"[unused0]", "protein", "gene", "##xy", "##ase"}
    assert list(vocabulary) == [piece for piece in PIECES if piece not in left_out]
    assert sorted(vocabulary.values()) == list(range(FEW))
    assert stored["truncation"] is stored["padding"] is None
    config = json.loads((built / "16" / "encoder" / "config.json").read_text())
    assert (config["vocab_size"], config["pad_token_id"]) == (FEW, vocabulary["[PAD]"])
    around = Tokenizer.from_file(str(built / "16" / "tokenizer.json")).encode("a drug").ids
    assert around == [vocabulary[piece] for piece in ("[CLS]", "a", "drug", "[SEP]")]


def test_texts_of_kept_pieces_are_read_as_before(built):
    full, same, rounded = (wingspan.load(built / name, device="cpu") for name in ("trained", "32", "16"))
    found = [model.predict(READ_AS_BEFORE, threshold=0.0) for model in (full, same, rounded)]
    assert entities(found[0]) == entities(found[1]) != [[]]
    assert [e.score for e in found[0][0].entities] == [e.score for e in found[1][0].entities]
    before, after = ({(e.label, e.hull): e.score for e in document[0].entities} for document in (found[0], found[2]))
    assert before.keys() == after.keys()
    assert after == pytest.approx(before, abs=0.01)


@pytest.mark.parametrize("text", ["proteins", "Genexy жеж", "βase-病", "🧬 Ω\ufeff", "q" * 300, "\ud800", ""])
def test_no_word_becomes_unknown_that_was_not(built, text):
    full, small = (wingspan.load(built / name, device="cpu") for name in ("trained", "16"))
    unknown = [
        [model.engine.tokenize.unknown in model.engine.tokenize.pieces(word) for word in text.split()]
        for model in (full, small)
    ]
    assert unknown[0] == unknown[1]
    assert small.predict(f"The drug {text} in cells .")[0].text == f"The drug {text} in cells ."


def test_a_left_out_piece_is_cut_into_smaller_ones(built):
    tokenize = wingspan.load(built / "16", device="cpu").engine.tokenize
    pieces = {number: piece for piece, number in tokenize.backend.get_vocab().items()}
    assert [pieces[number] for number in tokenize.pieces("genes")] == ["g", "##e", "##n", "##e", "##s"]


def test_the_folder_names_no_place_on_this_machine(built):
    names = {path.name for path in (built / "16").rglob("*") if path.is_file()}
    assert names == {
        *("config.json", "facts.json", "labels.json", "model.safetensors", "recipe.json"),
        *("tokenizer.json", "tokenizer_config.json"),
    }
    assert str(built.parent) not in "".join(path.read_text() for path in (built / "16").rglob("*.json"))
    assert {str(value.dtype) for value in load_file(built / "16" / "model.safetensors").values()} == {"torch.float16"}
