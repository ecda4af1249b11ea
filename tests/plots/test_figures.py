"""Figures of a table show its numbers, readable at column width."""

import math

import numpy as np
import pytest
from matplotlib.text import Annotation
from plots.made import BAND, EPSILONS, GRAPHS, caption, draw_caption, leaky, table

from fmab_jax.plots import captions, pareto, style
from fmab_jax.plots.heat import plot_heat
from fmab_jax.plots.lines import plot_parameter
from fmab_jax.plots.pareto import plot_pareto


def lines(figure):
    """Returns the lines of means by label."""
    found = {str(line.get_label()): line for line in figure.axes[0].lines}
    return {label: line for label, line in found.items() if not label.startswith("_")}


def ticks(axis):
    """Returns the texts of an axis's ticks."""
    return [label.get_text() for label in axis.get_majorticklabels()]


def bars(figure):
    """Returns the ends of the drawn bars, [bar, end, xy], collection by collection."""
    return [np.array(part.get_segments()) for part in figure.axes[0].collections]


@pytest.mark.parametrize("metric", ["regret", "cost", "rounds"])
def test_a_line_shows_the_means_of_the_table_and_their_bars(metric):
    """Would catch cells swapped between lines, another metric, or the budget drawn as rounds."""
    frame = table(rounds=[2, 5, 3], epsilon=EPSILONS)
    figure = plot_parameter(
        frame.sample(frac=1, random_state=1), "rounds", "epsilon", metric=metric
    )
    name = "rounds_made" if metric == "rounds" else metric
    assert sorted(lines(figure)) == ["0.1", "0.3", "0.5", "1"]
    assert figure.legends[0].get_title().get_text() == "privacy parameter ε"
    for (label, line), ends in zip(lines(figure).items(), bars(figure), strict=True):
        cells = frame[frame.epsilon == float(label)].sort_values("rounds")
        np.testing.assert_array_equal(line.get_xdata(), [2, 3, 5])
        np.testing.assert_array_equal(line.get_ydata(), cells[name])
        np.testing.assert_array_equal(ends[:, :, 1], cells[[f"{name}_lower", f"{name}_upper"]])
        np.testing.assert_array_equal(ends[:, :, 0], [[2, 2], [3, 3], [5, 5]])
    label = figure.axes[0].get_ylabel().replace("\n", " ")
    assert label == {
        "regret": "cumulative regret at T (reward, summed over M agents)",
        "cost": "communication cost at T (price: 2 per server link, 1 per peer link)",
        "rounds": "rounds completed by T",
    }[metric]  # fmt: skip
    assert figure.axes[0].get_xlabel() == "round budget R"


@pytest.mark.parametrize(
    "values, scale, places, labels",
    [
        ([0.2, 0.4, 1.0], "linear", [0.2, 0.4, 1.0], ["0.2", "0.4", "1"]),
        ([0.1, 0.5, 2.0], "log", [0.1, 0.5, 2], ["0.1", "0.5", "2"]),
        ([10**7, 10**4, 2 * 10**5], "log", [1e4, 2e5, 1e7], ["10⁴", "2×10⁵", "10⁷"]),
        (["low", 4, 2], "linear", [0, 1, 2], ["low", "4", "2"]),
        (["star", "ring"], "linear", [0, 1], ["star", "ring"]),
        ([0.5], "linear", [0.5], ["0.5"]),
        ([math.inf], "linear", [0], ["no noise"]),
    ],
)
def test_the_axis_suits_the_values(values, scale, places, labels):
    """Would catch numbers out of order or evenly spaced, or names on an axis of numbers."""
    figure = plot_parameter(table(epsilon=values), "epsilon")
    axes = figure.axes[0]
    assert axes.get_xscale() == scale
    np.testing.assert_array_equal(lines(figure)["mean"].get_xdata(), places)
    assert ticks(axes.xaxis) == labels
    categorical = any(isinstance(value, str) for value in values) or values == [math.inf]
    assert (lines(figure)["mean"].get_linestyle() == "None") == categorical
    low, high = axes.get_xlim()
    assert low < min(places) and max(places) < high


@pytest.mark.parametrize(
    "epsilons", [[math.inf, 0.5, 0.2], [0.01, 0.1, 1.0, math.inf], [1, math.inf]]
)
def test_no_noise_stands_behind_a_break_of_the_axis(epsilons):
    """Would catch an infinite number dropped, drawn at a finite place, or joined to the others."""
    frame = table(epsilon=epsilons).sort_values("epsilon")
    figure = plot_parameter(frame, "epsilon")
    axes = figure.axes[0]
    x, y = lines(figure)["mean"].get_data()
    *finite, _ = frame.epsilon
    np.testing.assert_array_equal(x[:-2], finite)
    np.testing.assert_array_equal(np.delete(y, -2), frame.regret)
    assert np.isnan(x[-2]) and finite[-1] < x[-1] < axes.get_xlim()[1]
    assert ticks(axes.xaxis)[-1] == "no noise"
    (mark,) = [text for text in axes.texts if text.get_text() == "//"]
    assert finite[-1] < mark.xy[0] < x[-1] and mark.xy[1] == 0


def test_a_map_shows_the_table_with_numbers_in_its_cells():
    """Would catch a transposed or flipped map, numbers of other cells, or a cell made up."""
    frame = table(epsilon=[1.0, 0.1, math.inf], graph=GRAPHS, lost=20)
    frame = frame.drop(index=14)  # no noise, regular-4
    figure = plot_heat(frame, "epsilon", "graph")
    axes, bar = figure.axes
    order = [0.1, 1.0, math.inf]
    (mesh,) = axes.collections
    shown = mesh.get_array()
    assert shown.mask.sum() == 1 and shown.mask[4, 2]
    assert ticks(axes.xaxis) == ["0.1", "1", "no noise"] and ticks(axes.yaxis) == GRAPHS
    assert [axes.get_xlabel(), axes.get_ylabel()] == ["privacy parameter ε", "graph"]
    texts = {text.get_position(): text for text in axes.texts}
    assert len(texts) == len(frame)
    for row in frame.itertuples():
        place = order.index(row.epsilon), GRAPHS.index(row.graph)
        assert shown[place[::-1]] == row.regret
        text = texts[place]
        assert 1000 * float(text.get_text().removesuffix("k")) == pytest.approx(
            row.regret, rel=5e-3
        )
        # WCAG 2: contrast of text and cell, from their relative luminances.
        colour = np.array(mesh.cmap(mesh.norm(row.regret))[:3])
        light = np.where(colour > 0.04045, ((colour + 0.055) / 1.055) ** 2.4, colour / 12.92)
        luminance = light @ [0.2126, 0.7152, 0.0722]
        brighter = 1.0 if text.get_color() == "white" else luminance
        darker = luminance if text.get_color() == "white" else 0.0
        assert (brighter + 0.05) / (darker + 0.05) > 4
    assert bar.get_xlabel() == "cumulative regret at T\n(reward, summed over M agents)"
    figure.canvas.draw()
    low, high = bar.get_xlim()
    shown_ticks = [each for each in bar.xaxis.get_major_ticks() if low <= each.get_loc() <= high]
    assert len(shown_ticks) > 1
    for tick in shown_ticks:
        text = tick.label1.get_text() or tick.label2.get_text()
        assert 1000 * float(text.removesuffix("k")) == tick.get_loc()
    assert f"Not drawn: the {BAND}, ± at most 4 % of the mean. " in caption(figure)


def cells_at(points):
    """Returns a table whose cells have these costs and regrets, without bars."""
    frame = table(epsilon=list(range(1, len(points) + 1)))
    for name, values in zip(("cost", "regret"), np.array(points, float).T, strict=True):
        for end in ("", "_lower", "_upper"):
            frame[name + end] = values
    return frame


def assert_front(figure, points, front):
    """Asserts which points are filled, and which are hollow."""
    _, hollow, filled = [line for line in figure.axes[0].lines if line.get_label() != "_"]
    assert hollow.get_markerfacecolor() == "white"
    assert filled.get_markerfacecolor() == filled.get_color() == style.COLOURS[0]
    points = np.array(points, float)
    beaten = sorted(set(range(len(points))) - set(front))
    np.testing.assert_array_equal(filled.get_xydata(), points[sorted(front)])
    np.testing.assert_array_equal(hollow.get_xydata(), points[beaten].reshape(-1, 2))


@pytest.mark.parametrize(
    "points, front",
    [
        ([(1, 5), (2, 3), (3, 4), (4, 1)], [0, 1, 3]),
        ([(1, 5), (1, 4), (1, 5)], [1]),
        ([(1, 5), (2, 5), (3, 5)], [0]),
        ([(2, 2), (1, 3), (2, 2), (3, 2), (2, 3)], [1, 0, 2]),
        ([(4, 4), (0, 9), (4, 4.1), (9, 0)], [1, 0, 3]),
    ],
    ids=["plain", "same cost", "same regret", "equal cells", "zeros"],
)
def test_no_cell_beats_the_front(points, front):
    """Would catch beaten cells filled, ties that drop both cells, or a step of the wrong sense."""
    figure = plot_pareto(cells_at(points))
    assert_front(figure, points, front)
    step = figure.axes[0].lines[0]
    np.testing.assert_array_equal(step.get_xydata(), np.array(points)[front])
    assert step.get_drawstyle() == "steps-post"


def test_the_front_takes_the_leak():
    """Would catch a cell beaten by one that leaks more, a line through cells of other leaks, a
    cell without delta beaten by a smaller epsilon that holds up to one, and one without a bound
    that no other beats."""
    points, leaks = [(1, 9), (2, 5), (2, 8), (2, 8), (3, 9)], [50.0, 50.0, 10.0, 20.0, 10.0]
    assert_front(plot_pareto(leaky(cells_at(points), 7.0)), points, [0, 1])
    figure = plot_pareto(leaky(cells_at(points), leaks))
    assert_front(figure, points, [0, 1, 2])
    assert len(figure.axes[0].lines[0].get_xdata()) == 0
    text = caption(figure)
    assert "single messages: 50 (ε = 1 / ε = 2); 10 (ε = 3 / ε = 5); 20 (ε = 4). " in text
    assert "front of cost, regret and leak at the same trust; 3 of 5 configurations" in text
    # A cell beats those of its own trust alone.
    columns = np.column_stack([points, leaks, np.zeros(5)])
    assert pareto._find_front(columns, np.array([0, 0, 0, 1, 0])).tolist() == [0, 1, 2, 3]
    points = [(1, 5), (2, 6), (3, 7), (4, 8)]
    for leaks, deltas, front in (
        ([1.448, 5, 1.448, 0], [1e-6, 0, 1e-6, 0], [0, 1, 3]),
        ([1.5, np.inf, np.nan, 5], [1e-6, 0, np.nan, 0], [0, 3]),
    ):
        figure = plot_pareto(leaky(cells_at(points), leaks, deltas))
        assert_front(figure, points, front)
        assert "Leak (ε, δ) of one reward in single messages: (1." in caption(figure)


def test_unequal_leaks_are_in_the_caption():
    """Would catch leaks of 10 and 50 side by side at one epsilon without a word."""
    frame = table(epsilon=[0.1, 0.5, 1.0], participation=[0.2, 1.0])
    dims = ("epsilon", "participation")
    unlike = leaky(frame, frame.epsilon * frame.participation * 50)
    for draw in (plot_parameter, plot_heat):
        text = caption(draw(unlike, *dims))
        assert "of one reward in single messages: 1 (ε = 0.1, p = 0.2); 5 (ε = 0.1, p = 1" in text
        assert "50 (ε = 1, p = 1). " in text and "Trusted" not in text
    assert "leak" not in caption(plot_parameter(leaky(frame, 7.0), *dims)).lower()
    # A parameter that does not change the leak is not named.
    text = caption(plot_pareto(leaky(frame, frame.epsilon * 50, 1e-6 * (frame.epsilon < 1))))
    told = "Leak (ε, δ) of one reward in single messages: (5, 10⁻⁶) (ε = 0.1); (25, 10⁻⁶) (ε = 0.5)"
    assert f"{told}; 50 (ε = 1). " in text
    no_noise = leaky(table(epsilon=[math.inf, 0.5]), [np.inf, 2.0]).assign(trust=["all", "nobody"])
    text = caption(plot_parameter(no_noise, "epsilon"))
    assert "no bound (no noise); 2 (ε = 0.5). Trusted: “all” (no noise); “nobody” (ε = 0.5)" in text


def test_every_cell_has_a_point_and_both_bars():
    """Would catch cells lost or coloured as another value of the hue, or intervals swapped."""
    frame = table(epsilon=EPSILONS, participation=[0.2, 1.0], rounds=[math.inf, 2])
    figure = plot_pareto(frame, "participation")
    axes, (legend,) = figure.axes[0], figure.legends
    assert legend.get_title().get_text() == "participation p"
    assert [text.get_text() for text in legend.get_texts()] == ["0.2", "1"]
    upright, level = bars(figure)[0::2], bars(figure)[1::2]
    for index, p in enumerate((0.2, 1.0)):
        cells = frame[frame.participation == p]
        mine = [line for line in axes.lines if line.get_label() == f"{p:g}"]
        assert {line.get_color() for line in mine} == {style.COLOURS[index]}
        drawn = np.concatenate([np.transpose(line.get_data()) for line in mine])
        expected = cells[["cost", "regret"]].to_numpy()
        assert sorted(map(tuple, drawn)) == sorted(map(tuple, expected))
        np.testing.assert_array_equal(
            upright[index][:, :, 1], cells[["regret_lower", "regret_upper"]]
        )
        np.testing.assert_array_equal(level[index][:, :, 0], cells[["cost_lower", "cost_upper"]])


@pytest.mark.as_users_see_it
def test_labels_name_the_cells_of_the_front():
    """Would catch labels of other cells, or more than eight."""
    frame = table(epsilon=[*EPSILONS, math.inf], graph=GRAPHS, participation=[0.4])
    cells = {}
    for row in frame.itertuples():
        name = "no noise" if row.epsilon == math.inf else f"ε = {row.epsilon:g}"
        cells[f"{name}, {row.graph}"] = (row.cost, row.regret)
    figure = plot_pareto(frame)
    labels = [text for text in figure.axes[0].texts if isinstance(text, Annotation)]
    step = {tuple(point) for point in np.transpose(figure.axes[0].lines[0].get_data())}
    assert 4 <= len(labels) <= 8
    for label in labels:
        assert cells[label.get_text()] == label.xy and label.xy in step
    assert f"{len(step)} of 25 configurations. " in caption(figure)
    short = plot_pareto(frame[frame.graph == "star"], "epsilon").axes[0].texts
    assert {text.get_text() for text in short} <= {"no noise", *(f"ε = {e:g}" for e in EPSILONS)}


def test_the_caption_states_what_the_cells_share_and_the_band():
    """Would catch a figure without its setting, its band, or its worst counts of seeds."""
    frame = table(epsilon=EPSILONS, participation=[0.4, 1.0], rounds=[math.inf], lost=20, worse=30)
    fixed = "DDP-MAB, M = 50 agents, K = 100 arms, T = 10⁶ slots"
    figure = plot_parameter(frame, "epsilon", "participation")
    assert caption(figure) == (
        f"{fixed}, no round budget, 1000 seeds per configuration. Points: means over the "
        f"seeds; bars: {BAND}. 20 of 8000 seeds lost the best arm, most in one configuration 20 of "
        "1000 (90 % Clopper–Pearson interval 1.6–2.7 %) at ε = 0.1, p = 0.4. 30 of 8000 play a "
        "worse arm at T, most in one configuration 30 of 1000 (2.4–3.9 %) at ε = 0.1, p = 0.4."
    )
    assert "20 of 8000 seeds lost the best arm. 30 of 8000 play a worse" in draw_caption(figure)
    one = frame.query("epsilon == 0.3 and participation == 1").assign(undecided=0.125)
    assert caption(plot_pareto(one)) == (
        f"{fixed}, ε = 0.3, p = 1, no round budget, 1000 seeds. Points: means over "
        f"the seeds; bars: {BAND}. Filled points: the Pareto front; 1 of 1 configuration. "
        "Peer links are counted on the meter bound. 0 of 1000 seeds lost the best arm (90 % "
        "Clopper–Pearson interval 0–0.3 %). 0 of 1000 play a worse arm at T (0–0.3 %). 12 % of "
        "the seeds still explore at T."
    )


def test_the_worst_configuration_is_the_one_of_the_largest_share():
    """Catches the largest number where seeds differ, and of equal shares the surer one."""
    frame = table(epsilon=[0.1, 0.5, 2.0]).assign(
        seeds=[1000, 10, 100],
        best_arm_lost=[0.02, 0.1, 0.1],
        best_arm_lost_lower=[0.01, 0.0, 0.05],
        best_arm_lost_upper=[0.04, 0.45, 0.18],
    )
    said = captions.describe_events(frame, ["a", "b", "c"], 0.9)
    assert said[0] == (
        "31 of 1110 seeds lost the best arm, most in one configuration 1 of 10 "
        "(90 % Clopper–Pearson interval 0–45 %) at b"
    )
    assert said[1].startswith("0 of 1110 play a worse arm at T, 0 in every configuration")
