"""Audits the noise as it is, and six mechanisms that are broken; docs/privacy_audit.md explains.

Every row is the finding of an audit that tells most; of waits, the finding about what is played.
What is broken must be caught, and what is not must stay within its claim, close to it. Un-noised
waiting, for which nothing is claimed, must be shown to have no finite epsilon. Broken mechanisms
keep the ledger, and so the claim, of what they break.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common, pictures
from fmab_jax.algorithms.cdp_mab import CDP
from fmab_jax.algorithms.families.epochs import Epoch, Scalar
from fmab_jax.analysis.audit import Audit, Finding
from fmab_jax.core import keys
from fmab_jax.core.exchanges import Exchange
from fmab_jax.plots import style

AGENTS, CLAIMS = 50, (0.5, 1.0, 2.0, 4.0)
# As many runs of each data set for each seed of the other experiments.
RUNS_PER_SEED, FEWEST = 2000, 100_000
# Runs in a bin below which its log ratio is not drawn.
FEW = 50


@dataclass(frozen=True)
class Quiet(CDP):
    """CDP-MAB whose noise is a tenth too small."""

    name: ClassVar[str] = "cdp_quiet"

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns 0.9 / (N epsilon)."""
        return 0.9 * CDP.noise_scale(epoch)

    ledger = CDP.ledger


@dataclass(frozen=True)
class OverAll(CDP):
    """CDP-MAB whose noise on an epoch's mean is scaled by S_r, not by n_r."""

    name: ClassVar[str] = "cdp_over_all"

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns n_r / (N epsilon S_r)."""
        return CDP.noise_scale(epoch) * epoch.fresh / epoch.pulls

    ledger = CDP.ledger


@dataclass(frozen=True)
class Reused(CDP):
    """CDP-MAB in which one noise serves all epochs; to be audited inside `one_noise`."""

    name: ClassVar[str] = "cdp_reused"


@dataclass(frozen=True)
class Modest(CDP):
    """CDP-MAB that claims epsilon for a message, not N epsilon."""

    name: ClassVar[str] = "cdp_modest"

    def privacy(self, exchange: Exchange) -> dict[str, float]:
        """Returns epsilon twice."""
        told = super().privacy(exchange)["epsilon"]
        return {"epsilon": told, "epsilon_message": told}


@dataclass(frozen=True)
class Silent(CDP):
    """CDP-MAB without noise, though it claims some."""

    name: ClassVar[str] = "cdp_silent"

    @staticmethod
    def noise_scale(epoch: Epoch) -> Scalar:
        """Returns 0."""
        return 0.0 * epoch.fresh

    ledger = CDP.ledger


@contextmanager
def one_noise() -> Iterator[None]:
    """Has the noise of every round be that of the first."""
    usual = keys.stream_key

    def stream_key(key: Any, round_: Any, stream: int) -> keys.Words:
        return usual(key, 1 if stream == keys.NOISE else round_, stream)

    keys.stream_key = stream_key
    try:
        yield
    finally:
        keys.stream_key = usual


UNNOISED, NOISED = "un-noised waiting", "private waiting"
BROKEN = {
    "noise a tenth too small": Quiet,
    "noise scaled by S_r, not n_r": OverAll,
    "one noise for all rounds": Reused,
    "claim epsilon, not N epsilon": Modest,
    "no noise": Silent,
    UNNOISED: fmab.ddp_mab,
}


def broken(what: str, runs: int, agents: int = 6) -> Audit:
    """Audits a mechanism of `BROKEN`, at a claim of about 1."""
    owner: Any = BROKEN[what]
    made = owner(epsilon=1 / agents, **({"graph": "ring"} if owner is fmab.ddp_mab else {}))
    with one_noise() if owner is Reused else nullcontext():
        return fmab.audit(made, agents, runs=runs)


def waiting(runs: int, agents: int = 6) -> Audit:
    """Audits agents that go by the noisy means that they send, at a claim of 1."""
    return fmab.audit(fmab.ddp_mab(1 / agents, "ring", private_waiting=True), agents, runs=runs)


def worst(found: Audit) -> Finding:
    """Returns the finding that tells most against the claim."""
    return max(found.findings, key=lambda each: (each.infinite, each.lower / each.claim))


def _sound(claim: float, runs: int) -> Audit:
    """Audits CDP-MAB as it is."""
    return fmab.audit(fmab.cdp_mab(claim / AGENTS), AGENTS, runs=runs)


AUDITS: dict[str, Callable[[int], Audit]] = {
    **{f"as it is, claim {claim:g}": partial(_sound, claim) for claim in CLAIMS},
    NOISED: waiting,
    **{what: partial(broken, what) for what in BROKEN},
}
# Each compiles programs of its own: quickly, a sound one, one that is caught, and waits.
QUICK = ("as it is, claim 1", NOISED, "noise a tenth too small", UNNOISED)


@functools.cache
def audits(runs: int, names: tuple[str, ...] = tuple(AUDITS)) -> dict[str, Audit]:
    """Returns audits, by what is audited."""
    return {what: AUDITS[what](runs) for what in names}


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: tuple[str, ...] = tuple(AUDITS)
) -> dict[str, Audit]:
    """Returns audits; they have nothing to do with a horizon, and are not stored."""
    return audits(max(FEWEST, RUNS_PER_SEED * seeds), names)


def rows(found: dict[str, Audit]) -> list[dict[str, str]]:
    """Returns the table."""
    made = []
    for what, audit in found.items():
        # What is played while waiting comes last.
        each = audit.findings[-1] if what == NOISED else worst(audit)
        caught = "yes" if audit.contradicted else "no"
        if what == UNNOISED and each.infinite:
            caught = "no finite epsilon"
        claim = "none" if each.claim == float("inf") else f"{each.claim:.4g}"
        made.append(
            {
                "mechanism": what,
                "claim": claim,
                "lower bound": "infinite" if each.infinite else f"{each.lower:.4f}",
                "share of the claim": "" if each.infinite else f"{each.share:.3f}",
                "caught": caught,
                "seen": each.stream,
                "event": each.event,
            }
        )
    return made


def draw(results: dict[int, dict[str, Audit]], folder: Path) -> list[Path]:
    """Draws the first audit at a claim of 1, with the table of all of them beside."""
    found = next(iter(results.values()))
    table, first = rows(found), found["as it is, claim 1"]
    of_broken = [row["caught"] for row in table if row["mechanism"] in BROKEN]
    caught, bare = of_broken.count("yes"), of_broken.count("no finite epsilon")
    one = first.findings[0]
    caption = (
        f"CDP-MAB, M = {AGENTS} agents, at a claim of {one.claim:.4g}: {one.stream}. "
        f"{first.runs:,} runs of each of two data sets that differ in one reward. "
        f"Event: {one.event}; epsilon is at least {one.lower:.4g}. Log ratio: of the runs in a bin "
        f"with reward 1 to those with reward 0, where both have at least {FEW}; a mechanism that "
        "keeps its claim stays between plus and minus the claim. The table has all audits: all "
        f"bounds of one together are wrong with a chance of {first.level:g} at most. Largest "
        f"finite bound that so many runs can show: {first.most:.3g}. Of {len(of_broken)} broken "
        f"mechanisms, {caught} are contradicted, and {bare}, for which nothing is claimed, is "
        "shown to have no finite epsilon."
    )
    bins = _bins(first, one)
    seen = [bin["log ratio"] for bin in bins if bin["log ratio"] != ""]
    alt = (
        "Two double-exponential distributions, one reward apart. The log ratio of their bins goes "
        f"from {min(seen):.3g} at the left to {max(seen):.3g} at the right and keeps to the claim "
        f"of {one.claim:.4g} but for the chance of few runs."
    )

    def page(page: pictures.Page) -> None:
        _draw(page, one, bins)

    written = pictures.publish(pictures.Picture("audit", page, caption, alt, bins, table), folder)
    return [*written, common.save_rows(table, folder / "audit_mechanisms.csv")]


def _bins(audit: Audit, one: Finding) -> list[dict[str, Any]]:
    """Returns what was seen in each bin under both data sets."""
    edges, none, all_ = (values.tolist() for values in one.histogram)
    return [
        {
            "from": low,
            "to": high,
            "runs, reward 0": int(zero),
            "runs, reward 1": int(unit),
            "density, reward 0": zero / (audit.runs * (high - low)),
            "density, reward 1": unit / (audit.runs * (high - low)),
            "log ratio": math.log(unit / zero) if min(zero, unit) >= FEW else "",
        }
        for low, high, zero, unit in zip(edges[:-1], edges[1:], none, all_, strict=True)
    ]


def _draw(page: pictures.Page, one: Finding, bins: list[dict[str, Any]]) -> None:
    """Draws both distributions, and the log ratio of their bins."""
    above, below = page.places(2, across=2, height=1.6)
    edges = [bin["from"] for bin in bins] + [bins[-1]["to"]]
    handles = []
    for index, label in enumerate(("reward 0", "reward 1")):
        own = style.look(index) | {"label": label}
        density = [bin[f"density, {label}"] for bin in bins]
        above.stairs(density, edges, color=own["color"], alpha=0.15, fill=True)
        above.stairs(density, edges, color=own["color"], ls=own["linestyle"], lw=own["linewidth"])
        handles.append(Line2D([], [], **own))
    seen = [
        ((bin["from"] + bin["to"]) / 2, bin["log ratio"]) for bin in bins if bin["log ratio"] != ""
    ]
    mark = {"color": "black", "linestyle": "none", "marker": "o", "markersize": 2.2}
    handles += below.plot(*zip(*seen, strict=True), label="log ratio of a bin", **mark)
    for value, look in (
        (one.claim, {"color": style.COLOURS[2], "label": "claim", "lw": 2.2, "zorder": 1.4}),
        (one.lower, style.look(3) | {"label": "lower bound", "linestyle": style.STROKES[1]}),
    ):
        handles.append(below.axhline(value, **look))
        below.axhline(-value, **look)
    for panel in (above, below):
        edge = panel.axvline(one.threshold, color="0.45", linewidth=0.8, linestyle=":", zorder=1.4)
        panel.set_xlabel("what is seen, in rewards", labelpad=2)
        panel.set_xlim(edges[0], edges[-1])
    edge.set_label("threshold of the event")
    page.handles = [*handles, edge]
    above.set_ylim(0)
    above.set_ylabel("density", labelpad=2)
    most = max(abs(value) for _, value in [*seen, (0, one.claim)])
    below.set_ylim(-1.25 * most, 1.25 * most)
    below.set_ylabel("log ratio", labelpad=2)
