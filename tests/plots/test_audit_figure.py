"""The figure of an audit against the histogram that it is made of."""

import math

import numpy as np
import pytest
from matplotlib.colors import to_hex
from plots.made import EDGES, WITH_IT, WITHOUT, audit, caption

from fmab_jax.plots import style
from fmab_jax.plots.audit import plot_audit


def test_both_densities_and_their_log_ratio_by_hand():
    """Catches counts for densities, swapped data, ratios of near-empty bins, another finding."""
    figure = plot_audit(audit(), 1)
    above, below = figure.axes
    drawn = [patch.get_data() for patch in above.patches]
    for stairs, runs in zip(drawn, (WITHOUT, WITHOUT, WITH_IT, WITH_IT), strict=True):
        np.testing.assert_allclose(stairs.values, runs / (1000 * 0.5), rtol=1e-14)
        np.testing.assert_array_equal(stairs.edges, EDGES)
    colours = [to_hex(patch.get_edgecolor()) for patch in above.patches[1::2]]
    assert colours == [to_hex(each) for each in style.COLOURS[:2]]
    points = next(line for line in below.lines if line.get_marker() == "o")
    np.testing.assert_array_equal(points.get_xdata(), [0.25, 0.75, 1.75])
    due = np.log([60 / 100, 200 / 60, 50 / 300])
    np.testing.assert_allclose(points.get_ydata(), due, rtol=1e-14)
    assert below.get_ylim() == pytest.approx((-2.5, 2.5))  # the claim is the largest


@pytest.mark.parametrize(
    "claim, levels, words",
    [
        (2.0, {"claim": 2.0, "lower bound": 1.25}, "epsilon is at least 1.25, 2 is claimed"),
        (math.inf, {"lower bound": 1.25}, "epsilon is at least 1.25, none is claimed"),
    ],
)
def test_claim_and_bound_lie_on_both_sides(claim, levels, words):
    """Would catch one side alone, the bound drawn at the claim, and a line at infinity."""
    figure = plot_audit(audit(claim), 1)
    flat = [line for line in figure.axes[1].lines if len(set(line.get_ydata())) == 1]
    found = [(line.get_label(), line.get_ydata()[0]) for line in flat]
    assert {label: abs(at) for label, at in found} == levels
    wanted = sorted(s * at for at in levels.values() for s in (-1, 1))
    assert sorted(at for _, at in found) == wanted
    for axes in figure.axes:
        (edge,) = (x for x in axes.lines if x.get_linestyle() == ":" and x.get_color() == "0.45")
        assert list(edge.get_xdata()) == [0.75, 0.75]
    text = caption(figure)
    assert text.startswith("CDP-MAB, ε = 0.5, M = 7 agents: one upload. 1000 runs of each of two")
    assert words in text and "wrong with a chance of 10⁻⁶ at most" in text
