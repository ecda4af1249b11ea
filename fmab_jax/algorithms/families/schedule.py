"""The length of an epoch and the radius of a mean: one function per equation.

Every function works on float64 scalars or arrays, traced or not. Symbols are those of Algorithm 1
and section IV-B of arXiv 2111.01570, with N = ceil(p M) reporting agents in place of M.
"""

from typing import NamedTuple

import jax.numpy as jnp

from fmab_jax.sampling.shapes import Scalar


class Setting(NamedTuple):
    """Constants of a run that the equations read.

    Attributes:
        arms: K.
        reporting: N, the agents whose means are averaged.
        epsilon: Privacy parameter; infinity drops the privacy term.
        horizon: T, in slots.
        scale: Factor of the radius; 1 is the paper's.
    """

    arms: Scalar
    reporting: Scalar
    epsilon: Scalar
    horizon: Scalar
    scale: Scalar | float = 1.0


def shrink_ratio(gap: Scalar, rounds: Scalar) -> Scalar:
    """Returns the factor by which the target gap shrinks per epoch.

    1/2 without a round budget (``rounds`` infinite; Algorithm 1, line 3), gap^(1/R) with one
    (section IV-B), so that epoch R aims at ``gap`` itself.

    Args:
        gap: Smallest non-zero gap, in (0, 1].
        rounds: Round budget R >= 1, or infinity.
    """
    return jnp.where(jnp.isinf(rounds), 0.5, gap ** (1.0 / rounds))


def target_gap(ratio: Scalar, epoch: Scalar) -> Scalar:
    """Returns the gap that epoch r = 1, 2, ... is long enough to see: ratio^r."""
    # The lower bound keeps 1/Dt^2 finite; such an epoch exceeds every horizon.
    return jnp.maximum(ratio**epoch, 1e-150)


def pulls_per_arm(
    active: Scalar,
    epoch: Scalar,
    target: Scalar,
    setting: Setting,
    deviation: Scalar | None = None,
) -> Scalar:
    """Returns S_r, the pulls per active arm and agent up to and including epoch r, of a long epoch.

    S(r) = max(8 log(8 a r^2 T) / (N Dt^2), 8 r sqrt(2 log(8 K r^2 T)) / (N^1.5 epsilon Dt)),
    rounded up (Algorithm 1, line 4; section IV-B). The loop raises it to one more than before.

    Args:
        active: Arms a still in play at the epoch's start.
        epoch: r = 1, 2, ...
        target: Dt, the target gap of this epoch.
        setting: Its scale multiplies the terms by scale^2 and scale, so that C(r) stays in the same
            ratio to the target gap.
        deviation: Of a round's sum of noises, for noise that is not Laplace; its r-fold takes the
            place of the Laplace term, which is r times sqrt(8 N log(8 K r^2 T)) / (N epsilon).
    """
    a, r, dt = active, epoch, target
    arms, n, epsilon, horizon, scale = setting
    reward = scale**2 * (8.0 * jnp.log(8.0 * a * r**2 * horizon) / (n * dt**2))
    privacy = scale * (
        8.0 * r * jnp.sqrt(2.0 * jnp.log(8.0 * arms * r**2 * horizon)) / (n**1.5 * dt) / epsilon
    )
    if deviation is not None:
        privacy = scale * (4.0 * r * deviation / (n * dt))
    return jnp.ceil(jnp.maximum(reward, privacy))


def confidence_radius(
    active: Scalar,
    epoch: Scalar,
    pulls: Scalar,
    setting: Setting,
    deviation: Scalar | None = None,
) -> Scalar:
    """Returns C(r); an arm leaves when the best aggregate exceeds its own by 2 C(r) or more.

    C(r) = sqrt(log(8 a r^2 T) / (2 N S_r)) + r sqrt(8 log(8 K r^2 T)) / (N^1.5 epsilon S_r)
    (Algorithm 1, line 5; section IV-B), with the integer S_r.

    Args:
        active: Arms a still in play at the epoch's start.
        epoch: r = 1, 2, ...
        pulls: S_r.
        setting: Its scale multiplies the radius.
        deviation: Of a round's sum of noises, for noise that is not Laplace; its r-fold takes the
            place of the Laplace term, which is r times sqrt(8 N log(8 K r^2 T)) / (N epsilon).
    """
    a, r, s = active, epoch, pulls
    arms, n, epsilon, horizon, scale = setting
    reward = jnp.sqrt(jnp.log(8.0 * a * r**2 * horizon) / (2.0 * n * s))
    if deviation is not None:
        return scale * (reward + r * deviation / (n * s))
    return scale * (
        reward + r * jnp.sqrt(8.0 * jnp.log(8.0 * arms * r**2 * horizon)) / (n**1.5 * s) / epsilon
    )


def noise_scale(reporting: Scalar, epsilon: Scalar) -> Scalar:
    """Returns the scale of the Laplace noise on an agent's **sum** of an epoch's rewards.

    Noise Laplace(1/(N epsilon n_r)) on the epoch's mean (Algorithm 1, line 9) is
    Laplace(1/(N epsilon)) on its sum of n_r rewards. Infinite epsilon gives 0.
    """
    return 1.0 / (reporting * epsilon)
