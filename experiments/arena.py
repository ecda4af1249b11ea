"""The arena: every algorithm of the package on the paper's instance, with one set of meters.

Parts (a) to (c) of four files: regret over time and against what is sent (a), regret at an equal
leak (b), and agents that differ (c). The authors' own settings are in `arena_settings`, what the
protocols of DDP-MAB send is in `arena_protocols`; `arena_report` says who wins where.

Everybody plays the same instances: 50 agents, 100 arms, means drawn anew for each seed. Algorithms
that step through slots run with all seeds up to T = 10^4, with a tenth of them up to T = 10^5, and
not beyond.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common
from fmab_jax.analysis.words import whole
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

AGENTS, ARMS = 50, 100
EPSILON = 1.0
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0, 50.0)
SPREADS = {"agents alike": 0.0, "agents differ": 1.0}
REFERENCE = "cdp"
DELTA = 1e-6

# Who is told what, from the most to the least; the groups of the figures.
TRUST = {
    "open": "rewards or means in the open",
    "names": "names of arms in the open",
    "noisy": "noisy or summed messages",
    "alone": "nobody is told anything",
}
COLOUR = dict(zip(TRUST, (style.COLOURS[i] for i in (1, 4, 0, 2)), strict=True))
MARKER = dict(zip(TRUST, ("s", "D", "o", "^"), strict=True))


class Entry(NamedTuple):
    """A contestant.

    Attributes:
        label: In figures and tables.
        algorithm: As its authors would set it, at epsilon = 1 where it is private.
        trust: Who is told what, a key of `TRUST`.
    """

    label: str
    algorithm: Any
    trust: str

    @property
    def steps(self) -> bool:
        """Whether it steps through slots."""
        return isinstance(self.algorithm, fmab.IndexPolicy)

    def seeds(self, horizon: int, seeds: int) -> int:
        """Returns how many seeds are run; 0 for none."""
        if not self.steps or horizon <= 10**4:
            return seeds
        return max(2, seeds // 10) if horizon <= 10**5 else 0


LINE_UP = {
    "cdp": Entry("CDP-MAB", fmab.cdp_mab(EPSILON), "noisy"),
    "ddp": Entry("DDP-MAB, ring", fmab.ddp_mab(EPSILON, "ring"), "noisy"),
    "hdp": Entry("HDP-MAB, 10 stars of 5", fmab.hdp_mab(EPSILON, "5x10:star"), "noisy"),
    "dist_dp_se": Entry("Dist-DP-SE", fmab.dist_dp_se(EPSILON), "noisy"),
    "fed_ucb": Entry("Fed_UCB, scaled", fmab.fed_ucb(EPSILON, radius="scaled"), "noisy"),
    "ldp_ucb_pooled": Entry("LDP-UCB-L, pooled", fmab.ldp_ucb(EPSILON, pooled=True), "noisy"),
    "ldp_bits_pooled": Entry(
        "LDP-UCB-B, pooled", fmab.ldp_ucb(EPSILON, bits=True, pooled=True), "noisy"
    ),
    "ucb1_pooled": Entry("UCB1, pooled", fmab.ucb1(pooled=True), "open"),
    "thompson_pooled": Entry("Thompson, pooled", fmab.thompson(pooled=True), "open"),
    "kl_ucb_pooled": Entry("KL-UCB, pooled", fmab.kl_ucb(pooled=True), "open"),
    "fed1_ucb": Entry("Fed1-UCB, f = 5", fmab.fed1_ucb(pulls=5), "open"),
    "dducb": Entry("DDUCB, ring", fmab.dducb("ring"), "open"),
    "gossip_ucb": Entry("Gossip_UCB, scaled", fmab.gossip_ucb("ring", radius="scaled"), "open"),
    "gossip_ucb_theory": Entry("Gossip_UCB, theory", fmab.gossip_ucb("ring"), "open"),
    "dec_ucb": Entry("Dec_UCB, ring", fmab.dec_ucb("ring"), "open"),
    "gosine": Entry("GosInE", fmab.gosine(), "names"),
    "lcc_ucb": Entry("LCC-UCB", fmab.lcc_ucb(), "names"),
    "lcc_ucb_graph": Entry("LCC-UCB, ring", fmab.lcc_ucb("ring"), "names"),
    "single": Entry("CDP-MAB alone", fmab.single_mab(EPSILON), "alone"),
    "dp_se": Entry("DP-SE", fmab.dp_se(EPSILON), "alone"),
    "adap_ucb": Entry("AdaP-UCB", fmab.adap_ucb(EPSILON), "alone"),
    "tree_ucb": Entry("tree UCB", fmab.tree_ucb(EPSILON), "alone"),
    "ldp_ucb": Entry("LDP-UCB-L", fmab.ldp_ucb(EPSILON), "alone"),
    "ldp_bits": Entry("LDP-UCB-B", fmab.ldp_ucb(EPSILON, bits=True), "alone"),
    "ucb1": Entry("UCB1", fmab.ucb1(), "alone"),
    "thompson": Entry("Thompson sampling", fmab.thompson(), "alone"),
    "kl_ucb": Entry("KL-UCB", fmab.kl_ucb(), "alone"),
    "uniform_play": Entry("uniform play", fmab.uniform_play(), "alone"),
}
# Private, at a leak: what is asked for is the epsilon of what others are told; of those that tell
# nobody anything, the epsilon of what they do.
AT_LEAK = {
    "cdp": lambda leak: fmab.cdp_mab(epsilon_message=leak),
    "ddp": lambda leak: fmab.ddp_mab(epsilon_message=leak, graph="ring"),
    "hdp": lambda leak: fmab.hdp_mab(epsilon_message=leak, components="5x10:star"),
    "dist_dp_se": fmab.dist_dp_se,
    "fed_ucb": lambda leak: fmab.fed_ucb(leak, radius="scaled"),
    "ldp_ucb_pooled": lambda leak: fmab.ldp_ucb(leak, pooled=True),
    "ldp_bits_pooled": lambda leak: fmab.ldp_ucb(leak, bits=True, pooled=True),
    "single": fmab.single_mab,
    "dp_se": fmab.dp_se,
    "adap_ucb": fmab.adap_ucb,
    "tree_ucb": fmab.tree_ucb,
}
# Seeds of those that step through slots for every agent, in (b) and (c): 50 agents each.
FEW = 100


def sweep(horizon: int, seeds: int, store: Path | None = None) -> dict[str, dict[str, Any]]:
    """Runs the three parts; returns, by part, results by contestant."""
    uniform = fmab.Problem.uniform(AGENTS, ARMS)
    found: dict[str, dict[str, Any]] = {"a": {}, "b": {}, "c": {}}
    for name, entry in LINE_UP.items():
        number = entry.seeds(horizon, seeds)
        if number:
            found["a"][name] = _run(entry.algorithm, uniform, horizon, number, store, f"a-{name}")
    for name, maker in AT_LEAK.items():
        entry = LINE_UP[name]
        # Above T = 10^4 only those that take a moment.
        if entry.steps and horizon > 10**4:
            continue
        number = min(seeds, FEW) if entry.steps and not entry.algorithm.shared else seeds
        for leak in LEAKS:
            label = f"{name}, {leak:g}"
            kept = f"b-{name}-{leak:g}"
            found["b"][label] = _run(maker(leak), uniform, horizon, number, store, kept)
    for name, entry in LINE_UP.items():
        if getattr(entry.algorithm, "homogeneous_only", False):
            continue
        if entry.steps and (horizon > 10**4 or name.startswith(("ldp", "tree", "adap"))):
            continue
        for words, spread in SPREADS.items():
            problem = fmab.Problem.heterogeneous(AGENTS, ARMS, spread)
            number = min(seeds, FEW) if entry.steps else seeds
            kept = f"c-{name}-{spread:g}"
            found["c"][f"{name}, {words}"] = _run(
                entry.algorithm, problem, horizon, number, store, kept
            )
    return found


def _run(
    algorithm: Any, problem: Any, horizon: int, seeds: int, store: Path | None, kept: str
) -> xr.Dataset:
    """Runs one contestant; its results are kept in a folder of their own."""
    return fmab.sweep(
        type(algorithm),
        problem,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        store=None if store is None else store / kept,
        **algorithm.plain(),
    )
