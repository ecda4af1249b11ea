"""Draws pictures anew from the numbers beside them: nothing is simulated, and no word changes.

python -m experiments redraw          all pictures that can be drawn so
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from experiments import (
    arena,
    arena_figures,
    arena_fronts,
    arena_fronts_figures,
    multiverse,
    pictures,
)
from experiments import multiverse_figures as figures

Draw = Callable[[pictures.Page], None]
ENDS = ("", ", lower", ", upper")
NAMES = {entry.label: name for name, entry in arena.LINE_UP.items()}


def judge(folder: Path) -> list[Path]:
    """Draws every picture of a folder that a way is known for."""
    written: list[Path] = []
    for name in sorted(path.stem for path in folder.glob("*.csv")):
        if any(re.fullmatch(pattern, name) for pattern in WAYS):
            written += pictures.draw_files(name, drawing_of(folder, name), folder)
    return written


def drawing_of(folder: Path, name: str) -> Draw:
    """Returns what draws a picture from the numbers in a folder.

    Raises:
        LookupError: If nothing can draw it so.
    """
    for pattern, way in WAYS.items():
        if found := re.fullmatch(pattern, name):
            return way(folder, name, *found.groups())
    raise LookupError(f"{name} cannot be drawn from its numbers alone: simulate it")


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    """Returns the numbers beside a picture."""
    with (folder / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def three(row: Mapping[str, str], head: str) -> tuple[float, ...]:
    """Returns a mean with its interval."""
    return tuple(float(row[f"{head}{end}"]) for end in ENDS)


def _curves(folder: Path, name: str, power: str) -> Draw:
    points: dict[str, list[tuple[float, ...]]] = {}
    for row in rows_of(folder, name):
        if row["quantity"] == "regret":
            ends = (float(row[end]) for end in ("mean", "lower", "upper"))
            points.setdefault(NAMES[row["curve"]], []).append((int(row["slot"]), *ends))
    bands = {}
    for each, own in points.items():
        time, *values = np.array(own).T
        named = zip(("mean", "lower", "upper"), values, strict=True)
        bands[each] = xr.Dataset({n: ("time", v) for n, v in named}, {"time": time.astype(int)})
    return arena_figures.curves_page(bands, int(float(power)))


def _sent(folder: Path, name: str) -> Draw:
    heads = ("links at T", "bits sent", "regret at T")
    return arena_figures.sent_page(
        {
            NAMES[row["algorithm"]]: {head: three(row, head) for head in heads}
            for row in rows_of(folder, name)
        }
    )


def _leaks(folder: Path, name: str, power: str) -> Draw:
    views = {what.who: view for view, what in arena.VIEWS.items()}
    found: dict[tuple[str, str], list[Any]] = {}
    for row in rows_of(folder, name):
        if not row["why not run"]:
            own = found.setdefault((views[row["view"]], NAMES[row["algorithm"]]), [])
            own.append((float(row["ε"]), *three(row, "regret at T")))
    yardstick = None
    for row in rows_of(folder, name.replace("leak", "links")):
        if NAMES[row["algorithm"]] == arena.YARDSTICK:
            yardstick = float(row["regret at T"])
    values = {key: np.array(sorted(own))[:, 1:] for key, own in found.items()}
    return arena_figures.leaks_page(values, yardstick, int(float(power)))


def _front(folder: Path, name: str) -> Draw:
    told: dict[float, list[arena_fronts.Point]] = {}
    for row in rows_of(folder, name):
        numbers = (np.array([float(row[h])]) for h in ("regret at T", "links at T", "bits sent"))
        each = arena_fronts.Point(
            NAMES[row["algorithm"]], row["settings"], *numbers, int(row[arena_fronts.LOST])
        )
        told.setdefault(float(row["ε"]), []).append(each)
    return arena_fronts_figures.front_page(told, arena_fronts.HORIZON)


def _bars(folder: Path, name: str) -> Draw:
    told = multiverse.read(folder)
    order = figures.ordered(dict.fromkeys(each.sentence for each in told))
    return figures.bars_page(order, multiverse.counts_of(told))


WAYS: Mapping[str, Callable[..., Draw]] = {
    r"arena_regret_T(\d.*)": _curves,
    r"arena_links_T\d.*": _sent,
    r"arena_leak_T(\d.*)": _leaks,
    r"arena_front_(?:messages|sums|actions)": _front,
    multiverse.NAME: _bars,
}
