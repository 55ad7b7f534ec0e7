"""The drop under a perturbation, with systems whose weakness is known."""

from dataclasses import replace

import pytest

from wingspan.corpora.perturb import PERTURBATIONS
from wingspan.report.errors import robustness
from wingspan.text import Document, Entity

GOLD = [
    Document("1", "Aspirin helped, codeine did not.", (Entity.at("Drug", 0, 7), Entity.at("Drug", 16, 23))),
    Document("2", "Nothing helped.", ()),
    Document("3", "they took aspirin", (Entity.at("Drug", 10, 17),)),
]


def lookup(documents):
    """A system that knows two names, as they are written."""
    found = []
    for document in documents:
        assert document.entities == ()  # it is shown no gold
        places = [document.text.find(name) for name in ("Aspirin", "codeine", "aspirin")]
        found.append(replace(document, entities=tuple(Entity.at("Drug", at, at + 7) for at in places if at >= 0)))
    return found


class Model:
    def predict(self, texts):
        return lookup(texts)


def test_a_system_that_depends_on_case():
    lower, upper, broken = robustness(lookup, GOLD, ["lower_case", "upper_case", "line_breaks"])
    assert lower.clean.micro.f1 == 100
    assert (lower.drop, lower.changed) == (0, 2)  # aspirin and codeine are known; document 3 is in lower case already
    assert (upper.drop, upper.changed, upper.scores.micro.fn) == (100, 3, 3)
    assert broken.drop == 0
    assert upper.labels == {"Drug": 100}


def test_known_predictions_are_not_made_again():
    shown = []

    def predict(documents):
        shown.append([document.text for document in documents])
        return lookup(documents)

    predicted = lookup([replace(document, entities=()) for document in GOLD])
    assert robustness(predict, GOLD, ["lower_case"], predicted=predicted) == robustness(lookup, GOLD, ["lower_case"])
    assert shown == [[document.text.lower() for document in GOLD]]


def test_a_model_is_asked_under_every_perturbation():
    drops = robustness(Model(), GOLD, seed=5)
    assert [drop.perturbation for drop in drops] == list(PERTURBATIONS)
    by_name = {drop.perturbation: drop for drop in drops}
    assert by_name["unseen_entities"].drop == 100
    assert by_name["without_punctuation"].drop == 0
    with pytest.raises(ValueError, match="unknown perturbation"):
        robustness(Model(), GOLD, ["rain"])
