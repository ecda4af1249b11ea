"""Evidence that an arm is worse, from sums of rewards with Laplace noise on them.

Y and Z are sums of n independent rewards in [0, 1] each, with m and m' Laplace variables of scale
1 / epsilon. The rewards of Z have mean q, those of Y have at least this mean. For tilts l and k
below epsilon, the exact moment-generating functions give

    X(l, k) = exp(-l Y - k (n - Z)) (1 - l^2 / epsilon^2)^m (1 - k^2 / epsilon^2)^m'
    E X(l, k) <= R(q; l, k)^n,   R(q; l, k) = (1 - q + q e^-l) (q + (1 - q) e^-k)

`choose_tilts` fixes pairs of tilts independently of the data; each pair is sharpest for one q. The
evidence that Y's mean is smaller than Z's is the logarithm of the sum of X over the pairs, each
divided by the largest R^n, minus the logarithm of the largest expectation of this sum. So it
reaches log(1 / chance) with a probability of at most ``chance`` if Y's mean is not smaller. The
number of noises of a sum may depend on earlier messages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.shapes import Lanes, PerArm, Reals, Scalar

PerPlace = Float[Array, " place"]

# Without noise, larger tilts do not help.
_FARTHEST = 30.0
# Every tilt is valid, so two digits are enough.
_STEPS = 5
# Means q with a sharpest pair of tilts, equidistant on the variance-stabilising scale.
_PLACES = 16
_MEANS = np.sin((np.arange(_PLACES) + 0.5) / _PLACES * np.pi / 2.0) ** 2
# Tangents bound the largest expectation between these means.
_EDGES = np.sin(np.linspace(0.0, np.pi / 2.0, 4 * _PLACES + 1)) ** 2


class Tilts(NamedTuple):
    """Pairs of tilts, which do not depend on data.

    Attributes:
        low: [place] l, tilt of the sum whose mean may be smaller.
        high: [place] k, tilt of the other sum.
        offset: [place] n times the logarithm of the largest R, plus the logarithm of the largest
            expectation of the sum.
        low_noise: [place] log(1 - l^2 / epsilon^2), at most 0.
        high_noise: [place] log(1 - k^2 / epsilon^2), at most 0.
    """

    low: PerPlace
    high: PerPlace
    offset: PerPlace
    low_noise: PerPlace
    high_noise: PerPlace


class NoiseLaw(NamedTuple):
    """What tilts need of the law of one noise.

    Attributes:
        farthest: Where the moment-generating function ends.
        evidence: Maps a tilt to the evidence that one noise adds at the expected sum.
        spread: Maps numbers of noises, and the farthest tilt, to their variance in its units.
        discount: Maps a tilt to minus the logarithm of the moment-generating function.
    """

    farthest: Scalar
    evidence: Callable[[Array], Array]
    spread: Callable[[Array, Scalar], Array]
    discount: Callable[[Array], Array]


def choose_tilts(
    threshold: Scalar,
    rewards: Scalar,
    noises: Array,
    epsilon: Scalar,
    law: NoiseLaw | None = None,
) -> Tilts:
    """Returns the pairs of tilts that are sharpest for evidence near the threshold.

    Args:
        threshold: Evidence at which an arm is eliminated, log(1 / chance).
        rewards: n, number of rewards in either sum.
        noises: Numbers of Laplace variables for which to be sharp; any number is valid.
        epsilon: The scale of the noise is 1 / epsilon; infinite for no noise.
        law: Of noise that is not Laplace, in place of ``epsilon``.
    """
    law = law or _laplace_law(epsilon)
    # The tilts of 1 - q are those of q, swapped.
    means, counts = jnp.asarray(_MEANS[: _PLACES // 2])[None, :], noises[:, None]
    end = jnp.minimum(law.farthest, _FARTHEST)

    def pair(u: Array) -> tuple[Array, Array]:
        """Returns both tilts; with the second one, R is largest at ``means``."""
        low = end * jnp.sqrt(u / (1.0 + u))
        share = 1.0 / (-1.0 / jnp.expm1(-low) + 1.0 - 2.0 * means)
        return low, -jnp.log1p(-share)

    def improve(_: int, u: Array) -> Array:
        low, high = pair(u)
        a, b = -jnp.expm1(-low), -jnp.expm1(-high)
        left = means * (1.0 - a) / (1.0 - rounded(means * a))
        right = (1.0 - means) * (1.0 - b) / (1.0 - rounded((1.0 - means) * b))
        reward_evidence = -rounded(low * left) - rounded(high * right) - _log_ratio(means, a, b)
        noise_evidence = law.evidence(low) + law.evidence(high)
        # The evidence grows about in proportion to u.
        return jnp.clip(
            u * threshold / _sum_of_products(rewards, reward_evidence, counts, noise_evidence),
            1e-24,
            1e6,
        )

    variance = rounded(rewards * means * (1.0 - means) * end * end)
    u = threshold / (variance + law.spread(counts, end))
    rare, common = pair(lax.fori_loop(0, _STEPS, improve, u))
    low = jnp.concatenate([rare, common[:, ::-1]], axis=1).reshape(-1)
    high = jnp.concatenate([common, rare[:, ::-1]], axis=1).reshape(-1)
    top = rounded(rewards * _log_largest(low, high))
    offset = top + _log_level(rewards, low, high, top)
    return Tilts(low, high, offset, law.discount(low), law.discount(high))


def _sum_of_products(a: ArrayLike, x: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    return rounded(jnp.multiply(a, x)) + rounded(jnp.multiply(b, y))


def _laplace_law(epsilon: Scalar) -> NoiseLaw:
    def find_evidence(tilt: Array) -> Array:
        x = tilt / epsilon
        square = rounded(x * x)
        return 2.0 * square / (1.0 - square) + jnp.log1p(-square)

    def spread(counts: Array, end: Scalar) -> Array:
        scaled = end / epsilon
        return rounded(2.0 * counts * scaled * scaled)

    def discount(tilt: Array) -> Array:
        ratio = tilt / epsilon
        return jnp.log1p(-ratio * ratio)

    return NoiseLaw(epsilon, find_evidence, spread, discount)


def noise_law(log_mgf: Callable[[Array], Array], farthest: Scalar, variance: Scalar) -> NoiseLaw:
    """Returns the law of a symmetric noise.

    Args:
        log_mgf: Logarithm of its moment-generating function, elementwise.
        farthest: Where that function ends; may be infinite.
        variance: Of one noise.
    """

    def find_evidence(tilt: Array) -> Array:
        value, slope = jax.jvp(log_mgf, (tilt,), (jnp.ones_like(tilt),))
        return rounded(tilt * slope) - value

    def spread(counts: Array, end: Scalar) -> Array:
        return rounded(counts * variance * end * end)

    return NoiseLaw(farthest, find_evidence, spread, lambda tilt: -log_mgf(tilt))


def _log_ratio(mean: Array, a: Array, b: Array) -> Array:
    """Returns log R at a mean, for a = 1 - e^-l and b = 1 - e^-k."""
    complement = 1.0 - mean
    product = rounded(mean * complement * a * b)
    return jnp.log1p(product - rounded(mean * a) - rounded(complement * b))


def _log_largest(low: Array, high: Array) -> Array:
    """Returns the logarithm of the largest R, in closed form."""
    a, b = -jnp.expm1(-low), -jnp.expm1(-high)
    # It is at q = (1 + 1/a - 1/b) / 2, or at an end.
    difference = 1.0 / a - 1.0 / b
    interior = 2.0 * jnp.log(-jnp.expm1(-(low + high))) - jnp.log(4.0 * a * b)
    return jnp.where(difference <= -1.0, -high, jnp.where(difference >= 1.0, -low, interior))


def _log_level(rewards: Scalar, low: PerPlace, high: PerPlace, top: Array) -> Scalar:
    """Returns an upper bound of the logarithm of the largest sum of R(q)^n over its largest.

    The logarithm of R is concave in q: between two means it is below both tangents.
    """
    q = jnp.asarray(_EDGES)[:, None]
    low, high, top = low[None, :], high[None, :], top[None, :]
    a, b = -jnp.expm1(-low), -jnp.expm1(-high)
    value = rounded(rewards * _log_ratio(q, a, b)) - top
    left_share, right_share = rounded(q * a), rounded((1.0 - q) * b)
    slope = rewards * (b / (1.0 - right_share) - a / (1.0 - left_share))
    left, right = slice(None, -1), slice(1, None)
    width = q[right] - q[left]
    # Tangents meet at this share of the width.
    bend = (slope[left] - slope[right]) * width
    rise = value[right] - value[left]
    meet = (rise - rounded(slope[right] * width)) / jnp.where(bend > 0.0, bend, 1.0)
    interior = value[left] + rounded(slope[left] * width * jnp.clip(meet, 0.0, 1.0))
    bound = jnp.where(slope[left] <= 0.0, value[left], interior)
    bound = jnp.where(slope[right] >= 0.0, value[right], bound)
    return jnp.log(jnp.max(jnp.sum(jnp.exp(jnp.minimum(bound, 0.0)), axis=1)))


def evidence(
    tilts: Tilts, low: PerArm, high: Scalar, rewards: Scalar, noises: Reals, high_noises: Reals
) -> PerArm:
    """Returns the evidence that the mean behind ``low`` is below that behind ``high``.

    It reaches log(1 / chance) with a probability of at most ``chance`` if the mean of ``low`` is
    not smaller. This holds for any law of rewards in [0, 1]. If the means of agents differ, it
    holds for their average, since log R is concave in q.

    Args:
        tilts: Result of `choose_tilts`.
        low: Noisy means of rewards.
        high: A larger noisy mean.
        rewards: n, number of rewards in each mean.
        noises: Number of Laplace variables in the sum of ``low``.
        high_noises: Number of Laplace variables in the sum of ``high``.
    """
    places = jax.tree.map(lambda x: x[:, None], tilts)
    low = low[None, :]
    products = _sum_of_products(places.low, low, places.high, 1.0 - high)
    exponent = -rounded(rewards * products) - places.offset
    noises, high_noises = (jnp.broadcast_to(x, low.shape) for x in (noises, high_noises))
    exponent = exponent + _sum_of_products(noises, places.low_noise, high_noises, places.high_noise)
    largest = jnp.max(exponent, axis=0)
    return largest + jnp.log(jnp.sum(jnp.exp(exponent - largest[None]), axis=0))


def private_divergence(low: Reals, high: Reals, epsilon: Scalar | float) -> Reals:
    """Returns d_epsilon(x, y) = inf over z of epsilon |z - x| + kl(z, y), for x < y; else 0.

    Where the log odds of both are at most epsilon apart, that is kl(x, y); beyond,
    -epsilon x - log(1 - y + y e^-epsilon).

    Args:
        low: x in [0, 1].
        high: y in [0, 1].
        epsilon: Privacy parameter; infinite for none.
    """
    is_near = _log_odds(high) - _log_odds(low) <= epsilon
    near_value = _relative_entropy(low, high) + _relative_entropy(1.0 - low, 1.0 - high)
    finite = jnp.where(jnp.isinf(epsilon), 1.0, epsilon)
    far_value = -rounded(finite * low) - jnp.log1p(high * jnp.expm1(-finite))
    return jnp.where(low < high, jnp.maximum(jnp.where(is_near, near_value, far_value), 0.0), 0.0)


def largest_within(
    mean: Lanes, divergence_bound: Lanes, distance: Lanes, epsilon: Scalar | float
) -> Lanes:
    """Returns the largest q in [mean, 1] with private_divergence(mean, q) <= distance.

    Args:
        mean: In [0, 1].
        divergence_bound: The largest q with kl(mean, q) <= distance.
        distance: At least 0.
        epsilon: Privacy parameter; infinite for none.
    """
    finite = jnp.where(jnp.isinf(epsilon), 1.0, epsilon)
    private_bound = jnp.expm1(-(distance + rounded(finite * mean))) / jnp.expm1(-finite)
    is_near = (_log_odds(divergence_bound) - _log_odds(mean) <= epsilon) | jnp.isinf(epsilon)
    return jnp.where(is_near, divergence_bound, jnp.clip(private_bound, mean, 1.0))


def _log_odds(p: Array) -> Array:
    return jnp.log(p) - jnp.log1p(-p)


def _relative_entropy(x: Array, y: Array) -> Array:
    positive = x > 0.0
    return jnp.where(positive, x * jnp.log(jnp.where(positive, x, 1.0) / y), 0.0)
