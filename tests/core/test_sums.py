"""Sums that are drawn agent by agent, where what each agent adds is sure; work that many share."""

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from altered import altered

import fmab_jax as fmab
from fmab_jax.core import arrays, keys, sums
from fmab_jax.core.rewards import Bernoulli
from fmab_jax.core.scope import own_settings

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


@pytest.mark.parametrize(
    ("distinct", "worked_out"), [(1, 16), (16, 16), (17, 96)], ids=["one", "sixteen", "more"]
)
def test_what_many_ask_for_is_worked_out_once(distinct, worked_out):
    """Would catch another's answer, zeros of either sign or missing values taken for one another,
    and work that is done for every trial.

    Mutants: `<=` for `<` in the branch; `_FEW` of 96; numbers compared in place of their bits;
    `order` for its inverse.
    """
    counted = []

    def slow(x, y):
        def seen(x):
            counted.append(len(np.ravel(x)))
            return x

        same = jax.ShapeDtypeStruct((), jnp.float64)
        return {"x": jax.pure_callback(seen, same, x, vmap_method="expand_dims"), "y": 1.0 / y}

    values = np.array([np.nan, *np.random.default_rng(0).normal(size=15)])[: min(distinct, 8)]
    asked = [(x, zero) for x in values for zero in (0.0, -0.0)]
    asked = (asked + [(7.0, 3.0)])[:distinct]
    rows = np.random.default_rng(1).permutation(np.resize(np.arange(distinct), 96))
    x, y = np.array(asked)[rows].T
    with own_settings(), np.errstate(divide="ignore"):
        found = jax.jit(jax.vmap(arrays.once_for_equals(slow)))(x, y)
        found, wanted = jax.tree.map(np.asarray, found), 1.0 / y
    np.testing.assert_array_equal(found["x"], x)
    np.testing.assert_array_equal(found["y"], wanted)
    assert counted == [worked_out]


def test_whole_numbers_that_differ_are_not_taken_for_one_another():
    """Would catch integers told apart as float64, which has one number for several of them."""
    with own_settings():
        whole = 2**53 + jnp.arange(20) % 2
        found = jax.jit(jax.vmap(arrays.once_for_equals(lambda x: x + 1)))(whole)
        np.testing.assert_array_equal(found, whole + 1)


READY = {
    "as it is given": lambda epoch, radius: (radius, jnp.sqrt(epoch.pulls)),
    "a constant": lambda epoch, radius: (jnp.float64(2.0), jnp.abs(radius) / 2.0),
    "a number of Python": lambda epoch, radius: (2, jnp.abs(radius) / 2.0),
    "an array of constants": lambda epoch, radius: (np.ones(3), jnp.abs(radius), jnp.zeros(2)),
    "the epoch": lambda epoch, radius: epoch,
}


@pytest.mark.parametrize("name", READY)
def test_what_is_handed_on_is_what_was_given(name):
    """Would catch zeros for a radius that is handed on, and a constant that is refused."""

    def judged(heard, epoch):
        ready = heard.prepared
        radius = {
            "as it is given": lambda: ready[0],
            "a constant": lambda: ready[0] * ready[1],
            "a number of Python": lambda: range(5)[ready[0]] * ready[1],
            "an array of constants": lambda: ready[0][2] * ready[1] + ready[2][0],
            "the epoch": lambda: jnp.where(ready.pulls == epoch.pulls, heard.radius, 0.0),
        }[name]()
        return heard.best - heard.aggregate > 2.0 * radius

    problem, given = fmab.Problem.uniform(3, 4), {"horizon": 10**5, "seeds": 40, "times": 2}
    own = {"prepared": staticmethod(READY[name]), "worse": staticmethod(judged)}
    found = fmab.simulate(altered(fmab.dp_se, **own)(1.0), problem, **given)
    own = {"worse": staticmethod(lambda heard, _: heard.best - heard.aggregate > 2 * heard.radius)}
    plain = fmab.simulate(altered(fmab.dp_se, **own)(1.0), problem, **given)
    np.testing.assert_array_equal(found.regret, plain.regret)
    np.testing.assert_array_equal(found.rounds_made, plain.rounds_made)


def test_trials_of_many_kinds_have_the_bits_of_each_alone():
    """Would catch tilts of one configuration used for another's trials in one batch."""
    problem, given = fmab.Problem.uniform(4, 5), {"horizon": 3000, "times": 3}
    levels = [0.2 * 1.2**i for i in range(24)]
    both = fmab.sweep(fmab.kl_se, problem, epsilon=levels, seeds=8, batch=256, **given)
    for place in (0, 11, 23):
        alone = fmab.simulate(fmab.kl_se(levels[place]), problem, seeds=8, **given)
        mine = both.isel(epsilon=place)
        np.testing.assert_array_equal(mine.regret.values, alone.regret.values)
        np.testing.assert_array_equal(mine.rounds_made.values, alone.rounds_made.values)
