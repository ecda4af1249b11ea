"""Dec_UCB: agents on a graph mix their means with their neighbours' in every slot."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from fmab_jax.algorithms.families.slots import Params, Slot, draw_arm, first_best
from fmab_jax.algorithms.families.talking import Consensus
from fmab_jax.parts.networks import graph_parameter
from fmab_jax.sampling.shapes import ArmPerRow, PerRowArm


class DecUCBState(NamedTuple):
    """An agent's state, by arm.

    Attributes:
        pulls: The agent's pulls, n.
        sums: Sums of the agent's rewards.
        most: Estimate of the largest number of pulls by any agent, m.
        mean: Estimate of the mean over all agents, z.
        change: Change of the agent's sample mean in this slot.
    """

    pulls: PerRowArm
    sums: PerRowArm
    most: PerRowArm
    mean: PerRowArm
    change: PerRowArm


@dataclass(frozen=True)
class DecUCB(Consensus):
    """Dec_UCB: the largest z + sqrt(3 log t / (|N| n)), unless an arm is more than K pulls late.

    z is a running consensus of sample means with Metropolis weights, |N| the neighbours and the
    agent itself. An arm with n <= m - K is late, m being the most pulls that the agent has heard
    of; a random late arm is pulled first. After each arm's first pull every edge carries 2 K
    numbers in every slot. Agents share their means.

    Attributes:
        graph: Who talks to whom; see `fmab_jax.parts.graphs.make`.

    Example:
        After the first ten slots, each of the five edges of a ring has a link in every slot:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.dec_ucb(graph="ring"), problem, horizon=10**4, seeds=20)
        >>> data.links.sel(meter="peer")[:, -1].mean().item()
        49950.0
    """

    name = "dec_ucb"
    title = "Dec_UCB"
    source = "Zhu, Mulle, Smith, Koppel and Liu 2021, as the authors' code has it"
    trusted = "neighbours, with means and counts"

    graph: object = graph_parameter("ring")

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> DecUCBState:
        """Returns the state of agents that know nothing."""
        return DecUCBState(*(jnp.zeros((rows, arms)),) * 5)

    @staticmethod
    def choose(state: DecUCBState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns a random late arm, or the one of the largest index."""
        late = (state.pulls <= state.most - slot.arms) & (state.pulls > 0.0)
        random, any_late = draw_arm(late, slot.uniform(len(late))[:, 0])
        neighbourhood_size = (
            jnp.sum(slot.neighbours >= 0, axis=1, dtype=jnp.int32).astype(jnp.float64) + 1.0
        )
        pulls = jnp.maximum(state.pulls, 1.0)
        width = jnp.sqrt(3.0 * jnp.log(slot.time) / (neighbourhood_size[:, None] * pulls))
        index = jnp.where(state.pulls > 0.0, state.mean + width, jnp.inf)
        return jnp.where(any_late, random, first_best(index))

    @staticmethod
    def update(
        state: DecUCBState, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> DecUCBState:
        """Adds pulls and rewards; mixing starts from an arm's first reward."""
        n, sums = state.pulls + pulls, state.sums + rewards
        mean = sums / jnp.maximum(n, 1.0)
        change = mean - state.sums / jnp.maximum(state.pulls, 1.0)
        first = slot.time <= slot.arms
        return DecUCBState(
            pulls=n,
            sums=sums,
            most=jnp.maximum(state.most, n),
            mean=jnp.where(first, mean, state.mean),
            change=jnp.where(first, 0.0, change),
        )

    @staticmethod
    def communicate(state: DecUCBState, slot: Slot, params: Params) -> DecUCBState:
        """Mixes means with Metropolis weights, and takes the largest counts."""
        is_neighbour = slot.neighbours >= 0
        neighbour = jnp.maximum(slot.neighbours, 0)
        size = jnp.sum(is_neighbour, axis=1, dtype=jnp.int32) + 1
        larger = jnp.maximum(size[:, None], size[neighbour]).astype(jnp.float64)
        weight = jnp.where(is_neighbour, 1.0 / larger, 0.0)
        return state._replace(
            mean=slot.mix(state.mean, weight) + state.change,
            most=slot.largest_nearby(state.most, state.most),
        )
