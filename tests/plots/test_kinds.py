"""What holds for every kind of figure: it fits a column, is told in short, and keeps its words."""

import itertools
import math
import os
import re
from pathlib import Path

import numpy as np
import pytest
from legibility import legible
from plots.made import FIGURES, caption, result, table
from refusals import refuses

import fmab_jax as fmab
from fmab_jax.plots import kinds, style
from fmab_jax.plots.runs import save_figure

PRICES = {"server_price": 1.0, "peer_price": 1.0}
BAND = "90 % pointwise confidence band of the mean"
# Seeds; the horizon; the kind of band.
TOLD = {
    "runs swept": [r"30 to 40 seeds", "T = 10⁴ slots", "95 % of the seeds lie inside", "50 per s"],
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
    (short,), long = style.read_caption(figure)
    assert "\n" not in long and len(long) >= len(short) > 20
    return short


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


@pytest.mark.parametrize("name", kinds.KINDS)
@pytest.mark.as_users_see_it
def test_every_kind_of_the_table_draws_what_can_be_read(name):
    """Would catch a line whose function is not there, takes other options, or cannot be read."""
    kind, finals = kinds.KINDS[name], table(epsilon=[0.1, 1.0], graph=["ring", "star"])
    asked = {"x": "epsilon", "y": "graph", "hue": "graph", "metric": "regret", "level": 0.95}
    fits(kind.draw(result() if kind.curves else finals, asked | PRICES))


def draw(name, **how):
    """Draws a kind of figure from made-up results."""
    kind, finals = kinds.KINDS[name], table(epsilon=[0.1, 1.0], graph=["ring", "star"])
    asked = {"x": "epsilon", "y": "graph", "hue": "graph", "metric": "regret", "level": 0.95}
    return kind.draw(result() if kind.curves else finals, asked | PRICES | how)


@pytest.mark.parametrize("name", kinds.KINDS)
@pytest.mark.as_users_see_it
def test_every_kind_has_any_width_and_leaves_its_caption_out(name, tmp_path):
    """Would catch a width that is not kept, letters of another size, or a caption that is lost."""
    whole = caption(draw(name))
    for width, inches in (("page", 7.0), ("2.8", 2.8)):
        figure = draw(name, width=width)
        legible(figure, inches, smallest=7, labels=("label1", "label2"))
        bare = draw(name, width=width, caption=False)
        legible(bare, inches, smallest=7, labels=("label1", "label2"))
        assert [text.get_text() for text in bare.texts] == [""]
        assert bare.get_figheight() < figure.get_figheight() - 0.2
        # Labels of points depend on the room that there is.
        assert caption(bare).partition(" labelled")[0] in (whole, whole.partition(" labelled")[0])
    path = save_figure(bare, tmp_path / "a.png")
    assert path.with_suffix(".txt").read_text("utf-8") == f"{caption(bare)}\n"


@pytest.mark.parametrize("name", kinds.KINDS)
@pytest.mark.parametrize(
    "width", [2.49, 20.1, 0, -3.4, math.nan, math.inf, True, None, "wide", "", "7in", 1j, [3.4]]
)
def test_a_width_that_is_none_is_refused(name, width):
    """Would catch a figure without room for its labels, or an error of matplotlib."""
    allowed = r"must be 'column', 'page', or a number of inches in \[2.5, 20\]; a column is 3.4 in"
    refuses(f"^width={re.escape(repr(width))}: {allowed}", draw, name, width=width)


@pytest.mark.parametrize("name", kinds.KINDS)
@pytest.mark.parametrize("value", [0, 1, "no", None])
def test_a_caption_is_drawn_or_not(name, value):
    """Would catch a text in place of a truth value that is read as one."""
    refuses(f"^caption={value!r}: must be True or False", draw, name, caption=value)


def test_figures_say_that_seeds_still_explore():
    """Would catch a figure whose caption is silent where the table is not."""
    problem = fmab.Problem.uniform(agents=5, arms=10)
    how = {"horizon": 300, "times": 4}
    data = fmab.simulate(fmab.cdp_mab(0.5), problem, seeds=20, **how)
    assert (data.chosen_arm.values < 0).all()
    told = "100 % of the seeds still explore at T."
    assert told in fmab.plot_runs({"one": data}).get_label()
    swept = fmab.sweep("cdp", problem, epsilon=[0.5, 1.0], seeds=20, **how)
    figure = fmab.plot_parameter(fmab.final_table(swept), "epsilon")
    assert told in figure.get_label()
