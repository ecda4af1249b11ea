"""Sums that are drawn agent by agent, where what each agent adds is sure."""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fmab_jax.core import arrays, keys, sums
from fmab_jax.core.rewards import Bernoulli

ARMS = 4


@dataclass(frozen=True)
class Sure(Bernoulli):
    """Rewards that are the mean: no sum has a variance, so that each is drawn agent by agent."""

    checked_from = math.inf

    def smooth(self, total):
        return total[1] < 0.0

    def quantile(self, u, pulls, total):
        return jnp.full_like(u, -1.0)

    def total_of_few(self, k0, k1, lane, pulls, *parameters):
        return pulls * parameters[0]


@functools.partial(jax.jit, static_argnums=0)
def drawn(law, pulls, means, member):
    """Returns the sums of all groups, [group, arm]."""
    cumulants = sums.group_cumulants(law, (means,), member)
    words = keys.Words(jnp.uint32(3), jnp.uint32(4))
    arm = jnp.arange(ARMS, dtype=jnp.uint32)
    draw = sums.group_sum(law, words, arm, ARMS, pulls, cumulants, (means,), member)
    need = jnp.ones((len(member), ARMS), bool)
    found = arrays.masked_map(draw.sample, need, *draw.operands, outputs=draw.outputs)
    return draw.finish(need, *found)


@pytest.mark.parametrize("agents", [64, 65, 129])
def test_no_agent_is_left_out_of_a_sum_of_many(agents):
    """Would catch the first or the last agent of a block of 64 left out, or one added twice."""
    means = np.random.default_rng(agents).integers(1, 2**20, (agents, ARMS)) / 2.0**20
    member = np.zeros((2, agents))
    # Of 65 and 129, the last block has one agent, the second group's.
    member[0, : agents // 2] = member[1, agents // 2 :] = 1.0
    with jax.enable_x64(True):
        found = drawn(Sure(), 5.0, jnp.asarray(means), jnp.asarray(member))
    np.testing.assert_array_equal(found, 5 * member @ means)
