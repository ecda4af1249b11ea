"""Throws hostile values at every public function; run as a script, in a process without hooks.

Prints a line of JSON for each door: its name and, by value, what became of it: "refused",
"accepted", "started" (it would have compiled), or the exception that it must not end in.
"""

import contextlib
import enum
import faulthandler
import functools
import json
import operator
import os
import re
import signal
import sys
import tempfile
from decimal import Decimal  # noqa: F401
from fractions import Fraction  # noqa: F401
from functools import partial
from pathlib import Path

import networkx as nx  # noqa: F401
import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure
from plots import made

import fmab_jax as fmab
from fmab_jax.analysis.bands import lost_interval
from fmab_jax.analysis.privacy import laplace_sum_epsilon
from fmab_jax.errors import Refusal
from fmab_jax.parameters import Real
from fmab_jax.run import compilation, schema
from fmab_jax.sweeps.fields import FIELDS


class Colour(enum.Enum):
    """An enumeration that is no number."""

    RED = 1


class Rude(float):
    """A number that answers nothing."""

    def __float__(self, *_):
        raise RuntimeError("no")

    __lt__ = __gt__ = __le__ = __ge__ = __repr__ = __float__


class Mute:
    """An object whose every question fails."""

    def __array__(self, *_, **__):
        raise RuntimeError("no")

    __fspath__ = __len__ = __repr__ = __array__


@functools.cache
def deep(levels, times=1):
    """Returns lists in lists; made once, since making them takes a while."""
    nested = 1
    for _ in range(levels):
        nested = [nested] * times
    return nested


def curves(values, *more):
    """Returns something in the shape of regret."""
    return xr.DataArray(values, dims=(*more, "seed", "time"))


# What is thrown, by how it is written; made anew for each door, since generators are used up. Lists
# of the same lists have 100 ** 12 entries in a few kilobytes.
WRITTEN = r"""
None; True; 0; -1; -0.5; 10**30; 10**400; np.nan; np.inf; 1e308; 5e-324; np.longdouble('1e4000');
Fraction(7, 3); Fraction(10**400, 3); Decimal('0.5'); Decimal('sNaN'); np.timedelta64(3, 's');
np.datetime64('2020-01-01'); 0.5 + 0j; np.array(3); np.array(0.5); np.array([[[3]]]);
np.array([0.5 + 1j, 0.25]); np.array([True, False]); np.array(['0.5', '0.25']); np.zeros((0, 3));
np.broadcast_to(np.float64(0.5), 10**12); np.ma.array([0.5, 0.25], mask=[True, False]); Rude(0.5);
Mute(); Colour.RED; '0.5'; ''; 'a\0b.nc'; 'a\ud800.nc'; 10_000_000 * 'x'; 'a\nb\r\n\x1b[2Jc'; b'x';
[]; [[1, 2], [3]]; [None, None]; ['0.5', 'x']; [True, 5]; [np.nan, 0.5]; [[1]]; [3, 3];
deep(100_000); range(10**12); {1, 2}; {'a': 1}; {}; iter(int, 1); int; object();
nx.Graph(); curves(np.zeros((0, 0))); curves(np.zeros((1, 3))); curves(np.zeros((3, 2), complex));
curves(np.full((3, 2), np.nan)); xr.Dataset(); curves(np.zeros((3, 2))).to_dataset(name='regret');
PROBLEM; RUN; fmab.cdp_mab
"""
VALUES = {each: eval(f"lambda: {each}") for each in re.split(r";\s", WRITTEN.strip())}

PROBLEM = fmab.Problem([0.9, 0.5, 0.5, 0.1], agents=3)
RUN = fmab.cdp_mab(1.0)


DATA = made.result("DDP-MAB", server=0, peer=1, seeds=4, times=np.array([1, 2, 3])).assign(seeds=4)
DATA.attrs |= {"agents": 3, "arms": 4, "epsilon_message": 3.0}
CURVES = DATA.regret.drop_vars(["best_arm_lost", "worse_arm_played"])
# With all that a table of it needs.
WHOLE = DATA.assign(
    {name: ("seed", np.ones(4, int)) for name in ("rounds_made", "chosen_arm", "active_arms")}
)
FRAME = fmab.table(WHOLE)


def swept(**changes):
    """Sweeps a small grid with something changed."""
    given = {"epsilon": [0.5, 1], "horizon": 50, "seeds": 2, "progress": False}
    given |= {"problem": PROBLEM, "algorithm": fmab.cdp_mab} | changes
    return fmab.sweep(given.pop("algorithm"), given.pop("problem"), **given)


@functools.cache
def stored():
    """Returns a finished sweep's folder, made as it would be; nothing is compiled for it."""
    from fmab_jax.sweeps import grid, study
    from fmab_jax.sweeps.store import Store

    instance = fmab.Study(fmab.cdp_mab, PROBLEM, epsilon=[0.5, 1.0], horizon=3, seeds=4, times=3)
    store = Store("stored", create=True)
    with store.lock_writer("main"):
        store.write_header(grid.build_header(instance, study.collect_provenance("cpu")))
        for point in instance.points:
            over = point.config.requested_points
            arrays = {name: np.zeros((1, 4), "i4") for name in schema.FIELDS}
            arrays |= {name: np.zeros((1, 4, over)) for name in ("regret", "rounds_by")}
            del arrays["waiting_regret"]
            facts = {"cells": [point.hash], "seeds": [0, 4], "keep": "curves"}
            store.put(point.hash, arrays, {**facts, "made_by": study.collect_provenance("cpu")})
    return os.path.abspath("stored")


ENDS = made.table(epsilon=[0.5, 1.0], participation=[0.5, 1.0])
TABLE = pd.DataFrame({"who": [1, 1, 2, 2], "what": [1, 2, 1, 2], "stars": [1, 2, 2, 1]})
NUMBERS = iter(range(10**9))


def bases():
    """Returns arguments with which every public callable that takes some succeeds, or starts."""
    pair = {"first": CURVES, "second": CURVES, "resamples": 100}
    return {
        "Problem": {"means": [0.5, 0.1], "agents": 3},
        "Exchange": {"name": "x", "agents": 3, "reporting": 3, "weights": np.full(3, 1 / 3)},
        "Output": {"name": "x", "label": "", "units": "", "of": len},
        "Reduce": {"name": "x", "label": "", "units": "", "of": len}
        | dict.fromkeys(("init", "add", "merge", "finish"), len),
        "Gaussian": {"sd": 0.5},
        "Drifting": {"changes": 1},
        "Linear": {"dimension": 1},
        **dict.fromkeys(("Absent", "Late", "Links"), {"probability": 0.5}),
        "Corrupted": {"probability": 0.5},
        "Ratings": {"levels": [0, 1]},
        "parameter": {"kind": Real(), "help": "x"},
        "simulate": {"algorithm": RUN, "problem": PROBLEM, "horizon": 50, "seeds": 2},
        "communication_cost": {"data": DATA, "server_price": 1, "peer_price": 1},
        "check_algorithm": {"algorithm": RUN},
        "save": {"data": DATA, "path": f"{next(NUMBERS)}.nc"},
        "load": {"path": "whole.nc"},
        "use_compilation_cache": {"folder": "cache"},
        "compare": {"first": DATA, "second": DATA},
        "compare_all": {"data": DATA},
        "privacy_ledger": {"algorithm": RUN, "agents": 3},
        "find_leak": {"algorithm": RUN, "agents": 3},
        "at_leak": {"algorithm": "kl_se", "leak": 1, "agents": 3},
        "plan": {"problem": PROBLEM, "horizon": 50, "leak": 3, "candidates": [RUN]},
        "confidence_band": {"values": CURVES, "resamples": 100},
        "paired_difference": pair,
        "sweep": {"algorithm": "cdp", "problem": PROBLEM, "horizon": 50, "seeds": 2, "epsilon": 1},
        "Study": {"algorithm": "cdp", "problem": PROBLEM, "horizon": 50, "seeds": 2, "epsilon": 1},
        "until_precise": {"relative": 0.1},
        "open_sweep": {"path": "store"},
        "table": {"data": DATA},
        "add_leaks": {"data": DATA},
        "overview": {"data": DATA},
        "show": {"frame": FRAME},
        "export": {"data": DATA, "path": f"{next(NUMBERS)}.csv"},
        "plot_runs": {"runs": DATA},
        "save_figure": {"figure": None, "path": f"{next(NUMBERS)}.png"},
        "plot_parameter": {"frame": ENDS, "x": "epsilon"},
        "plot_heat": {"frame": ENDS, "x": "epsilon", "y": "participation"},
        "plot_pareto": {"frame": ENDS},
        "write_report": {"sources": DATA, "out": f"{next(NUMBERS)}.html"},
        "ratings.from_table": {"path": TABLE, "agent": "who", "arm": "what", "value": "stars"},
    }


def named(name):
    """Returns a public callable."""
    return operator.attrgetter(name)(fmab)


def given(owner, **changes):
    """Calls a public callable with its usual arguments, some of them changed."""
    return named(owner)(**bases()[owner] | changes)


# Doors to one argument, all others as usual.
USUAL = {
    "Problem": "agents",
    "Exchange": "agents weights reporting wait vectors numbers views links alone exact",
    "Gaussian": "sd",
    "Drifting": "changes share",
    "Linear": "dimension",
    **dict.fromkeys(("Absent", "Late", "Links"), "probability"),
    "Corrupted": "probability",
    "Ratings": "levels",
    "simulate": (
        "algorithm problem horizon seeds root_seed times spacing batch sum_agents devices progress"
    ),
    "communication_cost": "data server_price peer_price meter",
    "check_algorithm": "algorithm problem horizon seeds reference runs",
    "Output": "coordinate",
    "Reduce": "coordinate",
    "parameter": "keyword",
    "save": "data path overwrite",
    "load": "path",
    "compare": "first second level labels",
    "compare_all": "data level",
    "privacy_ledger": "algorithm agents delta presence",
    "find_leak": "algorithm agents view delta presence",
    "at_leak": "algorithm leak agents view presence",
    "plan": (
        "problem horizon leak view links bits server within confidence candidates "
        "over time max_seeds root_seed store"
    ),
    "confidence_band": "values level kind resamples seed",
    "paired_difference": "first second",
    "until_precise": "relative level max_seeds",
    "open_sweep": "path",
    "add_leaks": "data views",
    "export": "data path overwrite",
    "plot_runs": "runs level kind",
    "plot_parameter": "frame x hue metric",
    "plot_heat": "frame y",
    "plot_pareto": "frame hue",
    "save_figure": "figure path",
    "show": "frame columns words",
    "ratings.from_table": (
        "path agent value split groups groups_seed levels most_arms least_per_agent smoothing fill"
    ),
}
# Of other calls.
BY_NAME = {
    "cdp_mab": [
        (fmab.cdp_mab, "epsilon epsilon_message"),
        (partial(fmab.cdp_mab, 1.0), "rounds schedule_gap participation trim"),
    ],
    "ddp_mab": [(partial(fmab.ddp_mab, 1.0), "private_waiting")],
    "hdp_mab": [(partial(fmab.hdp_mab, 1.0), "weights")],
    "overview": [(partial(fmab.overview, data=WHOLE), "data level server_price")],
    "sweep": [
        (swept, "algorithm problem epsilon participation horizon seeds schedule_gap root_seed"),
        (swept, "times spacing sum_agents keep store chunk batch devices progress"),
        (partial(swept, problem=None, agents=3, arms=3), "agents spread fixed_instance rewards"),
        (partial(swept, problem=None, agents=3, arms=3), "instance_gap"),
        (partial(swept, algorithm="ddp"), "graph"),
        (partial(swept, algorithm="hdp"), "components"),
        (partial(swept, keep="summary"), "until"),
        (partial(swept, store="there"), "worker allow_changes"),
    ],
    "table": [(partial(fmab.table, WHOLE), "level server_price peer_price")],
}
BY_NAME |= {
    owner: [*BY_NAME.get(owner, []), (partial(given, owner), names)]
    for owner, names in USUAL.items()
}


def door(call, name):
    """Returns the door to one argument of a call."""
    return lambda value: call(**{name: value})


DOORS = {
    f"{owner.removeprefix('ratings.')}({name})": door(call, name)
    for owner, calls in BY_NAME.items()
    for call, names in calls
    for name in names.split()
} | {
    "ddp_mab(graph)": lambda v: fmab.ddp_mab(1.0, graph=v).exchange(3),
    "hdp_mab(components)": lambda v: fmab.hdp_mab(1.0, components=v).exchange(3),
    "single_mab(epsilon)": fmab.single_mab,
    "Problem(means)": fmab.Problem,
    "Problem(means, 3)": lambda v: fmab.Problem(v, 3),
    "Problem(means_error)": lambda v: fmab.Problem([0.9, 0.5], 3, means_error=v),
    "Problem.uniform(agents)": lambda v: fmab.Problem.uniform(v, 3),
    "Problem.uniform(arms)": lambda v: fmab.Problem.uniform(3, v),
    "Problem.heterogeneous(spread)": lambda v: fmab.Problem.heterogeneous(3, 4, v),
    "Problem.with_gap(gap)": lambda v: fmab.Problem.with_gap(3, 4, v),
    "Problem.uniform(rewards)": lambda v: fmab.Problem.uniform(3, 4, rewards=v),
    "Problem.uniform(presence)": lambda v: fmab.Problem.uniform(3, 4, presence=v),
    "Problem.ratings(levels)": lambda v: fmab.Problem.ratings(v, [[0.5, 0.5]]),
    "Problem.ratings(probabilities)": lambda v: fmab.Problem.ratings([0, 1], v),
    "Problem.from_file(path)": fmab.Problem.from_file,
    "ObservedRatings.named(arms)": lambda v: given("ratings.from_table").named(v),
    "ObservedRatings.save(path)": lambda v: given("ratings.from_table").save(v),
    "Problem.fixed(seed)": lambda v: fmab.Problem.uniform(1, 2).fixed(v),
    "Problem.fixed(root_seed)": lambda v: fmab.Problem.uniform(1, 2).fixed(0, v),
    "laplace_sum_epsilon(scale)": lambda v: laplace_sum_epsilon(3, v),
    "lost_interval(lost)": lambda v: lost_interval(v, 10),
    "lost_interval(seeds)": lambda v: lost_interval(1, v),
    "sweep(problem, 3 x 3)": lambda v: swept(problem=v, agents=3, arms=3),
    **{
        f"Study({name})": lambda v, name=name: given("Study", **{name: v}).points
        for name in ("algorithm", "problem", "horizon", *FIELDS)
        if name not in ("until", "dims")
    },
    "Study(until)": lambda v: given("Study", until=v, keep="summary").points,
    "Study(dims)": lambda v: given("Study", dims=v),
    "Study.read(path)": fmab.Study.read,
    "Study().save(path)": lambda v: given("Study", problem=None).save(v),
    "Study(means)": lambda v: given("Study", problem=None, means=v, agents=3),
    "open_sweep(partial)": lambda v: fmab.open_sweep(stored(), partial=v),
    "save_figure(overwrite)": lambda v: fmab.save_figure(Figure(), f"{next(NUMBERS)}.png", v),
    "write_report(overwrite)": lambda v: fmab.write_report(
        WHOLE, f"{next(NUMBERS)}.html", overwrite=v
    ),
    "table(data)": fmab.table,
    "plot_runs({'a': run})": lambda v: fmab.plot_runs({"a": v}),
    "write_report(sources)": lambda v: fmab.write_report(v, f"{next(NUMBERS)}.html"),
    "write_report(title)": lambda v: fmab.write_report(WHOLE, f"{next(NUMBERS)}.html", title=v),
    "write_report(level)": lambda v: fmab.write_report(WHOLE, f"{next(NUMBERS)}.html", level=v),
    "write_report(out)": lambda v: fmab.write_report(WHOLE, v),
}
HANGS_S = 20


class Started(BaseException):
    """Raised where a program would be compiled."""


class Executable:
    """Stands in for what compiles."""

    def __call__(self, *_):
        """Stops the run."""
        raise Started

    def cache_info(self):
        """Returns what a sweep asks for."""
        import types

        return types.SimpleNamespace(misses=0)


def outcome(door, value):
    """Returns what became of a value."""
    signal.alarm(HANGS_S)
    try:
        door(value)
    except Refusal as error:
        line = str(error)
        if "\n" in line or not line.isprintable() or len(line) > 700 or ": must be " not in line:
            return f"refused in a bad line: {line[:300]!r}"
        return "refused"
    except Started:
        return "started"
    except BaseException as error:
        return f"raised {type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.alarm(0)
    return "accepted"


def main():
    """Tries every value at every door, in an empty folder, with 3 GB to spare."""
    compilation.compile_program = Executable()
    with contextlib.suppress(ImportError):
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + 3 * 2**30,) * 2)
    signal.signal(signal.SIGALRM, _stop)
    for name in [n for n in DOORS if not sys.argv[1:] or n.startswith(tuple(sys.argv[1:]))]:
        # A door finds no files of another one.
        Path(name).mkdir()
        os.chdir(name)
        actual = {}
        for text, make in VALUES.items():
            print(name, text, file=sys.stderr)
            actual[text] = outcome(DOORS[name], make())
        os.chdir("..")
        print(json.dumps([name, actual]), flush=True)


def _stop(*_):
    # An exception could be taken for the value's.
    faulthandler.dump_traceback()
    os._exit(3)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
