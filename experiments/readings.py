"""What changes where the paper can be read in another way, measured; docs/reproduction.md explains.

Each row is a paired difference, seed by seed: regret at T under the other reading minus regret
under the one that the figures use. The last ones are the price of private waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import fmab_jax as fmab
from experiments import common
from fmab_jax.algorithms.ddp_mab import DDP
from fmab_jax.core.exchanges import Exchange

AGENTS, ARMS = 50, 100
EPSILON = 1
WAITING_EPSILONS = (1, 0.1, 0.02)


@dataclass(frozen=True)
class Late(DDP):
    """DDP-MAB whose agents wait d_G slots a round, not d_G - 1."""

    name: ClassVar[str] = "ddp_late"

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange with one more slot of waiting."""
        found = super().exchange(agents)
        return replace(found, wait=found.wait + 1)


def sweep(horizon: int, seeds: int, store: Path | None = None) -> dict[str, Any]:
    """Returns the rows: other reading, setting, and both regrets [seed] at T."""
    options = dict(epsilon=EPSILON, horizon=horizon, seeds=seeds, times=8, sum_agents=False)
    uniform = fmab.Problem.uniform(AGENTS, ARMS)

    def kept(name: str) -> Path | None:
        return None if store is None else store.with_name(f"{store.name}-{name}")

    delays = fmab.sweep(
        {"d_G - 1": fmab.ddp_mab, "d_G": Late},
        uniform,
        graph=["complete", "star", "ring"],
        store=kept("delay"),
        **options,
    ).regret.isel(time=-1)
    weights = fmab.sweep(
        "hdp",
        fmab.Problem.heterogeneous,
        agents=100,
        arms=ARMS,
        spread={"alike": 0, "apart": 1},
        components="53,24,10,6,7:complete",
        weights=["agents", "components"],
        store=kept("weights"),
        **options,
    ).regret.isel(time=-1)
    budgets = fmab.sweep(
        "cdp",
        uniform,
        rounds=[2, 3, 4, 5],
        schedule_gap={"own": None, "1/16": 1 / 16},
        store=kept("gap"),
        **(options | {"sum_agents": True}),
    ).regret.isel(time=-1)
    waits = fmab.sweep(
        "ddp",
        uniform,
        graph="ring",
        private_waiting=[False, True],
        store=kept("waiting"),
        **(options | {"epsilon": list(WAITING_EPSILONS)}),
    ).regret.isel(time=-1)
    rows = {}
    for graph in delays.graph.values:
        pair = [delays.sel(algorithm=a, graph=graph).values for a in ("d_G", "d_G - 1")]
        rows[f"wait d_G slots, not d_G - 1: {graph}"] = pair
    for spread in weights.spread.values:
        pair = [weights.sel(weights=w, spread=spread).values for w in ("components", "agents")]
        rows[f"components weigh the same, not agents: case 2, agents {spread}"] = pair
    for rounds in budgets.rounds.values:
        pair = [budgets.sel(schedule_gap=g, rounds=rounds).values for g in ("1/16", "own")]
        rows[f"schedule built for gap 1/16, not the instance's own: R = {rounds}"] = pair
    for epsilon in waits.epsilon.values:
        usual, noisy = waits.sel(epsilon=epsilon).transpose("private_waiting", "seed").values
        rows[f"waits go by the noisy means: ring, ε = {epsilon:g}"] = [noisy, usual]
    return rows


def draw(results: dict[int, dict[str, Any]], folder: Path) -> list[Path]:
    """Writes the table, a row per horizon and reading."""
    rows = [
        {
            "T": horizon,
            "other reading": reading,
            "regret, as in the figures": common.interval(usual),
            "regret, other reading": common.interval(other),
            "difference": common.interval(other - usual),
        }
        for horizon, found in results.items()
        for reading, (other, usual) in found.items()
    ]
    seeds = len(next(iter(next(iter(results.values())).values()))[0])
    notes = (
        f"ε = {EPSILON} where none is told, {common.whole(seeds)} seeds. Numbers: means over the "
        f"seeds; in brackets: pointwise {100 * common.LEVEL:g} % confidence interval (Student t). "
        "Difference: paired, seed by seed."
    )
    return common.save_table(rows, folder, "readings", notes)
