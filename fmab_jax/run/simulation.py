"""Many seeds at once: batches, devices and memory; labelled results.

A *cell* is one configuration, a *lane* one seed of one cell. Lanes are cut into batches of one
fixed size, so that all cells of one array shape share a compilation, and the last batch is padded.
Each device takes an equal share of a batch (`jax.shard_map`); on a single CPU device the batches
run on all cores, one thread each. None of this reaches the numbers: a lane's results depend on its
cell and its seed alone.
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
import math
import os
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from fmab_jax import __version__
from fmab_jax.algorithms.families.elimination import Algorithm, Outcome, Rule, Shape, plan, run_seed
from fmab_jax.core import keys, samplers
from fmab_jax.core.curves import time_grid
from fmab_jax.core.exchanges import Exchange
from fmab_jax.core.problems import Problem
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import choice, count, flag, length, price, refuse
from fmab_jax.files import told
from fmab_jax.resources import available_bytes as _available_bytes
from fmab_jax.resources import refuse_after_fork

MAX_HORIZON = 10**12
MAX_SEEDS = 10**8
# Array elements that keep a core, or an accelerator, busy without leaving its cache, or its memory.
_ELEMENTS = {"cpu": 200_000, "gpu": 8_000_000, "tpu": 8_000_000}
# Bytes the compiled loop holds per (agent, arm) element and per recorded slot of a seed; measured
# with `memory_analysis` (tests/test_simulation.py holds the estimate to it).
_BYTES_PER_ELEMENT = 260
_BYTES_PER_POINT = 100


class Estimate(NamedTuple):
    """What a run will need.

    Attributes:
        batch: Seeds per batch, over all devices.
        batches: Number of batches.
        working_bytes: Memory of the batches in flight.
        result_bytes: Memory of the returned Dataset.
        available_bytes: Memory this machine has free, 0 if unknown.
    """

    batch: int
    batches: int
    working_bytes: int
    result_bytes: int
    available_bytes: int

    @property
    def fits(self) -> bool:
        """Whether a tenth of the free memory would remain; True where that is unknown."""
        total = self.working_bytes + self.result_bytes
        return not self.available_bytes or total <= 0.9 * self.available_bytes


class Layout(NamedTuple):
    """All that a compilation depends on, besides batch and devices.

    Attributes:
        shape: The loop's static part.
        points: Recorded slots.
        weights: Length of the aggregate's weights.
        parameters: Name and shape of each array of the problem.
    """

    shape: Shape
    points: int
    weights: int
    parameters: tuple[tuple[str, tuple[int, ...]], ...]


class Cell(NamedTuple):
    """One configuration, checked and resolved into arrays.

    Attributes:
        shape: The loop's static part.
        rule: The algorithm's values.
        parameters: The problem's arrays.
        grid: [time] recorded slots, the last the horizon.
        points: Length that the grid is padded to, so that a shorter one does not compile anew.
        exchange: What a round costs.
    """

    shape: Shape
    rule: Rule
    parameters: dict[str, np.ndarray]
    grid: np.ndarray
    points: int
    exchange: Exchange

    @property
    def layout(self) -> Layout:
        """What cells must share to share a compilation."""
        arrays = tuple((name, value.shape) for name, value in sorted(self.parameters.items()))
        return Layout(self.shape, self.points, len(self.rule.weights), arrays)

    @property
    def padded_grid(self) -> np.ndarray:
        """The grid with its last slot repeated to the layout's length."""
        return np.pad(self.grid, (0, self.points - len(self.grid)), mode="edge")


class Lanes(NamedTuple):
    """Work for one compiled program.

    Attributes:
        cells: Configurations of one layout.
        cell: [lane] which of them.
        seed: [lane] the seed.
        root_seed: Shared by all.
    """

    cells: Sequence[Cell]
    cell: np.ndarray
    seed: range | np.ndarray
    root_seed: int


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
    devices: Sequence[jax.Device] | None = None,
    progress: bool | None = None,
) -> xr.Dataset:
    """Runs an algorithm on a problem for many seeds.

    Args:
        algorithm: From `cdp_mab`, `ddp_mab`, `hdp_mab` or `single_mab`.
        problem: The arms' means.
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
        devices: Devices that share each batch; all that JAX shows by default.
        progress: Show a progress bar; by default from the second batch on, on a terminal.

    Returns:
        A Dataset over ``seed`` and ``time`` (slots). Series, cumulative and summed over agents:
        ``regret`` (pseudo-regret; exact at every recorded slot), ``exploitation_regret`` (the part
        collected while waiting), ``server_links``, ``peer_links_bound`` and ``peer_links_used``
        (links charged at the end of each completed round). Per seed: ``rounds``, ``active_arms``,
        ``chosen_arm`` (-1 while still exploring at T), ``agents_lost`` (agents whose active set
        holds no best arm at T) and the coordinate ``best_arm_lost``. For `single_mab`, where agents
        differ, ``rounds`` and ``active_arms`` are the largest of any agent and ``chosen_arm`` is
        what most agents play. Fixed means come along as ``means``. ``attrs`` and the
        coordinates hold all that is needed to run it again.

    Raises:
        ValueError: If an argument is out of range or the run would not fit into memory.
    """
    started = time.perf_counter()
    cell = resolve(algorithm, problem, horizon, times=times, spacing=spacing, sum_agents=sum_agents)
    chosen = _checked_seeds(seeds)
    root_seed = keys.checked_seed("root_seed", root_seed)
    used = checked_devices(devices)
    needs = estimate(cell, len(chosen), used, batch)
    _refuse_what_does_not_fit(needs)

    compiling = time.perf_counter()
    executable(cell.layout, needs.batch, used)
    compile_s = time.perf_counter() - compiling
    collected = Collected(len(chosen), len(cell.grid), cell.shape.waits)
    with _progress_bar(len(chosen), needs.batches, progress) as advance:
        lanes = Lanes([cell], np.broadcast_to(np.int32(0), len(chosen)), chosen, root_seed)
        for start, outcome in run_lanes(lanes, needs.batch, used):
            collected.put(start, outcome)
            advance(len(outcome.rounds))
    elapsed = time.perf_counter() - started
    rule, exchange = cell.rule, cell.exchange
    data = _dataset(collected, exchange, chosen, cell.grid)
    if problem.means is not None:
        data["means"] = (("row", "arm"), problem.means, {"long_name": "mean reward"})
    config = {
        **algorithm.describe(),
        "problem": problem.describe(),
        "horizon": int(rule.horizon),
        "root_seed": root_seed,
        "sum_agents": sum_agents,
    }
    data.attrs = {
        "algorithm": algorithm.name,
        "epsilon": float(rule.epsilon),
        "epsilon_message": float(rule.epsilon * rule.reporting),
        "agents": problem.agents,
        "arms": problem.arms,
        "horizon": int(rule.horizon),
        "root_seed": root_seed,
        "reporting": exchange.reporting,
        "wait": exchange.wait,
        "meter_bound": exchange.meters[0],
        "meter_used": exchange.meters[1],
        "config": json.dumps(config),
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


def communication_cost(
    data: xr.Dataset, server_price: float, peer_price: float, meter: str | None = None
) -> xr.DataArray:
    """Returns C(T) = c1 x server links + c2 x peer links, cumulative over time (the paper's eq. 2).

    Args:
        data: From `simulate`.
        server_price: c1, of an agent-server link.
        peer_price: c2, of an agent-agent link.
        meter: Which peer meter counts: "bound" or "used" for `ddp_mab` (default "bound", the
            paper's), "edges" or "sac" for `hdp_mab` (default "edges", which alone fits the paper's
            figure 11).

    Raises:
        ValueError: If a price is negative or the meter is not one of the run's.
    """
    server_price = price("server_price", server_price)
    peer_price = price("peer_price", peer_price)
    needed = {"server_links", "peer_links_bound", "peer_links_used"}
    if not isinstance(data, xr.Dataset) or not (
        needed <= set(data) and {"meter_bound", "meter_used"} <= set(data.attrs)
    ):
        refuse("data", data, "a result of simulate", "pass it unchanged")
    meters = {
        data.attrs["meter_bound"]: data.peer_links_bound,
        data.attrs["meter_used"]: data.peer_links_used,
    }
    meter = data.attrs["meter_bound"] if meter is None else meter
    choice("meter", meter, meters, "choose one of this run's meters")
    cost = server_price * data.server_links + peer_price * meters[meter]
    return cost.rename("communication_cost").assign_attrs(
        long_name="communication cost", units="price", meter=meter
    )


def resolve(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    *,
    times: Any = 100,
    spacing: str = "linear",
    sum_agents: bool = True,
    exchange: Exchange | None = None,
) -> Cell:
    """Checks one configuration and resolves it into arrays; arguments as in `simulate`.

    Args:
        algorithm: What to run.
        problem: On what.
        horizon: T.
        times: Recorded slots, or how many.
        spacing: Of them.
        sum_agents: Draw totals where that is exact.
        exchange: The algorithm's own, where it was computed before.

    Raises:
        ValueError: If an argument is out of range.
    """
    for field, value, kind in (("algorithm", algorithm, Algorithm), ("problem", problem, Problem)):
        if not isinstance(value, kind):
            refuse(field, value, f"an fmab_jax {kind.__name__}", "make one with the package")
    remedy = "give the number of slots T"
    horizon = count("horizon", horizon, 1, MAX_HORIZON, remedy)
    flag("sum_agents", sum_agents)
    if horizon * problem.agents > samplers.MAX_TRIALS:
        limit = samplers.MAX_TRIALS // problem.agents
        refuse("horizon", horizon, f"at most {limit:,} with {problem.agents} agents", remedy)
    grid = time_grid(horizon, times, spacing)
    shape, rule, exchange = plan(
        algorithm, problem, horizon, sum_agents=sum_agents, exchange=exchange
    )
    # A chosen grid can have fewer slots than asked for; padded, it does not compile anew.
    points = len(grid) if np.ndim(times) else int(times)
    return Cell(shape, rule, problem.parameters, grid, points, exchange)


def checked_devices(devices: Sequence[jax.Device] | None) -> tuple[jax.Device, ...]:
    """Returns the devices to use; by default all that JAX shows this process.

    Raises:
        ValueError: If there is none.
    """
    refuse_after_fork()
    used = tuple(jax.local_devices()) if devices is None else ()
    if isinstance(devices, (list, tuple)):
        used = tuple(devices)
    if not used or not all(isinstance(device, jax.Device) for device in used):
        refuse("devices", devices, "devices such as jax.devices()", "leave it out for all of them")
    return used


def estimate(
    cell: Cell, lanes: int, devices: Sequence[jax.Device], batch: int | None = None
) -> Estimate:
    """Returns the batch size and the memory a run will need, before anything is allocated.

    Raises:
        ValueError: If ``batch`` is not a positive whole number.
    """
    shape, points = cell.shape, cell.points
    elements = loop_elements(shape)
    copies = shape.agents if shape.alone else 1
    per_lane = elements * _BYTES_PER_ELEMENT + points * _BYTES_PER_POINT * copies
    available = _available_bytes()
    if batch is None:
        per_device = max(1, _ELEMENTS.get(devices[0].platform, 200_000) // elements)
        per_device = min(per_device, -(-lanes // (len(devices) * threads(devices))))
    else:
        batch = count("batch", batch, 1, MAX_SEEDS, "give the number of seeds per batch")
        per_device = -(-batch // len(devices))
    # Powers of two, so that 900 seeds and 1000 share a compilation; and not one seed alone, for
    # which the compiler would fuse, and round, differently.
    least = 8 if elements <= 100_000 else 2
    batch = len(devices) * 2 ** math.ceil(math.log2(max(least, per_device)))
    batches = -(-lanes // batch)
    working = per_lane * batch * min(threads(devices), batches)
    # Regret, completed rounds, the links made of them, exploitation regret where agents wait.
    series = 1 + shape.waits + np.count_nonzero(links_per_round(cell.exchange))
    result = lanes * (points * (8 * int(series) + 4) + 32)
    return Estimate(batch, batches, working, result, available)


def loop_elements(shape: Shape) -> int:
    """Returns how many (agent, arm) elements the loop holds for one lane."""
    return max(1, shape.agents if not shape.sum_rewards or shape.alone else 1, shape.law.rows) * (
        shape.law.arms
    )


def _refuse_what_does_not_fit(needs: Estimate) -> None:
    total = needs.working_bytes + needs.result_bytes
    if not needs.fits:
        larger = needs.result_bytes > needs.working_bytes
        remedy = "record fewer times or seeds" if larger else "use fewer agents or arms, or batch=1"
        refuse(
            "memory",
            f"{total / 1e9:.1f} GB",
            f"at most 90% of the {needs.available_bytes / 1e9:.1f} GB available",
            remedy,
        )


def links_per_round(exchange: Exchange) -> tuple[int, int, int]:
    """Returns server links and peer links on both meters; an agent alone builds none."""
    if exchange.kind == "alone":
        return 0, 0, 0
    return exchange.server_links, exchange.peer_links_bound, exchange.peer_links_used


def _checked_seeds(seeds: Any) -> range | np.ndarray:
    if isinstance(seeds, (str, bytes)) or seeds is None:
        refuse("seeds", seeds, "a number of seeds or a list of seeds", "give a number such as 1000")
    # Asked without np.ndim, which would copy a range, and raises for rows of unequal lengths.
    if not isinstance(seeds, (list, tuple, range)) and not getattr(seeds, "ndim", 0):
        number = count("seeds", seeds, 1, MAX_SEEDS, "give the number of seeds")
        return range(number)
    if length(seeds) == 0:
        refuse("seeds", list(seeds), "not empty", "give at least one seed")
    if length(seeds) > MAX_SEEDS:
        refuse("seeds", length(seeds), f"at most {MAX_SEEDS:,} seeds", "run them in parts")
    if isinstance(seeds, range):
        keys.checked_seed("seeds", seeds[0])
        keys.checked_seed("seeds", seeds[-1])
        return seeds
    checked = [keys.checked_seed("seeds", seed) for seed in seeds]
    if len(set(checked)) != len(checked):
        refuse("seeds", checked, "distinct", "a repeated seed repeats its run")
    return np.array(checked, np.int64)


@functools.lru_cache(maxsize=256)
def executable(layout: Layout, batch: int, devices: tuple[jax.Device, ...]) -> Any:
    """Compiles the loop for one layout; called once for each, by all its cells.

    Returns:
        A function of `run_seed`'s traced arguments, each with a leading [lane] axis.
    """
    # A data-dependent loop over sharded inputs would synchronise the devices at every step.
    mesh = Mesh(np.array(devices), ("lanes",))
    split = PartitionSpec("lanes")

    def one_batch(*arguments: Any) -> Outcome:
        return jax.vmap(functools.partial(run_seed, layout.shape))(*arguments)

    sharded = jax.shard_map(one_batch, mesh=mesh, in_specs=split, out_specs=split)
    sharding = NamedSharding(mesh, split) if spans_processes(devices) else None
    # The scope is the thread's own.
    with own_settings(mesh):
        f64, i64, u32 = jnp.float64, jnp.int64, jnp.uint32

        def each(dtype: Any, *shape: int) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((batch, *shape), dtype, sharding=sharding)

        rule = Rule(
            horizon=each(i64),
            agents=each(f64),
            reporting=each(f64),
            epsilon=each(f64),
            rounds=each(f64),
            gap=each(f64),
            wait=each(i64),
            weights=each(f64, layout.weights),
        )
        parameters = {name: each(f64, *size) for name, size in layout.parameters}
        grid = each(i64, layout.points)
        return jax.jit(sharded).lower(rule, parameters, grid, each(u32), each(u32)).compile()


def spans_processes(devices: Sequence[jax.Device]) -> bool:
    """Tells whether some devices belong to other processes (`jax.distributed`)."""
    return any(device.process_index != jax.process_index() for device in devices)


def threads(devices: Sequence[jax.Device]) -> int:
    """Returns how many batches run at once.

    A lone CPU device runs a batch on one core; several batches at once use the others.
    """
    if len(devices) == 1 and devices[0].platform == "cpu":
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    return 1


def run_lanes(
    lanes: Lanes, batch: int, devices: tuple[jax.Device, ...]
) -> Iterator[tuple[int, Outcome]]:
    """Yields (first lane, outcome) of each batch, as they finish.

    Where the devices belong to several processes, all of them must call this with the same lanes;
    each gets all outcomes.
    """
    layout = lanes.cells[0].layout
    compiled = executable(layout, batch, devices)
    rows = [(cell.rule, cell.parameters, cell.padded_grid) for cell in lanes.cells]
    table = jax.tree.map(lambda *values: np.stack(values), *rows)
    shared = spans_processes(devices)
    mesh = Mesh(np.array(devices), ("lanes",))
    sharding = NamedSharding(mesh, PartitionSpec("lanes"))

    def one(start: int) -> tuple[int, Outcome]:
        seed = np.asarray(lanes.seed[start : start + batch], np.uint32)
        fill = (0, batch - len(seed))
        which = np.pad(lanes.cell[start : start + batch], fill, mode="edge")
        arguments = (
            *jax.tree.map(lambda values: values[which], table),
            np.full(batch, lanes.root_seed, np.uint32),
            np.pad(seed, fill, mode="edge"),
        )
        with own_settings(mesh):
            if shared:
                arguments = jax.tree.map(
                    lambda x: jax.make_array_from_callback(x.shape, sharding, x.__getitem__),
                    arguments,
                )
            outcome = compiled(*arguments)
            if shared:
                outcome = multihost_utils.process_allgather(outcome, tiled=True)
            return start, jax.tree.map(lambda x: np.asarray(x)[: len(seed)], outcome)

    starts = iter(range(0, len(lanes.seed), batch))
    with ThreadPoolExecutor(threads(devices)) as pool:
        # Only as many in flight as there are threads: memory is bounded by the batch.
        running: set[Future[tuple[int, Outcome]]] = set()
        try:
            while True:
                for start in starts:
                    running.add(pool.submit(one, start))
                    if len(running) > threads(devices):
                        break
                if not running:
                    return
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()


@contextmanager
def _progress_bar(seeds: int, batches: int, progress: bool | None) -> Iterator[Any]:
    out = told()
    if progress is not None:
        flag("progress", progress)
    shown = out.isatty() if progress is None else progress
    if not shown or batches < 2:
        yield lambda done: None
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (
        bars.TextColumn("seeds"),
        bars.BarColumn(),
        bars.MofNCompleteColumn(),
        bars.TaskProgressColumn(show_speed=True),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=Console(file=out), transient=True) as bar:
        task = bar.add_task("seeds", total=seeds)
        yield lambda done: bar.advance(task, done)


class Collected:
    """The lanes' results, filled in batch by batch."""

    def __init__(self, seeds: int, points: int, waits: bool) -> None:
        self.regret = np.empty((seeds, points))
        self.exploitation = np.empty((seeds, points)) if waits else None
        self.rounds_by = np.empty((seeds, points), np.int32)
        self.rounds = np.empty(seeds, np.int32)
        self.active_arms = np.empty(seeds, np.int32)
        self.chosen_arm = np.empty(seeds, np.int32)
        self.agents_lost = np.empty(seeds, np.int32)

    def put(self, start: int, outcome: Outcome) -> None:
        """Stores a batch at the place of its first lane."""
        where = slice(start, start + len(outcome.rounds))
        kept = slice(self.regret.shape[1])
        self.regret[where] = outcome.regret[:, kept]
        if self.exploitation is not None:
            self.exploitation[where] = outcome.exploitation_regret[:, kept]
        self.rounds_by[where] = outcome.rounds_by[:, kept]
        self.rounds[where] = outcome.rounds
        self.active_arms[where] = outcome.active_arms
        self.chosen_arm[where] = outcome.chosen_arm
        self.agents_lost[where] = outcome.agents_lost


def _dataset(
    collected: Collected, exchange: Exchange, seeds: range | np.ndarray, grid: np.ndarray
) -> xr.Dataset:
    series = ("seed", "time")
    size = collected.regret.shape

    server, peers_bound, peers_used = links_per_round(exchange)

    def links(per_round: int) -> np.ndarray:
        if per_round == 0:
            return np.broadcast_to(np.int64(0), size)
        return collected.rounds_by * np.int64(per_round)

    def variable(dims: Any, values: Any, name: str, units: str, **more: str) -> Any:
        return dims, values, {"long_name": name, "units": units, **more}

    exploitation = collected.exploitation
    if exploitation is None:
        exploitation = np.broadcast_to(0.0, size)
    bound, used = exchange.meters
    return xr.Dataset(
        data_vars={
            "regret": variable(series, collected.regret, "cumulative regret", "reward"),
            "exploitation_regret": variable(
                series, exploitation, "cumulative regret while waiting", "reward"
            ),
            "server_links": variable(series, links(server), "agent-server links", "links"),
            "peer_links_bound": variable(
                series,
                links(peers_bound),
                f"agent-agent links, meter {bound!r}",
                "links",
                meter=bound,
            ),
            "peer_links_used": variable(
                series,
                links(peers_used),
                f"agent-agent links, meter {used!r}",
                "links",
                meter=used,
            ),
            "rounds": variable("seed", collected.rounds, "completed rounds", "rounds"),
            "active_arms": variable("seed", collected.active_arms, "active arms at T", "arms"),
            "chosen_arm": variable("seed", collected.chosen_arm, "arm played at T", "index"),
            "agents_lost": variable(
                "seed", collected.agents_lost, "agents without a best arm at T", "agents"
            ),
        },
        coords={
            "seed": ("seed", np.asarray(seeds, np.int64)),
            "time": variable("time", grid, "slot", "slot"),
            "best_arm_lost": ("seed", collected.agents_lost > 0, {"long_name": "best arm lost"}),
        },
    )


def versions() -> dict[str, str]:
    """Returns the versions of the packages that a result can depend on."""
    names = ("fmab_jax", "jax", "jaxlib", "numpy", "scipy", "networkx", "xarray", "h5netcdf")
    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = __version__ if name == "fmab_jax" else "not installed"
    return found
