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
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from fmab_jax.analysis.epochs import Epochs as Epochs
from fmab_jax.analysis.epochs import Schedule, plan_epochs
from fmab_jax.analysis.epochs import epochs as epochs
from fmab_jax.analysis.epochs import lai_robbins as lai_robbins
from fmab_jax.analysis.epochs import pair_failure as pair_failure
from fmab_jax.analysis.epochs import private_lower_bound as private_lower_bound
from fmab_jax.errors import refuse
from fmab_jax.parts.exchanges import Exchange


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
class _Model(Schedule):
    """One instance, with the quantities that both kinds of bound use."""

    exchange: Exchange
    trusted: bool  # whether C(r) covers the aggregate at all
    last: Int[np.ndarray, " arm"]  # epoch after which the arm is gone; past the table if never
    surely: float  # completed rounds on every event
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


class _Options(TypedDict, total=False):
    """Optional arguments of `bounds`."""

    rounds: int | None
    schedule_gap: float | None
    heterogeneous: bool


def bounds(
    gaps: ArrayLike,
    exchange: object,
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
        exchange: An `Exchange` from `fmab_jax.parts.exchanges`, such as ``server(50, 0.4)``.
        horizon: T, in slots, in [1, 10^12].
        epsilon: Privacy parameter > 0; None (or infinity) for no noise.
        rounds: Round budget R, or None.
        schedule_gap: Gap that a budgeted schedule is built for; None for the smallest of ``gaps``.
        heterogeneous: Whether the agents' means differ.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> from fmab_jax.analysis import theory
        >>> from fmab_jax.parts.exchanges import server
        >>> found = theory.bounds([0.0, 0.2, 0.4], server(5), horizon=10**6, epsilon=1.0)
        >>> found.rounds, found.best_arm_lost < 1e-6
        (3.0, True)
    """
    model = _build_model(gaps, exchange, horizon, epsilon, rounds, schedule_gap, heterogeneous)
    exploration, waiting, commitment = _split_regret(model, np.array([float(model.horizon)]))
    most = float(np.max(model.last, where=model.gaps > 0, initial=0))
    return _assemble_bounds(
        model, float(exploration[0]), float(waiting[0]), float(commitment[0]), most
    )


def regret_curve(
    times: ArrayLike,
    gaps: ArrayLike,
    exchange: object,
    horizon: int,
    epsilon: float | None,
    **options: Unpack[_Options],
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
        >>> from fmab_jax.parts.exchanges import server
        >>> gaps, times = [0.0, 0.2, 0.4], [10**4, 10**6]
        >>> curve = theory.regret_curve(times, gaps, server(5), horizon=10**6, epsilon=1.0)
        >>> whole = theory.bounds(gaps, server(5), 10**6, 1.0).regret
        >>> bool(abs(curve[1] / whole - 1) < 1e-9), bool(curve[0] <= curve[1])
        (True, True)
    """
    model = _build_model(gaps, exchange, horizon, epsilon, **options)
    slots = np.asarray(times, np.float64)
    if slots.ndim != 1 or not ((slots >= 0) & (slots <= model.horizon)).all():
        refuse("times", times, f"slots in [0, {model.horizon:,}]", "pass data.time")
    whole = sum(_split_regret(model, slots)) + model.bad_event * model.largest_rate * slots
    return np.minimum(whole, model.largest_rate * slots)


def closed_form(
    gaps: ArrayLike,
    exchange: object,
    horizon: int,
    epsilon: float | None,
    **options: Unpack[_Options],
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
        >>> from fmab_jax.parts.exchanges import server
        >>> given = [0.0, 0.2, 0.4], server(5), 10**6, 1.0
        >>> theory.closed_form(*given).regret >= theory.bounds(*given).regret
        True
    """
    model = _build_model(gaps, exchange, horizon, epsilon, **options)
    K, N, M = len(model.gaps), model.exchange.reporting, model.exchange.agents
    T, R, rho = model.horizon, model.rounds, model.ratio
    bad = model.gaps[model.gaps > 0]
    # Epochs per halving of the target; endless where it never shrinks, and the budget ends them.
    with np.errstate(divide="ignore"):
        halving = np.divide(R, np.log2(1 / model.schedule_gap)) if math.isfinite(R) else 1.0
    last_epoch = np.minimum(np.ceil(np.log2(2 / bad) * halving), R)
    log = np.log(8 * K * last_epoch**2 * T)
    reward = 32 * log / (N * rho**2 * bad**2)
    privacy = 16 * last_epoch * np.sqrt(2 * log) / (N**1.5 * model.epsilon * rho * bad)
    exploration = M * float(bad @ (np.maximum(reward, privacy) + last_epoch))
    most = float(last_epoch.max(initial=0))
    per_slot = np.minimum(bad.max(initial=0), 2 * rho ** np.arange(most))
    waiting = M * model.exchange.wait * float(per_slot.sum())
    unresolved = bad[bad < model.schedule_gap] if math.isfinite(R) else bad[:0]
    return _assemble_bounds(
        model, exploration, waiting, M * T * float(unresolved.max(initial=0)), most
    )


def _build_model(
    gaps: ArrayLike,
    exchange: object,
    horizon: int,
    epsilon: float | None,
    rounds: int | None = None,
    schedule_gap: float | None = None,
    heterogeneous: bool = False,
) -> _Model:
    if not isinstance(exchange, Exchange):
        refuse("exchange", exchange, "from fmab_jax.parts.exchanges", "use server(agents)")
    plan = plan_epochs(gaps, exchange.reporting, horizon, epsilon, rounds, schedule_gap)
    array, table = plan.gaps, plan.table
    K, reach = len(array), np.minimum.accumulate(4 * table.radius)
    last = len(reach) + 1 - np.searchsorted(reach[::-1], array, side="right")
    last = np.where(array > 0, last, len(reach) + 1)
    done = _find_exploration_ends(table, K, exchange.wait) + exchange.wait
    surely = int(np.count_nonzero(done <= plan.horizon)) if K > 1 else 0
    return _Model(
        **vars(plan),
        exchange=exchange,
        trusted=exchange.uniform and not (heterogeneous and exchange.reporting < exchange.agents),
        last=last,
        surely=float(surely),
        pair=pair_failure(K, exchange.reporting, plan.epsilon, plan.horizon, surely),
    )


def _find_exploration_ends(table: Epochs, arms: int, wait: int) -> Float[np.ndarray, " epoch"]:
    """Returns the earliest slot at which each epoch can end, before its wait."""
    pulls = table.fewest_pulls
    return arms * pulls[0] + 2 * (pulls - pulls[0]) + wait * np.arange(len(pulls))


def _split_regret(
    model: _Model, slots: Float[np.ndarray, " time"]
) -> tuple[Float[np.ndarray, " time"], ...]:
    """Returns regret of exploration, waiting and commitment by each slot on the good event."""
    gaps, table, last = model.gaps, model.table, model.last
    K, M, wait = len(gaps), model.exchange.agents, model.exchange.wait
    zeros = np.zeros_like(slots)
    if not gaps.any() or not model.trusted:
        return zeros, zeros, zeros

    # The first epoch pulls all arms alike; then the largest gaps come first.
    first = table.most_pulls[0]
    order = np.argsort(-gaps)
    later_pulls = (table.most_pulls[np.minimum(last, len(table.radius)) - 1] - first)[order]
    knots = np.cumsum(np.concatenate([[0.0, K * first], later_pulls]))
    values = np.cumsum(np.concatenate([[0.0, gaps.sum() * first], gaps[order] * later_pulls]))
    exploration = M * np.interp(slots, knots, values)

    # Waiting after epoch r, an agent may play any arm that can still be active.
    explored = _find_exploration_ends(table, K, wait)
    begun = np.arange(1, len(explored) + 1) <= np.max(last, where=gaps > 0, initial=0)
    starts = explored[begun & (explored <= model.horizon)]
    waiting = zeros
    if wait and len(starts):
        worst = np.sort(gaps)[table.arms[: len(starts)] - 1]
        knots = np.stack([starts, starts + wait], axis=1).ravel()
        values = np.stack([np.zeros_like(worst), wait * worst], axis=1).ravel().cumsum()
        waiting = M * np.interp(slots, knots, values)

    # Budget spent: the largest aggregate belongs to an active arm with a gap below 2 C(R).
    commitment = zeros
    if len(explored) == model.rounds:
        possible = (last > len(explored)) & (gaps < 2 * table.radius[-1])
        rate = M * float(np.max(gaps, where=possible, initial=0))
        commitment = rate * np.maximum(slots - explored[-1] - wait, 0)
    return exploration, waiting, commitment


def _assemble_bounds(
    model: _Model, exploration: float, waiting: float, commitment: float, most: float
) -> Bounds:
    """Returns the bounds; where C(r) does not cover the aggregate, trivial ones."""
    exchange, surely, T = model.exchange, model.surely, model.horizon
    # Arms that tie with the best may stay for ever.
    ties = np.count_nonzero(model.gaps == 0) > 1
    rounds = surely if ties or not model.trusted else min(most, surely)
    if not model.trusted:
        exploration = waiting = commitment = 0.0
    failure = model.bad_event * model.largest_rate * T
    copies = exchange.agents if exchange.alone else 1
    loss_chance = copies * (len(model.gaps) - 1) * model.pair
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
        best_arm_lost=min(1.0, loss_chance) if model.trusted else 1.0,
        epsilon_message=exchange.reporting * model.epsilon,
    )
