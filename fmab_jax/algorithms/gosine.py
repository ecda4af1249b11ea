"""GosInE: agents play few arms each, and recommend their best one to a random neighbour."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from fmab_jax.algorithms.families.index import IndexPolicy
from fmab_jax.algorithms.families.slots import Params, Slot, at, first_best, upper_bound
from fmab_jax.algorithms.families.talking import Recommending, share_out
from fmab_jax.parameters import NOT_NEGATIVE, parameter
from fmab_jax.parts.exchanges import PEER, Exchange, Viewer, neighbours
from fmab_jax.parts.networks import graph_parameter
from fmab_jax.sampling.shapes import ArmPerRow, PerRowArm, Truth, TruthPerRowArm


class GosineState(NamedTuple):
    """An agent's state: its history, and the arms that it plays.

    Attributes:
        pulls: Pulls of each arm in the whole run.
        sums: Sums of the rewards.
        phase_pulls: Pulls in this phase.
        sticky: Arms that the agent never gives up.
        upper: The better of the two other arms, U.
        lower: The one that a recommendation replaces, L.
    """

    pulls: PerRowArm
    sums: PerRowArm
    phase_pulls: PerRowArm
    sticky: TruthPerRowArm
    upper: ArmPerRow
    lower: ArmPerRow


@dataclass(frozen=True)
class GosInE(Recommending):
    """GosInE, synchronous: UCB on ceil(K/M) sticky arms and two more, which gossip improves.

    Phase j ends at slot j^3. Then every agent asks a uniformly drawn neighbour for the arm that it
    pulled most in the phase: one integer, M links. Agents share their means.

    Attributes:
        graph: Who may be asked; see `fmab_jax.parts.graphs.make`.
        alpha: Factor of the confidence width; 4 is the authors' value.

    Example:
        Phases end at slots 1, 8, 27, ..., 9261: that is 21 of them, with one link of each agent:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.gosine(graph="ring"), problem, horizon=10**4, seeds=20)
        >>> data.rounds_made.mean().item(), data.links.sel(meter="peer")[:, -1].mean().item()
        (21.0, 105.0)
    """

    name = "gosine"
    title = "GosInE"
    source = "Chawla, Sankararaman, Ganesh and Shakkottai, AISTATS 2020, their code"
    communication = "one random neighbour after each phase"
    trusted = "neighbours, with the arm played most"

    graph: object = graph_parameter("complete")
    alpha: float = parameter(NOT_NEGATIVE, "Of the confidence width.", default=4.0)

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange of one message to every agent at the end of a phase."""
        self.network(agents)
        requests = agents if agents > 1 else 0
        links, receiver = ((PEER, requests),), Viewer.RANDOM_NEIGHBOUR
        return neighbours("recommendation", agents, links, numbers=requests, viewer=receiver)

    def count_messages(self, exchange: Exchange) -> int:
        """Returns the number of agents, each of which asks a neighbour."""
        return exchange.on(PEER.name)

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> GosineState:
        """Assigns consecutive arms: ceil(K/M) sticky ones from i ceil(K/M) on, then U and L."""
        count = jnp.ceil(arms / slot.agents).astype(jnp.int32)
        end = (jnp.arange(rows, dtype=jnp.int32) + 1) * count
        zeros = jnp.zeros((rows, arms))
        sticky = share_out(rows, arms, count)
        return GosineState(zeros, zeros, zeros, sticky, end % arms, (end + 1) % arms)

    @staticmethod
    def in_play(state: GosineState) -> TruthPerRowArm:
        """Returns the sticky arms, U and L."""
        arm = jnp.arange(state.pulls.shape[1], dtype=jnp.int32)[None, :]
        return state.sticky | (arm == state.upper[:, None]) | (arm == state.lower[:, None])

    @staticmethod
    def choose(state: GosineState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns argmax mean + sqrt(alpha log t / n) over the arms in play."""
        index = upper_bound(state.pulls, state.sums, params["alpha"] * jnp.log(slot.time))
        return first_best(jnp.where(GosInE.in_play(state), index, -jnp.inf))

    @staticmethod
    def update(
        state: GosineState, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> GosineState:
        """Adds pulls and rewards, in the whole run and in this phase."""
        after = IndexPolicy.update(state, pulls, rewards, slot, params)
        return after._replace(phase_pulls=state.phase_pulls + pulls)

    @staticmethod
    def due(state: GosineState, slot: Slot, params: Params) -> Truth:
        """Tells whether t = j^3 for a whole j."""
        root = jnp.rint(jnp.cbrt(slot.time))
        return root * root * root == slot.time

    @staticmethod
    def communicate(state: GosineState, slot: Slot, params: Params) -> GosineState:
        """Keeps the better of U and L as U; L becomes the neighbour's best arm, if it is new."""
        swap = at(state.phase_pulls, state.upper) < at(state.phase_pulls, state.lower)
        upper = jnp.where(swap, state.lower, state.upper)
        lower = jnp.where(swap, state.upper, state.lower)
        recommendation = first_best(state.phase_pulls)[slot.random_neighbour()]
        is_new = ~at(GosInE.in_play(state), recommendation)
        lower = jnp.where(is_new, recommendation, lower)
        return state._replace(
            upper=upper, lower=lower, phase_pulls=jnp.zeros_like(state.phase_pulls)
        )
