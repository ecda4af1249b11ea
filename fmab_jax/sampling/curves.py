"""Time grids, and the values of a piecewise-linear run on them.

The regret of a run is linear in time between its knots: epoch ends, ends of waits, the horizon. So
a curve on a grid is exact at every grid point. Each stretch of the run writes its line over all
later grid points, and the next stretch overwrites it.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from fmab_jax.errors import array_of, choice, count, length, refuse
from fmab_jax.sampling.arrays import rounded, sum_in_turn
from fmab_jax.sampling.segments import Ends, overlap
from fmab_jax.sampling.shapes import Curve, Grid, Integer, Reals, Scalar

MAX_POINTS = 10**5


def time_grid(horizon: int, times: ArrayLike = 100, spacing: str = "linear") -> np.ndarray:
    """Returns the slots at which curves are recorded: whole, increasing, the last the horizon.

    Args:
        horizon: T, in slots.
        times: How many slots to choose (fewer where they would repeat), or the slots themselves, in
            [0, T] and increasing; T is appended if missing.
        spacing: "linear" or "log", for chosen slots.

    Returns:
        int64 [time].

    Raises:
        ValueError: If the slots are not whole, increasing and inside [0, T].
    """
    choice("spacing", spacing, ("linear", "log"), "choose one of them")
    remedy = "give slots, such as [1, 10, 100]"
    allowed = "a number of slots or a list of slots"
    is_list = isinstance(times, (list, tuple, range)) or getattr(times, "ndim", 0) > 0
    if not (is_list and isinstance(times, Sized)):
        points = count("times", times, 1, MAX_POINTS, "give the number of recorded slots")
        points = min(points, horizon)
        if spacing == "linear":
            # Exact in integers: float64 cannot hold every slot up to 10^12 x points.
            slots = [horizon * i // points for i in range(1, points + 1)]
        else:
            slots = [round(x) for x in np.geomspace(1.0, float(horizon), points)[:-1]] + [horizon]
        return np.unique(np.array(slots, np.int64))
    if length(times) > MAX_POINTS:
        refuse("times", length(times), f"at most {MAX_POINTS:,} slots", "record fewer")
    array = array_of("times", times, MAX_POINTS, allowed, remedy)
    if array.ndim != 1 or array.size == 0:
        refuse("times", times, allowed, remedy)
    whole = np.isfinite(array) & (np.floor(array) == array) & (array >= 0) & (array <= horizon)
    if not whole.all():
        bad = array[~whole][0].item()
        refuse("times", bad, f"whole slots in [0, {horizon:,}]", remedy)
    recorded = array.astype(np.int64)
    if (np.diff(recorded) <= 0).any():
        refuse("times", times, "increasing", "sort the slots and drop repeated ones")
    return recorded if recorded[-1] == horizon else np.append(recorded, np.int64(horizon))


class Line(NamedTuple):
    """A stretch of slots in which regret grows steadily; it holds until the next one begins.

    Where means change, regret grows steadily within each segment, and rates are [segment].

    Attributes:
        start: The slot before the stretch; `NEVER` for no stretch.
        regret: Regret of all agents up to that slot.
        rate: Regret per slot.
        waiting_regret: Part of the regret in waiting slots.
        waiting_rate: Regret per waiting slot; 0 if agents do not wait.
        round_end: The slot in which a round is completed; `NEVER` for none.
        rounds: Completed rounds up to that slot.
        messages: Slot of the messages, and their count up to it; () if they are not counted.
    """

    start: Integer
    regret: Scalar
    rate: Scalar
    waiting_regret: Scalar
    waiting_rate: Scalar
    round_end: Integer
    rounds: Integer
    messages: tuple[Integer, Integer] | tuple[()] = ()


NEVER = 2**62


def no_line(*shape: int, segments: tuple[int, ...] = (), counts: bool = False) -> Line:
    """Returns lines of no stretch, which change no curve; rates have an axis of segments."""
    never, zero, rate = jnp.full(shape, NEVER), jnp.zeros(shape), jnp.zeros((*shape, *segments))
    messages = (never, jnp.zeros(shape, jnp.int64)) if counts else ()
    return Line(never, zero, rate, zero, rate, never, jnp.zeros(shape, jnp.int32), messages)


class Curves(NamedTuple):
    """The curves of a run at the recorded slots.

    ``waiting`` is None if agents never wait, ``ends`` if means do not change, ``messages`` if they
    are not counted one by one.
    """

    regret: Curve
    waiting: Curve | None
    rounds: Grid
    ends: Ends | None = None
    messages: Grid | None = None


def start_curves(grid: Grid, waits: bool, ends: Ends | None = None, counts: bool = False) -> Curves:
    """Returns the curves of a run that has not begun."""
    zero = jnp.zeros(grid.shape)
    messages = zero.astype(jnp.int64) if counts else None
    return Curves(zero, zero if waits else None, zero.astype(jnp.int32), ends, messages)


def draw_line(curves: Curves, grid: Grid, line: Line) -> Curves:
    """Continues the curves of a run along a line, over all later slots."""
    waiting, ends = curves.waiting, curves.ends
    if waiting is not None:
        waiting = extend(waiting, grid, line.start, line.waiting_regret, line.waiting_rate, ends)
    return Curves(
        regret=extend(curves.regret, grid, line.start, line.regret, line.rate, ends),
        waiting=waiting,
        rounds=step(curves.rounds, grid, line.round_end, line.rounds),
        ends=ends,
        messages=(None if curves.messages is None else step(curves.messages, grid, *line.messages)),
    )


def extend(
    curve: Curve, grid: Grid, slot: Array, value: Reals, rate: Reals, ends: Ends | None = None
) -> Curve:
    """Continues a curve from (slot, value) at ``rate`` per slot, over all later grid points.

    One line for all points, or one for each; or, with the ``ends`` of segments, a rate for each
    segment.
    """
    if ends is not None:
        slots = jax.vmap(overlap, (None, None, 0), 1)(ends, slot, grid).astype(jnp.float64)
        growth = sum_in_turn(rounded(rate[:, None] * slots))
        return jnp.where(grid > slot, value + growth, curve)
    elapsed = (grid - slot).astype(jnp.float64)
    return jnp.where(elapsed > 0.0, value + rounded(rate * elapsed), curve)


def step(curve: Grid, grid: Grid, slot: Integer, value: Integer) -> Grid:
    """Sets a counting curve to ``value`` from ``slot`` on, that slot included."""
    return jnp.where(grid >= slot, value, curve)
