"""Bounds on regret, rounds and links with explicit constants, after Theorems 1-4; lower bounds.

The paper states its theorems up to constants. The functions here give numbers that bound the
paper's elimination (`cdp_mab`, `ddp_mab`, `hdp_mab`, `single_mab`) as docs/semantics.md defines it,
with rewards in [0, 1]; they say nothing of algorithms with another schedule, radius or noise, which
may use the same exchanges. docs/theory.md derives each, and says where it differs from the print.
`bounds` follows the schedule epoch by epoch; `closed_form` has the shape of the printed statements
and is never smaller.

All rests on one good event: in no completed epoch do the aggregates of a best arm b and of another
arm k differ by 2 C(r) more, or less, than their means do. Then b stays, an arm whose gap is at
least 4 C(r) leaves, and an arm with the largest aggregate has a gap below 2 C(r).

`lai_robbins` and `private_lower_bound` say what every algorithm loses in the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from fmab_jax.algorithms.families import schedule
from fmab_jax.core.evidence import private_divergence
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.instances import TIE
from fmab_jax.errors import count, flag, privacy, real, refuse

# More than any horizon has room for: epoch 64 of the doubling schedule takes over 10^30 pulls.
_EPOCHS = 64


class Epochs(NamedTuple):
    """The schedule of epochs r = 1, 2, ..., whichever arms are active, on the good event.

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


class Bounds(NamedTuple):
    """Upper bounds at the horizon. Regret is the expectation, summed over agents.

    Attributes:
        regret: The sum of the four parts below, at most agents x horizon x the largest gap.
        regret_exploration: Of epochs, on the good event.
        regret_waiting: Of waiting slots, on the good event.
        regret_commitment: Of playing the best aggregate once a round budget is spent, on the good
            event: 0 where the schedule is built for the smallest gap.
        regret_failure: Probability that the good event fails x agents x horizon x largest gap.
        rounds: Completed rounds of any agent, on the good event.
        rounds_surely: Completed rounds that the budget and the horizon have room for.
        links: ``rounds`` times the links of a round, by the name of each of the exchange's meters.
        bad_event: Probability that the good event fails, for any agent.
        best_arm_lost: Probability that, for any agent, no best arm is left at the horizon.
        epsilon_message: N epsilon, what one message leaks (Theorem 1).
    """

    regret: float
    regret_exploration: float
    regret_waiting: float
    regret_commitment: float
    regret_failure: float
    rounds: float
    rounds_surely: float
    links: dict[str, float]
    bad_event: float
    best_arm_lost: float
    epsilon_message: float


@dataclass(frozen=True)
class _Schedule:
    """The arguments, checked, and the epochs that they give."""

    gaps: Float[np.ndarray, " arm"]
    horizon: int
    epsilon: float
    rounds: float
    schedule_gap: float
    ratio: float
    table: Epochs


@dataclass(frozen=True)
class _Model(_Schedule):
    """One instance, with what both kinds of bound share."""

    exchange: Exchange
    trusted: bool  # whether C(r) covers the aggregate at all
    last: Int[np.ndarray, " arm"]  # epoch after which the arm is gone; past the table if never
    surely: float  # completed rounds, on whatever event
    pair: float  # `pair_failure`

    @property
    def bad_event(self) -> float:
        """Probability that the good event fails, for one agent or for all as one."""
        # Two directions for every arm that is worse, one for those that tie with the best.
        ways = len(self.gaps) - 1 + np.count_nonzero(self.gaps)
        return min(1.0, float(ways) * self.pair) if self.trusted else 1.0

    @property
    def largest_rate(self) -> float:
        """Regret of a slot in which all agents play the worst arm."""
        return self.exchange.agents * float(self.gaps.max())


def bounds(
    gaps: Any,
    exchange: Any,
    horizon: int,
    epsilon: float | None,
    *,
    rounds: int | None = None,
    schedule_gap: float | None = None,
    heterogeneous: bool = False,
) -> Bounds:
    """Bounds regret, rounds and links of one instance, epoch by epoch (Theorems 1-4).

    The exchange decides which theorem it is: 1 and 2 for ``server``, 3 for ``flooding``, 4 for
    ``sinks``; with ``rounds`` Theorem 2 and Corollaries 1 and 2, with ``heterogeneous`` Corollary
    3. Alone, every agent has Theorem 1 with M = 1.

    The theorems hold for the paper's elimination, whose S(r), C(r) and noise they use, with rewards
    in [0, 1]. Of another algorithm they say nothing, though it may use the same exchange.

    The radius C(r) covers agents that differ only if all of them report, and only if they weigh
    the same. Else nothing is promised: ``best_arm_lost`` is 1 and ``regret`` the trivial bound.

    Args:
        gaps: [arm] best global mean minus the arm's, in [0, 1], one of them 0.
        exchange: An `Exchange` from `fmab_jax.core.exchanges`, such as ``server(50, 0.4)``.
        horizon: T, in slots, in [1, 10^12].
        epsilon: Privacy parameter > 0; None (or infinity) for no noise.
        rounds: Round budget R, or None.
        schedule_gap: Gap that a budgeted schedule is built for; None for the smallest of ``gaps``.
        heterogeneous: Whether the agents' means differ.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> from fmab_jax.analysis import theory
        >>> from fmab_jax.core.exchanges import server
        >>> found = theory.bounds([0.0, 0.2, 0.4], server(5), horizon=10**6, epsilon=1.0)
        >>> found.rounds, found.best_arm_lost < 1e-6
        (3.0, True)
    """
    model = _model(gaps, exchange, horizon, epsilon, rounds, schedule_gap, heterogeneous)
    exploration, waiting, commitment = _parts(model, np.array([float(model.horizon)]))
    most = float(np.max(model.last, where=model.gaps > 0, initial=0))
    return _assembled(model, float(exploration[0]), float(waiting[0]), float(commitment[0]), most)


def regret_curve(
    times: Any,
    gaps: Any,
    exchange: Any,
    horizon: int,
    epsilon: float | None,
    *,
    rounds: int | None = None,
    schedule_gap: float | None = None,
    heterogeneous: bool = False,
) -> Float[np.ndarray, " time"]:
    """Bounds the expected cumulative regret by each slot of ``times``; the rest as in `bounds`.

    The first epoch is exact on the good event. Later, arms are charged in the worst order that
    their largest numbers of pulls allow: the largest gap first.

    Returns:
        [time], summed over agents; its value at the horizon is ``bounds(...).regret``.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> from fmab_jax.analysis import theory
        >>> from fmab_jax.core.exchanges import server
        >>> gaps, times = [0.0, 0.2, 0.4], [10**4, 10**6]
        >>> curve = theory.regret_curve(times, gaps, server(5), horizon=10**6, epsilon=1.0)
        >>> whole = theory.bounds(gaps, server(5), 10**6, 1.0).regret
        >>> bool(abs(curve[1] / whole - 1) < 1e-9), bool(curve[0] <= curve[1])
        (True, True)
    """
    model = _model(gaps, exchange, horizon, epsilon, rounds, schedule_gap, heterogeneous)
    slots = np.asarray(times, np.float64)
    if slots.ndim != 1 or not ((slots >= 0) & (slots <= model.horizon)).all():
        refuse("times", times, f"slots in [0, {model.horizon:,}]", "pass data.time")
    whole = sum(_parts(model, slots)) + model.bad_event * model.largest_rate * slots
    return np.minimum(whole, model.largest_rate * slots)


def closed_form(
    gaps: Any,
    exchange: Any,
    horizon: int,
    epsilon: float | None,
    *,
    rounds: int | None = None,
    schedule_gap: float | None = None,
    heterogeneous: bool = False,
) -> Bounds:
    """Bounds the same as `bounds` in the form of Theorems 1-4; arguments as there.

    With rho = 1/2, or gap^(1/R) under a round budget, arm k is gone after epoch
    r_k = min(R, ceil(log(2 / gap_k) / log(1 / rho))), which for rho = 1/2 is the paper's
    ceil(log2(1 / gap_k) + 1). With L_k = log(8 K r_k^2 T) each agent pulls it at most

        max(32 L_k / (N rho^2 gap_k^2), 16 r_k sqrt(2 L_k) / (N^1.5 epsilon rho gap_k)) + r_k

    times, and epoch r's wait costs at most min(largest gap, 2 rho^(r-1)) per agent and slot.

    Source:
        Theorems 1-4 and their proofs, Corollaries 1-3; the constants are those of docs/theory.md.

    Example:
        The printed shape is never sharper than what follows the schedule epoch by epoch:

        >>> from fmab_jax.analysis import theory
        >>> from fmab_jax.core.exchanges import server
        >>> given = [0.0, 0.2, 0.4], server(5), 10**6, 1.0
        >>> theory.closed_form(*given).regret >= theory.bounds(*given).regret
        True
    """
    model = _model(gaps, exchange, horizon, epsilon, rounds, schedule_gap, heterogeneous)
    K, N, M = len(model.gaps), exchange.reporting, exchange.agents
    T, R, rho = model.horizon, model.rounds, model.ratio
    bad = model.gaps[model.gaps > 0]
    # Epochs per halving of the target; endless where it never shrinks, and the budget ends them.
    with np.errstate(divide="ignore"):
        halving = np.divide(R, np.log2(1 / model.schedule_gap)) if math.isfinite(R) else 1.0
    last = np.minimum(np.ceil(np.log2(2 / bad) * halving), R)
    log = np.log(8 * K * last**2 * T)
    reward = 32 * log / (N * rho**2 * bad**2)
    privacy = 16 * last * np.sqrt(2 * log) / (N**1.5 * model.epsilon * rho * bad)
    exploration = M * float(bad @ (np.maximum(reward, privacy) + last))
    most = float(last.max(initial=0))
    per_slot = np.minimum(bad.max(initial=0), 2 * rho ** np.arange(most))
    waiting = M * exchange.wait * float(per_slot.sum())
    unresolved = bad[bad < model.schedule_gap] if math.isfinite(R) else bad[:0]
    commitment = M * T * float(unresolved.max(initial=0))
    return _assembled(model, exploration, waiting, commitment, most)


def epochs(
    gaps: Any,
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
    return _schedule(gaps, reporting, horizon, epsilon, rounds, schedule_gap).table


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
    later = float((r[1:] ** -4).sum()) + (len(r) < epochs) / (3 * len(r) ** 3)
    rewards = (8 * K * T) ** -2 + later * float((a**-3).sum()) / (64 * T)
    if noise_free:
        return min(1.0, rewards)
    # The sum is r times that of one epoch's noise, and so is the threshold: a power of one tail.
    threshold = 2 * np.sqrt(8 * N * np.log(8 * K * r**2 * T))
    tilt = threshold / (2 * N + np.hypot(2 * N, threshold))
    tail = np.exp(-r * (tilt * threshold + 2 * N * np.log1p(-(tilt**2))))
    # From epoch 2 on a term is at most the first one's square, cube, ...: a geometric rest.
    rest = (len(r) < epochs) * float(tail[0]) ** len(r) / max(1 - float(tail[0]), 1e-300)
    return min(1.0, rewards + float(tail.sum()) + rest)


def crossover_epsilon(
    epoch: int, active: int, *, arms: int, reporting: int, horizon: int, ratio: float = 0.5
) -> float:
    """Returns the epsilon below which the noise, not the rewards, decides how long an epoch is.

    The two terms of S(r) are equal, and so are the two of C(r) up to rounding, at
    r Dt_r sqrt(2 log(8 K r^2 T)) / (sqrt(N) log(8 a r^2 T)). Below it S(r) is proportional to
    1 / epsilon.

    Args:
        epoch: r = 1, 2, ...
        active: a, in [1, arms].
        arms: K.
        reporting: N.
        horizon: T, in slots.
        ratio: Factor by which the target gap shrinks, in (0, 1].

    Raises:
        ValueError: If an argument is out of range.

    Source:
        Algorithm 1, line 4; section IV-C, "privacy-regret trade-off", with its constant.

    Example:
        At the paper's setting the noise decides no epoch where epsilon is 0.1 or more:

        >>> from fmab_jax.analysis import theory
        >>> setting = {"arms": 100, "reporting": 50, "horizon": 10**4}
        >>> epochs = [(r, a) for r in range(1, 5) for a in (2, 100)]
        >>> max(theory.crossover_epsilon(r, a, **setting) for r, a in epochs) < 0.034
        True
    """
    r = count("epoch", epoch, 1, 10**5, "count epochs from 1")
    K = count("arms", arms, 1, 10**6, "give the number of arms K")
    a = count("active", active, 1, K, "give the number of active arms")
    N = count("reporting", reporting, 1, 10**7, "give the number of reporting agents N")
    T = count("horizon", horizon, 1, 10**12, "give the number of slots T")
    rho = real("ratio", ratio, 0, 1, "1/2, or gap^(1/R)", open_low=True)
    noise = r * rho**r * math.sqrt(2 * math.log(8 * K * r**2 * T))
    return noise / (math.sqrt(N) * math.log(8 * a * r**2 * T))


def lai_robbins(means: Any, horizon: int, agents: int = 1, *, alone: bool = False) -> float:
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
    means: Any, epsilon: float | None, horizon: int, agents: int = 1, *, alone: bool = False
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
    array = checked_means(means)
    level = privacy("epsilon", epsilon)
    T = count("horizon", horizon, 1, 10**12, "give the number of slots T")
    M = count("agents", agents, 1, 10**7, "give the number of agents M")
    flag("alone", alone)
    gaps = array.max() - array
    worse = gaps >= TIE
    if not worse.any():
        return 0.0
    with jax.enable_x64(True):
        low, high, hidden = map(jnp.asarray, (array[worse], np.full(1, array.max()), level))
        apart = np.asarray(_divergence(low, high, jnp.float64(hidden)))
    each = float((gaps[worse] / apart).sum())
    return each * (M * math.log(T) if alone else math.log(M * T))


_divergence = jax.jit(private_divergence)


def checked_means(means: Any) -> Float[np.ndarray, " arm"]:
    """Returns the means of arms, checked."""
    remedy = "give one mean per arm, the same for all agents"
    array = _by_arm("mean", means, remedy)
    if not ((array >= 0) & (array <= 1)).all():
        refuse("means", means, "in [0, 1]", remedy)
    return array


def _by_arm(what: str, given: Any, remedy: str) -> Float[np.ndarray, " arm"]:
    """Returns a number for each arm."""
    try:
        array = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        refuse(f"{what}s", given, "an array of numbers", remedy)
    if array.ndim != 1 or not 1 <= array.size <= 10**6:
        refuse(f"{what}s", array.shape, f"one {what} per arm, at most 1,000,000 arms", remedy)
    return array


def _schedule(
    gaps: Any, reporting: int, horizon: Any, epsilon: Any, rounds: Any, schedule_gap: Any
) -> _Schedule:
    remedy = "subtract every global mean from the largest"
    array = _by_arm("gap", gaps, remedy)
    if not ((array >= 0) & (array <= 1)).all() or array.min() >= TIE:
        refuse("gaps", gaps, "in [0, 1], the best arm's 0", remedy)
    array = np.where(array < TIE, 0.0, array)
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
    wanted = int(min(budget, T + 1)) if math.isfinite(budget) else _EPOCHS
    # Lengths in powers of two, so that few are compiled.
    r = np.arange(1.0, max(_EPOCHS, 2 ** math.ceil(math.log2(wanted))) + 1)
    few, every = np.where(r == 1, float(K), min(K, 2)), np.full_like(r, K)
    with jax.enable_x64(True):
        numbers = dict(arms=K, reporting=reporting, epsilon=epsilon, horizon=T)
        common = {name: jnp.float64(value) for name, value in numbers.items()}
        noise_free = common | {"epsilon": jnp.float64(math.inf)}
        ratio, targets = _targets(jnp.float64(schedule_gap), jnp.float64(budget), r)
        target = np.asarray(targets)
        fewest = _grown(np.asarray(_pulls(few, r, target, common)), r)
        rewards = np.asarray(_radii(every, r, fewest, noise_free))
        noise = np.asarray(_radii(every, r, fewest, common)) - rewards
        # The rewards' part is at most Dt/4 however many arms are active.
        radius = np.minimum(target / 4, rewards) + noise
        # An arm with a gap of 4 C(r) or more is gone after epoch r.
        surviving = np.searchsorted(ordered, np.minimum.accumulate(4 * radius))
        arms = np.concatenate([[K], surviving[:-1]])
        most = _grown(np.asarray(_pulls(np.maximum(arms, few), r, target, common)), r)
    rows = target, arms, fewest, most, radius
    table = Epochs(*(row[:wanted] for row in rows))
    return _Schedule(array, horizon, epsilon, budget, schedule_gap, float(ratio), table)


def _model(
    gaps: Any,
    exchange: Any,
    horizon: Any,
    epsilon: Any,
    rounds: Any,
    schedule_gap: Any,
    heterogeneous: bool,
) -> _Model:
    if not isinstance(exchange, Exchange):
        refuse("exchange", exchange, "from fmab_jax.core.exchanges", "use server(agents)")
    made = _schedule(gaps, exchange.reporting, horizon, epsilon, rounds, schedule_gap)
    array, table = made.gaps, made.table
    K, reach = len(array), np.minimum.accumulate(4 * table.radius)
    last = len(reach) + 1 - np.searchsorted(reach[::-1], array, side="right")
    last = np.where(array > 0, last, len(reach) + 1)
    done = _explored(table, K, exchange.wait) + exchange.wait
    surely = int(np.count_nonzero(done <= made.horizon)) if K > 1 else 0
    everybody = exchange.reporting == exchange.agents
    return _Model(
        **vars(made),
        exchange=exchange,
        trusted=exchange.uniform and (not heterogeneous or everybody),
        last=last,
        surely=float(surely),
        pair=pair_failure(K, exchange.reporting, made.epsilon, made.horizon, surely),
    )


@jax.jit
def _pulls(
    active: Array, epoch: Array, target: Array, common: dict[str, Array]
) -> Float[Array, " epoch"]:
    """Returns ceil(S(r)), at least 1, of every epoch by itself."""

    def one(active: Array, epoch: Array, target: Array) -> Array:
        return schedule.pulls_per_arm(active, epoch, target, jnp.float64(0), **common)

    return jax.vmap(one)(active, epoch, target)


@jax.jit
def _radii(
    active: Array, epoch: Array, pulls: Array, common: dict[str, Array]
) -> Float[Array, " epoch"]:
    def one(*given: Array) -> Array:
        return schedule.confidence_radius(*given, **common)

    return jax.vmap(one)(active, epoch, pulls)


@jax.jit
def _targets(gap: Array, rounds: Array, epoch: Array) -> tuple[Array, Float[Array, " epoch"]]:
    ratio = schedule.shrink_ratio(gap, rounds)
    return ratio, jax.vmap(schedule.target_gap, (None, 0))(ratio, epoch)


def _grown(
    pulls: Float[np.ndarray, " epoch"], epoch: Float[np.ndarray, " epoch"]
) -> Float[np.ndarray, " epoch"]:
    """Returns S_r = max(ceil(S(r)), S_{r-1} + 1)."""
    return np.maximum.accumulate(pulls - epoch) + epoch


def _explored(table: Epochs, arms: int, wait: int) -> Float[np.ndarray, " epoch"]:
    """Returns the earliest slot at which each epoch can have been explored, before its wait."""
    pulls = table.fewest_pulls
    return arms * pulls[0] + 2 * (pulls - pulls[0]) + wait * np.arange(len(pulls))


def _parts(
    model: _Model, slots: Float[np.ndarray, " time"]
) -> tuple[Float[np.ndarray, " time"], ...]:
    """Returns regret by each slot on the good event: of exploration, waiting and commitment."""
    gaps, table, last = model.gaps, model.table, model.last
    K, M, wait = len(gaps), model.exchange.agents, model.exchange.wait
    none = np.zeros_like(slots)
    if not gaps.any() or not model.trusted:
        return none, none, none

    # The first epoch pulls all arms alike; then the largest gaps come first.
    first = table.most_pulls[0]
    order = np.argsort(-gaps)
    later = (table.most_pulls[np.minimum(last, len(table.radius)) - 1] - first)[order]
    knots = np.cumsum(np.concatenate([[0.0, K * first], later]))
    values = np.cumsum(np.concatenate([[0.0, gaps.sum() * first], gaps[order] * later]))
    exploration = M * np.interp(slots, knots, values)

    # Waiting after epoch r, an agent may play any arm that can still be active.
    explored = _explored(table, K, wait)
    begun = np.arange(1, len(explored) + 1) <= np.max(last, where=gaps > 0, initial=0)
    starts = explored[begun & (explored <= model.horizon)]
    waiting = none
    if wait and len(starts):
        worst = np.sort(gaps)[table.arms[: len(starts)] - 1]
        knots = np.stack([starts, starts + wait], axis=1).ravel()
        values = np.stack([np.zeros_like(worst), wait * worst], axis=1).ravel().cumsum()
        waiting = M * np.interp(slots, knots, values)

    # Budget spent: the largest aggregate belongs to an active arm with a gap below 2 C(R).
    commitment = none
    if len(explored) == model.rounds:
        possible = (last > len(explored)) & (gaps < 2 * table.radius[-1])
        rate = M * float(np.max(gaps, where=possible, initial=0))
        commitment = rate * np.maximum(slots - explored[-1] - wait, 0)
    return exploration, waiting, commitment


def _assembled(
    model: _Model, exploration: float, waiting: float, commitment: float, most: float
) -> Bounds:
    """Returns the record; where C(r) covers nothing, only what always holds."""
    exchange, surely, T = model.exchange, model.surely, model.horizon
    # Arms that tie with the best may stay for ever.
    ties = np.count_nonzero(model.gaps == 0) > 1
    rounds = surely if ties or not model.trusted else min(most, surely)
    if not model.trusted:
        exploration = waiting = commitment = 0.0
    failure = model.bad_event * model.largest_rate * T
    copies = exchange.agents if exchange.alone else 1
    lost = copies * (len(model.gaps) - 1) * model.pair
    return Bounds(
        regret=min(exploration + waiting + commitment + failure, model.largest_rate * T),
        regret_exploration=exploration,
        regret_waiting=waiting,
        regret_commitment=commitment,
        regret_failure=failure,
        rounds=rounds,
        rounds_surely=surely,
        links={meter.name: rounds * number for meter, number in exchange.links},
        bad_event=min(1.0, copies * model.bad_event),
        best_arm_lost=min(1.0, lost) if model.trusted else 1.0,
        epsilon_message=exchange.reporting * model.epsilon,
    )
