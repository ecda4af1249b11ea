"""The tree's noise by itself: remembered, of the right variance, and everybody's own."""

import jax
import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from fmab_jax.algorithms.families import index, tree
from fmab_jax.sampling import keys

ROWS, ARMS = 4, 3
# Both ends of a power of two, many blocks, and the longest horizon.
COUNTS = np.array([1, 2, 3, 6, 7, 8, 11, 13, 1023, 1024, 99_999_999, 10**8])


def draw(seeds, counts, number=5, rows=ROWS, arms=ARMS):
    """Returns [seed, count, row, arm] noise, as it is drawn in a slot."""

    def one(seed, count, arm):
        key, zero = keys.seed_key(jnp.uint32(0), seed), jnp.float64(0.0)
        words = [keys.stream_key(key, 0, stream) for stream in (keys.NOISE, keys.LASTING)]
        beside = jnp.zeros((0, 0), jnp.int32)
        slot = index.Slot(jnp.int64(number), zero, zero, zero, zero, beside, zero, *words)
        return tree.draw_noise(slot, jnp.full(rows, arm), jnp.full(rows, count), arms)

    with jax.enable_x64(True):
        every = jax.vmap(one, (None, None, 0), out_axes=1)
        every = jax.jit(jax.vmap(jax.vmap(every, (None, 0, None)), (0, None, None)))
        count, arm = jnp.asarray(counts, jnp.float64), jnp.arange(arms, dtype=jnp.int32)
        return np.asarray(every(jnp.asarray(seeds, jnp.uint32), count, arm))


def test_a_block_keeps_its_noise():
    """Would catch noise that is drawn anew in another slot, batch, or with more rows: the mean of
    many releases would then tell the sum."""
    first = draw(np.arange(8), COUNTS)
    np.testing.assert_array_equal(first, draw(np.arange(8), COUNTS, number=77))
    np.testing.assert_array_equal(first[3:4, 2:6], draw([3], COUNTS[2:6]))
    np.testing.assert_array_equal(first, draw(np.arange(8), COUNTS, rows=9)[:, :, :ROWS])
    assert len(np.unique(first)) == first.size


def test_levels_are_the_most_blocks_that_hold_a_number():
    """Would catch a logarithm that rounds up at a power of two, or epsilon shared too thinly."""
    horizons = [1, 2, 3, 4, 7, 8, 1023, 1024, 2**20 - 1, 2**20, 10**8]
    with jax.enable_x64(True):
        actual = [float(tree.count_levels(jnp.float64(horizon))) for horizon in horizons]
    assert actual == [horizon.bit_length() for horizon in horizons]


def test_gossip_links_are_priced_and_counts_are_reported():
    """Would catch edges of counts that are charged, or a slot of the first pulls that is."""
    problem = fmab.Problem.uniform(5, 4)
    data = fmab.simulate(fmab.gossip_ucb("star"), problem, 50, 2, times=[4, 5, 50])
    np.testing.assert_array_equal(data.links.sel(meter="gossip")[0], [0, 1, 46])
    np.testing.assert_array_equal(data.links.sel(meter="counts")[0], [0, 4, 4 * 46])
    cost = fmab.communication_cost(data, server_price=0, peer_price=2)
    np.testing.assert_array_equal(cost[0], [0, 2, 92])
    exchange = fmab.gossip_ucb("star").exchange(5)
    assert exchange.vectors == 2 * (1 + 4) and exchange.views[0].over == 1
    assert not fmab.gossip_ucb().exchange(1).on("gossip")


def test_splitting_epsilon_over_arms_is_a_smaller_epsilon():
    """Would catch an epsilon / K that reaches the noise or the index alone."""
    problem = fmab.Problem.uniform(2, 4)
    split, whole = (
        fmab.simulate(algorithm, problem, 2000, 6)
        for algorithm in (fmab.tree_ucb(80.0, split=True), fmab.tree_ucb(20.0))
    )
    np.testing.assert_array_equal(split.regret, whole.regret)
    assert split.attrs["epsilon"] == 80.0 and whole.attrs["epsilon"] == 20.0
