"""Trained on one corpus, scored on another, by hand."""

from wingspan.corpora.label_map import LabelMap
from wingspan.evaluation.transfer import transfer_matrix
from wingspan.text import Document, Entity

TEXT = "abc def ghi jkl"
A, B, C, D = (0, 3), (4, 7), (8, 11), (12, 15)
# corpus one is the target: Drug, Gene; two has Pill and Odd; three has Locus
MAP = LabelMap({("two", "Pill"): "Drug", ("two", "Odd"): None, ("three", "Locus"): "Gene"})
LABELS = {"one": ("Drug", "Gene"), "two": ("Pill", "Odd"), "three": ("Locus",)}


def document(*entities: tuple[str, tuple[int, int]], id: str = "1") -> Document:
    return Document(id, TEXT, tuple(Entity.at(label, *span) for label, span in entities))


def says(*entities):
    return lambda documents: [document(*entities, id=one.id) for one in documents]


def test_every_model_on_every_corpus_in_labels_that_both_can_mean():
    models = {
        "one": says(("Drug", A), ("Drug", B), ("Gene", C)),
        "two": says(("Pill", A), ("Odd", B)),
        "three": says(("Locus", D)),
    }
    gold = {"one": [document(("Drug", A), ("Gene", D))], "two": [document(("Pill", A), ("Pill", C), ("Odd", B))]}
    found = {(one.trained, one.tested): one for one in transfer_matrix(models, gold, LABELS, MAP)}
    assert len(found) == 6
    same = found["one", "one"]
    assert same.labels == ("Drug", "Gene")
    assert (same.scores.micro.tp, same.scores.micro.fp, same.scores.micro.fn) == (1, 2, 1)
    there = found["one", "two"]  # genes are out of the question: corpus two has none
    assert there.labels == ("Drug",)
    assert (there.scores.micro.tp, there.scores.micro.fp, there.scores.micro.fn) == (1, 1, 1)
    back = found["two", "one"]  # what has no counterpart is neither right nor wrong
    assert (back.scores.micro.tp, back.scores.micro.fp, back.scores.micro.fn) == (1, 0, 0)
    assert (found["three", "one"].labels, found["three", "one"].scores.micro.tp) == (("Gene",), 1)
    assert (found["three", "two"].labels, found["three", "two"].scores) == ((), None)


def test_answers_with_labels_of_other_corpora_are_left_out():
    """Models whose foreign classes can win say so with the corpus' name, which is no label of the map."""
    models = {"two": says(("Pill", A), ("one:Gene", B)), "one": says(("Drug", A), ("two:nothing", B))}
    gold = {"one": [document(("Drug", A))]}
    for transfer in transfer_matrix(models, gold, LABELS, MAP):
        assert transfer.scores is not None
        assert (transfer.scores.micro.tp, transfer.scores.micro.found) == (1, 1)
