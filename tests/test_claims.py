"""Verdicts on the papers' claims: what an interval says, and whether other calls agree."""

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def claims(monkeypatch):
    """The module of the table, which is no part of the package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import claims

    return claims


def claim(claims, published=0.5, **changes):
    return claims.Claim("a part adds", "GENIA", published, None, None, **changes)


@pytest.mark.parametrize(
    ("low", "high", "published", "says"),
    [
        (0.1, 0.9, 0.5, "a gain"),
        (0.1, 0.4, 0.5, "a gain, smaller than published"),
        (0.1, 0.4, None, "a gain"),
        (-0.9, -0.1, 0.5, "a loss"),
        (-0.2, 0.4, 0.5, "no gain shown, the published one excluded"),
        (-0.2, 0.6, 0.5, "open: neither is excluded"),
        (-0.2, 0.6, None, "open: nothing is excluded"),
    ],
)
def test_what_an_interval_says(claims, low, high, published, says):
    assert claims.read_off(low, high, claim(claims, published)) == says


@pytest.mark.parametrize(
    ("low", "high", "others", "says"),
    [
        (0.1, 0.5, (0.9, 0.3), ""),  # more than the interval has is a gain, too
        (0.1, 0.5, (0.05, 0.3, -0.2), ", not seen in 2 of 3 other calls"),
        (-1.4, -0.1, (-0.01, 0.1), ", not seen in 2 of 2 other calls"),
        (-1.4, -0.1, (-2.0,), ""),
        (-0.2, 0.6, (3.0, -3.0), ""),  # nothing was claimed
        (0.1, 0.5, (), ""),
    ],
)
def test_a_gain_that_other_calls_do_not_show(claims, low, high, others, says):
    assert claims.unseen(low, high, others) == says


def test_other_calls_are_compared_over_the_seeds_of_both(claims, monkeypatch):
    def run(recipe, seed, f1, corpus="genia"):
        return {"recipe": recipe, "corpus": corpus, "seed": seed, "test": {"f1": f1}, "commit": "abc"}

    files = {
        "one": [run("deep", 1, 80.0), run("deep", 2, 81.0), run("deep", 1, 10.0, "litbank"), run("flat", 1, 1.0)],
        "two": [run("flat", 1, 79.5), run("flat", 3, 90.0)],
    }
    monkeypatch.setattr(claims, "rows", files.__getitem__)
    assert claims.Repeat("genia", "deep", "flat", "one", "two").difference() == 0.5
    assert claims.Repeat("genia", "deep", "flat", "one").difference() == 79.0


def test_a_loss_of_the_small_encoder_stands_beside_the_verdict_of_the_large_one(claims, monkeypatch):
    intervals = {"base": (-0.4, 0.2), "small": (-1.4, -0.1)}

    def row(pair):
        low, high = intervals[pair.file]
        return {"difference": (low + high) / 2, "low": low, "high": high, "p": 0.02, "seeds": [3, 3]}

    monkeypatch.setattr(claims.Pair, "row", row)
    monkeypatch.setattr(claims.Repeat, "difference", lambda _: 0.14)
    base, small = (claims.Pair(name, {}) for name in ("base", "small"))
    again = claims.repeats("genia", "bl-span", "span", "first")
    both = claim(claims)._replace(base=base, small=small, small_again=again)
    loss = "a loss with a small encoder, not seen in 1 of 1 other calls"
    assert claims.verdict(both) == f"no gain shown, the published one excluded; {loss}"
    assert claims.verdict(both._replace(base=None)) == "a loss (small encoder only), not seen in 1 of 1 other calls"
    assert claims.verdict(both._replace(small=None)) == "no gain shown, the published one excluded"
    assert claims.verdict(claim(claims)) == "not run"
