"""Presences: which agents a round hears, which links are up, and which agents are corrupted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from fmab_jax.parts.registry import Variant, replace_fields, split_floats
from fmab_jax.parts.rewards import Law
from fmab_jax.sampling import keys
from fmab_jax.sampling.shapes import STATIC, Bits, Integer, Reals, Scalar, TruthPerAgent, Truths


class Occasion(NamedTuple):
    """A round, or a slot of an index policy, as a presence sees it.

    Attributes:
        words: Key of the presence's random numbers.
        number: r of the round, or t of the slot, from 1.
        agents: M.
    """

    words: keys.Words
    number: Integer
    agents: Scalar

    def uniform(self, lane: Bits) -> Reals:
        """Returns a uniform per lane that is new on every occasion."""
        return keys.uniform(*self.words, lane, self.number.astype(jnp.uint32))

    def lasting(self, lane: Bits) -> Reals:
        """Returns a uniform per lane that is the same on all occasions of a run."""
        return keys.uniform(*self.words, lane)


@dataclass(frozen=True)
class Presence(Variant):
    """Which agents and links take part in a round, and what corrupted agents report.

    A subclass states ``name``, ``title`` and at least one of the methods, which are pure functions
    of JAX. Its parameters are dataclass fields; a field that is a float is a traced number in the
    methods, all others are static. An agent is a lane of the occasion's random numbers.

    Attributes:
        name: For options, such as "absent".
        title: For people, such as "absent agents".

    Example:
        Agents sleep for whole runs of ten rounds:

        >>> from dataclasses import dataclass
        >>> import fmab_jax as fmab
        >>> from fmab_jax.sampling import keys
        >>> @dataclass(frozen=True)
        ... class Asleep(fmab.Presence):
        ...     name, title = "asleep", "agents that sleep for ten rounds"
        ...     share: float = 0.2
        ...
        ...     def is_heard(self, occasion, agent):
        ...         decade = (occasion.number // 10 + 1).astype("uint32")
        ...         return keys.uniform(*occasion.words, agent, decade) >= self.share
        >>> problem = fmab.Problem(agents=5, arms=10, presence=Asleep(0.5))
        >>> data = fmab.simulate(fmab.ucb1(pooled=True), problem, horizon=1000, seeds=20)
        >>> problem.presence.text(), bool((data.links[:, -1] < 5000).all())
        ('asleep:0.5', True)
    """

    def is_heard(self, occasion: Occasion, agent: Bits) -> Truths:
        """Tells which agents a round hears; by default all."""
        return jnp.ones(agent.shape, bool)

    def is_sent(self, occasion: Occasion, agent: Bits) -> Truths:
        """Tells which agents send a message, heard or not; by default those that are heard."""
        return self.is_heard(occasion, agent)

    def is_linked(self, occasion: Occasion, first: Bits, second: Bits) -> Truths:
        """Tells which links between two agents are up, first < second; by default all."""
        return jnp.ones(jnp.broadcast_shapes(first.shape, second.shape), bool)

    def distort(
        self, occasion: Occasion, agent: Bits, rewards: Reals, pulls: Reals, centre: Scalar
    ) -> Reals:
        """Returns what agents take for their rewards; by default the rewards.

        Args:
            occasion: The round or slot.
            agent: Index of each agent; broadcasts against the next two.
            rewards: Sums of rewards.
            pulls: Number of rewards in each sum.
            centre: Middle of the range of a reward; 0 if it has no range.
        """
        return rewards

    @property
    def loses_messages(self) -> bool:
        """Whether a round may miss an agent."""
        return self._restates("is_heard") or self._restates("is_sent")

    @property
    def cuts_links(self) -> bool:
        """Whether a link between agents may be down."""
        return self._restates("is_linked")

    @property
    def counts_messages(self) -> bool:
        """Whether a round may miss an agent or a link, so that messages are counted one by one."""
        return self.loses_messages or self.cuts_links

    @property
    def corrupts(self) -> bool:
        """Whether agents may report other rewards than theirs."""
        return self._restates("distort")

    def _restates(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(Presence, name)

    def bind(self, agents: int, law: Law) -> BoundPresence:
        """Returns the presence for a compiled loop: floats are traced, all else is static."""
        static, floats = split_floats(self)
        has_range = math.isfinite(law.low) and math.isfinite(law.high)
        centre = 0.5 * (law.low + law.high) if has_range else 0.0
        return BoundPresence(static, floats, np.float64(agents), np.float64(centre))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class BoundPresence:
    """A presence bound to a problem: a pytree.

    Attributes:
        static: The presence without its floats.
        values: Its floats, by name.
        agents: M.
        centre: As in `Presence.distort`.
    """

    static: Presence = field(metadata=STATIC)
    values: Mapping[str, Array | np.ndarray]
    agents: Array | np.float64
    centre: Array | np.float64

    @property
    def presence(self) -> Presence:
        """The presence, with traced floats."""
        return replace_fields(self.static, self.values)

    def build_occasion(self, key: Array, number: Integer) -> Occasion:
        """Returns a round, or a slot, of a seed's key; numbers start at 1."""
        words = keys.stream_key(key, 0, keys.PRESENCE)
        return Occasion(words, number, jnp.asarray(self.agents))


def cut_neighbours(
    presence: Presence,
    occasion: Occasion,
    neighbours: Int[Array, "agent degree"],
    takes_part: TruthPerAgent,
) -> Int[Array, "agent degree"]:
    """Returns the neighbours that each agent reaches, in ascending order, padded with -1.

    A link is up if the presence says so, and if both of its agents take part.
    """
    rows, degree = neighbours.shape
    if not degree:
        return neighbours
    agent = jnp.arange(rows, dtype=jnp.uint32)[:, None]
    other = jnp.maximum(neighbours, 0).astype(jnp.uint32)
    is_up = neighbours >= 0
    is_up &= presence.is_linked(occasion, jnp.minimum(agent, other), jnp.maximum(agent, other))
    is_up &= takes_part[:, None] & takes_part[other]
    last = jnp.int32(rows)
    ordered = jnp.sort(jnp.where(is_up, neighbours, last), axis=1)
    return jnp.where(ordered == last, -1, ordered)
