"""What theorems and structure say of a candidate's regret before it runs.

`bound_tail` bounds how far above some limit the regret of a run can be expected, for every instance
that a problem can have: by Theorems 1 to 4 for the paper's elimination, and by Theorem 5 (c) for
KL-SE (docs/theory.md). `find_least_regret` says what a run surely loses: an elimination pulls all
arms in its first epoch. Nothing is simulated.
"""

from __future__ import annotations

import inspect
import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt32

from fmab_jax.algorithms.base import ALGORITHMS, Algorithm
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.algorithms.families.likelihood import LikelihoodElimination
from fmab_jax.algorithms.families.messages import NoisyMessages
from fmab_jax.algorithms.families.paper import PaperElimination
from fmab_jax.analysis import theory
from fmab_jax.analysis.epochs import pair_failure, plan_epochs
from fmab_jax.elimination import EliminationTrial
from fmab_jax.equations import Epoch
from fmab_jax.parameters import UNSET, parameters_of
from fmab_jax.parts.instances import TIE, BoundProblem, Instance
from fmab_jax.parts.mechanisms.base import Mechanism
from fmab_jax.parts.mechanisms.laplace import LAPLACE
from fmab_jax.records.problem import Problem
from fmab_jax.run.configs import Config
from fmab_jax.sampling import keys, normal
from fmab_jax.sampling.evidence import Tilts
from fmab_jax.sampling.scope import own_settings

# Parameters that the theorems cover; all others must be the default.
_NETWORK = {"graph", "components", "network", "partition"}
_COVERED_PAPER = {"epsilon", "epsilon_message", "rounds", "schedule_gap", "participation"}
_COVERED_PAPER |= _NETWORK | {"private_waiting"}
_COVERED_KL = {"epsilon", "growth", "first", "rounds", "failure", "secure", "split"}
_COVERED_KL |= _NETWORK | {"participation", "protocol", "tolerance"}
# A theorem is of use if its limit and excess are at most these parts of the largest regret.
_USEFUL_LIMIT, _USEFUL_EXCESS = 0.5, 0.01
# A sum of regret in float64 may be smaller than the exact one by less than this part.
_ROUNDING = 1e-9
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
# Gaps of seeds that are drawn at once.
_MOST_GAPS = 2**20


class Tail(NamedTuple):
    """A bound on the regret of a run, for every instance of a problem.

    Attributes:
        limit: Regret that a run seldom exceeds.
        excess: Bound on the expectation of max(0, regret - limit), given any instance.
        source: The theorem; "" where the limit is the largest regret that there can be.
        largest: Agents x horizon x the largest gap, which no run exceeds.
    """

    limit: float
    excess: float
    source: str
    largest: float

    def without_theorem(self) -> Tail:
        """Returns the bound that needs no theorem."""
        return Tail(self.largest, 0.0, "", self.largest)


def bound_tail(config: Config) -> Tail:
    """Bounds the regret of a run at the horizon, summed over agents, for every instance.

    Without a theorem, or where it is of no use, the limit is agents x horizon x the largest gap.

    Args:
        config: The candidate on its problem.
    """
    problem, algorithm = config.problem, config.algorithm
    gap = find_largest_gap(problem)
    largest = problem.agents * config.horizon * gap
    tail = None
    if problem.arms > 1 and gap > 0.0 and _has_plain_problem(problem):
        if _is_covered(algorithm, PaperElimination, _COVERED_PAPER):
            tail = _bound_paper(config, gap)
        elif _is_covered(algorithm, LikelihoodElimination, _COVERED_KL):
            tail = _bound_likelihood(config, gap)
    if tail and tail.limit < _USEFUL_LIMIT * largest and tail.excess < _USEFUL_EXCESS * largest:
        return tail
    return Tail(largest, 0.0, "", largest)


def find_largest_gap(problem: Problem) -> float:
    """Returns a bound of the gaps that an instance can have."""
    if problem.means is None:
        return 1.0
    means, law = problem.means.mean(axis=0), problem.rewards
    if problem.world is not None:
        # `World.means` are in [0, 1], or between the first ones.
        means = np.append(means, (0.0, 1.0))
    gap = float(means.max() - means.min()) + 2.0 * normal.LARGEST * problem.means_error
    return min(gap, law.high - law.low)


def _has_plain_problem(problem: Problem) -> bool:
    """Tells whether theorems are about the problem: means that stay, and all agents present."""
    law = problem.rewards
    is_unit = 0.0 <= law.low <= law.high <= 1.0
    return problem.world is None and problem.presence is None and is_unit


def _is_covered(algorithm: Algorithm, family: type[Any], covered: set[str]) -> bool:
    """Tells whether the theorems of a family are about a configured algorithm."""
    owner = type(algorithm)
    # A class of one's own may restate values or exchanges, which no equation shows.
    if not isinstance(algorithm, family) or ALGORITHMS.shipped.get(owner.name) is not owner:
        return False
    equations = ("pulls_per_arm", "radius", "eliminates", "precompute", "worse", "noise_scale")
    for name in (*equations, "resolve_params", "budget"):
        if inspect.getattr_static(owner, name) is not inspect.getattr_static(family, name):
            return False
    epsilons = (getattr(algorithm, name, UNSET) for name in ("epsilon", "epsilon_message"))
    return (
        isinstance(algorithm, NoisyMessages)
        and algorithm.noise == LAPLACE
        and not any(isinstance(epsilon, tuple) for epsilon in epsilons)
        and all(
            name in covered or getattr(algorithm, name) == parameter.default
            for name, parameter in parameters_of(owner).items()
        )
    )


def _get_gaps(problem: Problem) -> Float[np.ndarray, " arm"] | None:
    """Returns the gaps of all instances; None where seeds draw them."""
    if problem.means is None or problem.drawn:
        return None
    means = problem.means.mean(axis=0)
    gaps = means.max() - means
    gaps[gaps < TIE] = 0.0
    return gaps


def _find_supremum(
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


def _bound_paper(config: Config, gap: float) -> Tail | None:
    """Returns the bound of Theorems 1 to 4; None without one."""
    algorithm, problem, exchange = config.algorithm, config.problem, config.exchange
    assert isinstance(algorithm, PaperElimination)
    T, M, K = config.horizon, problem.agents, problem.arms
    epsilon, rounds = algorithm.privacy(exchange)["epsilon"], algorithm.rounds
    source, gaps = "Theorems 1 to 4", _get_gaps(problem)
    differs = not problem.homogeneous
    if gaps is not None:
        schedule_gap = algorithm.schedule_gap if rounds else None
        found = theory.bounds(
            gaps,
            exchange,
            T,
            epsilon,
            rounds=rounds,
            schedule_gap=schedule_gap,
            heterogeneous=differs,
        )
        limit = found.regret_exploration + found.regret_waiting + found.regret_commitment
        return Tail(limit, found.regret_failure, source, M * T * gap)
    # With a budget, the schedule depends on the instance.
    is_trusted = exchange.uniform and not (differs and exchange.reporting < M)
    if rounds is not None or not is_trusted:
        return None
    # Of gaps that are 0, all arms stay in play: S_r is largest.
    blank = np.zeros(K)
    table = plan_epochs(blank, exchange.reporting, T, epsilon, None, None).table
    surely = theory.bounds(blank, exchange, T, epsilon).rounds_surely
    failure = 2 * (K - 1) * pair_failure(K, exchange.reporting, epsilon, T, int(surely))
    # An arm with a gap of at least this is gone after the epoch.
    reach = np.minimum.accumulate(4.0 * table.radius)
    highest = np.minimum(np.append(np.inf, reach), gap)
    pulls = M * np.minimum(np.append(table.most_pulls, T), T)
    waits = exchange.wait * M * float(highest[: int(surely) + 1].sum())
    limit = _find_supremum(highest, pulls, K - 1, float(M * T)) + waits
    return Tail(limit, min(1.0, failure) * M * T * gap, source, M * T * gap)


class _Epochs(NamedTuple):
    """Epochs of KL-SE that the horizon and the budget have room for, r = 1, 2, ...

    Attributes:
        pulls: S_r, of each agent, or of all together where they share the arms out; one more
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


def _bound_likelihood(config: Config, gap: float) -> Tail | None:
    """Returns the bound of Theorem 5 (b) and (c); None without one."""
    problem, exchange, T = config.problem, config.exchange, config.horizon
    trial: Any = config.trial
    M, K, params = problem.agents, problem.arms, trial.params
    is_heard = exchange.reporting == M or (problem.homogeneous and not exchange.alone)
    if not (exchange.uniform and is_heard):
        return None
    table = _plan_likelihood(config)
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
    staying, leading = _bound_staying(table, low)
    fresh = np.diff(table.pulls)
    costs = sharing * high[None, :] * fresh[:, None] * staying
    # [end, cell] what later epochs cost, if arms are taken to leave after epoch 1, 2, ..., or stay.
    beyond = np.cumsum(costs[::-1], axis=0)[::-1]
    beyond = np.concatenate([beyond, np.zeros((1, len(low)))])
    last = np.argmax(beyond <= allowed, axis=0)
    excess = (K - 1) * float(beyond[last, np.arange(len(low))].max())
    pulls = sharing * np.append(table.pulls[-1], table.pulls[last])
    highest = np.append(edges[0], high)
    gaps = _get_gaps(problem)
    if gaps is None:
        limit = _find_supremum(highest, pulls, K - 1, float(M * T))
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
    return Tail(limit, failure * most + excess, "Theorem 5", most)


def _plan_likelihood(config: Config) -> _Epochs | None:
    """Returns the epochs of KL-SE; None if there is none, or there are too many."""
    trial: Any = config.trial
    T = float(config.horizon)
    M, K, params = float(config.problem.agents), config.problem.arms, trial.params
    is_shared = trial.draws.shares_arms
    # Pulls of all agents count where they share the arms out.
    slots = M * T if is_shared else T
    number = 64
    while True:
        with own_settings():
            common = jnp.float64(K), jnp.float64(M), trial.reporting, jnp.float64(T)
            found = _follow_epochs(number, *common, jnp.float64(slots), params)
        pulls, radius, tilts = jax.tree.map(np.asarray, found)
        # At least two arms are in play from the second epoch on.
        has_room = K * pulls[0] + 2.0 * (pulls - pulls[0]) <= slots
        if not has_room[-1]:
            break
        number *= 2
        if number > _MOST_EPOCHS:
            return None
    epochs = int(min(has_room.sum(), params["rounds"]))
    if epochs == 0:
        return None
    # The best arm is pulled as often as any other. After a spent budget there is no epoch.
    after = pulls[epochs - 1] if epochs == params["rounds"] else pulls[epochs]
    ends = np.minimum(np.append(pulls[:epochs], after), slots / 2.0)
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
    number: int,
    arms: Array,
    agents: Array,
    reporting: Array,
    horizon: Array,
    slots: Array,
    params: dict[str, Array],
) -> tuple[Array, Array, Tilts]:
    """Returns pulls, radius and tilts of so many epochs of KL-SE, [epoch, ...]."""
    owner = LikelihoodElimination

    def make_epoch(number: Array, previous: Array, pulls: Array) -> Epoch:
        sizes = arms, arms, agents, reporting, horizon
        return Epoch(number, *sizes, previous, params, pulls, pulls - previous)

    def step(previous: Array, number: Array) -> tuple[Array, tuple[Array, Array, Tilts]]:
        pulls = owner.pulls_per_arm(make_epoch(number, previous, previous))
        pulls = jnp.clip(pulls, previous + 1.0, previous + slots + 1.0)
        epoch = make_epoch(number, previous, pulls)
        radius = owner.radius(epoch)
        return pulls, (pulls, radius, owner.precompute(epoch, radius))

    epochs = jnp.arange(1.0, number + 1.0, dtype=jnp.float64)
    return jax.lax.scan(step, jnp.float64(0.0), epochs)[1]


def _bound_staying(
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


def count_first_pulls(config: Config) -> float:
    """Returns the pulls of each arm, by all agents together, before anything can be eliminated.

    0 for anything but an elimination, and where the first epoch depends on the instance that a
    seed draws.

    Args:
        config: The candidate on its problem.
    """
    trial, problem = config.trial, config.problem
    # Another trial may run differently.
    if type(trial) is not EliminationTrial or problem.world or problem.presence:
        return 0.0
    gaps, owner = _get_gaps(problem), trial.algorithm
    reads_gap = owner.resolve_params is not Elimination.resolve_params
    if gaps is None and reads_gap and not _has_paper_schedule(owner):
        return 0.0
    # The paper's equations give NaN where they need a gap that is not known.
    smallest = np.float64(math.nan) if gaps is None else _find_smallest(gaps)
    try:
        pulls = _count_first_pulls(config, smallest)
        return float(pulls) if np.ndim(pulls) == 0 else 0.0
    except Exception:  # an equation of a plug-in
        return 0.0


def _has_paper_schedule(owner: type[Any]) -> bool:
    """Tells whether the first epoch is the paper's, which reads no more than the smallest gap."""
    names = ("resolve_params", "pulls_per_arm", "budget")
    return all(getattr(owner, n) is getattr(PaperElimination, n) for n in names)


def _find_smallest(gaps: Float[np.ndarray, "... arm"]) -> Any:
    """Returns the smallest gap that is not 0, as instances have it."""
    return np.min(np.where(gaps > 0.0, gaps, 1.0), axis=-1)


def _count_first_pulls(config: Config, smallest_gap: Any) -> Any:
    """Returns as `count_first_pulls`, by the smallest gap: a number, or [seed]."""
    trial: Any = config.trial
    T, M, K = config.horizon, config.problem.agents, config.problem.arms
    gaps = _get_gaps(config.problem)
    if gaps is None:
        means, gaps = np.full((1, K), np.nan), np.full(K, np.nan)
    else:
        means = np.asarray(config.problem.means)
    owner, mechanism = trial.algorithm, trial.draws.mechanism
    sizes = 1.0 if trial.alone else float(M), float(trial.reporting), float(T)
    with own_settings():
        values = (trial.params, sizes, means, gaps, smallest_gap)
        arrays = jax.tree.map(lambda x: jnp.asarray(x, jnp.float64), values)
        if np.ndim(smallest_gap):
            found = _find_paper_pulls(mechanism, *arrays)
        else:
            found = _find_pulls(owner, mechanism, *arrays)
        pulls, budget = (np.asarray(x, np.float64) for x in found)
    is_shared = trial.draws.shares_arms
    each, most = (1, M * T) if is_shared else (M, T)
    # An epoch that the horizon ends is charged to all arms alike.
    counts = np.minimum(np.maximum(np.floor(pulls), 1.0), most // K)
    # A run that has no rounds decides at once.
    return each * np.where((budget > 0.0) & ~np.isnan(pulls), counts, 0.0)


def _find_pulls(
    owner: type[Any],
    mechanism: Mechanism,
    params: dict[str, Array],
    sizes: tuple[Array, Array, Array],
    means: Array,
    gaps: Array,
    smallest_gap: Array,
) -> tuple[Any, Any]:
    """Returns the pulls of the first epoch, and the budget of rounds, by the equations."""
    params = owner.resolve_params(params, Instance(means, gaps, smallest_gap, ()))
    arms, zero = jnp.full((), float(len(gaps))), jnp.zeros(())
    numbers = jnp.ones(()), arms, arms, *sizes, zero
    epoch = Epoch(*numbers, params, mechanism=mechanism)
    return owner.pulls_per_arm(epoch), owner.budget(params)


@partial(jax.jit, static_argnums=0)
def _find_paper_pulls(
    mechanism: Mechanism,
    params: dict[str, Array],
    sizes: tuple[Array, Array, Array],
    means: Array,
    gaps: Array,
    smallest_gap: Array,
) -> tuple[Any, Any]:
    """Returns pulls and budget by the paper's equations, for the smallest gap of each instance."""
    find = partial(_find_pulls, PaperElimination, mechanism, params, sizes, means, gaps)
    return jax.vmap(find)(smallest_gap)


def find_least_regret(
    config: Config, gaps: Float[np.ndarray, "seed arm"]
) -> Float[np.ndarray, " seed"]:
    """Returns what is surely lost by the horizon on each seed; 0 where nothing is known.

    No run of an elimination loses less.

    Args:
        config: The candidate on its problem.
        gaps: Of the seeds' instances, as `draw_gaps` returns them.
    """
    problem, trial = config.problem, config.trial
    total, certain = gaps.sum(axis=1), 1.0 - _ROUNDING
    if problem.world or problem.presence:
        return np.zeros(len(gaps))
    # With a budget, the paper's first epoch is made for the gap of the instance.
    is_oracle = type(trial) is EliminationTrial and _has_paper_schedule(trial.algorithm)
    if problem.drawn and is_oracle and getattr(config.algorithm, "rounds", None) is not None:
        return certain * _count_first_pulls(config, _find_smallest(gaps)) * total
    return certain * count_first_pulls(config) * total


def draw_gaps(
    problem: Config | Problem, root_seed: int, seeds: int
) -> Float[np.ndarray, "seed arm"]:
    """Returns the gaps of the instances of the first seeds, as simulations draw them.

    Args:
        problem: The problem, without a world, or a configuration with it.
        root_seed: As in `simulate`.
        seeds: Number of seeds.
    """
    bound = problem.bound if isinstance(problem, Config) else problem.bind()
    arms = bound.arms
    chunk = max(1, min(1 << max(0, seeds - 1).bit_length(), _MOST_GAPS // (arms * bound.rows)))
    parts = []
    with own_settings():
        for first in range(0, seeds, chunk):
            numbers = np.arange(first, first + chunk, dtype=np.uint32)
            parts.append(np.asarray(_draw_gaps(bound, np.uint32(root_seed), numbers)))
    return np.concatenate([np.zeros((0, arms)), *parts])[:seeds]


@jax.jit
def _draw_gaps(
    bound: BoundProblem, root_seed: UInt32[Array, ""], seeds: UInt32[Array, " seed"]
) -> Float[Array, "seed arm"]:
    """Returns the gaps of some seeds."""
    draw = jax.vmap(lambda seed: bound.draw(keys.seed_key(root_seed, seed)).gaps)
    return draw(seeds)
