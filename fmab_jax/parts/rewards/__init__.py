"""Reward laws, one file each: how one reward, and the sum of many, is distributed.

Another law is another file here, or a plug-in; `fmab_jax.parts.laws` finds it by its name.
"""

from fmab_jax.parts.rewards.base import Law as Law
from fmab_jax.parts.rewards.bernoulli import Bernoulli as Bernoulli
from fmab_jax.parts.rewards.finite import FiniteSupport as FiniteSupport
from fmab_jax.parts.rewards.finite import Ratings as Ratings
from fmab_jax.parts.rewards.finite import checked_levels as checked_levels
from fmab_jax.parts.rewards.gaussian import Gaussian as Gaussian
