"""Figure 6: regret of CDP-MAB under a budget of R rounds.

The paper: regret decreases with R, and R = 4 and 5 are almost the same. A budgeted schedule shrinks
its target gap by Delta^(1/R) a round, and the paper does not say which Delta it used. Two are
shown: the instance's own smallest gap (an oracle: no agent knows it), and Delta = 1/16, with which
R = 4 makes the steps of the doubling schedule; and that schedule, without a budget. Each gap has a
picture of its own, whose second row is the paired difference to no budget.
"""

import functools
from pathlib import Path

import fmab_jax as fmab
from experiments import common, differences, pictures

AGENTS, ARMS = 50, 100
EPSILON = 1
ROUNDS = [2, 3, 4, 5, None]
GAPS = {"Δ: smallest gap (oracle)": None, "Δ = 1/16": 1 / 16}
# What the names of their pictures end in.
FILES = dict(zip(GAPS, ("_smallest_gap", ""), strict=True))
NO_BUDGET = "no budget"
NEAR = 1000  # differences below it lie on a linear scale where the others are logarithmic

MORE = "more than with no budget, paired"
page = functools.partial(differences.write_page, label=MORE)
oracle_page = functools.partial(page, near=NEAR)

# Every R with both gaps, at p = 1.
sweep = differences.swept(
    fmab.cdp_mab,
    fmab.Problem.uniform(AGENTS, ARMS),
    epsilon=EPSILON,
    schedule_gap=GAPS,
    rounds=ROUNDS,
)


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws a picture for each gap."""
    return [path for gap in GAPS for path in _draw(gap, results, folder)]


def _draw(gap: str, results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, and what a budget costs over the logarithm of time."""
    results = {horizon: data.sel(schedule_gap=gap) for horizon, data in results.items()}
    found = differences.beside(
        results,
        NO_BUDGET,
        lambda data: {name_of(r): data.regret.isel(rounds=i) for i, r in enumerate(ROUNDS)},
    )
    linear = GAPS[gap] is not None
    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, ε = {EPSILON:g}, p = 1",
        results,
        budget_in_words(gap),
        common.PAIRED.format(NO_BUDGET),
        "More than with no budget: difference of regret, seed by seed, over the logarithm of time"
        + f"; linear up to {NEAR}, logarithmic beyond" * (not linear)
        + found.in_percent("the regret at T of no budget") * linear,
        common.leaks({"CDP-MAB": fmab.cdp_mab(EPSILON)}, AGENTS),
    )
    alt = (
        f"Regret at T = {common.write_count(found.last)}, beside the "
        f"{found.references[found.last]:,.0f} "
        f"of no budget: {found.told('{mean:+,.0f} at {label}')}. From the smallest R to the "
        f"largest, the difference {found.course()}."
    )
    rows = found.rows("difference to no budget")
    drawn = (page if linear else oracle_page)(rows)
    name = f"fig06_rounds{FILES[gap]}"
    return pictures.publish(pictures.Picture(name, drawn, caption, alt, rows), folder)


def name_of(rounds: int | None) -> str:
    """Writes a budget of rounds."""
    return NO_BUDGET if rounds is None else f"R = {rounds}"


def budget_in_words(gap: str) -> str:
    """Says what a budget of R rounds does, and which Delta it is spent on."""
    whose = {
        None: "the smallest gap of the seed's own instance, which no agent knows",
        1 / 16: "1/16, with which R = 4 makes the steps of no budget",
    }[GAPS[gap]]
    return (
        "With a budget of R rounds the target gap is multiplied by Δ to the power of 1/R in each "
        f"round, without one it is halved; Δ is {whose}"
    )
