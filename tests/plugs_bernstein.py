"""Somebody's own elimination, by variance: a file outside the package."""

from dataclasses import dataclass

import jax.numpy as jnp

import fmab_jax as fmab
from fmab_jax.parts.exchanges import server


@dataclass(frozen=True)
class Bernstein(fmab.Elimination):
    """Elimination by empirical Bernstein bounds; the variance is m (1 - m), exact for 0 and 1."""

    name = "bernstein"
    title = "Bernstein elimination"
    source = "Audibert, Munos and Szepesvari, 2009"
    communication = "a server hears all agents after each epoch"
    trusted = "the server, with sums"
    elementwise = True

    first: int = 8

    def exchange(self, agents):
        return server(agents)

    @staticmethod
    def pulls_per_arm(epoch):
        return epoch.params["first"] * 2.0 ** (epoch.number - 1.0)

    @staticmethod
    def radius(epoch):
        return jnp.log(6.0 * epoch.arms * epoch.number**2 * epoch.horizon)  # log(3 / delta)

    @classmethod
    def worse(cls, aggregate, epoch):
        log, count = aggregate.radius, aggregate.rewards
        wide = [jnp.sqrt(2 * m * (1 - m) * log / count) for m in (aggregate.mean, aggregate.best)]
        return aggregate.best - aggregate.mean >= wide[0] + wide[1] + 6 * log / count
