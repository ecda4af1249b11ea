"""The view of a slot in index policies, and functions that most of them use."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32, UInt64

from fmab_jax.sampling import arrays, keys
from fmab_jax.sampling.shapes import (
    ArmPerRow,
    Integer,
    PerRow,
    PerRowArm,
    PyTree,
    Reals,
    Scalar,
    Truth,
    TruthPerRowArm,
)

Params = dict[str, Scalar | float]
State = PyTree


class Slot(NamedTuple):
    """The view of a slot in a policy's functions.

    Attributes:
        number: t = 1, 2, ..., int64; 0 in `init`.
        time: t, float64.
        horizon: T, float64.
        agents: M, float64.
        sharing: Number of agents in a row of the state: M if all share one row, else 1.
        neighbours: [agent, degree] neighbours in ascending order, padded with -1; [0, 0] without
            `IndexPolicy.network`.
        arms: K, float64.
        words: Key of the slot's random numbers; see `uniform`.
        lasting_words: Key of numbers that are the same in every slot; see `lasting`.
        contexts: [row, arm, dimension] contexts of the slot, 0 in `init`; None in worlds without.
    """

    number: Integer
    time: Scalar
    horizon: Scalar
    agents: Scalar
    sharing: Scalar
    neighbours: Int[Array, "agent degree"]
    arms: Scalar
    words: keys.Words
    lasting_words: keys.Words
    contexts: Float[Array, "row arm dimension"] | None = None

    def uniform(self, rows: int, columns: int = 1) -> Float[Array, "row column"]:
        """Returns uniforms of this slot; two calls in one function return the same numbers.

        `choose` and `update` share their numbers; `communicate` has different ones.
        """
        lane = keys.lanes(rows, jnp.arange(columns, dtype=jnp.uint32), columns)
        return keys.uniform(*self.words, lane, self.number.astype(jnp.uint32))

    def lasting(
        self, lane: UInt32[Array, "*place"], number: UInt32[Array, "*place"]
    ) -> Float[Array, "*place"]:
        """Returns uniforms that depend only on lane and number, in any slot and function.

        A policy can draw a number again instead of storing it.

        Args:
            lane: Stream, such as row x arms + arm; it must not depend on the number of rows.
            number: Index in the stream, such as the count at the first draw.
        """
        return keys.uniform(*self.lasting_words, lane, number)

    def own_words(self) -> keys.Words:
        """Returns a key of this slot and function, for draws by rejection."""
        return keys.fold_key(self.words, self.number)

    def random_neighbour(self) -> Int[Array, " agent"]:
        """Draws a neighbour of each agent uniformly; agents without one get themselves."""
        rows, most = self.neighbours.shape
        itself = jnp.arange(rows, dtype=jnp.int32)
        if not most:
            return itself
        degree = jnp.sum(self.neighbours >= 0, axis=1, dtype=jnp.int32)
        index = (self.uniform(rows)[:, 0] * degree.astype(jnp.float64)).astype(jnp.int32)
        picked = at(self.neighbours, jnp.clip(index, 0, jnp.maximum(degree - 1, 0)))
        return jnp.where(degree > 0, picked, itself)

    def over_neighbours(
        self, hear: Callable[[Array, Integer, Array, Array], Array], start: Array
    ) -> Array:
        """Folds a function over the neighbours of all agents, in ascending order.

        Args:
            hear: Maps (carry, place, neighbour at that place [agent], whether there is one [agent])
                to the next carry.
            start: First carry.
        """
        is_neighbour, neighbour = self.neighbours >= 0, jnp.maximum(self.neighbours, 0)

        def visit(place: Integer, carry: Array) -> Array:
            return hear(carry, place, neighbour[:, place], is_neighbour[:, place])

        # One agent has no neighbours.
        if not neighbour.shape[1]:
            return start
        return jnp.asarray(lax.fori_loop(0, neighbour.shape[1], visit, start))

    def largest_nearby(self, start: Array, values: Array) -> Array:
        """Returns the maximum of each agent's start and the values of its neighbours."""
        least = jnp.zeros((), values.dtype)

        def hear(carry: Array, place: Array, neighbour: Array, is_neighbour: Array) -> Array:
            return jnp.maximum(carry, jnp.where(is_neighbour[:, None], values[neighbour], least))

        return self.over_neighbours(hear, start)

    def mix(
        self, values: Float[Array, "agent ..."], weight: Float[Array, "agent degree"]
    ) -> Float[Array, "agent ..."]:
        """Returns weighted means over neighbours and the agent, which gets the remaining weight.

        Args:
            values: Values of each agent.
            weight: Weight of each neighbour, as in `neighbours`; 0 where there is none.
        """

        def expand(per_agent: Float[Array, " agent"]) -> Float[Array, "agent ..."]:
            return per_agent.reshape(-1, *(1,) * (values.ndim - 1))

        def hear(carry: Array, place: Array, neighbour: Array, is_neighbour: Array) -> Array:
            return carry + arrays.rounded(expand(weight[:, place]) * values[neighbour])

        remainder = 1.0 - jnp.sum(weight, axis=1)
        return self.over_neighbours(hear, arrays.rounded(expand(remainder) * values))


class Tally(NamedTuple):
    """The state of most policies: pulls of each arm, and sums of its rewards."""

    pulls: PerRowArm
    sums: PerRowArm


def first_best(values: PerRowArm) -> ArmPerRow:
    """Returns each row's arm of largest value; ties go to the lowest arm."""
    top = jnp.max(values, axis=1, keepdims=True)
    position = jnp.arange(values.shape[1], dtype=jnp.float64)[None, :]
    # Two plain reductions: XLA's argmax does not vectorise on CPUs, nor do positions of half the
    # width of the values.
    first = jnp.min(jnp.where(values == top, position, values.shape[1] - 1.0), axis=1)
    return first.astype(jnp.int32)


def draw_arm(among: TruthPerRowArm, uniform: PerRow) -> tuple[ArmPerRow, Bool[Array, " row"]]:
    """Draws an arm of each row's set uniformly; also tells whether the set has one."""
    # Sets as bits: six steps find the n-th one. A running count of all arms would double the time
    # of a slot.
    rows, arms = among.shape
    bits = jnp.pad(among, ((0, 0), (0, -arms % 64))).reshape(rows, -1, 64)
    place = jnp.uint64(1) << jnp.arange(64, dtype=jnp.uint64)
    words = jnp.sum(jnp.where(bits, place[None, None, :], jnp.uint64(0)), axis=2, dtype=jnp.uint64)
    cumulative = jnp.cumsum(_count_ones(words), axis=1, dtype=jnp.int32)
    count = cumulative[:, -1]
    left = (uniform * count.astype(jnp.float64)).astype(jnp.int32)
    left = jnp.minimum(left, jnp.maximum(count - 1, 0))
    word = jnp.minimum(
        jnp.sum(cumulative <= left[:, None], axis=1, dtype=jnp.int32), words.shape[1] - 1
    )
    chunk = at(words, word)
    left = left - (at(cumulative, word) - _count_ones(chunk))
    arm = 64 * word
    for width in (32, 16, 8, 4, 2, 1):
        low = _count_ones(chunk & jnp.uint64((1 << width) - 1))
        above = left >= low
        chunk = jnp.where(above, chunk >> jnp.uint64(width), chunk)
        left = jnp.where(above, left - low, left)
        arm = jnp.where(above, arm + width, arm)
    return jnp.where(count > 0, arm, 0), count > 0


def _count_ones(words: UInt64[Array, "*place"]) -> Int[Array, "*place"]:
    return lax.population_count(words).astype(jnp.int32)


def upper_bound(pulls: PerRowArm, sums: PerRowArm, width: Reals) -> PerRowArm:
    """Returns mean + sqrt(width / pulls), infinite for an arm without pulls.

    The width is one number, or [row, 1].
    """
    # One division is faster than two.
    return jnp.where(pulls > 0.0, (sums + jnp.sqrt(width * pulls)) / pulls, jnp.inf)


def at(values: Array, column: ArmPerRow) -> Array:
    """Returns one element of each row, at the row's column; a single row is broadcast."""
    row = jnp.minimum(jnp.arange(column.shape[0], dtype=jnp.int32), values.shape[0] - 1)
    return values.at[row, column].get(mode="promise_in_bounds")


def pick(condition: Truth, new: State, old: State) -> State:
    """Returns the new state where the condition holds, else the old one."""
    return jax.tree.map(lambda after, before: jnp.where(condition, after, before), new, old)
