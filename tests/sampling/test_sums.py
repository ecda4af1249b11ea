"""Sums over agents that differ, where what each agent adds is sure; what a plug-in hands on."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from altered import altered
from draws import group_sums

import fmab_jax as fmab
from fmab_jax.parts.rewards import Bernoulli
from fmab_jax.sampling import keys

ARMS = 4


@dataclass(frozen=True)
class Sure(Bernoulli):
    """Rewards that are the mean: no sum has a variance, so that each is drawn agent by agent."""

    checked_from = math.inf

    def smooth(self, total):
        return total[1] < 0.0

    def quantile(self, u, pulls, total):
        return jnp.full_like(u, -1.0)

    def total(self, k0, k1, lane, pulls, *parameters):
        return pulls * parameters[0]


@pytest.mark.parametrize("agents", [64, 65, 129])
def test_no_agent_is_left_out_of_a_sum_of_many(agents):
    """Would catch the first or the last agent of a block of 64 left out, or one added twice."""
    means = np.random.default_rng(agents).integers(1, 2**20, (agents, ARMS)) / 2.0**20
    member = np.zeros((2, agents))
    # Of 65 and 129, the last block has one agent, the second group's.
    member[0, : agents // 2] = member[1, agents // 2 :] = 1.0
    with jax.enable_x64(True):
        words = keys.Words(jnp.uint32(3), jnp.uint32(4))
        given = jnp.arange(ARMS), ARMS, 5.0, (jnp.asarray(means),), jnp.asarray(member)
        actual = jax.jit(lambda: group_sums(Sure(), words, *given))()
    np.testing.assert_array_equal(actual.T, 5 * member @ means)


@pytest.mark.parametrize("constant", [2, jnp.full(3, 2.0)], ids=str)
def test_what_is_handed_on_is_what_was_given(constant):
    """Would catch zeros for a radius that is handed on, and a constant that is refused."""

    def worse(aggregate, epoch):
        radius, known, number = aggregate.precomputed
        number = number if isinstance(constant, int) else number[2]
        behind = aggregate.best - aggregate.mean > number * radius
        return behind & (known.pulls == epoch.pulls)

    prepared = staticmethod(lambda epoch, radius: (radius, epoch, constant))
    problem, size = fmab.Problem.uniform(3, 4), {"horizon": 10**5, "seeds": 40, "times": 2}
    own = {"precompute": prepared, "worse": staticmethod(worse)}
    run = fmab.simulate(altered(fmab.dp_se, **own)(1.0), problem, **size)
    own = {
        "worse": staticmethod(
            lambda aggregate, _: aggregate.best - aggregate.mean > 2 * aggregate.radius
        )
    }
    plain = fmab.simulate(altered(fmab.dp_se, **own)(1.0), problem, **size)
    np.testing.assert_array_equal(run.regret, plain.regret)
    np.testing.assert_array_equal(run.rounds_made, plain.rounds_made)


def test_trials_of_many_kinds_have_the_bits_of_each_alone():
    """Would catch tilts of one configuration used for another's trials in one batch."""
    problem, size = fmab.Problem.uniform(4, 5), {"horizon": 3000, "times": 3, "seeds": 8}
    levels = [0.2 * 2**i for i in range(6)]
    swept = fmab.sweep(fmab.kl_se, problem, epsilon=levels, batch=256, **size)
    alone = fmab.simulate(fmab.kl_se(levels[2]), problem, **size)
    np.testing.assert_array_equal(swept.regret[2].values, alone.regret.values)
    np.testing.assert_array_equal(swept.rounds_made[2].values, alone.rounds_made.values)
