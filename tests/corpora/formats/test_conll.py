"""Columns of words and tags.

CoNLL-2003: https://www.clips.uantwerpen.be/conll2003/ner/ ; GermEval 2014 (index, two layers):
https://sites.google.com/site/germeval2014ner/data ; named document marks as in AIDA-CoNLL.
"""

from pathlib import Path

import pytest

from wingspan.corpora.formats.conll import read, write
from wingspan.files import CorpusError, CorpusWarning, Problems
from wingspan.text import Document, Entity, Span

CONLL_2003 = """-DOCSTART- -X- -X- O

Maria NNP I-NP I-PER
Lund NNP I-NP B-PER
sails VBZ I-VP O
# NN I-NP O
1 CD I-NP O

Oslo NNP I-NP I-LOC

-DOCSTART- -X- -X- O

Rain NN I-NP O
"""
GERMEVAL = """#\thttp://example.org/a\t[2010-07-04]\t
1\tUniversität\tB-ORG\tO
2\tKiel\tI-ORG\tB-LOC
3\t#\tO\tO

#\thttp://example.org/b\t[2011-01-01]\t
1\tNebel\tO\tO
"""


def file(tmp_path: Path, content: str, name: str = "a.conll") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode())
    return path


def found(documents: list[Document]) -> list[list[tuple[str, str]]]:
    return [[(entity.label, document.text_of(entity)) for entity in document.entities] for document in documents]


def test_conll_2003_has_marks_chunks_and_iob1(tmp_path: Path) -> None:
    problems = Problems()
    documents = list(read(file(tmp_path, CONLL_2003), problems))
    assert found(documents) == [[("PER", "Maria"), ("PER", "Lund")], [("LOC", "Oslo")], []]
    assert documents[0].text == "Maria Lund sails # 1"
    assert [document.group for document in documents] == ["a-doc1", "a-doc1", "a-doc2"]
    assert [document.id for document in documents] == ["a-1", "a-2", "a-3"]
    assert documents[1].meta["columns"] == [["NNP"], ["I-NP"]]
    assert problems.notes == [f"{tmp_path / 'a.conll'}: tags in scheme IOB1 in column 4; words in column 1"]


@pytest.mark.parametrize(
    ("content", "groups"),
    [
        ("-DOCSTART- O\n\nRain O\n\nSun O\n", [None, None]),
        ("# made by hand\n\n-DOCSTART-\n\nRain O\n\nSun O\n", [None, None]),
        ("-DOCSTART- (one)\n\nRain O\n\nSun O\n", ["one", "one"]),  # somebody has named it
        ("-DOCSTART- O\n\nRain O\n\n-DOCSTART- O\n\nSun O\n", ["a-doc1", "a-doc2"]),
        ("Rain O\n\n-DOCSTART- O\n\nSun O\n", [None, "a-doc1"]),
    ],
)
def test_a_single_mark_at_the_top_is_no_group(tmp_path: Path, content: str, groups: list[str | None]) -> None:
    assert [document.group for document in read(file(tmp_path, content), Problems())] == groups


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("#\tO\n\n", [["#"]]),
        ("# made by hand\n#one\tB-X\n#two\tO\n\n#three\tO\n", [["#one", "#two"], ["#three"]]),
        ("# made by hand\n# 2\tpeople\n", []),
        ("# O\n", []),  # without a tab it is a comment
        ("# made by hand\n#see plan B\n#one B-X\n#two O\n\n#three O\n", [["#one", "#two"], ["#three"]]),
        ("#see plan B\n\n#one word\tB-X\n", [["#one word"]]),  # tabs tell more than blanks
    ],
)
def test_all_words_may_start_with_a_hash(tmp_path: Path, content: str, words: list[list[str]]) -> None:
    documents = list(read(file(tmp_path, content), Problems()))
    assert [[d.text[start:end] for start, end in d.words or ()] for d in documents] == words


COMMENTS = ["# id = 1", "#sent_id = 2", "# made by hand at home", "#global.columns = WORD NER", "# text = The U-Bahn"]


@pytest.mark.parametrize("divider", ["\t", " "])
@pytest.mark.parametrize(
    ("rows", "scheme", "entities"),
    [
        ("#a PER|#b O", "IO", [("PER", "#a")]),  # no other word says that PER is a label
        ("#a MISC|b PER|c O", "IO", [("MISC", "#a"), ("PER", "b")]),
        ("C O|# LANG|, O|R LANG", "IO", [("LANG", "#"), ("LANG", "R")]),
        ("#a B-PER|#b I-PER|c O", "IOB2", [("PER", "#a #b")]),
        ("#a x B-PER|#b x O", "IOB2", [("PER", "#a")]),
        ("#a x PER|#b x O", "IO", [("PER", "#a")]),
        ("a x y O|b x y PER", "IO", [("PER", "b")]),  # as many columns as `# id = 1`
        ("a x y O|b x y B-PER", "IOB2", [("PER", "b")]),
        ("a x y O|#b x y O", "IOB2", []),
    ],
)
def test_words_and_comments_that_start_with_a_hash(
    tmp_path: Path, divider: str, rows: str, scheme: str, entities: list[tuple[str, str]]
) -> None:
    lines = [row.replace(" ", divider) for row in rows.split("|")]
    problems = Problems(warns=True)
    (document,) = read(file(tmp_path, "\n".join([*COMMENTS, *lines, *COMMENTS, ""])), problems)
    assert document.text.split(" ") == [row.split(" ")[0] for row in rows.split("|")]
    assert found([document]) == [entities]
    assert document.meta["comments"] == [*COMMENTS, *COMMENTS]
    assert f"tags in scheme {scheme} in column" in problems.notes[0]


@pytest.mark.parametrize(
    ("content", "count", "line"),
    [
        ("a\tB-X\n#b\tPER\n", 1, 2),  # no tag of IOB2, and maybe a heading
        ("a\tB-X\tO\n#b\tB-Work of art\n\n#c B-Y\n", 2, 2),
        ("a\tO\n#\tPER\n", 1, 2),
        ("a\tO\nb\tLOC\n# c\tPER\n", 1, 3),
        ("a O\nb LOC\n# PER\n", 1, 3),
        ("a x y O\nb x y LOC\n# made by hand\n", 1, 3),  # by chance
        ("a x O\nb x B-X\n# B-X\n", 1, 3),
        ("#see below\na O\nb O\n", 1, 1),  # an unlabeled file, as test files are
        ("#page\t12\na\tO\nb\tO\n", 1, 1),
    ],
)
def test_a_comment_that_may_be_a_word_is_told(tmp_path: Path, content: str, count: int, line: int) -> None:
    path = file(tmp_path, content)
    with pytest.warns(CorpusWarning, match=f"a.conll: comments that may be words: {count}, the first in line {line}; "):
        (document, *_) = read(path, Problems(warns=True))
    assert "#" not in document.text


def test_a_comment_that_would_become_a_word_is_not_written(tmp_path: Path) -> None:
    document = Document.from_words("a-1", ("#a",), meta={"comments": ["#word\ttag"]})
    with pytest.raises(CorpusError, match=r"the comment '#word\\ttag' would be read as a word"):
        write([document], tmp_path / "a.conll")
    tagged = Document.from_words("a-2", ("b",), (Entity.at("X", 0, 1),))  # its prefix says what tags look like
    write([document, tagged], tmp_path / "a.conll")
    assert list(read(tmp_path / "a.conll", Problems())) == [document, tagged]


@pytest.mark.parametrize("comment", ["#note O", "#note\tO", "#see plan\tB"])
def test_where_there_is_no_word_a_comment_with_a_tag_is_not_written(tmp_path: Path, comment: str) -> None:
    """The reader would find no other line with columns."""
    document = Document.from_words("a-1", (), meta={"comments": [comment]})
    with pytest.raises(CorpusError, match="would be read as a word"):
        write([document], tmp_path / "a.conll")
    plain = Document.from_words("a-2", ("b",))
    if "\t" not in comment:
        write([document, plain], tmp_path / "a.conll")
        assert list(read(tmp_path / "a.conll", Problems())) == [document, plain]


def test_germeval_has_an_index_comments_and_two_layers(tmp_path: Path) -> None:
    problems = Problems()
    documents = list(read(file(tmp_path, GERMEVAL, "de.tsv"), problems))
    assert found(documents) == [[("ORG", "Universität Kiel"), ("LOC", "Kiel")], []]
    assert documents[0].text == "Universität Kiel #"
    assert documents[1].meta["comments"] == ["#\thttp://example.org/b\t[2011-01-01]\t"]
    assert "columns 3, 4, one layer each; words in column 2" in problems.notes[0]


@pytest.mark.parametrize("name", ["a.conll", "a.conll.gz"])
@pytest.mark.parametrize("content", [CONLL_2003, GERMEVAL])
def test_what_was_read_is_written_back(tmp_path: Path, content: str, name: str) -> None:
    documents = list(read(file(tmp_path, content), Problems()))
    write(documents, tmp_path / "b" / name)
    again = list(read(tmp_path / "b" / name, Problems()))
    assert again == documents
    assert [document.meta for document in again] == [document.meta for document in documents]


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("IOB2", "B-PER I-PER B-PER O B-LOC"),
        ("BIOES", "B-PER E-PER S-PER O S-LOC"),
        ("BILOU", "B-PER L-PER U-PER O U-LOC"),
        ("BMES", "B-PER M-PER S-PER O S-LOC"),
    ],
)
def test_schemes_line_ends_and_the_mark(tmp_path: Path, scheme: str, tags: str) -> None:
    rows = [f"{word} {tag}" for word, tag in zip(["🦅", "b", "c", "d", "e"], tags.split(), strict=True)]
    problems = Problems()
    documents = list(read(file(tmp_path, "\ufeff" + "\r\n".join(rows)), problems))
    assert found(documents) == [[("PER", "🦅 b"), ("PER", "c"), ("LOC", "e")]]
    assert f"scheme {scheme} " in problems.notes[0]


def test_broken_transitions_are_repaired_and_counted(tmp_path: Path) -> None:
    problems = Problems()
    documents = list(read(file(tmp_path, "a\tB-X\nb\tI-Y\nc\tO\nd\tI-X\n"), problems))
    assert found(documents) == [[("X", "a"), ("Y", "b"), ("X", "d")]]
    assert problems.notes[1].endswith("2 tags break the scheme IOB2; they are read as conlleval reads them")


def test_a_trailing_tab_is_no_column_and_a_line_of_tabs_ends_a_sentence(tmp_path: Path) -> None:
    documents = list(read(file(tmp_path, "a b\tB-X\t\n\t\nc\tO\t\n"), Problems()))
    assert [document.text for document in documents] == ["a b", "c"]
    assert documents[0].words == (Span(0, 3),)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tO\nb\tO\n\nc\n", "a.conll:4: 1 column where the file has 2"),
        ("a\tO\nb\tO\n\nc\tO\tmore\n", "a.conll:4: 3 columns where the file has 2"),
        ("a\tO\nb\tO\n\n\tO\n", "a.conll:4: the word is empty"),
        ("a\tO\nb\tB-X\n\nc\tY\n", "a.conll:4: 'Y' in column 2 is no tag of scheme IOB2; write O, or B- and a label"),
    ],
)
def test_a_line_that_does_not_fit_costs_its_sentence(tmp_path: Path, content: str, message: str) -> None:
    path = file(tmp_path, content)
    with pytest.raises(CorpusError, match=message):
        list(read(path, Problems()))
    problems = Problems("skip")
    assert [document.text for document in read(path, problems)] == ["a b"]
    assert len(problems.messages) == 1


def test_text_is_no_column_file(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="one column only"):
        list(read(file(tmp_path, "Rain\n\nSun\n"), Problems()))
    with pytest.raises(CorpusError, match="the last column holds no tags"):
        list(read(file(tmp_path, "It rains.\nIt pours.\n"), Problems()))
    assert list(read(file(tmp_path, "\n\n"), Problems())) == []


def test_nesting_groups_and_empty_sentences_are_written(tmp_path: Path) -> None:
    nested = Document.from_words("x", ("\ufeffa", "b"), (Entity.at("L m", 0, 2), Entity.at("K", 1, 2)), group="g (1)")
    documents = [nested, Document("y", "", words=(), group="g (1)"), Document.from_words("z", ("c",))]
    write(documents, tmp_path / "a.conll")
    assert (tmp_path / "a.conll").read_text() == (
        "-DOCSTART- (g (1))\n\n\ufeffa\tB-L m\tO\nb\tI-L m\tB-K\n\n"
        "# sentence without words\n\n-DOCSTART- ()\n\nc\tO\tO\n\n"
    )
    again = list(read(tmp_path / "a.conll", Problems()))
    assert [document.group for document in again] == ["g (1)", "g (1)", None]
    assert [(document.text, document.entities) for document in again] == [
        (document.text, document.entities) for document in documents
    ]


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (Document.from_words("x", ("a", "b", "c"), (Entity("L", (Span(0, 1), Span(2, 3))),)), "has 2 fragments"),
        (Document("x", "abc", (Entity.at("L", 0, 2),)), "does not fall on word boundaries"),
        (Document.from_words("x", ("a\tb",)), "holds a tab or line end"),
        (Document.from_words("x", ("-DOCSTART-",)), "marks a new document"),
        (Document.from_words("x", ("1", "2"), meta={"columns": [["CD", "NN"]]}), "all words are the numbers of their"),
    ],
)
def test_what_columns_cannot_hold_is_refused(tmp_path: Path, document: Document, reason: str) -> None:
    with pytest.raises(CorpusError, match=reason):
        write([document], tmp_path / "a.conll")
    assert list(tmp_path.iterdir()) == []


def test_text_that_belongs_to_no_word_is_not_lost(tmp_path: Path) -> None:
    document = Document("x", "ab, c", words=(Span(0, 2), Span(4, 5)))
    with pytest.raises(CorpusError, match="',' after character 2 belongs to no word"):
        write([document], tmp_path / "a.conll")
