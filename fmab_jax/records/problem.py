"""Bandit problems: means of every arm for every agent, fixed or drawn by each seed.

A `Problem` is a user's value; a `BoundProblem` holds its arrays for the compiled loop.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from os import PathLike

import jax
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from fmab_jax import tables
from fmab_jax.errors import Refusal, array_of, count, format_quantity, real, refuse
from fmab_jax.parts.instances import BoundProblem
from fmab_jax.parts.plugins import foreign_refused
from fmab_jax.parts.presences import PRESENCES, Presence
from fmab_jax.parts.registry import split_floats
from fmab_jax.parts.rewards import REWARDS, Bernoulli, Ratings
from fmab_jax.parts.rewards import Law as RewardLaw
from fmab_jax.parts.rewards.contract import check_law
from fmab_jax.parts.worlds import WORLDS, ContextualWorld, World
from fmab_jax.resources import check_memory, refuse_after_fork
from fmab_jax.sampling import keys, normal
from fmab_jax.sampling.scope import own_settings
from fmab_jax.sampling.shapes import PerRowArm, Record

MAX_ARMS = 10**6
# Bytes per mean while the host draws a seed's means.
_BYTES_PER_MEAN = 60
MAX_AGENTS = 10**7
# Most entries of an array of means or ratings: a gigabyte.
_MAX_ENTRIES = 1 << 27
# Probabilities with a smaller error of their sum are scaled to 1.
_SUM_ERROR = 1e-9
_BERNOULLI = Bernoulli()
_ROWS = "leave agents out: a row is an agent, a column is an arm"
_MOST_SEGMENTS = 10**6
# Largest standard error of means without a range.
_MOST_ERROR = 1e6


@jax.jit
def _draw_means(bound: BoundProblem, root_seed: Array, seed: Array) -> PerRowArm:
    """Draws one seed's means in one program, instead of one per operation."""
    return bound.draw(keys.seed_key(root_seed, seed)).means


@dataclass(frozen=True)
class Problem:
    """M agents, K arms and how they reward; a value: equal problems compare and hash equal.

    ``Problem(means)`` fixes an [agent, arm] array; ``Problem(means, agents=M)`` lets M agents share
    an [arm] vector; with ``means_error`` each seed draws its means around them. `uniform`,
    `heterogeneous` and `with_gap` draw the means anew for each seed, as the paper's experiments do
    (section VII-A); `fixed` keeps one such draw for all seeds. `ratings` states probabilities in
    place of means.

    Attributes:
        means: [agent, arm] or, shared by all agents, [1, arm]; None where each seed draws its own.
        agents: M.
        arms: K.
        spread: Size of the zero-sum perturbation over agents, in [0, 1].
        instance_gap: Prescribed smallest gap in (0, 1), or None.
        rewards: The law of a reward given its mean.
        probabilities: [agent, arm, level] or [1, arm, level] of ratings, else None.
        world: How means change; None if they do not. ``means`` are then the first ones.
        presence: Which agents and links take part in a round; None if all do.
        means_error: Standard error of ``means``; 0 if they are exact.

    Example:
        >>> import fmab_jax as fmab
        >>> fmab.Problem([0.9, 0.6, 0.2], agents=3).means
        array([[0.9, 0.6, 0.2]])
        >>> fmab.Problem([[0.9, 0.1], [0.5, 0.3]]).homogeneous
        False
    """

    means: np.ndarray | None = field(compare=False)
    agents: int
    arms: int
    spread: float
    instance_gap: float | None
    rewards: RewardLaw
    probabilities: np.ndarray | None = field(compare=False)
    world: World | None
    presence: Presence | None
    means_error: float
    _digest: str = field(repr=False)

    def __init__(
        self,
        means: ArrayLike,
        agents: int | None = None,
        rewards: RewardLaw | str = _BERNOULLI,
        world: World | str | None = None,
        presence: Presence | str | None = None,
        means_error: float = 0.0,
    ) -> None:
        """Fixes the means, or the estimates around which each seed draws its own.

        Args:
            means: [arm] with ``agents``, or [agent, arm]; every entry in the range of a reward
                ([0, 1]; any finite number for `Gaussian`).
            agents: Number of agents that share an [arm] vector.
            rewards: Law of a reward, or its text; `Bernoulli` by default.
            world: How means change, or its text; agents must then share their means.
            presence: Which agents and links take part in a round, or its text.
            means_error: Standard error of the means, if they are estimates: each seed draws normal
                means around them, clipped to the range of a reward. 0 fixes the means.

        Raises:
            ValueError: If the array is not numeric, not one- or two-dimensional, empty, outside
                the range, or if ``agents`` contradicts it.
        """
        law = _checked_law(rewards)
        array = _checked_array("means", means, (1, 2), "[arm] or [agent, arm]")
        bad = ~((array >= law.low) & (array <= law.high) & np.isfinite(array))
        bounded = math.isfinite(law.sensitivity)
        allowed = f"in [{law.low:g}, {law.high:g}]" if bounded else "a finite number"
        _refuse_entry("means", array, bad, allowed, "give the mean reward of each arm")
        remedy = "give the standard error of the means, 0 if they are exact"
        most = min(law.sensitivity, _MOST_ERROR)
        means_error = real("means_error", means_error, 0.0, most, remedy)
        width = normal.LARGEST * means_error
        ends = np.clip([array.min() - width, array.max() + width], law.low, law.high)
        check_law(law, np.append(array, ends) if width else array)
        array, agents = _collapse_equal_rows("means", array, 2, agents)
        self._set(
            agents,
            array.shape[1],
            law,
            means=array,
            world=world,
            presence=presence,
            means_error=means_error,
        )

    def _set(
        self,
        agents: int,
        arms: int,
        rewards: RewardLaw,
        spread: float = 0.0,
        instance_gap: float | None = None,
        means: np.ndarray | None = None,
        probabilities: np.ndarray | None = None,
        world: World | str | None = None,
        presence: Presence | str | None = None,
        means_error: float = 0.0,
    ) -> None:
        agents = count("agents", agents, 1, MAX_AGENTS, "give the number of agents M")
        arms = count("arms", arms, 1, MAX_ARMS, "give the number of arms K")
        if agents * arms >= 2**32:
            allowed = f"below {2**32 // arms:,} with {format_quantity(arms, 'arm')}"
            refuse("agents", agents, allowed, "use fewer agents")
        remedy = "0 makes the agents alike, 1 is the most"
        spread = real("spread", spread, 0.0, 1.0, remedy)
        if instance_gap is not None:
            remedy = "give the smallest non-zero gap, or None to leave it to chance"
            gap = instance_gap
            instance_gap = real("instance_gap", gap, 1e-9, 1.0, remedy, open_high=True)
            if arms < 2:
                refuse("instance_gap", gap, "None with one arm", "use at least two arms")
        if world is not None:
            world = self._check_world(world, means, instance_gap, rewards)
            _check_contexts(world, means, spread, agents * arms)
        if presence is not None:
            presence = PRESENCES.parse(presence, "presence")
        digest = hashlib.sha256()
        for array in (means, probabilities):
            if array is not None:
                array.setflags(write=False)
                digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        values: dict[str, object] = {"agents": agents, "arms": arms, "rewards": rewards}
        values |= {"spread": spread, "instance_gap": instance_gap, "means": means}
        values |= {"probabilities": probabilities, "world": world, "presence": presence}
        values |= {"means_error": means_error, "_digest": digest.hexdigest()}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @staticmethod
    def _check_world(
        value: object, means: np.ndarray | None, instance_gap: float | None, rewards: RewardLaw
    ) -> World:
        world = WORLDS.parse(value, "world")
        name, remedy = type(world).__name__, "state it as a whole number"
        with foreign_refused(name, world.name, "a world that says its number of segments"):
            count(f"{name}.segments", world.segments, 1, _MOST_SEGMENTS, remedy)
        remedy = "leave the world out"
        if means is not None and len(means) > 1:
            allowed = "one row with a world, or drawn by each seed (spread)"
            refuse("means", f"{len(means)} rows", allowed, remedy)
        if instance_gap is not None:
            refuse("instance_gap", instance_gap, "None with a world, whose gaps change", remedy)
        _check_unit_means(rewards)
        return world

    @classmethod
    def _make_random(
        cls,
        agents: int,
        arms: int,
        rewards: object,
        spread: float = 0.0,
        instance_gap: float | None = None,
        world: World | str | None = None,
        presence: Presence | str | None = None,
    ) -> Problem:
        law = _checked_law(rewards)
        _check_unit_means(law)
        problem = cls.__new__(cls)
        problem._set(agents, arms, law, spread, instance_gap, world=world, presence=presence)
        if problem.spread:  # means may lie at the ends
            check_law(law, [0.0, 1.0])
        return problem

    @classmethod
    def uniform(
        cls,
        agents: int,
        arms: int,
        rewards: RewardLaw | str = _BERNOULLI,
        world: World | str | None = None,
        presence: Presence | str | None = None,
    ) -> Problem:
        """All agents share means that each seed draws from U[0, 1] (the paper's section VII-A).

        Args:
            agents: M in [1, 1e7].
            arms: K in [1, 1e6].
            rewards: Law of a reward, or its text; `Bernoulli` by default.
            world: How means change, or its text, such as "drifting:3".
            presence: Which agents and links take part in a round, or its text: "absent:0.1".

        Raises:
            ValueError: If an argument is out of range, or the law's rewards do not cover [0, 1].

        Example:
            >>> import fmab_jax as fmab
            >>> problem = fmab.Problem.uniform(agents=5, arms=10)
            >>> problem.agents, problem.arms, problem.drawn
            (5, 10, True)
        """
        return cls._make_random(agents, arms, rewards, world=world, presence=presence)

    @classmethod
    def heterogeneous(
        cls,
        agents: int,
        arms: int,
        spread: float = 1.0,
        instance_gap: float | None = None,
        rewards: RewardLaw | str = _BERNOULLI,
        world: World | str | None = None,
        presence: Presence | str | None = None,
    ) -> Problem:
        """Agents differ: global means as in `uniform` or `with_gap`, plus a zero-sum perturbation.

        The perturbation of an arm is centred noise over the agents, stretched to ``spread`` times
        the most that keeps every mean in [0, 1]; the global means are exact.

        Args:
            agents: M.
            arms: K.
            spread: In [0, 1].
            instance_gap: Smallest gap of the global means, or None for U[0, 1] global means.
            rewards: Law of a reward, or its text; `Bernoulli` by default.
            world: How global means change, or its text; the perturbation of an arm stays, as far as
                means in [0, 1] allow.
            presence: Which agents and links take part in a round, or its text.

        Example:
            >>> import fmab_jax as fmab
            >>> fixed = fmab.Problem.heterogeneous(agents=5, arms=10, spread=0.5).fixed(seed=0)
            >>> fixed.means.shape, bool((fixed.means >= 0).all() and (fixed.means <= 1).all())
            ((5, 10), True)
        """
        return cls._make_random(agents, arms, rewards, spread, instance_gap, world, presence)

    @classmethod
    def with_gap(
        cls,
        agents: int,
        arms: int,
        instance_gap: float,
        rewards: RewardLaw | str = _BERNOULLI,
        presence: Presence | str | None = None,
    ) -> Problem:
        """Each seed draws means whose smallest gap is ``instance_gap``.

        The best mean is U[gap, 1]; the second best is the gap below it; the others are spread
        uniformly below that.

        Args:
            agents: M.
            arms: K >= 2.
            instance_gap: In [1e-9, 1).
            rewards: Law of a reward, or its text; `Bernoulli` by default.
            presence: Which agents and links take part in a round, or its text.

        Example:
            >>> import fmab_jax as fmab
            >>> problem = fmab.Problem.with_gap(agents=5, arms=10, instance_gap=0.1)
            >>> means = problem.fixed(seed=0).means[0]
            >>> best, second = sorted(means)[-1], sorted(means)[-2]
            >>> round(float(best - second), 9)
            0.1
        """
        return cls._make_random(agents, arms, rewards, instance_gap=instance_gap, presence=presence)

    @classmethod
    def ratings(
        cls,
        levels: ArrayLike,
        probabilities: ArrayLike,
        agents: int | None = None,
        presence: Presence | str | None = None,
    ) -> Problem:
        """Rewards are ratings: finitely many levels, each with a probability.

        Rewards, means and regret are scaled to [0, 1]: (level - lowest) / (highest - lowest).

        Args:
            levels: [level] two or more increasing numbers, such as 1, 2, 3, 4, 5.
            probabilities: [agent, arm, level]; or, shared by ``agents``, [arm, level]. Each cell
                sums to 1 within 1e-9.
            agents: Number of agents that share an [arm, level] table.
            presence: Which agents and links take part in a round, or its text.

        Raises:
            ValueError: If the levels do not increase, or the table is no table of probabilities.

        Example:
            Two arms, rated 1 to 5 by everybody alike. The second is liked better.

            >>> import fmab_jax as fmab
            >>> table = [[0.2, 0.2, 0.2, 0.2, 0.2], [0.0, 0.0, 0.0, 0.5, 0.5]]
            >>> problem = fmab.Problem.ratings([1, 2, 3, 4, 5], table, agents=5)
            >>> problem.means.round(3)
            array([[0.5  , 0.875]])
        """
        law = Ratings(levels)
        shape = "[arm, level] or [agent, arm, level]"
        table = _checked_array("probabilities", probabilities, (2, 3), shape)
        if table.shape[-1] != len(law.levels):
            allowed = f"a table with {format_quantity(len(law.levels), 'level')}, its last axis"
            refuse("probabilities", table.shape, allowed, "give one probability per level")
        bad, remedy = ~((table >= 0) & (table <= 1)), "probabilities of a cell sum to 1"
        _refuse_entry("probabilities", table, bad, "in [0, 1]", remedy)
        total = table.sum(axis=-1)
        bad, allowed = np.abs(total - 1) > _SUM_ERROR, "1 in sum over levels"
        _refuse_entry("probabilities", total, bad, allowed, "divide the cell by its sum")
        # Scaling a table twice must not change it again.
        exact = np.abs(total - 1) <= table.shape[-1] * np.finfo(np.float64).eps
        scaled = np.where(exact[..., None], table, table / total[..., None])
        table, agents = _collapse_equal_rows("probabilities", scaled, 3, agents)
        means = table @ np.array(law.values)
        problem = cls.__new__(cls)
        problem._set(
            agents, table.shape[1], law, means=means, probabilities=table, presence=presence
        )
        return problem

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        agents: int | None = None,
        rewards: RewardLaw | str | None = None,
        presence: Presence | str | None = None,
        means_error: float = 0.0,
    ) -> Problem:
        r"""Reads fixed means, or ratings, from a CSV or an NPZ file.

        A CSV of means has one row per agent and one column per arm, perhaps after a header line;
        one row with ``agents=M`` is shared by M agents. A first line or column of different whole
        numbers is refused, since it may be names: write means with a point, as 1.0. An NPZ of means
        holds one array, or one called ``means``.

        An NPZ of ratings holds arrays ``levels`` and ``probabilities``, as `ObservedRatings.save`
        writes them.

        Args:
            path: The file, or a symbolic link to it.
            agents: Number of agents that share one row.
            rewards: Law of a reward around its mean, or its text; left out with ratings.
            presence: Which agents and links take part in a round, or its text.
            means_error: Standard error of the means, as in `Problem`; 0 with ratings.

        Raises:
            ValueError: If the file cannot be read, is too large, or its numbers are not means.

        Example:
            >>> import tempfile, pathlib
            >>> import fmab_jax as fmab
            >>> path = pathlib.Path(tempfile.mkdtemp(), "means.csv")
            >>> path.write_text("0.9,0.6,0.2\n")
            12
            >>> problem = fmab.Problem.from_file(path, agents=5)
            >>> problem.agents, problem.arms
            (5, 3)
        """
        values, levels = tables.read(path)
        if agents is not None and values.ndim == (2 if levels is None else 3) and len(values) == 1:
            values = values[0]
        if levels is not None:
            if rewards is not None:
                remedy = "the file's ratings are the law"
                refuse("rewards", rewards, "left out with a file of ratings", remedy)
            if means_error:
                remedy = "give a file of means"
                refuse("means_error", means_error, "0 with a file of ratings", remedy)
            return cls.ratings(levels, values, agents, presence)
        try:
            law = _BERNOULLI if rewards is None else rewards
            return cls(values, agents, law, presence=presence, means_error=means_error)
        except Refusal as error:
            is_entry = error.field.startswith("means[")
            raise error.renamed(f"{path}: {error.field}") if is_entry else error from None

    @property
    def drawn(self) -> bool:
        """Whether each seed draws its own means."""
        return self.means is None or self.means_error > 0.0

    @property
    def homogeneous(self) -> bool:
        """Whether all agents share the means."""
        return self.rows == 1 if self.means is not None else self.spread == 0.0

    def check_homogeneous(self, user: str) -> None:
        """Refuses agents whose means differ.

        Args:
            user: The algorithm or option that needs equal means.

        Raises:
            ValueError: If they differ.
        """
        if self.homogeneous:
            return
        allowed = f"for {user}, whose agents share their means"
        remedy = "choose another algorithm"
        if self.means is None:
            refuse("spread", self.spread, f"0 {allowed}", remedy)
        field = "means" if self.probabilities is None else "probabilities"
        refuse(field, f"{self.rows} rows", f"one row {allowed}", remedy)

    @property
    def rows(self) -> int:
        """Rows of the means: 1 where all agents share them, else the number of agents."""
        if self.means is not None:
            return len(self.means)
        return 1 if self.spread == 0.0 else self.agents

    @property
    def segments(self) -> int:
        """Number of segments of the world; 0 if means do not change."""
        return 0 if self.world is None else self.world.segments

    @property
    def kind(self) -> str:
        """The origin of instances: "fixed", "estimates", "ratings", "uniform" or "gap"."""
        if self.probabilities is not None:
            return "ratings"
        if self.means is not None:
            return "estimates" if self.means_error else "fixed"
        return "uniform" if self.instance_gap is None else "gap"

    def bind(self, padded_agents: int | None = None) -> BoundProblem:
        """Returns the problem for the compiled loop.

        Args:
            padded_agents: Rows to hold if agents differ, at least M. Another number of agents with
                the same rows compiles nothing, and no seed's numbers depend on it.
        """
        rows = self.rows if padded_agents is None or self.homogeneous else padded_agents
        law, law_values = self.rewards.bind()
        fixed_values = self.probabilities if self.probabilities is not None else self.means
        if fixed_values is not None:
            padding = [(0, rows - len(fixed_values))] + [(0, 0)] * (fixed_values.ndim - 1)
            name = "means" if self.probabilities is None else "probabilities"
            values = {
                name: np.pad(fixed_values, padding) if rows > len(fixed_values) else fixed_values
            }
            if self.means_error:
                numbers = {"means_error": self.means_error, "low": self.rewards.low}
                numbers["high"] = self.rewards.high
                values |= {name: np.asarray(np.float64(x)) for name, x in numbers.items()}
        else:
            numbers = {"spread": self.spread, "instance_gap": self.instance_gap or 0.0}
            values = {name: np.asarray(np.float64(x)) for name, x in numbers.items()}
        agents = np.asarray(np.float64(self.agents))
        world, world_values = (None, {}) if self.world is None else split_floats(self.world)
        fields = law, self.kind, rows, self.arms, agents, values, law_values
        return BoundProblem(*fields, world, world_values)

    def fixed(self, seed: int = 0, root_seed: int = 0) -> Problem:
        """Returns the problem that fixes the means that ``seed`` would draw.

        Args:
            seed: Which seed, in [0, 2^32).
            root_seed: Of the whole experiment, as in `fmab_jax.simulate`.

        Example:
            >>> import fmab_jax as fmab
            >>> drawn = fmab.Problem.uniform(agents=5, arms=10)
            >>> one = drawn.fixed(seed=7)
            >>> one.means.shape, one.drawn, one == drawn.fixed(seed=7), one == drawn.fixed(seed=8)
            ((1, 10), False, True, False)
        """
        seed = keys.checked_seed("seed", seed)
        root_seed = keys.checked_seed("root_seed", root_seed)
        if self.world is not None:
            allowed = "left out with a world, whose means change"
            refuse("fixed_instance", seed, allowed, "give all seeds one problem without a world")
        if not self.drawn:
            return self
        # Memory holds levels, offsets and means of every agent at once.
        check_memory("memory", _BYTES_PER_MEAN * self.rows * self.arms, "use fewer agents or arms")
        refuse_after_fork()
        with own_settings():
            means = np.asarray(_draw_means(self.bind(), np.uint32(root_seed), np.uint32(seed)))
        if len(means) == 1:
            return Problem(means[0], self.agents, self.rewards, presence=self.presence)
        return Problem(means, rewards=self.rewards, presence=self.presence)

    def describe(self) -> Record:
        """Returns a JSON-able description that identifies the problem."""
        description: Record = {"kind": self.kind, "agents": self.agents, "arms": self.arms}
        description |= {"rewards": self.rewards.describe()}
        if self.world is not None:
            description["world"] = self.world.text()
        if self.presence is not None:
            description["presence"] = self.presence.text()
        if self.means_error:
            description["means_error"] = self.means_error
        for name in ("probabilities", "means"):
            if (array := getattr(self, name)) is not None:
                return description | {name: array.tolist()}
        return description | {"spread": self.spread, "instance_gap": self.instance_gap}

    def settings(self) -> dict[str, str]:
        """Returns, for captions, the differences from shared means that each seed draws.

        Problems with the same agents and arms that differ have different texts.
        """
        gap, law, means = self.instance_gap, self.rewards, self.means
        words = {
            "spread": f"spread = {self.spread!r}" if self.spread else "",
            "instance_gap": "" if gap is None else f"smallest gap = {gap!r}",
            "rewards": "" if law == _BERNOULLI else law.label(),
            "world": "" if self.world is None else f"world {self.world.text()}",
            "presence": "" if self.presence is None else f"presence {self.presence.text()}",
            "means": "" if means is None else f"fixed means {self._digest[:8]}",
        }
        if self.means_error:
            error = f"standard error {self.means_error!r}"
            words["means"] = f"means around {self._digest[:8]} with {error}"
        return {name: text for name, text in words.items() if text}


def _checked_law(rewards: object) -> RewardLaw:
    law = REWARDS.parse(rewards, "rewards")
    if isinstance(law, Ratings):
        allowed = "a law that follows from means"
        remedy = "state ratings with Problem.ratings(levels, probabilities)"
        refuse("rewards", law.label(), allowed, remedy)
    check_law(law)
    return law


def _check_contexts(world: World, means: np.ndarray | None, spread: float, cells: int) -> None:
    """Refuses a problem whose means would contradict those that follow from contexts."""
    if not isinstance(world, ContextualWorld):
        return
    name = type(world).__name__
    with foreign_refused(name, world.name, "a world that says the length of a context"):
        remedy = "state it as a whole number"
        count(f"{name}.dimension", world.dimension, 1, 2**32 - 1, remedy)
    allowed, remedy = f"with world {world.text()}", "means follow from contexts"
    if means is not None:
        refuse("means", means.shape, f"left out {allowed}", remedy)
    if spread:
        refuse("spread", spread, f"0 {allowed}", "agents share theta")
    if cells * world.dimension >= 2**32:
        most = (2**32 - 1) // cells
        refuse("world", world.text(), f"of at most {most} dimensions here", "use fewer arms")


def _check_unit_means(law: RewardLaw) -> None:
    """Refuses a law whose means may not be any number in [0, 1]."""
    if law.low > 0.0 or law.high < 1.0:
        allowed = "a law with means in [0, 1], from which they are drawn"
        refuse("rewards", law.label(), allowed, "fix the means: Problem(means, rewards=...)")


def _checked_array(field: str, values: object, axes: tuple[int, ...], shape: str) -> np.ndarray:
    """Returns a float64 copy of an array of real numbers with so many axes, not empty."""
    allowed, remedy = "an array of numbers", "give one row per agent, all equally long"
    array = array_of(field, values, _MAX_ENTRIES, allowed, remedy)
    if array.ndim not in axes or array.size == 0:
        remedy = "give one mean per agent and arm" if field == "means" else "give a whole table"
        refuse(field, array.shape, f"an array shaped {shape}, not empty", remedy)
    # Adding 0 turns -0.0 into 0.0: equal problems have equal bits.
    return array.astype(np.float64) + 0.0


def _refuse_entry(field: str, array: np.ndarray, bad: np.ndarray, *advice: str) -> None:
    """Refuses the first bad entry of an array, if there is one."""
    if bad.any():
        place = np.argwhere(bad)[0].tolist()
        refuse(f"{field}{place}", float(array[tuple(place)]), *advice)


def _collapse_equal_rows(
    field: str, array: np.ndarray, axes: int, agents: int | None
) -> tuple[np.ndarray, int]:
    """Returns the table with an axis of agents, of length 1 if their rows are equal, and M."""
    if agents is not None:
        agents = count("agents", agents, 1, MAX_AGENTS, "give the number of agents M")
    if array.ndim < axes:
        if agents is None:
            remedy = f"give agents too, or a row of {field} for each agent"
            refuse("agents", None, f"given with {field} of one agent", remedy)
        return array[None], agents
    if agents is not None and agents != len(array):
        refuse("agents", agents, f"{len(array)}, the rows of {field}", _ROWS)
    agents = len(array)
    return (array[:1].copy() if np.ptp(array, axis=0).max() == 0 else array), agents
