"""Texts in, entities out: whatever the order, the batch, the padding or the thread."""

import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import chain, count, islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainings import alike, dev_documents, entities, train_documents, untrained
from wingspan.batch import Collate
from wingspan.corpora.formats import read, write
from wingspan.corpora.segment import BLOCK_DOCUMENTS, Segmenting
from wingspan.decoding import tempered
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.evaluation.calibration import Calibration
from wingspan.recognizer import ON_CPU, Recognizer, least_chances
from wingspan.recognizer.documents import PartialDocument
from wingspan.recognizer.engine import unsearched
from wingspan.text import Document, Entity, Sentence, Span

TEXTS = [document.text for document in dev_documents(6)] + ["", "Aspirin.", " \n\t ", "BRCA1 in the cell . " * 30]


@pytest.fixture(scope="module")
def model() -> Recognizer:
    return untrained()


@pytest.fixture(scope="module", params=["hashed", "hashed tags", "bert", "bert tags", "bert crf"])
def any_model(request, folders) -> Recognizer:
    kind, _, reader = request.param.partition(" ")
    name = {"": "bundling/bl-span", "tags": "bundling/bl-seq", "crf": "bundling/bl-seq-crf"}[reader]
    changes = {"overlap": "nested", "segments": Segmenting(max_length=30, overlap=6)}
    if kind == "bert":
        changes["encoder"] = partial(PretrainedEncoder, name=str(folders["bert"]))
    return untrained(name, **changes)


def test_something_is_found(any_model):
    assert sum(len(document.entities) for document in any_model.predict(TEXTS)) > 5


def test_order_is_kept(model):
    found = model.predict(TEXTS)
    assert [document.text for document in found] == TEXTS
    assert [document.id for document in found] == [str(n) for n in range(len(TEXTS))]


def test_no_batch_has_more_units_than_the_recipe_allows(monkeypatch):
    model = untrained()
    model.recipe = replace(model.recipe, train=replace(model.recipe.train, budget=40))
    read, units = model._read, []

    def noted(sentences, *rest, **others):
        units.append(len(sentences) * max(len(sentence.words) for sentence in sentences))
        return read(sentences, *rest, **others)

    monkeypatch.setattr(model, "_read", noted)
    model.predict(["BRCA1 in the cell ."] * 30, batch_size=30)
    assert units == [36] * 5  # sentences of six words


def test_nothing_in_nothing_out(model):
    assert model.predict([]) == []
    assert model.predict([], is_split_into_words=True) == []
    assert model.predict("")[0].entities == ()
    assert [document.entities for document in model.predict(["", " ", "\n\n"])] == [(), (), ()]
    assert model.predict([[]], is_split_into_words=True)[0].entities == ()
    assert list(model.predict_stream(iter(()))) == []


BRAT = "T1\tDrug 0 7\tAspirin\nT2\tSym 15 23\theadache\nR1\tTreats Arg1:T1 Arg2:T2\nN1\tReference T1 MESH:D1\tAspirin\n"


def test_notes_and_relations_of_gold_do_not_end_up_at_found_entities(tmp_path):
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "a.txt").write_text("Aspirin treats headache.")
    (tmp_path / "gold" / "a.ann").write_text(BRAT)
    (document,) = read(tmp_path / "gold", "brat")
    (found,) = untrained(overlap="flat").predict([document])
    assert found.entities
    write([found], tmp_path / "found", "brat")
    kinds = {line[0] for line in (tmp_path / "found" / "a.ann").read_text().splitlines()}
    assert kinds <= {"T", "#"}


def test_relations_leave_a_layout_and_passages_stay():
    layout = {"passages": [{"offset": 0, "relations": [1]}], "relations": [{"id": "R1"}]}
    (found,) = untrained().predict([Document("d", "One two.", meta={"bioc": layout, "source": "x"})])
    assert found.meta == {"bioc": {"passages": [{"offset": 0}]}, "source": "x"}


def test_batch_is_single_is_any_order(any_model):
    together = any_model.predict(TEXTS)
    single = [any_model.predict(text)[0] for text in TEXTS]
    backwards = any_model.predict(TEXTS[::-1], batch_size=3)[::-1]
    one_by_one = any_model.predict(TEXTS, batch_size=1)
    assert alike(together, single)
    assert alike(together, backwards)
    assert alike(together, one_by_one)


def test_padding_changes_nothing(any_model):
    """A short text beside a long one is padded to its length."""
    short, long = "Aspirin lowers BRCA1 .", "word " * 25
    assert alike(any_model.predict([short, long])[:1], any_model.predict([short]))


def test_scores_do_not_depend_on_the_batch_at_any_threshold(any_model):
    assert alike(
        any_model.predict(TEXTS, threshold=0.02, overlap="any", batch_size=5),
        any_model.predict(TEXTS, threshold=0.02, overlap="any", batch_size=64),
    )


def test_words_by_explicit_argument(model):
    words = ["Aspirin", "lowers", "BRCA1", "-", "levels"]
    (one,) = model.predict(words, is_split_into_words=True)
    (same,) = model.predict([words], is_split_into_words=True)
    assert entities([one]) == entities([same])
    assert one.text == "Aspirin lowers BRCA1 - levels"
    assert one.words is not None
    edges = {edge for word in one.words for edge in word}
    assert all(span.start in edges and span.end in edges for e in one.entities for span in e.spans)
    assert len(model.predict([words, ["more", " "]], is_split_into_words=True)) == 2


@pytest.mark.parametrize(
    ("texts", "split", "kind", "message"),
    [
        (["a", "b"], None, None, None),
        ([["a", "b"]], False, ValueError, "text 0 is a list; pass is_split_into_words=True"),
        ([["a"], "b"], True, ValueError, "text 1 is a string, but is_split_into_words=True expects a list of words"),
        (["a", 5], False, TypeError, "text 1 is of type int; give a str, a Document, or a list of words"),
        ([None], False, TypeError, "text 0 is of type NoneType"),
        (b"bytes", False, TypeError, "put the one text into a list"),
        ([["a", 3]], True, ValueError, "text 0 has the word 3"),
        ([["a", ""]], True, ValueError, "text 0 has the word ''; every word is a string that is not empty"),
    ],
)
def test_the_wrong_type_is_said(model, texts, split, kind, message):
    if kind is None:
        assert len(model.predict(texts)) == 2
        return
    with pytest.raises(kind, match=message):
        model.predict(texts, is_split_into_words=split)


def test_gold_has_no_part_in_prediction(any_model):
    gold = dev_documents(6)
    bare = [replace(document, entities=()) for document in gold]
    wide = [replace(document, entities=(Entity.at("X", 0, len(document.text)),)) for document in gold]
    assert entities(any_model.predict(gold)) == entities(any_model.predict(bare)) == entities(any_model.predict(wide))


def test_documents_keep_what_they_are():
    document = Document("7", "Aspirin here", (), "main", (Span(0, 7), Span(8, 12)), None, "article", {"year": 1999})
    (found,) = untrained().predict(document)
    assert replace(found, entities=()) == document
    assert found.meta == {"year": 1999}


def test_thresholds(model):
    everything = model.predict(TEXTS, threshold=0.0, overlap="any")
    some = model.predict(TEXTS, threshold=0.4, overlap="any")
    scores = [e.score for d in everything for e in d.entities]
    assert 0 < sum(len(d.entities) for d in some) < len(scores)
    assert all(e.score >= 0.4 for d in some for e in d.entities)
    assert [e for d in some for e in d.entities] == [e for d in everything for e in d.entities if e.score >= 0.4]
    drugs = model.predict(TEXTS, threshold={"Drug": 0.0, "Gene": 1.0}, overlap="any")
    assert {e.label for d in drugs for e in d.entities} == {"Drug"}
    kept = untrained(thresholds=0.4)
    assert entities(kept.predict(TEXTS, overlap="any")) == entities(some)


def test_overlap_can_be_asked_for(model):
    text = TEXTS[0]
    found = {how: model.predict(text, threshold=0.2, overlap=how)[0].entities for how in ("flat", "nested", "any")}
    assert len(found["flat"]) < len(found["nested"]) <= len(found["any"])
    pairs = [(a, b) for a in found["flat"] for b in found["flat"] if a is not b]
    assert pairs
    assert not any(a.hull.overlaps(b.hull) for a, b in pairs)
    assert not any(a.hull.crosses(b.hull) for a in found["nested"] for b in found["nested"])


def test_what_cannot_be_meant_is_said_at_once(model):
    with pytest.raises(ValueError, match="overlap is 'nestd'; use flat, nested, any"):
        model.predict_stream([], overlap="nestd")
    with pytest.raises(ValueError, match="threshold for 'Durg': no such label; the model has Drug, Gene"):
        model.predict_stream([], threshold={"Durg": 0.5})
    with pytest.raises(ValueError, match="batch_size is 0; give at least 1"):
        model.predict_stream([], batch_size=0)
    with pytest.raises(TypeError, match="put the one text into a list"):
        model.predict_stream("a text")
    with pytest.raises(ValueError, match="no device 'gpu'; use cpu, cuda or cuda:N"):
        Recognizer(model.recipe, model.labels, model.learner, device="gpu")


@pytest.mark.parametrize("text", ["Aspirin lowers BRCA1.", ""])
def test_a_stream_is_lazy(model, text):
    read = count()
    stream = model.predict_stream(f"{text} " if next(read) % 2 else text for _ in count())
    found = list(islice(stream, 5))
    assert [document.id for document in found] == ["0", "1", "2", "3", "4"]
    assert next(read) <= ON_CPU.sentences + 2
    list(islice(stream, 2000))
    assert next(read) <= 2005 + ON_CPU.sentences + 2


def test_empty_texts_behind_a_waiting_one_do_not_pile_up(model):
    read = count()

    def texts():
        yield "Aspirin lowers BRCA1."
        while True:
            next(read)
            yield ""

    assert next(model.predict_stream(texts())).entities is not None
    assert next(read) <= ON_CPU.sentences


def test_a_stream_gives_what_a_list_gives(model, monkeypatch):
    texts = [document.text for document in train_documents(8)]
    expected = entities(model.predict(texts))
    monkeypatch.setattr("wingspan.recognizer.ON_CPU", ON_CPU._replace(sentences=3))
    assert alike(model.predict(texts), list(model.predict_stream(iter(texts))))
    assert [[e[:2] for e in d] for d in entities(model.predict(texts))] == [[e[:2] for e in d] for d in expected]


AS_ON_A_GPU = ON_CPU._replace(sentences=7, units=None, ahead=3)


@pytest.fixture
def ahead(monkeypatch):
    """Batches are asked for before earlier answers are read, in a fixed room, as on a GPU."""
    monkeypatch.setattr("wingspan.recognizer.ON_CPU", AS_ON_A_GPU)


@pytest.mark.parametrize("threshold", [None, 0.2, 0.0])  # with the last, more is found than there is room for
def test_answers_that_are_read_later_are_the_same(any_model, threshold, request):
    texts = [*TEXTS, *(document.text for document in train_documents(20))]
    expected = any_model.predict(texts, threshold=threshold)
    request.getfixturevalue("ahead")
    assert alike(any_model.predict(texts, threshold=threshold), expected)
    assert alike(list(any_model.predict_stream(iter(texts), threshold=threshold, batch_size=2)), expected)


@pytest.mark.parametrize("overlap", ["flat", "nested", "any"])
def test_clashes_are_decided_at_once_as_document_by_document(any_model, overlap, monkeypatch):
    any_model.calibration = Calibration(temperature=2.0) if any_model.recipe.reader != "tags" else None
    windows = "BRCA1 and aspirin , " * 40  # one sentence
    texts = [*TEXTS, windows, f"Aspirin. {windows}. Aspirin.", *(document.text for document in train_documents(20))]
    options = {"threshold": 0.1, "overlap": overlap}
    found, decided = any_model.predict(texts, **options), []

    def nothing(found, inputs, labels, overlap, alone):
        decided.extend(alone)
        return found, np.zeros_like(alone)

    monkeypatch.setattr("wingspan.recognizer.without_clashes", nothing)
    expected = any_model.predict(texts, **options)
    any_model.calibration = None
    assert entities(found) == entities(expected)
    assert any(decided)
    assert not all(decided)
    assert not any(entity.meta for document in found for entity in document.entities)


def test_a_window_that_another_reaches_into_is_not_decided_by_itself():
    partial_document = PartialDocument(Document("a", "of any text"))

    def window(core: Span, reach: Span) -> bool:
        words = ("w",) * (reach.end + 2)
        return partial_document.await_sentence(Sentence(words, (), core, reach, np.zeros((len(words), 2), np.int64)))

    assert window(Span(0, 4), Span(0, 4))
    assert not window(Span(0, 3), Span(0, 4))
    assert not window(Span(0, 4), Span(0, 4))  # begins with its core, but the one before reaches into it
    assert window(Span(0, 2), Span(0, 2))
    assert not window(Span(1, 2), Span(0, 2))  # its entities end where its core ends
    assert window(Span(0, 2), Span(0, 2))
    assert partial_document.open_sentences == 6


def test_while_a_gpu_works_nobody_looks_for_cycles():
    with unsearched():
        assert not gc.isenabled()
        with unsearched(), ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: unsearched().__enter__()).result()  # another thread changes nothing
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with unsearched():
            assert not gc.isenabled()
        assert not gc.isenabled()  # as the user has it
    finally:
        gc.enable()


def test_what_lasts_is_not_searched_at_once():
    with unsearched(lasting=True):
        made = [[] for _ in range(5000)]
    assert not {id(each) for each in made} & {id(each) for young in (0, 1) for each in gc.get_objects(young)}
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    gc.freeze()  # as a server does before it forks
    try:
        with unsearched(lasting=True):
            pass
        assert gc.get_freeze_count() > 5000  # it stays as it was
    finally:
        gc.unfreeze()


def test_fragments_and_types_that_are_read_later_are_the_same(request):
    documents = train_documents(12)
    models = [untrained("discontinuous"), untrained("typed_spans")]
    expected = [model.predict(documents, threshold=0.1) for model in models]
    request.getfixturevalue("ahead")
    for model, found in zip(models, expected, strict=True):
        assert any(document.entities for document in found)
        assert alike(model.predict(documents, threshold=0.1), found)


def test_a_stream_with_answers_that_are_read_later_is_bounded(model, ahead):
    read = count()
    stream = model.predict_stream(f"Aspirin lowers BRCA1 {next(read)}." for _ in count())
    assert [document.id for document in islice(stream, 3)] == ["0", "1", "2"]
    most = (AS_ON_A_GPU.ahead + 2) * AS_ON_A_GPU.sentences + BLOCK_DOCUMENTS
    assert next(read) <= most
    list(islice(stream, 500))
    assert next(read) <= 503 + most
    stream.close()


def test_empty_texts_do_not_pile_up_behind_answers_that_are_read_later(model, ahead):
    read = count()
    texts = chain(["Aspirin lowers BRCA1."], ("" for _ in iter(read.__next__, None)))
    assert next(model.predict_stream(texts)).text == "Aspirin lowers BRCA1."
    assert next(read) <= 2 * BLOCK_DOCUMENTS


def test_an_error_of_the_reader_reaches_the_user_and_the_model_goes_on(model, ahead):
    def texts():
        yield from TEXTS
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(model.predict_stream(texts()))
    assert len(model.predict(TEXTS)) == len(TEXTS)


def test_a_batch_on_a_cpu_stays_small(model, monkeypatch):
    texts = [document.text for document in train_documents(20)]
    expected, shapes, plain = model.predict(texts), [], Collate.inputs

    def watched(self, sentences):
        inputs = plain(self, sentences)
        shapes.append(inputs.unit_mask.shape)
        return inputs

    monkeypatch.setattr(Collate, "inputs", watched)
    monkeypatch.setattr("wingspan.recognizer.ON_CPU", ON_CPU._replace(units=50))
    assert alike(model.predict(texts), expected)
    assert len(shapes) > 1
    most = 50 * model.engine.tokenize.lightness
    assert all(sentences == 1 or sentences * units <= most for sentences, units in shapes)


def test_a_batch_that_does_not_fit_into_memory_is_divided(model, monkeypatch):
    expected = model.predict(TEXTS)
    sizes, plain = [], Recognizer._read

    def small(self, sentences, *options, **others):
        sizes.append(len(sentences))
        if len(sentences) > most:
            raise torch.OutOfMemoryError
        return plain(self, sentences, *options, **others)

    monkeypatch.setattr(Recognizer, "_read", small)
    most = 2
    assert alike(model.predict(TEXTS), expected)
    assert max(sizes) > 2
    most = 0
    with pytest.raises(torch.OutOfMemoryError):
        model.predict(TEXTS)


def test_threads_share_one_model(any_model):
    expected = entities(any_model.predict(TEXTS))
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda _: entities(any_model.predict(TEXTS)), range(16)))
    assert all(each == expected for each in found)


def test_a_recognizer_never_drops_out():
    model = untrained()
    learner = model.learner.train()
    again = Recognizer(model.recipe, model.labels, learner, device="cpu")
    assert entities(again.predict(TEXTS)) == entities(again.predict(TEXTS))


MODEL = untrained(segments=Segmenting(max_length=9, overlap=2))


@settings(max_examples=150)
@given(st.lists(st.text(max_size=80), max_size=4))
def test_any_text_keeps_its_surfaces(texts):
    for document, text in zip(MODEL.predict(texts, threshold=0.2), texts, strict=True):
        assert document.text == text
        for found in document.to_dict()["entities"]:
            assert found["text"] == text[found["start"] : found["end"]]
            assert found["text"] == found["text"].strip(" \n\t\r\u00a0\u2003") != ""
            assert found["fragments"] == [[found["start"], found["end"]]]
            assert 0.2 <= found["score"] <= 1


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffAspirin 💊 for Zoë́ 👩‍👩‍👧",
        "الأسبرين يعالج الصداع",
        "zero\u200bwidth\u200djoiner and soft\u00adhyphen",
        "half a pair \ud83d here",
        "a\r\nb\rc\u2028d\x85e\x00f",
        "阿司匹林治疗头痛。",
    ],
)
def test_odd_characters_stay_where_they_are(any_model, text):
    (document,) = any_model.predict(text, threshold=0.0)
    assert document.text == text
    assert document.entities
    assert all(0 <= span.start < span.end <= len(text) for e in document.entities for span in e.spans)


def test_a_word_of_300_000_characters(any_model):
    text = "Aspirin " + "x" * 300_000 + " here"
    (document,) = any_model.predict(text, threshold=0.0, overlap="any")
    assert {document.text_of(entity) for entity in document.entities} & {"Aspirin", "here", "x" * 300_000}


def test_a_threshold_is_about_the_score_that_users_see():
    model = untrained()
    for temperature in (0.5, 2.0):
        least = least_chances(model.recipe, model.labels, {"Drug": 0.8}, 0.3, temperature)
        by_name = dict(zip(model.labels.names(), least, strict=True))
        assert tempered(by_name["Drug"], temperature) == pytest.approx(0.8)
        assert by_name["Gene"] == 0.3  # the default is a chance already
