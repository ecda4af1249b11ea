"""A study: a labelled grid of configurations, each with an identity.

A `Design` holds no results. The address of a point is the hash of everything that its numbers
depend on, so equal points of two studies, or of one grid, are the same config.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources as package_files
from typing import Any, NamedTuple

import numpy as np

from fmab_jax import __version__
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.leaks import NOISE, at_leak
from fmab_jax.errors import did_you_mean, flag, refuse
from fmab_jax.parameters import UNSET, VIEWS, Parameter, parameters_of
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.parts.mechanisms import Mechanism
from fmab_jax.parts.outputs import Output, Reduce
from fmab_jax.parts.plugins import code_of
from fmab_jax.parts.worlds.world_checks import check_world
from fmab_jax.records.problem import Problem, RandomMeans
from fmab_jax.run import cache, resources
from fmab_jax.run import outputs as record
from fmab_jax.run.configs import FEW_TRIALS, Config, bind, pad_agents
from fmab_jax.run.promises import refuse_errors
from fmab_jax.sampling.shapes import Record
from fmab_jax.sweeps.fields import FIELDS, StudyFields
from fmab_jax.sweeps.precision import Precision
from fmab_jax.sweeps.subjects import (
    MAX_CONFIGS,
    SHARED,
    Axis,
    RandomProblem,
    axis_of,
    describe_problem,
    read_problem,
)

# Modules that a seed's numbers depend on.
_ENGINE = (*cache.ENGINE, "analysis/summary.py")
# Numbers of agents within this factor are padded to one program.
_MAX_PADDING = 16
# Seeds for which a world of one's own is checked.
_WORLD_SEEDS = 1000


class Point(NamedTuple):
    """One configuration of the grid, checked."""

    description: Record  # all that its numbers depend on, except seeds and package
    hash: str  # of ``description``, 32 hexadecimal digits
    config: Config


@dataclass(frozen=True, eq=False, init=False)
class Design(StudyFields):
    """A grid of configurations times seeds, checked; arguments as in `fmab_jax.Study`.

    Attributes:
        axes: The swept parameters, in order.
        settings: Every parameter that is not swept, checked, by name.
        parameters: All parameters of the algorithms and the problem, by name.
        seeds: How many of every configuration; with ``until``, those of the first look.
        seed_list: Which seeds, int64 [seed]; None for 0, 1, ..., seeds - 1.
        files: The problem's arguments where a file holds the means.
        fast_compile: As in `Program`; None to choose by the number of trials.
    """

    axes: tuple[Axis, ...]
    settings: Record
    parameters: Mapping[str, Parameter]
    seed_list: np.ndarray | None
    files: Record
    fast_compile: bool | None

    def __init__(
        self,
        algorithm: object,
        problem: object = None,
        *,
        horizon: object,
        seeds: object,
        fast_compile: bool | None = None,
        **values: Any,
    ) -> None:
        values |= {"seeds": seeds}
        fields: Record = {name: p.check(values.pop(name, p.default)) for name, p in FIELDS.items()}
        if fast_compile is not None:
            flag("fast_compile", fast_compile)
        seed_list = fields["seeds"] if isinstance(fields["seeds"], np.ndarray) else None
        fields |= {"seed_list": seed_list, "fast_compile": fast_compile}
        if seed_list is not None:
            fields["seeds"] = len(seed_list)
            if fields["keep"] != "curves":
                allowed = "a number with keep='summary'"
                refuse("seeds", seed_list.tolist(), allowed, "a list is for curves")
        _check_until(fields["until"], fields["keep"], fields["seeds"])
        files = _take_files(problem, values)
        problem = read_problem(**files) if files else problem
        if isinstance(problem, Problem) and problem.means is None:
            # A random Problem and its parameters give the same study.
            names = parameters_of(RandomMeans)
            _refuse_twice(names, values, "a Problem")
            values = {name: getattr(problem, name) for name in names} | values
            problem = None
        axes, settings, parameters = _lay_out(algorithm, problem, values | {"horizon": horizon})
        for output in fields["outputs"]:
            if isinstance(output, Reduce) and fields["keep"] != "summary":
                allowed = "left out, or given with keep='summary'"
                refuse("outputs", output.name, allowed, "it is made of many seeds")
            variables = {output.name, *record.derive_names([output.name])}
            if not variables.isdisjoint(axis.name for axis in axes):
                refuse("Output.name", output.name, "no parameter that is swept", "rename it")
        fields["axes"] = _order(axes, fields["dims"])
        fields |= {"settings": settings, "parameters": parameters, "files": files}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(len(axis.values) for axis in self.axes)

    @functools.cached_property
    def points(self) -> tuple[Point, ...]:
        """The configurations, the last axis fastest; refuses what does not go together."""
        problems: dict[tuple[int, ...], Problem] = {}
        cells = []
        names = {*parameters_of(RandomProblem)}
        is_mixed = self._sweeps_pure_noise()
        for places in itertools.product(*map(range, self.shape)):
            pairs = [*zip(self.axes, places, strict=True)]
            values = self.settings | {axis.name: axis.values[place] for axis, place in pairs}
            if is_mixed and values["mechanism"].pure:
                values["delta"] = None
            # Configurations that agree in all parameters of the problem share one problem object.
            key = tuple(place for axis, place in pairs if axis.name in {"problem", *names})
            if key not in problems:
                params = {name: values[name] for name in names if name in values}
                problems[key] = values["problem"] or RandomProblem(**params).problem(self.root_seed)
            algorithm = values["algorithm"]
            if isinstance(algorithm, type):
                algorithm = _configure(algorithm, values, problems[key])
            cells.append((algorithm, problems[key], values["horizon"]))
        sizes = {problem.agents for _, problem, _ in cells}
        # Similar numbers of agents share one program.
        near = max(sizes) <= _MAX_PADDING * min(sizes)
        # A single number of agents needs no padding.
        padding = {n: pad_agents(max(sizes) if near else n) for n in sizes if len(sizes) > 1}
        configs = [self._bind(*cell, padding.get(cell[1].agents)) for cell in cells]
        outputs = record.add_defaults(self.outputs, [(x.trial, x.problem) for x in configs])
        points = tuple(self._point(config.with_outputs(outputs)) for config in configs)
        self._check_worlds(configs)
        return points

    @property
    def all_outputs(self) -> tuple[Output, ...]:
        """The requested outputs, and those by default where agents differ."""
        return self.points[0].config.outputs

    @property
    def extra_outputs(self) -> tuple[Output, ...]:
        """The requested outputs that do not come by default."""
        pairs = [(point.config.trial, point.config.problem) for point in self.points]
        defaults = record.add_defaults((), pairs)
        return tuple(output for output in self.outputs if output not in defaults)

    def _sweeps_pure_noise(self) -> bool:
        """Returns whether some swept laws of noise have a pure epsilon: they have no delta."""
        laws = next((axis.values for axis in self.axes if axis.name == "mechanism"), ())
        is_mixed = len({isinstance(law, Mechanism) and law.pure for law in laws}) > 1
        if is_mixed and any(axis.name == "delta" for axis in self.axes):
            allowed = "one value where noise with a pure epsilon is swept as well"
            refuse("delta", "several", allowed, "give one delta, or leave such noise out")
        return is_mixed

    def _check_worlds(self, configs: Iterable[Config]) -> None:
        """Checks worlds for the first seeds, before a run is compiled or stored."""
        seeds = range(self.seeds) if self.seed_list is None else self.seed_list
        # Seeds are repeated, so that studies of few seeds share one compiled check.
        check_seeds = np.resize(np.array(seeds[:_WORLD_SEEDS]), _WORLD_SEEDS)
        for config in {(x.problem, x.horizon): x for x in configs}.values():
            with refuse_errors(type(config.problem.world)):
                check_world(config.bound, config.horizon, self.root_seed, check_seeds)

    @functools.cached_property
    def hash(self) -> str:
        """Identity of the study, equal for Python, TOML and options."""
        axes = [[axis.name, list(axis.labels)] for axis in self.axes]
        until = None if self.until is None else [*self.until.plain().values()]
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
        fields = {name: p.kind.plain(getattr(self, name)) for name, p in FIELDS.items()}
        # The axes have the order of dims, and outputs have identities.
        del fields["dims"], fields["outputs"]
        return description | {
            "axes": [axis.name for axis in self.axes],
            **fields,
            **({} if self.seed_list is None else {"listed": self._seeds}),
            **record.to_study(self.all_outputs),
        }

    def _bind(
        self, algorithm: Algorithm, problem: Problem, horizon: int, padded_agents: int | None
    ) -> Config:
        # A program that compiles fast saves more time than it costs where trials are few.
        is_brief = self.until is None and self.seeds * math.prod(self.shape) <= FEW_TRIALS
        return bind(
            algorithm,
            problem,
            horizon,
            times=self.times,
            spacing=self.spacing,
            sum_agents=self.sum_agents,
            padded_agents=padded_agents,
            fast_compile=is_brief if self.fast_compile is None else self.fast_compile,
            outputs=self.outputs,
        )

    def _point(self, config: Config) -> Point:
        algorithm, problem = config.algorithm, config.problem
        parts = {name: getattr(problem, name) for name in ("rewards", "world", "presence")}
        description = {
            **algorithm.describe(),
            "problem": describe_problem(problem),
            **{f"{name}_code": code_of(x) for name, x in parts.items() if x is not None},
            "horizon": config.horizon,
            "slots": _hash(config.grid[: config.points].tolist()),
            "root_seed": self.root_seed,
            "sum_agents": self.sum_agents,
            # A user's algorithm may change its exchange without changing its description.
            "exchange": _describe_exchange(config.exchange),
            **record.to_study(config.outputs),
        }
        return Point(description, _hash(description), config)


def _configure(owner: type[Algorithm], values: Record, problem: Problem) -> Algorithm:
    """Creates an algorithm; its noise follows from the leak where that is given."""
    params = {name: values[name] for name in parameters_of(owner) if name in values}
    if "leak" not in values:
        with refuse_errors(owner):
            return owner(**params)
    view = values.get("view", VIEWS[0])
    agents, presence = problem.agents, problem.presence
    return at_leak(owner, values["leak"], agents=agents, view=view, presence=presence, **params)


def _take_files(problem: object, values: Record) -> Record:
    """Takes the problem's arguments from values if they name a file of means; else {}."""
    if "means" not in values:
        if (error := values.get("means_error", UNSET)) is not UNSET:
            refuse("means_error", error, "given with means", "name a file of means")
        return {}
    if problem is not None:
        refuse("means", values["means"], "left out with a problem", "drop one")
    names = {"means", "means_error", *parameters_of(RandomProblem)}
    return {name: values.pop(name) for name in [*values] if name in names}


def _order(axes: tuple[Axis, ...], names: tuple[str, ...]) -> tuple[Axis, ...]:
    """Returns the axes in the order of names, if there are some."""
    if not names:
        return axes
    by_name = {axis.name: axis for axis in axes}
    if sorted(names) != sorted(by_name):
        allowed = f"the names of all that is swept: {', '.join(by_name)}" if axes else "left out"
        refuse("dims", list(names), allowed, "name each once")
    return tuple(by_name[name] for name in names)


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
            names = (*parameters_of(type(item)), "leak")
            _refuse_twice(names, values, "a configured algorithm")
    if "leak" in values:
        for name in NOISE:
            defaults.pop(name, None)
            if name in values:
                refuse(name, values[name], "left out with leak, which sets it", "drop one")
    elif "view" in values:
        refuse("view", values["view"], "given with a leak", "add leak=..., or drop it")
    for name, value in values.items():
        if name not in parameters:
            options = sorted(set(parameters) - {"algorithm", "problem"})
            remedy = did_you_mean(name, options, f"choose from {', '.join(options)}", str)
            refuse(name, value, "left out: neither algorithm nor problem takes it", remedy)
        add(name, value)
    # Common defaults are written out, so that a later version with other defaults runs the same.
    assigned = {axis.name for axis in axes} | {*settings}
    for name, choices in defaults.items():
        is_plain = all(value is None or isinstance(value, (int, float, str)) for value in choices)
        if name not in assigned and is_plain and len(set(choices)) == 1:
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


def _check_until(until: Precision | None, keep: str, seeds: int) -> None:
    if until is None:
        return
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
