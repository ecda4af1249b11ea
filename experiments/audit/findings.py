"""Audits a privacy claim empirically: can neighbouring data be told apart too well?

Two data sets differ in one reward. `experiments.audit.exposures` simulates the output of the
algorithm for each of them many times, with the functions of a simulation. The audit looks for an
event that is far likelier under one of them. Its two chances are bounded by Clopper and Pearson's
limits: P > e^epsilon Q + delta contradicts a claim of (epsilon, delta), so log((P - delta) / Q) is
a lower bound on epsilon at delta that holds whatever the mechanism is. A claim below it is wrong. A
claim above it is not proved; the sources of the ledger have the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from experiments.audit.events import VIEWS, Numbers, Rule, Stream, bound_epsilon, choose_event
from experiments.audit.exposures import Exposure, Unseen, list_exposures
from fmab_jax.algorithms.base import Algorithm
from fmab_jax.analysis.accountant import epsilon_at
from fmab_jax.errors import count, refuse
from fmab_jax.records.ledger import describe_viewer
from fmab_jax.run.configs import build_exchange
from fmab_jax.run.promises import check_statements
from fmab_jax.sampling import keys
from fmab_jax.sampling.scope import package_settings

RUNS, LEVEL = 2_000_000, 1e-6
"""Default runs of each data set, and default chance that any bound is wrong."""

# Runs that choose the event, and runs that choose the data; neither is counted.
_PILOT, _TRIAL = 2**18, 2**16
_BINS = 48
# What a stronger viewer sees besides.
_STRONGER = ", and the noisy sums that they follow from"


class Histogram(NamedTuple):
    """Distribution of one output under both data sets.

    Attributes:
        edges: [bin + 1] of the bins, in rewards.
        without_reward: [bin] runs where the reward is 0.
        with_reward: [bin] runs where it is 1.
    """

    edges: Float[np.ndarray, " edge"]
    without_reward: Int[np.ndarray, " bin"]
    with_reward: Int[np.ndarray, " bin"]


@dataclass(frozen=True)
class Finding:
    """Result of the audit for one output.

    Attributes:
        stream: The output, and which reward differs.
        claim: Epsilon that the privacy ledger claims at the delta of the audit; infinite for no
            claim.
        lower: Lower bound on epsilon at delta, at most ``most``; the bounds of all findings hold
            together.
        event: The event in words; chosen on runs that are not counted.
        threshold: Threshold of the event, in rewards or in pulls.
        happened: Number of runs with the event, without the reward and with it.
        histogram: Distribution of the statistic of the event.
        viewer: Who sees it, as in the ledger.
        observation: What the viewer sees, as in the ledger.
        view: "messages", "sums" or "actions".
        most: Largest bound that this number of runs can show.
    """

    stream: str
    claim: float
    lower: float
    event: str
    threshold: float
    happened: tuple[int, int]
    histogram: Histogram
    viewer: str = ""
    observation: str = ""
    view: str = "messages"
    most: float = math.inf

    @property
    def is_contradicted(self) -> bool:
        """Whether the claim is wrong."""
        return math.isfinite(self.claim) and self.lower > self.claim

    @property
    def is_out_of_reach(self) -> bool:
        """Whether the claim is too large for this number of runs to contradict."""
        return math.isfinite(self.claim) and self.claim >= self.most and not self.is_contradicted

    @property
    def share(self) -> float:
        """The lower bound as a share of the claim; NaN where both are 0."""
        if self.claim == 0.0:
            return math.inf if self.lower > 0.0 else math.nan
        return self.lower / self.claim

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        if math.isinf(self.claim):
            return "none claimed"
        if self.is_out_of_reach:
            return f"out of reach: so many runs show {self.most:.3g} at most"
        return "contradicted" if self.is_contradicted else "within the claim"


@dataclass(frozen=True)
class Audit:
    """An audit of one algorithm.

    Attributes:
        algorithm: Its configuration.
        agents: M.
        runs: Of each data set.
        level: Chance that any of the bounds is wrong.
        findings: One for each output.
        most: Largest bound that this number of runs can show.
        delta: Of the (epsilon, delta) that is claimed and bounded; 0 for pure privacy.
        unseen: Rows of the ledger that no run can show, with the reasons.
    """

    algorithm: Algorithm
    agents: int
    runs: int
    level: float
    findings: tuple[Finding, ...]
    most: float
    delta: float = 0.0
    unseen: tuple[Unseen, ...] = ()

    @property
    def is_contradicted(self) -> bool:
        """Whether any claim is wrong."""
        return any(finding.is_contradicted for finding in self.findings)


def audit(
    algorithm: Algorithm,
    agents: int | None = None,
    *,
    view: str | None = None,
    delta: float = 0.0,
    runs: int = RUNS,
    level: float = LEVEL,
    root_seed: int = 0,
) -> Audit:
    """Looks for an event that tells neighbouring data apart better than the claim allows.

    Every row of the privacy ledger but those under ``unseen`` is shown as whoever it is about sees
    it:

    * "messages": single messages of elimination, rewards that an index policy releases, or, where
      agents are alone, the noisy sums that their actions follow from: that is a stronger viewer
      than the ledger has, and is named as one (an upper bound on what actions tell). All rewards
      are 0, or one of them is 1; all arms stay, since elimination depends on what was sent alone.
    * "sums": sums over agents, less what an agent that looks knows of them: its own message. With
      participation p < 1 of one round.
    * "actions": the arms that all agents pull, over a whole run of a short horizon. With
      elimination the data are such that one reward decides who leaves in which round; with index
      policies the first pull of an arm differs. Of several such data those count that tell most.

    The event is chosen on up to 262,144 other runs: a half-line of the noisy sum of the changed
    epoch, or an interval around it; of actions, a set of sequences. Beside these all single numbers
    that are seen, and sums and differences of two, are tried, so that broken noise shows.

    Args:
        algorithm: Such as ``fmab_jax.cdp_mab(epsilon=0.02)``.
        agents: M; the algorithm's usual number by default.
        view: "messages", "sums" or "actions"; all of them by default.
        delta: In [0, 1), of the claim; with 0 that is pure differential privacy. The bound is on
            the smallest epsilon whose hockey-stick divergence is at most delta.
        runs: Of each data set, in [1000, 10^9].
        level: Chance in (0, 0.5] that any bound is above the epsilon of the code.
        root_seed: Selects all randomness.

    Raises:
        ValueError: If no view of the algorithm can be shown, or there are fewer than 1000 runs.

    Example:
        >>> import fmab_jax as fmab
        >>> found = audit(fmab.cdp_mab(0.2), agents=5, view="messages", runs=10**5)
        >>> finding = found.findings[0]
        >>> finding.claim, 0.9 < finding.lower < finding.claim  # N epsilon, and what was shown
        (1.0, True)
    """
    runs = count("runs", runs, 1000, 10**9, "give the runs of each data set, such as 1e6")
    root = keys.checked_seed("root_seed", root_seed)
    exchange = build_exchange(algorithm, algorithm.usual_agents if agents is None else agents)
    # These statements do not depend on the number of arms.
    check_statements(algorithm, exchange, 2)
    with package_settings():
        exposures, unseen = list_exposures(
            algorithm, exchange, root, VIEWS if view is None else (view,)
        )
        number = sum(1 if x.compete else len(x.streams()) for x in exposures)
        if not number:
            reason = f": {unseen[0].why}" if unseen else ""
            allowed = f"one that {algorithm.name} lets anybody see"
            refuse("view", view, allowed, f"choose another view{reason}")
        # Two limits for each finding.
        rule = Rule(runs, level / (2 * number), delta)
        findings = [
            finding for exposure in exposures for finding in _measure_findings(exposure, rule)
        ]
    return Audit(
        algorithm, exchange.agents, runs, level, tuple(findings), rule.most, delta, tuple(unseen)
    )


def _measure_findings(exposure: Exposure, rule: Rule) -> list[Finding]:
    """Chooses data and an event for each stream, and counts the event on other runs."""
    streams, first = exposure.streams(), 0
    if exposure.compete:
        pilots = _draw_pilots(exposure, streams, min(_TRIAL, rule.runs), 0)
        streams = [streams[int(np.argmax([choose_event(pilot, rule).bound for pilot in pilots]))]]
        first = -(-_TRIAL // exposure.size)
    pilots = _draw_pilots(exposure, streams, min(_PILOT, rule.runs), first)
    first += -(-_PILOT // exposure.size)
    events = [choose_event(pilot, rule) for pilot in pilots]
    edges = []
    for pilot, event in zip(pilots, events, strict=True):
        mixed = np.concatenate([event.statistic.evaluate(side.values) for side in pilot])
        low, high = np.quantile(mixed, [0.003, 0.997])
        edges.append(np.linspace(low, high if high > low else low + 1.0, _BINS + 1))
    happened = np.zeros((len(streams), 2), np.int64)
    binned = np.zeros((len(streams), 2, _BINS), np.int64)
    for batch in range(-(-rule.runs // exposure.size)):
        used = min(exposure.size, rule.runs - batch * exposure.size)
        for place, side, numbers in _draw_sides(exposure, streams, first + batch):
            event = events[place]
            x = event.statistic.evaluate(numbers.values[:used])
            happened[place, side] += np.sum((x >= event.threshold) == event.above)
            binned[place, side] += np.histogram(x, edges[place])[0]
    row, findings = exposure.row, []
    claim = float(row.epsilon)
    if rule.delta:
        claim = epsilon_at(row, rule.delta)
    viewer = describe_viewer(row.viewer, row.members) + _STRONGER * exposure.is_stronger
    for place, (stream, event) in enumerate(zip(streams, events, strict=True)):
        pair = happened[place]
        high_count, low_count = pair[event.likelier], pair[1 - event.likelier]
        bound = float(bound_epsilon(np.float64(high_count), np.float64(low_count), rule))
        findings.append(
            Finding(
                *(stream.words, claim, max(0.0, bound), event.words, event.threshold),
                happened=(int(pair[0]), int(pair[1])),
                histogram=Histogram(edges[place], *binned[place]),
                viewer=viewer,
                observation=row.observation,
                view=exposure.view,
                most=rule.most,
            )
        )
    return findings


def _draw_sides(
    exposure: Exposure, streams: Sequence[Stream], batch: int
) -> Iterator[tuple[int, int, Numbers]]:
    """Yields (stream, side, numbers) of a batch; streams with the same data share its draws."""
    sides = [(stream.without_reward, stream.with_reward) for stream in streams]
    for data in sorted({data for pair in sides for data in pair}):
        runs = exposure.draw(data, batch)
        for place, stream in enumerate(streams):
            if data in sides[place]:
                yield place, sides[place].index(data), exposure.show(stream, runs)


def _draw_pilots(
    exposure: Exposure, streams: Sequence[Stream], runs: int, first: int
) -> list[list[Numbers]]:
    """Returns the numbers of the first ``runs`` runs, by stream and side."""
    parts: list[tuple[list[Numbers], list[Numbers]]] = [([], []) for _ in streams]
    for batch in range(-(-runs // exposure.size)):
        for place, side, numbers in _draw_sides(exposure, streams, first + batch):
            parts[place][side].append(numbers)
    return [
        [part[0]._replace(values=np.concatenate([x.values for x in part])[:runs]) for part in pair]
        for pair in parts
    ]
