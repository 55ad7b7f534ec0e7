"""Teachers: what they say of sentences, and students that learn from them."""

import io
import json
import shutil
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from tiny import sentence

import wingspan
from trainings import dev_documents, tiny, train_documents, untrained
from wingspan.candidates import Grid
from wingspan.corpora.demo import corpus
from wingspan.encoders.pretrained import PretrainedEncoder
from wingspan.evaluation.scores import recognition
from wingspan.labels import LabelSet
from wingspan.objectives.distillation import KEY, Taught
from wingspan.recipe import Phase, with_teachers, without_teachers
from wingspan.recipe_json import as_json, from_json
from wingspan.recipes import find
from wingspan.training.fit import fit
from wingspan.training.state import load_phase
from wingspan.training.teaching import LEAST, Teacher, ask, common_classes, in_one_voice, teach

LABELS = LabelSet({"main": ("Disease", "Drug", "Gene")})  # of a student


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A model of drugs and genes that has seen nothing, in a folder."""
    folder = tmp_path_factory.mktemp("teachers") / "random"
    untrained().save_pretrained(folder)
    return folder


def test_a_teacher_says_what_it_would_predict():
    model = untrained()
    words = sentence("BRCA1 binds aspirin in vitro")
    (said,) = ask(Teacher("model", model), [words], LABELS, 1.0)
    assert said.classes.tolist() == [2, 3]  # the student's; it is silent about diseases
    assert said.until.tolist() == [4, 5, 5, 5, 5]  # four words at most
    spans = list(zip(said.start.tolist(), said.end.tolist(), strict=True))
    assert spans
    for at, label in enumerate(("Drug", "Gene")):
        threshold = {"Drug": 1.0, "Gene": 1.0, label: 0.0}  # every span has this label
        found = {entity.spans[0]: entity.score for entity in model.predict_batch([words], threshold)[0]}
        assert len(found) == 14
        assert said.chance[:, at].tolist() == pytest.approx([found[span] for span in spans], abs=1e-6)


def test_unlikely_spans_are_not_kept():
    model = untrained()
    with torch.no_grad():
        for parameter in model.learner.model.scorer.head.parameters():
            parameter.zero_()
        list(model.learner.model.scorer.head.parameters())[-1][0] = 10.0  # nothing
    (said,) = ask(Teacher("model", model), [sentence("a b c")], LABELS, 1.0)
    assert len(said.start) == 0
    assert 2 / (np.exp(10) + 2) < LEAST
    (softer,) = ask(Teacher("model", model), [sentence("a b c")], LABELS, 5.0)
    assert len(softer.start) == 6
    assert softer.chance[0].tolist() == pytest.approx([1 / (np.exp(2) + 2)] * 2)


def test_a_long_sentence_is_read_in_windows_of_the_teacher():
    model = untrained()
    words = sentence(" ".join(f"word{n}" for n in range(40)))
    (whole,) = ask(Teacher("model", model), [words], LABELS, 1.0)
    segments = replace(model.recipe.segments, max_length=12, overlap=4)
    model.recipe = replace(model.recipe, segments=segments)
    (cut,) = ask(Teacher("model", model), [words], LABELS, 1.0)
    assert cut.until.tolist() == whole.until.tolist()
    assert set(zip(cut.start.tolist(), cut.end.tolist(), strict=True)) <= {
        (start, end) for start in range(40) for end in range(start + 1, min(start + 4, 40) + 1)
    }


def test_a_teacher_with_other_pieces_speaks_in_words(folders):
    encoder = partial(PretrainedEncoder, name=str(folders["bert"]), unit="piece")
    model = untrained(encoder=encoder, max_width=3, candidates=partial(Grid))
    words = sentence("unbelievable aspirin x")
    (said,) = ask(Teacher("model", model), [words], LABELS, 1.0)
    sizes = model.engine.tokenize.measure(words.words)
    widest = [max([0] + [end for end in range(at + 1, 4) if sum(sizes[at:end]) <= 3]) for at in range(3)]
    assert said.until.tolist() == widest
    assert np.all(said.end <= said.until[said.start])


def test_proposals_are_of_any_width():
    (said,) = ask(Teacher("model", untrained("bundling/span-proposals")), [sentence("a b c d e f g h")], LABELS, 1.0)
    assert said.until.tolist() == [8] * 8


def test_common_labels_are_found_by_name():
    teacher = LabelSet({"main": ("Cell", "Gene", "Drug")})
    mine, theirs = common_classes(teacher, LABELS, "main")
    assert list(zip(mine.tolist(), theirs.tolist(), strict=True)) == [(2, 3), (3, 2)]
    shared = LabelSet({"one": ("Drug",), "two": ("Gene",)}, shared=True)
    assert common_classes(shared, LABELS, "main")[0].tolist() == [2, 3]  # all corpora have taught it
    partly = LabelSet({"main": ("Drug", "Gene")}, annotates={"main": ("Gene",)})
    assert common_classes(partly, LABELS, "main")[0].tolist() == [3]  # nobody has taught it drugs


def test_of_a_corpus_whose_labels_it_does_not_know_a_teacher_says_nothing():
    labels = LabelSet({"main": ("Drug", "Gene"), "other": ("River",)})
    rows = [sentence("a b c"), replace(sentence("a b c"), dataset="other")]
    known, unknown = ask(Teacher("model", untrained()), rows, labels, 1.0)
    assert known.until.all()
    assert not unknown.until.any()
    assert unknown.chance.shape == (0, 0)
    (silent,) = in_one_voice([unknown])
    assert not len(silent.start)


def test_teachers_with_the_same_labels_speak_with_one_voice():
    def said(until, spans, classes=(1,)) -> Taught:
        start, end, chance = (np.array(part) for part in zip(*spans, strict=True))
        return Taught(np.array(classes), np.array(until), start, end, chance[:, None])

    one, two = said([2, 2], [(0, 1, 0.4), (0, 2, 0.6)]), said([1, 2], [(0, 1, 0.8), (1, 2, 0.2)])
    other = said([2, 2], [(1, 2, 0.5)], classes=(2,))
    together, alone = in_one_voice([one, other, two])
    assert together.until.tolist() == [2, 2]
    chances = dict(zip((together.start * KEY + together.end).tolist(), together.chance[:, 0].tolist(), strict=True))
    # the second does not score the two words, and of the first, one word alone is nothing
    assert chances == pytest.approx({1: 0.6, 2: 0.6, KEY + 2: 0.1})
    assert alone.classes.tolist() == [2]


def test_the_line_about_teachers():
    fitted = fit(with_teachers(tiny("baseline")), train_documents(6))
    taught, line = teach(fitted, [Teacher("runs/one", untrained()), Teacher("runs/two", untrained(seed=1))])
    known = sum(label in ("Drug", "Gene") for label in fitted.labels.types["main"])
    assert line.startswith(f"2 teachers (one, two): {known} of {len(fitted.labels.types['main'])} labels known, not ")
    assert all(len(sentence.taught) == 1 for sentence in taught.sentences)


def printed(recipe, **options) -> tuple[wingspan.Recognizer, str]:
    out = io.StringIO()
    model = wingspan.train(recipe, console=Console(file=out, width=300), device="cpu", **options)
    return model, out.getvalue()


def test_a_student_is_saved_without_its_teacher(teacher, tmp_path):
    mine = tmp_path / "teacher"
    shutil.copytree(teacher, mine)
    student, log = printed(
        tiny("bundling/bl-span"),
        train=train_documents(6),
        dev=dev_documents(2),
        output=tmp_path / "student",
        teachers=[mine],
    )
    assert "1 teacher (teacher): " in log
    assert student.recipe.terms["teachers"].weight == 0.5
    assert student.facts["teachers"][0]["model"] == "teacher"
    shutil.rmtree(mine)
    again = wingspan.load(tmp_path / "student")
    assert "teachers" not in again.learner.objectives
    assert again.predict("Aspirin helps.") == student.predict("Aspirin helps.")
    kept = json.loads(json.dumps(as_json(again.recipe)))
    assert as_json(from_json(kept)) == kept
    assert "teachers" in load_phase(tmp_path / "student", 1).learner.objectives
    with pytest.raises(ValueError, match="learns from teachers; name them with --teacher MODEL"):
        wingspan.train(again.recipe, train=train_documents(4))


def test_a_resumed_student_is_the_same(teacher, tmp_path):
    def train(folder, epochs, **options):
        wingspan.train(
            tiny("baseline", epochs=epochs, schedule="constant"),
            train=train_documents(6),
            output=tmp_path / folder,
            device="cpu",
            **{"teachers": [teacher], **options},
        )

    train("whole", 2)
    train("parts", 1)
    train("parts", 2, resume=True)
    whole, parts = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    untrained(seed=3).save_pretrained(tmp_path / "other")
    with pytest.raises(ValueError, match="--resume: teachers is"):
        train("parts", 2, resume=True, teachers=[tmp_path / "other"])


def test_models_that_cannot_teach_are_refused(tmp_path, teacher):
    def refused(name: str, message: str, **changes) -> None:
        untrained(name, **changes).save_pretrained(tmp_path / "model")
        with pytest.raises(ValueError, match=message):
            wingspan.train(tiny("baseline"), train=train_documents(4), teachers=[tmp_path / "model"])

    refused("typed_spans", "types given spans and has no chances of others; use one that finds them")
    refused("bundling/seq", "a bundling/seq model has no chances of spans; use one with spans")
    refused("baseline", "has no label of the training documents; it has Ship", labels=("Ship",))
    for student in ("bundling/seq", "typed_spans"):
        with pytest.raises(ValueError, match="classifies no spans that teachers could teach; use a span recipe"):
            wingspan.train(tiny(student), train=train_documents(4), teachers=[teacher])
    with pytest.raises(ValueError, match="has teachers already; change terms.teachers.weight instead"):
        with_teachers(with_teachers(find("baseline")))


def test_phases_forget_the_teachers():
    alone, both, usual = Phase(2, ("teachers",)), Phase(1, ("spans", "teachers")), Phase()
    taught = replace(with_teachers(find("bundling/span")), phases=(alone, both, usual))
    assert without_teachers(taught).phases == (Phase(1, ("spans",)), usual)
    assert without_teachers(replace(taught, phases=(alone,))).phases == (usual,)


def test_settings_of_the_term(teacher):
    model, _ = printed(
        tiny("compress_generate/supvib"),
        train=train_documents(4),
        teachers=[teacher],
        settings={"terms.teachers.weight": 0.9, "terms.teachers.objective.temperature": 2.0},
    )
    assert model.recipe.terms["teachers"].weight == 0.9
    classification, distillation = (model.recipe.terms[name].objective.keywords for name in ("spans", "teachers"))
    shared = {name: value for name, value in classification.items() if name in ("link", "reduction", "foreign")}
    assert distillation == {"temperature": 2.0, **shared}


def test_a_teacher_of_the_scored_documents_is_reported(tmp_path):
    options = {"train": dev_documents(4), "output": tmp_path / "leaky"}
    wingspan.train(tiny("baseline"), device="cpu", **options)
    _, log = printed(tiny("baseline"), train=train_documents(6), dev=dev_documents(4), teachers=[tmp_path / "leaky"])
    assert "leaky was trained on the dev documents, so scores on them are too good." in log


def test_a_teacher_makes_up_for_missing_gold(tmp_path):
    """Half of the entities are not marked, as in many corpora; a teacher has seen others that are whole."""
    train, _, test = corpus()
    sizes = {"encoder.buckets": 2000, "encoder.embedding": 16, "encoder.hidden": 32}
    options = {"settings": sizes, "device": "cpu", "seed": 1, "learning_rate": 5e-3}
    wingspan.train("baseline", train=train[20:60], output=tmp_path / "teacher", epochs=5, **options)
    halved = [replace(document, entities=document.entities[::2]) for document in train[:20]]

    def f1(**others) -> float:
        student = wingspan.train("baseline", train=halved, epochs=6, **options, **others)
        return recognition(test[:20], student.predict(test[:20])).micro.f1

    assert f1(teachers=[tmp_path / "teacher"]) > f1() + 10
