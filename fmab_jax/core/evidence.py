"""Evidence that an arm is worse, from sums of rewards with Laplace noise on them.

Let Y and Z be sums of n independent rewards in [0, 1] each, of which the second ones have the mean
q and the first ones no smaller a mean, with m and m' Laplace variables of scale 1 / epsilon. For
tilts l and k below epsilon, from moment-generating functions as they are,

    X(l, k) = exp(-l Y - k (n - Z)) (1 - l^2 / epsilon^2)^m (1 - k^2 / epsilon^2)^m'
    E X(l, k) <= R(q; l, k)^n,   R(q; l, k) = (1 - q + q e^-l) (q + (1 - q) e^-k)

`prepared` fixes some pairs of tilts before any data are seen, each of which is sharpest for one q.
The evidence that Y's mean is smaller than Z's is the logarithm of the sum of X over them, each
divided by the largest R^n, less the logarithm of the largest expectation that this sum may have. So
it reaches log(1 / chance) with a probability of at most ``chance`` where Y's mean is not smaller.
How many noises a sum has may depend on what was heard before.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from fmab_jax.core.arrays import rounded
from fmab_jax.core.shapes import Lanes, PerArm, Reals, Scalar

PerPlace = Float[Array, " place"]

# No tilt further than this is of use where there is no noise to bound it.
_FARTHEST = 30.0
# Steps towards the tilts that show what is needed: as any tilt is valid, two digits do.
_STEPS = 5
# The means q for which a pair of tilts is sharpest: equally far apart where variance is stable.
_PLACES = 16
_MEANS = np.sin((np.arange(_PLACES) + 0.5) / _PLACES * np.pi / 2.0) ** 2
# Means between which the largest expectation is bounded by tangents.
_EDGES = np.sin(np.linspace(0.0, np.pi / 2.0, 4 * _PLACES + 1)) ** 2


class Prepared(NamedTuple):
    """Pairs of tilts, fixed before data are seen.

    Attributes:
        low: [place] l, of the sum whose mean may be smaller.
        high: [place] k, of the other.
        offset: [place] n times the logarithm of the largest R, and the logarithm of the largest
            expectation of the sum.
        low_noise: [place] log(1 - l^2 / epsilon^2), at most 0.
        high_noise: [place] log(1 - k^2 / epsilon^2), at most 0.
    """

    low: PerPlace
    high: PerPlace
    offset: PerPlace
    low_noise: PerPlace
    high_noise: PerPlace


def prepared(needed: Scalar, rewards: Scalar, noises: Array, epsilon: Scalar) -> Prepared:
    """Returns pairs of tilts that are sharpest where the evidence is about ``needed``.

    Args:
        needed: Evidence at which an arm leaves, log(1 / chance).
        rewards: n, how many rewards either sum is of.
        noises: For how many Laplace variables in a sum to be sharp; any number may come.
        epsilon: Their scale is 1 / epsilon; infinite for no noise.
    """
    # At 1 - q the tilts are those of q, swapped; the rarer outcome has the larger tilt.
    means, many = jnp.asarray(_MEANS[: _PLACES // 2])[None, :], noises[:, None]
    end = jnp.minimum(epsilon, _FARTHEST)
    scaled = end / epsilon

    def pair(u: Array) -> tuple[Array, Array]:
        """Returns both tilts; with the second one, R is largest at ``means``."""
        low = end * jnp.sqrt(u / (1.0 + u))
        share = 1.0 / (-1.0 / jnp.expm1(-low) + 1.0 - 2.0 * means)
        return low, -jnp.log1p(-share)

    def nearer(_: int, u: Array) -> Array:
        low, high = pair(u)
        a, b = -jnp.expm1(-low), -jnp.expm1(-high)
        left = means * (1.0 - a) / (1.0 - rounded(means * a))
        right = (1.0 - means) * (1.0 - b) / (1.0 - rounded((1.0 - means) * b))
        shown = -rounded(low * left) - rounded(high * right) - _log_ratio(means, a, b)
        noise = _shown_by_noise(low / epsilon) + _shown_by_noise(high / epsilon)
        # The evidence grows about in proportion to u.
        return jnp.clip(u * needed / _sum_of_products(rewards, shown, many, noise), 1e-24, 1e6)

    variance = rounded(rewards * means * (1.0 - means) * end * end)
    u = needed / (variance + rounded(2.0 * many * scaled * scaled))
    rare, common = pair(lax.fori_loop(0, _STEPS, nearer, u))
    low = jnp.concatenate([rare, common[:, ::-1]], axis=1).reshape(-1)
    high = jnp.concatenate([common, rare[:, ::-1]], axis=1).reshape(-1)
    top = rounded(rewards * _log_largest(low, high))
    offset = top + _log_level(rewards, low, high, top)
    ratio_low, ratio_high = low / epsilon, high / epsilon
    return Prepared(
        low, high, offset, jnp.log1p(-ratio_low * ratio_low), jnp.log1p(-ratio_high * ratio_high)
    )


def _sum_of_products(a: ArrayLike, x: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    return rounded(jnp.multiply(a, x)) + rounded(jnp.multiply(b, y))


def _shown_by_noise(x: Array) -> Array:
    square = rounded(x * x)
    return 2.0 * square / (1.0 - square) + jnp.log1p(-square)


def _log_ratio(mean: Array, a: Array, b: Array) -> Array:
    """Returns log R at a mean, for a = 1 - e^-l and b = 1 - e^-k."""
    other = 1.0 - mean
    both = rounded(mean * other * a * b)
    return jnp.log1p(both - rounded(mean * a) - rounded(other * b))


def _log_largest(low: Array, high: Array) -> Array:
    """Returns the logarithm of the largest R, in closed form."""
    a, b = -jnp.expm1(-low), -jnp.expm1(-high)
    # It is at q = (1 + 1/a - 1/b) / 2, or at an end.
    apart = 1.0 / a - 1.0 / b
    inside = 2.0 * jnp.log(-jnp.expm1(-(low + high))) - jnp.log(4.0 * a * b)
    return jnp.where(apart <= -1.0, -high, jnp.where(apart >= 1.0, -low, inside))


def _log_level(rewards: Scalar, low: PerPlace, high: PerPlace, top: Array) -> Scalar:
    """Returns the logarithm of the largest sum of R(q)^n over its largest, or a little more.

    The logarithm of R is concave in q: between two means it is below both tangents.
    """
    q = jnp.asarray(_EDGES)[:, None]
    low, high, top = low[None, :], high[None, :], top[None, :]
    a, b = -jnp.expm1(-low), -jnp.expm1(-high)
    value = rounded(rewards * _log_ratio(q, a, b)) - top
    lost, gained = rounded(q * a), rounded((1.0 - q) * b)
    slope = rewards * (b / (1.0 - gained) - a / (1.0 - lost))
    here, there = slice(None, -1), slice(1, None)
    width = q[there] - q[here]
    # The place where the tangents meet, as a part of the width.
    bend = (slope[here] - slope[there]) * width
    rise = value[there] - value[here]
    meet = (rise - rounded(slope[there] * width)) / jnp.where(bend > 0.0, bend, 1.0)
    inside = value[here] + rounded(slope[here] * width * jnp.clip(meet, 0.0, 1.0))
    between = jnp.where(slope[here] <= 0.0, value[here], inside)
    between = jnp.where(slope[there] >= 0.0, value[there], between)
    return jnp.log(jnp.max(jnp.sum(jnp.exp(jnp.minimum(between, 0.0)), axis=1)))


def evidence(
    given: Prepared, low: PerArm, high: Scalar, rewards: Scalar, noises: Reals, high_noises: Reals
) -> PerArm:
    """Returns the evidence that the mean behind ``low`` is below that behind ``high``.

    It reaches log(1 / chance) with a probability of at most ``chance`` if both means are equal, or
    that of ``low`` is larger. For rewards of any law in [0, 1], and for sums over agents whose
    means differ, that is so for their average: log R is concave in q.

    Args:
        given: What was prepared.
        low: Noisy means of rewards.
        high: A larger one.
        rewards: How many rewards each is the mean of, n.
        noises: How many Laplace variables are in the sum of ``low``.
        high_noises: How many are in that of ``high``.
    """
    places = jax.tree.map(lambda x: x[:, None], given)
    low = low[None, :]
    shown = _sum_of_products(places.low, low, places.high, 1.0 - high)
    exponent = -rounded(rewards * shown) - places.offset
    noises, high_noises = (jnp.broadcast_to(x, low.shape) for x in (noises, high_noises))
    exponent = exponent + _sum_of_products(noises, places.low_noise, high_noises, places.high_noise)
    largest = jnp.max(exponent, axis=0)
    return largest + jnp.log(jnp.sum(jnp.exp(exponent - largest[None]), axis=0))


def private_divergence(low: Reals, high: Reals, epsilon: Scalar) -> Reals:
    """Returns d_epsilon(x, y) = inf over z of epsilon |z - x| + kl(z, y), for x < y; else 0.

    Where the log odds of both are at most epsilon apart, that is kl(x, y); beyond,
    -epsilon x - log(1 - y + y e^-epsilon).

    Args:
        low: x in [0, 1].
        high: y in [0, 1].
        epsilon: Privacy parameter; infinite for none.
    """
    near = _odds(high) - _odds(low) <= epsilon
    inside = _relative(low, high) + _relative(1.0 - low, 1.0 - high)
    finite = jnp.where(jnp.isinf(epsilon), 1.0, epsilon)
    far = -rounded(finite * low) - jnp.log1p(high * jnp.expm1(-finite))
    return jnp.where(low < high, jnp.maximum(jnp.where(near, inside, far), 0.0), 0.0)


def largest_within(mean: Lanes, near: Lanes, distance: Lanes, epsilon: Scalar) -> Lanes:
    """Returns the largest q in [mean, 1] with private_divergence(mean, q) <= distance.

    Args:
        mean: In [0, 1].
        near: The largest q with kl(mean, q) <= distance.
        distance: At least 0.
        epsilon: Privacy parameter; infinite for none.
    """
    finite = jnp.where(jnp.isinf(epsilon), 1.0, epsilon)
    far = jnp.expm1(-(distance + rounded(finite * mean))) / jnp.expm1(-finite)
    inside = (_odds(near) - _odds(mean) <= epsilon) | jnp.isinf(epsilon)
    return jnp.where(inside, near, jnp.clip(far, mean, 1.0))


def _odds(p: Array) -> Array:
    return jnp.log(p) - jnp.log1p(-p)


def _relative(x: Array, y: Array) -> Array:
    positive = x > 0.0
    return jnp.where(positive, x * jnp.log(jnp.where(positive, x, 1.0) / y), 0.0)
