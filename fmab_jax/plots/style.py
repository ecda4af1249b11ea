"""One look for all figures: colours, strokes, sizes, axes, legend, caption, numbers.

Matplotlib is used by its objects only: no window system, no global pyplot state.
"""

from __future__ import annotations

import functools
import io
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, ScalarFormatter

from fmab_jax.analysis.words import write_number
from fmab_jax.errors import parse_number, real
from fmab_jax.plots.captions import Sentence

Stroke = str | tuple[float, tuple[float, ...]]
Style = dict[str, Any]
"""Keyword arguments of a function of matplotlib."""

# Okabe and Ito, "Color universal design", 2008; without yellow, which is lost on white paper.
# Seven colours and four strokes have no common divisor: 28 lines differ, any 4 in stroke alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STROKES: tuple[Stroke, ...] = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
# Eight markers and seven colours have no common divisor either.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
MOST = len(COLOURS) * len(STROKES)

# Inches and points: a column and a page of the usual two-column journals.
WIDTHS = {"column": 3.4, "page": 7.0}
WIDTH, PAD, FONT = WIDTHS["column"], 0.05, 7
# Narrower figures have no room for labels, and wider ones no page.
_NARROWEST, _WIDEST = 2.5, 20.0
# Share of the height for the caption.
SHARE = 0.2
_TIE = "\N{NO-BREAK SPACE}"


def get_line_style(index: int) -> Style:
    """Returns colour and stroke of the line at this place."""
    colour, stroke = COLOURS[index % len(COLOURS)], STROKES[index % len(STROKES)]
    return {"color": colour, "linestyle": stroke, "linewidth": 1.1}


def list_colours(number: int) -> Sequence[str]:
    """Returns so many colours: those of lines, or a scale where they are too few."""
    if number <= len(COLOURS):
        return COLOURS[:number]
    # The light end of the scale is lost on white paper.
    return [to_hex(colormaps["viridis"](place)) for place in np.linspace(0, 0.9, number)]


class Picture(Figure):
    """A figure that a notebook shows where it is the value of a cell, at the size of print."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=300, metadata={"Software": None})
        # Half again as large as in print, in the browser's pixels of 1/96 inch.
        wide, tall = (round(1.5 * 96 * size) for size in self.get_size_inches())
        return file.getvalue(), {"width": wide, "height": tall}


def check_width(width: object) -> float:
    """Returns a width in inches, given as such or by a name of `WIDTHS`; refuses others."""
    number: object = WIDTHS.get(width, parse_number(width)) if isinstance(width, str) else width
    remedy = "give inches, 'column' (3.4) or 'page' (7)"
    return real("width", width if number is None else number, _NARROWEST, _WIDEST, remedy)


def make_panels(heights: Sequence[float], width: float = WIDTH) -> tuple[Figure, list[Axes]]:
    """Makes a figure with panels below each other, of these heights in inches, in the one look."""
    # More than enough for any labels; `lay_out` takes the rest away.
    figure = Picture(figsize=(width, sum(heights) + 4), layout="constrained")
    FigureCanvasAgg(figure)
    ratios = {"height_ratios": list(heights)}
    axes = figure.subplots(len(heights), sharex=True, squeeze=False, gridspec_kw=ratios)
    for panel in axes.flat:
        style_axes(panel)
    return figure, list(axes.flat)


def style_axes(axes: Axes) -> None:
    """Styles axes; labels and ticks that are set later follow."""
    axes.tick_params(which="both", labelsize=FONT, width=0.6, length=2.5, pad=2)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="0.9", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.title.set_fontsize(FONT)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_fontsize(FONT)
        axis.labelpad = 2
        axis.get_offset_text().set_fontsize(FONT)


def has_wide_range(values: np.ndarray) -> bool:
    """Tells whether positive values span more than a factor of 20."""
    positive = values[values > 0]
    return positive.size > 0 and bool(positive.max() > 20 * positive.min())


class _PlainNumbers(ScalarFormatter):
    """Numbers as plain text, which is laid out faster; only the power of ten is maths."""

    def get_offset(self) -> str:
        self.set_useMathText(True)
        text = super().get_offset()
        self.set_useMathText(False)
        return text


def scale_linear(axes: Axes, side: Literal["x", "y"]) -> None:
    """Writes few, short numbers on a linear axis, with a common power of ten if needed."""
    axes.locator_params(axis=side, nbins=4)
    (axes.xaxis if side == "x" else axes.yaxis).set_major_formatter(_PlainNumbers())
    axes.ticklabel_format(axis=side, style="sci", scilimits=(-3, 4), useMathText=False)


def scale_values(axes: Axes, side: Literal["x", "y"], values: np.ndarray) -> None:
    """Makes an axis logarithmic where the values span more than a factor of 20."""
    if not has_wide_range(values):
        return scale_linear(axes, side)
    axis = axes.xaxis if side == "x" else axes.yaxis
    low, high = float(values[values > 0].min()), float(values.max())
    set_scale = axes.set_xscale if side == "x" else axes.set_yscale
    if values.min() > 0:
        set_scale("log")
        axis.set_major_locator(make_log_locator(low, high))
    else:
        # A plain logarithmic axis would hide points of cost 0.
        set_scale("symlog", linthresh=low, linscale=0.5)
        # Room for the markers at both ends, and no ticks below 0.
        set_limits = axes.set_xlim if side == "x" else axes.set_ylim
        set_limits(-0.7 * low, max(1.5 * high, float(axis.get_view_interval()[1])))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: write_number(value)))


def make_log_locator(low: float, high: float) -> LogLocator:
    """Returns ticks at powers of ten, in between too where there are few."""
    return LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,), numticks=7)


@functools.cache
def _get_ruler() -> RendererAgg:
    return FigureCanvasAgg(Figure(dpi=100)).get_renderer()


@functools.lru_cache(4096)
def measure_text(text: str) -> tuple[float, float]:
    """Returns width and height of a text of one or more lines, in inches."""
    font, lines = FontProperties(size=FONT), text.split("\n")
    wide = max(_get_ruler().get_text_width_height_descent(line, font, False)[0] for line in lines)
    return float(wide) / 100, len(lines) * 1.25 * FONT / 72


def wrap_text(text: str, limit: float) -> str:
    """Breaks a text into lines no wider than the limit in inches; a number keeps its unit."""
    lines = [""]
    # A number stays with its symbol and its unit.
    tied = re.sub(r" (?=[%=])|(?<==) |(?<=\d) (?=[a-z])|(?<=of) (?=\d)", _TIE, text)
    for word in tied.split(" "):
        if lines[-1] and measure_text(f"{lines[-1]} {word}")[0] > limit:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".lstrip(" ")
        while (wide := measure_text(lines[-1])[0]) > limit:  # one word longer than a line
            cut = max(1, int(0.9 * len(lines[-1]) * limit / wide))
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return "\n".join(lines).replace(_TIE, " ")


LEGEND: Style = {
    "fontsize": FONT,
    "frameon": False,
    "borderaxespad": 0,
    "borderpad": 0,
    "labelspacing": 0.3,
}


def lay_out(
    figure: Figure,
    handles: Sequence[Artist] | Sequence[list[Artist]],
    caption: Sequence[Sentence] = (),
    *,
    legend_title: str = "",
    fit: Callable[[], None] = lambda: None,
    height: float | None = None,
    draws_caption: bool = True,
) -> Figure:
    """Lays out a figure: legend above the axes, caption below them; it grows by both.

    The whole caption becomes the figure's label, for `save_figure` and for who shows it as text;
    what fits of it in a fifth of the height is drawn, unless ``draws_caption`` is false.

    Args:
        figure: With its axes.
        handles: Entries of the legend, or lists of entries, each of which begins a line of its own.
        caption: Its sentences.
        legend_title: Stands above the legend.
        fit: Adapts labels to the axes whenever their place has changed.
        height: Of all axes below each other, in inches, without labels.
        draws_caption: Whether a part of the caption is drawn.
    """
    wide, tall = figure.get_size_inches()
    groups = [group for group in handles if isinstance(group, list)]
    groups.append([handle for handle in handles if not isinstance(handle, list)])
    inner = wide - 2 * PAD
    legends = [_draw_legend(figure, group, inner, legend_title) for group in groups if group]
    heights = [legend.get_window_extent().height / figure.dpi + 0.6 * PAD for legend in legends]
    tops = np.cumsum([PAD, *heights])
    above = float(tops[-1]) + (0.4 * PAD if legends else 0)

    def place(tall: float, below: float) -> float:
        total = below + tall + above
        figure.set_size_inches(wide, total)
        for legend, top in zip(legends, tops, strict=False):
            legend.set_bbox_to_anchor((0.5, 1 - top / total), transform=figure.transFigure)
        rect = (0, below / total, 1, tall / total)
        engine = ConstrainedLayoutEngine(rect=rect, w_pad=PAD, h_pad=PAD / 2, hspace=0.02)
        figure.set_layout_engine(engine)
        engine.execute(figure)
        fit()
        engine.execute(figure)
        column = [axes.get_position().height for axes in figure.axes if axes.get_subplotspec()]
        return tall + (height - sum(column) * total if height else 0)

    for _ in range(3):  # tick labels, the layout and the height depend on each other
        before, tall = tall, place(tall, PAD)
        if abs(tall - before) < 0.005:
            break
    sentences = [(x, "") if isinstance(x, str) else x for x in caption if x]
    figure.set_label(_join_sentences([full for full, _ in sentences]))
    below = _draw_caption(figure, sentences if draws_caption else [], tall + above)
    place(tall, below)
    figure.texts[-1].set_y(PAD / (below + tall + above))
    # The labels fit the places that they have now, at any resolution.
    figure.set_layout_engine("none")
    return figure


def _draw_caption(figure: Figure, sentences: Sequence[tuple[str, str]], above: float) -> float:
    """Draws what fits of a caption below ``above`` inches; returns its height with margins.

    First the short forms of sentences that have one are drawn, then full ones in turn.
    """
    wide = figure.get_figwidth()
    font: Style = {"fontsize": FONT, "linespacing": 1.15, "parse_math": False}
    text = figure.text(PAD / wide, 0, "", va="bottom", **font)

    def measure(words: Sequence[str]) -> float:
        text.set_text(wrap_text(_join_sentences(words), wide - 2 * PAD))
        return 2 * PAD + text.get_window_extent().height / figure.dpi

    shown = [""] * len(sentences)
    for forms in ([short for _, short in sentences], [full for full, _ in sentences]):
        for place, form in enumerate(forms):
            trial = [*shown[:place], form, *shown[place + 1 :]]
            if form and (below := measure(trial)) <= SHARE * (below + above):
                shown = trial
    # Measuring sets the text.
    below = measure(shown)
    return below if any(shown) else PAD


def _join_sentences(sentences: Sequence[str]) -> str:
    return " ".join(f"{words}." for words in sentences if words)


def _draw_legend(figure: Figure, handles: Sequence[Artist], inner: float, title: str) -> Legend:
    """Puts a legend at the top of the figure, in as few rows as fit its width."""
    labels = [wrap_text(str(handle.get_label()), inner - 0.4) for handle in handles]
    # Beside a text are its line, of 2.2 letters, and spaces.
    widest = max(measure_text(label)[0] for label in labels) + 0.38
    rows = math.ceil(len(handles) / max(1, int((inner + 0.12) / widest)))
    columns = math.ceil(len(handles) / rows)
    spaces: Style = {"handlelength": 2.2, "columnspacing": 1.2, "handletextpad": 0.5}
    spaces |= {"loc": "upper center", "ncols": columns}
    spaces |= {"title": wrap_text(title, inner) or None, "title_fontsize": FONT}
    legend = figure.legend(handles, labels, **LEGEND, **spaces)
    for text in [*legend.get_texts(), legend.get_title()]:
        text.set_parse_math(False)
    return legend
