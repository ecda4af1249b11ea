"""What a sweep is to compute: a labelled grid of configurations, each with an identity.

A `Study` is stated once and holds no results. Its points are addressed by the hash of everything
their numbers depend on, so that equal points of two studies, or of two places in one grid, are the
same config.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources as package_files
from typing import Any, NamedTuple

import jax
import numpy as np

from fmab_jax import __version__
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.core import keys
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.outputs import Output, Reduce
from fmab_jax.core.plugins import source_digest
from fmab_jax.core.problems import Problem
from fmab_jax.errors import choice, count, did_you_mean, flag, length, refuse
from fmab_jax.parameters import UNSET, Kind, Parameter, Whole, parameters_of
from fmab_jax.run import cache, resources
from fmab_jax.run import outputs as record
from fmab_jax.run.configs import FEW_TRIALS, Config, bind, room_for
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sweeps import makers
from fmab_jax.sweeps.axes import MAX_CONFIGS, Axis, axis_of
from fmab_jax.sweeps.makers import NEEDED, Drawn, Maker
from fmab_jax.sweeps.precision import Precision

# The rooms that a seed's numbers depend on.
_ENGINE = (*cache.ENGINE, "analysis/summary.py")
# Agents that are padded to at most so many times their number share a program.
_ROOMY = 16


class Point(NamedTuple):
    """One configuration of the grid, checked."""

    described: dict[str, Any]  # all that its numbers depend on besides the seeds and the package
    hash: str  # of ``described``, 32 hexadecimal digits
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
    """A grid of configurations times seeds; made by `state`, from arguments as in `sweep`."""

    axes: tuple[Axis, ...]  # the swept parameters, in order
    settings: dict[str, Any]  # every parameter that is not swept, by name
    seeds: int  # how many of every config; with ``until``, those of the first look
    root_seed: int
    times: Any
    spacing: str
    sum_agents: bool
    keep: str
    until: Precision | None
    outputs: tuple[Output, ...] = ()
    listed: range | np.ndarray | None = None  # which seeds; None for 0, 1, ..., seeds - 1

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(len(axis.values) for axis in self.axes)

    @functools.cached_property
    def points(self) -> tuple[Point, ...]:
        """The configurations, the last axis fastest; refuses what does not go together."""
        problems: dict[tuple[Any, ...], Problem] = {}
        made = []
        names = [axis.name for axis in self.axes]
        for places in itertools.product(*map(range, self.shape)):
            place = dict(zip(names, places, strict=True))
            swept = {axis.name: axis.values[place[axis.name]] for axis in self.axes}
            chosen = self.settings | swept
            algorithm = chosen["algorithm"].made(chosen, place)
            maker = chosen["problem"]
            # A value that cannot be hashed is known by its place on its axis.
            key = tuple((name, place.get(name, 0)) for name in ("problem", *maker.options))
            if key not in problems:
                problems[key] = maker.made(chosen | {"root_seed": self.root_seed}, place)
            made.append((algorithm, problems[key], chosen["horizon"]))
        sizes = {problem.agents for _, problem, _ in made}
        # Numbers of agents that are not far apart share one program.
        near = max(sizes) <= _ROOMY * min(sizes)
        # One number alone shares with none, and needs no room to spare.
        rooms = {n: room_for(max(sizes) if near else n) for n in sizes if len(sizes) > 1}
        slots: dict[tuple[int, int], str] = {}
        return tuple(self._point(*each, rooms.get(each[1].agents), slots) for each in made)

    @functools.cached_property
    def hash(self) -> str:
        """Identity of the whole study: equal for one stated in Python, in TOML or in options."""
        axes = [[axis.name, list(axis.labels)] for axis in self.axes]
        until = None if self.until is None else list(self.until)
        seeds = self.seeds if self.listed is None else self._seeds
        return _hash([axes, seeds, self.keep, until, [point.hash for point in self.points]])

    @functools.cached_property
    def _seeds(self) -> str:
        """A digest of the seeds that are listed."""
        return hashlib.sha256(np.asarray(self.listed, "<i8").tobytes()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able description, field by field."""
        described = {
            name: self._plain(name, value) for name, value in sorted(self.settings.items())
        }
        for axis in self.axes:
            described[axis.name] = [
                self._plain(axis.name, value, place) for place, value in enumerate(axis.values)
            ]
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
            **({} if self.listed is None else {"listed": self._seeds}),
            **record.stated(self.outputs),
        }

    def _plain(self, name: str, value: Any, place: int = 0) -> Any:
        """Returns a JSON-able stand-in that differs where values differ."""
        if isinstance(value, Maker):
            return value.name or _described_problem(value.fixed)
        if callable(value):
            return makers.name_of(value)
        if (known := self._known.get(name)) is not None:
            owners = (each for each in self._makers if each.described and name in each.parameters)
            owner = next(owners, None)
            own = known.check(value) if owner is None else owner.value(name, value, place)
            return known.kind.plain(own)
        return np.asarray(value).tolist() if isinstance(value, (np.ndarray, np.generic)) else value

    @functools.cached_property
    def _makers(self) -> tuple[Maker, ...]:
        chosen = {axis.name: axis.values for axis in self.axes}
        given = chosen | {name: (value,) for name, value in self.settings.items()}
        return (*given["algorithm"], *given["problem"])

    @functools.cached_property
    def _known(self) -> dict[str, Parameter]:
        return _known_parameters(self._makers)

    def _point(
        self,
        algorithm: Algorithm,
        problem: Problem,
        horizon: Any,
        room: int | None,
        slots: dict[tuple[int, int], str],
    ) -> Point:
        config = bind(
            algorithm,
            problem,
            horizon,
            times=self.times,
            spacing=self.spacing,
            sum_agents=self.sum_agents,
            room=room,
            quick=self.until is None and self.seeds * math.prod(self.shape) <= FEW_TRIALS,
            outputs=self.outputs,
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
            **record.stated(self.outputs),
        }
        return Point(described, _hash(described), config)


def state(
    algorithm: Any,
    problem: Any = None,
    *,
    horizon: Any,
    seeds: Any,
    root_seed: int = 0,
    times: Any = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    keep: str = "curves",
    until: Precision | None = None,
    outputs: Any = (),
    **parameters: Any,
) -> Study:
    """Checks a study and lays out its grid; arguments as in `fmab_jax.sweep`."""
    choice("keep", keep, ("curves", "summary"), "'summary' for very many seeds")
    number, listed = _seeds_of(seeds)
    if listed is not None and keep != "curves":
        allowed = "a number with keep='summary'"
        refuse("seeds", seeds, allowed, "a list is for curves")
    if until is not None:
        _check_until(until, keep, number)
    flag("sum_agents", sum_agents)
    algorithm, parameters = makers.algorithms(algorithm, parameters)
    problem, parameters = makers.problems(problem, parameters)
    made_by = [*_each(algorithm), *_each(problem)]
    known = _known_parameters(made_by)
    given = {"algorithm": algorithm, "problem": problem, **parameters, "horizon": horizon}
    axes, settings = [], {}
    for name, value in given.items():
        if name not in known:
            _refuse_unknown(name, value, known)
        if name in ("axes", "listed"):
            refuse(name, value, "left out", f"a study has {name} of its own: rename the parameter")
        # What an algorithm was made with is one value, whatever it is.
        made = isinstance(algorithm, Maker) and algorithm.fixed and name in algorithm.options
        swept = None if made else axis_of(name, value, known[name])
        if swept is None:
            settings[name] = value
        else:
            axes.append(swept)
    _add_defaults(made_by, {axis.name for axis in axes}, settings)
    configs = math.prod(len(axis.values) for axis in axes)
    if configs > MAX_CONFIGS:
        refuse("configurations", configs, f"at most {MAX_CONFIGS:,}", "sweep fewer values")
    further = record.chosen(outputs)
    for output in further:
        if isinstance(output, Reduce) and keep != "summary":
            allowed = "left out, or given with keep='summary'"
            refuse("outputs", output.name, allowed, "it is made of many seeds")
        own = {output.name, *record.derive_names([output.name])}
        if not own.isdisjoint(axis.name for axis in axes):
            refuse("Output.name", output.name, "no parameter that is swept", "rename it")
    return Study(
        axes=tuple(axes),
        settings=settings,
        seeds=number,
        root_seed=keys.checked_seed("root_seed", root_seed),
        times=times,
        spacing=spacing,
        sum_agents=sum_agents,
        keep=keep,
        until=until,
        outputs=further,
        listed=listed,
    )


def _seeds_of(given: Any) -> tuple[int, range | np.ndarray | None]:
    """Returns how many seeds, and which where they are not 0, 1, and so on."""
    if isinstance(given, Precision):
        refuse("seeds", given, "a number or a list", "a precision goes to sweep, as until=")
    # Asked without np.ndim, which would copy a range, and raises for rows of unequal lengths.
    if not isinstance(given, (list, tuple, range)) and not getattr(given, "ndim", 0):
        return count("seeds", given, 1, MAX_SEEDS, "give the number of seeds"), None
    number = length(given)
    if not number:
        refuse("seeds", list(given), "not empty", "give at least one seed")
    if number > MAX_SEEDS:
        refuse("seeds", number, f"at most {MAX_SEEDS:,}", "run them in parts")
    if isinstance(given, range) and given == range(number):
        return number, None
    if isinstance(given, range):
        keys.checked_seed("seeds", given[0])
        keys.checked_seed("seeds", given[-1])
        return number, given
    checked = [keys.checked_seed("seeds", seed) for seed in given]
    if len(set(checked)) != number:
        refuse("seeds", checked, "distinct", "a repeated seed repeats its run")
    return number, None if checked == [*range(number)] else np.array(checked, np.int64)


def _check_until(until: Any, keep: str, seeds: int) -> None:
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


def _each(given: Any) -> list[Any]:
    if isinstance(given, Mapping):
        return list(given.values())
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _known_parameters(made_by: Sequence[Maker]) -> dict[str, Parameter]:
    """Returns every parameter that some algorithm or problem of a study takes."""
    known = dict(_SHARED)
    for maker in made_by:
        for name, each in maker.parameters.items():
            known.setdefault(name, each)
    # A function of one's own says nothing of its parameters; algorithms and problems do.
    drawn = parameters_of(Drawn)
    return {
        name: drawn[name] if type(each.kind) is Kind and name in drawn else each
        for name, each in known.items()
    }


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
    return cache.source_digest(*_ENGINE)[:12]


def _refuse_unknown(name: str, value: Any, known: Mapping[str, Parameter]) -> None:
    others = sorted(set(known) - {"algorithm", "problem"})
    remedy = did_you_mean(name, others, f"choose from {', '.join(others)}", str)
    first = _each(value)[0] if _each(value) else value
    refuse(name, first, "left out: neither algorithm nor problem takes it", remedy)


def _add_defaults(made_by: Sequence[Maker], swept: set[str], settings: dict[str, Any]) -> None:
    """Writes out what was left to default, so that a study says all of it."""
    defaults: dict[str, list[Any]] = {}
    for maker in made_by:
        for name, default in maker.options.items():
            if name != "root_seed" and default is not UNSET and default is not NEEDED:
                defaults.setdefault(name, []).append(default)
    for option, values in defaults.items():
        # Where makers differ, each keeps its own.
        plain = all(value is None or isinstance(value, (int, float, str)) for value in values)
        if plain and option not in swept | set(settings) and len(set(values)) == 1:
            settings[option] = values[0]


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
