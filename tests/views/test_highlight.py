import io
from collections.abc import Sequence
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console

from wingspan.text import Document, Entity, Span
from wingspan.views.entities import PALETTE, label_colors
from wingspan.views.terminal import glyphs, legend, show, wrapped


def found(text: str, label: str, *parts: str) -> Entity:
    """The entity whose fragments are these parts, each looked for behind the one before."""
    spans: list[Span] = []
    for part in parts:
        start = text.index(part, spans[-1].end if spans else 0)
        spans.append(Span(start, start + len(part)))
    return Entity(label, tuple(spans))


def document(text: str, *entities: Sequence[str]) -> Document:
    return Document("d", text, tuple(found(text, *entity) for entity in entities))


def plain(shown: Document, width: int = 60, **others: object) -> str:
    out = io.StringIO()
    show(shown, Console(file=out, width=width, force_terminal=False), **others)
    return out.getvalue()


def terminal(width: int = 60, color: str | None = "truecolor", **others: object) -> Console:
    return Console(
        file=io.StringIO(), width=width, force_terminal=True, color_system=color, record=True, _environ={}, **others
    )


def drawn(text: str) -> str:
    """What is expected: the block without its indent."""
    return dedent(text).lstrip("\n")


def test_nested_entities_are_stacked_with_the_inner_one_above() -> None:
    sample = document("the human BRCA1 gene promoter", ("Gene", "BRCA1"), ("DNA", "BRCA1 gene promoter"))
    assert plain(sample) == drawn(r"""
        the human BRCA1 gene promoter
                  \---/ Gene
                  \------ DNA ------/
    """)


def test_crossing_entities_and_two_labels_of_one_span_have_a_row_each() -> None:
    sample = document("old bank notes", ("A", "old bank"), ("B", "bank notes"), ("C", "bank notes"))
    assert plain(sample) == drawn(r"""
        old bank notes
        \- A --/
            \-- B ---/
            \-- C ---/
    """)


def test_fragments_are_joined_by_a_dotted_line_in_one_row() -> None:
    text = "pain in the left knee and both of the hips"
    assert plain(document(text, ("Symptom", "pain", "knee"), ("Symptom", "pain", "hips"))) == drawn(r"""
        pain in the left knee and both of the hips
        \--/.. Symptom ..\--/
        \--/............ Symptom .............\--/
    """)


def test_a_label_beside_its_bar_keeps_away_from_its_neighbors() -> None:
    sample = document("TP53 MDM2 ATM", ("protein", "TP53"), ("protein", "MDM2"), ("protein", "ATM"))
    assert plain(sample, 22) == drawn(r"""
        TP53 MDM2 ATM
                  \-/ protein
        \--/ protein
             \--/ protein
    """)
    assert plain(document("it is ATM", ("protein", "ATM")), 16) == "it is ATM\n      \\-/ prote>\n"
    assert plain(document("now it is ATM", ("gene", "ATM")), 14) == "now it is ATM\n    gene: \\-/\n"


def test_wrapped_entities_go_on_in_the_next_line() -> None:
    text = "severe acute respiratory distress syndrome was seen"
    assert plain(document(text, ("Disease", "acute respiratory distress syndrome")), 26) == drawn(r"""
        severe acute respiratory
               \--- Disease -----

        distress syndrome was seen
        ---- Disease ---/
    """)


def test_a_gap_that_spans_whole_lines_stays_dotted() -> None:
    shown = plain(document("both arms\nwere shown\nto hurt", ("Pain", "arms", "hurt")), 20)
    assert shown == drawn(r"""
        both arms
             \--/ Pain

        were shown
        .. Pain ..

        to hurt
        ...\--/ Pain
    """)


def test_words_longer_than_a_line_are_cut_and_nothing_is_lost() -> None:
    assert plain(document("a pneumonoultramicroscopic b", ("X", "ultra")), 8) == drawn(r"""
        a
        pneumono
        ultramic
        \ X /

        roscopic
        b
    """)


def test_chinese_takes_two_cells_and_breaks_anywhere() -> None:
    assert plain(document("病人有糖尿病史", ("疾病", "糖尿病"), ("糖", "糖"))) == drawn(r"""
        病人有糖尿病史
              \/ 糖
              \疾病/
    """)
    assert plain(document("病人有糖尿病史", ("DIS", "糖尿病")), 9) == drawn(r"""
        病人有糖
         DIS: \-

        尿病史
        ---/ DIS
    """)


@pytest.mark.parametrize("sign", ["💊", "👩‍🔬", "👍🏽", "🇫🇷", "❤️"])
def test_emoji_of_several_characters_take_two_cells(sign: str) -> None:
    sample = document(f"{sign} aspirin {sign}!", ("Drug", "aspirin"), ("Sign", f"{sign}!"))
    assert plain(sample) == f"{sign} aspirin {sign}!\n   \\Drug / \\-/ Sign\n"


def test_combining_marks_and_tabs_do_not_shift_bars() -> None:
    assert plain(document("\tcafe\u0301 noir", ("Drink", "noir"))) == "    cafe\u0301 noir\n         \\--/ Drink\n"
    only_the_mark = Document("d", "cafe\u0301 noir", (Entity.at("M", 4, 5),))
    assert plain(only_the_mark) == "cafe\u0301 noir\n   ^ M\n"


def test_empty_text_and_no_entities_are_said() -> None:
    assert plain(Document("d", "")) == "(empty text)\n"
    assert plain(Document("d", "Nothing\r\n\r\nhere.")) == "Nothing\n\nhere.\n(no entities)\n"


def test_entities_outside_the_text_are_named_instead_of_drawn() -> None:
    sample = Document("d", "short", (Entity.at("Far", 3, 9), Entity.at("None", 2, 2), Entity.at("In", 0, 5)))
    assert plain(sample) == drawn(r"""
        short
        \In /
        not drawn: None at 2-2; the text ends at 5
        not drawn: Far at 3-9; the text ends at 5
    """)
    assert "not drawn: Far at 0-2" in plain(Document("d", "", (Entity.at("Far", 0, 2),)))


def test_entities_of_spaces_and_line_breaks_are_still_drawn() -> None:
    assert plain(Document("d", "ab\ncd", (Entity.at("X", 2, 3),))) == "ab\n ^ X\n\ncd\n"
    assert plain(Document("d", "abcd ef", (Entity.at("X", 4, 5),)), 4) == "abcd\nX: ^\n\nef\n"


def test_gold_marks_right_spurious_and_missed() -> None:
    text = "colon cancer and gout"
    predicted = document(text, ("Disease", "colon cancer"), ("Disease", "cancer"))
    gold = document(text, ("Disease", "colon cancer"), ("Disease", "gout"))
    assert plain(predicted, gold=gold) == drawn(r"""
        colon cancer and gout
                         \~~/ x Disease
              \====/ + Disease
        \ok Disease/
        ok 1 right   + 1 spurious   x 1 missed
    """)
    console = terminal()
    show(predicted, console, gold=gold)
    assert console.export_text(clear=False) == drawn("""
        colon cancer and gout
                         ╰╌╌╯ ✗ Disease
              ╚════╝ + Disease
        ╰✓ Disease ╯
        ✓ 1 right   + 1 spurious   ✗ 1 missed
    """)
    with pytest.raises(ValueError, match="differ in their text"):
        plain(predicted, gold=document("gout"))


def test_the_same_entity_twice_is_right_only_once() -> None:
    gold = document("gout", ("D", "gout"))
    assert "ok 1 right   + 1 spurious   x 0 missed" in plain(document("gout", ("D", "gout"), ("D", "gout")), gold=gold)


def test_a_limit_says_what_it_leaves_out() -> None:
    sample = document("one two\nthree four\nfive", ("N", "one"), ("N", "five"))
    assert plain(sample, limit=1) == "one two\n\\N/\n... 15 more characters; entities there: 1\n"
    assert plain(sample, limit=3) == plain(sample)


def test_terminal_commands_and_markup_in_text_and_labels_are_shown_not_obeyed() -> None:
    text = "a \x1b[31mred\x1b[0m [bold]word[/bold] :smile: \x9b2J\x07\u202e\u200b\ud83d"
    sample = Document("d", text, (found(text, "[red]\x1b]0;x", "word"), found(text, "two\nlines", "red")))
    expected = r"a \x1b[31mred\x1b[0m [bold]word[/bold] :smile: \x9b2J\x07\u202e\u200b\ud83d"
    for color in (None, "truecolor"):
        console = terminal(120, color)
        show(sample, console)
        shown = console.export_text()
        assert shown.splitlines()[0] == expected
        assert "[red]\\x1b]0;x" in shown
        assert "two lines" in shown
    assert plain(sample, 120).splitlines()[0] == expected
    assert "\x1b" not in plain(sample, 120)


def test_what_the_encoding_cannot_hold_is_escaped() -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as out:
        sample = document("café 病 ok", ("État", "ok"))
        show(sample, Console(file=out, width=60, force_terminal=True, color_system="truecolor", _environ={}))
        out.flush()
        assert raw.getvalue() == b"caf\\xe9 \\u75c5 ok\n               \\/ \\xc9tat\n"


def test_color_only_on_a_terminal_that_has_it() -> None:
    sample = document("mild fever", ("Symptom", "fever"))
    console = terminal()
    show(sample, console)
    assert "\x1b[1;38;2;" in console.file.getvalue()
    for dull in (terminal(no_color=True), terminal(color=None)):
        show(sample, dull)
        legend(["Symptom"], dull)
        assert dull.file.getvalue() == "mild fever\n     \\---/ Symptom\nSymptom\n"


def test_the_shortest_entity_gives_a_word_its_color() -> None:
    console = terminal()
    show(document("IL-2 gene", ("protein", "IL-2"), ("DNA", "IL-2 gene")), console, labels=("protein", "DNA"))
    first = console.file.getvalue().splitlines()[0]
    colors = label_colors(("protein", "DNA"))
    codes = {label: "1;38;2;{};{};{}".format(*Color.parse(color).triplet) for label, color in colors.items()}
    assert first == f"\x1b[{codes['protein']}mIL-2\x1b[0m\x1b[{codes['DNA']}m gene\x1b[0m"


def test_hebrew_and_arabic_stay_in_their_columns() -> None:
    sample = document("חולה סרטן השד כאן", ("Disease", "סרטן השד"))
    assert plain(sample) == "חולה סרטן השד כאן\n     \\------/ Disease\n"
    console = terminal()
    show(sample, console)
    mark = "\u200e"
    assert console.export_text().splitlines()[0] == f"{mark}חולה {mark}סרטן השד{mark} כאן"


def test_colors_are_stable_distinct_and_readable_on_black_and_white() -> None:
    labels = ["Chemical", "Disease", "Gene", "Species", "CellLine", "Variant", "Organ", "Drug"]
    colors = label_colors(labels)
    assert colors == label_colors(reversed(labels))
    assert len(set(colors.values())) == len(labels)
    assert set(label_colors(map(str, range(30))).values()) == set(PALETTE)
    for color in PALETTE:
        shares = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in (value / 255 for value in Color.parse(color).triplet)
        ]
        luminance = 0.2126 * shares[0] + 0.7152 * shares[1] + 0.0722 * shares[2]
        assert min(1.05 / (luminance + 0.05), (luminance + 0.05) / 0.05) >= 4.5


def test_the_legend_wraps_between_labels() -> None:
    out = io.StringIO()
    legend(["Gene", "Disease", "Cell line"], Console(file=out, width=20, force_terminal=False))
    assert out.getvalue() == "Cell line   Disease\nGene\n"
    console = terminal()
    legend(["Gene", "Disease"], console)
    assert console.export_text() == "━━ Disease   ━━ Gene\n"


TEXTS = st.text(st.sampled_from("ab  \n\t-病💊\u0301\u200d\u200bעم\x1bé\U0001f3fd"), min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, width=st.integers(24, 50), data=st.data())
def test_any_text_keeps_its_characters_and_its_bars_inside_the_screen(
    text: str, width: int, data: st.DataObject
) -> None:
    lines = list(wrapped(text, width))
    assert [(g.start, g.end) for line in lines for g in line] == [(g.start, g.end) for g in glyphs(text)]
    start, end, again, last = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 4)))
    spans = ((start, end), (again, last)) if start < end < again < last else ((0, len(text)),)
    entities = (Entity("joined", spans), Entity.at("plain", *spans[0]))
    shown = plain(Document("d", text, entities), width).splitlines()
    assert all(cell_len(line.replace("\u200d", "")) <= width for line in shown)
    for entity in entities:
        assert any(entity.label[:3] in line for line in shown)
