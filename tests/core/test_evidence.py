"""Exponents of sums of rewards with Laplace noise, and private divergences, by brute force."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.optimize
import scipy.special

from fmab_jax.algorithms.kl_ucb import largest_mean
from fmab_jax.core import evidence

# (n, noises of the lower and of the higher sum, epsilon, lower mean, higher mean)
CASES = [
    (50.0, 50.0, 50.0, 1.0, 0.2, 0.9),
    (50.0, 50.0, 50.0, 0.1, -3.0, 4.0),
    (3200.0, 350.0, 350.0, 1.0, 0.55, 0.61),
    (200.0, 1.0, 3.0, 0.1, 0.1, 0.4),
    (2e6, 17.0, 900.0, 10.0, 0.97, 0.99),
    (30.0, 4.0, 4.0, 0.5, 0.8, 1.4),
    (1000.0, 0.0, 0.0, np.inf, 0.3, 0.5),
]


def exponent(y: float, q: float, n: float, m: float, epsilon: float) -> float:
    """I-(y; q) as it is defined, with nothing worked out by hand."""

    def less(tilt: float) -> float:
        noise = m * np.log1p(-((tilt / epsilon) ** 2)) if m else 0.0
        return tilt * y + n * np.log1p(q * np.expm1(-tilt)) - noise

    end = min(epsilon, 60.0)
    found = scipy.optimize.minimize_scalar(
        less, bounds=(0.0, end), method="bounded", options={"xatol": 1e-12 * end}
    )
    return max(0.0, -found.fun)


@pytest.mark.parametrize("case", CASES)
def test_evidence_is_the_least_sum_of_both_exponents(case) -> None:
    """Would catch a closed form, a clip of q, a noise counted for the other sum, or too few steps;
    and, as what is returned may not exceed the true one, a bound that is none."""
    n, m, k, epsilon, low, high = case

    def both(q: float) -> float:
        lower = exponent(n * low, q, n, m, epsilon)
        return lower + exponent(n - n * high, 1.0 - q, n, k, epsilon)

    grid = np.linspace(0.0, 1.0, 201)[1:-1]
    start = grid[np.argmin([both(q) for q in grid])]
    found = scipy.optimize.minimize_scalar(
        both, bounds=(start - 0.005, start + 0.005), method="bounded", options={"xatol": 1e-10}
    )
    with jax.enable_x64(True):
        others = map(jnp.float64, (high, n, m, k, epsilon))
        told = float(evidence.evidence(jnp.array([low]), *others)[0])
    assert told <= found.fun * (1 + 1e-7) + 1e-9
    assert told == pytest.approx(found.fun, rel=2e-4)


@pytest.mark.parametrize("chance", [0.5, 1e-3, 1e-12, 1e-100])
def test_evidence_needed_solves_its_equation(chance: float) -> None:
    """Would catch a step too few, or e^-b without its factor."""
    with jax.enable_x64(True):
        b = float(evidence.evidence_needed(jnp.float64(chance)))
    assert np.log1p(b) - b == pytest.approx(np.log(chance), rel=1e-9)


def test_private_divergence_is_the_infimum_and_largest_within_its_inverse() -> None:
    """Would catch the wrong one of two closed forms, or the border between them."""
    means = np.array([0.0, 0.02, 0.3, 0.5, 0.77, 0.99])
    for epsilon in (0.05, 0.7, 3.0, np.inf):
        for x in means:
            for y in (*means, 1.0):
                z = np.linspace(x, max(x, y), 20_001)
                with np.errstate(divide="ignore", invalid="ignore"):
                    kl = scipy.special.rel_entr(z, y) + scipy.special.rel_entr(1 - z, 1 - y)
                    far = np.where(z > x, epsilon * (z - x), 0.0)
                wanted = np.min(far + kl) if x < y else 0.0
                with jax.enable_x64(True):
                    told = float(evidence.private_divergence(*map(jnp.float64, (x, y, epsilon))))
                assert told == pytest.approx(wanted, rel=1e-4, abs=1e-7), (epsilon, x, y)
            for distance in (1e-4, 0.03, 0.5, 4.0):
                with jax.enable_x64(True):
                    mean, within = jnp.float64(x), jnp.float64(distance)
                    near, privacy = largest_mean(mean, within), jnp.float64(epsilon)
                    q = evidence.largest_within(mean, near, within, privacy)
                    told = float(evidence.private_divergence(mean, q, privacy))
                if q < 1.0 - 1e-9:
                    assert told == pytest.approx(distance, rel=1e-4, abs=1e-9), (epsilon, x)
                else:
                    assert told <= distance + 1e-9
