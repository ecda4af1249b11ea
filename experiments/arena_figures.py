"""The figures of the arena, each with its words, its table and its numbers beside.

Regret over time, regret against what is sent, regret at an equal leak, and agents that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common, pictures
from experiments.arena import (
    AGENTS,
    ARMS,
    LEAKS,
    LINE_UP,
    REFERENCE,
    SPREADS,
    STAND_INS,
    TRUST,
    final_row,
    seeds_in_words,
)
from fmab_jax.analysis.words import whole
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

COLOUR = dict(zip(TRUST, (style.COLOURS[i] for i in (1, 4, 3, 0, 5, 2)), strict=True))
MARKER = dict(zip(TRUST, ("s", "D", "P", "o", "v", "^"), strict=True))
# Curves whose means are nowhere further apart than this part are one line.
ALIKE = 0.01
ONE_LINE = f"Curves that are within {100 * ALIKE:g} % of each other everywhere are one line"
BARS = "Bars: pointwise 95 % confidence intervals (Student t)"
REGRET = "regret at T, sum over agents"


def draw(results: Mapping[int, Mapping[str, Mapping[str, Any]]], folder: Path) -> list[Path]:
    """Draws the figures of every horizon."""
    written: list[Path] = []
    for horizon, parts in results.items():
        end = f"T{common.power(horizon)}"
        written += _draw_curves(parts["a"], horizon, folder, f"arena_regret_{end}")
        written += _draw_sent(parts["a"], horizon, folder, f"arena_links_{end}")
        written += _draw_leaks(parts["b"], horizon, folder, f"arena_leak_{end}")
        written += _draw_spreads(parts["c"], horizon, folder, f"arena_differ_{end}")
    return written


def _instance(horizon: int, parts: Mapping[str, Any], shared: str = " and shared") -> str:
    return (
        f"M = {AGENTS} agents, K = {ARMS} arms, means U[0, 1] drawn for each seed{shared}, "
        f"T = {whole(horizon)} slots, {seeds_in_words(parts)}. Where agents are alone and "
        f"alike, and are simulated slot by slot, {STAND_INS} agents are run and their regret is "
        f"multiplied by {AGENTS} / {STAND_INS}"
    )


def _lines(names: Sequence[str], means: Mapping[str, np.ndarray]) -> list[list[str]]:
    """Returns the names, those whose curves nearly coincide together."""
    found: list[list[str]] = []
    for name in names:
        for line in found:
            if (abs(means[name] / means[line[0]] - 1) <= ALIKE).all():
                line.append(name)
                break
        else:
            found.append([name])
    return found


def _label(names: Sequence[str]) -> str:
    return "; ".join(LINE_UP[name].label for name in names)


def _legend(panel: Axes, wide: float) -> None:
    """Writes the legend of a panel at its right, the most regret first, in lines of a width."""
    handles, labels = panel.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda i: -handles[i].get_ydata()[-1])
    handles = [handles[i] for i in order]
    labels = [style.wrapped(labels[i], wide) for i in order]
    look = style.LEGEND | {"loc": "upper left", "bbox_to_anchor": (1.04, 1)}
    panel.legend(handles, labels, handlelength=1.8, handletextpad=0.5, **look)


def _draw_curves(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret over time, a panel for everybody who is told the same."""
    bands = {each: fmab.confidence_band(data.regret, common.LEVEL) for each, data in parts.items()}
    means = {each: band["mean"].sel(time=slice(100, None)).values for each, band in bands.items()}
    low, high = min(map(np.min, means.values())), max(map(np.max, means.values()))
    groups: dict[str, list[str]] = {}
    for each in parts:
        groups.setdefault(LINE_UP[each].trust, []).append(each)
    shown = [trust for trust in TRUST if trust in groups]

    def page(page: pictures.Page) -> None:
        panels = page.places(len(shown), across=2, height=1.4)
        for panel, trust in zip(panels, shown, strict=True):
            first = bands[REFERENCE]
            panel.plot(first.time, first["mean"], color="0.75", linewidth=2.8, zorder=1)
            for index, line in enumerate(_lines(groups[trust], means)):
                common.draw_bands(panel, {_label(line): bands[line[0]]}, **style.look(index))
            panel.set(xscale="log", yscale="log", xlim=(100, horizon), ylim=(0.8 * low, 1.3 * high))
            panel.set_title(TRUST[trust], fontsize=FONT, pad=3, loc="left")
            panel.set_ylabel("regret", labelpad=2)
            _legend(panel, 1.05)
        for panel in panels[-1 if page.narrow else -2 :]:
            panel.set_xlabel("slot t", labelpad=2)

    caption = (
        f"{_instance(horizon, parts)}. Regret is summed over agents. Lines: means over the seeds; "
        f"shaded: simultaneous 95 % bands. {ONE_LINE}. Above each panel: who is trusted, and with "
        "what. Grey, in every panel: CDP-MAB. Private algorithms at ε = 1 as each defines it (a "
        f"message of CDP-MAB leaks {AGENTS}); at an equal leak: "
        f"[figure]({name.replace('regret', 'leak')}.md)."
    )
    table = [final_row(each, data, parts[REFERENCE]) for each, data in parts.items()]
    least = min(table, key=lambda row: row["regret at T"][0])
    most = max(table, key=lambda row: row["regret at T"][0])
    alt = (
        f"{len(parts)} algorithms, by who is trusted. At T = {whole(horizon)} "
        f"{least['algorithm']} has the least regret, {least['regret at T'][0]:,.0f}, and "
        f"{most['algorithm']} the most, {most['regret at T'][0]:,.0f}; CDP-MAB has "
        f"{float(bands[REFERENCE]['mean'][-1]):,.0f}."
    )
    labelled = {LINE_UP[each].label: band for each, band in bands.items()}
    rows = pictures.band_rows(labelled, quantity="regret")
    for row in table:
        rows += [
            {"quantity": head, "curve": row["algorithm"], "slot": horizon}
            | dict(zip(("mean", "lower", "upper"), value, strict=True))
            for head, value in row.items()
            if isinstance(value, tuple)
        ]
    return pictures.publish(pictures.Picture(name, page, caption, alt, rows, table), folder)


def _draw_sent(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret at T against links, and against numbers sent."""
    rows = {each: final_row(each, data, parts[REFERENCE]) for each, data in parts.items()}
    sent = ("links at T", "numbers sent")

    def page(page: pictures.Page) -> None:
        panels = page.places(len(sent), across=2, height=3.4)
        notes: list[list[pictures.Note]] = []
        bars: list[list[Any]] = []
        for panel, meter in zip(panels, sent, strict=True):
            notes.append([])
            bars.append([])
            for each, row in rows.items():
                trust, x, (mean, lower, upper) = (
                    LINE_UP[each].trust,
                    row[meter][0],
                    row["regret at T"],
                )
                look = {"color": COLOUR[trust], "elinewidth": 0.8, "linestyle": "none"}
                panel.errorbar(
                    [x],
                    [mean],
                    yerr=[[mean - lower], [upper - mean]],
                    fmt=MARKER[trust],
                    markersize=3.4,
                    **look,
                )
                bars[-1].append([(x, max(lower, 1.0)), (x, upper)])
                notes[-1].append(pictures.Note((x, mean), LINE_UP[each].label, COLOUR[trust]))
            panel.set_yscale("log")
            least = min(row[meter][0] for row in rows.values() if row[meter][0] > 0)
            # Who sends nothing lies far enough at the left for names beside.
            panel.set_xscale("symlog", linthresh=least, linscale=1.3)
            panel.set_xlim(-0.15 * least, 1.6 * max(row[meter][0] for row in rows.values()))
            panel.set_xlabel(f"{meter}, mean over seeds", labelpad=2)
            panel.set_ylabel(REGRET, labelpad=2)

        def fit() -> None:
            for panel, words, drawn in zip(panels, notes, bars, strict=True):
                pictures.write_beside(panel, words, drawn)

        page.fit = fit
        shown = {LINE_UP[each].trust for each in parts}
        page.handles = [
            Line2D([], [], marker=MARKER[t], color=COLOUR[t], ls="none", ms=3.4, label=words)
            for t, words in TRUST.items()
            if t in shown
        ]

    caption = (
        f"{_instance(horizon, parts)}. Markers: means over the seeds. {BARS}. Legend: who is "
        "trusted, and with what. Links: a two-way link counts once, broadcasts are free; "
        "links of completed rounds, of DDP-MAB diameter × edges a round, of Gossip_UCB and Fed_UCB "
        "those of counts as well. Numbers: reals and integers that all links carry. At 0: nothing "
        "is sent."
    )
    table = [
        {
            head: row[head]
            for head in ("algorithm", "who is trusted", "links at T", "numbers sent", "regret at T")
        }
        for row in rows.values()
    ]
    telling = [row for row in table if row["numbers sent"][0] > 0]
    least = min(telling, key=lambda row: row["numbers sent"][0])
    best = min(telling, key=lambda row: row["regret at T"][0])
    alt = (
        f"At T = {whole(horizon)}, of those that send anything, {least['algorithm']} sends least, "
        f"{least['numbers sent'][0]:,.0f} numbers, and has a regret of "
        f"{least['regret at T'][0]:,.0f}; {best['algorithm']} has the least regret, "
        f"{best['regret at T'][0]:,.0f}, with {best['numbers sent'][0]:,.0f} numbers."
    )
    return pictures.publish(pictures.Picture(name, page, caption, alt, table, table), folder)


def _draw_leaks(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret at T against the epsilon of what others are told."""
    members = list(dict.fromkeys(label.partition(",")[0] for label in parts))
    told = [each for each in members if not LINE_UP[each].alone]
    alone = [each for each in members if LINE_UP[each].alone]
    found = {
        each: np.array(
            [common.interval(parts[f"{each}, {leak:g}"].regret.isel(time=-1)) for leak in LEAKS]
        )
        for each in members
    }
    means = {each: values[:, 0] for each, values in found.items()}
    low = min(values[:, 1].min() for values in found.values())
    high = max(values[:, 2].max() for values in found.values())
    panels_of = {
        "ε of what others are told": told,
        "ε of what an agent does, or releases": alone,
    }
    panels_of = {words: names for words, names in panels_of.items() if names}

    def page(page: pictures.Page) -> None:
        panels = page.places(len(panels_of), across=2, height=2.0)
        for panel, (words, names) in zip(panels, panels_of.items(), strict=True):
            for index, line in enumerate(_lines(names, means)):
                mean, lower, upper = found[line[0]].T
                own = style.look(index) | {"marker": style.MARKERS[index], "markersize": 3}
                panel.vlines(LEAKS, lower, upper, color=own["color"], linewidth=0.8)
                panel.plot(LEAKS, mean, label=_label(line), **own)
            panel.set(xscale="log", yscale="log", ylim=(0.8 * low, 1.3 * high))
            panel.margins(x=0.04)
            panel.set_xlabel(words, labelpad=2)
            panel.set_ylabel(REGRET, labelpad=2)
            _legend(panel, 0.95)

    caption = (
        f"{_instance(horizon, parts)}. Regret at an equal leak. Where others are told something, ε "
        "bounds what one changed reward does to all that the best informed of them is told; "
        "actions in the waiting slots of DDP-MAB on a ring have no finite ε. Where agents are "
        "alone, ε is that of actions, of LDP-UCB that of every reward. Markers: means over the "
        f"seeds. {BARS}. {ONE_LINE}."
    )
    table = [
        {
            "algorithm": LINE_UP[each].label,
            "epsilon": leak,
            "of": "what others are told" if each in told else "what agents do",
            "seeds": parts[f"{each}, {leak:g}"].sizes["seed"],
            "regret at T": tuple(map(float, values)),
            "agents that play a worse arm at T": common.interval(
                parts[f"{each}, {leak:g}"].agents_worse
            ),
        }
        for each in members
        for leak, values in zip(LEAKS, found[each], strict=True)
    ]
    best = {leak: min(told, key=lambda each: means[each][i]) for i, leak in enumerate(LEAKS)}
    listed = ", ".join(
        f"{LINE_UP[each].label} at ε = {leak:g} ({means[each][i]:,.0f})"
        for i, (leak, each) in enumerate(best.items())
    )
    alt = f"Of those that tell others something, the least regret has: {listed}."
    return pictures.publish(pictures.Picture(name, page, caption, alt, table, table), folder)


def _draw_spreads(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret at T with agents that are alike, and with agents that differ."""
    members = list(dict.fromkeys(label.partition(",")[0] for label in parts))
    found = {
        (each, words): common.interval(parts[f"{each}, {words}"].regret.isel(time=-1))
        for each in members
        for words in SPREADS
    }
    order = sorted(members, key=lambda each: -found[each, "agents differ"][0])

    def page(page: pictures.Page) -> None:
        (panel,) = page.places(1, height=0.5 + 0.16 * len(members))
        for index, words in enumerate(SPREADS):
            places = np.arange(len(order)) + 0.15 * (1 - 2 * index)
            mean, lower, upper = np.array([found[each, words] for each in order]).T
            color, marker = style.COLOURS[index], style.MARKERS[index]
            panel.hlines(places, lower, upper, color=color, linewidth=0.8)
            look = {"color": color, "marker": marker, "markersize": 3, "linestyle": "none"}
            page.handles = [*page.handles, *panel.plot(mean, places, label=words, **look)]
        panel.set_xscale("log")
        panel.set_yticks(np.arange(len(order)), [LINE_UP[each].label for each in order])
        panel.margins(x=0.03)
        panel.set_xlabel(REGRET, labelpad=2)

    table = [
        {
            "algorithm": LINE_UP[each].label,
            "seeds": parts[f"{each}, agents differ"].sizes["seed"],
            **{words: found[each, words] for words in SPREADS},
            "agents that play a worse arm, where they differ": common.interval(
                parts[f"{each}, agents differ"].agents_worse
            ),
        }
        for each in order[::-1]
    ]
    share = common.disagreement(AGENTS, ARMS, SPREADS["agents differ"])
    caption = (
        f"{_instance(horizon, parts, '')}. Alike: agents share the means. Differ: "
        f"{common.DIFFER}; the local best arm of {100 * share:.0f} % of the agents is not the "
        "global best, and regret counts gaps of global means. Markers: means over the seeds. "
        f"{BARS}. Algorithms that are stated for agents alike only are left out."
    )
    best, last = order[-1], order[0]
    alt = (
        f"Where agents differ, {LINE_UP[best].label} has the least regret, "
        f"{found[best, 'agents differ'][0]:,.0f}, and {LINE_UP[last].label} the most, "
        f"{found[last, 'agents differ'][0]:,.0f}."
    )
    return pictures.publish(pictures.Picture(name, page, caption, alt, table, table), folder)
