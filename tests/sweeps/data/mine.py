"""Somebody's own variant of CDP-MAB: a file outside the package."""

from dataclasses import dataclass

from fmab_jax.algorithms.cdp_mab import CDP


@dataclass(frozen=True)
class Mine(CDP):
    """CDP-MAB under another name."""

    name = "mine"
    title = "Mine"
