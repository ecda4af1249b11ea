"""Epsilons of the ledger at leaks of 1 to 100, against those of the laws in 60 digits.

exact_leaks.py says how these are computed. They have 14 digits, so they are compared to 1e-11.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import fmab_jax as fmab
from fmab_jax.parts.mechanisms import MECHANISMS
from fmab_jax.parts.mechanisms import discrete_laplace as laplace_numbers
from fmab_jax.parts.mechanisms import skellam as poisson_numbers
from fmab_jax.parts.mechanisms.lattice_sums import find_epsilon

EXACT = json.loads(Path(__file__).with_name("exact_leaks.json").read_text(encoding="utf-8"))
NAMES = ("laplace", "gaussian", "discrete_laplace", "skellam")
COUNTS, DELTAS = EXACT["counts"], EXACT["deltas"]


def compute(name, scales, counts, deltas=DELTAS):
    """Returns epsilons by scale, count and delta."""
    epsilon = MECHANISMS.parse(name, "mechanism").epsilon
    return np.array([[[epsilon(s, n, d) for d in deltas] for n in counts] for s in scales])


@pytest.mark.parametrize("name", NAMES)
def test_leaks_are_those_of_the_laws(name):
    """Would catch digits that 1 - e^-leak loses, an event that is not the worst, a wrong count."""
    rows = [row for row in EXACT["grid"] if row["name"] == name]
    found = compute(name, [row["scale"] for row in rows], COUNTS)
    wanted = np.array([row["epsilons"] for row in rows])
    assert wanted.shape == (30, 7, 5) and (wanted > 0.0).mean() > 0.9
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("row", EXACT["far"], ids=lambda row: f"{row['scale']:g}-{row['count']}")
def test_other_levels_and_counts_of_discrete_laplace_noise(row):
    """Would catch e^-level that is 0 as a float, a wide law that is cut off, a wrong count."""
    found = compute("discrete_laplace", [row["scale"]], [row["count"]])[0, 0]
    np.testing.assert_allclose(found, row["epsilons"], rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_scales_are_those_of_the_laws(name):
    """Would catch a scale that is solved at another delta, or for another leak."""
    rows = [row for row in EXACT["grid"] if row["name"] == name]
    found = [MECHANISMS.parse(name, "mechanism").scale(row["leak"], 1e-6) for row in rows]
    np.testing.assert_allclose(found, [row["scale"] for row in rows], rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_leaks_rise_with_the_level_and_fall_with_noises_and_delta(name):
    """Would catch a step where another way to compute takes over: at 32 noises, or a leak of 100.

    A further noise, or a larger one, is a function of what was seen and of other chance alone.
    """
    mechanism = MECHANISMS.parse(name, "mechanism")
    leaks = [*range(1, 101), 100.5, 110, 500, 700, 744, 746, 1e3, 1e4]
    scales = [mechanism.scale(float(leak), 1e-6) for leak in leaks]
    found = compute(
        name, scales, [1, 2, 5, 10, 31, 32, 33, 50], [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.3]
    )
    assert np.isfinite(found).all() and (found >= 0.0).all()
    slack = 1e-13 * found
    for axis, steps in ((0, found), (1, -found), (2, -found)):
        assert (np.diff(steps, axis=axis) >= -np.delete(slack, 0, axis)).all()


@pytest.mark.parametrize("count", [1, 2, 32, 33, 10**6])
def test_at_large_levels_one_noise_that_is_not_0_tells_the_reward(count):
    """Would catch the epsilon of one noise taken for that of a sum, above some level.

    Where the chance q n of such a noise is far below delta, the worst event is noise >= 0.
    """
    levels = [60.0, 99.0, 101.0, 700.0, 746.0, 1e4, 1e8]
    found = compute("discrete_laplace", [1.0 / level for level in levels], [count], [1e-6, 0.3])
    for level, epsilons in zip(levels, found[:, 0], strict=True):
        for delta, epsilon in zip([1e-6, 0.3], epsilons, strict=True):
            wanted = level - math.log(count) + math.log1p(-delta)
            assert epsilon == pytest.approx(wanted, rel=1e-14)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3])
def test_wide_laws_and_those_whose_chances_are_listed_agree(delta):
    """Would catch a step in epsilon where noise becomes wide."""
    for level, count in ((0.05, 1), (0.02, 2), (0.1, 32), (0.1, 33), (2.0, 1000), (5.0, 10**5)):
        listed = find_epsilon(laplace_numbers._recur(level, count, 9000), delta)
        wide = laplace_numbers.mix if count <= 32 else laplace_numbers._invert
        assert listed > 0.0
        assert find_epsilon(wide(level, count), delta) == pytest.approx(listed, rel=1e-11)
    for variance in (3.0, 300.0, 1e5):
        listed = find_epsilon(poisson_numbers._recur(variance, 9000), delta)
        wide = find_epsilon(poisson_numbers._invert(variance), delta)
        assert wide == pytest.approx(listed, rel=1e-11) and listed > 0.0


@pytest.mark.parametrize(("leak", "agents"), [(30.0, 2), (34.0, 10), (40.0, 32), (40.0, 33)])
def test_the_ledger_promises_what_sums_keep(leak, agents):
    """Would catch a sum that leaks 1.7e-4 more than was said, and one that leaks 3.5 less.

    By hand: leak - log(agents) + log(1 - delta), if agents e^-leak is far below delta.
    """
    algorithm = fmab.kl_se(leak, mechanism="discrete_laplace")
    row = fmab.privacy_ledger(algorithm, agents)[-1]
    wanted = leak - math.log(agents) + math.log1p(-1e-6)
    assert row.number == agents and row.epsilon_at_delta == pytest.approx(wanted, rel=1e-12)
    solved = fmab.at_leak(
        "kl_se", wanted, agents=agents, view="actions", mechanism=algorithm.mechanism
    )
    assert solved.epsilon == pytest.approx(leak, rel=1e-11)
