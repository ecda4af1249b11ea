"""Maps of privacy: regret against the leak, and its exponents in both regimes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import claims_runs, common, pictures, seen, verdicts
from experiments.maps_common import AGENTS, ARMS, caption, name_ticks, run_paper
from fmab_jax.analysis import theory
from fmab_jax.analysis.words import write_number
from fmab_jax.plots import style

Results = Mapping[int, Mapping[str, xr.Dataset]]
Rows = Sequence[Mapping[str, Any]]

LEAKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, None)
COMPONENTS = "5x10:star"
# Who leaks what to whom, as `fmab.privacy_ledger` has it.
STRUCTURES = {
    "CDP, p = 1": "with CDP-MAB each agent's messages leak it to the server",
    "CDP, p = 0.2": "",
    "DDP, ring": "with DDP-MAB to every other agent",
    "HDP, ten stars of five": "with HDP-MAB to the sink of its star (the server sees sums)",
    "agents alone": "agents alone send nothing: N = 1, and it is what their actions may tell",
}
# Of lines, in points.
WIDTHS = dict(zip(STRUCTURES, (4.5, 1.1, 2.6, 0.8, 1.1), strict=True))


def sweep_leaks(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs CDP-MAB at every leak, with all agents and with a fifth of them."""
    return run_paper(
        fmab.cdp_mab, horizon, seeds, store, epsilon_message=list(LEAKS), participation=[0.2, 1]
    )


def sweep_peers(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs DDP-MAB and HDP-MAB at every leak."""
    return run_paper(
        {"DDP": fmab.ddp_mab, "HDP": fmab.hdp_mab},
        horizon,
        seeds,
        store,
        epsilon_message=list(LEAKS),
        graph="ring",
        components=COMPONENTS,
    )


def sweep_alone(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs agents alone at every leak."""
    return run_paper(fmab.single_mab, horizon, seeds, store, epsilon_message=list(LEAKS))


# --- regret against the leak --------------------------------------------------------------------


def leak_curves(found: Mapping[str, xr.Dataset]) -> dict[str, xr.DataArray]:
    """Returns [leak, seed] regret at T of every structure that was run."""
    curves = {}
    if "leaks" in found:
        for p in found["leaks"].participation.values:
            curves[f"CDP, p = {p:g}"] = found["leaks"].regret.sel(participation=p).isel(time=-1)
    if "peers" in found:
        for name, label in (("DDP", "DDP, ring"), ("HDP", "HDP, ten stars of five")):
            curves[label] = found["peers"].regret.sel(algorithm=name).isel(time=-1)
    if "alone" in found:
        curves["agents alone"] = found["alone"].regret.isel(time=-1)
    order = [name for name in STRUCTURES if name in curves]
    return {name: curves[name].transpose("epsilon_message", "seed", ...).load() for name in order}


def leak_rows(horizon: int, curves: Mapping[str, xr.DataArray]) -> list[dict[str, Any]]:
    """Returns every point: regret, and by what factor the noise raises it."""
    rows = []
    for name, cells in curves.items():
        none = cells.sel(epsilon_message="none").values
        for leak in cells.epsilon_message.values:
            own = cells.sel(epsilon_message=leak).values
            rows.append(
                {
                    "T": horizon,
                    "structure": name,
                    "leak": leak if leak == "none" else float(leak),
                    "regret": common.interval(own),
                    "over no noise": tuple(verdicts.ratio(own, none)),
                }
            )
    return rows


def doubled(rows: Sequence[Mapping[str, Any]]) -> float | None:
    """Returns the largest leak at which the regret is at least twice that without noise."""
    leaks = [r["leak"] for r in rows if r["leak"] != "none" and r["over no noise"][0] >= 2]
    return max(leaks, default=None)


def draw_leaks(results: Results) -> list[pictures.Picture]:
    """Draws regret at T against what a message leaks, a curve for each structure."""
    curves = {T: leak_curves(found) for T, found in results.items()}
    rows = {T: leak_rows(T, each) for T, each in curves.items()}
    drawn = next(iter(curves.values()))
    ledger = "; ".join(words for name, words in STRUCTURES.items() if words and name in drawn)
    told = []
    for T, each in rows.items():
        for name in curves[T]:
            place = doubled([row for row in each if row["structure"] == name])
            told.append((T, name, place))
    last = max(results)
    noise = "; ".join(
        f"{name} " + (f"to Nε = {place:g}" if place is not None else "nowhere")
        for T, name, place in told
        if T == last
    )
    found = (
        f"At T = {common.write_count(last)} noise at least doubles the regret up to these leaks, "
        "of "
        f"those run: {noise}. {_told_alike(curves)}"
    )
    data = {
        T: [each[name] for name in ("leaks", "peers", "alone") if name in each]
        for T, each in results.items()
    }
    words = caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, no round budget",
        data,
        "Points: mean regret at T over the seeds; bars: pointwise 95 % confidence interval "
        "(Student t). The horizontal axis is what the messages of one agent tell of one reward "
        "(Theorem 1), N = ⌈pM⌉ the agents that a round hears",
        f"Who leaks to whom: {ledger}. Actions are not covered where agents wait",
        *seen.absent(STRUCTURES, drawn),
        found,
    )
    every = [row for each in rows.values() for row in each]
    alt = f"Regret against the leak. {found}."
    return [pictures.Picture("maps_leak", leak_page(every), words, alt, every)]


def leak_page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws regret against the leak from the rows of the CSV."""
    horizons, structures = (list(dict.fromkeys(row[n] for row in rows)) for n in ("T", "structure"))
    numbers = [row["leak"] for row in rows if row["leak"] != "none"]
    beside = max(numbers) * 2.5

    def draw(page: pictures.Page) -> None:
        labels = ["regret (sum over agents)"]
        axes = page.panels(labels, common.titles(horizons), "leak Nε of a message")
        for panel, horizon in zip(axes[0], horizons, strict=True):
            page.handles = []
            for index, name in enumerate(structures):
                # Three structures nearly coincide: the first ones are drawn wider, below.
                look = style.get_line_style(index) | {"linestyle": "-", "linewidth": WIDTHS[name]}
                look |= {"solid_capstyle": "butt"}
                each = [r for r in rows if (r["T"], r["structure"]) == (horizon, name)]
                places = [beside if r["leak"] == "none" else r["leak"] for r in each]
                mean, low, high = np.array([r["regret"] for r in each]).T
                panel.vlines(places, low, high, color=look["color"], linewidth=0.9)
                lines = panel.plot(places[:-1], mean[:-1], label=name, **look)
                page.handles = [*page.handles, *lines]
                panel.plot(places[-1], mean[-1], "D", color=look["color"], ms=2 + WIDTHS[name])
            panel.set(xscale="log", yscale="log", xlim=(min(numbers) / 1.3, beside * 1.4))
            panel.axvline(beside / 1.5, color="0.6", linewidth=0.5)
        powers = [number for number in (0.1, 1, 10) if number in numbers]
        name_ticks(page, axes, powers, none=beside)

    return draw


def _told_alike(curves: Mapping[int, Mapping[str, xr.DataArray]]) -> str:
    """Says how far the structures that hear all agents lie apart, over all leaks and horizons."""
    names = [
        name
        for name in ("CDP, p = 1", "DDP, ring", "HDP, ten stars of five")
        if all(name in each for each in curves.values())
    ]
    if len(names) < 2:
        return "One structure that hears all agents was run"
    means = [
        np.array([each[name].mean("seed").values for name in names]) for each in curves.values()
    ]
    most = max(float(np.abs(each / each[0] - 1).max()) for each in means)
    rest = seen.listed(names[1:])
    # A bound is not rounded down.
    bound = math.ceil(10000 * most) / 100
    return f"At every leak and T, {rest} lie within {bound:g} % of the regret of {names[0]}"


# --- exponents over the two regimes -------------------------------------------------------------

EPSILONS = (*(float(f"{e:.3g}") for e in np.geomspace(1e-6, 10, 29)), None)
HORIZON, FAR = 10**9, (10**8, 10**10)
FEW, MANY = 10, 100
PART = 0.2
# Exponents where the noise decides the epochs, and where the rewards do: derived, and printed. In p
# the print has one factor, p^(-3/2), before both (Theorem 2, section IV-C2).
REGIMES = {
    "ε": ((-1, 0), (-1, 0)),
    "M": ((-1 / 2, 0), (-1 / 2, 0)),
    "p": ((-3 / 2, -1), (-3 / 2, -3 / 2)),
    "log T": ((1 / 2, 1), (3 / 2, 1)),
}


def instance() -> fmab.Problem:
    """Returns the one instance of the exponents: 10 arms, smallest gap 0.1."""
    return fmab.Problem.with_gap(AGENTS, 10, 0.1).fixed(0)


def sweep_exponents(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs every epsilon with few and with many agents, at three horizons of its own."""
    means = instance().means[0]
    problems = {str(agents): fmab.Problem(means, agents) for agents in (FEW, AGENTS, MANY)}
    far = [FAR[0], HORIZON, FAR[1]]
    return run_paper(fmab.cdp_mab, far, seeds, store, problems, epsilon=list(EPSILONS))


def sweep_shares(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs every epsilon with a part of the agents reporting."""
    own = {"epsilon": list(EPSILONS), "participation": PART}
    return run_paper(fmab.cdp_mab, HORIZON, seeds, store, instance(), **own)


def exponent_rows(found: Mapping[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Returns the local exponents of regret, in each quantity, at every epsilon."""
    cells = found["exponents"].regret.isel(time=-1).load()
    usual = cells.sel(problem=str(AGENTS), horizon=HORIZON)
    epsilons = usual.epsilon.values.tolist()
    numbers = [value for value in epsilons if value != "none"]
    rows = []

    def add(quantity: str, epsilon: Any, measured: verdicts.Measured) -> None:
        (noise, reward), (noise_printed, reward_printed) = REGIMES[quantity]
        low, high = sorted(measured[1:])
        rows.append(
            {
                "exponent in": quantity,
                "ε": epsilon,
                "measured": (measured.estimate, low, high),
                "noise regime, derived": noise,
                "reward regime, derived": reward,
                "noise regime, printed": noise_printed,
                "reward regime, printed": reward_printed,
            }
        )

    for small, large in zip(numbers, numbers[1:], strict=False):
        ends = [usual.sel(epsilon=value).values for value in (large, small)]
        add("ε", math.sqrt(small * large), verdicts.exponent(*ends, large / small))
    for epsilon in epsilons:
        own = cells.sel(epsilon=epsilon)
        ends = [own.sel(problem=str(m), horizon=HORIZON).values for m in (MANY, FEW)]
        add("M", epsilon, verdicts.exponent(*ends, MANY / FEW))
    for epsilon in epsilons:
        own = cells.sel(epsilon=epsilon, problem=str(AGENTS))
        ends = [own.sel(horizon=T).values for T in (FAR[1], FAR[0])]
        add("log T", epsilon, verdicts.exponent(*ends, math.log(FAR[1]) / math.log(FAR[0])))
    if "shares" in found:
        part = found["shares"].regret.isel(time=-1).load()
        for epsilon in part.epsilon.values.tolist():
            ends = [part.sel(epsilon=epsilon).values, usual.sel(epsilon=epsilon).values]
            add("p", epsilon, verdicts.exponent(*ends, PART))
    return rows


def crossovers() -> tuple[float, tuple[float, float]]:
    """Returns the epsilon at which the regimes meet: printed; derived, over the epochs made."""
    problem = instance()
    gap = float(np.sort(claims_runs.gaps_of(problem, 1)[0])[1])
    printed = gap * math.sqrt(math.log(HORIZON) / AGENTS)
    derived = [
        theory.crossover_epsilon(r, 2, arms=problem.arms, reporting=AGENTS, horizon=HORIZON)
        for r in range(1, math.ceil(math.log2(2 / gap)) + 1)
    ]
    return printed, (min(derived), max(derived))


def half_way(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    """Returns each epsilon at which the exponent in it passes half-way, -1/2, from below."""
    points = [(row["ε"], row["measured"][0]) for row in rows if row["exponent in"] == "ε"]
    return [
        float(low * (high / low) ** ((-0.5 - first) / (second - first)))
        for (low, first), (high, second) in zip(points, points[1:], strict=False)
        if first <= -0.5 < second
    ]


def _crossing(places: Sequence[float], printed: float) -> str:
    """Says where the exponent passes half-way, and how far from the print it does so for good."""
    if not places:
        return "it passes -1/2 nowhere"
    last = f"{places[-1]:.2g} ({places[-1] / printed:.2g} times the print)"
    if len(places) == 1:
        return f"it passes -1/2 at ε = {last}"
    return (
        f"it passes -1/2 first at ε = {places[0]:.2g} and for good at {last}: the number of epochs "
        "is whole"
    )


def draw_exponents(results: Results) -> list[pictures.Picture]:
    """Draws the four local exponents over epsilon, with the values of both regimes."""
    found = next(iter(results.values()))
    rows = exponent_rows(found)
    quantities = [name for name in REGIMES if any(row["exponent in"] == name for row in rows)]
    printed, (lowest, highest) = crossovers()
    told = _told_exponents(rows, quantities)
    crossing = _crossing(half_way(rows), printed)
    text = caption(
        f"CDP-MAB, one instance of {instance().arms} arms with smallest gap 0.1, M = {AGENTS} "
        "agents where nothing else is said",
        {HORIZON: [found[name] for name in ("exponents", "shares") if name in found]},
        "Lines: logarithm of the ratio of mean regrets over that of the quantities; shaded: 99 % "
        f"interval (delta method). In ε: neighbouring values. In M: {FEW} and {MANY} agents. In "
        f"p: {PART:g} and 1. In log T: T = {common.write_count(FAR[0])} and "
        f"{common.write_count(FAR[1])}",
        "Horizontal lines: where the noise decides how long epochs are (small ε) and where the "
        "rewards do. A gap fixes how many epochs its arm lasts, so under noise regret "
        "grows as √(log T); the paper bounds that number by log T and prints (log T)^(3/2). For "
        "budgets it prints the factor p^(-3/2) before both terms",
        f"At one ε, messages leak Nε, and N differs: {_leaks()}",
        *seen.absent(*([f"exponent in {name}" for name in each] for each in (REGIMES, quantities))),
        f"Crossover: printed ε = Δ √(log T / M) = {printed:.2g}; derived, epoch by epoch, "
        f"{write_number(float(f'{lowest:.2g}'))} to {write_number(float(f'{highest:.2g}'))}; "
        "measured in ε, "
        f"{crossing}",
        told,
    )
    alt = f"{told}. In ε, {crossing}."
    return [pictures.Picture("maps_exponents", exponent_page(rows), text, alt, rows)]


def exponent_page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws the local exponents from the rows of the CSV."""
    quantities = [name for name in REGIMES if any(row["exponent in"] == name for row in rows)]
    printed, (lowest, highest) = crossovers()
    derived = {"color": "0.6", "lw": 1.6, "ls": "-"}
    as_printed = {"color": style.COLOURS[1], "lw": 0.9, "ls": (0, (4, 1.5))}
    numbers = [row["ε"] for row in rows if row["ε"] != "none"]
    beside = max(numbers) * 6

    def draw(page: pictures.Page) -> None:
        titles = [f"exponent in {name}" for name in quantities]
        axes = page.panels(["local exponent of regret"], titles, "privacy ε", height=1.3)
        for panel, name in zip(axes[0], quantities, strict=True):
            each = [row for row in rows if row["exponent in"] == name]
            places = [beside if row["ε"] == "none" else row["ε"] for row in each]
            mean, low, high = np.array([row["measured"] for row in each]).T
            inner = [place < beside for place in places]
            panel.axvspan(lowest, highest, color="0.88", linewidth=0)
            panel.axvline(printed, color=style.COLOURS[1], lw=0.9, ls=(0, (1, 1)))
            # What is printed lies over what is derived where both are the same.
            for values, look in zip(REGIMES[name], (derived, as_printed), strict=True):
                for value in dict.fromkeys(values):
                    panel.axhline(value, zorder=1, **look)
            panel.fill_between(
                np.array(places)[inner], low[inner], high[inner], color=style.COLOURS[0],
                alpha=0.25, linewidth=0,
            )  # fmt: skip
            panel.plot(np.array(places)[inner], mean[inner], color=style.COLOURS[0], lw=1.2)
            if not all(inner):
                panel.plot(beside, mean[-1], "D", color=style.COLOURS[0], ms=3)
            panel.set(xscale="log", xlim=(min(numbers) / 2, beside * 3))
            span = [value for pair in REGIMES[name] for value in pair]
            panel.set_ylim(min([*span, *mean]) - 0.15, max([*span, *mean]) + 0.15)
        ticks = [number for number in (1e-6, 1e-3, 1) if min(numbers) <= number <= max(numbers)]
        name_ticks(page, axes, ticks, none=beside)
        page.handles = [
            Line2D([], [], color=style.COLOURS[0], lw=1.2, label="measured"),
            Line2D([], [], color=style.COLOURS[0], ls="none", marker="D", ms=3, label="no noise"),
            Line2D([], [], label="regimes, derived", **derived),
            Line2D([], [], label="regimes, printed", **as_printed),
            Line2D([], [], color="0.88", lw=5, solid_capstyle="butt", label="crossover, derived"),
            Line2D(
                [], [], color=style.COLOURS[1], lw=0.9, ls=(0, (1, 1)), label="crossover, printed"
            ),
        ]  # fmt: skip

    return draw


def _leaks() -> str:
    """Says how many agents a round hears, and so how many ε a message leaks."""
    heard = {
        f"M = {agents}, p = {p:g}": common.leak_of(fmab.cdp_mab(1.0, participation=p), agents)
        for agents, p in ((FEW, 1), (AGENTS, PART), (AGENTS, 1), (MANY, 1))
    }
    return seen.grouped({name: f"{write_number(leak or 0.0)} ε" for name, leak in heard.items()})


def _told_exponents(rows: Sequence[Mapping[str, Any]], quantities: Sequence[str]) -> str:
    """Says each exponent at the smallest epsilon and at the largest."""
    told = []
    for name in quantities:
        each = [row for row in rows if row["exponent in"] == name and row["ε"] != "none"]
        means = [row["measured"][0] for row in each]
        first, last = means[0], means[-1]
        between = [
            f"{extreme:.2f} between them"
            for extreme, beyond in (
                (min(means), min(means) < min(first, last) - 0.05),
                (max(means), max(means) > max(first, last) + 0.05),
            )
            if beyond
        ]
        also = f" ({' and '.join(between)})" * bool(between)
        told.append(f"in {name} {first:.2f} and {last:.2f}{also}")
    return "At the smallest ε and the largest the exponent is, " + ", ".join(told)
