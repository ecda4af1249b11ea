"""Regret with its band, and communication, over time; figures as files."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from fmab_jax.analysis import words
from fmab_jax.analysis.bands import confidence_band
from fmab_jax.analysis.tables import check_result
from fmab_jax.errors import array_of, flag, price, refuse
from fmab_jax.files import check_path, refuse_taken, whole_file
from fmab_jax.plots import captions, style

# A logarithmic axis of regret begins at this part of the smallest final value, or above.
_LOWEST_SHARE = 30
# Filled circles are links to the server, open squares links between agents.
_SIDES: dict[str, style.Style] = {
    "server": {"marker": "o", "markersize": 3, "markeredgewidth": 0.8},
    "peer": {"marker": "s", "markersize": 3, "markeredgewidth": 0.8, "mfc": "white"},
}


def plot_runs(
    runs: Mapping[str, xr.Dataset] | xr.Dataset,
    *,
    level: float = 0.95,
    kind: str = "simultaneous",
    server_price: float = 1.0,
    peer_price: float = 1.0,
    bounds: Mapping[str, ArrayLike] | None = None,
    width: str | float = "column",
    caption: bool = True,
) -> Figure:
    """Draws runs over time: regret with a band on top, communication below, facts in a caption.

    Both panels show means over the seeds. The lower one counts links to the server, and links
    between agents on the meter that the communication cost counts; with a price other than 1 it
    shows `communication_cost` with these prices instead. A vertical axis is logarithmic where the
    final values of the runs differ more than 20-fold; the time axis is logarithmic where all time
    grids are. The caption names every setting that is not its default, seeds and band, and how many
    seeds lost the best arm, or play a worse one at T, with Clopper-Pearson intervals.

    Args:
        runs: One result of ``simulate``; or up to 28 of them by the label to show; or the result of
            a ``sweep`` with up to 28 configurations, of curves or summaries, see `select_cells`.
        level: Confidence level of band and interval, in (0, 1).
        kind: Kind of band, see ``confidence_band``.
        server_price: Price c1 of an agent-server link, at least 0.
        peer_price: Price c2 of an agent-agent link, at least 0, on `communication_cost`'s default
            meter.
        bounds: By a run's label, bounds of its regret at its recorded slots, such as
            `fmab_jax.analysis.theory.regret_curve`; drawn as thin dotted lines.
        width: "column" (3.4 inches), "page" (7), or a number of inches in [2.5, 20].
        caption: Whether a part of the caption is drawn below the axes; `save_figure` writes it all.

    Returns:
        A figure for ``save_figure``; its axes are the regret and the link panel.

    Raises:
        ValueError: For what is no result over time, or an argument outside its range.

    Source:
        Section III (regret, communication cost) and figures 4, 5, 10, 12 of arXiv 2111.01570.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> figure = fmab.plot_runs({"epsilon = 1": data})
        >>> len(figure.axes)
        2
    """
    if not isinstance(runs, (Mapping, xr.Dataset)):
        refuse("runs", runs, "1 to 28 results by label", "write {'label': data}")
    runs = select_cells(runs) if isinstance(runs, xr.Dataset) else runs
    if not 1 <= len(runs) <= style.MOST:
        refuse("runs", list(runs), f"1 to {style.MOST} results by label", "split the figure")
    runs = {words.shorten(str(label)): _check_run(label, data) for label, data in runs.items()}
    prices = (price("server_price", server_price), price("peer_price", peer_price))
    bands = {k: confidence_band(x.get("regret", x), level, kind) for k, x in runs.items()}
    bounds = _check_bounds(bounds, runs)

    # Curves begin at (0, 0), except on a logarithmic axis, which has no 0.
    logarithmic = all(_is_logarithmic(data.time.values) for data in runs.values())
    begin = not logarithmic and all(data.time.values[0] > 0 for data in runs.values())
    finals = np.array([band["mean"].values[-1] for band in bands.values()])
    has_zero = begin and not (style.has_wide_range(finals) and finals.min() > 0)

    heights = (1.65, 1.2)
    flag("caption", caption)
    figure, (regret, links) = style.make_panels(heights, style.check_width(width))
    handles = []
    for index, (label, band) in enumerate(bands.items()):
        line_style = style.get_line_style(index)
        time, lower, mean, upper = (
            _prepend_zero(has_zero, band[name].values)
            for name in ("time", "lower", "mean", "upper")
        )
        regret.fill_between(time, lower, upper, color=line_style["color"], alpha=0.2, linewidth=0)
        handles += regret.plot(time, mean, label=label, **line_style)
        if label in bounds:
            thin: style.Style = {"linestyle": (0, (1, 2)), "linewidth": 0.8}
            regret.plot(band.time.values, bounds[label], color=line_style["color"], **thin)
    _draw_links(links, runs, prices, begin)

    _scale_regret(regret, finals, [band["mean"].values for band in bands.values()])
    regret.set_ylabel("cumulative regret\n(reward, summed over M agents)")
    links.set_xlabel("slot t")
    for axes in (regret, links):
        axes.margins(x=0.01)
    if links.get_yscale() == "linear":
        style.scale_linear(links, "y")
    if logarithmic:
        links.set_xscale("log")
    else:
        links.set_xlim(left=0)
        style.scale_linear(links, "x")
    figure.align_ylabels()
    sentences = _write_caption(runs, bands, prices)
    if bounds:
        sentences.insert(1, "Thin dotted lines: the theorems' bounds")
    return style.lay_out(figure, handles, sentences, height=sum(heights), draws_caption=caption)


def _check_bounds(
    bounds: Mapping[str, ArrayLike] | None, runs: Mapping[str, xr.Dataset]
) -> dict[str, ArrayLike]:
    """Returns bounds by the labels of runs; refuses others."""
    allowed, remedy = "a value per slot, by a run's label", "see regret_curve"
    if bounds is not None and not isinstance(bounds, (Mapping, xr.Dataset)):
        refuse("bounds", bounds, allowed, remedy)
    checked = {words.shorten(str(label)): values for label, values in (bounds or {}).items()}
    for label, values in checked.items():
        array = array_of("bounds", values, 10**6, allowed, remedy)
        if label not in runs or array.shape != runs[label].time.shape:
            refuse("bounds", label, allowed, remedy)
    return checked


def select_cells(data: xr.Dataset) -> dict[str, xr.Dataset]:
    """Returns the configurations of a sweep as runs by their labels; a run by its title.

    A label says the values of the parameters that have several.

    Raises:
        ValueError: If it holds no regret, or two configurations would have the same label.
    """
    curves = data.get("regret", data.get("regret_mean"))
    if curves is None:
        refuse("runs", "without regret", "a result of simulate or sweep", "pass it unchanged")
    dims = [str(dim) for dim in curves.dims if dim not in ("seed", "time")]
    data = check_result(data)
    for name in dims:
        if name not in data.coords:
            refuse("runs", f"without coordinate {name}", "a labelled result", "pass it unchanged")
    number = math.prod(data.sizes[dim] for dim in dims)
    if number > style.MOST:
        remedy = "select fewer with .sel(...)"
        refuse("runs", f"{number} configurations", f"at most {style.MOST}", remedy)
    data = words.add_titles(data)
    runs: dict[str, xr.Dataset] = {}
    for cell in captions.list_cells(data, dims):
        if "seeds" in cell and "seed" in cell.dims:
            cell = cell.isel(seed=slice(int(cell.seeds)))
        values = [words.format_value(data[n], cell[n].item()) for n in dims if data.sizes[n] > 1]
        label = ", ".join(values) or next(iter(words.list_facts(cell)), "run")
        if label in runs:
            remedy = "pass the runs by labels of your own"
            refuse("runs", label, "configurations whose values differ in six digits", remedy)
        runs[label] = cell
    return runs


def save_figure(figure: Figure, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Writes a figure at 300 dpi, and its whole caption as text beside it: NAME.txt.

    Each file is written whole or not at all: an old one is replaced only by a new one. The bytes
    depend on the figure and the matplotlib version only, not on the time of writing.

    Args:
        figure: The figure.
        path: Where to write; the ending, .png or .pdf, chooses the format.
        overwrite: Replace existing files.

    Returns:
        The path of the picture.

    Raises:
        ValueError: For another ending, or an existing file without ``overwrite``; a NAME.txt that
            already holds the caption is no such file.
        OSError: If the folder cannot be written; nothing is left behind.

    Example:
        >>> import tempfile
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> fmab.save_figure(fmab.plot_runs(data), tempfile.mkdtemp() + "/run.pdf").name
        'run.pdf'
    """
    path = check_path("path", path)
    if not isinstance(figure, Figure):
        refuse("figure", figure, "a figure", "pass what a plot function returned")
    ending = path.suffix.lower()
    if ending not in (".png", ".pdf"):
        refuse("path", str(path), "a file name ending in .png or .pdf", "change the ending")
    words = f"{figure.get_label()}\n".encode(errors="replace")
    texts = list_figure_files(figure, path)[1:]
    refuse_taken(path, overwrite)
    for text in texts:
        if not (text.is_file() and text.read_bytes() == words):
            refuse_taken(text, overwrite)
    metadata = {"CreationDate": None} if ending == ".pdf" else {"Software": None}
    # Type 42 keeps letters as letters: journals refuse type 3 fonts.
    with whole_file(path) as temporary, matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(temporary, format=ending[1:], dpi=300, metadata=metadata)
        for text in texts:
            with whole_file(text) as caption_file:
                caption_file.write_bytes(words)
    return path


def list_figure_files(figure: Figure, path: Path) -> list[Path]:
    """Returns which files `save_figure` writes: the picture, and the caption if there is one."""
    return [path, path.with_suffix(".txt")] if figure.get_label() else [path]


def _check_run(label: str, data: xr.Dataset) -> xr.Dataset:
    """Refuses what is not the result of one configuration; returns it by its slots."""
    field, remedy = f"runs[{label!r}]", "pass it unchanged"
    if not isinstance(data, xr.Dataset):
        refuse(field, type(data).__name__, "a result of simulate", remedy)
    summary = "regret" not in data and "regret_mean" in data
    regret, links = ("regret_mean", "links_mean") if summary else ("regret", "links")
    names = {*data.variables, *data.attrs} | {*["title"] * ("algorithm" in data.coords)}
    if missing := [n for n in (links, "priced", regret, "side", "title") if n not in names]:
        refuse(field, f"without {', '.join(missing)}", "a result of simulate", remedy)
    if {*data[regret].dims} - {"seed"} != {"time"}:
        remedy = "select one configuration with .sel(...) per run"
        refuse(field, data[regret].dims, "a result with dimensions seed and time", remedy)
    data = check_result(data, field)
    # Where horizons are swept, every configuration has slots of its own.
    return data.assign_coords(time=("time", data.slot.values)) if "slot" in data.coords else data


def _is_logarithmic(times: np.ndarray) -> bool:
    """Tells whether slots are spaced evenly rather in their logarithm than in themselves."""
    if len(times) < 3 or times[0] < 1:
        return False
    linear, log = np.diff(times), np.diff(np.log(times))
    return bool(log.std() / log.mean() < linear.std() / linear.mean())


def _prepend_zero(begin: bool, values: ArrayLike) -> np.ndarray:
    """Prepends slot 0, at which every series is 0."""
    return np.append(0, values) if begin else np.asarray(values)


def _scale_regret(axes: Axes, finals: np.ndarray, means: Sequence[np.ndarray]) -> None:
    """Scales the axis of regret, logarithmically where the final means differ much."""
    style.scale_values(axes, "y", finals)
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
    elif axes.get_yscale() == "log":
        # Bands may reach 0, and first slots are of no interest.
        values = np.concatenate(means)
        lowest = max(values[values > 0].min(), finals.min() / _LOWEST_SHARE)
        axes.set_ylim(bottom=0.8 * lowest)


def _draw_links(
    axes: Axes, runs: Mapping[str, xr.Dataset], prices: tuple[float, float], begin: bool
) -> None:
    """Draws the lower panel: a line per run and side of its links, or per run its cost."""
    paid = prices != (1.0, 1.0)
    totals: list[float] = []
    sides: set[str] = set()
    for index, data in enumerate(runs.values()):
        series = {side: values for side, values in _average_links(data).items() if values[-1] > 0}
        if paid:
            price_of = dict(zip(_SIDES, prices, strict=True))
            costs = [price_of[side] * values for side, values in series.items()]
            series = {"cost": np.sum([np.zeros(data.sizes["time"]), *costs], axis=0)}
        sides |= set(series)
        for name, values in (series or {"none": np.zeros(data.sizes["time"])}).items():
            totals.append(float(values[-1]))
            # Runs, and the two sides, are marked at different slots.
            mark_spacing = (0.06 + 0.03 * (index % 4) + 0.12 * (name == "peer"), 0.25)
            line_style = style.get_line_style(index) | _SIDES.get(name, {})
            time = _prepend_zero(begin, data.time.values)
            axes.plot(time, _prepend_zero(begin, values), markevery=mark_spacing, **line_style)
    positive = [total for total in totals if total > 0]
    if not positive:
        axes.set_ylim(-0.04, 1)
        axes.set_yticks([0, 1])
        note, middle = "no cost" if paid else "no links", (0.5, 0.5)
        axes.annotate(note, middle, xycoords="axes fraction", ha="center", fontsize=style.FONT)
    elif max(positive) > 20 * min(positive):
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_ylim(-0.04 * max(positive), 1.06 * max(positive))
    axes.set_ylabel("communication cost\nso far" if paid else "links built so far")
    entries = [
        Line2D([], [], color="0.3", linestyle="none", label=f"{side} links", **mark)
        for side, mark in _SIDES.items()
        if side in sides
    ]
    if entries:
        # In the gap over the panel, on the side without the factor of ten.
        place: style.Style = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2}
        spaces: style.Style = {"handletextpad": 0, "columnspacing": 0.8}
        axes.legend(handles=entries, **place, **spaces, **style.LEGEND)


def _average_links(data: xr.Dataset) -> dict[str, np.ndarray]:
    """Returns the mean links so far [time] of each side, peers on the meters that cost."""
    sides = {"server": data.side == "server", "peer": (data.side == "peer") & data.priced}
    links = data.links.mean("seed") if "links" in data else data.links_mean
    return {
        side: links.isel(meter=np.flatnonzero(meters)).sum("meter").values
        for side, meters in sides.items()
    }


def _write_caption(
    runs: Mapping[str, xr.Dataset], bands: Mapping[str, xr.Dataset], prices: tuple[float, float]
) -> list[captions.Sentence]:
    """Returns the caption: what all runs share once, then what differs, run by run."""
    exposures = captions.describe_exposures(runs)
    # Listed leaks are not repeated as facts.
    plain = any(len(forms) > 1 for forms in exposures if isinstance(forms, tuple))
    facts = {
        label: [*words.list_facts(data, leaks=not plain), captions.describe_seeds(data)]
        for label, data in runs.items()
    }
    first, *remaining = facts.values()
    shared = [fact for fact in first if all(fact in facts_of_run for facts_of_run in remaining)]
    differing = {}
    for label, run_facts in facts.items():
        label_facts = {_normalize_fact(part) for part in (label, *label.split(", "), *shared)}
        differing[label] = ", ".join(
            fact for fact in run_facts if _normalize_fact(fact) not in label_facts
        )
    groups = words.group_labels(differing).items()
    note = "Nε: what a message leaks of one reward" * any("Nε" in label for label in runs)
    band = next(iter(bands.values()))
    paid = f"Cost: {prices[0]:g} per server link, {prices[1]:g} per peer link"
    cost = [paid] * (prices != (1.0, 1.0))
    exploring = []
    if all("chosen_arm" in data or "undecided" in data for data in runs.values()):
        exploring = captions.describe_exploring(
            [d.undecided if "undecided" in d else (d.chosen_arm < 0).sum() for d in runs.values()],
            [float(band.seeds) for band in bands.values()],
        )
    numbers = {run_facts[-1] for run_facts in facts.values()}
    seeds = captions.write_seed_range([int(band.seeds) for band in bands.values()])
    lines = f"Lines: means over the seeds; shaded: {band.attrs['description']}"
    return [
        captions.describe_setting([*shared, *[seeds] * (len(numbers) > 1)], seeds),
        "; ".join(f"{labels}: {text}" for text, labels in groups if text),
        note,
        *exposures,
        (lines, f"Lines: means; shaded: {captions.read_band_kind(band)}"),
        captions.describe_failures(captions.describe_run_events(bands), bands),
        *exploring,
        *cost,
        *_describe_links(runs),
    ]


def _normalize_fact(words: str) -> str:
    """Normalizes a fact to compare it with a label: "ε = 1.0" and "ε = 1" are equal."""
    return re.sub(r"\.0\b| (agent|arm|slot)s?$", "", words.lower())


def _describe_links(runs: Mapping[str, xr.Dataset]) -> list[str]:
    """Describes the meter of peer links, and names runs without links."""
    meters = words.group_labels({label: captions.name_meters(data) for label, data in runs.items()})
    meters.pop("", None)
    sentences = [
        f"Peer links are counted on the {meter}" + f" ({labels})" * (len(meters) > 1)
        for meter, labels in meters.items()
    ]
    silent = [k for k, data in runs.items() if not any(map(np.any, _average_links(data).values()))]
    if silent and len(runs) > 1:
        sentences.append(f"No links: {' / '.join(silent)}")
    return sentences
