"""Figure 5: regret of CDP-MAB when only ceil(p M) agents report in a round.

The paper: the regret at T decreases as p increases. Its epsilon is "fixed" but not named; 1 here,
as in its figure 7. The second row is what the reports that are not sent cost: the paired difference
to p = 1.
"""

import functools
from pathlib import Path

import fmab_jax as fmab
from experiments import common, differences, pictures

AGENTS, ARMS = 50, 100
EPSILON = 1
PARTICIPATIONS = [0.2, 0.4, 0.6, 0.8, 1]

page = functools.partial(differences.write_page, label="more than with p = 1, paired")

# Every p, without a round budget.
sweep = differences.swept(
    fmab.cdp_mab,
    fmab.Problem.uniform(AGENTS, ARMS),
    epsilon=EPSILON,
    participation=PARTICIPATIONS,
)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, and what fewer reports cost over the logarithm of time."""
    found = differences.beside(
        results,
        name_of(1),
        lambda data: {name_of(p): data.regret.sel(participation=p) for p in PARTICIPATIONS},
    )
    members = {name_of(p): fmab.cdp_mab(EPSILON, participation=p) for p in PARTICIPATIONS}
    leaks = [common.leak_text(common.leak_of(each, AGENTS)) for each in members.values()]

    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}",
        results,
        "In a round N = ⌈pM⌉ agents report",
        common.PAIRED.format("p = 1"),
        "More than with p = 1: difference of regret, seed by seed, over the logarithm of time"
        + found.in_percent("the regret at T with p = 1"),
        f"ε is the same for every p, what a message leaks is not. {common.leaks(members, AGENTS)}",
    )
    alt = (
        f"Regret at T = {common.write_count(found.last)}, beside the "
        f"{found.references[found.last]:,.0f} of p = 1: {found.told('{mean:+,.0f} at {label}')}. "
        f"From the smallest p to the largest below 1, the difference {found.course()}. "
        f"From the smallest p to p = 1, the leak of a message is {', '.join(leaks)}."
    )
    told = dict(zip(members, leaks, strict=True))
    rows = [row | {"leak": told[row["curve"]]} for row in found.rows("difference to p = 1")]
    picture = pictures.Picture("fig05_participation", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


def name_of(participation: float) -> str:
    """Writes how many agents report."""
    return f"p = {participation:g}"
