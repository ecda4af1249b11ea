"""The dense layout: all arms in arrays [trial, place], for accelerators."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool

from fmab_jax.draws.base import Arms, Draws
from fmab_jax.sampling.curves import Curves, draw_line
from fmab_jax.sampling.lookup import Table
from fmab_jax.sampling.shapes import Function, PyTree


class Dense:
    """A place for each arm.

    Arrays of more than 20 places shrink to a fifth once the active arms of every run fit.

    Attributes:
        trials: Number of trials in the batch.
        arms: K.
        cuts: Whether the arrays shrink.
    """

    map_trials = staticmethod(jax.vmap)

    def __init__(self, trials: int, arms: int, cuts: bool = True) -> None:
        self.trials, self.arms, self.cuts = trials, arms, cuts

    def start(self, fixed: Arms, draws: Draws, **marks: Array) -> Arms:
        """Returns the arms of all trials.

        Args:
            fixed: Constants [trial, arm, ...] by name.
            draws: The draws, whose sums start at 0.
            **marks: First value of other fields [trial, arm].
        """
        shape = self.trials, self.arms
        arm = jnp.broadcast_to(jnp.arange(self.arms, dtype=jnp.uint32), shape)
        zeros = {name: jnp.zeros((*shape, *tail)) for name, tail in draws.sums.items()}
        state = {name: jnp.broadcast_to(x, shape) for name, x in marks.items()}
        return {**fixed, **zeros, "arm": arm, "alive": jnp.ones(shape, bool), **state}

    def sweep(self, body: Function, arms: Arms, values: PyTree, **kinds: str) -> tuple[Arms, Arms]:
        """Applies a body to all arms, and reduces its outputs over the arms of each trial."""

        def apply(arms: Arms, values: PyTree) -> tuple[Arms, Arms]:
            rank = jnp.cumsum(arms["alive"], dtype=jnp.int32) - 1
            new, outputs = body({**arms, "rank": rank}, values)
            return new, {
                name: jax.tree.map(partial(self._reduce, kind, arms), outputs[name])
                for name, kind in kinds.items()
            }

        new, reduced = jax.vmap(apply)(arms, values)
        return {**arms, **new}, reduced

    draw = sweep

    def _reduce(self, kind: str, arms: Arms, x: Array) -> Array:
        """Reduces values over the arms in play of one trial; kinds as in `fmab_jax.layouts`."""
        alive, arm = (arms[name].reshape(-1, *[1] * (x.ndim - 1)) for name in ("alive", "arm"))
        if kind == "by_arm":
            return jnp.zeros(self.arms, bool).at[arm.astype(jnp.int32)].max(alive & x)
        if kind == "sum":
            return jnp.sum(jnp.where(alive, x, jnp.zeros_like(x)), axis=0, dtype=x.dtype)
        top = jnp.max(jnp.where(alive, x, -jnp.inf), axis=0)
        if kind == "max":
            return top
        # "first_max": the lowest of the arms with the largest value.
        is_top = alive & (x == top[None])
        return jnp.min(jnp.where(is_top, arm.astype(jnp.int32), self.arms), axis=0)

    def keep(self, arms: Arms, trials: Bool[Array, " trial"]) -> Arms:
        """Returns the arms unchanged: eliminated arms keep their places."""
        return arms

    def loop(
        self,
        epoch: Function,
        active: Function,
        state: PyTree,
        arms: Arms,
        curves: Curves,
        grid: Array,
    ) -> tuple[PyTree, Curves]:
        """Repeats an epoch until every run is over.

        Args:
            epoch: Maps (state, arms) to those after an epoch, and the lines of its regret.
            active: Counts the arms that each run still has in play; 0 if it is over.
            state: State of each trial before the first epoch.
            arms: Arms of each trial.
            curves: Curves of each trial.
            grid: Recorded slots.
        """

        def advance(state: PyTree, arms: Arms, curves: Curves) -> tuple[PyTree, Arms, Curves]:
            state, arms, lines = epoch(state, arms)
            for line in lines:
                curves = jax.vmap(draw_line)(curves, grid, line)
            return state, arms, curves

        widths = [self.arms]
        while self.cuts and widths[-1] > 20:
            widths.append(math.ceil(widths[-1] / 5))
        for width, enough in zip(widths, [*widths[1:], 0], strict=True):
            arms = jax.vmap(partial(_cut, width))(arms)
            state, arms, curves = lax.while_loop(
                partial(_any_above, active, enough),
                lambda carry: advance(*carry),
                (state, arms, curves),
            )
        return state, curves


def _any_above(active: Callable[[PyTree], Array], enough: int, carry: tuple[PyTree, ...]) -> Array:
    return jnp.any(active(carry[0]) > enough)


def _cut(width: int, arms: Arms) -> Arms:
    """Moves the arms in play of one trial, in order, to arrays of a width."""
    alive = arms["alive"]
    if len(alive) == width:
        return arms
    rank = jnp.cumsum(alive, dtype=jnp.int32)
    source = jnp.searchsorted(rank, jnp.arange(1, width + 1, dtype=jnp.int32), method="compare_all")

    def take(x: Array) -> Array:
        return jnp.take(x, source, axis=0, mode="clip")

    def move(x: Array | Table) -> Array | Table:
        # Only row numbers of a table move.
        return replace(x, row=take(x.row)) if isinstance(x, Table) else take(x)

    moved = jax.tree.map(move, arms, is_leaf=lambda x: isinstance(x, Table))
    return {**moved, "alive": jnp.arange(width, dtype=jnp.int32) < rank[-1]}
