"""Table II and figure 11: HDP-MAB with 100 agents in six kinds of components.

The paper: similar regret per agent in all cases; cost grows from case 1 to case 3, is smaller on
stars (case 5), and hybrid structures cost far less than a server alone (case 6) or a graph alone
(case 3). Only links counted by edges fit that; hops to the sink are theorem 4's count. Case 2 is
printed as {63, 24, 10, 6, 7}, which sums to 110; {53, ...} sums to 100 and is run. Its random
graphs are not specified: connected Erdos-Renyi, edge probability 2 ln(20) / 20. Regret curves of
the cases coincide, so what is drawn is the paired difference to case 6; costs have a picture of
their own.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common, differences, pictures, seen
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

MORE = "regret minus that of case\N{NO-BREAK SPACE}6, paired"
page = functools.partial(differences.write_page, label=MORE, height=1.6)

# Every case, paired.
sweep = differences.swept(
    fmab.hdp_mab,
    fmab.Problem.uniform(AGENTS, ARMS),
    epsilon=EPSILON,
    components=CASES,
    sum_agents=False,
)


def round_cost(facts: exchange.Exchange, meter: str) -> int:
    """Returns what one round costs."""
    return SERVER_PRICE * facts.on("server") + PEER_PRICE * facts.on(meter)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws differences over time and costs, and writes the table."""
    rows = [row for T, data in results.items() for row in _rows(T, data.isel(time=-1))]
    pair = _regret(results), _costs(results, rows)
    written = [path for picture in pair for path in pictures.publish(picture, folder)]
    return [*written, *_table(results, rows, folder)]


def _members() -> dict[str, Any]:
    return {case: fmab.hdp_mab(EPSILON, components=spec) for case, spec in CASES.items()}


def _setting() -> str:
    return f"HDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}"


def _cases() -> str:
    return "; ".join(f"{number_of(case)}: {words}" for case, words in WORDS.items())


def number_of(case: str) -> str:
    """Writes a case without its noun."""
    return case.removeprefix("case ")


def _regret(results: common.Results) -> pictures.Picture:
    every = differences.beside(
        results,
        SERVER,
        lambda data: {case: data.regret.sel(components=case).load() for case in CASES},
        regret=False,
    )
    # Cases that never wait have no difference at all.
    apart = {c for bands in every.more.values() for c in differences.drop_zero_curves(bands)}
    same = [case for case in CASES if case not in apart]
    shown = {T: {c: bands[c] for c in bands if c in apart} for T, bands in every.more.items()}
    found = replace(every, more=shown)
    zero = [number_of(case) for case in same if case != SERVER]
    caption = common.caption(
        _setting(),
        results,
        f"Cases: {_cases()}",
        "Differences are paired, seed by seed, and drawn over the logarithm of time"
        + found.in_percent("the regret of case 6 at T"),
        *(
            [f"In cases {seen.listed(zero)} it is 0 in every seed, so that no line is drawn"]
            if zero
            else []
        ),
        common.level_at_end("of case 6", every.references),
        common.leaks(_members(), AGENTS),
    )
    ends = found.told("{mean:+,.1f}, {share} ({label})")
    alt = (
        f"Regret beside case 6 at T = {common.write_count(found.last)}: {ends or 'no difference'}. "
        f"Cases that differ from it in no seed: {seen.listed(zero) if zero else 'none'}."
    )
    rows = every.rows("difference to case 6")
    return pictures.Picture("fig11_hybrid", page(rows), caption, alt, rows)


def _costs(results: common.Results, table: differences.Rows) -> pictures.Picture:
    """Returns the picture of the costs, from the rows of the table."""
    costs = {
        (row["T"], f"case {row['case']}", meter): row[f"cost at T, {words}"]
        for row in table
        for meter, words in METERS.items()
    }
    last = max(results)
    caption = common.caption(
        _setting(),
        results,
        f"Cases: {_cases()}",
        f"Costs at T: {SERVER_PRICE} per link to the server and {PEER_PRICE} per link between "
        f"agents, {' or '.join(METERS.values())}",
        common.leaks(_members(), AGENTS),
        bars="Markers: means over the seeds; bars",
    )
    told = []
    for meter, words in METERS.items():
        own = {case: costs[last, case, meter] for case in CASES}
        least, most = min(own.values()), max(own.values())
        fewest, highest = (" and ".join(c for c in CASES if own[c] == end) for end in (least, most))
        told.append(f"with {words}, from {least[0]:,.0f} ({fewest}) to {most[0]:,.0f} ({highest})")
    paid = ", ".join(
        f"{costs[last, case, 'edges'][0]:,.0f} and {costs[last, case, 'sac'][0]:,.0f} ({case})"
        for case in CASES
    )
    alt = (
        f"Mean costs at T = {common.write_count(last)}: {'; '.join(told)}. By case, with "
        f"{' and '.join(METERS.values())}: {paid}."
    )
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
        for panel, found in zip(axes, costs.values(), strict=True):
            page.handles = []
            for (meter, mark), points in zip(MARKS.items(), found.values(), strict=True):
                mean, low, high = zip(*points, strict=True)
                panel.hlines(range(len(CASES)), low, high, color=mark["color"], linewidth=0.8)
                page.handles += panel.plot(
                    mean, range(len(CASES)), ls="none", label=METERS[meter], **mark
                )
            panel.set(xscale="log", ylim=(len(CASES) - 0.5, -0.5))
            panel.margins(x=0.06)
            named = page.narrow or panel is axes[0]
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
            "case": number_of(case),
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
        rows.append(row | differences.row_beside(cell, server, SERVER, _members()[case], AGENTS))
    return rows


def _table(results: common.Results, rows: differences.Rows, folder: Path) -> list[Path]:
    printed = exchange.sinks(graphs.components(CASE_2_AS_PRINTED, AGENTS_AS_PRINTED))
    costs = " and ".join(f"{round_cost(printed, m)} ({w})" for m, w in METERS.items())
    notes = common.caption(
        f"HDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, c1 = {SERVER_PRICE} per "
        f"server link, c2 = {PEER_PRICE} per agent-agent link",
        results,
        "Regret is summed over agents; minus case 6: paired difference, seed by seed, and in "
        "per cent of the regret of case 6. Leak: of one reward, to whoever sees the messages of "
        "its agent. Case 2 as "
        f"printed, complete graphs of 63, 24, 10, 6 and 7, has {AGENTS_AS_PRINTED} agents; a round "
        f"would cost {costs}",
        bars="Numbers: means over the seeds; in brackets",
    )
    return common.save_table(rows, folder, "table2_hybrid", notes)
