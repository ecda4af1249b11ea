"""DDUCB: agents on a graph estimate the totals of the network by accelerated mixing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fmab_jax.algorithms.families.slots import Params, Slot, first_best, upper_bound
from fmab_jax.algorithms.families.talking import Consensus
from fmab_jax.parameters import NOT_NEGATIVE, Flag, Real, parameter
from fmab_jax.parts import graphs
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.networks import graph_parameter, network
from fmab_jax.sampling import arrays
from fmab_jax.sampling.shapes import ArmPerRow, PerRowArm, Scalar

PairPerArm = Float[Array, "agent 2 arm"]


class DDUCBState(NamedTuple):
    """An agent's state: its own pulls, and pairs of sums of rewards and numbers of pulls.

    Attributes:
        pulls: The agent's pulls in the whole run.
        mixed: Estimate of 1/M of the network's sums before the previous stage: delta.
        fresh: The agent's sums in this stage: gamma.
        mixing: Sums of the previous stage, which the agents are mixing: beta.
        before: ``mixing`` one step earlier.
    """

    pulls: PerRowArm
    mixed: PairPerArm
    fresh: PairPerArm
    mixing: PairPerArm
    before: PairPerArm


@dataclass(frozen=True)
class DDUCB(Consensus):
    """DDUCB: UCB on estimates of the network's sums and pulls, which all agents mix in every slot.

    After one pull of each arm, a stage lasts C slots. What agents collected in the stage before is
    multiplied by P = I - (D - A) / (d_max + 1) once a slot, so that every edge carries 2 K numbers
    each way; then it joins the estimate (s, n) of 1/M of the network's totals. Agents pull argmax
    s / n + sqrt(2 eta sigma^2 log t / (M n)), t being the pulls that the estimate covers; an
    agent's own pulls of the stage enter it at once, with weight 1/M, as in the authors' code.
    Accelerated, C steps make the Chebyshev polynomial T_C(P / l) / T_C(1 / l), l the second largest
    absolute eigenvalue of P, and C = ceil(log(2 M / e) / sqrt(2 log(1 / l))); plain, they make P^C,
    and C = ceil(log(M / e) / log(1 / l)). Agents know M, l and the largest degree d_max. They share
    their means.

    Three things differ from the released code, which makes C steps of mixing in every slot, counts
    a stage's pulls twice, and scales P of an irregular graph twice. Before the first stage is over
    the estimate is the agent's first pulls, divided by K as in that code.

    Attributes:
        graph: Who talks to whom; see `fmab_jax.parts.graphs.make`.
        accelerated: Whether steps are Chebyshev's; otherwise they are plain.
        eta: Factor of the confidence width; 2 is the value of the authors' code.
        sigma: Deviation that the width assumes of a reward; 1/2 covers rewards in [0, 1].
        mixing_error: e, which sets the length of a stage; 1/22 is the authors' code. Their
            theorem asks for less than (eta - 1) / (7 (eta + 1)), quoted from memory.

    Example:
        After the first ten slots, each of the five edges of a ring has a link in every slot:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.dducb(graph="ring"), problem, horizon=10**4, seeds=20)
        >>> data.links.sel(meter="peer")[:, -1].mean().item()
        49950.0
    """

    name = "dducb"
    title = "DDUCB"
    source = "Martínez-Rubio, Kanade and Rebeschini, NeurIPS 2019, arXiv 1810.04468, and their code"
    trusted = "neighbours, with sums and counts"

    graph: object = graph_parameter("ring")
    accelerated: bool = parameter(Flag(), "Mix with Chebyshev polynomials.", default=True)
    eta: float = parameter(NOT_NEGATIVE, "Of the confidence width.", default=2.0)
    sigma: float = parameter(NOT_NEGATIVE, "Deviation of a reward, assumed.", default=0.5)
    mixing_error: float = parameter(
        Real(low=0.0, high=1.0, open_low=True),
        "Error of the mixing, which decides how long a stage is.",
        default=1 / 22,
        default_text="1/22",
    )

    def values(self, exchange: Exchange, horizon: int) -> dict[str, float]:
        """Adds the length C of a stage, and e^-arccosh(1 / l), 0 for plain steps."""
        rate = _compute_mixing_rate(self.graph, exchange.agents)
        stage = compute_stage_length(rate, exchange.agents, self.mixing_error, self.accelerated)
        factor = rate / (1.0 + math.sqrt(1.0 - rate * rate)) if self.accelerated else 0.0
        params = super().values(exchange, horizon)
        return params | {"stage": float(stage), "momentum": factor}

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> DDUCBState:
        """Returns the state of agents that know nothing."""
        return DDUCBState(jnp.zeros((rows, arms)), *(jnp.zeros((rows, 2, arms)),) * 4)

    @staticmethod
    def choose(state: DDUCBState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns argmax s / n + sqrt(2 eta sigma^2 log t / (M n)); every arm once before."""
        stage, step = _locate_slot(slot, params)
        # The estimate covers the mixed stages; the agent adds its pulls of this stage.
        mixed = (slot.arms + (stage - 1.0) * params["stage"]) * slot.agents
        covered = jnp.where(stage > 0.0, mixed, slot.arms)
        log = jnp.log(jnp.maximum(covered + step - 1.0, 1.0))
        width = 2.0 * params["eta"] * params["sigma"] * params["sigma"] * log / slot.agents
        sums, pulls = jnp.moveaxis(state.mixed + state.fresh / slot.agents, 1, 0)
        return first_best(upper_bound(pulls, sums, width))

    @staticmethod
    def update(
        state: DDUCBState, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> DDUCBState:
        """Adds pulls and rewards; the first stage mixes the sums of every arm's first pull."""
        fresh = state.fresh + jnp.stack([rewards, pulls], axis=1)
        begins = slot.time == slot.arms
        return state._replace(
            pulls=state.pulls + pulls,
            mixed=jnp.where(begins, fresh / slot.arms, state.mixed),
            fresh=jnp.where(begins, 0.0, fresh),
            mixing=jnp.where(begins, fresh, state.mixing),
        )

    @staticmethod
    def communicate(state: DDUCBState, slot: Slot, params: Params) -> DDUCBState:
        """Mixes once; at the end of a stage the result joins the estimate."""
        stage, step = _locate_slot(slot, params)
        mixture = slot.mix(state.mixing, compute_weights(slot))
        after = mixture + arrays.rounded(
            compute_momentum(step, params["momentum"]) * (mixture - state.before)
        )
        over = step == params["stage"]
        # No mixing is complete in the first stage: the agent's first pulls stand for all agents.
        so_far = jnp.where(stage > 0.0, state.mixed, 0.0)
        return state._replace(
            mixed=jnp.where(over, so_far + after, state.mixed),
            fresh=jnp.where(over, 0.0, state.fresh),
            mixing=jnp.where(over, state.fresh, after),
            before=state.mixing,
        )


def compute_stage_length(rate: float, agents: int, error: float, accelerated: bool = True) -> int:
    """Returns C, the slots of a stage, after which mixing has an error of e / M.

    Args:
        rate: The second largest absolute eigenvalue of P; see `graphs.mixing_rate`.
        agents: M.
        error: e.
        accelerated: Whether steps are Chebyshev's.
    """
    if rate == 0.0:
        return 1
    decay = -math.log(rate)
    if accelerated:
        return max(1, math.ceil(math.log(2 * agents / error) / math.sqrt(2 * decay)))
    return max(1, math.ceil(math.log(agents / error) / decay))


def compute_weights(slot: Slot) -> Float[Array, "agent degree"]:
    """Returns the weights of P for an agent's neighbours: 1 / (d_max + 1)."""
    is_neighbour = slot.neighbours >= 0
    most = jnp.max(jnp.sum(is_neighbour, axis=1, dtype=jnp.int32)).astype(jnp.float64)
    return jnp.where(is_neighbour, 1.0 / (most + 1.0), 0.0)


def compute_momentum(step: Scalar, base: Scalar | float) -> Scalar:
    """Returns b_m = T_{m-2}(1 / l) / T_m(1 / l) of step m, 0 in the first.

    With it y_m = P y_{m-1} + b_m (P y_{m-1} - y_{m-2}) is T_m(P / l) y_0 / T_m(1 / l): Chebyshev's
    recursion divided by its scale, which neither grows nor divides by an l of 0.

    Args:
        step: m.
        base: q = e^-arccosh(1 / l), so that T_m(1 / l) = (q^m + q^-m) / 2; 0 for plain steps.
    """
    exponent = jnp.maximum(step, 2.0)
    squared = base * base
    ratio = squared * (1.0 + squared ** (exponent - 2.0)) / (1.0 + squared**exponent)
    return jnp.where(step > 1.0, ratio, 0.0)


def _locate_slot(slot: Slot, params: Params) -> tuple[Scalar, Scalar]:
    """Returns the stage of a slot, from 0, and its position in the stage, from 1."""
    elapsed = slot.time - slot.arms - 1.0
    stage = jnp.floor(elapsed / params["stage"])
    return stage, elapsed - stage * params["stage"] + 1.0


@lru_cache(maxsize=256)
def _compute_mixing_rate(graph: object, agents: int) -> float:
    return graphs.mixing_rate(network(graph, agents))
