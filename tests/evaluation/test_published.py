import pytest

import wingspan.evaluation
from wingspan.evaluation.published import sng_f1, sng_printed, sng_printed_discontinuous

# paper 001, Table 2: precision, recall, F1. MSRA's accuracy is misprinted there as 86.87 (5,988 of 6,181 are right).
CONTIGUOUS = {
    "GENIA": (91.76, 91.76, 100.0, 95.70),
    "LitBank": (87.93, 87.93, 100.0, 93.58),
    "GermEval14": (69.47, 69.47, 100.0, 81.99),
    "ANERcorp": (72.73, 72.73, 100.0, 84.21),
    "HAREM": (64.98, 64.98, 100.0, 78.77),
    "MSRA": (100 * 5988 / 6181, 96.87, 100.0, 98.41),
}
DISCONTINUOUS = {"CADEC": (88.65, 89.05, 88.09, 88.57), "NEREL": (68.66, 68.75, 68.64, 68.69)}


@pytest.mark.parametrize("corpus", CONTIGUOUS)
def test_the_table_follows_from_accuracies(corpus):
    accuracy, *printed = CONTIGUOUS[corpus]
    assert sng_printed(accuracy) == pytest.approx(printed, abs=0.01)


@pytest.mark.parametrize("corpus", DISCONTINUOUS)
def test_the_table_follows_where_entities_are_discontinuous(corpus):
    """Accuracy is that of all entities; with precision and recall it says how many are discontinuous, and how many of
    these are right. From these counts the formula gives the row again, and they are possible ones."""
    accuracy, precision, recall, f1 = DISCONTINUOUS[corpus]
    right = precision / 100  # per contiguous entity
    wrong_joined = precision / recall - 1
    joined_right = (accuracy / 100 * (1 + wrong_joined) - right) / (1 - accuracy / 100)
    joined = joined_right + wrong_joined
    assert 0 <= joined_right <= joined < 0.1
    assert (right + joined_right) / (1 + joined) == pytest.approx(accuracy / 100)
    assert sng_printed_discontinuous(right, 1, joined_right, joined) == pytest.approx((precision, recall, f1), abs=0.01)


def test_by_hand():
    assert sng_f1(50.0) == pytest.approx(100 * 2 * 0.5 / 1.5)
    assert sng_f1(0.0) == 0.0
    # 8 of 10 contiguous, 3 of 5 discontinuous: 8/10, 8/(10 + 2)
    assert sng_printed_discontinuous(8, 10, 3, 5) == pytest.approx((80.0, 200 / 3, 2 * 80 * (200 / 3) / (80 + 200 / 3)))


def test_nobody_meets_them_by_mistake():
    assert not any("sng" in name or "published" in name for name in wingspan.evaluation.__all__)
