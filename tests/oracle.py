"""The exact law of the first two elimination epochs for two arms: no sampling anywhere.

Centralised algorithm (Alg. 1 of arXiv 2111.01570), K = 2 arms, M agents with the same means, all of
which report. Only the difference X of the two arms' noisy success totals matters: after round r

    X_r = (binomial difference of M S_r pulls per arm) + (sum of 2 M r Laplace(1 / (M epsilon))),

and an arm is eliminated where |X_r| >= c_r = 2 C(r) M S_r. The binomial part is convolved exactly,
the Laplace part has a closed form, and what survives round 1 is integrated by Gauss-Legendre.
Shares no code with the package nor with `reference`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

Law = Callable[[np.ndarray], np.ndarray]


class Cell(NamedTuple):
    """Arguments of `elimination_probabilities`."""

    means: tuple[float, float]
    agents: int
    horizon: int
    epsilon: float | None


# The first nine stop in epoch 2, or in neither, with probabilities in .001 - .999 (which shows the
# history and its noise), the last three in epoch 1 or 2; without noise all three outcomes do. The
# best arm is lost with a probability below 1e-16 in each, and at most about 1e-4 for any two arms:
# the first term of 2 C(r) alone is 2 sqrt(log(16 r^2 T)) > 3.7 standard deviations of the rewards.
CELLS: tuple[Cell, ...] = (
    Cell((0.60, 0.42), 1, 15_000, 0.05),
    Cell((0.34, 0.50), 1, 4_000, 0.5),
    Cell((0.60, 0.45), 1, 4_000, None),
    Cell((0.40, 0.59), 2, 6_000, 0.05),
    Cell((0.75, 0.60), 2, 2_000, 0.5),
    Cell((0.35, 0.50), 2, 2_000, None),
    Cell((0.30, 0.50), 5, 2_000, 0.05),
    Cell((0.565, 0.435), 5, 600, 0.5),
    Cell((0.20, 0.35), 5, 600, None),
    Cell((0.30, 0.66), 1, 15_000, 0.05),
    Cell((0.80, 0.50), 2, 2_000, 0.5),
    Cell((0.70, 0.30), 5, 2_000, 0.05),
)


def elimination_probabilities(
    means: Sequence[float],
    agents: int,
    horizon: int,
    epsilon: float | None,
    epochs: int = 2,
    *,
    nodes: int = 6,
) -> list[tuple[float, float]]:
    """For each epoch r: (P(the run ends its exploration in r), P(r eliminates the best arm)).

    Both are probabilities over all runs, not given that epoch r is reached; an epoch that does not
    fit before the horizon has (0, 0). Absolute error below 1e-9: without noise it is rounding only,
    with noise 4 and 6 `nodes` (quadrature points per panel) agree to 4e-10 on CELLS.
    """
    if len(means) != 2 or means[0] == means[1]:
        raise ValueError("means must be two different numbers")
    if epochs not in (1, 2):
        raise ValueError("epochs must be 1 or 2")
    best, worst = max(means), min(means)
    M = agents
    scale = 0.0 if epsilon is None or math.isinf(epsilon) else 1.0 / (M * epsilon)

    S1, c1 = _schedule(1, 0, M, horizon, scale)
    if 2 * S1 > horizon:
        return [(0.0, 0.0)] * epochs
    density, tail = _laplace_sum(2 * M, scale)
    values, masses = _binomial_difference(M * S1, best, worst)
    # X counts best minus worst: the best arm is lost where X <= -c. The noise is symmetric.
    kept_best = float(masses @ tail(c1 - values))
    lost_best = float(masses @ tail(c1 + values))
    out = [(kept_best + lost_best, lost_best)]
    if epochs == 1:
        return out

    S2, c2 = _schedule(2, S1, M, horizon, scale)
    if 2 * S2 > horizon:
        return [*out, (0.0, 0.0)]
    if scale == 0.0:
        inside = np.abs(values) < c1
        x, weight = values[inside], masses[inside]
    else:
        x, quadrature = _panels(c1, min(1.0, scale), nodes)
        weight = quadrature * _mix(density, x, values, masses)
        x, weight = x[weight > 1e-20], weight[weight > 1e-20]
    lost_mass = abs(weight.sum() + out[0][0] - 1.0)
    if lost_mass > 1e-7:
        raise ArithmeticError(f"the law of epoch 1 sums to 1 only within {lost_mass:.1e}")
    values, masses = _binomial_difference(M * (S2 - S1), best, worst)
    kept_best = float(weight @ _mix(tail, c2 - x, values, masses))
    lost_best = float(weight @ _mix(tail, c2 + x, -values, masses))
    return [*out, (kept_best + lost_best, lost_best)]


def _schedule(r: int, before: int, M: int, T: int, scale: float) -> tuple[int, float]:
    """(S_r, elimination threshold on X_r) for two active arms, K = 2, N = M, target gap 2^-r."""
    log = math.log(16 * r * r * T)  # 8 a r^2 T and 8 K r^2 T are the same number here
    target = 0.5**r
    # 1 / (M^1.5 epsilon) = scale / sqrt(M)
    private = 8 * r * math.sqrt(2 * log) * scale / (math.sqrt(M) * target)
    S = max(math.ceil(max(8 * log / (M * target**2), private)), before + 1)
    radius = math.sqrt(log / (2 * M * S)) + r * math.sqrt(8 * log) * scale / (math.sqrt(M) * S)
    return S, 2 * radius * M * S


def _binomial_difference(n: int, best: float, worst: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities of Binomial(n, best) - Binomial(n, worst), where above 1e-25."""
    k = np.arange(n + 1)
    masses = np.convolve(binom.pmf(k, n, best), binom.pmf(k, n, worst)[::-1])
    values = np.arange(-n, n + 1)
    keep = masses > 1e-25
    return values[keep].astype(float), masses[keep]


def _laplace_sum(n: int, scale: float) -> tuple[Law, Law]:
    """Density and upper tail P(. >= x) of the sum of n independent Laplace(scale).

    The sum is a difference of two Gamma(n): to the right of 0 the mixture of Gamma(m), m = 1..n,
    with weights binom(2n - m - 1, n - m) / 2^(2n - m) (which of two Poisson clocks is first to n,
    and by how much). Scale 0 is no noise: the tail is the step at 0, and there is no density.
    """
    if scale == 0.0:
        return (lambda x: np.full_like(x, np.nan)), (lambda x: (x <= 0).astype(float))
    weight = [math.comb(2 * n - m - 1, n - m) / 2.0 ** (2 * n - m) for m in range(1, n + 1)]
    at = [weight[j] / math.factorial(j) for j in range(n)]
    beyond = [sum(weight[j:]) / math.factorial(j) for j in range(n)]

    def decaying(coefficients: list[float], u: np.ndarray) -> np.ndarray:
        value = np.zeros_like(u)
        for coefficient in reversed(coefficients):
            value = value * u + coefficient
        return value * np.exp(-u)

    def density(x: np.ndarray) -> np.ndarray:
        return decaying(at, np.abs(x) / scale) / scale

    def tail(x: np.ndarray) -> np.ndarray:
        upper = decaying(beyond, np.abs(x) / scale)
        return np.where(x >= 0, upper, 1.0 - upper)

    return density, tail


def _mix(law: Law, x: np.ndarray, values: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The law at x of (an integer with these values and masses) + (the noise)."""
    step = max(1, 1_000_000 // len(values))
    parts = [x[i : i + step, None] - values for i in range(0, len(x), step)]
    return np.concatenate([law(part) @ masses for part in parts])


def _panels(c: float, width: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre points and weights on (-c, c), in panels that break at every integer.

    The density of integer + noise has its kinks at the integers; `width` bounds a panel, so that
    the noise does not change much within one.
    """
    pieces = math.ceil(1.0 / width)
    inner = np.arange(math.ceil(-c) * pieces, math.floor(c) * pieces + 1) / pieces
    edges = np.unique(np.concatenate([[-c], inner, [c]]))
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    point, weight = np.polynomial.legendre.leggauss(nodes)
    return (middle[:, None] + half[:, None] * point).ravel(), (half[:, None] * weight).ravel()
