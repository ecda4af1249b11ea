"""LCC-UCB: agents recommend their most played arm to each other after epochs that double."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from fmab_jax.algorithms.families.slots import Params, Slot, first_best, upper_bound
from fmab_jax.algorithms.families.talking import Recommending, share_out
from fmab_jax.parts import graphs
from fmab_jax.parts.exchanges import PEER, Exchange, Viewer, neighbours
from fmab_jax.parts.networks import graph_parameter
from fmab_jax.sampling.shapes import ArmPerRow, PerRow, PerRowArm, Truth, TruthPerRowArm


class LCCState(NamedTuple):
    """An agent's state in an epoch, and the arms that it plays.

    Attributes:
        pulls: Pulls of each arm in this epoch or sub-epoch.
        sums: Sums of the rewards.
        sticky: The agent's part of the arms.
        recommended: Arms of the last recommendations.
        start: Last slot of the previous epoch or sub-epoch.
    """

    pulls: PerRowArm
    sums: PerRowArm
    sticky: TruthPerRowArm
    recommended: TruthPerRowArm
    start: PerRow


@dataclass(frozen=True)
class LCCUCB(Recommending):
    """LCC-UCB: fresh UCB1 in each epoch, on ceil(K/M) arms of one's own and those recommended.

    With K' = ceil(K/M) + M - 1, epoch j = 0, 1, ... lasts K' (K' + 1) 2^j slots. Then every agent
    sends the arm that it pulled most to all others: M (M - 1) / 2 two-way links. It is made for
    many more arms than agents. Agents share their means.

    On a graph it is LCC-UCB-GRAPH: K' = ceil(K/M) + d_max, and epoch j has as many sub-epochs of
    K' (K' + 1) 2^j slots as the graph's diameter. After each the arm goes to neighbours only, one
    two-way link on every edge. Each sub-epoch begins UCB1 anew, and plays the arms recommended
    after the last one; older ones are forgotten, as after the epochs of LCC-UCB. That reading is a
    choice. On a complete graph both are the same.

    Attributes:
        graph: Who talks to whom, None for all; see `fmab_jax.parts.graphs.make`.

    Example:
        Seven epochs fit into the horizon. Each ends with a link for every pair of agents.

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.lcc_ucb(), problem, horizon=10**4, seeds=20)
        >>> data.rounds_made.mean().item(), data.links.sel(meter="peer")[:, -1].mean().item()
        (7.0, 70.0)
    """

    name = "lcc_ucb"
    title = "LCC-UCB"
    source = "Agarwal, Aggarwal and Azizzadenesheli, JMLR 2022, arXiv 2102.08462"
    communication = "all others after each epoch, or neighbours after each sub-epoch"
    trusted = "all agents, or neighbours, with the arm played most"

    graph: object = graph_parameter(None, none_label="all hear all")

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of one message each way between all agents, or on every edge."""
        edges = self.edges(agents)
        receiver = Viewer.EVERY_AGENT if self.graph is None else Viewer.NEIGHBOURS
        links = ((PEER, edges),)
        return neighbours("recommendations", agents, links, numbers=2 * edges, viewer=receiver)

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Returns the largest degree, and the number of sub-epochs of an epoch."""
        graph = self.network(exchange.agents)
        if graph is None:
            return {"degree": exchange.agents - 1.0, "sub_epochs": 1.0}
        degree = max(degree for _, degree in graph.degree)
        return {"degree": float(degree), "sub_epochs": float(max(1, graphs.diameter(graph)))}

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> LCCState:
        """Assigns ceil(K/M) consecutive arms to each agent."""
        count = jnp.ceil(slot.arms / slot.agents).astype(jnp.int32)
        zeros, sticky = jnp.zeros((rows, arms)), share_out(rows, arms, count)
        return LCCState(zeros, zeros, sticky, zeros > 0.0, jnp.zeros(rows))

    @staticmethod
    def in_play(state: LCCState) -> TruthPerRowArm:
        """Returns the agent's own arms and the recommended ones."""
        return state.sticky | state.recommended

    @staticmethod
    def choose(state: LCCState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns argmax mean + sqrt(2 log t / n), with the data of this epoch."""
        width = 2.0 * jnp.log(slot.time - state.start)[:, None]
        index = upper_bound(state.pulls, state.sums, width)
        return first_best(jnp.where(LCCUCB.in_play(state), index, -jnp.inf))

    @staticmethod
    def due(state: LCCState, slot: Slot, params: Params) -> Truth:
        """Tells whether a sub-epoch is over: D (2^j - 1) + d 2^j times K' (K' + 1) slots."""
        most = jnp.ceil(slot.arms / slot.agents) + params["degree"]
        units = slot.time / (most * (most + 1.0))
        # Epoch j is over after D (2^(j+1) - 1) units; so v = units / D + 1 is in (2^j, 2^(j+1)].
        fraction, exponent = jnp.frexp((units + params["sub_epochs"]) / params["sub_epochs"])
        epoch = jnp.where(fraction == 0.5, exponent - 2, exponent - 1).astype(jnp.float64)
        scale = 2.0**epoch
        into = (units - params["sub_epochs"] * (scale - 1.0)) / scale
        return (into == jnp.floor(into)) & (into >= 1.0)

    @staticmethod
    def communicate(state: LCCState, slot: Slot, params: Params) -> LCCState:
        """Adopts the recommended arms, and forgets all rewards."""
        rows, arms = state.pulls.shape
        arm = jnp.arange(arms, dtype=jnp.int32)
        message = first_best(state.pulls)[:, None] == arm[None, :]
        zeros = jnp.zeros_like(state.pulls)
        if slot.neighbours.shape[0]:
            recommended = slot.largest_nearby(zeros > 0.0, message)
        else:
            message = message & (jnp.arange(rows, dtype=jnp.float64) < slot.agents)[:, None]
            # An agent hears all others, and not itself.
            voices = jnp.sum(message, axis=0, dtype=jnp.int32)[None, :] - message.astype(jnp.int32)
            recommended = voices > 0
        return LCCState(
            zeros, zeros, state.sticky, recommended, jnp.full_like(state.start, slot.time)
        )
