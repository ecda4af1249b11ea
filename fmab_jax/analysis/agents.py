"""Takes another regret of a result for its regret: that of the worst agent, or of each agent."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from fmab_jax.analysis.bands import EVENTS
from fmab_jax.analysis.costs import LEAKS
from fmab_jax.errors import choice, refuse
from fmab_jax.run.outputs import AGENT_NAMES

KINDS = ("own_regret", "largest_regret", "largest_own_regret", "agent_regret", "agent_own_regret")
"""Outputs that `select_regret` takes for the regret."""
CURVES = {"agent_regret": "regret_by_agent", "agent_own_regret": "own_regret_by_agent"}
"""The output that is the curve of an output at T."""


def select_regret(data: xr.Dataset, kind: str) -> xr.Dataset:
    """Returns a result whose ``regret`` is another one, for tables, figures and comparisons.

    Args:
        data: From `simulate`, `sweep`, `open_sweep` or `load`, where agents differ.
        kind: "own_regret", the sum over agents of the regret against their own best arms;
            "largest_regret" or "largest_own_regret", that of the agent with most; "agent_regret" or
            "agent_own_regret", with each agent a configuration of its own, along ``agent``; where
            numbers of agents are swept, ``seeds`` are 0 for agents that a configuration lacks.

    Returns:
        The Dataset with ``regret`` over time where its curve is there (of agents: if the output
        ``regret_by_agent`` or ``own_regret_by_agent`` was asked for), else at T alone; of a
        summary, ``regret_mean`` and ``regret_covariance`` at T.

    Raises:
        ValueError: If the result does not have this regret.
    """
    choice("kind", kind, KINDS, "choose one of these")
    if not isinstance(data, xr.Dataset) or "seeds" not in data:
        refuse("data", type(data).__name__, "a result of simulate or sweep", "pass it unchanged")
    ends = ("",) if "regret" in data else ("_mean", "_variance")
    curve = CURVES.get(kind, kind)
    name = curve if ends == ("",) and curve in data else kind
    if f"{name}{ends[0]}" not in data:
        remedy = f"run it with outputs=[{kind!r}]; it comes by itself where agents differ"
        remedy += ", up to 100 of them" * (kind in CURVES)
        refuse("kind", kind, "in the result", remedy)
    values = [data[f"{name}{end}"] for end in ends]
    attrs = values[0].attrs | {"metric": kind.replace("_", " ")}
    if len(ends) > 1 or "time" not in values[0].dims:
        places = {dim: [-1] for dim in ("time", "time_2") if dim in data.dims}
        data = data.isel(places)
        values = [x.isel(time=-1, drop=True) if "time" in x.dims else x for x in values]
        values = [x.expand_dims(time=data.time.values) for x in values]
    if kind in CURVES:
        # Where numbers of agents are swept, the others of a configuration are NaN.
        first = values[0].isel({dim: 0 for dim in ("seed", "time") if dim in values[0].dims})
        data = _spread_over_agents(data, first.notnull())
    if len(ends) > 1:
        values[1] = values[1].expand_dims("time_2")
    dims = [*data.seeds.dims, "seed", "time", "time_2"]
    values = [x.transpose(*(dim for dim in dims if dim in x.dims)) for x in values]
    names = ("regret",) if len(ends) == 1 else ("regret_mean", "regret_covariance")
    regret = {n: x.variable for n, x in zip(names, values, strict=True)}
    return data.assign({n: (x.dims, x.data, attrs) for n, x in regret.items()})


def find_absent_agents(seeds: xr.DataArray) -> xr.DataArray:
    """Tells which configurations are an agent that its run lacks, by numbers of seeds.

    The run has fewer agents than another one of the sweep. An unfinished run, without seeds of any
    agent, lacks none.
    """
    if "agent" not in seeds.dims:
        return xr.zeros_like(seeds, bool)
    return (seeds == 0) & (seeds.max("agent") > 0)


def describe_agents(kind: str, is_equal: Mapping[str, bool]) -> list[tuple[str, str]]:
    """Says what a figure by agent cannot show, each in a long and a short form.

    Args:
        kind: Which regret is shown, as `select_regret` states it in the attribute ``metric``.
        is_equal: By label of each run with several agents, whether `has_equal` holds.
    """
    if not is_equal:
        return []
    drawn = (
        "Each seed draws its own means unless they are fixed, so agent 0 is another agent in each "
        "seed; largest_regret and largest_own_regret are those of the worst agent of each seed"
    )
    sentences = [(drawn, "Agent 0 is another agent in each seed, unless means are fixed")]
    if labels := [label for label, equal in is_equal.items() if equal]:
        where = f" ({' / '.join(labels)})" * (len(labels) < len(is_equal))
        short = f"All agents have the same mean regret{where}"
        own = "; own_regret is against each agent's own best arm" * (kind == "agent regret")
        sentences.append((f"{short}, to three digits{own}", short))
    return sentences


def has_equal(values: ArrayLike) -> bool:
    """Tells whether agents, along the first axis, have the same values to three digits."""
    # Agents that wait for each other end an epoch in different slots.
    return bool(np.allclose(values, np.asarray(values)[0], rtol=1e-3))


def _spread_over_agents(data: xr.Dataset, exists: xr.DataArray) -> xr.Dataset:
    """Returns a result in which each agent is a configuration, with the facts of its run.

    What a run decided is left out, because it would be counted once for each agent; so are the
    regrets of all agents together. ``exists`` tells which agents each configuration has.
    """
    agents = data.agent
    outputs = [name for name in data.data_vars if "agent" in data[name].dims or name in AGENT_NAMES]
    data = data.drop_vars([*outputs, *EVENTS, "chosen_arm", "undecided"], errors="ignore")
    names = [name for name in ("seeds", *LEAKS, "ledger") if name in data.variables]
    facts = {n: data[n].reset_coords(drop=True).expand_dims(agent=agents, axis=-1) for n in names}
    seeds = facts["seeds"]
    facts["seeds"] = seeds.copy(data=np.where(exists.transpose(*seeds.dims), seeds, 0))
    ledger = ["ledger"] if "ledger" in names else []
    return data.assign({n: (x.dims, x.values, x.attrs) for n, x in facts.items()}).set_coords(
        ledger
    )
