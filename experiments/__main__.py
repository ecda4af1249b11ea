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
from experiments import common, figures, runs, verdicts
from fmab_jax.errors import Refusal, count, refuse

NAMES = tuple(
    """
    fig04_epsilon fig05_participation fig06_rounds fig07_tradeoff fig08_heterogeneous_central
    fig09_graphs fig10_graphs table1_graphs table2_fig11_hybrid fig12_heterogeneous_structures
    fig13_heterogeneity readings theory_runs worlds linear noises conditions consensus
    choices
    race_coverage plan_coverage plans audit claims
    arena arena_settings arena_fronts arena_report pages
    """.split()
)
# Experiments whose figures are in a module of their own.
DRAWN_APART = ("arena", "arena_fronts")
QUICK_HORIZON, QUICK_SEEDS, QUICK_FOLDER = 10**4, 20, "runs/quick"


def find_name(word: str) -> str:
    """Returns the experiment that a full or short name ("fig04", "table2", "fig11") means."""
    names = {short: name for name in NAMES for short in name.split("_") if short[-1].isdigit()}
    names |= {name: name for name in NAMES}
    if word not in names:
        near = difflib.get_close_matches(word, names, n=1, cutoff=0)
        refuse("experiment", word, f"one of {', '.join(NAMES)}", f"did you mean {near[0]}?")
    return names[word]


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
    default = QUICK_SEEDS if options.quick else common.SEEDS
    seeds = default if options.seeds is None else options.seeds
    seeds = count("seeds", seeds, 2, 10**6, "a band needs at least 2 seeds")
    horizons = options.horizon or ([QUICK_HORIZON] if options.quick else common.HORIZONS)
    horizons = sorted(
        {count("horizon", T, 1000, 10**12, "the first epochs take as long") for T in horizons}
    )
    folder = options.figures or Path(QUICK_FOLDER if options.quick else "figures")
    for name in dict.fromkeys(map(find_name, options.names or NAMES)):
        run(name, horizons, seeds, options.runs, folder, options.quick)


def load_experiment(name: str) -> Any:
    """Returns an experiment: an object with `sweep` and `draw`, or with `judge`."""
    return figures.EXPERIMENTS.get(name) or import_module(f"experiments.{name}")


def results_of(
    name: str, horizons: Sequence[int], seeds: int, runs: Path, quick: bool = False
) -> dict[int, Any]:
    """Returns an experiment's results by horizon; simulates the missing ones.

    A quick run has only the parts that the experiment names in QUICK, if it names any.
    """
    experiment = load_experiment(name)
    if not hasattr(experiment, "sweep"):
        return {}
    parts = (experiment.QUICK,) if quick and hasattr(experiment, "QUICK") else ()
    return {
        T: experiment.sweep(T, seeds, runs / f"{name}-T{common.power(T)}", *parts)
        for T in getattr(experiment, "horizons", list)(horizons)
    }


def run(
    name: str,
    horizons: Sequence[int],
    seeds: int,
    folder_of_runs: Path,
    folder: Path,
    quick: bool = False,
) -> None:
    """Runs one experiment and prints the paths of its files."""
    start = time.perf_counter()
    experiment = load_experiment(f"{name}_figures" if name in DRAWN_APART else name)
    used = [name]

    @functools.cache
    def load(other: str) -> dict[int, Any]:
        used.append(other)
        return results_of(other, horizons, seeds, folder_of_runs, quick)

    if name == "claims":
        paths = experiment.judge(verdicts.Data(load, horizons, seeds, folder_of_runs), folder)
    elif name == "pages":
        # The pages show only the numbers of figures/.
        is_published = folder.resolve() == (experiment.ROOT / "figures").resolve()
        paths = experiment.judge(folder) if is_published else []
    elif hasattr(experiment, "judge"):
        paths = experiment.judge(load, folder)
    else:
        paths = experiment.draw(load(name), folder)
    if name != "pages":
        patterns = [*(f"{other}-T*" for other in used), *["claims_*"] * (name == "claims")]
        runs.record(paths, [path for each in patterns for path in folder_of_runs.glob(each)])
        for page in (path for path in paths if path.suffix == ".md"):
            runs.write_line(page)
    seconds = time.perf_counter() - start
    print(f"{name}: {seconds:.1f} s: {' '.join(map(str, paths))}", flush=True)


if __name__ == "__main__":
    # Compiled programs are kept, but not when tests call `main`.
    fmab.use_compilation_cache()
    sys.exit(main())
