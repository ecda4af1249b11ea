"""Runs the paper's experiments: simulates what is missing, then draws figures and tables.

python -m experiments                                    all of them: T = 10^4, 10^5, 10^6
python -m experiments fig04 fig10 --seeds 200 --horizon 1e4
python -m experiments --quick                            all of them, roughly, in minutes
python -m experiments redraw --pdf                       pictures for print, from their numbers
python -m experiments card mine.py                       where an algorithm of your own stands

Simulations are kept in runs/experiments, so that a second run only draws.
"""

from __future__ import annotations

import argparse
import difflib
import functools
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import fmab_jax as fmab
from experiments import common
from fmab_jax.errors import Refusal, count, refuse

NAMES = (
    "fig04_epsilon",
    "fig05_participation",
    "fig06_rounds",
    "fig07_tradeoff",
    "fig08_heterogeneous_central",
    "fig09_graphs",
    "fig10_graphs",
    "table1_graphs",
    "table2_fig11_hybrid",
    "fig12_heterogeneous_structures",
    "fig13_heterogeneity",
    "readings",
    "theory_runs",
    "audit",
    "claims",
    "arena",
    "arena_settings",
    "arena_protocols",
    "arena_fronts",
    "arena_report",
    "ratings",
    "pages",
)
# What is drawn elsewhere than it is simulated.
FIGURES = {name: f"{name}_figures" for name in ("arena", "arena_fronts")}
QUICK_HORIZON, QUICK_SEEDS, QUICK_FOLDER = 10**4, 20, "runs/quick"


def chosen(given: str) -> str:
    """Returns the experiment that a full or short name ("fig04", "table2", "fig11") means."""
    known = {short: name for name in NAMES for short in name.split("_") if short[-1].isdigit()}
    known |= {name: name for name in NAMES}
    if given not in known:
        near = difflib.get_close_matches(given, known, n=1, cutoff=0)
        first = {name: name.partition("_")[0] for name in NAMES}
        listed = ", ".join(s if known.get(s) == name else name for name, s in first.items())
        refuse("experiment", given, f"one of {listed}", f"did you mean {near[0]}?")
    return known[given]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns its exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] in (["card"], ["redraw"]):
            command = "card.card" if words[0] == "card" else "redraw"
            import_module(f"experiments.{command}").main(words[1:])
        else:
            run_experiments(words)
    except Refusal as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


def run_experiments(arguments: Sequence[str]) -> None:
    """Runs the experiments that words name, all by default."""
    parser = argparse.ArgumentParser(
        "python -m experiments", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as fig04; all by default")
    parser.add_argument(
        "--seeds", type=float, help=f"of each configuration, {common.SEEDS} by default"
    )
    parser.add_argument("--horizon", type=float, nargs="+", help="slots, 1e4 1e5 1e6 by default")
    parser.add_argument(
        "--quick",
        action="store_true",
        help=f"{QUICK_SEEDS} seeds, T = {QUICK_HORIZON}, into {QUICK_FOLDER}",
    )
    parser.add_argument("--figures", type=Path, help="folder of the figures, figures by default")
    parser.add_argument(
        "--runs", type=Path, default=Path("runs/experiments"), help="folder of the simulations"
    )
    options = parser.parse_args(arguments)
    names = dict.fromkeys(map(chosen, options.names or NAMES))
    seeds = QUICK_SEEDS if options.quick else common.SEEDS
    seeds = seeds if options.seeds is None else options.seeds
    seeds = count("seeds", seeds, 2, 10**6, "a band needs at least 2 seeds")
    given = options.horizon or ([QUICK_HORIZON] if options.quick else common.HORIZONS)
    horizons = [count("horizon", T, 1000, 10**12, "the first epochs take as long") for T in given]
    folder = options.figures or Path(QUICK_FOLDER if options.quick else "figures")
    began = time.perf_counter()
    for name in names:
        run(name, sorted(set(horizons)), seeds, options.runs, folder, options.quick)
    print(f"{len(names)} experiments in {time.perf_counter() - began:.0f} s")


def results_of(
    name: str, horizons: Sequence[int], seeds: int, runs: Path, quick: bool = False
) -> dict[int, Any]:
    """Returns an experiment's results by horizon; simulates what is missing.

    Quickly, an experiment that names a few of its parts runs these alone.
    """
    experiment = import_module(f"experiments.{name}")
    results = {}
    # Some choose among the horizons.
    chosen = getattr(experiment, "horizons", list)(horizons)
    for horizon in chosen if hasattr(experiment, "sweep") else ():
        store = runs / f"{name}-T{common.power(horizon)}"
        few = (experiment.QUICK,) if quick and hasattr(experiment, "QUICK") else ()
        results[horizon] = experiment.sweep(horizon, seeds, store, *few)
    return results


def run(
    name: str, horizons: Sequence[int], seeds: int, runs: Path, folder: Path, quick: bool = False
) -> None:
    """Runs one experiment and says what it wrote."""
    began = time.perf_counter()
    experiment = import_module(f"experiments.{FIGURES.get(name, name)}")
    load = functools.cache(lambda other: results_of(other, horizons, seeds, runs, quick))
    if name == "claims":  # on what the others have simulated, and some sweeps of its own
        data = experiment.Data(load.__wrapped__, horizons, seeds, runs)
        simulated, written = 0.0, experiment.judge(data, folder)
    elif name == "pages":
        # Only what was drawn into figures/ is told on the pages.
        own = folder.resolve() == (experiment.ROOT / "figures").resolve()
        simulated, written = 0.0, experiment.judge(folder) if own else []
    elif name in ("arena_fronts", "arena_report"):
        simulated, written = 0.0, experiment.judge(load, folder)
    else:
        results = results_of(name, horizons, seeds, runs, quick)
        simulated = time.perf_counter() - began
        written = experiment.draw(results, folder)
    total = time.perf_counter() - began
    paths = " ".join(map(str, written))
    print(f"{name}: {simulated:.1f} s to simulate, {total:.1f} s in all: {paths}", flush=True)


if __name__ == "__main__":
    # Programs that were compiled before are kept; not when tests call `main`.
    fmab.use_compilation_cache()
    sys.exit(main())
