"""What the README's choice needs beside the arena: smaller radii at a leak of 1, agents differ."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common

AGENTS, ARMS, HORIZON, SPREAD = 50, 100, 10**5, 1.0
ALGORITHMS: Mapping[str, Any] = {
    "CDP-MAB, radius × 0.2": fmab.cdp_mab(epsilon_message=1.0, scale=0.2),
    "CDP-MAB, radius × 0.3": fmab.cdp_mab(epsilon_message=1.0, scale=0.3),
    "KL-SE": fmab.kl_se(1.0),
}
horizons = common.one_horizon(HORIZON)


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs the algorithms on the paper's instance with agents that differ as far as they can."""
    return fmab.sweep(
        dict(ALGORITHMS),
        fmab.Problem(agents=AGENTS, arms=ARMS, spread=SPREAD),
        horizon=horizon,
        seeds=seeds,
        times=[horizon],
        store=store,
    )


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Writes a table: regret at T, and how many seeds lost the best arm."""
    ((horizon, data),) = results.items()
    rows = []
    for label in ALGORITHMS:
        cell = data.sel(algorithm=label).isel(time=-1)
        rows.append(
            {
                "algorithm": label,
                "T": horizon,
                "spread": SPREAD,
                "seeds": cell.sizes["seed"],
                "regret at T": common.interval(cell.regret.values),
                "seeds that lost the best arm": int(cell.best_arm_lost.sum()),
            }
        )
    folder.mkdir(parents=True, exist_ok=True)
    return [common.save_rows(rows, folder / "choices.csv")]
