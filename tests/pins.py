"""Digests of results: what a change of the code must reproduce bit by bit, or name as changed.

``python tests/pins.py`` prints which rows differ from tests/pins.json; ``--write REASON`` writes
the digests anew and adds the reason, with the rows that changed, to the file's history. A hash of
these changes stands for the engine in what a sweep keeps. It is in fmab_jax/engine.txt, beside a
hash of the source that was found to give these bits: where no row differs, this script writes that,
and stores stay usable. Source that it has not seen is another engine.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

if __name__ == "__main__":
    # The package beside this file, not one that is installed elsewhere.
    sys.path.insert(0, str(Path(__file__).parent.parent))

import jax
import networkx as nx
import numpy as np

import fmab_jax as fmab
from experiments.common import DEMAB
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.parameters import Flag, parameters_of
from fmab_jax.parts.outputs import AGENTS_DIFFER
from fmab_jax.sweeps import study

FILE = Path(__file__).with_name("pins.json")
ENGINE = Path(fmab.__file__).with_name("engine.txt")
UNIFORM = fmab.Problem.uniform(agents=11, arms=20)
APART = fmab.Problem.heterogeneous(agents=11, arms=20, spread=0.8)
GAP = fmab.Problem.with_gap(agents=11, arms=20, instance_gap=0.1)
FEW = fmab.Problem.uniform(agents=4, arms=3)
MEANS = np.linspace(0.1, 0.9, 20)
FIXED = fmab.Problem(MEANS, agents=11)
ROWS = fmab.Problem(np.clip(MEANS + np.linspace(-0.1, 0.1, 11)[:, None], 0, 1))
T = 20_000


# Variables that no seed changes.
_STATED = {"seeds", "number_bits", "leak_messages", "leak_messages_delta"}
# Variables that rows did not have when they were pinned.
_LATER = {output.name for output in AGENTS_DIFFER}


def run(algorithm, problem=UNIFORM, horizon=T, **options):
    """Returns what computes one row: a run of a few seeds."""
    options = {"seeds": 12, "times": 20, "batch": 8} | options
    return lambda: seeds_digest(fmab.simulate(algorithm, problem, horizon, **options))


def whole(algorithm, problem, horizon=5000):
    """Returns what computes one row: a run of a few seeds, and all that is kept of it."""
    few = {"seeds": 12, "times": 20, "batch": 8}

    def digest():
        data = fmab.simulate(algorithm, problem, horizon, **few)
        names = sorted({*data.data_vars} - _STATED - _LATER)
        return _digest([data[name].values for name in names])

    return digest


def swept(**options):
    """Returns what computes one row: a summarised sweep."""
    options = {"agents": 11, "arms": 20, "seeds": 40, "times": 20, "keep": "summary"} | options
    algorithm = options.pop("algorithm")
    return lambda: summary_digest(fmab.sweep(algorithm, **options))


ROUNDS = {"rounds": 3, "schedule_gap": 0.1}
ROW = {
    "cdp": run(fmab.cdp_mab(0.5)),
    "cdp, no noise": run(fmab.cdp_mab(None)),
    "cdp, epsilon 0.01": run(fmab.cdp_mab(0.01)),
    "cdp, epsilon per message": run(fmab.cdp_mab(epsilon_message=3.0)),
    "cdp, long": run(fmab.cdp_mab(0.5), horizon=10**9),
    "cdp, one slot": run(fmab.cdp_mab(0.5), horizon=1, times=1),
    "cdp, log grid": run(fmab.cdp_mab(0.5), spacing="log"),
    "cdp, own slots": run(fmab.cdp_mab(0.5), times=[10, 777, 5000]),
    "cdp, root seed": run(fmab.cdp_mab(0.5), root_seed=7),
    "cdp, agent by agent": run(fmab.cdp_mab(0.5), sum_agents=False),
    "cdp, budget": run(fmab.cdp_mab(0.5, rounds=3)),
    "cdp, budget and gap": run(fmab.cdp_mab(0.5, **ROUNDS)),
    "cdp, p = 0.4": run(fmab.cdp_mab(0.5, participation=0.4)),
    "cdp, p = 0.1": run(fmab.cdp_mab(0.5, participation=0.1), horizon=10**5),
    "cdp, p = 0.4, budget": run(fmab.cdp_mab(0.5, participation=0.4, **ROUNDS)),
    "cdp, agents differ": run(fmab.cdp_mab(0.5), APART),
    "cdp, agents differ, p = 0.4": run(fmab.cdp_mab(0.5, participation=0.4), APART),
    "cdp, agents differ, agent by agent": run(fmab.cdp_mab(0.5), APART, sum_agents=False),
    "cdp, prescribed gap": run(fmab.cdp_mab(0.5), GAP),
    "cdp, prescribed gap, agents differ": run(
        fmab.cdp_mab(0.5), fmab.Problem.heterogeneous(11, 20, 0.5, instance_gap=0.1)
    ),
    "cdp, fixed means": run(fmab.cdp_mab(0.5), FIXED),
    "cdp, fixed means by agent": run(fmab.cdp_mab(0.5), ROWS),
    "cdp, one drawn instance": run(fmab.cdp_mab(0.5), UNIFORM.fixed(3)),
    "cdp, 100,000 agents": run(fmab.cdp_mab(0.5), fmab.Problem.uniform(10**5, 20)),
    "cdp, 1 agent": run(fmab.cdp_mab(0.5), fmab.Problem.uniform(1, 20), horizon=10**6),
    "cdp, 400 arms": run(fmab.cdp_mab(0.5), fmab.Problem.uniform(11, 400), horizon=10**6),
    "cdp, 3 arms": run(fmab.cdp_mab(0.5), FEW, times=50),
    "cdp, paper's instance": run(
        fmab.cdp_mab(1.0), fmab.Problem.uniform(50, 100), horizon=10**6, times=100
    ),
    "cdp, tied arms": run(fmab.cdp_mab(0.5), fmab.Problem([0.5, 0.5, 0.2], agents=4)),
    "ddp, complete": run(fmab.ddp_mab(0.5)),
    "ddp, ring": run(fmab.ddp_mab(0.5, "ring")),
    "ddp, star": run(fmab.ddp_mab(0.5, "star")),
    "ddp, random": run(fmab.ddp_mab(0.5, "random")),
    "ddp, networkx graph": run(fmab.ddp_mab(0.5, nx.path_graph(11))),
    "ddp, ring, budget": run(fmab.ddp_mab(0.5, "ring", **ROUNDS)),
    "ddp, ring, agents differ": run(fmab.ddp_mab(0.5, "ring"), APART),
    "ddp, complete, agents differ": run(fmab.ddp_mab(0.5), APART),
    "ddp, ring, no noise": run(fmab.ddp_mab(None, "ring")),
    "hdp, stars": run(fmab.hdp_mab(0.5, "4,4,3:star")),
    "hdp, rings": run(fmab.hdp_mab(0.5, "6:ring+5:path")),
    "hdp, complete, components weigh the same": run(
        fmab.hdp_mab(0.5, "8,3:complete", weights="components")
    ),
    "hdp, rings, components weigh the same": run(
        fmab.hdp_mab(0.5, "8,3:ring", weights="components"), APART
    ),
    "hdp, complete, components weigh the same, agents differ": run(
        fmab.hdp_mab(0.5, "8,3:complete", weights="components"), APART
    ),
    "hdp, stars, agents differ": run(fmab.hdp_mab(0.5, "4,4,3:star"), APART),
    "demab": run(DEMAB(), horizon=10**6),
    "demab, private": run(DEMAB(0.02), horizon=10**6),
    "demab, phases alone": run(DEMAB(0.1), FEW, horizon=10**7),
    "single": run(fmab.single_mab(0.5)),
    "single, agents differ": run(fmab.single_mab(0.5), APART),
    "single, budget": run(fmab.single_mab(0.5, **ROUNDS), horizon=10**5),
    "single, no noise, fixed means": run(fmab.single_mab(None), ROWS),
    "summary, cdp": swept(algorithm="cdp", epsilon=[0.1, 1], horizon=[10**4, T]),
    "summary, cdp, p and R": swept(
        algorithm="cdp", epsilon=0.5, participation=[0.3, 1], rounds=[None, 2], horizon=T
    ),
    "summary, ddp": swept(algorithm="ddp", epsilon=0.5, graph=["ring", "complete"], horizon=T),
    "summary, cdp, agents differ": swept(algorithm="cdp", epsilon=0.5, spread=[0, 0.5], horizon=T),
}


LEVELS = np.linspace(1.0, 3.0, 15).reshape(3, 5)
LEVELS = LEVELS / LEVELS.sum(axis=1, keepdims=True)
RATED = fmab.Problem.ratings([1, 2, 3, 4, 5], LEVELS, 4)
APIECE = np.stack([LEVELS, LEVELS[::-1], LEVELS[:, ::-1], LEVELS])
ROW |= {
    "gaussian": whole(
        fmab.cdp_mab(None), fmab.Problem([0.9, 0.5, 0.1], 4, rewards=fmab.Gaussian(0.3))
    ),
    "ratings": whole(fmab.cdp_mab(0.5), RATED),
    "ratings, p = 0.5": whole(fmab.cdp_mab(0.5, participation=0.5), RATED),
    "ratings, agents differ": whole(
        fmab.cdp_mab(0.5), fmab.Problem.ratings([1, 2, 3, 4, 5], APIECE)
    ),
    "kl_se, p = 0.4": whole(fmab.kl_se(0.5, participation=0.4), UNIFORM, 10**5),
}


def shipped():
    """Returns a row for every algorithm on few agents, and for the other value of each flag."""
    rows = {}
    for kind in (*map(ALGORITHMS.find, (told["name"] for told in fmab.list_algorithms())), DEMAB):
        known = parameters_of(kind)
        usual = {"epsilon": 0.5, "graph": "ring", "components": "4:path"}
        given = {name: value for name, value in usual.items() if name in known}
        flags = {name: item.default for name, item in known.items() if isinstance(item.kind, Flag)}
        rows[f"shipped, {kind.name}"] = whole(kind(**given), FEW)
        for flag, usually in flags.items():
            name = f"shipped, {kind.name}, {flag} = {not usually}"
            rows[name] = whole(kind(**given | {flag: not usually}), FEW)
    return rows


ROW |= shipped()


def seeds_digest(data):
    """Returns a digest of all that a run's seeds produced, whatever the variables are called."""
    none = np.zeros(data.regret.shape, np.int64)
    peers = [data.links.sel(meter=name).values for name in data.meter.values if name != "server"]
    server = data.links.sel(meter="server").values if "server" in data.meter else none
    arrays = [
        data.regret.values,
        data.waiting_regret.values,
        server,
        *(peers or [none, none]),
        *(
            data[name].values
            for name in ("rounds_made", "active_arms", "chosen_arm", "agents_lost")
        ),
    ]
    return _digest(arrays)


def summary_digest(data):
    """Returns a digest of a summarised sweep."""
    names = ("regret_mean", "regret_covariance", "waiting_regret_mean", "regret_quantile")
    names += ("regret_histogram", "best_arm_lost", "undecided", "rounds_histogram")
    return _digest([data[name].values for name in names])


def _digest(arrays):
    whole = hashlib.sha256()
    for array in arrays:
        plain = np.ascontiguousarray(array, "<f8" if array.dtype.kind == "f" else "<i8")
        whole.update(repr(plain.shape).encode() + plain.tobytes())
    return whole.hexdigest()[:32]


def platform():
    """Returns what bits depend on besides the code: the kind of device and JAX's minor version."""
    minor = ".".join(jax.__version__.split(".")[:2])
    return f"{jax.devices()[0].platform}, jax {minor}"


def main():
    """Compares, and with ``--write`` replaces."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", metavar="REASON")
    reason = parser.parse_args().write
    known = json.loads(FILE.read_text()) if FILE.exists() else {"history": [], "digests": {}}
    before = known["digests"].get(platform(), {})
    found = {name: make() for name, make in ROW.items()}
    changed = [name for name in ROW if found[name] != before.get(name)]
    print("\n".join([f"{len(found)} rows, {len(changed)} differ", *changed]))
    if reason is not None:
        altered = {name: found[name] for name in changed if name in before}
        new = [name for name in changed if name not in before]
        known["digests"][platform()] = found
        change = {"reason": reason, "rows": len(found), "changed": altered, "new": new}
        known["history"].append(change)
        FILE.write_text(json.dumps(known, indent=1) + "\n")
    if reason is not None or not changed:
        ENGINE.write_text(f"{engine(known['history'])}\n{study.engine_source()}\n")


def engine(history):
    """Returns what stands for the engine: a hash of all changes of what was pinned before.

    What a new platform or a new algorithm gives changes no bit of any store.
    """
    changes = [[item["reason"], item["changed"]] for item in history if item["changed"]]
    return hashlib.sha256(json.dumps(changes).encode()).hexdigest()[:12]


if __name__ == "__main__":
    main()
