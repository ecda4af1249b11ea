"""The equations of an elimination, and the two records that they read: `Epoch` and `Aggregate`."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool

from fmab_jax.parts.instances import Instance
from fmab_jax.parts.mechanisms.laplace_noise import LAPLACE
from fmab_jax.parts.mechanisms.mechanism import Mechanism
from fmab_jax.sampling.keys import Words
from fmab_jax.sampling.shapes import Integer, PerArm, PyTree, Reals, Scalar, Truth

# A field of an epoch before it is computed.
_UNKNOWN: Any = ()


class Epoch(NamedTuple):
    """One epoch. The equations read the fields up to ``mechanism``; `plan_epoch` adds the others.

    Numbers are float64 scalars, traced. A field that is not known yet is ().

    Attributes:
        number: r = 1, 2, ...
        active: Arms in play at the epoch's start, a.
        arms: K.
        agents: M, the agents whose rewards this run adds up; 1 where each is alone.
        reporting: N, the agents that report in a round.
        horizon: T, in slots.
        previous: S_{r-1}, pulls per active arm and agent before this epoch; where agents split the
            arms, of all agents together.
        params: The algorithm's values, by name; see `Elimination.values`.
        pulls: S_r, pulls up to and including this epoch.
        fresh: n_r = S_r - S_{r-1}, pulls of this epoch.
        mechanism: Law of the noise of messages; not traced.
        radius: C(r).
        precomputed: Result of `Equations.precompute`.
        is_running: Whether the run goes on.
        fits_horizon: Whether the epoch ends by the horizon; otherwise it uploads nothing.
        slots: Its length.
        end: Its last slot, at most T.
        drawn: n_r if the epoch fits, else 0: pulls whose rewards are drawn.
        reward_key: Key of its rewards; of each segment, if means change.
        noise_key: Key of its noise.
        scale: Scale of each noise.
        fresh_by_segment: [segment] the part of ``drawn`` in each segment, if means change.
        pulls_by_segment: [segment] the part of ``pulls``.
        reports: First result of `Draws.update_memory`.
        memory: Memory of the draws after the epoch.
        attendance: Result of `Draws.attend`; () where all agents that report are heard.
    """

    number: Scalar
    active: Scalar
    arms: Scalar
    agents: Scalar
    reporting: Scalar
    horizon: Scalar
    previous: Scalar
    params: dict[str, Reals]
    pulls: Scalar = _UNKNOWN
    fresh: Scalar = _UNKNOWN
    mechanism: Mechanism = LAPLACE
    radius: Scalar = _UNKNOWN
    precomputed: PyTree = _UNKNOWN
    is_running: Truth = _UNKNOWN
    fits_horizon: Truth = _UNKNOWN
    slots: Integer = _UNKNOWN
    end: Integer = _UNKNOWN
    drawn: Scalar = _UNKNOWN
    reward_key: Words = _UNKNOWN
    noise_key: Words = _UNKNOWN
    scale: Scalar = _UNKNOWN
    fresh_by_segment: PyTree = _UNKNOWN
    pulls_by_segment: PyTree = _UNKNOWN
    reports: PyTree = _UNKNOWN
    memory: PyTree = _UNKNOWN
    attendance: PyTree = _UNKNOWN

    @property
    def round_index(self) -> Integer:
        """The number r as an int32, for keys."""
        return self.number.astype(jnp.int32)


# Numbers of an epoch that equations read.
NUMBERS = tuple(name for name in Epoch._fields[:10] if name != "params")


class Aggregate(NamedTuple):
    """The aggregate of a round, by which `Equations.worse` judges the arms.

    Attributes:
        mean: [arm] mean reward by the messages; NaN for eliminated arms, if an equation compares
            arms with each other.
        best: The largest mean of an arm in play.
        rewards: How many rewards a mean is over.
        noises: How many Laplace variables of the epochs' scale its sum holds; one number per arm
            if agents split the arms.
        best_noises: How many Laplace variables the best arm's sum holds.
        radius: Result of `Equations.radius`.
        precomputed: Result of `Equations.precompute`.
    """

    mean: PerArm
    best: Scalar
    rewards: Scalar
    noises: Scalar | PerArm
    best_noises: Scalar
    radius: Scalar
    precomputed: PyTree = ()


class Equations:
    """The equations of an elimination: static functions of `Epoch`, and what is true of them.

    Attributes:
        elementwise: Whether `worse` judges each arm independently of the others.
        lasting_scale: Whether `noise_scale` is the same in all epochs of a run.
        precompute_fields: Fields of `Epoch` that `precompute` reads; all others are NaN for it.

    The attributes make runs faster. Each describes one function: a class that overrides the
    function must state the attribute again, or it does not apply.
    """

    elementwise: ClassVar[bool] = True
    lasting_scale: ClassVar[bool] = True
    precompute_fields: ClassVar[tuple[str, ...]] = NUMBERS

    @staticmethod
    def resolve_params(params: dict[str, Reals], instance: Instance) -> dict[str, Reals]:
        """Returns ``params`` for an instance; oracles read the instance here."""
        return params

    @staticmethod
    def budget(params: dict[str, Reals]) -> Scalar | float:
        """Returns the round budget R; infinity for none."""
        return math.inf

    @staticmethod
    @abstractmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar:
        """Returns S_r; the loop raises it to S_{r-1} + 1. ``pulls`` and ``fresh`` are not known."""
        raise NotImplementedError

    @staticmethod
    @abstractmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns the confidence radius of an aggregate."""
        raise NotImplementedError

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns the scale of the Laplace noise on one agent's sum of an epoch's rewards."""
        return jnp.zeros_like(epoch.number)

    @classmethod
    def precompute(cls, epoch: Epoch, radius: Scalar) -> PyTree:
        """Computes, once per epoch, what `worse` reads as ``aggregate.precomputed``.

        A pytree of arrays that do not depend on data.
        """
        return ()

    @staticmethod
    def eliminates(deficit: PerArm, radius: Scalar) -> Bool[Array, " arm"]:
        """Tells which arms leave, given the differences of their aggregates from the best one."""
        return deficit >= 2.0 * radius

    @classmethod
    def worse(cls, aggregate: Aggregate, epoch: Epoch) -> Bool[Array, " arm"]:
        """Tells which arms leave, from the whole aggregate; by default calls `eliminates`."""
        return cls.eliminates(aggregate.best - aggregate.mean, aggregate.radius)
