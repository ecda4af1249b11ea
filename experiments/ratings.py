"""What does privacy cost in ratings, at an equal leak?

The problem is the made-up table of docs/examples/ratings: users in ten groups by taste are the
agents, genres are the arms. Everybody is run at the same leak, the epsilon of what others are told,
and once without noise. The regret is told in rating points for each film that is shown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures
from fmab_jax.analysis.words import write_count
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

TABLE = Path(__file__).parents[1] / "docs/examples/ratings/ratings.csv"
GROUPS, SMOOTHING = 10, 5
# Above this horizon, fewer seeds of those that step through slots; above the next one, none.
LONG, LONGEST = 10**4, 10**5
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class Contestant(NamedTuple):
    """Somebody who is run at every leak, or whom others are compared with."""

    label: str  # in figures and tables
    maker: Callable[[float | None], Any]  # returns the algorithm at a leak; None, without noise
    told: str  # what others are told

    @property
    def steps(self) -> bool:
        """Whether it steps through slots."""
        return isinstance(self.maker(None), fmab.IndexPolicy)


def _cdp(leak: float | None) -> Any:
    return fmab.cdp_mab(None) if leak is None else fmab.cdp_mab(epsilon_message=leak)


def _sum(leak: float | None) -> Any:
    return fmab.kl_se(leak, secure=True)


def _ldp(leak: float | None) -> Any:
    return fmab.ldp_ucb(leak, bits=True, pooled=True)


PRIVATE = {
    "cdp": Contestant("CDP-MAB", _cdp, "a server: noisy sums"),
    "dist_dp_se": Contestant("Dist-DP-SE", fmab.dist_dp_se, "a server: a secure sum"),
    "kl_se": Contestant("KL-SE", fmab.kl_se, "a server: noisy sums"),
    "kl_se_sum": Contestant("KL-SE, secure sum", _sum, "a server: a secure sum"),
    "ldp_ucb": Contestant("LDP-UCB-B, pooled", _ldp, "a server: every rating, noisy"),
}
REFERENCES = {
    "pooled": Contestant(
        "UCB1, pooled, no privacy", lambda _: fmab.ucb1(pooled=True), "a server: every rating"
    ),
    "alone": Contestant("UCB1, agents alone", lambda _: fmab.ucb1(), "nobody anything"),
}
EVERYBODY = PRIVATE | REFERENCES
QUICK = ("ldp_ucb", "pooled")
"""Who takes part in a quick run: those that compile fast."""

LOST, MORE = "points lost per rating", "more than without noise, same seeds"
NO_NOISE = "no noise"
Parts = Mapping[str, Mapping[float | None, xr.Dataset]]


@functools.cache
def shipped() -> fmab.ratings.ObservedRatings:
    """Returns the problem of the shipped table."""
    films = TABLE.with_name("movies.csv")
    options = {"items": films, "groups": GROUPS, "smoothing": SMOOTHING}
    return fmab.ratings.from_table(TABLE, agent="userId", arm="genres", **options)


def horizons(given: Sequence[int]) -> list[int]:
    """Returns the horizons that those who step through slots reach; the shortest, if none is."""
    return [horizon for horizon in given if horizon <= LONGEST] or [min(given)]


def sweep(
    horizon: int,
    seeds: int,
    store: Path | None = None,
    names: Sequence[str] = tuple(EVERYBODY),
) -> dict[str, dict[float | None, xr.Dataset]]:
    """Runs everybody; returns results by contestant and leak, None for no noise."""
    found: dict[str, dict[float | None, xr.Dataset]] = {}
    for name in names:
        each = EVERYBODY[name]
        number = max(2, seeds // 10) if each.steps and horizon > LONG else seeds
        found[name] = {}
        for leak in (*LEAKS, None) if name in PRIVATE else (None,):
            algorithm = each.maker(leak)
            kept = "none" if leak is None else f"{leak:g}"
            plain = {"epsilon": None} if leak is None and name in PRIVATE else {}
            found[name][leak] = fmab.sweep(
                type(algorithm),
                shipped().problem,
                horizon=horizon,
                seeds=number,
                times=2,
                store=None if store is None else store / f"{name}-{kept}",
                **(plain | {key: getattr(algorithm, key) for key in algorithm.settings()}),
            )
    return found


def points_lost_by_uniform() -> float:
    """Returns the rating points that uniform play loses for each rating, exactly."""
    means = shipped().problem.means.mean(axis=0)
    return float(shipped().points * (means.max() - means).mean())


def draw(results: Mapping[int, Parts], folder: Path) -> list[Path]:
    """Draws points lost at each leak, and how many of them are lost to the noise."""
    rows = _rows(results)
    alt = (
        "Rating points lost for each rating by the ε of what others are told; below, those that "
        "are lost to noise."
    )
    picture = pictures.Picture("ratings_leak", page(rows), write_caption(rows), alt, rows, rows)
    return pictures.publish(picture, folder)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns what draws points lost, and how many of them to noise, from rows of the CSV."""
    level = points_lost_by_uniform()
    horizons = list(dict.fromkeys(row["T"] for row in rows))
    private = [each.label for each in PRIVATE.values()]
    private = [label for label in private if any(row["algorithm"] == label for row in rows)]
    # Of what is drawn side by side, one scale.
    most = max(level, *(row[LOST][2] for row in rows))

    def draw(page: pictures.Page) -> None:
        labels = ["rating points lost for each rating", "of which to noise, paired"]
        axes = page.panels(labels, common.titles(horizons), "ε of what others are told", 1.7)
        for column, horizon in zip(axes.T, horizons, strict=True):
            here = [row for row in rows if row["T"] == horizon]
            page.handles = []
            for index, label in enumerate(private):
                own = [row for row in here if row["algorithm"] == label]
                own = [row for row in own if row["epsilon"] != NO_NOISE]
                look = style.get_line_style(index) | {"marker": style.MARKERS[index], "ms": 3}
                for panel, head in zip(column, (LOST, MORE), strict=True):
                    mean, lower, upper = np.array([row[head] for row in own]).T
                    panel.vlines(LEAKS, lower, upper, color=look["color"], lw=0.8)
                    lines = panel.plot(LEAKS, mean, label=label, **look)
                page.handles = [*page.handles, *lines]
            for index, each in enumerate(REFERENCES.values(), len(private)):
                for row in here:
                    if row["algorithm"] == each.label:
                        mean, lower, upper = row[LOST]
                        look = style.get_line_style(index)
                        column[0].axhspan(lower, upper, color=look["color"], alpha=0.2, lw=0)
                        line = column[0].axhline(mean, label=each.label, **look)
                        page.handles = [*page.handles, line]
            look = {"color": "0.45", "lw": 0.8, "label": "uniform play"}
            page.handles = [*page.handles, column[0].axhline(level, zorder=1, **look)]
            column[0].set_ylim(0, 1.05 * most)
            pictures.line_up(column[1])
            for panel in column:
                panel.set_xscale("log")
                panel.margins(x=0.04)
                panel.tick_params(labelsize=FONT)

    return draw


def write_caption(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the caption of the rows of the CSV."""
    horizons = list(dict.fromkeys(row["T"] for row in rows))
    problem, points = shipped().problem, shipped().points
    levels, means = problem.rewards.levels, np.sort(problem.means.mean(axis=0))
    most = max(row["seeds"] for row in rows)
    seeds = f"{write_count(most)} seeds"
    for fewer in sorted({row["seeds"] for row in rows} - {most}, reverse=True):
        where = dict.fromkeys(row["T"] for row in rows if row["seeds"] == fewer)
        labels = dict.fromkeys(row["algorithm"] for row in rows if row["seeds"] == fewer)
        listed = " and ".join(map(write_count, where))
        seeds += f"; {write_count(fewer)} seeds of {' / '.join(labels)}, at T = {listed}"
    return (
        f"M = {problem.agents} agents, K = {problem.arms} arms, {GROUPS} groups of 400 made-up "
        f"users and 10 genres (docs/examples/ratings); ratings from {levels[0]:g} to "
        f"{levels[-1]:g}; the best arm is {points * (means[-1] - means[-2]):.2g} rating points "
        "above the second, on average over agents. T = "
        f"{' and '.join(map(write_count, horizons))} slots. {seeds}. Points lost for each rating: "
        f"regret at T, times {points:g} points, over M T ratings; regret counts gaps of means over "
        "all agents. ε bounds what one changed rating does to all that the server is told. If n "
        "ratings of one agent change, the bound is n ε. For CDP-MAB, ε is that of a message, "
        "which is N times its parameter epsilon. For Dist-DP-SE, ε is that of a secure sum. For "
        "LDP-UCB, ε is that of each rating. Lower panels: the same algorithm without noise on the "
        "same seeds is subtracted. Uniform play is exact: whoever eliminates arms, and has dropped "
        "none before T, loses as much. Markers: means over the seeds. Bars and shaded areas: "
        "pointwise 95 % confidence intervals (Student t). Those of the differences are paired by "
        "seed."
    )


def _rows(results: Mapping[int, Parts]) -> list[dict[str, Any]]:
    """Returns a row for each horizon, contestant and leak, which is a word where there is none."""
    rows = []
    for horizon, parts in results.items():
        for name, by_leak in parts.items():
            plain = _lost(by_leak[None], horizon)
            none = NO_NOISE if name in PRIVATE else ""
            for leak, data in by_leak.items():
                lost = _lost(data, horizon)
                rows.append(
                    {
                        "T": horizon,
                        "algorithm": EVERYBODY[name].label,
                        "others are told": EVERYBODY[name].told,
                        "epsilon": none if leak is None else leak,
                        "seeds": data.sizes["seed"],
                        LOST: common.interval(lost),
                        MORE: "" if leak is None else common.interval(lost - plain),
                        "agents that play a worse arm at T": common.interval(data.agents_worse),
                    }
                )
    return rows


def _lost(data: xr.Dataset, horizon: int) -> np.ndarray:
    """Returns, by seed, the rating points that are lost for each rating."""
    regret = data.regret.isel(time=-1).values
    return np.asarray(regret * shipped().points / (horizon * int(data.attrs["agents"])), np.float64)
