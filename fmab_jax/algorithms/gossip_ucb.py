"""Gossip_UCB: pairs of neighbours average their estimates, all neighbours compare their counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from fmab_jax.algorithms.families.slots import Params, Slot, at, draw_arm, first_best
from fmab_jax.algorithms.families.talking import OnGraph
from fmab_jax.parameters import Choice, parameter
from fmab_jax.parts.exchanges import Exchange, Meter, neighbours
from fmab_jax.parts.networks import graph_parameter
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import ArmPerRow, PerRow, PerRowArm, Scalar

GOSSIP = Meter("gossip", "peer", True, "pairs that average estimates")
COUNTS = Meter("counts", "peer", False, "edges that carry counts")


class GossipState(NamedTuple):
    """An agent's state, by arm.

    Attributes:
        pulls: The agent's pulls, n.
        sums: Sums of the agent's rewards.
        mean: The agent's sample mean X, with noise if the algorithm adds some.
        most: Estimate of the largest number of pulls by any agent, n~.
        estimate: Estimate of the mean over all agents, v.
        arm: The last arm that the agent pulled.
        change: Change of the agent's sample mean of that arm.
    """

    pulls: PerRowArm
    sums: PerRowArm
    mean: PerRowArm
    most: PerRowArm
    estimate: PerRowArm
    arm: ArmPerRow
    change: PerRow


@dataclass(frozen=True)
class GossipUCB(OnGraph):
    """Gossip_UCB: the largest v + sqrt(2 M log t / n), unless an arm is over M pulls late.

    v is a running average of sample means. In each slot one agent, drawn uniformly, wakes and
    averages with a uniformly drawn neighbour; the source's pseudo-code does not say who gossips, so
    this is an assumption. All agents then add the changes of their own sample means. An arm with
    n < n~ - M is late, n~ being the most pulls that the agent has heard of from all its neighbours;
    a random late arm is pulled first. The source's slot 0, in which every arm is pulled once, is
    here the slots 1 to K, one arm each; t is the slot. The source's alpha_1 is 0, as it is in
    practice. The pairs that gossip are priced; the meter ``counts`` has the edges of the comparison
    of counts in every slot, which the authors leave out.

    A random matching in place of one pair is not offered: its pairs are a random number, and an
    exchange has the same links in every round.

    Attributes:
        graph: Who talks to whom; see `fmab_jax.parts.graphs.make`.
        radius: "theory" is the paper's, with which agents explore as if M times as long; "scaled"
            divides it by sqrt(M), which gives UCB1's width and is covered by no theorem.

    Example:
        After the first ten slots, one pair of neighbours has a link in every slot:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> algorithm = fmab.gossip_ucb(graph="ring", radius="scaled")
        >>> data = fmab.simulate(algorithm, problem, horizon=10**4, seeds=20)
        >>> data.links.sel(meter="gossip")[:, -1].mean().item()
        9990.0
    """

    name = "gossip_ucb"
    title = "Gossip_UCB"
    source = "Zhu, Zhu, Liu and Liu, SIGMETRICS 2021, arXiv 2010.12763"
    communication = "one pair of neighbours in every slot, and counts by all neighbours"
    trusted = "neighbours, with means and counts"

    graph: object = graph_parameter("complete")
    radius: str = parameter(
        Choice(options=("theory", "scaled")),
        "Confidence radius; scaled is the paper's over sqrt(M).",
        default="theory",
        remedy="'theory' is the paper's",
        proven=Choice(options=("theory",)),
    )

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of one pair's estimates and of counts on every edge, both ways."""
        edges = self.edges(agents)
        pairs = min(edges, 1)
        links = (GOSSIP, pairs), (COUNTS, edges)
        return neighbours("gossip", agents, links, vectors=2 * (pairs + edges))

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds a flag of the scaled radius."""
        return super().values(exchange, horizon) | {"scaled": float(self.radius == "scaled")}

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> GossipState:
        """Returns the state of agents that know nothing."""
        zeros, zero = jnp.zeros((rows, arms)), jnp.zeros(rows)
        return GossipState(zeros, zeros, zeros, zeros, zeros, zero.astype(jnp.int32), zero)

    @staticmethod
    def choose(state: GossipState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns a random late arm, or the one of the largest v + sqrt(2 M log t / n) (eq. 11)."""
        width = 2.0 * radius_factor(slot, params) * jnp.log(slot.time)
        return choose_arm(state, jnp.sqrt(width / jnp.maximum(state.pulls, 1.0)), slot)

    @staticmethod
    def update(
        state: GossipState, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> GossipState:
        """Adds pulls and rewards; an arm's first reward is the first estimate."""
        return update_state(state, pulls, state.sums + rewards, jnp.zeros(pulls.shape[0]), slot)

    @staticmethod
    def communicate(state: GossipState, slot: Slot, params: Params) -> GossipState:
        """Averages one pair, adds changes of means, and takes the largest counts of neighbours."""
        is_neighbour = slot.neighbours >= 0
        neighbour = jnp.maximum(slot.neighbours, 0)
        estimate = state.estimate
        if is_neighbour.shape[1]:
            # Lane 0 draws the agent that wakes, lane 1 its neighbour.
            wakes, choice = slot.uniform(2)[:, 0]
            first = (wakes * slot.agents).astype(jnp.int32)
            degree = jnp.sum(is_neighbour[first], dtype=jnp.int32).astype(jnp.float64)
            second = neighbour[first, (choice * degree).astype(jnp.int32)]
            average = 0.5 * (estimate[first] + estimate[second])
            agent = jnp.arange(is_neighbour.shape[0], dtype=jnp.int32)
            gossips = (agent == first) | (agent == second)
            estimate = jnp.where(gossips[:, None], average[None, :], estimate)
        arm = jnp.arange(estimate.shape[1], dtype=jnp.int32)
        mask = arm[None, :] == state.arm[:, None]
        return state._replace(
            most=compare_counts(state, slot),
            estimate=estimate + jnp.where(mask, state.change[:, None], 0.0),
        )


def radius_factor(slot: Slot, params: Params) -> Scalar:
    """Returns the factor of the squared radius: M, or 1 for the scaled radius."""
    return jnp.where(params["scaled"] > 0.0, 1.0, slot.agents)


def compare_counts(state: GossipState, slot: Slot) -> PerRowArm:
    """Returns the largest of an agent's own pulls and the estimates of all its neighbours."""
    is_neighbour = slot.neighbours >= 0
    real = jnp.arange(is_neighbour.shape[0], dtype=jnp.float64) < slot.agents

    def compare_all(_: None) -> Array:
        # The maximum includes the agent's own estimate, which never exceeds its neighbours'.
        largest = jnp.max(jnp.where(real[:, None], state.most, 0.0), axis=0)
        return jnp.maximum(state.pulls, largest[None, :])

    def compare_neighbours(_: None) -> Array:
        return slot.largest_nearby(state.pulls, state.most)

    degree = jnp.sum(is_neighbour, axis=1, dtype=jnp.int32).astype(jnp.float64)
    is_incomplete = anywhere(jnp.any(real & (degree < slot.agents - 1.0)))
    return lax.cond(is_incomplete, compare_neighbours, compare_all, None)


def choose_arm(state: GossipState, radius: PerRowArm, slot: Slot) -> ArmPerRow:
    """Returns a random arm that is over M pulls late, else the arm of the largest bound."""
    late = state.pulls < state.most - slot.agents
    random, any_late = draw_arm(late, slot.uniform(late.shape[0])[:, 0])
    index = jnp.where(state.pulls > 0.0, state.estimate + radius, jnp.inf)
    return jnp.where(any_late, random, first_best(index))


def update_state(
    state: GossipState, pulls: PerRowArm, sums: PerRowArm, noise: PerRow, slot: Slot
) -> GossipState:
    """Returns the state after a slot, with noise on the sum of the pulled arm."""
    n, first = state.pulls + pulls, slot.time <= slot.arms
    arm = first_best(pulls)
    own_mean = (at(sums, arm) + noise) / at(n, arm)
    mean = jnp.where(pulls > 0.0, own_mean[:, None], state.mean)
    return GossipState(
        pulls=n,
        sums=sums,
        mean=mean,
        most=jnp.where(first, n, state.most),
        estimate=jnp.where(first, mean, state.estimate),
        arm=arm,
        change=jnp.where(first, 0.0, own_mean - at(state.mean, arm)),
    )
