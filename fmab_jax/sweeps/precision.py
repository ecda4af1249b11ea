"""When a sweep has enough seeds: looks double them until the bands are narrow."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fmab_jax.analysis.summary import Moments
from fmab_jax.parameters import UNSET, Configurable, Real, Whole, parameter
from fmab_jax.run.resources import MAX_SEEDS

_SHARE = Real(low=0.0, high=1.0, open_low=True, open_high=True)


@dataclass(frozen=True)
class Precision(Configurable):
    """When a configuration has enough seeds; `until_precise` creates it."""

    relative: float = parameter(
        _SHARE,
        "Double the seeds of each configuration until its band's half-width is at most this share "
        "of the mean; needs --keep summary.",
        keyword=False,
        default=UNSET,
        default_text="off",
        remedy="use 0.01 for 1 %",
    )
    level: float = parameter(
        _SHARE,
        "Confidence level of that band, over all looks together.",
        default=0.95,
        remedy="use 0.95",
    )
    max_seeds: int = parameter(
        Whole(low=2, high=MAX_SEEDS),
        "Most seeds of a configuration, with --until.",
        default=10**6,
        remedy="give the most seeds of a configuration",
    )

    def looks(self, seeds: int) -> list[int]:
        """Returns the doubling numbers of seeds at which a band is checked."""
        looks = [min(seeds, self.max_seeds)]
        while looks[-1] < self.max_seeds:
            looks.append(min(2 * looks[-1], self.max_seeds))
        return looks

    def look_level(self, seeds: int) -> float:
        """Returns the confidence level of one look, by Bonferroni."""
        from fmab_jax.analysis.bands import divide_level  # slow import

        return divide_level(self.level, len(self.looks(seeds)))


def until_precise(relative: float, *, level: float = 0.95, max_seeds: int = 10**6) -> Precision:
    """States when a sweep has enough seeds: ``sweep(..., until=until_precise(relative=0.01))``.

    A configuration starts with the sweep's ``seeds`` and doubles them until the half-width of its
    simultaneous band of regret, at the horizon, is at most ``relative`` times the mean, or
    ``max_seeds`` is reached. Looking several times and stopping at a narrow band would make bands
    cover less than they say; so every look uses the level 1 - (1 - level) / looks, with the number
    of looks that ``max_seeds`` allows, and the band at the stop covers at least ``level`` whenever
    it stops (Bonferroni).

    Args:
        relative: Half-width over mean, in (0, 1).
        level: Confidence level over all looks, in (0, 1).
        max_seeds: Most seeds of a configuration.

    Raises:
        ValueError: If a value is out of range.

    Example:
        At most 40 seeds are not enough for half a per cent, so the sweep ends with 40:

        >>> import fmab_jax as fmab
        >>> data = fmab.sweep(
        ...     fmab.cdp_mab, fmab.Problem(agents=5, arms=10), epsilon=[0.1, 1],
        ...     horizon=10**4, seeds=20, keep="summary",
        ...     until=fmab.until_precise(relative=0.005, max_seeds=40),
        ... )
        >>> data.seeds.values.tolist(), bool((data.relative_width > 0.005).all())
        ([40, 40], True)
    """
    return Precision(relative, level=level, max_seeds=max_seeds)


def relative_width(regret: Moments, level: float) -> float:
    """Returns the half-width of the simultaneous band at the last slot over the mean there."""
    from fmab_jax.analysis.tables import compute_look_band  # slow import

    if regret.seeds < 2:
        return math.nan
    mean, half = compute_look_band(regret.seeds, regret.mean, regret.covariance, level)
    return float(half[-1] / abs(mean[-1])) if half[-1] else 0.0
