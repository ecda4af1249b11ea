"""What runs of KL-SE show of Theorem 5 of docs/theory.md, and numbers that its sentences state.

A hard instance is run so often that losses of the best arm can be counted. On the arena's instance
the bound on regret stands beside the regret. What the pairs of tilts show in the end is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

import fmab_jax as fmab
from experiments import common, likelihood
from fmab_jax.analysis import theory
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.core import evidence

HORIZON = 10**5
# Three arms that nothing but luck tells apart. Runs for each seed of the other experiments.
HARD = fmab.Problem([0.5 + 1e-9, 0.5, 0.5], agents=8)
FAILURE, RUNS_PER_SEED = 1e-3, 1000
# Arms that are shared out take ten times as long: a part of the runs.
PARTS = {"arms shared out": 0.1}
EPSILONS = (0.1, 1.0, 10.0)
WAYS: Mapping[str, dict[str, Any]] = {
    "all report": {},
    "secure sum": {"secure": True},
    "half of them report": {"participation": 0.5},
    "arms shared out": {"split": True},
}
# One instance of the arena: the first.
INSTANCE = fmab.Problem.uniform(50, 100).fixed(0)
BOUNDED: Mapping[str, dict[str, Any]] = {
    **{f"ε = {epsilon:g}": {"epsilon": epsilon} for epsilon in EPSILONS},
    "ε = 1, arms shared out": {"epsilon": 1.0, "split": True},
    "ε = 1, secure sum": {"epsilon": 1.0, "secure": True},
    "no noise": {"epsilon": None},
}
# Pairs of means that D_16 is computed for, and the part of D_infinity from which beta begins.
PAIRS, ENDS, LEAST, STEPS = 300, (0.02, 0.98), 1e-4, 400
APART = (0.1, 0.9)


def horizons(given: Sequence[int]) -> list[int]:
    """Returns the one horizon of the page."""
    return [HORIZON]


def sweep(
    horizon: int, seeds: int, store: Path | None = None, ways: Sequence[str] = tuple(WAYS)
) -> dict[str, dict[str, xr.Dataset]]:
    """Runs the hard instance, a summary by way, and the arena's instance, by what bounds it."""
    hard = {}
    for way in ways:
        hard[way] = fmab.sweep(
            fmab.kl_se,
            HARD,
            epsilon=list(EPSILONS),
            first=1,
            failure=FAILURE,
            **WAYS[way],
            horizon=horizon,
            seeds=round(PARTS.get(way, 1.0) * RUNS_PER_SEED * seeds),
            times=1,
            keep="summary",
            store=None if store is None else store.with_name(f"{store.name}-{_file(way)}"),
        )
    plain = {
        way: fmab.simulate(fmab.kl_se(**given), INSTANCE, horizon, seeds, times=1)
        for way, given in BOUNDED.items()
    }
    return {"hard": hard, "plain": plain}


QUICK = ("all report",)


def _file(way: str) -> str:
    return way.replace(" ", "-")


def draw(results: Mapping[int, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Writes a table of losses, one of regrets, and one of what pairs show."""
    (found,) = results.values()
    folder.mkdir(parents=True, exist_ok=True)
    return [
        common.save_rows(rows, folder / f"theory_{name}.csv")
        for name, rows in (
            ("lost", lost_rows(found["hard"])),
            ("regret", regret_rows(found["plain"])),
            ("shown", shown_rows()),
        )
    ]


def lost_rows(hard: Mapping[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Returns how often the best arm was lost, beside what Theorem 5 (b) allows."""
    rows = []
    for way, data in hard.items():
        for epsilon in EPSILONS:
            cell, algorithm = data.sel(epsilon=epsilon), fmab.kl_se(epsilon, **_hard(way))
            runs, lost = int(cell.seeds), int(cell.best_arm_lost)
            bounds = likelihood.likelihood_bounds(
                HARD.means[0], algorithm, HARD.agents, int(data.horizon)
            )
            rows.append(
                {
                    "way": way,
                    "ε": f"{epsilon:g}",
                    "runs": runs,
                    "lost": lost,
                    "upper": lost_interval(lost, runs, common.LEVEL)[1],
                    "allowed": bounds.best_arm_lost,
                }
            )
    return rows


def _hard(way: str) -> dict[str, Any]:
    return {"first": 1, "failure": FAILURE, **WAYS[way]}


def regret_rows(plain: Mapping[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Returns the bound of Theorem 5 (c) beside the regret, and the yardstick of all algorithms."""
    means, rows = INSTANCE.means[0], []
    for way, data in plain.items():
        algorithm, regret = fmab.kl_se(**BOUNDED[way]), data.regret.isel(time=-1).values
        bounds = likelihood.likelihood_bounds(means, algorithm, INSTANCE.agents, HORIZON)
        least = theory.private_lower_bound(means, algorithm.noise_level, HORIZON, INSTANCE.agents)
        rows.append(
            {
                "way": way,
                "seeds": len(regret),
                "bound": bounds.regret,
                "regret": common.interval(regret),
                "least in the end": least,
            }
        )
    return rows


def shown_rows() -> list[dict[str, Any]]:
    """Returns D_16 over D_infinity of random means, by epsilon, and the price of two arms."""
    low, high = np.sort(np.random.default_rng(0).uniform(*ENDS, (PAIRS, 2)), axis=1).T
    rows = []
    for epsilon in (*EPSILONS, math.inf):
        shares = [
            sixteen(*each, epsilon) / most(*each, epsilon) for each in zip(low, high, strict=True)
        ]
        with jax.enable_x64(True):
            numbers = map(jnp.float64, (*APART, epsilon))
            least = float(evidence.private_divergence(*numbers))
        rows.append(
            {
                "ε": f"{epsilon:g}" if math.isfinite(epsilon) else "none",
                "pairs": PAIRS,
                "smallest D_16 / D_∞": min(shares),
                "median D_16 / D_∞": float(np.median(shares)),
                "d_ε / D_∞ at 0.1 and 0.9": least / most(*APART, epsilon),
            }
        )
    return rows


def most(low: float, high: float, epsilon: float) -> float:
    """Returns D_infinity: the least of d_epsilon(low, q) + d_epsilon(1 - high, 1 - q)."""
    # It is convex in q.
    grid = np.linspace(low, high, STEPS)
    for _ in range(3):
        found = np.asarray(_both(grid, low, high, epsilon))
        place = int(np.argmin(found))
        grid = np.linspace(grid[max(place - 1, 0)], grid[min(place + 1, STEPS - 1)], STEPS)
    return float(found.min())


def shown(beta: Any, low: float, high: float, epsilon: float) -> Float[np.ndarray, " beta"]:
    """Returns what the best of the 16 pairs for ``beta`` shows of each reward, without noise."""
    l, k = map(np.asarray, _tilts(beta, epsilon))  # noqa: E741
    a, b = -np.expm1(-l), -np.expm1(-k)
    q = np.clip((1.0 + 1.0 / a - 1.0 / b) / 2.0, 0.0, 1.0)
    largest = np.log1p(-q * a) + np.log1p(-(1.0 - q) * b)
    found: Any = (-l * low - k * (1.0 - high) - largest).max(axis=1)
    return found


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of numbers in double precision, compiled once."""
    program = jax.jit(function)

    def run(*given: Any) -> Any:
        with jax.enable_x64(True):
            return program(*(jnp.asarray(each, jnp.float64) for each in given))

    return run


@_compiled
def _both(q: Any, low: Any, high: Any, epsilon: Any) -> Any:
    below = evidence.private_divergence(low, q, epsilon)
    return below + evidence.private_divergence(1.0 - high, 1.0 - q, epsilon)


@_compiled
def _tilts(beta: Any, epsilon: Any) -> Any:
    of = jax.vmap(evidence.choose_tilts, (0, None, None, None))
    found = of(beta, jnp.ones_like(epsilon), jnp.zeros_like(epsilon)[None], epsilon)
    return found.low, found.high


def sixteen(low: float, high: float, epsilon: float) -> float:
    """Returns D_16: the largest number below which the pairs for every beta show more than beta.

    Every beta of a grid is tried; between the first that fails and the one before it, more.
    """
    end = most(low, high, epsilon)
    grid = end * np.geomspace(LEAST, 1.0, STEPS)
    for _ in range(2):
        fails = shown(grid, low, high, epsilon) <= grid
        first = int(np.argmax(fails)) if fails.any() else len(grid) - 1
        grid = np.linspace(grid[max(first - 1, 0)], grid[first], STEPS)
    return float(grid[0])
