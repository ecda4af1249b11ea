"""One seed's problem for the compiled loops: means, gaps, and parameters of rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from fmab_jax.parts.registry import replace_fields
from fmab_jax.parts.rewards import FiniteSupport
from fmab_jax.parts.rewards import Law as RewardLaw
from fmab_jax.parts.worlds.contextual import Contexts, ContextualWorld, draw_contexts
from fmab_jax.parts.worlds.world import World
from fmab_jax.sampling import arrays, keys, normal
from fmab_jax.sampling.loops import store_once
from fmab_jax.sampling.segments import Ends, Segments
from fmab_jax.sampling.shapes import (
    STATIC,
    Integer,
    PerArm,
    PerRowArm,
    Reals,
    Scalar,
)

# Averaging over agents leaves rounding errors of this order, so closer means are equal.
TIE = 1e-12


class OwnGaps(NamedTuple):
    """Gaps of arms to the best arm of each agent, whose means differ.

    Attributes:
        means: [row, arm] mean rewards; [segment, row, arm] if means change, as below.
        best: [row] best own mean of an agent.
        excess: How much more regret all agents have in a slot in which they play the same arm,
            whichever it is, against their own best arms than against the arm that is best on
            average.
    """

    means: Reals
    best: Reals
    excess: Reals

    @property
    def gaps(self) -> Reals:
        """Best own mean of an agent minus an arm's; computed where it is read, and not stored."""
        return _subtract_from(self.best[..., None], self.means)


class Instance(NamedTuple):
    """One seed's problem; where means change, as in its last segment.

    Attributes:
        means: [row, arm] mean rewards.
        gaps: [arm] best global mean minus the arm's; ties count as 0.
        smallest_gap: Smallest non-zero gap, at most 1; 1 where all arms are tied. NaN where means
            change.
        parameters: The reward law's arrays, each [row, arm], or [1, arm] shared by all rows.
        segments: The segments of a world; None where means do not change.
        contexts: The contexts of a world, or None. With contexts all means and gaps above are NaN,
            and there are no parameters.
        own_gaps: Gaps to the best arm of each agent; None where agents share their means.
    """

    means: PerRowArm
    gaps: PerArm
    smallest_gap: Scalar
    parameters: tuple[Array, ...]
    segments: Segments | None = None
    contexts: Contexts | None = None
    own_gaps: OwnGaps | None = None


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BoundProblem:
    """A problem for the compiled loop: a pytree whose leaves are arrays.

    A compilation depends on the tree's structure and on the shapes of its leaves.

    Attributes:
        law: The reward law without its traced values; static.
        kind: "fixed", "estimates", "uniform", "gap" or "ratings"; static.
        rows: Rows of the means: 1 where all agents share them; static.
        arms: Number of arms; static.
        agents: M as float64, at most ``rows`` if agents differ; later rows are padding.
        values: Arrays that define the means, by name.
        law_values: The law's traced values, by name.
        world: How means change, without its traced values; None if they do not; static.
        world_values: The world's traced values, by name.
    """

    law: RewardLaw = field(metadata=STATIC)
    kind: str = field(metadata=STATIC)
    rows: int = field(metadata=STATIC)
    arms: int = field(metadata=STATIC)
    agents: Array | np.ndarray
    values: Mapping[str, Array | np.ndarray]
    law_values: Mapping[str, Array | np.ndarray]
    world: World | None = field(default=None, metadata=STATIC)
    world_values: Mapping[str, Array | np.ndarray] = field(default_factory=dict)

    def draw(self, key: Array, horizon: Integer | None = None) -> Instance:
        """Returns one seed's instance; pure, for use under ``jit`` and ``vmap``.

        Padding rows have mean 0 and change no bit of the others.

        Args:
            key: The seed's key; round 0 of it belongs to the instance.
            horizon: T, for a world.
        """
        agents = jnp.asarray(self.agents, jnp.float64)
        if isinstance(self.world, ContextualWorld):
            return self._draw_contexts(self.world, key)
        if self.world is not None:
            assert horizon is not None
            return self._draw_segments(key, horizon, agents)
        if self.kind in ("fixed", "estimates", "ratings"):
            means, parameters = self._fixed(key, agents)
            total = arrays.padded_sum(means)
            global_means = total if self.rows == 1 else total / agents
        else:
            global_means = self._sample_global_means(key)
            means = self._expand_means(key, global_means, agents)
            parameters = self._parameters(means)
        gaps, smallest = _gaps(global_means)
        own_gaps = self._find_own_gaps(means, gaps)
        return Instance(means, gaps, smallest, parameters, own_gaps=own_gaps)

    def _find_own_gaps(self, means: PerRowArm, gaps: PerArm) -> OwnGaps | None:
        """Returns the gaps of each agent to its own best arm; None where agents share means."""
        if self.rows == 1:
            return None
        best = jnp.max(means, axis=-1)
        excess = _subtract_from(best, means[:, jnp.argmin(gaps)])
        return OwnGaps(means, best, arrays.sum_in_turn(excess))

    @property
    def segments(self) -> int:
        """Number of segments: 1 where means do not change."""
        return 1 if self.world is None else self.world.segments

    def _draw_contexts(self, world: ContextualWorld, key: Array) -> Instance:
        """Returns an instance whose means follow from contexts."""
        values = (
            {n: jnp.asarray(x) for n, x in y.items()} for y in (self.world_values, self.law_values)
        )
        blank = jnp.full(self.arms, jnp.nan)
        contexts = draw_contexts(world, key, *values)
        return Instance(blank[None], blank, blank[0], (), contexts=contexts)

    def draw_world(self, key: Array, horizon: Integer) -> tuple[PerArm, Ends, Array]:
        """Returns the first means of a seed, and the ends and means [segment, arm] of its world.

        Args:
            key: The seed's key.
            horizon: T.
        """
        assert self.world is not None
        agents = jnp.asarray(self.agents, jnp.float64)
        is_drawn = self.kind in ("uniform", "gap")
        first = self._sample_global_means(key) if is_drawn else self._fixed(key, agents)[0][0]
        (words,) = keys.stream_keys(key, 0, keys.SEGMENT)
        world = replace_fields(self.world, self.world_values)
        return first, *world.lay_out(jnp.asarray(horizon), words, first)

    def _draw_segments(self, key: Array, horizon: Integer, agents: Scalar) -> Instance:
        """Returns an instance whose means change; its own means and gaps are the last ones."""
        _, ends, segment_means = self.draw_world(key, horizon)
        ends = jnp.clip(ends, 0, horizon).at[-1].set(horizon)

        def expand_segment(
            global_means: PerArm,
        ) -> tuple[Array, Array, tuple[Array, ...], OwnGaps | None]:
            # The differences between agents stay, as far as means in [0, 1] allow.
            means = self._expand_means(key, global_means, agents)
            gaps, _ = _gaps(global_means)
            own_gaps = self._find_own_gaps(means, gaps)
            return means, gaps, self._parameters(means), own_gaps

        means, gaps, parameters, own_gaps = jax.vmap(expand_segment)(segment_means)
        last_parameters = tuple(x[-1] for x in parameters)
        # [segment, row, arm] -> [row, segment, arm]
        parameters_by_row = tuple(jnp.moveaxis(x, 0, 1) for x in parameters)
        return Instance(
            means=means[-1],
            gaps=gaps[-1],
            smallest_gap=jnp.full((), jnp.nan),
            parameters=last_parameters,
            segments=Segments(ends, gaps, parameters_by_row),
            own_gaps=own_gaps,
        )

    def _fixed(self, key: Array, agents: Scalar) -> tuple[Array, tuple[Array, ...]]:
        """Returns means that the problem states, or that a seed draws around them."""
        if self.kind == "ratings":
            assert isinstance(self.law, FiniteSupport)
            table = jnp.asarray(self.values["probabilities"])
            parameters = tuple(table[:, :, level] for level in range(table.shape[2]))
            return self.law.mean(*parameters), parameters
        means = jnp.asarray(self.values["means"])
        if self.kind == "estimates":
            means = self._perturb(key, means, agents)
        return means, self._parameters(means)

    def _perturb(self, key: Array, means: PerRowArm, agents: Scalar) -> PerRowArm:
        """Draws means around estimates, in the range of a reward; padding rows are 0."""
        (words,) = keys.stream_keys(key, 0, keys.ESTIMATE)
        columns = jnp.arange(self.arms, dtype=jnp.uint32)
        lanes = keys.lanes(self.rows, columns, self.arms)
        noise = normal.quantile(keys.uniform(*words, lanes), normal.multiply_rounded)
        shift = arrays.rounded(jnp.asarray(self.values["means_error"]) * noise)
        drawn = jnp.clip(means + shift, self.values["low"], self.values["high"])
        exists = (jnp.arange(self.rows, dtype=jnp.float64) < agents)[:, None]
        return store_once(agents > 0.0, jnp.where(exists, drawn, 0.0))[0]

    def _parameters(self, means: PerRowArm) -> tuple[Array, ...]:
        traced = {name: jnp.asarray(value) for name, value in self.law_values.items()}
        return self.law.parameters(means, **traced)

    def _sample_global_means(self, key: Array) -> PerArm:
        """Draws the global means, with the problem's gap if it states one."""
        (words,) = keys.stream_keys(key, 0, keys.INSTANCE)
        arm = jnp.arange(self.arms, dtype=jnp.uint32)
        means = keys.uniform(*words, arm)
        if self.kind == "uniform":
            return means
        gap = jnp.asarray(self.values["instance_gap"])
        index = jnp.arange(self.arms)
        best = jnp.argmax(means)
        second = jnp.argmax(jnp.where(index == best, -1.0, means))
        top = gap + arrays.rounded((1.0 - gap) * keys.uniform(*words, arm[0], draw=2))
        return jnp.where(index == best, top, (top - gap) * (means / means[second]))

    def _expand_means(self, key: Array, global_means: PerArm, agents: Scalar) -> PerRowArm:
        """Returns the means of rows: one row that all agents share, or a row for each agent."""
        if self.rows == 1:
            return global_means[None, :]
        means = self._spread_out(key, global_means, agents)
        # Parameters and own gaps read them.
        return store_once(agents > 0.0, means)[0]

    def _spread_out(self, key: Array, global_means: PerArm, agents: Scalar) -> PerRowArm:
        """Returns means by agent whose average is ``global_means``; padding rows are 0."""
        arms = len(global_means)
        (words,) = keys.stream_keys(key, 0, keys.INSTANCE)
        rows = self.rows
        pair, arm = jnp.arange((rows + 1) // 2, dtype=jnp.uint32), jnp.arange(arms)
        lane = pair[:, None] * jnp.uint32(arms) + arm.astype(jnp.uint32)[None, :]
        # 32 bits are enough: offsets are stretched anyway.
        pairs = jnp.stack(keys.coarse_uniforms(*words, lane, draw=1), axis=1)
        (offsets,) = store_once(agents > 0.0, pairs.reshape(2 * len(pair), arms)[:rows])
        exists = (jnp.arange(rows, dtype=jnp.float64) < agents)[:, None]
        raw = jnp.where(exists, offsets, 0.0)
        # Not a quotient, which XLA rounds otherwise where all trials share a number of agents.
        centre = arrays.rounded(arrays.padded_sum(raw) * (1.0 / agents))
        # The rounding error of a single agent must not be stretched.
        differs = exists & (agents > 1.0)
        lowest = jnp.min(jnp.where(differs, raw, centre[None, :]), axis=0) - centre
        highest = jnp.max(jnp.where(differs, raw, centre[None, :]), axis=0) - centre
        # Every mean stays in [0, 1].
        down = global_means / jnp.maximum(-lowest, 1e-300)
        up = (1.0 - global_means) / jnp.maximum(highest, 1e-300)
        stretch = jnp.where(agents > 1.0, self.values["spread"] * jnp.minimum(down, up), 0.0)
        shift = arrays.rounded(stretch[None, :] * (raw - centre[None, :]))
        return jnp.where(exists, jnp.clip(global_means[None, :] + shift, 0.0, 1.0), 0.0)


def _find_gaps(means: Reals) -> Reals:
    """Returns the gaps of arms, the last axis; ties are 0."""
    return _subtract_from(jnp.max(means, axis=-1, keepdims=True), means)


def _subtract_from(best: Reals, means: Reals) -> Reals:
    gaps = best - means
    return jnp.where(gaps < TIE, 0.0, gaps)


def _gaps(global_means: PerArm) -> tuple[Array, Array]:
    gaps = _find_gaps(global_means)
    smallest = jnp.min(jnp.where(gaps > 0.0, gaps, 1.0))
    return gaps, smallest
