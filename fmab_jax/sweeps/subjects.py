"""Algorithms and problems as parameters of a study, and axes of values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fmab_jax.algorithms.base import ALGORITHMS, Algorithm, check_names
from fmab_jax.errors import length, refuse
from fmab_jax.files import check_path
from fmab_jax.parameters import (
    LEAK,
    UNSET,
    VIEW,
    Configurable,
    Kind,
    Parameter,
    Whole,
    parameter,
    parameters_of,
)
from fmab_jax.records.problem import Problem, RandomMeans
from fmab_jax.run.outputs import AGENT_NAMES, RESULT_NAMES
from fmab_jax.sampling.shapes import Record

MAX_CONFIGS = 100_000
RANDOM_PROBLEM = "Drawn"
"""Stands for a random problem in the descriptions of studies."""


@dataclass(frozen=True)
class RandomProblem(RandomMeans, Configurable):
    """Means from U[0, 1], drawn by each seed, or by one seed for all."""

    fixed_instance: int | None = parameter(
        Whole(none_label="a new instance for each seed", low=0, high=2**32 - 1),
        "Give all seeds the means that this seed would draw.",
        default=None,
        default_text="off",
        symbol="instance of seed",
        label="instance of seed",
        remedy="give the seed whose means all seeds shall have",
    )

    def problem(self, root_seed: int) -> Problem:
        """Returns the problem under a root seed."""
        problem = Problem(**{name: getattr(self, name) for name in parameters_of(RandomMeans)})
        fixed = self.fixed_instance
        return problem if fixed is None else problem.fixed(fixed, root_seed)


@dataclass(frozen=True)
class AlgorithmOf(Kind[Algorithm | type[Algorithm]]):
    """A configured algorithm, a class, or a name."""

    def check_value(self, name: str, value: object, remedy: str) -> object:
        """Returns the configured algorithm, or the class."""
        value = ALGORITHMS.find(value) if isinstance(value, str) else value
        owner = type(value) if isinstance(value, Algorithm) else value
        if not (isinstance(owner, type) and issubclass(owner, Algorithm)):
            remedy = "or a list of classes, names and configured algorithms"
            refuse(name, value, "an algorithm such as fmab_jax.cdp_mab, or its name", remedy)
        check_names(owner)
        is_user_class = "name" in vars(owner) and not owner.__module__.startswith("fmab_jax.")
        if is_user_class and ALGORITHMS.is_taken(owner):
            allowed = "the name of no other algorithm"
            refuse(f"{owner.__name__}.name", owner.name, allowed, "rename it")
        return value

    def label(self, value: Algorithm | type[Algorithm]) -> str:
        """Returns its name."""
        return value.name or getattr(value, "__name__", type(value).__name__)

    def plain(self, value: Algorithm | type[Algorithm]) -> object:
        """Returns its name, and the parameters of a configured algorithm."""
        name = self.label(value)
        return {"algorithm": name, **value.plain()} if isinstance(value, Algorithm) else name


@dataclass(frozen=True)
class ProblemOf(Kind[Problem | None]):
    """A problem; None where a seed draws its own."""

    def check_value(self, name: str, value: object, remedy: str) -> Problem:
        """Returns the problem."""
        if not isinstance(value, Problem):
            remedy = "such as Problem(agents=50, arms=100); or leave it out and give agents="
            refuse(name, value, "a Problem, or several", remedy)
        return value

    def label(self, value: Problem | None) -> None:
        """Returns None: its place on the axis names it."""

    def plain(self, value: Problem | None) -> Record | str:
        """Returns its description."""
        return RANDOM_PROBLEM if value is None else describe_problem(value)


SHARED = {
    "algorithm": Parameter("algorithm", AlgorithmOf(), label="algorithm"),
    "problem": Parameter("problem", ProblemOf(), label="problem"),
    "horizon": Parameter(
        "horizon",
        Whole(low=1, high=10**12),
        help="T, slots that every agent plays; such as 1e6.",
        remedy="give the number of slots T",
        symbol="T",
        label="horizon T (slots)",
        suggested=100_000,
    ),
    "leak": LEAK,
    "view": VIEW,
}
"""Parameters of every study."""


def describe_problem(problem: Problem) -> Record:
    """Returns a problem's description, with digests for its arrays."""
    description = problem.describe()
    for name in ("means", "probabilities"):
        if name in description:
            plain = np.ascontiguousarray(description[name], "<f8")
            description[name] = hashlib.sha256(plain.tobytes()).hexdigest()
    return description


class Axis(NamedTuple):
    """One swept parameter."""

    name: str  # the dimension's
    labels: tuple[object, ...]  # numbers or texts, distinct
    values: tuple[object, ...]  # what they stand for
    words: dict[str, str]  # ``long_name``, ``symbol`` and ``none``: how figures name it


def axis_of(name: str, value: object, parameter: Parameter) -> Axis | None:
    """Returns the axis that a parameter spans, its values checked, or None for a single value."""
    kind, has_labels = parameter.kind, isinstance(value, Mapping)
    if isinstance(value, np.ndarray) and value.ndim != 1:
        return None
    if not isinstance(value, (Mapping, np.ndarray, list, tuple, range)):
        return None
    if not has_labels and kind.is_list_value(value):
        return None
    if not length(value):
        refuse(name, value, "not empty", "give at least one value")
    if length(value) > MAX_CONFIGS:
        remedy = f"sweep fewer values of {name}"
        refuse("configurations", length(value), f"at most {MAX_CONFIGS:,}", remedy)
    if name in RESULT_NAMES | AGENT_NAMES or name.startswith("links_"):
        refuse(name, value, "left out", "it is a name of results: rename the parameter")
    values = tuple(map(parameter.check, value.values() if isinstance(value, Mapping) else value))
    labels = [*map(str, value)] if has_labels else [kind.label(item) for item in values]
    labels = [f"{name}-{i}" if label in (None, "") else label for i, label in enumerate(labels)]
    unique_labels: set[object] = set()
    for label, item in zip(labels, values, strict=True):
        if label in unique_labels:
            remedy = "a repeated value repeats its configurations"
            if not (item is None or isinstance(item, (str, int, float, type))):
                remedy = "label different ones: {'label': value}"
            refuse(name, label, "distinct values", remedy)
        unique_labels.add(label)
    # Labels of the user need no symbol.
    symbol = "" if has_labels else parameter.symbol
    words = {
        "long_name": parameter.label or name,
        "symbol": symbol,
        "none": kind.none_label or "none",
    }
    return Axis(name, tuple(labels), values, words)


def read_problem(means: Any, **settings: Any) -> Problem:
    """Returns the problem of a file of means."""
    for name, value in settings.items():
        if name == "fixed_instance":
            refuse(name, value, "left out with means", "the file fixes them")
        if isinstance(value, (list, tuple)):
            refuse(name, value, "one value with means", "give one study for each")
    problem = Problem(check_path("means", means), **settings)
    # One agent is no federation, so it must be explicit.
    if "agents" not in settings and problem.agents == 1:
        allowed = f"given with {means}, whose one row all agents share"
        refuse("agents", UNSET, allowed, "such as agents=50")
    return problem
