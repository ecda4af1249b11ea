"""Figure 12: the three structures, where agents are alike and where they differ.

The paper: CDP-MAB has the least regret; DDP-MAB and HDP-MAB pay for exploiting local estimates
while they wait, HDP-MAB less, since its graphs are smaller. M, K and graphs are not stated: the
section has 100 agents, the others 100 arms, and the remark on delays needs graphs that delay. So:
one ring of 100 against five rings of 20.
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import xarray as xr

import fmab_jax as fmab
from experiments import common, differences, pictures, seen
from fmab_jax.plots import style

AGENTS, ARMS = 100, 100
EPSILON = 1
ALGORITHMS = {"CDP": fmab.cdp_mab, "DDP": fmab.ddp_mab, "HDP": fmab.hdp_mab}
GRAPH, COMPONENTS = "ring", "20x5:ring"
SPREADS = {"homogeneous": 0, "heterogeneous": 1}
NAMES = {"Single": "agents alone", "CDP": "CDP-MAB", "DDP": "DDP-MAB", "HDP": "HDP-MAB"}
STRUCTURES = "DDP-MAB on a ring, HDP-MAB on five components of 20 agents, each a ring"
# Structures differ in colour, rewards in stroke.
LOOKS = [
    {"color": style.COLOURS[colour], "linestyle": style.STROKES[stroke]}
    for stroke in range(len(SPREADS))
    for colour in (1, 2)
]
page = functools.partial(
    differences.write_page, label="regret minus that of CDP-MAB, paired", height=1.9, looks=LOOKS
)


def study(algorithms: Mapping[str, Any], spreads: Any) -> Callable[..., xr.Dataset]:
    """Returns a sweep of structures over spreads of the means, paired."""
    return differences.swept(
        algorithms,
        None,  # each seed draws its means
        agents=AGENTS,
        arms=ARMS,
        epsilon=EPSILON,
        graph=GRAPH,
        components=COMPONENTS,
        spread=spreads,
        sum_agents=False,
    )


sweep = study(ALGORITHMS, SPREADS)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws the difference to CDP-MAB on the same rewards over the logarithm of time."""
    rewards = {
        spread: differences.beside(
            results, "CDP", functools.partial(_curves, spread=spread), regret=False
        )
        for spread in SPREADS
    }
    found = differences.Differences(
        results,
        {
            T: {
                f"{NAMES[name]}, {spread}": band
                for spread, each in rewards.items()
                for name, band in each.more[T].items()
            }
            for T in results
        },
        # Of both reward structures, whose means are close.
        {
            T: {f"CDP-MAB, {spread}": rewards[spread].levels[T]["CDP"] for spread in SPREADS}
            for T in results
        },
    )

    share = common.disagreement(AGENTS, ARMS, SPREADS["heterogeneous"])
    caption = common.caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, {STRUCTURES}",
        common.renamed(results, algorithm=NAMES),
        "Differences to CDP-MAB on the same rewards, seed by seed, over the logarithm of time"
        + found.in_percent("the mean regret of CDP-MAB at T on both rewards"),
        *(
            common.level_at_end(f"of CDP-MAB, {spread},", each.references)
            for spread, each in rewards.items()
        ),
        f"Heterogeneous: {common.DIFFER}; the local best arm of {100 * share:.0f} % of the agents "
        "is not the global best",
        leaks(ALGORITHMS),
    )
    listed = found.told("{mean:+,.0f}, {share} ({label})")
    alike, apart = SPREADS
    larger = [
        each[f"{NAMES[name]}, {apart}"][1] > each[f"{NAMES[name]}, {alike}"][2]
        for each in found.ends().values()
        for name in ALGORITHMS
        if name != "CDP"
    ]
    alt = (
        f"Regret beside CDP-MAB, at T = {common.write_count(found.last)}: {listed}. "
        f"{seen.sides(found.every(), 'differences at T')}. Where agents differ it is larger, "
        f"beyond both bands, in {seen.tally(larger, 'pairs of a structure and a T')}."
    )
    rows = found.rows("difference to CDP-MAB")
    picture = pictures.Picture("fig12_heterogeneous_structures", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


def _curves(data: xr.Dataset, spread: str) -> dict[str, xr.DataArray]:
    return {name: data.regret.sel(algorithm=name, spread=spread) for name in ALGORITHMS}


def leaks(algorithms: Mapping[str, Any]) -> str:
    """Says what messages leak with each of some structures."""
    over: dict[str, dict[str, str]] = {
        "DDP": {"graph": GRAPH}, "HDP": {"components": COMPONENTS}
    }  # fmt: skip
    members = {
        NAMES[name]: maker(EPSILON, **over.get(name, {})) for name, maker in algorithms.items()
    }
    return common.leaks(members, AGENTS)
