"""Figures of a sweep show the numbers of its table, readable at column width."""

import itertools
import json
import math

import numpy as np
import pytest
import xarray as xr
from ledgers import make_gaussian_row
from matplotlib.colors import to_rgb
from matplotlib.text import Annotation
from plots.made import (
    BAND,
    EPSILONS,
    GRAPHS,
    LINEAR,
    caption,
    leaking,
    named,
    result,
    scaled,
    swept,
    table,
)

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.analysis.bands import confidence_band, lost_interval
from fmab_jax.plots import captions, pareto, style
from fmab_jax.plots import runs as plots
from fmab_jax.plots.parameters import plot_heat, plot_parameter
from fmab_jax.plots.pareto import plot_pareto
from fmab_jax.plots.runs import plot_runs, select_cells
from fmab_jax.plots.style import COLOURS
from fmab_jax.sweeps.grid import build_attributes


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
    data = table(rounds=[2, 5, 3], epsilon=EPSILONS).transpose("epsilon", "rounds", ...)
    figure = plot_parameter(data, "rounds", "epsilon", metric=metric)
    name = "rounds_made" if metric == "rounds" else metric
    shown = lines(figure)
    assert list(shown) == ["ε = 0.1", "ε = 0.3", "ε = 0.5", "ε = 1"]
    for epsilon, line, ends in zip(EPSILONS, shown.values(), bars(figure), strict=True):
        cells = data.sel(epsilon=epsilon, rounds=[2, 3, 5])
        np.testing.assert_array_equal(line.get_xdata(), [2, 3, 5])
        np.testing.assert_array_equal(line.get_ydata(), cells[name])
        np.testing.assert_array_equal(ends[:, 0, 1], cells[f"{name}_lower"])
        np.testing.assert_array_equal(ends[:, 1, 1], cells[f"{name}_upper"])
        np.testing.assert_array_equal(ends[:, :, 0], [[2, 2], [3, 3], [5, 5]])
    label = figure.axes[0].get_ylabel().replace("\n", " ")
    assert label == {
        "regret": "cumulative regret at T (reward, summed over M agents)",
        "cost": "communication cost at T (price: 2 per server link, 1 per peer link)",
        "rounds": "rounds completed by T",
    }[metric]  # fmt: skip
    assert figure.axes[0].get_xlabel() == "round budget R"
    axes = plot_parameter(table(rounds=["none", 2, 4]), "rounds").axes[0]
    assert [label.replace("\n", " ") for label in ticks(axes.xaxis)][-1] == "no round budget"


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
    data = table(epsilon=epsilons)
    figure = plot_parameter(data, "epsilon")
    axes = figure.axes[0]
    x, y = lines(figure)["mean"].get_data()
    finite = sorted(epsilons)[:-1]
    np.testing.assert_array_equal(x[:-2], finite)
    np.testing.assert_array_equal(y[:-2], data.regret.sel(epsilon=finite))
    assert np.isnan(x[-2]) and y[-1] == data.regret.sel(epsilon=math.inf)
    assert finite[-1] < x[-1] < axes.get_xlim()[1]
    assert ticks(axes.xaxis)[-1] == "no noise"
    (mark,) = [text for text in axes.texts if text.get_text() == "//"]
    assert finite[-1] < mark.xy[0] < x[-1] and mark.xy[1] == 0


def test_a_map_shows_the_table_with_numbers_in_its_cells():
    """Would catch a transposed or flipped map, or numbers of other cells than the colours."""
    data = table(epsilon=[1.0, 0.1, math.inf], graph=GRAPHS, lost=20)
    figure = plot_heat(data, "epsilon", "graph")
    axes, bar = figure.axes
    shown = data.regret.sel(epsilon=[0.1, 1.0, math.inf]).transpose("graph", "epsilon").values
    (mesh,) = axes.collections
    np.testing.assert_array_equal(mesh.get_array(), shown)
    assert ticks(axes.xaxis) == ["0.1", "1", "no noise"] and ticks(axes.yaxis) == GRAPHS
    assert [axes.get_xlabel(), axes.get_ylabel()] == ["privacy parameter ε", "graph"]
    texts = {text.get_position(): text for text in axes.texts}
    assert len(texts) == shown.size
    for (row, column), value in np.ndenumerate(shown):
        text = texts[column, row]
        assert 1000 * float(text.get_text()) == pytest.approx(value, rel=0.005)
        # WCAG 2: contrast of text and cell, from their relative luminances.
        colour = np.array(mesh.cmap(mesh.norm(value))[:3])
        light = np.where(colour > 0.04045, ((colour + 0.055) / 1.055) ** 2.4, colour / 12.92)
        luminance = light @ [0.2126, 0.7152, 0.0722]
        brighter = 1.0 if text.get_color() == "white" else luminance
        darker = luminance if text.get_color() == "white" else 0.0
        assert (brighter + 0.05) / (darker + 0.05) > 4
    # The scale counts as the numbers do: in thousands.
    label = "cumulative regret at T, in thousands\n(reward, summed over M agents)"
    assert bar.get_xlabel() == label
    figure.canvas.draw()
    low, high = bar.get_xlim()
    shown_ticks = [each for each in bar.xaxis.get_major_ticks() if low <= each.get_loc() <= high]
    assert len(shown_ticks) > 1
    for tick in shown_ticks:
        assert 1000 * float(tick.label1.get_text() or tick.label2.get_text()) == tick.get_loc()
    text = f"numbers rounded. Not drawn: the {BAND}, ± at most 4 % of the mean. "
    assert text in caption(figure)


def cells_at(points):
    """Returns a table whose cells have these costs and regrets, without bars."""
    data = table(epsilon=list(range(1, len(points) + 1)))
    for name, values in zip(("cost", "regret"), np.array(points, float).T, strict=True):
        for end in ("", "_lower", "_upper"):
            data[name + end] = ("epsilon", values)
    return data


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
    """Would catch a cell beaten by one that leaks more, a line through cells of other leaks, and
    what is stated of a message taken for the leak of a run."""
    points, leaks = [(1, 9), (2, 5), (2, 8), (2, 8), (3, 9)], [50.0, 50.0, 10.0, 20.0, 10.0]
    same = leaking(cells_at(points), ["epsilon"], np.full(5, 7.0))
    same = same.assign_coords(epsilon_message=("epsilon", leaks))
    assert_front(plot_pareto(same), points, [0, 1])
    figure = plot_pareto(leaking(cells_at(points), ["epsilon"], leaks))
    assert_front(figure, points, [0, 1, 2])
    assert len(figure.axes[0].lines[0].get_xdata()) == 0
    text = caption(figure)
    assert "single messages: 50 (ε = 1 / ε = 2); 10 (ε = 3 / ε = 5); 20 (ε = 4). " in text
    assert "front of cost, regret and leak at the same trust; 3 of 5 configurations" in text
    # A cell beats those of its own trust alone.
    cost, regret = np.array(points, float).T
    trust, pairs = np.array([0, 0, 0, 1, 0]), np.column_stack([leaks, np.zeros(5)])
    assert pareto._find_front(cost, regret, pairs, trust).tolist() == [0, 1, 2, 3]


def test_the_front_takes_the_delta_of_a_leak():
    """Would catch a cell without delta beaten by a smaller epsilon that holds up to one, and one
    without a bound that no leak up to a delta beats."""
    points, up_to = [(1, 5), (2, 6), (3, 7), (4, 8)], make_gaussian_row()
    figure = plot_pareto(leaking(cells_at(points), ["epsilon"], [up_to, 5.0, up_to, 0.0]))
    assert_front(figure, points, [0, 1, 3])
    told = "Leak (ε, δ) of one reward in single messages: (1.448, 10⁻⁶) (ε = 1 / ε = 3); 5 (ε = 2)"
    assert told in caption(figure)
    data = cells_at(points).assign(
        leak_messages=("epsilon", [1.5, np.inf, np.nan, 5.0]),
        leak_messages_delta=("epsilon", [1e-6, 0.0, np.nan, 0.0]),
    )
    assert_front(plot_pareto(data), points, [0, 3])


def drawn(figure):
    """Returns the caption under a figure, on one line."""
    return " ".join(" ".join(text.get_text().split()) for text in figure.texts)


def test_unequal_leaks_are_in_the_caption():
    """Would catch leaks of 10 and 50 side by side at one epsilon without a word."""
    data = table(epsilon=[0.1, 0.5, 1.0], participation=[0.2, 1.0])
    dims = ("epsilon", "participation")
    unlike = leaking(data, dims, np.outer(data.epsilon, [10.0, 50.0]))
    for draw in (plot_parameter, plot_heat):
        text = caption(draw(unlike, *dims))
        assert "of one reward in single messages: 1 (ε = 0.1, p = 0.2); 5 (ε = 0.1, p = 1" in text
        assert "50 (ε = 1, p = 1). " in text and "Trusted" not in text
    same = leaking(data, dims, np.full((3, 2), 7.0))
    assert "leak" not in caption(plot_parameter(same, *dims)).lower()
    up_to = leaking(table(epsilon=[0.1, 0.5]), ["epsilon"], [make_gaussian_row(), 2.0])
    told = "Leak (ε, δ) of one reward in single messages: (1.448, 10⁻⁶) (ε = 0.1); 2 (ε = 0.5). "
    for draw in (plot_parameter, plot_pareto):
        assert told in caption(draw(up_to, "epsilon"))
    no_noise = leaking(table(epsilon=[math.inf, 0.5]), ["epsilon"], [np.inf, 2.0])
    assert "no bound (no noise); 2 (ε = 0.5). " in caption(plot_parameter(no_noise, "epsilon"))


def test_every_cell_has_a_point_and_both_bars():
    """Would catch cells lost or coloured as another value of the hue, or intervals swapped."""
    data = table(epsilon=EPSILONS, participation=[0.2, 1.0], rounds=["none", 2])
    figure = plot_pareto(data, "participation")
    axes = figure.axes[0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["p = 0.2", "p = 1"]
    upright, level = bars(figure)[0::2], bars(figure)[1::2]
    for index, p in enumerate((0.2, 1.0)):
        cells = data.sel(participation=p)
        expected = np.stack([cells.cost.values.ravel(), cells.regret.values.ravel()], axis=1)
        mine = [line for line in axes.lines if line.get_label() == ["p = 0.2", "p = 1"][index]]
        assert {line.get_color() for line in mine} == {style.COLOURS[index]}
        drawn = np.concatenate([np.transpose(line.get_data()) for line in mine])
        np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(expected, axis=0))
        assert {tuple(row) for row in drawn} == {tuple(row) for row in expected}
        np.testing.assert_array_equal(upright[index][:, 0, 1], cells.regret_lower.values.ravel())
        np.testing.assert_array_equal(upright[index][:, 1, 1], cells.regret_upper.values.ravel())
        np.testing.assert_array_equal(level[index][:, 0, 0], cells.cost_lower.values.ravel())
        np.testing.assert_array_equal(level[index][:, 1, 0], cells.cost_upper.values.ravel())


@pytest.mark.as_users_see_it
def test_labels_name_the_cells_of_the_front():
    """Would catch labels of other cells, more than eight, or another number than the caption's."""
    data = table(epsilon=[*EPSILONS, math.inf], graph=GRAPHS, participation=[0.4])
    cells = {}
    for epsilon, graph in itertools.product(data.epsilon.values, GRAPHS):
        cell = data.sel(epsilon=epsilon, graph=graph).squeeze()
        name = "no noise" if epsilon == math.inf else f"ε = {epsilon:g}"
        cells[f"{name}, {graph}"] = (float(cell.cost), float(cell.regret))
    figure = plot_pareto(data)
    labels = [text for text in figure.axes[0].texts if isinstance(text, Annotation)]
    step = {tuple(point) for point in np.transpose(figure.axes[0].lines[0].get_data())}
    assert 4 <= len(labels) <= 8
    for label in labels:
        assert cells[label.get_text()] == label.xy and label.xy in step
    counts = f"{len(step)} of 25 configurations, {len(labels)} labelled. "
    assert counts in caption(figure)
    short = plot_pareto(data.sel(graph=["star"]), "epsilon").axes[0].texts
    assert {text.get_text() for text in short} <= {"no noise", *(f"ε = {e:g}" for e in EPSILONS)}


def test_the_caption_states_what_the_cells_share_and_the_band():
    """Would catch a figure without its setting, its band, or its worst counts of seeds."""
    data = table(
        epsilon=EPSILONS, participation=[0.4, 1.0], rounds=["none"], lost=20, worse=30
    ).assign_attrs(settings=json.dumps({"weights": "weights by components", "rounds": "R = 9"}))
    fixed = "K = 100 arms, T = 10⁶ slots, weights by components, no round budget"
    assert caption(plot_parameter(data, "epsilon", "participation")) == (
        f"DDP-MAB, M = 50 agents, {fixed}, 1000 seeds per configuration. Points: means over the "
        f"seeds; bars: {BAND}. 20 of 8000 seeds lost the best arm, most in one configuration 20 of "
        "1000 (90 % Clopper–Pearson interval 1.6–2.7 %) at ε = 0.1, p = 0.4. 30 of 8000 play a "
        "worse arm at T, most in one configuration 30 of 1000 (2.4–3.9 %) at ε = 0.1, p = 0.4."
    )
    one = data.sel(epsilon=0.3, participation=1.0)
    one.attrs["title"] = "CDP-MAB, DDP-MAB"
    assert caption(plot_pareto(one)) == (
        f"CDP-MAB, DDP-MAB, ε = 0.3, M = 50 agents, {fixed}, p = 1, 1000 seeds. Points: means over "
        f"the seeds; bars: {BAND}. Filled points: the Pareto front; 1 of 1 configuration, 0 "
        "labelled. Peer links are counted on the meter bound: diameter x edges. 0 of 1000 seeds "
        "lost the best arm (90 % Clopper–Pearson interval 0–0.3 %). 0 of 1000 play a worse arm at "
        "T (0–0.3 %)."
    )


def test_the_worst_configuration_is_the_one_of_the_largest_share():
    """Catches the largest number where seeds differ, and of equal shares the surer one."""
    data = table(epsilon=[0.1, 0.5, 2.0])
    data["seeds"] = ("epsilon", [1000, 10, 100])
    lost = [("epsilon", each) for each in ([20, 1, 10], [0.01, 0.0, 0.05], [0.04, 0.45, 0.18])]
    data = data.assign(dict(zip(("best_arm_lost", *ENDS), lost, strict=True)))
    said = captions.describe_cell_events(data)
    assert said[0] == (
        "31 of 1110 seeds lost the best arm, most in one configuration 1 of 10 "
        "(90 % Clopper–Pearson interval 0–45 %) at ε = 0.5"
    )
    assert said[1].startswith("0 of 1110 play a worse arm at T, 0 in every configuration")


ENDS = ("best_arm_lost_lower", "best_arm_lost_upper")


# --- curves of runs ---


@pytest.mark.parametrize("kind", ["pointwise", "simultaneous", "quantile"])
def test_lines_are_means_and_shades_are_bands(kind):
    """Would catch another run's band, another level or kind, or a single seed drawn as the mean."""
    runs = {"a": result(seed=1), "b": result(seed=2, seeds=30)}
    regret = plot_runs(runs, level=0.8, kind=kind).axes[0]
    assert [line.get_label() for line in regret.lines] == ["a", "b"]
    for data, line, shade in zip(runs.values(), regret.lines, regret.collections, strict=True):
        band = confidence_band(data.regret, 0.8, kind)
        np.testing.assert_array_equal(after(line.get_xdata()), data.time)
        np.testing.assert_array_equal(after(line.get_ydata()), band["mean"])
        drawn = shade.get_paths()[0].vertices
        for slot in (0, 37, 99):
            heights = drawn[drawn[:, 0] == LINEAR[slot], 1]
            assert heights.min() == band.lower[slot] and heights.max() == band.upper[slot]
        assert shade.get_facecolor()[0, :3] == pytest.approx(to_rgb(line.get_color()))


def test_a_summary_is_drawn_as_its_curves_are():
    """Would catch single seeds that are asked for, or another configuration's means."""
    given = {"horizon": 3000, "seeds": 20, "times": 10, "epsilon": [0.5, 2.0], "progress": False}
    problem = fmab.Problem.uniform(4, 5)
    for prices in ({}, {"server_price": 3.0}):
        drawn = []
        for keep in ("curves", "summary"):
            data = fmab.sweep(fmab.hdp_mab, problem, components="2x2", keep=keep, **given)
            figure = plot_runs(data, **prices)
            lines = [line.get_ydata() for axes in figure.axes for line in axes.lines]
            drawn.append((figure.get_label(), lines))
        assert drawn[0][0] == drawn[1][0] and len(drawn[0][1]) >= 4
        for one, other in zip(drawn[0][1], drawn[1][1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12)


def after(drawn):
    """Returns what is drawn after slot 0, where every curve has to begin with 0."""
    assert drawn[0] == 0
    return drawn[1:]


def links(data, meter):
    """Returns the mean links so far on one meter."""
    return data.links.sel(meter=meter).mean("seed")


def test_every_side_that_has_links_is_drawn_on_the_meter_that_costs():
    """Would catch sides swapped, the meter that nobody pays for, or a line for absent links."""
    hybrid = result("HDP-MAB", server=20, peer=80, meters=("edges", "sac"))
    flooding = result("DDP-MAB", server=0, peer=98, seed=1)
    alone = result("Single-agent MAB", server=0, seed=2)
    figure = plot_runs({"hybrid": hybrid, "flooding": flooding, "alone": alone})
    expected = [("o", links(hybrid, "server")), ("s", links(hybrid, "edges"))]
    expected += [("s", links(flooding, "bound")), ("None", 0 * alone.time)]
    lines = figure.axes[1].lines
    for line, (marker, values) in zip(lines, expected, strict=True):
        np.testing.assert_allclose(after(line.get_ydata()), values, rtol=1e-15)
        assert line.get_marker() == marker
    colours = [line.get_color() for line in figure.axes[0].lines]
    assert [line.get_color() for line in lines] == [colours[i] for i in (0, 0, 1, 2)]
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["server links", "peer links"]
    assert caption(figure).endswith(
        "Peer links are counted on the meter edges: edges of the components (hybrid). "
        "Peer links are counted on the meter bound: diameter x edges (flooding). No links: alone."
    )


def test_prices_turn_links_into_cost():
    """Would catch prices swapped, or another meter than communication_cost's, or unnamed."""
    data = result("HDP-MAB", server=20, peer=80, meters=("edges", "sac"))
    figure = plot_runs(data, server_price=50, peer_price=2)
    (line,) = figure.axes[1].lines
    cost = 50 * links(data, "server") + 2 * links(data, "edges")
    np.testing.assert_allclose(after(line.get_ydata()), cost, rtol=1e-14)
    assert "cost" in figure.axes[1].get_ylabel()
    assert "Cost: 50 per server link, 2 per peer link. Peer links are counted on the meter " in (
        caption(figure)
    )
    assert caption(figure).endswith(" meter edges: edges of the components.")


def test_caption_of_one_run_states_the_facts():
    """Would catch a figure without its setting, its band, or its counts of what befell seeds."""
    settings = {"participation": "p = 0.4", "rewards": "Gaussian rewards, sd 0.1"}
    data = result(lost=3, worse=5, times=1000 * LINEAR, settings=settings)
    text = caption(plot_runs(data, level=0.9))
    band = confidence_band(data.regret, 0.9)
    lost, worse = (
        "–".join(f"{100 * end:.3g}" for end in lost_interval(number, 40, 0.9)) for number in (3, 5)
    )
    assert text == (
        "CDP-MAB, ε = 0.5, M = 50 agents, K = 100 arms, T = 10⁷ slots, p = 0.4, Gaussian rewards, "
        f"sd 0.1, 40 seeds. Lines: means over the seeds; shaded: {band.attrs['description']}. "
        f"Seeds that lost the best arm (90 % Clopper–Pearson interval): 3 of 40 ({lost} %). Seeds "
        f"that play a worse arm at T (90 % Clopper–Pearson interval): 5 of 40 ({worse} %)."
    )


def test_caption_of_several_runs_says_once_what_they_share():
    """Would catch a count under the wrong label, or a differing setting passed off as shared."""
    runs = {
        "few": result("DDP-MAB", server=0, peer=9, lost=2, agents=5, settings={"graph": "ring"}),
        "many": result("HDP-MAB", peer=7, epsilon=float("inf"), settings={"rounds": "R = 3"}),
    }
    text = caption(plot_runs(runs))
    assert text.startswith(
        "K = 100 arms, T = 10⁴ slots, 40 seeds. few: DDP-MAB, ε = 0.5, M = 5 agents, ring; many: "
        "HDP-MAB, no noise, M = 50 agents, R = 3. Lines: "
    )
    assert "interval): few: 2 of 40 (0.611–16.9 %); many: 0 of 40 (0–8.81 %). Seeds that" in text
    assert "play a worse arm at T (95 % Clopper–Pearson interval): 0 of 40 (0–8.81 %). " in text


def test_the_short_caption_says_whose_seeds_play_a_worse_arm():
    """Would catch failures of one run that a total spreads over all of them."""

    def describe(**failures):
        cells = {
            label: xr.Dataset({"worse_arm_played": number, "seeds": 40 if label < "e" else 60})
            for label, number in failures.items()
        }
        return captions.describe_failures(["whole"], cells)

    words = "play a worse arm at T"
    assert describe(a=0, b=0) == ("whole",)
    assert describe(a=3) == ("whole", f"3 of 40 seeds {words}", f"3 of 40 seeds {words}")
    total = f"14 of 120 seeds {words}, in 2 of 3 configurations"
    both = f"5 of 40 seeds of a, 9 of 40 seeds of c {words}"
    assert describe(a=5, b=0, c=9) == ("whole", both, total)
    total = f"32 of 220 seeds {words}"
    long = f"{total}, most often 10 of 40 seeds of c"
    assert describe(a=5, b=6, c=10, d=0, e=11)[1:] == (long, f"{total}, in 4 of 5 configurations")
    finals = table(epsilon=EPSILONS, graph=[*GRAPHS, "a graph with quite a long name"], worse=7)
    (short,), _ = style.read_caption(plot_parameter(finals, "epsilon", "graph"))
    assert f"7 of 1000 seeds of ε = 0.1, complete {words}." in short


@pytest.mark.parametrize("factor, scale", [(19.0, "linear"), (21.0, "log")])
def test_runs_of_unlike_size_are_drawn_in_orders_of_magnitude(factor, scale):
    """Would catch curves that a larger one flattens, or a line that begins at minus infinity."""
    runs = {"a": scaled(1.0), "b": scaled(factor), "c": scaled(3.0)}
    axes = plot_runs(runs).axes[0]
    assert axes.get_yscale() == scale
    low, high = axes.get_ylim()
    assert (low == 0) == (scale == "linear")
    for line, data in zip(axes.lines, runs.values(), strict=True):
        mean = data.regret.mean("seed")
        start = [0.0] if scale == "linear" else []
        np.testing.assert_allclose(line.get_ydata(), [*start, *mean.values], rtol=1e-12)
        assert len(line.get_xdata()) == len(line.get_ydata()) and mean[-1] < high
        # Half of the curve at least is to be seen, and its end lies well above the axis.
        if scale == "log":
            assert (mean > low).mean() > 0.5
            assert math.log(mean[-1] / low) / math.log(high / low) > 0.25
    names = ticks(axes.yaxis)
    assert sum("×" in name or "10" in name for name in names) >= 2 if scale == "log" else True


def test_a_run_without_regret_lies_on_the_axis_beside_large_ones():
    """Would catch a logarithm of 0."""
    axes = plot_runs({"a": scaled(0.0), "b": scaled(1.0), "c": scaled(100.0)}).axes[0]
    low, high = axes.get_ylim()
    assert axes.get_yscale() == "symlog" and low < 0.0 and high > axes.lines[2].get_ydata()[-1]
    assert (axes.lines[0].get_ydata() == 0.0).all()


def test_algorithms_have_their_titles_in_legends():
    """Would catch short names where people read titles, and labels of a user's that are lost."""
    data = named(["cdp", "kl_se"], epsilon=[0.5, 1.0])
    assert list(select_cells(data)) == [
        *("CDP-MAB, ε = 0.5", "CDP-MAB, ε = 1", "KL-SE, ε = 0.5", "KL-SE, ε = 1")
    ]
    figure = plot_runs(data)
    assert figure.legends[0].get_texts()[0].get_text() == "CDP-MAB, ε = 0.5"
    assert "cdp" not in caption(figure) and "kl_se" not in caption(figure)
    assert "titles" not in data.algorithm.attrs
    own = {"cdp": fmab.cdp_mab(1.0), "ours": fmab.kl_se(1.0), "CDP": fmab.cdp_mab(2.0)}
    labels = [label.partition(",")[0] for label in select_cells(named(own))]
    assert labels == ["CDP-MAB", "ours", "CDP"]
    own = {"cdp": fmab.cdp_mab(1.0), "CDP-MAB": fmab.kl_se(2.0)}
    assert list(select_cells(named(own))) == ["cdp", "CDP-MAB"]


BASE = fmab.Problem.uniform(20, 5)
VARIANTS = [
    *((fmab.cdp_mab(epsilon), BASE, 1000) for epsilon in (0.5, 0.50000001, None)),
    *((fmab.cdp_mab(0.5, participation=p), BASE, 1000) for p in (0.4, 0.45)),
    (fmab.cdp_mab(0.5, rounds=3), BASE, 1000),
    (fmab.cdp_mab(0.5, rounds=3, schedule_gap=0.1), BASE, 1000),
    (fmab.cdp_mab(0.5), fmab.Problem.uniform(21, 5), 1000),
    (fmab.cdp_mab(0.5), fmab.Problem.uniform(20, 6), 1000),
    (fmab.cdp_mab(0.5), BASE, 1001),
    *((fmab.ddp_mab(0.5, graph=graph), BASE, 1000) for graph in ("ring", "star")),
    *((fmab.hdp_mab(0.5, components=parts), BASE, 1000) for parts in ("10x2:star", "5x4:star")),
    (fmab.hdp_mab(0.5, "10x2:star", weights="components"), BASE, 1000),
    (fmab.single_mab(0.5), BASE, 1000),
]


def test_no_two_different_runs_carry_the_same_caption():
    """Would catch a setting that a run has and its caption does not have."""

    def run(algorithm, problem, horizon, **options):
        stated = Study(algorithm, problem, horizon=horizon, seeds=2, **options)
        return result().assign_attrs(build_attributes(stated))

    runs = [run(*variant) for variant in VARIANTS]
    plain = runs[0]
    for law in ("Gaussian rewards, sd 0.1", "Gaussian rewards, sd 0.2", "ratings of 5 levels"):
        runs.append(plain.assign_attrs(settings=json.dumps({"rewards": law})))
    runs.append(plain.assign_attrs(root_seed=7))
    runs.append(plain.assign_coords(seed=plain.seed + 40))
    runs.append(run(*VARIANTS[0], sum_agents=False))
    band = confidence_band(plain.regret, kind="pointwise")
    captions = set()
    for data in runs:
        sentences = plots._write_caption({"": data}, {"": band}, (1.0, 1.0))
        longest = [words[0] if isinstance(words, tuple) else words for words in sentences]
        captions.add(". ".join(filter(None, longest)))
    assert len(captions) == len(runs) == len(VARIANTS) + 6


def test_a_sweep_is_drawn_cell_by_cell():
    """Would catch cells swapped, seeds that a cell does not have, or parameters known by name."""
    data = swept()
    runs = select_cells(data)
    assert list(runs) == ["ε = 0.1, ring", "ε = 0.1, star", "no noise, ring", "no noise, star"]
    assert [run.sizes["seed"] for run in runs.values()] == [40, 40, 40, 30]
    figure = plot_runs(data)
    for line, epsilon, graph in zip(
        figure.axes[0].lines, (0.1, 0.1, "none", "none"), ("ring", "star") * 2, strict=True
    ):
        cell = data.sel(epsilon=epsilon, graph=graph)
        mean = cell.regret[: int(cell.seeds)].mean("seed")
        np.testing.assert_allclose(after(line.get_ydata()), mean, rtol=1e-12)
    text = caption(figure)
    shared = "DDP-MAB, M = 50 agents, K = 100 arms, T = 10⁴ slots, 30 to 40 seeds"
    assert text.startswith(f"{shared}. ε = 0.1, ring / ")
    assert " / no noise, ring: 40 seeds; no noise, star: 30 seeds. Lines" in text
    # What was selected is told, though no label says it.
    one = caption(plot_runs(data.sel(epsilon="none")))
    shared = "DDP-MAB, no noise, M = 50 agents, K = 100 arms, T = 10⁴ slots, 30 to 40 seeds"
    assert one.startswith(f"{shared}. ring: 40")
    assert "ε = 0.1, M = 50 agents, K = 100 arms, T = 10⁴ slots, ring, 40 seeds. Lines" in caption(
        plot_runs({"a": data.isel(epsilon=0, graph=0), "b": data.isel(epsilon=0, graph=0)})
    )


def test_runs_by_label_say_what_they_leak_and_whom_they_trust():
    """Would catch runs of unlike leak or trust side by side without a word."""
    runs = {
        "a": leaking(result(seed=0), (), 25.0),
        "b": leaking(result(seed=1), (), 5.0),
        "c": leaking(result(seed=2), (), 5.0),
    }
    text = caption(plot_runs(runs))
    assert "Leak ε of one reward in single messages: 25 (a); 5 (b / c). Lines" in text
    assert "Trusted" not in text
    runs["c"] = leaking(result(seed=2), (), 5.0, "sums over 50 agents", actions=np.inf)
    text = caption(plot_runs(runs))
    assert "in what is sent: 25 (single messages) (a); 5 (single messages) (b); 5 (sums" in text
    assert "Trusted: “nobody: a message leaks at most its epsilon” (a / b); “secure agg" in text
    assert "without a bound, whoever sees actions” (c). " in text
    same = {label: leaking(result(seed=i), (), 5.0) for i, label in enumerate("ab")}
    assert "eak ε" not in caption(plot_runs(same))
    # An epsilon that holds only up to a delta is told with it.
    runs = same | {"c": leaking(result(seed=2), (), [make_gaussian_row()])}
    text = caption(plot_runs(runs))
    told = "5 (a / b); (1.448, 10⁻⁶) (c). "
    assert f"Leak (ε, δ) of one reward in single messages: {told}" in text


def test_a_sweep_of_horizons_has_slots_of_its_own_per_cell():
    """Would catch curves drawn against the numbers of their slots."""
    data = xr.concat([result(), result(seed=1)], "horizon").drop_vars("time")
    slots = np.stack([LINEAR, 10 * LINEAR])
    data = data.assign_coords(slot=(("horizon", "time"), slots), horizon=[10**4, 10**5])
    figure = plot_runs(data)
    for line, own in zip(figure.axes[0].lines, slots, strict=True):
        np.testing.assert_array_equal(after(line.get_xdata()), own)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["horizon = 10⁴", "horizon = 10⁵"]
    # What the label says is not said again, whatever its unit or its spelling.
    data.horizon.attrs = {"symbol": "T"}
    assert "T = 10⁴:" not in caption(plot_runs(data))
    ones = {"ε = 1.0": result(epsilon=1.0), "ε = 10.0": result(epsilon=10.0)}
    assert "slots, 40 seeds. Lines: means" in caption(plot_runs(ones))


def test_bounds_lie_over_their_runs():
    """Would catch a bound drawn for another run, or left out of the caption."""
    data = result()
    curve = 3.0 * data.regret.mean("seed").values
    figure = plot_runs({"a": data, "b": data}, bounds={"b": curve})
    drawn = [line for line in figure.axes[0].get_lines() if line.get_linewidth() == 0.8]
    assert len(drawn) == 1 and drawn[0].get_color() == COLOURS[1]
    np.testing.assert_array_equal(drawn[0].get_ydata(), curve)
    (short,), _ = style.read_caption(figure)
    assert "Thin dotted lines: the theorems' bounds." in short
    with pytest.raises(ValueError, match="^bounds='c'"):
        plot_runs({"a": data}, bounds={"c": curve})
