"""What DDP-MAB's protocols send, over graphs and M: GIS, plain flooding, gossip, and SAC.

The paper's section V holds flooding and gossip to be worse than GIS. A round's table tells links,
numbers and waits; a simulation on the paper's instance tells what waits cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import common, pictures, seen
from fmab_jax.analysis.words import write_count, write_number
from fmab_jax.core import exchanges, graphs
from fmab_jax.core.exchanges import Exchange
from fmab_jax.plots import style

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


# Lines that meet are seen on both sides of each other.
LOOKS = [
    style.get_line_style(index) | {"marker": marker, "markersize": size, "linewidth": width}
    for index, (marker, size, width) in enumerate(
        (("o", 4.2, 2.6), ("s", 2.2, 1.0), ("^", 2.5, 1.0), ("D", 2.5, 1.0), ("v", 2.5, 1.0))
    )
]


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


def spoken(protocol: str) -> str:
    """Writes a protocol with its tolerance as people do."""
    return protocol.replace("1e-2", "0.01").replace("1e-4", "0.0001")


def links(table: Exchange) -> int:
    """Returns the (edge, slot) pairs of a round that carry data."""
    # SAC sends one message over an edge and slot; the sinks' to the server are not counted.
    return table.on("used") or (table.ledger.data - len(table.sizes) if table.ledger else 0)


def vectors(table: Exchange) -> int:
    """Returns the vectors that agents send each other in a round."""
    return table.vectors - len(table.sizes)


def draw(results: Mapping[int, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draws what a round takes over M, and writes what it costs in regret."""
    every = {
        (name, agents): tables(graphs.make(name, agents)) for name in GRAPHS for agents in SIZES
    }
    drawn = {
        "slots of a round": lambda table: table.wait + 1,
        "links of a round": links,
        "vectors of a round": vectors,
    }
    found = {
        measure: {cell: {words: of(t) for words, t in ts.items()} for cell, ts in every.items()}
        for measure, of in drawn.items()
    }

    caption = (
        "One round of DDP-MAB over four graphs; nothing is random but the random graph (connected, "
        "edge probability 2 log M / M, one seed) and the pairs of gossip (one seed). Links: edges "
        "that carry data, slot by slot. A vector has one number for each active arm. Gossip ends "
        "when every agent is as close to the mean as the tolerance, as a part of the messages' "
        "range. SAC collects at one sink and does not send back; what the sink sends to the server "
        "is not counted. Where GIS and flooding take the same, the wide line of GIS is seen on "
        f"both sides of that of flooding: {_alike(found)}"
    )
    most = SIZES[-1]
    ring = found["links of a round"]["ring", most]
    listed = "; ".join(f"{spoken(words)} {value:,}" for words, value in ring.items())
    alt = f"{_slower(found['slots of a round'])} Links of a round on a ring of {most}: {listed}."
    rows = [
        {"graph": name, "M": agents, "protocol": spoken(words)}
        | {measure: found[measure][name, agents][words] for measure in drawn}
        for (name, agents), protocols in every.items()
        for words in protocols
    ]
    picture = pictures.Picture("arena_protocols", page(rows), f"{caption}.", alt, rows, rows)
    return pictures.publish(picture, folder) + _draw_prices(results, folder)


def page(rows: Sequence[Mapping[str, Any]]) -> Callable[[pictures.Page], None]:
    """Returns what draws a round over M from the rows of the CSV, a column for each graph."""
    measures = [head for head in rows[0] if head.endswith(" of a round")]

    def draw(page: pictures.Page) -> None:
        axes = page.panels(measures, GRAPHS, "agents M", 1.2)
        for line, measure in zip(axes, measures, strict=True):
            for panel, name in zip(line, GRAPHS, strict=True):
                here = [row for row in rows if row["graph"] == name]
                page.handles = []
                for protocol, look in zip(
                    dict.fromkeys(r["protocol"] for r in here), LOOKS, strict=True
                ):
                    own = [row for row in here if row["protocol"] == protocol]
                    points = [row["M"] for row in own], [row[measure] for row in own]
                    page.handles += panel.plot(*points, label=protocol, **look)
                panel.set(xscale="log", yscale="log", xlim=(0.8 * SIZES[0], 1.25 * SIZES[-1]))
                panel.set_xticks(SIZES[::2])
            # One scale for a quantity on all graphs.
            low = min(panel.get_ylim()[0] for panel in line)
            high = max(panel.get_ylim()[1] for panel in line)
            for panel in line:
                panel.set_ylim(low, high)

    return draw


Measure = Mapping[tuple[str, int], Mapping[str, int]]


def _slower(slots: Measure) -> str:
    """Says how many slots gossip takes beside all others, over graphs and M."""
    told = []
    for tolerance in (words for words in next(iter(slots.values())) if words.startswith("gossip")):
        pairs = [
            (own[tolerance], max(n for words, n in own.items() if not words.startswith("gossip")))
            for own in slots.values()
        ]
        ratios = [gossip / others for gossip, others in pairs]
        longer = seen.tally((ratio > 1 for ratio in ratios), "pairs of a graph and an M")
        told.append(
            f"{spoken(tolerance)} takes more slots than the slowest of the others in {longer}, "
            f"{_rough(min(ratios))} to {_rough(max(ratios))} times as many"
        )
    text = "; ".join(told)
    return f"{text[0].upper()}{text[1:]}."


def _rough(number: float) -> str:
    return write_number(float(f"{number:.2g}"))


def _alike(found: Mapping[str, Measure]) -> str:
    """Says where GIS and flooding take the same, by what is counted."""
    told = (
        f"of {measure.removesuffix(' of a round')} in "
        + seen.tally((own["GIS"] == own["flooding"] for own in cells.values()), "pairs")
        for measure, cells in found.items()
    )
    return f"as many {seen.listed(told)} of a graph and an M"


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
                        "T": write_count(horizon),
                        "graph": name,
                        "protocol": spoken(words),
                        "wait (slots)": _wait(name, words),
                        "regret at T": common.interval(last.regret),
                        "minus GIS": common.interval(last.regret.values - first.regret.values),
                        "links at T, edges that carry data": common.interval(_used(last)),
                        "numbers sent": common.interval(data.numbers_sent),
                    }
                )
    graphs_run = dict.fromkeys(
        label.partition(",")[0] for found in results.values() for label in found
    )
    missing = [
        *seen.absent(GRAPHS, graphs_run),
        *seen.absent(map(spoken, tables(graphs.make("ring", 5))), map(spoken, PROTOCOLS)),
    ]
    notes = (
        f"DDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, "
        f"{common.seeds_of({T: [*found.values()] for T, found in results.items()})}; "
        "means and pointwise 95 % confidence intervals (Student t); minus GIS: paired, seed by "
        "seed. Links and numbers are those of completed rounds. "
        f"{common.leaks(_members(), AGENTS)}. " + "".join(f"{text}. " for text in missing)
    )
    return common.save_table(rows, folder, "arena_protocols_regret", notes)


def _members() -> dict[str, Any]:
    return {
        spoken(words): fmab.ddp_mab(EPSILON, "ring", **chosen)
        for words, chosen in PROTOCOLS.items()
    }


def _wait(name: str, words: str) -> int:
    return fmab.ddp_mab(EPSILON, name, **PROTOCOLS[words]).exchange(AGENTS).wait


def _used(last: xr.Dataset) -> np.ndarray:
    return last.links.sel(meter="used").values
