"""Checks results: seeds that were selected, and runs that were joined."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from fmab_jax.analysis.costs import LEAKS
from fmab_jax.errors import refuse
from fmab_jax.run.attributes import json_attr


def check_result(data: xr.Dataset, field: str = "data") -> xr.Dataset:
    """Returns results whose ``seeds`` counts the seeds that are present.

    Some may have been selected, runs may have been joined, and variables left out. Where runs were
    joined and the attributes are those of the first, as xarray keeps them by default, the privacy
    parameter is left out; runs joined along an axis of their study are a sweep. Leaks and ledgers
    are left out unless they are surely those of each run: xarray may keep the first one's.

    Args:
        data: Results.
        field: What the argument is called.

    Raises:
        ValueError: If a seed is there twice: it would be counted twice; or if runs that are joined
            have other seeds or meters.
    """
    names = [name for name in (*LEAKS, "ledger") if name in data.variables]
    unsure = [name for name in names if "seed" not in data[name].dims]
    data = _drop_unsure_leaks(data, names)
    if "seed" not in data.sizes:
        return data
    number, study = data.sizes["seed"], json_attr(data, "study")
    dims = {*map(str, data.sizes)} - {"seed", "time", "meter", "row", "agent", "arm"}
    seeds, is_there = data.get("seeds"), None
    joined = seeds is None and number > study.get("seeds", math.inf)
    if seeds is not None:
        joined = "seed" in seeds.dims  # each seed with the number of its run
        seeds = seeds.isel(seed=0, drop=True) if joined else seeds
        if "regret" in data and (seeds.isnull().any() or int(seeds.max()) < number):
            # Joined, or of a sweep whose other configurations have more: count regrets.
            is_there = np.isfinite(data.regret.isel(time=-1))
            joined = joined or bool(is_there.sum("seed").max() > seeds.max())
            seeds = seeds.copy(data=is_there.sum("seed").transpose(*seeds.dims).values)
    data = data.drop_vars(unsure if joined else [], errors="ignore")
    join_axes = dims - {*study.get("axes", ())}
    if study and (join_axes or joined):
        data = data.copy()
        for name in ("epsilon", "epsilon_message"):
            data.attrs.pop(name, None)
    if "seed" in data.coords and len(np.unique(data.seed)) < number:
        refuse(f"{field}.seed", "repeated", "distinct", "a repeated seed repeats its run: drop it")
    if "priced" in data.coords and data.priced.dtype != bool:
        remedy = "join runs of one algorithm, or keep them apart"
        refuse(f"{field}.meter", "not in all runs", "the same in all runs", remedy)
    if seeds is None:
        return data if dims else data.assign(seeds=number)
    if (
        is_there is not None
        and (is_there != (xr.DataArray(np.arange(number), dims="seed") < seeds)).any()
    ):
        remedy = "join runs of the same seeds, or keep them apart"
        refuse(f"{field}.seed", "not in all runs", "the same in all runs", remedy)
    seeds = seeds.reset_coords(drop=True)  # a ledger, too, which may be left out
    return data.assign(seeds=seeds.clip(max=number, keep_attrs=True))


def _drop_unsure_leaks(data: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
    """Returns results without leaks and ledgers that not every configuration has for itself.

    Of seeds that were joined, each may have one: they are kept where all are the same.
    """
    dims = {*data.seeds.dims} if "seeds" in data else set()
    for name in names:
        values = data[name]
        if "seed" in values.dims:
            data, first = data.drop_vars(name), values.isel(seed=0, drop=True)
            if (values == first).all():
                data[name] = first
                data = data.set_coords([name] if name == "ledger" else [])
        elif dims - {"seed", *values.dims}:
            data = data.drop_vars(name)
    return data
