"""Regret of each agent: against the arm that is best on average, and against its own best arm.

``regret`` is the sum over agents of the first. Personalised papers count the second. Where agents
share their means both are the same number.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from fmab_jax.parts.instances import OwnGaps
from fmab_jax.parts.outputs.accumulators import Accumulator, Rows, Stretch
from fmab_jax.parts.outputs.output import Output, Record
from fmab_jax.sampling import arrays
from fmab_jax.sampling.shapes import PyTree, Reals


def _grow(total: Array, rate: Array, stretch: Stretch, slot: Array) -> Array:
    """Returns a total at slots of a stretch, the last axis."""
    slots = _along(total, (slot - stretch.start).astype(jnp.float64))
    # Rounded before the addition, so that fused multiply-adds change no bit.
    return total[..., None] + arrays.rounded(rate[..., None] * slots)


def _along(total: Array, slots: Array) -> Array:
    """Returns values of slots with the axes of a total before theirs."""
    return slots.reshape((1,) * total.ndim + slots.shape)


def _accumulate_rate(
    name: str, dims: tuple[str, ...], find_rate: Callable[[Stretch], Reals], *, own: bool = False
) -> Accumulator:
    """Returns an accumulator of what grows by the same rate in each slot of a stretch.

    Args:
        name: Its name.
        dims: "agent" for a rate [row], "time" for the value at each recorded slot.
        find_rate: Returns the rate of a stretch.
        own: Whether the rate has a row for each agent whose means differ.
    """
    has_curve = "time" in dims

    def start(rows: int, arms: int, grid: Array) -> tuple[Array, ...]:
        total = jnp.zeros((rows,) if "agent" in dims else ())
        return (total, jnp.zeros((*total.shape, *grid.shape)))[: 1 + has_curve]

    def add(state: tuple[Array, ...], stretch: Stretch, grid: Array) -> tuple[Array, ...]:
        total, *curves = state
        rate = find_rate(stretch)
        lines = (_grow(total, rate, stretch, grid) for _ in curves)
        later = _along(total, grid > stretch.start)
        curves = [jnp.where(later, *pair) for pair in zip(lines, curves, strict=True)]
        return _grow(total, rate, stretch, stretch.stop[None])[..., 0], *curves

    def add_slots(state: tuple[Array, ...], slots: Stretch, grid: Array) -> tuple[Array, ...]:
        total, *curves = state
        zero = jnp.zeros(total.shape)
        parts = jax.vmap(lambda x: _grow(zero, find_rate(x), x, x.stop[None])[..., 0])(slots)
        # One after another, to the bits of `add`.
        totals = jnp.stack([*itertools.accumulate(parts, initial=total)][1:])
        place = jnp.clip(grid - slots.stop[0], 0, len(totals) - 1)
        is_within = _along(total, (grid > slots.start[0]) & (grid <= slots.stop[-1]))
        lines = (jnp.moveaxis(totals[place], 0, -1) for _ in curves)
        curves = [jnp.where(is_within, *pair) for pair in zip(lines, curves, strict=True)]
        return totals[-1], *curves

    def end(state: tuple[Array, ...]) -> Array:
        return state[-1]

    return Accumulator(name, dims, start, add, end, own, add_slots)


def _accumulate_own() -> Accumulator:
    """Returns the accumulator of each agent's regret at T against its own best arm.

    Agents that all play alike spend the same slots on each arm. These are added up once for all,
    and own gaps are read once, at the end: else they take as long as the rest of a run.
    """
    by_rate = _accumulate_rate("", ("agent",), lambda stretch: stretch.own_gap, own=True)

    def start(rows: Rows, arms: int, grid: Array) -> tuple[Array, ...] | Array:
        return jnp.zeros(arms) if rows.alike else by_rate.start(rows.own, arms, grid)

    def add(state: tuple[Array, ...] | Array, stretch: Stretch, grid: Array) -> PyTree:
        if isinstance(state, tuple):
            return by_rate.add(state, stretch, grid)
        slots = (stretch.stop - stretch.start).astype(jnp.float64)
        return state + arrays.rounded(slots * stretch.share[0])

    def add_slots(state: tuple[Array, ...] | Array, slots: Stretch, grid: Array) -> PyTree:
        if isinstance(state, tuple) and by_rate.add_slots is not None:
            return by_rate.add_slots(state, slots, grid)
        return lax.scan(lambda state, slot: (add(state, slot, grid), None), state, slots)[0]

    def end(state: tuple[Array, ...] | Array, own_gaps: OwnGaps | None) -> Array:
        if isinstance(state, tuple) or own_gaps is None:
            return state[-1]
        gaps = own_gaps.gaps.reshape(-1, len(state))
        return arrays.sum_in_turn(arrays.rounded(state[None] * gaps).T)

    return Accumulator(
        "agent_own_regret",
        ("agent",),
        start,
        add,
        end,
        reads_own=True,
        add_slots=add_slots,
        counts_slots=True,
    )


_REGRET = _accumulate_rate("agent_regret", ("agent",), lambda stretch: stretch.gap)
_OWN = _accumulate_own()
_CURVES = _accumulate_rate("regret_by_agent", ("agent", "time"), lambda stretch: stretch.gap)
_OWN_CURVES = _accumulate_rate(
    "own_regret_by_agent", ("agent", "time"), lambda stretch: stretch.own_gap, own=True
)
# The excess, because it is exactly 0 where agents share their means.
_EXCESS = _accumulate_rate("own_excess", ("time",), lambda stretch: stretch.excess)


def _read_own(record: Record) -> np.ndarray:
    """Returns each agent's regret against its own best arm; a single agent has one best arm."""
    return record["agent_own_regret" if record.agents > 1 else "agent_regret"]


OWN_REGRET = Output(
    "own_regret",
    "cumulative regret against own best arms",
    "reward",
    lambda record: np.asarray(record["regret"]) + record["own_excess"] * (record.agents > 1),
    ("time",),
    accumulators=(_EXCESS,),
)
"""Summed over agents, as ``regret`` is."""

AGENT_REGRET = Output(
    "agent_regret",
    "regret of an agent at T",
    "reward",
    lambda record: record["agent_regret"],
    ("agent",),
    accumulators=(_REGRET,),
)
"""The sum over agents is ``regret`` at T, up to rounding."""

AGENT_OWN_REGRET = Output(
    "agent_own_regret",
    "regret of an agent at T against its own best arm",
    "reward",
    _read_own,
    ("agent",),
    accumulators=(_REGRET, _OWN),
)
"""The sum over agents is ``own_regret`` at T, up to rounding."""

LARGEST_REGRET = Output(
    "largest_regret",
    "largest regret of an agent at T",
    "reward",
    lambda record: record["agent_regret"].max(1),
    accumulators=(_REGRET,),
)

LARGEST_OWN_REGRET = Output(
    "largest_own_regret",
    "largest regret of an agent at T against its own best arm",
    "reward",
    lambda record: _read_own(record).max(1),
    accumulators=(_REGRET, _OWN),
)


def _compute_fairness(record: Record) -> np.ndarray:
    """Returns (sum x)^2 / (M sum x^2) over agents; 1 if no agent has regret."""
    regret = record["agent_regret"]
    # Relative to the largest, so that squares cannot overflow.
    largest = regret.max(1, keepdims=True)
    x = np.divide(regret, largest, out=np.ones_like(regret), where=largest != 0)
    return np.square(x.sum(1)) / (record.agents * np.square(x).sum(1))


FAIRNESS = Output(
    "fairness",
    "Jain's index of the agents' regret at T",
    "1",
    _compute_fairness,
    accumulators=(_REGRET,),
    source="Jain, Chiu and Hawe, DEC TR-301, 1984",
)
"""1 if all agents have the same regret, 1 / M if one has it all."""

REGRET_BY_AGENT = Output(
    "regret_by_agent",
    "cumulative regret of an agent",
    "reward",
    lambda record: record["regret_by_agent"].swapaxes(1, 2),
    ("time", "agent"),
    accumulators=(_CURVES,),
)

OWN_REGRET_BY_AGENT = Output(
    "own_regret_by_agent",
    "cumulative regret of an agent against its own best arm",
    "reward",
    lambda record: record["own_regret_by_agent"].swapaxes(1, 2),
    ("time", "agent"),
    accumulators=(_OWN_CURVES,),
)

AGENTS_DIFFER = (
    OWN_REGRET,
    AGENT_REGRET,
    AGENT_OWN_REGRET,
    LARGEST_REGRET,
    LARGEST_OWN_REGRET,
    FAIRNESS,
)
"""Outputs of results in which agents differ; curves by agent are large, and on request."""

TALLIED = (OWN_REGRET, LARGEST_REGRET, LARGEST_OWN_REGRET)
"""Outputs of which summaries have quantiles at T, as of the regret."""
