"""DDUCB: agents on a graph estimate what the whole network knows, by accelerated mixing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from fmab_jax.algorithms.families.slots import Params, Slot, first_best, upper_bound
from fmab_jax.algorithms.families.talking import Consensus
from fmab_jax.core import arrays, graphs
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.networks import graph_parameter, network
from fmab_jax.core.shapes import ArmPerRow, PerRowArm, Scalar
from fmab_jax.parameters import NOT_NEGATIVE, Flag, Real, parameter

Both = Float[Array, "agent 2 arm"]


class Known(NamedTuple):
    """An agent's state: its own pulls, and pairs of sums of rewards and numbers of pulls.

    Attributes:
        pulls: Its own, ever.
        mixed: Of all stages but this and the last, an estimate of 1/M of the network's: delta.
        fresh: The agent's own of this stage: gamma.
        mixing: Of the stage before, while they are mixed: beta.
        before: The same, one step of mixing ago.
    """

    pulls: PerRowArm
    mixed: Both
    fresh: Both
    mixing: Both
    before: Both


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
        graph: Who talks to whom; see `fmab_jax.core.graphs.make`.
        accelerated: Whether steps are Chebyshev's; otherwise they are plain.
        eta: Of the confidence width; 2 is that of the authors' code.
        sigma: Deviation that the width assumes of a reward; 1/2 covers rewards in [0, 1].
        mixing_error: e, which decides how long a stage is; 1/22 is that of the authors' code. Their
            theorem asks for less than (eta - 1) / (7 (eta + 1)), quoted from memory.

    Example:
        After the first ten slots, each of the five edges of a ring has a link in every slot:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.dducb(graph="ring"), problem, horizon=10**4, seeds=20)
        >>> data.links.sel(meter="peer")[:, -1].mean().item()
        49950.0
    """

    name = "dducb"
    title = "DDUCB"
    source = "Martínez-Rubio, Kanade and Rebeschini, NeurIPS 2019, arXiv 1810.04468, and their code"
    trusted = "neighbours, with sums and counts"

    graph: Any = graph_parameter("ring")
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
        rate = _mixing_rate(self.graph, exchange.agents)
        stage = stage_length(rate, exchange.agents, self.mixing_error, self.accelerated)
        momentum = rate / (1.0 + math.sqrt(1.0 - rate * rate)) if self.accelerated else 0.0
        found = super().values(exchange, horizon)
        return found | {"stage": float(stage), "momentum": momentum}

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> Known:
        """Returns the state of agents that know nothing."""
        return Known(jnp.zeros((rows, arms)), *(jnp.zeros((rows, 2, arms)),) * 4)

    @staticmethod
    def choose(state: Known, slot: Slot, params: Params) -> ArmPerRow:
        """Returns argmax s / n + sqrt(2 eta sigma^2 log t / (M n)); every arm once before."""
        stage, step = _place(slot, params)
        # Pulls that are mixed by now, and those of the agent since the stage began.
        mixed = (slot.arms + (stage - 1.0) * params["stage"]) * slot.agents
        covered = jnp.where(stage > 0.0, mixed, slot.arms)
        log = jnp.log(jnp.maximum(covered + step - 1.0, 1.0))
        width = 2.0 * params["eta"] * params["sigma"] * params["sigma"] * log / slot.agents
        sums, pulls = jnp.moveaxis(state.mixed + state.fresh / slot.agents, 1, 0)
        return first_best(upper_bound(pulls, sums, width))

    @staticmethod
    def update(
        state: Known, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> Known:
        """Counts; once every arm was pulled, that is what the first stage mixes."""
        fresh = state.fresh + jnp.stack([rewards, pulls], axis=1)
        begins = slot.time == slot.arms
        return state._replace(
            pulls=state.pulls + pulls,
            mixed=jnp.where(begins, fresh / slot.arms, state.mixed),
            fresh=jnp.where(begins, 0.0, fresh),
            mixing=jnp.where(begins, fresh, state.mixing),
        )

    @staticmethod
    def communicate(state: Known, slot: Slot, params: Params) -> Known:
        """Makes one step of mixing; at a stage's end, its result joins the estimate."""
        stage, step = _place(slot, params)
        heard = slot.mix(state.mixing, weights(slot))
        after = heard + arrays.rounded(momentum(step, params["momentum"]) * (heard - state.before))
        over = step == params["stage"]
        # Until the first mixing ends, an agent's own first pulls stand for the network's.
        so_far = jnp.where(stage > 0.0, state.mixed, 0.0)
        return state._replace(
            mixed=jnp.where(over, so_far + after, state.mixed),
            fresh=jnp.where(over, 0.0, state.fresh),
            mixing=jnp.where(over, state.fresh, after),
            before=state.mixing,
        )


def stage_length(rate: float, agents: int, error: float, accelerated: bool = True) -> int:
    """Returns C, the slots of a stage: steps of mixing that leave an error of e / M.

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


def weights(slot: Slot) -> Float[Array, "agent degree"]:
    """Returns what P gives an agent's neighbours: 1 / (d_max + 1) to each."""
    there = slot.neighbours >= 0
    most = jnp.max(jnp.sum(there, axis=1, dtype=jnp.int32)).astype(jnp.float64)
    return jnp.where(there, 1.0 / (most + 1.0), 0.0)


def momentum(step: Scalar, base: Scalar) -> Scalar:
    """Returns b_m = T_{m-2}(1 / l) / T_m(1 / l) of step m, 0 in the first.

    With it y_m = P y_{m-1} + b_m (P y_{m-1} - y_{m-2}) is T_m(P / l) y_0 / T_m(1 / l): Chebyshev's
    recursion divided by its scale, which neither grows nor divides by an l of 0.

    Args:
        step: m.
        base: q = e^-arccosh(1 / l), so that T_m(1 / l) = (q^m + q^-m) / 2; 0 for plain steps.
    """
    later = jnp.maximum(step, 2.0)
    squared = base * base
    found = squared * (1.0 + squared ** (later - 2.0)) / (1.0 + squared**later)
    return jnp.where(step > 1.0, found, 0.0)


def _place(slot: Slot, params: Params) -> tuple[Scalar, Scalar]:
    """Returns the stage that a slot belongs to, from 0, and its place in it, from 1."""
    since = slot.time - slot.arms - 1.0
    stage = jnp.floor(since / params["stage"])
    return stage, since - stage * params["stage"] + 1.0


@lru_cache(maxsize=256)
def _mixing_rate(graph: Any, agents: int) -> float:
    return graphs.mixing_rate(network(graph, agents))
