"""Selects the configurations to compare, which have one question, and labels them."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
import xarray as xr

from fmab_jax.analysis import words
from fmab_jax.run.attributes import parse_study
from fmab_jax.sampling.shapes import Record

ALL_PAIRS = 5
"""Up to this number, all pairs are compared; beyond it, one parameter varies at a time."""

QUESTIONS = (
    *("horizon", "agents", "arms", "problem", "spread", "instance_gap"),
    *("fixed_instance", "rewards"),
)
"""Parameters whose values are different questions, not better or worse answers."""


def find_reference(coordinate: xr.DataArray) -> int:
    """Returns the index of the reference value: "none", else the largest, else the first.

    Args:
        coordinate: Of a swept parameter.
    """
    values = coordinate.values.tolist()
    unlimited = [i for i, value in enumerate(values) if value in ("none", math.inf)]
    if unlimited:
        return unlimited[0]
    if all(words.is_number(value) for value in values):
        return int(np.argmax(values))
    return 0


def read_question(data: xr.Dataset) -> Record:
    """Returns the question of a run from its study: values by names of `QUESTIONS`.

    A ``problem`` is "drawn" by each seed, or known by a digest of its means or probabilities, or by
    its seeds. ``means`` is a digest of the fixed means that come along.

    Args:
        data: A result of one configuration.
    """
    study = parse_study(data)
    problem = study.pop("problem", None)
    if isinstance(problem, dict):
        study |= problem
        study["problem"] = problem.get("means", problem.get("probabilities", "drawn"))
        if "means_error" in problem:
            study["problem"] += f" with standard error {problem['means_error']!r}"
    if problem == "Drawn":
        seed = study.get("fixed_instance")
        fixed = f"the instance of seed {seed} under root seed {study.get('root_seed')}"
        study["problem"] = "drawn" if seed is None else fixed
    for name in ("agents", "arms"):
        size = data.coords.get(name, xr.DataArray(data.attrs.get(name))).item()
        if words.is_number(size):  # else a label, whose value the study states
            study[name] = int(size)
    question = {name: study[name] for name in QUESTIONS if name in study}
    if "means" in data:
        means = np.ascontiguousarray(data.means.values, "<f8")
        question["means"] = hashlib.sha256(means.tobytes()).hexdigest()
    slots = data["slot"] if "slot" in data.coords else data["time"]
    question["horizon"] = int(slots.values.reshape(-1)[-1])
    return question


def list_differences(first: Mapping[str, object], second: Mapping[str, object]) -> list[str]:
    """Returns the names that both questions state with different values."""
    return [name for name in first if name in second and first[name] != second[name]]


def list_contrasts(
    data: xr.Dataset, places: Sequence[tuple[int, ...]] | None = None
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Returns the pairs of configurations to compare, by their indices.

    Args:
        data: Results with ``seeds`` over the swept parameters.
        places: The configurations that take part, in the order of the grid; by default all. If the
            reference is none of them, the first is.
    """
    dims = [str(name) for name in data.seeds.dims]
    base = tuple(find_reference(data[name]) for name in dims)
    still = [i for i, name in enumerate(dims) if name in QUESTIONS]
    if places is None:
        places = list(np.ndindex(*(data.sizes[name] for name in dims)))
    elif base not in places and places:
        base = places[0]
    if len(places) <= ALL_PAIRS:
        pairs = combinations(places, 2)
        return [(a, b) for a, b in pairs if all(a[i] == b[i] for i in still)]
    allowed = {*places}
    return [
        (place, base)
        for i, name in enumerate(dims)
        if i not in still
        for value in range(data.sizes[name])
        if value != base[i] and (place := (*base[:i], value, *base[i + 1 :])) in allowed
    ]


def write_label(data: xr.Dataset, place: Sequence[int], names: Iterable[str] | None = None) -> str:
    """Writes the swept values of a configuration, such as "ε = 0.1, p = 0.4".

    Args:
        data: Results with ``seeds`` over the swept parameters.
        place: Of the configuration.
        names: Parameters to tell; all that have several values by default.
    """
    dims = [str(name) for name in data.seeds.dims]
    names = [name for name in dims if data.sizes[name] > 1] if names is None else names
    at = dict(zip(dims, place, strict=True))
    return ", ".join(words.format_value(data[n], data[n].values.tolist()[at[n]]) for n in names)
