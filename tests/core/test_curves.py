"""Time grids slot by slot, and curves against piecewise functions evaluated in fractions."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fmab_jax.core import curves as trajectory
from fmab_jax.core.curves import NEVER, Line, draw_line, extend, start_curves, step, time_grid

pytestmark = pytest.mark.usefixtures("x64")
T12 = 10**12

GRIDS = [
    ((100, 4), [25, 50, 75, 100]),
    ((100, 3), [33, 66, 100]),
    ((10, 1), [10]),
    ((10, 10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    # Fewer slots where they would repeat.
    ((3, 100), [1, 2, 3]),
    ((1, 1), [1]),
    ((1, 100), [1]),
    ((1, 100, "log"), [1]),
    ((1, 1, "log"), [1]),
    ((10**6, 7, "log"), [1, 10, 100, 1000, 10**4, 10**5, 10**6]),
    ((10**4, 3, "log"), [1, 100, 10**4]),
    ((10**4, 1, "log"), [10**4]),
    ((10**4, 2, "log"), [1, 10**4]),
    ((5, 5, "log"), [1, 2, 3, 5]),
    ((T12, 3), [333_333_333_333, 666_666_666_666, T12]),
    ((T12, 7), [T12 * i // 7 for i in range(1, 8)]),
    ((T12, 5, "log"), [1, 1000, 10**6, 10**9, T12]),
    ((T12 - 1, 2, "log"), [1, T12 - 1]),
    # Slots as given; the horizon is appended.
    ((100, [1, 10, 99]), [1, 10, 99, 100]),
    ((100, [100]), [100]),
    ((100, [0, 7]), [0, 7, 100]),
    ((1, [0]), [0, 1]),
    ((100, (1.0, 1e1)), [1, 10, 100]),
    ((T12, [T12 - 1]), [T12 - 1, T12]),
    ((100, np.array([3, 5], np.uint8)), [3, 5, 100]),
    ((100, range(20, 101, 40)), [20, 60, 100]),
    # A number of slots may be any whole number.
    ((100, 2.0), [50, 100]),
    ((100, np.int64(2)), [50, 100]),
]


@pytest.mark.parametrize(("arguments", "slots"), GRIDS, ids=[str(a)[:40] for a, _ in GRIDS])
def test_grids(arguments, slots):
    """Catches a horizon that is missing or repeated, slots that float64 rounds, and a slot 0."""
    found = time_grid(*arguments)
    assert found.dtype == np.int64 and found.tolist() == slots


@pytest.mark.parametrize("spacing", ["linear", "log"])
@pytest.mark.parametrize("horizon", [2, 99, 10**4, 10**9 + 7, T12])
def test_made_grids_increase_to_the_horizon(spacing, horizon):
    """Catches repeated slots, which would make a time axis that cannot be searched."""
    for points in (1, 2, 100, 997):
        grid = time_grid(horizon, points, spacing)
        assert grid[0] >= 1 and grid[-1] == horizon and (np.diff(grid) > 0).all()
        assert len(grid) == min(points, horizon) or (spacing == "log" and len(grid) < points)


def test_linear_slots_are_even():
    """Catches slots taken through float64, which is exact to 2^53 only, far below T x points."""
    grid = time_grid(T12 - 1, 10**5)
    exact = [Fraction(T12 - 1, 10**5) * i for i in range(1, 10**5 + 1)]
    assert grid.tolist() == [slot.__floor__() for slot in exact]


def test_log_slots_are_even_in_the_logarithm():
    """Catches a grid that is geometric in the wrong ratio or starts late."""
    grid = time_grid(T12, 100, "log")
    due = 1e12 ** (np.arange(100) / 99)
    kept = np.unique(np.round(due)).astype(np.int64)
    np.testing.assert_allclose(grid, kept, rtol=1e-12, atol=1)
    assert grid[0] == 1 and 90 < len(grid) <= 100


def test_most_points_that_are_allowed():
    """Catches a limit that refuses its own end."""
    assert len(time_grid(10**6, trajectory.MAX_POINTS)) == trajectory.MAX_POINTS
    assert len(time_grid(10**6, np.arange(1, 10**5 + 1))) == trajectory.MAX_POINTS + 1


# --- curves ---


class Piecewise:
    """A run by hand: regret is linear between knots, a count jumps at them."""

    def __init__(self, rng, horizon, pieces):
        inner = sorted({int(slot) for slot in rng.integers(0, horizon, pieces)})
        self.starts = [0, *[slot for slot in inner if slot > 0]]
        # Rates and their multiples are exact in float64, so that curves can be compared exactly.
        self.rates = [Fraction(int(k), 8) for k in rng.integers(0, 100, len(self.starts))]
        self.values = [Fraction(0)]
        for start, end, rate in zip(self.starts, self.starts[1:], self.rates, strict=False):
            self.values.append(self.values[-1] + rate * (end - start))

    def piece(self, slot):
        """Returns the last piece that starts at or before a slot."""
        return max(i for i, start in enumerate(self.starts) if start <= slot)

    def value(self, slot):
        """Returns the regret up to a slot."""
        i = self.piece(slot)
        return self.values[i] + self.rates[i] * (slot - self.starts[i])


@pytest.mark.parametrize("horizon", [1, 2, 50, 10**6, T12])
def test_curves_are_exact_on_any_grid(horizon):
    """Catches a knot counted twice or skipped, a line that starts a slot late, and float32 slots.

    Grids that hit the knots, miss them, or are coarser than the pieces; lengths up to 10^12.
    """
    rng = np.random.default_rng(horizon % 1000)

    @jax.jit
    def play(grid, starts, values, rates):
        zero = jnp.zeros(grid.shape)
        curve, counts = zero, zero.astype(jnp.int64)
        for i in range(starts.shape[0]):
            curve = extend(curve, grid, starts[i], values[i], rates[i])
            counts = step(counts, grid, starts[i], jnp.int64(i))
        return curve, counts

    for pieces in (0, 6):
        run = Piecewise(rng, horizon, pieces)
        near = {min(max(start + off, 0), horizon) for start in run.starts for off in (-1, 0, 1)}
        for slots in (sorted(near | {horizon}), [horizon], time_grid(horizon, 13).tolist()):
            curve, counts = play(
                jnp.array(slots, jnp.int64),
                jnp.array(run.starts, jnp.int64),
                jnp.array([float(value) for value in run.values]),
                jnp.array([float(rate) for rate in run.rates]),
            )
            assert curve.dtype == jnp.float64 and counts.dtype == jnp.int64
            assert [Fraction(float(value)) for value in curve] == [run.value(s) for s in slots]
            assert counts.tolist() == [run.piece(slot) for slot in slots]


def test_a_piece_leaves_the_past_alone():
    """Catches a line drawn backwards, and a value at the knot itself that belongs to the past."""
    grid = jnp.array([1, 5, 6, 9], jnp.int64)
    curve = jnp.array([1.0, 2.0, 3.0, 4.0])
    found = extend(curve, grid, jnp.int64(5), jnp.float64(20.0), jnp.float64(0.5))
    assert found.tolist() == [1.0, 2.0, 20.5, 22.0]
    # A count is charged at the end of its round: in that slot already.
    counts = step(jnp.array([0, 0, 1, 1]), grid, jnp.int64(5), jnp.int64(7))
    assert counts.tolist() == [0, 7, 7, 7]


@pytest.mark.parametrize("waits", [False, True])
def test_a_line_continues_every_curve(waits):
    """Catches a curve that is drawn along another one's values, a stretch or a round that never
    was and shows, and waits that nobody asked for."""
    grid = jnp.array([1, 5, 6, 9], jnp.int64)

    def drawn(curves, start, ended):
        values = (20.0, 0.5, 3.0, 0.25)
        line = Line(jnp.int64(start), *map(jnp.float64, values), jnp.int64(ended), jnp.int32(7))
        return draw_line(curves, grid, line)

    empty = start_curves(grid, waits)
    assert not any(x.any() for x in empty if x is not None)
    first = drawn(empty, 5, 6)
    assert first.regret.tolist() == [0.0, 0.0, 20.5, 22.0]
    assert first.rounds.tolist() == [0, 0, 7, 7]
    assert first.waiting is None if not waits else first.waiting.tolist() == [0.0, 0.0, 3.25, 4.0]
    for mine, before in zip(drawn(first, NEVER, NEVER), first, strict=True):
        np.testing.assert_array_equal(mine, before)


def test_no_pieces_past_the_horizon_are_seen():
    """Catches a piece that starts at or after the last slot and still writes."""
    grid, curve = jnp.array([3, 10], jnp.int64), jnp.array([1.5, 2.5])
    for slot in (10, 11, T12):
        found = extend(curve, grid, jnp.int64(slot), jnp.float64(9.0), jnp.float64(9.0))
        assert found.tolist() == [1.5, 2.5]
    assert step(jnp.array([0, 1]), grid, jnp.int64(11), jnp.int64(2)).tolist() == [0, 1]


def test_long_curves_lose_nothing():
    """Catches slots in 32 bits: 10^12 slots of regret 0.1 by a hundred agents."""
    grid = jnp.asarray(time_grid(T12, 9))
    rate = 100 * 0.1
    found = extend(jnp.zeros(9), grid, jnp.int64(12345), jnp.float64(0.75), jnp.float64(rate))
    due = [Fraction(3, 4) + Fraction(rate) * (slot - 12345) for slot in grid.tolist()]
    np.testing.assert_allclose(found, [float(value) for value in due], rtol=1e-15)
