"""Somebody's own noise, world, presence, reduction and algorithm: one file outside the package."""

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from fmab_jax.parameters import Real, Whole
from fmab_jax.sampling import keys


@dataclass(frozen=True)
class Logistic(fmab.Mechanism):
    """Logistic noise: the slope of its log density is at most 1 / scale."""

    name = "logistic"
    title = "logistic"
    scales = True

    def sample(self, words, lane, scale, draw=0):
        """Returns one noise per lane."""
        uniform = keys.uniform(*words, lane, draw)
        return scale * (jnp.log(uniform) - jnp.log1p(-uniform))

    def epsilon(self, scale, count, delta):
        """Returns the pure epsilon of one noise, which sums keep."""
        return 1.0 / scale

    def variance(self, scale):
        """Returns pi^2 scale^2 / 3."""
        return (math.pi * scale) ** 2 / 3.0

    def deviation(self, count, level, scale):
        """Returns the deviation of a sub-gamma law: the sum of Laplace noises of scale / k."""
        return scale * (math.pi * jnp.sqrt(2.0 * count * level / 3.0) + level)


@dataclass(frozen=True)
class Fading(fmab.World):
    """Means shrink at a slot, all by one factor."""

    name = "fading"
    title = "fading means"
    when: float = fmab.parameter(Real(low=0.0, high=1.0), "Share of the horizon.", default=0.5)
    factor: float = fmab.parameter(Real(low=0.0, high=1.0), "Of the means.", default=0.5)
    segments = 2

    def ends(self, horizon):
        """Returns the last slot before the change, and the horizon."""
        slot = jnp.floor(self.when * horizon.astype(jnp.float64))
        return jnp.stack([slot.astype(jnp.int64), horizon])

    def means(self, words, first):
        """Returns the means, and smaller ones."""
        return jnp.stack([first, self.factor * first])


@dataclass(frozen=True)
class Turns(fmab.Presence):
    """Agents are absent in turn: each of them in one round of several."""

    name = "turns"
    title = "agents that are absent in turn"
    period: int = fmab.parameter(Whole(low=2), "Rounds of a turn.", default=2)

    def is_heard(self, occasion, agent):
        """Tells which agents are there."""
        return (occasion.number + agent.astype(occasion.number.dtype)) % self.period != 0


@dataclass(frozen=True)
class Phased(fmab.cdp_mab):
    """CDP-MAB in phases that grow by a factor, with the radius and the noise of CDP-MAB."""

    name = "phased"
    title = "CDP-MAB in phases"
    source = "tests/plugs_whole.py"

    first: int = fmab.parameter(Whole(low=1), "Pulls of an arm in phase 1.", default=50)
    growth: float = fmab.parameter(
        Real(low=1.0, open_low=True), "Factor from a phase to the next.", default=2.0, symbol="g"
    )

    @staticmethod
    def pulls_per_arm(epoch):
        """Returns S_r, a geometric sum."""
        params = epoch.params
        return epoch.previous + jnp.ceil(params["first"] * params["growth"] ** (epoch.number - 1.0))


WORST = fmab.Reduce(
    "worst_regret",
    "largest regret of a seed",
    "reward",
    lambda record: record["regret"][:, -1],
    init=lambda: np.float64(0.0),
    add=lambda state, regret: jnp.maximum(state, jnp.max(regret)),
    merge=np.maximum,
    finish=lambda state: state,
)
