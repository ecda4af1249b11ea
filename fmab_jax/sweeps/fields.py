"""What a study states, declared once.

A field gives an argument of `Study`, a word of the command line, a key of a study file, an entry of
a result's description, and its check. No other module lists these fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fmab_jax.errors import count, length, refuse
from fmab_jax.parameters import Choice, Flag, Kind, Parameter, Whole, parameter, parameters_of
from fmab_jax.parts.outputs import Output
from fmab_jax.records.problem import Problem
from fmab_jax.run import outputs
from fmab_jax.run.resources import MAX_SEEDS
from fmab_jax.sampling import keys
from fmab_jax.sweeps.precision import Precision
from fmab_jax.sweeps.subjects import SHARED, RandomProblem


@dataclass(frozen=True)
class Seeds(Whole):
    """How many seeds, or which."""

    takes_list = True

    def check_value(self, name: str, value: object, remedy: str) -> Any:
        """Returns the number, or the seeds if they are not 0, 1, and so on: int64 [seed]."""
        if isinstance(value, Precision):
            refuse(name, value, "a number or a list", "a precision goes to sweep, as until=")
        if not isinstance(value, (list, tuple, range)) and not getattr(value, "ndim", 0):
            return count(name, value, 1, MAX_SEEDS, remedy)
        seeds: Sequence[int] = value  # type: ignore[assignment]
        if not (number := length(seeds)):
            refuse(name, list(seeds), "not empty", "give at least one seed")
        if number > MAX_SEEDS:
            refuse(name, number, f"at most {MAX_SEEDS:,}", "run them in parts")
        # A range may have millions of seeds, and its ends decide.
        ends = (seeds[0], seeds[-1]) if isinstance(seeds, range) else seeds
        checked = [keys.checked_seed(name, seed) for seed in ends]
        if isinstance(seeds, range):
            return number if seeds == range(number) else np.array(seeds, np.int64)
        if len(set(checked)) != number:
            refuse(name, checked, "distinct", "a repeated seed repeats its run")
        return number if checked == [*range(number)] else np.array(checked, np.int64)


@dataclass(frozen=True)
class RootSeed(Whole):
    """A seed in [0, 2^32)."""

    def check_value(self, name: str, value: object, remedy: str) -> int:
        """Returns the seed."""
        return keys.checked_seed(name, value)


@dataclass(frozen=True)
class Slots(Whole):
    """How many recorded slots, or which; they are checked with the horizon."""

    takes_list = True

    def check_value(self, name: str, value: object, remedy: str) -> Any:
        """Returns the value."""
        return value

    def plain(self, value: Any) -> Any:
        """Returns a number, or a list."""
        return np.asarray(value).tolist()


@dataclass(frozen=True)
class Until(Kind[Precision]):
    """A precision, or its fields by name."""

    def check_value(self, name: str, value: object, remedy: str) -> Precision:
        """Returns the precision."""
        if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
            return Precision(**value)
        if not isinstance(value, Precision):
            allowed = "fmab_jax.until_precise(...) or None"
            refuse(name, value, allowed, "state the precision")
        return value

    def plain(self, value: Precision | None) -> object:
        """Returns its fields by name."""
        return None if value is None else value.plain()


@dataclass(frozen=True)
class Names(Kind[tuple[Any, ...]]):
    """A list of names."""

    metavar = "NAME"
    takes_list = True

    def check_value(self, name: str, value: object, remedy: str) -> tuple[Any, ...]:
        """Returns the names."""
        if isinstance(value, str) or not isinstance(value, (list, tuple)):
            refuse(name, value, "a list of names", remedy)
        if wrong := [item for item in value if not isinstance(item, str)]:
            refuse(name, wrong[0], "a name", remedy)
        return tuple(value)


@dataclass(frozen=True)
class OutputList(Names):
    """Names of outputs, or outputs."""

    metavar = "OUTPUT"

    def check_value(self, name: str, value: object, remedy: str) -> tuple[Output, ...]:
        """Returns the outputs."""
        return outputs.resolve(value)


@dataclass(frozen=True)
class FileName(Kind[str]):
    """A file."""

    metavar = "FILE"


@dataclass(frozen=True, kw_only=True)
class StudyFields:
    """What holds for a whole study, and is not swept."""

    seeds: Any = parameter(
        Seeds(),
        "How many trials of each configuration, or which: two or more numbers are the seeds. With "
        "--until, how many at first.",
        suggested=1000,
        remedy="give the number of seeds",
    )
    root_seed: int = parameter(RootSeed(high=2**32 - 1), "Selects all randomness.", default=0)
    times: ArrayLike = parameter(
        Slots(),
        "How many slots to record; two or more numbers are the slots themselves.",
        default=100,
    )
    spacing: str = parameter(
        Choice(options=("linear", "log")),
        "Space the recorded slots evenly in t, or in log t.",
        default="linear",
        remedy="use 'log' for horizons that span decades",
    )
    sum_agents: bool = parameter(
        Flag(),
        "Draw totals over agents where that is exact; else agent by agent, in the same law.",
        default=True,
        remedy="leave it out",
    )
    keep: str = parameter(
        Choice(options=("curves", "summary")),
        "Keep every seed's curve, or moments, a histogram and counts of very many seeds.",
        default="curves",
        remedy="'summary' for very many seeds",
    )
    until: Precision | None = parameter(Until(none_label="off"), "", default=None)
    outputs: Any = parameter(
        OutputList(),
        "What comes out besides, such as regret_by_agent; fmab list shows them.",
        default=(),
        default_text="the usual ones",
    )
    dims: tuple[str, ...] = parameter(
        Names(),
        "Order of the dimensions: the names of all that is swept.",
        default=(),
        default_text="as given, parameters after those of the problem",
        remedy="name every parameter that is swept",
    )


_MEANS = Parameter(
    "means",
    FileName(),
    help="Fixed means in [0, 1], .csv (a row per agent, a column per arm, below a line of names or "
    "not) or .npz; one row is shared by all agents, and --agents says how many.",
    remedy="give the path of a file",
    default_text="each seed draws its own",
)
FIELDS = parameters_of(StudyFields)
"""The fields that hold for a whole study, by name."""
UNTIL_OPTIONS = {"relative": "until", "level": "until_level"}
"""Options of fields of a precision that need another name beside other options."""


def list_tables(owners: Iterable[type]) -> dict[str, dict[str, Parameter]]:
    """Returns the keys of each table of a study file, with their parameters.

    Args:
        owners: The classes of the study's algorithms.
    """
    top = {name: SHARED[name] for name in ("algorithm", "horizon")} | {**FIELDS}
    del top["until"]  # a table
    return {
        "": top | {name: SHARED[name] for name in ("leak", "view")},
        "problem": {
            **parameters_of(RandomProblem),
            "means": _MEANS,
            "means_error": parameters_of(Problem)["means_error"],
        },
        # The first algorithm's declaration counts.
        "parameters": {
            name: p for owner in [*owners][::-1] for name, p in parameters_of(owner).items()
        },
        "until": {**parameters_of(Precision)},
    }
