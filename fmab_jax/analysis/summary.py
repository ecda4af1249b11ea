"""Summaries of many seeds that can be merged: moments, a histogram and counts.

Moments are kept about an anchor, a value of the first seed, so that a large common offset costs no
digits; merging them in any order agrees to 1e-12. Histogram and counts are whole numbers: merging
is exact. The bytes of moments depend on the curves alone, not on the number of threads or the
processor that matrices are multiplied with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from fmab_jax.errors import refuse

if TYPE_CHECKING:
    from jax import Array

_Block = TypeVar("_Block", np.ndarray, "Array")

BIN_WIDTH = 1e-3
"""Relative width of a histogram bin: the error of a quantile read from it."""

ROWS = 1024
"""Rows of one matrix product; a fixed number fixes the order of summation."""
BITS = 21
"""Bits of one part of a number: ROWS products of such parts add up to less than 2^53, exactly."""
# Libraries multiply matrices of this size in one thread; several threads wait for each other ten
# times as long as they compute where a core is busy.
_TILE = 64
_LOG_WIDTH = math.log1p(BIN_WIDTH)


MOST = 1e140
"""Largest size of a value: the squares of many add up to a number."""


def refuse_huge(field: str, values: np.ndarray) -> None:
    """Refuses values whose squares would not add up to a number.

    Args:
        field: Name of the values in errors.
        values: Values of all seeds; NaN, for a missing seed, passes.

    Raises:
        Refusal: If one is infinite or larger than `MOST`.
    """
    huge = np.abs(values) > MOST
    if huge.any():
        allowed = f"finite and at most {MOST:g} in size"
        refuse(field, values[huge][0].item(), allowed, "leave out the failed runs")


class Moments(NamedTuple):
    """Number, mean and scatter of curves.

    Attributes:
        seeds: How many curves.
        anchor: [time] reference.
        offset: [time] mean minus anchor.
        scatter: [time, time] sum over seeds of products of deviations from the mean; or its
            diagonal, [time].
    """

    seeds: int
    anchor: np.ndarray
    offset: np.ndarray
    scatter: np.ndarray

    @property
    def mean(self) -> np.ndarray:
        """[time] mean."""
        return self.anchor + self.offset

    @property
    def covariance(self) -> np.ndarray:
        """Unbiased covariance over time (or variances); NaN for one seed."""
        if self.seeds < 2:
            return np.full_like(self.scatter, np.nan)
        return self.scatter / (self.seeds - 1)


def compute_moments(curves: np.ndarray, *, full: bool = True, threads: int = 1) -> Moments:
    """Returns the moments of ``curves`` [seed, time], at least one, finite.

    Args:
        curves: Values.
        full: Keep the covariance of the slots, not only the variances.
        threads: Number of threads; the bytes do not depend on it.
    """
    seeds, times = curves.shape
    anchor = np.array(curves[0], np.float64)
    total = np.zeros(times)
    for start in range(0, seeds, ROWS):
        # One memory order, hence one order of summation, whatever the layout of the input.
        total += (np.ascontiguousarray(curves[start : start + ROWS], np.float64) - anchor).sum(0)
    offset = total / seeds

    def scattered(start: int) -> np.ndarray:
        block = np.ascontiguousarray(curves[start : start + ROWS], np.float64) - anchor - offset
        return multiply_exactly(block, _square) if full else np.square(block).sum(0)

    scatter = np.zeros((times, times) if full else times)
    starts = range(0, seeds, ROWS)
    with ThreadPoolExecutor(threads) as pool:
        for part in pool.map(scattered, starts) if threads > 1 else map(scattered, starts):
            scatter += part
    return Moments(seeds, anchor, offset, scatter)


def multiply_exactly(
    block: _Block, square: Callable[[_Block], _Block], xp: ModuleType = np
) -> _Block:
    """Returns block.T @ block of at most ROWS rows, with the same bytes on every machine.

    A library of matrices adds up in an order of its own, by threads and processor. Each column is
    cut to two parts of BITS bits below its largest value, whose products and sums are exact; what
    is cut off is less than 2^-44 of that value.

    Args:
        block: [row, time].
        square: Returns parts.T @ parts, whose sums are exact in any order.
        xp: NumPy, or JAX's.
    """
    times = block.shape[1]
    _, exponent = xp.frexp(xp.abs(block).max(0))
    # Added to a number and taken off again, they leave it rounded to a multiple of 2^-52 of theirs.
    coarse = xp.ldexp(1.5, exponent + (52 - BITS))[None]
    fine = xp.ldexp(1.5, exponent + (52 - 2 * BITS - 1))[None]
    high = (block + coarse) - coarse
    low = ((block - high) + fine) - fine
    sums = square(xp.concatenate([high, low], axis=1))
    cross = sums[:times, times:]
    return sums[:times, :times] + (cross + cross.T) + sums[times:, times:]


def _square(parts: np.ndarray) -> np.ndarray:
    """Returns parts.T @ parts, a tile at a time."""
    rows, columns = parts.shape
    # Rows of zeros add nothing.
    stacked = np.zeros((-(-rows // _TILE), _TILE, columns))
    stacked.reshape(-1, columns)[:rows] = parts
    sums = np.empty((columns, columns))
    for left in range(0, columns, _TILE):
        turned = stacked[:, :, left : left + _TILE].transpose(0, 2, 1)
        for right in range(left, columns, _TILE):
            tile = np.matmul(turned, stacked[:, :, right : right + _TILE]).sum(0)
            sums[left : left + _TILE, right : right + _TILE] = tile
            sums[right : right + _TILE, left : left + _TILE] = tile.T
    return sums


def merge(first: Moments, second: Moments) -> Moments:
    """Returns the moments of both parts together (Chan, Golub and LeVeque 1979)."""
    seeds = first.seeds + second.seeds
    gap = (second.anchor - first.anchor) + (second.offset - first.offset)
    share = second.seeds / seeds
    shift = np.multiply.outer(gap, gap) if first.scatter.ndim == 2 else gap * gap
    scatter = first.scatter + second.scatter + shift * (first.seeds * share)
    return Moments(seeds, first.anchor, first.offset + gap * share, scatter)


def merge_all(parts: Iterable[Moments]) -> Moments:
    """Returns the moments of all parts, merged in the order given."""
    return reduce(merge, parts)


def find_bins(values: np.ndarray) -> np.ndarray:
    """Returns the histogram bin of each value: 0 for 0, else the place of its logarithm.

    Bin b > 0 holds values in [low, high) of `find_bin_edges`, whose ratio is 1 + BIN_WIDTH; a value
    below 1e-12 counts as 0.
    """
    positive = values >= 1e-12
    with np.errstate(divide="ignore"):
        logs = np.log(np.where(positive, values, 1.0)) - math.log(1e-12)
    return np.where(positive, 1 + np.floor(logs / _LOG_WIDTH).astype(np.int64), 0)


def find_bin_edges(place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lower and upper edges of histogram bins."""
    low = np.where(place > 0, 1e-12 * np.exp((place - 1) * _LOG_WIDTH), 0.0)
    return low, np.where(place > 0, low * (1 + BIN_WIDTH), 1e-12 * (place == 0))


def count_values(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct whole numbers among ``values`` and how often each occurs."""
    distinct, counts = np.unique(values, return_counts=True)
    return distinct.astype(np.int64), counts.astype(np.int64)


def add_counts(parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sum of (values, counts) pairs; exact in any order."""
    values, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    distinct, place = np.unique(values, return_inverse=True)
    total = np.zeros(len(distinct), np.int64)
    np.add.at(total, place, counts)
    return distinct, total


def read_quantiles(place: np.ndarray, counts: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Returns quantiles read from a histogram, within a relative error of BIN_WIDTH.

    Args:
        place: Bins, increasing.
        counts: How many values lie in each.
        levels: Probabilities; the smallest value whose share of values at or below reaches it.
    """
    low, high = find_bin_edges(place)
    # A share, correctly rounded, equals the level that is written alike; 0.07 x 100 is above 7.
    reached = np.searchsorted(np.cumsum(counts) / counts.sum(), levels, "left")
    reached = np.minimum(reached, len(place) - 1)
    return np.where(place[reached] > 0, np.sqrt(low[reached] * high[reached]), 0.0)
