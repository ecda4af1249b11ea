"""What DDP-MAB's protocols send, over graphs and M: GIS, plain flooding, gossip, and SAC.

The paper's section V holds flooding and gossip to be worse than GIS. A round's table tells links,
numbers and waits; a simulation on the paper's instance tells what waits cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common
from fmab_jax.analysis.words import whole
from fmab_jax.core import exchanges, graphs
from fmab_jax.core.exchanges import Exchange
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

SIZES = (5, 10, 20, 50, 100)
GRAPHS = ("complete", "star", "ring", "random")
TOLERANCES = (1e-2, 1e-4)
AGENTS, ARMS, EPSILON = 50, 100, 1.0
# Protocols of the simulation.
PROTOCOLS = {
    "GIS": {"protocol": "gis"},
    "flooding": {"protocol": "flooding"},
    "gossip to 1e-2": {"protocol": "gossip", "tolerance": 1e-2},
    "gossip to 1e-4": {"protocol": "gossip", "tolerance": 1e-4},
}


def tables(graph: Any) -> dict[str, Exchange]:
    """Returns the exchanges over a graph; SAC takes it as one component."""
    found = {"GIS": exchanges.flooding(graph), "flooding": exchanges.plain_flooding(graph)}
    for tolerance in TOLERANCES:
        found[f"gossip to {tolerance:.0e}".replace("e-0", "e-")] = exchanges.gossip(
            graph, tolerance
        )
    found["SAC to one sink"] = exchanges.sinks([graph])
    return found


QUICK = ("ring",)
"""Graphs of a quick run's simulation."""


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] = GRAPHS
) -> dict[str, Any]:
    """Runs every protocol on every graph, paired."""
    found = {}
    for name in names:
        for words, chosen in PROTOCOLS.items():
            kept = f"{name}-{words.replace(' ', '-')}"
            found[f"{name}, {words}"] = fmab.sweep(
                fmab.ddp_mab,
                fmab.Problem.uniform(AGENTS, ARMS),
                epsilon=EPSILON,
                graph=name,
                horizon=horizon,
                seeds=seeds,
                times=8,
                sum_agents=False,
                store=None if store is None else store / kept,
                **chosen,
            )
    return found


def links(table: Exchange) -> int:
    """Returns the (edge, slot) pairs of a round that carry data."""
    # SAC sends one message over an edge and slot; the sinks' to the server are not counted.
    return table.on("used") or (table.ledger.data - len(table.sizes) if table.ledger else 0)


def vectors(table: Exchange) -> int:
    """Returns the vectors that agents send each other in a round."""
    return table.vectors - len(table.sizes)


def draw(results: Mapping[int, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draws what a round takes over M, and writes both tables."""
    every = {
        (name, agents): tables(graphs.make(name, agents)) for name in GRAPHS for agents in SIZES
    }
    figure, axes = common.panels(len(GRAPHS), rows=3, height=1.6)
    drawn = {
        "slots of a round": lambda table: table.wait + 1,
        "links (edges x slots)": links,
        "vectors sent": vectors,
    }
    handles: list[Any] = []
    for column, name in zip(axes.T, GRAPHS, strict=True):
        for panel, measure in zip(column, drawn.values(), strict=True):
            handles = []
            for index, words in enumerate(every[name, SIZES[0]]):
                values = [measure(every[name, agents][words]) for agents in SIZES]
                own = style.look(index) | {"marker": style.MARKERS[index], "markersize": 2.5}
                handles += panel.plot(SIZES, values, label=words, **own)
            panel.set(xscale="log", yscale="log")
        column[0].set_title(name, fontsize=FONT, pad=3)
    for row, label in zip(axes, drawn, strict=True):
        low = min(panel.get_ylim()[0] for panel in row)
        high = max(panel.get_ylim()[1] for panel in row)
        for panel in row:
            panel.set_ylim(low, high)
        row[0].set_ylabel(label, fontsize=FONT, labelpad=2)
    for panel in axes[-1]:
        panel.set_xlabel("agents M", fontsize=FONT, labelpad=2)
    caption = (
        "One round of DDP-MAB over four graphs; nothing is random but the random graph (connected, "
        "edge probability 2 log M / M, one seed) and the pairs of gossip (one seed). Links: edges "
        "that carry data, slot by slot. A vector has one number for each active arm. Gossip ends "
        "when every agent is as close to the mean as the tolerance, as a part of the messages' "
        "range. SAC collects at one sink and does not send back; what the sink sends to the server "
        "is not counted."
    )
    written = common.save(style.finish(figure, handles, caption), folder, "arena_protocols")
    rows = [
        {
            "graph": name,
            "M": agents,
            "protocol": words,
            "slots of a round": table.wait + 1,
            "links of a round": links(table),
            "vectors of a round": vectors(table),
        }
        for (name, agents), found in every.items()
        for words, table in found.items()
    ]
    written += common.save_table(rows, folder, "arena_protocols", caption)
    return written + _draw_prices(results, folder)


def _draw_prices(results: Mapping[int, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Writes what the protocols cost in regret, links and numbers."""
    rows = []
    for horizon, found in results.items():
        for name in dict.fromkeys(label.partition(",")[0] for label in found):
            first = found[f"{name}, GIS"].isel(time=-1)
            for words in PROTOCOLS:
                data = found[f"{name}, {words}"]
                last = data.isel(time=-1)
                rows.append(
                    {
                        "T": whole(horizon),
                        "graph": name,
                        "protocol": words,
                        "wait (slots)": _wait(name, words),
                        "regret at T": common.interval(last.regret),
                        "minus GIS": common.interval(last.regret.values - first.regret.values),
                        "links at T, used": common.interval(_used(last)),
                        "numbers sent": common.interval(data.numbers_sent),
                    }
                )
    seeds = next(iter(next(iter(results.values())).values())).sizes["seed"]
    notes = (
        f"DDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, {whole(seeds)} seeds; "
        "means and pointwise 95 % confidence intervals (Student t); minus GIS: paired, seed by "
        "seed. Links and numbers are those of completed rounds."
    )
    return common.save_table(rows, folder, "arena_protocols_regret", notes)


def _wait(name: str, words: str) -> int:
    return fmab.ddp_mab(EPSILON, name, **PROTOCOLS[words]).exchange(AGENTS).wait


def _used(last: xr.Dataset) -> np.ndarray:
    return last.links.sel(meter="used").values
