"""Draws regret with its band, and communication, over time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from fmab_jax.analysis import words
from fmab_jax.analysis.agents import describe_agents, find_absent_agents, has_equal
from fmab_jax.analysis.bands import confidence_band
from fmab_jax.analysis.checks import check_result
from fmab_jax.analysis.costs import read_exposure
from fmab_jax.errors import flag, refuse
from fmab_jax.parts.outputs.standard import REGRET
from fmab_jax.plots import captions, style
from fmab_jax.plots.frames import write_axis_label

# A logarithmic axis of regret begins at this part of the smallest final value, or above.
_LOWEST_SHARE = 30
_HEIGHTS = (1.65, 1.2)
# Filled circles are links to the server, open squares links between agents.
_SIDES: dict[str, style.Style] = {
    "server": {"marker": "o", "markersize": 3, "markeredgewidth": 0.8},
    "peer": {"marker": "s", "markersize": 3, "markeredgewidth": 0.8, "mfc": "white"},
}


class _Curve(NamedTuple):
    """A line of the upper panel.

    Attributes:
        run: Label of its run; "" for the only one of several agents.
        agent: Label of its agent; "" for the sum over all agents.
        data: The result.
    """

    run: str
    agent: str
    data: xr.Dataset

    @property
    def label(self) -> str:
        """Label of both."""
        return ", ".join(filter(None, (self.run, self.agent)))


def plot_runs(
    runs: Mapping[str, xr.Dataset] | xr.Dataset,
    *,
    level: float = 0.95,
    kind: str = "simultaneous",
    width: str | float = "column",
    caption: bool = True,
) -> Figure:
    """Draws runs over time: regret with a band on top, communication below, facts in a caption.

    Both panels show means over the seeds. The lower one counts links to the server, and links
    between agents on the meter that the communication cost counts. A vertical axis is logarithmic
    where the final values of the runs differ more than 20-fold; the time axis is logarithmic where
    all time grids are. The caption names every setting that is not its default, seeds and band, and
    how many seeds lost the best arm, or play a worse one at T, with Clopper-Pearson intervals.

    Of agents that `select_regret` takes apart, colours are agents and strokes are runs; more than
    four runs have the colours, and their agents the strokes. Links are those of all agents of a
    run, a line for each run.

    Args:
        runs: One result of ``simulate``; or up to 28 of them by the label to show; or the result of
            a ``sweep`` with up to 28 configurations, of curves or summaries, see `split_runs`.
        level: Confidence level of band and interval, in (0, 1).
        kind: Kind of band, see ``confidence_band``.
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
    title = _name_axes(runs) if isinstance(runs, xr.Dataset) else ""
    if isinstance(runs, xr.Dataset):
        curves = _split_curves(runs)
    else:
        curves = [_Curve(words.shorten(str(label)), "", data) for label, data in runs.items()]
    if not 1 <= len(curves) <= style.MOST:
        remedy = "select fewer with .sel(...), or split the figure"
        refuse("runs", f"{len(curves)} runs", f"1 to {style.MOST} results by label", remedy)
    curves = [curve._replace(data=_check_run(curve.label, curve.data)) for curve in curves]
    styles, link_styles = _choose_styles(curves)
    bands = [confidence_band(x.data.get("regret", x.data), level, kind) for x in curves]
    flag("caption", caption)
    runs = {curve.run: curve.data for curve in curves}
    if curves[0].agent:
        runs = {run: data.drop_vars("agent") for run, data in runs.items()}

    # Curves begin at (0, 0), except on a logarithmic axis, which has no 0.
    is_logarithmic = all(_is_logarithmic(data.time.values) for data in runs.values())
    begin = not is_logarithmic and all(data.time.values[0] > 0 for data in runs.values())
    figure, (regret, links) = style.make_panels(_HEIGHTS, style.check_width(width))
    is_equal = _find_equal(curves, bands)
    lines = _draw_regret(regret, curves, bands, styles, is_equal, begin)
    _draw_links(links, runs, link_styles, begin)
    links.set_xlabel("slot t")
    for axes in (regret, links):
        axes.margins(x=0.01)
    if is_logarithmic:
        links.set_xscale("log")
    else:
        links.set_xlim(left=0)
        style.scale_linear(links, "x")
    figure.align_ylabels()
    first_bands = {c.run: band for c, band in reversed([*zip(curves, bands, strict=True)])}
    agents = describe_agents(str(bands[0]["mean"].attrs.get("metric")), is_equal)
    sentences = _write_caption(runs, {run: first_bands[run] for run in runs}, agents)
    place: style.Style = {"legend_title": title, "height": sum(_HEIGHTS), "draws_caption": caption}
    if curves[0].agent:
        place["legend_title"] = ""
    if curves[0].agent and len(runs) > 1:
        return style.lay_out(figure, _list_entries(curves, styles, link_styles), sentences, **place)
    return style.lay_out(figure, lines, sentences, **place)


def _list_varied(data: xr.Dataset) -> list[str]:
    """Returns the parameters of a sweep that have several values."""
    regret = data.get("regret", data.get("regret_mean", xr.DataArray()))
    dims = (str(dim) for dim in regret.dims if dim not in ("seed", "time"))
    return [name for name in dims if data.sizes[name] > 1]


def _name_axes(data: xr.Dataset) -> str:
    """Names the parameters of a sweep that have several values, for the head of a legend."""
    return ", ".join(write_axis_label(data[name]) for name in _list_varied(data))


def split_runs(data: xr.Dataset) -> dict[str, xr.Dataset]:
    """Returns the configurations of a sweep as runs by their labels; a run by its title.

    A label says the values of the parameters that have several.

    Raises:
        ValueError: If it holds no regret, or two configurations would have the same label.
    """
    return {curve.label: curve.data for curve in _split_curves(data)}


def _split_curves(data: xr.Dataset) -> list[_Curve]:
    """Returns the configurations of a sweep, or the agents of each, without those it lacks."""
    if not {"regret", "regret_mean"} & {*data}:
        refuse("runs", "without regret", "a result of simulate or sweep", "pass it unchanged")
    data = words.add_titles(check_result(data))
    varied = _list_varied(data)
    # A parameter of one value may still be a dimension.
    kept = {*varied, "seed", "time", "meter"}
    data = data.squeeze([dim for dim in data.dims if dim not in kept and data.sizes[dim] == 1])
    curves: dict[str, _Curve] = {}
    is_absent = find_absent_agents(data.seeds) if "agent" in varied else xr.DataArray(False)
    for place in np.ndindex(*(data.sizes[name] for name in varied)):
        at = dict(zip(varied, place, strict=True))
        if is_absent.isel({name: at[str(name)] for name in is_absent.dims}):
            continue
        cell = data.isel(at)
        if "seeds" in cell and "seed" in cell.dims:
            cell = cell.isel(seed=slice(int(cell.seeds)))
        values = {name: words.format_value(data[name], cell[name].item()) for name in varied}
        agent = values.pop("agent", "")
        run = ", ".join(values.values()) or next(iter(words.list_facts(cell)), "run") * (not agent)
        curve = _Curve(run, agent, cell)
        if curve.label in curves:
            remedy = "pass the runs by labels of your own"
            refuse("runs", curve.label, "configurations whose values differ in six digits", remedy)
        curves[curve.label] = curve
    return [*curves.values()]


def _choose_styles(
    curves: Sequence[_Curve],
) -> tuple[list[style.Style], dict[str, style.Style]]:
    """Returns the look of each curve, and by run that of its links."""
    runs, agents = ([*dict.fromkeys(x)] for x in zip(*(c[:2] for c in curves), strict=True))
    styles = [style.get_line_style(index) for index in range(len(curves))]
    if agents == [""]:
        return styles, dict(zip(runs, styles, strict=True))
    plain: style.Style = {"color": "0.3", "linestyle": "-", "linewidth": 1.1}
    if len(runs) == 1:
        return styles, {runs[0]: plain}
    most = len(style.STROKES)
    if len(runs) <= most:
        colours = dict(zip(agents, style.list_colours(len(agents)), strict=True))
        strokes = dict(zip(runs, style.STROKES, strict=False))
        styles = [plain | {"color": colours[c.agent], "linestyle": strokes[c.run]} for c in curves]
        return styles, {run: plain | {"linestyle": stroke} for run, stroke in strokes.items()}
    if len(agents) > most:
        allowed = f"at most {most} configurations, or {most} agents"
        remedy = "select fewer, as with --select"
        refuse("runs", f"{len(runs)} configurations of {len(agents)} agents", allowed, remedy)
    colours = dict(zip(runs, style.list_colours(len(runs)), strict=True))
    strokes = dict(zip(agents, style.STROKES, strict=False))
    styles = [plain | {"color": colours[c.run], "linestyle": strokes[c.agent]} for c in curves]
    return styles, {run: plain | {"color": colour} for run, colour in colours.items()}


def _list_entries(
    curves: Sequence[_Curve], styles: Sequence[style.Style], link_styles: Mapping[str, style.Style]
) -> list[list[Artist]]:
    """Returns the entries of a legend: agents, then runs, each with what tells it apart."""
    has_colours = len({look["color"] for look in link_styles.values()}) > 1
    plain: style.Style = {"color": "0.3"} if has_colours else {"linestyle": "-"}
    looks = {curve.agent: look | plain for curve, look in zip(curves, styles, strict=True)}
    return [
        [Line2D([], [], label=label, **look) for label, look in group.items()]
        for group in (looks, link_styles)
    ]


def _find_equal(curves: Sequence[_Curve], bands: Sequence[xr.Dataset]) -> dict[str, bool]:
    """Tells of each run with several agents whether all have the same curve and band."""
    shown: dict[str, list[np.ndarray]] = {}
    for curve, band in zip(curves, bands, strict=True):
        if curve.agent:
            ends = [band[name].values for name in ("lower", "mean", "upper")]
            shown.setdefault(curve.run, []).append(np.stack(ends))
    return {run: has_equal(x) for run, x in shown.items() if len(x) > 1}


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


def _draw_regret(
    axes: Axes,
    curves: Sequence[_Curve],
    bands: Sequence[xr.Dataset],
    styles: Sequence[style.Style],
    is_equal: Mapping[str, bool],
    begin: bool,
) -> list[Line2D]:
    """Draws the upper panel: a line and its band per curve; returns the lines."""
    finals = np.array([band["mean"].values[-1] for band in bands])
    begin = begin and not (style.has_wide_range(finals) and finals.min() > 0)
    handles, shaded = list[Line2D](), set[str]()
    for curve, band, line_style in zip(curves, bands, styles, strict=True):
        time, lower, mean, upper = (
            _prepend_zero(begin, band[name].values) for name in ("time", "lower", "mean", "upper")
        )
        equal = is_equal.get(curve.run, False)
        if not (equal and curve.run in shaded):
            colour = "0.3" if equal else line_style["color"]
            axes.fill_between(time, lower, upper, color=colour, alpha=0.2, linewidth=0)
        shaded.add(curve.run)
        handles += axes.plot(time, mean, label=curve.agent or curve.run, **line_style)
    style.scale_values(axes, "y", finals)
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
    elif axes.get_yscale() == "log":
        # Bands may reach 0, and first slots are of no interest.
        values = np.concatenate([band["mean"].values for band in bands])
        lowest = max(values[values > 0].min(), finals.min() / _LOWEST_SHARE)
        axes.set_ylim(bottom=0.8 * lowest)
    name = str(bands[0]["mean"].attrs.get("long_name", REGRET.label))
    unit = "(reward, summed over M agents)" if name == REGRET.label else "(reward)"
    axes.set_ylabel(f"{style.wrap_text(name, _HEIGHTS[0])}\n{unit}")
    return handles


def _draw_links(
    axes: Axes, runs: Mapping[str, xr.Dataset], styles: Mapping[str, style.Style], begin: bool
) -> None:
    """Draws the lower panel: a line per run and side of its links, or a line at 0."""
    totals, drawn = list[float](), set[str]()
    for index, (run, data) in enumerate(runs.items()):
        sides = {side: links for side, links in _average_links(data).items() if links[-1] > 0}
        drawn |= {*sides}
        for side, links in (sides or {"": np.zeros(data.sizes["time"])}).items():
            totals.append(float(links[-1]))
            # Runs, and the two sides, are marked at different slots.
            mark_spacing = (0.06 + 0.03 * (index % 4) + 0.12 * (side == "peer"), 0.25)
            line_style = styles[run] | _SIDES.get(side, {})
            time = _prepend_zero(begin, data.time.values)
            axes.plot(time, _prepend_zero(begin, links), markevery=mark_spacing, **line_style)
    positive = [total for total in totals if total > 0]
    if not positive:
        axes.set_ylim(-0.04, 1)
        axes.set_yticks([0, 1])
        place: style.Style = {"xycoords": "axes fraction", "ha": "center", "fontsize": style.FONT}
        axes.annotate("no links", (0.5, 0.5), **place)
    elif max(positive) > 20 * min(positive):
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_ylim(-0.04 * max(positive), 1.06 * max(positive))
        style.scale_linear(axes, "y")
    axes.set_ylabel("links built so far")
    if positive:
        entries = [
            Line2D([], [], color="0.3", linestyle="none", label=f"{side} links", **_SIDES[side])
            for side in _SIDES
            if side in drawn
        ]
        # In the gap over the panel, on the side without the factor of ten.
        corner: style.Style = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2}
        spaces: style.Style = {"handletextpad": 0, "columnspacing": 0.8}
        axes.legend(handles=entries, **corner, **spaces, **style.LEGEND)


def _average_links(data: xr.Dataset) -> dict[str, np.ndarray]:
    """Returns the mean links so far [time] of each side, peers on the meters that cost."""
    sides = {"server": data.side == "server", "peer": (data.side == "peer") & data.priced}
    links = data.links.mean("seed") if "links" in data else data.links_mean
    return {
        side: links.isel(meter=np.flatnonzero(meters)).sum("meter").values
        for side, meters in sides.items()
    }


def _write_caption(
    runs: Mapping[str, xr.Dataset],
    bands: Mapping[str, xr.Dataset],
    agents: Sequence[captions.Sentence] = (),
) -> list[captions.Sentence]:
    """Returns the caption: what all runs share once, then what differs, run by run."""
    exposures = captions.describe_exposures({k: read_exposure(data) for k, data in runs.items()})
    # Listed leaks are not repeated as facts.
    has_leaks = any(isinstance(sentence, tuple) for sentence in exposures)
    facts = {
        label: [*words.list_facts(data, leaks=not has_leaks), _describe_seeds(data)]
        for label, data in runs.items()
    }
    shared = [fact for fact in next(iter(facts.values())) if all(fact in x for x in facts.values())]
    numbers = {texts[-1] for texts in facts.values()}
    differing = {}
    for label, texts in facts.items():
        known = {_normalize_fact(part) for part in (label, *label.split(", "), *shared)}
        differing[label] = ", ".join(x for x in texts if _normalize_fact(x) not in known)
    groups = words.group_labels(differing).items()
    band = next(iter(bands.values()))
    seeds = captions.write_seed_range([int(band.seeds) for band in bands.values()])
    shaded, level = str(band.attrs["description"]), float(band.attrs["level"])
    silent = [k for k, data in runs.items() if not any(map(np.any, _average_links(data).values()))]
    return [
        captions.describe_setting([*shared, *[seeds] * (len(numbers) > 1)], seeds),
        "; ".join(f"{labels}: {text}" for text, labels in groups if text),
        "Nε: what a message leaks of one reward" * any("Nε" in label for label in runs),
        *exposures,
        (
            f"Lines: means over the seeds; shaded: {shaded}",
            f"Lines: means; shaded: {captions.shorten_interval(shaded)}",
        ),
        *agents,
        *captions.describe_failures(_read_failures(runs, bands), [*runs], level),
        captions.describe_meters(_list_meters(runs)),
        f"No links: {' / '.join(silent)}" * (bool(silent) and len(runs) > 1),
    ]


def _describe_seeds(run: xr.Dataset) -> str:
    """Writes the number of seeds of a run, and their range if it does not start at 0."""
    size = run.sizes["seed"] if "seed" in run.sizes else int(run.seeds)
    seeds = run.seed.values if "seed" in run.coords else np.arange(size)
    number = words.write_quantity("", len(seeds), "seed")
    low, high = (int(end) for end in (seeds.min(), seeds.max()))
    return number if (low, high) == (0, len(seeds) - 1) else f"{number} from {low} to {high}"


def _read_failures(runs: Mapping[str, xr.Dataset], bands: Mapping[str, xr.Dataset]) -> pd.DataFrame:
    """Returns seeds, shares of events with their ends, and of undecided seeds, a row per run."""
    rows = []
    for data, band in zip(runs.values(), bands.values(), strict=True):
        row: dict[str, float] = {"seeds": int(band.seeds)}
        for event in (name for name in captions.EVENTS if name in band):
            row |= {event: float(band[event]) / row["seeds"]}
            row |= {f"{event}{end}": float(band[event + end]) for end in ("_lower", "_upper")}
        if "undecided" in data or "chosen_arm" in data:
            number = data.undecided if "undecided" in data else (data.chosen_arm < 0).sum()
            row["undecided"] = float(number) / row["seeds"]
        rows.append(row)
    return pd.DataFrame(rows)


def _list_meters(runs: Mapping[str, xr.Dataset]) -> list[str]:
    """Returns the meters on which links between agents are counted."""
    names: dict[str, None] = {}
    for data in runs.values():
        links = data.links if "links" in data else data.links_mean
        is_counted = (
            (data.side == "peer") & data.priced & (links.max({*links.dims} - {"meter"}) > 0)
        )
        names |= dict.fromkeys(map(str, data.meter.values[is_counted.values]))
    return [*names]


def _normalize_fact(words: str) -> str:
    """Normalizes a fact to compare it with a label: "ε = 1.0" and "ε = 1" are equal."""
    return re.sub(r"\.0\b| (agent|arm|slot)s?$", "", words.lower())
