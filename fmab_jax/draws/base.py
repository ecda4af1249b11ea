"""What an epoch draws, and what is heard of it; methods are about the arms of one trial."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from fmab_jax.core import keys, laplace, samplers
from fmab_jax.core.instances import Instance
from fmab_jax.core.keys import Words
from fmab_jax.core.rare import mapped_in_blocks
from fmab_jax.core.rewards import Law
from fmab_jax.core.shapes import STATIC, Integer, PerArm, Scalar

Arms = dict[str, Any]
Sums = dict[str, Float[Array, "arm ..."]]


class Round(NamedTuple):
    """An epoch, as its draws see it.

    Attributes:
        number: r = 1, 2, ...
        pulls: S_r, pulls of an arm by then.
        fresh: n_r, pulls of this epoch; 0 where nothing is drawn.
        slots: Of the epoch.
        rewards: Key of its rewards.
        noise: Key of its noise.
        scale: Of each Laplace variable.
        seen: What `Draws.remember` returned.
    """

    number: Integer
    pulls: Scalar
    fresh: Scalar
    slots: Integer
    rewards: Words
    noise: Words
    scale: Scalar
    seen: Any = ()


@dataclass(frozen=True)
class Draws:
    """A way in which agents add up.

    Attributes:
        law: Of rewards, without its traced values.
        noisy: Whether messages carry noise.
        remembers: Whether an aggregate is over all epochs so far, or over the last one alone.
        secure: Whether a secure sum holds one Laplace variable, not one of each agent.
        arms: K.
        agents: M.
        reporting: N, the agents heard in a round.
    """

    law: Law = field(metadata=STATIC)
    noisy: bool = field(metadata=STATIC)
    remembers: bool = field(metadata=STATIC)
    secure: bool = field(metadata=STATIC)
    arms: int = field(metadata=STATIC)
    agents: Scalar
    reporting: Scalar

    @property
    @abstractmethod
    def sums(self) -> dict[str, tuple[int, ...]]:
        """Shapes of what is added up for an arm, by name."""

    def fixed(self, instance: Instance) -> Arms:
        """Returns constants [arm, ...], and tables, which `hear` may write into.

        By default parameters of rewards that all agents share.
        """
        return {"parameters": tuple(x[0] for x in instance.parameters)}

    @property
    def lanes(self) -> int:
        """How many numbers are drawn at once for an arm."""
        return max([1, *(shape[0] for shape in self.sums.values() if shape)])

    @property
    def ranked(self) -> bool:
        """Whether draws need the rank of an arm among those in play."""
        return False

    @property
    def counts_noises(self) -> bool:
        """Whether the number of Laplace variables differs between arms."""
        return False

    def counts(self, arms: Arms, number: Scalar, now: Round) -> tuple[Scalar, Scalar | PerArm]:
        """Returns how many rewards, and how many Laplace variables, are in what is heard."""
        epochs, pulls = (number, now.pulls) if self.remembers else (1.0, now.fresh)
        noises = (1.0 if self.secure else self.reporting) * epochs * float(self.noisy)
        return self.reporting * pulls, jnp.asarray(noises)

    def most_pulls(self, horizon: Scalar) -> Scalar:
        """Returns more pulls of an arm than any horizon has room for."""
        return horizon

    def slots(self, active: Scalar, fresh: Scalar) -> Integer:
        """Returns the slots of an epoch (line 6)."""
        return (active * fresh).astype(jnp.int64)

    def memory(self) -> Any:
        """Returns what is remembered of a trial besides its arms."""
        return ()

    def remember(self, memory: Any, key: Array, now: Round) -> tuple[Any, Any]:
        """Returns what the draws of an epoch see of the memory, and the memory after it."""
        return (), memory

    def sample(self, arms: Arms, now: Round) -> Sums:
        """Draws what an epoch adds to each sum (line 9)."""
        raise NotImplementedError

    def total(self, sums: Sums, now: Round) -> PerArm:
        """Returns the sum of rewards and noise that is heard, of a mean agent (lines 10-12)."""
        raise NotImplementedError

    def hear(self, arms: Arms, now: Round) -> tuple[Arms, PerArm]:
        """Returns the sums after an epoch, or tables, and the aggregate of each arm.

        By default from `sample` and `total`.
        """
        fresh = self.sample(arms, now)
        sums = {name: arms[name] + x for name, x in fresh.items()}
        if self.remembers:
            return sums, self.total(sums, now) / now.pulls
        return sums, self.total(fresh, now) / now.fresh


def constants(draws: Draws, instance: Instance) -> Arms:
    """Returns `Draws.fixed` of many trials; all arrays are [trial, ...]."""
    size = instance.means[0].size
    return mapped_in_blocks(lambda draws, one: draws.fixed(one), size)(draws, instance)


def participants(draws: Any, key: Array, number: Integer) -> Bool[Array, " agent"]:
    """Draws the N agents that are heard in a round (section IV-B)."""
    words = keys.stream_key(key, number, keys.PARTICIPATION)
    return samplers.participants(words, draws.real, draws.reporting.astype(jnp.int32))


def noise_of_groups(shapes: Array, z: Float[Array, "arm group"]) -> Float[Array, "arm group"]:
    """Returns sums of Laplace variables of scale 1, computed from normal draws ``z``.

    ``shapes`` is [group x 24] of `laplace.laplace_sum`.
    """
    return laplace.laplace_sum(z, shapes.reshape(z.shape[-1], laplace.SHAPE).T[:, None, :])
