"""The paper's figures of regret over time: 4, 5, 6, 8, 10 and 12, a record for each.

What the paper leaves open is in docs/reproduction.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures
from experiments.differences import REGRET, Curves, Figure, Rows, make_sweep, read_bands
from fmab_jax.parts import exchanges as exchange
from fmab_jax.parts import graphs
from fmab_jax.plots import style

AGENTS, ARMS = 50, 100
EPSILON = 1
UNIFORM = fmab.Problem(agents=AGENTS, arms=ARMS)
SPREADS = {"homogeneous": 0, "heterogeneous": 1}


@dataclass(frozen=True)
class Experiment:
    """A sweep and the figures that are drawn from it."""

    sweep: Callable[..., xr.Dataset]
    figures: Sequence[Figure]

    def draw(self, results: common.Results, folder: Path) -> list[Path]:
        """Draws every figure."""
        return [path for figure in self.figures for path in figure.draw(results, folder)]


def _setting(algorithm: str, *more: str) -> str:
    return ", ".join([f"{algorithm}, M = {AGENTS} agents, K = {ARMS} arms", *more])


# --- figure 4: levels of privacy ----------------------------------------------------------------

EPSILONS = [0.1, 0.3, 0.5, 1, None]
_LEVELS = [
    "no noise" if e is None else f"ε = {e:g} (Nε = {AGENTS * e:g})" for e in EPSILONS
]  # fmt: skip
FIG04 = Experiment(
    make_sweep(fmab.cdp_mab, UNIFORM, epsilon=EPSILONS),
    [
        Figure(
            name="fig04_epsilon",
            setting=_setting("CDP-MAB", "all report (p = 1)"),
            alt="Regret of CDP-MAB over time at four ε and without noise; below it, the price of "
            "privacy: regret minus that without noise, seed by seed.",
            curves=lambda data: {
                "no noise": {n: data.regret.isel(epsilon=i) for i, n in enumerate(_LEVELS)}
            },
            quantity="price of privacy",
            label="price of privacy, paired",
            algorithms={
                n.partition(" (")[0]: fmab.cdp_mab(e)
                for n, e in zip(_LEVELS, EPSILONS, strict=True)
            },
            agents=AGENTS,
        )
    ],
)

# --- figure 5: partial participation ------------------------------------------------------------

PARTICIPATIONS = [0.2, 0.4, 0.6, 0.8, 1]
FIG05 = Experiment(
    make_sweep(fmab.cdp_mab, UNIFORM, epsilon=EPSILON, participation=PARTICIPATIONS),
    [
        Figure(
            name="fig05_participation",
            setting=_setting("CDP-MAB", f"ε = {EPSILON}"),
            alt="Regret of CDP-MAB over time where a fifth to all of the agents report; below it, "
            "the difference to p = 1, seed by seed.",
            curves=lambda data: {
                "p = 1": {f"p = {p:g}": data.regret.sel(participation=p) for p in PARTICIPATIONS}
            },
            quantity="difference to p = 1",
            label="more than with p = 1, paired",
            algorithms={
                f"p = {p:g}": fmab.cdp_mab(EPSILON, participation=p) for p in PARTICIPATIONS
            },
            agents=AGENTS,
            notes=["In a round N = ⌈pM⌉ agents report, so that the leak depends on p"],
            has_leak_legend=True,
        )
    ],
)

# --- figure 6: round budgets, built for two gaps ------------------------------------------------

ROUNDS = [2, 3, 4, 5, None]
ORACLE, SIXTEENTH = "Δ: smallest gap (oracle)", "Δ = 1/16"
GAPS = {ORACLE: None, SIXTEENTH: 1 / 16}
# Ends of the names of their pictures.
FILES = {ORACLE: "_smallest_gap", SIXTEENTH: ""}
NO_BUDGET = "no budget"
BUDGET = {
    gap: "With a budget of R rounds the target gap is multiplied by Δ to the power of 1/R in each "
    f"round, without one it is halved; Δ is {words}"
    for gap, words in (
        (ORACLE, "the smallest gap of the seed's own instance, which no agent knows"),
        (SIXTEENTH, "1/16, with which R = 4 makes the steps of no budget"),
    )
}


def name_rounds(rounds: int | None) -> str:
    """Writes a budget of rounds."""
    return NO_BUDGET if rounds is None else f"R = {rounds}"


def _budgets(gap: str) -> Callable[[xr.Dataset], Mapping[str, Curves]]:
    def curves(data: xr.Dataset) -> Mapping[str, Curves]:
        regret = data.regret.sel(schedule_gap=gap)
        return {NO_BUDGET: {name_rounds(r): regret.isel(rounds=i) for i, r in enumerate(ROUNDS)}}

    return curves


FIG06 = Experiment(
    make_sweep(fmab.cdp_mab, UNIFORM, epsilon=EPSILON, schedule_gap=GAPS, rounds=ROUNDS),
    [
        Figure(
            name=f"fig06_rounds{FILES[gap]}",
            setting=_setting("CDP-MAB", f"ε = {EPSILON}", "p = 1"),
            alt=f"Regret of CDP-MAB over time without a budget and with 2 to 5 rounds, built for "
            f"{words}; below it, the difference to no budget, seed by seed.",
            curves=_budgets(gap),
            quantity="difference to no budget",
            label="more than with no budget, paired",
            algorithms={"CDP-MAB": fmab.cdp_mab(EPSILON)},
            agents=AGENTS,
            notes=[BUDGET[gap]],
            near=near,
        )
        for gap, words, near in (
            (ORACLE, "the instance's own smallest gap", 1000),
            (SIXTEENTH, "a gap of 1/16", None),
        )
    ],
)

# --- figure 8: agents that differ, with a server ------------------------------------------------

FEW_AGENTS, FEW_ARMS = 5, 10
NAMES = {"Single": "agents alone", "CDP": "CDP-MAB", "DDP": "DDP-MAB", "HDP": "HDP-MAB"}
# The first of two curves that meet is seen on both sides of the second.
LOOKS8 = (
    {"color": style.COLOURS[0], "linestyle": "-"},
    {"color": style.COLOURS[1], "linestyle": style.STROKES[1]},
    {"color": style.COLOURS[5], "linestyle": "-", "linewidth": 3.2},
    {"color": "black", "linestyle": style.STROKES[2]},
)


def describe_spread(agents: int, arms: int) -> str:
    """Says how heterogeneous means differ, and how many agents they mislead."""
    share = 100 * common.disagreement(agents, arms, SPREADS["heterogeneous"])
    return (
        f"Heterogeneous: {common.DIFFER}; the local best arm of {share:.0f} % of the agents is not "
        "the global best"
    )


@dataclass(frozen=True)
class Heterogeneous:
    """Figure 8: CDP-MAB and agents alone, on two rewards, on logarithmic axes."""

    name: str = "fig08_heterogeneous_central"

    def draw(self, results: common.Results, folder: Path) -> list[Path]:
        """Writes the picture, its words and its numbers."""
        regret = {
            T: {
                f"{NAMES[name]}, {spread}": fmab.confidence_band(
                    data.regret.sel(algorithm=name, spread=spread), common.LEVEL
                )
                for name, spread in product(("Single", "CDP"), SPREADS)
            }
            for T, data in results.items()
        }
        caption = common.caption(
            f"M = {FEW_AGENTS} agents, K = {FEW_ARMS} arms, ε = {EPSILON}",
            common.renamed(results, algorithm=NAMES),
            describe_spread(FEW_AGENTS, FEW_ARMS),
            "An agent alone that settles on its local best arm has lost the global best. The wide "
            "curve, below another, is CDP-MAB on homogeneous rewards",
            common.leaks(
                {"agents alone": fmab.single_mab(EPSILON), "CDP-MAB": fmab.cdp_mab(EPSILON)},
                FEW_AGENTS,
            ),
        )
        alt = "Regret over time of CDP-MAB and of agents alone, where agents are alike and differ."
        rows = pictures.curve_rows({REGRET: regret})
        picture = pictures.Picture(self.name, self.page(rows), caption, alt, rows)
        return pictures.publish(picture, folder)

    def page(self, rows: Rows) -> Callable[[pictures.Page], None]:
        """Returns the function that draws regret over time from the rows of the CSV."""
        regret = read_bands(rows, REGRET)

        def draw(page: pictures.Page) -> None:
            axes = page.panels([f"{REGRET}, sum over agents"], common.titles(regret), height=1.9)[0]
            for panel, bands in zip(axes, regret.values(), strict=True):
                page.handles = []
                for (label, band), look in zip(bands.items(), LOOKS8, strict=True):
                    page.handles += common.draw_bands(panel, {label: band}, **look)
                panel.set(xscale="log", yscale="log")

        return draw


FIG08 = Experiment(
    make_sweep(
        {"Single": fmab.single_mab, "CDP": fmab.cdp_mab},
        None,  # each seed draws its means
        agents=FEW_AGENTS,
        arms=FEW_ARMS,
        epsilon=EPSILON,
        spread=SPREADS,
    ),
    [Heterogeneous()],
)

# --- figure 10: graphs --------------------------------------------------------------------------

GRAPHS = ["complete", "star", "ring", "random"]
_WAITS = ", ".join(f"{name} {exchange.flooding(graphs.make(name, AGENTS)).wait}" for name in GRAPHS)
# All runs draw agent by agent (sum_agents=False), so that pairs share their uniforms.
FIG10 = Experiment(
    make_sweep(fmab.ddp_mab, UNIFORM, epsilon=EPSILON, graph=GRAPHS, sum_agents=False),
    [
        Figure(
            name="fig10_graphs",
            setting=_setting("DDP-MAB", f"ε = {EPSILON}"),
            alt="Regret of DDP-MAB on a star, a ring and a random graph minus that on the complete "
            "graph, seed by seed, over time.",
            curves=lambda data: {"complete": {g: data.regret.sel(graph=g) for g in GRAPHS}},
            quantity="difference to the complete graph",
            label="regret minus that on the complete graph, paired",
            algorithms={name: fmab.ddp_mab(EPSILON, graph=name) for name in GRAPHS},
            agents=AGENTS,
            notes=[f"Slots of waiting a round: {_WAITS}"],
            has_regret=False,
            height=1.9,
        )
    ],
)

# --- figure 12: three structures ----------------------------------------------------------------

MANY_AGENTS = 100
GRAPH, COMPONENTS = "ring", "20x5:ring"
STRUCTURES = "DDP-MAB on a ring, HDP-MAB on five components of 20 agents, each a ring"
SETTING12 = f"M = {MANY_AGENTS} agents, K = {ARMS} arms, ε = {EPSILON}, {STRUCTURES}"
SERVED = {"CDP": fmab.cdp_mab, "DDP": fmab.ddp_mab, "HDP": fmab.hdp_mab}
_OPTIONS: dict[str, dict[str, str]] = {"DDP": {"graph": GRAPH}, "HDP": {"components": COMPONENTS}}


def structures(algorithms: Mapping[str, Any]) -> dict[str, Any]:
    """Returns algorithms of the setting of figure 12, by label."""
    return {NAMES[n]: make(EPSILON, **_OPTIONS.get(n, {})) for n, make in algorithms.items()}


def sweep_structures(algorithms: Mapping[str, Any], spreads: Any) -> Callable[..., xr.Dataset]:
    """Returns a sweep of structures over spreads of the means, paired."""
    return make_sweep(
        algorithms,
        None,  # each seed draws its means
        agents=MANY_AGENTS,
        arms=ARMS,
        epsilon=EPSILON,
        graph=GRAPH,
        components=COMPONENTS,
        spread=spreads,
        sum_agents=False,
    )


FIG12 = Experiment(
    sweep_structures(SERVED, SPREADS),
    [
        Figure(
            name="fig12_heterogeneous_structures",
            setting=SETTING12,
            alt="Regret of DDP-MAB and HDP-MAB minus that of CDP-MAB on the same rewards, seed by "
            "seed, over time, where agents are alike and where they differ.",
            curves=lambda data: {
                f"CDP-MAB, {spread}": {
                    f"{NAMES[n]}, {spread}": data.regret.sel(algorithm=n, spread=spread)
                    for n in SERVED
                }
                for spread in SPREADS
            },
            quantity="difference to CDP-MAB",
            label="regret minus that of CDP-MAB, paired",
            algorithms=structures(SERVED),
            agents=MANY_AGENTS,
            notes=[f"Heterogeneous: {common.DIFFER}"],
            names=NAMES,
            has_regret=False,
            height=1.9,
            # Structures differ in colour, rewards in stroke.
            looks=[
                {"color": style.COLOURS[colour], "linestyle": style.STROKES[stroke]}
                for stroke in range(len(SPREADS))
                for colour in (1, 2)
            ],
        )
    ],
)

EXPERIMENTS = {
    "fig04_epsilon": FIG04,
    "fig05_participation": FIG05,
    "fig06_rounds": FIG06,
    "fig08_heterogeneous_central": FIG08,
    "fig10_graphs": FIG10,
    "fig12_heterogeneous_structures": FIG12,
}
