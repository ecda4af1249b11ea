"""The theorems' regret bounds with explicit constants, beside what was measured.

The constants are this project's (docs/theory.md): the paper's order statements have none. A bound
below the regret would be an error of a proof; how far it is above says how loose it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import fmab_jax as fmab
from experiments import claims_theory, figures
from experiments.claims_measured import SHORT, Judge, over_horizons, slots
from experiments.verdicts import LOOSENESS, Data, Finding, Row, at_least, ratio
from fmab_jax.analysis import theory
from fmab_jax.parts import exchanges as exchange
from fmab_jax.parts import graphs
from fmab_jax.records import problem as problems

# Instances whose bound is compared with their mean regret.
INSTANCES = 50


def _looseness(ends: Any, problem: problems.Problem, *args: Any, **options: Any) -> Any:
    """Returns bounds over regret, on as many instances as there are ends of both."""
    gaps = claims_theory.gaps_of(problem, INSTANCES)[: len(ends)]
    return ratio([theory.bounds(g, *args, 1.0, **options).regret for g in gaps], ends[:INSTANCES])


def _bounded(
    name: str,
    cell: dict[str, Any],
    problem: Callable[[], problems.Problem],
    table: Callable[[], exchange.Exchange],
    **options: Any,
) -> Judge:
    def judge(data: Data, horizon: int) -> Finding:
        ends = data.end(name, horizon, **cell)
        loose = _looseness(ends, problem(), table(), horizon, **options)
        return at_least(slots(horizon), 1.0, **{LOOSENESS: loose})

    return over_horizons(judge)


def _budgeted(kind: str, table: Callable[[], exchange.Exchange]) -> Judge:
    """Corollaries 1 and 2: a budget of four rounds on a graph, and on components."""

    def judge(data: Data, horizon: int) -> Finding:
        ends = claims_theory.spread_out(data, kind, horizon)[0]
        loose = _looseness(ends, claims_theory.uniform(), table(), horizon, rounds=4)
        return at_least(slots(horizon), 1.0, **{LOOSENESS: loose})

    return over_horizons(judge)


def _budget_bound(data: Data) -> list[Finding]:
    """Theorem 2's bound of figure 6's budgets, where it is loosest and tightest."""
    findings, server = [], exchange.server(claims_theory.AGENTS)
    for gap, words in SHORT.items():
        for horizon in data.horizons:
            looseness = {}
            for rounds in (2, 5):
                ends = data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=rounds)
                budget = {"rounds": rounds, "schedule_gap": figures.GAPS[gap]}
                loose = _looseness(ends, claims_theory.uniform(), server, horizon, **budget)
                looseness[f"R = {rounds}: {LOOSENESS}"] = loose
            findings.append(at_least(f"{slots(horizon)}, {words}", 1.0, **looseness))
    return findings


@functools.cache
def _different() -> problems.Problem:
    return fmab.Problem(agents=figures.MANY_AGENTS, arms=figures.ARMS, spread=1.0)


_BOUND = "Bound over regret, 50 instances: at least 1."
_OWN = "Budget built for the instance's own gap."

ROWS = [
    Row("IV-A, Theorem 1", "incurs regret $R_{C}(T)$ upper bounded by", _BOUND,
        _bounded("fig04_epsilon", {"epsilon": 1}, claims_theory.uniform, lambda: exchange.server(50)), "fig04"),
    Row("IV-B, Theorem 2", "incurs regret $R^{p,R}_{C}(T)$ upper bounded by", f"{_BOUND} p = 0.4, no budget.",
        _bounded("fig05_participation", {"participation": 0.4}, claims_theory.uniform, lambda: exchange.server(50, 0.4)), "fig05"),
    Row("IV-B, Theorem 2", "incurs regret $R^{p,R}_{C}(T)$ upper bounded by", f"{_BOUND} p = 1, R = 2 and 5.", _budget_bound, "fig06",
        "Without min{M, .}, which no step proves."),
    Row("V-A, Theorem 3", "incurs regret $R_{D}(T)$ upper bounded by", f"{_BOUND} Ring.",
        _bounded("fig10_graphs", {"graph": "ring"}, claims_theory.uniform, lambda: exchange.flooding(graphs.make("ring", 50))), "fig10"),
    Row("V-A, Corollary 1", "DDP-MAB with communication round constrain $ R $ achieves the regret of", f"{_BOUND} Ring, R = 4. {_OWN}",
        _budgeted("ddp", lambda: exchange.flooding(graphs.make(claims_theory.GRAPH, claims_theory.AGENTS))), "ddp_mab"),
    Row("VI-A, Theorem 4", "incurs regret $R_{H}(T)$ upper bounded by", f"{_BOUND} Case 4.",
        _bounded("table2_fig11_hybrid", {"components": "case 4"}, lambda: claims_theory.uniform(100), lambda: exchange.sinks(graphs.components("20x5:random", 100))), "fig11"),
    Row("VI-A, Corollary 2", "Alg.5 with communication round constrain $ R $ achieves the regret of", f"{_BOUND} Ten rings of five, R = 4. {_OWN}",
        _budgeted("hdp", lambda: exchange.sinks(graphs.components(claims_theory.COMPONENTS, claims_theory.AGENTS))), "hdp_mab"),
    *(
        Row("VI-C2, Corollary 3", quote, f"{_BOUND} Heterogeneous, without the log T that the print adds.",
            _bounded("fig12_heterogeneous_structures", {"algorithm": a, "spread": "heterogeneous"}, _different, functools.partial(claims_theory.structure, a), heterogeneous=True), "fig12")
        for a, quote in (("CDP", "Our CDP-MAB can achieve $R_C(T)$ regret"),
                         ("DDP", r"Our DDP-MAB can achieve $R_D(T) + O(M(d_G-1)\log (T))$ regret"),
                         ("HDP", r"Our HDP-MAB can achieve $R_H(T) + O(M\max_{q\in Q}\{d_G^q-1\} \log T)$ regret"))
    ),
]  # fmt: skip
