"""Confidence bands over seeds, and intervals for the chance of a catastrophe.

A band of the mean says little when a few seeds are catastrophes, which the sample may even miss.
So a band also counts the seeds that lost the best arm, or play a worse one at T, with intervals.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import xarray as xr

from fmab_jax.analysis.summary import refuse_huge
from fmab_jax.errors import choice, count, real, refuse
from fmab_jax.machine import cores

KINDS = {
    "pointwise": "pointwise confidence band of the mean (Student t at every slot)",
    "simultaneous": "simultaneous band over the whole curve (sup-t, multiplier bootstrap)",
    "quantile": "of the seeds lie inside at every slot (not a confidence band of the mean)",
}
"""The kinds of band and how a caption describes them, after the level in per cent."""

EVENTS = ("best_arm_lost", "worse_arm_played")
"""Coordinates that mark seeds; a band counts them."""

# Numbers of a block (64 MiB): the memory that a band takes besides the caller's array.
_CHUNK = 1 << 23
# Blocks that are held at once.
_AT_ONCE = 4


def check_band(level: object, kind: object) -> float:
    """Returns a checked level; refuses an unknown kind of band."""
    choice("kind", kind, KINDS, 'use "simultaneous"')
    return real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)


def divide_level(level: float, looks: int) -> float:
    """Returns the level of one of several looks, by Bonferroni.

    Raises:
        Refusal: If so high a level is 1 to the computer.
    """
    look_level = 1 - (1 - level) / looks
    if look_level == 1:
        refuse("level", level, f"further from 1, for {looks} looks", "use 0.95")
    return look_level


def confidence_band(
    values: xr.DataArray | xr.Dataset,
    level: float = 0.95,
    kind: str = "simultaneous",
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> xr.Dataset:
    """Summarises many seeds by their mean and a band around it.

    * ``"pointwise"``: Student's t-interval at every slot. It covers the true mean with probability
      ``level`` at any one slot, and the whole true curve with a smaller probability.
    * ``"simultaneous"``: the sup-t band, meant to cover the whole true curve with probability
      ``level``: mean +- c x standard error, one c for all slots, the ``level`` quantile of
      max_t abs(Z_t), at least the pointwise c. Given the data, the Gaussian multiplier bootstrap of
      the studentised mean *is* a Gaussian vector with the empirical correlation of the slots; Z is
      drawn from that law directly. One Student factor per draw accounts for the estimated
      deviations, so c is exact for a single slot. Few seeds estimate few correlations: on Gaussian
      random walks of 50 slots a 95 % band covered 85 % at 5 seeds, 93 % at 10, 94 % at 30. With
      dimensions besides "seed" and "time", every curve over time has its own band.
    * ``"quantile"``: where the central ``level`` fraction of the seeds lies at each slot; *not* a
      confidence band of the mean.

    Where all seeds agree the band has no width. Sums over seeds are taken in seed order in float64.
    Curves that are not in memory are read a block of seeds at a time, with the same digits: twice
    for "pointwise", three times for "simultaneous"; "quantile" needs all seeds of a slot at once.

    Args:
        values: A series per seed, with the dimension "seed" and normally "time"; finite. The
            boolean coordinates ``best_arm_lost`` and ``worse_arm_played`` on "seed" are counted if
            they are there. Or the Dataset of a sweep with ``keep="summary"``: the band of its
            regret ("quantile": see its ``regret_quantile``).
        level: Confidence level, or fraction of the seeds for ``"quantile"``, in (0, 1).
        kind: "simultaneous", "pointwise" or "quantile".
        resamples: Draws of Z for the simultaneous band, in [100, 1,000,000].
        seed: Seed of those draws, in [0, 2^32).

    Returns:
        A Dataset with ``mean``, ``lower`` and ``upper`` (and ``median`` for ``"quantile"``) over
        the dimensions of ``values`` without "seed", in its units, and ``seeds``, their number. Of
        each event coordinate also the number of seeds with the event, ``_lower`` and ``_upper``
        (probabilities, `lost_interval`). Attributes: ``level``, ``kind`` and ``description``, a
        phrase for captions.

    Raises:
        ValueError: For fewer than 2 seeds, values that are not finite or an argument out of range.

    Source:
        J. L. Montiel Olea and M. Plagborg-Moller, "Simultaneous confidence bands: theory,
        implementation, and an application to SVARs", J. Applied Econometrics 34(1), 2019.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> data = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> band = fmab.confidence_band(data.regret, level=0.95)
        >>> bool((fmab.confidence_band(data.regret, kind="pointwise").upper <= band.upper).all())
        True
    """
    level = check_band(level, kind)
    resamples = count("resamples", resamples, 100, 1_000_000, "use 2000")
    seed = count("seed", seed, 0, 2**32 - 1, "use 0")
    if isinstance(values, xr.Dataset):
        return _compute_summary_band(values, level, kind, resamples, seed)
    dims = getattr(values, "dims", ())
    if "seed" not in dims:
        refuse("values.dims", dims, 'dimensions with "seed"', "pass data.regret, not a mean")
    _check_numbers("values", values)
    seeds = count("seeds", values.sizes["seed"], 2, 2**63 - 1, "a band needs at least 2 seeds")
    if not values.size:
        refuse("values.shape", values.shape, "not empty", "select less narrowly")
    curve_dims = [dim for dim in values.dims if dim not in ("seed", "time")]
    ordered = values.transpose(*curve_dims, "seed", ...)
    shape = tuple(values.sizes[dim] for dim in curve_dims)
    names = ["mean", "lower", "upper"] + ["median"] * (kind == "quantile")
    out = np.empty((len(names), *shape, values.sizes.get("time", 1)))
    for index in np.ndindex(shape):
        curve: _Curve = ordered.variable[index]
        if curve.ndim == 1 or curve.size <= _CHUNK:
            curve = np.asarray(curve).reshape(len(curve), -1)
        mean, deviation = _compute_moments(curve)
        if kind == "quantile":
            ends = [(1 - level) / 2, (1 + level) / 2, 0.5]
            blocks = (np.asarray(curve[:, block]) for block in _cut_blocks(len(mean), seeds))
            parts = [np.quantile(block, ends, axis=0) for block in blocks]
            rows = [mean, *np.concatenate(parts, axis=1)]
        else:
            critical = student_critical(seeds - 1, 1 - level)
            if kind == "simultaneous":
                root = _factor_correlation(curve, mean, deviation)
                critical = max(critical, _sample_critical(root, seeds, level, resamples, seed))
            half = critical * deviation / np.sqrt(seeds)
            rows = [mean, mean - half, mean + half]
        out[(slice(None), *index)] = rows

    per_seed = {name: coord for name, coord in values.coords.items() if "seed" in coord.dims}
    like = ordered.drop_vars(per_seed).isel(seed=0)
    pairs = zip(names, out.reshape(len(names), *like.shape), strict=True)
    arrays = {name: like.copy(data=row) for name, row in pairs}
    counts = {
        event: per_seed[event].astype(bool).sum("seed").reset_coords(drop=True).compute()
        for event in EVENTS
        if event in per_seed
    }
    return _add_events(xr.Dataset(arrays), xr.DataArray(seeds), counts, level, kind)


def describe_band(level: float, kind: str) -> str:
    """Returns the phrase for a caption."""
    return f"{100 * level:.6g} % {KINDS[kind]}"


def paired_difference(
    first: xr.DataArray,
    second: xr.DataArray,
    level: float = 0.95,
    kind: str = "simultaneous",
    **options: int,
) -> xr.Dataset:
    """Returns the band of ``first - second``, seed by seed.

    Cells of a sweep share their seeds, so that most of the randomness cancels in the difference.

    Args:
        first: Such as ``data.regret.sel(epsilon=0.1)``.
        second: Such as ``data.regret.sel(epsilon=1)``; the same seeds, the same slots.
        level: As in `confidence_band`.
        kind: As in `confidence_band`.
        options: As in `confidence_band`.

    Returns:
        As `confidence_band`; a seed counts for an event if either run has it.

    Raises:
        ValueError: If the two do not have the same seeds and slots.

    Example:
        >>> import fmab_jax as fmab
        >>> problem = fmab.Problem(agents=5, arms=10)
        >>> more = fmab.simulate(fmab.cdp_mab(0.1), problem, horizon=10**4, seeds=20)
        >>> less = fmab.simulate(fmab.cdp_mab(1.0), problem, horizon=10**4, seeds=20)
        >>> band = fmab.paired_difference(more.regret, less.regret)
        >>> bool(band.lower[-1] > 0)
        True
    """
    for field, values in (("first", first), ("second", second)):
        if not isinstance(values, xr.DataArray) or "seed" not in values.dims:
            remedy = "pass data.regret.sel(...) of a sweep with keep='curves'"
            refuse(field, type(values).__name__, 'a DataArray with a dimension "seed"', remedy)
        _check_numbers(field, values)
    shared = {*first.dims} & {*second.dims}
    for dim in ("seed", "time", *sorted(shared - {"seed", "time"}, key=str)):
        same = first.sizes.get(dim) == second.sizes.get(dim)
        first_labels, second_labels = (_read_labels(x, str(dim)) for x in (first, second))
        if same and first_labels is not None and second_labels is not None:
            same = bool((first_labels == second_labels).all())
        if not same:
            remedy = "curves are paired by their labels, runs by seed; select the same of both"
            labels = dict(second.sizes) if second_labels is None else second_labels.values.tolist()
            refuse(f"second.{dim}", labels, "as in the first", remedy)
    slots = first.coords.get("slot")
    difference = first.reset_coords(drop=True) - second.reset_coords(drop=True)
    for event in EVENTS:
        if event in first.coords and event in second.coords:
            first_labels, second_labels = (
                x[event].astype(bool).reset_coords(drop=True) for x in (first, second)
            )
            if {*first_labels.dims, *second_labels.dims} <= set(difference.dims):
                difference = difference.assign_coords({event: first_labels | second_labels})
    if slots is not None and set(slots.dims) <= set(difference.dims):
        difference = difference.assign_coords(slot=slots.reset_coords(drop=True))
    name = first.attrs.get("long_name", first.name or "value")
    difference.attrs = {**first.attrs, "long_name": f"difference of {name}"}
    return confidence_band(difference, level, kind, **options)


def _read_labels(values: xr.DataArray, dim: str) -> xr.DataArray | None:
    """Returns the labels along a dimension, if they are known."""
    # Curves on grids of their own have their slots in a coordinate of this name.
    name = "slot" if dim == "time" and "slot" in values.coords else dim
    labels = values.coords.get(name)
    return None if labels is None else labels.drop_vars(list(labels.coords))


def _check_numbers(field: str, values: xr.DataArray) -> None:
    if values.dtype.kind not in "biuf":
        refuse(f"{field}.dtype", str(values.dtype), "a real number type", "pass data.regret")


def _compute_summary_band(
    data: xr.Dataset, level: float, kind: str, resamples: int, seed: int
) -> xr.Dataset:
    if not {"regret_mean", "regret_covariance", "seeds"} <= set(data):
        refuse("values", "a Dataset", "a DataArray, or a sweep's summary", "pass data.regret")
    allowed = "'simultaneous' or 'pointwise' for a summary"
    remedy = "data.regret_quantile has quantiles"
    choice("kind", kind, ("simultaneous", "pointwise"), remedy, allowed)
    if int(data.seeds.min()) < 2:
        refuse("seeds", int(data.seeds.min()), "at least 2", "a band needs at least 2 seeds")
    means = data.regret_mean.transpose(..., "time")
    covariances = data.regret_covariance.transpose(..., "time", "time_2").values
    half = np.empty(means.shape)
    for place in np.ndindex(means.shape[:-1]):
        moments = int(data.seeds.values[place]), means.values[place], covariances[place]
        _, half[place] = compute_moments_band(*moments, level, kind, resamples=resamples, seed=seed)
    band = xr.Dataset({"mean": means, "lower": means - half, "upper": means + half})
    counts = {event: data[event] for event in EVENTS if event in data}
    return _add_events(band, data.seeds, counts, level, kind)


def _add_events(
    band: xr.Dataset,
    seeds: xr.DataArray,
    counts: Mapping[str, xr.DataArray],
    level: float,
    kind: str,
) -> xr.Dataset:
    """Adds the seeds with each event, their intervals, and the attributes to a band."""
    band["seeds"] = seeds
    for event, number in counts.items():
        band[event] = number
        ends = clopper_pearson(number.values, seeds.values, (1 - level) / 2)
        for name, end in zip(("lower", "upper"), ends, strict=True):
            band[f"{event}_{name}"] = number.copy(data=end)
    band.attrs = {"level": level, "kind": kind, "description": describe_band(level, kind)}
    return band


def compute_moments_band(
    seeds: int,
    mean: np.ndarray,
    covariance: np.ndarray,
    level: float,
    kind: str = "simultaneous",
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and half-width [time] of the band of curves that are known by their moments.

    ``covariance`` [time, time] is the unbiased one; the rest is as in `confidence_band`.
    """
    deviation = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    critical = student_critical(seeds - 1, 1 - level)
    if kind == "simultaneous":
        scale = np.divide(1.0, deviation, out=np.zeros(len(mean)), where=deviation > 0)
        root = _factor_gram(covariance * scale * scale[:, None])
        critical = max(critical, _sample_critical(root, seeds, level, resamples, seed))
    return mean, critical * deviation / np.sqrt(seeds)


def lost_interval(events: int, seeds: int, level: float = 0.95) -> tuple[float, float]:
    """Bounds the probability of an event such as a lost best arm, from the number of seeds with it.

    The two-sided Clopper-Pearson interval never covers less than ``level``.
    """
    seeds = count("seeds", seeds, 1, 2**63 - 1, "give the number of seeds")
    events = count("lost", events, 0, seeds, "give how many of the seeds lost the best arm")
    level = real("level", level, 0, 1, "use 0.95", open_low=True, open_high=True)
    low, high = clopper_pearson(events, seeds, (1 - level) / 2)
    return float(low), float(high)


def clopper_pearson(
    events: np.ndarray | float, runs: np.ndarray | float, tail: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the limits of a probability, each of which is wrong with chance ``tail``."""
    # 0.3 s that an import of this module should not cost.
    from scipy.special import betainccinv, betaincinv

    # An event of no run has the lower limit 0; one of all runs has the upper limit 1.
    low = betaincinv(np.maximum(events, 1), runs - events + 1, tail)
    # A tiny tail would be lost in 1 - tail.
    high = betainccinv(events + 1, np.maximum(runs - events, 1), tail)
    return np.where(events > 0, low, 0.0), np.where(events < runs, high, 1.0)


def student_critical(freedom: float, error: float) -> float:
    """Returns c with P(abs(t) > c) = error for Student's t with ``freedom`` degrees."""
    from scipy.special import stdtrit

    # The lower tail: a tiny error would be lost in 1 - error.
    return -float(stdtrit(freedom, error / 2))


def fieller(
    one: float, two: float, var_one: float, var_two: float, covariance: float, critical: float
) -> tuple[float, float]:
    """Returns the ends of all ratios r that a t-test of "one - r two = 0" does not reject.

    ``critical`` is the quantile of the test. NaN where the denominator may be 0.

    Source:
        E. C. Fieller, "Some problems in interval estimation", J. R. Stat. Soc. B 16(2), 1954.
    """
    # Ratios are of no unit: in this one, powers and their differences stay numbers.
    unit = max(abs(one), abs(two)) or 1.0
    one, two = one / unit, two / unit
    var_one, var_two, covariance = (x / unit / unit for x in (var_one, var_two, covariance))
    square = critical**2
    a = two**2 - square * var_two
    if a <= 0 or not two:
        return math.nan, math.nan
    b = one * two - square * covariance
    c = one**2 - square * var_one
    root = math.sqrt(max(b * b - a * c, 0.0))
    return (b - root) / a, (b + root) / a


def _cut_blocks(length: int, row: int) -> list[slice]:
    """Cuts ``length`` rows of ``row`` numbers into slices of at most _CHUNK numbers."""
    step = max(1, _CHUNK // max(1, row))
    return [slice(start, start + step) for start in range(0, length, step)]


# Curves [seed, time]; indexing reads those that are not in memory.
_Curve = np.ndarray | xr.Variable


def _sum_blocks(summand: Callable[[np.ndarray], np.ndarray], curve: _Curve) -> np.ndarray:
    """Adds up a function of each block of seeds, in the order of the seeds.

    Only a few blocks are held in float64 besides ``curve``.
    """

    def find(block: slice) -> np.ndarray:
        # One memory order, hence one order of summation, whatever the layout of the input.
        return summand(np.ascontiguousarray(curve[block], np.float64))

    lanes = min(cores(), _AT_ONCE) if isinstance(curve, np.ndarray) else 1
    with ThreadPoolExecutor(lanes) as pool:
        return functools.reduce(operator.add, pool.map(find, _cut_blocks(*curve.shape)))


def _compute_moments(curve: _Curve) -> tuple[np.ndarray, np.ndarray]:
    """Returns mean and standard deviation [time] over the seeds of ``curve`` [seed, time]."""
    # Shifted by the first seed: a large common offset costs no digits, and where all seeds agree
    # the mean is exactly their value and the deviation exactly 0.
    first = np.asarray(curve[0], np.float64)

    def sum_shifted(values: np.ndarray) -> np.ndarray:
        refuse_huge("values", values)
        return (values - first).sum(axis=0)

    total = _sum_blocks(sum_shifted, curve)
    if np.isnan(total).any():
        refuse("values", math.nan, "finite", "leave out the failed runs")
    mean = first + total / len(curve)
    squares = _sum_blocks(lambda values: np.square(values - mean).sum(axis=0), curve)
    return mean, np.sqrt(squares / (len(curve) - 1))


def _factor_correlation(curve: _Curve, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Returns a matrix [rank, time] whose Gram matrix is the empirical correlation of the slots."""
    seeds, times = curve.shape
    scale = np.divide(1.0, deviation, out=np.zeros(times), where=deviation > 0)
    scale /= np.sqrt(seeds - 1)
    if seeds <= times:
        return (np.asarray(curve) - mean) * scale

    def correlate(values: np.ndarray) -> np.ndarray:
        standard = (values - mean) * scale
        return standard.T @ standard

    return _factor_gram(_sum_blocks(correlate, curve))


def _factor_gram(correlation: np.ndarray) -> np.ndarray:
    """Returns a matrix whose Gram matrix over its rows is ``correlation``."""
    values, vectors = np.linalg.eigh(correlation)
    return (vectors * np.sqrt(np.maximum(values, 0))).T


def _sample_critical(
    root: np.ndarray, seeds: int, level: float, resamples: int, seed: int
) -> float:
    """Returns the ``level`` quantile of max_t abs(Z_t), given a root [rank, time] of Z's law."""
    rng = np.random.default_rng(seed)
    chi = np.sqrt(rng.chisquare(seeds - 1, resamples) / (seeds - 1))
    largest = np.empty(resamples)
    for block in _cut_blocks(resamples, root.shape[1] + len(root)):
        normals = rng.standard_normal((len(largest[block]), len(root)))
        largest[block] = np.abs(normals @ root).max(axis=1)
    return float(np.quantile(largest / chi, level, method="higher"))
