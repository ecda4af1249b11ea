"""Writes the pages of the arena from made-up results, as the experiments write them."""

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
    common,
    pictures,
)

# --- the arena ----------------------------------------------------------------------------------

MANY = dict.fromkeys(("rounds", "together"), 60) | dict.fromkeys(("pooled", "episodes"), 30)
MANY |= dict.fromkeys(("alone", "search"), 16) | dict.fromkeys(("talk", "exchanges", "draws"), 10)
# Who is not run at the longer horizon, and who besides where agents differ.
LONG = ("fed_ucb", "dducb", "gossip_ucb", "dec_ucb", "gosine", "dp_se", "thompson")
SETTINGS = (
    "fed1-M5-f138", "adap-AdaP-UCB", "adap-DP-SE", "adap-tree",
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
        "arena_fronts": {10**5: {}},
    }
    arena_figures.draw(results["arena"], folder)
    arena_settings.draw(results["arena_settings"], folder)
    arena_fronts_figures.judge(results.__getitem__, folder)
    arena_report.judge(results.__getitem__, folder)


class Blank(pictures.Page):
    """A page on which nothing is drawn."""

    def __init__(self, squeeze=1.0):
        pass

    def finish(self):
        """Returns a figure without height."""
        return Figure(figsize=(1, 1))


def write(folder, replace=setattr):
    """Writes the pages of the arena into a folder; ``replace`` replaces attributes of modules."""
    publish = pictures.publish
    replace(pictures, "Page", Blank)
    replace(
        pictures, "publish", lambda each, into: publish(each._replace(draw=lambda page: None), into)
    )
    replace(common, "disagreement", lambda *sizes: 0.7)
    replace(fmab, "save_figure", lambda figure, path, overwrite: path)
    write_arena(folder, replace)
