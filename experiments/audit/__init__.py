"""Audits every algorithm that claims privacy, and mechanisms that are broken.

docs/privacy_audit.md explains. Every row of the table is the finding that tells most of one view:
single messages, sums over agents, or actions. What is broken must be caught, and what is not must
stay within its claim. Broken mechanisms keep the ledger, and so the claim, of what they break; or
they keep the mechanism, and claim too much. A second table lists what no run can show.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from matplotlib.lines import Line2D

import fmab_jax as fmab
from experiments import common, pictures
from experiments.audit.findings import Audit, Finding
from experiments.audit.findings import audit as audit
from fmab_jax.algorithms.adap_ucb import AdaPUCB
from fmab_jax.algorithms.base import Disclosure, Viewer
from fmab_jax.algorithms.cdp_mab import CDP
from fmab_jax.analysis.accountant import epsilon_at
from fmab_jax.equations import Epoch
from fmab_jax.parts.exchanges import Exchange
from fmab_jax.plots import style
from fmab_jax.sampling import keys
from fmab_jax.sampling.shapes import Scalar

AGENTS, FEW_AGENTS, CLAIMS = 50, 6, (0.5, 1.0, 2.0, 4.0)
# As many runs of each data set for each seed of the other experiments.
RUNS_PER_SEED, FEWEST = 2000, 100_000
# Whole runs take longer than messages, and runs of agents that talk longest: parts of the runs.
WHOLE, TALKING = 0.25, 0.1
# Delta of claims about sums, which two million runs can speak about.
DELTA = 0.01
# Runs in a bin below which its log ratio is not drawn.
FEW = 50


def _with_noise(name: str, noise_scale: Callable[[Epoch], Scalar]) -> Any:
    """Returns CDP-MAB whose noise has another scale, under the ledger of the usual one."""
    body = {"name": name, "noise_scale": staticmethod(noise_scale), "ledger": CDP.ledger}
    return dataclass(frozen=True)(type(name, (CDP,), body))


Quiet = _with_noise("cdp_quiet", lambda epoch: 0.9 * CDP.noise_scale(epoch))
Quieter = _with_noise("cdp_quieter", lambda epoch: 0.8 * CDP.noise_scale(epoch))
# Scaled by S_r, not by n_r.
OverAll = _with_noise(
    "cdp_over_all", lambda epoch: CDP.noise_scale(epoch) * epoch.fresh / epoch.pulls
)
Silent = _with_noise("cdp_silent", lambda epoch: 0.0 * epoch.fresh)
# One noise serves all epochs: to be audited inside `one_noise`.
Reused = _with_noise("cdp_reused", CDP.noise_scale)


@dataclass(frozen=True)
class Modest(CDP):
    """CDP-MAB that claims epsilon for a message, not N epsilon."""

    name: ClassVar[str] = "cdp_modest"

    def privacy(self, exchange: Exchange) -> dict[str, float]:
        """Returns epsilon twice."""
        epsilon = super().privacy(exchange)["epsilon"]
        return {"epsilon": epsilon, "epsilon_message": epsilon}


@dataclass(frozen=True)
class Bare(fmab.adap_ucb):
    """AdaP-UCB whose episodes are released without noise, though it claims some."""

    name: ClassVar[str] = "adap_bare"

    @staticmethod
    def learn(state: Any, pulls: Any, rewards: Any, noise: Any, episode: Any, params: Any) -> Any:
        """Counts; noise is drawn, and not added."""
        return AdaPUCB.learn(state, pulls, rewards, 0.0 * noise, episode, params)

    ledger = AdaPUCB.ledger


@dataclass(frozen=True)
class Trusting(CDP):
    """CDP-MAB that claims for an agent what holds for an outsider who sees the sum."""

    name: ClassVar[str] = "cdp_trusting"

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Returns a noise more than an agent does not know."""
        return tuple(
            row._replace(noises=(row.noises[0]._replace(number=row.number + 1),))
            if row.viewer is Viewer.AGENTS
            else row
            for row in super().ledger(exchange)
        )


@dataclass(frozen=True)
class Hasty(CDP):
    """CDP-MAB that claims the epsilon of sums at a tenth for every delta."""

    name: ClassVar[str] = "cdp_hasty"

    def ledger(self, exchange: Exchange) -> tuple[Disclosure, ...]:
        """Returns that epsilon, as if it were pure."""
        return tuple(
            row._replace(epsilon=epsilon_at(row, 0.1), noises=())
            for row in super().ledger(exchange)
        )


@contextmanager
def one_noise() -> Iterator[None]:
    """Has the noise of every round be that of the first."""
    usual = keys.stream_keys

    def stream_keys(key: Any, round_: Any, *streams: int) -> tuple[keys.Words, ...]:
        rounds = [1 if stream == keys.NOISE else round_ for stream in streams]
        return tuple(usual(key, *pair)[0] for pair in zip(rounds, streams, strict=True))

    keys.stream_keys = stream_keys
    try:
        yield
    finally:
        keys.stream_keys = usual


class Case(NamedTuple):
    """What is audited; view and delta as in `audit`."""

    make: Callable[[], Any]
    agents: int = FEW_AGENTS
    view: str | None = None
    delta: float = 0.0
    part: float = 1.0  # of the runs
    within: Callable[[], AbstractContextManager[None]] = nullcontext


ONE = 1.0 / FEW_AGENTS
# Mechanisms other than Laplace: names, titles and parameters.
NOISES = (
    ("gaussian", "Gaussian", {"delta": DELTA}),
    ("discrete_laplace", "discrete Laplace", {}),
    ("skellam", "Skellam", {"delta": DELTA}),
)
FIRST = "CDP-MAB, claim 1"
SOUND = {
    **{
        f"CDP-MAB, claim {claim:g}": Case(partial(fmab.cdp_mab, claim / AGENTS), AGENTS, "messages")
        for claim in CLAIMS
    },
    "CDP-MAB, claim 50": Case(partial(fmab.cdp_mab, 1.0), AGENTS, "messages", 0.0, TALKING),
    "CDP-MAB, sums": Case(partial(fmab.cdp_mab, ONE), view="sums", part=WHOLE),
    "CDP-MAB, sums, δ": Case(partial(fmab.cdp_mab, ONE), 6, "sums", DELTA, WHOLE),
    "CDP-MAB, actions": Case(partial(fmab.cdp_mab, ONE), view="actions", part=WHOLE),
    "CDP-MAB, actions, δ": Case(partial(fmab.cdp_mab, ONE), 6, "actions", DELTA, WHOLE),
    **{
        f"CDP-MAB, {title} noise, δ": Case(
            partial(fmab.cdp_mab, ONE, mechanism=name, **options), 6, None, DELTA, WHOLE
        )
        for name, title, options in NOISES
    },
    "CDP-MAB, p = 0.5": Case(partial(fmab.cdp_mab, 2 * ONE, participation=0.5), part=WHOLE),
    "DDP-MAB, private waiting": Case(
        partial(fmab.ddp_mab, ONE, "ring", private_waiting=True), view="actions", part=WHOLE
    ),
    "DDP-MAB, gossip": Case(
        partial(fmab.ddp_mab, ONE, "ring", protocol="gossip", private_waiting=True),
        *(FEW_AGENTS, "messages", 0.0, WHOLE),
    ),
    "HDP-MAB": Case(partial(fmab.hdp_mab, ONE, "3,3:complete"), part=WHOLE),
    "HDP-MAB, δ": Case(partial(fmab.hdp_mab, ONE, "3,3:complete"), 6, "sums", DELTA, WHOLE),
    "Single-agent MAB": Case(partial(fmab.single_mab, 1.0), part=WHOLE),
    "DP-SE": Case(partial(fmab.dp_se, 1.0), part=WHOLE),
    "Dist-DP-SE": Case(partial(fmab.dist_dp_se, 1.0), 5, part=WHOLE),
    "KL-SE": Case(partial(fmab.kl_se, 1.0), part=WHOLE),
    "KL-SE, arms split": Case(partial(fmab.kl_se, 1.0, split=True), part=WHOLE),
    "KL-SE, ring": Case(partial(fmab.kl_se_graph, 1.0, "ring"), part=WHOLE),
    "KL-SE, components": Case(partial(fmab.kl_se_components, 1.0, "3,3:complete"), part=WHOLE),
    "KL-SE, secure sum": Case(partial(fmab.kl_se, 1.0, secure=True), 5, part=WHOLE),
    "DP-IMED, secure sum": Case(partial(fmab.dp_imed, 1.0, secure=True), 5, part=WHOLE),
    "LDP-UCB": Case(partial(fmab.ldp_ucb, 1.0), part=WHOLE),
    "LDP-UCB, bits": Case(partial(fmab.ldp_ucb, 1.0, bits=True), part=WHOLE),
    "LDP-UCB, bits, δ": Case(partial(fmab.ldp_ucb, 1.0, bits=True), 2, "messages", DELTA, WHOLE),
    "AdaP-UCB": Case(partial(fmab.adap_ucb, 1.0), part=WHOLE),
    # With the authors' alpha all arms tie for longer than an audit lasts.
    "AdaP-KLUCB": Case(partial(fmab.adap_ucb, 1.0, alpha=0.1, kl=True), part=WHOLE),
    "DP-IMED": Case(partial(fmab.dp_imed, 1.0), part=WHOLE),
    "DP-KLUCB": Case(partial(fmab.dp_klucb, 1.0), part=WHOLE),
    "Lazy-DP-TS": Case(partial(fmab.lazy_dp_ts, 1.0), part=WHOLE),
    "Private UCB": Case(partial(fmab.tree_ucb, 1.0), part=WHOLE),
    "Fed_UCB": Case(partial(fmab.fed_ucb, 1.0), 2, part=TALKING),
    "Uniform play": Case(fmab.uniform_play, 1, part=TALKING),
}
BROKEN = {
    "noise a tenth too small": Case(partial(Quiet, ONE), view="messages"),
    "Skellam noise a fifth too small, δ": Case(
        partial(Quieter, ONE, mechanism="skellam", delta=DELTA), 6, "messages", DELTA
    ),
    "noise scaled by S_r, not n_r": Case(partial(OverAll, ONE), view="messages"),
    "one noise for all rounds": Case(partial(Reused, ONE), view="messages", within=one_noise),
    "claim epsilon, not N epsilon": Case(partial(Modest, ONE), view="messages"),
    "no noise": Case(partial(Silent, ONE), view="messages", part=WHOLE),
    "no noise, who leaves": Case(partial(Silent, ONE), view="actions", part=WHOLE),
    "no noise on episodes": Case(partial(Bare, 1.0), view="actions", part=TALKING),
    "own message not taken out": Case(partial(Trusting, 0.5), 2, "sums", DELTA, WHOLE),
    "δ a tenth of what it is": Case(partial(Hasty, ONE), 6, "sums", DELTA, WHOLE),
}
CASES = SOUND | BROKEN
# Each compiles programs of its own: quickly, a sound one, and two that are caught.
QUICK = (FIRST, "noise a tenth too small", "own message not taken out")


def audited(what: str, runs: int) -> Audit:
    """Audits one of `CASES`."""
    case = CASES[what]
    with case.within():
        return audit(
            case.make(),
            case.agents,
            view=case.view,
            delta=case.delta,
            runs=max(FEWEST, round(case.part * runs)) if runs >= FEWEST else runs,
        )


def worst(findings: Iterable[Finding]) -> Finding:
    """Returns the finding that tells most against the claim."""

    def tells(finding: Finding) -> float:
        return finding.lower if finding.claim == 0.0 else finding.lower / finding.claim

    return max(findings, key=tells)


@functools.cache
def audits(runs: int, names: tuple[str, ...] = tuple(CASES)) -> dict[str, Audit]:
    """Returns audits, by what is audited."""
    return {what: audited(what, runs) for what in names}


def sweep(
    horizon: int, seeds: int, store: Path | None = None, names: tuple[str, ...] = tuple(CASES)
) -> dict[str, Audit]:
    """Returns audits; they have nothing to do with a horizon, and are not stored."""
    return audits(max(FEWEST, RUNS_PER_SEED * seeds), names)


def rows(by_name: dict[str, Audit]) -> list[dict[str, str]]:
    """Returns the table: the worst finding of each row of a ledger in each view."""
    table = []
    for what, result in by_name.items():
        by_row: dict[tuple[str, ...], list[Finding]] = {}
        for finding in result.findings:
            by_row.setdefault((finding.view, finding.viewer, finding.observation), []).append(
                finding
            )
        for of_row in by_row.values():
            finding = worst(of_row)
            share = f"{finding.share:.3f}" if 0.0 < finding.share < math.inf else ""
            table.append(
                {
                    "mechanism": what,
                    "who": finding.viewer,
                    "claim": "none" if math.isinf(finding.claim) else f"{finding.claim:.4g}",
                    "δ": f"{result.delta:g}",
                    "lower bound": f"{finding.lower:.4f}",
                    "share of the claim": share,
                    "verdict": finding.verdict,
                    "runs": f"{result.runs}",
                    "view": finding.view,
                    "seen": finding.stream,
                    "event": finding.event,
                }
            )
    return table


def unseen(by_name: dict[str, Audit]) -> list[dict[str, str]]:
    """Returns what is claimed and no run can show."""
    return [
        {
            "mechanism": what,
            "who": row.viewer,
            "sees": row.observation,
            "claim": "none" if math.isinf(row.epsilon) else f"{row.epsilon:.4g}",
            "why no run shows it": row.why,
        }
        for what, result in by_name.items()
        for row in result.unseen
    ]


def draw(results: dict[int, dict[str, Audit]], folder: Path) -> list[Path]:
    """Draws the first audit at a claim of 1, with the table of all of them beside."""
    by_name = next(iter(results.values()))
    table, first = rows(by_name), by_name[FIRST]
    of_broken = [by_name[what] for what in BROKEN if what in by_name]
    caught = sum(result.is_contradicted for result in of_broken)
    sound = [result for what, result in by_name.items() if what not in BROKEN]
    wrong = sum(result.is_contradicted for result in sound)
    one = first.findings[0]
    caption = (
        f"CDP-MAB, M = {AGENTS} agents, at a claim of {one.claim:.4g}: {one.stream}. "
        f"{first.runs:,} runs of each of two data sets that differ in one reward. "
        f"Event: {one.event}; epsilon is at least {one.lower:.4g}. Log ratio: of the runs in a bin "
        f"with reward 1 to those with reward 0, where both have at least {FEW}; a mechanism that "
        "keeps its claim stays between plus and minus the claim. The table has all audits: all "
        f"bounds of one together are wrong with a chance of {first.level:g} at most, those of all "
        f"{len(by_name)} with {len(by_name) * first.level:.2g}. Largest "
        f"bound that so many runs can show: {first.most:.3g}. Of {len(sound)} audits of "
        f"mechanisms as they are, {wrong} {'is' if wrong == 1 else 'are'} contradicted. Of "
        f"{len(of_broken)} that are broken, {caught} are."
    )
    bins = _bins(first, one)
    alt = (
        "Two double-exponential distributions, one reward apart, and the log ratio of their bins, "
        "which keeps to the claim but for the chance of few runs."
    )

    def page(page: pictures.Page) -> None:
        _draw(page, one.claim, one.lower, one.threshold, bins)

    heads = ("mechanism", "who", "claim", "δ", "lower bound", "verdict", "seen")
    cells = [{head: row[head] for head in heads} for row in table]
    written = pictures.publish(pictures.Picture("audit", page, caption, alt, bins, cells), folder)
    written.append(common.save_rows(table, folder / "audit_mechanisms.csv"))
    if hidden := unseen(by_name):
        written.append(common.save_rows(hidden, folder / "audit_unseen.csv"))
    return written


def _bins(result: Audit, one: Finding) -> list[dict[str, Any]]:
    """Returns what was seen in each bin under both data sets."""
    edges, none, all_ = (values.tolist() for values in one.histogram)
    return [
        {
            "from": low,
            "to": high,
            "runs, reward 0": int(zero),
            "runs, reward 1": int(unit),
            "density, reward 0": zero / (result.runs * (high - low)),
            "density, reward 1": unit / (result.runs * (high - low)),
            "log ratio": math.log(unit / zero) if min(zero, unit) >= FEW else "",
        }
        for low, high, zero, unit in zip(edges[:-1], edges[1:], none, all_, strict=True)
    ]


def _draw(
    page: pictures.Page,
    claim: float,
    lower: float,
    threshold: float,
    bins: list[dict[str, Any]],
) -> None:
    """Draws both distributions, and the log ratio of their bins."""
    above, below = page.places(2, across=2, height=1.6)
    edges = [bin["from"] for bin in bins] + [bins[-1]["to"]]
    handles = []
    for index, label in enumerate(("reward 0", "reward 1")):
        look = style.get_line_style(index) | {"label": label}
        density = [bin[f"density, {label}"] for bin in bins]
        above.stairs(density, edges, color=look["color"], alpha=0.15, fill=True)
        above.stairs(
            density, edges, color=look["color"], ls=look["linestyle"], lw=look["linewidth"]
        )
        handles.append(Line2D([], [], **look))
    seen = [
        ((bin["from"] + bin["to"]) / 2, bin["log ratio"]) for bin in bins if bin["log ratio"] != ""
    ]
    mark = {"color": "black", "linestyle": "none", "marker": "o", "markersize": 2.2}
    handles += below.plot(*zip(*seen, strict=True), label="log ratio of a bin", **mark)
    for value, look in (
        (claim, {"color": style.COLOURS[2], "label": "claim", "lw": 2.2, "zorder": 1.4}),
        (
            lower,
            style.get_line_style(3) | {"label": "lower bound", "linestyle": style.STROKES[1]},
        ),
    ):
        handles.append(below.axhline(value, **look))
        below.axhline(-value, **look)
    for panel in (above, below):
        edge = panel.axvline(threshold, color="0.45", linewidth=0.8, linestyle=":", zorder=1.4)
        panel.set_xlabel("what is seen, in rewards", labelpad=2)
        panel.set_xlim(edges[0], edges[-1])
    edge.set_label("threshold of the event")
    page.handles = [*handles, edge]
    above.set_ylim(0)
    above.set_ylabel("density", labelpad=2)
    most = max(abs(value) for _, value in [*seen, (0, claim)])
    below.set_ylim(-1.25 * most, 1.25 * most)
    below.set_ylabel("log ratio", labelpad=2)
