"""Made-up results and tables, and figures of every kind of them."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import xarray as xr
from ledgers import add_ledgers, make_row

from fmab_jax import Study
from fmab_jax.plots.heat import plot_heat
from fmab_jax.plots.lines import plot_parameter
from fmab_jax.plots.over_time import plot_runs
from fmab_jax.plots.pareto import plot_pareto
from fmab_jax.sweeps.grid import build_attributes

LINEAR = 100 * np.arange(1, 101)


METERS = {
    "server": ("server", True, "agent-server links"),
    "bound": ("peer", True, "diameter x edges"),
    "used": ("peer", False, "edges that carry data"),
    "edges": ("peer", True, "edges of the components"),
    "sac": ("peer", False, "hops to the sinks"),
}


def result(
    title="CDP-MAB",
    *,
    server=50,
    peer=0,
    meters=("bound", "used"),
    lost=0,
    worse=0,
    seeds=40,
    times=LINEAR,
    seed=0,
    settings=None,
    **attrs,
):
    """Makes a Dataset like simulate's, with 2 ``peer`` links a round on the first of two meters."""
    rng = np.random.default_rng(seed)
    knee = times[-1] * rng.uniform(0.05, 0.3, (seeds, 1))
    rounds = (times[None, :, None] >= knee[:, :, None] * [0.1, 0.3, 1.0]).sum(axis=2)
    found = {"server": server} if server else {}
    found |= {meters[0]: 2 * peer, meters[1]: peer} if peer else {}
    side, priced, counts = (
        zip(*(METERS[name] for name in found), strict=True) if found else [()] * 3
    )
    grid = ("seed", "time")
    return xr.Dataset(
        {
            "regret": (grid, 20.0 * np.minimum(times, knee) + 0.5 * times),
            "links": ((*grid, "meter"), rounds[..., None] * np.array([*found.values()], np.int64)),
        },
        coords={
            "seed": np.arange(seeds),
            "time": times,
            "best_arm_lost": ("seed", np.arange(seeds) < lost),
            "worse_arm_played": ("seed", np.arange(seeds) < worse),
            "meter": ("meter", np.array([*found], str)),
            "side": ("meter", np.array(side, str)),
            "priced": ("meter", np.array(priced, bool)),
            "counts": ("meter", np.array(counts, str)),
        },
        attrs={
            "algorithm": title.partition("-")[0].lower(),
            "title": title,
            "epsilon": 0.5,
            "agents": 50,
            "arms": 100,
            "horizon": int(times[-1]),
            "settings": json.dumps(settings or {}),
        }
        | attrs,
    )


def scaled(factor, **more):
    """Makes a result with so many times the regret."""
    data = result(**more)
    return data.assign(regret=factor * data.regret)


def named(algorithms, **axes):
    """Makes a sweep of algorithms, as `sweep` takes them, and of one more parameter."""
    stated = Study(algorithms, agents=50, arms=100, horizon=10**4, seeds=40, **axes)
    sizes = [len(axis.values) for axis in stated.axes]
    cells = [result(seed=seed) for seed in range(math.prod(sizes))]
    size = sizes[1] if axes else 1
    rows = [cells[i : i + size] for i in range(0, len(cells), size)]
    data = xr.concat([xr.concat(row, "epsilon") for row in rows], "algorithm")
    data = data if axes else data.isel(epsilon=0)
    words = {"long_name": "algorithm", "symbol": "", "none": "none"}
    coords = {"algorithm": ("algorithm", list(stated.axes[0].labels), words)}
    if axes:
        words = {"symbol": "ε", "none": "no noise"}
        coords["epsilon"] = ("epsilon", axes["epsilon"], words)
    data.attrs = build_attributes(stated)
    return data.assign_coords(coords)


def swept():
    """Makes the curves of a sweep of privacy and graph, with fewer seeds in one of the cells."""
    rows = []
    for index in range(2):
        cells = [{"peer": 9 * (1 + index), "seed": 2 * index + place} for place in range(2)]
        row = [result("DDP-MAB", server=0, lost=index, **cell) for cell in cells]
        rows.append(xr.concat(row, "graph", coords="different", compat="equals", join="outer"))
    data = xr.concat(rows, "epsilon", coords="different", compat="equals", join="outer")
    words = {"long_name": "privacy parameter ε", "symbol": "ε", "none": "no noise"}
    del data.attrs["epsilon"]
    return data.assign_coords(
        epsilon=("epsilon", np.array([0.1, "none"], object), words),
        graph=("graph", ["ring", "star"], {"long_name": "graph", "symbol": "", "none": ""}),
    ).assign(seeds=(("epsilon", "graph"), [[40, 40], [40, 30]]))


def leaking(data, leak, view="single messages", actions=0.0):
    """Adds what messages and actions leak to a run; a leak that is a row stands for itself."""
    row = leak if isinstance(leak, tuple) else make_row(view, float(leak))
    data = add_ledgers(data, [[row, make_row("actions", actions)]])
    return data.assign_coords(epsilon_message=row.epsilon)


BAND = "90 % pointwise confidence band of the mean (Student t at every slot)"
EPSILONS = [0.1, 0.3, 0.5, 1.0]
GRAPHS = ["complete", "star", "ring", "random-0.2", "regular-4"]
# What a table says of its parameters: long name, symbol, words of "none".
WORDS = {
    "epsilon": ("privacy parameter ε", "ε", "no noise"),
    "participation": ("participation p", "p", ""),
    "rounds": ("round budget R", "R", "no round budget"),
    "graph": ("graph", "", ""),
}
METERS_OF_TABLE = {
    "server": {"side": "server", "counted": False},
    "bound": {"side": "peer", "counted": True},
    "used": {"side": "peer", "counted": False},
}


def table(*, fold=3.0, cost_fold=5.0, noise=0.01, lost=0, worse=0, **swept):
    """Makes a frame like `table`'s: regret falls and cost rises along every parameter."""
    rng, shape = np.random.default_rng(0), tuple(map(len, swept.values()))
    frame = pd.DataFrame(itertools.product(*swept.values()), columns=[*swept])
    steps = np.indices(shape).sum(axis=0).ravel()
    share, size = steps / max(1, steps.max()), len(steps)
    for name, means in {
        "regret": 3e4 * fold ** (1 - share) * np.exp(noise * rng.normal(size=size)),
        "cost": 100 * cost_fold**share * np.exp(noise * rng.normal(size=size)),
        "rounds_made": 3 + 4 * share,
    }.items():
        frame[name], frame[f"{name}_lower"], frame[f"{name}_upper"] = (
            means,
            0.97 * means,
            1.05 * means,
        )
    is_first = np.arange(size) == 0
    for name, number in (("best_arm_lost", lost), ("worse_arm_played", worse)):
        frame[name] = is_first * number / 1000
        frame[f"{name}_lower"], frame[f"{name}_upper"] = 0.8 * frame[name], 1.2 * frame[name] + 3e-3
    frame = frame.assign(seeds=1000, leak_view="", trust="", links_bound=frame.cost / 2)
    frame = frame.assign(leak_messages=np.nan, leak_messages_delta=np.nan)
    kinds = ("long_name", "symbol", "none")
    frame.attrs = {
        "title": "DDP-MAB, M = 50 agents, K = 100 arms, T = 10⁶ slots",
        "dims": [*swept],
        "words": {name: dict(zip(kinds, WORDS[name], strict=True)) for name in swept},
        "meters": METERS_OF_TABLE,
        "level": 0.9,
        "interval": BAND,
        "server_price": 2.0,
        "peer_price": 1.0,
    }
    return frame


def leaky(frame, leaks, deltas=0.0, view="single messages"):
    """Returns a table with what messages leak in each row."""
    leaks = {"leak_messages": leaks, "leak_messages_delta": deltas}
    return frame.assign(**leaks, leak_view=view)


def caption(figure):
    """Returns the whole caption."""
    return figure.get_label()


def draw_caption(figure):
    """Returns the drawn part of a caption, on one line."""
    (text,) = figure.texts
    return text.get_text().replace("\n", " ")


def fine(low, high, number):
    """Returns evenly spaced values with few digits."""
    return np.linspace(low, high, number).round(2).tolist()


NAMES = [f"regular-{i}, a graph with quite a long name" for i in range(4)]
LONG = {
    "CDP-MAB, participation 0.4, homogeneous agents": result(),
    "a_name_without_any_space_at_which_a_line_could_be_broken_to_fit_a_column": result(seed=1),
    "no $\\formula$, a price": result("HDP-MAB", peer=7000, seed=2, lost=1),
}
FIGURES = {
    "runs large": lambda: plot_runs({"big": result(server=123_456, times=10**8 * LINEAR)}),
    "runs long": lambda: plot_runs(LONG),
    "runs unlike": lambda: plot_runs({f"{x} times": scaled(x) for x in (1, 3, 300)}),
    "runs swept": lambda **how: plot_runs(swept(), kind="quantile", **how),
    "4x3": lambda **how: plot_parameter(
        table(epsilon=EPSILONS, participation=[0.2, 0.4, 1.0]), "epsilon", "participation", **how
    ),
    "graphs": lambda: plot_parameter(table(graph=[*GRAPHS, *NAMES]), "graph"),
    "no noise": lambda: plot_parameter(
        table(epsilon=[0.01, 0.1, 1, 10, math.inf], graph=GRAPHS, fold=1000), "epsilon", "graph"
    ),
    "heat 10x10": lambda **how: plot_heat(
        table(rounds=[math.inf, *range(2, 11)], epsilon=fine(0.1, 1, 10), cost_fold=900),
        *("rounds", "epsilon"),
        metric="cost",
        **how,
    ),
    "pareto 100": lambda **how: plot_pareto(
        table(epsilon=fine(0.1, 1, 10), participation=fine(0.1, 1, 10), cost_fold=30),
        "participation",
        **how,
    ),
}
KINDS = ("runs swept", "4x3", "heat 10x10", "pareto 100")
