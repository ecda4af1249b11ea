"""Computes and writes the privacy ledger: what each viewer learns about one reward.

A ledger is about one changed reward of one agent, of whatever size its range allows, over a whole
run. Neighbouring data differ in the K rewards, one of each arm, that one agent could get in one
slot; the rewards of other slots and agents are fixed, and the arms of later slots adapt. The arm of
that slot is the same. A changed pull, arm and reward, is something else: with elimination, which
fixes how often an arm is pulled in an epoch, it changes the data of two arms, whose noises are
independent, so that epsilon and delta count twice; with an index policy it may shift all later
rewards of two arms, which nothing covers.
Of n changed rewards of an agent epsilon counts n times without delta. At the same delta it may be
more, if they are in one message: `laplace_sum_epsilon` at scale / n, if all are in one sum; in any
case n epsilon holds up to n e^((n-1) epsilon) delta. In n different messages it may be much less.
`privacy_ledger(..., rewards=n)` has the numbers. A ledger is about the ideal mechanism, with real
numbers and exact laws of the noise, that the simulation approximates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from fmab_jax.algorithms.base import Algorithm, coalition_of, ledger_of
from fmab_jax.algorithms.families.noisy_messages import NoisyMessages
from fmab_jax.analysis.accountant import DELTA, check_delta, epsilon_at, leak_terms
from fmab_jax.analysis.accountant import laplace_sum_epsilon as laplace_sum_epsilon
from fmab_jax.analysis.words import read_ledgers, write_label, write_number
from fmab_jax.errors import count, flag, refuse
from fmab_jax.parameters import ViewKind
from fmab_jax.parts.exchanges import Viewer
from fmab_jax.parts.exchanges.table import AGENTS_MAX
from fmab_jax.parts.presences import PRESENCES, Presence
from fmab_jax.records.ledger import Disclosure, Noise, describe_viewer
from fmab_jax.run.configs import build_exchange
from fmab_jax.run.facts import read_ledger
from fmab_jax.run.promises import refuse_errors
from fmab_jax.sampling.binomials import MAX_TRIALS

_CHANGED_ARM = (
    "One pull changed, arm and reward, counts twice with elimination, δ too; with other algorithms "
    "a changed arm may shift later rewards and is not covered."
)
_SLOT = (
    "All rewards that one agent could get in one slot may differ; rewards of other slots and "
    "agents are fixed, later arms adapt."
)
_GROUP_PURE = "Without δ, n rewards of an agent count n times."
_GROUP_APPROXIMATE = (
    "Up to δ, n rewards in one message may leak more than n times ε: n ε holds up to "
    "n e^((n - 1) ε) δ. In n different messages they may leak much less."
)
_UP_TO = "Up to δ: the hockey-stick divergence at ε is at most δ."


class LedgerRow(NamedTuple):
    """What a viewer sees, and how much it leaks about one reward of one agent.

    Attributes:
        viewer: Who sees it.
        view: What kind of thing is seen: messages, sums or actions.
        observation: What exactly is seen: over the whole run, unless it says otherwise.
        epsilon: Of pure differential privacy; infinite for no bound.
        epsilon_at_delta: Of (epsilon, delta)-privacy: at most ``epsilon``, and smaller where the
            noise of several agents adds up, or where shares of one noise bound no ratio. For every
            event A, P(A) is at most e^epsilon times its chance with the other reward, plus delta.
        delta: Delta of ``epsilon_at_delta``.
        rho: Of zero-concentrated differential privacy; infinite for no bound.
        mu: Of Gaussian differential privacy; infinite for no bound.
        rewards: Number of changed rewards that the four numbers are about.
        noises: The noises that hide the reward; () for unknown.
        why: Why it holds, or why nothing does.
        source: Theorem or section; "" for none.
        members: Agents of a coalition; 0 for any other viewer.
        is_one_round: Whether the row is about one round alone, and not about the run.
    """

    viewer: Viewer
    view: ViewKind
    observation: str
    epsilon: float
    epsilon_at_delta: float
    delta: float
    rho: float
    mu: float
    rewards: int
    noises: tuple[Noise, ...]
    why: str
    source: str
    members: int = 0
    is_one_round: bool = False

    @property
    def number(self) -> int:
        """Number of noises that hide the reward; 0 for unknown."""
        return sum(noise.number for noise in self.noises)

    @property
    def label(self) -> str:
        """Who sees it, such as "3 agents together"."""
        return describe_viewer(self.viewer, self.members)


def privacy_ledger(
    algorithm: Algorithm,
    agents: int,
    delta: float = DELTA,
    *,
    colluding: int = 0,
    rewards: int = 1,
    distinct_messages: bool = False,
    presence: Presence | str | None = None,
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
        rewards: Number n of changed rewards of one agent, wherever they are in the run. Their leak
            is that of group privacy; see `fmab_jax.analysis.accountant.leak_terms`.
        distinct_messages: Whether these rewards are in n different messages, which leaks less: the
            leaks of messages compose. For eliminations in which a reward enters one message.
        presence: Which agents take part in a round, or its text. Where agents may be absent, a sum
            may be over few of them, and hides a reward no better than one message.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> server, sums, actions = fmab.privacy_ledger(fmab.cdp_mab(1.0), 50)
        >>> server.label, server.observation, server.epsilon
        ('the server', 'single messages', 50.0)
        >>> sums.observation, round(sums.epsilon_at_delta, 1)
        ('sums over 50 agents', 26.4)
        >>> actions.label, round(actions.epsilon_at_delta, 1)
        ('an outsider who sees actions', 26.2)
        >>> fmab.privacy_ledger(fmab.cdp_mab(1.0), 50, colluding=2)[-1].observation
        'sums over 50 agents, less their own'

        Nine rewards of one agent, behind Gaussian noise; then in nine different messages:

        >>> gaussian = fmab.cdp_mab(epsilon_message=1.0, mechanism="gaussian")
        >>> [round(fmab.privacy_ledger(gaussian, 50, rewards=n)[0].mu, 3) for n in (1, 9)]
        [0.237, 2.13]
        >>> round(fmab.privacy_ledger(gaussian, 50, rewards=9, distinct_messages=True)[0].mu, 3)
        0.71
    """
    delta = check_delta(delta)
    rows = list_disclosures(algorithm, agents, presence, colluding)
    rewards = count("rewards", rewards, 1, MAX_TRIALS, "give a number of rewards of one agent")
    distinct = flag("distinct_messages", distinct_messages, "write True or False")
    if distinct and not isinstance(algorithm, NoisyMessages):
        allowed = f"False for {algorithm.name}, whose rewards may enter several messages"
        refuse("distinct_messages", distinct, allowed, "leave it out")
    return [_measure(row, delta, rewards, distinct) for row in rows]


def list_disclosures(
    algorithm: Algorithm, agents: int, presence: Presence | str | None = None, colluding: int = 0
) -> tuple[Disclosure, ...]:
    """Returns the rows of a ledger without their numbers; arguments as in `privacy_ledger`."""
    if not isinstance(algorithm, Algorithm):
        refuse("algorithm", algorithm, "an algorithm, such as cdp_mab(1.0)", "see fmab list")
    agents = count("agents", agents, 1, AGENTS_MAX, "give the number of agents")
    remedy = "leave one agent whose reward is looked for"
    colluding = count("colluding", colluding, 0, agents - 1, remedy)
    who = None if presence is None else PRESENCES.parse(presence, "presence")
    exchange = build_exchange(algorithm, agents)
    with refuse_errors(type(algorithm)):
        rows = ledger_of(algorithm, exchange, who)
        return rows + coalition_of(algorithm, exchange, colluding, who) if colluding else rows


def _measure(row: Disclosure, delta: float, rewards: int, is_distinct: bool) -> LedgerRow:
    """Returns a row with its numbers."""
    terms = leak_terms(row, delta, rewards=rewards, is_distinct=is_distinct)
    fields = {name: getattr(row, name) for name in row._fields if name in LedgerRow._fields}
    return LedgerRow(**fields | terms._asdict(), delta=delta, rewards=rewards)


def _merge_rows(data: xr.Dataset) -> list[tuple[str, list[Disclosure], str]]:
    """Returns the rows of all ledgers of a result; those that differ in numbers alone are joined.

    They follow the title of their algorithm. The last text has the swept values of the
    configurations that they are about, where others of this title have other values.
    """
    dims = [str(dim) for dim in data.ledger.dims]
    texts = [text for text in data.ledger.values.flat if isinstance(text, str)]
    ledgers = {text: read_ledger(text) for text in dict.fromkeys(texts)}
    groups: dict[tuple[str, Disclosure, object], list[tuple[Disclosure, tuple[int, ...]]]] = {}
    places: dict[str, list[tuple[int, ...]]] = {}
    for place, text in np.ndenumerate(data.ledger.values):
        if text not in ledgers:  # NaN: results were joined, and have no run here
            continue
        title, rows = ledgers[text]
        places.setdefault(title, []).append(place)
        for row in rows:
            laws = tuple(noise.mechanism for noise in row.noises)
            key = title, row._replace(epsilon=0.0, noises=()), laws
            groups.setdefault(key, []).append((row, place))
    merged = []
    for (title, *_), members in groups.items():
        conditions = []
        for axis, dim in enumerate(dims):
            used = dict.fromkeys(place[axis] for _, place in members)
            if len(used) < len({place[axis] for place in places[title]}):
                labels = (write_label(data[dim].values.tolist()[index]) for index in used)
                conditions.append(f"{dim} {' or '.join(labels)}")
        merged.append((title, [row for row, _ in members], ", ".join(conditions)))
    return merged


def write_table(data: xr.Dataset, delta: float = DELTA) -> tuple[list[dict[str, str]], list[str]]:
    """Returns the ledgers of a result as a table: rows of texts, and notes below it.

    Rows have the ``title`` of the algorithm, ``viewer``, ``observation`` ("" for actions, which the
    viewer names), ``where`` (which configurations, "" for all), ``epsilon``, ``why`` and
    ``source``.
    """
    table = [
        {
            "title": title,
            "viewer": describe_viewer(rows[0].viewer, rows[0].members),
            "observation": "" if rows[0].view is ViewKind.ACTIONS else rows[0].observation,
            "where": condition,
            "epsilon": _write_epsilons(rows, delta),
            "why": rows[0].why,
            "source": rows[0].source,
        }
        for title, rows, condition in _merge_rows(data)
    ]
    return table, _list_notes([row for ledger in read_ledgers(data) for row in ledger.rows])


def _list_notes(rows: Sequence[Disclosure]) -> list[str]:
    """Returns what an epsilon covers."""
    is_covered = any(row.epsilon < math.inf or row.noises for row in rows)
    notes = [_UP_TO, _GROUP_APPROXIMATE] * any(map(_holds_up_to_delta, rows))
    notes += [_SLOT, _CHANGED_ARM] * is_covered
    return notes + [_GROUP_PURE] * any(row.epsilon < math.inf for row in rows)


def _holds_up_to_delta(row: Disclosure) -> bool:
    """Tells whether a smaller epsilon than the pure one holds up to delta."""
    return row.number > 1 or bool(row.noises) and math.isinf(row.epsilon)


def _write_epsilons(rows: Sequence[Disclosure], delta: float) -> str:
    """Writes the epsilons of some configurations: the smallest and the largest."""
    ends = [epsilon_at(row, delta) for row in rows]
    if math.isinf(min(ends)):
        return "no bound"
    pure = [row.epsilon for row in rows]
    text = "no bound without δ" if math.isinf(min(pure)) else f"ε = {write_range(pure)}"
    if not any(map(_holds_up_to_delta, rows)):
        return text
    text = f"{text}, and {write_range(ends)} up to δ = {write_number(delta)}"
    if math.isfinite(min(pure)):
        return text
    # Noise without pure epsilon: other terms say more than one delta.
    terms = [leak_terms(row, delta) for row in rows]
    for symbol, values in (("ρ", [x.rho for x in terms]), ("μ", [x.mu for x in terms])):
        text += f"; {symbol} = {write_range(values)}" * math.isfinite(max(values))
    return text


def write_range(epsilons: Sequence[float]) -> str:
    """Writes the smallest and the largest number, "no bound" for infinity."""
    ends = (min(epsilons), max(epsilons))
    first, last = ("no bound" if math.isinf(end) else f"{end:.3g}" for end in ends)
    return first if first == last else f"{first} to {last}"
