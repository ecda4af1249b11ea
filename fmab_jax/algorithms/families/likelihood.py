"""Elimination by likelihood: an arm leaves when its sums are too unlikely for the best arm."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from fmab_jax.algorithms.families.noisy_messages import NoisyMessages, rounds_parameter
from fmab_jax.algorithms.families.private import epsilon_parameter, failure_parameter
from fmab_jax.equations import Aggregate, Epoch
from fmab_jax.parameters import GROWTH, UNSET, Unset, Whole, parameter
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.per_agent import AgentNumbers, PerAgent
from fmab_jax.sampling import evidence
from fmab_jax.sampling.arrays import rounded, sum_in_turn
from fmab_jax.sampling.shapes import PyTree, Reals, Scalar

# If the number of noises depends on data, tilts are prepared for this many of its values.
_SCALES = 5


@dataclass(frozen=True)
class LikelihoodElimination(NoisyMessages):
    """KL-SE's equations, over any exchange that hears every agent equally.

    Every epoch makes an arm's pulls so far ``growth`` times as many. Each agent adds
    Laplace(1/epsilon) noise to the sum of this epoch's rewards: a reward is in one noisy sum. The
    server adds the sums of all epochs. An arm leaves when the evidence that its mean is below the
    leading one's (`fmab_jax.sampling.evidence`) reaches b_r = log(K r (r+1) / failure).

    This project's algorithm; docs/theory.md has the proofs.

    Attributes:
        epsilon: Privacy of a whole run against readers of messages, for one changed reward; None
            for no noise; a list, or a text such as "1x40,10x10", has one for each agent.
        growth: Factor by which the pulls of an arm grow each epoch.
        first: Pulls of an arm by each agent in the first epoch (by all together where they split
            the arms); None for as many as noise alone needs to tell a gap of one half, with the
            noise of one agent where they split the arms.
        rounds: Round budget R, after which the best arm is played; None for none.
        failure: Bound on the probability of losing the best arm; None for 1 / T.
    """

    source = "this project, docs/theory.md"
    noisy = True
    elementwise = True
    lasting_scale = True
    precompute_fields = ("number", "pulls", "reporting")
    trusted = "nobody: a message leaks at most its epsilon"

    epsilon: Unset | float | AgentNumbers | None = epsilon_parameter(
        UNSET, suggested=1, kind=PerAgent, words="; by agent: 1x40,10x10 or a file"
    )
    growth: float = parameter(
        GROWTH,
        "Factor by which the pulls of an arm grow each epoch.",
        default=2.0,
        grid=(1.2, 1.5, 3.0),
    )
    first: int | None = parameter(
        Whole(none_label="as long as noise asks for", low=1, high=10**9),
        "Pulls of an arm by each agent in the first epoch; of all together where they split.",
        default=None,
    )
    rounds: int | None = rounds_parameter()
    failure: float | None = failure_parameter("Chance that the best arm is lost.")

    def values(self, exchange: Exchange, horizon: int) -> dict[str, Any]:
        """Returns ``params`` of the equations."""
        reporting = float(exchange.reporting)
        # The agents that pull an arm depend on the active arms, and so on data.
        by_data = self.shares_arms and not self.sums_securely and self.epsilon is not None
        return {
            "epsilon": self.pool_epsilon(exchange),
            "growth": self.growth,
            "first": math.nan if self.first is None else float(self.first),
            "reporting": reporting,
            "senders": 1.0 if self.shares_arms else reporting,
            "noises": 1.0 if self.shares_arms or self.sums_securely else reporting,
            "rounds": math.inf if self.rounds is None else float(self.rounds),
            "failure": 1.0 / horizon if self.failure is None else self.failure,
            **self.find_noise_params(exchange),
            **self._list_shares(exchange),
        } | ({"most_noises": reporting} if by_data else {})

    def _list_shares(self, exchange: Exchange) -> dict[str, Any]:
        """Returns the unlike scales of noises in a sum, and the share of noises with each.

        If some agents report, they are taken to be those of the largest scales.
        """
        scales = self.list_scales(exchange)
        if scales is None:
            return {}
        levels, counts = np.unique(np.sort(scales)[-exchange.reporting :], return_counts=True)
        return {"noise_scales": levels, "noise_shares": counts / exchange.reporting}

    @staticmethod
    def budget(params: dict[str, Reals]) -> Scalar:
        """Returns R."""
        return params["rounds"]

    @staticmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns b_r, the required evidence: log(K r (r + 1) / failure)."""
        return jnp.log(epoch.arms * epoch.number * (epoch.number + 1.0) / epoch.params["failure"])

    @classmethod
    def pulls_per_arm(cls, epoch: Epoch) -> Scalar:
        """Returns S_r: the first epoch's, then ``growth`` times as many each time."""
        params = epoch.params
        needed = cls.radius(epoch._replace(number=jnp.ones_like(epoch.number)))
        # The first epoch ends when noise alone allows to see a gap of one half, with b_1.
        length = jnp.sqrt(32.0 * needed * params["noises"]) / (
            params["epsilon"] * params["senders"]
        )
        if epoch.mechanism != LAPLACE:
            variance = epoch.mechanism.variance(params["noise_scale"])
            length = jnp.sqrt(16.0 * needed * params["noises"] * variance) / params["senders"]
        first = jnp.where(
            jnp.isnan(params["first"]), jnp.maximum(jnp.ceil(length), 1.0), params["first"]
        )
        return jnp.where(epoch.number == 1.0, first, jnp.ceil(params["growth"] * epoch.previous))

    @classmethod
    def precompute(cls, epoch: Epoch, radius: Scalar) -> PyTree:
        """Returns tilts for b_r, for the number of noises or for possible values of it."""
        params = epoch.params
        # A round may miss some of the agents that report.
        share = epoch.reporting / params["reporting"]
        noises = (epoch.number * params["noises"] * share)[None]
        if "most_noises" in params:
            power = jnp.linspace(0.0, 1.0, _SCALES, dtype=jnp.float64)
            noises = noises * params["most_noises"] ** power
        rewards, law = params["senders"] * share * epoch.pulls, None
        if "noise_scales" in params:
            law = _average_law(epoch)
        elif epoch.mechanism != LAPLACE:
            mechanism, scale = epoch.mechanism, params["noise_scale"]
            law = evidence.noise_law(
                lambda tilt: mechanism.log_mgf(tilt, scale),
                mechanism.farthest_tilt(scale),
                mechanism.variance(scale),
            )
        return evidence.choose_tilts(radius, rewards, noises, params["epsilon"], law)

    @classmethod
    def worse(cls, aggregate: Aggregate, epoch: Epoch) -> Bool[Array, " arm"]:
        """Drops arms with enough evidence against them."""
        counts = aggregate.rewards, aggregate.noises, aggregate.best_noises
        against = evidence.evidence(aggregate.precomputed, aggregate.mean, aggregate.best, *counts)
        return (aggregate.mean < aggregate.best) & (against >= aggregate.radius)

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns 1 / epsilon, or the scale of noise that is not Laplace."""
        if epoch.mechanism != LAPLACE:
            return epoch.params["noise_scale"]
        return 1.0 / epoch.params["epsilon"]


def _average_law(epoch: Epoch) -> evidence.NoiseLaw:
    """Returns the law of one noise whose logarithm of the generating function is the average."""
    mechanism = epoch.mechanism
    scales, shares = epoch.params["noise_scales"], epoch.params["noise_shares"]

    def average(values: Array) -> Array:
        return sum_in_turn(rounded(shares.reshape(-1, *[1] * (values.ndim - 1)) * values))

    def log_mgf(tilt: Array) -> Array:
        return average(mechanism.log_mgf(tilt[None], scales.reshape(-1, *[1] * tilt.ndim)))

    farthest = jnp.min(mechanism.farthest_tilt(scales))
    return evidence.noise_law(log_mgf, farthest, average(mechanism.variance(scales)))
