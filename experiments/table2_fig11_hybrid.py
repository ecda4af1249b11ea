"""Table II and figure 11: HDP-MAB with 100 agents in six kinds of components.

The paper: similar regret per agent in all cases; cost grows from case 1 to case 3, is smaller on
stars (case 5), and hybrid structures cost far less than a server alone (case 6) or a graph alone
(case 3). Only links counted by edges fit that; hops to the sink are theorem 4's count. Case 2 is
printed as {63, 24, 10, 6, 7}, which sums to 110; {53, ...} sums to 100 and is run. Its random
graphs are not specified: connected Erdos-Renyi, edge probability 2 ln(20) / 20. Regret curves of
the cases coincide, so what is drawn is the paired difference to case 6; costs have a picture of
their own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common, differences, pictures
from fmab_jax.parts import exchanges as exchange
from fmab_jax.parts import graphs
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
TICKS = [scale * 10**power for power in range(7) for scale in (1, 3)]
SHORT = {
    "case 1": "1: complete, 5 × 20",
    "case 2": "2: complete, 53 … 6",
    "case 3": "3: complete, 100",
    "case 4": "4: random, 5 × 20",
    "case 5": "5: star, 5 × 20",
    "case 6": "6: no graph",
}
CASE_2_AS_PRINTED, AGENTS_AS_PRINTED = "63,24,10,6,7:complete", 110
SERVER_PRICE, PEER_PRICE = 50, 1
MARKS = {
    "edges": {"marker": "s", "color": style.COLOURS[0], "markersize": 3},
    "sac": {"marker": "o", "color": style.COLOURS[1], "markersize": 6, "markerfacecolor": "none"},
}
METERS = {"edges": "links counted by edges", "sac": "links counted by hops to the sink"}

# Every case, paired.
sweep = differences.make_sweep(
    fmab.hdp_mab,
    fmab.Problem(agents=AGENTS, arms=ARMS),
    epsilon=EPSILON,
    components=CASES,
    sum_agents=False,
)


SETTING = f"HDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON}"
MEMBERS = {case: fmab.hdp_mab(EPSILON, components=spec) for case, spec in CASES.items()}
LEGEND = "; ".join(f"{case.removeprefix('case ')}: {words}" for case, words in WORDS.items())
FIGURE = differences.Figure(
    name="fig11_hybrid",
    setting=SETTING,
    alt="Regret of HDP-MAB on graphs of components minus that of case 6, which has no graph, seed "
    "by seed, over time.",
    curves=lambda data: {SERVER: {case: data.regret.sel(components=case) for case in CASES}},
    quantity="difference to case 6",
    label="regret minus that of case\N{NO-BREAK SPACE}6, paired",
    algorithms=MEMBERS,
    agents=AGENTS,
    notes=[f"Cases: {LEGEND}"],
    has_regret=False,
    height=1.6,
)


def round_cost(facts: exchange.Exchange, meter: str) -> int:
    """Returns what one round costs."""
    return SERVER_PRICE * facts.on("server") + PEER_PRICE * facts.on(meter)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws differences over time and costs, and writes the table."""
    rows = [row for T, data in results.items() for row in _rows(T, data.isel(time=-1))]
    regret = FIGURE.draw(results, folder)
    costs = pictures.publish(_costs(results, rows), folder)
    return [*regret, *costs, *_table(results, rows, folder)]


def _costs(results: common.Results, table: differences.Rows) -> pictures.Picture:
    """Returns the picture of the costs, from the rows of the table."""
    costs = {
        (row["T"], f"case {row['case']}", meter): row[f"cost at T, {words}"]
        for row in table
        for meter, words in METERS.items()
    }
    caption = common.caption(
        SETTING,
        results,
        f"Cases: {LEGEND}",
        f"Costs at T: {SERVER_PRICE} per link to the server and {PEER_PRICE} per link between "
        f"agents, {' or '.join(METERS.values())}",
        common.leaks(MEMBERS, AGENTS),
        bars="Markers: means over the seeds; bars",
    )
    alt = "Costs at T of the six cases, with links counted by edges and by hops to the sink."
    rows = [
        {"quantity": f"cost at T, {words}", "T": horizon, "curve": case, "slot": horizon}
        | dict(zip(("mean", "lower", "upper"), costs[horizon, case, meter], strict=True))
        for horizon in results
        for meter, words in METERS.items()
        for case in CASES
    ]
    return pictures.Picture("fig11_hybrid_cost", cost_page(rows), caption, alt, rows)


def cost_page(rows: differences.Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws the costs from the rows of the CSV."""
    costs: dict[int, dict[str, list[Any]]] = {row["T"]: {} for row in rows}
    for row in rows:
        point = row["mean"], row["lower"], row["upper"]
        costs[row["T"]].setdefault(row["quantity"], []).append(point)

    def draw(page: pictures.Page) -> None:
        axes = page.panels(["cost at T, by case"], common.titles(costs), "cost at T", 1.25)[0]
        for panel, points_of in zip(axes, costs.values(), strict=True):
            page.handles = []
            for (meter, mark), points in zip(MARKS.items(), points_of.values(), strict=True):
                mean, low, high = zip(*points, strict=True)
                panel.hlines(range(len(CASES)), low, high, color=mark["color"], linewidth=0.8)
                page.handles += panel.plot(
                    mean, range(len(CASES)), ls="none", label=METERS[meter], **mark
                )
            panel.set(xscale="log", ylim=(len(CASES) - 0.5, -0.5))
            panel.margins(x=0.06)
            named = panel is axes[0]
            words = list(SHORT.values()) if named else [""] * len(CASES)
            panel.set_yticks(range(len(CASES)), words)
            low, high = panel.get_xlim()
            panel.set_xticks([tick for tick in TICKS if low <= tick <= high])

    return draw


def _rows(horizon: int, last: xr.Dataset) -> list[dict[str, Any]]:
    """Returns the rows of the table at a horizon, one for each case."""
    rows = []
    for case, spec in CASES.items():
        facts, cell = exchange.sinks(graphs.components(spec, AGENTS)), last.sel(components=case)
        row = {
            "T": horizon,
            "case": case.removeprefix("case "),
            "components": WORDS[case],
            "wait (slots)": facts.wait,
            "server links a round": facts.on("server"),
        }
        for meter, words in METERS.items():
            row[f"links a round, {words.removeprefix('links ')}"] = facts.on(meter)
        for meter, words in METERS.items():
            row[f"cost a round, {words}"] = round_cost(facts, meter)
        row["rounds"] = common.interval(cell.rounds_made)
        for meter, words in METERS.items():
            cost = fmab.communication_cost(cell, SERVER_PRICE, PEER_PRICE, meter)
            row[f"cost at T, {words}"] = common.interval(cost)
        server = last.sel(components=SERVER)
        rows.append(row | differences.row_beside(cell, server, SERVER, MEMBERS[case], AGENTS))
    return rows


def _table(results: common.Results, rows: differences.Rows, folder: Path) -> list[Path]:
    printed = exchange.sinks(graphs.components(CASE_2_AS_PRINTED, AGENTS_AS_PRINTED))
    costs = " and ".join(f"{round_cost(printed, m)} ({w})" for m, w in METERS.items())
    notes = common.caption(
        f"{SETTING}, c1 = {SERVER_PRICE} per server link, c2 = {PEER_PRICE} per agent-agent link",
        results,
        "Regret is summed over agents; minus case 6: paired difference, seed by seed, and in per "
        "cent of the regret of case 6. Leak: of one reward, to whoever sees the messages of its "
        "agent. Case 2 as printed, complete graphs of 63, 24, 10, 6 and 7, has "
        f"{AGENTS_AS_PRINTED} agents; a round would cost {costs}",
        bars="Numbers: means over the seeds; in brackets",
    )
    return common.save_table(rows, folder, "table2_hybrid", notes)
