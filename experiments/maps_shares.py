"""Shares of single instances for which the paper's sentences hold: it probably ran one.

A mean over instances can hide that no instance behaves like it, and one instance can show what the
mean does not.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import (
    claims_measured,
    common,
    fig08_heterogeneous_central,
    maps_pairs,
    pictures,
    seen,
    verdicts,
)
from experiments.maps_common import (
    AGENTS,
    ARMS,
    EPSILON,
    dots,
    end,
    run_paper,
    share_of,
)
from experiments.maps_gaps import BOTH, ORACLE, SENTENCES, TOLERANCES
from experiments.verdicts import LEVEL, TOLERANCE, Data

# Instances that are fixed one by one, and how often each is run.
INSTANCES, RUNS = 300, 20
SHARES = (0.2, 0.4, 0.6, 0.8, 1)


class Sentence(NamedTuple):
    """A sentence of section VII that a single run can agree with.

    Attributes:
        words: What it says, for the row of a figure.
        compared: Returns [seed] regrets at T: from the largest to the smallest, or two that are
            alike.
        tolerance: Largest difference that counts as alike; None where an order is meant.
    """

    words: str
    compared: Callable[[Data, int], list[np.ndarray]]
    tolerance: float | None = None

    def runs(self, data: Data, horizon: int) -> np.ndarray:
        """Returns [seed] whether it is true of each run."""
        return agreeing(self.compared(data, horizon), self.tolerance)

    def means(self, data: Data, horizon: int) -> str:
        """Returns the verdict on the means over the seeds."""
        return judged(self.compared(data, horizon), self.tolerance)


def agreeing(ends: Sequence[np.ndarray], tolerance: float | None) -> np.ndarray:
    """Returns [seed] whether regrets fall from one to the next, or two are alike."""
    if tolerance is None:
        pairs = zip(ends, ends[1:], strict=False)
        return np.logical_and.reduce([first > second for first, second in pairs])
    first, second = ends
    return np.abs(first / second - 1) <= tolerance


def judged(ends: Sequence[np.ndarray], tolerance: float | None) -> str:
    """Returns the same of the means, by 99 % paired intervals."""
    steps = [verdicts.excess(a, b) for a, b in zip(ends, ends[1:], strict=False)]
    if tolerance is None:
        return verdicts.positive(*steps)
    return verdicts.sided(steps[0], -tolerance, tolerance)


def _cells(name: str, *cells: Mapping[str, Any]) -> Callable[[Data, int], list[np.ndarray]]:
    return lambda data, horizon: [data.end(name, horizon, **cell) for cell in cells]


def _close_to_figure_4(data: Data, horizon: int) -> list[np.ndarray]:
    budget = data.end(
        "fig07_tradeoff", horizon, schedule_gap=claims_measured.ORACLE, participation=1, rounds=5
    )
    return [budget, data.end("fig04_epsilon", horizon, epsilon=1)]


def _one_in_m(data: Data, horizon: int) -> list[np.ndarray]:
    name = "fig08_heterogeneous_central"
    single, all_agents = (
        data.end(name, horizon, algorithm=a, spread="homogeneous") for a in ("Single", "CDP")
    )
    return [single / data.load(name)[horizon].attrs["agents"], all_agents]


def _sentences() -> list[Sentence]:
    budgets = [{"schedule_gap": claims_measured.ORACLE, "rounds": R} for R in (2, 3, 4, 5)]
    spreads = [{"algorithm": "CDP", "spread": s} for s in ("heterogeneous", "homogeneous")]
    apart = [{"algorithm": a, "spread": "heterogeneous"} for a in ("DDP", "HDP", "CDP")]
    shares = [{"participation": p} for p in SHARES]
    close = f"{100 * TOLERANCE:g} %"
    privacy = [{"epsilon": epsilon} for epsilon in (0.1, 0.3, 0.5, 1)]
    noise = [{"epsilon": 1}, {"epsilon": "none"}]
    graphs = [{"graph": "ring"}, {"graph": "star"}]
    server, structures = "fig08_heterogeneous_central", "fig12_heterogeneous_structures"
    return [
        Sentence("less ε, more regret", _cells("fig04_epsilon", *privacy)),
        Sentence(f"ε = 1 within {close} of no noise", _cells("fig04_epsilon", *noise), TOLERANCE),
        Sentence("larger p, less regret", _cells("fig05_participation", *shares)),
        Sentence("larger R, less regret", _cells("fig06_rounds", *budgets)),
        Sentence(f"R = 4 within {close} of R = 5", _cells("fig06_rounds", *budgets[2:]), TOLERANCE),
        Sentence(f"R = 5 within {close} of no budget", _close_to_figure_4, TOLERANCE),
        Sentence(f"agents alike or not, within {close}", _cells(server, *spreads), TOLERANCE),
        Sentence(f"1/M of agents alone within {close}", _one_in_m, TOLERANCE),
        Sentence("ring above star", _cells("fig10_graphs", *graphs)),
        Sentence("CDP below HDP below DDP", _cells(structures, *apart)),
    ]


def verdict_rows(data: Data) -> list[dict[str, Any]]:
    """Returns, for each sentence and horizon, the share of runs and the verdict on the means."""
    return [
        {
            "sentence": sentence.words,
            "T": horizon,
            "share of single runs": tuple(share_of(sentence.runs(data, horizon))),
            "the means": sentence.means(data, horizon),
        }
        for sentence in _sentences()
        for horizon in data.horizons
    ]


def draw_verdicts(data: Data) -> list[pictures.Picture]:
    """Draws the shares, a row for each sentence and a dot for each horizon."""
    rows = verdict_rows(data)
    names = list(dict.fromkeys(row["sentence"] for row in rows))
    share = "share of single runs"
    hidden = [row for row in rows if opposed(row["the means"], verdicts.Measured(*row[share]))]
    open_ = [row for row in rows if row["the means"] == verdicts.OPEN]
    told = (
        f"The means and most single runs disagree in: {_shares(hidden, share)}"
        if hidden
        else "The means and most single runs disagree in no row"
    )
    told += f". The means decide nothing in: {_shares(open_, share)}" if open_ else ""
    most = {n: max(row[share][0] for row in rows if row["sentence"] == n) for n in names}
    never = [name for name, largest in most.items() if largest < 0.01]
    told += f". True of less than 1 % of the runs at every T: {', '.join(never)}" if never else ""
    caption = (
        f"Single instances in a single run each, T = {common.listed(data.horizons)} slots, "
        f"{common.whole(data.seeds)} seeds. The settings are those of figures 4, 5, 6, 7, 8, 10 "
        "and 12 (a budget's gap is the oracle's). Points: share of the runs of which the sentence "
        "is true; bars: 95 % Clopper–Pearson interval. Full points: it holds of the means over the "
        f"seeds, by a {100 * LEVEL:g} % paired interval. Where p differs, and where agents are "
        f"alone, leaks differ though ε is the same. {_leaks()}. {told}."
    )
    return [pictures.Picture("maps_verdicts", verdict_page(rows), caption, f"{told}.", rows)]


def _leaks() -> str:
    """Says what messages leak in the sentences on p and on agents alone."""
    shares = {f"p = {p:g}": fmab.cdp_mab(EPSILON, participation=p) for p in SHARES}
    few = {"agents alone": fmab.single_mab(EPSILON), "CDP-MAB": fmab.cdp_mab(EPSILON)}
    agents = fig08_heterogeneous_central.AGENTS
    few_told = common.leaks(few, agents).partition(": ")[2]
    return f"{common.leaks(shares, AGENTS)}; with M = {agents}, {few_told}"


def opposed(means: str, share: verdicts.Measured) -> bool:
    """Tells whether the means say the contrary of most single runs; not where one is open."""
    holds, fails = share.lower > 0.5, share.upper < 0.5
    return (means == verdicts.HOLDS and fails) or (means == verdicts.FAILS and holds)


def _shares(rows: Sequence[Mapping[str, Any]], share: str) -> str:
    """Lists sentences, each with its horizons and the share of runs of which it is true."""
    found: dict[str, list[str]] = {}
    for row in rows:
        at = f"T = {common.whole(row['T'])}: {100 * row[share][0]:.0f} %"
        found.setdefault(row["sentence"], []).append(at)
    return "; ".join(f"{name} ({', '.join(at)})" for name, at in found.items())


def page(rows: Sequence[Mapping[str, Any]], key: str, value: str) -> Callable[..., None]:
    """Returns what draws a row of dots for each ``key`` of the rows of the CSV, one for each T."""
    names = list(dict.fromkeys(row[key] for row in rows))
    groups = {
        f"T = {common.whole(T)}": [
            (verdicts.Measured(*row[value]), row["the means"] == verdicts.HOLDS)
            for name in names
            for row in rows
            if (row["T"], row[key]) == (T, name)
        ]
        for T in dict.fromkeys(row["T"] for row in rows)
    }

    def draw(page: pictures.Page) -> None:
        height = 0.55 + 0.2 * sum(1 + name.count("\n") for name in names)
        axes = page.panels([""], [""], "share of instances (%)", height=height)
        grey = {"ls": "none", "marker": "o", "ms": 3.6, "color": "0.3"}
        page.handles = [
            *dots(axes[0, 0], names, groups),
            Line2D([], [], label="true of the means", **grey),
            Line2D([], [], label="not, or open", mfc="white", mew=0.8, **grey),
        ]

    return draw


verdict_page = functools.partial(page, key="sentence", value="share of single runs")
instance_page = functools.partial(page, key="row", value="share of instances")


# --- instances fixed one by one -----------------------------------------------------------------


def sweep_instances(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs instances one by one with R = 4, 5 and no budget, under the oracle's gap.

    A mapping of problems is one axis: they differ in values alone, so that all share a program.
    """
    uniform = fmab.Problem.uniform(AGENTS, ARMS)
    problems = {str(i): uniform.fixed(i) for i in range(INSTANCES)}
    own = {"epsilon": EPSILON, "rounds": [4, 5, None]}
    return run_paper(fmab.cdp_mab, horizon, min(seeds, RUNS), store, problems, **own)


def verdicts_of(regrets: Mapping[Any, np.ndarray], tolerance: float) -> dict[str, np.ndarray]:
    """Returns [instance] the verdict on each sentence, and on both, of single instances.

    Args:
        regrets: [instance] of one run each, or [instance, run], by budget; None for no budget. One
            run holds or does not; of several, the 99 % paired interval may leave it open.
        tolerance: Largest difference.
    """
    found = {}
    for words, (first, second) in SENTENCES.items():
        pair = regrets[first], regrets[second]
        if np.ndim(pair[0]) == 1:
            true = agreeing(pair, tolerance)
            found[words] = np.where(true, verdicts.HOLDS, verdicts.FAILS)
        else:
            found[words] = np.array([judged(r, tolerance) for r in zip(*pair, strict=True)])
    each = zip(*found.values(), strict=True)
    return found | {BOTH: np.array([verdicts.worst(map(str, own)) for own in each])}


def instance_rows(horizon: int, found: Mapping[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Returns the shares of instances for each sentence and both, at each tolerance."""
    gaps, without = found["gaps"], maps_pairs.regret_without(found["pairs"])
    one = {R: end(gaps, schedule_gap=ORACLE, rounds=R) for R in (4, 5)} | {None: without}
    kinds = {f"{without.size} instances, one run each": one}
    if "instances" in found:
        last = found["instances"].regret.isel(time=-1).transpose("problem", "seed", "rounds")
        label = f"{last.sizes['problem']} instances, {last.sizes['seed']} runs each"
        own = {R: last.sel(rounds="none" if R is None else R).values for R in (4, 5, None)}
        kinds[label] = own
    rows = []
    for kind, regrets in kinds.items():
        pooled = {R: np.ravel(each) for R, each in regrets.items()}
        for tolerance in TOLERANCES:
            means = {
                words: judged((pooled[a], pooled[b]), tolerance)
                for words, (a, b) in SENTENCES.items()
            }
            means[BOTH] = verdicts.worst(means.values())
            for words, each in verdicts_of(regrets, tolerance).items():
                true = each == verdicts.HOLDS
                rows.append(
                    {
                        "T": horizon,
                        "instances": kind,
                        "several runs": np.ndim(regrets[None]) > 1,
                        "sentence": words,
                        "tolerance": tolerance,
                        "share of instances": tuple(share_of(true)),
                        "true": int(true.sum()),
                        "not true": int((each == verdicts.FAILS).sum()),
                        "undecided": int((each == verdicts.OPEN).sum()),
                        "the means": means[words],
                    }
                )
    return rows


def _numbers(rows: Sequence[Mapping[str, Any]], tolerance: float) -> str:
    """Writes of how many instances both hold, for each kind of run."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["sentence"] == BOTH and row["tolerance"] == tolerance:
            at = f"{row['true']} at T = {common.whole(row['T'])}"
            found.setdefault(row["instances"], []).append(at)
    return "; ".join(f"of {kind}, {', '.join(told)}" for kind, told in found.items())


def _undecided(rows: Sequence[Mapping[str, Any]], tolerance: float) -> str:
    """Writes how many instances of several runs leave each sentence open; "" if there are none."""
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["several runs"] and row["tolerance"] == tolerance:
            at = f"{row['undecided']} at T = {common.whole(row['T'])}"
            found.setdefault(row["sentence"], []).append(at)
    told = "; ".join(f"{words}, {', '.join(numbers)}" for words, numbers in found.items())
    return f"Undecided instances: {told}. " if told else ""


def draw_instances(results: Mapping[int, Mapping[str, xr.Dataset]]) -> list[pictures.Picture]:
    """Draws for what share of the instances the sentences on budgets hold, and both."""
    rows = [row for T, found in results.items() for row in instance_rows(T, found)]
    drawn = [
        row | {"row": f"{row['sentence']}\n({row['instances']})"}
        for row in rows
        if row["tolerance"] == TOLERANCE
    ]
    told = f"Instances of which both hold within {100 * TOLERANCE:g} %: {_numbers(rows, TOLERANCE)}"
    loose = max(TOLERANCES)
    others, open_ = _numbers(rows, loose), _undecided(rows, TOLERANCE)
    several = [f"{INSTANCES} instances, several runs each"]
    missing = seen.absent(several, several * any(row["several runs"] for row in rows))
    caption = (
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, p = 1, T = "
        f"{common.listed(results)} slots; budgets are built for each instance's own smallest gap "
        "(oracle). Points: share of instances; bars: 95 % Clopper–Pearson interval. One run: the "
        f"regrets differ by at most {100 * TOLERANCE:g} %. Several runs of an instance: the "
        f"{100 * LEVEL:g} % paired interval lies within that; an instance whose interval lies "
        "across the edge is undecided, and no part of the share. Full points: it holds of the "
        f"means over all. {common.leaks({'CDP-MAB': fmab.cdp_mab(EPSILON)}, AGENTS)}. {told}. "
        f"{open_}Within {100 * loose:g} %: {others}.{''.join(f' {text}.' for text in missing)}"
    )
    return [pictures.Picture("maps_instances", instance_page(drawn), caption, f"{told}.", drawn)]
