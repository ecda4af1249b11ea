"""The tests of the contract, for this package's algorithms and for plug-ins."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.tree_util import tree_leaves_with_path

from fmab_jax.algorithms.base import Algorithm, Outcome
from fmab_jax.core.curves import MAX_POINTS
from fmab_jax.core.problems import Problem
from fmab_jax.core.rewards.contract import check_everywhere
from fmab_jax.errors import Refusal, count, refuse
from fmab_jax.run import batches, compilation
from fmab_jax.run.configs import Config, bind, check_given, room_for
from fmab_jax.run.contract import PROMISES, asking, broken
from fmab_jax.run.resources import checked_devices

# Rounding of a regret that is summed over many slots.
_ROUNDING = 1e-9
_ALPHA = 1e-6


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
    problem = Problem.uniform(5, 7) if problem is None else problem
    check_given(algorithm, problem)
    if reference is not None and not callable(reference):
        refuse("reference", reference, "a function, or None", "see help(fmab_jax.check_algorithm)")
    devices = checked_devices(None)
    told = []

    def kept(promise: str, note: str = "") -> None:
        told.append(f"{'not checked' if note else 'kept'}: {PROMISES[promise]}{note}")

    def run(config: Config, batch: int = 8, which: Any = None, used: Any = devices[:1]) -> Outcome:
        configs = [config] if which is None else [config, other]
        order = np.zeros(seeds, np.int32) if which is None else which
        work = batches.Trials(configs, order, np.arange(seeds), 0)
        parts = dict(batches.run_trials(work, batch, tuple(used)))
        ordered = [parts[start] for start in sorted(parts)]
        return jax.tree.map(lambda *rows: np.concatenate(rows), *ordered)

    twin = copy.copy(algorithm)
    try:
        equal = twin == algorithm and hash(twin) == hash(algorithm)
    except TypeError as error:
        broken(algorithm, "value", f"no hash ({error})")
    if not equal:
        broken(algorithm, "value", "a copy that is not equal")
    try:
        with asking(type(algorithm)):
            description = algorithm.describe()
        json.dumps(description, allow_nan=False)
    except Refusal:
        raise
    except (TypeError, ValueError) as error:
        broken(algorithm, "value", f"a description that is not JSON ({error})")
    kept("value")
    # Every slot, which also shows that regret is exact wherever it is recorded.
    bound = partial(bind, algorithm, problem, horizon)
    room, whole = room_for(problem.agents), np.arange(horizon + 1)
    dense = bound(times=whole)
    # A neighbour of the same program that ends sooner.
    short = whole * max(1, horizon // 3) // horizon
    other = dense._replace(
        trial=algorithm.bind(problem, int(short[-1]), exchange=dense.exchange, room=room),
        grid=np.pad(short, (0, len(dense.grid) - len(short)), mode="edge"),
    )
    if other.program != dense.program:
        # If the two trials cannot share a program, the neighbours are other seeds of one trial.
        other = dense
    every = run(dense)
    for promise in ("outcome", "finite", "grows", "rounds"):
        kept(promise)
    _at_most(algorithm, every, dense)
    compilation.compile_program.cache_clear()
    _same(algorithm, "again", every, run(bound(times=whole)))
    kept("again")
    slots = np.unique(np.geomspace(1, horizon, 7).astype(np.int64))
    some = run(bound(times=slots))
    _same(algorithm, "exact", every.regret[:, slots], some.regret[:, : len(slots)])
    kept("exact")
    _same(algorithm, "batch", every, run(dense, batch=4 * 8))
    mixed = np.arange(seeds, dtype=np.int32) % 2
    own = jax.tree.map(lambda x: x[mixed == 0], (every, run(dense, which=mixed)))
    _same(algorithm, "batch", *own)
    kept("batch")
    _same(algorithm, "room", every, run(bound(times=whole, room=4 * room)))
    kept("room")
    if len(devices) > 1:
        _same(algorithm, "devices", every, run(dense, batch=8 * len(devices), used=devices))
    kept("devices", " There is one device here." * (len(devices) == 1))
    check_everywhere(problem.rewards)
    kept("rewards")
    if reference is not None:
        _same_law(algorithm, problem, horizon, reference, runs)
    kept("law", " There is no reference." * (reference is None))
    return told


def _at_most(algorithm: Algorithm, outcome: Outcome, config: Any) -> None:
    """Checks that no slot costs more than the worst arm for every agent."""
    problem, largest = config.problem, 1.0
    if not problem.drawn:
        largest = float(np.ptp(np.asarray(problem.means).mean(axis=0)))
    most = problem.agents * config.grid.astype(np.float64) * largest
    over = outcome.regret > most[None, :] * (1 + _ROUNDING) + _ROUNDING
    if over.any() and np.isfinite(problem.rewards.sensitivity):
        seed, slot = (int(i) for i in np.argwhere(over)[0])
        what = f"regret {outcome.regret[seed, slot]} of seed {seed} by slot {config.grid[slot]}"
        broken(algorithm, "grows", what)


def _same(algorithm: Algorithm, promise: str, first: Any, second: Any) -> None:
    pairs = zip(tree_leaves_with_path(first), jax.tree.leaves(second), strict=True)
    for (path, one), two in pairs:
        points = min(np.shape(one)[-1], np.shape(two)[-1]) if np.ndim(one) > 1 else None
        here, there = (_bytes(x[..., :points] if points else x) for x in (one, two))
        if here.shape != there.shape or (here != there).any():
            seed = int((here != there).any(axis=1).argmax()) if here.shape == there.shape else 0
            field = jax.tree_util.keystr(path).strip(".[]'") or "regret"
            broken(algorithm, promise, f"{field} of seed {seed} that differs")


def _bytes(values: Any) -> np.ndarray:
    """Returns [seed, byte]: numbers that print alike may differ, and NaN differs from itself."""
    rows = np.ascontiguousarray(values)
    return rows.view(np.uint8).reshape(len(rows), -1)


def _same_law(
    algorithm: Algorithm,
    problem: Problem,
    horizon: int,
    reference: Callable[[np.random.Generator, np.ndarray, int], float],
    runs: int,
) -> None:
    from scipy.stats import ks_2samp

    fixed = problem.fixed(0)
    means = np.broadcast_to(np.asarray(fixed.means), (fixed.agents, fixed.arms))
    rng = np.random.default_rng(20240607)
    slow = np.array([reference(rng, np.array(means), horizon) for _ in range(runs)])
    config = bind(algorithm, fixed, horizon, times=1)
    work = batches.Trials([config], np.zeros(4 * runs, np.int32), range(4 * runs), 0)
    parts = batches.run_trials(work, 64, tuple(checked_devices(None)))
    fast = np.concatenate([outcome.regret[:, 0] for _, outcome in parts])
    chance = ks_2samp(slow, fast).pvalue
    if chance < _ALPHA:
        ends = f"means {slow.mean():.6g} and {fast.mean():.6g}"
        broken(algorithm, "law", f"p = {chance:.2g} (Kolmogorov-Smirnov), {ends}")
