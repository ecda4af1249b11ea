"""The paper's sentences on its experiments (section VII), judged on the runs behind the figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import xarray as xr

from experiments import common, verdicts
from experiments.figures import ORACLE, SIXTEENTH
from experiments.verdicts import Data, Finding, Measured, Row

SHORT = {ORACLE: "own gap", SIXTEENTH: "gap 1/16"}
# The sentence's log T is 4 at this horizon alone, and with the logarithm to base 10.
MEANT = 10**4
NOT_MEANT = "log10 T is not 4"
# "About" so many rounds: as many, when rounded.
NEAR = 0.5
# Fewer runs than these say nothing of those that have decided.
FEWEST = 30

Judge = Callable[[Data], list[Finding]]


def slots(horizon: int) -> str:
    """Names a horizon as a condition."""
    return f"T = {common.write_count(horizon)}"


def over_horizons(judge: Callable[[Data, int], Finding]) -> Judge:
    """Returns a judge of every horizon."""
    return lambda data: [judge(data, horizon) for horizon in data.horizons]


def over_gaps(judge: Callable[[Data, int, str, str], Finding]) -> Judge:
    """Returns a judge of both gaps that a budget is built for, at every horizon."""
    return lambda data: [
        judge(data, horizon, gap, f"{slots(horizon)}, {words}")
        for gap, words in SHORT.items()
        for horizon in data.horizons
    ]


def cells_over(
    rule: Callable[..., Finding], name: str, pairs: Mapping[str, tuple[dict[str, Any], ...]]
) -> Judge:
    """Judges by what share the regret of one cell is above that of another, by label."""

    def judge(data: Data, horizon: int) -> Finding:
        ends = {n: [data.end(name, horizon, **cell) for cell in pair] for n, pair in pairs.items()}
        return rule(slots(horizon), **{n: verdicts.excess(*pair) for n, pair in ends.items()})

    return over_horizons(judge)


def falling(name: str, axis: str, values: Sequence[Any], symbol: str) -> Judge:
    """Regret falls from each value of an axis to the next."""
    pairs = {f"{symbol} = {a:g} over {b:g}": ({axis: a}, {axis: b}) for a, b in pairwise(values)}
    return cells_over(verdicts.ordered, name, pairs)


def compared(name: str, first: dict[str, Any], second: dict[str, Any]) -> Judge:
    """Two cells of an experiment have the same regret."""
    return cells_over(verdicts.alike, name, {"_": (first, second)})


# --- VII-A: a server ----------------------------------------------------------------------------


def _falls_with_rounds(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    ends = [data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=r) for r in (2, 3, 4, 5)]
    steps = {
        f"R = {r} over {r + 1}": verdicts.excess(first, second)
        for r, first, second in zip((2, 3, 4), ends, ends[1:], strict=False)
    }
    return verdicts.ordered(condition, **steps)


def _four_and_five(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    ends = [data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=r) for r in (4, 5)]
    return verdicts.alike(condition, _=verdicts.excess(*ends))


def _rounds_needed(data: Data, horizon: int) -> Finding:
    """Of the seeds with one arm left, how far the mean number of rounds lies from log10 T."""
    cell = data.last("fig04_epsilon", horizon, epsilon=1)
    decided, wanted = cell.active_arms.values == 1, math.log10(horizon)
    few, every = int(decided.sum()), verdicts.mean(cell.rounds_made)
    if few < FEWEST:
        words = f"{few:,} of {decided.size:,} seeds have one arm left: too few"
        finding = Finding(slots(horizon), words, verdicts.OPEN, rule=verdicts.AT_MOST)
    else:
        made, ever = verdicts.mean(cell.rounds_made.values[decided]), verdicts.share(decided)
        away = distance(made, wanted)
        finding = verdicts.at_most(slots(horizon), NEAR, **{f"rounds away from {wanted:g}": away})
        words = f"; rounds {verdicts.number(made)}; {verdicts.percent(ever)} of the seeds have one arm left"
        finding = finding.add(words, rounds=made, ever=ever)
    finding = finding.add(f"; all seeds make {verdicts.number(every)}", rounds_of_all=every)
    return finding if horizon == MEANT else finding.uncount(NOT_MEANT)


def distance(measured: Measured, value: float) -> Measured:
    """Returns how far a number lies from a value, to either side."""
    ends = [abs(end - value) for end in measured]
    least = 0.0 if measured.lower <= value <= measured.upper else min(ends[1:])
    return Measured(ends[0], least, max(ends[1:]))


def _trade_off(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    """Among pairs (p, R), the dearer has less regret: Kendall's tau over batches of seeds."""
    cells = data.load("fig07_tradeoff")[horizon].isel(time=-1).sel(schedule_gap=gap)
    cells = cells.isel(rounds=slice(0, 4))  # with a budget
    links = cells.links.sel(meter="server").transpose("seed", ...).values
    regret = cells.regret.transpose("seed", ...).values
    batches = np.array_split(np.arange(len(regret)), min(20, len(regret) // 2))
    taus = [tau(links[b].mean(0).ravel(), regret[b].mean(0).ravel()) for b in batches]
    return verdicts.ordered(condition, verdicts.number, minus_tau=verdicts.mean(-np.array(taus)))


def tau(first: np.ndarray, second: np.ndarray) -> float:
    """Returns Kendall's rank correlation (a) of two lists of numbers."""
    i, j = np.triu_indices(len(first), 1)
    return float(np.mean(np.sign(first[i] - first[j]) * np.sign(second[i] - second[j])))


def _five_rounds(measure: Callable[[xr.Dataset], np.ndarray]) -> Judge:
    """(R = 5, p = 1) against no budget."""

    def judge(data: Data, horizon: int, gap: str, condition: str) -> Finding:
        cells = data.load("fig07_tradeoff")[horizon].isel(time=-1)
        cells = cells.sel(schedule_gap=gap, participation=1)
        return verdicts.alike(
            condition, _=verdicts.excess(*(measure(cells.isel(rounds=i)) for i in (3, 4)))
        )

    return over_gaps(judge)


def _one_in_m(data: Data, horizon: int) -> Finding:
    name = "fig08_heterogeneous_central"
    ends = [data.end(name, horizon, algorithm=a, spread="homogeneous") for a in ("Single", "CDP")]
    agents = data.load(name)[horizon].attrs["agents"]
    return verdicts.valued(
        slots(horizon), float(agents), **{f"of M = {agents}:": verdicts.ratio(*ends)}
    )


def _never_converges(data: Data, horizon: int) -> Finding:
    """Regret a slot in the last tenth of T: agents that differ, minus agents alike, alone."""
    cells = data.load("fig08_heterogeneous_central")[horizon].sel(algorithm="Single")
    time = cells.time.values
    start = int(np.argmin(np.abs(time - 0.9 * horizon)))
    regret = cells.regret.transpose("spread", "seed", "time")
    late = {
        spread: regret.sel(spread=spread).values[:, [start, -1]]
        for spread in ("heterogeneous", "homogeneous")
    }
    rates = {
        name: (ends[:, 1] - ends[:, 0]) / (time[-1] - time[start]) for name, ends in late.items()
    }
    difference = verdicts.mean(rates["heterogeneous"] - rates["homogeneous"])
    return verdicts.ordered(
        slots(horizon), verdicts.number, **{"regret a slot, more than where alike": difference}
    )


# --- VII-B: graphs ------------------------------------------------------------------------------


def _graphs_over(pairs: Sequence[tuple[str, str]]) -> Judge:
    cells = {f"{a} over {b}": ({"graph": a}, {"graph": b}) for a, b in pairs}
    return cells_over(verdicts.ordered, "fig10_graphs", cells)


def _waits(data: Data, horizon: int) -> Finding:
    """By what share another graph has less regret while waiting than the ring."""
    waits = {
        graph: data.last("fig10_graphs", horizon, graph=graph).waiting_regret.values
        for graph in ("ring", "star", "random", "complete")
    }
    steps = {
        f"{graph} below ring": verdicts.less(waits[graph], waits["ring"])
        for graph in waits
        if graph != "ring"
    }
    whole = verdicts.ratio(waits["ring"], data.end("fig10_graphs", horizon, graph="ring"))
    words = f"; the ring's is {verdicts.percent(whole)} of its regret"
    return verdicts.ordered(slots(horizon), **steps).add(words, of_all_regret=whole)


def _not_proportional(data: Data, horizon: int) -> Finding:
    """By what factor links and regret differ, complete graph over star: 1 if proportional."""
    cells = [data.last("fig10_graphs", horizon, graph=graph) for graph in ("complete", "star")]
    links = verdicts.ratio(*(cell.links.sel(meter="bound").values for cell in cells))
    regret = verdicts.ratio(*(cell.regret.values for cell in cells))
    apart = Measured(
        links.estimate / regret.estimate - 1,
        links.lower / regret.upper - 1,
        links.upper / regret.lower - 1,
    )
    words = f" (links {verdicts.number(links)} times, regret {verdicts.number(regret)} times)"
    finding = verdicts.ordered(slots(horizon), **{"links over regret, complete over star": apart})
    return finding.add(words, links=links, regret=regret)


# --- VII-C: hybrid ------------------------------------------------------------------------------


F12 = "fig12_heterogeneous_structures"


def _structures(one: str, other: str) -> Judge:
    pair = tuple({"algorithm": name, "spread": "heterogeneous"} for name in (one, other))
    return cells_over(verdicts.ordered, F12, {f"{one} over {other}": pair})


def _affected(*algorithms: str) -> Judge:
    spreads = ("heterogeneous", "homogeneous")
    pairs = {a: tuple({"algorithm": a, "spread": s} for s in spreads) for a in algorithms}
    return cells_over(verdicts.alike, F12, pairs)


def _links(cell: xr.Dataset) -> np.ndarray:
    return cell.links.sel(meter="server").values


def _regret(cell: xr.Dataset) -> np.ndarray:
    return cell.regret.values


_HETEROGENEOUS = "heterogeneous over homogeneous"


ROWS = [
    Row("VII-A1", r"the regret increases with the decreasing of  $\epsilon$", "Regret at one ε over that at the next larger.",
        falling("fig04_epsilon", "epsilon", (0.1, 0.3, 0.5, 1), "ε"), "fig04"),
    Row("VII-A1", r"$\epsilon=1$ indicates the non-private case", "Regret at ε = 1 over that without noise: alike.",
        compared("fig04_epsilon", {"epsilon": 1}, {"epsilon": "none"}), "fig04",
        "The regret is that of no noise. For privacy the sentence is true as well: a message leaks "
        "Nε = 50, which protects nothing."),
    Row("VII-A2", "the regrets at $T$ decrease as $p$ increases", "Regret at one p over that at the next larger.",
        falling("fig05_participation", "participation", (0.2, 0.4, 0.6, 0.8, 1), "p"), "fig05"),
    Row("VII-A2", "the regrets decrease with $R$ increase", "Regret at R over that at R + 1.", over_gaps(_falls_with_rounds), "fig06"),
    Row("VII-A2", "$ R=4$ and 5 are almost the same", "Regret at R = 4 over that at R = 5: alike.", over_gaps(_four_and_five), "fig06"),
    Row("VII-A2", r"we need about $ \log(T) \approx 4$ communication rounds before eliminating all suboptimal arms",
        "Mean number of rounds of the seeds with one arm left, without a budget: within half a round of 4, which is log10 T at T = 10⁴.", over_horizons(_rounds_needed), "fig04",
        "Judged at the only T that the sentence can mean: with logarithms to base e or 2, T would be 55 or 16. The paper does not state T, and T = 10⁴ was "
        "chosen here by this sentence. That it holds there is no support for it."),
    Row("VII-A2", "a clear trade-off between the communication cost and learning performance",
        "Of two pairs (p, R) the dearer has less regret: minus Kendall's rank correlation, above 0.", over_gaps(_trade_off), "fig07"),
    Row("VII-A2", "is close to the largest amount of required communication cost", "Server links at R = 5, p = 1 over those without a budget: alike.",
        _five_rounds(_links), "fig07"),
    Row("VII-A2", "the regret of this case is close to the performance", "Regret at R = 5, p = 1 over that without a budget: alike.",
        _five_rounds(_regret), "fig07"),
    Row("VII-A3", "our proposed method obtain similar regrets under two reward structures", f"CDP-MAB, {_HETEROGENEOUS}: alike.",
        compared("fig08_heterogeneous_central", {"algorithm": "CDP", "spread": "heterogeneous"}, {"algorithm": "CDP", "spread": "homogeneous"}), "fig08"),
    Row("VII-A3", "reached $1/M$ of the single-agent performance", "Regret of agents alone over that of CDP-MAB, both summed over agents: M.",
        over_horizons(_one_in_m), "fig08"),
    Row("VII-A3", "the single-agent method cannot converge due to the inconsistency",
        "Agents alone: regret a slot in the last tenth of T, heterogeneous minus homogeneous: above 0.", over_horizons(_never_converges), "fig08"),
    Row("VII-B1", "the Star and Fully-connected graph achieve the smallest regrets", "Random graph over star, and over complete graph.",
        _graphs_over([("random", "star"), ("random", "complete")]), "fig10"),
    Row("VII-B1", "the Ring graph incurs larger regret", "Ring over each other graph.",
        _graphs_over([("ring", g) for g in ("complete", "star", "random")]), "fig10"),
    Row("VII-B1", "their performances are close to the centralized setting", "Star over complete graph, which has the regret of CDP-MAB: alike.",
        compared("fig10_graphs", {"graph": "star"}, {"graph": "complete"}), "fig10"),
    Row("VII-B1", "the largest regret caused by the local exploitation", "Regret while waiting: by what share each other graph has less than the ring.",
        over_horizons(_waits), "fig10", "What is saved by not exploring while waiting is not in it; the rows on regret have both."),
    Row("VII-B1", "regret and communication cost are not directly proportional",
        "Complete graph over star: links times over regret times, less 1: above 0, where both proportional would have 0.", over_horizons(_not_proportional), "fig10"),
    Row("VII-C2", "The CDP-MAB achieves the smallest regret", "Heterogeneous: HDP-MAB over CDP-MAB.", _structures("HDP", "CDP"), "fig12"),
    Row("VII-C2", "better performance than the decentralized network", "Heterogeneous: DDP-MAB over HDP-MAB.", _structures("DDP", "HDP"), "fig12"),
    Row("VII-C2", "it can completely avoid the local bias by the coordination of the server", f"CDP-MAB, {_HETEROGENEOUS}: alike.", _affected("CDP"), "fig12"),
    Row("VII-C2", "slightly affected by the heterogeneous reward", f"DDP-MAB and HDP-MAB, {_HETEROGENEOUS}: alike.", _affected("DDP", "HDP"), "fig12"),
]  # fmt: skip
