"""What a run's regret took: the leak, whoever sees it, the links, the trust; read from a result."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.algorithms.base import Algorithm, algorithms_in, known, modules
from fmab_jax.errors import Refusal, refuse
from fmab_jax.run.attributes import said

NOTHING = "nothing is told"
"""The view of a run in which nobody tells anybody anything."""

LEAK_NOTE = "Leak: ε of one reward in what is sent, over the whole run, against whoever sees most"
"""What a column of leaks says."""


class Cost(NamedTuple):
    """What a run's regret took; NaN or "" where the result does not say."""

    # Epsilon of pure differential privacy of one reward in what is sent, over the whole run,
    # against whoever sees most of it; infinite for no bound. What actions tell, and who knows a
    # share of a noise, is in the ledger.
    leak: float = math.nan
    # What that one sees, such as "single messages"; `NOTHING` where nobody is told anything.
    view: str = ""
    links: float = math.nan  # mean number at T, on the meters that are priced
    trust: str = ""  # who is trusted with what, in a few words


def cost_of(data: xr.Dataset) -> Cost:
    """Returns what a result of one configuration took, curves or a summary, as far as it says."""
    leak, view = leak_of(data)
    owner = _owner(_algorithm(data) or str(data.attrs.get("algorithm", "")))
    trust = ""
    if view == NOTHING:
        trust = "nobody: nothing is told"
    elif view and owner:
        # Without noise somebody has to be trusted, whatever the algorithm is made for.
        open_ = math.isinf(leak) and owner.trusted.startswith("nobody")
        trust = f"whoever sees {view}" if open_ else owner.trusted
    return Cost(leak, view, _links(data), trust)


def leak_of(data: xr.Dataset) -> tuple[float, str]:
    """Returns the largest epsilon of what others are told, and what they see; see `Cost`.

    Of a result of one configuration, or of a row of its table of final values.
    """
    rows = _own_rows(data)
    if not rows:
        return math.nan, ""
    messages = [row for row in rows if row["what"] != "actions"]
    if not messages:
        return 0.0, NOTHING

    def leaks(row: Mapping[str, Any]) -> set[float]:
        return {math.inf if epsilon is None else float(epsilon) for epsilon, _ in row["leaks"]}

    worst = max(messages, key=lambda row: max(leaks(row)))
    least, most = min(leaks(worst)), max(leaks(worst))
    if least < most:  # of several configurations, whose epsilon their own coordinate says
        stated = _labels(data).get("epsilon_message", data.attrs.get("epsilon_message"))
        most = max(math.inf if stated == "none" else _number(stated), least)
    return most, str(worst["what"])


def _number(value: Any) -> float:
    """Returns a number, NaN where a label or text is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _own_rows(data: xr.Dataset) -> list[Mapping[str, Any]]:
    """Returns the rows of a ledger that are about one configuration; none where that is unknown.

    A sweep has one ledger: its rows name their algorithm, and the swept values that they are about.
    """
    rows = said(data, "ledger")
    labels = _labels(data)
    if len({row.get("title", "") for row in rows}) > 1:
        owner = _owner(_algorithm(data))
        rows = [row for row in rows if owner and row["title"] == (owner.title or owner.name)]
    about = [(row, _about(row.get("where", ""), labels)) for row in rows]
    if any(own is None for _, own in about):
        return []
    return [row for row, own in about if own]


def _labels(data: xr.Dataset) -> dict[str, Any]:
    """Returns the swept values of one configuration."""
    return {str(name): each.values.item() for name, each in data.coords.items() if not each.ndim}


def _algorithm(data: xr.Dataset) -> str:
    """Returns the name of the algorithm that was swept; its label stands for what was stated."""
    label = _labels(data).get("algorithm", "")
    labels = said(data, "labels").get("algorithm", [])
    stated = said(data, "study").get("algorithm")
    if label in labels and isinstance(stated, list) and len(stated) == len(labels):
        own = stated[labels.index(label)]
        return str(own.get("algorithm", "")) if isinstance(own, dict) else str(own)
    return str(label)


def _owner(name: str) -> type[Algorithm] | None:
    """Returns an algorithm by name; the package's own also where some plug-in cannot be loaded."""
    try:
        return known().get(name)
    except Refusal:
        rooms = (importlib.import_module(f"fmab_jax.algorithms.{each}") for each in modules())
        return next(
            (each for room in rooms for each in algorithms_in(room) if each.name == name), None
        )


def _about(where: str, labels: Mapping[str, Any]) -> bool | None:
    """Tells whether words such as "epsilon 0.5 or 1" are about these labels; None for unknown."""
    if not where:
        return True
    # Labels may have commas, but not before the name of another parameter.
    names = "|".join(map(re.escape, labels))
    parts = re.split(rf"(?:^|, )({names}) ", where) if names else [where]
    if parts[0] or len(parts) < 3:
        return None

    def same(label: Any, text: str) -> bool:
        # Files may have made a whole number a real one.
        return str(label) == text or _number(label) == _number(text)

    return all(
        any(same(labels[name], each) for each in values.split(" or "))
        for name, values in zip(parts[1::2], parts[2::2], strict=True)
    )


def _links(data: xr.Dataset) -> float:
    """Returns the mean number of links at T that have a price."""
    name = next((name for name in ("links", "links_mean") if name in data), "")
    if not name or not {"priced", "side"} <= {*data.coords}:
        return math.nan
    last = data[name]
    if "time" in last.dims:
        last = last.isel(time=-1)
    if not set(last.dims) <= {"seed", "meter"}:
        dims = sorted(str(dim) for dim in {*last.dims} - {"seed", "meter"})
        refuse("data", f"{name} over {', '.join(dims)}", "of one configuration", "select one")
    if "seed" in last.dims:
        seeds = int(data["seeds"]) if "seeds" in data else last.sizes["seed"]
        last = last.isel(seed=slice(seeds)).mean("seed")
    priced = data.priced.values | (data.side.values == "server")
    return float(np.asarray(last.values)[priced].sum())


def leak_text(cost: Cost) -> str:
    """Writes a leak for a cell of a table: "50", "no bound", "nothing"; "" for unknown."""
    if cost.view == NOTHING:
        return "nothing"
    if math.isnan(cost.leak):
        return ""
    return "no bound" if math.isinf(cost.leak) else f"{cost.leak:.4g}"
