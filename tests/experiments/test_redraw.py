"""Pictures drawn from the numbers beside them: the same as from results, and all of them."""

from pathlib import Path

import numpy as np
import pytest
from legibility import published
from pages import writers
from refusals import refused

from experiments import arena_figures, arena_fronts_figures, common, pictures, redraw

FIGURES = Path(common.__file__).parents[1] / "figures"


def shown(draw):
    """Returns the points of all lines and bands that a picture draws, by panel, and its words."""
    page = pictures.Page()
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
def test_pictures_are_drawn_anew_as_from_results(monkeypatch, tmp_path):
    """Would catch an end of an interval for the mean, another's numbers, and one left out."""
    kept = published(monkeypatch)
    found = writers.parts(10**4)
    arena_figures.draw({10**4: found}, tmp_path)
    results = {"arena": {10**5: found}, "arena_fronts": {10**5: {}}}
    arena_fronts_figures.judge(results.__getitem__, tmp_path)
    for picture in kept.values():
        common.save_rows(picture.rows, tmp_path / f"{picture.name}.csv")
    for name, picture in kept.items():
        same(shown(picture.draw), shown(redraw.drawing_of(tmp_path, name)))
    assert len(kept) == 7


def test_every_published_picture_can_be_drawn_from_its_csv():
    """Would catch a picture whose numbers are not all beside it, or that nothing draws anew."""
    names = [path.stem for path in FIGURES.glob("*.png") if path.with_suffix(".csv").exists()]
    assert len(names) > 25
    for name in names:
        page = pictures.Page()
        redraw.drawing_of(FIGURES, name)(page)
        assert page.figure.axes, name
    with pytest.raises(LookupError, match="arena_caps"):
        redraw.drawing_of(FIGURES, "arena_caps")


def test_pictures_for_print_are_written_by_a_command(tmp_path, capsys):
    """Catches a width or a kind of file left out, and a name that is passed over."""
    name = "fig09_graphs"
    (tmp_path / f"{name}.csv").symlink_to(FIGURES / f"{name}.csv")
    redraw.main([name, "--pdf", "--figures", str(tmp_path)])
    ends = (".csv", ".pdf")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{name}{end}" for end in ends]
    redraw.main(["--figures", str(tmp_path)])
    assert f"{name}.png" in capsys.readouterr().out and (tmp_path / f"{name}.png").exists()
    assert "one of fig09_graphs" in refused(redraw.main, ["fig4", "--figures", str(tmp_path)])


def test_rows_are_read_as_they_were_written(tmp_path):
    """Catches an interval in three columns, a number as text, and a blank for a number."""
    rows = [
        {"a": (1.5, 1.0, 2.0), "b": "1/16", "c": True, "d": 3},
        {"a": "", "b": "none", "c": False, "d": 0.25},
    ]
    assert common.read_rows(common.save_rows(rows, tmp_path / "t.csv")) == rows
