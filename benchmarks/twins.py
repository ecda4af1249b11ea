"""Every algorithm beside its slow twin: p-values, the difference that would be seen, and speed.

    python -m benchmarks.twins             # all, about three quarters of an hour
    python -m benchmarks.twins gossip_ucb  # some, by what their names begin with
    python -m benchmarks.twins --further 100000 "uniform_play: uniform play"  # seeds never used

Each writes benchmarks/twins.json, and docs/twins.md from it. Twins are those of the tests: plain
Python and NumPy from the pseudo-code, slot by slot or pull by pull, with random numbers of their
own.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize
import scipy.stats

import fmab_jax as fmab
from experiments import runs
from fmab_jax.algorithms.base import ALGORITHMS
from fmab_jax.errors import refuse
from fmab_jax.files import whole_file

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "twins.md"
RESULTS = ROOT / "benchmarks" / "twins.json"
ALPHA = 1e-6
POWER = 0.999
# Trials of the package's turn: enough to fill its batches, few enough for a second or two.
_TRIALS = 2_000
_CES_HORIZON = 2_000
# A share of the regret that is none.
_NO_SHARE = 1e-6


class Sizes(NamedTuple):
    """How a test compares an algorithm with its twin.

    Attributes:
        twin: Runs of the twin.
        package: Seeds of the package.
        level: Below which p-value a single statistic fails the test.
        means: Whether means of regret are compared, besides distribution functions.
    """

    twin: int
    package: int
    level: float
    means: bool


class Pair(NamedTuple):
    """An algorithm and its twin.

    Attributes:
        algorithm: The package's.
        problem: On what both run.
        horizon: T.
        twin: Runs the twin once, given the number of the run.
        p_values: Compares both in law.
        sizes: How many runs that takes.
    """

    algorithm: Any
    problem: Any
    horizon: int
    twin: Callable[[int], Any]
    p_values: Callable[[], np.ndarray]
    sizes: Sizes


@functools.cache
def _tests() -> SimpleNamespace:
    """Returns the modules of the tests that hold the twins."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "algorithms")]
    import reference
    import test_ces
    import test_elimination
    import test_twins

    return SimpleNamespace(
        reference=reference, elimination=test_elimination, twins=test_twins, ces=test_ces
    )


def pairs() -> dict[str, Pair]:
    """Returns all pairs, by the name of the algorithm and of the setting; sizes are the tests'."""
    tests, found = _tests(), {}
    # The smaller of two p-values is doubled there.
    sizes = Sizes(1_500, 20_000, ALPHA / 2, True)
    for name in ("server, private", "server, budget", "flooding", "sinks", "single"):
        means, horizon, epsilon, maker, exchange, rules = tests.elimination.SETTINGS[name]
        algorithm = maker(epsilon, **rules)
        found[f"{algorithm.name}: {name}"] = Pair(
            algorithm,
            fmab.Problem(means),
            horizon,
            functools.partial(_reference, means, horizon, epsilon, exchange, rules),
            functools.partial(_of_reference, name, sizes),
            sizes,
        )
    for name, pair in tests.twins.pairs().items():
        found[name] = Pair(
            *(pair.algorithm, pair.problem, pair.horizon, pair.twin),
            functools.partial(tests.twins.p_values, pair),
            Sizes(pair.runs, pair.seeds, ALPHA, pair.means),
        )
    for name in ("ring", "ring, unequal", "star", "complete", "path", "tree, given weights"):
        setting = tests.ces.LAWS[name]
        found[f"ces: {name}"] = Pair(
            *(setting.algorithm, setting.problem, _CES_HORIZON),
            functools.partial(_play_ces, setting),
            functools.partial(_of_ces, setting),
            Sizes(1_000, 2_000, ALPHA, True),
        )
    return found


def _play_ces(setting: Any, run: int) -> None:
    rng = np.random.default_rng(run)
    known = setting.graph, lambda _, agent, arm: float(rng.random() < setting.means[agent, arm])
    places = *known, setting.means.shape[1], _CES_HORIZON
    _tests().ces.twin.play(*places, setting.weights, setting.width)


def _of_ces(setting: Any) -> np.ndarray:
    z, p = _tests().ces.compare(setting, _CES_HORIZON, 2_000, 1_000)
    return np.concatenate([2.0 * scipy.stats.norm.sf(abs(z)), p])


def _reference(means: Any, horizon: int, epsilon: Any, exchange: Any, rules: Any, run: int) -> None:
    rng, reference = np.random.default_rng(run), _tests().reference
    if exchange is None:
        reference.single(rng, means, horizon, epsilon, **rules)
    else:
        reference.run(rng, means, horizon, epsilon, exchange=exchange, **rules)


def _of_reference(name: str, sizes: Sizes) -> np.ndarray:
    found = _tests().elimination.compare_with_reference(name, sizes.twin, sizes.package)
    return np.array(list(found.values()))


def least_distance(sizes: Sizes) -> float:
    """Returns the least distance of two distribution functions that is seen with `POWER`.

    That of Kolmogorov and Smirnov, which is at most the total variation. Their test fails above
    sqrt(log(2 / level) / 2 (1 / n + 1 / m)); where the functions are furthest apart, what is
    counted there scatters by at most half of sqrt(1 / n + 1 / m).
    """
    fails = math.sqrt(math.log(2 / sizes.level) / 2)
    chance = scipy.stats.norm.ppf(POWER) / 2
    return float((fails + chance) * math.sqrt(1 / sizes.twin + 1 / sizes.package))


def least_difference(regret: np.ndarray, sizes: Sizes) -> float | None:
    """Returns the least relative difference of mean regret that is seen with `POWER`.

    Where means are compared it is that of a normal test of two means. Elsewhere all regret is
    larger by this share, and the distribution functions are then `least_distance` apart. None where
    so many seeds have one regret that every share puts them so far apart: that is no power.

    Args:
        regret: [seed] of the package, at T.
        sizes: Of the comparison.
    """
    if sizes.means:
        normal = scipy.stats.norm
        reach = normal.isf(sizes.level / 2) + normal.ppf(POWER)
        error = regret.std(ddof=1) * math.sqrt(1 / sizes.twin + 1 / sizes.package)
        return float(reach * error / regret.mean())
    values, wanted = np.sort(regret), least_distance(sizes)

    def short(share: float) -> float:
        at = np.concatenate([values, values * (1 + share)])
        less = np.searchsorted(values * (1 + share), at, "right")
        return wanted - float(np.max(np.searchsorted(values, at, "right") - less)) / len(values)

    if short(_NO_SHARE) <= 0.0:
        return None
    return float(scipy.optimize.bisect(short, 0.0, 10.0, xtol=_NO_SHARE))


def measured(name: str, pair: Pair) -> dict[str, Any]:
    """Returns what is found of a pair."""
    p = np.asarray(pair.p_values())
    arguments = (pair.algorithm, pair.problem, pair.horizon, _TRIALS)
    fmab.simulate(*arguments, times=1)
    began = time.perf_counter()
    data = fmab.simulate(*arguments, times=1)
    ours = _TRIALS / (time.perf_counter() - began)
    began, runs = time.perf_counter(), 0
    while runs < 2 or time.perf_counter() - began < 1.0:
        pair.twin(runs)
        runs += 1
    theirs = runs / (time.perf_counter() - began)
    return {
        "agents": pair.problem.agents,
        "arms": pair.problem.arms,
        "horizon": pair.horizon,
        "p": float(p.min()),
        "of": int(p.size),
        **pair.sizes._asdict(),
        "difference": least_difference(data.regret.values[:, -1], pair.sizes),
        "distance": least_distance(pair.sizes),
        "package_rate": ours,
        "twin_rate": theirs,
    }


def further(name: str, runs: int, seconds: float = 600.0) -> dict[str, Any]:
    """Compares an algorithm with its twin on seeds that no test uses, as many as time allows.

    Args:
        name: Of one of the pairs of tests/algorithms/test_twins.py.
        runs: Seeds of each, at most.
        seconds: Of processor time that the twin may take.
    """
    twins = _tests().twins
    every, pair = twins.pairs(), pairs()[name]
    if name not in every:
        refuse("name", name, "a pair of test_twins.py", "such as 'uniform_play: uniform play'")
    began = time.process_time()
    for run in range(50):
        pair.twin(run)
    runs = min(runs, int(50 * seconds / (time.process_time() - began)))
    p = twins.p_values(every[name], runs, runs, first=pair.sizes.twin)
    return {"runs": runs, "p": p.tolist()}


def page(results: dict[str, Any]) -> str:
    """Writes the page.

    Args:
        results: As in benchmarks/twins.json.
    """
    rows, machine = results["rows"], results["machine"]
    least = min(rows, key=lambda name: rows[name]["p"])
    count = sum(row["of"] for row in rows.values())
    lines = [
        "# Algorithms and their slow twins",
        "",
        "Every algorithm but those named below is compared in law with a twin. A twin is plain "
        "Python or NumPy that follows the pseudo-code slot by slot, or pull by pull, with random "
        "numbers of its own "
        "(`tests/`). Both run as often as in the tests. A p-value is that of one statistic; of "
        f"each setting the smallest is shown, of so many. The tests ask for more than {ALPHA:g}.",
        "",
        "The power of each comparison is computed, at a chance of 99.9 % to fail the test. *Mean* "
        "is the smallest difference of mean regret at T that is seen, in per cent of the mean. "
        "*Law* is the smallest distance that is seen between the two distribution functions of a "
        "number (Kolmogorov's distance, which is at most the total variation), in per cent. Where "
        "a test compares no means (`dp_se`, `dist_dp_se`, `fed1_ucb`, `demab`), *mean* is the "
        "share by which all regret would have to be larger to be as far apart in law. –: so many "
        "seeds have one regret, to the last digit, that every share is seen, which says nothing.",
        "",
        "Smaller differences are seen draw by draw: other tests give nearly every twin the very "
        "random numbers of the package, and ask for the same decisions and the same regret.",
        "",
    ]
    for name, found in results.get("further", {}).items():
        first, p = rows[name]["p"], min(found["p"])
        which = "The smallest p-value" if name == least else "The p-value"
        lines += [
            f"{which}, {first:.2g} of {_quoted(name)}, was checked with {found['runs']:,} further "
            "seeds of the package and of the twin, none of which a test uses. The smallest of "
            f"their {len(found['p'])} p-values is {p:.2g}. So the first one was chance: of all "
            f"{count} p-values behind this page, the smallest is so small with a chance of at most "
            f"{100 * count * first:.2g} % where all laws are equal."
            if p > 0.001
            else f"{which}, {first:.2g} of {_quoted(name)}, was checked with {found['runs']:,} "
            f"further seeds, and was found again: {p:.2g}.",
            "",
        ]
    lines += [
        f"Trials a second: the package in batches of {_TRIALS:,} on all cores, the twin in one "
        f"process, on the same small instance{'; other work went on beside them' * results['busy']}"
        f". Made by `python -m benchmarks.twins`; {machine}. "
        f"{runs.write_runs({'': (results['version'], results['date'])})}",
        "",
        "| algorithm | setting | M | K | T | runs of the twin | seeds | smallest p | mean, % | "
        "law, % | trials/s | of the twin |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        algorithm, _, setting = name.partition(": ")
        cells = (
            f"`{algorithm}`",
            setting,
            *(f"{row[each]:,}" for each in ("agents", "arms", "horizon", "twin", "package")),
            f"{row['p']:.2g} of {row['of']}",
            *(_per_cent(row[each]) for each in ("difference", "distance")),
            f"{row['package_rate']:,.0f}",
            f"{row['twin_rate']:,.3g}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    covered = {name.partition(":")[0] for name in rows}
    if rest := sorted(set(ALGORITHMS.by_name()) - covered):
        lines += ["", f"Without a twin of its own here: {', '.join(f'`{x}`' for x in rest)}."]
    return "\n".join([*lines, ""])


def _per_cent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.2g}"


def _quoted(name: str) -> str:
    algorithm, _, setting = name.partition(": ")
    return f"`{algorithm}` ({setting})"


def main(given: Sequence[str] | None = None) -> None:
    """Measures, and writes the results and the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("names", nargs="*", help="what names begin with; all by default")
    parser.add_argument("--further", type=int, help="compare on so many seeds that no test uses")
    asked = parser.parse_args(given)
    every = pairs()
    wanted = [each for each in every if not asked.names or each.startswith(tuple(asked.names))]
    if not wanted:
        parser.error(f"names={asked.names}: must be beginnings of {', '.join(every)}")
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"rows": {}}
    if len(wanted) == len(every) or not results["rows"]:
        results["machine"] = (
            f"{platform.processor() or platform.machine()}, Python {platform.python_version()}"
        )
    results["version"], results["date"] = fmab.__version__, time.strftime("%Y-%m-%d")
    busy = os.getloadavg()[0] > 0.5
    results["busy"] = bool(results.get("busy", False) and asked.names) or busy
    for name in wanted:
        if asked.further:
            results.setdefault("further", {})[name] = found = further(name, asked.further)
        else:
            results["rows"][name] = found = measured(name, every[name])
        print(name, found, flush=True)
        # In the order of the pairs, whatever was measured first.
        results["rows"] = {n: results["rows"][n] for n in every if n in results["rows"]}
        with whole_file(RESULTS) as path:
            path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    with whole_file(PAGE) as path:
        path.write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
