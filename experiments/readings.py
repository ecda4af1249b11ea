"""What changes where the paper can be read in another way, measured; docs/reproduction.md explains.

Each row is a paired difference, seed by seed: regret at T under the other reading minus regret
under the usual one, which the figures show. Of the gap that a budget is built for they show both:
fig06_rounds_smallest_gap the instance's own, which theorems mean, and fig06_rounds 1/16. The last
rows are the price of private waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import fmab_jax as fmab
from experiments import common, figures
from fmab_jax.algorithms.ddp_mab import DDP
from fmab_jax.parts.exchanges import Exchange

AGENTS, ARMS = 50, 100
HYBRID_AGENTS = 100
EPSILON = 1
WAITING_EPSILONS = (1, 0.1, 0.02)
OTHER_GAP = "schedule built for gap 1/16, not the instance's own"
Rows = Iterator[tuple[str, list[np.ndarray]]]


@dataclass(frozen=True)
class Late(DDP):
    """DDP-MAB whose agents wait d_G slots a round, not d_G - 1."""

    name: ClassVar[str] = "ddp_late"

    def exchange(self, agents: int) -> Exchange:
        """Returns the exchange with one more slot of waiting."""
        usual_exchange = super().exchange(agents)
        return replace(usual_exchange, wait=usual_exchange.wait + 1)


def _read(
    words: str, axis: str, algorithm: Any, problem: Any, over: str, **options: Any
) -> Callable[..., Rows]:
    """Returns who runs a reading beside the usual one, which is the first along ``axis``.

    A label of the dimension ``over`` is filled into ``words``.
    """

    def rows(store: Path | None, shared: dict[str, Any]) -> Rows:
        common_options = {name: value for name, value in shared.items() if name not in options}
        data = fmab.sweep(algorithm, problem, store=store, **options, **common_options)
        regret = data.regret.isel(time=-1).transpose(over, axis, "seed")
        for label, (usual, other) in zip(regret[over].values, regret.values, strict=True):
            yield words.format(label), [other, usual]

    return rows


UNIFORM = fmab.Problem(agents=AGENTS, arms=ARMS)
READINGS = {
    "delay": _read(
        "wait d_G slots, not d_G - 1: {}", "algorithm", {"d_G - 1": fmab.ddp_mab, "d_G": Late},
        UNIFORM, "graph", graph=["complete", "star", "ring"],
    ),
    "weights": _read(
        "components weigh the same, not agents: case 2, agents {}", "weights", "hdp",
        None, "spread", agents=HYBRID_AGENTS, arms=ARMS,
        spread={"alike": 0, "apart": 1}, components="53,24,10,6,7:complete",
        weights=["agents", "components"],
    ),
    "gap": _read(
        f"{OTHER_GAP}: R = {{}}", "schedule_gap", "cdp", UNIFORM, "rounds", rounds=[2, 3, 4, 5],
        schedule_gap={"own": None, "1/16": 1 / 16}, sum_agents=True,
    ),
    "waiting": _read(
        "waits go by the noisy means: ring, ε = {:g}", "private_waiting", "ddp", UNIFORM, "epsilon",
        graph="ring", private_waiting=[False, True], epsilon=list(WAITING_EPSILONS),
    ),
}  # fmt: skip
# Those that compile fast.
QUICK = ("delay", "gap")


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] = tuple(READINGS)
) -> dict[str, list[np.ndarray]]:
    """Returns, by reading and setting, [seed] regret at T with it and with the usual one."""
    shared = dict(epsilon=EPSILON, horizon=horizon, seeds=seeds, times=8, sum_agents=False)
    pairs: dict[str, list[np.ndarray]] = {}
    for name in names:
        folder = None if store is None else store.with_name(f"{store.name}-{name}")
        pairs |= READINGS[name](folder, shared)
    return pairs


def shown(reading: str) -> str:
    """Says which figures show the usual reading, and which the other one, if any do."""
    if not reading.startswith(OTHER_GAP):
        return "the usual"
    own, other = (f"fig06_rounds{end}" for end in figures.FILES.values())
    return f"the usual, own gap: {own}; the other, 1/16: {other}"


def leak_of(reading: str) -> str:
    """Returns what both readings leak of one reward to whoever sees messages, Nε."""
    epsilon, agents = EPSILON, AGENTS
    if reading.startswith("waits"):
        epsilon = float(reading.rpartition("ε = ")[2])
    elif reading.startswith("components"):
        agents = HYBRID_AGENTS
    leak = common.leak_of(fmab.cdp_mab(epsilon), agents)
    assert leak is not None
    return f"{leak:g}"


def draw(results: dict[int, dict[str, Any]], folder: Path) -> list[Path]:
    """Writes the table, a row per horizon and reading."""
    rows = [
        {
            "T": horizon,
            "other reading": reading,
            "leak ε": leak_of(reading),
            "in the figures": shown(reading),
            "regret, usual reading": common.interval(usual),
            "regret, other reading": common.interval(other),
            "difference": common.interval(other - usual),
        }
        for horizon, pairs in results.items()
        for reading, (other, usual) in pairs.items()
    ]
    seeds = len(next(iter(next(iter(results.values())).values()))[0])
    notes = (
        f"ε = {EPSILON} where none is told, {common.write_count(seeds)} seeds. Numbers: means over "
        f"the seeds; in brackets: pointwise {100 * common.LEVEL:g} % confidence interval (Student "
        "t). Difference: paired, seed by seed. Leak: Nε of one reward, to whoever sees the "
        "messages of its agent, the same with both readings. In the figures: which of the two they "
        "show; of the gap that a schedule is built for, both."
    )
    return common.save_table(rows, folder, "readings", notes)
