"""Work that few elements need, or many share: the bits of all of it, and who is not worked for."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from draws import jit_for

from fmab_jax.core import rare
from fmab_jax.core.rare import Table

pytestmark = pytest.mark.usefixtures("x64")
PLATFORMS = ("cpu", "gpu")
RNG = np.random.default_rng(0)

# --- what few elements need ---


def whole(*shape):
    """Returns whole numbers."""
    return RNG.integers(1, 10**6, shape).astype(np.float64)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("asked", [0, 3, 500, 5000, (900, 0), (900, 70)])
def test_what_is_not_asked_for_is_never_worked_out(asked, long, platform):
    """Catches elements that need nothing beside those that do, work for each trial of a batch, a
    loop that goes on after the last one, and what takes long done for many at once."""
    calls = []
    size, asked = asked if isinstance(asked, tuple) else (5000, asked)

    def exact(x):
        jax.debug.callback(lambda x: calls.append(np.asarray(x)), x)
        return 2.0 * x

    x = np.arange(float(size)).reshape(50, -1)
    where = np.zeros(size, bool)
    where[RNG.permutation(size)[:asked]] = True
    where = where.reshape(x.shape)
    draw = jax.vmap(lambda where, x: rare.rare(where, exact, x, x, long=long))
    found = jit_for(platform, draw)(where, x)
    jax.effects_barrier()
    np.testing.assert_array_equal(found, np.where(where, 2 * x, x))
    chunk = {"cpu": 64 if size < 1000 else 78, "gpu": min(size, 1024)}[platform]
    if platform == "cpu" and not long:
        # So few are worked out all at once.
        chunk = size if size < 1000 else 312
    assert len(calls) == -(-asked // chunk) and all(len(each) == chunk for each in calls)
    np.testing.assert_array_equal(np.unique(np.concatenate([[], *calls])), np.sort(x[where]))


# --- rows that are read where they lie ---


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("batched", [False, True])
def test_numbers_are_put_where_they_lie(batched, together):
    """Catches a number in another row or place, one that nobody asks for, and, under ``vmap``, a
    table of which only one element's number is kept, or one of another trial."""
    values, new = whole(3, 8, 7), whole(3, 8)
    row = np.stack([RNG.permutation(8) for _ in range(3)]).astype(np.int32)
    place, where = RNG.integers(7, size=(3, 8)).astype(np.int32), RNG.random((3, 8)) < 0.5
    wanted = values.copy()
    for trial in range(3):
        at = where[trial]
        wanted[trial, row[trial, at], place[trial, at]] = new[trial, at]

    def put(values, row, place, new, where):
        return Table(values, row).put(place, new, where).values

    # Elements are in one array, or batched over a table that they share.
    one = jax.vmap(put, (None, 0, 0, 0, 0), out_axes=None) if together else put
    if batched:
        found = jax.jit(jax.vmap(one))(values, row, place, new, where)
    else:
        given = (values, row, place, new, where)
        found = np.stack([jax.jit(one)(*(x[trial] for x in given)) for trial in range(3)])
    np.testing.assert_array_equal(found, wanted)


# --- loops ---


@pytest.mark.parametrize("most", [39, 89])
@pytest.mark.parametrize("platform", PLATFORMS)
def test_loops_end_where_they_end(platform, most):
    """Catches a step left out, one too many, and one of another number, in a line, and in passes
    that are counted or not; an end that is that of the first trial; and steps by the largest trial
    for all others."""

    def halved(x):
        def step(number, state):
            x, steps = state
            return jnp.floor(x / 2), jnp.where(x > 0, number.astype(np.float64) + 1, steps)

        return rare.repeated(step, (x, jnp.zeros(x.shape)), lambda _, s: s[0] > 0, most)[1]

    def added(x):
        return rare.short_loop(5, lambda number, total: 2 * total + number, x)

    x = np.array([[0, 1, 2, 3], [2.0 ** (most - 1), 7, 8, 2.0**30]])
    np.testing.assert_array_equal(
        jit_for(platform, jax.vmap(halved))(x), [[0, 1, 2, 2], [most, 3, 4, 31]]
    )
    np.testing.assert_array_equal(jit_for(platform, jax.vmap(added))(x), 32 * x + 26)


# --- what many share ---


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(("distinct", "few"), [(1, True), (16, True), (17, False)])
def test_what_many_ask_for_is_worked_out_once(distinct, few, platform):
    """Catches another's answer, zeros of either sign or missing values taken for one another, and
    work that is done for every trial."""
    counted = []

    def slow(x, pair):
        def seen(x):
            counted.append(np.size(x))
            return x

        same = jax.ShapeDtypeStruct((), jnp.float64)
        x = jax.pure_callback(seen, same, x, vmap_method="expand_dims")
        return {"x": x, "y": 1.0 / pair["y"], "number": pair["number"] + 1}

    values = np.array([np.nan, *RNG.normal(size=15)])[: min(distinct, 8)]
    asked = [(x, zero) for x in values for zero in (0.0, -0.0)]
    asked = [*asked, (7.0, 3.0)][:distinct]
    rows = RNG.permutation(np.resize(np.arange(distinct), 96))
    x, y = np.array(asked)[rows].T
    pair = {"y": y, "number": rows.astype(np.int64) * 0 + 2**53}
    with np.errstate(divide="ignore"):
        found = jit_for(platform, functools.partial(rare.once_for_all, slow))(x, pair)
        found, wanted = jax.tree.map(np.asarray, found), 1.0 / y
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["y"], wanted)
    np.testing.assert_array_equal(found["number"], 2**53 + 1)
    assert sum(counted) == (16 if few and platform == "cpu" else 96)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    ("size", "elements", "block"), [(96, 2**12, 16), (96, 3, 32), (7, 2**12, 1), (12, 2**20, 1)]
)
def test_blocks_are_of_a_size_that_a_cache_holds(size, elements, block, platform):
    """Catches trials of another block, a block that does not divide their number, and arrays of
    all trials at once on a processor."""
    counted = []

    def function(pair, key):
        def seen(x):
            counted.append(len(np.ravel(x)))
            return x

        same = jax.ShapeDtypeStruct((), jnp.float64)
        x = jax.pure_callback(seen, same, pair["x"], vmap_method="expand_dims")
        return {"x": x + pair["rows"].sum(), "u": jax.random.uniform(key)}

    key = jax.random.split(jax.random.key(0), size)
    given = {"x": whole(size), "rows": whole(size, 3)}
    found = jit_for(platform, rare.mapped_in_blocks(function, elements))(given, key)
    np.testing.assert_array_equal(found["x"], given["x"] + given["rows"].sum(axis=1))
    np.testing.assert_array_equal(found["u"], jax.vmap(jax.random.uniform)(key))
    assert counted == ([block] * (size // block) if platform == "cpu" else [size])
