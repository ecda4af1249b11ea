"""What an algorithm tells of a reward, and to whom: the privacy ledger, computed and in words.

A ledger is about one changed reward of one agent, of whatever size its range allows, over a whole
run. Neighbouring data differ in the K rewards, one of each arm, that one agent could get in one
slot; the rewards of other slots and agents are fixed, and the arms of later slots adapt. The arm of
that slot is the same. A changed pull, arm and reward, is something else: with elimination, which
fixes how often an arm is pulled in an epoch, it changes the data of two arms, whose noises are
independent, so that epsilon and delta count twice; with an index policy it may shift all later
rewards of two arms, which nothing covers.
Of n changed rewards of an agent epsilon counts n times without delta. At the same delta it is more:
`laplace_sum_epsilon` at scale / n, if all are in one sum; in any case n epsilon holds up to
n e^((n-1) epsilon) delta. A ledger is about the ideal mechanism, with real numbers and exact laws
of the noise, that the simulation approximates.
"""

from __future__ import annotations

import bisect
import functools
import json
import math
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fmab_jax.algorithms.base import BITS, LAPLACE, Algorithm, coalition_of, ledger_of
from fmab_jax.analysis.words import written
from fmab_jax.core.exchanges.table import AGENTS_MAX
from fmab_jax.errors import count, real, refuse
from fmab_jax.run.configs import exchange_of
from fmab_jax.run.contract import asking

DELTA = 1e-6
"""Delta of (epsilon, delta)-privacy, where none is given."""

LEAST_DELTA = 1e-12
"""Smallest delta that double precision resolves."""

# Sums of more variables are treated as sums of so many, which hide no more.
_MOST_TERMS, _MOST_BITS = 10**6, 1000
# Of shares of a noise with a larger epsilon nothing is said: the quadrature loses its digits.
_MOST_WHOLE = 1e3
# Above this epsilon, 1 / (1 + e^epsilon) is 0 in float64.
_SURE = 700.0
# Terms of a sum are left out if they are e^60 times smaller than the largest.
_NOTHING = 60.0
# Numbers that are closer to 0 count as 0.
_CLOSEST = 1e-300
_WIDTH = 80
_TWICE = "One pull changed, arm and reward, counts twice, δ too."
_ONCE = "A changed arm may shift later rewards and is not covered."
_SLOT = (
    "All rewards that one agent could get in one slot may differ; rewards of other slots and "
    "agents are fixed, later arms adapt."
)
_MANY = "Without δ, n rewards of an agent count n times."
_MORE = "Up to δ, n rewards leak more than n times ε: n ε holds up to n e^((n - 1) ε) δ."
_UP_TO = "Up to δ: the hockey-stick divergence at ε is at most δ."
_CUT = "Rounds that the horizon cuts in their wait have sent their data, too."


class LedgerRow(NamedTuple):
    """What somebody sees of one agent's rewards, and what it tells of one of them.

    Attributes:
        who: Who sees it.
        what: What is seen: over the whole run, or else it says so.
        epsilon: Of pure differential privacy; infinite for no bound.
        epsilon_at_delta: Of (epsilon, delta)-privacy: at most ``epsilon``, and smaller where the
            noise of several agents adds up, or where shares of one noise bound no ratio. For every
            event A, P(A) is at most e^epsilon times its chance with the other reward, plus delta.
        delta: The delta of the latter.
        over: Noises of ``law`` that add up; 0 where none are known to.
        why: Why it holds, or why nothing does.
        source: Theorem or section; "" for none.
        law: Of the noises, `fmab_jax.algorithms.base.LAPLACE` or ``BITS``.
        shares: Of one noise: its epsilon, how many are not known, and all; None for whole noises.
    """

    who: str
    what: str
    epsilon: float
    epsilon_at_delta: float
    delta: float
    over: int
    why: str
    source: str
    law: str = LAPLACE
    shares: tuple[float, int, int] | None = None


def privacy_ledger(
    algorithm: Algorithm, agents: int, delta: float = DELTA, *, colluding: int = 0
) -> list[LedgerRow]:
    """Returns who sees what of an algorithm's rewards, and which epsilon covers it.

    For one changed reward of one agent: all K rewards that it could get in one slot may differ,
    while rewards of other slots and agents are fixed, and later arms adapt. n rewards of one agent
    count n times, without delta. With elimination one pull changed, action and reward, counts
    twice, delta too; with index policies a changed action is not covered. An algorithm that states
    nothing has no bound. Rounds that the horizon cuts in their wait have sent their data, and are
    covered as others are.

    Args:
        algorithm: Configured, such as ``cdp_mab(1.0)``.
        agents: M.
        delta: In [1e-12, 1): the hockey-stick divergence at the smaller epsilon of a sum over
            agents is at most delta.
        colluding: Agents that put together what they know, in [0, M - 1]; what they learn of
            another one's reward is the last row. With 0 there is no such row.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> server, sums, actions = fmab.privacy_ledger(fmab.cdp_mab(1.0), 50)
        >>> server.who, server.what, server.epsilon
        ('the server', 'single messages', 50.0)
        >>> sums.what, round(sums.epsilon_at_delta, 1)
        ('sums over 50 agents', 26.4)
        >>> actions.who, round(actions.epsilon_at_delta, 1)
        ('an outsider who sees actions', 26.2)
        >>> fmab.privacy_ledger(fmab.cdp_mab(1.0), 50, colluding=2)[-1].what
        'sums over 50 agents, less their own'
    """
    if not isinstance(algorithm, Algorithm):
        refuse("algorithm", algorithm, "an algorithm, such as cdp_mab(1.0)", "see fmab algorithms")
    agents = count("agents", agents, 1, AGENTS_MAX, "give the number of agents")
    delta = _delta(delta)
    remedy = "leave one agent whose reward is looked for"
    colluding = count("colluding", colluding, 0, agents - 1, remedy)
    exchange = exchange_of(algorithm, agents)
    with asking(type(algorithm)):
        rows = ledger_of(algorithm, exchange)
        if colluding:
            rows += coalition_of(algorithm, exchange, colluding)
    found = []
    for row in rows:
        epsilon = epsilon_at(row.epsilon, row.over, delta, row.law, row.shares)
        both = {"epsilon": float(row.epsilon), "epsilon_at_delta": epsilon, "delta": delta}
        found.append(LedgerRow(**row._asdict() | both))
    return found


def laplace_sum_epsilon(agents: int, scale: float, delta: float = DELTA) -> float:
    """Returns the epsilon of a number in [0, 1] plus independent Laplace variables, up to delta.

    That is the smallest epsilon >= 0 with P(Y in A) <= e^epsilon P(1 + Y in A) + delta for every A,
    Y the sum: delta is the hockey-stick divergence between the law and its shift. The law is
    log-concave, so A is a half-line, and both sides follow from density and tail of Y, which are
    positive mixtures of Gamma laws.

    Args:
        agents: Number of variables, in [1, 1e7]; of more than 1e6 that many are used, which bounds
            epsilon from above.
        scale: Of each, > 0; 1 / scale is the epsilon of one, without delta.
        delta: In [1e-12, 1).

    Raises:
        ValueError: If an argument is out of range.
    """
    agents = count("agents", agents, 1, AGENTS_MAX, "give the number of variables")
    scale = real("scale", scale, 0.0, 1e300, "give the scale of a variable", open_low=True)
    return epsilon_at(1.0 / scale, agents, _delta(delta))


def _delta(value: float) -> float:
    return real("delta", value, LEAST_DELTA, 1.0, "give a chance such as 1e-6", open_high=True)


def bits_sum_epsilon(agents: int, epsilon: float, delta: float = DELTA) -> float:
    """Returns the epsilon of a sum of random bits of independent rewards in [0, 1], up to delta.

    A bit is 1 with chance 1 / (1 + e^-epsilon) where its reward is 1, with 1 / (1 + e^epsilon)
    where it is 0, and mixed in between. One reward changes. The hockey-stick divergence is jointly
    convex, so it is largest where all rewards are 0 or 1; it is the largest over how many of the
    other ones are 1. Of one bit that is log(e^epsilon - delta (1 + e^epsilon)).

    Args:
        agents: Number of bits, in [1, 1e7]; of more than 1,000 that many are used, which bounds
            epsilon from above: a sum of more bits is one of fewer with noise added.
        epsilon: Of one bit, > 0, without delta.
        delta: In [1e-12, 1).

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> from fmab_jax.analysis.privacy import bits_sum_epsilon
        >>> round(bits_sum_epsilon(1, 1.0, 0.1), 5), round(bits_sum_epsilon(50, 1.0), 3)
        (0.85291, 0.749)
    """
    agents = count("agents", agents, 1, AGENTS_MAX, "give the number of bits")
    epsilon = real("epsilon", epsilon, 0.0, 1e300, "give the epsilon of one bit", open_low=True)
    return epsilon_at(epsilon, agents, _delta(delta), BITS)


def epsilon_at(
    epsilon: float,
    over: int,
    delta: float,
    law: str = LAPLACE,
    shares: tuple[float, int, int] | None = None,
) -> float:
    """Returns epsilon at delta where so many noises of a law add up; 0 where nothing is known.

    Where shares of one noise bound no ratio, that of the shares; ``shares`` is as in a `Seen`.
    """
    if math.isinf(epsilon) and shares is not None:
        whole, left, number = shares
        return _share_epsilon(left / number, whole, delta) if whole <= _MOST_WHOLE else epsilon
    if math.isinf(epsilon) or epsilon == 0.0 or not over:
        return float(epsilon)
    if law == BITS:
        return _bits_epsilon(min(over, _MOST_BITS), float(epsilon), delta)
    return _sum_epsilon(min(over, _MOST_TERMS), float(epsilon), delta)


@functools.lru_cache(maxsize=4096)
def _bits_epsilon(terms: int, epsilon: float, delta: float) -> float:
    """Returns the epsilon of one of so many bits in their sum."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    if epsilon > _SURE:
        return epsilon
    kept = 1.0 / (1.0 + math.exp(-epsilon))
    # 1 - kept has no digits left where epsilon is large.
    flipped = kept * math.exp(-epsilon)
    if terms == 1:
        return min(max(0.0, math.log(max(kept - delta, flipped) / flipped)), epsilon)
    both = []
    for ones in range(terms):
        # `ones` of the other bits have a reward of 1.
        zeros = terms - 1 - ones
        of_ones = binom.pmf(np.arange(ones + 1), ones, kept)
        of_zeros = binom.pmf(np.arange(zeros + 1), zeros, flipped)
        others = np.convolve(of_ones, of_zeros)
        none, one = np.append(others, 0.0), np.append(0.0, others)
        both.append((flipped * none + kept * one, kept * none + flipped * one))
    # [ones, sum]; the other direction is this one with zeros and ones swapped.
    with_it, without = (np.stack(each) for each in zip(*both, strict=True))

    def divergence(at: float) -> float:
        return float(np.max(np.sum(np.maximum(with_it - math.exp(at) * without, 0.0), axis=1)))

    if divergence(0.0) <= delta:
        return 0.0
    return min(float(brentq(lambda at: divergence(at) - delta, 0.0, epsilon, xtol=1e-13)), epsilon)


@functools.lru_cache(maxsize=4096)
def _sum_epsilon(terms: int, shift: float, delta: float) -> float:
    """Returns the epsilon of a shift of the sum of standard Laplace variables."""
    from scipy.optimize import brentq

    density, tail = _laplace_sum(terms)

    # Where the density at x is e^epsilon times that at x + shift, everything above x is in A.
    def chance(x: float) -> float:
        inside = density(abs(x)) + tail(x + shift) - density(x + shift)
        if x < 0.0:
            return float(-math.expm1(tail(-x) + x) - math.exp(inside + x))
        above = tail(x)
        return -math.exp(above - x) * math.expm1(min(inside - above, 0.0))

    middle = -0.5 * shift
    if chance(middle) <= delta:
        return 0.0
    low = max(middle, -1.0)
    while chance(low) < delta:
        low = max(middle, 2.0 * low)
    high = math.sqrt(2.0 * terms)
    while tail(high) - high > math.log(delta):
        high *= 2.0
    x = brentq(lambda x: chance(x) - delta, low, high, xtol=1e-14 * high, maxiter=500)
    found = x + shift - abs(x) + density(abs(x)) - density(x + shift)
    return min(max(found, 0.0), shift)


def laplace_share_epsilon(left: int, shares: int, scale: float, delta: float = DELTA) -> float:
    """Returns the epsilon of a number in [0, 1] plus some shares of one Laplace variable, to delta.

    A share is the difference of two Gamma(1 / shares) variables. What is left of the variable falls
    fastest next to 0. So the event of the hockey-stick divergence is an interval around 0 if
    epsilon exceeds that of the whole variable, else a half-line; it is integrated numerically, as
    an integral of a positive function. Without delta the epsilon is that of
    `fmab_jax.core.laplace.share_epsilon`.

    Args:
        left: Shares that are not known, in [1, shares].
        shares: Of the whole variable, in [1, 1000].
        scale: Of the whole variable, > 0.
        delta: In [1e-12, 1).

    Raises:
        ValueError: If an argument is out of range.

    Example:
        Of two agents each knows half of the noise. Then no epsilon holds without delta.

        >>> from fmab_jax.analysis.privacy import laplace_share_epsilon
        >>> from fmab_jax.core.laplace import share_epsilon
        >>> share_epsilon(1.0, 1, 2), round(laplace_share_epsilon(1, 2, 1.0, 1e-3), 2)
        (inf, 2.75)
    """
    shares = count("shares", shares, 1, 1000, "give all shares of the variable")
    left = count("left", left, 1, shares, "leave one share that is not known")
    scale = real("scale", scale, 0.0, 1e300, "give the scale of a variable", open_low=True)
    delta = _delta(delta)
    if left == shares:
        return epsilon_at(1.0 / scale, 1, delta)
    return _share_epsilon(left / shares, 1.0 / scale, delta)


@functools.lru_cache(maxsize=256)
def _share_epsilon(shape: float, shift: float, delta: float) -> float:
    """Returns the epsilon of a shift of a variance-gamma variable of shape below 1."""
    from scipy.integrate import quad
    from scipy.optimize import brentq
    from scipy.special import gammaln, kve

    order = shape - 0.5
    constant = 0.5 * math.log(math.pi) + float(gammaln(shape)) + order * math.log(2.0)

    def density(x: float) -> float:
        """Returns its logarithm, at x > 0."""
        x = max(x, _CLOSEST)
        return order * math.log(x) + math.log(kve(abs(order), x)) - x - constant

    # The mass closer to 0 than float64 reaches must be less than delta.
    if density(_CLOSEST) + math.log(_CLOSEST / shape) > math.log(delta) - 10.0:
        return math.inf
    # The density of x^power is constant next to 0, whatever the shape.
    power = max(1.0, 0.5 / shape)

    def gain(x: float) -> float:
        return density(abs(x)) - density(abs(x - shift))

    def place(epsilon: float, sign: int, far: float) -> float:
        """Returns how far from 0 the log ratio of the densities falls to epsilon."""
        ends = -690.0, math.log(far)
        if gain(sign * math.exp(ends[0])) <= epsilon:
            return 0.0
        if gain(sign * far) >= epsilon:
            return far
        return math.exp(brentq(lambda t: gain(sign * math.exp(t)) - epsilon, *ends, xtol=1e-12))

    def divergence(epsilon: float) -> float:
        total = 0.0
        for sign, far in ((1, 0.5 * shift), (-1, 750.0)):
            end = place(epsilon, sign, far)

            def inside(v: float, sign: int = sign) -> float:
                x = sign * v**power
                if x == 0.0:
                    return 0.0
                rise = power * v ** (power - 1.0)
                return math.exp(density(abs(x))) * rise * -math.expm1(min(epsilon - gain(x), 0.0))

            if end > 0.0:
                parts = sorted({*(min(end, each) for each in (1e-3, 1.0, 10.0, 60.0)), end})
                edges = [0.0, *(each ** (1.0 / power) for each in parts)]
                for low, high in zip(edges, edges[1:], strict=False):
                    total += quad(inside, low, high, epsabs=0.0, epsrel=1e-7, limit=200)[0]
        return total

    if divergence(0.0) <= delta:
        return 0.0
    high = max(1.0, shift)
    while divergence(high) > delta:
        high *= 2.0
    return float(brentq(lambda e: divergence(e) - delta, 0.0, high, xtol=1e-10, rtol=1e-10))


def noise_tail(noises: float, at: np.ndarray) -> np.ndarray:
    """Returns the chance that a sum of standard Laplace variables exceeds each number.

    There are a whole number of them; or a fraction, for shares of one.
    """
    from scipy.integrate import quad
    from scipy.special import gammaincc

    if noises >= 1:
        _, log_tail = _laplace_sum(int(noises))

        def above(x: float) -> float:
            return math.exp(log_tail(x) - x)
    else:
        # The other variable is y = u^(1 / noises), whose law has no pole then.
        def above(x: float) -> float:
            def inside(u: float) -> float:
                y = u ** (1.0 / noises)
                return float(gammaincc(noises, x + y)) * math.exp(-y)

            found = quad(inside, 0.0, 40.0**noises, epsabs=0.0, epsrel=1e-9, limit=200)[0]
            return float(found) / math.gamma(noises + 1.0)

    found = np.array([above(abs(float(x))) for x in at])
    return np.where(at >= 0.0, found, 1.0 - found)


def _laplace_sum(terms: int) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """Returns the logarithms of density and upper tail, x added to both, at x >= 0.

    The sum is the difference of two waiting times for the n-th event. With chance w_m the first is
    m events late, so that the law above 0 is a mixture of Gamma(m), m = 1..n; and a Gamma(m)
    variable exceeds x where a Poisson one of mean x is below m.
    """
    from scipy.special import gammaln, logsumexp

    late = np.arange(1.0, terms + 1.0)
    weight = gammaln(2 * terms - late) - gammaln(terms - late + 1.0) - gammaln(terms)
    weight -= (2 * terms - late) * math.log(2.0)
    # Half of the law is above 0, exactly.
    weight -= logsumexp(weight) + math.log(2.0)
    events = late - 1.0
    of_density = weight - gammaln(late)
    of_tail = np.logaddexp.accumulate(weight[::-1])[::-1] - gammaln(late)

    def function(coefficients: np.ndarray) -> Callable[[float], float]:
        falling = -np.diff(coefficients)

        def at(x: float) -> float:
            if x == 0.0:
                return float(coefficients[0])
            # Terms rise and then fall, their logarithms being concave: all but a few are nothing.
            log = math.log(x)
            top = int(np.searchsorted(falling, log))
            least = coefficients[top] + top * log - _NOTHING
            before, after = range(top), range(top + 1, terms)
            low = bisect.bisect_left(before, least, key=lambda k: coefficients[k] + k * log)
            high = bisect.bisect_left(after, -least, key=lambda k: -coefficients[k] - k * log)
            kept = slice(low, top + 1 + high)
            return float(logsumexp(coefficients[kept] + events[kept] * log))

        return at

    return function(of_density), function(of_tail)


def merged(cells: Sequence[tuple[str, Mapping[str, Any], Iterable[Any]]]) -> list[dict[str, Any]]:
    """Returns one ledger of several configurations: what all say alike is said once.

    Each has a title, swept values, and rows of `fmab_jax.run.facts.ledger_rows`. Rows of the same
    kind come back, with a ``title``. Of the pairs [epsilon, over], ``leaks`` has the smallest and
    the largest epsilon for each number of agents. ``where`` tells the swept values of the
    configurations that a row is about, where others of this title have another.
    """
    alike: dict[tuple[Any, ...], list[tuple[Mapping[str, Any], Any]]] = {}
    for title, labels, rows in cells:
        for row in rows:
            key = (title, *(row.get(name) for name in ("who", "what", "why", "source", "law")))
            alike.setdefault(key, []).append((labels, row))
    found = []
    for (title, *_), told in alike.items():
        # Shares of a noise follow in a pair: the epsilon of the whole, how many, and of how many.
        leaks: dict[tuple[int, ...], set[tuple[float, ...]]] = {}
        for epsilon, over, *more in (leak for _, row in told for leak in row["leaks"]):
            of = (math.inf if epsilon is None else epsilon, *more[:1])
            leaks.setdefault((over, *more[1:]), set()).add(of)
        one = {"title": title, **told[0][1]}
        one["waits"] = any(row.get("waits", False) for _, row in told)
        one["leaks"] = [
            [end if math.isfinite(end) else None, over, *more, *of]
            for (over, *of), each in sorted(leaks.items())
            for end, *more in sorted({min(each), max(each)})
        ]
        every = [labels for other, labels, _ in cells if other == title]
        owners = [labels for labels, _ in told]
        one["where"] = ", ".join(
            f"{name} {' or '.join(own)}"
            for name in every[0]
            if len(own := _labels(owners, name)) < len(_labels(every, name))
        )
        found.append(one)
    return found


def _labels(cells: Iterable[Mapping[str, Any]], name: str) -> list[str]:
    return list(dict.fromkeys(str(labels[name]) for labels in cells))


def lines(ledger: str, delta: float = DELTA) -> list[str]:
    """Writes the ledger of a result, lines of at most 80 characters; arguments as in `rows`."""
    table, _ = rows(ledger, delta)
    found = ["Privacy of one reward, over the whole run where nothing else is said:"]
    for title in dict.fromkeys(row["title"] for row in table):
        found += [title] * bool(title)
        for row in (row for row in table if row["title"] == title):
            seen = f"{row['who']}, {row['what']}" if row["what"] != "actions" else row["who"]
            where, source = (f" ({row[name]})" * bool(row[name]) for name in ("where", "source"))
            told = {"  ": f"{seen}{where}: {row['epsilon']}", "    ": f"{row['why']}{source}"}
            for first, text in told.items():
                found += textwrap.wrap(text, _WIDTH, initial_indent=first, subsequent_indent="    ")
    return found + _notes(ledger)


def rows(ledger: str, delta: float = DELTA) -> tuple[list[dict[str, str]], list[str]]:
    """Returns the attribute ``ledger`` of a result as a table: rows of texts, and notes below it.

    Rows have the ``title`` of the algorithm, ``who`` sees it, ``what``, ``where`` (which
    configurations, "" for all), ``epsilon``, ``why`` and ``source``.
    """
    names = ("title", "who", "what", "where", "why", "source")
    table = []
    for row in json.loads(ledger):
        leaks = [(math.inf if e is None else e, *more) for e, *more in row["leaks"]]
        epsilon = _range(leaks, delta, row.get("law", LAPLACE))
        table.append({name: row.get(name, "") for name in names} | {"epsilon": epsilon})
    note = " ".join(" ".join(_notes(ledger)).split())
    return table, [note] if note else []


def _notes(ledger: str) -> list[str]:
    """Writes what an epsilon counts for, and with which titles where they differ."""
    table = json.loads(ledger)
    covered = [row for row in table if any(leak[0] is not None for leak in row["leaks"])]
    up_to = any(leak[1] > 1 or len(leak) > 2 for row in table for leak in row["leaks"])
    titles: dict[str, dict[str, None]] = {}
    for row in covered:
        # Files of older versions do not say which.
        units = {True: [_TWICE], False: [_ONCE], None: []}[row.get("fixed")]
        units = [_SLOT, *units, _MANY] if units else []
        for note in [*units, *[_CUT] * row.get("waits", False)]:
            titles.setdefault(note, {})[row.get("title", "")] = None
    every = {row.get("title", "") for row in covered}
    found = []
    if up_to:
        found += [_UP_TO, *textwrap.wrap(_MORE, _WIDTH)]
    for note in sorted(titles, key=[_SLOT, _TWICE, _ONCE, _MANY, _CUT].index):
        whose = "" if len(titles[note]) == len(every) else f"{', '.join(titles[note])}: "
        found += textwrap.wrap(f"{whose}{note}", _WIDTH)
    return found


def _range(leaks: Sequence[tuple[Any, ...]], delta: float, law: str) -> str:
    """Writes the epsilons of some configurations: the smallest and the largest."""
    pure = sorted({leak[0] for leak in leaks})
    # Epsilon at delta grows with epsilon, so that it is smallest and largest at ends.
    ends = [
        epsilon_at(epsilon, over, delta, law, tuple(more) or None) for epsilon, over, *more in leaks
    ]
    if math.isinf(min(ends)):
        return "no bound"
    text = f"ε = {_from_to([pure[0], pure[-1]])}"
    if all(over <= 1 and not more for _, over, *more in leaks):
        return text
    if math.isinf(pure[0]):
        text = "no bound without δ"
    return f"{text}, and {_from_to([min(ends), max(ends)])} up to δ = {written(delta)}"


def _from_to(ends: Sequence[float]) -> str:
    first, last = ("no bound" if math.isinf(each) else f"{each:.3g}" for each in ends)
    return first if first == last else f"{first} to {last}"
