"""Beta draws by rejection: their law, and that nobody else's tries change them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from test_equations import slot_of

from fmab_jax.algorithms.lazy_dp_ts import draw_beta

RUNS = 40_000
# Ones and zeros so far: none, one-sided, halves, many, and far more of one.
PLACES = [(0, 0), (1, 0), (0, 7.5), (0.5, 0.5), (3.2, 1.8), (40, 60), (0.02, 900), (5e5, 3e5)]


@pytest.mark.parametrize("place", PLACES)
def test_draws_have_the_law_that_is_asked_for(place):
    """Would catch a parameter without its 1, ones for zeros, a test that keeps too much or too
    little, and numbers of a try that are used for the next."""
    ones, zeros = (np.full((RUNS, 1), float(each)) for each in place)
    with jax.enable_x64(True):
        slot = slot_of(7)
        drawn = np.asarray(jax.jit(lambda x, y: draw_beta(slot, x, y))(ones, zeros))[:, 0]
    law = scipy.stats.beta(1 + place[0], 1 + place[1])
    assert scipy.stats.kstest(drawn, law.cdf).pvalue > 1e-4
    spread = law.std() / RUNS**0.5
    assert abs(drawn.mean() - law.mean()) < 4.5 * spread
    assert 0 <= drawn.min() and drawn.max() <= 1


def test_a_draw_depends_on_its_own_numbers_alone():
    """Would catch draws that change with how many rows there are, with what others draw from, or
    that are the same in two slots or of two arms."""
    rng = np.random.default_rng(0)
    ones, zeros = rng.gamma(1.0, 9.0, (2, 64, 3))

    def drawn(time, rows):
        with jax.enable_x64(True):
            slot = slot_of(time)
            return np.asarray(jax.jit(lambda x, y: draw_beta(slot, x, y))(*rows))

    every = drawn(7, (ones, zeros))
    np.testing.assert_array_equal(drawn(7, (ones[:5], zeros[:5])), every[:5])
    other = zeros.copy()
    other[1:] = 0.0
    np.testing.assert_array_equal(drawn(7, (ones, other))[0], every[0])
    assert not np.isin(drawn(8, (ones, zeros)), every).any()
    assert np.unique(drawn(7, (np.ones((9, 4)), np.ones((9, 4))))).size == 36


def test_batches_draw_what_single_runs_draw():
    """Would catch a loop that goes on for a run of a batch that has its numbers already."""
    rng = np.random.default_rng(1)
    ones, zeros = rng.gamma(1.0, 9.0, (2, 6, 4, 3))
    with jax.enable_x64(True):
        slot = slot_of(7)
        each = jax.jit(lambda x, y: draw_beta(slot, x, y))
        whole = jax.jit(jax.vmap(lambda x, y: draw_beta(slot, x, y)))(ones, zeros)
        single = jnp.stack([each(x, y) for x, y in zip(ones, zeros, strict=True)])
    np.testing.assert_array_equal(np.asarray(whole), np.asarray(single))
