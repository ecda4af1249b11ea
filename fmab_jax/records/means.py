"""Means and probabilities of ratings that a user gives, checked and laid out by agent."""

from __future__ import annotations

import math

import numpy as np

from fmab_jax.errors import array_of, count, format_quantity, real, refuse
from fmab_jax.parts.rewards import Law, Ratings
from fmab_jax.parts.rewards.law_checks import check_law
from fmab_jax.sampling import normal

MAX_AGENTS = 10**7
MOST_ERROR = 1e6
"""Largest standard error of means without a range."""

# Most entries of an array of means or ratings: a gigabyte.
_MOST_ENTRIES = 1 << 27
# Probabilities with a smaller error of their sum are scaled to 1.
_SUM_ERROR = 1e-9
_ROWS = "leave agents out: a row is an agent, a column is an arm"


def check_means(
    law: Law, means: object, means_error: object, path: object
) -> tuple[np.ndarray, float]:
    """Returns the array of means, checked with the law around them, and their error."""
    array = _check_array("means", means, (1, 2), "[arm] or [agent, arm]")
    bad = ~((array >= law.low) & (array <= law.high) & np.isfinite(array))
    bounded = math.isfinite(law.sensitivity)
    allowed = f"in [{law.low:g}, {law.high:g}]" if bounded else "a finite number"
    name = "means" if path is None else f"{path}: means"
    _refuse_entry(name, array, bad, allowed, "give the mean reward of each arm")
    remedy = "give the standard error of the means, 0 if they are exact"
    error = real("means_error", means_error, 0.0, min(law.sensitivity, MOST_ERROR), remedy)
    width = normal.LARGEST * error
    ends = np.clip([array.min() - width, array.max() + width], law.low, law.high)
    check_law(law, np.append(array, ends) if width else array)
    return array, error


def check_probabilities(law: Ratings, probabilities: object) -> np.ndarray:
    """Returns a table of probabilities, each cell scaled to the sum 1."""
    shape = "[arm, level] or [agent, arm, level]"
    table = _check_array("probabilities", probabilities, (2, 3), shape)
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
    return np.where(exact[..., None], table, table / total[..., None])


def lay_out_rows(
    field: str, array: np.ndarray, axes: int, agents: int | None, *, fold: bool = True
) -> tuple[np.ndarray, int]:
    """Returns the table with an axis of agents, of length 1 if they share a row, and M.

    Equal rows are folded into one, for speed; not where each of them has an error of its own.
    """
    if agents is not None:
        agents = count("agents", agents, 1, MAX_AGENTS, "give the number of agents M")
    if array.ndim < axes:
        if agents is None:
            remedy = f"give agents too, or a row of {field} for each agent"
            refuse("agents", None, f"given with {field} of one agent", remedy)
        return array[None], agents
    if agents is not None and agents != len(array):
        if len(array) > 1:
            refuse("agents", agents, f"{len(array)}, the rows of {field}", _ROWS)
        return array, agents
    is_equal = fold and np.ptp(array, axis=0).max() == 0
    return (array[:1].copy() if is_equal else array), len(array)


def _check_array(field: str, values: object, axes: tuple[int, ...], shape: str) -> np.ndarray:
    """Returns a float64 copy of an array of real numbers with so many axes, not empty."""
    allowed, remedy = "an array of numbers", "give one row per agent, all equally long"
    array = array_of(field, values, _MOST_ENTRIES, allowed, remedy)
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
