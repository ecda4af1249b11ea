"""The fronts of the arena: how little regret is possible at a trust, a leak and a price.

Contestants that have a dial, such as how fast their epochs grow, are run at several of its places,
at the leaks that sentences are about; everybody else is taken from part (b) of the arena. Of what
leaks and costs as much, those are on the front that nobody beats in regret and in what is sent.
Besides: what was the front in which year, what is possible with so many links, and who plays in
rounds or episodes at a horizon that slots do not reach.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import arena, common, pictures
from experiments.arena import (
    AGENTS,
    ARMS,
    INSTANCES,
    LINE_UP,
    REFERENCE,
    SCALE,
    STAND_INS,
    TOLD,
    VIEWS,
    least_possible,
    tails,
)
from fmab_jax.analysis.words import whole
from fmab_jax.plots import style
from fmab_jax.plots.style import FONT

HORIZON = 10**5
# A horizon that slots do not reach, and which part of the seeds is run there: by what one costs.
FAR, FAR_SHARES = 10**9, {"rounds": 0.2, "episodes": 0.02}

_GROWTHS: dict[str, Any] = {"growth": (1.5, 2.0, 3.0, 4.5, 6.0)}
_FIRSTS = {"growth": (2.0, 3.0, 5.0), "first": (None, 32, 150, 500)}
_EPISODES = {"growth": (1.2, 1.5, 2.0, 3.0, 5.0)}
_REPORTING = {"participation": (0.1, 0.2, 0.5, 1.0), "scale": (1.0, SCALE)}


class Dial(NamedTuple):
    """A contestant that is run at several places of its dial.

    Attributes:
        name: A key of `LINE_UP`.
        maker: Returns the algorithm at a leak, with other values of the dial's parameters.
        places: Their values; all combinations are run.
    """

    name: str
    maker: Callable[..., Any]
    places: Mapping[str, Sequence[Any]]


def _message(leak: float, **own: Any) -> Any:
    return fmab.cdp_mab(epsilon_message=leak, **own)


DIALS = {
    "messages": (
        Dial("cdp", _message, _REPORTING),
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
# As a lower bound is drawn.
BOUND: Any = (0, (4, 1.5))
QUICK = ("kl_se",)

# Who is not older than this project, and when that was written: ours, and what we made of others'.
NOW = 2026
OURS = ("cdp_scaled", "kl_se", "kl_se_split", "kl_se_graph", "kl_se_components", "kl_se_sum")
OURS += ("dp_imed_sum", "dp_klucb_sum")

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
    """One configuration at one leak.

    Attributes:
        name: A key of `LINE_UP`.
        settings: The places of its dial, in words; "" for the arena's own.
        regret: [seed] at T, over all agents.
        links: [seed].
        bits: [seed].
    """

    name: str
    settings: str
    regret: np.ndarray
    links: np.ndarray
    bits: np.ndarray

    @property
    def label(self) -> str:
        """Name and settings."""
        return LINE_UP[self.name].label + f" ({self.settings})" * bool(self.settings)

    @property
    def mean(self) -> float:
        """Of the regret."""
        return float(self.regret.mean())


class Data:
    """What the fronts are made of: results of `arena` and of the dials, by horizon."""

    def __init__(self, results: Callable[[str], Mapping[int, Any]]) -> None:
        self.arena = results("arena")
        self.own = results("arena_fronts")


def horizons(given: Sequence[int]) -> list[int]:
    """Returns the horizon of the fronts; the longest that is given, where it is not among them."""
    return [HORIZON if HORIZON in given else max(given)]


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: Sequence[str] = tuple(LINE_UP)
) -> dict[str, dict[Any, xr.Dataset]]:
    """Runs the dials, and at the far horizon whoever plays in rounds or episodes.

    Returns:
        "dials" by view, leak, contestant and settings; "far" by contestant; none where the
        horizon is a short one.
    """
    dials = {}
    for view, each, leak, settings in _placed(names):
        entry = LINE_UP[each.name]
        told = _words(settings)
        dials[view, leak, each.name, told] = arena.run(
            entry,
            each.maker(leak, **settings),
            0.0,
            horizon,
            entry.seeds("b", horizon, seeds),
            store,
            f"{leak:g}-{re.sub('[^0-9a-z.]+', '-', told)}",
            times=2,
        )
    far = {}
    for name in names:
        entry = LINE_UP[name]
        if horizon >= HORIZON and not entry.steps:
            number = max(2, round(seeds * FAR_SHARES[entry.cost]))
            far[name] = arena.run(entry, entry.algorithm, 0.0, FAR, number, store, "far", times=2)
    return {"dials": dials, "far": far}


def _placed(names: Sequence[str]) -> Iterator[tuple[str, Dial, float, dict[str, Any]]]:
    """Yields every place of every dial, at every leak that is told of."""
    for view, dials in DIALS.items():
        for each, leak in itertools.product(dials, TOLD):
            if each.name in names:
                for values in itertools.product(*each.places.values()):
                    yield view, each, leak, dict(zip(each.places, values, strict=True))


def _words(settings: Mapping[str, Any]) -> str:
    """Returns settings that are chosen, in words."""
    return ", ".join(f"{key} {value:g}" for key, value in settings.items() if value is not None)


def points(
    view: str, leak: float, parts: Mapping[Any, Any], dials: Mapping[Any, Any]
) -> list[Point]:
    """Returns all configurations of a view at a leak; one that both parts have, once."""
    own = [(key[2], key[3], data) for key, data in dials.items() if key[:2] == (view, leak)]
    known = {id(data) for *_, data in own}
    found = [
        (name, "", parts[view, name, leak])
        for name in VIEWS[view].makers
        if (view, name, leak) in parts and id(parts[view, name, leak]) not in known
    ]
    return [
        Point(
            name,
            settings,
            data.regret.isel(time=-1).values,
            arena.links(data.isel(time=-1)),
            arena.BITS.get(name, arena.REAL) * np.asarray(data.numbers_sent.values),
        )
        for name, settings, data in (*found, *own)
    ]


def front(found: Sequence[Point], sent: str) -> list[Point]:
    """Returns those that none beats in mean regret and in the mean of what is sent, at once.

    Args:
        found: All of a view and a leak.
        sent: "links" or "bits".

    Returns:
        By what is sent, the least first.
    """

    def price(each: Point) -> tuple[float, float]:
        return float(getattr(each, sent).mean()), each.mean

    best: list[Point] = []
    for each in sorted(found, key=price):
        if not best or each.mean < best[-1].mean:
            best.append(each)
    return best


def judge(data: Data, folder: Path) -> list[Path]:
    """Draws the fronts, with a table beside each, and the front over the years."""
    written: list[Path] = []
    for horizon, own in data.own.items():
        parts = data.arena[horizon]
        for view in VIEWS:
            written += _draw_front(view, parts, own["dials"], horizon, folder)
        written += _draw_years(parts, horizon, folder)
    return written


def _setting(horizon: int, seeds: Iterable[int]) -> str:
    most, least = max(numbers := list(seeds)), min(numbers)
    told = whole(most) if most == least else f"{whole(least)} to {whole(most)}"
    return (
        f"M = {AGENTS} agents that are alike, K = {ARMS} arms, means U[0, 1] drawn for each seed, "
        f"T = {whole(horizon)} slots, {told} seeds. Where agents are alone and are simulated in "
        f"slots or episodes, {STAND_INS} agents are run and their regret is multiplied by "
        f"{AGENTS} / {STAND_INS}"
    )


def front_rows(
    view: str, parts: Mapping[str, Any], dials: Mapping[Any, Any]
) -> list[dict[str, Any]]:
    """Returns a row for every configuration at every leak, with its tail and where it leads."""
    rows = []
    for leak in TOLD:
        found = points(view, leak, parts["b"], dials)
        leads = {sent: front(found, sent) for sent in ("links", "bits")}
        for each in sorted(found, key=lambda one: one.mean):
            fronts = [sent for sent in leads if any(each is one for one in leads[sent])]
            rows.append(
                {
                    "ε": f"{leak:g}",
                    "algorithm": LINE_UP[each.name].label,
                    "settings": each.settings,
                    "seeds": len(each.regret),
                    "regret at T": common.interval(each.regret),
                    **tails(each.regret),
                    "links at T": common.interval(each.links),
                    "bits sent": common.interval(each.bits),
                    "on the front of": " and ".join(fronts),
                }
            )
    return rows


def _draw_front(
    view: str, parts: Mapping[str, Any], dials: Mapping[Any, Any], horizon: int, folder: Path
) -> list[Path]:
    """Regret at T against links and against bits, a row for each leak."""
    what = VIEWS[view]
    found = {leak: points(view, leak, parts["b"], dials) for leak in TOLD}
    told = {leak: list(each) for leak, each in found.items() if each}
    bound = {leak: least_possible(leak, horizon) for leak in told}
    faint = "0.65"
    leads = {
        (leak, sent): front(each, sent) for leak, each in told.items() for sent in ("links", "bits")
    }
    # CDP-MAB is shown wherever it stands, as the arena has it.
    named = [REFERENCE, *(each.name for best in leads.values() for each in best)]
    place = {name: index for index, name in enumerate(dict.fromkeys(named))}

    def marker(name: str) -> dict[str, Any]:
        own = style.look(place[name])
        return {"marker": style.MARKERS[place[name] % len(style.MARKERS)], "color": own["color"]}

    def page(page: pictures.Page) -> None:
        panels = page.places(len(leads), across=2, height=1.9)
        for panel, ((leak, sent), best) in zip(panels, leads.items(), strict=True):
            at = {id(each): (float(getattr(each, sent).mean()), each.mean) for each in told[leak]}
            panel.plot(*zip(*at.values(), strict=True), "o", ms=2, color=faint, zorder=1, ls="none")
            ends = [at[id(each)] for each in best]
            panel.plot(*zip(*ends, strict=True), drawstyle="steps-post", lw=0.9, color="0.3")
            panel.axhline(bound[leak], color="0.35", linestyle=BOUND, linewidth=0.9)
            usual = [each for each in told[leak] if each.name == REFERENCE and not each.settings]
            for each in (*usual, *best):
                panel.plot(*at[id(each)], ms=4, ls="none", zorder=3, **marker(each.name))
            positive = [x for x, _ in at.values() if x > 0]
            panel.set_yscale("log")
            if positive:
                panel.set_xscale("symlog", linthresh=min(positive), linscale=0.6)
                panel.set_xlim(-0.15 * min(positive), 2 * max(positive))
            panel.set_ylim(0.7 * bound[leak], 1.6 * max(y for _, y in at.values()))
            panel.set_title(f"leak {leak:g}", fontsize=FONT, pad=3, loc="left")
            panel.set_xlabel(f"{sent} at T, mean over seeds", labelpad=2)
            panel.set_ylabel("regret at T", labelpad=2)
        page.handles = [
            *(
                Line2D([], [], ls="none", ms=4, label=LINE_UP[name].label, **marker(name))
                for name in place
            ),
            Line2D([], [], marker="o", ms=2, color=faint, ls="none", label="others"),
            Line2D([], [], color="0.3", lw=0.9, label="front"),
            Line2D([], [], color="0.35", ls=BOUND, lw=0.9, label="lower bound in the end"),
        ]

    rows = front_rows(view, parts, dials)
    seeds = [row["seeds"] for row in rows]
    caption = (
        f"{_setting(horizon, seeds)}. All of a panel are covered by the same ε of one reward "
        f"against {what.who}; accountant: {what.leak}. Markers: means over the seeds. Front: "
        "nobody has less regret for as much or less that is sent; drawn from means, whose "
        "intervals are in the table, as are the places of dials. CDP-MAB as it is in the arena is "
        "marked besides. Lower bound: what "
        "any algorithm whose actions are ε-private loses in the end (docs/theory.md), the mean "
        f"over {INSTANCES} instances; at this T a yardstick. Links and bits as in the figure of "
        "links."
    )
    ends = []
    for leak, each in told.items():
        best = front(each, "links")
        listed = " / ".join(
            f"{one.label} {one.mean:,.0f} with {one.links.mean():,.0f} links" for one in best
        )
        ends.append(f"at a leak of {leak:g}, {listed}; lower bound {bound[leak]:,.0f}")
    alt = f"The front of regret and links, against {what.who}: {'. '.join(ends)}."
    picture = pictures.Picture(f"arena_front_{view}", page, caption, alt, rows, rows)
    return pictures.publish(picture, folder)


def year(name: str) -> int:
    """Returns when a contestant was published; an arXiv number tells where the source does not."""
    if name in OURS:
        return NOW
    source = LINE_UP[name].algorithm.source
    if plain := re.search(r"\b((?:19|20)\d\d)\b(?!\.\d)", source):
        return int(plain[1])
    number = re.search(r"arXiv (\d\d)\d\d\.", source)
    return 2000 + int(number[1]) if number else NOW


def best_by_year(runs: Mapping[str, np.ndarray]) -> list[tuple[int, str, float]]:
    """Returns the years in which the least mean regret fell: whose it was then, and how much."""
    best: list[tuple[int, str, float]] = []
    for name in sorted(runs, key=lambda each: (year(each), runs[each].mean())):
        mean = float(runs[name].mean())
        if not best or mean < best[-1][2]:
            best.append((year(name), name, mean))
    return best


def _by_trust(parts: Mapping[str, Any]) -> dict[str, dict[str, np.ndarray]]:
    """Returns the regret at T by what is trusted, then by contestant: a leak of 1, or no bound."""
    found: dict[str, dict[str, np.ndarray]] = {}
    plain = {name: data.regret.isel(time=-1).values for name, data in parts["a"].items()}
    found["no privacy, all is told"] = {
        name: values for name, values in plain.items() if LINE_UP[name].trust == "open"
    }
    found["no privacy, nothing is told"] = {
        name: values
        for name, values in plain.items()
        if LINE_UP[name].trust == "alone"
        and arena.leaks(LINE_UP[name].algorithm)["actions"] == arena.UNBOUNDED
    }
    words = {
        "messages": "ε = 1 of single messages",
        "sums": "ε = 1 of secure sums",
    }
    for view, told in words.items():
        found[told] = {
            name: parts["b"][view, name, 1.0].regret.isel(time=-1).values
            for name in VIEWS[view].makers
            if (view, name, 1.0) in parts["b"]
        }
    found["ε = 1 of actions, nothing is told"] = {
        name: parts["b"]["actions", name, 1.0].regret.isel(time=-1).values
        for name in VIEWS["actions"].makers
        if ("actions", name, 1.0) in parts["b"] and LINE_UP[name].alone
    }
    return {told: runs for told, runs in found.items() if runs}


def _draw_years(parts: Mapping[str, Any], horizon: int, folder: Path) -> list[Path]:
    """The least regret that was possible in a year, by what is trusted."""
    groups = _by_trust(parts)
    best = {told: best_by_year(runs) for told, runs in groups.items()}
    first = min(steps[0][0] for steps in best.values())
    bounds = {"any algorithm": None, "any with actions of ε = 1": 1.0}

    def page(page: pictures.Page) -> None:
        (panel,) = page.places(1, height=3.4)
        notes = []
        for index, (told, steps) in enumerate(best.items()):
            own = style.look(index)
            years, means = [s[0] for s in steps], [s[2] for s in steps]
            panel.plot([*years, NOW + 0.5], [*means, means[-1]], drawstyle="steps-post", **own)
            (dots,) = panel.plot(years, means, style.MARKERS[index], ms=3, color=own["color"])
            notes += [
                pictures.Note((when, mean), LINE_UP[name].label, own["color"])
                for when, name, mean in steps
            ]
            own |= {"marker": style.MARKERS[index], "markersize": 3, "label": told}
            page.handles = [*page.handles, Line2D([], [], **own)]
        for words, epsilon in bounds.items():
            dash = "-" if epsilon is None else BOUND
            look: dict[str, Any] = {"color": "0.6", "linestyle": dash, "linewidth": 0.9}
            panel.axhline(least_possible(epsilon, horizon), **look)
            label = f"lower bound in the end: {words}"
            page.handles = [*page.handles, Line2D([], [], label=label, **look)]
        panel.set_yscale("log")
        panel.set_xlim(first - 1, NOW + 1)
        panel.set_xlabel("year of publication", labelpad=2)
        panel.set_ylabel("least regret at T so far", labelpad=2)
        page.fit = lambda: pictures.write_beside(panel, notes, crowded=True)

    rows = []
    for told, steps in best.items():
        for when, name, _ in steps:
            values = groups[told][name]
            head = {"trust": told, "year": when, "algorithm": LINE_UP[name].label}
            rows.append(
                head
                | {"seeds": len(values), "regret at T": common.interval(values), **tails(values)}
            )
    seeds = [len(values) for runs in groups.values() for values in runs.values()]
    caption = (
        f"{_setting(horizon, seeds)}. Each line: the least mean regret of the arena's contestants "
        "that were published by then, all trusted alike. A step is a contestant that has less than "
        f"all before it, on means; of {NOW} are this project's own, and what it made of others' "
        "(a secure sum, a smaller radius). Grey: lower bounds for one player who sees all that the "
        f"agents see, the mean over {INSTANCES} instances; at this T yardsticks."
    )
    listed = "; ".join(
        f"{told}: {steps[0][2]:,.0f} in {steps[0][0]} ({LINE_UP[steps[0][1]].label}), "
        f"{steps[-1][2]:,.0f} in {steps[-1][0]} ({LINE_UP[steps[-1][1]].label})"
        for told, steps in best.items()
    )
    alt = f"The least regret at T = {whole(horizon)}, first and last of each line. {listed}."
    picture = pictures.Picture("arena_years", page, caption, alt, rows, rows)
    return pictures.publish(picture, folder)


def capped(
    parts: Mapping[str, Any], dials: Mapping[Any, Any], horizon: int
) -> list[dict[str, Any]]:
    """Returns, for each cap on links, who has the least mean regret below it, and its tail."""
    rows = []
    for view, leak, cap in CAPS:
        found = points(view, leak, parts["b"], dials)
        within = [each for each in found if each.links.mean() <= cap]
        if not within:
            continue
        least = min(within, key=lambda each: each.mean)
        usual = "single" if cap == 0 else REFERENCE
        theirs = [each for each in found if each.name == usual and each.settings in ("", PLAIN)]
        rows.append(
            {
                "view": VIEWS[view].who,
                "ε": f"{leak:g}",
                "links, at most": f"{cap:,}",
                "least regret": least.label,
                "seeds": len(least.regret),
                "regret at T": common.interval(least.regret),
                **tails(least.regret),
                "links at T": common.interval(least.links),
                LINE_UP[REFERENCE].label: f"{theirs[0].mean:,.0f} with "
                f"{theirs[0].links.mean():,.0f} links"
                if theirs
                else "",
                "lower bound": f"{least_possible(leak, horizon):,.0f}",
            }
        )
    return rows


# The place of CDP-MAB's dial at which it is the arena's own.
PLAIN = _words({"participation": 1.0, "scale": 1.0})


def far_rows(far: Mapping[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Returns a row for everybody at the far horizon, the least regret first."""
    rows = []
    for name, data in far.items():
        last = data.isel(time=-1)
        regret = last.regret.values
        told = arena.leaks(LINE_UP[name].algorithm)
        rows.append(
            {
                "algorithm": LINE_UP[name].label,
                "who is trusted": arena.trusted(name),
                "epsilon of messages": told["messages"],
                "epsilon of actions": told["actions"],
                "seeds": len(regret),
                "regret at T": common.interval(regret),
                **tails(regret),
                "links at T": common.interval(arena.links(last)),
            }
        )
    return sorted(rows, key=lambda row: row["regret at T"][0])


def sections(data: Data) -> list[str]:
    """Returns what ARENA.md says of the fronts."""
    lines: list[str] = []
    for horizon, own in data.own.items():
        parts = data.arena[horizon]
        lines += [f"## What is possible, T = {whole(horizon)}", ""]
        lines += [
            "Fronts of regret, links and bits at matched trust: "
            + "; ".join(
                f"{what.who}: [figure](arena_front_{view}.png), [table](arena_front_{view}.md)"
                for view, what in VIEWS.items()
            )
            + ". What was the least regret in which year: [figure](arena_years.png), "
            "[table](arena_years.md).",
            "",
            "Below a cap on links, the configuration with the least mean regret among all of the "
            "arena and all places of the dials. Tails are of all seeds of that row. Who has the "
            "least was chosen on these seeds, among up to "
            f"{max(len(points(v, e, parts['b'], own['dials'])) for v, e, _ in CAPS)} "
            "configurations, so that the mean is a little too low. With no links, CDP-MAB is "
            "CDP-MAB alone. Lower bound: what any algorithm whose actions are ε-private loses in "
            "the end; at this T a yardstick.",
            "",
            *common.table_lines(capped(parts, own["dials"], horizon)),
            "",
        ]
        if own["far"]:
            lines += [
                f"## T = {whole(FAR)}",
                "",
                "Who plays in rounds or episodes costs no more at a longer horizon; slots do not "
                "reach it. Not ranked: trust and leaks differ.",
                "",
                *common.table_lines(far_rows(own["far"])),
                "",
            ]
    return lines
