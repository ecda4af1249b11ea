"""Tests the contract of an algorithm, of this package or of a plug-in."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import partial

import jax
import numpy as np
from jax.tree_util import tree_leaves_with_path

from fmab_jax.algorithms.base import Algorithm
from fmab_jax.errors import count, refuse
from fmab_jax.parts.rewards.law_checks import check_numbers
from fmab_jax.parts.trials import Outcome
from fmab_jax.parts.worlds.world_checks import check_world
from fmab_jax.records.problem import Problem
from fmab_jax.run import batches, compilation
from fmab_jax.run.configs import Config, bind, check_types, pad_agents
from fmab_jax.run.promises import PROMISES, raise_breach, refuse_errors
from fmab_jax.run.resources import checked_devices
from fmab_jax.sampling.curves import MAX_POINTS
from fmab_jax.sampling.shapes import PyTree

# Rounding of a regret that is summed over many slots.
_ROUNDING = 1e-9
_ALPHA = 1e-6
# Seeds for which a world of one's own is checked.
_WORLD_SEEDS = 1000


def check_algorithm(
    algorithm: Algorithm,
    problem: Problem | None = None,
    *,
    horizon: int = 600,
    seeds: int = 24,
    reference: Callable[[np.random.Generator, np.ndarray, int], float] | None = None,
    runs: int = 300,
) -> list[str]:
    """Runs the tests of the contract on an algorithm, this package's or anybody's own.

    Args:
        algorithm: Configured, such as ``MyUCB(alpha=2)``.
        problem: On what; by default 5 agents that share 7 arms.
        horizon: T, below 100,000; every slot is recorded once.
        seeds: How many, at least 8.
        reference: A slow simulation to compare with: (random generator, means [agent, arm], T) to
            the final regret of one run on these means. Without one the law is not checked.
        runs: Of the reference; four times as many seeds are compared with it.

    Returns:
        A line for each promise that was checked, or not and why.

    Raises:
        Refusal: For the first promise that is broken; the line says which, and what was seen.

    Example:
        >>> import fmab_jax as fmab
        >>> len(fmab.check_algorithm(fmab.cdp_mab(0.5), horizon=300))
        12
    """
    seeds = count("seeds", seeds, 8, 10**5, "give at least 8 seeds")
    remedy = "give fewer slots T: each is recorded once"
    horizon = count("horizon", horizon, 1, MAX_POINTS - 1, remedy)
    runs = count("runs", runs, 8, 10**6, "give how often the reference runs")
    problem = Problem(agents=5, arms=7) if problem is None else problem
    check_types(algorithm, problem)
    if reference is not None and not callable(reference):
        refuse("reference", reference, "a function, or None", "see help(fmab_jax.check_algorithm)")
    devices = checked_devices(None)
    _check_value(algorithm)
    config = bind(algorithm, problem, horizon)
    with refuse_errors(type(problem.world)):
        check_world(config.bound, horizon, 0, np.arange(_WORLD_SEEDS))
    _check_bits(algorithm, problem, horizon, seeds, devices)
    check_numbers(problem.rewards)
    unchecked = {} if len(devices) > 1 else {"devices": " There is one device here."}
    if reference is not None:
        _check_law(algorithm, problem, horizon, reference, runs, devices)
    else:
        unchecked["law"] = " There is no reference."
    return [
        f"{'not checked' if name in unchecked else 'kept'}: {text}{unchecked.get(name, '')}"
        for name, text in PROMISES.items()
    ]


def _check_bits(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    seeds: int,
    devices: tuple[jax.Device, ...],
) -> None:
    """Checks a run of every slot, and that other runs of the same seeds have the same bits."""
    bound, run = partial(bind, algorithm, problem, horizon), partial(_run_seeds, seeds)
    same = partial(_check_same, algorithm)
    # Every slot, which also shows that regret is exact wherever it is recorded.
    slots, one_device = np.arange(horizon + 1), devices[:1]
    config, padded = bound(times=slots), pad_agents(problem.agents)
    whole = run([config], 8, one_device)
    _check_at_most(algorithm, whole, config)
    compilation.compile_program.cache_clear()
    same("again", whole, run([bound(times=slots)], 8, one_device))
    few = np.unique(np.geomspace(1, horizon, 7).astype(np.int64))
    curves = run([bound(times=few)], 8, one_device).regret
    same("exact", whole.regret[:, few], curves[:, : len(few)])
    same("batch", whole, run([config], 32, one_device))
    # A neighbour of the same program ends sooner; without one, it is the same trial.
    short = slots * max(1, horizon // 3) // horizon
    exchange, end = config.exchange, int(short[-1])
    neighbour = config._replace(
        trial=algorithm.bind(problem, end, exchange=exchange, padded_agents=padded),
        grid=np.pad(short, (0, len(config.grid) - len(short)), mode="edge"),
    )
    neighbour = neighbour if neighbour.program == config.program else config
    mixed = run([config, neighbour], 8, one_device)
    same("batch", *jax.tree.map(lambda rows: rows[::2], (whole, mixed)))
    same("padding", whole, run([bound(times=slots, padded_agents=4 * padded)], 8, one_device))
    if len(devices) > 1:
        same("devices", whole, run([config], 8 * len(devices), devices))


def _run_seeds(
    seeds: int, configs: Sequence[Config], batch: int, devices: tuple[jax.Device, ...]
) -> Outcome:
    """Runs seeds in batches; the configurations take turns."""
    order = np.arange(seeds, dtype=np.int32) % len(configs)
    trials = batches.Trials(configs, order, np.arange(seeds), 0)
    parts = dict(batches.run_trials(trials, batch, devices))
    return jax.tree.map(lambda *rows: np.concatenate(rows), *(parts[i] for i in sorted(parts)))


def _check_value(algorithm: Algorithm) -> None:
    twin = copy.copy(algorithm)
    try:
        if twin != algorithm or hash(twin) != hash(algorithm):
            raise_breach(algorithm, "value", "a copy that is not equal")
    except TypeError as error:
        raise_breach(algorithm, "value", f"no hash ({error})")


def _check_at_most(algorithm: Algorithm, outcome: Outcome, config: Config) -> None:
    """Checks that no slot costs more than the worst arm for every agent."""
    problem, largest = config.problem, 1.0
    if not problem.drawn:
        largest = float(np.ptp(np.asarray(problem.means).mean(axis=0)))
    most = problem.agents * config.grid.astype(np.float64) * largest
    over = outcome.regret > most[None, :] * (1 + _ROUNDING) + _ROUNDING
    if over.any() and np.isfinite(problem.rewards.sensitivity):
        seed, slot = (int(i) for i in np.argwhere(over)[0])
        regret = f"regret {outcome.regret[seed, slot]} of seed {seed}"
        raise_breach(algorithm, "grows", f"{regret} by slot {config.grid[slot]}")


def _check_same(algorithm: Algorithm, promise: str, first: PyTree, second: PyTree) -> None:
    """Compares bytes, because == calls NaN unequal to itself and -0.0 equal to 0.0."""
    for (path, one), two in zip(tree_leaves_with_path(first), jax.tree.leaves(second), strict=True):
        for seed, (first_row, second_row) in enumerate(zip(one, two, strict=True)):
            if first_row.tobytes() != second_row.tobytes():
                field = jax.tree_util.keystr(path).strip(".[]'") or "regret"
                raise_breach(algorithm, promise, f"{field} of seed {seed} that differs")


def _check_law(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    reference: Callable[[np.random.Generator, np.ndarray, int], float],
    runs: int,
    devices: tuple[jax.Device, ...],
) -> None:
    from scipy.stats import ks_2samp

    fixed = problem.fixed(0)
    means = np.broadcast_to(np.asarray(fixed.means), (fixed.agents, fixed.arms))
    rng = np.random.default_rng(20240607)
    slow = np.array([reference(rng, np.array(means), horizon) for _ in range(runs)])
    config = bind(algorithm, fixed, horizon, times=1)
    fast = _run_seeds(4 * runs, [config], 64, devices).regret[:, 0]
    chance = ks_2samp(slow, fast).pvalue
    if chance < _ALPHA:
        ends = f"means {slow.mean():.6g} and {fast.mean():.6g}"
        raise_breach(algorithm, "law", f"p = {chance:.2g} (Kolmogorov-Smirnov), {ends}")
