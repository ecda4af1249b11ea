"""Ranks of several contestants: what paired differences leave open, over all pairs together."""

import math

import numpy as np
import pytest
from refusals import refused
from scipy import stats

from experiments.several import Entrant, Ranks, interval_text


def entrants(**changes):
    """Three that differ by 2 and by 100 in every seed; the last has a seed more."""
    base = np.array([10.0, 30.0, 20.0, 40.0])
    first = Entrant("B", "nobody", "1", base + 2)
    rest = {"A": base, "C, late": np.append(base + 100, -1e9)}
    others = [Entrant(name, "nobody", "1", regret) for name, regret in rest.items()]
    return [first._replace(**changes), *others]


def in_step(**shifts):
    """Contestants that differ from the first by a shift and a little noise, in so many seeds."""
    base = np.linspace(100, 200, 40)
    noise = np.tile([-1.0, 1.0], 20)
    return [
        Entrant(name, "nobody", "1", (base + shift + wide * noise * (-1) ** place)[:seeds])
        for place, (name, (shift, wide, seeds)) in enumerate(shifts.items())
    ]


def test_ranks_that_are_left_open_are_told():
    """Would catch a rank by the mean alone, ends that are swapped or off by one, means of unequal
    seeds, common seeds of all in place of each two, and a pair counted for one side only."""
    given = in_step(D=(3, 0, 40), B=(0.1, 1, 40), A=(0, 1, 40), C=(30, 1, 4))
    # C's 4 seeds are those of the smallest regret: its own mean is below that of the others.
    assert given[3].regret.mean() < min(each.regret.mean() - 1 for each in given[:2])
    found = Ranks(given, 0.95).places
    # B and A: 0.1 with a standard error of 0.3; D is above both by 10 errors and more.
    assert list(found) == ["A", "B", "D", "C"]
    assert [each[:2] for each in found.values()] == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert [each.seeds for each in found.values()] == [40, 40, 40, 4]
    assert [each.text for each in found.values()] == ["1–2", "1–2", "3", "4"]
    # Of four seeds all pairs would be open: each two have their own.
    few = Ranks([each._replace(regret=each.regret[:2]) for each in given[:3]])
    assert {each[:2] for each in few.places.values()} == {(1, 3)}
    assert Ranks(given[:1]).places == {"D": (1, 1, 40)}
    twice = [given[0], given[0]._replace(label="Dd")]
    assert Ranks(twice).places["Dd"] == (1, 2, 40)


def test_intervals_of_differences_hold_together():
    """Would catch intervals, of differences or of ranks, that hold one by one, against the first
    one only, or only with one that is chosen beforehand."""
    apart = np.array([-1.0, 0.0, 1.0, 2.0, 3.0])  # 1 on average, deviation 1.58
    base = np.array([10.0, 30.0, 20.0, 50.0, 40.0])
    # Student t with 4 degrees of freedom for 1, 3 and 6 pairs at 95 %.
    for number, t in {2: 2.776445, 3: 3.960786, 4: 4.851008}.items():
        edge = t * math.sqrt(2.5 / 5)
        for shift in (0.999, 1.001):
            given = [Entrant("A", "x", "1", base)]
            given += [Entrant("B", "x", "1", base + apart - 1 + shift * edge)]
            far = zip("CD"[: number - 2], (1e3, 2e3), strict=False)
            given += [Entrant(name, "x", "1", base + away) for name, away in far]
            ranks = Ranks(given)
            assert ranks.level == pytest.approx(1 - 0.1 / (number * (number - 1)))
            places = ranks.places
            assert places["A"].last == places["B"].last - 1 + (shift < 1) == 1 + (shift < 1)
            assert places["B"].first == 1 + (shift > 1)


def test_differences_have_their_intervals_in_numbers_and_in_per_cent():
    """Would catch sizes of another base, an interval that is not simultaneous, seeds of another."""
    rng = np.random.default_rng(1)
    base = rng.gamma(4, 10, 30)
    far = 1.5 * base + rng.normal(0, 2, 30)
    given = [
        Entrant("B", "x", "1", np.append(far, 9.0)),
        Entrant("A", "x", "1", base),
        Entrant("C", "x", "1", base + rng.normal(0.4, 2, 30)),
    ]
    ranks, level = Ranks(given, 0.9), 1 - 0.1 / 3
    known = stats.ttest_rel(far, base).confidence_interval(level)
    assert ranks.more("B", "A") == pytest.approx(((far - base).mean(), *known), rel=1e-9)
    percent, *ends = ranks.percent("B", "A")
    assert percent == pytest.approx(100 * (far.mean() / base.mean() - 1), rel=1e-12)
    for end in ends:
        gone = stats.ttest_rel(far, (1 + end / 100) * base)
        assert gone.pvalue == pytest.approx(1 - level, rel=1e-6)
    assert ends[0] < percent < ends[1]


@pytest.mark.parametrize("field", ["trust", "leak", "view", "accountant"])
def test_ranks_of_unlike_trust_are_refused(field):
    """Would catch views or accountants that are ranked together."""
    given = entrants(**{field: 0.5 if field == "accountant" else "2"})[:2]
    assert "must be alike in whom they trust" in refused(Ranks, given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "entrants=[]: must be at least one; "),
        ([Entrant("A", "x", "1", np.array([1, np.nan]))], "entrants=['A']: must be of finite"),
        ([Entrant("A", "x", "1", np.ones(1))], "entrants='1 common seeds': must be at least 2"),
        ([Entrant("A", "x", "1", np.arange(3.0))] * 2, "entrants=['A']: must be of labels of"),
        (
            [Entrant(f"{T}", "x", "1", np.arange(3.0), question=(T, 0)) for T in (10, 20)],
            "entrants=['(10, 0)', '(20, 0)']: must be asked the same question; ",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(given, told):
    """Would catch a winner of nothing, an interval of one number, and two horizons compared."""
    assert refused(Ranks, given).startswith(told)


def test_an_interval_is_told_to_the_digits_that_it_has():
    """Would catch an end that is not 0 and reads as 0, and digits that nobody knows."""
    told = {
        (25.0, 4.4, 45.6): "25 [4, 46]",
        (2.0, 2.0, 2.0): "2 [2, 2]",
        (0.02, 0.004, 0.036): "0.020 [0.004, 0.036]",
        (3.0, -math.inf, math.inf): "3 [-∞, ∞]",
    }
    assert {numbers: interval_text(numbers) for numbers in told} == told
