"""What the fronts of the arena look like: over links and bits, and over the radius."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from experiments import arena, arena_fronts, common, pictures
from fmab_jax.analysis.words import write_count
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

Rows = Sequence[Mapping[str, Any]]
Load = Callable[[str], Mapping[int, Any]]  # results of an experiment, by horizon
# As a lower bound is drawn.
BOUND: Any = (0, (4, 1.5))
BARS = "bars: pointwise 95 % confidence intervals (Student t)"
# Who is drawn beside CDP-MAB's radii.
BESIDE = ("kl_se", "kl_se_split")


def judge(load: Load, folder: Path) -> list[Path]:
    """Draws the fronts and what a radius costs, a table beside each; writes the caps on links."""
    written: list[Path] = []
    for horizon, dials in load("arena_fronts").items():
        parts = load("arena")[horizon]
        for view in arena.VIEWS:
            written += _draw_front(view, parts, dials, horizon, folder)
        written += _draw_radius(parts, dials, horizon, folder)
        caps = arena_fronts.capped(parts, dials, horizon)
        written.append(common.save_rows(caps, folder / "arena_caps.csv"))
    return written


def _setting(horizon: int, seeds: Iterable[int]) -> str:
    most, least = max(numbers := list(seeds)), min(numbers)
    numbers_text = f"{most:,}" if most == least else f"{least:,} to {most:,}"
    return (
        f"M = {arena.AGENTS} agents that are alike, K = {arena.ARMS} arms, means U[0, 1] drawn for "
        f"each seed, T = {write_count(horizon)} slots, {numbers_text} seeds. Where agents are "
        f"alone and are simulated in slots or episodes, {arena.STAND_INS} agents are run and their "
        f"regret is multiplied by {arena.AGENTS} / {arena.STAND_INS}"
    )


def front_page(
    candidates: Mapping[float, Sequence[arena_fronts.Point]], horizon: int
) -> Callable[[pictures.Page], None]:
    """Returns what draws regret at T against links and against bits, a row for each leak."""
    bound = {leak: arena.least_possible(leak, horizon) for leak in candidates}
    faint = "0.65"
    leads = {
        (leak, sent): arena_fronts.front(point, sent)
        for leak, point in candidates.items()
        for sent in ("links", "bits")
    }
    # CDP-MAB is shown wherever it stands, as the arena has it.
    named = [arena.REFERENCE, *(point.name for best in leads.values() for point in best)]
    place = {name: index for index, name in enumerate(dict.fromkeys(named))}

    def marker(name: str) -> dict[str, Any]:
        look = style.get_line_style(place[name])
        return {"marker": style.MARKERS[place[name] % len(style.MARKERS)], "color": look["color"]}

    def page(page: pictures.Page) -> None:
        panels = page.places(len(leads), across=2, height=1.9)
        for panel, ((leak, sent), best) in zip(panels, leads.items(), strict=True):
            at = {
                id(point): (float(getattr(point, sent).mean()), point.mean)
                for point in candidates[leak]
            }
            panel.plot(*zip(*at.values(), strict=True), "o", ms=2, color=faint, zorder=1, ls="none")
            ends = [at[id(point)] for point in best]
            panel.plot(*zip(*ends, strict=True), drawstyle="steps-post", lw=0.9, color="0.3")
            panel.axhline(bound[leak], color="0.35", linestyle=BOUND, linewidth=0.9)
            usual = [
                point
                for point in candidates[leak]
                if point.name == arena.REFERENCE and not point.settings
            ]
            for point in (*usual, *best):
                panel.plot(*at[id(point)], ms=4, ls="none", zorder=3, **marker(point.name))
            positive = [x for x, _ in at.values() if x > 0]
            panel.set_yscale("log")
            if positive:
                panel.set_xscale("symlog", linthresh=min(positive), linscale=0.6)
                panel.set_xlim(-0.15 * min(positive), 2 * max(positive))
            panel.set_ylim(0.7 * bound[leak], 1.6 * max(y for _, y in at.values()))
            panel.set_title(f"leak {leak:g}", fontsize=FONT, pad=3, loc="left")
            panel.set_xlabel(f"{sent} at T, mean over seeds", labelpad=2)
            panel.set_ylabel("regret at T", labelpad=2)
        page.handles = [
            *(
                Line2D([], [], ls="none", ms=4, label=arena.LINE_UP[name].label, **marker(name))
                for name in place
            ),
            Line2D([], [], marker="o", ms=2, color=faint, ls="none", label="others"),
            Line2D([], [], color="0.3", lw=0.9, label="front"),
            Line2D([], [], color="0.35", ls=BOUND, lw=0.9, label="lower bound in the end"),
        ]

    return page


def _draw_front(
    view: str, parts: Mapping[str, Any], dials: Mapping[Any, Any], horizon: int, folder: Path
) -> list[Path]:
    """Regret at T against links and against bits, a row for each leak."""
    what = arena.VIEWS[view]
    results = {
        leak: arena_fronts.points(view, leak, parts["b"], dials) for leak in arena.FRONT_LEAKS
    }
    candidates = {leak: list(point) for leak, point in results.items() if point}
    rows = arena_fronts.front_rows(view, parts, dials)
    seeds = [row["seeds"] for row in rows]
    caption = (
        f"{_setting(horizon, seeds)}. All of a panel are covered by the same ε of one reward "
        f"against {what.who}; accountant: {what.leak}. Markers: means over the seeds. Front: "
        "nobody has less regret for as much or less that is sent; drawn from means, whose "
        "intervals are in the table, as are the places of dials. CDP-MAB as it is in the arena is "
        "marked besides. With a smaller radius no proof covers it: that is in a figure of its own, "
        "arena_radius. Lower bound: what any algorithm whose actions are ε-private loses in the "
        f"end (docs/theory.md), the mean over {arena.INSTANCES} instances; at this T a yardstick, "
        "below which means may be. Links: a two-way link counts once, broadcasts are free. Bits: a "
        "released bit has 1, an arm's name 7, every other number 64."
    )
    alt = f"Regret against links and bits, a row for each leak against {what.who}."
    page = front_page(candidates, horizon)
    picture = pictures.Picture(f"arena_front_{view}", page, caption, alt, rows, rows)
    return pictures.publish(picture, folder)


def radius_rows(
    parts: Mapping[str, Any], dials: Mapping[Any, Any], horizon: int
) -> list[dict[str, Any]]:
    """Returns a row for every factor at every leak, and those of KL-SE beside them."""
    rows = []
    for leak in arena.FRONT_LEAKS:
        rivals = [
            point
            for point in arena_fronts.points("messages", leak, parts["b"], dials)
            if _beside(point)
        ]
        by_factor = arena_fronts.radii(parts["b"], dials, leak)
        for factor, point in [*by_factor.items(), *(("", point) for point in rivals)]:
            rows.append(
                {
                    "ε": f"{leak:g}",
                    "algorithm": arena.LINE_UP[
                        point.name if factor == "" else arena.REFERENCE
                    ].label,
                    "factor of the radius": factor,
                    **point.cells,
                    "lower bound": f"{arena.least_possible(leak, horizon):,.0f}",
                }
            )
    return rows


def _beside(point: arena_fronts.Point) -> bool:
    """Whether it is drawn beside CDP-MAB's radii."""
    return point.name in BESIDE and not point.settings


def _draw_radius(
    parts: Mapping[str, Any], dials: Mapping[Any, Any], horizon: int, folder: Path
) -> list[Path]:
    """Regret at T of CDP-MAB over the factor of its radius, and KL-SE beside it."""
    rows = radius_rows(parts, dials, horizon)
    seeds = [row["seeds"] for row in rows]
    caption = (
        f"{_setting(horizon, seeds)}. CDP-MAB with its confidence radius multiplied by a factor, "
        "and epochs as short as that allows. A factor of 1 has the proof; smaller ones have none. "
        "Hollow: some seeds lost the best arm. Nobody's proof covers the hollow ones, nor filled "
        f"ones below 1: {max(seeds):,} seeds may all have kept the best arm by luck. KL-SE keeps "
        "it with a probability of at least 1 − 1/T, proven. All are covered by the same ε of one "
        f"reward against {arena.VIEWS['messages'].who}. Markers: means over the seeds; {BARS}. "
        "Lower bound: as in the fronts, a yardstick."
    )
    alt = "Regret of CDP-MAB by the factor of its radius, a panel for each leak."
    page = radius_page(rows, horizon)
    picture = pictures.Picture("arena_radius", page, caption, alt, rows, rows)
    return pictures.publish(picture, folder)


def radius_page(rows: Rows, horizon: int = arena_fronts.HORIZON) -> Callable[[pictures.Page], None]:
    """Returns what draws regret over the factor of the radius from the rows of the CSV."""
    cdp_rows: dict[float, list[Any]] = {float(row["ε"]): [] for row in rows}
    rivals: dict[float, list[Any]] = {leak: [] for leak in cdp_rows}
    for row in rows:
        (rivals if row["factor of the radius"] == "" else cdp_rows)[float(row["ε"])].append(row)
    # Of what is drawn side by side, one scale.
    low = 0.7 * min(arena.least_possible(leak, horizon) for leak in cdp_rows)
    high = 1.4 * max(row["regret at T"][2] for row in rows)
    color = style.get_line_style(0)["color"]

    def draw(page: pictures.Page) -> None:
        panels = page.places(len(cdp_rows), across=min(3, len(cdp_rows)), height=2.4)
        for panel, (leak, leak_rows) in zip(panels, cdp_rows.items(), strict=True):
            x = [row["factor of the radius"] for row in leak_rows]
            mean, lower, upper = np.array([row["regret at T"] for row in leak_rows]).T
            panel.vlines(x, lower, upper, color=color, lw=0.8)
            panel.plot(x, mean, color=color, lw=0.9)
            for whole_, face in ((True, color), (False, "white")):
                at = [
                    i for i, row in enumerate(leak_rows) if (not row[arena_fronts.LOST]) == whole_
                ]
                look: dict[str, Any] = {"ls": "none", "ms": 4, "mfc": face, "color": color}
                panel.plot([x[i] for i in at], mean[at], marker="o", **look)
            for index, row in enumerate(rivals[leak], 1):
                panel.axhline(
                    row["regret at T"][0], label=row["algorithm"], **style.get_line_style(index)
                )
            panel.axhline(arena.least_possible(leak, horizon), color="0.35", ls=BOUND, lw=0.9)
            panel.set(xscale="log", yscale="log", xlim=(0.088, 1.14), ylim=(low, high))
            panel.set_xticks([0.1, 0.2, 0.5, 1.0], ["0.1", "0.2", "0.5", "1"])
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_title(f"leak {leak:g}", fontsize=FONT, pad=3, loc="left")
            panel.set_xlabel("factor of the radius", labelpad=2)
            panel.set_ylabel("regret at T", labelpad=2)
        page.handles = [
            Line2D([], [], marker="o", ms=4, color=color, lw=0.9, label="CDP-MAB, no seed lost"),
            Line2D([], [], marker="o", ms=4, color=color, mfc="white", lw=0.9, label="some lost"),
            *(
                Line2D([], [], label=arena.LINE_UP[name].label, **style.get_line_style(index))
                for index, name in enumerate(BESIDE, 1)
            ),
            Line2D([], [], color="0.35", ls=BOUND, lw=0.9, label="lower bound in the end"),
        ]

    return draw
