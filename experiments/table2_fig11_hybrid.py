"""Table II and figure 11: HDP-MAB with 100 agents in six kinds of components.

The paper: similar regret per agent in all cases; cost grows from case 1 to case 3, is smaller on
stars (case 5), and hybrid structures cost far less than a server alone (case 6) or a graph alone
(case 3). Only the meter "edges" fits that; the meter "sac" is theorem 4's. Case 2 is printed as
{63, 24, 10, 6, 7}, which sums to 110; {53, ...} sums to 100 and is run. Its random graphs are not
specified: connected Erdos-Renyi, edge probability 2 ln(20) / 20.
"""

from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs
from fmab_jax.plots import style

AGENTS, ARMS = 100, 100
EPSILON = 1
CASES = {
    "case 1": "20x5:complete",
    "case 2": "53,24,10,6,7:complete",
    "case 3": "100:complete",
    "case 4": "20x5:random",
    "case 5": "20x5:star",
    "case 6": "1x100",
}
CASE_2_AS_PRINTED, AGENTS_AS_PRINTED = "63,24,10,6,7:complete", 110
SERVER_PRICE, PEER_PRICE = 50, 1
MARKS = {
    "edges": {"marker": "s", "color": style.COLOURS[0], "markersize": 3},
    "sac": {"marker": "o", "color": style.COLOURS[1], "markersize": 6, "markerfacecolor": "none"},
}
METERS = tuple(MARKS)


def sweep(horizon: int, seeds: int, store: Path | None = None) -> xr.Dataset:
    """Runs every case, paired."""
    return fmab.sweep(
        fmab.hdp_mab,
        fmab.Problem.uniform(AGENTS, ARMS),
        epsilon=EPSILON,
        components=CASES,
        horizon=horizon,
        seeds=seeds,
        times=common.slots(horizon),
        sum_agents=False,
        store=store,
    )


def round_cost(facts: exchange.Exchange, meter: str) -> int:
    """Returns what one round costs."""
    return SERVER_PRICE * facts.on("server") + PEER_PRICE * facts.on(meter)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time and costs, and writes the table."""
    return [*_figure(results, folder), *_table(results, folder)]


def _figure(results: common.Results, folder: Path) -> list[Path]:
    figure, axes = common.panels(len(results), rows=3, height=1.6)
    places = np.arange(len(CASES))
    for (top, middle, bottom), data in zip(axes.T, results.values(), strict=True):
        server = data.regret.sel(components="case 6").load()
        curves = {case: data.regret.sel(components=case).load() for case in CASES}
        same = [case for case, regret in curves.items() if (regret.values == server.values).all()]
        name = "cases " + ", ".join(case.removeprefix("case ") for case in same)
        curves = {name: server} | {case: curves[case] for case in CASES if case not in same}
        handles = common.draw_bands(top, common.regret_bands(curves))
        common.draw_bands(middle, common.difference_bands(curves, name))
        last = data.isel(time=-1)
        for meter, mark in MARKS.items():
            cost = fmab.communication_cost(last, SERVER_PRICE, PEER_PRICE, meter).mean("seed")
            bottom.plot(places, cost, linestyle="none", **mark)
        top.set(xlim=0, ylim=0)
        middle.set(xscale="log")
        bottom.set(yscale="log", xlim=(-0.5, len(CASES) - 0.5))
        bottom.set_xticks(places, [case.removeprefix("case ") for case in CASES])
        middle.set_xlabel("slot t", fontsize=style.FONT, labelpad=2)
    common.title_horizons(axes, results)
    common.label_axes(
        axes,
        ["regret\n(reward, sum over agents)", "minus case 6\n(paired)", "cost at T\n(price)"],
        "case",
    )
    handles += [
        Line2D([], [], linestyle="none", label=f"cost, meter {meter}", **mark)
        for meter, mark in MARKS.items()
    ]
    listed = "; ".join(f"{case.removeprefix('case ')}: {spec}" for case, spec in CASES.items())
    caption = common.caption(
        f"HDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        f"Cases: {listed}. Cases without a wait have the same regret, seed by seed. Middle: regret "
        "minus that of case 6 (logarithmic time). Bottom: mean cost at T, "
        f"{SERVER_PRICE} per server link, {PEER_PRICE} per peer link, on the meters edges and sac",
    )
    return common.save(style.finish(figure, handles, caption), folder, "fig11_hybrid")


def _table(results: common.Results, folder: Path) -> list[Path]:
    rows = []
    for horizon, data in results.items():
        last = data.isel(time=-1)
        for case, spec in CASES.items():
            facts = exchange.sinks(graphs.components(spec, AGENTS))
            cell = last.sel(components=case)
            costs = {
                f"cost at T, {meter}": common.interval(
                    fmab.communication_cost(cell, SERVER_PRICE, PEER_PRICE, meter)
                )
                for meter in METERS
            }
            difference = cell.regret.values - last.regret.sel(components="case 6").values
            rows.append(
                {
                    "T": horizon,
                    "case": case.removeprefix("case "),
                    "components": spec,
                    "wait (slots)": facts.wait,
                    "server links a round": facts.on("server"),
                    "edges a round": facts.on("edges"),
                    "sac links a round": facts.on("sac"),
                    **{f"cost a round, {meter}": round_cost(facts, meter) for meter in METERS},
                    "rounds": common.interval(cell.rounds_made),
                    **costs,
                    "regret at T": common.interval(cell.regret),
                    "minus case 6": common.interval(difference),
                    "lost the best arm": int(cell.best_arm_lost.sum()),
                }
            )
    printed = exchange.sinks(graphs.components(CASE_2_AS_PRINTED, AGENTS_AS_PRINTED))
    costs = " and ".join(f"{round_cost(printed, meter)} ({meter})" for meter in METERS)
    notes = common.caption(
        f"HDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, c1 = {SERVER_PRICE} per "
        f"server link, c2 = {PEER_PRICE} per agent-agent link",
        results,
        "Regret is summed over agents; minus case 6: paired difference, seed by seed. Case 2 as "
        f"printed, {CASE_2_AS_PRINTED}, has {AGENTS_AS_PRINTED} agents; a round would cost {costs}",
        bars="Numbers: means over the seeds; in brackets",
    )
    return common.save_table(rows, folder, "table2_hybrid", notes)
