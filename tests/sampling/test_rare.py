"""Work that few elements need, or many share: the bits of all of it, and who is not worked for."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import jit_for

from fmab_jax.sampling import loops, rare
from fmab_jax.sampling.distinct import map_distinct
from fmab_jax.sampling.lookup import Columns, Table

pytestmark = pytest.mark.usefixtures("x64")
PLATFORMS = ("cpu", "gpu")
RNG = np.random.default_rng(0)


def whole(*shape):
    """Returns whole numbers."""
    return RNG.integers(1, 10**6, shape).astype(np.float64)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("asked", [0, 3, 500, 5000, (900, 0), (900, 70)])
def test_what_is_not_asked_for_is_never_worked_out(asked, long, platform):
    """Catches elements that need nothing beside those that do, or work for every trial."""
    calls = []
    size, asked = asked if isinstance(asked, tuple) else (5000, asked)

    def exact(x):
        jax.debug.callback(lambda x: calls.append(np.asarray(x)), x)
        return 2.0 * x

    x = np.arange(float(size)).reshape(50, -1)
    where = np.zeros(size, bool)
    where[RNG.permutation(size)[:asked]] = True
    where = where.reshape(x.shape)
    draw = jax.vmap(lambda where, x: rare.rare(where, exact, x, x, slow=long))
    actual = jit_for(platform, draw)(where, x)
    jax.effects_barrier()
    np.testing.assert_array_equal(actual, np.where(where, 2 * x, x))
    chunk = {"cpu": 64 if size < 1000 else 78, "gpu": min(size, 4096 if long else 2**18)}[platform]
    if platform == "cpu" and not long:
        # So few are worked out all at once.
        chunk = size if size < 1000 else 312
    assert len(calls) == -(-asked // chunk) and all(len(item) == chunk for item in calls)
    np.testing.assert_array_equal(np.unique(np.concatenate([[], *calls])), np.sort(x[where]))


@pytest.mark.parametrize("asked", [False, True])
def test_what_nobody_asks_for_is_no_work_for_all(asked):
    """Catches a branch that becomes a choice between two results where trials are batched."""
    calls = []

    def exact(x):
        jax.debug.callback(lambda x: calls.append(x), x)
        return 2.0 * x

    where, x = np.zeros((3, 4), bool), np.arange(12.0).reshape(3, 4)
    where[1, 2] = asked
    draw = jax.vmap(lambda where, x: rare.where_any(where, exact, x, x))
    actual = jax.jit(draw)(where, x)
    jax.effects_barrier()
    np.testing.assert_array_equal(actual, np.where(where, 2 * x, x))
    assert bool(calls) == asked


@pytest.mark.parametrize("distinct", [5, 150])
@pytest.mark.parametrize("platform", [*PLATFORMS, "gpu, one bin"])
def test_equal_operands_are_computed_once(distinct, platform, monkeypatch):
    """Catches the result of other operands, of a bin that is shared or of a chunk after the first,
    NaN that is not equal to itself, and work for every row."""
    monkeypatch.setattr("fmab_jax.sampling.distinct._ROWS", 64)
    if "bin" in platform:
        monkeypatch.setattr("fmab_jax.sampling.distinct._ODD", 0)
    calls = []

    def compute(x, y):
        jax.debug.callback(lambda x: calls.append(x), x)
        return x["value"] + y.astype(np.float64), {"negative": -y}

    kind = RNG.permutation(np.arange(300) % distinct)
    value = np.where(kind == 0, np.nan, kind % 7)
    draw = jit_for(platform[:3], lambda *given: map_distinct(compute, *given))
    actual, other = draw({"value": value}, kind)
    jax.effects_barrier()
    np.testing.assert_array_equal(actual, value + kind)
    np.testing.assert_array_equal(other["negative"], -kind)
    computed = (kind != kind[0]).sum() + 1 if "bin" in platform else distinct
    on_cpu = 16 if distinct == 5 else 300
    assert len(calls) == (on_cpu if platform == "cpu" else 64 * -(-computed // 64))


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("kind", [Table, Columns])
def test_numbers_are_put_where_they_lie(kind, batched, together):
    """Catches a number in another row, place or trial, one that nobody asks for, and one that is
    not read where it was put."""
    values, new = whole(3, 8, 7), whole(3, 8)
    row = np.stack([RNG.permutation(8) for _ in range(3)]).astype(np.int32)
    place, where = RNG.integers(7, size=(3, 8)).astype(np.int32), RNG.random((3, 8)) < 0.5
    expected = values.copy()
    for trial in range(3):
        at = where[trial]
        expected[trial, row[trial, at], place[trial, at]] = new[trial, at]

    swap = (lambda x: x) if kind is Table else jnp.transpose

    def put(values, row, place, new, where):
        return swap(kind(swap(values), row).put(place, new, where).values)

    # Elements are in one array, or batched over a table that they share.
    one = jax.vmap(put, (None, 0, 0, 0, 0), out_axes=None) if together else put
    if batched:
        actual = jax.jit(jax.vmap(one))(values, row, place, new, where)
    else:
        given = (values, row, place, new, where)
        actual = np.stack([jax.jit(one)(*(x[trial] for x in given)) for trial in range(3)])
    np.testing.assert_array_equal(actual, expected)
    read = kind(swap(jnp.asarray(actual[0])), row[0])[place[0]]
    np.testing.assert_array_equal(read, expected[0, row[0], place[0]])


@pytest.mark.parametrize("most", [39, 89])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_loops_end_where_they_end(platform, most):
    """Catches a step left out, one too many, or one of another number."""

    def halved(x):
        def step(number, state):
            x, steps = state
            return jnp.floor(x / 2), jnp.where(x > 0, number.astype(np.float64) + 1, steps)

        return loops.repeat_steps(step, (x, jnp.zeros(x.shape)), lambda _, s: s[0] > 0, most)[1]

    def added(x):
        return loops.short_loop(5, lambda number, total: 2 * total + number, x)

    x = np.array([[0, 1, 2, 3], [2.0 ** (most - 1), 7, 8, 2.0**30]])
    np.testing.assert_array_equal(
        jit_for(platform, jax.vmap(halved))(x), [[0, 1, 2, 2], [most, 3, 4, 31]]
    )
    np.testing.assert_array_equal(jit_for(platform, jax.vmap(added))(x), 32 * x + 26)
