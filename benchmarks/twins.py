"""Every algorithm beside its slow twin: p-values of the comparison, and the speed of both.

    python -m benchmarks.twins            # all, about half an hour; writes docs/twins.md
    python -m benchmarks.twins gossip_ucb # some, by what their names begin with; writes nothing

Twins are those of the tests: plain Python and NumPy from the pseudo-code, slot by slot or pull by
pull, with random numbers of their own.
"""

from __future__ import annotations

import functools
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "twins.md"
RUNS = 300
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "algorithms")]

import reference  # noqa: E402
import test_arena  # noqa: E402
import test_elimination  # noqa: E402
import test_index  # noqa: E402

import fmab_jax as fmab  # noqa: E402
from fmab_jax.algorithms.base import known  # noqa: E402

# Trials of the package's turn: enough to fill its batches, few enough for a second or two.
_TRIALS = 2_000


class Pair(NamedTuple):
    """An algorithm and its twin.

    Attributes:
        algorithm: The package's.
        problem: On what both run.
        horizon: T.
        twin: Runs the twin once, given the number of the run.
        p_values: Compares both in law.
    """

    algorithm: Any
    problem: Any
    horizon: int
    twin: Callable[[int], Any]
    p_values: Callable[[], np.ndarray]


def pairs() -> dict[str, Pair]:
    """Returns all pairs, by the name of the algorithm and of the setting."""
    found = {}
    for name in ("server, private", "server, budget", "flooding", "sinks", "single"):
        means, horizon, epsilon, maker, exchange, rules = test_elimination.SETTINGS[name]
        algorithm = maker(epsilon, **rules)
        found[f"{algorithm.name}: {name}"] = Pair(
            algorithm,
            fmab.Problem(means),
            horizon,
            functools.partial(_reference, means, horizon, epsilon, exchange, rules),
            functools.partial(_of_reference, name),
        )
    for name, (algorithm, horizon, given) in test_arena.ELIMINATION.items():
        found[f"{algorithm.name}: {name}"] = Pair(
            algorithm,
            fmab.Problem(test_arena.ELIMINATION_MEANS, agents=4),
            horizon,
            functools.partial(_private, algorithm.name, horizon, given),
            functools.partial(test_arena.elimination_p_values, name, RUNS),
        )
    for name, (algorithm, twin, talks, means) in test_index.SETTINGS.items():
        found[f"{algorithm.name}: {name}"] = Pair(
            algorithm,
            test_index.problem_of(means),
            test_index.HORIZON,
            functools.partial(_index_twin, twin, talks, means),
            functools.partial(test_index.p_values, name, RUNS),
        )
    for name, (algorithm, twin, means) in test_arena.SETTINGS.items():
        found[f"{algorithm.name}: {name}"] = Pair(
            algorithm,
            test_arena.problem_named(name),
            test_arena.HORIZON,
            functools.partial(_arena_twin, name, twin, means),
            functools.partial(test_arena.p_values, algorithm, name, RUNS),
        )
    return found


def _reference(means: Any, horizon: int, epsilon: Any, exchange: Any, rules: Any, run: int) -> None:
    rng = np.random.default_rng(run)
    if exchange is None:
        reference.single(rng, means, horizon, epsilon, **rules)
    else:
        reference.run(rng, means, horizon, epsilon, exchange=exchange, **rules)


def _of_reference(name: str) -> np.ndarray:
    found = test_elimination.compare_with_reference(name, RUNS, 20 * RUNS)
    return np.array(list(found.values()))


def _private(name: str, horizon: int, given: float, run: int) -> None:
    rng, means = np.random.default_rng(run), test_arena.ELIMINATION_MEANS
    fed1 = name == "fed1_ucb"
    twin: Any = test_arena.fed1_ucb if fed1 else test_arena.private_elimination
    twin(rng, name, means, 4, horizon, given)


def _index_twin(twin: Any, talks: bool, means: Any, run: int) -> None:
    graph = test_index.twins.ring(test_index.AGENTS)
    reward, neighbour = test_index.twins.own_chance(means, graph, run)
    more = (neighbour,) if talks else ()
    twin(means, test_index.AGENTS, test_index.HORIZON, reward, *more)


def _arena_twin(name: str, twin: Any, means: Any, run: int) -> None:
    chance = test_arena.twins.Chance(means, run, test_arena.SMOOTH.get(name, 0.0))
    twin(chance, test_arena.AGENTS, len(means[0]), test_arena.HORIZON)


def measured(name: str, pair: Pair) -> str:
    """Returns the row of a pair."""
    p = np.asarray(pair.p_values())
    arguments = (pair.algorithm, pair.problem, pair.horizon, _TRIALS)
    fmab.simulate(*arguments, times=1)
    began = time.perf_counter()
    fmab.simulate(*arguments, times=1)
    ours = _TRIALS / (time.perf_counter() - began)
    began, runs = time.perf_counter(), 0
    while runs < 2 or time.perf_counter() - began < 1.0:
        pair.twin(runs)
        runs += 1
    theirs = runs / (time.perf_counter() - began)
    algorithm, _, setting = name.partition(": ")
    return (
        f"| `{algorithm}` | {setting} | {pair.problem.agents} | {pair.problem.arms} | "
        f"{pair.horizon:,} | {p.min():.2g} of {p.size} | {ours:,.0f} | {theirs:,.3g} |"
    )


def main(wanted: list[str]) -> None:
    """Measures, prints, and writes the page where all were asked for."""
    lines = []
    for name, pair in pairs().items():
        if not wanted or name.startswith(tuple(wanted)):
            lines.append(measured(name, pair))
            print(lines[-1], flush=True)
    covered = {name.partition(":")[0] for name in pairs()}
    if wanted:
        return
    head = [
        "# Algorithms and their slow twins",
        "",
        "Every algorithm is compared in law with a twin in plain Python or NumPy that follows the "
        f"pseudo-code slot by slot, or pull by pull, in {RUNS} runs with random numbers of its own "
        "(tests/). A p-value is that of one statistic; the smallest of each setting is shown, of "
        "so many. The tests ask for more than 1e-6. Trials a second: the package in batches of "
        f"{_TRIALS:,} on all cores, the twin in one process, on the same small instance. Made by "
        f"`python -m benchmarks.twins`; {platform.processor() or platform.machine()}, Python "
        f"{platform.python_version()}.",
        "",
        "| algorithm | setting | M | K | T | smallest p | trials/s | of the twin |",
        "|---|---|---|---|---|---|---|---|",
    ]
    rest = sorted(set(known()) - covered)
    tail = ["", f"Without a twin of its own here: {', '.join(f'`{each}`' for each in rest)}."]
    PAGE.write_text("\n".join([*head, *lines, *(tail if rest else []), ""]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
