"""The paper's theorems, remarks and discussions, judged on runs, bounds and sweeps of their own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from experiments import common, fig06_rounds, fig12_heterogeneous_structures
from experiments.claims_measured import ORACLE, SHORT, Judge, largest, over_horizons, slots
from experiments.verdicts import (
    OPEN,
    Data,
    Finding,
    Measured,
    Row,
    alike,
    at_least,
    at_most,
    excess,
    exponent,
    mean,
    no_more,
    ordered,
    percent,
    probable,
    ratio,
    share,
    valued,
)
from fmab_jax.analysis import theory
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.words import written
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs, keys, problems

AGENTS, ARMS = 50, 100
# Instances whose bound is compared with their mean regret.
INSTANCES = 50
# Of the seeds of a figure; so many more look for lost best arms.
MANY = 1000
# Budgets that have more rounds than the doubling schedule ever makes.
AMPLE = (20, 40)
GRAPH, COMPONENTS = "ring", "5x10:ring"  # ten rings of five agents


@functools.cache
def uniform(agents: int = AGENTS, arms: int = ARMS) -> problems.Problem:
    """Returns the paper's instance."""
    return fmab.Problem.uniform(agents, arms)


@functools.cache
def fixed() -> problems.Problem:
    """Returns one instance, small enough for horizons at which orders show."""
    return fmab.Problem.with_gap(50, 10, 0.1).fixed(0)


@functools.cache
def gaps_of(problem: problems.Problem, instances: int) -> np.ndarray:
    """Returns [seed, arm] gaps of the instances that the first seeds draw."""
    with jax.enable_x64(True):

        def one(seed: Any) -> Any:
            return bound.draw(keys.seed_key(jnp.uint32(0), seed)).gaps

        bound = problem.bind(problem.agents)
        return np.asarray(jax.vmap(one)(jnp.arange(instances, dtype=jnp.uint32)))


# --- bounds with explicit constants -------------------------------------------------------------


def _bounded(
    name: str,
    cell: dict[str, Any],
    problem: Callable[[], problems.Problem],
    table: Callable[[], exchange.Exchange],
    **options: Any,
) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        ends = data.end(name, horizon, **cell)[:INSTANCES]
        gaps = gaps_of(problem(), INSTANCES)[: len(ends)]
        bounds = [theory.bounds(g, table(), horizon, 1.0, **options).regret for g in gaps]
        return at_least(slots(horizon), 1.0, **{"bound / regret": ratio(bounds, ends)})

    return over_horizons(one)


def _budgeted(kind: str, table: Callable[[], exchange.Exchange]) -> Judge:
    """Corollaries 1 and 2: a budget of four rounds on a graph, and on components."""

    def one(data: Data, horizon: int) -> Finding:
        ends = spread_out(data, kind, horizon)[0][:INSTANCES]
        bounds = [
            theory.bounds(gaps, table(), horizon, 1.0, rounds=4).regret
            for gaps in gaps_of(uniform(), INSTANCES)[: len(ends)]
        ]
        return at_least(slots(horizon), 1.0, **{"bound / regret": ratio(bounds, ends)})

    return over_horizons(one)


def _budget_bound(data: Data) -> list[Finding]:
    """Theorem 2's bound of figure 6's budgets, where it is loosest and tightest."""
    found = []
    for gap, words in SHORT.items():
        for horizon in data.horizons:
            looseness = {}
            for rounds in (2, 5):
                ends = data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=rounds)
                ends = ends[:INSTANCES]
                given = fig06_rounds.GAPS[gap]
                bounds = [
                    theory.bounds(
                        g, exchange.server(AGENTS), horizon, 1.0, rounds=rounds, schedule_gap=given
                    ).regret
                    for g in gaps_of(uniform(), INSTANCES)[: len(ends)]
                ]
                looseness[f"R = {rounds}: bound / regret"] = ratio(bounds, ends)
            found.append(at_least(f"{slots(horizon)}, {words}", 1.0, **looseness))
    return found


def _structure(algorithm: str) -> Callable[[], exchange.Exchange]:
    agents = fig12_heterogeneous_structures.AGENTS

    def table() -> exchange.Exchange:
        if algorithm == "CDP":
            return exchange.server(agents)
        if algorithm == "DDP":
            return exchange.flooding(graphs.make(fig12_heterogeneous_structures.GRAPH, agents))
        components = fig12_heterogeneous_structures.COMPONENTS
        return exchange.sinks(graphs.components(components, agents))

    return table


@functools.cache
def _different() -> problems.Problem:
    agents, arms = fig12_heterogeneous_structures.AGENTS, fig12_heterogeneous_structures.ARMS
    return fmab.Problem.heterogeneous(agents, arms, 1.0)


# --- the good event and the rounds --------------------------------------------------------------


def _never_lost(data: Data, horizon: int) -> Finding:
    cells = data.own(
        f"lost-T{horizon}", "cdp", uniform(), epsilon=1, horizon=horizon,
        seeds=MANY * data.seeds, keep="summary",
    )  # fmt: skip
    lost, seeds = int(cells.best_arm_lost), int(cells.seeds)
    found = Measured(lost / seeds, *lost_interval(lost, seeds, 0.99))
    finding = at_most(slots(horizon), 1 / horizon, lost=found)
    words = f"{lost} of {common.whole(seeds)} seeds lost it: at most {found.upper:.1e}"
    return finding._replace(told=words)


def _rounds_identify(data: Data, horizon: int) -> Finding:
    """Of the seeds that have identified an arm: rounds over those that the sentence allows."""
    cell = data.last("fig04_epsilon", horizon, epsilon=1)
    gaps = gaps_of(uniform(), cell.sizes["seed"])
    smallest = np.where(gaps > 0, gaps, 1.0).min(axis=1)
    allowed = np.ceil(np.log2(1 / smallest) + 1)
    decided = cell.active_arms.values == 1
    if not decided.any():
        return Finding(slots(horizon), "no seed has one arm left", (OPEN,) * 3)
    most = largest((cell.rounds_made.values / allowed)[decided])
    finding = at_most(slots(horizon), 1.0, **{"largest share of the allowed rounds": most})
    return finding._replace(
        told=f"{finding.told}, in {int(decided.sum()):,} of {decided.size:,} seeds"
    )


def _rounds_grow(name: str, **cell: Any) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        made = data.last(name, horizon, **cell).rounds_made.values / math.log2(horizon)
        return at_most(slots(horizon), 1.0, **{"rounds / log2 T": mean(made)})

    return over_horizons(one)


def pulls_of_arms(
    horizon: int, instances: int, epsilon: float = 1.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns pulls of an agent [instance, arm] when the arm left, 0 if it did not, and regret.

    Algorithm 1 in a few lines of NumPy, for the pulls of single arms, which results do not keep.
    """
    rng = np.random.default_rng(seed)
    gone, regrets = np.zeros((instances, ARMS)), np.zeros(instances)
    for index, gaps in enumerate(gaps_of(uniform(), instances)):
        active, total = np.arange(ARMS), np.zeros(ARMS)
        pulls, slots_left = 0, float(horizon)
        for r in range(1, 64):
            width = math.log(8 * len(active) * r * r * horizon)
            noisy = r * math.sqrt(2 * math.log(8 * ARMS * r * r * horizon))
            target = 2.0**-r
            need = max(
                8 * width / (AGENTS * target**2), 8 * noisy / (AGENTS**1.5 * epsilon * target)
            )
            fresh = max(math.ceil(need), pulls + 1) - pulls
            if len(active) * fresh > slots_left or len(active) == 1:
                break
            slots_left -= len(active) * fresh
            pulls += fresh
            regrets[index] += AGENTS * fresh * gaps[active].sum()
            total[active] += rng.binomial(AGENTS * fresh, 1 - gaps[active])
            noise = rng.laplace(scale=1 / (AGENTS * epsilon), size=(AGENTS, len(active)))
            total[active] += noise.sum(axis=0)
            means = total[active] / (AGENTS * pulls)
            radius = math.sqrt(width / (2 * AGENTS * pulls))
            radius += 2 * noisy / (AGENTS**1.5 * epsilon * pulls)
            stays = means > means.max() - 2 * radius
            gone[index, active[~stays]] = pulls
            active = active[stays]
        regrets[index] += AGENTS * slots_left * gaps[active].mean()
    return gone, regrets


def _printed(gaps: np.ndarray, horizon: int, epsilon: float, constant: float) -> np.ndarray:
    """Step 3 of the proof of Theorem 1, with another constant for 16."""
    r = np.ceil(np.log2(1 / gaps) + 1)
    width = np.log(8 * ARMS * r**2 * horizon)
    return np.maximum(
        constant * width / (AGENTS * gaps**2),
        32 * r * np.sqrt(2 * width) / (AGENTS**1.5 * epsilon * gaps),
    )


def _sixteen(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        gaps = gaps_of(uniform(), min(300, data.seeds))
        gone, _ = pulls_of_arms(horizon, len(gaps))
        left = (gone > 0) & (gaps > 0)
        printed, doubled = (
            _printed(np.where(left, gaps, 1.0), horizon, 1.0, constant) for constant in (16, 32)
        )
        ratios = (gone / printed)[left]
        sums = (gaps * gone).sum(1) / np.where(left, gaps * printed, 0).sum(1)
        over = share(ratios > 1)
        first = at_most(f"{slots(horizon)}, arm by arm", 1.0, largest=largest(ratios))
        words = f"exceeded by {percent(over)} of the arms that left; {first.told}"
        numbers = {**first.numbers, "share of arms": over}
        found.append(first._replace(told=words, numbers=numbers))
        found.append(at_most(f"{slots(horizon)}, summed over arms", 1.0, largest=largest(sums)))
        other = at_most(
            f"{slots(horizon)}, with 32 for 16", 1.0, largest=largest((gone / doubled)[left])
        )
        found.append(other.uncounted("not the print"))
    return found


# --- orders in T, epsilon, M and p --------------------------------------------------------------

LONG = [10**5, 10**7, 10**9, 10**11]
EPSILONS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, None]
FAR = 10**10


def _log_growth(data: Data) -> list[Finding]:
    cells = data.own("slope", "cdp", fixed(), epsilon=1, horizon=LONG).regret
    growth = np.diff(cells.transpose("horizon", "seed").values, axis=0)
    return [
        valued(
            f"T = {common.whole(LONG[i])} to {common.whole(LONG[i + 1])}",
            1.0,
            **{"growth over that of the two decades before": ratio(growth[i], growth[i - 1])},
        )
        for i in range(1, len(growth))
    ]


def _private(data: Data) -> Any:
    return data.own("epsilon", "cdp", fixed(), epsilon=EPSILONS, horizon=FAR).regret


def _epsilon_exponent(data: Data) -> list[Finding]:
    cells = _private(data)
    found = []
    for small, large in ((1e-6, 1e-5), (1e-5, 1e-4), (1e-4, 1e-3)):
        ends = [cells.sel(epsilon=value).values for value in (small, large)]
        power = exponent(*ends, 10)
        found.append(valued(f"ε from {written(small)} to {written(large)}", 1.0, exponent=power))
    return found


def _crossover(data: Data) -> list[Finding]:
    """A decade below the printed crossover noise decides, a decade above it does not."""
    gap = float(np.sort(gaps_of(fixed(), 1)[0])[1])
    printed = gap * math.sqrt(math.log(FAR) / fixed().agents)
    epsilons = [printed / 20, printed / 5, 5 * printed, 20 * printed]
    cells = data.own("crossover", "cdp", fixed(), epsilon=epsilons, horizon=FAR).regret
    ends = cells.transpose("epsilon", "seed").values
    low, high = exponent(ends[0], ends[1], 4), exponent(ends[2], ends[3], 4)
    words = f"printed crossover at ε = {printed:.2g}"
    return [
        at_least(f"a decade below, {words}", 0.5, exponent=low),
        at_most(f"a decade above, {words}", 0.5, exponent=high),
    ]


def _log_power(data: Data) -> list[Finding]:
    horizons = [10**8, 10**10, 10**12]
    cells = data.own("log-power", "cdp", fixed(), epsilon=1e-4, horizon=horizons).regret
    ends = cells.transpose("horizon", "seed").values
    found = []
    for i in (0, 1):
        factor = math.log(horizons[i + 1]) / math.log(horizons[i])
        power = exponent(ends[i + 1], ends[i], factor)
        condition = f"T = {common.whole(horizons[i])} to {common.whole(horizons[i + 1])}"
        found.append(at_most(condition, 1.5, **{"power of log T": power}))
    return found


def _agents_exponent(data: Data) -> list[Finding]:
    numbers = [10, 100, 1000]
    means = fixed().means[0]
    cells = data.own(
        "agents", "cdp", {str(m): fmab.Problem(means, m) for m in numbers}, epsilon=1e-6,
        horizon=10**11,
    ).regret  # fmt: skip
    found = []
    for few, many in zip(numbers, numbers[1:], strict=False):
        ends = [cells.sel(problem=str(m)).values for m in (few, many)]
        power = exponent(*ends, many / few)
        found.append(valued(f"M from {few} to {many}", 0.5, exponent=power))
    return found


def _participation_at_most(data: Data, horizon: int) -> Finding:
    ends = [data.end("fig05_participation", horizon, participation=p) for p in (0.2, 1)]
    return at_most(slots(horizon), 1.5, exponent=exponent(*ends, 5))


def _participation_attained(data: Data) -> list[Finding]:
    cells = data.own(
        "participation", "cdp", fixed(), epsilon=[1e-4, None], participation=[0.2, 1],
        horizon=10**9,
    ).regret  # fmt: skip
    found = []
    for index, words in enumerate(("noise decides (ε = 10⁻⁴)", "no noise")):
        ends = [cells.isel(epsilon=index).sel(participation=p).values for p in (0.2, 1)]
        found.append(valued(f"T = 10⁹, {words}", 1.5, exponent=exponent(*ends, 5)))
    return found


# --- budgets ------------------------------------------------------------------------------------


def budgets(data: Data, horizon: int) -> Any:
    """Returns CDP-MAB's regret over p and R, with the instance's own gap."""
    return data.own(
        f"budgets-T{horizon}", "cdp", uniform(), epsilon=1, participation=[0.2, 1],
        rounds=[2, 3, 4, 5, 6, 7, 8, *AMPLE, None], horizon=horizon,
    ).regret.transpose("participation", "rounds", "seed")  # fmt: skip


def alone(data: Data, horizon: int) -> np.ndarray:
    """Returns [seed] regret of as many agents alone, summed over agents."""
    found = data.own(f"alone-T{horizon}", "single", uniform(), epsilon=1, horizon=horizon)
    return found.regret.values


def spread_out(data: Data, algorithm: str, horizon: int) -> Any:
    """Returns regret on a graph, or on components, over R."""
    own = {"graph": GRAPH} if algorithm == "ddp" else {"components": COMPONENTS}
    rounds = [4, _enough(horizon), *AMPLE, None]
    found = data.own(
        f"budgets-{algorithm}-T{horizon}", algorithm, uniform(), epsilon=1, rounds=rounds,
        horizon=horizon, sum_agents=False, **own,
    )  # fmt: skip
    return found.regret.transpose("rounds", "seed").values


def _enough(horizon: int) -> int:
    """Remarks 3 and 5: R >= 2 log T / log M."""
    return math.ceil(2 * math.log(horizon) / math.log(AGENTS) - 1e-9)


def _recovers_server(data: Data, horizon: int) -> Finding:
    cells = budgets(data, horizon).sel(participation=1)
    none = cells.isel(rounds=-1).values
    shares = {f"R = {r}": excess(cells.sel(rounds=r).values, none) for r in AMPLE}
    return no_more(slots(horizon), **shares)


def _recovers(algorithm: str) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        cells = spread_out(data, algorithm, horizon)
        shares = {f"R = {r}": excess(cells[2 + i], cells[-1]) for i, r in enumerate(AMPLE)}
        return no_more(slots(horizon), **shares)

    return over_horizons(one)


def _not_worse(data: Data) -> list[Finding]:
    """Remark 2: agents alone have more regret, whatever p and R."""
    found = []
    for horizon in data.horizons:
        cells, by_itself = budgets(data, horizon), alone(data, horizon)
        for p, rounds in ((1, 2), (0.2, 2)):
            ends = cells.sel(participation=p, rounds=rounds).values
            condition = f"{slots(horizon)}, p = {p:g} and R = {rounds}"
            found.append(no_more(condition, **{"over agents alone": excess(ends, by_itself)}))
    return found


def _not_worse_from(data: Data) -> list[Finding]:
    """Remark 2, from R >= 4 log T / (3 log pM) on."""
    found = []
    for horizon in data.horizons:
        cells, by_itself = budgets(data, horizon), alone(data, horizon)
        for p in (1, 0.2):
            rounds = math.ceil(4 * math.log(horizon) / (3 * math.log(p * AGENTS)) - 1e-9)
            ends = cells.sel(participation=p, rounds=rounds).values
            condition = f"{slots(horizon)}, p = {p:g} and R = {rounds}"
            found.append(no_more(condition, **{"over agents alone": excess(ends, by_itself)}))
    return found


def _not_worse_spread(algorithm: str) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        ends, by_itself = spread_out(data, algorithm, horizon)[1], alone(data, horizon)
        condition = f"{slots(horizon)}, R = {_enough(horizon)}"
        return no_more(condition, **{"over agents alone": excess(ends, by_itself)})

    return over_horizons(one)


def _m_times(data: Data, horizon: int) -> Finding:
    server = budgets(data, horizon).sel(participation=1).isel(rounds=-1).values
    found = ratio(alone(data, horizon), server)
    return valued(slots(horizon), float(AGENTS), **{f"of M = {AGENTS}:": found})


def _at_most_m(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        cells = budgets(data, horizon)
        server = cells.sel(participation=1).isel(rounds=-1).values
        for p, rounds in ((1, 2), (0.2, 2)):
            ends = cells.sel(participation=p, rounds=rounds).values
            condition = f"{slots(horizon)}, p = {p:g} and R = {rounds}"
            found.append(at_most(condition, float(AGENTS), times=ratio(ends, server)))
    return found


def _worst_case(data: Data, horizon: int) -> Finding:
    rounds = max(2, math.ceil(3 * math.log(horizon) / (4 * math.log(AGENTS)) - 1e-9))
    cells = budgets(data, horizon).sel(participation=1)
    found = ratio(cells.sel(rounds=rounds).values, cells.isel(rounds=-1).values)
    return at_most(f"{slots(horizon)}, R = {rounds}", float(AGENTS), times=found)


def _fewer_rounds_cost(data: Data) -> list[Finding]:
    found = []
    for gap, words in SHORT.items():
        for horizon in data.horizons:
            cells = [
                data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=r) for r in (4, "none")
            ]
            condition = f"{slots(horizon)}, {words}"
            found.append(ordered(condition, **{"R = 4 over no budget": excess(*cells)}))
    return found


def _commits(data: Data) -> list[Finding]:
    """Of the seeds that have spent their budget, those that play a best arm."""
    found = []
    for gap, words in SHORT.items():
        for horizon in data.horizons:
            cells = data.load("fig06_rounds")[horizon].isel(time=-1).sel(schedule_gap=gap)
            cells = cells.isel(rounds=slice(0, 4)).transpose("rounds", "seed", ...)
            spent = cells.rounds_made.values >= cells.rounds.values.astype(int)[:, None]
            wrong = cells.worse_arm_played.values.astype(bool) & spent
            condition = f"{slots(horizon)}, {words}"
            if spent.sum() < 30:
                words_ = f"{int(spent.sum())} seeds have spent their budget: too few"
                found.append(Finding(condition, words_, (OPEN,) * 3))
                continue
            finding = probable(condition, _=share(~wrong[spent]))
            told = f"{finding.told} of {int(spent.sum()):,} runs"
            numbers = dict(finding.numbers)
            if wrong.any():
                most = largest(cells.regret.values[wrong])
                told += f"; the others' regret is up to {most.estimate:,.0f}"
                numbers["largest regret of a worse arm"] = most
            found.append(finding._replace(told=told, numbers=numbers))
    return found


def _all_budget_spent(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        for budget in (2, 5):
            cell = data.last(
                "fig07_tradeoff", horizon, schedule_gap=ORACLE, participation=1, rounds=budget
            )
            condition = f"{slots(horizon)}, R = {budget}"
            made = mean(cell.rounds_made / budget)
            found.append(valued(condition, 1.0, percent, rounds_made_over_R=made))
    return found


# --- graphs and components ----------------------------------------------------------------------


def _extra_of_waiting(data: Data) -> list[Finding]:
    """R_D - R_C on the ring, against the print's bound, in which there is no T."""
    diameter = exchange.flooding(graphs.make(GRAPH, AGENTS)).diameter
    most = 2.0 * AGENTS * (diameter - 1)
    found = []
    for horizon in data.horizons:
        ends = [data.end("fig10_graphs", horizon, graph=graph) for graph in (GRAPH, "complete")]
        found.append(
            at_most(slots(horizon), most, **{"ring minus complete": mean(ends[0] - ends[1])})
        )
    return found


def _extra_where_agents_differ(algorithm: str) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        def extra(spread: str) -> np.ndarray:
            name = "fig12_heterogeneous_structures"
            pair = [data.end(name, horizon, algorithm=a, spread=spread) for a in (algorithm, "CDP")]
            return pair[0] - pair[1]

        table = _structure(algorithm)()
        most = table.agents * table.wait * math.log(horizon)
        found = mean(extra("heterogeneous") - extra("homogeneous"))
        return at_most(slots(horizon), most, **{"more than where agents are alike": found})

    return over_horizons(one)


def _same_cost(data: Data, horizon: int) -> Finding:
    """Server links priced such that a round costs the same; what is left is the rounds."""
    made = [data.last("fig10_graphs", horizon, graph=g).rounds_made for g in (GRAPH, "complete")]
    return alike(slots(horizon), **{"ring over server": excess(*made)})


def _without_deteriorating(data: Data, horizon: int) -> Finding:
    name = "fig12_heterogeneous_structures"
    ends = [data.end(name, horizon, algorithm=a, spread="homogeneous") for a in ("HDP", "CDP")]
    return alike(slots(horizon), **{"HDP over CDP": excess(*ends)})


RINGS = {"balanced": "20x5:ring", "unbalanced": "53,24,10,6,7:ring", "stars": "20x5:star"}


def _rings(data: Data, horizon: int) -> Any:
    return data.own(
        f"rings-T{horizon}", "hdp", uniform(100), epsilon=1, components=RINGS, horizon=horizon,
        sum_agents=False,
    ).regret  # fmt: skip


def _balance(more: str, less: str) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        cells = _rings(data, horizon)
        pair = [cells.sel(components=each).values for each in (more, less)]
        return ordered(slots(horizon), **{f"{more} over {less}": excess(*pair)})

    return over_horizons(one)


_BOUND = "Bound with the constants of docs/theory.md over regret, 50 instances: at least 1."
_OWN = "Budget built for the instance's own gap."

ROWS = [
    Row("I", "without deteriorating the regret", "HDP-MAB on five rings over CDP-MAB, agents alike: alike.",
        over_horizons(_without_deteriorating), "fig12"),
    Row("I", r"inversely proportional to $\epsilon$", "e in R(ε) = R(10 ε) 10^e, one instance, T = 10¹⁰: 1.", _epsilon_exponent, "theory, maps"),
    Row("IV-A, Theorem 1", r"incurs communication cost $C_{C}(T)= O(c_1M\log T)$", "Completed rounds over log2 T: at most 1.",
        _rounds_grow("fig04_epsilon", epsilon=1), "fig04"),
    Row("IV-A, Theorem 1", "incurs regret $R_{C}(T)$ upper bounded by", _BOUND,
        _bounded("fig04_epsilon", {"epsilon": 1}, uniform, lambda: exchange.server(50)), "theory.bounds"),
    Row("IV-A, Theorem 1", r"\sum_{k=1}^{K} \frac{\log(KT\log T)}{\Delta_k}", "One instance, ε = 1: regret grows as log T, so its growth over two decades is that over the two before.",
        _log_growth, "cdp_mab"),
    Row("IV-A, Theorem 1", r"\frac{K\log T \sqrt{\log(KT\log T)}}{\sqrt{M}\epsilon}", "e in R(M) = R(10 M) 10^e at ε = 10⁻⁶, one instance: 1/2.",
        _agents_exponent, "maps"),
    Row("IV-A, Remark 1", "may bring the performance loss", "Regret at R = 4 over that without a budget.", _fewer_rounds_cost, "fig06"),
    Row("IV-A, proof outline", "communication rounds are needed to identify the suboptimal arm",
        "Seeds with one arm left: their rounds over ⌈log2(1/Δ) + 1⌉, each with its own Δ: at most 1.", over_horizons(_rounds_identify), "fig04"),
    Row("Appendix B, step 1", r"$\Pr\{E_R\} \geq 1- \frac{1}{T}$", "Seeds that lost the best arm: at most 1/T.", over_horizons(_never_lost), "cdp_mab",
        "It follows from E_R that the best arm stays; E_R itself is not observed. The proof of the probability has gaps: see below."),
    Row("Appendix B, step 3", r"\frac{16\log(8K (\left \lceil \log (\frac{1}{\Delta_k}) +1 \right \rceil)^2 T)}{M\Delta_k^2}",
        "Pulls of arms that left over the printed bound: at most 1.", _sixteen, "pulls_over_print"),
    Row("IV-B", "identify the best arm after the $R$-th communication round with high probability",
        "Runs that have spent their budget, R = 2 to 5, and play a best arm: high probability.", _commits, "fig06, maps",
        "No arm is lost: several are left, and the best aggregate among them is played."),
    Row("IV-B, Theorem 2", r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R", f"Rounds made over R, p = 1: 100 %. {_OWN}", _all_budget_spent, "fig07",
        "The print has an equality. That it is never more is true by construction."),
    Row("IV-B, Theorem 2", "incurs regret $R^{p,R}_{C}(T)$ upper bounded by", f"{_BOUND} p = 0.4, no budget.",
        _bounded("fig05_participation", {"participation": 0.4}, uniform, lambda: exchange.server(50, 0.4)), "theory.bounds"),
    Row("IV-B, Theorem 2", "incurs regret $R^{p,R}_{C}(T)$ upper bounded by", f"{_BOUND} p = 1, R = 2 and 5.", _budget_bound, "theory.bounds"),
    Row("IV-B, Theorem 2", r"\min\{M,\frac{T^{2/R}}{p^{3/2}}\}", f"Regret over R_C: at most M. {_OWN}", _at_most_m, "maps",
        "O(.) leaves room for a constant. No step of the proof produces the M."),
    Row("IV-B, Remark 2", "we can recover $R_{C}(T)$", f"R = 20 and 40, p = 1, over no budget: recovered. {_OWN}", over_horizons(_recovers_server), "cdp_mab",
        "A budget of so many rounds looks more often than the doubling schedule, so arms leave earlier."),
    Row("IV-B, Remark 2", "we can obtain $MR_C(T)$ regret", "Agents alone, summed over agents, over CDP-MAB: M.", over_horizons(_m_times), "single_mab"),
    Row("IV-B, Remark 2", "not worse than the non-communication case", f"(p, R), R = 2, over agents alone: not worse. {_OWN}", _not_worse, "fig07, maps"),
    Row("IV-B, Remark 2", r"R \geq \frac{4\log T}{3 \log pM}", f"(p, R) at the least such R over agents alone: not worse. {_OWN}", _not_worse_from, "maps"),
    Row("IV-C1", r"If $\Delta<\frac{\epsilon \sqrt{M}}{\sqrt{\log (T)}}$, the first term dominate",
        "e in R(ε) = R(4 ε) 4^e, one instance, T = 10¹⁰: at least 1/2 a decade below the printed crossover, at most 1/2 a decade above.", _crossover, "maps"),
    Row("IV-C1", r"a $O(\frac{\log ^{1.5} T}{\epsilon \sqrt{M}})$ regret", "One instance, ε = 10⁻⁴: e in R ~ (log T)^e: at most 1.5.", _log_power, "maps",
        "On a fixed instance the number of rounds stops growing, and only the root of log T is left."),
    Row("IV-C2", "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved", "e in R(0.2) = R(1) 5^e, no budget: at most 3/2.", over_horizons(_participation_at_most), "fig05"),
    Row("IV-C2", "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved", "The same, one instance: is it attained, e = 3/2?", _participation_attained, "maps"),
    Row("IV-C2", "the worst-cast regret is still $MR_C(T)$", f"R = ⌈3 log T / (4 log M)⌉, p = 1, over R_C: at most M. {_OWN}", over_horizons(_worst_case), "maps"),
    Row("V-A, Theorem 3", r"incurs communication cost $C_{D}(T) = O( c_2d_G\log T \sum_{i=1}^M d_i/2)$", "Completed rounds on the ring over log2 T: at most 1.",
        _rounds_grow("fig10_graphs", graph="ring"), "fig10"),
    Row("V-A, Theorem 3", "incurs regret $R_{D}(T)$ upper bounded by", f"{_BOUND} Ring.",
        _bounded("fig10_graphs", {"graph": "ring"}, uniform, lambda: exchange.flooding(graphs.make("ring", 50))), "theory.bounds"),
    Row("V-A, Corollary 1", "DDP-MAB with communication round constrain $ R $ achieves the regret of", f"{_BOUND} Ring, R = 4. {_OWN}",
        _budgeted("ddp", lambda: exchange.flooding(graphs.make(GRAPH, AGENTS))), "theory.bounds"),
    Row("V-A, Remark 3", "we can recover $R_{D}(T)$. To ensure our performance", f"Ring, R = 20 and 40 over no budget: recovered. {_OWN}", _recovers("ddp"), "ddp_mab"),
    Row("V-A, Remark 3", r"$R \geq 2\log T /\log M$", f"DDP-MAB on a ring at the least such R over agents alone: not worse. {_OWN}", _not_worse_spread("ddp"), "ddp_mab"),
    Row("V-B1", "the communication costs incurred by these two settings are the same",
        "Prices chosen so that a round costs the same: cost of DDP-MAB on a ring over CDP-MAB: alike.", over_horizons(_same_cost), "fig10"),
    Row("V-B2", "and not depending on $T$", "Paired difference of regret, ring minus complete graph (= CDP-MAB): at most the proof's 2 M (d_G - 1), in which there is no T.",
        _extra_of_waiting, "fig10, maps"),
    Row("VI-A, Theorem 4", "incurs regret $R_{H}(T)$ upper bounded by", f"{_BOUND} Case 4.",
        _bounded("table2_fig11_hybrid", {"components": "case 4"}, lambda: uniform(100), lambda: exchange.sinks(graphs.components("20x5:random", 100))), "theory.bounds"),
    Row("VI-A, Corollary 2", "Alg.5 with communication round constrain $ R $ achieves the regret of", f"{_BOUND} Ten rings of five, R = 4. {_OWN}",
        _budgeted("hdp", lambda: exchange.sinks(graphs.components(COMPONENTS, AGENTS))), "theory.bounds"),
    Row("VI-A, Remark 5", "we can recover $R_{H}(T)$", f"Ten rings of five, R = 20 and 40 over no budget: recovered. {_OWN}", _recovers("hdp"), "hdp_mab"),
    Row("VI-A, Remark 5", r"$R \geq 2\log T /\log M$", f"HDP-MAB on ten rings of five at the least such R over agents alone: not worse. {_OWN}", _not_worse_spread("hdp"), "hdp_mab"),
    Row("VI-B2", "ultimately leads to the reduction of the regret introduced by the local exploitation", "Agents alike: one ring of 100 over five rings of 20.",
        over_horizons(lambda data, horizon: ordered(slots(horizon), **{"DDP over HDP": excess(*(
            data.end("fig12_heterogeneous_structures", horizon, algorithm=a, spread="homogeneous") for a in ("DDP", "HDP")))})), "fig12"),
    Row("VI-B3", "we should try to ensure the balance of agents in each component", "Rings of 53, 24, 10, 6 and 7 agents over five rings of 20.",
        _balance("unbalanced", "balanced"), "hdp_mab"),
    Row("VI-B3", "can also help reduce communication costs as well as regrets", "Five rings of 20 over five stars of 20.", _balance("balanced", "stars"), "hdp_mab",
        "Against complete components stars save cost only: neither waits."),
    Row("VI-D2, Corollary 3", "Our CDP-MAB can achieve $R_C(T)$ regret", f"{_BOUND} Heterogeneous.",
        _bounded("fig12_heterogeneous_structures", {"algorithm": "CDP", "spread": "heterogeneous"}, _different, _structure("CDP"), heterogeneous=True), "theory.bounds"),
    *(
        Row("VI-D2, Corollary 3", quote, f"{a}-MAB minus CDP-MAB, heterogeneous minus homogeneous: at most M x wait x log T.", _extra_where_agents_differ(a), "fig12")
        for a, quote in (("DDP", r"Our DDP-MAB can achieve $R_D(T) + O(M(d_G-1)\log (T))$ regret"),
                         ("HDP", r"Our HDP-MAB can achieve $R_H(T) + O(M\max_{q\in Q}\{d_G^q-1\} \log T)$ regret"))
    ),
    *(
        Row("VI-D2, Corollary 3", quote, f"{_BOUND} Heterogeneous, without the log T that the print adds.",
            _bounded("fig12_heterogeneous_structures", {"algorithm": a, "spread": "heterogeneous"}, _different, _structure(a), heterogeneous=True), "theory.bounds")
        for a, quote in (("DDP", r"Our DDP-MAB can achieve $R_D(T) + O(M(d_G-1)\log (T))$ regret"),
                         ("HDP", r"Our HDP-MAB can achieve $R_H(T) + O(M\max_{q\in Q}\{d_G^q-1\} \log T)$ regret"))
    ),
]  # fmt: skip


def all_quotes(rows: Sequence[Row]) -> list[str]:
    """Returns what is quoted."""
    return [row.quote for row in rows]
