"""Figures while they are drawn: whether they can be read at their width, and their words."""

import csv
import itertools
import re

import pytest
from matplotlib.text import Text

from experiments import common, pictures


def drawn(monkeypatch):
    """Has pictures keep their figures, by name, and not write them."""
    kept = {}

    def draw_files(name, draw, folder, pdf=False):
        kept[name] = pictures.fitted(draw)
        folder.mkdir(parents=True, exist_ok=True)
        return [folder / f"{name}.png"]

    monkeypatch.setattr(pictures, "draw_files", draw_files)
    monkeypatch.setattr(common, "disagreement", lambda *_: 0.5)  # seconds of draws
    return kept


def published(monkeypatch):
    """Has pictures be kept, by name, and not be drawn; returns these."""
    kept = {}

    def publish(picture, folder):
        kept[picture.name] = picture
        return [folder / f"{picture.name}.md"]

    monkeypatch.setattr(pictures, "publish", publish)
    monkeypatch.setattr(common, "disagreement", lambda *_: 0.5)  # seconds of draws
    return kept


def rows_of(path):
    """Returns the rows of a CSV file."""
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def three(row, head):
    """Returns a number of a CSV file with the ends of its interval."""
    return [float(row[f"{head}{end}"]) for end in ("", ", lower", ", upper")]


def words_of(path):
    """Returns the alternative text and the caption of a picture."""
    lines = path.read_text("utf-8").split("\n")
    alt = re.fullmatch(rf"!\[(.+)\]\({path.stem}.png\)", lines[0])
    assert alt and lines[4] == f"What is to be seen: {alt[1]}"
    assert f"({path.stem}.csv)" in lines[6] and f"redraw {path.stem} --pdf`" in lines[6]
    return alt[1], lines[2]


def texts_of(figure, labels=("label1",)):
    """Returns all texts that a figure draws, and these labels of its ticks."""
    found = [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]
    for axes in [*figure.axes, *(child for each in figure.axes for child in each.child_axes)]:
        found += [*axes.texts, axes.title, axes._left_title, axes._right_title]
        found += axes.get_legend().get_texts() if axes.get_legend() else []
        if not axes.axison:
            continue
        for axis in (axes.xaxis, axes.yaxis):
            found += [axis.label, axis.get_offset_text()]
            low, high = sorted(axis.get_view_interval())
            rim = 1e-9 * (high - low)
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if low - rim <= tick.get_loc() <= high + rim:
                    found += [getattr(tick, label) for label in labels]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def legible(figure, width, smallest=6, labels=("label1",)):
    """Asserts that a figure has a width, and texts that can be read at it.

    Superscripts are smaller than their text: there are none where it may be as small as 6 points.
    """
    assert figure.get_figwidth() == pytest.approx(width, abs=0.01)
    assert figure.get_figheight() <= 22 / 2.54 + 1e-6, "higher than a page"
    figure.canvas.draw()
    page, texts = figure.bbox.padded(1), texts_of(figure, labels)
    # Narrower than it is by what letters leave free around them; without the line that leads to it,
    # whose box is wider than the line.
    boxes = [Text.get_window_extent(text).padded(-1) for text in texts]
    for text, box in zip(texts, boxes, strict=True):
        assert text.get_fontsize() >= smallest, text
        assert smallest > 6 or "$" not in text.get_text(), f"superscripts would be smaller: {text}"
        assert page.contains(*box.min) and page.contains(*box.max), f"cut off: {text}"
    # The box around a slanted text says nothing: its corners are empty.
    upright = [each for each in zip(texts, boxes, strict=True) if each[0].get_rotation() % 90 == 0]
    for (one, box), (other, next_) in itertools.combinations(upright, 2):
        assert not box.overlaps(next_), f"{one} and {other}"


def readable(kept, name, folder):
    """Asserts that a picture can be read; returns its alternative text and its caption."""
    legible(kept[name], 7.0)
    alt, caption = words_of(folder / f"{name}.md")
    assert len(alt) > 40
    return alt, caption
