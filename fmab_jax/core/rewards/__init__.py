"""Reward laws, one file each: how one reward, and the sum of many, is distributed.

Another law is another file here, or a plug-in; `fmab_jax.core.laws` finds it by its name.
"""

from fmab_jax.core.rewards.base import Law as Law
from fmab_jax.core.rewards.bernoulli import Bernoulli as Bernoulli
from fmab_jax.core.rewards.finite import FiniteSupport as FiniteSupport
from fmab_jax.core.rewards.finite import Ratings as Ratings
from fmab_jax.core.rewards.finite import checked_levels as checked_levels
from fmab_jax.core.rewards.gaussian import Gaussian as Gaussian
