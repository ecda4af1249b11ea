"""A slot, as fillings of index policies see it, and what most of them do with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, UInt32, UInt64

from fmab_jax.core import arrays, keys
from fmab_jax.core.shapes import (
    ArmPerRow,
    Integer,
    PerRow,
    PerRowArm,
    Reals,
    Scalar,
    Truth,
    TruthPerRowArm,
)

Params = dict[str, Any]
State = Any


class Slot(NamedTuple):
    """A slot, as a filling sees it.

    Attributes:
        number: t = 1, 2, ..., int64; 0 in `init`.
        time: t, float64.
        horizon: T, float64.
        agents: M, float64.
        sharing: Agents whose pulls a row of the state counts: M where all share one row, else 1.
        neighbours: [agent, degree] who is beside whom, in ascending order, padded with -1; [0, 0]
            without `IndexPolicy.network`.
        arms: K, float64.
        words: Key of the slot's random numbers; see `uniform`.
        lasting_words: Key of those that are the same in every slot; see `lasting`.
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

    def uniform(self, rows: int, columns: int = 1) -> Float[Array, "row column"]:
        """Returns uniforms: the same if asked twice, others in another slot or function.

        Functions with numbers of their own are `choose`, whose numbers `update` sees, too, and
        `communicate`.
        """
        lane = keys.lanes(rows, jnp.arange(columns, dtype=jnp.uint32), columns)
        return keys.uniform(*self.words, lane, self.number.astype(jnp.uint32))

    def lasting(
        self, lane: UInt32[Array, "*place"], number: UInt32[Array, "*place"]
    ) -> Float[Array, "*place"]:
        """Returns uniforms that last: the same for the same numbers, in any slot and function.

        What is drawn once and remembered is asked for again instead, and takes no memory.

        Args:
            lane: Whose, such as row x arms + arm; it may not depend on how many rows there are.
            number: Which of the lane's, such as the count at which it was drawn first.
        """
        return keys.uniform(*self.lasting_words, lane, number)

    def own_words(self) -> keys.Words:
        """Returns a key of this slot and function alone, for draws by rejection."""
        return keys.fold_key(self.words, self.number)

    def random_neighbour(self) -> Int[Array, " agent"]:
        """Returns a uniformly drawn neighbour of each agent; itself where it has none."""
        rows, most = self.neighbours.shape
        itself = jnp.arange(rows, dtype=jnp.int32)
        if not most:
            return itself
        degree = jnp.sum(self.neighbours >= 0, axis=1, dtype=jnp.int32)
        drawn = (self.uniform(rows)[:, 0] * degree.astype(jnp.float64)).astype(jnp.int32)
        picked = at(self.neighbours, jnp.clip(drawn, 0, jnp.maximum(degree - 1, 0)))
        return jnp.where(degree > 0, picked, itself)

    def over_neighbours(self, hear: Callable[[Any, Integer, Array, Array], Any], start: Any) -> Any:
        """Returns what each agent has after it heard its neighbours, one by one in their order.

        Args:
            hear: Maps (what agents have so far, place, who is heard there [agent], whether there is
                anybody [agent]) to what they have then.
            start: What they have before.
        """
        there, other = self.neighbours >= 0, jnp.maximum(self.neighbours, 0)

        def one(place: Integer, so_far: Any) -> Any:
            return hear(so_far, place, other[:, place], there[:, place])

        # One agent has no neighbours.
        return lax.fori_loop(0, other.shape[1], one, start) if other.shape[1] else start

    def largest_nearby(self, start: Array, values: Array) -> Array:
        """Returns the largest of what agents start with and the values of their neighbours."""
        least = jnp.zeros((), values.dtype)

        def hear(so_far: Array, place: Array, said: Array, there: Array) -> Array:
            return jnp.maximum(so_far, jnp.where(there[:, None], values[said], least))

        return jnp.asarray(self.over_neighbours(hear, start))

    def mix(
        self, values: Float[Array, "agent ..."], weight: Float[Array, "agent degree"]
    ) -> Float[Array, "agent ..."]:
        """Returns weighted sums over neighbours; an agent's own values get the rest of weight 1.

        Args:
            values: What everybody says.
            weight: Of each neighbour, as in `neighbours`; 0 where there is none.
        """

        def along(per_agent: Float[Array, " agent"]) -> Float[Array, "agent ..."]:
            return per_agent.reshape(-1, *(1,) * (values.ndim - 1))

        def hear(so_far: Array, place: Array, said: Array, there: Array) -> Array:
            return so_far + arrays.rounded(along(weight[:, place]) * values[said])

        rest = 1.0 - jnp.sum(weight, axis=1)
        return jnp.asarray(self.over_neighbours(hear, arrays.rounded(along(rest) * values)))


class Tally(NamedTuple):
    """The state of most policies: how often an arm was pulled, and the sum of its rewards."""

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


def drawn_arm(among: TruthPerRowArm, uniform: PerRow) -> tuple[ArmPerRow, Bool[Array, " row"]]:
    """Returns a uniformly drawn arm of each row's set, and whether there is one."""
    # A set as bits: the n-th of them is found in six steps, where a running count of all arms
    # takes as long as the rest of a policy's slot.
    rows, arms = among.shape
    bits = jnp.pad(among, ((0, 0), (0, -arms % 64))).reshape(rows, -1, 64)
    place = jnp.uint64(1) << jnp.arange(64, dtype=jnp.uint64)
    words = jnp.sum(jnp.where(bits, place[None, None, :], jnp.uint64(0)), axis=2, dtype=jnp.uint64)
    upto = jnp.cumsum(_ones(words), axis=1, dtype=jnp.int32)
    count = upto[:, -1]
    left = (uniform * count.astype(jnp.float64)).astype(jnp.int32)
    left = jnp.minimum(left, jnp.maximum(count - 1, 0))
    word = jnp.minimum(jnp.sum(upto <= left[:, None], axis=1, dtype=jnp.int32), words.shape[1] - 1)
    here = at(words, word)
    left = left - (at(upto, word) - _ones(here))
    arm = 64 * word
    for width in (32, 16, 8, 4, 2, 1):
        low = _ones(here & jnp.uint64((1 << width) - 1))
        above = left >= low
        here = jnp.where(above, here >> jnp.uint64(width), here)
        left = jnp.where(above, left - low, left)
        arm = jnp.where(above, arm + width, arm)
    return jnp.where(count > 0, arm, 0), count > 0


def _ones(words: UInt64[Array, "*place"]) -> Int[Array, "*place"]:
    return lax.population_count(words).astype(jnp.int32)


def upper_bound(pulls: PerRowArm, sums: PerRowArm, width: Reals) -> PerRowArm:
    """Returns mean + sqrt(width / pulls), infinite for an arm that was never pulled.

    The width is one number, or [row, 1].
    """
    # Written with one division instead of two.
    return jnp.where(pulls > 0.0, (sums + jnp.sqrt(width * pulls)) / pulls, jnp.inf)


def at(values: Array, column: ArmPerRow) -> Array:
    """Returns the element of each row in a column of its own; one row stands for all."""
    row = jnp.minimum(jnp.arange(column.shape[0], dtype=jnp.int32), values.shape[0] - 1)
    return values.at[row, column].get(mode="promise_in_bounds")


def pick(condition: Truth, new: State, old: State) -> State:
    """Returns the new state where the condition holds, else the old one."""
    return jax.tree.map(lambda after, before: jnp.where(condition, after, before), new, old)
