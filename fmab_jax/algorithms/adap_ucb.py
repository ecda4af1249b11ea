"""AdaP-UCB: one agent's private UCB in episodes that double, each released once with noise."""

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp

from fmab_jax.algorithms.families.episodes import Episode, Episodes, Params
from fmab_jax.algorithms.families.private import Private
from fmab_jax.algorithms.kl_ucb import CLOSE, maximize_mean
from fmab_jax.parameters import NOT_NEGATIVE, Flag, parameter
from fmab_jax.sampling.shapes import Integer, PerArm, Scalar


class LastEpisode(NamedTuple):
    """An agent's state, by arm.

    Attributes:
        pulls: Pulls of each arm in all complete episodes.
        mean: Noisy mean of the arm's last episode.
        length: Pulls of the arm's last episode.
    """

    pulls: PerArm
    mean: PerArm
    length: PerArm


@dataclass(frozen=True)
class AdaPUCB(Private, Episodes):
    """AdaP-UCB: the arm of the largest index is pulled until its pulls have doubled.

    An agent uses the mean of the arm's last episode, plus Laplace noise of scale 1 / (epsilon
    length): episodes are disjoint, so one variable for each is enough. With h the length of that
    episode, the index is mean + sqrt(alpha log(2 t) / (2 h)) + alpha log(t) / (epsilon h), t the
    first slot of the new episode. Every agent is alone.

    AdaP-KLUCB is the same with another index: the largest q with kl(m, q) <= alpha log(t) / h,
    where m = mean + alpha log(t) / (epsilon h), cut to [0, 1]. Arms whose index is 1, to 1e-9, tie:
    they are played one after another, the lowest first, until each has fallen below.

    Attributes:
        epsilon: Privacy of an agent's actions, for one changed reward; None for no noise.
        alpha: Factor of the index; 3.1 is the authors' value.
        kl: Whether the index is that of AdaP-KLUCB.

    Example:
        No message is sent. Epsilon covers what an agent does.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.adap_ucb(0.5), agents=5):
        ...     print(row.viewer, row.epsilon)
        anybody who sees actions 0.5
    """

    name = "adap_ucb"
    title = "AdaP-UCB"
    source = "Azize and Basu, NeurIPS 2022, arXiv 2209.02570"
    communication = "nobody: each agent alone"
    trusted = "nobody: no message is sent"
    disjoint = "episodes are disjoint data, each with one noise"
    examples = ("--agents 20", "--epsilon 0.1 1 --kl")

    alpha: float = parameter(NOT_NEGATIVE, "Of the index.", default=3.1)
    kl: bool = parameter(
        Flag(), "Take the index of AdaP-KLUCB.", default=False, symbol="AdaP-KLUCB"
    )

    @staticmethod
    def init(arms: int, params: Params) -> LastEpisode:
        """Returns the state of an agent that knows nothing."""
        return LastEpisode(*(jnp.zeros(arms),) * 3)

    @staticmethod
    def choose(state: LastEpisode, episode: Episode, params: Params) -> tuple[Integer, Scalar]:
        """Returns the lowest arm of the largest index, and its pulls so far as the length."""
        private = params["alpha"] * jnp.log(episode.time) / (params["epsilon"] * state.length)
        width = jnp.sqrt(params["alpha"] * jnp.log(2.0 * episode.time) / (2.0 * state.length))
        mean = jnp.clip(state.mean + private, 0.0, 1.0)
        largest = maximize_mean(mean, params["alpha"] * jnp.log(episode.time) / state.length)
        index = jnp.where(params["kl"] > 0.0, largest, state.mean + width + private)
        close = jnp.where(params["kl"] > 0.0, CLOSE, 0.0)
        arm = jnp.argmax(index >= jnp.max(index) - close)
        return arm, state.pulls[arm]

    @staticmethod
    def learn(
        state: LastEpisode,
        pulls: PerArm,
        rewards: PerArm,
        noise: PerArm,
        episode: Episode,
        params: Params,
    ) -> LastEpisode:
        """Replaces the arm's noisy mean by that of this episode."""
        mask = pulls > 0.0
        mean = (rewards + noise / params["epsilon"]) / jnp.where(mask, pulls, 1.0)
        return LastEpisode(
            pulls=state.pulls + pulls,
            mean=jnp.where(mask, mean, state.mean),
            length=jnp.where(mask, pulls, state.length),
        )
