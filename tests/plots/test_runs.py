"""Figures show the numbers they claim to, readable at column width, and are written whole."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

import fmab_jax as fmab
from fmab_jax.analysis import theory
from fmab_jax.analysis.bands import confidence_band, lost_interval
from fmab_jax.plots import runs as plots
from fmab_jax.plots.runs import COLOURS, plot_runs, save_figure

LINEAR = 100 * np.arange(1, 101)
LOG = np.unique(np.geomspace(1, 10_000, 60).astype(np.int64))


def result(
    algorithm: str = "cdp_mab",
    *,
    server: int = 50,
    peer: int = 0,
    lost: int = 0,
    seeds: int = 40,
    times: np.ndarray = LINEAR,
    seed: int = 0,
    **attrs: object,
) -> xr.Dataset:
    """Makes a Dataset with the layout of simulate: regret levels off, links grow in rounds."""
    rng = np.random.default_rng(seed)
    knee = times[-1] * rng.uniform(0.05, 0.3, (seeds, 1))
    rounds = (times[None, :, None] >= knee[:, :, None] * [0.1, 0.3, 1.0]).sum(axis=2)
    flags = np.zeros(seeds, bool)
    flags[:lost] = True
    grid = ("seed", "time")
    return xr.Dataset(
        {
            "regret": (grid, 20.0 * np.minimum(times, knee) + 0.5 * times),
            "server_links": (grid, server * rounds),
            "peer_links_bound": (grid, 2 * peer * rounds),
            "peer_links_used": (grid, peer * rounds),
        },
        coords={"seed": np.arange(seeds), "time": times, "best_arm_lost": ("seed", flags)},
        attrs={
            "algorithm": algorithm,
            "epsilon": 0.5,
            "agents": 50,
            "arms": 100,
            "horizon": int(times[-1]),
            "meter_bound": "bound",
            "meter_used": "used",
        }
        | attrs,
    )


def caption(figure: Figure) -> str:
    """Returns the caption on one line."""
    return " ".join(figure.texts[0].get_text().split())


@pytest.mark.parametrize("kind", ["pointwise", "simultaneous", "quantile"])
def test_lines_are_means_and_shades_are_bands(kind):
    """Would catch another run's band, another level or kind, or a single seed drawn as the mean."""
    runs = {"a": result(seed=1), "b": result(seed=2, seeds=30)}
    regret = plot_runs(runs, level=0.8, kind=kind).axes[0]
    assert [line.get_label() for line in regret.lines] == ["a", "b"]
    for data, line, shade in zip(runs.values(), regret.lines, regret.collections, strict=True):
        band = confidence_band(data.regret, 0.8, kind)
        np.testing.assert_array_equal(line.get_xdata(), data.time)
        np.testing.assert_array_equal(line.get_ydata(), band["mean"])
        drawn = shade.get_paths()[0].vertices
        for slot in (0, 37, 99):
            heights = drawn[drawn[:, 0] == LINEAR[slot], 1]
            assert heights.min() == band.lower[slot] and heights.max() == band.upper[slot]
        assert shade.get_facecolor()[0, :3] == pytest.approx(to_rgb(line.get_color()))


def test_both_kinds_of_link_are_drawn_where_they_occur():
    """Would catch server and peer links swapped, the bound meter, or a line for absent links."""
    runs = {
        "hybrid": result("hdp_mab", server=20, peer=80),
        "gossip": result("ddp_mab", server=0, peer=98, seed=1),
        "alone": result("single_mab", server=0, seed=2),
    }
    figure = plot_runs(runs)
    hybrid, gossip = runs["hybrid"], runs["gossip"]
    expected = [
        ("o", hybrid.server_links.mean("seed")),
        ("s", hybrid.peer_links_used.mean("seed")),
        ("s", gossip.peer_links_used.mean("seed")),
        ("None", 0 * gossip.server_links.mean("seed")),
    ]
    lines = figure.axes[1].lines
    for line, (marker, values) in zip(lines, expected, strict=True):
        np.testing.assert_allclose(line.get_ydata(), values, rtol=1e-15)
        assert line.get_marker() == marker
    colours = [line.get_color() for line in figure.axes[0].lines]
    assert [line.get_color() for line in lines] == [colours[i] for i in (0, 0, 1, 2)]
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["server links", "peer links"]
    assert "No links: alone." in caption(figure)


def test_prices_turn_links_into_cost():
    """Would catch prices swapped, or another meter than communication_cost's, or unnamed."""
    data = result("hdp_mab", server=20, peer=80)
    figure = plot_runs(data, server_price=50, peer_price=2)
    (line,) = figure.axes[1].lines
    cost = 50 * data.server_links + 2 * data.peer_links_bound
    np.testing.assert_allclose(line.get_ydata(), cost.mean("seed"), rtol=1e-14)
    assert "cost" in figure.axes[1].get_ylabel()
    assert "Cost: 50 per server link, 2 per peer link." in caption(figure)
    assert "meter 'bound'." in caption(figure)


def test_caption_of_one_run_states_the_facts():
    """Would catch a figure without its setting, its band, or its count of lost best arms."""
    data = result(lost=3, times=1000 * LINEAR)
    text = caption(plot_runs(data, level=0.9))
    band = confidence_band(data.regret, 0.9)
    low, high = (f"{100 * end:.3g}" for end in lost_interval(3, 40, 0.9))
    assert text == (
        "cdp_mab, ε = 0.5, M = 50 agents, K = 100 arms, T = 10⁷ slots, 40 seeds. "
        f"Lines: means over the seeds; shaded: {band.attrs['description']}. Seeds that lost the "
        f"best arm (90 % Clopper–Pearson interval): 3 of 40 ({low}–{high} %)."
    )


def test_caption_of_several_runs_says_once_what_they_share():
    """Would catch a count under the wrong label, or a differing setting passed off as shared."""
    runs = {
        "few": result("ddp_mab", server=0, peer=9, lost=2, agents=5, meter_used="used"),
        "many": result("hdp_mab", peer=7, lost=0, epsilon=float("inf"), meter_used="sac"),
    }
    text = caption(plot_runs(runs))
    assert text.startswith("K = 100 arms, T = 10⁴ slots, 40 seeds. Lines: ")
    assert "few (ddp_mab, ε = 0.5, M = 5 agents): 2 of 40 (0.611–16.9 %); " in text
    assert "many (hdp_mab, no noise, M = 50 agents): 0 of 40 (0–8.81 %)." in text
    assert "Peer links are counted on the meter 'used' / 'sac'." in text
    assert "40 of 40 (91.2–100 %)" in caption(plot_runs(result(lost=40)))
    unknown = result().drop_vars("best_arm_lost")
    assert "interval): not recorded." in caption(plot_runs(unknown))


def test_slots_are_logarithmic_only_where_the_grid_is():
    """Would catch a linear axis that hides a logarithmic grid's first rounds, or the reverse."""
    linear, log = result(), result(times=LOG)
    assert [axes.get_xscale() for axes in plot_runs(log).axes] == ["log", "log"]
    assert plot_runs(linear).axes[0].get_xscale() == "linear"
    assert plot_runs({"a": linear, "b": log}).axes[0].get_xscale() == "linear"


def test_links_of_different_magnitude_are_drawn_on_a_logarithmic_axis():
    """Would catch server links flattened to zero below the links of a dense graph."""
    cloud, dense = result(), result("ddp_mab", server=0, peer=1225)
    assert plot_runs({"cloud": cloud, "dense": dense}).axes[1].get_yscale() == "log"
    assert plot_runs({"cloud": cloud, "half": result(server=25)}).axes[1].get_yscale() == "linear"


def test_runs_differ_for_the_colour_blind_and_in_print():
    """Would catch two runs of one look, or colours that one kind of colour blindness confuses."""
    lines = plot_runs({str(i): result(seeds=3, seed=i) for i in range(28)}).axes[0].lines
    # matplotlib has no public way to read a custom stroke back.
    looks = [(line.get_color(), str(line._unscaled_dash_pattern)) for line in lines]
    assert len(set(looks)) == 28 and len({stroke for _, stroke in looks[:4]}) == 4
    # Machado, Oliveira and Fernandes 2009, severity 1, on linear light; then CIE L*a*b*.
    blindness = [
        np.eye(3),
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],  # noqa: E501
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],  # noqa: E501
    ]  # fmt: skip
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    colours = np.array([to_rgb(colour) for colour in plots.COLOURS])
    light = np.where(colours > 0.04045, ((colours + 0.055) / 1.055) ** 2.4, colours / 12.92)
    for matrix in blindness:
        seen = np.clip(light @ np.transpose(matrix), 0, 1) @ xyz.T / xyz.sum(axis=1)
        f = np.where(seen > 0.008856, np.cbrt(seen), 7.787 * seen + 16 / 116)
        x, y, z = f.T
        lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
        distances = [np.linalg.norm(a - b) for a, b in itertools.combinations(lab, 2)]
        # A difference of 2.3 is just noticeable side by side; thin lines need several times that.
        assert min(distances) > 12


LONG = {
    "CDP-MAB, participation 0.4, homogeneous agents": result(),
    "a_name_without_any_space_at_which_a_line_could_be_broken_to_fit_a_column": result(seed=1),
    "no $\\formula$, a price": result("hdp_mab", peer=7000, seed=2, lost=1),
    "d": result("single_mab", server=0, seed=3),
}


@pytest.mark.parametrize(
    "runs",
    [
        {"a": result()},
        {"alone": result("single_mab", server=0, agents=1, times=LOG)},
        {"big": result(server=123_456, times=10**8 * LINEAR)},
        {
            name: result(seed=i, peer=10**i)
            for i, name in enumerate(["star", "ring", "path", "all"])
        },
        LONG,
    ],
    ids=["one", "alone", "large", "four", "long"],
)
def test_everything_fits_a_column_and_nothing_overlaps(runs):
    """Would catch letters cut off at the edge, a legend over data, or print below 7 points."""
    figure = plot_runs(runs)
    renderer = figure.canvas.get_renderer()
    figure.draw(renderer)
    regret, links = figure.axes
    assert figure.get_size_inches()[0] == 3.4
    (legend,) = figure.legends
    labels = ["".join(text.get_text().split()) for text in legend.get_texts()]
    assert labels == ["".join(label.split()) for label in runs]

    texts = [*figure.texts, *legend.get_texts()]
    for axes in (regret, links):
        for axis in (axes.xaxis, axes.yaxis):
            texts += [axis.label, axis.offsetText]
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            # Ticks outside the limits exist but are not drawn.
            texts += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
        texts += [*axes.texts, *(axes.get_legend().get_texts() if axes.get_legend() else [])]
    shown = [text for text in texts if text.get_visible() and text.get_text().strip()]
    assert len(shown) >= 10
    frame = figure.bbox.padded(0.5)
    for text in shown:
        assert text.get_fontsize() >= 7
        box = text.get_window_extent(renderer)
        assert frame.x0 <= box.x0 and box.x1 <= frame.x1, text
        assert frame.y0 <= box.y0 and box.y1 <= frame.y1, text
    stack = [
        figure.texts[0].get_window_extent(renderer),
        links.get_tightbbox(renderer),
        regret.get_tightbbox(renderer),
        legend.get_window_extent(renderer),
    ]
    for low, high in itertools.pairwise(stack):
        assert low.y1 <= high.y0 + 0.5


@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_a_figure_is_saved_at_print_quality_with_the_same_bytes(tmp_path, ending):
    """Would catch screen resolution, type 3 fonts, or a time stamp that changes every commit."""
    figure = plot_runs(result())
    path = save_figure(figure, tmp_path / f"a.{ending}")
    content = path.read_bytes()
    save_figure(figure, str(path))
    assert path.read_bytes() == content and os.listdir(tmp_path) == [path.name]
    if ending == "png":
        assert content[:8] == b"\x89PNG\r\n\x1a\n"
        assert int.from_bytes(content[16:20], "big") == 1020  # 3.4 inches at 300 dpi
    else:
        assert content[:5] == b"%PDF-" and b"/Type3" not in content and b"/FontFile2" in content


@pytest.mark.parametrize("step", ["savefig", "fsync", "replace"])
def test_a_failed_save_leaves_the_old_figure(tmp_path, monkeypatch, step):
    """Would catch writing in place: a full disk must not cost the figure that was there."""
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    figure = plot_runs(result())

    def fail(*args: object, **kwargs: object) -> None:
        if step == "savefig":
            Path(args[0]).write_bytes(b"half a figure")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(figure if step == "savefig" else os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        save_figure(figure, path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.png"]


def test_no_global_plotting_state_is_touched(tmp_path):
    """Would catch pyplot figures that pile up, or settings changed under the user's own plots."""
    script = f"""
import json, sys
sys.path[:0] = {[str(Path(__file__).parents[n]) for n in (0, 2)]}
import matplotlib
before = dict(matplotlib.rcParams.copy())  # reading the original picks a backend
from test_runs import plot_runs, result, save_figure
save_figure(plot_runs(result()), {str(tmp_path / "a.pdf")!r})
same = dict(matplotlib.rcParams.copy()) == before
print(json.dumps([same, "matplotlib.pyplot" in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [True, False]


GOOD = result()
SWEPT = xr.concat([GOOD, GOOD], "participation")


@pytest.mark.parametrize(
    "call, start",
    [
        (lambda: plot_runs({}), "runs=[]: must be 1 to 28 results"),
        (lambda: plot_runs({"a": GOOD, "b": SWEPT}), "runs['b']="),
        (lambda: plot_runs(GOOD.drop_vars("regret")), "runs['cdp_mab']='without regret': "),
        (lambda: plot_runs(GOOD.drop_attrs()), "runs['run']='without agents, algorithm, arms, "),
        (lambda: plot_runs(GOOD.isel(seed=[0])), "seeds=1: must be a whole number in [2, "),
        (lambda: plot_runs(GOOD, level=95), "level=95: must be"),
        (lambda: plot_runs(GOOD, kind="sd"), "kind='sd': must be"),
        (
            lambda: plot_runs(GOOD, server_price=-1),
            "server_price=-1: must be a number in [0, 1e+100]",
        ),
        (lambda: plot_runs(GOOD, peer_price=float("nan")), "peer_price=nan: must be"),
        (lambda: save_figure(Figure(), "a.jpeg"), "path='a.jpeg': must be a file name ending in"),
    ],
)
def test_bad_input_is_refused_in_one_line(call, start):
    """Would catch a traceback from inside matplotlib, or an error that names no field."""
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(start) and "\n" not in str(error.value)


def test_bounds_lie_over_their_runs():
    """Would catch a bound drawn for another run, or left out of the caption."""
    problem = fmab.Problem([0.2, 0.5, 0.9], 4)
    data = fmab.simulate(fmab.cdp_mab(1.0), problem, 1000, 4, times=5)
    table = fmab.cdp_mab(1.0).exchange(4)
    curve = theory.regret_curve(data.time.values, [0.7, 0.4, 0.0], table, 1000, 1.0)
    figure = plot_runs({"a": data, "b": data}, bounds={"b": curve})
    drawn = [line for line in figure.axes[0].get_lines() if line.get_linewidth() == 0.8]
    assert len(drawn) == 1 and drawn[0].get_color() == COLOURS[1]
    np.testing.assert_array_equal(drawn[0].get_ydata(), curve)
    assert (curve >= data.regret.mean("seed").values).all()
    assert any("theorems' bounds" in text.get_text().replace("\n", " ") for text in figure.texts)
    with pytest.raises(ValueError, match="^bounds='c'"):
        plot_runs({"a": data}, bounds={"c": curve})
