"""DP-IMED: the arm whose private divergence from the best costs least, in episodes that grow."""

from dataclasses import dataclass

import jax.numpy as jnp

from fmab_jax.algorithms.families.episodes import Episode, Params, Sums
from fmab_jax.algorithms.families.growing import GrowingEpisodes, plan_slots
from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.evidence import private_divergence
from fmab_jax.sampling.shapes import Integer, Scalar


@dataclass(frozen=True)
class DPIMED(GrowingEpisodes):
    """DP-IMED: plays the arm of the smallest n d_epsilon(mean, best mean) + log n.

    n counts an arm's pulls, means are noisy sums over them, cut to [0, 1]. The arm is played until
    n has grown by a factor; its rewards are released as one sum with Laplace(1 / epsilon) noise.

    Over a secure sum (not in the paper) all agents play the arm together, with one noise.

    Example:
        No message is sent. Epsilon covers what an agent does.

        >>> import fmab_jax as fmab
        >>> for row in fmab.privacy_ledger(fmab.dp_imed(0.5), agents=5):
        ...     print(row.viewer, row.epsilon)
        anybody who sees actions 0.5
    """

    name = "dp_imed"
    title = "DP-IMED"

    @staticmethod
    def choose(state: Sums, episode: Episode, params: Params) -> tuple[Integer, Scalar]:
        """Returns the arm of the smallest index; ties go to the lowest."""
        mean = jnp.clip(state.sums / state.pulls, 0.0, 1.0)
        cost = private_divergence(mean, jnp.max(mean), params["epsilon"])
        arm = jnp.argmin(rounded(state.pulls * cost) + jnp.log(state.pulls))
        return arm, plan_slots(state.pulls[arm], episode, params)
