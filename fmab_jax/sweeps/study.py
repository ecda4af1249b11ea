"""A study: a labelled grid of configurations, each with an identity.

A `Study` holds no results. The address of a point is the hash of everything that its numbers depend
on, so equal points of two studies, or of one grid, are the same config.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources as package_files
from typing import NamedTuple, TypeGuard, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fmab_jax import __version__
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.leaks import NOISE, at_leak
from fmab_jax.errors import choice, count, did_you_mean, flag, length, refuse
from fmab_jax.parameters import UNSET, VIEWS, Parameter, parameters_of
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.mechanisms import Mechanism
from fmab_jax.parts.outputs import Output, Reduce
from fmab_jax.parts.plugins import code_of
from fmab_jax.parts.worlds.contract import check_world
from fmab_jax.records.problem import Problem
from fmab_jax.run import cache, resources
from fmab_jax.run import outputs as record
from fmab_jax.run.configs import FEW_TRIALS, Config, bind, pad_agents
from fmab_jax.run.contract import refuse_errors
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sampling import keys
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.precision import Precision
from fmab_jax.sweeps.subjects import (
    MAX_CONFIGS,
    SHARED,
    Axis,
    RandomProblem,
    axis_of,
    describe_problem,
)

# Modules that a seed's numbers depend on.
_ENGINE = (*cache.ENGINE, "analysis/summary.py")
# Numbers of agents within this factor are padded to one program.
_MAX_PADDING = 16
# Seeds for which a world of one's own is checked.
_WORLD_SEEDS = 1000
Owner = TypeVar("Owner")


class Point(NamedTuple):
    """One configuration of the grid, checked."""

    description: Record  # all that its numbers depend on, except seeds and package
    hash: str  # of ``description``, 32 hexadecimal digits
    config: Config


@dataclass(frozen=True, eq=False)
class Study:
    """A grid of configurations times seeds; made by `state`, from arguments as in `sweep`."""

    axes: tuple[Axis, ...]  # the swept parameters, in order
    settings: Record  # every parameter that is not swept, checked, by name
    parameters: Mapping[str, Parameter]  # of all algorithms and the problem
    seeds: int  # how many of every config; with ``until``, those of the first look
    root_seed: int
    times: ArrayLike
    spacing: str
    sum_agents: bool
    keep: str
    until: Precision | None
    outputs: tuple[Output, ...] = ()
    seed_list: np.ndarray | None = None  # which seeds; None for 0, 1, ..., seeds - 1
    fast_compile: bool | None = None  # as in `Program`; None to choose by the number of trials

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(len(axis.values) for axis in self.axes)

    @functools.cached_property
    def points(self) -> tuple[Point, ...]:
        """The configurations, the last axis fastest; refuses what does not go together."""
        problems: dict[tuple[int, ...], Problem] = {}
        cells = []
        shared = {"problem", *parameters_of(RandomProblem)}
        # Of several laws of noise, only those without pure epsilon have a delta.
        laws = next((axis.values for axis in self.axes if axis.name == "mechanism"), ())
        is_mixed = len({isinstance(law, Mechanism) and law.pure for law in laws}) > 1
        if is_mixed and any(axis.name == "delta" for axis in self.axes):
            allowed = "one value where noise with a pure epsilon is swept as well"
            refuse("delta", "several", allowed, "give one delta, or leave such noise out")
        for places in itertools.product(*map(range, self.shape)):
            pairs = [*zip(self.axes, places, strict=True)]
            values = self.settings | {axis.name: axis.values[place] for axis, place in pairs}
            if is_mixed and values["mechanism"].pure:
                values["delta"] = None
            # Configurations that agree in all parameters of the problem share one problem object.
            key = tuple(place for axis, place in pairs if axis.name in shared)
            if key not in problems:
                problems[key] = values["problem"] or _instantiate(RandomProblem, values).problem(
                    self.root_seed
                )
            algorithm = values["algorithm"]
            if isinstance(algorithm, type):
                algorithm = _configure(algorithm, values, problems[key])
            cells.append((algorithm, problems[key], values["horizon"]))
        sizes = {problem.agents for _, problem, _ in cells}
        # Similar numbers of agents share one program.
        near = max(sizes) <= _MAX_PADDING * min(sizes)
        # A single number of agents needs no padding.
        padding = {n: pad_agents(max(sizes) if near else n) for n in sizes if len(sizes) > 1}
        outputs = record.to_study(self.outputs)
        points = tuple(self._point(*cell, padding.get(cell[1].agents), outputs) for cell in cells)
        self._check_worlds([point.config for point in points])
        return points

    def _check_worlds(self, configs: Iterable[Config]) -> None:
        """Checks worlds of one's own for some seeds, before anything is compiled or stored."""
        seeds = range(self.seeds) if self.seed_list is None else self.seed_list
        few = np.resize(np.array(seeds[:_WORLD_SEEDS]), _WORLD_SEEDS)
        for config in {(x.problem, x.horizon): x for x in configs}.values():
            with refuse_errors(type(config.problem.world)):
                check_world(config.bound, config.horizon, self.root_seed, few)

    @property
    def _is_brief(self) -> bool:
        """Whether a program that compiles fast saves more time than it costs."""
        return self.until is None and self.seeds * math.prod(self.shape) <= FEW_TRIALS

    @functools.cached_property
    def hash(self) -> str:
        """Identity of the study, equal for Python, TOML and options."""
        axes = [[axis.name, list(axis.labels)] for axis in self.axes]
        until = None if self.until is None else list(self.until)
        seeds = self.seeds if self.seed_list is None else self._seeds
        return _hash([axes, seeds, self.keep, until, [point.hash for point in self.points]])

    @functools.cached_property
    def _seeds(self) -> str:
        """A digest of the list of seeds."""
        return hashlib.sha256(np.asarray(self.seed_list, "<i8").tobytes()).hexdigest()

    def describe(self) -> Record:
        """Returns a JSON-able description, field by field."""
        kinds = {name: parameter.kind for name, parameter in self.parameters.items()}
        settings = {name: kinds[name].plain(value) for name, value in self.settings.items()}
        algorithm = self.settings.get("algorithm")
        if isinstance(algorithm, Algorithm):
            plain = algorithm.plain().items()
            settings |= {n: v for n, v in plain if getattr(algorithm, n) is not UNSET}
            settings["algorithm"] = kinds["algorithm"].label(algorithm)
        axes = {a.name: [*map(kinds[a.name].plain, a.values)] for a in self.axes}
        # JSON turns tuples into lists, as a reader will see them.
        description = json.loads(json.dumps(dict(sorted(settings.items())) | axes, default=str))
        return description | {
            "axes": [axis.name for axis in self.axes],
            "seeds": self.seeds,
            "root_seed": self.root_seed,
            "times": np.asarray(self.times).tolist(),
            "spacing": self.spacing,
            "sum_agents": self.sum_agents,
            "keep": self.keep,
            "until": None if self.until is None else self.until._asdict(),
            **({} if self.seed_list is None else {"listed": self._seeds}),
            **record.to_study(self.outputs),
        }

    def _point(
        self,
        algorithm: Algorithm,
        problem: Problem,
        horizon: int,
        padded_agents: int | None,
        outputs: Record,
    ) -> Point:
        config = bind(
            algorithm,
            problem,
            horizon,
            times=self.times,
            spacing=self.spacing,
            sum_agents=self.sum_agents,
            padded_agents=padded_agents,
            fast_compile=self._is_brief if self.fast_compile is None else self.fast_compile,
            outputs=self.outputs,
        )
        description = {
            **algorithm.describe(),
            "problem": describe_problem(problem),
            "rewards_code": code_of(problem.rewards),
            **{
                f"{name}_code": code_of(part)
                for name, part in (("world", problem.world), ("presence", problem.presence))
                if part is not None
            },
            "horizon": config.horizon,
            "slots": _hash(config.grid[: config.points].tolist()),
            "root_seed": self.root_seed,
            "sum_agents": self.sum_agents,
            # A user's algorithm may change its exchange without changing its description.
            "exchange": _describe_exchange(config.exchange),
            **outputs,
        }
        return Point(description, _hash(description), config)


def _configure(owner: type[Algorithm], values: Record, problem: Problem) -> Algorithm:
    """Creates an algorithm; its noise follows from the leak where that is given."""
    if "leak" not in values:
        return _instantiate(owner, values)
    parameters = {name: values[name] for name in parameters_of(owner) if name in values}
    view = values.get("view", VIEWS[0])
    agents, presence = problem.agents, problem.presence
    return at_leak(owner, values["leak"], agents=agents, view=view, presence=presence, **parameters)


def _instantiate(owner: type[Owner], values: Record) -> Owner:
    """Creates an instance from the values that are parameters of the class."""
    with refuse_errors(owner):
        return owner(**{name: values[name] for name in parameters_of(owner) if name in values})


def state(
    algorithm: object,
    problem: object = None,
    *,
    horizon: object,
    seeds: object,
    root_seed: int = 0,
    times: ArrayLike = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    keep: str = "curves",
    until: Precision | None = None,
    outputs: object = (),
    **parameters: object,
) -> Study:
    """Checks a study and lays out its grid; arguments as in `fmab_jax.sweep`."""
    choice("keep", keep, ("curves", "summary"), "'summary' for very many seeds")
    number, seed_list = _parse_seeds(seeds)
    if seed_list is not None and keep != "curves":
        allowed = "a number with keep='summary'"
        refuse("seeds", seeds, allowed, "a list is for curves")
    if until is not None:
        _check_until(until, keep, number)
    flag("sum_agents", sum_agents)
    if isinstance(problem, Problem) and problem.means is None:
        # A random Problem and its parameters give the same study.
        names = ("agents", "arms", "spread", "instance_gap", "rewards", "world", "presence")
        _refuse_twice(names, parameters, "a Problem")
        parameters = {name: getattr(problem, name) for name in names} | parameters
        problem = None
    axes, settings, specs = _lay_out(algorithm, problem, parameters | {"horizon": horizon})
    selected = record.resolve(outputs)
    for output in selected:
        if isinstance(output, Reduce) and keep != "summary":
            allowed = "left out, or given with keep='summary'"
            refuse("outputs", output.name, allowed, "it is made of many seeds")
        variables = {output.name, *record.derive_names([output.name])}
        if not variables.isdisjoint(axis.name for axis in axes):
            refuse("Output.name", output.name, "no parameter that is swept", "rename it")
    return Study(
        axes=axes,
        settings=settings,
        parameters=specs,
        seeds=number,
        root_seed=keys.checked_seed("root_seed", root_seed),
        times=times,
        spacing=spacing,
        sum_agents=sum_agents,
        keep=keep,
        until=until,
        outputs=selected,
        seed_list=seed_list,
    )


def _lay_out(
    algorithm: object, problem: object, values: Record
) -> tuple[tuple[Axis, ...], Record, dict[str, Parameter]]:
    """Returns the axes, the single values, and all parameters; every value is checked once."""
    axes: list[Axis] = []
    settings: Record = {}

    def add(name: str, value: object) -> tuple[object, ...]:
        axis = axis_of(name, value, parameters[name])
        if axis is None:
            settings[name] = parameters[name].check(value)
            return (settings[name],)
        axes.append(axis)
        return axis.values

    parameters = dict(SHARED)
    algorithms = add("algorithm", algorithm)
    owners = [owner for owner in algorithms if isinstance(owner, type)]
    if problem is None:
        settings["problem"] = None
        owners.append(RandomProblem)
    else:
        add("problem", problem)
        _refuse_twice(parameters_of(RandomProblem), values, "a Problem")
    defaults: dict[str, list[object]] = {}
    for owner in owners:
        for name, parameter in parameters_of(owner).items():
            parameters.setdefault(name, parameter)
            if parameter.default is not UNSET:
                defaults.setdefault(name, []).append(parameter.default)
    for item in algorithms:
        if isinstance(item, Algorithm):
            stated = (*parameters_of(type(item)), "leak")
            _refuse_twice(stated, values, "a configured algorithm")
    if "leak" in values:
        for name in NOISE:
            defaults.pop(name, None)
            if name in values:
                refuse(name, values[name], "left out with leak, which sets it", "drop one")
    elif "view" in values:
        refuse("view", values["view"], "given with a leak", "add leak=..., or drop it")
    for name, value in values.items():
        if name not in parameters:
            names = sorted(set(parameters) - {"algorithm", "problem"})
            remedy = did_you_mean(name, names, f"choose from {', '.join(names)}", str)
            refuse(name, value, "left out: neither algorithm nor problem takes it", remedy)
        add(name, value)
    # Common defaults are written out, so that a later version with other defaults runs the same.
    present = {axis.name for axis in axes} | {*settings}
    for name, choices in defaults.items():
        plain = all(value is None or isinstance(value, (int, float, str)) for value in choices)
        if name not in present and plain and len(set(choices)) == 1:
            settings[name] = parameters[name].check(choices[0])
    configs = math.prod(len(axis.values) for axis in axes)
    if configs > MAX_CONFIGS:
        refuse("configurations", configs, f"at most {MAX_CONFIGS:,}", "sweep fewer values")
    return tuple(axes), settings, parameters


def _refuse_twice(names: Iterable[str], values: Record, owner: str) -> None:
    """Refuses parameters that a configured object already has."""
    for name in names:
        if name in values:
            refuse(name, values[name], f"left out with {owner}", f"{owner} has its own")


def _parse_seeds(seeds: object) -> tuple[int, np.ndarray | None]:
    """Returns the number of seeds, and the seeds if they are not 0, 1, and so on."""
    if isinstance(seeds, Precision):
        refuse("seeds", seeds, "a number or a list", "a precision goes to sweep, as until=")
    if not _is_list(seeds):
        return count("seeds", seeds, 1, MAX_SEEDS, "give the number of seeds"), None
    if not (number := length(seeds)):
        refuse("seeds", list(seeds), "not empty", "give at least one seed")
    if number > MAX_SEEDS:
        refuse("seeds", number, f"at most {MAX_SEEDS:,}", "run them in parts")
    # A range may have millions of seeds, and its ends decide.
    ends = (seeds[0], seeds[-1]) if isinstance(seeds, range) else seeds
    checked = [keys.checked_seed("seeds", seed) for seed in ends]
    if isinstance(seeds, range):
        return number, None if seeds == range(number) else np.array(seeds, np.int64)
    if len(set(checked)) != number:
        refuse("seeds", checked, "distinct", "a repeated seed repeats its run")
    return number, None if checked == [*range(number)] else np.array(checked, np.int64)


def _is_list(seeds: object) -> TypeGuard[Sequence[int]]:
    return isinstance(seeds, (list, tuple, range)) or bool(getattr(seeds, "ndim", 0))


def _check_until(until: object, keep: str, seeds: int) -> None:
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


def collect_provenance(platform: str) -> dict[str, str]:
    """Returns the versions, the engine and the platform that results depend on."""
    versions = resources.versions()
    return {
        "fmab_jax": f"{__version__} ({_engine()})",
        **{name: versions[name] for name in ("jax", "jaxlib", "numpy")},
        "platform": platform,
    }


@functools.cache
def _engine() -> str:
    """Returns the identity of the engine, which changes with the bits of pinned results.

    ``python tests/pins.py`` records source that gives the same bits as the same engine. Unrecorded
    source is another engine.
    """
    file = package_files.files("fmab_jax") / "engine.txt"
    name, *sources = file.read_text("utf-8").split()
    now = engine_source()
    return name if sources == [now] else f"{name}, edited: {now}"


def engine_source() -> str:
    """Returns a hash of the source that a seed's numbers depend on."""
    return cache.source_digest(*_ENGINE)[:12]


def _describe_exchange(exchange: Exchange) -> list[object]:
    weights = hashlib.sha256(np.ascontiguousarray(exchange.weights, "<f8").tobytes()).hexdigest()
    links = [[meter.name, number] for meter, number in exchange.links]
    fields = [exchange.name, exchange.reporting, exchange.wait, links, weights]
    return fields + [exchange.vectors, exchange.numbers]


def _hash(description: object) -> str:
    text = json.dumps(description, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
