"""The fronts of the arena: how little regret is possible at a trust, a leak and a price.

Contestants that have a dial, such as how fast their epochs grow, are run at several of its places,
at the leaks that sentences are about; everybody else is taken from part (b) of the arena. Of what
leaks and costs as much, those are on the front that nobody beats in regret and in what is sent.
Besides: what is possible with so many links.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

import fmab_jax as fmab
from experiments import arena, common
from fmab_jax.analysis.words import write_count

HORIZON = 10**5


_GROWTHS: dict[str, Any] = {"growth": (1.5, 2.0, 3.0, 4.5, 6.0)}
_FIRSTS = {"growth": (2.0, 3.0, 5.0), "first": (None, 32, 150, 500)}
_EPISODES = {"growth": (1.2, 1.5, 2.0, 3.0, 5.0)}
_REPORTING = {"participation": (0.1, 0.2, 0.5)}
_RADII = {"scale": (0.1, 0.15, 0.2, 0.5, 0.7)}


LOST = "seeds that lost the best arm"


class Dial(NamedTuple):
    """A contestant that is run at several places of its dial."""

    name: str  # A key of `LINE_UP`
    # returns the algorithm at a leak, with other values of the dial's parameters
    maker: Callable[..., Any]
    places: Mapping[str, Sequence[Any]]  # their values; all combinations are run


def _message(leak: float, **params: Any) -> Any:
    return fmab.cdp_mab(epsilon_message=leak, **params)


DIALS = {
    "messages": (
        Dial("cdp", _message, _REPORTING),
        Dial("cdp", _message, _RADII),
        Dial("kl_se", fmab.kl_se, _GROWTHS),
        Dial("kl_se_split", functools.partial(fmab.kl_se, split=True), _FIRSTS),
    ),
    "sums": (
        Dial("kl_se_sum", functools.partial(fmab.kl_se, secure=True), _GROWTHS),
        Dial("dp_imed_sum", functools.partial(fmab.dp_imed, secure=True), _EPISODES),
        Dial("dp_klucb_sum", functools.partial(fmab.dp_klucb, secure=True), _EPISODES),
    ),
    "actions": (
        Dial("dp_imed", fmab.dp_imed, _EPISODES),
        Dial("dp_klucb", fmab.dp_klucb, _EPISODES),
    ),
}
QUICK = ("kl_se",)


# Of a view and a leak: with at most so many links, as CDP-MAB's default and others have them.
CAPS = (
    ("messages", 10.0, 600),
    ("messages", 1.0, 600),
    ("messages", 0.1, 450),
    ("messages", 10.0, 290),
    ("messages", 1.0, 240),
    ("sums", 1.0, 700),
    ("sums", 1.0, 5000),
    ("actions", 1.0, 0),
)


class Point(NamedTuple):
    """One configuration at one leak."""

    name: str  # A key of `LINE_UP`
    settings: str  # the places of its dial, in words; "" for the arena's own
    regret: np.ndarray  # [seed] at T, over all agents
    links: np.ndarray  # [seed]
    bits: np.ndarray  # [seed]
    lost: int  # seeds in which somebody has dropped every best arm

    @property
    def label(self) -> str:
        """Name and settings."""
        return arena.LINE_UP[self.name].label + f" ({self.settings})" * bool(self.settings)

    @property
    def mean(self) -> float:
        """Of the regret."""
        return float(self.regret.mean())

    @property
    def cells(self) -> dict[str, Any]:
        """What every table has of it."""
        return {
            "seeds": len(self.regret),
            "regret at T": common.interval(self.regret),
            **arena.tails(self.regret),
            LOST: self.lost,
            "links at T": common.interval(self.links),
        }


def horizons(options: Sequence[int]) -> list[int]:
    """Returns the horizon of the fronts; the longest that is given, where it is not among them."""
    return [HORIZON if HORIZON in options else max(options)]


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] = tuple(arena.LINE_UP)
) -> dict[Any, xr.Dataset]:
    """Runs the dials; returns results by view, leak, contestant and settings."""
    dials = {}
    for view, dial, leak, settings in _placed(names):
        entry = arena.LINE_UP[dial.name]
        text = _words(settings)
        dials[view, leak, dial.name, text] = arena.run(
            entry,
            dial.maker(leak, **settings),
            0.0,
            horizon,
            entry.seeds("b", horizon, seeds),
            store,
            f"{leak:g}-{re.sub('[^0-9a-z.]+', '-', text)}",
            times=2,
        )
    return dials


def _placed(names: Sequence[str]) -> Iterator[tuple[str, Dial, float, dict[str, Any]]]:
    """Yields every place of every dial, at every leak that is told of, but for the arena's own."""
    for view, dials in DIALS.items():
        for dial, leak in itertools.product(dials, arena.FRONT_LEAKS):
            for values in itertools.product(*dial.places.values()):
                settings = dict(zip(dial.places, values, strict=True))
                usual = arena.VIEWS[view].makers[dial.name](leak)
                if dial.name in names and dial.maker(leak, **settings) != usual:
                    yield view, dial, leak, settings


def _words(settings: Mapping[str, Any]) -> str:
    """Returns settings that are chosen, in words."""
    pairs = settings.items()
    plain = {("participation", 1.0), ("scale", 1.0)}
    return ", ".join(f"{k} {v:g}" for k, v in pairs if v is not None and (k, v) not in plain)


def points(
    view: str,
    leak: float,
    parts: Mapping[Any, Any],
    dials: Mapping[Any, Any],
    unproven: bool = False,
) -> list[Point]:
    """Returns all configurations of a view at a leak: the arena's own, and places of dials.

    Those with a smaller radius, which no proof covers, are left out unless ``unproven``.
    """
    every = {(name, ""): parts.get((view, name, leak)) for name in arena.VIEWS[view].makers}
    every |= {key[2:]: data for key, data in dials.items() if key[:2] == (view, leak)}
    return [
        Point(
            name,
            settings,
            data.regret.isel(time=-1).values,
            arena.links(data.isel(time=-1)),
            arena.BITS[name] * np.asarray(data.numbers_sent.values),
            int(data.best_arm_lost.sum()),
        )
        for (name, settings), data in every.items()
        if data is not None and (unproven or not (name == "cdp_scaled" or "scale" in settings))
    ]


def radii(parts: Mapping[Any, Any], dials: Mapping[Any, Any], leak: float) -> dict[float, Point]:
    """Returns CDP-MAB by the factor of its radius, all agents reporting, at a leak of messages."""
    candidates = {}
    for point in points("messages", leak, parts, dials, unproven=True):
        if point.name == "cdp_scaled" and not point.settings:
            candidates[arena.SCALE] = point
        elif point.name == arena.REFERENCE and "participation" not in point.settings:
            candidates[float(point.settings.removeprefix("scale ") or 1)] = point
    return dict(sorted(candidates.items()))


def front(candidates: Sequence[Point], sent: str) -> list[Point]:
    """Returns those that none beats in mean regret and in what is sent, the least sent first."""

    def price(point: Point) -> tuple[float, float]:
        return float(getattr(point, sent).mean()), point.mean

    best: list[Point] = []
    for point in sorted(candidates, key=price):
        if not best or point.mean < best[-1].mean:
            best.append(point)
    return best


def front_rows(
    view: str, parts: Mapping[str, Any], dials: Mapping[Any, Any]
) -> list[dict[str, Any]]:
    """Returns a row for every configuration at every leak, with its tail and where it leads."""
    rows = []
    for leak in arena.FRONT_LEAKS:
        candidates = points(view, leak, parts["b"], dials)
        leads = {sent: front(candidates, sent) for sent in ("links", "bits")}
        for point in sorted(candidates, key=lambda one: one.mean):
            fronts = [sent for sent in leads if any(point is one for one in leads[sent])]
            rows.append(
                {
                    "ε": f"{leak:g}",
                    "algorithm": arena.LINE_UP[point.name].label,
                    "settings": point.settings,
                    **point.cells,
                    "bits sent": common.interval(point.bits),
                    "on the front of": " and ".join(fronts),
                }
            )
    return rows


def capped(
    parts: Mapping[str, Any], dials: Mapping[Any, Any], horizon: int
) -> list[dict[str, Any]]:
    """Returns, for each cap on links, who has the least mean regret below it, and its tail."""
    rows = []
    for view, leak, cap in CAPS:
        candidates = points(view, leak, parts["b"], dials)
        within = [point for point in candidates if point.links.mean() <= cap]
        if not within:
            continue
        least = min(within, key=lambda point: point.mean)
        usual = "single" if cap == 0 else arena.REFERENCE
        usual_points = [point for point in candidates if point.name == usual and not point.settings]
        rows.append(
            {
                "view": arena.VIEWS[view].who,
                "ε": f"{leak:g}",
                "links, at most": f"{cap:,}",
                "least regret": least.label,
                **least.cells,
                arena.LINE_UP[arena.REFERENCE].label: f"{usual_points[0].mean:,.0f} with "
                f"{usual_points[0].links.mean():,.0f} links"
                if usual_points
                else "",
                "lower bound": f"{arena.least_possible(leak, horizon, alone=cap == 0):,.0f}",
            }
        )
    return rows


def below(parts: Mapping[str, Any], dials: Mapping[Any, Any]) -> str:
    """Returns how the table of caps is read."""
    most = max(len(points(view, leak, parts["b"], dials)) for view, leak, _ in CAPS)
    return (
        "Below a cap on links, the configuration with the least mean regret among all of the "
        "arena and all places of the dials. Tails are of all seeds of that row. Who has the least "
        f"was chosen on these seeds, among up to {most} configurations, so that the mean is a "
        "little too low. CDP-MAB with a smaller radius is left out, since no proof covers it. With "
        "no links, CDP-MAB is CDP-MAB alone. Lower bound: what any algorithm whose actions are "
        "ε-private loses in the end, with no links each agent for itself; at this T a yardstick."
    )


def sections(arena_: Mapping[int, Any], fronts: Mapping[int, Any]) -> list[str]:
    """Returns what ARENA.md says of the fronts."""
    lines: list[str] = []
    for horizon, dials in fronts.items():
        parts = arena_[horizon]
        rows = capped(parts, dials, horizon)
        lines += [f"## What is possible, T = {write_count(horizon)}", ""]
        lines += [
            "Fronts of regret, links and bits at matched trust: "
            + "; ".join(
                f"{what.who}: [figure](arena_front_{view}.png), [table](arena_front_{view}.md)"
                for view, what in arena.VIEWS.items()
            )
            + ". What a smaller radius of CDP-MAB brings and costs: [figure](arena_radius.png), "
            "[table](arena_radius.md).",
            "",
            below(parts, dials),
            "",
            *common.table_lines(rows),
            "",
        ]
    return lines
