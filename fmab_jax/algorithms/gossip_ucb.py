"""Gossip_UCB: pairs of neighbours average their estimates, all neighbours compare their counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array

from fmab_jax.algorithms.families.slots import Params, Slot, at, drawn_arm, first_best
from fmab_jax.algorithms.families.talking import OnGraph
from fmab_jax.core.exchanges import Exchange, Meter, neighbours
from fmab_jax.core.networks import graph_parameter
from fmab_jax.core.rare import anywhere
from fmab_jax.core.shapes import ArmPerRow, PerRow, PerRowArm, Scalar
from fmab_jax.parameters import Choice, parameter

GOSSIP = Meter("gossip", "peer", True, "pairs that average estimates")
COUNTS = Meter("counts", "peer", False, "edges that carry counts")


class Known(NamedTuple):
    """An agent's state, by arm.

    Attributes:
        pulls: Its own, n.
        sums: Of its own rewards.
        mean: Its own sample mean X, with whatever noise it has.
        most: Estimate of the largest number of pulls by any agent, n~.
        estimate: Of the mean over all agents, v.
        arm: That it pulled last.
        change: Of its sample mean of that arm.
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
        graph: Who talks to whom; see `fmab_jax.core.graphs.make`.
        radius: "theory" is the paper's, with which agents explore as if M times as long; "scaled"
            divides it by sqrt(M), which gives UCB1's width and is covered by no theorem.

    Example:
        After the first ten slots, one pair of neighbours has a link in every slot:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> algorithm = fmab.gossip_ucb(graph="ring", radius="scaled")
        >>> data = fmab.simulate(algorithm, problem, horizon=10**4, seeds=20)
        >>> data.links.sel(meter="gossip")[:, -1].mean().item()
        9990.0
    """

    name = "gossip_ucb"
    title = "Gossip_UCB"
    source = "Zhu, Zhu, Liu and Liu, SIGMETRICS 2021, arXiv 2010.12763"
    heard = "one pair of neighbours in every slot, and counts by all neighbours"
    trusted = "neighbours, with means and counts"

    graph: Any = graph_parameter("complete")
    radius: str = parameter(
        Choice(options=("theory", "scaled")),
        "Confidence radius; scaled is the paper's over sqrt(M).",
        default="theory",
        remedy="'theory' is the paper's",
        proven=Choice(options=("theory",)),
    )

    def exchange(self, agents: int) -> Exchange:
        """Returns the table of one pair's estimates, and of counts on every edge, both ways."""
        edges = self.edges(agents)
        pairs = min(edges, 1)
        links = (GOSSIP, pairs), (COUNTS, edges)
        return neighbours("gossip", agents, links, vectors=2 * (pairs + edges))

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds which radius it is."""
        return super().values(exchange, horizon) | {"scaled": float(self.radius == "scaled")}

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> Known:
        """Returns the state of agents that know nothing."""
        none, zero = jnp.zeros((rows, arms)), jnp.zeros(rows)
        return Known(none, none, none, none, none, zero.astype(jnp.int32), zero)

    @staticmethod
    def choose(state: Known, slot: Slot, params: Params) -> ArmPerRow:
        """Returns a random late arm, or the one of the largest v + sqrt(2 M log t / n) (eq. 11)."""
        width = 2.0 * widening(slot, params) * jnp.log(slot.time)
        return chosen(state, jnp.sqrt(width / jnp.maximum(state.pulls, 1.0)), slot)

    @staticmethod
    def update(
        state: Known, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> Known:
        """Counts; an arm's first reward is the first estimate."""
        return learned(state, pulls, state.sums + rewards, jnp.zeros(pulls.shape[0]), slot)

    @staticmethod
    def communicate(state: Known, slot: Slot, params: Params) -> Known:
        """Averages one pair, adds what changed, and takes the largest counts of neighbours."""
        there = slot.neighbours >= 0
        other = jnp.maximum(slot.neighbours, 0)
        estimate = state.estimate
        if there.shape[1]:
            # Lane 0 tells who wakes, lane 1 which of its neighbours is asked.
            wakes, asked = slot.uniform(2)[:, 0]
            first = (wakes * slot.agents).astype(jnp.int32)
            degree = jnp.sum(there[first], dtype=jnp.int32).astype(jnp.float64)
            second = other[first, (asked * degree).astype(jnp.int32)]
            both = 0.5 * (estimate[first] + estimate[second])
            agent = jnp.arange(there.shape[0], dtype=jnp.int32)
            gossips = (agent == first) | (agent == second)
            estimate = jnp.where(gossips[:, None], both[None, :], estimate)
        arm = jnp.arange(estimate.shape[1], dtype=jnp.int32)
        pulled = arm[None, :] == state.arm[:, None]
        return state._replace(
            most=compared(state, slot),
            estimate=estimate + jnp.where(pulled, state.change[:, None], 0.0),
        )


def widening(slot: Slot, params: Params) -> Scalar:
    """Returns M, the factor of the squared radius; 1 where it is scaled."""
    return jnp.where(params["scaled"] > 0.0, 1.0, slot.agents)


def compared(state: Known, slot: Slot) -> PerRowArm:
    """Returns the largest of an agent's own pulls and the estimates of all its neighbours."""
    there = slot.neighbours >= 0
    real = jnp.arange(there.shape[0], dtype=jnp.float64) < slot.agents

    def among_all(_: None) -> Array:
        # An agent's own estimate, which is here as well, is never more than it hears in return.
        largest = jnp.max(jnp.where(real[:, None], state.most, 0.0), axis=0)
        return jnp.maximum(state.pulls, largest[None, :])

    def one_by_one(_: None) -> Array:
        return slot.largest_nearby(state.pulls, state.most)

    beside = jnp.sum(there, axis=1, dtype=jnp.int32).astype(jnp.float64)
    some_apart = anywhere(jnp.any(real & (beside < slot.agents - 1.0)))
    return lax.cond(some_apart, one_by_one, among_all, None)


def chosen(state: Known, radius: PerRowArm, slot: Slot) -> ArmPerRow:
    """Returns a random arm that is over M pulls late, or that of the largest upper bound."""
    late = state.pulls < state.most - slot.agents
    random, any_late = drawn_arm(late, slot.uniform(late.shape[0])[:, 0])
    index = jnp.where(state.pulls > 0.0, state.estimate + radius, jnp.inf)
    return jnp.where(any_late, random, first_best(index))


def learned(state: Known, pulls: PerRowArm, sums: PerRowArm, noise: PerRow, slot: Slot) -> Known:
    """Returns what is known after a slot, with noise on the sum of the pulled arm."""
    n, first = state.pulls + pulls, slot.time <= slot.arms
    arm = first_best(pulls)
    own_mean = (at(sums, arm) + noise) / at(n, arm)
    mean = jnp.where(pulls > 0.0, own_mean[:, None], state.mean)
    return Known(
        pulls=n,
        sums=sums,
        mean=mean,
        most=jnp.where(first, n, state.most),
        estimate=jnp.where(first, mean, state.estimate),
        arm=arm,
        change=jnp.where(first, 0.0, own_mean - at(state.mean, arm)),
    )
