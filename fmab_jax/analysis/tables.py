"""What every configuration of a sweep ends with, as a table with intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from fmab_jax.analysis import summary
from fmab_jax.analysis.bands import lost_interval, moments_band, student_quantile
from fmab_jax.analysis.costs import exposure_of
from fmab_jax.analysis.prices import communication_cost, prices
from fmab_jax.errors import Shown, price, real, refuse
from fmab_jax.run.attributes import fault, said

_ENDS = ("_lower", "_upper")
_EVENTS = ("best_arm_lost", "worse_arm_played")
"""What can go wrong in a seed; counted, with the interval of its probability."""


def look_band(
    seeds: int, mean: np.ndarray, covariance: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and half-width of the band of one look of a sweep with a precision."""
    # A look's level lies far out: the quantile needs draws beyond it.
    resamples = min(1_000_000, max(2000, math.ceil(200 / (1 - level))))
    return moments_band(seeds, mean, covariance, level, resamples=resamples)


def final_table(
    data: xr.Dataset,
    *,
    level: float | None = None,
    server_price: float = 1.0,
    peer_price: float = 1.0,
) -> xr.Dataset:
    """Returns what every configuration ends with: regret, cost and rounds at T, with intervals.

    Args:
        data: From `sweep`, `open_sweep` or `simulate`, which has a single configuration.
        level: Confidence level of the intervals, 0.95 by default. For a sweep that ran until it was
            precise, the level over all looks together, by default the one it ran with: the interval
            of regret is then that of the simultaneous band, at the level of one look.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link on the meter that is priced.

    Returns:
        A Dataset over the swept parameters: ``regret``, ``cost`` and ``rounds_made``, means over
        the seeds, each with ``_lower`` and ``_upper`` (Student t); ``links`` by meter;
        ``leak_epsilon``, the epsilon of one reward in what is sent, over the whole run, against
        whoever sees most of it (0 where nothing is sent, NaN where the result does not say);
        ``seeds``, ``undecided`` (seeds still exploring at T), ``best_arm_lost`` and
        ``worse_arm_played``, each with the Clopper-Pearson ``_lower`` and ``_upper``. Outputs that
        were asked for and are a number of each seed are means with intervals, like regret.
        Configurations with fewer than 2 seeds, of an unfinished sweep, have NaN.

    Raises:
        ValueError: If ``data`` is no such result, or another argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.sweep(fmab.cdp_mab, problem, epsilon=[0.1, 1], horizon=10**4, seeds=20)
        >>> table = fmab.final_table(data)
        >>> table.regret.dims, bool((table.regret_lower < table.regret).all())
        (('epsilon',), True)
    """
    if not isinstance(data, xr.Dataset) or (
        "seeds" not in data
        or ("rounds_made" not in data and "rounds_made_mean" not in data)
        or ("regret" in data and "seed" not in data.sizes)
    ):
        allowed = "the Dataset of simulate or of a sweep"
        refuse("data", type(data).__name__, allowed, "pass it unchanged")
    data = held(data)
    last, horizon = int(data.time.values.reshape(-1)[-1]), data.attrs.get("horizon")
    if "slot" not in data.coords and horizon not in (None, last):
        remedy = "leave out no slots: what is kept of a seed is that at the horizon"
        refuse("data.time", last, f"up to {horizon}, the horizon", remedy)
    both = [price("server_price", server_price), price("peer_price", peer_price)]
    looks = data.attrs.get("looks", 0)
    level = data.attrs.get("until_level", 0.95) if level is None else level
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    each = 1 - (1 - level) / looks if looks else level
    dims = list(data.seeds.dims)
    asked = asked_numbers(data)
    means = ("regret", "cost", "rounds_made", *asked)
    names = [f"{name}{end}" for name in means for end in ("", *_ENDS)]
    shape = data.seeds.shape
    table = {name: np.full(shape, np.nan) for name in [*names, "leak_epsilon"]}
    links = np.full((*shape, data.sizes["meter"]), np.nan)
    used = np.zeros(shape, np.int64)
    events = {name: np.zeros(shape, np.int64) for name in (*_EVENTS, "undecided")}
    bounds = {f"{name}{end}": np.full(shape, np.nan) for name in _EVENTS for end in _ENDS}
    final = _final_curves if "regret" in data else _final_summary
    for place in np.ndindex(shape):
        cell = data.isel(dict(zip(dims, place, strict=True)))
        used[place] = seeds = int(cell.seeds)
        table["leak_epsilon"][place] = exposure_of(cell).leak
        if seeds < 2:
            continue
        found, counts, links[place] = final(cell, seeds, both, each, bool(looks))
        for name in asked:
            found |= _interval(name, seeds, *_moments(cell, name, seeds), each)
        for name, value in found.items():
            table[name][place] = value
        for name, number in counts.items():
            events[name][place] = number
        for name in _EVENTS:
            interval = lost_interval(counts[name], seeds, level)
            for end, bound in zip(_ENDS, interval, strict=True):
                bounds[f"{name}{end}"][place] = bound
    # The table keeps coordinates that were selected, and those that follow from swept values.
    over = {*dims}
    axes = {
        str(name): values.variable
        for name, values in data.coords.items()
        if set(values.dims) <= over and name not in ("seed", "time", "slot")
    }
    axes |= {name: data.coords[name] for name in ("meter", "side", "priced", "counts")}
    attrs = {**data.attrs, "level": level, "server_price": both[0], "peer_price": both[1]}
    attrs["description"] = f"{100 * level:.6g} % confidence interval of the mean (Student t)"
    if looks:
        told = f"({100 * each:.6g} % a look, {looks} possible looks)"
        attrs["description"] = f"{100 * level:.6g} % simultaneous band at T {told}"
    return xr.Dataset(
        {
            **{name: (dims, values) for name, values in table.items()},
            "links": ([*dims, "meter"], links),
            "seeds": (dims, used),
            **{name: (dims, values) for name, values in events.items()},
            **{name: (dims, values) for name, values in bounds.items()},
        },
        axes,
        attrs,
    )


def held(data: xr.Dataset, field: str = "data") -> xr.Dataset:
    """Returns results whose ``seeds`` counts those that are there, not those that were run.

    Some may have been selected, runs may have been joined, and variables left out. Where runs were
    joined and the attributes are those of the first, as xarray keeps them by default, what it leaks
    is left out; runs joined along an axis of their study are a sweep.

    Args:
        data: Results.
        field: What the argument is called.

    Raises:
        ValueError: If something in it is not as a result has it; if a seed is there twice: it would
            be counted twice; or if runs that are joined have other seeds or meters.
    """
    _check(data, field)
    if "seed" not in data.sizes:
        return data
    number, dims = data.sizes["seed"], {"seed", "time", "meter", "row", "agent", "arm"}
    study = said(data, "study")
    apart = {*map(str, data.sizes)} - dims - {*study.get("axes", ())}
    if study and (apart or _joined(data, study)):
        private = ("ledger", "epsilon", "epsilon_message")
        attrs = {name: value for name, value in data.attrs.items() if name not in private}
        data = data.copy()
        data.attrs = attrs
    if "seed" in data.coords and len(np.unique(data.seed)) < number:
        refuse(f"{field}.seed", "repeated", "distinct", "a repeated seed repeats its run: drop it")
    if "priced" in data.coords and data.priced.dtype != bool:
        remedy = "join runs of one algorithm, or keep them apart"
        refuse(f"{field}.meter", "not in all runs", "the same in all runs", remedy)
    if "seeds" not in data:
        return data if {*map(str, data.sizes)} - dims else data.assign(seeds=number)
    stated = data.seeds
    if "seed" in stated.dims:  # joined, each seed with the number of its run
        stated = stated.isel(seed=0, drop=True)
    if "regret" in data and (stated.isnull().any() or int(stated.max()) < number):
        # Joined, or of a sweep whose other configurations have more: those that have a regret.
        there = np.isfinite(data.regret.isel(time=-1))
        stated = stated.copy(data=there.sum("seed").transpose(*stated.dims).values)
        if (there != (xr.DataArray(np.arange(number), dims="seed") < stated)).any():
            remedy = "join runs of the same seeds, or keep them apart"
            refuse(f"{field}.seed", "not in all runs", "the same in all runs", remedy)
    return data.assign(seeds=stated.clip(max=number, keep_attrs=True))


def _joined(data: xr.Dataset, study: Mapping[str, Any]) -> bool:
    """Tells whether results hold seeds of several runs; each has stated how many it had."""
    if "seeds" not in data:
        return data.sizes["seed"] > study.get("seeds", math.inf)
    if "seed" in data.seeds.dims:
        return True
    number = data.sizes["seed"]
    if number > data.seeds.max() and "regret" in data:
        # A configuration of a sweep may have fewer seeds than others: the rest is missing.
        number = np.isfinite(data.regret.isel(time=-1)).sum("seed").max()
    return bool(number > data.seeds.max())


def _check(data: xr.Dataset, field: str) -> None:
    """Refuses results that were changed to what no run gives: attributes, seeds, slots, types."""
    remedy = "use what a run gives, unchanged"
    if (wrong := fault(data)) is not None:
        name = re.split(r"[.\[]", wrong)[0]
        value = data.attrs.get(name, Shown(wrong))
        refuse(f"{field}.{name}", value, "as a run states it", f"{remedy}, or drop the attribute")
    for name in ("seed", "time", "slot", "seeds"):
        if name not in data.variables:
            continue
        values = data[name].values
        if values.dtype.kind == "f":  # where runs are joined, some may be missing
            values = values[~np.isnan(values)] if name in ("slot", "seeds") else values
        if values.dtype.kind not in "iuf":
            odd = values.reshape(-1)[:1]
        else:
            odd = values[~((values >= 0) & (values < 2**63) & (values == np.floor(values)))]
        if odd.size:
            refuse(f"{field}.{name}", odd[0].item(), "whole numbers, 0 or more", remedy)
    for name in ("regret", "regret_mean"):
        if name in data and data[name].dtype.kind not in "iuf":
            refuse(f"{field}.{name}", str(data[name].dtype), "real numbers", remedy)


def asked_numbers(data: xr.Dataset) -> list[str]:
    """Returns the outputs that results were asked for and that are a number of each seed."""
    names = [each.partition(" ")[0] for each in said(data, "study").get("outputs", ())]
    over = {*data.seeds.dims, "seed"}
    return [
        name
        for name in names
        for kept in [name if name in data else f"{name}_mean"]
        if kept in data and {*data[kept].dims} <= over
    ]


def _moments(cell: xr.Dataset, name: str, seeds: int) -> tuple[float, float]:
    """Returns mean and variance over the seeds of an output."""
    if name not in cell:
        return float(cell[f"{name}_mean"]), float(cell[f"{name}_variance"])
    part = summary.moments(np.asarray(cell[name].values[:seeds, None], np.float64), full=False)
    return float(part.mean[0]), float(part.covariance[0])


def _final_curves(
    cell: xr.Dataset, seeds: int, both: Sequence[float], level: float, judged: bool
) -> tuple[dict[str, float], dict[str, int], np.ndarray]:
    # Read once, where it is not in memory; by the rows of the last slot alone.
    needed = ["links", "regret", "rounds_made", "chosen_arm", *_EVENTS]
    kept = cell[[name for name in needed if name in cell.variables]]
    kept = kept.isel(seed=slice(seeds), time=-1).load()
    links = np.asarray(kept.links.transpose("seed", "meter"), np.float64).mean(axis=0)
    series = {name: np.asarray(kept[name], np.float64) for name in ("regret", "rounds_made")}
    summary.refuse_huge("data.regret", series["regret"])
    series["cost"] = np.asarray(communication_cost(kept, both[0], both[1]), np.float64)
    found: dict[str, float] = {}
    for name, values in series.items():
        part = summary.moments(values[:, None], full=False)
        found |= _interval(name, seeds, float(part.mean[0]), float(part.covariance[0]), level)
    counts = {name: int(kept[name].values.sum()) for name in _EVENTS}
    counts["undecided"] = int((kept.chosen_arm.values < 0).sum())
    return found, counts, links


def _final_summary(
    cell: xr.Dataset, seeds: int, both: Sequence[float], level: float, judged: bool
) -> tuple[dict[str, float], dict[str, int], np.ndarray]:
    last = cell.isel(time=-1)
    covariance = cell.regret_covariance.values
    found = _interval("regret", seeds, float(last.regret_mean), float(covariance[-1, -1]), level)
    if judged:
        mean, half = look_band(seeds, cell.regret_mean.values, covariance, level)
        found |= {"regret_lower": mean[-1] - half[-1], "regret_upper": mean[-1] + half[-1]}
    rounds, variance = float(cell.rounds_made_mean), float(cell.rounds_made_variance)
    found |= _interval("rounds_made", seeds, rounds, variance, level)
    links = np.asarray(last.links_mean, np.float64)
    cost = float(links @ prices(cell, both[0], both[1]).values)
    # Every link is built by a completed round.
    scale = cost / rounds if rounds else 0.0
    found |= _interval("cost", seeds, cost, variance * scale**2, level)
    counts = {name: int(cell[name]) for name in (*_EVENTS, "undecided")}
    return found, counts, links


def _interval(
    name: str, seeds: int, mean: float, variance: float, level: float
) -> dict[str, float]:
    half = student_quantile(seeds - 1, level) * math.sqrt(max(variance, 0.0) / seeds)
    return {name: mean, f"{name}_lower": mean - half, f"{name}_upper": mean + half}
