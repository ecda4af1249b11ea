"""Consensus (not in the paper): CES beside the eliminations and index policies of a graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, noisy_consensus, pictures, seen
from fmab_jax.algorithms.ces import measure_drift
from fmab_jax.analysis import consensus
from fmab_jax.analysis.words import write_count
from fmab_jax.parts.networks import weigh_edges
from fmab_jax.plots import style

AGENTS, ARMS = 20, 20
HORIZONS = (10**4, 10**5)
GRAPHS = {"complete": "complete", "4-regular": "regular-4", "star": "star", "ring": "ring"}
SPREADS = {"agents alike": 0.0, "agents differ": 1.0}
CES = "CES"
ALGORITHMS: Mapping[str, Callable[[str], Any]] = {
    CES: lambda graph: fmab.ces(graph),
    "KL-SE, no noise": lambda graph: fmab.kl_se_graph(None, graph=graph),
    "KL-SE, ε = 1": lambda graph: fmab.kl_se_graph(1.0, graph=graph),
    "DDP-MAB, no noise": lambda graph: fmab.ddp_mab(None, graph=graph),
    "DDP-MAB, Nε = 1": lambda graph: fmab.ddp_mab(epsilon_message=1.0, graph=graph),
    "Gossip_UCB, scaled": lambda graph: fmab.gossip_ucb(graph, radius="scaled"),
    "Dec_UCB": lambda graph: fmab.dec_ucb(graph),
}
# Graphs, by agents, on which the source's term for estimates that differ is checked.
DRIFTS = {
    "complete": (20, 100),
    "regular-4": (20, 100, 200, 500),
    "star": (20, 100),
    "ring": (20, 100),
}
# Seeds of those that take long: CES, and policies that choose an arm in every slot.
FEWER = {CES: 400, "Gossip_UCB, scaled": 40, "Dec_UCB": 40}
# Who is stated for agents alike only.
ALIKE = ("Dec_UCB",)
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0)
PRIVATE_SEEDS = 100
# CES with noise: lengths of epochs, and whether U has a term for estimates that differ.
VARIANTS = {
    schedule + ", as if estimates agreed" * (not counts): (schedule, counts)
    for schedule, counts in product(noisy_consensus.SCHEDULES, (True, False))
}
QUICK = {"seeds": 4}
Rows = Sequence[Mapping[str, Any]]


def horizons(options: Sequence[int]) -> list[int]:
    """Returns the horizons of this experiment among those that are asked for."""
    return [T for T in HORIZONS if T in options] or [min(options)]


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Runs every algorithm on every graph, and CES with noise beside KL-SE at every leak."""
    most = (quick or {}).get("seeds", seeds)
    results: dict[str, Any] = {}
    common_options: dict[str, Any] = {
        "agents": AGENTS,
        "arms": ARMS,
        "horizon": horizon,
        "times": [horizon],
    }
    for label, make in ALGORITHMS.items():
        results[label] = fmab.sweep(
            {name: make(graph) for name, graph in GRAPHS.items()},
            spread=list(SPREADS.values())[: 1 if label in ALIKE else 2],
            seeds=min(most, FEWER.get(label, most)),
            store=store and store.with_name(f"{store.name}-{make('ring').name}-{len(results)}"),
            **common_options,
        ).load()
    count = min(most, PRIVATE_SEEDS)
    results["private"] = fmab.sweep(
        {
            f"{name}, {leak:g}": fmab.kl_se_graph(leak, graph=graph)
            for name, graph in GRAPHS.items()
            for leak in LEAKS
        },
        spread=list(SPREADS.values()),
        seeds=count,
        store=store and store.with_name(f"{store.name}-private"),
        **common_options,
    ).load()
    results["noisy"] = _simulate_noisy(horizon, count)
    return results


def _simulate_noisy(horizon: int, seeds: int) -> dict[tuple[str, str, float, str], np.ndarray]:
    """Returns [seed] regret of CES with noise, by graph, spread, leak and schedule."""
    found = {}
    for spread, value in SPREADS.items():
        problem = fmab.Problem(agents=AGENTS, arms=ARMS, spread=value)
        means = np.stack([_list_means(problem, seed) for seed in range(seeds)])
        for name, graph in GRAPHS.items():
            mixing = weigh_edges(graph, AGENTS, "metropolis")
            drift = measure_drift(graph, AGENTS, "metropolis")
            for leak, variant in product(LEAKS, VARIANTS):
                schedule, counts_drift = VARIANTS[variant]
                pulls_of = noisy_consensus.SCHEDULES[schedule]
                rng = np.random.default_rng([horizon, seeds])
                found[name, spread, leak, variant] = noisy_consensus.simulate(
                    means, mixing, drift * counts_drift, horizon, leak, pulls_of, rng
                )
    return found


def _list_means(problem: Any, seed: int) -> np.ndarray:
    """Returns the means [agent, arm] of a seed."""
    means = np.asarray(problem.fixed(seed).means)
    return np.broadcast_to(means, (AGENTS, ARMS))


def _bound(graph: str, horizon: int, seeds: int) -> float:
    """Returns the mean over seeds of the source's bound on the regret of CES."""
    problem, algorithm = fmab.Problem(agents=AGENTS, arms=ARMS), fmab.ces(graph)
    bounds = []
    for seed in range(seeds):
        means = np.asarray(problem.fixed(seed).means).mean(axis=0)
        gaps = means.max() - means
        bounds.append(consensus.closed_form(gaps, algorithm, AGENTS, horizon).regret)
    return float(np.mean(bounds))


def draw(results: Mapping[int, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draws regret by graph, and writes the tables."""
    rows = [
        row
        for horizon, found in results.items()
        for label in ALGORITHMS
        for row in _list_rows(horizon, label, found[label])
    ]
    private = [row for T, found in results.items() for row in _compare_private(T, found)]
    return publish(rows, private, folder)


def publish(rows: Rows, private: Rows, folder: Path) -> list[Path]:
    """Writes the figure, a panel for each horizon and for agents alike or not, and the tables."""
    seeds = {row["algorithm"]: f"{row['seeds']:,}" for row in rows}
    caption = ". ".join(
        [
            f"M = {AGENTS} agents, K = {ARMS} arms, means U[0, 1] drawn for each seed, T = "
            f"{common.listed(sorted({row['T'] for row in rows}))} slots. Seeds: "
            f"{seen.grouped(seeds)}",
            f"Differ: {common.DIFFER}; regret counts gaps of global means",
            "Markers: means over the seeds, with pointwise 95 % confidence intervals (Student t)",
            "Dashes: the source's bound on the regret of CES, at most that of T slots of the worst "
            "arm (on the star at T = 10⁴ nearly always), the mean over the same instances",
            "Links: those that authors count; of Gossip_UCB one a slot, without its counts, which "
            "all edges carry",
            f"Stated for agents alike only: {', '.join(ALIKE)}",
            common.leaks({label: make("ring") for label, make in ALGORITHMS.items()}, AGENTS),
        ]
    )
    picture = pictures.Picture("consensus", page(rows), f"{caption}.", describe(rows), rows, rows)
    paths = pictures.publish(picture, folder)
    paths += common.save_table(private, folder, "consensus_private", judge_private(private))
    drifts = [measure_disagreement(g, agents) for g, sizes in DRIFTS.items() for agents in sizes]
    return paths + common.save_table(drifts, folder, "consensus_drift", _DRIFT_NOTES)


_DRIFT_NOTES = (
    "An estimate of n rewards of each agent in [0, 1], with Metropolis weights, is at most S_n / n "
    "from the mean over agents: S_n is the largest row sum of |W^m - 1/M| / 2 over m < n. "
    "Largest disagreement: S_n for large n. CES judges by n = tau - 1 rewards, and its U has Q / "
    "((1 - l) (tau + 1)) for that: too small in the rounds tau that are named."
)


def measure_disagreement(graph: str, agents: int) -> dict[str, Any]:
    """Returns what U has for estimates that differ, and in which rounds that is too small."""
    mixing = weigh_edges(graph, agents, "metropolis")
    power, total, sums = np.eye(agents), np.zeros(agents), []
    while (distance := np.abs(power - 1.0 / agents).sum(axis=1) / 2.0).max() > 1e-7:
        total += distance
        sums.append(float(total.max()))
        power = power @ mixing
    assumed, most = measure_drift(graph, agents, "metropolis"), sums[-1]
    n = np.arange(1, len(sums) + 1)
    rounds = 1 + n[np.array(sums) / n > assumed / (n + 2)]
    # Later on the sum is the last one: S / n > Q / (1 - l) / (n + 2).
    last = math.inf if most >= assumed else 1 + math.ceil(2.0 * most / (assumed - most)) - 1
    last = max(last, rounds.max(initial=0))
    first = rounds.min(initial=len(sums) + 2)
    words = "none" if first > last else f"{first} to {last:.0f}"
    return {
        "graph": graph,
        "agents": agents,
        "Q / (1 - l)": round(assumed, 3),
        "largest disagreement": round(float(total.max()), 3),
        "too small in rounds": f"from {first} on" if math.isinf(last) else words,
    }


def _list_rows(horizon: int, label: str, data: xr.Dataset) -> list[dict[str, Any]]:
    """Returns a row for each spread and graph of an algorithm."""
    rows = []
    for spread, value in SPREADS.items():
        for graph in GRAPHS if value in data.spread.values.tolist() else ():
            cell = data.sel(spread=value, algorithm=graph).isel(time=-1)
            priced = [name for name in cell.meter.values.tolist() if name not in ("counts", "used")]
            links = cell.links.sel(meter=priced).sum("meter")
            bound: int | str = ""
            if label == CES:
                bound = round(_bound(GRAPHS[graph], horizon, cell.sizes["seed"]))
            rows.append(
                {
                    "T": horizon,
                    "agents": spread,
                    "graph": graph,
                    "algorithm": label,
                    "seeds": cell.sizes["seed"],
                    "regret": common.interval(cell.regret.values),
                    "bound of CES": bound,
                    "links": round(float(links.mean())),
                    "numbers sent": round(float(cell.numbers_sent.mean())),
                    "active arms at T": round(float(cell.active_arms.mean()), 2),
                }
            )
    return rows


def describe(rows: Rows) -> str:
    """Says what is to be seen, from the rows."""
    texts = []
    last = max(row["T"] for row in rows)
    found = {(r["agents"], r["graph"], r["algorithm"]): r for r in rows if r["T"] == last}
    differ = "agents differ"
    for graph in GRAPHS:
        ces, best = (found[differ, graph, label]["regret"][0] for label in (CES, "KL-SE, no noise"))
        texts.append(f"{ces / best:.2g} ({graph})")
    bounded = [row for row in rows if row["bound of CES"]]
    over = [row["regret"][0] / float(row["bound of CES"]) for row in bounded]
    return (
        f"Regret at the horizon of seven algorithms by graph. Where agents differ and T is "
        f"largest, CES has {seen.listed(texts)} times the regret of KL-SE without noise. "
        f"In all panels its regret is {100 * min(over):.0f} to {100 * max(over):.0f} % of the "
        "bound that is drawn."
    )


def _compare_private(horizon: int, found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns CES with noise beside KL-SE, a row for each graph, spread and leak."""
    rows = []
    for spread, value in SPREADS.items():
        for graph in GRAPHS:
            for leak in LEAKS:
                cell = found["private"].regret.sel(spread=value, algorithm=f"{graph}, {leak:g}")
                regret = {name: found["noisy"][graph, spread, leak, name] for name in VARIANTS}
                best = min(regret, key=lambda name: float(regret[name].mean()))
                rows.append(
                    {
                        "T": horizon,
                        "agents": spread,
                        "graph": graph,
                        "ε of a message": leak,
                        "KL-SE": common.interval(cell.isel(time=-1).values),
                        "CES with noise": common.interval(regret[best]),
                        "which CES": best,
                    }
                )
    return rows


def judge_private(rows: Rows) -> str:
    """Says what the table shows."""
    fewer = sum(row["KL-SE"][0] < row["CES with noise"][0] for row in rows)
    surely = sum(row["KL-SE"][2] < row["CES with noise"][1] for row in rows)
    ratios = [row["CES with noise"][0] / row["KL-SE"][0] for row in rows]
    return (
        f"CES whose estimates have noise and are exchanged once an epoch, beside KL-SE over the "
        f"same graph (GIS) at the same ε of a message. M = {AGENTS} agents, K = {ARMS} arms, "
        f"{PRIVATE_SEEDS} seeds; means with 95 % intervals (Student t). Of three lengths of "
        f"epochs, each with and without a term for estimates that differ, the one with the least "
        f"regret is shown, chosen afterwards. KL-SE has less regret in {fewer} of {len(rows)} "
        f"rows, in {surely} of them so that the intervals do not overlap. CES has "
        f"{min(ratios):.2g} to {max(ratios):.2g} times as much. No theorem covers CES with noise. "
        "It is no part of the package: experiments/noisy_consensus.py."
    )


def page(rows: Rows) -> Callable[[pictures.Page], None]:
    """Returns the function that draws the rows of the CSV."""
    times = sorted({int(row["T"]) for row in rows})
    highest = max(max(*row["regret"], row["bound of CES"] or 0) for row in rows)
    least = min(min(row["regret"]) for row in rows)

    def draw(page: pictures.Page) -> None:
        axes = page.places(2 * len(times), 2, height=2.1)
        lines: dict[str, Any] = {}
        panels = [(T, spread) for T in times for spread in SPREADS]
        for panel, (horizon, spread) in zip(axes, panels, strict=True):
            mine = [r for r in rows if int(r["T"]) == horizon and r["agents"] == spread]
            for number, label in enumerate(ALGORITHMS):
                points = [row for row in mine if row["algorithm"] == label]
                if not points:
                    continue
                mean, low, high = np.array([row["regret"] for row in points]).T
                places = np.arange(len(points)) + 0.1 * (number - 3)
                look = style.get_line_style(number) | {"linestyle": "none"}
                lines[label] = panel.errorbar(
                    places,
                    mean,
                    [mean - np.maximum(low, 1e-9), high - mean],
                    label=label,
                    marker=style.MARKERS[number],
                    ms=3.5,
                    elinewidth=0.8,
                    capsize=1.2,
                    **look,
                )
                if label == CES:
                    bounds = [float(row["bound of CES"]) for row in points]
                    panel.hlines(
                        bounds, places - 0.12, places + 0.6, color=look["color"], ls="--", lw=0.8
                    )
            panel.set(yscale="log", ylim=(0.6 * least, 1.5 * highest))
            panel.set_xticks(range(len(GRAPHS)), list(GRAPHS))
            panel.set_title(f"T = {write_count(horizon)}, {spread}", fontsize=style.FONT, pad=3)
            panel.set_xlabel("graph", fontsize=style.FONT, labelpad=2)
            panel.set_ylabel("regret at T, sum over agents", fontsize=style.FONT)
        page.handles = [lines[label] for label in ALGORITHMS if label in lines]

    return draw
