"""Conditions (not in the paper): regret under drift, absence and corruption, by their strength."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen
from fmab_jax.analysis.words import write_count
from fmab_jax.plots import style

AGENTS, ARMS, HORIZON, SEEDS = 10, 10, 10**4, 4000
# Of an algorithm that takes a hundred times as long.
SLOW, FEW_SEEDS = "GosInE", 200
ALGORITHMS = {
    "pooled Thompson sampling": fmab.thompson(pooled=True),
    "pooled UCB1": fmab.ucb1(pooled=True),
    "GosInE": fmab.gosine("ring"),
    "CDP-MAB": fmab.cdp_mab(epsilon_message=1.0),
    "KL-SE": fmab.kl_se(1.0),
}
MEDIAN = "CDP-MAB with median"
PLANNED = "CDP-MAB asking fewer agents"
# How much less regret it has than among absent agents, over the same seeds.
LESS = "absent minus asking fewer"
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
    "loses least. Absence: at 0.7 pooled policies, CDP-MAB and KL-SE have two and a half to three "
    "times their regret, GosInE about five times; CDP-MAB that asks as few agents has about twice. "
    "Corruption: all grow at once and their intervals with them; with the median, CDP-MAB hardly "
    "moves up to 0.1 and has about half of its regret at 0.2."
)
QUICK = {"seeds": 10}
horizons = common.one_horizon(HORIZON)


def sweep(
    horizon: int, seeds: int, store: Path | None = None, quick: Mapping[str, int] | None = None
) -> dict[str, xr.DataArray]:
    """Runs the algorithms at every strength of each condition, with `SEEDS` seeds each.

    ``seeds`` below that of other experiments, as in a rough run, are seeds here as well.
    """
    most = (quick or {}).get("seeds", SEEDS if seeds >= common.SEEDS else seeds)

    def run(key: str, algorithms: Any, count: int, **options: Any) -> xr.DataArray:
        return fmab.sweep(
            algorithms,
            agents=AGENTS,
            arms=ARMS,
            horizon=horizon,
            seeds=count,
            times=[horizon],
            store=store and store.with_name(f"{store.name}-{key}"),
            **options,
        ).regret.load()

    results = {}
    for name, (_, option, text, strengths, algorithms) in CONDITIONS.items():
        options: dict[str, Any] = {
            option: {f"{x:g}": f"{text}:{x:g}" if x else None for x in strengths}
        }
        fast = {label: value for label, value in algorithms.items() if label != SLOW}
        results[name] = run(name, fast, most, **options)
        slow = {SLOW: algorithms[SLOW]}
        results[f"{name}, {SLOW}"] = run(f"{name}-slow", slow, min(most, FEW_SEEDS), **options)
    shares = [round(1.0 - x, 2) for x in ABSENCE]
    results[PLANNED] = run("planned", fmab.cdp_mab, most, epsilon_message=1.0, participation=shares)
    return results


def draw(results: Mapping[int, Mapping[str, xr.DataArray]], folder: Path) -> list[Path]:
    """Draws regret at the horizon against the strength, a panel for each condition."""
    ((horizon, data),) = results.items()
    rows: list[dict[str, Any]] = []

    def add(name: str, label: str, strength: float, regret: xr.DataArray, **more: Any) -> None:
        mean, low, high = common.interval(regret.values)
        row = {"T": horizon, "condition": name, "algorithm": label, "strength": strength}
        row |= {"seeds": regret.size, "regret": mean, "lower": low, "upper": high}
        rows.append(row | {LESS: ""} | more)

    def cell(name: str, label: str, index: int) -> xr.DataArray:
        """Returns [seed] regret of an algorithm at a strength of a condition."""
        option = CONDITIONS[name][1]
        key = f"{name}, {label}" if label == SLOW else name
        return data[key].sel(algorithm=label).isel({option: index, "time": -1})

    for name, (_, _, _, strengths, algorithms) in CONDITIONS.items():
        for label in algorithms:
            for index, strength in enumerate(strengths):
                add(name, label, strength, cell(name, label, index))
    for index, strength in enumerate(ABSENCE):
        asked = data[PLANNED].isel(participation=index, time=-1)
        less = common.interval(cell("absence", "CDP-MAB", index).values - asked.values)
        add("absence", PLANNED, strength, asked, **{LESS: less})
    seeds, few = (data[name].sizes["seed"] for name in ("drift", f"drift, {SLOW}"))
    sentences = [
        f"M = {AGENTS} agents, K = {ARMS} arms, T = {write_count(horizon)} slots, {seeds:,} seeds; "
        f"of {SLOW} {few:,}",
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


def describe(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns what docs/conditions.md says of each algorithm, from the rows of the CSV."""
    found = {(row["algorithm"], row["condition"], row["strength"]): row for row in rows}

    def at(label: str, condition: str, strength: float) -> str:
        return f"{found[label, condition, strength]['regret']:,.0f}"

    def within(label: str, condition: str, strength: float) -> str:
        row = found[label, condition, strength]
        return f"{row['regret']:,.0f} [{row['lower']:,.0f}, {row['upper']:,.0f}]"

    def times(label: str, condition: str, strength: float) -> str:
        before, after = (found[label, condition, x]["regret"] for x in (0, strength))
        return f"{after / before:.2g}"

    def more(label: str, condition: str, strength: float) -> str:
        before, after = (found[label, condition, x]["regret"] for x in (0, strength))
        return f"{after - before:,.0f}"

    def rank(label: str) -> str:
        regret = {other: found[other, "drift", 1]["regret"] for other in ALGORITHMS}
        place = sorted(regret, key=regret.__getitem__).index(label)
        return ("first", "second", "third", "fourth", "last")[place]

    def share(changes: int) -> str:
        one, other = (found[label, "drift", changes]["regret"] for label in (kl_se, cdp))
        return f"{one / other:.2g}"

    thompson, ucb1, gosine, cdp, kl_se = ALGORITHMS
    many, few = (found[label, "drift", 0]["seeds"] for label in (cdp, gosine))
    half = float(scipy.stats.binom.sf(AGENTS / 2 - 1, AGENTS, 0.1))
    paragraphs = [
        f"Numbers are means over {many:,} seeds, over {few} with GosInE; brackets are 95 % "
        "intervals (Student t).",
        f"**Pooled Thompson sampling** has the least regret, {at(thompson, 'drift', 0)}, as long "
        f"as nothing happens. One change of all means takes it to {at(thompson, 'drift', 1)}, "
        f"{times(thompson, 'drift', 1)} times as much: the pooled counts are so large that the "
        "best arm of the past looks certain. Agents that miss 70 % of the slots cost a factor of "
        f"{times(thompson, 'absence', 0.7)}, because the server learns from fewer rewards while "
        "all agents pay for each pull. Where an agent is corrupted with chance 0.1, regret is "
        f"{within(thompson, 'corruption', 0.1)}. A few corrupted agents only make gaps look "
        f"smaller. But with a chance of {100 * half:.2f} % half of the agents or more are "
        "corrupted, and the pooled rewards then say nothing of the arms. Such a seed costs so much "
        "that a mean of a few hundred seeds says little here.",
        "**Pooled UCB1** explores more, and pays for it: "
        f"{at(ucb1, 'drift', 0)} without a condition. The same exploration makes it the best under "
        f"drift, with {at(ucb1, 'drift', 1)} after one change and {at(ucb1, 'drift', 3)} after "
        f"three. Absence costs a factor of {times(ucb1, 'absence', 0.7)} at 0.7, and corruption at "
        f"0.1 gives {within(ucb1, 'corruption', 0.1)}, for the same reasons as with Thompson "
        "sampling.",
        "**GosInE** has no server: an agent plays a few arms, and asks a neighbour for a better "
        "one after slots 1, 8, 27, and so on. After one change its regret is "
        f"{at(gosine, 'drift', 1)}, instead of {at(gosine, 'drift', 0)}. Absence costs "
        f"little at 0.3 ({at(gosine, 'absence', 0.3)}), but a factor of "
        f"{times(gosine, 'absence', 0.7)} at 0.7: a question needs two agents that are there at "
        "the same time, and at 0.7 an agent reaches one of its two neighbours in only "
        f"{100 * 0.3 * (1 - 0.7**2):.0f} % of its attempts. Corruption at 0.1 gives "
        f"{at(gosine, 'corruption', 0.1)}. On average one agent of ten is then corrupted; it "
        "follows its own false rewards to the worst arm for the whole run.",
        f"**CDP-MAB** has {at(cdp, 'drift', 0)} without a condition, and {at(cdp, 'drift', 1)} "
        "after one change: by then it has dropped most arms, often all but one. It never plays a "
        "dropped arm again, even if that is now the best. Absence costs a factor of "
        f"{times(cdp, 'absence', 0.7)} at 0.7. Epochs are "
        "planned for 10 messages. With fewer messages the radius is wider, so an arm that would "
        "leave stays for another epoch, which is up to four times as long. If each agent is "
        f"corrupted with chance 0.2, the regret is {within(cdp, 'corruption', 0.2)} with the mean "
        f"of the messages, and {within(MEDIAN, 'corruption', 0.2)} with their median "
        "(`trim=0.5`).",
        f"**KL-SE** has a regret of {at(kl_se, 'drift', 0)} without a condition, a fifth of "
        f"CDP-MAB's. After one change it has {at(kl_se, 'drift', 1)}, close to CDP-MAB, because it "
        "drops arms for good too. Absence costs a factor of "
        f"{times(kl_se, 'absence', 0.7)} at 0.7, more than for CDP-MAB; in regret it is less, "
        f"{more(kl_se, 'absence', 0.7)} against {more(cdp, 'absence', 0.7)}, since KL-SE has less "
        "regret to begin with. Corruption at 0.1 gives "
        f"{within(kl_se, 'corruption', 0.1)}, and {within(kl_se, 'corruption', 0.3)} at 0.3, where "
        f"CDP-MAB with the median has {within(MEDIAN, 'corruption', 0.3)}.",
        "Three things surprised us.",
        "* Drift changes the order. An algorithm that learns fast forgets slowly: after one change "
        f"Thompson sampling is not first any more but {rank(thompson)}, and the regret of KL-SE "
        f"grows from {share(0)} to {share(1)} times that of CDP-MAB.\n"
        "* The median costs nothing where all agents are honest: "
        f"{at(MEDIAN, 'corruption', 0)} in place of {at(cdp, 'corruption', 0)}. The radius is that "
        "of the mean, and wide enough.\n"
        f"* {_compare_absence(found)}",
    ]
    return "\n\n".join(paragraphs)


def _compare_absence(found: Mapping[tuple[str, str, float], Mapping[str, Any]]) -> str:
    """Says at which chances absent agents cost more than agents that are not asked."""
    groups: dict[str, list[str]] = {}
    for chance in ABSENCE[1:]:
        mean, lower, upper = found[PLANNED, "absence", chance][LESS]
        words = "more" if lower > 0 else "less" if upper < 0 else "undecided"
        text = f"{chance:g} ({mean:,.0f} [{lower:,.0f}, {upper:,.0f}])"
        groups.setdefault(words, []).append(text)
    verdict = "; ".join(f"{words} at {seen.listed(texts)}" for words, texts in groups.items())
    ends = (found[label, "absence", 0.7]["regret"] for label in ("CDP-MAB", PLANNED))
    absent, asked = (f"{end:,.0f}" for end in ends)
    return (
        "Do agents that are absent without notice cost CDP-MAB more than agents that it does not "
        f"ask? Over the same seeds, {verdict}. With 70 % of them absent it has {absent}; where it "
        f"asks only 3 of 10 agents (`participation=0.3`), it has {asked}, because it plans its "
        "epochs for 3 messages."
    )


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
