"""Time grids slot by slot, and curves against piecewise functions evaluated in fractions."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fmab_jax.core.curves import NEVER, Line, blank, draw_line, extend, step, time_grid

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


@pytest.mark.parametrize("waits", [False, True])
def test_a_line_continues_every_curve(waits):
    """Catches a curve that is drawn along another one's values, a stretch or a round that never
    was and shows, and waits that nobody asked for."""
    grid = jnp.array([1, 5, 6, 9], jnp.int64)

    def drawn(curves, start, ended):
        values = (20.0, 0.5, 3.0, 0.25)
        line = Line(jnp.int64(start), *map(jnp.float64, values), jnp.int64(ended), jnp.int32(7))
        return draw_line(curves, grid, line)

    empty = blank(grid, waits)
    assert not any(x.any() for x in empty if x is not None)
    first = drawn(empty, 5, 6)
    assert first.regret.tolist() == [0.0, 0.0, 20.5, 22.0]
    assert first.rounds.tolist() == [0, 0, 7, 7]
    assert first.waiting is None if not waits else first.waiting.tolist() == [0.0, 0.0, 3.25, 4.0]
    for mine, before in zip(drawn(first, NEVER, NEVER), first, strict=True):
        np.testing.assert_array_equal(mine, before)
