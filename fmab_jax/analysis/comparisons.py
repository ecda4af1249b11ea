"""Compares the regret of configurations, with confidence intervals.

Runs that share their seeds under one root seed are compared seed by seed, which takes the luck of
the drawn instance out. Others are independent, and Welch's test compares their means. A summary has
no single seeds; its bound holds for every dependence of the two runs.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.analysis import questions, summary, words
from fmab_jax.analysis.bands import fieller, student_critical
from fmab_jax.analysis.budgets import summarise_runs
from fmab_jax.analysis.checks import check_result
from fmab_jax.analysis.conditions import find_places
from fmab_jax.analysis.costs import Cost, read_exposure
from fmab_jax.analysis.questions import list_differences, write_label
from fmab_jax.analysis.statements import Comparison
from fmab_jax.errors import real, refuse
from fmab_jax.sampling.shapes import Record


class _Regret(NamedTuple):
    """Regret of one configuration at T."""

    data: xr.Dataset
    question: Record  # see `read_question`
    root_seed: int | None  # None where the results do not say it
    looks: int  # numbers of seeds at which the run could stop; 0 for a fixed number
    seeds: np.ndarray | None  # which; None where single ones are not kept
    values: np.ndarray  # their regret
    number: int  # of seeds
    mean: float
    error: float  # standard error of the mean


def compare(
    first: xr.Dataset,
    second: xr.Dataset,
    *,
    level: float = 0.95,
    labels: tuple[str, str] | None = None,
) -> Comparison:
    """Compares the regret of two runs at the horizon: difference, interval, per cent and p-value.

    Runs with the same root seed are paired over the seeds that both have, two at least (Student's t
    of the differences). Runs with other root seeds, or without common seeds, are independent
    (Welch's t). A missing root seed is unknown: such runs are taken for independent, and ``note``
    says so.
    Of summaries (``keep="summary"``) single seeds are not kept, and one common seed makes no pairs:
    then the largest possible standard error, the sum of both, is used. Interval and p-value are too
    large rather than too small.
    After ``until``, all possible looks are paid for (Bonferroni).

    The interval of the percentage is Fieller's: it holds 0 exactly where that of the difference
    does, and where the p-value is above 1 - level.

    Args:
        first: One configuration, from `simulate`, or selected from a sweep.
        second: Another one, with the same horizon; the base of the percentage.
        level: Confidence level of the intervals, in (0, 1).
        labels: Names of the two; by default what differs in their settings.

    Returns:
        A `Comparison`; ``sentence`` says it in words.

    Raises:
        ValueError: If the two are no such results, have several configurations, other horizons,
            sizes or problems, fewer than 2 seeds, or the level is out of range.

    Source:
        E. C. Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16(2), 1954.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> noisy, quiet = (
        ...     fmab.simulate(fmab.cdp_mab(epsilon), problem, horizon=10**4, seeds=20)
        ...     for epsilon in (0.1, 1)
        ... )
        >>> found = fmab.compare(noisy, quiet)
        >>> found.method, found.seeds, found.first, found.second
        ('paired', (20, 20), 'ε = 0.1', 'ε = 1')
        >>> bool(found.lower <= found.difference <= found.upper)
        True
    """
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    one, two = (
        _read_run("first", _select_single("first", first)),
        _read_run("second", _select_single("second", second)),
    )
    if labels is None:
        labels = _name_runs(one.data, two.data)
    elif not isinstance(labels, tuple) or [type(label) for label in labels] != [str, str]:
        refuse("labels", labels, "two texts", 'write ("with noise", "without")')
    for name in list_differences(one.question, two.question):
        remedy = "the regret of another problem or horizon is another question: compare runs of one"
        refuse(f"second.{name}", two.question[name], f"{one.question[name]}, the first's", remedy)
    return _compare_pair(one, two, labels, level)


def compare_all(
    data: xr.Dataset | Mapping[str, xr.Dataset],
    *,
    level: float = 0.95,
    where: Sequence[str] | str = (),
) -> list[Comparison]:
    """Compares the configurations of a sweep, or runs by their labels, with Holm's adjustment.

    Up to five are compared each with each. Of more, each parameter is varied by itself while the
    others stay at their reference: "none" where it is one of the values, else the largest number,
    else the first value. The reference does not depend on the results. Of more than five runs by
    label each is compared with the first. Only runs of one question are compared: a swept horizon,
    number of agents or arms, spread, gap, reward law or problem is never varied.

    Args:
        data: The results of a sweep, or runs of one configuration by their labels.
        level: Confidence level of each interval, in (0, 1).
        where: Conditions of the configurations or runs to compare, such as "links_max <= 400", in
            the words of pandas' ``query``. p-values do not account for conditions on regret.

    Returns:
        Comparisons; none where there is one configuration of a question only, or where seeds are
        missing. Of runs by label that ask different questions, a warning says so.

    Raises:
        ValueError: As `compare`.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.sweep("cdp", problem, epsilon=[0.02, 1], horizon=10**4, seeds=20)
        >>> (found,) = fmab.compare_all(data)
        >>> found.first, found.second, found.method, bool(found.p_value < 0.05)
        ('ε = 0.02', 'ε = 1', 'paired', True)
    """
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    if isinstance(data, xr.Dataset) and {"regret", "regret_mean"} & set(data):
        return adjust_p_values(_compare_grid(data, level, where))
    if not isinstance(data, Mapping) or isinstance(data, xr.Dataset) or not data:
        allowed = "the results of a sweep, or runs by label"
        refuse("data", type(data).__name__, allowed, "write {'label': data}")
    runs = {label: run for label, run in data.items() if not where or find_places(run, where)}
    return adjust_p_values(_compare_labelled(runs, level))


def adjust_p_values(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Returns comparisons with p-values adjusted for all of them, by Holm's step-down method.

    The chance that any one below 1 - level is wrong is then at most 1 - level, however they depend.

    Source:
        S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 1979.
    """
    number, largest = len(comparisons), 0.0
    adjusted = list(comparisons)
    for rank, place in enumerate(sorted(range(number), key=lambda i: comparisons[i].p_value)):
        largest = max(largest, min(1.0, (number - rank) * comparisons[place].p_value))
        adjusted[place] = replace(comparisons[place], adjusted=largest)
    return adjusted


def _compare_labelled(runs: Mapping[str, xr.Dataset], level: float) -> list[Comparison]:
    by_label: dict[str, _Regret] = {}
    base: dict[str, str] = {}  # by label, the first run with the same question
    for label, data in runs.items():
        field = f"runs[{label!r}]"
        by_label[str(label)] = run = _read_run(field, _select_single(field, data))
        others = (
            x for x in base.values() if not list_differences(by_label[x].question, run.question)
        )
        base[str(label)] = next(others, str(label))
    if len({*base.values()}) > 1:
        line = "Runs of other horizons, sizes or problems are not compared with each other"
        warnings.warn(line, stacklevel=3)
    pairs = [(label, first) for label, first in base.items() if label != first]
    if len(by_label) <= questions.ALL_PAIRS:
        pairs = [pair for pair in combinations(by_label, 2) if base[pair[0]] == base[pair[1]]]
    return [_compare_pair(by_label[a], by_label[b], (a, b), level) for a, b in pairs]


def _compare_grid(data: xr.Dataset, level: float, where: Sequence[str] | str) -> list[Comparison]:
    if "seeds" not in data:
        refuse("data", "without seeds", "a result with seeds", "pass it unchanged")
    data = check_result(data)
    dims = [str(name) for name in data.seeds.dims]
    seeds = data.seeds.transpose(*dims).values

    @functools.cache
    def run(place: tuple[int, ...]) -> _Regret:
        cell = _read_run("data", data.isel(dict(zip(dims, place, strict=True))))
        # All cells of one result share its root seed, even if it is not stated.
        return cell._replace(root_seed=cell.root_seed or 0)

    comparisons = []
    places = find_places(data, where) if where else None
    for first, second in questions.list_contrasts(data, places):
        if min(seeds[first], seeds[second]) < 2:
            continue
        differ = [name for i, name in enumerate(dims) if first[i] != second[i]]
        shared = [name for name in dims if name not in differ and data.sizes[name] > 1]
        labels = write_label(data, first, differ), write_label(data, second, differ)
        pair = _compare_pair(run(first), run(second), labels, level)
        comparisons.append(replace(pair, at=write_label(data, second, shared)))
    return comparisons


def _select_single(field: str, data: object) -> xr.Dataset:
    """Returns results of one configuration, without dimensions of one value."""
    if not isinstance(data, xr.Dataset) or not {"regret", "regret_mean"} & set(data):
        remedy = "pass what simulate or sweep returned"
        refuse(field, type(data).__name__, "a Dataset with regret", remedy)
    data = check_result(data, field)
    if "seeds" not in data or not {"seed", "time_2"} & set(data.sizes):
        refuse(field, "without seeds", "a result with seeds", "pass it unchanged")
    dims = [str(name) for name in data.seeds.dims]
    varied = [name for name in dims if data.sizes[name] > 1]
    if varied:
        first = data[varied[0]].values.tolist()[0]
        sizes = ", ".join(f"{data.sizes[name]} values of {name}" for name in varied)
        remedy = f"select one with .sel({varied[0]}={first!r}), or use compare_all"
        refuse(field, sizes, "one configuration", remedy)
    return data.squeeze(dims)


def _read_run(field: str, data: xr.Dataset) -> _Regret:
    """Reads the regret at T of one configuration."""
    number = int(data.seeds)
    if number < 2:
        refuse(f"{field}.seeds", number, "at least 2", "run more seeds")
    root = int(data.attrs["root_seed"]) if "root_seed" in data.attrs else None
    start = data, questions.read_question(data), root, int(data.attrs.get("looks", 0))
    if "regret" not in data:
        summary.refuse_huge(f"{field}.regret_mean", data.regret_mean.values)
        error = math.sqrt(max(float(data.regret_covariance.values[-1, -1]), 0.0) / number)
        return _Regret(*start, None, np.empty(0), number, float(data.regret_mean.values[-1]), error)
    values = np.asarray(data.regret.isel(seed=slice(number), time=-1).values, np.float64)
    if not np.isfinite(values).all():
        refuse(f"{field}.regret", "not finite", "finite at the horizon", "complete the sweep")
    summary.refuse_huge(f"{field}.regret", values)
    seeds = data["seed"].values if "seed" in data.coords else np.arange(number)
    return _Regret(*start, np.asarray(seeds[:number]), values, number, *_estimate_mean(values))


def _estimate_mean(values: np.ndarray) -> tuple[float, float]:
    """Returns the mean and its standard error: exactly 0 if all values agree."""
    part = summary.compute_moments(values[:, None], full=False)
    return float(part.mean[0]), math.sqrt(float(part.covariance[0]) / len(values))


def _match_seeds(first: _Regret, second: _Regret) -> tuple[_Regret, _Regret, str, str]:
    """Returns two runs with the seeds to compare, the method, and a note on the seeds."""
    unknown = None in (first.root_seed, second.root_seed)
    same_root = first.root_seed == second.root_seed
    looks = first.looks + second.looks
    if first.seeds is None or second.seeds is None or looks:
        # A stop that depends on the results, or unknown pairs: no covariance can be used.
        return first, second, "bound" if unknown or same_root or looks else "Welch", ""
    common, *places = np.intersect1d(first.seeds, second.seeds, return_indices=True)
    if unknown or not same_root or not len(common):
        note = "a root seed is unknown, so the runs are taken for independent" * unknown
        return first, second, "Welch", note
    if len(common) == 1:
        return first, second, "bound", "one seed is common to both"
    pair = []
    for run, at in zip((first, second), places, strict=True):
        data = run.data.isel(seed=at).assign(seeds=len(at)) if len(at) < run.number else run.data
        pair.append(
            _Regret(data, *run[1:5], run.values[at], len(at), *_estimate_mean(run.values[at]))
        )
    return pair[0], pair[1], "paired", ""


def _compare_pair(
    first: _Regret, second: _Regret, labels: tuple[str, str], level: float
) -> Comparison:
    """Compares two runs."""
    from scipy.special import stdtr

    first, second, method, note = _match_seeds(first, second)
    seeds, one, two = (first.number, second.number), first.error, second.error
    difference, error = first.mean - second.mean, one + two
    freedom = float(min(seeds) - 1)
    if method == "paired":
        difference, error = _estimate_mean(first.values - second.values)
    elif method == "Welch" and (error := math.hypot(one, two)):
        # The unit changes nothing, and keeps fourth powers away from 0 and infinity.
        a, b = one / error, two / error
        freedom = (a**2 + b**2) ** 2 / (a**4 / (seeds[0] - 1) + b**4 / (seeds[1] - 1))
    # Both runs' intervals hold at all their looks together.
    times = max(first.looks + second.looks, 1)
    critical = student_critical(freedom, (1 - level) / times)
    if method == "bound":
        low, high = _bound_ratio(first.mean, second.mean, critical * one, critical * two)
    else:
        covariance = 0.0
        if method == "paired":
            covariance = float(np.cov(first.values, second.values)[0, 1]) / seeds[0]
        low, high = fieller(first.mean, second.mean, one**2, two**2, covariance, critical)
    chance = float(2 * stdtr(freedom, -abs(difference) / error) if error else difference == 0)
    p_value = min(1.0, times * chance)
    regret = first.data["regret" if "regret" in first.data else "regret_mean"]
    return Comparison(
        participants=(_read_cost(first, labels[0]), _read_cost(second, labels[1])),
        method=method,
        level=level,
        note=note,
        metric=str(regret.attrs.get("metric", "regret")),
        difference=difference,
        lower=difference - critical * error,
        upper=difference + critical * error,
        percent=100 * difference / second.mean if second.mean else math.nan,
        percent_lower=100 * (low - 1),
        percent_upper=100 * (high - 1),
        p_value=p_value,
        adjusted=p_value,
    )


def _read_cost(run: _Regret, label: str) -> Cost:
    """Returns a run's name, regret, and what it spends, as far as the result says it."""
    data = run.data if run.seeds is None else run.data.isel(seed=slice(run.number))
    has_links = {"priced", "side"} <= {*data.coords} and bool({"links", "links_mean"} & {*data})
    links = summarise_runs(data)["links"] if has_links else math.nan
    return read_exposure(data)._replace(label=label, seeds=run.number, mean=run.mean, links=links)


def _bound_ratio(one: float, two: float, half_one: float, half_two: float) -> tuple[float, float]:
    """Returns what `fieller` does where the error of a difference is the sum of both errors."""
    if two <= half_two:
        return math.nan, math.nan
    least = one - half_one
    low = least / (two + half_two if least > 0 else two - half_two)
    return low, (one + half_one) / (two - half_two)


def _name_runs(first: xr.Dataset, second: xr.Dataset) -> tuple[str, str]:
    """Names two runs by the settings in which they differ."""
    facts = [
        dict.fromkeys(
            [*words.list_facts(data), f"root seed {data.attrs.get('root_seed', 'unknown')}"]
        )
        for data in (first, second)
    ]
    names = [", ".join(fact for fact in a if fact not in b) for a, b in (facts, facts[::-1])]
    return names[0] or "the first run", names[1] or "the second run"
