"""Table II and figure 11: HDP-MAB with 100 agents in six kinds of components.

The paper: similar regret per agent in all cases; cost grows from case 1 to case 3, is smaller on
stars (case 5), and hybrid structures cost far less than a server alone (case 6) or a graph alone
(case 3). Only links counted by edges fit that; hops to the sink are theorem 4's count. Case 2 is
printed as {63, 24, 10, 6, 7}, which sums to 110; {53, ...} sums to 100 and is run. Its random
graphs are not specified: connected Erdos-Renyi, edge probability 2 ln(20) / 20. Regret curves of
the cases coincide, so what is drawn is the paired difference to case 6, and the costs.
"""

from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures
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
WORDS = {
    "case 1": "five complete graphs of 20 agents",
    "case 2": "complete graphs of 53, 24, 10, 6 and 7 agents",
    "case 3": "one complete graph of 100 agents",
    "case 4": "five random graphs of 20 agents",
    "case 5": "five stars of 20 agents",
    "case 6": "no graph, each of 100 agents reports to the server",
}
SERVER = "case 6"
CASE_2_AS_PRINTED, AGENTS_AS_PRINTED = "63,24,10,6,7:complete", 110
SERVER_PRICE, PEER_PRICE = 50, 1
MARKS = {
    "edges": {"marker": "s", "color": style.COLOURS[0], "markersize": 3},
    "sac": {"marker": "o", "color": style.COLOURS[1], "markersize": 6, "markerfacecolor": "none"},
}
METERS = {"edges": "links counted by edges", "sac": "links counted by hops to the sink"}


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
    """Draws differences over time and costs, and writes the table."""
    return [*_figure(results, folder), *_table(results, folder)]


def _figure(results: common.Results, folder: Path) -> list[Path]:
    more, costs, server, same = {}, {}, {}, list(CASES)
    for horizon, data in results.items():
        curves = {case: data.regret.sel(components=case).load() for case in CASES}
        server[horizon] = curves[SERVER]
        more[horizon] = common.difference_bands(curves, SERVER)
        same = [case for case in same if (curves[case].values == curves[SERVER].values).all()]
        last = data.isel(time=-1)
        costs[horizon] = {
            (case, meter): common.interval(
                fmab.communication_cost(last.sel(components=case), SERVER_PRICE, PEER_PRICE, meter)
            )
            for meter in METERS
            for case in CASES
        }
    # Cases that never wait have no difference at all.
    shown = {T: {c: b for c, b in bands.items() if c not in same} for T, bands in more.items()}
    numbers = [case.removeprefix("case ") for case in CASES]

    def page(page: pictures.Page) -> None:
        labels = ["regret minus that of case\N{NO-BREAK SPACE}6, paired", "cost at T"]
        axes = page.panels(labels, common.titles(results), ["slot t", "case"])
        for (top, bottom), horizon in zip(axes.T, results, strict=True):
            page.handles = pictures.draw_difference(top, shown[horizon])
            for meter, mark in MARKS.items():
                means = [costs[horizon][case, meter][0] for case in CASES]
                page.handles += bottom.plot(
                    range(len(CASES)), means, ls="none", label=f"cost, {METERS[meter]}", **mark
                )
            bottom.set(yscale="log", xlim=(-0.5, len(CASES) - 0.5))
            bottom.set_xticks(range(len(CASES)), numbers)

    listed = "; ".join(f"{n}: {words}" for n, words in zip(numbers, WORDS.values(), strict=True))
    zero = ", ".join(case.removeprefix("case ") for case in same)
    caption = common.caption(
        f"HDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        f"Cases: {listed}",
        "Differences are paired, seed by seed, and drawn over the logarithm of time; those of the "
        f"cases that never wait, {zero}, are 0 in every seed",
        common.level_at_end("of case 6", server),
        f"Costs are means at T, {SERVER_PRICE} per link to the server and {PEER_PRICE} per link "
        f"between agents, {' or '.join(METERS.values())}",
    )
    last = max(results)
    ends = ", ".join(f"{float(b['mean'][-1]):+,.1f} ({case})" for case, b in shown[last].items())
    paid = ", ".join(
        f"{costs[last][case, 'edges'][0]:,.0f} and {costs[last][case, 'sac'][0]:,.0f} ({case})"
        for case in CASES
    )
    alt = (
        f"Regret beside case 6 at T = {common.whole(last)}: {ends or 'no difference'}. Costs then, "
        f"with {' and '.join(METERS.values())}: {paid}."
    )
    rows = pictures.curve_rows({"difference to case 6": more}) + [
        {"quantity": f"cost at T, {METERS[meter]}", "T": horizon, "curve": case, "slot": horizon}
        | dict(zip(("mean", "lower", "upper"), interval, strict=True))
        for horizon, found in costs.items()
        for (case, meter), interval in found.items()
    ]
    return pictures.publish(pictures.Picture("fig11_hybrid", page, caption, alt, rows), folder)


def _table(results: common.Results, folder: Path) -> list[Path]:
    rows = []
    for horizon, data in results.items():
        last = data.isel(time=-1)
        for case, spec in CASES.items():
            facts = exchange.sinks(graphs.components(spec, AGENTS))
            cell = last.sel(components=case)
            costs = {
                f"cost at T, {words}": common.interval(
                    fmab.communication_cost(cell, SERVER_PRICE, PEER_PRICE, meter)
                )
                for meter, words in METERS.items()
            }
            difference = cell.regret.values - last.regret.sel(components=SERVER).values
            rows.append(
                {
                    "T": horizon,
                    "case": case.removeprefix("case "),
                    "components": WORDS[case],
                    "wait (slots)": facts.wait,
                    "server links a round": facts.on("server"),
                    **{
                        f"links a round, {words.removeprefix('links ')}": facts.on(meter)
                        for meter, words in METERS.items()
                    },
                    **{
                        f"cost a round, {words}": round_cost(facts, meter)
                        for meter, words in METERS.items()
                    },
                    "rounds": common.interval(cell.rounds_made),
                    **costs,
                    "regret at T": common.interval(cell.regret),
                    "minus case 6": common.interval(difference),
                    "lost the best arm": int(cell.best_arm_lost.sum()),
                }
            )
    printed = exchange.sinks(graphs.components(CASE_2_AS_PRINTED, AGENTS_AS_PRINTED))
    costs = " and ".join(f"{round_cost(printed, m)} ({w})" for m, w in METERS.items())
    notes = common.caption(
        f"HDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, c1 = {SERVER_PRICE} per "
        f"server link, c2 = {PEER_PRICE} per agent-agent link",
        results,
        "Regret is summed over agents; minus case 6: paired difference, seed by seed. Case 2 as "
        f"printed, complete graphs of 63, 24, 10, 6 and 7, has {AGENTS_AS_PRINTED} agents; a round "
        f"would cost {costs}",
        bars="Numbers: means over the seeds; in brackets",
    )
    return common.save_table(rows, folder, "table2_hybrid", notes)
