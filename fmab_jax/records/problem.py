"""Bandit problems: means of every arm for every agent, fixed or drawn by each seed.

A `Problem` is a user's value; a `BoundProblem` holds its arrays for the compiled loop.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import jax
import numpy as np
from jaxtyping import Array
from numpy.typing import ArrayLike

from fmab_jax import means_files
from fmab_jax.errors import count, format_quantity, refuse
from fmab_jax.files import check_path
from fmab_jax.machine import check_memory
from fmab_jax.parameters import UNSET, Real, Whole, parameter, parameters_of
from fmab_jax.parts.instances import BoundProblem
from fmab_jax.parts.plugins import foreign_refused
from fmab_jax.parts.presences import PRESENCES, Presence
from fmab_jax.parts.registry import VariantOf, split_floats
from fmab_jax.parts.rewards import REWARDS, Bernoulli, LawOf, Ratings
from fmab_jax.parts.rewards import Law as RewardLaw
from fmab_jax.parts.rewards.law_checks import check_law
from fmab_jax.parts.worlds import WORLDS, ContextualWorld, World
from fmab_jax.records.means import (
    MAX_AGENTS,
    MOST_ERROR,
    check_means,
    check_probabilities,
    lay_out_rows,
)
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import package_settings
from fmab_jax.sampling.shapes import PerRowArm, Record

# Bytes per mean while the host draws a seed's means.
_BYTES_PER_MEAN = 60
_BERNOULLI = Bernoulli()
_MOST_SEGMENTS = 10**6


@jax.jit
def _draw_means(bound: BoundProblem, root_seed: Array, seed: Array) -> PerRowArm:
    """Draws one seed's means in one program, instead of one per operation."""
    return bound.draw(keys.seed_key(root_seed, seed)).means


@dataclass(frozen=True)
class RandomMeans:
    """The declared parameters of a problem whose means each seed draws."""

    agents: int = parameter(
        Whole(low=1, high=MAX_AGENTS),
        "M, agents.",
        default=50,
        symbol="M",
        label="agents M",
        remedy="give the number of agents M",
    )
    arms: int = parameter(
        Whole(low=1, high=10**6),
        "K, arms.",
        default=100,
        symbol="K",
        label="arms K",
        remedy="give the number of arms K",
    )
    spread: float = parameter(
        Real(low=0.0, high=1.0),
        "How far the means differ between agents, up to 1.",
        default=0.0,
        default_text="0, agents are alike",
        remedy="0 makes the agents alike, 1 is the most",
    )
    instance_gap: float | None = parameter(
        Real(none_label="gaps left to chance", low=1e-9, high=1.0, open_high=True),
        "Smallest gap of the means that each seed draws.",
        default=None,
        default_text="left to chance",
        symbol="instance gap",
        label="smallest gap of an instance",
        remedy="give the smallest non-zero gap, or None to leave it to chance",
    )
    rewards: RewardLaw = parameter(
        LawOf(),
        "Reward law: bernoulli, gaussian:SD, or a plug-in's; fmab list shows them.",
        default="bernoulli",
        symbol="",
        label="rewards",
        default_text="bernoulli",
    )
    world: World | None = parameter(
        VariantOf(registry=WORLDS, none_label="means do not change"),
        "How means change: drifting:CHANGES, or a plug-in's; fmab list shows them.",
        default=None,
        default_text="they do not",
        symbol="",
        label="world",
    )
    presence: Presence | None = parameter(
        VariantOf(registry=PRESENCES, none_label="all agents and links are present"),
        "Who takes part in a round: absent:P, late:P, corrupted:P, links:P, or a plug-in's.",
        default=None,
        default_text="everybody",
        symbol="",
        label="presence",
    )


@dataclass(frozen=True)
class Problem(RandomMeans):
    r"""M agents, K arms and how they reward; a value: equal problems compare and hash equal.

    Without ``means`` each seed draws its own, as the paper's experiments do (section VII-A): all
    agents share means from U[0, 1]. With ``instance_gap`` the best mean is U[gap, 1], the second
    best is the gap below it, and the others are uniform below that. With ``spread`` agents differ:
    the means of an arm are perturbed by centred noise over the agents, stretched to ``spread``
    times the most that keeps every mean in [0, 1]; their average stays exact. `fixed` keeps one
    such draw for all seeds.

    ``means`` fixes them. With ``means_error`` they are estimates, and each seed draws normal means
    around them, clipped to the range of a reward: each row that is given has an error of its own,
    equal rows included; a vector that ``agents`` share has one error for all of them.

    Attributes:
        means: [agent, arm] or, shared by all agents, [1, arm]; None where each seed draws its own.
        agents: M.
        arms: K.
        spread: Size of the zero-sum perturbation over agents, in [0, 1].
        instance_gap: Prescribed smallest gap in [1e-9, 1), or None.
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
        >>> fmab.Problem(agents=5, arms=10).drawn
        True
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "means.csv")
        >>> path.write_text("0.9,0.6,0.2\n")
        12
        >>> fmab.Problem(path, agents=5).arms
        3
    """

    means: np.ndarray | None = field(init=False, compare=False)
    probabilities: np.ndarray | None = field(init=False, compare=False)
    means_error: float = parameter(
        Real(low=0.0, high=MOST_ERROR),
        "Standard error of fixed means: each seed draws normal means around them.",
        default=0.0,
        default_text="0, the means are exact",
        remedy="give the standard error of the means, 0 if they are exact",
    )
    _digest: str = field(init=False, repr=False)

    def __init__(
        self,
        means: ArrayLike | PathLike[str] | None = None,
        agents: int | None = None,
        *,
        arms: int | None = None,
        spread: float = 0.0,
        instance_gap: float | None = None,
        rewards: RewardLaw | str | None = None,
        world: World | str | None = None,
        presence: Presence | str | None = None,
        means_error: float = 0.0,
        levels: ArrayLike | None = None,
        probabilities: ArrayLike | None = None,
    ) -> None:
        """Draws, fixes or reads the means.

        A file of means is a CSV with one row per agent and one column per arm, perhaps after a line
        of names, or an NPZ with one array, or one called ``means``. In a CSV a column ``agent``
        with the numbers of the agents, from 0 or from 1, puts its rows in order. Other first lines
        and columns of whole numbers are refused, since they may be names: write means with a point,
        as 1.0. An NPZ with arrays ``levels`` and ``probabilities``, as `ObservedRatings.save`
        writes it, holds ratings.

        Args:
            means: [arm] with ``agents``, or [agent, arm]; every entry in the range of a reward
                ([0, 1]; any finite number for `Gaussian`). Or the path of a .csv or .npz file.
                None: each seed draws means in [0, 1].
            agents: M in [1, 1e7]. With means: the number of agents that share a single row.
            arms: K in [1, 1e6]; with means it may be left out.
            spread: In [0, 1]; 0 with means.
            instance_gap: Smallest gap in [1e-9, 1); None for gaps left to chance.
            rewards: Law of a reward, or its text; `Bernoulli` by default.
            world: How means change, or its text, such as "drifting:3"; given means are then one
                row. The perturbations of ``spread`` stay, as far as means in [0, 1] allow.
            presence: Which agents and links take part in a round, or its text: "absent:0.1".
            means_error: Standard error of the means, if they are estimates; 0 if they are exact.
            levels: Of ``probabilities``, as in `ratings`.
            probabilities: In place of means, as in `ratings`.

        Raises:
            ValueError: If a value is out of range, values contradict one another, or the file
                cannot be read.
        """
        path = means if isinstance(means, (str, PathLike)) else None
        if means is not None or probabilities is not None:
            _refuse_given("means", spread=spread or None, instance_gap=instance_gap)
        if path is not None:
            means, file_levels = means_files.read(path, agents)
            if file_levels is not None:
                means, levels, probabilities = None, file_levels, means
        rows = table = None
        law: RewardLaw
        if probabilities is not None or levels is not None:
            error = means_error or None
            _refuse_given("ratings", means=means, rewards=rewards, world=world, means_error=error)
            law = (ratings := Ratings(levels))
            table = check_probabilities(ratings, probabilities)
            table, agents = lay_out_rows("probabilities", table, 3, agents)
            rows = table @ np.array(ratings.values)
        elif means is not None:
            law = _check_law(rewards)
            rows, means_error = check_means(law, means, means_error, path)
            rows, agents = lay_out_rows("means", rows, 2, agents, fold=not means_error)
        else:
            law = _check_law(rewards)
            _check_random(law, means_error, agents=agents, arms=arms)
        if rows is not None:
            if arms is not None and arms != rows.shape[1]:
                refuse("arms", arms, f"{rows.shape[1]}, the columns of means", "leave it out")
            arms = rows.shape[1]
        digest = hashlib.sha256()
        for array in (rows, table):
            if array is not None:
                array.setflags(write=False)
                digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        values: Record = {"agents": agents, "arms": arms, "spread": spread, "rewards": law}
        values |= {"instance_gap": instance_gap, "world": world, "presence": presence}
        values |= {"means_error": means_error}
        values = {name: p.check(values[name]) for name, p in parameters_of(Problem).items()}
        values |= {"means": rows, "probabilities": table, "_digest": digest.hexdigest()}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        """Refuses values that do not go together."""
        agents, arms = self.agents, self.arms
        if agents * arms >= 2**32:
            allowed = f"below {2**32 // arms:,} with {format_quantity(arms, 'arm')}"
            refuse("agents", agents, allowed, "use fewer agents")
        if self.instance_gap is not None and arms < 2:
            refuse("instance_gap", self.instance_gap, "None with one arm", "use at least two arms")
        if self.world is not None:
            _check_world(self.world, self)
        if self.spread:  # means may lie at the ends
            check_law(self.rewards, [0.0, 1.0])

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
        return cls(agents=agents, levels=levels, probabilities=probabilities, presence=presence)

    @classmethod
    def uniform(cls, agents: int, arms: int, **settings: Any) -> Problem:
        """`Problem` without means, by its older name."""
        return cls(agents=agents, arms=arms, **settings)

    @classmethod
    def heterogeneous(cls, agents: int, arms: int, spread: float = 1.0, **settings: Any) -> Problem:
        """`Problem` with ``spread``, by its older name."""
        return cls(agents=agents, arms=arms, spread=spread, **settings)

    @classmethod
    def with_gap(cls, agents: int, arms: int, instance_gap: float, **settings: Any) -> Problem:
        """`Problem` with ``instance_gap``, by its older name."""
        return cls(agents=agents, arms=arms, instance_gap=instance_gap, **settings)

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], agents: int | None = None, **settings: Any
    ) -> Problem:
        """`Problem` of a path, by its older name."""
        return cls(check_path("means", path), agents, **settings)

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
        arrays, numbers = {}, {}
        name = "means" if self.probabilities is None else "probabilities"
        table: np.ndarray | None = getattr(self, name)
        if table is None:
            numbers = {"spread": self.spread, "instance_gap": self.instance_gap or 0.0}
        else:
            padding = [(0, rows - len(table))] + [(0, 0)] * (table.ndim - 1)
            arrays = {name: np.pad(table, padding) if rows > len(table) else table}
            if self.means_error:
                ends = {"low": self.rewards.low, "high": self.rewards.high}
                numbers = {"means_error": self.means_error, **ends}
        values = arrays | {n: np.asarray(np.float64(x)) for n, x in numbers.items()}
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
            >>> drawn = fmab.Problem(agents=5, arms=10)
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
        with package_settings():
            means = np.asarray(_draw_means(self.bind(), np.uint32(root_seed), np.uint32(seed)))
        if len(means) == 1:
            return Problem(means, self.agents, rewards=self.rewards, presence=self.presence)
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


def _check_law(rewards: object) -> RewardLaw:
    law = _BERNOULLI if rewards is None else REWARDS.parse(rewards, "rewards")
    if isinstance(law, Ratings):
        allowed = "a law that follows from means"
        remedy = "state ratings with Problem.ratings(levels, probabilities)"
        refuse("rewards", law.label(), allowed, remedy)
    check_law(law)
    return law


def _refuse_given(owner: str, **values: object) -> None:
    """Refuses values that are not None."""
    for name, value in values.items():
        if value is not None:
            refuse(name, value, f"left out with {owner}", "drop one")


def _check_random(law: RewardLaw, means_error: object, **sizes: object) -> None:
    """Refuses what does not go with means that each seed draws."""
    _check_unit_means(law)
    if means_error:
        refuse("means_error", means_error, "given with means", "give the estimates, too")
    for name, number in sizes.items():
        if number is None:
            remedy = "give means, or both: such as agents=50, arms=100"
            refuse(name, UNSET, "given where each seed draws its means", remedy)


def _check_world(world: World, problem: Problem) -> None:
    """Refuses a world that does not fit the means."""
    name, remedy = type(world).__name__, "state it as a whole number"
    with foreign_refused(name, world.name, "a world that says its number of segments"):
        count(f"{name}.segments", world.segments, 1, _MOST_SEGMENTS, remedy)
    remedy = "leave the world out"
    if problem.means is not None and len(problem.means) > 1:
        allowed = "one row with a world, or drawn by each seed (spread)"
        refuse("means", f"{len(problem.means)} rows", allowed, remedy)
    if (gap := problem.instance_gap) is not None:
        refuse("instance_gap", gap, "None with a world, whose gaps change", remedy)
    _check_unit_means(problem.rewards)
    _check_contexts(world, problem.means, problem.spread, problem.agents * problem.arms)


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
