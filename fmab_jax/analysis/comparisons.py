"""How much more regret one configuration costs than another, and how sure that is.

Runs that share their seeds under one root seed are compared seed by seed, which takes the luck of
the drawn instance out. Others are independent, and Welch's test compares their means. Of a summary
single seeds are not kept: then the bound is used that holds however the two go together.
"""

from __future__ import annotations

import functools
import hashlib
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.analysis import summary, words
from fmab_jax.analysis.bands import fieller, student_quantile, unit_of
from fmab_jax.analysis.costs import cost_of
from fmab_jax.analysis.statements import Comparison, Participant, Question
from fmab_jax.analysis.tables import held
from fmab_jax.errors import Refusal, real, refuse
from fmab_jax.run.attributes import study_at

ALL_PAIRS = 5
"""So many configurations are compared each with each; of more, one parameter at a time."""

QUESTIONS = (
    *("horizon", "agents", "arms", "problem", "spread", "instance_gap"),
    *("fixed_instance", "rewards"),
)
"""Parameters whose values are different questions, not better or worse answers."""

UNLIKE = "Runs of other horizons, sizes or problems are not compared with each other"
"""What is said where runs answer different questions."""


class _Run(NamedTuple):
    """What is known of one configuration's regret at T.

    Attributes:
        data: All of it.
        asked: What it was asked; see `question_of`.
        root_seed: Of all its randomness; None where the results do not say it.
        looks: At how many numbers of seeds it might have stopped; 0 for a fixed number.
        seeds: Which seeds; None where single ones are not kept.
        values: Their regret.
        number: How many seeds.
        mean: Of the regret.
        error: Standard error of the mean.
    """

    data: xr.Dataset
    asked: dict[str, Any]
    root_seed: int | None
    looks: int
    seeds: np.ndarray | None
    values: np.ndarray
    number: int
    mean: float
    error: float


def compare(
    first: xr.Dataset,
    second: xr.Dataset,
    *,
    level: float = 0.95,
    labels: tuple[str, str] | None = None,
) -> Comparison:
    """Compares the regret of two runs at the horizon: difference, interval, per cent and p-value.

    Runs with the same root seed are paired over the seeds that both have, two at least (Student's t
    of the differences), where their means are the same, agent by agent. Runs with other root seeds,
    or without common seeds, are independent (Welch's t). One common seed is left out of the longer
    run. A missing root seed is unknown: such runs are taken for independent, and ``note`` says so.
    Of summaries (``keep="summary"``) single seeds are not kept, and of the same agents in another
    order common seeds make no pairs; the standard error of the difference is then at most the sum
    of both, which is used: interval and p-value are too large rather than too small.
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
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
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
    both = [_single("first", first), _single("second", second)]
    if labels is None:
        labels = _named(*both)
    elif not isinstance(labels, tuple) or [type(label) for label in labels] != [str, str]:
        refuse("labels", labels, "two texts", 'write ("with noise", "without")')
    one, two = _read("first", both[0]), _read("second", both[1])
    horizon, time = one.asked["horizon"], two.asked["horizon"]
    if horizon != time:
        remedy = "regret grows with time: compare runs of one horizon"
        refuse("second.time", time, f"{horizon}, the first's last slot", remedy)
    for name in _unlike(one, two):
        remedy = "the regret of another problem is another question: compare runs of one"
        refuse(f"second.{name}", two.asked[name], f"{one.asked[name]}, the first's", remedy)
    return _compared(one, two, labels, level)


def compare_all(
    data: xr.Dataset | Mapping[str, xr.Dataset], *, level: float = 0.95
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

    Returns:
        Comparisons; none where there is one configuration of a question only, or where seeds are
        missing. Of runs by label that ask different questions, a warning says so.

    Raises:
        ValueError: As `compare`.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem.uniform(agents=5, arms=10)
        >>> data = fmab.sweep("cdp", problem, epsilon=[0.02, 1], horizon=10**4, seeds=20)
        >>> (found,) = fmab.compare_all(data)
        >>> found.first, found.second, found.method, bool(found.p_value < 0.05)
        ('ε = 0.02', 'ε = 1', 'paired', True)
    """
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    if isinstance(data, xr.Dataset) and {"regret", "regret_mean"} & set(data):
        return holm(_of_grid(data, level))
    if isinstance(data, xr.Dataset) or not isinstance(data, Mapping) or not data:
        allowed = "the results of a sweep, or runs by label"
        refuse("data", type(data).__name__, allowed, "write {'label': data}")
    runs: dict[str, Any] = {str(label): run for label, run in data.items()}
    found, unlike = of_runs(runs, level)
    if unlike:
        warnings.warn(UNLIKE, stacklevel=2)
    return found


def holm(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Returns comparisons with p-values adjusted for all of them, by Holm's step-down method.

    The chance that any one below 1 - level is wrong is then at most 1 - level, however they depend.

    Source:
        S. Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Stat. 6, 1979.
    """
    many, reached = len(comparisons), 0.0
    adjusted = list(comparisons)
    for rank, place in enumerate(sorted(range(many), key=lambda i: comparisons[i].p_value)):
        reached = max(reached, min(1.0, (many - rank) * comparisons[place].p_value))
        simultaneous = "Holm" * (many > 1)
        adjusted[place] = replace(
            comparisons[place], adjusted=reached, together=many, simultaneous=simultaneous
        )
    return adjusted


def reference(coordinate: xr.DataArray) -> int:
    """Returns the place of the value that others are compared with: none, the largest, the first.

    Args:
        coordinate: Of a swept parameter.
    """
    values = coordinate.values.tolist()
    unlimited = [i for i, value in enumerate(values) if value in ("none", math.inf)]
    if unlimited:
        return unlimited[0]
    if all(words.is_number(value) for value in values):
        return int(np.argmax(values))
    return 0


def question_of(data: xr.Dataset) -> dict[str, Any]:
    """Returns what a run was asked, as its study states it: values by names of `QUESTIONS`.

    A ``problem`` is "drawn" by each seed, or known by a digest of its means or probabilities.
    ``means`` is a digest of the means that come along.

    Args:
        data: A result of one configuration.
    """
    study = study_at(data)
    problem = study.pop("problem", None)
    if isinstance(problem, dict):
        study |= problem
        study["problem"] = problem.get("means", problem.get("probabilities", "drawn"))
    for name in ("agents", "arms"):  # a maker of one's own may choose them
        size = data.coords.get(name, xr.DataArray(data.attrs.get(name))).item()
        if words.is_number(size):  # else a label, whose value the study states
            study[name] = int(size)
    if problem == "Drawn":
        sizes = [study.get(name) for name in ("agents", "arms", "spread", "instance_gap")]
        seed = study.get("fixed_instance")
        study["problem"] = "drawn" if seed is None else _drawn(*sizes, seed, study["root_seed"])
    found = {name: study[name] for name in QUESTIONS if name in study}
    if "means" in data:
        found["means"] = _digest(data.means.values)
    slots = data["slot"] if "slot" in data.coords else data["time"]
    found["horizon"] = int(slots.values.reshape(-1)[-1])
    return found


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tells whether two runs were asked the same, as far as both say so; see `question_of`."""
    return all(one[name] == other[name] for name in one if name in other)


@functools.lru_cache
def _drawn(agents: Any, arms: Any, spread: Any, gap: Any, seed: int, root_seed: int) -> str:
    """Returns the digest of the means that one seed draws for all, or the seed if it cannot."""
    from fmab_jax.core.problems import Problem

    try:  # means do not depend on the reward law
        drawn = Problem.heterogeneous(agents, arms, spread or 0.0, gap)
        return _digest(drawn.fixed(seed, root_seed).means)
    except Refusal:
        return f"the instance of seed {seed} under root seed {root_seed}"


def _digest(means: Any) -> str:
    """Returns what a study keeps of fixed means, or of probabilities: one row for equal ones."""
    rows = np.atleast_2d(np.asarray(means, "<f8"))
    rows = rows[:1] if (rows == rows[:1]).all() else rows
    return hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()


def _unlike(one: _Run, other: _Run) -> list[str]:
    """Returns in what two questions differ, as far as both are stated, but for agents' order."""
    order = ("problem", "means") if _turned(one.data, other.data) else ()
    mine, theirs = one.asked, other.asked
    both = [name for name in mine if name in theirs and name not in order]
    return [name for name in both if mine[name] != theirs[name]]


def _turned(first: xr.Dataset, second: xr.Dataset) -> bool:
    """Tells whether two runs have the same agents in another order."""
    if "means" not in first or "means" not in second:
        return False
    one, other = (np.atleast_2d(data.means.values) for data in (first, second))
    if one.shape != other.shape or np.array_equal(one, other):
        return False
    one, other = (rows[np.lexsort(rows.T)] for rows in (one, other))
    return np.array_equal(one, other)


def of_runs(runs: Mapping[str, xr.Dataset], level: float) -> tuple[list[Comparison], bool]:
    """Compares runs by label; see `compare_all`. Tells too whether some are of other questions.

    Args:
        runs: Results of one configuration each.
        level: Confidence level of each interval, in (0, 1).
    """
    known = {}
    for label, data in runs.items():
        field = f"runs[{label!r}]"
        known[label] = _read(field, _single(field, data))
    questions: list[list[str]] = []  # the labels of each
    for label, run in known.items():
        group = next((group for group in questions if not _unlike(known[group[0]], run)), None)
        if group is None:
            questions.append([label])
        else:
            group.append(label)
    pairs = [(label, group[0]) for group in questions for label in group[1:]]
    if len(known) <= ALL_PAIRS:
        pairs = [pair for group in questions for pair in combinations(group, 2)]
    places = {label: place for place, label in enumerate(known)}
    pairs.sort(key=lambda pair: (places[pair[0]], places[pair[1]]))
    made = [_compared(known[one], known[other], (one, other), level) for one, other in pairs]
    return holm(made), len(questions) > 1


def _of_grid(data: xr.Dataset, level: float) -> list[Comparison]:
    if "seeds" not in data:
        refuse("data", "without seeds", "a result with seeds", "pass it unchanged")
    data = held(data)
    dims = [str(name) for name in data.seeds.dims]
    seeds = data.seeds.transpose(*dims).values

    @functools.cache
    def run(place: tuple[int, ...]) -> _Run:
        cell = _read("data", data.isel(dict(zip(dims, place, strict=True))))
        # All cells of one result share its root seed, even if it is not stated.
        return cell._replace(root_seed=cell.root_seed or 0)

    made = []
    for one, other in contrasts(data):
        if min(seeds[one], seeds[other]) < 2:
            continue
        if run(one).asked["horizon"] != run(other).asked["horizon"]:
            continue
        differ = [name for i, name in enumerate(dims) if one[i] != other[i]]
        shared = [name for name in dims if name not in differ and data.sizes[name] > 1]
        labels = label_of(data, one, differ), label_of(data, other, differ)
        pair = _compared(run(one), run(other), labels, level)
        made.append(replace(pair, at=label_of(data, other, shared), varied=", ".join(differ)))
    return made


def contrasts(data: xr.Dataset) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Returns the places of the configurations that are compared, in pairs.

    Args:
        data: Results with ``seeds`` over the swept parameters.
    """
    dims = [str(name) for name in data.seeds.dims]
    base = tuple(reference(data[name]) for name in dims)
    still = [i for i, name in enumerate(dims) if name in QUESTIONS]
    if data.seeds.size <= ALL_PAIRS:
        places = list(np.ndindex(*(data.sizes[name] for name in dims)))
        pairs = combinations(places, 2)
        return [(a, b) for a, b in pairs if all(a[i] == b[i] for i in still)]
    return [
        ((*base[:i], value, *base[i + 1 :]), base)
        for i, name in enumerate(dims)
        if i not in still
        for value in range(data.sizes[name])
        if value != base[i]
    ]


def label_of(data: xr.Dataset, place: Sequence[int], names: Iterable[str] | None = None) -> str:
    """Writes the swept values of a configuration, such as "ε = 0.1, p = 0.4".

    Args:
        data: Results with ``seeds`` over the swept parameters.
        place: Of the configuration.
        names: Parameters to tell; all that have several values by default.
    """
    dims = [str(name) for name in data.seeds.dims]
    names = [name for name in dims if data.sizes[name] > 1] if names is None else names
    at = dict(zip(dims, place, strict=True))
    return ", ".join(words.told(data[n], data[n].values.tolist()[at[n]]) for n in names)


def _single(field: str, data: Any) -> xr.Dataset:
    """Returns results of one configuration, without dimensions of one value."""
    if not isinstance(data, xr.Dataset) or not {"regret", "regret_mean"} & set(data):
        remedy = "pass what simulate or sweep returned"
        refuse(field, type(data).__name__, "a Dataset with regret", remedy)
    data = held(data, field)
    if "seeds" not in data or not {"seed", "time_2"} & set(data.sizes):
        refuse(field, "without seeds", "a result with seeds", "pass it unchanged")
    dims = [str(name) for name in data.seeds.dims]
    many = [name for name in dims if data.sizes[name] > 1]
    if many:
        first = data[many[0]].values.tolist()[0]
        told = ", ".join(f"{data.sizes[name]} values of {name}" for name in many)
        remedy = f"select one with .sel({many[0]}={first!r}), or use compare_all"
        refuse(field, told, "one configuration", remedy)
    return data.squeeze(dims)


def _read(field: str, data: xr.Dataset) -> _Run:
    """Reads the regret at T of one configuration."""
    number = int(data.seeds)
    if number < 2:
        refuse(f"{field}.seeds", number, "at least 2", "run more seeds")
    root = int(data.attrs["root_seed"]) if "root_seed" in data.attrs else None
    start = data, question_of(data), root, int(data.attrs.get("looks", 0))
    if "regret" not in data:
        summary.refuse_huge(f"{field}.regret_mean", data.regret_mean.values)
        mean = float(data.regret_mean.values[-1])
        error = math.sqrt(max(float(data.regret_covariance.values[-1, -1]), 0.0) / number)
        return _Run(*start, None, np.empty(0), number, mean, error)
    values = np.asarray(data.regret.isel(seed=slice(number), time=-1).values, np.float64)
    if not np.isfinite(values).all():
        refuse(f"{field}.regret", "not finite", "finite at the horizon", "complete the sweep")
    summary.refuse_huge(f"{field}.regret", values)
    seeds = data["seed"].values if "seed" in data.coords else np.arange(number)
    return _Run(*start, np.asarray(seeds[:number], np.int64), values, number, *_mean(values))


def _mean(values: np.ndarray) -> tuple[float, float]:
    """Returns the mean and its standard error: exactly 0 if all values agree."""
    part = summary.moments(values[:, None], full=False)
    return float(part.mean[0]), math.sqrt(float(part.covariance[0]) / len(values))


def _kept(run: _Run, places: np.ndarray) -> _Run:
    """Returns a run with some of its seeds."""
    values, number = run.values[places], len(places)
    if number == run.number:
        return run._replace(values=values)
    data = run.data.isel(seed=places).assign(seeds=number)
    mean, error = _mean(values)
    return run._replace(data=data, values=values, number=number, mean=mean, error=error)


def _matched(first: _Run, second: _Run) -> tuple[_Run, _Run, str, str]:
    """Returns two runs with the seeds that are compared, by which method, and a note on them."""
    unknown = None in (first.root_seed, second.root_seed)
    same_root = first.root_seed == second.root_seed
    turned = _turned(first.data, second.data)
    looks = first.looks + second.looks
    if first.seeds is None or second.seeds is None or looks:
        # A stop that depends on the results, or unknown pairs: no covariance can be used.
        return first, second, "bound" if unknown or same_root or looks else "Welch", ""
    if unknown and turned:
        return first, second, "turned", ""
    if unknown:
        note = "a root seed is unknown, so the runs are taken for independent"
        return first, second, "Welch", note
    common, mine, other = np.intersect1d(first.seeds, second.seeds, return_indices=True)
    if not same_root or not len(common):
        return first, second, "Welch", ""
    if len(common) > 1 and turned:
        return first, second, "turned", ""
    if len(common) > 1:
        return _kept(first, mine), _kept(second, other), "paired", ""
    if first.number == second.number == 2:
        return first, second, "Welch", "one seed is common to both, which is not used"
    # Without the one common seed, the two runs share none.
    note = "one common seed is left out of the "
    if first.number >= second.number:
        first = _kept(first, np.delete(np.arange(first.number), mine))
        return first, second, "Welch", f"{note}first"
    second = _kept(second, np.delete(np.arange(second.number), other))
    return first, second, "Welch", f"{note}second"


def _compared(first: _Run, second: _Run, labels: tuple[str, str], level: float) -> Comparison:
    """Compares what is known of two runs."""
    first, second, method, note = _matched(first, second)
    seeds, one, two = (first.number, second.number), first.error, second.error
    difference, error = first.mean - second.mean, one + two
    freedom = float(min(seeds) - 1)
    if method == "paired":
        difference, error = _mean(first.values - second.values)
    elif method == "Welch" and (error := math.hypot(one, two)):
        # The unit changes nothing, and keeps fourth powers away from 0 and infinity.
        a, b = one / unit_of(error), two / unit_of(error)
        freedom = (a**2 + b**2) ** 2 / (a**4 / (seeds[0] - 1) + b**4 / (seeds[1] - 1))
    # Both runs' intervals hold at all their looks together.
    times = max(first.looks + second.looks, 1)
    critical = student_quantile(freedom, 1 - (1 - level) / times)
    if method in ("bound", "turned"):
        low, high = _bound_ratio(first.mean, second.mean, critical * one, critical * two)
    else:
        covariance = 0.0
        if method == "paired":
            covariance = float(np.cov(first.values, second.values)[0, 1]) / seeds[0]
        low, high = fieller(first.mean, second.mean, one**2, two**2, covariance, critical)
    p_value = min(1.0, times * _two_sided(difference, error, freedom))
    return Comparison(
        participants=tuple(
            Participant.of(label, run.number, run.mean, cost_of(run.data))
            for label, run in zip(labels, (first, second), strict=True)
        ),
        question=_question(first, second),
        method=method,
        level=level,
        note=note,
        difference=difference,
        lower=difference - critical * error,
        upper=difference + critical * error,
        percent=100 * difference / second.mean if second.mean else math.nan,
        percent_lower=100 * (low - 1),
        percent_upper=100 * (high - 1),
        p_value=p_value,
        adjusted=p_value,
    )


def _question(first: _Run, second: _Run) -> Question:
    """Returns what two runs were asked, which is the same as far as both say so."""
    asked = second.asked | first.asked
    # A problem names the means as well.
    left_out = {"horizon"} | ({"means"} if asked.get("problem") is not None else set())
    problem = ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in asked.items()
        if value is not None and name not in left_out
    )
    root = first.root_seed if first.root_seed == second.root_seed else None
    return Question(first.asked["horizon"], root, problem)


def _two_sided(difference: float, error: float, freedom: float) -> float:
    """Returns P(abs(t) >= abs(difference) / error)."""
    if not error:
        return float(difference == 0)
    from scipy.special import stdtr

    return float(2 * stdtr(freedom, -abs(difference) / error))


def _bound_ratio(one: float, two: float, half_one: float, half_two: float) -> tuple[float, float]:
    """Returns what `fieller` does where the error of a difference is the sum of both errors."""
    if two <= half_two:
        return math.nan, math.nan
    least = one - half_one
    low = least / (two + half_two if least > 0 else two - half_two)
    return low, (one + half_one) / (two - half_two)


def _named(first: xr.Dataset, second: xr.Dataset) -> tuple[str, str]:
    """Names two runs by the settings in which they differ."""
    mine, other = words.facts(first), words.facts(second)
    roots = [data.attrs.get("root_seed") for data in (first, second)]
    if roots[0] is not None and roots[0] != roots[1]:
        mine, other = [*mine, f"root seed {roots[0]}"], [*other, f"root seed {roots[1] or 0}"]
    own = ", ".join(dict.fromkeys(fact for fact in mine if fact not in other))
    theirs = ", ".join(dict.fromkeys(fact for fact in other if fact not in mine))
    if not own and not theirs:
        return "the first run", "the second run"
    names = []
    for place, data, has, lacks in (("first", first, own, theirs), ("second", second, theirs, own)):
        # A run that lacks only what the other adds is named by that, unless it does not say.
        known = "epsilon" in {*data.attrs, *data.coords}
        names.append(has or (f"the same without {lacks}" if known else f"the {place} run"))
    return names[0], names[1]
