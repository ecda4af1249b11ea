"""Integer noise: its samplers, its law by Fourier inversion, and the hockey-stick divergence."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fmab_jax.core.keys import lane_words
from fmab_jax.core.shapes import Bits, Reals

_MOST = 2**22
"""Points of the longest law that is worked out; a wider one has no stated delta."""


def law_of_sum(characteristic: Callable[[np.ndarray], np.ndarray], deviation: float) -> np.ndarray:
    """Returns P(noise = k) for k = -n, ..., n, to 1e-15.

    Args:
        characteristic: The characteristic function of the sum, real and even.
        deviation: Its standard deviation, in steps.
    """
    # Tails fall at least as fast as those of Laplace noise.
    size = 2 ** math.ceil(math.log2(64.0 + 60.0 * deviation))
    if size > _MOST:
        return np.empty(0)
    frequency = 2.0 * np.pi * np.arange(size) / size
    law = np.fft.ifft(characteristic(frequency)).real
    return np.maximum(np.fft.fftshift(law)[1:], 0.0)


def hockey_stick(law: np.ndarray, shift: int, epsilon: float) -> float:
    """Returns the largest P(A) - e^epsilon P(A + shift) over events A of integer noise."""
    moved = np.zeros_like(law)
    if shift < len(law):
        moved[shift:] = law[: len(law) - shift]
    factor = math.exp(min(epsilon, 700.0))
    return float(np.sum(np.maximum(law - factor * moved, 0.0)))


def epsilon_of(law: np.ndarray, shift: int, delta: float, highest: float) -> float:
    """Returns the smallest epsilon at delta, at most ``highest``."""
    from scipy.optimize import brentq

    if not len(law) or delta <= 0.0:
        return highest
    if hockey_stick(law, shift, 0.0) <= delta:
        return 0.0
    high = min(highest, 700.0)
    if hockey_stick(law, shift, high) > delta:
        return highest
    solved = brentq(lambda e: hockey_stick(law, shift, e) - delta, 0.0, high, xtol=1e-12)
    return min(float(solved), highest)


def poisson(words: tuple[Bits, Bits], lane: Bits, draw: Bits, mean: Reals) -> Reals:
    """Samples Poisson variables, one per lane, each with a key of its own."""
    keys, mean = _keys(words, lane, draw, mean)
    return (
        jax.vmap(lambda key, mean: jax.random.poisson(key, mean, dtype=jnp.int64))(
            keys, mean.reshape(-1)
        )
        .reshape(mean.shape)
        .astype(jnp.float64)
    )


def gamma(words: tuple[Bits, Bits], lane: Bits, draw: Bits, shape: Reals) -> Reals:
    """Samples Gamma variables of scale 1, one per lane, each with a key of its own."""
    keys, shape = _keys(words, lane, draw, shape)
    return jax.vmap(lambda key, shape: jax.random.gamma(key, shape))(
        keys, shape.reshape(-1)
    ).reshape(shape.shape)


def _keys(words: tuple[Bits, Bits], lane: Bits, draw: Bits, values: Reals) -> tuple[Array, Reals]:
    """Returns a threefry key for each element of ``values``, broadcast against lanes."""
    shape = jnp.broadcast_shapes(lane.shape, values.shape, jnp.shape(words[0]))
    pair = (jnp.broadcast_to(word, shape).reshape(-1) for word in lane_words(*words, lane, draw))
    keys = jax.random.wrap_key_data(jnp.stack(tuple(pair), -1), impl="threefry2x32")
    return keys, jnp.broadcast_to(values, shape)
