"""What holds for every kind of figure: it fits a column, is told in short, and keeps its words."""

import itertools
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from legibility import legible
from plots.made import FIGURES, KINDS, caption, draw_caption
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.plots import style
from fmab_jax.plots.saving import save_figure

BAND = "90 % pointwise confidence band of the mean"
# Seeds; the horizon; the kind of band.
TOLD = {
    "runs swept": [r"30 to 40 seeds", "T = 10⁴ slots", "95 % of the seeds lie inside"],
    "runs": [r"\d+ seeds", r"T = 10\S+ slots", "95 % simultaneous band over the whole curve"],
    "heat": ["1000 seeds", r"T = 10\S+ slots", "eans", "at most 4 %", BAND],
    "pareto": ["1000 seeds", r"T = 10\S+ slots", f"bars: {BAND}", "Filled.*: the Pareto front"],
    "": ["1000 seeds", "T = 10⁶ slots", f"bars: {BAND}"],
}


def fits(figure):
    """Asserts that a figure can be read in a column, and has short words that leave it its room."""
    legible(figure, 3.4, smallest=7, labels=("label1", "label2"))
    (text,) = figure.texts
    assert text.get_window_extent().y1 <= style.SHARE * figure.bbox.height
    assert len(caption(figure)) >= len(draw_caption(figure)) > 20
    return draw_caption(figure)


@pytest.mark.parametrize("case", FIGURES)
@pytest.mark.as_users_see_it
def test_everything_fits_a_column_and_nothing_overlaps(case):
    """Catches letters cut off, below 7 points or over each other, a long or empty caption."""
    figure = FIGURES[case]()
    short, (text,) = fits(figure), figure.texts
    told = next(words for name, words in TOLD.items() if case.startswith(name))
    assert all(re.search(words, short) for words in told), short
    # A colour bar lies in the gap that the label beside a map of one row reaches into.
    panels = figure.axes[:1] if "heat" in case else figure.axes[::-1]
    stack = [text.get_window_extent(), *(axes.get_tightbbox() for axes in panels)]
    stack += [legend.get_window_extent() for legend in figure.legends]
    for low, high in itertools.pairwise(stack):
        assert low.y1 <= high.y0 + 0.5
    if case.startswith("pareto"):  # what a label hides looks as if it did not exist
        (axes,) = figure.axes
        marks = [line for line in axes.lines if line.get_linestyle() == "None"]
        points = np.concatenate([axes.transData.transform(line.get_xydata()) for line in marks])
        for label in axes.texts:
            assert not label.get_bbox_patch().get_window_extent().count_contains(points)


@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_a_figure_is_saved_with_its_words_and_with_the_same_bytes(tmp_path, monkeypatch, ending):
    """Catches screen resolution, type 3 fonts, a time stamp, moved places, words of another."""
    monkeypatch.chdir(tmp_path)  # a refusal shows the beginning of a long path
    path, words = Path(f"a.{ending}"), Path("a.txt")
    figure = FIGURES["4x3"]()
    assert save_figure(figure, path) == path
    content = path.read_bytes()
    assert words.read_text("utf-8") == f"{caption(figure)}\n"
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, "a.txt"])
    with pytest.raises(ValueError, match=rf"a\.{ending}'.* must be a new name; .*overwrite=True"):
        save_figure(figure, str(path))
    save_figure(FIGURES["4x3"](), str(path), overwrite=True)
    assert path.read_bytes() == content
    # The same words may stand there already, as of a figure in both formats.
    assert save_figure(figure, path.rename("old").with_name(path.name)) == path
    path.unlink()
    with pytest.raises(ValueError, match=r"a\.txt'.* must be a new name; "):
        save_figure(FIGURES["graphs"](), path)
    assert not path.exists() and words.read_text("utf-8") == f"{caption(figure)}\n"
    if ending == "png":
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(content[16:20], "big") == 1020  # 3.4 inches at 300 dpi
    else:
        assert content[:5] == b"%PDF-" and b"/Type3" not in content and b"/FontFile2" in content


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.as_users_see_it
def test_every_kind_has_any_width_and_leaves_its_caption_out(name, tmp_path):
    """Would catch a width that is not kept, letters of another size, or a caption that is lost."""
    whole = caption(FIGURES[name]())
    for width, inches in (("page", 7.0), ("2.8", 2.8)):
        figure = FIGURES[name](width=width)
        legible(figure, inches, smallest=7, labels=("label1", "label2"))
        bare = FIGURES[name](width=width, caption=False)
        legible(bare, inches, smallest=7, labels=("label1", "label2"))
        assert [text.get_text() for text in bare.texts] == [""]
        assert bare.get_figheight() < figure.get_figheight() - 0.2
        assert caption(bare) == whole
    path = save_figure(bare, tmp_path / "a.png")
    assert path.with_suffix(".txt").read_text("utf-8") == f"{whole}\n"


@pytest.mark.parametrize("name", KINDS)
def test_a_width_and_a_caption_that_are_none_are_refused(name):
    """Would catch a figure without room for its labels, or a text that is read as true."""
    for width in (2.49, 20.1, math.nan, True, None, "wide", "", 1j, [3.4]):
        allowed = r"must be a number in \[2.5, 20\]; give inches, 'column' \(3.4\) or 'page' \(7\)"
        refuses(f"^width={re.escape(repr(width))}: {allowed}", FIGURES[name], width=width)
    refuses("^caption='no': must be True or False", FIGURES[name], caption="no")


def test_figures_of_results_say_that_seeds_still_explore():
    """Would catch a table that the figures do not read, or a caption that is silent."""
    grid = {"epsilon": [0.5, 1.0], "rounds": [2, None], "horizon": 300, "times": 4, "seeds": 20}
    data = fmab.sweep("cdp", agents=5, arms=10, progress=False, **grid)
    assert (data.chosen_arm.values < 0).all()
    frame = fmab.table(data)
    for figure in (
        fmab.plot_runs(data),
        fmab.plot_parameter(frame, "epsilon", "rounds"),
        fmab.plot_heat(frame, "rounds", "epsilon"),
        fmab.plot_pareto(frame.query("rounds == 2")),
    ):
        assert "100 % of the seeds still explore at T." in caption(figure)
    assert "R = 2, 20 seeds per configuration. " in caption(figure)
