"""Accumulators: what loops add up for outputs, stretch by stretch of slots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from fmab_jax.errors import Refusal
from fmab_jax.parts.instances import OwnGaps
from fmab_jax.parts.plugins import errors_as
from fmab_jax.sampling import arrays
from fmab_jax.sampling.segments import Ends
from fmab_jax.sampling.shapes import (
    Grid,
    Integer,
    PerAgent,
    PerRow,
    PerRowArm,
    PyTree,
    Reals,
    Scalar,
)

PROMISE = (
    "An accumulator starts as arrays, keeps their shapes and types, and ends in real numbers over "
    "its dimensions."
)
"""Contract of an accumulator, which the error message quotes."""


class Stretch(NamedTuple):
    """A stretch of slots in which no agent changes its play.

    Agents that always play the same are one row; otherwise each agent is a row, and the last rows
    may be padding.

    Attributes:
        start: The slot before the stretch.
        stop: Its last slot.
        gap: Regret per slot of an agent of a row, against the arm that is best on average.
        share: Share of the slots in which an agent of a row plays each arm.
        agents: Number of agents of a row; 0 for padding.
        own_gap: Regret per slot of each agent against its own best arm, a row for each agent where
            their means differ; otherwise it is ``gap``.
        excess: How much more regret per slot all agents have against their own best arms than
            against the arm that is best on average; exactly 0 where they share their means.
    """

    start: Integer
    stop: Integer
    gap: PerRow
    share: PerRowArm
    agents: PerRow
    own_gap: PerAgent
    excess: Scalar


def make_stretch(
    start: Integer,
    stop: Integer,
    gap: Reals,
    share: PerRowArm,
    agents: PerRow,
    own_gaps: OwnGaps | None,
    arm: Int[Array, " row"] | None = None,
) -> Stretch:
    """Returns a stretch; if means change, its gaps and its excess have a leading segment axis.

    Args:
        start: The slot before it.
        stop: Its last slot.
        gap: Regret per slot of an agent of a row, [row] or [segment, row].
        share: Share of the slots in which an agent of a row plays each arm.
        agents: Number of agents of a row.
        own_gaps: `Instance.own_gaps`.
        arm: The arm of a row that plays one arm alone; faster than to read ``share``.
    """
    if own_gaps is None:
        return Stretch(start, stop, gap, share, agents, gap, jnp.zeros(gap.shape[:-1]))
    if arm is None:
        parts = arrays.rounded(jnp.broadcast_to(share, own_gaps.gaps.shape) * own_gaps.gaps)
        own_gap = arrays.padded_sum(jnp.moveaxis(parts, -1, 0))
    else:
        place = jnp.broadcast_to(arm[:, None], (*own_gaps.gaps.shape[:-1], 1))
        own_gap = jnp.take_along_axis(own_gaps.gaps, place, axis=-1)[..., 0]
    if own_gap.shape != gap.shape:
        return Stretch(start, stop, gap, share, agents, own_gap, own_gaps.excess)
    excess = arrays.rounded(jnp.broadcast_to(agents, gap.shape) * (own_gap - gap))
    excess = arrays.sum_in_turn(jnp.moveaxis(excess, -1, 0))
    return Stretch(start, stop, gap, share, agents, own_gap, excess)


class Accumulator(NamedTuple):
    """A sum that a loop accumulates, stretch by stretch, for an output that needs it.

    All functions are traced, and only for a requested output.

    Attributes:
        name: Key in `Outcome.accumulator_values`.
        dims: Dimensions of a seed's value. "agent" comes first, if each agent has a row; otherwise
            the value is over all agents together, and values of agents that run alone are summed.
            "time" comes last, for one value per recorded slot.
        start: Maps the numbers of rows and arms, and the recorded slots, to the state at slot 0.
        add: Maps the state, a stretch and the recorded slots to the state after the stretch.
        end: Maps the state at the horizon to the value, with as many rows as ``start`` gets if
            it is by agent; by default the state itself.
        reads_own: Whether it is by agent and reads ``own_gap``. Then each agent has a row where
            means differ.
        add_slots: Maps the state, single slots as stretches with a leading slot axis, and the
            recorded slots to the state after them, faster than ``add`` and to the same bits.
        counts_slots: Whether it may count the slots of each arm, and read own gaps at the end. Then
            ``start`` gets `Rows` in place of a number, and ``end`` also `Instance.own_gaps`.
    """

    name: str
    dims: tuple[str, ...]
    start: Callable[[Any, int, Array], PyTree]
    add: Callable[[PyTree, Stretch, Array], PyTree]
    end: Callable[..., Reals] = lambda total: total
    reads_own: bool = False
    add_slots: Callable[[PyTree, Stretch, Array], PyTree] | None = None
    counts_slots: bool = False

    @property
    def by_agent(self) -> bool:
        """Whether each agent has a row."""
        return "agent" in self.dims


class Rows(NamedTuple):
    """Numbers of rows of accumulators.

    Attributes:
        playing: Rows of agents that may play differently.
        own: Rows of agents that play differently or have other means.
        alike: Whether all agents play alike and have means of their own, in one segment at most.
    """

    playing: int
    own: int
    alike: bool = False

    def count(self, accumulator: Accumulator) -> int:
        """Returns the rows of an accumulator by agent."""
        return self.own if accumulator.reads_own else self.playing


def count_rows(playing: int, own_gaps: OwnGaps | None) -> Rows:
    """Returns the rows of accumulators, from `Instance.own_gaps`."""
    if own_gaps is None:
        return Rows(playing, playing)
    own = own_gaps.best.shape[-1]
    return Rows(playing, own, playing < own == own_gaps.best.size)


def start_accumulators(
    accumulators: tuple[Accumulator, ...], rows: Rows, arms: int, grid: Grid
) -> tuple[PyTree, ...]:
    """Returns the state of each accumulator at slot 0."""
    counts = [rows if x.counts_slots else rows.count(x) for x in accumulators]
    return tuple(
        _call(x, "start", n, arms, grid) for x, n in zip(accumulators, counts, strict=True)
    )


def _call(accumulator: Accumulator, function: str, *args: PyTree) -> PyTree:
    """Calls a function of an accumulator, and converts the result to arrays.

    Raises:
        Refusal: If the function fails: the error is not the algorithm's.
    """
    with errors_as(lambda _, why: _blame(accumulator, f"{function}: {why}")):
        return jax.tree.map(jnp.asarray, getattr(accumulator, function)(*args))


def _blame(accumulator: Accumulator, reason: str) -> Refusal:
    line = f"{accumulator.name} breaks the contract of accumulators: {PROMISE} Seen: {reason}"
    return Refusal.line(line)


def _describe_shapes(tree: PyTree) -> str:
    shapes = [f"{leaf.dtype}{leaf.shape}" for leaf in jax.tree.leaves(tree)]
    return " and ".join(shapes) or "nothing"


def accumulate(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    stretch: Callable[[], Stretch],
    grid: Grid,
) -> tuple[PyTree, ...]:
    """Returns the states after a stretch, which is computed only if there are accumulators."""
    if not accumulators:
        return states
    current = stretch()
    # Runs that are over get empty stretches while others continue.
    has_slots = current.stop > current.start

    def add_stretch(accumulator: Accumulator, old: PyTree) -> PyTree:
        new = _call(accumulator, "add", old, current, grid)
        pairs = zip(jax.tree.leaves(new), jax.tree.leaves(old), strict=False)
        structure: object = jax.tree.structure(old)
        matches = structure == jax.tree.structure(new) and all(
            x.shape == y.shape and np.result_type(x.dtype, y.dtype) == y.dtype for x, y in pairs
        )
        if not matches:
            shapes = map(_describe_shapes, (new, old))
            raise _blame(accumulator, f"add returns {' after '.join(shapes)}")
        return jax.tree.map(lambda x, y: jnp.where(has_slots, x.astype(y.dtype), y), new, old)

    return tuple(map(add_stretch, accumulators, states))


def accumulate_segments(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    stretch: Callable[[], Stretch],
    grid: Grid,
    ends: Ends | None,
) -> tuple[PyTree, ...]:
    """Returns as `accumulate`, for a stretch whose gaps have a leading segment axis."""
    if ends is None or not accumulators:
        return accumulate(accumulators, states, stretch, grid)
    whole = stretch()

    def add_part(
        states: tuple[PyTree, ...], part: tuple[Array, Array, dict[str, Array]]
    ) -> tuple[tuple[PyTree, ...], None]:
        begin, end, fields = part
        start, stop = (jnp.clip(slot, begin, end) for slot in (whole.start, whole.stop))
        now = whole._replace(start=start, stop=stop, **fields)
        return accumulate(accumulators, states, lambda: now, grid), None

    begins = jnp.concatenate([jnp.zeros_like(ends[:1]), ends[:-1]])
    fields = {name: getattr(whole, name) for name in ("gap", "own_gap", "excess")}
    return jax.lax.scan(add_part, states, (begins, ends, fields))[0]


def accumulate_slots(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    stretch: Callable[..., Stretch],
    slots: tuple[Array, ...],
    grid: Grid,
) -> tuple[PyTree, ...]:
    """Returns the states after several single slots.

    Args:
        accumulators: As in `accumulate`, as are ``states`` and ``grid``.
        states: The states before.
        stretch: Maps a slot of ``slots`` to its stretch.
        slots: What a stretch follows from, each with a leading slot axis.
        grid: Recorded slots.
    """

    def add_slots(accumulator: Accumulator, state: PyTree) -> PyTree:
        if accumulator.add_slots is not None:
            return accumulator.add_slots(state, jax.vmap(stretch)(*slots), grid)

        def add_slot(state: PyTree, slot: tuple[Array, ...]) -> tuple[PyTree, None]:
            (after,) = accumulate((accumulator,), (state,), lambda: stretch(*slot), grid)
            return after, None

        return jax.lax.scan(add_slot, state, slots)[0]

    return tuple(map(add_slots, accumulators, states))


def finish_accumulators(
    accumulators: tuple[Accumulator, ...],
    states: tuple[PyTree, ...],
    rows: Rows,
    arms: int,
    points: int,
    own_gaps: OwnGaps | None,
) -> dict[str, Array] | None:
    """Returns the values of accumulators by name; None if there are none."""
    values = {}
    for accumulator, state in zip(accumulators, states, strict=True):
        sizes = {"agent": rows.count(accumulator), "arm": arms, "time": points}
        known = (own_gaps,) if accumulator.counts_slots else ()
        end = _call(accumulator, "end", state, *known)
        shape = tuple(sizes[dim] for dim in accumulator.dims)
        if not isinstance(end, jax.Array) or end.shape != shape or end.dtype.kind != "f":
            text = f"{_describe_shapes(end)} in place of float64{shape}, over {accumulator.dims}"
            raise _blame(accumulator, f"end returns {text}")
        values[accumulator.name] = end
    return values or None
