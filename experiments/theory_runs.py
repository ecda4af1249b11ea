"""What runs of KL-SE show of Theorem 5 of docs/theory.md, and numbers that its sentences state.

A hard instance is run so often that losses of the best arm can be counted. What the pairs of tilts
show in the end is computed.
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
from experiments import common
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.sampling import evidence

HORIZON = 10**5
# Three arms that nothing but luck tells apart. Runs for each seed of the other experiments.
HARD = fmab.Problem([0.5 + 1e-9, 0.5, 0.5], agents=8)
FAILURE, RUNS_PER_SEED = 1e-3, 1000
# Arms that are split take ten times as long: a part of the runs.
PARTS = {"arms split": 0.1}
EPSILONS = (0.1, 1.0, 10.0)
WAYS: Mapping[str, dict[str, Any]] = {
    "all report": {},
    "secure sum": {"secure": True},
    "half of them report": {"participation": 0.5},
    "arms split": {"split": True},
}
# Pairs of means that D_16 is computed for, and the part of D_infinity from which beta begins.
PAIRS, ENDS, LEAST, STEPS = 300, (0.02, 0.98), 1e-4, 400
APART = (0.1, 0.9)


def horizons(given: Sequence[int]) -> list[int]:
    """Returns the one horizon of the page."""
    return [HORIZON]


def sweep(
    horizon: int, seeds: int, store: Path | None = None, ways: Sequence[str] = tuple(WAYS)
) -> dict[str, xr.Dataset]:
    """Runs the hard instance; returns a summary by way."""
    return {
        way: fmab.sweep(
            fmab.kl_se,
            HARD,
            **{"epsilon": list(EPSILONS), "first": 1, "failure": FAILURE, **WAYS[way]},
            horizon=horizon,
            seeds=round(PARTS.get(way, 1.0) * RUNS_PER_SEED * seeds),
            times=1,
            keep="summary",
            store=store and store.with_name(f"{store.name}-{way.replace(' ', '-')}"),
        )
        for way in ways
    }


QUICK = ("all report",)


def draw(results: Mapping[int, Mapping[str, xr.Dataset]], folder: Path) -> list[Path]:
    """Writes a table of losses, and one of what pairs show."""
    (hard,) = results.values()
    folder.mkdir(parents=True, exist_ok=True)
    tables = {"lost": lost_rows(hard), "shown": shown_rows()}
    return [common.save_rows(r, folder / f"theory_{name}.csv") for name, r in tables.items()]


def lost_rows(hard: Mapping[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Returns how often the best arm was lost, beside what Theorem 5 (b) allows."""
    rows = []
    for way, data in hard.items():
        for epsilon in EPSILONS:
            cell = data.sel(epsilon=epsilon)
            runs, lost = int(cell.seeds), int(cell.best_arm_lost)
            rows.append(
                {
                    "way": way,
                    "ε": f"{epsilon:g}",
                    "runs": runs,
                    "lost": lost,
                    "upper": lost_interval(lost, runs, common.LEVEL)[1],
                    "allowed": allowed_share(int(data.horizon), "split" in WAYS[way]),
                }
            )
    return rows


def allowed_share(horizon: int, split: bool) -> float:
    """Returns the share of runs of the hard instance that (b) allows to lose the best arm."""
    # Totals of pulls double from 1. The first epoch has all arms, later ones two or more.
    slots, pulls, rounds = horizon * (HARD.agents if split else 1), 1, 0
    while HARD.arms + 2 * (pulls - 1) <= slots:
        pulls, rounds = 2 * pulls, rounds + 1
    return FAILURE * (HARD.arms - 1) / HARD.arms * (rounds / (rounds + 1))


def shown_rows() -> list[dict[str, Any]]:
    """Returns D_16 over D_infinity of random means, by epsilon, and the price of two arms."""
    low, high = np.sort(np.random.default_rng(0).uniform(*ENDS, (PAIRS, 2)), axis=1).T
    rows = []
    for epsilon in (*EPSILONS, math.inf):
        shares = [
            sixteen(*means, epsilon) / most(*means, epsilon)
            for means in zip(low, high, strict=True)
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
        values = np.asarray(_both(grid, low, high, epsilon))
        place = int(np.argmin(values))
        grid = np.linspace(grid[max(place - 1, 0)], grid[min(place + 1, STEPS - 1)], STEPS)
    return float(values.min())


def shown(beta: Any, low: float, high: float, epsilon: float) -> Float[np.ndarray, " beta"]:
    """Returns what the best of the 16 pairs for ``beta`` shows of each reward, without noise."""
    l, k = map(np.asarray, _tilts(beta, epsilon))  # noqa: E741
    a, b = -np.expm1(-l), -np.expm1(-k)
    q = np.clip((1.0 + 1.0 / a - 1.0 / b) / 2.0, 0.0, 1.0)
    largest = np.log1p(-q * a) + np.log1p(-(1.0 - q) * b)
    evidence_shown: Any = (-l * low - k * (1.0 - high) - largest).max(axis=1)
    return evidence_shown


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of numbers in double precision, compiled once."""
    program = jax.jit(function)

    def run(*numbers: Any) -> Any:
        with jax.enable_x64(True):
            return program(*(jnp.asarray(number, jnp.float64) for number in numbers))

    return run


@_compiled
def _both(q: Any, low: Any, high: Any, epsilon: Any) -> Any:
    below = evidence.private_divergence(low, q, epsilon)
    return below + evidence.private_divergence(1.0 - high, 1.0 - q, epsilon)


@_compiled
def _tilts(beta: Any, epsilon: Any) -> Any:
    choose = jax.vmap(evidence.choose_tilts, (0, None, None, None))
    tilts = choose(beta, jnp.ones_like(epsilon), jnp.zeros_like(epsilon)[None], epsilon)
    return tilts.low, tilts.high


def sixteen(low: float, high: float, epsilon: float) -> float:
    """Returns D_16: the largest number below which the pairs for every beta show more than beta."""
    end = most(low, high, epsilon)
    grid = end * np.geomspace(LEAST, 1.0, STEPS)
    for _ in range(2):
        fails = shown(grid, low, high, epsilon) <= grid
        first = int(np.argmax(fails)) if fails.any() else len(grid) - 1
        grid = np.linspace(grid[max(first - 1, 0)], grid[first], STEPS)
    return float(grid[0])
