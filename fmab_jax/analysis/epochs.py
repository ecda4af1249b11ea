"""Lower bounds on every algorithm's regret; epochs of the paper's elimination on its good event.

The good event of docs/theory.md: in no completed epoch do the aggregates of a best arm b and of
another arm k differ by 2 C(r) more, or less, than their means do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from numpy.typing import ArrayLike

from fmab_jax.algorithms.families import schedule
from fmab_jax.errors import count, flag, privacy, real, refuse
from fmab_jax.parts.instances import TIE
from fmab_jax.sampling.evidence import private_divergence

# More than any horizon has room for: epoch 64 of the doubling schedule takes over 10^30 pulls.
_EPOCHS = 64


class Epochs(NamedTuple):
    """Schedule of epochs r = 1, 2, ... on the good event, for every set of active arms.

    Attributes:
        target: Dt_r.
        arms: Largest possible number of active arms at the epoch's start.
        fewest_pulls: Smallest possible S_r. Cut past the horizon, as in `schedule`.
        most_pulls: Largest possible S_r. Likewise.
        radius: Largest possible C(r).
    """

    target: Float[np.ndarray, " epoch"]
    arms: Int[np.ndarray, " epoch"]
    fewest_pulls: Float[np.ndarray, " epoch"]
    most_pulls: Float[np.ndarray, " epoch"]
    radius: Float[np.ndarray, " epoch"]


@dataclass(frozen=True)
class Schedule:
    """Checked arguments, and their epochs."""

    gaps: Float[np.ndarray, " arm"]
    horizon: int
    epsilon: float
    rounds: float
    schedule_gap: float
    ratio: float
    table: Epochs


def epochs(
    gaps: ArrayLike,
    reporting: int,
    horizon: int,
    epsilon: float | None,
    *,
    rounds: int | None = None,
    schedule_gap: float | None = None,
) -> Epochs:
    """Returns S(r), C(r) and the active arms of every epoch, at their worst on the good event.

    Which arms are active is random, and S(r) and C(r) depend on how many. Two arms in play from
    the second epoch on give the fewest pulls, all that can still be there the most. The radius is

        C(r) <= min(Dt_r / 4, sqrt(log(8 K r^2 T) / (2 N S))) + r sqrt(8 log(8 K r^2 T))
                / (N^1.5 epsilon S),    S = fewest pulls,

    at most Dt_r / 2, and at most Dt_r / 4 without noise, wherever the epoch fits into the horizon.

    Args:
        gaps: [arm].
        reporting: N.
        horizon: T, in slots.
        epsilon: Privacy parameter, or None.
        rounds: Round budget R, or None; so many epochs are returned, or 64.
        schedule_gap: Gap that a budgeted schedule is built for; None for the smallest of ``gaps``.

    Raises:
        ValueError: If an argument is out of range.

    Source:
        Algorithm 1, lines 3-5; section IV-B; proof of Theorem 1, step 2.2.

    Example:
        >>> from fmab_jax.analysis import theory
        >>> found = theory.epochs([0.0, 0.2, 0.4], reporting=5, horizon=10**6, epsilon=1.0)
        >>> bool((found.radius[:3] <= found.target[:3] / 2).all())  # 2 C(r) <= the target gap
        True
    """
    reporting = count("reporting", reporting, 1, 10**7, "give the number of reporting agents N")
    return plan_epochs(gaps, reporting, horizon, epsilon, rounds, schedule_gap).table


def pair_failure(
    arms: int, reporting: int, epsilon: float | None, horizon: int, epochs: int
) -> float:
    """Bounds the probability that one arm ever overtakes another by 2 C(r) beyond their means.

    "Ever" is any of the first ``epochs`` completed epochs. For arms j and b, y_j - y_b deviates in
    one given direction by at least 2 C(r) only if the rewards' part of it deviates by 2 c(r) or the
    noise's by 2 h(r), where c + h = C.

    * Rewards: with a active arms and S pulls, Hoeffding's inequality for the *difference* of two
      averages of N S rewards gives (8 a r^2 T)^-2. Which a and S occur depends on the rewards, so
      all of them are added up: 2 <= a <= K and a S <= T. In epoch 1 only a = K occurs.
    * Noise: 2 N r Laplace variables of one scale. Chernoff's bound is minimised exactly, in place
      of the tail the paper cites, which needs N > log(8 a r^2 T).

    A best arm is lost with at most K - 1 times this probability.

    Args:
        arms: K.
        reporting: N.
        epsilon: Privacy parameter, or None.
        horizon: T, in slots.
        epochs: Number of epochs that may complete.

    Raises:
        ValueError: If an argument is out of range.

    Source:
        Replaces step 1 of the proof of Theorem 1.

    Example:
        >>> from fmab_jax.analysis import theory
        >>> failure = theory.pair_failure(100, 50, epsilon=1.0, horizon=10**6, epochs=20)
        >>> failure < 2.7e-10  # 2.7e-4 / T
        True
    """
    arms = count("arms", arms, 1, 10**6, "give the number of arms K")
    reporting = count("reporting", reporting, 1, 10**7, "give the number of reporting agents N")
    horizon = count("horizon", horizon, 1, 10**12, "give the number of slots T")
    epochs = count("epochs", epochs, 0, 10**12, "give the number of epochs")
    noise_free = math.isinf(privacy("epsilon", epsilon))
    if arms == 1 or epochs == 0:
        return 0.0
    K, N, T = arms, reporting, float(horizon)
    # Later terms fall like r^-4 and faster; the rest of the series is below 1 / (3 r^3).
    r = np.arange(1.0, min(epochs, 1000) + 1)
    a = np.arange(2.0, K + 1)
    later_epochs = float((r[1:] ** -4).sum()) + (len(r) < epochs) / (3 * len(r) ** 3)
    rewards = (8 * K * T) ** -2 + later_epochs * float((a**-3).sum()) / (64 * T)
    if noise_free:
        return min(1.0, rewards)
    # The sum is r times that of one epoch's noise, and so is the threshold: a power of one tail.
    threshold = 2 * np.sqrt(8 * N * np.log(8 * K * r**2 * T))
    tilt = threshold / (2 * N + np.hypot(2 * N, threshold))
    tail = np.exp(-r * (tilt * threshold + 2 * N * np.log1p(-(tilt**2))))
    # From epoch 2 on a term is at most the first one's square, cube, ...: a geometric rest.
    remainder = (len(r) < epochs) * float(tail[0]) ** len(r) / max(1 - float(tail[0]), 1e-300)
    return min(1.0, rewards + float(tail.sum()) + remainder)


def checked_gaps(gaps: ArrayLike) -> Float[np.ndarray, " arm"]:
    """Returns gaps in [0, 1], those of best arms 0; refuses gaps without a best arm."""
    remedy = "subtract every global mean from the largest"
    array = check_arm_values("gap", gaps, remedy)
    if array.min() >= TIE:
        refuse("gaps", gaps, "in [0, 1], the best arm's 0", remedy)
    return np.where(array < TIE, 0.0, array)


def plan_epochs(
    gaps: ArrayLike,
    reporting: int,
    horizon: int,
    epsilon: float | None,
    rounds: int | None,
    schedule_gap: float | None,
) -> Schedule:
    """Returns the schedule of checked arguments; these are as in `epochs`."""
    array = checked_gaps(gaps)
    horizon = count("horizon", horizon, 1, 10**12, "give the number of slots T")
    epsilon = privacy("epsilon", epsilon)
    if rounds is not None:
        rounds = count("rounds", rounds, 1, 10**5, "give a round budget, or None for none")
    if schedule_gap is None:
        schedule_gap = float(np.min(array, where=array > 0, initial=1.0))
    else:
        remedy = "give the smallest gap to resolve, or None for the instance's own"
        schedule_gap = real("schedule_gap", schedule_gap, 0, 1, remedy, open_low=True)
    budget = math.inf if rounds is None else float(rounds)
    K, T, ordered = len(array), float(horizon), np.sort(array)
    # An epoch takes at least one slot, so there are at most T epochs.
    number = int(min(budget, T + 1)) if math.isfinite(budget) else _EPOCHS
    # Lengths are powers of two, so that few programs are compiled.
    r = np.arange(1.0, max(_EPOCHS, 2 ** math.ceil(math.log2(number))) + 1)
    fewest_arms, most_arms = np.where(r == 1, float(K), min(K, 2)), np.full_like(r, K)
    with jax.enable_x64(True):
        common = schedule.Setting(*map(jnp.float64, (K, reporting, epsilon, T)))
        noise_free = common._replace(epsilon=jnp.float64(math.inf))
        ratio = schedule.shrink_ratio(jnp.float64(schedule_gap), jnp.float64(budget))
        target = np.asarray(jax.vmap(schedule.target_gap, (None, 0))(ratio, jnp.asarray(r)))
        inputs = schedule.pulls_per_arm, common
        fewest = _grow_pulls(_map_epochs(*inputs, fewest_arms, r, target), r, T)
        radius_of = schedule.confidence_radius
        rewards = np.asarray(_map_epochs(radius_of, noise_free, most_arms, r, fewest))
        noise = np.asarray(_map_epochs(radius_of, common, most_arms, r, fewest)) - rewards
        # The rewards' part is at most Dt/4 however many arms are active.
        radius = np.minimum(target / 4, rewards) + noise
        # An arm with a gap of 4 C(r) or more is gone after epoch r.
        surviving = np.searchsorted(ordered, np.minimum.accumulate(4 * radius))
        arms = np.concatenate([[K], surviving[:-1]])
        active = np.maximum(arms, fewest_arms)
        most = _grow_pulls(_map_epochs(*inputs, active, r, target), r, T)
    table = Epochs(*(row[:number] for row in (target, arms, fewest, most, radius)))
    return Schedule(array, horizon, epsilon, budget, schedule_gap, float(ratio), table)


@partial(jax.jit, static_argnums=0)
def _map_epochs(equation: Callable[..., Array], common: schedule.Setting, *rows: Array) -> Array:
    """Returns an equation of `schedule` in every epoch."""
    return jax.vmap(partial(equation, setting=common))(*rows)


def _grow_pulls(
    pulls: Array, epoch: Float[np.ndarray, " epoch"], horizon: float
) -> Float[np.ndarray, " epoch"]:
    """Returns S_r = max(ceil(S(r)), S_{r-1} + 1); an S(r) beyond T counts as T + 1."""
    return np.maximum.accumulate(np.clip(np.asarray(pulls), 1.0, horizon + 1.0) - epoch) + epoch


def lai_robbins(means: ArrayLike, horizon: int, agents: int = 1, *, alone: bool = False) -> float:
    """Returns what any algorithm that is good everywhere must lose, in the end, without privacy.

    The sum over worse arms of gap / kl(mean, best mean), times the logarithm of all pulls. "Good
    everywhere" means that regret grows slower than every power of time on every instance. "In the
    end" means that regret divided by this number has a lower limit of at least 1 as the horizon
    grows. At a given horizon it is a yardstick, not a bound: less may well be lost.

    A federation that shares all it sees is one player with M T pulls: log(M T). Agents that hear of
    nobody are M players with T pulls each: M log T.

    Args:
        means: [arm] of Bernoulli rewards, in [0, 1], the same for every agent.
        horizon: T, in slots, in [1, 10^12].
        agents: M.
        alone: Whether each agent is a player of its own.

    Raises:
        ValueError: If an argument is out of range.

    Source:
        Lai and Robbins, Asymptotically efficient adaptive allocation rules, Advances in Applied
        Mathematics 6 (1985), Theorem 1.

    Example:
        Fifty agents that play together lose little more than one of them would alone:

        >>> from fmab_jax.analysis import theory
        >>> [round(theory.lai_robbins([0.9, 0.6, 0.3], 10**6, agents)) for agents in (1, 50)]
        [21, 27]
        >>> round(theory.lai_robbins([0.9, 0.6, 0.3], 10**6, 50, alone=True))
        1067
    """
    return private_lower_bound(means, None, horizon, agents, alone=alone)


def private_lower_bound(
    means: ArrayLike,
    epsilon: float | None,
    horizon: int,
    agents: int = 1,
    *,
    alone: bool = False,
) -> float:
    """Returns what any algorithm whose actions are epsilon-private must lose, in the end.

    As `lai_robbins`, with d_epsilon in place of kl: the infimum over z of
    epsilon |z - mean| + kl(z, best mean). What is private is all that players do, for one changed
    reward. A federation is one player with M T pulls if what all agents do together is: so it is
    over a secure sum with one noise, and also where every message hides its rewards, from which the
    actions follow. ``alone``, each agent's own actions are private by themselves.

    Args:
        means: [arm] of Bernoulli rewards, in [0, 1], the same for every agent.
        epsilon: Privacy parameter > 0; None (or infinity) for no privacy.
        horizon: T, in slots, in [1, 10^12].
        agents: M.
        alone: Whether each agent is a player of its own.

    Raises:
        ValueError: If an argument is out of range.

    Source:
        Azize, Wu, Honda, Orabona, Ito and Basu, NeurIPS 2025, arXiv 2505.05613.

    Example:
        Privacy costs something only where the log odds of two means are more than epsilon apart:

        >>> from fmab_jax.analysis import theory
        >>> given = [0.9, 0.6, 0.3], 10**6, 50
        >>> [round(theory.private_lower_bound(given[0], e, *given[1:])) for e in (None, 4, 1, 0.1)]
        [27, 27, 42, 359]
    """
    array = check_arm_values("mean", means, "give one mean per arm, the same for all agents")
    level = privacy("epsilon", epsilon)
    T = count("horizon", horizon, 1, 10**12, "give the number of slots T")
    M = count("agents", agents, 1, 10**7, "give the number of agents M")
    flag("alone", alone)
    gaps = array.max() - array
    worse = gaps >= TIE
    if not worse.any():
        return 0.0
    with jax.enable_x64(True):
        low, high, epsilon_value = map(jnp.asarray, (array[worse], np.full(1, array.max()), level))
        divergence = np.asarray(jax.jit(private_divergence)(low, high, jnp.float64(epsilon_value)))
    return float((gaps[worse] / divergence).sum()) * (M * math.log(T) if alone else math.log(M * T))


def check_arm_values(noun: str, values: ArrayLike, remedy: str) -> Float[np.ndarray, " arm"]:
    """Returns a number in [0, 1] for each arm."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        refuse(f"{noun}s", values, "an array of numbers", remedy)
    if array.ndim != 1 or not 1 <= array.size <= 10**6:
        refuse(f"{noun}s", array.shape, f"one {noun} per arm, at most 1,000,000 arms", remedy)
    if not ((array >= 0) & (array <= 1)).all():
        refuse(f"{noun}s", values, "in [0, 1]", remedy)
    return array
