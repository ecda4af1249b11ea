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
PLACES = [(0, 0), (0, 7.5), (3.2, 1.8), (0.02, 900), (5e5, 3e5)]


@pytest.mark.parametrize("place", PLACES)
def test_draws_have_the_law_that_is_asked_for(place):
    """Would catch a parameter without its 1, ones for zeros, a test that keeps too much or too
    little, and numbers of a try that are used for the next."""
    ones, zeros = (np.full((RUNS, 1), float(item)) for item in place)
    with jax.enable_x64(True):
        slot = slot_of(7)
        drawn = np.asarray(jax.jit(lambda x, y: draw_beta(slot, x, y))(ones, zeros))[:, 0]
    law = scipy.stats.beta(1 + place[0], 1 + place[1])
    assert scipy.stats.kstest(drawn, law.cdf).pvalue > 1e-4
    spread = law.std() / RUNS**0.5
    assert abs(drawn.mean() - law.mean()) < 4.5 * spread
    assert 0 <= drawn.min() and drawn.max() <= 1


def test_batches_draw_what_single_runs_draw():
    """Would catch a loop that goes on for a run of a batch that has its numbers already."""
    rng = np.random.default_rng(1)
    ones, zeros = rng.gamma(1.0, 9.0, (2, 6, 4, 3))
    with jax.enable_x64(True):
        slot = slot_of(7)
        item = jax.jit(lambda x, y: draw_beta(slot, x, y))
        whole = jax.jit(jax.vmap(lambda x, y: draw_beta(slot, x, y)))(ones, zeros)
        single = jnp.stack([item(x, y) for x, y in zip(ones, zeros, strict=True)])
    np.testing.assert_array_equal(np.asarray(whole), np.asarray(single))
