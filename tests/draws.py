"""Laws that are compared without a draw, and draws that are compared with laws."""

import jax
import jax.numpy as jnp
import numpy as np
import programs
import pytest
from scipy import stats

from fmab_jax.draws import groups
from fmab_jax.sampling import backend, keys, lookup

ALPHA = 1e-6
LATTICE = 2**52  # uniforms are (i + 1/2) / 2^52
MILLION = 10**6


def words(seed=0, round_=1, stream=keys.REWARD):
    """Returns the key words of a stream of root seed 0."""
    return keys.stream_key(keys.seed_key(jnp.uint32(0), jnp.uint32(seed)), round_, stream)


def jit_for(platform, function):
    """Returns a compiled function, laid out for "cpu" or "gpu"; this processor runs either."""

    def laid_out(*operands):
        with backend.trace_for(platform):
            return function(*operands)

    # XLA's older emitters, with which tests are compiled, take all memory for a long straight line.
    return jax.jit(laid_out, compiler_options=programs.EMITTERS)


def at_uniform(draw, platform="cpu"):
    """Returns a function of uniforms and operands: the draw whose uniforms these are."""

    # A cipher that changes nothing leaves the uniform's bits in the words.
    def drawn(u, *operands):
        whole = jnp.round(u * LATTICE - 0.5).astype(jnp.uint64)
        high, low = whole >> jnp.uint64(20), whole << jnp.uint64(12)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keys, "_threefry", lambda k0, k1, *_: (k0, k1))
            return draw(keys.Words(high.astype(jnp.uint32), low.astype(jnp.uint32)), *operands)

    return jit_for(platform, drawn)


def group_sums(law, words, arm, width, pulls, parameters, member):
    """Returns [arm, group] sums as an epoch draws them; parameters [agent, arm of all]."""
    own = [x[:, arm] for x in parameters]
    cumulants = jnp.moveaxis(groups.sum_cumulants(law, tuple(own), member), 2, 0)
    words = [word[:, None] if word.ndim else word for word in words]
    first = jnp.argmax(member, axis=1).astype(jnp.uint32)[None]
    group = jnp.arange(len(member), dtype=jnp.int32)[None]
    arm = arm.astype(jnp.uint32)[:, None]
    row = arm.astype(jnp.int32)
    return groups.sample_group_sum(
        law,
        keys.Words(*words),
        first * jnp.uint32(width) + arm,
        arm,
        jnp.broadcast_to(pulls, len(arm))[:, None],
        jnp.sum(member, axis=1)[None],
        cumulants,
        width,
        None,
        lookup.Table(member, group),
        *(lookup.Table(x.T, row) for x in parameters),
    )


def induced_cdf(at_most, size):
    """Returns P(X <= k) of the law that a quantile function induces, for so many k.

    The quantile is a monotone function of the lattice of uniforms, so the last lattice point whose
    quantile is at most k, found by bisection, is P(X <= k) exactly. `at_most` tells where it is.
    """
    low, high = np.full(size, -1), np.full(size, LATTICE)
    while (high - low > 1).any():
        middle = (low + high) // 2
        inside = np.asarray(at_most((np.clip(middle, 0, LATTICE - 1) + 0.5) / LATTICE))
        going = high - low > 1
        low, high = np.where(going & inside, middle, low), np.where(going & ~inside, middle, high)
    return (low + 1) / LATTICE


def two_sided(z):
    """Returns the p-value of a standard normal statistic."""
    return float(2 * stats.norm.sf(abs(z)))
