"""Figures as a journal prints them: drawn for one column and for two, words and numbers beside.

A picture is drawn twice, each time for the width it is printed at. Its caption and what is to be
seen stand in a Markdown file beside it, and every number that is drawn in a CSV file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, ScalarFormatter

import fmab_jax as fmab
from experiments import common
from fmab_jax.analysis.words import written
from fmab_jax.files import whole_file
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

# Inches: 8.5 cm, a column of a journal, and 17.8 cm, two of them.
COLUMN, PAGE = 3.35, 7.0
NARROW = "_column"  # at the end of the names of files for one column
POWERS = {3: "thousands", 6: "millions", 9: "billions"}


class Page:
    """A figure of one or two columns of a journal, while it is drawn.

    Attributes:
        narrow: Whether it is one column wide.
        width: In inches.
        figure: The figure.
        handles: Entries of the legend above the panels.
        fit: Adapts texts to the panels; called whenever their places have changed.
    """

    def __init__(self, narrow: bool) -> None:
        self.narrow, self.width = narrow, COLUMN if narrow else PAGE
        self.figure = Figure(figsize=(self.width, 4))
        FigureCanvasAgg(self.figure)
        self.handles: Sequence[Any] = ()
        self.fit: Callable[[], None] = lambda: None

    def panels(
        self,
        labels: Sequence[str],
        titles: Sequence[str],
        x: str | Sequence[str] = "slot t",
        height: float = 1.45,
    ) -> np.ndarray:
        """Makes panels, a row for each quantity and a column for each condition.

        Two columns of a journal show them so. In one column, conditions are below each other,
        and quantities, of which there are at most two, beside each other.

        Args:
            labels: What the panels of each row show; a power of ten is added where one is due.
            titles: What the panels of each column are about; "" for nothing.
            x: What lies on the horizontal axis, of all rows or of each.
            height: Of a panel, in inches.

        Returns:
            [row, column] axes, placed for the width.
        """
        shape = (len(labels), len(titles))
        turned = self.narrow and shape[1] > 1
        down, across = shape[::-1] if turned else shape
        self.figure.set_size_inches(self.width, height * down)
        axes = self.figure.subplots(down, across, squeeze=False)
        axes = axes.T if turned else axes
        for each in axes.flat:
            style.dress(each)
            each.margins(x=0.01)
        self._axes, self._labels, self._titles, self._turned = axes, labels, titles, turned
        self._height = height
        self._x = [x] * len(labels) if isinstance(x, str) else list(x)
        return axes

    def finish(self) -> Figure:
        """Writes labels and legend; returns the figure."""
        if hasattr(self, "_axes"):
            self._label()
        return style.finish(self.figure, self.handles, "", fit=self.fit)

    def _label(self) -> None:
        rows, columns = self._axes.shape
        powers = [_power([each.yaxis for each in row]) for row in self._axes]
        for i, j in np.ndindex(rows, columns):
            axes = self._axes[i, j]
            # One power of ten for a quantity in all panels, so that they can be compared.
            _count(axes.yaxis, powers[i])
            across = _power([axes.xaxis])
            _count(axes.xaxis, across)
            told, title = _with_power(self._labels[i], powers[i]), self._titles[j]
            # What a panel shows stands at the left of a row; turned, above the column.
            if self._turned:
                words = style.wrapped(told, self.width / rows - 0.3) if j == 0 else ""
                axes.set_title(words, fontsize=FONT, pad=4)
                axes.set_ylabel(title if i == 0 else "", fontsize=FONT, labelpad=2)
            else:
                axes.set_title(title if i == 0 else "", fontsize=FONT, pad=3)
                words = style.wrapped(told, self._height - 0.1) if j == 0 else ""
                axes.set_ylabel(words, fontsize=FONT, labelpad=2)
            axes.set_xlabel(_with_power(self._x[i], across), fontsize=FONT, labelpad=2)
        if not self._turned:
            # Rows with one horizontal axis have one label.
            for upper, lower in zip(self._axes, self._axes[1:], strict=False):
                if all(a.get_xlabel() == b.get_xlabel() for a, b in zip(upper, lower, strict=True)):
                    for axes in upper:
                        axes.set_xlabel("")


class Picture(NamedTuple):
    """A figure with its words and numbers.

    Attributes:
        name: Of its files, without an ending.
        draw: Draws on a page; called once for each width.
        caption: Setting, horizon, seeds, and which kind of band is shown.
        alt: What is to be seen, for who does not see it: one to three sentences.
        rows: Every number that is drawn, a row for each point.
    """

    name: str
    draw: Callable[[Page], None]
    caption: str
    alt: str
    rows: Sequence[Mapping[str, Any]]


def publish(picture: Picture, folder: Path) -> list[Path]:
    """Writes a picture for one column and for two (PNG and PDF), its words and its numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for narrow in (False, True):
        page = Page(narrow)
        picture.draw(page)
        figure = page.finish()
        for end in (".png", ".pdf"):
            path = folder / f"{picture.name}{NARROW if narrow else ''}{end}"
            paths.append(fmab.save_figure(figure, path, overwrite=True))
    lines = [
        f"![{picture.alt}]({picture.name}.png)",
        "",
        picture.caption,
        "",
        f"What is to be seen: {picture.alt}",
        "",
        f"For two columns: [PNG]({picture.name}.png), [PDF]({picture.name}.pdf). For one column of "
        f"8.5 cm: [PNG]({picture.name}{NARROW}.png), [PDF]({picture.name}{NARROW}.pdf). "
        f"Numbers: [CSV]({picture.name}.csv).",
    ]
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
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v / 10**power:.6g}"))
        return
    if axis.get_scale() == "log":
        low, high = axis.get_view_interval()
        axis.set_major_locator(style.log_locator(low, high))
        axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value)))


def _with_power(label: str, power: int) -> str:
    """Adds the power to a label: to its unit in brackets, or in brackets of its own."""
    if not power:
        return label
    if label.endswith(")"):
        start, _, unit = label.rpartition("(")
        return f"{start}({POWERS[power]}; {unit}"
    return f"{label} ({POWERS[power]})"


def line_up(axes: Axes, which: str = "y") -> None:
    """Draws a thin line where a difference is 0."""
    draw = axes.axhline if which == "y" else axes.axvline
    draw(0, color="0.4", linewidth=0.5, zorder=0.5)


def exponent_of(value: float) -> int:
    """Returns the power of ten below a positive number."""
    return math.floor(math.log10(value))
