"""Reward laws, one file each: how one reward, and the sum of many, is distributed.

Another law is another file here, or a plug-in. A law is known by its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fmab_jax.parts.registry import Registry, VariantOf
from fmab_jax.parts.rewards.bernoulli import Bernoulli as Bernoulli
from fmab_jax.parts.rewards.finite import FiniteSupport as FiniteSupport
from fmab_jax.parts.rewards.finite import Ratings as Ratings
from fmab_jax.parts.rewards.finite import checked_levels as checked_levels
from fmab_jax.parts.rewards.gaussian import Gaussian as Gaussian
from fmab_jax.parts.rewards.law import Law as Law
from fmab_jax.sampling.shapes import Record

REWARDS: Registry[Law] = Registry(
    __name__,
    Law,  # type: ignore[type-abstract]
    "reward law",
    ", or an object such as fmab_jax.Gaussian(0.1)",
    excluded=(Ratings,),  # which take a table
)


@dataclass(frozen=True)
class LawOf(VariantOf):
    """A reward law, or its text: bernoulli, gaussian:SD, or one of a plug-in."""

    registry: Registry[Law] = field(default=REWARDS, kw_only=True)

    def plain(self, value: Law) -> Record:
        """Returns its description."""
        return value.describe()

    def label(self, value: Law) -> str:
        """Returns its words."""
        return value.label()

    text = label
