"""The paper's theorems, remarks and discussions, judged on runs, bounds and sweeps of their own."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np

import fmab_jax as fmab
from experiments import common, fig12_heterogeneous_structures, table1_graphs
from experiments.claims_measured import (
    FEWEST,
    ORACLE,
    Judge,
    largest,
    less,
    over_gaps,
    over_horizons,
    slots,
)
from experiments.claims_runs import (
    AGENTS,
    events_failed,
    fixed,
    gaps_of,
    slots_to_tell_all,
    uniform,
)
from experiments.verdicts import (
    ALIKE,
    LEVEL,
    OPEN,
    PROBABLE,
    UNJUDGED,
    Data,
    Finding,
    Measured,
    Row,
    alike,
    at_least,
    at_most,
    attained,
    change,
    consequence,
    exact,
    excess,
    exponent,
    large,
    mean,
    no_more,
    number,
    ordered,
    percent,
    probable,
    ratio,
    reached,
    share,
    unless_contradicted,
    valued,
)
from fmab_jax.analysis import theory
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.words import write_number
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs

# Times the seeds of a figure: they look for lost best arms, and for E_R itself, where it can be
# decided and where it cannot.
MANY, EVENTS, FEW_EVENTS = 1000, 100, 10
# Participation beside that of the figures: of 50 agents 5 report, and 2.
FEW_REPORT = (0.1, 0.04)
# Budgets that have more rounds than the doubling schedule ever makes.
AMPLE = (20, 40)
GRAPH, COMPONENTS = "ring", "5x10:ring"  # ten rings of five agents
# Repetitions of gossiping.
GOSSIPS = 100


# --- the good event and the rounds --------------------------------------------------------------


def _good_event(data: Data) -> list[Finding]:
    """E_R itself, simulated; and the best arm, which is not lost where E_R holds."""
    found = []
    for horizon in data.horizons:
        # None of so many seeds shows a share of at most 1/T.
        able = lost_interval(0, EVENTS * data.seeds, LEVEL)[1] <= 1 / horizon
        seeds = (EVENTS if able else FEW_EVENTS) * data.seeds
        failed = events_failed(horizon, seeds)
        event = Measured(failed / seeds, *lost_interval(failed, seeds, LEVEL))
        finding = at_most(f"{slots(horizon)}, E_R itself", 1 / horizon, failed=event)
        words = f"failed in {failed} of {seeds:,} seeds: at most {event.upper:.1e}"
        found.append(unless_contradicted(finding._replace(told=words)))
        cells = data.own(
            f"lost-T{horizon}", "cdp", uniform(), epsilon=1, horizon=horizon,
            seeds=MANY * data.seeds, keep="summary",
        )  # fmt: skip
        lost, seeds = int(cells.best_arm_lost), int(cells.seeds)
        share_lost = Measured(lost / seeds, *lost_interval(lost, seeds, LEVEL))
        finding = at_most(f"{slots(horizon)}, best arm lost", 1 / horizon, lost=share_lost)
        words = (
            f"{lost} of {common.write_count(seeds)} seeds lost it: at most {share_lost.upper:.1e}"
        )
        found.append(consequence(finding._replace(told=words)).uncounted("a consequence"))
    return found


def _rounds_identify(data: Data, horizon: int) -> Finding:
    """Of all seeds, those that took no more rounds than allowed, whether or not arms are left."""
    cell = data.last("fig04_epsilon", horizon, epsilon=1)
    gaps = gaps_of(uniform(), cell.sizes["seed"])
    smallest = np.where(gaps > 0, gaps, 1.0).min(axis=1)
    allowed = np.ceil(np.log2(1 / smallest) + 1)
    made = cell.rounds_made.values / allowed
    finding = probable(slots(horizon), _=share(made <= 1))
    most, decided = largest(made), share(cell.active_arms.values == 1)
    words = f"; most rounds / allowed {most.estimate:.3f}; {percent(decided)} have one arm left"
    return finding.adding(words, most_rounds_over_allowed=most, one_arm_left=decided)


# --- orders in T, epsilon, M and p --------------------------------------------------------------

LONG = [10**5, 10**7, 10**9, 10**11]
EPSILONS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, None]
FAR = 10**10
Powers = Callable[[Data], list[tuple[str, Measured]]]
# Epsilon, in units of the printed crossover.
RANGE = [2.0 ** (power / 2) for power in range(-14, 11)]


def _log_growth(data: Data) -> list[Finding]:
    cells = data.own("slope", "cdp", fixed(), epsilon=1, horizon=LONG).regret
    growth = np.diff(cells.transpose("horizon", "seed").values, axis=0)
    return [
        no_more(
            f"T = {common.write_count(LONG[i])} to {common.write_count(LONG[i + 1])}",
            **{"growth over that of two decades before": excess(growth[i], growth[i - 1])},
        )
        for i in range(1, len(growth))
    ]


def _private(data: Data) -> Any:
    return data.own("epsilon", "cdp", fixed(), epsilon=EPSILONS, horizon=FAR).regret


def _epsilon_exponents(data: Data) -> list[tuple[str, Measured]]:
    cells = _private(data)
    found = []
    for few, many in ((1e-6, 1e-5), (1e-5, 1e-4), (1e-4, 1e-3)):
        ends = [cells.sel(epsilon=value).values for value in (few, many)]
        found.append((f"ε from {write_number(few)} to {write_number(many)}", exponent(*ends, 10)))
    return found


def _crossover(data: Data) -> list[Finding]:
    """The exponent of epsilon on both sides of the print, over the whole range.

    Whole epochs make steps in it, so that each side is judged as a whole; the steps are told.
    """
    gap = float(np.sort(gaps_of(fixed(), 1)[0])[1])
    printed = gap * math.sqrt(math.log(FAR) / fixed().agents)
    cells = data.own(
        "crossover-range", "cdp", fixed(), epsilon=[printed * each for each in RANGE], horizon=FAR
    ).regret  # fmt: skip
    ends = cells.transpose("epsilon", "seed").values

    def power(start: int, stop: int) -> Measured:
        return exponent(ends[start], ends[stop], RANGE[stop] / RANGE[start])

    half, whole, last = RANGE.index(0.5), RANGE.index(1.0), len(RANGE) - 1
    low = at_least(f"ε {_within(0, half)}", 0.5, exponent=power(0, half))
    high = at_most(f"ε {_within(whole, last)}", 0.5, exponent=power(whole, last))
    # Steps of a factor of 2, each at its middle.
    steps = {i: power(i - 1, i + 1).estimate for i in range(1, last)}
    noisy = max((i for i in steps if steps[i] >= 0.5), default=0)
    found = [low, high]
    if 0 < noisy < last - 1:
        part = (steps[noisy] - 0.5) / (steps[noisy] - steps[noisy + 1])
        ends_at = exact(RANGE[noisy] * (RANGE[noisy + 1] / RANGE[noisy]) ** part)
        near = 0.5 <= ends_at.estimate <= 2
        words = (
            "the exponent of a factor of 2 falls below 1/2 for good at "
            f"{ends_at.estimate:.2f} times the print"
            f"{', so that it is right within a factor of two' if near else ''}"
        )
        found.append(
            Finding(
                "noise ceases to decide",
                words,
                (UNJUDGED,) * 3,
                {},
                False,
                besides={"times the print": ends_at},
            )  # fmt: skip
        )
    dips = [i for i in steps if i < noisy and steps[i] < 0.5]
    if dips:
        least = min(dips, key=steps.__getitem__)
        dip = at_least(f"ε {_within(dips[0], dips[-1])}", 0.5, exponent=power(least - 1, least + 1))
        found.append(dip.uncounted("a step: the number of epochs is whole"))
    rounds = range(1, 7)
    cross = {
        f"epoch {r}": exact(
            theory.crossover_epsilon(r, 2, arms=fixed().arms, reporting=fixed().agents, horizon=FAR)
            / printed
        )
        for r in rounds
    }
    words = ", ".join(f"{name} {each.estimate:.2g}" for name, each in cross.items())
    where = Finding(
        "the two terms of S(r) are equal",
        f"{words} times the print",
        (UNJUDGED,) * 3,
        {},
        False,
        besides=cross,
    )
    return [*found, where]


def _within(start: int, stop: int) -> str:
    """Writes a part of the range, in units of the printed crossover."""
    return f"from {RANGE[start]:.2g} to {RANGE[stop]:.2g} times the print"


def _until_reaching(data: Data) -> list[Finding]:
    """From the largest epsilon down, and up: where regret stops to change with epsilon."""
    cells = _private(data)
    most, none = (cells.sel(epsilon=value).values for value in (1, "none"))
    few, fewest = (cells.sel(epsilon=value).values for value in (1e-5, 1e-6))
    floor = no_more("a floor", **{"ε = 1 over no noise": excess(most, none)})
    ceiling = no_more(
        "a ceiling", **{"ε = 10⁻⁶ over no noise": excess(fewest, none),
                        "ε = 10⁻⁶ over 10⁻⁵": excess(fewest, few)}
    )  # fmt: skip
    return [floor, ceiling.uncounted("the print read literally: a maximum has no ceiling")]


def _log_powers(data: Data) -> list[tuple[str, Measured]]:
    horizons = [10**8, 10**10, 10**12]
    cells = data.own("log-power", "cdp", fixed(), epsilon=1e-4, horizon=horizons).regret
    ends = cells.transpose("horizon", "seed").values
    found: list[tuple[str, Measured]] = []
    for i in (0, 1):
        factor = math.log(horizons[i + 1]) / math.log(horizons[i])
        power = exponent(ends[i + 1], ends[i], factor)
        condition = (
            f"T = {common.write_count(horizons[i])} to {common.write_count(horizons[i + 1])}"
        )
        found.append((condition, power))
    return found


def _agents_exponents(data: Data) -> list[tuple[str, Measured]]:
    numbers = [10, 100, 1000]
    means = fixed().means[0]
    cells = data.own(
        "agents", "cdp", {str(m): fmab.Problem(means, m) for m in numbers}, epsilon=1e-6,
        horizon=10**11,
    ).regret  # fmt: skip
    found = []
    for few, many in zip(numbers, numbers[1:], strict=False):
        ends = [cells.sel(problem=str(m)).values for m in (few, many)]
        found.append((f"M from {few} to {many}", exponent(*ends, many / few)))
    return found


def _bound(powers: Powers, most: float, name: str = "exponent") -> Judge:
    """A bound's term: towards few agents, or much privacy, regret grows no faster than it."""
    return lambda data: [at_most(words, most, **{name: power}) for words, power in powers(data)]


def _reaches(powers: Powers, value: float, name: str = "exponent") -> Judge:
    """Regret grows just as the bound's term."""
    return lambda data: [
        attained(valued(words, value, **{name: power})) for words, power in powers(data)
    ]


def _participation_at_most(data: Data, horizon: int) -> Finding:
    """The sentence's budgets have more rounds than O(log T); what is without one is told."""
    cells = budgets(data, horizon)
    server = cells.sel(participation=1).isel(rounds=-1).values
    few = cells.sel(participation=0.2)
    powers = {f"R = {r}": exponent(few.sel(rounds=r).values, server, 5) for r in AMPLE}
    none = exponent(few.isel(rounds=-1).values, server, 5)
    finding = at_most(slots(horizon), 1.5, **powers)
    return finding.adding(f"; no budget {number(none)}", no_budget=none)


def _participation_attained(data: Data) -> list[Finding]:
    cells = data.own(
        "participation", "cdp", fixed(), epsilon=[1e-4, None], participation=[0.2, 1],
        horizon=10**9,
    ).regret  # fmt: skip
    found = []
    for index, words in enumerate(("noise decides (ε = 10⁻⁴)", "no noise")):
        ends = [cells.isel(epsilon=index).sel(participation=p).values for p in (0.2, 1)]
        found.append(attained(valued(f"T = 10⁹, {words}", 1.5, exponent=exponent(*ends, 5))))
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
    """Remark 2: agents alone have more regret, from R >= 4 log T / (3 log pM) on."""
    found = []
    for horizon in data.horizons:
        cells, by_itself = budgets(data, horizon), alone(data, horizon)
        for p in (1, 0.2):
            least = 4 * math.log(horizon) / (3 * math.log(p * AGENTS))
            for rounds in (math.ceil(least - 1e-9), 2):
                ends = cells.sel(participation=p, rounds=rounds).values
                condition = f"{slots(horizon)}, p = {p:g} and R = {rounds}"
                finding = no_more(condition, **{"over agents alone": excess(ends, by_itself)})
                inside = rounds >= least - 1e-9
                found.append(
                    finding if inside else finding.uncounted(f"outside: R has to be {least:.3g}")
                )
    return sorted(found, key=lambda each: not each.counted)


def _not_worse_spread(algorithm: str) -> Judge:
    def one(data: Data, horizon: int) -> Finding:
        ends, by_itself = spread_out(data, algorithm, horizon)[1], alone(data, horizon)
        condition = f"{slots(horizon)}, R = {_enough(horizon)}"
        return no_more(condition, **{"over agents alone": excess(ends, by_itself)})

    return over_horizons(one)


def _m_times(data: Data) -> list[tuple[str, Measured]]:
    """Regret of agents alone over that of CDP-MAB, by T."""
    return [
        (
            slots(horizon),
            ratio(
                alone(data, horizon),
                budgets(data, horizon).sel(participation=1).isel(rounds=-1).values,
            ),
        )
        for horizon in data.horizons
    ]


def _constant(data: Data) -> list[Finding]:
    """Regret under ample budgets over that without one: by what share it changes with T."""
    found = []
    for first, second in zip(data.horizons, data.horizons[1:], strict=False):
        pairs = {}
        for horizon in (first, second):
            cells = budgets(data, horizon).sel(participation=1)
            none = cells.isel(rounds=-1).values
            pairs[horizon] = {r: (cells.sel(rounds=r).values, none) for r in AMPLE}
        changes = {f"R = {r}": change(pairs[second][r], pairs[first][r]) for r in AMPLE}
        ratios = ", ".join(
            " to ".join(f"{ratio(*pairs[horizon][r]).estimate:.3f}" for horizon in (first, second))
            for r in AMPLE
        )
        condition = f"{slots(first)} to {common.write_count(second)}"
        found.append(alike(condition, **changes).adding(f" ({ratios} times)"))
    return found


@functools.cache
def _first_bound(gaps: bytes, horizon: int) -> float:
    """Returns Theorem 1's explicit bound on the regret of an instance, given as its gaps' bytes."""
    own = np.frombuffer(gaps, np.float64)
    return theory.bounds(own, exchange.server(AGENTS), horizon, 1.0).regret


def _at_most_m(data: Data) -> list[Finding]:
    """Where T^(2/R) / p^(3/2) is above M: regret over the bound of R_C, and over R_C itself."""
    found = []
    for horizon in data.horizons:
        cells = budgets(data, horizon)
        few = data.own(
            f"few-report-T{horizon}", "cdp", uniform(), epsilon=1, participation=list(FEW_REPORT),
            rounds=[2], horizon=horizon,
        ).regret.sel(rounds=2)  # fmt: skip
        server = cells.sel(participation=1).isel(rounds=-1).values
        gaps = np.asarray(gaps_of(uniform(), len(server)), np.float64)
        bounds = [_first_bound(each.tobytes(), horizon) for each in gaps]
        for p in (1, 0.2, *FEW_REPORT):
            regret = few if p in FEW_REPORT else cells.sel(rounds=2)
            ends = regret.sel(participation=p).values
            condition = f"{slots(horizon)}, p = {p:g} and R = 2"
            finding = at_most(condition, float(AGENTS), over_the_bound=ratio(ends, bounds))
            times = ratio(ends, server)
            found.append(finding.adding(f"; {number(times)} times R_C", times=times))
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


def _by_gap(one: Callable[[Data, int, str, str], Finding]) -> Judge:
    """Returns who judges with both gaps; one with another than Theorem 2's is only told."""

    def of_theorem(data: Data, horizon: int, gap: str, condition: str) -> Finding:
        finding = one(data, horizon, gap, condition)
        return finding if gap == ORACLE else finding.uncounted("another Δ than the theorem's")

    return over_gaps(of_theorem)


def _fewer_rounds_cost(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    cells = [data.end("fig06_rounds", horizon, schedule_gap=gap, rounds=r) for r in (2, "none")]
    return ordered(condition, **{"R = 2 over no budget": excess(*cells)})


def _spent(data: Data, horizon: int, gap: str) -> tuple[Any, np.ndarray]:
    """Returns figure 6's runs [rounds, seed] with a budget, and which have spent it."""
    cells = data.load("fig06_rounds")[horizon].isel(time=-1).sel(schedule_gap=gap)
    cells = cells.isel(rounds=slice(0, 4)).transpose("rounds", "seed", ...)
    return cells, cells.rounds_made.values >= cells.rounds.values.astype(int)[:, None]


def _of_spent(condition: str, cells: Any, spent: np.ndarray, good: np.ndarray) -> Finding:
    """Judges a share of the runs that have spent their budget, for each R with enough of them."""
    numbers = {f"R = {r}": i for i, r in enumerate(cells.rounds.values)}
    of = {name: (int(spent[i].sum()), spent[i].size) for name, i in numbers.items()}
    shares = {
        name: share(good[i][spent[i]]) for name, i in numbers.items() if of[name][0] >= FEWEST
    }
    few = [f"{name} {of[name][0]} of {of[name][1]:,}" for name in of if name not in shares]
    missing = f"too few have spent it: {', '.join(few)}" if few else ""
    if not shares:
        return Finding(condition, missing, (OPEN,) * 3, rule=PROBABLE)
    finding = probable(condition, {name: of[name] for name in shares}, **shares)
    return finding.adding(f"; {missing}" if few else "")


def _of_all(condition: str, cells: Any, good: np.ndarray) -> Finding:
    """Judges a share of all runs, for each R."""
    return probable(
        condition, **{f"R = {r}": share(good[i]) for i, r in enumerate(cells.rounds.values)}
    )


def _commits(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    """Of the runs that have spent their budget, those that play a best arm."""
    cells, spent = _spent(data, horizon, gap)
    wrong = cells.worse_arm_played.values.astype(bool) & spent
    finding = _of_spent(condition, cells, spent, ~wrong)
    if not wrong.any():
        return finding
    most = largest(cells.regret.values[wrong])
    lost = int(cells.best_arm_lost.values[wrong].sum())
    told = (
        f"; of {int(wrong.sum()):,} others {lost} lost the best arm, their "
        f"regret is up to {most.estimate:,.0f}"
    )
    return finding.adding(told, largest_regret_of_a_worse_arm=most)


def _commits_in_all(data: Data, horizon: int, gap: str, condition: str) -> Finding:
    """Of all runs, those that identify a best arm: by their budget's last round, or before it."""
    cells, spent = _spent(data, horizon, gap)
    wrong = cells.worse_arm_played.values | cells.best_arm_lost.values
    good = (spent | (cells.active_arms.values == 1)) & ~wrong.astype(bool)
    return reached(_of_all(condition, cells, good))


def _removed_by_the_last_round(data: Data, horizon: int) -> Finding:
    """Of the runs that have spent a budget built for their own gap, those with one arm left."""
    cells, spent = _spent(data, horizon, ORACLE)
    return _of_spent(slots(horizon), cells, spent, cells.active_arms.values == 1)


def _removed_in_all(data: Data, horizon: int) -> Finding:
    """Of all runs with a budget built for their own gap, those with one arm left."""
    cells, _ = _spent(data, horizon, ORACLE)
    return reached(_of_all(slots(horizon), cells, cells.active_arms.values == 1))


def _all_budget_spent(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        for budget in (2, 5):
            cell = data.last(
                "fig07_tradeoff", horizon, schedule_gap=ORACLE, participation=1, rounds=budget
            )
            condition = f"{slots(horizon)}, R = {budget}"
            made = mean(cell.rounds_made / budget)
            found.append(attained(valued(condition, 1.0, percent, rounds_made_over_R=made)))
    return found


# --- graphs and components ----------------------------------------------------------------------


def _extra(data: Data, graph: str, horizon: int) -> np.ndarray:
    """Returns [seed] R_D - R_C: the complete graph has the regret of CDP-MAB."""
    ends = [data.end("fig10_graphs", horizon, graph=each) for each in (graph, "complete")]
    return ends[0] - ends[1]


def _extra_of_waiting(data: Data) -> list[Finding]:
    """R_D - R_C against the bound of the print's proof, in which there is no T."""
    found = []
    for graph in (GRAPH, "star"):
        diameter = exchange.flooding(graphs.make(graph, AGENTS)).diameter
        for horizon in data.horizons:
            extra = {f"{graph} minus complete": mean(_extra(data, graph, horizon))}
            found.append(
                at_most(f"{slots(horizon)}, {graph}", 2.0 * AGENTS * (diameter - 1), **extra)
            )
    return found


def _extra_over_horizons(data: Data) -> list[Finding]:
    """By what share R_D - R_C changes from one T to the next."""
    found = []
    for graph in (GRAPH, "star"):
        for first, second in zip(data.horizons, data.horizons[1:], strict=False):
            extra = [_extra(data, graph, horizon) for horizon in (first, second)]
            means = [mean(each) for each in extra]
            condition = f"{slots(first)} to {common.write_count(second)}, {graph}"
            words = f"{number(means[0])} to {number(means[1])}"
            if means[0].lower <= 0:  # there are no shares of what may be nothing
                found.append(Finding(condition, words, (OPEN,) * 3, rule=ALIKE))
            else:
                grown = attained(alike(condition, change=excess(extra[1], extra[0])))
                found.append(grown.adding(f" ({words})"))
    return found


@functools.cache
def walk() -> tuple[float, float]:
    """Returns the second largest eigenvalue of the walk on the 4-regular graph, and of the moduli.

    A walk mixes by the second largest modulus, which is that of the smallest eigenvalue here.
    """
    found = np.linalg.eigvalsh(nx.to_numpy_array(graphs.make("regular-4", AGENTS)) / 4)
    return float(np.sort(found)[-2]), float(np.sort(np.abs(found))[-2])


def _table_one(data: Data, horizon: int, *named: str) -> list[Finding]:
    """Table I's regret: beyond that of CDP-MAB at most twice the order that it prints."""
    second, modulus = walk()
    mixed = {each: AGENTS * math.log(AGENTS) / math.log(1 / each) for each in (second, modulus)}
    orders = {"star": AGENTS, "ring": AGENTS * (AGENTS - 1), "regular-4": mixed[modulus]}
    complete = data.end("table1_graphs", horizon, graph="complete")
    found = []
    for graph in named:
        condition = f"{slots(horizon)}, {table1_graphs.NAMES.get(graph, graph)}"
        if graph == "complete":
            server = data.end("fig04_epsilon", horizon, epsilon=1)
            found.append(alike(condition, **{"over CDP-MAB": excess(complete, server)}))
        else:
            ends = data.end("table1_graphs", horizon, graph=graph)
            extra = {"minus complete": mean(ends - complete)}
            finding = at_most(condition, 2.0 * orders[graph], **extra)
            if graph == "regular-4":
                most = 2.0 * mixed[second]
                words = f" ({most:,.6g} if λ2 were the second largest eigenvalue, {second:.3f}, "
                words += f"not the second largest modulus, {modulus:.3f})"
                finding = finding.adding(
                    words, if_λ2_were_the_second_largest_eigenvalue=exact(most)
                )
            found.append(finding)
    return found


def _table_ones(*named: str) -> Judge:
    return lambda data: [
        finding for horizon in data.horizons for finding in _table_one(data, horizon, *named)
    ]


def _gossip_is_slow(data: Data) -> list[Finding]:
    """Slots until all have heard all, gossiping over GIS."""
    found, averaged = [], []
    for name in (GRAPH, "star", "complete"):
        graph = graphs.make(name, AGENTS)
        least = exchange.flooding(graph).diameter
        for words, whole in (("all that was heard", True), ("each message alone", False)):
            needed = mean(slots_to_tell_all(graph, GOSSIPS, whole) / least)
            mean_slots = needed.moved(lambda value, least=least: value * least)
            finding = large(f"{name}, {words}", times=needed)
            found.append(finding.adding(f": {number(mean_slots)} slots against {least}"))
        waits = fmab.ddp_mab(1, name, protocol="gossip", tolerance=0.01).exchange(AGENTS).wait
        times = large(f"{name}, averaging to 10⁻²", times=exact(waits / max(least - 1, 1)))
        averaged.append(times.uncounted("not what the sentence describes"))
    return [*found, *averaged]


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
    """By what share there is less regret while waiting; and how much of all regret that is."""
    name = "fig12_heterogeneous_structures"
    waits = [
        data.last(name, horizon, algorithm=a, spread="homogeneous").waiting_regret.values
        for a in ("DDP", "HDP")
    ]
    saved = ratio(
        waits[0] - waits[1], data.end(name, horizon, algorithm="DDP", spread="homogeneous")
    )
    finding = ordered(slots(horizon), **{"HDP below DDP": less(waits[1], waits[0])})
    return finding.adding(f"; {percent(saved)} of all regret", of_all_regret=saved)


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
_WHETHER_REACHED = "The schedule does not ask whether R epochs fit into T; where they do not, the sentence says nothing."

ROWS = [
    Row("I", "without deteriorating the regret", "HDP-MAB on five rings over CDP-MAB, agents alike: not worse.",
        over_horizons(_without_deteriorating), "fig12"),
    Row("I", r"inversely proportional to $\epsilon$", "e in R(ε) = R(10 ε) 10^e, one instance, T = 10¹⁰: at most 1.", _bound(_epsilon_exponents, 1.0), "maps",
        "The sentence is about a bound."),
    Row("I", r"inversely proportional to $\epsilon$", "The same: is it attained, e = 1?", _reaches(_epsilon_exponents, 1.0), "maps"),
    Row("IV-A, Theorem 1", r"\sum_{k=1}^{K} \frac{\log(KT\log T)}{\Delta_k}", "One instance, ε = 1. Regret grows no faster than log T: its growth over two decades is not more than over the two before.",
        _log_growth, "cdp_mab"),
    Row("IV-A, Theorem 1", r"\frac{K\log T \sqrt{\log(KT\log T)}}{\sqrt{M}\epsilon}", "e in R(M) = R(10 M) 10^e at ε = 10⁻⁶, one instance: at most 1/2.",
        _bound(_agents_exponents, 0.5), "maps"),
    Row("IV-A, Theorem 1", r"\frac{K\log T \sqrt{\log(KT\log T)}}{\sqrt{M}\epsilon}", "The same: is it attained, e = 1/2?", _reaches(_agents_exponents, 0.5), "maps"),
    Row("IV-A, Remark 1", "may bring the performance loss", "Regret at R = 2 over that without a budget: above 0.", _by_gap(_fewer_rounds_cost), "fig06"),
    Row("IV-A, Remark 1", r"until reaching $O(\frac{K\log(KT\log T)}{\Delta})$", "One instance, T = 10¹⁰. Regret falls as ε grows until it reaches the first term, that of no noise: not more at ε = 1.", _until_reaching, "maps",
        "Read the other way, regret would stop growing as ε falls: it does not, and a maximum of two terms says that it does not."),
    Row("IV-A, proof outline", "communication rounds are needed to identify the suboptimal arm",
        "Of all seeds, those that made at most ⌈log2(1/Δ) + 1⌉ rounds, each with its own Δ: high probability.", over_horizons(_rounds_identify), "fig04"),
    Row("Appendix B, step 1", r"$\Pr\{E_R\} \geq 1- \frac{1}{T}$", "Seeds in which an aggregate is farther than C(r) from its arm's mean: at most 1/T. Algorithm 1 in NumPy.", _good_event, "epochs_of",
        "Who loses no best arm need not have E_R: that is a consequence. The steps of the proof are another question: see below."),
    Row("IV-B", "identify the best arm after the $R$-th communication round with high probability",
        "Of the runs that have made R rounds, those that play a best arm: high probability.", _by_gap(_commits), "fig06, maps"),
    Row("IV-B", "identify the best arm after the $R$-th communication round with high probability",
        "Of all runs, those that within R rounds have only a best arm left, or play one after round R: high probability.", _by_gap(_commits_in_all), "fig06, maps",
        _WHETHER_REACHED),
    Row("Appendix C, step 2", "is removed from the active arm set after the $R-$th communication",
        f"Of the runs that have made R rounds, those with one arm left: high probability. {_OWN}", over_horizons(_removed_by_the_last_round), "fig06",
        "The best aggregate is a best arm's all the same: docs/theory.md."),
    Row("Appendix C, step 2", "is removed from the active arm set after the $R-$th communication",
        f"Of all runs, those with one arm left: high probability. {_OWN}", over_horizons(_removed_in_all), "fig06",
        _WHETHER_REACHED),
    Row("IV-B, Theorem 2", r"C^{p,R}_{C}(T) =   c_1\left\lceil pM \right\rceil R", f"As an equality: rounds made over R, p = 1: 100 %. {_OWN}", _all_budget_spent, "fig07",
        "The print has an equality. That it is never more, as a budget says, is settled below."),
    Row("IV-B, Theorem 2", r"\min\{M,\frac{T^{2/R}}{p^{3/2}}\}", f"R = 2, where T^(2/R) / p^(3/2) is above M: regret over Theorem 1's bound with explicit constants: at most M. {_OWN}", _at_most_m, "maps",
        "O(.) leaves room for a constant: that of the bound. No step of the proof produces the M."),
    Row("IV-B, Remark 2", "we can recover $R_{C}(T)$", f"R = 20 and 40, p = 1, over no budget: recovered. {_OWN}", over_horizons(_recovers_server), "cdp_mab",
        "A budget of so many rounds looks more often than the doubling schedule, so arms leave earlier."),
    Row("IV-B, Remark 2", "we can obtain $MR_C(T)$ regret", "As an upper bound: agents alone, summed over agents, over CDP-MAB: at most M.", _bound(_m_times, float(AGENTS), "times"), "single_mab"),
    Row("IV-B, Remark 2", "we can obtain $MR_C(T)$ regret", "As an equality: the same ratio is M.", _reaches(_m_times, float(AGENTS), "times"), "single_mab",
        "A short horizon ends before either has left its first epochs."),
    Row("IV-B, Remark 2", "not worse than the non-communication case", f"(p, R) over agents alone, at the least R that is at least 4 log T / (3 log pM), the remark's own condition: not worse. {_OWN}", _not_worse, "fig07, maps",
        "R = 2 is shown to tell what the condition is good for."),
    Row("IV-C1", r"If $\Delta<\frac{\epsilon \sqrt{M}}{\sqrt{\log (T)}}$, the first term dominate",
        "e in R(ε) ~ ε^-e over the whole range, one instance, T = 10¹⁰; the printed crossover is at ε = Δ sqrt(log(T) / M) = 0.068. Well below it e is at least 1/2, "
        "above it at most 1/2.", _crossover, "maps",
        "Three crossings: the printed one; where noise ceases to decide, by the exponent; where the two terms of S(r) are equal, which moves with the epoch."),
    Row("IV-C1", r"a $O(\frac{\log ^{1.5} T}{\epsilon \sqrt{M}})$ regret", "One instance, ε = 10⁻⁴: e in R ~ (log T)^e: at most 1.5.", _bound(_log_powers, 1.5, "power of log T"), "maps"),
    Row("IV-C1", r"a $O(\frac{\log ^{1.5} T}{\epsilon \sqrt{M}})$ regret", "The same: is it attained, e = 1.5?", _reaches(_log_powers, 1.5, "power of log T"), "maps",
        "On a fixed instance the number of rounds stops growing, and only the root of log T is left."),
    Row("IV-C2", "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved", f"e in R(p = 0.2) = R_C 5^e, R = 20 and 40: at most 3/2. {_OWN}", over_horizons(_participation_at_most), "maps"),
    Row("IV-C2", "$p^{-{3/2}}{R_{C}(T)}$ regret can be achieved", "One instance, no budget: is it attained, e = 3/2?", _participation_attained, "maps"),
    Row("IV-C2", "turn to be a constant", f"Regret at R = 20 and 40 over no budget: alike from one T to the next. {_OWN}", _constant, "cdp_mab"),
    Row("IV-C2", "the worst-cast regret is still $MR_C(T)$", f"R = 3 log T / (4 log M), rounded down (2 at least) and up, p = 1, over R_C: at most M. {_OWN}", _worst_case, "maps"),
    Row("V-A, Remark 3", "we can recover $R_{D}(T)$. To ensure our performance", f"Ring, R = 20 and 40 over no budget: recovered. {_OWN}", _recovers("ddp"), "ddp_mab"),
    Row("V-A, Remark 3", r"$R \geq 2\log T /\log M$", f"DDP-MAB on a ring at the least such R over agents alone: not worse. {_OWN}", _not_worse_spread("ddp"), "ddp_mab"),
    Row("V", "gossiping distributes information slowly and incurs large end-to-end delay", f"Slots until all have heard all, over those of GIS; M = {AGENTS}, {GOSSIPS} runs; large: at least double.", _gossip_is_slow, "slots_to_tell_all",
        "A gossiping agent sends to one random neighbour in each slot: all that it has heard, or each message goes on alone, as in the papers on SPIN."),
    Row("V-B2", "and not depending on $T$", "As a bound: paired difference of regret, a graph minus the complete one (which has that of CDP-MAB): at most 2 M (d_G - 1), the proof's bound, in which there is no T.",
        _extra_of_waiting, "fig10, maps", "VI-C1 repeats the sentence."),
    Row("V-B2", "and not depending on $T$", "Is the difference itself constant? The same from one T to the next: alike.",
        _extra_over_horizons, "fig10, maps", "The sentence is about the bound, in which there is no T: the row above."),
    Row("V-B3, Table I", "$R_C(T)+O(M)$    & $R_C(T)+O(M(M-1))$ & $R_C(T)$", "Paired difference of regret to the complete graph: at most twice the printed order (the proof's constant), star and ring. Complete graph over CDP-MAB: alike.",
        _table_ones("star", "ring", "complete"), "table1"),
    Row("V-B3, Table I", r"$ R_C(T)+O(\frac{M\log M}{\log (1/\lambda_2)})$", "4-regular graph: at most twice the printed order, λ2 read as the second largest modulus of the walk's eigenvalues.", _table_ones("regular-4"), "table1"),
    Row("VI-A, Remark 5", "we can recover $R_{H}(T)$", f"Ten rings of five, R = 20 and 40 over no budget: recovered. {_OWN}", _recovers("hdp"), "hdp_mab"),
    Row("VI-A, Remark 5", r"$R \geq 2\log T /\log M$", f"HDP-MAB on ten rings of five at the least such R over agents alone: not worse. {_OWN}", _not_worse_spread("hdp"), "hdp_mab"),
    Row("VI-B2", "ultimately leads to the reduction of the regret introduced by the local exploitation", "Agents alike: by what share five rings of 20 have less regret while waiting than one ring of 100.",
        over_horizons(_less_waiting), "fig12"),
    Row("VI-B3", "we should try to ensure the balance of agents in each component", "Regret, rings of 53, 24, 10, 6 and 7 agents over five rings of 20: above 0.",
        _balance("unbalanced", "balanced"), "hdp_mab"),
    Row("VI-B3", "can also help reduce communication costs as well as regrets", "Regret, five rings of 20 over five stars of 20: above 0. Costs: see below.", _balance("balanced", "stars"), "hdp_mab"),
    *(
        Row("VI-C2, Corollary 3", quote, f"{a}-MAB minus CDP-MAB, heterogeneous minus homogeneous: at most M x wait x log T.", _extra_where_agents_differ(a), "fig12")
        for a, quote in (("DDP", r"Our DDP-MAB can achieve $R_D(T) + O(M(d_G-1)\log (T))$ regret"),
                         ("HDP", r"Our HDP-MAB can achieve $R_H(T) + O(M\max_{q\in Q}\{d_G^q-1\} \log T)$ regret"))
    ),
    Row("VII-A2", "do not affect the total regrets", f"Regret at R = 5 over that at R = 8: alike. {_OWN}", over_horizons(_more_rounds), "maps"),
]  # fmt: skip
