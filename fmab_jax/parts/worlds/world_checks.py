"""The contract of a plug-in's world, which every study checks for its first seeds."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fmab_jax.errors import PlainText, refuse
from fmab_jax.parts.instances import BoundProblem
from fmab_jax.parts.worlds.contextual import ContextualWorld
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import package_settings

# Decimals to which a mean that follows from contexts must lie in its range.
_DIGITS = 9
# Slots and rows at which contexts are checked, and most numbers that a check draws.
_SLOTS, _ROWS, _MOST_NUMBERS = 8, 8, 1 << 22


def check_world(problem: BoundProblem, horizon: int, root_seed: int, seeds: np.ndarray) -> None:
    """Refuses a world whose means leave their range, or whose segments end in another order.

    Worlds of this package need no check. The numbers of many arms and segments are checked for
    fewer seeds.

    Args:
        problem: The arrays of a problem.
        horizon: T.
        root_seed: Root seed of the run.
        seeds: The seeds, at least one.

    Raises:
        ValueError: For the first broken rule; the error names the class and the seed.
    """
    world = problem.world
    if world is None or type(world).__module__.startswith("fmab_jax.parts.worlds."):
        return
    copies = world.segments
    if isinstance(world, ContextualWorld):
        copies = _SLOTS * _ROWS * world.dimension
    seeds = seeds[: max(1, _MOST_NUMBERS // (copies * problem.arms))]
    name, numbers = type(world).__name__, np.asarray(seeds, np.uint32)
    with package_settings():
        key = jax.vmap(keys.seed_key, (None, 0))(jnp.uint32(root_seed), jnp.asarray(numbers))
        if isinstance(world, ContextualWorld):
            slots = np.unique(np.geomspace(1, horizon, _SLOTS).astype(np.int64))
            means = np.asarray(_draw_context_means(problem, key, jnp.asarray(slots)))
            low, high = np.zeros(len(seeds)), np.ones(len(seeds))
            _refuse_outside(f"{name}.contexts", means.round(_DIGITS), low, high, seeds)
            return
        drawn = _draw_worlds(problem, key, jnp.int64(horizon))
        first, ends, means = (np.asarray(x) for x in drawn)
    falls = np.argwhere(ends[:, 1:] < ends[:, :-1])
    if len(falls):
        seed, segment = falls[0].tolist()
        text = f"{ends[seed, segment + 1]} after {ends[seed, segment]}, seed {seeds[seed]}"
        allowed = "last slots of the segments in their order, which do not decrease"
        refuse(f"{name}.ends", PlainText(text), allowed, "mend ends")
    low, high = (np.minimum(first.min(axis=1), 0.0), np.maximum(first.max(axis=1), 1.0))
    _refuse_outside(f"{name}.means", means, low, high, seeds)


def _refuse_outside(
    field: str, means: np.ndarray, low: np.ndarray, high: np.ndarray, seeds: np.ndarray
) -> None:
    """Refuses means [seed, ..., arm] outside of [low, high], which are [seed]."""
    rows = means.reshape(len(means), -1, means.shape[-1])
    # NaN is in no range.
    bad = np.argwhere(~((rows >= low[:, None, None]) & (rows <= high[:, None, None])))
    if len(bad):
        seed, row, arm = bad[0].tolist()
        text = f"mean {rows[seed, row, arm].item()} of arm {arm}, seed {seeds[seed]}"
        allowed = f"in [{low[seed]:g}, {high[seed]:g}]"
        refuse(field, PlainText(text), allowed, "mend it; jnp.clip cuts numbers, and keeps NaN")


@jax.jit
def _draw_worlds(problem: BoundProblem, key: Array, horizon: Array) -> tuple[Array, ...]:
    """Returns first means [seed, arm], ends [seed, segment], and means [seed, segment, arm]."""
    return jax.vmap(lambda one: problem.draw_world(one, horizon))(key)


@jax.jit
def _draw_context_means(problem: BoundProblem, key: Array, slots: Array) -> Array:
    """Returns the means that follow from contexts [seed, slot, agent, arm]."""

    def draw(one: Array, slot: Array) -> Array:
        contexts = problem.draw(one).contexts
        assert contexts is not None
        return contexts.draw(slot, _ROWS, problem.arms)[1]

    return jax.vmap(jax.vmap(draw, (None, 0)), (0, None))(key, slots)
