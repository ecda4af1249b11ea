"""Figures at the width of a journal column: regret with its band, and communication, over time.

The only module that imports matplotlib, by its objects: no window system, no global pyplot state.
"""

from __future__ import annotations

import math
import numbers
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text

from fmab_jax.analysis.bands import confidence_band
from fmab_jax.errors import array_of, price, refuse
from fmab_jax.files import checked_path, whole_file
from fmab_jax.run.simulation import communication_cost

# Okabe and Ito, "Color universal design", 2008; without yellow, which is lost on white paper. Seven
# colours and four strokes have no common divisor: 28 runs differ, and any 4 differ in stroke alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STROKES: tuple[Any, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))

# Inches and points. A column of the usual two-column journals is 3.4 in wide.
WIDTH, PAD = 3.4, 0.05
_REGRET_HEIGHT, _LINKS_HEIGHT, _GAP, _BELOW = 1.65, 1.2, 0.22, 0.38
FONT = 7
_TIE = "\N{NO-BREAK SPACE}"


def plot_runs(
    runs: Mapping[str, xr.Dataset] | xr.Dataset,
    *,
    level: float = 0.95,
    kind: str = "simultaneous",
    server_price: float = 1.0,
    peer_price: float = 1.0,
    bounds: Mapping[str, Any] | None = None,
) -> Figure:
    """Draws runs over time: regret with a band on top, communication below, facts in a caption.

    Both panels show means over the seeds. The lower one counts server and peer links; with a price
    other than 1 it shows `communication_cost` with these prices instead. It is
    logarithmic where the totals of the runs differ more than 20-fold; the time axis is
    logarithmic where all time grids are. The caption names algorithm, M, K, T, seeds and band, and
    how many seeds lost the best arm with the Clopper-Pearson interval of that probability.

    Args:
        runs: One result of ``simulate``, or up to 28 of them by the label to show.
        level: Confidence level of band and interval, in (0, 1).
        kind: Kind of band, see ``confidence_band``.
        server_price: Price c1 of an agent-server link, at least 0.
        peer_price: Price c2 of an agent-agent link, at least 0, on `communication_cost`'s default
            meter.
        bounds: By a run's label, bounds of its regret at its recorded slots, such as
            `fmab_jax.analysis.theory.regret_curve`; drawn as thin dotted lines.

    Returns:
        A figure 3.4 inches wide, for ``save_figure``; its axes are the regret and the link panel.

    Raises:
        ValueError: For a run that is not a plain result of ``simulate``, or an argument outside its
            range.

    Source:
        Section III (regret, communication cost) and figures 4, 5, 10, 12 of arXiv 2111.01570.
    """
    if isinstance(runs, xr.Dataset):
        runs = {str(runs.attrs.get("algorithm", "run")): runs}
    if not isinstance(runs, Mapping):
        refuse("runs", runs, "1 to 28 results by label", "write {'label': data}")
    runs = {str(label): data for label, data in runs.items()}  # type: ignore[misc]
    if not 1 <= len(runs) <= len(COLOURS) * len(STROKES):
        refuse("runs", list(runs), "1 to 28 results by label", "split the figure")
    for label, data in runs.items():
        _check(label, data)
    prices = (
        price("server_price", server_price),
        price("peer_price", peer_price),
    )
    bands = {label: confidence_band(data.regret, level, kind) for label, data in runs.items()}

    figure = Figure(figsize=(WIDTH, 4.5))
    canvas = FigureCanvasAgg(figure)
    regret = figure.add_axes((0.2, 0.6, 0.7, 0.3))
    links = figure.add_axes((0.2, 0.2, 0.7, 0.3), sharex=regret)
    handles = []
    for index, (label, band) in enumerate(bands.items()):
        times, mean, lower, upper = (
            band[name].values for name in ("time", "mean", "lower", "upper")
        )
        style = look(index)
        regret.fill_between(times, lower, upper, color=style["color"], alpha=0.2, linewidth=0)
        handles += regret.plot(times, mean, label=label, **style)
    allowed, remedy = "a value per slot, by a run's label", "see regret_curve"
    if bounds is not None and not isinstance(bounds, Mapping):
        refuse("bounds", bounds, allowed, remedy)
    for label, values in (bounds or {}).items():
        slots = runs[label].time.shape if label in runs else ()
        if array_of("bounds", values, 10**6, allowed, remedy).shape != slots:
            refuse("bounds", label, "a run's label, with a value per slot", remedy)
        colour = look(list(runs).index(label))["color"]
        times = runs[label].time.values
        regret.plot(times, values, color=colour, linestyle=(0, (1, 2)), linewidth=0.8)
    _draw_links(links, runs, prices)

    regret.set_ylim(bottom=0)
    regret.set_ylabel("cumulative regret\n(reward, summed over M agents)", fontsize=FONT)
    regret.tick_params(labelbottom=False)
    links.set_xlabel("slot t", fontsize=FONT, labelpad=2)
    logarithmic = all(_is_logarithmic(data.time.values) for data in runs.values())
    for axes in (regret, links):
        axes.tick_params(labelsize=FONT, width=0.6, length=2.5, pad=2)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(True, color="0.9", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.margins(x=0.01)
        if logarithmic:
            axes.set_xscale("log")
        else:
            axes.set_xlim(left=0)
            axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useMathText=True)
        if axes.get_yscale() == "linear":
            axes.locator_params(axis="y", nbins=4)
            axes.ticklabel_format(axis="y", style="sci", scilimits=(-3, 4), useMathText=True)
        for axis in (axes.xaxis, axes.yaxis):
            axis.get_offset_text().set_fontsize(FONT)
    caption = _caption(runs, bands, prices)
    if bounds:
        caption += " Thin dotted lines: the theorems' bounds."
    _lay_out(figure, canvas, regret, links, handles, caption)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Writes a figure at 300 dpi, whole or not at all: an old file is replaced only by a new one.

    The bytes depend on the figure and the matplotlib version only, not on the time of writing.

    Args:
        figure: The figure.
        path: Where to write; the ending, .png or .pdf, chooses the format.

    Returns:
        The path written.

    Raises:
        ValueError: For another ending.
        OSError: If the folder cannot be written; nothing is left behind.
    """
    path = checked_path("path", path)
    ending = path.suffix.lower()
    if ending not in (".png", ".pdf"):
        refuse("path", str(path), "a file name ending in .png or .pdf", "change the ending")
    if not isinstance(figure, Figure):
        refuse("figure", figure, "a figure", "pass what plot_runs returned")
    metadata = {"CreationDate": None} if ending == ".pdf" else {"Software": None}
    # Type 42 keeps letters as letters: journals refuse type 3 fonts.
    with whole_file(path) as temporary, matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(temporary, format=ending[1:], dpi=300, metadata=metadata)
    return path


def _check(label: str, data: xr.Dataset) -> None:
    """Refuses what is not a plain result of ``simulate``."""
    field = f"runs[{label!r}]"
    if not isinstance(data, xr.Dataset):
        refuse(field, data, "a result of simulate", "pass it unchanged")
    needed = {"regret", "server_links", "peer_links_bound", "peer_links_used"}
    facts = {"algorithm", "agents", "arms", "horizon", "meter_bound", "meter_used"}
    missing = sorted((needed - set(data)) | (facts - set(data.attrs)))
    if missing:
        refuse(field, f"without {', '.join(missing)}", "a result of simulate", "pass it unchanged")
    if set(data.regret.dims) != {"seed", "time"}:
        remedy = "select one configuration with .sel(...) per run"
        refuse(field, data.regret.dims, "a result with dimensions seed and time", remedy)


def _is_logarithmic(times: np.ndarray) -> bool:
    """Tells whether slots are spaced evenly rather in their logarithm than in themselves."""
    if len(times) < 3 or times[0] < 1:
        return False
    linear, log = np.diff(times), np.diff(np.log(times))
    return bool(log.std() / log.mean() < linear.std() / linear.mean())


def look(index: int) -> dict[str, Any]:
    """Returns colour and stroke of the run at this place."""
    colour, stroke = COLOURS[index % len(COLOURS)], STROKES[index % len(STROKES)]
    return {"color": colour, "linestyle": stroke, "linewidth": 1.1}


def _draw_links(axes: Axes, runs: Mapping[str, xr.Dataset], prices: tuple[float, float]) -> None:
    """Draws the lower panel: a line per run and kind of link, or per run its cost."""
    # Filled circles are links to the server, open squares links between agents.
    marks: dict[str, dict[str, Any]] = {
        "server links": {"marker": "o", "markersize": 3, "markeredgewidth": 0.8},
        "peer links": {"marker": "s", "markersize": 3, "markeredgewidth": 0.8, "mfc": "white"},
    }
    paid = prices != (1.0, 1.0)
    totals: list[float] = []
    shown: set[str] = set()
    for index, data in enumerate(runs.values()):
        server = data.server_links.mean("seed").values
        peer = data.peer_links_used.mean("seed").values
        if paid:
            series = {"cost": communication_cost(data, *prices).mean("seed").values}
        else:
            both = {"server links": server, "peer links": peer}
            series = {name: values for name, values in both.items() if values[-1] > 0}
            shown |= set(series)
        for name, values in (series or {"none": server}).items():
            totals.append(float(values[-1]))
            axes.plot(
                data.time.values,
                values,
                # Runs, and the two kinds of link, are marked at different slots.
                markevery=(0.06 + 0.03 * (index % 4) + 0.12 * (name == "peer links"), 0.25),
                **look(index),
                **marks.get(name, {}),
            )
    positive = [total for total in totals if total > 0]
    if not positive:
        axes.set_ylim(-0.04, 1)
        axes.set_yticks([0, 1])
        note = "no cost" if paid else "no links"
        axes.annotate(note, (0.5, 0.5), xycoords="axes fraction", ha="center", fontsize=FONT)
    elif max(positive) > 20 * min(positive):
        axes.set_yscale("log", nonpositive="mask")
    else:
        axes.set_ylim(-0.04 * max(positive), 1.06 * max(positive))
    label = "communication cost\nso far" if paid else "links built so far"
    axes.set_ylabel(label, fontsize=FONT)
    entries = [
        Line2D([], [], color="0.3", linestyle="none", label=name, **mark)
        for name, mark in marks.items()
        if name in shown
    ]
    if entries:
        # In the gap over the panel, on the side without the factor of ten.
        axes.legend(
            handles=entries,
            loc="lower right",
            bbox_to_anchor=(1, 1),
            ncols=2,
            fontsize=FONT,
            frameon=False,
            handletextpad=0,
            columnspacing=0.8,
            borderaxespad=0,
            borderpad=0.1,
        )


def _caption(
    runs: Mapping[str, xr.Dataset],
    bands: Mapping[str, xr.Dataset],
    prices: tuple[float, float],
) -> str:
    """Returns the caption: what all runs share once, then what differs, run by run."""
    facts = {
        label: [
            str(data.attrs["algorithm"]),
            *privacy(data.attrs.get("epsilon")),
            counted("M = ", data.attrs["agents"], "agent"),
            counted("K = ", data.attrs["arms"], "arm"),
            counted("T = ", data.attrs["horizon"], "slot"),
            *data.attrs.get("setting", ()),
            counted("", data.sizes["seed"], "seed"),
        ]
        for label, data in runs.items()
    }
    first, *others = facts.values()
    shared = [fact for fact in first if all(fact in other for other in others)]
    some = next(iter(bands.values())).attrs
    sentences = [", ".join(shared)] if shared else []
    sentences.append(f"Lines: means over the seeds; shaded: {some['description']}")
    lost = []
    for label, band in bands.items():
        own = [
            fact for fact in facts[label] if fact not in shared and fact.lower() != label.lower()
        ]
        name = label + (f" ({', '.join(own)})" if own else "")
        prefix = f"{name}: " if len(runs) > 1 else ""
        if "best_arm_lost" in band:
            ends = [100 * float(band[f"best_arm_lost_{side}"]) for side in ("lower", "upper")]
            interval = f"{ends[0]:.3g}–{ends[1]:.3g} %"
            counts = f"{whole(band.best_arm_lost)} of {whole(band.seeds)}"
            lost.append(f"{prefix}{counts} ({interval})")
        else:
            lost.append(f"{prefix}not recorded")
    percent = f"{100 * some['level']:.6g} %"
    sentences.append(
        f"Seeds that lost the best arm ({percent} Clopper–Pearson interval): " + "; ".join(lost)
    )
    sentences += _link_sentences(runs, prices)
    return ". ".join(sentences) + "."


def _link_sentences(runs: Mapping[str, xr.Dataset], prices: tuple[float, float]) -> list[str]:
    """Says how links are priced, on which meter peers are counted, and who builds none."""
    sentences = []
    paid = prices != (1.0, 1.0)
    if paid:
        sentences.append(f"Cost: {prices[0]:g} per server link, {prices[1]:g} per peer link")
    with_peers = [data for data in runs.values() if data.peer_links_used.values.any()]
    # Cost is on communication_cost's own meter; links are drawn as they are used.
    meters = {str(data.attrs["meter_bound" if paid else "meter_used"]): 0 for data in with_peers}
    if meters:
        sentences.append(f"Peer links are counted on the meter {' / '.join(map(repr, meters))}")
    silent = [
        label
        for label, data in runs.items()
        if not (data.server_links.values.any() or data.peer_links_used.values.any())
    ]
    if silent and len(runs) > 1:
        sentences.append(f"No links: {', '.join(silent)}")
    return sentences


def privacy(epsilon: Any) -> list[str]:
    """Returns the privacy parameter as a fact, if the run names it."""
    if not isinstance(epsilon, numbers.Real):
        return []
    return ["no noise" if math.isinf(epsilon) else f"ε = {epsilon:.4g}"]


def counted(symbol: str, number: Any, noun: str) -> str:
    """Writes a fact such as "M = 50 agents"."""
    return f"{symbol}{whole(number)} {noun}{'s' * (int(number) != 1)}"


def whole(number: Any) -> str:
    """Writes a whole number: powers of ten from 10^4 on as such, others in groups of three."""
    text = str(int(number))
    if len(text) > 4 and text == "1" + "0" * (len(text) - 1):
        return "10" + str(len(text) - 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return text if len(text) < 5 else f"{int(number):,}"


def wrapped(renderer: RendererAgg, text: str, limit: float) -> str:
    """Breaks a text into lines no wider than the limit in inches; a number keeps its unit."""
    font = FontProperties(size=FONT)

    def width(line: str) -> float:
        return float(renderer.get_text_width_height_descent(line, font, False)[0]) / renderer.dpi

    lines = [""]
    # A number stays with its symbol and its unit.
    tied = re.sub(r" (?=[%=])|(?<==) |(?<=\d) (?=[a-z])|(?<=of) (?=\d)", _TIE, text)
    for word in tied.split(" "):
        if lines[-1] and width(f"{lines[-1]} {word}") > limit:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip(" ")
        while width(lines[-1]) > limit:  # one word longer than a line
            cut = max(n for n in range(1, len(lines[-1])) if width(lines[-1][:n]) <= limit)
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return "\n".join(lines).replace(_TIE, " ")


def legend_above(figure: Figure, renderer: RendererAgg, handles: list[Any]) -> Legend:
    """Puts a legend at the top of the figure, in as few rows as fit its width."""
    inner = WIDTH - 2 * PAD
    labels = [wrapped(renderer, str(handle.get_label()), inner - 0.4) for handle in handles]

    def legend(columns: int) -> Legend:
        made = figure.legend(
            handles,
            labels,
            loc="upper center",
            ncols=columns,
            prop=FontProperties(size=FONT),
            frameon=False,
            handlelength=2.2,
            columnspacing=1.2,
            handletextpad=0.5,
            borderaxespad=0,
            borderpad=0,
            labelspacing=0.3,
        )
        for text in made.get_texts():
            text.set_parse_math(False)
        return made

    # As few rows as fit, and with them as few columns as do.
    fitting = 1
    for columns in range(len(handles), 1, -1):
        trial = legend(columns)
        wide = trial.get_window_extent(renderer).width
        trial.remove()
        if wide / figure.dpi <= inner:
            fitting = math.ceil(len(handles) / math.ceil(len(handles) / columns))
            break
    return legend(fitting)


def caption_below(figure: Figure, renderer: RendererAgg, caption: str) -> Text:
    """Puts the caption at the bottom of the figure, broken to its width."""
    text = figure.text(
        0,
        0,
        wrapped(renderer, caption, WIDTH - 2 * PAD),
        fontproperties=FontProperties(size=FONT),
        va="bottom",
        parse_math=False,
    )
    text.set_linespacing(1.15)
    return text


def _lay_out(
    figure: Figure,
    canvas: FigureCanvasAgg,
    regret: Axes,
    links: Axes,
    handles: list[Line2D],
    caption: str,
) -> None:
    """Stacks legend, panels and caption; the height of the figure follows from their sizes."""
    renderer = canvas.get_renderer()
    runs_legend = legend_above(figure, renderer, handles)
    text = caption_below(figure, renderer, caption)
    below = text.get_window_extent(renderer).height / figure.dpi
    above = runs_legend.get_window_extent(renderer).height / figure.dpi

    bottom = PAD + below + _BELOW
    middle = bottom + _LINKS_HEIGHT + _GAP
    height = middle + _REGRET_HEIGHT + _GAP + above + PAD
    figure.set_size_inches(WIDTH, height)
    text.set_position((PAD / WIDTH, PAD / height))
    runs_legend.set_bbox_to_anchor((0.5, 1 - PAD / height), transform=figure.transFigure)
    left = right = 0.0
    for _ in range(2):  # measures what the labels need on both sides, then gives it to them
        across = (left / WIDTH, 1 - (left + right) / WIDTH)
        links.set_position((across[0], bottom / height, across[1], _LINKS_HEIGHT / height))
        regret.set_position((across[0], middle / height, across[1], _REGRET_HEIGHT / height))
        figure.align_ylabels([regret, links])
        boxes = [axes.get_tightbbox(renderer) for axes in (regret, links)]
        left += PAD - min(box.x0 for box in boxes if box) / figure.dpi
        right += PAD + max(box.x1 for box in boxes if box) / figure.dpi - WIDTH
