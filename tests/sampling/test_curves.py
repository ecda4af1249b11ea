"""Time grids slot by slot, and curves against piecewise functions evaluated in fractions."""

import jax.numpy as jnp
import numpy as np
import pytest

from fmab_jax.sampling.curves import NEVER, Line, draw_line, start_curves, time_grid

pytestmark = pytest.mark.usefixtures("x64")
T12 = 10**12

GRIDS = [
    ((100, 4), [25, 50, 75, 100]),
    ((100, 3), [33, 66, 100]),
    ((10, 1), [10]),
    # Fewer slots where they would repeat.
    ((3, 100), [1, 2, 3]),
    ((1, 100, "log"), [1]),
    ((10**6, 7, "log"), [1, 10, 100, 1000, 10**4, 10**5, 10**6]),
    ((10**4, 1, "log"), [10**4]),
    ((5, 5, "log"), [1, 2, 3, 5]),
    ((T12, 7), [T12 * i // 7 for i in range(1, 8)]),
    ((T12 - 1, 2, "log"), [1, T12 - 1]),
    # Slots of the caller; the horizon is appended.
    ((100, [1, 10, 99]), [1, 10, 99, 100]),
    ((100, [0, 7]), [0, 7, 100]),
    ((T12, [T12 - 1]), [T12 - 1, T12]),
    ((100, np.array([3, 5], np.uint8)), [3, 5, 100]),
    # A number of slots may be any whole number.
    ((100, np.float64(2.0)), [50, 100]),
]


@pytest.mark.parametrize(("arguments", "slots"), GRIDS, ids=[str(a)[:40] for a, _ in GRIDS])
def test_grids(arguments, slots):
    """Catches a horizon that is missing or repeated, slots that float64 rounds, and a slot 0."""
    grid = time_grid(*arguments)
    assert grid.dtype == np.int64 and grid.tolist() == slots


@pytest.mark.parametrize("offset", [0, T12])
@pytest.mark.parametrize("waits", [False, True])
def test_a_line_continues_every_curve(waits, offset):
    """Catches a curve that is drawn along another one's values."""
    grid = offset + jnp.array([1, 5, 6, 9], jnp.int64)

    def draw(curves, start, ended):
        numbers = (20.0, 0.5, 3.0, 0.25)
        line = Line(jnp.int64(start), *map(jnp.float64, numbers), jnp.int64(ended), jnp.int32(7))
        return draw_line(curves, grid, line)

    empty = start_curves(grid, waits)
    assert not any(x.any() for x in empty if x is not None)
    first = draw(empty, offset + 5, offset + 6)
    assert first.regret.tolist() == [0.0, 0.0, 20.5, 22.0]
    assert first.rounds.tolist() == [0, 0, 7, 7]
    assert first.waiting is None if not waits else first.waiting.tolist() == [0.0, 0.0, 3.25, 4.0]
    for late in (NEVER, offset + 10):
        for value, before in zip(draw(first, late, late), first, strict=True):
            np.testing.assert_array_equal(value, before)
