"""Figures as a journal prints them over two columns, with words and numbers beside.

Its caption and what is to be seen stand in a Markdown file beside a picture, and every number that
is drawn in a CSV file: `redraw` draws it anew from that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    NullFormatter,
    NullLocator,
    ScalarFormatter,
)

import fmab_jax as fmab
from experiments import common
from fmab_jax.analysis.words import write_number
from fmab_jax.files import whole_file
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

PAGE = 7.0  # inches: 17.8 cm, two columns of a journal
# 22 cm, what a page has room for.
HIGHEST = 22 / 2.54
POWERS = {3: "thousands", 6: "millions", 9: "billions"}
FAINT = 0.02  # of the reference: effects below it are also drawn in per cent


class Page:
    """A figure over two columns of a journal, while it is drawn.

    Attributes:
        squeeze: What heights of panels are multiplied by, so that the figure fits a page.
        tall: Height of all panels below each other, in inches.
        figure: The figure.
        handles: Entries of the legend above the panels, or lists of them: each begins a line.
    """

    def __init__(self, squeeze: float = 1.0) -> None:
        self.squeeze, self.tall = squeeze, 0.0
        self.figure = Figure(figsize=(PAGE, 4))
        FigureCanvasAgg(self.figure)
        self.handles: Sequence[Any] = ()
        self._label: Callable[[], None] = lambda: None

    def panels(
        self,
        labels: Sequence[str],
        titles: Sequence[str],
        x: str | Sequence[str] = "slot t",
        height: float = 1.45,
    ) -> np.ndarray:
        """Makes [row, column] panels, a row for each quantity and a column for each condition.

        A power of ten is added to labels where one is due. ``height`` is in inches.
        """
        axes = self._subplots([height] * len(labels), len(titles))
        below = [x] * len(labels) if isinstance(x, str) else list(x)
        self._label = lambda: self._write(axes, labels, titles, below, height)
        return axes

    def places(
        self, number: int, across: int = 1, height: float | Sequence[float] = 1.45
    ) -> list[Axes]:
        """Makes panels with labels of their own; a power of ten is added where it is due.

        ``height`` is in inches, of all or of each; a row is as high as its highest panel.
        """
        panel_heights = [height] * number if isinstance(height, float | int) else list(height)
        rows = [max(panel_heights[at : at + across]) for at in range(0, number, across)]
        axes = list(self._subplots(rows, across).flat)
        for spare in axes[number:]:
            spare.remove()

        def label() -> None:
            for panel_heights in axes[:number]:
                for axis in (panel_heights.xaxis, panel_heights.yaxis):
                    power = _power([axis])
                    _count(axis, power)
                    axis.set_label_text(_with_power(axis.get_label_text(), power), fontsize=FONT)

        self._label = label
        return axes[:number]

    def percent(
        self, panels: Sequence[Axes], references: Collection[float], ends: Sequence[Sequence[float]]
    ) -> None:
        """Gives panels a second axis in per cent where one of them has an effect below 2 %.

        ``ends`` are the effects in each panel, in the units of its linear axis.
        """
        if not faint(zip(references, ends, strict=True)):
            return
        for panel, reference in zip(panels, references, strict=True):
            scale = 100 / reference
            axis = panel.secondary_yaxis(
                "right", functions=(lambda y, by=scale: y * by, lambda y, by=scale: y / by)
            )
            axis.tick_params(which="both", labelsize=FONT, width=0.6, length=2.5, pad=2)
            axis.yaxis.get_major_locator().set_params(nbins=5)
            axis.yaxis.set_major_formatter(FuncFormatter(lambda v, _: _minus(f"{v:.6g} %")))

    def finish(self) -> Figure:
        """Writes labels and legend; returns the figure."""
        self._label()
        self.figure.align_ylabels()
        return style.lay_out(self.figure, self.handles)

    def _subplots(self, rows: Sequence[float], across: int) -> np.ndarray:
        self.tall = self.squeeze * sum(rows)
        self.figure.set_size_inches(PAGE, self.tall)
        ratios = {"height_ratios": rows}
        axes = self.figure.subplots(len(rows), across, squeeze=False, gridspec_kw=ratios)
        for panel in axes.flat:
            style.style_axes(panel)
            panel.margins(x=0.01)
        return axes

    def _write(
        self,
        axes: np.ndarray,
        labels: Sequence[str],
        titles: Sequence[str],
        below: Sequence[str],
        height: float,
    ) -> None:
        """Has rows say at their left what they show, and columns at their top."""
        for row, text in zip(axes, _counted(axes, labels), strict=True):
            row[0].set_ylabel(style.wrap_text(text, height - 0.1), fontsize=FONT, labelpad=2)
        for panel, title in zip(axes[0], titles, strict=True):
            panel.set_title(title, fontsize=FONT, pad=3)
        _write_below(axes, below, PAGE / len(titles) - 0.4)
        # Rows with one horizontal axis have one label.
        for upper, lower in zip(axes, axes[1:], strict=False):
            if all(_same_below(a, b) for a, b in zip(upper, lower, strict=True)):
                for panel in upper:
                    panel.set_xlabel("")


def faint(effects: Iterable[tuple[float, Sequence[float]]]) -> bool:
    """Tells whether an effect is below 2 % of its reference, but not 0 in every seed."""
    return any(0 < abs(end) < FAINT * of for of, ends in effects for end in ends)


class Picture(NamedTuple):
    """A figure with its words and numbers."""

    name: str  # of its files, without an ending
    draw: Callable[[Page], None]  # draws on a page; may be called more than once
    caption: str  # setting, horizon, seeds, and which kind of band is shown
    alt: str  # what is to be seen, for who does not see it: one to three sentences
    rows: Sequence[Mapping[str, Any]]  # every number that is drawn, a row for each point
    # what is written below the words as a table; none for no table
    table: Sequence[Mapping[str, Any]] = ()


def fitted(draw: Callable[[Page], None]) -> Figure:
    """Draws a figure that fits a page: where it would be higher, its panels are made lower."""
    squeeze = 1.0
    for _ in range(4):
        page = Page(squeeze)
        draw(page)
        figure = page.finish()
        over = float(figure.get_figheight()) - HIGHEST
        if over <= 0.0:
            return figure
        # Labels take as much as before.
        squeeze *= max(0.1, 1.0 - (over + 0.02) / page.tall)
    raise ValueError(f"a figure is {2.54 * over:.1f} cm higher than a page: give it fewer panels")


def draw_files(
    name: str, draw: Callable[[Page], None], folder: Path, pdf: bool = False
) -> list[Path]:
    """Draws a picture as PNG, or for print as PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}{'.pdf' if pdf else '.png'}"
    return [fmab.save_figure(fitted(draw), path, overwrite=True)]


def publish(picture: Picture, folder: Path) -> list[Path]:
    """Writes a picture, its words and its numbers."""
    paths = draw_files(picture.name, picture.draw, folder)
    lines = [
        f"![{picture.alt}]({picture.name}.png)",
        "",
        picture.caption,
        "",
        f"What is to be seen: {picture.alt}",
        "",
        f"Numbers: [CSV]({picture.name}.csv). For print: "
        f"`python -m experiments redraw {picture.name} --pdf`.",
    ]
    if picture.table:
        lines += ["", *common.table_lines(picture.table)]
    with whole_file(folder / f"{picture.name}.md") as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    numbers = common.save_rows(picture.rows, folder / f"{picture.name}.csv")
    return [*paths, folder / f"{picture.name}.md", numbers]


def band_rows(bands: Mapping[str, Any], **named: Any) -> list[dict[str, Any]]:
    """Returns the points of curves with their bands, as rows."""
    return [
        {**named, "curve": label, "slot": int(slot), "mean": mean, "lower": low, "upper": high}
        for label, band in bands.items()
        for slot, mean, low, high in zip(
            *(band[name].values.tolist() for name in ("time", "mean", "lower", "upper")),
            strict=True,
        )
    ]


def curve_rows(quantities: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Returns the points of all curves: by quantity, by horizon, by label."""
    return [
        row
        for quantity, by_horizon in quantities.items()
        for horizon, bands in by_horizon.items()
        for row in band_rows(bands, quantity=quantity, T=horizon)
    ]


def ends(bands: Mapping[str, Any]) -> list[float]:
    """Returns the means of curves at T."""
    return [float(band["mean"][-1]) for band in bands.values()]


def in_percent(references: Iterable[float], bands: Iterable[Mapping[str, Any]], of: str) -> str:
    """Says what a second axis is per cent of, where `Page.percent` draws one; or ""."""
    has_axis = faint(zip(references, map(ends, bands), strict=True))
    return f". Axis on the right: per cent of {of}" * has_axis


def relabelled(handles: Sequence[Any], texts: Sequence[str]) -> list[Any]:
    """Returns entries of a legend that say more in brackets; the curves keep their labels."""
    entries = []
    for handle, words in zip(handles, texts, strict=True):
        entries.append(Line2D([], []))
        entries[-1].update_from(handle)
        entries[-1].set_label(f"{handle.get_label()} ({words})")
    return entries


def line_up(axes: Axes) -> None:
    """Draws a thin line where a difference is 0."""
    axes.axhline(0, color="0.4", linewidth=0.5, zorder=0.5)


def _write_below(axes: np.ndarray, below: Sequence[str], wide: float) -> None:
    """Writes what lies on the horizontal axes, in lines of a width, and has them count."""
    for row, words in zip(axes, below, strict=True):
        for panel in row:
            power = _power([panel.xaxis])
            _count(panel.xaxis, power)
            text = style.wrap_text(_with_power(words, power), wide)
            panel.set_xlabel(text, fontsize=FONT, labelpad=2)


def _counted(axes: np.ndarray, labels: Sequence[str]) -> list[str]:
    """Has each row count in one power of ten, to be compared; returns the labels with it."""
    texts = []
    for row, label in zip(axes, labels, strict=True):
        power = _power([panel.yaxis for panel in row])
        for panel in row:
            _count(panel.yaxis, power)
        texts.append(_with_power(label, power))
    return texts


def _same_below(upper: Axes, lower: Axes) -> bool:
    """Tells whether two panels that are below each other have one horizontal axis."""
    return all(
        bool(np.all(get(upper) == get(lower)))
        for get in (Axes.get_xlabel, Axes.get_xscale, Axes.get_xlim)
    )


def _power(axes: Sequence[Axis]) -> int:
    """Returns the power of ten that linear axes are counted in: 0, 3, 6 or 9."""
    if not all(isinstance(axis.get_major_formatter(), ScalarFormatter) for axis in axes):
        return 0
    if any(axis.get_scale() != "linear" for axis in axes):
        return 0
    most = max(abs(float(end)) for axis in axes for end in axis.get_view_interval())
    return max((p for p in POWERS if most >= 10 ** (p + 0.7)), default=0)


def _count(axis: Axis, power: int) -> None:
    """Has an axis count in a power of ten; a logarithmic one writes short numbers."""
    if axis.get_scale() == "linear":
        if isinstance(axis.get_major_formatter(), ScalarFormatter):
            axis.get_major_locator().set_params(nbins=4)
            axis.set_major_formatter(FuncFormatter(lambda v, _: _minus(f"{v / 10**power:.6g}")))
        return
    low, high = axis.get_view_interval()
    if axis.get_scale() == "log":
        if not isinstance(axis.get_major_locator(), FixedLocator):
            axis.set_major_locator(style.make_log_locator(low, high))
        axis.set_minor_formatter(NullFormatter())
    if axis.get_scale() == "symlog":
        # The first power of ten would touch the 0.
        first = math.ceil(math.log10(axis.get_transform().linthresh) + 0.5)
        powers = [10.0**power for power in range(first, 13)]
        ticks = [0.0, *powers, *(-power for power in powers)]
        axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
        axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _minus(write_number(value))))


def _minus(number: str) -> str:
    """Writes the sign of a number as it is printed."""
    return f"\N{MINUS SIGN}{number[1:]}" if number.startswith("-") else number


def _with_power(label: str, power: int) -> str:
    """Adds the power to a label: to its unit in brackets, or in brackets of its own.

    It stands behind the quantity, before what is said of it after a comma.
    """
    if not power:
        return label
    if label.endswith(")"):
        start, _, unit = label.rpartition("(")
        return f"{start}({POWERS[power]}; {unit}"
    quantity, comma, qualifier = label.partition(", ")
    return f"{quantity} ({POWERS[power]}){comma}{qualifier}"
