"""Curves of runs over time show their means, bands, links and settings."""

import json
import math

import numpy as np
import pytest
import xarray as xr
from ledgers import make_gaussian_row
from matplotlib.colors import to_rgb
from plots.made import LINEAR, caption, leaking, named, result, scaled, swept

import fmab_jax as fmab
from fmab_jax import Study
from fmab_jax.analysis.bands import confidence_band, lost_interval
from fmab_jax.plots import over_time
from fmab_jax.plots.over_time import plot_runs, split_runs
from fmab_jax.sweeps.grid import build_attributes


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
    drawn = []
    for keep in ("curves", "summary"):
        data = fmab.sweep(fmab.hdp_mab, problem, components="2x2", keep=keep, **given)
        figure = plot_runs(data)
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
    text = "Peer links are counted on the meter edges or bound. No links: alone."
    assert caption(figure).endswith(text)


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
        f"3 of 40 seeds lost the best arm (90 % Clopper–Pearson interval {lost} %). 5 of 40 play a "
        f"worse arm at T ({worse} %)."
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
    worst = "2 of 40 (95 % Clopper–Pearson interval 0.611–16.9 %) at few"
    assert f"2 of 80 seeds lost the best arm, most in one configuration {worst}. 0 of 80" in text
    assert "play a worse arm at T, 0 in every configuration (0–8.81 % in each). " in text


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
    names = [label.get_text() for label in axes.yaxis.get_majorticklabels()]
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
    assert list(split_runs(data)) == [
        *("CDP-MAB, ε = 0.5", "CDP-MAB, ε = 1", "KL-SE, ε = 0.5", "KL-SE, ε = 1")
    ]
    figure = plot_runs(data)
    assert figure.legends[0].get_texts()[0].get_text() == "CDP-MAB, ε = 0.5"
    assert "cdp" not in caption(figure) and "kl_se" not in caption(figure)
    assert "titles" not in data.algorithm.attrs
    own = {"cdp": fmab.cdp_mab(1.0), "ours": fmab.kl_se(1.0), "CDP": fmab.cdp_mab(2.0)}
    labels = [label.partition(",")[0] for label in split_runs(named(own))]
    assert labels == ["CDP-MAB", "ours", "CDP"]
    own = {"cdp": fmab.cdp_mab(1.0), "CDP-MAB": fmab.kl_se(2.0)}
    assert list(split_runs(named(own))) == ["cdp", "CDP-MAB"]


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
        sentences = over_time._write_caption({"": data}, {"": band})
        longest = [sentence if isinstance(sentence, str) else sentence[0] for sentence in sentences]
        captions.add(". ".join(filter(None, longest)))
    assert len(captions) == len(runs) == len(VARIANTS) + 6


def test_a_sweep_is_drawn_cell_by_cell():
    """Would catch cells swapped, seeds that a cell does not have, or parameters known by name."""
    data = swept()
    runs = split_runs(data)
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


def test_runs_by_label_say_what_they_leak_and_whom_they_trust():
    """Would catch runs of unlike leak or trust side by side without a word."""
    runs = {
        "a": leaking(result(seed=0), 25.0),
        "b": leaking(result(seed=1), 5.0),
        "c": leaking(result(seed=2), 5.0),
    }
    text = caption(plot_runs(runs))
    assert "Leak ε of one reward in single messages: 25 (a); 5 (b / c). Lines" in text
    assert "Trusted" not in text
    runs["c"] = leaking(result(seed=2), 5.0, "sums over 50 agents", actions=np.inf)
    text = caption(plot_runs(runs))
    assert "in what is sent: 25 (single messages) (a); 5 (single messages) (b); 5 (sums" in text
    assert "Trusted: “nobody: a message leaks at most its epsilon” (a / b); “secure agg" in text
    assert "without a bound, whoever sees actions” (c). " in text
    # An epsilon that holds only up to a delta is told with it.
    runs = {"a": runs["b"], "c": leaking(result(seed=2), make_gaussian_row())}
    text = caption(plot_runs(runs))
    assert "Leak (ε, δ) of one reward in single messages: 5 (a); (1.448, 10⁻⁶) (c). " in text
    assert "eak ε" not in caption(plot_runs({"a": runs["a"], "b": runs["a"]}))


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
