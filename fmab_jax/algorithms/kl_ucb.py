"""KL-UCB, the index policy that is optimal for Bernoulli rewards: alone, or pooled by a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

from fmab_jax.algorithms.families.slots import Params, Slot, at, first_best
from fmab_jax.algorithms.families.talking import Pooled, pooled_parameter
from fmab_jax.parameters import NOT_NEGATIVE, parameter
from fmab_jax.sampling import arrays, normal
from fmab_jax.sampling.shapes import ArmPerRow, PerRow, PerRowArm, Scalar

# Newton's method has an error below 1e-9 after six steps from this start.
_STEPS = 8
CLOSE = 1e-9
"""Tolerance of divergences and bounds; arms that are closer tie."""


class KLUCBState(NamedTuple):
    """A row's state, by arm.

    Attributes:
        pulls: Pulls, n.
        sums: Sums of the rewards.
        negative_entropy: n (m log m + (1 - m) log(1 - m)) with mean m, a part of n kl(m, q).
    """

    pulls: PerRowArm
    sums: PerRowArm
    negative_entropy: PerRowArm


@dataclass(frozen=True)
class KLUCB(Pooled):
    """KL-UCB: the largest q with n kl(mean, q) <= log t + c log log t, without privacy.

    kl is that of Bernoulli laws, which bounds that of all rewards in [0, 1]. Alone, t is the slot
    and n the agent's own pulls; pooled, both count the pulls of all, and a slot costs M links.

    Attributes:
        constant: c; 3 in the proof, 0 in practice.
        pooled: Whether a server pools all rewards in every slot.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
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
    def init(rows: int, arms: int, slot: Slot, params: Params) -> KLUCBState:
        """Returns the state of agents that know nothing."""
        return KLUCBState(*(jnp.zeros((rows, arms)),) * 3)

    @staticmethod
    def choose(state: KLUCBState, slot: Slot, params: Params) -> ArmPerRow:
        """Returns argmax q; arms that were never pulled come first."""
        log = jnp.log(slot.sharing * slot.time)
        width = log + arrays.rounded(params["constant"] * jnp.log(jnp.maximum(log, 1.0)))
        untried = jnp.where(state.pulls > 0.0, 0.0, 1.0)
        tried = jnp.max(untried, axis=1) == 0.0
        return jnp.where(tried, _find_best(state, width), first_best(untried))

    @staticmethod
    def update(
        state: KLUCBState, pulls: PerRowArm, rewards: PerRowArm, slot: Slot, params: Params
    ) -> KLUCBState:
        """Adds pulls and rewards; recomputes the negative entropy of the pulled arm alone."""
        n, sums = state.pulls + pulls, state.sums + rewards
        mask = pulls > 0.0
        position = jnp.arange(pulls.shape[1], dtype=jnp.int32)[None, :]
        # A row pulls one arm, so the maximum finds it; a row that pulls none is masked below.
        arm = jnp.max(jnp.where(mask, position, 0), axis=1)
        count = jnp.maximum(at(n, arm), 1.0)
        mean = jnp.clip(at(sums, arm) / count, 0.0, 1.0)
        negative_entropy = count * (_xlogy(mean, mean) + _xlogy(1.0 - mean, 1.0 - mean))
        negative_entropy = jnp.where(mask, negative_entropy[:, None], state.negative_entropy)
        return KLUCBState(n, sums, negative_entropy)


def _find_best(state: KLUCBState, width: Scalar) -> ArmPerRow:
    """Returns the arm of the largest q in each row; the lowest where several tie.

    Only a few candidates need Newton's method: at a candidate's q, an arm has a larger q if
    n kl(mean, q) < width, which costs two products. Each candidate has a larger q than the previous
    one. The search starts from the arm with most pulls, which is close.
    """

    def improve(search: _Search) -> _Search:
        n = jnp.maximum(at(state.pulls, search.candidate), 1.0)
        mean = jnp.clip(at(state.sums, search.candidate) / n, 0.0, 1.0)
        q = maximize_mean(mean, width / n)
        # Newton stops early, so a tiny improvement may be rounding error.
        improved = search.searching & (q > search.q)
        bound = jnp.clip(q, 1e-300, 1.0 - 2.0**-53)[:, None]
        zeros = state.pulls - state.sums
        divergence = state.negative_entropy - arrays.rounded(state.sums * normal.log(bound))
        divergence = divergence - arrays.rounded(zeros * normal.log(1.0 - bound))
        # An arm whose mean is at least q has a larger q; the largest mean comes first.
        above = state.sums >= q[:, None] * state.pulls
        mean_of_each = state.sums / jnp.maximum(state.pulls, 1.0)
        shortfall = jnp.where(above, -1.0 - mean_of_each, divergence - width)
        candidate = first_best(-shortfall)
        better = (jnp.min(shortfall, axis=1) < -CLOSE) & (q < 1.0)
        return _Search(
            # At its own q an arm has shortfall 0, so the candidate is the first of equal arms.
            arm=jnp.where(improved, jnp.where(better, search.candidate, candidate), search.arm),
            q=jnp.where(improved, q, search.q),
            candidate=candidate,
            searching=improved & better,
        )

    start = first_best(state.pulls)
    initial = _Search(start, -1.0 - start.astype(jnp.float64), start, start >= 0)
    return lax.while_loop(lambda search: jnp.any(search.searching), improve, initial).arm


class _Search(NamedTuple):
    """The best arm, its q, the next candidate, and whether the search continues; by row."""

    arm: ArmPerRow
    q: PerRow
    candidate: ArmPerRow
    searching: Bool[Array, " row"]


def _xlogy(x: Array, y: Array) -> Array:
    positive = x > 0.0
    return jnp.where(positive, x * normal.log(jnp.where(positive, y, 1.0)), 0.0)


def maximize_mean(mean: Array, distance: Array) -> Array:
    """Returns the largest q in [mean, 1] with kl(mean, q) <= distance, to 1e-9.

    Newton's method from above, where kl is convex and increasing: it never crosses the root.
    """
    complement = 1.0 - mean
    entropy = -(_xlogy(mean, mean) + _xlogy(complement, complement))
    # Two upper bounds: Pinsker's, and kl >= -entropy - (1 - mean) log(1 - q).
    free = jnp.exp(-(distance + entropy) / jnp.maximum(complement, 1e-300))
    start = jnp.minimum(mean + jnp.sqrt(0.5 * distance), 1.0 - free)

    def improve(_: Array, q: Array) -> Array:
        q = jnp.clip(q, 1e-300, 1.0 - 2.0**-53)
        kl = -entropy - _xlogy(mean, q) - _xlogy(complement, 1.0 - q)
        slope = (q - mean) / (q * (1.0 - q))
        step = jnp.where(slope > 0.0, (kl - distance) / slope, 0.0)
        return jnp.maximum(q - jnp.maximum(step, 0.0), mean)

    root = lax.fori_loop(0, _STEPS, improve, start)
    return jnp.where(complement > 0.0, root, 1.0)
