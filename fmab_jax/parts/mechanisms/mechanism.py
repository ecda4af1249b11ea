"""Mechanisms: the law of the noise on a message, of sums of such noises, and what they hide.

A mechanism is a frozen dataclass below `Mechanism`. The engine draws one noise, or the sum of many
as one variable. The ledger asks for the epsilon of a sum of noises, pure or up to delta. KL-SE asks
for the log moment-generating function, CDP-MAB for a deviation.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array

from fmab_jax.errors import refuse
from fmab_jax.parts.plugins import Named
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.loops import anywhere
from fmab_jax.sampling.shapes import Bits, Reals, Scalar

Read = Callable[..., Array]

DELTA = 1e-6
"""Default delta of (epsilon, delta)-privacy."""


@dataclass(frozen=True)
class Mechanism(Named):
    """Noise on a message, symmetric around 0 and independent from message to message.

    A subclass states ``name``, ``title``, `sample` and `epsilon`, and `sample_sum` if a sum of
    noises is one draw. Methods that draw are elementwise, in JAX, in float64; their ``scale`` is in
    units of rewards, because messages are sums of rewards. Methods about privacy run on the host: a
    reward moves a message by at most 1, and ``scale`` is relative to that.

    Attributes:
        name: For options, such as "gaussian".
        title: For people, such as "Gaussian".
        pure: Whether an epsilon holds without delta.
        source: Theorem or section behind `epsilon`; "" prints the epsilon "as claimed".
        scales: Whether noise of a scale is that scale times standard noise, so that rewards may
            have any range; else they must have a range of 1.
        nested: Whether noise of a scale is the sum of noise of any smaller scale and of an
            independent variable, and `deviation` follows from the sum of squared scales. Then
            noises of agents with unlike scales hide each other's rewards together.
        integers: Whether noise is a whole number, which hides nothing of other digits: rewards must
            be whole numbers.

    Example:
        A mechanism of your own: uniform noise hides a reward up to delta = 1 / (2 scale).

        >>> from dataclasses import dataclass
        >>> import math
        >>> import fmab_jax as fmab
        >>> from fmab_jax.sampling import keys
        >>> @dataclass(frozen=True)
        ... class Uniform(fmab.Mechanism):
        ...     name, title, pure = "uniform", "uniform", False
        ...
        ...     def sample(self, words, lane, scale, draw=0):
        ...         return scale * (2.0 * keys.uniform(*words, lane, draw) - 1.0)
        ...
        ...     def epsilon(self, scale, count, delta):
        ...         return 0.0 if delta >= 1.0 / (2.0 * scale) else math.inf
        >>> Uniform().epsilon(10.0, 1, 0.1)
        0.0
    """

    title: ClassVar[str]
    pure: ClassVar[bool] = True
    source: ClassVar[str] = ""
    scales: ClassVar[bool] = False
    nested: ClassVar[bool] = False
    integers: ClassVar[bool] = False

    @abstractmethod
    def sample(self, words: Words, lane: Bits, scale: Reals, draw: int | Bits = 0) -> Reals:
        """Samples one noise per lane.

        Args:
            words: Key of the stream.
            lane: Which variable.
            scale: Of the noise, > 0; broadcast against lanes, here and below.
            draw: Which of a lane's independent variables.
        """
        raise NotImplementedError

    def sample_sum(self, words: Words, lane: Bits, scale: Reals, count: Reals) -> Reals:
        """Samples the sum of ``count`` noises per lane, to a total variation distance of 1e-6.

        By default each noise is drawn. State one draw if the law of the sum is known.

        Args:
            words: Key of the stream.
            lane: Which variable.
            scale: Of each noise.
            count: Whole numbers >= 0, broadcast against lanes.
        """
        count = count.astype(jnp.float64)

        def add(state: tuple[Array, Array]) -> tuple[Array, Array]:
            draw, total = state
            noise = self.sample(words, lane, scale, draw)
            return draw + 1, total + jnp.where(draw.astype(jnp.float64) < count, noise, 0.0)

        def is_short(state: tuple[Array, Array]) -> Array:
            return anywhere(jnp.any(state[0].astype(jnp.float64) < count))

        start = (jnp.uint32(0), jnp.zeros(jnp.broadcast_shapes(lane.shape, count.shape)))
        return lax.while_loop(is_short, add, start)[1]

    def tabulate(self, count: int) -> np.ndarray:
        """Returns what `sample_tabulated` reads of a sum of ``count`` noises: [width], on the host.

        By default the number alone.
        """
        return np.array([count], np.float64)

    def sample_tabulated(self, words: Words, lane: Bits, scale: Reals, read: Read) -> Reals:
        """Samples sums whose numbers of noises are known before the run.

        By default as `sample_sum` does. State it if constants of the sum's law are expensive.

        Args:
            words: Key of the stream.
            lane: Which variable.
            scale: Of each noise.
            read: Returns ``function(constants, *arrays)``, where constants are [width, ...] of
                `tabulate`, broadcast against lanes.
        """

        def count_noises(constants: Array, lane: Bits) -> Reals:
            return jnp.broadcast_to(constants[0], lane.shape)

        return self.sample_sum(words, lane, scale, read(count_noises, lane))

    def log_mgf(self, tilt: Reals, scale: Reals) -> Reals:
        """Returns log E exp(tilt noise), for tilts closer to 0 than `farthest_tilt`.

        Raises:
            ValueError: By default: an algorithm that judges by likelihood needs it.
        """
        remedy = "state log_mgf, or take an algorithm that does not need it, such as cdp_mab"
        refuse("mechanism", self.name, "one with a log moment-generating function", remedy)

    def farthest_tilt(self, scale: Reals) -> Reals:
        """Returns where the moment-generating function ends; infinity by default."""
        return jnp.full_like(scale, jnp.inf)

    def variance(self, scale: Reals) -> Reals:
        """Returns the variance of one noise; by default scale^2."""
        return scale * scale

    def deviation(self, count: Scalar, level: Scalar, scale: Scalar) -> Scalar:
        """Returns what a sum of noises exceeds with a chance of at most e^-level.

        By default Chernoff's bound for a sub-Gaussian law of this variance; state another for
        noise with heavier tails.
        """
        return jnp.sqrt(2.0 * count * level * self.variance(scale))

    @abstractmethod
    def epsilon(self, scale: float, count: int, delta: float) -> float:
        """Returns the smallest epsilon at which a sum of noises hides a reward up to delta.

        Args:
            scale: Of each noise, relative to how far a reward moves a message.
            count: How many independent noises add up.
            delta: In [0, 1): the hockey-stick divergence; 0 asks for pure epsilon.

        Returns:
            Epsilon >= 0; infinity for no bound.
        """
        raise NotImplementedError

    def zcdp(self, scale: float, count: int) -> float:
        """Returns rho of zero-concentrated privacy; by default epsilon^2 / 2 of pure epsilon.

        Source: Bun and Steinke (TCC 2016), proposition 1.4.
        """
        return 0.5 * self.epsilon(scale, count, 0.0) ** 2

    def gdp(self, scale: float, count: int) -> float:
        """Returns mu of Gaussian differential privacy; infinity where nothing is stated."""
        return math.inf

    def scale(self, epsilon: float, delta: float) -> float:
        """Returns the smallest scale at which one message leaks (epsilon, delta).

        Args:
            epsilon: In (0, infinity).
            delta: In (0, 1); not used by a mechanism with pure epsilon.

        Raises:
            ValueError: If no scale does.
        """
        target = 0.0 if self.pure else delta
        if self.pure and math.isinf(self.epsilon(1.0, 1, 0.0)):
            allowed = "noise whose epsilon at delta = 0 is finite"
            remedy = f"state pure = False in {type(self).__name__}: its epsilon needs a delta"
            refuse("mechanism", self.name, allowed, remedy)
        return solve_scale(lambda scale: self.epsilon(scale, 1, target), epsilon, self.name)

    def text(self) -> str:
        """Returns the mechanism as an option is written: the name, and the values of its fields."""
        values = ",".join(str(getattr(self, f.name)) for f in dataclasses.fields(self))
        return f"{self.name}:{values}" if values else self.name

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        # Equations find it among the traced parameters, where it has no arrays.
        jax.tree_util.register_static(cls)


def solve_scale(epsilon: Callable[[float], float], goal: float, name: str) -> float:
    """Returns where a falling function of the scale reaches ``goal``, rounded up.

    Raises:
        ValueError: If no scale that is tried does.
    """
    high = 1.0
    while epsilon(high) > goal:
        high *= 2.0
        if high > 1e100 or math.isinf(epsilon(high)) and high > 1e5:
            refuse("mechanism", name, f"noise that reaches epsilon = {goal:g}", "allow more")
    low = 0.5 * high
    while low > 1e-100 and epsilon(low) <= goal:
        low, high = 0.5 * low, low
    for _ in range(60):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if epsilon(middle) > goal else (low, middle)
    return high
