"""What a sentence about regret has to say besides: what was told, to whom, and what was sent.

A number of regret means little without what it took. `cost_of` reads that from a result; `costs`
writes it of two runs that are compared.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.analysis import words

NOTHING = "nothing is told"
"""The view of a run in which nobody tells anybody anything."""

LEAK_NOTE = "Leak: ε of one reward over the whole run, against whoever is told most"
"""What a column of leaks says."""


class Cost(NamedTuple):
    """What a run's regret took.

    Attributes:
        leak: Epsilon of pure differential privacy of one reward, over the whole run, against
            whoever of those that are told something learns most; infinite for no bound, NaN where
            the result does not say.
        view: What that one sees, such as "single messages"; `NOTHING` where nobody is told
            anything, "" where the result does not say.
        links: Mean number of links at T, on the meters that are priced; NaN where the result does
            not say.
    """

    leak: float = math.nan
    view: str = ""
    links: float = math.nan


def cost_of(data: xr.Dataset) -> Cost:
    """Returns what a result of one configuration took, as far as it says so.

    Args:
        data: From `simulate`, or one configuration of a sweep; a summary as well.
    """
    return Cost(*_leak(data), _links(data))


def _leak(data: xr.Dataset) -> tuple[float, str]:
    """Returns the largest epsilon of what others are told, and what they see."""
    rows = json.loads(data.attrs.get("ledger") or "[]")
    known: Any = data.attrs.get("epsilon_message", math.nan)
    if "epsilon_message" in data.coords and not data.coords["epsilon_message"].ndim:
        known = data.coords["epsilon_message"].values
    if not rows or math.isnan(float(known)):
        return math.nan, ""
    told = [row for row in rows if row["what"] != "actions"]
    if not told:
        return 0.0, NOTHING

    def most(row: Mapping[str, Any]) -> float:
        return max(math.inf if epsilon is None else epsilon for epsilon, _ in row["leaks"])

    # A sweep has one ledger, with the epsilons of all its configurations: who sees what is alike.
    return float(known), str(max(told, key=most)["what"])


def _links(data: xr.Dataset) -> float:
    """Returns the mean number of links at T that have a price."""
    name = next((name for name in ("links", "links_mean") if name in data), "")
    if not name or "priced" not in data:
        return math.nan
    last = data[name].isel(time=-1)
    if "seed" in last.dims:
        seeds = int(data["seeds"]) if "seeds" in data else last.sizes["seed"]
        last = last.isel(seed=slice(seeds)).mean("seed")
    priced = data.priced.values | (data.side.values == "server")
    return float(np.asarray(last.values)[priced].sum())


def costs(first: Cost, second: Cost) -> str:
    """Writes what two runs took, such as "leak ε = 6 and 30, links 38.1 and 190".

    What is not known of both is left out.
    """
    parts = []
    if first.view and second.view:
        leaks = [_leak_said(each) for each in (first, second)]
        if first.view != second.view:
            seen = (first.view, second.view)
            leaks = [
                text if view == NOTHING else f"{text} ({view})"
                for text, view in zip(leaks, seen, strict=True)
            ]
        parts.append(f"leak {_both(leaks)}")
    if math.isfinite(first.links) and math.isfinite(second.links):
        parts.append(f"links {_both([words.short(each.links) for each in (first, second)])}")
    return ", ".join(parts)


def leak_text(cost: Cost) -> str:
    """Writes a leak for a cell of a table: "50", "no bound", "nothing"; "" for unknown."""
    if cost.view == NOTHING:
        return "nothing"
    if math.isnan(cost.leak):
        return ""
    return "no bound" if math.isinf(cost.leak) else f"{cost.leak:.4g}"


def _leak_said(cost: Cost) -> str:
    bounded = cost.view != NOTHING and math.isfinite(cost.leak)
    return f"ε = {leak_text(cost)}" if bounded else leak_text(cost)


def _both(texts: Sequence[str]) -> str:
    one, other = texts
    return f"{one} each" if one == other else f"{one} and {other.removeprefix('ε = ')}"
