"""Figures show the numbers they claim to, readable at column width, and are written whole."""

import json

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb
from plots.made import LINEAR, caption, leaking, result, swept

import fmab_jax as fmab
from fmab_jax.analysis.bands import confidence_band, lost_interval
from fmab_jax.plots import runs as plots
from fmab_jax.plots import style
from fmab_jax.plots.runs import plot_runs, select_cells
from fmab_jax.plots.style import COLOURS
from fmab_jax.sweeps.grid import build_attributes
from fmab_jax.sweeps.study import state


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
        stated = state(algorithm, problem, horizon=horizon, seeds=2, **options)
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
    assert "Trusted: “nobody, up to the epsilon of a message” (a / b); “secure agg" in text
    assert "without a bound, whoever sees actions” (c). " in text
    same = {label: leaking(result(seed=i), (), 5.0) for i, label in enumerate("ab")}
    assert "eak ε" not in caption(plot_runs(same))


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
