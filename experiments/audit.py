"""Audits the noise as it is, and six mechanisms that are broken; docs/privacy_audit.md explains.

Every row is the finding of an audit that tells most; of waits, the finding about what is played.
What is broken must be caught, and what is not must stay within its claim, close to it. Un-noised
waiting, for which nothing is claimed, must be shown to have no finite epsilon. Broken mechanisms
keep the ledger, and so the claim, of what they break.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import fmab_jax as fmab
from experiments import common
from fmab_jax.algorithms.cdp_mab import CDP
from fmab_jax.algorithms.families.epochs import Epoch, Scalar
from fmab_jax.analysis.audit import Audit, Finding
from fmab_jax.core import keys
from fmab_jax.core.exchanges import Exchange

AGENTS, CLAIMS = 50, (0.5, 1.0, 2.0, 4.0)
# As many runs of each data set for each seed of the other experiments.
RUNS_PER_SEED, FEWEST = 2000, 100_000


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


@functools.cache
def audits(runs: int) -> dict[str, Audit]:
    """Returns all audits, by what is audited."""
    sound = {
        f"as it is, claim {claim:g}": fmab.audit(fmab.cdp_mab(claim / AGENTS), AGENTS, runs=runs)
        for claim in CLAIMS
    }
    sound[NOISED] = waiting(runs)
    return sound | {what: broken(what, runs) for what in BROKEN}


def sweep(horizon: int, seeds: int, store: Path | None = None) -> dict[str, Audit]:
    """Returns all audits; they have nothing to do with a horizon, and are not stored."""
    return audits(max(FEWEST, RUNS_PER_SEED * seeds))


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
    """Writes the table, and the figure of the first audit at a claim of 1."""
    found = next(iter(results.values()))
    first = found["as it is, claim 1"]
    of_broken = [row["caught"] for row in rows(found) if row["mechanism"] in BROKEN]
    caught, bare = of_broken.count("yes"), of_broken.count("no finite epsilon")
    notes = (
        f"{first.runs:,} runs of each data set; all bounds of an audit together are wrong with a "
        f"chance of {first.level:g} at most. Largest finite bound that so many runs can show: "
        f"{first.most:.3g}. Of {len(BROKEN)} broken mechanisms, {caught} are contradicted, and "
        f"{bare}, for which nothing is claimed, is shown to have no finite epsilon."
    )
    written = common.save_table(rows(found), folder, "audit", notes)
    return [*written, *common.save(fmab.plot_audit(first), folder, "audit")]
