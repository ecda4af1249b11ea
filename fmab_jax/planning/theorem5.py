"""Bounds of KL-SE's regret, for every instance of a problem: Theorem 5 (docs/theory.md)."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.equations import Epoch
from fmab_jax.parts.instances import TIE
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import Config
from fmab_jax.sampling.evidence import Tilts
from fmab_jax.sampling.scope import package_settings

# KL-SE with more epochs than this has no bound here.
_MOST_EPOCHS = 1024
# Ratio of neighbouring gaps of the grid.
_GAP_RATIO = 1.05
# Cells of the best mean, equidistant on the variance-stabilising scale.
_CELLS = np.sin(np.linspace(0.0, np.pi / 2.0, 17)) ** 2
# Chernoff's s, in the theorem; any values are valid.
_POWERS = np.geomspace(0.2, 3.2, 9)
# Pairs of tilts are made for so many means. The one for a mean between both is tried: all of them
# together lower no limit that was looked at.
_PLACES = 16
# Tilts of p', as parts of the one that is best for the largest variance.
_TILT_PARTS = np.geomspace(0.5, 8.0, 9)
# Tilts stay this far from the end of the moment-generating function.
_INSIDE = 0.99


def get_gaps(problem: Problem) -> Float[np.ndarray, " arm"] | None:
    """Returns the gaps of all instances; None where seeds draw them."""
    if problem.means is None or problem.drawn:
        return None
    means = problem.means.mean(axis=0)
    gaps = means.max() - means
    gaps[gaps < TIE] = 0.0
    return gaps


def find_supremum(
    gaps: Float[np.ndarray, " cell"],
    pulls: Float[np.ndarray, " cell"],
    worse_arms: int,
    all_pulls: float,
) -> float:
    """Bounds the regret of arms whose pulls have bounds by gap, and by their sum.

    Any price of a pull is valid: the sum is at most the price of all pulls, and what the pulls of
    each arm cost above the price.

    Args:
        gaps: Upper ends of cells of gaps; the cells cover all gaps.
        pulls: Most pulls of an arm with a gap in the cell.
        worse_arms: K - 1.
        all_pulls: Most pulls of all arms together.
    """
    prices = np.append(0.0, np.geomspace(gaps.max() * 1e-6, gaps.max(), 600))
    above = np.maximum(gaps[None, :] - prices[:, None], 0.0) * pulls
    return float((prices * all_pulls + worse_arms * above.max(axis=1)).min())


class _Epochs(NamedTuple):
    """Epochs of KL-SE that the horizon and the budget have room for, r = 1, 2, ...

    Attributes:
        pulls: S_r, of each agent, or of all together where they split the arms; one more
            than there are epochs: what an arm that stays has in the end.
        rewards: n_r.
        noises: The largest m_r.
        radius: b_r, the evidence that is needed.
        tilts: Pairs, [epoch, pair].
        epsilon: Of one noise.
        most_noises: Largest number of noises of an epoch that pairs are made for; 1 if it is known.
    """

    pulls: Float[np.ndarray, " end"]
    rewards: Float[np.ndarray, " epoch"]
    noises: Float[np.ndarray, " epoch"]
    radius: Float[np.ndarray, " epoch"]
    tilts: Tilts
    epsilon: float
    most_noises: float


def bound_likelihood(config: Config, gap: float) -> tuple[float, float] | None:
    """Returns limit and excess of Theorem 5 (b) and (c), see `Tail`; None without one."""
    problem, exchange, T = config.problem, config.exchange, config.horizon
    trial: Any = config.trial
    M, K, params = problem.agents, problem.arms, trial.params
    is_heard = exchange.reporting == M or (problem.homogeneous and not exchange.alone)
    if not (exchange.uniform and is_heard):
        return None
    table = plan_likelihood(config)
    if table is None:
        return None
    is_shared = trial.draws.shares_arms
    sharing = 1 if is_shared else M
    epochs, most = len(table.rewards), M * T * gap
    # Theorem 5 (b).
    failure = float(params["failure"]) * (K - 1) / K * epochs / (epochs + 1)
    # What is beyond the limit may cost a tenth of what a lost arm does, or one reward.
    allowed = max(1.0, 0.1 * failure * most) / (K - 1)
    lowest = 1.0 / math.sqrt(M * T)
    number = max(2, math.ceil(math.log(max(gap / lowest, 2.0)) / math.log(_GAP_RATIO)) + 1)
    edges = np.geomspace(min(lowest, gap / 2.0), gap, number)
    low, high = edges[:-1], edges[1:]
    staying, leading = bound_staying(table, low)
    fresh = np.diff(table.pulls)
    costs = sharing * high[None, :] * fresh[:, None] * staying
    # [end, cell] what later epochs cost, if arms are taken to leave after epoch 1, 2, ..., or stay.
    beyond = np.cumsum(costs[::-1], axis=0)[::-1]
    beyond = np.concatenate([beyond, np.zeros((1, len(low)))])
    last = np.argmax(beyond <= allowed, axis=0)
    excess = (K - 1) * float(beyond[last, np.arange(len(low))].max())
    pulls = sharing * np.append(table.pulls[-1], table.pulls[last])
    highest = np.append(edges[0], high)
    gaps = get_gaps(problem)
    if gaps is None:
        limit = find_supremum(highest, pulls, K - 1, float(M * T))
    else:
        place = np.minimum(np.searchsorted(edges, gaps, side="right"), len(pulls) - 1)
        limit = float(gaps @ pulls[place])
    if epochs == params["rounds"]:
        # The budget is spent: an arm that leads is played for the rest.
        played = high * leading[-1] * M * T
        unsure = np.flatnonzero(played > allowed)
        first = unsure[-1] + 1 if len(unsure) else 0
        limit += M * T * float(edges[first])
        excess += (K - 1) * float(played[first:].max(initial=0.0))
    leftovers = (M - 1) * is_shared * gap
    limit += (epochs + 1) * (leftovers + exchange.wait * M * gap)
    return limit, failure * most + excess


def plan_likelihood(config: Config) -> _Epochs | None:
    """Returns the epochs of KL-SE; None if there is none, or there are too many."""
    trial: Any = config.trial
    T = float(config.horizon)
    M, K, params = float(config.problem.agents), config.problem.arms, trial.params
    is_shared = trial.draws.shares_arms
    # Pulls of all agents count where they split the arms.
    pull_budget = M * T if is_shared else T
    epoch_count = 64
    while True:
        with package_settings():
            common = jnp.float64(K), jnp.float64(M), trial.reporting, jnp.float64(T)
            series = _follow_epochs(epoch_count, *common, jnp.float64(pull_budget), params)
        pulls, radius, tilts = jax.tree.map(np.asarray, series)
        # At least two arms are in play from the second epoch on.
        has_room = K * pulls[0] + 2.0 * (pulls - pulls[0]) <= pull_budget
        if not has_room[-1]:
            break
        epoch_count *= 2
        if epoch_count > _MOST_EPOCHS:
            return None
    epochs = int(min(has_room.sum(), params["rounds"]))
    if epochs == 0:
        return None
    # The best arm is pulled as often as any other. After a spent budget there is no epoch.
    after = pulls[epochs - 1] if epochs == params["rounds"] else pulls[epochs]
    ends = np.minimum(np.append(pulls[:epochs], after), pull_budget / 2.0)
    pulls, r = pulls[:epochs], np.arange(1.0, epochs + 1)
    noises = r * params["noises"]
    if "most_noises" in params:
        fresh, active = np.diff(pulls, prepend=0.0), np.where(r == 1.0, K, 2.0)
        parts = 1.0 + np.ceil((fresh - 1.0) / np.ceil(active * fresh / M))
        noises = np.cumsum(np.minimum(M, parts))
    tilts = jax.tree.map(lambda x: x[:epochs], tilts)
    epsilon, most = float(params["epsilon"]), float(params.get("most_noises", 1.0))
    rewards = params["senders"] * pulls
    return _Epochs(ends, rewards, noises, radius[:epochs], tilts, epsilon, most)


@partial(jax.jit, static_argnums=0)
def _follow_epochs(
    epoch_count: int,
    arms: Array,
    agents: Array,
    reporting: Array,
    horizon: Array,
    pull_budget: Array,
    params: dict[str, Array],
) -> tuple[Array, Array, Tilts]:
    """Returns pulls S_r, radius and tilts of the first epochs of KL-SE with all arms in play.

    Args:
        epoch_count: Number of epochs; static.
        arms: K.
        agents: M.
        reporting: N.
        horizon: T.
        pull_budget: Most pulls that count for one arm: T, or M T where agents split the arms.
        params: The algorithm's values, by name.

    Returns:
        Each [epoch, ...].
    """
    algorithm = LikelihoodElimination

    def make_epoch(round_index: Array, previous: Array, pulls: Array) -> Epoch:
        return Epoch(
            number=round_index,
            active=arms,
            arms=arms,
            agents=agents,
            reporting=reporting,
            horizon=horizon,
            previous=previous,
            params=params,
            pulls=pulls,
            fresh=pulls - previous,
        )

    def step(previous: Array, round_index: Array) -> tuple[Array, tuple[Array, Array, Tilts]]:
        pulls = algorithm.pulls_per_arm(make_epoch(round_index, previous, previous))
        # A longer epoch does not fit anyway, and powers of many epochs would overflow.
        pulls = jnp.clip(pulls, previous + 1.0, previous + pull_budget + 1.0)
        epoch = make_epoch(round_index, previous, pulls)
        radius = algorithm.radius(epoch)
        return pulls, (pulls, radius, algorithm.precompute(epoch, radius))

    rounds = jnp.arange(1.0, epoch_count + 1.0, dtype=jnp.float64)
    return jax.lax.scan(step, jnp.float64(0.0), rounds)[1]


def bound_staying(
    table: _Epochs, gaps: Float[np.ndarray, " gap"]
) -> tuple[Float[np.ndarray, "epoch gap"], Float[np.ndarray, "epoch gap"]]:
    """Returns P and p' of Theorem 5 (c), the largest for all means with these gaps."""
    best = gaps[:, None] + (1.0 - gaps[:, None]) * _CELLS
    staying = np.empty((len(table.rewards), len(gaps)))
    leading = np.empty_like(staying)
    for r in range(len(table.rewards)):
        logs = _bound_evidence(table, r, gaps, best), _bound_lead(table, r, gaps, best)
        evidence, leading[r] = np.exp(np.minimum(logs, 0.0))
        staying[r] = np.minimum(evidence + leading[r], 1.0)
    return staying, leading


def _bound_evidence(
    table: _Epochs,
    place: int,
    gaps: Float[np.ndarray, " gap"],
    best: Float[np.ndarray, "gap edge"],
) -> Float[np.ndarray, " gap"]:
    """Returns log p of an epoch: the largest over cells of the smallest over pairs and s."""
    n, m, epsilon = table.rewards[place], table.noises[place], table.epsilon
    low, high, offset = (np.asarray(x)[place][:, None] for x in table.tilts[:3])
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = table.radius[place] + offset + n * high
        needed = needed + _nu(low, m, epsilon) + _nu(high, m, epsilon)
        up, down = _POWERS * low, _POWERS * high
        start = _POWERS * needed + _nu(up, m, epsilon) + _nu(down, m, epsilon)
    # [pair, s]; beyond the end of the moment-generating function there is no bound.
    start = np.where(np.maximum(up, down) < _INSIDE * epsilon, start, np.inf)
    # The pair that is made for a mean between both.
    middle = 0.5 * (best[:, 1:] + best[:, :-1])
    angle = np.arcsin(np.sqrt(middle)) + np.arcsin(np.sqrt(middle - gaps[:, None]))
    nearest = np.minimum((angle / np.pi * _PLACES).astype(int), _PLACES - 1)[..., None]
    sets = len(low) // _PLACES
    if sets > 1:
        # Pairs are made for several numbers of noises, of which two are next to the largest.
        share = math.log(m / (place + 1.0)) / max(math.log(table.most_noises), 1e-9)
        first = min(int(share * (sets - 1)), sets - 2)
        nearest = np.concatenate([nearest + _PLACES * (first + i) for i in range(2)], axis=-1)
    worse = best - gaps[:, None]
    rise, fall = np.expm1(up)[nearest], np.expm1(-down)[nearest]
    bound = _bound_cells(n, worse, best, rise, fall) + start[nearest]
    return bound.min(axis=(2, 3)).max(axis=1)


def _bound_lead(
    table: _Epochs,
    place: int,
    gaps: Float[np.ndarray, " gap"],
    best: Float[np.ndarray, "gap edge"],
) -> Float[np.ndarray, " gap"]:
    """Returns log p' of an epoch: the largest over cells of the smallest over tilts."""
    n, m, epsilon = table.rewards[place], table.noises[place], table.epsilon
    tilts = _TILT_PARTS * (n * gaps / (0.5 * n + 4.0 * m / epsilon**2))[:, None]
    tilts = np.minimum(tilts, min(_INSIDE * epsilon, 30.0))[:, None, None, :]
    bound = _bound_cells(n, best - gaps[:, None], best, np.expm1(tilts), np.expm1(-tilts))
    return (bound + 2.0 * _nu(tilts, m, epsilon)).min(axis=(2, 3)).max(axis=1)


def _nu(tilt: np.ndarray, noises: float, epsilon: float) -> np.ndarray:
    """Returns the logarithm of the moment-generating function of so many Laplace variables."""
    return -noises * np.log1p(-((tilt / epsilon) ** 2))


def _bound_cells(
    rewards: float,
    worse: Float[np.ndarray, "gap edge"],
    best: Float[np.ndarray, "gap edge"],
    rise: Float[np.ndarray, "gap cell pair power"],
    fall: Float[np.ndarray, "gap cell pair power"],
) -> Float[np.ndarray, "gap cell pair power"]:
    """Bounds n log(1 + worse rise) + n log(1 + best fall) in each cell, where it is concave.

    It is below both tangents at the ends of the cell.
    """
    # Where the best mean is 1, the logarithm must be finite.
    fall = np.maximum(fall, -1.0 + 1e-12)

    def at(side: slice) -> tuple[np.ndarray, np.ndarray]:
        a, b = (x[:, side, None, None] for x in (worse, best))
        value = np.log1p(a * rise) + np.log1p(b * fall)
        return value, rise / (1.0 + a * rise) + fall / (1.0 + b * fall)

    (left, left_slope), (right, right_slope) = at(slice(None, -1)), at(slice(1, None))
    width = np.diff(best)[:, :, None, None]
    # Tangents meet at this share of the width.
    bend = (left_slope - right_slope) * width
    meet = (right - left - right_slope * width) / np.where(bend > 0.0, bend, 1.0)
    bound = left + left_slope * width * np.clip(meet, 0.0, 1.0)
    bound = np.where(left_slope <= 0.0, left, bound)
    bound = np.where(right_slope >= 0.0, right, bound)
    return rewards * np.maximum(bound, np.maximum(left, right))
