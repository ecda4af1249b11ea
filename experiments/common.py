"""What all experiments share: horizons, recorded slots, bands, captions, tables."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

import fmab_jax as fmab
from experiments import seen
from fmab_jax.analysis.bands import describe_band, student_critical
from fmab_jax.analysis.words import write_count, write_number
from fmab_jax.files import whole_file
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.plugins import imported
from fmab_jax.plots import captions, frames
from fmab_jax.plots.style import get_line_style
from fmab_jax.sampling import keys

# The paper never states T. Its log(T) of about 4 rounds fits 10^4 best; the others show what
# changes later.
# A rival that is no part of the package.
DEMAB = imported(Path(__file__).parents[1] / "docs/examples/demab.py").DEMAB

HORIZONS = (10**4, 10**5, 10**6)
SEEDS = 1000
LEVEL = 0.95

# What the bands of `paired_bands` are, for captions.
PAIRED = (
    "In the panels of regret, the band of {} is that of its mean, the others' are those of the "
    "paired difference to it"
)

# What heterogeneous means are at spread 1.
DIFFER = (
    "each agent's means are the global means plus the widest perturbation that keeps them in "
    "[0, 1] and sums to zero over the agents"
)

Results = Mapping[int, xr.Dataset]  # by horizon


def slots(horizon: int) -> np.ndarray:
    """Returns 100 recorded slots: half evenly spaced (even), half in their logarithm (odd)."""
    even = np.round(np.linspace(horizon / 50, horizon, 50))
    odd = 2 * np.round(np.geomspace(50, horizon / 2.1, 50)) + 1
    return np.union1d(even, odd).astype(np.int64)


def power(horizon: int) -> str:
    """Writes a horizon for the name of a file."""
    short = f"{horizon:.0e}".replace("+0", "")
    return short if float(short) == horizon else str(horizon)


def titles(results: Iterable[int]) -> list[str]:
    """Names the horizons of the columns of a figure, where there are several."""
    horizons = list(results)
    return [f"T = {write_count(T)} slots" if len(horizons) > 1 else "" for T in horizons]


def draw_bands(axes: Axes, bands: Mapping[str, xr.Dataset], **options: Any) -> list[Any]:
    """Draws curves over time with their bands, by label; returns the legend's entries."""
    handles = []
    for index, (label, band) in enumerate(bands.items()):
        look = get_line_style(index) | options
        time, lower, upper = band.time, band.lower, band.upper
        axes.fill_between(time, lower, upper, color=look["color"], alpha=0.2, linewidth=0)
        handles += axes.plot(time, band["mean"], label=label, **look)
    return handles


def difference_bands(curves: Mapping[str, xr.DataArray], reference: str) -> dict[str, xr.Dataset]:
    """Returns the bands of the others' paired differences to one of the curves."""
    return {
        label: fmab.paired_difference(curve, curves[reference], LEVEL)
        for label, curve in curves.items()
        if label != reference
    }


def paired_bands(curves: Mapping[str, xr.DataArray], reference: str) -> dict[str, xr.Dataset]:
    """Returns the reference's band, and around each other mean that of its paired difference.

    Instances differ so much that the bands of the means themselves would overlap.
    """
    reference_band = fmab.confidence_band(curves[reference], LEVEL)
    differences = difference_bands(curves, reference)
    moved = {
        label: band.assign(
            {name: band[name] + reference_band["mean"] for name in ("mean", "lower", "upper")}
        )
        for label, band in differences.items()
    }
    return {label: moved.get(label, reference_band) for label in curves}


def leak_of(algorithm: Any, agents: int) -> float | None:
    """Returns the most that messages leak of a reward over a run, pure; None without messages."""
    rows = fmab.privacy_ledger(algorithm, agents)
    return max((row.epsilon for row in rows if row.view is not ViewKind.ACTIONS), default=None)


def leak_text(leak: float | None) -> str:
    """Writes a leak."""
    if leak is None:
        return "nothing is sent"
    return "no bound" if math.isinf(leak) else f"Nε = {write_number(leak)}"


def leaks(members: Mapping[str, Any], agents: int) -> str:
    """Says what a message leaks of one reward with each of some algorithms, by label."""
    texts = {name: leak_text(leak_of(algorithm, agents)) for name, algorithm in members.items()}
    return f"Leak of one reward to whoever sees the messages of its agent: {seen.grouped(texts)}"


def level_at_end(name: str, means: Mapping[int, float]) -> str:
    """Says the mean regret at each horizon that differences are to be compared with."""
    values = [f"{mean:,.0f} (T = {write_count(horizon)})" for horizon, mean in means.items()]
    return f"Mean regret at T of the reference, {name}: {', '.join(values)}"


def renamed(results: Results, **names: Mapping[str, str]) -> dict[int, xr.Dataset]:
    """Returns results with other labels of swept values, for texts and figures."""

    def rename(data: xr.Dataset) -> xr.Dataset:
        coords = {
            dim: (dim, [words[label] for label in data[dim].values], data[dim].attrs)
            for dim, words in names.items()
        }
        return data.assign_coords(coords)

    return {horizon: rename(data) for horizon, data in results.items()}


def caption(setting: str, results: Results, *sentences: str, bars: str = "") -> str:
    """Returns setting, horizons, seeds, band (or bars), further sentences, what went wrong."""
    band = f"Lines: means over the seeds; shaded: {describe_band(LEVEL, 'simultaneous')}"
    if bars:
        band = f"{bars}: pointwise {100 * LEVEL:g} % confidence interval (Student t)"
    parts = [
        setting_of(setting, {T: [data] for T, data in results.items()}),
        band,
        *sentences,
        *_went_wrong(results),
    ]
    return ". ".join(parts) + "."


def listed(horizons: Iterable[int]) -> str:
    """Writes horizons: "10⁴, 10⁵ and 10⁶"."""
    return seen.listed(map(write_count, horizons))


def setting_of(setting: str, results: Mapping[int, Sequence[xr.Dataset]]) -> str:
    """Writes what all runs share, their horizons and their seeds."""
    return f"{setting}, T = {listed(results)} slots, {seeds_of(results)}"


def seeds_of(results: Mapping[int, Sequence[xr.Dataset]]) -> str:
    """Writes how many seeds there are: "1000 seeds", or by horizon where these differ."""
    texts = {
        f"T = {write_count(T)}": " or ".join(
            write_count(number) for number in sorted({data.sizes["seed"] for data in runs})
        )
        for T, runs in results.items()
    }
    return f"{seen.grouped(texts)} seeds"


def _went_wrong(results: Results) -> list[str]:
    """Says how many seeds lost the best arm, play a worse one, or had not decided at T."""
    tables = {T: fmab.table(data, level=LEVEL) for T, data in results.items()}
    attrs = next(iter(tables.values())).attrs
    names = dict.fromkeys(["horizon", *attrs["dims"]])
    rows = pd.concat([frame.assign(horizon=T) for T, frame in tables.items()], ignore_index=True)
    # Labels that are words speak for themselves.
    is_text = {name: all(isinstance(value, str) for value in rows[name]) for name in names}
    symbols = {name: {"symbol": ""} if is_text[name] else {} for name in names}
    words = {name: attrs["words"].get(name, {}) | symbols[name] for name in names}
    words["horizon"] = {"symbol": "T"}
    rows.attrs = {"words": words}
    labels = frames.label_rows(rows, [name for name in names if rows[name].nunique() > 1])
    undecided = f"{write_count((rows.undecided * rows.seeds).sum().round())} had not decided at T"
    events = captions.describe_events(rows, labels, LEVEL)
    return [*events, undecided, *most_regret(results.items())]


def most_regret(results: Iterable[tuple[int, xr.Dataset]]) -> list[str]:
    """Says the largest regret of a seed that lost the best arm or plays a worse one."""
    worst = []
    for horizon, data in results:
        last = data.regret.isel(time=-1).load()
        wrong = last.where(data.best_arm_lost.astype(bool) | data.worse_arm_played.astype(bool))
        if bool(wrong.notnull().any()):
            at = {str(name): int(place) for name, place in wrong.argmax(...).items()}
            mean = last.isel({name: place for name, place in at.items() if name != "seed"}).mean()
            # Some sweep the horizon itself.
            own = int(data.horizon[at["horizon"]]) if "horizon" in at else horizon
            worst.append((float(wrong.max()), float(mean), own))
    if not worst:
        return []
    most, mean, horizon = max(worst)
    return [
        f"The largest regret of a seed of these two kinds is {most:,.0f}, at T = "
        f"{write_count(horizon)}, where the mean of its configuration is {mean:,.0f}"
    ]


def save_table(
    rows: Sequence[Mapping[str, Any]], folder: Path, name: str, notes: str
) -> list[Path]:
    """Writes rows as Markdown, notes below, and as CSV, where an interval has three columns."""
    folder.mkdir(parents=True, exist_ok=True)
    markdown, table = folder / f"{name}.md", folder / f"{name}.csv"
    lines = [*table_lines(rows), "", notes, ""]
    with whole_file(markdown) as temporary:
        temporary.write_text("\n".join(lines), encoding="utf-8")
    save_rows(rows, table)
    return [markdown, table]


def one_horizon(horizon: int) -> Callable[[Sequence[int]], list[int]]:
    """Returns the function that chooses a figure's horizon; the least if it is not allowed."""
    return lambda options: [horizon if horizon in options else min(options)]


def save_rows(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    """Writes rows as CSV, where an interval has three columns."""
    flat: list[dict[str, Any]] = []
    for row in rows:
        flat.append({})
        for head, value in row.items():
            if isinstance(value, tuple):
                names = (head, f"{head}, lower", f"{head}, upper")
                flat[-1] |= dict(zip(names, value, strict=True))
            else:
                flat[-1][head] = value
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        heads = dict.fromkeys(head for row in flat for head in row)
        writer = csv.DictWriter(file, list(heads), restval="")
        writer.writeheader()
        writer.writerows(flat)
    return path


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Reads rows of a CSV as `save_rows` was given them: numbers, and intervals in one value."""
    with path.open(newline="", encoding="utf-8") as file:
        return [_join_intervals(row) for row in csv.DictReader(file)]


def _join_intervals(row: Mapping[str, str]) -> dict[str, Any]:
    joined: dict[str, Any] = {}
    for head, text in row.items():
        ends = (f"{head}, lower", f"{head}, upper")
        if ends[0] in row and text:
            joined[head] = tuple(float(row[name]) for name in (head, *ends))
        elif not head.endswith((", lower", ", upper")):
            joined[head] = _value(text)
    return joined


def _value(text: str) -> Any:
    """Returns what a cell holds: a truth value, a number, or else its words."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def table_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Returns rows as a table in Markdown."""
    heads = list(rows[0])
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(cell(row[h]) for h in heads) + " |" for row in rows]


def cell(value: Any) -> str:
    """Writes a value, or a mean with its interval, of which two digits are told."""
    if not isinstance(value, tuple):
        return str(value)
    mean, lower, upper = value
    if upper == lower:
        return f"{mean:,.6g}"
    digits = max(0, 1 - math.floor(math.log10((upper - lower) / 2)))
    return f"{mean:,.{digits}f} [{lower:,.{digits}f}, {upper:,.{digits}f}]"


def interval(values: Any, level: float = LEVEL) -> tuple[float, float, float]:
    """Returns the mean over the seeds and its pointwise confidence interval."""
    values = np.asarray(values, np.float64)
    mean = float(values.mean())
    critical = student_critical(values.size - 1, 1 - level)
    half = critical * float(values.std(ddof=1)) / values.size**0.5
    return mean, mean - half, mean + half


def disagreement(agents: int, arms: int, spread: float, instances: int = 100) -> float:
    """Returns the share of agents whose local best arm is not the global best, over instances."""
    wrong = []
    for shared, apart in _parts_of_means(agents, arms, instances):
        wrong.append((shared + spread * apart).argmax(axis=1) != shared.argmax())
    return float(np.mean(wrong))


@functools.cache
def _parts_of_means(agents: int, arms: int, instances: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns the global means of instances, and by how much agents differ at spread 1.

    All spreads scale one perturbation.
    """
    bound = fmab.Problem(agents=agents, arms=arms, spread=1.0).bind()
    with jax.enable_x64(True):

        def one(seed: Any) -> Any:
            return bound.draw(keys.seed_key(jnp.uint32(0), seed)).means

        seeds = jnp.arange(instances, dtype=jnp.uint32)
        seed_means = np.asarray(jax.jit(jax.vmap(one))(seeds), np.float64)
    return [(means.mean(axis=0), means - means.mean(axis=0)) for means in seed_means]
