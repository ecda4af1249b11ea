"""What a sweep is to compute: a labelled grid of configurations, each with an identity.

A `Study` is stated once and holds no results. Its points are addressed by the hash of everything
their numbers depend on, so that equal points of two studies, or of two places in one grid, are the
same config.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import itertools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import resources as package_files
from typing import Any, NamedTuple

import jax
import numpy as np

from fmab_jax import __version__
from fmab_jax.algorithms.base import Algorithm, installed, named
from fmab_jax.core import keys
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.laws import law_of
from fmab_jax.core.networks import FixedGraph
from fmab_jax.core.outputs import Output
from fmab_jax.core.plugins import source_digest
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards import Law
from fmab_jax.errors import choice, count, did_you_mean, flag, length, real, refuse, shown
from fmab_jax.later import is_graph
from fmab_jax.parameters import UNSET, Described, Kind, Parameter, Real, Whole, parameter
from fmab_jax.parameters import parameters_of as _fields_of
from fmab_jax.run import cache, outputs, resources
from fmab_jax.run.batches import FEW_TRIALS, Config, bound, room_for
from fmab_jax.run.contract import asking
from fmab_jax.run.resources import MAX_SEEDS

MAX_CONFIGS = 100_000
# The default of a maker's parameter that must be given.
_NEEDED = inspect.Parameter.empty
# The rooms that a seed's numbers depend on.
_ENGINE = ("core", "algorithms", "run", "analysis/summary.py")
# Agents that are padded to at most so many times their number share a program.
_ROOMY = 16


class Precision(NamedTuple):
    """When a configuration of a sweep has seeds enough; made by `until_precise`.

    Attributes:
        relative: Largest half-width of the band at the horizon, as a share of the mean.
        level: Confidence level, over all looks together.
        max_seeds: Where to stop in any case.
    """

    relative: float
    level: float
    max_seeds: int

    def looks(self, seeds: int) -> list[int]:
        """Returns the numbers of seeds at which a configuration is judged: doubling."""
        looks = [min(seeds, self.max_seeds)]
        while looks[-1] < self.max_seeds:
            looks.append(min(2 * looks[-1], self.max_seeds))
        return looks

    def look_level(self, seeds: int) -> float:
        """Returns the confidence level of one look, Bonferroni's share of all."""
        return 1 - (1 - self.level) / len(self.looks(seeds))


def until_precise(relative: float, *, level: float = 0.95, max_seeds: int = 10**6) -> Precision:
    """States when a sweep has seeds enough: ``sweep(..., until=until_precise(relative=0.01))``.

    A configuration starts with the sweep's ``seeds`` and doubles them until the half-width of its
    simultaneous band of regret, at the horizon, is at most ``relative`` times the mean, or
    ``max_seeds`` is reached. Looking several times and stopping at a narrow band would make bands
    cover less than they say; so every look uses the level 1 - (1 - level) / looks, with the number
    of looks that ``max_seeds`` allows, and the band at the stop covers at least ``level`` whenever
    it stops (Bonferroni).

    Args:
        relative: Half-width over mean, in (0, 1).
        level: Confidence level over all looks, in (0, 1).
        max_seeds: Most seeds of a configuration.

    Raises:
        ValueError: If a value is out of range.

    Example:
        At most 40 seeds are not enough for half a per cent, so the sweep ends with 40:

        >>> import fmab_jax as fmab
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, fmab.Problem.uniform(agents=5, arms=10), epsilon=[0.1, 1],
        ...     horizon=10**4, seeds=20, keep="summary",
        ...     until=fmab.until_precise(relative=0.005, max_seeds=40),
        ... )
        >>> data.seeds.values.tolist(), bool((data.relative_width > 0.005).all())
        ([40, 40], True)
    """
    return Precision(
        real("relative", relative, 0, 1, "use 0.01 for 1 %", open_low=True, open_high=True),
        real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True),
        count("max_seeds", max_seeds, 2, MAX_SEEDS, "give the most seeds of a configuration"),
    )


@dataclass(frozen=True)
class LawOf(Kind):
    """A reward law, or its text: bernoulli, gaussian:SD, or one of a plug-in."""

    metavar = "LAW"

    def checked(self, name: str, value: Any, remedy: str) -> Any:
        """Returns the law."""
        installed()  # their laws are known by name, too
        return law_of(value, name)

    def plain(self, value: Any) -> Any:
        """Returns its description."""
        return value.describe()

    def text(self, value: Any) -> str:
        """Returns its words."""
        return str(value.label())

    def label(self, value: Any) -> Any:
        """Returns its words."""
        return value.label()

    def word(self, value: Any) -> Any:
        """Returns its name and its numbers, such as gaussian-0.1."""
        fields = {n: v for n, v in value.describe().items() if n != "law"}
        return "-".join([value.name, *(str(each) for each in fields.values())])


@dataclass(frozen=True)
class Drawn(Described):
    """The problem of a study that names no other: means from U[0, 1], drawn by each seed.

    Attributes:
        agents: M.
        arms: K.
        spread: Of the means over agents, as in `Problem.heterogeneous`.
        instance_gap: Smallest gap, or None.
        rewards: Reward law, or its text.
        fixed_instance: Give all seeds the means that this one would draw.
    """

    agents: int = parameter(
        Whole(low=1, high=10**7),
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
        shown="0, agents are alike",
        remedy="0 makes the agents alike, 1 is the most",
    )
    instance_gap: float | None = parameter(
        Real(none="gaps left to chance", low=1e-9, high=1.0, open_high=True),
        "Smallest gap of the means that each seed draws.",
        default=None,
        shown="left to chance",
        symbol="instance gap",
        label="smallest gap of an instance",
        remedy="give the smallest non-zero gap, or None to leave it to chance",
    )
    rewards: Any = parameter(
        LawOf(),
        "Reward law: bernoulli, gaussian:SD, or a plug-in's; fmab algorithms lists them.",
        default="bernoulli",
        symbol="",
        label="rewards",
        shown="bernoulli",
    )
    fixed_instance: int | None = parameter(
        Whole(none="a new instance for each seed", low=0, high=2**32 - 1),
        "Give all seeds the means that this seed would draw.",
        default=None,
        shown="off",
        symbol="instance of seed",
        label="instance of seed",
        remedy="give the seed whose means all seeds shall have",
    )

    def problem(self, root_seed: int) -> Problem:
        """Returns the problem under a root seed."""
        made = Problem.heterogeneous(
            self.agents, self.arms, self.spread, self.instance_gap, rewards=self.rewards
        )
        return made if self.fixed_instance is None else made.fixed(self.fixed_instance, root_seed)


class Axis(NamedTuple):
    """One swept parameter.

    Attributes:
        name: The dimension's.
        labels: Numbers or texts, distinct.
        values: What they stand for.
        words: ``long_name``, ``symbol`` and ``none``: how figures name it.
    """

    name: str
    labels: tuple[Any, ...]
    values: tuple[Any, ...]
    words: dict[str, str]


class Point(NamedTuple):
    """One configuration of the grid, checked.

    Attributes:
        described: JSON-able; all that its numbers depend on besides the seeds and the package.
        hash: Of ``described``, 32 hexadecimal digits.
        config: Its arrays.
    """

    described: dict[str, Any]
    hash: str
    config: Config


_SHARED = {
    "algorithm": Parameter("algorithm", Kind(), label="algorithm"),
    "problem": Parameter("problem", Kind(), label="problem"),
    "horizon": Parameter(
        "horizon",
        Whole(low=1, high=10**12),
        help="T, slots that every agent plays; such as 1e6.",
        remedy="give the number of slots T",
        symbol="T",
        label="horizon T (slots)",
        default=100_000,
    ),
}
"""What every study has, besides the parameters of algorithms and problems."""


@dataclass(frozen=True, eq=False)
class Study:
    """A grid of configurations times seeds; made by `state`.

    Attributes:
        axes: The swept parameters, in order.
        settings: Every parameter that is not swept, by name.
        seeds: Seeds 0, 1, ..., seeds - 1 of every config; with ``until``, those of the first look.
        root_seed: Selects all randomness.
        times: Recorded slots, or how many.
        spacing: "linear" or "log".
        sum_agents: Draw totals over agents where that is exact.
        keep: "curves" or "summary".
        until: When a config has seeds enough, or None.
        outputs: What comes out besides the usual.
    """

    axes: tuple[Axis, ...]
    settings: dict[str, Any]
    seeds: int
    root_seed: int
    times: Any
    spacing: str
    sum_agents: bool
    keep: str
    until: Precision | None
    outputs: tuple[Output, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(len(axis.values) for axis in self.axes)

    @functools.cached_property
    def points(self) -> tuple[Point, ...]:
        """The configurations, the last axis fastest.

        Raises:
            ValueError: If a value, or a combination of values, is refused.
        """
        checked: dict[tuple[str, int], Any] = {}
        problems: dict[tuple[Any, ...], Problem] = {}
        made = []
        for place, chosen in self._choices():
            make = chosen["algorithm"]
            given = _checked(make, chosen, place, checked)
            algorithm = _made("algorithm", make, given, Algorithm)
            make = chosen["problem"]
            options = _checked(make, _chosen(make, chosen), place, checked)
            # A value that cannot be hashed is known by its place on its axis.
            key = tuple((name, place.get(name, 0)) for name in ("problem", *sorted(options)))
            if key not in problems:
                problems[key] = self._problem(make, options)
            made.append((algorithm, problems[key], chosen["horizon"]))
        sizes = [problem.agents for _, problem, _ in made]
        # Numbers of agents that are not far apart share one program.
        near = max(sizes) <= _ROOMY * min(sizes)
        # One number alone shares with none, and needs no room to spare.
        rooms = {n: room_for(max(sizes) if near else n) for n in sizes if len({*sizes}) > 1}
        slots: dict[tuple[int, int], str] = {}
        return tuple(self._point(*each, rooms.get(each[1].agents), slots) for each in made)

    @functools.cached_property
    def hash(self) -> str:
        """Identity of the whole study: equal for one stated in Python, in TOML or in options."""
        axes = [[axis.name, list(axis.labels)] for axis in self.axes]
        until = None if self.until is None else list(self.until)
        return _hash([axes, self.seeds, self.keep, until, [point.hash for point in self.points]])

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able description, field by field."""
        described = {
            name: self._plain(name, value) for name, value in sorted(self.settings.items())
        }
        for axis in self.axes:
            described[axis.name] = [self._plain(axis.name, value) for value in axis.values]
        # As it will be read again: lists for tuples.
        described = json.loads(json.dumps(described, default=str))
        until = None if self.until is None else self.until._asdict()
        return described | {
            "axes": [axis.name for axis in self.axes],
            "seeds": self.seeds,
            "root_seed": self.root_seed,
            "times": np.asarray(self.times).tolist(),
            "spacing": self.spacing,
            "sum_agents": self.sum_agents,
            "keep": self.keep,
            "until": until,
            **outputs.stated(self.outputs),
        }

    def _plain(self, name: str, value: Any) -> Any:
        """Returns a JSON-able stand-in that differs where values differ."""
        if isinstance(value, Problem):
            return _described_problem(value)
        if callable(value):
            return _maker_name(value)
        if (known := self._known.get(name)) is not None:
            return known.kind.plain(known.check(value))
        return np.asarray(value).tolist() if isinstance(value, (np.ndarray, np.generic)) else value

    @functools.cached_property
    def _known(self) -> dict[str, Parameter]:
        chosen = {axis.name: axis.values for axis in self.axes}
        given = chosen | {name: (value,) for name, value in self.settings.items()}
        return _known_parameters(given["algorithm"], given["problem"])

    def _choices(self) -> Iterator[tuple[dict[str, int], dict[str, Any]]]:
        """Yields, for each point, its place on every axis and the values of all parameters."""
        for places in itertools.product(*(range(len(axis.values)) for axis in self.axes)):
            at = list(zip(self.axes, places, strict=True))
            chosen = {axis.name: axis.values[place] for axis, place in at}
            yield {axis.name: place for axis, place in at}, self.settings | chosen

    def _problem(self, make: Any, options: Mapping[str, Any]) -> Problem:
        if isinstance(make, Problem):
            return make
        chosen = dict(options)
        if make is Drawn:
            return Drawn(**chosen).problem(self.root_seed)
        if "root_seed" in _options(make):
            chosen["root_seed"] = self.root_seed
        return _made("problem", make, chosen, Problem)

    def _point(
        self,
        algorithm: Algorithm,
        problem: Problem,
        horizon: Any,
        room: int | None,
        slots: dict[tuple[int, int], str],
    ) -> Point:
        config = bound(
            algorithm,
            problem,
            horizon,
            times=self.times,
            spacing=self.spacing,
            sum_agents=self.sum_agents,
            room=room,
            quick=self.until is None and self.seeds * math.prod(self.shape) <= FEW_TRIALS,
            asked=self.outputs,
        )
        # All that recorded slots depend on, besides what configs share, is the horizon.
        grid = config.points, config.horizon
        if grid not in slots:
            slots[grid] = _hash(config.grid[: config.points].tolist())
        described = {
            **algorithm.describe(),
            "problem": _described_problem(problem),
            "rewards_code": source_digest(type(problem.rewards)),
            "horizon": config.horizon,
            "slots": slots[grid],
            "root_seed": self.root_seed,
            "sum_agents": self.sum_agents,
            # An algorithm of one's own may exchange otherwise than its description says.
            "exchange": _described_exchange(config.exchange),
            **outputs.stated(self.outputs),
        }
        return Point(described, _hash(described), config)


def state(
    algorithm: Any,
    problem: Any = None,
    *,
    horizon: Any,
    seeds: int,
    root_seed: int = 0,
    times: Any = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    keep: str = "curves",
    until: Precision | None = None,
    asked: Any = (),
    **parameters: Any,
) -> Study:
    """Checks a study and lays out its grid; arguments as in `fmab_jax.sweep`.

    ``asked`` is what is called ``outputs`` there.

    Raises:
        ValueError: If a parameter is unknown or a value out of range.
    """
    choice("keep", keep, ("curves", "summary"), "'summary' for very many seeds")
    seeds = count("seeds", seeds, 1, MAX_SEEDS, "give the number of seeds of a configuration")
    if until is not None:
        if not isinstance(until, Precision):
            refuse("until", until, "fmab_jax.until_precise(...) or None", "state the precision")
        if keep != "summary":
            allowed = "given with keep='summary'"
            refuse("until", until.relative, allowed, "configurations then differ in seeds")
        if seeds < 2:
            refuse("seeds", seeds, "at least 2 with until", "a band needs 2 seeds")
        if seeds > until.max_seeds:
            remedy = "start with fewer, or allow more"
            refuse("seeds", seeds, f"at most {until.max_seeds:,}, the max_seeds of until", remedy)
    flag("sum_agents", sum_agents)
    if isinstance(algorithm, Algorithm):
        algorithm, parameters = _taken_apart(algorithm, parameters)
    problem, parameters = _spelt_out(problem, parameters)
    makers = _algorithms(algorithm)
    for name, value in (("algorithm", makers), ("problem", problem)):
        if not _each(value):
            refuse(name, value, "not empty", "give at least one value")
    known = _known_parameters(_each(makers), _each(problem))
    given = {"algorithm": makers, "problem": problem, **parameters, "horizon": horizon}
    for name, value in parameters.items():
        if name not in known:
            _refuse_unknown(name, value, known)
    axes, settings = [], {}
    for name, value in given.items():
        swept = _axis(name, value, known.get(name))
        if swept is None:
            settings[name] = value
        else:
            axes.append(swept)
    _add_defaults(axes, settings)
    configs = math.prod(len(axis.values) for axis in axes)
    if configs > MAX_CONFIGS:
        refuse("configurations", configs, f"at most {MAX_CONFIGS:,}", "sweep fewer values")
    further = outputs.chosen(asked)
    for output in further:
        if output.name in {*settings, *(axis.name for axis in axes)}:
            refuse("Output.name", output.name, "no parameter of the study", "rename it")
    return Study(
        axes=tuple(axes),
        settings=settings,
        seeds=seeds,
        root_seed=keys.checked_seed("root_seed", root_seed),
        times=times,
        spacing=spacing,
        sum_agents=sum_agents,
        keep=keep,
        until=until,
        outputs=further,
    )


def provenance(devices: Sequence[jax.Device]) -> dict[str, str]:
    """Returns what bits depend on besides the configuration: versions, source, kind of device."""
    return made_with(devices[0].platform)


def made_with(platform: str) -> dict[str, str]:
    """Returns what `provenance` does, for devices of a platform; starts none."""
    versions = resources.versions()
    return {
        "fmab_jax": f"{__version__} ({_engine()})",
        **{name: versions[name] for name in ("jax", "jaxlib", "numpy")},
        "platform": platform,
    }


@functools.cache
def _engine() -> str:
    """Returns what stands for the engine: it changes with the bits of pinned results.

    Source that ``python tests/pins.py`` has found to give the same bits is the same engine. Any
    other is not, until that has run.
    """
    told = (package_files.files("fmab_jax") / "engine.txt").read_text("utf-8").split()
    now = engine_source()
    return told[0] if told[1:] == [now] else f"{told[0]}, edited: {now}"


def engine_source() -> str:
    """Returns a hash of the source that a seed's numbers depend on."""
    return cache.source(*_ENGINE)[:12]


def _algorithms(given: Any) -> Any:
    """Names stand for algorithms; a list of either is an axis."""

    def one(item: Any) -> Any:
        if isinstance(item, str):
            return named(item)
        if isinstance(item, Algorithm) or not callable(item):
            remedy = "in a list pass the algorithm itself, such as fmab_jax.cdp_mab"
            refuse("algorithm", item, "an algorithm such as fmab_jax.cdp_mab, or its name", remedy)
        return item

    if isinstance(given, Mapping):
        return {label: one(item) for label, item in given.items()}
    if isinstance(given, (list, tuple)):
        return [one(item) for item in given]
    return one(given)


def _taken_apart(
    algorithm: Algorithm, parameters: dict[str, Any]
) -> tuple[type[Algorithm], dict[str, Any]]:
    """Returns the class of a configured algorithm, and its parameters as if each was given."""
    own = {name: getattr(algorithm, name) for name in _fields_of(type(algorithm))}
    for name in own:
        if name in parameters:
            remedy = "the algorithm has its own; or pass the algorithm itself, not a call of it"
            refuse(name, parameters[name], "left out with a configured algorithm", remedy)
    return type(algorithm), {n: v for n, v in own.items() if v is not UNSET} | parameters


def _maker_name(make: Any) -> str:
    if isinstance(make, functools.partial):
        return _maker_name(make.func)
    # Not its repr, which holds an address and so changes from run to run.
    return str(getattr(make, "name", "") or getattr(make, "__name__", type(make).__name__))


def _options(make: Any) -> dict[str, Any]:
    """Returns what can be given to a maker by name, with its default, UNSET or _NEEDED.

    Raises:
        ValueError: If it does not say.
    """
    if isinstance(make, Problem):
        return {}
    if isinstance(make, type) and issubclass(make, Described):
        return {name: each.default for name, each in _fields_of(make).items()}
    try:
        given = inspect.signature(make).parameters
    except (TypeError, ValueError):
        refuse("algorithm", make, "a maker with named parameters", "wrap it in a function")
    unnamed = inspect.Parameter.POSITIONAL_ONLY
    if any(each.kind is unnamed and each.default is each.empty for each in given.values()):
        refuse("algorithm", make, "a maker with named parameters", "wrap it in a function")
    named_ = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: _NEEDED if each.default is each.empty else each.default
        for name, each in given.items()
        if each.kind in named_
    }


def _known_parameters(algorithms: Sequence[Any], problems: Sequence[Any]) -> dict[str, Parameter]:
    """Returns every parameter that some algorithm or problem of a study takes."""
    known = dict(_SHARED)
    for make in (*algorithms, *problems):
        if not isinstance(make, Problem) and not callable(make):
            remedy = "such as fmab_jax.Problem.uniform(50, 100), or the maker itself"
            refuse("problem", make, "a Problem or a function that makes one", remedy)
        described = isinstance(make, type) and issubclass(make, Described)
        fields = _fields_of(make) if described else {}
        for name, default in _options(make).items():
            if name != "root_seed" or make in algorithms:
                words = name.replace("_", " ")
                plain = Parameter(name, Kind(none="none"), default, symbol=words, label=words)
                known.setdefault(name, fields.get(name, plain))
    # A function of one's own says nothing of its parameters; algorithms and problems do.
    for name in [name for name, each in known.items() if type(each.kind) is Kind]:
        if name in _fields_of(Drawn):
            known[name] = _fields_of(Drawn)[name]
    return known


def _made(kind: str, make: Callable[..., Any], chosen: Mapping[str, Any], wanted: type) -> Any:
    """Calls a maker of algorithms or problems with what was chosen for it."""
    options = _options(make)
    values = {name: chosen[name] for name in options if name in chosen}
    described = isinstance(make, type) and issubclass(make, Described)
    for name, default in options.items():
        # A described class says itself what is missing.
        if default is _NEEDED and name not in values and not described:
            refuse(name, UNSET, "given", f"the {kind} {_maker_name(make)} needs it")
    with asking(make) if described else nullcontext():
        made = make(**values)
    if not isinstance(made, wanted):
        refuse(kind, made, f"a maker that returns an {wanted.__name__}", "return what it makes")
    return made


def _chosen(make: Any, chosen: Mapping[str, Any]) -> dict[str, Any]:
    return {name: chosen[name] for name in _options(make) if name in chosen}


def _checked(
    make: Any,
    chosen: Mapping[str, Any],
    place: Mapping[str, int],
    checked: dict[tuple[str, int], Any],
) -> Mapping[str, Any]:
    """Returns what was chosen for a described class, checked; for other makers, as it is.

    A graph is so read and checked once, not for each epsilon.
    """
    if not (isinstance(make, type) and issubclass(make, Described)):
        return chosen
    values = {}
    for name, field in _fields_of(make).items():
        if name in chosen and chosen[name] is not UNSET:
            key = f"{make.__name__}.{name}", place.get(name, 0)
            if key not in checked:
                checked[key] = field.check(chosen[name])
            values[name] = checked[key]
    return values


def _each(given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _spelt_out(problem: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns a problem whose means are drawn as `Drawn` and its parameters.

    However a problem is stated, by a `Problem`, a maker or options, it is then the same study.
    """
    if problem is None:
        return Drawn, parameters
    if isinstance(problem, Problem) and problem.drawn:
        own: dict[str, Any] = {"agents": problem.agents, "arms": problem.arms}
        own |= {"spread": problem.spread, "instance_gap": problem.instance_gap}
        own["rewards"] = problem.rewards
        for name in own:
            if name in parameters:
                remedy = "the problem has its own; or pass a maker such as Problem.uniform"
                refuse(name, parameters[name], "left out with a Problem", remedy)
        return Drawn, {**own, **parameters}
    # Not of an array, whose equality is one as well.
    if callable(problem) and {"agents", "arms"} <= set(parameters):
        if problem == Problem.heterogeneous:
            return Drawn, parameters if "spread" in parameters else {**parameters, "spread": 1.0}
        if problem == Problem.uniform and not {"spread", "instance_gap"} & set(parameters):
            return Drawn, parameters
    return problem, parameters


def _refuse_unknown(name: str, value: Any, known: Mapping[str, Parameter]) -> None:
    others = sorted(set(known) - {"algorithm", "problem"})
    remedy = did_you_mean(name, others, f"choose from {', '.join(others)}", str)
    first = _each(value)[0] if _each(value) else value
    refuse(name, first, "left out: neither algorithm nor problem takes it", remedy)


def _add_defaults(axes: Sequence[Axis], settings: dict[str, Any]) -> None:
    """Writes out what was left to default, so that a study says all of it."""
    chosen = {axis.name: axis.values for axis in axes} | {n: (v,) for n, v in settings.items()}
    defaults: dict[str, list[Any]] = {}
    for make in (*chosen["algorithm"], *chosen["problem"]):
        for name, default in _options(make).items():
            if name != "root_seed" and default is not UNSET and default is not _NEEDED:
                defaults.setdefault(name, []).append(default)
    for option, values in defaults.items():
        # Where makers differ, each keeps its own.
        plain = all(value is None or isinstance(value, (int, float, str)) for value in values)
        if plain and option not in chosen and len(set(values)) == 1:
            settings[option] = values[0]


def _axis(name: str, value: Any, known: Parameter | None) -> Axis | None:
    """Returns the axis that a parameter spans, or None for a single value."""
    if known is not None and not isinstance(value, Mapping) and known.kind.lists(value):
        return None
    swept = isinstance(value, (Mapping, list, tuple, range))
    if not swept and not (isinstance(value, np.ndarray) and value.ndim == 1):
        return None
    if not length(value):
        refuse(name, value, "not empty", "give at least one value")
    if length(value) > MAX_CONFIGS:
        remedy = f"sweep fewer values of {name}"
        refuse("configurations", length(value), f"at most {MAX_CONFIGS:,}", remedy)
    if isinstance(value, Mapping):
        values, labels = list(value.values()), [str(label) for label in value]
    else:
        values = [_python_number(item) for item in value]
        labels = [_label(name, item, place, known) for place, item in enumerate(values)]
    seen = set()
    for label, item in zip(labels, values, strict=True):
        if label in seen:
            remedy = "a repeated value repeats its configurations"
            if not (item is None or isinstance(item, (str, int, float))):
                remedy = "label different ones: {'label': value}"
            refuse(name, label, "distinct values", remedy)
        seen.add(label)
    if name in ("time", "seed", "meter", "agent", "arm"):
        refuse(name, value, "left out", f"{name} is a dimension of every result")
    words = {"long_name": name.replace("_", " "), "symbol": name.replace("_", " "), "none": "none"}
    if known is not None:
        none = known.kind.none or "none"
        # Labels of one's own speak for themselves.
        symbol = "" if isinstance(value, Mapping) else known.symbol
        words = {"long_name": known.label or name, "symbol": symbol, "none": none}
    return Axis(name, tuple(labels), tuple(values), words)


def _python_number(value: Any) -> Any:
    """Returns a NumPy number as Python's; a float32 means the decimal number it prints."""
    if isinstance(value, np.floating):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value


def _label(name: str, value: Any, place: int, known: Parameter | None) -> Any:
    """Returns the number or the short text that stands for a value."""
    if known is not None and type(known.kind) is not Kind:
        label = known.kind.label(known.check(value))
        return f"{name}-{place}" if label in (None, "") else label
    # An infinite epsilon is no noise, as None is; nothing else may be infinite.
    if value is None or (isinstance(value, float) and value == math.inf):
        return "none"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if is_graph(value) or isinstance(value, FixedGraph):
        return str(value.name or f"graph-{place}")
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Problem):
        return f"problem-{place}"
    if isinstance(value, Law):
        return value.label()
    if callable(value):
        return _maker_name(value)
    if isinstance(value, (list, tuple)) and len(value) <= MAX_CONFIGS:
        parts = [p if isinstance(p, (tuple, list)) else [p] for p in value]
        if any(isinstance(item, (list, tuple, dict)) for part in parts for item in part):
            return shown(value)
        return "+".join(":".join(map(str, part)) for part in parts)
    refuse(name, value, "numbers, texts, None, graphs or problems", "label it: {'label': value}")


def _described_problem(problem: Problem) -> dict[str, Any]:
    """Returns a problem's description, with digests for its arrays."""
    described = problem.describe()
    for name in ("means", "probabilities"):
        if name in described:
            plain = np.ascontiguousarray(described[name], "<f8")
            described[name] = hashlib.sha256(plain.tobytes()).hexdigest()
    return described


def _described_exchange(exchange: Exchange) -> list[Any]:
    weights = hashlib.sha256(np.ascontiguousarray(exchange.weights, "<f8").tobytes()).hexdigest()
    links = [[meter.name, number] for meter, number in exchange.links]
    told = [exchange.name, exchange.reporting, exchange.wait, links, weights]
    return told + [exchange.vectors, exchange.numbers]


def _hash(described: Any) -> str:
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
