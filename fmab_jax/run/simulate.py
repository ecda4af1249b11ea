"""Many seeds of one configuration, as a labelled result."""

from __future__ import annotations

import json
import math
import platform
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr

from fmab_jax import __version__
from fmab_jax.algorithms.base import Algorithm, ledger_of
from fmab_jax.algorithms.families.elimination import Elimination
from fmab_jax.core import keys
from fmab_jax.core.outputs import Output
from fmab_jax.core.plugins import source_digest
from fmab_jax.core.problems import Problem
from fmab_jax.errors import choice, count, flag, length, price, refuse
from fmab_jax.progress import Bar, place
from fmab_jax.run import batches, resources, schema
from fmab_jax.run.batches import Collected, Config, Work
from fmab_jax.run.outputs import chosen as chosen_outputs
from fmab_jax.run.outputs import made, stated
from fmab_jax.run.outputs.usual import USUAL


def simulate(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    seeds: int | Sequence[int],
    *,
    root_seed: int = 0,
    times: Any = 100,
    spacing: str = "linear",
    batch: int | None = None,
    sum_agents: bool = True,
    outputs: Sequence[str | Output] = (),
    devices: Sequence[jax.Device] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Runs an algorithm on a problem for many seeds.

    Args:
        algorithm: One of the package's, such as ``cdp_mab(1.0)``, or your own.
        problem: The arms' means and the law of rewards.
        horizon: T, in slots, in [1, 10^12]; agents x horizon at most 2^53.
        seeds: How many (0, 1, ..., n - 1), or which; each in [0, 2^32). A seed's results depend on
            nothing but ``root_seed`` and itself.
        root_seed: Selects the whole experiment's randomness, in [0, 2^32).
        times: Number of recorded slots, or the slots themselves; the horizon is always recorded.
        spacing: "linear" or "log", for a number of slots.
        batch: Seeds per batch, rounded up to a power of two per device, at least 8 (2 on very large
            problems); chosen from a memory estimate by default.
        sum_agents: Draw totals over agents where that is exact. False draws agent by agent: the
            same law, other numbers.
        outputs: What comes out besides, such as ``["regret_by_agent"]``; ``fmab outputs`` lists
            what there is, and an `Output` of one's own does as well. What is not asked for costs
            nothing.
        devices: Devices that share each batch; all that JAX shows by default.
        progress: Show a progress bar; by default from the second batch on, on a terminal or
            in a notebook.

    Returns:
        A Dataset over ``seed`` and ``time`` (slots). Series, cumulative and summed over agents:
        ``regret`` (pseudo-regret; exact at every recorded slot), ``waiting_regret`` (the part
        collected while waiting) and, over ``meter`` too, ``links`` (charged at the end of each
        completed round). Per seed: ``rounds_made``, ``numbers_sent`` (by all links of these rounds
        together), ``active_arms``, ``chosen_arm`` (-1 while still exploring at T), ``agents_lost``
        (agents whose active set holds no best arm at T), ``agents_worse`` (agents that play one arm
        at T, and not a best one), ``final_gap`` (gap of what is played at T) and the coordinates
        ``best_arm_lost`` and ``worse_arm_played``. Where agents run alone, ``rounds_made`` and
        ``active_arms`` are the largest of any agent and ``chosen_arm`` is what most agents play.
        Fixed means come along as ``means``. ``attrs`` and the coordinates hold all that is needed
        to run it again.

    Raises:
        ValueError: If an argument is out of range or the run would not fit into memory.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> data.regret.sizes["seed"], data.regret.sizes["time"], int(data.best_arm_lost.sum())
        (20, 100, 0)
        >>> bool((data.links.sel(meter="server")[:, -1] == 5 * data.rounds_made).all())
        True
    """
    started = time.perf_counter()
    chosen = _checked_seeds(seeds)
    config = batches.bound(
        algorithm,
        problem,
        horizon,
        times=times,
        spacing=spacing,
        sum_agents=sum_agents,
        quick=len(chosen) <= batches.FEW_TRIALS,
        asked=chosen_outputs(outputs),
    )
    root_seed = keys.checked_seed("root_seed", root_seed)
    used = resources.checked_devices(devices)
    if progress is not None:
        flag("progress", progress)
    needs = config.needs(len(chosen), used, batch)
    resources.refuse_what_does_not_fit(needs)

    compiling = time.perf_counter()
    batches.executable(config.program, needs.batch, used)
    compile_s = time.perf_counter() - compiling
    collected = Collected(len(chosen), config.points, config.outputs)
    where = place(progress) if needs.batches > 1 else ""
    with Bar("seeds", len(chosen), where) as bar:
        work = Work([config], np.broadcast_to(np.int32(0), len(chosen)), chosen, root_seed)
        for start, outcome in batches.run_trials(work, needs.batch, used):
            collected.put(start, outcome)
            bar.advance(len(outcome.rounds))
    elapsed = time.perf_counter() - started
    data = _dataset(collected, config, chosen)
    if problem.means is not None:
        data["means"] = (("row", "arm"), problem.means, {"long_name": "mean reward"})
    described = {
        **algorithm.describe(),
        "problem": problem.describe(),
        "horizon": config.horizon,
        "root_seed": root_seed,
        "sum_agents": sum_agents,
        **stated(config.outputs),
    }
    data.attrs = {
        **facts(config, sum_agents=sum_agents),
        "root_seed": root_seed,
        "config": json.dumps(described),
        "schema": schema.VERSION,
        "fmab_jax": __version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "device": f"{len(used)} x {used[0].platform} ({used[0].device_kind})",
        "batch": needs.batch,
        "elapsed_s": elapsed,
        "compile_s": compile_s,
        "trials_per_s": len(chosen) / max(elapsed - compile_s, 1e-9),
    }
    return data


def facts(config: Config, *, sum_agents: bool = True) -> dict[str, Any]:
    """Returns what a result says of its configuration, for tables, figures and files.

    Besides the parameters, the settings tell of foreign source, and of agents drawn one by one.
    """
    algorithm, problem = config.algorithm, config.problem
    settings = algorithm.settings() | problem.settings()
    for name in ("epsilon", "epsilon_message"):
        settings.pop(name, None)
    # No parameter has a name with a space.
    if code := source_digest(type(algorithm)):
        settings["source code"] = f"code {code[:8]}"
    if not sum_agents:
        settings["sum agents"] = "agents drawn one by one"
    return {
        "algorithm": algorithm.name,
        "title": algorithm.title or algorithm.name,
        **algorithm.privacy(config.exchange),
        "agents": problem.agents,
        "arms": problem.arms,
        "horizon": config.horizon,
        "reporting": config.exchange.reporting,
        "wait": config.exchange.wait,
        "settings": json.dumps(settings),
        "ledger": json.dumps(ledger_rows(config)),
    }


def ledger_rows(config: Config) -> list[dict[str, Any]]:
    """Returns the privacy ledger of a configuration as JSON has it.

    A row has the fields of a `Seen`, with pairs [epsilon, over], of which there is one here, under
    ``leaks`` (and the law of the noises that add up); an epsilon that bounds nothing is None.
    ``fixed`` tells that an epoch fixes how often an arm is pulled, ``waits`` that rounds have a
    wait.
    """
    fixed, waits = isinstance(config.algorithm, Elimination), config.exchange.wait > 0
    return [
        {
            "who": row.who,
            "what": row.what,
            "leaks": [[float(row.epsilon) if math.isfinite(row.epsilon) else None, row.over]],
            "why": row.why,
            "source": row.source,
            "law": row.law,
            "fixed": fixed,
            "waits": waits,
        }
        for row in ledger_of(config.algorithm, config.exchange)
    ]


def communication_cost(
    data: xr.Dataset, server_price: float, peer_price: float, meter: str | None = None
) -> xr.DataArray:
    """Returns C(T) = c1 x server links + c2 x peer links, cumulative over time (the paper's eq. 2).

    Args:
        data: From `simulate` or `sweep`.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link.
        meter: Which peer meter counts: "bound" or "used" for `ddp_mab` (default "bound", the
            paper's; with gossip "pairs", which "used" equals), "edges" or "sac" for `hdp_mab`
            (default "edges", which alone fits the paper's figure 11).

    Raises:
        ValueError: If a price is negative or the meter is not one of the run's.

    Example:
        Every completed round costs five links to the server, at 2 each:

        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> cost = fmab.communication_cost(data, server_price=2, peer_price=1)
        >>> bool((cost[:, -1] == 10 * data.rounds_made).all())
        True
    """
    server_price = price("server_price", server_price)
    peer_price = price("peer_price", peer_price)
    if not isinstance(data, xr.Dataset) or "links" not in data:
        refuse("data", type(data).__name__, "a result with links", "pass what simulate returned")
    weights = prices(data, server_price, peer_price, meter)
    cost = (data.links * weights).sum("meter").rename("communication_cost")
    peers = data.meter.values[(data.side == "peer").values & (weights != 0).values]
    return cost.assign_attrs(
        long_name="communication cost", units="price", meter=" / ".join(map(str, peers))
    )


def prices(
    data: xr.Dataset, server_price: float, peer_price: float, meter: str | None = None
) -> xr.DataArray:
    """Returns the price of a link on each meter; arguments as in `communication_cost`.

    Raises:
        ValueError: If the meter is not one of the run's.
    """
    peer = (data.side == "peer").values
    counted = data.priced.values & peer
    if meter is not None:
        known = data.meter.values[peer].tolist()
        allowed = " or ".join(map(repr, known)) or "left out: agents build no links"
        choice("meter", meter, known, "choose one of this run's meters", allowed)
        counted = data.meter.values == meter
    each = np.where(peer, peer_price * counted, server_price * 1.0)
    return xr.DataArray(each, {"meter": data.meter}, ("meter",)).drop_vars("meter")


def _checked_seeds(seeds: Any) -> range | np.ndarray:
    if isinstance(seeds, (str, bytes)) or seeds is None:
        refuse("seeds", seeds, "a number of seeds or a list of seeds", "give a number such as 1000")
    # Asked without np.ndim, which would copy a range, and raises for rows of unequal lengths.
    if not isinstance(seeds, (list, tuple, range)) and not getattr(seeds, "ndim", 0):
        number = count("seeds", seeds, 1, resources.MAX_SEEDS, "give the number of seeds")
        return range(number)
    if length(seeds) == 0:
        refuse("seeds", list(seeds), "not empty", "give at least one seed")
    if length(seeds) > resources.MAX_SEEDS:
        refuse("seeds", length(seeds), f"at most {resources.MAX_SEEDS:,}", "run them in parts")
    if isinstance(seeds, range):
        keys.checked_seed("seeds", seeds[0])
        keys.checked_seed("seeds", seeds[-1])
        return seeds
    checked = [keys.checked_seed("seeds", seed) for seed in seeds]
    if len(set(checked)) != len(checked):
        refuse("seeds", checked, "distinct", "a repeated seed repeats its run")
    return np.array(checked, np.int64)


def _dataset(collected: Collected, config: Config, seeds: range | np.ndarray) -> xr.Dataset:
    meters = schema.meters_of([config.exchange])
    size = (len(seeds), config.points)
    stored = dict(collected.arrays)
    stored.setdefault("waiting_regret", np.broadcast_to(0.0, size))
    sizes = {"agent": config.problem.agents, "arm": config.problem.arms}
    data: dict[str, Any] = {}
    coords: dict[str, Any] = {}
    for output in (*USUAL, *config.outputs):
        found = (
            ("seed", *output.dims),
            made(output, stored.__getitem__, config.facts, config.size),
            output.attrs,
        )
        (coords if output.coordinate else data)[output.name] = found
    time_attrs = {"long_name": "slot", "units": "slot"}
    return xr.Dataset(
        data,
        {
            "seed": ("seed", np.asarray(seeds, np.int64)),
            "time": ("time", config.grid[: config.points], time_attrs),
            **schema.meter_coordinates(meters),
            **schema.index_coordinates(config.outputs, sizes),
            **coords,
        },
    )
