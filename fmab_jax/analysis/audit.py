"""An empirical audit of the privacy that is claimed: can neighbouring data be told apart too well?

Two data sets differ in one reward. What an algorithm lets out for each is simulated many times, by
the very functions that a simulation calls (`fmab_jax.analysis.exposures`), and an event is looked
for that one of them makes far likelier. Its two chances are bounded by Clopper and Pearson's
limits: P > e^epsilon Q + delta contradicts a claim of (epsilon, delta), so log((P - delta) / Q) is
a lower bound on epsilon at delta that holds whatever the mechanism is. A claim below it is wrong. A
claim above it is not proved: what is proved is in the sources of the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from fmab_jax.algorithms.base import Algorithm, Seen
from fmab_jax.analysis import privacy
from fmab_jax.analysis.exposures import Unseen, exposed
from fmab_jax.analysis.streams import VIEWS, Exposure, Numbers, Stream
from fmab_jax.core import keys
from fmab_jax.core.exchanges.table import AGENTS_MAX
from fmab_jax.core.scope import own_settings
from fmab_jax.errors import count, real, refuse
from fmab_jax.run.configs import exchange_of
from fmab_jax.run.contract import check_statements

RUNS, LEVEL = 2_000_000, 1e-6
"""Runs of each data set, and the chance that any bound is wrong, unless told otherwise."""

# Runs that an event is chosen on before any is counted; that data are chosen on before that; and on
# which many simple statistics are looked through.
_PILOT, _TRIAL, _SCREENED = 2**18, 2**16, 2**13
_BINS = 48
# Sums and differences of two numbers are tried where there are no more than so many.
_FEW_NUMBERS = 12
# A sequence of pulls is told from others where it was seen so often.
_OFTEN = 16


class Histogram(NamedTuple):
    """How a number that is let out is distributed under both data sets.

    Attributes:
        edges: [bin + 1] of the bins, in rewards.
        without: [bin] runs where the reward is 0.
        with_it: [bin] runs where it is 1.
    """

    edges: Float[np.ndarray, " edge"]
    without: Int[np.ndarray, " bin"]
    with_it: Int[np.ndarray, " bin"]


@dataclass(frozen=True)
class Finding:
    """What was found for one thing that is let out.

    Attributes:
        stream: What is seen, and which reward differs.
        claim: Epsilon that the privacy ledger claims for it, at the audit's delta; infinity where
            nothing is.
        lower: Lower bound on epsilon at delta; it holds for all findings of an audit together.
            Infinite where nothing random is left by construction (`Stream.bare`) and both data sets
            let out different things: then no epsilon is large enough.
        exact: What ``lower`` would be, about, if the noise were exactly that of the claim; NaN
            where that is not known.
        constant: Whether one thing was seen in every run of the one data set, another in every run
            of the other. Noise that is rarer than a run is not told from none: what follows is
            ``lower``.
        event: In words; chosen on runs that are not counted.
        threshold: Of the event, in rewards, or in pulls.
        happened: Runs in which it happened, without the reward and with it.
        histogram: Of the number that the event is about.
        who: Who sees it, as in the ledger.
        what: Is seen, as in the ledger.
        view: "messages", "sums" or "actions".
        most: Largest finite bound that so many runs can show.
    """

    stream: str
    claim: float
    lower: float
    exact: float
    constant: bool
    event: str
    threshold: float
    happened: tuple[int, int]
    histogram: Histogram
    who: str = ""
    what: str = ""
    view: str = "messages"
    most: float = math.inf

    @property
    def contradicted(self) -> bool:
        """Whether the claim is wrong."""
        return math.isfinite(self.claim) and self.lower > self.claim

    @property
    def infinite(self) -> bool:
        """Whether no epsilon is large enough."""
        return math.isinf(self.lower)

    @property
    def out_of_reach(self) -> bool:
        """Whether the claim is one that no finite bound from so many runs can contradict."""
        return math.isfinite(self.claim) and self.claim >= self.most and not self.contradicted

    @property
    def share(self) -> float:
        """The lower bound as a share of the claim; NaN where both are 0."""
        if self.infinite:
            return math.inf
        if self.claim == 0.0:
            return math.inf if self.lower > 0.0 else math.nan
        return self.lower / self.claim

    @property
    def verdict(self) -> str:
        """The finding in a few words."""
        if math.isinf(self.claim):
            words = "no finite epsilon, none claimed" if self.infinite else "none claimed"
        elif self.infinite:
            words = "contradicted: no finite epsilon"
        elif self.out_of_reach:
            words = f"out of reach: so many runs show {self.most:.3g} at most"
        else:
            words = "contradicted" if self.contradicted else "within the claim"
        if self.constant and not self.infinite:
            words += f"; nothing random in {max(self.happened):,} runs"
        return words


@dataclass(frozen=True)
class Audit:
    """An audit of one algorithm.

    Attributes:
        algorithm: Its configuration.
        agents: M.
        runs: Of each data set.
        level: Chance that any of the bounds is wrong.
        findings: One for each thing that is let out.
        most: Largest finite bound that so many runs can show.
        delta: Of the (epsilon, delta) that is claimed and bounded; 0 for pure privacy.
        unseen: Rows of the ledger that no run can show, and why.
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
    def contradicted(self) -> bool:
        """Whether any claim is wrong."""
        return any(each.contradicted for each in self.findings)


def audit(
    algorithm: Any,
    agents: Any = None,
    *,
    view: Any = None,
    delta: Any = 0.0,
    runs: Any = RUNS,
    level: Any = LEVEL,
    root_seed: Any = 0,
) -> Audit:
    """Looks for an event that tells neighbouring data apart better than the claim allows.

    Every row of the privacy ledger but those under ``unseen`` is shown as whoever it is about sees
    it:

    * "messages": single messages of elimination, rewards that an index policy releases, or, where
      agents are alone, the noisy sums that their actions follow from: that is a stronger viewer
      than the ledger has, and is named as one (an upper bound on what actions tell). All rewards
      are 0, or one of them is 1; all arms stay, since elimination depends on what was sent alone.
    * "sums": sums over agents, less what an agent that looks knows of them: its own message, or its
      own share of the noise. With participation p < 1 each round's agents are drawn.
    * "actions": the arms that all agents pull, over a whole run of a short horizon. With
      elimination the data are such that one reward decides who leaves in which round; with index
      policies the first pull of an arm differs. Of several such data those count that tell most.

    By Neyman and Pearson the best event is one of a large likelihood ratio. Of messages that is a
    half-line of the noisy sum of the changed epoch, or an interval around it; of actions, a set of
    sequences. Beside these all single numbers that are seen, and sums and differences of two, are
    tried, so that broken noise shows. The event is chosen on up to 262,144 other runs.

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
        ValueError: If an argument is out of range, or no view of the algorithm can be shown.

    Example:
        >>> import fmab_jax as fmab
        >>> found = fmab.audit(fmab.cdp_mab(0.2), agents=5, view="messages", runs=10**5)
        >>> finding = found.findings[0]
        >>> finding.claim, 0.9 < finding.lower < finding.claim  # N epsilon, and what was shown
        (1.0, True)
    """
    if not isinstance(algorithm, Algorithm):
        refuse("algorithm", algorithm, "an algorithm, such as cdp_mab(0.02)", "see fmab algorithms")
    agents = algorithm.usual_agents if agents is None else agents
    agents = count("agents", agents, 1, AGENTS_MAX, "give the number of agents")
    if view is not None and not (isinstance(view, str) and view in VIEWS):
        refuse("view", view, f"one of {', '.join(VIEWS)}", "leave it out for all of them")
    remedy = "give a chance such as 1e-3, or 0 for pure privacy"
    delta = real("delta", delta, 0.0, 1.0, remedy, open_high=True)
    if 0.0 < delta < privacy.LEAST_DELTA:
        refuse("delta", delta, f"0, or at least {privacy.LEAST_DELTA:g}", remedy)
    runs = count("runs", runs, 1000, 10**9, "give the runs of each data set, such as 1e6")
    remedy = "give the chance that a bound is wrong, such as 1e-6"
    level = real("level", level, 0.0, 0.5, remedy, open_low=True)
    root = keys.checked_seed("root_seed", root_seed)
    exchange = exchange_of(algorithm, agents)
    # What is said of the algorithm beside its findings; nothing of it goes with the arms.
    check_statements(algorithm, exchange, 2)
    with own_settings():
        exposures, unseen = exposed(algorithm, exchange, root, VIEWS if view is None else (view,))
        number = sum(len(exposure.groups()) for exposure in exposures)
        if not number:
            why = f": {unseen[0].why}" if unseen else ""
            allowed = f"one that {algorithm.name} lets anybody see"
            refuse("view", view, allowed, f"choose another view{why}")
        # Two limits for each finding.
        how = _How(runs, level / (2 * number), delta)
        findings = [each for exposure in exposures for each in _findings(exposure, how)]
    return Audit(
        algorithm, exchange.agents, runs, level, tuple(findings), how.most, delta, tuple(unseen)
    )


class _How(NamedTuple):
    """How chances become a bound."""

    runs: int  # of each data set
    tail: float  # chance that one limit is wrong
    delta: float  # of the claim

    @property
    def most(self) -> float:
        """Largest finite bound."""
        return float(_ratio(np.float64(self.runs), np.float64(0.0), self))


class _Table(NamedTuple):
    """Log likelihood ratios of sequences, as a part of the pilot has them."""

    first: int  # how many numbers a sequence has
    codes: Int[np.ndarray, " sequence"]  # sorted
    values: Float[np.ndarray, " sequence"]  # 0 for a sequence that is not there


class _Statistic(NamedTuple):
    """A function of what is seen: a weighted sum, its distance from a point, or a look-up."""

    weights: Float[np.ndarray, " number"]
    centre: float | None = None
    table: _Table | None = None

    def of(self, values: Float[np.ndarray, "run number"]) -> Float[np.ndarray, " run"]:
        """Returns its value of each run."""
        if self.table is not None:
            codes = _codes(values[:, : self.table.first])
            place = np.searchsorted(self.table.codes, codes)
            place = np.minimum(place, len(self.table.codes) - 1)
            there = self.table.codes[place] == codes
            return np.where(there, self.table.values[place], 0.0)
        x = values @ self.weights
        return x if self.centre is None else np.abs(x - self.centre)


def _codes(values: Float[np.ndarray, "run number"]) -> Int[np.ndarray, " run"]:
    """Returns a number for each sequence; two sequences may share one, which weakens an event."""
    drawn = np.random.default_rng(1).integers(-(2**61), 2**61, size=values.shape[1])
    odd: Any = 2 * drawn + 1
    # Agents that explore share a slot: halves.
    whole = np.rint(2.0 * values).astype(np.int64)
    # Sums are taken modulo 2^64.
    codes: Int[np.ndarray, " run"] = np.sum(whole * odd[None, :], axis=1)
    return codes


class _Event(NamedTuple):
    """That a statistic of what is seen is at least, or below, a threshold."""

    statistic: _Statistic
    threshold: float
    above: bool  # at least, else below
    likelier: int  # side on which it happens more often
    bound: float  # on epsilon, about, that the pilot gives
    certain: bool  # nothing random was seen on either side

    @property
    def rank(self) -> tuple[bool, float]:
        """How much it tells."""
        return self.certain, self.bound


def _findings(exposure: Exposure, how: _How) -> list[Finding]:
    """Chooses data and an event for each thing that is seen, and counts it on other runs."""
    streams, first = [], 0
    for group in exposure.groups():
        if len(group) == 1:
            streams += group
            continue
        pilots = _pilots(exposure, group, min(_TRIAL, how.runs), 0)
        chosen = [_chosen(each, how) for each in pilots]
        best = max(range(len(group)), key=lambda i: chosen[i].rank)
        streams.append(group[best])
        first = -(-_TRIAL // exposure.size)
    pilots = _pilots(exposure, streams, min(_PILOT, how.runs), first)
    first += -(-_PILOT // exposure.size)
    events, edges = [], []
    for pilot in pilots:
        events.append(_chosen(pilot, how))
        mixed = np.concatenate([events[-1].statistic.of(each.values) for each in pilot])
        low, high = np.quantile(mixed, [0.003, 0.997])
        edges.append(np.linspace(low, high if high > low else low + 1.0, _BINS + 1))
    happened = np.zeros((len(streams), 2), np.int64)
    binned = np.zeros((len(streams), 2, _BINS), np.int64)
    for batch in range(-(-how.runs // exposure.size)):
        used = min(exposure.size, how.runs - batch * exposure.size)
        for place, side, seen in _sides(exposure, streams, first + batch):
            event = events[place]
            x = event.statistic.of(seen.values[:used])
            happened[place, side] += np.sum((x >= event.threshold) == event.above)
            binned[place, side] += np.histogram(x, edges[place])[0]
    found = []
    for place, (stream, event) in enumerate(zip(streams, events, strict=True)):
        row, pair = stream.row, happened[place]
        more, less = pair[event.likelier], pair[1 - event.likelier]
        bound = float(_ratio(np.float64(more), np.float64(less), how))
        constant = bool(event.certain and more == how.runs and less == 0)
        made = Finding(
            stream=stream.words,
            claim=claimed(row, how.delta),
            lower=math.inf if constant and stream.bare else max(0.0, bound),
            exact=_exact(stream, how),
            constant=constant,
            event=_event_text(event, pilots[place][0].names),
            threshold=event.threshold,
            happened=(int(pair[0]), int(pair[1])),
            histogram=Histogram(edges[place], *binned[place]),
            who=row.who,
            what=row.what,
            view=exposure.view,
            most=how.most,
        )
        found.append(made)
    return found


def claimed(row: Seen, delta: float) -> float:
    """Returns the epsilon that a row of a ledger claims at a delta; the pure one at 0."""
    if delta == 0.0:
        return float(row.epsilon)
    return privacy.epsilon_at(row.epsilon, row.over, delta, row.law, row.shares)


def _sides(
    exposure: Exposure, streams: Sequence[Stream], batch: int
) -> Iterator[tuple[int, int, Numbers]]:
    """Yields (stream, side, what is seen) of a batch; data that several streams see, drawn once."""
    every: set[Any] = {each for s in streams for each in (s.without, s.with_it)}
    for data in sorted(every):
        drawn: Any = exposure.drawn(data, batch)
        for place, stream in enumerate(streams):
            for side, mine in enumerate((stream.without, stream.with_it)):
                if data == mine:
                    yield place, side, exposure.seen(stream, drawn)


def _pilots(
    exposure: Exposure, streams: Sequence[Stream], runs: int, first: int
) -> list[list[Numbers]]:
    """Returns what is seen of some runs, by stream and side."""
    parts: list[tuple[list[Numbers], list[Numbers]]] = [([], []) for _ in streams]
    for batch in range(-(-runs // exposure.size)):
        for place, side, seen in _sides(exposure, streams, first + batch):
            parts[place][side].append(seen)
    return [
        [each[0]._replace(values=np.concatenate([p.values for p in each])[:runs]) for each in both]
        for both in parts
    ]


def _chosen(pilot: list[Numbers], how: _How) -> _Event:
    """Returns the event that tells most, of the best one under the claim and many simple ones."""
    first = pilot[0]
    half = len(first.values) // 2
    tables = _tables([each.values[:half] for each in pilot]) if first.counts else []
    best = _Statistic(np.eye(len(first.names))[first.first])
    few = [each.values[:_SCREENED] for each in pilot]
    screened = [_event(each, few, how) for each in _simple(first)]
    winner = max(screened, key=lambda event: event.rank)
    # What was learned on one half is judged on the other.
    rest = [each.values[half:] for each in pilot] if tables else [each.values for each in pilot]
    close = [best._replace(centre=centre) for centre in (0.0, 1.0) if not first.counts]
    tried = [_event(each, rest, how) for each in (best, *close, winner.statistic, *tables)]
    return max(tried, key=lambda event: event.rank)


def _simple(seen: Numbers) -> list[_Statistic]:
    """Returns single numbers, their distances from a reward, pulls so far, and pairs of numbers.

    Pairs are sums and differences of two sums, or of two means.
    """
    unit, lengths = np.eye(len(seen.names)), seen.lengths
    found = [_Statistic(each) for each in unit]
    if seen.counts:
        return [*found, *(_Statistic(each) for each in np.tril(np.ones_like(unit))[1:])]
    found += [_Statistic(each, centre) for each in unit for centre in (0.0, 1.0)]
    if len(unit) > _FEW_NUMBERS:
        return found
    for i, j in zip(*np.triu_indices(len(lengths), 1), strict=True):
        pairs = [unit[i] + unit[j], unit[i] - unit[j]]
        if lengths[i] != lengths[j]:
            means = unit[i], unit[j] * (lengths[i] / lengths[j])
            pairs += [means[0] + means[1], means[0] - means[1]]
        found += [_Statistic(each) for each in pairs]
    return found


def _tables(sides: list[Float[np.ndarray, "run number"]]) -> list[_Statistic]:
    """Returns log likelihood ratios of sequences of pulls, by how many numbers they have."""
    numbers, found = sides[0].shape[1], []
    for first in sorted({min(numbers, 2**n) for n in range(numbers.bit_length() + 1)}):
        codes = [_codes(each[:, :first]) for each in sides]
        every, place = np.unique(np.concatenate(codes), return_inverse=True)
        counted = [
            np.bincount(each, minlength=len(every)) for each in np.split(place, [len(codes[0])])
        ]
        often = counted[0] + counted[1] >= _OFTEN
        values = np.log((counted[1] + 0.5) / (counted[0] + 0.5))
        if often.any():
            table = _Table(first, every[often], values[often])
            found.append(_Statistic(np.zeros(numbers), table=table))
    return found


def _event(
    statistic: _Statistic, seen: Sequence[Float[np.ndarray, "run number"]], how: _How
) -> _Event:
    """Returns the threshold, and the sides of it, that tell most of a statistic."""
    sides = [np.sort(statistic.of(each)) for each in seen]
    runs = len(sides[0])
    spread = [each[-1] - each[0] for each in sides]
    gap = float(sides[1][0] - sides[0][0])
    # What rounding leaves of numbers that cancel.
    rounding = (
        64 * np.finfo(np.float64).eps * max(1.0, *(abs(each[[0, -1]]).max() for each in sides))
    )
    if max(spread) <= rounding < abs(gap):
        middle = float(sides[0][0]) + gap / 2
        return _Event(statistic, middle, gap > 0, 1, math.inf, True)
    grid = np.concatenate([np.quantile(each, np.linspace(0.0, 1.0, 41)) for each in sides])
    grid = np.concatenate([grid, [0.0, 1.0]])
    if statistic.table is not None:
        grid = np.unique(statistic.table.values)
    elif statistic.centre is not None:
        # Thresholds close to the centre are tried as well.
        grid = np.concatenate([grid, np.quantile(sides[0], [1e-4, 1e-3, 0.01])])
    reached = np.stack([runs - np.searchsorted(each, grid, "left") for each in sides])
    # [below, likelier, threshold]
    more = np.stack([reached, runs - reached])
    less = more[:, ::-1]
    bound = _estimate(more, less, how._replace(runs=runs))
    below, likelier, place = np.unravel_index(int(np.argmax(bound)), bound.shape)
    best = float(bound[below, likelier, place])
    return _Event(statistic, float(grid[place]), not below, int(likelier), best, False)


def _estimate(more: Any, less: Any, how: _How) -> Any:
    """Returns `_ratio`, about, at a hundredth of the price: to choose events by."""
    from scipy.special import ndtri

    wide, runs = -ndtri(how.tail), how.runs
    low = more - wide * np.sqrt(more * (1.0 - more / runs) + 1.0) - how.delta * runs
    high = less + wide * np.sqrt(less * (1.0 - less / runs) + 1.0) + wide**2 / 2
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low, 0.0)) - np.log(high)


def _ratio(more: Any, less: Any, how: _How) -> Any:
    """Returns a lower bound on log((p - delta) / q) from how often either happened.

    Of p it takes Clopper and Pearson's lower limit, of q their upper one.
    """
    from scipy.special import betaincinv

    runs, tail = how.runs, how.tail
    # An event of no run has the lower limit 0; one of all runs has the upper limit 1.
    low = np.where(more > 0, betaincinv(np.maximum(more, 1), runs - more + 1, tail), 0.0)
    inside = np.minimum(less, runs - 1)
    high = np.where(less < runs, betaincinv(inside + 1, runs - inside, 1.0 - tail), 1.0)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(low - how.delta, 0.0)) - np.log(high)


def _exact(stream: Stream, how: _How) -> float:
    """Returns the bound, about, on a reward under noise that is exactly that of the claim.

    That is Laplace noise on a sum, of a scale of which the reward is so many.
    """
    epsilon, noises = stream.shift, stream.noises
    if not 0.0 < epsilon < math.inf or math.isinf(stream.row.epsilon) or noises is None:
        return math.nan
    if not noises:
        p = np.array([1.0 / (1.0 + math.exp(-min(epsilon, 700.0)))])
        q = 1.0 - p
    elif stream.waiting:
        # The difference of two noises, one for each arm, outweighs the reward or not.
        p, q = np.array([0.5]), privacy.noise_tail(2, np.array([epsilon]))
    else:
        beyond = np.linspace(0.0, 40.0 + 10.0 * math.sqrt(noises), 400 if noises >= 1 else 60)
        at = np.concatenate([np.linspace(0.0, epsilon, 9), epsilon + beyond])
        p, q = (privacy.noise_tail(noises, at - shift) for shift in (epsilon, 0.0))
        if noises < 1:
            # The law is steepest next to 0: intervals around what is seen without noise, too.
            wide = epsilon * np.geomspace(1e-4, 0.5, 60)
            ends = [privacy.noise_tail(noises, x) for x in (epsilon - wide, epsilon + wide, wide)]
            p, q = np.append(p, 1.0 - 2.0 * ends[2]), np.append(q, ends[0] - ends[1])
    found = _ratio(np.round(how.runs * p), np.round(how.runs * q), how)
    return max(0.0, float(np.max(found)))


def _event_text(event: _Event, names: list[str]) -> str:
    """Writes an event, such as "round 1, arm 2: at least 1"."""
    table = event.statistic.table
    if table is not None:
        inside = (table.values >= event.threshold) == event.above
        likelier = ("without", "with")[event.likelier]
        other = " or a rare one" if (event.threshold <= 0.0) == event.above else ""
        upto = f"{names[0]} to {names[table.first - 1]}" if table.first > 1 else names[0]
        told = f"{int(inside.sum())} sequences" if inside.sum() != 1 else "1 sequence"
        return f"pulls of {upto} in a set of {told}{other}, likelier {likelier} the reward"
    parts: list[str] = []
    for weight, name in zip(event.statistic.weights, names, strict=True):
        if weight:
            sign = "" if not parts and weight > 0 else "minus " if weight < 0 else "plus "
            factor = "" if abs(weight) == 1 else f"{abs(weight):.4g} x "
            parts.append(f"{sign}{factor}({name})")
    side = "at least" if event.above else "below"
    words = " ".join(parts)
    if len(parts) > 2:
        words = f"pulls of arm 2, {names[0]} to {names[len(parts) - 1]}"
    told = words.strip("()") if len(parts) == 1 else words
    if event.statistic.centre is not None:
        told = f"distance of {told} from {event.statistic.centre:g}"
    return f"{told}: {side} {event.threshold:.4g}"
