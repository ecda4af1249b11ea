"""Laplace noise: the paper's."""

from __future__ import annotations

import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from fmab_jax.parts.mechanisms.mechanism import Mechanism, Read
from fmab_jax.sampling import keys, laplace, normal
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.shapes import Bits, Reals, Scalar


@dataclass(frozen=True)
class Laplace(Mechanism):
    """Laplace noise; a message leaks 1 / scale.

    Source: Dwork, McSherry, Nissim and Smith (TCC 2006), proposition 1. Sums: see
    `fmab_jax.analysis.privacy.laplace_sum_epsilon`.
    """

    name = "laplace"
    title = "Laplace"
    scales = True
    nested = True
    source = "Dwork et al., TCC 2006, proposition 1"

    def sample(self, words: Words, lane: Bits, scale: Reals, draw: int | Bits = 0) -> Reals:
        """Samples by inversion."""
        return scale * laplace.quantile(keys.uniform(*words, lane, draw))

    def sample_sum(self, words: Words, lane: Bits, scale: Reals, count: Reals) -> Reals:
        """Samples eight variables at once."""
        return scale * laplace.sample_small_sums(*words, lane, count.astype(jnp.int32))

    def tabulate(self, count: int) -> np.ndarray:
        """Returns the polynomial of `laplace.laplace_sum`."""
        return laplace.laplace_sum_shape(count)

    def sample_tabulated(self, words: Words, lane: Bits, scale: Reals, read: Read) -> Reals:
        """Samples a sum as a function of one normal variable."""
        z = normal.quantile(keys.uniform(*words, lane))
        return scale * read(lambda shape, z: laplace.laplace_sum(z, shape), z)

    def log_mgf(self, tilt: Reals, scale: Reals) -> Reals:
        """Returns -log(1 - tilt^2 scale^2)."""
        product = tilt * scale
        return -jnp.log1p(-product * product)

    def farthest_tilt(self, scale: Reals) -> Reals:
        """Returns 1 / scale."""
        return 1.0 / scale

    def variance(self, scale: Reals) -> Reals:
        """Returns 2 scale^2."""
        return 2.0 * scale * scale

    def deviation(self, count: Scalar, level: Scalar, scale: Scalar) -> Scalar:
        """Returns scale sqrt(8 count level), as Algorithm 1 has it (line 5)."""
        return scale * jnp.sqrt(8.0 * count * level)

    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns 1 / scale, or less up to delta where noises add up."""
        from fmab_jax.parts.mechanisms.laplace_sums import sum_epsilon

        return 1.0 / scale if delta == 0.0 else sum_epsilon(count, 1.0 / scale, delta)

    def scale(self, epsilon: float, delta: float) -> float:
        """Returns 1 / epsilon."""
        return 1.0 / epsilon if epsilon < math.inf else 0.0


LAPLACE = Laplace()
"""The paper's mechanism."""
