"""The worst sentences, repeated mistakes, and labels that training contradicts, by hand."""

from wingspan.evaluation.worst import Repeated, label_conflicts, repeated_mistakes, worst_sentences
from wingspan.text import Document, Entity, Span

TEXT = "Aspirin eased the pain. The second trial of Aspirin and codeine failed. Nothing was lost."


def at(label, word, text=TEXT, nth=0):
    start = -1
    for _ in range(nth + 1):
        start = text.index(word, start + 1)
    return Entity.at(label, start, start + len(word))


def test_sentences_in_order_of_their_errors():
    gold = Document("a", TEXT, (at("Drug", "Aspirin"), at("Drug", "Aspirin", nth=1), at("Drug", "codeine")))
    found = Document("a", TEXT, (at("Drug", "Aspirin"), at("Sign", "pain"), at("Sign", "Aspirin", nth=1)))
    other = Document("b", "All right here.", (Entity.at("Drug", 0, 3),))
    first, second = worst_sentences([other, gold], [other, found])
    assert TEXT[slice(*first.span)] == "The second trial of Aspirin and codeine failed."
    assert (first.document, first.correct, first.fp, first.fn, first.f1) == (1, 0, 1, 2, 0)
    assert [m.kind for m in first.mistakes] == ["type", "missed"]
    assert TEXT[slice(*second.span)] == "Aspirin eased the pain."
    assert (second.correct, second.fp, second.fn) == (1, 1, 0)
    assert round(second.f1, 2) == 66.67
    (whole,) = worst_sentences([other, gold], [other, found], whole_documents=True)
    assert (whole.document, whole.span, whole.correct, whole.fp, whole.fn) == (1, Span(0, len(TEXT)), 1, 2, 2)
    assert worst_sentences([other, gold], [other, found], most=1) == [first]
    assert worst_sentences([other], [other], whole_documents=True) == []


def test_no_sentence_cuts_a_found_entity():
    across = Entity.at("Drug", 18, 34)  # "pain. The second"
    document = Document("a", TEXT)
    (only,) = worst_sentences([document], [Document("a", TEXT, (across,))])
    assert TEXT[slice(*only.span)].startswith("Aspirin eased")
    assert TEXT[slice(*only.span)].endswith("failed.")


def test_given_words_are_one_sentence_and_given_sentences_are_kept():
    text = "one two. Three four"
    words = tuple(Span(*w) for w in ((0, 3), (4, 7), (7, 8), (9, 14), (15, 19)))
    gold = [Document("a", text, (Entity.at("X", 9, 14),), words=words)]
    nothing = [Document("a", text)]
    (whole,) = worst_sentences(gold, nothing)
    assert whole.span == (0, 19)
    split = [Document("a", text, (Entity.at("X", 9, 14),), words=words, sentences=(Span(0, 8), Span(9, 19)))]
    (part,) = worst_sentences(split, nothing)
    assert part.span == (9, 19)


def test_the_same_mistake_several_times():
    gold = [Document(str(n), TEXT, (at("Drug", "Aspirin"), at("Drug", "codeine"))) for n in range(3)]
    found = [Document(str(n), TEXT, (at("Drug", "Aspirin eased"),)) for n in range(2)] + [gold[2]]
    boundary = Repeated("boundary", "Drug", "Aspirin", "Drug", "Aspirin eased", 2, (0, 1))
    missed = Repeated("missed", "Drug", "codeine", None, None, 2, (0, 1))
    assert repeated_mistakes(gold, found) == [boundary, missed]
    assert repeated_mistakes(gold, found, most=1) == [boundary]
    assert repeated_mistakes(gold, found, at_least=3) == []


def test_white_space_does_not_make_mistakes_different():
    texts = ["the knee  pain", "the knee\npain", "the knee pain"]
    gold = [Document(str(n), text, (Entity.at("Sign", 4, len(text)),)) for n, text in enumerate(texts)]
    (row,) = repeated_mistakes(gold, [Document(str(n), text) for n, text in enumerate(texts)])
    assert (row.gold_text, row.times) == ("knee pain", 3)


def test_labels_that_training_contradicts():
    training = [
        Document(
            "t",
            "aspirin Aspirin codeine",
            (Entity.at("Drug", 0, 7), Entity.at("Brand", 8, 15), Entity.at("Drug", 16, 23)),
        )
    ]
    gold = [Document("a", TEXT, (at("Drug", "Aspirin"), at("Sign", "Aspirin", nth=1), at("Drug", "codeine")))]
    found = [Document("a", TEXT, (at("Drug", "Aspirin"), at("Brand", "Aspirin", nth=1), at("Sign", "codeine")))]
    rows = {(row.text, row.label): row for row in label_conflicts(gold, found, training)}
    assert set(rows) == {("aspirin", "Drug"), ("aspirin", "Sign"), ("aspirin", "Brand"), ("codeine", "Sign")}
    right = rows["aspirin", "Drug"]
    assert (right.gold, right.missed, right.found, right.wrong) == (1, 0, 1, 0)
    assert right.training == {"Drug": 1, "Brand": 1}
    lost = rows["aspirin", "Sign"]
    assert (lost.gold, lost.missed, lost.found, lost.wrong) == (1, 1, 0, 0)
    wrong = rows["codeine", "Sign"]
    assert (wrong.gold, wrong.missed, wrong.found, wrong.wrong, wrong.training) == (0, 0, 1, 1, {"Drug": 1})
    assert wrong.documents == [0]
    assert [row.text for row in label_conflicts(gold, found, training)][-1] == "aspirin"  # the harmless one is last
    assert len(label_conflicts(gold, found, training, most=2)) == 2
    assert label_conflicts(gold, found, []) == []
