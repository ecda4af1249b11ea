"""Pictures that are drawn anew from the numbers beside them: the same as from results."""

import numpy as np
import pytest
from legibility import published
from pages import writers

from experiments import arena_figures, arena_fronts, arena_fronts_figures, common, pictures, redraw


def shown(draw, narrow):
    """Returns the points of all lines and bands that a picture draws, by panel, and its words."""
    page = pictures.Page(narrow)
    draw(page)
    found = []
    for axes in page.figure.axes:
        lines = [(line.get_label(), *points_of(line)) for line in axes.lines]
        bands = [path.vertices for band in axes.collections for path in band.get_paths()]
        words = axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()
        found.append((words, axes.get_xlim(), axes.get_ylim(), lines, bands))
    return found, [handle.get_label() for handle in page.handles]


def points_of(line):
    """Returns the points of a line; of markers alone the order says nothing."""
    points = np.array(line.get_data(), float)
    marks = line.get_linestyle() == "None"
    return points[:, np.lexsort(points)] if marks else points


def same(first, second):
    """Asserts that two pictures show the same."""
    (panels, legend), (others, names) = first, second
    assert legend == names and len(panels) == len(others)
    for (words, x, y, lines, bands), (told, u, v, curves, ribbons) in zip(
        panels, others, strict=True
    ):
        assert words == told
        np.testing.assert_allclose([*x, *y], [*u, *v], rtol=1e-9)
        marks = [label for label, *_ in lines if not label.startswith("_")]
        assert marks == [label for label, *_ in curves if not label.startswith("_")]
        for (_, *points), (_, *again) in zip(lines, curves, strict=True):
            np.testing.assert_allclose(np.array(points, float), np.array(again, float), rtol=1e-9)
        for band, ribbon in zip(bands, ribbons, strict=True):
            np.testing.assert_allclose(band, ribbon, rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("narrow", [False, True])
def test_pictures_are_drawn_anew_as_from_results(monkeypatch, tmp_path, narrow):
    """Would catch an end of an interval for the mean, another's numbers, and one left out."""
    kept = published(monkeypatch)
    found = writers.parts(10**4)
    arena_figures.draw({10**4: found}, tmp_path)
    results = {"arena": {10**5: found}, "arena_fronts": {10**5: {"dials": {}, "far": {}}}}
    arena_fronts_figures.judge(arena_fronts.Data(results.__getitem__), tmp_path)
    drawn = 0
    for picture in kept.values():
        common.save_rows(picture.rows, tmp_path / f"{picture.name}.csv")
    for name, picture in kept.items():
        if name.startswith(("arena_regret", "arena_links", "arena_leak", "arena_front")):
            same(shown(picture.draw, narrow), shown(redraw.drawing_of(tmp_path, name), narrow))
            drawn += 1
    assert drawn == 6
    with pytest.raises(LookupError, match="arena_years"):
        redraw.drawing_of(tmp_path, "arena_years")
