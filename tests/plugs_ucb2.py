"""Somebody's own policy of episodes, UCB2: a file outside the package."""

from dataclasses import dataclass

import jax.numpy as jnp

import fmab_jax as fmab
from fmab_jax.parameters import Real


@dataclass(frozen=True)
class UCB2(fmab.Episodes):
    """UCB2: an arm is played tau(r + 1) - tau(r) times, tau(r) = ceil((1 + alpha)^r)."""

    name = "ucb2"
    title = "UCB2"
    source = "Auer, Cesa-Bianchi and Fischer, 2002"
    communication = "nobody"
    trusted = "nobody"

    alpha: float = fmab.parameter(
        Real(low=0.1, high=1.0, open_high=True), "Growth of episodes.", default=0.5, symbol="α"
    )

    @staticmethod
    def choose(state, episode, params):
        grown = 1.0 + params["alpha"]
        # An arm was played tau(r) times; a tau that is as large makes an episode of no slots.
        known = jnp.log(jnp.e * (episode.time - 1.0) / state.pulls)
        arm = jnp.argmax(state.sums / state.pulls + jnp.sqrt(grown * known / (2.0 * state.pulls)))
        tau = jnp.ceil(grown ** jnp.arange(300.0))
        return arm, jnp.min(jnp.where(tau > state.pulls[arm], tau, jnp.inf)) - state.pulls[arm]
