"""The figure of a race says how many candidates are left, and how they compare."""

import numpy as np

from fmab_jax.planning.runs import Look
from fmab_jax.plots.rivals import plot_race


def test_the_race_is_drawn_as_it_was():
    """Would catch candidates that are counted twice, rivals that exceed a budget, lost seeds."""
    means = {"best": 10.0, "near": 12.0, "far": 90.0, "cheat": 5.0, "early": 1.0}
    seeds = {"best": [200, 400, 800], "near": [200, 400], "far": [200], "cheat": [200]}
    looks = [Look("early", 8, 1.0, 0.5, 1.5), Look("cheat", 8, 5.0, 4.0, 6.0)]
    looks += [Look(x, n, means[x], means[x] - 1, means[x] + 1) for x in seeds for n in seeds[x]]
    figure = plot_race(looks, "best", ["cheat", "early"])
    above, below = figure.axes
    (steps,) = above.lines
    np.testing.assert_array_equal(steps.get_xydata(), [[200, 4], [400, 2], [800, 1]])
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["best", "near", "far"]
    drawn = [box.lines[0].get_ydata().tolist() for box in below.containers]
    assert drawn == [[10.0] * 3, [12.0] * 2, [90.0]]
    bars = below.containers[0].lines[2][0].get_segments()
    assert [bar[:, 1].tolist() for bar in bars] == [[9.0, 11.0]] * 3
    assert below.get_xscale() == "log" and "seeds" in below.get_xlabel()
    assert "(rewards)" in below.get_ylabel()
    caption = figure.get_label()
    assert caption.startswith("Race of 5 candidates, 200 to 800 seeds. Not drawn, as over")
