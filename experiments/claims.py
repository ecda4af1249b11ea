"""The paper's sentences, measured: a row each, with a verdict that is computed from the data.

A row says what the paper says, what was measured (with a 99 % interval, paired over seeds where two
configurations are compared), and whether it holds: at every horizon (or meter), only at some, or
not. An interval that does not settle it says so. Tolerances, where a sentence needs one ("almost
the same"), stand beside the sentence.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, fig12_heterogeneous_structures, table2_fig11_hybrid
from fmab_jax.analysis import theory
from fmab_jax.analysis.bands import lost_interval, student_quantile
from fmab_jax.core import exchanges as exchange
from fmab_jax.core import graphs, keys, problems
from fmab_jax.files import whole_file

LEVEL = 0.99
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"
ORACLE = "Δ: smallest gap (oracle)"
# Instances whose bound is compared with their mean regret.
INSTANCES = 50
# Of the seeds of a figure; so many more look for lost best arms.
MANY = 1000


class Measured(NamedTuple):
    """A number with its interval."""

    estimate: float
    lower: float
    upper: float


class Finding(NamedTuple):
    """What was found under one condition, such as "T = 10⁴"."""

    condition: str
    quantity: str
    verdict: str


class Claim(NamedTuple):
    """One sentence of the paper.

    Attributes:
        section: Where it stands.
        words: A few of its words.
        measured: What is measured, and what counts as agreement.
        judge: Returns the findings.
        see: The figure, table or function behind it.
    """

    section: str
    words: str
    measured: str
    judge: Callable[[Data], list[Finding]]
    see: str


class Data:
    """Results of the experiments, simulated or read when they are asked for."""

    def __init__(
        self,
        load: Callable[[str], common.Results],
        horizons: Sequence[int],
        seeds: int,
        runs: Path | None,
    ) -> None:
        self.load = functools.cache(load)
        self.horizons, self.seeds, self.runs = tuple(horizons), seeds, runs

    def end(self, name: str, horizon: int, **cell: Any) -> np.ndarray:
        """Returns [seed] regret at T of one cell of an experiment."""
        return self.last(name, horizon, **cell).regret.values

    def last(self, name: str, horizon: int, **cell: Any) -> xr.Dataset:
        """Returns one cell of an experiment at T."""
        return self.load(name)[horizon].sel(cell).isel(time=-1)

    def store(self, name: str) -> Path | None:
        """Returns where a sweep of this module's own is kept."""
        return None if self.runs is None else self.runs / f"claims_{name}"


# --- what is measured ---------------------------------------------------------------------------


def mean(values: Any) -> Measured:
    """Returns the mean over seeds."""
    values = np.asarray(values, np.float64)
    half = student_quantile(values.size - 1, LEVEL) * values.std(ddof=1) / math.sqrt(values.size)
    return Measured(values.mean(), values.mean() - half, values.mean() + half)


def ratio(first: Any, second: Any) -> Measured:
    """Returns the ratio of two means over the same seeds (delta method)."""
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    found = first.mean() / second.mean()
    spread = mean((first - found * second) / second.mean())
    return Measured(found, found + spread.lower, found + spread.upper)


def excess(first: Any, second: Any) -> Measured:
    """Returns by what share the first mean exceeds the second, over the same seeds."""
    found = ratio(first, second)
    return Measured(*(value - 1 for value in found))


def exponent(first: Any, second: Any, factor: float) -> Measured:
    """Returns e such that mean(first) = mean(second) x factor^e."""
    found = ratio(first, second)
    return Measured(*(math.log(max(value, 1e-300)) / math.log(factor) for value in found))


# --- when it counts as agreement ----------------------------------------------------------------


def positive(*found: Measured) -> str:
    """Holds where every interval lies above 0."""
    if all(each.lower > 0 for each in found):
        return HOLDS
    return FAILS if any(each.upper <= 0 for each in found) else OPEN


def within(found: Measured, low: float, high: float) -> str:
    """Holds where the interval lies in [low, high], fails where it lies outside."""
    lower, upper = sorted((found.lower, found.upper))
    if low <= lower and upper <= high:
        return HOLDS
    return FAILS if upper < low or lower > high else OPEN


def combined(findings: Sequence[Finding]) -> str:
    """Returns the verdict of a row from those under its conditions."""
    found = {each.verdict for each in findings}
    if found == {HOLDS}:
        return HOLDS
    if HOLDS not in found:
        return FAILS if found == {FAILS} else OPEN if FAILS not in found else f"{FAILS}, or open"
    if FAILS not in found:
        return f"{HOLDS}; {OPEN} at {_conditions(findings, OPEN)}"
    return f"holds only if {_conditions(findings, HOLDS)}"


def _conditions(findings: Sequence[Finding], verdict: str) -> str:
    """Lists where a verdict was found; by the part of the condition that decides, if one does."""
    parts = [(each.condition.split(", "), each.verdict == verdict) for each in findings]
    for place in range(min(len(part) for part, _ in parts)) if len(parts[0][0]) > 1 else ():
        named: dict[str, set[bool]] = {}
        for part, agrees in parts:
            named.setdefault(part[place], set()).add(agrees)
        if all(len(verdicts) == 1 for verdicts in named.values()):
            return " or ".join(name for name, verdicts in named.items() if True in verdicts)
    return " or ".join(each.condition for each in findings if each.verdict == verdict)


def percent(found: Measured) -> str:
    """Writes a share."""
    return _written(Measured(*(100 * value for value in found)), " %")


def number(found: Measured) -> str:
    """Writes a number."""
    return _written(found, "")


def _written(found: Measured, unit: str) -> str:
    half = (found.upper - found.lower) / 2
    digits = 0
    if half < 1e-9 * abs(found.estimate):  # the same in every seed
        half = 0.0
    if half > 0:
        digits = min(6, max(0, 1 - math.floor(math.log10(half))))
    elif found.estimate != int(found.estimate):
        digits = 3
    text = f"{found.estimate:,.{digits}f}"
    return f"{text}{unit} ± {half:,.{digits}f}" if half > 0 else f"{text}{unit}"


def slots(horizon: int) -> str:
    """Names a horizon as a condition."""
    return f"T = {common.whole(horizon)}"


# --- section VII-A: a server --------------------------------------------------------------------


def _steps(data: Data, name: str, cells: Sequence[dict[str, Any]], horizon: int) -> list[Measured]:
    """Returns by what share each cell's regret exceeds the next one's."""
    ends = [data.end(name, horizon, **cell) for cell in cells]
    return [excess(first, second) for first, second in zip(ends, ends[1:], strict=False)]


def _falling(name: str, cells: Sequence[dict[str, Any]]) -> Callable[[Data], list[Finding]]:
    def judge(data: Data) -> list[Finding]:
        found = []
        for horizon in data.horizons:
            steps = _steps(data, name, cells, horizon)
            told = ", ".join(map(percent, steps))
            found.append(Finding(slots(horizon), told, positive(*steps)))
        return found

    return judge


def _compared(
    first: tuple[str, dict[str, Any]], second: tuple[str, dict[str, Any]], tolerance: float
) -> Callable[[Data], list[Finding]]:
    def judge(data: Data) -> list[Finding]:
        found = []
        for horizon in data.horizons:
            ends = [data.end(name, horizon, **cell) for name, cell in (first, second)]
            share = excess(*ends)
            verdict = within(share, -tolerance, tolerance)
            found.append(Finding(slots(horizon), percent(share), verdict))
        return found

    return judge


def _participation_exponent(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        ends = [data.end("fig05_participation", horizon, participation=p) for p in (0.2, 1)]
        growth = exponent(*ends, 5)
        found.append(Finding(slots(horizon), number(growth), within(growth, -math.inf, 1.5)))
    return found


def _rounds_needed(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        cell = data.last("fig04_epsilon", horizon, epsilon=1)
        made, done = mean(cell.rounds_made), mean(cell.active_arms == 1)
        told = f"{number(made)} rounds; one arm left in {percent(done)} of the seeds"
        near = within(made, 3.5, 4.5)
        found.append(Finding(slots(horizon), told, near))
    return found


def _decided(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        done = mean(data.last("fig04_epsilon", horizon, epsilon=1).active_arms == 1)
        found.append(Finding(slots(horizon), percent(done), within(done, 0.95, 1)))
    return found


def _budget_cost(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        cells = data.load("fig07_tradeoff")[horizon].isel(time=-1)
        shares = []
        for p in cells.participation.values:
            for budget in (2, 3, 4, 5):
                cell = cells.sel(participation=p, rounds=budget)
                allowed = exchange.reporting_agents(int(cells.attrs["agents"]), float(p)) * budget
                shares.append(cell.links.sel(meter="server").values / allowed)
        most, usual = float(np.max(shares)), float(np.mean(shares))
        told = f"largest {most:.3g}, mean {usual:.3g}"
        found.append(Finding(slots(horizon), told, HOLDS if most <= 1 else FAILS))
    return found


def _all_budget_spent(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        for budget in (2, 5):
            chosen = {"schedule_gap": ORACLE, "participation": 1, "rounds": budget}
            cell = data.last("fig07_tradeoff", horizon, **chosen)
            share = mean(cell.rounds_made / budget)
            condition = f"{slots(horizon)}, R = {budget}"
            found.append(Finding(condition, percent(share), within(share, 0.99, 1.0)))
    return found


def _one_in_m(data: Data) -> list[Finding]:
    found = []
    name = "fig08_heterogeneous_central"
    for horizon in data.horizons:
        ends = [
            data.end(name, horizon, algorithm=a, spread="homogeneous") for a in ("Single", "CDP")
        ]
        gain = ratio(*ends)
        agents = data.load(name)[horizon].attrs["agents"]
        told = f"{number(gain)} for M = {agents}"
        found.append(Finding(slots(horizon), told, within(gain, 0.8 * agents, 1.25 * agents)))
    return found


def _late_share(data: Data, algorithm: str, spread: str, low: float, high: float) -> list[Finding]:
    """Finds what share of the regret is collected in the last half of the horizon."""
    found = []
    for horizon in data.horizons:
        cell = data.load("fig08_heterogeneous_central")[horizon].sel(
            algorithm=algorithm, spread=spread
        )
        half = int(np.argmin(np.abs(cell.time.values - horizon / 2)))
        late = (cell.regret.isel(time=-1) - cell.regret.isel(time=half)).values
        share = ratio(late, cell.regret.isel(time=-1).values)
        found.append(Finding(slots(horizon), percent(share), within(share, low, high)))
    return found


# --- section VII-B: graphs ----------------------------------------------------------------------


def _graph_differences(
    pairs: Sequence[tuple[str, str]],
) -> Callable[[Data], list[Finding]]:
    def judge(data: Data) -> list[Finding]:
        found = []
        for horizon in data.horizons:
            ends = {
                graph: data.end("fig10_graphs", horizon, graph=graph)
                for graph in ("complete", "star", "ring", "random")
            }
            shares = [excess(ends[more], ends[less]) for more, less in pairs]
            told = "; ".join(
                f"{more} over {less} {percent(share)}"
                for (more, less), share in zip(pairs, shares, strict=True)
            )
            found.append(Finding(slots(horizon), told, positive(*shares)))
        return found

    return judge


def _graph_cost(data: Data) -> list[Finding]:
    found = []
    for meter in ("bound", "used"):
        for horizon in data.horizons:
            cells = data.load("fig10_graphs")[horizon].isel(time=-1)
            costs = {
                graph: fmab.communication_cost(cells.sel(graph=graph), 0, 1, meter).values
                for graph in ("complete", "star", "ring", "random")
            }
            shares = {g: ratio(c, costs["star"]) for g, c in costs.items() if g != "star"}
            told = ", ".join(f"{graph} {number(share)}" for graph, share in shares.items())
            more = [Measured(*(value - 1 for value in share)) for share in shares.values()]
            condition = f"{slots(horizon)}, meter {meter}"
            found.append(Finding(condition, told, positive(*more)))
    return found


def _complete_is_huge(data: Data) -> list[Finding]:
    found = []
    for meter in ("bound", "used"):
        for horizon in data.horizons:
            cells = data.load("fig10_graphs")[horizon].isel(time=-1)
            costs = [
                fmab.communication_cost(cells.sel(graph=graph), 0, 1, meter).values
                for graph in ("complete", "star")
            ]
            share = ratio(*costs)
            condition = f"{slots(horizon)}, meter {meter}"
            found.append(Finding(condition, number(share), within(share, 10, math.inf)))
    return found


def _complete_is_costliest(data: Data) -> list[Finding]:
    found = []
    for meter in ("bound", "used"):
        for horizon in data.horizons:
            cells = data.load("fig10_graphs")[horizon].isel(time=-1)
            costs = {
                graph: fmab.communication_cost(cells.sel(graph=graph), 0, 1, meter).values
                for graph in ("complete", "ring")
            }
            share = excess(costs["complete"], costs["ring"])
            condition = f"{slots(horizon)}, meter {meter}"
            found.append(Finding(condition, percent(share), positive(share)))
    return found


def _table_one(data: Data) -> list[Finding]:
    agents = 50
    found = []
    printed = {
        "star": 2 * (agents - 1),
        "ring": agents**2 / 2,
        "complete": agents * (agents - 1) / 2,
    }
    for graph, links in printed.items():
        facts = exchange.flooding(graphs.make(graph, agents))
        told = f"printed {links:g}, bound {facts.on('bound')}, used {facts.on('used')}"
        same = facts.on("bound") == links
        found.append(Finding(f"{graph}", told, HOLDS if same else FAILS))
    graph = graphs.make("regular-4", agents)
    facts = exchange.flooding(graph)
    # The footnote calls lambda_2 an eigenvalue of the "Laplace matrix"; only one below 1 makes the
    # logarithm positive, so that of the walk: the second largest of A / d, in modulus.
    import networkx as nx

    walk = np.sort(np.abs(np.linalg.eigvalsh(nx.to_numpy_array(graph) / 4)))[-2]
    links = 4 * agents * math.log(agents) / (2 * math.log(1 / walk))
    told = f"printed {links:.0f}, bound {facts.on('bound')}, used {facts.on('used')}"
    found.append(
        Finding(
            "4-regular (as an upper bound)",
            told,
            HOLDS if facts.on("bound") <= links else FAILS,
        )
    )
    return found


def _waiting_is_constant(data: Data) -> list[Finding]:
    """Does the regret of waiting on the ring stop growing with T?"""
    found = []
    for less, more in zip(data.horizons, data.horizons[1:], strict=False):
        pair = [
            data.last("fig10_graphs", T, graph="ring").waiting_regret.values for T in (more, less)
        ]
        share = excess(*pair)
        condition = f"{slots(less)} to {common.whole(more)}"
        found.append(Finding(condition, percent(share), within(share, -0.05, 0.05)))
    return found


# --- section VII-C: hybrid ----------------------------------------------------------------------


def _hybrid_alike(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        ends = [data.end("table2_fig11_hybrid", horizon, components=f"case {i}") for i in (1, 2, 3)]
        shares = [excess(ends[1], ends[0]), excess(ends[2], ends[0])]
        verdicts = {within(share, -0.02, 0.02) for share in shares}
        verdict = next(v for v in (FAILS, OPEN, HOLDS) if v in verdicts)
        found.append(Finding(slots(horizon), ", ".join(map(percent, shares)), verdict))
    return found


def _hybrid_costs(
    pairs: Sequence[tuple[int, int]],
) -> Callable[[Data], list[Finding]]:
    """Is case i costlier than case j, on each meter, for each pair?"""

    def judge(data: Data) -> list[Finding]:
        found = []
        prices = table2_fig11_hybrid.SERVER_PRICE, table2_fig11_hybrid.PEER_PRICE
        for meter in table2_fig11_hybrid.METERS:
            for horizon in data.horizons:
                cells = data.load("table2_fig11_hybrid")[horizon].isel(time=-1)
                cost = {
                    case: fmab.communication_cost(
                        cells.sel(components=f"case {case}"), *prices, meter
                    ).values
                    for case in {case for pair in pairs for case in pair}
                }
                shares = [ratio(cost[more], cost[less]) for more, less in pairs]
                told = ", ".join(
                    f"case {more} / case {less} = {number(share)}"
                    for (more, less), share in zip(pairs, shares, strict=True)
                )
                over = [Measured(*(value - 1 for value in share)) for share in shares]
                found.append(Finding(f"{slots(horizon)}, meter {meter}", told, positive(*over)))
        return found

    return judge


def _order_of_structures(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        ends = {
            a: data.end(
                "fig12_heterogeneous_structures", horizon, algorithm=a, spread="heterogeneous"
            )
            for a in ("CDP", "HDP", "DDP")
        }
        shares = [excess(ends["HDP"], ends["CDP"]), excess(ends["DDP"], ends["HDP"])]
        told = f"HDP over CDP {percent(shares[0])}, DDP over HDP {percent(shares[1])}"
        found.append(Finding(slots(horizon), told, positive(*shares)))
    return found


def _slightly_affected(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        for algorithm in ("DDP", "HDP"):
            ends = [
                data.end("fig12_heterogeneous_structures", horizon, algorithm=algorithm, spread=s)
                for s in ("heterogeneous", "homogeneous")
            ]
            share = excess(*ends)
            condition = f"{slots(horizon)}, {algorithm}"
            found.append(Finding(condition, percent(share), within(share, -0.1, 0.1)))
    return found


def _sinks_recover_the_server(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        options = dict(
            epsilon=1, horizon=horizon, seeds=min(data.seeds, 200), times=8, sum_agents=False
        )
        problem = fmab.Problem.uniform(20, 20)
        split = fmab.sweep("hdp", problem, components="1x20", **options).regret.values
        server = fmab.sweep("cdp", problem, **options).regret.values
        largest = float(np.abs(split - server).max())
        verdict = HOLDS if largest == 0 else FAILS
        found.append(Finding(slots(horizon), f"largest difference {largest:g}", verdict))
    return found


# --- theorems -----------------------------------------------------------------------------------


@functools.cache
def gaps_of(problem: problems.Problem, instances: int) -> np.ndarray:
    """Returns [seed, arm] gaps of the instances that the first seeds draw."""
    with jax.enable_x64(True):

        def one(seed: Any) -> Any:
            return bound.draw(keys.seed_key(jnp.uint32(0), seed)).gaps

        bound = problem.bind(problem.agents)
        return np.asarray(jax.vmap(one)(jnp.arange(instances, dtype=jnp.uint32)))


def _bounded(
    name: str,
    cell: dict[str, Any],
    problem: Callable[[], problems.Problem],
    table: Callable[[], exchange.Exchange],
    **options: Any,
) -> Callable[[Data], list[Finding]]:
    def judge(data: Data) -> list[Finding]:
        found = []
        for horizon in data.horizons:
            ends = data.end(name, horizon, **cell)[:INSTANCES]
            bounds = [
                theory.bounds(gaps, table(), horizon, 1.0, **options).regret
                for gaps in gaps_of(problem(), INSTANCES)[: len(ends)]
            ]
            found.append(_looseness(horizon, ends, bounds))
        return found

    return judge


def _looseness(horizon: int, ends: np.ndarray, bounds: Sequence[float]) -> Finding:
    """Compares the mean bound with the mean regret of the same instances."""
    loose = ratio(bounds, ends)
    return Finding(slots(horizon), f"bound / regret = {number(loose)}", within(loose, 1, math.inf))


def _budgeted(kind: str) -> Callable[[Data], list[Finding]]:
    """Corollaries 1 and 2: a round budget on a graph, and on components."""
    own = {"ddp": {"graph": "ring"}, "hdp": {"components": "10x5:ring"}}[kind]

    def judge(data: Data) -> list[Finding]:
        problem = fmab.Problem.uniform(50, 20)
        table = (
            exchange.flooding(graphs.make("ring", 50))
            if kind == "ddp"
            else exchange.sinks(graphs.components("10x5:ring", 50))
        )
        found = []
        for horizon in data.horizons:
            ends = fmab.sweep(
                kind, problem, epsilon=1, rounds=4, horizon=horizon, seeds=INSTANCES, times=8, **own
            ).regret.values[:, -1]
            bounds = [
                theory.bounds(gaps, table, horizon, 1.0, rounds=4)
                for gaps in gaps_of(problem, INSTANCES)
            ]
            found.append(_looseness(horizon, ends, [bound.regret for bound in bounds]))
        return found

    return judge


def _never_lost(data: Data) -> list[Finding]:
    found = []
    problem = fmab.Problem.uniform(50, 100)
    for horizon in data.horizons:
        cells = fmab.sweep(
            "cdp", problem, epsilon=1, horizon=horizon, seeds=MANY * data.seeds, times=8,
            keep="summary", store=data.store(f"lost-T{horizon}"),
        )  # fmt: skip
        lost, seeds = int(cells.best_arm_lost), int(cells.seeds)
        low, high = lost_interval(lost, seeds, LEVEL)
        told = f"{lost} of {common.whole(seeds)} seeds, at most {high:.1e}"
        found.append(Finding(slots(horizon), told, within(Measured(0, low, high), 0, 1 / horizon)))
    return found


def _rounds_by_gap(data: Data) -> list[Finding]:
    found = []
    for horizon in data.horizons:
        cell = data.last("fig04_epsilon", horizon, epsilon=1)
        gaps = gaps_of(fmab.Problem.uniform(50, 100), cell.sizes["seed"])
        smallest = np.where(gaps > 0, gaps, 1.0).min(axis=1)
        allowed = np.ceil(np.log2(1 / smallest) + 1)
        most = float((cell.rounds_made.values / allowed).max())
        over = int((cell.rounds_made.values > allowed).sum())
        told = f"exceeded by {over} of {common.whole(cell.sizes['seed'])} seeds; largest share {most:.3g}"
        found.append(Finding(slots(horizon), told, HOLDS if not over else FAILS))
    return found


def _fixed() -> problems.Problem:
    return fmab.Problem.with_gap(50, 10, 0.1).fixed(0)


def _log_slope(data: Data) -> list[Finding]:
    horizons = [10**5, 10**7, 10**9, 10**11]
    cells = fmab.sweep(
        "cdp", _fixed(), epsilon=1, horizon=horizons, seeds=data.seeds, times=8,
        store=data.store("slope"),
    ).regret.isel(time=-1).values  # fmt: skip
    growth = np.diff(cells, axis=0)
    found = []
    for index in range(1, len(growth)):
        share = ratio(growth[index], growth[index - 1])
        condition = f"T = {common.whole(horizons[index])} to {common.whole(horizons[index + 1])}"
        found.append(Finding(condition, number(share), within(share, -math.inf, 1.25)))
    return found


EPSILONS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, None]
PRIVATE_HORIZON = 10**10


def _private(data: Data) -> xr.DataArray:
    return (
        fmab.sweep(
            "cdp", _fixed(), epsilon=EPSILONS, horizon=PRIVATE_HORIZON, seeds=data.seeds, times=8,
            store=data.store("epsilon"),
        )
        .regret.isel(time=-1)
    )  # fmt: skip


def _epsilon_exponent(data: Data) -> list[Finding]:
    cells = _private(data)
    found = []
    for small, large in ((1e-6, 1e-5), (1e-5, 1e-4), (1e-4, 1e-3)):
        ends = [cells.sel(epsilon=value).values for value in (small, large)]
        power = exponent(*ends, 10)
        condition = f"ε from {small:g} to {large:g}"
        found.append(Finding(condition, number(power), within(power, 0.9, 1.1)))
    return found


def _crossover(data: Data) -> list[Finding]:
    cells = _private(data)
    none = cells.sel(epsilon="none").mean().item()
    values = np.array([value for value in EPSILONS if value is not None])
    means = cells.isel(epsilon=slice(len(values))).mean("seed").values
    # Where the regret is twice that without noise, between the two epsilons around it.
    place = int(np.argmax(means < 2 * none))
    share = math.log(means[place - 1] / (2 * none)) / math.log(means[place - 1] / means[place])
    measured = values[place - 1] * (values[place] / values[place - 1]) ** share
    instance = _fixed()
    gap = float(np.sort(gaps_of(instance, 1)[0])[1])
    printed = gap * math.sqrt(math.log(PRIVATE_HORIZON) / instance.agents)
    derived = [
        theory.crossover_epsilon(
            epoch, 2, arms=instance.arms, reporting=instance.agents, horizon=PRIVATE_HORIZON
        )
        for epoch in range(1, math.ceil(math.log2(2 / gap)) + 1)
    ]
    told = (
        f"regret doubles at ε = {measured:.2g}; printed {printed:.2g}; the terms of S(r) are equal "
        f"at {min(derived):.2g} to {max(derived):.2g}, epoch by epoch"
    )
    near = 1 / 5 <= measured / printed <= 5
    return [Finding(f"Δ = {gap:g}", told, HOLDS if near else FAILS)]


def _agents_exponent(data: Data) -> list[Finding]:
    numbers = [10, 100, 1000]
    means = _fixed().means[0]
    found = []
    cells = fmab.sweep(
        "cdp", {str(m): fmab.Problem(means, m) for m in numbers}, epsilon=1e-6,
        horizon=10**11, seeds=data.seeds, times=8, store=data.store("agents"),
    ).regret.isel(time=-1)  # fmt: skip
    for few, many in zip(numbers, numbers[1:], strict=False):
        ends = [cells.sel(problem=str(m)).values for m in (many, few)]
        power = exponent(*ends, many / few)
        found.append(Finding(f"M from {few} to {many}", number(power), within(power, -0.6, -0.4)))
    return found


def _leak(data: Data) -> list[Finding]:
    found = []
    for p in (1, 0.4):
        table = exchange.server(50, p)
        told = f"a message leaks {table.reporting} ε; printed 50 ε"
        verdict = HOLDS if table.reporting <= 50 else FAILS
        found.append(Finding(f"p = {p:g}", told, verdict))
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


def _different_agents() -> problems.Problem:
    agents, arms = fig12_heterogeneous_structures.AGENTS, fig12_heterogeneous_structures.ARMS
    return fmab.Problem.heterogeneous(agents, arms, 1.0)


def _alike(agents: int, arms: int = 100) -> Callable[[], problems.Problem]:
    @functools.cache
    def problem() -> problems.Problem:
        return fmab.Problem.uniform(agents, arms)

    return problem


_different_agents = functools.cache(_different_agents)
_HALF = "share of the regret at T collected after T / 2"

# One line a claim reads best.
CLAIMS = [
    Claim("VII-A1", "regret increases with the decreasing of ε", "R(0.1) over R(0.3), R(0.3) over R(0.5), R(0.5) over R(1)",
          _falling("fig04_epsilon", [{"epsilon": e} for e in (0.1, 0.3, 0.5, 1)]), "fig04"),
    Claim("VII-A1", "ε = 1 is the non-private case", "R(1) over R(no noise); within 1 %",
          _compared(("fig04_epsilon", {"epsilon": 1}), ("fig04_epsilon", {"epsilon": "none"}), 0.01), "fig04"),
    Claim("VII-A2", "regrets at T decrease as p increases", "R(p) over R(p + 0.2), p = 0.2 ... 0.8",
          _falling("fig05_participation", [{"participation": p} for p in (0.2, 0.4, 0.6, 0.8, 1)]), "fig05"),
    Claim("IV-C2", "a factor p^(-3/2)", "e in R(0.2) = R(1) 5^e; at most 3/2", _participation_exponent, "fig05"),
    Claim("VII-A2", "regrets decrease with R", "R(2) over R(3), R(3) over R(4), R(4) over R(5); oracle gap",
          _falling("fig06_rounds", [{"schedule_gap": ORACLE, "rounds": r} for r in (2, 3, 4, 5)]), "fig06"),
    Claim("VII-A2", "R = 4 and 5 almost the same", "R(4) over R(5), oracle gap; within 5 %",
          _compared(("fig06_rounds", {"schedule_gap": ORACLE, "rounds": 4}), ("fig06_rounds", {"schedule_gap": ORACLE, "rounds": 5}), 0.05), "fig06"),
    Claim("VII-A2", "R = 4 and 5 almost the same", "the same with the schedule built for gap 1/16",
          _compared(("fig06_rounds", {"schedule_gap": "Δ = 1/16", "rounds": 4}), ("fig06_rounds", {"schedule_gap": "Δ = 1/16", "rounds": 5}), 0.05), "fig06"),
    Claim("VII-A2", "about log(T) ≈ 4 rounds", "rounds of the doubling schedule; 3.5 to 4.5", _rounds_needed, "fig04"),
    Claim("VII-A2", "(4 rounds) eliminate all suboptimal arms", "seeds with one arm left at T; at least 95 %", _decided, "fig04"),
    Claim("VII-A2", "(R = 5, p = 1) is close to figure 4 at ε = 1", "R(R = 5, p = 1) over R(no budget); within 10 %; oracle gap",
          _compared(("fig07_tradeoff", {"schedule_gap": ORACLE, "participation": 1, "rounds": 5}), ("fig04_epsilon", {"epsilon": 1}), 0.1), "fig07"),
    Claim("Theorem 2", "cost is c1 ⌈pM⌉ R", "server links over ⌈pM⌉ R, all (p, R) and seeds; never above 1", _budget_cost, "fig07"),
    Claim("Theorem 2", "cost is c1 ⌈pM⌉ R", "rounds made over R, p = 1; at least 99 % if it is an equality", _all_budget_spent, "fig07"),
    Claim("VII-A3", "reached 1/M of the single-agent performance", "R(Single) over R(CDP), both summed over agents; M within 20 %", _one_in_m, "fig08"),
    Claim("VII-A3", "similar regrets under two reward structures", "CDP, heterogeneous over homogeneous; within 10 %",
          _compared(("fig08_heterogeneous_central", {"algorithm": "CDP", "spread": "heterogeneous"}),
                    ("fig08_heterogeneous_central", {"algorithm": "CDP", "spread": "homogeneous"}), 0.1), "fig08"),
    Claim("VII-A3", "a linear regret with T (Single, heterogeneous)", f"{_HALF}; at least 40 %",
          functools.partial(_late_share, algorithm="Single", spread="heterogeneous", low=0.4, high=1.0), "fig08"),
    Claim("VII-A3", "(CDP's is not linear)", f"{_HALF}; at most 25 %",
          functools.partial(_late_share, algorithm="CDP", spread="heterogeneous", low=-1.0, high=0.25), "fig08"),
    Claim("VII-B1", "star and fully-connected achieve the smallest regrets", "random graph over star, and over complete",
          _graph_differences([("random", "star"), ("random", "complete")]), "fig10"),
    Claim("VII-B1", "ring incurs larger regret", "ring over each other graph",
          _graph_differences([("ring", g) for g in ("complete", "star", "random")]), "fig10"),
    Claim("VII-B1", "star has the smallest communication cost", "cost over the star's", _graph_cost, "fig10, table1"),
    Claim("VII-B1", "fully-connected introduces a huge cost", "complete over star; at least 10", _complete_is_huge, "fig10, table1"),
    Claim("VII-B1", "fully-connected introduces a huge cost", "complete over ring: is it the largest?", _complete_is_costliest, "fig10, table1"),
    Claim("Table I", "2(M - 1), M²/2, M(M - 1)/2, d-regular", "links a round, M = 50", _table_one, "table1"),
    Claim("V-B2", "the extra term does not depend on T", "regret while waiting on the ring, from one T to the next; within 5 %", _waiting_is_constant, "fig10"),
    Claim("VII-C1", "case 1, 2 and 3 achieve similar regrets", "cases 2 and 3 over case 1; within 2 %", _hybrid_alike, "fig11"),
    Claim("VII-C1", "cost gradually increases (cases 1, 2, 3)", "cost ratios", _hybrid_costs([(2, 1), (3, 2)]), "table2"),
    Claim("VII-C1", "star-like sub-graphs cost less (1, 4, 5)", "cost ratios", _hybrid_costs([(1, 5), (4, 5)]), "table2"),
    Claim("VII-C1", "hybrid costs far less than a server alone", "cost of case 6 over cases 1, 4, 5", _hybrid_costs([(6, 1), (6, 4), (6, 5)]), "table2"),
    Claim("VII-C1", "hybrid costs far less than a graph alone", "cost of case 3 over cases 1, 4, 5", _hybrid_costs([(3, 1), (3, 4), (3, 5)]), "table2"),
    Claim("VI-B2", "Q = M recovers R_C(T)", "HDP on 20 components of one agent minus CDP, seed by seed, T as given", _sinks_recover_the_server, "hdp_mab"),
    Claim("VII-C2", "CDP smallest, HDP better than DDP", "heterogeneous; HDP over CDP, DDP over HDP", _order_of_structures, "fig12"),
    Claim("VII-C2", "the other two are slightly affected", "heterogeneous over homogeneous; within 10 %", _slightly_affected, "fig12"),
    Claim("Theorem 1", "regret bound (constants of docs/theory.md)", "mean bound over mean regret, 50 instances; at least 1",
          _bounded("fig04_epsilon", {"epsilon": 1}, _alike(50), lambda: exchange.server(50)), "theory.bounds"),
    Claim("Theorem 2", "regret bound, p = 0.4, no budget", "the same",
          _bounded("fig05_participation", {"participation": 0.4}, _alike(50), lambda: exchange.server(50, 0.4)), "theory.bounds"),
    Claim("Theorem 3", "regret bound on the ring", "the same",
          _bounded("fig10_graphs", {"graph": "ring"}, _alike(50), lambda: exchange.flooding(graphs.make("ring", 50))), "theory.bounds"),
    Claim("Theorem 4", "regret bound, case 4", "the same",
          _bounded("table2_fig11_hybrid", {"components": "case 4"}, _alike(100), lambda: exchange.sinks(graphs.components("20x5:random", 100))), "theory.bounds"),
    Claim("Corollary 1", "regret bound, ring, R = 4 (oracle gap)", "the same", _budgeted("ddp"), "theory.bounds"),
    Claim("Corollary 2", "regret bound, five rings, R = 4 (oracle gap)", "the same", _budgeted("hdp"), "theory.bounds"),
    *(
        Claim("Corollary 3", f"regret bound, heterogeneous, {a}", "the same",
              _bounded("fig12_heterogeneous_structures", {"algorithm": a, "spread": "heterogeneous"}, _different_agents, _structure(a), heterogeneous=True), "theory.bounds")
        for a in ("CDP", "DDP", "HDP")
    ),
    Claim("Theorem 1", "the best arm stays with probability 1 - 1/T", "seeds that lost it; upper end at most 1/T", _never_lost, "cdp_mab"),
    Claim("Theorem 1", "⌈log(1/Δ) + 1⌉ rounds identify the best arm", "rounds made against ⌈log2(1/Δ) + 1⌉, each seed's own Δ", _rounds_by_gap, "fig04"),
    Claim("Theorem 1", "regret grows as log T", "growth over two decades against the two before, one instance; at most 1.25", _log_slope, "cdp_mab"),
    Claim("Theorem 1", "the privacy term is 1/ε", "e in R(ε) = R(10 ε) 10^e, one instance, T = 10¹⁰; 0.9 to 1.1", _epsilon_exponent, "cdp_mab"),
    Claim("IV-C1", "dominated by 1/ε unless Δ < ε √M / √log T", "ε at which regret is twice that without noise, against Δ √(log T) / √M; within a factor 5", _crossover, "theory.crossover_epsilon"),
    Claim("Theorem 1", "the privacy term is 1/√M", "e in R(10 M) = R(M) 10^e at ε = 10⁻⁶; -0.6 to -0.4", _agents_exponent, "cdp_mab"),
    Claim("Theorems 1, 2", "Mε-differentially private", "what a message leaks (Laplace noise of scale 1/(N ε n))", _leak, "docs/theory.md"),
]  # fmt: skip


def judge(data: Data, folder: Path) -> list[Path]:
    """Judges every claim and writes CLAIMS.md."""
    lines = [
        "# The paper's sentences, measured",
        "",
        f"Seeds {data.seeds:,} a cell; T = {', '.join(common.whole(T) for T in data.horizons)}. ± is half "
        f"the {100 * LEVEL:g} % interval over seeds (Student t; ratios by the delta method; paired where two "
        "configurations are compared). Verdicts are computed: an interval has to lie on the stated side.",
        "",
        "| section | the paper's words | measured | found | verdict | see |",
        "|---|---|---|---|---|---|",
    ]
    for claim in CLAIMS:
        findings = claim.judge(data)
        told = "<br>".join(f"{each.condition}: {each.quantity}" for each in findings)
        cells = (claim.section, f"“{claim.words}”", claim.measured, told)
        lines.append(f"| {' | '.join(cells)} | **{combined(findings)}** | {claim.see} |")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "CLAIMS.md"
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [path]
