"""Elimination: explore the active arms equally for an epoch, hear of them, drop the worse.

The loop of Algorithm 1 of arXiv 2111.01570 (lines 3-17), with its equations as replaceable
functions: pulls per epoch, radius, noise, which epochs are remembered, who leaves. Who is heard,
how long agents wait and what links are built is all in the exchange; the loop never looks inside a
graph. It never draws a single pull: an epoch needs one sum of rewards per (agent, arm), or per arm
where agents sum out.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from fmab_jax.algorithms.base import Algorithm, Outcome
from fmab_jax.algorithms.families import alone, epochs, lists
from fmab_jax.algorithms.families.epochs import Epoch as Epoch  # so that fillings import from here
from fmab_jax.algorithms.families.epochs import Heard as Heard
from fmab_jax.core import laplace
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.outputs import Gauge
from fmab_jax.core.problems import Instance, Problem
from fmab_jax.core.rewards import FiniteSupport, Law
from fmab_jax.core.shapes import Grid, PerArm, Scalar
from fmab_jax.errors import flag, refuse


class _Bytes(NamedTuple):
    """What a compiled loop takes, in bytes, as measured (tests/run/test_simulate.py)."""

    row: int = 96
    """For an arm, where agents add up to one row, in a list or in arrays."""
    rows: int = 60
    """For an arm and a row, where agents add up to several."""
    level: int = 20
    """For an arm and each level of its rewards but two."""
    late: int = 10
    """For an (agent, arm) element, where agents are drawn when they are heard; in a list."""
    alike: int = 44
    """Likewise, where agents are drawn one by one and alike."""
    differ: int = 52
    """Likewise, where they differ or hear of rewards and noise apart."""
    apart: tuple[int, int] = (170, 14)
    """For an arm, and for an (agent, arm) element, where sums over agents that differ are drawn."""
    point: int = 32
    """For a recorded slot."""
    waiting: int = 8
    """For a recorded slot, where agents wait."""
    seed: int = 1300
    """For a seed, or for an agent that is alone."""


_BYTES = _Bytes()
# Most agents that share arms: the noise law of each number of agents is solved for.
_MOST_SHARING = 1000
# A lazy trial draws its agents in turn: so many of them count as one row of a batch.
_IN_TURN = 12


@dataclass(frozen=True)
class Elimination(Algorithm):
    """The family: a filling states `exchange` and its equations, as static functions of `Epoch`.

    Attributes:
        noisy: Whether messages carry noise; without, none is drawn.
        remembers: Whether the aggregate is over all epochs so far, or over the last one alone.
        sums_securely: Whether only the sum over all agents is seen, with one Laplace variable on
            it; otherwise each agent adds one of its own.

    Example:
        An oracle knows the smallest gap, and so how long its epochs must be. Arms are judged by the
        variance of their rewards. Messages are not noisy; ``docs/own_algorithm.md`` shows noise.

        >>> from dataclasses import dataclass
        >>> import jax.numpy as jnp
        >>> import fmab_jax as fmab
        >>> from fmab_jax.core.exchanges import server
        >>> @dataclass(frozen=True)
        ... class Oracle(fmab.Elimination):
        ...     name = "oracle"
        ...     rounds: int = 20
        ...
        ...     def exchange(self, agents):
        ...         return server(agents)
        ...
        ...     @staticmethod
        ...     def settled(own, instance):
        ...         return own | {"gap": instance.smallest_gap}
        ...
        ...     @staticmethod
        ...     def budget(own):
        ...         return own["rounds"]
        ...
        ...     @staticmethod
        ...     def pulls_per_arm(epoch):
        ...         return epoch.previous + jnp.ceil(1.0 / epoch.own["gap"])
        ...
        ...     @staticmethod
        ...     def radius(epoch):
        ...         log = jnp.log(4.0 * epoch.arms * epoch.number**2 * epoch.horizon)
        ...         return jnp.sqrt(2.0 * log / (epoch.reporting * epoch.pulls))
        ...
        ...     @classmethod
        ...     def prepared(cls, epoch, radius):
        ...         return radius**2
        ...
        ...     @classmethod
        ...     def worse(cls, heard, epoch):
        ...         mean = jnp.clip(heard.aggregate, 0.0, 1.0)
        ...         deviation = jnp.sqrt(mean * (1.0 - mean))
        ...         return heard.best - mean >= deviation * heard.radius + heard.prepared
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(Oracle(rounds=3), problem, horizon=10**4, seeds=20)
        >>> int(data.rounds_made.max()), int(data.links.sel(meter="server").max())
        (3, 15)
    """

    noisy: ClassVar[bool] = False
    remembers: ClassVar[bool] = True
    sums_securely: ClassVar[bool] = False

    @property
    def waits_privately(self) -> bool:
        """Whether waiting agents go by their noisy means, the ones that they send."""
        return False

    @property
    def shares_arms(self) -> bool:
        """Whether agents share the arms out, and each pulls a part of them; they must be alike."""
        return False

    @staticmethod
    @abstractmethod
    def pulls_per_arm(epoch: Epoch) -> Scalar:
        """Returns S_r, at least S_{r-1} + 1; ``pulls`` and ``fresh`` are not known yet."""
        raise NotImplementedError

    @staticmethod
    @abstractmethod
    def radius(epoch: Epoch) -> Scalar:
        """Returns the confidence radius of an aggregate."""
        raise NotImplementedError

    @staticmethod
    def leaves(behind: PerArm, radius: Scalar) -> Bool[Array, " arm"]:
        """Tells which arms leave, from how far their aggregates are behind the best."""
        return behind >= 2.0 * radius

    @classmethod
    def prepared(cls, epoch: Epoch, radius: Scalar) -> Any:
        """Returns what `worse` needs of an epoch besides, found once and not for each arm.

        A pytree of arrays that do not depend on data; ``heard.prepared`` is it.
        """
        return ()

    @classmethod
    def worse(cls, heard: Heard, epoch: Epoch) -> Bool[Array, " arm"]:
        """Tells which arms leave, from all that is heard; by default, as `leaves` says."""
        return cls.leaves(heard.best - heard.aggregate, heard.radius)

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns the scale of the Laplace noise on one agent's sum of an epoch's rewards."""
        return jnp.zeros_like(epoch.number)

    @staticmethod
    def settled(own: dict[str, Scalar], instance: Instance) -> dict[str, Scalar]:
        """Returns the values once the instance is known; for what only an oracle knows."""
        return own

    @staticmethod
    def budget(own: dict[str, Scalar]) -> Scalar | float:
        """Returns the round budget R; infinity for none."""
        return math.inf

    def bind(
        self,
        problem: Problem,
        horizon: int,
        *,
        exchange: Exchange,
        sum_agents: bool = True,
        room: int | None = None,
    ) -> EliminationTrial:
        """Returns the trial; arguments as in `Algorithm.bind`.

        Rewards are summed over the agents of a group, which weigh the same, where everybody
        reports and nobody waits; noise where everybody reports.
        """
        flag("sum_agents", sum_agents)
        own = self.values(exchange, horizon)
        if self.sums_securely and (exchange.alone or exchange.reporting < problem.agents):
            name, remedy = f"{type(self).__name__}.exchange", "let everybody report, or drop it"
            refuse(name, "some agents", "one that hears all, where sums_securely = True", remedy)
        self.check_noise(problem, self.privacy(exchange)["epsilon"])
        agents = problem.agents
        room = agents if room is None else room
        waits = exchange.wait > 0
        private = waits and self.noisy and self.waits_privately
        scarce = exchange.reporting < agents and not exchange.alone
        together = not scarce and not exchange.alone and not private
        by_group = (sum_agents or self.sums_securely) and together
        rewards_by_group = sum_agents and by_group and not waits
        apart = rewards_by_group and not problem.homogeneous
        groups = _groups(exchange.weights) if by_group else ()
        # One group needs only its number of agents: a value, so another number compiles nothing.
        plain = exchange.alone or len(groups) == 1
        if exchange.alone:
            of_agents = _Rows(np.ones(1), np.empty(0))
        else:
            real = (np.arange(room) < agents).astype(np.float64)
            of_agents = _Rows(real, np.pad(exchange.weights, (0, room - agents)))
        of_groups = _Rows(
            np.array([len(group) for group in groups], np.float64),
            np.array([exchange.weights[group[0]] for group in groups]),
        )
        member = np.zeros((len(groups) if apart else 0, room if apart else 0))
        for row, group in zip(member, groups, strict=False):
            row[group] = 1.0
        shared = self.shares_arms
        if shared:
            self._check_shared(problem, exchange)
            of_groups = _Rows(np.ones(1), np.ones(1))
        reward_rows = of_groups if rewards_by_group else of_agents
        noise_rows = of_groups if by_group else of_agents
        unweighted = plain or scarce
        variables = noise_rows.sizes.astype(int).tolist() if self.noisy and by_group else []
        summed = [1 if self.sums_securely else count for count in variables]
        if shared and variables and not self.sums_securely:
            # At least two arms are in play, so at most agents // 2 + 2 agents pull one arm.
            summed = list(range(agents // 2 + 3))
        shapes = [laplace.laplace_sum_shape(size) for size in summed]
        return EliminationTrial(
            filling=type(self),
            law=problem.rewards.bind()[0],
            alone=exchange.alone,
            room=room if exchange.alone or not rewards_by_group else 0,
            plain=plain,
            apart=apart,
            alike=problem.homogeneous,
            noise_by_group=by_group,
            one_noise=self.sums_securely,
            shared=shared,
            scarce=scarce,
            waits=waits,
            private=private,
            narrows=True,
            listed=False,
            arms=problem.arms,
            horizon=np.int64(horizon),
            agents=np.float64(agents),
            reporting=np.float64(exchange.reporting),
            wait=np.int64(exchange.wait),
            reward_sizes=reward_rows.sizes,
            noise_sizes=noise_rows.sizes if self.noisy else np.empty(0),
            noise_shapes=np.stack(shapes, axis=1) if shapes else np.empty((laplace.SHAPE, 0)),
            reward_weights=np.empty(0) if unweighted else reward_rows.weights,
            noise_weights=np.empty(0) if unweighted else noise_rows.weights,
            member=member,
            own={name: np.float64(value) for name, value in own.items()},
        )

    def _check_shared(self, problem: Problem, exchange: Exchange) -> None:
        """Refuses to share arms out where one agent's rewards do not stand for those of all."""
        name = f"{type(self).__name__}.shares_arms"
        if not problem.homogeneous:
            remedy = "let every agent pull every arm where agents differ"
            refuse(name, True, "for agents with the same means", remedy)
        if exchange.alone or exchange.wait or exchange.reporting < exchange.agents:
            refuse(name, True, "for a server that hears everybody", "drop it")
        if exchange.agents > _MOST_SHARING:
            refuse(name, True, f"for at most {_MOST_SHARING:,} agents", "drop it")

    def check_noise(self, problem: Problem, epsilon: float) -> None:
        """Refuses noise that no result states, and noise for rewards that have no range."""
        if self.noisy and type(self).privacy is Algorithm.privacy:
            what, remedy = f"{type(self).__name__}.privacy", "return epsilon and epsilon_message"
            refuse(what, "that of no noise", "its own where noisy = True", remedy)
        if math.isfinite(epsilon) and not math.isfinite(problem.rewards.sensitivity):
            remedy = "clip the rewards to a range (Problem.ratings), or pass epsilon=None"
            allowed = "None (no noise) where rewards have no range"
            refuse("epsilon", epsilon, allowed, remedy)


class _Rows(NamedTuple):
    """Numbers of agents and weights of the rows that sums over agents are held in."""

    sizes: np.ndarray
    weights: np.ndarray


def _groups(weights: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns the agents of each distinct weight."""
    if (weights == weights[0]).all():
        return (np.arange(len(weights)),)
    return tuple(np.flatnonzero(weights == value) for value in np.unique(weights))


@partial(
    jax.tree_util.register_dataclass,
    meta_fields=[
        *("filling", "law", "alone", "room", "plain", "apart", "alike"),
        *(
            "noise_by_group",
            "one_noise",
            "shared",
            "scarce",
            "waits",
            "private",
            "narrows",
            "listed",
            "arms",
            "gauges",
        ),
    ],
    data_fields=[
        *("horizon", "agents", "reporting", "wait"),
        *("reward_sizes", "noise_sizes", "noise_shapes"),
        *("reward_weights", "noise_weights", "member", "own"),
    ],
)
@dataclass(frozen=True)
class EliminationTrial:
    """An elimination algorithm bound to a problem.

    Rewards and noise are held in rows, each the sum over some agents.

    Attributes:
        filling: The algorithm, for its equations. Static, as are all up to ``arms``.
        law: Of the rewards.
        alone: Every agent runs the loop by itself, with nobody to hear.
        room: Rows that agents are padded to where their number shapes an array, else 0.
        plain: Everybody reports and weighs the same: one row of noise.
        apart: Reward rows are sums over agents whose means differ.
        alike: All agents have the same means.
        noise_by_group: Rows of noise are sums over agents.
        one_noise: A secure sum over all agents holds one Laplace variable, not one of each.
        shared: Agents, which are alike, share the arms out: pulls of an arm are of all together.
        scarce: Reporting agents are drawn anew each round.
        waits: Agents exploit their local best while messages travel.
        private: That local best is the best of the noisy means that they send.
        narrows: The loop goes on in narrower arrays once most arms have left: faster to run, slower
            to compile, the same bits.
        listed: A batch's active arms are held in one list (`lists`), not in arrays of arms: faster
            on processors, the same bits; then ``narrows`` has no effect.
        arms: K.
        gauges: What is added up for outputs. Static, too.
        horizon: T in slots, int64.
        agents: M.
        reporting: N, the agents heard in a round.
        wait: Slots from an epoch's end to its aggregate.
        reward_sizes: [row] agents whose rewards a row adds up; 0 for padding.
        noise_sizes: [row] agents whose noise a row adds up.
        noise_shapes: [24, row] of their sum (`laplace.laplace_sum`); no rows for single agents.
        reward_weights: [row] weight of each of these agents; [0] where all weigh the same.
        noise_weights: [row] likewise.
        member: [row, agent] whether an agent belongs to a row, where means differ.
        own: The algorithm's values.
    """

    filling: type[Elimination]
    law: Law
    alone: bool
    room: int
    plain: bool
    apart: bool
    alike: bool
    noise_by_group: bool
    one_noise: bool
    shared: bool
    scarce: bool
    waits: bool
    private: bool
    narrows: bool
    listed: bool
    arms: int
    horizon: Any
    agents: Any
    reporting: Any
    wait: Any
    reward_sizes: Any
    noise_sizes: Any
    noise_shapes: Any
    reward_weights: Any
    noise_weights: Any
    member: Any
    own: dict[str, Any]
    gauges: tuple[Gauge, ...] = ()

    @property
    def noisy(self) -> bool:
        """Whether messages carry noise; for rewards without a range they never do."""
        return self.filling.noisy and math.isfinite(self.law.sensitivity)

    @property
    def merged(self) -> bool:
        """Whether a row holds rewards plus noise: nobody acts on rewards without noise."""
        return self.noisy and (self.private or self.scarce and not self.waits)

    @property
    def lazy(self) -> bool:
        """Whether an agent is drawn only when it is heard: until then nobody acts on its rewards.

        Its noise is then one sum, of variables that are of one scale in all epochs.
        """
        if not self.scarce or self.waits:
            return False
        filling: Any = self.filling
        lasting = not filling.remembers or not self.noisy
        return lasting or lists.lasting(filling, tuple(sorted(self.own)))

    @property
    def rows_agree(self) -> bool:
        """Whether a row of rewards and a row of noise are of the same agents."""
        return self.alone or (self.room > 0) != self.noise_by_group

    def quick(self) -> EliminationTrial:
        """Returns the same trial as a program that takes half as long to compile."""
        return replace(self, narrows=False)

    @property
    def gauge_rows(self) -> int:
        """How many rows a gauge by agent has."""
        alike = not self.waits and not self.alone
        return 1 if alike else max(self.room, np.shape(self.reward_sizes)[-1])

    def gauging(self, gauges: tuple[Gauge, ...]) -> EliminationTrial:
        """Returns the same trial, which adds up gauges for outputs.

        Raises:
            ValueError: If agents share the arms out, and a gauge is by agent: who pulls what when
                is not worked out.
        """
        for each in gauges:
            if self.shared and each.by_agent:
                allowed = f"left out with {self.filling.title}, whose agents share the arms out"
                refuse("outputs", each.name, allowed, "what each agent pulls is not worked out")
        return replace(self, gauges=gauges)

    @property
    def together(self) -> bool:
        """Whether many trials are run in one go."""
        return self.listed

    def on(self, platform: str, trials: int = 1) -> EliminationTrial:
        """Returns the same trial as so many run fastest on "cpu", "gpu" or "tpu"."""
        # The arrays may have a leading axis of trials.
        one_row = np.shape(self.reward_sizes)[-1] == 1 and (self.room == 0 or self.alone)
        simple = one_row and self.plain
        simple = simple and not (self.waits or self.apart or self.scarce or self.shared)
        # The list gauges nothing.
        simple = (simple or self.lazy) and not self.gauges
        # A plug-in that overrides `run` keeps its own loop.
        mine = type(self).run is EliminationTrial.run
        few = trials * max(1, self.room) * self.arms <= lists.MOST
        listed = platform == "cpu" and simple and mine and few
        filling: Any = self.filling
        if listed and lists.by_arm(filling, tuple(sorted(self.own))):
            return replace(self, listed=True)
        return self

    def elements(self) -> int:
        """Returns how many rows of arms the loop holds for one seed."""
        # Agents whose rewards are drawn as one sum are read only once, when the run begins.
        rows = np.shape(self.reward_sizes)[-1] if not self.room else 1
        if self.lazy and self.listed:
            return max(1, self.room // _IN_TURN)
        return max(rows, self.room, np.shape(self.member)[1] // 6)

    def bytes_per_seed(self, points: int, arms: int) -> int:
        """Returns the memory of one seed at work."""
        curves = points * (_BYTES.point + _BYTES.waiting * self.waits) + _BYTES.seed
        levels = 0
        if isinstance(self.law, FiniteSupport):
            levels = _BYTES.level * max(0, len(self.law.levels) - 2)
        if self.alone or not self.room and not self.apart:
            rows = np.shape(self.reward_sizes)[-1]
            arm = max(_BYTES.row, _BYTES.rows * rows)
            return max(1, self.room) * ((arm + levels) * arms + curves)
        if self.apart:
            each, agent = _BYTES.apart
            return (each + (agent + levels) * np.shape(self.member)[1]) * arms + curves
        if self.lazy and self.listed:
            return (_BYTES.row + levels + _BYTES.late * self.room) * arms + curves
        simple = self.alike and (self.merged or self.waits)
        element = (_BYTES.alike if simple else _BYTES.differ) + levels
        return self.room * element * arms + curves

    def run(self, instance: Instance, grid: Grid, key: Array) -> Outcome:
        """Runs one seed; arguments as in `Trial.run`."""
        trial = self.settled(instance)
        if not self.alone:
            return epochs.run(trial, instance, grid, key, self.horizon)
        local, own, last = alone.each(instance, key, self.room, self.agents, self.horizon)
        each = jax.vmap(epochs.run, (None, 0, None, 0, 0))(trial, local, grid, own, last)
        return alone.together(each, self.arms, self.room, self.agents, self.gauges)

    def run_together(
        self, instance: Instance, grid: Int[Array, "trial time"], key: Array
    ) -> Outcome:
        """Runs one seed of each of many trials; this trial's arrays are [trial, ...]."""
        trial = jax.vmap(EliminationTrial.settled)(self, instance)
        if not self.alone:
            return lists.run(trial, instance, grid, key, self.horizon)
        each_alone = jax.vmap(alone.each, (0, 0, None, 0, 0))
        local, own, last = each_alone(instance, key, self.room, self.agents, self.horizon)
        trials, rows = last.shape
        shared = jax.tree.map(
            lambda x: jnp.broadcast_to(x[:, None], (trials, rows, *x.shape[1:])), (trial, grid)
        )
        trial, grid, local, own, last = jax.tree.map(
            lambda x: x.reshape(trials * rows, *x.shape[2:]), (*shared, local, own, last)
        )
        each = lists.run(trial, local, grid, own, last)
        each = jax.tree.map(lambda x: x.reshape(trials, rows, *x.shape[1:]), each)
        together = jax.vmap(alone.together, (0, None, None, 0))
        return together(each, instance.gaps.shape[1], self.room, self.agents)

    def settled(self, instance: Instance) -> EliminationTrial:
        """Returns what each run of the loop is given."""
        own = self.filling.settled(self.own, instance)
        agents = jnp.ones_like(self.agents) if self.alone else self.agents
        return replace(self, own=own, agents=agents)
