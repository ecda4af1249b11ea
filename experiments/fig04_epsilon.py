"""Figure 4: regret of CDP-MAB at four levels of privacy.

The paper: less epsilon, more regret; it calls epsilon = 1 "the non-private case". It is run with
its noise here, beside a run that has none. The second row is what privacy costs: the paired
difference to no noise.
"""

import functools
from pathlib import Path

import xarray as xr

import fmab_jax as fmab
from experiments import common, differences, pictures, seen

AGENTS, ARMS = 50, 100
EPSILONS = [0.1, 0.3, 0.5, 1, None]

page = functools.partial(differences.write_page, label="price of privacy, paired")

# Every epsilon at p = 1, without a round budget.
sweep = differences.swept(fmab.cdp_mab, fmab.Problem.uniform(AGENTS, ARMS), epsilon=EPSILONS)


def name_of(epsilon: float | None) -> str:
    """Writes a level of privacy, and what a message leaks with it."""
    return "no noise" if epsilon is None else f"ε = {epsilon:g} (Nε = {AGENTS * epsilon:g})"


def draw(results: common.Results, folder: Path) -> list[Path]:
    """Draws regret over time, and the price of privacy over the logarithm of time."""
    found = differences.beside(
        results,
        "no noise",
        lambda data: {name_of(e): data.regret.isel(epsilon=i) for i, e in enumerate(EPSILONS)},
    )
    members = {name_of(e).partition(" (")[0]: fmab.cdp_mab(e) for e in EPSILONS}
    caption = common.caption(
        f"CDP-MAB, M = {AGENTS} agents, K = {ARMS} arms, all report (p = 1)",
        results,
        common.PAIRED.format("no noise"),
        f"{common.leaks(members, AGENTS)}. Price of "
        "privacy: regret minus regret without noise, seed by seed, over the logarithm of time"
        + found.in_percent("the regret at T without noise"),
    )
    last = found.last
    adds = {e: found.ends()[last][name_of(e)] for e in EPSILONS if e is not None}
    slot, shares = _by_then(results[last])
    alt = (
        f"At T = {common.write_count(last)}, {100 * min(shares):.0f} to {100 * max(shares):.0f} % "
        "of a "
        f"curve's regret is there at slot {common.write_count(slot)}. Noise adds "
        + ", ".join(f"{mean:,.0f} at ε = {e:g}" for e, (mean, _, _) in adds.items())
        + f" to {found.references[last]:,.0f}. From the smallest ε to the largest, "
        f"what it adds {seen.course(list(adds.values()))}."
    )
    rows = found.rows("price of privacy")
    picture = pictures.Picture("fig04_epsilon", page(rows), caption, alt, rows)
    return pictures.publish(picture, folder)


def _by_then(data: xr.Dataset) -> tuple[int, list[float]]:
    """Returns the recorded slot nearest to a tenth of T, and each curve's share of regret by it."""
    means = data.regret.mean("seed").transpose("epsilon", "time").values
    slots = data.time.values
    place = int(abs(slots - slots[-1] / 10).argmin())
    return int(slots[place]), [float(share) for share in means[:, place] / means[:, -1]]
