"""Draws pictures anew from the numbers beside them: nothing is simulated, and no word changes.

python -m experiments redraw                          all pictures of figures/
python -m experiments redraw fig04_epsilon            one of them
python -m experiments redraw --pdf                    for print: PDF
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments import (
    arena,
    arena_figures,
    arena_fronts,
    arena_fronts_figures,
    audit,
    common,
    conditions,
    consensus,
    differences,
    fig07_tradeoff,
    fig09_graphs,
    fig13_heterogeneity,
    figures,
    linear,
    noises,
    pictures,
    table2_fig11_hybrid,
    worlds,
)
from fmab_jax.errors import refuse

Draw = Callable[[pictures.Page], None]
Rows = Sequence[Mapping[str, Any]]
NAMES = {entry.label: name for name, entry in arena.LINE_UP.items()}


def main(words: Sequence[str]) -> None:
    """Runs the command: draws the named pictures of a folder, or all."""
    parser = argparse.ArgumentParser(
        "python -m experiments redraw",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="PICTURE", help="such as fig04_epsilon")
    parser.add_argument("--pdf", action="store_true", help="for print, in place of the PNG")
    parser.add_argument("--figures", type=Path, default=Path("figures"), help="folder")
    options = parser.parse_args(words)
    available = [p.stem for p in sorted(options.figures.glob("*.csv")) if _find_drawing(p.stem)]
    for name in options.names:
        if name not in available:
            refuse("picture", name, f"one of {', '.join(available)}", "leave it out for all")
    for name in options.names or available:
        draw = drawing_of(options.figures, name)
        print(*pictures.draw_files(name, draw, options.figures, options.pdf), flush=True)


def _find_drawing(name: str) -> tuple[Callable[..., Draw], tuple[str, ...]] | None:
    for pattern, way in WAYS.items():
        if match := re.fullmatch(pattern, name):
            return way, match.groups()
    return None


def drawing_of(folder: Path, name: str) -> Draw:
    """Returns what draws a picture from the numbers in a folder; LookupError if nothing can."""
    if (drawing := _find_drawing(name)) is None:
        raise LookupError(f"{name} cannot be drawn from its numbers alone: simulate it")
    way, groups = drawing
    names = [name, *([BESIDE[way](name)] if way in BESIDE else [])]
    return way(*(common.read_rows(folder / f"{stem}.csv") for stem in names), *groups)


def _regret(rows: Rows, power: str) -> Draw:
    renamed = [row | {"T": 0, "curve": NAMES[row["curve"]]} for row in rows]
    bands = differences.read_bands(renamed, differences.REGRET)[0]
    return arena_figures.curves_page(bands, int(float(power)))


def _leaks(rows: Rows, beside: Rows, power: str) -> Draw:
    views = {what.who: view for view, what in arena.VIEWS.items()}
    points_of: dict[tuple[str, str], list[Any]] = {}
    for row in rows:
        if not row["why not run"]:
            points = points_of.setdefault((views[row["view"]], NAMES[row["algorithm"]]), [])
            points.append((float(row["ε"]), *row["regret at T"]))
    quiet = [row for row in beside if NAMES[row["algorithm"]] == arena.YARDSTICK]
    yardstick = quiet[0]["regret at T"][0] if quiet else None
    values = {key: np.array(sorted(points))[:, 1:] for key, points in points_of.items()}
    return arena_figures.leaks_page(values, yardstick, int(float(power)))


def _audit(rows: Rows, beside: Rows) -> Draw:
    first_row = next(row for row in beside if row["mechanism"] == audit.FIRST)
    (threshold,) = re.findall(r"(?:below|at least) (-?[\d.]+)", first_row["event"])
    claim, lower = first_row["claim"], first_row["lower bound"]
    bins = [dict(row) for row in rows]
    return lambda page: audit._draw(page, claim, lower, float(threshold), bins)


def _front(rows: Rows) -> Draw:
    points: dict[float, list[arena_fronts.Point]] = {}
    for row in rows:
        means = (np.array([row[head][0]]) for head in ("regret at T", "links at T", "bits sent"))
        name, lost = NAMES[row["algorithm"]], row[arena_fronts.LOST]
        point = arena_fronts.Point(name, row["settings"], *means, lost)
        points.setdefault(float(row["ε"]), []).append(point)
    return arena_fronts_figures.front_page(points, arena_fronts.HORIZON)


# What else is read, by its name.
BESIDE: Mapping[Any, Callable[[str], str]] = {
    _leaks: lambda name: name.replace("arena_leak", "arena"),
    _audit: lambda name: "audit_mechanisms",
}
WAYS: Mapping[str, Callable[..., Draw]] = {
    **{each.name: each.page for one in figures.EXPERIMENTS.values() for each in one.figures},
    "fig11_hybrid": table2_fig11_hybrid.FIGURE.page,
    "fig07_tradeoff(?:_smallest_gap)?": fig07_tradeoff.page,
    "fig09_graphs": fig09_graphs.page,
    "fig11_hybrid_cost": table2_fig11_hybrid.cost_page,
    "fig13_heterogeneity": fig13_heterogeneity.page,
    r"arena_regret_T(\d.*)": _regret,
    r"arena_leak_T(\d.*)": _leaks,
    r"arena_differ_T\d.*": arena_figures.spreads_page,
    r"arena_front_(?:messages|sums|actions)": _front,
    "arena_radius": arena_fronts_figures.radius_page,
    "audit": _audit,
    "worlds": worlds.page,
    "conditions": conditions.page,
    "consensus": consensus.page,
    "linear": linear.page,
    "noises": noises.page,
}
