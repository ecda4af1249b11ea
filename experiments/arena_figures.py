"""The figures of the arena, each with its words, its table and its numbers beside.

Regret over time, regret at matched trust, and agents that differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes

import fmab_jax as fmab
from experiments import arena, common, pictures, several
from fmab_jax.analysis.words import write_count
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

# Curves whose means are nowhere further apart than this part are one line.
ALIKE = 0.01

ONE_LINE = f"Curves that are within {100 * ALIKE:g} % of each other everywhere are one line"
BOUND = (0, (4, 1.5))
BARS = "Bars: pointwise 95 % confidence intervals (Student t)"
REGRET = "regret at T, sum over agents"


def draw(results: Mapping[int, Mapping[str, Mapping[str, Any]]], folder: Path) -> list[Path]:
    """Draws the figures of every horizon."""
    written: list[Path] = []
    for horizon, parts in results.items():
        end = f"T{common.power(horizon)}"
        written += _draw_curves(parts["a"], horizon, folder, f"arena_regret_{end}")
        quiet = parts["a"].get(arena.YARDSTICK)
        written += _draw_leaks(parts["b"], quiet, horizon, folder, f"arena_leak_{end}")
        written += _draw_spreads(parts["c"], horizon, folder, f"arena_differ_{end}")
    return written


def _instance(horizon: int, parts: Mapping[str, Any], shared: str = " and shared") -> str:
    return (
        f"M = {arena.AGENTS} agents, K = {arena.ARMS} arms, means U[0, 1] drawn for each "
        f"seed{shared}, T = {write_count(horizon)} slots, {arena.seeds_in_words(parts)}. Where "
        f"agents are alone and alike, and are simulated in slots or episodes, {arena.STAND_INS} "
        f"agents are run and their regret is multiplied by {arena.AGENTS} / {arena.STAND_INS}"
    )


def _lines(names: Sequence[str], means: Mapping[str, np.ndarray]) -> list[list[str]]:
    """Returns the names, those whose curves nearly coincide together."""
    results: list[list[str]] = []
    for name in names:
        for line in results:
            if (abs(means[name] / means[line[0]] - 1) <= ALIKE).all():
                line.append(name)
                break
        else:
            results.append([name])
    return results


def _label(names: Sequence[str]) -> str:
    return "; ".join(arena.LINE_UP[name].label for name in names)


def _high(lines: Sequence[Sequence[str]], wide: float, columns: int = 1) -> float:
    """Returns how high a panel is beside which its legend fits, in inches."""
    rows = sum(style.wrap_text(_label(item), wide).count("\n") + 1 for item in lines)
    return max(1.4, 0.45 + 0.135 * (rows + len(lines) / 3) / columns)


def _legend(panel: Axes, wide: float, columns: int = 1) -> None:
    """Writes the legend of a panel at its right, the most regret first, in lines of a width."""
    handles, labels = panel.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda i: -handles[i].get_ydata()[-1])
    labels = [style.wrap_text(labels[i], wide) for i in order]
    look = style.LEGEND | {"loc": "upper left", "bbox_to_anchor": (1.04, 1)}
    look |= {"ncols": columns, "columnspacing": 1.0, "fontsize": FONT}
    entries = [handles[i] for i in order]
    panel.legend(entries, labels, handlelength=1.8, handletextpad=0.5, **look)


def curves_page(bands: Mapping[str, Any], horizon: int) -> Callable[[pictures.Page], None]:
    """Returns what draws regret over time, a panel for everybody who is told the same."""
    means = {item: band["mean"].sel(time=slice(100, None)).values for item, band in bands.items()}
    low, high = min(map(np.min, means.values())), max(map(np.max, means.values()))
    groups: dict[str, list[str]] = {}
    for item in bands:
        groups.setdefault(arena.LINE_UP[item].trust, []).append(item)
    shown = [trust for trust in arena.TRUST if trust in groups]

    lines = {trust: _lines(groups[trust], means) for trust in shown}
    rate = arena.least_possible(None, horizon) / math.log(arena.AGENTS * horizon)
    low = min(low, rate * math.log(arena.AGENTS * 100))

    def page(page: pictures.Page) -> None:
        panels = page.places(len(shown), 2, [_high(item, 1.05) for item in lines.values()])
        for panel, trust in zip(panels, shown, strict=True):
            first = bands[arena.REFERENCE]
            panel.plot(first.time, first["mean"], color="0.75", linewidth=2.8, zorder=1)
            slots = first.time.values
            players = arena.AGENTS if trust == "alone" else 1
            least = players * rate * np.log(arena.AGENTS // players * slots)
            panel.plot(slots, least, color="0.5", linestyle=BOUND, linewidth=0.8, zorder=1)
            for index, line in enumerate(lines[trust]):
                common.draw_bands(
                    panel, {_label(line): bands[line[0]]}, **style.get_line_style(index)
                )
            panel.set(xscale="log", yscale="log", xlim=(100, horizon), ylim=(0.8 * low, 1.3 * high))
            panel.set_title(arena.TRUST[trust], fontsize=FONT, pad=3, loc="left")
            panel.set_ylabel("regret", labelpad=2)
            _legend(panel, 1.05)
        for panel in panels[-2:]:
            panel.set_xlabel("slot t", labelpad=2)

    return page


def _draw_curves(parts: Mapping[str, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret over time, a panel for everybody who is told the same."""
    bands = {item: fmab.confidence_band(data.regret, common.LEVEL) for item, data in parts.items()}
    caption = (
        f"{_instance(horizon, parts)}. Regret is summed over agents. Lines: means over the seeds; "
        f"shaded: simultaneous 95 % bands. {ONE_LINE}. Above each panel: who is trusted, and with "
        f"what. {arena.trusted_as_well(parts)} Grey, in every panel: CDP-MAB; dashed, the lower "
        f"bound of Lai and Robbins, the mean over {arena.INSTANCES} instances, of one player with "
        "all pulls, or of each agent alone: what must be lost in the end, at this T a yardstick. "
        "Private algorithms at ε = 1 as each defines it: a message of CDP-MAB, DDP-MAB and HDP-MAB "
        f"leaks {arena.AGENTS}, of the others 1; at matched trust: "
        f"[figure]({name.replace('regret', 'leak')}.md)."
    )
    table = [arena.final_row(item, data, parts[arena.REFERENCE]) for item, data in parts.items()]
    alt = f"Regret of {len(parts)} algorithms over time, a panel for each kind of trust."
    labelled = {arena.LINE_UP[item].label: band for item, band in bands.items()}
    rows = pictures.band_rows(labelled, quantity="regret")
    for row in table:
        rows += [
            {"quantity": head, "curve": row["algorithm"], "slot": horizon}
            | dict(zip(("mean", "lower", "upper"), value, strict=True))
            for head, value in row.items()
            if isinstance(value, tuple)
        ]
    page = curves_page(bands, horizon)
    return pictures.publish(pictures.Picture(name, page, caption, alt, rows, table), folder)


def matched_rows(parts: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Returns a row for everybody at each leak of each view, those not run with the reason."""
    rows = []
    for view, what in arena.VIEWS.items():
        for leak in arena.LEAKS:
            entrants = arena.matched(view, leak, parts)
            if not entrants:
                continue
            places = several.Ranks(entrants, common.LEVEL).places
            start = {"view": what.who, "accountant": what.leak, "ε": leak}
            for item in entrants:
                first, last = places[item.label][:2]
                rows.append(
                    start
                    | {
                        "algorithm": item.label,
                        "seeds": len(item.regret),
                        "regret at T": common.interval(item.regret),
                        "place from": first,
                        "to": last,
                        "of": len(entrants),
                        "why not run": "",
                    }
                )
            for label, why in arena.absent_of_view(view, leak, parts).items():
                rows.append(start | {"algorithm": label, "why not run": why})
    return rows


def matched_table(view: str, parts: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Returns a row for each contestant of a view, a column for each leak."""
    rows = [row for row in matched_rows(parts) if row["view"] == arena.VIEWS[view].who]
    results: dict[str, dict[str, Any]] = {}
    for row in rows:
        if "seeds" in row:
            place = several.Place(row["place from"], row["to"], row["seeds"]).text
            cells = results.setdefault(
                row["algorithm"], {"algorithm": row["algorithm"], "seeds": row["seeds"]}
            )
            cells[f"ε = {row['ε']:g}"] = (
                f"{common.cell(row['regret at T'])}; {place} of {row['of']}"
            )
    return list(results.values())


def leaks_page(
    results: Mapping[tuple[str, str], np.ndarray], yardstick: float | None, horizon: int
) -> Callable[[pictures.Page], None]:
    """Returns what draws [leak, 3] regret at T and its interval against the leak, by view."""
    members: dict[str, list[str]] = {}
    for view, name in results:
        members.setdefault(view, []).append(name)
    bound = [arena.least_possible(leak, horizon) for leak in arena.LEAKS]
    low = min(min(bound), *(values[:, 1].min() for values in results.values()))
    low = low if yardstick is None else min(low, yardstick)
    top = max(values[:, 2].max() for values in results.values())
    lines = {
        view: _lines(names, {item: results[view, item][:, 0] for item in names})
        for view, names in members.items()
    }
    # A contestant has one look in all panels.
    place = {item: i for i, item in enumerate(dict.fromkeys(item for _, item in results))}

    def page(page: pictures.Page) -> None:
        high = [max(2.0, _high(item, 0.95, 2)) for item in lines.values()]
        panels = page.places(len(members), 1, high)
        for panel, view in zip(panels, members, strict=True):
            if view != "actions" and yardstick is not None:
                words = f"{arena.LINE_UP[arena.YARDSTICK].label} alone: nothing told"
                panel.plot(
                    arena.LEAKS,
                    [yardstick] * len(arena.LEAKS),
                    color="0.6",
                    linewidth=2.4,
                    label=words,
                )
            words = "lower bound in the end"
            panel.plot(arena.LEAKS, bound, color="0.5", linestyle=BOUND, linewidth=0.9, label=words)
            for line in lines[view]:
                mean, lower, upper = results[view, line[0]].T
                marker = style.MARKERS[place[line[0]] % len(style.MARKERS)]
                look = style.get_line_style(place[line[0]]) | {"marker": marker, "markersize": 3}
                panel.vlines(arena.LEAKS, lower, upper, color=look["color"], linewidth=0.8)
                panel.plot(arena.LEAKS, mean, label=_label(line), **look)
            panel.set(xscale="log", yscale="log", ylim=(0.8 * max(low, 1), 1.3 * top))
            panel.margins(x=0.04)
            panel.set_title(arena.VIEWS[view].who, fontsize=FONT, pad=3, loc="left")
            panel.set_xlabel(f"leak, {arena.VIEWS[view].leak}", labelpad=2)
            panel.set_ylabel(REGRET, labelpad=2)
            _legend(panel, 0.95, 2)

    return page


def _draw_leaks(
    parts: Mapping[Any, Any], quiet: Any, horizon: int, folder: Path, name: str
) -> list[Path]:
    """Regret at T against the leak, a panel for each view; who tells nothing as a yardstick."""
    members = {
        view: [item for item in what.makers if (view, item, arena.LEAKS[0]) in parts]
        for view, what in arena.VIEWS.items()
    }
    members = {view: names for view, names in members.items() if names}
    results = {
        (view, item): np.array(
            [common.interval(parts[view, item, leak].regret.isel(time=-1)) for leak in arena.LEAKS]
        )
        for view, names in members.items()
        for item in names
    }
    yardstick = None if quiet is None else float(quiet.regret.isel(time=-1).mean())
    caption = (
        f"{_instance(horizon, {key: data for key, data in parts.items() if key[0] in members})}. "
        "Regret at matched trust: above each panel, whose view it is; all of a panel are covered "
        "by the same ε of one reward there, over the whole run. Secure sums: the server of "
        "CDP-MAB, Dist-DP-SE and pooled LDP-UCB sees sums over 50 agents, of HDP-MAB over five. "
        "For the outsider, agents of DDP-MAB wait by noisy means. Grey: who tells nobody anything, "
        "and leaks by actions alone, without bound. Lower bound: what any algorithm whose actions "
        f"are ε-private loses in the end, the mean over {arena.INSTANCES} instances; at this T a "
        f"yardstick. Markers: means over the seeds. {BARS}. {ONE_LINE}. The CSV lists who takes no "
        "part, and why."
    )
    rows = matched_rows(parts)
    alt = "Regret at T against the leak, a panel for each view."
    shown = [row for row in rows if not row["why not run"]]
    page = leaks_page(results, yardstick, horizon)
    return pictures.publish(pictures.Picture(name, page, caption, alt, rows, shown), folder)


def _draw_spreads(parts: Mapping[Any, Any], horizon: int, folder: Path, name: str) -> list[Path]:
    """Regret at T with agents that are alike, and with agents that differ."""
    members = list(dict.fromkeys(name for name, _ in parts))
    results = {
        (item, words): common.interval(parts[item, words].regret.isel(time=-1))
        for item in members
        for words in arena.SPREADS
    }
    order = sorted(members, key=lambda item: -results[item, "agents differ"][0])

    table = [
        {
            "algorithm": arena.LINE_UP[item].label,
            "seeds, where they differ": parts[item, "agents differ"].sizes["seed"],
            "seeds, where alike": parts[item, "agents alike"].sizes["seed"],
            **{words: results[item, words] for words in arena.SPREADS},
            "agents that play a worse arm, where they differ": common.interval(
                parts[item, "agents differ"].agents_worse
            ),
        }
        for item in order[::-1]
    ]
    share = common.disagreement(arena.AGENTS, arena.ARMS, arena.SPREADS["agents differ"])
    caption = (
        f"{_instance(horizon, parts, '')}. Alike: agents share the means. Differ: "
        f"{common.DIFFER}; the local best arm of {100 * share:.0f} % of the agents is not the "
        "global best, and regret counts gaps of global means. Markers: means over the seeds. "
        f"{BARS}. Left out: who takes too long here, or is stated for agents alike only."
    )
    alt = "Regret at T of each algorithm, where agents are alike and where they differ."
    page = spreads_page(table)
    return pictures.publish(pictures.Picture(name, page, caption, alt, table, table), folder)


def spreads_page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns what draws regret with agents alike and different, a row for each contestant."""
    order = rows[::-1]

    def draw(page: pictures.Page) -> None:
        (panel,) = page.places(1, height=0.5 + 0.16 * len(order))
        for index, words in enumerate(arena.SPREADS):
            places = np.arange(len(order)) + 0.15 * (1 - 2 * index)
            mean, lower, upper = np.array([row[words] for row in order]).T
            color, marker = style.COLOURS[index], style.MARKERS[index]
            panel.hlines(places, lower, upper, color=color, linewidth=0.8)
            look = {"color": color, "marker": marker, "markersize": 3, "linestyle": "none"}
            page.handles = [*page.handles, *panel.plot(mean, places, label=words, **look)]
        panel.set_xscale("log")
        panel.set_yticks(np.arange(len(order)), [row["algorithm"] for row in order])
        panel.margins(x=0.03)
        panel.set_xlabel(REGRET, labelpad=2)

    return draw
