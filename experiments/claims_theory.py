"""The paper's theorems, remarks and discussions, judged on the figures' runs and extra sweeps."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from experiments import common, figures, verdicts
from experiments.claims_measured import F12, FEWEST, ORACLE, Judge, over_gaps, over_horizons, slots
from experiments.verdicts import Data, Finding, Row
from fmab_jax.parts import exchanges as exchange
from fmab_jax.parts import graphs
from fmab_jax.records import problem as problems
from fmab_jax.sampling import keys

AGENTS, ARMS = 50, 100
# Budgets with more rounds than the doubling schedule ever makes.
AMPLE = (20, 40)
GRAPH, COMPONENTS = "ring", "5x10:ring"  # ten rings of five agents
RINGS = {"balanced": "20x5:ring", "unbalanced": "53,24,10,6,7:ring", "stars": "20x5:star"}


# --- instances and sweeps -----------------------------------------------------------------------


@functools.cache
def uniform(agents: int = AGENTS, arms: int = ARMS) -> problems.Problem:
    """Returns the paper's instance."""
    return fmab.Problem(agents=agents, arms=arms)


@functools.cache
def gaps_of(problem: problems.Problem, instances: int) -> np.ndarray:
    """Returns [seed, arm] gaps of the instances that the first seeds draw."""
    with jax.enable_x64(True):

        def draw(seed: Any) -> Any:
            return bound.draw(keys.seed_key(jnp.uint32(0), seed)).gaps

        bound = problem.bind(problem.agents)
        return np.asarray(jax.vmap(draw)(jnp.arange(instances, dtype=jnp.uint32)))


def budgets(data: Data, horizon: int) -> Any:
    """Returns CDP-MAB's regret [participation, rounds, seed], with the instance's own gap."""
    return data.sweep(
        f"budgets-T{horizon}", "cdp", uniform(), epsilon=1, participation=[0.2, 1],
        rounds=[2, 3, 4, 5, 6, 7, 8, *AMPLE, None], horizon=horizon,
    ).regret.transpose("participation", "rounds", "seed")  # fmt: skip


def alone(data: Data, horizon: int) -> np.ndarray:
    """Returns [seed] regret of as many agents alone, summed over agents."""
    result = data.sweep(f"alone-T{horizon}", "single", uniform(), epsilon=1, horizon=horizon)
    return result.regret.values


def spread_out(data: Data, algorithm: str, horizon: int) -> Any:
    """Returns regret [rounds, seed] on a graph or on components; the last has no budget."""
    where = {"graph": GRAPH} if algorithm == "ddp" else {"components": COMPONENTS}
    rounds = [4, _enough(horizon), *AMPLE, None]
    result = data.sweep(
        f"budgets-{algorithm}-T{horizon}", algorithm, uniform(), epsilon=1, rounds=rounds,
        horizon=horizon, sum_agents=False, **where,
    )  # fmt: skip
    return result.regret.transpose("rounds", "seed").values


def _enough(horizon: int) -> int:
    """Remarks 3 and 5: R >= 2 log T / log M."""
    return math.ceil(2 * math.log(horizon) / math.log(AGENTS) - 1e-9)


# --- budgets ------------------------------------------------------------------------------------


def _rounds_identify(data: Data, horizon: int) -> Finding:
    """Judges the share of seeds within the stated number of rounds, decided or not."""
    cell = data.last("fig04_epsilon", horizon, epsilon=1)
    gaps = gaps_of(uniform(), cell.sizes["seed"])
    smallest = np.where(gaps > 0, gaps, 1.0).min(axis=1)
    rounds = cell.rounds_made.values / np.ceil(np.log2(1 / smallest) + 1)
    most, decided = (
        verdicts.exact(float(rounds.max())),
        verdicts.share(cell.active_arms.values == 1),
    )
    return verdicts.probable(slots(horizon), _=verdicts.share(rounds <= 1)).add(
        f"; most rounds / allowed {most.estimate:.3f}; {verdicts.percent(decided)} have one arm left",
        most_rounds_over_allowed=most,
        one_arm_left=decided,
    )


def _participation_at_most(data: Data, horizon: int) -> Finding:
    """Judges budgets with more rounds than O(log T), as the sentence asks."""
    cells = budgets(data, horizon)
    server = cells.sel(participation=1).isel(rounds=-1).values
    few = cells.sel(participation=0.2)
    powers = {f"R = {r}": verdicts.exponent(few.sel(rounds=r).values, server, 5) for r in AMPLE}
    none = verdicts.exponent(few.isel(rounds=-1).values, server, 5)
    return verdicts.at_most(slots(horizon), 1.5, **powers).add(
        f"; no budget {verdicts.number(none)}", no_budget=none
    )


def _recovers(algorithm: str) -> Callable[[Data, int], Finding]:
    def judge(data: Data, horizon: int) -> Finding:
        if algorithm == "cdp":
            cells = budgets(data, horizon).sel(participation=1).isel(rounds=[-3, -2, -1]).values
        else:
            cells = spread_out(data, algorithm, horizon)[-3:]
        shares = {f"R = {r}": verdicts.excess(cells[i], cells[-1]) for i, r in enumerate(AMPLE)}
        return verdicts.no_more(slots(horizon), **shares)

    return judge


def _more_rounds(data: Data, horizon: int) -> Finding:
    cells = budgets(data, horizon).sel(participation=1)
    five, eight = (cells.sel(rounds=r).values for r in (5, 8))
    return verdicts.alike(slots(horizon), **{"R = 5 over 8": verdicts.excess(five, eight)})


def _not_worse(data: Data) -> list[Finding]:
    """Remark 2: agents alone have more regret, from R >= 4 log T / (3 log pM) on."""
    findings = []
    for horizon in data.horizons:
        cells, single = budgets(data, horizon), alone(data, horizon)
        for p in (1, 0.2):
            least = 4 * math.log(horizon) / (3 * math.log(p * AGENTS))
            for rounds in (math.ceil(least - 1e-9), 2):
                ends = cells.sel(participation=p, rounds=rounds).values
                condition = f"{slots(horizon)}, p = {p:g} and R = {rounds}"
                finding = verdicts.no_more(
                    condition, **{"over agents alone": verdicts.excess(ends, single)}
                )
                if rounds < least - 1e-9:
                    finding = finding.uncount(f"outside: R has to be {least:.3g}")
                findings.append(finding)
    return sorted(findings, key=lambda finding: not finding.counted)


def _not_worse_spread(algorithm: str) -> Callable[[Data, int], Finding]:
    def judge(data: Data, horizon: int) -> Finding:
        ends, single = spread_out(data, algorithm, horizon)[1], alone(data, horizon)
        condition = f"{slots(horizon)}, R = {_enough(horizon)}"
        return verdicts.no_more(condition, **{"over agents alone": verdicts.excess(ends, single)})

    return judge


def _m_times(data: Data) -> list[Finding]:
    """Judges regret of agents alone over that of CDP-MAB as at most M."""
    findings = []
    for horizon in data.horizons:
        server = budgets(data, horizon).sel(participation=1).isel(rounds=-1).values
        times = verdicts.ratio(alone(data, horizon), server)
        findings.append(verdicts.at_most(slots(horizon), float(AGENTS), times=times))
    return findings


def _m_times_attained(data: Data) -> list[Finding]:
    return [
        verdicts.ask_attained(verdicts.valued(finding.condition, float(AGENTS), **finding.numbers))
        for finding in _m_times(data)
    ]


def _constant(data: Data) -> list[Finding]:
    """Judges how regret under ample budgets over that without one changes with T."""
    findings = []
    for first, second in zip(data.horizons, data.horizons[1:], strict=False):
        pairs = {}
        for horizon in (first, second):
            cells = budgets(data, horizon).sel(participation=1)
            none = cells.isel(rounds=-1).values
            pairs[horizon] = {r: (cells.sel(rounds=r).values, none) for r in AMPLE}
        changes = {f"R = {r}": verdicts.change(pairs[second][r], pairs[first][r]) for r in AMPLE}
        ratios = ", ".join(
            " to ".join(
                f"{verdicts.ratio(*pairs[horizon][r]).estimate:.3f}" for horizon in (first, second)
            )
            for r in AMPLE
        )
        condition = f"{slots(first)} to {common.write_count(second)}"
        findings.append(verdicts.alike(condition, **changes).add(f" ({ratios} times)"))
    return findings


def _worst_case(data: Data) -> list[Finding]:
    """Judges the two whole numbers beside the stated R."""
    findings = []
    for horizon in data.horizons:
        stated = 3 * math.log(horizon) / (4 * math.log(AGENTS))
        cells = budgets(data, horizon).sel(participation=1)
        for rounds in sorted({max(2, math.floor(stated)), max(2, math.ceil(stated))}):
            times = verdicts.ratio(cells.sel(rounds=rounds).values, cells.isel(rounds=-1).values)
            findings.append(
                verdicts.at_most(f"{slots(horizon)}, R = {rounds}", float(AGENTS), times=times)
            )
    return findings


def _by_gap(judge: Callable[[Data, int, str, str], Finding]) -> Judge:
    """Returns a judge of both gaps; only Theorem 2's, the instance's own, counts."""

    def judge_gap(data: Data, horizon: int, gap: str, condition: str) -> Finding:
        finding = judge(data, horizon, gap, condition)
        return finding if gap == ORACLE else finding.uncount("another Δ than the theorem's")

    return over_gaps(judge_gap)


def _fewer_rounds_cost(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    cells = [data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=r) for r in (2, "none")]
    return verdicts.ordered(condition, **{"R = 2 over no budget": verdicts.excess(*cells)})


def _spent(data: Data, horizon: int, gap: str) -> tuple[Any, np.ndarray]:
    """Returns figure 6's runs [rounds, seed] with a budget, and whether they have spent it."""
    cells = data.load("fig06_rounds")[horizon].isel(time=-1).sel(schedule_gap=gap)
    cells = cells.isel(rounds=slice(0, 4)).transpose("rounds", "seed", ...)
    return cells, cells.rounds_made.values >= cells.rounds.values.astype(int)[:, None]


def _of_spent(condition: str, cells: Any, spent: np.ndarray, good: np.ndarray) -> Finding:
    """Judges a share of the runs that have spent their budget, for every R with enough of them."""
    rows = {f"R = {r}": i for i, r in enumerate(cells.rounds.values)}
    counts = {name: (int(spent[i].sum()), spent[i].size) for name, i in rows.items()}
    shares = {
        n: verdicts.share(good[i][spent[i]]) for n, i in rows.items() if counts[n][0] >= FEWEST
    }
    few = [
        f"{name} {counts[name][0]} of {counts[name][1]:,}" for name in rows if name not in shares
    ]
    missing = f"too few have spent it: {', '.join(few)}" if few else ""
    if not shares:
        return Finding(condition, missing, verdicts.OPEN, rule=verdicts.PROBABLE)
    finding = verdicts.probable(condition, {name: counts[name] for name in shares}, **shares)
    return finding.add(f"; {missing}" if few else "")


def _of_all(condition: str, cells: Any, good: np.ndarray) -> Finding:
    """Judges a share of all runs, for every R."""
    shares = {f"R = {r}": verdicts.share(good[i]) for i, r in enumerate(cells.rounds.values)}
    return verdicts.ask_reached(verdicts.probable(condition, **shares))


def _commits(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    """Judges the share of runs with a spent budget that play a best arm."""
    cells, spent = _spent(data, horizon, gap)
    wrong = cells.worse_arm_played.values.astype(bool) & spent
    finding = _of_spent(condition, cells, spent, ~wrong)
    if not wrong.any():
        return finding
    most = verdicts.exact(float(cells.regret.values[wrong].max()))
    lost = int(cells.best_arm_lost.values[wrong].sum())
    return finding.add(
        f"; of {int(wrong.sum()):,} others {lost} lost the best arm, their regret is up to "
        f"{most.estimate:,.0f}",
        largest_regret_of_a_worse_arm=most,
    )


def _commits_in_all(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    """Judges the share of all runs that identify a best arm by their budget's last round."""
    cells, spent = _spent(data, horizon, gap)
    wrong = cells.worse_arm_played.values | cells.best_arm_lost.values
    good = (spent | (cells.active_arms.values == 1)) & ~wrong.astype(bool)
    return _of_all(condition, cells, good)


def _removed_by_the_last_round(data: Data, horizon: int) -> Finding:
    cells, spent = _spent(data, horizon, ORACLE)
    return _of_spent(slots(horizon), cells, spent, cells.active_arms.values == 1)


def _removed_in_all(data: Data, horizon: int) -> Finding:
    cells, _ = _spent(data, horizon, ORACLE)
    return _of_all(slots(horizon), cells, cells.active_arms.values == 1)


def _all_budget_spent(data: Data) -> list[Finding]:
    findings = []
    for horizon in data.horizons:
        for budget in (2, 5):
            cell = data.last(
                "fig07_tradeoff", horizon, schedule_gap=ORACLE, participation=1, rounds=budget
            )
            condition = f"{slots(horizon)}, R = {budget}"
            rounds = verdicts.mean(cell.rounds_made / budget)
            findings.append(
                verdicts.ask_attained(
                    verdicts.valued(condition, 1.0, verdicts.percent, rounds_made_over_R=rounds)
                )
            )
    return findings


# --- graphs and components ----------------------------------------------------------------------


def _extra(data: Data, graph: str, horizon: int) -> np.ndarray:
    """Returns [seed] R_D - R_C: the complete graph has the regret of CDP-MAB."""
    ends = [data.end("fig10_graphs", horizon, graph=name) for name in (graph, "complete")]
    return ends[0] - ends[1]


def _extra_of_waiting(data: Data) -> list[Finding]:
    """Judges R_D - R_C by the bound of the print's proof, which has no T."""
    findings = []
    for graph in (GRAPH, "star"):
        most = 2.0 * AGENTS * (exchange.flooding(graphs.make(graph, AGENTS)).diameter - 1)
        for horizon in data.horizons:
            extra = {f"{graph} minus complete": verdicts.mean(_extra(data, graph, horizon))}
            findings.append(verdicts.at_most(f"{slots(horizon)}, {graph}", most, **extra))
    return findings


def _extra_over_horizons(data: Data) -> list[Finding]:
    """Judges by what share R_D - R_C changes from one T to the next."""
    findings = []
    for graph in (GRAPH, "star"):
        for first, second in zip(data.horizons, data.horizons[1:], strict=False):
            extra = [_extra(data, graph, horizon) for horizon in (first, second)]
            means = [verdicts.mean(values) for values in extra]
            condition = f"{slots(first)} to {common.write_count(second)}, {graph}"
            words = f"{verdicts.number(means[0])} to {verdicts.number(means[1])}"
            if means[0].lower <= 0:  # a difference that may be 0 has no shares
                findings.append(Finding(condition, words, verdicts.OPEN, rule=verdicts.ALIKE))
            else:
                finding = verdicts.ask_attained(
                    verdicts.alike(condition, change=verdicts.excess(extra[1], extra[0]))
                )
                findings.append(finding.add(f" ({words})"))
    return findings


def _table_one(data: Data) -> list[Finding]:
    """Judges table I's regret beyond that of CDP-MAB by twice the order that it prints."""
    findings = []
    for horizon in data.horizons:
        complete = data.end("table1_graphs", horizon, graph="complete")
        for graph, order in (("star", AGENTS), ("ring", AGENTS * (AGENTS - 1))):
            extra = verdicts.mean(data.end("table1_graphs", horizon, graph=graph) - complete)
            condition = f"{slots(horizon)}, {graph}"
            findings.append(verdicts.at_most(condition, 2.0 * order, **{"minus complete": extra}))
        server = data.end("fig04_epsilon", horizon, epsilon=1)
        over = {"over CDP-MAB": verdicts.excess(complete, server)}
        findings.append(verdicts.alike(f"{slots(horizon)}, complete", **over))
    return findings


def structure(algorithm: str) -> exchange.Exchange:
    """Returns the exchange of one of figure 12's structures."""
    if algorithm == "CDP":
        return exchange.server(figures.MANY_AGENTS)
    if algorithm == "DDP":
        return exchange.flooding(graphs.make(figures.GRAPH, figures.MANY_AGENTS))
    return exchange.sinks(graphs.components(figures.COMPONENTS, figures.MANY_AGENTS))


def _end12(data: Data, horizon: int, algorithm: str, spread: str) -> np.ndarray:
    return data.end(F12, horizon, algorithm=algorithm, spread=spread)


def _extra_where_agents_differ(algorithm: str) -> Callable[[Data, int], Finding]:
    def judge(data: Data, horizon: int) -> Finding:
        table = structure(algorithm)
        most = table.agents * table.wait * math.log(horizon)
        different, same = (
            _end12(data, horizon, algorithm, spread) - _end12(data, horizon, "CDP", spread)
            for spread in ("heterogeneous", "homogeneous")
        )
        extra = {"more than where agents are alike": verdicts.mean(different - same)}
        return verdicts.at_most(slots(horizon), most, **extra)

    return judge


def _without_deteriorating(data: Data, horizon: int) -> Finding:
    ends = [_end12(data, horizon, name, "homogeneous") for name in ("HDP", "CDP")]
    return verdicts.no_more(slots(horizon), **{"HDP over CDP": verdicts.excess(*ends)})


def _less_waiting(data: Data, horizon: int) -> Finding:
    """Judges by what share there is less regret while waiting, and states its part of all."""
    ddp, hdp = (
        data.last(F12, horizon, algorithm=a, spread="homogeneous").waiting_regret.values
        for a in ("DDP", "HDP")
    )
    part = verdicts.ratio(ddp - hdp, _end12(data, horizon, "DDP", "homogeneous"))
    finding = verdicts.ordered(slots(horizon), **{"HDP below DDP": verdicts.less(hdp, ddp)})
    return finding.add(f"; {verdicts.percent(part)} of all regret", of_all_regret=part)


def _balance(more: str, fewer: str) -> Callable[[Data, int], Finding]:
    def judge(data: Data, horizon: int) -> Finding:
        cells = data.sweep(
            f"rings-T{horizon}", "hdp", uniform(100), epsilon=1, components=RINGS, horizon=horizon,
            sum_agents=False,
        ).regret  # fmt: skip
        pair = [cells.sel(components=name).values for name in (more, fewer)]
        return verdicts.ordered(slots(horizon), **{f"{more} over {fewer}": verdicts.excess(*pair)})

    return judge


_OWN = "Budget built for the instance's own gap."
_WHETHER_REACHED = "The schedule does not ask whether R epochs fit into T; where they do not, the sentence says nothing."

ROWS = [
    Row("I", "without deteriorating the regret", "HDP-MAB on five rings over CDP-MAB, agents alike: not worse.",
        over_horizons(_without_deteriorating), "fig12"),
    Row("IV-A, Remark 1", "may bring the performance loss", "Regret at R = 2 over that without a budget: above 0.", _by_gap(_fewer_rounds_cost), "fig06"),
    Row("IV-A, proof outline", "communication rounds are needed to identify the suboptimal arm",
        "Of all seeds, those that made at most ⌈log2(1/Δ) + 1⌉ rounds, each with its own Δ: high probability.", over_horizons(_rounds_identify), "fig04"),
    Row("IV-B", "identify the best arm after the $R$-th communication round with high probability",
        "Of the runs that have made R rounds, those that play a best arm: high probability.", _by_gap(_commits), "fig06"),
    Row("IV-B", "identify the best arm after the $R$-th communication round with high probability",
        "Of all runs, those that within R rounds have only a best arm left, or play one after round R: high probability.", _by_gap(_commits_in_all), "fig06",
        _WHETHER_REACHED),
    Row("Appendix C, step 2", "is removed from the active arm set after the $R-$th communication",
        f"Of the runs that have made R rounds, those with one arm left: high probability. {_OWN}", over_horizons(_removed_by_the_last_round), "fig06",
        "The best aggregate is a best arm's all the same: docs/theory.md."),
    Row("Appendix C, step 2", "is removed from the active arm set after the $R-$th communication",
        f"Of all runs, those with one arm left: high probability. {_OWN}", over_horizons(_removed_in_all), "fig06",
        _WHETHER_REACHED),
    Row("IV-B, Theorem 2", r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R", f"As an equality: rounds made over R, p = 1: 100 %. {_OWN}", _all_budget_spent, "fig07",
        "The print has an equality."),
    Row("IV-B, Remark 2", "we can recover $R_{C}(T)$", f"R = 20 and 40, p = 1, over no budget: recovered. {_OWN}", over_horizons(_recovers("cdp")), "cdp_mab",
        "A budget of so many rounds looks more often than the doubling schedule, so arms leave earlier."),
    Row("IV-B, Remark 2", "we can obtain $MR_C(T)$ regret", "As an upper bound: agents alone, summed over agents, over CDP-MAB: at most M.", _m_times, "single_mab"),
    Row("IV-B, Remark 2", "we can obtain $MR_C(T)$ regret", "As an equality: the same ratio is M.", _m_times_attained, "single_mab",
        "A short horizon ends before either has left its first epochs."),
    Row("IV-B, Remark 2", "not worse than the non-communication case", f"(p, R) over agents alone, at the least R that is at least 4 log T / (3 log pM), the remark's own condition: not worse. {_OWN}", _not_worse, "fig07",
        "R = 2 is shown to tell what the condition is good for."),
    Row("IV-C2", "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved", f"e in R(p = 0.2) = R_C 5^e, R = 20 and 40: at most 3/2. {_OWN}", over_horizons(_participation_at_most), "cdp_mab"),
    Row("IV-C2", "turn to be a constant", f"Regret at R = 20 and 40 over no budget: alike from one T to the next. {_OWN}", _constant, "cdp_mab"),
    Row("IV-C2", "the worst-cast regret is still $MR_C(T)$", f"R = 3 log T / (4 log M), rounded down (2 at least) and up, p = 1, over R_C: at most M. {_OWN}", _worst_case, "cdp_mab"),
    Row("V-A, Remark 3", "we can recover $R_{D}(T)$. To ensure our performance", f"Ring, R = 20 and 40 over no budget: recovered. {_OWN}", over_horizons(_recovers("ddp")), "ddp_mab"),
    Row("V-A, Remark 3", r"$R \geq 2\log T /\log M$", f"DDP-MAB on a ring at the least such R over agents alone: not worse. {_OWN}", over_horizons(_not_worse_spread("ddp")), "ddp_mab"),
    Row("V-B2", "and not depending on $T$", "As a bound: paired difference of regret, a graph minus the complete one (which has that of CDP-MAB): at most 2 M (d_G - 1), the proof's bound, in which there is no T.",
        _extra_of_waiting, "fig10", "VI-C1 repeats the sentence."),
    Row("V-B2", "and not depending on $T$", "Is the difference itself constant? The same from one T to the next: alike.",
        _extra_over_horizons, "fig10", "The sentence is about the bound, in which there is no T: the row above."),
    Row("V-B3, Table I", "$R_C(T)+O(M)$    & $R_C(T)+O(M(M-1))$ & $R_C(T)$", "Paired difference of regret to the complete graph: at most twice the printed order (the proof's constant), star and ring. Complete graph over CDP-MAB: alike.",
        _table_one, "table1"),
    Row("VI-A, Remark 5", "we can recover $R_{H}(T)$", f"Ten rings of five, R = 20 and 40 over no budget: recovered. {_OWN}", over_horizons(_recovers("hdp")), "hdp_mab"),
    Row("VI-A, Remark 5", r"$R \geq 2\log T /\log M$", f"HDP-MAB on ten rings of five at the least such R over agents alone: not worse. {_OWN}", over_horizons(_not_worse_spread("hdp")), "hdp_mab"),
    Row("VI-B2", "ultimately leads to the reduction of the regret introduced by the local exploitation", "Agents alike: by what share five rings of 20 have less regret while waiting than one ring of 100.",
        over_horizons(_less_waiting), "fig12"),
    Row("VI-B3", "we should try to ensure the balance of agents in each component", "Regret, rings of 53, 24, 10, 6 and 7 agents over five rings of 20: above 0.",
        over_horizons(_balance("unbalanced", "balanced")), "hdp_mab"),
    Row("VI-B3", "can also help reduce communication costs as well as regrets", "Regret, five rings of 20 over five stars of 20: above 0.", over_horizons(_balance("balanced", "stars")), "hdp_mab"),
    *(
        Row("VI-C2, Corollary 3", quote, f"{a}-MAB minus CDP-MAB, heterogeneous minus homogeneous: at most M x wait x log T.", over_horizons(_extra_where_agents_differ(a)), "fig12")
        for a, quote in (("DDP", r"Our DDP-MAB can achieve $R_D(T) + O(M(d_G-1)\log (T))$ regret"),
                         ("HDP", r"Our HDP-MAB can achieve $R_H(T) + O(M\max_{q\in Q}\{d_G^q-1\} \log T)$ regret"))
    ),
    Row("VII-A2", "do not affect the total regrets", f"Regret at R = 5 over that at R = 8: alike. {_OWN}", over_horizons(_more_rounds), "cdp_mab"),
]  # fmt: skip
