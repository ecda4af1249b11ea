"""Figure 8: CDP-MAB against agents alone, on alike and on different agents (5 agents, 10 arms).

The paper: CDP-MAB has about the same regret on both, a fifth of the single agents' where agents
are alike; where they differ, single agents settle on their local best arms and pay for ever.
"Differ" is not quantified there; here it is the widest zero-sum perturbation of the means
(spread = 1), and the caption says how many agents it misleads.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path

import fmab_jax as fmab
from experiments import common, differences, pictures, seen
from fmab_jax.plots import style

AGENTS, ARMS = 5, 10
EPSILON = 1
ALGORITHMS = {"Single": fmab.single_mab, "CDP": fmab.cdp_mab}
SPREADS = {"homogeneous": 0, "heterogeneous": 1}
NAMES = {"Single": "agents alone", "CDP": "CDP-MAB"}
CURVES = {
    f"{NAMES[name]}, {spread}": (name, spread) for name, spread in product(ALGORITHMS, SPREADS)
}
# Of the curves that meet, the first is seen on both sides of the second.
LOOKS = (
    {"color": style.COLOURS[0], "linestyle": "-"},
    {"color": style.COLOURS[1], "linestyle": style.STROKES[1]},
    {"color": style.COLOURS[5], "linestyle": "-", "linewidth": 3.2},
    {"color": "black", "linestyle": style.STROKES[2]},
)

# Both algorithms on both reward structures.
sweep = differences.swept(
    ALGORITHMS,
    None,  # each seed draws its means
    agents=AGENTS,
    arms=ARMS,
    epsilon=EPSILON,
    spread=SPREADS,
)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, both on logarithmic axes."""
    regret = {
        horizon: {
            label: fmab.confidence_band(
                data.regret.sel(algorithm=name, spread=spread), common.LEVEL
            )
            for label, (name, spread) in CURVES.items()
        }
        for horizon, data in results.items()
    }
    apart = []
    for bands in regret.values():
        alike, other = (pictures.end_of(bands[f"CDP-MAB, {spread}"])[0] for spread in SPREADS)
        apart.append((other - alike, alike))
    share = common.disagreement(AGENTS, ARMS, SPREADS["heterogeneous"])
    caption = common.caption(
        f"M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        common.renamed(results, algorithm=NAMES),
        f"Heterogeneous: {common.DIFFER}; the local best arm of {100 * share:.0f} % of the agents "
        "is not the global best, and an agent alone that settles on it has lost the global best. "
        f"The two curves of CDP-MAB differ by {seen.most(apart)} at T: the wide one, below the "
        "other, is the homogeneous one",
        common.leaks(
            {"agents alone": fmab.single_mab(EPSILON), "CDP-MAB": fmab.cdp_mab(EPSILON)}, AGENTS
        ),
    )
    last = max(results)
    found = {label: float(band["mean"][-1]) for label, band in regret[last].items()}
    alt = (
        f"At T = {common.write_count(last)} the mean regret is "
        + ", ".join(f"{value:,.0f} ({label})" for label, value in found.items())
        + f". The two means of CDP-MAB differ by {seen.most(apart)} at every T drawn."
    )
    rows = pictures.curve_rows({"regret": regret})
    picture = pictures.Picture("fig08_heterogeneous_central", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


def page(rows: differences.Rows) -> Callable[[pictures.Page], None]:
    """Returns what draws regret over time from the rows of the CSV."""
    regret = differences.read_bands(rows, differences.REGRET)

    def draw(page: pictures.Page) -> None:
        axes = page.panels(["regret, sum over agents"], common.titles(regret), height=1.9)[0]
        for panel, bands in zip(axes, regret.values(), strict=True):
            page.handles = []
            for (label, band), look in zip(bands.items(), LOOKS, strict=True):
                page.handles += common.draw_bands(panel, {label: band}, **look)
            panel.set(xscale="log", yscale="log")

    return draw
