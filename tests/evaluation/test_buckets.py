"""Scores by attribute: hand-computed tables, brute force for the nested roles, intervals, gaps between systems."""

import math
import re
from pathlib import Path

import pytest
import scoring_samples as samples

from wingspan.evaluation.buckets import (
    ATTRIBUTES,
    Bucket,
    BucketRange,
    TrainingSurfaces,
    buckets,
    gaps,
    nested_roles,
    quantile_ranges,
    steps,
)
from wingspan.evaluation.scores import recognition
from wingspan.text import Document, Entity, Span


def words(id, text, *entities, **others):
    """A document of words between spaces; entities as (label, start, end) in words."""
    return Document.from_words(id, tuple(text.split()), tuple(Entity.at(*e) for e in entities), **others)


def table(result, name):
    return {row.name: (row.gold, row.gold_right, row.found, row.found_right) for row in result[name].rows}


def test_precision_by_predictions_recall_by_gold():
    gold = [words("1", "a b c d e f g h", ("X", 0, 1), ("X", 2, 4))]
    found = [words("1", "a b c d e f g h", ("X", 0, 1), ("X", 2, 5), ("X", 6, 7))]
    result = buckets(gold, found, ["entity_length"])["entity_length"]
    assert [row.name for row in result.rows] == ["1", "2", "3–4", "≥ 5"]
    single, double, longer, longest = result.rows
    assert (single.gold, single.gold_right, single.found, single.found_right) == (1, 1, 2, 1)
    assert (single.precision, single.recall) == (50, 100)
    assert single.f1 == pytest.approx(200 / 3)
    assert (double.precision, double.recall, double.f1) == (None, 0, 0)
    assert (longer.precision, longer.recall, longer.f1) == (0, None, 0)
    assert (longest.precision, longest.recall, longest.f1) == (None, None, None)


def test_text_length_and_density_are_those_of_the_sentence():
    text = "One drug helps. " + " ".join(f"w{n}" for n in range(39)) + "."
    gold = [Document("1", text, (Entity.at("X", 4, 8), Entity.at("X", 16, 18), Entity.at("Y", 16, 18)))]
    result = buckets(gold, gold, ["text_length", "entity_density"])
    # "One drug helps ." has 4 words; w0 is two words of the splitter: 39 * 2 + 1 = 79
    assert table(result, "text_length") == {
        "1–7": (1, 1, 1, 1),
        "8–16": (0, 0, 0, 0),
        "17–31": (0, 0, 0, 0),
        "≥ 32": (2, 2, 2, 2),
    }
    # 1 entity in 4 words is 0.25, 2 in 79 are 0.0253
    assert table(result, "entity_density") == {
        "[0, 0.01]": (0, 0, 0, 0),
        "(0.01, 0.025]": (0, 0, 0, 0),
        "(0.025, 0.05]": (2, 2, 2, 2),
        "> 0.05": (1, 1, 1, 1),
    }


def test_consistency_frequency_and_unseen_words():
    training = [
        words("t", "May rain May May fell rain", ("Date", 0, 1), ("Weather", 1, 2), ("Date", 2, 3), ("Person", 3, 4)),
        words("u", "may", ("Date", 0, 1)),
    ]
    seen = TrainingSurfaces.of(training)
    assert seen.consistency("may", "Date") == 0.75
    assert seen.consistency("may", "Person") == 0.25
    assert seen.consistency("rain", "Date") == 0
    assert seen.consistency("snow", "Weather") == 0
    assert (seen.frequency("may"), seen.frequency("rain"), seen.frequency("snow")) == (4, 1, 0)
    gold = [words("1", "May fell snow", ("Date", 0, 1), ("Weather", 2, 3))]
    found = [words("1", "May fell snow", ("Person", 0, 1), ("Weather", 2, 3))]
    result = buckets(gold, found, training=training)
    assert table(result, "label_consistency") == {
        "[0, 0.1]": (1, 1, 1, 1),
        "(0.1, 0.5]": (0, 0, 1, 0),
        "(0.5, 0.9]": (1, 0, 0, 0),
        "(0.9, 1]": (0, 0, 0, 0),
    }
    assert table(result, "training_frequency") == {
        "0": (1, 1, 1, 1),
        "1": (0, 0, 0, 0),
        "2–4": (1, 0, 1, 0),
        "5–9": (0, 0, 0, 0),
        "≥ 10": (0, 0, 0, 0),
    }
    # one word of three is unseen
    assert table(result, "oov_density")["(0.25, 1]"] == (2, 1, 2, 1)
    assert [row.name for row in result["oov_density"].rows] == ["0", "(0, 0.1]", "(0.1, 0.25]", "(0.25, 1]"]
    assert set(result) == set(ATTRIBUTES)


def test_what_needs_training_says_so():
    gold = [words("1", "May fell", ("Date", 0, 1))]
    assert "label_consistency" not in buckets(gold, gold)
    with pytest.raises(ValueError, match=r"oov_density: compares with the training corpus"):
        buckets(gold, gold, ["entity_length", "oov_density"])
    with pytest.raises(
        ValueError, match=r"unknown attribute 'size'; use entity_length, .*, entity:KEY or document:KEY"
    ):
        buckets(gold, gold, ["size"])


def test_nested_roles_of_the_papers_example():
    """New York in New York University (Zhu et al. 2023, Section 4.5)."""
    inner, outer, flat = Entity.at("Place", 0, 2), Entity.at("Organization", 0, 3), Entity.at("Date", 5, 7)
    others = [Entity.at("Place", *span) for span in ((1, 2), (2, 3), (0, 4), (5, 6), (3, 5))]
    roles = nested_roles([inner, outer, flat], [inner, outer, flat, *others])
    assert roles == {
        inner.spans: "nested",
        outer.spans: "covering",
        flat.spans: "flat",
        others[0].spans: "nested",  # inside the outer one: one of the negatives to be told apart
        others[1].spans: "nested",
        others[2].spans: "covering",  # around the inner one
        others[3].spans: "flat",  # inside of an entity that covers nothing
        others[4].spans: "flat",
    }


def test_the_gap_of_a_discontinuous_entity_holds_nothing():
    first = Entity("Disease", (Span(0, 5), Span(15, 21)))  # liver (and lung) cancer
    second, lung = Entity.at("Disease", 10, 21), Entity.at("Part", 10, 14)
    roles = nested_roles([first, second, lung], [first, second, lung])
    assert roles == {first.spans: "flat", second.spans: "covering", lung.spans: "nested"}


def roles_by_definition(gold, asked):
    """Character sets, every pair, every other entity."""

    def characters(entity):
        return frozenset(at for span in entity.spans for at in range(*span))

    known = {e.spans: characters(e) for e in gold}.values()
    outer = [a for a in known if any(b < a for b in known)]
    inner = [a for a in known if any(a < b for b in known)]
    found = {}
    for entity in asked:
        own = characters(entity)
        nested, covering = any(own < a for a in outer), any(a < own for a in inner)
        found[entity.spans] = (
            "both" if nested and covering else "nested" if nested else "covering" if covering else "flat"
        )
    return found


def test_nested_roles_against_the_definition():
    rng = samples.generator("roles")
    for _ in range(1500):
        sides = []
        for _ in range(2):
            entities = [samples.entity(rng, discontinuous=0.2) for _ in range(rng.randint(0, 6))]
            sides.append([e for e in entities if _apart(e)])
        gold, found = sides
        assert nested_roles(gold, [*gold, *found]) == roles_by_definition(gold, [*gold, *found])


def _apart(entity):
    """Whether something stands between the fragments, as in any real corpus."""
    return all(a.end < b.start for a, b in zip(entity.spans, entity.spans[1:], strict=False))


def test_discontinuity_and_position():
    text = "x" * 100
    entities = (Entity("A", (Span(0, 5), Span(15, 21))), Entity.at("A", 30, 40), Entity.at("A", 99, 100))
    gold = [Document("1", text, entities)]
    result = buckets(gold, gold, ["fragments", "position"])
    assert table(result, "fragments") == {"1": (2, 2, 2, 2), "2": (1, 1, 1, 1), "≥ 3": (0, 0, 0, 0)}
    assert [row.gold for row in result["position"].rows] == [1, 1, 0, 1]


def test_position_counts_through_the_rows_of_an_article():
    rows = [Document(f"{n}", "x" * 50, (Entity.at("A", 0, 1),), group="article") for n in range(4)]
    result = buckets(rows, rows, ["position"])["position"]
    assert [row.gold for row in result.rows] == [2, 1, 1, 0]  # at 0, 0.25, 0.5, 0.75


def test_what_the_corpus_says_of_entities_and_documents():
    def entity(start, **meta):
        return Entity("X", (Span(start, start + 1),), meta=meta)

    gold = [
        Document("1", "abc", (entity(0, certain="yes"), entity(1, certain="no")), meta={"source": {"year": 1999}}),
        Document("2", "abc", (entity(2, certain="yes"),), dataset="news"),
    ]
    found = [Document("1", "abc", (entity(0), entity(2))), Document("2", "abc", (entity(2),))]
    result = buckets(gold, found, ["entity:certain", "document:source.year", "document:dataset"])
    assert table(result, "entity:certain") == {"yes": (2, 2, 0, 0), "no": (1, 0, 0, 0), "not given": (0, 0, 3, 2)}
    yes = result["entity:certain"].rows[0]
    assert (yes.precision, yes.recall, yes.f1) == (None, 100, None)  # predictions do not say, so there is no F1
    assert table(result, "document:source.year") == {"1999": (2, 1, 2, 1), "not given": (1, 1, 1, 1)}
    assert table(result, "document:dataset") == {"main": (2, 1, 2, 1), "news": (1, 1, 1, 1)}


def test_many_numbers_of_the_corpus_become_quartiles():
    gold = [Document(f"{n}", "abc", (Entity.at("X", 0, 1),), meta={"year": 1980 + n}) for n in range(20)]
    result = buckets(gold, gold, ["document:year"])["document:year"]
    assert [row.name for row in result.rows] == ["≤ 1984", "(1984, 1989]", "(1989, 1994]", "> 1994"]
    assert [row.gold for row in result.rows] == [5, 5, 5, 5]


def test_quantiles_on_request():
    gold = [words("1", "a b c d e f g h i j", ("X", 0, 1), ("X", 1, 3), ("X", 3, 6), ("X", 6, 10))]
    result = buckets(gold, gold, ["entity_length", "nested_role"], quantiles=2)
    assert table(result, "entity_length") == {"≤ 2": (2, 2, 2, 2), "> 2": (2, 2, 2, 2)}
    assert table(result, "nested_role")["flat"] == (4, 4, 4, 4)


def test_intervals():
    assert [i.name for i in steps(0, 0.1, 0.5, math.inf)] == ["[0, 0.1]", "(0.1, 0.5]", "> 0.5"]
    assert BucketRange(0.1, 0.5, above=True).holds(0.5)
    assert not BucketRange(0.1, 0.5, above=True).holds(0.1)
    assert [i.name for i in quantile_ranges([1, 1, 1, 1, 5], 4)] == ["≤ 1", "> 1"]
    assert [i.name for i in quantile_ranges([3, 3], 4)] == ["all"]
    assert quantile_ranges([], 4)[0].holds(7)
    with pytest.raises(ValueError, match="give 2 or more"):
        quantile_ranges([1.0], 1)
    rng = samples.generator("quantiles")
    for _ in range(300):
        values = [rng.randrange(20) for _ in range(rng.randint(1, 40))]
        intervals = quantile_ranges(values, rng.randint(2, 6))
        for value in (*range(-3, 25), rng.random() * 20):
            assert sum(interval.holds(value) for interval in intervals) == 1
        assert all(any(interval.holds(value) for value in values) for interval in intervals)


def test_a_value_in_no_interval_is_not_lost():
    gold = [Document("1", "a  b", (Entity.at("X", 1, 2),))]  # white space only: no word
    assert table(buckets(gold, gold, ["entity_length"]), "entity_length")["other"] == (1, 1, 1, 1)


def test_every_table_adds_up_to_the_score():
    rng = samples.generator("buckets")
    sides = list(zip(*(samples.wild(rng) for _ in range(200)), strict=True))
    gold, found = ([samples.document(side, str(n)) for n, side in enumerate(each)] for each in sides)
    micro = recognition(gold, found).micro
    for quantiles in (None, 3):
        result = buckets(gold, found, training=gold[:50], quantiles=quantiles)
        for each in result.values():
            assert sum(row.gold for row in each.rows) == micro.gold
            assert sum(row.found for row in each.rows) == micro.found
            assert sum(row.gold_right for row in each.rows) == sum(row.found_right for row in each.rows) == micro.tp
            assert all(row.gold_right == row.found_right for row in each.rows)  # equal entities, equal attributes


def test_gaps_between_systems():
    gold = [words("1", "a b c d e f", ("X", 0, 1), ("X", 2, 3), ("X", 3, 5))]
    one = [words("1", "a b c d e f", ("X", 0, 1), ("X", 3, 5))]
    other = [words("1", "a b c d e f", ("X", 0, 1), ("X", 2, 3), ("X", 3, 6))]
    systems = {name: buckets(gold, found, ["entity_length"]) for name, found in (("one", one), ("other", other))}
    (gap,) = gaps(systems, "one")
    assert gap.buckets == ("1", "2", "3–4", "≥ 5")
    assert gap.values["one"] == (0, 0, None, None)
    assert gap.values["other"] == (pytest.approx(100 / 3), -100, None, None)
    (recall,) = gaps(systems, "one", "recall")
    assert recall.values["other"] == (50, -100, None, None)
    with pytest.raises(ValueError, match="the standard is one of one, other"):
        gaps(systems, "two")


def test_a_bucket_only_one_system_has_is_in_the_gaps():
    gold = [Document("1", "abc", (Entity.at("X", 0, 1),))]
    found = [Document("1", "abc", (Entity("X", (Span(0, 1),), meta={"by": "rules"}),))]
    systems = {name: buckets(gold, side, ["entity:by"]) for name, side in (("one", gold), ("two", found))}
    (gap,) = gaps(systems, "one")
    assert gap.buckets == ("not given", "rules")
    assert gap.values["two"] == (None, None)


def test_empty_bucket():
    assert Bucket("x").f1 is None


def test_the_documentation_names_every_attribute():
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    part = page[page.index("## Buckets") : page.index("## Systems")]
    assert re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) == list(ATTRIBUTES)
