import random
from collections import Counter
from dataclasses import replace

import pytest

from wingspan.corpora.groups import too_coarse
from wingspan.corpora.split import bundles, folds, split
from wingspan.text import Document, Entity


def corpus(size: int = 300, articles: int = 100) -> list[Document]:
    draw = random.Random(7)
    labels = ["common"] * 20 + ["usual"] * 8 + ["rare"] * 2
    return [
        Document(
            f"d{at}",
            f"sentence number {at} of the corpus",
            tuple(Entity.at(draw.choice(labels), start, start + 1) for start in range(draw.randrange(4))),
            group=f"article {at % articles}",
        )
        for at in range(size)
    ]


SHARES = {"train": 80.0, "dev": 10.0, "test": 10.0}


def test_every_document_is_in_one_part_and_articles_stay_together() -> None:
    documents = corpus()
    parts = split(documents, SHARES, seed=3)
    assert sorted(d.id for part in parts.values() for d in part) == sorted(d.id for d in documents)
    groups = [{document.group for document in part} for part in parts.values()]
    assert sum(map(len, groups)) == len(set.union(*groups))


def test_equal_texts_stay_together_whatever_their_case_and_spaces() -> None:
    documents = [*corpus(40, 40), *(Document(f"copy {n}", f"Sentence  NUMBER {n}\nof the corpus") for n in range(40))]
    for part in split(documents, SHARES, seed=1).values():
        texts = {" ".join(document.text.casefold().split()) for document in part}
        assert len(part) == 2 * len(texts)


def test_chains_of_groups_and_texts_are_one_bundle() -> None:
    documents = [Document("1", "a", group="x"), Document("2", "b", group="x"), Document("3", "B"), Document("4", "c")]
    assert sorted(map(sorted, bundles(documents))) == [[0, 1, 2], [3]]


def test_empty_texts_are_no_duplicates() -> None:
    assert len(bundles([Document("1", ""), Document("2", " ")])) == 2


def test_shares_and_labels_are_even() -> None:
    documents = corpus()
    total = Counter(e.label for d in documents for e in d.entities)
    parts = split(documents, SHARES, seed=0)
    for name, share in SHARES.items():
        assert len(parts[name]) / len(documents) == pytest.approx(share / 100, abs=0.02)
        counts = Counter(e.label for d in parts[name] for e in d.entities)
        for label, count in total.items():
            assert counts[label] / count == pytest.approx(share / 100, abs=0.03), label


def test_the_seed_decides() -> None:
    documents = corpus()
    assert split(documents, SHARES, seed=1) == split(documents, SHARES, seed=1)
    assert split(documents, SHARES, seed=1) != split(documents, SHARES, seed=2)


def test_groups_that_are_too_coarse_are_said_to_be() -> None:
    assert too_coarse(corpus(300, 100)) is None
    assert too_coarse([replace(document, group=None) for document in corpus(300)]) is None
    assert too_coarse(corpus(12, 2)) is None  # few rows, whatever their groups
    assert too_coarse(corpus(300, 19)) == "300 rows are of 19 groups only, so that rows count one by one"
    one = [replace(document, group="a" if at < 280 else f"b{at}") for at, document in enumerate(corpus(300))]
    assert too_coarse(one) == "280 of 300 rows are of group 'a', so that rows count one by one"


def test_groups_may_be_divided() -> None:
    documents = corpus(300, 2)
    assert not all(split(documents, SHARES).values())
    parts = split(documents, SHARES, grouped=False)
    assert [len(part) for part in parts.values()] == pytest.approx([240, 30, 30], abs=4)
    assert [len(part) for part in folds(documents, 5, grouped=False)] == pytest.approx([60] * 5, abs=6)


def test_folds_partition_the_corpus() -> None:
    documents = corpus()
    parts = folds(documents, 5, seed=2)
    assert [len(part) for part in parts] == pytest.approx([60] * 5, abs=6)
    assert sorted(d.id for part in parts for d in part) == sorted(d.id for d in documents)


def test_impossible_wishes_are_told() -> None:
    with pytest.raises(ValueError, match="5 folds of 3 independent documents; choose a number from 2 to 3"):
        folds(corpus(9, 3), 5)
    with pytest.raises(ValueError, match="no part has a share"):
        split(corpus(), {"train": 0})
