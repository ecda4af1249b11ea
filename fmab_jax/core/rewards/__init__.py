"""Reward laws, one file each: how one reward, and the sum of many, is distributed.

Another law is another file here, or a plug-in; `fmab_jax.core.laws` finds it by its name.
"""

from fmab_jax.core.rewards.base import Law
from fmab_jax.core.rewards.bernoulli import Bernoulli
from fmab_jax.core.rewards.finite import MAX_LEVELS, FiniteSupport, Ratings, checked_levels
from fmab_jax.core.rewards.gaussian import Gaussian

__all__ = [
    "MAX_LEVELS",
    "Bernoulli",
    "FiniteSupport",
    "Gaussian",
    "Law",
    "Ratings",
    "checked_levels",
]
