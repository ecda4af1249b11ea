"""Somebody's own schedule, index policy, exchange and reward law: a file outside the package."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from fmab_jax.algorithms.families.index import first_best
from fmab_jax.parameters import Real, Whole
from fmab_jax.parts.exchanges import SERVER, Meter
from fmab_jax.parts.rewards import FiniteSupport

UPLINK = Meter("uplink", "peer", True, "agents to their relays")


def relays(agents: int, branches: int) -> fmab.Exchange:
    """Agents report to relays, relays to a root: two hops, so one slot of waiting."""
    branches = min(branches, agents)
    weights = np.full(agents, 1 / agents)
    links = ((SERVER, branches), (UPLINK, agents - branches))
    return fmab.Exchange("relays", agents, agents, weights, wait=1, links=links)


@dataclass(frozen=True)
class Geometric(fmab.Elimination):
    """Elimination in phases that grow by a factor, heard through relays."""

    name = "geometric"
    title = "Geometric phases"
    source = "tests/plugs.py"
    communication = "a root hears relays, relays hear agents"
    trusted = "relays and root, with means"

    first: int = fmab.parameter(Whole(low=1), "Pulls of an arm in phase 1.", default=8, symbol="n₁")
    growth: float = fmab.parameter(
        Real(low=1.0, high=100.0, open_low=True),
        "Factor from a phase to the next.",
        default=2.0,
        symbol="g",
        label="growth g",
        remedy="give a factor above 1",
    )
    branches: int = fmab.parameter(Whole(low=1), "Relays below the root.", default=2, symbol="b")

    def exchange(self, agents):
        """Returns who is heard."""
        return relays(agents, self.branches)

    @staticmethod
    def pulls_per_arm(epoch):
        """Returns S_r, a geometric sum."""
        params = epoch.params
        return epoch.previous + jnp.ceil(params["first"] * params["growth"] ** (epoch.number - 1.0))

    @staticmethod
    def radius(epoch):
        """Returns sqrt(log(4 K r^2 T) / (2 M S_r))."""
        chance = jnp.log(4.0 * epoch.arms * epoch.number**2 * epoch.horizon)
        return jnp.sqrt(chance / (2.0 * epoch.agents * epoch.pulls))


@dataclass(frozen=True)
class Greedy(fmab.IndexPolicy):
    """Epsilon-greedy: a random arm with some chance, else the best so far; agents alone."""

    name = "greedy"
    source = "Sutton and Barto"
    communication = "nobody"
    trusted = "nobody"

    explore: float = 0.1
    optimistic: bool = True

    @staticmethod
    def choose(state, slot, params):
        """Returns a random arm, or the one of the largest mean."""
        rows, arms = state.pulls.shape
        chance, which = slot.uniform(rows, 2).T
        unseen = jnp.where(params["optimistic"] > 0.0, jnp.inf, 0.0)
        mean = jnp.where(state.pulls > 0.0, state.sums / state.pulls, unseen)
        drawn = jnp.minimum((which * arms).astype(jnp.int32), arms - 1)
        return jnp.where(chance < params["explore"], drawn, first_best(mean))


@dataclass(frozen=True)
class ThreePoint(FiniteSupport):
    """0, 1/2 or 1; the middle takes a share of the most that the mean allows."""

    name = "three-point"
    levels = (0.0, 0.5, 1.0)

    middle: float = 0.5

    def parameters(self, means, **traced):
        """Returns the probability of each level."""
        middle = 2.0 * self.middle * jnp.minimum(means, 1.0 - means)
        return 1.0 - means - middle / 2.0, middle, means - middle / 2.0
