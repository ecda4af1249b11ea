"""The normal quantile and the logarithm in float64, without branches and without library calls.

XLA calls a scalar function for a float64 logarithm on CPUs, and evaluates every branch of its own
normal quantile with two of them; these vectorise, and are as exact.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from fmab_jax.sampling.arrays import rounded
from fmab_jax.sampling.shapes import Reals

Multiply = Callable[[Any, Any], Reals]

LARGEST = 8.21
"""No quantile of `fmab_jax.sampling.keys.uniform` is larger in size."""

# Wichura's algorithm AS 241 (Applied Statistics 37(3), 1988), PPND16: numerator and denominator of
# three rational functions, highest power first.
_CENTRE = (
    (
        *(2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4),
        *(4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3),
        *(1.3314166789178437745e2, 3.3871328727963666080e0),
    ),
    (
        *(5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4),
        *(2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2),
        *(4.2313330701600911252e1, 1.0),
    ),
)
_MIDDLE = (
    (
        *(7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1),
        *(1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0),
        *(4.63033784615654529590e0, 1.42343711074968357734e0),
    ),
    (
        *(1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2),
        *(1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0),
        *(2.05319162663775882187e0, 1.0),
    ),
)
_TAIL = (
    (
        *(2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3),
        *(2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0),
        *(5.46378491116411436990e0, 6.65790464350110377720e0),
    ),
    (
        *(2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5),
        *(7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1),
        *(5.99832206555887937690e-1, 1.0),
    ),
)


def log(x: Reals, multiply: Multiply = operator.mul) -> Reals:
    """Returns the logarithm of positive normal numbers, to a relative error below 1e-15."""
    bits = lax.bitcast_convert_type(x, jnp.uint64)
    # The exponent as a float64, by way of the bits of 2^52 + exponent.
    magic = jnp.uint64(0x433 << 52)
    exponent = lax.bitcast_convert_type((bits >> jnp.uint64(52)) | magic, jnp.float64)
    fraction = (bits & jnp.uint64((1 << 52) - 1)) | jnp.uint64(0x3FF << 52)
    m = lax.bitcast_convert_type(fraction, jnp.float64)
    large = m > math.sqrt(2.0)
    power = exponent - (2.0**52 + 1023.0) + jnp.where(large, 1.0, 0.0)
    m = jnp.where(large, 0.5 * m, m)
    # log m = 2 artanh t, |t| < 0.172. XLA would give a quotient its own kernel, and compute its
    # operands (a cipher, in a draw) in both.
    t = multiply(m - 1.0, 1.0 / (m + 1.0))
    s = multiply(t, t)
    series = horner(s, [2.0 / k for k in range(23, 2, -2)], multiply)
    # The exponent's share in two parts, the first of which is exact.
    high, low = 0.693147180369123816490, 1.90821492927058770002e-10
    tail = multiply(t, multiply(s, series)) + multiply(power, low)
    return multiply(power, high) + (2.0 * t + tail)


def quantile(u: Reals, multiply: Multiply = operator.mul) -> Reals:
    """Returns the standard normal quantile of u in (0, 1), to a relative error below 4e-15.

    Non-decreasing up to that error, and odd in ``u - 1/2`` where ``1 - u`` is exact.

    Args:
        u: In (0, 1).
        multiply: Multiplies two numbers. With `multiply_rounded` the bits do not depend on the
            program around it; by default that takes a kernel of its own.
    """
    off = u - 0.5
    tail = jnp.sqrt(-log(jnp.minimum(u, 1.0 - u), multiply))
    central, is_far = jnp.abs(off) <= 0.425, tail > 5.0
    centre = 0.180625 - multiply(off, off)
    up, down = (
        jnp.where(
            central,
            horner(centre, centre_powers, multiply),
            jnp.where(
                is_far,
                horner(tail - 5.0, tail_powers, multiply),
                horner(tail - 1.6, middle_powers, multiply),
            ),
        )
        for centre_powers, middle_powers, tail_powers in zip(_CENTRE, _MIDDLE, _TAIL, strict=True)
    )
    return jnp.where(central, off, jnp.where(off < 0.0, -1.0, 1.0)) * (up / down)


def horner(
    x: Reals, coefficients: Sequence[Reals | float], multiply: Multiply = operator.mul
) -> Reals:
    """Returns a polynomial, highest power first."""
    first = multiply(coefficients[0], x) + coefficients[1]
    return functools.reduce(lambda total, c: multiply(total, x) + c, coefficients[2:], first)


def multiply_rounded(a: Reals | float, b: Reals | float) -> Reals:
    """Returns a product that no compiler fuses with a sum; see `arrays.rounded`."""
    return rounded(jnp.asarray(a * b))
