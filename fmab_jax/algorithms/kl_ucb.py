"""KL-UCB, the index policy that is optimal for Bernoulli rewards: alone, or pooled by a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

from fmab_jax.algorithms.families.slots import Params, Slot, at, first_best
from fmab_jax.algorithms.families.talking import Pooled, pooled_parameter
from fmab_jax.core import arrays, normal
from fmab_jax.core.shapes import ArmPerRow, PerRow, PerRowArm, Scalar
from fmab_jax.parameters import NOT_NEGATIVE, parameter

# Steps of Newton's method; from where it starts, six leave an error below 1e-9.
_STEPS = 8
CLOSE = 1e-9
"""A divergence, and the bound found from it, may be off by so much; closer than that, arms tie."""


class Known(NamedTuple):
    """A row's state, by arm.

    Attributes:
        pulls: n.
        sums: Of the rewards.
        certainty: n (m log m + (1 - m) log(1 - m)), m the mean: what the divergence needs of it.
    """

    pulls: PerRowArm
    sums: PerRowArm
    certainty: PerRowArm


@dataclass(frozen=True)
class KLUCB(Pooled):
    """KL-UCB: the largest q with n kl(mean, q) <= log t + c log log t, without privacy.

    kl is that of Bernoulli laws, which bounds that of all rewards in [0, 1]. Alone, t is the slot
    and n the agent's own pulls; pooled, both count the pulls of all, and a slot costs M links.

    Attributes:
        constant: c; the proof has 3, practice 0.
        pooled: Whether a server pools all rewards in every slot.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.kl_ucb(pooled=True), problem, horizon=10**4, seeds=20)
        >>> bool(data.regret[:, -1].mean() < 1000)
        True
    """

    name = "kl_ucb"
    title = "KL-UCB"
    source = "Garivier and Cappé, COLT 2011, arXiv 1102.2490"

    constant: float = parameter(NOT_NEGATIVE, "Of log log t in the width.", default=0.0)
    pooled: bool = pooled_parameter()

    @staticmethod
    def init(rows: int, arms: int, slot: Slot, params: Params) -> Known:
        """Returns the state of agents that know nothing."""
        return Known(*(jnp.zeros((rows, arms)),) * 3)

    @staticmethod
    def choose(state: Known, slot: Slot, params: Params) -> ArmPerRow:
        """Returns argmax q; arms that were never pulled come first."""
        log = jnp.log(slot.sharing * slot.time)
        width = log + arrays.rounded(params["constant"] * jnp.log(jnp.maximum(log, 1.0)))
        untried = jnp.where(state.pulls > 0.0, 0.0, 1.0)
        tried = jnp.max(untried, axis=1) == 0.0
        return jnp.where(tried, _best(state, width), first_best(untried))

    @staticmethod
    def update(
        state: Known, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> Known:
        """Counts; only the pulled arm's certainty is worked out anew."""
        n, sums = state.pulls + pulls, state.sums + rewards
        pulled = pulls > 0.0
        position = jnp.arange(pulls.shape[1], dtype=jnp.int32)[None, :]
        arm = jnp.max(jnp.where(pulled, position, 0), axis=1)
        count = jnp.maximum(at(n, arm), 1.0)
        mean = jnp.clip(at(sums, arm) / count, 0.0, 1.0)
        certainty = count * (_xlogy(mean, mean) + _xlogy(1.0 - mean, 1.0 - mean))
        return Known(n, sums, jnp.where(pulled, certainty[:, None], state.certainty))


def _best(state: Known, width: Scalar) -> ArmPerRow:
    """Returns the arm of the largest q in each row; the lowest where several tie.

    No arm but a few candidates is solved for: at a candidate's q, an arm whose q is larger is one
    with n kl(mean, q) < width, of which two products tell. Each candidate's q is larger than that
    of the one before, and the arm pulled most is close from the start.
    """

    def closer(found: _Search) -> _Search:
        n = jnp.maximum(at(state.pulls, found.candidate), 1.0)
        mean = jnp.clip(at(state.sums, found.candidate) / n, 0.0, 1.0)
        q = largest_mean(mean, width / n)
        # A q that was solved to fewer digits may look larger without being so.
        improved = found.searching & (q > found.q)
        inside = jnp.clip(q, 1e-300, 1.0 - 2.0**-53)[:, None]
        zeros = state.pulls - state.sums
        divergence = state.certainty - arrays.rounded(state.sums * normal.log(inside))
        divergence = divergence - arrays.rounded(zeros * normal.log(1.0 - inside))
        # An arm whose mean is q or more has the larger q; the largest mean is tried first.
        above = state.sums >= q[:, None] * state.pulls
        mean_of_each = state.sums / jnp.maximum(state.pulls, 1.0)
        behind = jnp.where(above, -1.0 - mean_of_each, divergence - width)
        candidate = first_best(-behind)
        better = (jnp.min(behind, axis=1) < -CLOSE) & (q < 1.0)
        return _Search(
            # At its own q an arm is behind by nothing: of equal arms the first is the candidate.
            arm=jnp.where(improved, jnp.where(better, found.candidate, candidate), found.arm),
            q=jnp.where(improved, q, found.q),
            candidate=candidate,
            searching=improved & better,
        )

    start = first_best(state.pulls)
    begun = _Search(start, -1.0 - start.astype(jnp.float64), start, start >= 0)
    return lax.while_loop(lambda found: jnp.any(found.searching), closer, begun).arm


class _Search(NamedTuple):
    """The best arm so far, its q, the arm to be tried next, and whether to go on; by row."""

    arm: ArmPerRow
    q: PerRow
    candidate: ArmPerRow
    searching: Bool[Array, " row"]


def _xlogy(x: Array, y: Array) -> Array:
    positive = x > 0.0
    return jnp.where(positive, x * normal.log(jnp.where(positive, y, 1.0)), 0.0)


def largest_mean(mean: Array, distance: Array) -> Array:
    """Returns the largest q in [mean, 1] with kl(mean, q) <= distance, to 1e-9.

    Newton's method from above, where kl is convex and increasing: it never crosses the root.
    """
    rest = 1.0 - mean
    entropy = -(_xlogy(mean, mean) + _xlogy(rest, rest))
    # Two upper bounds: Pinsker's, and kl >= -entropy - (1 - mean) log(1 - q).
    free = jnp.exp(-(distance + entropy) / jnp.maximum(rest, 1e-300))
    start = jnp.minimum(mean + jnp.sqrt(0.5 * distance), 1.0 - free)

    def closer(_: Array, q: Array) -> Array:
        q = jnp.clip(q, 1e-300, 1.0 - 2.0**-53)
        kl = -entropy - _xlogy(mean, q) - _xlogy(rest, 1.0 - q)
        slope = (q - mean) / (q * (1.0 - q))
        step = jnp.where(slope > 0.0, (kl - distance) / slope, 0.0)
        return jnp.maximum(q - jnp.maximum(step, 0.0), mean)

    found = lax.fori_loop(0, _STEPS, closer, start)
    return jnp.where(rest > 0.0, found, 1.0)
