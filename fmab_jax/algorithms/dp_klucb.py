"""DP-KLUCB: the arm of the largest private upper bound, in episodes that grow."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families.episodes import Episode, Params, Sums
from fmab_jax.algorithms.families.growing import GrowingEpisodes, plan_slots
from fmab_jax.algorithms.kl_ucb import maximize_mean
from fmab_jax.sampling.evidence import largest_within
from fmab_jax.sampling.shapes import Integer, Scalar


@dataclass(frozen=True)
class DPKLUCB(GrowingEpisodes):
    """DP-KLUCB: plays the arm of the largest q with n d_epsilon(mean, q) <= log t.

    n counts an arm's pulls, means are noisy sums over them, cut to [0, 1]; t is the episode's first
    slot, times the agents that play together. The arm is played until n has grown by a factor, and
    its rewards are released as one sum with Laplace(1 / epsilon) noise.

    Over a secure sum (not in the paper) all agents play the arm together, with one noise.

    Example:
        No message is sent. Epsilon covers what an agent does.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.dp_klucb(0.5), agents=5):
        ...     print(row.viewer, row.epsilon)
        anybody who sees actions 0.5
    """

    name = "dp_klucb"
    title = "DP-KLUCB"

    @staticmethod
    def choose(state: Sums, episode: Episode, params: Params) -> tuple[Integer, Scalar]:
        """Returns the arm of the largest index; ties go to the lowest."""
        mean = jnp.clip(state.sums / state.pulls, 0.0, 1.0)
        distance = jnp.log(episode.sharing * episode.time) / state.pulls
        index = largest_within(mean, maximize_mean(mean, distance), distance, params["epsilon"])
        arm = jnp.argmax(index)
        return arm, plan_slots(state.pulls[arm], episode, params)
