"""How much more regret one configuration costs than another, and how sure that is.

Runs that share their seeds under one root seed are compared seed by seed, which takes the luck of
the drawn instance out. Others are independent, and Welch's test compares their means. Of a summary
single seeds are not kept: then the bound is used that holds however the two go together.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.analysis import summary, words
from fmab_jax.analysis.bands import fieller, student_quantile, unit_of
from fmab_jax.analysis.costs import Cost, cost_of
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

_ONE_INSTANCE = "the instance of seed "
# Letters that a refusal shows of a long value.
_PART = 24

UNLIKE = "Runs of other horizons, sizes or problems are not compared with each other"
"""What is said where runs answer different questions."""


class _Finals(NamedTuple):
    """What is known of a run's regret at T.

    Attributes:
        slot: T.
        root_seed: Of all its randomness; None where the results do not say it.
        seeds: Which seeds; None where single ones are not kept.
        values: Their regret.
        number: How many seeds.
        mean: Of the regret.
        error: Standard error of the mean.
        looks: At how many numbers of seeds it might have stopped; 0 for a fixed number.
        cost: What it took.
        asked: What it was asked.
        data: All of it.
    """

    slot: int
    root_seed: int | None
    seeds: np.ndarray | None
    values: np.ndarray
    number: int
    mean: float
    error: float
    looks: int
    cost: Cost
    asked: dict[str, Any]
    data: xr.Dataset


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
    both = [_single(field, data) for field, data in (("first", first), ("second", second))]
    if labels is None:
        labels = _named(*both)
    elif not isinstance(labels, tuple) or [type(each) for each in labels] != [str, str]:
        refuse("labels", labels, "two texts", 'write ("with noise", "without")')
    finals = [_finals(field, data) for field, data in zip(("first", "second"), both, strict=True)]
    if finals[0].slot != finals[1].slot:
        remedy = "regret grows with time: compare runs of one horizon"
        refuse("second.time", finals[1].slot, f"{finals[0].slot}, the first's last slot", remedy)
    turned = _turned(*both)
    _refuse_unlike(*(_asked_but_order(question_of(data), turned) for data in both))
    return _compared(*finals, labels=(labels[0], labels[1]), level=level, turned=turned)


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
    many = len(comparisons)
    adjusted, reached = [0.0] * many, 0.0
    for rank, place in enumerate(sorted(range(many), key=lambda i: comparisons[i].p_value)):
        reached = max(reached, min(1.0, (many - rank) * comparisons[place].p_value))
        adjusted[place] = reached
    pairs = zip(comparisons, adjusted, strict=True)
    return [
        replace(each, adjusted=value, together=many, simultaneous="Holm" * (many > 1))
        for each, value in pairs
    ]


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

    A ``problem`` is "drawn" by each seed, or known by a digest of its means or probabilities, or by
    the seed that drew it for all. ``means`` is a digest of the means that come along.

    Args:
        data: A result of one configuration.
    """
    study = study_at(data)
    problem = study.pop("problem", None)
    if isinstance(problem, dict):
        study |= problem
        study["problem"] = problem.get("means", problem.get("probabilities", "drawn"))
    elif problem == "Drawn":
        study["problem"] = "drawn"
        if (seed := study.get("fixed_instance")) is not None:
            study["problem"] = f"{_ONE_INSTANCE}{seed} under root seed {study['root_seed']}"
    for name in ("agents", "arms"):  # a maker of one's own may choose them
        size = data.coords.get(name, xr.DataArray(data.attrs.get(name))).item()
        if words.is_number(size):  # else a label, whose value the study states
            study[name] = int(size)
    found = {name: study[name] for name in QUESTIONS if name in study}
    if "means" in data:
        found["means"] = _digest(data.means.values)
    slots = data["slot"] if "slot" in data.coords else data["time"]
    found["horizon"] = int(slots.values.reshape(-1)[-1])
    return found


def alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tells whether two runs were asked the same, as far as both say so; see `question_of`."""
    return not _unlike(one, other)


def _unlike(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """Returns the settings in which the questions of two runs differ, as far as both state them."""
    return [name for name in one if name in other and _differ(name, one, other)]


def _differ(name: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    mine, theirs = one[name], other[name]
    if name == "problem":
        drawn = [str(each).startswith(_ONE_INSTANCE) for each in (mine, theirs)]
        if drawn[0] != drawn[1] and "drawn" not in (mine, theirs):
            # One side names the seed that drew the means, the other the means.
            mine, theirs = _means_of(one), _means_of(other)
    return bool(mine != theirs)


def _means_of(asked: Mapping[str, Any]) -> str:
    """Returns the digest of fixed means; "" where they cannot be drawn here."""
    if not str(asked["problem"]).startswith(_ONE_INSTANCE):
        return str(asked["problem"])
    seeds = asked["problem"].removeprefix(_ONE_INSTANCE).split(" under root seed ")
    size = [asked.get(name) for name in ("agents", "arms", "spread", "instance_gap")]
    return _drawn_means(*size, *map(int, seeds))


@functools.lru_cache
def _drawn_means(
    agents: Any, arms: Any, spread: Any, instance_gap: Any, seed: int, root_seed: int
) -> str:
    from fmab_jax.core.problems import Problem

    try:  # means do not depend on the reward law
        drawn = Problem.heterogeneous(agents, arms, spread or 0.0, instance_gap)
        return _digest(drawn.fixed(seed, root_seed).means)
    except Refusal:
        return ""


def _digest(means: Any) -> str:
    """Returns what a study keeps of fixed means, or of probabilities: one row for equal ones."""
    rows = np.atleast_2d(np.asarray(means, "<f8"))
    rows = rows[:1] if (rows == rows[:1]).all() else rows
    return hashlib.sha256(np.ascontiguousarray(rows).tobytes()).hexdigest()


def _refuse_unlike(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Refuses two runs that were asked different questions."""
    for name in _unlike(mine, theirs):
        remedy = "the regret of another problem is another question: compare runs of one"
        second, first = _told_apart(str(theirs[name]), str(mine[name]))
        refuse(f"second.{name}", second, f"{first}, the first's", remedy)


def _told_apart(one: str, other: str) -> list[str]:
    """Cuts two texts to a part in which they differ."""
    start = max(0, len(os.path.commonprefix([one, other])) - _PART // 2)
    return [
        "…" * bool(start) + text[start : start + _PART] + "…" * (len(text) > start + _PART)
        for text in (one, other)
    ]


def _asked_but_order(asked: Mapping[str, Any], turned: bool) -> dict[str, Any]:
    """Returns what a run was asked; without the means where only their order differs."""
    return {n: v for n, v in asked.items() if not (turned and n in ("problem", "means"))}


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
    single = {label: _single(f"runs[{label!r}]", data) for label, data in runs.items()}
    finals = {label: _finals(f"runs[{label!r}]", data) for label, data in single.items()}
    questions = {label: question_of(data) for label, data in single.items()}

    def same(one: str, other: str) -> bool:
        turned = _turned(single[one], single[other])
        return alike(*(_asked_but_order(questions[each], turned) for each in (one, other)))

    # The first run of each question is its base.
    base_of: dict[str, str] = {}
    for label in finals:
        bases = dict.fromkeys(base_of.values())
        base_of[label] = next((each for each in bases if same(each, label)), label)
    pairs = [(label, base) for label, base in base_of.items() if label != base]
    if len(finals) <= ALL_PAIRS:
        pairs = [(a, b) for a, b in combinations(finals, 2) if base_of[a] == base_of[b]]
    found = [
        _compared(
            *(finals[one], finals[other]),
            labels=(one, other),
            level=level,
            turned=_turned(single[one], single[other]),
        )
        for one, other in pairs
    ]
    return holm(found), len(set(base_of.values())) > 1


def compare_along(data: xr.Dataset, name: str, *, level: float = 0.95) -> list[Comparison]:
    """Compares each value of one parameter with its reference, others at theirs; see `compare_all`.

    Args:
        data: The results of a sweep.
        name: A swept parameter.
        level: Confidence level of each interval, in (0, 1).
    """
    return holm(_of_grid(data, level, name))


def _of_grid(data: xr.Dataset, level: float, along: str | None = None) -> list[Comparison]:
    if "seeds" not in data:
        refuse("data", "without seeds", "a result with seeds", "pass it unchanged")
    data = held(data)
    dims = [str(name) for name in data.seeds.dims]
    kept: dict[tuple[int, ...], _Finals] = {}

    def finals(place: tuple[int, ...]) -> _Finals:
        if place not in kept:
            made = _finals("data", data.isel(dict(zip(dims, place, strict=True))))
            # All cells of one result share its root seed, even if it is not stated.
            kept[place] = made._replace(root_seed=made.root_seed or 0)
        return kept[place]

    seeds = data.seeds.transpose(*dims).values
    made = []
    for one, other in contrasts(data, along):
        if seeds[one] < 2 or seeds[other] < 2 or finals(one).slot != finals(other).slot:
            continue
        differ = [i for i in range(len(dims)) if one[i] != other[i]]
        labels = [label_of(data, place, [dims[i] for i in differ]) for place in (one, other)]
        shared = [n for i, n in enumerate(dims) if i not in differ and data.sizes[n] > 1]
        pair = _compared(finals(one), finals(other), labels=(labels[0], labels[1]), level=level)
        varied = ", ".join(dims[i] for i in differ)
        made.append(replace(pair, at=label_of(data, other, shared), varied=varied))
    return made


def contrasts(
    data: xr.Dataset, along: str | None = None
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Returns the places of the configurations that are compared, in pairs.

    Args:
        data: Results with ``seeds`` over the swept parameters.
        along: The only parameter to vary, as in `compare_along`; by default as in `compare_all`.
    """
    dims = [str(name) for name in data.seeds.dims]
    base = tuple(reference(data[name]) for name in dims)
    still = [i for i, name in enumerate(dims) if name in QUESTIONS]
    if data.seeds.size <= ALL_PAIRS and along is None:
        places = list(np.ndindex(*(data.sizes[name] for name in dims)))
        pairs = combinations(places, 2)
        return [(a, b) for a, b in pairs if all(a[i] == b[i] for i in still)]
    return [
        ((*base[:i], value, *base[i + 1 :]), base)
        for i, name in enumerate(dims)
        if i not in still and along in (None, name)
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


def _finals(field: str, data: xr.Dataset) -> _Finals:
    """Reads the regret at T of one configuration."""
    number = int(data.seeds)
    if number < 2:
        refuse(f"{field}.seeds", number, "at least 2", "run more seeds")
    slots = data["slot"] if "slot" in data.coords else data["time"]
    last = int(slots.values.reshape(-1)[-1])
    root = int(data.attrs["root_seed"]) if "root_seed" in data.attrs else None
    if "regret" not in data:
        summary.refuse_huge(f"{field}.regret_mean", data.regret_mean.values)
        mean = float(data.regret_mean.values[-1])
        error = math.sqrt(max(float(data.regret_covariance.values[-1, -1]), 0.0) / number)
        none = np.empty(0)
        rest = _looks(data), cost_of(data), question_of(data), data
        return _Finals(last, root, None, none, number, mean, error, *rest)
    values = np.asarray(data.regret.isel(seed=slice(number), time=-1).values, np.float64)
    if not np.isfinite(values).all():
        refuse(f"{field}.regret", "not finite", "finite at the horizon", "complete the sweep")
    summary.refuse_huge(f"{field}.regret", values)
    known = data["seed"].values if "seed" in data.coords else np.arange(number)
    part = summary.moments(values[:, None], full=False)
    error = math.sqrt(float(part.covariance[0]) / number)
    seeds = np.asarray(known[:number], np.int64)
    found = seeds, values, number, float(part.mean[0]), error
    return _Finals(last, root, *found, _looks(data), cost_of(data), question_of(data), data)


def _looks(data: xr.Dataset) -> int:
    return int(data.attrs.get("looks", 0))


def _compared(
    first: _Finals,
    second: _Finals,
    *,
    labels: tuple[str, str],
    level: float,
    turned: bool = False,
) -> Comparison:
    """Compares what is known of two runs; ``turned`` where their agents are in another order."""
    covariance, method, seeds = 0.0, "Welch", (first.number, second.number)
    looks, note = first.looks + second.looks, ""
    unknown = None in (first.root_seed, second.root_seed)
    if first.seeds is None or second.seeds is None or looks:
        # A stop that depends on the results, or unknown pairs: no covariance can be used.
        apart = not unknown and first.root_seed != second.root_seed
        method = "Welch" if apart and not looks else "bound"
    elif unknown and turned:
        method = "turned"
    elif unknown:
        note = "a root seed is unknown, so the runs are taken for independent"
    elif first.root_seed == second.root_seed:
        common, mine, other = np.intersect1d(first.seeds, second.seeds, return_indices=True)
        if len(common) > 1 and turned:
            method = "turned"
        elif len(common) > 1:
            method, seeds = "paired", (len(common), len(common))
            first, second = _kept(first, mine), _kept(second, other)
            covariance = _covariance(first.values, second.values) / len(common)
        elif len(common) and max(seeds) > 2:
            # Without that seed, the two runs share none.
            note = "one common seed is left out of "
            if first.number >= second.number:
                first = _kept(first, np.delete(np.arange(first.number), mine))
                note += "the first"
            else:
                second = _kept(second, np.delete(np.arange(second.number), other))
                note += "the second"
            seeds = first.number, second.number
        elif len(common):
            note = "one seed is common to both, which is not used"
    one, two = first.error, second.error
    if method == "paired":
        # The error is that of the differences: exactly 0 if all differences agree.
        gaps = summary.moments((first.values - second.values)[:, None], full=False)
        difference = float(gaps.mean[0])
        error = math.sqrt(float(gaps.covariance[0]) / seeds[0])
        freedom = float(seeds[0] - 1)
    else:
        difference = first.mean - second.mean
        error = one + two if method in ("bound", "turned") else math.hypot(one, two)
        freedom = float(min(seeds) - 1)
        if method == "Welch" and error:
            # The unit changes nothing, and keeps fourth powers away from 0 and infinity.
            a, b = one / unit_of(error), two / unit_of(error)
            parts = a**4 / (seeds[0] - 1) + b**4 / (seeds[1] - 1)
            freedom = (a**2 + b**2) ** 2 / parts
    # Both runs' intervals hold at all their looks together.
    times = max(looks, 1)
    critical = student_quantile(freedom, 1 - (1 - level) / times)
    half = critical * error
    base = second.mean
    percent = 100 * difference / base if base else math.nan
    if method in ("bound", "turned"):
        low, high = _bound_ratio(first.mean, base, critical * one, critical * two)
    else:
        low, high = fieller(first.mean, base, one**2, two**2, covariance, critical)
    runs = zip(labels, seeds, (first, second), strict=True)
    return Comparison(
        participants=tuple(
            Participant.of(label, number, run.mean, run.cost) for label, number, run in runs
        ),
        question=_question(first, second),
        method=method,
        level=level,
        note=note,
        difference=difference,
        lower=difference - half,
        upper=difference + half,
        percent=percent,
        percent_lower=100 * (low - 1),
        percent_upper=100 * (high - 1),
        p_value=(p_value := min(1.0, times * _two_sided(difference, error, freedom))),
        adjusted=p_value,
    )


def _question(first: _Finals, second: _Finals) -> Question:
    """Returns what two runs were asked, which is the same as far as both say so."""
    told = {
        name: value for name, value in (second.asked | first.asked).items() if value is not None
    }
    told.pop("horizon")
    if "problem" in told:  # it names the means as well
        told.pop("means", None)
    problem = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told.items())
    root = first.root_seed if first.root_seed == second.root_seed else None
    return Question(first.slot, root, problem)


def _kept(run: _Finals, places: np.ndarray) -> _Finals:
    """Returns a run with some of its seeds."""
    if len(places) == run.number:
        return run._replace(values=run.values[places])
    values = run.values[places]
    part = summary.moments(values[:, None], full=False)
    error = math.sqrt(float(part.covariance[0]) / len(places))
    cost = cost_of(run.data.isel(seed=places).assign(seeds=len(places)))
    mean = float(part.mean[0])
    return run._replace(values=values, number=len(places), mean=mean, error=error, cost=cost)


def _covariance(one: np.ndarray, other: np.ndarray) -> float:
    return float((one - one.mean()) @ (other - other.mean()) / (len(one) - 1))


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
    if "root_seed" in first.attrs and first.attrs["root_seed"] != second.attrs.get("root_seed"):
        told = (f"root seed {data.attrs.get('root_seed', 0)}" for data in (first, second))
        mine, other = ([*facts, one] for facts, one in zip((mine, other), told, strict=True))
        mine, other = list(dict.fromkeys(mine)), list(dict.fromkeys(other))
    own = ", ".join(each for each in mine if each not in other)
    theirs = ", ".join(each for each in other if each not in mine)
    if not own and not theirs:
        return "the first run", "the second run"
    names = []
    for place, data, has, lacks in (("first", first, own, theirs), ("second", second, theirs, own)):
        # A run that lacks only what the other adds is named by that, unless it does not say.
        known = "epsilon" in {*data.attrs, *data.coords}
        names.append(has or (f"the same without {lacks}" if known else f"the {place} run"))
    return names[0], names[1]
