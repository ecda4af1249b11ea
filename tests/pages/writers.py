"""Writes the pages of claims and of the arena from made-up results, as the experiments write them.

``python tests/pages/writers.py claims FOLDER`` (or ``arena``) imports whatever package lies beside
it: `test_writers` runs it in copies of the project in which one line of a writer is wrong. Pictures
are not drawn; their words, tables and numbers are written.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

import fmab_jax as fmab
from experiments import (
    arena,
    arena_figures,
    arena_fronts_figures,
    arena_report,
    arena_settings,
    claims,
    common,
    multiverse,
    multiverse_figures,
    pictures,
    verdicts,
)
from experiments.verdicts import Finding, Measured, Row, settled

Replace = Callable[[Any, str, Any], None]

# --- claims and their readings ------------------------------------------------------------------

SEEDS = 1000
HORIZONS = (10**4, 10**5, 10**6)


def slots(horizon):
    """Names a horizon as a condition."""
    return f"T = {common.write_count(horizon)}"


def draws(data, words):
    """Returns regret [seed] of two runs of a row, the same seeds for all who ask."""
    rng = np.random.default_rng(list(words.encode()))
    instance = 1000 * rng.gamma(5.0, size=SEEDS)
    first = instance * (1 + rng.normal(0, 0.2, SEEDS))
    return first[: data.seeds], instance[: data.seeds]


def times(data, words, factor):
    """Returns the same two runs, the first a factor of the second in the mean of all seeds."""
    whole = draws(SimpleNamespace(seeds=SEEDS), words)
    first, second = draws(data, words)
    return first * factor * whole[1].mean() / whole[0].mean(), second


def over(rule, factors, **stated):
    """Returns who judges by a rule, at each horizon, that the first is a factor of the second."""

    def judge(data):
        data.load("runs")  # somebody asks for results, so that readings matter
        turned = getattr(data, "reading", multiverse.BASE) != multiverse.BASE
        found = []
        for T in data.horizons:
            factor = factors[HORIZONS.index(T)]
            here = factor * (1.0 + 0.004 * turned)
            two = times(data, f"{rule.__name__} {factor}", here)
            number = (verdicts.ratio if rule in RATIOS else verdicts.excess)(*two)
            found.append(rule(slots(T), *stated.values(), **{"one over another": number}))
        return found

    return judge


RATIOS = (verdicts.at_most, verdicts.at_least, verdicts.valued, verdicts.large)


def shares(data):
    """Shares of seeds under a condition: a high probability at some horizons."""
    found = []
    for T in data.horizons:
        happened = np.arange(data.seeds) % (40 if T != 10**5 else 15) > 0
        few = {"R = 2": (data.seeds, 2 * data.seeds)}
        share = verdicts.share(happened)
        found.append(verdicts.probable(f"{slots(T)}, R = 2", few, **{"R = 2": share}))
    return found


def besides(data):
    """Something is told besides, and one condition is not counted."""
    found = {each.condition: each for each in over(verdicts.ordered, (1.2, 1.1, 0.8))(data)}
    first, last = slots(HORIZONS[0]), slots(HORIZONS[-1])
    if first in found:
        found[first] = found[first].adding("; links 47.1 ± 0.5", links=Measured(47.1, 46.6, 47.6))
    if last in found:
        found[last] = found[last].uncounted("a step")
    return list(found.values())


def changed(by, judge, at=HORIZONS):
    """Returns who judges likewise, with the findings at some horizons changed."""
    where = set(map(slots, at))

    def judged(data):
        return [by(each) if each.condition in where else each for each in judge(data)]

    return judged


ROWS = [
    Row("I", "regret increases", "One run over another.", over(verdicts.ordered, (1.3, 1.2, 1.1)),
        "fig04"),
    Row("I", "by little", "One run over another.",
        over(verdicts.ordered, (1.3, 1.005, 1.1)), "fig05", "A note."),
    Row("I", "all of them", "Both steps.", lambda data: [
        verdicts.ordered("T = 10⁴", up=Measured(0.3, 0.2, 0.4), over=Measured(0.1, -0.1, 0.3)),
        verdicts.ordered("T = 10⁵", up=Measured(0.3, 0.2, 0.4), over=Measured(-0.1, -0.2, -0.05)),
        verdicts.ordered("T = 10⁶", up=Measured(0.3, 0.2, 0.4), over=Measured(0.1, 0.05, 0.15)),
    ], "fig04"),
    Row("II", "grows a little", "The same run, nearly.", lambda data: [
        verdicts.ordered("", step=Measured(0.004, 0.003, 0.005)),
    ], "fig05"),
    Row("IV-A", "almost the same", "Alike.", over(verdicts.alike, (1.02, 1.06, 1.3)), "fig06"),
    Row("IV-A", "the same", "Alike.", over(verdicts.alike, (1.02, 1.06, 1.045)), "fig06, maps"),
    Row("IV-B", "never the same", "Alike.", over(verdicts.alike, (1.3, 1.06, 1.4)), "fig06"),
    Row("IV-B", "not worse", "Not more.", over(verdicts.no_more, (0.5, 1.3, 0.4)), "fig07"),
    Row("IV-C", "five times", "M.", over(verdicts.valued, (5.0, 5.02, 4.99), value=5.0), "fig08"),
    Row("V-A", "high probability", "Seeds.", shares, "fig09"),
    Row("V-B", "huge", "Large.", over(verdicts.large, (3.0, 2.05, 4.0)), "fig10"),
    Row("VI-A", "at most so much", "A bound.", changed(
        verdicts.attained, over(verdicts.at_most, (1.0, 1.5, 1.6), most=1.2), HORIZONS[1:]),
        "fig11"),
    Row("VI-B", "is said to follow", "A consequence.", changed(
        verdicts.consequence, over(verdicts.at_most, (1.0, 1.1, 1.4), most=1.2), HORIZONS[:2]),
        "fig12"),
    Row("VI-C", "needs few rounds", "Whether reached.", changed(
        verdicts.reached, over(verdicts.at_least, (2.0, 0.5, 3.0), least=1.0)), "fig13"),
    Row("VII-A", "is told besides", "Above 0.", besides, "table 1"),
    Row("VII-B", "could be proved", "A bound.", changed(
        verdicts.provable, over(verdicts.at_most, (1.0, 1.1, 1.5), most=1.2)), "theory"),
    Row("VII-C", "few runs", "Few.", changed(
        verdicts.unless_contradicted, over(verdicts.at_most, (1.0, 1.2, 1.19), most=1.2)), "few"),
]  # fmt: skip
BOUNDS = [
    Row("IV-A, Theorem 1", "a bound", "The bound over the regret.", lambda data: [
        verdicts.at_least("T = 10⁴", 1.0, **{"bound / regret": Measured(30.0, 28.0, 32.0)}),
        verdicts.at_least("T = 10⁵", 1.0, **{"bound / regret": Measured(11.0, 10.0, 12.0)}),
    ], "theory"),
]  # fmt: skip
SETTLED = [
    settled("V-B", "has the smallest cost", "Links.", lambda: [
        verdicts.ordered("ring", step=verdicts.exact(11.755)),
        verdicts.ordered("star", step=verdicts.exact(-0.02)),
        verdicts.ordered("complete", step=verdicts.exact(24.0)),
    ]),
    settled("V-C", "is at most one", "A sum.", lambda: [
        verdicts.at_most("", 1.0, sum=verdicts.exact(1.448)),
    ]),
    settled("VI-A", "and so it is", "By construction.", lambda: [
        Finding("", "by construction", (verdicts.HOLDS,) * 3),
    ]),
]  # fmt: skip
MISPRINTS = [
    Row("IV-B", "has a factor of 16", "128 for 16.", lambda data: [
        verdicts.misprint("constant", 16.0, follows=verdicts.exact(128)),
    ]),
]  # fmt: skip
UNMEASURED = [Row("III-B", "we reasonably assume", "An assumption.")]


def write_claims(folder, replace):
    """Writes CLAIMS.md and multiverse.md, with all that stands beside them."""
    for name in ("ROWS", "BOUNDS", "SETTLED", "MISPRINTS", "UNMEASURED"):
        replace(claims, name, globals()[name])
    data = multiverse.Data({"runs": {}}.__getitem__, HORIZONS, SEEDS, None)
    multiverse_figures.judge(data, folder)
    own = verdicts.Data({"runs": {}}.__getitem__, HORIZONS, SEEDS, None)
    claims.judge(own, folder, multiverse.shares(folder))


# --- the arena ----------------------------------------------------------------------------------

MANY = dict.fromkeys(("rounds", "together"), 60) | dict.fromkeys(("pooled", "episodes"), 30)
MANY |= dict.fromkeys(("alone", "search"), 16) | dict.fromkeys(("talk", "draws"), 10)
# Who is not run at the longer horizon, and who besides where agents differ.
LONG = ("fed_ucb", "dducb", "gossip_ucb", "dec_ucb", "gosine", "dp_se", "thompson")
SETTINGS = (
    "fed1-M5-f138", "gosine-GosInE", "adap-AdaP-UCB", "adap-DP-SE", "adap-tree",
    *(f"lcc-{a}-{k}-{name.replace(' ', '-')}"
      for a, k in list(arena_settings.LCC_ENDS)[:1] for name in arena_settings.LCC),
)  # fmt: skip


# Whose regret moves with that of another, seed by seed: a hundredth more is surely more.
TWINS = {"hdp": "cdp", "fed_ucb": "ddp", "kl_se_graph": "kl_se", "kl_se_components": "kl_se_split"}


def run_of(regret, sent, seeds, horizon, key, stray=0.05):
    """Returns results with about this regret at T and so many links; instances are shared."""
    instance = np.random.default_rng(7).gamma(20.0, 1 / 20.0, MANY["rounds"])[:seeds]
    noise = np.random.default_rng(list(key.encode())).normal(0, stray, MANY["rounds"])[:seeds]
    slots = np.array([horizon // 10, horizon // 2, horizon])
    curves = (regret * instance * (1 + noise))[:, None] * slots / horizon
    links = np.broadcast_to(sent * slots[:, None] / horizon, (seeds, slots.size, 1))
    data = {
        "regret": (("seed", "time"), curves),
        "links": (("seed", "time", "meter"), links * 1.0),
        "numbers_sent": ("seed", np.full(seeds, 100.0 * sent)),
        "agents_worse": ("seed", np.arange(seeds) % 5 * 1.0),
        "best_arm_lost": ("seed", np.arange(seeds) % 7 == 0),
    }
    coords = {"time": slots, "meter": ["used"], "priced": ("meter", [True])}
    return xr.Dataset(data, coords, {"agents": 50})


def parts(horizon):
    """Returns made-up results of everybody who is run at a horizon."""
    gone = LONG if horizon > 10**4 else ()
    regret, sent = {}, {}
    for i, (name, entry) in enumerate(arena.LINE_UP.items()):
        # Neighbours are alike.
        regret[name] = horizon / 10 * 1.35 ** (i // 2 + 0.02 * (i % 2))
        sent[name] = 0.0 if entry.alone else 10.0 ** (i % 4 + 1)
    # Two pairs of twins: who is surely worse than one of the best cannot be told from the other.
    regret["kl_se_split"] = 0.998 * regret["kl_se"]
    regret |= {name: 1.01 * regret[other] for name, other in TWINS.items()}
    # The two least are of unlike trust.
    regret |= {"kl_ucb_pooled": horizon / 20, "dist_dp_se": horizon / 20.1}
    regret["uniform_play"] = 1.02 * max(regret.values())
    regret["fed1_ucb_own"] = 2 * regret["uniform_play"]

    def one(name, factor, key):
        seeds, like = MANY[arena.LINE_UP[name].cost], TWINS.get(name, name)
        return run_of(factor * regret[name], sent[name], seeds, horizon, f"{key} {like}")

    found = {"a": {}, "b": {}, "c": {}}
    for name, entry in arena.LINE_UP.items():
        if name in gone:
            continue
        found["a"][name] = one(name, 1.0, "a")
        if not getattr(entry.algorithm, "homogeneous_only", False):
            alike, differ = arena.SPREADS
            found["c"][name, alike] = found["a"][name]
            found["c"][name, differ] = one(name, 1.5, "c")
    for view, what in arena.VIEWS.items():
        for name in what.makers:
            for leak in arena.LEAKS if name not in gone else ():
                found["b"][view, name, leak] = one(name, 2.0 / leak**0.3, f"{view} {leak}")
    return found


def write_arena(folder, replace):
    """Writes ARENA.md, with its parts, the words of its pictures, and all tables beside them."""
    every = arena_settings.settings()
    regrets = {"adap-AdaP-UCB": 700.0, "adap-DP-SE": 7000.0, "adap-tree": 1400.0}
    settings = {
        name: run_of(regrets.get(name, 900.0 * (i + 1)), 35.0, 8, every[name].horizon, name)
        for i, name in enumerate(SETTINGS)
    }
    results = {
        "arena": {horizon: parts(horizon) for horizon in (10**4, 10**5)},
        "arena_settings": {10**6: settings},
        "arena_fronts": {10**5: {"dials": {}, "far": parts(10**9)["a"]}},
    }
    arena_figures.draw(results["arena"], folder)
    arena_settings.draw(results["arena_settings"], folder)
    arena_fronts_figures.judge(results.__getitem__, folder)
    arena_report.judge(results.__getitem__, folder)


class Blank(pictures.Page):
    """A page on which nothing is drawn."""

    def __init__(self, narrow, squeeze=1.0):
        self.narrow = narrow

    def finish(self):
        """Returns a figure without height."""
        return Figure(figsize=(1, 1))


def write(what, folder, replace=setattr):
    """Writes the pages of claims or of the arena into a folder.

    Args:
        what: Which of both.
        folder: Where.
        replace: Puts something in the place of an attribute of a module.
    """
    publish = pictures.publish
    replace(pictures, "Page", Blank)
    replace(
        pictures, "publish", lambda each, into: publish(each._replace(draw=lambda page: None), into)
    )
    replace(common, "disagreement", lambda *sizes: 0.7)
    replace(fmab, "save_figure", lambda figure, path, overwrite: path)
    {"claims": write_claims, "arena": write_arena}[what](folder, replace)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
