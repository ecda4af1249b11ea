"""What a sweep is to compute: a labelled grid of configurations, each with an identity.

A `Study` is stated once and holds no results. Its cells are addressed by the hash of everything
their numbers depend on, so that equal cells of two studies, or of two places in one grid, are the
same cell.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import inspect
import itertools
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax
import networkx as nx
import numpy as np

from fmab_jax import __version__
from fmab_jax.algorithms.families import elimination
from fmab_jax.algorithms.families.elimination import Algorithm
from fmab_jax.core import graphs, keys
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.problems import Problem
from fmab_jax.errors import Refusal, choice, count, flag, length, real, refuse, shown
from fmab_jax.run import simulation

MAX_CELLS = 100_000
ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    name: getattr(elimination, f"{name}_mab") for name in ("cdp", "ddp", "hdp", "single")
}
# The rooms that a seed's numbers depend on.
_ENGINE = ("core", "algorithms", "run", "analysis/summary.py")


class Precision(NamedTuple):
    """When a cell of a sweep has seeds enough; made by `precision`.

    Attributes:
        relative: Largest half-width of the band at the horizon, as a share of the mean.
        level: Confidence level, over all looks together.
        max_seeds: Where to stop in any case.
    """

    relative: float
    level: float
    max_seeds: int

    def looks(self, seeds: int) -> list[int]:
        """Returns the numbers of seeds at which a cell is judged: doubling, from ``seeds`` on."""
        looks = [min(seeds, self.max_seeds)]
        while looks[-1] < self.max_seeds:
            looks.append(min(2 * looks[-1], self.max_seeds))
        return looks

    def look_level(self, seeds: int) -> float:
        """Returns the confidence level of one look, Bonferroni's share of all."""
        return 1 - (1 - self.level) / len(self.looks(seeds))


def drawn(
    agents: int = 50,
    arms: int = 100,
    spread: float = 0.0,
    gap: float | None = None,
    fixed_instance: int | None = None,
    root_seed: int = 0,
) -> Problem:
    """Makes the problem of a study that names no other: means from U[0, 1], drawn by each seed.

    Args:
        agents: M.
        arms: K.
        spread: Of the means over agents, as in `Problem.heterogeneous`.
        gap: Smallest gap, or None.
        fixed_instance: Give all seeds the means that this one would draw.
        root_seed: The study's.

    Raises:
        ValueError: If a value is out of range.
    """
    if fixed_instance is not None:
        fixed_instance = keys.checked_seed("fixed_instance", fixed_instance)
    problem = Problem.heterogeneous(agents, arms, spread, gap)
    return problem if fixed_instance is None else problem.fixed(fixed_instance, root_seed)


def precision(relative: float, *, level: float = 0.95, max_seeds: int = 10**6) -> Precision:
    """States when a sweep has seeds enough: ``sweep(..., until=precision(relative=0.01))``.

    A cell starts with the sweep's ``seeds`` and doubles them until the half-width of its
    simultaneous band of regret, at the horizon, is at most ``relative`` times the mean, or
    ``max_seeds`` is reached. Looking several times and stopping at a narrow band would make bands
    cover less than they say; so every look uses the level 1 - (1 - level) / looks, with the number
    of looks that ``max_seeds`` allows, and the band at the stop covers at least ``level`` whenever
    it stops (Bonferroni).

    Args:
        relative: Half-width over mean, in (0, 1).
        level: Confidence level over all looks, in (0, 1).
        max_seeds: Most seeds of a cell.

    Raises:
        ValueError: If a value is out of range.
    """
    return Precision(
        real("relative", relative, 0, 1, "use 0.01 for 1 %", open_low=True, open_high=True),
        real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True),
        count("max_seeds", max_seeds, 2, simulation.MAX_SEEDS, "give the most seeds of a cell"),
    )


class Axis(NamedTuple):
    """One swept parameter.

    Attributes:
        name: The dimension's.
        labels: Numbers or texts, distinct.
        values: What they stand for.
    """

    name: str
    labels: tuple[Any, ...]
    values: tuple[Any, ...]


class _Known(NamedTuple):
    """What cells share, worked out once; by the identity of what it was made of.

    Attributes:
        exchanges: With an algorithm that keeps its graph, and so its identity, alive.
        problems: With their descriptions.
        graphs: Descriptions, with what is described.
        slots: Hashes of the recorded slots, by their number and the horizon.
    """

    exchanges: dict[Any, tuple[Exchange, Algorithm]]
    problems: dict[Any, tuple[Problem, dict[str, Any]]]
    graphs: dict[int, tuple[Any, Any]]
    slots: dict[tuple[int, int], str]


class Spot(NamedTuple):
    """One cell of the grid, checked.

    Attributes:
        config: JSON-able; all that its numbers depend on besides the seeds and the package.
        hash: Of ``config``, 32 hexadecimal digits.
        cell: Its arrays.
    """

    config: dict[str, Any]
    hash: str
    cell: simulation.Cell


@dataclass(frozen=True, eq=False)
class Study:
    """A grid of configurations times seeds; made by `state`.

    Attributes:
        axes: The swept parameters, in order.
        settings: Every parameter that is not swept, by name.
        seeds: Seeds 0, 1, ..., seeds - 1 of every cell; with ``until``, those of the first look.
        root_seed: Selects all randomness.
        times: Recorded slots, or how many.
        spacing: "linear" or "log".
        sum_agents: Draw totals over agents where that is exact.
        keep: "curves" or "summary".
        until: When a cell has seeds enough, or None.
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

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return tuple(len(axis.values) for axis in self.axes)

    @functools.cached_property
    def spots(self) -> tuple[Spot, ...]:
        """The cells, the last axis fastest.

        Raises:
            ValueError: If a value, or a combination of values, is refused.
        """
        known = _Known({}, {}, {}, {})
        return tuple(self._spot(chosen, known) for chosen in self._choices())

    @functools.cached_property
    def hash(self) -> str:
        """Identity of the whole study: equal for one stated in Python, in TOML or in options."""
        axes = [[axis.name, list(axis.labels)] for axis in self.axes]
        until = None if self.until is None else list(self.until)
        cells = [spot.hash for spot in self.spots]
        return _hash([axes, self.seeds, self.keep, until, cells])

    def describe(self) -> dict[str, Any]:
        """Returns a JSON-able description, field by field."""
        described = {name: _plain(name, value) for name, value in sorted(self.settings.items())}
        for axis in self.axes:
            described[axis.name] = [_plain(axis.name, value) for value in axis.values]
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
        }

    def _choices(self) -> Iterator[dict[str, Any]]:
        names = [axis.name for axis in self.axes]
        for values in itertools.product(*(axis.values for axis in self.axes)):
            yield self.settings | dict(zip(names, values, strict=True))

    def _spot(self, chosen: dict[str, Any], known: _Known) -> Spot:
        make = chosen["algorithm"]
        algorithm = _made("algorithm", make, {n: n for n in _parameters(make)}, chosen, Algorithm)
        problem = chosen["problem"]
        if not isinstance(problem, Problem):
            options = _problem_options(problem)
            own = {"root_seed": self.root_seed} if "root_seed" in options else {}
            key = (id(problem), *((n, id(chosen[o])) for n, o in options.items() if o in chosen))
            if key not in known.problems:
                made = _made("problem", problem, options, chosen, Problem, **own)
                known.problems[key] = made, _described_problem(made)
            problem, described_problem = known.problems[key]
        else:
            if id(problem) not in known.problems:
                known.problems[id(problem)] = problem, _described_problem(problem)
            described_problem = known.problems[id(problem)][1]
        # Hop distances are worked out, and a graph described, once for each, not for each epsilon.
        key = (algorithm.name, problem.agents, algorithm.participation, algorithm.weights)
        key = (*key, id(algorithm.graph), id(algorithm.components))
        if type(algorithm) is not Algorithm:
            key = (id(algorithm),)  # it may exchange as it likes
        cell = simulation.resolve(
            algorithm,
            problem,
            chosen["horizon"],
            times=self.times,
            spacing=self.spacing,
            sum_agents=self.sum_agents,
            exchange=known.exchanges[key][0] if key in known.exchanges else None,
        )
        # What has an id must live on, or something else could get that id.
        known.exchanges.setdefault(key, (cell.exchange, algorithm))
        # All that recorded slots depend on, besides what cells share, is the horizon.
        grid = len(cell.grid), int(cell.rule.horizon)
        if grid not in known.slots:
            known.slots[grid] = _hash(cell.grid.tolist())
        config = {
            **_described_algorithm(algorithm, known),
            "problem": described_problem,
            "horizon": int(cell.rule.horizon),
            "slots": known.slots[grid],
            "points": cell.points,
            "root_seed": self.root_seed,
            "sum_agents": self.sum_agents,
            # An algorithm of one's own may exchange otherwise than its description says.
            "exchange": _described_exchange(cell.exchange),
        }
        return Spot(config, _hash(config), cell)


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
    **parameters: Any,
) -> Study:
    """Checks a study and lays out its grid; arguments as in `fmab_jax.sweep`.

    Raises:
        ValueError: If a parameter is unknown or a value out of range.
    """
    choice("keep", keep, ("curves", "summary"), "'summary' for very many seeds")
    seeds = count("seeds", seeds, 1, simulation.MAX_SEEDS, "give the number of seeds of a cell")
    if until is not None:
        if not isinstance(until, Precision):
            refuse("until", until, "fmab_jax.precision(...) or None", "state the precision")
        if keep != "summary":
            refuse(
                "until", until.relative, "given with keep='summary'", "cells then differ in seeds"
            )
        if seeds < 2:
            refuse("seeds", seeds, "at least 2 with until", "a band needs 2 seeds")
        if seeds > until.max_seeds:
            remedy = "start with fewer, or allow more"
            refuse("seeds", seeds, f"at most {until.max_seeds:,}, the max_seeds of until", remedy)
    flag("sum_agents", sum_agents)
    problem, parameters = _spelt_out(problem, parameters)
    given = {
        "algorithm": _algorithms(algorithm),
        "problem": problem,
        **parameters,
        "horizon": horizon,
    }
    axes, settings = [], {}
    for name, value in given.items():
        swept = _axis(name, value)
        if swept is None:
            settings[name] = value
        else:
            axes.append(swept)
    _refuse_unknown(axes, settings)
    _add_defaults(axes, settings)
    cells = math.prod(len(axis.values) for axis in axes)
    if cells > MAX_CELLS:
        refuse("cells", cells, f"at most {MAX_CELLS:,}", "sweep fewer values")
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
    )


def provenance(devices: Sequence[jax.Device]) -> dict[str, str]:
    """Returns what bits depend on besides the configuration: versions, source, kind of device."""
    versions = simulation.versions()
    return {
        "fmab_jax": f"{__version__} ({_source_digest()})",
        **{name: versions[name] for name in ("jax", "jaxlib", "numpy")},
        "platform": devices[0].platform,
    }


@functools.cache
def _source_digest() -> str:
    """Returns a hash of the engine's source: a changed algorithm is another package."""
    whole = hashlib.sha256()
    package = Path(str(resources.files("fmab_jax")))
    for room in _ENGINE:
        for path in sorted((package / room).rglob("*.py")) or [package / room]:
            whole.update(path.read_bytes())
    return whole.hexdigest()[:12]


def _algorithms(given: Any) -> Any:
    """Names stand for makers; a list of either is an axis."""

    def one(item: Any) -> Any:
        if isinstance(item, str):
            if item not in ALGORITHMS:
                near = difflib.get_close_matches(item[:40], ALGORITHMS, n=1)
                remedy = f"did you mean {near[0]!r}?" if near else "choose one of them"
                refuse("algorithm", item, " or ".join(map(repr, ALGORITHMS)), remedy)
            return ALGORITHMS[item]
        if not callable(item):
            remedy = "pass the function itself, not what it returns"
            refuse("algorithm", item, "a maker such as fmab_jax.cdp_mab, or its name", remedy)
        return item

    if isinstance(given, Mapping):
        return {label: one(item) for label, item in given.items()}
    if isinstance(given, (list, tuple)):
        return [one(item) for item in given]
    return one(given)


def _algorithm_name(make: Callable[..., Any]) -> str:
    for name, known in ALGORITHMS.items():
        if make is known:
            return name
    if isinstance(make, functools.partial):
        return _algorithm_name(make.func)
    # Not its repr, which holds an address and so changes from run to run.
    return str(getattr(make, "__name__", type(make).__name__))


def _parameters(make: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Returns what can be given to a maker by name.

    Raises:
        ValueError: If it does not say.
    """
    try:
        given = inspect.signature(make).parameters
    except (TypeError, ValueError):
        refuse("algorithm", make, "a maker with named parameters", "wrap it in a function")
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name: each for name, each in given.items() if each.kind in named}


def _made(
    kind: str,
    make: Callable[..., Any],
    options: Mapping[str, str],
    chosen: Mapping[str, Any],
    wanted: type,
    **own: Any,
) -> Any:
    """Calls a maker of algorithms or problems with what was chosen for it.

    Args:
        kind: "algorithm" or "problem".
        make: The maker.
        options: The keyword of `sweep` for each of its parameters.
        chosen: Values by keyword.
        wanted: What it must return.
        own: Values that are not chosen.
    """
    values = {n: chosen[option] for n, option in options.items() if option in chosen} | own
    for name, parameter in _parameters(make).items():
        if parameter.default is parameter.empty and name not in values:
            remedy = f"the {kind} {_algorithm_name(make)} needs it"
            refuse(options[name], None, "given", remedy)
    try:
        made = make(**values)
    except Refusal as error:
        # Under the keyword that it was given as.
        raise error.renamed(options.get(error.field, error.field)) from None
    if not isinstance(made, wanted):
        refuse(kind, made, f"a maker that returns an {wanted.__name__}", "return what it makes")
    return made


def _described_algorithm(algorithm: Algorithm, known: _Known) -> dict[str, Any]:
    described = replace(algorithm, graph=None, components=None).describe()
    for name in ("graph", "components"):
        if name in described:
            spec = getattr(algorithm, name)
            if id(spec) not in known.graphs:
                known.graphs[id(spec)] = graphs.describe(spec), spec
            described[name] = known.graphs[id(spec)][0]
    return described


def _problem_options(make: Callable[..., Any]) -> dict[str, str]:
    """Returns the keyword of `sweep` for each parameter of a maker of problems.

    An algorithm's parameter of the same name goes first: the problem's is then problem_NAME.
    """
    return {n: f"problem_{n}" if n in _taken() else n for n in _parameters(make)}


@functools.cache
def _taken() -> frozenset[str]:
    return frozenset(name for known in ALGORITHMS.values() for name in _parameters(known))


def _spelt_out(problem: Any, parameters: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Returns a problem whose means are drawn as `drawn` and its parameters.

    However a problem is stated, by a `Problem`, a maker or options, it is then the same study.
    """
    if problem is None:
        return drawn, parameters
    if isinstance(problem, Problem) and problem.means is None:
        own: dict[str, Any] = {"agents": problem.agents, "arms": problem.arms}
        own |= {"spread": problem.spread, "problem_gap": problem.gap}
        for name in own:
            if name in parameters:
                remedy = "the problem has its own; or pass a maker such as Problem.uniform"
                refuse(name, parameters[name], "left out with a Problem", remedy)
        return drawn, {**own, **parameters}
    if {"agents", "arms"} <= set(parameters):
        if problem == Problem.heterogeneous:
            return drawn, parameters if "spread" in parameters else {**parameters, "spread": 1.0}
        if problem == Problem.uniform and not {"spread", "problem_gap"} & set(parameters):
            return drawn, parameters
    return problem, parameters


def _refuse_unknown(axes: Sequence[Axis], settings: Mapping[str, Any]) -> None:
    values = {axis.name: axis.values for axis in axes} | {n: (v,) for n, v in settings.items()}
    for made in values["problem"]:
        if not isinstance(made, Problem) and not callable(made):
            remedy = "such as fmab_jax.Problem.uniform(50, 100), or the maker itself"
            refuse("problem", made, "a Problem or a function that makes one", remedy)
    known = {"algorithm", "problem", "horizon"}
    for make in values["algorithm"]:
        known |= set(_parameters(make))
    for made in values["problem"]:
        if not isinstance(made, Problem):
            known |= set(_problem_options(made).values())
    for name in values:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            listed = ", ".join(sorted(known - {"algorithm", "problem"}))
            remedy = f"did you mean {near[0]}?" if near else f"choose from {listed}"
            refuse(
                name,
                values[name][0],
                "left out: neither algorithm nor problem takes it",
                remedy,
            )


def _add_defaults(axes: Sequence[Axis], settings: dict[str, Any]) -> None:
    """Writes out what was left to default, so that a study says all of it."""
    chosen = {axis.name: axis.values for axis in axes} | {n: (v,) for n, v in settings.items()}
    defaults: dict[str, list[Any]] = {}
    for make in chosen["algorithm"]:
        for name, parameter in _parameters(make).items():
            defaults.setdefault(name, []).append(parameter.default)
    for make in chosen["problem"]:
        if not isinstance(make, Problem):
            parameters, options = _parameters(make), _problem_options(make)
            for name in parameters.keys() - {"root_seed"}:
                defaults.setdefault(options[name], []).append(parameters[name].default)
    for option, values in defaults.items():
        # Where makers differ, each keeps its own.
        plain = all(value is None or isinstance(value, (int, float, str)) for value in values)
        if plain and option not in chosen and len(set(values)) == 1:
            settings[option] = values[0]


def _axis(name: str, value: Any) -> Axis | None:
    """Returns the axis that a parameter spans, or None for a single value."""
    if name == "components" and not isinstance(value, Mapping):
        # One specification may itself be a list: of sizes, (size, graph) pairs or graphs.
        if not isinstance(value, list) or not all(isinstance(v, (str, list)) for v in value):
            return None
    swept = isinstance(value, (Mapping, list, tuple, range))
    if not swept and not (isinstance(value, np.ndarray) and value.ndim == 1):
        return None
    if not length(value):
        refuse(name, value, "not empty", "give at least one value")
    if length(value) > MAX_CELLS:
        refuse("cells", length(value), f"at most {MAX_CELLS:,}", f"sweep fewer values of {name}")
    if isinstance(value, Mapping):
        values, labels = list(value.values()), [str(label) for label in value]
    else:
        values = [_python_number(item) for item in value]
        labels = [_label(name, item, place) for place, item in enumerate(values)]
    seen = set()
    for label, item in zip(labels, values, strict=True):
        if label in seen:
            remedy = "a repeated value repeats its cells"
            if not (item is None or isinstance(item, (str, int, float))):
                remedy = "label different ones: {'label': value}"
            refuse(name, label, "distinct values", remedy)
        seen.add(label)
    if name in ("time", "seed"):
        refuse(name, value, "left out", "time and seed are dimensions of every result")
    return Axis(name, tuple(labels), tuple(values))


def _python_number(value: Any) -> Any:
    """Returns a NumPy number as Python's; a float32 means the decimal number it prints."""
    if isinstance(value, np.floating):
        return float(str(value))
    return value.item() if isinstance(value, np.generic) else value


def _label(name: str, value: Any, place: int) -> Any:
    """Returns the number or the short text that stands for a value."""
    # An infinite epsilon is no noise, as None is; nothing else may be infinite.
    if value is None or (isinstance(value, float) and value == math.inf):
        return "none"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, float) and value.is_integer() else value
    if isinstance(value, nx.Graph):
        return str(value.name or f"graph-{place}")
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Problem):
        return f"problem-{place}"
    if callable(value):
        return _algorithm_name(value)
    if isinstance(value, (list, tuple)) and len(value) <= MAX_CELLS:
        parts = [p if isinstance(p, (tuple, list)) else [p] for p in value]
        if any(isinstance(item, (list, tuple, dict)) for part in parts for item in part):
            return shown(value)
        return "+".join(":".join(map(str, part)) for part in parts)
    refuse(name, value, "numbers, texts, None, graphs or problems", "label it: {'label': value}")


def _plain(name: str, value: Any) -> Any:
    """Returns a JSON-able stand-in that differs where values differ."""
    if isinstance(value, Problem):
        return _described_problem(value)
    value = _python_number(value)
    if isinstance(value, float) and math.isinf(value):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str) and name not in ("graph", "components"):
        return value
    if isinstance(value, (str, os.PathLike, nx.Graph, Sequence)):
        return graphs.describe(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if callable(value):
        return _algorithm_name(value)
    return str(value)


def _described_problem(problem: Problem) -> dict[str, Any]:
    described = problem.describe()
    if problem.means is not None:
        means = np.ascontiguousarray(problem.means, "<f8")
        described["means"] = hashlib.sha256(means.tobytes()).hexdigest()
    return described


def _described_exchange(exchange: Exchange) -> list[Any]:
    weights = hashlib.sha256(np.ascontiguousarray(exchange.weights, "<f8").tobytes()).hexdigest()
    links = (exchange.server_links, exchange.peer_links_bound, exchange.peer_links_used)
    return [exchange.kind, exchange.reporting, exchange.wait, *links, weights]


def _hash(described: Any) -> str:
    text = json.dumps(described, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
