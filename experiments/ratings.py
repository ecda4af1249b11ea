"""What does privacy cost in ratings, at an equal leak?

The problem is the made-up table of docs/examples/ratings: users in ten groups by taste are the
agents, genres are the arms. Everybody is run at the same leak, the epsilon of what others are told,
and once without noise. The regret is told in rating points for each film that is shown.

Any other problem that `fmab_jax.ratings` has written takes its place:

python -m experiments.ratings ml.npz --seeds 200 --horizon 1e4 --figures mine
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen
from fmab_jax.analysis.words import write_count
from fmab_jax.errors import Refusal, refuse
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

TABLE = Path(__file__).parents[1] / "docs/examples/ratings/ratings.csv"
GROUPS, SMOOTHING = 10, 5
LEAKS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
# Above this horizon, fewer seeds of those that step through slots; above the next one, none.
LONG, LONGEST = 10**4, 10**5


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
    problem: fmab.Problem | None = None,
) -> dict[str, dict[float | None, xr.Dataset]]:
    """Runs everybody; returns results by contestant and leak, None for no noise."""
    problem = shipped().problem if problem is None else problem
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
                problem,
                horizon=horizon,
                seeds=number,
                times=2,
                store=None if store is None else store / f"{name}-{kept}",
                **(plain | {key: getattr(algorithm, key) for key in algorithm.settings()}),
            )
    return found


class _Told(NamedTuple):
    """What is said of the problem."""

    points: float  # rating points of one unit of reward
    uniform: float  # rating points that uniform play loses for each rating, exactly
    words: str  # the setting


def told_of(problem: fmab.Problem, words: str) -> _Told:
    """Returns how many points a unit of reward has, and what is said of the problem.

    Raises:
        ValueError: If it is no problem of ratings.
    """
    if problem.kind != "ratings":
        refuse("problem", problem.kind, "ratings", "make it with fmab_jax.ratings.from_table")
    levels = problem.rewards.levels
    means = np.sort(problem.means.mean(axis=0))
    points = levels[-1] - levels[0]
    return _Told(
        points,
        float(points * (means[-1] - means).mean()),
        f"M = {problem.agents} agents, K = {problem.arms} arms, {words}; ratings from "
        f"{levels[0]:g} to {levels[-1]:g}; the best arm is {points * (means[-1] - means[-2]):.2g} "
        "rating points above the second, on average over agents",
    )


def told_of_shipped() -> _Told:
    """Returns what is said of the shipped table."""
    own = f"{GROUPS} groups of 400 made-up users and 10 genres (docs/examples/ratings)"
    return told_of(shipped().problem, own)


def draw(
    results: Mapping[int, Parts],
    folder: Path,
    told: _Told | None = None,
    name: str = "ratings_leak",
) -> list[Path]:
    """Draws points lost at each leak, and how many of them are lost to the noise."""
    told = told or told_of_shipped()
    rows = _rows(results, told.points)
    caption, seen = words(rows, told)
    drawn = page(rows, told.uniform)
    return pictures.publish(pictures.Picture(name, drawn, caption, seen, rows, rows), folder)


def page(
    rows: Sequence[Mapping[str, Any]], uniform: float | None = None
) -> Callable[[pictures.Page], None]:
    """Returns what draws points lost, and how many of them to the noise, from rows of the CSV.

    Args:
        rows: All of them.
        uniform: Points that uniform play loses; those of the shipped table by default.
    """
    level = told_of_shipped().uniform if uniform is None else uniform
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


def words(rows: Sequence[Mapping[str, Any]], told: _Told) -> tuple[str, str]:
    """Returns the caption, and what is to be seen, of the rows of the CSV."""
    horizons = list(dict.fromkeys(row["T"] for row in rows))
    labels = [each.label for each in EVERYBODY.values()]
    most = max(row["seeds"] for row in rows)
    number = f"{write_count(most)} seeds"
    for fewer in sorted({row["seeds"] for row in rows} - {most}, reverse=True):
        where = dict.fromkeys(row["T"] for row in rows if row["seeds"] == fewer)
        who = dict.fromkeys(row["algorithm"] for row in rows if row["seeds"] == fewer)
        listed = " and ".join(map(write_count, where))
        number += f"; {write_count(fewer)} seeds of {' / '.join(who)}, at T = {listed}"
    caption = (
        f"{told.words}. T = {' and '.join(map(write_count, horizons))} slots. {number}. Points "
        "lost for "
        f"each rating: regret at T, times {told.points:g} points, over M T ratings; regret counts "
        "gaps of means over all agents. ε bounds what one changed rating does to all that the "
        "server is told. If n ratings of one agent change, the bound is n ε. For CDP-MAB, ε is "
        "that of a message, which is N times its parameter epsilon. For Dist-DP-SE, ε is that of a "
        "secure sum. For LDP-UCB, ε is that of each rating. Lower panels: the same algorithm "
        "without noise on the same seeds is subtracted. Uniform play is exact: whoever "
        "eliminates arms, and has dropped none before T, loses as much. Markers: means over the "
        "seeds. Bars and shaded areas: pointwise 95 % confidence intervals (Student t). Those of "
        "the differences are paired by seed."
        + "".join(f" {text}." for text in seen.absent(labels, (row["algorithm"] for row in rows)))
    )
    return caption, _seen(rows, told.uniform)


def _rows(results: Mapping[int, Parts], points: float) -> list[dict[str, Any]]:
    """Returns a row for each horizon, contestant and leak, which is a word where there is none."""
    rows = []
    for horizon, parts in results.items():
        for name, by_leak in parts.items():
            plain = _lost(by_leak[None], horizon, points)
            none = NO_NOISE if name in PRIVATE else ""
            for leak, data in by_leak.items():
                lost = _lost(data, horizon, points)
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


def _lost(data: xr.Dataset, horizon: int, points: float) -> np.ndarray:
    """Returns, by seed, the rating points that are lost for each rating."""
    regret = data.regret.isel(time=-1).values
    return np.asarray(regret * points / (horizon * int(data.attrs["agents"])), np.float64)


def _seen(rows: Sequence[Mapping[str, Any]], uniform: float) -> str:
    """Says who loses least at each leak, at the longest horizon, and from where on sharing pays."""
    horizon = max(row["T"] for row in rows)
    last = [row for row in rows if row["T"] == horizon]

    def lost(row: Mapping[str, Any]) -> float:
        return float(row[LOST][0])

    least = [min((row for row in last if row["epsilon"] == leak), key=lost) for leak in LEAKS]
    best = []
    for name, found in itertools.groupby(least, key=lambda row: row["algorithm"]):
        run = [f"{lost(row):.3f} at ε = {row['epsilon']:g}" for row in found]
        best.append(f"{name} ({', '.join(dict.fromkeys([run[0], run[-1]]))})")
    text = (
        f"At T = {write_count(horizon)}, from the smallest ε to the largest, the fewest rating "
        f"points for each rating are lost by {', then by '.join(best)}."
        f"{_unlike(last, least)}"
    )
    by_label = {row["algorithm"]: row for row in last}
    alone = by_label.get(REFERENCES["alone"].label)
    if alone is not None:
        text += f" {_paying(least, alone)}"
    known = [each.label for each in REFERENCES.values() if each.label in by_label]
    listed = "; ".join(f"{label}: {lost(by_label[label]):.3f}" for label in known)
    return f"{text} Uniform play loses {uniform:.3f}." + f" For comparison, {listed}." * bool(known)


def _unlike(rows: Sequence[Mapping[str, Any]], least: Sequence[Mapping[str, Any]]) -> str:
    """Says in what the best are unlike others: what others are told, seeds, and who is as good.

    Args:
        rows: All rows of one horizon.
        least: The best row at each leak.
    """
    private = [row for row in rows if row["epsilon"] not in ("", NO_NOISE)]
    told = {row["algorithm"]: row["others are told"] for row in private}
    seeds = {row["algorithm"]: write_count(row["seeds"]) for row in private}
    text = ""
    if len(set(told.values())) > 1:
        listed = " / ".join(f"{name}: {words}" for name, words in told.items())
        text += f" At one ε they differ in what others are told ({listed})."
    if len(set(seeds.values())) > 1:
        listed = " / ".join(f"{name}: {number}" for name, number in seeds.items())
        text += f" Seeds: {listed}."
    for best in least:
        _, _, upper = best[LOST]
        close = [
            row["algorithm"]
            for row in private
            if row["epsilon"] == best["epsilon"]
            and row["algorithm"] != best["algorithm"]
            and row[LOST][1] <= upper
        ]
        if close:
            text += (
                f" At ε = {best['epsilon']:g} the interval of {' / '.join(close)} meets that of "
                f"{best['algorithm']}."
            )
    return text


def _paying(least: Sequence[Mapping[str, Any]], alone: Mapping[str, Any]) -> str:
    """Says from which leak on the best private algorithm loses less than agents alone.

    Only intervals that are apart count: the two may have different numbers of seeds.

    Args:
        least: The best row at each leak, from the smallest leak to the largest.
        alone: The row of agents who tell nobody anything.
    """
    mean, lower, upper = alone[LOST]
    fails = [row for row in least if row[LOST][2] >= lower]
    if not fails:
        return f"Sharing pays at every ε: agents alone lose {mean:.3f}."
    own, low, _ = fails[-1][LOST]
    pays = least[least.index(fails[-1]) + 1 :]
    last = least[-1]["epsilon"]
    where = f"pays from ε = {pays[0]['epsilon']:g} on" if pays else f"does not pay at ε = {last:g}"
    more = "loses more" if low > upper else "does not measurably lose less"
    return (
        f"Sharing {where}: agents alone lose {mean:.3f}. At ε = {fails[-1]['epsilon']:g} even the "
        f"best private algorithm {more} ({own:.3f})."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the experiment on a problem that `fmab_jax.ratings` has written."""
    parser = argparse.ArgumentParser(
        "python -m experiments.ratings",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("problem", help="an .npz file of ratings")
    parser.add_argument("--seeds", type=float, default=common.SEEDS)
    parser.add_argument("--horizon", type=float, nargs="+", default=[10**4])
    parser.add_argument("--runs", type=Path, help="folder of the simulations; none by default")
    parser.add_argument("--figures", type=Path, default=Path("figures-ratings"))
    options = parser.parse_args(arguments)
    try:
        problem = fmab.Problem.from_file(options.problem)
        told = told_of(problem, f"of {Path(options.problem).name}")
        results = {}
        for horizon in map(int, options.horizon):
            store = options.runs and options.runs / f"T{common.power(horizon)}"
            results[horizon] = sweep(horizon, int(options.seeds), store, problem=problem)
        print(*draw(results, options.figures, told), sep="\n")
    except Refusal as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    fmab.use_compilation_cache()
    sys.exit(main())
