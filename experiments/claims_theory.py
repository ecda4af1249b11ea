"""The paper's theorems, remarks and discussions, judged on runs, bounds and sweeps of their own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import fmab_jax as fmab
from experiments import common, fig12_heterogeneous_structures
from experiments.claims_measured import FEWEST, ORACLE, SHORT, Judge, largest, over_horizons, slots
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
    number,
    ordered,
    percent,
    probable,
    ratio,
    share,
    valued,
)
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.words import written
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs, keys, problems

AGENTS, ARMS = 50, 100
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
    """Of the seeds that have identified an arm, those that took no more rounds than allowed."""
    cell = data.last("fig04_epsilon", horizon, epsilon=1)
    gaps = gaps_of(uniform(), cell.sizes["seed"])
    smallest = np.where(gaps > 0, gaps, 1.0).min(axis=1)
    allowed = np.ceil(np.log2(1 / smallest) + 1)
    decided = cell.active_arms.values == 1
    if decided.sum() < FEWEST:
        words = f"{int(decided.sum())} seeds have one arm left: too few"
        return Finding(slots(horizon), words, (OPEN,) * 3)
    made = cell.rounds_made.values[decided] / allowed[decided]
    finding = probable(slots(horizon), _=share(made <= 1))
    words = (
        f"{finding.told} of {int(decided.sum()):,} seeds; most rounds / allowed {made.max():.3f}"
    )
    return finding._replace(told=words)


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
    """Shares of arms within the print's bound, a mean over instances; and of sums over arms."""
    found = []
    for horizon in data.horizons:
        gaps = gaps_of(uniform(), min(300, data.seeds))
        gone, _ = pulls_of_arms(horizon, len(gaps))
        left = (gone > 0) & (gaps > 0)
        over = {
            constant: gone / _printed(np.where(left, gaps, 1.0), horizon, 1.0, constant)
            for constant in (16, 32)
        }
        within = {
            constant: mean(((ratios <= 1) & left).sum(1) / left.sum(1))
            for constant, ratios in over.items()
        }
        first = probable(f"{slots(horizon)}, arm by arm", _=within[16])
        words = f"{first.told} of the arms within it; most pulls / bound {over[16][left].max():.3g}"
        found.append(first._replace(told=words))
        printed = np.where(left, gaps * _printed(np.where(left, gaps, 1.0), horizon, 1.0, 16), 0)
        sums = (gaps * gone).sum(1) / printed.sum(1)
        summed = probable(f"{slots(horizon)}, summed over arms", _=share(sums <= 1))
        found.append(summed._replace(told=f"{summed.told} of the instances within it"))
        other = probable(f"{slots(horizon)}, with 32 for 16", _=within[32])
        words = f"{other.told}; most {over[32][left].max():.3g}"
        found.append(other._replace(told=words).uncounted("not the print"))
    return found


# --- orders in T, epsilon, M and p --------------------------------------------------------------

LONG = [10**5, 10**7, 10**9, 10**11]
EPSILONS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, None]
FAR = 10**10


def _log_growth(data: Data) -> list[Finding]:
    cells = data.own("slope", "cdp", fixed(), epsilon=1, horizon=LONG).regret
    growth = np.diff(cells.transpose("horizon", "seed").values, axis=0)
    return [
        no_more(
            f"T = {common.whole(LONG[i])} to {common.whole(LONG[i + 1])}",
            **{"growth over that of two decades before": excess(growth[i], growth[i - 1])},
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


def _log_powers(data: Data) -> list[tuple[str, Measured]]:
    horizons = [10**8, 10**10, 10**12]
    cells = data.own("log-power", "cdp", fixed(), epsilon=1e-4, horizon=horizons).regret
    ends = cells.transpose("horizon", "seed").values
    found: list[tuple[str, Measured]] = []
    for i in (0, 1):
        factor = math.log(horizons[i + 1]) / math.log(horizons[i])
        power = exponent(ends[i + 1], ends[i], factor)
        condition = f"T = {common.whole(horizons[i])} to {common.whole(horizons[i + 1])}"
        found.append((condition, power))
    return found


def _log_power_at_most(data: Data) -> list[Finding]:
    return [at_most(words, 1.5, **{"power of log T": power}) for words, power in _log_powers(data)]


def _log_power_attained(data: Data) -> list[Finding]:
    return [valued(words, 1.5, **{"power of log T": power}) for words, power in _log_powers(data)]


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


def _more_rounds(data: Data, horizon: int) -> Finding:
    """Above R = 4 another round changes nothing?"""
    cells = budgets(data, horizon).sel(participation=1)
    last = cells.sel(rounds=8).values
    return alike(slots(horizon), **{"R = 5 over 8": excess(cells.sel(rounds=5).values, last)})


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


def _worst_case(data: Data) -> list[Finding]:
    """At the two whole numbers beside the stated R."""
    found = []
    for horizon in data.horizons:
        stated = 3 * math.log(horizon) / (4 * math.log(AGENTS))
        cells = budgets(data, horizon).sel(participation=1)
        for rounds in sorted({max(2, math.floor(stated)), max(2, math.ceil(stated))}):
            times = ratio(cells.sel(rounds=rounds).values, cells.isel(rounds=-1).values)
            found.append(at_most(f"{slots(horizon)}, R = {rounds}", float(AGENTS), times=times))
    return found


def _fewer_rounds_cost(data: Data) -> list[Finding]:
    found = []
    for gap, words in SHORT.items():
        for horizon in data.horizons:
            cells = [
                data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=r) for r in (2, "none")
            ]
            condition = f"{slots(horizon)}, {words}"
            found.append(ordered(condition, **{"R = 2 over no budget": excess(*cells)}))
    return found


def _spent(data: Data, horizon: int, gap: str) -> tuple[Any, np.ndarray]:
    """Returns figure 6's runs [rounds, seed] with a budget, and which have spent it."""
    cells = data.load("fig06_rounds")[horizon].isel(time=-1).sel(schedule_gap=gap)
    cells = cells.isel(rounds=slice(0, 4)).transpose("rounds", "seed", ...)
    return cells, cells.rounds_made.values >= cells.rounds.values.astype(int)[:, None]


def _of_spent(condition: str, cells: Any, spent: np.ndarray, good: np.ndarray) -> Finding:
    """Judges a share of the runs that have spent their budget, for each R with enough of them."""
    shares = {
        f"R = {r}": share(good[i][spent[i]])
        for i, r in enumerate(cells.rounds.values)
        if spent[i].sum() >= FEWEST
    }
    if not shares:
        return Finding(condition, "too few runs have spent their budget", (OPEN,) * 3)
    return probable(condition, **shares)


def _commits(data: Data) -> list[Finding]:
    """Of the runs that have spent their budget, those that play a best arm."""
    found = []
    for gap, words in SHORT.items():
        for horizon in data.horizons:
            cells, spent = _spent(data, horizon, gap)
            wrong = cells.worse_arm_played.values.astype(bool) & spent
            finding = _of_spent(f"{slots(horizon)}, {words}", cells, spent, ~wrong)
            if wrong.any():
                most = largest(cells.regret.values[wrong])
                lost = int(cells.best_arm_lost.values[wrong].sum())
                told = (
                    f"{finding.told}; of {int(wrong.sum()):,} others {lost} lost the best arm, their "
                    f"regret is up to {most.estimate:,.0f}"
                )
                numbers = {**finding.numbers, "largest regret of a worse arm": most}
                finding = finding._replace(told=told, numbers=numbers)
            found.append(finding)
    return found


def _removed_by_the_last_round(data: Data, horizon: int) -> Finding:
    """Of the runs that have spent a budget built for their own gap, those with one arm left."""
    cells, spent = _spent(data, horizon, ORACLE)
    return _of_spent(slots(horizon), cells, spent, cells.active_arms.values == 1)


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
    """R_D - R_C against the bound of the print's proof, in which there is no T."""
    found = []
    for graph in (GRAPH, "star"):
        diameter = exchange.flooding(graphs.make(graph, AGENTS)).diameter
        for horizon in data.horizons:
            ends = [data.end("fig10_graphs", horizon, graph=each) for each in (graph, "complete")]
            extra = {f"{graph} minus complete": mean(ends[0] - ends[1])}
            found.append(
                at_most(f"{slots(horizon)}, {graph}", 2.0 * AGENTS * (diameter - 1), **extra)
            )
    return found


def structure(algorithm: str) -> Callable[[], exchange.Exchange]:
    """Returns the exchange of one of figure 12's structures."""
    agents = fig12_heterogeneous_structures.AGENTS

    def table() -> exchange.Exchange:
        if algorithm == "CDP":
            return exchange.server(agents)
        if algorithm == "DDP":
            return exchange.flooding(graphs.make(fig12_heterogeneous_structures.GRAPH, agents))
        components = fig12_heterogeneous_structures.COMPONENTS
        return exchange.sinks(graphs.components(components, agents))

    return table


def _extra_where_agents_differ(algorithm: str) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        def extra(spread: str) -> np.ndarray:
            name = "fig12_heterogeneous_structures"
            pair = [data.end(name, horizon, algorithm=a, spread=spread) for a in (algorithm, "CDP")]
            return pair[0] - pair[1]

        table = structure(algorithm)()
        most = table.agents * table.wait * math.log(horizon)
        found = mean(extra("heterogeneous") - extra("homogeneous"))
        return at_most(slots(horizon), most, **{"more than where agents are alike": found})

    return over_horizons(one)


def _without_deteriorating(data: Data, horizon: int) -> Finding:
    name = "fig12_heterogeneous_structures"
    ends = [data.end(name, horizon, algorithm=a, spread="homogeneous") for a in ("HDP", "CDP")]
    return no_more(slots(horizon), **{"HDP over CDP": excess(*ends)})


def _less_waiting(data: Data, horizon: int) -> Finding:
    name = "fig12_heterogeneous_structures"
    waits = [
        data.last(name, horizon, algorithm=a, spread="homogeneous").waiting_regret.values
        for a in ("DDP", "HDP")
    ]
    return ordered(slots(horizon), number, **{"DDP minus HDP": mean(waits[0] - waits[1])})


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


_OWN = "Budget built for the instance's own gap."

ROWS = [
    Row("I", "without deteriorating the regret", "HDP-MAB on five rings over CDP-MAB, agents alike: not worse.",
        over_horizons(_without_deteriorating), "fig12"),
    Row("I", r"inversely proportional to $\epsilon$", "e in R(ε) = R(10 ε) 10^e, one instance, T = 10¹⁰: 1.", _epsilon_exponent, "maps"),
    Row("IV-A, Theorem 1", r"\sum_{k=1}^{K} \frac{\log(KT\log T)}{\Delta_k}", "One instance, ε = 1. Regret grows no faster than log T: its growth over two decades is not more than over the two before.",
        _log_growth, "cdp_mab"),
    Row("IV-A, Theorem 1", r"\frac{K\log T \sqrt{\log(KT\log T)}}{\sqrt{M}\epsilon}", "e in R(M) = R(10 M) 10^e at ε = 10⁻⁶, one instance: 1/2.",
        _agents_exponent, "maps"),
    Row("IV-A, Remark 1", "may bring the performance loss", "Regret at R = 2 over that without a budget: above 0.", _fewer_rounds_cost, "fig06"),
    Row("IV-A, proof outline", "communication rounds are needed to identify the suboptimal arm",
        "Of the seeds with one arm left, those that made at most ⌈log2(1/Δ) + 1⌉ rounds, each with its own Δ: high probability.", over_horizons(_rounds_identify), "fig04"),
    Row("Appendix B, step 1", r"$\Pr\{E_R\} \geq 1- \frac{1}{T}$", "Seeds that lost the best arm, which E_R rules out: at most 1/T.", over_horizons(_never_lost), "cdp_mab",
        "The steps of the proof are another question: see below."),
    Row("Appendix B, step 3", r"\frac{16\log(8K (\left \lceil \log (\frac{1}{\Delta_k}) +1 \right \rceil)^2 T)}{M\Delta_k^2}",
        "Pulls of arms that left within the printed bound: high probability.", _sixteen, "pulls_of_arms"),
    Row("IV-B", "identify the best arm after the $R$-th communication round with high probability",
        "Runs that have spent their budget and play a best arm: high probability.", _commits, "fig06, maps"),
    Row("Appendix C, step 2", "is removed from the active arm set after the $R-$th communication",
        f"Runs that have spent their budget and have one arm left: high probability. {_OWN}", over_horizons(_removed_by_the_last_round), "fig06",
        "The best aggregate is a best arm's all the same: docs/theory.md."),
    Row("IV-B, Theorem 2", r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R", f"Rounds made over R, p = 1: 100 %. {_OWN}", _all_budget_spent, "fig07",
        "The print has an equality. That it is never more is true by construction."),
    Row("IV-B, Theorem 2", r"\min\{M,\frac{T^{2/R}}{p^{3/2}}\}", f"Regret over R_C: at most M. {_OWN}", _at_most_m, "maps",
        "O(.) leaves room for a constant. No step of the proof produces the M."),
    Row("IV-B, Remark 2", "we can recover $R_{C}(T)$", f"R = 20 and 40, p = 1, over no budget: recovered. {_OWN}", over_horizons(_recovers_server), "cdp_mab",
        "A budget of so many rounds looks more often than the doubling schedule, so arms leave earlier."),
    Row("IV-B, Remark 2", "we can obtain $MR_C(T)$ regret", "Agents alone, summed over agents, over CDP-MAB: M.", over_horizons(_m_times), "single_mab"),
    Row("IV-B, Remark 2", "not worse than the non-communication case", f"(p, R), R = 2, over agents alone: not worse. {_OWN}", _not_worse, "fig07, maps"),
    Row("IV-B, Remark 2", r"R \geq \frac{4\log T}{3 \log pM}", f"(p, R) at the least such R over agents alone: not worse. {_OWN}", _not_worse_from, "maps"),
    Row("IV-C1", r"If $\Delta<\frac{\epsilon \sqrt{M}}{\sqrt{\log (T)}}$, the first term dominate",
        "e in R(ε) = R(4 ε) 4^e, one instance, T = 10¹⁰: at least 1/2 a decade below the printed crossover, at most 1/2 a decade above.", _crossover, "maps"),
    Row("IV-C1", r"a $O(\frac{\log ^{1.5} T}{\epsilon \sqrt{M}})$ regret", "One instance, ε = 10⁻⁴: e in R ~ (log T)^e: at most 1.5.", _log_power_at_most, "maps"),
    Row("IV-C1", r"a $O(\frac{\log ^{1.5} T}{\epsilon \sqrt{M}})$ regret", "The same: is it attained, e = 1.5?", _log_power_attained, "maps",
        "On a fixed instance the number of rounds stops growing, and only the root of log T is left."),
    Row("IV-C2", "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved", "e in R(0.2) = R(1) 5^e, no budget: at most 3/2.", over_horizons(_participation_at_most), "fig05"),
    Row("IV-C2", "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved", "The same, one instance: is it attained, e = 3/2?", _participation_attained, "maps"),
    Row("IV-C2", "the worst-cast regret is still $MR_C(T)$", f"R = 3 log T / (4 log M), rounded down (2 at least) and up, p = 1, over R_C: at most M. {_OWN}", _worst_case, "maps"),
    Row("V-A, Remark 3", "we can recover $R_{D}(T)$. To ensure our performance", f"Ring, R = 20 and 40 over no budget: recovered. {_OWN}", _recovers("ddp"), "ddp_mab"),
    Row("V-A, Remark 3", r"$R \geq 2\log T /\log M$", f"DDP-MAB on a ring at the least such R over agents alone: not worse. {_OWN}", _not_worse_spread("ddp"), "ddp_mab"),
    Row("V-B2", "and not depending on $T$", "Paired difference of regret, a graph minus the complete one (which has that of CDP-MAB): at most 2 M (d_G - 1), the proof's bound, in which there is no T.",
        _extra_of_waiting, "fig10, maps", "VI-D1 repeats the sentence, and Table I says it for each graph."),
    Row("VI-A, Remark 5", "we can recover $R_{H}(T)$", f"Ten rings of five, R = 20 and 40 over no budget: recovered. {_OWN}", _recovers("hdp"), "hdp_mab"),
    Row("VI-A, Remark 5", r"$R \geq 2\log T /\log M$", f"HDP-MAB on ten rings of five at the least such R over agents alone: not worse. {_OWN}", _not_worse_spread("hdp"), "hdp_mab"),
    Row("VI-B2", "ultimately leads to the reduction of the regret introduced by the local exploitation", "Agents alike: regret while waiting, one ring of 100 minus five rings of 20: above 0.",
        over_horizons(_less_waiting), "fig12"),
    Row("VI-B3", "we should try to ensure the balance of agents in each component", "Regret, rings of 53, 24, 10, 6 and 7 agents over five rings of 20: above 0.",
        _balance("unbalanced", "balanced"), "hdp_mab"),
    Row("VI-B3", "can also help reduce communication costs as well as regrets", "Regret, five rings of 20 over five stars of 20: above 0. Costs: see below.", _balance("balanced", "stars"), "hdp_mab"),
    *(
        Row("VI-D2, Corollary 3", quote, f"{a}-MAB minus CDP-MAB, heterogeneous minus homogeneous: at most M x wait x log T.", _extra_where_agents_differ(a), "fig12")
        for a, quote in (("DDP", r"Our DDP-MAB can achieve $R_D(T) + O(M(d_G-1)\log (T))$ regret"),
                         ("HDP", r"Our HDP-MAB can achieve $R_H(T) + O(M\max_{q\in Q}\{d_G^q-1\} \log T)$ regret"))
    ),
    Row("VII-A2", "do not affect the total regrets", f"Regret at R = 5 over that at R = 8: alike. {_OWN}", over_horizons(_more_rounds), "maps"),
]  # fmt: skip
