"""Conditions (not in the paper): regret under drift, absence and corruption, by their strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures
from fmab_jax.analysis.words import write_count
from fmab_jax.plots import style

AGENTS, ARMS, HORIZON, SEEDS = 10, 10, 10**4, 200
ALGORITHMS = {
    "pooled Thompson sampling": fmab.thompson(pooled=True),
    "pooled UCB1": fmab.ucb1(pooled=True),
    "GosInE": fmab.gosine("ring"),
    "CDP-MAB": fmab.cdp_mab(epsilon_message=1.0),
    "KL-SE": fmab.kl_se(1.0),
}
MEDIAN = "CDP-MAB with median"
PLANNED = "CDP-MAB asking fewer agents"
LABELS = (*ALGORITHMS, MEDIAN, PLANNED)
ABSENCE = (0.0, 0.1, 0.3, 0.5, 0.7)
ROBUST = {**ALGORITHMS, MEDIAN: fmab.cdp_mab(epsilon_message=1.0, trim=0.5)}
# Title, label of the axis, option, text of the option, strengths, algorithms.
CONDITIONS: Mapping[str, tuple[str, str, str, Sequence[float], Mapping[str, Any]]] = {
    "drift": ("changes of all means", "world", "drifting", (0, 1, 3), ALGORITHMS),
    "absence": (
        *("chance that an agent misses a round", "presence", "absent"),
        *(ABSENCE, ALGORITHMS),
    ),
    "corruption": (
        *("chance that an agent is corrupted", "presence", "corrupted"),
        *((0.0, 0.05, 0.1, 0.2, 0.3), ROBUST),
    ),
}
ALT = (
    "Regret at the horizon of five algorithms against the strength of three conditions, on a "
    "logarithmic axis. Drift: CDP-MAB and KL-SE lose most and end close together; pooled UCB1 "
    "loses least. Absence: at 0.7 pooled policies, CDP-MAB and KL-SE have about three times their "
    "regret, GosInE about five times; CDP-MAB that asks as few agents has about twice. "
    "Corruption: all grow at once and their intervals with them; with the median, CDP-MAB stays "
    "level up to 0.05 and has about half of its regret at 0.2."
)
QUICK = {"seeds": 10}
horizons = common.one_horizon(HORIZON)


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> dict[str, xr.DataArray]:
    """Runs the algorithms at every strength of each condition, with at most `SEEDS` seeds."""
    count = min(seeds, SEEDS, (quick or {}).get("seeds", SEEDS))
    results = {}
    for name, (_, option, text, strengths, algorithms) in CONDITIONS.items():
        options: dict[str, Any] = {
            option: {f"{x:g}": f"{text}:{x:g}" if x else None for x in strengths}
        }
        results[name] = fmab.sweep(
            dict(algorithms),
            agents=AGENTS,
            arms=ARMS,
            horizon=horizon,
            seeds=count,
            times=[horizon],
            store=store and store.with_name(f"{store.name}-{name}"),
            **options,
        ).regret.load()
    results[PLANNED] = fmab.sweep(
        fmab.cdp_mab,
        epsilon_message=1.0,
        participation=[round(1.0 - x, 2) for x in ABSENCE],
        agents=AGENTS,
        arms=ARMS,
        horizon=horizon,
        seeds=count,
        times=[horizon],
        store=store and store.with_name(f"{store.name}-planned"),
    ).regret.load()
    return results


def draw(results: Mapping[int, Mapping[str, xr.DataArray]], folder: Path) -> list[Path]:
    """Draws regret at the horizon against the strength, a panel for each condition."""
    ((horizon, data),) = results.items()
    rows: list[dict[str, Any]] = []

    def add(name: str, label: str, strength: float, regret: xr.DataArray) -> None:
        mean, low, high = common.interval(regret.values)
        row = {"T": horizon, "condition": name, "algorithm": label, "strength": strength}
        rows.append(row | {"regret": mean, "lower": low, "upper": high})

    for name, (_, option, _, strengths, algorithms) in CONDITIONS.items():
        for place, label in enumerate(algorithms):
            for index, strength in enumerate(strengths):
                cell = {"algorithm": place, option: index, "time": -1}
                add(name, label, strength, data[name].isel(cell))
    for index, strength in enumerate(ABSENCE):
        add("absence", PLANNED, strength, data[PLANNED].isel(participation=index, time=-1))
    seeds = data["drift"].sizes["seed"]
    sentences = [
        f"M = {AGENTS} agents, K = {ARMS} arms, T = {write_count(horizon)} slots, {seeds} seeds",
        "Markers: means over the seeds, with 95 % intervals (Student t), side by side",
        "Drift: after each change every arm has a new mean from U[0, 1]; regret is counted against "
        "the best arm of each slot",
        "Absence: an agent misses a round (pooled policies and GosInE: a slot) and sends "
        "nothing, but pulls arms",
        "Corruption: an agent takes each reward x for 1 - x, for the whole run; its regret counts",
        f"{MEDIAN}: the server takes the median of the messages in place of their mean",
        f"{PLANNED}: nobody is absent, but the server asks only the share 1 - x of the agents, and "
        "plans epochs for that",
        common.leaks(ROBUST, AGENTS),
    ]
    caption = ". ".join(sentences) + "."
    return pictures.publish(pictures.Picture("conditions", page(rows), caption, ALT, rows), folder)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns the function that draws the rows of the CSV."""
    most = max(float(row["upper"]) for row in rows)
    least = min(float(row["regret"]) for row in rows)

    def draw(page: pictures.Page) -> None:
        axes = page.places(len(CONDITIONS), len(CONDITIONS), height=2.2)
        lines: dict[str, Any] = {}
        for panel, (name, (text, _, _, strengths, _)) in zip(axes, CONDITIONS.items(), strict=True):
            labels = {row["algorithm"] for row in rows if row["condition"] == name}
            for number, label in enumerate(LABELS):
                if label not in labels:
                    continue
                points = [r for r in rows if (r["condition"], r["algorithm"]) == (name, label)]
                mean, low, high = (
                    np.array([float(point[head]) for point in points])
                    for head in ("regret", "lower", "upper")
                )
                aside = 0.012 * strengths[-1] * (number - 3)
                lines[label] = panel.errorbar(
                    [float(point["strength"]) + aside for point in points],
                    mean,
                    [mean - np.maximum(low, 1e-9), high - mean],
                    label=label,
                    marker=style.MARKERS[number],
                    ms=3,
                    elinewidth=0.8,
                    capsize=1.2,
                    **style.get_line_style(number),
                )
            panel.set(yscale="log", ylim=(0.6 * least, 1.3 * most), xlabel=text)
            panel.set_xticks(strengths, [f"{x:g}" for x in strengths])
            panel.set_title(name, fontsize=style.FONT, pad=3)
            panel.margins(x=0.06)
        page.handles = [lines[label] for label in LABELS if label in lines]
        axes[0].set_ylabel("regret at T, sum over agents")

    return draw
