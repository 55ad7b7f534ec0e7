"""Training on given words: which splitter raw text gets, where it is said, and who decides."""

from dataclasses import replace

import pytest
from rich.console import Console

import wingspan
from trainings import TINY, tiny, train_documents
from wingspan.recognizer import Recognizer
from wingspan.text import Document, Entity
from wingspan.training.fit import fit

SENTENCES = (
    "The U.S. did n't pay Dr. Ash .",
    "Mr. Bo of the U.S. left for a well-known city , 3.5 % happier .",
    "She said : \" The U.K. wo n't go . \"",
)  # fmt: skip
DOCUMENTS = [
    Document.from_words(f"{copy}-{at}", (*text.split(), str(copy)), (Entity.at("LOC", 1, 2),))
    for copy in range(4)
    for at, text in enumerate(SENTENCES)
]


def test_the_splitter_that_agrees_with_the_given_words_is_stored():
    fitted = fit(tiny("baseline"), DOCUMENTS)
    assert fitted.recipe.segments.splitter == "newswire"
    assert fitted.agreement is not None
    assert fitted.agreement.share > 0.98


def test_text_without_given_words_is_cut_as_ever():
    fitted = fit(tiny("baseline"), train_documents(4))
    assert (fitted.recipe.segments.splitter, fitted.agreement) == ("words", None)


def test_a_splitter_that_is_asked_for_stays_and_its_disagreement_is_said():
    recipe = tiny("baseline")
    fitted = fit(replace(recipe, segments=replace(recipe.segments, splitter="words")), DOCUMENTS)
    assert fitted.recipe.segments.splitter == "words"
    assert "by the splitter 'words'" in fitted.agreement.line
    assert fitted.agreement.share < 0.9


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given words")
    with (folder / "log").open("w") as log:
        settings = {**TINY, "train.epochs": 1}
        console = Console(file=log, width=300)
        wingspan.train("baseline", train=DOCUMENTS, output=folder / "model", settings=settings, console=console)
    return folder


def test_the_log_and_the_card_say_how_far_raw_text_differs(trained):
    line = next(line for line in (trained / "log").read_text().splitlines() if line.startswith("Words:"))
    assert "by the splitter 'newswire'" in line or "(newswire)" in line
    assert line in (trained / "model" / "README.md").read_text()


def test_raw_text_is_cut_as_in_training_and_a_model_to_go_on_from_decides(trained):
    model = Recognizer.from_pretrained(trained / "model")
    assert model.recipe.segments.splitter == "newswire"
    fitted = fit(tiny("baseline"), train_documents(4), start=model)
    assert fitted.recipe.segments.splitter == "newswire"
