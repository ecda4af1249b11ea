"""Maps of delays: what waiting for messages adds to regret, over agents and diameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import claims_runs, common, pictures, seen, verdicts
from experiments.maps_common import AGENTS, ARMS, EPSILON, caption, end, run_paper
from fmab_jax.analysis import theory
from fmab_jax.core import exchanges, graphs
from fmab_jax.plots import style

Results = Mapping[int, Mapping[str, xr.Dataset]]

# Of M, in groups that share a program: the larger ones would have the smaller ones padded.
SIZES = ((5, 10, 20, 50), (100, 200))
REACHES = (12, 6, 4, 3, 2)
OVER = ("M", "d_G")  # what lies on the horizontal axes


def graphs_by_diameter() -> dict[str, Any]:
    """Returns graphs of 50 agents whose diameters lie between 1 and 49."""
    rings = {
        f"circle, reach {reach}": nx.circulant_graph(AGENTS, range(1, reach + 1))
        for reach in REACHES
    }
    names = ("complete", "star", "random", "grid", "ring", "path")
    return {name: name for name in names} | rings


def sweep_sizes(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs ring and complete graph with few and with many agents, paired."""
    found = []
    for place, sizes in enumerate(SIZES):
        problems = {str(agents): fmab.Problem.uniform(agents, ARMS) for agents in sizes}
        kept = None if store is None else store.with_name(f"{store.name}-{place}")
        found.append(
            run_paper(
                fmab.ddp_mab,
                horizon,
                seeds,
                kept,
                problems,
                epsilon=EPSILON,
                graph=["ring", "complete"],
                sum_agents=False,
            )[["regret"]]
        )
    return xr.concat(found, "problem", join="outer", coords="minimal", compat="override")


def sweep_diameters(horizon: int, seeds: int, store: Path | None) -> xr.Dataset:
    """Runs graphs of many diameters with 50 agents, paired."""
    return run_paper(
        fmab.ddp_mab,
        horizon,
        seeds,
        store,
        epsilon=EPSILON,
        graph=graphs_by_diameter(),
        sum_agents=False,
    )


def waiting_bound(agents: int, graph: Any, horizon: int, instances: int = 20) -> float:
    """Returns the proved bound on the regret of waiting, mean over the first instances."""
    table = exchanges.flooding(graph)
    gaps = claims_runs.gaps_of(fmab.Problem.uniform(agents, ARMS), instances)
    each = [theory.bounds(one, table, horizon, float(EPSILON)).regret_waiting for one in gaps]
    return float(np.mean(each))


def size_rows(horizon: int, data: xr.Dataset) -> list[dict[str, Any]]:
    """Returns what the ring adds to the complete graph, for every number of agents."""
    rows = []
    for label in data.problem.values.tolist():
        agents, graph = int(label), graphs.make("ring", int(label))
        ends = [end(data, problem=label, graph=name) for name in ("ring", "complete")]
        rows.append(_extra(horizon, "M", agents, "ring", graph, *ends))
    return sorted(rows, key=lambda row: row["M"])


def diameter_rows(horizon: int, data: xr.Dataset) -> list[dict[str, Any]]:
    """Returns what every graph adds to the complete one, by its diameter."""
    made = {
        name: graphs.make(given, AGENTS) if isinstance(given, str) else given
        for name, given in graphs_by_diameter().items()
    }
    complete = end(data, graph="complete")
    rows = [
        _extra(horizon, "d_G", AGENTS, name, made[name], end(data, graph=name), complete)
        for name in data.graph.values.tolist()
        if name != "complete"
    ]
    return sorted(rows, key=lambda row: row["d_G"])


def _extra(
    horizon: int, over: str, agents: int, name: str, graph: Any, own: Any, complete: Any
) -> dict[str, Any]:
    diameter = graphs.diameter(graph)
    return {
        "T": horizon,
        "over": over,
        "M": agents,
        "graph": name,
        "d_G": diameter,
        "extra regret": common.interval(np.asarray(own) - np.asarray(complete)),
        "of the regret": tuple(verdicts.excess(own, complete)),
        "2 M (d_G - 1)": 2 * agents * (diameter - 1),
        "bound on waiting": waiting_bound(agents, graph, horizon),
    }


def distinct(
    sizes: Sequence[Mapping[str, Any]], diameters: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Returns the points of both panels, each graph once: the ring of 50 agents is in both."""
    return list({(row["M"], row["graph"]): row for row in (*sizes, *diameters)}.values())


def _beyond_sizes(found: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Returns the graphs of 50 agents that are not among those of all sizes."""
    both = found["sizes"].graph.values.tolist() if str(AGENTS) in found["sizes"].problem else []
    return found["diameters"].drop_sel(graph=both)


def draw_waits(results: Results) -> list[pictures.Picture]:
    """Draws the extra regret of the ring over M, and of graphs over their diameter."""
    rows = {
        T: (size_rows(T, found["sizes"]), diameter_rows(T, found["diameters"]))
        for T, found in results.items()
    }
    every = [row for each in rows.values() for part in each for row in part]
    told = [_told_waits(T, *each) for T, each in rows.items()]
    words = caption(
        f"DDP-MAB, K = {ARMS} arms, ε = {EPSILON:g}",
        {T: [found["sizes"], _beyond_sizes(found)] for T, found in results.items()},
        "Points: regret minus that on the complete graph, seed by seed on the same draws; bars: "
        "pointwise 95 % confidence interval (Student t). The vertical axis is linear between -30 "
        "and 30, logarithmic beyond. Above: the ring, whose diameter is ⌊M/2⌋. Below: star, "
        "random graph, circles whose agents reach 12, 6, 4, 3 and 2 neighbours on either side, "
        f"grid, ring and path. Ring and complete graph of {AGENTS} agents are those of both "
        "panels, and count once. Printed in the proof: 2 M (d_G − 1), without its factor 1 − Δ",
        "ε is the same for every M, what a message leaks is not: "
        + ", ".join(
            f"{common.leak_text(common.leak_of(fmab.ddp_mab(EPSILON, graph='ring'), agents))} "
            f"(M = {agents})"
            for agents in dict.fromkeys(row["M"] for row in every if row["over"] == "M")
        ),
        *told,
    )
    alt = " ".join(text + "." for text in told)
    return [pictures.Picture("maps_waits", page(every), words, alt, every)]


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns what draws the points and both bounds from the rows of the CSV."""
    # They nearly coincide: the one below is wider.
    printed = {"color": style.COLOURS[1], "ls": "-", "lw": 2}
    proved = {"color": "black", "ls": (0, (1, 1)), "lw": 0.9}
    horizons = list(dict.fromkeys(row["T"] for row in rows))
    lowest = {over: min(r["extra regret"][1] for r in rows if r["over"] == over) for over in OVER}

    def draw(page: pictures.Page) -> None:
        labels = ["extra regret of the ring", f"extra regret, M = {AGENTS}"]
        x = ["agents M", "diameter of the graph"]
        axes = page.panels(labels, common.titles(horizons), x)
        for column, horizon in zip(axes.T, horizons, strict=True):
            for panel, over in zip(column, OVER, strict=True):
                each = [row for row in rows if (row["T"], row["over"]) == (horizon, over)]
                places = [row[over] for row in each]
                mean, low, high = np.array([row["extra regret"] for row in each]).T
                panel.vlines(places, low, high, color=style.COLOURS[0], linewidth=0.9)
                panel.plot(places, mean, "o", color=style.COLOURS[0], ms=3)
                panel.plot(places, [row["2 M (d_G - 1)"] for row in each], **printed)
                panel.plot(places, [row["bound on waiting"] for row in each], **proved)
                pictures.line_up(panel)
                panel.set_xscale("log")
                panel.set_yscale("symlog", linthresh=30, linscale=1)
                panel.margins(x=0.05)
                panel.minorticks_off()
                panel.set_ylim(bottom=min(-15, 1.5 * lowest[over]))

        def ticks() -> None:
            for panel in axes.flat:
                low, high = panel.get_ylim()
                wanted = [-10000, -1000, -100, 0, *(10**n for n in range(2, 6))]
                panel.set_yticks([t for t in wanted if low <= t <= high])

        page.fit = ticks
        page.handles = [
            Line2D([], [], color=style.COLOURS[0], marker="o", ms=3, lw=0.9, label="measured"),
            Line2D([], [], label="printed in the proof: 2 M (d_G − 1)", **printed),
            Line2D([], [], label="proved for the waits", **proved),
        ]

    return draw


def _told_waits(
    horizon: int, sizes: Sequence[Mapping[str, Any]], diameters: Sequence[Mapping[str, Any]]
) -> str:
    """Says how much of the bound is used, and where waiting saves regret."""
    each = distinct(sizes, diameters)
    used = max(row["extra regret"][0] / row["2 M (d_G - 1)"] for row in each)
    saved = sum(row["extra regret"][2] < 0 for row in each)
    added = sum(row["extra regret"][1] > 0 for row in each)
    least, most = sizes[0], sizes[-1]
    share = max(100 * abs(row["of the regret"][0]) for row in each)
    return (
        f"At T = {common.write_count(horizon)} the ring's extra regret is "
        f"{least['extra regret'][0]:.2g} with M = {least['M']} and {most['extra regret'][0]:,.0f} "
        f"with M = {most['M']}. Of {len(each)} points, the {100 * common.LEVEL:g} % interval lies "
        f"above 0 at {added} (waiting adds regret), and below 0 at {saved} (it saves some). The "
        f"mean is at most {seen.no_less(share):.2g} % of the regret on the complete graph, and "
        f"{seen.no_less(100 * used):.2g} % of 2 M (d_G − 1)"
    )
