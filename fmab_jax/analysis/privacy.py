"""Computes and writes the privacy ledger: what each viewer learns about one reward.

A ledger is about one changed reward of one agent, of whatever size its range allows, over a whole
run. Neighbouring data differ in the K rewards, one of each arm, that one agent could get in one
slot; the rewards of other slots and agents are fixed, and the arms of later slots adapt. The arm of
that slot is the same. A changed pull, arm and reward, is something else: with elimination, which
fixes how often an arm is pulled in an epoch, it changes the data of two arms, whose noises are
independent, so that epsilon and delta count twice; with an index policy it may shift all later
rewards of two arms, which nothing covers.
Of n changed rewards of an agent epsilon counts n times without delta. At the same delta it is more:
`laplace_sum_epsilon` at scale / n, if all are in one sum; in any case n epsilon holds up to
n e^((n-1) epsilon) delta. `privacy_ledger(..., rewards=n)` has the numbers. A ledger is about the
ideal mechanism, with real numbers and exact laws of the noise, that the simulation approximates.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fmab_jax.algorithms.base import Algorithm, coalition_of, ledger_of
from fmab_jax.algorithms.families.messages import NoisyMessages
from fmab_jax.analysis.accountant import DELTA, check_delta, leak_of
from fmab_jax.analysis.accountant import epsilon_at as epsilon_at
from fmab_jax.analysis.accountant import laplace_sum_epsilon as laplace_sum_epsilon
from fmab_jax.analysis.words import write_number
from fmab_jax.core.binomials import MAX_TRIALS
from fmab_jax.core.exchanges.table import AGENTS_MAX
from fmab_jax.core.ledgers import LAPLACE, read_rows
from fmab_jax.core.presences import PRESENCES, Presence
from fmab_jax.core.shapes import Record
from fmab_jax.errors import count, flag, refuse
from fmab_jax.run.configs import build_exchange
from fmab_jax.run.contract import refuse_errors

_WIDTH = 80
_CHANGED_PULL = "One pull changed, arm and reward, counts twice, δ too."
_CHANGED_ARM = "A changed arm may shift later rewards and is not covered."
_SLOT = (
    "All rewards that one agent could get in one slot may differ; rewards of other slots and "
    "agents are fixed, later arms adapt."
)
_GROUP_PURE = "Without δ, n rewards of an agent count n times."
_GROUP_APPROXIMATE = (
    "Up to δ, n rewards leak more than n times ε: n ε holds up to n e^((n - 1) ε) δ."
)
_UP_TO = "Up to δ: the hockey-stick divergence at ε is at most δ."
_CUT_ROUNDS = "Rounds that the horizon cuts in their wait have sent their data, too."


class LedgerRow(NamedTuple):
    """What a viewer sees, and how much it leaks about one reward of one agent.

    Attributes:
        viewer: Who sees it.
        observation: What the viewer sees: over the whole run, unless it says otherwise.
        epsilon: Of pure differential privacy; infinite for no bound.
        epsilon_at_delta: Of (epsilon, delta)-privacy: at most ``epsilon``, and smaller where the
            noise of several agents adds up, or where shares of one noise bound no ratio. For every
            event A, P(A) is at most e^epsilon times its chance with the other reward, plus delta.
        delta: Delta of ``epsilon_at_delta``.
        over: Number of noises of ``law`` that add up; 0 for unknown.
        why: Why it holds, or why nothing does.
        source: Theorem or section; "" for none.
        law: Of the noises, `fmab_jax.core.ledgers.LAPLACE` or ``BITS``.
        shares: Of one noise: its epsilon, how many are not known, and all; None for whole noises.
        scale: Of each noise of a mechanism other than Laplace; None for others.
        rho: Of zero-concentrated differential privacy; infinite for no bound.
        mu: Of Gaussian differential privacy; infinite for no bound.
        rewards: Number of changed rewards that the four numbers are about.
    """

    viewer: str
    observation: str
    epsilon: float
    epsilon_at_delta: float
    delta: float
    over: int
    why: str
    source: str
    law: str = LAPLACE
    shares: tuple[float, int, int] | None = None
    scale: float | None = None
    rho: float = math.inf
    mu: float = math.inf
    rewards: int = 1


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
            is that of group privacy; see `fmab_jax.analysis.accountant.leak_of`.
        distinct_messages: Whether these rewards are in n different messages, which leaks less: the
            leaks of messages compose. For eliminations in which a reward enters one message.
        presence: Which agents take part in a round, or its text. Where agents may be absent, a sum
            may be over few of them, and hides a reward no better than one message.

    Raises:
        ValueError: If an argument is out of range.

    Example:
        >>> import fmab_jax as fmab
        >>> server, sums, actions = fmab.privacy_ledger(fmab.cdp_mab(1.0), 50)
        >>> server.viewer, server.observation, server.epsilon
        ('the server', 'single messages', 50.0)
        >>> sums.observation, round(sums.epsilon_at_delta, 1)
        ('sums over 50 agents', 26.4)
        >>> actions.viewer, round(actions.epsilon_at_delta, 1)
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
    if not isinstance(algorithm, Algorithm):
        refuse("algorithm", algorithm, "an algorithm, such as cdp_mab(1.0)", "see fmab algorithms")
    agents = count("agents", agents, 1, AGENTS_MAX, "give the number of agents")
    delta = check_delta(delta)
    remedy = "leave one agent whose reward is looked for"
    colluding = count("colluding", colluding, 0, agents - 1, remedy)
    rewards = count("rewards", rewards, 1, MAX_TRIALS, "give a number of rewards of one agent")
    distinct = flag("distinct_messages", distinct_messages, "write True or False")
    if distinct and not isinstance(algorithm, NoisyMessages):
        allowed = f"False for {algorithm.name}, whose rewards may enter several messages"
        refuse("distinct_messages", distinct, allowed, "leave it out")
    who = None if presence is None else PRESENCES.parse(presence, "presence")
    exchange = build_exchange(algorithm, agents)
    with refuse_errors(type(algorithm)):
        rows = ledger_of(algorithm, exchange, who)
        if colluding:
            rows += coalition_of(algorithm, exchange, colluding, who)
    table = []
    for row in rows:
        shares = row.shares if row.scale is None else (row.scale,)
        leak = leak_of(
            row.epsilon, row.over, delta, row.law, shares, rewards=rewards, distinct=distinct
        )
        fields = row._asdict() | leak._asdict()
        table.append(LedgerRow(**fields, delta=delta, rewards=rewards))
    return table


def merge_ledgers(
    cells: Sequence[tuple[str, Mapping[str, object], Iterable[Record]]],
) -> list[Record]:
    """Returns one ledger of several configurations; equal rows are joined.

    Each has a title, swept values, and rows of `fmab_jax.run.facts.ledger_rows`. Rows of the same
    kind come back, with a ``title``. Of the pairs [epsilon, over], ``leaks`` has the smallest and
    the largest epsilon for each number of agents. ``conditions`` tells the swept values of the
    configurations that a row is about, where others of this title have another.
    """
    groups: dict[tuple[str | None, ...], list[tuple[Mapping[str, object], Record]]] = {}
    for title, labels, rows in cells:
        for row in rows:
            key = (
                title,
                *(row.get(name) for name in ("viewer", "observation", "why", "source", "law")),
            )
            groups.setdefault(key, []).append((labels, row))
    table = []
    for (group_title, *_), group in groups.items():
        # Shares of a noise follow in a pair: the epsilon of the whole, how many, and of how many.
        ends: dict[tuple[int, ...], set[tuple[float, ...]]] = {}
        for epsilon, over, *shares in (leak for _, row in group for leak in row["leaks"]):
            end = (math.inf if epsilon is None else epsilon, *shares[:1])
            ends.setdefault((over, *shares[1:]), set()).add(end)
        leaks = [
            [epsilon if math.isfinite(epsilon) else None, over, *whole, *shares]
            for (over, *shares), pair in sorted(ends.items())
            for epsilon, *whole in sorted({min(pair), max(pair)})
        ]
        row_labels, all_cells = (
            [labels for labels, _ in group],
            [c[1] for c in cells if c[0] == group_title],
        )
        conditions = []
        for name in all_cells[0]:
            values, all_values = (
                dict.fromkeys(str(labels[name]) for labels in swept)
                for swept in (row_labels, all_cells)
            )
            conditions += [f"{name} {' or '.join(values)}"] * (len(values) < len(all_values))
        waits = any(row.get("waits", False) for _, row in group)
        fields = {"leaks": leaks, "waits": waits, "where": ", ".join(conditions)}
        table.append({"title": group_title, **group[0][1], **fields})
    return table


def write_lines(ledger: str, delta: float = DELTA) -> list[str]:
    """Writes the ledger of a result in lines of at most 80 letters; see `write_table`."""
    table, _ = write_table(ledger, delta)
    text = ["Privacy of one reward, over the whole run where nothing else is said:"]
    for title in dict.fromkeys(row["title"] for row in table):
        text += [title] * bool(title)
        for row in (row for row in table if row["title"] == title):
            heading = (
                f"{row['viewer']}, {row['observation']}"
                if row["observation"] != "actions"
                else row["viewer"]
            )
            condition, source = (
                f" ({row[name]})" * bool(row[name]) for name in ("where", "source")
            )
            text += _wrap(f"{heading}{condition}: {row['epsilon']}", "  ")
            text += _wrap(f"{row['why']}{source}", "    ")
    return text + _write_notes(ledger)


def _wrap(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=indent, subsequent_indent="    ")


def write_table(ledger: str, delta: float = DELTA) -> tuple[list[dict[str, str]], list[str]]:
    """Returns the attribute ``ledger`` of a result as a table: rows of texts, and notes below it.

    Rows have the ``title`` of the algorithm, ``who`` sees it, ``what``, ``where`` (which
    configurations, "" for all), ``epsilon``, ``why`` and ``source``.
    """
    names = ("title", "viewer", "observation", "where", "why", "source")
    table = []
    for row in read_rows(ledger):
        leaks = [(math.inf if e is None else e, n, *shares) for e, n, *shares in row["leaks"]]
        epsilon = _write_epsilons(leaks, delta, row.get("law", LAPLACE))
        table.append({name: row.get(name, "") for name in names} | {"epsilon": epsilon})
    note = " ".join(" ".join(_write_notes(ledger)).split())
    return table, [note] if note else []


def _write_notes(ledger: str) -> list[str]:
    """Writes what an epsilon covers, by title where the titles differ."""
    table = read_rows(ledger)
    covered = [
        row for row in table if any(leak[0] is not None or len(leak) == 3 for leak in row["leaks"])
    ]
    # Files of older versions do not say whether an epoch fixes its pulls.
    units = [row for row in covered if row.get("fixed") is not None]
    groups = {
        _SLOT: units,
        _CHANGED_PULL: [row for row in units if row["fixed"]],
        _CHANGED_ARM: [row for row in units if not row["fixed"]],
        _GROUP_PURE: units,
        _CUT_ROUNDS: [row for row in covered if row.get("waits", False)],
    }
    notes = []
    if any(leak[1] > 1 or len(leak) > 2 for row in table for leak in row["leaks"]):
        notes = [_UP_TO, _GROUP_APPROXIMATE]
    all_titles = {row.get("title", "") for row in covered}
    for note, group in groups.items():
        titles = dict.fromkeys(row.get("title", "") for row in group)
        whose = "" if len(titles) == len(all_titles) else f"{', '.join(titles)}: "
        notes += [whose + note] * bool(group)
    return [line for note in notes for line in textwrap.wrap(note, _WIDTH)]


def _write_epsilons(
    leaks: Sequence[tuple[float, int, *tuple[float, ...]]], delta: float, law: str
) -> str:
    """Writes the epsilons of some configurations: the smallest and the largest."""
    # Epsilon at delta grows with epsilon, so the ends suffice.
    ends = [epsilon_at(e, over, delta, law, tuple(shares) or None) for e, over, *shares in leaks]
    if math.isinf(min(ends)):
        return "no bound"
    pure = [leak[0] for leak in leaks]
    text = "no bound without δ" if math.isinf(min(pure)) else f"ε = {write_range(pure)}"
    if all(over <= 1 and not shares for _, over, *shares in leaks):
        return text
    text = f"{text}, and {write_range(ends)} up to δ = {write_number(delta)}"
    if math.isfinite(min(pure)):
        return text
    # Noise without pure epsilon: other terms say more than one delta.
    rates = [leak_of(e, over, delta, law, tuple(shares)) for e, over, *shares in leaks]
    for symbol, values in (("ρ", [leak.rho for leak in rates]), ("μ", [x.mu for x in rates])):
        text += f"; {symbol} = {write_range(values)}" * math.isfinite(max(values))
    return text


def write_range(epsilons: Sequence[float]) -> str:
    """Writes the smallest and the largest number, "no bound" for infinity."""
    ends = (min(epsilons), max(epsilons))
    first, last = ("no bound" if math.isinf(end) else f"{end:.3g}" for end in ends)
    return first if first == last else f"{first} to {last}"
