"""The authors' own settings of Fed1-UCB, LCC-UCB and AdaP-UCB, run again.

Besides, a case on which policies of agents alone were simulated roughly, DP-IMED among them.

Their figures are mostly pictures without numbers; what is known of them stands beside ours. Every
setting has its own horizon, which a shorter one than 10^6 cuts (``--quick``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import arena, common
from fmab_jax.analysis import costs
from fmab_jax.analysis.words import write_count

# Shi and Shen, arXiv 2101.12204: global means; a client's mean is the global one times a weight.
FED1_MEANS = (0.70, 0.71, 0.72, 0.73, 0.74, 0.75, 0.76, 0.765, 0.77, 0.79)
FED1_WEIGHTS = {1: (1.0, 1.0), 5: (4.2, 0.2), 10: (9.1, 0.1)}
# (M, f): regret including M links a round at price 1, and that price, of a run by others of the
# authors' setting with 60 seeds.
FED1_KNOWN = {
    (1, 138): (13_500, 1_002),
    (5, 138): (13_400, 1_008),
    (10, 138): (13_600, 1_016),
    (5, 1): (147_000, 135_000),
    (5, 10): (25_100, 13_000),
    (5, 100): (13_900, 1_399),
    (5, 500): (13_300, 286),
}
# (M, K): where the axis of regret ends in the picture of LCC-UCB.
LCC_ENDS = {(10, 100): 3_500, (20, 100): 3_500, (10, 200): 7_000}
LCC = {"LCC-UCB": fmab.lcc_ucb(), "UCB1 pooled": fmab.ucb1(pooled=True), "UCB1 alone": fmab.ucb1()}
# AdaP-UCB over another, in the picture; and by how much a ratio read off a picture may be out.
ADAP_SHARE, READ_OFF = 0.1, 0.5
# Two runs that differ by no more agree.
NEAR = 0.05
# One agent, the means of AdaP-UCB's setting, epsilon = 1, T = 10^5: regret of a rough simulation in
# NumPy, independent of the package, and by how much it may be out, if that is known.
CHECKED = {
    "DP-IMED": (fmab.dp_imed(1.0), 124, 74),
    "DP-KLUCB": (fmab.dp_klucb(1.0), 124, 9),
    "AdaP-KLUCB": (fmab.adap_ucb(1.0, kl=True), 1_151, 0),
    "AdaP-UCB": (fmab.adap_ucb(1.0), 1_349, 0),
}


class Setting(NamedTuple):
    """One run of somebody's setting."""

    who: str  # whose
    what: str  # in words
    algorithm: Any  # what is run
    problem: Any  # on what
    horizon: int  # theirs
    seeds: int  # theirs
    known: str  # what is known of their result
    priced: bool = False  # whether links count as regret, one each, as in that paper
    per_agent: bool = False  # whether regret is told per agent, as in that paper


def fed1_means(agents: int) -> np.ndarray:
    """Returns the means [agent, arm]: each agent has a share of the arms that it likes best."""
    large, small = FED1_WEIGHTS[agents]
    weights = np.full((agents, len(FED1_MEANS)), small)
    share = len(FED1_MEANS) // agents
    for agent in range(agents):
        weights[agent, agent * share : (agent + 1) * share] = large
    return weights * np.array(FED1_MEANS)


def settings() -> dict[str, Setting]:
    """Returns all settings."""
    by_name = {}
    noise = fmab.Gaussian(0.5)
    for (agents, pulls), (regret, sent) in FED1_KNOWN.items():
        by_name[f"fed1-M{agents}-f{pulls}"] = Setting(
            "Fed1-UCB",
            f"M = {agents}, f = {pulls}, Gaussian rewards of deviation 1/2",
            fmab.fed1_ucb(pulls=pulls),
            fmab.Problem(fed1_means(agents), rewards=noise),
            10**6,
            100,
            f"{regret:,} / {sent:,} (60 seeds, by others)",
            priced=True,
        )
    for (agents, arms), end in LCC_ENDS.items():
        for name, algorithm in LCC.items():
            by_name[f"lcc-{agents}-{arms}-{name.replace(' ', '-')}"] = Setting(
                name,
                f"M = {agents}, K = {arms}, means U(0, 1)",
                algorithm,
                fmab.Problem(agents=agents, arms=arms),
                10**5,
                30,
                f"a picture whose axis ends at {end:,}; LCC-UCB between the other two",
                per_agent=True,
            )
    words = "one agent, K = 5, means .75, .625, .5, .375, .25, ε = 1"
    problem = fmab.Problem(np.array([0.75, 0.625, 0.5, 0.375, 0.25]), agents=1)
    known = "a picture: AdaP-UCB about a tenth of the other two (theirs: DP-UCB for a tree)"
    adap = {"AdaP-UCB": fmab.adap_ucb, "DP-SE": fmab.dp_se, "tree UCB": fmab.tree_ucb}
    for name, maker in adap.items():
        setting = Setting(name, words, maker(1.0), problem, 10**7, 20, known, per_agent=True)
        by_name[f"adap-{name.split()[0]}"] = setting
    for name, (algorithm, regret, off) in CHECKED.items():
        known = f"{regret:,}{f' ± {off}' * bool(off)} (a rough simulation)"
        check = f"{words}, a check"
        setting = Setting(name, check, algorithm, problem, 10**5, 200, known, per_agent=True)
        by_name[f"check-{name}"] = setting
    return by_name


def horizons(given: Sequence[int]) -> list[int]:
    """Returns the longest: settings have horizons of their own."""
    return [max(given)]


QUICK = ("fed1-M5-f138", "adap-DP-SE")


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Runs every setting, with no more seeds than its authors, and no fewer than two."""
    runs = {}
    every = settings()
    for name in every if names is None else names:
        setting = every[name]
        T = setting.horizon if horizon >= 10**6 else min(setting.horizon, horizon)
        runs[name] = fmab.sweep(
            type(setting.algorithm),
            setting.problem,
            horizon=T,
            seeds=max(2, min(seeds, setting.seeds)),
            times=20,
            store=None if store is None else store / name,
            **arena.stated(setting.algorithm),
        )
    return runs


NOTES = (
    "Regret at T: sum over agents, or of one agent where the paper has it so; mean over seeds "
    "and pointwise 95 % confidence interval (Student t). With links: every link of a round "
    "counts as one more regret; known then is regret with links / links. Known: what the "
    "source, or somebody who ran its code, tells; LCC-UCB's paper shows medians. Instances "
    "that a source draws at random are drawn anew here. Agrees: numbers that are known are met "
    f"within {100 * NEAR:g} %, or within twice the ± that is known of them; a ratio that is "
    f"read off a picture, within {100 * READ_OFF:g} %."
)


def draw(results: Mapping[int, Mapping[str, Any]], folder: Path) -> list[Path]:
    """Writes the table, a row for each setting; ARENA.md shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    return [common.save_rows(_rows(results), folder / "arena_settings.csv")]


def section(results: Mapping[int, Mapping[str, Any]]) -> list[str]:
    """Returns the table in Markdown, how it is read, and the settings without a row."""
    (runs,) = results.values()
    missing = [name for name in settings() if name not in runs]
    not_run = [f"Not run: {', '.join(missing)}.", ""] * bool(missing)
    return [*common.table_lines(_rows(results)), "", NOTES, "", *not_run]


def _rows(results: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
    (runs,) = results.values()
    rows = {name: _row(setting, runs[name]) for name, setting in settings().items() if name in runs}
    return [row | {"agrees?": agrees(name, rows)} for name, row in rows.items()]


def agrees(name: str, rows: Mapping[str, Mapping[str, Any]]) -> str:
    """Says whether a setting agrees with what is known of it, and why not."""

    def regret(other: str) -> float | None:
        return float(rows[other]["regret at T"][0]) if other in rows else None

    mean = float(rows[name]["regret at T"][0])
    kind, *words = name.split("-")
    if rows[name]["T"] != write_count(settings()[name].horizon):
        return "cannot be said: the horizon is not theirs"
    if kind == "fed1":
        known, sent = FED1_KNOWN[int(words[0][1:]), int(words[1][1:])]
        links = float(rows[name]["links at T"][0])
        off = {"regret": mean / known - 1, "links": links / sent - 1}
        sentence = ", ".join(f"{what} {100 * part:+.1f} %" for what, part in off.items())
        return f"{'yes' if max(map(abs, off.values())) <= NEAR else 'no'}: {sentence}"
    if kind == "lcc":
        end = LCC_ENDS[int(words[0]), int(words[1])]
        regrets = [regret(f"lcc-{words[0]}-{words[1]}-{label.replace(' ', '-')}") for label in LCC]
        if None in regrets:
            return "cannot be said: one of the three was not run"
        lcc, pooled, alone = regrets
        order = "between the other two" if pooled < lcc < alone else "not between the other two"
        if mean > end:
            return f"no: above the axis, which ends at {end:,}; why is not known"
        if rows[name]["algorithm"] == "LCC-UCB" and order.startswith("not"):
            return f"no: {order}"
        return f"yes: below the end of the axis{f', {order}' * (mean == lcc)}"
    if kind == "adap":
        adap = regret("adap-AdaP-UCB")
        if adap is None or name == "adap-AdaP-UCB":
            return (
                "see the other two" if adap is not None else "cannot be said: AdaP-UCB was not run"
            )
        share = adap / mean
        near = abs(share / ADAP_SHARE - 1) <= READ_OFF
        sentence = f"AdaP-UCB has {share:.2f} of it"
        return (
            f"yes: {sentence}" if near else f"no: {sentence}; what is known was read off a picture"
        )
    _, known, off = CHECKED["-".join(words)]
    if off > known / 4:
        return "cannot be said: what is known is too rough"
    near = abs(mean - known) <= max(NEAR * known, 2 * off)
    return f"{'yes' if near else 'no'}: regret {100 * (mean / known - 1):+.1f} %"


def _row(setting: Setting, data: xr.Dataset) -> dict[str, Any]:
    last = data.isel(time=-1)
    agents = int(data.attrs["agents"])
    links = np.zeros(last.sizes["seed"])
    if last.sizes.get("meter"):
        links = last.links.sel(meter=last.priced).sum("meter").values
    regret = last.regret.values
    if setting.priced:
        regret = regret + links
    if setting.per_agent:
        regret = regret / agents
    of = "one agent" if setting.per_agent else "all agents, with links" if setting.priced else "all"
    return {
        "algorithm": setting.who,
        "setting": setting.what,
        "T": write_count(data.time.values[-1]),
        "seeds": data.sizes["seed"],
        "leak ε": costs.write_leak(costs.read_exposure(data)) or "not said",
        "regret of": of,
        "regret at T": common.interval(regret),
        "links at T": common.interval(links),
        "known": setting.known,
    }
